//! What operators have set and the journal keeps, limits and kill switches: changed and shown from any thread, and
//! reported in lines when a gateway starts.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use weir_trading::AccountId;

use super::{
    GatewayControl,
    account_limits::Limits,
    controls::{Change, Controls},
    kill_switch::killed_line,
    limit_sources::{LimitStatus, shown, time},
};
use crate::orders::{Event, EventKind};

/// Most lines about limits at a start.
const LIMIT_LINES_MAX: usize = 1000;
/// Most symbols that a line names.
const SYMBOLS_NAMED_MAX: usize = 10;

impl GatewayControl {
    /// The limits that apply to an account, or the common limits of accounts without their own.
    ///
    /// # Errors
    /// When there is no such account.
    pub fn limits(&self, account: Option<&str>) -> Result<Limits, String> {
        let account = account.map(|name| self.account(name)).transpose()?;
        Ok(self.shared.commander.controls().limits_of(account))
    }

    /// Every limit that applies to an account, or of the common ones, with its origin.
    ///
    /// # Errors
    /// When there is no such account.
    pub fn limit_statuses(&self, account: Option<&str>) -> Result<Vec<LimitStatus>, String> {
        let account = account.map(|name| self.account(name)).transpose()?;
        Ok(self.shared.commander.controls().statuses_of(account))
    }

    /// How many values of operators differ from what applies without them. A kill switch needs the same lock, so it is
    /// held for a copy only.
    pub(super) fn limits_overridden(&self) -> u64 {
        let controls = self.shared.commander.controls().clone();
        controls.overrides().len() as u64
    }

    /// Changes single limits: keys of [`Limits`] with new values, `null` for no limit. The others stay as they are,
    /// and as the configuration and the common limits change them.
    ///
    /// # Errors
    /// The reason, in words: no such account, no such limit, or the change cannot be journaled.
    pub fn set_limits(&self, account: Option<&str>, changes: Map<String, Value>) -> Result<(), String> {
        let id = account.map(|name| self.account(name)).transpose()?;
        self.shared.commander.change(id, &Change::set_limits(account, changes)?)
    }

    /// Removes what [`Self::set_limits`] has set, so that the configuration applies again: these limits, or all if
    /// none is named.
    ///
    /// # Errors
    /// The reason, in words: no such account, no such limit, or the change cannot be journaled.
    pub fn reset_limits(&self, account: Option<&str>, names: BTreeSet<String>) -> Result<(), String> {
        let id = account.map(|name| self.account(name)).transpose()?;
        self.shared.commander.change(id, &Change::reset_limits(account, names)?)
    }

    /// Events when a gateway has started: the settings in the journal that its configuration does not show, and the
    /// trading day.
    pub fn events_at_start(&self) -> Vec<Event> {
        let killed = killed_line(&self.killed()).map(|line| Event::new(EventKind::KillSwitchOn, line));
        let limits = self.override_lines().into_iter().map(|line| Event::new(EventKind::LimitOverride, line));
        let day = self.day_status().map(|day| Event::new(EventKind::Day, day.to_string()));
        killed.into_iter().chain(limits).chain(day).collect()
    }

    /// A line for each limit of an operator that changes what the configuration says.
    pub(super) fn override_lines(&self) -> Vec<String> {
        let controls = self.shared.commander.controls().clone();
        limit_lines(&controls, |account| self.name_of(account))
    }

    pub(super) fn name_of(&self, account: AccountId) -> String {
        self.orders.account(account).name().to_string()
    }
}

/// A line for each limit of an operator that changes what the configuration says.
fn limit_lines(controls: &Controls, name_of: impl Fn(AccountId) -> String) -> Vec<String> {
    let overrides = controls.overrides();
    let line = |(account, status): &(Option<AccountId>, LimitStatus)| {
        let (whose, option) = match account.map(&name_of) {
            Some(name) => (format!("account {name}"), format!(" --account {name}")),
            None => ("accounts without own limits".to_owned(), String::new()),
        };
        let LimitStatus { name: limit, value, set_at_ns, without, .. } = status;
        let (value, without) = (in_line(value), in_line(without.as_ref().unwrap_or(&Value::Null)));
        format!(
            "limit {limit} of {whose} is {value} instead of {without}: an operator set it on {}, and `weir ctl \
             limits{option} --reset {limit}` takes it back",
            time(set_at_ns.unwrap_or_default())
        )
    };
    let mut lines: Vec<String> = overrides.iter().take(LIMIT_LINES_MAX).map(line).collect();
    if overrides.len() > LIMIT_LINES_MAX {
        let more = overrides.len() - LIMIT_LINES_MAX;
        lines.push(format!(
            "{more} more limits of operators stand instead of others; `weir ctl limits` shows them"
        ));
    }
    lines
}

/// A value, however many symbols it has.
fn in_line(value: &Value) -> String {
    match value {
        Value::Array(symbols) if symbols.len() > SYMBOLS_NAMED_MAX => format!("{} symbols", symbols.len()),
        other => shown(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_account_limit_both_values_and_the_way_out() {
        let file = Limits { shares_max: Some(10), ..Limits::default() };
        let mut controls = Controls::of_file(&file, &[None, None]);
        let set = |value: u32| {
            let set = Map::from_iter([("shares_max".to_owned(), value.into())]);
            Change::set_limits(None, set).expect("there is such a limit")
        };
        controls.apply(None, &set(50), 1_000_000_000);
        controls.apply(Some(AccountId(1)), &set(70), 2_000_000_000);
        let name_of = |account: AccountId| format!("C{:05}", account.0 + 1);
        assert_eq!(
            limit_lines(&controls, name_of),
            [
                "limit shares_max of accounts without own limits is 50 instead of 10: an operator set it on 1970-01-01 \
                 00:00:01 UTC, and `weir ctl limits --reset shares_max` takes it back",
                "limit shares_max of account C00002 is 70 instead of 50: an operator set it on 1970-01-01 00:00:02 UTC, \
                 and `weir ctl limits --account C00002 --reset shares_max` takes it back",
            ]
        );
    }

    #[test]
    fn a_long_list_of_symbols_is_counted() {
        let symbols =
            |count: u32| (0..count).map(|number| format!("S{number}").into()).collect::<Vec<Value>>();
        assert_eq!(in_line(&symbols(2).into()), "S0,S1");
        assert_eq!(in_line(&symbols(11).into()), "11 symbols");
    }

    #[test]
    fn so_many_limits_have_a_line_and_the_others_are_counted() {
        let accounts = vec![None; 200];
        let mut controls = Controls::of_file(&Limits { shares_max: Some(1), ..Limits::default() }, &accounts);
        let values = [
            "shares_max",
            "notional_max",
            "exposure_max",
            "duplicates_max",
            "orders_per_second",
            "fat_finger_percent",
        ];
        for account in 0..200 {
            let set = Map::from_iter(values.map(|name| (name.to_owned(), Value::from(7))));
            let change = Change::set_limits(None, set).expect("there are such limits");
            controls.apply(Some(AccountId(account)), &change, 1);
        }
        let lines = limit_lines(&controls, |account| account.0.to_string());
        assert_eq!(lines.len(), LIMIT_LINES_MAX + 1);
        let last = &lines[LIMIT_LINES_MAX];
        assert!(last.starts_with("200 more limits of operators"), "{last}");
    }
}
