//! Received bytes that the caller has not read yet. Pure: it knows no stream.

/// Capacity that is kept when all bytes are read, so that a connection with small messages allocates once.
const KEPT_BYTES_MAX: usize = 8 << 10;

/// The rest of one arrival.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    bytes: Vec<u8>,
    read: usize,
}

impl Rest {
    /// Stores a copy of `bytes` behind the present ones.
    pub(crate) fn keep(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The bytes, in order.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.read..]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// The caller has read the first `count` bytes.
    pub(crate) fn consume(&mut self, count: usize) {
        self.read = self.read.saturating_add(count).min(self.bytes.len());
        if self.read == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES_MAX);
            self.read = 0;
        }
    }

    /// The bytes, for another owner.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        self.bytes.drain(..self.read);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_once_and_in_order() {
        let mut rest = Rest::default();
        rest.keep(b"abcd");
        rest.consume(1);
        assert_eq!(rest.bytes(), b"bcd");
        rest.keep(b"ef");
        rest.consume(3);
        assert_eq!(rest.into_bytes(), b"ef");
    }

    #[test]
    fn a_large_arrival_that_is_read_leaves_no_memory_behind() {
        let mut rest = Rest::default();
        rest.keep(&vec![7; 128 << 10]);
        rest.consume((128 << 10) - 1);
        assert_eq!(rest.bytes(), [7]);
        rest.consume(usize::MAX);
        assert!(rest.is_empty() && rest.bytes.capacity() <= KEPT_BYTES_MAX);
    }
}
