//! The checks that an order has to pass on its client's worker: the kill switch, the trading day and the limits. Each
//! worker has its own.

use std::sync::Arc;

use weir_proto::ouch::{Inbound, Outbound, reject_reason};
use weir_trading::{
    AccountId, KillScope, KillSwitch, Positions, References, RiskConfig, RiskLimits, RiskState,
};

/// A state for this many accounts, all unknown; with room for this many orders of an earlier start. Workers share the
/// reference prices.
pub(super) fn new_risk(
    accounts: usize,
    orders: usize,
    follows_orders: bool,
    references: &Arc<References>,
) -> RiskState {
    let most = RiskConfig::default();
    let orders_max = orders.max(most.orders_max);
    let config = RiskConfig { accounts_max: accounts, orders_max, follows_orders, ..most };
    RiskState::new(config, Arc::clone(references))
}

/// Most pairs of account and symbol on a worker whose executed shares are counted by symbol: 3.5 MiB.
const POSITIONS_MAX: usize = 1 << 16;

/// The checks of one worker, and what follows the same answers.
pub(super) struct Checks {
    kill: KillSwitch,
    /// No session of the trading day is open.
    is_closed: bool,
    pub(super) risk: RiskState,
    /// Executed shares. Nothing is checked against them.
    pub(super) positions: Positions,
    /// Whether answers are followed: a limit exists, or may be set later.
    pub(super) follows: bool,
}

impl Checks {
    /// Checks without stopped accounts and without limits.
    pub(super) fn new(accounts: usize, risk: RiskState) -> Self {
        // Without a control socket orders are not followed, and nobody could ask for positions.
        let follows = risk.follows_orders();
        let positions = Positions::new(accounts, if follows { POSITIONS_MAX } else { 0 });
        Self { kill: KillSwitch::new(accounts), is_closed: false, follows, risk, positions }
    }

    /// Whether an order may be passed on; the error is the reason.
    #[inline]
    pub(super) fn admit(
        &mut self,
        now_ns: u64,
        account: AccountId,
        message: &Inbound<'_>,
    ) -> Result<(), u16> {
        self.kills(account)?;
        self.risk.check(now_ns, account, message)
    }

    /// Whether an order of this account must not be sent, although another worker has admitted it.
    #[inline]
    pub(super) fn kills(&self, account: AccountId) -> Result<(), u16> {
        self.kill.check(account)?;
        if self.is_closed { Err(reject_reason::HALTED) } else { Ok(()) }
    }

    /// Applies an answer to a client, in the client's numbers.
    pub(super) fn follow(&mut self, account: AccountId, message: &Outbound) {
        let trade = self.risk.follow(account, message);
        match (message, trade) {
            (Outbound::Executed(_), Some(trade)) => {
                self.positions.add(account, trade.symbol, trade.side, trade.shares.into());
            }
            (Outbound::Executed(executed), None) => {
                self.positions.add_unattributed(account, executed.quantity.into());
            }
            (Outbound::BrokenTrade(_), _) => self.positions.add_broken(account, 1),
            _ => {}
        }
    }

    /// Sets the common limits (no account), or those of one account; none: the account has the common limits.
    pub(super) fn set_limits(&mut self, account: Option<AccountId>, limits: Option<RiskLimits>) {
        self.follows |= limits.as_ref().is_some_and(|limits| !limits.is_off());
        match account {
            Some(account) => _ = self.risk.set_account_limits(account, limits),
            None => self.risk.set_limits(limits.unwrap_or_default()),
        }
    }

    /// Refuses orders outside of the sessions of the trading day, or takes them again.
    pub(super) fn close(&mut self, is_closed: bool) {
        self.is_closed = is_closed;
    }

    /// Stops or releases an account, or all accounts.
    pub(super) fn kill(&mut self, account: Option<AccountId>, is_on: bool) {
        self.kill.set(account.map_or(KillScope::Everyone, KillScope::Account), is_on);
    }
}

#[cfg(test)]
mod tests {
    use weir_proto::ouch::{BrokenTrade, ClientOrderId, Executed};
    use weir_trading::Unattributed;

    use super::*;
    use crate::gateway::test_messages::enter;

