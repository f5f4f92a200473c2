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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calendar_times_are_right_at_the_edges() {
        assert_eq!(utc(0), [1970, 1, 1, 0, 0, 0]);
        assert_eq!(utc(951_827_696), [2000, 2, 29, 12, 34, 56]);
        assert_eq!(utc(4_102_444_799), [2099, 12, 31, 23, 59, 59]);
    }
}
