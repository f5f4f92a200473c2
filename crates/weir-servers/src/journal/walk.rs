//! Reads a segment from its first record to its last, and judges the bytes behind that. Pure except for the source
//! that it reads from: it changes nothing, and allocates nothing for a record.
//!
//! A write that was in flight at a loss of power leaves parts of its batch, in any order: sectors that reached the
//! disk are correct, and the others are unchanged, all zeros. That is a *torn tail*: the batch was never reported as
//! durable. Everything else that cannot be read is damage. [`Remainder::is_torn`] distinguishes them:
//!
//! - nothing valid follows: the last record, or the rest of the last batch, is torn;
//! - valid records follow, but all are in the batch being read, and a sector is missing before them;
//! - otherwise records were lost that came before later records: damage.

use std::{fs::File, io, os::unix::fs::FileExt};

use super::{
    Lsn,
    record::{
        ALIGNMENT_BYTES, BATCH_NUMBERS, Damage, Decoded, HEADER_BYTES, RECORD_BYTES_MAX, RecordView, claims,
        decode,
    },
    segment::SECTOR_BYTES,
};

/// Bytes read at once.
pub(super) const WINDOW_BYTES: usize = 2 << 20;

const _: () = assert!(WINDOW_BYTES >= 4 * RECORD_BYTES_MAX);

/// Random access to bytes.
pub(super) trait Source {
    /// Reads from `offset` on. May return fewer bytes than fit, and returns none at its end.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
}

impl Source for File {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(self, into, offset)
    }
}

impl Source for [u8] {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        let count = into.len().min(self.len() - from);
        into[..count].copy_from_slice(&self[from..from + count]);
        Ok(count)
    }
}

/// The part of a source in memory.
pub(super) struct Window<'s, S: ?Sized> {
    source: &'s S,
    /// Reading stops there.
    end: u64,
    memory: &'s mut Vec<u8>,
    start: u64,
    filled: usize,
}

impl<'s, S: Source + ?Sized> Window<'s, S> {
    /// A window on the first `end` bytes of a source; `memory` is the buffer for them.
    pub(super) fn new(source: &'s S, end: u64, memory: &'s mut Vec<u8>) -> Self {
        let bytes = end.min(WINDOW_BYTES as u64) as usize;
        if memory.len() < bytes {
            memory.resize(bytes, 0);
        }
        Self { source, end, memory, start: 0, filled: 0 }
    }

    /// The bytes from `offset` on: at least the longest record's length, or all that are left.
    #[inline]
    fn at(&mut self, offset: u64) -> io::Result<&[u8]> {
        let wanted = self.end.saturating_sub(offset).min(RECORD_BYTES_MAX as u64);
        if offset < self.start || offset + wanted > self.start + self.filled as u64 {
            self.fill(offset)?;
        }
        let from = (offset - self.start).min(self.filled as u64) as usize;
        Ok(&self.memory[from..self.filled])
    }

