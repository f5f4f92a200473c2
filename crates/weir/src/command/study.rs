//! `weir study`: plan, run, observe, judge, report.

use std::{
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context, Result};
use weir_lab::{
    exit::ExitCode,
    outline,
    process::{self, Deadlines, ProcessLauncher},
    run::{self, Callbacks, Ended, Event, RunError},
    run_folder, study_file,
};
use weir_record::{
    goal::{Answer, Outcome},
    machine::{Fingerprint, differences},
    spec::StudySpec,
};
use weir_report::{Language, localized};
use weir_store::{NewStudy, Store, StoreError, StudyHeader};

use super::{
    report, study_baseline, study_compare,
    study_display::Display,
    study_launcher::StudyLauncher,
    study_plan, study_power,
    study_storage::{self, Ready},
};
use crate::{
    args::{Study, StudyTask},
    exit::{Exit, UsageError},
    language, orphans, output, signals,
};

pub(crate) fn run(arguments: &Study) -> Result<Exit> {
    if let Some(StudyTask::Compare(compare)) = &arguments.task {
        return study_compare::run(compare);
    }
    let language = language::chosen(arguments.lang.as_deref())?;
    if arguments.print || arguments.dry_run {
        return show(arguments, language);
    }
    let observed = arguments.observed.as_deref().map(report::observed).transpose()?;
    let interrupt = signals::stop_flag()?;
    let fingerprint = weir_evidence::fingerprint::fingerprint();
    let program = std::env::current_exe().context("cannot find the weir program itself")?;
    let mut display = Display::new(arguments.quiet, language);
    // Where the kernel refuses, the supervisors alone see to it.
    let _ = orphans::adopt();
    let mut progress = |event: &Event| {
        if matches!(event, Event::TrialFinished { .. }) {
            orphans::end();
        }
        display.show(event);
    };
    let session = if let Some(folder) = &arguments.resume {
        report::refuse_sweep(folder)?;
        let StudyHeader { spec, fingerprint: began, .. } = Store::open_read_only(folder)?.study()?;
        check_thresholds(arguments, &spec)?;
        if study_storage::prepare(&spec, folder, &interrupt)? == Ready::Interrupted {
            return Ok(Exit::Interrupted);
        }
        let processes = ProcessLauncher::new(program, &spec, Deadlines::default());
        let (programs, program_builds) = (processes.programs(&spec), processes.program_builds(&spec));
        let here = Fingerprint { programs, program_builds, ..fingerprint };
        tell_changes(&began, &here, language);
        let mut launcher = StudyLauncher::new(processes.in_folder(folder.clone()), &spec)?;
        let callbacks = Callbacks { launcher: &mut launcher, interrupt: &interrupt, progress: &mut progress };
        run::resume(folder, &here, callbacks).map(|outcome| (folder.clone(), outcome))
    } else {
        let mut study = study_plan::written(arguments)?.study(arguments, fingerprint)?;
        check_thresholds(arguments, &study.spec)?;
        announce(arguments, &study, language)?;
        let folder = arguments.out.clone().unwrap_or_else(|| default_folder(&study.spec.name));
        if study_storage::prepare_what_can_be(&mut study.spec, &folder, &interrupt)? == Ready::Interrupted {
            return Ok(Exit::Interrupted);
        }
        let processes = ProcessLauncher::new(program, &study.spec, Deadlines::default());
        study.fingerprint.programs = processes.programs(&study.spec);
        study.fingerprint.program_builds = processes.program_builds(&study.spec);
        let mut launcher = StudyLauncher::new(processes.in_folder(folder.clone()), &study.spec)?;
        let callbacks = Callbacks { launcher: &mut launcher, interrupt: &interrupt, progress: &mut progress };
        let fresh = Fresh::look(&folder);
        let outcome = run::start(&folder, &study, callbacks).inspect_err(|error| fresh.clear(&folder, error));
        outcome.map(|outcome| (folder, outcome))
    };
    orphans::end();
    let (folder, mut outcome) = session?;
    display.end();
    report::set_beside(&mut outcome.result, observed);
    // Tables of nothing would only hide how it goes on.
    if outcome.ended != Ended::Interrupted || outcome.progress.blocks_done > 0 {
        report::write(&outcome.result, language, &folder)?;
    }
    if let Some(resume_hint) = outcome.resume_hint(&folder, language) {
        output::tell(&resume_hint);
    }
    let code = ExitCode::of_session(outcome.ended, &outcome.result);
    let is_tolerant = arguments.inconclusive_passes;
    Ok(Exit::Study(after_thresholds(&outcome.result.answers, is_tolerant, code, language)))
}

/// Says what of the machine is no longer as it was when the study began.
fn tell_changes(began: &Fingerprint, here: &Fingerprint, language: Language) {
    for it in differences(began, here) {
        let (name, then, now) = (it.name, it.one, it.other);
        output::tell(&localized!(
            language,
            "changed since the study began: {name}, {then} then, {now} now",
            "연구를 시작한 뒤 바뀐 것: {name}, 그때 {then}, 지금 {now}",
            "研究开始后有变化：{name}，当时 {then}，现在 {now}",
        ));
    }
}

