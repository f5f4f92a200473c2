//! Whether what was planted into an arm is found where it was planted. Pure.
//!
//! An arm may be told by its arguments to waste something on every message (`--plant`), which is the laboratory's
//! test of itself. The part in which that is must lead the table of the arm's differences from the baseline, and
//! have the size: the whole interval is above nothing and, of a time, meets it; of a system call, one more is made
//! for each message.

use weir_record::{
    account::{CpuDifference, CpuPart},
    evidence::ArmEvidence,
    finding::{Finding, PlantedApart},
    spec::{ArmSpec, StudySpec, Subject},
    study::Check,
};

/// Most differences that the check names.
const APART_MAX: usize = 8;

/// A planted time ends at the first reading of the clock beyond it, so it is up to this much more.
const TIME_RATIO_MAX: f64 = 1.1;

/// How far the further calls for each message may be from one: some are under way at the edges of a slice.
const CALLS_APART_MAX: f64 = 0.01;

/// What a server wastes on every message.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Planted {
    TimeNs(f64),
    Call(&'static str),
}

impl Planted {
    /// `None` of what is no waste of CPU, and of what has no place of its own on the driver.
    fn of(text: &str, driver: &str) -> Option<Self> {
        match text {
            "getppid" => Some(Self::Call("getppid")),
            // To the descriptor for which another thread waits.
            "wake" => Some(Self::Call("write")),
            // io_uring sends within its own call.
            "split-write" => (driver != "uring").then_some(Self::Call("sendto")),
            time => time.strip_suffix("ns")?.parse().ok().map(Self::TimeNs),
        }
    }

    fn part(self) -> CpuPart {
        match self {
            Self::TimeNs(_) => CpuPart::Server,
            Self::Call(name) => CpuPart::Call(name.to_owned()),
        }
    }

    fn call(self) -> Option<&'static str> {
        match self {
            Self::TimeNs(_) => None,
            Self::Call(name) => Some(name),
        }
    }

    /// Whether a part of this interval, with so many further calls for each message, has its size.
    fn has_size(self, (low, high): (f64, f64), more_calls: Option<f64>) -> bool {
        let is_size = match self {
            Self::TimeNs(ns) => low <= TIME_RATIO_MAX * ns && ns <= high,
            Self::Call(_) => more_calls.is_some_and(|more| (more - 1.0).abs() <= CALLS_APART_MAX),
        };
        low > 0.0 && is_size
    }
}

/// The check over all arms into which something was planted; `None` where there is none, and where too few rounds
/// have evidence for an interval.
pub(crate) fn check(
    spec: &StudySpec,
    differences: &[CpuDifference],
    observed: &[ArmEvidence],
) -> Option<Check> {
    let found: Vec<Option<PlantedApart>> = differences
        .iter()
        .filter(|it| has_a_message_each(spec, &it.cell_id))
        .filter_map(|it| looked_at(spec.arms.iter().find(|arm| arm.name == it.arm)?, it, observed))
        .collect();
    let differences = found.len() as u64;
    let mut apart: Vec<PlantedApart> = found.into_iter().flatten().collect();
    let passed = apart.is_empty();
    apart.truncate(APART_MAX);
    let detail = Finding::PlantedLeads { differences, apart };
    (differences > 0).then(|| Check { name: "planted-leads".to_owned(), passed, detail })
}

/// What is planted is planted for each receive, which may have several messages where several are in flight.
fn has_a_message_each(spec: &StudySpec, cell_id: &str) -> bool {
    spec.cells.iter().any(|cell| cell.id == cell_id && cell.depth == 1)
}

/// What leads in the place of what was planted, or beside its size; `None` within where nothing does.
fn looked_at(arm: &ArmSpec, it: &CpuDifference, observed: &[ArmEvidence]) -> Option<Option<PlantedApart>> {
    let (text, planted) = planted(arm)?;
    let (part, amount) = it.parts.first()?;
    let interval = amount.interval?;
    let more_calls = planted.call().and_then(|name| more_calls(name, it, observed));
    if *part == planted.part() && planted.has_size(interval, more_calls) {
        return Some(None);
    }
    Some(Some(PlantedApart {
        cell_id: it.cell_id.clone(),
        arm: it.arm.clone(),
        planted: text.to_owned(),
        part: part.key(),
        ns: amount.ns,
        interval,
        more_calls,
    }))
}

/// What the arm's server is told to waste, as it is written and as it is meant.
fn planted(arm: &ArmSpec) -> Option<(&str, Planted)> {
    let Subject::Weir { driver, arguments, .. } = &arm.subject else { return None };
    let option = arguments.iter().position(|word| word == "--plant")?;
    let text = arguments.get(option + 1)?.as_str();
    Some((text, Planted::of(text, driver)?))
}

