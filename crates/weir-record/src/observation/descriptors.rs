//! What was moved through each descriptor of a process.

use serde::{Deserialize, Serialize};

/// Most descriptors in a record, those that moved most bytes.
pub const DESCRIPTOR_ROWS_MAX: usize = 256;
/// Buckets of [`Transfers::sizes`].
pub const SIZE_BUCKETS: usize = 26;

/// Descriptors, and what is in no row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescriptorTable {
    /// Those that moved most bytes first.
    pub rows: Vec<DescriptorFigures>,
    /// All others together.
    pub others: OtherDescriptors,
    /// Whether a table of the kernel's sockets was longer than what is read of it, so that sockets may have the
    /// kernel's name in place of their addresses.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub are_sockets_cut: bool,
}

/// Descriptors without a row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherDescriptors {
    /// Those that were distinguished.
    pub count: u64,
    /// Whether there were more than the kernel's table has room for, which are not in `count`.
    pub are_more: bool,
    /// What came from them.
    pub read: Transfers,
    /// What went to them.
    pub written: Transfers,
}

/// A descriptor, whatever had its number in turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescriptorFigures {
    /// Its process; [`super::OUTSIDE`] for one that has no number for the observer.
    pub pid: u32,
    /// Its number.
    pub descriptor: u32,
    /// What it was when it was looked at last.
    pub kind: DescriptorKind,
    /// Path of a file or of a Unix socket, the kernel's name of what has no path, address of the peer of a connection;
    /// absent where it was gone before it was looked at, or has none.
    pub name: Option<String>,
    /// The own address of a connection or of what receives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<String>,
    /// Whether that is what moved the bytes.
    pub state: DescriptorMark,
    /// How many had the number in turn and moved something, as far as closing was seen, with the last one.
    pub users: u64,
    /// What came from it.
    pub read: Transfers,
    /// What went to it.
    pub written: Transfers,
}

/// Whether what a descriptor was when it was looked at is what moved the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DescriptorMark {
    /// It was open at the end, and nothing was closed by that number.
    #[default]
    Open,
    /// It is not open any more; the name is of an earlier look.
    Gone,
    /// Several had the number in turn; the name is of the last that was looked at.
    Reused,
}

/// What a descriptor is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DescriptorKind {
    /// Nobody looked in time, or it may not be looked at.
    #[default]
    Unknown,
    /// Something with a path: a file, a device, a terminal.
    File,
    /// A connection, or what accepts them.
    Tcp,
    /// Datagrams.
    Udp,
    /// A Unix socket.
    Unix,
    /// A socket of another kind, or of another network namespace.
    Socket,
    /// A pipe without a path.
    Pipe,
    /// What the kernel has no path for: eventfd, timerfd and others.
    Other,
}

/// What calls moved one way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfers {
    /// Calls that did not fail.
    pub calls: u64,
    /// Calls that did, also because there was nothing to do.
    pub failed: u64,
    /// Bytes that they answered.
    pub bytes: u64,
    /// Calls by bytes: none in the first place, in place `i` from 2^(i-1) up to twice that, and more in the last of
    /// [`SIZE_BUCKETS`]. Empty ones at the end are left out.
    pub sizes: Vec<u64>,
}

impl Transfers {
    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.failed = self.failed.saturating_add(other.failed);
        self.bytes = self.bytes.saturating_add(other.bytes);
        if self.sizes.len() < other.sizes.len() {
            self.sizes.resize(other.sizes.len(), 0);
        }
        for (own, other) in self.sizes.iter_mut().zip(&other.sizes) {
            *own = own.saturating_add(*other);
        }
    }

    /// Bytes a call on the mean; none without calls.
    pub fn mean_bytes(&self) -> Option<f64> {
        (self.calls > 0).then(|| self.bytes as f64 / self.calls as f64)
    }

    /// The bytes that this share of the calls did not reach: to a factor of two, exactly for none; absent where they
    /// were in the last bucket, and without calls.
    pub fn below_bytes(&self, share: f64) -> Option<u64> {
        let all = super::total(self.sizes.iter().copied());
        let rank = (share * all as f64).ceil().max(1.0) as u64;
        let mut passed = 0_u64;
        let is_reached = |count: &u64| {
            passed = passed.saturating_add(*count);
            passed >= rank
        };
        let bucket = self.sizes.iter().position(is_reached)?;
        (bucket < SIZE_BUCKETS - 1).then(|| 1_u64 << bucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_by_the_power_of_two_that_they_do_not_reach() {
        let transfers = |sizes: &[u64]| Transfers { sizes: sizes.to_vec(), ..Transfers::default() };
        // Two of nothing, six of 64 to 127 bytes, two of 1024 to 2047.
        let mixed = transfers(&[2, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 2]);
        assert_eq!([0.1, 0.5, 0.99].map(|share| mixed.below_bytes(share)), [Some(1), Some(128), Some(2048)]);
        assert_eq!(transfers(&[]).below_bytes(0.5), None);
        let mut beyond = vec![0; SIZE_BUCKETS];
        beyond[SIZE_BUCKETS - 1] = 1;
        assert_eq!(transfers(&beyond).below_bytes(0.5), None);
        beyond.extend([u64::MAX; 90]);
        assert_eq!(transfers(&beyond).below_bytes(0.99), None, "a forged record says anything");
    }

    #[test]
    fn sums_have_all_of_both() {
        let one = Transfers { calls: 2, failed: 1, bytes: 9, sizes: vec![1, 1] };
        let mut sum = Transfers::default();
        assert_eq!(sum.mean_bytes(), None);
        sum.add(&one);
        sum.add(&Transfers { calls: 1, failed: 0, bytes: 90, sizes: vec![0, 0, 1] });
        assert_eq!(sum, Transfers { calls: 3, failed: 1, bytes: 99, sizes: vec![1, 1, 1] });
        assert_eq!(sum.mean_bytes(), Some(33.0));
    }
}
