//! The trading day of a running gateway: carries out what is due, and what operators ask for.
//!
//! [`weir_trading::day`] decides what is due. Each step is journaled before it takes effect, like a change by an
//! operator, and the next start goes on behind the last one. At the end of a session new orders are refused at every
//! worker. If the session says so, the open ones are cancelled, like those of a kill switch: on every connection until
//! they have ended, also after a restart.
//!
//! Unless orders are carried over, none of a session may be open when the next one begins, or when the session with
//! clients ends. An order that its exchange has not ended when the next session is due ends here: its client is
//! informed, and it is cancelled at every login, like an order that expires.
//!
//! The end of a day ends the session with clients and drains the gateway. Then the program starts again with the next
//! session ([`GatewayControl::goes_on`]), as after any other end.

mod keeper;
mod record;
mod settings;
mod status;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use weir_proto::ouch::codes::cancel_reason;
use weir_trading::day::{Due, OpenOrders, Phase, Schedule, Slot, Standing, due, takes_orders};

use super::{
    GatewayControl, config::GatewayConfig, controls::Change, kill_switch::Cancels, server::GatewayState,
    worker::Gateway,
};
use crate::{
    journal::Level,
    orders::{Event, EventKind},
};

pub use settings::DayConfig;
pub use status::DayStatus;

pub(super) use keeper::DayKeeper;
pub(super) use record::DayRecord;
pub(super) use settings::DayTable;

use keeper::Asked;
use record::{date_words, time_words};

/// How long exchanges have to confirm cancels, when the next session is due.
const CONFIRM_S: i64 = 10;
/// How long they have to end the orders that they expire, when the day is over.
const EXPIRE_S: i64 = 60;
/// Most steps at one time: the ends of a session, of its day and of the session with clients, and the next begin.
const STEPS_MAX: usize = 4;
/// The longest and the shortest time to the next look. A clock may be set meanwhile.
const LOOK_MOST: Duration = Duration::from_secs(1);
const LOOK_LEAST: Duration = Duration::from_millis(10);

/// What workers do with a step of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DayStep {
    /// Whether they take orders from now on.
    pub(super) takes_orders: bool,
    pub(super) open_orders: OrdersStep,
}

/// What becomes of the open orders at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrdersStep {
    /// Nothing.
    Leave,
    /// They are cancelled until they have ended.
    Cancel,
    /// They end here.
    GiveUp,
}

/// The step of workers from one standing to the next.
pub(super) fn step_to(before: Option<&Standing>, next: &Standing) -> DayStep {
    let was_open = before.is_none_or(|before| before.phase == Phase::Open);
    let takes_orders = next.phase == Phase::Open;
    let is_cancelled = was_open && !takes_orders && next.slot.open_orders == OpenOrders::Cancel;
    let open_orders = if is_cancelled { OrdersStep::Cancel } else { OrdersStep::Leave };
    DayStep { takes_orders, open_orders }
}

impl GatewayConfig {
    /// Checks that what days have begun and ended is kept.
    ///
    /// # Errors
    /// The reason, in words: there is no journal.
    pub fn check_day(&self) -> Result<(), String> {
        let has_journal = self.journal.as_ref().is_some_and(|(_, level)| *level != Level::None);
        if self.day.is_none() || has_journal {
            return Ok(());
        }
        Err("[day] needs a journal, which keeps what has begun and ended; write [journal] with its directory, or \
             remove [day]"
            .into())
    }
}

/// Whether the workers take orders when they start.
pub(super) fn takes_orders_at(config: Option<&DayConfig>, standing: Option<&Standing>, wall_ns: u64) -> bool {
    let now = (wall_ns / 1_000_000_000) as i64;
    config.is_none_or(|config| takes_orders(&config.schedule, standing, now))
}

/// Seconds since 1970.
fn seconds(now: SystemTime) -> i64 {
    now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() as i64
}

impl GatewayState {
    fn standing(&self) -> Option<Standing> {
        self.commander.controls().day.clone()
    }
}

