//! Kills at random moments: of the laboratory, of a server, of a generator, by signals that they can catch and by
//! SIGKILL. Nothing may stay, the store must be readable, the report must come, and the study must resume.

use std::{
    fs,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use weir_stats::random::Random;
use weir_store::Store;

use super::harness::{
    LOOK_PAUSE, PATIENCE, Running, TWO_ARMS, WEIR, folder, shown, study_file, study_head, until, weir,
};

/// Environment variable that every process of one round inherits.
const MARK: &str = "WEIR_IT_MARK";

/// A foreign server that forks and leaves a long-lived child.
const FORKING_ARM: &str = "[[arm]]\nname = \"forks\"\ncommand = [\"sh\", \"-c\", \
    \"sleep 1000 & {bin}/weir serve echo --driver poll --listen 127.0.0.1:{port} & wait\"]\n";

/// The laboratory, or the first process with this in its command line. The last two are the supervisor of the foreign
/// server, and the first one found of the server, its shell and the shell's child.
const VICTIMS: [&str; 5] = ["laboratory", " serve echo ", " load-slices", " supervise ", "sleep 1000"];

/// Kills in the default run, and with `WEIR_SLOW_TESTS=1`.
const KILLS: u32 = 5;
const KILLS_SLOW: u32 = 50;

struct Found {
    pid: Pid,
    command: String,
}

/// Living processes that carry the mark.
fn marked(mark: &str) -> Vec<Found> {
    let entry = format!("{MARK}={mark}\0");
    let processes = fs::read_dir("/proc").expect("/proc is there");
    processes
        .filter_map(|process| {
            let path = process.ok()?.path();
            let pid = Pid::from_raw(path.file_name()?.to_str()?.parse().ok()?)?;
            let environment = fs::read(path.join("environ")).ok()?;
            let is_marked = environment.windows(entry.len()).any(|window| window == entry.as_bytes());
            let command = fs::read_to_string(path.join("cmdline")).ok()?.replace('\0', " ");
            (is_marked && !command.is_empty()).then_some(Found { pid, command })
        })
        .collect()
}

fn expect_none(mark: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left: Vec<String> = marked(mark).into_iter().map(|found| found.command).collect();
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "left behind: {left:?}");
        thread::park_timeout(LOOK_PAUSE);
    }
}

/// One round: a session is started, a process is killed, and the session ends. Returns what happened.
fn round(random: &mut Random, words: &[&str], mark: &str) -> String {
    let mut study = Running::start(Command::new(WEIR).args(words).env(MARK, mark).env("LC_ALL", "C"));
    // Up to four lines: the study, its length, the finished blocks, and the next one.
    let mut lines = random.below(5);
    let moment = Duration::from_micros(random.below(900_000));
    let victim = VICTIMS[random.below(VICTIMS.len() as u64) as usize];
    let signal = [Signal::KILL, Signal::TERM, Signal::INT][random.below(3) as usize];
    if victim == "laboratory" && signal != Signal::KILL {
        // Before its first line it may not handle the signal yet.
        lines = lines.max(1);
    }
    for _ in 0..lines {
        study.next_error_line().expect("it shows progress");
    }
    let began = Instant::now();
    while began.elapsed() < moment {
        thread::park_timeout(moment.saturating_sub(began.elapsed()));
    }
    let told = format!("{victim:?} by {signal:?} after {lines} lines and {moment:?}");
    if victim == "laboratory" {
        study.signal(signal);
    } else {
        let is_victim = |found: &Found| found.command.contains(victim) && found.pid != study.pid();
        let mut target = None;
        until("a victim", || {
            target = marked(mark).into_iter().find(is_victim);
            target.is_some()
        });
        // It may have ended by itself in between, which is fine.
        let _ = target.map(|found| kill_process(found.pid, signal));
        let line = study.next_error_line();
        assert!(line.is_some(), "{told}: the session goes on");
        study.signal(Signal::INT);
    }
    let code = study.wait(PATIENCE);
    let expected = if victim == "laboratory" && signal == Signal::KILL { -9 } else { 130 };
    assert_eq!(code, expected, "{told}: {}", study.rest_of_errors());
    told
}

fn stored(out: &Path) -> usize {
    let store = Store::open_read_only(out).expect("the store is readable");
    store.check_integrity().expect("the store is whole");
    store.blocks().expect("the blocks are readable").len()
}

