//! The tables that the kernel's programs share with this process: the layout of their values, and how to read them.
//! Pure.
//!
//! The programs take offsets from these same structures, so both sides agree by construction.

mod descriptors;

use std::mem::offset_of;

use weir_record::observation::{CALL_BUCKETS, total};
use weir_sys::bpf::{MapKind, MapShape};

pub(super) use self::descriptors::{BELOW, DescriptorKey, DescriptorState, TransferState};
pub use self::descriptors::{DESCRIPTORS_MAX, TracedDescriptor, TracedTransfers};
pub(super) use weir_record::observation::SIZE_BUCKETS;

/// Most threads that are followed at a time; further ones are counted as lost.
pub const THREADS_MAX: u32 = 16_384;
/// Most waker pairs; wakes of further pairs are counted as lost.
pub const WAKES_MAX: u32 = 8_192;
/// Number of indices for kinds of system calls.
pub const CALLS_MAX: u32 = 512;
/// Numbers from here on count as one kind, at this index.
pub const CALLS_BEYOND: u32 = CALLS_MAX - 1;
/// Calls of 32-bit programs, whose numbers have other meanings, count at this index.
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
/// Most file names whose opens are counted; opens of further names are not counted.
pub const NAMES_MAX: u32 = 4_096;
/// Length of such a name with its final zero; longer ones are not counted.
pub(super) const NAME_BYTES: usize = 248;
/// Buckets of a histogram: bucket `i` holds times of 2^i ns up to twice that, the last one all longer ones.
pub const BUCKETS: usize = CALL_BUCKETS;
/// Number of indices for kinds of io_uring operations; kinds from the last one on share it.
pub(super) const OPERATIONS_MAX: u32 = 128;
/// Kinds of softirqs of the kernel, with spare ones.
pub(super) const SOFTIRQS_MAX: u32 = 16;
/// [`WakeKey::context`] of a timer: after those of softirqs.
pub(super) const IN_TIMER: u32 = SOFTIRQS_MAX + 1;
/// Ids of a waker that has none in the observer's PID namespace; no thread has this number.
pub(super) const OUTSIDE: u32 = weir_record::observation::OUTSIDE;
/// Upper limit of process numbers (`PID_MAX_LIMIT`).
pub(super) const PID_LIMIT: u32 = 1 << 22;
/// Processes per word of the members table.
pub(super) const MEMBERS_IN_WORD: u32 = 32;
/// Number of sides.
pub(super) const SIDES: u32 = Side::ALL.len() as u32;

/// One of two processes that the same programs observe. Without a comparison everything is on the first side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// The first process and its children.
    #[default]
    First,
    /// The other process and its children.
    Second,
}

impl Side {
    /// Both sides.
    pub const ALL: [Self; 2] = [Self::First, Self::Second];
}

/// The tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    /// Two bits for each process: 0 if it is not observed, otherwise its [`Side`] plus one.
    Members,
    /// Keyed by the address of a task: [`ThreadState`].
    Threads,
    /// Keyed by side and number of the system call: [`CallState`].
    Calls,
    /// Keyed by [`Counter`]: a number.
    Counters,
    /// [`CpuState`].
    Cpu,
    /// Keyed by [`WakeKey`]: [`WakeState`].
    Wakes,
    /// Keyed by kind, for other threads and for observed threads of each side: [`SoftirqState`].
    Softirqs,
    /// Keyed by [`ErrorKey`]: a number.
    Errors,
    /// Keyed by [`NameKey`]: a number.
    Opened,
    /// A [`NameKey`] under construction, too large for the stack.
    Name,
    /// Keyed by side and kind of operation: [`OperationState`].
    Operations,
    /// Keyed by [`DescriptorKey`]: [`DescriptorState`].
    Descriptors,
    /// Keyed by side: the descriptors that found no room.
    OtherDescriptors,
    /// An empty [`DescriptorState`], too large for the stack.
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

    /// Whether only descriptors use it.
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
    /// When it entered its current call; 0 if it is in none whose start was seen.
    pub(super) entered_ns: u64,
    /// `blocked_ns` and `queued_ns` at that moment.
    pub(super) entered_blocked_ns: u64,
    pub(super) entered_queued_ns: u64,
    pub(super) entered_softirq_ns: u64,
    pub(super) entered_probe_ns: u64,
    pub(super) entered_probe_runs: u64,
    /// When it lost its CPU; 0 while it has one.
    pub(super) parked_ns: u64,
    /// When it became runnable since then; 0 if it did not.
    pub(super) woken_ns: u64,
    /// When it got its current CPU, or was first seen there; 0 while it has none.
    pub(super) resumed_ns: u64,
    /// When it was last known to have one: it got it then, or entered or left a call.
    pub(super) seen_ns: u64,
    /// Total time on a CPU.
    pub(super) ran_ns: u64,
    /// Time of our own program during switches to it, before it ran.
    pub(super) switch_probe_ns: u64,
    /// Total time asleep.
    pub(super) blocked_ns: u64,
    /// Total time runnable (woken or preempted) without a CPU.
    pub(super) queued_ns: u64,
    /// Total time of softirqs that interrupted it.
    pub(super) softirq_ns: u64,
    /// Time of our own programs on it, by their own clock readings, except those within softirqs, which count in the
    /// softirqs' times; and their number of runs.
    pub(super) probe_ns: u64,
    pub(super) probe_runs: u64,
    /// Time on a CPU in calls that returned; below, the part of its other sums within such calls.
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
    /// Whether it was created by an observed thread and has not returned from that call yet.
    pub(super) is_newborn: u32,
    /// 1 for a thread of a 32-bit program, if the program's start was seen.
    pub(super) is_of_32_bits: u64,
}

