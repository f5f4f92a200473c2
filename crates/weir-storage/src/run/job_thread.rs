//! The loop of one thread: issue what may start, wait, note completions, until the job is over.
//!
//! The clock is read before a batch is submitted, after it, and when something is complete; nothing allocates. A
//! batch contains the operations that may start at that moment, in one system call, up to the job's limit. Submitting
//! everything at once costs the least CPU, but the device stays idle until the whole batch is made, and then gets all
//! of it at once. Operations that the kernel does not take are submitted again. With a rate, operations that were due
//! but not started when the time was over are noted too: a device that stalls to the end cannot hide the queue before
//! it.

use std::{
    fs::File,
    io,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use weir_record::storage::StorageJob;
use weir_sys::usage::{ThreadUsage, thread_usage};

use super::{
    contents::{Contents, Written},
    pace::{Pace, Pause, Turn},
    recorder::Recorder,
};
use crate::{
    engine::{Completed, Engine, Operation, OperationKind, outcome},
    job::{Offsets, Step},
    predict::Plan,
    wait::{InFlight, InFlightTable, Time, Wait, Waiter},
};

/// A thread stops after this many failed operations: the rest would show nothing new.
pub(super) const FAILURES_MAX: u64 = 100;
/// Longest sleep without a check for an interrupt.
const NAP_NS_MAX: u64 = 50_000_000;
/// Pause after the kernel took nothing although nothing was in flight, and how often that may happen.
const STARVED_NS: u64 = 100_000;
const STARVED_MAX: u32 = 10_000;
/// Largest timer lag that is compensated.
const LAG_NS_MAX: u64 = 200_000;
const LAG_STEP_NS_MIN: u64 = 100;

/// Times of a job, by the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    /// Start of the first operation.
    pub(super) begins_ns: u64,
    /// Start of the window.
    pub(super) opens_ns: u64,
    /// From then on nothing is issued.
    pub(super) ends_ns: u64,
}

impl Schedule {
    /// The schedule of a job in a group that starts now.
    pub(super) fn new(job: &StorageJob, start_ns: u64) -> Self {
        let begins_ns = start_ns.saturating_add(job.start_delay_ns);
        let opens_ns = begins_ns.saturating_add(job.ramp_ns);
        let ends_ns = job.runtime_ns.map_or(u64::MAX, |runtime_ns| opens_ns.saturating_add(runtime_ns));
        Self { begins_ns, opens_ns, ends_ns }
    }
}

/// State that a thread shares with its supervisor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared<'a> {
    /// Nothing more is issued when this is set.
    pub(super) stop: &'a AtomicBool,
    /// Operations of this thread so far.
    pub(super) completed: &'a AtomicU64,
}

/// One thread of a job.
pub(super) struct JobThread<'a, T> {
    job: &'a StorageJob,
    engine: Box<dyn Engine>,
    waiter: Waiter<T>,
    recorder: Recorder,
    offsets: Offsets,
    contents: Contents,
    pace: Pace,
    schedule: Schedule,
    shared: Shared<'a>,
    flights: InFlightTable,
    idle: Vec<u32>,
    batch: Vec<Operation>,
    intended_ns: Option<u64>,
    completed: Vec<Completed>,
    completed_count: u64,
    failures: u64,
    writes: u64,
    /// Number of writes started before the last sync.
    writes_synced: u64,
    was_sync: bool,
    is_issuing: bool,
    /// When issuing ended, other than because nothing was left.
    ended_ns: Option<u64>,
    /// Whether a rate or a pause decides when operations start.
    is_paced: bool,
    starved: u32,
    lag_ns: u64,
    edge_ns: u64,
}

/// The components of a thread's loop.
pub(super) struct Parts<'a, T> {
    pub(super) job: &'a StorageJob,
    pub(super) engine: Box<dyn Engine>,
    pub(super) waiter: Waiter<T>,
    pub(super) recorder: Recorder,
    pub(super) offsets: Offsets,
    pub(super) contents: Contents,
    pub(super) schedule: Schedule,
    pub(super) shared: Shared<'a>,
}

