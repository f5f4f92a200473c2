//! What the kernel and the engines say of an arm beside its figures: rows, each with who says it.
//!
//! Evidence is read in separate slices ([`crate::trial::EvidenceSlice`]). They are in no figure, so that
//! nothing that is compared was ever observed by more than its clocks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    cpu_account::CpuAccount,
    figure::{Figure, PairedRatio},
    machine::NetworkCounters,
    observation::{Rung, StraceRow},
};

/// The result of the slices of evidence of one arm in one cell. Amounts are for each message of the slices they are of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArmEvidence {
    /// Cell.
    pub cell_id: String,
    /// Arm.
    pub arm: String,
    /// The highest rung that saw it.
    pub rung: Rung,
    /// Slices on that rung.
    pub slices: u32,
    /// Messages in them.
    pub messages: u64,
    /// Server CPU for each, in nanoseconds.
    pub server_cpu_ns: f64,
    /// Voluntary and involuntary context switches for each.
    pub context_switches: (f64, f64),
    /// How much one call does.
    #[serde(default)]
    pub batches: Batches,
    /// Who woke the server's threads, most often first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wakers: Vec<Waker>,
    /// Softirqs for each: on the server's threads, and elsewhere on the machine.
    #[serde(default)]
    pub softirq_ns: Option<(f64, f64)>,
    /// Whether the kernel charges no process for softirqs, so that they are in no server CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub softirqs_are_apart: Option<bool>,
    /// CPU of server, generator and softirq threads for each; from unobserved slices, where there are any.
    #[serde(default)]
    pub machine_cpu_ns: f64,
    /// CPU of the generator's threads for each, of the same slices; absent in older evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_cpu_ns: Option<f64>,
    /// TCP in trouble in the server's network namespace, over all slices; absent in older evidence.
    #[serde(default)]
    pub network: Option<NetworkCounters>,
    /// System calls by kind, those with most time on a CPU first; empty where the kernel's programs could not run.
    pub calls: Vec<CallEvidence>,
    /// All of them together by round; absent where no call was seen, and in older evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_calls: Option<AllCalls>,
    /// Whether engine and kernel counted the same calls; for servers of Weir that the programs saw.
    pub coverage: Option<Coverage>,
    /// What its calls moved, compared with what its messages need; for any server that the programs saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed: Option<Needed>,
    /// Server CPU of slices the programs saw over that of those they did not, of the same rounds; absent where these
    /// are few.
    pub tax: Option<PairedRatio>,
    /// The same of each group of programs, where slices were watched by fewer of them: by those at system calls over
    /// none, by readings of /proc over none, and by one further group over those at system calls alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tax_by_group: Vec<GroupTax>,
    /// Where its server CPU goes; absent where the kernel's programs could not run beside a slice without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<CpuAccount>,
}

impl ArmEvidence {
    /// Server CPU for each message that is in none of the calls. Less than nothing says that the calls' times are
    /// wrong by as much.
    pub fn outside_ns(&self) -> f64 {
        self.server_cpu_ns - self.calls.iter().map(|call| call.on_cpu_ns).sum::<f64>()
    }

    /// What part of the server CPU of these slices that is.
    pub fn share(&self, on_cpu_ns: f64) -> f64 {
        on_cpu_ns / self.server_cpu_ns.max(f64::MIN_POSITIVE)
    }
}

/// What a group of the kernel's programs costs, or reading /proc ten times a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupTax {
    /// `calls`, `proc`, `scheduling`, `io_uring`, `softirqs`.
    pub group: String,
    /// Server CPU with it over that without it, of the same rounds.
    pub ratio: PairedRatio,
}

/// How much one call does, by the engine's count, or by the kernel's where there is no engine of ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Batches {
    /// Ready descriptors that a wait brings (`epoll_wait` and its kin).
    pub events_per_wait: Option<f64>,
    /// Submissions that a call of `io_uring_enter` takes.
    pub submissions_per_enter: Option<f64>,
    /// Completions for each such call.
    pub completions_per_enter: Option<f64>,
}

