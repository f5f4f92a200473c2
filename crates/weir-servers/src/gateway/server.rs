//! Starts a gateway, and shows it to other threads.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    rc::Rc,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::Receiver,
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

use weir_engine::{
    handoff::{self, HandoffCounters, Port},
    mailbox::{MailboxReceiver, mailbox},
    net::{Address, Stream},
    serve::{Drained, ServeError, ServerConfig},
    spawn, time,
};
use weir_proto::soup::Name;
use weir_record::{
    engine::ServerStats,
    orders::{HandoffStats, NodeStats},
};
use weir_trading::{AccountId, References, RiskState, Route};

use super::{
    audit::{Audit, Operator},
    checkpoints,
    commands::{CommandRequest, Commander, WAITING_MAX, obey},
    config::{GatewayConfig, VENUES_MAX, WORKERS_MAX},
    control::{ControlRequest, ControlResponse, UpstreamStatus},
    controls::{Change, Controls},
    counters::{GatewayCounters, total},
    day::{DayKeeper, takes_orders_at},
    drop_copy::{DropCopyControl, DropCopyServer, JournalEnds},
    hop_latency::{Hops, summarize},
    notices::{Begun, Notices},
    orders_of_other_workers::OrdersElsewhere,
    outstanding::OutstandingOrders,
    positions::{Executed, ExecutedShares},
    pre_trade_checks::{Checks, new_risk},
    queries::{self, Asker, Query},
    recovery::{Moment, Recovered},
    reference_prices,
    reload::ACCOUNTS_ADDED_MAX,
    reloading::Reloading,
    undelivered_bounds, unreachable_orders,
    unsolicited_cancels::{Expiry, Untold},
    upstream::{Login, Upstream, UpstreamId},
    upstream_session::Resume,
    venue_record::Endpoint,
    worker::{Common, Gateway, Parts, Symbols},
    worker_message::{Reject, WorkerMessage},
};
use crate::{
    counter::Counter,
    journal::Level,
    metrics::{DRAINING, JOURNAL_FAILED, journal_trouble},
    orders::{
        AccountConfig, Event, EventKind, LocalOrders, OrdersConfig, OrdersControl, OrdersServer, Recovery,
        SessionStore,
    },
};

/// How often the starting thread checks whether the upstream sessions are up.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A running gateway.
#[derive(Debug)]
pub struct GatewayServer {
    orders: OrdersServer,
    drop_copy: Option<DropCopyServer>,
    control: GatewayControl,
}

/// Counters and changes of a running gateway, for any thread.
#[derive(Clone)]
pub struct GatewayControl {
    pub(super) orders: OrdersControl,
    pub(super) shared: Arc<GatewayState>,
}

impl std::fmt::Debug for GatewayControl {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("GatewayControl").finish_non_exhaustive()
    }
}

pub(super) struct GatewayState {
    pub(super) config: GatewayConfig,
    pub(super) common: Arc<Common>,
    hops: Vec<Arc<Hops>>,
    handoff: Vec<Arc<HandoffCounters>>,
    pub(super) commander: Commander,
    pub(super) asker: Asker,
    pub(super) day: DayKeeper,
    /// How far the journals are durable, if there is a drop copy.
    pub(super) journal_ends: Option<Arc<JournalEnds>>,
    /// Set before the workers start, if there is one.
    pub(super) drop_copy: OnceLock<DropCopyControl>,
    /// Set when the gateway can read its configuration again.
    pub(super) reloading: Mutex<Option<Reloading>>,
}

