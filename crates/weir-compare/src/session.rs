//! A comparison as it runs: a first run of every command, a pilot that sets the number of pairs, the pairs, and one
//! look at the end.
//!
//! Whatever ends it early, the record contains all that ran, and its results are called unfinished. A command that
//! cannot be started, or fails in its first run, is left out and named; the others go on.

use std::{
    ffi::OsString,
    sync::atomic::{AtomicBool, Ordering},
};

use weir_judge::commands::{self, Conclusion, Judged, PAIRS_MAX, Parting, Pilot};
use weir_record::commands::{
    CommandArm, CommandComparison, CommandEnd, CommandFinding, CommandRole, CommandRun, FailedEnd,
    FirstDifference, MeasuredBy, NoCalls, PairPlan, PlanReason, RunEnding, RunPhase, Stream, SystemCalls,
};

use crate::{
    asked::{Around, Asked},
    calls, files,
    machine::Launch,
    parting,
    recorded::{self, Turn},
    run::{OutputDigest, OutputTo, RunError, RunOutcome, RunSpec},
};

mod servers;

/// Share of the budget that a pilot may take.
const PILOT_SHARE: f64 = 0.2;

/// Pairs of a pilot.
const PILOT_PAIRS_MAX: u32 = 12;

/// Fewest pairs that show how runs scatter.
const PILOT_PAIRS_MIN: u32 = 3;

/// Share of the budget that these pairs may take: the first run of a program may take many times as long as others.
const PILOT_FEWEST_SHARE: f64 = 0.4;

/// No pair begins after this multiple of the time that all of them were expected to take.
const TIME_CAP_FACTOR: u64 = 3;

/// The running estimate is recomputed at this interval.
const ESTIMATE_EVERY_NS: u64 = 500_000_000;

/// Progress for a display.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The plan is made; the pairs take about this long.
    Planned {
        /// The plan.
        plan: PairPlan,
        /// Expected length.
        expected_ns: u64,
    },
    /// A pair ended.
    Pair {
        /// Pairs that ran.
        done: u32,
        /// Pairs that are planned.
        pairs: u32,
        /// The running result of the first comparison: ratio and interval of CPU time. It decides nothing.
        estimate: Option<(f64, (f64, f64))>,
    },
    /// The first runs of a command wrote other output than the baseline's. There will be no verdict on it, unless the
    /// baseline's output turns out to change from run to run.
    OutputDiffers(CommandFinding),
    /// System calls are counted.
    Calls,
}

/// Runs a comparison.
///
/// # Errors
/// When a folder, input or output that was named cannot be used; nothing has been compared then.
pub fn compare(
    asked: &Asked,
    measured_by: &MeasuredBy,
    launch: &mut dyn Launch,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&Event),
) -> Result<CommandComparison, RunError> {
    let began_ns = launch.now_ns();
    let commands: Vec<CommandArm> = asked.commands.iter().map(arm).collect();
    let are_alive = vec![true; commands.len()];
    let mut session = Session {
        asked,
        measured_by,
        launch,
        stop,
        began_ns,
        commands,
        are_alive,
        runs: Vec::new(),
        seen: Vec::new(),
        outputs: vec![None; asked.commands.len()],
        partings: Vec::new(),
        system_calls: None,
        plan: PairPlan::default(),
        round_ns: 0,
        estimated_ns: 0,
        estimate: None,
        starts: 0,
        start_ns: 0,
    };
    let ended = session.all(progress)?;
    Ok(session.comparison(ended))
}

/// A command whose files are not known yet: its setup may make them.
fn arm(command: &crate::asked::AskedCommand) -> CommandArm {
    CommandArm {
        name: command.name.clone(),
        role: command.role,
        words: command.words.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        files: Vec::new(),
    }
}

/// Whether a comparison goes on.
enum Next {
    On,
    Ended(CommandEnd),
}

