//! `/proc/PID/stat`: one line about a process (`proc_pid_stat(5)`).

use std::fs;

/// Bytes that the kernel keeps of a name (`TASK_COMM_LEN` without the final zero).
pub const NAME_BYTES_MAX: usize = 15;

/// The parsed line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStat<'text> {
    /// Name of the main thread.
    pub name: &'text str,
    /// The text after the name, from field 3 on.
    rest: &'text str,
}

impl<'text> ProcessStat<'text> {
    /// Parses a line. The name in parentheses may itself contain spaces and parentheses, so fields are counted from
    /// the last `)` on.
    pub fn parse(line: &'text str) -> Option<Self> {
        let (before, rest) = line.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        Some(Self { name, rest })
    }

    /// A field by its number in the manual page, from 3 on.
    pub fn field(&self, number: usize) -> Option<&'text str> {
        self.rest.split_ascii_whitespace().nth(number.checked_sub(3)?)
    }

    /// A field that is a non-negative number.
    pub fn number(&self, number: usize) -> Option<u64> {
        self.field(number)?.parse().ok()
    }

    /// The parent's process id.
    pub fn parent(&self) -> Option<u32> {
        self.field(4)?.parse().ok()
    }

    /// Whether it is a zombie: it has ended, and its parent has not reaped it yet.
    pub fn has_ended(&self) -> bool {
        matches!(self.field(3), Some("Z" | "X"))
    }
}

/// The line of a process, or of a thread by its number; `None` if it is gone. Bytes of its name that are not UTF-8
/// are replaced: a process may choose any name, and the kernel may cut a long name inside a character.
pub fn read(process: u32) -> Option<String> {
    let line = fs::read(format!("/proc/{process}/stat")).ok()?;
    Some(String::from_utf8_lossy(&line).into_owned())
}

#[cfg(test)]
mod tests {
    use rustix::thread::{gettid, set_name};

    use super::*;

    #[test]
    fn fields_count_from_the_last_parenthesis_of_the_name() {
        for name in ["cat", "(a) S 1 (b", ") ) )", "", "x y z", "((", "\u{fffd}\n"] {
            let line = format!("77 ({name}) S 42 77 77 0 -1");
            let stat = ProcessStat::parse(&line).expect("a name in parentheses");
            assert_eq!((stat.name, stat.field(3), stat.parent()), (name, Some("S"), Some(42)), "{name:?}");
            assert_eq!((stat.number(5), stat.number(8), stat.field(9)), (Some(77), None, None), "{name:?}");
            assert_eq!((stat.field(2), stat.has_ended()), (None, false), "{name:?}");
        }
        assert!(ProcessStat::parse("77 (a) Z 42").is_some_and(|stat| stat.has_ended()));
        assert_eq!(ProcessStat::parse("77 (a"), None);
        assert_eq!(ProcessStat::parse("77 a) S 42"), None);
        assert_eq!(ProcessStat::parse(""), None);
    }

    #[test]
    fn a_name_that_is_cut_in_the_middle_of_a_letter_hides_nothing() {
        let named = std::thread::spawn(|| {
            // The kernel keeps fifteen bytes of `w서버서버서`, so the last letter lacks its third byte.
            set_name(c"w\xec\x84\x9c\xeb\xb2\x84\xec\x84\x9c\xeb\xb2\x84\xec\x84")
                .expect("a thread may rename itself");
            let own = gettid().as_raw_nonzero().get().unsigned_abs();
            let line = read(own).expect("it runs");
            let stat = ProcessStat::parse(&line).expect("a name in parentheses");
            (stat.name.starts_with('w'), stat.parent(), stat.has_ended())
        });
        let seen = named.join().expect("it does not panic");
        assert_eq!(seen, (true, Some(std::os::unix::process::parent_id()), false));
        assert_eq!(read(u32::MAX), None, "there is no such process");
    }
}
