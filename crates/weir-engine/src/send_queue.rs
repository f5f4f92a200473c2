//! The bytes that a connection still has to send: an ordered queue of chunks.
//!
//! Pure except for the buffers that it owns. Chunks keep their address while they are queued, so that the front may
//! be in flight in the kernel while more is appended; the front is only removed by `consume`.
//!
//! A chunk is bytes or a part of a file, which the driver sends without seeing its bytes. A part counts in the queue
//! with its full length, as bytes do: so the high-water mark bounds the parts too, and a sender that has queued a
//! long file waits until little of it remains. It holds a descriptor and no memory.

use std::{io::IoSlice, os::fd::OwnedFd, rc::Rc, sync::Arc};

use crate::{
    inline_queue::InlineQueue,
    pool::{Lease, Pool},
};

/// Bytes to send. Everything that owns its bytes at a stable address can be sent without a copy.
#[derive(Debug)]
pub enum SendBuf {
    /// A received buffer, sent back or forwarded as it is.
    Lease(Lease),
    /// Bytes that the caller owns.
    Owned(Box<[u8]>),
    /// Bytes that connections of one runtime share.
    Shared(Rc<[u8]>),
    /// Bytes that live as long as the program.
    Static(&'static [u8]),
    /// A part of a file, sent from the page cache to the socket without a copy.
    File(FilePart),
}

impl SendBuf {
    /// The bytes, if they are in memory.
    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            SendBuf::Lease(lease) => lease,
            SendBuf::Owned(bytes) => bytes,
            SendBuf::Shared(bytes) => bytes,
            SendBuf::Static(bytes) => bytes,
            SendBuf::File(_) => &[],
        }
    }

    /// Copies a lease to the heap, so that its buffer returns to the pool.
    #[cold]
    pub(crate) fn release_lease(&mut self) {
        if let SendBuf::Lease(lease) = self {
            *self = SendBuf::Owned(lease[..].into());
        }
    }

    #[inline]
    fn len(&self) -> usize {
        match self {
            SendBuf::File(part) => part.length,
            bytes => bytes.bytes().len(),
        }
    }
}

/// A part of a file that can be sent. It keeps the file open.
#[derive(Clone, Debug)]
pub struct FilePart {
    file: Arc<OwnedFd>,
    offset: u64,
    length: usize,
}

impl FilePart {
    pub(crate) fn new(file: Arc<OwnedFd>, offset: u64, length: usize) -> Self {
        Self { file, offset, length }
    }

    /// The part of it from `offset` on, counted from the start of the part; at most `length_max` bytes, and none
    /// beyond its end.
    pub fn slice(&self, offset: usize, length_max: usize) -> Self {
        let skipped = offset.min(self.length);
        let length = (self.length - skipped).min(length_max);
        Self { file: Arc::clone(&self.file), offset: self.offset + skipped as u64, length }
    }

    pub(crate) fn file(&self) -> &Arc<OwnedFd> {
        &self.file
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// The range of a file to send next.
#[derive(Debug)]
pub(crate) struct FileRange<'a> {
    pub(crate) file: &'a OwnedFd,
    pub(crate) offset: u64,
    pub(crate) length: usize,
}

/// The front of the queue.
#[derive(Debug)]
pub(crate) enum Front<'a> {
    Bytes(&'a [u8]),
    File(FileRange<'a>),
}

/// The chunks that can leave in one send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gathered {
    /// Slices filled.
    pub(crate) count: usize,
    /// A chunk that needs a separate send, such as a file, follows at once: the kernel may wait for it before it
    /// sends a packet that is not full.
    pub(crate) more_follows: bool,
}

impl From<FilePart> for SendBuf {
    fn from(part: FilePart) -> Self {
        SendBuf::File(part)
    }
}

impl From<Lease> for SendBuf {
    fn from(lease: Lease) -> Self {
        SendBuf::Lease(lease)
    }
}

impl From<Vec<u8>> for SendBuf {
    fn from(bytes: Vec<u8>) -> Self {
        SendBuf::Owned(bytes.into_boxed_slice())
    }
}

impl From<Box<[u8]>> for SendBuf {
    fn from(bytes: Box<[u8]>) -> Self {
        SendBuf::Owned(bytes)
    }
}

impl From<Rc<[u8]>> for SendBuf {
    fn from(bytes: Rc<[u8]>) -> Self {
        SendBuf::Shared(bytes)
    }
}

impl From<&'static [u8]> for SendBuf {
    fn from(bytes: &'static [u8]) -> Self {
        SendBuf::Static(bytes)
    }
}

