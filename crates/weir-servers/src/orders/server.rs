//! Starts and ends the sessions of a server, and shows them to other threads.

use std::{
    cell::RefCell,
    io,
    net::IpAddr,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use weir_engine::{
    TaskPanic,
    net::{Address, Stream},
    serve::{Drained, ServeError, Server, ServerConfig, ServerControl},
    time::monotonic,
};
use weir_proto::soup::Name;
use weir_record::orders::{JournalStats, NodeStats, SESSIONS_LISTED_MAX, SessionStats};
use weir_trading::AccountId;

use super::{
    AccountConfig, AccountPlace, Application, Ended, LoginLock, OrdersConfig, OrdersRecoverError, Recovery,
    SessionStore,
    config::ACCOUNTS_MAX,
    connection,
    counters::{AccountCells, NUMBER_USED_BEFORE, PROTOCOL_ERRORS_MAX},
    events::{Event, EventKind},
    recover,
    worker::{OrdersState, ServerShape, Worker, session_name},
};
use crate::journal::watch::{DiskChange, DiskRoom, JournalLook, JournalWatch};

/// How long the sessions of a [`LocalOrders`] may take to end.
const LOCAL_DRAIN_LIMIT: Duration = Duration::from_secs(20);

thread_local! {
    /// The server's state on this thread.
    static WORKER: RefCell<Option<Rc<Worker>>> = const { RefCell::new(None) };
}

/// A running server of order sessions.
#[derive(Debug)]
pub struct OrdersServer {
    server: Server,
    control: OrdersControl,
}

impl OrdersServer {
    /// Recovers the state from the journals, listens, and starts the workers; `make` creates the application of each,
    /// on its thread and inside its runtime. Returns when all of them accept.
    ///
    /// # Errors
    /// The errors of [`Server::start`]; the blocking driver is refused, because a session waits for its client and
    /// for its answers at once. A journal that cannot be used and an application that cannot be created are errors of
    /// the worker.
    pub fn start<M>(server: ServerConfig, orders: OrdersConfig, make: M) -> Result<Self, ServeError>
    where
        M: Fn(Rc<SessionStore>) -> io::Result<Rc<dyn Application>> + Clone + Send + 'static,
    {
        let recovery = recover(&orders, &mut |_| {}).map_err(unusable)?;
        Self::start_recovered(server, orders, recovery, make)
    }

    /// As [`Self::start`], with the state from [`recover`].
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_recovered<M>(
        server: ServerConfig,
        orders: OrdersConfig,
        recovery: Recovery,
        make: M,
    ) -> Result<Self, ServeError>
    where
        M: Fn(Rc<SessionStore>) -> io::Result<Rc<dyn Application>> + Clone + Send + 'static,
    {
        // The sessions get half of the time, the rest of their connections the other half.
        let session_drain_limit = server.drain_limit / 2;
        let mut server =
            ServerConfig { handler_waits_for_two: true, drain_limit: session_drain_limit, ..server };
        // Sessions share accounts, numbers and a journal, which a panic may leave half changed.
        server.engine.task_panic = TaskPanic::Runtime;
        let workers = server.workers;
        let place = ServerShape { workers: workers.max(1), is_local: false, session_drain_limit };
        let shared =
            share(orders, place, recovery).map_err(|source| ServeError::Worker { worker: 0, source })?;
        let (begun, outcomes) = mpsc::channel();
        let at_worker = Arc::clone(&shared);
        let on_worker = move |number| {
            let worker = Worker::new(Arc::clone(&at_worker), number);
            WORKER.set(Some(Rc::clone(&worker)));
            let (make, begun) = (make.clone(), begun.clone());
            weir_engine::try_spawn(async move {
                // The starting thread waits for this; it may have given up.
                let _ = begun.send((number, worker.begin(make).await));
            })
            .map(drop)
        };
        let handler = |stream: Stream| {
            let worker = WORKER.with_borrow(Clone::clone);
            async move {
                if let Some(worker) = worker {
                    connection::serve(worker, stream).await;
                }
            }
        };
        let server = Server::start_with(server, on_worker, handler)?;
        let control =
            OrdersControl { server: server.control(), shared, is_draining: Arc::new(AtomicBool::new(false)) };
        let orders = Self { server, control };
        match outcomes.iter().take(workers).find_map(|(worker, outcome)| Some((worker, outcome.err()?))) {
            None => Ok(orders),
            Some((worker, source)) => {
                orders.server.drain();
                orders.server.join();
                Err(ServeError::Worker { worker, source })
            }
        }
    }

    /// The address it listens on, with the port that the kernel chose.
    pub fn address(&self) -> &Address {
        self.server.address()
    }

    /// The server underneath.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// A handle for other threads.
    pub fn control(&self) -> OrdersControl {
        self.control.clone()
    }

    /// Starts draining; `join` waits until it is done.
    pub fn drain(&self) {
        self.control.drain();
    }

    /// Waits until the server has drained.
    ///
    /// # Panics
    /// When a worker panicked: with its message.
    pub fn join(self) -> Drained {
        self.server.join()
    }
}

fn unusable(error: OrdersRecoverError) -> ServeError {
    ServeError::Worker { worker: 0, source: io::Error::other(error) }
}

fn share(orders: OrdersConfig, place: ServerShape, recovery: Recovery) -> io::Result<Arc<OrdersState>> {
    let wrong = |text: String| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    let accounts = &orders.accounts;
    if accounts.is_empty() || accounts.len() > ACCOUNTS_MAX {
        return wrong(format!(
            "{} accounts are configured; 1 to {ACCOUNTS_MAX} are possible",
            accounts.len()
        ));
    }
    if orders.names().len() != accounts.len() {
        return wrong("two accounts have the same name; case does not tell them apart".into());
    }
    OrdersState::new(orders, place, recovery)
}

/// Counters and drain of a running server, for any thread.
#[derive(Clone, Debug)]
pub struct OrdersControl {
    server: ServerControl,
    shared: Arc<OrdersState>,
    is_draining: Arc<AtomicBool>,
}

impl OrdersControl {
    /// The server underneath. Draining it directly ends connections without a message.
    pub fn server(&self) -> &ServerControl {
        &self.server
    }

    /// The counts of sessions and applications so far. The application adds hops, hand-off, upstreams and its waiting
    /// messages.
    pub fn node_stats(&self) -> NodeStats {
        node_stats(&self.shared)
    }

    /// Events about clients that were left out because of their rate.
    pub(crate) fn lines_left_out(&self) -> u64 {
        self.shared.counters.iter().map(|worker| worker.lines_left_out.get()).sum()
    }

    /// Accounts that have sent invalid or unsupported messages, or a number of a session that has ended: their names,
    /// the kind, and how often. The list is incomplete if there are very many.
    pub fn protocol_errors(&self) -> Vec<(String, &'static str, u64)> {
        let name = |account: AccountId| self.account(account).name().to_string();
        let errors = self.shared.protocol_errors.list().into_iter();
        let numbers = (0..)
            .zip(&self.shared.cells)
            .map(|(index, cells)| (AccountId(index), NUMBER_USED_BEFORE, cells.numbers_used_before.get()));
        let numbers = numbers.filter(|(.., count)| *count > 0).take(PROTOCOL_ERRORS_MAX);
        errors.chain(numbers).map(|(account, kind, count)| (name(account), kind, count)).collect()
    }

    /// The logins that are locked after too many wrong passwords.
    pub fn login_locks(&self) -> Vec<LoginLock> {
        self.shared.login_attempts.locks(monotonic().as_nanos())
    }

    /// Forgets the wrong passwords that `is_asked` selects by account and address; an address has no account. Returns
    /// how many locks that ends.
    pub fn unlock_logins(&self, is_asked: impl Fn(Option<AccountId>, Option<IpAddr>) -> bool) -> usize {
        self.shared.login_attempts.unlock(monotonic().as_nanos(), is_asked)
    }

    /// The session of an account, if it is logged in.
    pub fn session_of(&self, account: AccountId) -> Option<SessionStats> {
        let index = account.0 as usize;
        let is_open = self.shared.cells.get(index)?.state.get() != AccountCells::AWAY;
        is_open.then(|| session_stats(&self.shared, index))
    }

    /// Accounts from this one on that are not logged in and were since the start, or wanted to be: at most so many.
    pub fn away(&self, from: AccountId, count_max: usize) -> Vec<(AccountId, Ended)> {
        let cells = &self.shared.cells;
        let is_away = |account: AccountId| {
            cells.get(account.0 as usize).is_some_and(|cells| cells.state.get() == AccountCells::AWAY)
        };
        self.shared.last_endings.list(from, count_max, is_away)
    }

    /// Whether the journal of a worker has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.shared.has_failed()
    }

    /// Whether there is a journal.
    pub(crate) fn has_journal(&self) -> bool {
        self.shared.config.active_journal().is_some()
    }

    /// An account.
    pub(crate) fn account(&self, account: AccountId) -> &AccountPlace {
        self.shared.accounts.at(account)
    }

    /// The account with this login name, case-insensitive.
    pub(crate) fn account_named(&self, name: &Name<6>) -> Option<AccountId> {
        self.shared.accounts.named(name)
    }

    /// The number that the next new account gets, and how many may follow from there on.
    pub(crate) fn accounts_empty(&self) -> (AccountId, usize) {
        self.shared.accounts.empty()
    }

    /// Whether an account without a place has records in the journal: only a start can give it one.
    pub(crate) fn is_in_journal(&self, name: &Name<6>) -> bool {
        self.shared.recovery.removed().iter().any(|removed| removed.eq_ignore_case(name))
    }

    /// Changes accounts, adds some, and takes the login of others away. Connections stay as they are.
    pub(crate) fn change_accounts(
        &self,
        changed: &[(AccountId, AccountConfig)],
        added: &[AccountConfig],
        removed: &[AccountId],
    ) {
        let accounts = &self.shared.accounts;
        removed.iter().for_each(|account| accounts.close(*account));
        changed.iter().for_each(|(account, config)| accounts.change(*account, config));
        // There is room: the caller has asked.
        added.iter().for_each(|config| _ = accounts.add(config));
    }

    /// Events for operators, as they occur. Some are lost if they are not taken. Available once.
    pub fn events(&self) -> Option<mpsc::Receiver<Event>> {
        self.shared.config.events.take()
    }

    /// Starts to watch the disk of the journals. `None`: there is no journal.
    pub fn watch_journals(&self) -> Option<JournalsWatch> {
        let (directory, _) = self.shared.config.active_journal()?;
        if self.shared.room.get().is_none()
            && let Ok(room) = DiskRoom::watch(directory, self.shared.config.journal_segment_bytes)
        {
            // One of two at one time is enough. Without a thread, only stalls are seen.
            let _ = self.shared.room.set(room);
        }
        Some(JournalsWatch { shared: Arc::clone(&self.shared), watch: JournalWatch::default() })
    }

    /// Name of the session that clients can join.
    pub fn session(&self) -> Name<10> {
        self.shared.session
    }

    /// How many sessions have ended before it.
    pub(crate) fn generation(&self) -> u16 {
        self.shared.generation
    }

    /// Ends the session with this name, and with it the server: as [`Self::drain`], but clients are informed that the
    /// session is over. It cannot be joined again; the next start opens the next one.
    ///
    /// # Errors
    /// The reason, in words: it is not the current session, or it cannot be ended now.
    pub fn end_session(&self, name: &str) -> Result<(), String> {
        self.may_end_session(name)?;
        let session = self.shared.session;
        // Only one call decides whether the drain ends the session.
        if self.is_draining.swap(true, Ordering::SeqCst) {
            return Err("a drain is under way, after which the session can be joined again".into());
        }
        let text = format!("session {session} ends; the next start has the next one");
        self.shared.config.events.leave(Event::new(EventKind::SessionEnd, text));
        self.shared.ends_session.store(true, Ordering::SeqCst);
        self.begin_drain();
        Ok(())
    }

    /// Whether the drain under way ends the session.
    pub fn ends_session(&self) -> bool {
        self.shared.ends_session.load(Ordering::SeqCst)
    }

    /// Whether [`Self::end_session`] would end it, unless a drain begins before.
    pub(crate) fn may_end_session(&self, name: &str) -> Result<(), String> {
        let session = self.shared.session;
        if !session.as_str().eq_ignore_ascii_case(name.trim()) {
            return Err(format!("there is no session {name:?}; the one there is, is {session}"));
        }
        if self.shared.has_failed() {
            return Err("the journal has failed, and cannot keep that the session is over".into());
        }
        if self.shared.config.active_journal().is_some() {
            // The next start could not name the next session.
            session_name(&self.shared.config.session, u64::from(self.shared.generation) + 1)?;
        }
        Ok(())
    }

    /// Starts draining: clients get everything that waits for them, and then the server drains. With a journal, the
    /// session can be joined again after the next start, with every message; without one it is over, and clients are
    /// informed.
    pub fn drain(&self) {
        if !self.is_draining.swap(true, Ordering::SeqCst) {
            let text = format!("the server drains; {}", self.shared.next_start());
            self.shared.config.events.leave(Event::new(EventKind::Drain, text));
            self.begin_drain();
        }
    }

    /// Whether a drain, or the end of the session, is in progress.
    pub fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::SeqCst) || !self.server.is_serving()
    }

    fn begin_drain(&self) {
        // Informing the workers, waiting for their sessions, and the server's own drain: each has this limit.
        let this = self.clone();
        let drain = move || {
            this.shared.tell_drain();
            this.shared.barrier.wait(this.shared.workers, this.shared.session_drain_limit);
            this.server.drain();
        };
        if thread::Builder::new().name("weir-drain".into()).spawn(drain).is_err() {
            // Without a thread, the sessions cannot be waited for.
            self.server.drain();
        }
    }
}

