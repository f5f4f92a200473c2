//! The orders part of a load's specification. Plain data, checked as a whole.

use std::{fmt, str::FromStr};

use weir_engine::net::Address;
use weir_proto::{ouch::Symbol, soup::Name};
use weir_record::load::LoadReport;

use super::{
    notes::{OrderNotes, RequestKind},
    outcome,
};
use crate::{
    error::{LoadError, invalid},
    gather::Gather,
    outcome::WorkerOutcomes,
    recorder::Sections,
    spec::{Arrivals, Facts, LoadSpec, ProtocolSpec},
};

/// Most symbols.
pub const SYMBOLS_MAX: usize = 256;
/// Largest share of one kind of request.
pub const SHARE_MAX: u32 = 1_000_000;
/// Bytes of the largest request, an enter order: a header of 3 and a message of 47.
pub const ORDER_BYTES: u32 = 50;
/// Letters of an account.
const ACCOUNT_LETTERS: usize = 6;

/// A password: never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub String);

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("redacted")
    }
}

/// The shares of each kind of request. A replace or a cancel needs a live order; while there is none an order is
/// entered instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderMix {
    /// Share of new orders.
    pub enter: u32,
    /// Share of replaces.
    pub replace: u32,
    /// Share of cancels, each of the whole order.
    pub cancel: u32,
}

impl OrderMix {
    /// Only new orders.
    pub const ENTER: Self = Self { enter: 1, replace: 0, cancel: 0 };

    /// The kind that a random number selects.
    #[inline]
    pub(crate) fn kind(self, random: u64) -> RequestKind {
        let all = u64::from(self.enter) + u64::from(self.replace) + u64::from(self.cancel);
        // Multiplies the upper bits by the sum: no division, and even enough for shares.
        let place = ((random >> 32) * all) >> 32;
        if place < u64::from(self.enter) {
            RequestKind::Enter
        } else if place < u64::from(self.enter) + u64::from(self.replace) {
            RequestKind::Replace
        } else {
            RequestKind::Cancel
        }
    }

    /// Whether any request is about a live order.
    pub(crate) fn needs_targets(self) -> bool {
        self.replace + self.cancel > 0
    }
}

/// A text that is not a mix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no mix: write enter, enter,cancel or enter,replace,cancel, or with shares \
     enter=6,replace=1,cancel=3"
)]
pub struct MixError(String);

impl FromStr for OrderMix {
    type Err = MixError;

    /// Reads `enter`, `enter,cancel`, `enter,replace,cancel`: equal shares unless each has one, as in
    /// `enter=6,cancel=3`.
    fn from_str(text: &str) -> Result<Self, MixError> {
        let wrong = || MixError(text.to_owned());
        let mut mix = Self { enter: 0, replace: 0, cancel: 0 };
        for part in text.split(',') {
            let (name, share) = match part.split_once('=') {
                Some((name, share)) => (name, share.trim().parse().map_err(|_| wrong())?),
                None => (part, 1),
            };
            let place = match name.trim() {
                "enter" => &mut mix.enter,
                "replace" => &mut mix.replace,
                "cancel" => &mut mix.cancel,
                _ => return Err(wrong()),
            };
            if *place != 0 || share == 0 || share > SHARE_MAX {
                return Err(wrong());
            }
            *place = share;
        }
        if mix.enter == 0 { Err(wrong()) } else { Ok(mix) }
    }
}

/// The orders' part of a [`LoadSpec`]. Its connections are the sessions, its depth is the limit in flight per
/// session.
#[derive(Clone, Debug)]
pub struct OrdersSpec {
    /// Session `k`, from 1, logs in as this prefix and `k`, padded with zeros to six letters.
    pub accounts_prefix: String,
    /// Password of every account.
    pub password: Password,
    /// Requests in flight over the whole run, handed from session to session in turn; `None` gives each session its
    /// own.
    pub in_flight_total: Option<u32>,
    /// In a counted run, the exact number of requests per session; in an open loop the same total.
    pub orders_each: Option<u64>,
    /// Kinds of requests.
    pub mix: OrderMix,
    /// Symbols of orders, chosen at random.
    pub symbols: Vec<String>,
    /// Drop each connection after this many answers and log in again where the stream stopped.
    pub reconnect_every: Option<u64>,
    /// Start at the first message the server has for the account, not at the newest.
    pub resume: bool,
}

