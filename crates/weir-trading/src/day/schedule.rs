//! When the sessions of a trading day begin and end.
//!
//! Local time has a fixed distance from UTC. So every session is as long as it says, none is skipped and none comes
//! twice. Korea, China and Japan have such a time; a place that changes its clocks in summer has two, and its
//! schedule has to be changed with the clocks.

use std::collections::BTreeSet;

/// Seconds of a day.
pub(super) const DAY_S: i64 = 86_400;
/// Most sessions of a day.
pub const SESSIONS_MAX: usize = 16;
/// Most holidays.
pub const HOLIDAYS_MAX: usize = 4096;
/// Days in which the next session is searched. If they have none, there is none.
const SEARCH_DAYS: i64 = 400;
/// 1970-01-01 was a Thursday; the week begins with Monday.
const WEEKDAY_OF_DAY_0: i64 = 3;

/// What becomes of the orders that are open at the end of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenOrders {
    /// They are cancelled at their exchanges.
    #[default]
    Cancel,
    /// Their exchanges end them.
    Expire,
    /// They stay open.
    Carry,
}

/// A session of every trading day, in seconds after the local midnight of its date. Its end may be on the next day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionTimes {
    /// Its name.
    pub name: String,
    /// Its begin.
    pub begins_s: i64,
    /// Its end, which is not part of it.
    pub ends_s: i64,
    /// What becomes of open orders at its end.
    pub open_orders: OpenOrders,
}

/// A session on one date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Name of the session.
    pub name: String,
    /// The local date on which it begins: days since 1970-01-01.
    pub date: i64,
    /// Its begin, in seconds since 1970.
    pub begins_at: i64,
    /// Its end; `None`: an operator ends it.
    pub ends_at: Option<i64>,
    /// What becomes of open orders at its end.
    pub open_orders: OpenOrders,
}

impl Slot {
    /// Whether its end has come.
    pub fn has_ended(&self, now: i64) -> bool {
        self.ends_at.is_some_and(|ends_at| now >= ends_at)
    }
}

/// Why there can be no such schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleError {
    /// The session that is wrong, by its place; `None`: the weekdays or the holidays are.
    pub session: Option<usize>,
    /// The reason, in words.
    pub message: String,
}

/// The sessions of all dates. Times are in seconds since 1970, dates in days.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    offset_s: i64,
    weekdays: [bool; 7],
    holidays: BTreeSet<i64>,
    /// In order, without overlap.
    sessions: Vec<SessionTimes>,
}

impl Schedule {
    /// Sessions on these days of the week, from Monday on, except on holidays. Local time is `offset_s` ahead of UTC.
    /// Without sessions, operators begin and end days.
    ///
    /// # Errors
    /// A session does not end after its begin, begins before the one before it has ended, or has the name of another;
    /// there are sessions and no days for them; there are too many of them, or of holidays.
    pub fn new(
        offset_s: i64,
        weekdays: [bool; 7],
        holidays: BTreeSet<i64>,
        sessions: Vec<SessionTimes>,
    ) -> Result<Self, ScheduleError> {
        let wrong = |session, message: String| Err(ScheduleError { session, message });
        if sessions.len() > SESSIONS_MAX {
            return wrong(Some(SESSIONS_MAX), format!("there are more than {SESSIONS_MAX} sessions"));
        }
        if holidays.len() > HOLIDAYS_MAX {
            return wrong(None, format!("there are more than {HOLIDAYS_MAX} holidays"));
        }
        if !sessions.is_empty() && weekdays == [false; 7] {
            return wrong(None, "there are sessions, and no day of the week has them".into());
        }
        for (place, session) in sessions.iter().enumerate() {
            let SessionTimes { name, begins_s, ends_s, .. } = session;
            if begins_s >= ends_s {
                return wrong(Some(place), format!("session {name} does not end after its start"));
            }
            if !(0..DAY_S).contains(begins_s) || *ends_s > 2 * DAY_S {
                return wrong(Some(place), format!("session {name} starts before 24:00 and ends by 48:00"));
            }
            if sessions[..place].iter().any(|before| before.name == *name) {
                return wrong(Some(place), format!("two sessions have the name {name}"));
            }
            if let Some(before) = place.checked_sub(1).map(|before| &sessions[before])
                && *begins_s < before.ends_s
            {
                let before = &before.name;
                return wrong(Some(place), format!("session {name} starts before {before} has ended"));
            }
        }
        if let (Some(first), Some(last)) = (sessions.first(), sessions.last())
            && last.ends_s > first.begins_s + DAY_S
        {
            let (first, last) = (&first.name, &last.name);
            let message = format!("session {last} ends after {first} has started on the next day");
            return wrong(Some(sessions.len() - 1), message);
        }
        Ok(Self { offset_s, weekdays, holidays, sessions })
    }

