//! What the kernel's programs share with us: the tables, how their values are laid out, and reading them. Pure.
//!
//! The programs take offsets from these same structures, so that both sides agree by construction.

mod descriptors;

use std::mem::offset_of;

use weir_record::observation::{CALL_BUCKETS, total};
use weir_sys::bpf::{MapKind, MapShape};

pub(super) use self::descriptors::{BELOW, DescriptorKey, DescriptorState, TransferState};
pub use self::descriptors::{DESCRIPTORS_MAX, TracedDescriptor, TracedTransfers};
pub(super) use weir_record::observation::SIZE_BUCKETS;

/// Most threads that are followed at one time; what is beyond is counted as lost.
pub const THREADS_MAX: u32 = 16_384;
/// Most pairs of who woke whom; wakes of further pairs are counted as lost.
pub const WAKES_MAX: u32 = 8_192;
/// Places for kinds of system calls.
pub const CALLS_MAX: u32 = 512;
/// Numbers from here on count as one kind, in this place,
pub const CALLS_BEYOND: u32 = CALLS_MAX - 1;
/// and so do calls of programs of 32 bits, whose numbers mean something else.
pub const CALLS_OF_32_BITS: u32 = CALLS_MAX - 2;
/// A thread of a run that has not begun: what it does is not the run's.
pub(super) const RUN_AWAITS: i32 = 0;
/// A thread of a run that is in no call which was seen to begin.
pub(super) const RUN_OUTSIDE: i32 = 1;
/// From here on a thread of a run is in a call.
pub(super) const RUN_IN_CALL: i32 = 2;
/// Place of the threads of a run that found no room.
pub(super) const RUN_LOST: u32 = CALLS_MAX;
/// Most pairs of a kind of call and an error; further ones are in the number of errors alone.
pub const ERRORS_MAX: u32 = 2_048;
/// Most names of files whose opens are counted; opens by further names are in no count.
pub const NAMES_MAX: u32 = 4_096;
/// Bytes of such a name with the one that ends it; longer ones are in no count.
pub(super) const NAME_BYTES: usize = 248;
/// Buckets of a histogram: bucket `i` holds times of 2^i ns up to twice that, the last one all that are longer.
pub const BUCKETS: usize = CALL_BUCKETS;
/// Places for kinds of operations of io_uring; those from the last one on are one.
pub(super) const OPERATIONS_MAX: u32 = 128;
/// Kinds of softirqs the kernel has, with room.
pub(super) const SOFTIRQS_MAX: u32 = 16;
/// [`WakeKey::context`] of a timer: beyond those of softirqs.
pub(super) const IN_TIMER: u32 = SOFTIRQS_MAX + 1;
/// Number of a waker that has none in the PID namespace of whoever looks; no thread has it.
pub(super) const OUTSIDE: u32 = weir_record::observation::OUTSIDE;
/// Process numbers end here (`PID_MAX_LIMIT`).
pub(super) const PID_LIMIT: u32 = 1 << 22;
/// Processes in a word of the table of members.
pub(super) const MEMBERS_IN_WORD: u32 = 32;
/// Number of sides.
pub(super) const SIDES: u32 = Side::ALL.len() as u32;

/// Of two processes that the same programs observe, one. What is not compared is all on the first side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// The first process and its children.
    #[default]
    First,
    /// The one beside it.
    Second,
}

impl Side {
    /// Both.
    pub const ALL: [Self; 2] = [Self::First, Self::Second];
}

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    /// Two bits for each process: 0 when it is not observed, otherwise its [`Side`] plus one.
    Members,
    /// By the address of a task: [`ThreadState`].
    Threads,
    /// By side and number of the system call: [`CallState`].
    Calls,
    /// By [`Counter`]: a number.
    Counters,
    /// [`CpuState`].
    Cpu,
    /// By [`WakeKey`]: [`WakeState`].
    Wakes,
    /// By kind, elsewhere and in observed threads of each side: [`SoftirqState`].
    Softirqs,
    /// By [`ErrorKey`]: a number.
    Errors,
    /// By [`NameKey`]: a number.
    Opened,
    /// A [`NameKey`] that is being made, for which the stack has no room.
    Name,
    /// By side and kind of operation: [`OperationState`].
    Operations,
    /// By [`DescriptorKey`]: [`DescriptorState`].
    Descriptors,
    /// By side: what found no room among them.
    OtherDescriptors,
    /// A [`DescriptorState`] without anything, for which the stack has no room.
    NewDescriptor,
    /// By the address of a task of a run: [`RUN_AWAITS`], [`RUN_OUTSIDE`], or the number of the call that it is in plus
    /// [`RUN_IN_CALL`].
    RunThreads,
    /// By number of the system call, and at [`RUN_LOST`]: a number.
    RunCalls,
}

