//! What checks of a study's validity find: a code for each finding, by group.

/// Gives its groups, after those that it is given, to the macro that is named first.
macro_rules! findings_of_checks {
    ([$next:ident $($later:ident)*] $($groups:tt)*) => { $next! { [$($later)*] $($groups)*
    /// Whether responses were right.
    OfResponses {
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
    }
    /// What the load and the engines say of themselves.
    OfLoad {
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
            /// The arm that kept its rate least often; absent in older results, and where nothing was measured.
            least: Option<RateHeld>,
        }
        /// Completion queues that overflowed.
        CompletionOverflows = "completion-overflows" {
            /// How often.
            count: u64,
        }
        /// Packets that were lost between two hosts.
        LinkLosses = "link-losses" {
            /// Packets that the interfaces of both ends dropped.
            dropped: u64,
            /// Segments that TCP sent again.
            resent: u64,
            /// Packets that the interfaces received and sent.
            packets: u64,
            /// Largest share of either in the packets.
            share_max: f64,
        }
        /// Warm-ups that became steady.
        WarmUp = "warm-up" {
            /// Trials in which it did.
            steady: u64,
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
    }
    /// What is asked of storage alone.
    OfStorage {
        /// A storage tool's own counts, held against the kernel's account of the bytes.
        OperationsCounted = "operations-counted" {
            /// By the kernel's account.
            operations: u64,
            /// Median difference of the tool's own rate from it.
            error: f64,
            /// Largest that passes.
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
        /// Requests of native AIO on the whole machine.
        RequestsTaken = "requests-taken" {
            /// Taken.
            taken: u64,
            /// Allowed.
            most: u64,
        }
        /// Whether what was computed twice with one seed came out the same.
        Repeatable = "repeatable" {
            /// Second runs of the baseline that are the first ones bit for bit.
            same: u64,
            /// Second runs.
            repeats: u64,
            /// Trials that were computed.
            simulated: u64,
        }
        /// What a storage job is not asked, because it is its own load.
        NotAsked = "not-asked"
    }
    /// What else the machine did.
    OfNoise {
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
        /// Trials that noise excluded, by arm.
        ExclusionsByArm = "exclusions-by-arm" {
            /// Each arm's.
            arms: Vec<ArmExclusions>,
            /// That they differ by chance; the smallest of all arms, corrected for their number.
            p_value: f64,
        }
        /// What its place among the slices does to one.
        SliceOrder = "slice-order" {
            /// Every effect that is too large, and some that are not.
            effects: Vec<OrderEffect>,
            /// Largest change that passes where it is more than noise.
            change_max: f64,
        }
    }
    /// States of the machine, and cells that more threads share than there are CPUs.
    OfStates {
        /// Nothing ran.
        NoTrial = "no-trial"
        /// The two sides do not have a CPU each, so there are no cross-core readings.
        NoCrossCore = "no-cross-core"
        /// The two sides are two hosts, with a network between them.
        TwoHosts = "two-hosts"
        /// What the machine was like in the first half of each cell's rounds, and in the second.
        MachineDrift = "machine-drift" {
            /// CPUs that other processes used in each half; medians over trials.
            foreign_cpus: (f64, f64),
            /// Largest difference that is allowed.
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
        /// A cell has more threads than CPUs.
        Oversubscribed = "oversubscribed" {
            /// Threads of servers and generator.
            threads: u32,
            /// CPUs they share.
            cpus: u32,
        }
        /// A cell was compared in the far state.
        FarState = "far-state"
    }
    /// What the slices of evidence show.
    OfEvidence {
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
    }
    /// How far the schedule is, and in which order it ran.
    OfSchedule {
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
        /// An unfinished schedule decides nothing.
        Unfinished = "unfinished" {
            /// Planned blocks that ran.
            blocks_done: u32,
            /// Planned blocks.
            blocks: u32,
        }
    }
    /// What the rounds of the baseline and of the arms show of the method.
    OfBaseline {
        /// What rounds of the primary cell scatter by, and what would do best in the same time.
        RoundComponents = "round-components" {
            /// Each arm against its baseline.
            arms: Vec<RoundComponents>,
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
    }
    /// Whether arms are what the study says that they are.
    OfArmChecks {
        /// Arms that are the same.
        SameArms = "same-arms" {
            /// Pairs of them; the first of each is named first in the study.
            pairs: Vec<SamePair>,
            /// Whether the study says that it compares equal arms.
            is_asked: bool,
        }
        /// Whether arms enter io_uring's ring where their driver is io_uring, and nowhere else.
        RingUse = "ring-use" {
            /// Arms in a cell whose engine or kernel counted.
            servers: u64,
            /// Those that did otherwise, the first of them.
            apart: Vec<RingApart>,
        }
        /// How the programs of Weir are built that were measured.
        Builds = "builds" {
            /// Programs whose build is known.
            programs: u64,
            /// Those that are built for development.
            debug: Vec<ProgramBuild>,
        }
        /// Whether the files of the programs stayed the same from one start to the next.
        ProgramFiles = "program-files" {
            /// Files that were read at starts of servers.
            files: u64,
            /// Those that had several contents.
            changed: Vec<ProgramChange>,
        }
    }
    } };
}
