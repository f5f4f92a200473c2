//! What a study of the order gateway concluded beside its comparisons: the runs of document 001 by name, what handing
//! an order to another worker costs by itself, and the answer to the document's wish.

use serde::{Deserialize, Serialize};

use crate::study::{PairedRatio, Spread};

/// What processes behind each other counted over a whole trial, read when nothing was on its way any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChainTotals {
    /// Data messages the gateway received, from clients and from the exchange.
    pub gateway_received: u64,
    /// Data messages the gateway sent, to both sides.
    pub gateway_sent: u64,
    /// Of those it received, orders of clients.
    pub gateway_orders: u64,
    /// Commits of its journal; zero where it keeps none.
    #[serde(default)]
    pub gateway_commits: u64,
    /// Data messages the exchange received.
    pub exchange_received: u64,
    /// Of these, orders.
    pub exchange_orders: u64,
    /// Data messages the exchange sent.
    pub exchange_sent: u64,
    /// CPU the exchange used from before the load to after it.
    pub exchange_cpu_ns: u64,
    /// Data messages the exchange received in that time.
    pub exchange_messages: u64,
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

/// Figures per order of one arm in one cell, over its clean trials. Switches and CPU are in the arm's summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OrderFigures {
    /// Median round trip of an order, in microseconds.
    pub p50_us: Option<Spread>,
    /// 99th percentile of the round trip, in microseconds.
    pub p99_us: Option<Spread>,
    /// Wakes of another worker that cost a system call.
    pub wakes_per_order: Option<Spread>,
    /// The same for each message handed over; absent when nothing was.
    pub wakes_per_handoff: Option<Spread>,
    /// Messages found each time a worker emptied its queues.
    pub handoffs_per_drain: Option<Spread>,
    /// Share of the orders that were handed to another worker, 0 to 1.
    pub handed_off_share: Option<Spread>,
    /// Work found by the once-a-second look although nobody had woken the worker, over all trials: must be zero.
    pub wakes_recovered: u64,
}

/// Everything a study of the gateway concluded beside its comparisons.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GatewayFindings {
    /// The runs of document 001, and the row beyond them.
    pub runs: Vec<NamedRun>,
    /// What handing over costs, by cell and arm.
    pub costs: Vec<HandoffCost>,
    /// The answer to the document's wish, one for each driver.
    pub answers: Vec<HandoffAnswer>,
    /// Cells with more busy threads than CPUs.
    pub oversubscribed: Vec<OversubscribedCell>,
}

/// A run of document 001 by its name, and where its counterpart is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamedRun {
    /// `s1`, `s2`, `s3`, `s3-modulo`, `tps-1w`, `tps-2w`, `deep-1w`, `deep-2w`.
    pub name: String,
    /// Driver of the counterpart.
    pub driver: String,
    /// Cell of the counterpart.
    pub cell_id: String,
    /// Arm of the counterpart.
    pub arm: String,
    /// Voluntary switches a second, as published.
    pub published_context_switches_per_second: Option<f64>,
    /// Voluntary switches an order, as the audit of the published figures found.
    pub published_context_switches_per_order: Option<f64>,
    /// Orders a second, as published.
    pub published_orders_per_second: Option<f64>,
    /// Median round trip, as published with the document's source.
    pub published_p50_us: Option<f64>,
}

/// A median of differences with its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PairedDifference {
    /// Median of the differences within blocks.
    pub difference: f64,
    /// Lower and upper end.
    pub interval: Option<(f64, f64)>,
    /// Pairs used.
    pub pairs: u32,
}

/// What one way of handing over adds to an order, against the same work without handing over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HandoffCost {
    /// Cell.
    pub cell_id: String,
    /// Arm.
    pub arm: String,
    /// Server CPU per order beyond the baseline's, in microseconds.
    pub cpu_us: Option<PairedDifference>,
    /// Voluntary switches per order beyond the baseline's.
    pub switches: Option<PairedDifference>,
    /// Median round trip beyond the baseline's, in microseconds.
    pub p50_us: Option<PairedDifference>,
    /// `cpu_us` over that of the reference, as wide as for all ways together; absent where the reference's cost cannot
    /// be told from zero.
    pub of_reference: Option<PairedRatio>,
}

/// The answer to the wish that handing tasks to another worker's queue should be optimised.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HandoffAnswer {
    /// Driver of the gateway.
    pub driver: String,
    /// The way the document does it: a lock, and a wake for every task.
    pub reference: String,
    /// The way whose worst share of the reference's cost, over all loads, is smallest.
    pub best: String,
    /// One line for each kind of load.
    pub loads: Vec<AnsweredLoad>,
    /// Whether the best costs at most half of the reference under every load, intervals included; absent when the
    /// intervals leave it open.
    pub is_halved: Option<bool>,
}

/// One kind of load in an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnsweredLoad {
    /// `closed`, `paced` or `flood`.
    pub load: String,
    /// Cell.
    pub cell_id: String,
    /// Cost of handing over by the reference, in microseconds of server CPU an order.
    pub reference_us: f64,
    /// The same by the best.
    pub best_us: f64,
    /// Best over reference.
    pub share: Option<PairedRatio>,
    /// Wakes for each message handed over, by the reference.
    pub reference_wakes: Option<f64>,
    /// The same by the best.
    pub best_wakes: Option<f64>,
}

/// A cell whose threads have to share CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OversubscribedCell {
    /// Cell.
    pub cell_id: String,
    /// Workers of the gateway and of the exchange, and the generator's thread.
    pub threads: u32,
    /// CPUs they have.
    pub cpus: u32,
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
