//! The contents of a message, and the check that what came back is what was sent.
//!
//! Message `k` of connection `c` is the first *B* bytes of this string, where *B* is the message size:
//!
//! | bytes | what | differs between |
//! | --- | --- | --- |
//! | 0 | low byte of `k` plus a byte of the connection's key | adjacent messages of one connection, always |
//! | 1..8 | hash of seed, `c` and `k` | any two messages, except with probability 2^-56 |
//! | 8..16 | `k`, little endian | any two messages of a connection, always |
//! | 16..20 | `c`, little endian | any two connections, always |
//! | 20..24 | *B*, little endian | |
//! | 24.. | a piece of the run's pool of random bytes, whose start depends on `c` and `k` | there are 4096 pieces |
//!
//! Every byte of every message is compared; the comparison runs at the speed of `memcmp` because the expected body
//! lies ready in the pool. The body of a message 4095 earlier, or of another connection, lies elsewhere in the pool.
//!
//! Messages smaller than the header contain a prefix of its fields, so one message proves less: a message of one byte
//! is byte 0 alone, and a foreign byte passes with a probability of 1/256. A lost or repeated message of any size is
//! always found, because byte 0 counts: from there on the messages are out of step.
//!
//! Nothing here does I/O or reads a clock.

use std::rc::Rc;

use weir_stats::random::splitmix_at;

/// Bytes before the body.
const HEADER_BYTES: usize = 24;
/// Number of different places in the pool at which a body can start; a power of two.
const PAYLOAD_STARTS: usize = 4096;
/// Distance between the bodies of successive messages. Odd, so that all starts are used before one returns.
const PAYLOAD_STEP: u64 = 1669;
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Random bytes from which all bodies of a run are cut.
#[derive(Debug)]
pub struct PayloadPool {
    bytes: Box<[u8]>,
    seed: u64,
    message_bytes: usize,
}

impl PayloadPool {
    /// The pool of a run; the same seed and size give the same bytes.
    ///
    /// # Panics
    /// Panics when `message_bytes` is zero: there is no empty message.
    pub fn new(seed: u64, message_bytes: u32) -> Self {
        assert!(message_bytes > 0, "a message has at least one byte");
        let message_bytes = message_bytes as usize;
        let length = PAYLOAD_STARTS + message_bytes.saturating_sub(HEADER_BYTES);
        let words = (0..length.div_ceil(8) as u64).flat_map(|word| mix(seed ^ mix(word)).to_le_bytes());
        Self { bytes: words.take(length).collect(), seed, message_bytes }
    }
}

/// Writes the messages of one connection and computes the expected ones.
#[derive(Clone, Debug)]
pub struct Codec {
    pool: Rc<PayloadPool>,
    connection: u32,
    key: u64,
}

impl Codec {
    /// The codec of `connection`.
    pub fn new(pool: Rc<PayloadPool>, connection: u32) -> Self {
        let key = mix(pool.seed.wrapping_add(mix(u64::from(connection) + 1)));
        Self { pool, connection, key }
    }

    /// Appends message `sequence`.
    #[inline]
    pub fn append(&self, sequence: u64, to: &mut Vec<u8>) {
        let header = self.header(sequence);
        let (head, body) = self.parts(&header, sequence);
        to.extend_from_slice(head);
        to.extend_from_slice(body);
    }

    /// Writes message `sequence` into a slice of its length.
    pub(crate) fn write(&self, sequence: u64, to: &mut [u8]) {
        let header = self.header(sequence);
        let (head, body) = self.parts(&header, sequence);
        to[..head.len()].copy_from_slice(head);
        to[head.len()..].copy_from_slice(body);
    }

