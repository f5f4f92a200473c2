//! A run from its specification to its report: this thread starts the workers, opens and closes the window, and adds
//! up. It runs no load itself. A generator of several runs some of the workers, and opens the window when their
//! coordinator says so.
//!
//! Workers and coordinator share two moments (the bounds), a box of finished intervals, and a few counts per worker.
//! The coordinator publishes a bound and reads CPU times at once. The workers attribute messages by comparing times.
//! So figures that are divided by each other later (CPU by messages) cover the same window.

use std::{
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::{self, ScopedJoinHandle},
    time::Duration,
};

use weir_engine::{net::Address, time::monotonic};
use weir_evidence::limits::{connection_budget, raise_nofile};
use weir_record::{
    failure::FailureCounts,
    load::{
        LoadReport,
        parts::{LoadPart, PartAnswer, PartOrder, PartPhase, SECONDS_MAX, SecondPart, WorkerShare},
    },
    window::ObservedWindow,
};

use crate::{
    dispatch::dispatch_workload,
    error::{LoadError, invalid},
    gather::Gather,
    lead::{Lead, Led, LedState, PartControl},
    limits::{Pinned, ensure_limits},
    outcome::{Common, Outcome, WorkerOutcomes},
    progress::{Phase, Progress, Ticker},
    recorder::{Outbox, WindowBounds},
    report::{self, Measured},
    spec::LoadSpec,
    warmup::{self, Warmup},
    window_readings::{ThreadTimes, WindowReadings},
    worker::{self, Event, Plan, Published, thread_number},
};

/// How often the coordinator checks whether it was asked to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How often it checks whether the workers have ended.
const END_POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Time for all workers to learn the common start.
const LEAD: Duration = Duration::from_millis(2);
/// How long after its end a bucket of the warm-up is evaluated: workers publish every 10 ms.
const BUCKET_GRACE: Duration = Duration::from_millis(15);

/// Runs a load and reports what it measured.
///
/// `progress` is called about once a second, on this thread. When `stop` becomes true the run ends early. If the
/// window is open, the report covers the shorter window; before that, the result is [`LoadError::Interrupted`].
///
/// # Errors
/// Fails when there is nothing to report; see [`LoadError`]. Failures of single connections and messages are counts
/// in the report, not errors.
pub fn run(
    spec: &LoadSpec,
    progress: &mut dyn FnMut(Progress),
    stop: &AtomicBool,
) -> Result<LoadReport, LoadError> {
    let share = WorkerShare { first: 0, workers: spec.workers, all: spec.workers };
    let mut lead = Lead::Own(Ticker::new(progress));
    run_workers(spec, share, &mut lead, stop).map(|(part, _)| part.report)
}

/// Runs the share of a generator in a load of several, and reports what it measured, with the seconds of the window
/// that the coordinator has not taken yet. The specification is that of the whole load.
///
/// # Errors
/// As [`run`].
pub fn run_part(
    spec: &LoadSpec,
    share: WorkerShare,
    control: &mut dyn PartControl,
    stop: &AtomicBool,
) -> Result<(LoadPart, Vec<SecondPart>), LoadError> {
    check_share(share, spec)?;
    let (mut part, seconds) = run_workers(spec, share, &mut Lead::Other(Led::by(control)), stop)?;
    // The coordinator makes them from the histograms of the seconds.
    part.report.seconds.clear();
    Ok((part, seconds))
}

/// Refuses a share that is none of the load's workers.
fn check_share(share: WorkerShare, spec: &LoadSpec) -> Result<(), LoadError> {
    let end = share.first.checked_add(share.workers);
    if share.workers == 0 || share.all != spec.workers || end.is_none_or(|end| end > share.all) {
        return invalid("workers", format!("{share:?} is no share of {} workers", spec.workers));
    }
    Ok(())
}

