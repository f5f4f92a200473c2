//! A checkpoint: the state that an application has collected from the first records of all journals, and where the
//! next ones begin. A start that has it reads only these. It is derived from the journals: without it, or if it does
//! not match them, everything is read. The layout is in `docs/formats/journal.md`.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::{
    Lsn, Position, RecoverError, directory,
    fields::{FieldReader, FieldWriter},
    record::{self, Decoded, RECORD_BYTES_MAX},
    recover::failed,
    segment::{self, FILE_MODE, HEADER_BYTES},
    segment_file::SegmentFile,
    walk::Chain,
};

/// Name of the checkpoint's file.
const NAME: &str = "journals.checkpoint";
/// Name of a checkpoint without which the journals cannot be read any more: files before it were archived.
const BASE_NAME: &str = "journals.base";

const MAGIC: [u8; 16] = *b"weir journal chk";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 24;

/// Bytes of a checkpoint that are flushed to the disk at once.
const PIECE_BYTES: usize = 1 << 20;

/// Larger files are neither written nor read.
const BYTES_MAX: u64 = 1 << 30;

/// The last record of a journal that a checkpoint includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Where it begins.
    pub at: Position,
    /// Its number.
    pub lsn: Lsn,
    /// Its checksum: another record at the same place has another one.
    checksum: u32,
}

/// Where reading continues behind an anchor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Continuation {
    pub(super) chain: Chain,
    pub(super) next: Position,
}

impl Anchor {
    /// The anchor at a record that was read.
    ///
    /// # Errors
    /// Those of reading it again.
    pub fn of(directory: &Path, worker: u16, at: Position) -> Result<Self, RecoverError> {
        let path = segment::path(directory, worker, at.segment);
        let bytes = read_record(directory, worker, at)?;
        match record::decode(&bytes) {
            Decoded::Record { record, .. } => {
                Ok(Self { at, lsn: record.lsn, checksum: record::stored_checksum(&bytes) })
            }
            _ => Err(failed(&path, "read a record of it again")(io::ErrorKind::InvalidData.into())),
        }
    }

    /// Where its journal continues; `None` if the journal does not have this record at this place.
    pub(super) fn continuation(
        &self,
        directory: &Path,
        worker: u16,
    ) -> Result<Option<Continuation>, RecoverError> {
        let path = segment::path(directory, worker, self.at.segment);
        if self.at.offset < HEADER_BYTES as u64 || !path.exists() {
            return Ok(None);
        }
        let bytes = read_record(directory, worker, self.at)?;
        let Decoded::Record { record, bytes: length } = record::decode(&bytes) else { return Ok(None) };
        let is_it = (record.worker, record.lsn) == (worker, self.lsn)
            && record::stored_checksum(&bytes) == self.checksum;
        let next = Position { offset: self.at.offset + length as u64, ..self.at };
        Ok(is_it.then(|| Continuation { chain: Chain::behind(&record), next }))
    }
}

fn read_record(directory: &Path, worker: u16, at: Position) -> Result<Vec<u8>, RecoverError> {
    let segment = SegmentFile::open(directory, worker, at.segment)?;
    let mut bytes = vec![0; RECORD_BYTES_MAX];
    let mut filled = 0;
    while filled < bytes.len() {
        match segment.file.read_at(&mut bytes[filled..], at.offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(&segment.path, "read it")(error)),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// The order of a record among those of all journals: its time, and whether it is an answer.
pub type Place = (u64, bool);

/// See the module's documentation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// By worker: the last record that it includes. Others have none.
    pub anchors: BTreeMap<u16, Anchor>,
    /// By worker: files with lower numbers were archived, and may be gone.
    pub archived_before: BTreeMap<u16, u64>,
    /// The last place of the records that it includes. If a record behind it, in another journal, has an earlier one,
    /// the checkpoint is not what reading everything gives.
    pub last: Place,
    /// The application's state.
    pub state: Vec<u8>,
}

/// Why there is no checkpoint that can be used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// It cannot be read, or written.
    #[error("{path}: {source}", path = path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It is damaged, or from another version.
    #[error("{path} is damaged, or was written by another version", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
}

/// Which of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointFile {
    /// The last one, which may be missing.
    Latest,
    /// The one that stands for files that were archived.
    Base,
}

impl CheckpointFile {
    /// Its path in a folder of journals.
    pub fn path(self, directory: &Path) -> PathBuf {
        directory.join(match self {
            Self::Latest => NAME,
            Self::Base => BASE_NAME,
        })
    }
}