    /// Whether it has no session: operators begin and end days.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// The sessions of a trading day.
    pub fn sessions(&self) -> &[SessionTimes] {
        &self.sessions
    }

    /// How far local time is ahead of UTC, in seconds.
    pub fn offset_s(&self) -> i64 {
        self.offset_s
    }

    /// The number of holidays.
    pub fn holidays(&self) -> usize {
        self.holidays.len()
    }

    /// The local date at a time.
    pub fn date_at(&self, now: i64) -> i64 {
        now.saturating_add(self.offset_s).div_euclid(DAY_S)
    }

    /// Whether a date has sessions.
    pub fn is_trading_day(&self, date: i64) -> bool {
        let weekday = date.saturating_add(WEEKDAY_OF_DAY_0).rem_euclid(7) as usize;
        self.weekdays[weekday] && !self.holidays.contains(&date)
    }

    /// The sessions of a date, in order.
    pub fn slots_of(&self, date: i64) -> impl DoubleEndedIterator<Item = Slot> + '_ {
        let sessions: &[SessionTimes] = if self.is_trading_day(date) { &self.sessions } else { &[] };
        let midnight = date.saturating_mul(DAY_S).saturating_sub(self.offset_s);
        sessions.iter().map(move |session| Slot {
            name: session.name.clone(),
            date,
            begins_at: midnight.saturating_add(session.begins_s),
            ends_at: Some(midnight.saturating_add(session.ends_s)),
            open_orders: session.open_orders,
        })
    }

    /// The session at a time.
    pub fn open_at(&self, now: i64) -> Option<Slot> {
        let today = self.date_at(now);
        // One of yesterday may end today.
        let mut slots = [today - 1, today].into_iter().flat_map(|date| self.slots_of(date));
        slots.find(|slot| slot.begins_at <= now && !slot.has_ended(now))
    }

    /// The first session that begins after a time.
    pub fn next_after(&self, now: i64) -> Option<Slot> {
        let today = self.date_at(now);
        let mut slots = (today..today + SEARCH_DAYS).flat_map(|date| self.slots_of(date));
        slots.find(|slot| slot.begins_at > now)
    }

    /// Whether no session of a date is open at a time or begins later.
    pub fn is_over(&self, date: i64, now: i64) -> bool {
        self.slots_of(date).next_back().is_none_or(|last| last.has_ended(now))
    }

    /// The session that begins at this time.
    pub(super) fn slot_from(&self, begins_at: i64) -> Option<Slot> {
        self.slots_of(self.date_at(begins_at)).find(|slot| slot.begins_at == begins_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3600;
    const WORKDAYS: [bool; 7] = [true, true, true, true, true, false, false];
    /// 2026-12-01, a Tuesday.
    const TUESDAY: i64 = 20_788;

    fn session(name: &str, begins_s: i64, ends_s: i64) -> SessionTimes {
        SessionTimes { name: name.into(), begins_s, ends_s, open_orders: OpenOrders::Cancel }
    }

    /// Three sessions in Korea.
    fn korea(holidays: &[i64]) -> Schedule {
        let sessions = vec![
            session("pre", 7 * HOUR, 8 * HOUR),
            session("main", 9 * HOUR, 15 * HOUR + 1800),
            session("after", 16 * HOUR, 20 * HOUR),
        ];
        let holidays = holidays.iter().copied().collect();
        Schedule::new(9 * HOUR, WORKDAYS, holidays, sessions).expect("it is right")
    }

    fn at(date: i64, local_s: i64) -> i64 {
        date * DAY_S - 9 * HOUR + local_s
    }

    fn name(slot: Option<Slot>) -> Option<(i64, String)> {
        slot.map(|slot| (slot.date, slot.name))
    }

    #[test]
    fn a_session_includes_its_begin_and_not_its_end() {
        let schedule = korea(&[]);
        let open = |local_s| name(schedule.open_at(at(TUESDAY, local_s))).map(|(_, name)| name);
        for (local_s, expected) in [
            (7 * HOUR - 1, None),
            (7 * HOUR, Some("pre")),
            (8 * HOUR - 1, Some("pre")),
            (8 * HOUR, None),
            (9 * HOUR, Some("main")),
            (15 * HOUR + 1799, Some("main")),
            (15 * HOUR + 1800, None),
            (20 * HOUR - 1, Some("after")),
            (20 * HOUR, None),
        ] {
            assert_eq!(open(local_s).as_deref(), expected, "{local_s}");
        }
        let is_over = |local_s| schedule.is_over(TUESDAY, at(TUESDAY, local_s));
        assert_eq!([is_over(0), is_over(20 * HOUR - 1), is_over(20 * HOUR)], [false, false, true]);
    }

    #[test]
    fn weekends_and_holidays_have_no_session() {
        // The Monday behind the weekend is a holiday.
        let schedule = korea(&[TUESDAY + 6]);
        let friday_evening = at(TUESDAY + 3, 21 * HOUR);
        let next = name(schedule.next_after(friday_evening));
        assert_eq!(next, Some((TUESDAY + 7, "pre".into())));
        for date in [TUESDAY + 4, TUESDAY + 5, TUESDAY + 6] {
            assert!(!schedule.is_trading_day(date));
            assert_eq!(schedule.open_at(at(date, 10 * HOUR)), None);
            assert!(schedule.is_over(date, at(date, 0)));
        }
        assert!(schedule.is_trading_day(TUESDAY + 7));
    }

    #[test]
    fn a_night_session_belongs_to_the_date_of_its_begin() {
        let sessions = vec![session("day", 9 * HOUR, 16 * HOUR), session("night", 18 * HOUR, 30 * HOUR)];
        let schedule = Schedule::new(9 * HOUR, WORKDAYS, BTreeSet::new(), sessions).expect("it is right");
        let (friday, saturday) = (TUESDAY + 3, TUESDAY + 4);
        assert_eq!(name(schedule.open_at(at(saturday, 5 * HOUR))), Some((friday, "night".into())));
        assert_eq!(name(schedule.open_at(at(saturday, 6 * HOUR))), None);
        assert!(!schedule.is_over(friday, at(saturday, 5 * HOUR)));
        assert!(schedule.is_over(friday, at(saturday, 6 * HOUR)));
    }

    #[test]
    fn what_is_no_schedule_is_refused_by_its_session() {
        let of = |sessions: Vec<SessionTimes>| {
            let error = Schedule::new(0, WORKDAYS, BTreeSet::new(), sessions).expect_err("it is wrong");
            (error.session, error.message)
        };
        let (a, b) = (session("a", HOUR, 2 * HOUR), session("b", 2 * HOUR, 3 * HOUR));
        assert_eq!(of(vec![session("a", HOUR, HOUR)]).0, Some(0));
        assert_eq!(of(vec![b.clone(), a.clone()]), (Some(1), "session a starts before b has ended".into()));
        assert_eq!(of(vec![a.clone(), session("a", 2 * HOUR, 3 * HOUR)]).0, Some(1));
        let late = session("c", 4 * HOUR, 26 * HOUR);
        assert_eq!(
            of(vec![a.clone(), b, late]),
            (Some(2), "session c ends after a has started on the next day".into())
        );
        assert_eq!(of(vec![session("a", 24 * HOUR, 25 * HOUR)]).0, Some(0));
        let hour = |place: i64| session(&place.to_string(), place * HOUR, place * HOUR + 1);
        assert_eq!(of((0..17).map(hour).collect()).0, Some(SESSIONS_MAX));
        assert!(Schedule::new(0, WORKDAYS, BTreeSet::new(), (0..16).map(hour).collect()).is_ok());
        let error = Schedule::new(0, [false; 7], BTreeSet::new(), vec![a]).expect_err("it is never open");
        assert_eq!(error.session, None);
        let holidays = |count| Schedule::new(0, WORKDAYS, (0..count).collect(), Vec::new());
        assert!(holidays(HOLIDAYS_MAX as i64).is_ok() && holidays(HOLIDAYS_MAX as i64 + 1).is_err());
    }

    #[test]
    fn a_calendar_without_a_trading_day_has_no_next_session() {
        let all = (TUESDAY..TUESDAY + HOLIDAYS_MAX as i64).collect();
        let sessions = vec![session("a", HOUR, 2 * HOUR)];
        let schedule = Schedule::new(0, [true; 7], all, sessions).expect("it is right");
        assert_eq!(schedule.next_after(TUESDAY * DAY_S), None);
        for now in [i64::MIN, i64::MAX] {
            assert_eq!(schedule.open_at(now), None);
        }
    }
}