impl GatewayState {
    /// Adds the gateway's counts to those of its sessions.
    fn complete(&self, mut stats: NodeStats) -> NodeStats {
        let taken = total(&self.common.counters, |counters| &counters.taken);
        let passed = total(&self.common.counters, |counters| &counters.passed);
        stats.backlog += taken.saturating_sub(passed);
        let count = |of: fn(&GatewayCounters) -> &Counter| total(&self.common.counters, of);
        stats.upstreams_open = count(|counters| &counters.upstreams_open);
        stats.upstreams_begun_anew = count(|counters| &counters.begun_anew);
        stats.orders_expired = count(|counters| &counters.expired);
        {
            let controls = self.commander.controls();
            stats.is_everyone_killed = controls.switches.is_on(None);
            stats.accounts_killed = controls.switches.accounts() as u64;
        }
        stats.hops = summarize(&self.hops);
        if self.common.hands_off {
            let mut sum = HandoffStats {
                strategy: self.config.handoff.strategy.name().into(),
                orders: stats.orders,
                orders_handed_off: total(&self.common.counters, |counters| &counters.handed_off),
                ..HandoffStats::default()
            };
            self.handoff.iter().for_each(|counters| sum.merge(&counters.stats()));
            stats.handoff = Some(sum);
        }
        stats
    }

    pub(super) fn upstreams(&self) -> Vec<UpstreamStatus> {
        let common = &self.common;
        let troubles = common.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = common.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let status = |(index, open): (usize, &AtomicBool)| {
            let is_open = open.load(Ordering::Relaxed);
            UpstreamStatus {
                venue: common.venues[index % common.venues.len()].clone(),
                worker: (index / common.venues.len()) as u32,
                is_open,
                trouble: troubles[index].clone().filter(|_| !is_open),
                session: begun[index].session.map(|session| session.to_string()),
                times_begun_anew: begun[index].times_anew,
                orders_expired: begun[index].expired,
            }
        };
        common.open.iter().enumerate().map(status).collect()
    }
}

/// The parts that a worker takes when it starts.
struct WorkerInit {
    port: Port<WorkerMessage>,
    sessions: Vec<(OutstandingOrders, Resume)>,
    requests: MailboxReceiver<CommandRequest>,
    queries: MailboxReceiver<Query>,
    unsent: Vec<(AccountId, Reject)>,
    expired: Vec<(u64, Expiry)>,
    risk: RiskState,
    elsewhere: OrdersElsewhere,
    /// Executed shares of the accounts whose home it is.
    executed_shares: ExecutedShares,
}

/// A gateway that has not started yet.
pub(super) struct Prepared {
    pub(super) shared: Arc<GatewayState>,
    inits: Vec<Option<WorkerInit>>,
    recovery: Recovery,
}