impl<const N: usize> From<&'static [u8; N]> for SendBuf {
    fn from(bytes: &'static [u8; N]) -> Self {
        SendBuf::Static(bytes)
    }
}

#[derive(Debug)]
struct Chunk {
    bytes: SendBuf,
    /// A pool buffer that more bytes may be appended to, as long as none of it is in flight.
    open: bool,
}

impl Chunk {
    /// Its length in bytes, if it can be lent to the kernel for any length of time: pool buffers cannot.
    fn lendable_len(&self) -> usize {
        match &self.bytes {
            SendBuf::Owned(_) | SendBuf::Shared(_) | SendBuf::Static(_) => self.bytes.len(),
            SendBuf::Lease(_) | SendBuf::File(_) => 0,
        }
    }
}

/// A chunk from the front of a queue, while the kernel may read it.
#[derive(Debug)]
pub(crate) struct LentChunk {
    bytes: SendBuf,
    sent_before: usize,
}

impl LentChunk {
    /// The bytes that are still to be sent.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes.bytes()[self.sent_before..]
    }
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    chunks: InlineQueue<Chunk>,
    /// Bytes of the front chunk that are already sent.
    sent_of_front: usize,
    /// Bytes in all chunks, less those already sent.
    bytes: usize,
}

impl SendQueue {
    /// Bytes still to send.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Appends a chunk; empty ones are dropped.
    #[inline]
    pub(crate) fn push(&mut self, bytes: SendBuf) {
        let length = bytes.len();
        if length > 0 {
            self.bytes += length;
            self.chunks.push_back(Chunk { bytes, open: false });
        }
    }

    /// Copies `bytes` behind the queued ones: into the last send buffer while it is open and has room, else into new
    /// buffers of `pool`, else (the pool is exhausted) onto the heap.
    pub(crate) fn push_copy(&mut self, mut bytes: &[u8], pool: &Rc<Pool>) {
        self.bytes += bytes.len();
        if let Some(Chunk { bytes: SendBuf::Lease(lease), open: true }) = self.chunks.back_mut() {
            bytes = &bytes[lease.append(bytes)..];
        }
        while !bytes.is_empty() {
            let Some(buffer) = pool.take(pool.class_for(bytes.len())) else {
                self.chunks.push_back(Chunk { bytes: SendBuf::Owned(bytes.into()), open: false });
                return;
            };
            let mut lease = buffer.lease(0);
            bytes = &bytes[lease.append(bytes)..];
            self.chunks.push_back(Chunk { bytes: SendBuf::Lease(lease), open: true });
        }
    }

    /// Ends appending to the last buffer: from now on the kernel may read it.
    #[inline]
    pub(crate) fn seal(&mut self) {
        if let Some(chunk) = self.chunks.back_mut() {
            chunk.open = false;
        }
    }

