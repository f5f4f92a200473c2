//! The sleep that is too long with a chosen probability: an order statistic of the last operations, corrected by its
//! outcomes.
//!
//! The window follows the device's current speed; it has forgotten an earlier load after 32 operations, whether that
//! was faster or slower. The window alone cannot reach the share: the lowest of 32 times is more than one in a
//! hundred, times after a sleep that was too long are overestimated, and waking is late. So the window's value is
//! multiplied by a factor that follows the one bit that is always known, whether the wake was too late: down by
//! e^(-η(1-p)) if so, up by e^(ηp) if not. Where the mean of the factor is constant, one wake in 1/p is too late,
//! whatever the distribution (Ma, Muthukrishnan and Sandler, 2013; for corrections of a forecast: Gibbs and Candès,
//! 2021).

use super::{
    Costs, Issued, Outcome, Plan, Predictor,
    size_class::{CLASSES, size_class},
    wake_lag::WakeLag,
};

/// η: how far one wake moves the factor.
const STEP: f64 = 0.1;
/// Operations that are remembered.
const WINDOW: usize = 32;
/// Operations that are polled at the start.
const POLLED_FIRST: usize = 16;
/// Limits of the factor, so that it recovers quickly when the window changes.
const FACTOR_MIN: f64 = 0.05;
const FACTOR_MAX: f64 = 1.65;

/// A window and a factor for each size class.
pub struct Quantile {
    share: f64,
    up: f64,
    down: f64,
    costs: Costs,
    lag: WakeLag,
    classes: [Class; CLASSES],
}

#[derive(Clone, Copy)]
struct Class {
    recent: Recent,
    factor: f64,
}

/// The last times, in order of arrival and in order of size.
#[derive(Clone, Copy)]
struct Recent {
    times_ns: [u64; WINDOW],
    sorted_ns: [u64; WINDOW],
    count: usize,
    oldest: usize,
}

impl Quantile {
    pub fn new(share: f64, costs: &Costs) -> Self {
        let recent = Recent { times_ns: [0; WINDOW], sorted_ns: [0; WINDOW], count: 0, oldest: 0 };
        Self {
            share,
            up: (STEP * share).exp(),
            down: (-STEP * (1.0 - share)).exp(),
            costs: *costs,
            lag: WakeLag::new(costs),
            classes: [Class { recent, factor: 1.0 }; CLASSES],
        }
    }
}

impl Class {
    /// When to be awake, counted from the hand-over; 0 while too little is known.
    fn wake_ns(&self, share: f64) -> u64 {
        if self.recent.count < POLLED_FIRST { 0 } else { (self.recent.at(share) as f64 * self.factor) as u64 }
    }
}

impl Recent {
    /// The quantile of the times at this share.
    fn at(&self, share: f64) -> u64 {
        let rank = (share * self.count as f64).ceil() as usize;
        self.sorted_ns[rank.max(1) - 1]
    }

    fn note(&mut self, time_ns: u64) {
        if self.count == WINDOW {
            let gone = self.sorted_ns.partition_point(|known_ns| *known_ns < self.times_ns[self.oldest]);
            self.sorted_ns.copy_within(gone + 1.., gone);
            self.count -= 1;
        }
        let place = self.sorted_ns[..self.count].partition_point(|known_ns| *known_ns < time_ns);
        self.sorted_ns.copy_within(place..self.count, place + 1);
        self.sorted_ns[place] = time_ns;
        self.times_ns[self.oldest] = time_ns;
        self.oldest = (self.oldest + 1) % WINDOW;
        self.count += 1;
    }
}

impl Predictor for Quantile {
    fn plan(&mut self, issued: &Issued) -> Plan {
        let wake_ns = self.classes[size_class(issued.bytes, issued.direction)].wake_ns(self.share);
        Plan::sleep_or_poll(wake_ns.saturating_sub(self.lag.ns()))
    }

    fn observe(&mut self, outcome: &Outcome) {
        self.lag.learn(outcome);
        let class = &mut self.classes[size_class(outcome.bytes, outcome.direction)];
        let bound_ns = outcome.device_time(&self.costs).bound_ns();
        if class.recent.count >= POLLED_FIRST {
            let too_late = match outcome.plan {
                Plan::Sleep { .. } => outcome.overslept(),
                Plan::Poll | Plan::Interrupt => bound_ns <= class.wake_ns(self.share),
            };
            let step = if too_late { self.down } else { self.up };
            class.factor = (class.factor * step).clamp(FACTOR_MIN, FACTOR_MAX);
        }
        class.recent.note(bound_ns);
    }
}

#[cfg(test)]
mod tests {
    use crate::predict::{
        Costs, Plan, PredictorSpec,
        rehearsal::{COSTS, Rehearsal},
    };

    type Draw = fn(u64) -> u64;

    /// Numbers from 0 to 2^32, as exponential times with a mean of 50 µs.
    fn exponential(random: u64) -> u64 {
        let uniform = (random + 1) as f64 / (u64::from(u32::MAX) + 2) as f64;
        10_000 + (-uniform.ln() * 50_000.0) as u64
    }

