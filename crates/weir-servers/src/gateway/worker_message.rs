//! A message from one worker to another: a value of 128 bytes that is copied through the rings, without allocation.

use weir_proto::{ouch::ClientOrderId, soup::Name};

use super::config::{VENUES_MAX, WORKERS_MAX};
use crate::overflow::{Handed, Role};

/// The longest message it can carry, including the appendage.
pub(super) const MESSAGE_BYTES_MAX: usize = 96;

/// The kind of a request to another worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// To the owner of the upstream session: a client's message.
    Order,
    /// To the owner: cancel all open orders of this account.
    CancelAll,
    /// To the account's home: a message for its client, with the client's own numbers.
    Reply,
    /// To the account's home: the order was not accepted; the message is an encoded [`Reject`].
    Reject,
    /// To the account's home: the client's message with this number was ignored without using it up.
    ReleaseNumber,
    /// To every worker: there is room upstream again.
    Room,
}

impl Handed for WorkerMessage {
    /// A cancel of all orders must follow the orders that it concerns.
    fn role(&self) -> Role {
        match self.kind {
            Kind::Order => Role::Message(self.account),
            Kind::CancelAll => Role::CancelAll(self.account),
            Kind::Reply | Kind::Reject | Kind::ReleaseNumber | Kind::Room => Role::Response,
        }
    }
}

/// One message to another worker.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct WorkerMessage {
    /// When it was handed over, or received just before.
    pub(super) handed_ns: u64,
    /// When the message arrived: an order from its client, a reply from upstream.
    pub(super) received_ns: u64,
    /// The message of the upstream session that a reply comes from.
    pub(super) upstream_sequence: u64,
    /// The account that it belongs to.
    pub(super) account: u32,
    pub(super) kind: Kind,
    length: u8,
    spare: [u8; 2],
    message: [u8; MESSAGE_BYTES_MAX],
}

const _: () = assert!(size_of::<WorkerMessage>() == 128, "a message of a worker is two cache lines");
const _: () = assert!(MESSAGE_BYTES_MAX <= u8::MAX as usize);

impl WorkerMessage {
    /// A worker message around a client's or an exchange's message; `None` if that is too long.
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

    /// A worker message without such a message.
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

    /// The message that it carries.
    pub(super) fn message(&self) -> &[u8] {
        &self.message[..usize::from(self.length)]
    }
}

/// Why an order was not accepted, for the account's home to inform its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reject {
    /// The client's number.
    pub(super) user_ref_num: u32,
    /// OUCH reason.
    pub(super) reason: u16,
    /// The client's name for the order.
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

/// The key of an upstream session in a journal. It stays the same when venues or workers are added.
pub(super) fn session_key(worker: usize, venue: usize) -> u32 {
    (worker * VENUES_MAX + venue) as u32
}

/// Splits a key from [`session_key`]: worker and venue.
pub(super) fn of_session_key(key: u32) -> (usize, usize) {
    (key as usize / VENUES_MAX, key as usize % VENUES_MAX)
}

/// The epoch of the session that an exchange begins after the one with this epoch; 0: there was none. `None`: no
/// epoch is left that a journal could distinguish from earlier ones.
pub(super) fn next_epoch(epoch: u16) -> Option<u16> {
    (epoch < EPOCH_MAX).then(|| epoch.max(EPOCH_OF_A_BYTE_MAX) + 1)
}

/// The largest epoch of an earlier version, which then wrapped around. Later epochs are above it, so none of them
/// repeats.
const EPOCH_OF_A_BYTE_MAX: u16 = 255;
/// The largest epoch.
const EPOCH_MAX: u16 = (1 << EPOCH_BITS) - 1;

/// The journal record of a joined session: its epoch and its name.
pub(super) fn session_record(epoch: u16, session: &Name<10>) -> [u8; 12] {
    let mut record = [0; 12];
    record[..2].copy_from_slice(&epoch.to_le_bytes());
    record[2..].copy_from_slice(session.as_bytes());
    record
}

/// Decodes a record of [`session_record`], or of an earlier version with a one-byte epoch.
pub(super) fn of_session_record(payload: &[u8]) -> Option<(u16, Name<10>)> {
    let (epoch, name) = match payload.len() {
        11 => (u16::from(payload[0]), &payload[1..]),
        _ => payload.split_first_chunk().map(|(epoch, name)| (u16::from_le_bytes(*epoch), name))?,
    };
    Some((epoch, Name::from_padded(name).ok()?))
}

/// The key of an upstream session in an order's record, with the exchange's epoch.
pub(super) fn sent_key(session_key: u32, epoch: u16) -> u32 {
    session_key | u32::from(epoch) << 16
}

/// Splits a key from [`sent_key`]: the session's key and the epoch, which is 0 in records of a version that did not
/// store it.
pub(super) fn of_sent_key(key: u32) -> (u32, u16) {
    (key & 0xffff, (key >> 16) as u16)
}

/// The journal record of a session that has answers for clients of a worker: the epoch of the session, the worker,
/// and the last message before.
pub(super) fn home_record(epoch: u16, home: u16, before: u64) -> [u8; 12] {
    let mut record = [0; 12];
    record[..2].copy_from_slice(&epoch.to_le_bytes());
    record[2..4].copy_from_slice(&home.to_le_bytes());
    record[4..].copy_from_slice(&before.to_le_bytes());
    record
}

/// Decodes a record of [`home_record`], or of an earlier version with a one-byte epoch.
pub(super) fn of_home(payload: &[u8]) -> Option<(u16, u16, u64)> {
    let (epoch, rest) = match payload.len() {
        11 => (u16::from(payload[0]), &payload[1..]),
        _ => payload.split_first_chunk().map(|(epoch, rest)| (u16::from_le_bytes(*epoch), rest))?,
    };
    let (home, before) = rest.split_first_chunk()?;
    Some((epoch, u16::from_le_bytes(*home), u64::from_le_bytes(before.try_into().ok()?)))
}

/// The key of a message of an upstream session in a journal: the session's key, its epoch, and the message's number
/// in it. The highest bit distinguishes it from keys of an earlier version.
pub(super) fn pack_sequence(session_key: u32, epoch: u16, sequence: u64) -> u64 {
    IS_WIDE
        | u64::from(session_key) << (SEQUENCE_BITS + EPOCH_BITS)
        | u64::from(epoch & EPOCH_MAX) << SEQUENCE_BITS
        | sequence & SEQUENCE_MASK
}

/// Splits a key from [`pack_sequence`] or from an earlier version: key, epoch and number.
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
