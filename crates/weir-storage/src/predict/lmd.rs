//! Begunkov's proposal of 2019, never merged: mean less four times the lower mean deviation.
//!
//! It is updated every 100 ms. The deviation uses times below the mean of the previous epoch, so that one pass is
//! enough; an epoch without such a mean, or without times below it, sleeps for half of its own mean. A miss counts when
//! the operation took less than the mean: a late timer alone does not count. Above one miss in 32 operations the
//! sleep falls back to half of the mean, above one in 256 to three quarters of its value, and it is never less than
//! half.

use super::{
    ELAPSED_NS_MAX, Issued, Outcome, Plan, Predictor,
    epoch::Epoch,
    size_class::{CLASSES, size_class},
};

const EPOCH_NS: u64 = 100_000_000;

/// Mean less four lower deviations.
pub struct Lmd {
    epoch: Epoch,
    classes: [Class; CLASSES],
}

#[derive(Clone, Copy, Default)]
struct Class {
    mean_ns: u64,
    sleep_ns: u64,
    gathered: Gathered,
}

#[derive(Clone, Copy, Default)]
struct Gathered {
    total_ns: u64,
    operations: u64,
    below_ns: u64,
    below: u64,
    misses: u64,
}

impl Lmd {
    pub fn new() -> Self {
        Self { epoch: Epoch::new(EPOCH_NS), classes: [Class::default(); CLASSES] }
    }

    fn close_epoch(&mut self, now_ns: u64) {
        if self.epoch.has_ended(now_ns) {
            self.classes.iter_mut().for_each(Class::close_epoch);
        }
    }
}

impl Class {
    fn close_epoch(&mut self) {
        let gathered = std::mem::take(&mut self.gathered);
        let Some(mean_ns) = gathered.total_ns.checked_div(gathered.operations) else { return };
        let half_ns = mean_ns.div_ceil(2);
        let deviation_ns = gathered.below_ns.checked_div(gathered.below);
        let wanted_ns = deviation_ns
            .map_or(half_ns, |deviation_ns| mean_ns.saturating_sub(4 * deviation_ns).max(half_ns));
        let operations_for_a_miss = gathered.operations.checked_div(gathered.misses);
        self.sleep_ns = match operations_for_a_miss.and_then(u64::checked_ilog2) {
            Some(0..=4) => half_ns,
            Some(5..=7) => (wanted_ns * 3 / 4).max(half_ns),
            Some(8..) | None => wanted_ns,
        };
        self.mean_ns = mean_ns;
    }
}

impl Predictor for Lmd {
    fn plan(&mut self, issued: &Issued) -> Plan {
        self.close_epoch(issued.now_ns);
        Plan::sleep_or_poll(self.classes[size_class(issued.bytes, issued.direction)].sleep_ns)
    }

    fn observe(&mut self, outcome: &Outcome) {
        self.close_epoch(outcome.now_ns);
        self.epoch.note_completion(outcome.now_ns);
        let class = &mut self.classes[size_class(outcome.bytes, outcome.direction)];
        let elapsed_ns = outcome.elapsed_ns.min(ELAPSED_NS_MAX);
        let gathered = &mut class.gathered;
        gathered.total_ns = gathered.total_ns.saturating_add(elapsed_ns);
        gathered.operations += 1;
        if elapsed_ns < class.mean_ns {
            gathered.below_ns = gathered.below_ns.saturating_add(class.mean_ns - elapsed_ns);
            gathered.below += 1;
            gathered.misses += u64::from(outcome.overslept());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::predict::{Plan, rehearsal::Rehearsal};

    fn epoch(rehearsal: &mut Rehearsal, device_ns: &[u64]) {
        let mut device_ns = device_ns.iter().copied().cycle();
        let mut wait = || rehearsal.wait(device_ns.next().expect("a cycle")).now_ns;
        let end_ns = wait() + 100_000_000;
        while wait() < end_ns {}
    }

    fn slept_ns(rehearsal: &mut Rehearsal) -> u64 {
        match rehearsal.wait(10_000).plan {
            Plan::Sleep { ns } => ns,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_sleep_is_half_of_the_mean_first_and_four_deviations_below_it_then() {
        let mut rehearsal = Rehearsal::new("lmd");
        epoch(&mut rehearsal, &[9_900, 10_100]);
        assert!(slept_ns(&mut rehearsal).abs_diff(5_000) <= 2);
        epoch(&mut rehearsal, &[9_900, 10_100]);
        // Deviation 100 ns below the mean of 10 000 ns.
        assert!(slept_ns(&mut rehearsal).abs_diff(9_600) <= 10);
    }

    #[test]
    fn a_wide_distribution_gets_half_of_the_mean() {
        let mut rehearsal = Rehearsal::new("lmd");
        for _ in 0..3 {
            epoch(&mut rehearsal, &[6_000, 14_000]);
        }
        assert!(slept_ns(&mut rehearsal).abs_diff(5_000) <= 10);
    }

    #[test]
    fn misses_make_it_cautious() {
        let mut rehearsal = Rehearsal::new("lmd");
        epoch(&mut rehearsal, &[9_900, 10_100]);
        epoch(&mut rehearsal, &[9_900, 10_100]);
        // One operation in ten ends before the sleep of 9.6 µs does.
        epoch(&mut rehearsal, &[5_000, 9_900, 10_100, 9_900, 10_100, 9_900, 10_100, 9_900, 10_100, 10_100]);
        assert!(slept_ns(&mut rehearsal) < 5_100);
    }
}
