//! The disks of the workers of one simulated day, on its thread.

use std::{cell::Cell, io};

use super::WORKERS;
use crate::journal::faults::{Operation, Verdict};

/// How a disk handles writes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Disk {
    Works,
    /// It refuses them with this error.
    Fails(i32),
    /// It writes this many bytes, and fails.
    Tears(usize),
    /// They do not return.
    Stands,
}

thread_local! {
    static DISKS: Cell<[Disk; WORKERS]> = const { Cell::new([Disk::Works; WORKERS]) };
}

/// Sets the behaviour from now on.
pub(super) fn set(disks: [Disk; WORKERS]) {
    DISKS.set(disks);
}

/// Makes all of them work.
pub(super) fn mend() {
    set([Disk::Works; WORKERS]);
}

pub(super) const EIO: i32 = 5;
pub(super) const ENOSPC: i32 = 28;

/// The verdict on a journal's disk operation.
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
