//! Direct reads in turns: the jobs of all arms are up together, and all but one are stopped (SIGSTOP).
//!
//! No tool takes commands, so a slice begins when its job is resumed and ends when it is stopped. Clocks and accounts
//! are read while it is stopped, when they are exact. Operations in flight when a job is stopped complete meanwhile
//! and are reaped in its next slice, so every slice has as many completions as submissions. The tool measures these
//! operations as long as the other arms' turns; quantiles that they affect are left out.

use std::{path::Path, time::Duration};

use weir_evidence::{
    edge::Edge,
    process::{ProcessTree, TreeDelta, cpu_ns_of, family_cpu_ns, softirq_threads},
};
use weir_record::{
    latency::LatencySummary,
    load::LoadReport,
    spec::{ArmSpec, StorageCell},
    trial::SliceRecord,
    window::ObservedWindow,
};

use super::{
    Deadlines, JOB_MAX, Job, Loaded, Seen, Tool, background, beside, engine_of, job, moved_by_first,
    moved_bytes, parse_report, report, words,
};
use crate::{
    launch::{LaunchError, RoundRequest, Sliced, TrialFailure},
    process::{files::Files, suspend},
};

/// Time from resuming a job until its slice begins: the completions from its stop are reaped.
const PRIME: Duration = Duration::from_millis(2);

/// A quantile q is a figure if the stopped operations are at most this part of the 1 - q beyond it.
const STOPPED_PART_MAX: f64 = 0.1;

/// One arm in a round.
struct Arm<'a> {
    spec: &'a ArmSpec,
    job: Job<'a>,
    tool: Option<Tool>,
    failure: Option<TrialFailure>,
    slices: Vec<SliceRecord>,
    moved_bytes: u64,
    background_bytes: u64,
    window: Duration,
    total: TreeDelta,
}

/// Clocks and accounts while a job is stopped.
struct Stopped {
    moved_bytes: u64,
    tree: ProcessTree,
    softirq_cpu_ns: u64,
    /// Bytes moved and CPU used by the background load.
    background: (u64, u64),
}

/// Runs a round and returns one result for each arm. All jobs are gone when this returns.
pub(crate) fn run(
    weir: &Path,
    files: &Files,
    request: &RoundRequest<'_>,
    deadlines: &Deadlines,
) -> Result<Vec<Result<Sliced, TrialFailure>>, LaunchError> {
    let Some(storage) = &request.cell.storage else {
        return Err(LaunchError::Usage(format!("{} asks nothing of a disk", request.cell.id)));
    };
    let data = &files.data(storage)?;
    let mut arms = Vec::with_capacity(request.arms.len());
    for spec in request.arms.iter().copied() {
        arms.push(Arm::new(data, request, storage, spec)?);
    }
    let mut beside_all = match request.arms.first().filter(|_| storage.background_depth > 0) {
        None => None,
        Some(first) => match background(weir, data, &request.of_arm(first, 0), storage, deadlines)? {
            Ok(tool) => Some(tool),
            Err(failure) => return Ok(arms.iter().map(|_| Err(beside(failure.clone()))).collect()),
        },
    };
    let before = Edge::read_beside_kernel(std::process::id()).ok();
    for (position, arm) in (0_u32..).zip(&mut arms) {
        arm.start(weir, request, position, deadlines)?;
    }
    let softirq = softirq_threads();
    for (permutation, order) in (0_u32..).zip(request.orders) {
        for (place, index) in (0_u32..).zip(order.iter().copied()) {
            arms[index].slice((permutation, place), request, beside_all.as_ref(), &softirq)?;
        }
    }
    let noise = before
        .and_then(|before| Some(before.until(&Edge::read_beside_kernel(std::process::id()).ok()?).noise));
    // The slices after its end had the disk to themselves.
    let failure = beside_all.as_mut().and_then(Tool::failure_of_background);
    let mut ended = Vec::with_capacity(arms.len());
    for (position, mut arm) in (0_u32..).zip(arms) {
        let loaded = arm.finish(request, position, noise.unwrap_or_default(), deadlines)?;
        let loaded = failure.clone().map_or(loaded, Err);
        ended.push(loaded.map(|report| Sliced { report, slices: arm.slices, evidence: Vec::new() }));
    }
    if let Some(tool) = beside_all {
        tool.stop(deadlines);
    }
    Ok(ended)
}

