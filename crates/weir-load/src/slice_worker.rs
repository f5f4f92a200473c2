//! One thread of a generator that loads several servers in turn: a runtime, and its part of all connections.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::{
        Arc,
        mpsc::{Receiver, Sender},
    },
    time::Duration,
};

use weir_engine::{
    Runtime, spawn,
    sync::Notify,
    time::{monotonic, now, timeout},
};
use weir_record::load::parts::WorkerShare;

use crate::{
    connector::Connector,
    error::{LoadError, invalid},
    open::OpenLoop,
    outcome::{Common, MissedStarts, Outcome},
    recorder::{Outbox, WindowBounds},
    spec::{Arrivals, LoadSpec, Protocol},
    spin::SpinGate,
    virtual_user::{Trigger, VirtualUser},
    worker::{
        self, POLL_INTERVAL, POLLS_PER_SPIN_CHECK, Plan, Published, RunnableWorkload, WorkloadVisitor,
        thread_delay_ns, thread_number,
    },
    worker_state::{Connected, WorkerState},
    workload::Workload,
};

/// A server, and the state the workers share for it. Its bounds are reset for every slice, while all workers wait.
#[derive(Clone)]
pub(crate) struct Target<'a> {
    pub(crate) spec: &'a LoadSpec,
    /// The workers of this process.
    pub(crate) share: WorkerShare,
    pub(crate) address: weir_engine::net::Address,
    pub(crate) bounds: Arc<WindowBounds>,
    pub(crate) outbox: Outbox,
    pub(crate) common: Common,
}

impl<'a> Target<'a> {
    pub(crate) fn new(spec: &'a LoadSpec, share: WorkerShare) -> Result<Self, LoadError> {
        let address = spec.validate()?;
        if !spec.protocol.0.facts().has_slices || spec.messages.is_some() || !spec.ramp_up.is_zero() {
            return invalid(
                "targets",
                "only a load on connections that stay, and that needs nothing between slices, can run in them",
            );
        }
        let bounds = Arc::new(WindowBounds::default());
        let common = spec.protocol.0.common(spec, &bounds)?;
        Ok(Self { spec, share, address, bounds, outbox: Outbox::default(), common })
    }
}

/// One command.
#[derive(Clone, Debug)]
pub(crate) struct SliceTask {
    pub(crate) target: usize,
    pub(crate) origin_ns: u64,
    pub(crate) arrivals: Arrivals,
    /// Messages on each connection; absent to run until the bounds stop it.
    pub(crate) messages_each: Option<u32>,
    /// How long until messages still in flight are cut off.
    pub(crate) limit: Duration,
    /// Seed of the arrivals.
    pub(crate) seed: u64,
}

/// A worker's message to the session.
pub(crate) enum Event {
    /// All connections were tried.
    Started(Started),
    /// A task is finished.
    Done(Box<Done>),
    /// The worker cannot continue.
    Failed(LoadError),
}

pub(crate) struct Started {
    pub(crate) worker: usize,
    pub(crate) driver: &'static str,
    pub(crate) thread: u32,
    /// Open connections of each target, and the text of the last failure.
    pub(crate) connections: Vec<(u32, Option<String>)>,
}

pub(crate) struct Done {
    pub(crate) worker: usize,
    pub(crate) messages: u64,
    /// When the last answer arrived.
    pub(crate) completed_ns: u64,
    pub(crate) reopened: u32,
    pub(crate) failure_last: Option<String>,
    pub(crate) spun_ns: u64,
    pub(crate) outcome: Outcome,
}