impl<'a, T: Time> JobThread<'a, T> {
    pub(super) fn new(parts: Parts<'a, T>) -> Self {
        let Parts { job, engine, waiter, recorder, offsets, contents, schedule, shared } = parts;
        let depth = job.depth as usize;
        Self {
            pace: Pace::new(job, schedule.begins_ns),
            flights: InFlightTable::new(job.depth),
            // The last one is used first.
            idle: (0..job.depth).rev().collect(),
            batch: Vec::with_capacity(depth),
            intended_ns: None,
            completed: Vec::with_capacity(depth),
            completed_count: 0,
            failures: 0,
            writes: 0,
            writes_synced: 0,
            was_sync: false,
            is_issuing: true,
            ended_ns: None,
            is_paced: job.rate_iops.is_some() || job.rate_bytes.is_some() || job.think_time_ns > 0,
            starved: 0,
            lag_ns: 0,
            edge_ns: schedule.opens_ns,
            job,
            engine,
            waiter,
            recorder,
            offsets,
            contents,
            schedule,
            shared,
        }
    }

    /// Runs until the time or the size is over, too much has failed, or the run was stopped. All operations in flight
    /// are complete then, in every case.
    pub(super) fn run(&mut self) -> io::Result<()> {
        let result = self.turns().and_then(|()| self.sync_all_written());
        let now_ns = self.waiter.time.now_ns();
        self.note_never_begun(now_ns);
        let usage = self.usage();
        self.recorder.close(now_ns, self.waiter.time.thread_cpu_ns(), usage);
        result
    }

    /// Syncs all writes at the job's end, if the job requests it. As in fio it takes the job's time and does not
    /// count as one of its syncs. fio skips it if the last operation was a sync; but that one may have been of data
    /// only, have failed, or have run before writes that were in flight at the same time.
    fn sync_all_written(&self) -> io::Result<()> {
        if !self.job.end_fsync || self.writes == 0 {
            return Ok(());
        }
        File::open(&self.job.file)?.sync_all()
    }

    /// Notes operations that the rate scheduled and that were never started, limited to those that were left.
    fn note_never_begun(&mut self, now_ns: u64) {
        let end_ns = self.ended_ns.unwrap_or(now_ns).min(self.schedule.ends_ns);
        for (waited_ns, count) in self.pace.overdue(end_ns, self.offsets.left()) {
            self.recorder.never_begun(waited_ns, count);
        }
    }

    /// Ends issuing at this time.
    fn end(&mut self, now_ns: u64) {
        self.is_issuing = false;
        self.ended_ns.get_or_insert(now_ns);
    }

    fn turns(&mut self) -> io::Result<()> {
        let mut now_ns = self.begin()?;
        if (self.schedule.begins_ns..self.schedule.opens_ns).contains(&now_ns) {
            let usage = self.usage();
            self.recorder.open_ramp(now_ns, self.waiter.time.thread_cpu_ns(), usage);
            self.edge_ns = self.edge_ns.min(self.recorder.meter.due_ns());
        }
        loop {
            if now_ns >= self.edge_ns {
                self.edge(now_ns);
            }
            if self.shared.stop.load(Ordering::Relaxed) {
                self.end(now_ns);
            }
            let (recent_ns, resumes_ns) = self.issue(now_ns)?;
            if self.flights.count() == 0 {
                if !self.is_issuing && self.batch.is_empty() {
                    return Ok(());
                }
                now_ns = self.idle(recent_ns, resumes_ns)?;
                continue;
            }
            self.completed.clear();
            let wait = self.wait(recent_ns, resumes_ns)?;
            now_ns = wait.noticed_ns;
            if now_ns >= self.edge_ns {
                self.edge(now_ns);
            }
            self.reap(wait)?;
        }
    }

    /// Waits until something is complete, or the next operation may start.
    fn wait(&mut self, recent_ns: u64, resumes_ns: Option<u64>) -> io::Result<Wait> {
        let (engine, completed) = (self.engine.as_mut(), &mut self.completed);
        let Some(resumes_ns) = resumes_ns else {
            return self.waiter.wait(engine, &mut self.flights, recent_ns, None, completed);
        };
        // A timer is late by about its lag; the rest is spent polling.
        let limit_ns = resumes_ns.saturating_sub(self.lag_ns);
        if limit_ns <= recent_ns {
            return self.waiter.look_until(engine, resumes_ns, completed);
        }
        let wait = self.waiter.wait(engine, &mut self.flights, recent_ns, Some(limit_ns), completed)?;
        if self.completed.is_empty() {
            self.learn_lag(wait.noticed_ns.saturating_sub(limit_ns));
        }
        Ok(wait)
    }

    /// Tracks the median of the timer's lags: a mean would follow its outliers, and the thread would poll longer than
    /// necessary.
    fn learn_lag(&mut self, lag_ns: u64) {
        let step_ns = (self.lag_ns / 16).max(LAG_STEP_NS_MIN);
        self.lag_ns = match self.lag_ns {
            0 => lag_ns,
            known_ns if lag_ns > known_ns => known_ns + step_ns,
            known_ns => known_ns.saturating_sub(step_ns).max(1),
        }
        .min(LAG_NS_MAX);
    }