/// A kind of system call on one CPU.
#[repr(C)]
pub(super) struct CallState {
    pub(super) count: u64,
    pub(super) errors: u64,
    pub(super) again: u64,
    pub(super) again_ns: u64,
    pub(super) returned: u64,
    /// A separate sum: if it were computed as a remainder of the wall time, a reading between two additions would
    /// count a sleep as work.
    pub(super) on_cpu_ns: u64,
    pub(super) blocked_ns: u64,
    pub(super) queued_ns: u64,
    pub(super) softirq_ns: u64,
    pub(super) probe_ns: u64,
    pub(super) probe_runs: u64,
    pub(super) unreturned: u64,
    pub(super) buckets: [u64; BUCKETS],
}

/// A kind of call with an error.
#[repr(C)]
pub(super) struct ErrorKey {
    /// Index as in [`Table::Calls`].
    pub(super) call: u32,
    /// The error number.
    pub(super) error: u32,
}

/// The name that a file was opened by.
#[repr(C)]
pub(super) struct NameKey {
    /// The side of the opening thread.
    pub(super) side: u64,
    /// Padded with zeros.
    pub(super) name: [u8; NAME_BYTES],
}

/// A CPU.
#[repr(C)]
pub(super) struct CpuState {
    /// When the program at the softirq's start began, and when it finished; 0 outside of a softirq.
    pub(super) softirq_began_ns: u64,
    pub(super) softirq_entered_ns: u64,
    /// Kind of the current softirq, plus one; 0 outside.
    pub(super) softirq: u64,
    /// 1 while a high-resolution timer runs, in an interrupt; 0 outside.
    pub(super) timer: u64,
    /// Time of our own programs in it so far.
    pub(super) probe_ns: u64,
    pub(super) probe_runs: u64,
}

/// A waker and its context.
#[repr(C)]
pub(super) struct WakeKey {
    /// Ids of the waker; 0 for a timer, whatever thread it interrupted.
    pub(super) waker: u64,
    pub(super) sleeper: u32,
    /// As in [`CpuState::softirq`], or [`IN_TIMER`].
    pub(super) context: u32,
    /// The sleeper's side.
    pub(super) side: u64,
}

/// Number of wakes, and total sleep of the sleepers.
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
    /// Time of our own programs within it, and their number of runs.
    pub(super) probe_ns: u64,
    pub(super) probe_runs: u64,
}

/// Operations of io_uring of one kind on one CPU.
#[repr(C)]
pub(super) struct OperationState {
    pub(super) submitted: u64,
    /// Given to the kernel's worker threads (io-wq).
    pub(super) to_workers: u64,
}

/// Counters; most of them have one value per side, the first side's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Counter {
    /// Calls whose start was not seen.
    Cut,
    /// Observed threads that ended.
    ThreadsEnded = 2,
    /// Their times.
    EndedBlockedNs = 4,
    EndedQueuedNs = 6,
    /// Time of our own programs on them.
    EndedProbeNs = 8,
    EndedProbeRuns = 10,
    /// Their time on a CPU, and how often they left it.
    EndedRanNs = 12,
    EndedSleeps = 14,
    EndedPreemptions = 16,
    /// Switches that the kernel did not report, as far as later events reveal them.
    SwitchesMissed = 18,
    /// Threads that could not be followed because the table was full.
    ThreadsLost = 20,
    /// Wakes that found no room.
    WakesLost,
    /// First of the io_uring events: three for each, in other contexts and in observed threads of each side.
    Uring,
}

impl Counter {
    pub(super) const COUNT: u32 = Self::Uring as u32 + (1 + SIDES) * URING_EVENTS.len() as u32;
}

/// Counted io_uring events, with their names in the kernel and here.
pub(super) const URING_EVENTS: [&str; 7] = [
    "io_uring_submit_req",
    "io_uring_complete",
    "io_uring_queue_async_work",
    "io_uring_poll_arm",
    "io_uring_task_add",
    "io_uring_local_work_run",
    "io_uring_cqe_overflow",
];

