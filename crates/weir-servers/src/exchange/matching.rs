//! One market on all workers: each symbol is traded on one worker, each account is served by its home worker, and
//! messages between the two cross over if they differ.
//!
//! Messages of one account take effect in the order in which they came, for any symbols: a message for another worker
//! than the previous one waits until that one is done, and meanwhile this client is not read.

use std::{
    cell::{Cell, RefCell},
    future::{Future, poll_fn},
    pin::pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::Poll,
    time::Duration,
};

use weir_engine::{
    handoff::{Port, Priority},
    sync::Notify,
    time::{self, Instant},
};
use weir_proto::ouch::{
    Appendage, BrokenTrade, Canceled, Inbound, Outbound, Symbol,
    codes::{broken_trade_reason, cancel_reason},
    reject_reason,
};
use weir_trading::{AccountId, Handled, MatchingConfig, MatchingVenue, Venue};

use super::{
    Left,
    live::{Live, LiveOrders},
    numbers::First,
    one_sided::Side,
};
use crate::{
    journal::{BATCH_BYTES_DEFAULT, WAITING_FACTOR_MAX},
    orders::{Application, ClientMessage, SessionStore, Waiting, until_draining},
    overflow::{Bounds, Handed, Overflow, Role},
};

/// Most live orders of one worker's accounts.
pub(super) const LIVE_MAX: usize = 131_072;

/// Journal bytes of an execution.
const EXECUTED_RECORD_BYTES: usize = 96;

// One order may trade with all live orders, and both sides of each trade get a message: the journal has room for
// that.
const _: () = assert!(2 * LIVE_MAX * EXECUTED_RECORD_BYTES <= WAITING_FACTOR_MAX * BATCH_BYTES_DEFAULT);

/// Messages of other workers that are handled before other tasks run.
const SHARE_MAX: usize = 256;

/// How often a drain checks whether the other workers have reached the same stage.
const DRAIN_LOOK: Duration = Duration::from_millis(1);

/// A message from one worker to another.
#[derive(Clone, Copy, Debug)]
pub(super) enum WorkerMessage {
    /// A message of an account, to the worker of its symbol.
    Order {
        account: AccountId,
        message: Inbound<'static>,
    },
    /// Cancel the orders of an account.
    Disconnected {
        account: AccountId,
    },
    /// An answer, to the worker of the account.
    Response {
        account: AccountId,
        message: Outbound,
    },
    /// A message was handled. `released`: it was a replace that was ignored without using up this number.
    Done {
        account: AccountId,
        released: Option<u32>,
    },
    /// A request for [`WorkerMessage::Pong`]: that means that everything before it was handled.
    Ping,
    Pong,
}

impl Handed for WorkerMessage {
    fn role(&self) -> Role {
        match self {
            WorkerMessage::Order { account, .. } => Role::Message(account.0),
            WorkerMessage::Disconnected { account } => Role::CancelAll(account.0),
            WorkerMessage::Ping => Role::Request,
            WorkerMessage::Response { .. } | WorkerMessage::Done { .. } | WorkerMessage::Pong => {
                Role::Response
            }
        }
    }
}

/// Upper bound for the undelivered messages from one worker to another. A client is read only when nothing is
/// undelivered, except for its one message that is held back, so each account has at most one in flight. The answers
/// are those that one message may cause, and those that were held back: each trade ends a live order or the incoming
/// one, and is reported to two accounts; a cancelled order is reported once, and so is the outcome of the message
/// itself.
fn bounds(accounts: usize, workers: usize) -> Bounds {
    let live = workers * LIVE_MAX;
    Bounds { accounts, responses: 3 * live + 8 * (accounts + 1) }
}

/// How far the workers are with a drain.
#[derive(Debug, Default)]
pub(super) struct Stage {
    /// Workers that no longer accept messages of clients.
    stopped: AtomicUsize,
    /// Workers whose messages have all been handled.
    handled: AtomicUsize,
}

/// One worker's part of the market.
pub(super) struct MatchExchange(Rc<Market>);

/// The destination of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Destination {
    /// This worker's book.
    Book(usize),
    /// There is no room for another order. Its refusal waits for its turn like any other message.
    Reject,
}