    /// Waits for the start of the first operation.
    fn begin(&mut self) -> io::Result<u64> {
        loop {
            let now_ns = self.waiter.time.now_ns();
            if now_ns >= self.schedule.begins_ns || self.shared.stop.load(Ordering::Relaxed) {
                return Ok(now_ns);
            }
            self.nap(self.schedule.begins_ns)?;
        }
    }

    /// Submits all operations that may start. Returns the latest reading of the clock, and when more may start, if
    /// that depends on time.
    fn issue(&mut self, now_ns: u64) -> io::Result<(u64, Option<u64>)> {
        let mut recent_ns = now_ns;
        loop {
            // Operations that were not taken go first, and alone.
            let resumes_ns = if self.batch.is_empty() { self.gather(recent_ns)? } else { None };
            if self.batch.is_empty() {
                return Ok((recent_ns, resumes_ns));
            }
            recent_ns = self.submit()?;
            // Other operations that may start by now do so before the thread waits.
            if !self.batch.is_empty() {
                return Ok((recent_ns, None));
            }
        }
    }

    /// Fills the batch; with a pace each operation is a separate batch. Returns when more may start, if that depends
    /// on time.
    fn gather(&mut self, now_ns: u64) -> io::Result<Option<u64>> {
        while self.is_issuing && self.batch.len() < self.job.batch_max as usize {
            let Some(&slot) = self.idle.last() else { return Ok(None) };
            match self.pace.pause(now_ns) {
                Some(Pause::Draining) => return Ok(None),
                Some(Pause::Until(moment_ns)) => return Ok(Some(moment_ns)),
                None => {}
            }
            let (operation, intended_ns) = if let Some(sync) = self.next_sync(slot) {
                // Rates apply to reads and writes only.
                (sync, None)
            } else {
                let kind = match self.pace.turn(now_ns) {
                    Turn::At(moment_ns) => return Ok(Some(moment_ns)),
                    Turn::Now(kind) => kind,
                };
                let Some(operation) = self.next_transfer(slot, kind)? else {
                    self.is_issuing = false;
                    return Ok(None);
                };
                (operation, self.pace.begin(operation.kind, operation.bytes))
            };
            self.idle.pop();
            self.batch.push(operation);
            self.intended_ns = intended_ns;
            if self.is_paced {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// Submits the batch; operations that the kernel did not take stay in it.
    fn submit(&mut self) -> io::Result<u64> {
        let started_ns = self.waiter.time.now_ns();
        let taken = self.engine.submit(&self.batch)?;
        self.recorder.submitted(taken);
        // In a synchronous engine the call is the operation.
        let is_asynchronous = self.engine.is_asynchronous();
        let handed_ns = if is_asynchronous { self.waiter.time.now_ns() } else { started_ns };
        for operation in self.batch.drain(..taken) {
            let mut flight = InFlight {
                operation,
                intended_ns: self.intended_ns.unwrap_or(started_ns),
                started_ns,
                handed_ns,
                plan: Plan::Interrupt,
                in_flight: self.flights.count() + 1,
                woken_ns: None,
            };
            self.waiter.plan(&mut flight);
            self.flights.insert(flight);
        }
        self.starved = if taken == 0 && self.flights.count() == 0 { self.starved + 1 } else { 0 };
        if self.starved > STARVED_MAX {
            return Err(io::Error::other("the kernel takes no operation any more, though none is in flight"));
        }
        Ok(handed_ns)
    }

    /// The sync of the writes so far, if it is due now.
    fn next_sync(&mut self, slot: u32) -> Option<Operation> {
        let is_done = if self.job.syncs_as_fio {
            self.was_sync || self.offsets.left() == 0
        } else {
            self.writes_synced == self.writes
        };
        let is_due = |every: u32| every > 0 && self.writes.is_multiple_of(every.into());
        let kind = match (is_due(self.job.fsync_every), is_due(self.job.fdatasync_every)) {
            _ if is_done || self.writes == 0 => return None,
            (true, _) => OperationKind::Fsync,
            (false, true) => OperationKind::Fdatasync,
            (false, false) => return None,
        };
        if kind == OperationKind::Fsync {
            self.contents.sync(slot);
        }
        (self.was_sync, self.writes_synced) = (true, self.writes);
        Some(Operation { slot, kind, offset_bytes: 0, bytes: 0 })
    }

    /// Errors are those of the ledger: no write may be unknown to it.
    fn next_transfer(&mut self, slot: u32, kind: Option<OperationKind>) -> io::Result<Option<Operation>> {
        let step = self.offsets.next_of(kind.map(|kind| kind == OperationKind::Read));
        let Some(Step { reads, offset_bytes, bytes }) = step else { return Ok(None) };
        self.was_sync = false;
        if reads {
            return Ok(Some(Operation { slot, kind: OperationKind::Read, offset_bytes, bytes }));
        }
        self.writes += 1;
        self.contents.write(slot, offset_bytes, self.engine.buffer(slot))?;
        Ok(Some(Operation { slot, kind: OperationKind::Write, offset_bytes, bytes }))
    }

    fn reap(&mut self, wait: Wait) -> io::Result<()> {
        let (mut transfers, mut count) = (0, 0);
        for index in 0..self.completed.len() {
            let done = self.completed[index];
            let Some(flight) = self.flights.remove(done.slot) else { continue };
            self.idle.push(done.slot);
            count += 1;
            let result = outcome(&flight.operation, done);
            self.contents.ended(done.slot, result.is_ok())?;
            let measured = self.waiter.complete(&flight, wait, result.is_ok());
            match result {
                Ok(()) => {
                    self.recorder.succeeded(&flight, &measured);
                    self.completed_count += 1;
                }
                Err(error) => self.failed(error.name(), wait.noticed_ns),
            }
            transfers += u64::from(flight.operation.kind.transfers());
        }
        self.recorder.completed(count);
        self.pace.complete(transfers, wait.noticed_ns, self.flights.count() == 0 && self.batch.is_empty());
        self.shared.completed.store(self.completed_count, Ordering::Relaxed);
        Ok(())
    }

    #[cold]
    fn failed(&mut self, name: std::borrow::Cow<'static, str>, now_ns: u64) {
        self.recorder.failed(name);
        self.failures += 1;
        if self.failures >= FAILURES_MAX {
            self.end(now_ns);
        }
    }

    /// With nothing in flight: waits until the next operation may start.
    fn idle(&mut self, now_ns: u64, resumes_ns: Option<u64>) -> io::Result<u64> {
        let moment_ns = resumes_ns.unwrap_or(now_ns.saturating_add(STARVED_NS));
        self.nap(moment_ns.min(self.schedule.ends_ns.max(now_ns)))?;
        Ok(self.waiter.time.now_ns())
    }

    /// Sleeps until a time, or for a while if it is far. The sleep is shortened by the timer's usual lag and the rest
    /// is polled: the lag is caused by this program and must not appear in any latency.
    fn nap(&mut self, moment_ns: u64) -> io::Result<()> {
        let now_ns = self.waiter.time.now_ns();
        let left_ns = moment_ns.saturating_sub(now_ns);
        let length_ns = left_ns.min(NAP_NS_MAX).saturating_sub(self.lag_ns);
        if length_ns > 0 {
            self.waiter.time.sleep(self.engine.as_mut(), length_ns)?;
            self.learn_lag(self.waiter.time.now_ns().saturating_sub(now_ns + length_ns));
        }
        if left_ns <= NAP_NS_MAX {
            while self.waiter.time.now_ns() < moment_ns {
                self.waiter.time.relax();
            }
        }
        Ok(())
    }

    /// Handles the start of the window, the end of an interval, or the end of the time.
    #[cold]
    fn edge(&mut self, now_ns: u64) {
        if !self.recorder.has_window() && now_ns >= self.schedule.opens_ns {
            let usage = self.usage();
            self.recorder.open(now_ns, self.waiter.time.thread_cpu_ns(), usage);
        }
        if self.recorder.meter.is_due(now_ns) {
            self.recorder.meter.thread_busy(self.waiter.time.thread_cpu_ns());
            self.recorder.meter.advance(now_ns);
        }
        if now_ns >= self.schedule.ends_ns {
            self.end(self.schedule.ends_ns);
        }
        let ends_ns = if self.is_issuing { self.schedule.ends_ns } else { u64::MAX };
        let opens_ns = if self.recorder.has_window() { u64::MAX } else { self.schedule.opens_ns };
        self.edge_ns = self.recorder.meter.due_ns().min(ends_ns).min(opens_ns);
    }

    fn usage(&self) -> ThreadUsage {
        // Without it the job's own CPU is unknown; its times are known.
        thread_usage().unwrap_or_default()
    }

    /// The engine, the notes and the written contents, at the end of the run.
    pub(super) fn into_parts(self) -> (Box<dyn Engine>, Recorder, Option<Written>) {
        (self.engine, self.recorder, self.contents.into_written())
    }
}

#[cfg(test)]
mod tests;
