//! The generator's side of a trial: `weir load`, until it prints its report.

use std::{
    path::Path,
    process::Command,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use weir_proto::content::Content;
use weir_record::{
    load::LoadReport,
    spec::{HttpCell, LoadMode},
};

use super::{
    Deadlines, files,
    group::{Bond, Group},
    orders,
    server::{Server, cpu_list},
};
use crate::launch::{LaunchError, TrialFailure, TrialRequest};

/// It failed without a report, or nothing came back right and the report says why.
const EXIT_RUNTIME: i32 = 1;
/// Exit codes of the generator that mean more than "it failed".
pub(super) const EXIT_USAGE: i32 = 2;
pub(super) const EXIT_ENVIRONMENT: i32 = 13;

/// What came of the generator, unless the session must stop.
pub(crate) type Loaded = Result<Box<LoadReport>, TrialFailure>;

/// Runs the generator against the server, and watches both.
pub(crate) fn load(
    weir: &Path,
    request: &TrialRequest<'_>,
    server: &mut Server,
    deadlines: &Deadlines,
) -> Result<Loaded, LaunchError> {
    let mut command = Command::new(weir);
    command.args(arguments(request, server));
    super::vary_environment(&mut command, request, "generator");
    let mut group = Group::start(&mut command, Bond::Dies)
        .map_err(|error| LaunchError::Environment(format!("cannot start {}: {error}", weir.display())))?;
    let ramp_up_ns = request.cell.http.as_ref().map_or(0, |http| http.ramp_up_ns);
    let busy_ns = request.cell.window_ns.saturating_add(request.cell.warmup_ns_max);
    let busy = Duration::from_nanos(busy_ns.saturating_add(ramp_up_ns));
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
    match group.end().ok().and_then(|status| status.code()) {
        Some(code) if has_report(code, &group.stdout.text()) => {}
        Some(EXIT_USAGE) => return Err(LaunchError::Usage(group.said())),
        Some(EXIT_ENVIRONMENT) => return Err(LaunchError::Environment(group.said())),
        _ => {
            let reason = group.obituary();
            return Ok(Err(blame(server, reason)));
        }
    }
    if !server.still_runs() {
        let reason = format!("during the load it {}", server.obituary());
        return Ok(Err(TrialFailure::Server { reason }));
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
        return TrialFailure::Server { reason: format!("during the load it {}", server.obituary()) };
    }
    TrialFailure::Load { reason }
}

fn arguments(request: &TrialRequest<'_>, server: &Server) -> Vec<String> {
    let cell = request.cell;
    let mut arguments = match (&cell.http, &cell.orders) {
        (Some(http), _) => http_arguments(http, &server.address),
        (None, Some(orders)) => orders::load_arguments(request, orders, &server.address),
        (None, None) => {
            let bytes = cell.message_bytes.to_string();
            ["load", "echo", "--json", "--target", &server.address, "--message-bytes", &bytes]
                .map(str::to_owned)
                .to_vec()
        }
    };
    let mut option = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    if cell.orders.is_none() {
        option("--connections", cell.connections.to_string());
        option("--depth", cell.depth.to_string());
    }
    option("--duration", seconds(cell.window_ns));
    option("--warmup-max", seconds(cell.warmup_ns_max));
    option("--seed", request.seed.to_string());
    option("--observe-pid", server.observed_pid().to_string());
    // Shares have become rates before any trial runs.
    if let LoadMode::Open { rate_per_second, poisson } = cell.load {
        option("--rate", rate_per_second.to_string());
        option("--arrivals", if poisson { "poisson" } else { "uniform" }.to_owned());
    }
    if cell.idle_connections > 0 {
        option("--idle-connections", cell.idle_connections.to_string());
    }
    if !request.load_cpus.is_empty() {
        option("--pin", cpu_list(request.load_cpus));
    }
    if let Some(name) = &server.stats_socket {
        option("--observe-stats", name.clone());
    }
    for (name, value) in &request.arm.load_options {
        option("--option", format!("{name}={value}"));
    }
    arguments
}

/// What only a generator of HTTP is told.
fn http_arguments(http: &HttpCell, address: &str) -> Vec<String> {
    // A content that is none was refused before anything ran; the generator would say so too.
    let path = http.content.parse::<Content>().map_or_else(|_| "/".to_owned(), files::url_path);
    let url = format!("http://{address}{path}");
    let mut arguments: Vec<String> = ["load", "http", "--json", &url].map(str::to_owned).to_vec();
    arguments.extend(["--expect-content".to_owned(), http.content.clone()]);
    if http.close {
        arguments.push("--close".to_owned());
    }
    for (name, length_ns) in [
        ("--ramp-up", http.ramp_up_ns),
        ("--connect-timeout", http.connect_timeout_ns),
        ("--response-timeout", http.response_timeout_ns),
    ] {
        if length_ns > 0 {
            arguments.extend([name.to_owned(), seconds(length_ns)]);
        }
    }
    arguments
}

fn seconds(nanoseconds: u64) -> String {
    format!("{}s", Duration::from_nanos(nanoseconds).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_in_which_nothing_was_right_is_a_report() {
        assert!(has_report(0, "") && has_report(EXIT_RUNTIME, "{\"schema_version\":1}\n"));
        assert!(!has_report(EXIT_RUNTIME, "") && !has_report(EXIT_USAGE, "{}") && !has_report(137, "{}"));
    }
}
