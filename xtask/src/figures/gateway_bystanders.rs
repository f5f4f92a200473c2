//! What sessions that trade notice of connections that never log in: the 99th percentile of their round trips with ten
//! thousand of those and without, in turn; and whether the gateway holds no more of them than its limits allow.
//!
//! The sessions are there before the strangers come, and the strangers before the window opens. The gateway ends a
//! connection that has not logged in after five seconds; a window that is not over by then is not counted.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use weir_record::load::LoadReport;
use weir_sys::affinity::pin_current_thread;

use super::{
    Row,
    goal::{Goal, Outcome, judge_count},
    http_idle::raise_descriptors,
    interleaved::{LOAD_CPU, Pair, alternate, compared, goal_row, kept, planned},
    memory::{DRIVERS, stored},
    order_servers::{Gateway, Journal, Lengths, SESSIONS, Times, exchange, gateway, trade},
    plan::Plan,
    session::{Laboratory, Stop},
    strangers::Strangers,
};

const GROUP: &str = "gateway-bystanders";

/// Nine give an interval of 96 % between the second smallest and the second largest.
const PAIRS: usize = 9;

/// Window and warm-up together are shorter than a stranger may stay.
const WINDOW: Duration = Duration::from_millis(2500);
const WINDOW_REHEARSED: Duration = Duration::from_millis(300);
const WARMUP_MAX: Duration = Duration::from_millis(1200);

/// Starting a process and ending it.
const START: Duration = Duration::from_millis(150);

const STRANGERS: u32 = 10_000;
const STRANGERS_REHEARSED: u32 = 500;

/// Addresses they come from: too few connections from each to reach the limit of an address, so that the total does.
const ADDRESSES: u32 = 10;

/// How many connections that have not logged in the gateway holds, in total and from one address: its limits, which no
/// configuration changes.
const HELD_MAX: u32 = 4096;
const HELD_PER_ADDRESS_MAX: u32 = 1024;

/// How long the gateway lets a connection be without a login.
const LOGIN_MAX: Duration = Duration::from_secs(5);

/// How long the last ones that came may take to be accepted or closed.
const SETTLE: Duration = Duration::from_millis(50);

/// Time between two looks at whether a run is over.
const OVER_LOOK: Duration = Duration::from_millis(5);

/// Runs of one side, of which the first that came off counts.
const ATTEMPTS_MAX: usize = 3;

const P99_RATIO_MAX: f64 = 1.1;

/// What one run showed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Look {
    times: Times,
    /// Strangers that the gateway held through the window; none without strangers.
    held: Option<u32>,
}

/// What one driver showed.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Findings {
    /// Strangers held of those that came from one address.
    held_of_address: u32,
    pairs: Vec<Pair<Look>>,
}

#[derive(Clone, Copy)]
struct Shape {
    pairs: usize,
    strangers: u32,
    lengths: Lengths,
}

fn shape(laboratory: &Laboratory) -> Shape {
    let lengths = Lengths { warmup_max: WARMUP_MAX, window: WINDOW };
    if laboratory.rehearsal {
        let lengths = Lengths { window: WINDOW_REHEARSED, ..lengths };
        Shape { pairs: 1, strangers: STRANGERS_REHEARSED, lengths }
    } else {
        Shape { pairs: PAIRS, strangers: STRANGERS, lengths }
    }
}

fn key(driver: &str) -> String {
    format!("{GROUP}-{driver}")
}

/// What the group takes, and how much of it is left.
pub fn plan(laboratory: &Laboratory) -> (Plan, Plan) {
    let Shape { pairs, lengths, .. } = shape(laboratory);
    let of =
        |drivers: usize| planned(2 * (drivers * pairs) as u64, START + lengths.warmup_max + lengths.window);
    let left = DRIVERS.iter().filter(|driver| stored::<Findings>(laboratory, &key(driver)).is_none());
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
    let shape = shape(laboratory);
    let findings = kept(laboratory, &key(driver), || measure(laboratory, driver, shape))?;
    let strangers = shape.strangers;
    let figure = format!(
        "{driver}: p99 of sessions that trade, with {strangers} connections without a login / without"
    );
    let ratio = findings.as_ref().map_err(Clone::clone).and_then(|findings| {
        compared(&findings.pairs, |beside, alone| beside.times.p99_us / alone.times.p99_us)
    });
    Ok(vec![
        goal_row(GROUP, figure, (Goal::at_most(P99_RATIO_MAX), ""), ratio),
        limits_row(driver, strangers, findings.as_ref()),
    ])
}

/// Whether the limits held. Fewer than they allow would be a gateway that refuses without a reason.
fn limits_row(driver: &str, strangers: u32, findings: Result<&Findings, &String>) -> Row {
    let (held_max, of_address_max) = (strangers.min(HELD_MAX), strangers.min(HELD_PER_ADDRESS_MAX));
    let (measured, outcome) = match findings {
        Ok(Findings { held_of_address, pairs }) => {
            let held: Vec<u32> = pairs.iter().filter_map(|pair| pair.of.value.held).collect();
            let (least, most) = (held.iter().min().unwrap_or(&0), held.iter().max().unwrap_or(&0));
            let is_reached = (*least, *most, *held_of_address) == (held_max, held_max, of_address_max);
            let measured =
                format!("{least} to {most} in {} runs; {held_of_address} from one address", held.len());
            (measured, judge_count(is_reached, !held.is_empty()))
        }
        Err(reason) => (reason.clone(), Outcome::NotMeasured),
    };
    Row {
        figure: format!(
            "{driver}: connections held of {strangers} without a login, from {ADDRESSES} addresses"
        ),
        goal: format!("{held_max}; {of_address_max} from one address"),
        measured,
        outcome,
        command: format!("cargo xtask figures --only {GROUP}"),
    }
}

