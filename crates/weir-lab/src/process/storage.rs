//! A trial of storage: a fresh process that does the job, and a second one that keeps the disk busy meanwhile, if the
//! cell asks for one.
//!
//! Every tool is measured from outside and by one method. The kernel's accounts are read at two moments inside its
//! run: the bytes that reached the block layer (`/proc/PID/io`), and the CPU time of all its threads, including those
//! of its C library and those that the kernel runs for it. A tool's own CPU figure leaves some of these out (fio
//! leaves out the threads of POSIX AIO), and its speed is its own claim; both are recorded beside the measured
//! figures. Only latencies come from the tool, because only the tool knows them.

mod fio;
pub(super) mod job_round;
mod own;
mod series;

use std::{
    fs,
    path::Path,
    process::Command,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use weir_evidence::edge::Edge;
use weir_record::{
    SCHEMA_VERSION,
    latency::LatencySummary,
    load::{LittlesLaw, LoadReport},
    spec::{CellSpec, StorageCell, Subject},
    storage::{AccessPattern, StorageEngine, WaitingInterval, WaitingReport},
    storage_trial::StorageTrial,
    window::ObservedWindow,
};

use super::{
    Deadlines,
    files::Files,
    generator::Loaded,
    group::{Bond, Group, Refusal},
};
use crate::{
    launch::{LaunchError, TrialFailure, TrialRequest},
    storage::has_threads,
    supervise,
};

/// Fewest operations of a job that has begun. A program may read as much of its own files when it starts, but then it
/// stops.
const OPERATIONS_BEGUN: u64 = 32;

/// Consecutive checks that must find further operations.
const LOOKS_BEGUN: u32 = 3;

/// How much longer than ramp and window a job runs, so that both lie inside: finding its beginning takes some checks.
const BEYOND: Duration = Duration::from_millis(300);

/// Seeds of jobs are the upper bits of a trial's seed, because fio reads 31 bits.
const SEED_SHIFT: u32 = 33;

/// Longest run of a job that is ended with its trial or its round.
const JOB_MAX: Duration = Duration::from_secs(1_200);

/// Exit codes of tools that were asked to end and have reported: fio's and Weir's.
const EXITS_WHEN_ASKED: [i32; 2] = [128, 130];

/// Parameters of a job, for every tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job<'a> {
    file: &'a Path,
    file_bytes: u64,
    engine: StorageEngine,
    pattern: AccessPattern,
    block_bytes: u32,
    /// Operations in flight for each thread.
    depth: u32,
    threads: u32,
    ramp: Duration,
    runtime: Duration,
    /// Length of an interval of the measurement points; `None` for the tool's default.
    interval: Option<Duration>,
    seed: u64,
}

/// A tool's report on its job.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct JobResult {
    tool: String,
    operations: u64,
    /// Operations of the tool's calibration, before the job.
    calibration_operations: u64,
    iops: f64,
    cpu_ns_per_operation: Option<f64>,
    latency: LatencySummary,
    /// Failed operations by name.
    errors: Vec<(String, u64)>,
    waiting: Option<WaitingReport>,
    intervals: Vec<WaitingInterval>,
    notes: Vec<String>,
}

/// Runs the job of the cell, and the load beside it, if any.
pub(crate) fn run(
    weir: &Path,
    files: &Files,
    request: &TrialRequest<'_>,
    deadlines: &Deadlines,
) -> Result<Loaded, LaunchError> {
    let Some(storage) = &request.cell.storage else {
        return Err(LaunchError::Usage(format!("{} asks nothing of a disk", request.cell.id)));
    };
    let data = files.data(storage)?;
    let engine = engine_of(request, storage)?;
    let mut beside_it = None;
    if storage.background_depth > 0 && !request.cell.is_series() {
        match background(weir, &data, request, storage, deadlines)? {
            Ok(tool) => beside_it = Some(tool),
            Err(failure) => return Ok(Err(beside(failure))),
        }
    }
    let job = job(&data, request, storage, engine);
    let words = words(weir, request, &job)?;
    let loaded = match Tool::start(weir, request, request.server_cpus, &words, deadlines)? {
        Ok(tool) if request.cell.is_series() => {
            series::measure(weir, tool, &data, request, storage, (&job, deadlines))?
        }
        Ok(tool) => measure(tool, beside_it.as_mut(), request, &job, deadlines)?,
        Err(failure) => Err(failure),
    };
    if let Some(tool) = beside_it {
        tool.stop(deadlines);
    }
    Ok(loaded)
}

