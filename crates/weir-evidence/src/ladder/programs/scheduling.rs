//! The programs that follow threads on and off their CPUs, and to their children.
//!
//! Some kernels do not report every switch. A thread that enters or leaves a call, or is switched from, has a CPU,
//! whatever was reported; one that is switched to while it counts as running had lost its CPU unseen since it was
//! last seen. Time without evidence of running counts as time without a CPU, and the gap is counted.

use std::mem::offset_of;

use super::{
    BEGAN, FRESH, NEW_ONLY, REPLACE, TASK, TASK_DEAD, WAKE_KEY, argument, begin, begin_timed, call_of_thread,
    charge, count, count_of_side, current_ids, current_thread, element, field, unmark_member, update, zero,
};
use crate::ladder::{
    assembler::{
        Assembled, Assembler, Atomic, Condition, Helper, Label, Operation,
        Register::{Frame, R0, R1, R2, R3, R7, R8, R9},
        Width::{Eight, Four},
    },
    kernel::Kernel,
    tables::{CallState, Counter, CpuState, IN_TIMER, OUTSIDE, Table, ThreadState, WakeKey, WakeState},
};

/// Arguments: whether it was preempted, the stopping thread, the next thread, the state of the stopping thread.
pub(super) fn switch(kernel: Kernel) -> Assembled {
    let mut it = begin_timed().on(kernel);
    let (next, preempted, resumes, leave) = (it.label(), it.label(), it.label(), it.label());
    current_thread(&mut it, next);
    has_cpu(&mut it, Moment::Began);
    it.load(Eight, R0, Frame, BEGAN);
    add_run(&mut it);
    it.store(Eight, R9, of_thread!(parked_ns), R0);
    it.store_number(Eight, R9, of_thread!(woken_ns), 0);
    argument(&mut it, R1, 0);
    it.jump_if(Condition::NotEqual, R1, 0, preempted);
    argument(&mut it, R1, 3);
    it.jump_if(Condition::Equal, R1, 0, preempted);
    it.add_number_to(R9, of_thread!(sleeps), 1, R2);
    it.with_number(Operation::And, R1, TASK_DEAD);
    it.jump_if(Condition::Equal, R1, 0, next);
    end_of_thread(&mut it);
    it.jump(next);
    it.bind(preempted);
    it.add_number_to(R9, of_thread!(preemptions), 1, R2);
    // It is runnable at once: the rest is waiting for a CPU.
    it.store(Eight, R9, of_thread!(woken_ns), R0);

    it.bind(next);
    argument(&mut it, R1, 2);
    it.store(Eight, Frame, TASK, R1);
    it.lookup(Table::Threads, TASK);
    it.jump_if(Condition::Equal, R0, 0, leave);
    it.copy(R9, R0);
    it.load(Eight, R1, R9, of_thread!(resumed_ns));
    it.jump_if(Condition::Equal, R1, 0, resumes);
    // It lost its CPU unseen.
    it.load(Eight, R0, R9, of_thread!(seen_ns));
    add_run(&mut it);
    it.store(Eight, R9, of_thread!(parked_ns), R0);
    it.store_number(Eight, R9, of_thread!(woken_ns), 0);
    count_of_side(&mut it, Counter::SwitchesMissed as u32, None);
    it.bind(resumes);
    it.call(Helper::MonotonicNs);
    it.store(Eight, R9, of_thread!(resumed_ns), R0);
    it.store(Eight, R9, of_thread!(seen_ns), R0);
    it.copy(R2, R0);
    it.load(Eight, R1, Frame, BEGAN);
    it.with(Operation::Subtract, R2, R1);
    it.add_to(R9, of_thread!(switch_probe_ns), R2, R1);
    add_absence(&mut it, leave);
    // Entering this program took time of the one thread, leaving it takes time of the other.
    it.add_number_to(R9, of_thread!(probe_runs), 1, R1);
    it.bind(leave);
    it.exit();
    it.finish()
}