    #[inline]
    fn parts<'a>(&'a self, header: &'a [u8; HEADER_BYTES], sequence: u64) -> (&'a [u8], &'a [u8]) {
        match self.pool.message_bytes.checked_sub(HEADER_BYTES) {
            Some(body_bytes) => (header, self.body(sequence, 0, body_bytes)),
            None => (&header[..self.pool.message_bytes], &[]),
        }
    }

    /// Size of every message.
    #[inline]
    pub fn message_bytes(&self) -> usize {
        self.pool.message_bytes
    }

    #[inline]
    fn header(&self, sequence: u64) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&mix(self.key ^ sequence.wrapping_mul(GOLDEN)).to_le_bytes());
        header[0] = (self.key >> 32).wrapping_add(sequence) as u8;
        header[8..16].copy_from_slice(&sequence.to_le_bytes());
        header[16..20].copy_from_slice(&self.connection.to_le_bytes());
        header[20..].copy_from_slice(&(self.pool.message_bytes as u32).to_le_bytes());
        header
    }

    #[inline]
    fn body(&self, sequence: u64, from: usize, length: usize) -> &[u8] {
        let start =
            self.key.wrapping_add(sequence.wrapping_mul(PAYLOAD_STEP)) as usize % PAYLOAD_STARTS + from;
        &self.pool.bytes[start..start + length]
    }

    /// Whether `piece` equals message `sequence` from `position` on.
    #[inline]
    fn matches(&self, sequence: u64, position: usize, piece: &[u8]) -> bool {
        let header = self.header(sequence);
        if position == 0
            && let Some((head, body)) = piece.split_first_chunk::<HEADER_BYTES>()
        {
            // A whole message at once, the usual case.
            return *head == header && body == self.body(sequence, 0, body.len());
        }
        let in_header = HEADER_BYTES.saturating_sub(position).min(piece.len());
        let (head, body) = piece.split_at(in_header);
        let from = (position + in_header).saturating_sub(HEADER_BYTES);
        (head.is_empty() || *head == header[position..position + in_header])
            && body == self.body(sequence, from, body.len())
    }

    /// Offset of the first byte of `piece` that differs from message `sequence` at `position`.
    fn first_difference(&self, sequence: u64, position: usize, piece: &[u8]) -> usize {
        let differs = |offset: usize| !self.matches(sequence, position + offset, &piece[offset..=offset]);
        (0..piece.len()).find(|offset| differs(*offset)).map_or(position, |offset| position + offset)
    }
}

/// Compares a stream of bytes, cut in any way, with the messages it must consist of.
#[derive(Debug)]
pub struct Verifier {
    codec: Codec,
    /// Message of the next byte, and the byte's position in it.
    sequence: u64,
    position: usize,
    /// Bytes of that message compared so far; counted, not derived from `position`.
    compared: u64,
}

/// The result of comparing a piece of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Messages that became complete.
    pub messages: u64,
    /// Bytes of those messages that were compared.
    pub bytes: u64,
    /// The first error. The rest of the stream cannot be trusted.
    pub wrong: Option<Wrong>,
}

/// An error in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// A byte differs from the sent one.
    #[error("message {sequence} of connection {connection} differs from what was sent at byte {offset}")]
    Differs {
        /// Connection number in the run.
        connection: u32,
        /// Message number on the connection.
        sequence: u64,
        /// Offset in the message.
        offset: usize,
    },
    /// Bytes arrived although every message had been answered.
    #[error("connection {connection} sent {bytes} bytes without a request after message {sequence}")]
    Unsolicited {
        /// Connection number in the run.
        connection: u32,
        /// Messages answered so far.
        sequence: u64,
        /// Number of bytes.
        bytes: usize,
    },
}

impl Verifier {
    /// A verifier that waits for message 0.
    pub fn new(codec: Codec) -> Self {
        Self { codec, sequence: 0, position: 0, compared: 0 }
    }

    /// The messages this verifier expects.
    pub fn codec(&self) -> &Codec {
        &self.codec
    }

    /// Compares the next bytes of the stream. `sent` is the number of messages sent so far: more cannot come back.
    #[inline]
    pub fn accept(&mut self, mut bytes: &[u8], sent: u64) -> Arrival {
        let message_bytes = self.codec.pool.message_bytes;
        let mut arrival = Arrival::default();
        while !bytes.is_empty() {
            if self.sequence >= sent {
                let connection = self.codec.connection;
                let unsolicited =
                    Wrong::Unsolicited { connection, sequence: self.sequence, bytes: bytes.len() };
                return Arrival { wrong: Some(unsolicited), ..arrival };
            }
            let (piece, rest) = bytes.split_at(bytes.len().min(message_bytes - self.position));
            if !self.codec.matches(self.sequence, self.position, piece) {
                return Arrival { wrong: Some(self.difference(piece)), ..arrival };
            }
            self.position += piece.len();
            self.compared += piece.len() as u64;
            if self.position == message_bytes {
                arrival.messages += 1;
                arrival.bytes += std::mem::take(&mut self.compared);
                self.sequence += 1;
                self.position = 0;
            }
            bytes = rest;
        }
        arrival
    }

