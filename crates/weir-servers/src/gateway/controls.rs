//! The changes that operators make at run time, and the controls in force. Nothing here does I/O or reads a clock.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use weir_trading::{AccountId, RiskLimits, day::Standing};

use super::{
    account_limits::Limits,
    day::DayRecord,
    kill_switch::Switches,
    limit_sources::{LimitSources, LimitStatus, NAMES, values_of},
    reference_prices::Prices,
};

/// A change, as it is journaled: accounts are stored by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Change {
    /// The kill switch of an account, or of all accounts.
    Kill { account: Option<String>, on: bool },
    /// Every limit of an account, or of the common ones: earlier versions recorded a change of one limit like this. It
    /// is only read.
    Limits { account: Option<String>, limits: Limits },
    /// Single limits of an account, or of the common ones.
    LimitValues {
        account: Option<String>,
        /// The new values by name; `null` for no limit.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        set: Map<String, Value>,
        /// The names whose values are removed, so that the configuration's apply again; empty with an empty `set`: all
        /// of them.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        reset: BTreeSet<String>,
    },
    /// Reference prices of these symbols.
    References { prices: Prices },
    /// A step of the trading day.
    Day(DayRecord),
}

impl Change {
    /// Sets single limits.
    ///
    /// # Errors
    /// The reason, in words: no such limit, or an invalid value for it.
    pub(super) fn set_limits(account: Option<&str>, set: Map<String, Value>) -> Result<Self, String> {
        set.keys().try_for_each(|name| known(name))?;
        // In the form of a configuration, so that the two can be compared.
        let values = values_of(&Limits::default().with(set.clone())?);
        let value = |name: &String| values.get(name).cloned().unwrap_or_default();
        let set = set.keys().map(|name| (name.clone(), value(name))).collect();
        Ok(Self::LimitValues { account: account.map(str::to_owned), set, reset: BTreeSet::new() })
    }

    /// Removes the operators' values of these limits, or of all.
    ///
    /// # Errors
    /// The reason, in words: no such limit.
    pub(super) fn reset_limits(account: Option<&str>, reset: BTreeSet<String>) -> Result<Self, String> {
        reset.iter().try_for_each(|name| known(name))?;
        Ok(Self::LimitValues { account: account.map(str::to_owned), set: Map::new(), reset })
    }
}

/// Checks that there is a limit of this name.
fn known(name: &str) -> Result<(), String> {
    if NAMES.contains(&name) {
        return Ok(());
    }
    Err(format!("there is no limit {name:?}; the limits are {}", NAMES.join(", ")))
}

/// The limits of an account in the form of the checks, or the common ones; none for an account that has the common
/// ones.
pub(super) type ResolvedLimits = (Option<AccountId>, Option<RiskLimits>);

/// The controls in force.
#[derive(Clone, Debug, Default)]
pub(super) struct Controls {
    common: LimitSources,
    /// By account; those behind the end have the common limits.
    accounts: Vec<LimitSources>,
    /// The kill switches.
    pub(super) switches: Switches,
    /// The last step of the trading day.
    pub(super) day: Option<Standing>,
}

impl Controls {
    /// The limits of a configuration.
    pub(super) fn of_file(common: &Limits, accounts: &[Option<Limits>]) -> Self {
        Self {
            common: LimitSources::of_file(Some(common.clone())),
            accounts: accounts.iter().cloned().map(LimitSources::of_file).collect(),
            ..Self::default()
        }
    }

    /// Applies a change that was made at this time, in nanoseconds since 1970. `account` is the one the change names.
    pub(super) fn apply(&mut self, account: Option<AccountId>, change: &Change, at_ns: u64) {
        match (change, account) {
            (Change::Kill { on, .. }, account) => self.switches.set(account, *on),
            (Change::Limits { limits, .. }, _) => {
                if let Some(sources) = self.sources_mut(account) {
                    sources.set_all(limits, at_ns);
                }
            }
            (Change::LimitValues { set, reset, .. }, _) => {
                let Some(sources) = self.sources_mut(account) else { return };
                if set.is_empty() || !reset.is_empty() {
                    sources.reset(reset.iter().map(String::as_str));
                }
                sources.set(set, at_ns);
            }
            // They change with every trade and are in a separate table.
            (Change::References { .. }, _) => {}
            (Change::Day(record), _) => self.day = Some(record.standing()),
        }
    }

