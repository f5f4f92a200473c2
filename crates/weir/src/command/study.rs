//! `weir study`: plan, run, observe, judge, report.

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use weir_judge::judge::RunningEstimate;
use weir_lab::{
    exit::ExitCode,
    file, outline,
    process::{self, Deadlines, ProcessLauncher},
    run::{self, Callbacks, Ended, Event, RunError},
    run_folder,
};
use weir_record::{
    finding::Finding,
    goal::{Answer, Outcome},
    machine::{Fingerprint, differences},
    spec::StudySpec,
};
use weir_store::{NewStudy, Store, StoreError, StudyHeader};

use super::{
    report, study_baseline, study_compare,
    study_launcher::StudyLauncher,
    study_plan, study_power,
    study_storage::{self, Ready},
};
use crate::{
    args::{Study, StudyTask},
    exit::{Exit, UsageError},
    orphans, output, signals,
};

pub(crate) fn run(arguments: &Study) -> Result<Exit> {
    if let Some(StudyTask::Compare(compare)) = &arguments.task {
        return study_compare::run(compare);
    }
    let language = report::language(arguments.lang.as_deref())?;
    if arguments.print || arguments.dry_run {
        return show(arguments);
    }
    let observed = arguments.observed.as_deref().map(report::observed).transpose()?;
    let interrupt = signals::stop_flag()?;
    let fingerprint = weir_evidence::fingerprint::fingerprint();
    let program = std::env::current_exe().context("cannot find the weir program itself")?;
    let mut display = Display::new(arguments.quiet);
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
        let here = Fingerprint { programs: processes.programs(&spec), ..fingerprint };
        for it in differences(&began, &here) {
            output::tell(&format!(
                "changed since the study began: {}, {} then, {} now",
                it.name, it.one, it.other
            ));
        }
        let mut launcher = StudyLauncher::new(processes.in_folder(folder.clone()), &spec)?;
        let callbacks = Callbacks { launcher: &mut launcher, interrupt: &interrupt, progress: &mut progress };
        run::resume(folder, &here, callbacks).map(|outcome| (folder.clone(), outcome))
    } else {
        let mut study = study_plan::written(arguments)?.study(arguments, fingerprint)?;
        check_thresholds(arguments, &study.spec)?;
        announce(arguments, &study)?;
        let folder = arguments.out.clone().unwrap_or_else(|| default_folder(&study.spec.name));
        if study_storage::prepare_what_can_be(&mut study.spec, &folder, &interrupt)? == Ready::Interrupted {
            return Ok(Exit::Interrupted);
        }
        let processes = ProcessLauncher::new(program, &study.spec, Deadlines::default());
        study.fingerprint.programs = processes.programs(&study.spec);
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
    if let Some(way_on) = outcome.way_on(&folder) {
        output::tell(&way_on);
    }
    let code = ExitCode::of_session(outcome.ended, &outcome.result);
    Ok(Exit::Study(after_thresholds(&outcome.result.answers, arguments.inconclusive_passes, code)))
}

/// Tries what is compared with, and says what is asked and what can be expected.
fn announce(arguments: &Study, study: &NewStudy) -> Result<()> {
    if arguments.baseline.is_some() {
        study_baseline::check(&study.spec)?;
    }
    let StudySpec { name, title, seed, .. } = &study.spec;
    output::tell(&format!("study {name}: {} (seed {seed})", title.en));
    let takes_ns = outline::study_ns(&study.spec).min(study.spec.time_cap_ns);
    output::tell(&format!("it takes about {}", outline::shown_ns(takes_ns)));
    // A dry run says that nothing is known; a run has better things to say.
    if let Some(earlier) = arguments.earlier.as_deref() {
        for line in study_power::lines(&study.spec, &study.fingerprint, Some(earlier))? {
            output::tell(&line);
        }
    }
    if let Some(orders) = study.spec.cells.first().and_then(|cell| cell.orders.as_ref()) {
        output::tell(&format!("the exchange of every trial runs on {}", orders.exchange_driver));
    }
    Ok(())
}

/// Refuses a flag about thresholds where there are none.
fn check_thresholds(arguments: &Study, spec: &StudySpec) -> Result<(), UsageError> {
    if arguments.inconclusive_passes && !spec.comparisons.iter().any(|asked| asked.is_threshold) {
        let text = "--inconclusive-passes: the study has no thresholds; add --fail-if, or leave it out";
        return Err(UsageError(text.to_owned()));
    }
    Ok(())
}

/// Says how many thresholds hold, and lets those pass of which nothing is known where that was asked for.
pub(super) fn after_thresholds(answers: &[Answer], inconclusive_passes: bool, code: ExitCode) -> ExitCode {
    let of = |outcome| {
        let thresholds = answers.iter().filter(|answer| answer.asked.is_threshold);
        thresholds.filter(|answer| answer.outcome == Some(outcome)).count()
    };
    let (met, missed, open) = (of(Outcome::Met), of(Outcome::Missed), of(Outcome::Open));
    if met + missed + open > 0 {
        output::tell(&format!("thresholds: {met} met, {missed} missed, {open} open"));
    }
    let passes = inconclusive_passes && code == ExitCode::Inconclusive;
    if passes { ExitCode::Decided } else { code }
}

