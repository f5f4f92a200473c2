//! Changes while the gateway runs: from any thread to every worker, journaled before they are confirmed.
//!
//! A change is followed when it is in the journal, but for a kill switch that is turned on: that is not for a disk to
//! delay, and is journaled beside. Changes are journaled in the order in which they are followed.

use std::{
    cell::RefCell,
    collections::{BTreeSet, VecDeque},
    future::{Future, poll_fn},
    pin::pin,
    rc::Rc,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use weir_engine::mailbox::{MailboxReceiver, MailboxSender};
use weir_proto::ouch::Symbol;
use weir_trading::{AccountId, RiskLimits};

use super::{
    account_limits::Limits,
    counters::GatewayCounters,
    reference_prices::{Prices, resolve},
    worker::{Gateway, RECORD_CONTROL},
};
use crate::journal::{Lsn, record::RECORD_BYTES_MAX};
use crate::notify::Signal;

/// Commands that may wait for a worker, and changes that may wait for its journal.
pub(super) const WAITING_MAX: usize = 64;
/// How long a worker may take to confirm.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a kill switch waits for exchanges to confirm its cancels, and how often it asks how many they have.
const CONFIRM_LIMIT: Duration = Duration::from_secs(1);
const CONFIRM_LOOK: Duration = Duration::from_millis(20);
/// Longest change. A record that the journal does not take would end all orders.
const CHANGE_BYTES_MAX: usize = RECORD_BYTES_MAX - 4096;

/// A change as it is journaled: accounts go by their names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Change {
    /// The kill switch of an account, or of everybody.
    Kill { account: Option<String>, on: bool },
    /// The limits of an account, or those of all that have none of their own.
    Limits { account: Option<String>, limits: Limits },
    /// Reference prices of these symbols.
    References { prices: Prices },
}

impl Change {
    /// What workers are told of it, and what is journaled. `account` is the one it names.
    fn to_command(&self, account: Option<AccountId>) -> Result<(Command, Vec<u8>), String> {
        let command = match self {
            Self::Limits { limits, .. } => Command::Limits(account, limits.resolve()?),
            Self::Kill { on, .. } => Command::Kill(account, *on),
            Self::References { prices } => Command::References(resolve(prices)?),
        };
        let payload = serde_json::to_vec(self).map_err(|error| error.to_string())?;
        if payload.len() > CHANGE_BYTES_MAX {
            return Err(format!("a change has {} bytes, and the most is {CHANGE_BYTES_MAX}", payload.len()));
        }
        Ok((command, payload))
    }
}

/// What is in force.
#[derive(Clone, Debug, Default)]
pub(super) struct Controls {
    pub(super) limits: Limits,
    pub(super) account_limits: Vec<Option<Limits>>,
    pub(super) is_everyone_killed: bool,
    pub(super) killed: BTreeSet<u32>,
}

impl Controls {
    /// Applies a change. `account` is the one the change names.
    pub(super) fn apply(&mut self, account: Option<AccountId>, change: &Change) {
        match (change, account) {
            (Change::Kill { on, .. }, None) => self.is_everyone_killed = *on,
            (Change::Kill { on: true, .. }, Some(account)) => _ = self.killed.insert(account.0),
            (Change::Kill { on: false, .. }, Some(account)) => _ = self.killed.remove(&account.0),
            (Change::Limits { limits, .. }, None) => self.limits = limits.clone(),
            (Change::Limits { limits, .. }, Some(account)) => {
                if let Some(place) = self.account_limits.get_mut(account.0 as usize) {
                    *place = Some(limits.clone());
                }
            }
            // They move with every trade, in a table of their own.
            (Change::References { .. }, _) => {}
        }
    }

    /// The limits that count for an account, or for all that have none of their own.
    pub(super) fn limits_of(&self, account: Option<AccountId>) -> &Limits {
        let own = account.and_then(|account| self.account_limits.get(account.0 as usize)?.as_ref());
        own.unwrap_or(&self.limits)
    }
}

