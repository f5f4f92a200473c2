//! An output that is read as it comes: counted and hashed, and kept no further than its end.

use std::{
    io::{self, PipeReader, Read},
    os::fd::{AsFd, BorrowedFd},
};

use blake2::{Blake2b128, Digest};
use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    pipe::fcntl_setpipe_size,
};

use super::{OutputDigest, TAIL_BYTES_MAX};

/// How much a pipe holds, where the system grants it: a program that writes much waits seldom.
const PIPE_BYTES: usize = 1 << 20;

/// Read at once.
pub(super) const CHUNK_BYTES: usize = 64 << 10;

/// One output of a run.
pub(super) struct Stream {
    /// `None` when it has ended.
    source: Option<PipeReader>,
    content: Content,
}

/// What came, in a size that does not grow with it.
#[derive(Default)]
struct Content {
    bytes: u64,
    hash: Blake2b128,
    tail: Vec<u8>,
}

impl Stream {
    /// Takes over the reading end of a pipe, without blocking from now on.
    pub(super) fn new(source: PipeReader) -> io::Result<Self> {
        fcntl_setfl(&source, fcntl_getfl(&source)? | OFlags::NONBLOCK)?;
        // Refused to users who have many large pipes; the usual size works as well.
        let _ = fcntl_setpipe_size(&source, PIPE_BYTES);
        Ok(Self { source: Some(source), content: Content::default() })
    }

    /// What to wait for; nothing when it has ended.
    pub(super) fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        self.source.as_ref().map(AsFd::as_fd)
    }

    /// Reads once. Says whether there may be more at once.
    pub(super) fn read(&mut self, chunk: &mut [u8]) -> bool {
        let Some(source) = &mut self.source else { return false };
        match source.read(chunk) {
            Ok(length @ 1..) => {
                self.content.take(&chunk[..length]);
                true
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Ok(0) | Err(_) => {
                self.source = None;
                false
            }
        }
    }

    /// What came in all.
    pub(super) fn finish(self) -> OutputDigest {
        self.content.finish()
    }
}

impl Content {
    fn take(&mut self, chunk: &[u8]) {
        self.bytes += chunk.len() as u64;
        self.hash.update(chunk);
        let end = &chunk[chunk.len().saturating_sub(TAIL_BYTES_MAX)..];
        self.tail.extend_from_slice(end);
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES_MAX);
        self.tail.drain(..surplus);
    }

    fn finish(self) -> OutputDigest {
        let hash = self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        OutputDigest { bytes: self.bytes, hash, tail: text(&self.tail) }
    }
}

/// Bytes as text of at most as many bytes; what is no UTF-8 becomes a question mark each.
fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn equal_outputs_have_equal_digests_however_they_came() {
        let digest = |chunks: &[&[u8]]| {
            let mut content = Content::default();
            chunks.iter().for_each(|chunk| content.take(chunk));
            content.finish()
        };
        let whole = digest(&[b"hello world\n"]);
        assert_eq!(whole, digest(&[b"hel", b"", b"lo world", b"\n"]));
        assert_eq!((whole.bytes, whole.tail.as_str()), (12, "hello world\n"));
        assert_eq!(whole.hash.len(), 32);
        assert_ne!(whole.hash, digest(&[b"hello_world\n"]).hash);
        assert_ne!(digest(&[]).hash, "", "what was read and is empty has a hash");
    }

    #[test]
    fn of_a_long_output_the_end_is_kept_up_to_its_maximum() {
        let mut content = Content::default();
        for _ in 0..100 {
            content.take(&[b'a'; 1000]);
        }
        content.take(b"\xc3\xa9\xffz");
        assert_eq!(content.tail.len(), TAIL_BYTES_MAX);
        let digest = content.finish();
        assert_eq!((digest.bytes, digest.tail.len()), (100_004, TAIL_BYTES_MAX));
        assert!(digest.tail.ends_with("aé?z"), "{}", digest.tail);
    }

    #[test]
    fn a_stream_is_read_until_it_is_empty_and_until_it_has_ended() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let mut stream = Stream::new(reader).expect("it can be made non-blocking");
        let mut chunk = [0; 4];
        assert!(!stream.read(&mut chunk) && stream.waits_for().is_some(), "it is open and empty");
        writer.write_all(b"abcdef").expect("it is open");
        assert!(stream.read(&mut chunk) && stream.read(&mut chunk) && !stream.read(&mut chunk));
        drop(writer);
        assert!(!stream.read(&mut chunk) && stream.waits_for().is_none());
        assert_eq!(stream.finish().tail, "abcdef");
    }
}
