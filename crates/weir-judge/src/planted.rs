//! Whether waste planted into an arm is found in the right place. Pure.
//!
//! The arguments of an arm may make it waste something on every message (`--plant`), which is the laboratory's
//! self-test. The part with the waste must lead the table of the arm's differences from the baseline, and have the
//! right size: the whole interval is above zero and, for a time, contains it; for a system call, there is one more
//! per message. This is required if the arm and its baseline differ in nothing else and each receive is one message.
//!
//! A second write is also a second segment, which over loopback is received in a softirq within the call that sends
//! it, at about the cost of the call itself. The table has both, and the check combines them.

use std::collections::BTreeMap;

use weir_record::{
    check::{Check, CheckName},
    cpu_account::{Amount, CpuDifference, CpuPart},
    evidence::ArmEvidence,
    finding::{Finding, PlantedApart},
    spec::{CellSpec, StudySpec, Subject},
};

/// Most differences that the check lists.
const APART_MAX: usize = 8;

/// A planted time lies between two clock readings, of which the second is the first one late enough. The time before
/// the first and after the second reading, and the excess, amount to at most two readings, however long the planted
/// time is: less than this if reading the clock needs no system call, as with every clock that a study should use.
const READINGS_NS: f64 = 100.0;

/// A longer time includes more interrupts, which are charged to the thread.
const TIME_RATIO_MAX: f64 = 1.02;

/// Smallest size of the engine's buffers (`weir_engine::pool`): a message up to this size is one receive.
const BUFFER_BYTES: u32 = 2048;

/// How far the additional calls per message may be from one: some are in progress at the edges of a slice.
const CALLS_APART_MAX: f64 = 0.01;

/// The planted waste on every message.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Planted {
    TimeNs(f64),
    Call(&'static str),
    /// A separate segment, with the call that sends it.
    Segment,
    /// A wake-up of a server thread: a call, and the switch to that thread, which often costs more.
    Wake,
}

impl Planted {
    /// `None` if the text is no waste of CPU, or has no separate place on the driver.
    fn of(text: &str, driver: &str) -> Option<Self> {
        match text {
            "getppid" => Some(Self::Call("getppid")),
            "wake" => Some(Self::Wake),
            // io_uring sends within `io_uring_enter`.
            "split-write" => (driver != "uring").then_some(Self::Segment),
            time => time.strip_suffix("ns")?.parse().ok().map(Self::TimeNs),
        }
    }

    /// Whether this part may lead.
    fn is_in(self, part: &CpuPart) -> bool {
        let is_own_call = matches!(part, CpuPart::Call(name) if self.call() == Some(name.as_str()));
        match self {
            Self::TimeNs(_) => *part == CpuPart::Server,
            Self::Call(_) | Self::Segment => is_own_call,
            Self::Wake => is_own_call || *part == CpuPart::Switching,
        }
    }

    fn call(self) -> Option<&'static str> {
        match self {
            Self::TimeNs(_) => None,
            Self::Call(name) => Some(name),
            Self::Segment => Some("sendto"),
            // To the descriptor that the other thread waits for.
            Self::Wake => Some("write"),
        }
    }

    /// The leading part, by its name in exported data, and whether it is the right one.
    fn leading(self, it: &CpuDifference) -> Option<(String, Amount, bool)> {
        let with_softirqs =
            |name| Some((format!("with-softirqs-{name}"), leads_with_softirqs(name, it)?, true));
        let together = self.call().filter(|_| self == Self::Segment).and_then(with_softirqs);
        together.or_else(|| it.parts.first().map(|(part, amount)| (part.key(), *amount, self.is_in(part))))
    }

    /// Whether a part with this interval and this number of additional calls per message has the right size.
    fn has_size(self, (low, high): (f64, f64), more_calls: Option<f64>) -> bool {
        let is_size = match self {
            Self::TimeNs(ns) => low <= TIME_RATIO_MAX * ns + READINGS_NS && ns <= high,
            Self::Call(_) | Self::Segment | Self::Wake => {
                more_calls.is_some_and(|more| (more - 1.0).abs() <= CALLS_APART_MAX)
            }
        };
        low > 0.0 && is_size
    }
}

