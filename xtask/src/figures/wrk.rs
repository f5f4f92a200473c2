//! The generator beside wrk, against the same server in interleaved runs. wrk counts responses and reads no content;
//! ours checks every byte.

use std::{process::Command, time::Duration};

use weir_record::load::LoadReport;

use super::{
    Row, children,
    goal::{Goal, Outcome, judge},
    memory::{Server, spread, start_with, store, stored},
    plan::Plan,
    session::{Laboratory, Stop},
};

const PAIRS: usize = 12;
const WINDOW: Duration = Duration::from_secs(2);
const WINDOW_REHEARSED: Duration = Duration::from_secs(1);
const WARMUP_MAX: Duration = Duration::from_millis(500);
const CONNECTIONS: &str = "100";

/// "No slower", with the margin of the other figures.
const RATIO_MIN: f64 = 0.97;

const KEY: &str = "http-wrk";

fn shape(laboratory: &Laboratory) -> (usize, Duration) {
    if laboratory.rehearsal { (1, WINDOW_REHEARSED) } else { (PAIRS, WINDOW) }
}

/// What the group takes, and how much of it is left.
pub fn plan(laboratory: &Laboratory) -> (Plan, Plan) {
    let (pairs, window) = shape(laboratory);
    let all = Plan::of_trials(2 * pairs as u64, WARMUP_MAX + window);
    let is_stored = stored::<Vec<f64>>(laboratory, KEY).is_some();
    (all, if is_stored { Plan::default() } else { all })
}

/// The one row.
pub fn rows(laboratory: &Laboratory) -> Result<Vec<Row>, Stop> {
    let ratios = match stored(laboratory, KEY) {
        Some(ratios) => Ok(ratios),
        None => measure(laboratory),
    };
    if laboratory.children.is_interrupted() {
        return Err(Stop::Interrupted);
    }
    if let Ok(ratios) = &ratios {
        store(laboratory, KEY, ratios).map_err(Stop::Failed)?;
    }
    let measured =
        ratios.and_then(|ratios: Vec<f64>| spread(&ratios).ok_or_else(|| "nothing was measured".to_owned()));
    let goal = Goal::at_least(RATIO_MIN);
    let (outcome, measured) = match measured {
        Ok(measured) => (judge(goal, &measured), measured.to_string()),
        Err(reason) => (Outcome::NotMeasured, reason),
    };
    Ok(vec![Row {
        figure: format!("generator / wrk, throughput, {CONNECTIONS} connections, small page, uring server"),
        goal: goal.to_string(),
        measured,
        outcome,
        command: "cargo xtask figures --only http-wrk".to_owned(),
    }])
}

fn measure(laboratory: &Laboratory) -> Result<Vec<f64>, String> {
    let found = Command::new("wrk").arg("--version").output();
    found.map_err(|error| format!("wrk is not here: {error}; install the package wrk"))?;
    let (pairs, _) = shape(laboratory);
    let server = start_with(laboratory, "http", "uring", &["--pin", "0"])?;
    let mut ratios = Vec::with_capacity(pairs);
    for pair in 0..pairs {
        let (ours, theirs) = if pair % 2 == 0 {
            let ours = ours(laboratory, &server)?;
            (ours, wrk(laboratory, &server)?)
        } else {
            let theirs = wrk(laboratory, &server)?;
            (ours(laboratory, &server)?, theirs)
        };
        ratios.push(ours / theirs);
    }
    Ok(ratios)
}

/// Responses a second of our generator.
fn ours(laboratory: &Laboratory, server: &Server) -> Result<f64, String> {
    let (_, window) = shape(laboratory);
    let milliseconds = |length: Duration| format!("{}ms", length.as_millis());
    let mut command = laboratory.command(laboratory.weir.as_os_str());
    command.args(["load", "http", &format!("http://{}/", server.address), "--json", "--pin", "1"]);
    command.args(["--connections", CONNECTIONS, "--expect-content", "html"]);
    command.args(["--warmup-max", &milliseconds(WARMUP_MAX), "--duration", &milliseconds(window)]);
    let (status, printed) = children::output(&laboratory.children, &mut command)
        .map_err(|error| format!("cannot run the generator: {error}"))?;
    if !status.success() {
        return Err(format!("the generator ended with {status}"));
    }
    let report: LoadReport =
        serde_json::from_slice(&printed).map_err(|error| format!("no report: {error}"))?;
    if report.failures.errors() > 0 {
        return Err(format!("{} requests failed", report.failures.errors()));
    }
    Ok(report.throughput_per_second)
}

/// Responses a second of wrk, with one thread on the same core.
fn wrk(laboratory: &Laboratory, server: &Server) -> Result<f64, String> {
    let (_, window) = shape(laboratory);
    let mut command = laboratory.command("taskset".as_ref());
    command.args(["-c", "1", "wrk", "-t1", "-c", CONNECTIONS, "-d", &format!("{}s", window.as_secs())]);
    command.arg(format!("http://{}/", server.address));
    let (status, printed) = children::output(&laboratory.children, &mut command)
        .map_err(|error| format!("cannot run wrk: {error}"))?;
    if !status.success() {
        return Err(format!("wrk ended with {status}"));
    }
    requests_per_second(&String::from_utf8_lossy(&printed))
}

fn requests_per_second(printed: &str) -> Result<f64, String> {
    if let Some(line) =
        printed.lines().find(|line| line.contains("Non-2xx") || line.contains("Socket errors"))
    {
        return Err(format!("wrk saw failures: {}", line.trim()));
    }
    let value = printed.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:"));
    let rate = value.and_then(|value| value.trim().parse::<f64>().ok()).filter(|rate| *rate > 0.0);
    rate.ok_or_else(|| "wrk printed no rate".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_read_and_failures_are_none() {
        let right = "Running 2s test\n  1 threads\nRequests/sec:  91234.56\nTransfer/sec:     12.10MB\n";
        assert_eq!(requests_per_second(right), Ok(91_234.56));
        let failed = "  Socket errors: connect 0, read 3, write 0, timeout 0\nRequests/sec: 1.0\n";
        assert!(requests_per_second(failed).is_err_and(|reason| reason.contains("read 3")));
        assert!(requests_per_second("Requests/sec: 0.00\n").is_err());
        assert!(requests_per_second("").is_err());
    }
}
