//! Jobs that run at the same time: their threads are created, start together, are supervised, and are gathered.

use std::{
    collections::HashSet,
    path::Path,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    thread,
    time::{Duration, SystemTime},
};

use weir_evidence::{
    process::ThreadSample,
    system::{ProcessUse, SystemSnapshot, noise_window},
};
use weir_record::storage::{DeviceClock, StorageCpu, StorageJob, StorageJobReport, StorageRow};

use super::{
    JobProgress, Progress, RunError,
    contents::{self, Written},
    cpu::{self, Helpers, MachineBusy},
    gather::{HostDefaults, JobThreadReport, job_report},
    job_thread::Schedule,
    ledger::Ledger,
    recorder::Recorder,
    rows::Rows,
    tracing::Tracing,
    worker::{Counter, Crew, Latch, Member, Message, work},
};
use crate::wait::time::now_ns;

/// Time from the readiness of all threads to the start.
const START_IN_NS: u64 = 3_000_000;
/// Longest delay until an interrupt is noticed.
const LOOK_EVERY_NS: u64 = 100_000_000;
/// How often the machine is read, and progress reported.
const TELL_EVERY_NS: u64 = 500_000_000;

/// Results of jobs that ran at the same time.
pub(super) struct Gathered {
    /// One report per job, in order.
    pub(super) reports: Vec<StorageJobReport>,
    /// Combined rows of several jobs; indices are those in the group.
    pub(super) rows: Vec<StorageRow>,
    /// Notes for the reader.
    pub(super) notes: Vec<String>,
}

/// Result of a thread; `None` if the group did not start.
type Brought = Option<(JobThreadReport, Option<Written>)>;

/// Runs the jobs of a group. `used_bytes` has an entry for each job.
pub(super) fn run(
    jobs: &[StorageJob],
    used_bytes: &[u64],
    interrupt: &AtomicBool,
    progress: &dyn Fn(&Progress<'_>),
) -> Result<Gathered, RunError> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let run = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
    let ledgers = ledgers(jobs, used_bytes, run)?;
    let members = members(jobs, used_bytes, &ledgers, run);
    let crew = Crew {
        start: Latch::new(),
        release: Latch::new(),
        stop: AtomicBool::new(false),
        completed: members.iter().map(|_| Counter::default()).collect(),
        calibrations: jobs.iter().map(|_| OnceLock::new()).collect(),
    };
    let mut watch = Watch::new(jobs, &members, &crew);
    let brought = thread::scope(|scope| -> Result<Vec<Brought>, RunError> {
        let dismissal = Dismissal(&crew);
        let (sender, receiver) = channel();
        let mut handles = Vec::with_capacity(members.len());
        for member in &members {
            let (sender, crew, member) = (sender.clone(), &crew, *member);
            let builder = thread::Builder::new().name(format!("weir-job-{}", member.index));
            match builder.spawn_scoped(scope, move || work(member, crew, &sender)) {
                Ok(handle) => handles.push(handle),
                Err(source) => return Err(RunError::Thread(source)),
            }
        }
        drop(sender);
        let result = watch.run(&receiver, interrupt, progress);
        drop(dismissal);
        result?;
        let join = |handle: thread::ScopedJoinHandle<'_, Brought>| {
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        Ok(handles.into_iter().map(join).collect())
    });
    let brought = brought.inspect_err(|_| remove(&ledgers))?;
    // The measurements are kept, whatever happened to the trace.
    let (captured, untold) = match watch.tracing.take().map(Tracing::finish) {
        None => (None, None),
        Some(Ok(captured)) => (Some(captured), None),
        Some(Err(error)) => (None, Some(format!("tracepoints: {error}; device times are estimates"))),
    };
    let mut gathered = gather(&members, brought, &watch, captured.as_ref(), interrupt, progress);
    gathered.notes.extend(untold);
    Ok(gathered)
}

fn is_traced(job: &StorageJob) -> bool {
    job.device_clock == DeviceClock::Tracepoint
}

/// Releases all threads however the supervisor ends: none may wait for it forever.
struct Dismissal<'a>(&'a Crew);

