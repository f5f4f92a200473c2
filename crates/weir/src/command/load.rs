//! `weir load`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use weir_engine::{Driver, DriverChoice};
use weir_load::{LoadError, LoadSpec, Phase, Progress};
use weir_record::load::{LatencySummary, LoadReport};

use super::{engine, load_http, load_orders};
use crate::{
    args::{Arrivals, Load, LoadEcho, LoadProtocol, LoadShared},
    exit::{Exit, UsageError},
    output, signals,
};

/// How long before an intended start a paced sender watches the clock instead of sleeping: about what a wake-up
/// takes on a virtual machine.
pub(crate) const PACER_SPIN: Duration = Duration::from_micros(60);

pub(crate) fn run(load: &Load) -> Result<Exit> {
    match &load.protocol {
        LoadProtocol::Echo(echo) => run_echo(echo),
        LoadProtocol::Http(http) => load_http::run(http),
        LoadProtocol::Orders(orders) => load_orders::run(orders),
    }
}

fn run_echo(arguments: &LoadEcho) -> Result<Exit> {
    let LoadEcho { target, message_bytes, messages, shared } = arguments;
    let mut spec = LoadSpec { message_bytes: *message_bytes, ..spec(shared, "--target", target, *messages)? };
    check(&mut spec, shared)?;
    let (report, exit) = carry_out(&spec, shared.json, "messages", with_flag)?;
    let text = if shared.json { serde_json::to_string(&report)? } else { table(&report) };
    output::print(&text)?;
    Ok(exit)
}

/// Runs a load until its end or a signal, showing its progress unless the output is for a program.
pub(super) fn carry_out(
    spec: &LoadSpec,
    is_quiet: bool,
    unit: &str,
    explain: impl Fn(LoadError) -> anyhow::Error,
) -> Result<(LoadReport, Exit)> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    signals::on_stop(move |count| {
        flag.store(true, Ordering::Relaxed);
        if count > 1 {
            std::process::exit(130);
        }
    })?;
    let mut show = |progress: Progress| {
        if !is_quiet {
            output::tell(&line(&progress, unit));
        }
    };
    let report = weir_load::run(spec, &mut show, &stop).map_err(explain)?;
    let exit = if stop.load(Ordering::Relaxed) { Exit::Interrupted } else { Exit::Ok };
    Ok((report, exit))
}

/// What every load is asked, without what is special to a protocol; `flag` gave the target, and `messages` is the
/// number of a counted run.
pub(super) fn spec(shared: &LoadShared, flag: &str, target: &str, messages: Option<u64>) -> Result<LoadSpec> {
    let arrivals = match shared.rate {
        Some(rate_per_second) => weir_load::Arrivals::Open {
            rate_per_second,
            poisson: matches!(shared.arrivals, Arrivals::Poisson),
            spin: PACER_SPIN,
        },
        None => weir_load::Arrivals::Closed { think: engine::time("--think", &shared.think)? },
    };
    // A counted run measures all its messages: there is nothing to warm up for.
    let warmup = if messages.is_some() { "0s" } else { &shared.warmup_max };
    Ok(LoadSpec {
        target: engine::address(flag, target)?.to_string(),
        connections: shared.connections,
        idle_connections: shared.idle_connections,
        depth: shared.depth,
        message_bytes: 0,
        arrivals,
        workers: shared.workers,
        pin: shared.pin.clone(),
        seed: shared.seed,
        duration: engine::time("--duration", &shared.duration)?,
        messages,
        warmup_max: engine::time("--warmup-max", warmup)?,
        ramp_up: engine::time("--ramp-up", &shared.ramp_up)?,
        connect_timeout: engine::time("--connect-timeout", &shared.connect_timeout)?,
        response_timeout: engine::time("--response-timeout", &shared.response_timeout)?,
        engine: engine::config(&shared.driver, &shared.options)?,
        observe_pid: shared.observe_pid,
        observe_stats: shared.observe_stats.clone(),
        http: None,
        orders: None,
    })
}

/// Descriptors a process of ours has open besides its connections, at most.
const DESCRIPTORS_BESIDE: u64 = 48;

/// What only the command line can know to be impossible.
pub(super) fn check(spec: &mut LoadSpec, shared: &LoadShared) -> Result<()> {
    engine::check_pin(&shared.pin)?;
    if shared.observe_stats.as_ref().is_some_and(|name| !name.starts_with('@')) {
        return Err(UsageError("--observe-stats takes an abstract name: @name".into()).into());
    }
    engine::resolve(&mut spec.engine, &shared.options)?;
    let sockets = u64::from(spec.connections) + u64::from(spec.idle_connections);
    let text = match spec.engine.driver {
        DriverChoice::Named(Driver::Blocking) => {
            "--driver blocking: the generator needs many operations at once; use uring, epoll, poll or select"
                .to_owned()
        }
        DriverChoice::Named(Driver::Select) if sockets + DESCRIPTORS_BESIDE > SELECT_DESCRIPTORS => format!(
            "--driver select watches descriptors below {SELECT_DESCRIPTORS}, too few for {sockets} connections; use poll \
             or epoll, or at most {} connections",
            SELECT_DESCRIPTORS - DESCRIPTORS_BESIDE
        ),
        _ => return Ok(()),
    };
    Err(UsageError(text).into())
}

