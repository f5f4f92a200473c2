//! `weir study polling`: how often hybrid polling wakes too late, and whether a prediction lowers misses and CPU
//! together; over the model, over made traces, on a disk, and over traces that were recorded on it.

pub(crate) mod carry;
pub(crate) mod disk;
mod recording;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::Instant,
};

use anyhow::{Context, Result};
use weir_lab::{
    exit::ExitCode,
    run::{self, RunError},
};
use weir_record::{
    SCHEMA_VERSION,
    sweep::{
        DiskEnvironment, MissingMethod, Outcome, PollingResult, SweepPart, SweepPlan, SweepResult, SweepWorld,
    },
};
use weir_report::Language;
use weir_storage::{
    engine::target::filesystem,
    frontier::{self, judge, observe},
    simulate::{HostModel, LagTail, Scenario, StartTransient},
    sweep::{
        methods, plans, synthetic,
        world::{SeedOfTrace, World},
    },
};

use crate::{
    args::Study,
    exit::{Exit, UsageError},
    output,
};
use carry::{Carried, carry};
use recording::Recording;

/// Name on the command line.
pub(crate) const NAME: &str = "polling";
/// The judged study; also marks a folder as one of this study.
const RESULT: &str = "polling.json";

/// How long the parts are.
struct Lengths {
    job_ns: u64,
    seeds: u64,
    job_hypotheses_ns: u64,
    seeds_hypotheses: u64,
    disk_window_ns: u64,
    disk_blocks: u64,
}

/// A few minutes for the model and some more for the disk.
const SHORT: Lengths = Lengths {
    job_ns: 1_000_000_000,
    seeds: 20,
    job_hypotheses_ns: 5_000_000_000,
    seeds_hypotheses: 3,
    disk_window_ns: 400_000_000,
    disk_blocks: 6,
};
/// The paper's jobs of 20 s.
const PUBLISHED: Lengths = Lengths {
    job_ns: 20_000_000_000,
    seeds: 20,
    job_hypotheses_ns: 20_000_000_000,
    seeds_hypotheses: 5,
    disk_window_ns: 2_000_000_000,
    disk_blocks: 12,
};
/// A slow start is the published plan's half second, and never more than this share of a job.
const TRANSIENT_SHARE: u64 = 8;
/// Background depths that stand for none, one and four busy cores.
const DEPTHS: [u32; 3] = [0, 32, 128];

/// Whether the arguments ask for this study, or to go on with one.
pub(crate) fn is_asked(arguments: &Study) -> bool {
    match &arguments.resume {
        Some(folder) => is_polling(folder),
        None => arguments.study.as_deref() == Some(NAME),
    }
}

/// Whether a folder holds this study.
pub(crate) fn is_polling(folder: &Path) -> bool {
    folder.join(RESULT).exists()
}

/// Runs or goes on. `new` has the folder and the seed of a new study.
pub(crate) fn run(
    arguments: &Study,
    language: Language,
    interrupt: &AtomicBool,
    new: impl FnOnce() -> (PathBuf, u64),
) -> Result<Exit> {
    let (folder, result) = match &arguments.resume {
        Some(folder) => (folder.clone(), read(folder)?),
        None => begin(arguments, new())?,
    };
    let (quiet, began) = (arguments.quiet, Instant::now());
    let mut session = Session { folder: &folder, interrupt, quiet, began, result, disk_cut: None };
    let before_ns = session.result.elapsed_ns;
    let ended = session.run()?;
    session.result.elapsed_ns = before_ns + session.began.elapsed().as_nanos() as u64;
    session.store()?;
    write(&session.result, language, &folder)?;
    if let Some(way_on) = way_on(ended, session.disk_cut.as_deref(), &folder) {
        output::tell(&way_on);
    }
    Ok(Exit::Study(exit_code(ended, &session.result)))
}

