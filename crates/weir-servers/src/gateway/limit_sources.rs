//! The origin of each limit: the configuration, or an operator. Nothing here does I/O or reads a clock.
//!
//! An operator's value stands beside the configuration's, not in its place: each is stored by name, so that a change
//! of one limit leaves the others to the configuration, and can be taken back.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use weir_record::calendar::utc;

use super::account_limits::Limits;

/// The names of all limits, in alphabetical order.
pub(super) const NAMES: [&str; 13] = [
    "cancels_burst",
    "cancels_per_second",
    "duplicates_max",
    "duplicates_window_ms",
    "exposure_max",
    "fat_finger_percent",
    "notional_max",
    "orders_burst",
    "orders_per_second",
    "restricted",
    "shares_max",
    "symbol_orders_burst",
    "symbol_orders_per_second",
];

/// The origin of a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitOrigin {
    /// There is no such limit.
    #[default]
    Default,
    /// The configuration.
    File,
    /// An operator, at run time.
    Operator,
}

/// One limit, and its origin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitStatus {
    /// Its name, as in [`Limits`].
    pub name: String,
    /// Its value; `null` if there is no limit.
    pub value: Value,
    /// Its origin.
    pub origin: LimitOrigin,
    /// It is a common limit: the account has no separate value.
    pub is_common: bool,
    /// When an operator has set it, in nanoseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_at_ns: Option<u64>,
    /// Behind an operator's value: the value that applies without it, `null` for no limit.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub without: Option<Value>,
}

/// A value that is there, also if it is `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl LimitStatus {
    /// An operator's value, set in this place, that changes what applies.
    pub(super) fn is_override(&self) -> bool {
        let differs = self.without.as_ref().is_some_and(|without| *without != self.value);
        self.origin == LimitOrigin::Operator && !self.is_common && differs
    }
}

impl fmt::Display for LimitStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} = {} (", self.name, shown(&self.value))?;
        if self.is_common {
            formatter.write_str("common limit; ")?;
        }
        match self.origin {
            LimitOrigin::Default => formatter.write_str("default")?,
            LimitOrigin::File => formatter.write_str("file")?,
            LimitOrigin::Operator => {
                write!(formatter, "operator, {}", time(self.set_at_ns.unwrap_or_default()))?;
                if let Some(without) = &self.without {
                    write!(formatter, "; without it {}", shown(without))?;
                }
            }
        }
        formatter.write_str(")")
    }
}

/// A value as `weir ctl limits` takes it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "off".to_owned(),
        Value::Array(symbols) => symbols.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// Date and time of nanoseconds since 1970.
pub(super) fn time(ns: u64) -> String {
    let [year, month, day, hour, minute, second] = utc(ns / 1_000_000_000);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// A value that an operator has set; `null` for no limit.
#[derive(Clone, Debug, PartialEq)]
struct OperatorValue {
    value: Value,
    at_ns: u64,
}

/// The origins of an account's limits, or of the common limits.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LimitSources {
    /// The configuration's own limits; an account without them has the common limits in their place.
    file: Option<Limits>,
    operator: BTreeMap<&'static str, OperatorValue>,
}

impl LimitSources {
    /// What a configuration says.
    pub(super) fn of_file(file: Option<Limits>) -> Self {
        Self { file, operator: BTreeMap::new() }
    }

    /// Replaces what the configuration says.
    pub(super) fn set_file(&mut self, file: Option<Limits>) {
        self.file = file;
    }

    /// Whether an account has the common limits and no others.
    pub(super) fn is_common(&self) -> bool {
        self.file.is_none() && self.operator.is_empty()
    }

    /// Whether an operator has set a value here.
    pub(super) fn has_operator_values(&self) -> bool {
        !self.operator.is_empty()
    }

    /// Whether a change of the common limits may change these.
    pub(super) fn depends_on_common(&self) -> bool {
        self.file.is_none()
    }