/// What a worker is told.
#[derive(Clone, Debug)]
pub(super) enum Command {
    /// Write this into the journal.
    Journal(Vec<u8>),
    /// See [`Change::Kill`]; the answer is which orders are being cancelled.
    Kill(Option<AccountId>, bool),
    /// Say what has become of these cancels.
    Cancels(Option<AccountId>),
    /// See [`Change::Limits`].
    Limits(Option<AccountId>, RiskLimits),
    /// See [`Change::References`].
    References(Vec<(Symbol, u64)>),
}

/// What has become of the cancels of a kill switch at one venue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cancels {
    /// Orders that were open when it was turned on.
    pub(super) orders: u64,
    /// Cancels that have left.
    pub(super) sent: u64,
    /// Of these orders, those that are open still.
    pub(super) open: u64,
    /// Those that have ended, and not by a word of the exchange.
    pub(super) expired: u64,
}

impl Cancels {
    /// Adds another worker's.
    fn add(&mut self, other: &Self) {
        self.orders += other.orders;
        self.sent += other.sent;
        self.open += other.open;
        self.expired += other.expired;
    }

    /// Some time later.
    fn follow(&mut self, later: &Self) {
        self.sent = later.sent.max(self.sent);
        self.open = later.open.min(self.open);
        self.expired = later.expired.max(self.expired);
    }
}

/// What comes of a command: by venue, what is being cancelled; or in words why it was not followed.
type Outcome = Result<Vec<Cancels>, String>;

/// A command, and where its answer goes.
#[derive(Debug)]
pub(super) struct CommandRequest {
    command: Command,
    answer: SyncSender<Outcome>,
}

/// The kill switch of an account, or of everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Switch(Option<AccountId>);

/// The other threads' end.
pub(super) struct Commander {
    controls: Mutex<Controls>,
    /// Held from its beginning to its end by a change that is journaled first. The disk may take its time.
    changing: Mutex<()>,
    /// Held while commands are sent, so that all workers and the journal get them in one order, and never for long. In
    /// it: the switch that is turned off as soon as that is journaled.
    releasing: Mutex<Option<Switch>>,
    workers: Vec<MailboxSender<CommandRequest>>,
    /// By worker: whether its journal has failed. None is known of where this is empty.
    counters: Vec<Arc<GatewayCounters>>,
    patience: Duration,
}

impl Commander {
    pub(super) fn new(controls: Controls, workers: Vec<MailboxSender<CommandRequest>>) -> Self {
        let (changing, releasing) = (Mutex::new(()), Mutex::new(None));
        let (controls, counters) = (Mutex::new(controls), Vec::new());
        Self { controls, changing, releasing, workers, counters, patience: PATIENCE }
    }

    /// Has changes kept by the first worker whose journal works, as far as these know.
    pub(super) fn with_counters(self, counters: Vec<Arc<GatewayCounters>>) -> Self {
        Self { counters, ..self }
    }

    /// The worker whose journal keeps the next change. Recovery reads all journals in the order of time.
    fn keeper(&self) -> usize {
        self.counters.iter().position(|counters| counters.has_failed.get() == 0).unwrap_or(0)
    }

