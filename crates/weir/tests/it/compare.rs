//! `weir compare` with real commands: its output, its exit codes, its files, and the leftovers of an interruption.

use std::{fs, path::Path, process::Command};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use weir_record::commands::{CommandEnd, CommandFinding, CommandReport, RunPhase};

use super::harness::{PATIENCE, Running, Said, WEIR, expect_refusal, folder, shell, shown, weir};

/// A loop of a shell, which costs CPU time in proportion to its length.
fn spin(turns: u32) -> String {
    format!("sh -c 'i=0; while [ $i -lt {turns} ]; do i=$((i+1)); done'")
}

fn compared(words: &[&str]) -> Said {
    weir(&[&["compare", "--lang", "en"], words].concat())
}

fn report(text: &str) -> CommandReport {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_command_that_works_twice_as_much_costs_more_and_fails_a_threshold() {
    let folder = folder("compare-twice");
    let [json, markdown, csv] = ["all.json", "comment.md", "runs.csv"].map(|name| folder.join(name));
    let (old, new) = (spin(20_000), spin(40_000));
    let words = [
        "--runs",
        "8",
        "--seed",
        "7",
        "-n",
        "old",
        "-n",
        "new",
        "--fail-if",
        "cpu ratio > 1.03",
        "--fail-if",
        "memory > 1GiB",
        "--export-json",
        shown(&json),
        "--export-markdown",
        shown(&markdown),
        "--export-csv",
        shown(&csv),
        &old,
        &new,
    ];
    let said = compared(&words);
    assert_eq!(said.code, Some(10), "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.starts_with("costs more: new uses "), "{}", said.stdout);
    assert!(said.stdout.lines().count() <= 24, "{}", said.stdout);
    assert!(said.stdout.contains("threshold 'cpu ratio > 1.03' (new): fails, ratio "), "{}", said.stdout);
    assert!(said.stderr.contains("8 pairs, as asked"), "{}", said.stderr);
    let comment = fs::read_to_string(&markdown).expect("it was written");
    assert!(comment.starts_with("costs more: new uses ") && comment.lines().count() <= 15, "{comment}");
    let report = report(&fs::read_to_string(&json).expect("it was written"));
    let comparison = &report.comparisons[0];
    assert_eq!((comparison.ended, comparison.pairs_done, report.seed), (CommandEnd::Complete, 8, 7));
    let measured = comparison.runs.iter().filter(|run| run.phase == RunPhase::Measured).count();
    assert_eq!(measured, 24);
    let rows = fs::read_to_string(&csv).expect("it was written").lines().count();
    assert_eq!(rows, 1 + comparison.runs.len());
    assert!(report.reproduce.starts_with("weir compare") && report.reproduce.contains("--seed 7"));
}

#[test]
fn without_a_threshold_a_verdict_is_success_and_passing_thresholds_are_too() {
    let (old, new) = (spin(40_000), spin(20_000));
    let said = compared(&["--runs", "8", &old, &new]);
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.starts_with("costs less: "), "{}", said.stdout);
    let said = compared(&["--runs", "8", "--fail-if", "cpu ratio > 1.03", &old, &new]);
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
}

#[test]
fn another_output_is_told_first_and_is_compared_only_without_it() {
    let said = compared(&["--runs", "6", "echo one", "echo two and more"]);
    assert_eq!(said.code, Some(12), "{}{}", said.stdout, said.stderr);
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert!(
        lines[0].starts_with("not comparable: ") && lines[1].starts_with("different output: "),
        "{}",
        said.stdout
    );
    let said_at_once = said.stderr.find("different output: ").expect("it is said while it runs");
    assert!(said.stderr.find("6 pairs").is_some_and(|plan| said_at_once < plan), "{}", said.stderr);
    assert!(lines[1].contains("13 against 4 bytes") && lines[1].contains("--output null"), "{}", said.stdout);
    let place = "in 7 of 7 runs echo two and more wrote other bytes to standard output than echo one (13 against 4 \
                 bytes), first at byte 1, line 1: \"two and more\\n\" against \"one\\n\"";
    assert!(lines[1].contains(place), "{}", said.stdout);
    let said = compared(&["--runs", "6", "--output", "null", "echo one", "echo two and more"]);
    assert!(!said.stdout.contains("different output"), "{}", said.stdout);
    assert!(matches!(said.code, Some(0 | 11)), "{}{}", said.stdout, said.stderr);
}

#[test]
fn the_first_difference_of_a_long_output_has_its_place() {
    let command = |last: &str| format!("sh -c 'yes | head -c 700000; printf {last}'");
    let said =
        compared(&["--runs", "6", "--export-json", "-", &command("to-the-left"), &command("to-the-right")]);
    let findings = report(&said.stdout).comparisons.remove(0).findings;
    let first = findings.iter().find_map(|it| match it {
        CommandFinding::OutputDiffers { first, .. } => first.as_deref(),
        _ => None,
    });
    let first = first.expect("they differ");
    assert_eq!((first.offset_bytes, first.line), (700_007, 350_001));
    assert_eq!(first.excerpts, ("to-the-right".to_owned(), "to-the-left".to_owned()));
}

#[test]
fn a_command_that_fails_or_is_missing_is_named_and_decides_the_code() {
    for (words, code, told) in [
        (["true", "/no/such/program x"], 13, "there is no program /no/such/program"),
        (["/no/such/program x", "true"], 14, "there is no program /no/such/program"),
        (["true", "sh -c 'echo broken >&2; exit 3'"], 12, "exit status 3"),
        (["false", "true"], 14, "--ignore-failure"),
    ] {
        let said = compared(&[&["--runs", "6"], &words[..]].concat());
        assert_eq!(said.code, Some(code), "{words:?}: {}{}", said.stdout, said.stderr);
        assert!(said.stdout.starts_with("not comparable: ") && said.stdout.contains(told), "{}", said.stdout);
    }
    let said = compared(&["--runs", "6", "-i", "false", "sh -c 'exit 1'"]);
    assert!(!said.stdout.contains("failed"), "{}", said.stdout);
}

#[test]
fn a_command_without_an_end_is_ended_and_named() {
    let said = compared(&["--limit", "5s", "true", "sh -c 'sleep 1000 & sleep 1000'"]);
    assert_eq!(said.code, Some(12), "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.contains("no end within 5") && said.stdout.contains("--limit"), "{}", said.stdout);
}

#[test]
fn processes_that_a_command_leaves_are_ended_and_named() {
    let said = compared(&["--runs", "6", "true", "sh -c 'sleep 1000 >/dev/null 2>&1 &'"]);
    // An early look finds the shell that is about to become it.
    let named = ["sleep", "sh", "sh, sleep", "sleep, sh"];
    let is_told = |names| said.stdout.contains(&format!("left up to 1 processes behind in 7 runs ({names})"));
    assert!(named.into_iter().any(is_told), "{}{}", said.stdout, said.stderr);
}

#[test]
fn input_folder_and_variables_reach_every_run() {
    let folder = folder("compare-around");
    fs::write(folder.join("numbers"), "3\n1\n2\n").expect("a file can be written");
    let input = folder.join("numbers");
    let words = [
        "--runs",
        "6",
        "--input",
        shown(&input),
        "--dir",
        shown(&folder),
        "--env",
        "WHAT=here",
        "--setup",
        "touch set-up",
        "--prepare",
        "touch prepared",
        "--conclude",
        "rm prepared",
        "--cleanup",
        "touch cleaned",
        "--export-json",
        "-",
        "sh -c 'test \"$WHAT\" = here && test -e prepared && cat numbers - | sort'",
        "sh -c 'test -e set-up && sort numbers -'",
    ];
    let said = compared(&words);
    let report = report(&said.stdout);
    assert_eq!(report.comparisons[0].ended, CommandEnd::Complete, "{}", said.stderr);
    let is_wrong = |it: &CommandFinding| {
        matches!(it, CommandFinding::OutputDiffers { .. } | CommandFinding::Failed { .. })
    };
    assert!(!report.comparisons[0].findings.iter().any(is_wrong), "{}", said.stderr);
    assert!(folder.join("cleaned").exists() && !folder.join("prepared").exists());
    assert!(
        said.stderr.contains("CPU from"),
        "the screen leaves standard output to the export: {}",
        said.stderr
    );
    let document: Value = serde_json::from_str(&said.stdout).expect("it is JSON");
    assert_eq!(document["settings"]["environment"][0], "WHAT=here");
}

#[test]
fn who_interrupts_keeps_what_was_measured_and_nothing_runs_on() {
    let folder = folder("compare-interrupt");
    let json = folder.join("all.json");
    let (command, other) = (spin(10_000), spin(10_001));
    let words =
        ["compare", "--lang", "en", "--runs", "10000", "--export-json", shown(&json), &command, &other];
    let mut running = Running::weir(&words);
    let planned = running.next_error_line().expect("it says what it will do");
    assert!(planned.starts_with("10000 pairs"), "{planned}");
    running.signal(Signal::INT);
    assert_eq!(running.wait(PATIENCE), 130);
    let report = report(&fs::read_to_string(&json).expect("it was written"));
    let comparison = &report.comparisons[0];
    assert_eq!(comparison.ended, CommandEnd::Interrupted);
    assert!(comparison.runs.len() >= 3 && comparison.pairs_done < 10_000, "{}", comparison.runs.len());
    let is_cut = |it: &CommandFinding| matches!(it, CommandFinding::CutShort { is_interrupted: true, .. });
    assert!(comparison.findings.iter().any(is_cut), "{:?}", comparison.findings);
}

/// A user who can make no control group.
const NOBODY: [&str; 6] = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];

#[test]
fn nothing_runs_on_below_a_launcher_that_is_killed_although_there_is_no_control_group() {
    let as_nobody = || {
        let mut command = Command::new(NOBODY[0]);
        command.args(&NOBODY[1..]).arg(WEIR);
        command
    };
    if !as_nobody().arg("--version").output().is_ok_and(|said| said.status.success()) {
        println!("skipped: weir cannot be another user's here");
        return;
    }
    let folder = folder("compare-launcher");
    let fifo = folder.join("fifo");
    let made = Command::new("mkfifo").args(["-m", "666", shown(&fifo)]).status();
    assert!(made.expect("coreutils are everywhere").success());
    let grandchild =
        format!("sh -c 'sh -c \"echo \\$\\$ > {}; exec tail -f /dev/null\" & wait'", fifo.display());
    let words = ["compare", "--lang", "en", "--runs", "6", "true", &grandchild];
    let mut running = Running::start(as_nobody().args(words));
    let process: u32 =
        fs::read_to_string(&fifo).expect("the run writes it").trim().parse().expect("a number");
    let weir = running.pid().as_raw_nonzero().get().unsigned_abs();
    let family = weir_evidence::process::family_of(weir).expect("the system lists processes");
    assert!(family.contains(&process), "{family:?}");
    let launcher = Pid::from_raw(family[1].cast_signed()).expect("not zero");
    kill_process(launcher, Signal::KILL).expect("it is ours");
    assert_eq!(running.wait(PATIENCE), 1);
    assert!(!Path::new(&format!("/proc/{process}")).exists(), "{process} runs on");
}

#[test]
fn an_export_that_cannot_be_written_keeps_neither_the_others_nor_the_screen_back() {
    let folder = folder("compare-exports");
    let gone = folder.join("gone");
    fs::create_dir(&gone).expect("it can be made");
    let (json, csv) = (gone.join("all.json"), folder.join("runs.csv"));
    let cleanup = format!("rm -rf {}", gone.display());
    let words = ["--runs", "6", "--cleanup", &cleanup, "--export-json", shown(&json), "--export-csv"];
    let said = compared(&[&words[..], &[shown(&csv), "true", "true"]].concat());
    assert_eq!(said.code, Some(1), "{}{}", said.stdout, said.stderr);
    assert!(said.stderr.contains(shown(&json)), "{}", said.stderr);
    assert!(said.stdout.contains("CPU from"), "{}", said.stdout);
    assert!(csv.exists());
}

#[test]
fn mistakes_on_the_command_line_are_refused_before_anything_runs() {
    for (words, there) in [
        (vec!["a"], "one command alone"),
        (vec!["a", "b", "--fail-if", "speed > 3"], "there is no metric"),
        (vec!["true", "true", "--runs", "6", "--dir", "/no/such/folder"], "/no/such/folder"),
        (vec!["true", "true", "--runs", "6", "--input", "/no/such/file"], "/no/such/file"),
        (vec!["true", "true", "--export-json", "/no/dir/x.json"], "the folder /no/dir does not exist"),
        (vec!["true", "true", "-S", "no-such-shell"], "--shell: there is no program no-such-shell"),
        (vec!["true | true", "true"], "add -S sh"),
        (vec!["A=1 true", "true"], "write `env A=1 true`"),
    ] {
        expect_refusal(&weir(&[&["compare", "--lang", "en"], &words[..]].concat()), 2, &[there]);
    }
}

#[test]
fn standard_input_that_no_command_gets_is_said_once() {
    let folder = folder("compare-stdin");
    fs::write(folder.join("words"), "b\na\n").expect("a file can be written");
    let file = folder.join("words");
    let line = |rest: &str| format!("\"$WEIR\" compare --lang en --runs 6 cat cat {rest}");
    let said = shell(&line(&format!("< {}", shown(&file))));
    assert_eq!(said.stderr.matches("standard input is not passed on").count(), 1, "{}", said.stderr);
    assert!(said.stderr.contains("--input FILE"), "{}", said.stderr);
    for rest in ["< /dev/null".to_owned(), format!("--input {0} < {0}", shown(&file))] {
        let said = shell(&line(&rest));
        assert!(!said.stderr.contains("not passed on"), "{}", said.stderr);
    }
}

#[test]
fn the_published_schema_is_that_of_the_types() {
    let said = weir(&["compare", "--schema"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/compare.schema.json");
    let text = fs::read_to_string(published).expect("it is in the tree");
    assert!(
        said.stdout == text,
        "the record has changed: weir compare --schema > docs/formats/compare.schema.json"
    );
}

#[test]
fn system_calls_that_differ_are_told_by_kind() {
    if has_no_strace() {
        println!("skipped: there is no strace here");
        return;
    }
    let said =
        compared(&["--runs", "6", "--export-json", "-", "sh -c 'pwd >/dev/null'", "sh -c 'pwd; pwd' "]);
    let comparison = report(&said.stdout).comparisons.remove(0);
    let Some(calls) = comparison.system_calls else {
        println!("skipped: strace cannot trace here");
        return;
    };
    let writes = calls.kinds.iter().find(|kind| kind.name == "write").expect("both write");
    assert_eq!(writes.counts[0].0 + 1, writes.counts[1].0, "{calls:?}");
}

fn has_no_strace() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    !std::env::split_paths(&path).any(|folder| folder.join("strace").exists())
}

#[test]
fn children_that_weir_had_before_it_began_are_left_alone() {
    // A shell that is replaced by weir leaves it its own.
    let line = format!(
        "tail -f /dev/null >/dev/null 2>&1 & echo $!; exec {WEIR} compare --lang en --runs 6 true true 2>/dev/null"
    );
    let said = shell(&line);
    let earlier: i32 = said.stdout.lines().next().expect("its number").parse().expect("a number");
    let earlier = Pid::from_raw(earlier).expect("no process has number 0");
    // Fails for one that has ended, in whichever process it was reaped.
    kill_process(earlier, Signal::KILL).expect("it lives");
    assert!(said.stdout.contains("true"), "{}{}", said.stdout, said.stderr);
}
