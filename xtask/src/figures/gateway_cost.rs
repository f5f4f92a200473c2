//! What the gateway spends on an order beside what the engine spends on a message: an order is two receives and two
//! sends, a message of the echo is one of each. Same driver, as many connections and as many in flight on each, and
//! messages of about the same size; a fresh server for every run.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_record::{load::LoadReport, verdict::Verdict};
use weir_stats::order;

use super::{
    Row,
    goal::{Goal, Measured},
    interleaved::{Pair, SERVER_CPU, alternate, chosen, compared, goal_row, kept, planned, with_note},
    memory::{DRIVERS, start_with, stored},
    order_servers::{Journal, Lengths, SESSIONS, exchange, gateway, load},
    plan::Plan,
    session::{Laboratory, Stop},
};

const GROUP: &str = "gateway-cost";

/// Orders in flight on each session.
const DEPTHS: [u32; 2] = [1, 10];

/// Nine give an interval of 96 % between the second smallest and the second largest.
const PAIRS: usize = 9;
const WINDOW: Duration = Duration::from_secs(1);
const WINDOW_REHEARSED: Duration = Duration::from_millis(200);

/// The generator needs 0.6 s to call a load steady.
const WARMUP_MAX: Duration = Duration::from_millis(700);

/// Starting up to three processes.
const START: Duration = Duration::from_millis(250);

/// Bytes of the echo's messages. An order has 50 on the wire and its answer 67.
const ECHO_BYTES: &str = "64";

const RATIO_MAX: f64 = 2.2;

/// Share of its CPU the gateway must use: one that waits for others takes in less at a time, and spends more on each.
const BUSY_MIN: f64 = 0.95;

/// What a run showed of the server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Cost {
    /// CPU of an order, or of a message, in microseconds.
    cpu_us: f64,
    /// Share of the window in which it used its CPU.
    busy: f64,
}

fn shape(laboratory: &Laboratory) -> (usize, Lengths) {
    let lengths = Lengths { warmup_max: WARMUP_MAX, window: WINDOW };
    if laboratory.rehearsal { (1, Lengths { window: WINDOW_REHEARSED, ..lengths }) } else { (PAIRS, lengths) }
}

fn key(driver: &str, depth: u32) -> String {
    format!("{GROUP}-{driver}-{depth}")
}

/// All loads of all drivers.
fn cells() -> impl Iterator<Item = (&'static str, u32)> {
    DRIVERS.into_iter().flat_map(|driver| DEPTHS.map(|depth| (driver, depth)))
}

/// What the group takes, and how much of it is left.
pub fn plan(laboratory: &Laboratory) -> (Plan, Plan) {
    let (pairs, lengths) = shape(laboratory);
    let of = |cells: usize| planned(2 * (cells * pairs) as u64, START + lengths.warmup_max + lengths.window);
    let is_left =
        |(driver, depth): &(&str, u32)| stored::<Vec<Pair<Cost>>>(laboratory, &key(driver, *depth)).is_none();
    (of(cells().count()), of(cells().filter(is_left).count()))
}

/// A row for each load of each driver.
pub fn rows(laboratory: &Laboratory) -> Result<Vec<Row>, Stop> {
    cells().map(|(driver, depth)| cell_row(laboratory, driver, depth)).collect()
}

fn cell_row(laboratory: &Laboratory, driver: &str, depth: u32) -> Result<Row, Stop> {
    let (wanted, lengths) = shape(laboratory);
    let pairs: Result<Vec<Pair<Cost>>, String> = kept(laboratory, &key(driver, depth), || {
        alternate(
            laboratory,
            wanted,
            || of_gateway(laboratory, driver, depth, lengths),
            || of_echo(laboratory, driver, depth, lengths),
        )
    })?;
    let figure = format!(
        "{driver}, {SESSIONS} sessions x {depth} in flight: CPU of the gateway's order / of the echo's message"
    );
    let measured = pairs.and_then(|pairs| ratio(&pairs));
    Ok(goal_row(GROUP, figure, (Goal::at_most(RATIO_MAX), ""), measured))
}

