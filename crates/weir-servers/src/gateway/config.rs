//! A gateway's configuration and its file format: TOML in, a complete configuration out.
//! `docs/formats/gateway-config.md` describes the format; every error names file, line and key.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Deserialize;
use toml::Spanned;
use weir_engine::{
    handoff::{self, Strategy},
    net::{Address, AddressError},
};
use weir_proto::{
    ouch::Symbol,
    soup::{Name, Timing},
};
use weir_trading::{Route, WhenFull};

use super::{
    account_limits::{Limits, symbol},
    day::{DayConfig, DayTable},
    drop_copy::{DropCopyConfig, DropCopyTable},
    outstanding::OutstandingLimits,
    reference_prices::{REFERENCES_MAX, price},
};
use crate::{
    journal::{
        Level, SEGMENT_BYTES_DEFAULT,
        faults::{Operation, Verdict},
    },
    orders::{
        AccountConfig, ConfigErrors, LoginLimits,
        config_file::{
            self, AccountTable, FieldError, FieldErrors, JournalTable, invalid, parsed, read, session_named,
            within,
        },
        demo_accounts,
    },
};

/// Most venues in a configuration.
pub const VENUES_MAX: usize = 64;
/// Most former addresses of a venue.
const MOVED_FROM_MAX: usize = 16;
/// Most wrong passwords before a lock, and the longest lock: a day.
const LOGIN_FAILURES_MAX: u32 = 1_000_000;
const LOGIN_LOCK_S_MAX: u64 = 86_400;
/// Most workers, the same as for the engine's servers.
pub const WORKERS_MAX: usize = 256;

/// Everything a gateway needs to know before it starts.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// The accounts that may log in. The index in this list determines the home worker.
    pub accounts: Vec<AccountConfig>,
    /// Limits of accounts without their own.
    pub limits: Limits,
    /// By account, its own limits, if it has any.
    pub account_limits: Vec<Option<Limits>>,
    /// The venues for orders.
    pub venues: Vec<VenueConfig>,
    /// Symbols that are routed to a specific venue.
    pub symbols: Vec<(Symbol, usize)>,
    /// The venue for all other symbols; without one, their orders are refused.
    pub default_venue: Option<usize>,
    /// Reference prices for symbols that have none in the journal, in ten-thousandths of the currency.
    pub references: Vec<(Symbol, u64)>,
    /// How the worker that sends a client's orders is chosen.
    pub route: Route,
    /// How work moves between workers.
    pub handoff: handoff::Options,
    /// When wrong passwords slow logins down and lock them.
    pub logins: LoginLimits,
    /// Name of the first session with clients.
    pub session: Name<10>,
    /// Whether order numbers of clients begin with 1 in each session; otherwise they go on.
    pub numbers_restart: bool,
    /// The trading day; `None`: orders are taken at any time.
    pub day: Option<DayConfig>,
    /// The folder of the journal and its level of durability; `None`: there is no journal.
    pub journal: Option<(PathBuf, Level)>,
    /// Size of each new file of a journal; see [`JournalConfig`](crate::journal::JournalConfig).
    pub journal_segment_bytes: u64,
    /// Where firms receive what happens to the orders of their accounts.
    pub drop_copy: Option<DropCopyConfig>,
    /// Expire open orders of earlier starts that this configuration cannot reach; otherwise the gateway does not
    /// start with them.
    pub expire_unreachable: bool,
    /// Follow orders even of accounts without a limit that needs it, so that a limit set at run time counts earlier
    /// orders. It costs some CPU per order, and is useless if limits cannot be set at run time.
    pub follows_orders: bool,
    /// Whether to record the times of an order's hops.
    pub hop_times: bool,
    /// Judges the disk operations of a worker's journal: for tests, see
    /// [`OrdersConfig`](crate::orders::OrdersConfig).
    pub journal_faults: Option<fn(u16, &Operation) -> Verdict>,
}