fn engine_of(request: &TrialRequest<'_>, storage: &StorageCell) -> Result<StorageEngine, LaunchError> {
    let engine = request.arm.subject.storage_engine().or(storage.engine);
    engine.ok_or_else(|| LaunchError::Usage(format!("arm {} has no storage engine", request.arm.name)))
}

/// The command line of an arm's job.
fn words(weir: &Path, request: &TrialRequest<'_>, job: &Job<'_>) -> Result<Vec<String>, LaunchError> {
    match &request.arm.subject {
        Subject::Fio { program, .. } => Ok(fio::words(program, job)),
        Subject::Storage(subject) => Ok(own::words(weir, job, subject)),
        Subject::Weir { .. } | Subject::Command { .. } | Subject::Running(_) | Subject::Gateway(_) => {
            Err(LaunchError::Usage(format!("arm {} works on no disk", request.arm.name)))
        }
    }
}

/// Parses the report of an arm's tool.
fn parse_report(request: &TrialRequest<'_>, printed: &str, job: &Job<'_>) -> Result<JobResult, TrialFailure> {
    let result = match &request.arm.subject {
        Subject::Fio { .. } => fio::parse_report(printed, job),
        _ => own::parse_report(printed),
    };
    result.map_err(|reason| TrialFailure::Job { reason: format!("its report cannot be read: {reason}") })
}

/// Starts the background load.
fn background(
    weir: &Path,
    data: &Path,
    request: &TrialRequest<'_>,
    storage: &StorageCell,
    deadlines: &Deadlines,
) -> Result<Result<Tool, TrialFailure>, LaunchError> {
    let words = own::background(weir, &background_job(data, request, storage));
    Tool::start(weir, request, request.load_cpus, &words, deadlines)
}

fn job<'a>(
    data: &'a Path,
    request: &TrialRequest<'_>,
    storage: &StorageCell,
    engine: StorageEngine,
) -> Job<'a> {
    let cell = request.cell;
    let (depth, threads) = if has_threads(engine) { (1, cell.depth) } else { (cell.depth, 1) };
    Job {
        file: data,
        file_bytes: storage.file_bytes,
        engine,
        pattern: storage.pattern,
        block_bytes: cell.message_bytes,
        depth,
        threads,
        ramp: Duration::from_nanos(cell.warmup_ns_max),
        runtime: Duration::from_nanos(cell.trial_window_ns()) + BEYOND,
        interval: cell.is_series().then(|| Duration::from_nanos(cell.series_interval_ns())),
        seed: request.seed >> SEED_SHIFT,
    }
}

/// Random reads through the engine whose queue is in the kernel.
fn background_job<'a>(data: &'a Path, request: &TrialRequest<'_>, storage: &StorageCell) -> Job<'a> {
    Job {
        depth: storage.background_depth,
        threads: 1,
        pattern: AccessPattern::RandRead,
        ramp: Duration::ZERO,
        runtime: JOB_MAX,
        interval: None,
        // Different offsets from the job's.
        seed: (request.seed >> SEED_SHIFT) ^ 1,
        ..job(data, request, storage, StorageEngine::Libaio)
    }
}

fn beside(failure: TrialFailure) -> TrialFailure {
    match failure {
        TrialFailure::Job { reason } => {
            TrialFailure::Load { reason: format!("the background load {reason}") }
        }
        other => other,
    }
}

