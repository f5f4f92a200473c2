//! What was seen of a process over a stretch of time, as `weir observe` stores it.
//!
//! Every list has a stated maximum; what did not fit is counted beside it.

mod advice;
mod descriptors;
mod rung;
mod selection;
mod series;
mod transfers;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::{
    advice::{Advice, BATCHED_OPERATIONS, GATHERED_BYTES, WaitsFor},
    descriptors::{
        DESCRIPTOR_ROWS_MAX, DescriptorFigures, DescriptorKind, DescriptorMark, DescriptorTable,
        OtherDescriptors, SIZE_BUCKETS, Transfers,
    },
    rung::{Obstacle, Rung, RungState},
    selection::{Found, FoundContainer, SELECTED_ROWS_MAX, Selected, SelectedProcess, Selection},
    series::{INTERVAL_KINDS_MAX, INTERVALS_MAX, Interval, IntervalCalls, IntervalKind, Series},
    transfers::{Direction, direction},
};
use crate::machine::Fingerprint;

/// Most threads in a record, those with most CPU.
pub const THREAD_ROWS_MAX: usize = 4096;
/// Most pairs of who woke whom in a record, the most frequent.
pub const WAKE_ROWS_MAX: usize = 256;

/// Most files in a record that were opened more than once, those opened most often.
pub const OPENED_ROWS_MAX: usize = 16;

/// Parts of a process's CPU that exceed the whole by more than this share of it are wrong.
const EXCESS_SHARE: f64 = 0.10;
/// The edges of the two windows, which are read one after the other, explain less than this.
const EXCESS_NS_MIN: f64 = 1e6;

/// Two counts of switches may differ by this many at the edges of their windows.
const SWITCHES_AT_EDGES: u64 = 8;

/// A process over a stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// [`crate::SCHEMA_VERSION`] of the program that wrote it.
    pub schema_version: u32,
    /// The machine.
    pub fingerprint: Fingerprint,
    /// When it began, in seconds since 1970.
    pub began_unix_s: u64,
    /// Process number; of several the lowest.
    pub pid: u32,
    /// What it runs, as it was called; the name alone where the rest may not be read.
    pub command: String,
    /// Which processes these are, where it was not one by its number; nothing in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection: Option<Selection>,
    /// Length of the window of everything but the trace.
    pub window_ns: u64,
    /// Why it ended.
    pub ending: Ending,
    /// Highest rung that was used.
    pub rung: Rung,
    /// All rungs, lowest first.
    pub ladder: Vec<RungState>,
    /// What a reader must know beside the figures.
    pub notes: Vec<Note>,
    /// The process with its children.
    pub totals: Totals,
    /// Open descriptors at the end; absent where they may not be listed.
    pub descriptors: Option<Descriptors>,
    /// Threads, those with most CPU first.
    pub threads: Vec<ThreadFigures>,
    /// Threads that are not in the list.
    pub threads_left_out: u64,
    /// System calls, on rung L2.
    pub trace: Option<Trace>,
    /// What its calls for I/O cost.
    pub bound: Option<Bound>,
    /// What follows from its calls; nothing in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
    /// What it did in each interval, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
    /// The same process under `strace` for as long, afterwards, where that was asked for.
    #[serde(default)]
    pub strace: Option<StraceTable>,
    /// CPU that the observer used in the window, for both processes where it watched two.
    #[serde(default)]
    pub observer_cpu_ns: Option<u64>,
    /// Another process, in the same window and by the same programs. It has none beside itself.
    #[serde(default)]
    pub beside: Option<Box<Observation>>,
}