impl OrdersSpec {
    /// New orders only, for the accounts of a demonstration.
    pub fn demo() -> Self {
        Self {
            accounts_prefix: "C".into(),
            password: Password("DEMO".into()),
            in_flight_total: None,
            orders_each: None,
            mix: OrderMix::ENTER,
            symbols: vec!["WEIRA".into(), "WEIRB".into(), "WEIRC".into(), "WEIRD".into()],
            reconnect_every: None,
            resume: false,
        }
    }

    fn validate_accounts(&self, load: &LoadSpec) -> Result<(), LoadError> {
        let prefix = self.accounts_prefix.as_str();
        let is_text = !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_text || prefix.len() >= ACCOUNT_LETTERS {
            let reason = format!("{prefix:?} is not possible; use 1 to 5 letters or digits");
            return invalid("accounts-prefix", reason);
        }
        let accounts = 10_u32.pow((ACCOUNT_LETTERS - prefix.len()) as u32) - 1;
        if load.connections > accounts {
            let sessions = load.connections;
            let reason =
                format!("{sessions} sessions need longer numbers: {prefix:?} has {accounts} accounts");
            return invalid("accounts-prefix", reason);
        }
        if let Err(error) = self.password.0.parse::<Name<10>>() {
            return invalid("password", format!("it is {error}"));
        }
        if load.idle_connections > 0 {
            return invalid("idle-connections", "a session that never trades is not possible; use 0");
        }
        Ok(())
    }

    fn validate_in_flight(&self, load: &LoadSpec) -> Result<(), LoadError> {
        const FIELD: &str = "in-flight-total";
        let Some(total) = self.in_flight_total else { return Ok(()) };
        if total == 0 {
            return invalid(FIELD, "at least one order must be in flight");
        }
        if total < load.workers {
            let workers = load.workers;
            let reason = format!(
                "{total} in flight cannot be divided between {workers} generator threads; use at most {total} of them"
            );
            return invalid(FIELD, reason);
        }
        match load.arrivals {
            Arrivals::Open { .. } => {
                invalid(FIELD, "an open loop starts orders when they are due, not in turn")
            }
            Arrivals::Closed { think } if !think.is_zero() => {
                invalid("think", "orders that go round the sessions have no pause; use 0")
            }
            Arrivals::Closed { .. } => Ok(()),
        }
    }

    /// Account of the session with this number, from 0.
    pub(crate) fn account(&self, number: u32) -> Name<ACCOUNT_LETTERS> {
        let digits = ACCOUNT_LETTERS.saturating_sub(self.accounts_prefix.len());
        let text = format!("{}{:0digits$}", self.accounts_prefix, number + 1);
        // The specification was validated, so it fits.
        text.parse().unwrap_or_default()
    }

    /// The symbols in wire form.
    pub(crate) fn symbols(&self) -> Vec<Symbol> {
        self.symbols.iter().filter_map(|symbol| symbol.parse().ok()).collect()
    }
}

impl ProtocolSpec for OrdersSpec {
    fn validate(&self, load: &LoadSpec, _target: &Address) -> Result<(), LoadError> {
        self.validate_accounts(load)?;
        self.validate_in_flight(load)?;
        if self.symbols.is_empty() || self.symbols.len() > SYMBOLS_MAX {
            let reason = format!("{} symbols are not possible; use 1 to {SYMBOLS_MAX}", self.symbols.len());
            return invalid("symbols", reason);
        }
        for symbol in &self.symbols {
            if symbol.trim().is_empty() {
                return invalid("symbols", "a symbol has 1 to 8 letters");
            }
            if let Err(error) = symbol.parse::<Symbol>() {
                return invalid("symbols", format!("{symbol:?} is {error}"));
            }
        }
        let together = |each: u64| each.checked_mul(load.connections.into());
        match self.orders_each {
            Some(0) => return invalid("orders", "at least one order is needed"),
            Some(each) if load.messages.is_none() || load.messages != together(each) => {
                return invalid("orders", "the number of all must be that of each session times sessions");
            }
            _ => {}
        }
        match self.reconnect_every {
            Some(0) => invalid("reconnect-every", "at least one answer is needed between two logins"),
            _ => Ok(()),
        }
    }

    fn request_bytes_max(&self) -> (usize, &'static str) {
        (ORDER_BYTES as usize, "depth")
    }

    fn facts(&self) -> Facts {
        Facts {
            messages_each: self.orders_each,
            sections: Sections { own: Some(|| Box::new(OrderNotes::default())), ..Sections::default() },
            // Sessions must be kept alive between slices.
            has_slices: false,
            ..Facts::plain(ORDER_BYTES)
        }
    }

