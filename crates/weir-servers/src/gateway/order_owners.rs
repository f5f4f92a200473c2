//! The owner of each number of an upstream session, for open and ended orders. An exchange may send messages about an
//! order that has ended: that one of its trades is broken, or that there was another one. Only the most recent
//! numbers are remembered. Pure: no socket, no clock.

use std::collections::VecDeque;

use weir_trading::{AccountId, Origin};

use crate::journal::fields::{FieldReader, FieldWriter};

/// Most numbers remembered: 12 MiB for each session, once it has used that many.
pub(super) const OWNERS_MAX: usize = 1 << 20;

/// The client's number is 0 if an upstream number has no owner.
#[derive(Clone, Copy, Debug)]
struct Owner {
    account: AccountId,
    user_ref_num: u32,
    home: u16,
}

const NOBODY: Owner = Owner { account: AccountId(0), user_ref_num: 0, home: 0 };

/// Owners of consecutive numbers.
#[derive(Debug, Default)]
pub(super) struct Owners {
    first: u32,
    all: VecDeque<Owner>,
}

impl Owners {
    /// Records the owner of a number. Numbers rise; if they start again lower, the recorded ones from there on
    /// belonged to other orders.
    #[inline]
    pub(super) fn note(&mut self, number: u32, origin: &Origin) {
        let place = number.checked_sub(self.first).map(|place| place as usize);
        match place.filter(|place| *place < self.all.len() + OWNERS_MAX && !self.all.is_empty()) {
            Some(place) if place == self.all.len() => {}
            Some(place) => self.all.resize(place, NOBODY),
            None => {
                self.all.clear();
                self.first = number;
            }
        }
        // Before adding one: a full buffer would otherwise double.
        while self.all.len() >= OWNERS_MAX {
            self.all.pop_front();
            self.first += 1;
        }
        let Origin { account, user_ref_num, home, .. } = *origin;
        self.all.push_back(Owner { account, user_ref_num, home });
    }

    /// Removes the ownership of accounts that are not there.
    pub(super) fn leave(&mut self, is_there: impl Fn(AccountId) -> bool) {
        self.all.iter_mut().filter(|owner| !is_there(owner.account)).for_each(|owner| *owner = NOBODY);
    }

    /// Writes them into a checkpoint.
    pub(super) fn save(&self, fields: &mut FieldWriter) {
        let Self { first, all } = self;
        fields.number(*first);
        fields.count(all.len());
        for Owner { account, user_ref_num, home: _ } in all {
            fields.number(*user_ref_num);
            if *user_ref_num != 0 {
                fields.number(account.0);
            }
        }
    }

    /// Reads them from a checkpoint. `origin` finds the account with a number of that time, and its home.
    pub(super) fn load(
        fields: &mut FieldReader<'_>,
        origin: impl Fn(u32, u32) -> Option<Origin>,
    ) -> Option<Self> {
        let first = fields.number()?;
        let count = fields.count(1)?;
        let mut owner = || {
            let user_ref_num = fields.number()?;
            if user_ref_num == 0 {
                return Some(NOBODY);
            }
            let Origin { account, home, .. } = origin(fields.number()?, user_ref_num)?;
            Some(Owner { account, user_ref_num, home })
        };
        let all = (0..count).map(|_| owner()).collect::<Option<VecDeque<_>>>()?;
        (all.len() <= OWNERS_MAX).then_some(Self { first, all })
    }

    /// The owner of this number. Its receive time is unknown.
    pub(super) fn of(&self, number: u32) -> Option<Origin> {
        let owner = self.all.get(number.checked_sub(self.first)? as usize)?;
        let Owner { account, user_ref_num, home } = *owner;
        (user_ref_num != 0).then_some(Origin { account, user_ref_num, home, received_ns: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(user_ref_num: u32) -> Origin {
        Origin { account: AccountId(7), user_ref_num, home: 1, received_ns: 0 }
    }

    fn of(owners: &Owners, numbers: impl IntoIterator<Item = u32>) -> Vec<u32> {
        numbers.into_iter().map(|number| owners.of(number).map_or(0, |origin| origin.user_ref_num)).collect()
    }

    #[test]
    fn numbers_have_their_owners_and_those_between_have_none() {
        let mut owners = Owners::default();
        assert_eq!(of(&owners, [0, 1]), [0, 0]);
        for (number, client) in [(41, 1), (42, 2), (45, 3)] {
            owners.note(number, &origin(client));
        }
        assert_eq!(of(&owners, 40..=46), [0, 1, 2, 0, 0, 3, 0]);
        assert_eq!(owners.of(42), Some(origin(2)));
        // The exchange has lost the end of its session, and numbers continue from there.
        owners.note(42, &origin(9));
        assert_eq!(of(&owners, 41..=45), [1, 9, 0, 0, 0]);
        owners.leave(|account| account != origin(9).account);
        assert_eq!(of(&owners, 41..=45), [0, 0, 0, 0, 0]);
        owners.note(1, &origin(10));
        assert_eq!(of(&owners, [1, 41, 42]), [10, 0, 0], "another session");
        owners.note(u32::MAX, &origin(11));
        assert_eq!(of(&owners, [1, u32::MAX]), [0, 11], "a gap is not filled whatever it is");
    }

    #[test]
    fn no_more_are_remembered_than_may_be() {
        let mut owners = Owners::default();
        let most = OWNERS_MAX as u32;
        (1..=most + 3).for_each(|number| owners.note(number, &origin(number)));
        assert_eq!(of(&owners, [1, 3, 4, most + 3]), [0, 0, 4, most + 3]);
        assert_eq!(owners.all.len(), OWNERS_MAX);
        assert!(owners.all.capacity() * size_of::<Owner>() <= 12 << 20, "there is no memory for more");
        // The largest gap that is still filled.
        owners.note(2 * most + 2, &origin(5));
        assert_eq!(of(&owners, [most + 3, 2 * most + 2]), [most + 3, 5]);
        assert_eq!(owners.all.len(), OWNERS_MAX);
    }
}
