//! What a configuration that is read again changes while the gateway runs. Pure: whether orders are open is asked
//! from the workers later.
//!
//! A reload is carried out whole or not at all. What only a start can change is an error, also if nobody is connected:
//! otherwise the file and the gateway would differ in silence.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use weir_proto::{ouch::Symbol, soup::Name};
use weir_trading::AccountId;

use super::{
    account_limits::Limits,
    config::{GatewayConfig, Listeners, VenueConfig},
    venue_record::Endpoint,
    worker::Symbols,
};
use crate::orders::AccountConfig;

/// Accounts that reloads may add between two starts.
pub(super) const ACCOUNTS_ADDED_MAX: usize = 256;
/// Most names in a line.
const NAMED_MAX: usize = 10;

/// The accounts of the running gateway.
pub(super) struct Known<'a> {
    /// The number of a name.
    pub(super) account: &'a dyn Fn(&Name<6>) -> Option<AccountId>,
    /// Whether a name without a number has records in the journal.
    pub(super) is_in_journal: &'a dyn Fn(&Name<6>) -> bool,
    /// The number of the next new account, and how many may follow from there on.
    pub(super) empty: (AccountId, usize),
}

/// What changes.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Accounts with another password, `cancel_on_disconnect` or `takeover`, and those that come back.
    pub(super) changed: Vec<(AccountId, AccountConfig)>,
    pub(super) added: Vec<AccountConfig>,
    /// The limits of the file: the common ones, and those of every account in it.
    pub(super) limits: (Limits, Vec<(AccountId, Option<Limits>)>),
    /// The part for the workers.
    pub(super) of_workers: WorkerPlan,
    /// What changes, in words.
    pub(super) lines: Vec<String>,
}

/// What changes at the workers, besides limits.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkerPlan {
    /// Accounts that leave, with their names.
    pub(super) removed: Vec<(AccountId, Name<6>)>,
    pub(super) routes: Option<Routes>,
    pub(super) venues: Vec<VenueChange>,
}

impl WorkerPlan {
    /// Whether an exchange is left: until then no order may be taken for it.
    pub(super) fn leaves_venues(&self) -> bool {
        self.venues.iter().any(|venue| venue.step == VenueStep::Leave)
    }
}

/// Other routes.
#[derive(Clone, Debug)]
pub(super) struct Routes {
    pub(super) symbols: Arc<Symbols>,
    /// By symbol without regard to case: the venue it leaves.
    moved: BTreeMap<Symbol, Option<usize>>,
    /// The venue that symbols without a route leave.
    others: Option<Option<usize>>,
    /// The symbols that have a route now or then.
    named: BTreeSet<Symbol>,
}

impl Routes {
    /// The venue that orders of this symbol go to no longer. `symbol` is in its canonical form.
    pub(super) fn left_by(&self, symbol: &Symbol) -> Option<usize> {
        let by_name = self.moved.get(symbol).copied();
        let by_default = || self.others.filter(|_| !self.named.contains(symbol));
        by_name.or_else(by_default).flatten()
    }
}

/// Another address, password or heartbeat of a venue.
#[derive(Clone, Debug)]
pub(super) struct VenueChange {
    pub(super) venue: usize,
    pub(super) config: VenueConfig,
    pub(super) step: VenueStep,
}

/// What happens to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VenueStep {
    /// It stays; the next one is made as configured.
    Stay,
    /// It is made anew, with the same exchange at another address.
    Move,
    /// It is made with another exchange.
    Leave,
}

/// A configuration, and the addresses in it.
#[derive(Clone, Debug)]
pub(super) struct InForce {
    pub(super) config: GatewayConfig,
    pub(super) listeners: Listeners,
}