    /// Held for a moment only.
    pub(super) fn controls(&self) -> MutexGuard<'_, Controls> {
        lock(&self.controls)
    }

    /// Has the journal keep a change and every worker follow it.
    pub(super) fn change(&self, account: Option<AccountId>, change: &Change) -> Result<(), String> {
        match change {
            Change::Kill { on: true, .. } => self.engage(account, change).1,
            Change::Kill { .. } | Change::Limits { .. } | Change::References { .. } => {
                self.keep(&lock(&self.changing), account, change)
            }
        }
    }

    /// Has the journal keep other limits of an account, or of all that have none of their own, and every worker follow
    /// them. They are made of those in force when it is their turn, so that two changes at a time both hold.
    pub(super) fn change_limits(
        &self,
        account: Option<AccountId>,
        name: Option<&str>,
        other: impl FnOnce(&Limits) -> Result<Limits, String>,
    ) -> Result<(), String> {
        let in_turn = lock(&self.changing);
        let limits = other(self.controls().limits_of(account))?;
        self.keep(&in_turn, account, &Change::Limits { account: name.map(str::to_owned), limits })
    }

    /// Turns a kill switch on, and has the journal keep that. The switch holds whatever becomes of the journal. Says,
    /// by venue, what has become of the orders within [`CONFIRM_LIMIT`].
    pub(super) fn engage(
        &self,
        account: Option<AccountId>,
        change: &Change,
    ) -> (Vec<Cancels>, Result<(), String>) {
        let (command, payload) = match change.to_command(account) {
            Ok(both) => both,
            Err(error) => return (Vec::new(), Err(error)),
        };
        let (sent, journaled) = {
            let mut releasing = lock(&self.releasing);
            // Who turns it off and has not come to that yet was here before.
            releasing.take_if(|switch| *switch == Switch(account));
            let sent = (self.send_all(&command), self.send(self.keeper(), Command::Journal(payload)));
            // What is shown has been sent.
            self.controls().apply(account, change);
            sent
        };
        let begun = Instant::now();
        let (mut cancels, followed) = sum(sent, begun + self.patience);
        self.confirm(account, &mut cancels, begun + self.patience.min(CONFIRM_LIMIT));
        let kept = self.journaled(journaled, begun + self.patience);
        let not_kept = |reason| {
            format!("the kill switch is on until the gateway ends, but may be off after a restart: {reason}")
        };
        let outcome = match (followed, kept.map_err(not_kept)) {
            (followed, Ok(())) => followed,
            (Ok(()), Err(error)) => Err(error),
            (Err(first), Err(second)) => Err(format!("{first}; {second}")),
        };
        (cancels, outcome)
    }

    /// Asks all workers until none of these orders is open any more.
    fn confirm(&self, account: Option<AccountId>, cancels: &mut [Cancels], until: Instant) {
        while cancels.iter().any(|venue| venue.open > 0) && Instant::now() < until {
            thread::sleep(CONFIRM_LOOK);
            let (later, followed) = sum(self.send_all(&Command::Cancels(account)), until);
            if followed.is_err() {
                // A worker that does not answer may have some open.
                return;
            }
            cancels.iter_mut().zip(&later).for_each(|(venue, later)| venue.follow(later));
        }
    }

    /// Journals a change, and then has every worker follow it. One change at a time.
    fn keep(
        &self,
        _in_turn: &MutexGuard<'_, ()>,
        account: Option<AccountId>,
        change: &Change,
    ) -> Result<(), String> {
        let (command, payload) = change.to_command(account)?;
        let released = matches!(change, Change::Kill { .. }).then_some(Switch(account));
        let mut keeper = self.keeper();
        loop {
            let journaled = {
                let mut releasing = lock(&self.releasing);
                *releasing = released;
                self.send(keeper, Command::Journal(payload.clone()))
            };
            let Err(reason) = self.journaled(journaled, Instant::now() + self.patience) else { break };
            // The journal may have failed just now: that of the next worker is asked, and each of them once.
            let next = self.keeper();
            if next <= keeper {
                return Err(format!("the change does not hold: {reason}"));
            }
            keeper = next;
        }
        let sent = {
            let mut releasing = lock(&self.releasing);
            if releasing.take() != released {
                // The journal has that behind this change.
                return Err("the kill switch was turned on again meanwhile".to_owned());
            }
            self.controls().apply(account, change);
            self.send_all(&command)
        };
        sum(sent, Instant::now() + self.patience).1
    }

    /// Waits until the journal has a change.
    fn journaled(&self, journaled: Result<Sent, String>, until: Instant) -> Result<(), String> {
        let late = || {
            let patience = self.patience;
            format!("the journal did not answer within {patience:?}, and may keep it later")
        };
        journaled?.outcome(until).unwrap_or_else(|| Err(late())).map(drop)
    }

    fn send_all(&self, command: &Command) -> Vec<Result<Sent, String>> {
        (0..self.workers.len()).map(|worker| self.send(worker, command.clone())).collect()
    }

    fn send(&self, worker: usize, command: Command) -> Result<Sent, String> {
        let (answer, answered) = sync_channel(1);
        self.workers[worker].try_send(CommandRequest { command, answer }).map_err(|_| busy(worker))?;
        Ok(Sent { worker, answered })
    }
}