/// What cut the study short, or its disk part alone, and how it goes on.
fn way_on(ended: Ended, disk_cut: Option<&str>, folder: &Path) -> Option<String> {
    let cause = match (ended, disk_cut) {
        (Ended::Interrupted, _) => "interrupted".to_owned(),
        (Ended::Done, Some(cut)) => format!("disk: {cut}"),
        (Ended::Done, None) => return None,
    };
    Some(format!("{cause}; go on with: weir study --resume {}", folder.display()))
}

/// A stored study.
pub(crate) fn read(folder: &Path) -> Result<PollingResult> {
    let path = folder.join(RESULT);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| {
        UsageError(format!("{} is no result of the study polling: {error}", path.display())).into()
    })
}

/// Writes both pages into `folder` and the tables to standard output.
pub(crate) fn write(result: &PollingResult, language: Language, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot make {}; choose another folder with --out", folder.display()))?;
    output::write_whole(&folder.join("report.html"), &weir_report::polling_html(result, language))?;
    output::write_whole(&folder.join("report.md"), &weir_report::polling_markdown(result, language))?;
    let (width, color) = (output::width_columns(), output::has_color());
    output::print(&weir_report::polling_terminal(result, language, width, color))?;
    output::tell(&format!("report: {}", folder.join("report.html").display()));
    Ok(())
}

fn begin(arguments: &Study, (folder, seed): (PathBuf, u64)) -> Result<(PathBuf, PollingResult)> {
    if is_polling(&folder) {
        let text =
            format!("{} holds a study; go on with --resume, or choose another folder", folder.display());
        return Err(UsageError(text).into());
    }
    // Told now, not when the simulator is done.
    if let Some(file) = arguments.file.as_ref().filter(|file| !file.exists()) {
        let text = format!("--file {} does not exist; leave it out for one that is laid out", file.display());
        return Err(UsageError(text).into());
    }
    fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}; choose another folder with --out", folder.display()))?;
    let plan = if arguments.published_plan { " --published-plan" } else { "" };
    let data_file = arguments.file.as_ref().map(|file| file.display().to_string());
    let environment = Some(environment(&data_file_of(data_file.as_deref(), &folder)));
    let file = data_file.as_ref().map(|file| format!(" --file {file}")).unwrap_or_default();
    let result = PollingResult {
        schema_version: SCHEMA_VERSION,
        published_plan: arguments.published_plan,
        seed,
        data_file,
        fingerprint: Some(weir_evidence::fingerprint::fingerprint()),
        environment,
        reproduce: format!("weir study {NAME}{plan}{file} --seed {seed}"),
        ..PollingResult::default()
    };
    // However the process ends, the folder is known as this study's from now on.
    store(&folder, &result)?;
    output::tell(&format!("study {NAME} (seed {seed}) in {}", folder.display()));
    Ok((folder, result))
}

fn store(folder: &Path, result: &PollingResult) -> Result<()> {
    output::write_whole(&folder.join(RESULT), &serde_json::to_string(result)?)
}

/// The file that the disk part reads.
fn data_file_of(named: Option<&str>, folder: &Path) -> PathBuf {
    named.map_or_else(|| disk::data_file(&disk_folder(folder)), PathBuf::from)
}

/// What the disk below a file is. The file may not be there yet: then it will lie where its folder does.
fn environment(file: &Path) -> DiskEnvironment {
    let place = file.ancestors().find(|place| place.exists()).unwrap_or(Path::new("."));
    DiskEnvironment {
        operating_system: weir_evidence::disk::operating_system(),
        disk: weir_evidence::disk::below(place),
        filesystem: filesystem(place),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Done,
    Interrupted,
}

struct Session<'s> {
    folder: &'s Path,
    interrupt: &'s AtomicBool,
    quiet: bool,
    began: Instant,
    result: PollingResult,
    /// What cut the disk part short, where nobody interrupted the study.
    disk_cut: Option<String>,
}

