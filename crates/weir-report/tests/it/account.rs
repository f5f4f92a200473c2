//! Where the server CPU goes: parts, whether they add up, and differences, in three languages.

use weir_record::{
    cpu_account::{Amount, CpuAccount, CpuDifference, CpuPart, Explained},
    evidence::ArmEvidence,
    goal::Outcome,
    observation::Rung,
    study::StudyResult,
};
use weir_report::{Language, csv, html, markdown};

use crate::fixture;

fn call(name: &str) -> CpuPart {
    CpuPart::Call(name.to_owned())
}

fn amount(ns: f64, half: f64) -> Amount {
    Amount { ns, interval: (half > 0.0).then_some((ns - half, ns + half)) }
}

/// An arm that times itself and one that does not.
pub fn accounted(outcome: Outcome) -> StudyResult {
    let mut result = fixture::quick();
    let arm = |arm: &str, account: CpuAccount| ArmEvidence {
        cell_id: result.spec.cells[0].id.clone(),
        arm: arm.to_owned(),
        rung: Rung::Programs,
        slices: 6,
        messages: 120_000,
        server_cpu_ns: 7_000.0,
        account: Some(account),
        ..ArmEvidence::default()
    };
    let explained = Explained { share: 0.981, interval: Some((0.962, 0.999)), outcome, is_beyond: false };
    let epoll = CpuAccount {
        rounds: 6,
        server_cpu: amount(6_000.0, 90.0),
        parts: vec![
            (call("sendto"), amount(2_700.0, 40.0)),
            (CpuPart::Softirqs, amount(2_100.0, 50.0)),
            (CpuPart::Server, amount(600.0, 12.0)),
            (CpuPart::UringThreads, amount(386.0, 0.0)),
            (CpuPart::OtherCalls, amount(100.0, 1.0)),
            (CpuPart::Unexplained, amount(114.0, 108.0)),
        ],
        with_softirqs: vec![("sendto".to_owned(), amount(4_790.0, 60.0))],
        explained: Some(explained),
    };
    let uring = CpuAccount {
        server_cpu: amount(5_000.0, 80.0),
        parts: vec![
            (call("io_uring_enter"), amount(4_400.0, 70.0)),
            (CpuPart::OutsideCalls, amount(600.0, 30.0)),
        ],
        with_softirqs: Vec::new(),
        explained: None,
        ..epoll.clone()
    };
    let difference = CpuDifference {
        cell_id: result.spec.cells[0].id.clone(),
        arm: "uring".to_owned(),
        baseline: "epoll".to_owned(),
        rounds: 6,
        parts: vec![
            (call("io_uring_enter"), amount(4_400.0, 70.0)),
            (call("sendto"), amount(-2_700.0, 40.0)),
            (CpuPart::Softirqs, amount(-2_100.0, 50.0)),
            (CpuPart::OutsideCalls, amount(-600.0, 80.0)),
        ],
        with_softirqs: vec![("sendto".to_owned(), amount(-4_790.0, 60.0))],
        whole: amount(-1_000.0, 110.0),
    };
    result.evidence = vec![arm("epoll", epoll), arm("uring", uring)];
    result.cpu_differences = vec![difference];
    result
}

#[test]
fn differences_stand_first_and_end_with_the_whole() {
    let text = markdown(&accounted(Outcome::Met), Language::English);
    let from = text.find("## Where the server CPU goes").expect("the section is there");
    let section = &text[from..from + text[from + 3..].find("\n## ").map_or(text.len() - from, |end| end + 3)];
    insta::assert_snapshot!("account-markdown", section);
}