/// From when on a thread is known to have a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// The start of the program, if it stores that time.
    Began,
    Now,
}

/// The thread in `R9` has a CPU: if it counts as without one, it got it unseen, and has it from this moment on.
/// Clobbers all but `R6`, `R7` and `R9`.
pub(super) fn has_cpu(it: &mut Assembler, moment: Moment) {
    let is_known = it.label();
    it.load(Eight, R8, R9, of_thread!(parked_ns));
    it.jump_if(Condition::Equal, R8, 0, is_known);
    match moment {
        Moment::Began => it.load(Eight, R0, Frame, BEGAN),
        Moment::Now => it.call(Helper::MonotonicNs),
    }
    it.store(Eight, R9, of_thread!(resumed_ns), R0);
    add_absence(it, is_known);
    count_of_side(it, Counter::SwitchesMissed as u32, None);
    it.bind(is_known);
}

/// Adds the time without a CPU of the thread in `R9`, until `R0`; goes to `nothing` if it had one. Clobbers `R0` to
/// `R3` and `R8`.
fn add_absence(it: &mut Assembler, nothing: Label) {
    let (slept, woken) = (it.label(), it.label());
    it.load(Eight, R8, R9, of_thread!(parked_ns));
    it.jump_if(Condition::Equal, R8, 0, nothing);
    it.store_number(Eight, R9, of_thread!(parked_ns), 0);
    it.load(Eight, R2, R9, of_thread!(woken_ns));
    it.jump_if(Condition::Equal, R2, 0, slept);
    // Another CPU may have woken it after R0 was read.
    it.copy(R3, R0);
    it.with(Operation::Subtract, R3, R2);
    it.jump_if(Condition::Less, R3, 0, slept);
    it.jump(woken);
    it.bind(slept);
    it.copy(R2, R0);
    it.bind(woken);
    // It slept until R2, and waited from then on.
    it.with(Operation::Subtract, R0, R2);
    it.add_to(R9, of_thread!(queued_ns), R0, R1);
    it.with(Operation::Subtract, R2, R8);
    it.add_to(R9, of_thread!(blocked_ns), R2, R1);
}

/// Adds the time that the thread in `R9` had its CPU, until `R0`.
fn add_run(it: &mut Assembler) {
    let is_added = it.label();
    it.load(Eight, R1, R9, of_thread!(resumed_ns));
    it.store_number(Eight, R9, of_thread!(resumed_ns), 0);
    it.jump_if(Condition::Equal, R1, 0, is_added);
    it.copy(R2, R0);
    it.with(Operation::Subtract, R2, R1);
    // This run of the program may have seen it first.
    it.jump_if(Condition::Less, R2, 0, is_added);
    it.add_to(R9, of_thread!(ran_ns), R2, R1);
    it.bind(is_added);
}

/// The thread in `R9`, whose address is at [`TASK`], has ended.
fn end_of_thread(it: &mut Assembler) {
    let (is_over, is_first, done) = (it.label(), it.label(), it.label());
    it.load(Eight, R1, R9, of_thread!(entered_ns));
    it.jump_if(Condition::Equal, R1, 0, is_over);
    call_of_thread(it, is_over);
    it.add_number_to(R8, of_call!(unreturned), 1, R1);
    it.bind(is_over);
    count_of_side(it, Counter::ThreadsEnded as u32, None);
    for (sum, counter) in [
        (of_thread!(blocked_ns), Counter::EndedBlockedNs),
        (of_thread!(queued_ns), Counter::EndedQueuedNs),
        (of_thread!(probe_ns), Counter::EndedProbeNs),
        (of_thread!(probe_runs), Counter::EndedProbeRuns),
        (of_thread!(ran_ns), Counter::EndedRanNs),
        (of_thread!(sleeps), Counter::EndedSleeps),
        (of_thread!(preemptions), Counter::EndedPreemptions),
    ] {
        it.load(Eight, R8, R9, sum);
        count_of_side(it, counter as u32, Some(R8));
    }
    it.load(Eight, R8, R9, of_thread!(ids));
    compare_numbers(it);
    it.jump_if(Condition::Equal, R1, 0, is_first);
    delete_thread(it);
    it.jump(done);
    it.bind(is_first);
    // Other threads of its process may continue, some of them unseen yet: the thread's id is cleared, the process's
    // stays.
    it.with_number(Operation::ShiftRight, R8, 32);
    it.with_number(Operation::ShiftLeft, R8, 32);
    it.store(Eight, R9, of_thread!(ids), R8);
    it.bind(done);
}

