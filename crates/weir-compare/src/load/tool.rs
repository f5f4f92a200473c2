//! Load generators that are known by the names of their programs, and what each prints.
//!
//! Texts of the tests are as the tools print them, cut to the lines that matter.

use std::path::Path;

use weir_record::commands::WorkUnit;

use super::{
    Said, Work,
    json::{count_at, count_of, counts, document},
    text::{after, before, bracketed, first, lines},
};

/// A known load generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// ApacheBench.
    Ab,
    /// ghz, for gRPC.
    Ghz,
    /// hey.
    Hey,
    /// k6.
    K6,
    /// memtier_benchmark.
    Memtier,
    /// oha.
    Oha,
    /// pgbench.
    Pgbench,
    /// redis-benchmark, and valkey-benchmark.
    Redis,
    /// `weir load --json`.
    Weir,
    /// wrk and wrk2.
    Wrk,
}

/// Programs by their names.
const PROGRAMS: [(&str, Tool); 12] = [
    ("ab", Tool::Ab),
    ("ghz", Tool::Ghz),
    ("hey", Tool::Hey),
    ("k6", Tool::K6),
    ("memtier_benchmark", Tool::Memtier),
    ("oha", Tool::Oha),
    ("pgbench", Tool::Pgbench),
    ("redis-benchmark", Tool::Redis),
    ("valkey-benchmark", Tool::Redis),
    ("weir", Tool::Weir),
    ("wrk", Tool::Wrk),
    ("wrk2", Tool::Wrk),
];

/// Programs that run the rest of their words as a program.
const WRAPPERS: [&str; 12] = [
    "chrt", "env", "ionice", "nice", "numactl", "runuser", "setpriv", "stdbuf", "sudo", "taskset", "time",
    "timeout",
];

/// Default number of requests of a test of redis-benchmark.
const REDIS_REQUESTS: u64 = 100_000;

/// The name in oha's output for requests that were in flight when its time was over.
const CUT_OFF: &str = "aborted due to deadline";

impl Tool {
    /// The tool that words start; also behind a program that pins or limits it.
    pub fn of(words: &[String]) -> Option<Self> {
        let name = |word: &String| Path::new(word).file_name()?.to_str().map(str::to_owned);
        let of_name = |word: &String| {
            let name = name(word)?;
            PROGRAMS.iter().find(|(program, _)| *program == name).map(|(_, tool)| *tool)
        };
        let program = words.first()?;
        let is_wrapper = name(program).is_some_and(|name| WRAPPERS.contains(&name.as_str()));
        let tool = if is_wrapper { words.iter().skip(1).find_map(of_name) } else { of_name(program) };
        // Weir's other commands print something else.
        tool.filter(|tool| *tool != Self::Weir || words.iter().any(|word| word == "load"))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ab => "ab",
            Self::Ghz => "ghz",
            Self::Hey => "hey",
            Self::K6 => "k6",
            Self::Memtier => "memtier_benchmark",
            Self::Oha => "oha",
            Self::Pgbench => "pgbench",
            Self::Redis => "redis-benchmark",
            Self::Weir => "weir load",
            Self::Wrk => "wrk",
        }
    }

    /// What it counts.
    pub fn unit(self) -> WorkUnit {
        match self {
            Self::Pgbench => WorkUnit::Transaction,
            Self::Memtier => WorkUnit::Operation,
            Self::Weir => WorkUnit::Message,
            Self::Ab | Self::Ghz | Self::Hey | Self::K6 | Self::Oha | Self::Redis | Self::Wrk => {
                WorkUnit::Request
            }
        }
    }

    /// Units of work and failures in its output.
    pub(super) fn read(self, said: &Said<'_>) -> Option<Work> {
        match self {
            Self::Ab => ab(said.stdout),
            Self::Ghz => ghz(said),
            Self::Hey => of_statuses(said.stdout),
            Self::K6 => k6(said),
            Self::Memtier => memtier(said),
            Self::Oha => oha(said),
            Self::Pgbench => pgbench(said.stdout),
            Self::Redis => redis(said),
            Self::Weir => weir(said),
            Self::Wrk => wrk(said.stdout),
        }
    }
}

fn ab(text: &str) -> Option<Work> {
    let errors = |label| after(text, label).unwrap_or(0);
    // A response of another status counts as failed too where its length differs.
    let errors = errors("Failed requests:").max(errors("Non-2xx responses:"));
    Some(Work { count: after(text, "Complete requests:")?, errors })
}

fn pgbench(text: &str) -> Option<Work> {
    let count = after(text, "number of transactions actually processed:")?;
    Some(Work { count, errors: after(text, "number of failed transactions:").unwrap_or(0) })
}

fn wrk(text: &str) -> Option<Work> {
    let count = lines(text).find_map(|line| before(line, " requests in "))?;
    let sockets = lines(text).find_map(|line| line.strip_prefix("Socket errors:")).unwrap_or_default();
    let sockets = sockets.split(',').filter_map(|part| first(part.trim().split_once(' ')?.1));
    let statuses = after(text, "Non-2xx or 3xx responses:").unwrap_or(0);
    Some(Work { count, errors: sockets.sum::<u64>() + statuses })
}

