//! Calendar time in UTC. The moment is an argument.
//!
//! The dates of HTTP have a separate calendar (`weir-proto/http1/date.rs`), which is read as well as written and
//! ends with the year 9999. Records need no protocol, so a reader of records does not need that crate.

/// Year, month, day, hour, minute and second of seconds since 1970, by the civil-from-days algorithm of Howard
/// Hinnant's chrono paper.
pub fn utc(seconds: u64) -> [i64; 6] {
    let (days, rest) = ((seconds / 86_400) as i64, (seconds % 86_400) as i64);
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    [year, month, day, rest / 3_600, rest / 60 % 60, rest % 60]
}

/// The seconds since 1970 of such a moment; `None` if there is none, or it is before 1970. A leap second is none.
pub fn seconds_of([year, month, day, hour, minute, second]: [i64; 6]) -> Option<u64> {
    let is_time = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
    let is_date = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_time || !is_date {
        return None;
    }
    // The inverse algorithm of the same paper.
    let year_shifted = year - i64::from(month <= 2);
    let era = year_shifted.div_euclid(400);
    let year_of_era = year_shifted.rem_euclid(400);
    let month_shifted = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_shifted + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    let seconds = u64::try_from(days * 86_400 + hour * 3_600 + minute * 60 + second).ok()?;
    // A day that the month does not have is another one.
    (utc(seconds)[..3] == [year, month, day]).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_that_is_read_is_the_one_that_was_written() {
        for seconds in (0..4_102_444_800).step_by(86_399 * 7) {
            assert_eq!(seconds_of(utc(seconds)), Some(seconds));
        }
        let none = [
            [2023, 2, 29, 0, 0, 0],
            [2024, 4, 31, 0, 0, 0],
            [2024, 13, 1, 0, 0, 0],
            [2024, 0, 1, 0, 0, 0],
            [2024, 1, 0, 0, 0, 0],
            [2024, 1, 1, 24, 0, 0],
            [2024, 1, 1, 0, 60, 0],
            [2024, 1, 1, 0, 0, 60],
            [1969, 12, 31, 23, 59, 59],
            [i64::MAX, 1, 1, 0, 0, 0],
            [2024, 1, i64::MAX, 0, 0, 0],
        ];
        for moment in none {
            assert_eq!(seconds_of(moment), None, "{moment:?}");
        }
    }

    #[test]
    fn calendar_times_are_right_at_the_edges() {
        assert_eq!(utc(0), [1970, 1, 1, 0, 0, 0]);
        assert_eq!(utc(951_827_696), [2000, 2, 29, 12, 34, 56]);
        assert_eq!(utc(4_102_444_799), [2099, 12, 31, 23, 59, 59]);
    }
}
