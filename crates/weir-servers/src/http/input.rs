//! Received bytes that have not been decoded.

use weir_engine::Lease;

/// Bytes in an engine buffer, or a copy of them.
#[derive(Debug)]
pub(super) enum Input {
    Lease(Lease),
    Copy { bytes: Vec<u8>, decoded: usize },
}

impl Input {
    /// The remaining bytes.
    #[inline]
    pub(super) fn rest(&self) -> &[u8] {
        match self {
            Input::Lease(lease) => lease,
            Input::Copy { bytes, decoded } => &bytes[*decoded..],
        }
    }

    /// Marks this many bytes as decoded.
    #[inline]
    pub(super) fn advance(&mut self, count: usize) {
        match self {
            Input::Lease(lease) => lease.advance(count),
            Input::Copy { bytes, decoded } => *decoded = (*decoded + count).min(bytes.len()),
        }
    }

    /// Returns the engine's buffer: a connection that waits for its client must not keep it from others. Costs
    /// nothing if no bytes are left, which is the usual case.
    #[inline]
    pub(super) fn release(&mut self) {
        if let Input::Lease(lease) = self {
            *self = Input::Copy { bytes: lease.to_vec(), decoded: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_engine::{
        Config, Driver, Runtime,
        net::{Listener, Stream},
        spawn,
    };

    use super::*;

    #[test]
    fn a_copy_goes_on_where_the_lease_was_given_back() {
        let runtime = Runtime::new(&Config::for_test(Driver::Sim)).expect("it runs everywhere");
        runtime.block_on(async {
            let any = "127.0.0.1:0".parse().expect("an address");
            let listener = Listener::bind(&any, Default::default()).expect("a simulated port");
            let address = listener.local_address().expect("it has one");
            spawn(async move {
                let stream = Stream::connect(&address).await.expect("it listens");
                stream.send(b"abcdef").await.expect("it is open");
            });
            let stream = listener.accept().await.expect("somebody connects");
            let lease = stream.recv().await.expect("no error").expect("bytes");
            let mut input = Input::Lease(lease);
            input.advance(2);
            assert_eq!(input.rest(), b"cdef");
            input.release();
            assert_eq!(input.rest(), b"cdef");
            input.advance(3);
            input.release();
            assert_eq!(input.rest(), b"f");
            input.advance(9);
            assert_eq!(input.rest(), b"");
        });
    }
}
