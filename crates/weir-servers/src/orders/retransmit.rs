//! The end of one account's stream, in memory: frames as they are sent, one after the other.
//!
//! It contains messages that are not durable yet, messages that still have to be sent to the account's connection,
//! and some sent ones that may be resent. The owner decides which may be dropped; the frames are contiguous, so a
//! message is found by walking from the last known position before it.

use std::collections::VecDeque;

use weir_proto::soup::HEADER_BYTES;

/// Memory grows by at most this much at a time, and so exceeds the contents only slightly.
const GROWTH_BYTES_MAX: usize = 1 << 20;

/// Memory grows by at least this much at a time.
const GROWTH_BYTES_MIN: usize = 4 << 10;

/// Trimming waits until the contents exceed the limit by this much: so it is done for many messages at a time.
const SLACK_BYTES: usize = 8 << 10;

/// Bytes between two known positions: a search and a trim walk over no more.
const STRIDE_BYTES: u64 = 4 << 10;

/// A position between two messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// Number of the message behind it.
    pub(super) sequence: u64,
    /// Bytes of all frames before it, since the start of this buffer.
    pub(super) offset: u64,
}

/// The last messages of a stream.
#[derive(Debug)]
pub(super) struct RetransmitBuffer {
    frames: VecDeque<u8>,
    start: Mark,
    end: Mark,
    /// Known positions behind `start`, in order: a stride from each to the next, and at most a message more.
    places: VecDeque<Mark>,
}

impl RetransmitBuffer {
    /// Creates an empty buffer; the next message has this number.
    pub(super) fn new(next: u64) -> Self {
        let mark = Mark { sequence: next, offset: 0 };
        Self { frames: VecDeque::new(), start: mark, end: mark, places: VecDeque::new() }
    }

    /// The position before the first message.
    #[cfg(test)]
    pub(super) fn start(&self) -> Mark {
        self.start
    }

    /// The position behind the last message.
    #[inline]
    pub(super) fn end(&self) -> Mark {
        self.end
    }

    /// Appends one whole frame.
    #[inline]
    pub(super) fn push(&mut self, frame: &[u8]) {
        if self.frames.capacity() - self.frames.len() < frame.len() {
            self.grow(frame.len());
        }
        let known = self.places.back().map_or(self.start.offset, |place| place.offset);
        if self.end.offset - known >= STRIDE_BYTES {
            self.places.push_back(self.end);
        }
        self.frames.extend(frame);
        self.end.sequence += 1;
        self.end.offset += frame.len() as u64;
    }

    #[cold]
    fn grow(&mut self, bytes: usize) {
        let more = self.frames.len().clamp(GROWTH_BYTES_MIN, GROWTH_BYTES_MAX);
        self.frames.reserve_exact(more.max(bytes));
    }

    /// The position before a message, if it is in the buffer, or behind the last one.
    pub(super) fn find(&self, sequence: u64) -> Option<Mark> {
        if !(self.start.sequence..=self.end.sequence).contains(&sequence) {
            return None;
        }
        let before = self.places.partition_point(|place| place.sequence <= sequence);
        let mut mark = before.checked_sub(1).map_or(self.start, |last| self.places[last]);
        while mark.sequence < sequence {
            mark = self.after(mark);
        }
        Some(mark)
    }

    /// The position that whole messages from `from` up to `to` reach within `bytes_max` bytes, but at least one
    /// message.
    pub(super) fn advance(&self, from: Mark, to: Mark, bytes_max: usize) -> Mark {
        if to.offset - from.offset <= bytes_max as u64 {
            return to;
        }
        let mut mark = from;
        while mark.sequence < to.sequence {
            let next = self.after(mark);
            if next.offset - from.offset > bytes_max as u64 && mark != from {
                break;
            }
            mark = next;
        }
        mark
    }

    /// The frames between two positions, as two pieces.
    pub(super) fn between(&self, from: Mark, to: Mark) -> (&[u8], &[u8]) {
        let (first, second) = self.frames.as_slices();
        let (begin, end) = (self.index(from), self.index(to));
        let cut = first.len();
        let head = &first[begin.min(cut)..end.min(cut)];
        let rest = &second[begin.saturating_sub(cut)..end.saturating_sub(cut)];
        (head, rest)
    }

