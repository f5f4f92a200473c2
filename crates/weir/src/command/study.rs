//! `weir study`: plan, run, observe, judge, report.

use std::{
    collections::BTreeMap,
    io::IsTerminal,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::SystemTime,
};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use weir_engine::{Config, Driver};
use weir_evidence::placement::{self, Topology};
use weir_judge::judge::RunningEstimate;
use weir_lab::{
    exit::ExitCode,
    file::{self, Surroundings},
    gateway, http,
    process::{self, Deadlines, ProcessLauncher},
    quick::{self, Availability},
    run::{self, Ended, Event, Hands, RunError},
    storage, survey,
    ways::DriverFound,
};
use weir_record::{
    machine::Fingerprint,
    spec::{StudySpec, Subject},
    study::MissingArm,
};
use weir_store::{NewStudy, Store, StoreError};

use super::{
    engine, polling, report,
    study_storage::{self, Ready},
};
use crate::{
    args::Study,
    exit::{Exit, UsageError},
    orphans, output, signals,
};

/// The peers studies, embedded so that the name works from anywhere; their arms are built by `peers/build`.
const PEERS_ECHO: &str = include_str!("../../../../docs/studies/peers-echo.toml");
const PEERS_HTTP: &str = include_str!("../../../../docs/studies/peers-http.toml");

pub(crate) fn run(arguments: &Study) -> Result<Exit> {
    let language = report::language(&arguments.lang)?;
    let interrupt = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupt);
    signals::on_stop(move |count| {
        flag.store(true, Ordering::Relaxed);
        if count > 1 {
            std::process::exit(130);
        }
    })?;
    if polling::is_asked(arguments) {
        refuse_options_of_others(arguments)?;
        return polling::run(arguments, language, &interrupt, || {
            let folder = arguments.out.clone().unwrap_or_else(|| default_folder(polling::NAME));
            (folder, arguments.seed.unwrap_or_else(seed_from_clock))
        });
    }
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
        let spec = Store::open_read_only(folder)?.study()?.spec;
        if study_storage::prepare(&spec, folder, &interrupt)? == Ready::Interrupted {
            return Ok(Exit::Interrupted);
        }
        let mut launcher =
            ProcessLauncher::new(program, &spec, Deadlines::default()).in_folder(folder.clone());
        let hands = Hands { launcher: &mut launcher, interrupt: &interrupt, progress: &mut progress };
        run::resume(folder, &fingerprint, hands).map(|outcome| (folder.clone(), outcome))
    } else {
        let study = plan(arguments, fingerprint)?;
        let folder = arguments.out.clone().unwrap_or_else(|| default_folder(&study.spec.name));
        let StudySpec { name, title, seed, .. } = &study.spec;
        output::tell(&format!("study {name}: {title} (seed {seed})"));
        if let Some(orders) = study.spec.cells.first().and_then(|cell| cell.orders.as_ref()) {
            output::tell(&format!("the exchange of every trial runs on {}", orders.exchange_driver));
        }
        if study_storage::prepare(&study.spec, &folder, &interrupt)? == Ready::Interrupted {
            return Ok(Exit::Interrupted);
        }
        let mut launcher =
            ProcessLauncher::new(program, &study.spec, Deadlines::default()).in_folder(folder.clone());
        let hands = Hands { launcher: &mut launcher, interrupt: &interrupt, progress: &mut progress };
        let fresh = Fresh::look(&folder);
        let outcome = run::start(&folder, &study, hands).inspect_err(|error| fresh.clear(&folder, error));
        outcome.map(|outcome| (folder, outcome))
    };
    orphans::end();
    let (folder, outcome) = session?;
    display.end();
    // Tables of nothing would only hide how it goes on.
    if outcome.ended != Ended::Interrupted || outcome.progress.blocks_done > 0 {
        report::write(&outcome.result, language, &folder)?;
    }
    if let Some(way_on) = outcome.way_on(&folder) {
        output::tell(&way_on);
    }
    Ok(Exit::Study(ExitCode::of_session(outcome.ended, &outcome.result)))
}

/// Options of other studies mean nothing to the study polling.
fn refuse_options_of_others(arguments: &Study) -> Result<()> {
    if arguments.protocol.is_some() {
        return Err(UsageError("--protocol belongs to the peers study; leave it out".into()).into());
    }
    if arguments.storage {
        return Err(UsageError("--storage belongs to the survey; leave it out".into()).into());
    }
    Ok(())
}

