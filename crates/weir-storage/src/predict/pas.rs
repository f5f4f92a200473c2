//! PAS (DPAS, FAST '26): lengthen the sleep a little while it is too short, shorten it much once it was too long.
//!
//! Each size class multiplies its sleep by a factor that the last two results choose: the same result again makes the
//! factor stronger, a change of the result resets it. The steps themselves heat up (5 %) while results repeat and
//! cool down (10 %) when they change. Shortening is ten times as strong as lengthening, which makes one sleep in five
//! too long in any steady state: after a miss it takes four steps, 1 + 2 + 3 + 4 = 10, to be back.
//!
//! With several operations in flight only the first result for a sleep's length counts, and the first operation after
//! it uses the new length.

use super::{
    Issued, Outcome, Plan, Predictor, SLEEP_NS_MAX,
    size_class::{CLASSES, size_class},
};

const MILLION: i64 = 1_000_000;
const SLEEP_NS_MIN: i64 = 100;
const UP_MILLIONTHS_MIN: i64 = 1_000;
const UP_MILLIONTHS_MAX: i64 = 10_000;
const DOWN_FOR_UP: i64 = 10;
/// No sleep grows more than a thousandfold at once; keeps products far from overflow.
const FACTOR_MILLIONTHS_MAX: i64 = 1_000 * MILLION;

/// One sleep for each size class.
pub struct Pas {
    classes: [PasSleep; CLASSES],
}

/// The sleep of one size class and its adaptation. DPAS uses it too.
#[derive(Clone, Copy)]
pub struct PasSleep {
    sleep_ns: i64,
    factor_millionths: i64,
    up_millionths: i64,
    down_for_up: i64,
    before_last: Ending,
    last: Ending,
    /// Whether a result has arrived that the sleep has not followed yet.
    pending: bool,
    /// Whether the result of the current sleep is known.
    reported: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    TooShort,
    TooLong,
}

/// The sleep for an operation.
pub struct NextSleep {
    pub plan: Plan,
    /// Whether the sleep would have been shorter than a timer can do.
    pub at_floor: bool,
}

impl PasSleep {
    pub fn new() -> Self {
        Self::with_ratio(DOWN_FOR_UP)
    }

    fn with_ratio(down_for_up: i64) -> Self {
        Self {
            sleep_ns: SLEEP_NS_MIN,
            factor_millionths: MILLION,
            up_millionths: UP_MILLIONTHS_MAX,
            down_for_up,
            before_last: Ending::TooLong,
            last: Ending::TooShort,
            pending: true,
            reported: false,
        }
    }

    pub fn next(&mut self) -> NextSleep {
        let at_floor = std::mem::take(&mut self.pending) && self.follow_result();
        NextSleep { plan: Plan::sleep_or_poll(self.sleep_ns.unsigned_abs()), at_floor }
    }

    pub fn observe(&mut self, outcome: &Outcome) {
        let in_use = Plan::Sleep { ns: self.sleep_ns.unsigned_abs() };
        if self.reported || outcome.plan != in_use {
            return;
        }
        self.reported = true;
        self.pending = true;
        self.before_last = self.last;
        self.last = if outcome.overslept() { Ending::TooLong } else { Ending::TooShort };
    }

    /// Adapts the sleep; returns whether it reached the floor.
    fn follow_result(&mut self) -> bool {
        let (up, down) = (self.up_millionths, self.up_millionths * self.down_for_up);
        let factor = match (self.before_last, self.last) {
            (Ending::TooShort, Ending::TooShort) => self.factor_millionths + up,
            (Ending::TooLong, Ending::TooLong) => self.factor_millionths - down,
            (Ending::TooShort, Ending::TooLong) => MILLION - down,
            (Ending::TooLong, Ending::TooShort) => MILLION + up,
        };
        let factor = if factor > 0 { factor.min(FACTOR_MILLIONTHS_MAX) } else { MILLION };
        let wanted_ns = self.sleep_ns * factor / MILLION;
        self.factor_millionths = factor;
        self.sleep_ns = wanted_ns.clamp(SLEEP_NS_MIN, SLEEP_NS_MAX.cast_signed());
        let step = if self.before_last == self.last { up * 105 / 100 } else { up * 9 / 10 };
        self.up_millionths = step.clamp(UP_MILLIONTHS_MIN, UP_MILLIONTHS_MAX);
        self.reported = false;
        wanted_ns < SLEEP_NS_MIN
    }
}

impl Pas {
    pub fn new() -> Self {
        Self { classes: [PasSleep::new(); CLASSES] }
    }
}

impl Predictor for Pas {
    fn plan(&mut self, issued: &Issued) -> Plan {
        self.classes[size_class(issued.bytes, issued.direction)].next().plan
    }

    fn observe(&mut self, outcome: &Outcome) {
        self.classes[size_class(outcome.bytes, outcome.direction)].observe(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::rehearsal::Rehearsal;

    fn rehearsal(down_for_up: i64) -> Rehearsal {
        let sleep = PasSleep::with_ratio(down_for_up);
        Rehearsal::with(Box::new(Pas { classes: [sleep; CLASSES] }))
    }

    #[test]
    fn the_first_sleep_is_a_hundredth_above_the_floor_and_the_next_grow_faster() {
        let mut rehearsal = rehearsal(DOWN_FOR_UP);
        let plans: Vec<Plan> = (0..3).map(|_| rehearsal.wait(15_000).plan).collect();
        assert_eq!(plans, [101, 102, 104].map(|ns| Plan::Sleep { ns }));
    }

    #[test]
    fn a_constant_device_is_missed_once_in_five_times() {
        let mut rehearsal = rehearsal(DOWN_FOR_UP);
        rehearsal.misses_in(2_000, |_| 15_000);
        let share = rehearsal.misses_in(20_000, |_| 15_000);
        assert!((0.18..0.23).contains(&share), "{share}");
    }

    #[test]
    fn equal_steps_miss_every_second_time() {
        let mut rehearsal = rehearsal(1);
        rehearsal.misses_in(2_000, |_| 15_000);
        let share = rehearsal.misses_in(20_000, |_| 15_000);
        assert!((0.45..0.55).contains(&share), "{share}");
    }

    #[test]
    fn only_the_first_result_of_a_length_counts() {
        let mut sleep = PasSleep::new();
        let mut outcome = Rehearsal::new("pas").wait(15_000);
        let first = sleep.next().plan;
        assert_eq!(sleep.next().plan, first);
        outcome.plan = first;
        outcome.complete_at_wake = false;
        sleep.observe(&outcome);
        outcome.complete_at_wake = true;
        sleep.observe(&outcome);
        assert_eq!(sleep.next().plan, Plan::Sleep { ns: 102 });
    }

    #[test]
    fn the_sleep_stays_within_its_limits() {
        let mut rehearsal = rehearsal(DOWN_FOR_UP);
        for _ in 0..20_000 {
            assert!(matches!(rehearsal.wait(u64::MAX / 4).plan, Plan::Sleep { ns: 100..=SLEEP_NS_MAX }));
        }
        for _ in 0..20_000 {
            assert!(matches!(rehearsal.wait(0).plan, Plan::Sleep { ns: 100..=SLEEP_NS_MAX }));
        }
        assert_eq!(rehearsal.wait(0).plan, Plan::Sleep { ns: 100 });
    }
}