/// The check over all arms with planted waste; `None` if nothing is required, or if too few rounds have evidence for
/// an interval.
pub(crate) fn check(
    spec: &StudySpec,
    differences: &[CpuDifference],
    observed: &[ArmEvidence],
) -> Option<Check> {
    let found: Vec<Option<PlantedApart>> =
        differences.iter().filter_map(|it| looked_at(must_lead(spec, it)?, it, observed)).collect();
    let differences = found.len() as u64;
    let mut apart: Vec<PlantedApart> = found.into_iter().flatten().collect();
    let passed = apart.is_empty();
    apart.truncate(APART_MAX);
    let detail = Finding::PlantedLeads { differences, apart };
    (differences > 0).then_some(Check { name: CheckName::PlantedLeads, passed, detail })
}

/// The waste planted into the arm of a difference, as written and as parsed. `None` if it need not lead: if the
/// baseline also plants waste or differs otherwise, and if receives and messages are not one to one.
fn must_lead<'spec>(spec: &'spec StudySpec, it: &CpuDifference) -> Option<(&'spec str, Planted)> {
    let subject = |name: &str| spec.arms.iter().find(|arm| arm.name == name).map(|arm| &arm.subject);
    let Subject::Weir { driver, options, arguments } = subject(&it.arm)? else { return None };
    let (text, others) = parse_plant(arguments);
    let Subject::Weir { driver: other_driver, options: other_options, arguments } = subject(&it.baseline)?
    else {
        return None;
    };
    let is_all = (other_driver, other_options, parse_plant(arguments)) == (driver, options, (None, others));
    let cell = spec.cells.iter().find(|cell| cell.id == it.cell_id)?;
    let text = text.filter(|_| is_all && has_a_message_each(cell, options))?;
    Some((text, Planted::of(text, driver)?))
}

/// Waste is planted per receive, which may contain several messages if several are in flight; and a message larger
/// than a buffer needs several receives.
fn has_a_message_each(cell: &CellSpec, options: &BTreeMap<String, String>) -> bool {
    let own = options.get("buffer-bytes").and_then(|bytes| bytes.parse().ok());
    cell.depth == 1 && cell.message_bytes <= own.unwrap_or(BUFFER_BYTES)
}

/// The planted waste in the arguments, and the other arguments.
fn parse_plant(arguments: &[String]) -> (Option<&str>, Vec<&str>) {
    let (mut planted, mut others) = (None, Vec::new());
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if word == "--plant" {
            planted = words.next();
        } else if let Some(text) = word.strip_prefix("--plant=") {
            planted = Some(text);
        } else {
            others.push(word);
        }
    }
    (planted, others)
}

/// What leads in place of the planted waste, or its wrong size; the inner value is `None` if nothing leads.
fn looked_at(
    (text, planted): (&str, Planted),
    it: &CpuDifference,
    observed: &[ArmEvidence],
) -> Option<Option<PlantedApart>> {
    let (part, amount, is_in_place) = planted.leading(it)?;
    let interval = amount.interval?;
    let more_calls = planted.call().and_then(|name| more_calls(name, it, observed));
    if is_in_place && planted.has_size(interval, more_calls) {
        return Some(None);
    }
    Some(Some(PlantedApart {
        cell_id: it.cell_id.clone(),
        arm: it.arm.clone(),
        planted: text.to_owned(),
        part,
        ns: amount.ns,
        interval,
        more_calls,
    }))
}