/// The study that was asked for, complete.
fn plan(arguments: &Study, fingerprint: Fingerprint) -> Result<NewStudy> {
    let name = arguments.study.as_deref().unwrap_or_default();
    let topology = Topology::from(&fingerprint);
    let placement = placement::place(&topology);
    let (server_cpus, load_cpus) = placement.map(|place| (place.server, place.load)).unwrap_or_default();
    let seed = arguments.seed.unwrap_or_else(seed_from_clock);
    let surroundings = Surroundings { seed, server_cpus, load_cpus };
    if arguments.published_plan && ![survey::NAME, gateway::NAME].contains(&name) {
        return Err(UsageError(
            "--published-plan belongs to the studies survey, gateway and polling; leave it out".into(),
        )
        .into());
    }
    if arguments.protocol.is_some() && name != "peers" {
        return Err(UsageError("--protocol belongs to the peers study; leave it out".into()).into());
    }
    if arguments.storage && name != survey::NAME {
        return Err(UsageError("--storage belongs to the survey; leave it out".into()).into());
    }
    if arguments.storage && arguments.published_plan {
        let text = "--published-plan is of the survey's other half; leave out one of the two";
        return Err(UsageError(text.into()).into());
    }
    let uring = || availability(Driver::Uring);
    let (mut spec, missing_arms): (StudySpec, Vec<MissingArm>) = match name {
        quick::NAME => quick::quick(seed, &uring(), &surroundings.server_cpus, &surroundings.load_cpus),
        http::NAME => http::http(&surroundings, &uring()),
        http::CONFOUNDERS => http::confounders(&surroundings, &uring()),
        survey::NAME if arguments.storage => (storage::survey(&surroundings, &tried()), Vec::new()),
        survey::NAME => survey::survey(&surroundings, &uring(), &tried(), survey_plan(arguments)),
        gateway::NAME => {
            let places = gateway::places(&placement::cores(&topology));
            gateway::gateway(&surroundings, places.as_ref(), &uring(), gateway_plan(arguments))
        }
        "peers" => (peers(arguments.protocol.as_deref(), &surroundings)?, Vec::new()),
        _ => (from_file(name, &surroundings)?, Vec::new()),
    };
    if let Some(seed) = arguments.seed {
        spec.seed = seed;
    }
    if let Some(file) = &arguments.file {
        if !spec.is_storage() {
            let way_out = if name == survey::NAME { "add --storage for that half" } else { "leave it out" };
            return Err(UsageError(format!("--file belongs to studies of storage; {way_out}")).into());
        }
        study_storage::use_file(&mut spec, &file.display().to_string());
    }
    let reproduce = reproduce(name, arguments, spec.seed);
    Ok(NewStudy { spec, fingerprint, missing_arms, reproduce })
}

fn survey_plan(arguments: &Study) -> survey::Plan {
    if arguments.published_plan { survey::Plan::Published } else { survey::Plan::Scaled }
}

fn gateway_plan(arguments: &Study) -> gateway::Plan {
    if arguments.published_plan { gateway::Plan::Full } else { gateway::Plan::Scaled }
}

fn peers(protocol: Option<&str>, surroundings: &Surroundings) -> Result<StudySpec> {
    match protocol {
        None | Some("echo") => Ok(file::parse(Path::new("peers-echo.toml"), PEERS_ECHO, surroundings)?),
        Some("http") => Ok(file::parse(Path::new("peers-http.toml"), PEERS_HTTP, surroundings)?),
        Some(other) => Err(UsageError(format!("--protocol {other:?} is not known; use echo or http")).into()),
    }
}

fn from_file(name: &str, surroundings: &Surroundings) -> Result<StudySpec> {
    let path = Path::new(name);
    let looks_like_file = path.extension().is_some_and(|extension| extension == "toml") || name.contains('/');
    if !looks_like_file {
        let text = format!(
            "there is no study {name:?}; use quick, http, http-confounders, survey, peers, polling, gateway, or a study file \
             ending in .toml"
        );
        return Err(UsageError(text).into());
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| UsageError(format!("cannot read the study file {name}: {error}")))?;
    let spec = file::parse(path, &text, surroundings)?;
    check_options(name, &text, &spec)?;
    Ok(spec)
}

/// Refuses engine options of arms that do not exist or do not apply, before anything runs.
fn check_options(file: &str, text: &str, spec: &StudySpec) -> Result<()> {
    let written = |options: &BTreeMap<String, String>| -> Vec<String> {
        options.iter().map(|(name, value)| format!("{name}={value}")).collect()
    };
    study_storage::check(spec, |arm| format!("{file}:{}: ", line_of_arm(text, arm)))?;
    for arm in &spec.arms {
        let Subject::Weir { driver, options, .. } = &arm.subject else { continue };
        let server = engine::config(driver, &written(options));
        if let Err(error) = server.and_then(|_| engine::config("auto", &written(&arm.load_options))) {
            let line = line_of_arm(text, &arm.name);
            return Err(UsageError(format!("{file}:{line}: arm {}: {error}", arm.name)).into());
        }
    }
    Ok(())
}

