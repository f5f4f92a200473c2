//! The amounts moved through each descriptor, in the programs' layout and decoded.

use std::mem::offset_of;

use weir_record::observation::SIZE_BUCKETS;

use super::{Side, half, side, word};

/// Most descriptors with separate sums; further ones share one sum.
pub const DESCRIPTORS_MAX: u32 = 4_096;

/// Bit that marks the process number of a key as invisible to the observer: the process lives in a nested PID
/// namespace. The rest is its number in the first namespace, which distinguishes such processes and has no other
/// meaning here.
pub(in crate::ladder) const BELOW: u32 = 1 << 31;
const _: () = assert!(BELOW >= super::PID_LIMIT);

/// A descriptor of a process.
#[repr(C)]
pub(in crate::ladder) struct DescriptorKey {
    pub(in crate::ladder) pid: u32,
    pub(in crate::ladder) descriptor: u32,
}

/// Amounts of a descriptor.
#[repr(C)]
pub(in crate::ladder) struct DescriptorState {
    /// The process's [`Side`].
    pub(in crate::ladder) side: u64,
    /// How often this number was closed: a later user of the number is another descriptor.
    pub(in crate::ladder) closes: u64,
    /// How many of the closed descriptors had moved something.
    pub(in crate::ladder) users_ended: u64,
    /// 1 if a call has moved something since the last close.
    pub(in crate::ladder) is_in_use: u64,
    pub(in crate::ladder) read: TransferState,
    pub(in crate::ladder) written: TransferState,
}

/// Sums of one direction.
#[repr(C)]
pub(in crate::ladder) struct TransferState {
    pub(in crate::ladder) calls: u64,
    pub(in crate::ladder) failed: u64,
    pub(in crate::ladder) bytes: u64,
    pub(in crate::ladder) buckets: [u64; SIZE_BUCKETS],
}

/// Transfers in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TracedTransfers {
    /// Successful calls.
    pub calls: u64,
    /// Failed calls, including those that found nothing to do.
    pub failed: u64,
    /// Sum of their results.
    pub bytes: u64,
    /// Calls by result: index 0 for none, index `i` from 2^(i-1) bytes up to twice that.
    pub buckets: [u64; SIZE_BUCKETS],
}

/// A descriptor number, whatever used it in turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TracedDescriptor {
    /// Its process. A process that is invisible here has a number that no process has; see [`Self::is_below`].
    pub pid: u32,
    /// Its number.
    pub descriptor: u32,
    /// The process's side.
    pub side: Side,
    /// How often this number was closed.
    pub closes: u64,
    /// How many of the closed descriptors had moved something.
    pub users_ended: u64,
    /// Whether a call has moved something since.
    pub is_in_use: bool,
    /// Transfers from it.
    pub read: TracedTransfers,
    /// Transfers to it.
    pub written: TracedTransfers,
}

impl TracedTransfers {
    fn decode(bytes: &[u8], from: usize) -> Self {
        let at = |offset| word(bytes, from + offset);
        Self {
            calls: at(offset_of!(TransferState, calls)),
            failed: at(offset_of!(TransferState, failed)),
            bytes: at(offset_of!(TransferState, bytes)),
            buckets: std::array::from_fn(|index| at(offset_of!(TransferState, buckets) + 8 * index)),
        }
    }

    /// Field by field.
    pub fn combined(&self, other: &Self, both: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            calls: both(self.calls, other.calls),
            failed: both(self.failed, other.failed),
            bytes: both(self.bytes, other.bytes),
            buckets: std::array::from_fn(|index| both(self.buckets[index], other.buckets[index])),
        }
    }
}

impl TracedDescriptor {
    /// An empty key stands for descriptors that found no room.
    pub(in crate::ladder) fn decode(key: &[u8], value: &[u8]) -> Self {
        Self {
            pid: half(key, offset_of!(DescriptorKey, pid)),
            descriptor: half(key, offset_of!(DescriptorKey, descriptor)),
            side: side(word(value, offset_of!(DescriptorState, side))),
            closes: word(value, offset_of!(DescriptorState, closes)),
            users_ended: word(value, offset_of!(DescriptorState, users_ended)),
            is_in_use: word(value, offset_of!(DescriptorState, is_in_use)) > 0,
            read: TracedTransfers::decode(value, offset_of!(DescriptorState, read)),
            written: TracedTransfers::decode(value, offset_of!(DescriptorState, written)),
        }
    }

    /// The difference to an earlier reading.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            closes: self.closes.saturating_sub(earlier.closes),
            users_ended: self.users_ended.saturating_sub(earlier.users_ended),
            read: self.read.combined(&earlier.read, u64::saturating_sub),
            written: self.written.combined(&earlier.written, u64::saturating_sub),
            ..*self
        }
    }

    /// Whether any transfer was attempted.
    pub fn is_used(&self) -> bool {
        [self.read, self.written].iter().any(|it| it.calls > 0 || it.failed > 0)
    }

    /// Whether its process lives in a nested PID namespace and has no number visible to this program.
    pub fn is_below(&self) -> bool {
        self.pid & BELOW != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_length_of_a_value_makes_reading_fail() {
        for length in 0..size_of::<DescriptorState>() {
            let bytes = vec![0xff; length];
            let _ = TracedDescriptor::decode(&bytes, &bytes);
        }
    }
}
