//! Chooses the I/O model by its price: when to be awake, or the interrupt.
//!
//! The price is given: CPU time per unit of time that a completion is noticed sooner. After each operation it is
//! known what each way would have cost: how long it would have polled, and how late it would have been. After 200
//! operations the cheapest way is used for the next 200. Interrupts show the device's time as well as polling does,
//! so there is no blind spot: the way back is judged by the same sums. A switch needs a clear gain, so that two ways
//! with equal costs do not alternate.
//!
//! If the completion can end the sleep ("armed", detected at the first sleep that was too long), a sleep that is too
//! long costs no more than the interrupt's lag, and no operation is missed. Then later wakes compete too, at
//! quantiles that would otherwise cause too many misses. This pays on a device with two speeds: the thread sleeps
//! through the fast operations, which the interrupt ends, and is awake shortly before the slow ones.

use super::{
    Costs, DeviceTime, Outcome, Plan,
    tracker::{Aim, Tracker},
    wake_lag::WakeLag,
};

/// Number of wakes that compete if sleeps are armed; otherwise only the first is used.
const RUNGS: usize = 4;
const LATER_QUANTILES: [f64; RUNGS - 1] = [0.1, 0.25, 0.5];

const STEP_LEAST: f64 = 0.01;
const STEP_MOST: f64 = 0.5;

const WINDOW: u32 = 200;
const PRICE_SHARE_FOR_RETURN: f64 = 0.7;

/// Facts that all choices of one predictor share.
pub struct Terms {
    aims: [Aim; RUNGS],
    price: f64,
    costs: Costs,
    lag: WakeLag,
    /// `None` while unknown.
    armed: Option<bool>,
}

impl Terms {
    pub fn new(quantile: f64, price: f64, costs: &Costs) -> Self {
        let [second, third, fourth] = LATER_QUANTILES;
        let aims =
            [quantile, second, third, fourth].map(|quantile| Aim::adaptive(quantile, STEP_LEAST, STEP_MOST));
        Self { aims, price, costs: *costs, lag: WakeLag::new(costs), armed: None }
    }

    /// Learns how late sleeps are, and whether completions can end them: only then an operation is slept through
    /// without a miss. A single miss shows that they cannot, whatever was observed while other operations were in
    /// flight.
    pub fn note(&mut self, outcome: &Outcome) {
        self.lag.learn(outcome);
        if outcome.complete_at_wake {
            self.armed = Some(false);
        } else if outcome.overslept() {
            self.armed.get_or_insert(true);
        }
    }

    fn are_armed(&self) -> bool {
        self.armed == Some(true)
    }

    /// Whether a sleep is possible and saves more CPU than it costs.
    fn sleeps_until(&self, wake_ns: u64) -> bool {
        wake_ns > self.lag.ns().max(self.costs.sleep_cpu_ns)
    }

    fn rungs(&self) -> usize {
        if self.are_armed() { RUNGS } else { 1 }
    }
}

/// The competing wakes.
#[derive(Clone, Copy)]
pub struct Ladder {
    trackers: [Tracker; RUNGS],
}

impl Ladder {
    pub fn new() -> Self {
        Self { trackers: [Tracker::new(); RUNGS] }
    }

    pub fn has_begun(&self) -> bool {
        self.trackers[0].has_begun()
    }
}

/// The way in use, and the costs of every way since it was chosen.
#[derive(Clone, Copy)]
pub struct Choice {
    way: Way,
    operations: u32,
    spent: [Spent; RUNGS],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Awake { rung: usize },
    Interrupt,
}

#[derive(Clone, Copy, Default)]
struct Spent {
    /// CPU time of sleeping and polling.
    cpu_ns: u64,
    /// Time from completion to notice.
    late_ns: u64,
}

impl Choice {
    pub fn new() -> Self {
        Self { way: Way::Awake { rung: 0 }, operations: 0, spent: [Spent::default(); RUNGS] }
    }

    pub fn plan(&self, terms: &Terms, ladder: &Ladder) -> Plan {
        match self.way {
            Way::Interrupt => Plan::Interrupt,
            Way::Awake { rung } if terms.sleeps_until(ladder.trackers[rung].wake_ns()) => {
                ladder.trackers[rung].plan(terms.lag.ns())
            }
            Way::Awake { .. } => Plan::Poll,
        }
    }

    pub fn observe(&mut self, terms: &Terms, ladder: &mut Ladder, outcome: &Outcome) {
        let device = outcome.device_time(&terms.costs);
        for rung in 0..terms.rungs() {
            let tracker = &mut ladder.trackers[rung];
            let wake_ns = tracker.wake_ns();
            self.spent[rung].add(terms, wake_ns, device);
            let slept_so = matches!(outcome.plan, Plan::Sleep { .. }) && self.way == Way::Awake { rung };
            let too_late = if slept_so { Some(outcome.overslept()) } else { would_be_late(device, wake_ns) };
            if let Some(too_late) = too_late {
                tracker.learn(&terms.aims[rung], device.bound_ns(), too_late);
            }
        }
        self.operations += 1;
        if self.operations == WINDOW {
            *self = Self { way: self.best_way(terms), ..Self::new() };
        }
    }

    fn best_way(&self, terms: &Terms) -> Way {
        let total = |rung: usize| {
            let spent = &self.spent[rung];
            spent.cpu_ns as f64 + terms.price * spent.late_ns as f64
        };
        let rung = (0..terms.rungs()).min_by(|a, b| total(*a).total_cmp(&total(*b))).unwrap_or(0);
        let operations = f64::from(self.operations);
        let spent = &self.spent[rung];
        let dearer_ns = spent.cpu_ns as f64 / operations - terms.costs.interrupt_cpu_ns as f64;
        let sooner_ns = terms.costs.interrupt_lag_ns as f64 - spent.late_ns as f64 / operations;
        let price = if self.way == Way::Interrupt { PRICE_SHARE_FOR_RETURN } else { 1.0 } * terms.price;
        if sooner_ns <= 0.0 || dearer_ns > price * sooner_ns { Way::Interrupt } else { Way::Awake { rung } }
    }
}

impl Spent {
    /// Adds what being awake at that time would have cost.
    fn add(&mut self, terms: &Terms, wake_ns: u64, device: DeviceTime) {
        let costs = &terms.costs;
        let slept = terms.sleeps_until(wake_ns);
        let (wake_ns, sleep_cpu_ns) = if slept { (wake_ns, costs.sleep_cpu_ns) } else { (0, 0) };
        let (looked_ns, late_ns) = match device {
            DeviceTime::Exactly(device_ns) => {
                (device_ns.saturating_sub(wake_ns), wake_ns.saturating_sub(device_ns))
            }
            // The delay is unknown. A wake that is seldom late is only a little late: by less than the lag of waking.
            DeviceTime::AtMost(bound_ns) => (0, terms.lag.ns().min(bound_ns)),
        };
        let late_ns = if terms.are_armed() { late_ns.min(costs.interrupt_lag_ns) } else { late_ns };
        self.cpu_ns = self.cpu_ns.saturating_add(sleep_cpu_ns).saturating_add(looked_ns);
        self.late_ns = self.late_ns.saturating_add(late_ns);
    }
}

fn would_be_late(device: DeviceTime, wake_ns: u64) -> Option<bool> {
    match device {
        DeviceTime::Exactly(device_ns) => Some(device_ns <= wake_ns),
        DeviceTime::AtMost(bound_ns) => (bound_ns <= wake_ns).then_some(true),
    }
}
