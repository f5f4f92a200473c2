//! Why there is a verdict on a comparison, or none, and what stands beside it: a code for each finding, by group.

/// Gives its groups, after those that it is given, to the macro that is named first.
macro_rules! findings_of_verdicts {
    ([$next:ident $($later:ident)*] $($groups:tt)*) => { $next! { [$($later)*] $($groups)*
    /// How many units there are, and what their interval includes.
    OfUnits {
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
        /// Too few units decide nothing.
        TooFewUnits = "too-few-units" {
            /// Units.
            units: u32,
            /// Fewest that decide.
            units_min: u32,
        }
        /// The interval includes no difference.
        IncludesNone = "includes-none" {
            /// The value of no difference: 1 as a ratio, 0 as a difference.
            none: f64,
            /// About how many units would show a difference of the margin; absent where it is not known.
            units_wanted: Option<u32>,
        }
        /// Chance is not ruled out among several claims.
        NotSignificant = "not-significant" {
            /// Corrected p.
            p_value: f64,
        }
    }
    /// What an arm did wrong.
    OfArms {
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
            /// Trials that failed by themselves, and not for noise.
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
    }
    /// What limits a figure.
    OfFigures {
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
        /// What else differs in the same direction. Nothing here shows that it is the cause.
        AlsoSyscalls = "also-syscalls" {
            /// System calls per message of the arm.
            arm: f64,
            /// The baseline.
            baseline: f64,
            /// What a message is.
            kind: MessageKind,
        }
    }
    /// How a cell was measured.
    OfCells {
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
        /// An arm went on although it was stopped between its slices.
        NotStopped = "not-stopped" {
            /// Arm.
            arm: String,
            /// The share of a CPU that it used meanwhile.
            share: f64,
            /// Trials in which it did.
            trials: u64,
        }
        /// The command of a foreign arm has no place for the number of workers.
        WorkersNotTold = "workers-not-told" {
            /// Arm.
            arm: String,
            /// Workers of the cells in which it runs.
            workers: u32,
        }
        /// An arm is a server that ran before the study.
        RanBefore = "ran-before" {
            /// Arm.
            arm: String,
        }
        /// The arms of a cell do not take turns.
        WholeTrials = "whole-trials" {
            /// Why not.
            why: NoTurns,
        }
        /// An arm worked while it waited, and was stopped between its slices.
        StoppedBetweenSlices = "stopped-between-slices" {
            /// Arm.
            arm: String,
            /// The share of a CPU that it used before it was stopped; the median of these rounds.
            share: f64,
            /// Runs in which it was.
            stopped: u32,
            /// Its runs.
            runs: u32,
        }
    }
    /// What stands beside a verdict.
    OfDecision {
        /// The generator was the limit, and nothing shows both arms at one equal rate.
        NoEqualRate = "no-equal-rate"
        /// The interval includes a bound of the goal.
        IncludesBound = "includes-bound" {
            /// The bound.
            bound: f64,
        }
        /// With the difference of a placebo, the interval includes a bound of the goal.
        WithinPlacebos = "within-placebos" {
            /// Largest difference of a placebo, as a ratio less one.
            floor: f64,
        }
        /// There were trials, but too few that can be compared.
        NoUnitLeft = "no-unit-left"
        /// The sides were met in different states of the machine only.
        OtherStates = "other-states"
        /// Two builds of one program, and no third that shows what the layout of code alone does.
        NoPlacebo = "no-placebo"
        /// An arm that is asked for could not run.
        ArmMissing = "arm-missing" {
            /// Arm.
            arm: String,
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
        /// A verdict on server CPU was compared with another figure.
        Witness = "witness" {
            /// Which figure.
            witness: Witness,
            /// What it says.
            seen: WitnessFigure,
            /// What it does to the verdict.
            bearing: WitnessBearing,
        }
    }
    } };
}
