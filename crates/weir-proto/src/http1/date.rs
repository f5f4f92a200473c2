//! HTTP dates (RFC 9110, 5.6.7): seconds since 1970 to text and back, without a clock or a time zone.
//!
//! Recipients should be robust: the day of the week must be a valid name, but it is redundant and is not compared
//! with the date. nginx, Apache and Go do the same.
//!
//! This module exists because the crate `httpdate` reads 30 February, refuses leap seconds, gives a two-digit year
//! the same century forever, and panics in the year 10000.

/// The length of an IMF-fixdate.
pub const DATE_BYTES: usize = 29;

/// 9999-12-31 23:59:59, the last second of a date with a four-digit year.
pub const SECONDS_MAX: u64 = 253_402_300_799;

const DAY_SECONDS: u64 = 86_400;
const WEEKDAYS: [&[u8; 3]; 7] = [b"Sun", b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat"];
const WEEKDAYS_LONG: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// The form every sender uses: `Sun, 06 Nov 1994 08:49:37 GMT`. Times later than [`SECONDS_MAX`] give that second.
pub fn format(seconds: u64) -> [u8; DATE_BYTES] {
    let seconds = seconds.min(SECONDS_MAX);
    let (days, second) = (seconds / DAY_SECONDS, seconds % DAY_SECONDS);
    let (year, month, day) = civil_from_days(days);
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    text[..3].copy_from_slice(WEEKDAYS[weekday(days)]);
    put_two(&mut text[5..7], day);
    text[8..11].copy_from_slice(MONTHS[(month - 1) as usize]);
    put_two(&mut text[12..14], year / 100);
    put_two(&mut text[14..16], year % 100);
    put_two(&mut text[17..19], second / 3600);
    put_two(&mut text[20..22], second / 60 % 60);
    put_two(&mut text[23..25], second % 60);
    text
}

/// Reads any of the three forms that a recipient must accept. `now_seconds` determines the century of a two-digit
/// year: the date may not be more than fifty years ahead. Dates before 1970 and impossible ones give `None`.
pub fn parse(text: &[u8], now_seconds: u64) -> Option<u64> {
    match text.iter().position(|byte| *byte == b',') {
        Some(3) => parse_fixdate(text),
        Some(_) => parse_rfc850(text, now_seconds),
        None => parse_asctime(text),
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn parse_fixdate(text: &[u8]) -> Option<u64> {
    let separators = text.get(3..5)? == b", "
        && [7, 11, 16].iter().all(|index| text.get(*index) == Some(&b' '))
        && text.get(25..)? == b" GMT";
    if !separators {
        return None;
    }
    check_short_weekday(&text[..3])?;
    seconds_of(number(&text[12..16])?, month(&text[8..11])?, number(&text[5..7])?, &text[17..25])
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn parse_rfc850(text: &[u8], now_seconds: u64) -> Option<u64> {
    let comma = text.iter().position(|byte| *byte == b',')?;
    WEEKDAYS_LONG.iter().find(|name| name.as_bytes() == &text[..comma])?;
    let rest = text[comma..].strip_prefix(b", ")?;
    let separators =
        rest.len() == 22 && (rest[2], rest[6], rest[9]) == (b'-', b'-', b' ') && rest.ends_with(b" GMT");
    if !separators {
        return None;
    }
    let (day, month, short_year) = (number(&rest[..2])?, month(&rest[3..6])?, number(&rest[7..9])?);
    let year_now = civil_from_days(now_seconds.min(SECONDS_MAX) / DAY_SECONDS).0;
    let mut year = year_now - year_now % 100 + 100 + short_year;
    while year > year_now + 50 {
        year -= 100;
    }
    seconds_of(year, month, day, &rest[10..18])
}

/// `Sun Nov  6 08:49:37 1994`
fn parse_asctime(text: &[u8]) -> Option<u64> {
    let separators = text.len() == 24 && [3, 7, 10, 19].iter().all(|index| text[*index] == b' ');
    if !separators {
        return None;
    }
    let day = number(if text[8] == b' ' { &text[9..10] } else { &text[8..10] })?;
    check_short_weekday(&text[..3])?;
    seconds_of(number(&text[20..24])?, month(&text[4..7])?, day, &text[11..19])
}

fn seconds_of(year: u64, month: u64, day: u64, time: &[u8]) -> Option<u64> {
    if (time[2], time[5]) != (b':', b':') || year < 1970 || day == 0 || day > month_days(year, month) {
        return None;
    }
    let (hour, minute, second) = (number(&time[..2])?, number(&time[3..5])?, number(&time[6..8])?);
    // 60 is a leap second: the grammar allows it, and it counts as the first second of the next minute.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    Some(days_from_civil(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 + second)
}

fn weekday(days: u64) -> usize {
    // 1970 began on a Thursday.
    ((days + 4) % 7) as usize
}

fn check_short_weekday(text: &[u8]) -> Option<()> {
    WEEKDAYS.iter().find(|name| name.as_slice() == text).map(|_| ())
}

fn month(text: &[u8]) -> Option<u64> {
    MONTHS.iter().position(|name| name.as_slice() == text).map(|index| index as u64 + 1)
}

fn number(digits: &[u8]) -> Option<u64> {
    digits
        .iter()
        .try_fold(0, |value, digit| digit.is_ascii_digit().then(|| value * 10 + u64::from(digit - b'0')))
}

fn put_two(text: &mut [u8], value: u64) {
    text[0] = b'0' + (value / 10) as u8;
    text[1] = b'0' + (value % 10) as u8;
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn month_days(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to the first day of a year.
fn days_before(year: u64) -> u64 {
    let last = year - 1;
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    (year - 1970) * 365 + leap_days(last) - leap_days(1969)
}

fn days_from_civil(year: u64, month: u64, day: u64) -> u64 {
    days_before(year) + (1..month).map(|month| month_days(year, month)).sum::<u64>() + day - 1
}

fn civil_from_days(days: u64) -> (u64, u64, u64) {
    // The quotient is at most one year off; the mean year has 365.2425 days.
    let mut year = 1970 + days * 10_000 / 3_652_425;
    while days_before(year) > days {
        year -= 1;
    }
    while days_before(year + 1) <= days {
        year += 1;
    }
    let (mut month, mut left) = (1, days - days_before(year));
    while left >= month_days(year, month) {
        left -= month_days(year, month);
        month += 1;
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EXAMPLE: u64 = 784_111_777;

    fn text(seconds: u64) -> String {
        String::from_utf8(format(seconds).to_vec()).expect("ASCII")
    }

    #[test]
    fn known_seconds_have_their_known_names() {
        assert_eq!(text(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(text(EXAMPLE), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(text(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(text(4_107_542_400), "Mon, 01 Mar 2100 00:00:00 GMT");
        assert_eq!(text(SECONDS_MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(text(u64::MAX), text(SECONDS_MAX));
    }

    #[test]
    fn the_three_forms_of_one_second_are_equal() {
        for form in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(parse(form.as_bytes(), 1_700_000_000), Some(EXAMPLE), "{form}");
        }
    }

    #[test]
    fn a_day_of_the_week_that_is_not_the_dates_changes_nothing() {
        for form in
            ["Mon, 06 Nov 1994 08:49:37 GMT", "Friday, 06-Nov-94 08:49:37 GMT", "Sat Nov  6 08:49:37 1994"]
        {
            assert_eq!(parse(form.as_bytes(), 1_700_000_000), Some(EXAMPLE), "{form}");
        }
    }

    #[test]
    fn a_year_of_two_digits_is_at_most_fifty_years_ahead() {
        let year_2023 = 1_700_000_000;
        let found = |form: &str| parse(form.as_bytes(), year_2023).map(text);
        assert_eq!(found("Sunday, 01-Jan-73 00:00:00 GMT"), Some("Sun, 01 Jan 2073 00:00:00 GMT".into()));
        assert_eq!(found("Tuesday, 01-Jan-74 00:00:00 GMT"), Some("Tue, 01 Jan 1974 00:00:00 GMT".into()));
    }

    #[test]
    fn impossible_dates_are_none() {
        for form in [
            "",
            ",",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Xyz, 06 Nov 1994 08:49:37 GMT",
            "Someday, 06-Nov-94 08:49:37 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Wed, 29 Feb 2023 00:00:00 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:00 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT",
            "Sun, 06 Nov 1994 08-49-37 GMT",
            "Wed, 31 Dec 1969 23:59:59 GMT",
            "Sunday, 06-Nov-1994 08:49:37 GMT",
            "Sun Nov 6 08:49:37 1994",
            "Sun Nov  6 08:49:37 1994 ",
        ] {
            assert_eq!(parse(form.as_bytes(), 1_700_000_000), None, "{form}");
        }
    }

    proptest! {
        #[test]
        fn every_second_comes_back(seconds in 0..=SECONDS_MAX) {
            prop_assert_eq!(parse(&format(seconds), 0), Some(seconds));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..40), now: u64) {
            let _ = parse(&bytes, now);
        }

        #[test]
        fn a_date_with_a_changed_byte_is_another_or_none(
            seconds in 0..=SECONDS_MAX, index in 0..DATE_BYTES, byte: u8,
        ) {
            let mut text = format(seconds);
            let same = std::mem::replace(&mut text[index], byte) == byte;
            prop_assert_eq!(parse(&text, 0) == Some(seconds), same);
        }
    }
}
