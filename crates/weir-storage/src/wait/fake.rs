//! An engine and a clock in virtual time. Every operation takes the time given by the test, every poll costs 100 ns,
//! and nothing is random.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    io,
    rc::Rc,
    time::Duration,
};

use crate::{
    engine::{Completed, Engine, Operation},
    wait::time::Time,
};

/// Cost of a submission.
pub(crate) const SUBMIT_NS: u64 = 1_000;
/// Cost of one poll.
pub(crate) const LOOK_NS: u64 = 100;
/// From completion to a thread that waited for the interrupt.
pub(crate) const INTERRUPT_NS: u64 = 3_000;
/// Time that a sleep lasts beyond its request.
pub(crate) const LAG_NS: u64 = 10_000;

/// Virtual time, shared by the engine and the clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct World(Rc<Cell<u64>>);

impl World {
    pub(crate) fn now_ns(&self) -> u64 {
        self.0.get()
    }

    fn advance(&self, length_ns: u64) {
        self.0.set(self.0.get() + length_ns);
    }
}

/// The virtual clock.
#[derive(Debug)]
pub(crate) struct FakeTime(pub(crate) World);

impl Time for FakeTime {
    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }

    fn thread_cpu_ns(&self) -> u64 {
        self.0.now_ns() / 2
    }

    fn relax(&self) {
        self.0.advance(10);
    }

    fn sleep(&mut self, _engine: &mut dyn Engine, length_ns: u64) -> io::Result<()> {
        self.0.advance(length_ns + LAG_NS);
        Ok(())
    }
}

/// Operations submitted so far, for inspection by tests.
pub(crate) type Journal = Rc<RefCell<Vec<(u64, Operation)>>>;

/// The engine. After its list of times is used up, every operation takes the last one.
#[derive(Debug)]
pub(crate) struct FakeEngine {
    world: World,
    times_ns: VecDeque<u64>,
    /// Results of failing operations, by number in order of submission.
    failures: Vec<(u64, i32)>,
    in_flight: Vec<(u64, Completed)>,
    submitted: u64,
    taken_max: usize,
    has_ring: bool,
    buffers: Vec<Vec<u8>>,
    journal: Journal,
}

impl FakeEngine {
    pub(crate) fn new(world: &World, times_ns: &[u64]) -> Self {
        Self {
            world: world.clone(),
            times_ns: times_ns.iter().copied().collect(),
            failures: Vec::new(),
            in_flight: Vec::new(),
            submitted: 0,
            taken_max: usize::MAX,
            has_ring: true,
            buffers: vec![vec![0; 4096]; 64],
            journal: Journal::default(),
        }
    }

    pub(crate) fn idle() -> Self {
        Self::new(&World::default(), &[1])
    }

    pub(crate) fn without_a_ring() -> Self {
        Self { has_ring: false, ..Self::idle() }
    }

    pub(crate) fn failing(mut self, failures: &[(u64, i32)]) -> Self {
        self.failures = failures.to_vec();
        self
    }

    /// Sets the times of operations, one after the other.
    pub(crate) fn lasting(mut self, times_ns: &[u64]) -> Self {
        self.times_ns = times_ns.iter().copied().collect();
        self
    }

    pub(crate) fn taking(mut self, taken_max: usize) -> Self {
        self.taken_max = taken_max;
        self
    }

    pub(crate) fn journal(&self) -> Journal {
        Rc::clone(&self.journal)
    }

    fn first_done_ns(&self) -> Option<u64> {
        self.in_flight.iter().map(|(done_ns, _)| *done_ns).min()
    }

    fn reap(&mut self, completed: &mut Vec<Completed>) {
        let now_ns = self.world.now_ns();
        self.in_flight.retain(|(done_ns, operation)| {
            if *done_ns <= now_ns {
                completed.push(*operation);
            }
            *done_ns > now_ns
        });
    }
}

impl Engine for FakeEngine {
    fn buffer(&mut self, slot: u32) -> &mut [u8] {
        &mut self.buffers[slot as usize]
    }

    fn submit(&mut self, operations: &[Operation]) -> io::Result<usize> {
        let taken = operations.len().min(self.taken_max);
        let start_ns = self.world.now_ns();
        for operation in &operations[..taken] {
            let time_ns = if self.times_ns.len() > 1 {
                self.times_ns.pop_front()
            } else {
                self.times_ns.front().copied()
            };
            let failure = self.failures.iter().find(|(number, _)| *number == self.submitted);
            let result = failure.map_or(operation.bytes as i32, |(_, result)| *result);
            let done_ns = start_ns + time_ns.expect("a fake engine has a time");
            self.in_flight.push((done_ns, Completed { slot: operation.slot, result }));
            self.journal.borrow_mut().push((start_ns, *operation));
            self.submitted += 1;
        }
        self.world.advance(SUBMIT_NS);
        Ok(taken)
    }

    fn poll(&mut self, completed: &mut Vec<Completed>) -> io::Result<()> {
        self.world.advance(LOOK_NS);
        self.reap(completed);
        Ok(())
    }

    fn wait(&mut self, completed: &mut Vec<Completed>) -> io::Result<()> {
        if let Some(done_ns) = self.first_done_ns() {
            let told_ns = done_ns + INTERRUPT_NS;
            self.world.advance(told_ns.saturating_sub(self.world.now_ns()));
        }
        self.reap(completed);
        Ok(())
    }

    fn wait_at_most(&mut self, limit: Duration, completed: &mut Vec<Completed>) -> io::Result<()> {
        let end_ns = self.world.now_ns() + limit.as_nanos() as u64;
        match self.first_done_ns() {
            Some(done_ns) if done_ns + INTERRUPT_NS <= end_ns => return self.wait(completed),
            _ => self.world.advance(end_ns + LAG_NS - self.world.now_ns()),
        }
        self.reap(completed);
        Ok(())
    }

    fn sleep_whole(&mut self, length: Duration) -> Option<io::Result<()>> {
        self.has_ring.then(|| {
            self.world.advance(length.as_nanos() as u64 + LAG_NS);
            Ok(())
        })
    }
}
