//! What was moved through each descriptor, as the programs keep it and as it is read.

use std::mem::offset_of;

use weir_record::observation::SIZE_BUCKETS;

use super::{Side, half, side, word};

/// Most descriptors with sums of their own; what further ones move is in one sum.
pub const DESCRIPTORS_MAX: u32 = 4_096;

/// Bit of a key's process number that has no number for whoever looks: it lives in a PID namespace further below. The
/// rest is its number in the first namespace, which keeps such processes apart and means nothing else here.
pub(in crate::ladder) const BELOW: u32 = 1 << 31;
const _: () = assert!(BELOW >= super::PID_LIMIT);

/// A descriptor of a process.
#[repr(C)]
pub(in crate::ladder) struct DescriptorKey {
    pub(in crate::ladder) pid: u32,
    pub(in crate::ladder) descriptor: u32,
}

/// What it moved.
#[repr(C)]
pub(in crate::ladder) struct DescriptorState {
    /// The process's [`Side`].
    pub(in crate::ladder) side: u64,
    /// How often something by its number was closed: whatever has the number afterwards is another one.
    pub(in crate::ladder) closes: u64,
    /// How often what was closed had moved something.
    pub(in crate::ladder) users_ended: u64,
    /// 1 where a call moved something and nothing was closed since.
    pub(in crate::ladder) is_in_use: u64,
    pub(in crate::ladder) read: TransferState,
    pub(in crate::ladder) written: TransferState,
}

/// One way.
#[repr(C)]
pub(in crate::ladder) struct TransferState {
    pub(in crate::ladder) calls: u64,
    pub(in crate::ladder) failed: u64,
    pub(in crate::ladder) bytes: u64,
    pub(in crate::ladder) buckets: [u64; SIZE_BUCKETS],
}

/// What calls moved one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TracedTransfers {
    /// Those that did not fail.
    pub calls: u64,
    /// Those that did, also because there was nothing to do.
    pub failed: u64,
    /// Sum of what they answered.
    pub bytes: u64,
    /// Calls by what they answered: none in the first place, in place `i` from 2^(i-1) bytes up to twice that.
    pub buckets: [u64; SIZE_BUCKETS],
}

/// A descriptor, whatever was behind its number in turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TracedDescriptor {
    /// Of this process. One without a number here has another one that no process has; see [`Self::is_below`].
    pub pid: u32,
    /// Its number.
    pub descriptor: u32,
    /// The process's side.
    pub side: Side,
    /// How often something by its number was closed.
    pub closes: u64,
    /// How often what was closed had moved something.
    pub users_ended: u64,
    /// Whether a call moved something since.
    pub is_in_use: bool,
    /// Bytes that came from it.
    pub read: TracedTransfers,
    /// Bytes that went to it.
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
    /// With no key: what found no room.
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

    /// What was added since an earlier reading.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            closes: self.closes.saturating_sub(earlier.closes),
            users_ended: self.users_ended.saturating_sub(earlier.users_ended),
            read: self.read.combined(&earlier.read, u64::saturating_sub),
            written: self.written.combined(&earlier.written, u64::saturating_sub),
            ..*self
        }
    }

    /// Whether anything was tried with it.
    pub fn is_used(&self) -> bool {
        [self.read, self.written].iter().any(|it| it.calls > 0 || it.failed > 0)
    }

    /// Whether its process lives in a PID namespace further below, where this program sees no number of it.
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
