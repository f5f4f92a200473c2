//! Records that wait to be written, in batches of one write each. Pure: memory only.

use std::collections::VecDeque;

use super::{
    JournalError, Lsn, Position,
    record::{self, BATCH_NUMBERS, Head, RECORD_BYTES_MAX},
    segment,
};

/// Buffers that are kept for later batches: one fills while another is written.
const BUFFERS_KEPT_MAX: usize = 2;

/// Largest buffer that is kept, in bytes.
const BUFFER_BYTES_KEPT_MAX: usize = 1 << 20;

/// The bytes of one write, into one segment.
#[derive(Debug)]
pub(super) struct Batch {
    /// Where it is written.
    pub(super) at: Position,
    pub(super) bytes: Vec<u8>,
    pub(super) records: u64,
    pub(super) last_lsn: Lsn,
    number: u8,
    /// Where its last record begins.
    last_at: usize,
}

impl Batch {
    /// The position of the next record, unless that is in another segment.
    pub(super) fn end(&self) -> Position {
        Position { offset: self.at.offset + self.bytes.len() as u64, ..self.at }
    }
}

/// The position at which a journal continues.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) worker: u16,
    pub(super) next_lsn: Lsn,
    pub(super) next_batch: u8,
    pub(super) position: Position,
    /// Length of that position's segment.
    pub(super) segment_end: u64,
    /// Length of each later segment.
    pub(super) segment_bytes: u64,
    /// Most bytes that may wait.
    pub(super) bytes_max: usize,
}

/// Waiting batches, the next one to write in front.
#[derive(Debug)]
pub(super) struct Pending {
    worker: u16,
    next_lsn: Lsn,
    next_batch: u8,
    position: Position,
    segment_end: u64,
    segment_bytes: u64,
    bytes_max: usize,
    queue: VecDeque<Batch>,
    bytes: usize,
    buffers: Vec<Vec<u8>>,
}

impl Pending {
    pub(super) fn new(start: Start) -> Self {
        let Start { worker, next_lsn, next_batch, position, segment_end, segment_bytes, bytes_max } = start;
        Self {
            worker,
            next_lsn,
            next_batch,
            position,
            segment_end,
            segment_bytes,
            bytes_max,
            queue: VecDeque::new(),
            bytes: 0,
            buffers: Vec::new(),
        }
    }

    /// Number of the last record taken.
    pub(super) fn last_lsn(&self) -> Lsn {
        self.next_lsn - 1
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes a record; returns its number, and the position it will have.
    pub(super) fn append(
        &mut self,
        kind: u8,
        session: u32,
        t_ns: u64,
        parts: &[&[u8]],
    ) -> Result<(Lsn, Position), JournalError> {
        let payload_bytes = parts.iter().fold(0_usize, |sum, part| sum.saturating_add(part.len()));
        let bytes = record::encoded_bytes(payload_bytes);
        let bytes_max = self.record_bytes_max();
        if bytes > bytes_max {
            return Err(JournalError::TooLong { bytes, bytes_max });
        }
        if self.bytes + bytes > self.bytes_max {
            return Err(JournalError::Full);
        }
        if self.position.offset + bytes as u64 > self.segment_end {
            let segment = self.position.segment + 1;
            self.position = Position { segment, offset: segment::HEADER_BYTES as u64 };
            self.segment_end = self.segment_bytes;
        }
        let (worker, lsn, position) = (self.worker, self.next_lsn, self.position);
        let batch = self.open_batch();
        let head = Head { kind, batch: batch.number, worker, lsn, t_ns, session };
        batch.last_at = batch.bytes.len();
        record::encode(&head, parts, &mut batch.bytes);
        batch.records += 1;
        batch.last_lsn = lsn;
        self.bytes += bytes;
        self.position.offset += bytes as u64;
        self.next_lsn += 1;
        Ok((lsn, position))
    }

    /// The longest record that fits into a new segment.
    fn record_bytes_max(&self) -> usize {
        let room = self.segment_bytes - segment::HEADER_BYTES as u64;
        usize::try_from(room).unwrap_or(usize::MAX).min(RECORD_BYTES_MAX)
    }

    /// The batch that takes a record at the current position.
    fn open_batch(&mut self) -> &mut Batch {
        let is_open = self.queue.back().is_some_and(|batch| batch.at.segment == self.position.segment);
        if !is_open {
            let batch = Batch {
                at: self.position,
                bytes: self.buffers.pop().unwrap_or_default(),
                records: 0,
                last_lsn: 0,
                number: self.next_batch,
                last_at: 0,
            };
            self.next_batch = (self.next_batch + 1) % BATCH_NUMBERS;
            self.queue.push_back(batch);
        }
        let last = self.queue.len() - 1;
        &mut self.queue[last]
    }

    /// The next batch to write; it takes no more records.
    pub(super) fn take(&mut self) -> Option<Batch> {
        let mut batch = self.queue.pop_front()?;
        self.bytes -= batch.bytes.len();
        record::end_batch(&mut batch.bytes[batch.last_at..]);
        Some(batch)
    }

    /// Returns the memory of a batch.
    pub(super) fn recycle(&mut self, mut buffer: Vec<u8>) {
        if self.buffers.len() < BUFFERS_KEPT_MAX && buffer.capacity() <= BUFFER_BYTES_KEPT_MAX {
            buffer.clear();
            self.buffers.push(buffer);
        }
    }

    /// Drops all waiting batches.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{super::record::Decoded, *};

    fn pending(segment_end: u64, bytes_max: usize) -> Pending {
        Pending::new(Start {
            worker: 3,
            next_lsn: 1,
            next_batch: 127,
            position: Position { segment: 1, offset: 64 },
            segment_end,
            segment_bytes: 4096,
            bytes_max,
        })
    }

    /// Batch, whether it ends the batch, and number of each record.
    fn records(mut bytes: &[u8]) -> Vec<(u8, bool, Lsn)> {
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let Decoded::Record { record, bytes: taken } = record::decode(bytes) else {
                panic!("a batch is made of records")
            };
            found.push((record.batch, record.ends_batch, record.lsn));
            bytes = &bytes[taken..];
        }
        found
    }