/// Runs a worker until its tasks end. `dispatch` knows the workload.
pub(crate) fn run(
    number: u32,
    targets: &[Target<'_>],
    tasks: &Receiver<SliceTask>,
    events: &Sender<Event>,
    dispatch: impl FnOnce(&SliceWorker<'_>),
) {
    let Some(first) = targets.first() else { return };
    let runtime = match worker::start(&session_plan(first, number), targets.len()) {
        Ok(runtime) => runtime,
        Err(error) => {
            // A session that no longer listens already has a reason to stop.
            let _ = events.send(Event::Failed(error));
            return;
        }
    };
    dispatch(&SliceWorker { number, first, targets, runtime: &runtime, tasks, events });
}

fn session_plan<'a>(target: &Target<'a>, number: u32) -> Plan<'a> {
    Plan {
        spec: target.spec,
        target: target.address.clone(),
        worker: target.share.first + number,
        first: target.share.first,
        bounds: Arc::clone(&target.bounds),
        outbox: Arc::clone(&target.outbox),
        published: Arc::new(Published::default()),
        common: Arc::clone(&target.common),
    }
}

/// A worker that is ready for tasks.
pub(crate) struct SliceWorker<'a> {
    number: u32,
    /// One of the targets, which are all of one protocol.
    first: &'a Target<'a>,
    targets: &'a [Target<'a>],
    runtime: &'a Runtime,
    tasks: &'a Receiver<SliceTask>,
    events: &'a Sender<Event>,
}

/// A server as one worker sees it.
struct TargetState<'a, W: Workload> {
    plan: Plan<'a>,
    workload: Rc<W>,
    connector: Rc<Connector>,
    /// Waiting connections by place; idle ones come last.
    parked: Vec<Option<Connected>>,
}

impl WorkloadVisitor for SliceWorker<'_> {
    /// Outcomes of slices are sent one by one.
    type Outcome = ();

    fn protocol(&self) -> &Protocol {
        &self.first.spec.protocol
    }

    fn visit<W: RunnableWorkload>(&self) {
        let mut targets = Vec::with_capacity(self.targets.len());
        let mut connections = Vec::with_capacity(self.targets.len());
        for target in self.targets {
            let plan = session_plan(target, self.number);
            let workload = Rc::new(plan.workload::<W>());
            let connector = Rc::new(plan.connector());
            let opened = self.runtime.block_on(worker::open_connections(&plan, &connector, &workload));
            let count = opened.connections.iter().flatten().count();
            connections.push((u32::try_from(count).unwrap_or(u32::MAX), opened.failure_last));
            targets.push(TargetState { plan, workload, connector, parked: opened.connections });
        }
        let started = Started {
            worker: self.number as usize,
            driver: self.runtime.driver().name(),
            thread: thread_number(),
            connections,
        };
        let mut listens = self.events.send(Event::Started(started)).is_ok();
        while listens {
            let Ok(task) = self.tasks.recv() else { return };
            let done = self.runtime.block_on(run_task(&mut targets[task.target], &task));
            listens = self.events.send(Event::Done(Box::new(done))).is_ok();
        }
    }
}

/// Counts the places that are still working, and wakes the task that waits for the last of them.
struct Working {
    places: Cell<usize>,
    left: Notify,
}

impl Working {
    fn leave(&self) {
        self.places.set(self.places.get() - 1);
        if self.places.get() == 0 {
            self.left.notify_all();
        }
    }

    async fn end(&self) {
        self.left.until(|| self.places.get() == 0).await;
    }
}

/// Runs one task. Connections with nothing in flight at its end are parked for the next task.
async fn run_task<W: RunnableWorkload>(target: &mut TargetState<'_, W>, task: &SliceTask) -> Done {
    let spec = LoadSpec { arrivals: task.arrivals, seed: task.seed, ..target.plan.spec.clone() };
    let plan = Plan { spec: &spec, ..target.plan.clone() };
    let places = plan.connections();
    let reopened = target.parked[..places].iter().filter(|connected| connected.is_none()).count();
    let shared = {
        let (workload, connector) = (Rc::clone(&target.workload), Rc::clone(&target.connector));
        let mut shared = worker::share(&plan, workload, connector, task.origin_ns);
        shared.parking = Some(RefCell::new(std::iter::repeat_with(|| None).take(places).collect()));
        Rc::new(shared)
    };
    let open_loop = worker::open_loop(&plan, task.origin_ns).map(Rc::new);
    let working = Rc::new(Working { places: Cell::new(places), left: Notify::default() });
    for place in 0..places {
        let user = VirtualUser {
            place,
            connected: target.parked[place].take(),
            begin_at: plan.begin_at(task.origin_ns, place),
            trigger: trigger(task, open_loop.as_ref(), place),
            is_single: false,
        };
        let (shared, working) = (Rc::clone(&shared), Rc::clone(&working));
        spawn(async move {
            W::run_user(shared, user).await;
            working.leave();
        });
    }
    if let Some(open) = &open_loop {
        let (open, shared) = (Rc::clone(open), Rc::clone(&shared));
        spawn(async move { open.dispatch(&shared).await });
    }
    attend(&shared, open_loop.as_deref(), &working, task).await;
    leave(target, &shared, open_loop.as_deref(), task, reopened)
}

