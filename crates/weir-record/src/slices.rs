//! How the laboratory and a generator that loads several servers in turn talk: one JSON value a line, on the
//! generator's standard input and output. Not documented for users: both ends are always of one build.
//!
//! The generator is told what it will load ([`SliceSetup`]), opens all connections and says so. After that it does one
//! thing for each command and answers when nothing is in flight any more. While it waits for a command it sleeps, so
//! that the laboratory may read clocks: no server has anything to do then.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::load::{FailureCounts, LoadReport};

/// The first line a generator reads: what it will load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SliceSetup {
    /// Addresses of the servers, each with connections of its own.
    pub targets: Vec<String>,
    /// What is sent.
    pub message: SliceMessage,
    /// Connections to each server.
    pub connections: u32,
    /// Further connections to each server that stay silent.
    pub idle_connections: u32,
    /// Messages in flight on each connection; in an open loop, at most.
    pub depth: u32,
    /// Messages a second over all connections of the server whose turn it is, and whether their gaps are exponential;
    /// absent in a closed loop.
    pub rate: Option<(f64, bool)>,
    /// Generator threads.
    pub workers: u32,
    /// CPUs of the threads, in turn; empty does not pin.
    pub pin: Vec<usize>,
    /// Seed of payloads and arrivals.
    pub seed: u64,
    /// Driver of the generator.
    pub driver: String,
    /// Engine options of the generator.
    pub options: BTreeMap<String, String>,
    /// Longest wait for a connection; zero for the generator's own.
    pub connect_timeout_ns: u64,
    /// Longest wait for a response; zero for the generator's own.
    pub response_timeout_ns: u64,
}

/// What is sent in a slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SliceMessage {
    /// Bytes that must come back.
    Echo {
        /// Bytes of a message.
        bytes: u32,
    },
    /// GET requests.
    Http {
        /// Path and query.
        path: String,
        /// Content that is right, as `weir load http --expect-content` takes it.
        content: String,
    },
}

/// What a generator is told to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SliceCommand {
    /// Send so many messages on each connection of a target. Connections that are gone are opened again.
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
    },
    /// Report on everything that was run, and end.
    Finish,
}

/// What a generator answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// What one command came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
