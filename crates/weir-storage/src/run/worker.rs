//! One thread of a job, from its engine to its notes. The engine is created, used and dropped in the thread.

use std::sync::{
    Condvar, Mutex, OnceLock, PoisonError,
    atomic::{AtomicBool, AtomicU64},
    mpsc::Sender,
};

use weir_record::storage::{DeviceClock, StorageJob};
use weir_sys::usage::ThreadUsage;

use super::{
    RunError,
    contents::{Contents, Written},
    gather::{JobThreadReport, empty_meter},
    job_thread::{JobThread, Parts, Schedule, Shared},
    ledger::Ledger,
    recorder::Recorder,
};
use crate::{
    engine::{self, Engine},
    job::{Offsets, offsets},
    output::log::OperationLog,
    predict::{Costs, PredictorSpec},
    wait::{Calibration, Method, RealTime, Waiter, calibrate},
};

/// The task of one thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member<'a> {
    /// Index in the group.
    pub(super) index: usize,
    /// Index of its job in the group.
    pub(super) job_index: usize,
    pub(super) job: &'a StorageJob,
    /// Thread of the job, from 0.
    pub(super) thread: u32,
    /// Bytes of the file that the job uses.
    pub(super) used_bytes: u64,
    pub(super) ledger: Option<&'a Ledger>,
    /// Number of the run.
    pub(super) run: u64,
}

/// A thread's message to its supervisor.
#[derive(Debug)]
pub(super) enum Message {
    /// It is ready, with this thread id; or it cannot start.
    Ready(usize, Result<u32, RunError>),
    /// Its run is over; its engine still exists.
    Done(usize),
    /// It has ended.
    Gone(usize),
}

/// Something that all threads of a group wait for.
#[derive(Debug)]
pub(super) struct Latch<T> {
    state: Mutex<Option<T>>,
    changed: Condvar,
}

impl<T: Copy> Latch<T> {
    pub(super) fn new() -> Self {
        Self { state: Mutex::new(None), changed: Condvar::new() }
    }

    pub(super) fn open(&self, value: T) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        self.changed.notify_all();
    }

    fn wait(&self) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(value) = *state {
                return value;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// State that the threads of a group share.
#[derive(Debug)]
pub(super) struct Crew {
    /// Start of the group; `None` if it does not start.
    pub(super) start: Latch<Option<u64>>,
    /// Engines may be dropped.
    pub(super) release: Latch<()>,
    pub(super) stop: AtomicBool,
    /// Operations of each thread.
    pub(super) completed: Vec<Counter>,
    /// One per job, set by its first thread.
    pub(super) calibrations: Vec<OnceLock<Calibration>>,
}

/// A count in a separate cache line: its thread writes it after each wait.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Counter(pub(super) AtomicU64);

/// Sends a message when its thread ends, in every case.
struct ExitNotice<'a> {
    index: usize,
    messages: &'a Sender<Message>,
}

impl Drop for ExitNotice<'_> {
    fn drop(&mut self) {
        // There is no receiver if the group was given up.
        let _ = self.messages.send(Message::Gone(self.index));
    }
}

/// What is created before the group starts.
struct Prepared {
    engine: Box<dyn Engine>,
    log: Option<OperationLog>,
    offsets: Offsets,
    contents: Contents,
    fill_ns: Option<u64>,
}

/// The life of a thread. Returns `None` if the group did not start.
pub(super) fn work(
    member: Member<'_>,
    crew: &Crew,
    messages: &Sender<Message>,
) -> Option<(JobThreadReport, Option<Written>)> {
    let _exit_notice = ExitNotice { index: member.index, messages };
    let number = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    let prepared = match prepare(&member, &crew.calibrations[member.job_index]) {
        Ok(prepared) => prepared,
        Err(error) => {
            let _ = messages.send(Message::Ready(member.index, Err(error)));
            return None;
        }
    };
    let _ = messages.send(Message::Ready(member.index, Ok(number)));
    let start_ns = crew.start.wait()?;
    let calibration = crew.calibrations[member.job_index].get();
    let fill_ns = prepared.fill_ns;
    let mut job_thread = match job_thread(&member, prepared, calibration, crew, start_ns) {
        Ok(job_thread) => job_thread,
        Err(mut report) => {
            report.thread_number = number;
            return Some((*report, None));
        }
    };
    let broken = job_thread.run().err().map(|error| error.to_string());
    let (engine, mut recorder, written) = job_thread.into_parts();
    let log = recorder.finish_log().err().map(|error| format!("its log cannot be written: {error}"));
    let _ = messages.send(Message::Done(member.index));
    // Helper threads of the engine are read before they end.
    crew.release.wait();
    drop(engine);
    Some((JobThreadReport { thread_number: number, recorder, broken: broken.or(log), fill_ns }, written))
}