    /// The limits that apply. `common` are the common limits, or none for these themselves.
    pub(super) fn over(&self, common: &Limits) -> Limits {
        let base = self.file.as_ref().unwrap_or(common);
        if self.operator.is_empty() {
            return base.clone();
        }
        let set = self.operator.iter().map(|(name, set)| ((*name).to_owned(), set.value.clone()));
        // Each value was valid when it was stored.
        base.with(set.collect()).unwrap_or_else(|_| base.clone())
    }

    /// Stores an operator's values; names and values that do not exist are left out.
    pub(super) fn set(&mut self, values: &Map<String, Value>, at_ns: u64) {
        for (name, value) in values {
            let single = Map::from_iter([(name.clone(), value.clone())]);
            let known = NAMES.into_iter().find(|known| known == name);
            if let (Some(known), Ok(_)) = (known, Limits::default().with(single)) {
                self.operator.insert(known, OperatorValue { value: value.clone(), at_ns });
            }
        }
    }

    /// Stores a value for every limit, as earlier versions recorded each change. Values that do not change keep their
    /// time.
    pub(super) fn set_all(&mut self, limits: &Limits, at_ns: u64) {
        let values = values_of(limits);
        for name in NAMES {
            let value = values.get(name).cloned().unwrap_or_default();
            let before = self.operator.get(name).filter(|before| before.value == value);
            let at_ns = before.map_or(at_ns, |before| before.at_ns);
            self.operator.insert(name, OperatorValue { value, at_ns });
        }
    }

    /// Removes an operator's values of these names, or all of them if no name is given.
    pub(super) fn reset<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) {
        let mut names = names.into_iter().peekable();
        if names.peek().is_none() {
            self.operator.clear();
        }
        names.for_each(|name| _ = self.operator.remove(name));
    }

    /// Every limit with its origin. `common` are the origins of the common limits, if these are an account's.
    pub(super) fn statuses(&self, common: Option<&[LimitStatus]>) -> Vec<LimitStatus> {
        let file = self.file.as_ref().map(values_of);
        let status = |(place, name): (usize, &&'static str)| {
            let below = self.below(name, file.as_ref(), common.and_then(|common| common.get(place)));
            match self.operator.get(name) {
                None => below,
                Some(set) => LimitStatus {
                    name: below.name,
                    value: set.value.clone(),
                    origin: LimitOrigin::Operator,
                    is_common: false,
                    set_at_ns: Some(set.at_ns),
                    without: Some(below.value),
                },
            }
        };
        NAMES.iter().enumerate().map(status).collect()
    }

    /// A limit without the operator's value that is set here.
    fn below(
        &self,
        name: &str,
        file: Option<&Map<String, Value>>,
        common: Option<&LimitStatus>,
    ) -> LimitStatus {
        if let (None, Some(common)) = (file, common) {
            return LimitStatus { is_common: true, without: None, ..common.clone() };
        }
        let value = file.and_then(|file| file.get(name)).cloned().unwrap_or_default();
        let origin = if value.is_null() { LimitOrigin::Default } else { LimitOrigin::File };
        LimitStatus { name: name.to_owned(), value, origin, ..LimitStatus::default() }
    }
}