    /// Drops the oldest messages until at most `bytes_max` bytes are left, but none behind `keep`.
    #[inline]
    pub(super) fn trim(&mut self, bytes_max: usize, keep: Mark) {
        if self.frames.len() > bytes_max.saturating_add(SLACK_BYTES) {
            self.forget(bytes_max, keep);
        }
    }

    fn forget(&mut self, bytes_max: usize, keep: Mark) {
        // Up to a known position, even if that is slightly more: this avoids reading old frames.
        let mut mark = self.start;
        while self.end.offset - mark.offset > bytes_max as u64
            && let Some(place) = self.places.front().copied().filter(|place| place.sequence <= keep.sequence)
        {
            mark = place;
            self.places.pop_front();
        }
        while mark.sequence < keep.sequence && self.end.offset - mark.offset > bytes_max as u64 {
            mark = self.after(mark);
        }
        self.frames.drain(..self.index(mark));
        self.start = mark;
        if self.frames.capacity() > 4 * (bytes_max + SLACK_BYTES) && self.frames.len() <= bytes_max {
            // After a slow client.
            self.frames.shrink_to(2 * (bytes_max + SLACK_BYTES));
        }
    }

    /// Its memory in bytes.
    #[cfg(test)]
    pub(super) fn capacity_bytes(&self) -> usize {
        self.frames.capacity()
    }

    /// The position behind the message at a position.
    fn after(&self, mark: Mark) -> Mark {
        let index = self.index(mark);
        let length = u16::from_be_bytes([self.frames[index], self.frames[index + 1]]);
        let frame_bytes = u64::from(length) + HEADER_BYTES as u64 - 1;
        Mark { sequence: mark.sequence + 1, offset: mark.offset + frame_bytes }
    }

    fn index(&self, mark: Mark) -> usize {
        (mark.offset - self.start.offset) as usize
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir_proto::soup::{SEQUENCED, encode_frame};

    use super::*;

    fn frame(payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_frame(SEQUENCED, payload, &mut bytes);
        bytes
    }

    fn all(buffer: &RetransmitBuffer, from: Mark, to: Mark) -> Vec<u8> {
        let (first, second) = buffer.between(from, to);
        [first, second].concat()
    }

    proptest! {
        #[test]
        fn every_message_held_is_found_whatever_was_trimmed(
            lengths in prop::collection::vec(0_usize..900, 1..200),
            bytes_max in 0_usize..30_000,
            kept in 0_u64..200,
        ) {
            let mut buffer = RetransmitBuffer::new(1);
            let mut frames = Vec::new();
            for (number, length) in lengths.iter().enumerate() {
                let frame = frame(&vec![number as u8; *length]);
                buffer.push(&frame);
                frames.push(frame);
                // Unsent messages stay.
                let nearest = if kept > buffer.start().sequence { buffer.end() } else { buffer.start() };
                let keep = buffer.find(kept.max(1)).unwrap_or(nearest);
                buffer.trim(bytes_max, keep);
                prop_assert!(buffer.start().sequence <= keep.sequence);
            }
            let (start, end) = (buffer.start(), buffer.end());
            prop_assert_eq!(end.sequence, frames.len() as u64 + 1);
            for sequence in start.sequence..=end.sequence {
                let mark = buffer.find(sequence).expect("it is held");
                prop_assert_eq!(all(&buffer, mark, end), frames[sequence as usize - 1..].concat());
                let next = buffer.advance(mark, end, 1000);
                prop_assert!(next.sequence > mark.sequence || mark == end);
                prop_assert!(next.offset - mark.offset <= 1000 || next.sequence == mark.sequence + 1);
            }
            prop_assert_eq!(buffer.find(end.sequence + 1), None);
            prop_assert_eq!(buffer.find(start.sequence.wrapping_sub(1)).is_none(), true);
        }
    }

    #[test]
    fn memory_follows_what_is_held() {
        let message = frame(&[b'x'; 64]);
        let mut buffer = RetransmitBuffer::new(1);
        let start = buffer.start();
        while buffer.end().offset < 4 << 20 {
            buffer.push(&message);
            buffer.trim(64 << 10, start);
        }
        assert!(buffer.capacity_bytes() <= 5 << 20, "{}", buffer.capacity_bytes());
        assert_eq!(buffer.start().sequence, 1, "all of it is still to be sent");
        buffer.trim(64 << 10, buffer.end());
        assert!(buffer.end().offset - buffer.start().offset <= 64 << 10);
        assert!(buffer.capacity_bytes() <= 160 << 10, "{}", buffer.capacity_bytes());
    }
}
