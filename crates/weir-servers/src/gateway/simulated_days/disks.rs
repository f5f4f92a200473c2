//! The disks of the workers of one day, as its thread has them.

use std::{cell::Cell, io};

use super::WORKERS;
use crate::journal::faults::{Operation, Verdict};

/// What a disk does with writes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Disk {
    Works,
    /// It refuses them with this error.
    Fails(i32),
    /// It does so many bytes, and fails.
    Tears(usize),
    /// They do not return.
    Stands,
}

thread_local! {
    static DISKS: Cell<[Disk; WORKERS]> = const { Cell::new([Disk::Works; WORKERS]) };
}

/// They do so from now on.
pub(super) fn set(disks: [Disk; WORKERS]) {
    DISKS.set(disks);
}

/// All of them work.
pub(super) fn mend() {
    set([Disk::Works; WORKERS]);
}

pub(super) const EIO: i32 = 5;
pub(super) const ENOSPC: i32 = 28;

/// What becomes of what a journal asks of its disk.
pub(super) fn judge(worker: u16, operation: &Operation) -> Verdict {
    match (DISKS.get()[usize::from(worker)], operation) {
        (Disk::Fails(error), Operation::Write { .. } | Operation::Create { .. }) => {
            Verdict::Refuse(io::Error::from_raw_os_error(error))
        }
        (Disk::Tears(bytes), Operation::Write { .. }) => {
            Verdict::Part(bytes, io::Error::from_raw_os_error(EIO))
        }
        (Disk::Stands, Operation::Write { .. }) => Verdict::Hold,
        _ => Verdict::Pass,
    }
}
