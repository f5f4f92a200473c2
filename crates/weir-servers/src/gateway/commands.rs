//! Changes at run time: sent from any thread to every worker, and journaled before they are confirmed.
//!
//! A change takes effect when it is in the journal. The exception is engaging a kill switch: a disk must not delay
//! that, so it is journaled concurrently. Changes are journaled in the order in which they take effect.

use std::{
    cell::RefCell,
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::pin,
    rc::Rc,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

use weir_engine::{
    mailbox::{MailboxReceiver, MailboxSender},
    sync::Signal,
};
use weir_proto::ouch::Symbol;
use weir_trading::AccountId;

use super::{
    account_limits::Limits,
    controls::{Change, Controls, ResolvedLimits},
    counters::GatewayCounters,
    day::{DayStep, step_to},
    kill_switch::{CONFIRM_LOOK, Cancels},
    reference_prices::resolve,
    reload::WorkerPlan,
    worker::{Gateway, RECORD_CONTROL, RECORD_OPERATOR},
};
use crate::journal::{Lsn, record::RECORD_BYTES_MAX};
use crate::orders::ApplicationKind;

/// Commands that may wait for a worker, and changes that may wait for its journal.
pub(super) const WAITING_MAX: usize = 64;
/// How long a worker may take to confirm.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest change. A record that the journal refuses would end all order processing.
const CHANGE_BYTES_MAX: usize = RECORD_BYTES_MAX - 4096;

/// A command to a worker.
#[derive(Clone, Debug)]
pub(super) enum Command {
    /// Write this record to the journal.
    Journal(ApplicationKind, Vec<u8>),
    /// See [`Change::Kill`]; the answer lists the orders being cancelled.
    Kill(Option<AccountId>, bool),
    /// Return the state of these cancels.
    Cancels(Option<AccountId>),
    /// Use these limits.
    Limits(Arc<[ResolvedLimits]>),
    /// See [`Change::References`].
    References(Vec<(Symbol, u64)>),
    /// Carry a step of the trading day out; the answer lists the orders being cancelled.
    Day(DayStep),
    /// Return which open orders are in the way of a reload.
    Examine(Arc<WorkerPlan>),
    /// Take no orders for exchanges that a reload leaves, and return the same, or take orders again.
    Hold(Arc<WorkerPlan>, bool),
    /// Carry a reload out, with these limits.
    Reload(Arc<WorkerPlan>, Arc<[ResolvedLimits]>),
}

/// The result of a command: the cancels by venue, or the reason, in words, why it was not executed.
type Outcome = Result<Vec<Cancels>, String>;

/// A command, and the destination of its answer.
#[derive(Debug)]
pub(super) struct CommandRequest {
    command: Command,
    answer: SyncSender<Outcome>,
}

/// The kill switch of an account, or of all accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Switch(pub(super) Option<AccountId>);

/// The sending side, for other threads.
pub(super) struct Commander {
    controls: Mutex<Controls>,
    /// Locked during a whole change that is journaled first. The disk may be slow.
    changing: Mutex<()>,
    /// Locked while commands are sent, so that all workers and the journal get them in one order; never for long.
    /// Contains the switch that will be released as soon as that is journaled.
    pub(super) releasing: Mutex<Option<Switch>>,
    workers: Vec<MailboxSender<CommandRequest>>,
    /// By worker: whether its journal has failed. Unknown if this is empty.
    counters: Vec<Arc<GatewayCounters>>,
    pub(super) patience: Duration,
}

impl Commander {
    pub(super) fn new(controls: Controls, workers: Vec<MailboxSender<CommandRequest>>) -> Self {
        let (changing, releasing) = (Mutex::new(()), Mutex::new(None));
        let (controls, counters) = (Mutex::new(controls), Vec::new());
        Self { controls, changing, releasing, workers, counters, patience: PATIENCE }
    }

    /// Uses these counters: changes then go to the first worker whose journal works.
    pub(super) fn with_counters(self, counters: Vec<Arc<GatewayCounters>>) -> Self {
        Self { counters, ..self }
    }

    /// The worker whose journal stores the next change. Recovery reads all journals in order of time.
    pub(super) fn keeper(&self) -> usize {
        self.counters.iter().position(|counters| counters.has_failed.get() == 0).unwrap_or(0)
    }

    /// Lock it only briefly.
    pub(super) fn controls(&self) -> MutexGuard<'_, Controls> {
        lock(&self.controls)
    }

    /// Journals a change and sends it to every worker.
    pub(super) fn change(&self, account: Option<AccountId>, change: &Change) -> Result<(), String> {
        match change {
            Change::Kill { on: true, .. } => self.engage(account, change).1,
            Change::Kill { .. }
            | Change::Limits { .. }
            | Change::LimitValues { .. }
            | Change::References { .. }
            | Change::Day(_) => self.keep(&lock(&self.changing), account, change),
        }
    }

    /// The command for the workers. Limits are those that apply after the change, so call it when the change has its
    /// turn.
    fn to_command(&self, account: Option<AccountId>, change: &Change) -> Result<Command, String> {
        let mut next = match change {
            Change::Kill { on, .. } => return Ok(Command::Kill(account, *on)),
            Change::References { prices } => return Ok(Command::References(resolve(prices)?)),
            Change::Day(record) => {
                let step = step_to(self.controls().day.as_ref(), &record.standing());
                return Ok(Command::Day(step));
            }
            Change::Limits { .. } | Change::LimitValues { .. } => self.controls().clone(),
        };
        next.apply(account, change, 0);
        if let Change::LimitValues { set, .. } = change {
            next.check_set(account, set)?;
        }
        Ok(Command::Limits(next.resolved(account)?.into()))
    }

    /// Journals a change, and then sends it to every worker. One change at a time.
    fn keep(
        &self,
        _in_turn: &MutexGuard<'_, ()>,
        account: Option<AccountId>,
        change: &Change,
    ) -> Result<(), String> {
        let (command, payload) = (self.to_command(account, change)?, payload_of(change)?);
        let released = matches!(change, Change::Kill { .. }).then_some(Switch(account));
        let mut keeper = self.keeper();
        loop {
            let journaled = {
                let mut releasing = lock(&self.releasing);
                *releasing = released;
                self.send(keeper, Command::Journal(RECORD_CONTROL, payload.clone()))
            };
            let Err(reason) = self.journaled(journaled, Instant::now() + self.patience) else { break };
            // The journal may have just failed: try the next worker's, and each of them once.
            let next = self.keeper();
            if next <= keeper {
                return Err(format!("the change does not hold: {reason}"));
            }
            keeper = next;
        }
        let sent = {
            let mut releasing = lock(&self.releasing);
            if releasing.take() != released {
                // The journal contains that after this change.
                return Err("the kill switch was turned on again meanwhile".to_owned());
            }
            self.controls().apply(account, change, wall_ns());
            self.send_all(&command)
        };
        sum(sent, Instant::now() + self.patience).1
    }

    /// Sends a step of the trading day to every worker, without a record.
    pub(super) fn tell_all(&self, step: DayStep) -> Result<(), String> {
        sum(self.send_all(&Command::Day(step)), Instant::now() + self.patience).1
    }

    /// Journals what an operator did, and waits for that at most this long.
    pub(super) fn record(&self, audit: Vec<u8>, patience: Duration) -> Result<(), String> {
        let sent = self.send(self.keeper(), Command::Journal(RECORD_OPERATOR, audit))?;
        match sent.outcome(Instant::now() + patience) {
            Some(outcome) => outcome.map(drop),
            // It is on its way.
            None => Ok(()),
        }
    }

    /// Changes what the configuration says, at all workers or at none. `settle` changes the rest: it is called when
    /// nothing is in the way any more.
    pub(super) fn reload(
        &self,
        plan: &Arc<WorkerPlan>,
        (common, accounts): &(Limits, Vec<(AccountId, Option<Limits>)>),
        settle: impl FnOnce(),
    ) -> Result<(), String> {
        let _in_turn = lock(&self.changing);
        let limits = {
            let before = self.controls().clone();
            let mut after = before.clone();
            after.set_file(common, accounts);
            after.changed_from(&before)?
        };
        self.ask_all(&Command::Examine(Arc::clone(plan)))?;
        if plan.leaves_venues() {
            // An order may have come since: now none can.
            let held = self.ask_all(&Command::Hold(Arc::clone(plan), true));
            if held.is_err() {
                let _ = self.ask_all(&Command::Hold(Arc::clone(plan), false));
                return held;
            }
        }
        settle();
        let until = Instant::now() + self.patience;
        let sent = {
            let _in_order = lock(&self.releasing);
            self.controls().set_file(common, accounts);
            let command = Command::Reload(Arc::clone(plan), limits.into());
            (0..self.workers.len()).map(|worker| self.send_until(worker, &command, until)).collect()
        };
        sum(sent, until).1.map_err(|reason| format!("the configuration has changed, and {reason}"))
    }

    /// Sends a command to all workers. The error is that of any of them, a line for each.
    fn ask_all(&self, command: &Command) -> Result<(), String> {
        let until = Instant::now() + self.patience;
        let answer = |sent: Sent| sent.outcome(until).unwrap_or_else(|| Err(busy(sent.worker)));
        let outcomes = self.send_all(command).into_iter().map(|sent| sent.and_then(answer));
        let errors: Vec<String> = outcomes.filter_map(Result::err).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors.join("\n")) }
    }

    /// As [`Self::send`], but waits for a place.
    fn send_until(&self, worker: usize, command: &Command, until: Instant) -> Result<Sent, String> {
        loop {
            match self.send(worker, command.clone()) {
                Err(_) if Instant::now() < until => thread::sleep(CONFIRM_LOOK),
                outcome => return outcome,
            }
        }
    }

    /// Waits until the journal contains a change.
    pub(super) fn journaled(&self, journaled: Result<Sent, String>, until: Instant) -> Result<(), String> {
        let late = || {
            let patience = self.patience;
            format!("the journal did not answer within {patience:?}, and may keep it later")
        };
        journaled?.outcome(until).unwrap_or_else(|| Err(late())).map(drop)
    }

    pub(super) fn send_all(&self, command: &Command) -> Vec<Result<Sent, String>> {
        (0..self.workers.len()).map(|worker| self.send(worker, command.clone())).collect()
    }

    pub(super) fn send(&self, worker: usize, command: Command) -> Result<Sent, String> {
        let (answer, answered) = sync_channel(1);
        self.workers[worker].try_send(CommandRequest { command, answer }).map_err(|_| busy(worker))?;
        Ok(Sent { worker, answered })
    }
}

