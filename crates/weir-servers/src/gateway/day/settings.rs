//! `[day]` of a configuration, and the file of holidays.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use serde::Deserialize;
use toml::Spanned;
use weir_record::calendar::seconds_of;
use weir_trading::day::{OpenOrders, Schedule, SessionTimes};

use crate::orders::config_file::{FieldError, FieldErrors, invalid};

/// Largest file of holidays.
const HOLIDAYS_BYTES_MAX: u64 = 1 << 20;
/// Longest name of a session.
const NAME_LETTERS_MAX: usize = 16;
/// The greatest distance of local time from UTC.
const OFFSET_S_MAX: i64 = 14 * 3600;
const DAY_S: i64 = 86_400;
/// Days of the week, as they are written.
const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// The trading day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DayConfig {
    /// Its sessions; none: operators begin and end days.
    pub schedule: Schedule,
    /// What becomes of orders that are open at the end of a day that an operator has begun.
    pub open_orders: OpenOrders,
}

/// The table as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::gateway) struct DayTable {
    utc_offset: Option<Spanned<String>>,
    weekdays: Option<Spanned<Vec<String>>>,
    holidays: Option<Spanned<PathBuf>>,
    open_orders: Option<Spanned<String>>,
    #[serde(default)]
    session: Vec<Spanned<SessionTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionTable {
    name: Spanned<String>,
    start: Spanned<String>,
    end: Spanned<String>,
    open_orders: Option<Spanned<String>>,
}

impl DayTable {
    /// Reads the file of holidays too. `at` is the place of the table; `numbers_restart`: order numbers begin with 1
    /// in each session with clients.
    pub(in crate::gateway) fn resolve(
        self,
        at: usize,
        numbers_restart: bool,
        errors: &mut FieldErrors,
    ) -> Option<DayConfig> {
        let open_orders = errors.keep(open_orders(self.open_orders.as_ref()))?.unwrap_or_default();
        let offset_s = match &self.utc_offset {
            Some(text) => errors.keep(offset(text))?,
            None if self.session.is_empty() => 0,
            None => errors.keep(invalid(at, "day: utc_offset is missing, such as \"+09:00\" for Korea"))?,
        };
        let weekdays = errors.keep(weekdays(self.weekdays.as_ref()))?;
        let holidays = errors.keep(holidays(self.holidays.as_ref()))?;
        let places: Vec<usize> = self.session.iter().map(|table| table.span().start).collect();
        let sessions = self.session.into_iter().map(|table| table.into_inner().resolve(open_orders));
        let sessions: Vec<Option<SessionTimes>> = sessions.map(|session| errors.keep(session)).collect();
        let sessions = sessions.into_iter().collect::<Option<Vec<SessionTimes>>>()?;
        let last = sessions.last().map_or(open_orders, |last| last.open_orders);
        if numbers_restart && last == OpenOrders::Carry {
            let at = places.last().copied().unwrap_or(at);
            let text = "day: with numbers = \"restart\" no order may be open when a day ends, so open_orders cannot be \
                        \"carry\" there; write \"cancel\" or \"expire\"";
            errors.keep::<()>(invalid(at, text))?;
        }
        let schedule = Schedule::new(offset_s, weekdays, holidays, sessions).map_err(|error| {
            let place = error.session.and_then(|session| places.get(session)).copied();
            FieldError { at: place.unwrap_or(at), message: format!("day: {}", error.message) }
        });
        Some(DayConfig { schedule: errors.keep(schedule)?, open_orders })
    }
}

impl SessionTable {
    fn resolve(self, of_day: OpenOrders) -> Result<SessionTimes, FieldError> {
        let name = self.name.get_ref();
        let is_name = (1..=NAME_LETTERS_MAX).contains(&name.len())
            && name.bytes().all(|letter| letter.is_ascii_graphic());
        if !is_name {
            let text = format!(
                "name {name:?}: write 1 to {NAME_LETTERS_MAX} printable ASCII characters without spaces"
            );
            return invalid(self.name.span().start, text);
        }
        Ok(SessionTimes {
            begins_s: clock("start", &self.start)?,
            ends_s: clock("end", &self.end)?,
            open_orders: open_orders(self.open_orders.as_ref())?.unwrap_or(of_day),
            name: self.name.into_inner(),
        })
    }
}

fn open_orders(text: Option<&Spanned<String>>) -> Result<Option<OpenOrders>, FieldError> {
    let Some(text) = text else { return Ok(None) };
    match text.get_ref().as_str() {
        "cancel" => Ok(Some(OpenOrders::Cancel)),
        "expire" => Ok(Some(OpenOrders::Expire)),
        "carry" => Ok(Some(OpenOrders::Carry)),
        other => invalid(
            text.span().start,
            format!("open_orders {other:?}: write \"cancel\", \"expire\" or \"carry\""),
        ),
    }
}

