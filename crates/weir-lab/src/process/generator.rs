//! The generator's side of a trial: `weir load`, until it prints its report.

use std::{
    path::Path,
    process::Command,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use weir_record::{load::LoadReport, spec::LoadMode};

use super::{
    Deadlines,
    group::{Bond, Group},
    server::Server,
};
use crate::{
    host_defaults::cpu_list,
    launch::{LaunchError, TrialFailure, TrialRequest},
    protocol::{self, seconds, start::engine_options},
};

/// It failed without a report, or nothing came back right and the report says why.
const EXIT_RUNTIME: i32 = 1;

/// What came of the generator, unless the session must stop.
pub(crate) type Loaded = Result<Box<LoadReport>, TrialFailure>;

/// Runs the generator against the server, and watches both.
pub(crate) fn load(
    weir: &Path,
    request: &TrialRequest<'_>,
    server: &mut Server,
    deadlines: &Deadlines,
) -> Result<Loaded, LaunchError> {
    let protocol = protocol::of(request.cell);
    let mut command = Command::new(weir);
    command.args(words(request, &server.address)?).args(of_trial(request, server));
    super::vary_environment(&mut command, request, "generator");
    let mut group = Group::start(&mut command, Bond::Dies)
        .map_err(|error| LaunchError::Environment(format!("cannot start {}: {error}", weir.display())))?;
    let busy_ns = request.cell.window_ns.saturating_add(request.cell.warmup_ns_max);
    let busy = Duration::from_nanos(busy_ns.saturating_add(protocol.ramp_up_ns(request.cell)));
    let longest = busy + deadlines.load_margin;
    let deadline = Instant::now() + longest;
    while !group.has_ended() {
        if request.interrupt.load(Ordering::Relaxed) {
            return Err(LaunchError::Interrupted);
        }
        if Instant::now() >= deadline {
            let reason = format!("gave no report within {} s", longest.as_secs_f64());
            return Ok(Err(blame(server, reason)));
        }
        group.tick();
        server.still_runs();
    }
    let code = group.end().ok().and_then(|status| status.code());
    if !code.is_some_and(|code| has_report(code, &group.stdout.text())) {
        return match group.refusal(true) {
            Some(refusal) => Err(refusal.into()),
            None => Ok(Err(blame(server, group.exit_reason()))),
        };
    }
    if !server.still_runs() {
        return Ok(Err(server.death()));
    }
    let report = serde_json::from_str(group.stdout.text().trim());
    Ok(report
        .map(Box::new)
        .map_err(|error| TrialFailure::Load { reason: format!("its report cannot be read: {error}") }))
}

/// Whether a generator that ended with this code and output has measured something.
fn has_report(code: i32, output: &str) -> bool {
    code == 0 || code == EXIT_RUNTIME && output.trim_start().starts_with('{')
}

/// A generator that fails because its server died is not to blame.
fn blame(server: &mut Server, reason: String) -> TrialFailure {
    if server.is_ending() {
        return server.death();
    }
    TrialFailure::Load { reason }
}

/// What `weir load` is told to load a server, for a whole trial or for slices.
pub(super) fn words(request: &TrialRequest<'_>, address: &str) -> Result<Vec<String>, LaunchError> {
    let (cell, protocol) = (request.cell, protocol::of(request.cell));
    let of_protocol = protocol.generator().ok_or_else(|| {
        LaunchError::Usage(format!("{}: a cell of {} has no generator", cell.id, protocol.name()))
    })?;
    let mut words = of_protocol(cell, address);
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    option("--seed", request.seed.to_string());
    match cell.load {
        LoadMode::Closed => {}
        LoadMode::Open { rate_per_second, poisson, .. } => {
            option("--rate", rate_per_second.to_string());
            option("--arrivals", if poisson { "poisson" } else { "uniform" }.to_owned());
        }
        LoadMode::OpenShare { .. } => {
            return Err(LaunchError::Usage(format!("{}: a share became no rate", cell.id)));
        }
    }
    if cell.load_workers > 1 {
        option("--workers", cell.load_workers.to_string());
    }
    if cell.idle_connections > 0 {
        option("--idle-connections", cell.idle_connections.to_string());
    }
    if !request.load_cpus.is_empty() {
        option("--pin", cpu_list(request.load_cpus));
    }
    words.extend(engine_options(&request.arm.load_options));
    Ok(words)
}

/// What only a whole trial has: its length, and whom the generator observes.
fn of_trial(request: &TrialRequest<'_>, server: &Server) -> Vec<String> {
    let mut words = Vec::new();
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    option("--duration", seconds(request.cell.window_ns));
    option("--warmup-max", seconds(request.cell.warmup_ns_max));
    option("--observe-pid", server.observed_pid().to_string());
    for (node, pid) in server.beside() {
        option("--observe-beside", format!("{node}={pid}"));
    }
    if let Some(name) = &server.stats_socket {
        option("--observe-stats", name.clone());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_in_which_nothing_was_right_is_a_report() {
        assert!(has_report(0, "") && has_report(EXIT_RUNTIME, "{\"schema_version\":1}\n"));
        assert!(!has_report(EXIT_RUNTIME, "") && !has_report(2, "{}") && !has_report(137, "{}"));
    }
}