impl Table {
    pub(super) const ALL: [Self; 16] = [
        Self::Members,
        Self::Threads,
        Self::Calls,
        Self::Counters,
        Self::Cpu,
        Self::Wakes,
        Self::Softirqs,
        Self::Errors,
        Self::Opened,
        Self::Name,
        Self::Operations,
        Self::Descriptors,
        Self::OtherDescriptors,
        Self::NewDescriptor,
        Self::RunThreads,
        Self::RunCalls,
    ];

    /// Whether it is for descriptors alone.
    pub(super) fn is_of_descriptors(self) -> bool {
        matches!(self, Self::Descriptors | Self::OtherDescriptors | Self::NewDescriptor)
    }

    /// Whether it is for the calls of a run alone.
    pub(super) fn is_of_runs(self) -> bool {
        matches!(self, Self::RunThreads | Self::RunCalls)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Members => "weir_members",
            Self::Threads => "weir_threads",
            Self::Calls => "weir_calls",
            Self::Counters => "weir_counters",
            Self::Cpu => "weir_cpu",
            Self::Wakes => "weir_wakes",
            Self::Softirqs => "weir_softirqs",
            Self::Errors => "weir_errors",
            Self::Opened => "weir_opened",
            Self::Name => "weir_name",
            Self::Operations => "weir_uring_ops",
            Self::Descriptors => "weir_files",
            Self::OtherDescriptors => "weir_files_more",
            Self::NewDescriptor => "weir_file_new",
            Self::RunThreads => "weir_run_tasks",
            Self::RunCalls => "weir_run_calls",
        }
    }

    pub(super) fn shape(self) -> MapShape {
        let of = |kind, key_bytes, value: usize, entries_max| MapShape {
            kind,
            key_bytes,
            value_bytes: value as u32,
            entries_max,
        };
        match self {
            Self::Members => of(MapKind::Array, 4, 8, PID_LIMIT / MEMBERS_IN_WORD),
            Self::Threads => of(MapKind::Hash, 8, size_of::<ThreadState>(), THREADS_MAX),
            Self::Calls => of(MapKind::PerCpuArray, 4, size_of::<CallState>(), SIDES * CALLS_MAX),
            Self::Counters => of(MapKind::PerCpuArray, 4, 8, Counter::COUNT),
            Self::Cpu => of(MapKind::PerCpuArray, 4, size_of::<CpuState>(), 1),
            Self::Wakes => of(MapKind::Hash, size_of::<WakeKey>() as u32, size_of::<WakeState>(), WAKES_MAX),
            Self::Softirqs => {
                of(MapKind::PerCpuArray, 4, size_of::<SoftirqState>(), (1 + SIDES) * SOFTIRQS_MAX)
            }
            Self::Errors => of(MapKind::Hash, size_of::<ErrorKey>() as u32, 8, ERRORS_MAX),
            Self::Opened => of(MapKind::Hash, size_of::<NameKey>() as u32, 8, NAMES_MAX),
            Self::Name => of(MapKind::PerCpuArray, 4, size_of::<NameKey>(), 1),
            Self::Operations => {
                of(MapKind::PerCpuArray, 4, size_of::<OperationState>(), SIDES * OPERATIONS_MAX)
            }
            Self::Descriptors => {
                let key_bytes = size_of::<DescriptorKey>() as u32;
                of(MapKind::Hash, key_bytes, size_of::<DescriptorState>(), DESCRIPTORS_MAX)
            }
            Self::OtherDescriptors => of(MapKind::Array, 4, size_of::<DescriptorState>(), SIDES),
            Self::NewDescriptor => of(MapKind::PerCpuArray, 4, size_of::<DescriptorState>(), 1),
            Self::RunThreads => of(MapKind::Hash, 8, 8, THREADS_MAX),
            Self::RunCalls => of(MapKind::PerCpuArray, 4, 8, CALLS_MAX + 1),
        }
    }
}

