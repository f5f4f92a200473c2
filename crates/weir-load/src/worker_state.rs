//! State that the tasks of one worker share. They run on one thread: cells, no locks.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use weir_engine::time::{self, sleep};

use crate::{
    close_backoff::CloseBackoff,
    connector::Connector,
    failure::{Class, Failure},
    recorder::{PendingMessage, Recorder, WindowBounds},
    workload::Workload,
};

pub(crate) use crate::connector::Connected;

/// First pause after a failed connection; each further failure doubles it.
const PAUSE_FIRST: Duration = Duration::from_millis(5);
/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// State of one worker.
pub(crate) struct WorkerState<W: Workload> {
    pub(crate) workload: Rc<W>,
    pub(crate) connector: Rc<Connector>,
    pub(crate) depth: usize,
    pub(crate) response_timeout: Duration,
    pub(crate) bounds: Arc<WindowBounds>,
    pub(crate) recorder: RefCell<Recorder>,
    pub(crate) close_backoff: RefCell<CloseBackoff>,
    /// Connections whose close is awaited.
    pub(crate) awaiting_close: Cell<usize>,
    /// Messages that may still be started.
    pub(crate) budget: Cell<u64>,
    /// Number of the next connection; every connection ever opened has its own.
    pub(crate) connection_next: Cell<u32>,
    /// Distance between the numbers of one worker.
    pub(crate) connection_step: u32,
    /// The load has ended, whatever the bounds say: they may already belong to another load.
    pub(crate) is_over: Cell<bool>,
    /// Connections that outlive the load, by place; `None` if the load ends with its connections.
    pub(crate) parking: Option<Parking>,
}

/// Connections that wait for the next load, by place.
pub(crate) type Parking = RefCell<Vec<Option<Connected>>>;

impl<W: Workload> WorkerState<W> {
    /// Whether the run continues.
    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.bounds.is_running() && !self.is_over.get()
    }

    /// Whether one more message may be started.
    #[inline]
    pub(crate) fn may_start(&self) -> bool {
        self.budget.get() > 0 && self.is_running()
    }

    /// Subtracts one started message from the budget.
    #[inline]
    pub(crate) fn consume_budget(&self) {
        self.budget.set(self.budget.get() - 1);
    }

    /// Whether the budget is used up.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.budget.get() == 0
    }

    /// Notes a message that starts.
    #[inline]
    pub(crate) fn started(&self, pending: PendingMessage) {
        let mut recorder = self.recorder.borrow_mut();
        recorder.advance(pending.started_ns);
        recorder.started(pending);
        self.workload.started(&mut recorder);
    }

    /// A connection number that is unique in the run.
    pub(crate) fn connection_number(&self) -> u32 {
        let connection = self.connection_next.get();
        self.connection_next.set(connection.wrapping_add(self.connection_step));
        connection
    }

    /// Opens a connection and notes how long it took.
    pub(crate) async fn connect(&self) -> Result<Connected, Failure> {
        let connected = self.connector.connect().await?;
        self.connected(connected.took_ns);
        Ok(connected)
    }

    /// Notes a connection that was opened.
    pub(crate) fn connected(&self, took_ns: u64) {
        if let Some(connections) = self.recorder.borrow_mut().connections() {
            connections.connect.saturating_record(took_ns);
        }
    }

    /// Notes how long messages waited, if a timeout or the end of the wait ended them.
    pub(crate) fn unanswered<'a>(
        &self,
        failure: &Failure,
        pending: impl IntoIterator<Item = &'a PendingMessage>,
    ) {
        if matches!(failure.class, Class::ResponseTimeout | Class::ConnectTimeout) {
            let now_ns = time::now().as_nanos();
            let mut recorder = self.recorder.borrow_mut();
            pending.into_iter().for_each(|pending| recorder.unanswered(now_ns, pending.intended_ns));
        }
    }

    /// Notes a failure that ended this many messages.
    pub(crate) fn failed(&self, failure: &Failure, in_flight: u64) {
        let now_ns = time::now().as_nanos();
        self.recorder.borrow_mut().failed(now_ns, failure.class, in_flight, failure.text.clone());
    }
}

/// Pauses between attempts, so that a dead server is not retried at full speed.
pub(crate) struct Pauses {
    next: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self { next: PAUSE_FIRST }
    }
}

impl Pauses {
    /// Resets the pauses after the connection worked for a while.
    pub(crate) fn reset(&mut self) {
        self.next = PAUSE_FIRST;
    }

    pub(crate) async fn pause(&mut self) {
        sleep(self.next).await;
        self.next = (self.next * 2).min(PAUSE_MAX);
    }
}