    #[test]
    fn what_is_appended_between_two_writes_is_one_batch() {
        let mut pending = pending(4096, 1 << 20);
        assert!(pending.take().is_none());
        let at = |offset| Position { segment: 1, offset };
        assert_eq!(pending.append(1, 0, 0, &[b"abc"]).expect("room"), (1, at(64)));
        assert_eq!(pending.append(1, 0, 0, &[]).expect("room"), (2, at(104)));
        let first = pending.take().expect("two records wait");
        assert_eq!((first.at, first.end(), first.records, first.last_lsn), (at(64), at(136), 2, 2));
        assert_eq!(records(&first.bytes), [(127, false, 1), (127, true, 2)]);
        assert_eq!(pending.bytes(), 0);
        assert_eq!(pending.append(1, 0, 0, &[]).expect("room"), (3, at(136)));
        let second = pending.take().expect("a record waits");
        assert_eq!(records(&second.bytes), [(0, true, 3)], "numbers of batches take turns");
    }

    #[test]
    fn a_record_that_does_not_fit_opens_the_next_segment_and_a_batch_of_its_own() {
        let mut pending = pending(64 + 72, 1 << 20);
        let places = [(1, 64), (1, 96), (2, 64), (2, 136)];
        for (index, (segment, offset)) in places.into_iter().enumerate() {
            let payload = vec![0; if index < 2 { 0 } else { 40 }];
            let (_, place) = pending.append(1, 0, 0, &[&payload]).expect("room");
            assert_eq!(place, Position { segment, offset });
        }
        let (first, second) = (pending.take().expect("one"), pending.take().expect("another"));
        assert_eq!(records(&first.bytes), [(127, false, 1), (127, true, 2)]);
        assert_eq!(records(&second.bytes), [(0, false, 3), (0, true, 4)]);
        assert_eq!((first.at.segment, second.at.segment), (1, 2));
    }

    #[test]
    fn what_no_segment_holds_and_what_is_too_much_is_refused_and_takes_no_number() {
        let mut pending = pending(4096, 100);
        let whole = vec![0; 4096 - 64 - 32];
        let error = pending.append(1, 0, 0, &[&whole, b"x"]).expect_err("one byte too long");
        assert_eq!(error.to_string(), "a record of 4040 bytes is longer than the 4032 that a journal takes");
        pending.append(1, 0, 0, &[&[0; 36]]).expect("72 bytes");
        assert!(matches!(pending.append(1, 0, 0, &[]), Err(JournalError::Full)));
        assert_eq!((pending.last_lsn(), pending.bytes()), (1, 72));
        let batch = pending.take().expect("a record waits");
        pending.recycle(batch.bytes);
        assert_eq!(pending.append(1, 0, 0, &[]).expect("room again").0, 2);
        pending.clear();
        assert_eq!((pending.bytes(), pending.take().is_none()), (0, true));
    }
}
