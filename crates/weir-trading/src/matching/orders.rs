//! All live orders of a venue: each one a cache line in a slab, found by account and number, and linked to the orders
//! beside it at its price and in its account. Only links and counts live here; what an order is worth is the book's.

use crate::{
    AccountId,
    key_table::KeyTable,
    slab::{NONE, Slab},
};

/// A live order.
#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    /// The venue's number.
    pub(crate) reference: u64,
    pub(crate) account: AccountId,
    pub(crate) user_ref_num: u32,
    /// Its price, as a key of its ladder.
    pub(crate) key: u32,
    /// Shares still open.
    pub(crate) leaves: u32,
    /// Shares executed, in this order and in those it replaced.
    pub(crate) executed: u32,
    pub(crate) book: u32,
    /// The price level and the orders before and after it there.
    pub(crate) level: u32,
    pub(crate) older: u32,
    pub(crate) newer: u32,
    /// The orders before and after it in its account.
    pub(crate) account_older: u32,
    pub(crate) account_newer: u32,
    pub(crate) side: u8,
    pub(crate) capacity: u8,
    pub(crate) cross_type: u8,
}

const _: () = assert!(size_of::<Order>() == 64);

impl Order {
    /// An order that is linked to nothing yet.
    pub(crate) fn new(account: AccountId, user_ref_num: u32, reference: u64) -> Self {
        Self {
            reference,
            account,
            user_ref_num,
            key: 0,
            leaves: 0,
            executed: 0,
            book: 0,
            level: NONE,
            older: NONE,
            newer: NONE,
            account_older: NONE,
            account_newer: NONE,
            side: b'B',
            capacity: b'A',
            cross_type: b'N',
        }
    }
}

/// The orders of one account, oldest first.
#[derive(Clone, Copy)]
struct Account {
    oldest: u32,
    newest: u32,
    live: u32,
}

pub(crate) struct Orders {
    slab: Slab<Order>,
    by_number: KeyTable,
    accounts: Vec<Account>,
}

impl Orders {
    pub(crate) fn new(accounts_max: usize, orders_max: usize) -> Self {
        Self {
            slab: Slab::new(orders_max),
            by_number: KeyTable::new(orders_max),
            accounts: vec![Account { oldest: NONE, newest: NONE, live: 0 }; accounts_max],
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    /// Live orders of an account; `None` if there is no such account.
    pub(crate) fn live_of(&self, account: AccountId) -> Option<usize> {
        Some(self.accounts.get(account.index())?.live as usize)
    }

    pub(crate) fn accounts(&self) -> usize {
        self.accounts.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.slab.is_full()
    }

    pub(crate) fn at(&self, place: u32) -> &Order {
        self.slab.at(place)
    }

    pub(crate) fn at_mut(&mut self, place: u32) -> &mut Order {
        self.slab.at_mut(place)
    }

    pub(crate) fn find(&self, account: AccountId, user_ref_num: u32) -> Option<u32> {
        self.by_number.get(account.key(user_ref_num))
    }

    /// The account's oldest order.
    pub(crate) fn oldest_of(&self, account: AccountId) -> Option<u32> {
        let oldest = self.accounts.get(account.index())?.oldest;
        (oldest != NONE).then_some(oldest)
    }

    /// The orders of an account, oldest first.
    pub(crate) fn of(&self, account: AccountId) -> impl Iterator<Item = &Order> + '_ {
        let mut next = self.oldest_of(account);
        std::iter::from_fn(move || {
            let order = self.at(next?);
            next = (order.account_newer != NONE).then_some(order.account_newer);
            Some(order)
        })
    }

    /// Adds an order of a known account. There must be room, and its number must not be live.
    pub(crate) fn insert(&mut self, mut order: Order) -> u32 {
        let account = &mut self.accounts[order.account.index()];
        order.account_older = account.newest;
        order.account_newer = NONE;
        let place = self.slab.insert(order).expect("room was checked before the order was accepted");
        let inserted = self.by_number.insert(order.account.key(order.user_ref_num), place);
        assert!(inserted, "the table has as many places as the slab");
        account.live += 1;
        account.newest = place;
        match order.account_older {
            NONE => account.oldest = place,
            older => self.slab.at_mut(older).account_newer = place,
        }
        place
    }

    /// Takes an order out. Its level has let go of it.
    pub(crate) fn remove(&mut self, place: u32) -> Order {
        let order = self.slab.remove(place);
        self.by_number.remove(order.account.key(order.user_ref_num));
        let account = &mut self.accounts[order.account.index()];
        account.live -= 1;
        match order.account_older {
            NONE => account.oldest = order.account_newer,
            older => self.slab.at_mut(older).account_newer = order.account_newer,
        }
        match order.account_newer {
            NONE => account.newest = order.account_older,
            newer => self.slab.at_mut(newer).account_older = order.account_older,
        }
        order
    }
}