impl Prepared {
    /// Recovers the state from the journals.
    pub(super) fn new(workers: usize, mut config: GatewayConfig, now: Moment) -> io::Result<Self> {
        let mut common = common(&config, workers);
        let (recovery, recovered) = read_journals(workers, &mut config, &common, now)?;
        if recovered.venues.len() > VENUES_MAX {
            return Err(invalid(format!(
                "orders have expired at so many venues that are not configured that they would be more than \
                 {VENUES_MAX} with those that are; start once with fewer of these"
            )));
        }
        common.venues_recorded.clone_from(&recovered.venues);
        // With those that a reload may add.
        let accounts = recovery.account_places().max(config.accounts.len()) + ACCOUNTS_ADDED_MAX;
        common.senders = senders(&config, workers, accounts);
        common.hands_off = hands_off(&common.senders, workers);
        common.hands_off |= recovered.has_orders_of_others(config.venues.len());
        if common.hands_off && config.handoff.strategy == handoff::Strategy::Owner {
            return Err(invalid(
                "the journal has open orders that another worker than their client's has sent; their answers have to \
                 be handed over, which the hand-off owner cannot: start with mesh until they are answered"
                    .to_owned(),
            ));
        }
        let of_session = (&recovered, recovery.generation());
        let risk = restored_risk((workers, accounts), &config, &common.references, of_session);
        let ports = handoff::group::<WorkerMessage>(workers, &config.handoff);
        let handoff = ports.iter().map(Port::counters).collect();
        let (senders, boxes): (Vec<_>, Vec<_>) = (0..workers).map(|_| mailbox(WAITING_MAX)).unzip();
        let (askers, mut questions): (Vec<_>, VecDeque<_>) =
            (0..workers).map(|_| mailbox(queries::WAITING_MAX)).unzip();
        let venues = config.venues.len();
        let counters = common.counters.clone();
        let journal_ends =
            config.drop_copy.as_ref().map(|_| JournalEnds::new(&recovery.journal_ends(), workers));
        let elsewhere = recovered.elsewhere(venues, |account| common.sender_of(account));
        let standing = recovered.controls.day.as_ref();
        let takes_orders = takes_orders_at(config.day.as_ref(), standing, now.wall_ns);
        let shared = Arc::new(GatewayState {
            day: DayKeeper::new(config.day.clone(), takes_orders),
            common: Arc::new(common),
            hops: (0..workers).map(|_| Arc::new(Hops::new())).collect(),
            handoff,
            commander: Commander::new(recovered.controls, senders).with_counters(counters),
            asker: Asker::new(askers),
            journal_ends,
            drop_copy: OnceLock::new(),
            config,
            reloading: Mutex::default(),
        });
        let mut sessions = recovered.sessions.into_iter();
        let workers_parts = ports.into_iter().zip(boxes).zip(risk).enumerate();
        let inits = workers_parts.map(|(worker, ((port, requests), risk))| {
            let queries = questions.pop_front()?;
            let own = |(account, _): &&(AccountId, Reject)| account.0 as usize % workers == worker;
            let is_own = |(_, expiry): &&(u64, Expiry)| usize::from(expiry.origin.home) == worker;
            Some(WorkerInit {
                port,
                sessions: sessions.by_ref().take(venues).collect(),
                requests,
                queries,
                unsent: recovered.unsent.iter().filter(own).copied().collect(),
                expired: recovered.expired.iter().filter(is_own).copied().collect(),
                risk,
                elsewhere: elsewhere_of(&elsewhere, workers, worker),
                executed_shares: recovered.executed_shares.of_home(workers, worker),
            })
        });
        let inits = inits.collect();
        Ok(Self { shared, inits, recovery })
    }

    /// The configuration of the sessions underneath; their events are merged with the gateway's.
    pub(super) fn orders_config(&self) -> OrdersConfig {
        let events = self.shared.common.notices.events().clone();
        OrdersConfig { events, ..orders_config(&self.shared.config) }
    }

    /// The initial state of the sessions, and a function that creates each worker's part once.
    pub(super) fn into_parts(
        self,
    ) -> (Recovery, impl Fn(Rc<SessionStore>) -> io::Result<Rc<Gateway>> + Clone + Send + 'static) {
        let Self { shared, inits, recovery } = self;
        let inits = Arc::new(Mutex::new(inits));
        let make = move |store: Rc<SessionStore>| {
            let init = inits
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_mut(store.worker())
                .and_then(Option::take)
                .ok_or_else(|| io::Error::other("the worker has begun before"))?;
            init_worker(&shared, store, init)
        };
        (recovery, make)
    }
}

/// Recovers the state from the journals, as far as the configuration can reach it. Accounts that were removed from
/// the configuration stay, without a login, if they have orders that end now.
fn read_journals(
    workers: usize,
    config: &mut GatewayConfig,
    common: &Common,
    now: Moment,
) -> io::Result<(Recovery, Recovered)> {
    let configured = config.accounts.len();
    let (recovery, mut recovered) = {
        let (config, names) = (&*config, |name: &str| account_named(config, name));
        let begin = || {
            checkpoints::begin((workers, configured), config, &common.symbols, &names, now)
                .with_endpoints(common.endpoints.clone())
        };
        let (recovery, mut recovering) = checkpoints::recover(config, common, begin)?;
        recovering.set_current_session(recovery.generation());
        let feeds = |worker, home| common.feeds(worker, home);
        (recovery, recovering.finish(feeds, config.expire_unreachable))
    };
    let is_removed = |account: AccountId| account.0 as usize >= configured;
    if recovered.stranded.iter().any(|it| is_removed(it.account)) {
        config.accounts.extend(recovery.removed().iter().map(without_login));
        config.account_limits.resize(config.accounts.len(), None);
    } else if !recovery.removed().is_empty() {
        recovered.leave_removed(configured);
    }
    if !recovered.stranded.is_empty() {
        if !config.expire_unreachable {
            return Err(invalid(unreachable_orders::refusal(&recovered.stranded, config)));
        }
        let text = unreachable_orders::notice(&recovered.stranded, config);
        common.notices.events().leave(Event::new(EventKind::OrdersExpired, text));
    }
    Ok((recovery, recovered))
}