/// The session of the account with this index.
fn session_stats(shared: &OrdersState, index: usize) -> SessionStats {
    let cells = &shared.cells[index];
    SessionStats {
        account: shared.accounts.at(AccountId(index as u32)).name().to_string(),
        worker: (index % shared.workers) as u32,
        state: cells.state_name().into(),
        sequence_sent: cells.sequence_sent.get(),
        sequence_last: cells.sequence_last.get(),
        user_ref_num: cells.user_ref_num.get() as u32,
        queued_bytes: cells.queued_bytes.get(),
    }
}

fn node_stats(shared: &OrdersState) -> NodeStats {
    let mut stats = NodeStats {
        node: shared.config.node.into(),
        pid: std::process::id(),
        at_ns: monotonic().as_nanos(),
        ..NodeStats::default()
    };
    shared.counters.iter().for_each(|worker| worker.merge_into(&mut stats));
    for (index, cells) in shared.cells.iter().enumerate() {
        let state = cells.state_name();
        if state == "away" {
            continue;
        }
        stats.backlog += cells.sequence_last.get().saturating_sub(cells.sequence_sent.get());
        stats.sessions_replaying += u64::from(state == "replaying");
        if stats.sessions.len() < SESSIONS_LISTED_MAX {
            stats.sessions.push(session_stats(shared, index));
        }
    }
    let handoffs = shared.handoffs();
    if let Some(first) = handoffs.first() {
        let mut sum = first.stats();
        handoffs[1..].iter().for_each(|handoff| sum.merge(&handoff.stats()));
        sum.orders = stats.orders;
        sum.orders_handed_off = shared.counters.iter().map(|worker| worker.handed_off.get()).sum();
        stats.handoff = Some(sum);
    }
    let journals = shared.journals();
    if !journals.is_empty() {
        let mut sum = JournalStats::default();
        journals.iter().for_each(|journal| journal.add_to(&mut sum));
        sum.files_left = shared.room.get().and_then(|room| room.files_left(shared.workers));
        stats.journal = Some(sum);
    }
    stats
}