/// The messages in flight of one of this worker's accounts.
#[derive(Clone, Copy, Debug, Default)]
struct InFlight {
    /// Messages that another worker has not finished.
    messages: u32,
    /// That worker.
    worker: usize,
    /// The message that waits for them, and its destination.
    held: Option<(Destination, Inbound<'static>)>,
    /// Its orders must be cancelled after that message.
    is_leaving: bool,
}

struct Market {
    store: Rc<SessionStore>,
    /// The port to the other workers.
    port: Port<WorkerMessage>,
    venue: RefCell<MatchingVenue>,
    live: RefCell<LiveOrders>,
    /// By account; empty for accounts of other workers.
    all_in_flight: RefCell<Vec<InFlight>>,
    /// A held message has been sent on.
    landed: Notify,
    /// By worker: messages that its port did not take. They go before any new message.
    overflow: Vec<Overflow<WorkerMessage>>,
    /// A message to another worker became undelivered, or all have been delivered.
    overflow_changed: Notify,
    pongs: Cell<usize>,
    stage: Arc<Stage>,
}

impl MatchExchange {
    /// Starts the worker's part, and reports what a killed process has left: one-sided trades are broken, and orders
    /// that were live are cancelled, because the books are empty.
    pub(super) fn start(
        store: Rc<SessionStore>,
        port: Port<WorkerMessage>,
        stage: Arc<Stage>,
        first: First,
        left: &Left,
    ) -> std::io::Result<Rc<Self>> {
        let config = MatchingConfig {
            accounts_max: store.account_count(),
            orders_max: LIVE_MAX,
            reference_first: first.reference,
            match_first: first.match_number,
            ..MatchingConfig::default()
        };
        port.attach().map_err(std::io::Error::other)?;
        if port.workers() > 1 {
            store.add_handoff(port.counters());
        }
        let is_own = |account: AccountId| {
            (account.0 as usize) < store.account_count() && store.home_of(account) == store.worker()
        };
        let broken: Vec<_> = left.trades.iter().filter(|(_, side)| is_own(side.account)).collect();
        let mut lost: Vec<_> = left.orders.iter().filter(|(account, ..)| is_own(*account)).collect();
        lost.sort_unstable_by_key(|(account, number, _)| (account.0, *number));
        let workers = port.workers();
        let bounds = bounds(store.account_count(), workers);
        let market = Rc::new(Market {
            port,
            venue: RefCell::new(MatchingVenue::new(&config)),
            live: RefCell::default(),
            all_in_flight: RefCell::new(vec![InFlight::default(); store.account_count()]),
            landed: Notify::default(),
            overflow: (0..workers).map(|_| Overflow::new(bounds)).collect(),
            overflow_changed: Notify::default(),
            pongs: Cell::new(0),
            stage,
            store,
        });
        if !lost.is_empty() || !broken.is_empty() {
            weir_engine::try_spawn(tell_left(Rc::clone(&market.store), broken, lost))?;
        }
        if market.port.workers() > 1 {
            weir_engine::try_spawn(Rc::clone(&market).take_messages())?;
        }
        Ok(Rc::new(Self(market)))
    }
}

async fn tell_left(store: Rc<SessionStore>, broken: Vec<(u64, Side)>, lost: Vec<(AccountId, u32, u32)>) {
    let has_room = async || {
        while store.is_congested() && !store.is_failed() {
            store.room().await;
        }
    };
    for (match_number, Side { account, user_ref_num, client_order_id }) in broken {
        has_room().await;
        let timestamp_ns = store.time_of_day_ns(store.now());
        let reason = broken_trade_reason::SUPERVISORY;
        store.emit_message(
            account,
            &Outbound::BrokenTrade(BrokenTrade {
                timestamp_ns,
                user_ref_num,
                match_number,
                reason,
                client_order_id,
            }),
        );
    }
    for (account, user_ref_num, quantity) in lost {
        has_room().await;
        let timestamp_ns = store.time_of_day_ns(store.now());
        store.emit_message(
            account,
            &Outbound::Canceled(Canceled {
                timestamp_ns,
                user_ref_num,
                quantity,
                reason: cancel_reason::SYSTEM,
            }),
        );
    }
}

impl Application for MatchExchange {
    fn on_message(&self, account: AccountId, message: &ClientMessage<'_>, _now: Instant) {
        self.0.take_message(account, *message.inbound());
    }

