//! The device: units with queues, one pipe after them, and a delay.
//!
//! A unit and the pipe are first come, first served, so the time an operation leaves is known at its arrival: after
//! the previous one, or at once, plus its own time. Only the order in which the units feed the pipe requires events.

use weir_stats::random::{Random, derived_seed};

use super::{
    draws,
    ring::Ring,
    scenario::{DeviceModel, StartTransient},
    schedule::NEVER,
};

/// Owner of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Owner {
    /// The foreground thread.
    Foreground,
    /// This background core.
    Background(u32),
    /// A job that has ended: it is served, but its completion is ignored.
    #[default]
    Gone,
}

/// An operation in a unit.
#[derive(Clone, Copy, Debug, Default)]
struct Inside {
    leaves_ns: u64,
    owner: Owner,
}

struct Unit {
    free_ns: u64,
    inside: Ring<Inside>,
}

/// An operation that has left its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) owner: Owner,
    /// When the host can see it complete.
    pub(super) done_ns: u64,
    /// When the next one leaves the same unit, or [`NEVER`].
    pub(super) next_ns: u64,
}

pub(super) struct Device {
    units: Box<[Unit]>,
    model: DeviceModel,
    pipe_free_ns: u64,
    /// The foreground has a separate random sequence: while it is alone, its operation times do not depend on how it
    /// waits.
    foreground: Random,
    background: Random,
    transient: Option<StartTransient>,
    transient_end_ns: u64,
}

impl Device {
    pub(super) fn new(model: DeviceModel, operations_max: usize, seed: u64) -> Self {
        let unit = |_| Unit { free_ns: 0, inside: Ring::new(operations_max) };
        Self {
            units: (0..model.units).map(unit).collect(),
            model,
            pipe_free_ns: 0,
            foreground: Random::seeded(derived_seed(seed, 0)),
            background: Random::seeded(derived_seed(seed, 1)),
            transient: None,
            transient_end_ns: 0,
        }
    }

    pub(super) fn units(&self) -> usize {
        self.units.len()
    }

    /// Starts a phase: earlier background operations are ignored from now on.
    pub(super) fn begin(&mut self, now_ns: u64, transient: Option<StartTransient>) {
        for unit in &mut self.units {
            unit.inside.for_each(|inside| {
                if inside.owner != Owner::Foreground {
                    inside.owner = Owner::Gone;
                }
            });
        }
        self.transient = transient;
        self.transient_end_ns = transient.map_or(0, |transient| now_ns.saturating_add(transient.length_ns));
    }

    /// An operation reaches a unit. Returns the unit, and when the operation leaves if the unit was empty.
    #[inline]
    pub(super) fn arrive(&mut self, owner: Owner, now_ns: u64) -> (usize, Option<u64>) {
        let DeviceModel { service_ns, service_jitter_ns, .. } = self.model;
        let random = if owner == Owner::Foreground { &mut self.foreground } else { &mut self.background };
        let chosen = random.below(self.units.len() as u64) as usize;
        let mut taken_ns =
            draws::uniform(random, service_ns - service_jitter_ns, service_ns + service_jitter_ns);
        if now_ns < self.transient_end_ns {
            let percent = self.transient.map_or(100, |transient| transient.service_percent);
            taken_ns = taken_ns * u64::from(percent) / 100;
        }
        let unit = &mut self.units[chosen];
        unit.free_ns = unit.free_ns.max(now_ns) + taken_ns;
        let is_first = unit.inside.is_empty();
        unit.inside.push(Inside { leaves_ns: unit.free_ns, owner });
        (chosen, is_first.then_some(unit.free_ns))
    }