    /// Replaces what the configuration says: its common limits, and those of each of its accounts. What operators have
    /// set stays.
    pub(super) fn set_file(&mut self, common: &Limits, accounts: &[(AccountId, Option<Limits>)]) {
        self.common.set_file(Some(common.clone()));
        self.accounts.iter_mut().for_each(|own| own.set_file(None));
        for (account, limits) in accounts {
            let place = account.0 as usize;
            if place >= self.accounts.len() {
                self.accounts.resize_with(place + 1, LimitSources::default);
            }
            self.accounts[place].set_file(limits.clone());
        }
    }

    fn sources_mut(&mut self, account: Option<AccountId>) -> Option<&mut LimitSources> {
        match account {
            None => Some(&mut self.common),
            Some(account) => self.accounts.get_mut(account.0 as usize),
        }
    }

    /// The limits that apply to an account, or the common limits of accounts without their own.
    pub(super) fn limits_of(&self, account: Option<AccountId>) -> Limits {
        self.unsettled(account).settled()
    }

    fn unsettled(&self, account: Option<AccountId>) -> Limits {
        let common = self.common.over(&Limits::default());
        match account.and_then(|account| self.accounts.get(account.0 as usize)) {
            Some(own) => own.over(&common.settled()),
            None => common,
        }
    }

    /// The same with the origin of each.
    pub(super) fn statuses_of(&self, account: Option<AccountId>) -> Vec<LimitStatus> {
        let common = self.common.statuses(None);
        match account.and_then(|account| self.accounts.get(account.0 as usize)) {
            Some(own) => own.statuses(Some(&common)),
            None => common,
        }
    }

    /// Every value of an operator that is another one than without it, with its account. A metric counts them, so the
    /// limits of accounts without such a value are not examined.
    pub(super) fn overrides(&self) -> Vec<(Option<AccountId>, LimitStatus)> {
        let common = self.common.statuses(None);
        let own = self.accounts.iter().zip(0..).filter(|(own, _)| own.has_operator_values());
        let own = own.flat_map(|(own, account)| {
            own.statuses(Some(&common)).into_iter().map(move |status| (Some(AccountId(account)), status))
        });
        let own: Vec<_> = own.collect();
        let all = common.into_iter().map(|status| (None, status)).chain(own);
        all.filter(|(_, status)| status.is_override()).collect()
    }

    /// Checks that the limits of an account, or the common ones, are valid after a change that sets these.
    ///
    /// # Errors
    /// The reason, in words.
    pub(super) fn check_set(
        &self,
        account: Option<AccountId>,
        set: &Map<String, Value>,
    ) -> Result<(), String> {
        self.unsettled(account).check_set(set)
    }

    /// The limits of an account, or the common ones and those of every account that they may change.
    ///
    /// # Errors
    /// The reason, in words: a limit is invalid. Limits are checked when they are read and when they are set, so there
    /// is none.
    pub(super) fn resolved(&self, account: Option<AccountId>) -> Result<Vec<ResolvedLimits>, String> {
        let common = self.limits_of(None);
        let of_account = |account: AccountId, own: &LimitSources| -> Result<ResolvedLimits, String> {
            let limits = if own.is_common() { None } else { Some(own.over(&common).settled().resolve()?) };
            Ok((Some(account), limits))
        };
        if let Some(account) = account {
            let own = self.accounts.get(account.0 as usize);
            return own.map(|own| of_account(account, own)).into_iter().collect();
        }
        let dependent = self.accounts.iter().zip(0..).filter(|(own, _)| {
            // The common limits reach the others by themselves.
            own.depends_on_common() && !own.is_common()
        });
        let dependent = dependent.map(|(own, account)| of_account(AccountId(account), own));
        std::iter::once(Ok((None, Some(common.resolve()?)))).chain(dependent).collect()
    }

    /// The limits that differ from those of `before`: the common ones, and those of accounts that have or had others.
    ///
    /// # Errors
    /// The reason, in words: an operator's value and a value of the configuration are no limits together.
    pub(super) fn changed_from(&self, before: &Self) -> Result<Vec<ResolvedLimits>, String> {
        let commons = (self.limits_of(None), before.limits_of(None));
        let mut all = Vec::new();
        if commons.0 != commons.1 {
            all.push((None, Some(commons.0.resolve()?)));
        }
        let own = |controls: &Self, place: usize, common: &Limits| {
            let own = controls.accounts.get(place).filter(|own| !own.is_common());
            own.map(|own| own.over(common).settled())
        };
        for place in 0..self.accounts.len() {
            let (after, before) = (own(self, place, &commons.0), own(before, place, &commons.1));
            if after != before {
                let limits = after.map(|limits| limits.resolve()).transpose()?;
                all.push((Some(AccountId(place as u32)), limits));
            }
        }
        Ok(all)
    }