    fn is_ready(&self, account: AccountId) -> bool {
        self.0.is_ready() && !self.0.is_held(account)
    }

    fn ready(&self, account: AccountId) -> Waiting {
        let market = Rc::clone(&self.0);
        Box::pin(async move {
            market.landed.until(|| !market.is_held(account)).await;
            market.overflow_changed.until(|| market.is_delivered()).await;
            for worker in 0..market.port.workers() {
                // Fails when that worker has ended: then no message waits for it.
                let _ = market.port.room(worker).await;
            }
        })
    }

    fn on_disconnect(&self, account: AccountId) {
        let market = &*self.0;
        if !market.store.account(account).cancel_on_disconnect() {
            return;
        }
        if market.is_held(account) {
            market.all_in_flight.borrow_mut()[account.0 as usize].is_leaving = true;
        } else {
            market.leave(account);
        }
    }

    fn on_drain(&self) {
        self.0.stage.stopped.fetch_add(1, SeqCst);
    }

    fn settled(&self) -> Waiting {
        let market = Rc::clone(&self.0);
        Box::pin(async move {
            let workers = market.port.workers();
            // No worker accepts new messages, all messages are done, and the resulting answers are here.
            while market.stage.stopped.load(SeqCst) < workers || !market.has_landed() {
                time::sleep(DRAIN_LOOK).await;
            }
            market.stage.handled.fetch_add(1, SeqCst);
            while market.stage.handled.load(SeqCst) < workers {
                time::sleep(DRAIN_LOOK).await;
            }
            market.follow().await;
        })
    }
}

/// The worker whose book a symbol is in (FNV-1a).
fn worker_of(symbol: &Symbol, workers: usize) -> usize {
    let hash = symbol.0.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    (hash % workers as u64) as usize
}

impl Market {
    fn is_ready(&self) -> bool {
        self.is_delivered() && (0..self.port.workers()).all(|worker| !self.port.is_congested(worker))
    }

    fn is_held(&self, account: AccountId) -> bool {
        self.all_in_flight.borrow()[account.0 as usize].held.is_some()
    }

    fn has_landed(&self) -> bool {
        self.all_in_flight
            .borrow()
            .iter()
            .all(|in_flight| in_flight.messages == 0 && in_flight.held.is_none())
    }

    /// Handles a message of one of this worker's accounts: sends it to the worker that has the book, unless it has to
    /// wait.
    fn take_message(&self, account: AccountId, message: Inbound<'_>) {
        let Some((destination, message)) = self.place(account, message) else { return };
        let in_flight = &mut self.all_in_flight.borrow_mut()[account.0 as usize];
        if in_flight.messages > 0 && destination != Destination::Book(in_flight.worker) {
            in_flight.held = Some((destination, message));
        } else {
            self.dispatch(in_flight, account, destination, message);
        }
    }

    fn dispatch(
        &self,
        in_flight: &mut InFlight,
        account: AccountId,
        destination: Destination,
        message: Inbound<'static>,
    ) {
        match destination {
            Destination::Book(worker) if worker != self.port.worker() => {
                in_flight.worker = worker;
                in_flight.messages += 1;
                self.store.counters().add_handed_off(1);
                self.send_to(worker, WorkerMessage::Order { account, message });
            }
            Destination::Book(_) => {
                if let Some(number) = self.trade(account, &message) {
                    self.release_number(account, number);
                }
            }
            Destination::Reject => {
                if let Inbound::Enter(enter, _) = message {
                    let (number, reason) = (enter.user_ref_num, reject_reason::PROCESSING_ERROR);
                    self.store.reject(account, number, reason, enter.client_order_id);
                }
            }
        }
    }

    /// Another worker has finished a message of one of this worker's accounts.
    fn done(&self, account: AccountId, released: Option<u32>) {
        if let Some(number) = released {
            self.release_number(account, number);
        }
        let mut all_in_flight = self.all_in_flight.borrow_mut();
        let in_flight = &mut all_in_flight[account.0 as usize];
        in_flight.messages -= 1;
        if in_flight.messages > 0 {
            return;
        }
        let Some((destination, message)) = in_flight.held.take() else { return };
        self.dispatch(in_flight, account, destination, message);
        let is_leaving = std::mem::take(&mut in_flight.is_leaving);
        drop(all_in_flight);
        if is_leaving {
            self.leave(account);
        }
        self.landed.notify_all();
    }

