//! An output that is read as it arrives: it is counted and hashed, and only its end is kept. On request each block has
//! a hash, so that the first block in which two outputs differ can be found, and one block is kept.

use std::{
    io::{self, PipeReader, Read},
    os::fd::{AsFd, BorrowedFd},
};

use blake2::{Blake2b128, Digest};
use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    pipe::fcntl_setpipe_size,
};

use super::{BLOCK_BYTES, BLOCKS_MAX, OutputBlock, OutputDigest, TAIL_BYTES_MAX};

/// Size of a pipe's buffer, where the system grants it: a program that writes much seldom waits.
const PIPE_BYTES: usize = 1 << 20;

/// Read at once.
pub(super) const CHUNK_BYTES: usize = 64 << 10;

/// One output of a run.
pub(super) struct Stream {
    /// `None` when it has ended.
    source: Option<PipeReader>,
    content: Content,
}

/// Parts of an output that are kept beside its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// Its end.
    End,
    /// The hash of each block as well, and the first block.
    Blocks,
    /// One block as well.
    Block(u32),
}

/// Parts of an output, of bounded size.
struct Content {
    bytes: u64,
    hash: Blake2b128,
    tail: Vec<u8>,
    keep: Keep,
    blocks: Vec<OutputBlock>,
    /// The block that is not full yet: its hash and ends of lines.
    open: (Blake2b128, u32),
    kept: Vec<u8>,
}

impl Stream {
    /// Takes over the reading end of a pipe, without blocking from now on.
    pub(super) fn new(source: PipeReader, keep: Keep) -> io::Result<Self> {
        fcntl_setfl(&source, fcntl_getfl(&source)? | OFlags::NONBLOCK)?;
        // The kernel refuses it to users who have many large pipes; the usual size works as well.
        let _ = fcntl_setpipe_size(&source, PIPE_BYTES);
        Ok(Self { source: Some(source), content: Content::new(keep) })
    }

    /// Its file descriptor to poll; none when it has ended.
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

    /// The whole output.
    pub(super) fn finish(self) -> OutputDigest {
        self.content.finish()
    }
}

impl Content {
    fn new(keep: Keep) -> Self {
        let (hash, open) = (Blake2b128::new(), (Blake2b128::new(), 0));
        Self { bytes: 0, hash, tail: Vec::new(), keep, blocks: Vec::new(), open, kept: Vec::new() }
    }

    fn take(&mut self, chunk: &[u8]) {
        if self.keep != Keep::End {
            self.take_by_block(chunk);
        }
        self.bytes += chunk.len() as u64;
        self.hash.update(chunk);
        let end = &chunk[chunk.len().saturating_sub(TAIL_BYTES_MAX)..];
        self.tail.extend_from_slice(end);
        let surplus = self.tail.len().saturating_sub(TAIL_BYTES_MAX);
        self.tail.drain(..surplus);
    }

    /// The part of a chunk that belongs to each block.
    fn take_by_block(&mut self, chunk: &[u8]) {
        let (mut at, mut rest) = (self.bytes, chunk);
        while !rest.is_empty() {
            let in_block = (at % BLOCK_BYTES as u64) as usize;
            let (own, later) = rest.split_at(rest.len().min(BLOCK_BYTES - in_block));
            self.take_of_block(at / BLOCK_BYTES as u64, own);
            if in_block + own.len() == BLOCK_BYTES {
                self.close_block();
            }
            (at, rest) = (at + own.len() as u64, later);
        }
    }

    fn take_of_block(&mut self, number: u64, bytes: &[u8]) {
        let wanted = match self.keep {
            Keep::End => None,
            Keep::Blocks => Some(0),
            Keep::Block(number) => Some(u64::from(number)),
        };
        if wanted == Some(number) {
            self.kept.extend_from_slice(bytes);
        }
        if self.keep == Keep::Blocks && number < u64::from(BLOCKS_MAX) {
            self.open.0.update(bytes);
            // A block has fewer bytes than this type has numbers.
            self.open.1 += bytes.iter().filter(|byte| **byte == b'\n').count() as u32;
        }
    }

