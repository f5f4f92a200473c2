//! The programs at the start and at the end of a softirq.
//!
//! Their own time does not count as the softirq's time. It is time of the interrupted thread, and is stored there if
//! the thread is observed; time of other programs meanwhile counts as the softirq's time, and is stored with it.

use std::mem::offset_of;

use super::{NUMBER, TASK, argument, begin_timed, element, field, own_time};
use crate::ladder::{
    assembler::{
        Assembled, Assembler, Condition, Helper, Label, Operation,
        Register::{Frame, R0, R1, R2, R6, R7, R8, R9},
        Width::{Eight, Four},
    },
    tables::{CpuState, SOFTIRQS_MAX, SoftirqState, Table, ThreadState},
};

/// Argument: kind.
pub(super) fn entry() -> Assembled {
    let mut it = begin_timed();
    let leave = it.label();
    it.copy(R7, R0);
    element(&mut it, Table::Cpu, 0, leave);
    it.copy(R9, R0);
    it.store(Eight, R9, of_cpu!(softirq_began_ns), R7);
    argument(&mut it, R1, 0);
    it.with_number(Operation::Add, R1, 1);
    it.store(Eight, R9, of_cpu!(softirq), R1);
    it.store_number(Eight, R9, of_cpu!(probe_ns), 0);
    // Covers leaving this program, and entering the one at its end.
    it.store_number(Eight, R9, of_cpu!(probe_runs), 1);
    it.call(Helper::MonotonicNs);
    it.store(Eight, R9, of_cpu!(softirq_entered_ns), R0);
    it.bind(leave);
    it.exit();
    it.finish()
}

/// Argument: kind.
pub(super) fn exit() -> Assembled {
    let mut it = begin_timed();
    let (leave, elsewhere) = (it.label(), it.label());
    it.copy(R7, R0);
    element(&mut it, Table::Cpu, 0, leave);
    it.copy(R9, R0);
    it.store_number(Eight, R9, of_cpu!(softirq), 0);
    it.load(Eight, R8, R9, of_cpu!(softirq_entered_ns));
    it.jump_if(Condition::Equal, R8, 0, leave);
    it.store_number(Eight, R9, of_cpu!(softirq_entered_ns), 0);
    it.with(Operation::Subtract, R7, R8);
    // Time of the program at its start, stored in place of the start time: it belongs to the thread, like this one's.
    it.load(Eight, R2, R9, of_cpu!(softirq_began_ns));
    it.with(Operation::Subtract, R8, R2);
    it.store(Eight, R9, of_cpu!(softirq_began_ns), R8);
    argument(&mut it, R8, 0);
    // A kind that is not known yet would use another one's index: it is skipped.
    it.jump_if(Condition::Above, R8, SOFTIRQS_MAX as i32 - 1, leave);
    it.call(Helper::CurrentTask);
    it.store(Eight, Frame, TASK, R0);
    it.lookup(Table::Threads, TASK);
    it.copy(R6, R0);
    it.jump_if(Condition::Equal, R6, 0, elsewhere);
    it.add_to(R6, of_thread!(softirq_ns), R7, R1);
    it.load(Eight, R1, R6, of_thread!(side));
    it.with_number(Operation::Add, R1, 1);
    it.with_number(Operation::ShiftLeft, R1, SOFTIRQS_MAX.ilog2() as i32);
    it.with(Operation::Add, R8, R1);
    add_softirq(&mut it, leave);
    own_time(&mut it);
    it.load(Eight, R2, R9, of_cpu!(softirq_began_ns));
    it.with(Operation::Add, R0, R2);
    it.add_to(R6, of_thread!(probe_ns), R0, R1);
    it.add_number_to(R6, of_thread!(probe_runs), 1, R1);
    it.jump(leave);
    it.bind(elsewhere);
    add_softirq(&mut it, leave);
    it.bind(leave);
    it.exit();
    it.finish()
}

/// Adds the softirq of the CPU in `R9`, which took `R7`, to the sums at the index in `R8`.
fn add_softirq(it: &mut Assembler, absent: Label) {
    it.store(Four, Frame, NUMBER, R8);
    it.lookup(Table::Softirqs, NUMBER);
    it.jump_if(Condition::Equal, R0, 0, absent);
    it.add_number_to(R0, field(offset_of!(SoftirqState, count)), 1, R1);
    it.add_to(R0, field(offset_of!(SoftirqState, ns)), R7, R1);
    it.load(Eight, R2, R9, of_cpu!(probe_ns));
    it.add_to(R0, field(offset_of!(SoftirqState, probe_ns)), R2, R1);
    it.load(Eight, R2, R9, of_cpu!(probe_runs));
    it.add_to(R0, field(offset_of!(SoftirqState, probe_runs)), R2, R1);
}