impl<'a> Arm<'a> {
    fn new(
        data: &'a Path,
        request: &RoundRequest<'_>,
        storage: &StorageCell,
        spec: &'a ArmSpec,
    ) -> Result<Self, LaunchError> {
        let of_arm = request.of_arm(spec, 0);
        let engine = engine_of(&of_arm, storage)?;
        Ok(Self {
            spec,
            // Its warm-up comes before its first slice; it is ended after its last.
            job: Job { ramp: Duration::ZERO, runtime: JOB_MAX, ..job(data, &of_arm, storage, engine) },
            tool: None,
            failure: None,
            slices: Vec::new(),
            moved_bytes: 0,
            background_bytes: 0,
            window: Duration::ZERO,
            total: TreeDelta::default(),
        })
    }

    /// Starts the job, lets it warm up and stops it.
    fn start(
        &mut self,
        weir: &Path,
        request: &RoundRequest<'_>,
        position: u32,
        deadlines: &Deadlines,
    ) -> Result<(), LaunchError> {
        let of_arm = request.of_arm(self.spec, position);
        let words = words(weir, &of_arm, &self.job)?;
        match Tool::start(weir, &of_arm, request.server_cpus, &words, deadlines)? {
            Err(failure) => self.failure = Some(failure),
            Ok(mut tool) => {
                let warm_up = Duration::from_nanos(request.cell.warmup_ns_max);
                if tool.go_on(&of_arm, warm_up)? {
                    suspend::suspend(tool.pid, None);
                    self.tool = Some(tool);
                } else {
                    self.failure = Some(tool.refusal(&of_arm)?);
                }
            }
        }
        Ok(())
    }

    fn slice(
        &mut self,
        (permutation, place): (u32, u32),
        request: &RoundRequest<'_>,
        beside: Option<&Tool>,
        softirq: &[u32],
    ) -> Result<(), LaunchError> {
        let of_arm = request.of_arm(self.spec, place);
        let Some(tool) = self.tool.as_mut().filter(|_| self.failure.is_none()) else { return Ok(()) };
        suspend::resume(tool.pid, None);
        let mut goes_on = tool.go_on(&of_arm, PRIME)?;
        suspend::suspend(tool.pid, None);
        let before = Stopped::read(tool, beside, softirq);
        let began = std::time::Instant::now();
        suspend::resume(tool.pid, None);
        goes_on &= tool.go_on(&of_arm, Duration::from_nanos(request.alternation.slice_ns))?;
        suspend::suspend(tool.pid, None);
        let length = began.elapsed();
        if !goes_on {
            self.failure = Some(tool.refusal(&of_arm)?);
            return Ok(());
        }
        let after = Stopped::read(tool, beside, softirq);
        let slice = self.add(&before, &after, length);
        self.slices.push(SliceRecord { permutation, place, ..slice });
        Ok(())
    }

    fn add(&mut self, before: &Stopped, after: &Stopped, length: Duration) -> SliceRecord {
        let delta = ProcessTree::delta(&before.tree, &after.tree);
        let moved_bytes = after.moved_bytes.saturating_sub(before.moved_bytes);
        let background_cpu_ns = after.background.1.saturating_sub(before.background.1);
        let softirq_cpu_ns = after.softirq_cpu_ns.saturating_sub(before.softirq_cpu_ns);
        self.moved_bytes += moved_bytes;
        self.background_bytes += after.background.0.saturating_sub(before.background.0);
        self.window += length;
        self.total.add(&delta);
        SliceRecord {
            length_ns: super::nanoseconds(length),
            messages: moved_bytes / u64::from(self.job.block_bytes),
            server_cpu_ns: delta.cpu_ns,
            machine_cpu_ns: delta.cpu_ns + background_cpu_ns + softirq_cpu_ns,
            generator_cpu_ns: background_cpu_ns,
            ..SliceRecord::default()
        }
    }

