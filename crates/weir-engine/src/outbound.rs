//! What a connection still has to send: an ordered queue of chunks with high and low water marks.
//!
//! Pure but for the buffers it owns. Chunks keep their address while they are queued, so that the front may be in
//! flight in the kernel while more is appended; the front is only removed by `consume`.

use std::{io::IoSlice, rc::Rc};

use crate::{
    pool::{Lease, Pool},
    short::ShortQueue,
};

/// Bytes handed to a send. Everything that owns its bytes at a stable address can be sent without a copy.
#[derive(Debug)]
pub enum Outgoing {
    /// A received buffer, sent back or passed on as it is.
    Lease(Lease),
    /// Bytes of the caller's own making.
    Owned(Box<[u8]>),
    /// Bytes shared between connections of one runtime.
    Shared(Rc<[u8]>),
    /// Bytes that live as long as the program.
    Static(&'static [u8]),
}

impl Outgoing {
    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Outgoing::Lease(lease) => lease,
            Outgoing::Owned(bytes) => bytes,
            Outgoing::Shared(bytes) => bytes,
            Outgoing::Static(bytes) => bytes,
        }
    }
}

impl From<Lease> for Outgoing {
    fn from(lease: Lease) -> Self {
        Outgoing::Lease(lease)
    }
}

impl From<Vec<u8>> for Outgoing {
    fn from(bytes: Vec<u8>) -> Self {
        Outgoing::Owned(bytes.into_boxed_slice())
    }
}

impl From<Box<[u8]>> for Outgoing {
    fn from(bytes: Box<[u8]>) -> Self {
        Outgoing::Owned(bytes)
    }
}

impl From<Rc<[u8]>> for Outgoing {
    fn from(bytes: Rc<[u8]>) -> Self {
        Outgoing::Shared(bytes)
    }
}

impl From<&'static [u8]> for Outgoing {
    fn from(bytes: &'static [u8]) -> Self {
        Outgoing::Static(bytes)
    }
}

impl<const N: usize> From<&'static [u8; N]> for Outgoing {
    fn from(bytes: &'static [u8; N]) -> Self {
        Outgoing::Static(bytes)
    }
}

#[derive(Debug)]
struct Chunk {
    bytes: Outgoing,
    /// A send buffer of ours that more may be appended to, as long as nothing of it is in flight.
    open: bool,
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Outbound {
    chunks: ShortQueue<Chunk>,
    /// Bytes of the front chunk that are already sent.
    sent_of_front: usize,
    /// Bytes in all chunks, less those already sent.
    bytes: usize,
}

impl Outbound {
    /// Bytes still to send.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Appends a chunk; empty ones are dropped.
    #[inline]
    pub(crate) fn push(&mut self, bytes: Outgoing) {
        let length = bytes.bytes().len();
        if length > 0 {
            self.bytes += length;
            self.chunks.push_back(Chunk { bytes, open: false });
        }
    }

    /// Copies `bytes` behind what is queued: into the last send buffer while it is open and has room, else into
    /// new buffers of `pool`, else (the pool is exhausted) onto the heap.
    pub(crate) fn push_copy(&mut self, mut bytes: &[u8], pool: &Rc<Pool>) {
        self.bytes += bytes.len();
        if let Some(Chunk { bytes: Outgoing::Lease(lease), open: true }) = self.chunks.back_mut() {
            bytes = &bytes[lease.append(bytes)..];
        }
        while !bytes.is_empty() {
            let Some(buffer) = pool.take(pool.class_for(bytes.len())) else {
                self.chunks.push_back(Chunk { bytes: Outgoing::Owned(bytes.into()), open: false });
                return;
            };
            let mut lease = buffer.lease(0);
            bytes = &bytes[lease.append(bytes)..];
            self.chunks.push_back(Chunk { bytes: Outgoing::Lease(lease), open: true });
        }
    }

