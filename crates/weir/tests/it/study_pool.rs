//! `weir study pool` on stored runs: each form, the runs that are left out by name, every exit code and refusal; and
//! the position of a run among earlier ones.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rusqlite::Connection;
use weir_record::{
    run_pool::{LeftOut, PoolLack, RunPool},
    study::StudyResult,
    verdict::Verdict,
};

use super::{
    harness::{Folder, Said, TWO_ARMS, expect_refusal, folder, shown, study_head, weir},
    study_earlier::store_run,
};

/// The cost of poll in each run, in microseconds; epoll costs five.
const COSTS: [f64; 6] = [4.0, 4.05, 3.95, 4.1, 4.0, 3.98];

fn text() -> String {
    study_head(12, "2min") + TWO_ARMS
}

/// Runs of one study below a folder: `r1`, `r2` and so on.
fn stored(name: &str, costs: &[f64]) -> (Folder, Vec<PathBuf>) {
    let folder = folder(name);
    let runs: Vec<PathBuf> = (1..=costs.len()).map(|number| folder.join(format!("r{number}"))).collect();
    for (seed, (run, cost)) in (1..).zip(runs.iter().zip(costs)) {
        store_run(run, &text(), seed, *cost);
    }
    (folder, runs)
}

fn pool(words: &[&str]) -> Said {
    weir(&[&["study", "pool"], words].concat())
}

/// The output without line breaks.
fn flat(said: &Said) -> String {
    said.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn record(words: &[&str]) -> RunPool {
    let said = pool(&[words, &["--format", "json"]].concat());
    serde_json::from_str(&said.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", said.stdout, said.stderr))
}

#[test]
fn six_runs_are_pooled_in_four_forms_and_three_languages() {
    let (folder, runs) = stored("pool-six", &COSTS);
    let record = record(&[shown(&folder)]);
    assert_eq!((record.study.as_str(), record.runs.len(), record.groups.len()), ("tiny", 6, 1));
    let effect = &record.effects[record.primary.expect("it has one")];
    let found = &effect.all;
    assert_eq!((effect.verdict, found.runs, found.lacks), (Verdict::Better, 6, None));
    let figure = found.figure.expect("six runs");
    assert!((figure - 0.803).abs() < 0.01, "{effect:?}");
    assert!(found.between.is_some_and(|between| between > 0.002), "{effect:?}");
    let (low, high) = found.next_figure.expect("six runs");
    assert!(low < 0.79 && 0.82 < high, "{effect:?}");

    // A folder of runs equals its runs by their names, and a run that is named twice counts once.
    let mut named: Vec<&str> = runs.iter().map(|run| shown(run)).collect();
    named.push(shown(&runs[0]));
    let said = pool(&named);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stdout.contains("Study tiny: 6 of 6 runs"), "{}", said.stdout);
    assert!(flat(&said).contains("poll / epoll, 6 runs: 0.80"), "{}", said.stdout);
    for (language, title) in
        [("en", "Several runs, pooled"), ("ko", "여러 실행 종합"), ("zh", "多次运行合并")]
    {
        let of = |format: &str| pool(&[shown(&folder), "--format", format, "--lang", language]).stdout;
        assert!(of("text").starts_with(title), "{}", of("text"));
        assert!(of("markdown").starts_with(&format!("# {title}")), "{}", of("markdown"));
        let page = of("html");
        assert!(
            page.contains(title) && page.contains("diamond") && page.contains("<!DOCTYPE html>"),
            "{page}"
        );
    }
}

#[test]
fn few_runs_say_so_and_what_differs_is_left_out_by_name() {
    let (folder, runs) = stored("pool-few", &COSTS[..3]);
    let two = [shown(&runs[0]), shown(&runs[1])];
    assert_eq!(pool(&two).code, Some(11), "no pooled figure is no decision");
    let said = flat(&pool(&two));
    assert!(said.contains("(a pooled figure takes 3 runs)"), "{said}");
    let found = record(&[shown(&folder)]);
    assert_eq!(found.effects[0].all.lacks, Some(PoolLack::Next { runs_min: 5 }));

    // Another baseline, another cell, and a file that is no store.
    let other =
        text().replace("\"poll\"", "\"select\"").replace("\"epoll\"", "\"poll\"").replace("select", "epoll");
    store_run(&folder.join("r4"), &other, 4, 4.0);
    store_run(&folder.join("r5"), &text().replace("[4]", "[5]"), 5, 4.0);
    fs::create_dir(folder.join("r6")).expect("a folder can be made");
    fs::write(folder.join("r6/study.db"), "no store").expect("a file can be written");
    let said = pool(&[shown(&folder)]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stderr.contains("left out: ") && said.stderr.contains("r6"), "{}", said.stderr);
    let found = record(&[shown(&folder)]);
    let effect = &found.effects[found.primary.expect("most have one")];
    assert_eq!((effect.all.runs, effect.baseline.as_str()), (3, "epoll"));
    let places =
        |number: u32| found.runs.iter().find(|run| run.number == number).map(|run| run.place.clone());
    let left_out: Vec<(String, &LeftOut)> =
        effect.left_out.iter().map(|it| (places(it.run).expect("it is there"), &it.reason)).collect();
    let [(fourth, LeftOut::NotMeasured | LeftOut::OtherBaseline { .. }), (fifth, LeftOut::NoCell)] =
        &left_out[..]
    else {
        panic!("{left_out:?}")
    };
    assert!(fourth.ends_with("r4") && fifth.ends_with("r5"), "{left_out:?}");
}

#[test]
fn what_cannot_be_pooled_is_refused_with_the_way_out() {
    let (folder, runs) = stored("pool-refused", &COSTS[..2]);
    let nowhere = folder.join("nowhere");
    expect_refusal(&pool(&[shown(&nowhere)]), 2, &["nowhere", "name folders that `weir study` wrote"]);
    fs::create_dir(&nowhere).expect("a folder can be made");
    expect_refusal(&pool(&[shown(&nowhere)]), 2, &["nowhere", "holds no study"]);
    expect_refusal(
        &pool(&[shown(&runs[0])]),
        2,
        &["runs found: 1", "weir study tiny --repeat 5 --every 10min"],
    );
    expect_refusal(&pool(&[shown(&nowhere), "--lang", "ko"]), 2, &["실험이 없습니다"]);

    let other = text().replace("name = \"tiny\"", "name = \"small\"");
    store_run(&folder.join("r3"), &other, 3, 4.0);
    expect_refusal(&pool(&[shown(&folder)]), 2, &["several studies: small (1), tiny (2)", "--study NAME"]);
    assert_eq!(record(&[shown(&folder), "--study", "tiny"]).runs.len(), 2);
    expect_refusal(
        &pool(&[shown(&folder), "--study", "quick"]),
        2,
        &["runs found: 0", "weir study quick --repeat"],
    );
    fs::write(nowhere.join("study.db"), "no store").expect("a file can be written");
    expect_refusal(&pool(&[shown(&nowhere), shown(&runs[0])]), 2, &["not a study store"]);
    // Nothing in common: no figure is pooled, and no further run would change that.
    store_run(&folder.join("apart"), &text().replace("[4]", "[5]"), 9, 4.0);
    let apart = weir(&["study", "pool", shown(&runs[0]), shown(&folder.join("apart"))]);
    assert_eq!(apart.code, Some(11), "each has its own figure: {}", apart.stdout);
    assert_eq!(weir(&["study", "pool"]).code, Some(2));
}

/// Replaces a run's result by one with lists and no table of effects, as in version 2 of the records.
fn give_older_result(run: &Path) {
    const OLDER: &str = r#"{"schema_version":2,"primary":0,"verdict":"better","comparisons":[],"missing_arms":[],
        "complete":true}"#;
    let store = Connection::open(run.join("study.db")).expect("the store can be opened");
    store.execute("UPDATE result SET result = ?1", [OLDER]).expect("it can be written");
    store.execute_batch("DROP TABLE effect; PRAGMA user_version = 3").expect("as that version had it");
}