impl GatewayControl {
    /// Carries out what is due in the trading day at this time, and returns when to look again. Without `[day]` nothing
    /// is. Waits for workers and their journals, at most some seconds.
    pub fn follow_day(&self, now: SystemTime) -> Duration {
        let day = &self.shared.day;
        let Some(config) = day.config().filter(|_| !self.orders.is_draining()) else { return LOOK_MOST };
        let mut asked = day.in_turn();
        let at = seconds(now);
        let outcome = (0..STEPS_MAX).try_for_each(|_| match self.step(&config, &mut asked, at) {
            Ok(true) => Ok(()),
            Ok(false) => Err(None),
            Err(reason) => Err(Some(reason)),
        });
        let trouble = outcome.err().flatten();
        if day.set_trouble(trouble.clone())
            && let Some(reason) = trouble
        {
            self.tell_day(format!("the trading day waits: {reason}"));
        }
        let next = config.schedule.next_after(at).map(|slot| slot.begins_at);
        let end = self.shared.standing().and_then(|standing| standing.slot.ends_at);
        let until = [next, end].into_iter().flatten().filter(|time| *time > at).min();
        let left = until.map_or(LOOK_MOST, |until| Duration::from_secs((until - at) as u64));
        left.saturating_sub(subsecond(now)).clamp(LOOK_LEAST, LOOK_MOST)
    }

    /// Carries out one step. False: none is due now.
    fn step(&self, config: &DayConfig, asked: &mut Asked, now: i64) -> Result<bool, String> {
        let (schedule, generation) = (&config.schedule, self.orders.generation());
        let standing = self.shared.standing();
        match due(schedule, standing.as_ref(), generation, now) {
            Due::Nothing => Ok(false),
            Due::Open(slot) => {
                self.clear(standing.as_ref(), asked, (now, true))?;
                self.record(schedule, slot, Phase::Open).map(|()| true)
            }
            Due::Close(slot) => {
                *asked = Asked { since: now, to_go_on: false };
                self.record(schedule, slot, Phase::Closed).map(|()| true)
            }
            Due::EndDay(slot) => self.record(schedule, slot, Phase::Over).map(|()| true),
            Due::EndSession => self.end_session_of_day(schedule, asked, standing, now).map(|()| false),
        }
    }

    /// Records a step and sends it to the workers.
    fn record(&self, schedule: &Schedule, slot: Slot, phase: Phase) -> Result<(), String> {
        let (day, commander) = (&self.shared.day, &self.shared.commander);
        let text = words_of(schedule, &slot, phase);
        let before = self.shared.standing();
        let next = Standing { slot, phase, generation: self.orders.generation() };
        let is_same =
            before.as_ref().is_some_and(|before| (&before.slot, before.phase) == (&next.slot, phase));
        let outcome = commander.change(None, &Change::Day(DayRecord::new(&next)));
        if phase != Phase::Open && day.close() && outcome.is_err() {
            // A disk must not keep orders from being refused, and cancelled.
            let _ = commander.tell_all(step_to(before.as_ref(), &next));
        }
        outcome?;
        if phase == Phase::Open {
            day.open();
        }
        if !is_same {
            self.tell_day(text);
        }
        Ok(())
    }

    /// Whether no order is open of a session that has ended, unless it carries them over. What exchanges have not ended
    /// in time ends here: when the next session is due, and with the day if they expire orders.
    ///
    /// # Errors
    /// Why not yet. The next look finds out whether it is so then.
    fn clear(
        &self,
        before: Option<&Standing>,
        asked: &mut Asked,
        (now, is_next_due): (i64, bool),
    ) -> Result<(), String> {
        let Some(before) = before.filter(|before| before.phase != Phase::Open) else { return Ok(()) };
        if before.slot.open_orders == OpenOrders::Carry {
            return Ok(());
        }
        let Some((order, venue)) = self.first_open_order()? else { return Ok(()) };
        // A clock that was set back must not make this much longer.
        asked.since = asked.since.min(now);
        let (waited, expires) = (now - asked.since, before.slot.open_orders == OpenOrders::Expire);
        let which = format!("order {} of {} is open at {venue}", order.order, order.account);
        if (is_next_due && waited >= CONFIRM_S) || (expires && waited >= EXPIRE_S) {
            self.shared
                .commander
                .tell_all(DayStep { takes_orders: false, open_orders: OrdersStep::GiveUp })?;
            return Err(format!("{which}, perhaps among others: they end here now"));
        }
        Err(format!("{which}; `weir ctl orders` lists all that are, and `weir ctl cancel` cancels them"))
    }

