//! The echo workload: messages of one size that must come back unchanged.

use std::{
    cell::RefCell,
    future::Future,
    io,
    pin::pin,
    rc::Rc,
    task::{Context, Poll, ready},
};

use weir_engine::net::{Address, Stream};

use crate::{
    error::{LoadError, invalid, within},
    failure::{Class, Failure, Stage},
    payload::{Codec, PayloadPool, Verifier},
    spec::{Facts, LoadSpec, MESSAGE_BYTES_MAX, ProtocolSpec},
    worker::{Plan, RunnableWorkload},
    workload::{Accepted, End, Notes, Workload},
};

/// Messages up to this size are copied into the queue, so that many leave together. For larger ones copying costs
/// more than separate memory.
const COPIED_BYTES_MAX: usize = 2048;
/// Most memory that is kept for large messages.
const KEPT_BYTES_MAX: usize = 16 << 20;
/// Most large messages that are kept. More are rarely in flight, and the list is searched linearly.
const KEPT_MAX: usize = 64;

/// The echo part of a load's specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoSpec {
    /// Bytes of a message.
    pub message_bytes: u32,
    /// Every message has its own connection, which this side closes after the answer. The port then stays in
    /// TIME_WAIT on this side: on loopback Linux reuses it after a second, which limits the rate to some 28,000
    /// connections a second to one address.
    pub connection_per_message: bool,
}

impl ProtocolSpec for EchoSpec {
    fn validate(&self, load: &LoadSpec, _target: &Address) -> Result<(), LoadError> {
        if self.connection_per_message && load.depth > 1 {
            return invalid("depth", "with a connection for each message there is no pipeline; use 1");
        }
        within("message-bytes", self.message_bytes, 1, MESSAGE_BYTES_MAX)
    }

    fn request_bytes_max(&self) -> (usize, &'static str) {
        (self.message_bytes as usize, "message-bytes")
    }

    fn facts(&self) -> Facts {
        Facts {
            connection_per_message: self.connection_per_message,
            has_slices: !self.connection_per_message,
            ..Facts::plain(self.message_bytes)
        }
    }
}

/// The messages of one worker.
pub(crate) struct Echo {
    pool: Rc<PayloadPool>,
    /// Buffer for writing a small message.
    scratch: RefCell<Vec<u8>>,
    large: RefCell<LargeMessages>,
}

impl RunnableWorkload for Echo {
    type Spec = EchoSpec;

    fn of(plan: &Plan<'_>, spec: &EchoSpec) -> Self {
        Self {
            pool: Rc::new(PayloadPool::new(plan.spec.seed, spec.message_bytes)),
            scratch: RefCell::new(Vec::new()),
            large: RefCell::default(),
        }
    }
}

impl Workload for Echo {
    type ConnectionState = Verifier;

    const CLOSES_FIRST: bool = true;

    const UNASKED: Class = Class::WrongBytes;

    fn open(&self, _place: usize, connection: u32, _connect_ns: u64) -> Verifier {
        Verifier::new(Codec::new(Rc::clone(&self.pool), connection))
    }

    #[inline]
    fn poll_request(
        &self,
        state: &Verifier,
        sent: u64,
        stream: &Stream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let codec = state.codec();
        if codec.message_bytes() <= COPIED_BYTES_MAX {
            let mut message = self.scratch.borrow_mut();
            message.clear();
            codec.append(sent, &mut message);
            ready!(pin!(stream.send_slice(&message)).poll(context))?;
        } else {
            let message = self.large.borrow_mut().write(codec, sent);
            ready!(pin!(stream.send(message)).poll(context))?;
        }
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn accept(&self, state: &mut Verifier, bytes: &[u8], notes: Notes<'_>) -> Result<Accepted, Failure> {
        let arrival = state.accept(bytes, notes.sent);
        let pending = notes.pending.drain(..arrival.messages as usize);
        notes.recorder.arrived(notes.now_ns, &arrival, pending);
        match arrival.wrong {
            None => Ok(Accepted { messages: arrival.messages, closes: false }),
            Some(wrong) => Err(Failure { class: Class::WrongBytes, text: wrong.to_string() }),
        }
    }

    fn end(&self, _state: &mut Verifier, error: Option<&io::Error>, notes: Notes<'_>) -> End {
        End::Failed(match error {
            Some(error) => Failure::system(Stage::Exchange, error),
            None => Failure::short(notes.pending.len()),
        })
    }
}

/// Memory of large messages, reused once they are sent. Memory from the allocator would often consist of pages that
/// the kernel must clear first: the allocator returns the end of a thread's heap as soon as that is free, or not,
/// depending on the heap's layout, so the cost of a message would differ from process to process.
#[derive(Debug, Default)]
struct LargeMessages {
    kept: Vec<Rc<[u8]>>,
}

impl LargeMessages {
    /// Message `sequence`.
    fn write(&mut self, codec: &Codec, sequence: u64) -> Rc<[u8]> {
        let free = self.kept.iter().rposition(|message| Rc::strong_count(message) == 1);
        let length = codec.message_bytes();
        // The one that came back last is still in the cache.
        let mut message =
            free.map_or_else(|| std::iter::repeat_n(0, length).collect(), |at| self.kept.remove(at));
        if let Some(bytes) = Rc::get_mut(&mut message) {
            codec.write(sequence, bytes);
        }
        if self.kept.len() < (KEPT_BYTES_MAX / length.max(1)).clamp(1, KEPT_MAX) {
            self.kept.push(Rc::clone(&message));
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_messages_use_memory_again_that_is_free_and_keep_little() {
        let codec = |message_bytes| Codec::new(Rc::new(PayloadPool::new(7, message_bytes)), 3);
        let expected = |codec: &Codec, sequence| {
            let mut bytes = Vec::new();
            codec.append(sequence, &mut bytes);
            bytes
        };
        let (large, mut messages) = (codec(151_552), LargeMessages::default());
        let first = messages.write(&large, 0);
        let second = messages.write(&large, 1);
        assert_eq!((first.to_vec(), second.to_vec()), (expected(&large, 0), expected(&large, 1)));
        let place = first.as_ptr();
        drop(first);
        let third = messages.write(&large, 2);
        assert_eq!((third.as_ptr(), third.to_vec()), (place, expected(&large, 2)));
        assert_eq!(second.to_vec(), expected(&large, 1), "what is in flight stays as it is");
        let in_flight: Vec<_> =
            (0..2 * KEPT_MAX as u64).map(|sequence| messages.write(&large, sequence)).collect();
        assert_eq!(messages.kept.len(), KEPT_MAX);
        assert!(
            in_flight.iter().zip(0..).all(|(message, sequence)| message[..] == expected(&large, sequence))
        );
        let (huge, mut messages) = (codec(MESSAGE_BYTES_MAX), LargeMessages::default());
        let in_flight: Vec<_> = (0..3).map(|sequence| messages.write(&huge, sequence)).collect();
        assert!(
            messages.kept.len() * MESSAGE_BYTES_MAX as usize
                <= KEPT_BYTES_MAX.max(MESSAGE_BYTES_MAX as usize)
        );
        drop(in_flight);
    }
}
