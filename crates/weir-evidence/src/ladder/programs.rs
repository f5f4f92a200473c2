//! The programs for the kernel's tracepoints, written with the assembler. Pure.
//!
//! They do not depend on kernel structures: a task is identified only by its address, which serves as a key, and its
//! numbers come from kernel helpers while it is the running one. So they need neither type information nor field
//! offsets, and run on any kernel that has the tracepoints. They follow one pointer, to the saved registers of the
//! program, whose order is part of the debugger interface (`ptrace(2)`), and from there to file names.
//!
//! The counts are exact for two reasons. The programs for one thread's calls run on that thread, one after another,
//! without being preempted. Values that several CPUs write are changed atomically. The kernel counts an event as a
//! miss if the same program is already running on that CPU, and the misses are reported.
//!
//! The time of programs that run within a call or a softirq would be counted as part of it. So they read the clock at
//! their start and at their end, and store their time and number of runs with the thread or the softirq, separate
//! from its own times. Programs at the edges of an interval read the clock on its inner side: at their end when a
//! call or a softirq starts, at their start when it ends.

macro_rules! of_cpu {
    ($name:ident) => {
        field(offset_of!(CpuState, $name))
    };
}

macro_rules! of_thread {
    ($name:ident) => {
        field(offset_of!(ThreadState, $name))
    };
}

macro_rules! of_call {
    ($name:ident) => {
        field(offset_of!(CallState, $name))
    };
}

mod descriptors;
mod opened;
pub(super) mod run_calls;
mod scheduling;
mod softirqs;

use std::mem::offset_of;

use super::{
    assembler::{Assembled, Assembler, Atomic, Condition, Helper, Label, Operation, Register, Width},
    kernel::Kernel,
    tables::{
        BUCKETS, CALLS_BEYOND, CALLS_MAX, CALLS_OF_32_BITS, CallState, Counter, CpuState, ErrorKey,
        MEMBERS_IN_WORD, OPERATIONS_MAX, OperationState, SIDES, SOFTIRQS_MAX, Table, ThreadState,
        URING_EVENTS, WakeKey, WakeState,
    },
};
use Register::{Frame, R0, R1, R2, R3, R4, R6, R7, R8, R9};
use Width::{Eight, Four};
use scheduling::Moment;
use weir_sys::syscalls::{EXECVE, EXECVEAT};

/// Whether the amounts moved through descriptors can be counted on this architecture.
pub const DESCRIPTORS_ARE_KNOWN: bool = descriptors::ARE_KNOWN;

/// Stack slots, as offsets from its end.
const TASK: i16 = -8;
const NUMBER: i16 = -16;
/// Start time of the program.
const BEGAN: i16 = -24;
const WAKE_KEY: i16 = BEGAN - size_of::<WakeKey>() as i16;
/// Shares the slot of `WAKE_KEY`, in programs that handle no wakes.
const ERROR_KEY: i16 = WAKE_KEY;
/// A spilled register.
const REGISTER: i16 = WAKE_KEY + 8;
/// A value under construction.
const FRESH: i16 = WAKE_KEY - size_of::<ThreadState>() as i16;
/// Ids of a thread in a PID namespace.
const NAMESPACED: i16 = FRESH - 8;

// The kernel gives a program 512 bytes of stack, and requires aligned numbers there.
const _: () = assert!(-NAMESPACED <= 512 && FRESH % 8 == 0 && WAKE_KEY % 8 == 0);
const _: () = assert!(size_of::<WakeState>() <= size_of::<ThreadState>());
const _: () = assert!(size_of::<ErrorKey>() == 8 && size_of::<WakeKey>() >= 16);
// Indices combine a side and a number by shifts.
const _: () = assert!(
    CALLS_MAX.is_power_of_two() && SOFTIRQS_MAX.is_power_of_two() && OPERATIONS_MAX.is_power_of_two()
);
const _: () = assert!(MEMBERS_IN_WORD * 2 == u64::BITS && SIDES < 1 << 2);

