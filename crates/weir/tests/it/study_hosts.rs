//! `weir study FILE --hosts FILE`: one study on each machine of a list. The hosts are this machine, reached by `env`,
//! each with another cache folder, so that each has its own agent.

use std::{fs, path::Path};

use rustix::process::{Pid, Signal, kill_process};
use weir_store::Store;

use super::harness::{
    PATIENCE, Running, TWO_ARMS, expect_refusal, folder, shown, study_file, study_head, until, weir,
};

/// The line of a pretended host.
fn line(folder: &Path, name: &str) -> String {
    format!("{name} rsh=\"env XDG_CACHE_HOME={}\"\n", shown(&folder.join(name)))
}

/// Writes a list of hosts, and returns its path.
fn list(folder: &Path, text: &str) -> String {
    let file = folder.join("hosts");
    fs::write(&file, text).expect("a file can be written");
    shown(&file).to_owned()
}

/// Kills the agent of a pretended host.
fn kill_agent(folder: &Path, name: &str) {
    let lock = fs::read_to_string(folder.join(name).join("weir/lock")).expect("an agent works");
    let pid = lock.split_whitespace().last().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
    kill_process(pid.expect("a process"), Signal::KILL).expect("it runs");
}

/// Waits until no process runs a program of this folder.
fn expect_nothing_runs(folder: &Path) {
    let is_below =
        |pid: &Path| fs::read_link(pid.join("exe")).is_ok_and(|program| program.starts_with(folder));
    until("the end of all processes", || {
        let all = fs::read_dir("/proc").expect("it is there").flatten();
        all.map(|entry| entry.path()).all(|pid| !is_below(&pid))
    });
}

fn blocks(run: &Path) -> usize {
    Store::open_read_only(run).and_then(|store| store.blocks()).map_or(0, |blocks| blocks.len())
}

#[test]
fn each_host_gives_a_run_and_lost_ones_are_named_while_the_others_go_on() {
    let folder = folder("hosts");
    let (file, out) = study_file(&folder, &(study_head(6, "1min") + TWO_ARMS));
    let gone = "gone rsh=\"sh -c 'echo no route >&2; exit 255'\" # it has no route\n";
    let text = ["a", "b", "cut"].map(|name| line(&folder, name)).concat() + gone;
    let hosts = list(&folder, &text);
    let words = ["study", &file, "--hosts", &hosts, "--out", shown(&out), "--seed", "7", "--at-once", "4"];
    let mut study = Running::weir(&words);
    study.error_line_with("cut:     0 s");
    kill_agent(&folder, "cut");
    assert_eq!(study.wait(4 * PATIENCE), 13);
    let errors = study.rest_of_errors();
    for told in [
        "hosts with a result: 2 of 4; without:",
        "\n  cut: the way to it was killed by signal 9",
        "\n  gone: the way to it exited with status 255: no route",
    ] {
        assert!(errors.contains(told), "{told}: {errors}");
    }
    assert!(!errors.contains(".cache") && !errors.contains("run-"), "no path of another host: {errors}");
    let said: Vec<String> = std::iter::from_fn(|| study.next_line()).collect();
    assert!(said.iter().any(|line| line.starts_with("Several runs, pooled")), "{said:?}");
    for (name, seed) in [("a", 7), ("b", 8)] {
        let run = out.join(name);
        assert!(run.join("report.html").exists() && blocks(&run) >= 6);
        let header = Store::open_read_only(&run).and_then(|store| store.study()).expect("a store");
        assert_eq!((header.spec.name.as_str(), header.spec.seed), ("tiny", seed));
        assert_eq!(header.reproduce, format!("weir study {file} --seed {seed}"));
    }
    assert!(!out.join("cut").exists() && !out.join("gone").exists());
    assert!(fs::read_to_string(out.join("pool.html")).is_ok_and(|page| page.contains("<!DOCTYPE html>")));
    expect_nothing_runs(&folder);
    let left = |name: &str| fs::read_dir(folder.join(name).join("weir")).expect("its cache").count();
    assert_eq!([left("a"), left("b")], [2, 2], "the program and the lock");
    expect_refusal(&weir(&words), 2, &["is there already", "leave --out out", "weir study pool DIR DIR"]);
}

#[test]
fn an_interrupt_ends_all_sides_and_keeps_what_was_measured() {
    let folder = folder("hosts-interrupt");
    let (file, out) = study_file(&folder, &(study_head(40, "1min") + TWO_ARMS));
    let hosts = list(&folder, &["a", "b"].map(|name| line(&folder, name)).concat());
    let words = ["study", &file, "--hosts", &hosts, "--out", shown(&out), "--at-once", "1"];
    let mut study = Running::weir(&words);
    study.error_line_with("blocks: c4-");
    study.signal(Signal::INT);
    assert_eq!(study.wait(PATIENCE), 130);
    let errors = study.rest_of_errors();
    assert!(errors.contains("hosts with a result: 1 of 2; without:\n  b: it was not begun"), "{errors}");
    assert!((1..40).contains(&blocks(&out.join("a"))), "{errors}");
    assert!(!folder.join("b").exists(), "nobody asked it");
    expect_nothing_runs(&folder);
}

#[test]
fn a_list_that_is_wrong_is_refused_before_any_host_is_asked() {
    let folder = folder("hosts-refused");
    let (file, out) = study_file(&folder, &(study_head(6, "10min") + TWO_ARMS));
    let hosts = list(&folder, "# all\nb slots=4\n");
    let study = |words: &[&str]| weir(&[&["study", &file, "--out", shown(&out)], words].concat());
    let wrong = format!("{hosts}:2: \"slots=4\" is not known");
    expect_refusal(&study(&["--hosts", &hosts]), 2, &[&wrong, "rsh=COMMAND"]);
    let nowhere = folder.join("nowhere");
    expect_refusal(&study(&["--hosts", shown(&nowhere)]), 2, &["--hosts", "it cannot be read"]);
    expect_refusal(&weir(&["study", "quikc", "--hosts", &list(&folder, "b\n")]), 2, &["there is no study"]);
    for flags in [["--server-host", "c"], ["--fail-if", "cpu > 3%"], ["--repeat", "3"]] {
        let said = study(&[&["--hosts", &hosts], &flags[..]].concat());
        assert_eq!(said.code, Some(2), "{}", said.stderr);
        assert!(
            said.stderr.contains("cannot be used with") && said.stderr.contains(flags[0]),
            "{}",
            said.stderr
        );
    }
    let all_gone = list(&folder, &line(&folder, "b").replace("env ", "false "));
    expect_refusal(
        &study(&["--hosts", &all_gone]),
        13,
        &["no host gave a result: b: ", "exited with status 1"],
    );
    assert!(!out.exists());
}