fn exported(run: &Path) -> StudyResult {
    let said = weir(&["export", shown(run)]);
    let data: serde_json::Value = serde_json::from_str(&said.stdout).expect("it is JSON");
    serde_json::from_value(data["result"].clone()).expect("the judged result")
}

#[test]
fn a_run_says_when_it_was_and_where_it_stands_among_those_beside_it() {
    let (folder, runs) = stored("pool-among", &COSTS[..1]);
    let alone = weir(&["report", shown(&runs[0]), "--long"]);
    assert_eq!(alone.code, Some(0), "{}", alone.stderr);
    assert!(
        flat(&alone).contains("It describes 20") && flat(&alone).contains(" UTC on this machine."),
        "{}",
        flat(&alone)
    );
    assert!(!flat(&alone).contains("earlier runs"), "{}", flat(&alone));
    for (seed, cost) in (2..).zip(&COSTS[1..]) {
        store_run(&folder.join(format!("r{seed}")), &text(), seed, *cost);
    }
    let last = folder.join("r6");
    let said = weir(&["report", shown(&last), "--long"]);
    let shown_text = flat(&said);
    assert!(
        shown_text.contains("poll / epoll, this run: 0.79")
            || shown_text.contains("poll / epoll, this run: 0.80"),
        "{shown_text}"
    );
    assert!(
        shown_text.contains("earlier runs on this machine (5)")
            && shown_text.contains("predicted range for the next run"),
        "{shown_text}"
    );
    let page = fs::read_to_string(last.join("report.html")).expect("the page was written");
    assert!(page.contains("predicted range for the next run"), "{page}");
    let result = exported(&last);
    let among = result.among_runs.expect("five others");
    assert_eq!((among.earlier.runs, among.is_outside()), (5, Some(false)));
    // An earlier version, with other records, judged one of them.
    give_older_result(&folder.join("r3"));
    assert_eq!(exported(&last).among_runs.expect("five others"), among);
    assert_eq!(record(&[shown(&folder)]).runs.len(), 6);
    let report = weir(&["report", shown(&folder.join("r3"))]);
    assert_eq!(report.code, Some(0), "{}", report.stderr);
    let compared = weir(&["study", "diff", shown(&folder.join("r3")), shown(&last)]);
    assert_eq!(compared.code, Some(0), "{}{}", compared.stdout, compared.stderr);
    assert_eq!(result.period.map(|period| period.sessions), Some(1));
    // Another study beside them is not one of them.
    let other = text().replace("name = \"tiny\"", "name = \"small\"");
    store_run(&folder.join("small"), &other, 8, 4.0);
    assert_eq!(exported(&folder.join("small")).among_runs, None);
}