/// The limits that are set, by name.
pub(super) fn values_of(limits: &Limits) -> Map<String, Value> {
    match serde_json::to_value(limits) {
        Ok(Value::Object(values)) => values,
        // It is data and has names.
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn values(values: Value) -> Map<String, Value> {
        match values {
            Value::Object(values) => values,
            _ => panic!("an object"),
        }
    }

    fn status<'s>(all: &'s [LimitStatus], name: &str) -> &'s LimitStatus {
        all.iter().find(|status| status.name == name).expect("every limit is there")
    }

    #[test]
    fn the_names_are_those_of_all_limits() {
        let all = Limits {
            orders_per_second: Some(1),
            cancels_burst: Some(1),
            cancels_per_second: Some(1),
            orders_burst: Some(1),
            symbol_orders_per_second: Some(1),
            symbol_orders_burst: Some(1),
            duplicates_max: Some(1),
            duplicates_window_ms: Some(1),
            fat_finger_percent: Some(1.0),
            shares_max: Some(1),
            notional_max: Some(1.0),
            exposure_max: Some(1.0),
            restricted: vec!["A".into()],
        };
        let values = values_of(&all);
        assert_eq!(values.keys().map(String::as_str).collect::<BTreeSet<_>>(), BTreeSet::from(NAMES));
    }

    #[test]
    fn an_operators_value_stands_over_the_file_until_it_is_reset() {
        let file = Limits { shares_max: Some(10), notional_max: Some(5.0), ..Limits::default() };
        let mut sources = LimitSources::of_file(Some(file.clone()));
        let set = values(serde_json::json!({"shares_max": 50, "notional_max": null, "exposure_max": 7.0}));
        sources.set(&set, 1_000_000_000);
        let expected = Limits { shares_max: Some(50), exposure_max: Some(7.0), ..Limits::default() };
        assert_eq!(sources.over(&Limits::default()), expected);
        let all = sources.statuses(None);
        assert_eq!(
            ["shares_max", "notional_max", "exposure_max", "restricted"]
                .map(|name| status(&all, name).to_string()),
            [
                "shares_max = 50 (operator, 1970-01-01 00:00:01 UTC; without it 10)",
                "notional_max = off (operator, 1970-01-01 00:00:01 UTC; without it 5.0)",
                "exposure_max = 7.0 (operator, 1970-01-01 00:00:01 UTC; without it off)",
                "restricted = off (default)",
            ]
        );
        assert_eq!(all.iter().filter(|status| status.is_override()).count(), 3);
        let text = serde_json::to_string(&all).expect("it is data");
        assert_eq!(serde_json::from_str::<Vec<LimitStatus>>(&text).expect("it is the same"), all);
        sources.reset(["shares_max"]);
        assert_eq!(status(&sources.statuses(None), "shares_max").to_string(), "shares_max = 10 (file)");
        sources.reset([]);
        assert_eq!(sources.over(&Limits::default()), file);
    }

    #[test]
    fn an_account_has_the_common_limits_beside_the_ones_that_were_set_for_it() {
        let mut account = LimitSources::of_file(None);
        assert!(account.is_common());
        account.set(&values(serde_json::json!({"shares_max": 10})), 1_000_000_000);
        let common = Limits { shares_max: Some(99), exposure_max: Some(7.0), ..Limits::default() };
        let expected = Limits { shares_max: Some(10), ..common.clone() };
        assert_eq!(account.over(&common), expected, "a later common limit too");
        let of_common = LimitSources::of_file(Some(common)).statuses(None);
        let all = account.statuses(Some(&of_common));
        assert_eq!(status(&all, "exposure_max").to_string(), "exposure_max = 7.0 (common limit; file)");
        assert_eq!(status(&all, "shares_max").without, Some(99.into()));
        account.reset(["shares_max", "exposure_max"]);
        assert!(account.is_common());
    }

    #[test]
    fn a_value_for_every_limit_leaves_nothing_to_the_common_ones_and_keeps_the_times_of_old_values() {
        let mut account = LimitSources::of_file(None);
        let first = Limits { shares_max: Some(10), ..Limits::default() };
        let second = Limits { notional_max: Some(2.0), ..first.clone() };
        account.set_all(&first, 1_000_000_000);
        account.set_all(&second, 2_000_000_000);
        let common = Limits { exposure_max: Some(7.0), ..Limits::default() };
        assert_eq!(account.over(&common), second);
        let all = account.statuses(Some(&LimitSources::of_file(Some(common)).statuses(None)));
        let times = ["shares_max", "notional_max", "exposure_max"].map(|name| status(&all, name).set_at_ns);
        assert_eq!(times, [Some(1_000_000_000), Some(2_000_000_000), Some(1_000_000_000)]);
    }

    #[test]
    fn a_value_that_is_none_is_not_stored() {
        let mut sources = LimitSources::of_file(Some(Limits::default()));
        sources.set(&values(serde_json::json!({"shares": 1, "shares_max": "many"})), 1);
        assert_eq!(sources, LimitSources::of_file(Some(Limits::default())));
    }
}