fn run_workers(
    spec: &LoadSpec,
    share: WorkerShare,
    lead: &mut Lead<'_>,
    stop: &AtomicBool,
) -> Result<(LoadPart, Vec<SecondPart>), LoadError> {
    let target = spec.validate()?;
    let connections = share.part_of(spec.connections) + share.part_of(spec.idle_connections);
    ensure_limits(spec, (connections, share.workers), &target, connection_budget(), || raise_nofile().ok())?;
    let _pinned = Pinned::new(&spec.pin)?;
    let readings = WindowReadings::new(spec)?;
    let bounds = Arc::new(WindowBounds::default());
    let outbox = Outbox::default();
    let common = spec.protocol.0.common(spec, &bounds)?;
    let mut gather = Gather::new(share.workers as usize, spec.sections());
    if lead.led().is_some() {
        gather.hand_over_seconds();
    }
    thread::scope(|scope| {
        let (events, inbox) = mpsc::channel();
        let mut crew = Crew {
            spec,
            share,
            bounds: Arc::clone(&bounds),
            outbox: Arc::clone(&outbox),
            members: Vec::new(),
        };
        let started = crew.start(scope, &target, &events, &common);
        drop(events);
        let coordinator = Coordinator {
            spec,
            stop,
            crew: &crew,
            readings,
            gather,
            lead,
            threads: vec![0; share.workers as usize],
            driver: "",
        };
        let outcome = started.and_then(|()| coordinator.conduct(&inbox));
        if bounds.close_ns() == u64::MAX {
            bounds.close(monotonic().as_nanos());
        }
        match &outcome {
            Ok(_) => crew.await_end(lead, stop),
            Err(_) => bounds.give_up(),
        }
        let outcomes = crew.join()?;
        let (measured, mut gather) = outcome?;
        gather.take_all(&outbox);
        let outcomes = WorkerOutcomes { each: &outcomes, common };
        let part = report::build_part(spec, &measured, &mut gather, &outcomes);
        Ok((part, gather.take_seconds(usize::MAX)))
    })
}

/// The workers, seen from outside.
struct Crew<'scope, 'run> {
    spec: &'run LoadSpec,
    share: WorkerShare,
    bounds: Arc<WindowBounds>,
    outbox: Outbox,
    members: Vec<Member<'scope>>,
}

struct Member<'scope> {
    handle: ScopedJoinHandle<'scope, Option<Outcome>>,
    begin: Sender<u64>,
    published: Arc<Published>,
}

