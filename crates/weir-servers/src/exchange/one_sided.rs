//! Trades of which the journals contain only one side.
//!
//! The workers of both accounts report the sides of a trade, each in its own journal, and a crash or a failed journal
//! may come between. Then one account has an execution, and the other's order is cancelled as if it had not traded.
//! The next start breaks such a trade by the protocol's own message, so that it is void for both.

use std::collections::{BTreeMap, HashMap};

use weir_proto::ouch::{ClientOrderId, Outbound};
use weir_trading::AccountId;

/// A side of a trade that was reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Side {
    pub(super) account: AccountId,
    pub(super) user_ref_num: u32,
    /// Blank if it is no longer known.
    pub(super) client_order_id: ClientOrderId,
}

/// Collects the messages sent to accounts.
#[derive(Clone, Debug, Default)]
pub(super) struct OneSidedTrades {
    /// The client's names of orders, while these are open.
    names: HashMap<(AccountId, u32), ClientOrderId>,
    /// By match number; bounded by how far one journal is read ahead of another.
    sides: BTreeMap<u64, Side>,
}

impl OneSidedTrades {
    /// Records a message to an account.
    pub(super) fn note(&mut self, account: AccountId, message: &Outbound) {
        match message {
            Outbound::Accepted(accepted) => {
                self.names.insert((account, accepted.user_ref_num), accepted.client_order_id);
            }
            Outbound::Replaced(replaced) => {
                self.order_ended(account, replaced.original_user_ref_num);
                self.names.insert((account, replaced.user_ref_num), replaced.client_order_id);
            }
            Outbound::Executed(executed) => {
                let user_ref_num = executed.user_ref_num;
                // The other side, if it was reported.
                if self.sides.remove(&executed.match_number).is_none() {
                    let name = self.names.get(&(account, user_ref_num)).copied();
                    let client_order_id = name.unwrap_or(ClientOrderId([b' '; 14]));
                    self.sides.insert(executed.match_number, Side { account, user_ref_num, client_order_id });
                }
            }
            Outbound::BrokenTrade(broken) => {
                self.sides.remove(&broken.match_number);
            }
            _ => {}
        }
    }

    /// Records that an order has ended.
    pub(super) fn order_ended(&mut self, account: AccountId, number: u32) {
        self.names.remove(&(account, number));
    }

    /// The sides with their match numbers, in order of these.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, Side)> {
        self.sides.iter().map(|(match_number, side)| (*match_number, *side))
    }
}

#[cfg(test)]
mod tests {
    use weir_proto::ouch::{BrokenTrade, Executed};

    use super::*;

    const ONE: AccountId = AccountId(1);
    const OTHER: AccountId = AccountId(2);

    fn executed(user_ref_num: u32, match_number: u64) -> Outbound {
        let (timestamp_ns, quantity, price, liquidity) = (1, 10, 1, b'A');
        Outbound::Executed(Executed { timestamp_ns, user_ref_num, quantity, price, liquidity, match_number })
    }

    fn broken(user_ref_num: u32, match_number: u64) -> Outbound {
        let client_order_id = ClientOrderId([b' '; 14]);
        let (timestamp_ns, reason) = (1, b'S');
        Outbound::BrokenTrade(BrokenTrade {
            timestamp_ns,
            user_ref_num,
            match_number,
            reason,
            client_order_id,
        })
    }

    #[test]
    fn a_trade_has_two_sides_whichever_is_read_first_and_what_is_broken_is_settled() {
        let mut trades = OneSidedTrades::default();
        // 5 and 6 have both sides, 7 has one, and so has 8, which was broken at an earlier start.
        for (account, message) in [
            (ONE, executed(1, 5)),
            (ONE, executed(1, 6)),
            (ONE, executed(2, 7)),
            (OTHER, executed(1, 6)),
            (OTHER, executed(1, 5)),
            (OTHER, executed(3, 8)),
            (OTHER, broken(3, 8)),
        ] {
            trades.note(account, &message);
        }
        let found: Vec<_> =
            trades.iter().map(|(number, side)| (number, side.account, side.user_ref_num)).collect();
        assert_eq!(found, [(7, ONE, 2)]);
    }
}
