//! The kill switch: accounts, or all of them, that may not trade, and the cancels of their orders.
//!
//! An operator turns it on. [`Commander::engage`] sends it to every worker and to a journal, and applies it to
//! [`Switches`], all at once: a disk must not delay it. A worker refuses new orders from then on
//! ([`Checks`](super::pre_trade_checks::Checks)) and cancels the open ones in each of its upstream sessions. Nothing of
//! that waits, neither for a journal nor for an exchange. A session repeats the cancels on every connection until none
//! of these orders is open, and does not resend them (`upstream_session/cancels.rs`). The operator gets the state of
//! the orders within a second.
//!
//! A switch is turned off like any other change: the journal contains that first. The next start finds the switches
//! that are on in the journals, and cancels again ([`Gateway::kill_again`]): the cancels of the former start may be
//! lost.
//!
//! The orders of a client that leaves, and has asked for it, are cancelled in the same way.

use std::{
    collections::BTreeSet,
    fmt,
    rc::Rc,
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use weir_engine::spawn;
use weir_proto::ouch::codes::cancel_reason;
use weir_trading::AccountId;

use super::{
    GatewayControl,
    commands::{Command, Commander, Switch, lock, payload_of, sum, wall_ns},
    controls::{Change, Controls},
    upstream::Upstream,
    worker::{Gateway, RECORD_CONTROL},
};
use crate::orders::AccountConfig;

/// How long it waits for exchanges to confirm its cancels, and how often it checks their number.
const CONFIRM_LIMIT: Duration = Duration::from_secs(1);
pub(super) const CONFIRM_LOOK: Duration = Duration::from_millis(20);
/// Most accounts that a line names.
const NAMED_MAX: usize = 10;

/// The switches that are on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Switches {
    everyone: bool,
    accounts: BTreeSet<u32>,
}

impl Switches {
    /// Turns the switch of an account, or the one of all accounts. Neither changes the other.
    pub(super) fn set(&mut self, account: Option<AccountId>, is_on: bool) {
        match (account, is_on) {
            (None, _) => self.everyone = is_on,
            (Some(account), true) => _ = self.accounts.insert(account.0),
            (Some(account), false) => _ = self.accounts.remove(&account.0),
        }
    }

    /// Whether this switch is on.
    pub(super) fn is_on(&self, account: Option<AccountId>) -> bool {
        account.map_or(self.everyone, |account| self.accounts.contains(&account.0))
    }

    /// Those that are on; first the one of all accounts.
    pub(super) fn on(&self) -> impl Iterator<Item = Option<AccountId>> + '_ {
        let accounts = self.accounts.iter().map(|account| Some(AccountId(*account)));
        self.everyone.then_some(None).into_iter().chain(accounts)
    }

    /// The accounts whose own switch is on.
    pub(super) fn accounts(&self) -> usize {
        self.accounts.len()
    }
}

/// The state of a kill switch's cancels at one venue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cancels {
    /// Orders that were open when it was engaged.
    pub(super) orders: u64,
    /// Cancels that have been sent.
    pub(super) sent: u64,
    /// Those among these orders that are still open.
    pub(super) open: u64,
    /// Those among these orders that have ended without a message from the exchange.
    pub(super) expired: u64,
}

impl Cancels {
    /// Adds the state of another worker.
    pub(super) fn add(&mut self, other: &Self) {
        self.orders += other.orders;
        self.sent += other.sent;
        self.open += other.open;
        self.expired += other.expired;
    }

    /// Updates this with a later state.
    fn follow(&mut self, later: &Self) {
        self.sent = later.sent.max(self.sent);
        self.open = later.open.min(self.open);
        self.expired = later.expired.max(self.expired);
    }
}

/// The state of a kill switch's orders at one venue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VenueCancels {
    /// The venue.
    pub venue: String,
    /// Orders that were open when the switch was turned on.
    pub orders: u64,
    /// Cancels that have been sent to the exchange. Without a connection there are none: they are sent when there is
    /// one.
    pub sent: u64,
    /// Orders that the exchange has reported as ended.
    pub confirmed: u64,
    /// Orders that have ended without a message from the exchange: they had not been sent, were too old to be sent
    /// again, or it has begun another session.
    pub expired: u64,
}

impl fmt::Display for VenueCancels {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { venue, orders, sent, confirmed, expired } = self;
        write!(
            formatter,
            "venue {venue}: {orders} orders were open, {sent} cancels are sent, {confirmed} are confirmed"
        )?;
        if *expired > 0 {
            write!(formatter, ", {expired} have expired")?;
        }
        Ok(())
    }
}

