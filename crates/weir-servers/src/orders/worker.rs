//! The state that the workers of a server share, and each worker's tasks besides its connections: it accepts
//! connections that logged in elsewhere, and it ends in order.

use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    io,
    net::SocketAddr,
    os::fd::OwnedFd,
    pin::pin,
    rc::Rc,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    thread,
    time::Duration,
};

use weir_engine::{
    handoff::HandoffCounters,
    mailbox::{MailboxReceiver, MailboxSender, SendError, mailbox},
    net::Stream,
    spawn,
    sync::Notify,
    time::{self},
    try_spawn,
};
use weir_proto::soup::{LoginRequest, Name};
use weir_trading::AccountId;

use super::{
    Application, NodeCounters, OrdersConfig, Recovery, SessionStore,
    accounts::Accounts,
    admission::Admission,
    connection,
    counters::{AccountCells, ProtocolErrors},
    last_endings::LastEndings,
    login_attempts::LoginAttempts,
    password_verifier::{VERIFIER_THREADS, Verifier, WAITING_MAX},
    records,
    session::End,
};
use crate::{
    connection_timer::ConnectionTimer,
    journal::{Journal, JournalConfig, JournalCounters, faults::Operation, watch::DiskRoom},
};

/// Connections that may be on their way to one worker.
const ARRIVALS_MAX: usize = 1024;

/// A logged-in connection on its way to its account's home.
#[derive(Debug)]
pub(super) struct Arrival<S> {
    pub(super) socket: S,
    /// The address of the client.
    pub(super) peer: Option<SocketAddr>,
    pub(super) account: AccountId,
    pub(super) login: LoginRequest,
    /// Bytes received behind the login.
    pub(super) rest: Vec<u8>,
}

impl Arrival<Stream> {
    /// Takes the connection out of this worker's runtime.
    pub(super) async fn pack(self) -> io::Result<Arrival<OwnedFd>> {
        let Self { socket, peer, account, login, mut rest } = self;
        let (socket, received) = socket.into_parts().await?;
        rest.extend_from_slice(&received);
        Ok(Arrival { socket, peer, account, login, rest })
    }
}

impl Arrival<OwnedFd> {
    /// Puts the connection into this worker's runtime.
    fn unpack(self) -> io::Result<Arrival<Stream>> {
        let Self { socket, peer, account, login, rest } = self;
        Ok(Arrival { socket: Stream::from_descriptor(socket)?, peer, account, login, rest })
    }
}

/// A command to a worker.
#[derive(Debug)]
pub(super) enum Command {
    Arrival(Box<Arrival<OwnedFd>>),
    Drain,
}

/// Counts the workers that have ended their sessions.
#[derive(Debug, Default)]
pub(super) struct Barrier {
    ended: Mutex<usize>,
    changed: Condvar,
}

impl Barrier {
    fn pass(&self) {
        *self.lock() += 1;
        self.changed.notify_all();
    }

    /// Waits until all workers have passed.
    pub(super) fn wait(&self, workers: usize, limit: Duration) {
        let ended = self.lock();
        // Ignore the timeout.
        drop(self.changed.wait_timeout_while(ended, limit, |ended| *ended < workers));
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state that all workers of a server share.
pub(super) struct OrdersState {
    pub(super) config: OrdersConfig,
    pub(super) workers: usize,
    /// All workers are in one runtime: there are no other threads, and no addresses.
    pub(super) is_local: bool,
    pub(super) simulated: bool,
    pub(super) session_drain_limit: Duration,
    /// Name of the current session.
    pub(super) session: Name<10>,
    pub(super) generation: u16,
    pub(super) recovery: Recovery,
    pub(super) verifier: Option<Verifier>,
    pub(super) admission: Arc<Admission>,
    pub(super) counters: Vec<Arc<NodeCounters>>,
    pub(super) cells: Vec<AccountCells>,
    pub(super) barrier: Barrier,
    /// The drain ends the session, by an explicit request.
    pub(super) ends_session: AtomicBool,
    pub(super) protocol_errors: ProtocolErrors,
    pub(super) last_endings: LastEndings,
    pub(super) login_attempts: LoginAttempts,
    pub(super) accounts: Accounts,
    commands: Vec<MailboxSender<Command>>,
    inboxes: Mutex<Vec<Option<MailboxReceiver<Command>>>>,
    journals: Mutex<Vec<Arc<JournalCounters>>>,
    /// The room on the disk of the journals, once it is watched.
    pub(super) room: OnceLock<DiskRoom>,
    handoffs: Mutex<Vec<Arc<HandoffCounters>>>,
}

impl std::fmt::Debug for OrdersState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("OrdersState").field("workers", &self.workers).finish_non_exhaustive()
    }
}