    /// The limits of all accounts that have others than the common ones, and the common ones.
    pub(super) fn all_resolved(&self) -> Result<Vec<ResolvedLimits>, String> {
        let own = self.accounts.iter().zip(0..).filter(|(own, _)| !own.is_common());
        let own = own.flat_map(|(_, account)| match self.resolved(Some(AccountId(account))) {
            Ok(all) => all.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => vec![Err(error)],
        });
        std::iter::once(self.limits_of(None).resolve().map(|common| (None, Some(common))))
            .chain(own)
            .collect()
    }

    /// The accounts whose limits need their orders to be tracked; `None` stands for all accounts without own limits.
    pub(super) fn needs_orders(&self) -> BTreeMap<Option<AccountId>, bool> {
        let all = self.all_resolved().unwrap_or_default();
        all.into_iter()
            .map(|(account, limits)| (account, limits.is_some_and(|limits| limits.needs_orders())))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Option<AccountId> = Some(AccountId(0));
    const SECOND: Option<AccountId> = Some(AccountId(1));

    fn set(values: Value) -> Change {
        let Value::Object(values) = values else { panic!("an object") };
        Change::set_limits(None, values).expect("they are right")
    }

    fn reset(names: &[&str]) -> Change {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Change::reset_limits(None, names).expect("there are such limits")
    }

    fn shares(shares_max: u32) -> Limits {
        Limits { shares_max: Some(shares_max), ..Limits::default() }
    }

    /// The configuration of a start, and the changes in its journal.
    fn started(common: Limits, changes: &[(Option<AccountId>, Change)]) -> Controls {
        let mut controls = Controls::of_file(&common, &[None, None]);
        for (account, change) in changes {
            let text = serde_json::to_string(change).expect("it is data");
            let read = serde_json::from_str::<Change>(&text).expect("it is data");
            assert_eq!(read, *change);
            controls.apply(*account, &read, 1);
        }
        controls
    }

    #[test]
    fn changes_applied_in_order_are_what_is_in_force() {
        let name = |account: Option<AccountId>| account.map(|account| account.0.to_string());
        let controls = started(
            Limits::default(),
            &[
                (None, Change::Limits { account: None, limits: shares(5) }),
                (SECOND, Change::Limits { account: name(SECOND), limits: shares(7) }),
                (FIRST, Change::Kill { account: name(FIRST), on: true }),
                (None, Change::Kill { account: None, on: true }),
                (None, Change::Kill { account: None, on: false }),
            ],
        );
        assert_eq!(controls.limits_of(FIRST), shares(5));
        assert_eq!(controls.limits_of(SECOND), shares(7));
        assert_eq!(controls.switches.on().collect::<Vec<_>>(), [FIRST]);
    }

    #[test]
    fn a_stricter_limit_in_the_file_is_overridden_visibly_and_a_reset_returns_to_it() {
        let changes = [(None, set(serde_json::json!({"shares_max": 50})))];
        let mut controls = started(shares(10), &changes);
        assert_eq!(controls.limits_of(FIRST), shares(50));
        let overrides = controls.overrides();
        let [(None, status)] = overrides.as_slice() else { panic!("{overrides:?}") };
        assert_eq!((status.name.as_str(), &status.value), ("shares_max", &Value::from(50)));
        assert_eq!(status.without, Some(10.into()));
        controls.apply(None, &reset(&["shares_max"]), 2);
        assert_eq!((controls.limits_of(FIRST), controls.overrides()), (shares(10), Vec::new()));
    }

    #[test]
    fn an_operators_value_that_the_file_has_too_overrides_nothing() {
        let changes = [(None, set(serde_json::json!({"shares_max": 10})))];
        assert!(started(shares(10), &changes).overrides().is_empty());
    }

    #[test]
    fn a_limit_of_one_account_leaves_its_other_limits_to_the_common_ones() {
        let mut controls = started(Limits::default(), &[(FIRST, set(serde_json::json!({"shares_max": 10})))]);
        controls.apply(None, &set(serde_json::json!({"exposure_max": 100.0})), 2);
        let expected = Limits { exposure_max: Some(100.0), ..shares(10) };
        assert_eq!(controls.limits_of(FIRST), expected);
        // The workers get the account's limits with the common ones.
        let resolved = controls.resolved(None).expect("they are valid");
        let exposure = |(account, limits): &ResolvedLimits| {
            (*account, limits.as_ref().and_then(|limits| limits.exposure_max))
        };
        assert_eq!(
            resolved.iter().map(exposure).collect::<Vec<_>>(),
            [(None, Some(1_000_000)), (FIRST, Some(1_000_000))]
        );
        assert_eq!(controls.all_resolved(), controls.resolved(None));
        controls.apply(FIRST, &reset(&[]), 3);
        assert_eq!(controls.resolved(FIRST), Ok(vec![(FIRST, None)]), "it has the common ones again");
        assert!(controls.needs_orders()[&None]);
    }

    #[test]
    fn a_record_of_all_limits_is_read_as_ever_and_can_be_reset() {
        let record = r#"{"limits":{"account":"0","limits":{"shares_max":10}}}"#;
        let change: Change = serde_json::from_str(record).expect("a change of an earlier version");
        let common = Limits { exposure_max: Some(5.0), ..shares(1000) };
        let mut controls = started(common.clone(), &[(FIRST, change)]);
        assert_eq!(controls.limits_of(FIRST), shares(10), "the common limits do not reach it");
        let names: Vec<String> = controls.overrides().into_iter().map(|(_, status)| status.name).collect();
        assert_eq!(names, ["exposure_max", "shares_max"]);
        controls.apply(FIRST, &reset(&["exposure_max"]), 2);
        assert_eq!(controls.limits_of(FIRST), Limits { exposure_max: Some(5.0), ..shares(10) });
        controls.apply(FIRST, &reset(&[]), 2);
        assert_eq!(controls.limits_of(FIRST), common);
    }

    #[test]
    fn a_file_that_is_read_again_keeps_what_operators_have_set() {
        let set_by_operator = (FIRST, set(serde_json::json!({"notional_max": 7.0})));
        let before = started(shares(10), &[set_by_operator]);
        let mut after = before.clone();
        let third = AccountId(2);
        after.set_file(&shares(20), &[(AccountId(0), None), (AccountId(1), None), (third, Some(shares(5)))]);
        assert_eq!(after.limits_of(FIRST), Limits { notional_max: Some(7.0), ..shares(20) });
        assert_eq!([after.limits_of(SECOND), after.limits_of(Some(third))], [shares(20), shares(5)]);
        let changed = after.changed_from(&before).expect("they are valid");
        let changed: Vec<_> = changed.iter().map(|(account, limits)| (*account, limits.is_some())).collect();
        assert_eq!(changed, [(None, true), (FIRST, true), (Some(third), true)]);
        // An account whose own limits leave the file has the common ones again.
        let mut last = after.clone();
        last.set_file(&shares(20), &[(AccountId(0), None), (third, None)]);
        assert_eq!(last.changed_from(&after), Ok(vec![(Some(third), None)]));
        assert_eq!(last.changed_from(&last), Ok(Vec::new()));
    }

    #[test]
    fn a_burst_whose_rate_the_file_has_no_longer_is_left_out() {
        let rated = Limits { orders_per_second: Some(10), ..Limits::default() };
        let burst = || (None, set(serde_json::json!({"orders_burst": 5})));
        let controls = started(rated, &[burst()]);
        assert_eq!(controls.limits_of(FIRST).orders_burst, Some(5));
        let later = started(Limits::default(), &[burst()]);
        assert_eq!(later.limits_of(FIRST), Limits::default());
        assert!(later.resolved(None).is_ok());
        let set = |value: Value| match set(value) {
            Change::LimitValues { set, .. } => set,
            _ => panic!("it sets limits"),
        };
        let tighter = set(serde_json::json!({"shares_max": 5}));
        assert_eq!(later.check_set(FIRST, &tighter), Ok(()), "it is not refused for the burst");
        assert!(later.check_set(None, &set(serde_json::json!({"orders_burst": 5}))).is_err());
    }

    #[test]
    fn a_limit_that_does_not_exist_is_refused_by_its_name() {
        for value in [Value::from(1), Value::Null] {
            let unknown = Map::from_iter([("shares".to_owned(), value)]);
            assert!(Change::set_limits(None, unknown).is_err_and(|error| error.contains("\"shares\"")));
        }
        let unknown = BTreeSet::from(["shares".to_owned()]);
        assert!(Change::reset_limits(None, unknown).is_err_and(|error| error.contains("\"shares\"")));
    }
}
