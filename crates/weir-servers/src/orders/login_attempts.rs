//! Logins with wrong passwords: they slow down, and then lock for a time. Pure, apart from the lock that workers share;
//! time is an argument.
//!
//! Attempts are counted by account and address together, so that nobody locks an account for its own client by trying
//! from elsewhere; and by address alone, at [`ADDRESS_FACTOR`] times the counts, for one that tries many accounts, also
//! such that do not exist. An attacker with many addresses is slowed by neither: passwords have to be good.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use weir_proto::client::counted_as;
use weir_trading::AccountId;

/// Wrong passwords that cost nothing.
const FREE: u32 = 3;
/// The gap between two attempts after the first wrong password that costs something. It doubles with each further one.
const GAP_FIRST_NS: u64 = 500_000_000;
const GAP_MAX_NS: u64 = 4_000_000_000;
/// Attempts are forgotten when there was no wrong password for this long.
const FORGET_NS: u64 = 15 * 60 * 1_000_000_000;
/// How many times as many wrong passwords an address has as one account of it.
const ADDRESS_FACTOR: u32 = 10;
/// Most pairs and addresses that are remembered. With one more, the one that was wrong the longest ago is forgotten.
const REMEMBERED_MAX: usize = 4096;

/// When logins are locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginLimits {
    /// Wrong passwords of an account from one address in a row, after which its logins from there are locked; 0: they
    /// are neither slowed nor locked.
    pub failures_max: u32,
    /// How long.
    pub lock: Duration,
}

impl LoginLimits {
    /// Nothing is slowed or locked.
    pub const OFF: Self = Self { failures_max: 0, lock: Duration::ZERO };
}

impl Default for LoginLimits {
    fn default() -> Self {
        Self { failures_max: 10, lock: Duration::from_secs(300) }
    }
}

/// Whether a password is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admitted {
    /// At this time.
    At(u64),
    /// Not within the time that the login may take.
    TooLate,
    /// Not at all.
    Locked,
}

/// What is counted: an account from an address, or an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    address: Option<IpAddr>,
    account: Option<AccountId>,
}

/// A lock, for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginLock {
    /// The account; `None`: every account.
    pub account: Option<AccountId>,
    /// The address that it is locked for: an IPv6 address stands for its /64 network. `None`: connections without one.
    pub address: Option<IpAddr>,
    /// How much longer.
    pub left: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Attempts {
    failures: u32,
    last_ns: u64,
    /// When the next one is verified.
    next_ns: u64,
    locked_until_ns: u64,
}

impl Attempts {
    /// Wrong passwords that count, in units of one account's.
    fn weight(&self, key: Key) -> u32 {
        if key.account.is_some() { self.failures } else { self.failures / ADDRESS_FACTOR }
    }

    fn gap_ns(&self, key: Key) -> u64 {
        match self.weight(key).checked_sub(FREE) {
            None => 0,
            Some(more) => GAP_FIRST_NS.saturating_mul(1 << more.min(16)).min(GAP_MAX_NS),
        }
    }

    /// What a time has done: an expired lock leaves the attempts slow, and a long pause ends them.
    fn at(self, now_ns: u64, key: Key) -> Self {
        if self.locked_until_ns > now_ns {
            return self;
        }
        if now_ns.saturating_sub(self.last_ns.max(self.locked_until_ns)) >= FORGET_NS {
            return Self::default();
        }
        if self.locked_until_ns == 0 {
            return self;
        }
        let free = if key.account.is_some() { FREE } else { FREE * ADDRESS_FACTOR };
        Self { failures: free, locked_until_ns: 0, ..self }
    }
}

/// The attempts of all workers' connections.
#[derive(Debug)]
pub(super) struct LoginAttempts {
    limits: LoginLimits,
    all: Mutex<BTreeMap<Key, Attempts>>,
}

impl LoginAttempts {
    pub(super) fn new(limits: LoginLimits) -> Self {
        Self { limits, all: Mutex::default() }
    }

    /// Whether and when a login is verified, which has to be before `until_ns`. Each attempt that is admitted moves the
    /// next one. One that would be too late moves none: otherwise a client that tries again and again would push its
    /// next chance away, also when it has the right password by then.
    pub(super) fn admit(
        &self,
        address: Option<IpAddr>,
        account: Option<AccountId>,
        (now_ns, until_ns): (u64, u64),
    ) -> Admitted {
        let mut all = self.lock();
        if all.is_empty() {
            return Admitted::At(now_ns);
        }
        let known: Vec<(Key, Attempts)> =
            keys(address, account).filter_map(|key| Some((key, all.get(&key)?.at(now_ns, key)))).collect();
        if known.iter().any(|(_, attempts)| attempts.locked_until_ns > now_ns) {
            return Admitted::Locked;
        }
        let slow = |(key, attempts): &&(Key, Attempts)| attempts.gap_ns(*key) > 0;
        let start_ns = known.iter().filter(slow).map(|(_, attempts)| attempts.next_ns).max();
        let start_ns = start_ns.unwrap_or(0).max(now_ns);
        if start_ns >= until_ns {
            return Admitted::TooLate;
        }
        for (key, attempts) in known {
            let next_ns = start_ns.saturating_add(attempts.gap_ns(key));
            all.insert(key, Attempts { next_ns, ..attempts });
        }
        Admitted::At(start_ns)
    }