/// A sum of counts. A record may come from anywhere, and its counts may be more than there can be: then it is the
/// largest number.
pub fn total(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

impl Totals {
    /// Takes these counts of switches where they are more than what was read, by more than two windows differ that do
    /// not begin and end in the same moments, and says whether they are.
    pub fn take_switches(&mut self, voluntary: u64, involuntary: u64) -> bool {
        let read = total([self.context_switches_voluntary, self.context_switches_involuntary]);
        let are_more = total([voluntary, involuntary]) > total([read, read / 100, SWITCHES_AT_EDGES]);
        if are_more {
            (self.context_switches_voluntary, self.context_switches_involuntary) = (voluntary, involuntary);
        }
        are_more
    }
}

impl Observation {
    /// CPU of the process without what watching added to it.
    pub fn unwatched_cpu_ns(&self) -> f64 {
        let added_ns = self.trace.as_ref().map_or(0.0, Trace::added_ns);
        (self.totals.cpu_ns as f64 - added_ns).max(0.0)
    }

    /// Time on a CPU in calls and softirqs, without what watching added; nothing where the programs could not
    /// distinguish it from time asleep.
    pub fn parts_ns(&self) -> f64 {
        let Some(trace) = self.trace.as_ref().filter(|trace| trace.is_split) else { return 0.0 };
        let calls_ns: f64 = trace.calls.iter().map(|call| call.cpu_ns(&trace.cost)).sum();
        calls_ns + trace.softirqs_ns()
    }

    /// Whether the parts are more than the process had by the kernel's own account. Kernels exist that do not announce
    /// every switch between threads, and then a sleep passes for work.
    pub fn are_times_wrong(&self) -> bool {
        let excess_ns = self.parts_ns() - self.unwatched_cpu_ns();
        excess_ns > EXCESS_SHARE * self.unwatched_cpu_ns() && excess_ns > EXCESS_NS_MIN
    }
}

/// What `strace -c -f -w` said: right counts, and times of a program that it slowed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StraceTable {
    /// Length of its window.
    pub window_ns: u64,
    /// By kind, most time first.
    pub rows: Vec<StraceRow>,
}

/// A kind of system call under `strace`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StraceRow {
    /// Name.
    pub name: String,
    /// Calls that returned.
    pub calls: u64,
    /// Those that failed for whatever reason.
    pub errors: u64,
    /// Time between begin and end as strace saw it, waiting and its own stops included.
    pub time_ns: u64,
}

/// Why an observation ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The time that was asked for is over.
    #[default]
    Time,
    /// It was stopped by a signal.
    Interrupted,
    /// The process ended.
    TargetEnded,
    /// The process beside it ended, and with it the window of both.
    OtherEnded,
}

/// What a reader must know beside the figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "code")]
pub enum Note {
    /// Threads ended in the window. Their CPU is in the sums.
    ThreadsEnded {
        /// Threads of a reading that were gone at the next; of the first and gone at the last, without `in_sums`.
        count: u32,
        /// Whether their switches and waiting are in the sums, up to the last reading of each. Not so in older records.
        #[serde(default)]
        in_sums: bool,
    },
    /// Processes ended in the window.
    ProcessesEnded {
        /// Processes of a reading that were gone at the next; in older records, of the first and gone at the last.
        count: u32,
    },
    /// Threads and children that ended used CPU after their last reading, or were never read: what they switched and
    /// waited then is not in the sums.
    EndedUnread {
        /// That CPU.
        cpu_ns: u64,
        /// All of the window.
        of_cpu_ns: u64,
    },
    /// Its name changed: it became another program, or renamed itself.
    BecameAnother {
        /// Its name before.
        from: String,
        /// Its name at the end.
        to: String,
    },
    /// It or a child became a program of 32 bits, whose system calls have other numbers: names in the trace may be
    /// wrong.
    Became32Bits,
    /// It ended, and figures are of its last reading, so long before the end at most.
    EndedBetween {
        /// Time between two readings.
        interval_ns: u64,
        /// Whether CPU and switches are those of the kernel's programs instead, up to the end.
        #[serde(default)]
        by_programs: bool,
    },
    /// Context switches have those of threads and children that ended, also of such that no reading saw.
    SwitchesOfEnded {
        /// Who counted them.
        by: SwitchCounter,
    },
    /// It could not be read any more, and figures are of its last reading, so long before the end or longer.
    Unread {
        /// Time between two readings.
        interval_ns: u64,
        /// Why.
        error: String,
    },
    /// The hypervisor took CPUs away for a good part of the window. Calls that were under way then have it in their
    /// time on a CPU, and a kernel that knows of it charges no process for it.
    Stolen {
        /// Stolen time of all CPUs, by ticks.
        stolen_ns: u64,
        /// Time of all CPUs.
        machine_ns: u64,
    },
    /// Tracing was asked for and could not be had.
    NotTraced {
        /// Why.
        obstacle: Obstacle,
    },
    /// The programs were tried on calls of this process, and did not count them all: their figures are wrong.
    Miscounted {
        /// Calls that were made.
        made: u64,
        /// Calls that were counted.
        counted: u64,
    },
    /// More processes joined a selection than can be observed at one time; others are not observed.
    JoinedTooMany {
        /// So many can.
        processes_max: u32,
    },
    /// Processes that joined a selection could not be traced.
    JoinedUntraced {
        /// Why.
        error: String,
    },
    /// Tracing with strace was asked for and could not be had.
    NoStrace {
        /// Why.
        error: String,
    },
    /// A part of the trace could not be had.
    PartLeftOut {
        /// The tracepoint.
        tracepoint: String,
        /// The kernel's words.
        error: String,
    },
}

