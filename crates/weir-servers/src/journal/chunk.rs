//! A part of a journal that was read in order to be sent again.

use std::ops::Deref;

use super::{
    Position,
    record::{Damage, Decoded, RecordView, decode},
};
use weir_engine::fs::FileBytes;

/// Whole records, one behind the other, all durable.
#[derive(Debug)]
pub struct JournalChunk {
    bytes: FileBytes,
    start: Position,
    /// Bytes of whole records.
    length: usize,
}

/// The result of parsing bytes of a segment.
#[derive(Debug)]
pub(super) enum Found {
    Records(JournalChunk),
    /// There are no more records in this segment.
    End,
    /// The first record is longer than the bytes read.
    Cut {
        needed: usize,
    },
    Damaged(Damage),
}

impl JournalChunk {
    /// A chunk without records.
    pub(super) fn empty(start: Position) -> Self {
        Self { bytes: Vec::new().into(), start, length: 0 }
    }

    /// Parses the whole records at the beginning of `bytes`. Damage behind them is left to the next read.
    pub(super) fn parse(bytes: FileBytes, start: Position, worker: u16) -> Found {
        let mut length = 0;
        let found = loop {
            match decode(&bytes[length..]) {
                Decoded::Record { record, bytes } if record.worker == worker => length += bytes,
                Decoded::Record { record, .. } => {
                    break Found::Damaged(Damage::OtherWorker(record.worker));
                }
                Decoded::End => break Found::End,
                Decoded::Cut { needed } => break Found::Cut { needed },
                Decoded::Damaged(damage) => break Found::Damaged(damage),
            }
        };
        if length == 0 { found } else { Found::Records(Self { bytes, start, length }) }
    }

    /// The records, each with its position.
    pub fn records(&self) -> ChunkRecords<'_> {
        ChunkRecords { bytes: &self.bytes.deref()[..self.length], at: self.start }
    }

    /// Where to continue reading.
    pub fn next(&self) -> Position {
        Position { offset: self.start.offset + self.length as u64, ..self.start }
    }

    /// Whether there are no durable records from there on.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// The records of a chunk.
#[derive(Clone, Debug)]
pub struct ChunkRecords<'a> {
    bytes: &'a [u8],
    at: Position,
}

impl<'a> Iterator for ChunkRecords<'a> {
    type Item = (RecordView<'a>, Position);

    fn next(&mut self) -> Option<Self::Item> {
        let Decoded::Record { record, bytes } = decode(self.bytes) else { return None };
        let at = self.at;
        self.bytes = &self.bytes[bytes..];
        self.at.offset += bytes as u64;
        Some((record, at))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::record, *};

    const START: Position = Position { segment: 2, offset: 64 };

    fn bytes(payloads: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (index, payload) in payloads.iter().enumerate() {
            let head =
                record::Head { kind: 1, batch: 0, worker: 3, lsn: index as u64 + 1, t_ns: 0, session: 0 };
            record::encode(&head, &[payload], &mut bytes);
        }
        bytes
    }

    #[test]
    fn a_chunk_has_whole_records_and_knows_where_to_read_on() {
        let mut cut = bytes(&[b"one", b"two", b"three"]);
        cut.pop();
        let Found::Records(chunk) = JournalChunk::parse(cut.into(), START, 3) else { panic!("two records") };
        let found: Vec<(&[u8], u64)> =
            chunk.records().map(|(record, at)| (record.payload, at.offset)).collect();
        assert_eq!(found, [(&b"one"[..], 64), (&b"two"[..], 104)]);
        assert_eq!((chunk.next(), chunk.is_empty()), (Position { segment: 2, offset: 144 }, false));
        let empty = JournalChunk::empty(START);
        assert_eq!((empty.next(), empty.is_empty(), empty.records().count()), (START, true, 0));
    }

    #[test]
    fn bytes_without_a_record_say_what_they_are() {
        let parse = |bytes: Vec<u8>| JournalChunk::parse(bytes.into(), START, 3);
        assert!(matches!(parse(vec![0; 40]), Found::End));
        assert!(matches!(parse(bytes(&[b"one"])[..39].to_vec()), Found::Cut { needed: 40 }));
        let mut damaged = bytes(&[b"one"]);
        damaged[33] ^= 1;
        assert!(matches!(parse(damaged), Found::Damaged(Damage::Checksum)));
        let other = JournalChunk::parse(bytes(&[b"one"]).into(), START, 4);
        assert!(matches!(other, Found::Damaged(Damage::OtherWorker(3))));
    }
}