impl Session<'_> {
    /// Part after part; what is done is judged and stored before the next one begins.
    fn run(&mut self) -> Result<Ended> {
        self.result.missing.clear();
        self.result.complete = false;
        for part in [Self::simulator, Self::hypotheses, Self::traces, Self::disk, Self::recording] {
            let ended = part(self)?;
            self.store()?;
            if ended == Ended::Interrupted {
                return Ok(ended);
            }
        }
        self.result.complete = self.result.missing.is_empty()
            && self.result.sweeps.iter().all(SweepResult::is_whole_but_for_missing);
        Ok(Ended::Done)
    }

    fn lengths(&self) -> &'static Lengths {
        if self.result.published_plan { &PUBLISHED } else { &SHORT }
    }

    fn store(&self) -> Result<()> {
        store(self.folder, &self.result)
    }

    fn carry(&self, plan: &SweepPlan, world: &World, file: &str) -> Result<(Vec<SweepPart>, Ended)> {
        let path = self.folder.join(file);
        let Carried { parts, interrupted } =
            carry(plan, world, Some(&path), true, self.interrupt, self.quiet)?;
        Ok((parts, if interrupted { Ended::Interrupted } else { Ended::Done }))
    }

    /// Replaces the sweep of a world, so that a session that goes on does not show it twice.
    fn put(&mut self, sweep: SweepResult) {
        let world = sweep.plan.world;
        match self.result.sweeps.iter_mut().find(|known| known.plan.world == world) {
            Some(known) => *known = sweep,
            None => self.result.sweeps.push(sweep),
        }
    }

    fn simulator(&mut self) -> Result<Ended> {
        let lengths = self.lengths();
        let scenario = plans::scenario(lengths.job_ns);
        let plan = plans::of_scenario(
            &scenario,
            plans::SOURCE_MODEL,
            plans::held_out(lengths.seeds),
            methods::study(),
        );
        let (parts, ended) = self.carry(&plan, &World::Model(scenario), "simulator.jsonl")?;
        let sweep = frontier::judge(&plan, &parts);
        self.result.feeding = judge::feeding(&plan, &parts);
        self.result.observations = observe::observe(&sweep, self.result.hypotheses.as_ref());
        self.put(sweep);
        Ok(ended)
    }

    fn hypotheses(&mut self) -> Result<Ended> {
        let lengths = self.lengths();
        let scenario = hypothetical(lengths.job_hypotheses_ns);
        let seeds = plans::held_out(lengths.seeds_hypotheses);
        let plan = plans::of_scenario(&scenario, plans::SOURCE_HYPOTHESES, seeds, methods::observed());
        let (parts, ended) = self.carry(&plan, &World::Model(scenario), "hypotheses.jsonl")?;
        let sweep = frontier::judge(&plan, &parts);
        if let Some(model) = self.result.sweep(SweepWorld::Simulator) {
            self.result.observations = observe::observe(model, Some(&sweep));
        }
        self.result.hypotheses = Some(sweep);
        Ok(ended)
    }

    fn traces(&mut self) -> Result<Ended> {
        let seeds = plans::held_out(self.lengths().seeds);
        let (host, interval_ns) = (HostModel::xeon_6230(), plans::interval_ns(self.lengths().job_ns));
        let plan = plans::of_traces(
            plans::SOURCE_SYNTHETIC,
            &synthetic::KINDS,
            interval_ns,
            seeds,
            methods::study(),
        );
        let world = World::Synthetic { host, interval_ns };
        let (parts, ended) = self.carry(&plan, &world, "traces.jsonl")?;
        self.put(frontier::judge(&plan, &parts));
        Ok(ended)
    }

    /// A machine whose disk cannot be asked still has the other parts; the report says what is missing.
    fn disk(&mut self) -> Result<Ended> {
        let lengths = self.lengths();
        let folder = disk_folder(self.folder);
        let file = self.result.data_file.as_ref().map_or_else(|| disk::data_file(&folder), PathBuf::from);
        let methods = if self.result.published_plan { methods::disk_in_full() } else { methods::disk() };
        let asked = disk::Asked {
            methods: disk::with_kernel_polls(methods, &file),
            window_ns: lengths.disk_window_ns,
            background_depths: DEPTHS.to_vec(),
            blocks: lengths.disk_blocks,
            file: self.result.data_file.clone(),
            seed: self.result.seed,
        };
        match disk::measure(&folder, &asked, true, self.interrupt, self.quiet) {
            Ok(done) => {
                done.result.into_iter().for_each(|sweep| self.put(sweep));
                self.disk_cut = done.cut;
                Ok(if done.ended == run::Ended::Interrupted { Ended::Interrupted } else { Ended::Done })
            }
            Err(error) => match error.downcast_ref::<RunError>() {
                Some(RunError::Environment(reason)) => {
                    let missing = MissingMethod { name: "disk".to_owned(), reason: reason.clone() };
                    self.result.missing.push(missing);
                    Ok(Ended::Done)
                }
                _ => Err(error),
            },
        }
    }

    /// What the disk took, replayed. Where nobody may trace it the other parts stand without.
    fn recording(&mut self) -> Result<Ended> {
        let lengths = self.lengths();
        let file = data_file_of(self.result.data_file.as_deref(), self.folder);
        let asked = recording::Asked {
            folder: self.folder,
            file: &file,
            depths: &DEPTHS,
            pieces: lengths.seeds as usize,
            seed: self.result.seed,
            quiet: self.quiet,
        };
        self.result.unrecorded = None;
        let (source, traces) = match recording::traces(&asked, self.interrupt) {
            Recording::Traces { source, traces } => (source, traces),
            Recording::Unavailable(reason) => {
                self.result.unrecorded = Some(reason);
                return Ok(Ended::Done);
            }
            Recording::Interrupted => return Ok(Ended::Interrupted),
        };
        let (host, interval_ns) = (HostModel::xeon_6230(), plans::interval_ns(lengths.job_ns));
        let plan = plans::of_recordings(&source, &DEPTHS, interval_ns, lengths.seeds, methods::study());
        let world = World::Recorded { traces, seeds: SeedOfTrace::Piece, host, interval_ns };
        let (parts, ended) = self.carry(&plan, &world, "recorded-reads.jsonl")?;
        self.put(frontier::judge(&plan, &parts));
        Ok(ended)
    }
}