/// A running job, below a supervisor that set its CPUs.
struct Tool {
    group: Group,
    pid: u32,
}

impl Tool {
    /// Starts it and waits until its operations reach the disk.
    fn start(
        weir: &Path,
        request: &TrialRequest<'_>,
        cpus: &[usize],
        words: &[String],
        deadlines: &Deadlines,
    ) -> Result<Result<Self, TrialFailure>, LaunchError> {
        let mut command = Command::new(weir);
        command.args(supervise::arguments(cpus)).args(words);
        super::vary_environment(&mut command, request, "storage");
        let group = Group::start(&mut command, Bond::CleansUp)
            .map_err(|error| LaunchError::Environment(format!("cannot start {}: {error}", weir.display())))?;
        let mut tool = Self { group, pid: 0 };
        let deadline = Instant::now() + deadlines.ready;
        let mut begun = Begun::default();
        loop {
            if request.interrupt.load(Ordering::Relaxed) {
                return Err(LaunchError::Interrupted);
            }
            tool.group.tick();
            if tool.group.has_ended() {
                return tool.refusal(request).map(Err);
            }
            if let [only] = supervise::children(tool.group.pid()).as_slice() {
                tool.pid = *only;
                if begun.look(moved_by_workers(tool.pid) / u64::from(request.cell.message_bytes)) {
                    return Ok(Ok(tool));
                }
            }
            if Instant::now() >= deadline {
                return Ok(Err(tool.never_began(deadlines)));
            }
        }
    }

    /// Why the trials beside it do not count, if this is a background load that has ended.
    fn failure_of_background(&mut self) -> Option<TrialFailure> {
        let reason = self.group.has_ended().then(|| self.group.exit_reason())?;
        Some(TrialFailure::Load { reason: format!("the background load {reason}") })
    }

    fn never_began(&self, deadlines: &Deadlines) -> TrialFailure {
        let waited = deadlines.ready.as_secs_f64();
        if !Path::new("/proc/self/io").exists() {
            let reason =
                "this kernel does not account for I/O by process (CONFIG_TASK_IO_ACCOUNTING)".to_owned();
            return TrialFailure::ServerEnvironment { reason };
        }
        let said = self.group.said();
        let colon = if said.is_empty() { "" } else { ": " };
        TrialFailure::Job { reason: format!("did not reach the disk within {waited} s{colon}{said}") }
    }

    /// What an end before the beginning means.
    fn refusal(&mut self, request: &TrialRequest<'_>) -> Result<TrialFailure, LaunchError> {
        match self.group.refusal(request.arm.subject.program().is_none()) {
            Some(Refusal::Usage(said)) => {
                Err(LaunchError::Usage(format!("arm {}: {said}", request.arm.name)))
            }
            Some(Refusal::Environment(reason)) => Ok(TrialFailure::ServerEnvironment { reason }),
            None => Ok(TrialFailure::Job { reason: self.group.exit_reason() }),
        }
    }

    /// Lets the job run for a time; `false` if it ended before.
    fn go_on(&mut self, request: &TrialRequest<'_>, length: Duration) -> Result<bool, LaunchError> {
        let until = Instant::now() + length;
        loop {
            if request.interrupt.load(Ordering::Relaxed) {
                return Err(LaunchError::Interrupted);
            }
            if self.group.has_ended() {
                return Ok(false);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(true);
            }
            self.group.tick_at_most(left);
        }
    }

    /// Waits for the end of a job that was asked to end. Returns its output.
    fn printed_when_asked(
        &mut self,
        request: &TrialRequest<'_>,
        longest: Duration,
    ) -> Result<Result<String, TrialFailure>, LaunchError> {
        self.printed_with(&EXITS_WHEN_ASKED, request, longest)
    }

    /// Waits for the end of a job. Returns its output.
    fn printed(
        &mut self,
        request: &TrialRequest<'_>,
        longest: Duration,
    ) -> Result<Result<String, TrialFailure>, LaunchError> {
        // A job with failed operations reports them.
        self.printed_with(&[0, 1], request, longest)
    }

