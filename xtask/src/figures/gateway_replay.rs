//! What sessions that trade notice of a client that asks for a million old messages, and what it costs the gateway: the
//! client reads 10 kB a second for half a minute and then as fast as it can. Because the second part is short there are
//! further runs, in turn with runs without it, in which it reads as fast as it can from the first message on.
//!
//! The journal is filled once for all drivers, at level `os`. Client, generator and exchange share a CPU; the client
//! gives way to both, so that what the sessions notice is the gateway's doing.

use std::{
    fs,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use weir_sys::affinity::pin_current_thread;

use super::{
    Row,
    goal::{Goal, Outcome, judge_count},
    http_idle::anonymous_bytes,
    interleaved::{
        LOAD_CPU, Noted, Pair, alternate, compared, enough, goal_row, kept, noted, planned, with_note,
    },
    memory::{DRIVERS, Server, spread, stored},
    order_servers::{Gateway, Journal, Lengths, OTHER_ACCOUNT, SESSIONS, Times, exchange, gateway, trade},
    plan::Plan,
    replayer::{AFTERWARDS, Replayed, Seat, place_orders, replay},
    session::{Laboratory, Stop},
};

const GROUP: &str = "gateway-replay";

const MESSAGES: u32 = 1_000_000;
const MESSAGES_REHEARSED: u32 = 20_000;

/// How long the client reads slowly.
const SLOW: Duration = Duration::from_secs(30);
const SLOW_REHEARSED: Duration = Duration::from_secs(1);

/// Runs of the sessions while it does; they fit into that time.
const SLOW_PAIRS: usize = 8;

/// Replays at full speed, each in a run of its own.
const FAST_PAIRS: usize = 6;

const WINDOW: Duration = Duration::from_secs(2);
const WINDOW_REHEARSED: Duration = Duration::from_millis(400);

/// Shorter than the generator needs to call a load steady: every warm-up is as long.
const WARMUP_MAX: Duration = Duration::from_millis(500);

/// Starting a process and ending it, and the looks at the machine.
const AROUND_A_RUN: Duration = Duration::from_millis(250);

/// Orders a second while the journal is filled, for the plan alone.
const FILLED_PER_SECOND: f64 = 300_000.0;

/// Time between two looks at the gateway's memory.
const MEMORY_LOOK: Duration = Duration::from_millis(20);

/// How much the client gives way to whoever shares its CPU: as much as it can.
const NICENESS: i32 = 19;

/// Most bytes that wait for one client before it is cut off, and what else a replay may take, in MiB.
const CUT_OFF_MIB: f64 = 4.0;
const BEYOND_MIB: f64 = 1.0;

const P50_RATIO_MAX: f64 = 1.1;
const P99_RATIO_MAX: f64 = 2.0;

/// A server that has nothing else to say sends a heartbeat after at most so long; see case 13 of the gateway's
/// acceptance cases. Half a second more for a client that shares its CPU.
const SILENCE_MS_MAX: f64 = 2000.0;

/// Heartbeats that a client hears in the time it stays when it has everything.
const HEARTBEATS_MIN: u32 = 2;

/// What one run of the sessions showed.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Look {
    times: Times,
    /// The whole replay that fell into the run, if one did.
    replay: Option<Read>,
}

/// One replay, and what it cost.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Read {
    client: Replayed,
    /// Anonymous memory of the gateway at most, above what it had before.
    growth_mib: f64,
}

/// What one driver showed.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Findings {
    slow_read: Read,
    slow: Vec<Pair<Look>>,
    fast: Vec<Pair<Look>>,
}

impl Findings {
    fn reads(&self) -> impl Iterator<Item = Read> + '_ {
        let fast = self.fast.iter().filter_map(|pair| pair.of.value.replay);
        std::iter::once(self.slow_read).chain(fast)
    }
}

#[derive(Clone, Copy)]
struct Shape {
    messages: u32,
    slow: Duration,
    slow_pairs: usize,
    fast_pairs: usize,
    lengths: Lengths,
}

fn shape(laboratory: &Laboratory) -> Shape {
    let lengths = Lengths { warmup_max: WARMUP_MAX, window: WINDOW };
    if laboratory.rehearsal {
        let lengths = Lengths { window: WINDOW_REHEARSED, ..lengths };
        let (messages, slow) = (MESSAGES_REHEARSED, SLOW_REHEARSED);
        Shape { messages, slow, slow_pairs: 1, fast_pairs: 1, lengths }
    } else {
        Shape { messages: MESSAGES, slow: SLOW, slow_pairs: SLOW_PAIRS, fast_pairs: FAST_PAIRS, lengths }
    }
}