/// `R1 =` the difference between the process and thread ids in `R8`: 0 for the first thread. `R2 =` the thread id.
fn compare_numbers(it: &mut Assembler) {
    it.copy(R1, R8);
    it.with_number(Operation::ShiftRight, R1, 32);
    it.copy(R2, R8);
    it.with_number(Operation::ShiftLeft, R2, 32);
    it.with_number(Operation::ShiftRight, R2, 32);
    it.with(Operation::Subtract, R1, R2);
}

/// Stops following the thread whose address is at [`TASK`]; clobbers `R0` to `R5`.
fn delete_thread(it: &mut Assembler) {
    it.table(R1, Table::Threads);
    it.address(R2, TASK);
    it.call(Helper::MapDelete);
}

/// Argument: the woken thread. Runs on the waking thread.
pub(super) fn waking(kernel: Kernel) -> Assembled {
    let mut it = begin_timed().on(kernel);
    let (leave, known, lost) = (it.label(), it.label(), it.label());
    argument(&mut it, R1, 0);
    it.store(Eight, Frame, TASK, R1);
    it.lookup(Table::Threads, TASK);
    it.jump_if(Condition::Equal, R0, 0, leave);
    it.copy(R9, R0);
    it.load(Eight, R8, R9, of_thread!(parked_ns));
    it.jump_if(Condition::Equal, R8, 0, leave);
    it.load(Eight, R1, R9, of_thread!(woken_ns));
    it.jump_if(Condition::NotEqual, R1, 0, leave);
    it.call(Helper::MonotonicNs);
    it.store(Eight, R9, of_thread!(woken_ns), R0);
    // R7: how long it slept.
    it.copy(R7, R0);
    it.with(Operation::Subtract, R7, R8);

    it.load(Four, R1, R9, of_thread!(ids));
    it.store(Four, Frame, WAKE_KEY + field(offset_of!(WakeKey, sleeper)), R1);
    it.load(Eight, R1, R9, of_thread!(side));
    it.store(Eight, Frame, WAKE_KEY + field(offset_of!(WakeKey, side)), R1);
    let (in_thread, in_timer) = (it.label(), it.label());
    element(&mut it, Table::Cpu, 0, leave);
    it.load(Eight, R1, R0, of_cpu!(timer));
    it.jump_if(Condition::NotEqual, R1, 0, in_timer);
    it.load(Eight, R1, R0, of_cpu!(softirq));
    it.store(Four, Frame, WAKE_KEY + field(offset_of!(WakeKey, context)), R1);
    waker_ids(&mut it);
    it.store(Eight, Frame, WAKE_KEY + field(offset_of!(WakeKey, waker)), R0);
    it.jump(in_thread);
    it.bind(in_timer);
    it.store_number(Four, Frame, WAKE_KEY + field(offset_of!(WakeKey, context)), IN_TIMER as i32);
    it.store_number(Eight, Frame, WAKE_KEY + field(offset_of!(WakeKey, waker)), 0);
    it.bind(in_thread);
    it.lookup(Table::Wakes, WAKE_KEY);
    it.jump_if(Condition::NotEqual, R0, 0, known);
    zero(&mut it, FRESH, size_of::<WakeState>());
    it.address(R1, FRESH + field(offset_of!(WakeState, waker_name)));
    it.set(R2, 16);
    it.call(Helper::CurrentName);
    // If another CPU created it first, the update fails and the lookup finds that one.
    update(&mut it, Table::Wakes, WAKE_KEY, FRESH, NEW_ONLY);
    it.lookup(Table::Wakes, WAKE_KEY);
    it.jump_if(Condition::Equal, R0, 0, lost);
    it.bind(known);
    it.set(R1, 1);
    it.atomically(Atomic::Add, R0, field(offset_of!(WakeState, count)), R1);
    it.atomically(Atomic::Add, R0, field(offset_of!(WakeState, blocked_ns)), R7);
    it.jump(leave);
    it.bind(lost);
    count(&mut it, Counter::WakesLost as u32);
    it.bind(leave);
    charge(&mut it);
    it.exit();
    it.finish()
}

