//! All live orders of a venue, found by account and number, and linked to their neighbours at their price and in
//! their account. This file stores only places and links; the book interprets the order.
//!
//! With many live orders, an operation's cost is the memory that it has to wait for. So an order takes half a cache
//! line, and the links are stored separately, four orders to a line: removing an order changes the links of up to
//! four others and reads nothing else of them.

use crate::{
    account::AccountId,
    key_table::KeyTable,
    slab::{NONE, Slab},
};

/// A live order.
#[repr(align(32))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    pub(crate) account: AccountId,
    pub(crate) user_ref_num: u32,
    /// Shares still open.
    pub(crate) leaves: u32,
    /// Shares executed, in this order and in those it replaced.
    pub(crate) executed: u32,
    pub(crate) book: u32,
    /// The price level of the order.
    pub(crate) level: u32,
    pub(crate) side: u8,
    pub(crate) capacity: u8,
    pub(crate) cross_type: u8,
}

const _: () = assert!(size_of::<Order>() == 32);

/// The orders before and after an order: in the queue at its price, and in its account.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    pub(crate) older: u32,
    pub(crate) newer: u32,
    account_older: u32,
    account_newer: u32,
}

const _: () = assert!(size_of::<Links>() == 16);

/// The orders of one account, oldest first.
#[derive(Clone, Copy)]
struct Account {
    oldest: u32,
    newest: u32,
    live: u32,
}

pub(crate) struct Orders {
    slab: Slab<Order>,
    links: Vec<Links>,
    by_number: KeyTable,
    accounts: Vec<Account>,
}

impl Orders {
    pub(crate) fn new(accounts_max: usize, orders_max: usize) -> Self {
        Self {
            slab: Slab::new(orders_max),
            links: Vec::with_capacity(orders_max),
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

    pub(crate) fn is_full(&self) -> bool {
        self.slab.is_full()
    }

    pub(crate) fn at(&self, place: u32) -> &Order {
        self.slab.at(place)
    }

    pub(crate) fn at_mut(&mut self, place: u32) -> &mut Order {
        self.slab.at_mut(place)
    }

    pub(crate) fn links(&mut self, place: u32) -> &mut Links {
        &mut self.links[place as usize]
    }

    pub(crate) fn find(&self, account: AccountId, user_ref_num: u32) -> Option<u32> {
        self.by_number.get(account.key(user_ref_num), |place| {
            let order = self.slab.at(place);
            order.user_ref_num == user_ref_num && order.account == account
        })
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
            let place = next?;
            let newer = self.links[place as usize].account_newer;
            next = (newer != NONE).then_some(newer);
            Some(self.at(place))
        })
    }

    /// Adds an order of a known account, behind `older` in the queue at its price. There must be room, and its number
    /// must not be live.
    pub(crate) fn insert(&mut self, order: Order, older: u32) -> u32 {
        let place = self.slab.insert(order).expect("room was checked before the order was accepted");
        let inserted = self.by_number.insert(order.account.key(order.user_ref_num), place);
        assert!(inserted, "the table has as many places as the slab");
        let account = &mut self.accounts[order.account.index()];
        let links = Links { older, newer: NONE, account_older: account.newest, account_newer: NONE };
        account.live += 1;
        account.newest = place;
        match links.account_older {
            NONE => account.oldest = place,
            older => self.links[older as usize].account_newer = place,
        }
        // New places come in order; after that, places are reused.
        match self.links.get_mut(place as usize) {
            Some(reused) => *reused = links,
            None => self.links.push(links),
        }
        place
    }

    /// Removes an order and returns its neighbours in the queue.
    pub(crate) fn remove(&mut self, place: u32) -> (Order, Links) {
        let order = self.slab.remove(place);
        let links = self.links[place as usize];
        self.by_number.remove(order.account.key(order.user_ref_num), place);
        let account = &mut self.accounts[order.account.index()];
        account.live -= 1;
        match links.account_older {
            NONE => account.oldest = links.account_newer,
            older => self.links[older as usize].account_newer = links.account_newer,
        }
        match links.account_newer {
            NONE => account.newest = links.account_older,
            newer => self.links[newer as usize].account_older = links.account_older,
        }
        (order, links)
    }
}