/// Line on which an arm gets its name.
fn line_of_arm(text: &str, arm: &str) -> usize {
    let is_name = |line: &str| {
        let value = line.trim().strip_prefix("name").and_then(|rest| rest.trim_start().strip_prefix('='));
        value.is_some_and(|value| value.trim_start_matches([' ', '"', '\'']).starts_with(arm))
    };
    let arms = text.lines().position(|line| line.contains("[[arm]]")).unwrap_or(0);
    text.lines().skip(arms).position(is_name).map_or(arms + 1, |below| arms + below + 1)
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

fn availability(driver: Driver) -> Availability {
    let reports = weir_engine::probe(&Config::default());
    match reports.into_iter().find(|report| report.driver == driver) {
        Some(report) if !report.available => {
            Availability::Missing { reason: report.detail, unlock: report.unlock }
        }
        _ => Availability::Runs,
    }
}

/// What is found about each driver of sockets and each engine of disks.
fn tried() -> Vec<DriverFound> {
    let found = |report: weir_engine::DriverReport| DriverFound {
        driver: report.driver.name().to_owned(),
        available: report.available,
        detail: report.detail,
        unlock: report.unlock,
    };
    let drivers = weir_engine::probe(&Config::default()).into_iter().map(found);
    drivers.chain(study_storage::engines()).collect()
}

fn reproduce(name: &str, arguments: &Study, seed: u64) -> String {
    let protocol =
        arguments.protocol.as_ref().map(|protocol| format!(" --protocol {protocol}")).unwrap_or_default();
    let plan = if arguments.published_plan { " --published-plan" } else { "" };
    let half = if arguments.storage { " --storage" } else { "" };
    let file = arguments.file.as_ref().map(|file| format!(" --file {}", file.display())).unwrap_or_default();
    format!("weir study {name}{protocol}{plan}{half}{file} --seed {seed}")
}

/// Nanoseconds of the clock: different each time, and printed, so that a run can be repeated.
fn seed_from_clock() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // SQLite and JSON readers are happiest below 2^53.
    (since.as_nanos() as u64) & ((1 << 53) - 1)
}

/// `weir-results/NAME-YYYYMMDD-HHMMSS`, in UTC.
pub(super) fn default_folder(name: &str) -> PathBuf {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    PathBuf::from("weir-results").join(format!("{name}-{}", utc_stamp(since.as_secs())))
}

/// Calendar time of seconds since 1970, by the civil-from-days algorithm of Howard Hinnant's chrono paper.
pub(super) fn utc_stamp(seconds: u64) -> String {
    let (days, rest) = ((seconds / 86_400) as i64, seconds % 86_400);
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}{month:02}{day:02}-{:02}{:02}{:02}", rest / 3_600, rest / 60 % 60, rest % 60)
}

/// Progress on standard error: a bar on a terminal, a line for each block elsewhere. It draws only when something
/// happens, never during a measured window.
struct Display {
    bar: Option<ProgressBar>,
    /// The bar says what was found so far, and no longer what runs.
    has_estimate: bool,
    quiet: bool,
    began: std::time::Instant,
}

impl Display {
    fn new(quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(0);
            let style = ProgressStyle::with_template("{elapsed_precise} [{bar:16}] {pos}/{len}  {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self { bar, has_estimate: false, quiet, began: std::time::Instant::now() }
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
            Event::Started { blocks_done, blocks } => {
                if let Some(bar) = &self.bar {
                    bar.set_length((*blocks).into());
                    bar.set_position((*blocks_done).into());
                }
                self.line(&format!("{blocks_done} of {blocks} blocks are done"));
            }
            Event::TrialStarted { cell_id, arm, .. } => {
                if let Some(bar) = self.bar.as_ref().filter(|_| !self.has_estimate) {
                    bar.set_message(format!("{cell_id}: {arm}"));
                }
            }
            Event::SoFar { estimate } => {
                if let Some(bar) = &self.bar {
                    let RunningEstimate { arm, baseline, ratio, interval: (low, high), .. } = estimate;
                    bar.set_message(format!("{arm}/{baseline} {ratio:.2} [{low:.2}, {high:.2}] provisional"));
                    self.has_estimate = true;
                }
            }
            Event::TrialFinished { .. } => {}
            Event::BlockStored { cell_id, block, attempt, blocks_done, blocks } => {
                if let Some(bar) = &self.bar {
                    bar.set_position((*blocks_done).into());
                } else {
                    let again =
                        if *attempt > 0 { format!(", attempt {}", attempt + 1) } else { String::new() };
                    self.line(&format!("{blocks_done}/{blocks} blocks: {cell_id} block {block}{again}"));
                }
            }
            Event::RateFixed { cell_id, rate_per_second } => {
                self.line(&format!("{cell_id}: the rate is {rate_per_second:.0} a second"));
            }
            Event::WaitingForNear { blocks } => {
                self.line(&format!("{blocks} blocks wait for the machine's near state"));
            }
            Event::ArmMissing { arm } => self.line(&format!("arm {} is missing: {}", arm.name, arm.reason)),
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calendar_times_are_right_at_the_edges() {
        assert_eq!(utc_stamp(0), "19700101-000000");
        assert_eq!(utc_stamp(951_827_696), "20000229-123456");
        assert_eq!(utc_stamp(4_102_444_799), "20991231-235959");
    }
}