/// The laboratory's folder lies beside the study's own, so that both use the same data file.
fn disk_folder(folder: &Path) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push("-disk");
    folder.with_file_name(name)
}

/// The paper's scenario with what could explain its start-up spikes and its misses at 5 %.
fn hypothetical(job_ns: u64) -> Scenario {
    let mut scenario = plans::scenario(job_ns);
    scenario.host = scenario.host.with_tail(LagTail::deep_idle());
    let start = StartTransient::half_second();
    scenario.start_transient =
        Some(StartTransient { length_ns: start.length_ns.min(job_ns / TRANSIENT_SHARE), ..start });
    scenario
}

fn exit_code(ended: Ended, result: &PollingResult) -> ExitCode {
    if ended == Ended::Interrupted {
        return ExitCode::Interrupted;
    }
    if !result.missing.is_empty() || result.sweeps.iter().any(|sweep| !sweep.missing.is_empty()) {
        return ExitCode::Environment;
    }
    match result.outcome() {
        Some(Outcome::Holds | Outcome::Fails) => ExitCode::Decided,
        Some(Outcome::Open) | None => ExitCode::Inconclusive,
    }
}

#[cfg(test)]
mod tests {
    use weir_record::sweep::{FrontierRow, SweepPlan};

    use super::*;

    #[test]
    fn a_study_that_is_killed_at_once_is_known_by_its_folder() {
        #[derive(clap::Parser)]
        struct Typed {
            #[command(flatten)]
            study: Study,
        }
        let folder = std::env::temp_dir().join(format!("weir-polling-begun-{}", std::process::id()));
        let asked =
            <Typed as clap::Parser>::try_parse_from(["weir", NAME, "--published-plan"]).expect("a study");
        let begun = begin(&asked.study, (folder.clone(), 9)).map(|(_, result)| result);
        let (is_known, again) = (is_polling(&folder), begin(&asked.study, (folder.clone(), 9)));
        let stored = read(&folder);
        let _ = fs::remove_dir_all(&folder);
        assert!(is_known);
        let stored = stored.expect("it is stored");
        assert_eq!(stored, begun.expect("the folder is new"));
        assert_eq!((stored.seed, stored.published_plan, stored.complete), (9, true, false));
        assert!(again.is_err_and(|error| error.to_string().contains("go on with --resume")));
    }

