//! Asks the workers for pages of what operators are shown, and cancels what they name. On the asking thread: a worker
//! gets one slice at a time (`queries`).

use std::{
    thread,
    time::{Duration, Instant},
};

use weir_proto::ouch::Symbol;
use weir_trading::{AccountId, LiveTerms, Unattributed, WhenFull};

use super::{
    GatewayControl,
    account_limits::{UNIT, symbol},
    kill_switch::VenueCancels,
    listings::{Cursor, ExposureRow, NEVER_SENT, OrderFilter, OrderRow, Page, PositionRow, ROWS_MAX},
    queries::{AccountSums, CANCELS_MAX, CancelOutcome, OpenOrder, OrderKey, OrderSlice, Query, SLICE_MAX},
};

/// Most places that are examined for a page, of whatever is open. A page that found little in them has a next one.
const PLACES_MAX: u64 = 1 << 20;
/// How long a cancel waits for exchanges to confirm, and how often it checks.
const CONFIRM_LIMIT: Duration = Duration::from_secs(1);
const CONFIRM_LOOK: Duration = Duration::from_millis(20);

/// The result of a cancel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CancelReport {
    /// By venue, those with orders.
    pub venues: Vec<VenueCancels>,
    /// Open orders whose symbol is unknown, and that may be of the one that was named: they are not cancelled.
    pub unknown_symbols: u64,
}

/// A filter, resolved.
struct Asked {
    account: Option<AccountId>,
    symbol: Option<Symbol>,
    venue: Option<usize>,
}

/// An open order and where it was found.
struct Found {
    worker: usize,
    venue: usize,
    order: OpenOrder,
}

impl Found {
    fn cursor(&self) -> Cursor {
        let (worker, table) = (self.worker as u32, self.venue as u32);
        Cursor { worker, table, place: self.order.live.place }
    }

    fn key(&self) -> OrderKey {
        (self.order.live.origin.account, self.order.live.origin.user_ref_num)
    }
}

impl GatewayControl {
    /// A page of the open orders, from the beginning or from the end of the page before.
    ///
    /// # Errors
    /// The reason, in words: there is no such account, symbol, venue or place, or a worker does not answer.
    pub fn open_orders(&self, filter: &OrderFilter, from: Option<Cursor>) -> Result<Page<OrderRow>, String> {
        let asked = self.resolve(filter)?;
        let mut page = Page::default();
        let next = self.walk(&asked, from.unwrap_or_default(), |_, orders| {
            for found in orders.iter().filter(|found| asked.has_symbol(found.order.terms.as_ref())) {
                if page.rows.len() == ROWS_MAX {
                    return Ok(Some(found.cursor()));
                }
                page.rows.push(self.row_of(found));
            }
            Ok(None)
        })?;
        Ok(Page { next, ..page })
    }

    /// Cancels the open orders that a filter selects, as their clients would, and waits up to a second for exchanges to
    /// confirm that. Orders that arrive meanwhile are not cancelled.
    ///
    /// # Errors
    /// The reason, in words; orders that were found before are cancelled all the same.
    pub fn cancel_orders(&self, filter: &OrderFilter) -> Result<CancelReport, String> {
        let asked = self.resolve(filter)?;
        let mut report = CancelReport::default();
        let mut cancelled: Vec<(usize, Vec<OrderKey>)> = Vec::new();
        let mut from = Some(Cursor::default());
        let mut last_numbers = vec![None; self.shared.asker.workers() * self.venues().len()];
        while let Some(cursor) = from {
            from = self.walk(&asked, cursor, |last_number, orders| {
                let Some(first) = orders.first() else { return Ok(None) };
                let session = first.worker * self.venues().len() + first.venue;
                let through = *last_numbers[session].get_or_insert(last_number);
                let is_earlier = |found: &&Found| found.order.live.upstream <= through;
                let all: Vec<&Found> = orders.iter().filter(is_earlier).collect();
                if asked.symbol.is_some() {
                    report.unknown_symbols += all.iter().filter(|it| it.order.terms.is_none()).count() as u64;
                }
                let meant = all.into_iter().filter(|found| asked.has_symbol(found.order.terms.as_ref()));
                let keys: Vec<OrderKey> = meant.map(Found::key).collect();
                for keys in keys.chunks(CANCELS_MAX) {
                    self.cancel_at(first.worker, keys, &mut report.venues)?;
                    cancelled.push((first.worker, keys.to_vec()));
                }
                Ok(None)
            })?;
        }
        self.confirm(&cancelled, &mut report.venues);
        Ok(report)
    }

