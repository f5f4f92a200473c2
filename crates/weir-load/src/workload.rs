//! The seam between how messages are started and timed and what they are.
//!
//! Everything that drives a connection is generic over a [`Workload`], so that a message costs no dispatch at run
//! time. A workload writes requests and judges what comes back; it starts nothing, waits for nothing and reads no
//! clock.

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

/// A kind of message, and what the connections of one worker share for it.
pub(crate) trait Workload: Sized + 'static {
    /// The state of one connection.
    type ConnectionState;

    /// Whether this side ends a connection that carried its one message: nothing in the protocol tells the peer that
    /// no more will come.
    const CLOSES_FIRST: bool = false;

    /// The class of bytes that come although every request was answered.
    const UNASKED: Class = Class::Malformed;

    /// The state of a connection that was just opened at `place` of its worker, the number `connection` of the run,
    /// after an attempt of `connect_ns`.
    fn open(&self, place: usize, connection: u32, connect_ns: u64) -> Self::ConnectionState;

    /// Opens a connection before the run begins, and says what has to be said before messages.
    async fn connect(&self, _place: usize, connector: &Connector) -> Result<Connected, Failure> {
        connector.connect().await
    }

    /// Queues request number `sent` of a connection. When it waits, nothing of the request is queued.
    fn poll_request(
        &self,
        state: &Self::ConnectionState,
        sent: u64,
        stream: &Stream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>>;

    /// The request that was just queued is noted as started.
    fn started(&self, _recorder: &mut Recorder) {}

    /// Judges the next bytes of a connection and notes the messages they complete.
    fn accept(
        &self,
        state: &mut Self::ConnectionState,
        bytes: &[u8],
        notes: Notes<'_>,
    ) -> Result<Accepted, Failure>;

    /// The peer ended the connection, or it broke. Notes the message this completes, if it does.
    fn end(&self, state: &mut Self::ConnectionState, error: Option<&io::Error>, notes: Notes<'_>) -> End;

    /// These messages were lost to a failure, which is noted already. Without a state there was no connection.
    fn lost(
        &self,
        _state: Option<&Self::ConnectionState>,
        _pending: &VecDeque<PendingMessage>,
        _loss: &Loss<'_>,
    ) {
    }

    /// Hands over what was kept back, when the worker looks up and at the end.
    fn flush(&self) {}

    /// Does what is due on connections that are silent, when the worker looks up.
    fn tick(&self) {}

    /// What only this protocol counted over the whole run, for the part of its own in the report.
    fn totals(&self) -> Option<Box<dyn Any + Send>> {
        None
    }
}

/// What a workload may look at and note while it judges.
pub(crate) struct Notes<'a> {
    /// When the bytes came.
    pub(crate) now_ns: u64,
    /// Requests sent on this connection.
    pub(crate) sent: u64,
    /// Those without an answer, oldest first.
    pub(crate) pending: &'a mut VecDeque<PendingMessage>,
    /// Advanced to now.
    pub(crate) recorder: &'a mut Recorder,
}

/// A failure and its moment.
pub(crate) struct Loss<'a> {
    pub(crate) failure: &'a Failure,
    pub(crate) now_ns: u64,
}

/// What bytes brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// Messages that ended, right or wrong.
    pub(crate) messages: u64,
    /// No further message will come on this connection: the peer closes it.
    pub(crate) closes: bool,
}

/// How a connection came to its end before the run did.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// Not as it should.
    Failed(Failure),
    /// The peer has closed it, which is its right.
    Closed,
    /// The peer has said that it will.
    Closing,
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        End::Failed(failure)
    }
}