/// Why a kill switch failed in part, and the state of the orders anyway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KillError {
    /// The reason, in words.
    pub reason: String,
    /// The cancels, as without an error.
    pub cancels: Vec<VenueCancels>,
}

impl fmt::Display for KillError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.reason)?;
        self.cancels.iter().try_for_each(|venue| write!(formatter, "; {venue}"))
    }
}

impl std::error::Error for KillError {}

impl From<String> for KillError {
    fn from(reason: String) -> Self {
        Self { reason, cancels: Vec::new() }
    }
}

impl GatewayControl {
    /// Stops an account, or all accounts, or releases them. Stopping cancels open orders; returns the progress of
    /// that by venue, if there were any. Waits at most one second for exchanges, and five for the journal.
    ///
    /// # Errors
    /// If there is no such account, or the change cannot be journaled.
    pub fn kill(&self, account: Option<&str>, on: bool) -> Result<Vec<VenueCancels>, KillError> {
        let id = account.map(|name| self.account(name)).transpose()?;
        let change = Change::Kill { account: account.map(str::to_owned), on };
        if !on {
            self.shared.commander.change(id, &change)?;
            return Ok(Vec::new());
        }
        let (cancels, outcome) = self.shared.commander.engage(id, &change);
        let named = self.shared.common.venues.iter().zip(cancels).filter(|(_, cancels)| cancels.orders > 0);
        let cancels = named
            .map(|(venue, Cancels { orders, sent, open, expired })| VenueCancels {
                venue: venue.clone(),
                orders,
                sent,
                confirmed: orders.saturating_sub(open + expired),
                expired,
            })
            .collect();
        match outcome {
            Ok(()) => Ok(cancels),
            Err(reason) => Err(KillError { reason, cancels }),
        }
    }

    /// Engaged kill switches: accounts, and `*` for the switch of all accounts.
    pub fn killed(&self) -> Vec<String> {
        let switches = self.shared.commander.controls().switches.clone();
        let name =
            |account: Option<AccountId>| account.map_or("*".to_owned(), |account| self.name_of(account));
        switches.on().map(name).collect()
    }
}

/// Which kill switches are on; `*` stands for all accounts. `None`: no switch is on.
pub(super) fn killed_line(killed: &[String]) -> Option<String> {
    let whom = match killed {
        [] => return None,
        [all, ..] if all == "*" => "all accounts".to_owned(),
        [one] => format!("account {one}"),
        names => {
            let named = names.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
            match names.len().saturating_sub(NAMED_MAX) {
                0 => format!("accounts {named}"),
                more => format!("accounts {named} and {more} more"),
            }
        }
    };
    let way_out = match killed {
        [all, ..] if all == "*" => "all",
        [one] => one.as_str(),
        _ => "NAME",
    };
    Some(format!(
        "the kill switch is on for {whom}: new orders are refused; `weir ctl kill {way_out} --off` ends that"
    ))
}

impl Commander {
    /// Engages a kill switch and journals that. The switch takes effect even if the journal fails. Returns, by venue,
    /// the state of the orders within [`CONFIRM_LIMIT`].
    pub(super) fn engage(
        &self,
        account: Option<AccountId>,
        change: &Change,
    ) -> (Vec<Cancels>, Result<(), String>) {
        let payload = match payload_of(change) {
            Ok(payload) => payload,
            Err(error) => return (Vec::new(), Err(error)),
        };
        let (sent, journaled) = {
            let mut releasing = lock(&self.releasing);
            // A release that has not reached this point yet came before.
            releasing.take_if(|switch| *switch == Switch(account));
            let sent = (
                self.send_all(&Command::Kill(account, true)),
                self.send(self.keeper(), Command::Journal(RECORD_CONTROL, payload)),
            );
            // The displayed state is the state that was sent.
            self.controls().apply(account, change, wall_ns());
            sent
        };
        let begun = Instant::now();
        let (mut cancels, followed) = sum(sent, begun + self.patience);
        self.confirm(account, &mut cancels, begun + self.patience.min(CONFIRM_LIMIT));
        let kept = self.journaled(journaled, begun + self.patience);
        let not_kept = |reason| {
            format!("the kill switch is on until the gateway ends, but may be off after a restart: {reason}")
        };
        let outcome = match (followed, kept.map_err(not_kept)) {
            (followed, Ok(())) => followed,
            (Ok(()), Err(error)) => Err(error),
            (Err(first), Err(second)) => Err(format!("{first}; {second}")),
        };
        (cancels, outcome)
    }

