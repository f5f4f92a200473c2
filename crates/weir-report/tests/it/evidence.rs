//! What the kernel did for each message: the two tables, in three languages, and their absence.

use weir_record::{
    evidence::{ArmEvidence, Batches, CallEvidence, Coverage, Waker},
    machine::NetworkCounters,
    observation::Rung,
    study::{PairedRatio, StudyResult},
};
use weir_report::{Language, html, markdown};

use crate::fixture;

fn call(name: &str, count: f64, on_cpu_ns: f64, returned: f64) -> CallEvidence {
    CallEvidence { name: name.to_owned(), count, on_cpu_ns, returned, ..CallEvidence::default() }
}

fn waker(name: &str, count: f64) -> Waker {
    Waker { name: name.to_owned(), count, slept_ns: 12_000.0 }
}

/// One arm that the kernel's programs saw, and one that only /proc tells of.
fn observed() -> StudyResult {
    let mut result = fixture::quick();
    let epoll = ArmEvidence {
        cell_id: result.spec.cells[0].id.clone(),
        arm: "epoll".to_owned(),
        rung: Rung::Programs,
        slices: 6,
        messages: 120_000,
        server_cpu_ns: 8_000.0,
        context_switches: (0.005, 0.001),
        batches: Batches { events_per_wait: Some(25.3), ..Batches::default() },
        wakers: vec![waker("softirq NET_RX", 0.04), waker("", 0.000_2)],
        softirq_ns: Some((2_100.0, 350.0)),
        machine_cpu_ns: 15_300.0,
        network: Some(NetworkCounters { tcp_retransmits: 3, ..NetworkCounters::default() }),
        calls: vec![
            call("sendto", 1.0, 5_400.0, 64.0),
            call("recvfrom", 1.0, 1_000.0, 64.0),
            CallEvidence { blocked_ns: 7_800.0, ..call("epoll_wait", 0.04, 300.0, 25.3) },
            call("getpid", 0.000_1, 0.02, 0.0),
        ],
        coverage: Some(Coverage { engine: 244_800, kernel: 244_801, at_edges: 12 }),
        tax: Some(PairedRatio { ratio: 1.191, interval: Some((1.15, 1.233)), pairs: 6 }),
        account: None,
    };
    let uring = ArmEvidence {
        arm: "uring".to_owned(),
        rung: Rung::Process,
        wakers: Vec::new(),
        softirq_ns: None,
        network: None,
        calls: Vec::new(),
        coverage: None,
        tax: None,
        ..epoll.clone()
    };
    result.evidence = vec![epoll, uring];
    result
}

#[test]
fn calls_add_up_to_the_server_cpu_and_small_ones_stand_in_one_row() {
    let text = markdown(&observed(), Language::English);
    let from = text.find("## What the kernel did").expect("the section is there");
    let section = &text[from..from + text[from + 3..].find("\n## ").map_or(text.len() - from, |end| end + 3)];
    insta::assert_snapshot!("evidence-markdown", section);
}

#[test]
fn a_difference_between_engine_and_kernel_is_loud_in_every_language() {
    let mut result = observed();
    result.evidence[0].coverage = Some(Coverage { engine: 244_800, kernel: 230_000, at_edges: 12 });
    for (language, words) in [
        (Language::English, "NOT THE SAME: 244,800 / 230,000"),
        (Language::Korean, "불일치: 244,800 / 230,000"),
        (Language::Chinese, "不一致：244,800 / 230,000"),
    ] {
        assert!(markdown(&result, language).contains(words), "{language:?}");
        assert!(html(&result, language).contains(words), "{language:?}");
    }
}

#[test]
fn a_study_without_evidence_does_not_speak_of_it() {
    assert!(!markdown(&fixture::quick(), Language::English).contains("What the kernel did"));
}
