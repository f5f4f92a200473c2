//! Processes that `weir observe` selects by a name, several numbers, a control group or a container, and its error if
//! there are none.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use rustix::process::Signal;
use weir_evidence::process::is_stopped;
use weir_record::observation::{FoundContainer, Observation, Selected, Selection};

use super::harness::{
    PATIENCE, Running, Said, WEIR, copy_program, executable, expect_refusal, folder, shown, until, weir,
};

fn record(said: &Said) -> Observation {
    serde_json::from_str(&said.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", said.stdout, said.stderr))
}

fn selection(observation: &Observation) -> &Selection {
    observation.selection.as_ref().expect("it was no single number")
}

fn number(process: &Running) -> u32 {
    process.pid().as_raw_nonzero().get().cast_unsigned()
}

fn selected(observation: &Observation) -> Vec<u32> {
    selection(observation).processes.iter().map(|process| process.pid).collect()
}

/// A program that does nothing, under a unique name.
struct Idle {
    program: PathBuf,
    name: String,
}

impl Idle {
    fn new(folder: &Path, kind: &str) -> Self {
        let path = std::env::var_os("PATH").expect("there is a path");
        let sleep =
            std::env::split_paths(&path).map(|folder| folder.join("sleep")).find(|path| path.is_file());
        let name = format!("w{kind}{}", std::process::id());
        let program = folder.join(&name);
        copy_program(&sleep.expect("every system has it"), &program);
        Self { program, name }
    }

    /// Runs until it is dropped, and is that program already.
    fn start(&self) -> Running {
        let running = Running::start(Command::new(&self.program).arg0("sleep").arg("600"));
        let comm = format!("/proc/{}/comm", number(&running));
        until("the program", || fs::read_to_string(&comm).is_ok_and(|name| name.trim() == self.name));
        running
    }
}

#[test]
fn a_name_means_every_process_that_has_it_and_numbers_mean_those() {
    let folder = folder("observe-name");
    let idle = Idle::new(&folder, "name");
    let (one, other) = (idle.start(), idle.start());
    let mut pids = vec![number(&one), number(&other)];
    pids.sort_unstable();
    let seen = record(&weir(&["observe", "--name", &idle.name, "-d", "50ms", "--json"]));
    assert_eq!((selected(&seen), selection(&seen).found.by), (pids.clone(), Selected::Name));
    assert_eq!((seen.pid, seen.totals.processes), (pids[0], 2));
    let [one, other] = [pids[0], pids[1]].map(|pid| pid.to_string());
    for words in [&["-p", &format!("{other},{one}")][..], &["--pid", &one, "--pid", &other]] {
        let said = weir(&[&["observe", "-d", "50ms", "--json"][..], words].concat());
        assert_eq!((selected(&record(&said)), record(&said).totals.processes), (pids.clone(), 2));
    }
    let text = weir(&["observe", "--name", &idle.name, "-d", "50ms", "--plain"]).stdout;
    assert!(text.contains(&format!("processes called {} (2)", idle.name)), "{text}");
    let single = record(&weir(&["observe", "-p", &one, "-d", "50ms", "--json"]));
    assert_eq!(single.selection, None, "one number is what it was");
}

#[test]
fn a_selection_that_means_nothing_is_refused_with_what_is_near() {
    let folder = folder("observe-none");
    let idle = Idle::new(&folder, "none");
    let _one = idle.start();
    let almost = &idle.name[..idle.name.len() - 1];
    expect_refusal(
        &weir(&["observe", "--name", almost]),
        2,
        &["--name", almost, "similar names", &idle.name],
    );
    let path = "/no/such/group";
    expect_refusal(&weir(&["observe", "--cgroup", path]), 2, &["--cgroup", path, "no process"]);
    expect_refusal(&weir(&["observe", "--cgroup", "web"]), 2, &["--cgroup", "/proc/PID/cgroup"]);
    expect_refusal(&weir(&["observe", "--unit", "no-such"]), 2, &["--unit", "no-such.service"]);
    let own = std::process::id().to_string();
    let words = ["observe", "-p", &format!("{own},1"), "--strace"];
    expect_refusal(&weir(&words), 2, &["--strace", "one process"]);
    let words = ["observe", "-p", &format!("{own},536870911"), "-d", "50ms"];
    expect_refusal(&weir(&words), 2, &["--pid", "no process 536870911"]);
    for words in
        [&["--name", "a", "--unit", "b"][..], &["--name", "a", "-p", "1"], &["--cgroup", "/", "--strace"]]
    {
        let said = weir(&[&["observe"][..], words].concat());
        assert!(said.code == Some(2) && said.stderr.contains("cannot be used with"), "{}", said.stderr);
    }
}

#[test]
fn who_gets_the_name_later_joins() {
    let folder = folder("observe-joins");
    let idle = Idle::new(&folder, "join");
    let one = idle.start();
    let observe = ["observe", "--name", &idle.name, "--trace", "-d", "600s", "--json"];
    let mut observer = Running::weir(&observe);
    observer.next_error_line().expect("it says that it traces, or why not");
    let other = idle.start();
    observer.signal(Signal::INT);
    observer.wait(PATIENCE);
    let text: String = std::iter::from_fn(|| observer.next_line()).collect();
    let seen: Observation = serde_json::from_str(&text).expect("a record");
    assert_eq!((selected(&seen), selection(&seen).joined), (vec![number(&one)], 1));
    assert!(seen.threads.iter().any(|thread| thread.pid == number(&other)), "{:?}", seen.threads);
}

#[test]
fn the_end_of_one_is_not_the_end_of_all() {
    let folder = folder("observe-all-end");
    let idle = Idle::new(&folder, "ends");
    let (one, other) = (idle.start(), idle.start());
    let observe = ["observe", "--name", &idle.name, "--trace", "-d", "600s", "--json"];
    let observer = Running::weir(&observe);
    observer.next_error_line().expect("it says that it traces, or why not");
    let last = number(&other);
    drop(one);
    let pid = last.to_string();
    // Three times as long as it takes to notice an end.
    assert_eq!(weir(&["observe", "-p", &pid, "-d", "300ms", "--json"]).code, Some(0));
    assert!(!is_stopped(number(&observer)), "it goes on with the other");
    drop(other);
    let text: String = std::iter::from_fn(|| observer.next_line()).collect();
    let seen: Observation = serde_json::from_str(&text).expect("it ends with the last of them");
    assert_eq!(seen.ending, weir_record::observation::Ending::TargetEnded);
    assert!(selected(&seen).contains(&last));
}

#[test]
fn a_control_group_means_its_processes() {
    let own = fs::read_to_string("/proc/self/cgroup").expect("every kernel here has groups");
    let deepest = own.lines().filter_map(|line| line.split_once(':')).map(|(_, rest)| rest);
    let Some(line) = deepest.max_by_key(|rest| rest.split_once(':').map_or(0, |(_, path)| path.len())) else {
        println!("skipped: this process is in no control group");
        return;
    };
    let mut observer = Running::weir(&["observe", "--cgroup", line, "-d", "50ms", "--json"]);
    let text: String = std::iter::from_fn(|| observer.next_line()).collect();
    let seen: Observation =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {}", observer.rest_of_errors()));
    let observer_pid = number(&observer);
    assert_eq!((observer.wait(PATIENCE), selection(&seen).found.by), (0, Selected::Cgroup));
    let has = |pid: u32| seen.threads.iter().any(|thread| thread.pid == pid);
    assert!(has(std::process::id()), "{:?}", selection(&seen));
    assert!(!has(observer_pid), "the one that looks is in no selection: {:?}", selection(&seen));
}

/// A stand-in for docker or podman with this output.
fn runtime(folder: &Path, name: &str, script: &str) {
    executable(&folder.join(name), &format!("#!/bin/sh\n{script}\n"));
}

#[test]
fn a_name_that_only_a_runtime_knows_is_asked_for() {
    let (folder, idle_folder) = (folder("observe-runtime"), folder("observe-runtime-idle"));
    let idle = Idle::new(&idle_folder, "cont").start();
    let id = "5".repeat(64);
    runtime(
        &folder,
        "podman",
        &format!("[ \"$7\" = shop ] && echo {id} {} || {{ echo none >&2; exit 1; }}", number(&idle)),
    );
    runtime(&folder, "docker", "echo 'the daemon is not running' >&2; exit 1");
    let observe = |name: &str| {
        let words = ["observe", "--container", name, "-d", "50ms", "--json"];
        let path = format!("{}:/usr/bin:/bin", shown(&folder));
        let output = Command::new(WEIR).args(words).env("PATH", path).env("LC_ALL", "C").output();
        output.expect("it runs")
    };
    let output = observe("shop");
    let seen: Observation = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(selected(&seen), [number(&idle)]);
    assert_eq!(selection(&seen).found.container, Some(FoundContainer::Podman));
    let refused = observe("no-such-shop");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    for word in ["--container", "no-such-shop", "the daemon is not running", "podman"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}
