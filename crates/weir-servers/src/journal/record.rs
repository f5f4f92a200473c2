//! Records as bytes. Pure: it reads and writes memory only.
//!
//! | bytes | field |
//! | --- | --- |
//! | 0..4 | length: header and payload, without padding |
//! | 4..8 | CRC-32C of all bytes behind it, padding included, continued from the length |
//! | 8 | type |
//! | 9 | flags: bits 0 to 6 the number of the batch, bit 7 the batch ends here |
//! | 10..12 | worker |
//! | 12..20 | number of the record |
//! | 20..28 | time in nanoseconds, on a clock of the writer's choice |
//! | 28..32 | session |
//! | 32.. | payload, and zeros up to a multiple of 8 bytes |
//!
//! Numbers are little-endian. A header of zeros marks the end of the log.
//!
//! "Continued from the length" means that the checksum's initial value is the length, as if earlier bytes had left it
//! there. So a changed length is detected even if the padding would hide it.

use super::Lsn;

/// Bytes before the payload.
pub const HEADER_BYTES: usize = 32;

/// Records begin at multiples of this.
pub const ALIGNMENT_BYTES: usize = 8;

/// Longest record, including padding.
pub const RECORD_BYTES_MAX: usize = 64 << 10;

/// Numbers of batches: they are used in rotation.
pub const BATCH_NUMBERS: u8 = 128;

const LENGTH_AT: usize = 0;
const CHECKSUM_AT: usize = LENGTH_AT + size_of::<u32>();
const KIND_AT: usize = CHECKSUM_AT + size_of::<u32>();
const FLAGS_AT: usize = KIND_AT + size_of::<u8>();
const WORKER_AT: usize = FLAGS_AT + size_of::<u8>();
const LSN_AT: usize = WORKER_AT + size_of::<u16>();
const TIME_AT: usize = LSN_AT + size_of::<u64>();
const SESSION_AT: usize = TIME_AT + size_of::<u64>();

const _: () = assert!(SESSION_AT + size_of::<u32>() == HEADER_BYTES);
const _: () = assert!(RECORD_BYTES_MAX.is_multiple_of(ALIGNMENT_BYTES));

/// Bit of the flags: the batch ends with this record.
const BATCH_ENDS: u8 = BATCH_NUMBERS;

/// A record in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordView<'a> {
    /// Type, chosen by the writer.
    pub kind: u8,
    /// Number of the batch it was written with, below [`BATCH_NUMBERS`].
    pub batch: u8,
    /// Whether it is the last record of its batch.
    pub ends_batch: bool,
    /// The worker whose journal contains it.
    pub worker: u16,
    /// Its number.
    pub lsn: Lsn,
    /// Time in nanoseconds, from the writer.
    pub t_ns: u64,
    /// Session or account, from the writer.
    pub session: u32,
    /// The recorded bytes.
    pub payload: &'a [u8],
}

/// The fields of a record besides its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// See [`RecordView::kind`].
    pub kind: u8,
    /// See [`RecordView::batch`].
    pub batch: u8,
    /// See [`RecordView::worker`].
    pub worker: u16,
    /// See [`RecordView::lsn`].
    pub lsn: Lsn,
    /// See [`RecordView::t_ns`].
    pub t_ns: u64,
    /// See [`RecordView::session`].
    pub session: u32,
}

/// The kinds of damage in the place of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// An impossible length.
    #[error("the length of the record there is impossible")]
    Length,
    /// The bytes do not match their checksum.
    #[error("the checksum of the record there does not match")]
    Checksum,
    /// The checksum matches, but the padding is not ours.
    #[error("the padding of the record there is not empty")]
    Padding,
    /// A record of another worker.
    #[error("the record there belongs to worker {0}")]
    OtherWorker(u16),
    /// A record that does not follow the previous one.
    #[error("record {found} is there, where {expected} belongs")]
    Sequence {
        /// Its number.
        found: Lsn,
        /// The expected number.
        expected: Lsn,
    },
    /// Zeros in front of other bytes.
    #[error("no record is there, and the log goes on behind")]
    Hole,
}

/// The result of decoding at a record's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// A whole record.
    Record {
        /// The record.
        record: RecordView<'a>,
        /// Its length with padding.
        bytes: usize,
    },
    /// The end of the log.
    End,
    /// More bytes are needed to decide.
    Cut {
        /// How many, counted from the record's start.
        needed: usize,
    },
    /// No record.
    Damaged(Damage),
}

/// The length of a record with this payload, including padding.
pub const fn encoded_bytes(payload_bytes: usize) -> usize {
    HEADER_BYTES.saturating_add(payload_bytes).saturating_add(ALIGNMENT_BYTES - 1) & !(ALIGNMENT_BYTES - 1)
}

