//! The measurement points: the parts of each wait, over a run and in each interval. Pure, so that the same rules
//! apply to a real disk, a replayed trace and the simulator.
//!
//! Two points are noted for every operation: whether it was complete when the thread woke (a miss, if the thread had
//! slept a predicted time), and the length of the requested sleep. From these and the times of hand-over and notice,
//! the time of an operation is divided into four parts whose sum is exact:
//!
//! ```text
//! hand-over ........ complete ........ requested end ........ awake ........ noticed
//!            device            oversleep              wake           notice
//! ```
//!
//! A part whose end comes before its start is empty. If the completion or the interrupt ended the wait there is no
//! oversleep: all of it is wake. If the thread could not observe the completion on the device
//! ([`DeviceClock::Observed`]), its time is estimated; [`Meter::record`] explains how.
//!
//! Intervals start with the run, all have the same length, and an operation belongs to the interval in which it was
//! noticed. A remainder shorter than a tenth of an interval belongs to the last whole one.

use hdrhistogram::Histogram;
use weir_record::{
    latency::{LatencySummary, empty_histogram},
    storage::{DeviceClock, WaitingInterval, WaitingReport},
};

use crate::predict::Plan;

/// Most intervals; later operations are added to the last one.
pub const INTERVALS_MAX: usize = 100_000;

/// Weight of one operation in the device's usual time: one in this many.
const USUAL_WEIGHT: u64 = 16;

/// One completed wait for an operation. All times have the same origin.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// When it had been handed to the kernel and the wait began.
    pub issued_ns: u64,
    /// The planned way to wait.
    pub plan: Plan,
    /// When the sleep, or the wait for the interrupt, ended; absent when the thread never slept for it.
    pub woken_ns: Option<u64>,
    /// Whether it was complete when the unarmed sleep ended.
    pub complete_at_wake: bool,
    /// Whether the completion ended the armed sleep.
    pub woken_early: bool,
    /// When the completion was noticed.
    pub noticed_ns: u64,
    /// When the device completed it, if known.
    pub device_done_ns: Option<u64>,
    /// CPU it cost the thread, if known for a single operation; else 0.
    pub cpu_ns: u64,
}

/// The parts of one operation's time. Their sum is the time from hand-over to notice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Not yet complete.
    pub device_ns: u64,
    /// Complete, and the requested sleep not over.
    pub oversleep_ns: u64,
    /// Complete, the sleep over or the interrupt sent, and the thread not yet running.
    pub wake_ns: u64,
    /// Complete, the thread running, and not yet noticed.
    pub notice_ns: u64,
}

impl Parts {
    /// Divides the time of `measured`, which the device completed at `done_ns`.
    pub fn of(measured: &Measured, done_ns: u64) -> Self {
        let noticed_ns = measured.noticed_ns.max(measured.issued_ns);
        let within = |moment_ns: u64| moment_ns.clamp(measured.issued_ns, noticed_ns);
        let done_ns = within(done_ns);
        let woken_ns = measured.woken_ns.map_or(done_ns, within).max(done_ns);
        let requested_end_ns = match measured.plan {
            Plan::Sleep { ns } if measured.woken_ns.is_some() && !measured.woken_early => {
                measured.issued_ns.saturating_add(ns).clamp(done_ns, woken_ns)
            }
            Plan::Sleep { .. } | Plan::Poll | Plan::Interrupt => done_ns,
        };
        Self {
            device_ns: done_ns - measured.issued_ns,
            oversleep_ns: requested_end_ns - done_ns,
            wake_ns: woken_ns - requested_end_ns,
            notice_ns: noticed_ns - woken_ns,
        }
    }

    /// From hand-over to notice.
    pub fn total_ns(&self) -> u64 {
        self.device_ns + self.oversleep_ns + self.wake_ns + self.notice_ns
    }
}

/// A cumulative reading whose differences are needed.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    last_ns: Option<u64>,
}

