//! Servers on the real kernel: their figures are read while they run, and nothing of them stays.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use weir_compare::{
    asked::{Asked, AskedCommand, AskedServers},
    load::Count,
    machine::Machine,
    run::{OutputTo, RunEnd, RunSpec, Runner, ServerEnd},
    servers::House,
    session::compare,
};
use weir_record::{
    commands::{CommandEnd, CommandRole, CommandSettings, MeasuredBy},
    spec::Ready,
};

use crate::runner::{SPIN_MS, await_end_of, role, runner, runners, shell, spec};

/// Longest wait for anything that should come soon.
const PATIENCE: Duration = Duration::from_secs(30);

/// The end of a server that was asked to end, however it ended.
const ASKED: ServerEnd = ServerEnd { end: RunEnd::Exited(0), by_itself: false };

/// A folder of one test, with a log below it.
fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("weir-servers-{name}-{}", std::process::id()));
    fs::create_dir_all(&path).expect("it can be made");
    path
}

fn logged(spec: RunSpec, folder: &Path) -> RunSpec {
    RunSpec { output: OutputTo::Log(folder.join("log")), ..spec }
}

/// The content of a log once it holds this many lines.
fn lines(folder: &Path, count: usize) -> Vec<String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let text = fs::read_to_string(folder.join("log")).unwrap_or_default();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if lines.len() >= count && text.ends_with('\n') {
            return lines;
        }
        assert!(Instant::now() < deadline, "{text}");
        thread::park_timeout(Duration::from_millis(1));
    }
}

fn end(runner: &mut Runner) -> ServerEnd {
    runner.end_server().expect("it can be ended")
}

