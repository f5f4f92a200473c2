//! What a session asks of its owner.

use weir_proto::{
    ouch::{DecodeError, Outbound},
    soup::Name,
};
use weir_trading::Origin;

use crate::gateway::unsolicited_cancels::Expiry;

/// What has to be done, in this order. The owner executes and removes it after each step: it keeps its memory.
#[derive(Default)]
pub(in crate::gateway) struct Effects {
    pub(in crate::gateway) list: Vec<Effect>,
    /// The message in [`Effect::Deliver`] and [`Passed::Stray`]: what it says, and its bytes.
    pub(in crate::gateway) message: Option<Outbound>,
    pub(in crate::gateway) raw: Vec<u8>,
    /// Bytes have been added to those that wait to be sent.
    pub(in crate::gateway) has_output: bool,
}

impl Effects {
    #[inline]
    pub(super) fn push(&mut self, effect: Effect) {
        self.list.push(effect);
    }

    #[inline]
    pub(super) fn pass(&mut self, passed: Passed) {
        self.push(Effect::Pass(passed));
    }

    /// Orders have ended here.
    pub(super) fn expire(&mut self, why: Why, session: u64, expiries: Vec<Expiry>) {
        if !expiries.is_empty() {
            self.push(Effect::Expired(Expired { why, session, expiries }));
        }
    }
}

/// Something to do.
#[derive(Debug)]
pub(in crate::gateway) enum Effect {
    /// Give a message of the exchange to a client. It is in [`Effects::message`], with the client's numbers.
    Deliver(Delivery),
    /// Count a message of the exchange that reaches no client.
    Pass(Passed),
    /// The login was accepted: journal where it was, and show the session.
    LoggedIn(Name<10>),
    /// Journal that the exchange has begun this session, the first one that is known.
    Begun { epoch: u16, session: Name<10> },
    /// Journal that the exchange has begun this session after another one, whose orders have ended.
    BegunAnew { epoch: u16, session: Name<10>, before: Name<10>, ended: Expired },
    /// Report that messages of the session are missing; the next one is `next`.
    Gap { messages: u64, session: Name<10>, next: u64 },
    /// Report that orders are accepted, and that this many messages leave again.
    Up { again: u64 },
    /// A replace had no effect: its client may use its number again.
    Release(Origin),
    /// Inform clients that their orders have ended.
    Expired(Expired),
}

/// A message of the exchange for a client.
#[derive(Clone, Copy, Debug)]
pub(in crate::gateway) struct Delivery {
    /// The client order.
    pub(in crate::gateway) origin: Origin,
    /// See `pack_sequence`.
    pub(in crate::gateway) upstream_sequence: u64,
    /// When its order was given to the connection, if this is its first answer and the time is known; otherwise zero.
    pub(in crate::gateway) sent_ns: u64,
    /// It is an execution of more shares than were left in the order, possibly none.
    pub(in crate::gateway) is_overfill: bool,
}

/// Why a message of the exchange reaches no client.
#[derive(Debug)]
pub(in crate::gateway) enum Passed {
    /// It was received on an earlier connection.
    Again,
    /// Its client received it before the gateway was restarted.
    Delivered,
    /// It answers an account query.
    Numbers,
    /// It is no message.
    Malformed { sequence: u64, error: DecodeError },
    /// It is about no known order, or about none.
    Unmatched { is_about_order: bool },
    /// It is about the trade of an unknown order, in this session: people have to settle that.
    Stray { session: u32, sequence: u64 },
}

/// Orders that have ended here, without a message from the exchange.
#[derive(Debug)]
pub(in crate::gateway) struct Expired {
    pub(in crate::gateway) why: Why,
    /// The key of their session (`pack_sequence`).
    pub(in crate::gateway) session: u64,
    pub(in crate::gateway) expiries: Vec<Expiry>,
}

/// Why orders have ended here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Why {
    /// The exchange has begun another session.
    SessionOver,
    /// They were to be cancelled, and no connection had been given them.
    Cancelled,
    /// Their session of the trading day has ended, and the next one begins.
    GivenUp,
    /// They were too old, or to be cancelled, when they could have been resent.
    Stale,
    /// They were too old when they could have been sent.
    Late,
}
