//! Where the messages of each account's stream are in one finished file of a journal, so that a replay of one account
//! does not read the records of all. Like a checkpoint it is derived: without it, or if it does not match, a replay
//! reads the file. The layout is in `docs/formats/journal.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use weir_engine::fs::File;
use weir_proto::soup::Name;

use super::records;
use crate::journal::{
    self, FILE_MODE, Position, RecoverError,
    fields::{FieldReader, FieldWriter},
};

const MAGIC: [u8; 16] = *b"weir journal idx";
const VERSION: u32 = 1;
/// Bytes of the head, and of each stream's entry behind it.
const HEAD_BYTES: usize = 40;
/// Where the bytes begin that the head's checksum covers; they end behind the entries.
const CHECKED_FROM: usize = 24;
const ENTRY_BYTES: usize = 24;
/// Most streams of one index: an account may have several, of sessions that follow each other.
const STREAMS_MAX: usize = 1 << 18;

/// A stream: the account's name, and how many sessions had ended before.
type Stream = (Name<6>, u16);

/// The path of the index of a journal's file.
fn path_of(directory: &Path, worker: u16, segment: u64) -> PathBuf {
    directory.join(Position { segment, offset: 0 }.file_name(worker)).with_extension("index")
}

/// The messages of one stream in one file: their numbers and where their records begin, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StreamPlaces(Vec<(u64, u64)>);

impl StreamPlaces {
    /// The record of a message, and the end of those behind it that lie near enough to be read with it.
    pub(super) fn find(&self, sequence: u64, bytes_max: u64, gap_bytes_max: u64) -> Option<(u64, u64)> {
        let at = self.0.iter().position(|(number, _)| *number == sequence)?;
        let start = self.0[at].1;
        let near = self.0[at..].windows(2).take_while(|pair| {
            let (before, next) = (pair[0].1, pair[1].1);
            next - before <= gap_bytes_max && next - start <= bytes_max
        });
        Some((start, near.last().map_or(start, |pair| pair[1].1)))
    }

    fn encode(&self) -> Vec<u8> {
        let mut fields = FieldWriter::default();
        let (mut number, mut offset) = (0_u64, 0_u64);
        for (next, at) in &self.0 {
            // Mostly one more; if a number comes again, the difference wraps.
            fields.number(next.wrapping_sub(number));
            fields.number(at - offset);
            (number, offset) = (*next, *at);
        }
        fields.into_bytes()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = FieldReader::new(bytes);
        let (mut number, mut offset, mut all) = (0_u64, 0_u64, Vec::new());
        while !fields.rest().is_empty() {
            number = number.wrapping_add(fields.number()?);
            offset = offset.checked_add(fields.number()?)?;
            all.push((number, offset));
        }
        Some(Self(all))
    }
}

/// The entry of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    offset: u32,
    bytes: u32,
    checksum: u32,
}

fn encode((worker, segment): (u16, u64), streams: &BTreeMap<Stream, StreamPlaces>) -> Option<Vec<u8>> {
    if streams.len() > STREAMS_MAX {
        return None;
    }
    let (mut entries, mut places) = (Vec::new(), Vec::new());
    let first = HEAD_BYTES + streams.len() * ENTRY_BYTES;
    for ((name, generation), stream) in streams {
        let bytes = stream.encode();
        let numbers = [
            u32::try_from(first + places.len()).ok()?,
            u32::try_from(bytes.len()).ok()?,
            crc32c::crc32c(&bytes),
            0,
        ];
        entries.extend_from_slice(name.as_bytes());
        entries.extend_from_slice(&generation.to_le_bytes());
        numbers.iter().for_each(|number| entries.extend_from_slice(&number.to_le_bytes()));
        places.extend_from_slice(&bytes);
    }
    let mut checked = Vec::with_capacity(first);
    checked.extend_from_slice(&(streams.len() as u32).to_le_bytes());
    checked.extend_from_slice(&u32::from(worker).to_le_bytes());
    checked.extend_from_slice(&segment.to_le_bytes());
    checked.extend_from_slice(&entries);
    let mut whole = Vec::with_capacity(first + places.len());
    whole.extend_from_slice(&MAGIC);
    whole.extend_from_slice(&VERSION.to_le_bytes());
    whole.extend_from_slice(&crc32c::crc32c(&checked).to_le_bytes());
    whole.extend_from_slice(&checked);
    whole.extend_from_slice(&places);
    Some(whole)
}

/// The number of streams in the index of this file.
fn decode_head(head: &[u8], (worker, segment): (u16, u64)) -> Option<usize> {
    let head = head.first_chunk::<HEAD_BYTES>()?;
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| head[at + index]));
    let count = word(24) as usize;
    let is_it = word(28) == u32::from(worker) && head[32..40] == segment.to_le_bytes();
    (head[..16] == MAGIC && word(16) == VERSION && is_it && count <= STREAMS_MAX).then_some(count)
}

/// The entry of a stream, if it has one. `None`: head and entries do not match their checksum.
fn find_entry(head: &[u8], entries: &[u8], (name, generation): Stream) -> Option<Option<Entry>> {
    let checksum = crc32c::crc32c_append(crc32c::crc32c(head.get(CHECKED_FROM..)?), entries);
    if head[20..CHECKED_FROM] != checksum.to_le_bytes() {
        return None;
    }
    let is_it = |entry: &&[u8]| entry[..6] == *name.as_bytes() && entry[6..8] == generation.to_le_bytes();
    let found = entries.chunks_exact(ENTRY_BYTES).find(is_it);
    Some(found.map(|entry| {
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| entry[at + index]));
        Entry { offset: word(8), bytes: word(12), checksum: word(16) }
    }))
}

