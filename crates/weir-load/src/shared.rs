//! What the tasks of one worker share. One thread: cells, no locks.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use weir_engine::{
    net::{Address, Stream},
    time::{self, sleep},
};

use crate::{
    failure::{Class, Stage},
    lane::Failure,
    payload::{Codec, Tape},
    recorder::{Edges, Recorder},
};

/// First pause after a failed connection; each further failure doubles it.
const PAUSE_FIRST: Duration = Duration::from_millis(5);
/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// State of one worker.
pub(crate) struct Shared {
    pub(crate) target: Address,
    pub(crate) depth: usize,
    pub(crate) connect_timeout: Duration,
    pub(crate) response_timeout: Duration,
    pub(crate) edges: Arc<Edges>,
    pub(crate) recorder: RefCell<Recorder>,
    /// The small message being written.
    pub(crate) scratch: RefCell<Vec<u8>>,
    pub(crate) tape: Rc<Tape>,
    /// Messages that may still be started.
    pub(crate) budget: Cell<u64>,
    /// Number of the next connection; every connection ever opened has its own.
    pub(crate) connection_next: Cell<u32>,
    /// Distance between the numbers of one worker.
    pub(crate) connection_step: u32,
}

impl Shared {
    /// Whether the run goes on.
    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.edges.close_ns() == u64::MAX
    }

    /// Takes the right to start one more message.
    #[inline]
    pub(crate) fn may_start(&self) -> bool {
        self.budget.get() > 0 && self.is_running()
    }

    /// One message was started.
    #[inline]
    pub(crate) fn spend(&self) {
        self.budget.set(self.budget.get() - 1);
    }

    /// Whether every message that may be started was started.
    pub(crate) fn is_spent(&self) -> bool {
        self.budget.get() == 0
    }

    /// Messages of a connection that no other connection of the run has had.
    pub(crate) fn codec(&self) -> Codec {
        let connection = self.connection_next.get();
        self.connection_next.set(connection.wrapping_add(self.connection_step));
        Codec::new(Rc::clone(&self.tape), connection)
    }

    pub(crate) async fn connect(&self) -> Result<Stream, Failure> {
        connect(&self.target, self.connect_timeout).await
    }

    /// Notes a failure that ended this many messages.
    pub(crate) fn failed(&self, failure: Failure, in_flight: usize) {
        let now_ns = time::now().as_nanos();
        self.recorder.borrow_mut().failed(now_ns, failure.class, in_flight as u64, failure.text);
    }
}

/// Opens a connection within the time limit.
pub(crate) async fn connect(target: &Address, limit: Duration) -> Result<Stream, Failure> {
    match time::timeout(limit, Stream::connect(target)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(Failure::system(Stage::Connect, &error)),
        Err(_) => {
            let text = format!("no connection within {limit:?}");
            Err(Failure { class: Class::ConnectTimeout, text })
        }
    }
}

/// Pauses between attempts, so that a dead server is not asked as fast as the machine can.
pub(crate) struct Pauses {
    next: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self { next: PAUSE_FIRST }
    }
}

impl Pauses {
    /// The connection worked for a while: begin anew.
    pub(crate) fn reset(&mut self) {
        self.next = PAUSE_FIRST;
    }

    pub(crate) async fn pause(&mut self) {
        sleep(self.next).await;
        self.next = (self.next * 2).min(PAUSE_MAX);
    }
}