    /// The first operation of a unit leaves it now.
    #[inline]
    pub(super) fn leave(&mut self, unit: usize, now_ns: u64) -> Left {
        let inside = &mut self.units[unit].inside;
        let first = inside.pop().expect("an operation leaves only where one is");
        let next_ns = inside.first().map_or(NEVER, |next| next.leaves_ns);
        self.pipe_free_ns = self.pipe_free_ns.max(now_ns) + self.model.pipe_ns;
        Left { owner: first.owner, done_ns: self.pipe_free_ns + self.model.base_ns, next_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 5;

    fn one_unit(service_ns: u64) -> DeviceModel {
        DeviceModel { units: 1, service_ns, service_jitter_ns: 0, pipe_ns: 0, base_ns: 0 }
    }

    #[test]
    fn alone_an_operation_takes_service_pipe_and_delay() {
        let model = DeviceModel { service_jitter_ns: 0, ..DeviceModel::zet_983() };
        let mut device = Device::new(model, 1, SEED);
        for start_ns in [0, 50_000, 1_000_000] {
            let (unit, leaves_ns) = device.arrive(Owner::Foreground, start_ns);
            assert_eq!(leaves_ns, Some(start_ns + model.service_ns));
            let left = device.leave(unit, start_ns + model.service_ns);
            assert_eq!(left.done_ns, start_ns + model.alone_ns());
            assert_eq!((left.owner, left.next_ns), (Owner::Foreground, NEVER));
        }
    }

    #[test]
    fn a_unit_never_rests_while_somebody_waits() {
        let mut device = Device::new(one_unit(10), 8, SEED);
        assert_eq!(device.arrive(Owner::Background(0), 100), (0, Some(110)));
        assert_eq!(device.arrive(Owner::Background(1), 101), (0, None));
        assert_eq!(device.arrive(Owner::Background(2), 119), (0, None));
        assert_eq!(device.leave(0, 110).next_ns, 120);
        assert_eq!(device.leave(0, 120).next_ns, 130);
        assert_eq!(device.leave(0, 130).next_ns, NEVER);
        assert_eq!(device.arrive(Owner::Background(0), 200), (0, Some(210)));
    }

    #[test]
    fn the_pipe_takes_one_at_a_time() {
        let model = DeviceModel { pipe_ns: 7, base_ns: 100, ..one_unit(1) };
        let mut device = Device::new(model, 4, SEED);
        for _ in 0..3 {
            device.arrive(Owner::Background(0), 0);
        }
        let done: Vec<u64> = [1, 2, 3].map(|now_ns| device.leave(0, now_ns).done_ns).into();
        assert_eq!(done, [108, 115, 122]);
    }

    #[test]
    fn poisson_arrivals_at_one_unit_wait_as_the_formula_says() {
        // M/D/1: the mean wait is utilisation times service over twice the idle share (Pollaczek and Khinchine).
        for utilisation in [0.3, 0.6, 0.8] {
            let service_ns = 1_000_000_u64;
            let mut device = Device::new(one_unit(service_ns), 1 << 16, SEED);
            let mut random = Random::seeded(SEED);
            let (mut now_ns, mut waited_ns, count) = (0_u64, 0_u64, 1_000_000_u64);
            for _ in 0..count {
                now_ns += draws::exponential(&mut random, (service_ns as f64 / utilisation) as u64);
                while device.units[0].inside.first().is_some_and(|first| first.leaves_ns <= now_ns) {
                    device.units[0].inside.pop();
                }
                device.arrive(Owner::Foreground, now_ns);
                waited_ns += device.units[0].free_ns - service_ns - now_ns;
            }
            let found = waited_ns as f64 / count as f64 / service_ns as f64;
            let expected = utilisation / (2.0 * (1.0 - utilisation));
            assert!(
                (found / expected - 1.0).abs() < 0.03,
                "seed {SEED}: {found} for {expected} at {utilisation}"
            );
        }
    }

    #[test]
    fn a_transient_stretches_service_until_it_ends() {
        let mut device = Device::new(one_unit(10), 4, SEED);
        device.begin(1_000, Some(StartTransient { length_ns: 500, service_percent: 300 }));
        assert_eq!(device.arrive(Owner::Foreground, 1_499), (0, Some(1_529)));
        device.leave(0, 1_529);
        assert_eq!(device.arrive(Owner::Foreground, 1_600), (0, Some(1_610)));
    }

    #[test]
    fn operations_of_a_job_that_ended_belong_to_nobody() {
        let mut device = Device::new(one_unit(10), 4, SEED);
        device.arrive(Owner::Background(3), 0);
        device.arrive(Owner::Foreground, 0);
        device.begin(5, None);
        assert_eq!(device.leave(0, 10).owner, Owner::Gone);
        assert_eq!(device.leave(0, 20).owner, Owner::Foreground);
    }
}