    /// Cancels the orders of an account in every book, after the messages that it has sent.
    fn leave(&self, account: AccountId) {
        for worker in 0..self.port.workers() {
            if worker == self.port.worker() {
                self.cancel_orders(account);
            } else {
                self.send_to(worker, WorkerMessage::Disconnected { account });
            }
        }
    }

    /// The destination of a message. `None`: the order that it names does not exist, and the message is not answered.
    fn place(&self, account: AccountId, message: Inbound<'_>) -> Option<(Destination, Inbound<'static>)> {
        let live = &mut *self.live.borrow_mut();
        let book = |order: Live| Destination::Book(order.worker.into());
        match message {
            Inbound::Enter(enter, _) => {
                let message = Inbound::Enter(enter, Appendage::EMPTY);
                if live.len() >= LIVE_MAX {
                    return Some((Destination::Reject, message));
                }
                let worker = worker_of(&enter.symbol, self.port.workers());
                let order = Live { worker: worker as u16, shares: enter.quantity };
                live.enter(account, enter.user_ref_num, order);
                Some((Destination::Book(worker), message))
            }
            Inbound::Replace(replace, _) => {
                let Some(original) = live.find(account, replace.original_user_ref_num) else {
                    self.store.release_number(account, replace.user_ref_num);
                    return None;
                };
                live.enter(account, replace.user_ref_num, Live { shares: replace.quantity, ..original });
                Some((book(original), Inbound::Replace(replace, Appendage::EMPTY)))
            }
            Inbound::Cancel(cancel) => {
                let order = live.find(account, cancel.user_ref_num)?;
                Some((book(order), Inbound::Cancel(cancel)))
            }
            Inbound::Modify(modify) => {
                let order = live.find(account, modify.user_ref_num)?;
                Some((book(order), Inbound::Modify(modify)))
            }
            Inbound::AccountQuery => None,
        }
    }

    /// Applies a message to this worker's book. Returns the number of a replace that was ignored without using it up.
    fn trade(&self, account: AccountId, message: &Inbound<'_>) -> Option<u32> {
        let now_ns = self.store.time_of_day_ns(self.store.now());
        let mut emit = |account: AccountId, message: &Outbound| self.answer(account, *message);
        match (self.venue.borrow_mut().handle(now_ns, account, message, &mut emit), message) {
            (Handled::NotConsumed, Inbound::Replace(replace, _)) => Some(replace.user_ref_num),
            _ => None,
        }
    }

    fn release_number(&self, account: AccountId, number: u32) {
        self.live.borrow_mut().remove(account, number);
        self.store.release_number(account, number);
    }

    fn cancel_orders(&self, account: AccountId) {
        let now_ns = self.store.time_of_day_ns(self.store.tick());
        let mut cancelled = 0;
        let mut emit = |account: AccountId, message: &Outbound| {
            cancelled += 1;
            self.answer(account, *message);
        };
        self.venue.borrow_mut().disconnected(now_ns, account, &mut emit);
        self.store.counters().add_cancels_on_disconnect(cancelled);
    }

    /// A book's answer to an account.
    fn answer(&self, account: AccountId, message: Outbound) {
        let home = self.store.home_of(account);
        if home == self.port.worker() {
            self.tell(account, &message);
        } else {
            self.send_to(home, WorkerMessage::Response { account, message });
        }
    }

    /// Delivers an answer on the worker of its account.
    fn tell(&self, account: AccountId, message: &Outbound) {
        if let Outbound::Rejected(rejected) = message {
            self.store.counters().count_reject(rejected.reason);
        }
        self.live.borrow_mut().note(account, message);
        self.store.emit_message(account, message);
    }

    /// Hands a message to another worker. If there is no room, it waits here, and every later message of its priority
    /// for the same worker waits behind it.
    fn send_to(&self, worker: usize, worker_message: WorkerMessage) {
        let (overflow, priority) = (&self.overflow[worker], worker_message.role().priority());
        if overflow.count(priority) == 0 && self.port.push(worker, priority, worker_message).is_ok() {
            return;
        }
        overflow.add(worker_message);
        // The delivering task may be waiting for arrivals only, and none may come before this is delivered.
        self.overflow_changed.notify_all();
    }

