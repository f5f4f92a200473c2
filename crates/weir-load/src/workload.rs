//! The interface between the contents of messages and how they are started and timed.
//!
//! The code that drives a connection is generic over a [`Workload`], so that a message costs no dynamic dispatch. A
//! workload writes requests and judges what comes back; it starts nothing, waits for nothing and reads no clock.

use std::{
    any::Any,
    collections::VecDeque,
    io,
    task::{Context, Poll},
};

use weir_engine::net::Stream;

use crate::{
    connector::{Connected, Connector},
    failure::{Class, Failure},
    recorder::{PendingMessage, Recorder},
};

/// A kind of message, and the state that the connections of one worker share for it.
pub(crate) trait Workload: Sized + 'static {
    /// The state of one connection.
    type ConnectionState;

    /// Whether this side closes a connection that carried its one message: the protocol cannot announce that no more
    /// will come.
    const CLOSES_FIRST: bool = false;

    /// The class of bytes that arrive although every request was answered.
    const UNASKED: Class = Class::Malformed;

    /// The state of a new connection at `place` of its worker, with number `connection` in the run, whose opening
    /// took `connect_ns`.
    fn open(&self, place: usize, connection: u32, connect_ns: u64) -> Self::ConnectionState;

    /// Opens a connection before the run begins, and sends what the protocol requires before messages.
    async fn connect(&self, _place: usize, connector: &Connector) -> Result<Connected, Failure> {
        connector.connect().await
    }

    /// Queues request number `sent` of a connection. While it waits, no part of the request is queued.
    fn poll_request(
        &self,
        state: &Self::ConnectionState,
        sent: u64,
        stream: &Stream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>>;

    /// Called after the queued request was noted as started.
    fn started(&self, _recorder: &mut Recorder) {}

    /// Judges the next bytes of a connection and notes the messages they complete.
    fn accept(
        &self,
        state: &mut Self::ConnectionState,
        bytes: &[u8],
        notes: Notes<'_>,
    ) -> Result<Accepted, Failure>;

    /// Handles the end of a connection, by the peer or by an error. Notes the message that this completes, if there
    /// is one.
    fn end(&self, state: &mut Self::ConnectionState, error: Option<&io::Error>, notes: Notes<'_>) -> End;

    /// Called after messages were lost to a failure, which is already noted. There is no state if there was no
    /// connection.
    fn lost(
        &self,
        _state: Option<&Self::ConnectionState>,
        _pending: &VecDeque<PendingMessage>,
        _loss: &Loss<'_>,
    ) {
    }

    /// Hands over buffered results; called at each wake of the worker and at the end.
    fn flush(&self) {}

    /// Serves silent connections; called at each wake of the worker.
    fn tick(&self) {}

    /// The protocol's own counts of the whole run, for its section of the report.
    fn totals(&self) -> Option<Box<dyn Any + Send>> {
        None
    }
}

/// What a workload may read and note while it judges.
pub(crate) struct Notes<'a> {
    /// When the bytes arrived.
    pub(crate) now_ns: u64,
    /// Requests sent on this connection.
    pub(crate) sent: u64,
    /// Requests without an answer, oldest first.
    pub(crate) pending: &'a mut VecDeque<PendingMessage>,
    /// Advanced to `now_ns`.
    pub(crate) recorder: &'a mut Recorder,
}

/// A failure and its moment.
pub(crate) struct Loss<'a> {
    pub(crate) failure: &'a Failure,
    pub(crate) now_ns: u64,
}

/// The effect of received bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// Messages that ended, right or wrong.
    pub(crate) messages: u64,
    /// No further message will arrive on this connection: the peer closes it.
    pub(crate) closes: bool,
}

/// How a connection ended before the run did.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// With a failure.
    Failed(Failure),
    /// The peer closed it, as it may.
    Closed,
    /// The peer announced that it will close.
    Closing,
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        End::Failed(failure)
    }
}
