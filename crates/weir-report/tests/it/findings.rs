//! Every finding in every language: the same arguments, and no language left out.

use std::collections::BTreeSet;

use weir_record::{
    check::{Check, CheckName},
    finding::{
        ArmExclusions, CallsApart, CallsLacking, ExclusionKind, FailedTrial, FailureClass, FailureCount,
        Finding, MessageKind, MessagesInSlices, NoTurns, OrderEffect, PlantedApart, ProgramBuild,
        ProgramChange, RateHeld, RingApart, RoundComponents, SamePair, SegmentsOfArm, SharedPart, SlicePlace,
        Stopped, UnitKind, WarmingArm, Witness, WitnessBearing, WitnessFigure,
    },
    kernel::KernelVersion,
    observation::{Obstacle, Rung},
};
use weir_report::{Language, markdown};

use crate::fixture;

/// A finding, and parts of its text in every language.
type Example = (Finding, Vec<&'static str>);

const KIND: MessageKind = MessageKind::Request;

fn arm() -> String {
    "my arm".to_owned()
}

fn failed_trial() -> FailedTrial {
    FailedTrial {
        arm: arm(),
        reason: Some(ExclusionKind::ServerFailed),
        said: Some("no luck".to_owned()),
        classes: vec![FailureCount { class: FailureClass::Refused, count: 7 }],
        listen_overflows: 71,
        syn_retransmits: 72,
    }
}

fn planted_apart() -> PlantedApart {
    PlantedApart {
        cell_id: "c9".to_owned(),
        arm: arm(),
        planted: "getppid".to_owned(),
        part: "call-write".to_owned(),
        ns: 1_230.0,
        interval: (1_110.0, 1_350.0),
        more_calls: Some(0.75),
    }
}

/// One of each, with distinguishable arguments.
fn every() -> Vec<Example> {
    let of_slices = [of_the_baseline(), of_evidence(), of_slices(), of_arm_checks()].concat();
    [of_responses(), of_the_session(), of_slices, of_comparisons(), of_the_machine(), of_the_doctor()]
        .concat()
}

fn of_responses() -> Vec<Example> {
    vec![
        (Finding::BytesCompared { compared: 64, expected: 128, wrong: 1 }, vec!["64", "128", "1"]),
        (
            Finding::ResponsesChecked {
                bytes: 21,
                bytes_expected: 22,
                compared: 23,
                responses: 24,
                compared_share: 0.958,
                wrong: 25,
            },
            vec!["21", "22", "23", "24", "95.8 %", "25"],
        ),
        (
            Finding::OperationsCounted { operations: 2_600_000, error: 0.027, error_max: 0.05 },
            vec!["2,600,000", "2.7 %", "5 %"],
        ),
        (
            Finding::RepliesChecked { checked: 31, inversions: 32, unbalanced: 33, trials: 34 },
            vec!["31", "32", "33", "34"],
        ),
        (Finding::ChainWhole { whole: 35, trials: 36 }, vec!["35", "36"]),
        (Finding::WakesRecovered { recovered: 37, pushed: 38 }, vec!["37", "38"]),
        (Finding::Repeatable { same: 301, repeats: 302, simulated: 303 }, vec!["301", "302", "303"]),
        (Finding::NotAsked, vec![]),
        (Finding::PlantedLeads { differences: 304, apart: Vec::new() }, vec!["304"]),
        (
            Finding::PlantedLeads { differences: 305, apart: vec![planted_apart()] },
            vec!["305", "my arm", "c9", "getppid", "call-write", "1.23 µs [1.11 µs, 1.35 µs]", "0.75"],
        ),
        (Finding::Failures { count: 41, classes: failed_trial().classes }, vec!["41", "7"]),
        (
            Finding::Reports { missing: 42, trials: 43, first: Some(failed_trial()) },
            vec!["42", "43", "my arm", "no luck", "7", "71", "72"],
        ),
    ]
}

fn of_the_session() -> Vec<Example> {
    let cut = Some(Stopped::CutShort { elapsed_ns: 61_000_000_000, cap_ns: 90_000_000_000 });
    vec![
        (
            Finding::LittlesLaw { kind: KIND, error: 0.012, over: 44, trials: 45, error_max: 0.05 },
            vec!["1.2 %", "44", "45", "5 %"],
        ),
        (
            Finding::InFlightAsGiven { surplus: 0.013, over: 46, trials: 47, surplus_max: 0.05 },
            vec!["1.3 %", "46", "47", "5 %"],
        ),
        (Finding::GeneratorLimit { bound: 48, trials: 49 }, vec!["48", "49"]),
        (Finding::NoOpenLoop, vec![]),
        (Finding::RateKept { missed: 51, starts: 52, least: None }, vec!["51", "52"]),
        (
            Finding::RateKept {
                missed: 51,
                starts: 52,
                least: Some(RateHeld {
                    cell_id: "c7".to_owned(),
                    arm: "ring".to_owned(),
                    kept: 61,
                    of: 62,
                    unit: UnitKind::Round,
                }),
            },
            vec!["51", "52", "61", "62", "c7", "ring"],
        ),
        (Finding::CompletionOverflows { count: 53 }, vec!["53"]),
        (Finding::NoTrial, vec![]),
        (Finding::NoCrossCore, vec![]),
        (Finding::OneState { ns: 118.0, trials: 54 }, vec!["118 ns", "54"]),
        (
            Finding::TwoStates { near_ns: 118.0, far_ns: 318.0, near: 55, far: 56, changed: 57 },
            vec!["118 ns", "318 ns", "55", "56", "57"],
        ),
        (
            Finding::Steal { share: 0.014, over: 58, trials: 59, share_max: 0.01, unit: UnitKind::Pair },
            vec!["1.4 %", "58", "59", "1 %"],
        ),
        (
            Finding::ForeignCpu { cpus: 0.123, over: 61, trials: 62, unit: UnitKind::Pair },
            vec!["0.123", "61", "62"],
        ),
        (
            Finding::MachineDrift {
                foreign_cpus: (0.01, 0.93),
                foreign_cpus_change_max: 0.1,
                server_cpu: Some(1.217),
                throughput: Some(0.583),
                cells: 91,
                change_max: 0.15,
                kind: KIND,
            },
            vec!["0.01", "0.93", "0.10", "1.217", "0.583", "91", "15 %"],
        ),
        (Finding::WarmUp { steady: 63, trials: 64 }, vec!["63", "64"]),
        (Finding::Interleaving { matching: 65, blocks: 66, seed: 20_261_121 }, vec!["65", "66", "20261121"]),
        (
            Finding::Schedule {
                blocks_done: 67,
                blocks: 68,
                blocks_to_repeat: 69,
                has_near_state: true,
                stopped: cut,
            },
            vec!["67", "68", "69", "weir study --resume"],
        ),
    ]
}

fn of_slices() -> Vec<Example> {
    vec![
        (Finding::TwoHosts, vec![]),
        (
            Finding::LinkLosses { dropped: 531, resent: 532, packets: 533, share_max: 0.001 },
            vec!["531", "532", "533", "0.1 %"],
        ),
        (
            Finding::SliceMessages {
                arms: vec![MessagesInSlices {
                    arm: arm(),
                    cell_id: "c7".to_owned(),
                    each: 8.94,
                    length_ns: 183_000_000,
                    needed_ns: 614_000_000,
                }],
                each_min: 31,
            },
            vec!["my arm", "8.9", "183 ms", "c7", "614 ms", "31"],
        ),
        (
            Finding::Warming {
                arms: vec![WarmingArm {
                    arm: arm(),
                    cell_id: "c7".to_owned(),
                    change: -0.234,
                    interval: (-0.345, -0.123),
                }],
                change_max: 0.0075,
            },
            vec!["my arm", "-23.40 % [-34.50, -12.30]", "c7", "0.75 %", "warmup"],
        ),
    ]
}

fn of_evidence() -> Vec<Example> {
    let apart = CallsApart {
        cell_id: "c8".to_owned(),
        arm: arm(),
        kind: "receive".to_owned(),
        engine: 75_001,
        kernel: 75_901,
    };
    let apart_words = vec!["13", "my arm", "c8", "receive", "75,001", "75,901"];
    let lacking = CallsLacking { cell_id: "c6".to_owned(), arm: arm(), share: 0.512 };
    vec![
        (
            Finding::ProgramsComplete { missed: 21, without_room: 34, slices: 48, failed: 57 },
            vec!["21", "34", "48", "57"],
        ),
        (
            Finding::CallsCover { servers: 15, share_min: 0.98, lacking: vec![lacking] },
            vec!["15", "98 %", "my arm", "c6", "51.2 %"],
        ),
        (Finding::CallsCover { servers: 16, share_min: 0.97, lacking: Vec::new() }, vec!["16", "97 %"]),
        (Finding::CallsAgree { servers: 13, apart: vec![apart] }, apart_words),
        (Finding::CallsAgree { servers: 14, apart: Vec::new() }, vec!["14"]),
    ]
}

fn of_the_baseline() -> Vec<Example> {
    let effect = OrderEffect {
        place: SlicePlace::Following { arm: arm() },
        cell_id: "c7".to_owned(),
        change: 0.0123,
        interval: (-0.0345, 0.0567),
    };
    vec![
        (
            Finding::SliceOrder { effects: vec![effect], change_max: 0.0025 },
            vec!["+1.23 % [-3.45, +5.67]", "my arm", "c7", "0.25 %"],
        ),
        (
            Finding::Segments {
                arms: vec![SegmentsOfArm {
                    arm: arm(),
                    cell_id: "c7".to_owned(),
                    in_slices: 2.125,
                    in_long: 2.064,
                }],
                change_max: 0.01,
            },
            vec!["my arm", "c7", "2.125", "2.064", "1 %"],
        ),
        (
            Finding::RoundComponents {
                arms: vec![RoundComponents {
                    arm: arm(),
                    within: 0.013,
                    between: 0.029,
                    permutations: 8,
                    rounds: 44,
                    permutations_best: 5,
                    rounds_best: 61,
                }],
            },
            vec!["my arm", "1.3 %", "2.9 %", "8", "44", "5", "61"],
        ),
        (
            Finding::ExclusionsByArm {
                arms: vec![ArmExclusions { arm: arm(), excluded: 3, trials: 17 }],
                p_value: 0.25,
            },
            vec!["my arm", "3", "17", "0.250"],
        ),
        (Finding::NeverAgainstItself, vec![]),
        (
            Finding::AgainstItself {
                units: 73,
                unit: UnitKind::Round,
                kind: KIND,
                ratio: 1.001,
                interval: Some((0.996, 1.006)),
            },
            vec!["73", "1.001 [0.996, 1.006]"],
        ),
        (Finding::RequestsTaken { taken: 74, most: 65_536 }, vec!["74", "65,536"]),
    ]
}

fn of_comparisons() -> Vec<Example> {
    let seen = WitnessFigure { ratio: 0.972, interval: (0.94, 1.005), units: 44 };
    vec![
        (Finding::Oversubscribed { threads: 5, cpus: 2 }, vec!["5", "2"]),
        (Finding::FarState, vec![]),
        (Finding::StateInteraction { ratio: 0.912, interval: (0.87, 0.955) }, vec!["0.912 [0.870, 0.955]"]),
        (Finding::EffectMoves { lag_1: 0.472, halves: (0.941, 0.958) }, vec!["0.47", "0.941", "0.958"]),
        (Finding::Reopened { arm: arm(), connections: 1_234, slices: 567 }, vec!["my arm", "1,234", "567"]),
        (Finding::WholeTrials { why: NoTurns::Writes }, vec![]),
        (Finding::NotStopped { arm: "spin".to_owned(), share: 0.5, trials: 404 }, vec!["spin", "50", "404"]),
        (Finding::RanBefore { arm: arm() }, vec!["my arm"]),
        (Finding::WorkersNotTold { arm: "go".to_owned(), workers: 403 }, vec!["go", "403"]),
        (
            Finding::StoppedBetweenSlices { arm: arm(), share: 0.973, stopped: 11, runs: 88 },
            vec!["my arm", "97.3 %", "11", "88"],
        ),
        (Finding::NothingMeasured, vec![]),
        (Finding::NoCapacity { said: "too many workers".to_owned() }, vec!["too many workers"]),
        (Finding::OneUnit { unit: UnitKind::Pair }, vec!["1"]),
        (Finding::NoPairLeft, vec![]),
        (Finding::Excluded { reason: ExclusionKind::StateChanged, count: 75 }, vec!["75"]),
        (Finding::WrongBytes { arm: arm(), responses: 76 }, vec!["my arm", "76"]),
        (Finding::Unexplained { arm: arm(), failures: 77 }, vec!["my arm", "77"]),
        (
            Finding::TrialsFailed { arm: arm(), failed: 78, trials: 79, first: failed_trial() },
            vec!["my arm", "78", "79", "no luck", "71"],
        ),
        (Finding::RateNotKept { arm: arm(), missed: 81, trials: 82 }, vec!["my arm", "81", "82"]),
        (
            Finding::RateMissed { arm: arm(), kept: 83, of: 84, unit: UnitKind::Round },
            vec!["my arm", "83", "84"],
        ),
        (Finding::LagUnknown { arm: arm(), kind: KIND }, vec!["my arm"]),
        (Finding::LagTooLarge { arm: arm(), share: 0.12 }, vec!["my arm", "12 %"]),
        (Finding::LowerBound { arm: arm(), per_second: 126_219.0, kind: KIND }, vec!["my arm", "126,219"]),
        (Finding::NoEqualRate, vec![]),
        (
            Finding::Witness {
                witness: Witness::EqualRate { per_second: 73_000.0 },
                seen,
                bearing: WitnessBearing::Contradicts,
            },
            vec!["73,000/s", "0.972 [0.940, 1.005]", "44"],
        ),
        (Finding::NoWitness { witness: Witness::MachineCpu }, vec![]),
        (
            Finding::WitnessOtherState { witness: Witness::EqualRate { per_second: 74_000.0 } },
            vec!["74,000/s"],
        ),
        (Finding::Unfinished { blocks_done: 83, blocks: 84 }, vec!["83", "84"]),
        (Finding::TooFewUnits { units: 5, units_min: 6 }, vec!["5", "6"]),
        (Finding::IncludesNone { none: 1.0, units_wanted: Some(85) }, vec!["1"]),
        (Finding::NotSignificant { p_value: 0.062 }, vec!["0.062"]),
        (Finding::IncludesBound { bound: 1.05 }, vec!["1.05"]),
        (Finding::WithinPlacebos { floor: 0.052 }, vec!["5.2"]),
        (Finding::NoUnitLeft, vec![]),
        (Finding::OtherStates, vec![]),
        (Finding::NoPlacebo, vec![]),
        (Finding::ArmMissing { arm: arm() }, vec!["my arm"]),
        (Finding::AlsoSyscalls { arm: 0.03, baseline: 2.02, kind: KIND }, vec!["0.03", "2.02"]),
    ]
}

fn of_arm_checks() -> Vec<Example> {
    let pair = |other: &str| SamePair { arm: arm(), other: other.to_owned() };
    let ring = RingApart { cell_id: "c8".to_owned(), arm: arm(), driver: "uring".to_owned(), enters: 86 };
    let build = ProgramBuild { program: "/old/weir".to_owned(), build: "debug, rustc".to_owned() };
    let change = ProgramChange { arm: arm(), file: "/bin/server".to_owned(), contents: 3 };
    vec![
        (
            Finding::SameArms { pairs: vec![pair("my twin")], is_asked: false },
            vec!["my arm", "my twin", "same_arms = true"],
        ),
        (Finding::SameArms { pairs: vec![pair("my twin")], is_asked: true }, vec!["my arm", "my twin"]),
        (Finding::SameArms { pairs: Vec::new(), is_asked: false }, vec![]),
        (Finding::RingUse { servers: 87, apart: vec![ring] }, vec!["87", "my arm", "c8", "uring", "86"]),
        (Finding::RingUse { servers: 87, apart: Vec::new() }, vec!["87"]),
        (Finding::Builds { programs: 2, debug: vec![build] }, vec!["/old/weir", "debug, rustc"]),
        (Finding::Builds { programs: 88, debug: Vec::new() }, vec!["88"]),
        (Finding::ProgramFiles { files: 4, changed: vec![change] }, vec!["my arm", "/bin/server", "3"]),
        (Finding::ProgramFiles { files: 89, changed: Vec::new() }, vec!["89"]),
    ]
}

fn of_the_machine() -> Vec<Example> {
    let said = || "no luck".to_owned();
    vec![
        (
            Finding::DriverGranted { features: vec!["registered-once".to_owned(), "a-new-one".to_owned()] },
            vec!["a-new-one"],
        ),
        (Finding::NoIoUring, vec!["ENOSYS"]),
        (Finding::IoUringDisabled { level: 2 }, vec!["io_uring_disabled", "2"]),
        (Finding::IoUringForbidden, vec!["EPERM"]),
        (Finding::IoUringMemory, vec!["ENOMEM"]),
        (Finding::IoUringTooOld, vec!["5.11", "IORING_ENTER_EXT_ARG"]),
        (
            Finding::KernelOlder { asked: KernelVersion::new(7, 2), running: KernelVersion::new(6, 18) },
            vec!["7.2", "6.18"],
        ),
        (Finding::NoNativeAio, vec!["CONFIG_AIO"]),
        (Finding::NotOnPath { program: arm() }, vec!["my arm"]),
        (Finding::NoProgram { program: arm() }, vec!["my arm"]),
        (Finding::NeverServed { trials: 401, said: said() }, vec!["401", "no luck"]),
        (Finding::CannotRunHere { said: said() }, vec!["no luck"]),
        (
            Finding::NoCongestionControl {
                name: "bbr".to_owned(),
                available: vec!["reno".to_owned(), "cubic".to_owned()],
            },
            vec!["bbr", "reno", "cubic", "net.ipv4"],
        ),
        (Finding::DiskUnusable { said: said() }, vec!["no luck"]),
        (Finding::Said { text: said() }, vec!["no luck"]),
        (Finding::TriedOnSockets, vec![]),
        (Finding::TriedOnFile, vec![]),
        (Finding::TriedGathering, vec![]),
        (Finding::ReadFrom { paths: vec!["/proc/one".to_owned()] }, vec!["/proc/one"]),
        (Finding::BlockRead, vec![]),
        (Finding::TwoBuffers, vec![]),
        (Finding::RunCommand { command: arm() }, vec!["my arm"]),
        (Finding::AllowIoUring, vec!["5.11", "packaging/seccomp.json"]),
        (Finding::OpenSandbox, vec!["seccomp=packaging/seccomp.json"]),
        (Finding::InstallProgram, vec![]),
    ]
}

fn of_the_doctor() -> Vec<Example> {
    let (shared, window_ns) = (SharedPart::Core, 200_000_000);
    vec![
        (Finding::CoresFound { allowed: 3, online: 8, cores: 5, shared }, vec!["3", "8", "5"]),
        (
            Finding::PinnedTo { server: vec![31, 32], load: vec![33], refused: vec![34], shared },
            vec!["31,32", "33", "34"],
        ),
        (Finding::NoCpuQuota, vec![]),
        (Finding::CpuQuota { cpus: 1.5 }, vec!["1.50"]),
        (Finding::NoGovernor, vec![]),
        (Finding::Governor { name: "powersave".to_owned(), follows_load: true }, vec!["powersave"]),
        (Finding::NoClockSource, vec![]),
        (Finding::ClockSource { name: "hpet".to_owned(), is_fast: false }, vec!["hpet"]),
        (
            Finding::DescriptorsFound {
                connections: Some(41_001),
                allowed: Some(41_002),
                raised_from: Some(41_003),
                used: 44,
            },
            vec!["41,001", "41,002", "41,003", "44"],
        ),
        (Finding::LocalPorts { ports: 28_232, connections: 19_930 }, vec!["28,232", "19,930"]),
        (Finding::NoAcceptQueue, vec!["net.core.somaxconn"]),
        (Finding::AcceptQueue { connections_max: 128 }, vec!["128", "somaxconn"]),
        (Finding::LockedMemoryFree { by_capability: true }, vec!["CAP_IPC_LOCK"]),
        (Finding::LockedMemory { bytes: 8 << 20 }, vec!["8,192 KiB"]),
        (Finding::NoLockedMemory, vec![]),
        (Finding::Stolen { since_boot: 0.0123, now: 0.0456, window_ns }, vec!["1.23 %", "4.56 %", "0.2"]),
        (Finding::OthersUsed { cpus: 0.321, window_ns }, vec!["0.321", "0.2"]),
        (Finding::CrossCoreNow { cpu_a: 51, cpu_b: 52, round_trip_ns: 76.4 }, vec!["51", "52", "76 ns"]),
        (Finding::OneCpu, vec![]),
        (Finding::RungGives { rung: Rung::Programs }, vec!["weir observe --trace"]),
        (
            Finding::RungBarred { obstacle: Obstacle::Lockdown { mode: "integrity".to_owned() } },
            vec!["integrity"],
        ),
        (
            Finding::RungBarred { obstacle: Obstacle::NoPrivilege },
            vec!["CAP_BPF", "CAP_PERFMON", "CAP_SYS_ADMIN"],
        ),
        (Finding::RungBarred { obstacle: Obstacle::Filtered }, vec!["seccomp", "bpf", "perf_event_open"]),
        (Finding::RungBarred { obstacle: Obstacle::UserNamespace }, vec!["rootless"]),
    ]
}

/// The finding as a reader sees it: among the checks of a Markdown document.
fn printed(finding: &Finding, language: Language) -> String {
    let mut result = fixture::empty();
    result.checks = vec![Check {
        name: CheckName::Other("under-test".to_owned()),
        passed: true,
        detail: finding.clone(),
    }];
    let text = markdown(&result, language);
    let row = text.lines().find(|line| line.contains("under-test")).expect("it is in the table");
    row.split(" | ").last().expect("the last column").trim_end_matches(" |").to_owned()
}

#[test]
fn every_code_is_told_with_its_arguments_in_every_language() {
    let every = every();
    let codes: BTreeSet<&str> = every.iter().map(|(finding, _)| finding.code()).collect();
    assert_eq!(codes, Finding::CODES.iter().copied().collect(), "a code without an example");
    for (finding, arguments) in &every {
        let texts = Language::ALL.map(|language| printed(finding, language));
        for (language, text) in Language::ALL.iter().zip(&texts) {
            for argument in arguments {
                assert!(text.contains(argument), "{language:?}: {argument} in {text}");
            }
            assert!(!text.contains(['{', '}']) && text != finding.code(), "{language:?}: {text}");
        }
        let [english, korean, chinese] = &texts;
        let own_words = |text: &str| text.replace("my arm", "").replace("no luck", "");
        assert!(!own_words(english).chars().any(|letter| letter > '\u{2fff}'), "{english}");
        assert!(korean.chars().any(|letter| ('가'..='힣').contains(&letter)), "{korean}");
        assert!(chinese.chars().any(|letter| ('一'..='鿿').contains(&letter)), "{chinese}");
    }
}

#[test]
fn codes_and_arguments_survive_the_record() {
    for (finding, _) in every() {
        let text = serde_json::to_string(&finding).expect("it is plain data");
        assert!(text.starts_with(&format!("{{\"code\":\"{}\"", finding.code())), "{text}");
        assert_eq!(serde_json::from_str::<Finding>(&text).expect("it is what was written"), finding);
    }
}

#[test]
fn a_sentence_of_an_older_record_is_shown_as_it_is_and_marked() {
    let old = Finding::Text("64 of 128 bytes compared, 1 responses wrong".to_owned());
    for language in Language::ALL {
        assert_eq!(printed(&old, language), "64 of 128 bytes compared, 1 responses wrong");
    }
}