fn trigger<W: Workload>(task: &SliceTask, open_loop: Option<&Rc<OpenLoop<W>>>, place: usize) -> Trigger<W> {
    match open_loop {
        Some(open) => Trigger::Open { open: Rc::clone(open), place },
        None => match task.arrivals {
            Arrivals::Closed { think } => {
                let quota = Cell::new(task.messages_each.map_or(u64::MAX, u64::from));
                Trigger::Closed { think, quota }
            }
            Arrivals::Open { .. } => unreachable!("an open loop has its schedule"),
        },
    }
}

/// Waits until every place has stopped, or the limit has passed.
async fn attend<W: Workload>(
    shared: &WorkerState<W>,
    open_loop: Option<&OpenLoop<W>>,
    working: &Working,
    task: &SliceTask,
) {
    let deadline_ns = task.origin_ns.saturating_add(u64::try_from(task.limit.as_nanos()).unwrap_or(u64::MAX));
    let mut gate = SpinGate::default();
    let mut polls = 0;
    while timeout(POLL_INTERVAL, working.end()).await.is_err() && now().as_nanos() < deadline_ns {
        let Some(open) = open_loop else { continue };
        if polls % POLLS_PER_SPIN_CHECK == 0 {
            let delay = thread_delay_ns();
            open.allow_spin(delay.is_some_and(|delay| gate.poll(monotonic().as_nanos(), delay)));
        }
        polls += 1;
        if !shared.is_running() {
            open.note_end(shared.bounds.stop_ns());
            open.dismiss();
        }
    }
    // Late messages are cut off: their tasks start nothing more, and park their connections where they are never used
    // again.
    shared.is_over.set(true);
}

fn leave<W: Workload>(
    target: &mut TargetState<'_, W>,
    shared: &WorkerState<W>,
    open_loop: Option<&OpenLoop<W>>,
    task: &SliceTask,
    reopened: usize,
) -> Done {
    if let Some(parking) = &shared.parking {
        for (place, connected) in parking.borrow_mut().iter_mut().enumerate() {
            target.parked[place] = connected.take();
        }
    }
    let window_ns = (task.origin_ns, shared.bounds.stop_ns());
    let missed = open_loop.map(|open| open.pass_over(window_ns, u64::MAX, |_| ())).unwrap_or_default();
    let mut recorder = shared.recorder.borrow_mut();
    let leftover = recorder.finish(now().as_nanos());
    Done {
        worker: target.plan.place(),
        messages: recorder.completed(),
        completed_ns: recorder.completed_ns(),
        reopened: u32::try_from(reopened).unwrap_or(u32::MAX),
        failure_last: recorder.failure_last().map(str::to_owned),
        spun_ns: open_loop.map_or(0, OpenLoop::spun_ns),
        outcome: Outcome {
            leftover,
            // Missed starts show whether a slice kept its rate; they are not counted as errors as well.
            missed: MissedStarts { overdue: 0, ..missed },
            completed: recorder.completed(),
            failure_first: recorder.failure_first().cloned(),
            connections: recorder.connections().map(|notes| notes.clone()),
            totals: shared.workload.totals(),
        },
    }
}
