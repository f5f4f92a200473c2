//! A generator that loads several servers in turn, one time slice each, over connections that stay open meanwhile.
//!
//! Nothing runs between two commands: the workers block on their channel, so that the controller may read the
//! servers' clocks while they sleep. A slice ends when its last answer has arrived, and everything started in it
//! belongs to it; so clocks read before and after it cover exactly its messages.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use weir_engine::time::monotonic;
use weir_evidence::limits::{connection_budget, raise_nofile};
use weir_record::{
    load::{LoadReport, parts::WorkerShare},
    slices::{SliceAnswer, SliceCommand, SliceCounts},
};

use crate::{
    dispatch::dispatch_workload,
    error::{LoadError, invalid},
    gather::Gather,
    limits::{Pinned, ensure_limits},
    outcome::{Outcome, WorkerOutcomes},
    report::{self, Measured},
    slice_worker::{self, Done, Event, SliceTask, Started, Target},
    spec::{Arrivals, LoadSpec},
    window_readings::ThreadTimes,
};

/// Most servers in one session.
pub const TARGETS_MAX: usize = 64;
/// Longest slice.
pub const SLICE_MAX: Duration = Duration::from_secs(60);
/// Most messages on each connection in one prime.
pub const PRIME_MESSAGES_MAX: u32 = 4096;
/// How long the last answers of a slice may take; after that their connections are cut off and reopened.
pub const DRAIN_MAX: Duration = Duration::from_secs(1);

/// Time for all workers to learn of a slice.
const LEAD: Duration = Duration::from_micros(200);
/// How often a wait checks whether it was asked to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Source of commands and sink of answers.
pub trait Control {
    /// The next command; `None` ends the session.
    fn next(&mut self) -> Option<SliceCommand>;

    /// Takes an answer; returns `false` when there is no receiver any more.
    fn answer(&mut self, answer: &SliceAnswer) -> bool;
}

/// Executes commands until they end. All specifications must have the same kind of message and the same shape: they
/// differ only in their target.
///
/// # Errors
/// Fails when the session cannot start, or a worker died. A failing server is counted; it is not an error.
pub fn run_slices(specs: &[LoadSpec], control: &mut dyn Control, stop: &AtomicBool) -> Result<(), LoadError> {
    let Some(first) = specs.first().filter(|_| specs.len() <= TARGETS_MAX) else {
        return invalid("targets", format!("{} are not possible; use 1 to {TARGETS_MAX}", specs.len()));
    };
    if specs.iter().any(|spec| !spec.protocol.is_like(&first.protocol)) {
        return invalid("targets", "all must be of one protocol");
    }
    let share = WorkerShare { first: 0, workers: first.workers, all: first.workers };
    let targets = specs.iter().map(|spec| Target::new(spec, share)).collect::<Result<Vec<_>, _>>()?;
    let sockets = specs.iter().map(LoadSpec::sockets).sum();
    ensure_limits(first, (sockets, share.workers), &targets[0].address, connection_budget(), || {
        raise_nofile().ok()
    })?;
    let _pinned = Pinned::new(&first.pin)?;
    let (events, inbox) = mpsc::channel();
    thread::scope(|scope| {
        let mut tasks = Vec::new();
        for number in 0..share.workers {
            let (task, received) = mpsc::channel();
            let (events, targets) = (events.clone(), targets.clone());
            thread::Builder::new()
                .name(format!("weir-load-{number}"))
                .spawn_scoped(scope, move || {
                    slice_worker::run(number, &targets, &received, &events, |worker| {
                        dispatch_workload(worker)
                    })
                })
                .map_err(|error| LoadError::Environment(format!("cannot start a thread: {error}")))?;
            tasks.push(task);
        }
        drop(events);
        Session {
            specs,
            share,
            targets: &targets,
            tasks,
            inbox,
            stop,
            tallies: Vec::new(),
            threads: Vec::new(),
        }
        .conduct(control)
    })
}

/// Sums over a target's slices.
struct Tally {
    gather: Gather,
    measured: Measured,
    outcomes: Vec<Outcome>,
}

