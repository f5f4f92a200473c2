//! What a journal has of the trading day.

use serde::{Deserialize, Serialize};
use weir_record::calendar::utc;
use weir_trading::day::{OpenOrders, Phase, Slot, Standing};

use super::settings::date_in;

const DAY_S: u64 = 86_400;

/// A step of the day, as it is journaled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::gateway) struct DayRecord {
    /// What the session is now.
    #[serde(with = "PhaseName")]
    phase: Phase,
    /// The session of the day.
    session: String,
    /// The local date of its begin.
    #[serde(with = "date_text")]
    date: i64,
    /// Seconds since 1970; an operator ends it if it has no end.
    begins_at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ends_at: Option<i64>,
    #[serde(with = "OpenOrdersName")]
    open_orders: OpenOrders,
    /// How many sessions with clients had ended before.
    generation: u16,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Phase", rename_all = "snake_case")]
enum PhaseName {
    Open,
    Closed,
    Over,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "OpenOrders", rename_all = "snake_case")]
enum OpenOrdersName {
    Cancel,
    Expire,
    Carry,
}

/// A date in words.
mod date_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(date: &i64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::date_words(*date))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
        let text = String::deserialize(deserializer)?;
        super::date_in(&text).ok_or_else(|| Error::custom("this is no date"))
    }
}

impl DayRecord {
    pub(in crate::gateway) fn new(standing: &Standing) -> Self {
        let Standing { slot, phase, generation } = standing.clone();
        let Slot { name: session, date, begins_at, ends_at, open_orders } = slot;
        Self { phase, session, date, begins_at, ends_at, open_orders, generation }
    }

    pub(in crate::gateway) fn standing(&self) -> Standing {
        let Self { phase, session, date, begins_at, ends_at, open_orders, generation } = self.clone();
        let slot = Slot { name: session, date, begins_at, ends_at, open_orders };
        Standing { slot, phase, generation }
    }
}

/// A date as it is written: `2026-12-01`.
pub(super) fn date_words(date: i64) -> String {
    let [year, month, day, ..] = utc(u64::try_from(date).unwrap_or_default().saturating_mul(DAY_S));
    format!("{year:04}-{month:02}-{day:02}")
}

/// A time in local time: `2026-12-01 09:00:00 (+09:00)`.
pub(super) fn time_words(at: i64, offset_s: i64) -> String {
    let local = u64::try_from(at.saturating_add(offset_s)).unwrap_or_default();
    let [year, month, day, hour, minute, second] = utc(local);
    let (sign, distance) = (if offset_s < 0 { '-' } else { '+' }, offset_s.unsigned_abs());
    let (hours, minutes) = (distance / 3600, distance / 60 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} ({sign}{hours:02}:{minutes:02})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_what_was_recorded_and_can_be_read() {
        let slot = Slot {
            name: "main".into(),
            date: 20_788,
            begins_at: 1_796_083_200,
            ends_at: Some(1_796_106_600),
            open_orders: OpenOrders::Expire,
        };
        let standing = Standing { slot, phase: Phase::Open, generation: 3 };
        let text = serde_json::to_string(&DayRecord::new(&standing)).expect("it is data");
        let expected = r#"{"phase":"open","session":"main","date":"2026-12-01","begins_at":1796083200,"ends_at":1796106600,"open_orders":"expire","generation":3}"#;
        assert_eq!(text, expected);
        let read: DayRecord = serde_json::from_str(&text).expect("it was written");
        assert_eq!(read.standing(), standing);
        let by_hand = Standing { slot: Slot { ends_at: None, ..standing.slot.clone() }, ..standing };
        let text = serde_json::to_string(&DayRecord::new(&by_hand)).expect("it is data");
        assert!(!text.contains("ends_at"), "{text}");
        let read: DayRecord = serde_json::from_str(&text).expect("it was written");
        assert_eq!(read.standing(), by_hand);
        assert!(serde_json::from_str::<DayRecord>(&text.replace("2026-12-01", "2026-02-30")).is_err());
    }

    #[test]
    fn times_are_told_in_local_time_with_its_distance() {
        assert_eq!(time_words(1_796_083_200, 32_400), "2026-12-01 09:00:00 (+09:00)");
        assert_eq!(time_words(1_796_083_200, -12_600), "2026-11-30 20:30:00 (-03:30)");
        assert_eq!(date_words(20_788), "2026-12-01");
    }
}
