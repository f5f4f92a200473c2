//! What one worker hands to another: a value of 128 bytes that travels through the rings as it is, without memory of
//! its own.

use weir_proto::{ouch::ClientOrderId, soup::Name};

use super::config::{VENUES_MAX, WORKERS_MAX};
use crate::overflow::{Handed, Role};

/// Longest message that one carries, appendage included.
pub(super) const MESSAGE_BYTES_MAX: usize = 96;

/// What a worker asks another for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// To the owner of the upstream session: a client's message.
    Order,
    /// To the owner: cancel whatever this account has open.
    CancelAll,
    /// To the account's home: a message for its client, with the client's own numbers.
    Reply,
    /// To the account's home: the order was not taken; the message is what [`Reject`] says.
    Reject,
    /// To the account's home: the client's message with this number was ignored and does not use it up.
    ReleaseNumber,
    /// To every worker: there is room upstream again.
    Room,
}

impl Handed for WorkerMessage {
    /// A cancel of everything comes behind the orders it is about.
    fn role(&self) -> Role {
        match self.kind {
            Kind::Order => Role::Message(self.account),
            Kind::CancelAll => Role::CancelAll(self.account),
            Kind::Reply | Kind::Reject | Kind::ReleaseNumber | Kind::Room => Role::Response,
        }
    }
}

/// One piece of work for another worker.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct WorkerMessage {
    /// When it was handed over, or received just before.
    pub(super) handed_ns: u64,
    /// When the message arrived: an order from its client, a reply from upstream.
    pub(super) received_ns: u64,
    /// Which message of which upstream session a reply is.
    pub(super) upstream_sequence: u64,
    /// Whose it is.
    pub(super) account: u32,
    pub(super) kind: Kind,
    length: u8,
    spare: [u8; 2],
    message: [u8; MESSAGE_BYTES_MAX],
}

const _: () = assert!(size_of::<WorkerMessage>() == 128, "a message of a worker is two cache lines");
const _: () = assert!(MESSAGE_BYTES_MAX <= u8::MAX as usize);

impl WorkerMessage {
    /// A worker's message around a client's or an exchange's; `None` when the message is too long for one.
    pub(super) fn new(kind: Kind, account: u32, message: &[u8]) -> Option<Self> {
        let mut worker_message = Self {
            handed_ns: 0,
            received_ns: 0,
            upstream_sequence: 0,
            account,
            kind,
            length: message.len() as u8,
            spare: [0; 2],
            message: [0; MESSAGE_BYTES_MAX],
        };
        worker_message.message.get_mut(..message.len())?.copy_from_slice(message);
        Some(worker_message)
    }

    /// One without such a message.
    pub(super) fn bare(kind: Kind, account: u32) -> Self {
        Self {
            handed_ns: 0,
            received_ns: 0,
            upstream_sequence: 0,
            account,
            kind,
            length: 0,
            spare: [0; 2],
            message: [0; MESSAGE_BYTES_MAX],
        }
    }

    /// The message.
    pub(super) fn message(&self) -> &[u8] {
        &self.message[..usize::from(self.length)]
    }
}

/// Why an order was not taken, for the account's home to tell its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reject {
    /// The client's number.
    pub(super) user_ref_num: u32,
    /// OUCH reason.
    pub(super) reason: u16,
    /// The client's own name for it.
    pub(super) client_order_id: ClientOrderId,
}

impl Reject {
    const BYTES: usize = 20;

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.user_ref_num.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.reason.to_be_bytes());
        bytes[6..].copy_from_slice(&self.client_order_id.0);
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (number, rest) = bytes.split_first_chunk::<4>()?;
        let (reason, client_order_id) = rest.split_first_chunk::<2>()?;
        Some(Self {
            user_ref_num: u32::from_be_bytes(*number),
            reason: u16::from_be_bytes(*reason),
            client_order_id: ClientOrderId(client_order_id.try_into().ok()?),
        })
    }
}

/// Names an upstream session in a journal. It stays the same when venues or workers are added.
pub(super) fn session_key(worker: usize, venue: usize) -> u32 {
    (worker * VENUES_MAX + venue) as u32
}

