//! A validity check of a study: its name, whether it holds, and what was found.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finding::Finding;

/// One validity check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Stable name (`bytes-verified`, `failures-classified`, `littles-law`, `generator-headroom`, …).
    pub name: CheckName,
    /// Whether it holds.
    pub passed: bool,
    /// What was found, with the numbers.
    pub detail: Finding,
}

/// The enum with a stable name for each check, so that none can be left out of [`CheckName::as_str`].
macro_rules! check_names {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// What a check asserts.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub enum CheckName {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
            /// A check of another version.
            #[serde(untagged)]
            Other(String),
        }

        impl CheckName {
            /// Every check of this version, without [`CheckName::Other`].
            pub const ALL: &[CheckName] = &[$(CheckName::$variant,)*];

            /// The stable name.
            pub fn as_str(&self) -> &str {
                match self {
                    $(CheckName::$variant => $name,)*
                    CheckName::Other(name) => name,
                }
            }
        }
    };
}

check_names! {
    /// Every byte came back.
    BytesVerified = "bytes-verified",
    /// Every response of HTTP was right.
    ResponsesChecked = "responses-checked",
    /// The kernel counted the same operations as the tools.
    OperationsCounted = "operations-counted",
    /// Names the checks that a study does without; it has no outcome.
    NotAsked = "not-asked",
    /// Computed trials repeat.
    Repeatable = "repeatable",
    /// Every reply came in its turn.
    RepliesChecked = "replies-checked",
    /// The gateway received twice what the exchange did.
    ChainWhole = "chain-whole",
    /// No work lay beside a sleeping worker.
    WakesRecovered = "wakes-recovered",
    /// Every failure has a class.
    FailuresClassified = "failures-classified",
    /// Little's law holds.
    LittlesLaw = "littles-law",
    /// The generator had headroom.
    GeneratorHeadroom = "generator-headroom",
    /// Every trial gave a report.
    Processes = "processes",
    /// The offered rate was kept.
    RateKept = "rate-kept",
    /// No completion queue overflowed.
    CompletionOverflow = "completion-overflow",
    /// The machine's states are known.
    MachineStates = "machine-states",
    /// The kernel's programs saw everything.
    ProgramsComplete = "programs-complete",
    /// Engine and kernel counted the same calls.
    CallsAgree = "calls-agree",
    /// The calls that were seen account for the work.
    CallsCover = "calls-cover",
    /// What was planted leads the table of parts.
    PlantedLeads = "planted-leads",
    /// What its place among the slices does to one is small.
    SliceOrder = "slice-order",
    /// Slices send what long ones do.
    Segments = "segments",
    /// The network between two hosts lost few packets.
    LinkLosses = "link-losses",
    /// Slices hold enough messages on each connection.
    SliceLength = "slice-length",
    /// Servers were warm.
    Warm = "warm",
    /// What rounds scatter by is known.
    RoundComponents = "round-components",
    /// Noise excluded trials of all arms alike.
    ExclusionsBalanced = "exclusions-balanced",
    /// The hypervisor took little CPU time.
    Steal = "steal",
    /// Other processes were quiet.
    ForeignCpu = "foreign-cpu",
    /// The machine stayed what it was.
    SteadyMachine = "steady-machine",
    /// Warm-ups became steady.
    SteadyWarmUp = "steady-warm-up",
    /// Arms ran in the drawn order.
    Interleaving = "interleaving",
    /// The schedule was finished.
    Schedule = "schedule",
    /// The baseline agrees with itself.
    BaselineAgainstItself = "baseline-against-itself",
    /// No two arms are the same.
    DistinctArms = "distinct-arms",
    /// Arms on io_uring enter its ring, and no others do.
    RingUse = "ring-use",
    /// No program of Weir is built for development.
    ReleaseBuild = "release-build",
    /// No program changed while the study ran.
    ProgramsUnchanged = "programs-unchanged",
}

impl fmt::Display for CheckName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_recorded_as_it_always_was() {
        for name in CheckName::ALL {
            let text = serde_json::to_string(name).expect("it is plain data");
            assert_eq!(text, format!("\"{name}\""));
            assert_eq!(serde_json::from_str::<CheckName>(&text).expect("it is a name"), *name);
        }
        assert_eq!(CheckName::BaselineAgainstItself.as_str(), "baseline-against-itself");
        let other: CheckName = serde_json::from_str("\"balanced-order\"").expect("it is a name");
        assert_eq!(other, CheckName::Other("balanced-order".to_owned()));
        assert_eq!(serde_json::to_string(&other).expect("it is plain data"), "\"balanced-order\"");
    }
}