/// `task_struct.__state` of a thread that will not run again.
const TASK_DEAD: i32 = 0x80;
/// Result of a call that found nothing to do (`EAGAIN`).
const NOTHING_YET: i32 = -11;
/// Results from here to -1 are errors (`MAX_ERRNO`).
const FIRST_ERROR: i32 = -4095;
/// The element must not exist yet; otherwise the old one is replaced.
const NEW_ONLY: i32 = 1;
const REPLACE: i32 = 0;

/// Groups of programs. Each group can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// System calls by kind: count, time, results.
    Calls,
    /// Sleeping, waiting for a CPU, and wakers. Without it the time of a call is not split.
    Scheduling,
    /// Events of io_uring.
    Uring,
    /// Time in softirqs.
    Softirqs,
    /// Amounts that system calls moved through each descriptor.
    Descriptors,
}

impl Group {
    /// The default groups of a trace. [`Self::Descriptors`] must be requested.
    pub const ALL: [Self; 4] = [Self::Calls, Self::Scheduling, Self::Uring, Self::Softirqs];

    /// Its name in readings.
    pub fn key(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Scheduling => "scheduling",
            Self::Uring => "io_uring",
            Self::Softirqs => "softirqs",
            Self::Descriptors => "descriptors",
        }
    }

    /// Its programs with their tracepoints, in the order of attachment. Programs that follow threads are attached
    /// before those that count.
    pub(super) fn programs(self, kernel: Kernel) -> Vec<(&'static str, Assembled)> {
        match self {
            Self::Calls => vec![("sys_exit", sys_exit(kernel)), ("sys_enter", sys_enter(kernel))],
            // If the start of a timer was seen, so is its end.
            Self::Scheduling => vec![
                ("sched_switch", scheduling::switch(kernel)),
                ("hrtimer_expire_exit", scheduling::timer_ends()),
                ("hrtimer_expire_entry", scheduling::timer_begins()),
                ("sched_waking", scheduling::waking(kernel)),
            ],
            Self::Uring => {
                let each = URING_EVENTS.iter().enumerate();
                each.map(|(index, name)| (*name, uring_event(kernel, index))).collect()
            }
            // If the start of a softirq was seen, so is its end.
            Self::Softirqs => vec![("softirq_exit", softirqs::exit()), ("softirq_entry", softirqs::entry())],
            // It must run before the call's own exit program, which clears the thread's current call.
            Self::Descriptors => vec![("sys_exit", descriptors::exit(kernel))],
        }
    }
}

