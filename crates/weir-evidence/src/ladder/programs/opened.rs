//! Counts how often each file name is opened, to find files that are opened repeatedly.
//!
//! A name is read when the call returns successfully. It identifies one file as long as no file is renamed and no
//! process changes its working directory. Names relative to a folder given in the call (`openat` with a descriptor)
//! are ambiguous and not counted.

use std::mem::offset_of;

use weir_sys::syscalls::{OPEN, OPENAT, OPENAT2};

use super::{FRESH, NEW_ONLY, REGISTER, argument, element, field};
use crate::ladder::{
    assembler::{
        Assembler, Atomic, Condition, Helper, Label, Operation,
        Register::{Frame, R0, R1, R2, R3, R4, R7, R8, R9},
        Width::{Eight, Four},
    },
    tables::{NAME_BYTES, NameKey, Table, ThreadState},
};

/// Offset of the registers with the second argument of a call and then the first (`si` and `di` of `struct pt_regs`).
/// Where they are unknown no name is counted.
#[cfg(target_arch = "x86_64")]
const ARGUMENTS: Option<i32> = Some(104);
#[cfg(not(target_arch = "x86_64"))]
const ARGUMENTS: Option<i32> = None;

/// Replaces a folder's descriptor: the name is relative to the process's working directory (`AT_FDCWD`).
const OWN_FOLDER: i32 = -100;

/// Slot of the first argument, after the second.
const FIRST: i16 = REGISTER + 8;

/// Counts the file that the thread in `R9` has opened, if the returning call opened one. Clobbers all but `R6` and
/// `R9`.
pub(super) fn count(it: &mut Assembler) {
    let Some(place) = ARGUMENTS else { return };
    let (opens, named, counts, known, done) = (it.label(), it.label(), it.label(), it.label(), it.label());
    argument(it, R1, 1);
    it.jump_if(Condition::Less, R1, 0, done);
    it.load(Four, R8, R9, of_thread!(call_number));
    let of_first = OPEN.map_or(-1, |number| number as i32);
    for number in [OPENAT as i32, OPENAT2 as i32, of_first] {
        it.jump_if(Condition::Equal, R8, number, opens);
    }
    it.jump(done);
    it.bind(opens);
    argument(it, R3, 0);
    it.with_number(Operation::Add, R3, place);
    it.address(R1, REGISTER);
    it.set(R2, 16);
    it.call(Helper::ReadKernel);
    it.jump_if(Condition::NotEqual, R0, 0, done);
    begin_name(it, done);
    it.load(Eight, R3, Frame, REGISTER);
    it.jump_if(Condition::NotEqual, R8, of_first, named);
    it.load(Eight, R3, Frame, FIRST);
    it.store_number(Eight, Frame, FIRST, OWN_FOLDER);
    it.bind(named);
    it.copy(R1, R7);
    it.with_number(Operation::Add, R1, NAME.into());
    it.set(R2, NAME_BYTES as i32);
    it.call(Helper::ReadUserText);
    it.jump_if(Condition::Less, R0, 1, done);
    it.jump_if(Condition::Above, R0, NAME_BYTES as i32 - 1, done);
    it.load(Four, R1, R7, NAME);
    it.with_number(Operation::And, R1, 0xff);
    it.jump_if(Condition::Equal, R1, b'/'.into(), counts);
    // A descriptor is half as wide as a register.
    it.load(Four, R1, Frame, FIRST);
    it.with_number(Operation::Add, R1, -OWN_FOLDER);
    it.with_number(Operation::ShiftLeft, R1, 32);
    it.jump_if(Condition::NotEqual, R1, 0, done);
    it.bind(counts);
    look_up(it);
    it.jump_if(Condition::NotEqual, R0, 0, known);
    it.store_number(Eight, Frame, FRESH, 0);
    it.table(R1, Table::Opened);
    it.copy(R2, R7);
    it.address(R3, FRESH);
    it.set(R4, NEW_ONLY);
    it.call(Helper::MapUpdate);
    look_up(it);
    it.jump_if(Condition::Equal, R0, 0, done);
    it.bind(known);
    it.set(R1, 1);
    it.atomically(Atomic::Add, R0, 0, R1);
    it.bind(done);
}

const NAME: i16 = offset_of!(NameKey, name) as i16;

/// `R7 =` an empty name, for the side of the thread in `R9`; clobbers `R0` to `R5`.
fn begin_name(it: &mut Assembler, absent: Label) {
    element(it, Table::Name, 0, absent);
    it.copy(R7, R0);
    for place in (0..size_of::<NameKey>()).step_by(8) {
        it.store_number(Eight, R7, place as i16, 0);
    }
    it.load(Eight, R1, R9, of_thread!(side));
    it.store(Eight, R7, field(offset_of!(NameKey, side)), R1);
}

/// `R0 =` the count of the name in `R7`, or 0.
fn look_up(it: &mut Assembler) {
    it.table(R1, Table::Opened);
    it.copy(R2, R7);
    it.call(Helper::MapLookup);
}
