//! Messages on their way to the exchange: accepted, collected, and given to the connection piece by piece.

use std::{
    collections::BTreeMap,
    ops::{Range, RangeInclusive},
};

use weir_proto::{
    ouch::{Cancel, Enter, Inbound, Replace, inbound_user_ref_num, reject_reason},
    soup::HEADER_BYTES,
};
use weir_trading::Origin;

use super::{Effects, UpstreamSession, WAITING_BYTES_MAX, cancels::Queued};
use crate::{
    gateway::outstanding::{Sending, append_cancel},
    journal::Lsn,
    orders::ClientMessage,
};

#[cfg(test)]
use crate::gateway::simulated_days::{Plant, is_planted};

/// Most bytes of clients' messages that are given to a connection at once: bytes that it has and the exchange does
/// not read cannot be taken back. This is some three hundred orders.
const PIECE_BYTES: usize = 16 << 10;

/// Bytes of a cancel on the wire.
pub(super) const CANCEL_FRAME_BYTES: usize = HEADER_BYTES + Cancel::BYTES;

/// Messages that wait to be sent.
#[derive(Default)]
pub(super) struct Waiting {
    pub(super) bytes: Vec<u8>,
    /// Data messages in `bytes`.
    pub(super) messages: u64,
    /// Client messages among these that have not been counted as sent on.
    orders: u64,
    /// Numbers of the new orders in `bytes`, or 0.
    first: u32,
    last: u32,
    /// The highest number of an order in `bytes`, including resent ones; or 0.
    pub(super) through: u32,
    /// When the oldest of these orders, or of those behind them, is too old to be sent.
    pub(super) until_ns: Option<u64>,
    /// The journal must contain this record before they may be sent.
    pub(super) lsn: Lsn,
    /// The gateway's own cancels in `bytes`.
    pub(super) cancels: Vec<Queued>,
    /// Copies of clients' cancels in `bytes` whose orders were sent before.
    copies: Vec<u8>,
    /// Cancels that follow separately because too many bytes wait: by order, the shares to leave.
    late: BTreeMap<u32, u32>,
    /// Copies of those whose orders were sent before.
    late_copies: BTreeMap<u32, u32>,
}

impl Waiting {
    /// Whether nothing waits.
    pub(super) fn is_idle(&self) -> bool {
        self.messages == 0
    }

    /// The connection is gone: what was to be sent on it is not. Clients' messages still have to be counted, and
    /// their records to be waited for.
    pub(super) fn forget_bytes(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        *self = Self { bytes, orders: self.orders, lsn: self.lsn, ..Self::default() };
    }

    /// Takes the collected messages. Later ones collect in `memory`.
    fn take(&mut self, memory: Vec<u8>) -> Self {
        let mut taken = std::mem::replace(self, Self { bytes: memory, ..Self::default() });
        for (number, quantity) in &taken.late {
            append_cancel(*number, *quantity, &mut taken.bytes);
        }
        taken
    }

    /// Takes all copies.
    fn take_copies(&mut self) -> Vec<u8> {
        let mut copies = std::mem::take(&mut self.copies);
        for (number, quantity) in std::mem::take(&mut self.late_copies) {
            append_cancel(number, quantity, &mut copies);
        }
        copies
    }

    /// Adds a new order. One that another worker has handed over late comes behind younger ones.
    #[inline]
    fn note_order(&mut self, number: u32, until_ns: u64) {
        (self.last, self.through) = (number, number);
        if self.first == 0 {
            self.first = number;
        }
        self.until_ns = Some(self.until_ns.map_or(until_ns, |first| first.min(until_ns)));
    }
}

/// Keeps the one of several cancels of an order that leaves least.
fn keep_least(cancels: &mut BTreeMap<u32, u32>, number: u32, quantity: u32) {
    let least = cancels.entry(number).or_insert(quantity);
    *least = quantity.min(*least);
}

/// An accepted message: it must be journaled, with these, before anything else happens in the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the caller writes the record of the message, and then informs the session"]
pub(in crate::gateway) struct Numbered {
    /// The number of its order.
    pub(in crate::gateway) number: u32,
    /// The key of the session in its record.
    pub(in crate::gateway) session: u32,
    /// The record to write first, if any: see [`UpstreamSession::note_home`].
    pub(in crate::gateway) home: Option<[u8; 12]>,
}

/// Messages that were taken to be sent.
pub(in crate::gateway) struct Batch {
    /// See [`UpstreamSession::generation`].
    generation: u64,
    waiting: Waiting,
    /// Bytes up to here were given to the connection.
    begin: usize,
    /// The new orders in the last piece.
    numbers: RangeInclusive<u32>,
}

impl Batch {
    /// The bytes of all its messages.
    pub(in crate::gateway) fn bytes(&self) -> &[u8] {
        &self.waiting.bytes
    }

