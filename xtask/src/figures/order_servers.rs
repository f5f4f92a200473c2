//! An exchange, a gateway in front of it and the generators beside them, as the groups about the gateway start them:
//! what is measured is alone on its CPU, everything else is on the other one.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixStream},
    },
    path::Path,
    process,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use weir_record::{engine::ServerStats, load::LoadReport, orders::NodeStats};

use super::{
    children,
    interleaved::{LOAD_CPU, SERVER_CPU},
    memory::{Server, start_with},
    session::Laboratory,
};

/// Sessions that trade: the accounts C00001 to C00010.
pub const SESSIONS: u32 = 10;

/// Accounts of the gateway: those that trade, and one more.
const ACCOUNTS: &str = "11";

/// The account that does not trade while others are measured.
pub const OTHER_ACCOUNT: &str = "C00011";

/// Driver of the exchange and of every generator: they are not what is compared.
const BESIDE_DRIVER: &str = "uring";

/// Longest wait for an answer of the statistics socket.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// Longest answer of it.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// Longest wait for the sessions of a generator to be logged in, and the time between two looks.
const LOGIN_MAX: Duration = Duration::from_secs(10);
const LOGIN_LOOK: Duration = Duration::from_millis(2);

/// Gateways started so far: each has a statistics socket of its own name.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// What a gateway keeps of its orders.
#[derive(Clone, Copy, Debug)]
pub enum Journal<'a> {
    /// Nothing.
    None,
    /// Everything in a folder, at a level.
    In(&'a Path, &'a str),
}

/// A gateway. It ends with this value, without a drain: its session with clients goes on at the next start.
pub struct Gateway {
    /// Its process and where it listens.
    pub server: Server,
    stats_socket: String,
}

/// Starts an exchange that answers every order once and keeps nothing.
pub fn exchange(laboratory: &Laboratory) -> Result<Server, String> {
    let cpu = LOAD_CPU.to_string();
    let words = ["--mode", "echo-accept", "--demo", ACCOUNTS, "--journal", "none", "--pin", &cpu];
    start_with(laboratory, "exchange", BESIDE_DRIVER, &words)
}

/// Starts a gateway with one worker, alone on its CPU, in front of an exchange.
pub fn gateway(
    laboratory: &Laboratory,
    driver: &str,
    exchange: &Server,
    journal: Journal<'_>,
) -> Result<Gateway, String> {
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    let stats_socket = format!("@weir-figures-{}-{number}", process::id());
    let cpu = SERVER_CPU.to_string();
    let mut words = vec!["--demo", ACCOUNTS, "--upstream", &exchange.address, "--pin", &cpu];
    words.extend(["--stats-socket", &stats_socket]);
    let folder;
    match journal {
        Journal::None => words.extend(["--journal", "none"]),
        Journal::In(path, level) => {
            folder = path.display().to_string();
            words.extend(["--journal", level, "--journal-dir", &folder]);
        }
    }
    let server = start_with(laboratory, "gateway", driver, &words)?;
    let gateway = Gateway { server, stats_socket };
    match gateway.node()?.upstreams_open {
        0 => Err(format!("the {driver} gateway has not reached its exchange")),
        _ => Ok(gateway),
    }
}

impl Gateway {
    /// What it counts.
    pub fn node(&self) -> Result<NodeStats, String> {
        let stats =
            ask(&self.stats_socket).map_err(|error| format!("the gateway does not answer: {error}"))?;
        stats.node.ok_or_else(|| "it is no gateway".to_owned())
    }

    /// Waits until as many sessions are logged in, and says when that was seen. A generator that ends before raises
    /// `gives_up`.
    pub fn sessions_came(&self, sessions: u32, gives_up: impl Fn() -> bool) -> Result<Instant, String> {
        let until = Instant::now() + LOGIN_MAX;
        while self.node()?.sessions_open < u64::from(sessions) {
            if gives_up() || Instant::now() > until {
                return Err(format!("{sessions} sessions were not logged in"));
            }
            thread::sleep(LOGIN_LOOK);
        }
        Ok(Instant::now())
    }
}

fn ask(name: &str) -> io::Result<ServerStats> {
    let address = SocketAddr::from_abstract_name(name.trim_start_matches('@'))?;
    let mut stream = UnixStream::connect_addr(&address)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    stream.write_all(b"\n")?;
    let mut line = String::new();
    BufReader::new(stream).take(ANSWER_BYTES_MAX).read_line(&mut line)?;
    serde_json::from_str(&line).map_err(io::Error::other)
}

/// How long a run is.
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    /// The longest warm-up.
    pub warmup_max: Duration,
    /// What is measured.
    pub window: Duration,
}

