//! Random programs on the production state machine: many connections with timeouts, half-closes, slow readers,
//! resets, limits and hand-overs, on a kernel that shows every behaviour a kernel may show. Each program checks every
//! byte and that nothing hangs or spins. It checks the driver's state for consistency, on the way and at the end.
//!
//! `WEIR_PROGRAMS=1000000` runs that many programs, from seed `WEIR_TEST_SEED` on; that variable alone replays one.

use std::{
    cell::{Cell, RefCell},
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    time::Duration,
};

use weir_engine_types::EngineStats;

use super::address;
use crate::{
    Runtime,
    driver::readiness::planted_bugs::{Plant, plant},
    net::{ListenOptions, Listener},
    spawn,
    time::{sleep, timeout},
};

mod act;
mod plan;

use act::{End, Log, Shared};
use plan::{Client, Plan, Script, Server};

/// Programs in an ordinary run.
const PROGRAMS: u64 = 500;

/// A program that takes longer, in virtual time, hangs.
const HANGS_AFTER: Duration = Duration::from_secs(20_000);

/// Runs a program: returns the engine's counters, or the error in words.
fn run(seed: u64) -> Result<EngineStats, String> {
    let plan = Plan::new(seed);
    let runtime = Runtime::new(&plan.config).map_err(|error| error.to_string())?;
    let outcome = catch_unwind(AssertUnwindSafe(|| run_on(&runtime, plan)));
    match outcome {
        Ok(outcome) => outcome,
        Err(panic) => {
            // Otherwise the tasks' sockets would be closed by a driver in the middle of an operation.
            std::mem::forget(runtime);
            let text = panic.downcast_ref::<String>().cloned();
            Err(text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).into())).unwrap_or_default())
        }
    }
}

fn run_on(runtime: &Runtime, plan: Plan) -> Result<EngineStats, String> {
    let (scripts, drains) = (plan.scripts.clone(), plan.drains_after.is_some());
    let logs = RefCell::new(vec![Log::default(); scripts.len()]);
    let shared = Rc::new(Shared { plan, logs, servers: RefCell::default() });
    runtime.block_on(work(Rc::clone(&shared)))?;
    if drains {
        runtime.drain(Duration::from_secs(20));
    }
    let faults = runtime.block_on(settle(&shared.plan, drains))?;
    let stats = runtime.counters().snapshot();
    let logs = shared.logs.take();
    let mut failed = 0;
    for (script, log) in scripts.iter().zip(&logs) {
        let checked = check(&shared.plan, script, log, drains);
        failed += checked.map_err(|wrong| format!("{wrong}: {script:?} {}", summary(log)))?;
    }
    if !drains
        && failed > faults + stats.accepts_refused
        && shared.plan.is_patient()
        && !shared.plan.may_refuse()
    {
        let refused = stats.accepts_refused;
        return Err(format!("{failed} connections failed, and {faults} faults and {refused} refusals only"));
    }
    Ok(stats)
}

/// Runs all connections until they are done or the drain is due.
async fn work(shared: Rc<Shared>) -> Result<(), String> {
    let options = ListenOptions { backlog: shared.plan.backlog, ..ListenOptions::default() };
    let listener = Listener::bind(&address("127.0.0.1:0"), options).map_err(|error| error.to_string())?;
    let bound = listener.local_address().map_err(|error| error.to_string())?;
    let accepting = spawn(act::accept(Rc::clone(&shared), listener));
    let wrong = Rc::new(RefCell::new(Vec::new()));
    let is_over = Rc::new(Cell::new(false));
    let watching = spawn({
        let (wrong, is_over, mut look) = (Rc::clone(&wrong), Rc::clone(&is_over), shared.plan.look);
        async move {
            while !is_over.get() && wrong.borrow().is_empty() {
                wrong.borrow_mut().extend(act::inconsistencies());
                sleep(look).await;
                // The interval grows: otherwise checking a program that hangs would take forever.
                look += look / 16;
            }
        }
    });
    let start = |script: &Script| spawn(act::client(Rc::clone(&shared), *script, bound.clone()));
    let clients: Vec<_> = shared.plan.scripts.iter().map(start).collect();
    if let Some(drain) = shared.plan.drains_after {
        sleep(drain).await;
        is_over.set(true);
        return Ok(());
    }
    let all = async {
        for client in clients {
            client.await;
        }
        // Time for connections that still wait at the listener, even if accepting pauses for lack of descriptors.
        sleep(Duration::from_secs(300)).await;
        loop {
            let Some(server) = shared.servers.borrow_mut().pop() else { break };
            server.await;
        }
    };
    let is_done = timeout(HANGS_AFTER, all).await.is_ok();
    is_over.set(true);
    watching.await;
    accepting.abort();
    match (is_done, wrong.borrow().first()) {
        (true, None) => Ok(()),
        (_, Some(wrong)) => Err(wrong.clone()),
        (false, None) => {
            let logs = shared.logs.borrow();
            let unfinished = shared.plan.scripts.iter().zip(&*logs);
            let unfinished = unfinished.filter(|(_, log)| log.client.is_none() || log.server.is_none());
            let unfinished: Vec<_> = unfinished.map(|(script, log)| (script, summary(log))).collect();
            Err(format!("it hangs: {:?}: {unfinished:?}: {:?}", shared.plan.config, act::waiting()))
        }
    }
}

