//! What clients that behave notice of clients that do not: response times at one rate with and without the others, in
//! interleaved runs against one server.

use std::{
    fs,
    net::SocketAddr,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use weir_record::load::LoadReport;

use super::{
    Row, children,
    goal::{Goal, Outcome, judge},
    memory::{DRIVERS, Server, spread, start_with, store, stored},
    nuisance,
    plan::Plan,
    session::{Laboratory, Stop},
};

/// Pairs of runs for each driver: six give an interval of 97 % between the smallest and the largest.
const PAIRS: usize = 6;
const WINDOW: Duration = Duration::from_secs(3);
const WINDOW_REHEARSED: Duration = Duration::from_millis(300);
const WARMUP_MAX: Duration = Duration::from_millis(500);

/// Requests a second: far below what one core can do, so that a queue is the bad clients' doing.
const RATE: &str = "4000";
const CONNECTIONS: &str = "50";

const PAGE: &str = "page.html";
const PAGE_BYTES: usize = 600;
const LARGE: &str = "large.bin";
const LARGE_BYTES: usize = 1 << 20;

const P50_RATIO_MAX: f64 = 1.1;
const P99_RATIO_MAX: f64 = 2.0;

/// One pair of runs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Pair {
    p50_ratio: f64,
    p99_ratio: f64,
}

fn pairs_of(laboratory: &Laboratory) -> (usize, Duration) {
    if laboratory.rehearsal { (1, WINDOW_REHEARSED) } else { (PAIRS, WINDOW) }
}

fn key(driver: &str) -> String {
    format!("http-bystanders-{driver}")
}

/// What the group takes, and how much of it is left.
pub fn plan(laboratory: &Laboratory) -> (Plan, Plan) {
    let (pairs, window) = pairs_of(laboratory);
    let of = |drivers: usize| Plan::of_trials(2 * (drivers * pairs) as u64, WARMUP_MAX + window);
    let left = DRIVERS.iter().filter(|driver| stored::<Vec<Pair>>(laboratory, &key(driver)).is_none());
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
    let pairs = match stored(laboratory, &key(driver)) {
        Some(pairs) => Ok(pairs),
        None => measure(laboratory, driver),
    };
    if laboratory.children.is_interrupted() {
        return Err(Stop::Interrupted);
    }
    if let Ok(pairs) = &pairs {
        store(laboratory, &key(driver), pairs).map_err(Stop::Failed)?;
    }
    let row = |what: &str, bound: f64, value: fn(&Pair) -> f64| {
        let measured = pairs.as_ref().map_err(Clone::clone).and_then(|pairs: &Vec<Pair>| {
            let values: Vec<f64> = pairs.iter().map(value).collect();
            spread(&values).ok_or_else(|| "nothing was measured".to_owned())
        });
        let (outcome, measured) = match measured {
            Ok(measured) => (judge(Goal::at_most(bound), &measured), measured.to_string()),
            Err(reason) => (Outcome::NotMeasured, reason),
        };
        Row {
            figure: format!("{driver}: {what} of good clients, with bad ones / without"),
            goal: format!("≤ {bound}"),
            measured,
            outcome,
            command: "cargo xtask figures --only http-bystanders".to_owned(),
        }
    };
    Ok(vec![
        row("p50", P50_RATIO_MAX, |pair| pair.p50_ratio),
        row("p99", P99_RATIO_MAX, |pair| pair.p99_ratio),
    ])
}

fn measure(laboratory: &Laboratory, driver: &str) -> Result<Vec<Pair>, String> {
    let root = files(laboratory)?;
    let root = root.to_str().ok_or("the folder's name is no text")?;
    let (pairs, _) = pairs_of(laboratory);
    let server = start_with(laboratory, "http", driver, &["--root", root, "--pin", "0"])?;
    let address: SocketAddr = server.address.parse().map_err(|error| format!("{error}"))?;
    let mut measured = Vec::with_capacity(pairs);
    for pair in 0..pairs {
        // Who comes first alternates, so that a drift of the machine falls on both.
        let (alone, together) = if pair % 2 == 0 {
            let alone = run(laboratory, &server)?;
            (alone, run_beside(laboratory, &server, address)?)
        } else {
            let together = run_beside(laboratory, &server, address)?;
            (run(laboratory, &server)?, together)
        };
        measured.push(Pair {
            p50_ratio: together.0 as f64 / alone.0 as f64,
            p99_ratio: together.1 as f64 / alone.1 as f64,
        });
    }
    Ok(measured)
}

/// A folder with a small page and a large file.
fn files(laboratory: &Laboratory) -> Result<PathBuf, String> {
    let root = laboratory.out.join("http-bystanders-root");
    let write = || {
        fs::create_dir_all(&root)?;
        fs::write(root.join(PAGE), vec![b'p'; PAGE_BYTES])?;
        fs::write(root.join(LARGE), vec![b'l'; LARGE_BYTES])
    };
    write().map_err(|error: std::io::Error| format!("cannot write the files to serve: {error}"))?;
    Ok(root)
}

/// A run while a thread beside it annoys the server.
fn run_beside(laboratory: &Laboratory, server: &Server, address: SocketAddr) -> Result<(u64, u64), String> {
    let stop = AtomicBool::new(false);
    let large = format!("/{LARGE}");
    thread::scope(|scope| {
        let annoying = scope.spawn(|| {
            // Not on the server's core; on a machine with one core there is no other.
            let _ = weir_sys::affinity::pin_current_thread(&[1]);
            nuisance::annoy(address, &large, &stop)
        });
        let times = run(laboratory, server);
        stop.store(true, Ordering::Relaxed);
        let deeds = annoying.join().map_err(|_| "the bad clients' thread panicked".to_owned())?;
        let deeds = deeds.map_err(|error| format!("the bad clients cannot connect: {error}"))?;
        if deeds.opened == 0 || deeds.refused == 0 {
            return Err(format!("the bad clients did no harm worth the name: {deeds:?}"));
        }
        times
    })
}

/// Median and 99th percentile of the response times of one window, in nanoseconds.
fn run(laboratory: &Laboratory, server: &Server) -> Result<(u64, u64), String> {
    let (_, window) = pairs_of(laboratory);
    let milliseconds = |length: Duration| format!("{}ms", length.as_millis());
    let mut command = laboratory.command(laboratory.weir.as_os_str());
    command.args(["load", "http", &format!("http://{}/{PAGE}", server.address), "--json"]);
    command.args(["--connections", CONNECTIONS, "--rate", RATE, "--arrivals", "poisson", "--pin", "1"]);
    command.args(["--warmup-max", &milliseconds(WARMUP_MAX), "--duration", &milliseconds(window)]);
    let (status, printed) = children::output(&laboratory.children, &mut command)
        .map_err(|error| format!("cannot run the generator: {error}"))?;
    if !status.success() {
        return Err(format!("the generator ended with {status}"));
    }
    let report: LoadReport =
        serde_json::from_slice(&printed).map_err(|error| format!("no report: {error}"))?;
    if report.failures.errors() > 0 {
        return Err(format!("{} good requests failed", report.failures.errors()));
    }
    let at = |quantile| report.response.quantile_ns(quantile).filter(|ns| *ns > 0);
    at(0.5).zip(at(0.99)).ok_or_else(|| "too few responses for a 99th percentile".to_owned())
}