    fn printed_with(
        &mut self,
        exits: &[i32],
        request: &TrialRequest<'_>,
        longest: Duration,
    ) -> Result<Result<String, TrialFailure>, LaunchError> {
        let deadline = Instant::now() + longest;
        while !self.group.has_ended() {
            if request.interrupt.load(Ordering::Relaxed) {
                return Err(LaunchError::Interrupted);
            }
            if Instant::now() >= deadline {
                let reason = format!("did not end {} s after its window", longest.as_secs_f64());
                return Ok(Err(TrialFailure::Job { reason }));
            }
            self.group.tick();
        }
        let text = match self.group.end().ok().and_then(|status| status.code()) {
            Some(code) if exits.contains(&code) => self.group.stdout.text(),
            _ => String::new(),
        };
        // fio prints a message about the request to end before its report.
        if let Some(begin) = text.find('{') {
            return Ok(Ok(text[begin..].to_owned()));
        }
        Ok(Err(TrialFailure::Job { reason: self.group.exit_reason() }))
    }

    /// Ends the job, politely first.
    fn stop(mut self, deadlines: &Deadlines) {
        self.group.say(supervise::END_POLITELY);
        self.group.wait(deadlines.stop);
    }
}

/// Whether a job has begun.
#[derive(Debug, Default)]
struct Begun {
    operations: u64,
    looks: u32,
}

impl Begun {
    /// Checks the number of operations so far. Calibrations and checks come before the job and stop; a job goes on.
    fn look(&mut self, operations: u64) -> bool {
        let goes_on = operations > self.operations && operations >= OPERATIONS_BEGUN;
        self.looks = if goes_on { self.looks + 1 } else { 0 };
        self.operations = operations;
        self.looks >= LOOKS_BEGUN
    }
}

/// Bytes that a process with all its threads has read from and written to disks, by the kernel's account.
fn moved_bytes(pid: u32) -> Option<u64> {
    moved_in(&fs::read_to_string(format!("/proc/{pid}/io")).ok()?)
}

/// The same for all threads but the first. In every tool the first thread only starts the others and waits for them,
/// and it reads only pages of the program itself.
fn moved_by_workers(pid: u32) -> u64 {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return 0 };
    let workers = threads.filter_map(Result::ok).filter(|it| it.file_name() != *pid.to_string());
    // A thread that is about to end has no accounts any more.
    let accounts = workers.filter_map(|it| fs::read_to_string(it.path().join("io")).ok());
    accounts.filter_map(|text| moved_in(&text)).sum()
}

/// The same for the first thread alone.
fn moved_by_first(pid: u32) -> u64 {
    let accounts = fs::read_to_string(format!("/proc/{pid}/task/{pid}/io"));
    accounts.ok().and_then(|text| moved_in(&text)).unwrap_or(0)
}

fn moved_in(accounts: &str) -> Option<u64> {
    let of =
        |name: &str| accounts.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some(of("read_bytes:")? + of("write_bytes:")?)
}

/// One edge of the window.
struct Moment {
    at: Instant,
    moved_bytes: u64,
    job: Edge,
    background: Option<(u64, Edge)>,
}

impl Moment {
    fn read(tool: &Tool, background: Option<&Tool>) -> Result<Self, TrialFailure> {
        let lost = |what: &str| TrialFailure::Job { reason: format!("cannot be observed: {what}") };
        let accounts = |tool: &Tool| moved_bytes(tool.pid).ok_or_else(|| lost("it has no I/O accounts"));
        // Kernel threads submit this load to the disk when its queue is busy (kblockd) and write its journal (jbd2).
        // They do more of that in a cell with a deep background than in the cell before, so counting them as foreign
        // CPU would show a burst in every block of that cell. Other programs count as in all cells, with the same
        // limit.
        let edge = |tool: &Tool| Edge::read_beside_kernel(tool.pid).map_err(|error| lost(&error.to_string()));
        // Bytes and CPU of the job are read one right after the other, in the same order at both edges.
        let (at, moved_bytes) = (Instant::now(), accounts(tool)?);
        let job = edge(tool)?;
        let background = background.map(|tool| Ok((accounts(tool)?, edge(tool)?))).transpose()?;
        Ok(Self { at, moved_bytes, job, background })
    }
}

