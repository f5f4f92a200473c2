//! What the parts of the gateway do alone, as their benches say it: handing over between two CPUs, matching, and
//! recovery of a journal. Each bench runs several times; its tables are read, and nothing is computed again.

use std::{env, fs, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    Row, children,
    goal::{Goal, Outcome, judge_count},
    interleaved::{Noted, alone, goal_row, kept, planned, repeated, repeated_on_disk},
    memory::stored,
    plan::Plan,
    session::{Laboratory, Stop},
};

const GROUP: &str = "order-benches";

/// Six give an interval of 97 % between the smallest and the largest.
const RUNS: usize = 6;

/// Recoveries in one run of the journal's bench.
const JOURNAL_RUNS: usize = 2;

/// What one run takes, for the plan.
const HANDOFF: Duration = Duration::from_secs(14);
const MATCHING: Duration = Duration::from_secs(6);
const JOURNAL: Duration = Duration::from_secs(25);

/// Operations of a run of the book.
const OPERATIONS: &str = "500000";
const OPERATIONS_REHEARSED: &str = "20000";

/// Live orders, as the book keeps them: about as many.
const LIVE_MIN: f64 = 95_000.0;

const MESH_SHARE_MIN: f64 = 0.5;
const WAKES_MAX: f64 = 0.01;
const OPERATIONS_PER_SECOND_MIN: f64 = 5.0e6;
const P99_NS_MAX: f64 = 1000.0;
const RECORDS_PER_SECOND_MIN: f64 = 1.0e6;

const SATURATING: &str = "saturating";
const UNIFORM: &str = "50k/s";
const POISSON: &str = "50k/s Poisson";
const BARE: &str = "spin";
const MESH: &str = "mesh";
const MESH_SPIN: &str = "mesh-spin50";

/// One line of the hand-off's table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Handed {
    rate: String,
    mechanism: String,
    thousands_per_second: f64,
    wakes: f64,
}

/// One line of the book's table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Matched {
    symbols: u32,
    live: f64,
    per_second: f64,
    p99_ns: f64,
    allocations: u64,
}

/// The lines of each run, or why there are none.
type Runs<T> = Result<Vec<Noted<Vec<T>>>, String>;

/// What the plan and the runs of a bench need.
#[derive(Clone, Copy)]
struct Bench {
    package: &'static str,
    name: &'static str,
    runs: usize,
    length: Duration,
}

const BENCHES: [Bench; 3] = [
    Bench { package: "weir-engine", name: "handoff", runs: RUNS, length: HANDOFF },
    Bench { package: "weir-trading", name: "matching", runs: RUNS, length: MATCHING },
    Bench { package: "weir-servers", name: "journal", runs: JOURNAL_RUNS, length: JOURNAL },
];

impl Bench {
    fn key(self) -> String {
        format!("{GROUP}-{}", self.name)
    }

    fn runs(self, laboratory: &Laboratory) -> usize {
        if laboratory.rehearsal { 1 } else { self.runs }
    }

    /// Builds it, so that no run is a build.
    fn build(self, laboratory: &Laboratory) -> Result<(), String> {
        self.cargo(laboratory, &["--no-run"], None).map(drop)
    }

    /// What it prints.
    fn cargo(
        self,
        laboratory: &Laboratory,
        words: &[&str],
        variable: Option<(&str, &str)>,
    ) -> Result<String, String> {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = laboratory.command(cargo.as_ref());
        command.args(["bench", "--locked", "--quiet", "-p", self.package, "--bench", self.name]).args(words);
        command.envs(variable);
        let (status, printed) = children::output(&laboratory.children, &mut command)
            .map_err(|error| format!("cannot run cargo bench: {error}"))?;
        if !status.success() {
            return Err(format!("the bench {} ended with {status}", self.name));
        }
        Ok(String::from_utf8_lossy(&printed).into_owned())
    }
}

/// What the group takes, and how much of it is left.
pub fn plan(laboratory: &Laboratory) -> (Plan, Plan) {
    let (mut all, mut left) = (Plan::default(), Plan::default());
    for bench in BENCHES {
        let plan = planned(bench.runs(laboratory) as u64, bench.length);
        all.add(plan);
        if stored::<serde_json::Value>(laboratory, &bench.key()).is_none() {
            left.add(plan);
        }
    }
    (all, left)
}