/// The ratio, with both sides of it and how busy the servers were. A gateway that was not busy is not what the goal
/// speaks of.
fn ratio(pairs: &[Pair<Cost>]) -> Result<Measured, String> {
    let measured = compared(pairs, |gateway, echo| gateway.cpu_us / echo.cpu_us)?;
    let (used, _) = chosen(pairs);
    let median = |number: fn(&Pair<Cost>) -> f64| {
        let numbers: Vec<f64> = used.iter().map(|pair| number(pair)).collect();
        order::median(&numbers).unwrap_or(f64::NAN)
    };
    let [order_us, message_us] = [median(|pair| pair.of.value.cpu_us), median(|pair| pair.to.value.cpu_us)];
    let [gateway_busy, echo_busy] = [median(|pair| pair.of.value.busy), median(|pair| pair.to.value.busy)];
    let note = format!(
        "{order_us:.2} / {message_us:.2} µs; gateway {:.0} % busy, echo {:.0} %",
        100.0 * gateway_busy,
        100.0 * echo_busy
    );
    let mut measured = with_note(measured, &note);
    if gateway_busy < BUSY_MIN {
        measured.verdict = Some(Verdict::NotComparable);
    }
    Ok(measured)
}

fn of_gateway(laboratory: &Laboratory, driver: &str, depth: u32, lengths: Lengths) -> Result<Cost, String> {
    let exchange = exchange(laboratory)?;
    let gateway = gateway(laboratory, driver, &exchange, Journal::None)?;
    let [sessions, depth, pid] =
        [SESSIONS, depth, gateway.server.process.id()].map(|number| number.to_string());
    let words = ["--sessions", &sessions, "--in-flight", &depth, "--observe-pid", &pid];
    cost(&load(laboratory, "orders", &gateway.server.address, lengths, &words)?)
}

fn of_echo(laboratory: &Laboratory, driver: &str, depth: u32, lengths: Lengths) -> Result<Cost, String> {
    let server = start_with(laboratory, "echo", driver, &["--pin", &SERVER_CPU.to_string()])?;
    let [connections, depth, pid] = [SESSIONS, depth, server.process.id()].map(|number| number.to_string());
    let words = ["--connections", &connections, "--depth", &depth, "--observe-pid", &pid];
    let words = [&words[..], &["--message-bytes", ECHO_BYTES]].concat();
    cost(&load(laboratory, "echo", &server.address, lengths, &words)?)
}

fn cost(report: &LoadReport) -> Result<Cost, String> {
    let observed = report.observed.as_ref().ok_or("the server was not observed")?;
    let cpu_ns = observed.cpu_ns as f64;
    Ok(Cost {
        cpu_us: cpu_ns / 1000.0 / report.messages.max(1) as f64,
        busy: cpu_ns / report.window_ns.max(1) as f64,
    })
}

#[cfg(test)]
mod tests {
    use weir_record::trial::ObservedWindow;

    use super::*;
    use crate::figures::{
        goal::{Outcome, judge},
        interleaved::Noted,
    };

    fn pairs(busy: f64) -> Vec<Pair<Cost>> {
        let pair = || Pair {
            of: Noted::undisturbed(Cost { cpu_us: 10.0, busy }),
            to: Noted::undisturbed(Cost { cpu_us: 5.0, busy: 0.8 }),
        };
        (0..PAIRS).map(|_| pair()).collect()
    }

    #[test]
    fn the_ratio_is_of_an_order_to_a_message_and_says_what_both_cost() {
        let measured = ratio(&pairs(0.96)).expect("nine pairs");
        assert_eq!(
            measured.to_string(),
            "2.000 [2.000, 2.000] (10.00 / 5.00 µs; gateway 96 % busy, echo 80 %)"
        );
        assert_eq!(judge(Goal::at_most(RATIO_MAX), &measured), Outcome::Met);
    }

    #[test]
    fn a_gateway_that_waited_for_others_is_not_held_against_the_goal() {
        let measured = ratio(&pairs(0.94)).expect("nine pairs");
        assert_eq!(judge(Goal::at_most(RATIO_MAX), &measured), Outcome::NotComparable);
    }

    #[test]
    fn cpu_time_is_shared_out_over_what_was_answered() {
        let observed = ObservedWindow { cpu_ns: 900_000_000, ..ObservedWindow::default() };
        let report = LoadReport {
            messages: 100_000,
            window_ns: 1_000_000_000,
            observed: Some(observed),
            ..LoadReport::default()
        };
        assert_eq!(cost(&report), Ok(Cost { cpu_us: 9.0, busy: 0.9 }));
        assert!(cost(&LoadReport::default()).is_err());
    }
}
