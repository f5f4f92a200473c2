//! The generator's side of a trial: `weir load`, until it prints its report.

use std::{
    path::Path,
    process::Command,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use weir_record::{
    load::LoadReport,
    spec::{CellSpec, LoadMode},
};

use super::{
    Deadlines,
    files::TrialFiles,
    group::{Bond, Group},
    server::Server,
};
use crate::{
    host_defaults::cpu_list,
    launch::{LaunchError, TrialFailure, TrialRequest},
    protocol::{
        self, seconds,
        start::{congestion_control, engine_options},
    },
};

/// It failed without a report, or nothing came back right and the report says why.
const EXIT_RUNTIME: i32 = 1;

/// Default time that `weir load` waits for a connection, and for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The generator's report or failure, unless the session must stop.
pub(crate) type Loaded = Result<Box<LoadReport>, TrialFailure>;

/// Runs the generator against the server, and watches both.
pub(crate) fn load(
    weir: &Path,
    (request, files): (&TrialRequest<'_>, &TrialFiles),
    server: &mut Server,
    deadlines: &Deadlines,
) -> Result<Loaded, LaunchError> {
    let protocol = protocol::of(request.cell);
    let mut command = Command::new(weir);
    command.args(words((request, files), &server.address)?).args(of_trial(request, server));
    super::vary_environment(&mut command, request, "generator");
    let mut group = Group::start(&mut command, Bond::Dies)
        .map_err(|error| LaunchError::Environment(format!("cannot start {}: {error}", weir.display())))?;
    let busy_ns = request.cell.window_ns.saturating_add(warmup_ns_max(request));
    let busy = Duration::from_nanos(busy_ns.saturating_add(protocol.ramp_up_ns(request.cell)));
    let longest = busy + deadlines.load_margin + longer_waits(request.cell);
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

/// Longest warm-up: the cell's, or a longer one that the arm needs.
fn warmup_ns_max(request: &TrialRequest<'_>) -> u64 {
    request.cell.warmup_ns_max.max(request.arm.warmup_ns)
}

/// How long the generator of a cell may wait for a connection.
pub(super) fn connect_timeout(cell: &CellSpec) -> Duration {
    let [connect_ns, _] = protocol::of(cell).timeouts_ns(cell);
    if connect_ns == 0 { TIMEOUT } else { Duration::from_nanos(connect_ns) }
}

/// How much longer than by default a cell lets the generator wait for a connection and an answer.
/// [`Deadlines::load_margin`] covers the default.
pub(super) fn longer_waits(cell: &CellSpec) -> Duration {
    let timeouts = protocol::of(cell).timeouts_ns(cell);
    timeouts.into_iter().map(|ns| Duration::from_nanos(ns).saturating_sub(TIMEOUT)).sum()
}

/// Whether a generator that ended with this code and output has measured something.
fn has_report(code: i32, output: &str) -> bool {
    code == 0 || code == EXIT_RUNTIME && output.trim_start().starts_with('{')
}

/// Attributes a failure: if the server died, the generator is not the cause.
fn blame(server: &mut Server, reason: String) -> TrialFailure {
    if server.is_ending() {
        return server.death();
    }
    TrialFailure::Load { reason }
}

/// Arguments of `weir load` for a server, for a whole trial or for slices.
pub(super) fn words(
    (request, files): (&TrialRequest<'_>, &TrialFiles),
    address: &str,
) -> Result<Vec<String>, LaunchError> {
    let (cell, protocol) = (request.cell, protocol::of(request.cell));
    let of_protocol = protocol.generator().ok_or_else(|| {
        LaunchError::Usage(format!("{}: a cell of {} has no generator", cell.id, protocol.name()))
    })?;
    let mut words: Vec<String> =
        of_protocol(cell, address).iter().map(|word| files.substituted(word)).collect();
    words.extend(protocol.arm_words(request.arm));
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
    words.extend(congestion_control(cell, &request.arm.load_options));
    Ok(words)
}

/// Arguments of a whole trial only: its length, and the processes that the generator observes.
fn of_trial(request: &TrialRequest<'_>, server: &Server) -> Vec<String> {
    let mut words = Vec::new();
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    option("--duration", seconds(request.cell.window_ns));
    option("--warmup-max", seconds(warmup_ns_max(request)));
    if let Some(pid) = server.observed_pid() {
        option("--observe-pid", pid.to_string());
    }
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
    use std::sync::atomic::AtomicBool;

    use weir_judge::sample;
    use weir_record::spec::{ArmSpec, HttpCell, RunningServer, Subject};

    use super::*;

    #[test]
    fn longer_waits_of_a_cell_are_added_to_the_generators_margin() {
        let echo = sample::study(&["epoll", "uring"], 6, 1).cells.remove(0);
        assert_eq!((connect_timeout(&echo), longer_waits(&echo)), (TIMEOUT, Duration::ZERO));
        let seconds = |connect: u64, response: u64| {
            let [connect_timeout_ns, response_timeout_ns] = [connect, response].map(|it| it * 1_000_000_000);
            let http = HttpCell { connect_timeout_ns, response_timeout_ns, ..HttpCell::default() };
            let cell = CellSpec { protocol: "http".to_owned(), http: Some(http), ..echo.clone() };
            (connect_timeout(&cell).as_secs(), longer_waits(&cell).as_secs())
        };
        assert_eq!(seconds(0, 60), (5, 55));
        assert_eq!(seconds(30, 1), (30, 25), "a shorter wait takes nothing from the margin");
    }

    #[test]
    fn a_server_that_runs_already_is_asked_by_the_name_that_was_written() {
        let study = sample::study(&["epoll", "uring"], 6, 1);
        let told = |protocol: &str, arm: &ArmSpec| {
            let http = (protocol == "http").then(HttpCell::default);
            let cell = CellSpec { protocol: protocol.to_owned(), http, ..study.cells[0].clone() };
            let request = TrialRequest {
                arm,
                cell: &cell,
                server_cpus: &[],
                load_cpus: &[],
                neighbours: &[],
                seed: 1,
                block: 0,
                position: 0,
                interrupt: &AtomicBool::new(false),
            };
            words((&request, &TrialFiles::default()), "127.0.0.1:8080").expect("there is a generator")
        };
        let server = RunningServer { address: "api.example:8080".to_owned(), ..RunningServer::default() };
        let running = ArmSpec { subject: Subject::Running(server), ..study.arms[0].clone() };
        let words = told("http", &running);
        assert!(words.iter().any(|word| word == "http://127.0.0.1:8080/"), "{words:?}");
        assert!(words.windows(2).any(|two| two == ["--header", "Host: api.example:8080"]), "{words:?}");
        for words in [told("http", &study.arms[0]), told("echo", &running)] {
            assert!(words.iter().all(|word| word != "--header"), "{words:?}");
        }
    }

    #[test]
    fn a_report_in_which_nothing_was_right_is_a_report() {
        assert!(has_report(0, "") && has_report(EXIT_RUNTIME, "{\"schema_version\":1}\n"));
        assert!(!has_report(EXIT_RUNTIME, "") && !has_report(2, "{}") && !has_report(137, "{}"));
    }
}
