//! The trading day as operators see it.

use std::{fmt, time::SystemTime};

use serde::{Deserialize, Serialize};
use weir_trading::day::Phase;

use super::{
    record::{date_words, time_words},
    seconds,
};
use crate::gateway::GatewayControl;

/// The state of the trading day.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DayStatus {
    /// `open`: orders are taken; `closed`: between two sessions of a day; `over`; `none`: none was begun yet.
    pub phase: String,
    /// The session that is open, or was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Its date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Its end, in local time; absent if an operator ends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends: Option<String>,
    /// The next session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// When that starts, in local time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_starts: Option<String>,
    /// Why a step that is due is not carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
}

impl fmt::Display for DayStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (session, date) = (self.session.as_deref().unwrap_or("?"), self.date.as_deref().unwrap_or("?"));
        match self.phase.as_str() {
            "open" => write!(formatter, "day: session {session} of {date} is open")?,
            "closed" => write!(formatter, "day: closed; session {session} of {date} has ended")?,
            "over" => write!(formatter, "day: closed; the day {date} is over")?,
            _ => write!(formatter, "day: closed; no session was begun yet")?,
        }
        match (&self.ends, &self.next, &self.next_starts) {
            (Some(ends), ..) => write!(formatter, " until {ends}")?,
            (None, Some(next), Some(starts)) => write!(formatter, "; next: {next} from {starts}")?,
            (None, ..) => {}
        }
        match &self.waits {
            Some(waits) => write!(formatter, "; it waits: {waits}"),
            None => Ok(()),
        }
    }
}

impl GatewayControl {
    /// The state of the trading day; `None` without `[day]`.
    pub fn day_status(&self) -> Option<DayStatus> {
        let config = self.shared.day.config()?;
        let (schedule, standing) = (&config.schedule, self.shared.standing());
        let waits = self.shared.day.trouble();
        let offset_s = schedule.offset_s();
        let is_open = standing.as_ref().is_some_and(|standing| standing.phase == Phase::Open);
        let next = if is_open { None } else { schedule.next_after(seconds(SystemTime::now())) };
        let phase = match standing.as_ref().map(|standing| standing.phase) {
            None => "none",
            Some(Phase::Open) => "open",
            Some(Phase::Closed) => "closed",
            Some(Phase::Over) => "over",
        };
        let slot = standing.map(|standing| standing.slot);
        let ends_at = slot.as_ref().and_then(|slot| slot.ends_at).filter(|_| is_open);
        Some(DayStatus {
            phase: phase.into(),
            date: slot.as_ref().map(|slot| date_words(slot.date)),
            session: slot.map(|slot| slot.name),
            ends: ends_at.map(|at| time_words(at, offset_s)),
            next_starts: next.as_ref().map(|next| time_words(next.begins_at, offset_s)),
            next: next.map(|next| next.name),
            waits,
        })
    }

    /// Whether a step of the day waits for something.
    pub(in crate::gateway) fn day_waits(&self) -> bool {
        self.shared.day.trouble().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_holds_until_when_and_why_it_waits() {
        let some = |text: &str| Some(text.to_owned());
        let open = DayStatus {
            phase: "open".into(),
            session: some("main"),
            date: some("2026-12-01"),
            ends: some("2026-12-01 15:30:00 (+09:00)"),
            ..DayStatus::default()
        };
        assert_eq!(
            open.to_string(),
            "day: session main of 2026-12-01 is open until 2026-12-01 15:30:00 (+09:00)"
        );
        let closed = DayStatus {
            phase: "closed".into(),
            ends: None,
            next: some("after"),
            next_starts: some("2026-12-01 16:00:00 (+09:00)"),
            ..open.clone()
        };
        assert_eq!(
            closed.to_string(),
            "day: closed; session main of 2026-12-01 has ended; next: after from 2026-12-01 16:00:00 (+09:00)"
        );
        let over = DayStatus { phase: "over".into(), ends: None, waits: some("an order is open"), ..open };
        assert_eq!(over.to_string(), "day: closed; the day 2026-12-01 is over; it waits: an order is open");
        let none = DayStatus { phase: "none".into(), ..DayStatus::default() };
        assert_eq!(none.to_string(), "day: closed; no session was begun yet");
    }
}