    fn add_section(
        &self,
        report: &mut LoadReport,
        load: &LoadSpec,
        gather: &Gather,
        outcomes: &WorkerOutcomes<'_>,
    ) {
        report.orders = gather.section().map(|notes| outcome::section(self, load, notes, outcomes));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use super::*;

    fn refused(change: impl FnOnce(&mut LoadSpec, &mut OrdersSpec)) -> String {
        let mut load = crate::spec::tests::spec();
        let mut changed = OrdersSpec::demo();
        change(&mut load, &mut changed);
        load.protocol = changed.into();
        load.validate().expect_err("an impossible value").to_string()
    }

    #[test]
    fn accounts_are_numbered_from_one_in_six_letters() {
        let spec = OrdersSpec::demo();
        assert_eq!(spec.account(0).as_str(), "C00001");
        assert_eq!(spec.account(99).as_str(), "C00100");
        let spec = OrdersSpec { accounts_prefix: "AB".into(), ..spec };
        assert_eq!(spec.account(9).as_str(), "AB0010");
    }

    #[test]
    fn each_impossible_value_is_refused_by_the_name_of_its_field() {
        assert!(refused(|_, orders| orders.accounts_prefix.clear()).starts_with("accounts-prefix: "));
        assert!(refused(|_, orders| orders.accounts_prefix = "ABCDEF".into()).contains("1 to 5 letters"));
        let many = |load: &mut LoadSpec, orders: &mut OrdersSpec| {
            (load.connections, orders.accounts_prefix) = (100, "ABCD".into());
        };
        assert!(refused(many).contains("has 99 accounts"));
        assert!(refused(|_, orders| orders.password.0 = "LONGERTHANTEN".into()).starts_with("password: "));
        assert!(refused(|load, _| load.idle_connections = 1).starts_with("idle-connections: "));
        assert!(refused(|_, orders| orders.symbols.clear()).starts_with("symbols: "));
        assert!(refused(|_, orders| orders.symbols[0] = "NINELONG9".into()).starts_with("symbols: "));
        assert!(refused(|_, orders| orders.orders_each = Some(3)).starts_with("orders: "));
        assert!(refused(|_, orders| orders.reconnect_every = Some(0)).starts_with("reconnect-every: "));
    }

    #[test]
    fn what_is_in_flight_over_the_whole_run_must_be_divisible_and_belongs_to_a_closed_loop() {
        assert!(refused(|_, orders| orders.in_flight_total = Some(0)).starts_with("in-flight-total: "));
        let divided = |load: &mut LoadSpec, orders: &mut OrdersSpec| {
            (load.workers, orders.in_flight_total) = (3, Some(2));
        };
        assert!(refused(divided).contains("use at most 2 of them"));
        let open = |load: &mut LoadSpec, orders: &mut OrdersSpec| {
            orders.in_flight_total = Some(1);
            load.arrivals = Arrivals::Open { rate_per_second: 1.0, poisson: true, spin: Duration::ZERO };
        };
        assert!(refused(open).starts_with("in-flight-total: "));
        let thinks = |load: &mut LoadSpec, orders: &mut OrdersSpec| {
            orders.in_flight_total = Some(1);
            load.arrivals = Arrivals::Closed { think: Duration::from_millis(1) };
        };
        assert!(refused(thinks).starts_with("think: "));
    }

    #[test]
    fn a_mix_is_read_as_written_and_drawn_in_its_shares() {
        assert_eq!("enter".parse(), Ok(OrderMix::ENTER));
        assert_eq!("enter, cancel".parse(), Ok(OrderMix { enter: 1, replace: 0, cancel: 1 }));
        assert_eq!("cancel=3,enter=6,replace=1".parse(), Ok(OrderMix { enter: 6, replace: 1, cancel: 3 }));
        for text in ["", "cancel", "enter=0", "enter,enter", "enter=x", "enter=1000001", "fill"] {
            let error = text.parse::<OrderMix>().expect_err(text).to_string();
            assert!(error.contains("enter=6,replace=1,cancel=3"), "{error}");
        }
        let mix = OrderMix { enter: 6, replace: 1, cancel: 3 };
        let mut counts = [0_u32; 3];
        (0..10_000_u64).for_each(|number| counts[mix.kind(crate::payload::mix(number)) as usize] += 1);
        assert!((5800..6200).contains(&counts[0]) && (900..1100).contains(&counts[1]), "{counts:?}");
    }

    #[test]
    fn a_password_is_not_shown() {
        assert!(!format!("{:?}", OrdersSpec::demo()).contains("DEMO"));
    }
}
