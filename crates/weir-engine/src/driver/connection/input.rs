//! What receives find: bytes that may still arrive, the peer's end, or a failure.

use std::io;

use rustix::io::Errno;

use crate::driver::{error::StoredError, socket};

/// The input of a socket. On a failed connection the failure shows, and not the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// Bytes may arrive.
    Open,
    /// A send failed, and bytes that had arrived before may still be there: they are received before the error shows.
    /// With the turn in which a receive first asked for them.
    Rest(StoredError, Option<u64>),
    /// The peer has ended its direction, and everything before its end is received.
    Ended,
    /// Every further operation returns this error.
    Failed(StoredError),
}

impl Input {
    /// The error that the connection failed with.
    pub(crate) fn error(self) -> Option<StoredError> {
        match self {
            Input::Open | Input::Ended => None,
            Input::Rest(error, _) | Input::Failed(error) => Some(error),
        }
    }

    /// Whether a receive may still find bytes.
    pub(crate) fn may_arrive(self) -> bool {
        matches!(self, Input::Open | Input::Rest(..))
    }

    /// The answer to a receive, once it cannot be bytes any more.
    pub(crate) fn answer<T>(self) -> Option<io::Result<Option<T>>> {
        (!self.may_arrive()).then(|| self.answer_if_empty())
    }

    /// The answer to a receive for which nothing has arrived and nothing is waited for.
    pub(crate) fn answer_if_empty<T>(self) -> io::Result<Option<T>> {
        self.error().map_or(Ok(None), |error| Err(error.into()))
    }

    /// An operation other than a receive has failed.
    pub(super) fn fail(&mut self, error: Errno) {
        *self = match *self {
            Input::Open if socket::is_over(error) => Input::Rest(StoredError(error), None),
            Input::Open | Input::Ended => Input::Failed(StoredError(error)),
            // The first error stays.
            failed @ (Input::Rest(..) | Input::Failed(_)) => failed,
        };
    }

    /// A receive has failed, or nothing can be received any more: there is no rest.
    pub(super) fn break_off(&mut self, error: Errno) {
        *self = Input::Failed(self.error().unwrap_or(StoredError(error)));
    }

    /// A receive has found the end of the stream.
    pub(super) fn end(&mut self) {
        *self = self.error().map_or(Input::Ended, Input::Failed);
    }

    /// A receive has found nothing. True: it was the last one of a failed connection.
    pub(super) fn empty(&mut self) -> bool {
        let error = self.error();
        if let Some(error) = error {
            *self = Input::Failed(error);
        }
        error.is_some()
    }
}