/// A thread, from the moment it was first seen.
#[repr(C)]
pub(super) struct ThreadState {
    /// When it entered the call it is in; 0 when it is in none that was seen to begin.
    pub(super) entered_ns: u64,
    /// `blocked_ns` and `queued_ns` at that moment.
    pub(super) entered_blocked_ns: u64,
    pub(super) entered_queued_ns: u64,
    pub(super) entered_softirq_ns: u64,
    pub(super) entered_probe_ns: u64,
    pub(super) entered_probe_runs: u64,
    /// When it left its CPU; 0 while it has one.
    pub(super) parked_ns: u64,
    /// When it became runnable since; 0 when it did not.
    pub(super) woken_ns: u64,
    /// When it got the CPU that it has, or was first seen there; 0 while it has none.
    pub(super) resumed_ns: u64,
    /// When it was last seen to have one: it got it then, or entered or left a call.
    pub(super) seen_ns: u64,
    /// Sum of the times it had one.
    pub(super) ran_ns: u64,
    /// What our own program took on the way to it, before it ran.
    pub(super) switch_probe_ns: u64,
    /// Sum of the times it slept.
    pub(super) blocked_ns: u64,
    /// Sum of the times it had been woken or preempted and did not run yet.
    pub(super) queued_ns: u64,
    /// Sum of the times it was interrupted by softirqs.
    pub(super) softirq_ns: u64,
    /// What our own programs took of it, by their own clock readings, but for those within softirqs, which are in the
    /// softirqs' times; and how often they ran.
    pub(super) probe_ns: u64,
    pub(super) probe_runs: u64,
    /// Time on a CPU in calls that returned; of its other sums the part that came within such calls.
    pub(super) in_calls_ns: u64,
    pub(super) in_calls_queued_ns: u64,
    pub(super) in_calls_softirq_ns: u64,
    pub(super) in_calls_probe_ns: u64,
    pub(super) in_calls_probe_runs: u64,
    pub(super) sleeps: u64,
    pub(super) preemptions: u64,
    /// Process in the upper half, thread in the lower.
    pub(super) ids: u64,
    pub(super) calls: u64,
    /// Its [`Side`].
    pub(super) side: u64,
    pub(super) call_number: u32,
    /// It was made by an observed thread, and has not come back from that call yet.
    pub(super) is_newborn: u32,
    /// 1 for a thread of a program of 32 bits, as far as that was seen to begin.
    pub(super) is_of_32_bits: u64,
}

/// A system call on one CPU.
#[repr(C)]
pub(super) struct CallState {
    pub(super) count: u64,
    pub(super) errors: u64,
    pub(super) again: u64,
    pub(super) again_ns: u64,
    pub(super) returned: u64,
    /// A sum of its own: were it what is left of the wall time, a reading between two additions would take a sleep for
    /// work.
    pub(super) on_cpu_ns: u64,
    pub(super) blocked_ns: u64,
    pub(super) queued_ns: u64,
    pub(super) softirq_ns: u64,
    pub(super) probe_ns: u64,
    pub(super) probe_runs: u64,
    pub(super) unreturned: u64,
    pub(super) buckets: [u64; BUCKETS],
}

/// How a kind of call failed.
#[repr(C)]
pub(super) struct ErrorKey {
    /// As in [`Table::Calls`].
    pub(super) call: u32,
    /// The error's number.
    pub(super) error: u32,
}

/// The name that a file was opened by.
#[repr(C)]
pub(super) struct NameKey {
    /// The side of the thread that did.
    pub(super) side: u64,
    /// With zeros behind it.
    pub(super) name: [u8; NAME_BYTES],
}

/// A CPU.
#[repr(C)]
pub(super) struct CpuState {
    /// When the program at the softirq's begin began, and when it was done; 0 outside.
    pub(super) softirq_began_ns: u64,
    pub(super) softirq_entered_ns: u64,
    /// Kind of the softirq that runs, plus one; 0 outside.
    pub(super) softirq: u64,
    /// 1 while a timer of high resolution is at work, in an interrupt; 0 outside.
    pub(super) timer: u64,
    /// What our own programs have taken of it so far.
    pub(super) probe_ns: u64,
    pub(super) probe_runs: u64,
}