/// What [`session_key`] made: worker and venue.
pub(super) fn of_session_key(key: u32) -> (usize, usize) {
    (key as usize / VENUES_MAX, key as usize % VENUES_MAX)
}

/// The count of the session that an exchange begins after the one with this count; 0: after none. `None`: no journal
/// can tell it from those before.
pub(super) fn next_epoch(epoch: u16) -> Option<u16> {
    (epoch < EPOCH_MAX).then(|| epoch.max(EPOCH_OF_A_BYTE_MAX) + 1)
}

/// As far as an earlier version has counted, before it began again. So no count of it comes again behind them.
const EPOCH_OF_A_BYTE_MAX: u16 = 255;
/// As far as sessions are counted.
const EPOCH_MAX: u16 = (1 << EPOCH_BITS) - 1;

/// What a journal says of a session that was joined: its count, and its name.
pub(super) fn session_record(epoch: u16, session: &Name<10>) -> [u8; 12] {
    let mut record = [0; 12];
    record[..2].copy_from_slice(&epoch.to_le_bytes());
    record[2..].copy_from_slice(session.as_bytes());
    record
}

/// What [`session_record`] made, or an earlier version, which counted in a byte.
pub(super) fn of_session_record(payload: &[u8]) -> Option<(u16, Name<10>)> {
    let (epoch, name) = match payload.len() {
        11 => (u16::from(payload[0]), &payload[1..]),
        _ => payload.split_first_chunk().map(|(epoch, name)| (u16::from_le_bytes(*epoch), name))?,
    };
    Some((epoch, Name::from_padded(name).ok()?))
}

/// Names an upstream session in the record of an order, and which one of those it is that the exchange has begun.
pub(super) fn sent_key(session_key: u32, epoch: u16) -> u32 {
    session_key | u32::from(epoch) << 16
}

/// What [`sent_key`] made: the session's key, and the number among those that the exchange has begun; 0 where a version
/// wrote it that did not say.
pub(super) fn of_sent_key(key: u32) -> (u32, u16) {
    (key & 0xffff, (key >> 16) as u16)
}

/// What a journal says of a session that has answers for clients of a worker: which session that is of those that the
/// exchange has begun, the worker, and the last message before.
pub(super) fn home_record(epoch: u16, home: u16, before: u64) -> [u8; 12] {
    let mut record = [0; 12];
    record[..2].copy_from_slice(&epoch.to_le_bytes());
    record[2..4].copy_from_slice(&home.to_le_bytes());
    record[4..].copy_from_slice(&before.to_le_bytes());
    record
}

/// What [`home_record`] made, or an earlier version, which counted in a byte.
pub(super) fn of_home(payload: &[u8]) -> Option<(u16, u16, u64)> {
    let (epoch, rest) = match payload.len() {
        11 => (u16::from(payload[0]), &payload[1..]),
        _ => payload.split_first_chunk().map(|(epoch, rest)| (u16::from_le_bytes(*epoch), rest))?,
    };
    let (home, before) = rest.split_first_chunk()?;
    Some((epoch, u16::from_le_bytes(*home), u64::from_le_bytes(before.try_into().ok()?)))
}

/// Names a message of an upstream session in a journal: the session's key, its count among those that the exchange has
/// begun, and the message's number in it. The highest bit tells that from what an earlier version wrote.
pub(super) fn pack_sequence(session_key: u32, epoch: u16, sequence: u64) -> u64 {
    IS_WIDE
        | u64::from(session_key) << (SEQUENCE_BITS + EPOCH_BITS)
        | u64::from(epoch & EPOCH_MAX) << SEQUENCE_BITS
        | sequence & SEQUENCE_MASK
}

