//! Progress of a run: plain data, about once a second. The caller decides how to show it.

use std::time::Duration;

use weir_record::load::SecondRow;

/// Distance between two reports.
const INTERVAL_NS: u64 = 1_000_000_000;

/// Parts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Connections are being opened.
    #[default]
    Connecting,
    /// The load runs but is not measured yet.
    WarmingUp,
    /// The window is open.
    Measuring,
}

/// Progress at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// The current phase.
    pub phase: Phase,
    /// Time since this phase began.
    pub elapsed: Duration,
    /// Longest duration of this phase.
    pub planned: Duration,
    /// Messages completed and verified since the run began.
    pub messages: u64,
    /// Messages a second since the previous report.
    pub messages_per_second: f64,
    /// Messages in flight.
    pub in_flight: u64,
    /// Failures since the load began.
    pub errors: u64,
    /// Text of the last failure.
    pub failure_last: Option<String>,
    /// The last whole second of the window.
    pub second: Option<SecondRow>,
}

/// Calls back once a second.
pub(crate) struct Ticker<'a> {
    progress: &'a mut dyn FnMut(Progress),
    phase: Phase,
    phase_began_ns: u64,
    planned: Duration,
    last_ns: u64,
    last_messages: u64,
}

impl<'a> Ticker<'a> {
    pub(crate) fn new(progress: &'a mut dyn FnMut(Progress)) -> Self {
        let (phase, planned) = (Phase::Connecting, Duration::ZERO);
        Self { progress, phase, phase_began_ns: 0, planned, last_ns: 0, last_messages: 0 }
    }

    /// Starts a phase.
    pub(crate) fn begin(&mut self, phase: Phase, now_ns: u64, planned: Duration) {
        (self.phase, self.phase_began_ns, self.planned) = (phase, now_ns, planned);
        if self.last_ns == 0 {
            self.last_ns = now_ns;
        }
    }

    /// Calls back if a second has passed since the last call; `glance` fills in the counts.
    pub(crate) fn tick(&mut self, now_ns: u64, glance: impl FnOnce() -> Progress) {
        let passed_ns = now_ns.saturating_sub(self.last_ns);
        if passed_ns < INTERVAL_NS {
            return;
        }
        let counts = glance();
        let messages = counts.messages.saturating_sub(self.last_messages);
        (self.last_ns, self.last_messages) = (now_ns, counts.messages);
        (self.progress)(Progress {
            phase: self.phase,
            elapsed: Duration::from_nanos(now_ns.saturating_sub(self.phase_began_ns)),
            planned: self.planned,
            messages_per_second: messages as f64 * 1e9 / passed_ns as f64,
            ..counts
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_calls_once_a_second_with_the_rate_since_the_last_call() {
        let mut calls = Vec::new();
        let mut record = |progress: Progress| calls.push(progress);
        let mut ticker = Ticker::new(&mut record);
        ticker.begin(Phase::WarmingUp, 5_000_000_000, Duration::from_secs(9));
        let glance = |messages| move || Progress { messages, ..Progress::default() };
        ticker.tick(5_500_000_000, glance(10));
        ticker.tick(6_000_000_000, glance(100));
        ticker.tick(6_900_000_000, glance(700));
        ticker.tick(8_000_000_000, glance(900));
        let seen: Vec<_> =
            calls.iter().map(|call| (call.messages_per_second, call.elapsed.as_secs())).collect();
        assert_eq!(seen, [(100.0, 1), (400.0, 3)]);
        assert!(calls.iter().all(|call| call.phase == Phase::WarmingUp && call.planned.as_secs() == 9));
    }
}