impl Checkpoint {
    /// Reads one; `None` if there is no such file.
    ///
    /// # Errors
    /// See [`CheckpointError`].
    pub fn read(directory: &Path, which: CheckpointFile) -> Result<Option<Self>, CheckpointError> {
        let path = which.path(directory);
        let bytes = match read_up_to(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(CheckpointError::System { path, source }),
        };
        match Self::decode(&bytes) {
            Some(checkpoint) => Ok(Some(checkpoint)),
            None => Err(CheckpointError::Unreadable { path }),
        }
    }

    /// Whether one can be written. A caller that reads for long before it writes asks this first.
    ///
    /// # Errors
    /// Those of making a file.
    pub fn can_be_written(directory: &Path, which: CheckpointFile) -> Result<(), CheckpointError> {
        let path = which.path(directory);
        let making = path.with_extension("making");
        let tried = make(&making).and_then(|_| fs::remove_file(&making));
        tried.map_err(|source| CheckpointError::System { path, source })
    }

    /// Writes it, on the disk, in place of the former one: a crash leaves one of the two. Returns its bytes.
    ///
    /// # Errors
    /// Those of writing files; the former one is still there.
    pub fn write(&self, directory: &Path, which: CheckpointFile) -> Result<u64, CheckpointError> {
        let path = which.path(directory);
        let bytes = self.encode();
        let making = path.with_extension("making");
        let written = write_whole(&making, &bytes)
            .and_then(|()| fs::rename(&making, &path))
            .and_then(|()| directory::sync(directory));
        if let Err(source) = written {
            // What is left of it is overwritten the next time.
            let _ = fs::remove_file(&making);
            return Err(CheckpointError::System { path, source });
        }
        Ok(bytes.len() as u64)
    }

    fn encode(&self) -> Vec<u8> {
        let Self { anchors, archived_before, last: (last_ns, is_answer), state } = self;
        let mut fields = FieldWriter::default();
        fields.count(anchors.len());
        for (worker, Anchor { at, lsn, checksum }) in anchors {
            fields.number(*worker);
            [at.segment, at.offset, *lsn].into_iter().for_each(|number| fields.number(number));
            fields.number(*checksum);
        }
        fields.count(archived_before.len());
        for (worker, segment) in archived_before {
            fields.number(*worker);
            fields.number(*segment);
        }
        fields.number(*last_ns);
        fields.flag(*is_answer);
        fields.bytes(state);
        let fields = fields.into_bytes();
        let mut bytes = Vec::with_capacity(HEAD_BYTES + fields.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&fields).to_le_bytes());
        bytes.extend_from_slice(&fields);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (head, fields) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| head[at + index]));
        if head[..16] != MAGIC || word(16) != VERSION || word(20) != crc32c::crc32c(fields) {
            return None;
        }
        let mut fields = FieldReader::new(fields);
        let mut found = Self::default();
        for _ in 0..fields.count(5)? {
            let worker = fields.number()?;
            let at = Position { segment: fields.number()?, offset: fields.number()? };
            let anchor = Anchor { at, lsn: fields.number()?, checksum: fields.number()? };
            found.anchors.insert(worker, anchor);
        }
        for _ in 0..fields.count(2)? {
            found.archived_before.insert(fields.number()?, fields.number()?);
        }
        found.last = (fields.number()?, fields.flag()?);
        found.state = fields.bytes()?.to_vec();
        fields.rest().is_empty().then_some(found)
    }

    /// The name of the first file that it needs and that is not there, although the journal has later ones. If an
    /// archive has it, this checkpoint is older than the archive.
    ///
    /// # Errors
    /// Those of listing files.
    pub fn first_file_missed(&self, directory: &Path) -> io::Result<Option<String>> {
        let mut first: BTreeMap<u16, u64> = BTreeMap::new();
        for (worker, number) in segment::list(directory)? {
            first.entry(worker).or_insert(number);
        }
        Ok(first.into_iter().find_map(|(worker, first)| {
            let needed = self.archived_before.get(&worker).copied().unwrap_or(1);
            (needed < first).then(|| segment::name(worker, needed))
        }))
    }

    /// Waits until the records that it includes, and the former one does not, are on the disk. At level `os` nobody
    /// else waits for that, and a start does not read them: it would not see that a loss of power has lost some.
    ///
    /// # Errors
    /// Those of opening and syncing files.
    pub fn sync_journals(&self, directory: &Path, former: &Self) -> Result<(), RecoverError> {
        for (worker, anchor) in &self.anchors {
            let known = former.anchors.get(worker);
            if known == Some(anchor) {
                continue;
            }
            let first = || self.archived_before.get(worker).copied().unwrap_or(1);
            for number in known.map_or_else(first, |known| known.at.segment)..=anchor.at.segment {
                let path = segment::path(directory, *worker, number);
                let file = File::open(&path).map_err(failed(&path, "open it"))?;
                file.sync_data().map_err(failed(&path, "sync it"))?;
            }
        }
        Ok(())
    }

    /// The bytes of journals that are behind it, as far as the lengths of files show that.
    ///
    /// # Errors
    /// Those of listing files.
    pub fn bytes_behind(&self, directory: &Path) -> io::Result<u64> {
        let mut files: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
        for (worker, number) in segment::list(directory)? {
            if self.anchors.get(&worker).is_none_or(|anchor| number > anchor.at.segment) {
                let bytes =
                    fs::metadata(segment::path(directory, worker, number)).map_or(0, |found| found.len());
                files.entry(worker).or_default().push(bytes);
            }
        }
        // The last file of a worker is being written, or not even that.
        Ok(files.values().flat_map(|bytes| bytes.iter().rev().skip(1)).sum())
    }
}

