//! `weir load`: what all loads have in common, from the flags to the exit code.

use std::{sync::atomic::Ordering, time::Duration};

use anyhow::Result;
use weir_engine::{Driver, DriverChoice};
use weir_evidence::edge::{BESIDE_MAX, Beside};
use weir_load::{LoadError, LoadSpec, Phase, Progress, Protocol};
use weir_record::load::LoadReport;
use weir_report::{Language, columns as width, localized, pad_end};

use crate::{
    engine,
    exit::{Exit, UsageError},
    flags::{Arrivals, LoadShared, MaxErrors, Settings},
    language,
    load_text::{self, Unit, columns, failures, scaled},
    output, signals,
};

/// How long before an intended start a paced sender watches the clock instead of sleeping: about what a wake-up
/// takes on a virtual machine.
pub(crate) const PACER_SPIN: Duration = Duration::from_micros(60);

/// What `weir load` has of a protocol.
pub(crate) trait LoadCommand {
    /// The flags that every load has.
    fn shared(&self) -> &LoadShared;

    /// What is asked, complete.
    fn spec(&self) -> Result<LoadSpec>;

    /// What comes back and is counted.
    fn unit(&self) -> Unit {
        Unit::Message
    }

    /// An impossible value of a specification, told with the flag that gave it.
    fn refusal(&self, field: &'static str, reason: String) -> String {
        format!("--{field}: {reason}")
    }

    /// Opens what else takes the report: a path that cannot be written is known before the load, not after it.
    fn open(&self) -> Result<Option<Sink>> {
        Ok(None)
    }

    /// The report as people read it.
    fn table(&self, report: &LoadReport, columns: usize, language: Language) -> String {
        load_text::table(report, columns, language)
    }
}

/// What takes a report beside standard output.
pub(crate) type Sink = Box<dyn FnOnce(&LoadReport) -> Result<()>>;

pub(crate) fn run(load: &dyn LoadCommand, settings: &Settings) -> Result<Exit> {
    let shared = load.shared();
    let language = language::chosen(shared.lang.as_deref())?;
    let mut spec = load.spec()?;
    check(&mut spec, shared)?;
    let sink = load.open()?;
    let (report, ending) = carry_out(&spec, load, settings, language)?;
    let text = if shared.json {
        serde_json::to_string(&report)?
    } else {
        load.table(&report, columns(output::width_columns()), language)
    };
    output::print(&text)?;
    let exit = conclude(&report, ending, shared.max_errors, load.unit());
    // Last, so that a full disk costs the file and not the report.
    sink.map_or(Ok(()), |sink| sink(&report))?;
    Ok(exit)
}

/// How a run that has a report came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Complete,
    /// By a signal.
    Interrupted,
}

/// Runs a load until its end or a signal, showing its progress unless the output is for a program. The report has what
/// the command line asked.
fn carry_out(
    spec: &LoadSpec,
    load: &dyn LoadCommand,
    settings: &Settings,
    language: Language,
) -> Result<(LoadReport, Ending)> {
    let stop = signals::stop_flag()?;
    let mut show = |progress: Progress| {
        if !load.shared().json {
            output::tell(&line(&progress, load.unit(), language));
        }
    };
    let report = weir_load::run(spec, &mut show, &stop).map_err(|error| match error {
        LoadError::Invalid { field, reason } => UsageError(load.refusal(field, reason)).into(),
        other => anyhow::Error::new(other),
    })?;
    let report = LoadReport { settings: settings.clone(), ..report };
    let ending = if stop.load(Ordering::Relaxed) { Ending::Interrupted } else { Ending::Complete };
    Ok((report, ending))
}

/// Chooses the exit code of a run that was reported, and says why when it is none of success.
fn conclude(report: &LoadReport, ending: Ending, max_errors: Option<MaxErrors>, unit: Unit) -> Exit {
    if ending == Ending::Interrupted {
        return Exit::Interrupted;
    }
    let Some((exit, reason)) = objection(report, max_errors, unit) else { return Exit::Ok };
    output::tell(&format!("weir: {reason}"));
    exit
}

/// Why a run did not succeed: a threshold that was set, and otherwise that nothing came back right. In English as every
/// error is.
fn objection(report: &LoadReport, max_errors: Option<MaxErrors>, unit: Unit) -> Option<(Exit, String)> {
    let unit = unit.plural(Language::English);
    let errors = report.failures.errors();
    let percent = 100.0 * report.error_share;
    let is_exceeded = |limit: &MaxErrors| match limit {
        MaxErrors::Count(count) => errors > *count,
        MaxErrors::Percent(most) => percent > *most,
    };
    if let Some(limit) = max_errors.filter(is_exceeded) {
        let ended = errors + report.messages_whole_run;
        return Some((
            Exit::Threshold,
            format!("--max-errors {limit}: {errors} of {ended} {unit} failed ({percent:.3} %)"),
        ));
    }
    if report.messages > 0 {
        return None;
    }
    let first = report.failure_first.as_ref().map(|first| format!("; the first failure: {}", first.text));
    Some((
        Exit::RuntimeError,
        format!(
            "none of the {unit} measured came back right; failures: {}{}",
            failures(report, Language::English),
            first.unwrap_or_default()
        ),
    ))
}

/// What a load is asked, from the flags that every load has and what only its protocol is asked; `flag` gave the
/// target, and `messages` is the number of a counted run.
pub(crate) fn spec(
    shared: &LoadShared,
    protocol: Protocol,
    flag: &str,
    target: &str,
    messages: Option<u64>,
) -> Result<LoadSpec> {
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
        observe_beside: beside(&shared.observe_beside)?,
        observe_stats: shared.observe_stats.clone(),
        protocol,
    })
}