/// The threads and limits of a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerShape {
    pub(super) workers: usize,
    pub(super) is_local: bool,
    pub(super) session_drain_limit: Duration,
}

impl OrdersState {
    /// # Errors
    /// When no thread can be started for verifying passwords, or the session cannot get a new name.
    pub(super) fn new(config: OrdersConfig, place: ServerShape, recovery: Recovery) -> io::Result<Arc<Self>> {
        let (commands, inboxes) =
            (0..place.workers).map(|_| mailbox(ARRIVALS_MAX)).unzip::<_, _, Vec<_>, Vec<_>>();
        let verifier =
            if place.is_local { None } else { Some(Verifier::start(VERIFIER_THREADS, WAITING_MAX)?) };
        let generation = recovery.generation();
        let used = recovery.account_places();
        let accounts = Accounts::new(&config.accounts, used, config.accounts_added_max);
        let session = match config.active_journal() {
            Some(_) => session_name(&config.session, generation.into())
                .map_err(|wrong| io::Error::new(io::ErrorKind::InvalidInput, wrong))?,
            // This configuration never ends a session by name.
            None => config.session,
        };
        Ok(Arc::new(Self {
            workers: place.workers,
            is_local: place.is_local,
            simulated: place.is_local,
            session_drain_limit: place.session_drain_limit,
            session,
            generation,
            verifier,
            admission: Admission::new(config.unauthenticated_max, config.unauthenticated_per_address_max),
            counters: (0..place.workers).map(|_| Arc::default()).collect(),
            cells: (0..accounts.len()).map(|_| AccountCells::default()).collect(),
            barrier: Barrier::default(),
            ends_session: AtomicBool::new(false),
            protocol_errors: ProtocolErrors::default(),
            last_endings: LastEndings::default(),
            login_attempts: LoginAttempts::new(config.logins),
            accounts,
            commands,
            inboxes: Mutex::new(inboxes.into_iter().map(Some).collect()),
            journals: Mutex::default(),
            room: OnceLock::new(),
            handoffs: Mutex::default(),
            recovery,
            config,
        }))
    }

    pub(super) fn home_of(&self, account: AccountId) -> usize {
        account.0 as usize % self.workers
    }

    /// Sends a connection to its home. False: the home cannot take it now, and the connection is closed.
    pub(super) fn send(&self, home: usize, arrival: Arrival<OwnedFd>) -> bool {
        self.commands[home].try_send(Command::Arrival(Box::new(arrival))).is_ok()
    }

    /// Asks every worker to end its sessions.
    pub(super) fn tell_drain(&self) {
        let until = time::monotonic() + self.session_drain_limit;
        for commands in &self.commands {
            // A full mailbox is emptied within a turn, unless its worker hangs; a closed one needs no command.
            while let Err(SendError::Full(_)) = commands.try_send(Command::Drain)
                && time::monotonic() < until
            {
                thread::yield_now();
            }
        }
    }

