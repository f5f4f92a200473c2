//! What silent connections cost: memory of the server's own, and CPU time. No study: nothing is compared but one server
//! with itself, before and after ten thousand connections have come.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
    time::Duration,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use weir_record::{load::LoadReport, trial::ObservedWindow};
use weir_stats::order;

use super::{
    Row,
    children::{self, Running},
    goal::{Goal, Measured, Outcome, judge},
    plan::Plan,
    session::{Laboratory, Stop},
};

pub(super) const DRIVERS: [&str; 2] = ["epoll", "uring"];

/// Servers looked at for each driver: six give an interval of 97 % between the smallest and the largest.
pub(super) const SERVERS: usize = 6;

/// Silent connections; client and server each need a descriptor for every one.
pub(super) const IDLE_CONNECTIONS: u32 = 10_000;
pub(super) const IDLE_CONNECTIONS_REHEARSED: u32 = 500;

const BYTES_PER_CONNECTION_MAX: f64 = 1024.0;

/// What "no CPU" allows, in milliseconds a second: a thousandth of a core. The clock that keeps the generator's ten
/// messages a second coming is the same in both windows.
const CPU_MS_PER_SECOND_MAX: f64 = 1.0;

/// One window, and the longest warm-up before it.
const WINDOW: Duration = Duration::from_secs(5);
const WINDOW_REHEARSED: Duration = Duration::from_millis(300);
const WARMUP_MAX: Duration = Duration::from_millis(500);

/// What one server showed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Growth {
    bytes_per_connection: f64,
    cpu_ms_per_second: f64,
}

/// Shape of one look; a rehearsal takes a small one.
#[derive(Clone, Copy)]
struct Look {
    servers: usize,
    idle_connections: u32,
    window: Duration,
}

impl Look {
    fn of(laboratory: &Laboratory) -> Self {
        if laboratory.rehearsal {
            Self { servers: 1, idle_connections: IDLE_CONNECTIONS_REHEARSED, window: WINDOW_REHEARSED }
        } else {
            Self { servers: SERVERS, idle_connections: IDLE_CONNECTIONS, window: WINDOW }
        }
    }
}

/// What the group takes, and how much of it is left. A server is looked at in two windows.
pub fn plan(laboratory: &Laboratory) -> (Plan, Plan) {
    let look = Look::of(laboratory);
    let of = |drivers: usize| Plan::of_trials(2 * (drivers * look.servers) as u64, WARMUP_MAX + look.window);
    let left = DRIVERS.iter().filter(|driver| stored::<Vec<Growth>>(laboratory, &key(driver)).is_none());
    (of(DRIVERS.len()), of(left.count()))
}

/// The rows of both drivers.
pub fn rows(laboratory: &Laboratory) -> Result<Vec<Row>, Stop> {
    let mut rows = Vec::new();
    for driver in DRIVERS {
        rows.extend(driver_rows(laboratory, driver)?);
    }
    Ok(rows)
}

fn driver_rows(laboratory: &Laboratory, driver: &str) -> Result<Vec<Row>, Stop> {
    let look = Look::of(laboratory);
    let growths: Result<Vec<Growth>, String> = match stored(laboratory, &key(driver)) {
        Some(growths) => Ok(growths),
        None => (0..look.servers).map(|_| growth(laboratory, driver, look)).collect(),
    };
    if laboratory.children.is_interrupted() {
        return Err(Stop::Interrupted);
    }
    if let Ok(growths) = &growths {
        store(laboratory, &key(driver), growths).map_err(Stop::Failed)?;
    }
    let row = |what: &str, unit: &str, bound: f64, value: fn(&Growth) -> f64| {
        let measured = growths.as_ref().map_err(Clone::clone).and_then(|growths| {
            let values: Vec<f64> = growths.iter().map(value).collect();
            spread(&values).ok_or_else(|| "nothing was measured".to_owned())
        });
        let (outcome, measured) = match measured {
            Ok(measured) => {
                (judge(Goal::Within(f64::NEG_INFINITY, bound), &measured), format!("{measured} {unit}"))
            }
            Err(reason) => (Outcome::NotMeasured, reason),
        };
        Row {
            figure: format!("{driver}: {what} of {} idle connections", look.idle_connections),
            goal: format!("≤ {bound} {unit}"),
            measured,
            outcome,
            command: "cargo xtask figures --only memory".to_owned(),
        }
    };
    Ok(vec![
        row("RssAnon growth", "bytes each", BYTES_PER_CONNECTION_MAX, |growth| growth.bytes_per_connection),
        row("CPU", "ms a second", CPU_MS_PER_SECOND_MAX, |growth| growth.cpu_ms_per_second),
    ])
}