impl<'scope, 'run> Crew<'scope, 'run> {
    fn start<'env>(
        &mut self,
        scope: &'scope thread::Scope<'scope, 'env>,
        target: &Address,
        events: &Sender<Event>,
        common: &Common,
    ) -> Result<(), LoadError>
    where
        'run: 'scope,
    {
        let first = self.share.first;
        for worker in first..first + self.share.workers {
            let published = Arc::new(Published::default());
            let plan = Plan {
                spec: self.spec,
                target: target.clone(),
                worker,
                first,
                bounds: Arc::clone(&self.bounds),
                outbox: Arc::clone(&self.outbox),
                published: Arc::clone(&published),
                common: Arc::clone(common),
            };
            let (begin, begun) = mpsc::channel();
            let events = events.clone();
            let handle = thread::Builder::new()
                .name(format!("weir-load-{worker}"))
                .spawn_scoped(scope, move || {
                    worker::run(&plan, &events, &begun, |context| dispatch_workload(context))
                })
                .map_err(|error| LoadError::Environment(format!("cannot start a thread: {error}")))?;
            self.members.push(Member { handle, begin, published });
        }
        Ok(())
    }

    /// Waits until all workers have ended, or the user no longer wants answers to what is in flight.
    fn await_end(&self, lead: &mut Lead<'_>, stop: &AtomicBool) {
        let is_unfinished = || self.members.iter().any(|member| !member.handle.is_finished());
        while is_unfinished() && !stop.load(Ordering::Relaxed) && !lead.has_stopped() {
            lead.pause(END_POLL_INTERVAL, |_| self.answer(PartPhase::Ending));
        }
        self.bounds.give_up();
    }

    /// What the workers have counted so far.
    fn answer(&self, phase: PartPhase) -> PartAnswer {
        PartAnswer {
            phase,
            messages: self.sum(|published| published.completed.load(Ordering::Relaxed)),
            in_flight: self.sum(|published| published.in_flight.load(Ordering::Relaxed)),
            errors: self.sum(|published| published.errors.load(Ordering::Relaxed)),
            failure_last: self.failure_last(),
            ..PartAnswer::default()
        }
    }

    /// Waits for all workers. Workers that were never started end at once.
    fn join(self) -> Result<Vec<Outcome>, LoadError> {
        let mut outcomes = Vec::new();
        let mut panicked = None;
        for Member { handle, begin, .. } in self.members {
            drop(begin);
            match handle.join() {
                Ok(outcome) => outcomes.extend(outcome),
                Err(panic) => {
                    let text = panic.downcast_ref::<String>().map(String::as_str);
                    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
                    panicked = Some(LoadError::Panicked(text.to_owned()));
                }
            }
        }
        panicked.map_or(Ok(outcomes), Err)
    }

    fn has_dead_member(&self) -> bool {
        self.members.iter().any(|member| member.handle.is_finished())
    }

    fn sum(&self, count: impl Fn(&Published) -> u64) -> u64 {
        self.members.iter().map(|member| count(&member.published)).sum()
    }

    fn spun_ns(&self) -> Vec<u64> {
        self.members.iter().map(|member| member.published.spun_ns.load(Ordering::Relaxed)).collect()
    }

    /// When the last message of a counted run ended, after all workers are done.
    fn finished_ns(&self) -> Option<u64> {
        let ends = self.members.iter().map(|member| member.published.finished_ns.load(Ordering::Acquire));
        ends.map(|end| (end > 0).then_some(end)).collect::<Option<Vec<u64>>>()?.into_iter().max()
    }

    fn failure_last(&self) -> Option<String> {
        let texts = self.members.iter().map(|member| {
            member.published.failure_last.lock().unwrap_or_else(PoisonError::into_inner).clone()
        });
        texts.flatten().last()
    }
}

/// The run, seen from the coordinating thread.
struct Coordinator<'a, 'lead> {
    spec: &'a LoadSpec,
    stop: &'a AtomicBool,
    crew: &'a Crew<'a, 'a>,
    readings: WindowReadings,
    gather: Gather,
    lead: &'a mut Lead<'lead>,
    /// Kernel numbers of the workers' threads.
    threads: Vec<u32>,
    driver: &'static str,
}

/// How the wait for a moment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    Reached,
    Stopped,
    /// A counted run ended at this time.
    Finished(u64),
}

/// CPU times at the bounds.
struct Usage {
    threads: ThreadTimes,
    spun_ns: Vec<u64>,
}

impl Coordinator<'_, '_> {
    /// Conducts the run until the window is closed.
    fn conduct(mut self, inbox: &Receiver<Event>) -> Result<(Measured, Gather), LoadError> {
        self.await_connections(inbox)?;
        self.await_start()?;
        let origin_ns = (monotonic() + LEAD).as_nanos();
        let has_warmup = !self.spec.warmup_max.is_zero();
        if !has_warmup {
            self.readings.before_open()?;
            self.crew.bounds.open(origin_ns);
        }
        for member in &self.crew.members {
            // If a worker is gone, `join` reports it.
            let _ = member.begin.send(origin_ns);
        }
        self.lead.carried_out(if has_warmup { PartPhase::WarmingUp } else { PartPhase::Measuring });
        let warmup_steady = has_warmup && self.warm_up(origin_ns)?;
        if has_warmup {
            self.readings.before_open()?;
            // An order to open may come before the workers have begun.
            self.crew.bounds.open(monotonic().as_nanos().max(origin_ns));
            self.lead.carried_out(PartPhase::Measuring);
        }
        let before = self.usage();
        self.readings.opened()?;
        let open_ns = self.crew.bounds.open_ns();
        let duration_ns = u64::try_from(self.spec.duration.as_nanos()).unwrap_or(u64::MAX);
        self.begin(Phase::Measuring, open_ns, self.spec.duration);
        let close_ns = match self.wait_until(open_ns.saturating_add(duration_ns)) {
            Waited::Finished(end_ns) if end_ns > open_ns => end_ns,
            // A load that is ended at once has a window of no length.
            _ => monotonic().as_nanos().max(open_ns),
        };
        self.crew.bounds.close(close_ns);
        let after = self.usage();
        let observed = self.readings.closed();
        let measured = self.measured(origin_ns, warmup_steady, &before, &after, observed);
        Ok((measured, self.gather))
    }