/// Who woke whom.
#[repr(C)]
pub(super) struct WakeKey {
    /// 0 for a timer, whatever thread it interrupted.
    pub(super) waker: u64,
    pub(super) sleeper: u32,
    /// As [`CpuState::softirq`], or [`IN_TIMER`].
    pub(super) context: u32,
    /// The sleeper's.
    pub(super) side: u64,
}

/// How often, and how long the sleepers had slept.
#[repr(C)]
pub(super) struct WakeState {
    pub(super) count: u64,
    pub(super) blocked_ns: u64,
    pub(super) waker_name: [u8; 16],
}

/// Softirqs of one kind on one CPU.
#[repr(C)]
pub(super) struct SoftirqState {
    pub(super) count: u64,
    pub(super) ns: u64,
    /// Of it, our own programs, and how often they ran.
    pub(super) probe_ns: u64,
    pub(super) probe_runs: u64,
}

/// Operations of io_uring of one kind on one CPU.
#[repr(C)]
pub(super) struct OperationState {
    pub(super) submitted: u64,
    /// Given to worker threads of the kernel (io-wq).
    pub(super) to_workers: u64,
}

/// A single number; most of them have one for each side, that of the first in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Counter {
    /// Calls whose beginning was not seen.
    Cut,
    /// Observed threads that ended.
    ThreadsEnded = 2,
    /// Their times.
    EndedBlockedNs = 4,
    EndedQueuedNs = 6,
    /// What our own programs took of them.
    EndedProbeNs = 8,
    EndedProbeRuns = 10,
    /// What they had a CPU for, and how often they left it.
    EndedRanNs = 12,
    EndedSleeps = 14,
    EndedPreemptions = 16,
    /// Switches that the kernel did not announce, as far as later events betray them.
    SwitchesMissed = 18,
    /// Times a thread could not be followed because the table was full.
    ThreadsLost = 20,
    /// Wakes that found no room.
    WakesLost,
    /// First of the io_uring events: three for each, in other contexts and in observed threads of each side.
    Uring,
}

impl Counter {
    pub(super) const COUNT: u32 = Self::Uring as u32 + (1 + SIDES) * URING_EVENTS.len() as u32;
}

/// Events of io_uring that are counted, by their names in the kernel and here.
pub(super) const URING_EVENTS: [&str; 7] = [
    "io_uring_submit_req",
    "io_uring_complete",
    "io_uring_queue_async_work",
    "io_uring_poll_arm",
    "io_uring_task_add",
    "io_uring_local_work_run",
    "io_uring_cqe_overflow",
];

/// A thread as it was when it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TracedThread {
    /// Process number.
    pub pid: u32,
    /// Thread number.
    pub tid: u32,
    /// The side it is on.
    pub side: Side,
    /// System calls it began.
    pub calls: u64,
    /// Time on a CPU, without what is still going on: from the end of a switch to it until the next one begins. The
    /// scheduler counts from the begin of that switch, which on an idle CPU is earlier by more than a call may take.
    pub ran_ns: u64,
    /// What our own program took of those switches to it.
    pub switch_probe_ns: u64,
    /// Time asleep, likewise.
    pub blocked_ns: u64,
    /// Time woken or preempted and not running yet, likewise.
    pub queued_ns: u64,
    /// Time in softirqs that interrupted it.
    pub softirq_ns: u64,
    /// What our own programs took of it outside of softirqs.
    pub probe: ProbeTime,
    /// Of all these, what came within calls that returned.
    pub in_calls: InCalls,
    /// Times it went to sleep.
    pub sleeps: u64,
    /// Times it lost its CPU to another thread.
    pub preemptions: u64,
    /// The call it is in, and since when (CLOCK_MONOTONIC).
    pub in_call: Option<(u32, u64)>,
    /// Since when it has no CPU.
    pub parked_since_ns: Option<u64>,
    /// Whether it has been woken since, or was preempted.
    pub is_runnable: bool,
    /// Of the time asleep, what came within the call it is in.
    pub in_call_blocked_ns: u64,
}

