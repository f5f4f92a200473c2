//! The order numbers of one upstream session, and the client order behind each.
//!
//! An upstream session is one OUCH account, so the gateway issues its numbers itself, strictly increasing, **when the
//! message is sent**, and remembers the client's order for each of them. Each direction is one probe of a table; the
//! orders of an account are in a separate list, for the kill switch and for cancel on disconnect.
//!
//! An order is forgotten when it is dead: [`UpstreamNumbers::apply`] sees that in the venue's messages, and
//! [`UpstreamNumbers::finish`] declares it. A replacement that the venue has not confirmed dies with its original,
//! because the venue does not answer it then; [`UpstreamNumbers::take_orphans`] returns these replacements. When all
//! places are taken by live orders, [`WhenFull`] decides.

use std::{fmt, ops::Range};

use weir_proto::ouch::{Inbound, Outbound};

use crate::{
    account::AccountId,
    key_table::KeyTable,
    slab::{NONE, Slab},
};

/// The client order that an upstream number carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The client's account.
    pub account: AccountId,
    /// The client's number.
    pub user_ref_num: u32,
    /// The worker that owns the client's session.
    pub home: u16,
    /// When the client's message arrived, on the gateway's clock.
    pub received_ns: u64,
}

/// A live order and its place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveOrder {
    /// Its place, which it keeps.
    pub place: u32,
    /// Its upstream number.
    pub upstream: u32,
    /// The client's order.
    pub origin: Origin,
    /// Shares that may still execute; `None` until the venue has accepted it.
    pub shares: Option<u32>,
}

/// What happens when an order needs a number and the table is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It is refused. This is right for a venue where orders end.
    #[default]
    Refuse,
    /// The oldest order is forgotten; later venue messages about it have no addressee. For a venue that only echoes,
    /// where orders never end.
    ForgetOldest,
}

/// Why no number was assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The table is full of live orders.
    Orders,
    /// `0xFFFF_FFFF` is used up: the upstream session has no numbers left.
    Numbers,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Orders => "the table of live orders is full",
            Self::Numbers => "the upstream session has no number left",
        })
    }
}

impl std::error::Error for Full {}

/// Upstream numbers and the orders they carry.
pub struct UpstreamNumbers {
    /// The next number; 0 when none is left.
    next: u32,
    when_full: WhenFull,
    entries: Slab<Entry>,
    by_upstream: KeyTable,
    by_client: KeyTable,
    /// All entries, oldest first.
    all: List,
    /// The entries of each account, oldest first. It grows to the highest account seen.
    accounts: Vec<List>,
    /// Replacements that died unconfirmed and have not been taken.
    orphans: Vec<(u32, Origin)>,
}

#[derive(Clone, Copy)]
struct Entry {
    origin: Origin,
    upstream: u32,
    /// Shares that may still execute; 0 until the venue accepted the order.
    shares: u32,
    all: Link,
    account: Link,
    /// The place of the order that it replaces, while unconfirmed, and its neighbours among the replacements of that
    /// order.
    original: u32,
    rivals: Link,
    /// The unconfirmed replacements of this order.
    replacements: List,
}

#[derive(Clone, Copy)]
struct Link {
    older: u32,
    newer: u32,
}

#[derive(Clone, Copy)]
struct List {
    oldest: u32,
    newest: u32,
}

const NO_LINK: Link = Link { older: NONE, newer: NONE };
const EMPTY: List = List { oldest: NONE, newest: NONE };

impl UpstreamNumbers {
    /// The first number assigned is `next` (at least 1); at most `capacity` orders are live at once.
    pub fn new(next: u32, capacity: usize) -> Self {
        Self::with_policy(next, capacity, WhenFull::Refuse)
    }

    /// As [`Self::new`], with a choice for a full table.
    pub fn with_policy(next: u32, capacity: usize, when_full: WhenFull) -> Self {
        Self {
            next: next.max(1),
            when_full,
            entries: Slab::new(capacity),
            by_upstream: KeyTable::new(capacity),
            by_client: KeyTable::new(capacity),
            all: EMPTY,
            accounts: Vec::new(),
            orphans: Vec::new(),
        }
    }

