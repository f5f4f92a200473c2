//! Why an account is not logged in: how its last connection ended, or why its last login was refused. For operators,
//! so behind a lock: a connection takes it at its end only.

use std::{
    collections::BTreeMap,
    fmt,
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
};

use weir_trading::AccountId;

/// What happened last to a connection of an account, or to one that wanted to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastEnding {
    /// The client closed it or logged out.
    Closed,
    /// The client broke the protocol; the kind, as in the counters.
    Broken(&'static str),
    /// The client was silent for too long.
    Silent,
    /// Another connection of the account logged in.
    TakenOver,
    /// The client did not take what was sent.
    Slow,
    /// The client sent many times its rate.
    Flooding,
    /// The account was removed from the configuration.
    Removed,
    /// An operator ended it.
    Operator,
    /// The journal has failed.
    JournalFailed,
    /// The server drained.
    Drained,
    /// A login was refused; the label, as in the counters.
    Refused(&'static str),
}

impl fmt::Display for LastEnding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Closed => "its client closed the connection",
            Self::Broken(kind) => return write!(formatter, "its client broke the protocol: {kind}"),
            Self::Silent => "its client was silent",
            Self::TakenOver => "another connection took its place and has ended",
            Self::Slow => "its client did not take what was sent",
            Self::Flooding => "its client sent ten times its rate",
            Self::Removed => "the account was removed from the configuration",
            Self::Operator => "an operator ended it",
            Self::JournalFailed => "the journal has failed",
            Self::Drained => "the server drains",
            Self::Refused(label) => return write!(formatter, "the login was refused: {}", in_words(label)),
        };
        formatter.write_str(text)
    }
}

/// The label of a login with a wrong password, or of an unknown account.
pub(super) const NOT_AUTHORISED: &str = "not_authorised";
/// The label of a login that was not verified after too many wrong passwords, and of one that had to wait too long.
pub(super) const LOCKED: &str = "locked";
pub(super) const THROTTLED: &str = "throttled";

/// A refused login in words.
pub(super) fn in_words(label: &str) -> &str {
    match label {
        NOT_AUTHORISED => "wrong password",
        LOCKED => "too many wrong passwords: it is locked for a time",
        THROTTLED => "too many wrong passwords: it would have to wait for too long",
        "occupied" => "another connection was logged in",
        "other_session" => "the client asked for another session",
        "sequence_too_high" => "the client asked for messages that there are not yet",
        "sequence_gone" => "the client asked for messages that are gone",
        "closed" => "the server drains, or its journal has failed",
        "home_busy" => "too many connections were on their way to its worker",
        "verifier_busy" => "too many logins waited",
        "verification_late" => "the password was not checked in time",
        other => other,
    }
}

/// One account that is not logged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// What happened.
    pub what: LastEnding,
    /// When, in nanoseconds since 1970.
    pub at_ns: u64,
    /// The address of the connection, if it has an Internet address.
    pub address: Option<IpAddr>,
}

/// The last ending of each account: at most as many as there are accounts.
#[derive(Debug, Default)]
pub(super) struct LastEndings(Mutex<BTreeMap<AccountId, Ended>>);

impl LastEndings {
    pub(super) fn note(&self, account: AccountId, ended: Ended) {
        self.lock().insert(account, ended);
    }

    /// Those of accounts from this one on that `is_asked` selects, and at most so many.
    pub(super) fn list(
        &self,
        from: AccountId,
        count_max: usize,
        is_asked: impl Fn(AccountId) -> bool,
    ) -> Vec<(AccountId, Ended)> {
        let all = self.lock();
        let asked = all.range(from..).filter(|(account, _)| is_asked(**account));
        asked.take(count_max).map(|(account, ended)| (*account, *ended)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AccountId, Ended>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ending_of_an_account_counts_and_the_list_is_bounded() {
        let endings = LastEndings::default();
        let ended = |what, at_ns| Ended { what, at_ns, address: None };
        endings.note(AccountId(1), ended(LastEnding::Silent, 1));
        endings.note(AccountId(1), ended(LastEnding::Refused("not_authorised"), 2));
        (2..5).for_each(|account| endings.note(AccountId(account), ended(LastEnding::Closed, 3)));
        let list = |from, most| endings.list(AccountId(from), most, |account| account != AccountId(3));
        let accounts = |list: Vec<(AccountId, Ended)>| -> Vec<u32> {
            list.into_iter().map(|(account, _)| account.0).collect()
        };
        assert_eq!(accounts(list(0, 10)), [1, 2, 4]);
        assert_eq!(accounts(list(2, 1)), [2]);
        let (_, last) = list(0, 1)[0];
        assert_eq!((last.at_ns, last.what.to_string()), (2, "the login was refused: wrong password".into()));
    }
}