impl TracedThread {
    /// How long it has slept so far in the call that it is in.
    pub fn asleep_in_call_ns(&self, at_ns: u64) -> u64 {
        let still = self.parked_since_ns.filter(|_| !self.is_runnable);
        self.in_call_blocked_ns.saturating_add(still.map_or(0, |since_ns| at_ns.saturating_sub(since_ns)))
    }
}

/// What our own programs took, by their own clock readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeTime {
    /// Between the first and the last reading of each run.
    pub ns: u64,
    /// Runs. Each took more than `ns` says by the way to the program and back, and by a reading of the clock.
    pub runs: u64,
}

impl ProbeTime {
    /// Field by field.
    pub(super) fn combined(&self, other: &Self, both: impl Fn(u64, u64) -> u64) -> Self {
        Self { ns: both(self.ns, other.ns), runs: both(self.runs, other.runs) }
    }
}

/// What of a thread's times came within calls that returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InCalls {
    /// On a CPU, with softirqs and with our own programs.
    pub on_cpu_ns: u64,
    /// Woken or preempted and not running yet.
    pub queued_ns: u64,
    /// In softirqs.
    pub softirq_ns: u64,
    /// In our own programs.
    pub probe: ProbeTime,
}

impl InCalls {
    /// Field by field.
    pub(super) fn combined(&self, other: &Self, both: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            on_cpu_ns: both(self.on_cpu_ns, other.on_cpu_ns),
            queued_ns: both(self.queued_ns, other.queued_ns),
            softirq_ns: both(self.softirq_ns, other.softirq_ns),
            probe: self.probe.combined(&other.probe, both),
        }
    }
}

/// Softirqs of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TracedSoftirq {
    /// How often it ran.
    pub count: u64,
    /// How long.
    pub ns: u64,
    /// Of it, our own programs.
    pub probe: ProbeTime,
}

impl TracedSoftirq {
    /// Of one CPU.
    pub(super) fn decode(bytes: &[u8]) -> Self {
        let at = |offset| word(bytes, offset);
        Self {
            count: at(offset_of!(SoftirqState, count)),
            ns: at(offset_of!(SoftirqState, ns)),
            probe: ProbeTime {
                ns: at(offset_of!(SoftirqState, probe_ns)),
                runs: at(offset_of!(SoftirqState, probe_runs)),
            },
        }
    }

    /// Field by field.
    pub(super) fn combined(&self, other: &Self, both: impl Fn(u64, u64) -> u64 + Copy) -> Self {
        Self {
            count: both(self.count, other.count),
            ns: both(self.ns, other.ns),
            probe: self.probe.combined(&other.probe, both),
        }
    }
}

/// One kind of system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedCall {
    /// Calls that returned.
    pub count: u64,
    /// Of them, those that failed for another reason than that there was nothing to do.
    pub errors: u64,
    /// Of them, those that found nothing to do (`EAGAIN`).
    pub again: u64,
    /// Time on a CPU in calls that found nothing.
    pub again_ns: u64,
    /// Sum of the positive answers: bytes of transfers, events of waits, submissions of `io_uring_enter`.
    pub returned: u64,
    /// Time on a CPU, interrupts that came meanwhile included.
    pub on_cpu_ns: u64,
    /// Time asleep.
    pub blocked_ns: u64,
    /// Time woken or preempted and not running yet.
    pub queued_ns: u64,
    /// Of the time on a CPU, softirqs.
    pub softirq_ns: u64,
    /// Of it, our own programs outside of softirqs.
    pub probe: ProbeTime,
    /// Calls in which their thread ended.
    pub unreturned: u64,
    /// Calls by wall time, see [`BUCKETS`].
    pub buckets: [u64; BUCKETS],
}

impl Default for TracedCall {
    fn default() -> Self {
        Self::decode(&[0; size_of::<CallState>()])
    }
}

/// What a CPU does for a thread that is not the one it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WakeContext {
    /// A softirq of this kind: the thread only happened to run, or caused it by sending.
    Softirq(u32),
    /// A timer of high resolution, in an interrupt: the thread only happened to run, and is not told.
    Timer,
}

/// Who woke whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracedWake {
    /// Process of the thread that ran when the wake came; 0 when the CPU was idle, and of a timer.
    pub waker_pid: u32,
    /// Its number; 0 likewise.
    pub waker_tid: u32,
    /// Its name.
    pub waker_name: String,
    /// The thread that slept.
    pub sleeper_tid: u32,
    /// What interrupted the waker and did it.
    pub context: Option<WakeContext>,
    /// The sleeper's side.
    pub side: Side,
    /// How often.
    pub count: u64,
    /// Sum of the sleeps it ended.
    pub blocked_ns: u64,
}