/// Watches the disk of a server's journals; see [`OrdersControl::watch_journals`].
#[derive(Debug)]
pub struct JournalsWatch {
    shared: Arc<OrdersState>,
    watch: JournalWatch,
}

impl JournalsWatch {
    /// Events for operators: that a disk has stalled, works again, or is nearly full. Call it every second.
    pub fn look(&mut self) -> Vec<Event> {
        let now = monotonic();
        let journals = self.shared.journals();
        let works = journals.iter().filter(|journal| !journal.is_failed());
        let seen = JournalLook {
            waiting_ns: works.map(|journal| (journal.worker(), journal.waiting_ns(now))).collect(),
            files_left: self.shared.room.get().and_then(|room| room.files_left(self.shared.workers)),
        };
        let event = |(change, text): (DiskChange, String)| match change {
            DiskChange::Stalled(worker) => {
                Event::new(EventKind::JournalStalled, text).at_worker(worker.into())
            }
            DiskChange::Answers(worker) => {
                Event::new(EventKind::JournalRecovered, text).at_worker(worker.into())
            }
            DiskChange::Scarce => Event::new(EventKind::DiskNearlyFull, text),
            DiskChange::HasRoom => Event::new(EventKind::DiskHasRoom, text),
        };
        self.watch.look(&seen).into_iter().map(event).collect()
    }
}