    /// What becomes of the session after a drain, in words.
    pub(super) fn next_start(&self) -> &'static str {
        match self.config.active_journal() {
            Some(_) => "clients can join their session again after the next start",
            None => "without a journal the session with clients ends",
        }
    }

    /// The counters of the journals that are open.
    pub(super) fn journals(&self) -> Vec<Arc<JournalCounters>> {
        self.journals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the journal of any worker has failed: then the session is not over, but was interrupted.
    pub(super) fn has_failed(&self) -> bool {
        self.journals().iter().any(|journal| journal.is_failed())
    }

    /// Adds a worker's counters of the hand-off between workers.
    pub(super) fn add_handoff(&self, counters: Arc<HandoffCounters>) {
        self.handoffs.lock().unwrap_or_else(PoisonError::into_inner).push(counters);
    }

    /// The counters of the hand-off between workers.
    pub(super) fn handoffs(&self) -> Vec<Arc<HandoffCounters>> {
        self.handoffs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn take_inbox(&self, worker: usize) -> Option<MailboxReceiver<Command>> {
        let mut inboxes = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        inboxes.get_mut(worker).and_then(Option::take)
    }
}

/// The name of a session after this many have ended: its trailing number, that much higher, in as many digits.
///
/// # Errors
/// The reason, in words: it would have the name of an ended session. A client that was away and comes back would be
/// admitted, and would miss messages that have the same numbers in both.
pub(crate) fn session_name(first: &Name<10>, ended: u64) -> Result<Name<10>, String> {
    let text = first.as_str();
    let stem = text.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let digits = text.len() - stem.len();
    if digits == 0 {
        return Err(format!(
            "session {text:?}: there is no number at its end, by which the next session is distinguished from one that was \
             ended; write one, as in \"WEIR000001\""
        ));
    }
    let number: u64 = text[stem.len()..].parse().unwrap_or_default();
    let number = number.saturating_add(ended);
    if number >= 10_u64.saturating_pow(digits as u32) {
        return Err(format!(
            "session {text:?}: the number at its end has no room for the next session, and one that was ended would \
             come again; write it with more digits, or another name"
        ));
    }
    let next = format!("{stem}{number:0digits$}").parse::<Name<10>>();
    next.map_err(|error| format!("session {text:?}: {error}"))
}

/// One worker of a server.
pub(super) struct Worker {
    pub(super) shared: Arc<OrdersState>,
    number: usize,
    store: RefCell<Option<Rc<SessionStore>>>,
    application: RefCell<Option<Rc<dyn Application>>>,
    has_begun: Notify,
    is_over: Cell<bool>,
}

impl Worker {
    pub(super) fn new(shared: Arc<OrdersState>, number: usize) -> Rc<Self> {
        Rc::new(Self {
            shared,
            number,
            store: RefCell::default(),
            application: RefCell::default(),
            has_begun: Notify::default(),
            is_over: Cell::new(false),
        })
    }

    /// The worker's accounts, once they exist.
    pub(super) async fn store(&self) -> Rc<SessionStore> {
        loop {
            if let Some(store) = &*self.store.borrow() {
                return Rc::clone(store);
            }
            self.has_begun.notified().await;
        }
    }

    /// Opens the journal, creates the application, and accepts connections from other workers.
    pub(super) async fn begin<M>(self: Rc<Self>, make: M) -> io::Result<()>
    where
        M: Fn(Rc<SessionStore>) -> io::Result<Rc<dyn Application>>,
    {
        let journal = self.open_journal().await?;
        let store = SessionStore::new(Arc::clone(&self.shared), self.number, journal.clone());
        if let (Some(journal), Some(ended)) = (&journal, self.shared.recovery.ended()) {
            journal
                .append(records::ENDED, 0, store.epoch_ns(), &[&ended.to_le_bytes()])
                .map_err(io::Error::other)?;
        }
        let application = make(Rc::clone(&store))?;
        store.set_application(&application);
        *self.application.borrow_mut() = Some(application);
        if let Some(journal) = &journal {
            // The application's records about earlier starts must be durable before anything new.
            journal.committed(journal.last()).await.map_err(io::Error::other)?;
        }
        if let Some(journal) = journal {
            let failing = Rc::clone(&store);
            spawn(async move {
                until_draining(async { failing.fail(&journal.failed().await) }).await;
            });
        }
        // The runtime's owner decides how to handle a panic in it.
        if let Some(on_panic) = self.shared.config.on_panic.filter(|_| !self.shared.is_local) {
            spawn(watch_for_panic(on_panic));
        }
        let Some(commands) = self.shared.take_inbox(self.number) else {
            return Err(io::Error::other("the worker has begun before"));
        };
        spawn(Rc::clone(&self).run_commands(commands));
        *self.store.borrow_mut() = Some(store);
        self.has_begun.notify_all();
        Ok(())
    }

    async fn open_journal(&self) -> io::Result<Option<Rc<Journal>>> {
        let config = &self.shared.config;
        let Some((directory, level)) = config.active_journal() else { return Ok(None) };
        let number = self.number as u16;
        let recovered = self.shared.recovery.take_journal(config, number).map_err(io::Error::other)?;
        let journal = JournalConfig {
            segment_bytes: config.journal_segment_bytes,
            ..JournalConfig::new(directory.clone(), number, level)
        };
        let journal = match config.journal_faults {
            None => Journal::open(journal, &recovered).await?,
            Some(judge) => {
                let faults = Rc::new(move |operation: &Operation| judge(number, operation));
                Journal::open_with_faults(journal, &recovered, faults).await?
            }
        };
        journal.start();
        self.shared.journals.lock().unwrap_or_else(PoisonError::into_inner).push(journal.counters());
        Ok(Some(journal))
    }

    async fn run_commands(self: Rc<Self>, mut commands: MailboxReceiver<Command>) {
        let store = self.store().await;
        loop {
            let mut command = None;
            let is_command = until_draining(async { command = commands.recv().await }).await;
            match command.filter(|_| is_command) {
                Some(Command::Arrival(arrival)) => {
                    if let Ok(arrival) = arrival.unpack() {
                        // Fails only at the task limit: then the connection is closed, which the client sees.
                        let _ = try_spawn(connection::join(Rc::clone(&store), arrival));
                    }
                }
                Some(Command::Drain) | None => break,
            }
        }
        drop(store);
        self.drain().await;
    }

    /// Ends connections in order; effective once. The session can be joined after the next start, unless it is to
    /// end.
    pub(super) async fn drain(&self) {
        if self.is_over.replace(true) {
            return;
        }
        let store = self.store().await;
        let until = time::now() + self.shared.session_drain_limit;
        let mut deadline = ConnectionTimer::new();
        store.draining.set(true);
        let application = store.application();
        if let Some(application) = &application {
            application.on_drain();
        }
        for slot in store.slots() {
            if let Some(session) = &slot.state.borrow().session {
                session.end(End::Drained);
            }
        }
        let is_settled = match &application {
            Some(application) => deadline.until(until, application.settled()).await.is_some(),
            None => true,
        };
        // Messages of a session that has ended cannot be requested. What a copy of other journals has not written in
        // time comes after the next start, so its session goes on.
        if is_settled || !self.shared.config.is_read_only {
            let has_ended = deadline.until(until, self.end_session(&store)).await;
            store.is_over.set(has_ended.unwrap_or(false));
        }
        store.settled.set(true);
        let all_left = store.session_left.until(|| store.sessions_open.get() == 0);
        deadline.until(until, all_left).await;
        if let Some(journal) = store.journal() {
            deadline.until(until, journal.close()).await;
        }
        drop(self.application.take());
        self.shared.barrier.pass();
    }

    /// Whether the session is over with this drain. Clients are informed once the journal contains it, and not
    /// before.
    async fn end_session(&self, store: &SessionStore) -> bool {
        // Nothing of it remains for the next start.
        let Some(journal) = store.journal() else { return true };
        // The records of a failed journal can be requested after a restart.
        if !self.shared.ends_session.load(Ordering::Relaxed) || self.shared.has_failed() {
            return false;
        }
        // This worker may have slept for long. A checkpoint may include later times of others by now, and would be of
        // no use with a record behind it that has an earlier one.
        store.tick();
        let ended = self.shared.generation.to_le_bytes();
        match journal.append(records::ENDED, 0, store.epoch_ns(), &[&ended]) {
            Ok((lsn, _)) => journal.committed(lsn).await.is_ok(),
            Err(_) => false,
        }
    }
}

/// Waits for a future, at most until the runtime drains; returns false then.
pub(crate) async fn until_draining(future: impl Future<Output = ()>) -> bool {
    let (mut future, mut draining) = (pin!(future), pin!(weir_engine::draining()));
    poll_fn(|context| {
        if future.as_mut().poll(context).is_ready() {
            return Poll::Ready(true);
        }
        draining.as_mut().poll(context).map(|()| false)
    })
    .await
}

/// Calls the function when the thread unwinds.
struct Alarm(fn());

impl Drop for Alarm {
    fn drop(&mut self) {
        if thread::panicking() {
            (self.0)();
        }
    }
}

async fn watch_for_panic(on_panic: fn()) {
    let _alarm = Alarm(on_panic);
    weir_engine::draining().await;
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use weir_engine::{Config, Driver, Runtime, time::Instant};

    use super::*;
    use crate::{
        journal::Level,
        orders::{ClientMessage, LocalOrders, Waiting, recover},
    };

    #[test]
    fn a_session_that_ended_is_followed_by_one_with_the_next_number() {
        let name = |text: &str, ended| {
            session_name(&text.parse().expect("a name"), ended).expect("it has room").to_string()
        };
        assert_eq!(name("WEIR000001", 0), "WEIR000001");
        assert_eq!(name("WEIR000001", 1), "WEIR000002");
        assert_eq!(name("7", 2), "9");
        assert_eq!(name("9999999999", 0), "9999999999");
    }

    #[test]
    fn no_session_gets_the_name_of_one_that_has_ended() {
        for (text, ended, words) in [
            ("DAY", 0, "no number at its end"),
            ("DAY", 3, "no number at its end"),
            ("7", 3, "no room"),
            ("9999999999", 1, "no room"),
            ("9999999999", u64::MAX, "no room"),
        ] {
            let wrong = session_name(&text.parse().expect("a name"), ended).expect_err("it would come again");
            assert!(wrong.contains(text) && wrong.contains(words), "{wrong}");
        }
    }

    /// It has more to emit than a drain waits for, if it is not settled.
    struct Emitting {
        is_settled: bool,
    }

    impl Application for Emitting {
        fn on_message(&self, _: AccountId, _: &ClientMessage<'_>, _: Instant) {}

        fn settled(&self) -> Waiting {
            if self.is_settled { Box::pin(ready(())) } else { Box::pin(pending()) }
        }
    }

    #[test]
    fn a_session_whose_readers_lack_messages_goes_on_with_the_next_start() {
        for is_settled in [false, true] {
            let name = format!("weir-orders-settled-{is_settled}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            // Left over from an earlier run.
            let _ = std::fs::remove_dir_all(&folder);
            let config = OrdersConfig {
                is_read_only: true,
                journal: Some((folder.clone(), Level::Os)),
                journal_segment_bytes: 64 << 10,
                ..OrdersConfig::new(crate::orders::demo_accounts(1))
            };
            let runtime = Runtime::new(&Config::for_test(Driver::Sim)).expect("it runs everywhere");
            runtime.block_on(async {
                let make = |_: Rc<SessionStore>| Ok(Rc::new(Emitting { is_settled }) as Rc<dyn Application>);
                let orders = LocalOrders::start(config.clone(), make).await.expect("it starts");
                orders.end_session().await;
                // A record that nobody waits for is written as well.
                time::sleep(Duration::from_secs(1)).await;
            });
            // With every task, so that nobody writes the journal.
            drop(runtime);
            let recovery = recover(&config, &mut |_| {}).expect("it is whole");
            assert_eq!(recovery.generation(), u16::from(is_settled));
            drop(recovery);
            std::fs::remove_dir_all(folder).expect("it is ours");
        }
    }

    #[test]
    fn a_drain_does_not_wait_for_a_worker_that_hangs() {
        let place = ServerShape { workers: 2, is_local: true, session_drain_limit: Duration::from_millis(5) };
        let config = OrdersConfig::new(crate::orders::demo_accounts(1));
        let shared = OrdersState::new(config, place, Recovery::default()).expect("no threads are asked for");
        while shared.commands[0].try_send(Command::Drain).is_ok() {}
        shared.tell_drain();
        let mut commands = shared.take_inbox(1).expect("nobody has taken it");
        assert!(matches!(commands.try_recv(), Some(Command::Drain)), "the others are told");
    }
}