/// Prints the file of a study, or what it comes to here, and runs nothing.
fn show(arguments: &Study) -> Result<Exit> {
    let written = study_plan::written(arguments)?;
    if arguments.print {
        output::print(&written.text)?;
        return Ok(Exit::Ok);
    }
    let study = written.study(arguments, weir_evidence::fingerprint::fingerprint())?;
    check_thresholds(arguments, &study.spec)?;
    let expected = study_power::lines(&study.spec, &study.fingerprint, arguments.earlier.as_deref())?;
    let study = file::Study { spec: study.spec, missing_arms: study.missing_arms };
    output::print(&format!("{}{}\n", outline::text(&study, told), expected.join("\n")))?;
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
        if self.had_store || is_another || has_trials(folder) {
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

/// Progress on standard error: a bar on a terminal, a line for each block elsewhere, and one for each tenth of the
/// study. It draws only when something happens, never during a measured window.
struct Display {
    bar: Option<ProgressBar>,
    /// What was found so far; the bar then says this, and no longer what runs.
    estimate: Option<String>,
    /// Tenths of the study that were told.
    tenths: u32,
    quiet: bool,
    began: std::time::Instant,
}

impl Display {
    fn new(quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(0);
            let style = ProgressStyle::with_template(BAR);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self { bar, estimate: None, tenths: 0, quiet, began: std::time::Instant::now() }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None if !self.quiet => output::tell(&format!("{:>5} s  {text}", self.began.elapsed().as_secs())),
            None => {}
        }
    }

    fn show(&mut self, event: &Event) {
        match event {
            Event::Started { blocks_done, blocks, left_ns } => {
                self.tenths = tenths(*blocks_done, *blocks);
                if let Some(bar) = &self.bar {
                    bar.set_length((*blocks).into());
                    bar.set_position((*blocks_done).into());
                    bar.set_prefix(left(*left_ns));
                }
                self.line(&format!("{blocks_done} of {blocks} blocks are done{}", left(*left_ns)));
            }
            Event::TrialStarted { cell_id, arm, .. } => {
                if let Some(bar) = self.bar.as_ref().filter(|_| self.estimate.is_none()) {
                    bar.set_message(format!("{cell_id}: {arm}"));
                }
            }
            Event::SoFar { estimate } => {
                let told = estimated(estimate);
                if let Some(bar) = &self.bar {
                    bar.set_message(told.clone());
                }
                self.estimate = Some(told);
            }
            Event::TrialFinished { .. } => {}
            Event::BlockStored { cell_id, block, attempt, blocks_done, blocks, left_ns } => {
                if let Some(bar) = &self.bar {
                    bar.set_position((*blocks_done).into());
                    bar.set_prefix(left(*left_ns));
                } else {
                    let again =
                        if *attempt > 0 { format!(", attempt {}", attempt + 1) } else { String::new() };
                    self.line(&format!("{blocks_done}/{blocks} blocks: {cell_id} block {block}{again}"));
                    self.tenth(tenths(*blocks_done, *blocks), *left_ns);
                }
            }
            Event::RateFixed { cell_id, rate_per_second } => {
                self.line(&format!("{cell_id}: the rate is {rate_per_second:.0} a second"));
            }
            Event::WaitingForNear { blocks } => {
                self.line(&format!("{blocks} blocks wait for the machine's near state"));
            }
            Event::ArmMissing { arm } => {
                self.line(&format!("arm {} is missing: {}", arm.name, told(&arm.reason)))
            }
        }
    }

    /// Where no bar says it: how far the study is, each time a tenth more of it is done.
    fn tenth(&mut self, tenths: u32, left_ns: u64) {
        if tenths > self.tenths {
            self.tenths = tenths;
            let estimate = self.estimate.as_ref().map_or_else(String::new, |told| format!("; {told}"));
            self.line(&format!("{}0 % of the blocks are done{}{estimate}", tenths, left(left_ns)));
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// What the bar of a terminal has.
const BAR: &str = "{elapsed_precise} [{bar:16}] {pos}/{len}{prefix}  {wide_msg}";

/// Behind how many blocks are done.
fn left(left_ns: u64) -> String {
    if left_ns == 0 { String::new() } else { format!(", about {} left", outline::shown_ns(left_ns)) }
}

fn tenths(blocks_done: u32, blocks: u32) -> u32 {
    u32::try_from(10 * u64::from(blocks_done) / u64::from(blocks.max(1))).unwrap_or(10)
}

/// `uring/epoll 0.81 [0.79, 0.83] near provisional`.
fn estimated(estimate: &RunningEstimate) -> String {
    let RunningEstimate { arm, baseline, ratio, interval: (low, high), is_far, .. } = estimate;
    let state = is_far.map_or("", |is_far| if is_far { " far" } else { " near" });
    format!("{arm}/{baseline} {ratio:.2} [{low:.2}, {high:.2}]{state} provisional")
}

/// What a command line says, in its language.
fn told(finding: &Finding) -> String {
    weir_report::finding(finding, weir_report::Language::English)
}