/// Appends a record to `out`; its payload is the concatenation of `parts`. Returns the bytes appended.
///
/// # Panics
/// If it is longer than [`RECORD_BYTES_MAX`], or has an invalid batch.
pub fn encode(head: &Head, parts: &[&[u8]], out: &mut Vec<u8>) -> usize {
    assert!(head.batch < BATCH_NUMBERS, "batches have seven bits");
    let start = out.len();
    let mut header = [0; HEADER_BYTES];
    header[KIND_AT] = head.kind;
    header[FLAGS_AT] = head.batch;
    header[WORKER_AT..LSN_AT].copy_from_slice(&head.worker.to_le_bytes());
    header[LSN_AT..TIME_AT].copy_from_slice(&head.lsn.to_le_bytes());
    header[TIME_AT..SESSION_AT].copy_from_slice(&head.t_ns.to_le_bytes());
    header[SESSION_AT..].copy_from_slice(&head.session.to_le_bytes());
    out.extend_from_slice(&header);
    for part in parts {
        out.extend_from_slice(part);
    }
    let length = out.len() - start;
    let padded = encoded_bytes(length - HEADER_BYTES);
    assert!(padded <= RECORD_BYTES_MAX, "a record of {padded} bytes");
    out.resize(start + padded, 0);
    let record = &mut out[start..];
    record[LENGTH_AT..CHECKSUM_AT].copy_from_slice(&(length as u32).to_le_bytes());
    write_checksum(record);
    padded
}

/// Marks a whole record in memory as the last one of its batch.
pub fn end_batch(record: &mut [u8]) {
    record[FLAGS_AT] |= BATCH_ENDS;
    write_checksum(record);
}

fn write_checksum(record: &mut [u8]) {
    let value = checksum(record);
    record[CHECKSUM_AT..KIND_AT].copy_from_slice(&value.to_le_bytes());
}

/// The checksum of a whole record with its padding.
fn checksum(record: &[u8]) -> u32 {
    crc32c::crc32c_append(number32(record, LENGTH_AT), &record[KIND_AT..])
}

fn number32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
}

fn number64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]))
}

/// Decodes the record at the start of `bytes`.
#[inline]
pub fn decode(bytes: &[u8]) -> Decoded<'_> {
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Decoded::Cut { needed: HEADER_BYTES };
    };
    let length = number32(header, LENGTH_AT) as usize;
    if length == 0 && header.iter().all(|byte| *byte == 0) {
        return Decoded::End;
    }
    if !(HEADER_BYTES..=RECORD_BYTES_MAX).contains(&length) {
        return Decoded::Damaged(Damage::Length);
    }
    let padded = encoded_bytes(length - HEADER_BYTES);
    let Some(whole) = bytes.get(..padded) else { return Decoded::Cut { needed: padded } };
    if checksum(whole) != number32(header, CHECKSUM_AT) {
        return Decoded::Damaged(Damage::Checksum);
    }
    if whole[length..].iter().any(|byte| *byte != 0) {
        return Decoded::Damaged(Damage::Padding);
    }
    Decoded::Record { record: view(header, &whole[HEADER_BYTES..length]), bytes: padded }
}

fn view<'a>(header: &[u8; HEADER_BYTES], payload: &'a [u8]) -> RecordView<'a> {
    RecordView {
        kind: header[KIND_AT],
        batch: header[FLAGS_AT] & !BATCH_ENDS,
        ends_batch: header[FLAGS_AT] & BATCH_ENDS != 0,
        worker: u16::from_le_bytes([header[WORKER_AT], header[WORKER_AT + 1]]),
        lsn: number64(header, LSN_AT),
        t_ns: number64(header, TIME_AT),
        session: number32(header, SESSION_AT),
        payload,
    }
}

/// The checksum in a header, whether or not it matches. `bytes` are at least a header.
pub(super) fn stored_checksum(bytes: &[u8]) -> u32 {
    number32(bytes, CHECKSUM_AT)
}

