//! A client that places orders with a gateway, and keeps all messages to it.

use std::{iter::once, ops::RangeInclusive, time::Instant};

use weir_proto::{
    ouch::{Cancel, Inbound, Outbound},
    soup::SEQUENCED,
};

use super::{
    harness::{PATIENCE, until},
    order_kill::{Session, order},
};

/// A client, and its stream from the first message on.
pub struct Client {
    name: String,
    session: Session,
    pub stream: Vec<Vec<u8>>,
}

impl Client {
    pub fn login(address: &str, name: &str) -> Self {
        let mut session = None;
        until("it is let in", || {
            session = Session::login(address, name, 1);
            session.is_some()
        });
        Self { name: name.into(), session: session.expect("it is let in"), stream: Vec::new() }
    }

    /// The name of an order with this number.
    pub fn id(&self, number: u32) -> String {
        format!("{}-{number}", self.name)
    }

    /// Sends orders with these numbers.
    pub fn send(&mut self, numbers: RangeInclusive<u32>) {
        let orders: Vec<Vec<u8>> = numbers.map(|number| order(number, &self.id(number))).collect();
        self.session.send(orders.into_iter());
    }

    pub fn cancel(&mut self, user_ref_num: u32) {
        let mut raw = Vec::new();
        Inbound::Cancel(Cancel { user_ref_num, quantity: 0 }).encode(&mut raw);
        self.session.send(once(raw));
    }

    pub fn hear_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds(self) {
            assert!(Instant::now() < deadline, "{what}: not after {} messages", self.stream.len());
            let take = |kind: u8, payload: &[u8]| (kind == SEQUENCED).then(|| payload.to_vec());
            let Some(taken) = self.session.read(take) else {
                panic!("{what}: the connection ends after {} messages", self.stream.len())
            };
            self.stream.extend(taken);
        }
    }

    /// Reads the messages that have arrived, up to a heartbeat at least.
    pub fn hear_heartbeat(&mut self) {
        let mut is_there = false;
        while !is_there {
            let take = |kind: u8, payload: &[u8]| {
                is_there |= kind == b'H';
                (kind == SEQUENCED).then(|| payload.to_vec())
            };
            let taken = self.session.read(take).expect("the connection goes on");
            self.stream.extend(taken);
        }
    }

    /// The orders of the messages of this kind, in order of arrival.
    pub fn numbers(&self, kind: u8) -> Vec<u32> {
        let of_kind = self.stream.iter().filter(|raw| raw[0] == kind);
        let messages = of_kind.map(|raw| Outbound::decode(raw).expect("a message").0);
        messages.map(|message| message.user_ref_num().expect("it is about an order")).collect()
    }

    /// Why an order was refused, if it was.
    pub fn reason_of(&self, number: u32) -> Option<u16> {
        self.stream.iter().find_map(|raw| match Outbound::decode(raw).expect("a message").0 {
            Outbound::Rejected(rejected) if rejected.user_ref_num == number => Some(rejected.reason),
            _ => None,
        })
    }
}
