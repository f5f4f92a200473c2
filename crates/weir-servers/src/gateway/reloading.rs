//! Carries a reload out: reads the configuration again, asks every worker whether open orders are in the way, and
//! changes everything or nothing.

use std::{
    collections::BTreeMap,
    rc::Rc,
    sync::{Arc, PoisonError},
};

use weir_proto::ouch::Symbol;
use weir_trading::WhenFull;

use super::{
    GatewayControl,
    audit::Operator,
    config::{GatewayConfig, Listeners},
    control::{AUDIT_PATIENCE, ControlRequest, ControlResponse},
    controls::ResolvedLimits,
    reload::{InForce, Known, Plan, Routes, VenueStep, WorkerPlan, plan},
    server::GatewayState,
    upstream::{Login, Upstream},
    venue_record::Endpoint,
    worker::Gateway,
};

/// Most symbols that are named as obstacles.
const SYMBOLS_NAMED_MAX: usize = 10;

/// Reads the configuration again; the error has a line for each mistake.
pub type ReadConfig = Box<dyn Fn() -> Result<(GatewayConfig, Listeners), String> + Send>;

/// What a reload starts from.
pub(super) struct Reloading {
    in_force: InForce,
    read: ReadConfig,
}

impl GatewayControl {
    /// From now on [`Self::reload`] reads the configuration with this function. `listeners` are the addresses of the
    /// start.
    pub fn reload_with(&self, listeners: Listeners, read: ReadConfig) {
        let mut config = self.shared.config.clone();
        // Accounts that exist only until their orders have ended are in no file.
        let is_removed: Vec<bool> =
            config.accounts.iter().map(|account| account.password_hash.is_empty()).collect();
        let mut removed = is_removed.iter();
        config.accounts.retain(|_| !removed.next().is_some_and(|is_removed| *is_removed));
        config.account_limits.truncate(config.accounts.len());
        let reloading = Reloading { in_force: InForce { config, listeners }, read };
        *self.shared.reloading.lock().unwrap_or_else(PoisonError::into_inner) = Some(reloading);
    }

    /// Reads the configuration again and carries it out: accounts, passwords, limits, routes, and the addresses,
    /// passwords and heartbeats of venues. Returns what has changed, in lines; none if nothing has. After a change of
    /// limits further lines name those that operators' values override. Waits for workers, at most some seconds.
    ///
    /// # Errors
    /// Every reason, a line for each. Then nothing has changed, unless the line says so.
    pub fn reload(&self) -> Result<Vec<String>, String> {
        // One at a time.
        let mut reloading = self.shared.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Reloading { in_force, read }) = reloading.as_mut() else {
            return Err(
                "there is no configuration file to read again: the gateway was started with --demo".into()
            );
        };
        if self.orders.is_draining() {
            return Err("the gateway is ending".into());
        }
        let (config, listeners) = read()?;
        let wanted = InForce { config, listeners };
        let known = Known {
            account: &|name| self.orders.account_named(name),
            is_in_journal: &|name| self.orders.is_in_journal(name),
            empty: self.orders.accounts_empty(),
        };
        let planned = plan(in_force, &wanted, &known).map_err(|errors| errors.join("\n"))?;
        let Plan { changed, added, limits, of_workers, mut lines } = planned;
        let has_other_limits = in_force.config.limits != wanted.config.limits
            || in_force.config.account_limits != wanted.config.account_limits;
        let removed: Vec<_> = of_workers.removed.iter().map(|(account, _)| *account).collect();
        self.shared.commander.reload(&Arc::new(of_workers), &limits, || {
            self.orders.change_accounts(&changed, &added, &removed);
            self.shared.day.set_config(wanted.config.day.clone());
            *in_force = wanted;
        })?;
        if has_other_limits {
            lines.extend(self.override_lines());
        }
        Ok(lines)
    }
}

impl GatewayState {
    /// Checks that a start could read the configuration.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn readable(&self) -> Result<(), String> {
        let reloading = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Reloading { read, .. }) = reloading.as_ref() else { return Ok(()) };
        read()
            .map(drop)
            .map_err(|errors| format!("the next session could not start: {}", errors.replace('\n', "; ")))
    }
}

impl GatewayControl {
    /// As [`Self::reload`], at a signal: the outcome is a line and a record in the journal.
    pub fn reload_at_signal(&self) {
        let answer = match self.reload() {
            Ok(changes) => ControlResponse { ok: true, changes: Some(changes), ..ControlResponse::default() },
            Err(reason) => ControlResponse { error: Some(reason), ..ControlResponse::default() },
        };
        self.audit(&Operator::of_signal(), &ControlRequest::Reload, &answer, AUDIT_PATIENCE);
    }
}