    /// Hands over waiting messages, as far as there is room now.
    fn deliver(&self) {
        if self.is_delivered() {
            return;
        }
        for (worker, overflow) in self.overflow.iter().enumerate() {
            overflow.hand_over(|worker_message| {
                // A worker that has ended needs no messages.
                self.port.push(worker, worker_message.role().priority(), worker_message).is_ok()
                    || self.port.has_ended(worker)
            });
        }
        if self.is_delivered() {
            self.overflow_changed.notify_all();
        }
    }

    fn is_delivered(&self) -> bool {
        self.overflow.iter().all(Overflow::is_empty)
    }

    /// Whether no answer is undelivered.
    fn has_answered(&self) -> bool {
        self.overflow.iter().all(|overflow| overflow.count(Priority::Response) == 0)
    }

    /// The workers with undelivered messages.
    fn overflowing(&self) -> impl Iterator<Item = usize> {
        (0..self.overflow.len()).filter(|worker| !self.overflow[*worker].is_empty())
    }

    /// Takes messages from other workers until the runtime drains.
    async fn take_messages(self: Rc<Self>) {
        loop {
            self.deliver();
            self.store.tick();
            let mut taken = 0;
            while taken < SHARE_MAX && !self.store.is_congested() {
                // A worker that cannot hand over its answers takes no more work, but always takes answers: they need
                // only the journal, which makes room without any worker's help, so workers cannot wait for each other
                // in a circle.
                let next = if self.has_answered() { self.port.take() } else { self.port.take_response() };
                let Some((from, worker_message)) = next else { break };
                self.take(from, worker_message);
                taken += 1;
            }
            if self.store.is_congested() && !until_draining(self.store.room()).await {
                return;
            }
            let is_delivered = self.is_delivered();
            if !until_draining(self.something()).await {
                return;
            }
            if taken == SHARE_MAX || !is_delivered {
                time::yield_now().await;
            }
        }
    }

    /// Waits until there is a message to take, room where there was none, or a message to deliver where there was
    /// none.
    async fn something(&self) {
        // A worker that cannot hand over its answers leaves requests in the queue.
        let mut ready =
            pin!(if self.has_answered() { self.port.ready() } else { self.port.ready_response() });
        let mut rooms: Vec<_> = self.overflowing().map(|worker| self.port.room(worker)).collect();
        let known = rooms.len();
        let mut more = pin!(self.overflow_changed.until(|| self.overflowing().count() > known));
        poll_fn(|context| {
            // An error is an event too.
            let has_room = rooms.iter_mut().any(|room| pin!(room).poll(context).is_ready());
            if has_room || ready.as_mut().poll(context).is_ready() || more.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }

    fn take(&self, from: usize, worker_message: WorkerMessage) {
        match worker_message {
            WorkerMessage::Order { account, message } => {
                let released = self.trade(account, &message);
                self.send_to(from, WorkerMessage::Done { account, released });
            }
            WorkerMessage::Disconnected { account } => self.cancel_orders(account),
            WorkerMessage::Response { account, message } => self.tell(account, &message),
            WorkerMessage::Done { account, released } => self.done(account, released),
            WorkerMessage::Ping => self.send_to(from, WorkerMessage::Pong),
            WorkerMessage::Pong => self.pongs.set(self.pongs.get() + 1),
        }
    }

    /// Waits until every other worker has handled the messages sent to it before, and its answers are here.
    async fn follow(&self) {
        let (own, workers) = (self.port.worker(), self.port.workers());
        let wanted = self.pongs.get() + workers - 1;
        (0..workers).filter(|worker| *worker != own).for_each(|worker| {
            self.send_to(worker, WorkerMessage::Ping);
        });
        while self.pongs.get() < wanted {
            time::sleep(DRAIN_LOOK).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_worker_has_some_of_the_symbols() {
        let symbols: Vec<Symbol> =
            (0..100).map(|number| format!("S{number}").parse().expect("a symbol")).collect();
        for workers in 1..=4 {
            let mut counts = vec![0; workers];
            symbols.iter().for_each(|symbol| counts[worker_of(symbol, workers)] += 1);
            assert!(counts.iter().all(|count| *count > 100 / workers / 3), "{counts:?}");
        }
    }
}