    /// Ends the session with clients as soon as no order is open.
    ///
    /// # Errors
    /// Why it waits.
    fn end_session_of_day(
        &self,
        schedule: &Schedule,
        asked: &mut Asked,
        standing: Option<Standing>,
        now: i64,
    ) -> Result<(), String> {
        let Some(standing) = standing else { return Ok(()) };
        let is_next_due = schedule.open_at(now).is_some_and(|next| next.date > standing.slot.date);
        let is_next_due = is_next_due || asked.to_go_on;
        self.clear(Some(&standing), asked, (now, is_next_due))?;
        self.shared.readable()?;
        self.shared.day.go_on(true);
        let session = self.orders.session();
        self.end_session(session.as_str()).inspect_err(|_| self.shared.day.go_on(false))
    }

    /// Begins a day, or the session that the schedule has now, also if it was ended before. Returns what holds then.
    ///
    /// # Errors
    /// The reason, in words: it is open, the schedule has none now, or the day before has not ended yet.
    pub fn start_of_day(&self, now: SystemTime) -> Result<DayStatus, String> {
        let (config, now) = (self.day_config()?, seconds(now));
        let mut asked = self.shared.day.in_turn();
        let (schedule, standing) = (&config.schedule, self.shared.standing());
        if let Some(standing) = &standing {
            if standing.phase == Phase::Open {
                return Err(format!("session {} is open already", standing.slot.name));
            }
            if standing.phase == Phase::Over && standing.generation == self.orders.generation() {
                asked.to_go_on = true;
                return Err(format!(
                    "the day {} has not ended yet: its session with clients ends first, and orders that are still \
                     open end with it; ask again when the next session is there",
                    date_words(standing.slot.date)
                ));
            }
        }
        let slot = if schedule.is_empty() {
            let (name, date) = ("day".to_owned(), schedule.date_at(now));
            Slot { name, date, begins_at: now, ends_at: None, open_orders: config.open_orders }
        } else {
            schedule.open_at(now).ok_or_else(|| match schedule.next_after(now) {
                Some(next) => format!(
                    "[day] has no session now; the next one, {}, starts at {}",
                    next.name,
                    time_words(next.begins_at, schedule.offset_s())
                ),
                None => "[day] has no session now".into(),
            })?
        };
        let cleared = self.clear(standing.as_ref(), &mut asked, (now, true));
        cleared.map_err(|reason| format!("{reason}; ask again"))?;
        self.record(schedule, slot, Phase::Open)?;
        drop(asked);
        self.day_status().ok_or_else(|| "there is no [day]".into())
    }

    /// Ends the day: orders are refused until the next one, and the session with clients ends when no order is open.
    /// Returns what holds then.
    ///
    /// # Errors
    /// The reason, in words: there is no day that could end.
    pub fn end_of_day(&self, now: SystemTime) -> Result<DayStatus, String> {
        let (config, now) = (self.day_config()?, seconds(now));
        let mut asked = self.shared.day.in_turn();
        let Some(standing) = self.shared.standing() else {
            return Err("no session of a day was begun yet; `weir ctl start-of-day` begins one".into());
        };
        if standing.phase == Phase::Over {
            return Err(format!("the day {} is over already", date_words(standing.slot.date)));
        }
        *asked = Asked { since: now, to_go_on: false };
        self.record(&config.schedule, standing.slot, Phase::Over)?;
        drop(asked);
        self.day_status().ok_or_else(|| "there is no [day]".into())
    }

    fn day_config(&self) -> Result<Arc<DayConfig>, String> {
        let missing = "the configuration has no [day]; write one, and start the gateway again";
        self.shared.day.config().ok_or_else(|| missing.into())
    }

    /// Whether the drain is the end of a day: the program goes on with a start. If a drain was asked for just before,
    /// the session with clients has not ended.
    pub fn goes_on(&self) -> bool {
        self.shared.day.goes_on() && self.orders.ends_session()
    }

    fn tell_day(&self, text: String) {
        self.shared.common.notices.events().leave(Event::new(EventKind::Day, text));
    }
}

/// What of a second has passed.
fn subsecond(now: SystemTime) -> Duration {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Duration::from_nanos(since.subsec_nanos().into())
}