    /// The password was wrong. Returns whether something is locked from now on.
    pub(super) fn failed(&self, address: Option<IpAddr>, account: Option<AccountId>, now_ns: u64) -> bool {
        if self.limits.failures_max == 0 {
            return false;
        }
        let mut all = self.lock();
        let mut is_locked = false;
        for key in keys(address, account) {
            let mut attempts = all.get(&key).copied().unwrap_or_default().at(now_ns, key);
            attempts.failures = attempts.failures.saturating_add(1);
            attempts.last_ns = now_ns;
            attempts.next_ns = attempts.next_ns.max(now_ns.saturating_add(attempts.gap_ns(key)));
            if attempts.locked_until_ns == 0 && attempts.weight(key) >= self.limits.failures_max {
                let lock_ns = u64::try_from(self.limits.lock.as_nanos()).unwrap_or(u64::MAX);
                attempts.locked_until_ns = now_ns.saturating_add(lock_ns);
                is_locked = true;
            }
            if all.len() >= REMEMBERED_MAX && !all.contains_key(&key) {
                let oldest = all.iter().min_by_key(|(_, attempts)| attempts.last_ns).map(|(key, _)| *key);
                oldest.map(|oldest| all.remove(&oldest));
            }
            all.insert(key, attempts);
        }
        is_locked
    }

    /// The password was right: the account's attempts from this address are forgotten, those of the address are not.
    pub(super) fn succeeded(&self, address: Option<IpAddr>, account: AccountId) {
        let mut all = self.lock();
        if !all.is_empty() {
            all.remove(&Key { address: address.map(counted_as), account: Some(account) });
        }
    }

    /// The locks in force.
    pub(super) fn locks(&self, now_ns: u64) -> Vec<LoginLock> {
        let lock = |(key, attempts): (&Key, &Attempts)| {
            let left_ns = attempts.locked_until_ns.checked_sub(now_ns).filter(|left| *left > 0)?;
            let Key { address, account } = *key;
            Some(LoginLock { account, address, left: Duration::from_nanos(left_ns) })
        };
        self.lock().iter().filter_map(lock).collect()
    }