/// The number at an offset; 0 beyond the end.
fn word(bytes: &[u8], offset: usize) -> u64 {
    let found = bytes.get(offset..offset + 8).and_then(|bytes| bytes.try_into().ok());
    found.map_or(0, u64::from_ne_bytes)
}

fn half(bytes: &[u8], offset: usize) -> u32 {
    let found = bytes.get(offset..offset + 4).and_then(|bytes| bytes.try_into().ok());
    found.map_or(0, u32::from_ne_bytes)
}

fn side(number: u64) -> Side {
    if number == Side::Second as u64 { Side::Second } else { Side::First }
}

impl TracedThread {
    pub(super) fn decode(bytes: &[u8]) -> Self {
        let at = |offset| word(bytes, offset);
        let ids = at(offset_of!(ThreadState, ids));
        let entered_ns = at(offset_of!(ThreadState, entered_ns));
        let parked_ns = at(offset_of!(ThreadState, parked_ns));
        let call_number = half(bytes, offset_of!(ThreadState, call_number));
        Self {
            pid: (ids >> 32) as u32,
            tid: ids as u32,
            side: side(at(offset_of!(ThreadState, side))),
            calls: at(offset_of!(ThreadState, calls)),
            ran_ns: at(offset_of!(ThreadState, ran_ns)),
            switch_probe_ns: at(offset_of!(ThreadState, switch_probe_ns)),
            blocked_ns: at(offset_of!(ThreadState, blocked_ns)),
            queued_ns: at(offset_of!(ThreadState, queued_ns)),
            softirq_ns: at(offset_of!(ThreadState, softirq_ns)),
            probe: ProbeTime {
                ns: at(offset_of!(ThreadState, probe_ns)),
                runs: at(offset_of!(ThreadState, probe_runs)),
            },
            in_calls: InCalls {
                on_cpu_ns: at(offset_of!(ThreadState, in_calls_ns)),
                queued_ns: at(offset_of!(ThreadState, in_calls_queued_ns)),
                softirq_ns: at(offset_of!(ThreadState, in_calls_softirq_ns)),
                probe: ProbeTime {
                    ns: at(offset_of!(ThreadState, in_calls_probe_ns)),
                    runs: at(offset_of!(ThreadState, in_calls_probe_runs)),
                },
            },
            sleeps: at(offset_of!(ThreadState, sleeps)),
            preemptions: at(offset_of!(ThreadState, preemptions)),
            in_call: (entered_ns > 0).then_some((call_number, entered_ns)),
            parked_since_ns: (parked_ns > 0).then_some(parked_ns),
            is_runnable: at(offset_of!(ThreadState, woken_ns)) > 0,
            in_call_blocked_ns: match entered_ns {
                0 => 0,
                _ => at(offset_of!(ThreadState, blocked_ns))
                    .saturating_sub(at(offset_of!(ThreadState, entered_blocked_ns))),
            },
        }
    }
}

impl TracedCall {
    /// Of the copies of one CPU.
    pub(super) fn decode(bytes: &[u8]) -> Self {
        let at = |offset| word(bytes, offset);
        let bucket = |index| at(offset_of!(CallState, buckets) + 8 * index);
        Self {
            count: at(offset_of!(CallState, count)),
            errors: at(offset_of!(CallState, errors)),
            again: at(offset_of!(CallState, again)),
            again_ns: at(offset_of!(CallState, again_ns)),
            returned: at(offset_of!(CallState, returned)),
            on_cpu_ns: at(offset_of!(CallState, on_cpu_ns)),
            blocked_ns: at(offset_of!(CallState, blocked_ns)),
            queued_ns: at(offset_of!(CallState, queued_ns)),
            softirq_ns: at(offset_of!(CallState, softirq_ns)),
            probe: ProbeTime {
                ns: at(offset_of!(CallState, probe_ns)),
                runs: at(offset_of!(CallState, probe_runs)),
            },
            unreturned: at(offset_of!(CallState, unreturned)),
            buckets: std::array::from_fn(bucket),
        }
    }