/// Who counts switches beside /proc, which forgets those of a thread when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchCounter {
    /// The kernel's programs.
    Programs,
    /// What the kernel reports to the parent of a command that was waited for (`getrusage(2)`).
    Rusage,
}

/// The process and its children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// CPU of all threads, those that ended included.
    pub cpu_ns: u64,
    /// The part of it in the kernel; by ticks, so only for windows of two seconds and more.
    pub system_ns: Option<u64>,
    /// The part of it in io_uring's kernel threads.
    pub kernel_thread_cpu_ns: u64,
    /// The part of it in threads and children that ended.
    pub ended_cpu_ns: u64,
    /// Time runnable without a CPU.
    pub run_delay_ns: u64,
    /// Switches because a thread waited.
    pub context_switches_voluntary: u64,
    /// Switches because another thread was given the CPU.
    pub context_switches_involuntary: u64,
    /// Processes at the end.
    pub processes: u32,
    /// Threads at the end.
    pub threads: u32,
    /// Anonymous resident memory at the end.
    pub rss_anon_bytes: u64,
}

/// What a process has open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptors {
    /// All.
    pub open: u64,
    /// Sockets.
    pub sockets: u64,
    /// Instances of epoll.
    pub epolls: u64,
    /// Rings of io_uring.
    pub rings: u64,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadFigures {
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Time on a CPU.
    pub cpu_ns: u64,
    /// Time runnable without one.
    pub run_delay_ns: u64,
    /// Switches because it waited.
    pub context_switches_voluntary: u64,
    /// Switches because another was given its CPU.
    pub context_switches_involuntary: u64,
    /// System calls it began; traced only.
    pub calls: Option<u64>,
    /// Time asleep; traced only.
    pub blocked_ns: Option<u64>,
    /// Whether it ended in the window. Its figures are then of its last reading, and what a trace knew of it is in the
    /// sums of the trace alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_ended: bool,
}

impl ThreadFigures {
    /// Adds what the thread did later; without what only a trace knows.
    pub fn add(&mut self, later: &Self) {
        (self.pid, self.tid) = (later.pid, later.tid);
        self.name.clone_from(&later.name);
        for (own, later) in [
            (&mut self.cpu_ns, later.cpu_ns),
            (&mut self.run_delay_ns, later.run_delay_ns),
            (&mut self.context_switches_voluntary, later.context_switches_voluntary),
            (&mut self.context_switches_involuntary, later.context_switches_involuntary),
        ] {
            *own = own.saturating_add(later);
        }
    }
}