    #[test]
    fn what_cuts_a_study_short_is_told_with_its_own_way_on() {
        let told = |ended, cut| way_on(ended, cut, Path::new("out"));
        let cut = Some("cut by the time cap of 1 h: 9 of 18 blocks are done");
        assert_eq!(told(Ended::Done, None), None);
        assert_eq!(
            told(Ended::Done, cut).as_deref(),
            Some(
                "disk: cut by the time cap of 1 h: 9 of 18 blocks are done; go on with: weir study --resume out"
            )
        );
        assert_eq!(
            told(Ended::Interrupted, cut).as_deref(),
            Some("interrupted; go on with: weir study --resume out")
        );
    }

    fn result(outcome: Outcome) -> PollingResult {
        let row = FrontierRow { outcome, ..FrontierRow::default() };
        let sweep = SweepResult { plan: SweepPlan::default(), frontier: vec![row], ..SweepResult::default() };
        PollingResult { sweeps: vec![sweep], ..PollingResult::default() }
    }

    #[test]
    fn the_exit_code_says_what_a_script_must_know_first() {
        assert_eq!(exit_code(Ended::Done, &result(Outcome::Holds)), ExitCode::Decided);
        assert_eq!(exit_code(Ended::Done, &result(Outcome::Fails)), ExitCode::Decided);
        assert_eq!(exit_code(Ended::Done, &result(Outcome::Open)), ExitCode::Inconclusive);
        let mut missing = result(Outcome::Holds);
        missing.missing.push(MissingMethod { name: "disk".into(), reason: "no".into() });
        assert_eq!(exit_code(Ended::Done, &missing), ExitCode::Environment);
        assert_eq!(exit_code(Ended::Interrupted, &missing), ExitCode::Interrupted);
    }

    #[test]
    fn the_laboratorys_folder_is_a_sibling() {
        assert_eq!(
            disk_folder(Path::new("weir-results/polling-1")),
            Path::new("weir-results/polling-1-disk")
        );
        assert_eq!(disk_folder(Path::new("out")), Path::new("out-disk"));
    }

    #[test]
    fn the_environment_is_that_of_the_place_where_the_file_will_lie() {
        let folder = std::env::temp_dir();
        let here = environment(&folder);
        assert!(!here.filesystem.is_empty());
        assert_eq!(environment(&folder.join("not/yet/data")), here);
        assert_eq!(data_file_of(None, Path::new("results/polling-1")), Path::new("results/storage.dat"));
        assert_eq!(data_file_of(Some("/dev/x"), Path::new("results/polling-1")), Path::new("/dev/x"));
    }

    #[test]
    fn hypotheses_can_be_simulated_and_never_fill_a_short_job() {
        for job_ns in [100_000_000, 1_000_000_000, 20_000_000_000] {
            let scenario = hypothetical(job_ns);
            assert_eq!(scenario.check(), Ok(()));
            let start = scenario.start_transient.expect("it is switched on");
            assert!(start.length_ns <= job_ns / TRANSIENT_SHARE);
        }
    }
}