/// `HH:MM` or `HH:MM:SS`, in seconds; hours from 24 on are those of the next day.
fn clock(key: &str, text: &Spanned<String>) -> Result<i64, FieldError> {
    seconds_in(text.get_ref()).filter(|seconds| *seconds <= 2 * DAY_S).map_or_else(
        || {
            let text_of = text.get_ref();
            invalid(
                text.span().start,
                format!(
                    "{key} {text_of:?}: write a time such as \"09:00\"; \"30:00\" is 6 in the next morning"
                ),
            )
        },
        Ok,
    )
}

fn seconds_in(text: &str) -> Option<i64> {
    let (mut seconds, mut count) = (0, 0);
    for (place, field) in text.split(':').enumerate() {
        let is_number = field.len() == 2 && field.bytes().all(|letter| letter.is_ascii_digit());
        let number = field.parse::<i64>().ok().filter(|_| is_number)?;
        if place > 0 && number > 59 {
            return None;
        }
        (seconds, count) = (seconds * 60 + number, place + 1);
        if count > 3 {
            return None;
        }
    }
    match count {
        2 => Some(seconds * 60),
        3 => Some(seconds),
        _ => None,
    }
}

/// `+HH:MM` or `-HH:MM`.
fn offset(text: &Spanned<String>) -> Result<i64, FieldError> {
    let (sign, rest) = match text.get_ref().split_at_checked(1) {
        Some(("+", rest)) => (1, rest),
        Some(("-", rest)) => (-1, rest),
        _ => (0, ""),
    };
    match seconds_in(rest).filter(|seconds| *seconds <= OFFSET_S_MAX) {
        Some(seconds) => Ok(sign * seconds),
        None => {
            let text_of = text.get_ref();
            let message = format!(
                "utc_offset {text_of:?}: write how far local time is ahead of UTC, such as \"+09:00\" or \"-05:00\""
            );
            invalid(text.span().start, message)
        }
    }
}

fn weekdays(names: Option<&Spanned<Vec<String>>>) -> Result<[bool; 7], FieldError> {
    let Some(names) = names else { return Ok([true, true, true, true, true, false, false]) };
    let mut days = [false; 7];
    for name in names.get_ref() {
        let Some(day) = WEEKDAYS.iter().position(|day| day == name) else {
            let text = format!("weekdays: {name:?} is none of {}", WEEKDAYS.join(", "));
            return invalid(names.span().start, text);
        };
        days[day] = true;
    }
    Ok(days)
}