/// What the kernel's programs counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Length of its window.
    pub window_ns: u64,
    /// By kind, those with most time on a CPU first.
    pub calls: Vec<CallFigures>,
    /// Calls at the edges of the window, whose end was seen and whose begin was not.
    pub calls_cut: u64,
    /// Whether times are split by what the scheduler did; otherwise all is wall time.
    pub is_split: bool,
    /// Who woke whom, most often first.
    pub wakes: Vec<WakeFigures>,
    /// Wakes of pairs that are not in the list.
    pub wakes_left_out: u64,
    /// Time the threads had been woken or preempted and did not run yet, in calls and outside of them. An idle CPU that
    /// wakes up for one is in it, unlike in the delay of `schedstat`.
    #[serde(default)]
    pub queued_ns: u64,
    /// Time the threads had a CPU, those that ended included, as far as they are in the trace; nothing in older
    /// records, nor without the scheduler's part.
    #[serde(default)]
    pub ran_ns: u64,
    /// How often they left it because they waited, likewise,
    #[serde(default)]
    pub sleeps: u64,
    /// and because another thread was given it.
    #[serde(default)]
    pub preemptions: u64,
    /// Softirqs by kind.
    pub softirqs: Vec<SoftirqFigures>,
    /// Events of io_uring.
    pub uring: Vec<UringFigures>,
    /// Operations of io_uring by kind, those that were submitted most often first; absent without any, where the kernel
    /// does not describe them, and in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationFigures>,
    /// What was moved through each descriptor, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptors: Option<DescriptorTable>,
    /// Files that were opened more than once by one name, most often first; absent without any, and in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opened_again: Vec<OpenedFile>,
    /// How many those are, with such that are not in the list,
    #[serde(default)]
    pub files_opened_again: u64,
    /// and how often they were opened.
    #[serde(default)]
    pub opens_of_those: u64,
    /// Switches between threads that the kernel did not announce, as far as later events betrayed them. What their
    /// threads did meanwhile counts as time without a CPU.
    #[serde(default)]
    pub switches_missed: u64,
    /// Threads that found no room in the kernel's table; their calls are missing.
    pub threads_lost: u64,
    /// Wakes that found none.
    pub wakes_lost: u64,
    /// Events at which a program could not run.
    pub misses: u64,
    /// What being traced costs a call.
    pub cost: ProbeCost,
    /// What the programs took of its threads at events within calls and outside of them, but for those in softirqs, by
    /// their own readings of the clock.
    #[serde(default)]
    pub probe_ns: u64,
    /// How often those ran.
    #[serde(default)]
    pub probe_runs: u64,
    /// Whether the kernel keeps the time of softirqs out of the CPU of the processes they interrupt
    /// (`CONFIG_IRQ_TIME_ACCOUNTING`); absent where that could not be found out.
    #[serde(default)]
    pub softirqs_are_apart: Option<bool>,
}

impl Trace {
    /// CPU that watching added to the process: to its calls, and by programs at what happened on its threads.
    pub fn added_ns(&self) -> f64 {
        let calls = total(self.calls.iter().map(|call| call.count)) as f64;
        let of_softirqs: f64 = self
            .softirqs
            .iter()
            .map(|softirq| self.cost.taken_ns(softirq.probe_ns as f64, softirq.probe_runs as f64))
            .sum();
        calls * (self.cost.traced_ns - self.cost.untraced_ns).max(0.0)
            + self.cost.taken_ns(self.probe_ns as f64, self.probe_runs as f64)
            + if self.softirqs_are_apart == Some(true) { 0.0 } else { of_softirqs }
    }

    /// Time of softirqs on its threads, without what watching added; nothing where the kernel charges no process for
    /// them.
    pub fn softirqs_ns(&self) -> f64 {
        let without = |softirq: &SoftirqFigures| {
            let taken_ns = self.cost.taken_ns(softirq.probe_ns as f64, softirq.probe_runs as f64);
            (softirq.ns as f64 - taken_ns).max(0.0)
        };
        let are_apart = self.softirqs_are_apart == Some(true);
        if are_apart { 0.0 } else { self.softirqs.iter().map(without).sum() }
    }
}

/// Most buckets of [`CallFigures::buckets`].
pub const CALL_BUCKETS: usize = 40;