/// One exchange.
#[derive(Clone)]
pub struct VenueConfig {
    /// Its name in this file, in log lines and in metrics.
    pub name: String,
    /// The address it listens on.
    pub address: Address,
    /// Other addresses at which this same exchange, with the same sessions, was reached before. An operator confirms
    /// that. Without this, orders that were sent to another address cannot be reached at this one.
    pub moved_from: Vec<Address>,
    /// Login names, one for each worker.
    pub usernames: Vec<Name<6>>,
    /// The password of all of them.
    pub password: Name<10>,
    /// Limits of each session.
    pub limits: OutstandingLimits,
    /// Heartbeats and timeouts of each session.
    pub timing: Timing,
}

impl std::fmt::Debug for VenueConfig {
    /// Prints everything except the password.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("VenueConfig")
            .field("name", &self.name)
            .field("address", &self.address)
            .field("moved_from", &self.moved_from)
            .field("usernames", &self.usernames)
            .field("limits", &self.limits)
            .field("timing", &self.timing)
            .finish_non_exhaustive()
    }
}

/// The addresses a gateway listens on, as far as the file contains them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listeners {
    /// The address for clients.
    pub orders: Option<String>,
    /// The socket for `weir ctl`: a path.
    pub control: Option<PathBuf>,
    /// The address for `/metrics` and `/healthz`.
    pub metrics: Option<SocketAddr>,
}

impl GatewayConfig {
    /// Accounts `C00001`, … with the password `DEMO`, in front of the exchange at `upstream`, where workers log in as
    /// `G00001`, … with the same. When very many orders are open, the oldest is forgotten for a new one: a
    /// demonstration exchange may never end its orders.
    pub fn demo(accounts: u32, upstream: Address) -> Self {
        let accounts = demo_accounts(accounts);
        let account_limits = vec![None; accounts.len()];
        Self {
            accounts,
            limits: Limits::default(),
            account_limits,
            venues: vec![VenueConfig {
                name: "DEMO".into(),
                address: upstream,
                moved_from: Vec::new(),
                usernames: (1..=WORKERS_MAX).map(|number| numbered("G", number)).collect(),
                password: name("DEMO"),
                limits: OutstandingLimits {
                    when_full: WhenFull::ForgetOldest,
                    ..OutstandingLimits::default()
                },
                timing: Timing::default(),
            }],
            symbols: Vec::new(),
            default_venue: Some(0),
            references: Vec::new(),
            route: Route::Own,
            handoff: handoff::Options::default(),
            logins: LoginLimits::default(),
            session: name("WEIRGW0001"),
            numbers_restart: false,
            day: None,
            journal: None,
            journal_segment_bytes: SEGMENT_BYTES_DEFAULT,
            drop_copy: None,
            expire_unreachable: false,
            follows_orders: true,
            hop_times: true,
            journal_faults: None,
        }
    }
}