/// The rows of all benches.
pub fn rows(laboratory: &Laboratory) -> Result<Vec<Row>, Stop> {
    let [handoff, matching, journal] = BENCHES;
    let handed = handed(laboratory, handoff)?;
    let matched = matched(laboratory, matching)?;
    let recovered = recovered(laboratory, journal)?;
    let mut rows = handoff_rows(handed.as_ref());
    rows.extend(matching_rows(matched.as_ref()));
    let figure = "journal: records a second of recovery".to_owned();
    let goal = (Goal::at_least(RECORDS_PER_SECOND_MIN / 1.0e6), "million");
    // Each run recovers several times, on the same machine as it was then.
    let each: Result<Vec<Noted<f64>>, String> = recovered
        .map(|runs| runs.iter().flat_map(|run| run.value.iter().map(|rate| run.with(*rate))).collect());
    rows.push(goal_row(GROUP, figure, goal, each.and_then(|each| alone(&each, |rate| rate / 1.0e6))));
    Ok(rows)
}

fn handed(laboratory: &Laboratory, bench: Bench) -> Result<Runs<Handed>, Stop> {
    kept(laboratory, &bench.key(), || {
        bench.build(laboratory)?;
        let length = if laboratory.rehearsal { "20" } else { "300" };
        let words = ["--", "--rounds", "1", "--ms", length, "--driver", "epoll"];
        let run = || read_handoff(&bench.cargo(laboratory, &words, None)?);
        repeated(laboratory, bench.runs(laboratory), run)
    })
}

fn matched(laboratory: &Laboratory, bench: Bench) -> Result<Runs<Matched>, Stop> {
    kept(laboratory, &bench.key(), || {
        bench.build(laboratory)?;
        let operations = if laboratory.rehearsal { OPERATIONS_REHEARSED } else { OPERATIONS };
        let variable = Some(("WEIR_BENCH_OPERATIONS", operations));
        let run = || read_matching(&bench.cargo(laboratory, &[], variable)?);
        repeated(laboratory, bench.runs(laboratory), run)
    })
}

fn recovered(laboratory: &Laboratory, bench: Bench) -> Result<Runs<f64>, Stop> {
    kept(laboratory, &bench.key(), || {
        bench.build(laboratory)?;
        let folder: PathBuf = laboratory.out.join("journal-bench-files");
        let words = ["--", &folder.display().to_string()];
        let run = || read_recovery(&bench.cargo(laboratory, &words, None)?);
        let runs = repeated_on_disk(laboratory, bench.runs(laboratory), run);
        // A run that was interrupted leaves it behind.
        let _ = fs::remove_dir_all(&folder);
        runs
    })
}

fn handoff_rows(runs: Result<&Vec<Noted<Vec<Handed>>>, &String>) -> Vec<Row> {
    let number =
        |of: fn(&[Handed]) -> f64| runs.map_err(Clone::clone).and_then(|runs| alone(runs, |lines| of(lines)));
    let row = |figure: &str, goal, number| goal_row(GROUP, format!("hand-off: {figure}"), goal, number);
    let no_bound = (Goal::at_least(0.0), "");
    let mut rows = vec![
        row(
            "mesh / bare spinning ring, saturating, messages a second",
            (Goal::at_least(MESH_SHARE_MIN), ""),
            number(|lines| to_bare(lines, MESH)),
        ),
        row(
            "wakes a message of mesh with a spin of 50 µs, 50,000 a second at even distances",
            (Goal::at_most(WAKES_MAX), ""),
            number(|lines| wakes(lines, UNIFORM)),
        ),
    ];
    for (figure, of) in [
        (
            "wakes a message of mesh with a spin of 50 µs, 50,000 a second at random distances",
            number(|lines| wakes(lines, POISSON)),
        ),
        (
            "an eventfd for each message / bare spinning ring, saturating",
            number(|lines| to_bare(lines, "eventfd-each")),
        ),
        (
            "MSG_RING for each message / bare spinning ring, saturating",
            number(|lines| to_bare(lines, "msgring-each")),
        ),
    ] {
        rows.push(listed(row(figure, no_bound, of)));
    }
    rows
}

/// Messages a second of a mechanism, saturating, as a share of the bare ring's.
fn to_bare(lines: &[Handed], mechanism: &str) -> f64 {
    let rate =
        |mechanism| line(lines, SATURATING, mechanism).map_or(f64::NAN, |line| line.thousands_per_second);
    rate(mechanism) / rate(BARE)
}

/// Wakes a message of the default strategy with its spin.
fn wakes(lines: &[Handed], rate: &str) -> f64 {
    line(lines, rate, MESH_SPIN).map_or(f64::NAN, |line| line.wakes)
}