    /// Time between begin and end.
    pub fn wall_ns(&self) -> u64 {
        total([self.on_cpu_ns, self.blocked_ns, self.queued_ns])
    }

    /// Field by field.
    pub(super) fn combined(&self, other: &Self, both: impl Fn(u64, u64) -> u64 + Copy) -> Self {
        Self {
            count: both(self.count, other.count),
            errors: both(self.errors, other.errors),
            again: both(self.again, other.again),
            again_ns: both(self.again_ns, other.again_ns),
            returned: both(self.returned, other.returned),
            on_cpu_ns: both(self.on_cpu_ns, other.on_cpu_ns),
            blocked_ns: both(self.blocked_ns, other.blocked_ns),
            queued_ns: both(self.queued_ns, other.queued_ns),
            softirq_ns: both(self.softirq_ns, other.softirq_ns),
            probe: self.probe.combined(&other.probe, both),
            unreturned: both(self.unreturned, other.unreturned),
            buckets: std::array::from_fn(|index| both(self.buckets[index], other.buckets[index])),
        }
    }
}

impl TracedWake {
    pub(super) fn decode(key: &[u8], value: &[u8]) -> Self {
        let waker = word(key, offset_of!(WakeKey, waker));
        let context = match half(key, offset_of!(WakeKey, context)) {
            0 => None,
            IN_TIMER => Some(WakeContext::Timer),
            kind => Some(WakeContext::Softirq(kind - 1)),
        };
        let name = match context {
            // That of the thread it interrupted.
            Some(WakeContext::Timer) => &[][..],
            _ => value.get(offset_of!(WakeState, waker_name)..).unwrap_or_default(),
        };
        let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Self {
            waker_pid: (waker >> 32) as u32,
            waker_tid: waker as u32,
            waker_name: String::from_utf8_lossy(&name[..length]).into_owned(),
            sleeper_tid: half(key, offset_of!(WakeKey, sleeper)),
            context,
            side: side(word(key, offset_of!(WakeKey, side))),
            count: word(value, offset_of!(WakeState, count)),
            blocked_ns: word(value, offset_of!(WakeState, blocked_ns)),
        }
    }
}

/// The side, the kind of call and the error of a key of [`Table::Errors`].
pub(super) fn decode_error(key: &[u8]) -> (Side, u32, u32) {
    let call = half(key, offset_of!(ErrorKey, call));
    (side((call / CALLS_MAX).into()), call % CALLS_MAX, half(key, offset_of!(ErrorKey, error)))
}

/// The side and the name of a key of [`Table::Opened`].
pub(super) fn decode_name(key: &[u8]) -> (Side, String) {
    let name = key.get(offset_of!(NameKey, name)..).unwrap_or_default();
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    (side(word(key, offset_of!(NameKey, side))), String::from_utf8_lossy(&name[..length]).into_owned())
}

/// Submitted, and given to workers, on one CPU.
pub(super) fn decode_operation(bytes: &[u8]) -> (u64, u64) {
    let at = |offset| word(bytes, offset);
    (at(offset_of!(OperationState, submitted)), at(offset_of!(OperationState, to_workers)))
}

/// A counter on one CPU.
pub(super) fn decode_counter(bytes: &[u8]) -> u64 {
    word(bytes, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_length_of_a_value_makes_reading_fail() {
        for length in 0..size_of::<CallState>() {
            let bytes = vec![0xff; length];
            let _ = (TracedThread::decode(&bytes), TracedCall::decode(&bytes), TracedSoftirq::decode(&bytes));
            let _ = TracedWake::decode(&bytes, &bytes);
        }
    }

    #[test]
    fn what_a_thread_is_in_is_known_by_its_marks() {
        let mut bytes = [0_u8; size_of::<ThreadState>()];
        assert_eq!(TracedThread::decode(&bytes), TracedThread::default());
        bytes[offset_of!(ThreadState, ids)] = 7;
        bytes[offset_of!(ThreadState, ids) + 4] = 5;
        bytes[offset_of!(ThreadState, entered_ns)] = 9;
        bytes[offset_of!(ThreadState, call_number)] = 232;
        let thread = TracedThread::decode(&bytes);
        assert_eq!((thread.pid, thread.tid, thread.in_call), (5, 7, Some((232, 9))));
    }
}
