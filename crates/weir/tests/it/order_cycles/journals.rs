//! The journals of a gateway and of its exchanges at the end, compared with the messages to clients.

use std::collections::{BTreeMap, BTreeSet};

use weir_proto::ouch::{Inbound, Outbound};
use weir_servers::{
    journal::Level,
    orders::{AccountConfig, OrdersConfig, Record, RecordKind, accounts_named, demo_accounts, recover},
};

use super::trader::{OrderOutcome, Trader, undo};

/// Accounts of gateways that a demonstration exchange has.
const GATEWAY_ACCOUNTS: u32 = 256;

fn read(directory: &str, accounts: Vec<AccountConfig>, mut visit: impl FnMut(&Record<'_>)) {
    let journal = Some((directory.into(), Level::Os));
    let config = OrdersConfig { journal, ..OrdersConfig::new(accounts) };
    recover(&config, &mut visit).expect("the journals are right");
}

/// An order at an exchange.
#[derive(Debug, Default)]
struct Taken {
    /// The exchanges that have taken it, one entry each time.
    by: Vec<usize>,
    left: i64,
    fills: Vec<(u32, u64)>,
}

/// By their clients' names: the exchanges' actions on orders.
#[derive(Default)]
pub struct Exchanges(BTreeMap<String, Taken>);

impl Exchanges {
    /// Reads the journals of the exchange with this number.
    pub fn read(&mut self, number: usize, directory: &str) {
        // In each session numbers begin again.
        let mut names: BTreeMap<(u32, u16, u32), String> = BTreeMap::new();
        let mut accounts = demo_accounts(1);
        accounts.extend(accounts_named('G', GATEWAY_ACCOUNTS));
        read(directory, accounts, |record| {
            let RecordKind::Sequenced { account, message, .. } = record.kind else { return };
            let message = Outbound::decode(message).expect("a message").0;
            let Some(user_ref_num) = message.user_ref_num() else { return };
            let in_session = |number| (account.0, record.generation, number);
            let key = in_session(user_ref_num);
            let taken = match &message {
                Outbound::Accepted(accepted) => {
                    Some((accepted.client_order_id, accepted.quantity, accepted.order_state))
                }
                Outbound::Replaced(replaced) => {
                    let original = names.get(&in_session(replaced.original_user_ref_num));
                    let original = original.and_then(|name| self.0.get_mut(name)).expect("it was taken");
                    original.left = 0;
                    Some((replaced.client_order_id, replaced.quantity, replaced.order_state))
                }
                _ => None,
            };
            if let Some((name, quantity, state)) = taken {
                assert_eq!(state, b'L', "{message:?}");
                let name = name.as_str().trim_end().to_owned();
                let order = self.0.entry(name.clone()).or_default();
                order.by.push(number);
                order.left = quantity.into();
                names.insert(key, name);
            }
            let order = names.get(&key).and_then(|name| self.0.get_mut(name));
            match (order, &message) {
                (Some(order), Outbound::Executed(executed)) => {
                    order.left -= i64::from(executed.quantity);
                    order.fills.push((executed.quantity, executed.match_number));
                }
                (Some(order), Outbound::BrokenTrade(broken)) => undo(&mut order.fills, broken.match_number),
                (Some(order), Outbound::Canceled(canceled)) => order.left -= i64::from(canceled.quantity),
                (None, Outbound::Executed(_)) => panic!("nobody's order: {message:?}"),
                _ => {}
            }
        });
    }

    /// No order was taken twice; each was taken and filled as its client knows.
    pub fn compare(&self, traders: &[Trader]) {
        let mut outcomes: BTreeMap<String, &OrderOutcome> = BTreeMap::new();
        for trader in traders {
            let taken = trader.orders.iter().filter(|(_, outcome)| outcome.is_taken());
            outcomes.extend(taken.map(|(number, order)| (trader.id(*number), order)));
        }
        for (name, taken) in &self.0 {
            assert_eq!(taken.by.len(), 1, "order {name} was taken more than once: {taken:?}");
            let Some(outcome) = outcomes.get(name) else {
                panic!("order {name} was taken, and its client was told otherwise: {taken:?}")
            };
            let (mut there, mut here) = (taken.fills.clone(), outcome.fills.clone());
            there.sort_unstable();
            here.sort_unstable();
            assert_eq!(there, here, "order {name}: what was executed, and what its client was told");
            // An order of an ended session gets no more messages.
            assert!(taken.left == 0 || outcome.has_expired, "order {name} is open: {taken:?}, {outcome:?}");
        }
        let not_there: Vec<&String> = outcomes.keys().filter(|name| !self.0.contains_key(*name)).collect();
        assert!(not_there.is_empty(), "clients got acceptances of these: {not_there:?}");
    }

    /// The exchange that has taken an order.
    pub fn that_has(&self, name: &str) -> Option<usize> {
        self.0.get(name).and_then(|taken| taken.by.first().copied())
    }

    pub fn fills(&self) -> usize {
        self.0.values().map(|taken| taken.fills.len()).sum()
    }
}

/// The gateway's orders, each once, and the messages to its clients, without a gap: the clients' streams.
pub fn check_gateway(directory: &str, traders: &[Trader]) {
    let mut sent: BTreeSet<(u32, u32)> = BTreeSet::new();
    let mut streams: Vec<BTreeMap<u64, Vec<u8>>> = vec![BTreeMap::new(); traders.len()];
    read(directory, demo_accounts(traders.len() as u32), |record| match record.kind {
        RecordKind::Sent { account, raw, .. } => {
            let message = Inbound::decode(raw).expect("a message");
            if let (Inbound::Enter(..) | Inbound::Replace(..), Some(number)) =
                (&message, message.user_ref_num())
            {
                // A client may send a replace without effect again.
                let is_new = sent.insert((account.0, number));
                assert!(is_new || matches!(message, Inbound::Replace(..)), "{message:?} was sent twice");
            }
        }
        RecordKind::Sequenced { account, sequence, message, .. } => {
            let before = streams[account.0 as usize].insert(sequence, message.to_vec());
            assert_eq!(before, None, "message {sequence} of account {account:?} is there twice");
        }
        _ => {}
    });
    for (trader, stream) in traders.iter().zip(streams) {
        assert!(stream.keys().copied().eq(1..=trader.stream.len() as u64), "{}: gaps", trader.name);
        assert!(stream.into_values().eq(trader.stream.iter().cloned()), "{}: another stream", trader.name);
        for (number, outcome) in trader.orders.iter().filter(|(_, outcome)| outcome.is_taken()) {
            let name = trader.id(*number);
            let place = traders.iter().position(|other| other.name == trader.name).expect("it is one");
            assert!(sent.contains(&(place as u32, *number)), "{name} has no record: {outcome:?}");
        }
    }
}
