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

use weir_engine::{fs::File, time::yield_now};
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
/// Bytes of a pair of numbers, at most.
const PLACE_BYTES_MAX: usize = 20;
/// Bytes that are read and decoded before other tasks of the worker run. Entries are read whole.
const PIECE_BYTES: usize = 2048 * ENTRY_BYTES;

/// A stream: the account's name, in capital letters, and how many sessions had ended before. A configuration may change
/// the case of a name.
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
}

/// Decodes the places of a stream piece by piece.
#[derive(Debug, Default)]
struct Decoding {
    checksum: u32,
    last: (u64, u64),
    places: Vec<(u64, u64)>,
    /// The beginning of a pair whose end is in the next piece.
    begun: Vec<u8>,
}

impl Decoding {
    /// Takes the next piece. `None`: these are no places.
    fn take(&mut self, piece: &[u8]) -> Option<()> {
        self.checksum = crc32c::crc32c_append(self.checksum, piece);
        let mut bytes = std::mem::take(&mut self.begun);
        bytes.extend_from_slice(piece);
        let mut fields = FieldReader::new(&bytes);
        while !fields.rest().is_empty() {
            let rest = fields.rest();
            let (Some(number), Some(offset)) = (fields.number::<u64>(), fields.number::<u64>()) else {
                self.begun = rest.to_vec();
                return (rest.len() < PLACE_BYTES_MAX).then_some(());
            };
            self.last = (self.last.0.wrapping_add(number), self.last.1.checked_add(offset)?);
            self.places.push(self.last);
        }
        Some(())
    }

    /// The places, if they are whole and have this checksum.
    fn end(self, checksum: u32) -> Option<StreamPlaces> {
        (self.begun.is_empty() && self.checksum == checksum).then_some(StreamPlaces(self.places))
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

/// Looks for the entry of a stream piece by piece.
#[derive(Debug)]
struct Search {
    stream: Stream,
    checksum: u32,
    found: Option<Entry>,
}

impl Search {
    fn new(head: &[u8], stream: Stream) -> Option<Self> {
        Some(Self { stream, checksum: crc32c::crc32c(head.get(CHECKED_FROM..)?), found: None })
    }

    /// Takes the next entries, each whole.
    fn take(&mut self, entries: &[u8]) {
        self.checksum = crc32c::crc32c_append(self.checksum, entries);
        let (name, generation) = &self.stream;
        // An earlier version wrote names as they were configured.
        let is_name = |entry: &[u8]| entry.eq_ignore_ascii_case(name.as_bytes());
        let is_it = |entry: &&[u8]| is_name(&entry[..6]) && entry[6..8] == generation.to_le_bytes();
        let found = entries.chunks_exact(ENTRY_BYTES).find(is_it);
        self.found = self.found.or(found.map(|entry| {
            let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| entry[at + index]));
            Entry { offset: word(8), bytes: word(12), checksum: word(16) }
        }));
    }

    /// The entry, if there is one. `None`: head and entries do not match their checksum.
    fn end(self, head: &[u8]) -> Option<Option<Entry>> {
        (head.get(20..CHECKED_FROM)? == self.checksum.to_le_bytes()).then_some(self.found)
    }
}