/// The sessions of one worker inside the caller's runtime: for programs with their own runtime, and for the
/// simulator. Passwords are verified on the same thread, and connections have no addresses.
#[derive(Clone)]
pub struct LocalOrders {
    worker: Rc<Worker>,
}

impl std::fmt::Debug for LocalOrders {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LocalOrders").finish_non_exhaustive()
    }
}

impl LocalOrders {
    /// Recovers the state from the journal and creates the application.
    ///
    /// # Errors
    /// The errors of the configuration, the journal and the application.
    pub async fn start<M>(orders: OrdersConfig, make: M) -> io::Result<Self>
    where
        M: Fn(Rc<SessionStore>) -> io::Result<Rc<dyn Application>>,
    {
        let recovery = recover(&orders, &mut |_| {}).map_err(io::Error::other)?;
        Self::start_recovered(orders, recovery, make).await
    }

    /// As [`Self::start`], with the state from [`recover`].
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn start_recovered<M>(orders: OrdersConfig, recovery: Recovery, make: M) -> io::Result<Self>
    where
        M: Fn(Rc<SessionStore>) -> io::Result<Rc<dyn Application>>,
    {
        let place = ServerShape { workers: 1, is_local: true, session_drain_limit: LOCAL_DRAIN_LIMIT };
        let worker = Worker::new(share(orders, place, recovery)?, 0);
        Rc::clone(&worker).begin(make).await?;
        Ok(Self { worker })
    }