impl Reading {
    /// The increase since the last reading; 0 for the first.
    fn advance(&mut self, total_ns: u64) -> u64 {
        let added_ns = self.last_ns.map_or(0, |last_ns| total_ns.saturating_sub(last_ns));
        self.last_ns = Some(total_ns);
        added_ns
    }
}

/// Adds up the measurement points of one thread. An operation costs a few additions and two histogram entries.
#[derive(Clone, Debug)]
pub struct Meter {
    interval_ns: u64,
    interrupt_lag_ns: u64,
    sums: WaitingReport,
    added: Histogram<u64>,
    latency: Histogram<u64>,
    /// Usual time of the device, from operations whose completion was observed; 0 before the first.
    usual_ns: u64,
    started_ns: u64,
    current: WaitingInterval,
    current_end_ns: u64,
    intervals: Vec<WaitingInterval>,
    thread: Reading,
    machine: Reading,
    is_stopped: bool,
}

impl Meter {
    /// A meter with intervals of `interval_ns`. `interrupt_lag_ns` is the latency that an interrupt adds to polling:
    /// it separates harmful misses from harmless ones, and estimates the device's part of an interrupted wait.
    pub fn new(interval_ns: u64, interrupt_lag_ns: u64, clock: DeviceClock) -> Self {
        Self {
            interval_ns: interval_ns.max(1),
            interrupt_lag_ns,
            sums: WaitingReport { device_clock: clock, ..WaitingReport::default() },
            added: empty_histogram(),
            latency: empty_histogram(),
            usual_ns: 0,
            started_ns: 0,
            current: WaitingInterval::default(),
            current_end_ns: interval_ns.max(1),
            intervals: Vec::with_capacity(256),
            thread: Reading::default(),
            machine: Reading::default(),
            is_stopped: false,
        }
    }

    /// Sets the device's usual time, known from before the run; the estimate starts from it where the device's time
    /// must be estimated.
    pub fn expect_device(&mut self, usual_ns: u64) {
        self.usual_ns = usual_ns;
    }

    /// Clears all records, except for the device's usual time. A run that was stopped stays so. Allocates nothing.
    pub fn forget(&mut self) {
        self.sums = WaitingReport { device_clock: self.sums.device_clock, ..WaitingReport::default() };
        self.added.reset();
        self.latency.reset();
        self.current = WaitingInterval::default();
        self.intervals.clear();
        (self.thread, self.machine) = (Reading::default(), Reading::default());
    }

    /// Starts the run.
    pub fn start(&mut self, now_ns: u64) {
        self.started_ns = now_ns;
        self.current_end_ns = now_ns.saturating_add(self.interval_ns);
    }