struct Session<'a> {
    asked: &'a Asked,
    measured_by: &'a MeasuredBy,
    launch: &'a mut dyn Launch,
    stop: &'a AtomicBool,
    began_ns: u64,
    commands: Vec<CommandArm>,
    /// Commands that run, by their place.
    are_alive: Vec<bool>,
    runs: Vec<CommandRun>,
    seen: Vec<CommandFinding>,
    /// Both outputs of the first run of each command, until they are compared.
    outputs: Vec<Option<[OutputDigest; 2]>>,
    partings: Vec<Parting>,
    system_calls: Option<SystemCalls>,
    plan: PairPlan,
    /// How long the last round before the pilot took, without the commands that are left out.
    round_ns: u64,
    /// When the running estimate was computed.
    estimated_ns: u64,
    estimate: Option<(f64, (f64, f64))>,
    /// Starts of servers.
    starts: u32,
    /// How long the last of them took, with the loads that are not evaluated.
    start_ns: u64,
}

impl Session<'_> {
    /// Everything but the evaluation at the end.
    fn all(&mut self, progress: &mut dyn FnMut(&Event)) -> Result<CommandEnd, RunError> {
        let ended = self.first_and_paired(progress);
        if let Ok(ended) = &ended {
            self.count_calls(*ended, progress);
            // Before the cleanup, which may remove them.
            self.see_changed_files();
        }
        // The cleanup must follow a setup, whatever happened.
        let is_clean = self.cleaned_up();
        ended.map(|ended| {
            // The leftovers of a failed cleanup would disturb the next comparison.
            if is_clean || ended == CommandEnd::Interrupted { ended } else { CommandEnd::Broken }
        })
    }

    fn first_and_paired(&mut self, progress: &mut dyn FnMut(&Event)) -> Result<CommandEnd, RunError> {
        Ok(match self.first()? {
            Next::Ended(ended) => ended,
            Next::On => {
                self.find_partings();
                self.show_differences(progress);
                match self.paired(progress) {
                    Next::Ended(ended) => ended,
                    Next::On => CommandEnd::Complete,
                }
            }
        })
    }

    /// Cleans up after every command. Says whether all of it worked.
    fn cleaned_up(&mut self) -> bool {
        if self.asked.servers.is_some() {
            return matches!(self.end_servers(), Next::On);
        }
        let unstopped = AtomicBool::new(false);
        let failed = (0..self.commands.len())
            .filter(|place| matches!(self.around(*place, Around::Cleanup, &unstopped), Next::Ended(_)))
            .count();
        failed == 0
    }

    /// Sets up, and runs every command once, the baseline twice. Commands that cannot run are left out.
    fn first(&mut self) -> Result<Next, RunError> {
        if self.asked.servers.is_some() {
            return self.first_servers();
        }
        for place in 0..self.commands.len() {
            if let Next::Ended(ended) = self.around(place, Around::Setup, self.stop) {
                return Ok(Next::Ended(ended));
            }
        }
        for (place, command) in self.asked.commands.iter().enumerate() {
            self.commands[place].files = files::named(&self.asked.spec(&command.words), self.stop);
        }
        let mut took_ns = vec![0; self.commands.len()];
        for (turn_place, (command, repeat)) in self.order(RunPhase::First, 0).into_iter().enumerate() {
            if !self.are_alive[command] {
                continue;
            }
            let began_ns = self.launch.now_ns();
            let turn = self.turn(RunPhase::First, 0, turn_place, (command, repeat));
            match self.turned(turn) {
                Ok(Next::On) => {}
                Ok(ended) => return Ok(ended),
                Err(error @ RunError::File { .. }) => return Err(error),
                // No launcher is left that could start the others.
                Err(error @ RunError::Launcher(_)) => return Ok(self.broken(&error)),
                Err(error) => self.not_started(command, &error),
            }
            took_ns[command] += self.launch.now_ns().saturating_sub(began_ns);
        }
        self.drop_failed();
        let of_living = took_ns.iter().zip(&self.are_alive).filter(|(_, is_alive)| **is_alive);
        self.round_ns = of_living.map(|(took_ns, _)| took_ns).sum::<u64>().max(1);
        self.drop_own_outputs();
        Ok(self.if_comparable())
    }

    /// Goes on if the baseline is left and something to compare with it.
    fn if_comparable(&self) -> Next {
        let is_left =
            |place: usize| self.are_alive[place] && self.commands[place].role == CommandRole::Candidate;
        let can_compare = self.are_alive[0] && (1..self.commands.len()).any(is_left);
        if can_compare { Next::On } else { Next::Ended(CommandEnd::NothingToCompare) }
    }

    /// Warm-up, pilot and pairs.
    fn paired(&mut self, progress: &mut dyn FnMut(&Event)) -> Next {
        let warmup = if self.asked.servers.is_some() { 0 } else { self.asked.settings.warmup };
        for number in 0..warmup {
            let began_ns = self.launch.now_ns();
            if let ended @ Next::Ended(_) = self.pair(RunPhase::Warmup, number) {
                return ended;
            }
            self.round_ns = self.launch.now_ns().saturating_sub(began_ns).max(1);
        }
        let pair_ns = match self.planned() {
            Ok(pair_ns) => pair_ns,
            Err(ended) => return ended,
        };
        let expected_ns = pair_ns.saturating_mul(u64::from(self.plan.pairs));
        progress(&Event::Planned { plan: self.plan.clone(), expected_ns });
        let cap_ns = expected_ns.max(self.asked.settings.budget_ns).saturating_mul(TIME_CAP_FACTOR);
        let started_ns = self.launch.now_ns();
        for number in 0..self.plan.pairs {
            let is_late = self.launch.now_ns().saturating_sub(started_ns) > cap_ns;
            // A number of pairs that the user asked for is run.
            if is_late && self.plan.reason != PlanReason::Asked {
                return Next::Ended(CommandEnd::TimeCap);
            }
            if let ended @ Next::Ended(_) = self.pair(RunPhase::Measured, number) {
                return ended;
            }
            self.show(number + 1, progress);
        }
        Next::On
    }

    /// Runs the pilot, plans, and gives the length of a pair.
    fn planned(&mut self) -> Result<u64, Next> {
        let settings = &self.asked.settings;
        if let Some(pairs) = settings.runs {
            let pairs = pairs.clamp(1, PAIRS_MAX);
            let per_start = self.pairs_per_start(Some(pairs));
            let unit_pairs = per_start.unwrap_or_else(|| commands::unit_pairs(pairs));
            self.plan =
                PairPlan { pairs, pilot_pairs: 0, unit_pairs, detectable: None, reason: PlanReason::Asked };
            return Ok(self.round_ns);
        }
        let began_ns = self.launch.now_ns();
        let (mut pilot_pairs, mut took_ns, mut next_ns) = (0, 0, self.round_ns);
        while pilot_goes_on(pilot_pairs, took_ns, next_ns, settings.budget_ns) {
            if let ended @ Next::Ended(_) = self.pair(RunPhase::Pilot, pilot_pairs) {
                return Err(ended);
            }
            pilot_pairs += 1;
            let now_ns = self.launch.now_ns().saturating_sub(began_ns);
            (took_ns, next_ns) = (now_ns, now_ns.saturating_sub(took_ns));
        }
        let pair_ns = took_ns.checked_div(u64::from(pilot_pairs)).unwrap_or(self.round_ns).max(1);
        let left_ns = settings.budget_ns.saturating_sub(took_ns);
        let per_start = self.pairs_per_start(None);
        let unit_ns = per_start.map_or(pair_ns, |pairs| self.unit_ns(pair_ns, pairs));
        self.plan = commands::planned(&Pilot {
            commands: self.commands.len(),
            runs: &self.runs,
            pairs: if pilot_pairs < PILOT_PAIRS_MIN { 0 } else { pilot_pairs },
            units_fitting: u32::try_from(left_ns / unit_ns).unwrap_or(u32::MAX),
            pairs_min: (settings.runs_min > 0).then_some(settings.runs_min),
            unit_pairs: per_start,
            equivalence_margin: settings.equivalence_margin,
        });
        self.plan.pilot_pairs = pilot_pairs;
        Ok(unit_ns / u64::from(per_start.unwrap_or(1)))
    }

    /// One pair; a run that was stopped is not part of it.
    fn pair(&mut self, phase: RunPhase, number: u32) -> Next {
        if let ended @ Next::Ended(_) = self.start_servers_for(phase, number) {
            return ended;
        }
        for (place, (command, repeat)) in self.order(phase, number).into_iter().enumerate() {
            if !self.are_alive[command] {
                continue;
            }
            let turn = self.turn(phase, number, place, (command, repeat));
            match self.turned(turn) {
                Ok(Next::On) => {}
                Ok(ended) => return ended,
                Err(error) => return self.broken(&error),
            }
        }
        Next::On
    }

    fn order(&self, phase: RunPhase, number: u32) -> Vec<(usize, bool)> {
        commands::order(self.asked.seed, phase, number, self.commands.len())
    }

    fn turn(&mut self, phase: RunPhase, pair: u32, place: usize, (command, repeat): (usize, bool)) -> Turn {
        let started_ns = self.launch.now_ns().saturating_sub(self.began_ns);
        Turn { phase, pair, place, command, repeat, started_ns }
    }

    /// A run with the commands before and after it.
    fn turned(&mut self, turn: Turn) -> Result<Next, RunError> {
        if self.asked.servers.is_some() {
            return self.loaded(turn);
        }
        let stop = self.stop;
        if let ended @ Next::Ended(_) = self.around(turn.command, Around::Prepare, stop) {
            return Ok(ended);
        }
        let mut spec = self.asked.spec(&self.asked.commands[turn.command].words);
        if turn.phase == RunPhase::First && spec.output == OutputTo::Digest {
            spec.output = OutputTo::Blocks;
        }
        let mut outcome = match self.launch.run(&spec, stop) {
            Ok(outcome) => outcome,
            Err(error @ RunError::Launcher(_)) => return Err(error),
            // What ran before it has its counterpart, although the command did not run to its end.
            Err(error) => match (self.conclude(turn.command), error) {
                (_, RunError::Stopped) => return Ok(Next::Ended(CommandEnd::Interrupted)),
                (_, error @ RunError::File { .. }) | (Next::On, error) => return Err(error),
                (ended @ Next::Ended(_), _) => return Ok(ended),
            },
        };
        let started_ns = self.launch.now_ns().saturating_sub(self.began_ns);
        let started_ns = started_ns.saturating_sub(outcome.cost.wall_ns).max(turn.started_ns);
        self.runs.push(recorded::run(Turn { started_ns, ..turn }, &outcome, &self.asked.output));
        if turn.phase == RunPhase::First {
            self.outputs[turn.command] = Some([&mut outcome.stdout, &mut outcome.stderr].map(std::mem::take));
        }
        let next = self.conclude(turn.command);
        Ok(if stop.load(Ordering::Relaxed) { Next::Ended(CommandEnd::Interrupted) } else { next })
    }

    /// The command after a run, also after an interruption.
    fn conclude(&mut self, place: usize) -> Next {
        let unstopped = AtomicBool::new(false);
        self.around(place, Around::Conclude, &unstopped)
    }

    /// The commands around a command; one that fails ends the comparison.
    fn around(&mut self, place: usize, around: Around, stop: &AtomicBool) -> Next {
        let words: &[OsString] = self.asked.commands[place].around(around);
        if words.is_empty() {
            return Next::On;
        }
        let came_of_it = self.launch.run(&self.asked.spec_around(words), stop);
        self.came_of_around(around.flag(), came_of_it)
    }

    /// The consequence of a command around another.
    fn came_of_around(&mut self, flag: &str, outcome: Result<RunOutcome, RunError>) -> Next {
        let (end, said) = match outcome {
            Ok(outcome) => (recorded::ending(outcome.end), recorded::said(&outcome)),
            Err(RunError::Stopped) => return Next::Ended(CommandEnd::Interrupted),
            Err(error) => {
                let (flag, reason) = (flag.to_owned(), error.to_string());
                self.seen.push(CommandFinding::AroundNotStarted { flag, reason });
                return Next::Ended(CommandEnd::Broken);
            }
        };
        let end = match end {
            RunEnding::Exited(0) | RunEnding::NoCount => return Next::On,
            RunEnding::Exited(status) => FailedEnd::Status(status),
            RunEnding::Killed(signal) => FailedEnd::Signal(signal),
            RunEnding::OutOfMemory => FailedEnd::OutOfMemory,
            RunEnding::Overran => FailedEnd::Overran { limit_ns: self.asked.settings.limit_ns },
        };
        self.seen.push(CommandFinding::AroundFailed { flag: flag.to_owned(), end, said });
        Next::Ended(CommandEnd::Broken)
    }

    /// Counts system calls in separate runs, after everything else.
    fn count_calls(&mut self, ended: CommandEnd, progress: &mut dyn FnMut(&Event)) {
        // A server has no run that ends, so its calls are not counted.
        if self.asked.servers.is_some() {
            return;
        }
        let leaves_processes = self.runs.iter().any(|run| run.children_left > 0);
        let counted = match ended {
            CommandEnd::Complete | CommandEnd::TimeCap => {
                progress(&Event::Calls);
                calls::counted(self.asked, &self.are_alive, leaves_processes, self.launch, self.stop)
            }
            _ => Err(NoCalls::NotReached),
        };
        match counted {
            Ok(counted) => self.system_calls = Some(counted),
            Err(reason) => self.seen.push(CommandFinding::NoSystemCalls { reason }),
        }
    }

    fn broken(&mut self, error: &RunError) -> Next {
        self.seen.push(CommandFinding::Broken { reason: error.to_string() });
        Next::Ended(CommandEnd::Broken)
    }

    fn not_started(&mut self, command: usize, error: &RunError) {
        self.are_alive[command] = false;
        let name = self.commands[command].name.clone();
        self.seen.push(CommandFinding::NotStarted { command: name, reason: error.to_string() });
    }

    /// Leaves out commands that failed in their first run. A command that took too long, or was killed for its memory,
    /// is left out even if failures are ignored.
    fn drop_failed(&mut self) {
        for run in &self.runs {
            let is_fit = match run.end {
                RunEnding::Exited(0) => true,
                RunEnding::Exited(_) | RunEnding::Killed(_) => self.asked.settings.ignore_failure,
                RunEnding::OutOfMemory | RunEnding::Overran | RunEnding::NoCount => false,
            };
            self.are_alive[run.command as usize] &= is_fit;
        }
    }

    /// Files of any command that first runs changed: commands write them, and may change them again.
    fn drop_own_outputs(&mut self) {
        let changed = |command: &CommandArm| files::changed(&command.files, self.stop);
        let mut written: Vec<String> = self.commands.iter().flat_map(changed).collect();
        if let OutputTo::File(path) = &self.asked.output {
            written.push(path.to_string_lossy().into_owned());
        }
        for command in &mut self.commands {
            command.files.retain(|file| !written.contains(&file.path));
        }
    }

    fn see_changed_files(&mut self) {
        for command in &self.commands {
            let found = |path| CommandFinding::FileChanged { command: command.name.clone(), path };
            self.seen.extend(files::changed(&command.files, self.stop).into_iter().map(found));
        }
    }

    /// Finds where the outputs of the first run of each command and of the baseline begin to differ. Drops the kept
    /// outputs.
    fn find_partings(&mut self) {
        let outputs = std::mem::take(&mut self.outputs);
        let Some(Some(baseline)) = outputs.first() else { return };
        for (command, own) in outputs.iter().enumerate().skip(1) {
            let Some(own) = own.as_ref().filter(|_| self.are_alive[command]) else { continue };
            for (output, stream) in [Stream::Stdout, Stream::Stderr].into_iter().enumerate() {
                if self.baseline_varies(stream) {
                    continue;
                }
                let found = self.parting(command, output, &own[output], &baseline[output]);
                self.partings.extend(found.map(|at| Parting { command, stream, at }));
            }
        }
    }

    /// Whether the baseline's first runs wrote different output.
    fn baseline_varies(&self, stream: Stream) -> bool {
        let first = self.runs.iter().filter(|run| run.phase == RunPhase::First && run.command == 0);
        let mut written = first.map(|run| match stream {
            Stream::Stdout => &run.stdout,
            Stream::Stderr => &run.stderr,
        });
        let one = written.next();
        written.any(|other| one != Some(other))
    }

    /// Where an output of a command differs from the baseline's.
    fn parting(
        &mut self,
        command: usize,
        output: usize,
        own: &OutputDigest,
        baseline: &OutputDigest,
    ) -> Option<FirstDifference> {
        let found = parting::first_block(own, baseline)?;
        if found.block == 0 {
            return parting::within(found, &own.kept, &baseline.kept);
        }
        let own = self.block_of(command, output, found.block)?;
        let baseline = self.block_of(0, output, found.block)?;
        parting::within(found, &own, &baseline)
    }

    /// A block of a command's output, from one more run of it that is part of no figure. None if it does not run; an
    /// error shows in the next run as well.
    fn block_of(&mut self, command: usize, output: usize, block: u32) -> Option<Vec<u8>> {
        if !matches!(self.around(command, Around::Prepare, self.stop), Next::On) {
            return None;
        }
        let spec = self.asked.spec(&self.asked.commands[command].words);
        let spec = RunSpec { output: OutputTo::Block(block), ..spec };
        let outcome = self.launch.run(&spec, self.stop);
        // Also after a run that failed: what ran before it has its counterpart.
        if !matches!(self.conclude(command), Next::On) {
            return None;
        }
        let outcome = outcome.ok()?;
        Some([outcome.stdout, outcome.stderr].into_iter().nth(output)?.kept)
    }

    /// Reports differences in the output of first runs at once, because a wait for a verdict would be in vain.
    fn show_differences(&self, progress: &mut dyn FnMut(&Event)) {
        let found = commands::conclude(&self.judged(None)).findings;
        let differences = found.into_iter().filter(|it| matches!(it, CommandFinding::OutputDiffers { .. }));
        differences.map(Event::OutputDiffers).for_each(|event| progress(&event));
    }

    fn show(&mut self, done: u32, progress: &mut dyn FnMut(&Event)) {
        let now_ns = self.launch.now_ns();
        if now_ns.saturating_sub(self.estimated_ns) >= ESTIMATE_EVERY_NS {
            self.estimated_ns = now_ns;
            self.estimate = commands::so_far(&self.judged(None));
        }
        progress(&Event::Pair { done, pairs: self.plan.pairs, estimate: self.estimate });
    }

    /// What there is to judge, of a comparison that goes on or has ended in this way.
    fn judged(&self, ended: Option<CommandEnd>) -> Judged<'_> {
        Judged {
            commands: &self.commands,
            runs: &self.runs,
            pairs: self.plan.pairs,
            unit_pairs: self.asked.servers.as_ref().map(|_| self.plan.unit_pairs),
            is_interrupted: ended == Some(CommandEnd::Interrupted),
            is_ended_by_server: ended == Some(CommandEnd::ServerEnded),
            equivalence_margin: self.asked.settings.equivalence_margin,
            ignore_failure: self.asked.settings.ignore_failure,
            is_served: self.asked.servers.is_some(),
            limit_ns: self.asked.settings.limit_ns,
            measured_by: self.measured_by,
            thresholds: &self.asked.thresholds,
            seen: &self.seen,
            partings: &self.partings,
        }
    }

    /// The whole record.
    fn comparison(mut self, ended: CommandEnd) -> CommandComparison {
        if let Some(reason) = &self.measured_by.cpu_source_reason {
            self.seen.push(CommandFinding::NoControlGroup { reason: reason.clone() });
        }
        let judged = self.judged(Some(ended));
        let Conclusion { effects, thresholds, findings, pairs_done } = commands::conclude(&judged);
        CommandComparison {
            parameters: self.asked.parameters.clone(),
            plan: self.plan,
            pairs_done,
            ended,
            elapsed_ns: self.launch.now_ns().saturating_sub(self.began_ns),
            findings,
            effects,
            system_calls: self.system_calls,
            thresholds_asked: self.asked.thresholds.clone(),
            thresholds,
            commands: self.commands,
            runs: self.runs,
        }
    }
}

/// Whether a pilot has room for one more pair that takes about as long as the one before.
fn pilot_goes_on(pairs: u32, took_ns: u64, next_ns: u64, budget_ns: u64) -> bool {
    let share = if pairs < PILOT_PAIRS_MIN { PILOT_FEWEST_SHARE } else { PILOT_SHARE };
    pairs < PILOT_PAIRS_MAX && took_ns.saturating_add(next_ns) as f64 <= share * budget_ns as f64
}

#[cfg(test)]
mod tests;