/// A number of which nothing is asked.
fn listed(row: Row) -> Row {
    let outcome = if row.outcome == Outcome::NotMeasured { row.outcome } else { Outcome::Listed };
    Row { goal: "report".to_owned(), outcome, ..row }
}

fn line<'a>(lines: &'a [Handed], rate: &str, mechanism: &str) -> Option<&'a Handed> {
    lines.iter().find(|line| line.rate == rate && line.mechanism == mechanism)
}

fn matching_rows(runs: Result<&Vec<Noted<Vec<Matched>>>, &String>) -> Vec<Row> {
    let mut rows = Vec::new();
    let symbols: Vec<u32> = match runs {
        Ok(runs) => runs.iter().take(1).flat_map(|run| run.value.iter().map(|line| line.symbols)).collect(),
        // One row says why there is none.
        Err(_) => vec![1],
    };
    for symbols in symbols {
        let number = |of: fn(&Matched) -> f64| {
            runs.map_err(Clone::clone).and_then(|runs| {
                let of_line = |lines: &Vec<Matched>| {
                    lines.iter().find(|line| line.symbols == symbols).map_or(f64::NAN, of)
                };
                alone(runs, of_line)
            })
        };
        let plural = if symbols == 1 { "" } else { "s" };
        let figure = |what: &str| format!("matching, 100,000 live orders, {symbols} symbol{plural}: {what}");
        let rate = (Goal::at_least(OPERATIONS_PER_SECOND_MIN / 1.0e6), "million");
        rows.push(goal_row(
            GROUP,
            figure("operations a second"),
            rate,
            number(|line| line.per_second / 1.0e6),
        ));
        let p99 = (Goal::at_most(P99_NS_MAX), "ns");
        rows.push(goal_row(GROUP, figure("p99 of an operation"), p99, number(|line| line.p99_ns)));
    }
    rows.push(allocations_row(runs));
    rows
}

fn allocations_row(runs: Result<&Vec<Noted<Vec<Matched>>>, &String>) -> Row {
    let (measured, outcome) = match runs {
        Ok(runs) => {
            let counts: Vec<u64> =
                runs.iter().flat_map(|run| run.value.iter().map(|line| line.allocations)).collect();
            let most = counts.iter().max().copied().unwrap_or(0);
            (format!("{most} at most in {} tables", runs.len()), judge_count(most == 0, !counts.is_empty()))
        }
        Err(reason) => (reason.clone(), Outcome::NotMeasured),
    };
    Row {
        figure: "matching, 100,000 live orders: allocations in steady state".to_owned(),
        goal: "none".to_owned(),
        measured,
        outcome,
        command: format!("cargo xtask figures --only {GROUP}"),
    }
}

/// Reads the table of the hand-off's bench.
fn read_handoff(printed: &str) -> Result<Vec<Handed>, String> {
    let lines = printed.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        let [rate, mechanism, _, per_second, _, wakes, ..] = cells.as_slice() else { return None };
        Some(Handed {
            rate: (*rate).to_owned(),
            mechanism: (*mechanism).to_owned(),
            thousands_per_second: per_second.strip_suffix('k')?.parse().ok()?,
            wakes: wakes.parse().ok()?,
        })
    });
    let lines: Vec<Handed> = lines.collect();
    for (rate, mechanism) in
        [(SATURATING, BARE), (SATURATING, MESH), (UNIFORM, MESH_SPIN), (POISSON, MESH_SPIN)]
    {
        if line(&lines, rate, mechanism).is_none() {
            return Err(format!("the hand-off's bench says nothing of {mechanism}, {rate}"));
        }
    }
    Ok(lines)
}

/// Reads the lines of the book's bench that have a large book.
fn read_matching(printed: &str) -> Result<Vec<Matched>, String> {
    let lines = printed.lines().filter_map(|line| {
        // The lowest and the highest rate stand in parentheses, with a blank between them.
        let (before, rest) = line.split_once('(')?;
        let (_, after) = rest.split_once(')')?;
        let numbers = |text: &str| -> Option<Vec<f64>> {
            text.split_whitespace().map(|number| number.parse().ok()).collect()
        };
        let [symbols, live, per_second] = numbers(before)?[..] else { return None };
        // The hash at the end is no number.
        let after: Vec<&str> = after.split_whitespace().collect();
        let [_cpu_ns, _p50, p99_ns, _p999, _max, allocations, ..] = after.as_slice() else { return None };
        let p99_ns = p99_ns.parse().ok()?;
        let allocations = allocations.parse().ok()?;
        Some(Matched { symbols: symbols as u32, live, per_second, p99_ns, allocations })
    });
    let large: Vec<Matched> = lines.filter(|line| line.live >= LIVE_MIN).collect();
    if large.is_empty() { Err("the book's bench says nothing of a large book".to_owned()) } else { Ok(large) }
}