/// A call with the softirqs that ran within it, if the sum exceeds every other part and all other softirqs.
fn leads_with_softirqs(name: &str, it: &CpuDifference) -> Option<Amount> {
    let (_, both) = it.with_softirqs.iter().find(|(own, _)| own == name)?;
    let is_call = |part: &CpuPart| matches!(part, CpuPart::Call(own) if own == name);
    let call_ns = it.parts.iter().find(|(part, _)| is_call(part)).map_or(0.0, |(_, amount)| amount.ns);
    let is_less = |(part, amount): &(CpuPart, Amount)| match part {
        part if is_call(part) => true,
        CpuPart::Softirqs => (amount.ns - (both.ns - call_ns)).abs() < both.ns,
        _ => !amount.is_told_from_nothing() || amount.ns.abs() < both.ns,
    };
    it.parts.iter().all(is_less).then_some(*both)
}

/// Additional calls of this name per message, relative to the baseline.
fn more_calls(name: &str, it: &CpuDifference, observed: &[ArmEvidence]) -> Option<f64> {
    let of_arm = |arm: &str| {
        let own = observed.iter().find(|own| own.cell_id == it.cell_id && own.arm == arm)?;
        Some(own.calls.iter().find(|call| call.name == name).map_or(0.0, |call| call.count))
    };
    Some(of_arm(&it.arm)? - of_arm(&it.baseline)?)
}

#[cfg(test)]
mod tests {
    use weir_record::evidence::CallEvidence;

    use super::*;
    use crate::sample::study;

    /// A study of two equal arms, except that the second has these arguments.
    fn spec(arguments: &[&str]) -> StudySpec {
        let mut spec = study(&["plain", "other"], 8, 1);
        change(&mut spec, 0, "epoll", &[]);
        change(&mut spec, 1, "epoll", arguments);
        spec
    }

    /// Gives an arm another driver and other arguments.
    fn change(spec: &mut StudySpec, arm: usize, driver: &str, words: &[&str]) {
        spec.arms[arm].subject = Subject::Weir {
            driver: driver.to_owned(),
            options: BTreeMap::new(),
            arguments: words.iter().map(|word| (*word).to_owned()).collect(),
        };
    }

    /// The second arm's difference from the first, led by this part; and the observed calls of both.
    fn seen(part: CpuPart, interval: (f64, f64), more: f64) -> ([CpuDifference; 1], [ArmEvidence; 2]) {
        let cell_id = spec(&[]).cells[0].id.clone();
        let amount = |interval: (f64, f64)| Amount {
            ns: f64::midpoint(interval.0, interval.1),
            interval: Some(interval),
        };
        let difference = CpuDifference {
            cell_id: cell_id.clone(),
            arm: "other".to_owned(),
            baseline: "plain".to_owned(),
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
        ([difference], [of_arm("plain", 1.0), of_arm("other", 1.0 + more)])
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
        for (planted, interval) in [
            ("1000ns", (980.0, 1_010.0)),
            ("1000ns", (1_020.0, 1_060.0)),
            ("300ns", (350.0, 390.0)),
            ("100000ns", (100_900.0, 101_500.0)),
        ] {
            assert_eq!(outcome(planted, CpuPart::Server, interval, 0.0), Some(true), "{interval:?}");
        }
        let (differences, mut observed) = seen(CpuPart::Switching, (4_360.0, 5_260.0), 1.0);
        observed.iter_mut().for_each(|arm| arm.calls[0].name = "write".to_owned());
        let by_switching = check(&spec(&["--plant", "wake"]), &differences, &observed);
        assert!(by_switching.is_some_and(|check| check.passed), "what a wake-up costs most is the switch");
        let (differences, observed) = seen(call("getppid"), (80.0, 120.0), 1.0);
        let in_one_word = check(&spec(&["--plant=getppid"]), &differences, &observed);
        assert!(in_one_word.is_some_and(|check| check.passed));
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
            ("100000ns", CpuPart::Server, (105_000.0, 106_000.0), 0.0),
        ] {
            assert_eq!(outcome(planted, part, interval, more), Some(false), "{planted} {interval:?}");
        }
    }