/// So many more of these calls the arm makes for each message than its baseline.
fn more_calls(name: &str, it: &CpuDifference, observed: &[ArmEvidence]) -> Option<f64> {
    let of_arm = |arm: &str| {
        let own = observed.iter().find(|own| own.cell_id == it.cell_id && own.arm == arm)?;
        Some(own.calls.iter().find(|call| call.name == name).map_or(0.0, |call| call.count))
    };
    Some(of_arm(&it.arm)? - of_arm(&it.baseline)?)
}

#[cfg(test)]
mod tests {
    use weir_record::{account::Amount, evidence::CallEvidence};

    use super::*;
    use crate::sample::study;

    /// A study of two arms, into the second of which this is planted.
    fn spec(planted: &[&str]) -> StudySpec {
        let mut spec = study(&["epoll", "poll"], 8, 1);
        let Subject::Weir { arguments, .. } = &mut spec.arms[1].subject else { panic!("it is Weir's") };
        *arguments = planted.iter().map(|word| (*word).to_owned()).collect();
        spec
    }

    /// The second arm's difference from the first, led by this part; and what both were seen to call.
    fn seen(part: CpuPart, interval: (f64, f64), more: f64) -> ([CpuDifference; 1], [ArmEvidence; 2]) {
        let cell_id = spec(&[]).cells[0].id.clone();
        let amount = |interval: (f64, f64)| Amount {
            ns: f64::midpoint(interval.0, interval.1),
            interval: Some(interval),
        };
        let difference = CpuDifference {
            cell_id: cell_id.clone(),
            arm: "poll".to_owned(),
            baseline: "epoll".to_owned(),
            parts: vec![(part.clone(), amount(interval)), (CpuPart::Unexplained, amount((-5.0, 6.0)))],
            ..CpuDifference::default()
        };
        let name = if let CpuPart::Call(name) = part { name } else { "getppid".to_owned() };
        let of_arm = |arm: &str, count: f64| ArmEvidence {
            cell_id: cell_id.clone(),
            arm: arm.to_owned(),
            calls: vec![CallEvidence { name: name.clone(), count, ..CallEvidence::default() }],
            ..ArmEvidence::default()
        };
        ([difference], [of_arm("epoll", 1.0), of_arm("poll", 1.0 + more)])
    }

    fn outcome(planted: &str, part: CpuPart, interval: (f64, f64), more: f64) -> Option<bool> {
        let (differences, observed) = seen(part, interval, more);
        check(&spec(&["--plant", planted]), &differences, &observed).map(|check| check.passed)
    }

    fn call(name: &str) -> CpuPart {
        CpuPart::Call(name.to_owned())
    }

    #[test]
    fn what_leads_with_its_size_passes() {
        for (planted, name) in [("getppid", "getppid"), ("wake", "write"), ("split-write", "sendto")] {
            assert_eq!(outcome(planted, call(name), (80.0, 120.0), 1.0), Some(true), "{planted}");
        }
        for interval in [(980.0, 1_010.0), (1_020.0, 1_060.0)] {
            assert_eq!(outcome("1000ns", CpuPart::Server, interval, 0.0), Some(true), "{interval:?}");
        }
    }

    #[test]
    fn what_does_not_lead_or_has_another_size_is_named() {
        let (differences, observed) = seen(CpuPart::Switching, (300.0, 500.0), 0.0);
        let found = check(&spec(&["--plant", "wake"]), &differences, &observed).expect("it was looked at");
        let Finding::PlantedLeads { differences: 1, apart } = &found.detail else { panic!("{found:?}") };
        assert_eq!((found.passed, found.name.as_str()), (false, "planted-leads"));
        let [apart] = apart.as_slice() else { panic!("{apart:?}") };
        assert_eq!((apart.planted.as_str(), apart.part.as_str()), ("wake", "switching"));
        assert_eq!((apart.ns, apart.interval), (400.0, (300.0, 500.0)));
        for (planted, part, interval, more) in [
            ("getppid", call("getppid"), (-2.0, 120.0), 1.0),
            ("getppid", call("getppid"), (80.0, 120.0), 2.0),
            ("1000ns", CpuPart::Server, (500.0, 900.0), 0.0),
            ("1000ns", CpuPart::Server, (1_200.0, 1_400.0), 0.0),
        ] {
            assert_eq!(outcome(planted, part, interval, more), Some(false), "{planted} {interval:?}");
        }
    }

    #[test]
    fn where_nothing_is_planted_or_nothing_can_be_said_nothing_is() {
        let (mut differences, observed) = seen(call("getppid"), (80.0, 120.0), 1.0);
        for words in [&["--backlog", "10"][..], &[], &["--plant"], &["--plant", "lose-50"]] {
            assert_eq!(check(&spec(words), &differences, &observed), None, "{words:?}");
        }
        let planted = spec(&["--plant", "getppid"]);
        let mut deep = planted.clone();
        deep.cells[0].depth = 4;
        assert_eq!(check(&deep, &differences, &observed), None, "a receive may have several messages");
        differences[0].parts[0].1.interval = None;
        assert_eq!(check(&planted, &differences, &observed), None, "there are few rounds");
        assert_eq!(Planted::of("split-write", "uring"), None, "it has no place of its own");
    }
}
