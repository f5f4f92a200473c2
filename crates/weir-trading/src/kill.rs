//! The kill switch: the accounts that may not trade. It holds no orders; the orders to be cancelled come from
//! [`UpstreamNumbers::open_orders`](crate::UpstreamNumbers::open_orders).

use weir_proto::ouch::reject_reason;

use crate::account::AccountId;

/// The scope of a kill switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillScope {
    /// One account.
    Account(AccountId),
    /// All accounts.
    Everyone,
}

/// The stopped accounts. At most `accounts_max` are known; the switch for all accounts is separate, so releasing it
/// leaves the accounts' own switches unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KillSwitch {
    everyone: bool,
    accounts: Vec<bool>,
}

impl KillSwitch {
    /// No account is stopped.
    pub fn new(accounts_max: usize) -> Self {
        Self { everyone: false, accounts: vec![false; accounts_max] }
    }

    /// Stops (`engaged`) or releases. Returns whether that changed anything; a journal has to store every change, and
    /// replaying the changes after a restart gives the same state.
    pub fn set(&mut self, scope: KillScope, engaged: bool) -> bool {
        let place = match scope {
            KillScope::Everyone => &mut self.everyone,
            KillScope::Account(account) => match self.accounts.get_mut(account.index()) {
                Some(place) => place,
                None => return false,
            },
        };
        std::mem::replace(place, engaged) != engaged
    }

    /// Whether this account is stopped, by its own switch or by the one for all accounts.
    pub fn stops(&self, account: AccountId) -> bool {
        self.everyone || self.accounts.get(account.index()).copied().unwrap_or(false)
    }

    /// Refuses a new order or a replacement from a stopped account. Cancels are never refused.
    pub fn check(&self, account: AccountId) -> Result<(), u16> {
        if self.stops(account) { Err(reject_reason::FIRM_NOT_AUTHORIZED) } else { Ok(()) }
    }

    /// The engaged switches, for display and for a snapshot.
    pub fn engaged(&self) -> impl Iterator<Item = KillScope> + '_ {
        let accounts = self.accounts.iter().zip(0..).filter(|(engaged, _)| **engaged);
        let everyone = self.everyone.then_some(KillScope::Everyone);
        everyone.into_iter().chain(accounts.map(|(_, index)| KillScope::Account(AccountId(index))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_for_everybody_leaves_those_of_accounts_alone() {
        let mut switch = KillSwitch::new(3);
        assert!(switch.set(KillScope::Account(AccountId(1)), true));
        assert!(!switch.set(KillScope::Account(AccountId(1)), true), "no change");
        assert!(switch.set(KillScope::Everyone, true));
        assert!(switch.stops(AccountId(0)) && switch.stops(AccountId(1)));
        let engaged: Vec<_> = switch.engaged().collect();
        assert_eq!(engaged, [KillScope::Everyone, KillScope::Account(AccountId(1))]);

        assert!(switch.set(KillScope::Everyone, false));
        assert_eq!(switch.check(AccountId(0)), Ok(()));
        assert!(switch.check(AccountId(1)).is_err());
    }

    #[test]
    fn an_account_beyond_the_maximum_is_not_stored() {
        let mut switch = KillSwitch::new(1);
        assert!(!switch.set(KillScope::Account(AccountId(1)), true));
        assert!(!switch.stops(AccountId(1)));
    }

    #[test]
    fn replaying_the_changes_gives_the_same_state() {
        let mut switch = KillSwitch::new(4);
        switch.set(KillScope::Account(AccountId(2)), true);
        switch.set(KillScope::Everyone, true);
        let mut again = KillSwitch::new(4);
        for scope in switch.engaged() {
            again.set(scope, true);
        }
        assert_eq!(again, switch);
    }
}