/// Descriptors that select(2) can name (`FD_SETSIZE`).
const SELECT_DESCRIPTORS: u64 = 1024;

/// An impossible value, told with the flag that gave it.
fn with_flag(error: LoadError) -> anyhow::Error {
    match error {
        LoadError::Invalid { field, reason } => {
            let flag = if field == "think-time" { "think" } else { field };
            UsageError(format!("--{flag}: {reason}")).into()
        }
        other => other.into(),
    }
}

fn line(progress: &Progress, unit: &str) -> String {
    let phase = match progress.phase {
        Phase::Connecting => "connecting",
        Phase::WarmingUp => "warming up",
        Phase::Measuring => "measuring ",
    };
    let percentiles = progress
        .second
        .map(|second| format!("  p50 {} p99 {}", micros(second.p50_ns as f64), micros(second.p99_ns as f64)));
    let failure = progress.failure_last.as_ref().map(|failure| format!("  last failure: {failure}"));
    format!(
        "{phase} {:>5.1}/{:.1} s  {:>10.0} {unit}/s  {} in flight  {} errors{}{}",
        progress.elapsed.as_secs_f64(),
        progress.planned.as_secs_f64(),
        progress.messages_per_second,
        progress.in_flight,
        progress.errors,
        percentiles.unwrap_or_default(),
        failure.unwrap_or_default(),
    )
}

pub(super) fn micros(nanoseconds: f64) -> String {
    format!("{:.1} µs", nanoseconds / 1000.0)
}

/// The report as people read it.
fn table(report: &LoadReport) -> String {
    let bound = if report.generator_bound { " (the generator was the limit: a lower bound)" } else { "" };
    let steady = if report.warmup_steady { "" } else { ", not steady when it ended" };
    let mut rows = vec![
        format!("target        {} ({} loop, generator on {})", report.target, report.mode, report.driver),
        format!(
            "load          {} connections x {} in flight, {} B messages",
            report.connections, report.depth, report.message_bytes
        ),
        format!(
            "window        {:.2} s after {:.2} s warm-up{steady}",
            report.window_ns as f64 / 1e9,
            report.warmup_ns as f64 / 1e9
        ),
        format!("messages      {} ({} bytes compared)", report.messages, report.bytes_verified),
        format!("throughput    {:.0} messages/s{bound}", report.throughput_per_second),
        format!("response time {}", latency(&report.response)),
    ];
    if report.rate_per_second.is_some() {
        rows.push(format!("service time  {}", latency(&report.service)));
        rows.push(format!("send lag      {}", latency(&report.send_lag)));
        rows.push(format!("missed starts {}", report.missed_starts));
    }
    rows.push(format!("failures      {}", failures(report)));
    rows.push(generator(report, "message"));
    rows.extend(server(report, "message"));
    rows.join("\n")
}

/// What the generator itself cost.
pub(super) fn generator(report: &LoadReport, unit: &str) -> String {
    format!(
        "generator     {:.2} µs CPU a {unit}, busiest thread {:.0} % of the window",
        report.generator_cpu_ns as f64 / 1000.0 / report.messages.max(1) as f64,
        report.generator_busy_max * 100.0
    )
}

/// What the server cost, when it was observed.
pub(super) fn server(report: &LoadReport, unit: &str) -> Option<String> {
    let observed = report.observed.as_ref()?;
    let messages = report.messages.max(1) as f64;
    Some(format!(
        "server        {:.2} µs CPU a {unit}, {:.4} context switches a {unit}, {} threads",
        observed.cpu_ns as f64 / 1000.0 / messages,
        (observed.switches_voluntary + observed.switches_involuntary) as f64 / messages,
        observed.threads
    ))
}

/// The quantiles that people look for; `--json` has all of them.
const QUANTILES_SHOWN: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];

pub(super) fn latency(summary: &LatencySummary) -> String {
    if summary.count == 0 {
        return "no samples".into();
    }
    let quantile = |(quantile, nanoseconds): &(f64, u64)| {
        // 0.999 reads p99.9
        let percent = (quantile * 1e6).round() / 1e4;
        format!("p{percent} {}", micros(*nanoseconds as f64))
    };
    let shown = summary.quantiles.iter().filter(|(quantile, _)| QUANTILES_SHOWN.contains(quantile));
    let mut parts = vec![format!("mean {}", micros(summary.ns_mean))];
    parts.extend(shown.map(quantile));
    parts.push(format!("max {}", micros(summary.ns_max as f64)));
    parts.join(", ")
}

pub(super) fn failures(report: &LoadReport) -> String {
    let counts = &report.failures;
    let classes = [
        ("refused", counts.refused),
        ("reset", counts.reset),
        ("connect timeout", counts.connect_timeout),
        ("response timeout", counts.response_timeout),
        ("short", counts.short),
        ("wrong bytes", counts.wrong_bytes),
        ("wrong status", counts.wrong_status),
        ("malformed", counts.malformed),
        ("local limit", counts.local_limit),
        ("unexplained", counts.unexplained),
        ("cut off at end", counts.cut_off_at_end),
    ];
    let seen: Vec<String> = classes
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    if seen.is_empty() { "none".into() } else { seen.join(", ") }
}
