//! Both outputs of a run, as far as the launcher reads them. They are read until the last process of the run is gone: a
//! full pipe would stop a process that the command left, and its output would be cut.

use std::os::fd::BorrowedFd;

use super::{
    OutputDigest,
    digest::{CHUNK_BYTES, Stream},
};

/// The outputs.
pub(super) struct Outputs {
    streams: [Option<Stream>; 2],
    chunk: Vec<u8>,
}

impl Outputs {
    /// Standard output and standard error; `None` for one that is not read.
    pub(super) fn new(streams: [Option<Stream>; 2]) -> Self {
        Self { streams, chunk: vec![0; CHUNK_BYTES] }
    }

    /// For a run whose outputs are not read.
    pub(super) fn none() -> Self {
        Self { streams: [None, None], chunk: Vec::new() }
    }

    /// File descriptors to poll: those of outputs that have not ended.
    pub(super) fn wait_for(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.streams.iter().flatten().filter_map(Stream::waits_for)
    }

    /// Reads each output once, so that neither keeps the other from being read. Says whether there may be more at once.
    pub(super) fn read(&mut self) -> bool {
        let mut more = false;
        for stream in self.streams.iter_mut().flatten() {
            more |= stream.read(&mut self.chunk);
        }
        more
    }

    /// Reads what is still in the pipes when no process is left that could write.
    pub(super) fn finish(mut self) -> [OutputDigest; 2] {
        while self.read() {}
        self.streams.map(|stream| stream.map(Stream::finish).unwrap_or_default())
    }
}