/// Lets closing connections end and checks what remains. Returns the number of connections that faults have broken.
async fn settle(plan: &Plan, drained: bool) -> Result<u64, String> {
    let limit = plan.config.limits.linger + Duration::from_secs(10);
    let _ = timeout(limit, async {
        while act::open_sockets() > 0 && !drained {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    // A drain that was cut short leaves the handles of unfinished tasks.
    let left = if drained { act::inconsistencies() } else { act::left_over() };
    if left.is_empty() { Ok(act::broken()) } else { Err(format!("left over: {}", left.join(", "))) }
}

/// The bytes of a server that does everything in its script.
fn reply(plan: &Plan, script: &Script) -> Vec<u8> {
    match script.server {
        Server::Echoes { .. } | Server::Collects => act::sent_by_client(plan, script),
        Server::Pushes { bytes } | Server::SendsFile { bytes } => act::sent_by_server(plan, script, bytes),
        Server::Swallows | Server::Aborts { .. } | Server::Leaves { .. } => Vec::new(),
    }
}

/// Checks one connection: returns 1 if it failed although its script runs to the end, else 0.
fn check(plan: &Plan, script: &Script, log: &Log, drained: bool) -> Result<u64, &'static str> {
    let (request, reply) = (act::sent_by_client(plan, script), reply(plan, script));
    let server_ends = matches!(script.server, Server::Aborts { .. } | Server::Leaves { .. });
    let client_ends = matches!(script.client, Client::Aborts { .. });
    if let Some(server) = &log.server {
        if !request.starts_with(&server.received) {
            return Err("the server received other bytes");
        }
        if server.end == End::Whole && !drained && (client_ends || server.received != request) {
            return Err("to the server a cut stream looks whole");
        }
    }
    if let Some(client) = &log.client {
        if !reply.starts_with(&client.received) {
            return Err("the client received other bytes");
        }
        let nobody_served = log.server.is_none() && client.received.is_empty();
        if client.end == End::Whole && !drained && client.received != reply && !nobody_served {
            return Err("to the client a cut stream looks whole");
        }
        if client.end == End::Whole
            && matches!(script.server, Server::Aborts { .. })
            && !drained
            && !nobody_served
        {
            return Err("a reset looks like the end of the stream");
        }
    }
    let is_odd = |kind: io::ErrorKind| {
        !matches!(
            kind,
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted
        )
    };
    let mut failures = [&log.client, &log.server].into_iter().flatten().flat_map(|seen| {
        let read = if let End::Failed(kind) = seen.end { Some(kind) } else { None };
        [read, seen.send_error].into_iter().flatten()
    });
    if failures.clone().any(is_odd) {
        return Err("an error that nothing here can cause");
    }
    let is_served = log.server.is_some() && log.client.is_some();
    Ok(u64::from(!server_ends && !client_ends && (failures.next().is_some() || !is_served)))
}

/// A log without its bytes.
fn summary(log: &Log) -> String {
    let of = |seen: &Option<act::Seen>| match seen {
        Some(seen) => format!("{} bytes, {:?}, {:?}", seen.received.len(), seen.end, seen.send_error),
        None => "nothing".into(),
    };
    format!("(client: {}; server: {})", of(&log.client), of(&log.server))
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn random_programs_get_every_byte_and_leave_nothing_behind() {
    let (first, count) = (number("WEIR_TEST_SEED"), number("WEIR_PROGRAMS"));
    let count = count.unwrap_or(if first.is_some() { 1 } else { PROGRAMS });
    let first = first.unwrap_or(0);
    let mut seen = [0; 8];
    for seed in first..first + count {
        let stats = run(seed).unwrap_or_else(|wrong| panic!("WEIR_TEST_SEED={seed}: {wrong}"));
        for (sum, count) in seen.iter_mut().zip([
            stats.sends_short,
            stats.would_block,
            stats.buffers_exhausted,
            stats.accepts_starved,
            stats.accepts_refused,
            stats.receives_full,
            stats.connects,
            stats.file_calls,
        ]) {
            *sum += count;
        }
    }
    // Programs that cover nothing would pass as well.
    assert!(count < PROGRAMS || seen.iter().all(|sum| *sum > 10), "{seen:?}");
}

#[test]
fn a_program_is_the_same_at_every_run() {
    let turns = |seed| {
        let plan = Plan::new(seed);
        let runtime = Runtime::new(&plan.config).expect("the simulator starts anywhere");
        format!("{:?}", run_on(&runtime, plan).expect("it passes"))
    };
    for seed in 0..20 {
        assert_eq!(turns(seed), turns(seed), "seed {seed}");
    }
}

#[test]
fn programs_find_faults_that_are_planted_in_readiness() {
    for fault in [
        Plant::RestFromWrongPlace,
        Plant::RoomNotWatched,
        Plant::RoomStaysWatched,
        Plant::ShortReadIsEnd,
        Plant::TurnIsLost,
    ] {
        plant(Some(fault));
        let found = (0..PROGRAMS).find_map(|seed| run(seed).err().map(|wrong| (seed, wrong)));
        plant(None);
        let Some((seed, wrong)) = found else { panic!("{fault:?} stays hidden in {PROGRAMS} programs") };
        assert!(run(seed).is_ok(), "seed {seed} fails without {fault:?} too, which gave: {wrong}");
    }
}