/// A command that was sent.
struct Sent {
    worker: usize,
    answered: Receiver<Outcome>,
}

impl Sent {
    /// Waits for its answer. `None`: there is none within the time.
    fn outcome(&self, until: Instant) -> Option<Outcome> {
        self.answered.recv_timeout(until.saturating_duration_since(Instant::now())).ok()
    }
}

fn busy(worker: usize) -> String {
    format!("worker {worker} does not take commands now")
}

/// Adds the answers up, by venue. An error names every worker that gave none.
fn sum(sent: Vec<Result<Sent, String>>, until: Instant) -> (Vec<Cancels>, Result<(), String>) {
    let answer = |sent: Sent| sent.outcome(until).unwrap_or_else(|| Err(busy(sent.worker)));
    let (mut all, mut errors) = (Vec::new(), Vec::new());
    for outcome in sent.into_iter().map(|sent| sent.and_then(answer)) {
        match outcome {
            Ok(venues) => {
                all.resize(venues.len().max(all.len()), Cancels::default());
                all.iter_mut().zip(&venues).for_each(|(sum, venue)| sum.add(venue));
            }
            Err(error) => errors.push(error),
        }
    }
    (all, if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) })
}

/// What is behind these locks is right whoever panicked with it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Changes that were written, in order, and are confirmed when they are durable.
#[derive(Default)]
struct Written {
    list: RefCell<VecDeque<(Lsn, SyncSender<Outcome>)>>,
    added: Signal,
}

/// Follows commands, for as long as the worker runs.
pub(super) async fn obey(gateway: Rc<Gateway>, requests: MailboxReceiver<CommandRequest>) {
    let written = Written::default();
    let mut following = pin!(follow(&gateway, requests, &written));
    let mut confirming = pin!(confirm(&gateway, &written));
    poll_fn(|context| {
        let following = following.as_mut().poll(context);
        // It has no end.
        let _ = confirming.as_mut().poll(context);
        following
    })
    .await;
}

/// Waits for nothing but commands: one behind another that waits for the disk may be a kill switch.
async fn follow(gateway: &Gateway, mut requests: MailboxReceiver<CommandRequest>, written: &Written) {
    while let Some(CommandRequest { command, answer }) = requests.recv().await {
        let outcome = match command {
            Command::Journal(payload) => {
                let mut list = written.list.borrow_mut();
                if list.len() < WAITING_MAX {
                    // Recovery goes by the time, and this worker may have slept for long.
                    gateway.store.tick();
                    list.push_back((gateway.store.log(RECORD_CONTROL, 0, &[&payload]), answer));
                    written.added.raise();
                    continue;
                }
                Err("too many changes wait for the journal".to_owned())
            }
            Command::Kill(account, is_on) => {
                gateway.checks.borrow_mut().kill(account, is_on);
                if is_on {
                    gateway.cancel_killed(account);
                    Ok(gateway.cancels_of(account))
                } else {
                    Ok(Vec::new())
                }
            }
            Command::Cancels(account) => Ok(gateway.cancels_of(account)),
            Command::Limits(account, limits) => {
                gateway.checks.borrow_mut().set_limits(account, limits);
                Ok(Vec::new())
            }
            Command::References(prices) => {
                // The table is the same for all.
                if gateway.worker == 0 {
                    // There is room: a place was kept for each.
                    prices
                        .iter()
                        .for_each(|(symbol, price)| _ = gateway.common.references.set(*symbol, *price));
                }
                Ok(Vec::new())
            }
        };
        // Who asked has waited long enough; the change holds.
        let _ = answer.try_send(outcome);
    }
}