    /// Whether the interval is over, so that readings are due before the next operation is recorded.
    #[inline]
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.current_end_ns
    }

    /// Length of an interval.
    pub fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// When the interval ends.
    pub fn due_ns(&self) -> u64 {
        self.current_end_ns
    }

    /// CPU time of the thread, a cumulative reading; call it once when the run starts and then at the end of each
    /// interval. If it is given, the CPU of single operations is ignored.
    pub fn thread_busy(&mut self, total_ns: u64) {
        if self.thread.last_ns.is_none() {
            (self.current.cpu_ns, self.sums.cpu_ns) = (0, 0);
        }
        let added_ns = self.thread.advance(total_ns);
        self.current.cpu_ns += added_ns;
        self.sums.cpu_ns += added_ns;
    }

    /// Busy time of all CPUs, a cumulative reading; call it once when the run starts and then at the end of each
    /// interval.
    pub fn machine_busy(&mut self, total_ns: u64) {
        self.current.machine_busy_ns += self.machine.advance(total_ns);
    }

    /// Adds one operation.
    ///
    /// Without [`Measured::device_done_ns`], the device's completion time is: for a polled operation the notice; for
    /// a wait that a completion ended, the wake less the lag of an interrupt; after a miss, where only "before the
    /// wake" is known, the usual device time, limited to the wake. The last is an estimate: figures about oversleep
    /// need another clock.
    #[inline]
    pub fn record(&mut self, measured: &Measured) {
        if self.is_due(measured.noticed_ns) {
            self.advance(measured.noticed_ns);
        }
        let done_ns = measured.device_done_ns.unwrap_or_else(|| self.estimate(measured));
        let parts = Parts::of(measured, done_ns);
        let total_ns = parts.total_ns();
        if measured.device_done_ns.is_some() {
            self.sums.device_known += 1;
            self.added.saturating_record(total_ns - parts.device_ns);
        }
        self.latency.saturating_record(total_ns);
        let sums = &mut self.sums;
        sums.operations += 1;
        sums.device_ns += parts.device_ns;
        sums.oversleep_ns += parts.oversleep_ns;
        sums.wake_ns += parts.wake_ns;
        sums.notice_ns += parts.notice_ns;
        sums.total_ns += total_ns;
        self.current.operations += 1;
        if self.thread.last_ns.is_none() {
            sums.cpu_ns += measured.cpu_ns;
            self.current.cpu_ns += measured.cpu_ns;
        }
        self.count(measured, &parts);
    }

    /// Counts the operation by its plan.
    #[inline]
    fn count(&mut self, measured: &Measured, parts: &Parts) {
        let (sums, current) = (&mut self.sums, &mut self.current);
        let spin_from_ns = match (measured.plan, measured.woken_ns) {
            (Plan::Sleep { ns }, Some(woken_ns)) => {
                let actual_ns = woken_ns.saturating_sub(measured.issued_ns);
                sums.slept += 1;
                current.slept += 1;
                sums.sleep_requested_ns = sums.sleep_requested_ns.saturating_add(ns);
                current.sleep_requested_ns = current.sleep_requested_ns.saturating_add(ns);
                sums.sleep_actual_ns += actual_ns;
                current.sleep_actual_ns += actual_ns;
                sums.woken_early += u64::from(measured.woken_early);
                if measured.complete_at_wake {
                    let late_ns = parts.oversleep_ns + parts.wake_ns + parts.notice_ns;
                    sums.misses += 1;
                    current.misses += 1;
                    sums.misses_harmful += u64::from(late_ns > self.interrupt_lag_ns);
                }
                woken_ns
            }
            (Plan::Interrupt, _) => {
                sums.interrupted += 1;
                measured.noticed_ns
            }
            (Plan::Poll, _) | (Plan::Sleep { .. }, None) => {
                sums.polled += 1;
                measured.issued_ns
            }
        };
        sums.spin_ns += measured.noticed_ns.saturating_sub(spin_from_ns);
    }

    /// Estimates the completion time at the device from what the thread observed.
    fn estimate(&mut self, measured: &Measured) -> u64 {
        let by_interrupt = |woken_ns: u64| woken_ns.saturating_sub(self.interrupt_lag_ns);
        let done_ns = match (measured.plan, measured.woken_ns) {
            (Plan::Interrupt, woken_ns) => by_interrupt(woken_ns.unwrap_or(measured.noticed_ns)),
            (Plan::Sleep { .. }, Some(woken_ns)) if measured.woken_early => by_interrupt(woken_ns),
            (Plan::Sleep { .. }, Some(woken_ns)) if measured.complete_at_wake => {
                // The usual time does not learn from it, because the operation's own time is unknown.
                let usual_ns = if self.usual_ns == 0 { u64::MAX } else { self.usual_ns };
                return measured.issued_ns.saturating_add(usual_ns).min(woken_ns);
            }
            (Plan::Sleep { .. } | Plan::Poll, _) => measured.noticed_ns,
        };
        let device_ns = done_ns.saturating_sub(measured.issued_ns);
        self.usual_ns = match self.usual_ns {
            0 => device_ns,
            usual_ns => (usual_ns * (USUAL_WEIGHT - 1) + device_ns) / USUAL_WEIGHT,
        };
        done_ns
    }

    /// Closes the intervals that are over. Take readings before; recording an operation also calls this.
    #[cold]
    pub fn advance(&mut self, now_ns: u64) {
        while now_ns >= self.current_end_ns && self.intervals.len() < INTERVALS_MAX - 1 {
            let mut closed = std::mem::take(&mut self.current);
            closed.elapsed_ns = self.interval_ns;
            self.current.start_ns = closed.start_ns + self.interval_ns;
            self.intervals.push(closed);
            self.current_end_ns = self.current_end_ns.saturating_add(self.interval_ns);
        }
        if self.intervals.len() >= INTERVALS_MAX - 1 {
            self.current_end_ns = u64::MAX;
        }
    }

    /// Ends the run; nothing is recorded afterwards. Take the readings of the last interval before.
    pub fn stop(&mut self, now_ns: u64) {
        if self.is_stopped {
            return;
        }
        self.is_stopped = true;
        self.advance(now_ns);
        self.sums.elapsed_ns = now_ns.saturating_sub(self.started_ns);
        let mut last = self.current;
        last.elapsed_ns = self.sums.elapsed_ns.saturating_sub(last.start_ns);
        match self.intervals.last_mut() {
            // Operations in flight at the end make no separate interval: its rates would be meaningless.
            Some(before) if last.elapsed_ns < self.interval_ns / 10 => {
                let elapsed_ns = before.elapsed_ns + last.elapsed_ns;
                merge_interval(before, &last);
                before.elapsed_ns = elapsed_ns;
            }
            _ if last.elapsed_ns > 0 || last.operations > 0 => self.intervals.push(last),
            _ => {}
        }
    }

    /// Start of the run.
    pub fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// End of the run.
    pub fn stopped_ns(&self) -> u64 {
        self.started_ns.saturating_add(self.sums.elapsed_ns)
    }

    /// End of the last interval that was over at `moment_ns`, or that moment if there was none: the CPU was read up
    /// to there. The run must have been stopped; the result never exceeds its end.
    pub fn last_reading_ns(&self, moment_ns: u64) -> u64 {
        if moment_ns >= self.stopped_ns() {
            return self.stopped_ns();
        }
        match moment_ns.saturating_sub(self.started_ns) / self.interval_ns {
            0 => moment_ns.max(self.started_ns),
            whole => self.started_ns + whole * self.interval_ns,
        }
    }

    /// Copies the CPU readings of another meter over the same run, when operations (or some of them) are recorded
    /// again. If this meter covers only part of an interval, it gets that share by time. Both must have been stopped.
    pub fn adopt_cpu(&mut self, other: &Self) {
        self.sums.cpu_ns = 0;
        for (into, from) in self.intervals.iter_mut().zip(&other.intervals) {
            into.cpu_ns = part(from.cpu_ns, into.elapsed_ns, from.elapsed_ns);
            self.sums.cpu_ns += into.cpu_ns;
        }
    }

    /// Adds another thread's measurements. Both must have been stopped. The run is then that of both, from the earlier
    /// start to the later end. If one started later, its intervals are moved by whole intervals.
    pub fn merge(&mut self, other: &Self) {
        let first = self.join_run(other);
        merge_sums(&mut self.sums, &other.sums);
        // All histograms have the same bounds, so adding cannot fail.
        let _ = self.added.add(&other.added);
        let _ = self.latency.add(&other.latency);
        self.add_intervals(&other.intervals, first);
    }

    /// Extends the run to that of both. Returns the number of the interval in which the other run started.
    fn join_run(&mut self, other: &Self) -> usize {
        // A thread that measured nothing has no run.
        if other.sums.elapsed_ns == 0 {
            return 0;
        }
        if self.sums.elapsed_ns == 0 {
            self.started_ns = other.started_ns;
        }
        let (own_ns, others_ns) = (self.started_ns, other.started_ns);
        let end_ns = self.stopped_ns().max(other.stopped_ns());
        let own_first = whole_intervals(others_ns, own_ns, self.interval_ns);
        if own_first > 0 {
            let own = std::mem::take(&mut self.intervals);
            self.add_intervals(&own, own_first);
        }
        self.started_ns = own_ns.min(others_ns);
        self.sums.elapsed_ns = end_ns.saturating_sub(self.started_ns);
        whole_intervals(own_ns, others_ns, self.interval_ns)
    }

    /// Adds intervals, the first of them to the one with this number. Those beyond the maximum are added to the last.
    fn add_intervals(&mut self, intervals: &[WaitingInterval], first: usize) {
        for (index, from) in intervals.iter().enumerate() {
            let index = first.saturating_add(index).min(INTERVALS_MAX - 1);
            while self.intervals.len() <= index {
                if let Some(last) = self.intervals.last_mut() {
                    last.elapsed_ns = last.elapsed_ns.max(self.interval_ns);
                }
                let start_ns = self.interval_ns.saturating_mul(self.intervals.len() as u64);
                self.intervals.push(WaitingInterval { start_ns, ..WaitingInterval::default() });
            }
            merge_interval(&mut self.intervals[index], from);
        }
    }

    /// The results. `now_ns` ends the run, unless it was stopped before.
    pub fn finish(mut self, now_ns: u64) -> (WaitingReport, Vec<WaitingInterval>) {
        self.stop(now_ns);
        self.sums.added = LatencySummary::from_histogram(&self.added);
        self.sums.latency = LatencySummary::from_histogram(&self.latency);
        (self.sums, self.intervals)
    }
}

