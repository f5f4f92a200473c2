//! Clients that are not connected and cancel on disconnect: their orders are cancelled at once, or after the time that
//! their account gives them to come back. A login within it keeps the orders, also that of a second connection that
//! takes the first one's place. A drain gives no time.
//!
//! An account has at most one task that waits, however often its client leaves and comes back meanwhile.

use std::{cell::RefCell, collections::BTreeMap};

use weir_engine::{
    spawn,
    time::{self, Instant},
};
use weir_trading::AccountId;

use super::{
    worker::Gateway,
    worker_message::{Kind, WorkerMessage},
};

/// The accounts that have a waiting task, by number: until when; none if the client is back. At most as many as the
/// worker has accounts.
#[derive(Debug, Default)]
pub(super) struct Absences(RefCell<BTreeMap<u32, Option<Instant>>>);

impl Absences {
    /// The client is away until then at least. True: no task waits for it yet.
    fn begin(&self, account: AccountId, until: Instant) -> bool {
        self.0.borrow_mut().insert(account.0, Some(until)).is_none()
    }

    /// The client is back.
    fn end(&self, account: AccountId) {
        if let Some(until) = self.0.borrow_mut().get_mut(&account.0) {
            *until = None;
        }
    }

    /// What the task of an account does at this time.
    fn next(&self, account: AccountId, now: Instant) -> Next {
        let mut all = self.0.borrow_mut();
        match all.get(&account.0).copied().flatten() {
            Some(until) if now < until => Next::Wait(until),
            of_account => {
                all.remove(&account.0);
                if of_account.is_some() { Next::Cancel } else { Next::Leave }
            }
        }
    }
}

/// What a waiting task does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// It waits until then.
    Wait(Instant),
    /// Nothing: the client is back.
    Leave,
    /// The time is over.
    Cancel,
}

impl Gateway {
    /// The client of an account that cancels on disconnect has left, or has not come since the start.
    pub(super) fn note_absent(&self, account: AccountId) {
        let after = self.store.account(account).cancel_after();
        if after.is_zero() {
            return self.cancel_at_workers(account);
        }
        let Some(gateway) = self.this.upgrade() else { return };
        if self.absences.begin(account, time::now() + after) {
            self.keep(spawn(async move {
                loop {
                    match gateway.absences.next(account, time::now()) {
                        Next::Wait(until) => time::sleep_until(until).await,
                        Next::Leave => return,
                        Next::Cancel => return gateway.cancel_at_workers(account),
                    }
                }
            }));
        }
    }

    /// The client of an account has logged in.
    pub(super) fn note_present(&self, account: AccountId) {
        self.absences.end(account);
    }

    /// Cancels the open orders of an account at every worker that has some, unless a reload has ended that wish.
    fn cancel_at_workers(&self, account: AccountId) {
        if !self.store.account(account).cancel_on_disconnect() {
            return;
        }
        for sender in self.workers_of(account) {
            if sender == self.worker {
                self.cancel_of_disconnected(account);
            } else {
                self.push(sender, WorkerMessage::bare(Kind::CancelAll, account.0));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use super::*;
    use crate::{gateway::config::parse, orders::demo_accounts};

    /// How long the only account of a file gives its client; otherwise the error.
    fn after(keys: &str) -> Result<Duration, String> {
        let account = &demo_accounts(1)[0];
        let text = format!(
            "[[venue]]\nname = \"X\"\naddress = \"127.0.0.1:1\"\nusername_prefix = \"G\"\npassword = \"DEMO\"\n\
             [[account]]\nname = \"{}\"\npassword_hash = \"{}\"\n{keys}",
            account.name, account.password_hash
        );
        let read = parse(Path::new("g"), &text, &|_| None);
        read.map(|(config, _)| config.accounts[0].cancel_after).map_err(|errors| errors.to_string())
    }

    #[test]
    fn an_account_gives_up_to_ten_minutes_and_only_if_it_cancels_on_disconnect() {
        let wishes = "cancel_on_disconnect = true\n";
        assert_eq!(after(wishes), Ok(Duration::ZERO));
        let with = |seconds: u64| after(&format!("{wishes}cancel_on_disconnect_after_s = {seconds}\n"));
        assert_eq!((with(0), with(600)), (Ok(Duration::ZERO), Ok(Duration::from_secs(600))));
        let error = with(601).expect_err("it is too long");
        assert_eq!(error, "g:10: cancel_on_disconnect_after_s: 601 must be from 0 to 600");
        let error = after("cancel_on_disconnect_after_s = 5\n").expect_err("it has no effect");
        assert_eq!(error, "g:9: cancel_on_disconnect_after_s needs cancel_on_disconnect = true");
    }

    #[test]
    fn an_account_has_one_task_which_cancels_only_when_the_last_absence_is_over() {
        let (absences, account) = (Absences::default(), AccountId(3));
        let at = Instant::from_nanos;
        assert_eq!(absences.next(account, at(0)), Next::Leave);
        assert!(absences.begin(account, at(10)));
        assert_eq!(absences.next(account, at(9)), Next::Wait(at(10)));
        // It comes back and leaves again before the task has looked.
        absences.end(account);
        assert!(!absences.begin(account, at(15)), "a task waits");
        assert_eq!(absences.next(account, at(10)), Next::Wait(at(15)));
        absences.end(account);
        assert_eq!(absences.next(account, at(15)), Next::Leave);
        assert!(absences.begin(account, at(20)), "that task has ended");
        assert_eq!(absences.next(account, at(20)), Next::Cancel);
        absences.end(account);
        assert!(absences.begin(account, at(30)));
    }
}