    #[cold]
    fn fill(&mut self, offset: u64) -> io::Result<()> {
        let wanted = self.end.saturating_sub(offset).min(WINDOW_BYTES as u64) as usize;
        (self.start, self.filled) = (offset, 0);
        while self.filled < wanted {
            let into = &mut self.memory[self.filled..wanted];
            match self.source.read_at(offset + self.filled as u64, into) {
                Ok(0) => break,
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The expected fields of the next record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    worker: u16,
    /// 0: any.
    expected: Lsn,
    /// Batch of the last record.
    batch: u8,
    /// Whether the last record ended its batch.
    is_ended: bool,
    records: u64,
}

impl Chain {
    /// Starts at a journal's first record.
    pub(super) fn new(worker: u16) -> Self {
        Self { worker, expected: 1, batch: BATCH_NUMBERS - 1, is_ended: true, records: 0 }
    }

    /// Starts at any record, whatever its number.
    pub(super) fn anywhere(worker: u16) -> Self {
        Self { expected: 0, ..Self::new(worker) }
    }

    /// Continues behind this record.
    pub(super) fn behind(record: &RecordView<'_>) -> Self {
        let RecordView { worker, lsn, batch, ends_batch, .. } = *record;
        Self { worker, expected: lsn + 1, batch, is_ended: ends_batch, records: lsn }
    }

    /// Records read, and those before its beginning.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// Number of the last record, zero if there is none.
    pub(super) fn last_lsn(&self) -> Lsn {
        self.expected.saturating_sub(1)
    }

    /// Batch of the next record: that of the last one, unless it ended its batch.
    pub(super) fn next_batch(&self) -> u8 {
        if self.is_ended { (self.batch + 1) % BATCH_NUMBERS } else { self.batch }
    }

    #[inline]
    fn follow(&mut self, record: &RecordView<'_>) -> Result<(), Damage> {
        if record.worker != self.worker {
            return Err(Damage::OtherWorker(record.worker));
        }
        if record.lsn != self.expected && self.expected != 0 {
            return Err(Damage::Sequence { found: record.lsn, expected: self.expected });
        }
        self.expected = record.lsn.wrapping_add(1);
        (self.batch, self.is_ended) = (record.batch, record.ends_batch);
        self.records += 1;
        Ok(())
    }
}

/// Where reading ended, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    pub(super) offset: u64,
    /// `None`: the log ends there, according to the header.
    pub(super) damage: Option<Damage>,
}

/// Why a walk was aborted.
#[derive(Debug)]
pub(super) enum WalkError {
    Read(io::Error),
    /// By the visitor, with its reason.
    Refused {
        offset: u64,
        reason: String,
    },
}

impl From<io::Error> for WalkError {
    fn from(error: io::Error) -> Self {
        WalkError::Read(error)
    }
}

/// Shows each record from `from` on to `visit`, with its offset, until there are no more.
pub(super) fn walk<S: Source + ?Sized>(
    window: &mut Window<'_, S>,
    from: u64,
    chain: &mut Chain,
    visit: &mut dyn FnMut(RecordView<'_>, u64) -> Result<(), String>,
) -> Result<Stop, WalkError> {
    let end = window.end;
    let mut offset = from;
    loop {
        let damage = match decode(window.at(offset)?) {
            Decoded::Record { record, bytes } => match chain.follow(&record) {
                Ok(()) => {
                    visit(record, offset).map_err(|reason| WalkError::Refused { offset, reason })?;
                    offset += bytes as u64;
                    continue;
                }
                Err(damage) => Some(damage),
            },
            Decoded::End => None,
            // There is no room for another header.
            Decoded::Cut { needed: HEADER_BYTES } if end - offset < HEADER_BYTES as u64 => None,
            Decoded::Cut { .. } => Some(Damage::Length),
            Decoded::Damaged(damage) => Some(damage),
        };
        return Ok(Stop { offset, damage });
    }
}

/// The bytes behind the position where reading ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Remainder {
    /// End of the last eight bytes that are not all zero; `None` if all are.
    pub(super) content_end: Option<u64>,
    /// Valid records.
    pub(super) records: u64,
    /// All of them are in the batch being read.
    is_one_batch: bool,
    /// A whole sector, or the rest of the first one, is missing before the first of them.
    misses_sector: bool,
}

impl Remainder {
    /// Whether an unfinished write explains it.
    pub(super) fn is_torn(&self) -> bool {
        self.records == 0 || (self.is_one_batch && self.misses_sector)
    }
}

/// Scans everything from `from` on, where no record could be read.
pub(super) fn scan_remainder<S: Source + ?Sized>(
    window: &mut Window<'_, S>,
    from: u64,
    chain: &Chain,
) -> io::Result<Remainder> {
    let numbers = window.end.saturating_sub(from) / HEADER_BYTES as u64;
    scan(window, from, chain, numbers)
}

/// The same in a segment behind damage, where records may have any later number.
pub(super) fn scan_behind<S: Source + ?Sized>(
    window: &mut Window<'_, S>,
    from: u64,
    chain: &Chain,
) -> io::Result<Remainder> {
    scan(window, from, chain, Lsn::MAX)
}

fn scan<S: Source + ?Sized>(
    window: &mut Window<'_, S>,
    from: u64,
    chain: &Chain,
    numbers: u64,
) -> io::Result<Remainder> {
    let mut remainder = Remainder { is_one_batch: true, ..Remainder::default() };
    let mut gap = Gap { from, zeros_from: from };
    let mut offset = from;
    while offset < window.end {
        let end = window.end;
        let bytes = window.at(offset)?;
        if bytes.is_empty() {
            // The file became shorter meanwhile; the missing bytes are not a record.
            break;
        }
        // Records that begin in this part may end behind it, so its last records are left to the next part.
        let is_last = offset + bytes.len() as u64 >= end;
        let look = match is_last {
            true => bytes.len(),
            false => bytes.len().saturating_sub(RECORD_BYTES_MAX) + ALIGNMENT_BYTES,
        };
        let mut at = 0;
        while at < look {
            let place = offset + at as u64;
            let eight = &bytes[at..bytes.len().min(at + ALIGNMENT_BYTES)];
            if eight.iter().all(|byte| *byte == 0) {
                at += ALIGNMENT_BYTES;
                continue;
            }
            remainder.misses_sector |= remainder.records == 0 && gap.misses_sector(place);
            let taken = match record_behind(&bytes[at..], chain, numbers) {
                Some((record, taken)) => {
                    remainder.records += 1;
                    remainder.is_one_batch &= record.batch == chain.next_batch();
                    taken
                }
                None => ALIGNMENT_BYTES,
            };
            at += taken;
            gap.zeros_from = offset + at as u64;
            remainder.content_end = Some(gap.zeros_from.min(end));
        }
        offset += at as u64;
    }
    Ok(remainder)
}

/// A valid record whose number can follow the last one, if at most `numbers` records fit between.
fn record_behind<'b>(bytes: &'b [u8], chain: &Chain, numbers: u64) -> Option<(RecordView<'b>, usize)> {
    if bytes.len() < HEADER_BYTES {
        return None;
    }
    // Checked before the checksum, which costs more.
    let (worker, lsn) = claims(bytes);
    let is_possible = lsn >= chain.expected && lsn - chain.expected <= numbers;
    if worker != chain.worker || !is_possible {
        return None;
    }
    match decode(bytes) {
        Decoded::Record { record, bytes } => Some((record, bytes)),
        Decoded::End | Decoded::Cut { .. } | Decoded::Damaged(_) => None,
    }
}

/// The last run of zeros.
struct Gap {
    /// Where the missing record would begin: earlier bytes in its sector were written before.
    from: u64,
    zeros_from: u64,
}

impl Gap {
    /// Whether the zeros up to `place` are a sector that never reached the disk.
    fn misses_sector(&self, place: u64) -> bool {
        let first = if self.zeros_from == self.from {
            self.from / SECTOR_BYTES * SECTOR_BYTES
        } else {
            self.zeros_from.next_multiple_of(SECTOR_BYTES)
        };
        first + SECTOR_BYTES <= place
    }
}

#[cfg(test)]
mod tests {
    use super::{super::record, *};

