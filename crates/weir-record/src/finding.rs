//! What the laboratory found, as codes with arguments: a report tells them in its reader's language, a script reads
//! them as they are. A text of an older record stays what it was.

mod arguments;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use arguments::*;

use crate::{
    kernel::KernelVersion,
    observation::{Obstacle, Rung},
};

/// The enum with a stable code for each variant, so that nothing can be left out of [`Finding::CODES`].
macro_rules! findings {
    ($($(#[$doc:meta])* $name:ident = $code:literal $({ $($(#[$note:meta])* $field:ident: $kind:ty,)* })?)*) => {
        /// One thing the laboratory found. Counts are of trials, unless the name says otherwise; shares and errors are
        /// fractions.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "code")]
        pub enum Finding {
            $($(#[$doc])* #[serde(rename = $code)] $name $({ $($(#[$note])* $field: $kind,)* })?,)*
            /// A sentence of an older record.
            #[serde(untagged)]
            Text(String),
        }

        impl Finding {
            /// Every code, in the order of the variants.
            pub const CODES: &[&str] = &[$($code),*];

            /// The stable name; what a text says is its own.
            pub fn code(&self) -> &str {
                match self {
                    $(Finding::$name { .. } => $code,)*
                    Finding::Text(text) => text,
                }
            }
        }
    };
}

findings! {
    /// Echoed bytes were compared.
    BytesCompared = "bytes-compared" {
        /// Bytes.
        compared: u64,
        /// Bytes that should have been.
        expected: u64,
        /// Responses with a wrong byte.
        wrong: u64,
    }
    /// HTTP responses were checked.
    ResponsesChecked = "responses-checked" {
        /// Content whose framing and length were checked.
        bytes: u64,
        /// Content that should have been.
        bytes_expected: u64,
        /// Responses compared byte for byte.
        compared: u64,
        /// Responses.
        responses: u64,
        /// The share of the former in the latter.
        compared_share: f64,
        /// Responses with a wrong byte.
        wrong: u64,
    }
    /// A storage tool's own counts, held against the kernel's account of the bytes.
    OperationsCounted = "operations-counted" {
        /// By the kernel's account.
        operations: u64,
        /// Median difference of the tool's own rate from it.
        error: f64,
        /// Largest that passes.
        error_max: f64,
    }
    /// Replies to orders were checked.
    RepliesChecked = "replies-checked" {
        /// Replies.
        checked: u64,
        /// Replies in another order than their orders.
        inversions: u64,
        /// Trials in which shares do not add up.
        unbalanced: u64,
        /// Trials.
        trials: u64,
    }
    /// What gateway and exchange received was held against each other.
    ChainWhole = "chain-whole" {
        /// Trials in which every order went out once and came back once.
        whole: u64,
        /// Trials.
        trials: u64,
    }
    /// Work that lay beside a sleeping worker.
    WakesRecovered = "wakes-recovered" {
        /// Messages found by the once-a-second look.
        recovered: u64,
        /// Messages handed over.
        pushed: u64,
    }
    /// What a storage job is not asked, because it is its own load.
    NotAsked = "not-asked"
    /// Whether what was computed twice with one seed came out the same.
    Repeatable = "repeatable" {
        /// Second runs of the baseline that are the first ones bit for bit.
        same: u64,
        /// Second runs.
        repeats: u64,
        /// Trials that were computed.
        simulated: u64,
    }
    /// Responses failed, or none did.
    Failures = "failures" {
        /// All of them.
        count: u64,
        /// By class, without the classes nothing fell into.
        classes: Vec<FailureCount>,
    }
    /// Trials gave their reports.
    Reports = "reports" {
        /// Trials without one.
        missing: u64,
        /// Trials.
        trials: u64,
        /// The first without one.
        first: Option<FailedTrial>,
    }
    /// Little's law.
    LittlesLaw = "littles-law" {
        /// What is in flight.
        kind: MessageKind,
        /// Median difference between its two sides.
        error: f64,
        /// Trials over the limit.
        over: u64,
        /// Trials.
        trials: u64,
        /// The limit, before what the edges of the window explain.
        error_max: f64,
    }
    /// Little's law for a job that says what it has in flight.
    InFlightAsGiven = "in-flight-as-given" {
        /// Median surplus over what it was given.
        surplus: f64,
        /// Trials over the limit.
        over: u64,
        /// Trials.
        trials: u64,
        /// The limit.
        surplus_max: f64,
    }
    /// Where the generator was the limit.
    GeneratorLimit = "generator-limit" {
        /// Closed-loop trials in which it was.
        bound: u64,
        /// Closed-loop trials.
        trials: u64,
    }
    /// No cell has an open loop.
    NoOpenLoop = "no-open-loop"
    /// Whether the offered rate was kept.
    RateKept = "rate-kept" {
        /// Intended starts that were missed.
        missed: u64,
        /// Intended starts.
        starts: u64,
    }
    /// Completion queues that overflowed.
    CompletionOverflows = "completion-overflows" {
        /// How often.
        count: u64,
    }
    /// Nothing ran.
    NoTrial = "no-trial"
    /// The two sides do not have a CPU each, so there are no cross-core readings.
    NoCrossCore = "no-cross-core"
    /// The machine had one state.
    OneState = "one-state" {
        /// Cross-core round trip.
        ns: f64,
        /// Trials.
        trials: u32,
    }
    /// The machine had two states.
    TwoStates = "two-states" {
        /// Cross-core round trip in the near state.
        near_ns: f64,
        /// In the far state.
        far_ns: f64,
        /// Trials in the near state.
        near: u32,
        /// In the far state.
        far: u32,
        /// In one at the beginning and the other at the end.
        changed: u32,
    }
    /// CPU time the hypervisor took.
    Steal = "steal" {
        /// Median share.
        share: f64,
        /// Trials over the limit.
        over: u64,
        /// Trials.
        trials: u64,
        /// The limit for whole trials; slices that are compared meet the same machine.
        share_max: f64,
        /// How the trials were compared.
        unit: UnitKind,
    }
    /// CPU other processes used.
    ForeignCpu = "foreign-cpu" {
        /// Median, in CPUs.
        cpus: f64,
        /// Trials over the limit.
        over: u64,
        /// Trials.
        trials: u64,
        /// How the trials were compared.
        unit: UnitKind,
    }
    /// What the machine was like in the first half of each cell's rounds, and in the second.
    MachineDrift = "machine-drift" {
        /// CPUs that other processes used in each half; medians over trials.
        foreign_cpus: (f64, f64),
        /// Most that they may come to differ.
        foreign_cpus_change_max: f64,
        /// The baseline's CPU per message in the second half over that in the first, the median over cells; absent
        /// where no cell has rounds enough in both halves, which a machine that changes can bring about.
        server_cpu: Option<f64>,
        /// The same of its throughput.
        throughput: Option<f64>,
        /// Cells that have rounds enough in both halves.
        cells: u32,
        /// Most that either may change, as a share.
        change_max: f64,
        /// What a message is.
        kind: MessageKind,
    }
    /// Warm-ups that became steady.
    WarmUp = "warm-up" {
        /// Trials in which it did.
        steady: u64,
        /// Trials.
        trials: u64,
    }
    /// Whether the arms ran in the drawn order.
    Interleaving = "interleaving" {
        /// Blocks that did.
        matching: u64,
        /// Blocks.
        blocks: u64,
        /// What the order was drawn from.
        seed: u64,
    }
    /// How far the schedule is.
    Schedule = "schedule" {
        /// Planned blocks that ran.
        blocks_done: u32,
        /// Planned blocks.
        blocks: u32,
        /// Blocks that lack a clean pair and may be run again.
        blocks_to_repeat: u32,
        /// Whether a clean pair must be one in the near state.
        has_near_state: bool,
        /// Why it stopped; absent when it is finished.
        stopped: Option<Stopped>,
    }
    /// What its place among the slices does to one.
    SliceOrder = "slice-order" {
        /// Every effect that is too large, and some that are not.
        effects: Vec<OrderEffect>,
        /// Largest change that passes where it is more than noise.
        change_max: f64,
    }
    /// Whether slices send what long ones do.
    Segments = "segments" {
        /// Every arm that does not, and some that do.
        arms: Vec<SegmentsOfArm>,
        /// Largest difference that passes where it is more than noise.
        change_max: f64,
    }
    /// How many messages slices hold on each connection.
    SliceMessages = "slice-messages" {
        /// Every arm whose slices hold too few, or the one with fewest.
        arms: Vec<MessagesInSlices>,
        /// Fewest that pass.
        each_min: u32,
    }
    /// Whether servers were warm when their rounds were timed.
    Warming = "warming" {
        /// Every arm that was not, or the one that changes most.
        arms: Vec<WarmingArm>,
        /// Largest change that passes where it is more than noise.
        change_max: f64,
    }
    /// What rounds of the primary cell scatter by, and what would do best in the same time.
    RoundComponents = "round-components" {
        /// Each arm against its baseline.
        arms: Vec<RoundComponents>,
    }
    /// Whether the kernel's programs that observe saw everything.
    ProgramsComplete = "programs-complete" {
        /// Events at which one could not run, because it ran on that CPU already.
        missed: u64,
        /// Threads and wake-ups that found no room in a table.
        without_room: u64,
        /// Slices of evidence that they observed.
        slices: u64,
        /// Further ones that they were to observe, and could not.
        #[serde(default)]
        failed: u64,
    }
    /// Whether engines and the kernel's programs counted the same system calls, of every kind.
    CallsAgree = "calls-agree" {
        /// Arms in a cell that both counted.
        servers: u64,
        /// Kinds of which they counted different numbers, the first of them.
        apart: Vec<CallsApart>,
    }
    /// Whether the system calls that the kernel's programs saw are those that moved the messages.
    CallsCover = "calls-cover" {
        /// Arms in a cell whose calls they saw.
        servers: u64,
        /// The share of what the messages need that must be seen.
        share_min: f64,
        /// Those of which less was seen, the first of them.
        lacking: Vec<CallsLacking>,
    }
    /// Whether what was planted into arms leads their differences from the baseline, with its size.
    PlantedLeads = "planted-leads" {
        /// Differences of such arms that were looked at, each of one cell.
        differences: u64,
        /// Those in which something else leads, or the size is another; the first of them.
        apart: Vec<PlantedApart>,
    }
    /// Trials that noise excluded, by arm.
    ExclusionsByArm = "exclusions-by-arm" {
        /// Each arm's.
        arms: Vec<ArmExclusions>,
        /// That they differ by chance; the smallest of all arms, corrected for their number.
        p_value: f64,
    }
    /// The baseline was never paired with itself.
    NeverAgainstItself = "never-against-itself"
    /// The baseline against itself.
    AgainstItself = "against-itself" {
        /// Rounds or blocks.
        units: u64,
        /// Which of them.
        unit: UnitKind,
        /// What a message is.
        kind: MessageKind,
        /// CPU of the second run over that of the first.
        ratio: f64,
        /// Interval of the rule that decides.
        interval: Option<(f64, f64)>,
    }
    /// Requests of native AIO on the whole machine.
    RequestsTaken = "requests-taken" {
        /// Taken.
        taken: u64,
        /// Allowed.
        most: u64,
    }

    /// A cell has more threads than CPUs.
    Oversubscribed = "oversubscribed" {
        /// Threads of servers and generator.
        threads: u32,
        /// CPUs they share.
        cpus: u32,
    }
    /// A cell was compared in the far state.
    FarState = "far-state"
    /// An arm went on although it was stopped between its slices.
    NotStopped = "not-stopped" {
        /// Arm.
        arm: String,
        /// What part of a CPU it used meanwhile.
        share: f64,
        /// Trials in which it did.
        trials: u64,
    }
    /// A foreign arm is not told how many workers a cell has.
    WorkersNotTold = "workers-not-told" {
        /// Arm.
        arm: String,
        /// Workers of the cells in which it runs.
        workers: u32,
    }
    /// The arms of a cell do not take turns.
    WholeTrials = "whole-trials" {
        /// Why not.
        why: NoTurns,
    }
    /// How far the effect depends on the machine's state.
    StateInteraction = "state-interaction" {
        /// The ratio in the far state over that in the near one.
        ratio: f64,
        /// Its interval.
        interval: (f64, f64),
    }
    /// The effect did not stand still while it was measured. Only of effects that are ratios.
    EffectMoves = "effect-moves" {
        /// Correlation of the units' logarithms with those before them.
        lag_1: f64,
        /// The ratio in the first and in the second half of the units.
        halves: (f64, f64),
    }
    /// Connections that an arm had closed were opened again before its slices.
    Reopened = "reopened" {
        /// Arm.
        arm: String,
        /// Connections.
        connections: u64,
        /// Its slices.
        slices: u64,
    }
    /// An arm worked while it waited, and was stopped between its slices.
    StoppedBetweenSlices = "stopped-between-slices" {
        /// Arm.
        arm: String,
        /// What part of a CPU it used before it was; the median of these rounds.
        share: f64,
        /// Runs in which it was.
        stopped: u32,
        /// Its runs.
        runs: u32,
    }
    /// Nothing was measured.
    NothingMeasured = "nothing-measured"
    /// A cell was left out: no arm ran there, and none gave a capacity of which its rate would be a share.
    NoCapacity = "no-capacity" {
        /// What went wrong with one of them.
        said: String,
    }
    /// One round or block has a value and no interval.
    OneUnit = "one-unit" {
        /// Which of them.
        unit: UnitKind,
    }
    /// Every pair was excluded.
    NoPairLeft = "no-pair-left"
    /// Units without a value.
    Excluded = "excluded" {
        /// Why.
        reason: ExclusionKind,
        /// How many.
        count: u32,
    }
    /// An arm returned wrong bytes.
    WrongBytes = "wrong-bytes" {
        /// Arm.
        arm: String,
        /// Responses.
        responses: u64,
    }
    /// Failures that fall into no class.
    Unexplained = "unexplained" {
        /// Arm.
        arm: String,
        /// Failures.
        failures: u64,
    }
    /// An arm failed too often.
    TrialsFailed = "trials-failed" {
        /// Arm.
        arm: String,
        /// Trials that failed for reasons of their own.
        failed: u64,
        /// Trials.
        trials: u64,
        /// The first of them.
        first: FailedTrial,
    }
    /// An arm did not keep the offered rate.
    RateNotKept = "rate-not-kept" {
        /// Arm.
        arm: String,
        /// Trials in which it did not.
        missed: u64,
        /// Trials.
        trials: u64,
    }
    /// An arm kept the offered rate in too few slices, or whole trials, for a verdict at that rate.
    RateMissed = "rate-missed" {
        /// Arm.
        arm: String,
        /// Slices or trials in which it kept the rate.
        kept: u64,
        /// All of them.
        of: u64,
        /// What they are.
        unit: UnitKind,
    }
    /// Too few messages to know how late the generator sent.
    LagUnknown = "lag-unknown" {
        /// Arm.
        arm: String,
        /// What a message is.
        kind: MessageKind,
    }
    /// The generator sent too late for the latency to be the server's.
    LagTooLarge = "lag-too-large" {
        /// Arm.
        arm: String,
        /// p99 of the lag over the median response time.
        share: f64,
    }
    /// A rate that the generator limited.
    LowerBound = "lower-bound" {
        /// Arm.
        arm: String,
        /// Messages a second.
        per_second: f64,
        /// What a message is.
        kind: MessageKind,
    }
    /// The generator was the limit, and nothing shows both arms at one equal rate.
    NoEqualRate = "no-equal-rate"
    /// A verdict on server CPU was held against another figure.
    Witness = "witness" {
        /// Which figure.
        witness: Witness,
        /// What it says.
        seen: WitnessFigure,
        /// What it does to the verdict.
        bearing: WitnessBearing,
    }
    /// The other figure is not valid or was not measured.
    NoWitness = "no-witness" {
        /// Which figure.
        witness: Witness,
    }
    /// The other figure was measured in the machine's other state only.
    WitnessOtherState = "witness-other-state" {
        /// Which figure.
        witness: Witness,
    }
    /// An unfinished schedule decides nothing.
    Unfinished = "unfinished" {
        /// Planned blocks that ran.
        blocks_done: u32,
        /// Planned blocks.
        blocks: u32,
    }
    /// Too few units decide nothing.
    TooFewUnits = "too-few-units" {
        /// Units.
        units: u32,
        /// Fewest that decide.
        units_min: u32,
    }
    /// The interval includes no difference.
    IncludesNone = "includes-none" {
        /// What no difference is: 1 as a ratio, 0 as a difference.
        none: f64,
        /// About how many units would tell a difference of the margin; absent where nobody can say.
        units_wanted: Option<u32>,
    }
    /// The interval includes a bound of the goal.
    IncludesBound = "includes-bound" {
        /// The bound.
        bound: f64,
    }
    /// Trials there were, and too few that can be compared.
    NoUnitLeft = "no-unit-left"
    /// The sides were met in different states of the machine only.
    OtherStates = "other-states"
    /// An arm that is asked for could not run.
    ArmMissing = "arm-missing" {
        /// Arm.
        arm: String,
    }
    /// Among several claims chance is not ruled out.
    NotSignificant = "not-significant" {
        /// Corrected p.
        p_value: f64,
    }
    /// What else differs in the same direction. Nothing here shows that it is the cause.
    AlsoSyscalls = "also-syscalls" {
        /// System calls per message of the arm.
        arm: f64,
        /// Of the baseline.
        baseline: f64,
        /// What a message is.
        kind: MessageKind,
    }
    /// Two builds of one program, and no third that shows what the layout of code alone does.
    NoPlacebo = "no-placebo"
    /// What the kernel granted a driver.
    DriverGranted = "driver-granted" {
        /// Stable names (`multishot-receive`).
        features: Vec<String>,
    }
    /// The kernel does not know io_uring, or a filter says so in its place.
    NoIoUring = "no-io-uring"
    /// The administrator switched io_uring off.
    IoUringDisabled = "io-uring-disabled" {
        /// `kernel.io_uring_disabled`.
        level: u8,
    }
    /// A sandbox forbids io_uring.
    IoUringForbidden = "io-uring-forbidden"
    /// There is no locked memory left for a ring.
    IoUringMemory = "io-uring-memory"
    /// The kernel's io_uring is older than the driver needs, or is to be used as if it were.
    IoUringTooOld = "io-uring-too-old"
    /// An arm is to run as on a kernel that is newer than this one.
    KernelOlder = "kernel-older" {
        /// The kernel it is to stand for.
        asked: KernelVersion,
        /// This kernel.
        running: KernelVersion,
    }
    /// The kernel has no native AIO.
    NoNativeAio = "no-native-aio"
    /// A program is not on the search path.
    NotOnPath = "not-on-path" {
        /// Its name.
        program: String,
    }
    /// A file is not there, or is no program.
    NoProgram = "no-program" {
        /// Its path.
        program: String,
    }
    /// A server never came up.
    NeverServed = "never-served" {
        /// Trials, in each of which it failed.
        trials: u32,
        /// What it said the last time, in its own words.
        said: String,
    }
    /// A program says that it cannot run in this environment.
    CannotRunHere = "cannot-run-here" {
        /// In its own words.
        said: String,
    }
    /// A way of congestion control that a cell asks for cannot be used here.
    NoCongestionControl = "no-congestion-control" {
        /// What was asked for.
        name: String,
        /// What may be used.
        available: Vec<String>,
    }
    /// A disk cannot be used, or says nothing about a device.
    DiskUnusable = "disk-unusable" {
        /// As the one who looked at it said.
        said: String,
    }
    /// What the kernel or a program said, in its own words.
    Said = "said" {
        /// The words.
        text: String,
    }
    /// Found out with a byte through a socket pair.
    TriedOnSockets = "tried-on-sockets"
    /// Found out with a block of a file.
    TriedOnFile = "tried-on-file"
    /// Found out with two buffers, written to a file in memory with one call.
    TriedGathering = "tried-gathering"
    /// Read from files of the kernel.
    ReadFrom = "read-from" {
        /// Their paths.
        paths: Vec<String>,
    }
    /// The block came back.
    BlockRead = "block-read"
    /// Two buffers were written with one call.
    TwoBuffers = "two-buffers"
    /// A command that mends it.
    RunCommand = "run-command" {
        /// The command.
        command: String,
    }
    /// A kernel with io_uring mends it, or a filter that lets it through.
    AllowIoUring = "allow-io-uring"
    /// A container without its filter mends it.
    OpenSandbox = "open-sandbox"
    /// Having the program mends it, or naming it by its path.
    InstallProgram = "install-program"
    /// How many cores server and generator have.
    CoresFound = "cores-found" {
        /// CPUs that this process may use.
        allowed: u32,
        /// CPUs that are online.
        online: u32,
        /// Physical cores among those it may use.
        cores: u32,
        /// What the two share.
        shared: SharedPart,
    }
    /// Where server and generator are pinned.
    PinnedTo = "pinned-to" {
        /// CPUs of the server.
        server: Vec<u32>,
        /// Of the generator.
        load: Vec<u32>,
        /// Those of them that the kernel refuses.
        refused: Vec<u32>,
        /// What the two share.
        shared: SharedPart,
    }
    /// The control group has no CPU quota.
    NoCpuQuota = "no-cpu-quota"
    /// It has one.
    CpuQuota = "cpu-quota" {
        /// CPUs' worth of time.
        cpus: f64,
    }
    /// No frequency governor can be seen.
    NoGovernor = "no-governor"
    /// The frequency governor.
    Governor = "governor" {
        /// Its name.
        name: String,
        /// The frequency follows the load.
        follows_load: bool,
    }
    /// The clock source cannot be read.
    NoClockSource = "no-clock-source"
    /// The clock source.
    ClockSource = "clock-source" {
        /// Its name.
        name: String,
        /// The time is read without a system call.
        is_fast: bool,
    }
    /// How many connections a process can have open.
    DescriptorsFound = "descriptors-found" {
        /// Connections; absent without a limit.
        connections: Option<u64>,
        /// Descriptors that the hard limit allows; absent without one.
        allowed: Option<u64>,
        /// The soft limit, where it is lower and is raised.
        raised_from: Option<u64>,
        /// Descriptors in use.
        used: u64,
    }
    /// How many local ports there are.
    LocalPorts = "local-ports" {
        /// Ports.
        ports: u64,
        /// Connections to one server that they allow.
        connections: u64,
    }
    /// `net.core.somaxconn` cannot be read.
    NoAcceptQueue = "no-accept-queue"
    /// How many connections a listener queues.
    AcceptQueue = "accept-queue" {
        /// At most.
        connections_max: u64,
    }
    /// Locked memory is not limited.
    LockedMemoryFree = "locked-memory-free" {
        /// Because of CAP_IPC_LOCK.
        by_capability: bool,
    }
    /// Locked memory is limited.
    LockedMemory = "locked-memory" {
        /// In bytes.
        bytes: u64,
    }
    /// The limit of locked memory cannot be read.
    NoLockedMemory = "no-locked-memory"
    /// What the hypervisor took.
    Stolen = "stolen" {
        /// Share of CPU time since the machine started.
        since_boot: f64,
        /// Share in a window that ends now.
        now: f64,
        /// Its length.
        window_ns: u64,
    }
    /// What other processes used in a window that ends now.
    OthersUsed = "others-used" {
        /// CPUs.
        cpus: f64,
        /// Its length.
        window_ns: u64,
    }
    /// A cross-core reading of now.
    CrossCoreNow = "cross-core-now" {
        /// One CPU.
        cpu_a: u32,
        /// The other.
        cpu_b: u32,
        /// There and back.
        round_trip_ns: f64,
    }
    /// There is one CPU only.
    OneCpu = "one-cpu"
    /// What a rung of evidence gives.
    RungGives = "rung-gives" {
        /// The rung.
        rung: Rung,
    }
    /// What keeps a rung of evidence from being used.
    RungBarred = "rung-barred" {
        /// The obstacle.
        obstacle: Obstacle,
    }
}

#[cfg(test)]
mod tests;