/// `exchange=4711`.
fn beside(words: &[String]) -> Result<Vec<Beside>> {
    let one = |word: &String| {
        let (node, pid) = word.split_once('=').filter(|(node, _)| !node.is_empty())?;
        Some(Beside { node: node.to_owned(), pid: pid.parse().ok()? })
    };
    if words.len() > BESIDE_MAX {
        return Err(UsageError(format!("--observe-beside: at most {BESIDE_MAX} processes")).into());
    }
    let found: Option<Vec<Beside>> = words.iter().map(one).collect();
    found
        .ok_or_else(|| UsageError("--observe-beside takes a name and a process: exchange=4711".into()).into())
}

/// Descriptors a process of ours has open besides its connections, at most.
const DESCRIPTORS_BESIDE: u64 = 48;

/// What only the command line can know to be impossible.
pub(crate) fn check(spec: &mut LoadSpec, shared: &LoadShared) -> Result<()> {
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

fn line(progress: &Progress, unit: Unit, language: Language) -> String {
    let phases = [
        language.choose(["connecting", "연결 중", "建立连接"]),
        language.choose(["warming up", "준비 구간", "预热"]),
        language.choose(["measuring", "측정 중", "测量"]),
    ];
    let columns = phases.map(width).into_iter().max().unwrap_or(0);
    let phase = pad_end(
        match progress.phase {
            Phase::Connecting => phases[0],
            Phase::WarmingUp => phases[1],
            Phase::Measuring => phases[2],
        },
        columns,
    );
    let percentiles = progress
        .second
        .map(|second| format!("  p50 {} p99 {}", scaled(second.p50_ns as f64), scaled(second.p99_ns as f64)));
    let percentiles = percentiles.unwrap_or_default();
    let failure = progress.failure_last.as_ref().map(|failure| {
        localized!(
            language,
            "  last failure: {failure}",
            "  마지막 실패: {failure}",
            "  最近一次失败：{failure}"
        )
    });
    let failure = failure.unwrap_or_default();
    let (elapsed, planned) = (progress.elapsed.as_secs_f64(), progress.planned.as_secs_f64());
    let (each_second, rate) = (progress.messages_per_second, unit.rate(language));
    let (in_flight, errors) = (progress.in_flight, progress.errors);
    localized!(
        language,
        "{phase} {elapsed:>5.1}/{planned:.1} s  {each_second:>10.0} {rate}  {in_flight} in flight  {errors} \
         errors{percentiles}{failure}",
        "{phase} {elapsed:>5.1}/{planned:.1}초  {each_second:>10.0} {rate}  처리 중 {in_flight}건  오류 {errors}건{percentiles}{failure}",
        "{phase} {elapsed:>5.1}/{planned:.1} 秒  {each_second:>10.0} {rate}  在途 {in_flight}  错误 {errors}{percentiles}{failure}",
    )
}

#[cfg(test)]
mod tests {
    use weir_record::failure::{FailureCounts, FailureSample};

    use super::*;

    fn report(messages: u64, wrong_status: u64) -> LoadReport {
        let text = "status 500 Internal Server Error instead of 200".into();
        LoadReport {
            messages,
            messages_whole_run: messages,
            failures: FailureCounts { wrong_status, ..FailureCounts::default() },
            error_share: wrong_status as f64 / (messages + wrong_status).max(1) as f64,
            failure_first: (wrong_status > 0).then_some(FailureSample { class: "wrong_status".into(), text }),
            ..LoadReport::default()
        }
    }

    #[test]
    fn a_run_in_which_nothing_came_back_right_did_not_succeed() {
        assert_eq!(objection(&report(1, 9), None, Unit::Response), None);
        let (exit, reason) = objection(&report(0, 9), None, Unit::Response).expect("nothing was right");
        assert_eq!(exit, Exit::RuntimeError);
        assert!(reason.contains("9 wrong status; the first failure: status 500"), "{reason}");
        let silent = objection(&report(0, 0), None, Unit::Message).expect("nothing was right");
        assert!(silent.1.ends_with("failures: none"), "{}", silent.1);
        let tolerant = objection(&report(0, 9), Some(MaxErrors::Percent(100.0)), Unit::Response);
        assert_eq!(tolerant.map(|(exit, _)| exit), Some(Exit::RuntimeError));
    }

    #[test]
    fn more_errors_than_were_allowed_are_a_threshold_that_is_not_met() {
        for (limit, errors, is_met) in [
            (MaxErrors::Count(0), 0, true),
            (MaxErrors::Count(0), 1, false),
            (MaxErrors::Count(5), 5, true),
            (MaxErrors::Percent(1.0), 1, true),
            (MaxErrors::Percent(1.0), 2, false),
            (MaxErrors::Count(5), 100, false),
        ] {
            let outcome = objection(&report(100 - errors, errors), Some(limit), Unit::Response);
            assert_eq!(outcome.as_ref().map(|(exit, _)| *exit), (!is_met).then_some(Exit::Threshold));
            if let Some((_, reason)) = outcome {
                assert!(reason.starts_with(&format!("--max-errors {limit}: {errors} of 100")), "{reason}");
            }
        }
        assert_eq!(conclude(&report(0, 9), Ending::Interrupted, None, Unit::Response), Exit::Interrupted);
    }
}
