//! The amounts that system calls move through each descriptor, from their results and arguments.
//!
//! It runs before the program that ends the call, while the thread is still in it, so that it sees exactly the calls
//! that are counted there. Its time, except for the check of the call's number, is stored as program time.

use std::mem::offset_of;

use weir_sys::syscalls::{CLOSE, COPY_FILE_RANGE, DUP2, DUP3, READS, SENDFILE, SPLICES, WRITES};

use super::{
    BEGAN, FRESH, NEW_ONLY, NUMBER, WAKE_KEY, argument, at_most, begin, current_thread, element, field,
    highest_bit, own_time,
};
use crate::ladder::{
    assembler::{
        Assembled, Assembler, Atomic, Condition, Helper, Label, Operation,
        Register::{Frame, R0, R1, R2, R3, R4, R7, R8, R9},
        Width::{Eight, Four},
    },
    kernel::Kernel,
    tables::{BELOW, DescriptorKey, DescriptorState, SIZE_BUCKETS, Table, ThreadState, TransferState},
};

/// Offset of the registers with the third, second and first argument of a call (`dx`, `si` and `di` of `struct
/// pt_regs`). Where they are unknown nothing is counted.
#[cfg(target_arch = "x86_64")]
const ARGUMENTS: Option<i32> = Some(96);
#[cfg(not(target_arch = "x86_64"))]
const ARGUMENTS: Option<i32> = None;

/// Whether descriptors can be counted on this architecture.
pub(in crate::ladder) const ARE_KNOWN: bool = ARGUMENTS.is_some();

/// The call's arguments on the stack.
const THIRD: i16 = WAKE_KEY;
const SECOND: i16 = WAKE_KEY + 8;
const FIRST: i16 = WAKE_KEY + 16;
/// A key of the table.
const KEY: i16 = FRESH;
/// Source and target descriptors; [`NONE`] if there is none.
const FROM: i16 = FRESH + 8;
const TO: i16 = FRESH + 16;
const NONE: i32 = -1;

const _: () = assert!(THIRD + 24 == BEGAN && size_of::<DescriptorKey>() == 8);

/// Arguments: registers, result.
pub(super) fn exit(kernel: Kernel) -> Assembled {
    let mut it = begin().on(kernel);
    let leave = it.label();
    current_thread(&mut it, leave);
    it.load(Eight, R1, R9, of_thread!(entered_ns));
    it.jump_if(Condition::Equal, R1, 0, leave);
    it.load(Four, R7, R9, of_thread!(call_number));
    let meant = it.label();
    let all = READS.iter().chain(WRITES).chain(SPLICES).chain(&[SENDFILE, COPY_FILE_RANGE, CLOSE, DUP3]);
    for number in all.copied().chain(DUP2) {
        it.jump_if(Condition::Equal, R7, number as i32, meant);
    }
    it.jump(leave);
    it.bind(meant);
    count(&mut it, leave);
    it.bind(leave);
    it.exit();
    it.finish()
}

/// Counts the call with the number in `R7` of the thread in `R9`.
fn count(it: &mut Assembler, leave: Label) {
    let Some(place) = ARGUMENTS else { return };
    it.call(Helper::MonotonicNs);
    it.store(Eight, Frame, BEGAN, R0);
    argument(it, R8, 1);
    argument(it, R3, 0);
    it.with_number(Operation::Add, R3, place);
    it.address(R1, THIRD);
    it.set(R2, 24);
    it.call(Helper::ReadKernel);
    it.jump_if(Condition::NotEqual, R0, 0, leave);
    let (moves, ends, done) = (it.label(), it.label(), it.label());
    choose(it, moves, ends);
    it.bind(moves);
    transfer(it, FROM, field(offset_of!(DescriptorState, read)), leave);
    transfer(it, TO, field(offset_of!(DescriptorState, written)), leave);
    it.jump(done);
    it.bind(ends);
    end_of_descriptor(it, done);
    it.bind(done);
    own_time(it);
    // The overhead of entering and leaving this program is the same for every call, and is subtracted with it.
    it.add_to(R9, of_thread!(probe_ns), R0, R1);
}

/// Determines the descriptors of a call; goes to `moves`, or to `ends` with the descriptor in [`FROM`].
fn choose(it: &mut Assembler, moves: Label, ends: Label) {
    let (reads, writes, splices, sends, closes, duplicates) =
        (it.label(), it.label(), it.label(), it.label(), it.label(), it.label());
    it.store_number(Eight, Frame, FROM, NONE);
    it.store_number(Eight, Frame, TO, NONE);
    for (numbers, label) in [(READS, reads), (WRITES, writes), (SPLICES, splices)] {
        for number in numbers {
            it.jump_if(Condition::Equal, R7, *number as i32, label);
        }
    }
    it.jump_if(Condition::Equal, R7, COPY_FILE_RANGE as i32, splices);
    it.jump_if(Condition::Equal, R7, SENDFILE as i32, sends);
    it.jump_if(Condition::Equal, R7, CLOSE as i32, closes);
    it.jump(duplicates);
    let take = |it: &mut Assembler, from: i16, to: i16| {
        // A descriptor is half as wide as a register.
        it.load(Four, R1, Frame, from);
        it.store(Eight, Frame, to, R1);
    };
    it.bind(reads);
    take(it, FIRST, FROM);
    it.jump(moves);
    it.bind(writes);
    take(it, FIRST, TO);
    it.jump(moves);
    it.bind(splices);
    take(it, FIRST, FROM);
    // The second descriptor of `tee` is its second argument; for the others it is the third.
    let (is_tee, known) = (it.label(), it.label());
    it.jump_if(Condition::Equal, R7, weir_sys::syscalls::TEE as i32, is_tee);
    take(it, THIRD, TO);
    it.jump(known);
    it.bind(is_tee);
    take(it, SECOND, TO);
    it.bind(known);
    it.jump(moves);
    it.bind(sends);
    take(it, FIRST, TO);
    take(it, SECOND, FROM);
    it.jump(moves);
    it.bind(closes);
    take(it, FIRST, FROM);
    it.jump(ends);
    it.bind(duplicates);
    // The previous owner of the returned number is closed, unless source and target are the same.
    let is_same = it.label();
    it.load(Four, R1, Frame, FIRST);
    it.with(Operation::Subtract, R1, R8);
    it.jump_if(Condition::Equal, R1, 0, is_same);
    it.store(Eight, Frame, FROM, R8);
    it.bind(is_same);
    it.jump(ends);
}