/// Tries what is compared with, and says what is asked and what can be expected.
fn announce(arguments: &Study, study: &NewStudy, language: Language) -> Result<()> {
    if arguments.baseline.is_some() {
        study_baseline::check(&study.spec)?;
    }
    let StudySpec { name, title, seed, .. } = &study.spec;
    let title = weir_report::localized(title, language);
    output::tell(&localized!(
        language,
        "study {name}: {title} (seed {seed})",
        "연구 {name}: {title} (시드 {seed})",
        "研究 {name}：{title}（随机种子 {seed}）",
    ));
    let takes_ns = outline::study_ns(&study.spec).min(study.spec.time_cap_ns);
    let length = outline::shown_ns(takes_ns, language);
    output::tell(&localized!(language, "it takes about {length}", "약 {length} 걸립니다", "约需 {length}"));
    // A dry run says that nothing is known; a run has better things to say.
    if let Some(earlier) = arguments.earlier.as_deref() {
        for line in study_power::lines(&study.spec, &study.fingerprint, Some(earlier), language)? {
            output::tell(&line);
        }
    }
    if let Some(orders) = study.spec.cells.first().and_then(|cell| cell.orders.as_ref()) {
        let driver = &orders.exchange_driver;
        output::tell(&localized!(
            language,
            "the exchange of every trial runs on {driver}",
            "모든 시행의 거래소 드라이버: {driver}",
            "每次试验的交易所均使用 {driver}",
        ));
    }
    Ok(())
}

/// Refuses a flag about thresholds where there are none.
fn check_thresholds(arguments: &Study, spec: &StudySpec) -> Result<(), UsageError> {
    if arguments.inconclusive_passes && !spec.comparisons.iter().any(|asked| asked.is_threshold) {
        let text = language::of_command_line().choose([
            "--inconclusive-passes: the study has no thresholds; add --fail-if, or leave it out",
            "--inconclusive-passes: 이 연구에는 임계값이 없습니다. --fail-if를 더하거나 빼십시오",
            "--inconclusive-passes：本研究没有阈值；请加上 --fail-if，或去掉此选项",
        ]);
        return Err(UsageError(text.to_owned()));
    }
    Ok(())
}

/// Says how many thresholds hold, and lets those pass of which nothing is known where that was asked for.
pub(super) fn after_thresholds(
    answers: &[Answer],
    inconclusive_passes: bool,
    code: ExitCode,
    language: Language,
) -> ExitCode {
    let of = |outcome| {
        let thresholds = answers.iter().filter(|answer| answer.asked.is_threshold);
        thresholds.filter(|answer| answer.outcome == Some(outcome)).count()
    };
    let (met, missed, open) = (of(Outcome::Met), of(Outcome::Missed), of(Outcome::Open));
    if met + missed + open > 0 {
        output::tell(&localized!(
            language,
            "thresholds: {met} met, {missed} missed, {open} open",
            "임계값: 충족 {met}건, 위반 {missed}건, 미정 {open}건",
            "阈值：满足 {met} 项，不满足 {missed} 项，未定 {open} 项",
        ));
    }
    let passes = inconclusive_passes && code == ExitCode::Inconclusive;
    if passes { ExitCode::Decided } else { code }
}

/// Prints the file of a study, or what it comes to here, and runs nothing.
fn show(arguments: &Study, language: Language) -> Result<Exit> {
    let written = study_plan::written(arguments)?;
    if arguments.print {
        output::print(&written.text)?;
        return Ok(Exit::Ok);
    }
    let study = written.study(arguments, weir_evidence::fingerprint::fingerprint())?;
    check_thresholds(arguments, &study.spec)?;
    let earlier = arguments.earlier.as_deref();
    let expected = study_power::lines(&study.spec, &study.fingerprint, earlier, language)?;
    let study = study_file::Study { spec: study.spec, missing_arms: study.missing_arms };
    output::print(&format!("{}{}\n", outline::text(&study, language), expected.join("\n")))?;
    Ok(Exit::Ok)
}

/// What a study that never began must leave as it was.
struct Fresh {
    had_folder: bool,
    had_store: bool,
}

impl Fresh {
    fn look(folder: &Path) -> Self {
        Self { had_folder: folder.exists(), had_store: folder.join(weir_store::FILE_NAME).exists() }
    }

    /// Removes a store without a block, and the folder if it is ours and empty.
    fn clear(&self, folder: &Path, error: &RunError) {
        let is_another = matches!(error, RunError::Busy { .. })
            || matches!(error, RunError::Store { source: StoreError::Exists { .. }, .. });
        if self.had_store || is_another {
            return;
        }
        // Whoever has the lock may have made the store, or be about to.
        let Ok(_lock) = run::lock(folder) else { return };
        if has_trials(folder) {
            return;
        }
        for suffix in ["", "-wal", "-shm"] {
            // What cannot be removed was perhaps never made.
            let _ = std::fs::remove_file(folder.join(format!("{}{suffix}", weir_store::FILE_NAME)));
        }
        if !self.had_folder {
            for name in process::FOLDERS {
                let _ = std::fs::remove_dir_all(folder.join(name));
            }
            let _ = std::fs::remove_dir(folder);
        }
    }
}

fn has_trials(folder: &Path) -> bool {
    Store::open_read_only(folder).and_then(|store| store.blocks()).is_ok_and(|blocks| !blocks.is_empty())
}

/// Where studies are stored, and looked for, unless told otherwise.
pub(super) const RESULTS: &str = "weir-results";

/// `weir-results/NAME-YYYYMMDD-HHMMSS`, in UTC.
fn default_folder(name: &str) -> PathBuf {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    PathBuf::from(RESULTS).join(run_folder::name(name, since.as_secs()))
}