    /// The number of the next order; 0 when none is left.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// The number of remembered orders.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives an order the next number. `original` is the upstream number of the order that a replacement replaces.
    pub fn assign(&mut self, origin: Origin, original: Option<u32>) -> Result<u32, Full> {
        let upstream = self.next;
        if upstream == 0 {
            return Err(Full::Numbers);
        }
        self.insert_behind(upstream, origin, original)?;
        Ok(upstream)
    }

    fn insert_behind(&mut self, upstream: u32, origin: Origin, original: Option<u32>) -> Result<(), Full> {
        let place = self.insert(upstream, origin)?;
        let original = original.and_then(|original| self.find(original));
        if let Some(original) = original.filter(|original| *original != place) {
            let mut list = self.entries.at(original).replacements;
            let rivals = Link { older: list.newest, newer: NONE };
            append(&mut list, rivals.older, place, &mut self.entries, |entry| &mut entry.rivals);
            self.entries.at_mut(original).replacements = list;
            let entry = self.entries.at_mut(place);
            entry.rivals = rivals;
            entry.original = original;
        }
        Ok(())
    }

    /// The replacements that died since the last call because their original did, by upstream number. A caller that
    /// assigns numbers to replacements takes them regularly: they are kept until then.
    pub fn take_orphans(&mut self) -> Vec<(u32, Origin)> {
        std::mem::take(&mut self.orphans)
    }

    /// Recovery: this number was assigned before the restart. Numbers must come in rising order, starting at
    /// [`UpstreamNumbers::next`] or above; a lower one is ignored, because it is already known. `original` as for
    /// [`UpstreamNumbers::assign`].
    pub fn restore(&mut self, upstream: u32, origin: Origin, original: Option<u32>) -> Result<(), Full> {
        if self.next == 0 || upstream < self.next {
            return Ok(());
        }
        self.insert_behind(upstream, origin, original)
    }

    /// Recovery: the venue has seen numbers below `next` (its answer to an account query).
    pub fn advance(&mut self, next: u32) {
        if self.next != 0 && (next == 0 || next > self.next) {
            self.next = next;
        }
    }

    /// The client order of a number; `None` if it is dead, forgotten or never existed.
    pub fn origin_of(&self, upstream: u32) -> Option<Origin> {
        Some(self.entries.at(self.find(upstream)?).origin)
    }

    /// The upstream number of a client's live order.
    pub fn upstream_of(&self, account: AccountId, user_ref_num: u32) -> Option<u32> {
        Some(self.entries.at(self.find_client(account, user_ref_num)?).upstream)
    }

    /// The order that this one replaces, until the venue confirms that or either of them ends.
    pub fn original_of(&self, upstream: u32) -> Option<Origin> {
        let original = self.entries.at(self.find(upstream)?).original;
        (original != NONE).then(|| self.entries.at(original).origin)
    }

    /// Removes an order that is dead.
    pub fn finish(&mut self, upstream: u32) {
        if let Some(place) = self.find(upstream) {
            self.remove(place);
        }
    }

    /// The venue's acceptance of an order is missing; assume that it was for this many shares.
    pub fn assume(&mut self, upstream: u32, shares: u32) {
        if let Some(place) = self.find(upstream) {
            let entry = self.entries.at_mut(place);
            if entry.shares == 0 {
                entry.shares = shares;
            }
        }
    }

    /// Applies one venue message: returns its addressee and forgets the order if the message was its last. `None` for
    /// messages about no order and about orders not remembered.
    pub fn apply(&mut self, message: &Outbound) -> Option<Origin> {
        let (number, step) = Step::of(message)?;
        let place = self.find(number)?;
        let entry = self.entries.at_mut(place);
        let origin = entry.origin;
        match step {
            Step::Notice => return Some(origin),
            // The acceptance is missing, so the remaining shares are unknown too.
            Step::Less(_) if entry.shares == 0 => return Some(origin),
            Step::Less(shares) => entry.shares = entry.shares.saturating_sub(shares),
            Step::Shares(shares) => entry.shares = shares,
            Step::Dead => entry.shares = 0,
        }
        let (is_dead, original) = (entry.shares == 0, entry.original);
        let replaced = match message {
            // Confirmed: it no longer dies with its original, which ends here.
            Outbound::Replaced(replaced) => Some(replaced.original_user_ref_num),
            // The replacement was confirmed, and the message that said so is missing.
            Outbound::Executed(_) | Outbound::Canceled(_) if original != NONE => {
                Some(self.entries.at(original).upstream)
            }
            _ => None,
        };
        if let Some(original) = replaced {
            self.detach(place);
            self.finish(original);
        }
        if is_dead {
            self.remove(place);
        }
        Some(origin)
    }

