//! The journal records of sessions: their payloads, as in the table in `docs/formats/order-records.md`.
//! Little-endian; accounts are stored by name, because their indices may change from one start to the next.

use weir_proto::soup::Name;

/// The kinds of records of sessions. A new one needs a description in [`super::described`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum SessionRecord {
    /// One message of an account's stream.
    Sequenced = 1,
    /// A client's message, as received.
    Inbound = 2,
    /// The session was ended explicitly, and cannot be joined again.
    Ended = 3,
    /// A refused client's message, as received: as an inbound record, with the reason for its number.
    Refused = 4,
    /// A client's message that was sent upstream, as received: as an inbound record. The header's session is the
    /// application's value, not the account's index.
    Sent = 5,
}

impl SessionRecord {
    pub(super) const ALL: [Self; 5] =
        [Self::Sequenced, Self::Inbound, Self::Ended, Self::Refused, Self::Sent];

    /// The kind in a record's header.
    pub(super) const fn kind(self) -> u8 {
        self as u8
    }

    /// `None`: it is the application's, or from a later version.
    pub(super) fn of(kind: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|record| record.kind() == kind)
    }
}

pub(super) const SEQUENCED: u8 = SessionRecord::Sequenced.kind();
pub(super) const INBOUND: u8 = SessionRecord::Inbound.kind();
pub(super) const ENDED: u8 = SessionRecord::Ended.kind();
pub(super) const REFUSED: u8 = SessionRecord::Refused.kind();
pub(super) const SENT: u8 = SessionRecord::Sent.kind();

const NAME_BYTES: usize = 6;

/// The fields before the message in a sequenced record.
pub(super) const SEQUENCED_HEAD_BYTES: usize = 8 + 8 + NAME_BYTES + 2;
/// The fields before the message in an inbound record, a refused one, and one that was sent upstream.
pub(super) const INBOUND_HEAD_BYTES: usize = 4 + NAME_BYTES + 2;

const _: () = assert!(SEQUENCED_HEAD_BYTES == 24 && INBOUND_HEAD_BYTES == 12);

/// A sequenced record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sequenced<'a> {
    pub(super) sequence: u64,
    pub(super) upstream_sequence: u64,
    pub(super) name: Name<6>,
    pub(super) generation: u16,
    pub(super) message: &'a [u8],
}

/// An inbound record, a refused one, or one that was sent upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inbound<'a> {
    /// The number upstream; in a refused one, the reason.
    pub(super) upstream: u32,
    pub(super) name: Name<6>,
    pub(super) generation: u16,
    pub(super) raw: &'a [u8],
}

#[inline]
pub(super) fn sequenced_head(
    sequence: u64,
    upstream_sequence: u64,
    name: &Name<6>,
    generation: u16,
) -> [u8; SEQUENCED_HEAD_BYTES] {
    let mut head = [0; SEQUENCED_HEAD_BYTES];
    head[..8].copy_from_slice(&sequence.to_le_bytes());
    head[8..16].copy_from_slice(&upstream_sequence.to_le_bytes());
    head[16..22].copy_from_slice(name.as_bytes());
    head[22..].copy_from_slice(&generation.to_le_bytes());
    head
}

#[inline]
pub(super) fn inbound_head(name: &Name<6>, generation: u16, upstream: u32) -> [u8; INBOUND_HEAD_BYTES] {
    let mut head = [0; INBOUND_HEAD_BYTES];
    head[..4].copy_from_slice(&upstream.to_le_bytes());
    head[4..10].copy_from_slice(name.as_bytes());
    head[10..].copy_from_slice(&generation.to_le_bytes());
    head
}

/// Parses the payload of a sequenced record; `None` if it is malformed.
pub(super) fn sequenced(payload: &[u8]) -> Option<Sequenced<'_>> {
    let (head, message) = payload.split_first_chunk::<SEQUENCED_HEAD_BYTES>()?;
    let (sequence, head) = head.split_first_chunk::<8>()?;
    let (upstream_sequence, head) = head.split_first_chunk::<8>()?;
    let (name, generation) = head.split_first_chunk::<NAME_BYTES>()?;
    Some(Sequenced {
        sequence: u64::from_le_bytes(*sequence),
        upstream_sequence: u64::from_le_bytes(*upstream_sequence),
        name: Name::from_padded(name).ok()?,
        generation: u16::from_le_bytes(generation.try_into().ok()?),
        message,
    })
}

/// Parses the payload of an inbound record; `None` if it is malformed.
pub(super) fn inbound(payload: &[u8]) -> Option<Inbound<'_>> {
    let (head, raw) = payload.split_first_chunk::<INBOUND_HEAD_BYTES>()?;
    let (upstream, head) = head.split_first_chunk::<4>()?;
    let (name, generation) = head.split_first_chunk::<NAME_BYTES>()?;
    Some(Inbound {
        upstream: u32::from_le_bytes(*upstream),
        name: Name::from_padded(name).ok()?,
        generation: u16::from_le_bytes(generation.try_into().ok()?),
        raw,
    })
}

/// Parses the payload of an ended session's record.
pub(super) fn ended(payload: &[u8]) -> Option<u16> {
    Some(u16::from_le_bytes(payload.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn records_are_read_back(
            sequence: u64,
            upstream_sequence: u64,
            upstream: u32,
            generation: u16,
            message in prop::collection::vec(any::<u8>(), 0..100),
        ) {
            let name: Name<6> = "C00042".parse().expect("a name");
            let mut payload = sequenced_head(sequence, upstream_sequence, &name, generation).to_vec();
            payload.extend_from_slice(&message);
            let expected = Sequenced { sequence, upstream_sequence, name, generation, message: &message };
            prop_assert_eq!(sequenced(&payload), Some(expected));
            let mut payload = inbound_head(&name, generation, upstream).to_vec();
            payload.extend_from_slice(&message);
            prop_assert_eq!(inbound(&payload), Some(Inbound { upstream, name, generation, raw: &message }));
        }

        #[test]
        fn what_is_too_short_is_no_record(payload in prop::collection::vec(any::<u8>(), 0..30)) {
            prop_assert_eq!(sequenced(&payload).is_some(), payload.len() >= SEQUENCED_HEAD_BYTES
                && Name::<6>::from_padded(&payload[16..22]).is_ok());
            prop_assert!(payload.len() >= INBOUND_HEAD_BYTES || inbound(&payload).is_none());
            prop_assert_eq!(ended(&payload).is_some(), payload.len() == 2);
        }
    }
}
