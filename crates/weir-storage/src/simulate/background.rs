//! Background cores: each handles its completions one by one, and issues a further operation for each.

use weir_stats::random::{Random, derived_seed};

use super::{draws, ring::Ring, scenario::Phase};

struct Core {
    free_ns: u64,
    /// When each of its issued operations reaches the device, in order.
    on_the_way: Ring<u64>,
}

pub(super) struct Background {
    cores: Box<[Core]>,
    operation_ns: u64,
    random: Random,
    /// When each operation on the device completes, in order, as far as it has left its unit.
    leaving: Ring<u64>,
    on_device: u64,
    /// CPU of all cores since the start.
    busy_ns: u64,
}

impl Background {
    pub(super) fn new(cores: usize, operations_max: usize, operation_ns: u64, seed: u64) -> Self {
        let core = |_| Core { free_ns: 0, on_the_way: Ring::new(operations_max) };
        Self {
            cores: (0..cores).map(core).collect(),
            operation_ns,
            random: Random::seeded(derived_seed(seed, 2)),
            leaving: Ring::new(operations_max),
            on_device: 0,
            busy_ns: 0,
        }
    }

    pub(super) fn cores(&self) -> usize {
        self.cores.len()
    }

    /// Starts a job: its cores issue their operations one after the other, each core from a different time on.
    /// Returns the first arrival of each core.
    pub(super) fn begin<'a>(
        &'a mut self,
        phase: &'a Phase,
        now_ns: u64,
    ) -> impl Iterator<Item = Option<u64>> + 'a {
        let (operation_ns, random, busy_ns) = (self.operation_ns, &mut self.random, &mut self.busy_ns);
        self.cores.iter_mut().enumerate().map(move |(index, core)| {
            core.on_the_way.clear();
            core.free_ns = now_ns + draws::uniform(random, 0, operation_ns);
            if index < phase.background_cores as usize {
                for _ in 0..phase.background_depth {
                    core.free_ns += operation_ns;
                    *busy_ns += operation_ns;
                    core.on_the_way.push(core.free_ns);
                }
            }
            core.on_the_way.first()
        })
    }

    /// The first operation of a core reaches the device. Returns the time of the next one.
    #[inline]
    pub(super) fn arrive(&mut self, core: usize) -> Option<u64> {
        let on_the_way = &mut self.cores[core].on_the_way;
        on_the_way.pop();
        self.on_device += 1;
        on_the_way.first()
    }

    /// A background operation has passed the units and will complete.
    #[inline]
    pub(super) fn leave(&mut self, now_ns: u64, done_ns: u64) {
        self.forget_done(now_ns);
        self.leaving.push(done_ns);
    }

    /// A core's operation completes at `done_ns`, and the core issues another. Returns that operation's time if it is
    /// the core's only one on its way to the device.
    #[inline]
    pub(super) fn again(&mut self, core: usize, done_ns: u64) -> Option<u64> {
        let core = &mut self.cores[core];
        core.free_ns = core.free_ns.max(done_ns) + self.operation_ns;
        self.busy_ns += self.operation_ns;
        let is_only = core.on_the_way.is_empty();
        core.on_the_way.push(core.free_ns);
        is_only.then_some(core.free_ns)
    }

    /// Operations issued and not completed.
    #[inline]
    pub(super) fn in_flight(&mut self, now_ns: u64) -> u32 {
        self.forget_done(now_ns);
        u32::try_from(self.on_device).unwrap_or(u32::MAX)
    }

    pub(super) fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    #[inline]
    fn forget_done(&mut self, now_ns: u64) {
        while self.leaving.first().is_some_and(|done_ns| done_ns <= now_ns) {
            self.leaving.pop();
            self.on_device -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(background_cores: u32, background_depth: u32) -> Phase {
        Phase { name: "x".to_owned(), length_ns: 1, background_cores, background_depth }
    }

    #[test]
    fn a_core_hands_over_one_operation_after_the_other() {
        let mut background = Background::new(2, 8, 100, 1);
        let first: Vec<Option<u64>> = background.begin(&phase(1, 3), 1_000).collect();
        let start_ns = first[0].expect("one core works");
        assert!((1_100..=1_200).contains(&start_ns) && first[1].is_none());
        assert_eq!(background.arrive(0), Some(start_ns + 100));
        assert_eq!(background.arrive(0), Some(start_ns + 200));
        // It is busy until its third issue; then it handles the completion.
        assert_eq!(background.again(0, start_ns + 50), None);
        assert_eq!(background.arrive(0), Some(start_ns + 300));
        assert_eq!(background.arrive(0), None);
        assert_eq!(background.again(0, start_ns + 10_000), Some(start_ns + 10_100));
        assert_eq!(background.busy_ns(), 500);
    }

    #[test]
    fn in_flight_is_what_was_handed_over_and_is_not_done() {
        let mut background = Background::new(1, 8, 100, 1);
        let _ = background.begin(&phase(1, 2), 0).count();
        assert_eq!(background.in_flight(0), 0);
        background.arrive(0);
        background.arrive(0);
        background.leave(500, 600);
        assert_eq!(background.in_flight(599), 2);
        assert_eq!(background.in_flight(600), 1);
    }
}
