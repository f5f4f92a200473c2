//! Where the CPU of a server goes, and where that of one arm is more than another's.
//!
//! An account is one of places, not of causes. Its parts are measured while the kernel's programs watch, with what
//! watching added taken out, and are compared with the CPU of unobserved slices of the same rounds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::goal::Outcome;

/// A place where a server's CPU goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "name")]
pub enum CpuPart {
    /// System calls of one kind, with the way into the kernel and out of it, without softirqs where these are known.
    Call(String),
    /// Kinds of system calls that are a small part each.
    OtherCalls,
    /// Softirqs that ran on the server's threads, most of them within its calls.
    Softirqs,
    /// Threads that the kernel runs for io_uring.
    UringThreads,
    /// Time that the scheduler charges to the server's threads before they run: switching to them, which takes
    /// microseconds where a CPU was idle.
    Switching,
    /// The server's own work, by its engine's clock.
    Server,
    /// What no part explains; less than nothing where the parts are too large.
    Unexplained,
    /// All that is not in a call, for servers without such a clock.
    OutsideCalls,
}

impl CpuPart {
    /// Its name in exported data.
    pub fn key(&self) -> String {
        match self {
            Self::Call(name) => return format!("call-{name}"),
            Self::OtherCalls => "other-calls",
            Self::Softirqs => "softirqs",
            Self::UringThreads => "uring-threads",
            Self::Switching => "switching",
            Self::Server => "server",
            Self::Unexplained => "unexplained",
            Self::OutsideCalls => "outside-calls",
        }
        .to_owned()
    }

    /// Whether it was measured, and is not what is left.
    pub fn is_measured(&self) -> bool {
        !matches!(self, Self::Unexplained | Self::OutsideCalls)
    }
}

/// A mean over rounds with its interval, in nanoseconds for each message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Amount {
    /// Mean.
    pub ns: f64,
    /// Lower and upper end; absent where rounds are few.
    pub interval: Option<(f64, f64)>,
}

impl Amount {
    /// Whether it is known to be more than nothing, or less.
    pub fn is_told_from_nothing(&self) -> bool {
        self.interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }
}

/// Where the CPU of one arm in one cell goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuAccount {
    /// Rounds with a slice that was watched and one that was not.
    pub rounds: u32,
    /// Server CPU of the unobserved slices.
    pub server_cpu: Amount,
    /// Its parts, the largest first, what is left last. They add up to it.
    pub parts: Vec<(CpuPart, Amount)>,
    /// System calls by name together with the softirqs that ran within them, which the parts have in two places. A
    /// segment that is sent over loopback is received in a softirq within the sender's call. Only where these softirqs
    /// are more than a small part of the CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with_softirqs: Vec<(String, Amount)>,
    /// What share of the CPU the measured parts are; of servers whose own work is measured.
    pub explained: Option<Explained>,
}

/// How much of the CPU is explained by parts that were measured each by itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explained {
    /// Mean over rounds.
    pub share: f64,
    /// Lower and upper end.
    pub interval: Option<(f64, f64)>,
    /// Whether that is all but 5 % at least, by the whole interval, and not known to be more than there is.
    pub outcome: Outcome,
    /// The whole interval is above 105 %: the parts explain more than there is, and some of them are wrong.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_beyond: bool,
}

impl Explained {
    /// An account closes when its parts lack at most this share of the CPU, and is beyond it when they have more than
    /// this share too much.
    pub const GAP_MAX: f64 = 0.05;
}

/// Where one arm uses more CPU than another in a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CpuDifference {
    /// Cell.
    pub cell_id: String,
    /// Arm.
    pub arm: String,
    /// What it is compared with.
    pub baseline: String,
    /// Rounds in which both have an account.
    pub rounds: u32,
    /// Each part of the arm less the same of the other, within rounds: first those that are known to differ, and of
    /// each kind the largest difference first, whatever its sign.
    pub parts: Vec<(CpuPart, Amount)>,
    /// The same of system calls together with the softirqs that ran within them, which the parts have in two places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with_softirqs: Vec<(String, Amount)>,
    /// The whole difference, to which the parts add up.
    pub whole: Amount,
}