fn key(driver: &str) -> String {
    format!("{GROUP}-{driver}")
}

/// What the group takes, and how much of it is left.
pub fn plan(laboratory: &Laboratory) -> (Plan, Plan) {
    let shape = shape(laboratory);
    let of = |drivers: usize| {
        let runs = |pairs: usize| 2 * (drivers * pairs) as u64;
        let run = AROUND_A_RUN + shape.lengths.warmup_max + shape.lengths.window;
        let mut plan = Plan::of_trials(runs(shape.slow_pairs), run);
        plan.add(planned(runs(shape.fast_pairs), run));
        if drivers > 0 {
            let filling = Duration::from_secs_f64(f64::from(shape.messages) / FILLED_PER_SECOND);
            let driver = AFTERWARDS.mul_f64(shape.fast_pairs as f64);
            let beyond = filling + driver.mul_f64(drivers as f64);
            plan.time += beyond;
            plan.time_max += beyond;
        }
        plan
    };
    let left = DRIVERS.iter().filter(|driver| stored::<Findings>(laboratory, &key(driver)).is_none());
    (of(DRIVERS.len()), of(left.count()))
}

/// The rows of both drivers.
pub fn rows(laboratory: &Laboratory) -> Result<Vec<Row>, Stop> {
    let mut ground = None;
    let mut rows = Vec::new();
    for driver in DRIVERS {
        let findings = kept(laboratory, &key(driver), || {
            let ground = match &mut ground {
                Some(ground) => ground,
                none => none.insert(Ground::laid(laboratory)?),
            };
            measure(laboratory, driver, ground)
        })?;
        rows.extend(driver_rows(laboratory, driver, findings.as_ref()));
    }
    Ok(rows)
}

fn driver_rows(laboratory: &Laboratory, driver: &str, findings: Result<&Findings, &String>) -> Vec<Row> {
    let messages = shape(laboratory).messages;
    let memory = findings.map_err(Clone::clone).and_then(|findings| {
        let growths: Vec<f64> = findings.reads().map(|read| read.growth_mib).collect();
        spread(&growths).ok_or_else(|| "nothing was measured".to_owned())
    });
    let bound = Goal::Within(f64::NEG_INFINITY, CUT_OFF_MIB + BEYOND_MIB);
    let figure =
        format!("{driver}: RssAnon growth while {messages} messages are replayed, {CUT_OFF_MIB} MiB cut-off");
    let mut rows = vec![goal_row(GROUP, figure, (bound, "MiB"), memory)];
    for (way, is_slow) in [("10 kB/s", true), ("full speed", false)] {
        let mut row = |what: &str, bound: f64, value: fn(&Times) -> f64| {
            let measured = findings.map_err(Clone::clone).and_then(|findings| {
                let pairs = if is_slow { &findings.slow } else { &findings.fast };
                let measured = compared(pairs, |beside, alone| value(&beside.times) / value(&alone.times))?;
                Ok(if is_slow { measured } else { with_note(measured, &fast_note(findings)) })
            });
            let figure = format!("{driver}: {what} of sessions that trade, with a replay at {way} / without");
            rows.push(goal_row(GROUP, figure, (Goal::at_most(bound), ""), measured));
        };
        row("p50", P50_RATIO_MAX, |times| times.p50_us);
        row("p99", P99_RATIO_MAX, |times| times.p99_us);
    }
    rows.push(stream_row(driver, messages, findings));
    rows
}

/// How long a replay at full speed was.
fn fast_note(findings: &Findings) -> String {
    let seconds: Vec<f64> = findings.reads().skip(1).map(|read| read.client.seconds).collect();
    let median = weir_stats::order::median(&seconds).unwrap_or(f64::NAN);
    format!("a replay takes {median:.1} s")
}

