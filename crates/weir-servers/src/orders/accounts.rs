//! The accounts of a server, in places with fixed numbers. A configuration that is read again may change everything
//! but the name of an account, and may fill empty places. There are no locks in the path of orders.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use foldhash::HashMap;
use weir_proto::soup::Name;
use weir_trading::AccountId;

use super::{AccountConfig, password_verifier};

/// One account, or an empty place.
#[derive(Debug, Default)]
pub struct AccountPlace {
    name: OnceLock<Name<6>>,
    /// Empty: it has no login.
    password_hash: Mutex<Arc<str>>,
    cancel_on_disconnect: AtomicBool,
    cancel_after_s: AtomicU64,
    takeover: AtomicBool,
}

impl AccountPlace {
    /// Its login name; blank in an empty place.
    #[inline]
    pub fn name(&self) -> Name<6> {
        self.name.get().copied().unwrap_or_default()
    }

    /// See [`AccountConfig::cancel_on_disconnect`].
    #[inline]
    pub fn cancel_on_disconnect(&self) -> bool {
        self.cancel_on_disconnect.load(Ordering::Relaxed)
    }

    /// See [`AccountConfig::cancel_after`]; in whole seconds.
    pub fn cancel_after(&self) -> Duration {
        Duration::from_secs(self.cancel_after_s.load(Ordering::Relaxed))
    }

    /// See [`AccountConfig::takeover`].
    pub(super) fn takeover(&self) -> bool {
        self.takeover.load(Ordering::Relaxed)
    }

    /// See [`AccountConfig::password_hash`].
    pub(super) fn password_hash(&self) -> Arc<str> {
        Arc::clone(&self.hash())
    }

    /// Whether a login is possible at all.
    pub(super) fn has_login(&self) -> bool {
        !self.hash().is_empty()
    }

    fn hash(&self) -> MutexGuard<'_, Arc<str>> {
        self.password_hash.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, config: &AccountConfig) {
        self.name.get_or_init(|| config.name);
        *self.hash() = Arc::clone(&config.password_hash);
        self.cancel_on_disconnect.store(config.cancel_on_disconnect, Ordering::Relaxed);
        self.cancel_after_s.store(config.cancel_after.as_secs(), Ordering::Relaxed);
        self.takeover.store(config.takeover, Ordering::Relaxed);
    }
}

/// All accounts.
#[derive(Debug)]
pub(super) struct Accounts {
    places: Box<[AccountPlace]>,
    names: RwLock<HashMap<Name<6>, AccountId>>,
    /// The first place that is still empty.
    next: AtomicUsize,
    /// The hash that the passwords for unknown names are verified against.
    of_nobody: Arc<str>,
}

impl Accounts {
    /// The configured accounts in the first places, and this many empty ones behind the first `used` places. If two
    /// have the same name, the first one counts.
    pub(super) fn new(configured: &[AccountConfig], used: usize, empty: usize) -> Self {
        let next = configured.len().max(used);
        let mut places = Vec::new();
        places.resize_with(next + empty, AccountPlace::default);
        let mut names = HashMap::default();
        for ((config, place), index) in configured.iter().zip(&places).zip(0..) {
            place.set(config);
            names.entry(config.name.folded()).or_insert(AccountId(index));
        }
        let of_nobody = configured
            .iter()
            .map(|config| &config.password_hash)
            .find(|hash| !hash.is_empty())
            .map_or_else(password_verifier::demo_hash, Arc::clone);
        Self { places: places.into(), names: RwLock::new(names), next: AtomicUsize::new(next), of_nobody }
    }

    /// The number of places.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    #[inline]
    pub(super) fn at(&self, account: AccountId) -> &AccountPlace {
        &self.places[account.0 as usize]
    }

    /// The account with this login name, case-insensitive.
    pub(super) fn named(&self, name: &Name<6>) -> Option<AccountId> {
        self.names.read().unwrap_or_else(PoisonError::into_inner).get(&name.folded()).copied()
    }

    /// The hash for a login with this name. An unknown name takes as long as a known one.
    pub(super) fn hash_for(&self, account: Option<AccountId>) -> Arc<str> {
        let own = account.map(|account| self.at(account).password_hash()).filter(|hash| !hash.is_empty());
        own.unwrap_or_else(|| Arc::clone(&self.of_nobody))
    }

    /// The number that the next new account gets, and how many may follow from there on.
    pub(super) fn empty(&self) -> (AccountId, usize) {
        let next = self.next.load(Ordering::Relaxed);
        (AccountId(next as u32), self.places.len() - next)
    }

    /// Changes an account, from its next login on.
    pub(super) fn change(&self, account: AccountId, config: &AccountConfig) {
        self.at(account).set(config);
    }

    /// Adds an account. `None`: there is no empty place, or the name is not new.
    pub(super) fn add(&self, config: &AccountConfig) -> Option<AccountId> {
        let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        let (account, left) = self.empty();
        if left == 0 || names.contains_key(&config.name.folded()) {
            return None;
        }
        self.at(account).set(config);
        self.next.store(account.0 as usize + 1, Ordering::Relaxed);
        names.insert(config.name.folded(), account);
        Some(account)
    }

    /// Takes the login of an account away. It keeps its place, so that it can come back.
    pub(super) fn close(&self, account: AccountId) {
        *self.at(account).hash() = "".into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(name: &str, hash: &str) -> AccountConfig {
        AccountConfig {
            name: name.parse().expect("a name"),
            password_hash: hash.into(),
            cancel_on_disconnect: true,
            cancel_after: Duration::from_secs(5),
            takeover: false,
        }
    }

    #[test]
    fn empty_places_are_filled_once_and_an_account_that_left_keeps_its_own() {
        let accounts = Accounts::new(&[account("A", "a"), account("B", "b")], 3, 2);
        assert_eq!((accounts.len(), accounts.empty()), (5, (AccountId(3), 2)));
        assert_eq!(accounts.at(AccountId(2)).name(), Name::default(), "a name of the journal is nobody's");
        assert_eq!(accounts.add(&account("c", "c")), Some(AccountId(3)));
        assert_eq!(accounts.add(&account("C", "c")), None, "it is there");
        assert_eq!(accounts.add(&account("D", "d")), Some(AccountId(4)));
        assert_eq!(accounts.add(&account("E", "e")), None, "there is no room");
        let named = |name: &str| accounts.named(&name.parse().expect("a name"));
        assert_eq!([named("a"), named("C"), named("E")], [Some(AccountId(0)), Some(AccountId(3)), None]);
        accounts.close(AccountId(3));
        assert!(!accounts.at(AccountId(3)).has_login() && named("C") == Some(AccountId(3)));
        assert_eq!(&*accounts.hash_for(Some(AccountId(3))), "a", "as for an unknown name");
        assert_eq!(&*accounts.hash_for(None), "a");
        accounts.change(AccountId(3), &AccountConfig { takeover: true, ..account("C", "new") });
        assert_eq!(&*accounts.hash_for(Some(AccountId(3))), "new");
        assert_eq!(accounts.at(AccountId(3)).cancel_after(), Duration::from_secs(5));
        assert!(accounts.at(AccountId(3)).takeover() && accounts.at(AccountId(3)).cancel_on_disconnect());
    }
}