fn prepare(member: &Member<'_>, calibration: &OnceLock<Calibration>) -> Result<Prepared, RunError> {
    let job = member.job;
    let name = || job.name.clone();
    if let Some(cpu) = job.cpus.get(member.thread as usize % job.cpus.len().max(1)) {
        weir_sys::affinity::pin_current_thread(&[*cpu]).map_err(|source| RunError::Pin {
            job: name(),
            cpu: *cpu,
            source,
        })?;
    }
    let mut engine =
        engine::open(job, member.thread).map_err(|source| RunError::Engine { job: name(), source })?;
    if member.thread == 0 && wants_calibration(job) {
        let blocks = calibrate::Blocks {
            first_byte: job.offset_bytes,
            count: offsets::blocks(member.used_bytes, job.block_bytes),
            block_bytes: job.block_bytes,
        };
        match calibrate::calibrate(engine.as_mut(), job.completion.sleep, blocks, job.seed) {
            Ok(found) => drop(calibration.set(found)),
            Err(source) if is_hybrid(job) => return Err(RunError::Calibrate { job: name(), source }),
            // Only estimates become coarser.
            Err(_) => {}
        }
    }
    // After the calibration, which reads the file.
    if job.drops_cache {
        // What cannot be dropped is read from memory, as any later reader would.
        let _ = engine::target::drop_cache(job);
    }
    let log =
        OperationLog::create(job, member.thread).map_err(|source| RunError::Log { job: name(), source })?;
    let offsets = Offsets::new(job, member.thread, member.used_bytes);
    let contents = Contents::new(job, member.thread, member.used_bytes, member.ledger, member.run);
    let wants_cost = member.thread == 0 && job.pattern.writes();
    let fill_ns = wants_cost.then(|| contents.fill_ns(engine.buffer(0)));
    Ok(Prepared { engine, log, offsets, contents, fill_ns })
}

/// A predictor needs the costs of waiting. With one operation in flight the figures of other methods profit too: it
/// separates the device's part from the interrupt's.
fn wants_calibration(job: &StorageJob) -> bool {
    job.engine.is_asynchronous()
        && (is_hybrid(job) || (job.depth == 1 && job.direct && job.rate_iops.is_none()))
}

pub(super) fn is_hybrid(job: &StorageJob) -> bool {
    !matches!(job.completion.predictor.as_str(), "interrupt" | "poll")
}

/// Creates the loop. If that fails, the report contains the reason and no figures.
fn job_thread<'a>(
    member: &Member<'a>,
    prepared: Prepared,
    calibration: Option<&Calibration>,
    crew: &'a Crew,
    start_ns: u64,
) -> Result<JobThread<'a, RealTime>, Box<JobThreadReport>> {
    let job = member.job;
    let Prepared { engine, log, offsets, contents, .. } = prepared;
    let meter = empty_meter(job, calibration, DeviceClock::Observed);
    let keeps_journal = job.device_clock == DeviceClock::Tracepoint;
    let recorder = Recorder::new(meter, log, engine.is_asynchronous(), keeps_journal);
    let costs = calibration.map_or(NO_COSTS, |found| found.costs);
    let primitive = calibration.map_or(job.completion.sleep, |found| found.primitive);
    let broken = |mut recorder: Recorder, reason| {
        recorder.close(start_ns, 0, ThreadUsage::default());
        Box::new(JobThreadReport { thread_number: 0, recorder, broken: Some(reason), fill_ns: None })
    };
    let (method, time) = match (method(job, &costs), RealTime::new(primitive)) {
        (Ok(method), Ok(time)) => (method, time),
        (Err(reason), _) => return Err(broken(recorder, reason)),
        (_, Err(error)) => return Err(broken(recorder, error.to_string())),
    };
    let shared = Shared { stop: &crew.stop, completed: &crew.completed[member.index].0 };
    let schedule = Schedule::new(job, start_ns);
    let waiter = Waiter::new(time, method, costs);
    Ok(JobThread::new(Parts { job, engine, waiter, recorder, offsets, contents, schedule, shared }))
}

const NO_COSTS: Costs =
    Costs { submit_ns: 0, sleep_cpu_ns: 0, interrupt_cpu_ns: 0, interrupt_lag_ns: 0, wake_lag_ns: 0 };

fn method(job: &StorageJob, costs: &Costs) -> Result<Method, String> {
    Ok(match job.completion.predictor.as_str() {
        "interrupt" => Method::Interrupt,
        "poll" => Method::Poll,
        spec => {
            let spec: PredictorSpec = spec.parse().map_err(|error| format!("{error}"))?;
            Method::Hybrid { predictor: spec.build(costs), armed: job.completion.armed }
        }
    })
}