    #[test]
    fn the_share_of_misses_is_the_one_asked_for_whatever_the_distribution() {
        let distributions: [(&str, Draw); 3] = [
            ("uniform", |random| 12_000 + random % 8_000),
            ("exponential", exponential),
            (
                "two peaks",
                |random| if random % 10 < 3 { 9_000 + random % 500 } else { 60_000 + random % 9_000 },
            ),
        ];
        for (name, draw) in distributions {
            for (spec, quantile) in [("quantile:0.01", 0.01), ("quantile:0.05", 0.05), ("quantile:0.2", 0.2)]
            {
                let mut rehearsal = Rehearsal::new(spec);
                rehearsal.misses_in(20_000, draw);
                let operations = 200_000;
                let share = rehearsal.misses_in(operations, draw);
                let sigma = (quantile * (1.0 - quantile) / f64::from(operations)).sqrt();
                assert!((share - quantile).abs() < 3.0 * sigma, "{name}, {spec}: {share}");
            }
        }
    }

    #[test]
    fn a_load_that_rises_and_falls_is_followed_both_ways() {
        // From 10 to 34 µs and back within 200 operations, repeatedly.
        let mut rehearsal = Rehearsal::new("quantile:0.01").lagging(COSTS.wake_lag_ns);
        let (mut misses, mut device, mut looked) = (0, 0, 0);
        for operation in 0..20_000_u64 {
            let phase = operation % 200;
            let device_ns = 10_000 + 240 * phase.min(200 - phase) + operation * 7_919 % 2_000;
            let outcome = rehearsal.wait(device_ns);
            let slept_ns = match outcome.plan {
                Plan::Sleep { ns } => ns + outcome.wake_lag_ns,
                _ => 0,
            };
            misses += u32::from(outcome.complete_at_wake);
            device += device_ns;
            looked += outcome.elapsed_ns.saturating_sub(slept_ns);
        }
        assert!((190..=210).contains(&misses), "{misses} misses");
        // A wake that moves only by steps lags on the way up: it polls for half of the time.
        assert!(looked * 10 < device * 3, "{looked} of {device} ns spent looking");
    }

    #[test]
    fn a_slower_device_is_known_within_fifty_operations() {
        let mut rehearsal = Rehearsal::new("quantile:0.01");
        rehearsal.misses_in(2_000, |random| 14_000 + random % 2_000);
        let operations =
            (1..1_000).find(|_| matches!(rehearsal.wait(150_000).plan, Plan::Sleep { ns: 100_000.. }));
        assert!(operations.is_some_and(|operations| operations < 50), "{operations:?}");
    }

    #[test]
    fn a_faster_device_costs_few_misses() {
        let mut rehearsal = Rehearsal::new("quantile:0.01");
        rehearsal.misses_in(2_000, |random| 140_000 + random % 20_000);
        let share = rehearsal.misses_in(1_000, |random| 14_000 + random % 2_000);
        assert!(share < 0.045, "{share}");
    }

    #[test]
    fn the_lag_of_waking_is_learned_without_being_told() {
        let mut rehearsal = Rehearsal::new("quantile:0.01");
        // Eight times the lag in the costs.
        rehearsal.wake_lag_ns = 16_000;
        rehearsal.misses_in(20_000, |random| 40_000 + random % 5_000);
        let share = rehearsal.misses_in(100_000, |random| 40_000 + random % 5_000);
        assert!((share - 0.01).abs() < 0.001, "{share}");
    }

    #[test]
    fn a_device_faster_than_any_sleep_is_polled_and_comes_back() {
        let mut rehearsal = Rehearsal::new("quantile:0.01").lagging(2_000);
        rehearsal.misses_in(1_000, |_| 1_500);
        // A sleep is tried occasionally; it counts like any other.
        assert!(rehearsal.misses_in(100_000, |_| 1_500) < 0.0105);
        let polled = (0..10_000).filter(|_| rehearsal.wait(1_500).plan == Plan::Poll).count();
        assert!(polled > 9_800, "{polled}");
        rehearsal.misses_in(5_000, |_| 30_000);
        assert!(matches!(rehearsal.wait(30_000).plan, Plan::Sleep { ns: 20_000.. }));
    }

    #[test]
    fn a_device_is_slept_on_where_only_a_short_sleep_fits() {
        // The run started with longer sleeps, whose lag exceeds the device's time.
        let costs = Costs { wake_lag_ns: 24_000, ..COSTS };
        let spec: PredictorSpec = "quantile:0.01".parse().expect("a predictor");
        let mut rehearsal = Rehearsal::with(spec.build(&costs)).lagging(14_000);
        rehearsal.misses_in(10_000, |random| 21_000 + random % 5_000);
        let slept = (0..1_000).filter(|_| rehearsal.wait(23_000).plan != Plan::Poll).count();
        assert_eq!(slept, 1_000);
    }
}
