//! Names of run folders. The time is an argument.

use weir_record::calendar::utc;

/// `NAME-YYYYMMDD-HHMMSS`, in UTC, of seconds since 1970.
pub fn name(study: &str, seconds: u64) -> String {
    format!("{study}-{}", utc_stamp(seconds))
}

/// `YYYYMMDD-HHMMSS`, in UTC, of seconds since 1970.
pub fn utc_stamp(seconds: u64) -> String {
    let [year, month, day, hour, minute, second] = utc(seconds);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_named_after_its_study_and_the_second_it_began() {
        assert_eq!(name("tps", 951_827_696), "tps-20000229-123456");
        assert_eq!(name("quick", 0), "quick-19700101-000000");
    }
}
