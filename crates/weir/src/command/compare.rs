//! `weir compare`: commands that end, held against each other.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    time::SystemTime,
};

use anyhow::{Context, Result};
use weir_compare::{
    asked::Asked,
    machine::Machine,
    run::{CpuSource, RunError, Runner, launcher_words},
    session,
};
use weir_lab::exit::ExitCode;
use weir_record::{
    commands::{COMPARISON_VERSION, CommandComparison, CommandEnd, CommandReport, MeasuredBy},
    goal::ComparisonSpec,
};
use weir_report::Language;

use super::{compare_asked, compare_display::Display, study};
use crate::{
    args::Compare,
    exit::{Exit, UsageError},
    language, output, signals,
};

/// The name of standard output where a file is asked for.
const STANDARD_OUTPUT: &str = "-";

pub(crate) fn run(arguments: &Compare) -> Result<Exit> {
    if arguments.schema {
        output::print(&format!("{}\n", weir_compare::schema()?))?;
        return Ok(Exit::Ok);
    }
    let language = language::chosen(arguments.lang.as_deref())?;
    let seed = arguments.seed.unwrap_or_else(seed_of_clock);
    let asked = compare_asked::comparisons(arguments, seed)?;
    for (flag, file) in exports(arguments) {
        if file != Path::new(STANDARD_OUTPUT) {
            output::can_be_written(file, flag)?;
        }
    }
    let report = compared(arguments, &asked, seed, language)?;
    write(arguments, &report, language)?;
    Ok(Exit::Study(code(arguments, &report, language)))
}

/// Runs every comparison; what is interrupted is the last.
fn compared(arguments: &Compare, asked: &[Asked], seed: u64, language: Language) -> Result<CommandReport> {
    let stop: Arc<AtomicBool> = signals::stop_flag()?;
    let weir = std::env::current_exe().context("cannot find the weir program itself")?;
    let mut runner = Runner::start(&launcher_words(&weir), None)?;
    let measured_by = measured_by(&mut runner)?;
    let mut machine = Machine::new(runner);
    let started_unix_ns = unix_ns();
    let fingerprint = weir_evidence::fingerprint::fingerprint();
    let mut comparisons: Vec<CommandComparison> = Vec::new();
    let mut display = Display::new(language);
    for one in asked {
        let found =
            session::compare(one, &measured_by, &mut machine, &stop, &mut |event| display.show(event));
        let found = found.map_err(|error| match error {
            RunError::File { .. } => UsageError(error.to_string()).into(),
            other => anyhow::Error::from(other),
        })?;
        let is_over = matches!(found.ended, CommandEnd::Interrupted | CommandEnd::Broken);
        comparisons.push(found);
        if is_over {
            break;
        }
    }
    display.end();
    Ok(CommandReport {
        schema_version: COMPARISON_VERSION,
        weir: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ns,
        elapsed_ns: unix_ns().saturating_sub(started_unix_ns),
        seed,
        reproduce: reproduce(arguments, seed),
        settings: asked.first().map(|it| it.settings.clone()).unwrap_or_default(),
        fingerprint,
        measured_by,
        comparisons,
    })
}

/// Where costs come from, and what starting a run costs.
fn measured_by(runner: &mut Runner) -> Result<MeasuredBy> {
    let own = runner.own_cost()?;
    let source = runner.cpu_source();
    let cpu_source = match source {
        CpuSource::GroupSecond => "cgroup-v2",
        CpuSource::GroupFirst => "cgroup-v1",
        CpuSource::Rusage => "rusage",
    };
    let refusals = runner.cpu_refusals().join("; ");
    Ok(MeasuredBy {
        cpu_source: cpu_source.to_owned(),
        cpu_resolution_ns: source.resolution_ns(),
        cpu_source_reason: (source == CpuSource::Rusage).then_some(refusals),
        launch_cpu_ns: Some(own.launch.cpu_ns),
        launch_wall_ns: Some(own.launch.wall_ns),
        charged_cpu_ns: Some(own.cpu_ns_left),
    })
}

fn exports(arguments: &Compare) -> impl Iterator<Item = (&'static str, &PathBuf)> {
    let all = [
        ("--export-json", &arguments.export_json),
        ("--export-markdown", &arguments.export_markdown),
        ("--export-csv", &arguments.export_csv),
    ];
    all.into_iter().filter_map(|(flag, file)| Some((flag, file.as_ref()?)))
}

/// Files first, so that a terminal that went away costs nothing.
fn write(arguments: &Compare, report: &CommandReport, language: Language) -> Result<()> {
    let mut is_printed = false;
    for (flag, file) in exports(arguments) {
        let text = match flag {
            "--export-json" => serde_json::to_string_pretty(report)? + "\n",
            "--export-markdown" => weir_report::commands::markdown(report, language),
            _ => weir_report::commands::csv(report),
        };
        if file == Path::new(STANDARD_OUTPUT) {
            is_printed = true;
            output::print(&text)?;
        } else {
            output::write_whole_or(file, &text, &format!("choose another file with {flag}"))?;
        }
    }
    let screen = weir_report::commands::terminal(report, language);
    // Standard output belongs to whoever reads the export.
    if is_printed {
        output::tell(screen.trim_end());
    } else {
        output::print(&output::fitted(&screen))?;
    }
    Ok(())
}

/// Of several comparisons the gravest code; none decides where one is missing.
fn code(arguments: &Compare, report: &CommandReport, language: Language) -> ExitCode {
    let by_weight = [
        ExitCode::Interrupted,
        ExitCode::RuntimeError,
        ExitCode::NoBaseline,
        ExitCode::Environment,
        ExitCode::Threshold,
        ExitCode::NotComparable,
        ExitCode::Inconclusive,
    ];
    let codes: Vec<ExitCode> = report.comparisons.iter().map(ExitCode::of_commands).collect();
    let code = by_weight.into_iter().find(|code| codes.contains(code)).unwrap_or(ExitCode::Decided);
    let answered = report.comparisons.iter().flat_map(answered);
    study::after_thresholds(answered, arguments.inconclusive_passes, code, language)
}

fn answered(
    comparison: &CommandComparison,
) -> impl Iterator<Item = (&ComparisonSpec, &weir_record::effect::Effect)> {
    comparison.thresholds_asked.iter().zip(&comparison.thresholds.rows)
}

/// The command line again, with the seed.
fn reproduce(arguments: &Compare, seed: u64) -> String {
    let words = std::env::args()
        .skip(1)
        .map(|word| shlex::try_quote(&word).map_or_else(|_| word.clone(), |quoted| quoted.into_owned()));
    let seed = if arguments.seed.is_none() { vec![format!("--seed {seed}")] } else { Vec::new() };
    std::iter::once("weir".to_owned()).chain(words).chain(seed).collect::<Vec<_>>().join(" ")
}

fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// A seed that people can type.
fn seed_of_clock() -> u64 {
    unix_ns() / 1_000 % 1_000_000_000
}
