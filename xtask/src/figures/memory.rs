//! What silent connections cost: memory of the server's own, and CPU time. No study: nothing is compared but one server
//! with itself, before and after ten thousand connections have come.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Stdio},
};

use weir_record::{load::LoadReport, trial::ObservedWindow};
use weir_stats::order;

use super::{
    Row,
    goal::{Goal, Measured, Outcome, judge},
    session::Laboratory,
};

/// Servers looked at for each driver: six give an interval of 97 % between the smallest and the largest.
const SERVERS: usize = 6;

/// Silent connections; client and server each need a descriptor for every one.
const IDLE_CONNECTIONS: u32 = 10_000;
const IDLE_CONNECTIONS_REHEARSED: u32 = 500;

const BYTES_PER_CONNECTION_MAX: f64 = 1024.0;

/// What "no CPU" allows, in milliseconds a second: a thousandth of a core. The clock that keeps the generator's ten
/// messages a second coming is the same in both windows.
const CPU_MS_PER_SECOND_MAX: f64 = 1.0;

/// A server process that ends with this value.
struct Server {
    child: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What one server showed.
struct Growth {
    bytes_per_connection: f64,
    cpu_ms_per_second: f64,
}

/// The rows of both drivers.
pub fn rows(laboratory: &Laboratory) -> Vec<Row> {
    ["epoll", "uring"].into_iter().flat_map(|driver| driver_rows(laboratory, driver)).collect()
}

fn driver_rows(laboratory: &Laboratory, driver: &str) -> Vec<Row> {
    let servers = if laboratory.rehearsal { 1 } else { SERVERS };
    let idle = if laboratory.rehearsal { IDLE_CONNECTIONS_REHEARSED } else { IDLE_CONNECTIONS };
    let growths: Result<Vec<Growth>, String> =
        (0..servers).map(|_| growth(laboratory, driver, idle)).collect();
    let row = |what: &str, unit: &str, bound: f64, value: fn(&Growth) -> f64| {
        let figure = format!("{driver}: {what} of {idle} idle connections");
        let goal = format!("≤ {bound} {unit}");
        let measured = growths.as_ref().map_err(Clone::clone).and_then(|growths| {
            let values: Vec<f64> = growths.iter().map(value).collect();
            spread(&values).ok_or_else(|| "nothing was measured".to_owned())
        });
        match measured {
            Ok(measured) => Row {
                figure,
                goal,
                outcome: judge(Goal::Within(f64::NEG_INFINITY, bound), &measured),
                measured: format!("{measured} {unit}"),
                command: "cargo xtask figures --only memory".to_owned(),
            },
            Err(reason) => Row {
                figure,
                goal,
                outcome: Outcome::NotMeasured,
                measured: reason,
                command: "cargo xtask figures --only memory".to_owned(),
            },
        }
    };
    vec![
        row("RssAnon growth", "bytes each", BYTES_PER_CONNECTION_MAX, |growth| growth.bytes_per_connection),
        row("CPU", "ms a second", CPU_MS_PER_SECOND_MAX, |growth| growth.cpu_ms_per_second),
    ]
}

/// Median between smallest and largest, which is an interval of known confidence.
fn spread(values: &[f64]) -> Option<Measured> {
    let (spread, interval) =
        (order::spread(values)?, weir_stats::interval::order_statistics_interval(values)?);
    Some(Measured {
        ratio: spread.median,
        interval: Some((interval.low, interval.high)),
        confidence: interval.confidence,
        verdict: None,
        note: String::new(),
    })
}

fn growth(laboratory: &Laboratory, driver: &str, idle: u32) -> Result<Growth, String> {
    let server = start(laboratory, driver)?;
    let before = window(laboratory, &server, 0)?;
    let after = window(laboratory, &server, idle)?;
    let share = |(observed, window_ns): &(ObservedWindow, u64)| observed.cpu_ns as f64 / *window_ns as f64;
    Ok(Growth {
        bytes_per_connection: (after.0.rss_anon_bytes as f64 - before.0.rss_anon_bytes as f64)
            / f64::from(idle),
        cpu_ms_per_second: 1000.0 * (share(&after) - share(&before)),
    })
}

fn start(laboratory: &Laboratory, driver: &str) -> Result<Server, String> {
    let mut command = laboratory.command(laboratory.weir.as_os_str());
    command.args(["serve", "echo", "--driver", driver, "--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cannot start the server: {error}"))?;
    let mut line = String::new();
    let said = child.stdout.take().map(|stdout| BufReader::new(stdout).read_line(&mut line));
    let mut server = Server { child, address: String::new() };
    match (said, line.trim().strip_prefix("listening on ")) {
        (Some(Ok(_)), Some(address)) => server.address = address.to_owned(),
        _ => return Err(format!("the {driver} server does not listen")),
    }
    Ok(server)
}

/// One window of ten messages a second on one connection, while others are silent.
fn window(laboratory: &Laboratory, server: &Server, idle: u32) -> Result<(ObservedWindow, u64), String> {
    let duration = if laboratory.rehearsal { "300ms" } else { "5s" };
    let mut command = laboratory.command(laboratory.weir.as_os_str());
    command.args(["load", "echo", "--json", "--connections", "1", "--rate", "10", "--arrivals", "uniform"]);
    command.args(["--warmup-max", "500ms", "--duration", duration, "--target", &server.address]);
    command.arg(format!("--idle-connections={idle}")).arg(format!("--observe-pid={}", server.child.id()));
    let output = command.output().map_err(|error| format!("cannot start the generator: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let report: LoadReport =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("no report: {error}"))?;
    if report.failures.errors() > 0 {
        return Err(format!("{} responses or connections failed", report.failures.errors()));
    }
    let observed = report.observed.ok_or("the server was not observed")?;
    Ok((observed, report.window_ns.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_servers_give_an_interval_that_may_decide() {
        let measured = spread(&[700.0, 710.0, 690.0, 705.0, 695.0, 720.0]).expect("six values");
        assert_eq!(measured.interval, Some((690.0, 720.0)));
        assert_eq!(judge(Goal::Within(f64::NEG_INFINITY, BYTES_PER_CONNECTION_MAX), &measured), Outcome::Met);
        let one = spread(&[700.0]).expect("one value");
        assert_eq!(
            judge(Goal::Within(f64::NEG_INFINITY, BYTES_PER_CONNECTION_MAX), &one),
            Outcome::MetByPointOnly
        );
    }
}