/// What [`pack_sequence`] made, or an earlier version: key, epoch and number.
pub(super) fn unpack_sequence(packed: u64) -> (u32, u16, u64) {
    if packed & IS_WIDE == 0 {
        return ((packed >> 48) as u32, u16::from((packed >> 40) as u8), packed & ((1 << 40) - 1));
    }
    let key = (packed & !IS_WIDE) >> (SEQUENCE_BITS + EPOCH_BITS);
    (key as u32, (packed >> SEQUENCE_BITS) as u16 & EPOCH_MAX, packed & SEQUENCE_MASK)
}

const IS_WIDE: u64 = 1 << 63;
const KEY_BITS: u32 = 14;
const EPOCH_BITS: u32 = 13;
const SEQUENCE_BITS: u32 = 36;
const SEQUENCE_MASK: u64 = (1 << SEQUENCE_BITS) - 1;

const _: () =
    assert!(KEY_BITS + EPOCH_BITS + SEQUENCE_BITS == 63 && VENUES_MAX * WORKERS_MAX <= 1 << KEY_BITS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_fits_exactly_is_carried_and_a_longer_one_is_not() {
        let longest = [7; MESSAGE_BYTES_MAX];
        let worker_message = WorkerMessage::new(Kind::Order, 3, &longest).expect("it fits");
        assert_eq!(worker_message.message(), longest);
        assert!(WorkerMessage::new(Kind::Order, 3, &[7; MESSAGE_BYTES_MAX + 1]).is_none());
        assert_eq!(WorkerMessage::bare(Kind::Room, 0).message(), b"");
    }

    #[test]
    fn a_refusal_survives_the_way() {
        let reject =
            Reject { user_ref_num: 9, reason: 2, client_order_id: ClientOrderId(*b"ORDER-0000001 ") };
        assert_eq!(Reject::from_bytes(&reject.to_bytes()), Some(reject));
        assert_eq!(Reject::from_bytes(&reject.to_bytes()[1..]), None);
    }

    #[test]
    fn a_sequence_number_keeps_its_session() {
        for (worker, venue, sequence) in
            [(0, 0, 1), (3, 1, 77), (WORKERS_MAX - 1, VENUES_MAX - 1, SEQUENCE_MASK)]
        {
            for count in [7, 256, EPOCH_MAX] {
                let packed = pack_sequence(session_key(worker, venue), count, sequence);
                let (key, epoch, found) = unpack_sequence(packed);
                assert_eq!((of_session_key(key), epoch, found), ((worker, venue), count, sequence));
                assert_eq!(of_sent_key(sent_key(key, count)), (key, count));
            }
        }
        assert_eq!(unpack_sequence(0), (0, 0, 0), "zero is no message of any session");
    }

    #[test]
    fn what_an_earlier_version_wrote_is_read_and_its_counts_never_come_again() {
        let key = session_key(255, 63);
        let sequence = 0x98_7654_3210;
        let packed = u64::from(key) << 48 | 255 << 40 | sequence;
        assert_eq!(unpack_sequence(packed), (key, 255, sequence));
        let day = "DAY".parse().expect("a name");
        assert_eq!(of_session_record(b"\x07DAY       "), Some((7, day)));
        assert_eq!(of_home(&[7, 2, 1, 9, 0, 0, 0, 0, 0, 0, 0]), Some((7, 258, 9)));
        for counted in [0, 1, 255] {
            assert_eq!(next_epoch(counted), Some(256), "{counted}");
        }
    }

    #[test]
    fn sessions_are_counted_as_far_as_they_can_be_told_from_each_other() {
        let day: Name<10> = "DAY".parse().expect("a name");
        let mut count = 0;
        while let Some(next) = next_epoch(count) {
            assert!(next > count);
            assert_eq!(of_session_record(&session_record(next, &day)), Some((next, day)));
            count = next;
        }
        assert_eq!(count, 8191);
        assert_eq!(of_session_record(&session_record(1, &day)[..1]), None);
    }

    #[test]
    fn where_answers_go_is_read_back() {
        let record = home_record(7, 258, SEQUENCE_MASK);
        assert_eq!(of_home(&record), Some((7, 258, SEQUENCE_MASK)));
        assert_eq!(of_home(&record[2..]), None);
        assert_eq!(of_home(&[]), None);
    }
}