/// Reads this many bytes of a file, a piece at a time. Between pieces the worker's other tasks run: an account with all
/// messages of a file has a few megabytes of places. `None`: they are not there, or `take` cannot use them.
async fn read_pieces(
    file: &File,
    (mut offset, mut left): (u64, usize),
    mut take: impl FnMut(&[u8]) -> Option<()>,
) -> Option<()> {
    while left > 0 {
        let bytes = left.min(PIECE_BYTES);
        let piece = file.read_at(offset, bytes).await.ok()?;
        if piece.len() < bytes {
            return None;
        }
        take(&piece)?;
        (offset, left) = (offset + bytes as u64, left - bytes);
        yield_now().await;
    }
    Some(())
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
    let mut search = Search::new(&head, stream)?;
    let take = |entries: &[u8]| {
        search.take(entries);
        Some(())
    };
    read_pieces(&file, (HEAD_BYTES as u64, count * ENTRY_BYTES), take).await?;
    let Some(entry) = search.end(&head)? else { return Some(StreamPlaces::default()) };
    let mut decoding = Decoding::default();
    read_pieces(&file, (entry.offset.into(), entry.bytes as usize), |piece| decoding.take(piece)).await?;
    decoding.end(entry.checksum)
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
            let places = streams.entry((found.name.folded(), found.generation)).or_default();
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
    use weir_engine::{Config, Driver, Runtime};

    use super::*;

    fn name(text: &str) -> Name<6> {
        text.parse().expect("a name")
    }

    fn places(all: &[(u64, u64)]) -> StreamPlaces {
        StreamPlaces(all.to_vec())
    }

    /// The same in pieces of this many bytes.
    fn decoded(bytes: &[u8], piece_bytes: usize, checksum: u32) -> Option<StreamPlaces> {
        let mut decoding = Decoding::default();
        bytes.chunks(piece_bytes).try_for_each(|piece| decoding.take(piece))?;
        decoding.end(checksum)
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
            let head = &bytes[..HEAD_BYTES];
            let mut search = Search::new(head, stream)?;
            entries.chunks(ENTRY_BYTES).for_each(|entries| search.take(entries));
            let Some(entry) = search.end(head)? else { return Some(None) };
            let places = bytes.get(entry.offset as usize..(entry.offset + entry.bytes) as usize)?;
            decoded(places, 3, entry.checksum).map(Some)
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
    fn the_places_of_one_large_account_are_read_piece_by_piece() {
        let folder = std::env::temp_dir().join(format!("weir-stream-index-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("it can be made");
        let (file, stream) = ((0, 1), (name("C00001"), 0));
        let all: Vec<_> = (1..=100_000).map(|number| (number, 64 + 100 * number)).collect();
        let streams = BTreeMap::from([(stream, places(&all)), ((name("C00002"), 0), places(&[(1, 64)]))]);
        let bytes = encode(file, &streams).expect("they are few");
        fs::write(path_of(&folder, 0, 1), &bytes).expect("it can be written");
        let mut pieces = Vec::new();
        let runtime = Runtime::new(&Config::for_test(Driver::Poll)).expect("every kernel has it");
        runtime.block_on(async {
            assert_eq!(read(&folder, file, stream).await, Some(places(&all)));
            let opened = File::open(path_of(&folder, 0, 1)).await.expect("it is there");
            let take = |piece: &[u8]| {
                pieces.push(piece.len());
                Some(())
            };
            assert_eq!(read_pieces(&opened, (0, bytes.len()), take).await, Some(()));
            let more = read_pieces(&opened, (1, bytes.len()), |_| Some(())).await;
            assert_eq!(more, None, "the file ends before");
        });
        assert_eq!(pieces.iter().sum::<usize>(), bytes.len());
        assert!(pieces.len() > 3 && pieces.iter().all(|length| *length <= PIECE_BYTES), "{pieces:?}");
        fs::remove_dir_all(folder).expect("it is ours");
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
            let bytes = stream.encode();
            for piece_bytes in [1, 7, PIECE_BYTES] {
                let found = decoded(&bytes, piece_bytes, crc32c::crc32c(&bytes));
                prop_assert_eq!(found.as_ref(), Some(&stream));
            }
        }

        #[test]
        fn any_bytes_are_places_or_none(bytes: Vec<u8>) {
            let whole = decoded(&bytes, PIECE_BYTES, crc32c::crc32c(&bytes));
            prop_assert_eq!(decoded(&bytes, 1, crc32c::crc32c(&bytes)), whole);
            let _ = decode_head(&bytes, (0, 0));
        }
    }
}