    /// Several workers of one server in one runtime. A client has to connect to its account's home.
    #[cfg(test)]
    pub(crate) async fn start_workers<M>(
        orders: OrdersConfig,
        recovery: Recovery,
        make: M,
        workers: usize,
    ) -> io::Result<Vec<Self>>
    where
        M: Fn(Rc<SessionStore>) -> io::Result<Rc<dyn Application>>,
    {
        let place = ServerShape { workers, is_local: true, session_drain_limit: LOCAL_DRAIN_LIMIT };
        let shared = share(orders, place, recovery)?;
        let mut all = Vec::new();
        for number in 0..workers {
            let worker = Worker::new(Arc::clone(&shared), number);
            Rc::clone(&worker).begin(&make).await?;
            all.push(Self { worker });
        }
        Ok(all)
    }

    /// Serves one connection.
    pub fn serve(&self, stream: Stream) -> impl Future<Output = ()> + use<> {
        connection::serve(Rc::clone(&self.worker), stream)
    }

    /// The counts so far.
    pub fn node_stats(&self) -> NodeStats {
        node_stats(&self.worker.shared)
    }

    /// Disconnects clients, as [`OrdersControl::drain`].
    pub async fn drain(&self) {
        self.worker.drain().await;
    }

    /// Ends the session, as [`OrdersControl::end_session`].
    pub async fn end_session(&self) {
        self.worker.shared.ends_session.store(true, Ordering::SeqCst);
        self.worker.drain().await;
    }
}