/// Under which name the looks at one driver are kept for the next call.
fn key(driver: &str) -> String {
    format!("memory-{driver}")
}

/// What an earlier call kept under this name.
pub(super) fn stored<T: DeserializeOwned>(laboratory: &Laboratory, name: &str) -> Option<T> {
    let text = fs::read(laboratory.out.join(format!("{name}.json"))).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Keeps it for the next call.
pub(super) fn store<T: Serialize + ?Sized>(
    laboratory: &Laboratory,
    name: &str,
    looks: &T,
) -> Result<(), String> {
    let text = serde_json::to_vec(looks).map_err(|error| error.to_string())?;
    fs::write(laboratory.out.join(format!("{name}.json")), text).map_err(|error| format!("{name}: {error}"))
}

/// Median between smallest and largest, which is an interval of known confidence.
pub(super) fn spread(values: &[f64]) -> Option<Measured> {
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

/// A server that listens. It ends with this value.
pub(super) struct Server {
    /// Its process.
    pub process: Running,
    /// Where it listens.
    pub address: String,
}

fn growth(laboratory: &Laboratory, driver: &str, look: Look) -> Result<Growth, String> {
    let server = start(laboratory, "echo", driver)?;
    let before = window(laboratory, &server, look.window, 0)?;
    let after = window(laboratory, &server, look.window, look.idle_connections)?;
    let share = |(observed, window_ns): &(ObservedWindow, u64)| observed.cpu_ns as f64 / *window_ns as f64;
    Ok(Growth {
        bytes_per_connection: (after.0.rss_anon_bytes as f64 - before.0.rss_anon_bytes as f64)
            / f64::from(look.idle_connections),
        cpu_ms_per_second: 1000.0 * (share(&after) - share(&before)),
    })
}

/// Starts `weir serve` with everything else as it is by default.
pub(super) fn start(laboratory: &Laboratory, protocol: &str, driver: &str) -> Result<Server, String> {
    start_with(laboratory, protocol, driver, &[])
}

/// Starts `weir serve` with further words.
pub(super) fn start_with(
    laboratory: &Laboratory,
    protocol: &str,
    driver: &str,
    words: &[&str],
) -> Result<Server, String> {
    let mut command = laboratory.command(laboratory.weir.as_os_str());
    command.args(["serve", protocol, "--driver", driver, "--listen", "127.0.0.1:0"]).args(words);
    command.stdout(Stdio::piped());
    let started = laboratory.children.start(&mut command);
    let mut process = started.map_err(|error| format!("cannot start the server: {error}"))?;
    let mut line = String::new();
    let said = process.stdout().map(|stdout| BufReader::new(stdout).read_line(&mut line));
    match (said, line.trim().strip_prefix("listening on ")) {
        (Some(Ok(_)), Some(address)) => Ok(Server { process, address: address.to_owned() }),
        _ => Err(format!("the {driver} server does not listen")),
    }
}

/// One window of ten messages a second on one connection, while others are silent.
fn window(
    laboratory: &Laboratory,
    server: &Server,
    length: Duration,
    idle: u32,
) -> Result<(ObservedWindow, u64), String> {
    let milliseconds = |length: Duration| format!("{}ms", length.as_millis());
    let mut command = laboratory.command(laboratory.weir.as_os_str());
    command.args(["load", "echo", "--json", "--connections", "1", "--rate", "10", "--arrivals", "uniform"]);
    command.args(["--warmup-max", &milliseconds(WARMUP_MAX), "--duration", &milliseconds(length)]);
    command.args(["--target", &server.address]);
    command.arg(format!("--idle-connections={idle}")).arg(format!("--observe-pid={}", server.process.id()));
    let (status, printed) = children::output(&laboratory.children, &mut command)
        .map_err(|error| format!("cannot run the generator: {error}"))?;
    if !status.success() {
        return Err(format!("the generator ended with {status}"));
    }
    let report: LoadReport =
        serde_json::from_slice(&printed).map_err(|error| format!("no report: {error}"))?;
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