    /// Forgets the attempts that `is_asked` selects by account and address. Returns how many of them were locked.
    pub(super) fn unlock(
        &self,
        now_ns: u64,
        is_asked: impl Fn(Option<AccountId>, Option<IpAddr>) -> bool,
    ) -> usize {
        let mut count = 0;
        self.lock().retain(|key, attempts| {
            let is_kept = !is_asked(key.account, key.address);
            count += usize::from(!is_kept && attempts.locked_until_ns > now_ns);
            is_kept
        });
        count
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Attempts>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an attempt counts for.
fn keys(address: Option<IpAddr>, account: Option<AccountId>) -> impl Iterator<Item = Key> {
    let address = address.map(counted_as);
    let of_account = account.map(|account| Key { address, account: Some(account) });
    let of_address = address.map(|address| Key { address: Some(address), account: None });
    of_account.into_iter().chain(of_address)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;
    const ACCOUNT: Option<AccountId> = Some(AccountId(1));
    const OTHER: Option<AccountId> = Some(AccountId(2));

    fn address(last: u8) -> Option<IpAddr> {
        Some([10, 0, 0, last].into())
    }

    fn attempts() -> LoginAttempts {
        LoginAttempts::new(LoginLimits::default())
    }

    /// As for a login that may take any time.
    fn admit(all: &LoginAttempts, from: Option<IpAddr>, account: Option<AccountId>, now_ns: u64) -> Admitted {
        all.admit(from, account, (now_ns, u64::MAX))
    }

    /// Fails at once, this often, whenever it is admitted. Returns when the last one was verified.
    fn fail(all: &LoginAttempts, from: Option<IpAddr>, account: Option<AccountId>, count: u32) -> u64 {
        let mut now_ns = SECOND_NS;
        for number in 1..=count {
            match admit(all, from, account, now_ns) {
                Admitted::At(at_ns) => now_ns = at_ns,
                Admitted::TooLate => panic!("attempt {number} is too late"),
                Admitted::Locked => panic!("attempt {number} is locked"),
            }
            all.failed(from, account, now_ns);
        }
        now_ns
    }

    #[test]
    fn wrong_passwords_slow_down_and_then_lock_the_account_from_that_address_alone() {
        let all = attempts();
        assert_eq!(fail(&all, address(1), ACCOUNT, FREE), SECOND_NS, "some are free");
        let gaps: Vec<u64> = (0..3)
            .map(|_| {
                let Admitted::At(first) = admit(&all, address(1), ACCOUNT, SECOND_NS) else {
                    panic!("locked")
                };
                first
            })
            .collect();
        assert_eq!(gaps, [1.5, 2.0, 2.5].map(|seconds| (seconds * 1e9) as u64), "at once they stand in line");
        let all = attempts();
        let last_ns = fail(&all, address(1), ACCOUNT, 10);
        assert_eq!(last_ns, SECOND_NS + (500 + 1000 + 2000 + 4 * 4000) * 1_000_000);
        assert_eq!(admit(&all, address(1), ACCOUNT, last_ns), Admitted::Locked);
        assert_eq!(
            admit(&all, address(2), ACCOUNT, last_ns),
            Admitted::At(last_ns),
            "its own client gets in"
        );
        assert_eq!(admit(&all, address(1), OTHER, last_ns), Admitted::At(last_ns));
        let left = Duration::from_secs(300);
        assert_eq!(all.locks(last_ns), [LoginLock { account: ACCOUNT, address: address(1), left }]);
        let later_ns = last_ns + 300 * SECOND_NS;
        assert!(matches!(admit(&all, address(1), ACCOUNT, later_ns), Admitted::At(_)));
        assert!(all.locks(later_ns).is_empty());
    }

    #[test]
    fn attempts_that_are_too_late_push_the_next_one_no_further_away() {
        let all = attempts();
        let last_ns = fail(&all, address(1), ACCOUNT, 9);
        let limit_ns = 5 * SECOND_NS;
        let mut outcomes = (0..1_000).map(|_| all.admit(address(1), ACCOUNT, (last_ns, last_ns + limit_ns)));
        assert_eq!(outcomes.next(), Some(Admitted::At(last_ns + GAP_MAX_NS)));
        assert!(outcomes.all(|outcome| outcome == Admitted::TooLate));
        // Its client has the right password now.
        let later_ns = last_ns + GAP_MAX_NS;
        let at_ns = last_ns + 2 * GAP_MAX_NS;
        assert_eq!(all.admit(address(1), ACCOUNT, (later_ns, later_ns + limit_ns)), Admitted::At(at_ns));
    }

    #[test]
    fn an_address_that_tries_many_accounts_is_locked_as_a_whole() {
        let all = attempts();
        let mut now_ns = SECOND_NS;
        let mut is_locked = false;
        for account in 0..100 {
            // Some of them do not exist.
            let account = (account % 2 == 0).then_some(AccountId(account));
            is_locked = all.failed(address(1), account, now_ns);
            now_ns += 1;
        }
        assert!(is_locked);
        assert_eq!(admit(&all, address(1), Some(AccountId(1_000)), now_ns), Admitted::Locked);
        assert_eq!(admit(&all, address(2), None, now_ns), Admitted::At(now_ns));
    }

    #[test]
    fn a_right_password_a_pause_and_an_operator_forget_the_wrong_ones() {
        let all = attempts();
        fail(&all, address(1), ACCOUNT, 9);
        all.succeeded(address(1), AccountId(1));
        assert!(!all.failed(address(1), ACCOUNT, SECOND_NS), "it begins again");
        let all = attempts();
        let last_ns = fail(&all, address(1), ACCOUNT, 9);
        assert!(!all.failed(address(1), ACCOUNT, last_ns + FORGET_NS));
        let all = attempts();
        let last_ns = fail(&all, address(1), ACCOUNT, 10);
        assert_eq!(all.unlock(last_ns, |account, _| account == OTHER), 0);
        assert_eq!(all.unlock(last_ns, |account, _| account == ACCOUNT), 1);
        assert_eq!(admit(&all, address(1), ACCOUNT, last_ns), Admitted::At(last_ns));
    }

    #[test]
    fn no_more_are_remembered_than_may_be_and_nothing_is_locked_if_that_is_off() {
        let all = attempts();
        for number in 0..REMEMBERED_MAX as u32 + 10 {
            all.failed(None, Some(AccountId(number)), u64::from(number));
        }
        assert_eq!(all.lock().len(), REMEMBERED_MAX);
        assert!(!all.lock().contains_key(&Key { address: None, account: Some(AccountId(0)) }));
        let off = LoginAttempts::new(LoginLimits::OFF);
        assert!((0..1_000).all(|_| !off.failed(address(1), ACCOUNT, SECOND_NS)));
        assert_eq!(admit(&off, address(1), ACCOUNT, SECOND_NS), Admitted::At(SECOND_NS));
    }
}