impl Drop for Dismissal<'_> {
    fn drop(&mut self) {
        self.0.start.open(None);
        self.0.stop.store(true, Ordering::Relaxed);
        self.0.release.open(());
    }
}

/// Created before any block is written.
fn ledgers(jobs: &[StorageJob], used_bytes: &[u64], run: u64) -> Result<Vec<Option<Ledger>>, RunError> {
    let mut ledgers = Vec::with_capacity(jobs.len());
    for (job, used_bytes) in jobs.iter().zip(used_bytes) {
        let path = job.ledger.as_ref();
        let ledger = path.map(|path| Ledger::create(Path::new(path), job, *used_bytes, run)).transpose();
        ledgers.push(ledger.inspect_err(|_| remove(&ledgers)).map_err(RunError::Ledger)?);
    }
    Ok(ledgers)
}

/// No thread began: a ledger without a write would only be in the way of the next run.
fn remove(ledgers: &[Option<Ledger>]) {
    ledgers.iter().flatten().for_each(Ledger::remove);
}

fn members<'a>(
    jobs: &'a [StorageJob],
    used_bytes: &[u64],
    ledgers: &'a [Option<Ledger>],
    run: u64,
) -> Vec<Member<'a>> {
    let mut members = Vec::new();
    for (job_index, ((job, used_bytes), ledger)) in jobs.iter().zip(used_bytes).zip(ledgers).enumerate() {
        for thread in 0..job.threads.max(1) {
            let (index, used_bytes, ledger) = (members.len(), *used_bytes, ledger.as_ref());
            members.push(Member { index, job_index, job, thread, used_bytes, ledger, run });
        }
    }
    members
}

/// Readings of the helpers of one job.
#[derive(Clone, Debug, Default)]
struct HelperWindow {
    before: Option<Vec<ThreadSample>>,
    used: StorageCpu,
}

/// Supervises a running group.
struct Watch<'a> {
    jobs: &'a [StorageJob],
    members: &'a [Member<'a>],
    crew: &'a Crew,
    /// Thread ids of the members.
    numbers: Vec<Option<u32>>,
    helpers: Vec<HelperWindow>,
    machine: MachineBusy,
    tracing: Option<Tracing>,
    start_ns: u64,
}

