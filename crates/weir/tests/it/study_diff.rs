//! `weir study diff` on stored runs: its output, and every exit code that a script may meet.

use std::fs;

use super::harness::{TWO_ARMS, expect_refusal, folder, shown, study_file, study_head, weir};

#[test]
fn a_run_is_held_against_another_in_three_forms_and_each_way_to_fail_has_its_code() {
    let folder = folder("study-diff");
    let text = format!("{}{TWO_ARMS}", study_head(12, "2min"));
    let (file, out) = study_file(&folder, &text);
    let said = weir(&["study", &file, "--out", shown(&out)]);
    assert!(matches!(said.code, Some(0 | 11 | 12)), "{:?} {}{}", said.code, said.stdout, said.stderr);
    let run = shown(&out);

    // A run compared with itself has no changes, whatever the machine does meanwhile.
    let compared = weir(&["study", "diff", run, run]);
    assert!(matches!(compared.code, Some(0 | 12)), "{:?} {}", compared.code, compared.stderr);
    let text = &compared.stdout;
    assert!(text.contains("Two runs side by side") && text.contains("poll / epoll"), "{text}");
    assert!(!text.contains("What differs on the machine"), "{text}");
    let markdown = weir(&["study", "diff", run, run, "--format", "markdown", "--lang", "ko"]).stdout;
    assert!(markdown.starts_with("# 두 실행 비교") && markdown.contains("| poll / epoll |"), "{markdown}");
    let json = weir(&["study", "diff", run, run, "--format", "json"]).stdout;
    let pair: weir_record::run_pair::RunPair = serde_json::from_str(&json).expect("it is the record");
    let change = &pair.changes[0];
    assert!(change.figure.is_none_or(|figure| (figure - 1.0).abs() < 1e-9), "{change:?}");
    assert!(pair.machine.is_empty() && pair.asked.is_empty(), "{pair:?}");

    if change.figure.is_some() {
        let with = |line: &str| weir(&["study", "diff", run, run, "--fail-if", line]).code;
        assert_eq!(with("server-cpu-per-message ratio > 1000"), Some(0));
        assert_eq!(with("server-cpu-per-message ratio > 0.001"), Some(10));
        let open = ["study", "diff", run, run, "--fail-if", "server-cpu-per-message ratio > 1"];
        assert_eq!(weir(&open).code, Some(11));
        assert_eq!(weir(&[&open[..], &["--inconclusive-passes"]].concat()).code, Some(0));
    }
    let absolute = weir(&["study", "diff", run, run, "--fail-if", "server-cpu-per-message > 3us"]);
    expect_refusal(&absolute, 2, &["absolute figures", "ratio > NUMBER"]);
    let unknown = weir(&["study", "diff", run, run, "--fail-if", "p98 ratio > 2", "--lang", "ko"]);
    expect_refusal(&unknown, 2, &["--fail-if \"p98 ratio > 2\"", "알 수 없는 지표"]);

    let nowhere = folder.join("nowhere");
    expect_refusal(&weir(&["study", "diff", shown(&nowhere), run]), 14, &["no baseline", "nowhere"]);
    expect_refusal(&weir(&["study", "diff", run, shown(&nowhere)]), 2, &["nowhere"]);
    fs::create_dir(&nowhere).expect("a folder can be made");
    fs::write(nowhere.join("study.db"), "no store").expect("a file can be written");
    expect_refusal(&weir(&["study", "diff", shown(&nowhere), run]), 14, &["not a study store"]);
}

#[test]
fn the_old_name_is_refused_with_the_new_one() {
    for words in
        [&["study", "compare", "a", "b"][..], &["study", "compare"], &["study", "compare", "--lang", "ko"]]
    {
        let said = weir(words);
        assert_eq!(said.code, Some(2), "{words:?}: {}", said.stderr);
        assert!(said.stderr.contains("weir study diff"), "{words:?}: {}", said.stderr);
    }
}