/// Compares what is in force with what is wanted.
///
/// # Errors
/// Everything that cannot change while the gateway runs, a line for each.
pub(super) fn plan(running: &InForce, wanted: &InForce, known: &Known<'_>) -> Result<Plan, Vec<String>> {
    let mut plan = Plan::default();
    let mut errors = fixed(running, wanted);
    accounts(&running.config, &wanted.config, known, &mut plan, &mut errors);
    let places = venues(&running.config, &wanted.config, &mut plan, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    routes(&running.config, &wanted.config, &places, &mut plan);
    if running.config.day != wanted.config.day {
        plan.lines.push("other sessions of the day".to_owned());
    }
    Ok(plan)
}

/// What only a start changes.
fn fixed(running: &InForce, wanted: &InForce) -> Vec<String> {
    let (InForce { config: now, listeners: at }, InForce { config: then, listeners: to }) = (running, wanted);
    let references = |config: &GatewayConfig| config.references.iter().copied().collect::<BTreeMap<_, _>>();
    let keys = [
        ("listen.orders", at.orders != to.orders),
        ("listen.control", at.control != to.control),
        ("listen.metrics", at.metrics != to.metrics),
        ("session", now.session != then.session),
        ("numbers", now.numbers_restart != then.numbers_restart),
        ("logins", now.logins != then.logins),
        ("route", now.route != then.route),
        ("handoff", format!("{:?}", now.handoff) != format!("{:?}", then.handoff)),
        ("hop_times", now.hop_times != then.hop_times),
        ("day", now.day.is_some() != then.day.is_some()),
        ("journal", now.journal != then.journal),
        ("drop_copy", now.drop_copy != then.drop_copy),
    ];
    let keys = keys.iter().filter(|(_, differs)| *differs);
    let mut errors: Vec<String> =
        keys.map(|(key, _)| format!("{key}: only a start changes it; restore it, or start again")).collect();
    if references(now) != references(then) {
        errors.push(
            "[[reference]]: only a start reads it; restore it, and set prices with `weir ctl references`"
                .into(),
        );
    }
    errors
}

fn accounts(
    now: &GatewayConfig,
    then: &GatewayConfig,
    known: &Known<'_>,
    plan: &mut Plan,
    errors: &mut Vec<String>,
) {
    let before: BTreeMap<Name<6>, (&AccountConfig, &Option<Limits>)> =
        by_name(now).map(|(account, limits)| (account.name.folded(), (account, limits))).collect();
    let (mut next, left) = known.empty;
    let (mut limited, mut come_back) = (Vec::new(), Vec::new());
    for (account, limits) in by_name(then) {
        let found = before.get(&account.name.folded());
        let id = match (known.account)(&account.name) {
            Some(id) => id,
            None if (known.is_in_journal)(&account.name) => {
                let name = account.name;
                errors.push(format!(
                    "account {name}: the journal has records of it from an earlier start, which only a start reads"
                ));
                continue;
            }
            None => {
                plan.added.push(account.clone());
                let id = next;
                next = AccountId(next.0 + 1);
                id
            }
        };
        match found {
            Some((before, _)) if is_same(before, account) => {}
            Some(_) => plan.changed.push((id, account.clone())),
            None if (known.account)(&account.name).is_some() => {
                come_back.push(account.name);
                plan.changed.push((id, account.clone()));
            }
            None => {}
        }
        if found.map(|(_, limits)| *limits) != Some(limits) && !(found.is_none() && limits.is_none()) {
            limited.push(account.name);
        }
        plan.limits.1.push((id, limits.clone()));
    }
    if plan.added.len() > left {
        let more = plan.added.len();
        errors.push(format!(
            "{more} accounts are new, and there is room for {left} until the next start ({ACCOUNTS_ADDED_MAX} from one \
             start to the next); start again"
        ));
    }
    let stay: BTreeSet<Name<6>> = then.accounts.iter().map(|account| account.name.folded()).collect();
    let leave = now.accounts.iter().filter(|account| !stay.contains(&account.name.folded()));
    plan.of_workers.removed =
        leave.filter_map(|account| Some(((known.account)(&account.name)?, account.name))).collect();
    plan.limits.0 = then.limits.clone();
    let named = |what: &str, names: Vec<Name<6>>| (!names.is_empty()).then(|| line(what, &names));
    let changed = plan.changed.iter().map(|(_, account)| account.name);
    let changed = changed.filter(|name| !come_back.contains(name)).collect();
    plan.lines.extend(named("accounts added", plan.added.iter().map(|account| account.name).collect()));
    plan.lines.extend(named("accounts back", come_back.clone()));
    plan.lines
        .extend(named("accounts removed", plan.of_workers.removed.iter().map(|(_, name)| *name).collect()));
    plan.lines.extend(named("accounts with another password or other options", changed));
    plan.lines.extend((now.limits != then.limits).then(|| "other common limits".to_owned()));
    plan.lines.extend(named("accounts with other separate limits", limited));
}

fn by_name(config: &GatewayConfig) -> impl Iterator<Item = (&AccountConfig, &Option<Limits>)> {
    config.accounts.iter().zip(&config.account_limits)
}

fn is_same(before: &AccountConfig, after: &AccountConfig) -> bool {
    before.password_hash == after.password_hash
        && before.cancel_on_disconnect == after.cancel_on_disconnect
        && before.cancel_after == after.cancel_after
        && before.takeover == after.takeover
}

fn line(what: &str, names: &[Name<6>]) -> String {
    let named: Vec<String> = names.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    let more = match names.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{what}: {}{more}", named.join(", "))
}

/// Compares the venues. Returns the places of the wanted ones among those that run.
fn venues(
    now: &GatewayConfig,
    then: &GatewayConfig,
    plan: &mut Plan,
    errors: &mut Vec<String>,
) -> Vec<usize> {
    let gone = now.venues.iter().filter(|venue| then.venues.iter().all(|other| other.name != venue.name));
    errors.extend(gone.map(|venue| format!("venue {}: only a start removes it", venue.name)));
    let mut places = Vec::new();
    for wanted in &then.venues {
        let Some(place) = now.venues.iter().position(|venue| venue.name == wanted.name) else {
            errors.push(format!("venue {}: only a start adds it", wanted.name));
            continue;
        };
        places.push(place);
        let running = &now.venues[place];
        let keys = [
            ("usernames", running.usernames != wanted.usernames),
            ("open_orders_max", running.limits.open_max != wanted.limits.open_max),
            ("unanswered_max", running.limits.unanswered_max != wanted.limits.unanswered_max),
            ("when_full", running.limits.when_full != wanted.limits.when_full),
            ("resend_age_max_ms", running.limits.resend_age_max_ns != wanted.limits.resend_age_max_ns),
        ];
        let keys = keys.iter().filter(|(_, differs)| *differs);
        let error = |(key, _): &(&str, bool)| {
            format!("venue {}: {key}: only a start changes it; restore it, or start again", wanted.name)
        };
        errors.extend(keys.map(error));
        venue(place, running, wanted, plan);
    }
    places
}

fn venue(place: usize, running: &VenueConfig, wanted: &VenueConfig, plan: &mut Plan) {
    let has_moved = running.address != wanted.address;
    let has_more = running.password != wanted.password
        || running.timing != wanted.timing
        || running.moved_from != wanted.moved_from;
    // The worker makes no difference: the login names are the same.
    let is_same = Endpoint::new(wanted, 0).change_from(&Endpoint::new(running, 0)).is_none();
    let step = match (has_moved, is_same) {
        (false, _) if !has_more => return,
        (false, _) => VenueStep::Stay,
        (true, true) => VenueStep::Move,
        (true, false) => VenueStep::Leave,
    };
    let (name, from, to) = (&wanted.name, &running.address, &wanted.address);
    plan.lines.push(match step {
        VenueStep::Stay => format!("venue {name}: other options from the next connection on"),
        VenueStep::Move => format!("venue {name}: moved from {from} to {to}; its session continues"),
        VenueStep::Leave => format!("venue {name}: {to} instead of {from}; its session is a new one"),
    });
    plan.of_workers.venues.push(VenueChange { venue: place, config: wanted.clone(), step });
}

/// The routes, with the venues' places among those that run.
fn routes(now: &GatewayConfig, then: &GatewayConfig, places: &[usize], plan: &mut Plan) {
    let before = Symbols { venues: now.symbols.iter().copied().collect(), other: now.default_venue };
    let after = Symbols {
        venues: then.symbols.iter().map(|(symbol, venue)| (*symbol, places[*venue])).collect(),
        other: then.default_venue.map(|venue| places[venue]),
    };
    let named: BTreeSet<Symbol> = before.venues.keys().chain(after.venues.keys()).copied().collect();
    let moved: BTreeMap<Symbol, Option<usize>> = named
        .iter()
        .filter(|symbol| before.route(**symbol) != after.route(**symbol))
        .map(|symbol| (symbol.canonical(), before.route(*symbol)))
        .collect();
    let others = (before.other != after.other).then_some(before.other);
    let is_same = before.venues == after.venues && others.is_none();
    if is_same {
        return;
    }
    let of_others = if others.is_some() { ", and symbols without one" } else { "" };
    plan.lines.push(format!("symbols with another route: {}{of_others}", moved.len()));
    let named = named.iter().map(|symbol| symbol.canonical()).collect();
    plan.of_workers.routes = Some(Routes { symbols: Arc::new(after), moved, others, named });
}

#[cfg(test)]
mod tests;
