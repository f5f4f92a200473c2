//! The messages in the records of a gateway's journal as they were on the wire: between a client and the gateway, and
//! between a worker of the gateway and an exchange. Pure.
//!
//! A journal has what the gateway needs, and not every byte: no login, no heartbeat, no cancel that was ignored. The
//! exchange's answers are recorded with the client's numbers; here they get the exchange's again.

use std::collections::{HashMap, VecDeque};

use weir_proto::{
    ouch::{
        inbound_user_ref_num, original_user_ref_num, outbound_original_user_ref_num, outbound_user_ref_num,
        set_inbound_user_ref_num, set_original_user_ref_num, set_outbound_original_user_ref_num,
        set_outbound_user_ref_num,
    },
    soup::Name,
};

use super::worker_message::{of_sent_key, of_session_key, unpack_sequence};
use crate::{
    journal::RecordView,
    orders::{MessageOf, message_of},
};

/// Orders whose numbers at the exchange are remembered, and messages that were handed over. Older ones are forgotten.
const REMEMBERED_MAX: usize = 1 << 20;

/// The connection of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flow {
    /// A client's, in one session with the clients, counted from 0.
    Client {
        /// Its login name.
        account: Name<6>,
        /// How many sessions had ended before.
        generation: u16,
    },
    /// A worker's with an exchange.
    Venue {
        /// The worker.
        worker: u16,
        /// The venue's number in the records of its journal.
        venue: u16,
        /// The count of the session there.
        session: u16,
    },
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireMessage {
    /// Its connection.
    pub flow: Flow,
    /// Its number in a stream, from the server of the connection; `None` for a message to that server.
    pub sequence: Option<u64>,
    /// The message.
    pub message: Vec<u8>,
}

/// A client's order.
type Key = (Name<6>, u16, u32);

/// Entries that are found by their keys. The oldest one makes room.
#[derive(Debug)]
struct Remembered<K, V> {
    all: HashMap<K, V>,
    in_order: VecDeque<K>,
}

impl<K: Clone + Eq + std::hash::Hash, V> Remembered<K, V> {
    fn new() -> Self {
        Self { all: HashMap::new(), in_order: VecDeque::new() }
    }

    fn add(&mut self, key: K, value: V) {
        if self.all.insert(key.clone(), value).is_none() {
            self.in_order.push_back(key);
        }
        // Removed ones are still in the order.
        while self.all.len() > REMEMBERED_MAX || self.in_order.len() > 2 * REMEMBERED_MAX {
            let Some(oldest) = self.in_order.pop_front() else { return };
            self.all.remove(&oldest);
        }
    }
}

/// Makes messages of records, in the order of their times.
#[derive(Debug)]
pub struct WireMessages {
    /// Numbers at the exchange.
    numbers: Remembered<Key, u32>,
    /// Messages that were received, and handed to another worker: its record contains them again.
    handed_over: Remembered<(Name<6>, Vec<u8>), ()>,
}

impl Default for WireMessages {
    fn default() -> Self {
        Self { numbers: Remembered::new(), handed_over: Remembered::new() }
    }
}

impl WireMessages {
    /// The messages of a record: between client and gateway, and between gateway and exchange.
    pub fn of(&mut self, record: &RecordView<'_>) -> [Option<WireMessage>; 2] {
        let Some((account, generation, of)) = message_of(record) else { return [None, None] };
        let client = Flow::Client { account: account.folded(), generation };
        let from_client =
            |message: &[u8]| WireMessage { flow: client, sequence: None, message: message.to_vec() };
        match of {
            MessageOf::Received(message) => {
                self.handed_over.add((account.folded(), message.to_vec()), ());
                [Some(from_client(message)), None]
            }
            MessageOf::Refused(message) => {
                let is_first = self.is_first(account, message);
                [is_first.then(|| from_client(message)), None]
            }
            MessageOf::Sent { message, session, upstream } => {
                let is_first = self.is_first(account, message);
                let (key, session) = of_sent_key(session);
                let flow = venue(key, session);
                let order = |number: u32| (account.folded(), generation, number);
                let mut sent = message.to_vec();
                if let Some(original) = original_user_ref_num(message) {
                    let number = self.numbers.all.get(&order(original)).copied().unwrap_or(0);
                    set_original_user_ref_num(&mut sent, number);
                }
                if let Some(number) = inbound_user_ref_num(message) {
                    self.numbers.add(order(number), upstream);
                }
                set_inbound_user_ref_num(&mut sent, upstream);
                let sent = WireMessage { flow, sequence: None, message: sent };
                [is_first.then(|| from_client(message)), Some(sent)]
            }
            MessageOf::Stream { message, sequence, upstream_sequence } => {
                let to_client =
                    WireMessage { flow: client, sequence: Some(sequence), message: message.to_vec() };
                let from_venue = self.venue_message((account, generation), upstream_sequence, message);
                [Some(to_client), from_venue]
            }
        }
    }

