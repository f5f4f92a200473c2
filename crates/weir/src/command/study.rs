//! `weir study`: plan, run, observe, judge, report.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    time::SystemTime,
};

use anyhow::{Context, Result};
use weir_lab::{
    exit::ExitCode,
    launch::Launcher,
    outline, process,
    run::{self, Callbacks, Ended, Event, Outcome, RunError},
    run_folder,
    stored::StoredRun,
    stored_folders, study_file,
};
use weir_record::{
    effect::Effect,
    goal::{ComparisonSpec, Outcome as GoalOutcome},
    guidance::ObservedProcess,
    machine::{Fingerprint, differences},
    spec::StudySpec,
};
use weir_report::{Language, localized};
use weir_store::{NewStudy, Store, StoreError, StudyHeader};

use super::{
    origin, report, study_about, study_baseline, study_diff,
    study_display::Display,
    study_host::{self, Machines},
    study_hosts,
    study_launcher::{Simulator, StudyLauncher},
    study_plan, study_pool, study_power, study_repeat,
    study_storage::{self, Ready},
};
use crate::{
    args::{Study, StudyTask},
    exit::{Exit, UsageError},
    language, orphans, output, signals,
};

pub(crate) fn run(arguments: &Study) -> Result<Exit> {
    match &arguments.task {
        Some(StudyTask::Diff(diff)) => return study_diff::run(diff),
        Some(StudyTask::Pool(pool)) => return study_pool::run(pool),
        None => {}
    }
    let language = language::chosen(arguments.lang.as_deref())?;
    if arguments.list {
        output::print(&study_about::list(language))?;
        return Ok(Exit::Ok);
    }
    if arguments.print || arguments.dry_run {
        return show(arguments, language);
    }
    if let Some(times) = arguments.repeat {
        return study_repeat::run(arguments, times, language);
    }
    if let Some(file) = &arguments.hosts {
        return study_hosts::run(arguments, file, language);
    }
    let host = Host::here(arguments, language)?;
    let session = match &arguments.resume {
        Some(folder) => host.resumed(arguments, folder)?.map(|outcome| (folder.clone(), outcome)),
        None => {
            let place = |name: &str| match &arguments.out {
                Some(folder) => Place { path: folder.clone(), is_new: false },
                None => Place::new(Path::new(RESULTS), name),
            };
            host.fresh(arguments, &place)?
        }
    };
    let Some((folder, outcome)) = session else { return Ok(Exit::Interrupted) };
    let (ended, hint) = (outcome.ended, outcome.resume_hint(&folder, language));
    let run = host.placed(outcome, &folder);
    if arguments.asked_as.is_some() {
        return Ok(Exit::Study(ExitCode::of_session(ended, &run.result)));
    }
    // Empty tables would only hide how to go on.
    if ended != Ended::Interrupted || run.progress.blocks_done > 0 {
        report::write_pages(&run.result, language, (&folder, &folder))?;
        if arguments.json {
            output::print(&weir_lab::export::summary(&run.result)?)?;
            report::tell_page(&folder.join("report.html"), language);
        } else {
            report::show(&run.result, language, (&folder, arguments.long))?;
        }
    }
    if let Some(hint) = hint {
        output::tell(&hint);
    }
    let code = ExitCode::of_session(ended, &run.result);
    let is_tolerant = arguments.inconclusive_passes;
    Ok(Exit::Study(after_thresholds(run.result.asked(), is_tolerant, code, language)))
}

/// The common state of all sessions of this process.
pub(super) struct Host {
    program: PathBuf,
    observed: Option<ObservedProcess>,
    /// Set when the user interrupts.
    pub(super) interrupt: Arc<AtomicBool>,
    pub(super) language: Language,
}

impl Host {
    pub(super) fn here(arguments: &Study, language: Language) -> Result<Self> {
        let observed = arguments.observed.as_deref().map(report::observed).transpose()?;
        let interrupt = signals::stop_flag()?;
        let program = std::env::current_exe().context("cannot find the weir program itself")?;
        // If the kernel refuses, only the supervisors end orphans.
        let _ = orphans::adopt();
        Ok(Self { program, observed, interrupt, language })
    }

