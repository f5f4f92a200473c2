//! What processes behind each other counted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What processes behind each other counted over a whole trial, read when nothing was on its way any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ChainTotals {
    /// Data messages the gateway received, from clients and from the exchange.
    pub gateway_received: u64,
    /// Data messages the gateway sent, to both sides.
    pub gateway_sent: u64,
    /// Orders of clients among those it received.
    pub gateway_orders: u64,
    /// Commits of its journal; zero where it keeps none.
    #[serde(default)]
    pub gateway_commits: u64,
    /// Data messages the exchange received.
    pub exchange_received: u64,
    /// Orders among these.
    pub exchange_orders: u64,
    /// Data messages the exchange sent.
    pub exchange_sent: u64,
    /// Sessions of clients. Each may have asked once for its next number when it began; the gateway itself answers.
    pub sessions: u32,
}

impl ChainTotals {
    /// Whether every order went out once and came back once: without questions about numbers, the gateway then received
    /// exactly twice what the exchange did.
    pub fn is_whole(&self) -> bool {
        let asked_upstream = self.exchange_received.saturating_sub(self.exchange_orders);
        let replies = self.exchange_sent.saturating_sub(asked_upstream);
        let asked = self.gateway_received.checked_sub(self.gateway_orders + self.exchange_sent);
        let is_known = asked.is_some_and(|asked| asked == 0 || asked == u64::from(self.sessions));
        is_known
            && replies > 0
            && self.gateway_orders == self.exchange_orders
            && replies == self.exchange_orders
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_whole_when_every_order_came_back_once() {
        let whole = ChainTotals {
            gateway_received: 200,
            gateway_orders: 100,
            exchange_received: 100,
            exchange_orders: 100,
            exchange_sent: 100,
            sessions: 10,
            ..ChainTotals::default()
        };
        assert!(whole.is_whole());
        for received in [199, 201, 209] {
            assert!(!ChainTotals { gateway_received: received, ..whole }.is_whole(), "{received}");
        }
        assert!(!ChainTotals { exchange_orders: 99, ..whole }.is_whole());
        // Ten clients asked the gateway for their numbers, and two workers the exchange for theirs.
        let asked =
            ChainTotals { gateway_received: 212, exchange_received: 102, exchange_sent: 102, ..whole };
        assert!(asked.is_whole());
        assert!(!ChainTotals { gateway_received: 211, ..asked }.is_whole(), "a reply was lost");
        assert!(!ChainTotals::default().is_whole(), "nothing was sent");
    }
}