    fn close_block(&mut self) {
        if self.keep == Keep::Blocks && self.blocks.len() < BLOCKS_MAX as usize {
            let (hash, lines) = std::mem::replace(&mut self.open, (Blake2b128::new(), 0));
            let first = hash.finalize().iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte));
            self.blocks.push(OutputBlock { hash: first, lines });
        }
    }

    fn finish(mut self) -> OutputDigest {
        if !self.bytes.is_multiple_of(BLOCK_BYTES as u64) {
            self.close_block();
        }
        let hash = self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let tail = text(&self.tail);
        OutputDigest { bytes: self.bytes, hash, tail, blocks: self.blocks, kept: self.kept }
    }
}

/// Bytes as text of at most as many bytes; each byte that is no UTF-8 becomes a question mark.
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
            let mut content = Content::new(Keep::End);
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

    fn digest_of(keep: Keep, bytes: &[u8], chunk_bytes: usize) -> OutputDigest {
        let mut content = Content::new(keep);
        bytes.chunks(chunk_bytes).for_each(|chunk| content.take(chunk));
        content.finish()
    }

    #[test]
    fn blocks_are_the_same_however_the_output_came() {
        let mut bytes = vec![b'a'; 2 * BLOCK_BYTES + 5];
        bytes[BLOCK_BYTES] = b'\n';
        let whole = digest_of(Keep::Blocks, &bytes, bytes.len());
        assert_eq!(whole, digest_of(Keep::Blocks, &bytes, 1_000));
        assert_eq!(whole.blocks.iter().map(|block| block.lines).collect::<Vec<_>>(), [0, 1, 0]);
        assert_ne!(whole.blocks[0].hash, whole.blocks[1].hash);
        assert_eq!(whole.kept, bytes[..BLOCK_BYTES]);
        let full = digest_of(Keep::Blocks, &bytes[..BLOCK_BYTES], 7_000);
        assert_eq!(full.blocks, whole.blocks[..1], "a full block has no empty one after it");
        assert_eq!((full.hash.len(), digest_of(Keep::End, &bytes, 9).blocks.len()), (32, 0));
    }

    #[test]
    fn the_block_that_is_wanted_is_kept_and_no_other() {
        let bytes: Vec<u8> = (0..2 * BLOCK_BYTES + 5).map(|at| (at / BLOCK_BYTES) as u8).collect();
        for (number, kept) in [(0, BLOCK_BYTES), (1, BLOCK_BYTES), (2, 5), (3, 0)] {
            let found = digest_of(Keep::Block(number), &bytes, 10_000);
            assert_eq!(found.kept, vec![number as u8; kept], "block {number}");
            assert!(found.blocks.is_empty());
        }
    }

    #[test]
    fn an_output_without_end_has_so_many_blocks_and_no_more() {
        let mut content = Content::new(Keep::Blocks);
        content.blocks = vec![OutputBlock::default(); BLOCKS_MAX as usize - 1];
        content.bytes = u64::from(BLOCKS_MAX - 1) * BLOCK_BYTES as u64;
        content.take(&[b'a'; BLOCK_BYTES]);
        content.take(&[b'a'; BLOCK_BYTES]);
        assert_eq!(content.finish().blocks.len(), BLOCKS_MAX as usize);
    }

    #[test]
    fn of_a_long_output_the_end_is_kept_up_to_its_maximum() {
        let mut content = Content::new(Keep::End);
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
        let mut stream = Stream::new(reader, Keep::End).expect("it can be made non-blocking");
        let mut chunk = [0; 4];
        assert!(!stream.read(&mut chunk) && stream.waits_for().is_some(), "it is open and empty");
        writer.write_all(b"abcdef").expect("it is open");
        assert!(stream.read(&mut chunk) && stream.read(&mut chunk) && !stream.read(&mut chunk));
        drop(writer);
        assert!(!stream.read(&mut chunk) && stream.waits_for().is_none());
        assert_eq!(stream.finish().tail, "abcdef");
    }
}
