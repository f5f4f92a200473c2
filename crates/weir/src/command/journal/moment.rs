//! Times of records: nanoseconds since 1970, as text in UTC and back.

use weir_record::calendar::{seconds_of, utc};

const SECOND_NS: u64 = 1_000_000_000;
const DIGITS: usize = 9;

/// `2026-03-02T09:00:00.123456789Z`
pub(super) fn shown(t_ns: u64) -> String {
    let [year, month, day, hour, minute, second] = utc(t_ns / SECOND_NS);
    let rest_ns = t_ns % SECOND_NS;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{rest_ns:09}Z")
}

/// Reads a day, or a day and a time with or without seconds, a fraction and a zone; `None` if it is none. Without a
/// zone it is UTC.
pub(super) fn parse(text: &str) -> Option<u64> {
    let (day, time) = match text.split_once(['T', ' ']) {
        Some((day, time)) => (day, time),
        None => (text, "00:00"),
    };
    let (time, ahead_seconds) = zone(time)?;
    let (time, fraction) = match time.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (time, ""),
    };
    let mut date = day.split('-');
    let (year, month, day) = (number(date.next()?, 4)?, number(date.next()?, 2)?, number(date.next()?, 2)?);
    let mut clock = time.split(':');
    let (hour, minute) = (number(clock.next()?, 2)?, number(clock.next()?, 2)?);
    let second = match clock.next() {
        Some(second) => number(second, 2)?,
        None if fraction.is_empty() => 0,
        None => return None,
    };
    if date.next().is_some() || clock.next().is_some() {
        return None;
    }
    let local = i64::try_from(seconds_of([year, month, day, hour, minute, second])?).ok()?;
    let seconds = u64::try_from(local - ahead_seconds).ok()?;
    seconds.checked_mul(SECOND_NS)?.checked_add(nanoseconds(fraction)?)
}

/// The time without its zone, and how far that zone is ahead of UTC.
fn zone(time: &str) -> Option<(&str, i64)> {
    if let Some(time) = time.strip_suffix('Z') {
        return Some((time, 0));
    }
    let Some(at) = time.find(['+', '-']) else { return Some((time, 0)) };
    let (time, zone) = time.split_at(at);
    let (hours, minutes) = zone[1..].split_once(':')?;
    let (hours, minutes) = (number(hours, 2)?, number(minutes, 2)?);
    let ahead = hours * 3600 + minutes * 60;
    (hours < 24 && minutes < 60).then_some((time, if zone.starts_with('-') { -ahead } else { ahead }))
}

/// A number of exactly this many digits.
fn number(text: &str, digits: usize) -> Option<i64> {
    let is_it = text.len() == digits && text.bytes().all(|digit| digit.is_ascii_digit());
    is_it.then(|| text.parse().ok()).flatten()
}

/// The nanoseconds of a fraction of a second.
fn nanoseconds(fraction: &str) -> Option<u64> {
    if fraction.is_empty() {
        return Some(0);
    }
    if fraction.len() > DIGITS || !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    format!("{fraction:0<DIGITS$}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_back() {
        for t_ns in [0, 1, 1_772_442_000_000_000_000, 951_827_696_987_654_321, u64::MAX] {
            assert_eq!(parse(&shown(t_ns)), Some(t_ns), "{}", shown(t_ns));
        }
        assert_eq!(shown(951_827_696_000_000_005), "2000-02-29T12:34:56.000000005Z");
    }

    #[test]
    fn a_time_may_be_short_and_may_have_a_zone() {
        let nine = parse("2026-03-02T09:00:00Z");
        assert!(nine.is_some());
        for same in [
            "2026-03-02T09:00",
            "2026-03-02 09:00",
            "2026-03-02T09:00:00",
            "2026-03-02T09:00:00.0",
            "2026-03-02T18:00+09:00",
            "2026-03-01T23:30:00.000-09:30",
        ] {
            assert_eq!(parse(same), nine, "{same}");
        }
        assert_eq!(parse("2026-03-02"), parse("2026-03-02T00:00:00Z"));
        let later = nine.map(|t_ns| t_ns + 500_000_000);
        assert_eq!(parse("2026-03-02T09:00:00.5Z"), later);
        for wrong in [
            "",
            "yesterday",
            "2026-3-2",
            "2026-02-30",
            "2026-03-02T",
            "2026-03-02T9:00",
            "2026-03-02T09",
            "2026-03-02T09:00.5",
            "2026-03-02T09:00:00.",
            "2026-03-02T09:00:00.1234567890",
            "2026-03-02T09:00:00+0900",
            "2026-03-02T09:00:00+24:00",
            "2026-03-02T09:00:00:00",
            "1969-12-31",
            "9999-01-01",
            "１９７０-01-01",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
