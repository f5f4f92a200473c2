//! Evidence with real processes: a planted defect is counted once for each message, in the place where it was planted.

use weir_record::{
    check::CheckName,
    cpu_account::{CpuDifference, CpuPart},
    evidence::ArmEvidence,
    observation::Rung,
};

use super::harness::judged;

const STUDY: &str = r#"name = "planted"
saturation = true
slice = "5ms"
permutations = 1
time_cap = "2min"

[[cell]]
role = "primary"
connections = 4
rounds = 6
evidence_rounds = 2
evidence_slice = "0.1s"
# On a busy machine the kernel's own thread takes softirqs over for some slices: then no send has any.
evidence_pairs = 4

[[arm]]
name = "plain"
driver = "epoll"

[[arm]]
name = "slower"
driver = "epoll"
arguments = ["--plant", "20000ns"]

[[arm]]
name = "getppid"
driver = "epoll"
arguments = ["--plant", "getppid"]

[[arm]]
name = "wake"
driver = "epoll"
arguments = ["--plant", "wake"]

[[arm]]
name = "split-write"
driver = "epoll"
arguments = ["--plant", "split-write"]
"#;

fn count(arm: &ArmEvidence, call: &str) -> f64 {
    arm.calls.iter().find(|it| it.name == call).map_or(0.0, |it| it.count)
}

fn difference(found: &CpuDifference, call: &str) -> f64 {
    let is_it = |part: &CpuPart| *part == CpuPart::Call(call.to_owned());
    found.parts.iter().find(|(part, _)| is_it(part)).map_or(0.0, |(_, amount)| amount.ns)
}

/// Only the sign of times is checked: this is no machine to measure on.
#[test]
fn what_is_planted_for_each_message_is_counted_once_for_each_and_stands_in_its_place() {
    let (_, result) = judged("study-evidence", STUDY);
    let [plain, _, getppid, wake, split] = &result.evidence[..] else { panic!("{:?}", result.evidence) };
    if plain.rung < Rung::Programs {
        println!("skipped: the kernel takes no programs of this user, so nobody counts its calls");
        return;
    }
    for (arm, call, planted) in
        [(getppid, "getppid", 1.0), (wake, "write", 1.0), (split, "sendto", 2.0), (plain, "sendto", 1.0)]
    {
        let found = count(arm, call);
        assert!((found - planted).abs() < 1e-9, "{} {call}: {found}", arm.arm);
    }
    assert_eq!([count(plain, "getppid"), count(plain, "write")], [0.0; 2]);
    // And nothing else: apart from the planted waste, an arm's counts equal the first one's.
    for arm in [getppid, wake] {
        assert!((count(arm, "sendto") - 1.0).abs() < 1e-9, "{}: {:?}", arm.arm, arm.calls);
    }
    assert_eq!([count(wake, "getppid"), count(split, "getppid"), count(split, "write")], [0.0; 3]);
    for arm in &result.evidence {
        let account = arm.account.as_ref().expect("each round has both slices");
        assert_eq!(account.rounds, 2, "pairs of a round are one value");
        assert!(account.explained.is_some(), "{}: its engine has a clock", arm.arm);
    }
    let (slower, others) = result.cpu_differences.split_first().expect("there are arms");
    assert_eq!((slower.arm.as_str(), &slower.parts[0].0), ("slower", &CpuPart::Server), "{slower:?}");
    for (found, call) in others.iter().zip(["getppid", "write", "sendto"]) {
        assert!(difference(found, call) > 0.0, "{call}: {found:?}");
        let sum: f64 = found.parts.iter().map(|(_, amount)| amount.ns).sum();
        assert!((sum - found.whole.ns).abs() < 1e-6, "{sum} {found:?}");
    }
    assert_eq!(others.len(), 3);
    // The receive of an additional send is within that send.
    let [.., found] = others else { panic!("{others:?}") };
    let both = found.with_softirqs.iter().find(|(call, _)| call == "sendto").map(|(_, amount)| amount.ns);
    assert!(both.is_some_and(|ns| ns > difference(found, "sendto")), "{found:?}");
    for name in [CheckName::CallsAgree, CheckName::CallsCover] {
        let check = result.checks.iter().find(|check| check.name == name).expect("calls were seen");
        assert!(check.passed, "{check:?}");
    }
    for arm in &result.evidence {
        let needed = arm.needed.as_ref().expect("its calls were seen");
        assert!(needed.is_covered(), "{}: {needed:?}", arm.arm);
    }
}