/// `R0 =` the ids of the current thread; 0 if the CPU is idle, and [`OUTSIDE`] for a thread that is not visible to
/// this process. Clobbers `R1` to `R5`.
fn waker_ids(it: &mut Assembler) {
    let (known, outside) = (it.label(), it.label());
    it.call(Helper::CurrentIds);
    if it.kernel().namespace.is_some() {
        it.jump_if(Condition::Equal, R0, 0, known);
        current_ids(it);
        it.jump_if(Condition::Equal, R0, 0, outside);
        it.jump(known);
        it.bind(outside);
        it.set_unsigned(R0, OUTSIDE);
    }
    it.bind(known);
}

/// Argument: the timer. It interrupts an arbitrary thread that is not involved.
pub(super) fn timer_begins() -> Assembled {
    in_timer(1)
}

/// Argument: the timer.
pub(super) fn timer_ends() -> Assembled {
    in_timer(0)
}

fn in_timer(mark: i32) -> Assembled {
    let mut it = begin();
    let leave = it.label();
    element(&mut it, Table::Cpu, 0, leave);
    it.store_number(Eight, R0, of_cpu!(timer), mark);
    it.bind(leave);
    it.exit();
    it.finish()
}

/// Arguments: the current thread, the new one.
pub(super) fn fork(kernel: Kernel) -> Assembled {
    let mut it = begin().on(kernel);
    let (leave, fits) = (it.label(), it.label());
    current_thread(&mut it, leave);
    argument(&mut it, R1, 1);
    it.store(Eight, Frame, TASK, R1);
    zero(&mut it, FRESH, size_of::<ThreadState>());
    it.store_number(Four, Frame, FRESH + of_thread!(is_newborn), 1);
    for inherited in [of_thread!(side), of_thread!(is_of_32_bits)] {
        it.load(Eight, R1, R9, inherited);
        it.store(Eight, Frame, FRESH + inherited, R1);
    }
    update(&mut it, Table::Threads, TASK, FRESH, REPLACE);
    it.jump_if(Condition::Equal, R0, 0, fits);
    count(&mut it, Counter::ThreadsLost as u32);
    it.bind(fits);
    it.bind(leave);
    it.exit();
    it.finish()
}

/// Argument: an ended thread, whose address may be reused from here on. If switches are not traced nothing else
/// reports its end, and the next user of the address would be mistaken for it.
///
/// The first thread of a process is freed last, and then the number of the process is free. If another thread has
/// called exec, the first one is freed earlier: then the process is followed by its known threads. Program time of a
/// thread whose end was not seen is in no sum.
pub(super) fn free() -> Assembled {
    let mut it = begin();
    let (leave, is_last) = (it.label(), it.label());
    argument(&mut it, R1, 0);
    it.store(Eight, Frame, TASK, R1);
    it.lookup(Table::Threads, TASK);
    it.jump_if(Condition::Equal, R0, 0, leave);
    it.load(Eight, R8, R0, of_thread!(ids));
    delete_thread(&mut it);
    compare_numbers(&mut it);
    it.jump_if(Condition::Equal, R1, 0, is_last);
    // A thread whose end was seen has no id any more.
    it.jump_if(Condition::NotEqual, R2, 0, leave);
    it.bind(is_last);
    unmark_member(&mut it);
    it.bind(leave);
    it.exit();
    it.finish()
}
