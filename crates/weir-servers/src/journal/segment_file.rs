//! One segment, opened for reading: recovery and inspection read it in the same way. It changes nothing.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use super::{
    Position, RecordView, RecoverError,
    record::Damage,
    recover::failed,
    segment::{self, HEADER_BYTES, Header},
    walk::{Chain, Remainder, Stop, WalkError, Window, scan_remainder, walk},
};

/// A segment whose header is that of its name.
pub(super) struct SegmentFile {
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) header: Header,
    /// Bytes of the file, which should be those of its header.
    length: u64,
}

/// The contents of one segment.
pub(super) struct Contents {
    /// Where reading ended.
    pub(super) offset: u64,
    pub(super) damage: Option<Damage>,
    pub(super) remainder: Remainder,
}

impl Contents {
    /// Whether the segment was created and never written.
    pub(super) fn is_blank(&self) -> bool {
        self.offset == HEADER_BYTES as u64 && self.remainder.content_end.is_none()
    }
}

impl SegmentFile {
    /// Opens a segment and checks its header.
    ///
    /// # Errors
    /// [`RecoverError::Header`], and those of opening and reading.
    pub(super) fn open(directory: &Path, worker: u16, number: u64) -> Result<Self, RecoverError> {
        let path = segment::path(directory, worker, number);
        let file = File::open(&path).map_err(failed(&path, "open it"))?;
        let length = file.metadata().map_err(failed(&path, "examine it"))?.len();
        let header = read_header(&file, length).map_err(failed(&path, "read it"))?;
        match header.filter(|header| (header.worker, header.number) == (worker, number)) {
            Some(header) => Ok(Self { path, file, header, length }),
            None => Err(RecoverError::Header { file: path }),
        }
    }

    /// A file that is shorter than its header says was truncated.
    pub(super) fn check_length(&self) -> Result<(), RecoverError> {
        if self.length >= self.header.bytes {
            return Ok(());
        }
        let (bytes, bytes_expected) = (self.length, self.header.bytes);
        Err(RecoverError::Short { file: self.path.clone(), bytes, bytes_expected })
    }

    /// Bytes that can be read.
    fn end(&self) -> u64 {
        self.length.min(self.header.bytes)
    }

    /// Shows each record from `from` on to `visit`, and scans what is behind the last one.
    pub(super) fn read(
        &self,
        from: u64,
        chain: &mut Chain,
        memory: &mut Vec<u8>,
        visit: &mut dyn FnMut(RecordView<'_>, Position) -> Result<(), String>,
    ) -> Result<Contents, RecoverError> {
        let mut window = Window::new(&self.file, self.end(), memory);
        let stop = self.walk_in(&mut window, from, chain, visit)?;
        let remainder =
            scan_remainder(&mut window, stop.offset, chain).map_err(failed(&self.path, "read it"))?;
        Ok(Contents { offset: stop.offset, damage: stop.damage, remainder })
    }

    /// Shows each record from `from` on to `visit`.
    pub(super) fn walk(
        &self,
        from: u64,
        chain: &mut Chain,
        memory: &mut Vec<u8>,
        visit: &mut dyn FnMut(RecordView<'_>, Position) -> Result<(), String>,
    ) -> Result<Stop, RecoverError> {
        self.walk_in(&mut Window::new(&self.file, self.end(), memory), from, chain, visit)
    }

    fn walk_in(
        &self,
        window: &mut Window<'_, File>,
        from: u64,
        chain: &mut Chain,
        visit: &mut dyn FnMut(RecordView<'_>, Position) -> Result<(), String>,
    ) -> Result<Stop, RecoverError> {
        let segment = self.header.number;
        let mut visit = |record: RecordView<'_>, offset| visit(record, Position { segment, offset });
        walk(window, from, chain, &mut visit).map_err(|error| match error {
            WalkError::Read(error) => failed(&self.path, "read it")(error),
            WalkError::Refused { offset, reason } => {
                RecoverError::Refused { file: self.path.clone(), offset, reason }
            }
        })
    }
}

/// `None` if the file does not begin with a header.
fn read_header(file: &File, length: u64) -> io::Result<Option<Header>> {
    if length < HEADER_BYTES as u64 {
        return Ok(None);
    }
    let mut bytes = [0; HEADER_BYTES];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(Header::decode(&bytes))
}