    /// Data messages in it.
    pub(in crate::gateway) fn messages(&self) -> u64 {
        self.waiting.messages
    }

    /// Client messages in it that have to be counted as sent on.
    pub(in crate::gateway) fn orders(&self) -> u64 {
        self.waiting.orders
    }

    /// The journal must contain this record before it may be sent.
    pub(in crate::gateway) fn lsn(&self) -> Lsn {
        self.waiting.lsn
    }

    /// Its memory, without its bytes.
    pub(in crate::gateway) fn into_memory(mut self) -> Vec<u8> {
        self.waiting.bytes.clear();
        self.waiting.bytes
    }
}

/// The next piece of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::gateway) enum Piece {
    /// These bytes of it.
    Bytes(Range<usize>),
    /// All of it was given to the connection.
    Done,
    /// Its connection is gone.
    Gone,
}

impl UpstreamSession {
    /// Accepts a client's message for sending. `None`: it is about an order that is not open, and is not sent; the
    /// error is an OUCH reason.
    #[inline]
    pub(in crate::gateway) fn accept(
        &mut self,
        origin: Origin,
        message: &ClientMessage<'_>,
    ) -> Result<Option<Numbered>, u16> {
        if !self.is_up() || self.is_held {
            return Err(reject_reason::DESTINATION_CLOSED);
        }
        if self.waiting.bytes.len() > WAITING_BYTES_MAX {
            return self.accept_late(origin, message);
        }
        if message.is_order() && self.outstanding.is_full() {
            return Err(reject_reason::PROCESSING_ERROR);
        }
        let Self { outstanding, waiting, .. } = self;
        let number = match outstanding.assign_upstream_number(origin, message, &mut waiting.bytes) {
            Sending::Numbered(number) => {
                waiting.note_order(number, origin.received_ns.saturating_add(outstanding.wait_max_ns()));
                number
            }
            Sending::Passed(number) => number,
            Sending::Unknown => return Ok(None),
            Sending::Full => return Err(reject_reason::PROCESSING_ERROR),
        };
        waiting.messages += 1;
        waiting.orders += 1;
        if let Inbound::Cancel(cancel) = message.inbound()
            && number <= self.handed
        {
            append_cancel(number, cancel.quantity, &mut waiting.copies);
        }
        Ok(Some(self.numbered(number, origin.home)))
    }

    /// Too many bytes wait: of several cancels of an order only the one that leaves least is kept, and nothing else is
    /// accepted.
    #[cold]
    fn accept_late(&mut self, origin: Origin, message: &ClientMessage<'_>) -> Result<Option<Numbered>, u16> {
        let Inbound::Cancel(cancel) = message.inbound() else { return Err(reject_reason::PROCESSING_ERROR) };
        let Self { outstanding, waiting, handed, .. } = self;
        let sending = outstanding.assign_upstream_number(origin, message, &mut Vec::new());
        let Sending::Passed(number) = sending else { return Ok(None) };
        waiting.messages += u64::from(!waiting.late.contains_key(&number));
        keep_least(&mut waiting.late, number, cancel.quantity);
        if number <= *handed {
            keep_least(&mut waiting.late_copies, number, cancel.quantity);
        }
        waiting.orders += 1;
        Ok(Some(self.numbered(number, origin.home)))
    }

    #[inline]
    pub(super) fn numbered(&mut self, number: u32, home: u16) -> Numbered {
        Numbered { number, session: self.sent_key(), home: self.note_home(home) }
    }

    /// The accepted message has this record: it is sent when the journal contains it.
    #[inline]
    pub(in crate::gateway) fn journaled(&mut self, lsn: Lsn) {
        self.waiting.lsn = self.waiting.lsn.max(lsn);
        self.lsn = self.lsn.max(lsn);
    }

    /// Whether an order from another worker has become too old on its way here.
    pub(in crate::gateway) fn is_late(&self, origin: &Origin, now_ns: u64) -> bool {
        now_ns.saturating_sub(origin.received_ns) > self.outstanding.wait_max_ns()
    }

    /// Whether urgent messages wait.
    pub(in crate::gateway) fn has_urgent(&self) -> bool {
        let (has_bytes, urgent) = (!self.urgent.bytes.is_empty(), &self.urgent);
        debug_assert!(
            has_bytes || urgent.is_idle() && urgent.cancels.is_empty(),
            "what is counted has bytes"
        );
        has_bytes
    }

    /// Takes the urgent messages. They are sent whole.
    pub(in crate::gateway) fn take_urgent(&mut self, memory: Vec<u8>) -> Batch {
        let waiting = self.urgent.take(memory);
        Batch { generation: self.generation, waiting, begin: 0, numbers: RangeInclusive::new(1, 0) }
    }