/// A thread at the time of reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TracedThread {
    /// Process number.
    pub pid: u32,
    /// Thread number.
    pub tid: u32,
    /// Its side.
    pub side: Side,
    /// System calls it started.
    pub calls: u64,
    /// Time on a CPU, without the current run: from the end of a switch to it until the next one starts. The
    /// scheduler counts from the start of that switch, which on an idle CPU is earlier by more than a call may take.
    pub ran_ns: u64,
    /// Time of our own program during those switches to it.
    pub switch_probe_ns: u64,
    /// Time asleep, likewise.
    pub blocked_ns: u64,
    /// Time runnable without a CPU, likewise.
    pub queued_ns: u64,
    /// Time in softirqs that interrupted it.
    pub softirq_ns: u64,
    /// Time of our own programs on it outside of softirqs.
    pub probe: ProbeTime,
    /// The part of these within calls that returned.
    pub in_calls: InCalls,
    /// Number of sleeps.
    pub sleeps: u64,
    /// Number of preemptions.
    pub preemptions: u64,
    /// Its current call, and since when (CLOCK_MONOTONIC).
    pub in_call: Option<(u32, u64)>,
    /// Since when it has had no CPU.
    pub parked_since_ns: Option<u64>,
    /// Whether it has been woken since, or was preempted.
    pub is_runnable: bool,
    /// Time asleep within its current call.
    pub in_call_blocked_ns: u64,
}

impl TracedThread {
    /// Time asleep so far in its current call.
    pub fn asleep_in_call_ns(&self, at_ns: u64) -> u64 {
        let still = self.parked_since_ns.filter(|_| !self.is_runnable);
        self.in_call_blocked_ns.saturating_add(still.map_or(0, |since_ns| at_ns.saturating_sub(since_ns)))
    }
}

/// Time of our own programs, by their own clock readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeTime {
    /// Between the first and the last reading of each run.
    pub ns: u64,
    /// Number of runs. Each took longer than `ns` shows, by entering and leaving the program and one clock reading.
    pub runs: u64,
}

impl ProbeTime {
    /// Field by field.
    pub(super) fn combined(&self, other: &Self, both: impl Fn(u64, u64) -> u64) -> Self {
        Self { ns: both(self.ns, other.ns), runs: both(self.runs, other.runs) }
    }
}

/// The part of a thread's times within calls that returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InCalls {
    /// On a CPU, including softirqs and our own programs.
    pub on_cpu_ns: u64,
    /// Runnable without a CPU.
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
    /// Number of runs.
    pub count: u64,
    /// Total time.
    pub ns: u64,
    /// Time of our own programs within it.
    pub probe: ProbeTime,
}

impl TracedSoftirq {
    /// Decodes the value of one CPU.
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
    /// Failed calls, except those that found nothing to do.
    pub errors: u64,
    /// Calls that found nothing to do (`EAGAIN`).
    pub again: u64,
    /// Time on a CPU in calls that found nothing.
    pub again_ns: u64,
    /// Sum of the positive results: bytes of transfers, events of waits, submissions of `io_uring_enter`.
    pub returned: u64,
    /// Time on a CPU, including interrupts.
    pub on_cpu_ns: u64,
    /// Time asleep.
    pub blocked_ns: u64,
    /// Time runnable without a CPU.
    pub queued_ns: u64,
    /// Part of the time on a CPU in softirqs.
    pub softirq_ns: u64,
    /// Part of it in our own programs outside of softirqs.
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

/// What a CPU does other than running its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WakeContext {
    /// A softirq of this kind: the current thread was interrupted, or caused it by sending.
    Softirq(u32),
    /// A high-resolution timer, in an interrupt: the current thread was interrupted and is not reported.
    Timer,
}

/// Wakes of one thread by another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracedWake {
    /// Process of the current thread at the wake; 0 if the CPU was idle, and for a timer.
    pub waker_pid: u32,
    /// Its thread number; 0 likewise.
    pub waker_tid: u32,
    /// Its name.
    pub waker_name: String,
    /// The sleeping thread.
    pub sleeper_tid: u32,
    /// What interrupted the waker and made the wake.
    pub context: Option<WakeContext>,
    /// The sleeper's side.
    pub side: Side,
    /// Number of wakes.
    pub count: u64,
    /// Total length of the sleeps it ended.
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
    /// Decodes the copy of one CPU.
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

    /// Time between start and end.
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
            // The name is that of the interrupted thread.
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

/// The side, the kind of call and the error in a key of [`Table::Errors`].
pub(super) fn decode_error(key: &[u8]) -> (Side, u32, u32) {
    let call = half(key, offset_of!(ErrorKey, call));
    (side((call / CALLS_MAX).into()), call % CALLS_MAX, half(key, offset_of!(ErrorKey, error)))
}

/// The side and the name in a key of [`Table::Opened`].
pub(super) fn decode_name(key: &[u8]) -> (Side, String) {
    let name = key.get(offset_of!(NameKey, name)..).unwrap_or_default();
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    (side(word(key, offset_of!(NameKey, side))), String::from_utf8_lossy(&name[..length]).into_owned())
}

/// Operations submitted, and given to workers, on one CPU.
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