/// A step in words.
fn words_of(schedule: &Schedule, slot: &Slot, phase: Phase) -> String {
    let (name, date) = (&slot.name, date_words(slot.date));
    match (phase, slot.ends_at) {
        (Phase::Open, Some(ends_at)) => {
            let end = time_words(ends_at, schedule.offset_s());
            format!("session {name} of {date} is open until {end}")
        }
        (Phase::Open, None) => format!("session {name} of {date} is open until `weir ctl end-of-day`"),
        (Phase::Closed, _) => {
            format!("session {name} of {date} has ended: {}", orders_words(slot.open_orders))
        }
        (Phase::Over, _) => format!("the day {date} is over: {}", orders_words(slot.open_orders)),
    }
}

fn orders_words(open_orders: OpenOrders) -> &'static str {
    match open_orders {
        OpenOrders::Cancel => "new orders are refused, and open ones cancelled",
        OpenOrders::Expire => "new orders are refused, and exchanges end the open ones",
        OpenOrders::Carry => "new orders are refused, and open ones stay",
    }
}

impl Gateway {
    /// Goes on with the day of an earlier start: whether orders are taken, and the cancels of the last end.
    pub(super) fn resume_day(&self, standing: Option<&Standing>, takes_orders: bool) {
        self.checks.borrow_mut().close(!takes_orders);
        let has_ended = standing.filter(|standing| standing.phase != Phase::Open);
        if has_ended.is_some_and(|standing| standing.slot.open_orders == OpenOrders::Cancel) {
            self.cancel_here(None, cancel_reason::TIMEOUT);
        }
    }

    /// Carries out a step on this worker. Returns the state of its cancels by venue.
    pub(super) fn follow_day(&self, step: DayStep) -> Vec<Cancels> {
        self.checks.borrow_mut().close(!step.takes_orders);
        match step.open_orders {
            OrdersStep::Leave => return Vec::new(),
            OrdersStep::Cancel => _ = self.cancel_here(None, cancel_reason::TIMEOUT),
            OrdersStep::GiveUp => {
                // Those that were not sent are taken back.
                self.cancel_here(None, cancel_reason::TIMEOUT);
                for upstream in &self.upstreams {
                    upstream.give_up_orders(self);
                    self.tell_untold(upstream);
                }
            }
        }
        self.cancels_of(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(phase: Phase, open_orders: OpenOrders) -> Standing {
        let slot = Slot { name: "main".into(), date: 0, begins_at: 0, ends_at: Some(9), open_orders };
        Standing { slot, phase, generation: 0 }
    }

    #[test]
    fn open_orders_are_cancelled_once_at_the_end_of_a_session_that_says_so() {
        use OpenOrders::{Cancel, Carry, Expire};
        use Phase::{Closed, Open, Over};
        let step = |before: Option<Phase>, next, open_orders| {
            let before = before.map(|phase| standing(phase, open_orders));
            let DayStep { takes_orders, open_orders } =
                step_to(before.as_ref(), &standing(next, open_orders));
            (takes_orders, open_orders)
        };
        assert_eq!(step(None, Open, Cancel), (true, OrdersStep::Leave));
        assert_eq!(step(Some(Open), Closed, Cancel), (false, OrdersStep::Cancel));
        assert_eq!(step(Some(Open), Over, Cancel), (false, OrdersStep::Cancel));
        assert_eq!(step(Some(Closed), Over, Cancel), (false, OrdersStep::Leave));
        assert_eq!(step(Some(Closed), Open, Cancel), (true, OrdersStep::Leave));
        for other in [Expire, Carry] {
            assert_eq!(step(Some(Open), Closed, other), (false, OrdersStep::Leave));
        }
    }

    #[test]
    fn a_gateway_without_a_standing_takes_orders_only_without_days() {
        let day = DayConfig::default();
        assert!(takes_orders_at(None, None, 0));
        assert!(!takes_orders_at(Some(&day), None, 0));
        let open = standing(Phase::Open, OpenOrders::Cancel);
        let takes = |ns| takes_orders_at(Some(&day), Some(&open), ns);
        assert_eq!((takes(8_999_999_999), takes(9_000_000_000)), (true, false));
        assert!(takes_orders_at(None, Some(&standing(Phase::Over, OpenOrders::Cancel)), 0));
    }
}