/// Whether everything came again as it was, and the gateway never fell silent.
fn stream_row(driver: &str, messages: u32, findings: Result<&Findings, &String>) -> Row {
    let (measured, outcome) = match findings {
        Ok(findings) => {
            let clients: Vec<Replayed> = findings.reads().map(|read| read.client).collect();
            let is_right = |client: &Replayed| {
                client.messages == messages
                    && client.silence_ms_max <= SILENCE_MS_MAX
                    && client.heartbeats >= HEARTBEATS_MIN
            };
            let silence = clients.iter().map(|client| client.silence_ms_max).fold(0.0, f64::max);
            let heartbeats = clients.iter().map(|client| client.heartbeats).min().unwrap_or(0);
            let measured = format!(
                "{} replays, each byte as it came live; {silence:.0} ms of silence at most, {heartbeats} heartbeats at \
                 least",
                clients.len()
            );
            (measured, judge_count(clients.iter().all(is_right), true))
        }
        Err(reason) => (reason.clone(), Outcome::NotMeasured),
    };
    Row {
        figure: format!("{driver}: {messages} messages replayed as they came live, heartbeats go on"),
        goal: format!("all, dense; silence ≤ {SILENCE_MS_MAX} ms"),
        measured,
        outcome,
        command: format!("cargo xtask figures --only {GROUP}"),
    }
}

/// The exchange and the journal that all gateways of this group have.
struct Ground {
    exchange: Server,
    folder: PathBuf,
    live: PathBuf,
}

impl Ground {
    /// Fills the journal: one client places so many orders and keeps what it is answered with.
    fn laid(laboratory: &Laboratory) -> Result<Self, String> {
        let folder = laboratory.out.join("gateway-replay-files");
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(failed)?;
        }
        fs::create_dir_all(&folder).map_err(failed)?;
        let ground = Self { exchange: exchange(laboratory)?, live: folder.join("live"), folder };
        let gateway = ground.gateway(laboratory, DRIVERS[0])?;
        place_orders(seat(&gateway)?, shape(laboratory).messages, &ground.live)?;
        Ok(ground)
    }

    fn gateway(&self, laboratory: &Laboratory, driver: &str) -> Result<Gateway, String> {
        gateway(laboratory, driver, &self.exchange, Journal::In(&self.folder.join("journal"), "os"))
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // What is in it is worth nothing any more.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn seat(gateway: &Gateway) -> Result<Seat<'static>, String> {
    let address = gateway.server.address.parse().map_err(|error| format!("{error}"))?;
    Ok(Seat { address, account: OTHER_ACCOUNT })
}

/// Runs without the client come before and after those beside its slow reading, so that a drift of the machine falls on
/// both.
fn measure(laboratory: &Laboratory, driver: &str, ground: &Ground) -> Result<Findings, String> {
    let shape = shape(laboratory);
    let gateway = ground.gateway(laboratory, driver)?;
    let alone = || Ok(Look { times: Times::of(&trade(laboratory, &gateway, shape.lengths)?)?, replay: None });
    let some_alone =
        |count: usize| (0..count).map(|_| noted(laboratory, alone)).collect::<Result<Vec<_>, String>>();
    let mut without = some_alone(shape.slow_pairs / 2)?;
    let (slow_read, beside) = slowly(laboratory, &gateway, ground, shape)?;
    without.extend(some_alone(shape.slow_pairs - without.len())?);
    let slow = beside.into_iter().zip(without).map(|(of, to)| Pair { of, to }).collect();
    let slow = enough(slow, shape.slow_pairs)?;
    let fast = alternate(laboratory, shape.fast_pairs, || fast(laboratory, &gateway, ground, shape), alone)?;
    Ok(Findings { slow_read, slow, fast })
}

/// Runs beside a client that reads slowly; then the client reads the rest as fast as it can.
fn slowly(
    laboratory: &Laboratory,
    gateway: &Gateway,
    ground: &Ground,
    shape: Shape,
) -> Result<(Read, Vec<Noted<Look>>), String> {
    let is_fast = AtomicBool::new(false);
    watched(gateway, || {
        thread::scope(|scope| {
            let reading = scope.spawn(|| reader(seat(gateway)?, ground, shape, &is_fast));
            let until = Instant::now() + shape.slow;
            let runs = (0..shape.slow_pairs).map(|_| {
                if reading.is_finished() {
                    return Err("the client did not read to the end".to_owned());
                }
                noted(laboratory, || {
                    Ok(Look { times: Times::of(&trade(laboratory, gateway, shape.lengths)?)?, replay: None })
                })
            });
            let runs: Result<Vec<_>, String> = runs.collect();
            if runs.is_ok() && !laboratory.children.is_interrupted() {
                thread::sleep(until.saturating_duration_since(Instant::now()));
            }
            is_fast.store(true, Ordering::Relaxed);
            let client = reading.join().map_err(|_| "the client's thread panicked".to_owned())?;
            // Why it ended explains what went wrong beside it.
            let client = client?;
            Ok((client, runs?))
        })
    })
    .map(|((client, runs), growth_mib)| (Read { client, growth_mib }, runs))
}

