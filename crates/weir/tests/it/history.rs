//! `weir history` over comparisons and a study that ran: their stored files, and its output.

use std::{fs, path::Path, process::Command};

use weir_record::{
    history::{History, HistoryBreak, HistoryQuestion},
    origin::OriginSource,
};

use super::harness::{Said, TWO_ARMS, WEIR, expect_refusal, folder, shown, study_file, study_head, weir};

/// A script that costs CPU time in proportion to a number.
fn script(folder: &Path, name: &str, turns: u32) {
    let text = format!("i=0; while [ $i -lt {turns} ]; do i=$((i+1)); done\n");
    fs::write(folder.join(name), text).expect("a file can be written");
}

/// Compares the two scripts of a folder, and stores the result.
fn compared(work: &Path, out: &Path, further: &[&str]) -> Said {
    let words =
        ["compare", "--lang", "en", "--runs", "6", "-n", "old", "-n", "new", "--dir", shown(work), "--out"];
    weir(&[&words[..], &[shown(out)], further, &["sh old.sh", "sh new.sh"]].concat())
}

fn history(words: &[&str]) -> History {
    let said = weir(&[&["history"], words, &["--format", "json"]].concat());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {}", said.stdout))
}

#[test]
fn comparisons_of_several_commits_stand_one_after_the_other() {
    let (work, out) = (folder("history-work"), folder("history-out").join("made"));
    script(&work, "old.sh", 3_000);
    script(&work, "new.sh", 3_001);
    let said = compared(&work, &out, &["--commit", "aaa", "--branch", "main", "--label", "host=ci"]);
    assert!(matches!(said.code, Some(0 | 11)), "{:?} {}", said.code, said.stderr);
    assert!(said.stderr.contains("stored in ") && said.stderr.contains("compare-"), "{}", said.stderr);
    script(&work, "new.sh", 9_000);
    compared(&work, &out, &["--commit", "bbb-dirty", "--branch", "main", "--note", "twice three"]);
    // The next comparison is against the last build, and the last one against another program.
    fs::copy(work.join("new.sh"), work.join("old.sh")).expect("it can be copied");
    script(&work, "new.sh", 3_002);
    compared(&work, &out, &["--commit", "ccc", "--branch", "topic"]);
    script(&work, "old.sh", 3_003);
    compared(&work, &out, &["--commit", "ddd", "--branch", "main"]);
    assert_eq!(fs::read_dir(&out).expect("it was made").count(), 4, "a file for each, and nothing else");

    let found = history(&[shown(&out)]);
    let [series] = &found.series[..] else { panic!("one question: {found:?}") };
    let commits: Vec<&str> = series.runs.iter().filter_map(|run| run.origin.commit.as_deref()).collect();
    assert_eq!(commits, ["aaa", "bbb", "ccc", "ddd"]);
    assert_eq!(series.of, HistoryQuestion::Commands { parameters: Vec::new() });
    let links: Vec<(u32, u32)> = series.runs.iter().map(|run| (run.stretch, run.links)).collect();
    assert_eq!(links, [(1, 1), (1, 1), (1, 2), (2, 1)]);
    assert_eq!(series.stretches[1].break_by, Some(HistoryBreak::Reference));
    assert_eq!(series.runs[0].origin.commit_source, Some(OriginSource::Flag));
    assert_eq!((series.runs[0].origin.is_dirty, series.runs[1].origin.is_dirty), (None, Some(true)));

    let text = weir(&["history", shown(&out), "--lang", "en"]).stdout;
    for words in
        ["CPU time per run, new / old", "aaa", "bbb+", "twice three", "host=ci", "×2", "The series breaks"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let markdown = weir(&["history", shown(&out), "--lang", "ko", "--format", "markdown"]).stdout;
    assert!(markdown.contains("| 날짜(UTC) | 커밋 |") && markdown.contains("| aaa |"), "{markdown}");
    assert_eq!(weir(&["history", shown(&out), "--format", "csv"]).stdout.lines().count(), 5);

    let kept = |words: &[&str]| -> usize {
        history(&[&[shown(&out)], words].concat()).series.iter().map(|it| it.runs.len()).sum()
    };
    assert_eq!(kept(&["--branch", "topic"]), 1);
    assert_eq!(kept(&["--label", "host=ci"]), 1);
    assert_eq!(kept(&["--limit", "2"]), 2);
    assert_eq!(kept(&["--study", "new"]), 4);
    assert_eq!(kept(&["--study", "other"]), 0);
    assert_eq!(kept(&["--metric", "time"]), 4);
    assert_eq!(kept(&["--metric", "p99"]), 0);
    let nothing = weir(&["history", shown(&out), "--branch", "none"]);
    expect_refusal(&nothing, 2, &["none of 4 runs"]);
}

#[test]
fn a_study_stores_what_it_is_of_and_stands_beside_comparisons() {
    let results = folder("history-study");
    let (file, out) = study_file(&results, &format!("{}{TWO_ARMS}", study_head(12, "2min")));
    let flags = ["--commit", "eee", "--branch", "main", "--label", "a=b", "--note", "as it is"];
    let said = weir(&[&["study", &file, "--out", shown(&out)], &flags[..]].concat());
    assert!(matches!(said.code, Some(0 | 11 | 12)), "{:?} {}{}", said.code, said.stdout, said.stderr);
    let found = history(&[shown(&out)]);
    let run = &found.series[0].runs[0];
    assert_eq!(run.origin.commit.as_deref(), Some("eee"));
    assert_eq!(run.origin.labels.get("a").map(String::as_str), Some("b"));
    assert_eq!(run.origin.note.as_deref(), Some("as it is"));
    assert!(run.began_unix_s.is_some() && run.program.name == "weir", "{run:?}");
    let exported = weir(&["export", shown(&out)]).stdout;
    assert!(exported.contains("\"commit\":\"eee\"") || exported.contains("\"commit\": \"eee\""));
    let again = weir(&["study", "--resume", shown(&out), "--commit", "fff"]);
    expect_refusal(&again, 2, &["--commit", "when a study begins"]);
}

#[test]
fn commit_and_branch_are_those_of_the_folder_and_of_the_environment_before() {
    let work = folder("history-git");
    script(&work, "old.sh", 1_000);
    script(&work, "new.sh", 1_000);
    let (git, hash) = (work.join(".git"), "0123456789abcdef0123456789abcdef01234567");
    fs::create_dir_all(git.join("refs/heads")).expect("a folder can be made");
    fs::write(git.join("HEAD"), "ref: refs/heads/topic\n").expect("a file can be written");
    fs::write(git.join("refs/heads/topic"), format!("{hash}\n")).expect("a file can be written");
    let out = work.join("out");
    let compare = |set: &[(&str, &str)]| {
        let mut command = Command::new(WEIR);
        command.args(["compare", "--runs", "6", "--dir", shown(&work), "--out", shown(&out)]);
        command.args(["-n", "old", "-n", "new", "sh old.sh", "sh new.sh"]);
        let unset = ["GITHUB_SHA", "GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_SHA", "CI_COMMIT_BRANCH"];
        unset.iter().chain(&["CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "GITHUB_REF_TYPE"]).for_each(|name| {
            command.env_remove(name);
        });
        let ran = command.envs(set.iter().copied()).output().expect("it can be started");
        assert!(ran.status.code().is_some_and(|code| [0, 11].contains(&code)), "{ran:?}");
    };
    compare(&[]);
    compare(&[("GITHUB_SHA", "feed"), ("GITHUB_REF_NAME", "of-ci")]);
    let found = history(&[shown(&out)]);
    let origins: Vec<_> = found.series[0].runs.iter().map(|run| &run.origin).collect();
    assert_eq!((origins[0].commit.as_deref(), origins[0].branch.as_deref()), (Some(hash), Some("topic")));
    assert_eq!(origins[0].commit_source, Some(OriginSource::Git));
    assert_eq!((origins[1].commit.as_deref(), origins[1].branch.as_deref()), (Some("feed"), Some("of-ci")));
    assert_eq!(origins[1].branch_source, Some(OriginSource::Environment));
}

#[test]
fn what_has_no_history_is_refused_with_the_way_to_one() {
    let empty = folder("history-empty");
    expect_refusal(&weir(&["history", shown(&empty)]), 2, &["no finished run", "weir compare OLD NEW --out"]);
    expect_refusal(&weir(&["history", shown(&empty.join("nowhere"))]), 2, &["nowhere", "weir compare --out"]);
    expect_refusal(&weir(&["history", shown(&empty), "--metric", "speed"]), 2, &["--metric", "no metric"]);
    expect_refusal(&weir(&["history", shown(&empty), "--label", "x"]), 2, &["--label", "KEY=VALUE"]);
    let file = empty.join("file");
    fs::write(&file, "").expect("a file can be written");
    let below = file.join("below");
    let refused = weir(&["compare", "--out", shown(&below), "true", "true"]);
    expect_refusal(&refused, 1, &["--out", "choose another folder"]);
    let label = weir(&["compare", "--out", shown(&empty), "--label", "x", "true", "true"]);
    expect_refusal(&label, 2, &["--label", "KEY=VALUE"]);
}