/// Each test says how many requests it completed. With `-q` or `--csv` it does not, and each has the number of `-n`.
fn redis(said: &Said<'_>) -> Option<Work> {
    let text = said.stdout;
    let errors =
        lines(text).chain(lines(said.stderr)).filter(|line| line.starts_with("Error from server")).count();
    let errors = u64::try_from(errors).unwrap_or(u64::MAX);
    let completed: Vec<u64> =
        lines(text).filter_map(|line| before(line, " requests completed in ")).collect();
    if !completed.is_empty() {
        return Some(Work { count: completed.iter().sum(), errors });
    }
    // Words before the tool's are a wrapper's, which may have a `-n` too; in a line for a shell its own are not seen.
    let names = ["redis-benchmark", "valkey-benchmark"];
    let is_tool = |word: &String| names.iter().any(|name| Path::new(word).ends_with(name));
    let own = said.words.iter().position(is_tool).and_then(|at| said.words.get(at + 1..))?;
    // It takes the last one.
    let asked = match own.iter().rposition(|word| word == "-n") {
        Some(at) => own.get(at + 1)?.parse().ok()?,
        None => REDIS_REQUESTS,
    };
    let is_test = |line: &&str| {
        let is_row = line.starts_with('"') && line.contains("\",\"") && !line.starts_with("\"test\"");
        is_row || line.contains(" requests per second")
    };
    let tests = u64::try_from(lines(text).filter(is_test).count()).ok()?;
    Some(Work { count: tests.checked_mul(asked)?, errors })
}

/// Its file of `--json-out-file`, or the last line of its progress.
fn memtier(said: &Said<'_>) -> Option<Work> {
    let of_document = document(said).and_then(|found| count_at(&found, "/ALL STATS/Totals/Count"));
    let of_progress = || {
        let texts = lines(said.stderr).chain(lines(said.stdout));
        texts.filter_map(|line| before(line, " ops,")).last()
    };
    Some(Work { count: of_document.or_else(of_progress)?, errors: 0 })
}

/// Its file of `--summary-export`, or the summary for people. A script without HTTP has iterations alone.
fn k6(said: &Said<'_>) -> Option<Work> {
    let of_document = || {
        let found = document(said)?;
        let at = |metric: &str, key: &str| {
            let places = [format!("/metrics/{metric}/{key}"), format!("/metrics/{metric}/values/{key}")];
            places.iter().find_map(|place| count_at(&found, place))
        };
        let count = at("http_reqs", "count").or_else(|| at("iterations", "count"))?;
        Some(Work { count, errors: at("http_req_failed", "passes").unwrap_or(0) })
    };
    let of_text = || {
        let metric = |name: &str| {
            let rows = lines(said.stdout)
                .filter_map(|line| line.strip_prefix(name)?.trim_start_matches('.').strip_prefix(':'));
            rows.map(str::trim).next()
        };
        let count = metric("http_reqs").or_else(|| metric("iterations")).and_then(first)?;
        let failed = metric("http_req_failed")
            .and_then(|rest| before(rest, " out of ").or_else(|| first(rest.split_once('✓')?.1)));
        Some(Work { count, errors: failed.unwrap_or(0) })
    };
    of_document().or_else(of_text)
}

fn ghz(said: &Said<'_>) -> Option<Work> {
    let (count, right) = match document(said) {
        Some(found) => {
            let statuses = counts(&found, "/statusCodeDistribution");
            let right = statuses.iter().filter(|(status, _)| *status == "OK").map(|(_, count)| count).sum();
            (count_at(&found, "/count")?, right)
        }
        None => {
            let statuses = bracketed(said.stdout, "Status code distribution");
            let right =
                statuses.filter(|(status, _)| *status == "OK").filter_map(|(_, rest)| first(rest)).sum();
            (after(said.stdout, "Count:")?, right)
        }
    };
    let right: u64 = right;
    Some(Work { count, errors: count.saturating_sub(right) })
}

fn oha(said: &Said<'_>) -> Option<Work> {
    let Some(found) = document(said) else { return of_statuses(said.stdout) };
    let statuses = counts(&found, "/statusCodeDistribution");
    let wrong = statuses.iter().filter(|(status, _)| !is_right(status)).map(|(_, count)| count);
    let failed = counts(&found, "/errorDistribution").into_iter().filter(|(what, _)| *what != CUT_OFF);
    let errors = wrong.sum::<u64>() + failed.map(|(_, count)| count).sum::<u64>();
    Some(Work { count: statuses.iter().map(|(_, count)| count).sum(), errors })
}

/// What hey and oha print: `[200] 20000 responses`, and errors with their number in brackets.
fn of_statuses(text: &str) -> Option<Work> {
    let statuses: Vec<(&str, u64)> = bracketed(text, "Status code distribution")
        .filter_map(|(status, rest)| Some((status, first(rest)?)))
        .collect();
    let wrong: u64 = statuses.iter().filter(|(status, _)| !is_right(status)).map(|(_, count)| count).sum();
    let failed = bracketed(text, "Error distribution").filter(|(_, what)| what.trim() != CUT_OFF);
    let failed: u64 = failed.filter_map(|(count, _)| first(count)).sum();
    (!statuses.is_empty())
        .then(|| Work { count: statuses.iter().map(|(_, count)| count).sum(), errors: wrong + failed })
}

/// Whether a status of HTTP is not a failure.
fn is_right(status: &str) -> bool {
    status.starts_with(['1', '2', '3'])
}

/// Its record counts every message; messages in flight at the end of a closed loop are no errors.
fn weir(said: &Said<'_>) -> Option<Work> {
    let found = document(said)?;
    let failures = counts(&found, "/failures").into_iter().filter(|(class, _)| *class != "cut_off_at_end");
    let late = found.pointer("/failed_starts").and_then(count_of).unwrap_or(0);
    let errors = failures.map(|(_, count)| count).sum::<u64>() + late;
    Some(Work { count: count_at(&found, "/messages_whole_run")?, errors })
}

#[cfg(test)]
mod tests;
