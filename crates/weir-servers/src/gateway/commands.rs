//! Changes while the gateway runs: from any thread to every worker, journaled before they are confirmed.

use std::{
    collections::BTreeSet,
    rc::Rc,
    sync::{
        Mutex, MutexGuard, PoisonError,
        mpsc::{SyncSender, sync_channel},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};
use weir_engine::mailbox::{MailboxReceiver, MailboxSender};
use weir_trading::{AccountId, RiskLimits};

use super::{
    application::{Gateway, RECORD_CONTROL},
    limits::Limits,
};

/// Commands that may wait for a worker.
pub(super) const WAITING_MAX: usize = 64;
/// How long a worker may take to confirm.
const PATIENCE: Duration = Duration::from_secs(5);

/// A change as it is journaled: accounts go by their names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Change {
    /// The kill switch of an account, or of everybody.
    Kill { account: Option<String>, on: bool },
    /// The limits of an account, or those of all that have none of their own.
    Limits { account: Option<String>, limits: Limits },
}

/// What is in force.
#[derive(Clone, Debug, Default)]
pub(super) struct Controls {
    pub(super) limits: Limits,
    pub(super) account_limits: Vec<Option<Limits>>,
    pub(super) is_everyone_killed: bool,
    pub(super) killed: BTreeSet<u32>,
}

impl Controls {
    /// Applies a change. `account` is the one the change names.
    pub(super) fn apply(&mut self, account: Option<AccountId>, change: &Change) {
        match (change, account) {
            (Change::Kill { on, .. }, None) => self.is_everyone_killed = *on,
            (Change::Kill { on: true, .. }, Some(account)) => _ = self.killed.insert(account.0),
            (Change::Kill { on: false, .. }, Some(account)) => _ = self.killed.remove(&account.0),
            (Change::Limits { limits, .. }, None) => self.limits = limits.clone(),
            (Change::Limits { limits, .. }, Some(account)) => {
                if let Some(place) = self.account_limits.get_mut(account.0 as usize) {
                    *place = Some(limits.clone());
                }
            }
        }
    }

    /// The limits that count for an account, or for all that have none of their own.
    pub(super) fn limits_of(&self, account: Option<AccountId>) -> &Limits {
        let own = account.and_then(|account| self.account_limits.get(account.0 as usize)?.as_ref());
        own.unwrap_or(&self.limits)
    }
}

/// What a worker is told.
#[derive(Debug)]
pub(super) enum Command {
    /// Write this into the journal.
    Journal(Vec<u8>),
    /// See [`Change::Kill`]; the answer is how many orders are being cancelled.
    Kill(Option<AccountId>, bool),
    /// See [`Change::Limits`].
    Limits(Option<AccountId>, RiskLimits),
}

/// A command, and where its answer goes.
#[derive(Debug)]
pub(super) struct Asked {
    command: Command,
    answer: SyncSender<Result<u64, String>>,
}

/// The other threads' end.
pub(super) struct Commander {
    controls: Mutex<Controls>,
    workers: Vec<MailboxSender<Asked>>,
}

impl Commander {
    pub(super) fn new(controls: Controls, workers: Vec<MailboxSender<Asked>>) -> Self {
        Self { controls: Mutex::new(controls), workers }
    }

    pub(super) fn controls(&self) -> MutexGuard<'_, Controls> {
        self.controls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Journals a change, and then has every worker follow it. One change at a time.
    pub(super) fn change(&self, account: Option<AccountId>, change: &Change) -> Result<u64, String> {
        let resolved = match change {
            Change::Limits { limits, .. } => Some(limits.resolve()?),
            Change::Kill { .. } => None,
        };
        let payload = serde_json::to_vec(change).map_err(|error| error.to_string())?;
        let mut controls = self.controls();
        self.ask(0, Command::Journal(payload))?;
        controls.apply(account, change);
        let mut orders = 0;
        for worker in 0..self.workers.len() {
            orders += self.ask(
                worker,
                match (change, &resolved) {
                    (Change::Kill { on, .. }, _) => Command::Kill(account, *on),
                    (Change::Limits { .. }, limits) => {
                        Command::Limits(account, limits.clone().unwrap_or_default())
                    }
                },
            )?;
        }
        Ok(orders)
    }

    fn ask(&self, worker: usize, command: Command) -> Result<u64, String> {
        let (answer, answered) = sync_channel(1);
        let busy = || format!("worker {worker} does not take commands now");
        self.workers[worker].try_send(Asked { command, answer }).map_err(|_| busy())?;
        answered.recv_timeout(PATIENCE).map_err(|_| busy())?
    }
}

/// Follows commands, for as long as the worker runs.
pub(super) async fn obey(gateway: Rc<Gateway>, mut asked: MailboxReceiver<Asked>) {
    while let Some(Asked { command, answer }) = asked.recv().await {
        let outcome = match command {
            Command::Journal(payload) => {
                let lsn = gateway.hub.log(RECORD_CONTROL, 0, &[&payload]);
                let kept = gateway.is_durable(lsn).await;
                if kept { Ok(0) } else { Err("the journal has failed: the change is not kept".to_owned()) }
            }
            Command::Kill(account, is_on) => {
                gateway.checks.borrow_mut().kill(account, is_on);
                Ok(if is_on { gateway.cancel_killed(account) } else { 0 })
            }
            Command::Limits(account, limits) => {
                gateway.checks.borrow_mut().set_limits(account, limits);
                Ok(0)
            }
        };
        // Who asked has waited long enough; the change holds.
        let _ = answer.try_send(outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_applied_in_order_are_what_is_in_force() {
        let mut controls = Controls { account_limits: vec![None; 2], ..Controls::default() };
        let limits = |shares_max| Limits { shares_max: Some(shares_max), ..Limits::default() };
        let (first, second) = (Some(AccountId(0)), Some(AccountId(1)));
        let name = |account: Option<AccountId>| account.map(|account| account.0.to_string());
        for (account, change) in [
            (None, Change::Limits { account: None, limits: limits(5) }),
            (second, Change::Limits { account: name(second), limits: limits(7) }),
            (first, Change::Kill { account: name(first), on: true }),
            (None, Change::Kill { account: None, on: true }),
            (None, Change::Kill { account: None, on: false }),
        ] {
            let text = serde_json::to_string(&change).expect("it is data");
            assert_eq!(serde_json::from_str::<Change>(&text).expect("it is data"), change);
            controls.apply(account, &change);
        }
        assert_eq!(controls.limits_of(first), &limits(5));
        assert_eq!(controls.limits_of(second), &limits(7));
        assert!(!controls.is_everyone_killed && controls.killed.contains(&0) && controls.killed.len() == 1);
    }
}