    /// Closes the last buffer for appending: from now on the kernel may read it.
    #[inline]
    pub(crate) fn seal(&mut self) {
        if let Some(chunk) = self.chunks.back_mut() {
            chunk.open = false;
        }
    }

    /// The next bytes to send, from one chunk.
    #[inline]
    pub(crate) fn front(&self) -> Option<&[u8]> {
        let chunk = self.chunks.front()?;
        Some(&chunk.bytes.bytes()[self.sent_of_front..])
    }

    /// Whether more than one chunk is queued.
    #[inline]
    pub(crate) fn is_scattered(&self) -> bool {
        self.chunks.has_several()
    }

    /// Fills `slices` with the next chunks; returns how many.
    pub(crate) fn gather<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut skip = self.sent_of_front;
        let mut count = 0;
        for (slice, chunk) in slices.iter_mut().zip(self.chunks.iter()) {
            *slice = IoSlice::new(&chunk.bytes.bytes()[skip..]);
            skip = 0;
            count += 1;
        }
        count
    }

    /// Removes `sent` bytes from the front; chunks that are done give their buffers back.
    #[inline]
    pub(crate) fn consume(&mut self, sent: usize) {
        self.bytes -= sent;
        if self.bytes == 0 {
            // The usual case: everything went.
            self.sent_of_front = 0;
            self.chunks.clear();
            return;
        }
        self.sent_of_front += sent;
        while let Some(chunk) = self.chunks.front() {
            let length = chunk.bytes.bytes().len();
            if self.sent_of_front < length {
                return;
            }
            self.sent_of_front -= length;
            self.chunks.pop_front();
        }
    }

    /// Copies leased chunks to the heap so that a slow peer does not hold the runtime's buffers. Nothing of the
    /// queue may be in flight. Bounded by the connection's high-water mark plus one message.
    pub(crate) fn release_leases(&mut self) {
        for (position, chunk) in self.chunks.iter_mut().enumerate() {
            if let Outgoing::Lease(lease) = &chunk.bytes {
                let done = if position == 0 { self.sent_of_front } else { 0 };
                let rest: Box<[u8]> = lease[done..].into();
                chunk.bytes = Outgoing::Owned(rest);
                chunk.open = false;
                if position == 0 {
                    self.sent_of_front = 0;
                }
            }
        }
    }

    /// Forgets everything; the connection is broken.
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
        Send(usize),
        Seal,
        Release,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..300);
        let step = prop_oneof![
            bytes().prop_map(Step::Push),
            bytes().prop_map(Step::Copy),
            bytes().prop_map(Step::Lease),
            (0usize..400).prop_map(Step::Send),
            Just(Step::Seal),
            Just(Step::Release),
        ];
        prop::collection::vec(step, 0..60)
    }

    proptest! {
        #[test]
        fn the_bytes_leave_in_order_whatever_happens(script in steps(), gather in any::<bool>()) {
            let pool = Pool::new(PoolShape { bytes: Some(128), count: Some(4), class_bytes_max: 1 << 20 });
            let mut queue = Outbound::default();
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
                    Step::Send(limit) => {
                        let mut slices = [IoSlice::new(&[]); 3];
                        let available: Vec<u8> = if gather {
                            let count = queue.gather(&mut slices);
                            slices[..count].iter().flat_map(|slice| slice.iter().copied()).collect()
                        } else {
                            queue.front().unwrap_or(&[]).to_vec()
                        };
                        let count = limit.min(available.len());
                        sent.extend_from_slice(&available[..count]);
                        queue.seal();
                        queue.consume(count);
                    }
                    Step::Seal => queue.seal(),
                    Step::Release => queue.release_leases(),
                }
                prop_assert_eq!(queue.len(), expected.len() - sent.len());
            }
            while let Some(front) = queue.front() {
                let count = front.len();
                sent.extend_from_slice(front);
                queue.consume(count);
            }
            prop_assert_eq!(sent, expected);
        }
    }
}