/// Who woke threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Waker {
    /// Name of the thread, or the softirq.
    pub name: String,
    /// Wake-ups for each message.
    pub count: f64,
    /// How long the woken had slept, for each wake-up.
    pub slept_ns: f64,
}

/// At most this many are named; the others are one row.
pub const WAKERS_MAX: usize = 6;

/// A kind of system call, for each message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallEvidence {
    /// Its name.
    pub name: String,
    /// Calls that returned.
    pub count: f64,
    /// Time on a CPU, interrupts included, in nanoseconds.
    pub on_cpu_ns: f64,
    /// Time asleep.
    pub blocked_ns: f64,
    /// Time from a wake-up or a preemption to the next run.
    pub queued_ns: f64,
    /// What one call returned on average: bytes, events, or submissions.
    pub returned: f64,
}

/// System calls of all kinds together, for each message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AllCalls {
    /// Calls that returned.
    pub count: OverRounds,
    /// Their time on a CPU, in nanoseconds.
    pub on_cpu_ns: OverRounds,
}

/// One figure from each round's slices of evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverRounds {
    /// One for each round that has such slices.
    pub rounds: Vec<f64>,
    /// Their geometric mean, with its 99 % interval where the rounds are three or more.
    pub mean: Figure,
}

/// System calls of one arm in one cell as `strace -c -f -w` counts them, beside the kernel's programs. Amounts that are
/// not for each message are for each second of load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnderStrace {
    /// Cell.
    pub cell_id: String,
    /// Arm.
    pub arm: String,
    /// Length of its slice.
    pub length_ns: u64,
    /// Messages in it.
    pub messages: u64,
    /// By kind, most time first.
    pub rows: Vec<StraceRow>,
    /// Its throughput over that of slices that nothing but clocks observed, of the same rounds.
    pub kept: Option<f64>,
    /// All calls as the kernel's programs count them; absent where they could not run.
    pub kernel: Option<KernelTime>,
    /// Calls that received or sent something, by its count, against those that the messages need; operations of
    /// io_uring are in no such count. Absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed: Option<SeenOfNeeded>,
}

impl UnderStrace {
    /// What strace sums: time between begin and end of all calls, in nanoseconds for each second of load.
    pub fn time_ns_per_second(&self) -> f64 {
        let time_ns: u64 = self.rows.iter().map(|row| row.time_ns).sum();
        time_ns as f64 * 1e9 / (self.length_ns as f64).max(f64::MIN_POSITIVE)
    }
}

/// Time in all system calls, in slices that the kernel's programs saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelTime {
    /// Between begin and end, in nanoseconds for each second of load.
    pub wall_ns_per_second: f64,
    /// The part of it that was not asleep.
    pub awake_ns_per_second: f64,
    /// The part of that on a CPU.
    pub on_cpu_ns_per_second: f64,
    /// On a CPU, for each message.
    pub on_cpu_ns: f64,
}

/// Calls for I/O of a server as its engine counted them and as the kernel did, in all slices.
///
/// An engine counts a call when it makes it, and the kernel's programs see it begin: those that returned and those that
/// were under way at the end are what the engine counted. One that was under way at the beginning is in neither.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// By the engine.
    pub engine: u64,
    /// By the kernel's programs.
    pub kernel: u64,
    /// Calls of each kind that one of them may have counted and the other not: the engine is read a moment before the
    /// programs begin and a moment after they end.
    pub at_edges: u64,
    /// The engine did not count all of these kinds yet: how many calls it made is not known, and the two say nothing of
    /// each other.
    #[serde(default)]
    pub is_unknown: bool,
    /// The same by kind; empty in older evidence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<CallsOfKind>,
}

/// Calls of one kind, counted twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallsOfKind {
    /// `enter`, `wait`, `receive`, `send`, `interest`, `accept`.
    pub kind: String,
    /// By the engine.
    pub engine: u64,
    /// By the kernel's programs.
    pub kernel: u64,
}

impl Coverage {
    /// Largest difference that is none, as a share of the calls of a kind.
    pub const ERROR_MAX: f64 = 0.001;

