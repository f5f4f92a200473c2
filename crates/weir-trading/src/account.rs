//! Account identifiers: accounts are numbers, because their state lies in arrays.

/// An account: its index in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(pub u32);

impl AccountId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    /// The order of this account with this number, as one key.
    pub(crate) fn key(self, user_ref_num: u32) -> u64 {
        u64::from(self.0) << 32 | u64::from(user_ref_num)
    }
}