fn measure(laboratory: &Laboratory, driver: &str, shape: Shape) -> Result<Findings, String> {
    raise_descriptors(shape.strangers)?;
    let exchange = exchange(laboratory)?;
    let gateway = gateway(laboratory, driver, &exchange, Journal::None)?;
    let address: SocketAddr = gateway.server.address.parse().map_err(|error| format!("{error}"))?;
    let held_of_address = {
        let strangers = Strangers::open(address, 1, shape.strangers)?;
        thread::sleep(SETTLE);
        strangers.held()
    };
    let alone = || {
        let report = trade(laboratory, &gateway, shape.lengths)?;
        Ok(Look { times: Times::of(&report)?, held: None })
    };
    let beside = || beside(laboratory, &gateway, address, shape);
    Ok(Findings { held_of_address, pairs: alternate(laboratory, shape.pairs, beside, alone)? })
}

/// A run beside strangers that were there for the whole of its window.
fn beside(
    laboratory: &Laboratory,
    gateway: &Gateway,
    address: SocketAddr,
    shape: Shape,
) -> Result<Look, String> {
    let mut trouble = String::new();
    for _ in 0..ATTEMPTS_MAX {
        let (report, visit, ended) = attempt(laboratory, gateway, address, shape)?;
        match visit.covers(&report, ended) {
            Ok(()) => return Ok(Look { times: Times::of(&report)?, held: Some(visit.held) }),
            Err(reason) => trouble = reason,
        }
    }
    Err(trouble)
}

fn attempt(
    laboratory: &Laboratory,
    gateway: &Gateway,
    address: SocketAddr,
    shape: Shape,
) -> Result<(LoadReport, Visit, Instant), String> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let visiting = scope.spawn(|| {
            // Not on the gateway's CPU; on a machine with one there is no other.
            let _ = pin_current_thread(&[LOAD_CPU]);
            visit(gateway, address, shape.strangers, &is_over)
        });
        let report = trade(laboratory, gateway, shape.lengths);
        let ended = Instant::now();
        is_over.store(true, Ordering::Relaxed);
        let visit = visiting.join().map_err(|_| "the strangers' thread panicked".to_owned())?;
        Ok((report?, visit?, ended))
    })
}

/// When strangers came, and how many were held when the run was over.
#[derive(Clone, Copy, Debug)]
struct Visit {
    /// The sessions that trade were seen to be logged in.
    sessions_came: Instant,
    began: Instant,
    ended: Instant,
    held: u32,
}

impl Visit {
    /// Whether all strangers had come when the window opened, and none had been ended for its silence when it closed.
    /// The warm-up begins when the sessions are logged in.
    fn covers(&self, report: &LoadReport, run_ended: Instant) -> Result<(), String> {
        let opens = self.sessions_came + Duration::from_nanos(report.warmup_ns);
        if self.ended + SETTLE > opens {
            return Err(format!(
                "the strangers took {:?} to come, longer than the warm-up",
                self.ended - self.sessions_came
            ));
        }
        let stayed = run_ended.saturating_duration_since(self.began);
        if stayed >= LOGIN_MAX {
            return Err(format!("the run was over {stayed:?} after the first stranger came: too late"));
        }
        Ok(())
    }
}

fn visit(
    gateway: &Gateway,
    address: SocketAddr,
    strangers: u32,
    is_over: &AtomicBool,
) -> Result<Visit, String> {
    let sessions_came = gateway.sessions_came(SESSIONS, || is_over.load(Ordering::Relaxed))?;
    let strangers = Strangers::open(address, ADDRESSES, strangers)?;
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(OVER_LOOK);
    }
    let (began, ended, held) = (strangers.began, strangers.ended, strangers.held());
    Ok(Visit { sessions_came, began, ended, held })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::interleaved::Noted;

    #[test]
    fn strangers_that_come_late_or_are_ended_early_make_no_figure() {
        let came = Instant::now();
        let after = |milliseconds| came + Duration::from_millis(milliseconds);
        let report = LoadReport { warmup_ns: 1_000_000_000, ..LoadReport::default() };
        let visit = Visit { sessions_came: came, began: after(10), ended: after(900), held: 0 };
        assert_eq!(visit.covers(&report, after(4900)), Ok(()));
        let late = Visit { ended: after(960), ..visit };
        assert!(late.covers(&report, after(4900)).is_err_and(|reason| reason.contains("warm-up")));
        assert!(visit.covers(&report, after(5010)).is_err_and(|reason| reason.contains("too late")));
    }

    #[test]
    fn a_limit_is_held_when_it_is_reached_and_not_passed() {
        let outcome = |held: [u32; 2], held_of_address| {
            let times = Times { p50_us: 1.0, p99_us: 1.0 };
            let pair = |held| Pair {
                of: Noted::undisturbed(Look { times, held: Some(held) }),
                to: Noted::undisturbed(Look { times, held: None }),
            };
            let findings = Findings { held_of_address, pairs: held.map(pair).into() };
            limits_row("d", 10_000, Ok(&findings)).outcome
        };
        assert_eq!(outcome([4096, 4096], 1024), Outcome::Met);
        assert_eq!(outcome([4096, 4097], 1024), Outcome::Missed);
        assert_eq!(outcome([4095, 4096], 1024), Outcome::Missed);
        assert_eq!(outcome([4096, 4096], 1025), Outcome::Missed);
        let reason = "why".to_owned();
        assert_eq!(limits_row("d", 10_000, Err(&reason)).outcome, Outcome::NotMeasured);
    }
}