/// The session, seen from the thread that takes the commands.
struct Session<'a> {
    specs: &'a [LoadSpec],
    share: WorkerShare,
    targets: &'a [Target<'a>],
    tasks: Vec<Sender<SliceTask>>,
    inbox: Receiver<Event>,
    stop: &'a AtomicBool,
    tallies: Vec<Tally>,
    /// Kernel numbers of the workers' threads.
    threads: Vec<u32>,
}

impl Session<'_> {
    fn conduct(mut self, control: &mut dyn Control) -> Result<(), LoadError> {
        let ready = self.await_connections()?;
        if !control.answer(&ready) {
            return Ok(());
        }
        while let Some(command) = control.next() {
            let answer = match command {
                SliceCommand::Prime { target, messages_each } => {
                    if messages_each > PRIME_MESSAGES_MAX {
                        return invalid("messages_each", format!("use 1 to {PRIME_MESSAGES_MAX}"));
                    }
                    SliceAnswer::Done(self.prime(self.index(target)?, messages_each)?)
                }
                SliceCommand::Run { target, length_ns, is_timed, arrivals_seed } => {
                    let length = Duration::from_nanos(length_ns);
                    if length.is_zero() || length > SLICE_MAX {
                        return invalid("length_ns", format!("use up to {SLICE_MAX:?}"));
                    }
                    let target = self.index(target)?;
                    SliceAnswer::Done(self.slice(target, length, is_timed, arrivals_seed)?)
                }
                SliceCommand::Finish => {
                    control.answer(&SliceAnswer::Finished(self.reports()));
                    return Ok(());
                }
            };
            if !control.answer(&answer) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn index(&self, target: u32) -> Result<usize, LoadError> {
        let index = target as usize;
        if index < self.targets.len() {
            return Ok(index);
        }
        invalid("target", format!("{target} is not one of the {} targets", self.targets.len()))
    }

    /// Waits until every worker has tried all its connections.
    fn await_connections(&mut self) -> Result<SliceAnswer, LoadError> {
        let workers = self.tasks.len();
        self.threads = vec![0; workers];
        let mut driver = "";
        let mut opened = vec![0; self.targets.len()];
        let mut failures = vec![None; self.targets.len()];
        for _ in 0..workers {
            match self.receive(None)? {
                Event::Started(Started { worker, driver: name, thread, connections }) => {
                    driver = name;
                    self.threads[worker] = thread;
                    for (target, (count, failure)) in connections.into_iter().enumerate() {
                        opened[target] += count;
                        failures[target] = failure.or(failures[target].take());
                    }
                }
                Event::Failed(error) => return Err(error),
                Event::Done(_) => unreachable!("no task was given"),
            }
        }
        let tally = |spec: &LoadSpec| Tally {
            gather: Gather::new(workers, spec.sections()),
            measured: Measured {
                driver,
                share: self.share,
                origin_ns: 0,
                warmup_ns: 0,
                warmup_steady: true,
                window_ns: 0,
                threads: ThreadTimes { cpu_ns: vec![0; workers], delay_ns: vec![0; workers] },
                spun_ns: vec![0; workers],
                observed: None,
            },
            outcomes: Vec::new(),
        };
        self.tallies = self.specs.iter().map(tally).collect();
        Ok(SliceAnswer::Ready { opened, failures })
    }

    /// Sends a few messages on each connection; they are not measured.
    fn prime(&mut self, target: usize, messages_each: u32) -> Result<SliceCounts, LoadError> {
        let Target { spec, bounds, .. } = &self.targets[target];
        bounds.restart(u64::MAX);
        let origin_ns = monotonic().as_nanos();
        let limit = spec.connect_timeout + spec.response_timeout;
        let task = SliceTask {
            target,
            origin_ns,
            arrivals: Arrivals::Closed { think: Duration::ZERO },
            messages_each: Some(messages_each),
            limit,
            seed: 0,
        };
        self.carry_out(&task, None, false)
    }

    /// Loads a target, and adds the measurement to its tally if the slice is timed.
    fn slice(
        &mut self,
        target: usize,
        length: Duration,
        is_timed: bool,
        arrivals_seed: u64,
    ) -> Result<SliceCounts, LoadError> {
        let Target { spec, bounds, .. } = &self.targets[target];
        let origin_ns = (monotonic() + LEAD).as_nanos();
        bounds.restart(origin_ns);
        let task = SliceTask {
            target,
            origin_ns,
            arrivals: spec.arrivals,
            messages_each: None,
            limit: length + DRAIN_MAX,
            seed: arrivals_seed,
        };
        self.carry_out(&task, Some(length), is_timed)
    }

    fn carry_out(
        &mut self,
        task: &SliceTask,
        length: Option<Duration>,
        is_timed: bool,
    ) -> Result<SliceCounts, LoadError> {
        let before = ThreadTimes::read(&self.threads);
        for worker in &self.tasks {
            // If a worker is gone, the wait for it reports that.
            let _ = worker.send(task.clone());
        }
        if let Some(length) = length {
            let until = task.origin_ns.saturating_add(nanoseconds(length));
            thread::sleep(Duration::from_nanos(until.saturating_sub(monotonic().as_nanos())));
            self.targets[task.target].bounds.stop(monotonic().as_nanos());
        }
        let mut counts = SliceCounts::default();
        let (mut outcomes, mut spun_ns) = (Vec::new(), vec![0; self.tasks.len()]);
        for _ in 0..self.tasks.len() {
            let done = match self.receive(Some(task.limit + DRAIN_MAX))? {
                Event::Done(done) => done,
                Event::Failed(error) => return Err(error),
                Event::Started(_) => unreachable!("every worker has started"),
            };
            let Done { worker, messages, completed_ns, reopened, failure_last, spun_ns: spun, outcome } =
                *done;
            counts.messages += messages;
            counts.length_ns = counts.length_ns.max(completed_ns.saturating_sub(task.origin_ns));
            counts.reopened += reopened;
            let mut outcome = outcome;
            let failures = &mut outcome.leftover.failures;
            // The server had the full time, and has no load any more.
            failures.response_timeout += std::mem::take(&mut failures.cut_off_at_end);
            counts.failures.merge(failures);
            counts.missed_starts += outcome.missed.starts;
            counts.failure_last = failure_last.or(counts.failure_last.take());
            spun_ns[worker] = spun;
            outcomes.push(outcome);
        }
        let used = ThreadTimes::read(&self.threads).since(&before);
        counts.generator_cpu_ns = used.cpu_ns.iter().sum();
        if is_timed {
            self.add(task.target, &counts, &used, &spun_ns, outcomes);
        } else {
            let outbox = &self.targets[task.target].outbox;
            std::mem::take(&mut *outbox.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        }
        Ok(counts)
    }

    fn add(
        &mut self,
        target: usize,
        counts: &SliceCounts,
        used: &ThreadTimes,
        spun_ns: &[u64],
        outcomes: Vec<Outcome>,
    ) {
        let tally = &mut self.tallies[target];
        tally.gather.take_all(&self.targets[target].outbox);
        let measured = &mut tally.measured;
        measured.window_ns += counts.length_ns;
        let add = |sums: &mut Vec<u64>, more: &[u64]| {
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        };
        add(&mut measured.threads.cpu_ns, &used.cpu_ns);
        add(&mut measured.threads.delay_ns, &used.delay_ns);
        add(&mut measured.spun_ns, spun_ns);
        tally.outcomes.extend(outcomes);
    }

    /// The next event of a worker, within `limit` if there is one.
    fn receive(&self, limit: Option<Duration>) -> Result<Event, LoadError> {
        let deadline = limit.map(|limit| monotonic() + limit);
        loop {
            match self.inbox.recv_timeout(POLL_INTERVAL) {
                Ok(event) => return Ok(event),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(LoadError::Panicked("every thread of the generator has ended".into()));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(LoadError::Interrupted);
            }
            if deadline.is_some_and(|deadline| monotonic() > deadline) {
                return Err(LoadError::Panicked("a thread of the generator did not end its slice".into()));
            }
        }
    }

    fn reports(&mut self) -> Vec<LoadReport> {
        let tallies = std::mem::take(&mut self.tallies);
        let report = |(index, mut tally): (usize, Tally)| {
            let common = Arc::clone(&self.targets[index].common);
            let outcomes = WorkerOutcomes { each: &tally.outcomes, common };
            let mut report = report::build(&self.specs[index], &tally.measured, &mut tally.gather, &outcomes);
            // Seconds of different slices are not consecutive.
            report.seconds.clear();
            report
        };
        tallies.into_iter().enumerate().map(report).collect()
    }
}

fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}