/// Measurements between the edges.
#[derive(Debug)]
struct Seen {
    window: Duration,
    moved_bytes: u64,
    job: ObservedWindow,
    background: Option<(u64, u64)>,
}

impl Seen {
    fn between(first: &Moment, second: &Moment) -> Self {
        let background = first.background.as_ref().zip(second.background.as_ref());
        Self {
            window: second.at - first.at,
            moved_bytes: second.moved_bytes.saturating_sub(first.moved_bytes),
            job: first.job.until(&second.job),
            background: background
                .map(|(first, second)| (second.0.saturating_sub(first.0), first.1.until(&second.1).cpu_ns)),
        }
    }
}

fn measure(
    mut tool: Tool,
    mut background: Option<&mut Tool>,
    request: &TrialRequest<'_>,
    job: &Job<'_>,
    deadlines: &Deadlines,
) -> Result<Loaded, LaunchError> {
    let window = Duration::from_nanos(request.cell.window_ns);
    let mut moments = Vec::with_capacity(2);
    for length in [job.ramp, window] {
        if !tool.go_on(request, length)? {
            return tool.refusal(request).map(Err);
        }
        if let Some(failure) = background.as_deref_mut().and_then(Tool::failure_of_background) {
            return Ok(Err(failure));
        }
        match Moment::read(&tool, background.as_deref()) {
            Ok(moment) => moments.push(moment),
            Err(failure) => return Ok(Err(failure)),
        }
    }
    finish(tool, request, job, Seen::between(&moments[0], &moments[1]), deadlines)
}

/// Waits for the job's end and combines its report with the measurements.
fn finish(
    mut tool: Tool,
    request: &TrialRequest<'_>,
    job: &Job<'_>,
    seen: Seen,
    deadlines: &Deadlines,
) -> Result<Loaded, LaunchError> {
    let printed = match tool.printed(request, deadlines.load_margin)? {
        Ok(printed) => printed,
        Err(failure) => return Ok(Err(failure)),
    };
    let result = match parse_report(request, &printed, job) {
        Ok(result) => result,
        Err(failure) => return Ok(Err(failure)),
    };
    Ok(report(request.cell, job, seen, result).map(Box::new))
}

/// The trial as a record for the judge.
fn report(cell: &CellSpec, job: &Job<'_>, seen: Seen, result: JobResult) -> Result<LoadReport, TrialFailure> {
    if !result.errors.is_empty() {
        let errors: Vec<String> =
            result.errors.iter().map(|(name, count)| format!("{count} {name}")).collect();
        return Err(TrialFailure::Job { reason: format!("operations failed: {}", errors.join(", ")) });
    }
    let seconds = seen.window.as_secs_f64();
    let per_second = |bytes: u64| bytes as f64 / f64::from(job.block_bytes) / seconds;
    let messages = seen.moved_bytes / u64::from(job.block_bytes);
    let throughput_per_second = per_second(seen.moved_bytes);
    let storage = StorageTrial {
        tool: result.tool,
        threads: job.threads,
        iops_reported: result.iops,
        cpu_ns_reported: result.cpu_ns_per_operation,
        background_iops: seen.background.map(|(bytes, _)| per_second(bytes)),
        waiting: result.waiting,
        intervals: result.intervals,
        notes: result.notes,
    };
    Ok(LoadReport {
        schema_version: SCHEMA_VERSION,
        target: job.file.display().to_string(),
        driver: job.engine.to_string(),
        mode: "closed".to_owned(),
        connections: 1,
        depth: cell.depth,
        message_bytes: job.block_bytes,
        workers: job.threads,
        seed: job.seed,
        warmup_ns: nanoseconds(job.ramp),
        window_ns: nanoseconds(seen.window),
        messages,
        messages_started: messages,
        throughput_per_second,
        littles_law: LittlesLaw {
            in_flight_mean: f64::from(cell.depth),
            throughput_times_latency: result.iops * result.latency.ns_mean / 1e9,
        },
        response: result.latency,
        generator_cpu_ns: seen.background.map_or(0, |(_, cpu_ns)| cpu_ns),
        observed: Some(seen.job),
        storage: Some(storage),
        ..LoadReport::default()
    })
}

fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

fn milliseconds(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::tests::study;

    fn a_job(file: &Path) -> Job<'_> {
        Job {
            file,
            file_bytes: 1 << 30,
            engine: StorageEngine::Pread,
            pattern: AccessPattern::RandRead,
            block_bytes: 4_096,
            depth: 1,
            threads: 32,
            ramp: Duration::from_millis(300),
            runtime: Duration::from_millis(1_300),
            interval: None,
            seed: 9,
        }
    }

    #[test]
    fn the_kernels_accounts_are_read_from_their_two_lines() {
        let accounts = "rchar: 12\nwchar: 5\nsyscr: 3\nsyscw: 1\nread_bytes: 8192\nwrite_bytes: 4096\n\
                        cancelled_write_bytes: 1\n";
        assert_eq!(moved_in(accounts), Some(12_288));
        assert_eq!(moved_in("rchar: 12\n"), None);
    }

    #[test]
    fn a_job_has_begun_when_operations_go_on() {
        let looks = |operations: &[u64]| {
            let mut begun = Begun::default();
            operations.iter().map(|operations| begun.look(*operations)).collect::<Vec<bool>>()
        };
        assert_eq!(looks(&[0, 40, 80, 120]), [false, false, false, true]);
        assert_eq!(looks(&[10, 20, 30, 31]), [false; 4], "too few yet");
        assert_eq!(
            looks(&[400, 400, 400, 450, 500, 550]),
            [false, false, false, false, false, true],
            "a pause"
        );
    }

    #[test]
    fn speed_and_cpu_are_those_seen_from_outside_and_latency_is_the_tools() {
        let spec = study();
        let seen = Seen {
            window: Duration::from_millis(500),
            moved_bytes: 4_096 * 1_000,
            job: ObservedWindow { cpu_ns: 7_000_000, ..ObservedWindow::default() },
            background: Some((4_096 * 3_000, 5)),
        };
        let latency = LatencySummary { count: 9, ns_mean: 400_000.0, ..LatencySummary::default() };
        let result =
            JobResult { tool: "fio-3.33".to_owned(), iops: 2_010.0, latency, ..JobResult::default() };
        let file = Path::new("data");
        let report = report(&spec.cells[0], &a_job(file), seen, result).expect("nothing failed");
        assert_eq!((report.messages, report.throughput_per_second), (1_000, 2_000.0));
        assert_eq!(report.observed.expect("it was").cpu_ns, 7_000_000);
        assert_eq!((report.response.count, report.generator_cpu_ns), (9, 5));
        assert!((report.littles_law.throughput_times_latency - 0.804).abs() < 1e-9);
        let storage = report.storage.expect("it is of storage");
        assert_eq!((storage.iops_reported, storage.background_iops), (2_010.0, Some(6_000.0)));
    }

    #[test]
    fn operations_that_failed_make_the_trial_a_failed_one() {
        let spec = study();
        let seen = Seen {
            window: Duration::from_secs(1),
            moved_bytes: 4_096,
            job: ObservedWindow::default(),
            background: None,
        };
        let result = JobResult { errors: vec![("EIO".to_owned(), 3)], ..JobResult::default() };
        let failure =
            report(&spec.cells[0], &a_job(Path::new("data")), seen, result).expect_err("three failed");
        assert_eq!(failure, TrialFailure::Job { reason: "operations failed: 3 EIO".to_owned() });
    }
}
