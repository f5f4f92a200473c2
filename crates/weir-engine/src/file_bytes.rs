//! Bytes that were read from a file, in an engine buffer or on the heap.

use std::ops::Deref;

use crate::{pool::Lease, send_queue::SendBuf};

/// Bytes read from a file. They can be sent on without a copy.
#[derive(Debug)]
pub struct FileBytes(Backing);

#[derive(Debug)]
enum Backing {
    Pooled(Lease),
    Heap(Vec<u8>),
}

impl FileBytes {
    /// The bytes in the caller's memory; a copy if they are in an engine buffer.
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Backing::Pooled(lease) => lease.to_vec(),
            Backing::Heap(bytes) => bytes,
        }
    }
}

impl From<Lease> for FileBytes {
    fn from(lease: Lease) -> Self {
        Self(Backing::Pooled(lease))
    }
}

impl From<Vec<u8>> for FileBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Backing::Heap(bytes))
    }
}

impl From<FileBytes> for SendBuf {
    fn from(bytes: FileBytes) -> Self {
        match bytes.0 {
            Backing::Pooled(lease) => lease.into(),
            Backing::Heap(bytes) => bytes.into(),
        }
    }
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Backing::Pooled(lease) => lease,
            Backing::Heap(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for FileBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}