/// Tells who asked what has become of each change that was written.
async fn confirm(gateway: &Gateway, written: &Written) {
    loop {
        written.added.raised().await;
        loop {
            let Some(lsn) = written.list.borrow().front().map(|(lsn, _)| *lsn) else { break };
            let kept = gateway.is_durable(lsn).await;
            let outcome = if kept { Ok(Vec::new()) } else { Err("the journal has failed".to_owned()) };
            if let Some((_, answer)) = written.list.borrow_mut().pop_front() {
                // Who asked may have given up.
                let _ = answer.try_send(outcome);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_engine::{Config, Driver, Runtime, mailbox::mailbox};

    use super::*;

    /// Workers that follow what they are told and answer only what `answers` says, until they are let go.
    fn staffed(
        workers: usize,
        answers: impl Fn(usize, &Command) -> Option<Outcome> + Send + Clone + 'static,
        test: impl FnOnce(&Commander, &Log),
    ) {
        let log = Log::default();
        let (senders, boxes): (Vec<_>, Vec<_>) = (0..workers).map(|_| mailbox(WAITING_MAX)).unzip();
        let controls = Controls { account_limits: vec![None; 2], ..Controls::default() };
        let patience = Duration::from_millis(250);
        let commander = Commander { patience, ..Commander::new(controls, senders) };
        std::thread::scope(|scope| {
            for (worker, mut requests) in boxes.into_iter().enumerate() {
                let (answers, log) = (answers.clone(), log.clone());
                scope.spawn(move || {
                    let runtime =
                        Runtime::new(&Config::with_driver(Driver::Poll)).expect("every kernel has it");
                    runtime.block_on(async {
                        // Kept, so that who waits for an answer waits.
                        let mut unanswered = Vec::new();
                        while let Some(CommandRequest { command, answer }) = requests.recv().await {
                            let outcome = answers(worker, &command);
                            lock(&log).push((worker, command));
                            match outcome {
                                Some(outcome) => _ = answer.try_send(outcome),
                                None => unanswered.push(answer),
                            }
                        }
                    });
                });
            }
            test(&commander, &log);
            drop(commander);
        });
    }

    type Log = Arc<Mutex<Vec<(usize, Command)>>>;

    fn kill(account: Option<u32>, on: bool) -> (Option<AccountId>, Change) {
        (account.map(AccountId), Change::Kill { account: account.map(|account| account.to_string()), on })
    }

    fn turns(log: &Log, is_on: bool) -> usize {
        let is_it =
            |(_, command): &&(usize, Command)| matches!(command, Command::Kill(_, on) if *on == is_on);
        lock(log).iter().filter(is_it).count()
    }

    #[test]
    fn a_kill_switch_is_on_at_every_worker_although_the_journal_does_not_answer() {
        let answers = |worker: usize, command: &Command| match command {
            Command::Journal(_) => None,
            // Confirmed by the second time that is asked, but for one.
            _ => {
                let orders = worker as u64 + 1;
                let open = if matches!(command, Command::Kill(..)) { orders } else { u64::from(worker == 2) };
                let cancels = Cancels { orders, sent: orders - open, open, expired: 0 };
                Some(Ok(vec![Cancels::default(), cancels]))
            }
        };
        staffed(3, answers, |commander, log| {
            let (account, change) = kill(None, true);
            let (cancels, outcome) = commander.engage(account, &change);
            let error = outcome.expect_err("it is not kept");
            assert!(error.contains("is on") && error.contains("may be off after a restart"), "{error}");
            let expected = Cancels { orders: 6, sent: 5, open: 1, expired: 0 };
            assert_eq!(cancels, [Cancels::default(), expected]);
            assert!(commander.controls().is_everyone_killed);
            assert_eq!(turns(log, true), 3);
            let (account, change) = kill(None, false);
            let error = commander.change(account, &change).expect_err("it is not kept");
            assert!(error.contains("does not hold"), "{error}");
            assert_eq!((commander.controls().is_everyone_killed, turns(log, false)), (true, 0));
        });
    }

    #[test]
    fn a_worker_that_does_not_answer_is_named_and_the_others_stop() {
        let answers = |worker: usize, _: &Command| (worker != 1).then_some(Ok(Vec::new()));
        staffed(3, answers, |commander, log| {
            let (account, change) = kill(Some(1), true);
            let error = commander.change(account, &change).expect_err("one does not answer");
            assert_eq!(error, "worker 1 does not take commands now");
            assert_eq!(turns(log, true), 3);
        });
    }

    #[test]
    fn a_switch_that_is_turned_on_while_the_journal_keeps_that_it_is_off_stays_on() {
        for other in [Some(1), None] {
            // The journal answers nothing before the second switch was turned on.
            let (engaged, is_engaged) = std::sync::mpsc::channel();
            let is_engaged = Arc::new(Mutex::new(is_engaged));
            let (began, has_begun) = std::sync::mpsc::channel();
            let answers = move |worker: usize, command: &Command| {
                let Command::Journal(payload) = command else { return Some(Ok(Vec::new())) };
                assert_eq!(worker, 0);
                if payload.ends_with(b"false}}") {
                    began.send(()).expect("the test waits");
                    lock(&is_engaged).recv().expect("the test goes on");
                }
                Some(Ok(Vec::new()))
            };
            staffed(1, answers, |commander, log| {
                let commander = &Commander {
                    patience: Duration::from_secs(20),
                    ..Commander::new(Controls::default(), commander.workers.clone())
                };
                let (account, on) = kill(Some(1), true);
                assert_eq!(commander.change(account, &on), Ok(()));
                std::thread::scope(|scope| {
                    let (account, off) = kill(Some(1), false);
                    let releasing = scope.spawn(move || commander.change(account, &off));
                    has_begun.recv().expect("it is journaled");
                    let (account, on) = kill(other, true);
                    let engaging = scope.spawn(move || commander.change(account, &on));
                    let is_applied = || match other {
                        None => commander.controls().is_everyone_killed,
                        Some(_) => lock(&commander.releasing).is_none(),
                    };
                    while !is_applied() {
                        std::thread::yield_now();
                    }
                    engaged.send(()).expect("the worker waits");
                    assert_eq!(engaging.join().expect("it ends"), Ok(()));
                    let released = releasing.join().expect("it ends");
                    assert_eq!(released.is_err(), other.is_some(), "{released:?}");
                });
                assert_eq!(commander.controls().killed.contains(&1), other.is_some());
                assert_eq!(turns(log, false), usize::from(other.is_none()));
            });
        }
    }

    #[test]
    fn changes_of_single_limits_at_one_time_all_hold() {
        const ACCOUNT: Option<AccountId> = Some(AccountId(1));
        staffed(
            1,
            |_, _| Some(Ok(Vec::new())),
            |commander, _| {
                let commander = &Commander {
                    patience: Duration::from_secs(20),
                    ..Commander::new(
                        Controls { account_limits: vec![None; 2], ..Controls::default() },
                        commander.workers.clone(),
                    )
                };
                std::thread::scope(|scope| {
                    for number in 0..8 {
                        scope.spawn(move || {
                            let other = |limits: &Limits| {
                                let mut limits = limits.clone();
                                limits.restricted.push(format!("S{number}"));
                                Ok(limits)
                            };
                            assert_eq!(commander.change_limits(ACCOUNT, Some("1"), other), Ok(()));
                        });
                    }
                });
                assert_eq!(commander.controls().limits_of(ACCOUNT).restricted.len(), 8);
            },
        );
    }

    #[test]
    fn changes_applied_in_order_are_what_is_in_force() {
        let mut controls = Controls { account_limits: vec![None; 2], ..Controls::default() };
        let limits = |shares_max| Limits { shares_max: Some(shares_max), ..Limits::default() };
        let (first, second) = (Some(AccountId(0)), Some(AccountId(1)));
        let name = |account: Option<AccountId>| account.map(|account| account.0.to_string());
        for (account, change) in [
            (None, Change::Limits { account: None, limits: limits(5) }),
            (second, Change::Limits { account: name(second), limits: limits(7) }),
            (first, Change::Kill { account: name(first), on: true }),
            (None, Change::Kill { account: None, on: true }),
            (None, Change::Kill { account: None, on: false }),
        ] {
            let text = serde_json::to_string(&change).expect("it is data");
            assert_eq!(serde_json::from_str::<Change>(&text).expect("it is data"), change);
            controls.apply(account, &change);
        }
        assert_eq!(controls.limits_of(first), &limits(5));
        assert_eq!(controls.limits_of(second), &limits(7));
        assert!(!controls.is_everyone_killed && controls.killed.contains(&0) && controls.killed.len() == 1);
    }
}