/// The worker and the number in a header, whether or not it is valid. `bytes` are at least a header.
pub(super) fn claims(bytes: &[u8]) -> (u16, Lsn) {
    (u16::from_le_bytes([bytes[WORKER_AT], bytes[WORKER_AT + 1]]), number64(bytes, LSN_AT))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn heads() -> impl Strategy<Value = Head> {
        (any::<u8>(), 0..BATCH_NUMBERS, any::<u16>(), any::<u64>(), any::<u64>(), any::<u32>()).prop_map(
            |(kind, batch, worker, lsn, t_ns, session)| Head { kind, batch, worker, lsn, t_ns, session },
        )
    }

    fn payloads() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(any::<u8>(), 0..100)
    }

    fn decoded(bytes: &[u8]) -> (RecordView<'_>, usize) {
        match decode(bytes) {
            Decoded::Record { record, bytes } => (record, bytes),
            other => panic!("a record was encoded, and {other:?} is found"),
        }
    }

    const HEAD: Head = Head { kind: 1, batch: 2, worker: 3, lsn: 4, t_ns: 5, session: 6 };

    #[test]
    fn the_bytes_are_those_of_the_table() {
        let mut bytes = Vec::new();
        assert_eq!(encode(&HEAD, &[b"ab", b"", b"c"], &mut bytes), 40);
        assert_eq!(bytes[0..4], [35, 0, 0, 0]);
        assert_eq!(bytes[8..12], [1, 2, 3, 0]);
        assert_eq!(bytes[12..20], [4, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[20..28], [5, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[28..32], [6, 0, 0, 0]);
        assert_eq!(bytes[32..40], *b"abc\0\0\0\0\0");
        let checksum = crc32c::crc32c_append(35, &bytes[8..]);
        assert_eq!(bytes[4..8], checksum.to_le_bytes());
    }

    #[test]
    fn a_header_of_zeros_is_the_end_and_a_part_of_one_is_not() {
        assert_eq!(decode(&[0; 32]), Decoded::End);
        assert_eq!(decode(&[0; 31]), Decoded::Cut { needed: 32 });
        let mut almost = [0; 32];
        almost[31] = 1;
        assert_eq!(decode(&almost), Decoded::Damaged(Damage::Length));
    }

    #[test]
    fn the_longest_record_is_read_back_and_a_longer_length_is_damage() {
        let payload = vec![7; RECORD_BYTES_MAX - HEADER_BYTES];
        let mut bytes = Vec::new();
        assert_eq!(encode(&HEAD, &[&payload], &mut bytes), RECORD_BYTES_MAX);
        assert_eq!(decoded(&bytes).0.payload, payload);
        bytes[0..4].copy_from_slice(&(RECORD_BYTES_MAX as u32 + 1).to_le_bytes());
        assert_eq!(decode(&bytes), Decoded::Damaged(Damage::Length));
    }

    #[test]
    fn padding_that_is_not_empty_is_no_record_of_ours() {
        let mut bytes = Vec::new();
        encode(&HEAD, &[b"abc"], &mut bytes);
        bytes[39] = 1;
        write_checksum(&mut bytes);
        assert_eq!(decode(&bytes), Decoded::Damaged(Damage::Padding));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            head in heads(),
            parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 0..5),
            before in proptest::collection::vec(any::<u8>(), 0..20),
            behind in proptest::collection::vec(any::<u8>(), 0..50),
            ends_batch in any::<bool>(),
        ) {
            let mut bytes = before.clone();
            let lent: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            let payload = parts.concat();
            let padded = encode(&head, &lent, &mut bytes);
            prop_assert_eq!(bytes.len(), before.len() + padded);
            prop_assert_eq!(padded, encoded_bytes(payload.len()));
            if ends_batch {
                end_batch(&mut bytes[before.len()..]);
            }
            bytes.extend_from_slice(&behind);
            let (record, taken) = decoded(&bytes[before.len()..]);
            prop_assert_eq!(taken, padded);
            let Head { kind, batch, worker, lsn, t_ns, session } = head;
            let expected =
                RecordView { kind, batch, ends_batch, worker, lsn, t_ns, session, payload: &payload };
            prop_assert_eq!(record, expected);
            prop_assert_eq!(claims(&bytes[before.len()..]), (worker, lsn));
        }

        #[test]
        fn a_record_that_is_cut_asks_for_the_rest(head in heads(), payload in payloads()) {
            let mut bytes = Vec::new();
            let padded = encode(&head, &[&payload], &mut bytes);
            for length in 0..padded {
                let needed = if length < HEADER_BYTES { HEADER_BYTES } else { padded };
                prop_assert_eq!(decode(&bytes[..length]), Decoded::Cut { needed });
            }
        }

        #[test]
        fn no_flipped_bit_is_overlooked(head in heads(), payload in payloads()) {
            let mut bytes = Vec::new();
            encode(&head, &[&payload], &mut bytes);
            // A longer length must have bytes to cover.
            bytes.extend_from_slice(&[0xa5; 256]);
            for bit in 0..encoded_bytes(payload.len()) * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                let found = decode(&bytes);
                prop_assert!(
                    matches!(found, Decoded::Damaged(_) | Decoded::Cut { .. }),
                    "bit {} gave {:?}", bit, found
                );
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }

        #[test]
        fn any_bytes_are_decoded_without_a_panic_and_in_one_way_only(bytes in payloads()) {
            if let Decoded::Record { record, bytes: taken } = decode(&bytes) {
                let RecordView { kind, batch, ends_batch, worker, lsn, t_ns, session, payload } = record;
                let mut again = Vec::new();
                encode(&Head { kind, batch, worker, lsn, t_ns, session }, &[payload], &mut again);
                if ends_batch {
                    end_batch(&mut again);
                }
                prop_assert_eq!(&again[..], &bytes[..taken]);
            }
        }
    }
}
