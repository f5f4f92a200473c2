//! The operators of a simulated day.

use std::time::Duration;

use weir_engine::time;
use weir_trading::day::{OpenOrders, Phase, Slot, Standing};

use super::{Day, Random, World, try_days, variable};
use crate::gateway::{
    controls::Change,
    day::{DayRecord, DayStep, OrdersStep, step_to},
    worker::RECORD_CONTROL,
};

/// Days with sessions, and how many of these end on them at least.
const SESSION_DAYS: u64 = 100;
const SESSIONS_LEAST: u64 = 100;

impl Day {
    /// Stops and removes an account, even if it has open orders: those expire.
    pub(super) async fn retire(&mut self, world: &World) {
        let account = self.any_account();
        self.note(format!("account {account} is to be removed"));
        self.kill(world, Some(account), true);
        time::sleep(Duration::from_secs(5)).await;
        self.leaving = Some(account);
    }

    /// Works as `weir ctl kill`.
    pub(super) fn kill(&mut self, world: &World, account: Option<u32>, on: bool) {
        self.truth.kill(time::now().as_nanos(), account, on);
        let name = account.map(|account| format!("C{:05}", account + 1));
        let change = Change::Kill { account: name, on };
        let place = account.and_then(|account| self.place_of(account));
        world.shared.commander.controls().apply(place, &change, time::now().as_nanos());
        for gateway in &world.gateways {
            gateway.kill(place, on);
        }
        let payload = serde_json::to_vec(&change).expect("it is text");
        world.gateways[0].store.log(RECORD_CONTROL, 0, &[&payload]);
    }

    /// A day on which sessions of the trading day begin and end; none is open at first.
    fn with_sessions(seed: u64) -> Self {
        let mut day = Self::new(seed);
        day.sessions = Some(Random(seed.wrapping_add(1 << 33)));
        day.truth.turn_session(0, false);
        day
    }

    /// A session of the trading day may end, or the next one begin. Before it begins, what is open may be given up.
    pub(super) fn may_turn_session(&mut self, world: &World) {
        let now_ns = time::now().as_nanos();
        let is_open = self.truth.closed_since(now_ns).is_none();
        let Some(random) = self.sessions.as_mut().filter(|_| !world.is_cut) else { return };
        if !random.chance(if is_open { 15 } else { 50 }) {
            return;
        }
        let gives_up = !is_open && random.chance(50);
        self.note(format!("a session is open: {}, and orders are given up: {gives_up}", !is_open));
        self.happened.sessions_ended += u64::from(is_open);
        if gives_up {
            let step = DayStep { takes_orders: false, open_orders: OrdersStep::GiveUp };
            world.gateways.iter().for_each(|gateway| _ = gateway.follow_day(step));
            // As if nothing could reach them any more.
            self.truth.move_routes(now_ns);
        }
        let slot = Slot {
            name: "day".into(),
            date: 0,
            begins_at: 0,
            ends_at: None,
            open_orders: OpenOrders::Cancel,
        };
        let phase = if is_open { Phase::Closed } else { Phase::Open };
        let standing = Standing { slot, phase, generation: 0 };
        let change = Change::Day(DayRecord::new(&standing));
        let step = {
            let mut controls = world.shared.commander.controls();
            let step = step_to(controls.day.as_ref(), &standing);
            controls.apply(None, &change, now_ns);
            step
        };
        world.gateways.iter().for_each(|gateway| _ = gateway.follow_day(step));
        let payload = serde_json::to_vec(&change).expect("it is text");
        world.gateways[0].store.log(RECORD_CONTROL, 0, &[&payload]);
        self.truth.turn_session(now_ns, !is_open);
    }

    /// A session that is open survives a start, and so does its end, like a kill switch.
    pub(super) fn compare_session(&mut self, world: &World) -> Result<(), String> {
        let now_ns = time::now().as_nanos();
        let standing = world.shared.commander.controls().day.clone();
        let is_open = standing.is_some_and(|standing| standing.phase == Phase::Open);
        if self.sessions.is_none() || self.truth.closed_since(now_ns).is_none() == is_open {
            return Ok(());
        }
        if !self.has_just_lost_records && !self.truth.has_just_turned(now_ns) {
            return Err(format!("a session of the trading day is open after a start: {is_open}"));
        }
        self.truth.turn_session(now_ns, is_open);
        Ok(())
    }
}

#[test]
fn nothing_is_lost_on_days_with_sessions_that_end_and_no_order_gets_through_between_them() {
    let days = variable("WEIR_TEST_DAYS").unwrap_or(SESSION_DAYS);
    let Some(happened) = try_days(days, Day::with_sessions) else { return };
    assert!(days < SESSION_DAYS || happened.sessions_ended >= SESSIONS_LEAST, "too few ends: {happened:?}");
}
