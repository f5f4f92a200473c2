//! Collects what the tests of a run skip. The harness captures the output of passing tests, so it would stay hidden:
//! this module requests it, and reads it instead of showing it.

use std::collections::{BTreeMap, BTreeSet};

/// Arguments that make the harness print the output of passing tests.
pub const SHOW_OUTPUT: [&str; 2] = ["--", "--show-output"];

/// Most tests listed per reason.
const NAMES_MAX: usize = 8;

/// The part of the harness's output.
#[derive(Clone, Copy, Default)]
enum Part {
    /// The normal output.
    #[default]
    Run,
    /// Output of passing tests.
    Outputs,
    /// The names of passing tests, repeated.
    Names,
}

/// Reads the output of the tests, and collects the skips.
#[derive(Default)]
pub struct Skips {
    part: Part,
    /// The test whose output is being read.
    test: String,
    tests_by_reason: BTreeMap<String, BTreeSet<String>>,
}

impl Skips {
    /// Takes the next line; returns whether to show it.
    pub fn take(&mut self, line: &str) -> bool {
        let is_end = line == "failures:" || line.starts_with("test result: ");
        match self.part {
            Part::Run if line == "successes:" => self.part = Part::Outputs,
            Part::Run => return true,
            // A test that runs inner tests may have printed their results.
            Part::Outputs if line == "successes:" => self.part = Part::Names,
            Part::Outputs => self.read(line),
            Part::Names if is_end => {
                self.part = Part::Run;
                return true;
            }
            Part::Names => {}
        }
        false
    }

    fn read(&mut self, line: &str) {
        let heading = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
        if let Some(test) = heading {
            self.test = test.to_owned();
        } else if let Some(why) = reason(line) {
            self.tests_by_reason.entry(why.to_owned()).or_default().insert(self.test.clone());
        }
    }

    /// Number of tests that skipped something, or everything.
    pub fn tests(&self) -> usize {
        self.tests_by_reason.values().flatten().collect::<BTreeSet<_>>().len()
    }

    /// A line for each reason, with the tests that gave it.
    pub fn lines(&self) -> Vec<String> {
        let line = |(why, tests): (&String, &BTreeSet<String>)| {
            let names: Vec<&str> = tests.iter().map(String::as_str).take(NAMES_MAX).collect();
            let more = match tests.len() - names.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("  {why}: {}{more}", names.join(", "))
        };
        self.tests_by_reason.iter().map(line).collect()
    }
}

/// Parses `skipped: WHY`, also after the name of a test.
fn reason(line: &str) -> Option<&str> {
    let (before, why) = line.split_once("skipped: ")?;
    (before.is_empty() || before.ends_with(": ")).then(|| why.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "
running 3 tests
test pages::one ... ok
test pages::two ... ok
test serve::three ... FAILED

successes:

---- pages::one stdout ----
skipped: no browser

---- pages::two stdout ----
seed 5
test result: ok. 1 passed
pages::two: skipped: uring: not here
skipped: no browser


successes:
    pages::one
    pages::two

failures:

---- serve::three stdout ----
skipped: this is shown with the failure

test result: FAILED. 2 passed; 1 failed
";

    #[test]
    fn what_passing_tests_skipped_is_kept_by_reason_and_the_rest_is_shown_as_it_was() {
        let mut skips = Skips::default();
        let shown: Vec<&str> = OUTPUT.lines().filter(|line| skips.take(line)).collect();
        assert_eq!(skips.lines(), ["  no browser: pages::one, pages::two", "  uring: not here: pages::two"]);
        assert_eq!(skips.tests(), 2);
        let expected = "
running 3 tests
test pages::one ... ok
test pages::two ... ok
test serve::three ... FAILED

failures:

---- serve::three stdout ----
skipped: this is shown with the failure

test result: FAILED. 2 passed; 1 failed";
        assert_eq!(shown.join("\n"), expected);
    }

    #[test]
    fn of_many_tests_with_one_reason_a_few_are_named_and_the_others_counted() {
        let mut skips = Skips::default();
        assert!(!skips.take("successes:"));
        for number in 10..20 {
            skips.take(&format!("---- t{number} stdout ----"));
            skips.take("skipped: no ring");
        }
        let names = "t10, t11, t12, t13, t14, t15, t16, t17 and 2 more";
        assert_eq!(skips.lines(), [format!("  no ring: {names}")]);
    }
}