impl<'a> Watch<'a> {
    fn new(jobs: &'a [StorageJob], members: &'a [Member<'a>], crew: &'a Crew) -> Self {
        Self {
            jobs,
            members,
            crew,
            numbers: vec![None; members.len()],
            helpers: vec![HelperWindow::default(); jobs.len()],
            machine: MachineBusy::default(),
            tracing: None,
            start_ns: 0,
        }
    }

    /// Starts the group when all are ready, and returns when all are done.
    fn run(
        &mut self,
        messages: &Receiver<Message>,
        interrupt: &AtomicBool,
        progress: &dyn Fn(&Progress<'_>),
    ) -> Result<(), RunError> {
        if let Some(job) = self.jobs.iter().find(|job| super::worker::is_hybrid(job)) {
            progress(&Progress::Calibrating { job: &job.name });
        }
        self.all_ready(messages)?;
        self.start_tracing()?;
        let first = SystemSnapshot::read().ok();
        self.start_ns = now_ns() + START_IN_NS;
        self.open_trace();
        self.machine.add(now_ns(), 0);
        self.open_windows(self.start_ns);
        self.crew.start.open(Some(self.start_ns));
        let mut running = vec![true; self.members.len()];
        let mut reported_ns = self.start_ns;
        let mut reported = vec![0; self.members.len()];
        while running.contains(&true) {
            match messages.recv_timeout(Duration::from_nanos(self.look_in_ns())) {
                Ok(Message::Done(index) | Message::Gone(index)) => {
                    running[index] = false;
                    if self.members[index].job.exit_all {
                        self.crew.stop.store(true, Ordering::Relaxed);
                    }
                    self.close_window(index, &running);
                }
                Ok(Message::Ready(..)) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if interrupt.load(Ordering::Relaxed) {
                self.crew.stop.store(true, Ordering::Relaxed);
            }
            let now_ns = now_ns();
            self.open_windows(now_ns);
            let is_over = !running.contains(&true);
            if is_over || now_ns >= reported_ns + TELL_EVERY_NS {
                self.read_machine(first.as_ref());
                self.tell(now_ns, now_ns.saturating_sub(reported_ns), &mut reported, progress);
                reported_ns = now_ns;
            }
        }
        Ok(())
    }

    /// Traces the requests of the threads whose operations are compared with the trace.
    fn start_tracing(&mut self) -> Result<(), RunError> {
        if !self.jobs.iter().any(is_traced) {
            return Ok(());
        }
        let jobs = self.jobs.iter().filter(|job| is_traced(job));
        let traced = self.members.iter().filter(|member| is_traced(member.job));
        let threads = traced.filter_map(|member| self.numbers[member.index]).collect();
        self.tracing = Some(Tracing::start(jobs, threads).map_err(RunError::Capture)?);
        Ok(())
    }

    /// Sets the start of the first window that is compared with the trace.
    fn open_trace(&self) {
        let opens = self.jobs.iter().filter(|job| is_traced(job));
        let opens_ns = opens.map(|job| Schedule::new(job, self.start_ns).opens_ns).min();
        if let (Some(tracing), Some(opens_ns)) = (&self.tracing, opens_ns) {
            tracing.open(opens_ns);
        }
    }

    /// Waits until all threads have reported whether they can start; the first failure is the error.
    fn all_ready(&mut self, messages: &Receiver<Message>) -> Result<(), RunError> {
        for _ in self.members {
            match messages.recv() {
                Ok(Message::Ready(index, Ok(number))) => self.numbers[index] = Some(number),
                Ok(Message::Ready(_, Err(error))) => return Err(error),
                Ok(Message::Done(_) | Message::Gone(_)) | Err(_) => {
                    return Err(RunError::Thread(std::io::Error::other("a thread ended before it began")));
                }
            }
        }
        Ok(())
    }

    /// Time until the next check.
    fn look_in_ns(&self) -> u64 {
        let now_ns = now_ns();
        let openings = self.jobs.iter().zip(&self.helpers).filter_map(|(job, helpers)| {
            let opens_ns = Schedule::new(job, self.start_ns).opens_ns;
            (helpers.before.is_none() && Helpers::of(job.engine) != Helpers::None).then_some(opens_ns)
        });
        openings
            .map(|opens_ns| opens_ns.saturating_sub(now_ns))
            .min()
            .unwrap_or(u64::MAX)
            .clamp(1, LOOK_EVERY_NS)
    }

    /// Reads the helpers of jobs whose window opens.
    fn open_windows(&mut self, now_ns: u64) {
        for (job, helpers) in self.jobs.iter().zip(&mut self.helpers) {
            let is_due = now_ns >= Schedule::new(job, self.start_ns).opens_ns;
            if is_due && helpers.before.is_none() && Helpers::of(job.engine) != Helpers::None {
                helpers.before = Some(cpu::threads_now());
            }
        }
    }

    /// Reads the helpers of a job whose last thread is done.
    fn close_window(&mut self, index: usize, running: &[bool]) {
        let job_index = self.members[index].job_index;
        let of_job = || self.members.iter().filter(|member| member.job_index == job_index);
        if of_job().any(|member| running[member.index]) {
            return;
        }
        let kind = Helpers::of(self.jobs[job_index].engine);
        let Some(before) = self.helpers[job_index].before.take() else { return };
        let own_number = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let sharers = self.jobs.iter().filter(|job| Helpers::of(job.engine) == kind).count();
        let crew = cpu::Owners {
            job: of_job().filter_map(|member| self.numbers[member.index]).collect(),
            all: self.numbers.iter().flatten().copied().chain([own_number]).collect::<HashSet<u32>>(),
            sharers: sharers as u64,
        };
        cpu::add_helpers(&mut self.helpers[job_index].used, kind, &crew, &before, &cpu::threads_now());
        // Prevents a second reading.
        self.helpers[job_index].before = Some(Vec::new());
    }

    fn read_machine(&mut self, first: Option<&SystemSnapshot>) {
        if let (Some(first), Ok(now)) = (first, SystemSnapshot::read()) {
            let busy_ns = noise_window(first, &now, ProcessUse::default()).machine_busy_ns;
            self.machine.add(now_ns(), busy_ns);
        }
    }

    fn tell(&self, now_ns: u64, since_ns: u64, reported: &mut [u64], progress: &dyn Fn(&Progress<'_>)) {
        let mut jobs = Vec::with_capacity(self.jobs.len());
        for (job_index, job) in self.jobs.iter().enumerate() {
            let (mut operations, mut added) = (0, 0);
            for member in self.members.iter().filter(|member| member.job_index == job_index) {
                let count = self.crew.completed[member.index].0.load(Ordering::Relaxed);
                operations += count;
                added += count - reported[member.index];
                reported[member.index] = count;
            }
            let schedule = Schedule::new(job, self.start_ns);
            let length_ns = schedule.ends_ns.saturating_sub(schedule.begins_ns);
            let done_ns = now_ns.saturating_sub(schedule.begins_ns);
            let first = self.members.iter().find(|member| member.job_index == job_index);
            jobs.push(JobProgress {
                job: &job.name,
                operations,
                operations_per_second: if since_ns == 0 { 0.0 } else { added as f64 * 1e9 / since_ns as f64 },
                share: job.runtime_ns.map(|_| (done_ns as f64 / length_ns.max(1) as f64).min(1.0)),
                thread: first.and_then(|first| self.numbers[first.index]),
            });
        }
        progress(&Progress::Running { elapsed_ns: now_ns.saturating_sub(self.start_ns), jobs: &jobs });
    }
}

/// Makes the reports, and verifies written data.
fn gather(
    members: &[Member<'_>],
    brought: Vec<Brought>,
    watch: &Watch<'_>,
    captured: Option<&super::tracing::Captured>,
    interrupt: &AtomicBool,
    progress: &dyn Fn(&Progress<'_>),
) -> Gathered {
    let mut notes: Vec<String> = captured.iter().filter_map(|captured| captured.note()).collect();
    let (mut job_threads, mut written): (Vec<Vec<JobThreadReport>>, Vec<Vec<Written>>) =
        watch.jobs.iter().map(|_| (Vec::new(), Vec::new())).unzip();
    for (member, brought) in members.iter().zip(brought) {
        let Some((job_thread, blocks)) = brought else { continue };
        job_threads[member.job_index].push(job_thread);
        written[member.job_index].extend(blocks);
    }
    let was_interrupted = interrupt.load(Ordering::Relaxed);
    let mut reports = Vec::with_capacity(watch.jobs.len());
    let mut rows = Rows::new(watch.jobs);
    for (index, ((job, job_threads), written)) in watch.jobs.iter().zip(job_threads).zip(written).enumerate()
    {
        let calibration = watch.crew.calibrations[index].get();
        let around = HostDefaults {
            calibration,
            helpers: watch.helpers[index].used,
            machine: &watch.machine,
            captured,
            was_interrupted,
        };
        let add = |recorder: &Recorder, cpu: &StorageCpu| rows.add(index, recorder, cpu);
        let (mut report, of_job) = job_report(job, job_threads, &around, add);
        notes.extend(of_job);
        notes.extend(calibration.map(|found| format!("{}: {found}", job.name)));
        if !written.is_empty() {
            notes.extend(compare(job, &written, &mut report, interrupt, progress));
        }
        reports.push(report);
    }
    let rows = rows.finish(watch.jobs, &reports, &watch.machine);
    Gathered { reports, rows, notes }
}

/// Reads back what a job wrote.
fn compare(
    job: &StorageJob,
    written: &[Written],
    report: &mut StorageJobReport,
    interrupt: &AtomicBool,
    progress: &dyn Fn(&Progress<'_>),
) -> Option<String> {
    let tell = |done_blocks| progress(&Progress::Verifying { job: &job.name, done_blocks });
    match contents::verify(job, written, interrupt, &tell) {
        Ok(found) => {
            report.verified_blocks = found.blocks;
            report.verify_failures = found.failures;
            report.failed |= found.failures > 0 || found.was_interrupted;
            found.first_failure.map(|failure| format!("{}: {failure}", job.name))
        }
        Err(error) => {
            report.failed = true;
            Some(format!("{}: what was written cannot be read back: {error}", job.name))
        }
    }
}