/// The programs that every group needs: one finds children of observed threads, the other notices freed addresses.
pub(super) fn family(kernel: Kernel) -> [(&'static str, Assembled); 2] {
    [("sched_process_free", scheduling::free()), ("sched_process_fork", scheduling::fork(kernel))]
}

/// A program without effect.
pub(super) fn idle() -> Assembled {
    let mut it = begin();
    it.exit();
    it.finish()
}

/// A program that reads the clock once: the part of every run that the program cannot measure itself.
pub(super) fn empty() -> Assembled {
    let mut it = begin();
    it.call(Helper::MonotonicNs);
    it.exit();
    it.finish()
}

/// A program that queries the ids of the current thread, in the form this process sees.
pub(super) fn numbering(kernel: Kernel) -> Assembled {
    let mut it = begin().on(kernel);
    current_ids(&mut it);
    it.exit();
    it.finish()
}

fn field(offset: usize) -> i16 {
    offset as i16
}

/// Starts a program; the arguments in `R1` are kept in `R6`.
fn begin() -> Assembler {
    let mut it = Assembler::default();
    it.copy(R6, R1);
    it
}

/// The same, and stores the start time at [`BEGAN`] and in `R0`.
fn begin_timed() -> Assembler {
    let mut it = begin();
    it.call(Helper::MonotonicNs);
    it.store(Eight, Frame, BEGAN, R0);
    it
}

/// `R0 =` run time of the program so far; clobbers `R1` to `R5`.
fn own_time(it: &mut Assembler) {
    it.call(Helper::MonotonicNs);
    it.load(Eight, R1, Frame, BEGAN);
    it.with(Operation::Subtract, R0, R1);
}

/// Charges this run's time to the current softirq, or else to the current thread if it is observed. Clobbers all but
/// `R6`, `R8` and `R9`.
fn charge(it: &mut Assembler) {
    let (thread, done) = (it.label(), it.label());
    element(it, Table::Cpu, 0, done);
    it.copy(R7, R0);
    it.load(Eight, R1, R7, of_cpu!(softirq));
    it.jump_if(Condition::Equal, R1, 0, thread);
    own_time(it);
    it.add_to(R7, of_cpu!(probe_ns), R0, R1);
    it.add_number_to(R7, of_cpu!(probe_runs), 1, R1);
    it.jump(done);
    it.bind(thread);
    it.call(Helper::CurrentTask);
    it.store(Eight, Frame, TASK, R0);
    it.lookup(Table::Threads, TASK);
    it.jump_if(Condition::Equal, R0, 0, done);
    it.copy(R7, R0);
    own_time(it);
    it.add_to(R7, of_thread!(probe_ns), R0, R1);
    it.add_number_to(R7, of_thread!(probe_runs), 1, R1);
    it.bind(done);
}

/// Loads the event's argument with this index.
fn argument(it: &mut Assembler, to: Register, index: i16) {
    it.load(Eight, to, R6, 8 * index);
}

/// `table[stack[key]] = stack[value]`; `R0` is 0 on success.
fn update(it: &mut Assembler, table: Table, key: i16, value: i16, mode: i32) {
    it.table(R1, table);
    it.address(R2, key);
    it.address(R3, value);
    it.set(R4, mode);
    it.call(Helper::MapUpdate);
}

/// The value of an array at index `number`; it always exists, but the verifier requires the check.
fn element(it: &mut Assembler, table: Table, number: u32, absent: Label) {
    it.store_number(Four, Frame, NUMBER, number as i32);
    it.lookup(table, NUMBER);
    it.jump_if(Condition::Equal, R0, 0, absent);
}

/// Adds 1 to a counter; clobbers `R0` to `R5`.
fn count(it: &mut Assembler, counter: u32) {
    let absent = it.label();
    element(it, Table::Counters, counter, absent);
    it.set(R1, 1);
    it.atomically(Atomic::Add, R0, 0, R1);
    it.bind(absent);
}

/// Adds `amount` (or 1) to the counter of the side of the thread in `R9`; clobbers `R0` to `R5`.
fn count_of_side(it: &mut Assembler, first: u32, amount: Option<Register>) {
    let absent = it.label();
    it.load(Eight, R1, R9, of_thread!(side));
    it.with_number(Operation::Add, R1, first as i32);
    it.store(Four, Frame, NUMBER, R1);
    it.lookup(Table::Counters, NUMBER);
    it.jump_if(Condition::Equal, R0, 0, absent);
    match amount {
        Some(register) => it.copy(R1, register),
        None => it.set(R1, 1),
    }
    it.atomically(Atomic::Add, R0, 0, R1);
    it.bind(absent);
}

/// `R0 =` the word of [`Table::Members`] with the process in the upper half of `R8`, `R7 =` its bit position. Each
/// process has two bits.
fn member_word(it: &mut Assembler, absent: Label) {
    it.copy(R7, R8);
    it.with_number(Operation::ShiftRight, R7, 32);
    it.copy(R1, R7);
    it.with_number(Operation::ShiftRight, R1, MEMBERS_IN_WORD.ilog2() as i32);
    it.store(Four, Frame, NUMBER, R1);
    it.lookup(Table::Members, NUMBER);
    it.jump_if(Condition::Equal, R0, 0, absent);
    it.with_number(Operation::And, R7, MEMBERS_IN_WORD as i32 - 1);
    it.with_number(Operation::ShiftLeft, R7, 1);
}

/// Clears the mark of the process in the upper half of `R8`.
fn unmark_member(it: &mut Assembler) {
    let absent = it.label();
    member_word(it, absent);
    it.set(R1, 3);
    it.with(Operation::ShiftLeft, R1, R7);
    // All bits except those two: -1 minus them.
    it.set(R2, -1);
    it.with(Operation::Subtract, R2, R1);
    it.atomically(Atomic::And, R0, 0, R2);
    it.bind(absent);
}

/// Zeroes `bytes` of the stack from `offset` on.
fn zero(it: &mut Assembler, offset: i16, bytes: usize) {
    for place in (0..bytes as i16).step_by(8) {
        it.store_number(Eight, Frame, offset + place, 0);
    }
}

/// `R0 =` the ids of the current thread as this process sees them, the process in the upper half; 0 if it is not
/// visible. Clobbers `R1` to `R5`.
fn current_ids(it: &mut Assembler) {
    let Some(namespace) = it.kernel().namespace else { return it.call(Helper::CurrentIds) };
    it.set_unsigned(R1, namespace.device);
    it.set_unsigned(R2, namespace.inode);
    it.address(R3, NAMESPACED);
    it.set(R4, 8);
    it.call(Helper::IdsInNamespace);
    // For a thread of another namespace the kernel writes zeros.
    it.load(Four, R0, Frame, NAMESPACED + 4);
    it.with_number(Operation::ShiftLeft, R0, 32);
    it.load(Four, R1, Frame, NAMESPACED);
    it.with(Operation::Add, R0, R1);
}

/// `R9 =` the state of the current thread, which is created if its process is a member; goes to `not_ours` for other
/// threads. Its address stays at [`TASK`]; clobbers `R7` and `R8`.
fn current_thread(it: &mut Assembler, not_ours: Label) {
    let (known, fits) = (it.label(), it.label());
    it.call(Helper::CurrentTask);
    it.store(Eight, Frame, TASK, R0);
    it.lookup(Table::Threads, TASK);
    it.copy(R9, R0);
    it.jump_if(Condition::NotEqual, R0, 0, known);
    current_ids(it);
    it.copy(R8, R0);
    member_word(it, not_ours);
    it.load(Eight, R1, R0, 0);
    it.with(Operation::ShiftRight, R1, R7);
    it.with_number(Operation::And, R1, 3);
    it.jump_if(Condition::Equal, R1, 0, not_ours);
    it.with_number(Operation::Add, R1, -1);
    zero(it, FRESH, size_of::<ThreadState>());
    it.store(Eight, Frame, FRESH + of_thread!(side), R1);
    it.store(Eight, Frame, FRESH + of_thread!(ids), R8);
    it.call(Helper::MonotonicNs);
    it.store(Eight, Frame, FRESH + of_thread!(resumed_ns), R0);
    it.store(Eight, Frame, FRESH + of_thread!(seen_ns), R0);
    update(it, Table::Threads, TASK, FRESH, NEW_ONLY);
    it.jump_if(Condition::Equal, R0, 0, fits);
    count(it, Counter::ThreadsLost as u32);
    it.jump(not_ours);
    it.bind(fits);
    it.lookup(Table::Threads, TASK);
    it.copy(R9, R0);
    it.jump_if(Condition::Equal, R0, 0, not_ours);
    it.bind(known);
}

/// Arguments: registers, number of the call.
fn sys_enter(kernel: Kernel) -> Assembled {
    let mut it = begin().on(kernel);
    let leave = it.label();
    current_thread(&mut it, leave);
    scheduling::has_cpu(&mut it, Moment::Now);
    // The ids change when a thread other than the first one calls exec.
    current_ids(&mut it);
    it.store(Eight, R9, of_thread!(ids), R0);
    for (total, entered) in [
        (of_thread!(blocked_ns), of_thread!(entered_blocked_ns)),
        (of_thread!(queued_ns), of_thread!(entered_queued_ns)),
        (of_thread!(softirq_ns), of_thread!(entered_softirq_ns)),
        (of_thread!(probe_ns), of_thread!(entered_probe_ns)),
        (of_thread!(probe_runs), of_thread!(entered_probe_runs)),
    ] {
        it.load(Eight, R1, R9, total);
        it.store(Eight, R9, entered, R1);
    }
    argument(&mut it, R1, 1);
    // Calls of 32-bit programs have a separate index.
    let (has_own_numbers, is_known) = (it.label(), it.label());
    it.load(Eight, R2, R9, of_thread!(is_of_32_bits));
    it.jump_if(Condition::Equal, R2, 0, has_own_numbers);
    it.set(R1, CALLS_OF_32_BITS as i32);
    it.jump(is_known);
    it.bind(has_own_numbers);
    it.jump_if(Condition::NotEqual, R1, CALLS_OF_32_BITS as i32, is_known);
    it.set(R1, CALLS_BEYOND as i32);
    it.bind(is_known);
    it.store(Four, R9, of_thread!(call_number), R1);
    it.store_number(Four, R9, of_thread!(is_newborn), 0);
    it.add_number_to(R9, of_thread!(calls), 1, R1);
    it.call(Helper::MonotonicNs);
    it.store(Eight, R9, of_thread!(entered_ns), R0);
    it.store(Eight, R9, of_thread!(seen_ns), R0);
    it.bind(leave);
    it.exit();
    it.finish()
}

/// `R8 =` the state of the current call of the thread in `R9`.
fn call_of_thread(it: &mut Assembler, absent: Label) {
    let is_known = it.label();
    it.load(Four, R1, R9, of_thread!(call_number));
    it.set(R2, CALLS_BEYOND as i32);
    it.jump_if(Condition::Above, R1, CALLS_OF_32_BITS as i32, is_known);
    it.copy(R2, R1);
    it.bind(is_known);
    it.load(Eight, R1, R9, of_thread!(side));
    it.with_number(Operation::ShiftLeft, R1, CALLS_MAX.ilog2() as i32);
    it.with(Operation::Add, R2, R1);
    it.store(Four, Frame, NUMBER, R2);
    it.lookup(Table::Calls, NUMBER);
    it.jump_if(Condition::Equal, R0, 0, absent);
    it.copy(R8, R0);
}

/// Offset of the register that determines the instruction set of a program (`cs` of `struct pt_regs`), and its value
/// for 32 bits. Where it is unknown such programs are found only by their files, when /proc is read.
#[cfg(target_arch = "x86_64")]
const OF_32_BITS: Option<(i32, i32)> = Some((136, 0x23));
#[cfg(not(target_arch = "x86_64"))]
const OF_32_BITS: Option<(i32, i32)> = None;

/// The thread in `R9` may return from an exec as a 32-bit program, whose calls have other numbers. Clobbers all but
/// `R6` and `R9`.
fn look_for_32_bits(it: &mut Assembler) {
    let Some((place, of_32_bits)) = OF_32_BITS else { return };
    let (became, keeps, done) = (it.label(), it.label(), it.label());
    it.load(Four, R1, R9, of_thread!(call_number));
    it.jump_if(Condition::Equal, R1, EXECVE as i32, became);
    it.jump_if(Condition::Equal, R1, EXECVEAT as i32, became);
    it.jump_if(Condition::NotEqual, R1, CALLS_OF_32_BITS as i32, done);
    it.bind(became);
    it.store_number(Eight, Frame, REGISTER, 0);
    argument(it, R3, 0);
    it.with_number(Operation::Add, R3, place);
    it.address(R1, REGISTER);
    it.set(R2, 8);
    it.call(Helper::ReadKernel);
    it.load(Eight, R1, Frame, REGISTER);
    it.set(R2, 1);
    it.jump_if(Condition::Equal, R1, of_32_bits, keeps);
    it.set(R2, 0);
    it.bind(keeps);
    it.store(Eight, R9, of_thread!(is_of_32_bits), R2);
    it.bind(done);
}

/// Arguments: registers, result.
fn sys_exit(kernel: Kernel) -> Assembled {
    let mut it = begin_timed().on(kernel);
    let (leave, cut, was_seen) = (it.label(), it.label(), it.label());
    current_thread(&mut it, leave);
    scheduling::has_cpu(&mut it, Moment::Began);
    look_for_32_bits(&mut it);
    it.load(Eight, R0, Frame, BEGAN);
    it.store(Eight, R9, of_thread!(seen_ns), R0);
    it.load(Eight, R1, R9, of_thread!(entered_ns));
    it.jump_if(Condition::NotEqual, R1, 0, was_seen);
    // A new thread returns from the call that created it, which another thread entered.
    it.load(Four, R1, R9, of_thread!(is_newborn));
    it.jump_if(Condition::Equal, R1, 0, cut);
    it.store_number(Four, R9, of_thread!(is_newborn), 0);
    // Its process gets no mark: its threads are followed from their creation on, and a mark would outlive the process
    // until the kernel has freed its task, when another process may already have the number.
    current_ids(&mut it);
    it.store(Eight, R9, of_thread!(ids), R0);
    it.jump(leave);
    it.bind(cut);
    count_of_side(&mut it, Counter::Cut as u32, None);
    it.jump(leave);

    it.bind(was_seen);
    it.load(Eight, R7, Frame, BEGAN);
    it.with(Operation::Subtract, R7, R1);
    it.store_number(Eight, R9, of_thread!(entered_ns), 0);
    call_of_thread(&mut it, leave);
    add_call(&mut it);
    add_bucket(&mut it);
    opened::count(&mut it);
    it.bind(leave);
    it.exit();
    it.finish()
}

/// `R2 =` the increase of a total of the thread in `R9` since its call began; adds it to a sum of the call in `R8`
/// and to one of the thread.
fn within_call(it: &mut Assembler, (total, entered): (i16, i16), sum: i16, sum_of_thread: Option<i16>) {
    it.load(Eight, R2, R9, total);
    it.load(Eight, R3, R9, entered);
    it.with(Operation::Subtract, R2, R3);
    it.add_to(R8, sum, R2, R1);
    if let Some(own) = sum_of_thread {
        it.add_to(R9, own, R2, R1);
    }
}

/// Adds the call of the thread in `R9`, which took `R7`, to the state in `R8`.
fn add_call(it: &mut Assembler) {
    let (failed, found_nothing, done) = (it.label(), it.label(), it.label());
    it.add_number_to(R8, of_call!(count), 1, R1);
    // The remainder of the wall time in R4 is time on a CPU.
    it.copy(R4, R7);
    for (total, entered, sum, sum_of_thread) in [
        (of_thread!(blocked_ns), of_thread!(entered_blocked_ns), of_call!(blocked_ns), None),
        (
            of_thread!(queued_ns),
            of_thread!(entered_queued_ns),
            of_call!(queued_ns),
            Some(of_thread!(in_calls_queued_ns)),
        ),
    ] {
        within_call(it, (total, entered), sum, sum_of_thread);
        it.with(Operation::Subtract, R4, R2);
    }
    for (total, entered, sum, sum_of_thread) in [
        (
            of_thread!(softirq_ns),
            of_thread!(entered_softirq_ns),
            of_call!(softirq_ns),
            of_thread!(in_calls_softirq_ns),
        ),
        (
            of_thread!(probe_ns),
            of_thread!(entered_probe_ns),
            of_call!(probe_ns),
            of_thread!(in_calls_probe_ns),
        ),
        (
            of_thread!(probe_runs),
            of_thread!(entered_probe_runs),
            of_call!(probe_runs),
            of_thread!(in_calls_probe_runs),
        ),
    ] {
        within_call(it, (total, entered), sum, Some(sum_of_thread));
    }
    it.add_to(R8, of_call!(on_cpu_ns), R4, R1);
    it.add_to(R9, of_thread!(in_calls_ns), R4, R1);
    argument(it, R2, 1);
    it.jump_if(Condition::Less, R2, 0, failed);
    it.add_to(R8, of_call!(returned), R2, R1);
    it.jump(done);
    it.bind(failed);
    it.jump_if(Condition::Equal, R2, NOTHING_YET, found_nothing);
    // Values below the errors are addresses, which are results.
    it.jump_if(Condition::Less, R2, FIRST_ERROR, done);
    it.add_number_to(R8, of_call!(errors), 1, R1);
    count_error(it);
    it.jump(done);
    it.bind(found_nothing);
    it.add_number_to(R8, of_call!(again), 1, R1);
    it.add_to(R8, of_call!(again_ns), R4, R1);
    it.bind(done);
}

/// Counts the error whose negative number is in `R2`, for the kind of call at [`NUMBER`]. Clobbers `R0` to `R5`.
fn count_error(it: &mut Assembler) {
    let (known, done) = (it.label(), it.label());
    it.load(Four, R1, Frame, NUMBER);
    it.store(Four, Frame, ERROR_KEY + field(offset_of!(ErrorKey, call)), R1);
    it.set(R1, 0);
    it.with(Operation::Subtract, R1, R2);
    it.store(Four, Frame, ERROR_KEY + field(offset_of!(ErrorKey, error)), R1);
    it.lookup(Table::Errors, ERROR_KEY);
    it.jump_if(Condition::NotEqual, R0, 0, known);
    it.store_number(Eight, Frame, FRESH, 0);
    // If another CPU created it first, the update fails and the lookup finds that one.
    update(it, Table::Errors, ERROR_KEY, FRESH, NEW_ONLY);
    it.lookup(Table::Errors, ERROR_KEY);
    it.jump_if(Condition::Equal, R0, 0, done);
    it.bind(known);
    it.set(R1, 1);
    it.atomically(Atomic::Add, R0, 0, R1);
    it.bind(done);
}

/// Adds the time in `R7` to the histogram in `R8`: the bucket is the position of its highest bit.
fn add_bucket(it: &mut Assembler) {
    highest_bit(it, R7);
    at_most(it, R2, BUCKETS as i32 - 1);
    it.with_number(Operation::ShiftLeft, R2, 3);
    it.with(Operation::Add, R8, R2);
    it.add_number_to(R8, of_call!(buckets), 1, R1);
}

/// `R2 =` the position of the highest bit of a nonzero number. Clobbers `number` and `R1`.
fn highest_bit(it: &mut Assembler, number: Register) {
    it.set(R2, 0);
    for step in [32, 16, 8, 4, 2, 1] {
        let is_short = it.label();
        it.copy(R1, number);
        it.with_number(Operation::ShiftRight, R1, step);
        it.jump_if(Condition::Equal, R1, 0, is_short);
        it.copy(number, R1);
        it.with_number(Operation::Add, R2, step);
        it.bind(is_short);
    }
}

/// Limits a number to `most`.
fn at_most(it: &mut Assembler, number: Register, most: i32) {
    let (is_more, fits) = (it.label(), it.label());
    it.jump_if(Condition::Above, number, most, is_more);
    it.jump(fits);
    it.bind(is_more);
    it.set(number, most);
    it.bind(fits);
}

/// Counts an event by whether the current thread is observed.
fn uring_event(kernel: Kernel, index: usize) -> Assembled {
    let mut it = begin_timed().on(kernel);
    let (elsewhere, leave) = (it.label(), it.label());
    let counter = Counter::Uring as u32 + (1 + SIDES) * index as u32;
    current_thread(&mut it, elsewhere);
    count_of_side(&mut it, counter + 1, None);
    match URING_EVENTS[index] {
        "io_uring_submit_req" => count_operation(&mut it, field(offset_of!(OperationState, submitted))),
        "io_uring_queue_async_work" => {
            count_operation(&mut it, field(offset_of!(OperationState, to_workers)))
        }
        _ => {}
    }
    it.jump(leave);
    it.bind(elsewhere);
    count(&mut it, counter);
    it.bind(leave);
    charge(&mut it);
    it.exit();
    it.finish()
}

/// Adds 1 to a sum of the operation kind of the event's first argument, for the side of the thread in `R9`. Clobbers
/// all but `R6` and `R9`.
fn count_operation(it: &mut Assembler, sum: i16) {
    let Some(place) = it.kernel().opcode_offset else { return };
    let absent = it.label();
    it.store_number(Eight, Frame, REGISTER, 0);
    argument(it, R3, 0);
    it.with_number(Operation::Add, R3, place);
    it.address(R1, REGISTER);
    it.set(R2, 1);
    it.call(Helper::ReadKernel);
    it.jump_if(Condition::NotEqual, R0, 0, absent);
    it.load(Eight, R2, Frame, REGISTER);
    at_most(it, R2, OPERATIONS_MAX as i32 - 1);
    it.load(Eight, R1, R9, of_thread!(side));
    it.with_number(Operation::ShiftLeft, R1, OPERATIONS_MAX.ilog2() as i32);
    it.with(Operation::Add, R2, R1);
    it.store(Four, Frame, NUMBER, R2);
    it.lookup(Table::Operations, NUMBER);
    it.jump_if(Condition::Equal, R0, 0, absent);
    it.add_number_to(R0, sum, 1, R1);
    it.bind(absent);
}

#[cfg(test)]
mod tests;