/// A run in whose window a client reads as fast as it can.
fn fast(laboratory: &Laboratory, gateway: &Gateway, ground: &Ground, shape: Shape) -> Result<Look, String> {
    let is_over = AtomicBool::new(false);
    let ((client, times), growth_mib) = watched(gateway, || {
        thread::scope(|scope| {
            let reading = scope.spawn(|| {
                let came = gateway.sessions_came(SESSIONS, || is_over.load(Ordering::Relaxed))?;
                thread::sleep(shape.lengths.warmup_max.saturating_sub(came.elapsed()));
                reader(seat(gateway)?, ground, shape, &AtomicBool::new(true))
            });
            let report = trade(laboratory, gateway, shape.lengths);
            is_over.store(true, Ordering::Relaxed);
            let client = reading.join().map_err(|_| "the client's thread panicked".to_owned())?;
            Ok((client?, Times::of(&report?)?))
        })
    })?;
    Ok(Look { times, replay: Some(Read { client, growth_mib }) })
}

/// The client, on a thread of its own.
fn reader(seat: Seat<'_>, ground: &Ground, shape: Shape, is_fast: &AtomicBool) -> Result<Replayed, String> {
    // Not on the gateway's CPU; on a machine with one there is no other.
    let _ = pin_current_thread(&[LOAD_CPU]);
    // Of this thread alone, as Linux has it.
    let _ = rustix::process::nice(NICENESS);
    replay(seat, shape.messages, &ground.live, is_fast)
}

/// Does something, and says by how many MiB the gateway's anonymous memory was above what it had before, at most.
fn watched<T>(gateway: &Gateway, run: impl FnOnce() -> Result<T, String>) -> Result<(T, f64), String> {
    let before = anonymous_bytes(&gateway.server)?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let _ = pin_current_thread(&[LOAD_CPU]);
            let mut most = before;
            while !is_over.load(Ordering::Relaxed) {
                most = most.max(anonymous_bytes(&gateway.server)?);
                thread::sleep(MEMORY_LOOK);
            }
            Ok::<u64, String>(most)
        });
        let done = run();
        is_over.store(true, Ordering::Relaxed);
        let most = watching.join().map_err(|_| "the watching thread panicked".to_owned())?;
        let done = done?;
        Ok((done, (most? - before) as f64 / f64::from(1 << 20)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(change: impl FnOnce(&mut Replayed)) -> Findings {
        let right = Replayed { messages: 100, seconds: 1.5, silence_ms_max: 1200.0, heartbeats: 2 };
        let mut slow = right;
        change(&mut slow);
        let times = Times { p50_us: 10.0, p99_us: 20.0 };
        let look = |replay| Noted::undisturbed(Look { times, replay });
        let pair = |replay| Pair { of: look(replay), to: look(None) };
        Findings {
            slow_read: Read { client: slow, growth_mib: 4.5 },
            slow: vec![pair(None)],
            fast: vec![pair(Some(Read { client: right, growth_mib: -0.5 }))],
        }
    }

    #[test]
    fn a_replay_that_is_short_or_silent_or_has_no_heartbeats_misses() {
        let outcome = |change: fn(&mut Replayed)| stream_row("d", 100, Ok(&findings(change))).outcome;
        assert_eq!(outcome(|_| ()), Outcome::Met);
        assert_eq!(outcome(|client| client.messages = 99), Outcome::Missed);
        assert_eq!(outcome(|client| client.silence_ms_max = 2001.0), Outcome::Missed);
        assert_eq!(outcome(|client| client.heartbeats = 1), Outcome::Missed);
        let reason = "why".to_owned();
        assert_eq!(stream_row("d", 100, Err(&reason)).outcome, Outcome::NotMeasured);
    }

    #[test]
    fn memory_is_that_of_every_replay_the_slow_one_too() {
        let growths: Vec<f64> = findings(|_| ()).reads().map(|read| read.growth_mib).collect();
        assert_eq!(growths, [4.5, -0.5]);
        assert_eq!(fast_note(&findings(|_| ())), "a replay takes 1.5 s");
    }
}