/// Reads the places of a stream in a file; empty if it has none there. `None`: there is no index that can be used.
pub(super) async fn read(
    directory: &Path,
    (worker, segment): (u16, u64),
    stream: Stream,
) -> Option<StreamPlaces> {
    let file = File::open(path_of(directory, worker, segment)).await.ok()?;
    let head = file.read_at(0, HEAD_BYTES).await.ok()?;
    let count = decode_head(&head, (worker, segment))?;
    let entries = file.read_at(HEAD_BYTES as u64, count * ENTRY_BYTES).await.ok()?;
    let Some(entry) = find_entry(&head, &entries, stream)? else { return Some(StreamPlaces::default()) };
    let bytes = file.read_at(entry.offset.into(), entry.bytes as usize).await.ok()?;
    if bytes.len() != entry.bytes as usize || crc32c::crc32c(&bytes) != entry.checksum {
        return None;
    }
    StreamPlaces::decode(&bytes)
}

/// Writes the index of each finished file that has none. A file for which that fails is left out from then on.
pub(crate) fn write_missing(directory: &Path, failed: &mut BTreeSet<(u16, u64)>) {
    let Ok(finished) = journal::finished_segments(directory) else { return };
    for (worker, segment) in finished {
        let path = path_of(directory, worker, segment);
        if !failed.contains(&(worker, segment))
            && !path.exists()
            && write(directory, worker, segment).is_err()
        {
            failed.insert((worker, segment));
        }
    }
}

fn write(directory: &Path, worker: u16, segment: u64) -> Result<(), RecoverError> {
    let mut streams: BTreeMap<Stream, StreamPlaces> = BTreeMap::new();
    journal::read_segment(directory, worker, segment, &mut |record, position| {
        if record.kind == records::SEQUENCED
            && let Some(found) = records::sequenced(record.payload)
        {
            let places = streams.entry((found.name, found.generation)).or_default();
            places.0.push((found.sequence, position.offset));
        }
        Ok(())
    })?;
    let path = path_of(directory, worker, segment);
    let failed = |source| RecoverError::System { path: path.clone(), doing: "write it", source };
    let too_many = || io::Error::from(io::ErrorKind::FileTooLarge);
    let bytes = encode((worker, segment), &streams).ok_or_else(too_many).map_err(failed)?;
    // A crash leaves a file that does not match its checksums; then it is not used.
    let making = path.with_extension("indexing");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(FILE_MODE);
    let written = options
        .open(&making)
        .and_then(|mut file| file.write_all(&bytes))
        .and_then(|()| fs::rename(&making, &path));
    written.map_err(|source| {
        // It is overwritten the next time.
        let _ = fs::remove_file(&making);
        failed(source)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> Name<6> {
        text.parse().expect("a name")
    }

    fn places(all: &[(u64, u64)]) -> StreamPlaces {
        StreamPlaces(all.to_vec())
    }

    #[test]
    fn each_stream_is_found_and_every_flipped_bit_is_noticed() {
        let streams = BTreeMap::from([
            ((name("C00001"), 0), places(&[(7, 64), (8, 200), (9, 60_000)])),
            ((name("C00001"), 1), places(&[(1, 4096)])),
            ((name("C00002"), 0), places(&[(3, 128), (3, 256)])),
        ]);
        let file = (3, 1 << 40);
        let bytes = encode(file, &streams).expect("they are few");
        let found = |bytes: &[u8], stream: Stream| -> Option<Option<StreamPlaces>> {
            let count = decode_head(bytes, file)?;
            let entries = bytes.get(HEAD_BYTES..HEAD_BYTES + count * ENTRY_BYTES)?;
            let Some(entry) = find_entry(&bytes[..HEAD_BYTES], entries, stream)? else { return Some(None) };
            let places = bytes.get(entry.offset as usize..(entry.offset + entry.bytes) as usize)?;
            (crc32c::crc32c(places) == entry.checksum).then(|| StreamPlaces::decode(places))
        };
        for (stream, expected) in &streams {
            assert_eq!(found(&bytes, *stream), Some(Some(expected.clone())));
            for bit in 0..bytes.len() * 8 {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                let found = found(&damaged, *stream);
                assert!(found.is_none() || found == Some(Some(expected.clone())), "bit {bit}: {found:?}");
            }
        }
        assert_eq!(found(&bytes, (name("C00003"), 0)), Some(None));
        assert!(decode_head(&bytes, (3, 2)).is_none() && decode_head(&bytes, (4, 1 << 40)).is_none());
    }

    #[test]
    fn messages_that_lie_near_each_other_are_read_at_once() {
        let stream = places(&[(5, 64), (6, 164), (7, 264), (8, 5_000), (9, 5_100)]);
        assert_eq!(stream.find(5, 10_000, 1_000), Some((64, 264)));
        assert_eq!(stream.find(5, 150, 1_000), Some((64, 164)));
        assert_eq!(stream.find(7, 10_000, 1_000), Some((264, 264)));
        assert_eq!(stream.find(8, 10_000, 1_000), Some((5_000, 5_100)));
        assert_eq!([4, 10].map(|number| stream.find(number, 10_000, 1_000)), [None, None]);
    }

    proptest! {
        #[test]
        fn places_are_read_back(all in prop::collection::vec((any::<u64>(), 0_u64..1 << 20), 0..50)) {
            let mut offset = 0;
            let all: Vec<_> = all.into_iter().map(|(number, more)| { offset += more; (number, offset) }).collect();
            let stream = StreamPlaces(all);
            prop_assert_eq!(StreamPlaces::decode(&stream.encode()), Some(stream));
        }

        #[test]
        fn any_bytes_are_places_or_none(bytes: Vec<u8>) {
            let _ = StreamPlaces::decode(&bytes);
            let _ = decode_head(&bytes, (0, 0));
        }
    }
}