    /// Begins the study in a folder named after it; `None` if the user ended it before it began.
    pub(super) fn fresh(
        &self,
        arguments: &Study,
        place: &dyn Fn(&str) -> Place,
    ) -> Result<Option<(PathBuf, Outcome)>> {
        let written = study_plan::written(arguments)?;
        let asked = study_host::asked(arguments)?;
        let Some(machines) = Machines::find(asked, &self.interrupt, self.language)? else { return Ok(None) };
        let mut study = written.study(arguments, &machines)?;
        study.spec.origin = origin::origin(&arguments.origin, Path::new("."))?;
        check_thresholds(arguments, &study.spec)?;
        announce(arguments, &study, self.language)?;
        let simulator = Simulator::new(&study.spec)?;
        let folder = place(&study.spec.name);
        let outcome = self.begin(arguments, &mut study, &folder, (&machines, simulator));
        if folder.is_new && !matches!(outcome, Ok(Some(_))) {
            // Laid-out data stay, and the folder with them.
            let _ = std::fs::remove_dir(&folder.path);
        }
        Ok(outcome?.map(|outcome| (folder.path, outcome)))
    }

    /// The first session of a study, in its folder.
    fn begin(
        &self,
        arguments: &Study,
        study: &mut NewStudy,
        Place { path, is_new }: &Place,
        (machines, simulator): (&Machines, Simulator),
    ) -> Result<Option<Outcome>> {
        if study_storage::prepare_what_can_be(&mut study.spec, path, &self.interrupt)? == Ready::Interrupted {
            return Ok(None);
        }
        let processes = machines.launcher(&self.program, &study.spec, &self.interrupt)?;
        let Some(processes) = processes else { return Ok(None) };
        study.fingerprint.programs = processes.programs(&study.spec);
        study.fingerprint.program_builds = processes.program_builds(&study.spec);
        study.fingerprint.running = processes.running();
        tell_running(&study.fingerprint, self.language);
        let mut launcher = StudyLauncher::new(processes.in_folder(path.clone()), simulator);
        let fresh = Fresh::look(path, *is_new);
        let outcome = self.session(arguments, machines, &mut launcher, |callbacks| {
            run::start(path, study, callbacks).inspect_err(|error| fresh.clear(path, error))
        })?;
        Ok(Some(outcome))
    }

    /// Resumes the study in a folder.
    fn resumed(&self, arguments: &Study, folder: &Path) -> Result<Option<Outcome>> {
        report::refuse_sweep(folder)?;
        refuse_origin(arguments)?;
        let StudyHeader { spec, fingerprint: began, .. } = Store::open_read_only(folder)?.study()?;
        check_thresholds(arguments, &spec)?;
        let asked = spec.server_host.clone();
        let Some(machines) = Machines::find(asked, &self.interrupt, self.language)? else { return Ok(None) };
        if study_storage::prepare(&spec, folder, &self.interrupt)? == Ready::Interrupted {
            return Ok(None);
        }
        let processes = machines.launcher(&self.program, &spec, &self.interrupt)?;
        let Some(processes) = processes else { return Ok(None) };
        let (programs, program_builds) = (processes.programs(&spec), processes.program_builds(&spec));
        let running = processes.running();
        let here = Fingerprint { programs, program_builds, running, ..machines.fingerprint.clone() };
        study_host::tell_changes(differences(&began, &here), self.language);
        let simulator = Simulator::new(&spec)?;
        let mut launcher = StudyLauncher::new(processes.in_folder(folder.to_path_buf()), simulator);
        let run = |callbacks: Callbacks<'_>| run::resume(folder, &here, callbacks);
        self.session(arguments, &machines, &mut launcher, run).map(Some)
    }