/// Reads the rates of recovery that the journal's bench prints.
fn read_recovery(printed: &str) -> Result<Vec<f64>, String> {
    let lines = printed.lines().filter_map(|line| {
        let (_, rate) = line.strip_prefix("recovery: ")?.split_once(" records, ")?;
        rate.strip_suffix(" a second")?.parse().ok()
    });
    let rates: Vec<f64> = lines.collect();
    if rates.is_empty() { Err("the journal's bench says nothing of recovery".to_owned()) } else { Ok(rates) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANDED: &str = "\
| rate | mechanism | n | msg/s | producer ns/msg | wakes/msg | sleeps/msg | p50 us | p99 us | CPU % |
|---|---|---|---|---|---|---|---|---|---|
| saturating | spin | 1 | 30000k | 33 | 0.0000 | 0.0000 | 0.10 | 0.2 | 100 |
| saturating | mesh | 1 | 18000k | 55 | 0.0001 | 0.0000 | 0.30 | 0.9 | 99 |
| 50k/s | mesh-spin50 | 1 | 50k | 90 | 0.0020 | 0.0010 | 0.30 | 0.9 | 99 |
| 50k/s Poisson | mesh-spin50 | 1 | 50k | 90 | 0.1020 | 0.0010 | 0.30 | 0.9 | 99 |
";

    #[test]
    fn the_table_of_the_handoff_is_read_and_a_missing_line_is_named() {
        let lines = read_handoff(HANDED).expect("it is whole");
        assert_eq!(lines.len(), 4);
        let runs: Vec<Noted<Vec<Handed>>> = (0..RUNS).map(|_| Noted::undisturbed(lines.clone())).collect();
        let rows = handoff_rows(Ok(&runs));
        assert!(rows[0].measured.starts_with("0.600 "), "{}", rows[0].measured);
        let outcomes: Vec<Outcome> = rows.iter().take(3).map(|row| row.outcome).collect();
        assert_eq!(outcomes, [Outcome::Met, Outcome::Met, Outcome::Listed]);
        let less = HANDED.replace("| 50k/s | mesh-spin50", "| 50k/s | mesh");
        assert!(read_handoff(&less).is_err_and(|reason| reason.contains("mesh-spin50, 50k/s")));
    }

    #[test]
    fn the_table_of_the_book_is_read_where_the_book_is_large() {
        let printed = "seed 2026, 500000 operations a run, 7 runs; two readings of the clock: 25 ns\n\
            symbols     live  operations/s       (lowest, highest) cpu ns  p50 ns  p99 ns   p99.9   max ns\n      \
            1     1000      12000000   (11000000, 13000000)     80      90     300     500    90000           0     5 abc\n \
            16   100012       7000000     (6000000, 8000000)    140     150     800    1500    90000           0     5 12f\n";
        let lines = read_matching(printed).expect("there is one");
        let expected =
            Matched { symbols: 16, live: 100_012.0, per_second: 7.0e6, p99_ns: 800.0, allocations: 0 };
        assert_eq!(lines, [expected]);
        let runs: Vec<Noted<Vec<Matched>>> = (0..RUNS).map(|_| Noted::undisturbed(lines.clone())).collect();
        let outcomes: Vec<Outcome> = matching_rows(Ok(&runs)).iter().map(|row| row.outcome).collect();
        assert_eq!(outcomes, [Outcome::Met; 3]);
        let leaky = vec![Noted::undisturbed(vec![Matched { allocations: 1, ..expected }])];
        assert_eq!(allocations_row(Ok(&leaky)).outcome, Outcome::Missed);
        assert!(read_matching("nothing").is_err());
    }

    #[test]
    fn the_rates_of_recovery_are_read() {
        let printed = "driver level\nrecovery: 1000000 records, 2345678 a second\nrecovery: 1000000 records, 2 a second\n";
        assert_eq!(read_recovery(printed), Ok(vec![2_345_678.0, 2.0]));
        assert!(read_recovery("recovery: none").is_err());
    }

    #[test]
    fn without_a_run_each_bench_has_a_row_that_says_why() {
        let reason = "no cargo".to_owned();
        for row in handoff_rows(Err(&reason)).into_iter().chain(matching_rows(Err(&reason))) {
            assert_eq!(
                (row.outcome, row.measured.as_str()),
                (Outcome::NotMeasured, "no cargo"),
                "{}",
                row.figure
            );
        }
    }
}
