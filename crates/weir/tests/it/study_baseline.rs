//! `--baseline` and `--placebo`: other builds as arms, and every way in which there is no baseline.

use std::{fs, path::Path};

use weir_record::{effect::Effect, finding::Finding, metric::Metric, study::StudyResult};

use super::harness::{
    TWO_ARMS, WEIR, copy_program, executable, expect_refusal, folder, shown, study_file, study_head, weir,
};

#[test]
fn an_older_build_is_the_baseline_of_its_arm_and_layout_is_told_of_without_a_placebo() {
    let folder = folder("study-baseline");
    let [old, again] = ["old-weir", "again-weir"].map(|name| folder.join(name));
    for copy in [&old, &again] {
        copy_program(Path::new(WEIR), copy);
    }
    let (file, out) = study_file(&folder, &format!("{}{TWO_ARMS}", study_head(8, "1min")));
    let plan = weir(&["study", &file, "--baseline", shown(&old), "--dry-run"]);
    assert_eq!(plan.code, Some(0), "{}", plan.stderr);
    for told in ["old-poll  ", "(against old-poll)", "serve echo --driver poll --listen {address}"] {
        assert!(plan.stdout.contains(told), "no {told:?} in {}", plan.stdout);
    }

    let bound = ["--fail-if", "cpu ratio > 1000", "--long"];
    let builds = ["study", &file, "--baseline", shown(&old), "--out", shown(&out)];
    let said = weir(&[&builds[..], &bound].concat());
    assert!(matches!(said.code, Some(0 | 12)), "{:?} {}{}", said.code, said.stdout, said.stderr);
    let result = judged(shown(&out));
    let cpu = |arm: &str| {
        let of = |it: &&Effect| it.arm == arm && it.metric == Metric::ServerCpuPerMessage;
        result.effects.comparisons().find(of).unwrap_or_else(|| panic!("{:?}", result.effects))
    };
    assert_eq!((cpu("epoll").baseline.as_str(), cpu("poll").baseline.as_str()), ("old-epoll", "old-poll"));
    assert!(cpu("poll").notes.contains(&Finding::NoPlacebo), "{:?}", cpu("poll"));
    let asked: Vec<&str> = result.asked().map(|(asked, _)| asked.to[0].arm.as_str()).collect();
    assert_eq!(asked, ["old-epoll", "old-poll"]);
    assert_eq!(result.fingerprint.programs.len(), 2, "{:?}", result.fingerprint.programs);
    assert!(said.stdout.contains("poll / old-poll"), "{}", said.stdout);

    let out = folder.join("with-placebo");
    let said = weir(&[
        "study",
        &file,
        "--baseline",
        shown(&old),
        "--placebo",
        shown(&again),
        "--out",
        shown(&out),
        "--only-arms",
        "--arm",
        "poll",
    ]);
    assert!(matches!(said.code, Some(0 | 11 | 12)), "{:?} {}{}", said.code, said.stdout, said.stderr);
    let result = judged(shown(&out));
    assert_eq!(result.spec.arms.len(), 3);
    assert!(result.effects.comparisons().all(|it| !it.notes.contains(&Finding::NoPlacebo)), "{result:?}");
}

fn judged(out: &str) -> StudyResult {
    let data: serde_json::Value = serde_json::from_str(&weir(&["export", out]).stdout).expect("it is JSON");
    serde_json::from_value(data["result"].clone()).expect("the judged result")
}

const GATEWAYS: &str = r#"name = "tiny"
protocol = "orders"
blocks = 6
window = "100ms"
warmup_max = "100ms"
time_cap = "2min"
[factors]
load = ["tps"]
workers = [1]
[[arm]]
name = "epoll"
handoff = "owner"
driver = "epoll"
[[arm]]
name = "poll"
handoff = "owner"
driver = "poll"
"#;

