//! The operators of a simulated day.

use std::time::Duration;

use weir_engine::time;

use super::{Day, World};
use crate::gateway::{controls::Change, worker::RECORD_CONTROL};

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
}