    /// The live orders of an account, oldest first: the orders that a kill or a disconnect has to cancel. Unanswered
    /// orders are included.
    pub fn open_orders(&self, account: AccountId) -> impl Iterator<Item = (u32, Origin)> + '_ {
        let first = self.accounts.get(account.index()).map_or(NONE, |list| list.oldest);
        self.walk(first, |entry| entry.account.newer)
    }

    /// Shares of a live order that may still execute; `None` until the venue has accepted it.
    pub fn shares_of(&self, upstream: u32) -> Option<u32> {
        Some(self.entries.at(self.find(upstream)?).shares).filter(|shares| *shares > 0)
    }

    /// The live orders of all accounts, oldest first.
    pub fn all_open_orders(&self) -> impl Iterator<Item = (u32, Origin)> + '_ {
        self.walk(self.all.oldest, |entry| entry.all.newer)
    }

    /// The live orders in these places. An order keeps its place for as long as it lives, so every order that lives
    /// while all places below [`Self::places`] are asked for, a range after the other, is returned exactly once. The
    /// work is bounded by the length of the range.
    pub fn live_in(&self, places: Range<u32>) -> impl Iterator<Item = LiveOrder> + '_ {
        let end = places.end.min(self.places());
        (places.start.min(end)..end).filter_map(|place| {
            let Entry { upstream, origin, shares, .. } = *self.entries.at(place);
            // A place that is free contains its last order.
            let is_live = self.find(upstream) == Some(place);
            let shares = Some(shares).filter(|shares| *shares > 0);
            is_live.then_some(LiveOrder { place, upstream, origin, shares })
        })
    }

    /// The number of places that have had orders.
    pub fn places(&self) -> u32 {
        self.entries.places()
    }

    fn walk(&self, first: u32, newer: fn(&Entry) -> u32) -> impl Iterator<Item = (u32, Origin)> + '_ {
        let mut place = first;
        std::iter::from_fn(move || {
            if place == NONE {
                return None;
            }
            let entry = self.entries.at(place);
            place = newer(entry);
            Some((entry.upstream, entry.origin))
        })
    }

    fn find(&self, upstream: u32) -> Option<u32> {
        self.by_upstream.get(upstream.into(), |place| self.entries.at(place).upstream == upstream)
    }

    fn find_client(&self, account: AccountId, user_ref_num: u32) -> Option<u32> {
        self.by_client.get(account.key(user_ref_num), |place| {
            let origin = &self.entries.at(place).origin;
            origin.user_ref_num == user_ref_num && origin.account == account
        })
    }

    fn insert(&mut self, upstream: u32, origin: Origin) -> Result<u32, Full> {
        // A client's number names one order; if it comes twice, the later one counts.
        if let Some(place) = self.find_client(origin.account, origin.user_ref_num) {
            self.remove(place);
        }
        if self.entries.is_full() {
            match (self.when_full, self.all.oldest) {
                (WhenFull::Refuse, _) | (_, NONE) => return Err(Full::Orders),
                (WhenFull::ForgetOldest, oldest) => self.remove(oldest),
            }
        }
        let account = origin.account.index();
        if account >= self.accounts.len() {
            self.accounts.resize(account + 1, EMPTY);
        }
        let entry = Entry {
            origin,
            upstream,
            shares: 0,
            all: Link { older: self.all.newest, newer: NONE },
            account: Link { older: self.accounts[account].newest, newer: NONE },
            original: NONE,
            rivals: NO_LINK,
            replacements: EMPTY,
        };
        let place = self.entries.insert(entry).expect("a place was free");
        let both = self.by_upstream.insert(upstream.into(), place)
            & self.by_client.insert(origin.account.key(origin.user_ref_num), place);
        assert!(both, "the tables have as many places as the slab");
        append(&mut self.all, entry.all.older, place, &mut self.entries, |entry| &mut entry.all);
        let list = &mut self.accounts[account];
        append(list, entry.account.older, place, &mut self.entries, |entry| &mut entry.account);
        self.next = upstream.wrapping_add(1);
        Ok(place)
    }

    /// Forgets an order and its pending replacements, and theirs, the last ones first.
    fn remove(&mut self, place: u32) {
        let mut next = place;
        loop {
            let entry = self.entries.at(next);
            if entry.replacements.oldest != NONE {
                next = entry.replacements.oldest;
                continue;
            }
            let (original, orphan) = (entry.original, (entry.upstream, entry.origin));
            self.remove_one(next);
            if next == place {
                return;
            }
            self.orphans.push(orphan);
            next = original;
        }
    }

    /// Removes an order from the pending replacements of its original.
    fn detach(&mut self, place: u32) {
        let entry = self.entries.at_mut(place);
        let (original, rivals) = (entry.original, entry.rivals);
        if original == NONE {
            return;
        }
        entry.original = NONE;
        entry.rivals = NO_LINK;
        let mut list = self.entries.at(original).replacements;
        unlink(&mut list, rivals, &mut self.entries, |entry| &mut entry.rivals);
        self.entries.at_mut(original).replacements = list;
    }

    fn remove_one(&mut self, place: u32) {
        self.detach(place);
        let entry = self.entries.remove(place);
        self.by_upstream.remove(entry.upstream.into(), place);
        self.by_client.remove(entry.origin.account.key(entry.origin.user_ref_num), place);
        unlink(&mut self.all, entry.all, &mut self.entries, |entry| &mut entry.all);
        let list = &mut self.accounts[entry.origin.account.index()];
        unlink(list, entry.account, &mut self.entries, |entry| &mut entry.account);
    }
}