    /// Ends the job and reads its report.
    fn finish(
        &mut self,
        request: &RoundRequest<'_>,
        position: u32,
        noise: weir_record::machine::NoiseWindow,
        deadlines: &Deadlines,
    ) -> Result<Loaded, LaunchError> {
        let of_arm = request.of_arm(self.spec, position);
        let Some(mut tool) = self.tool.take().filter(|_| self.failure.is_none()) else {
            let reason = "it was never started".to_owned();
            return Ok(Err(self.failure.take().unwrap_or(TrialFailure::Job { reason })));
        };
        let moved_whole = moved_bytes(tool.pid).unwrap_or(0).saturating_sub(moved_by_first(tool.pid));
        // It is asked to end while it is stopped, so that it does almost no further work.
        suspend::terminate(tool.pid);
        let printed = match tool.printed_when_asked(&of_arm, deadlines.load_margin)? {
            Ok(printed) => printed,
            Err(failure) => return Ok(Err(failure)),
        };
        let mut result = match parse_report(&of_arm, &printed, &self.job) {
            Ok(result) => result,
            Err(failure) => return Ok(Err(failure)),
        };
        let seen_whole = moved_whole as f64 / f64::from(self.job.block_bytes);
        let operations = result.operations + result.calibration_operations;
        let count_ratio = operations as f64 / seen_whole.max(1.0);
        // Little's law also holds over the whole time, including the turns of the others.
        let in_flight = result.iops * result.latency.ns_mean / 1e9;
        self.leave_out_stopped(&mut result.latency);
        let mut job = ObservedWindow { noise, ..ObservedWindow::default() };
        self.total.fill(&mut job);
        job.noise.machine_busy_ns = self.slices.iter().map(|slice| slice.machine_cpu_ns).sum();
        let background_cpu_ns = self.slices.iter().map(|slice| slice.generator_cpu_ns).sum();
        let background = request.cell.storage.as_ref().filter(|cell| cell.background_depth > 0);
        let seen = Seen {
            window: self.window,
            moved_bytes: self.moved_bytes,
            job,
            background: background.map(|_| (self.background_bytes, background_cpu_ns)),
        };
        Ok(report(request.cell, &self.job, seen, result).map(|report| {
            let mut report: Box<LoadReport> = Box::new(report);
            report.littles_law.throughput_times_latency = in_flight;
            if let Some(storage) = &mut report.storage {
                storage.iops_reported = count_ratio * report.throughput_per_second;
            }
            report
        }))
    }

    /// Removes the quantiles that stops affect. Every stop finds the job's full queue depth in flight.
    fn leave_out_stopped(&self, latency: &mut LatencySummary) {
        let in_flight = f64::from(self.job.depth * self.job.threads);
        // Each slice is primed, which stops it twice.
        let stops = 1.0 + 2.0 * self.slices.len() as f64;
        let stopped_share = in_flight * stops / (latency.count.max(1)) as f64;
        latency.quantiles.retain(|(quantile, _)| stopped_share <= STOPPED_PART_MAX * (1.0 - quantile));
    }
}

impl Stopped {
    fn read(tool: &Tool, beside: Option<&Tool>, softirq: &[u32]) -> Self {
        let background = |tool: &Tool| (moved_bytes(tool.pid).unwrap_or(0), family_cpu_ns(tool.pid));
        Self {
            // A job that is gone has moved no further bytes; its end is noticed after the slice.
            moved_bytes: moved_bytes(tool.pid).unwrap_or(0),
            tree: ProcessTree::snapshot(tool.pid).unwrap_or_default(),
            softirq_cpu_ns: cpu_ns_of(softirq),
            background: beside.map_or((0, 0), background),
        }
    }
}