impl Gateway {
    /// Whether no order is in the way of a reload.
    ///
    /// # Errors
    /// What cannot change because of open orders, a line for each.
    pub(super) fn examine_reload(&self, plan: &WorkerPlan) -> Result<(), String> {
        let mut obstacles = Vec::new();
        let worker = self.worker;
        for (account, name) in &plan.removed {
            let open: usize =
                self.upstreams.iter().map(|upstream| upstream.orders_at_stake(Some(*account))).sum();
            if open > 0 {
                obstacles.push(format!(
                    "account {name}: worker {worker} has {open} open orders of it; it can be removed when they have \
                     ended (`weir ctl kill {name}` cancels them)"
                ));
            }
        }
        for change in plan.venues.iter().filter(|change| change.step == VenueStep::Leave) {
            let upstream = &self.upstreams[change.venue];
            let (open, name) = (upstream.orders_at_stake(None), &change.config.name);
            if open > 0 {
                let from = upstream.address();
                obstacles.push(format!(
                    "venue {name}: worker {worker} has {open} open orders there; the address can change when they have \
                     ended, or with moved_from = [\"{from}\"] if it is the same exchange"
                ));
            }
        }
        obstacles.extend(plan.routes.iter().flat_map(|routes| self.orders_left_by(routes)));
        if obstacles.is_empty() { Ok(()) } else { Err(obstacles.join("\n")) }
    }

    /// Open orders of this worker's clients whose symbol gets another route: after the next start they could not be
    /// reached.
    fn orders_left_by(&self, routes: &Routes) -> Vec<String> {
        let checks = self.checks.borrow();
        let is_forgetful = |upstream: &Rc<Upstream>| {
            upstream.session.borrow().outstanding().limits().when_full == WhenFull::ForgetOldest
        };
        let mut open: BTreeMap<Symbol, usize> = BTreeMap::new();
        for symbol in checks.risk.open_symbols() {
            let left = routes.left_by(&symbol).map(|venue| &self.upstreams[venue]);
            if left.is_some_and(|upstream| !is_forgetful(upstream)) {
                *open.entry(symbol).or_default() += 1;
            }
        }
        let worker = self.worker;
        let more = open.len().saturating_sub(SYMBOLS_NAMED_MAX);
        let line = |(symbol, orders): (&Symbol, &usize)| {
            format!(
                "symbol {symbol}: clients of worker {worker} have {orders} open orders; its route can change when they \
                 have ended"
            )
        };
        let mut lines: Vec<String> = open.iter().take(SYMBOLS_NAMED_MAX).map(line).collect();
        lines.extend(
            (more > 0).then(|| format!("and {more} more symbols with open orders (worker {worker})")),
        );
        let has_open = self.upstreams.iter().any(|upstream| upstream.orders_at_stake(None) > 0);
        if checks.risk.has_unfollowed() && has_open {
            lines.push(format!(
                "symbols: worker {worker} has open orders that are not tracked, so their symbols are not known; routes \
                 can change when they have ended"
            ));
        }
        lines
    }

    /// While this is on, exchanges that a reload leaves get no orders.
    pub(super) fn hold_for_reload(&self, plan: &WorkerPlan, is_held: bool) {
        let left = plan.venues.iter().filter(|change| change.step == VenueStep::Leave);
        left.for_each(|change| self.upstreams[change.venue].session.borrow_mut().hold(is_held));
    }

    /// Carries a reload out.
    pub(super) fn reload(&self, plan: &WorkerPlan, limits: &[ResolvedLimits]) {
        {
            let mut checks = self.checks.borrow_mut();
            limits.iter().for_each(|(account, limits)| checks.set_limits(*account, limits.clone()));
        }
        if let Some(routes) = &plan.routes {
            *self.symbols.borrow_mut() = Arc::clone(&routes.symbols);
        }
        for (account, _) in &plan.removed {
            if self.store.home_of(*account) == self.worker {
                self.store.disconnect_removed(*account);
            }
            // Those that have come since nothing was open.
            self.cancel_of_disconnected(*account);
        }
        for change in &plan.venues {
            let upstream = &self.upstreams[change.venue];
            self.set_endpoint(change.venue, Endpoint::new(&change.config, self.worker));
            let login = Login::new(&change.config, self.worker);
            match change.step {
                VenueStep::Stay => upstream.relog(login),
                VenueStep::Move => upstream.move_to(login, true),
                VenueStep::Leave => upstream.move_to(login, false),
            }
        }
        self.hold_for_reload(plan, false);
    }
}