fn read_up_to(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn make(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(path)
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if bytes.len() as u64 > BYTES_MAX {
        let reason =
            format!("a checkpoint of {} bytes is larger than the {BYTES_MAX} that are read", bytes.len());
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    let mut file = make(path)?;
    // One large flush would hold up the workers' commits on the same disk.
    for piece in bytes.chunks(PIECE_BYTES) {
        file.write_all(piece)?;
        file.sync_data()?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint() -> Checkpoint {
        let anchor =
            |segment, offset| Anchor { at: Position { segment, offset }, lsn: 77, checksum: u32::MAX };
        Checkpoint {
            anchors: BTreeMap::from([(0, anchor(3, 64)), (65_535, anchor(1, 4096))]),
            archived_before: BTreeMap::from([(0, 2)]),
            last: (u64::MAX, true),
            state: b"what was collected".to_vec(),
        }
    }

    #[test]
    fn a_checkpoint_is_read_back_and_every_flipped_bit_and_every_cut_is_found() {
        let bytes = checkpoint().encode();
        assert_eq!(Checkpoint::decode(&bytes), Some(checkpoint()));
        assert_eq!(bytes[..20], *b"weir journal chk\x01\0\0\0");
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Checkpoint::decode(&damaged), None, "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert_eq!(Checkpoint::decode(&bytes[..length]), None, "{length}");
        }
    }

    #[test]
    fn a_checkpoint_replaces_the_former_one_and_one_that_cannot_be_written_leaves_it() {
        let folder = std::env::temp_dir().join(format!("weir-checkpoint-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("it can be made");
        let read = |which| Checkpoint::read(&folder, which).expect("it can be read");
        assert_eq!(read(CheckpointFile::Latest), None);
        Checkpoint::default().write(&folder, CheckpointFile::Latest).expect("it can be written");
        checkpoint().write(&folder, CheckpointFile::Latest).expect("it can be written");
        assert_eq!((read(CheckpointFile::Latest), read(CheckpointFile::Base)), (Some(checkpoint()), None));
        Checkpoint::can_be_written(&folder, CheckpointFile::Latest).expect("it can");
        fs::create_dir(folder.join("journals.making")).expect("it can be made");
        Checkpoint::can_be_written(&folder, CheckpointFile::Latest).expect_err("a folder");
        let error = Checkpoint::default().write(&folder, CheckpointFile::Latest).expect_err("a folder");
        assert!(
            error.to_string().starts_with(&format!("{}/journals.checkpoint: ", folder.display())),
            "{error}"
        );
        assert_eq!(read(CheckpointFile::Latest), Some(checkpoint()));
        fs::write(CheckpointFile::Latest.path(&folder), b"anything").expect("it can be written");
        let error = Checkpoint::read(&folder, CheckpointFile::Latest).expect_err("no checkpoint");
        assert!(matches!(error, CheckpointError::Unreadable { .. }));
        fs::remove_dir_all(folder).expect("it is ours");
    }
}
