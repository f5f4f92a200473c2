//! `weir compare`: comparison of commands that end, or of servers under a load.

use std::{
    ffi::{OsStr, OsString},
    os::{fd::AsFd, unix::ffi::OsStrExt},
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
    servers::House,
    session,
};
use weir_lab::exit::ExitCode;
use weir_record::{
    commands::{COMPARISON_VERSION, CommandComparison, CommandEnd, CommandReport, MeasuredBy},
    goal::ComparisonSpec,
    origin::Origin,
};
use weir_report::{Language, localized};

use super::{compare_asked, compare_display::Display, compare_store, origin, study};
use crate::{
    args::Compare,
    exit::{Exit, UsageError},
    language, orphans, output, signals,
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
    if let Some(folder) = &arguments.out {
        compare_store::prepare(folder)?;
    }
    let origin = origin::origin(&arguments.origin, arguments.dir.as_deref().unwrap_or(Path::new(".")))?;
    if arguments.input.is_none() && arguments.serve.is_empty() && holds_bytes(std::io::stdin()) {
        output::tell(language.choose([
            "note: standard input is not passed on to the commands; use --input FILE",
            "참고: 표준 입력은 명령에 전달하지 않습니다. --input FILE을 쓰십시오",
            "提示：标准输入不会传给命令；请用 --input FILE",
        ]));
    }
    let report = CommandReport { origin, ..compared(arguments, &asked, seed, language)? };
    write(arguments, &report, language)?;
    Ok(Exit::Study(code(arguments, &report, language)))
}

/// Whether a file or a pipe has input. It is checked and never read.
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

/// A missing folder is a mistake of the command line.
fn has_folder(file: &Path, flag: &str, language: Language) -> Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let Some(folder) = folder.filter(|folder| !folder.exists()) else { return Ok(()) };
    let folder = folder.display();
    Err(UsageError(localized!(
        language,
        "{flag}: the folder {folder} does not exist; make it, or name another file",
        "{flag}: {folder} 폴더가 없습니다. 폴더를 만들거나 다른 파일을 지정하십시오",
        "{flag}：文件夹 {folder} 不存在；请创建它，或指定另一个文件",
    ))
    .into())
}

/// Runs every comparison; an interrupted one is the last.
fn compared(arguments: &Compare, asked: &[Asked], seed: u64, language: Language) -> Result<CommandReport> {
    let stop: Arc<AtomicBool> = signals::stop_flag()?;
    let reproduce = reproduced(std::env::args_os().skip(1), arguments.seed.is_none().then_some(seed));
    // Otherwise processes of a killed launcher would run on below the system's first process.
    let _ = orphans::adopt();
    let weir = std::env::current_exe().context("cannot find the weir program itself")?;
    let launcher_words = launcher_words(&weir);
    let mut runner = Runner::start(&launcher_words, None)?;
    let measured_by = measured_by(&mut runner, asked)?;
    let house = House::new(launcher_words, runner.cpu_source());
    let mut machine = Machine::new(runner).with_servers(house);
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
    weir_judge::commands::correct_together(&mut comparisons);
    display.end();
    // The launcher ends first, so that no child is still needed.
    drop(machine);
    orphans::end();
    Ok(CommandReport {
        schema_version: COMPARISON_VERSION,
        weir: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ns,
        elapsed_ns: unix_ns().saturating_sub(started_unix_ns),
        seed,
        reproduce,
        settings: asked.first().map(|it| it.settings.clone()).unwrap_or_default(),
        fingerprint,
        measured_by,
        comparisons,
        origin: Origin::default(),
    })
}