fn append(
    list: &mut List,
    older: u32,
    place: u32,
    entries: &mut Slab<Entry>,
    link: fn(&mut Entry) -> &mut Link,
) {
    list.newest = place;
    match older {
        NONE => list.oldest = place,
        older => link(entries.at_mut(older)).newer = place,
    }
}

fn unlink(list: &mut List, gone: Link, entries: &mut Slab<Entry>, link: fn(&mut Entry) -> &mut Link) {
    match gone.older {
        NONE => list.oldest = gone.newer,
        older => link(entries.at_mut(older)).newer = gone.newer,
    }
    match gone.newer {
        NONE => list.newest = gone.older,
        newer => link(entries.at_mut(newer)).older = gone.older,
    }
}

/// The effect of a venue message on the shares of its order.
enum Step {
    Shares(u32),
    Less(u32),
    Dead,
    Notice,
}

impl Step {
    fn of(message: &Outbound) -> Option<(u32, Self)> {
        let live = |state: u8, quantity: u32| if state == b'D' { Self::Dead } else { Self::Shares(quantity) };
        Some(match message {
            Outbound::Accepted(accepted) => {
                (accepted.user_ref_num, live(accepted.order_state, accepted.quantity))
            }
            Outbound::Replaced(replaced) => {
                (replaced.user_ref_num, live(replaced.order_state, replaced.quantity))
            }
            Outbound::Modified(modified) => (modified.user_ref_num, Self::Shares(modified.quantity)),
            Outbound::Executed(executed) => (executed.user_ref_num, Self::Less(executed.quantity)),
            Outbound::Canceled(canceled) => (canceled.user_ref_num, Self::Less(canceled.quantity)),
            Outbound::AiqCanceled(canceled) => (canceled.user_ref_num, Self::Less(canceled.quantity)),
            Outbound::Rejected(rejected) => (rejected.user_ref_num, Self::Dead),
            Outbound::BrokenTrade(broken) => (broken.user_ref_num, Self::Notice),
            Outbound::CancelPending(pending) => (pending.user_ref_num, Self::Notice),
            Outbound::CancelReject(refused) => (refused.user_ref_num, Self::Notice),
            Outbound::PriorityUpdate(update) => (update.user_ref_num, Self::Notice),
            Outbound::Restated(restated) => (restated.user_ref_num, Self::Notice),
            Outbound::SystemEvent { .. } | Outbound::AccountQueryResponse { .. } => return None,
        })
    }
}

/// The new number that a message brings (for an order or a replacement), if any.
pub fn new_number(message: &Inbound<'_>) -> Option<u32> {
    match message {
        Inbound::Enter(enter, _) => Some(enter.user_ref_num),
        Inbound::Replace(replace, _) => Some(replace.user_ref_num),
        Inbound::Cancel(_) | Inbound::Modify(_) | Inbound::AccountQuery => None,
    }
}
