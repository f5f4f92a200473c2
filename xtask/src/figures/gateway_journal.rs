//! What the gateway's journal costs: its throughput at level `os` beside that without a journal, in turn, and how many
//! orders one `fdatasync` covers at level `disk`. The files lie in the folder of the results.

use std::{fs, path::PathBuf, time::Duration};

use super::{
    Row,
    goal::Goal,
    interleaved::{Noted, Pair, alone, alternate, compared, goal_row, kept, planned, repeated_on_disk},
    memory::{DRIVERS, stored},
    order_servers::{Gateway, Journal, Lengths, SESSIONS, exchange, gateway, load},
    plan::Plan,
    session::{Laboratory, Stop},
};

const GROUP: &str = "gateway-journal";

/// Orders in flight on each session: flood, as in the study of the gateway.
const DEPTH: u32 = 10;

/// Nine give an interval of 96 % between the second smallest and the second largest.
const PAIRS: usize = 9;

/// Runs at level `disk`: six give an interval of 97 % between the smallest and the largest.
const DISK_RUNS: usize = 6;

const WINDOW: Duration = Duration::from_secs(1);
const WINDOW_REHEARSED: Duration = Duration::from_millis(200);

/// The generator needs 0.6 s to call a load steady.
const WARMUP_MAX: Duration = Duration::from_millis(700);

/// Starting three processes.
const START: Duration = Duration::from_millis(250);

/// "At most 15 %".
const THROUGHPUT_RATIO_MIN: f64 = 0.85;

const ORDERS_PER_SYNC_MIN: f64 = 20.0;

fn shape(laboratory: &Laboratory) -> (usize, usize, Lengths) {
    let lengths = Lengths { warmup_max: WARMUP_MAX, window: WINDOW };
    if laboratory.rehearsal {
        (1, 1, Lengths { window: WINDOW_REHEARSED, ..lengths })
    } else {
        (PAIRS, DISK_RUNS, lengths)
    }
}

fn key(driver: &str, level: &str) -> String {
    format!("{GROUP}-{level}-{driver}")
}

/// What the group takes, and how much of it is left.
pub fn plan(laboratory: &Laboratory) -> (Plan, Plan) {
    let (pairs, disk_runs, lengths) = shape(laboratory);
    let of = |runs: usize| planned(runs as u64, START + lengths.warmup_max + lengths.window);
    let left = |driver: &&str| {
        let pairs_left = stored::<Vec<Pair<f64>>>(laboratory, &key(driver, "os")).is_none();
        let runs_left = stored::<Vec<Noted<f64>>>(laboratory, &key(driver, "disk")).is_none();
        2 * pairs * usize::from(pairs_left) + disk_runs * usize::from(runs_left)
    };
    (of(DRIVERS.len() * (2 * pairs + disk_runs)), of(DRIVERS.iter().map(left).sum()))
}

/// Two rows for each driver.
pub fn rows(laboratory: &Laboratory) -> Result<Vec<Row>, Stop> {
    let mut rows = Vec::new();
    for driver in DRIVERS {
        rows.push(throughput_row(laboratory, driver)?);
        rows.push(disk_row(laboratory, driver)?);
    }
    // What is in it is worth nothing any more.
    let _ = fs::remove_dir_all(folder(laboratory));
    Ok(rows)
}

fn throughput_row(laboratory: &Laboratory, driver: &str) -> Result<Row, Stop> {
    let (wanted, _, lengths) = shape(laboratory);
    let pairs: Result<Vec<Pair<f64>>, String> = kept(laboratory, &key(driver, "os"), || {
        let run = |level: Option<&str>| {
            on_fresh(laboratory, driver, level, |gateway| flood(laboratory, gateway, lengths))
        };
        alternate(laboratory, wanted, || run(Some("os")), || run(None))
    })?;
    let figure = format!("{driver}: throughput of the gateway with journal level os / with none");
    let measured = pairs.and_then(|pairs| compared(&pairs, |os, none| os / none));
    Ok(goal_row(GROUP, figure, (Goal::at_least(THROUGHPUT_RATIO_MIN), ""), measured))
}

fn disk_row(laboratory: &Laboratory, driver: &str) -> Result<Row, Stop> {
    let (_, wanted, lengths) = shape(laboratory);
    let runs: Result<Vec<Noted<f64>>, String> = kept(laboratory, &key(driver, "disk"), || {
        let run = || {
            on_fresh(laboratory, driver, Some("disk"), |gateway| {
                orders_per_sync(laboratory, gateway, lengths)
            })
        };
        repeated_on_disk(laboratory, wanted, run)
    })?;
    let figure = format!("{driver}: orders for one fdatasync at journal level disk, flood");
    let measured = runs.and_then(|runs| alone(&runs, |orders| *orders));
    Ok(goal_row(GROUP, figure, (Goal::at_least(ORDERS_PER_SYNC_MIN), ""), measured))
}

/// Runs something on a gateway that has just begun, with an empty journal.
fn on_fresh<T>(
    laboratory: &Laboratory,
    driver: &str,
    level: Option<&str>,
    run: impl FnOnce(&Gateway) -> Result<T, String>,
) -> Result<T, String> {
    let folder = folder(laboratory);
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let journal = level.map_or(Journal::None, |level| Journal::In(&folder, level));
    let exchange = exchange(laboratory)?;
    let gateway = gateway(laboratory, driver, &exchange, journal)?;
    run(&gateway)
}

fn folder(laboratory: &Laboratory) -> PathBuf {
    laboratory.out.join("gateway-journal-files")
}

/// Orders a second.
fn flood(laboratory: &Laboratory, gateway: &Gateway, lengths: Lengths) -> Result<f64, String> {
    let [sessions, depth] = [SESSIONS, DEPTH].map(|number| number.to_string());
    let words = ["--sessions", &sessions, "--in-flight", &depth];
    let report = load(laboratory, "orders", &gateway.server.address, lengths, &words)?;
    Ok(report.throughput_per_second)
}

/// Orders a commit, over the whole run: at level `disk` each commit is one `fdatasync`.
fn orders_per_sync(laboratory: &Laboratory, gateway: &Gateway, lengths: Lengths) -> Result<f64, String> {
    let count = || {
        let node = gateway.node()?;
        let journal = node.journal.ok_or("the gateway keeps no journal")?;
        Ok::<_, String>((node.orders, journal.commits))
    };
    let before = count()?;
    flood(laboratory, gateway, lengths)?;
    let after = count()?;
    per_sync(before, after)
}

/// Orders and commits before and after.
fn per_sync(before: (u64, u64), after: (u64, u64)) -> Result<f64, String> {
    let (orders, commits) = (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
    if commits == 0 {
        return Err("nothing was committed".to_owned());
    }
    Ok(orders as f64 / commits as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_counted_from_the_beginning_of_the_run() {
        assert_eq!(per_sync((10, 4), (110, 8)), Ok(25.0));
        assert!(per_sync((10, 4), (110, 4)).is_err());
    }
}
