//! `weir compare`: commands that end, held against each other.

use std::{
    os::fd::AsFd,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    time::SystemTime,
};

use anyhow::{Context, Result};
use rustix::{
    fs::{FileType, SeekFrom, fstat, seek},
    io::ioctl_fionread,
};
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
use weir_report::{Language, localized};

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
            has_folder(file, flag, language)?;
            output::can_be_written(file, flag)?;
        }
    }
    if arguments.input.is_none() && holds_bytes(std::io::stdin()) {
        output::tell(language.choose([
            "note: standard input is not passed on to the commands; use --input FILE",
            "참고: 표준 입력은 명령에 전달되지 않습니다. --input FILE을 쓰십시오",
            "提示：标准输入不会传给命令；请用 --input FILE",
        ]));
    }
    let report = compared(arguments, &asked, seed, language)?;
    write(arguments, &report, language)?;
    Ok(Exit::Study(code(arguments, &report, language)))
}

/// Whether a file or a pipe has something to read. It is looked at and never read.
fn holds_bytes(input: impl AsFd) -> bool {
    let Ok(found) = fstat(&input) else { return false };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => {
            let size = u64::try_from(found.st_size).unwrap_or_default();
            seek(&input, SeekFrom::Current(0)).is_ok_and(|at| at < size)
        }
        FileType::Fifo => ioctl_fionread(&input).is_ok_and(|bytes| bytes > 0),
        _ => false,
    }
}

/// A folder that is not there is a mistake of whoever named it.
fn has_folder(file: &Path, flag: &str, language: Language) -> Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let Some(folder) = folder.filter(|folder| !folder.exists()) else { return Ok(()) };
    let folder = folder.display();
    Err(UsageError(localized!(
        language,
        "{flag}: the folder {folder} does not exist; make it, or name another file",
        "{flag}: {folder} 폴더가 없습니다. 만들거나 다른 파일을 쓰십시오",
        "{flag}：文件夹 {folder} 不存在；请创建它，或写另一个文件",
    ))
    .into())
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

#[cfg(test)]
mod tests {
    use std::{fs::File, io::Write};

    use super::*;

    #[test]
    fn a_file_or_pipe_with_something_to_read_is_seen_and_not_read() {
        let (reader, mut writer) = std::io::pipe().expect("there are pipes");
        assert!(!holds_bytes(&reader));
        writer.write_all(b"x").expect("it takes a byte");
        assert!(holds_bytes(&reader) && holds_bytes(&reader), "the byte is still there");
        let name = format!("weir-compare-input-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, "").expect("a file can be written");
        assert!(!holds_bytes(File::open(&path).expect("it is there")));
        std::fs::write(&path, "words").expect("a file can be written");
        assert!(holds_bytes(File::open(&path).expect("it is there")));
        std::fs::remove_file(&path).expect("it can be removed");
        assert!(!holds_bytes(File::open("/dev/null").expect("it is there")));
    }
}