/// An account that is no longer configured and whose stream continues.
fn without_login(name: &Name<6>) -> AccountConfig {
    // No password has this hash.
    AccountConfig {
        name: *name,
        password_hash: "".into(),
        cancel_on_disconnect: false,
        cancel_after: Duration::ZERO,
        takeover: false,
    }
}

/// The orders of one worker's clients.
fn elsewhere_of(all: &[(AccountId, u32, u16)], workers: usize, home: usize) -> OrdersElsewhere {
    let mut of_home = OrdersElsewhere::default();
    for (account, number, worker) in all.iter().filter(|(of, _, _)| of.0 as usize % workers == home) {
        of_home.add(*account, *number, *worker);
    }
    of_home
}

impl GatewayServer {
    /// Recovers the state from the journals, listens, and starts the workers, which begin to log in to the exchanges.
    ///
    /// # Errors
    /// The errors of [`OrdersServer::start`]; a hand-off that does not support the configuration.
    pub fn start(server: ServerConfig, config: GatewayConfig) -> Result<Self, ServeError> {
        check(&server, &config)?;
        let engine_ns = time::monotonic().as_nanos();
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = Moment { wall_ns: wall.as_nanos() as u64, engine_ns };
        let prepared = Prepared::new(server.workers, config, now)
            .map_err(|source| ServeError::Worker { worker: 0, source })?;
        let (orders, shared) = (prepared.orders_config(), Arc::clone(&prepared.shared));
        let (recovery, make) = prepared.into_parts();
        checkpoints::keep_writing(&shared).map_err(|source| ServeError::Worker { worker: 0, source })?;
        let drop_copy = DropCopyServer::start(&server, &shared)?;
        let orders =
            match OrdersServer::start_recovered(server, orders, recovery, move |store| Ok(make(store)? as _))
            {
                Ok(orders) => orders,
                Err(error) => {
                    drop_copy.into_iter().for_each(|drop_copy| drop_copy.end(false));
                    return Err(error);
                }
            };
        let control = GatewayControl { orders: orders.control(), shared };
        Ok(Self { orders, drop_copy, control })
    }

    /// As [`GatewayControl::wait_for_upstreams`].
    pub fn wait_for_upstreams(&self, limit: Duration) -> bool {
        self.control.wait_for_upstreams(limit)
    }

    /// The sessions underneath, and the drop copy, which is to end after them; [`Self::control`] continues to work.
    pub fn into_parts(self) -> (OrdersServer, Option<DropCopyServer>) {
        (self.orders, self.drop_copy)
    }

    /// The drop copy, if there is one.
    pub fn drop_copy(&self) -> Option<&DropCopyServer> {
        self.drop_copy.as_ref()
    }

    /// The address for clients, with the port that the kernel chose.
    pub fn address(&self) -> &Address {
        self.orders.address()
    }

    /// The sessions underneath.
    pub fn orders(&self) -> &OrdersServer {
        &self.orders
    }

    /// A handle for other threads.
    pub fn control(&self) -> GatewayControl {
        self.control.clone()
    }

    /// Starts draining; `join` waits until it is done.
    pub fn drain(&self) {
        self.control.drain();
    }