    #[cold]
    fn difference(&self, piece: &[u8]) -> Wrong {
        Wrong::Differs {
            connection: self.codec.connection,
            sequence: self.sequence,
            offset: self.codec.first_difference(self.sequence, self.position, piece),
        }
    }
}

/// Every input bit reaches every output bit.
#[inline]
pub(crate) fn mix(input: u64) -> u64 {
    splitmix_at(input, 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stream(pool: &Rc<PayloadPool>, connection: u32, sequences: impl IntoIterator<Item = u64>) -> Vec<u8> {
        let codec = Codec::new(Rc::clone(pool), connection);
        let mut bytes = Vec::new();
        sequences.into_iter().for_each(|sequence| codec.append(sequence, &mut bytes));
        bytes
    }

    fn verifier(pool: &Rc<PayloadPool>, connection: u32) -> Verifier {
        Verifier::new(Codec::new(Rc::clone(pool), connection))
    }

    fn is_wrong(pool: &Rc<PayloadPool>, bytes: &[u8], sent: u64) -> bool {
        verifier(pool, 7).accept(bytes, sent).wrong.is_some()
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let pool = Rc::new(PayloadPool::new(1, 40));
        let bytes = stream(&pool, 0x0102_0304, [0x1122]);
        assert_eq!(bytes[8..16], 0x1122_u64.to_le_bytes());
        assert_eq!(bytes[16..20], 0x0102_0304_u32.to_le_bytes());
        assert_eq!(bytes[20..24], 40_u32.to_le_bytes());
        assert_eq!(pool.bytes.windows(16).filter(|window| *window == &bytes[24..]).count(), 1);
        let next = stream(&pool, 0x0102_0304, [0x1123]);
        assert_eq!(next[0], bytes[0].wrapping_add(1));
    }

    #[test]
    fn a_smaller_message_is_the_start_of_a_larger_one_but_for_the_size() {
        let whole = stream(&Rc::new(PayloadPool::new(9, 24)), 3, [5]);
        for size in 1..20 {
            assert_eq!(stream(&Rc::new(PayloadPool::new(9, size)), 3, [5]), whole[..size as usize]);
        }
    }

    #[test]
    fn every_single_wrong_byte_is_found_and_its_place_named() {
        for size in [1, 7, 8, 23, 24, 25, 64, 300] {
            let pool = Rc::new(PayloadPool::new(5, size));
            let right = stream(&pool, 7, 0..3);
            for place in 0..right.len() {
                for flip in [1, 0x80, 0xff] {
                    let mut bytes = right.clone();
                    bytes[place] ^= flip;
                    let arrival = verifier(&pool, 7).accept(&bytes, 3);
                    let (sequence, offset) = (place as u64 / u64::from(size), place % size as usize);
                    let expected = Wrong::Differs { connection: 7, sequence, offset };
                    assert_eq!((arrival.messages, arrival.wrong), (sequence, Some(expected)));
                }
            }
        }
    }

    #[test]
    fn lost_repeated_swapped_stale_and_foreign_messages_are_found() {
        for size in [8, 24, 64, 4096] {
            let pool = Rc::new(PayloadPool::new(11, size));
            let found =
                |sequences: &[u64]| is_wrong(&pool, &stream(&pool, 7, sequences.iter().copied()), 6000);
            assert!(!found(&[0, 1, 2, 3]));
            for order in [&[0, 2][..], &[1], &[0, 0], &[0, 1, 1], &[0, 1, 3, 2], &[0, 1, 2, 1], &[4096]] {
                assert!(found(order), "{order:?} of {size} bytes");
            }
            assert!(is_wrong(&pool, &stream(&pool, 8, [0]), 1));
            assert!(is_wrong(&Rc::new(PayloadPool::new(12, size)), &stream(&pool, 7, [0]), 1));
        }
    }

    #[test]
    fn one_byte_messages_out_of_step_are_found_at_the_first_of_them() {
        let pool = Rc::new(PayloadPool::new(3, 1));
        for lost in 0..200 {
            let rest = (0..lost).chain(lost + 1..300);
            let arrival = verifier(&pool, 7).accept(&stream(&pool, 7, rest), 300);
            assert_eq!((arrival.messages, arrival.wrong.is_some()), (lost, true));
            let repeated = (0..=lost).chain([lost]);
            let arrival = verifier(&pool, 7).accept(&stream(&pool, 7, repeated), 300);
            assert_eq!((arrival.messages, arrival.wrong.is_some()), (lost + 1, true));
        }
    }

    #[test]
    fn an_old_body_under_a_new_header_is_found() {
        let pool = Rc::new(PayloadPool::new(21, 64));
        let now = stream(&pool, 7, [5000]);
        for old in (0..5000_u64).rev().take(4095) {
            let mut mixed = now.clone();
            mixed[24..].copy_from_slice(&stream(&pool, 7, [old])[24..]);
            assert!(!Codec::new(Rc::clone(&pool), 7).matches(5000, 0, &mixed), "body of {old}");
        }
    }

    #[test]
    fn bytes_beyond_what_was_sent_are_unasked() {
        let pool = Rc::new(PayloadPool::new(2, 16));
        let arrival = verifier(&pool, 7).accept(&stream(&pool, 7, 0..2), 1);
        let unsolicited = Wrong::Unsolicited { connection: 7, sequence: 1, bytes: 16 };
        assert_eq!(arrival, Arrival { messages: 1, bytes: 16, wrong: Some(unsolicited) });
        assert!(verifier(&pool, 7).accept(&[0], 0).wrong.is_some());
    }

    proptest! {
        #[test]
        fn any_cut_of_a_right_stream_is_right(
            seed: u64,
            connection: u32,
            size in 1_u32..200,
            count in 1_u64..20,
            cuts in prop::collection::vec(1_usize..300, 1..50),
        ) {
            let pool = Rc::new(PayloadPool::new(seed, size));
            let bytes = stream(&pool, connection, 0..count);
            let mut verifier = verifier(&pool, connection);
            let (mut rest, mut messages, mut compared) = (&bytes[..], 0, 0);
            for cut in cuts.iter().cycle() {
                let (piece, later) = rest.split_at((*cut).min(rest.len()));
                let arrival = verifier.accept(piece, count);
                prop_assert_eq!(arrival.wrong, None);
                messages += arrival.messages;
                compared += arrival.bytes;
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!((messages, compared), (count, count * u64::from(size)));
        }

        #[test]
        fn any_edit_of_a_stream_is_found_however_it_is_cut(
            seed: u64,
            size in 1_u32..80,
            count in 2_u64..12,
            cut in 1_usize..100,
            edit in (0_usize..4, any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1_u8..=255),
        ) {
            let pool = Rc::new(PayloadPool::new(seed, size));
            let right = stream(&pool, 7, 0..count);
            let mut bytes = right.clone();
            let (kind, first, second, flip) = edit;
            let (first, second) = (first.index(bytes.len()), second.index(bytes.len()));
            match kind {
                0 => bytes[first] ^= flip,
                1 => bytes.swap(first, second),
                2 => drop(bytes.remove(first)),
                _ => bytes.insert(first, flip),
            }
            // A loss at the very end makes a short stream without a wrong byte.
            prop_assume!(!right.starts_with(&bytes));
            let mut verifier = verifier(&pool, 7);
            let wrong = bytes.chunks(cut).any(|piece| verifier.accept(piece, count).wrong.is_some());
            prop_assert!(wrong);
        }

        #[test]
        fn bytes_from_anywhere_never_make_it_panic(
            size in 1_u32..100,
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..10),
            sent in 0_u64..5,
        ) {
            let mut verifier = verifier(&Rc::new(PayloadPool::new(1, size)), 7);
            for piece in pieces {
                verifier.accept(&piece, sent);
            }
        }
    }
}
