//! A quantile of the device's time, tracked by one bit per wait: whether the wake was too late.
//!
//! The tracked value is when to be awake, counted from the hand-over. A wake that is too early moves it up by the
//! factor e^(ηp), one that is too late moves it down by e^(-η(1-p)). Where its mean is constant, one wake in 1/p is
//! too late, whatever the distribution (Ma, Muthukrishnan and Sandler, 2013; with factors, because times have no
//! scale). The bit is known after every wait, also after a censored one, and it includes the lag of waking, which
//! therefore need not be known.
//!
//! A step adapts between two limits: it is small in a steady state, doubles with every consecutive late wake, and
//! doubles with every 1/p operations once four times as many have passed without a late one. Doubling a step squares
//! its factor, so that no exponential is computed on the way.

use super::{ELAPSED_NS_MAX, Plan, SLEEP_NS_MAX};

/// Operations that are polled at the start; tracking starts at the earliest.
pub const POLLED_FIRST: u32 = 16;

const WAKE_NS_MIN: f64 = 100.0;
const WAKE_NS_MAX: f64 = SLEEP_NS_MAX as f64;

/// The target quantile and how fast it is followed. Many trackers may share one.
#[derive(Clone, Copy, Debug)]
pub struct Aim {
    up: f64,
    up_most: f64,
    down: f64,
    down_most: f64,
    /// One late wake is expected in this many operations.
    due: u32,
}

impl Aim {
    /// Steps between two limits.
    pub fn adaptive(quantile: f64, step_least: f64, step_most: f64) -> Self {
        Self {
            up: (step_least * quantile).exp(),
            up_most: (step_most * quantile).exp(),
            down: (-step_least * (1.0 - quantile)).exp(),
            down_most: (-step_most * (1.0 - quantile)).exp(),
            due: (1.0 / quantile).ceil() as u32,
        }
    }
}

/// The current estimate of one quantile.
#[derive(Clone, Copy, Debug)]
pub struct Tracker {
    wake_ns: f64,
    factor: f64,
    in_a_row: u32,
    too_late: bool,
    polls_left: u32,
}

impl Tracker {
    /// Starts without an estimate: polls first.
    pub fn new() -> Self {
        Self { wake_ns: WAKE_NS_MAX, factor: 1.0, in_a_row: 0, too_late: false, polls_left: POLLED_FIRST }
    }

    /// Whether the first polls are over.
    pub fn has_begun(&self) -> bool {
        self.polls_left == 0
    }

    /// When to be awake; 0 while nothing is known.
    pub fn wake_ns(&self) -> u64 {
        if self.has_begun() { self.wake_ns as u64 } else { 0 }
    }

    /// Sleeps until then, or polls if the sleep would be too short.
    pub fn plan(&self, wake_lag_ns: u64) -> Plan {
        Plan::sleep_or_poll(self.wake_ns().saturating_sub(wake_lag_ns))
    }

    /// Learns from an operation that took at most `bound_ns`.
    pub fn learn(&mut self, aim: &Aim, bound_ns: u64, too_late: bool) {
        if self.polls_left > 0 {
            self.polls_left -= 1;
            let bound_ns = bound_ns.min(ELAPSED_NS_MAX) as f64;
            self.wake_ns = self.wake_ns.min(bound_ns).max(WAKE_NS_MIN);
            return;
        }
        if too_late != self.too_late || self.in_a_row == 0 {
            self.too_late = too_late;
            self.in_a_row = 0;
            self.factor = if too_late { aim.down } else { aim.up };
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.wake_ns = (self.wake_ns * self.factor).clamp(WAKE_NS_MIN, WAKE_NS_MAX);
        if too_late {
            if self.in_a_row > 1 {
                self.factor = (self.factor * self.factor).max(aim.down_most);
            }
        } else if self.in_a_row >= aim.due.saturating_mul(4) && self.in_a_row.is_multiple_of(aim.due) {
            self.factor = (self.factor * self.factor).min(aim.up_most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun_at(wake_ns: u64, aim: &Aim) -> Tracker {
        let mut tracker = Tracker::new();
        for _ in 0..POLLED_FIRST {
            assert_eq!(tracker.plan(0), Plan::Poll);
            tracker.learn(aim, wake_ns, false);
        }
        tracker
    }

    fn operations_until(
        tracker: &mut Tracker,
        aim: &Aim,
        device_ns: u64,
        reached: impl Fn(u64) -> bool,
    ) -> u32 {
        let mut operations = 0;
        while !reached(tracker.wake_ns()) {
            tracker.learn(aim, device_ns, device_ns <= tracker.wake_ns());
            operations += 1;
            assert!(operations < 1_000_000);
        }
        operations
    }

    #[test]
    fn tracking_begins_at_the_earliest_of_the_first() {
        let aim = Aim::adaptive(0.01, 0.15, 0.15);
        let mut tracker = Tracker::new();
        for index in 0..u64::from(POLLED_FIRST) {
            tracker.learn(&aim, 20_000 - 10 * index, false);
        }
        assert_eq!(tracker.plan(2_000), Plan::Sleep { ns: 20_000 - 150 - 2_000 });
        assert_eq!(tracker.plan(30_000), Plan::Poll);
    }

    #[test]
    fn a_steady_step_takes_as_long_as_its_formula_says() {
        let aim = Aim::adaptive(0.01, 0.15, 0.15);
        let mut tracker = begun_at(10_000, &aim);
        let up = operations_until(&mut tracker, &aim, 100_000, |wake_ns| wake_ns >= 100_000);
        assert!(f64::from(up) <= 10_f64.ln() / (0.15 * 0.01) + 1.0, "{up}");
        let down = operations_until(&mut tracker, &aim, 10_000, |wake_ns| wake_ns < 10_000);
        assert!(down <= 17, "{down}");
    }

    #[test]
    fn an_adaptive_step_is_faster_both_ways() {
        let aim = Aim::adaptive(0.01, 0.02, 0.5);
        let mut tracker = begun_at(10_000, &aim);
        let up = operations_until(&mut tracker, &aim, 100_000, |wake_ns| wake_ns >= 100_000);
        assert!(up < 1_200, "{up}");
        let down = operations_until(&mut tracker, &aim, 10_000, |wake_ns| wake_ns < 10_000);
        assert!(down <= 12, "{down}");
    }

    #[test]
    fn the_wake_stays_within_its_limits() {
        let aim = Aim::adaptive(0.5, 0.5, 8.0);
        let mut tracker = begun_at(10_000, &aim);
        for _ in 0..10_000 {
            tracker.learn(&aim, u64::MAX, false);
        }
        assert_eq!(tracker.wake_ns(), SLEEP_NS_MAX);
        for _ in 0..10_000 {
            tracker.learn(&aim, 0, true);
        }
        assert_eq!(tracker.wake_ns(), 100);
    }
}
