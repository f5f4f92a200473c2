//! Random kills in a study whose servers run on another host: of the agent, of the way to it, of the generator and of
//! the laboratory, at any step.

use std::{
    env,
    io::{BufRead, BufReader, Lines},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use weir_stats::random::Random;
use weir_store::Store;

use super::{
    SEED,
    leftovers::{self, MARK, expect_none},
    say, this_program,
};

/// Kills, and the rounds of the study. With `WEIR_SLOW_TESTS=1` there are more.
const KILLS: u32 = 4;
const KILLS_SLOW: u32 = 200;

/// Most events of a session before a kill, and the longest time from the last of them.
const EVENTS_MAX: u64 = 5;
const LATER_US_MAX: u64 = 150_000;

/// Longest wait for a process to be killed: a generator is there only during a round.
const COMES_MAX: Duration = Duration::from_secs(1);

/// What is killed, by words of its command. The last one is the laboratory.
const VICTIMS: [&str; 4] = ["agent --stdio", "sh -c \"$0\"", "load-slices", "laboratory-elsewhere"];

/// The folders of a study and its other host.
struct Study {
    folder: PathBuf,
    cache: PathBuf,
    mark: String,
    rounds: u32,
}

impl Study {
    fn new(rounds: u32) -> Self {
        let mark = format!("random-kills-{}", std::process::id());
        let all = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(&mark);
        if all.exists() {
            std::fs::remove_dir_all(&all).expect("an earlier run's folder can be removed");
        }
        Self { folder: all.join("study"), cache: all.join("cache"), mark, rounds }
    }

    /// A session that begins the study or resumes it, with its events.
    fn session(&self) -> (Child, Lines<BufReader<ChildStdout>>) {
        let mut laboratory = Command::new(this_program())
            .arg("laboratory-elsewhere")
            .args([&self.folder, &self.cache])
            .arg(self.rounds.to_string())
            .env(MARK, &self.mark)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the laboratory starts");
        let events = BufReader::new(laboratory.stdout.take().expect("its output is a pipe")).lines();
        (laboratory, events)
    }

    /// Blocks on disk, in a store that is whole.
    fn stored(&self) -> usize {
        if !self.folder.join(weir_store::FILE_NAME).exists() {
            return 0;
        }
        let store = Store::open_read_only(&self.folder).expect("the store is readable");
        store.check_integrity().expect("the store is whole");
        store.blocks().expect("the blocks are readable").len()
    }
}

/// A random seed of `WEIR_SEED`, or that of all tests here. It is printed.
fn random() -> Random {
    let asked = env::var("WEIR_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = asked.unwrap_or(SEED);
    say(&format!("random kills: WEIR_SEED={seed}"));
    Random::seeded(seed)
}

/// Lets a time pass while the session works.
fn pass(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// Kills a process of the study as soon as it is there; `false` if it does not come in time.
fn meet(mark: &str, victim: &str) -> bool {
    let end = Instant::now() + COMES_MAX;
    while !leftovers::kill(mark, victim) {
        if Instant::now() >= end {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

pub fn whatever_is_killed_in_a_study_elsewhere_leaves_nothing_and_its_study_finishes() {
    let kills = if env::var_os("WEIR_SLOW_TESTS").is_some() { KILLS_SLOW } else { KILLS };
    let (study, mut random) = (Study::new(kills), random());
    let (mut stored, mut met) = (0, [0_u32; VICTIMS.len()]);
    for kill in 0..kills {
        let (mut laboratory, mut events) = study.session();
        let wanted = usize::try_from(1 + random.below(EVENTS_MAX)).expect("it is small");
        events.by_ref().take(wanted).for_each(drop);
        pass(Duration::from_micros(random.below(LATER_US_MAX)));
        // Every victim has its turn, at a random step.
        let victim = usize::try_from(kill).expect("it is small") % VICTIMS.len();
        met[victim] += u32::from(meet(&study.mark, VICTIMS[victim]));
        // A session that lost a part of its host goes on, until a block is stored.
        let is_stored =
            |line: std::io::Result<String>| line.is_ok_and(|line| line.starts_with("BlockStored"));
        let goes_on = events.by_ref().any(is_stored);
        // It can also have ended: by the kill, or because its study was finished.
        let _ = laboratory.kill();
        let status = laboratory.wait().expect("it can be reaped");
        assert!(goes_on || status.code().is_none_or(|code| code == 0), "kill {kill}: {status}");
        expect_none(&study.mark);
        let now = study.stored();
        assert!(now >= stored, "kill {kill} lost blocks: {now} of {stored}");
        stored = now;
    }
    say(&format!("random kills: {met:?} of {VICTIMS:?}"));
    let (mut laboratory, events) = study.session();
    let last = events.map_while(Result::ok).filter(|line| line.contains("blocks_done")).last();
    assert!(laboratory.wait().expect("it can be reaped").success(), "{last:?}");
    let done = format!("blocks_done: {kills}, blocks: {kills}");
    assert!(last.as_ref().is_some_and(|line| line.contains(&done)), "{last:?}");
    expect_none(&study.mark);
    let left = std::fs::read_dir(study.cache.join("weir")).expect("it was made").flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with("run-")), "{left:?}");
    std::fs::remove_dir_all(study.cache.parent().expect("a folder")).expect("it can be removed");
}
