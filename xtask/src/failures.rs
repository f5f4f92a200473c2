//! Keeps what failing tests printed, to print it again at the end: the tests of other crates run after a failure, and a
//! long log is often cut to its last lines.

/// Most lines kept of a test. The first ones have the panic.
const LINES_MAX: usize = 40;

/// Most tests whose output is kept; further ones are counted.
const TESTS_MAX: usize = 10;

/// The output of a failing test.
struct Failure {
    test: String,
    lines: Vec<String>,
    left_out: usize,
}

/// Reads the output of the tests, and collects the failures.
#[derive(Default)]
pub struct Failures {
    /// Between the heading of the failures of a program and its result.
    is_inside: bool,
    kept: Vec<Failure>,
    /// Tests that failed, kept or not.
    tests: usize,
}

impl Failures {
    /// Takes the next line that is shown.
    pub fn take(&mut self, line: &str) {
        if line.starts_with("test result: ") {
            self.is_inside = false;
        } else if line == "failures:" {
            // The heading stands before the output, and again before the list of names, which has nothing new.
            self.is_inside = !self.is_inside;
        } else if self.is_inside {
            self.read(line);
        }
    }

    fn read(&mut self, line: &str) {
        let heading = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
        if let Some(test) = heading {
            self.tests += 1;
            if self.tests <= TESTS_MAX {
                self.kept.push(Failure { test: test.to_owned(), lines: Vec::new(), left_out: 0 });
            }
            return;
        }
        let Some(failure) = self.kept.last_mut().filter(|_| self.tests <= TESTS_MAX) else { return };
        if failure.lines.len() < LINES_MAX {
            failure.lines.push(line.to_owned());
        } else {
            failure.left_out += 1;
        }
    }

    /// The failing tests with their output; nothing when all passed.
    pub fn lines(&self) -> Vec<String> {
        let mut all = Vec::new();
        for failure in &self.kept {
            all.push(format!("failed: {}", failure.test));
            all.extend(failure.lines.iter().map(|line| format!("    {line}")));
            if failure.left_out > 0 {
                all.push(format!("    ({} more lines)", failure.left_out));
            }
        }
        if self.tests > TESTS_MAX {
            all.push(format!("failed: {} more tests", self.tests - TESTS_MAX));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(output: &str) -> Vec<String> {
        let mut failures = Failures::default();
        output.lines().for_each(|line| failures.take(line));
        failures.lines()
    }

    #[test]
    fn what_failing_tests_printed_is_repeated_and_the_rest_is_not() {
        let output = "
test pages::one ... ok
test serve::two ... FAILED

failures:

---- serve::two stdout ----
seed 5
panicked at it.rs:7

failures:
    serve::two

test result: FAILED. 1 passed; 1 failed

running 1 test
test three ... FAILED
failures:
---- three stdout ----
no room
failures:
    three
test result: FAILED. 0 passed; 1 failed
";
        let seen: Vec<String> = read(output).into_iter().filter(|line| !line.trim().is_empty()).collect();
        assert_eq!(
            seen,
            ["failed: serve::two", "    seed 5", "    panicked at it.rs:7", "failed: three", "    no room"]
        );
        assert!(read("test one ... ok\n\ntest result: ok. 1 passed").is_empty());
    }

    #[test]
    fn lines_and_tests_beyond_the_maximum_are_counted() {
        let mut output = "failures:\n---- first stdout ----\n".to_owned();
        output.push_str(&"a line\n".repeat(LINES_MAX + 3));
        for number in 0..TESTS_MAX + 1 {
            output.push_str(&format!("---- t{number} stdout ----\nits line\n"));
        }
        let seen = read(&output);
        assert_eq!(seen[LINES_MAX + 1], "    (3 more lines)");
        assert_eq!(seen.last().map(String::as_str), Some("failed: 2 more tests"));
        assert_eq!(seen.iter().filter(|line| line.starts_with("failed: t")).count(), TESTS_MAX - 1);
    }
}