    /// Whether both are known to have counted the same, of every kind.
    pub fn agrees(&self) -> bool {
        !self.is_unknown && self.is_same(self.engine, self.kernel) && self.apart().next().is_none()
    }

    /// Kinds of which they counted different numbers.
    pub fn apart(&self) -> impl Iterator<Item = &CallsOfKind> {
        self.kinds.iter().filter(move |it| !self.is_same(it.engine, it.kernel))
    }

    fn is_same(&self, engine: u64, kernel: u64) -> bool {
        let apart = engine.abs_diff(kernel).saturating_sub(self.at_edges);
        apart as f64 <= Self::ERROR_MAX * engine.max(kernel) as f64
    }
}

/// What was seen to move, compared with what the messages need: whether the calls of the table are those that moved
/// them. What is needed is a lower bound: heads and log files come on top.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Needed {
    /// Bytes that calls received, and those of the messages; absent where io_uring moved some, of which the kernel's
    /// programs do not see how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_bytes: Option<SeenOfNeeded>,
    /// Bytes that calls sent, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_bytes: Option<SeenOfNeeded>,
    /// Calls that received or sent something, with operations of io_uring that began and that ended; against one to
    /// receive and one to send for as many messages as a connection has in flight.
    pub moves: SeenOfNeeded,
}

impl Needed {
    /// Messages may be under way at an edge of a slice.
    pub const SHARE_MIN: f64 = 0.99;

    /// The smallest share of what was needed that was seen.
    pub fn share(&self) -> f64 {
        let bytes = [self.received_bytes, self.sent_bytes].into_iter().flatten();
        bytes.chain([self.moves]).map(|it| it.share()).fold(f64::INFINITY, f64::min)
    }

    /// Whether what was seen is enough to have moved the messages.
    pub fn is_covered(&self) -> bool {
        self.share() >= Self::SHARE_MIN
    }
}

/// An amount, and how much of it there must have been.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeenOfNeeded {
    /// What was seen.
    pub seen: u64,
    /// What is needed at least.
    pub needed: u64,
}

impl SeenOfNeeded {
    /// What part of it was seen; all where nothing is needed.
    pub fn share(self) -> f64 {
        if self.needed == 0 { 1.0 } else { self.seen as f64 / self.needed as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coverage(engine: u64, kernel: u64) -> Coverage {
        let of_kind = |kind: &str, engine, kernel| CallsOfKind { kind: kind.to_owned(), engine, kernel };
        // What one kind lacks another has: the sums are equal.
        let kinds = vec![of_kind("receive", engine, kernel), of_kind("send", kernel, engine)];
        Coverage { engine: engine + kernel, kernel: engine + kernel, at_edges: 6, is_unknown: false, kinds }
    }

    #[test]
    fn engine_and_kernel_agree_when_they_do_so_of_every_kind() {
        assert!(coverage(10_000, 10_000).agrees());
        assert!(coverage(10_000, 10_016).agrees(), "6 at the edges, 10 in 10,000");
        let apart = coverage(10_000, 10_017);
        assert!(!apart.agrees(), "the sums are equal and the kinds are not");
        assert_eq!(apart.apart().map(|it| it.kind.as_str()).collect::<Vec<_>>(), ["receive", "send"]);
        assert!(!Coverage { is_unknown: true, ..coverage(10_000, 10_000) }.agrees());
    }

    #[test]
    fn what_was_seen_is_as_much_as_the_least_of_it() {
        let of = |seen, needed| SeenOfNeeded { seen, needed };
        let all =
            Needed { received_bytes: Some(of(640, 640)), sent_bytes: Some(of(700, 640)), moves: of(20, 20) };
        assert!(all.is_covered() && all.share() == 1.0);
        let half = Needed { sent_bytes: Some(of(320, 640)), ..all.clone() };
        assert!(!half.is_covered() && half.share() == 0.5);
        let ring = Needed { received_bytes: None, sent_bytes: None, moves: of(30, 20) };
        assert!(ring.is_covered() && ring.share() == 1.5);
        assert!(Needed::default().is_covered(), "nothing was needed");
    }
}