fn holidays(path: Option<&Spanned<PathBuf>>) -> Result<BTreeSet<i64>, FieldError> {
    let Some(path) = path else { return Ok(BTreeSet::new()) };
    let (at, shown) = (path.span().start, path.get_ref().display());
    let text = read(path.get_ref())
        .map_err(|error| FieldError { at, message: format!("holidays: {shown} cannot be read: {error}") })?;
    dates_in(&text).map_err(|(line, what)| FieldError {
        at,
        message: format!(
            "holidays: {shown}:{line}: {what:?}: write a date such as 2026-12-25; # begins a comment"
        ),
    })
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(HOLIDAYS_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > HOLIDAYS_BYTES_MAX {
        let reason = format!("it is longer than {} MiB", HOLIDAYS_BYTES_MAX >> 20);
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    Ok(text)
}

/// A date in each line, as days since 1970. The error is a line and what is there.
fn dates_in(text: &str) -> Result<BTreeSet<i64>, (usize, String)> {
    let mut dates = BTreeSet::new();
    for (line, place) in text.lines().zip(1..) {
        let written = line.split('#').next().unwrap_or_default().trim();
        if !written.is_empty() {
            dates.insert(date_in(written).ok_or_else(|| (place, written.to_owned()))?);
        }
    }
    Ok(dates)
}

/// `YYYY-MM-DD`, as days since 1970.
pub(super) fn date_in(text: &str) -> Option<i64> {
    let mut fields = text.splitn(3, '-');
    let mut field = |letters: usize| -> Option<i64> {
        let field = fields.next()?;
        let is_number = field.len() == letters && field.bytes().all(|letter| letter.is_ascii_digit());
        field.parse().ok().filter(|_| is_number)
    };
    let seconds = seconds_of([field(4)?, field(2)?, field(2)?, 0, 0, 0])?;
    Some(seconds as i64 / DAY_S)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{gateway::config::parse, orders::demo_accounts};

    /// The table of a file that begins like this; every error has its line.
    fn day_of(begin: &str) -> Result<Option<DayConfig>, Vec<String>> {
        let account = &demo_accounts(1)[0];
        let text = format!(
            "{begin}[[venue]]\nname = \"X\"\naddress = \"127.0.0.1:1\"\nusername_prefix = \"G\"\npassword = \"DEMO\"\n\
             [[account]]\nname = \"{}\"\npassword_hash = \"{}\"\n",
            account.name, account.password_hash
        );
        match parse(Path::new("g"), &text, &|_| None) {
            Ok((config, _)) => Ok(config.day),
            Err(errors) => Err(errors.all().iter().map(ToString::to_string).collect()),
        }
    }

    fn session(name: &str, start: &str, end: &str, rest: &str) -> String {
        format!("[[day.session]]\nname = \"{name}\"\nstart = \"{start}\"\nend = \"{end}\"\n{rest}")
    }

    #[test]
    fn three_sessions_in_korea_are_read() {
        let begin = "numbers = \"restart\"\n[day]\nutc_offset = \"+09:00\"\nopen_orders = \"expire\"\n";
        let sessions = [
            session("pre", "07:00", "08:00", "open_orders = \"carry\"\n"),
            session("main", "09:00", "15:30", ""),
            session("after", "16:00", "20:00", "open_orders = \"cancel\"\n"),
        ];
        let day =
            day_of(&format!("{begin}{}", sessions.concat())).expect("it is right").expect("it is there");
        let found = day.schedule.sessions().iter();
        let found: Vec<_> =
            found.map(|it| (it.name.as_str(), it.begins_s, it.ends_s, it.open_orders)).collect();
        let expected = [
            ("pre", 25_200, 28_800, OpenOrders::Carry),
            ("main", 32_400, 55_800, OpenOrders::Expire),
            ("after", 57_600, 72_000, OpenOrders::Cancel),
        ];
        assert_eq!((found.as_slice(), day.open_orders), (&expected[..], OpenOrders::Expire));
        assert!(day.schedule.is_trading_day(20_788) && !day.schedule.is_trading_day(20_792), "a Saturday");
        let by_hand = day_of("[day]\n").expect("it is right").expect("it is there");
        assert!(by_hand.schedule.is_empty() && by_hand.open_orders == OpenOrders::Cancel);
        assert_eq!(day_of(""), Ok(None));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let main = session("main", "09:00", "15:30", "");
        let offset = "[day]\nutc_offset = \"+09:00\"\n";
        let restart = format!("numbers = \"restart\"\n{offset}");
        for (begin, line, words) in [
            (format!("[day]\n{main}"), 1, "utc_offset is missing"),
            ("[day]\nutc_offset = \"KST\"\n".to_owned(), 2, "utc_offset \"KST\": write how far"),
            (format!("{offset}weekdays = [\"monday\"]\n{main}"), 3, "\"monday\" is none of mon, tue"),
            (format!("{offset}weekdays = []\n{main}"), 1, "no day of the week has them"),
            (format!("{offset}holidays = \"/nowhere/at/all\"\n"), 3, "/nowhere/at/all cannot be read"),
            (format!("{offset}open_orders = \"keep\"\n"), 3, "open_orders \"keep\": write \"cancel\""),
            (format!("{offset}{}", session("a b", "09:00", "15:30", "")), 4, "name \"a b\""),
            (format!("{offset}{}", session("a", "9", "15:30", "")), 5, "start \"9\": write a time"),
            (format!("{offset}{}", session("a", "09:00", "48:01", "")), 6, "end \"48:01\""),
            (format!("{offset}{}", session("a", "09:00", "09:00", "")), 3, "does not end after its start"),
            (format!("{offset}{main}{}", session("b", "15:29", "16:00", "")), 7, "before main has ended"),
            (
                format!("{restart}{}", session("a", "09:00", "10:00", "open_orders = \"carry\"\n")),
                4,
                "\"carry\"",
            ),
            (format!("{restart}open_orders = \"carry\"\n"), 2, "cannot be \"carry\""),
            (format!("{offset}close = 1\n"), 3, "unknown field `close`"),
        ] {
            let errors = day_of(&begin).expect_err(&begin);
            let [error] = &errors[..] else { panic!("{begin}: {errors:?}") };
            assert!(error.starts_with(&format!("g:{line}: ")) && error.contains(words), "{begin}: {error}");
        }
    }

    #[test]
    fn times_and_distances_are_read_and_others_refused() {
        let of = |text: &str| seconds_in(text);
        assert_eq!(of("09:00"), Some(32_400));
        assert_eq!(of("15:30:05"), Some(55_805));
        assert_eq!(of("30:00"), Some(108_000));
        for wrong in ["9:00", "09", "09:60", "09:00:60", "09:00:00:00", "aa:bb", "+1:00", "", ":"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        let offset = |text: &str| offset(&Spanned::new(0..1, text.to_owned())).ok();
        assert_eq!(offset("+09:00"), Some(32_400));
        assert_eq!(offset("-03:30"), Some(-12_600));
        assert_eq!(offset("+14:00"), Some(50_400));
        for wrong in ["09:00", "+15:00", "", "+", "KST", "\u{20ac}09:00"] {
            assert_eq!(offset(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_calendar_has_a_date_a_line_and_comments() {
        let text = "# KRX 2026\n\n2026-12-25  # Christmas\r\n2026-12-31\n2026-12-25\n";
        assert_eq!(dates_in(text), Ok(BTreeSet::from([20_812, 20_818])));
        assert_eq!(dates_in("2026-12-25\n2026-02-29"), Err((2, "2026-02-29".into())));
        for wrong in ["25.12.2026", "2026-12-25 Christmas", "2026-1-5", "26-12-25", "2026-12", "2026-12-255"]
        {
            assert!(dates_in(wrong).is_err(), "{wrong}");
        }
    }
}