    const FROM: u64 = 64;

    /// A segment's bytes with records of these batches behind its header, and where each begins.
    fn written(batches: &[(u8, bool)], payload_bytes: usize) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = vec![0; FROM as usize];
        let mut starts = Vec::new();
        for (index, (batch, ends)) in batches.iter().enumerate() {
            let lsn = index as u64 + 1;
            let head = record::Head { kind: 1, batch: *batch, worker: 3, lsn, t_ns: 0, session: 0 };
            starts.push(bytes.len());
            record::encode(&head, &[&vec![0xee; payload_bytes]], &mut bytes);
            if *ends {
                record::end_batch(&mut bytes[starts[index]..]);
            }
        }
        bytes.resize(bytes.len().next_multiple_of(SECTOR_BYTES as usize) + 2048, 0);
        (bytes, starts)
    }

    fn read(bytes: &[u8]) -> (u64, Stop, Remainder) {
        let mut memory = Vec::new();
        let mut window = Window::new(bytes, bytes.len() as u64, &mut memory);
        let mut chain = Chain::new(3);
        let stop = walk(&mut window, FROM, &mut chain, &mut |_, _| Ok(())).expect("memory is read");
        let remainder = scan_remainder(&mut window, stop.offset, &chain).expect("memory is read");
        (chain.records(), stop, remainder)
    }

    #[test]
    fn a_clean_log_ends_at_zeros() {
        let (bytes, _) = written(&[(0, true), (1, false), (1, true)], 10);
        let (records, stop, remainder) = read(&bytes);
        assert_eq!((records, stop), (3, Stop { offset: 64 + 3 * 48, damage: None }));
        assert_eq!(remainder.content_end, None);
        assert!(remainder.is_torn());
    }

    #[test]
    fn a_sector_that_is_missing_in_the_last_batch_is_a_torn_tail() {
        let batches = [(0, true), (1, false), (1, false), (1, false), (1, true)];
        let (mut bytes, starts) = written(&batches, 700);
        // From the sector in which the second record of the last batch begins.
        let first = starts[2].next_multiple_of(512);
        bytes[first..first + 512].fill(0);
        let (records, stop, remainder) = read(&bytes);
        assert_eq!((records, stop.offset), (2, starts[2] as u64));
        assert_eq!((remainder.records, remainder.is_torn()), (2, true));
    }