    /// Whether no earlier record has this message of a client.
    fn is_first(&mut self, account: Name<6>, message: &[u8]) -> bool {
        self.handed_over.all.remove(&(account.folded(), message.to_vec())).is_none()
    }

    /// An exchange's message; `None` if the gateway itself sent it, or if its order's number there is not known.
    fn venue_message(
        &self,
        (account, generation): (Name<6>, u16),
        upstream_sequence: u64,
        message: &[u8],
    ) -> Option<WireMessage> {
        let (key, session, sequence) = unpack_sequence(upstream_sequence);
        if sequence == 0 {
            return None;
        }
        let number =
            |client: Option<u32>| self.numbers.all.get(&(account.folded(), generation, client?)).copied();
        let mut message = message.to_vec();
        let (own, original) =
            (number(outbound_user_ref_num(&message))?, number(outbound_original_user_ref_num(&message)));
        set_outbound_user_ref_num(&mut message, own);
        set_outbound_original_user_ref_num(&mut message, original.unwrap_or(0));
        Some(WireMessage { flow: venue(key, session), sequence: Some(sequence), message })
    }
}

fn venue(key: u32, session: u16) -> Flow {
    let (worker, venue) = of_session_key(key);
    Flow::Venue { worker: worker as u16, venue: venue as u16, session }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        gateway::{
            test_messages,
            worker_message::{pack_sequence, sent_key, session_key},
        },
        orders::test_payloads,
    };

    fn record(kind: u8, session: u32, payload: &[u8]) -> RecordView<'_> {
        RecordView { kind, batch: 0, ends_batch: true, worker: 1, lsn: 1, t_ns: 1, session, payload }
    }

    #[test]
    fn an_order_that_was_handed_over_is_received_once_and_its_numbers_at_the_exchange_are_there() {
        let account: Name<6> = "C00002".parse().expect("a name");
        let client = Flow::Client { account, generation: 3 };
        let venue = Flow::Venue { worker: 1, venue: 2, session: 5 };
        let key = session_key(1, 2);
        let entered = test_messages::entered(7, 100);
        let accepted = test_messages::accepted(7, b'L');
        let mut wire = WireMessages::default();
        let received = test_payloads::inbound(&account, 3, 0, &entered);
        let from_client = WireMessage { flow: client, sequence: None, message: entered.clone() };
        assert_eq!(wire.of(&record(2, 1, &received)), [Some(from_client.clone()), None]);
        let sent = test_payloads::inbound(&account, 3, 41, &entered);
        let expected = test_messages::entered(41, 100);
        let sent_on = WireMessage { flow: venue, sequence: None, message: expected };
        assert_eq!(wire.of(&record(5, sent_key(key, 5), &sent)), [None, Some(sent_on.clone())]);
        // The next one was sent by its client's worker.
        assert_eq!(wire.of(&record(5, sent_key(key, 5), &sent)), [Some(from_client), Some(sent_on)]);
        let answer = test_payloads::sequenced(&account, 3, 9, pack_sequence(key, 5, 70), &accepted);
        let to_client = WireMessage { flow: client, sequence: Some(9), message: accepted };
        let answered = test_messages::accepted(41, b'L');
        let from_venue = WireMessage { flow: venue, sequence: Some(70), message: answered };
        assert_eq!(wire.of(&record(1, 1, &answer)), [Some(to_client), Some(from_venue)]);
        // The gateway has ended an order itself, and a record that is none.
        let ended = test_payloads::sequenced(&account, 3, 10, pack_sequence(key, 5, 0), &entered);
        assert!(wire.of(&record(1, 1, &ended))[1].is_none());
        assert_eq!(wire.of(&record(64, 1, b"")), [None, None]);
    }

    #[test]
    fn no_more_is_remembered_than_may_be() {
        let mut remembered = Remembered::new();
        for number in 0..REMEMBERED_MAX + 3 {
            remembered.add(number, ());
        }
        assert_eq!((remembered.all.len(), remembered.all.contains_key(&2)), (REMEMBERED_MAX, false));
    }
}