/// Runs a generator to its end. Something that failed in it is an error.
pub fn load(
    laboratory: &Laboratory,
    protocol: &str,
    address: &str,
    lengths: Lengths,
    words: &[&str],
) -> Result<LoadReport, String> {
    let milliseconds = |length: Duration| format!("{}ms", length.as_millis());
    let mut command = laboratory.command(laboratory.weir.as_os_str());
    command.args(["load", protocol, "--json", "--target", address, "--driver", BESIDE_DRIVER]);
    command.args(["--pin", &LOAD_CPU.to_string()]).args(words);
    command.args(["--warmup-max", &milliseconds(lengths.warmup_max)]);
    command.args(["--duration", &milliseconds(lengths.window)]);
    let (status, printed) = children::output(&laboratory.children, &mut command)
        .map_err(|error| format!("cannot run the generator: {error}"))?;
    if !status.success() {
        return Err(format!("the generator ended with {status}"));
    }
    let report: LoadReport =
        serde_json::from_slice(&printed).map_err(|error| format!("no report: {error}"))?;
    sound(&report).map(|()| report)
}

/// Whether everything that was sent was answered rightly.
fn sound(report: &LoadReport) -> Result<(), String> {
    if report.failures.errors() > 0 {
        return Err(format!("{} requests failed", report.failures.errors()));
    }
    if report.messages == 0 {
        return Err("nothing was answered".to_owned());
    }
    match &report.orders {
        Some(orders) if orders.inversions > 0 => {
            Err(format!("{} answers came out of order", orders.inversions))
        }
        Some(orders) if !orders.shares.is_conserved() => Err("the shares do not balance".to_owned()),
        _ => Ok(()),
    }
}

/// Orders a second that the sessions of others place together: far below what one core can do, so that a queue is the
/// doing of whoever is beside them.
pub const RATE_PER_SECOND: &str = "4000";

/// Runs sessions that trade at a rate of their own.
pub fn trade(laboratory: &Laboratory, gateway: &Gateway, lengths: Lengths) -> Result<LoadReport, String> {
    let sessions = SESSIONS.to_string();
    let words =
        ["--sessions", &sessions, "--in-flight", "64", "--rate", RATE_PER_SECOND, "--arrivals", "poisson"];
    load(laboratory, "orders", &gateway.server.address, lengths, &words)
}

/// Round trips of orders in a window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// Median in microseconds.
    pub p50_us: f64,
    /// 99th percentile in microseconds.
    pub p99_us: f64,
}

impl Times {
    /// Those of a report.
    pub fn of(report: &LoadReport) -> Result<Self, String> {
        let at = |quantile| report.response.quantile_ns(quantile).filter(|ns| *ns > 0);
        let (p50, p99) =
            at(0.5).zip(at(0.99)).ok_or_else(|| "too few answers for a 99th percentile".to_owned())?;
        Ok(Self { p50_us: p50 as f64 / 1000.0, p99_us: p99 as f64 / 1000.0 })
    }
}

#[cfg(test)]
mod tests {
    use weir_record::{
        load::LatencySummary,
        orders::{OrdersLoadReport, ShareBalance},
    };

    use super::*;

    fn report(change: impl FnOnce(&mut LoadReport, &mut OrdersLoadReport)) -> LoadReport {
        let mut orders = OrdersLoadReport::default();
        let mut report = LoadReport { messages: 5, ..LoadReport::default() };
        change(&mut report, &mut orders);
        LoadReport { orders: Some(orders), ..report }
    }

    #[test]
    fn a_run_in_which_something_went_wrong_gives_no_figure() {
        assert_eq!(sound(&report(|_, _| ())), Ok(()));
        let wrong = |change: fn(&mut LoadReport, &mut OrdersLoadReport)| {
            sound(&report(change)).expect_err("something went wrong")
        };
        assert_eq!(wrong(|report, _| report.failures.reset = 2), "2 requests failed");
        assert_eq!(wrong(|report, _| report.messages = 0), "nothing was answered");
        assert!(wrong(|_, orders| orders.inversions = 1).contains("out of order"));
        let lost = |_: &mut LoadReport, orders: &mut OrdersLoadReport| {
            orders.shares = ShareBalance { entered: 3, live: 2, ..ShareBalance::default() };
        };
        assert!(wrong(lost).contains("balance"));
    }

    #[test]
    fn percentiles_are_taken_as_they_are_and_none_is_made_up() {
        let mut load = LoadReport::default();
        assert!(Times::of(&load).is_err());
        load.response =
            LatencySummary { quantiles: vec![(0.5, 50_000), (0.99, 120_500)], ..LatencySummary::default() };
        assert_eq!(Times::of(&load), Ok(Times { p50_us: 50.0, p99_us: 120.5 }));
    }
}
