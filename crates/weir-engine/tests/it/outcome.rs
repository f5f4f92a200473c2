//! Counts the outcome of each case on each subject; the counts are the last line of a run.

#![expect(
    clippy::print_stdout,
    reason = "the test harness shows it with the failing test, or with --nocapture"
)]

use std::{
    env,
    io::Write,
    sync::{
        Once,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    time::Duration,
};

use crate::kernel;

/// The outcome of a case on a subject.
#[derive(Clone, Debug)]
pub enum Outcome {
    Passed,
    Failed,
    /// It does not apply to this driver, for this reason.
    NotApplicable(String),
    /// The kernel refuses the driver or something that the case needs, for this reason.
    Skipped(String),
}

static PASSED: AtomicUsize = AtomicUsize::new(0);
static FAILED: AtomicUsize = AtomicUsize::new(0);
static NOT_APPLICABLE: AtomicUsize = AtomicUsize::new(0);
static SKIPPED: AtomicUsize = AtomicUsize::new(0);

/// Set in processes that run one case for another test process.
pub const CHILD: &str = "WEIR_TEST_CHILD";

/// Counts an outcome and prints why a case did not run.
pub fn record(test: &str, outcome: &Outcome) {
    static AT_EXIT: Once = Once::new();
    if env::var_os(CHILD).is_none() {
        AT_EXIT.call_once(|| kernel::at_exit(print_counts));
    }
    let counter = match outcome {
        Outcome::Passed => &PASSED,
        Outcome::Failed => &FAILED,
        Outcome::NotApplicable(why) => {
            note(&format!("{test}: not applicable: {why}"));
            &NOT_APPLICABLE
        }
        Outcome::Skipped(why) => {
            note(&format!("{test}: skipped: {why}"));
            &SKIPPED
        }
    };
    counter.fetch_add(1, SeqCst);
}

/// A line about a running test, shown when it fails or with `--nocapture`.
pub fn note(line: &str) {
    println!("{line}");
}

/// The counts of this process, as printed in the last line of a run.
pub fn counts() -> String {
    let [passed, failed, not_applicable, skipped] =
        [&PASSED, &FAILED, &NOT_APPLICABLE, &SKIPPED].map(|counter| counter.load(SeqCst));
    format!("{passed} passed, {failed} failed, {not_applicable} not applicable, {skipped} skipped")
}

extern "C" fn print_counts() {
    // An error from a closed output cannot be handled at the end of the process.
    let _ = writeln!(std::io::stdout(), "conformance: {}", counts());
}

/// Records a failure unless the test completes.
pub struct Verdict {
    test: &'static str,
    outcome: Outcome,
}

impl Verdict {
    pub fn new(test: &'static str) -> Self {
        Self { test, outcome: Outcome::Failed }
    }

    pub fn passed(mut self) {
        self.outcome = Outcome::Passed;
    }

    pub fn skipped(mut self, why: String) {
        self.outcome = Outcome::Skipped(why);
    }
}

impl Drop for Verdict {
    fn drop(&mut self) {
        record(self.test, &self.outcome);
    }
}

/// Ends the process, naming the test, when it takes too long: a hang is a failure.
pub struct Watchdog {
    _running: mpsc::Sender<()>,
}

impl Watchdog {
    pub fn start(test: &str, limit: Duration) -> Self {
        let (running, watched) = mpsc::channel::<()>();
        let test = test.to_owned();
        std::thread::spawn(move || {
            if watched.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
                let line = format!("watchdog: {test} still runs after {} s: it hangs\n", limit.as_secs());
                let _ = std::io::stderr().write_all(line.as_bytes());
                std::process::abort();
            }
        });
        Self { _running: running }
    }
}