#[test]
fn whatever_is_killed_leaves_no_process_and_a_study_that_goes_on() {
    let kills = if std::env::var_os("WEIR_SLOW_TESTS").is_some() { KILLS_SLOW } else { KILLS };
    let seed = std::env::var("WEIR_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(7);
    println!("seed {seed} (WEIR_SEED takes another), {kills} kills");
    let mut random = Random::seeded(seed);
    let folder = folder("chaos");
    let (file, out) = study_file(&folder, &(study_head(900, "1h") + TWO_ARMS + FORKING_ARM));
    let mut blocks = 0;
    for kill in 0..kills {
        let mark = format!("{}-{kill}", std::process::id());
        let resumed = out.join("study.db").exists();
        let words = if resumed { ["study", "--resume"] } else { ["study", &file] };
        let place: &[&str] = if resumed { &[shown(&out)] } else { &["--out", shown(&out)] };
        let told = round(&mut random, &[&words, place].concat(), &mark);
        println!("kill {kill}: {told}");
        expect_none(&mark);
        if !out.join("study.db").exists() {
            // Killed before there was anything to keep.
            continue;
        }
        let now = stored(&out);
        assert!(now >= blocks, "{told}: {now} blocks of {blocks}");
        blocks = now;
        let report = weir(&["report", shown(&out)]);
        assert_eq!(report.code, Some(0), "{told}: {}", report.stderr);
    }
    finish(&folder);
}

#[test]
fn a_killed_supervisor_leaves_its_server_to_the_laboratory() {
    let folder = folder("supervisor");
    let (file, out) = study_file(&folder, &(study_head(900, "1h") + TWO_ARMS + FORKING_ARM));
    for signal in [Signal::KILL, Signal::TERM] {
        let mark = format!("{}-supervisor-{signal:?}", std::process::id());
        let out = out.with_extension(format!("{signal:?}"));
        let words = ["study", &file, "--out", shown(&out)];
        let mut study = Running::start(Command::new(WEIR).args(words).env(MARK, &mark).env("LC_ALL", "C"));
        let mut target = None;
        until("the shell's child", || {
            let all = marked(&mark);
            target = all.iter().find(|found| found.command.contains(" supervise ")).map(|found| found.pid);
            target.is_some() && all.iter().any(|found| found.command.starts_with("sleep "))
        });
        kill_process(target.expect("it was found"), signal).expect("it runs");
        while !study.next_error_line().expect("the session goes on").contains("blocks: ") {}
        study.signal(Signal::INT);
        assert_eq!(study.wait(PATIENCE), 130);
        expect_none(&mark);
    }
}

#[test]
fn a_study_that_is_interrupted_under_strace_leaves_no_tracer_and_goes_on() {
    let traces = Command::new("strace").args(["-o", "/dev/null", "true"]).status();
    if !traces.is_ok_and(|status| status.success()) {
        println!("skipped: there is no strace, or it may not trace");
        return;
    }
    let folder = folder("interrupted-strace");
    let evidence =
        "evidence_rounds = 2\nevidence_strace = true\nslice = \"5ms\"\npermutations = 1\n[factors]";
    let head = study_head(8, "1min").replace("[factors]", evidence);
    let (file, out) = study_file(&folder, &(head + TWO_ARMS));
    for signal in [Signal::INT, Signal::KILL] {
        let mark = format!("{}-strace-{signal:?}", std::process::id());
        let out = out.with_extension(format!("{signal:?}"));
        let words = ["study", &file, "--out", shown(&out)];
        let mut study = Running::start(Command::new(WEIR).args(words).env(MARK, &mark).env("LC_ALL", "C"));
        until("a tracer", || marked(&mark).iter().any(|found| found.command.starts_with("strace ")));
        study.signal(signal);
        assert_eq!(study.wait(PATIENCE), if signal == Signal::KILL { -9 } else { 130 });
        expect_none(&mark);
        let blocks = stored(&out);
        let resumed = weir(&["study", "--resume", shown(&out), "--quiet"]);
        assert!(matches!(resumed.code, Some(0 | 11 | 12)), "{:?} {}", resumed.code, resumed.stderr);
        assert!(stored(&out) >= 8 && blocks < 8, "{blocks}");
    }
}

/// A killed study ends in good order when it is resumed.
fn finish(folder: &Path) {
    let (file, _) = study_file(folder, &(study_head(8, "5min") + TWO_ARMS + FORKING_ARM));
    let out = folder.join("finished");
    let mark = format!("{}-finish", std::process::id());
    let words = ["study", &file, "--out", shown(&out)];
    let mut study = Running::start(Command::new(WEIR).args(words).env(MARK, &mark).env("LC_ALL", "C"));
    // Any number of other lines may come before that of the first stored block.
    while !study.next_error_line().expect("it shows progress").contains("blocks: ") {}
    study.signal(Signal::KILL);
    assert_eq!(study.wait(PATIENCE), -9);
    expect_none(&mark);
    let blocks = stored(&out);
    assert!(blocks > 0);
    let resumed = weir(&["study", "--resume", shown(&out)]);
    assert!(matches!(resumed.code, Some(0 | 11 | 12)), "{:?} {}", resumed.code, resumed.stderr);
    let after = stored(&out);
    assert!(after >= 4, "all planned blocks are there: {after}");
}