/// Intervals from one moment to a later one, to the nearest whole number; none to an earlier one.
pub(crate) fn whole_intervals(from_ns: u64, to_ns: u64, interval_ns: u64) -> usize {
    let apart_ns = to_ns.saturating_sub(from_ns).saturating_add(interval_ns / 2);
    usize::try_from(apart_ns / interval_ns.max(1)).unwrap_or(usize::MAX)
}

/// The share of `part_ns` in `whole_ns`, assuming an even distribution.
fn part(amount: u64, part_ns: u64, whole_ns: u64) -> u64 {
    if part_ns >= whole_ns {
        return amount;
    }
    u64::try_from(u128::from(amount) * u128::from(part_ns) / u128::from(whole_ns)).unwrap_or(amount)
}

fn merge_sums(into: &mut WaitingReport, from: &WaitingReport) {
    into.operations += from.operations;
    into.slept += from.slept;
    into.polled += from.polled;
    into.interrupted += from.interrupted;
    into.misses += from.misses;
    into.misses_harmful += from.misses_harmful;
    into.woken_early += from.woken_early;
    into.sleep_requested_ns += from.sleep_requested_ns;
    into.sleep_actual_ns += from.sleep_actual_ns;
    into.device_ns += from.device_ns;
    into.oversleep_ns += from.oversleep_ns;
    into.wake_ns += from.wake_ns;
    into.notice_ns += from.notice_ns;
    into.total_ns += from.total_ns;
    into.spin_ns += from.spin_ns;
    into.device_known += from.device_known;
    into.cpu_ns += from.cpu_ns;
    into.elapsed_ns = into.elapsed_ns.max(from.elapsed_ns);
}

fn merge_interval(into: &mut WaitingInterval, from: &WaitingInterval) {
    into.elapsed_ns = into.elapsed_ns.max(from.elapsed_ns);
    into.operations += from.operations;
    into.slept += from.slept;
    into.misses += from.misses;
    into.sleep_requested_ns += from.sleep_requested_ns;
    into.sleep_actual_ns += from.sleep_actual_ns;
    into.cpu_ns += from.cpu_ns;
    // All threads read the same machine.
    into.machine_busy_ns = into.machine_busy_ns.max(from.machine_busy_ns);
}

#[cfg(test)]
mod tests;