    /// The same for one order, by its client's number.
    ///
    /// # Errors
    /// The reason, in words: also that there is no such order.
    pub fn cancel_order(&self, account: &str, number: u32) -> Result<CancelReport, String> {
        let key = (self.account(account)?, number);
        let mut report = CancelReport::default();
        for worker in 0..self.shared.asker.workers() {
            self.cancel_at(worker, &[key], &mut report.venues)?;
            if !report.venues.is_empty() {
                self.confirm(&[(worker, vec![key])], &mut report.venues);
                return Ok(report);
            }
        }
        Err(format!(
            "account {account} has no open order {number}; `weir ctl orders --account {account}` lists those it has"
        ))
    }

    /// Checks that no order is open, if order numbers begin with 1 in the next session: a client could not know which
    /// of two orders a message is about.
    ///
    /// # Errors
    /// The reason, in words.
    pub(super) fn check_no_orders(&self) -> Result<(), String> {
        if !self.shared.config.numbers_restart {
            return Ok(());
        }
        let Some((first, venue)) = self.first_open_order()? else { return Ok(()) };
        Err(format!(
            "order {} of {} is open at {venue}, and may not be the only one: order numbers begin with 1 in the next \
             session, so none may be open; cancel them with `weir ctl cancel --venue {venue}`",
            first.order, first.account
        ))
    }

    /// The first open order, and its venue.
    ///
    /// # Errors
    /// The reason, in words: a worker does not answer.
    pub(super) fn first_open_order(&self) -> Result<Option<(OrderRow, &str)>, String> {
        // Orders of the other venues never end, and are not known to be open.
        let venues = &self.shared.config.venues;
        for venue in venues.iter().filter(|venue| venue.limits.when_full == WhenFull::Refuse) {
            let filter = OrderFilter { venue: Some(venue.name.clone()), ..OrderFilter::default() };
            if let Some(first) = self.open_orders(&filter, None)?.rows.into_iter().next() {
                return Ok(Some((first, venue.name.as_str())));
            }
        }
        Ok(None)
    }

    /// A page of the positions.
    ///
    /// # Errors
    /// As [`Self::open_orders`].
    pub fn positions(&self, filter: &OrderFilter, from: Option<Cursor>) -> Result<Page<PositionRow>, String> {
        let asked = self.resolve(filter)?;
        if asked.venue.is_some() {
            return Err("positions are by account and symbol, whatever the venue".to_owned());
        }
        let mut page = Page::default();
        let mut cursor = from.unwrap_or_default();
        while (cursor.worker as usize) < self.shared.asker.workers() {
            if page.rows.len() + SLICE_MAX as usize > ROWS_MAX {
                return Ok(Page { next: Some(cursor), ..page });
            }
            let worker = cursor.worker as usize;
            let next = match cursor.table {
                0 => self.positions_in(worker, cursor.place, &asked, &mut page)?,
                _ => self.unattributed_in(worker, cursor.place, &asked, &mut page)?,
            };
            cursor = match (next, cursor.table) {
                (Some(place), _) => Cursor { place, ..cursor },
                // Behind the positions, what belongs to none.
                (None, 0) => Cursor { table: 1, place: 0, ..cursor },
                (None, _) => Cursor { worker: cursor.worker + 1, table: 0, place: 0 },
            };
        }
        Ok(page)
    }