    /// Waits until the gateway has drained.
    ///
    /// # Panics
    /// When a worker panicked: with its message.
    pub fn join(self) -> Drained {
        let drained = self.orders.join();
        let ends_session = self.control.orders.ends_session();
        self.drop_copy.into_iter().for_each(|drop_copy| drop_copy.end(ends_session));
        drained
    }
}

/// A gateway of one worker inside the caller's runtime: for programs with their own runtime, and for the simulator.
/// It has no control socket and no drop copy, and like [`LocalOrders`] it verifies passwords on the same thread.
#[derive(Clone)]
pub struct LocalGateway {
    orders: LocalOrders,
    shared: Arc<GatewayState>,
}

impl std::fmt::Debug for LocalGateway {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LocalGateway").finish_non_exhaustive()
    }
}

impl LocalGateway {
    /// Recovers the state from the journal, and begins to log in to the exchanges.
    ///
    /// # Errors
    /// The errors of the configuration and the journal.
    pub async fn start(config: GatewayConfig) -> io::Result<Self> {
        check_venues(&config, 1)?;
        if config.drop_copy.is_some() {
            return Err(invalid("a gateway inside another runtime has no drop copy".to_owned()));
        }
        // On the simulator both clocks are one.
        let now_ns = time::now().as_nanos();
        let prepared = Prepared::new(1, config, Moment { wall_ns: now_ns, engine_ns: now_ns })?;
        let (orders, shared) = (prepared.orders_config(), Arc::clone(&prepared.shared));
        let (recovery, make) = prepared.into_parts();
        let orders =
            LocalOrders::start_recovered(orders, recovery, move |store| Ok(make(store)? as _)).await?;
        Ok(Self { orders, shared })
    }

    /// Serves one connection of a client.
    pub fn serve(&self, stream: Stream) -> impl Future<Output = ()> + use<> {
        self.orders.serve(stream)
    }

    /// The counts so far.
    pub fn node_stats(&self) -> NodeStats {
        self.shared.complete(self.orders.node_stats())
    }

    /// The upstream sessions.
    pub fn upstreams(&self) -> Vec<UpstreamStatus> {
        self.shared.upstreams()
    }

    /// Disconnects clients, as [`OrdersControl::drain`].
    pub async fn drain(&self) {
        self.orders.drain().await;
    }
}

fn check(server: &ServerConfig, config: &GatewayConfig) -> Result<(), ServeError> {
    let workers = server.workers;
    let wrong = |source: io::Error| ServeError::Worker { worker: 0, source };
    if workers == 0 || workers > WORKERS_MAX {
        return Err(wrong(invalid(format!("{workers} workers; 1 to {WORKERS_MAX} are possible"))));
    }
    check_venues(config, workers).map_err(wrong)?;
    config.check_day().map_err(|reason| wrong(invalid(reason)))?;
    config.check_drop_copy().map_err(|text| wrong(invalid(text)))?;
    if workers > 1 && config.route != Route::Own && config.handoff.strategy == handoff::Strategy::Owner {
        return Err(wrong(invalid(format!(
            "the hand-off owner hands nothing off, and the route {} needs that; choose another one of them",
            config.route
        ))));
    }
    Ok(())
}

