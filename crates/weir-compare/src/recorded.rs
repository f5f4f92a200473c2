//! A run in the form of the record.

use weir_record::commands::{CommandRun, RunEnding, RunFigures, RunPhase, Written};

use crate::{
    run::{OutputDigest, OutputTo, RunCost, RunEnd, RunOutcome},
    servers::Loaded,
};

/// Most characters of a failed run's message that are kept.
const SAID_MAX: usize = 400;

/// Which run it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// Why it is made.
    pub(crate) phase: RunPhase,
    /// Number of its pair.
    pub(crate) pair: u32,
    /// Its place in the pair.
    pub(crate) place: usize,
    /// Place of its command.
    pub(crate) command: usize,
    /// Whether it is the baseline's second run.
    pub(crate) repeat: bool,
    /// When it began.
    pub(crate) started_ns: u64,
}

/// The record of a run.
pub(crate) fn run(turn: Turn, outcome: &RunOutcome, output: &OutputTo) -> CommandRun {
    let end = ending(outcome.end);
    CommandRun {
        phase: turn.phase,
        pair: turn.pair,
        place: count(turn.place),
        command: count(turn.command),
        repeat: turn.repeat,
        started_ns: turn.started_ns,
        end,
        cost: figures(&outcome.cost),
        stdout: written(&outcome.stdout, output),
        stderr: written(&outcome.stderr, output),
        children_left: outcome.children_left,
        children_left_names: outcome.children_left_names.clone(),
        said: if end.is_success() { String::new() } else { said(outcome) },
        load: None,
    }
}

/// The record of a run of a load. The output of a load is not compared.
pub(crate) fn load_run(turn: Turn, loaded: &Loaded) -> CommandRun {
    let of_load = run(turn, &loaded.outcome, &OutputTo::Discard);
    let end = if loaded.lacks_count { RunEnding::NoCount } else { of_load.end };
    CommandRun {
        end,
        cost: RunFigures { work: loaded.work, ..of_load.cost },
        said: if end.is_success() { String::new() } else { said(&loaded.outcome) },
        load: Some(loaded.beside),
        ..of_load
    }
}

/// The end of a run's standard error, or of its standard output if standard error is empty.
pub(crate) fn said(outcome: &RunOutcome) -> String {
    let stderr = outcome.stderr.tail.trim();
    let text = if stderr.is_empty() { outcome.stdout.tail.trim() } else { stderr };
    let skipped = text.chars().count().saturating_sub(SAID_MAX);
    text.chars().skip(skipped).collect()
}

/// How a run ended.
pub(crate) fn ending(end: RunEnd) -> RunEnding {
    match end {
        RunEnd::Exited(status) => RunEnding::Exited(status),
        RunEnd::Killed { out_of_memory: true, .. } => RunEnding::OutOfMemory,
        RunEnd::Killed { signal, .. } => RunEnding::Killed(signal),
        RunEnd::Overran => RunEnding::Overran,
    }
}

fn figures(cost: &RunCost) -> RunFigures {
    RunFigures {
        wall_ns: cost.wall_ns,
        user_ns: cost.user_ns,
        system_ns: cost.system_ns,
        memory_bytes_max: cost.memory_bytes_max,
        memory_bytes_below: cost.memory_bytes_below,
        faults_minor: cost.faults_minor,
        faults_major: cost.faults_major,
        switches_voluntary: cost.switches_voluntary,
        switches_involuntary: cost.switches_involuntary,
        read_bytes: cost.read_bytes,
        written_bytes: cost.written_bytes,
        instructions: cost.instructions,
        work: None,
    }
}

/// The output where outputs are compared; elsewhere none.
fn written(digest: &OutputDigest, output: &OutputTo) -> Written {
    match output {
        OutputTo::Digest | OutputTo::Blocks | OutputTo::Block(_) => {
            Written { bytes: digest.bytes, content: digest.hash.clone() }
        }
        OutputTo::Discard | OutputTo::File(_) | OutputTo::Log(_) | OutputTo::Inherit => Written::default(),
    }
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