#[test]
fn an_account_that_does_not_close_is_loud_in_every_language() {
    for (language, closes, does_not) in [
        (Language::English, "| closes |", "| DOES NOT CLOSE |"),
        (Language::Korean, "| 맞음 |", "| 맞지 않음 |"),
        (Language::Chinese, "| 相符 |", "| 不相符 |"),
    ] {
        let told = |outcome| markdown(&accounted(outcome), language);
        assert!(
            told(Outcome::Met).contains(closes) && !told(Outcome::Met).contains(does_not),
            "{language:?}"
        );
        assert!(told(Outcome::Missed).contains(does_not), "{language:?}");
        let cell = does_not.trim_matches(['|', ' ']);
        assert!(html(&accounted(Outcome::Missed), language).contains(cell), "{language:?}");
    }
}

#[test]
fn parts_that_explain_more_than_there_is_are_named_in_every_language() {
    let mut result = accounted(Outcome::Missed);
    let explained = result.evidence[0].account.as_mut().and_then(|account| account.explained.as_mut());
    explained.expect("it has a clock").is_beyond = true;
    let words = ["| EXPLAINS MORE THAN THERE IS |", "| 실제보다 많이 설명됨 |", "| 解释多于实际 |"];
    for (language, word) in Language::ALL.into_iter().zip(words) {
        let text = markdown(&result, language);
        assert!(text.contains(word), "{text}");
    }
    assert!(!markdown(&result, Language::English).contains("DOES NOT CLOSE"), "it is told by its own name");
}

#[test]
fn places_are_drawn_as_a_bar_for_each_arm_with_their_numbers_behind() {
    let result = accounted(Outcome::Met);
    let text = markdown(&result, Language::English);
    let from = text.find("## Server CPU by place, drawn").expect("the section is there");
    let section = &text[from..from + text[from + 3..].find("\n## ").map_or(text.len() - from, |end| end + 3)];
    insta::assert_snapshot!("account-drawn", section);
    let page = html(&result, Language::English);
    for mark in [
        "epoll · sendto: 2.70 µs",
        "uring · io_uring_enter: 4.40 µs",
        "uring · outside of system calls: 600 ns",
    ] {
        assert!(page.contains(mark), "{mark}");
    }
    for (language, title) in
        [(Language::Korean, "서버 CPU를 쓴 곳(차트)"), (Language::Chinese, "服务器 CPU 去向图")]
    {
        assert!(html(&result, language).contains(title), "{language:?}");
    }
}

#[test]
fn a_kernel_that_charges_nobody_for_softirqs_is_told_of_in_every_language() {
    let option = "CONFIG_IRQ_TIME_ACCOUNTING";
    let mut result = accounted(Outcome::Met);
    for language in Language::ALL {
        assert!(!markdown(&result, language).contains(option), "it is not known, or not so");
    }
    result.evidence[0].softirqs_are_apart = Some(true);
    for language in Language::ALL {
        assert!(markdown(&result, language).contains(option), "{language:?}");
        assert!(html(&result, language).contains(option), "{language:?}");
    }
}

#[test]
fn every_part_is_exported_with_its_interval() {
    let text = csv(&accounted(Outcome::Met));
    let cell = fixture::quick().spec.cells[0].id.clone();
    for line in [
        "epoll,,cpu-call-sendto,mean,2700,ns",
        "epoll,,cpu-unexplained,interval-high,222,ns",
        "epoll,,cpu-whole,mean,6000,ns",
        "epoll,,cpu-explained,share,0.981,ratio",
        "uring,epoll,cpu-softirqs,interval-low,-2150,ns",
        "epoll,,cpu-with-softirqs-sendto,mean,4790,ns",
        "uring,epoll,cpu-with-softirqs-sendto,interval-high,-4730,ns",
        "uring,epoll,cpu-whole,mean,-1000,ns",
    ] {
        assert!(text.contains(&format!("{cell},{line}\n")), "{line}");
    }
    assert!(!text.contains("uring-threads,interval"), "what has no interval has no line for it");
}

#[test]
fn a_study_without_an_account_does_not_speak_of_it() {
    assert!(!markdown(&fixture::quick(), Language::English).contains("Where the server CPU goes"));
}
