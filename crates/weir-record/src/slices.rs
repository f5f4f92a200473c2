//! How the laboratory and a generator that loads several servers in turn talk: one JSON value a line, on the
//! generator's standard input and output. Not documented for users: both ends are always of one build.
//!
//! The generator is told what it will load ([`SliceSetup`]), opens all connections and says so. After that it does one
//! thing for each command and answers when nothing is in flight any more. While it waits for a command it sleeps, so
//! that the laboratory may read clocks: no server has anything to do then.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{failure::FailureCounts, load::LoadReport};

/// The first line a generator reads: what it will load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SliceSetup {
    /// For each server what `weir load` is told to load it, beginning with `load`. All are of one protocol and of one
    /// shape; how long and with what warm-up a load is has no meaning here.
    pub loads: Vec<Vec<String>>,
}

/// What a generator does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SliceCommand {
    /// Send a number of messages on each connection of a target. Connections that are gone are opened again.
    Prime {
        /// Index into the targets.
        target: u32,
        /// Messages for each connection.
        messages_each: u32,
    },
    /// Load a target for so long, then wait for what is in flight.
    Run {
        /// Index into the targets.
        target: u32,
        /// How long messages are started.
        length_ns: u64,
        /// Whether it is in the report on its target; a slice of evidence is not.
        is_timed: bool,
        /// Seed of the arrivals of an open loop. Slices that are compared have the same one.
        arrivals_seed: u64,
    },
    /// Report on everything that was run, and end.
    Finish,
}

/// What a generator answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SliceAnswer {
    /// All connections were tried.
    Ready {
        /// Connections open to each target.
        opened: Vec<u32>,
        /// What the last failed attempt said, for each target.
        failures: Vec<Option<String>>,
    },
    /// A command was carried out and nothing is in flight.
    Done(SliceCounts),
    /// One report for each target, over all its timed slices; primes are not in it.
    Finished(Vec<LoadReport>),
}

/// The result of one command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SliceCounts {
    /// Messages completed and verified.
    pub messages: u64,
    /// From the first start to the last answer.
    pub length_ns: u64,
    /// CPU of the generator's threads.
    pub generator_cpu_ns: u64,
    /// Failures by class.
    pub failures: FailureCounts,
    /// What the last failure said.
    pub failure_last: Option<String>,
    /// Connections that had to be opened again.
    pub reopened: u32,
    /// Intended starts that were never made (open loop).
    pub missed_starts: u64,
}