    /// The next bytes to send, from one chunk.
    #[inline]
    pub(crate) fn front(&self) -> Option<Front<'_>> {
        let chunk = self.chunks.front()?;
        Some(match &chunk.bytes {
            SendBuf::File(part) => Front::File(FileRange {
                file: &part.file,
                offset: part.offset + self.sent_of_front as u64,
                length: part.length - self.sent_of_front,
            }),
            bytes => Front::Bytes(&bytes.bytes()[self.sent_of_front..]),
        })
    }

    /// Replaces the next part of the file at the front with its bytes, which were read.
    pub(crate) fn place_front(&mut self, bytes: Box<[u8]>) {
        let Some(Chunk { bytes: SendBuf::File(part), .. }) = self.chunks.front_mut() else { return };
        let done = std::mem::take(&mut self.sent_of_front) + bytes.len();
        debug_assert!(done <= part.length, "more was read than is to be sent");
        part.offset += done as u64;
        part.length = part.length.saturating_sub(done);
        let is_rest = part.length == 0;
        let piece = Chunk { bytes: SendBuf::Owned(bytes), open: false };
        if is_rest {
            self.chunks.pop_front();
        }
        self.chunks.push_front(piece);
    }

    /// Whether more than one chunk is queued.
    #[inline]
    pub(crate) fn is_scattered(&self) -> bool {
        self.chunks.has_several()
    }

    /// Whether one of the next `chunks_max` chunks is a file.
    pub(crate) fn leads_to_file(&self, chunks_max: usize) -> bool {
        self.chunks.iter().take(chunks_max).any(|chunk| matches!(chunk.bytes, SendBuf::File(_)))
    }

    /// Fills `slices` with the next chunks. Stops before the next file, and before the next lendable chunk behind the
    /// first that has at least `alone_from` bytes.
    pub(crate) fn gather<'a>(&'a self, slices: &mut [IoSlice<'a>], alone_from: usize) -> Gathered {
        let mut skip = self.sent_of_front;
        let mut count = 0;
        for (slice, chunk) in slices.iter_mut().zip(self.chunks.iter()) {
            let goes_alone = count > 0 && chunk.lendable_len() >= alone_from;
            if goes_alone || matches!(chunk.bytes, SendBuf::File(_)) {
                return Gathered { count, more_follows: true };
            }
            *slice = IoSlice::new(&chunk.bytes.bytes()[skip..]);
            skip = 0;
            count += 1;
        }
        Gathered { count, more_follows: false }
    }

    /// Unsent bytes of the front chunk, if it can be lent.
    pub(crate) fn lendable_front(&self) -> usize {
        self.chunks.front().map_or(0, |chunk| chunk.lendable_len().saturating_sub(self.sent_of_front))
    }

    /// Takes the front chunk out for a send that reads it in place. Its bytes count as queued, and nothing else is
    /// taken from the queue, until it is settled or given back.
    pub(crate) fn lend_front(&mut self) -> Option<LentChunk> {
        if self.lendable_front() == 0 {
            return None;
        }
        let Chunk { bytes, .. } = self.chunks.pop_front()?;
        Some(LentChunk { bytes, sent_before: std::mem::take(&mut self.sent_of_front) })
    }

    /// Puts back a chunk of which nothing was sent.
    pub(crate) fn return_lent(&mut self, chunk: LentChunk) {
        self.sent_of_front = chunk.sent_before;
        self.chunks.push_front(Chunk { bytes: chunk.bytes, open: false });
    }

    /// Marks `sent` bytes of a lent chunk as sent. The chunk stays lent, and its remaining bytes are sent from a
    /// copy.
    pub(crate) fn settle_lent(&mut self, chunk: &LentChunk, sent: usize) {
        let rest = &chunk.rest()[sent..];
        self.bytes -= sent;
        if !rest.is_empty() {
            self.chunks.push_front(Chunk { bytes: SendBuf::Owned(rest.into()), open: false });
        }
    }

    /// Removes `sent` bytes from the front; finished chunks return their buffers.
    #[inline]
    pub(crate) fn consume(&mut self, sent: usize) {
        self.bytes -= sent;
        if self.bytes == 0 {
            // The usual case: everything was sent.
            self.sent_of_front = 0;
            self.chunks.clear();
            return;
        }
        self.sent_of_front += sent;
        while let Some(chunk) = self.chunks.front() {
            let length = chunk.bytes.len();
            if self.sent_of_front < length {
                return;
            }
            self.sent_of_front -= length;
            self.chunks.pop_front();
        }
    }

    /// Copies leased chunks to the heap so that a slow peer does not hold the runtime's buffers; chunks that contain
    /// any of the first `in_flight` bytes stay where they are. Bounded by the connection's high-water mark plus one
    /// message.
    pub(crate) fn release_leases(&mut self, in_flight: usize) {
        let mut before = 0;
        for (position, chunk) in self.chunks.iter_mut().enumerate() {
            let done = if position == 0 { self.sent_of_front } else { 0 };
            let is_in_flight = before < in_flight;
            before += chunk.bytes.len() - done;
            if is_in_flight {
                continue;
            }
            if let SendBuf::Lease(lease) = &chunk.bytes {
                let rest: Box<[u8]> = lease[done..].into();
                chunk.bytes = SendBuf::Owned(rest);
                chunk.open = false;
                if position == 0 {
                    self.sent_of_front = 0;
                }
            }
        }
    }

    /// Removes everything; the connection is broken.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::pool::PoolShape;

    #[derive(Clone, Debug)]
    enum Step {
        Push(Vec<u8>),
        Copy(Vec<u8>),
        Lease(Vec<u8>),
        File(u16, usize),
        Send(usize),
        /// Lend the front to a send that takes this many bytes of it.
        Lend(usize),
        /// The file system cannot send: read this many bytes.
        Read(usize),
        Seal,
        Release,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..300);
        let step = prop_oneof![
            bytes().prop_map(Step::Push),
            bytes().prop_map(Step::Copy),
            bytes().prop_map(Step::Lease),
            (any::<u16>(), 0usize..900).prop_map(|(offset, length)| Step::File(offset, length)),
            (0usize..400).prop_map(Step::Send),
            (0usize..400).prop_map(Step::Lend),
            (1usize..300).prop_map(Step::Read),
            Just(Step::Seal),
            Just(Step::Release),
        ];
        prop::collection::vec(step, 0..60)
    }

    /// The bytes of this test's file at a position.
    fn file_bytes(offset: u64, length: usize) -> Vec<u8> {
        (offset..offset + length as u64).map(|place| (place % 251) as u8).collect()
    }

    /// The bytes that one send of at most `limit` bytes takes from the front, as a driver does it.
    fn next(queue: &SendQueue, limit: usize, gather: bool) -> Vec<u8> {
        let mut slices = [IoSlice::new(&[]); 3];
        let mut available: Vec<u8> = match queue.front() {
            Some(Front::File(range)) => file_bytes(range.offset, range.length),
            Some(Front::Bytes(_)) if gather => {
                let gathered = queue.gather(&mut slices, 200);
                assert!(gathered.count > 0, "bytes are at the front");
                slices[..gathered.count].iter().flat_map(|slice| slice.iter().copied()).collect()
            }
            Some(Front::Bytes(bytes)) => bytes.to_vec(),
            None => Vec::new(),
        };
        available.truncate(limit);
        available
    }

    #[test]
    fn what_is_gathered_ends_before_a_file_and_says_so() {
        let file = Arc::new(OwnedFd::from(std::fs::File::open("/dev/null").expect("it is everywhere")));
        let mut queue = SendQueue::default();
        queue.push(b"head".into());
        queue.push(FilePart::new(Arc::clone(&file), 5, 100).into());
        queue.push(b"tail".into());
        queue.push(FilePart::new(file, 0, 0).into());
        assert_eq!(queue.len(), 108, "an empty part is no chunk");
        assert!(queue.leads_to_file(2) && !queue.leads_to_file(1));
        let gather = |queue: &SendQueue| {
            let gathered = queue.gather(&mut [IoSlice::new(&[]); 4], usize::MAX);
            (gathered.count, gathered.more_follows)
        };
        assert_eq!(gather(&queue), (1, true));
        queue.consume(4);
        assert_eq!(gather(&queue), (0, true));
        queue.consume(60);
        let Some(Front::File(range)) = queue.front() else { panic!("the file is next") };
        assert_eq!((range.offset, range.length), (65, 40));
        queue.consume(40);
        assert_eq!(gather(&queue), (1, false));
    }

    #[test]
    fn what_is_gathered_ends_before_a_chunk_that_goes_alone() {
        let pool = Pool::new(PoolShape { bytes: Some(128), count: Some(4), class_bytes_max: 1 << 20 });
        let mut queue = SendQueue::default();
        queue.push(b"head".into());
        queue.push_copy(&[1; 128], &pool);
        queue.push(vec![2; 100].into());
        queue.push(b"tail".into());
        let gather = |queue: &SendQueue| {
            let gathered = queue.gather(&mut [IoSlice::new(&[]); 8], 100);
            (gathered.count, gathered.more_follows)
        };
        assert_eq!(gather(&queue), (2, true), "a buffer of the runtime's is not lent");
        assert_eq!(
            (queue.lendable_front(), queue.lend_front().map(|chunk| chunk.rest().len())),
            (4, Some(4))
        );
        queue.return_lent(LentChunk { bytes: b"head".into(), sent_before: 0 });
        queue.consume(132);
        assert_eq!(gather(&queue), (2, false), "the first one is not left out");
        let chunk = queue.lend_front().expect("it is no lease");
        queue.settle_lent(&chunk, 99);
        assert_eq!((queue.len(), queue.lendable_front()), (5, 1));
    }

    #[test]
    fn a_slice_of_a_part_stays_within_it() {
        let file = Arc::new(OwnedFd::from(std::fs::File::open("/dev/null").expect("it is everywhere")));
        let part = FilePart::new(file, 100, 50);
        for (offset, length_max, expected) in [
            (0, usize::MAX, (100, 50)),
            (10, 20, (110, 20)),
            (10, 41, (110, 40)),
            (50, 1, (150, 0)),
            (usize::MAX, usize::MAX, (150, 0)),
        ] {
            let slice = part.slice(offset, length_max);
            assert_eq!((slice.offset, slice.len()), expected);
            assert_eq!(slice.is_empty(), expected.1 == 0);
        }
    }

    proptest! {
        #[test]
        fn the_bytes_leave_in_order_whatever_happens(script in steps(), gather in any::<bool>()) {
            let pool = Pool::new(PoolShape { bytes: Some(128), count: Some(4), class_bytes_max: 1 << 20 });
            let file = Arc::new(OwnedFd::from(std::fs::File::open("/dev/null").expect("it is everywhere")));
            let mut queue = SendQueue::default();
            let (mut expected, mut sent) = (Vec::new(), Vec::new());
            for step in script {
                match step {
                    Step::Push(bytes) => {
                        expected.extend_from_slice(&bytes);
                        queue.push(bytes.into());
                    }
                    Step::Copy(bytes) => {
                        expected.extend_from_slice(&bytes);
                        queue.push_copy(&bytes, &pool);
                    }
                    Step::Lease(bytes) => {
                        if let Some(buffer) = pool.take(0) {
                            let mut lease = buffer.lease(0);
                            let kept = lease.append(&bytes);
                            expected.extend_from_slice(&bytes[..kept]);
                            queue.push(lease.into());
                        }
                    }
                    Step::File(offset, length) => {
                        expected.extend(file_bytes(offset.into(), length));
                        queue.push(FilePart::new(Arc::clone(&file), offset.into(), length).into());
                    }
                    Step::Send(limit) => {
                        let taken = next(&queue, limit, gather);
                        sent.extend_from_slice(&taken);
                        queue.seal();
                        queue.consume(taken.len());
                    }
                    Step::Lend(limit) => {
                        if let Some(chunk) = queue.lend_front() {
                            let count = limit.min(chunk.rest().len());
                            sent.extend_from_slice(&chunk.rest()[..count]);
                            if count == 0 {
                                queue.return_lent(chunk);
                            } else {
                                queue.settle_lent(&chunk, count);
                            }
                        }
                    }
                    Step::Read(limit) => {
                        let piece = match queue.front() {
                            Some(Front::File(range)) => file_bytes(range.offset, range.length.min(limit)),
                            Some(Front::Bytes(_)) | None => Vec::new(),
                        };
                        queue.place_front(piece.into());
                    }
                    Step::Seal => queue.seal(),
                    Step::Release => queue.release_leases(0),
                }
                prop_assert_eq!(queue.len(), expected.len() - sent.len());
            }
            while !queue.is_empty() {
                let taken = next(&queue, usize::MAX, gather);
                prop_assert!(!taken.is_empty());
                sent.extend_from_slice(&taken);
                queue.consume(taken.len());
            }
            prop_assert_eq!(sent, expected);
        }
    }
}