    fn measured(
        &self,
        origin_ns: u64,
        warmup_steady: bool,
        before: &Usage,
        after: &Usage,
        observed: Option<ObservedWindow>,
    ) -> Measured {
        let bounds = &self.crew.bounds;
        let spun_ns: Vec<u64> =
            after.spun_ns.iter().zip(&before.spun_ns).map(|(after, before)| after - before).collect();
        Measured {
            driver: self.driver,
            share: self.crew.share,
            origin_ns,
            warmup_ns: bounds.open_ns() - origin_ns,
            warmup_steady,
            window_ns: bounds.close_ns() - bounds.open_ns(),
            threads: after.threads.since(&before.threads),
            spun_ns,
            observed,
        }
    }

    /// CPU time of the workers, in order, and of this thread.
    fn usage(&self) -> Usage {
        let mut threads = self.threads.clone();
        threads.push(thread_number());
        let mut threads = ThreadTimes::read(&threads);
        // A worker ends soon after the window, or before its end in a counted run; it publishes its CPU time when it
        // ends.
        for (cpu_ns, member) in threads.cpu_ns.iter_mut().zip(&self.crew.members) {
            *cpu_ns = (*cpu_ns).max(member.published.cpu_ns.load(Ordering::Acquire));
        }
        Usage { threads, spun_ns: self.crew.spun_ns() }
    }

    /// Waits until every worker has tried all its connections.
    fn await_connections(&mut self, inbox: &Receiver<Event>) -> Result<(), LoadError> {
        let patience = self.spec.connect_timeout;
        self.begin(Phase::Connecting, monotonic().as_nanos(), patience);
        let (mut waiting, mut opened) = (self.crew.share.workers, 0);
        let (mut failures, mut failure_last) = (FailureCounts::default(), None);
        while waiting > 0 {
            match inbox.recv_timeout(POLL_INTERVAL) {
                Ok(Event::Ready { worker, driver, thread }) => {
                    self.driver = driver;
                    self.threads[worker] = thread;
                }
                Ok(Event::Connected { opened: more, failures: counts, failure_last: text }) => {
                    waiting -= 1;
                    opened += more;
                    failures.merge(&counts);
                    failure_last = text.or(failure_last);
                }
                Ok(Event::Failed(error)) => return Err(error),
                Err(RecvTimeoutError::Timeout) if !self.crew.has_dead_member() => {}
                Err(_) => return Err(LoadError::Panicked("before it had opened its connections".into())),
            }
            self.pause(Duration::ZERO);
            if self.is_stopped() {
                return Err(LoadError::Interrupted);
            }
            self.tick();
        }
        if opened > 0 {
            return Ok(());
        }
        let reason = failure_last.unwrap_or_else(|| "no attempt was made".into());
        Err(LoadError::Unreachable { target: self.spec.target.clone(), reason, failures: Box::new(failures) })
    }