/// A kind of system call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallFigures {
    /// Number on this architecture.
    pub number: u32,
    /// Name; `syscall_N` for one without.
    pub name: String,
    /// What it is for.
    pub purpose: Purpose,
    /// Calls that returned.
    pub count: u64,
    /// Those that failed for another reason than that there was nothing to do.
    pub errors: u64,
    /// Those by error, most often first; nothing in older records. Together they are fewer than `errors` where the
    /// kernel's table had no room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors_by_kind: Vec<ErrorFigures>,
    /// Those that found nothing to do (`EAGAIN`).
    pub again: u64,
    /// Time on a CPU in those.
    pub again_ns: u64,
    /// Sum of positive answers: bytes, events, or submissions.
    pub returned: u64,
    /// Time on a CPU, interrupts included.
    pub on_cpu_ns: u64,
    /// The part of it in softirqs.
    #[serde(default)]
    pub softirq_ns: u64,
    /// The part of it in the kernel's programs that looked, outside of softirqs, by their own readings of the clock.
    #[serde(default)]
    pub probe_ns: u64,
    /// How often those ran; each run took [`ProbeCost::run_ns`] more than they say.
    #[serde(default)]
    pub probe_runs: u64,
    /// Time asleep.
    pub blocked_ns: u64,
    /// Time from a wake-up or a preemption to the next run.
    pub queued_ns: u64,
    /// Calls that had not returned at the end.
    pub in_flight: u64,
    /// Time those had taken until then, within the window.
    pub in_flight_ns: u64,
    /// Calls in which their thread ended.
    pub unreturned: u64,
    /// Calls by wall time: bucket `i` holds those of 2^i ns up to twice that, the last of [`CALL_BUCKETS`]
    /// all that were longer. Empty ones at the end are left out.
    pub buckets: Vec<u64>,
}

impl CallFigures {
    /// Time between begin and end of the calls that returned.
    pub fn wall_ns(&self) -> u64 {
        total([self.on_cpu_ns, self.blocked_ns, self.queued_ns])
    }

    /// Between which powers of two the wall time lies within which this share of the calls returned; no upper
    /// one in the last bucket, and `None` where no call returned.
    pub fn wall_bounds_ns(&self, share: f64) -> Option<(u64, Option<u64>)> {
        let all = total(self.buckets.iter().copied());
        let rank = (share * all as f64).ceil().max(1.0) as u64;
        let mut passed = 0_u64;
        let is_reached = |count: &u64| {
            passed = passed.saturating_add(*count);
            passed >= rank
        };
        let bucket = self.buckets.iter().position(is_reached)?.min(CALL_BUCKETS - 1);
        Some((1_u64 << bucket, (bucket < CALL_BUCKETS - 1).then_some(2_u64 << bucket)))
    }

    /// CPU that these calls cost: without softirqs and what watching added, with the way into the kernel and out of it.
    pub fn cpu_ns(&self, cost: &ProbeCost) -> f64 {
        let own_ns = self.on_cpu_ns.saturating_sub(self.softirq_ns) as f64;
        cost.without(own_ns, self.count as f64, (self.probe_ns as f64, self.probe_runs as f64)).max(0.0)
    }
}

/// How calls failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorFigures {
    /// Number of the error on this architecture.
    pub number: u32,
    /// `ENOENT` and the like; `error_N` for one without a name.
    pub name: String,
    /// How often.
    pub count: u64,
}

/// A file, by the name that it was opened by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedFile {
    /// That name.
    pub path: String,
    /// How often, and with success.
    pub opens: u64,
}

/// What a system call is for, as far as batching cares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Moves bytes or connections: read, send, accept.
    Transfer,
    /// Asks which descriptors are ready: epoll_wait, poll, select.
    Readiness,
    /// Says which are of interest: epoll_ctl.
    Interest,
    /// Submits to a ring or collects from it: io_uring_enter, io_submit.
    Ring,
    /// Everything else.
    #[default]
    Other,
}

/// [`WakeFigures::context`] of a timer of high resolution, which interrupts whatever thread runs.
pub const TIMER: &str = "timer";

/// Who woke a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WakeFigures {
    /// The thread that slept.
    pub sleeper_tid: u32,
    /// Process of the thread that ran; 0 when the CPU was idle, and of a timer.
    pub waker_pid: u32,
    /// Its number; [`OUTSIDE`] where it has none for the observer.
    pub waker_tid: u32,
    /// Its name.
    pub waker_name: String,
    /// The softirq in which it happened: that thread only happened to run, or caused it by sending. Or [`TIMER`].
    #[serde(alias = "softirq")]
    pub context: Option<String>,
    /// How often.
    pub count: u64,
    /// Sum of the sleeps it ended.
    pub blocked_ns: u64,
}

