//! The messages between workers of the gateway, and their handling when there is no room.

use std::{rc::Rc, sync::atomic::Ordering};

use weir_engine::handoff::Priority;

use super::Gateway;
use crate::{
    gateway::{
        undelivered_bounds::ANSWERS_MAX,
        worker_message::{Kind, WorkerMessage},
    },
    overflow::{Handed, Overflow},
};

impl Gateway {
    /// Answers go first, and nothing is lost: messages that find no room wait here.
    pub(in crate::gateway) fn push(&self, worker: usize, worker_message: WorkerMessage) {
        let (overflow, priority) = (&self.overflow[worker], worker_message.role().priority());
        let worker_message = if overflow.count(priority) == 0 {
            let Err(worker_message) = self.port.push(worker, priority, worker_message) else { return };
            worker_message
        } else {
            worker_message
        };
        if !self.common.hands_off {
            // An answer to an order of an earlier start with another route: it has no receiver.
            return;
        }
        overflow.add(worker_message);
        self.overflowed[worker].raise();
        if priority == Priority::Response {
            self.fall_behind();
        }
    }

    /// Answers are undelivered: no worker sends orders here until they are delivered, because otherwise more and more
    /// would accumulate. Orders that were sent before are still taken, because two workers that refused them would
    /// wait for each other.
    fn fall_behind(&self) {
        if !self.is_behind.replace(true) {
            self.common.behind[self.worker].store(true, Ordering::Relaxed);
        }
    }

    /// Everything has been delivered.
    fn catch_up(&self) {
        if self.is_behind.replace(false) {
            self.common.behind[self.worker].store(false, Ordering::Relaxed);
            self.tell_room();
        }
    }

    /// Wakes the clients that wait for room.
    fn tell_room(&self) {
        self.waiters.notify_all();
        for worker in self.others() {
            self.push(worker, WorkerMessage::bare(Kind::Room, 0));
        }
    }

    /// Whether so many answers are undelivered that no exchange may be read.
    #[inline]
    pub(in crate::gateway) fn is_full(&self) -> bool {
        let most = ANSWERS_MAX * self.upstreams.len();
        let is_full = |worker: usize| self.overflow[worker].count(Priority::Response) >= most;
        self.is_behind.get() && self.others().any(is_full)
    }

    /// Whether messages wait for a worker that takes too few.
    pub(super) fn is_congested(&self, worker: usize) -> bool {
        !self.overflow[worker].is_empty() || self.port.is_congested(worker)
    }

    /// Waits until no message waits for that worker.
    pub(super) async fn room(&self, worker: usize) {
        while self.is_congested(worker) {
            self.waiters.until(|| self.overflow[worker].is_empty()).await;
            // Fails when that worker has ended: then no message waits for it any more.
            let _ = self.port.room(worker).await;
        }
    }
}

/// Hands over the messages that found no room at one worker, for as long as this one runs.
pub(super) async fn drain_overflow(gateway: Rc<Gateway>, worker: usize) {
    let overflow = &gateway.overflow[worker];
    loop {
        gateway.overflowed[worker].raised().await;
        while !overflow.is_empty() {
            match gateway.port.room(worker).await {
                Ok(()) => overflow.hand_over(|worker_message| {
                    gateway.port.push(worker, worker_message.role().priority(), worker_message).is_ok()
                }),
                // A worker that has ended needs no messages.
                Err(_) => overflow.clear(),
            }
        }
        if gateway.overflow.iter().all(Overflow::is_empty) {
            gateway.catch_up();
        }
        gateway.waiters.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use weir_engine::{
        Config, Driver, Runtime, spawn,
        time::{self, yield_now},
    };
    use weir_trading::{AccountId, Origin, Route};

    use super::*;
    use crate::{
        gateway::{
            GatewayConfig,
            recovery::Moment,
            server::Prepared,
            unsolicited_cancels::{Expiry, SHARE_MAX, Untold},
        },
        orders::LocalOrders,
    };

    /// Two workers in one runtime, each of which sends for the other's clients, and no exchange.
    async fn both() -> (Vec<Rc<Gateway>>, Vec<LocalOrders>) {
        let nobody = "127.0.0.1:1".parse().expect("an address");
        let config = GatewayConfig { route: Route::Other, ..GatewayConfig::demo(2, nobody) };
        let now_ns = time::now().as_nanos();
        let now = Moment { wall_ns: now_ns, engine_ns: now_ns };
        let prepared = Prepared::new(2, config, now).expect("there is no journal");
        let orders = prepared.orders_config();
        let (recovery, make) = prepared.into_parts();
        let gateways = RefCell::new(Vec::new());
        let keep = |store| {
            let gateway = make(store)?;
            gateways.borrow_mut().push(Rc::clone(&gateway));
            Ok(gateway as _)
        };
        let locals = LocalOrders::start_workers(orders, recovery, keep, 2).await.expect("they start");
        (gateways.into_inner(), locals)
    }

    #[test]
    fn expiries_that_many_tell_at_once_are_undelivered_no_more_than_those_of_one() {
        const EXPIRIES: u32 = 20_000;
        const TELLERS: u32 = 100;
        let runtime = Runtime::new(&Config::for_test(Driver::Sim)).expect("it runs everywhere");
        runtime.block_on(async {
            let (gateways, _locals) = both().await;
            let [home, sender] = gateways.as_slice() else { panic!("there are two") };
            let expiry = |user_ref_num| {
                let origin = Origin { account: AccountId(0), user_ref_num, home: 0, received_ns: 0 };
                (0, Expiry::new(origin, Some(1), None))
            };
            let untold = Rc::new(Untold::new((1..=EXPIRIES).map(expiry).collect()));
            for _ in 0..TELLERS {
                let (sender, untold) = (Rc::clone(sender), Rc::clone(&untold));
                spawn(async move { sender.expire(&untold).await });
            }
            let (mut most, mut turns) = (0, 0);
            while home.counters.passed.get() < u64::from(EXPIRIES) {
                most = most.max(sender.overflow[0].count(Priority::Response));
                turns += 1;
                assert!(turns < 10 * EXPIRIES, "{} have arrived", home.counters.passed.get());
                yield_now().await;
            }
            assert!(most <= SHARE_MAX, "{most} were undelivered");
        });
    }
}