    /// Waits until a coordinator says that the load starts. Without one it starts at once.
    fn await_start(&mut self) -> Result<(), LoadError> {
        let Some(led) = self.lead.led() else { return Ok(()) };
        led.phase = PartPhase::Connected;
        while !self.lead.take(PartOrder::Start) {
            if self.is_stopped() || self.crew.has_dead_member() {
                return Err(LoadError::Interrupted);
            }
            self.pause(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Waits until the load is steady (true) or the warm-up has lasted long enough (false). A coordinator says when it
    /// ends; then it is `true` if the load was steady at that moment.
    fn warm_up(&mut self, origin_ns: u64) -> Result<bool, LoadError> {
        let ramp_ns = u64::try_from(self.spec.ramp_up.as_nanos()).unwrap_or(u64::MAX);
        let cap_ns = u64::try_from(self.spec.warmup_max.as_nanos()).unwrap_or(u64::MAX);
        let end_ns = origin_ns.saturating_add(ramp_ns).saturating_add(cap_ns);
        let bucket_ns = warmup::BUCKET.as_nanos() as u64;
        let mut warmup = Warmup::default();
        self.begin(Phase::WarmingUp, origin_ns, self.spec.ramp_up.saturating_add(self.spec.warmup_max));
        // Buckets before the last connection has begun show the ramp.
        for bucket in ramp_ns.div_ceil(bucket_ns).. {
            let bucket_end_ns = origin_ns + (bucket + 1) * bucket_ns;
            let look_ns = bucket_end_ns + BUCKET_GRACE.as_nanos() as u64;
            let is_led = self.lead.led().is_some();
            let until_ns =
                if is_led { look_ns } else { look_ns.min(end_ns + BUCKET_GRACE.as_nanos() as u64) };
            if self.wait_until(until_ns) == Waited::Stopped {
                return Err(LoadError::Interrupted);
            }
            if let Some(led) = self.lead.led() {
                let was_steady = led.is_steady;
                if self.lead.take(PartOrder::Open) {
                    return Ok(was_steady);
                }
            }
            if !is_led && bucket_end_ns > end_ns {
                return Ok(false);
            }
            let is_steady = warmup.push(self.gather.bucket(bucket));
            match self.lead.led() {
                Some(led) => led.is_steady = is_steady,
                None if is_steady => return Ok(true),
                None if bucket_end_ns == end_ns => return Ok(false),
                None => {}
            }
        }
        Ok(false)
    }

    /// Waits until a moment, taking what the workers hand over and reporting progress meanwhile.
    fn wait_until(&mut self, until_ns: u64) -> Waited {
        loop {
            self.gather.take_all(&self.crew.outbox);
            self.tick();
            if self.is_stopped() || self.crew.has_dead_member() {
                return Waited::Stopped;
            }
            let is_warming = |led: &mut LedState| led.phase == PartPhase::WarmingUp;
            if self.lead.led().is_some_and(|led| is_warming(led) && led.ordered == Some(PartOrder::Open)) {
                return Waited::Reached;
            }
            if let Some(end_ns) = self.crew.finished_ns().filter(|_| self.spec.messages.is_some()) {
                return Waited::Finished(end_ns);
            }
            let now_ns = monotonic().as_nanos();
            if now_ns >= until_ns {
                return Waited::Reached;
            }
            self.pause(POLL_INTERVAL.min(Duration::from_nanos(until_ns - now_ns)));
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.lead.has_stopped()
    }

    /// Waits for at most this long, and answers a coordinator meanwhile.
    fn pause(&mut self, longest: Duration) {
        let (crew, gather) = (self.crew, &mut self.gather);
        self.lead.pause(longest, |led| PartAnswer {
            is_steady: led.is_steady,
            seconds: gather.take_seconds(SECONDS_MAX),
            ..crew.answer(led.phase)
        });
    }

    fn begin(&mut self, phase: Phase, now_ns: u64, planned: Duration) {
        if let Lead::Own(ticker) = self.lead {
            ticker.begin(phase, now_ns, planned);
        }
    }

    fn tick(&mut self) {
        let crew = self.crew;
        let seconds = &self.gather.seconds;
        let Lead::Own(ticker) = self.lead else { return };
        ticker.tick(monotonic().as_nanos(), || Progress {
            messages: crew.sum(|published| published.completed.load(Ordering::Relaxed)),
            in_flight: crew.sum(|published| published.in_flight.load(Ordering::Relaxed)),
            errors: crew.sum(|published| published.errors.load(Ordering::Relaxed)),
            failure_last: crew.failure_last(),
            second: seconds.last().copied(),
            ..Progress::default()
        });
    }
}