    #[test]
    fn a_killed_account_is_refused_before_its_limits_are_asked() {
        let mut checks = Checks::new(2, new_risk(2, 0, false, &Arc::new(References::new(1))));
        checks.set_limits(None, Some(RiskLimits { shares_max: Some(10), ..RiskLimits::default() }));
        let (first, second) = (AccountId(0), AccountId(1));
        assert_eq!(checks.admit(0, first, &enter(1, 11)), Err(reject_reason::SHARES_EXCEED_THRESHOLD));
        checks.kill(Some(first), true);
        assert_eq!(checks.admit(0, first, &enter(1, 1)), Err(reject_reason::FIRM_NOT_AUTHORIZED));
        assert_eq!(checks.admit(0, second, &enter(1, 1)), Ok(()));
        checks.kill(None, true);
        assert_eq!(checks.admit(0, second, &enter(1, 1)), Err(reject_reason::FIRM_NOT_AUTHORIZED));
        checks.kill(None, false);
        assert_eq!(checks.admit(0, second, &enter(1, 1)), Ok(()));
        assert_eq!(
            checks.admit(0, first, &enter(1, 1)),
            Err(reject_reason::FIRM_NOT_AUTHORIZED),
            "its own switch is still on"
        );
    }

    #[test]
    fn outside_of_a_session_orders_are_refused_with_their_reason_and_a_stopped_account_with_its_reason() {
        let mut checks = Checks::new(2, new_risk(2, 0, false, &Arc::new(References::new(1))));
        let (first, second) = (AccountId(0), AccountId(1));
        checks.kill(Some(first), true);
        checks.close(true);
        assert_eq!(checks.admit(0, first, &enter(1, 1)), Err(reject_reason::FIRM_NOT_AUTHORIZED));
        assert_eq!(checks.admit(0, second, &enter(1, 1)), Err(reject_reason::HALTED));
        assert_eq!(checks.kills(second), Err(reject_reason::HALTED));
        checks.close(false);
        assert_eq!(checks.admit(0, second, &enter(1, 1)), Ok(()));
        assert_eq!(checks.kills(first), Err(reject_reason::FIRM_NOT_AUTHORIZED), "its switch stays on");
    }

    #[test]
    fn executions_count_for_the_symbol_and_side_of_their_order() {
        let account = AccountId(0);
        let mut checks = Checks::new(1, new_risk(1, 0, true, &Arc::new(References::new(1))));
        assert_eq!(checks.admit(0, account, &enter(1, 100)), Ok(()));
        let mut followed = |message: Outbound| {
            checks.follow(account, &message);
            let position = checks.positions.at(0).map(|position| (position.bought, position.sold));
            (position, checks.positions.unattributed(account))
        };
        let executed = |user_ref_num, quantity| {
            Outbound::Executed(Executed {
                timestamp_ns: 1,
                user_ref_num,
                quantity,
                price: 10_000,
                liquidity: b'A',
                match_number: 1,
            })
        };
        assert_eq!(followed(executed(1, 60)), (Some((60, 0)), Unattributed::default()));
        let rest = Unattributed { shares: 5, ..Unattributed::default() };
        assert_eq!(followed(executed(9, 5)), (Some((60, 0)), rest), "that order is not known");
        let broken = Outbound::BrokenTrade(BrokenTrade {
            timestamp_ns: 1,
            user_ref_num: 1,
            match_number: 1,
            reason: b'S',
            client_order_id: ClientOrderId::BLANK,
        });
        let rest = Unattributed { broken_trades: 1, ..rest };
        assert_eq!(followed(broken), (Some((60, 0)), rest), "how many shares it had is not said");
    }

    #[test]
    fn limits_of_an_account_stand_instead_of_the_common_ones() {
        let mut checks = Checks::new(2, new_risk(2, 0, false, &Arc::new(References::new(1))));
        assert!(!checks.follows);
        let shares = |shares_max| Some(RiskLimits { shares_max: Some(shares_max), ..RiskLimits::default() });
        checks.set_limits(None, shares(10));
        checks.set_limits(Some(AccountId(1)), shares(20));
        assert!(checks.follows);
        assert!(checks.admit(0, AccountId(0), &enter(1, 15)).is_err());
        assert!(checks.admit(0, AccountId(1), &enter(1, 15)).is_ok());
        checks.set_limits(Some(AccountId(1)), None);
        assert!(checks.admit(0, AccountId(1), &enter(2, 15)).is_err(), "it has the common ones again");
    }
}