    /// Asks all workers until none of these orders is open.
    fn confirm(&self, account: Option<AccountId>, cancels: &mut [Cancels], until: Instant) {
        while cancels.iter().any(|venue| venue.open > 0) && Instant::now() < until {
            thread::sleep(CONFIRM_LOOK);
            let (later, followed) = sum(self.send_all(&Command::Cancels(account)), until);
            if followed.is_err() {
                // A worker that does not answer may still have some open.
                return;
            }
            cancels.iter_mut().zip(&later).for_each(|(venue, later)| venue.follow(later));
        }
    }
}

impl Gateway {
    /// Turns the switch of an account, or of all accounts, on this worker. Returns the state of the cancels by venue.
    pub(super) fn kill(&self, account: Option<AccountId>, is_on: bool) -> Vec<Cancels> {
        self.checks.borrow_mut().kill(account, is_on);
        if !is_on {
            return Vec::new();
        }
        self.cancel_here(account, cancel_reason::SUPERVISORY);
        self.cancels_of(account)
    }

    /// Cancels the open orders of an account in this worker's sessions, because its client is not connected.
    pub(super) fn cancel_of_disconnected(&self, account: AccountId) {
        let count = self.cancel_here(Some(account), cancel_reason::SYSTEM);
        self.store.counters().add_cancels_on_disconnect(count);
    }

    /// Cancels the open orders of an account, or of all, in this worker's sessions. Clients get this reason.
    pub(super) fn cancel_here(&self, account: Option<AccountId>, reason: u8) -> u64 {
        let has_failed = self.has_failed();
        let mut orders = 0;
        for upstream in &self.upstreams {
            orders += upstream.cancel_all(self, account, reason, has_failed);
            // A cancel waits for nothing.
            self.tell_untold(upstream);
        }
        orders
    }

    /// Starts to inform clients of orders that have ended here, and does not wait for that.
    pub(super) fn tell_untold(&self, upstream: &Rc<Upstream>) {
        let Some(gateway) = self.this.upgrade().filter(|_| upstream.has_untold()) else { return };
        let upstream = Rc::clone(upstream);
        self.keep(spawn(async move { gateway.expire(&upstream.untold).await }));
    }

    /// The state of the last cancels of an account's orders, or of all orders, on this worker, by venue.
    pub(super) fn cancels_of(&self, account: Option<AccountId>) -> Vec<Cancels> {
        self.upstreams.iter().map(|upstream| upstream.session.borrow().cancels_of(account)).collect()
    }

    /// Turns on the switches of an earlier start, and cancels the orders that it left open of accounts that are stopped
    /// or cancel on disconnect: its own cancels may have been lost. A client with time to come back has it from now on.
    pub(super) fn kill_again(&self, controls: &Controls, accounts: &[AccountConfig]) {
        let cancels = accounts.iter().zip(0..).filter(|(config, _)| config.cancel_on_disconnect);
        let cancels: BTreeSet<u32> = cancels.map(|(_, account)| account).collect();
        for account in controls.switches.on() {
            self.checks.borrow_mut().kill(account, true);
            if !account.is_some_and(|account| cancels.contains(&account.0)) {
                self.cancel_here(account, cancel_reason::SUPERVISORY);
            }
        }
        for account in cancels.into_iter().map(AccountId) {
            if self.store.account(account).cancel_after().is_zero() {
                self.cancel_of_disconnected(account);
            } else if self.store.home_of(account) == self.worker {
                // It may come back.
                self.note_absent(account);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_who_is_stopped() {
        let line =
            |killed: &[&str]| killed_line(&killed.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(line(&[]), None);
        let all = "the kill switch is on for all accounts: new orders are refused; `weir ctl kill all --off` ends that";
        assert_eq!(line(&["*", "C00001"]).as_deref(), Some(all));
        assert!(
            line(&["C00001"])
                .is_some_and(|line| line.contains("account C00001: ") && line.contains("C00001 --off"))
        );
        let many: Vec<String> = (0..12).map(|number| format!("C{number:05}")).collect();
        let line = killed_line(&many).expect("it is on");
        assert!(line.contains("C00000, C00001") && line.contains("C00009 and 2 more"), "{line}");
    }

    #[test]
    fn the_switch_of_all_accounts_leaves_theirs_alone() {
        let mut switches = Switches::default();
        let (first, second) = (Some(AccountId(0)), Some(AccountId(1)));
        for (account, is_on) in [(second, true), (None, true), (first, true), (first, false)] {
            switches.set(account, is_on);
        }
        assert_eq!(switches.on().collect::<Vec<_>>(), [None, second]);
        switches.set(None, false);
        assert_eq!([None, first, second].map(|account| switches.is_on(account)), [false, false, true]);
        assert_eq!(switches.accounts(), 1);
    }
}
