//! The state of the trading day besides what is journaled.

use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};

use super::DayConfig;
use crate::gateway::commands::lock;

/// What the threads of a gateway know about its day.
#[derive(Debug)]
pub(in crate::gateway) struct DayKeeper {
    /// Locked only briefly; a reload may change it.
    config: Mutex<Option<Arc<DayConfig>>>,
    /// Locked during a whole step.
    asked: Mutex<Asked>,
    /// Why the next step is not carried out, if it is due. Locked only briefly.
    trouble: Mutex<Option<String>>,
    takes_orders: AtomicBool,
    goes_on: AtomicBool,
}

/// What matters at the end of a day.
#[derive(Debug)]
pub(super) struct Asked {
    /// Since when open orders should have ended, in seconds since 1970; in the future as long as that was not checked.
    pub(super) since: i64,
    /// An operator wants the next day: it waits for open orders no longer.
    pub(super) to_go_on: bool,
}

impl DayKeeper {
    /// `takes_orders`: at the start.
    pub(in crate::gateway) fn new(config: Option<DayConfig>, takes_orders: bool) -> Self {
        Self {
            config: Mutex::new(config.map(Arc::new)),
            asked: Mutex::new(Asked { since: i64::MAX, to_go_on: false }),
            trouble: Mutex::default(),
            takes_orders: AtomicBool::new(takes_orders),
            goes_on: AtomicBool::new(false),
        }
    }

    pub(super) fn config(&self) -> Option<Arc<DayConfig>> {
        lock(&self.config).clone()
    }

    /// Other sessions.
    pub(in crate::gateway) fn set_config(&self, config: Option<DayConfig>) {
        *lock(&self.config) = config.map(Arc::new);
    }

    /// One step at a time.
    pub(super) fn in_turn(&self) -> MutexGuard<'_, Asked> {
        lock(&self.asked)
    }

    pub(super) fn trouble(&self) -> Option<String> {
        lock(&self.trouble).clone()
    }

    /// Returns whether it is another one than before.
    pub(super) fn set_trouble(&self, trouble: Option<String>) -> bool {
        let mut known = lock(&self.trouble);
        let is_other = *known != trouble;
        *known = trouble;
        is_other
    }

    /// Whether orders are taken, as far as the day is concerned.
    pub(in crate::gateway) fn takes_orders(&self) -> bool {
        self.takes_orders.load(Ordering::Relaxed)
    }

    pub(super) fn open(&self) {
        self.takes_orders.store(true, Ordering::Relaxed);
    }

    /// Returns whether orders were taken before.
    pub(super) fn close(&self) -> bool {
        self.takes_orders.swap(false, Ordering::Relaxed)
    }

    /// Whether the program goes on with a start when the gateway has ended.
    pub(in crate::gateway) fn goes_on(&self) -> bool {
        self.goes_on.load(Ordering::SeqCst)
    }

    pub(in crate::gateway) fn go_on(&self, goes_on: bool) {
        self.goes_on.store(goes_on, Ordering::SeqCst);
    }
}