    fn positions_in(
        &self,
        worker: usize,
        from: u32,
        asked: &Asked,
        page: &mut Page<PositionRow>,
    ) -> Result<Option<u32>, String> {
        let slice =
            self.shared.asker.ask(worker, |answer| Query::Positions { places: from..u32::MAX, answer })?;
        let is_asked = |position: &&weir_trading::Position| {
            asked.account.is_none_or(|account| account == position.account)
                && asked.symbol.is_none_or(|symbol| symbol == position.symbol)
        };
        page.rows.extend(slice.positions.iter().filter(is_asked).map(|position| PositionRow {
            account: self.name_of(position.account),
            symbol: Some(position.symbol.to_string()),
            bought: position.bought,
            sold: position.sold,
            net: position.net(),
            ..PositionRow::default()
        }));
        Ok(slice.next)
    }

    fn unattributed_in(
        &self,
        worker: usize,
        from: u32,
        asked: &Asked,
        page: &mut Page<PositionRow>,
    ) -> Result<Option<u32>, String> {
        if asked.symbol.is_some() {
            return Ok(None);
        }
        let (sums, next) = self.accounts_in(worker, from)?;
        let is_asked = |sums: &&AccountSums| {
            asked.account.is_none_or(|account| account == sums.account)
                && sums.unattributed != Unattributed::default()
        };
        page.rows.extend(sums.iter().filter(is_asked).map(|sums| PositionRow {
            account: self.name_of(sums.account),
            unattributed: sums.unattributed.shares,
            broken_trades: sums.unattributed.broken_trades,
            ..PositionRow::default()
        }));
        Ok(next)
    }

    /// A page of the exposures: of accounts that have one or are limited, in the order of the configuration.
    ///
    /// # Errors
    /// As [`Self::open_orders`].
    pub fn exposures(
        &self,
        account: Option<&str>,
        from: Option<Cursor>,
    ) -> Result<Page<ExposureRow>, String> {
        let account = account.map(|name| self.account(name)).transpose()?;
        let mut page = Page::default();
        let first = from.map_or(0, |cursor| cursor.place);
        let mut next = Some(account.map_or(first, |account| account.0));
        while let Some(place) = next {
            if page.rows.len() + SLICE_MAX as usize > ROWS_MAX {
                return Ok(Page { next: Some(Cursor { place, ..Cursor::default() }), ..page });
            }
            let mut all = Vec::new();
            for worker in 0..self.shared.asker.workers() {
                let (sums, behind) = self.accounts_in(worker, place)?;
                all.extend(sums);
                next = behind;
            }
            all.sort_unstable_by_key(|sums| sums.account);
            let is_shown = |sums: &&AccountSums| match account {
                Some(account) => sums.account == account,
                None => sums.exposure > 0 || sums.exposure_max.is_some(),
            };
            page.rows.extend(all.iter().filter(is_shown).map(|sums| ExposureRow {
                account: self.name_of(sums.account),
                used: sums.exposure as f64 / UNIT,
                limit: sums.exposure_max.map(|limit| limit as f64 / UNIT),
            }));
            next = next.filter(|_| account.is_none());
        }
        Ok(page)
    }

    /// Ends the connection of an account. It may log in again, unless it is stopped otherwise.
    ///
    /// # Errors
    /// The reason, in words: there is no such account or session, or the account is not logged in.
    pub fn disconnect(&self, account: &str, session: Option<&str>) -> Result<(), String> {
        let open = self.orders.session();
        if let Some(name) = session.filter(|name| !open.as_str().eq_ignore_ascii_case(name)) {
            return Err(format!("there is no session {name:?}; the one there is, is {open}"));
        }
        let id = self.account(account)?;
        let worker = id.0 as usize % self.shared.asker.workers();
        let is_there = self.shared.asker.ask(worker, |answer| Query::Disconnect { account: id, answer })?;
        if is_there { Ok(()) } else { Err(format!("account {account} is not logged in")) }
    }