/// The source of costs, and the cost of starting a run.
fn measured_by(runner: &mut Runner, asked: &[Asked]) -> Result<MeasuredBy> {
    // A server is measured after its start.
    let (is_served, has_starts) =
        (asked.iter().any(|it| it.servers.is_some()), asked.iter().any(|it| it.servers.is_none()));
    let own = if has_starts { Some(runner.own_cost()?) } else { None };
    let source = runner.cpu_source();
    let cpu_source = match source {
        CpuSource::GroupSecond => "cgroup-v2",
        CpuSource::GroupFirst => "cgroup-v1",
        CpuSource::Rusage => "rusage",
    };
    let refusals = runner.cpu_refusals().join("; ");
    Ok(MeasuredBy {
        cpu_source: cpu_source.to_owned(),
        cpu_resolution_ns: if is_served { source.resolution_of_servers_ns() } else { source.resolution_ns() },
        cpu_source_reason: (source == CpuSource::Rusage).then_some(refusals),
        launch_cpu_ns: own.map(|own| own.launch.cpu_ns),
        launch_wall_ns: own.map(|own| own.launch.wall_ns),
        charged_cpu_ns: own.and_then(|own| own.charged_cpu_ns.is_none().then_some(own.cpu_ns_left)),
        subtracted_cpu_ns: own.and_then(|own| own.charged_cpu_ns),
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

/// Writes files first, so that a terminal that went away costs nothing. If an output cannot be written, the others are
/// written all the same, and the command fails afterwards.
fn write(arguments: &Compare, report: &CommandReport, language: Language) -> Result<()> {
    let written = exports(arguments).map(|(flag, file)| write_export(flag, file, report, language));
    let stored = arguments.out.iter().map(|folder| compare_store::store(folder, report, language));
    let mut errors = written.chain(stored).filter_map(Result::err).collect::<Vec<_>>().into_iter();
    let screen = weir_report::commands::terminal(report, language);
    // Standard output belongs to the export.
    if exports(arguments).any(|(_, file)| file == Path::new(STANDARD_OUTPUT)) {
        output::tell(screen.trim_end());
    } else {
        output::print(&output::fitted(&screen))?;
    }
    let Some(first) = errors.next() else { return Ok(()) };
    errors.for_each(|error| output::tell(&format!("{error:#}")));
    Err(first)
}

fn write_export(flag: &str, file: &Path, report: &CommandReport, language: Language) -> Result<()> {
    let text = match flag {
        "--export-json" => serde_json::to_string_pretty(report)? + "\n",
        "--export-markdown" => weir_report::commands::markdown(report, language),
        _ => weir_report::commands::csv(report),
    };
    if file == Path::new(STANDARD_OUTPUT) {
        output::print(&text)
    } else {
        output::write_whole_or(file, &text, &format!("choose another file with {flag}"))
    }
}

/// The most serious code of several comparisons; if one is missing, none decides.
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

/// The command line again. A generated seed stands right after `compare`, because a `--` may follow.
fn reproduced(words: impl Iterator<Item = OsString>, seed: Option<u64>) -> String {
    let mut line = vec!["weir".to_owned()];
    let mut seed = seed;
    for word in words {
        line.push(quoted(&word));
        if word == "compare" {
            line.extend(seed.take().map(|seed| format!("--seed {seed}")));
        }
    }
    line.join(" ")
}

/// A word as a shell reads it. Text that is not UTF-8 is written as bytes, as bash, zsh and ksh read them.
fn quoted(word: &OsStr) -> String {
    let text = word.to_str().and_then(|text| shlex::try_quote(text).ok());
    text.map_or_else(
        || {
            let bytes = word.as_bytes().iter().map(|byte| match byte {
                b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
                b' '..=b'~' => char::from(*byte).to_string(),
                _ => format!("\\{byte:03o}"),
            });
            format!("$'{}'", bytes.collect::<String>())
        },
        |text| text.into_owned(),
    )
}

fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// A seed that is short enough to type.
fn seed_of_clock() -> u64 {
    unix_ns() / 1_000 % 1_000_000_000
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io::Write, os::unix::ffi::OsStringExt};

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

    #[test]
    fn the_command_line_comes_again_with_words_that_are_no_text_and_the_seed_before_the_commands() {
        let line = |words: &[&[u8]], seed| {
            reproduced(words.iter().map(|word| OsString::from_vec(word.to_vec())), seed)
        };
        let words: &[&[u8]] = &[b"compare", b"--dir", b"a\xff'\\1", b"--", b"sort x", b"compare"];
        assert_eq!(line(words, Some(7)), r"weir compare --seed 7 --dir $'a\377\'\\1' -- 'sort x' compare");
        assert_eq!(line(&[b"compare", b"--seed", b"7", b"a"], None), "weir compare --seed 7 a");
    }
}