    /// Takes the waiting messages of clients.
    pub(in crate::gateway) fn take_waiting(&mut self, memory: Vec<u8>) -> Batch {
        let waiting = self.waiting.take(memory);
        Batch { generation: self.generation, waiting, begin: 0, numbers: RangeInclusive::new(1, 0) }
    }

    /// Adds clients' cancels to the urgent messages, ahead of the batch that contains them.
    pub(in crate::gateway) fn send_cancels_ahead(&mut self, batch: &mut Batch) {
        for mut copies in [batch.waiting.take_copies(), self.waiting.take_copies()] {
            self.urgent.messages += (copies.len() / CANCEL_FRAME_BYTES) as u64;
            self.urgent.bytes.append(&mut copies);
        }
    }

    /// The next piece of a batch. Late orders end first, and orders that have ended are removed from the rest. `now_ns`
    /// is when the sender last had to wait: later orders are young.
    pub(in crate::gateway) fn next_piece(
        &mut self,
        batch: &mut Batch,
        now_ns: u64,
        effects: &mut Effects,
    ) -> Piece {
        if batch.generation != self.generation && batch.begin < batch.bytes().len() {
            return Piece::Gone;
        }
        if batch.begin >= batch.bytes().len() {
            return Piece::Done;
        }
        if batch.waiting.until_ns.is_some_and(|until_ns| until_ns < now_ns) {
            batch.waiting.until_ns = self.refuse_late(now_ns, effects);
        }
        let Some(connection) = &mut self.connection else { return Piece::Gone };
        if connection.taken_back > connection.handed_here {
            let outstanding = &self.outstanding;
            let is_over = |number| !outstanding.awaits(number);
            let struck = strike(&mut batch.waiting.bytes, batch.begin, is_over);
            batch.waiting.messages = batch.waiting.messages.saturating_sub(struck);
        }
        let (end, through) = piece(&batch.waiting, batch.begin);
        #[cfg(test)]
        let through = if is_planted(Plant::SentPassesForUnsent) { 0 } else { through };
        // From now on, messages about these orders come after them.
        let first = batch.waiting.first.max(connection.handed_here.saturating_add(1));
        connection.handed_here = through.max(connection.handed_here);
        self.handed = through.max(self.handed);
        batch.numbers = first..=through.min(batch.waiting.last);
        let bytes = std::mem::replace(&mut batch.begin, end)..end;
        if bytes.is_empty() { Piece::Done } else { Piece::Bytes(bytes) }
    }

    /// The last piece of a batch was given to the connection. `received` gets the time when each new order in it had
    /// arrived.
    pub(in crate::gateway) fn on_piece_sent(
        &mut self,
        batch: &Batch,
        now_ns: u64,
        received: impl FnMut(u64),
    ) {
        self.outstanding.stamp(*batch.numbers.start(), *batch.numbers.end(), now_ns, received);
    }

    /// A whole batch was given to the connection.
    pub(in crate::gateway) fn on_batch_sent(&mut self, batch: &Batch) {
        self.cancels.note_sent(&batch.waiting.cancels);
    }
}

/// The end of the piece of a batch that begins here, and the highest order number in it.
fn piece(batch: &Waiting, begin: usize) -> (usize, u32) {
    if batch.bytes.len() - begin <= PIECE_BYTES {
        return (batch.bytes.len(), batch.through);
    }
    let (mut end, mut through) = (begin, 0);
    while let Some(next) = frame_end(&batch.bytes, end).filter(|next| next - begin <= PIECE_BYTES) {
        through = number_of_order(&batch.bytes[end..next]).unwrap_or(0).max(through);
        end = next;
    }
    // No message is as long as a piece.
    if end > begin { (end, through) } else { (batch.bytes.len(), batch.through) }
}

/// Removes ended orders from the bytes that begin here; returns their number.
fn strike(bytes: &mut Vec<u8>, begin: usize, is_over: impl Fn(u32) -> bool) -> u64 {
    let (mut from, mut to, mut count) = (begin, begin, 0);
    while let Some(end) = frame_end(bytes, from) {
        if number_of_order(&bytes[from..end]).is_some_and(&is_over) {
            count += 1;
        } else {
            bytes.copy_within(from..end, to);
            to += end - from;
        }
        from = end;
    }
    bytes.truncate(to);
    count
}

/// The end of the frame that begins here.
fn frame_end(bytes: &[u8], begin: usize) -> Option<usize> {
    let length = bytes.get(begin..)?.first_chunk::<2>()?;
    Some(begin + length.len() + usize::from(u16::from_be_bytes(*length))).filter(|end| *end <= bytes.len())
}

/// The number of the order or the replacement in a frame, if it is one.
fn number_of_order(frame: &[u8]) -> Option<u32> {
    let message = frame.get(HEADER_BYTES..)?;
    inbound_user_ref_num(message).filter(|_| matches!(message.first(), Some(&Enter::KIND | &Replace::KIND)))
}