    /// A slice of a worker's accounts from this one on, and the first account behind it.
    fn accounts_in(&self, worker: usize, from: u32) -> Result<(Vec<AccountSums>, Option<u32>), String> {
        let accounts = from..from.saturating_add(SLICE_MAX);
        let behind = accounts.end;
        let mut sums = self.shared.asker.ask(worker, |answer| Query::Accounts { accounts, answer })?;
        // Empty places, which a reload may fill, have the common limits and no name.
        sums.retain(|sums| !self.name_of(sums.account).is_empty());
        let (first_empty, _) = self.orders.accounts_empty();
        Ok((sums, Some(behind).filter(|behind| *behind < first_empty.0)))
    }

    /// Visits the open orders from a place on, a slice at a time, with the last number of their session. It ends where
    /// the visit says, when enough was examined, or behind the last one; then the answer is `None`.
    fn walk(
        &self,
        asked: &Asked,
        from: Cursor,
        mut visit: impl FnMut(u32, &[Found]) -> Result<Option<Cursor>, String>,
    ) -> Result<Option<Cursor>, String> {
        let (workers, venues) = (self.shared.asker.workers(), self.venues().len());
        let mut examined = 0;
        for worker in from.worker as usize..workers {
            for venue in 0..venues {
                let here = Cursor { worker: worker as u32, table: venue as u32, place: 0 };
                let (before, is_asked) = (here.worker == from.worker && here.table < from.table, asked.venue);
                if before || is_asked.is_some_and(|asked| asked != venue) {
                    continue;
                }
                let is_first = (here.worker, here.table) == (from.worker, from.table);
                let mut next = Some(if is_first { from.place } else { 0 });
                while let Some(place) = next {
                    if examined >= PLACES_MAX {
                        return Ok(Some(Cursor { place, ..here }));
                    }
                    let OrderSlice { orders, next: behind, last_number } =
                        self.orders_at(worker, venue, place, asked.account)?;
                    let found = orders.into_iter().map(|order| Found { worker, venue, order });
                    let end = visit(last_number, &found.collect::<Vec<_>>())?;
                    if end.is_some() {
                        return Ok(end);
                    }
                    examined += u64::from(SLICE_MAX);
                    next = behind;
                }
            }
        }
        Ok(None)
    }

    /// Cancels orders at a worker.
    fn cancel_at(
        &self,
        worker: usize,
        orders: &[OrderKey],
        venues: &mut Vec<VenueCancels>,
    ) -> Result<(), String> {
        let ask = |answer| Query::Cancel { orders: orders.to_vec(), answer };
        let CancelOutcome { counts, is_journal_full } = self.shared.asker.ask(worker, ask)?;
        for (name, count) in self.venues().iter().zip(counts).filter(|(_, count)| count.orders > 0) {
            let venue = match venues.iter_mut().find(|venue| venue.venue == *name) {
                Some(venue) => venue,
                None => {
                    venues.push(VenueCancels { venue: name.clone(), ..VenueCancels::default() });
                    let Some(venue) = venues.last_mut() else { continue };
                    venue
                }
            };
            venue.orders += count.orders;
            venue.sent += count.sent;
        }
        if is_journal_full {
            return Err(format!(
                "the journal of worker {worker} takes no more cancels now, and some orders are not cancelled; ask \
                 again, or use `weir ctl kill`, which waits for no journal"
            ));
        }
        Ok(())
    }

