//! What surrounds the start of an arm's server, and servers that are not started at all.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The environment of an arm's server, and the commands before and after it. Only for servers that the laboratory
/// starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ArmStart {
    /// Variables of its environment, beside those that the laboratory has.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Its working folder; absent for the laboratory's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Program and arguments that run to their end before each start; empty for none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<String>,
    /// The same after each end of the server, however it ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cleanup: Vec<String>,
    /// Time limit of either of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_ns_max: Option<u64>,
    /// How a foreign server shows that it can be loaded.
    #[serde(skip_serializing_if = "Ready::is_port")]
    pub ready: Ready,
    /// Longest wait for that; absent for the laboratory's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_ns_max: Option<u64>,
}

impl ArmStart {
    /// Whether it says nothing.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How a server shows that it is ready.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ready {
    /// Its port accepts a connection.
    #[default]
    Port,
    /// It writes a line that contains this text.
    Line(String),
    /// This program with its arguments ends with status 0; it is run again until it does.
    Command(Vec<String>),
}

impl Ready {
    fn is_port(&self) -> bool {
        *self == Self::Port
    }
}

/// A server that ran before the study. The laboratory starts, pins and ends none of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunningServer {
    /// Where it listens: `HOST:PORT`.
    pub address: String,
    /// The process whose CPU counts, with all below it; absent for the one that listens there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The control group whose CPU counts in the place of a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
}