fn check_venues(config: &GatewayConfig, workers: usize) -> io::Result<()> {
    match config.venues.iter().find(|venue| venue.usernames.len() < workers) {
        None => Ok(()),
        Some(venue) => Err(invalid(format!(
            "venue {} has {} user names for {workers} workers; each needs its own",
            venue.name,
            venue.usernames.len()
        ))),
    }
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

pub(super) fn orders_config(config: &GatewayConfig) -> OrdersConfig {
    #[cfg(not(test))]
    let journals_each_number = true;
    #[cfg(test)]
    let journals_each_number =
        !super::simulated_days::is_planted(super::simulated_days::Plant::LostNumberIgnored);
    OrdersConfig {
        session: config.session,
        accounts_added_max: ACCOUNTS_ADDED_MAX,
        numbers_go_on: !config.numbers_restart,
        journals_each_number,
        logins: config.logins,
        journal: config.journal.clone().filter(|(_, level)| *level != Level::None),
        journal_segment_bytes: config.journal_segment_bytes,
        journal_faults: config.journal_faults,
        node: "GATEWAY",
        ..OrdersConfig::new(config.accounts.clone())
    }
}

/// The initial state of each worker's checks: the open orders and executions of accounts, if orders are followed.
/// Executions from before the session with the clients of this generation no longer count.
fn restored_risk(
    (workers, accounts): (usize, usize),
    config: &GatewayConfig,
    references: &Arc<References>,
    (recovered, generation): (&Recovered, u16),
) -> Vec<RiskState> {
    for (symbol, price) in &recovered.prices {
        // As many as fit.
        let _ = references.set(*symbol, *price);
    }
    let needs_orders = recovered.controls.needs_orders();
    let is_followed = |account: AccountId| {
        let own = needs_orders.get(&Some(account)).or_else(|| needs_orders.get(&None));
        config.follows_orders || own.is_some_and(|needs_orders| *needs_orders)
    };
    let mut open = vec![Vec::new(); workers];
    for (account, order) in recovered.open.iter().filter(|(account, _)| is_followed(*account)) {
        open[account.0 as usize % workers].push((*account, *order));
    }
    let risk_of = |orders: &Vec<_>| new_risk(accounts, orders.len(), config.follows_orders, references);
    let mut risk: Vec<RiskState> = open.iter().map(risk_of).collect();
    #[cfg(test)]
    if super::simulated_days::is_planted(super::simulated_days::Plant::ExposureNotRebuilt) {
        return risk;
    }
    for (risk, orders) in risk.iter_mut().zip(&open) {
        orders.iter().for_each(|(account, order)| risk.restore(*account, order));
    }
    for (account, _) in recovered.open.iter().filter(|(account, _)| !is_followed(*account)) {
        risk[account.0 as usize % workers].note_unfollowed();
    }
    let is_counted = |(account, executed): &(&AccountId, &Executed)| {
        executed.generation == generation && is_followed(**account)
    };
    for (account, executed) in recovered.executed.iter().filter(is_counted) {
        risk[account.0 as usize % workers].restore_executed(*account, executed.value);
    }
    risk
}

/// By account: the worker that sends its orders.
fn senders(config: &GatewayConfig, workers: usize, accounts: usize) -> Vec<u16> {
    // Neighbours in the list of accounts have different home workers: `modulo` uses their row, not their index,
    // because otherwise it would never hand anything off.
    let row = |account: usize| (account / workers) as u32;
    let sender = |account: usize| config.route.worker(account % workers, row(account), workers) as u16;
    (0..accounts).map(sender).collect()
}

fn hands_off(senders: &[u16], workers: usize) -> bool {
    senders.iter().enumerate().any(|(account, sender)| account % workers != usize::from(*sender))
}

fn common(config: &GatewayConfig, workers: usize) -> Common {
    let senders = senders(config, workers, config.accounts.len());
    let sessions = workers * config.venues.len();
    let endpoints_of = |worker: usize| {
        let venues = config.venues.iter().enumerate();
        venues.map(move |(number, venue)| ((worker, number), Endpoint::new(venue, worker)))
    };
    Common {
        workers,
        venues: config.venues.iter().map(|venue| venue.name.clone()).collect(),
        venues_recorded: Vec::new(),
        endpoints: (0..workers).flat_map(endpoints_of).collect(),
        symbols: Arc::new(Symbols {
            venues: config.symbols.iter().copied().collect(),
            other: config.default_venue,
        }),
        hands_off: hands_off(&senders, workers),
        senders,
        hop_times: config.hop_times,
        behind: (0..workers).map(|_| AtomicBool::new(false)).collect(),
        settled: (0..workers).map(|_| AtomicBool::new(false)).collect(),
        counters: (0..workers).map(|_| Arc::default()).collect(),
        open: (0..sessions).map(|_| AtomicBool::new(false)).collect(),
        references: Arc::new(reference_prices::table(&config.references)),
        troubles: Mutex::new(vec![None; sessions]),
        begun: Mutex::new(vec![Begun::default(); sessions]),
        notices: Notices::new(sessions),
    }
}

pub(super) fn account_named(config: &GatewayConfig, name: &str) -> Option<AccountId> {
    let is_it = |account: &crate::orders::AccountConfig| account.name.as_str().eq_ignore_ascii_case(name);
    config.accounts.iter().position(is_it).map(|place| AccountId(place as u32))
}

/// Creates a worker's part and starts it.
fn init_worker(shared: &GatewayState, store: Rc<SessionStore>, init: WorkerInit) -> io::Result<Rc<Gateway>> {
    let WorkerInit { port, sessions, requests, queries, unsent, expired, risk, elsewhere, executed_shares } =
        init;
    let (worker, config) = (store.worker(), &shared.config);
    if shared.common.hands_off {
        port.attach().map_err(io::Error::other)?;
    }
    let is_journaled = store.journal().is_some();
    if let (Some(ends), Some(journal)) = (&shared.journal_ends, store.journal()) {
        ends.follow(journal);
    }
    let upstreams = sessions.into_iter().enumerate().map(|(venue, recovered)| {
        let login = Login::new(&config.venues[venue], worker);
        let place = UpstreamId { worker, venue, venues: config.venues.len() };
        Upstream::new(place, login, recovered, is_journaled)
    });
    let parts = Parts {
        common: Arc::clone(&shared.common),
        counters: Arc::clone(&shared.common.counters[worker]),
        hops: Arc::clone(&shared.hops[worker]),
        upstreams: upstreams.collect(),
        port,
        bounds: undelivered_bounds::of(config, (shared.common.workers, store.account_count())),
        checks: checks(&shared.commander.controls(), store.account_count(), risk).map_err(invalid)?,
        elsewhere,
    };
    let gateway = Gateway::new(store, parts);
    executed_shares.add_to(&mut gateway.checks.borrow_mut().positions);
    gateway.log_homes();
    for (account, reject) in unsent {
        gateway.reject_unsent(account, reject);
    }
    gateway.kill_again(&shared.commander.controls(), &config.accounts);
    if config.day.is_some() {
        gateway.resume_day(shared.commander.controls().day.as_ref(), shared.day.takes_orders());
    }
    gateway.start();
    gateway.keep(spawn(obey(Rc::clone(&gateway), requests)));
    gateway.keep(spawn(queries::answer(Rc::clone(&gateway), queries)));
    let (telling, untold) = (Rc::clone(&gateway), Untold::new(expired.into()));
    gateway.keep(spawn(async move { telling.expire(&untold).await }));
    Ok(gateway)
}

/// # Errors
/// The reason, in words: a limit is invalid.
fn checks(controls: &Controls, accounts: usize, risk: RiskState) -> Result<Checks, String> {
    let mut checks = Checks::new(accounts, risk);
    for (account, limits) in controls.all_resolved()? {
        checks.set_limits(account, limits);
    }
    Ok(checks)
}

impl GatewayControl {
    /// The gateway's counts so far.
    pub fn node_stats(&self) -> NodeStats {
        self.shared.complete(self.orders.node_stats())
    }

    /// The engine's counters.
    pub fn server_stats(&self) -> ServerStats {
        crate::stats::of_server(self.orders.server())
    }

    /// The sessions underneath.
    pub fn orders(&self) -> &OrdersControl {
        &self.orders
    }

    /// The upstream sessions, worker by worker.
    pub fn upstreams(&self) -> Vec<UpstreamStatus> {
        self.shared.upstreams()
    }

    /// Waits until every upstream session is logged in. False: they are not within the limit, or will not be because
    /// the gateway drains.
    pub fn wait_for_upstreams(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            if self.upstreams().iter().all(|upstream| upstream.is_open) {
                return true;
            }
            if Instant::now() >= deadline || self.orders.is_draining() {
                return false;
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Checks whether orders can be accepted: the journal works, and an upstream session is up.
    ///
    /// # Errors
    /// The reason why not, in words.
    pub fn health(&self) -> Result<(), String> {
        if !self.orders.server().is_serving() {
            return Err(DRAINING.into());
        }
        let has_failed = total(&self.shared.common.counters, |counters| &counters.has_failed) > 0;
        if has_failed {
            return Err(JOURNAL_FAILED.into());
        }
        if let Some(trouble) = self.orders.node_stats().journal.as_ref().and_then(journal_trouble) {
            return Err(trouble);
        }
        if self.upstreams().iter().any(|upstream| upstream.is_open) {
            return Ok(());
        }
        Err("no upstream session is logged in".into())
    }

    /// The symbols that have a reference price, in units of the currency.
    pub fn references(&self) -> BTreeMap<String, f64> {
        let all = self.shared.common.references.all().into_iter();
        all.map(|(symbol, price)| (symbol.to_string(), reference_prices::units(price))).collect()
    }

    /// Sets reference prices of symbols, in units of the currency, or removes them. They are valid until the next
    /// trade.
    ///
    /// # Errors
    /// The reason, in words: not a symbol, not a price, no room for more symbols, or the change cannot be journaled.
    pub fn set_references(&self, prices: BTreeMap<String, Option<f64>>) -> Result<(), String> {
        reference_prices::reserve(&self.shared.common.references, &reference_prices::resolve(&prices)?)?;
        self.shared.commander.change(None, &Change::References { prices })
    }

    /// Records what an operator asked for, if it acts, and reports it in a line.
    pub(super) fn audit(
        &self,
        operator: &Operator,
        request: &ControlRequest,
        answer: &ControlResponse,
        patience: Duration,
    ) {
        let Some(audit) = Audit::new(operator, request, answer) else { return };
        let mut line = format!("operator {audit}");
        if self.orders.has_journal()
            && let Err(reason) = self.shared.commander.record(audit.record(), patience)
        {
            line.push_str(&format!("; the journal has no record of this: {reason}"));
        }
        self.shared.common.notices.events().leave(Event::new(EventKind::Operator, line));
    }

    /// Events for operators, as they occur: for example about lost sessions with exchanges. Some are lost if they are
    /// not taken. Available once.
    pub fn events(&self) -> Option<Receiver<Event>> {
        self.orders.events()
    }

    /// Starts draining: the session with clients can be joined again after the next start.
    pub fn drain(&self) {
        self.orders.drain();
        // Also while a day ends: then the program does not go on. Behind the drain, because from then on no day ends
        // that could set it again.
        self.shared.day.go_on(false);
    }

    /// Ends the session of this name with clients, and with it the gateway.
    ///
    /// # Errors
    /// As [`OrdersControl::end_session`]; also if an order is open and order numbers begin with 1 in the next session.
    pub fn end_session(&self, name: &str) -> Result<(), String> {
        self.check_no_orders()?;
        self.orders.end_session(name)
    }

    /// Whether [`Self::end_session`] would end it, as things are now.
    pub(super) fn may_end_session(&self, name: &str) -> Result<(), String> {
        self.check_no_orders()?;
        self.orders.may_end_session(name)
    }

    /// The configured venues, in order.
    pub(super) fn venues(&self) -> &[String] {
        &self.shared.common.venues
    }

    pub(super) fn account(&self, name: &str) -> Result<AccountId, String> {
        let account = name.parse().ok().and_then(|name| self.orders.account_named(&name));
        account.ok_or_else(|| format!("there is no account {name:?}"))
    }
}