    #[test]
    fn the_first_sector_of_the_last_batch_may_be_missing_from_the_batch_on() {
        let (mut bytes, starts) = written(&[(0, true), (1, false), (1, false), (1, true)], 200);
        let end = starts[1].next_multiple_of(512);
        bytes[starts[1]..end].fill(0);
        let (records, stop, remainder) = read(&bytes);
        assert_eq!((records, stop), (1, Stop { offset: starts[1] as u64, damage: None }));
        assert!(remainder.records > 0 && remainder.is_torn());
    }

    #[test]
    fn a_sector_that_is_missing_before_a_later_batch_is_damage() {
        let batches = [(0, true), (1, false), (1, false), (1, true), (2, true)];
        let (mut bytes, starts) = written(&batches, 700);
        let first = starts[2].next_multiple_of(512);
        bytes[first..first + 512].fill(0);
        assert!(!read(&bytes).2.is_torn());
    }

    #[test]
    fn the_end_of_a_batch_that_is_missing_before_the_next_one_is_damage() {
        let (mut bytes, starts) = written(&[(0, true), (1, false), (1, true), (2, true)], 504);
        bytes[starts[2]..starts[3]].fill(0);
        let (records, _, remainder) = read(&bytes);
        assert_eq!(records, 2);
        assert!(!remainder.is_torn(), "the missing record belongs to batch 1, and batch 2 was begun");
    }

    #[test]
    fn a_changed_byte_before_valid_records_of_its_batch_is_damage() {
        let (mut bytes, starts) = written(&[(0, false), (0, false), (0, true)], 700);
        bytes[starts[1] + 100] ^= 1;
        let (records, stop, remainder) = read(&bytes);
        assert_eq!((records, stop.damage), (1, Some(Damage::Checksum)));
        assert!(!remainder.is_torn());
    }

    #[test]
    fn a_changed_byte_of_the_last_record_is_a_torn_tail() {
        let (mut bytes, starts) = written(&[(0, false), (0, false), (0, true)], 700);
        bytes[starts[2]] ^= 1;
        let (records, _, remainder) = read(&bytes);
        assert_eq!((records, remainder.records, remainder.is_torn()), (2, 0, true));
    }

    #[test]
    fn a_number_that_is_skipped_is_damage_and_an_old_one_is_not_a_record() {
        let (mut bytes, starts) = written(&[(0, true), (1, true), (2, true), (3, true)], 10);
        let (second, third) = (starts[1], starts[2]);
        bytes.copy_within(third..third + 48, second);
        let (records, stop, remainder) = read(&bytes);
        assert_eq!(records, 1);
        assert_eq!(stop.damage, Some(Damage::Sequence { found: 3, expected: 2 }));
        assert!(!remainder.is_torn());
        // The first record again, and nothing else.
        let (mut bytes, starts) = written(&[(0, true), (1, true)], 10);
        bytes.copy_within(starts[0]..starts[1], starts[1]);
        let (records, stop, remainder) = read(&bytes);
        assert_eq!((records, stop.damage), (1, Some(Damage::Sequence { found: 1, expected: 2 })));
        assert!(remainder.is_torn() && remainder.content_end.is_some());
    }

    #[test]
    fn records_longer_than_a_part_of_the_window_are_found_at_every_place() {
        let lengths = [RECORD_BYTES_MAX - HEADER_BYTES, 1, 30_000];
        let mut bytes = vec![0; FROM as usize];
        let mut lsn = 0;
        while bytes.len() < 3 * WINDOW_BYTES {
            lsn += 1;
            let payload = vec![0x11; lengths[lsn as usize % lengths.len()]];
            let head = record::Head { kind: 1, batch: 0, worker: 3, lsn, t_ns: 0, session: 0 };
            record::encode(&head, &[&payload], &mut bytes);
        }
        let (records, stop, _) = read(&bytes);
        assert_eq!((records, stop), (lsn, Stop { offset: bytes.len() as u64, damage: None }));
        // The first record is damaged: all others follow it.
        bytes[FROM as usize + record::HEADER_BYTES] ^= 1;
        let (records, _, remainder) = read(&bytes);
        assert_eq!((records, remainder.records), (0, lsn - 1));
        assert_eq!(remainder.content_end, Some(bytes.len() as u64));
    }
}