#[test]
fn a_gateway_of_an_older_build_is_the_baseline_of_its_arm() {
    let folder = folder("study-baseline-gateway");
    let [old, older] = ["old-weir", "older"].map(|name| folder.join(name));
    copy_program(Path::new(WEIR), &old);
    let (file, out) = study_file(&folder, GATEWAYS);
    let plan = weir(&["study", &file, "--baseline", shown(&old), "--dry-run"]);
    assert_eq!(plan.code, Some(0), "{}", plan.stderr);
    for told in
        ["old-epoll  ", "(against old-poll)", shown(&old), "--handoff owner --route own --driver poll"]
    {
        assert!(plan.stdout.contains(told), "no {told:?} in {}", plan.stdout);
    }
    executable(
        &older,
        "#!/bin/sh\n[ \"$1\" = --version ] && echo weir 0.0.1 && exit 0\necho 'weir: unexpected --handoff' >&2; exit 2\n",
    );
    let refused = weir(&["study", &file, "--baseline", shown(&older), "--out", shown(&out)]);
    expect_refusal(&refused, 14, &["arm old-epoll", "unexpected --handoff"]);
    if std::env::var_os("WEIR_SLOW_TESTS").is_none() {
        println!("skipped: WEIR_SLOW_TESTS is not set");
        return;
    }
    let said = weir(&["study", &file, "--baseline", shown(&old), "--out", shown(&out)]);
    assert!(matches!(said.code, Some(0 | 11)), "{:?} {}{}", said.code, said.stdout, said.stderr);
    let result = judged(shown(&out));
    let cpu = |arm: &str| {
        let mut all = result.effects.comparisons();
        let found = all.find(|it| it.arm == arm && it.metric == Metric::ServerCpuPerMessage);
        found.unwrap_or_else(|| panic!("{:?}", result.effects))
    };
    assert_eq!((cpu("epoll").baseline.as_str(), cpu("poll").baseline.as_str()), ("old-epoll", "old-poll"));
    assert!(cpu("poll").notes.contains(&Finding::NoPlacebo), "{:?}", cpu("poll"));
    assert_eq!(result.fingerprint.programs.len(), 2, "{:?}", result.fingerprint.programs);
}

#[test]
fn a_baseline_that_is_none_is_told_before_anything_runs() {
    let folder = folder("study-baseline-none");
    let (file, out) = study_file(&folder, &format!("{}{TWO_ARMS}", study_head(8, "1min")));
    let with = |path: &Path| weir(&["study", &file, "--baseline", shown(path), "--out", shown(&out)]);
    let [none, text, other, older] = ["none", "text", "other", "older"].map(|name| folder.join(name));
    expect_refusal(&with(&none), 14, &["--baseline", "none", "give the path of an older weir"]);
    fs::write(&text, "not a program").expect("a file can be written");
    expect_refusal(&with(&text), 14, &["no program that may be run", "chmod +x"]);
    executable(&other, "#!/bin/sh\necho something 1.0\n");
    expect_refusal(&with(&other), 14, &["it is no weir", "something 1.0"]);
    executable(
        &older,
        "#!/bin/sh\n[ \"$1\" = --version ] && echo weir 0.0.1 && exit 0\necho 'weir: unexpected --workers' >&2; exit 2\n",
    );
    expect_refusal(&with(&older), 14, &["arm old-epoll", "unexpected --workers"]);
    assert!(!out.exists(), "nothing was measured");
    // A mistake of the file is not blamed on the baseline.
    let wrong = format!("{}{TWO_ARMS}options = {{ spam = 1 }}\n", study_head(8, "1min"));
    let (file, _) = study_file(&folder, &wrong);
    expect_refusal(&weir(&["study", &file, "--baseline", WEIR, "--out", shown(&out)]), 2, &["spam"]);
    expect_refusal(
        &weir(&["study", "polling", "--baseline", WEIR]),
        2,
        &["studies of echo, http and orders"],
    );
}