    /// Waits until these orders have ended, for a limited time, and counts those that have.
    fn confirm(&self, cancelled: &[(usize, Vec<OrderKey>)], venues: &mut [VenueCancels]) {
        let until = Instant::now() + CONFIRM_LIMIT;
        let mut open: Vec<&(usize, Vec<OrderKey>)> = cancelled.iter().collect();
        let mut left = Vec::new();
        while !open.is_empty() {
            left = vec![0; self.venues().len()];
            open.retain(|(worker, orders)| {
                let ask = |answer| Query::StillOpen { orders: orders.clone(), answer };
                // Orders of a worker that does not answer count as open.
                let here = self.shared.asker.ask(*worker, ask).unwrap_or_default();
                here.iter().zip(&mut left).for_each(|(here, left)| *left += here);
                here.is_empty() || here.iter().any(|count| *count > 0)
            });
            if open.is_empty() || Instant::now() >= until {
                break;
            }
            thread::sleep(CONFIRM_LOOK);
        }
        for (name, left) in self.venues().iter().zip(left) {
            if let Some(venue) = venues.iter_mut().find(|venue| venue.venue == *name) {
                venue.confirmed = venue.orders.saturating_sub(left);
            }
        }
    }

    fn row_of(&self, found: &Found) -> OrderRow {
        let OpenOrder { live, terms, is_cancelled, is_never_sent, age_ns } = found.order;
        let state = match live.shares {
            _ if is_never_sent => NEVER_SENT,
            _ if is_cancelled => "cancelling",
            None => "unanswered",
            Some(_) => "open",
        };
        OrderRow {
            account: self.name_of(live.origin.account),
            order: live.origin.user_ref_num,
            symbol: terms.map(|terms| terms.symbol.to_string()),
            side: terms.map(|terms| char::from(terms.side)).filter(char::is_ascii_graphic),
            shares: live.shares.or(terms.map(|terms| terms.shares)),
            price: terms.map(|terms| terms.price as f64 / UNIT),
            state: state.to_owned(),
            venue: self.venues()[found.venue].clone(),
            worker: found.worker as u32,
            upstream_order: live.upstream,
            age_ms: age_ns.map(|age_ns| age_ns / 1_000_000),
        }
    }

    fn resolve(&self, filter: &OrderFilter) -> Result<Asked, String> {
        let venue = |name: &String| {
            let place = self.venues().iter().position(|venue| venue == name);
            place.ok_or_else(|| format!("there is no venue {name:?}; there are {}", self.venues().join(", ")))
        };
        let named = filter.symbol.as_deref().map(symbol).transpose()?;
        Ok(Asked {
            account: filter.account.as_deref().map(|name| self.account(name)).transpose()?,
            symbol: named.map(Symbol::canonical),
            venue: filter.venue.as_ref().map(venue).transpose()?,
        })
    }

    /// A slice of the open orders in a session, with the terms of all that are followed.
    fn orders_at(
        &self,
        worker: usize,
        venue: usize,
        from: u32,
        account: Option<AccountId>,
    ) -> Result<OrderSlice, String> {
        let asker = &self.shared.asker;
        let places = from..u32::MAX;
        let mut slice = asker.ask(worker, |answer| Query::Orders { venue, places, account, answer })?;
        for home in (0..asker.workers()).filter(|home| *home != worker) {
            let is_its = |order: &&mut OpenOrder| usize::from(order.live.origin.home) == home;
            let mut of_home: Vec<&mut OpenOrder> = slice.orders.iter_mut().filter(is_its).collect();
            if of_home.is_empty() {
                continue;
            }
            let key = |order: &&mut OpenOrder| (order.live.origin.account, order.live.origin.user_ref_num);
            let orders = of_home.iter().map(key).collect();
            let terms = asker.ask(home, |answer| Query::Terms { orders, answer })?;
            of_home.iter_mut().zip(terms).for_each(|(order, terms)| order.terms = terms);
        }
        Ok(slice)
    }
}

impl Asked {
    fn has_symbol(&self, terms: Option<&LiveTerms>) -> bool {
        self.symbol.is_none_or(|symbol| terms.is_some_and(|terms| terms.symbol.canonical() == symbol))
    }
}