/// A kind of softirq.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SoftirqFigures {
    /// `NET_RX` and the like.
    pub kind: String,
    /// How often it ran while an observed thread had the CPU.
    pub count: u64,
    /// How long; this time is within that thread's.
    pub ns: u64,
    /// The part of it in the kernel's programs that looked, as in [`CallFigures::probe_ns`].
    #[serde(default)]
    pub probe_ns: u64,
    /// How often those ran.
    #[serde(default)]
    pub probe_runs: u64,
    /// How often elsewhere on the machine.
    pub elsewhere_count: u64,
    /// How long.
    pub elsewhere_ns: u64,
}

/// An event of io_uring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UringFigures {
    /// Name of the tracepoint, without `io_uring_`.
    pub event: String,
    /// How often in observed threads.
    pub count: u64,
    /// How often elsewhere, for any ring of the machine.
    pub elsewhere_count: u64,
}

/// Operations of io_uring of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationFigures {
    /// Number of the kind (`IORING_OP_*`); the last of 128 places has all beyond.
    pub opcode: u32,
    /// Its name, in small letters and without `IORING_OP_`; `operation_N` for one without.
    pub name: String,
    /// Submitted by the process's threads.
    pub submitted: u64,
    /// Those given to worker threads of the kernel (io-wq); one that is given twice counts twice.
    pub to_workers: u64,
}

/// [`WakeFigures::waker_tid`] of a thread that has no number in the PID namespace of the observer.
pub const OUTSIDE: u32 = u32::MAX;

/// What being traced costs a call that does nothing, measured on this machine right before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeCost {
    /// A call without programs, median of the repetitions.
    pub untraced_ns: f64,
    /// The same with them.
    pub traced_ns: f64,
    /// The part of that which the programs themselves take for the call.
    pub inside_ns: f64,
    /// What a run of a program takes beyond what it measures of itself.
    #[serde(default)]
    pub run_ns: f64,
    /// Range of the difference, between the quartiles of the repetitions.
    pub added_ns: (f64, f64),
}

impl ProbeCost {
    /// What programs took that ran so often, by their own readings of the clock and beyond.
    pub fn taken_ns(&self, own_ns: f64, runs: f64) -> f64 {
        own_ns + runs * self.run_ns
    }

    /// What calls cost that took so long on a CPU while they were watched, if nothing watches them: with the way into
    /// the kernel and out of it, which no program sees, and without what programs took within them (`taken`: by their
    /// own readings, and how often they ran).
    pub fn without(&self, on_cpu_ns: f64, calls: f64, (own_ns, runs): (f64, f64)) -> f64 {
        on_cpu_ns - self.taken_ns(own_ns, runs) + calls * (self.untraced_ns - self.inside_ns)
    }
}

/// What the system calls for I/O of a process cost. It is no bound of what fewer calls bring: what the program itself
/// does around each of them is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// CPU of the process.
    pub cpu_ns: u64,
    /// Calls that batching concerns.
    pub calls: u64,
    /// Their time on a CPU, with the way into the kernel and out of it.
    pub io_ns: f64,
    /// The part of it spent on asking what is ready, saying what is of interest, and tries that found nothing.
    pub asking_ns: f64,
    /// The part of it spent on entering the kernel for the others: their number times the cost of a call that does
    /// nothing. Nothing in older records.
    #[serde(default)]
    pub entering_ns: f64,
    /// `io_ns`, of which the least that was measured for tracing is taken out, over the CPU without what tracing added.
    /// The calls themselves cost no larger share.
    pub share_max: f64,
    /// Share of the window in which the busiest thread had a CPU or waited for one; or all threads, by CPU of the
    /// machine, if that is more.
    pub busiest_share: f64,
    /// What follows.
    pub conclusion: Conclusion,
}

/// What follows from a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conclusion {
    /// It hardly used a CPU: there is nothing to say.
    #[default]
    Idle,
    /// It was busy, and system calls for I/O are a small share of that.
    NotIo,
    /// No thread was busy: what it waited for set its pace.
    NotBusy,
    /// It submits in batches, which are not carried out by worker threads of the kernel.
    AlreadyBatched,
    /// It was busy, and its system calls for I/O cost this share.
    AtMost,
}
