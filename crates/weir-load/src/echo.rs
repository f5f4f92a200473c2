//! The echo workload: messages of one size, and each must come back as it was sent.

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
    failure::{Class, Stage},
    payload::{Codec, Tape, Verifier},
    protocol::{Facts, Post, ProtocolSpec},
    spec::{LoadError, LoadSpec, MESSAGE_BYTES_MAX, within},
    worker::{Outcome, Plan},
    workload::{Accepted, End, Failure, Notes, Workload},
};

/// Messages up to this size are copied behind what is queued, so that many leave as one and none is allocated. For
/// larger ones copying costs more than an allocation.
const COPIED_BYTES_MAX: usize = 2048;

/// What a load of echo is asked besides what every load is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoSpec {
    /// Bytes of a message.
    pub message_bytes: u32,
}

impl ProtocolSpec for EchoSpec {
    fn validate(&self, _load: &LoadSpec, _target: &Address) -> Result<(), LoadError> {
        within("message-bytes", self.message_bytes, 1, MESSAGE_BYTES_MAX)
    }

    fn request_bytes_max(&self) -> (usize, &'static str) {
        (self.message_bytes as usize, "message-bytes")
    }

    fn facts(&self) -> Facts {
        Facts::plain(self.message_bytes)
    }

    fn carry(&self, post: Post<'_>) -> Option<Outcome> {
        post.carry::<Echo>()
    }
}

/// The messages of one worker.
pub(crate) struct Echo {
    tape: Rc<Tape>,
    /// The small message being written.
    scratch: RefCell<Vec<u8>>,
}

impl Workload for Echo {
    type Spec = EchoSpec;
    type Dialogue = Verifier;

    fn of(plan: &Plan<'_>, spec: &EchoSpec) -> Self {
        Self {
            tape: Rc::new(Tape::new(plan.spec.seed, spec.message_bytes)),
            scratch: RefCell::new(Vec::new()),
        }
    }

    fn open(&self, _place: usize, connection: u32, _connect_ns: u64) -> Verifier {
        Verifier::new(Codec::new(Rc::clone(&self.tape), connection))
    }

    #[inline]
    fn poll_request(
        &self,
        dialogue: &Verifier,
        sent: u64,
        stream: &Stream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let codec = dialogue.codec();
        if codec.message_bytes() <= COPIED_BYTES_MAX {
            let mut message = self.scratch.borrow_mut();
            message.clear();
            codec.append(sent, &mut message);
            ready!(pin!(stream.send_slice(&message)).poll(context))?;
        } else {
            let mut message = Vec::with_capacity(codec.message_bytes());
            codec.append(sent, &mut message);
            ready!(pin!(stream.send(message)).poll(context))?;
        }
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn accept(&self, dialogue: &mut Verifier, bytes: &[u8], notes: Notes<'_>) -> Result<Accepted, Failure> {
        let arrival = dialogue.accept(bytes, notes.sent);
        let flights = notes.flights.drain(..arrival.messages as usize);
        notes.recorder.arrived(notes.now_ns, &arrival, flights);
        match arrival.wrong {
            None => Ok(Accepted { messages: arrival.messages, closes: false }),
            Some(wrong) => Err(Failure { class: Class::WrongBytes, text: wrong.to_string() }),
        }
    }

    fn end(&self, _dialogue: &mut Verifier, error: Option<&io::Error>, notes: Notes<'_>) -> End {
        End::Failed(match error {
            Some(error) => Failure::system(Stage::Exchange, error),
            None => Failure::short(notes.flights.len()),
        })
    }
}
