//! Which messages are copied, and to which firms. Pure.

use foldhash::HashMap;
use weir_proto::{
    ouch::{BrokenTrade, CancelReject, Executed, Rejected},
    soup::Name,
};
use weir_trading::AccountId;

use super::FirmConfig;

/// The firms of each account. A firm's number is its position in the configuration.
#[derive(Debug)]
pub(super) struct Firms(HashMap<Name<6>, Vec<AccountId>>);

impl Firms {
    pub(super) fn new(configured: &[FirmConfig]) -> Self {
        let mut by_account: HashMap<Name<6>, Vec<AccountId>> = HashMap::default();
        for (firm, number) in configured.iter().zip(0..) {
            for account in &firm.accounts {
                by_account.entry(account.folded()).or_default().push(AccountId(number));
            }
        }
        Self(by_account)
    }

    /// The firms that get the messages of an account.
    pub(super) fn of(&self, account: &Name<6>) -> &[AccountId] {
        self.0.get(&account.folded()).map_or(&[], |firms| firms)
    }
}

/// Whether a message of an account's stream is copied: an execution, a broken trade, or a refusal.
pub(super) fn is_copied(message: &[u8]) -> bool {
    const COPIED: [u8; 4] = [Executed::KIND, BrokenTrade::KIND, Rejected::KIND, CancelReject::KIND];
    message.first().is_some_and(|kind| COPIED.contains(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn firm(name: &str, accounts: &[&str]) -> FirmConfig {
        FirmConfig {
            name: name.parse().expect("a name"),
            password_hash: "".into(),
            takeover: false,
            accounts: accounts.iter().map(|account| account.parse().expect("a name")).collect(),
        }
    }

    #[test]
    fn an_account_may_have_several_firms_and_case_does_not_matter() {
        let firms = Firms::new(&[firm("F1", &["C1", "C2"]), firm("F2", &["c1"])]);
        let of = |name: &str| firms.of(&name.parse().expect("a name")).to_vec();
        assert_eq!(of("c1"), [AccountId(0), AccountId(1)]);
        assert_eq!(of("C2"), [AccountId(0)]);
        assert!(of("C3").is_empty());
    }

    #[test]
    fn executions_broken_trades_and_refusals_are_copied_and_nothing_else() {
        let copied: Vec<u8> = (0..=u8::MAX).filter(|kind| is_copied(&[*kind, 0])).collect();
        assert_eq!(copied, b"BEIJ");
        assert!(!is_copied(b""));
    }
}