/// The record of a change.
pub(super) fn payload_of(change: &Change) -> Result<Vec<u8>, String> {
    let payload = serde_json::to_vec(change).map_err(|error| error.to_string())?;
    if payload.len() > CHANGE_BYTES_MAX {
        return Err(format!("a change has {} bytes, and the most is {CHANGE_BYTES_MAX}", payload.len()));
    }
    Ok(payload)
}

/// Nanoseconds since 1970.
pub(super) fn wall_ns() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// A command that was sent.
pub(super) struct Sent {
    worker: usize,
    answered: Receiver<Outcome>,
}

impl Sent {
    /// Waits for the answer. `None`: none came within the time.
    fn outcome(&self, until: Instant) -> Option<Outcome> {
        self.answered.recv_timeout(until.saturating_duration_since(Instant::now())).ok()
    }
}

fn busy(worker: usize) -> String {
    format!("worker {worker} does not take commands now")
}

/// Sums the answers, by venue. The error names every worker that gave no answer.
pub(super) fn sum(sent: Vec<Result<Sent, String>>, until: Instant) -> (Vec<Cancels>, Result<(), String>) {
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

/// The data behind these locks is valid even after a panic.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Changes that have been written, in order, and are confirmed when they are durable.
#[derive(Default)]
struct Written {
    list: RefCell<VecDeque<(Lsn, SyncSender<Outcome>)>>,
    added: Signal,
}

/// Executes commands, for as long as the worker runs.
pub(super) async fn obey(gateway: Rc<Gateway>, requests: MailboxReceiver<CommandRequest>) {
    let written = Written::default();
    let mut following = pin!(follow(&gateway, requests, &written));
    let mut confirming = pin!(confirm(&gateway, &written));
    poll_fn(|context| {
        let following = following.as_mut().poll(context);
        // This future never ends.
        let _ = confirming.as_mut().poll(context);
        following
    })
    .await;
}

/// Waits only for commands: the command behind one that waits for the disk may be a kill switch.
async fn follow(gateway: &Gateway, mut requests: MailboxReceiver<CommandRequest>, written: &Written) {
    while let Some(CommandRequest { command, answer }) = requests.recv().await {
        let outcome = match command {
            Command::Journal(kind, payload) => {
                let mut list = written.list.borrow_mut();
                if list.len() < WAITING_MAX {
                    // Recovery uses the time stamps, and this worker may have slept for a long time.
                    gateway.store.tick();
                    list.push_back((gateway.store.log(kind, 0, &[&payload]), answer));
                    written.added.raise();
                    continue;
                }
                Err("too many changes wait for the journal".to_owned())
            }
            Command::Kill(account, is_on) => Ok(gateway.kill(account, is_on)),
            Command::Cancels(account) => Ok(gateway.cancels_of(account)),
            Command::Limits(all) => {
                let mut checks = gateway.checks.borrow_mut();
                all.iter().for_each(|(account, limits)| checks.set_limits(*account, limits.clone()));
                Ok(Vec::new())
            }
            Command::References(prices) => {
                // All workers share the table.
                if gateway.worker == 0 {
                    // There is room: a place was reserved for each.
                    prices
                        .iter()
                        .for_each(|(symbol, price)| _ = gateway.common.references.set(*symbol, *price));
                }
                Ok(Vec::new())
            }
            Command::Day(step) => Ok(gateway.follow_day(step)),
            Command::Examine(plan) => gateway.examine_reload(&plan).map(|()| Vec::new()),
            Command::Hold(plan, is_held) => {
                gateway.hold_for_reload(&plan, is_held);
                let examined = if is_held { gateway.examine_reload(&plan) } else { Ok(()) };
                examined.map(|()| Vec::new())
            }
            Command::Reload(plan, limits) => {
                gateway.reload(&plan, &limits);
                Ok(Vec::new())
            }
        };
        // The caller has waited long enough; the change still applies.
        let _ = answer.try_send(outcome);
    }
}

/// Sends the result of each written change to its caller.
async fn confirm(gateway: &Gateway, written: &Written) {
    loop {
        written.added.raised().await;
        loop {
            let Some(lsn) = written.list.borrow().front().map(|(lsn, _)| *lsn) else { break };
            let kept = gateway.is_durable(lsn).await;
            let outcome = if kept { Ok(Vec::new()) } else { Err("the journal has failed".to_owned()) };
            if let Some((_, answer)) = written.list.borrow_mut().pop_front() {
                // The caller may have given up.
                let _ = answer.try_send(outcome);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_engine::{Config, Driver, Runtime, mailbox::mailbox};

    use super::*;
    use crate::gateway::limit_sources::values_of;

    /// Workers that execute commands and answer only those that `answers` selects, until they are released.
    fn staffed(
        workers: usize,
        answers: impl Fn(usize, &Command) -> Option<Outcome> + Send + Clone + 'static,
        test: impl FnOnce(&Commander, &Log),
    ) {
        let log = Log::default();
        let (senders, boxes): (Vec<_>, Vec<_>) = (0..workers).map(|_| mailbox(WAITING_MAX)).unzip();
        let controls = Controls::of_file(&Limits::default(), &[None, None]);
        // Workers that answer do so within this time, also on a busy machine.
        let patience = Duration::from_secs(2);
        let commander = Commander { patience, ..Commander::new(controls, senders) };
        std::thread::scope(|scope| {
            for (worker, mut requests) in boxes.into_iter().enumerate() {
                let (answers, log) = (answers.clone(), log.clone());
                scope.spawn(move || {
                    let runtime = Runtime::new(&Config::for_test(Driver::Poll)).expect("every kernel has it");
                    runtime.block_on(async {
                        // Stored, so that callers keep waiting for their answers.
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
            Command::Journal(..) => None,
            // By the second request all but one are confirmed.
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
            assert!(commander.controls().switches.is_on(None));
            assert_eq!(turns(log, true), 3);
            let (account, change) = kill(None, false);
            let error = commander.change(account, &change).expect_err("it is not kept");
            assert!(error.contains("does not hold"), "{error}");
            assert_eq!((commander.controls().switches.is_on(None), turns(log, false)), (true, 0));
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
            // The journal answers only after the second switch was engaged.
            let (engaged, is_engaged) = std::sync::mpsc::channel();
            let is_engaged = Arc::new(Mutex::new(is_engaged));
            let (began, has_begun) = std::sync::mpsc::channel();
            let answers = move |worker: usize, command: &Command| {
                let Command::Journal(_, payload) = command else { return Some(Ok(Vec::new())) };
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
                        None => commander.controls().switches.is_on(None),
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
                assert_eq!(commander.controls().switches.is_on(Some(AccountId(1))), other.is_some());
                assert_eq!(turns(log, false), usize::from(other.is_none()));
            });
        }
    }

    #[test]
    fn a_reload_is_carried_out_everywhere_or_nowhere() {
        let limits = |shares_max| {
            let limits = Limits { shares_max, ..Limits::default() };
            (limits, vec![(AccountId(0), None), (AccountId(1), None)])
        };
        let is_reload = |(_, command): &&(usize, Command)| matches!(command, Command::Reload(..));
        // An order at one worker is in the way.
        let answers = |worker: usize, command: &Command| match command {
            Command::Examine(_) if worker == 1 => Some(Err("an order is open".to_owned())),
            _ => Some(Ok(Vec::new())),
        };
        staffed(2, answers, |commander, log| {
            let mut has_settled = false;
            let outcome = commander.reload(&Arc::default(), &limits(Some(5)), || has_settled = true);
            assert_eq!((outcome, has_settled), (Err("an order is open".to_owned()), false));
            assert_eq!(commander.controls().limits_of(None), Limits::default());
            assert_eq!(lock(log).iter().filter(is_reload).count(), 0);
        });
        staffed(
            2,
            |_, _| Some(Ok(Vec::new())),
            |commander, log| {
                let mut has_settled = false;
                assert_eq!(
                    commander.reload(&Arc::default(), &limits(Some(5)), || has_settled = true),
                    Ok(())
                );
                assert!(has_settled);
                assert_eq!(commander.controls().limits_of(None).shares_max, Some(5));
                let sent = lock(log);
                let of_reloads: Vec<_> = sent
                    .iter()
                    .filter_map(|(worker, command)| match command {
                        Command::Reload(_, limits) => Some((*worker, limits.len())),
                        _ => None,
                    })
                    .collect();
                assert_eq!(of_reloads.iter().map(|(_, limits)| *limits).collect::<Vec<_>>(), [1, 1]);
            },
        );
    }

    #[test]
    fn changes_of_single_limits_at_one_time_all_hold() {
        const ACCOUNT: Option<AccountId> = Some(AccountId(1));
        staffed(
            1,
            |_, _| Some(Ok(Vec::new())),
            |commander, log| {
                let commander = &Commander {
                    patience: Duration::from_secs(20),
                    ..Commander::new(
                        Controls::of_file(&Limits::default(), &[None, None]),
                        commander.workers.clone(),
                    )
                };
                let names = ["shares_max", "duplicates_max", "orders_per_second", "symbol_orders_per_second"];
                std::thread::scope(|scope| {
                    for name in names {
                        scope.spawn(move || {
                            let set = serde_json::Map::from_iter([(name.to_owned(), 7.into())]);
                            let change = Change::set_limits(Some("1"), set).expect("there is such a limit");
                            assert_eq!(commander.change(ACCOUNT, &change), Ok(()));
                        });
                    }
                });
                let limits = commander.controls().limits_of(ACCOUNT);
                assert_eq!(values_of(&limits).len(), names.len());
                // Whichever came last: the worker has all of them too.
                let sent = lock(log);
                let last = sent.iter().rev().find_map(|(_, command)| match command {
                    Command::Limits(all) => Some(all.to_vec()),
                    _ => None,
                });
                assert_eq!(last, Some(vec![(ACCOUNT, Some(limits.resolve().expect("they are valid")))]));
            },
        );
    }
}