/// Adds the result in `R8` to the sums of the descriptor at `place`, if there is one. Clobbers all but `R6`, `R8` and
/// `R9`.
fn transfer(it: &mut Assembler, place: i16, sums: i16, leave: Label) {
    let (none, failed, empty) = (it.label(), it.label(), it.label());
    it.load(Eight, R1, Frame, place);
    it.jump_if(Condition::Equal, R1, NONE, none);
    key_of(it);
    state(it, leave);
    it.jump_if(Condition::Less, R8, 0, failed);
    it.store_number(Eight, R7, field(offset_of!(DescriptorState, is_in_use)), 1);
    add(it, sums + field(offset_of!(TransferState, calls)), None);
    add(it, sums + field(offset_of!(TransferState, bytes)), Some(R8));
    it.set(R2, 0);
    it.jump_if(Condition::Equal, R8, 0, empty);
    it.copy(R3, R8);
    highest_bit(it, R3);
    it.with_number(Operation::Add, R2, 1);
    it.bind(empty);
    at_most(it, R2, SIZE_BUCKETS as i32 - 1);
    it.with_number(Operation::ShiftLeft, R2, 3);
    it.with(Operation::Add, R7, R2);
    add(it, sums + field(offset_of!(TransferState, buckets)), None);
    it.jump(none);
    it.bind(failed);
    add(it, sums + field(offset_of!(TransferState, failed)), None);
    it.bind(none);
}

/// Adds a number, or 1, to a sum of the descriptor in `R7`, which other CPUs may also change.
fn add(it: &mut Assembler, sum: i16, amount: Option<crate::ladder::assembler::Register>) {
    match amount {
        Some(register) => it.copy(R1, register),
        None => it.set(R1, 1),
    }
    it.atomically(Atomic::Add, R7, sum, R1);
}

/// The key of the descriptor in `R1`, for the process of the thread in `R9`. Clobbers `R0` to `R5`.
fn key_of(it: &mut Assembler) {
    it.store(Four, Frame, KEY + field(offset_of!(DescriptorKey, descriptor)), R1);
    it.load(Eight, R0, R9, of_thread!(ids));
    if it.kernel().namespace.is_some() {
        let has_number = it.label();
        it.jump_if(Condition::NotEqual, R0, 0, has_number);
        // Otherwise all processes of nested namespaces would be process 0.
        it.call(Helper::CurrentIds);
        it.set_unsigned(R1, BELOW);
        it.with_number(Operation::ShiftLeft, R1, 32);
        it.with(Operation::Add, R0, R1);
        it.bind(has_number);
    }
    it.with_number(Operation::ShiftRight, R0, 32);
    it.store(Four, Frame, KEY + field(offset_of!(DescriptorKey, pid)), R0);
}

/// `R7 =` the state of the descriptor whose key is on the stack, or the shared one if there is no room.
fn state(it: &mut Assembler, absent: Label) {
    let known = it.label();
    it.lookup(Table::Descriptors, KEY);
    it.jump_if(Condition::NotEqual, R0, 0, known);
    // The stack has no room for a new one.
    element(it, Table::NewDescriptor, 0, absent);
    it.load(Eight, R1, R9, of_thread!(side));
    it.store(Eight, R0, field(offset_of!(DescriptorState, side)), R1);
    it.copy(R3, R0);
    it.table(R1, Table::Descriptors);
    it.address(R2, KEY);
    it.set(R4, NEW_ONLY);
    it.call(Helper::MapUpdate);
    it.lookup(Table::Descriptors, KEY);
    it.jump_if(Condition::NotEqual, R0, 0, known);
    it.load(Eight, R1, R9, of_thread!(side));
    it.store(Four, Frame, NUMBER, R1);
    it.lookup(Table::OtherDescriptors, NUMBER);
    it.jump_if(Condition::Equal, R0, 0, absent);
    it.bind(known);
    it.copy(R7, R0);
}

/// The descriptor in [`FROM`] was closed, unless the result says that it did not exist: a later user of its number is
/// a new one. A closed descriptor may never have moved anything, or not exist: a number that `close` freed may be
/// passed to `dup2`, which closes it again.
fn end_of_descriptor(it: &mut Assembler, done: Label) {
    const NO_DESCRIPTOR: i32 = -9;
    it.jump_if(Condition::Equal, R8, NO_DESCRIPTOR, done);
    it.load(Eight, R1, Frame, FROM);
    it.jump_if(Condition::Less, R1, 0, done);
    key_of(it);
    it.lookup(Table::Descriptors, KEY);
    it.jump_if(Condition::Equal, R0, 0, done);
    it.copy(R7, R0);
    add(it, field(offset_of!(DescriptorState, closes)), None);
    it.load(Eight, R1, R7, field(offset_of!(DescriptorState, is_in_use)));
    it.jump_if(Condition::Equal, R1, 0, done);
    it.store_number(Eight, R7, field(offset_of!(DescriptorState, is_in_use)), 0);
    add(it, field(offset_of!(DescriptorState, users_ended)), None);
}