    /// A session with a progress display.
    fn session(
        &self,
        arguments: &Study,
        machines: &Machines,
        launcher: &mut StudyLauncher,
        run: impl FnOnce(Callbacks<'_>) -> Result<Outcome, RunError>,
    ) -> Result<Outcome> {
        let mut display = Display::new(arguments.quiet, self.language);
        let mut progress = |event: &Event| {
            if matches!(event, Event::TrialFinished { .. }) {
                orphans::end_but(machines.transport());
                machines.tell_said(self.language);
            }
            display.show(event);
        };
        let outcome = run(Callbacks { launcher, interrupt: &self.interrupt, progress: &mut progress });
        orphans::end_but(machines.transport());
        machines.tell_said(self.language);
        let outcome = outcome?;
        display.end();
        Ok(outcome)
    }

    /// The run with its additions: an observed process, and earlier runs.
    pub(super) fn placed(&self, outcome: Outcome, folder: &Path) -> StoredRun {
        let mut run = StoredRun { result: outcome.result, progress: outcome.progress };
        report::set_beside(&mut run.result, self.observed.clone());
        stored_folders::set_among(&mut run, folder);
        run
    }
}

/// Reports which processes are taken for the servers that run already.
fn tell_running(here: &Fingerprint, language: Language) {
    for (arm, process) in &here.running {
        let (program, pid) = (&process.program, process.pid.unwrap_or_default());
        let who = process.cgroup.clone().unwrap_or_else(|| format!("{program} ({pid})"));
        output::tell(&localized!(
            language,
            "arm {arm} runs already: the CPU of {who} is read; it is not started, pinned or stopped",
            "비교 대상 {arm}은(는) 이미 실행 중입니다. {who}의 CPU를 읽기만 하며, 시작하거나 CPU에 고정하거나 정지시키지 않습니다",
            "方案 {arm} 已在运行：只读取 {who} 的 CPU，不会启动、绑定或暂停它",
        ));
    }
}

/// Tries the baselines, and reports the request and the expected effects.
fn announce(arguments: &Study, study: &NewStudy, language: Language) -> Result<()> {
    if arguments.baseline.is_some() {
        study_baseline::check(&study.spec)?;
    }
    let StudySpec { name, title, seed, .. } = &study.spec;
    let title = weir_report::localized(title, language);
    output::tell(&localized!(
        language,
        "study {name}: {title} (seed {seed})",
        "실험 {name}: {title} (시드 {seed})",
        "实验 {name}：{title}（随机种子 {seed}）",
    ));
    let takes_ns = outline::study_ns(&study.spec).min(study.spec.time_cap_ns);
    let length = outline::shown_ns(takes_ns, language);
    output::tell(&localized!(language, "it takes about {length}", "약 {length} 걸립니다", "约需 {length}"));
    // A dry run says that nothing is known; a run has more useful messages.
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

/// Refuses settings that a study got when it began, and that cannot change.
fn refuse_origin(arguments: &Study) -> Result<(), UsageError> {
    let Some(flag) = arguments.origin.first() else { return Ok(()) };
    Err(UsageError(localized!(
        language::of_command_line(),
        "{flag} is stored when a study begins, and --resume goes on with one; leave {flag} out",
        "{flag}: 실험을 시작할 때 저장하는 값입니다. --resume은 이미 시작한 실험을 계속하므로 빼십시오",
        "{flag} 在实验开始时保存，而 --resume 继续已开始的实验；请去掉 {flag}",
    )))
}

/// Refuses a flag about thresholds without thresholds.
fn check_thresholds(arguments: &Study, spec: &StudySpec) -> Result<(), UsageError> {
    if arguments.inconclusive_passes && !spec.comparisons.iter().any(|asked| asked.is_threshold) {
        let text = language::of_command_line().choose([
            "--inconclusive-passes: the study has no thresholds; add --fail-if, or leave it out",
            "--inconclusive-passes: 이 실험에는 임계값이 없습니다. --fail-if를 추가하거나 빼십시오",
            "--inconclusive-passes：本实验没有阈值；请加上 --fail-if，或去掉此选项",
        ]);
        return Err(UsageError(text.to_owned()));
    }
    Ok(())
}

/// Reports how many thresholds hold, and passes undecided ones if a flag asks for that.
pub(super) fn after_thresholds<'r>(
    answered: impl Iterator<Item = (&'r ComparisonSpec, &'r Effect)>,
    inconclusive_passes: bool,
    code: ExitCode,
    language: Language,
) -> ExitCode {
    let outcomes: Vec<GoalOutcome> =
        answered.filter(|(asked, _)| asked.is_threshold).filter_map(|(_, row)| row.outcome).collect();
    let of = |outcome| outcomes.iter().filter(|own| **own == outcome).count();
    let (met, missed, open) = (of(GoalOutcome::Met), of(GoalOutcome::Missed), of(GoalOutcome::Open));
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

/// Prints the file of a study, or its plan here, and runs nothing.
fn show(arguments: &Study, language: Language) -> Result<Exit> {
    let written = study_plan::written(arguments)?;
    if arguments.print {
        output::print(&written.text)?;
        return Ok(Exit::Ok);
    }
    let asked = study_host::asked(arguments)?;
    let interrupt = signals::stop_flag()?;
    let Some(machines) = Machines::find(asked, &interrupt, language)? else { return Ok(Exit::Interrupted) };
    let study = written.study(arguments, &machines)?;
    check_thresholds(arguments, &study.spec)?;
    let earlier = arguments.earlier.as_deref();
    let expected = study_power::lines(&study.spec, &study.fingerprint, earlier, language)?;
    let mut missing_arms = study.missing_arms;
    // Missing programs are reported now, and not when the study should run.
    let program = std::env::current_exe().context("cannot find the weir program itself")?;
    let processes = machines.launcher(&program, &study.spec, &interrupt)?;
    let Some(processes) = processes else { return Ok(Exit::Interrupted) };
    missing_arms.extend(processes.missing(&study.spec));
    let study = study_file::Study { spec: study.spec, missing_arms };
    let running = outline::running(&processes.looked_for(), language);
    output::print(&format!("{}{running}{}\n", outline::text(&study, language), expected.join("\n")))?;
    Ok(Exit::Ok)
}

/// The state that a study that never began must restore.
struct Fresh {
    had_folder: bool,
    had_store: bool,
}

impl Fresh {
    fn look(folder: &Path, is_new: bool) -> Self {
        Self {
            had_folder: folder.exists() && !is_new,
            had_store: folder.join(weir_store::FILE_NAME).exists(),
        }
    }

    /// Removes a store without a block, and the folder if it is ours and empty.
    fn clear(&self, folder: &Path, error: &RunError) {
        let is_another = matches!(error, RunError::Busy { .. })
            || matches!(error, RunError::Store { source: StoreError::Exists { .. }, .. });
        if self.had_store || is_another {
            return;
        }
        // The process with the lock may have made the store, or be about to.
        let Ok(_lock) = run::lock(folder) else { return };
        if has_trials(folder) {
            return;
        }
        for suffix in ["", "-wal", "-shm"] {
            // A store that cannot be removed was perhaps never made.
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

/// Most runs of a study that begin within one second.
const SAME_SECOND_MAX: u32 = 100;

/// Default folder in which studies are stored and looked for.
pub(super) const RESULTS: &str = "weir-results";

/// The folder of a run.
pub(super) struct Place {
    pub(super) path: PathBuf,
    /// Whether the folder was made for this run.
    is_new: bool,
}

impl Place {
    /// Makes a folder `NAME-YYYYMMDD-HHMMSS`, in UTC, in `parent`. Runs that begin within one second, in this process
    /// or in others, get a number at the end.
    pub(super) fn new(parent: &Path, name: &str) -> Self {
        let name = run_folder::name(name, seconds_now());
        let further = (2..=SAME_SECOND_MAX).map(|number| format!("{name}-{number}"));
        // If the folder cannot be made, the store reports why.
        let _ = std::fs::create_dir_all(parent);
        for name in std::iter::once(name.clone()).chain(further) {
            let path = parent.join(name);
            match std::fs::create_dir(&path) {
                Ok(()) => return Self { path, is_new: true },
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(_) => break,
            }
        }
        Self { path: parent.join(name), is_new: false }
    }
}

/// Seconds since 1970.
pub(super) fn seconds_now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}
