//! Reads the first line of a program before anything is measured with it.

use std::{
    io,
    process::Command,
    time::{Duration, Instant},
};

use super::group::{Bond, Group};

/// Longest wait for a program to print its version, or to report that it listens.
pub const ANSWER_MAX: Duration = Duration::from_secs(5);

/// First output of a program.
#[derive(Debug)]
pub enum Answer {
    /// A line on standard output.
    Line(String),
    /// It ended without a line.
    Ended {
        /// Its exit code, unless a signal ended it.
        code: Option<i32>,
        /// The end of its standard error, or how it ended.
        said: String,
    },
    /// No output within the time limit.
    Silence,
}

/// Starts a program, takes its first line and ends it with its whole process group.
pub fn answer(program: &str, words: &[String]) -> io::Result<Answer> {
    let mut group = Group::start(Command::new(program).args(words), Bond::Dies)?;
    let deadline = Instant::now() + ANSWER_MAX;
    while Instant::now() < deadline {
        if let Some(line) = group.next_line() {
            return Ok(Answer::Line(line));
        }
        if group.has_ended() {
            let status = group.end()?;
            // A line may have arrived between the two checks.
            if let Some(line) = group.stdout.take_line() {
                return Ok(Answer::Line(line));
            }
            let said = Some(group.said()).filter(|said| !said.is_empty());
            return Ok(Answer::Ended {
                code: status.code(),
                said: said.unwrap_or_else(|| status.to_string()),
            });
        }
    }
    Ok(Answer::Silence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Answer {
        answer("/bin/sh", &["-c".to_owned(), script.to_owned()]).expect("a shell starts")
    }

    #[test]
    fn the_first_line_or_the_end_is_the_answer() {
        assert!(matches!(shell("echo one; echo two"), Answer::Line(line) if line == "one"));
        assert!(matches!(shell("exit 3"), Answer::Ended { code: Some(3), said } if said == "exit status: 3"));
        assert!(answer("/no/such/program", &[]).is_err());
    }

    #[test]
    fn a_child_that_keeps_the_pipes_of_its_parent_open_is_not_waited_for() {
        let begun = Instant::now();
        let found = shell("sleep 60 & echo weir: no such driver >&2; exit 2");
        assert!(
            matches!(&found, Answer::Ended { code: Some(2), said } if said == "no such driver"),
            "{found:?}"
        );
        assert!(begun.elapsed() < ANSWER_MAX, "it waited for the child");
    }
}