    /// A send with 1.8 µs more, with this much of the softirqs' additional 2 µs within it.
    fn with_a_segment(within_ns: f64) -> ([CpuDifference; 1], [ArmEvidence; 2]) {
        let (mut differences, observed) = seen(call("sendto"), (1_700.0, 1_900.0), 1.0);
        let amount = |ns: f64| Amount { ns, interval: Some((ns - 300.0, ns + 300.0)) };
        differences[0].parts.insert(0, (CpuPart::Softirqs, amount(2_000.0)));
        differences[0].with_softirqs = vec![("sendto".to_owned(), amount(1_800.0 + within_ns))];
        (differences, observed)
    }

    #[test]
    fn a_second_write_leads_with_the_softirqs_within_it_and_no_other_call_does() {
        let passed = |planted, (differences, observed): &([CpuDifference; 1], [ArmEvidence; 2])| {
            let found = check(&spec(&["--plant", planted]), differences, observed);
            found.map(|check| check.passed)
        };
        let within = with_a_segment(1_990.0);
        assert_eq!(passed("split-write", &within), Some(true));
        assert_eq!(passed("getppid", &within), Some(false), "it is no send");
        let mut more = within.clone();
        more.1[1].calls[0].count += 1.0;
        assert_eq!(passed("split-write", &more), Some(false), "two were planted");
        let found = check(&spec(&["--plant", "split-write"]), &more.0, &more.1).expect("it was looked at");
        let Finding::PlantedLeads { apart, .. } = &found.detail else { panic!("{found:?}") };
        assert_eq!((apart[0].part.as_str(), apart[0].ns), ("with-softirqs-sendto", 3_790.0));
        let mut elsewhere = with_a_segment(0.0);
        assert_eq!(passed("split-write", &elsewhere), Some(false), "softirqs elsewhere take more");
        elsewhere.0[0].with_softirqs.clear();
        assert_eq!(passed("split-write", &elsewhere), Some(false), "where they ran is not known");
        let mut between = within.clone();
        let amount = |ns: f64| Amount { ns, interval: Some((ns - 100.0, ns + 100.0)) };
        between.0[0].parts.insert(0, (CpuPart::Switching, amount(3_000.0)));
        assert_eq!(passed("split-write", &between), Some(true), "both together take more");
        let mut behind = within;
        behind.0[0].parts.insert(0, (CpuPart::Server, amount(4_000.0)));
        assert_eq!(passed("split-write", &behind), Some(false), "the server's own work takes more");
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
        let mut large = planted.clone();
        large.cells[0].message_bytes = 4096;
        assert_eq!(check(&large, &differences, &observed), None, "a message may have several receives");
        differences[0].parts[0].1.interval = None;
        assert_eq!(check(&planted, &differences, &observed), None, "there are few rounds");
        assert_eq!(Planted::of("split-write", "uring"), None, "it has no separate place");
    }

    #[test]
    fn an_arm_that_differs_from_its_baseline_in_more_need_not_have_what_is_planted_lead() {
        let (differences, observed) = seen(call("write"), (80.0, 120.0), 1.0);
        let is_checked = |driver: &str, baseline: &[&str], arm: &[&str]| {
            let mut spec = spec(arm);
            change(&mut spec, 0, driver, baseline);
            check(&spec, &differences, &observed).is_some()
        };
        let planted = &["--backlog", "10", "--plant", "wake"][..];
        assert!(is_checked("epoll", &["--backlog", "10"], planted));
        assert!(!is_checked("poll", &["--backlog", "10"], planted), "another driver");
        assert!(!is_checked("epoll", &[], planted), "another argument");
        assert!(!is_checked("epoll", &["--backlog", "10", "--plant=getppid"], planted), "both plant");
        let mut small = spec(&["--plant", "wake"]);
        for arm in &mut small.arms {
            let Subject::Weir { options, .. } = &mut arm.subject else { panic!("it is Weir's") };
            options.insert("buffer-bytes".to_owned(), "64".to_owned());
        }
        assert!(check(&small, &differences, &observed).is_some());
        small.cells[0].message_bytes = 100;
        assert_eq!(check(&small, &differences, &observed), None, "a message has two receives");
    }
}