/// Reads a configuration from the text of a file. `environment` looks up environment variables that contain
/// passwords. The path is used only in messages. Host names are resolved, which may block: call it when a program
/// starts.
///
/// # Errors
/// All errors that could be found, with their lines.
pub fn parse(
    path: &Path,
    text: &str,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<(GatewayConfig, Listeners), ConfigErrors> {
    read(path, text, |file: File, errors| file.resolve(environment, errors))
}

fn name<const N: usize>(text: &str) -> Name<N> {
    text.parse().unwrap_or_default()
}

fn numbered(prefix: &str, number: usize) -> Name<6> {
    name(&format!("{prefix}{number:0width$}", width = 6_usize.saturating_sub(prefix.len())))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    listen: Listen,
    session: Option<Spanned<String>>,
    numbers: Option<Spanned<String>>,
    day: Option<Spanned<DayTable>>,
    route: Option<Spanned<String>>,
    hop_times: Option<bool>,
    #[serde(default)]
    handoff: Handoff,
    #[serde(default)]
    logins: Logins,
    journal: Option<JournalTable>,
    limits: Option<Spanned<Limits>>,
    default_venue: Option<Spanned<String>>,
    #[serde(default)]
    venue: Vec<Spanned<Venue>>,
    #[serde(default)]
    symbols: Vec<Spanned<Symbols>>,
    #[serde(default)]
    reference: Vec<Spanned<Reference>>,
    #[serde(default)]
    account: Vec<Account>,
    drop_copy: Option<DropCopyTable>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listen {
    orders: Option<Spanned<String>>,
    control: Option<PathBuf>,
    metrics: Option<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Handoff {
    strategy: Option<Spanned<String>>,
    spin_us: Option<Spanned<u64>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Logins {
    failures_max: Option<Spanned<u32>>,
    lock_s: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Venue {
    name: Spanned<String>,
    address: Spanned<String>,
    moved_from: Option<Spanned<Vec<String>>>,
    usernames: Option<Spanned<Vec<String>>>,
    username_prefix: Option<Spanned<String>>,
    password: Option<Spanned<Secret>>,
    password_env: Option<Spanned<String>>,
    open_orders_max: Option<Spanned<usize>>,
    unanswered_max: Option<Spanned<usize>>,
    when_full: Option<Spanned<String>>,
    resend_age_max_ms: Option<Spanned<u64>>,
    heartbeat_timeout_ms: Option<Spanned<u64>>,
}

/// A text that no error message repeats, even if its quotes are missing in the file.
struct Secret(String);

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = |_| serde::de::Error::custom("password: write a text in quotes");
        String::deserialize(deserializer).map(Self).map_err(wrong)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Symbols {
    venue: Spanned<String>,
    names: Spanned<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Reference {
    symbol: Spanned<String>,
    price: Spanned<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Account {
    name: Spanned<String>,
    password_hash: Spanned<String>,
    #[serde(default)]
    cancel_on_disconnect: bool,
    cancel_on_disconnect_after_s: Option<Spanned<u64>>,
    #[serde(default)]
    takeover: bool,
    limits: Option<Spanned<Limits>>,
}

impl Account {
    fn split(self) -> (AccountTable, Option<Spanned<Limits>>) {
        let Self { name, password_hash, cancel_on_disconnect, takeover, limits, .. } = self;
        let cancel_after_s = self.cancel_on_disconnect_after_s;
        (AccountTable { name, password_hash, cancel_on_disconnect, cancel_after_s, takeover }, limits)
    }
}

impl File {
    /// Nothing only after an error.
    fn resolve(
        self,
        environment: &dyn Fn(&str) -> Option<String>,
        errors: &mut FieldErrors,
    ) -> Option<(GatewayConfig, Listeners)> {
        // A venue with another error has a name that others may use.
        let names: Vec<String> =
            self.venue.iter().map(|venue| venue.get_ref().name.get_ref().clone()).collect();
        let venues = venues(self.venue, environment, errors);
        // An account with another error has one too.
        let account_names = self.account.iter().filter_map(|account| account.name.get_ref().parse().ok());
        let account_names = account_names.map(|name: Name<6>| name.folded()).collect();
        let drop_copy = self.drop_copy.and_then(|table| table.resolve(&account_names, errors));
        let (accounts, account_limits): (Vec<_>, Vec<_>) =
            self.account.into_iter().map(Account::split).unzip();
        let accounts = config_file::accounts(accounts, errors);
        let account_limits = account_limits
            .into_iter()
            .map(|limits| limits.and_then(|limits| errors.keep(checked_limits(limits))))
            .collect();
        let default_venue = match &self.default_venue {
            Some(name) => errors.keep(venue_named(&names, name)),
            None if names.len() == 1 => Some(0),
            None => None,
        };
        let numbers_restart = errors.keep(numbers_restart(self.numbers.as_ref()))?;
        let resolve_day = |day: Spanned<DayTable>| (day.span().start, day.into_inner());
        let day = self.day.map(resolve_day).and_then(|(at, day)| day.resolve(at, numbers_restart, errors));
        let session = self.session.as_ref().map(|session| errors.keep(session_named(session)));
        let config = GatewayConfig {
            accounts,
            limits: self.limits.and_then(|limits| errors.keep(checked_limits(limits))).unwrap_or_default(),
            account_limits,
            symbols: symbols(self.symbols, &names, errors),
            venues,
            default_venue,
            references: references(self.reference, errors),
            route: errors.keep(parsed("route", self.route.as_ref())).flatten().unwrap_or_default(),
            handoff: errors.keep(self.handoff.resolve())?,
            session: session.flatten().unwrap_or_else(|| name("WEIRGW0001")),
            journal: self.journal.and_then(|journal| errors.keep(journal.resolve())),
            logins: errors.keep(self.logins.resolve())?,
            numbers_restart,
            day,
            journal_segment_bytes: SEGMENT_BYTES_DEFAULT,
            drop_copy,
            expire_unreachable: false,
            follows_orders: true,
            hop_times: self.hop_times.unwrap_or(true),
            journal_faults: None,
        };
        Some((config, self.listen.resolve(errors)))
    }
}

impl Listen {
    fn resolve(self, errors: &mut FieldErrors) -> Listeners {
        let metrics = errors.keep(parsed::<SocketAddr>("metrics", self.metrics.as_ref())).flatten();
        if let (Some(address), Some(place)) = (metrics, &self.metrics)
            && !address.ip().is_loopback()
        {
            let text = format!("metrics {address} is not on the loopback interface");
            errors.keep::<()>(invalid(place.span().start, text));
        }
        if let Some(orders) = &self.orders {
            let at = orders.span().start;
            let wrong = |error| FieldError { at, message: format!("orders: {error}") };
            errors.keep(Address::resolve(orders.get_ref()).map_err(wrong));
        }
        Listeners { orders: self.orders.map(Spanned::into_inner), control: self.control, metrics }
    }
}

impl Handoff {
    fn resolve(self) -> Result<handoff::Options, FieldError> {
        let strategy = parsed::<Strategy>("strategy", self.strategy.as_ref())?.unwrap_or_default();
        let spin = self.spin_us.as_ref().map_or(0, |spin| *spin.get_ref());
        if let (Some(place), true) = (&self.spin_us, strategy != Strategy::MeshSpin) {
            return invalid(place.span().start, "spin_us: only the strategy \"mesh-spin\" spins");
        }
        Ok(handoff::Options { strategy, spin: Duration::from_micros(spin), ..handoff::Options::default() })
    }
}

fn numbers_restart(numbers: Option<&Spanned<String>>) -> Result<bool, FieldError> {
    match numbers.map(|text| (text.get_ref().as_str(), text.span().start)) {
        None | Some(("continue", _)) => Ok(false),
        Some(("restart", _)) => Ok(true),
        Some((other, at)) => invalid(at, format!("numbers {other:?}: write \"continue\" or \"restart\"")),
    }
}

impl Logins {
    fn resolve(self) -> Result<LoginLimits, FieldError> {
        let LoginLimits { mut failures_max, mut lock } = LoginLimits::default();
        if let Some(value) = &self.failures_max {
            failures_max = within("failures_max", value, 0, LOGIN_FAILURES_MAX)?;
        }
        if let Some(value) = &self.lock_s {
            lock = Duration::from_secs(within("lock_s", value, 1, LOGIN_LOCK_S_MAX)?);
        }
        Ok(LoginLimits { failures_max, lock })
    }
}

fn checked_limits(limits: Spanned<Limits>) -> Result<Limits, FieldError> {
    let at = limits.span().start;
    let limits = limits.into_inner();
    limits.resolve().map_err(|message| FieldError { at, message: format!("limits: {message}") })?;
    Ok(limits)
}

fn venue_named(venues: &[String], name: &Spanned<String>) -> Result<usize, FieldError> {
    let place = venues.iter().position(|venue| venue == name.get_ref());
    place.ok_or_else(|| FieldError {
        at: name.span().start,
        message: format!("there is no venue {:?} in this file", name.get_ref()),
    })
}

fn symbols(
    tables: Vec<Spanned<Symbols>>,
    venues: &[String],
    errors: &mut FieldErrors,
) -> Vec<(Symbol, usize)> {
    let mut routes = std::collections::HashMap::new();
    let mut all = Vec::new();
    for table in tables {
        let table = table.into_inner();
        let Some(venue) = errors.keep(venue_named(venues, &table.venue)) else { continue };
        let at = table.names.span().start;
        for text in table.names.get_ref() {
            let symbol = symbol(text).map_err(|message| FieldError { at, message });
            let Some(symbol) = errors.keep(symbol) else { continue };
            if routes.insert(symbol, venue).is_some() {
                errors.keep::<()>(invalid(at, format!("the symbol {text:?} has two routes")));
            }
            all.push((symbol, venue));
        }
    }
    all
}

fn references(tables: Vec<Spanned<Reference>>, errors: &mut FieldErrors) -> Vec<(Symbol, u64)> {
    if let Some(table) = tables.get(REFERENCES_MAX) {
        let text = format!("there are more than {REFERENCES_MAX} reference prices");
        errors.keep::<()>(invalid(table.span().start, text));
    }
    let mut named = std::collections::HashSet::new();
    let reference = |table: Spanned<Reference>| {
        let Reference { symbol: text, price: units } = table.into_inner();
        let at = text.span().start;
        let symbol = symbol(text.get_ref()).map_err(|message| FieldError { at, message })?;
        if !named.insert(symbol.canonical()) {
            return invalid(at, format!("the symbol {:?} has two reference prices", text.get_ref()));
        }
        let at = units.span().start;
        Ok((symbol, price(*units.get_ref()).map_err(|message| FieldError { at, message })?))
    };
    let all = tables.into_iter().take(REFERENCES_MAX).map(reference);
    all.filter_map(|reference| errors.keep(reference)).collect()
}

fn venues(
    tables: Vec<Spanned<Venue>>,
    environment: &dyn Fn(&str) -> Option<String>,
    errors: &mut FieldErrors,
) -> Vec<VenueConfig> {
    if tables.is_empty() {
        let text = "there is no [[venue]]: a gateway needs an exchange to send orders to";
        errors.keep::<()>(invalid(0, text));
    }
    if tables.len() > VENUES_MAX {
        errors.keep::<()>(invalid(0, format!("there are more than {VENUES_MAX} venues")));
    }
    let mut venues: Vec<VenueConfig> = Vec::new();
    for table in tables.into_iter().take(VENUES_MAX) {
        let at = table.span().start;
        let Some(venue) = errors.keep(table.into_inner().resolve(at, environment)) else { continue };
        if venues.iter().any(|other| other.name == venue.name) {
            errors.keep::<()>(invalid(at, format!("there are two venues {:?}", venue.name)));
        }
        venues.push(venue);
    }
    venues
}

impl Venue {
    fn resolve(
        self,
        at: usize,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<VenueConfig, FieldError> {
        let address = match Address::resolve(self.address.get_ref()) {
            Ok(address) => address,
            Err(error) => return invalid(self.address.span().start, format!("address: {error}")),
        };
        let moved_from = self.moved_from()?;
        let usernames = self.usernames(at)?;
        let password = self.password(at, environment)?;
        let mut limits = OutstandingLimits::default();
        if let Some(open) = &self.open_orders_max {
            limits.open_max = within("open_orders_max", open, 1, 1 << 24)?;
        }
        if let Some(unanswered) = &self.unanswered_max {
            limits.unanswered_max = within("unanswered_max", unanswered, 1, 1 << 20)?;
        }
        if let Some(when_full) = &self.when_full {
            limits.when_full = match when_full.get_ref().as_str() {
                "reject" => WhenFull::Refuse,
                "forget-oldest" => WhenFull::ForgetOldest,
                other => {
                    let message = format!("when_full: {other:?} is not known; use reject or forget-oldest");
                    return invalid(when_full.span().start, message);
                }
            };
        }
        if let Some(age) = &self.resend_age_max_ms {
            limits.resend_age_max_ns = within("resend_age_max_ms", age, 0, 86_400_000)? * 1_000_000;
        }
        let mut timing = Timing::default();
        if let Some(silence) = &self.heartbeat_timeout_ms {
            timing.heartbeat_timeout_ns = within("heartbeat_timeout_ms", silence, 1000, 60_000)? * 1_000_000;
        }
        if self.name.get_ref().is_empty() || self.name.get_ref().chars().any(char::is_control) {
            return invalid(self.name.span().start, "name: a venue needs a name of printable characters");
        }
        let name = self.name.into_inner();
        Ok(VenueConfig { name, address, moved_from, usernames, password, limits, timing })
    }

    /// Names are not resolved: a name may resolve to another address by now.
    fn moved_from(&self) -> Result<Vec<Address>, FieldError> {
        let Some(texts) = &self.moved_from else { return Ok(Vec::new()) };
        let at = texts.span().start;
        if texts.get_ref().len() > MOVED_FROM_MAX {
            return invalid(at, format!("moved_from: there are more than {MOVED_FROM_MAX} addresses"));
        }
        let wrong = |error: AddressError| FieldError { at, message: format!("moved_from: {error}") };
        texts.get_ref().iter().map(|text| text.parse::<Address>().map_err(wrong)).collect()
    }

    fn usernames(&self, at: usize) -> Result<Vec<Name<6>>, FieldError> {
        match (&self.usernames, &self.username_prefix) {
            (Some(names), None) => {
                let at = names.span().start;
                let mut all: Vec<Name<6>> = Vec::new();
                for text in names.get_ref() {
                    let name = text.parse::<Name<6>>().unwrap_or_default();
                    if name.is_blank() || all.contains(&name) {
                        let message = format!("usernames: {text:?} is empty, too long or there already");
                        return invalid(at, message);
                    }
                    all.push(name);
                }
                if all.is_empty() {
                    return invalid(at, "usernames: the list is empty; it needs one for each worker");
                }
                Ok(all)
            }
            (None, Some(prefix)) => {
                let text = prefix.get_ref();
                if text.len() > 3 || !text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
                    let message = "username_prefix: write up to 3 letters; a number for each worker follows";
                    return invalid(prefix.span().start, message);
                }
                Ok((1..=WORKERS_MAX).map(|number| numbered(text, number)).collect())
            }
            _ => invalid(at, "a venue needs either usernames, one for each worker, or username_prefix"),
        }
    }

    fn password(
        &self,
        at: usize,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Name<10>, FieldError> {
        let (text, at) = match (&self.password, &self.password_env) {
            (Some(password), None) => (password.get_ref().0.clone(), password.span().start),
            (None, Some(variable)) => {
                let at = variable.span().start;
                let Some(text) = environment(variable.get_ref()) else {
                    let message = format!("password_env: {} is not set", variable.get_ref());
                    return invalid(at, message);
                };
                // A line of a unit without its value; a venue without a password has `password = ""`.
                if text.is_empty() {
                    return invalid(at, format!("password_env: {} is empty", variable.get_ref()));
                }
                (text, at)
            }
            _ => return invalid(at, "a venue needs either password or password_env"),
        };
        text.parse().map_err(|_| FieldError {
            at,
            message: "password: write up to 10 printable ASCII characters".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = include_str!("../../../../docs/examples/gateway.toml");

    fn config(text: &str) -> Result<(GatewayConfig, Listeners), ConfigErrors> {
        let variables = |name: &str| match name {
            "WEIR_VENUE_PASSWORD" => Some("DEMO".to_owned()),
            "WEIR_EMPTY" => Some(String::new()),
            _ => None,
        };
        parse(Path::new("gateway.toml"), text, &variables)
    }

    fn wrong(text: &str) -> (usize, String) {
        let errors = config(text).expect_err("it is wrong");
        let [error, ..] = errors.all() else { panic!("there is one") };
        (error.line, error.message.clone())
    }

    #[test]
    fn the_example_is_a_configuration() {
        let (config, listeners) = config(EXAMPLE).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((config.accounts.len(), config.venues.len()), (2, 2));
        assert_eq!(config.venues[0].password.as_str(), "DEMO");
        assert_eq!(config.default_venue, Some(0));
        let references: Vec<_> =
            config.references.iter().map(|(symbol, price)| (symbol.to_string(), *price)).collect();
        assert_eq!(references, [("BRIDGE".to_owned(), 125_000)]);
        assert!(config.accounts[0].cancel_on_disconnect && config.account_limits[0].is_some());
        assert!(listeners.orders.is_some() && listeners.control.is_some() && listeners.metrics.is_some());
        assert_eq!(config.journal.map(|(_, level)| level), Some(Level::Disk));
    }

    /// The example file with one line replaced; the error must name that line.
    fn with(line: &str, by: &str) -> (usize, usize, String) {
        let place = EXAMPLE.lines().position(|found| found.starts_with(line)).expect("the line is there") + 1;
        let lines = EXAMPLE.lines().enumerate();
        let text: Vec<&str> = lines.map(|(at, found)| if at + 1 == place { by } else { found }).collect();
        let (found, message) = wrong(&text.join("\n"));
        (place, found, message)
    }

    #[test]
    fn errors_name_their_line_and_key() {
        for (line, by, words) in [
            ("session = ", "session = \"DAY\"", "session \"DAY\": there is no number at its end"),
            ("route = ", "numbers = \"again\"", "numbers \"again\": write \"continue\" or \"restart\""),
            ("route = ", "rout = \"own\"", "rout"),
            ("route = ", "route = \"nowhere\"", "nowhere"),
            ("strategy = ", "strategy = \"mash\"", "mash"),
            ("level = ", "level = \"paper\"", "paper"),
            ("orders = ", "orders = \"nowhere\"", "orders"),
            ("metrics = ", "metrics = \"0.0.0.0:9190\"", "loopback"),
            ("default_venue = ", "default_venue = \"NOWHERE\"", "NOWHERE"),
            ("address = ", "address = \"here\"", "address"),
            ("open_orders_max = ", "moved_from = [\"localhost:9101\"]", "moved_from: \"localhost:9101\""),
            ("password_env = ", "password_env = \"WEIR_NOT_SET\"", "WEIR_NOT_SET is not set"),
            ("password_env = ", "password_env = \"WEIR_EMPTY\"", "WEIR_EMPTY is empty"),
            ("open_orders_max = ", "open_orders_max = 0", "open_orders_max"),
            ("open_orders_max = ", "resend_age_max_ms = 86400001", "resend_age_max_ms"),
            ("password_hash = ", "password_hash = \"DEMO\"", "hash-password"),
            ("name = \"C00001\"", "name = \"C00001-TOO-LONG\"", "6 printable"),
            ("names = ", "names = [\"TOOLONGSYMBOL\"]", "TOOLONG"),
            ("symbol = ", "symbol = \"TOOLONGSYMBOL\"", "TOOLONG"),
            ("price = ", "price = 0", "price: 0 must be from 0.0001"),
            ("price = ", "prize = 1", "prize"),
        ] {
            let (place, found, message) = with(line, by);
            assert!(found == place && message.contains(words), "{by}: line {found}, {message}");
        }
    }

    #[test]
    fn logins_are_locked_and_numbers_go_on_unless_the_file_says_otherwise() {
        let usual = config(EXAMPLE).expect("it is right").0;
        assert_eq!((usual.logins, usual.numbers_restart), (LoginLimits::default(), false));
        let keys = "numbers = \"restart\"\n[logins]\nfailures_max = 0\nlock_s = 60\n[listen]";
        let other = config(&EXAMPLE.replacen("[listen]", keys, 1)).expect("it is right").0;
        let (_, message) = wrong(&EXAMPLE.replacen("[listen]", "[logins]\nlock_s = 0\n[listen]", 1));
        assert_eq!(message, "lock_s: 0 must be from 1 to 86400");
        let logins = LoginLimits { failures_max: 0, lock: Duration::from_secs(60) };
        assert_eq!((other.logins, other.numbers_restart), (logins, true));
    }

    #[test]
    fn every_error_is_told_and_none_makes_another() {
        let found = |text: &str| {
            let errors = config(text).expect_err("it is wrong");
            errors.all().iter().map(|error| error.to_string()).collect::<Vec<_>>()
        };
        let venue =
            "[[venue]]\nname = \"X\"\naddress = \"here\"\nusername_prefix = \"G\"\npassword = \"P\"\n";
        let symbols = "[[symbols]]\nvenue = \"X\"\nnames = [\"TOOLONGSYMBOL\"]\n";
        let accounts = "[[account]]\nname = \"A\"\npassword_hash = \"DEMO\"\n";
        let all = found(&format!("route = \"nowhere\"\n{venue}{symbols}{accounts}"));
        let begins =
            ["gateway.toml:1: route: ", "gateway.toml:4: address: ", "gateway.toml:9: ", "gateway.toml:12: "];
        assert_eq!(all.len(), begins.len(), "{all:?}");
        assert!(all.iter().zip(begins).all(|(error, begin)| error.starts_with(begin)), "{all:?}");
        // Keys of the wrong type and unknown keys, each in a separate table.
        let wrong = "[[account]]\nname = 1\n[[account]]\nnam = \"A\"\n[listen]\ncontrol = 5\n";
        let all = found(wrong);
        assert!(all.len() == 3 && all[1].contains(":4: unknown field"), "{all:?}");
        // Nothing of a text that is no TOML is read.
        let all = found("route = \nsession = \n[[venue]]\nname = \"X\"\n");
        assert!(all.len() == 2 && all[0].starts_with("gateway.toml:1: "), "{all:?}");
    }

    #[test]
    fn so_many_errors_are_listed_and_the_others_are_counted() {
        let text = "[[account]]\nname = \"\"\npassword_hash = \"\"\n".repeat(150);
        let errors = config(&text).expect_err("it is wrong");
        assert_eq!(errors.all().len(), 100);
        let last = errors.all().last().expect("there is one");
        // Those of the accounts, and that there is no venue.
        assert!(last.message.ends_with("; 51 more errors are not listed"), "{last}");
    }

    #[test]
    fn a_venue_says_where_it_was_before() {
        let by = "moved_from = [\"10.0.0.1:7001\", \"@before\"]\nopen_orders_max = 65536";
        let config = config(&EXAMPLE.replacen("open_orders_max = 65536", by, 1)).expect("it is right").0;
        let moved_from: Vec<String> = config.venues[0].moved_from.iter().map(ToString::to_string).collect();
        assert_eq!(moved_from, ["10.0.0.1:7001", "@before"]);
        assert!(config.venues[1].moved_from.is_empty());
    }

    #[test]
    fn no_password_is_printed() {
        let venue =
            "[[venue]]\nname = \"X\"\naddress = \"127.0.0.1:1\"\nusername_prefix = \"G\"\npassword = 9753\n";
        let (_, message) = wrong(venue);
        assert!(message.contains("password") && !message.contains("9753"), "{message}");
        let mut config = GatewayConfig::demo(1, "127.0.0.1:9101".parse().expect("an address"));
        config.venues[0].password = name("SECRET-97");
        let text = format!("{config:?}");
        assert!(text.contains("DEMO") && !text.contains("SECRET-97"), "{text}");
    }

    #[test]
    fn what_is_missing_or_there_twice_is_an_error() {
        assert!(wrong("").1.contains("[[venue]]"));
        let (_, message) =
            wrong("[[venue]]\nname = \"X\"\naddress = \"127.0.0.1:1\"\nusernames = [\"G1\"]\n");
        assert!(message.contains("password"), "{message}");
        let venue =
            "[[venue]]\nname = \"X\"\naddress = \"127.0.0.1:1\"\nusername_prefix = \"G\"\npassword = \"P\"\n";
        assert!(wrong(venue).1.contains("[[account]]"));
        let errors = config(&format!("{venue}{venue}")).expect_err("it is wrong");
        let [_, error] = errors.all() else { panic!("{errors}") };
        assert!(error.line == 6 && error.message.contains("two venues"), "{error}");
        let (line, message) = wrong(&format!("{venue}nonsense = 1\n"));
        assert!(line == 6 && message.contains("nonsense"), "{line}: {message}");
    }

    #[test]
    fn a_symbol_has_one_reference_price() {
        let line = "[[reference]]\nsymbol = \"BRIDGE\"\nprice = 1\n";
        let (line, message) = wrong(&EXAMPLE.replacen("[[account]]", &format!("{line}[[account]]"), 1));
        assert!(message.contains("\"BRIDGE\" has two reference prices"), "{line}: {message}");
    }

    #[test]
    fn a_demonstration_has_a_login_for_every_worker() {
        let config = GatewayConfig::demo(3, "127.0.0.1:9101".parse().expect("an address"));
        assert_eq!(config.accounts.len(), 3);
        assert_eq!(config.venues[0].usernames[1].as_str(), "G00002");
        assert_eq!(config.venues[0].usernames.len(), WORKERS_MAX);
    }
}