#[test]
fn cpu_of_a_server_is_read_while_it_runs_also_of_what_it_started() {
    for mut runner in runners() {
        let source = runner.cpu_source();
        let folder = folder(&format!("cpu-{source:?}"));
        // The child spins once the server's input, a pipe in the folder, has told it to go on.
        let words = role(&format!("spin {SPIN_MS}"));
        let spinning: Vec<String> = words.iter().map(|word| format!("\"{}\"", word.display())).collect();
        let script = format!(
            "mkfifo {0}/go; echo ready; read x < {0}/go; {1} >/dev/null; echo done; exec tail -f /dev/null",
            folder.display(),
            spinning.join(" ")
        );
        let clock = runner.serve(&logged(shell(&script), &folder), &folder).expect("it starts");
        lines(&folder, 1);
        let before = clock.read().expect("it is read");
        fs::write(folder.join("go"), "on\n").expect("somebody reads it");
        lines(&folder, 2);
        let after = clock.read().expect("it is read");
        let cost = before.until(&after);
        let least_ns = SPIN_MS * 1_000_000;
        // Without a group a child that ended counts in ticks of 10 ms.
        assert!(cost.cpu_ns() + 20_000_000 > least_ns, "{source:?}: {cost:?}");
        assert!(cost.faults_minor > 0 && cost.memory_bytes_max.is_some(), "{cost:?}");
        assert_eq!(runner.server_end(), Ok(None));
        assert_eq!(end(&mut runner), ASKED);
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}

#[test]
fn a_server_is_asked_before_it_is_killed_and_may_go_on_in_the_background() {
    for mut runner in runners() {
        let folder = folder(&format!("polite-{:?}", runner.cpu_source()));
        // The shell writes that its `sleep` was terminated, too.
        let polite = "trap 'echo bye; exit' TERM; echo $$; while :; do sleep 0.02; done 2>/dev/null";
        runner.serve(&logged(shell(polite), &folder), &folder).expect("it starts");
        lines(&folder, 1);
        assert_eq!(end(&mut runner), ASKED);
        assert_eq!(lines(&folder, 2)[1], "bye");
        let background = "tail -f /dev/null & echo $!";
        runner.serve(&logged(shell(background), &folder), &folder).expect("it starts");
        let process: u32 = lines(&folder, 3)[2].parse().expect("a number");
        assert_eq!(runner.server_end(), Ok(None), "it goes on without its first process");
        assert_eq!(end(&mut runner), ASKED);
        await_end_of(process);
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}

#[test]
fn a_server_that_ends_by_itself_says_so_and_the_launcher_starts_the_next() {
    for mut runner in runners() {
        let folder = folder(&format!("ends-{:?}", runner.cpu_source()));
        runner.serve(&logged(shell("echo out; echo err >&2; exit 7"), &folder), &folder).expect("it starts");
        let deadline = Instant::now() + PATIENCE;
        let ended = loop {
            if let Some(ended) = runner.server_end().expect("the launcher lives") {
                break ended;
            }
            assert!(Instant::now() < deadline, "it does not end");
            thread::park_timeout(Duration::from_millis(1));
        };
        assert_eq!(ended, ServerEnd { end: RunEnd::Exited(7), by_itself: true });
        assert_eq!(lines(&folder, 2), ["out", "err"], "both in one log");
        assert!(runner.serve(&spec(vec!["no-such-server".into()]), &folder).is_err());
        runner.serve(&logged(shell("exec tail -f /dev/null"), &folder), &folder).expect("it starts");
        end(&mut runner);
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}

#[test]
fn a_log_that_grows_is_kept_short_while_the_server_runs() {
    let mut runner = runner(None);
    let folder = folder("log");
    let script = "head -c 60000000 /dev/zero | tr '\\0' x; echo; echo last; exec tail -f /dev/null";
    runner.serve(&logged(shell(script), &folder), &folder).expect("it starts");
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = fs::metadata(folder.join("log")).expect("it was made");
        // Everything is written: a line after all the letters.
        if found.len() >= 60_000_006 && found.blocks() * 512 < 20 << 20 {
            break;
        }
        assert!(Instant::now() < deadline, "{} bytes in {} blocks", found.len(), found.blocks());
        thread::park_timeout(Duration::from_millis(1));
    }
    let log = fs::read(folder.join("log")).expect("it is there");
    assert!(log.starts_with(b"xxx") && log.ends_with(b"x\nlast\n"), "its beginning and its end are there");
    assert_eq!(end(&mut runner), ASKED);
    fs::remove_dir_all(&folder).expect("it is ours");
}

/// The lines of a file once it ends with one; empty before.
fn whole_lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    if text.ends_with('\n') { text.lines().map(str::to_owned).collect() } else { Vec::new() }
}

#[test]
fn what_runs_after_a_load_also_runs_after_one_that_is_interrupted() {
    let folder = folder("conclude");
    let notes = folder.join("notes");
    let note = |what: &str| shell(&format!("echo {what} >> {}", notes.display())).words;
    let server = AskedCommand {
        words: shell("echo ready; exec tail -f /dev/null").words,
        prepare: note("between"),
        conclude: note("conclude"),
        load: shell(&format!("echo load >> {}; exec tail -f /dev/null", notes.display())).words,
        ..AskedCommand::default()
    };
    let second = AskedCommand { name: "new".to_owned(), role: CommandRole::Candidate, ..server.clone() };
    let asked = Asked {
        parameters: Vec::new(),
        commands: vec![AskedCommand { name: "old".to_owned(), ..server }, second],
        settings: CommandSettings { limit_ns: 120_000_000_000, ..CommandSettings::default() },
        environment: Vec::new(),
        folder: None,
        input: None,
        output: OutputTo::Discard,
        thresholds: Vec::new(),
        seed: 1,
        servers: Some(AskedServers {
            count: Count::None,
            ready: Ready::Line("ready".to_owned()),
            ready_words: Vec::new(),
            ready_within: PATIENCE,
            settle: Duration::ZERO,
            pairs_per_start: 1,
        }),
    };
    let runner = runner(None);
    let house = House::new(role("launcher"), runner.cpu_source());
    let mut machine = Machine::new(runner).with_servers(house);
    let stop = AtomicBool::new(false);
    let ended = thread::scope(|scope| {
        scope.spawn(|| {
            let deadline = Instant::now() + PATIENCE;
            while whole_lines(&notes).last().is_none_or(|line| line != "load") && Instant::now() < deadline {
                thread::park_timeout(Duration::from_millis(1));
            }
            stop.store(true, Ordering::Relaxed);
        });
        compare(&asked, &MeasuredBy::default(), &mut machine, &stop, &mut |_| {}).map(|found| found.ended)
    });
    assert_eq!(ended, Ok(CommandEnd::Interrupted));
    assert_eq!(whole_lines(&notes), ["between", "load", "conclude"]);
    drop(machine);
    fs::remove_dir_all(&folder).expect("it is ours");
}

#[test]
fn a_server_and_its_folder_go_with_who_started_it() {
    for mut runner in runners() {
        let folder = folder(&format!("gone-{:?}", runner.cpu_source()));
        let script = "echo $$; exec tail -f /dev/null";
        runner.serve(&logged(shell(script), &folder), &folder).expect("it starts");
        let process: u32 = lines(&folder, 1)[0].parse().expect("a number");
        drop(runner);
        await_end_of(process);
        assert!(!folder.exists());
    }
}
