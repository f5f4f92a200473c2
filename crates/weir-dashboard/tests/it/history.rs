//! Results by commit: the folder's studies and stored comparisons, one after the other.

use std::fs;

use weir_lab::stored_history::comparison_name;
use weir_record::{
    commands::{COMPARISON_VERSION, CommandArm, CommandComparison, CommandFile, CommandReport, CommandRole},
    effect::{Effect, EffectScale, Effects, Question},
    metric::Metric,
    origin::Origin,
    verdict::Verdict,
};

use crate::{
    client::Running,
    results::{folder, make_old, sql, study},
};

/// A comparison of `old` with `new` at a commit.
fn comparison(day: u64, commit: &str, ratio: f64) -> String {
    // Without the content of its file a program may be another one each time, and no run would be marked.
    let file = |name: &str| CommandFile { path: format!("/b/{name}"), bytes: 1, content: name.to_owned() };
    let arm = |name: &str, role| CommandArm {
        name: name.to_owned(),
        role,
        words: vec![name.to_owned()],
        files: vec![file(name)],
    };
    let row = Effect {
        question: Question::Comparison,
        arm: "new <b>".to_owned(),
        baseline: "old".to_owned(),
        metric: Metric::CommandCpu,
        scale: EffectScale::Ratio,
        estimate: Some(ratio),
        interval: Some((0.99 * ratio, 1.01 * ratio)),
        level: 0.99,
        degrees_of_freedom: Some(9),
        verdict: Verdict::Worse,
        ..Effect::default()
    };
    let comparison = CommandComparison {
        commands: vec![arm("old", CommandRole::Baseline), arm("new <b>", CommandRole::Candidate)],
        effects: Effects { rows: vec![row] },
        ..CommandComparison::default()
    };
    let report = CommandReport {
        schema_version: COMPARISON_VERSION,
        started_unix_ns: day * 86_400 * 1_000_000_000,
        origin: Origin { commit: Some(commit.to_owned()), note: Some("<i>".to_owned()), ..Origin::default() },
        comparisons: vec![comparison],
        ..CommandReport::default()
    };
    serde_json::to_string(&report).expect("it serialises")
}

#[test]
fn runs_of_the_folder_are_drawn_by_commit_and_read_again_when_they_change() {
    let results = folder("history");
    let dashboard = Running::over(&results);
    assert!(dashboard.get("/history").body.contains("no stored comparison"), "there is nothing yet");
    assert!(dashboard.get("/").body.contains("href=\"/history\""), "the list leads there");

    let path = study(&results, ("quick-1", "quick"), 100);
    sql(
        &path,
        "UPDATE result SET result = json_set(result, '$.spec.origin', json('{\"commit\":\"c0ffee\"}'))",
    );
    make_old(&path, 50);
    let file = results.join(comparison_name(86_400, 1));
    fs::write(&file, comparison(1, "abc", 1.0)).expect("it can be written");
    fs::write(results.join(comparison_name(2 * 86_400, 1)), comparison(2, "def", 1.2))
        .expect("it can be written");
    fs::write(results.join(comparison_name(3 * 86_400, 1)), "{").expect("it can be written");
    let page = dashboard.get("/history");
    assert_eq!(page.status, 200, "{}", page.body);
    for words in
        ["Results by commit", "c0ffee", "abc", "def", "new &lt;b&gt; / old", "<svg", "▲", "&lt;i&gt;"]
    {
        assert!(page.body.contains(words), "{words}: {}", page.body);
    }
    assert!(page.body.contains("compare-19700104-000000.json") && !page.body.contains("<b> / old"));
    let whole = results.to_string_lossy().into_owned();
    assert!(!page.body.contains(&whole), "where the folder is stands on no page");
    for (language, words) in [("ko", "커밋별 결과"), ("zh", "各提交的结果")] {
        assert!(dashboard.get(&format!("/history?lang={language}")).body.contains(words));
    }

    let only = dashboard.get("/history?study=old").body;
    assert!(only.contains("abc") && !only.contains("c0ffee"), "{only}");
    assert!(only.contains("href=\"/history?study=old&amp;lang=ko\""), "{only}");
    fs::write(&file, comparison(1, "fedcba-longer", 1.0)).expect("it can be written");
    let changed = dashboard.get("/history?study=old").body;
    assert!(changed.contains("fedcba-longer") && !changed.contains("abc<"), "{changed}");
}
