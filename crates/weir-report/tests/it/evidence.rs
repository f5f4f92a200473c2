//! What the kernel did for each message: the two tables, in three languages, and their absence.

use weir_record::{
    cause::CauseSpec,
    effect::{Effect, EffectScale, Question},
    evidence::{
        AllCalls, ArmEvidence, Batches, CallEvidence, CallsOfKind, Coverage, GroupTax, KernelTime, Needed,
        OverRounds, SeenOfNeeded, UnderStrace, Waker,
    },
    figure::{Figure, PairedRatio},
    machine::NetworkCounters,
    observation::{Rung, StraceRow},
    published::TableName,
    spec::{Alternation, EvidencePlan},
    study::StudyResult,
    verdict::Verdict,
};
use weir_report::{ChartPage, Language, chart_page, csv, html, markdown};

use crate::{fixture, overview::published};

fn call(name: &str, count: f64, on_cpu_ns: f64, returned: f64) -> CallEvidence {
    CallEvidence { name: name.to_owned(), count, on_cpu_ns, returned, ..CallEvidence::default() }
}

fn coverage(engine: u64, kernel: u64) -> Coverage {
    Coverage { engine, kernel, at_edges: 12, is_unknown: false, kinds: Vec::new() }
}

fn seen(seen: u64, needed: u64) -> SeenOfNeeded {
    SeenOfNeeded { seen, needed }
}

fn waker(name: &str, count: f64) -> Waker {
    Waker { name: name.to_owned(), count, slept_ns: 12_000.0 }
}

fn group(group: &str, ratio: f64) -> GroupTax {
    let ratio = PairedRatio { ratio, interval: Some((ratio - 0.01, ratio + 0.01)), pairs: 6 };
    GroupTax { group: group.to_owned(), ratio }
}

/// One arm observed by the kernel's programs, and one known only from /proc.
pub fn observed() -> StudyResult {
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
        softirqs_are_apart: None,
        softirq_ns: Some((2_100.0, 350.0)),
        machine_cpu_ns: 15_300.0,
        network: Some(NetworkCounters { tcp_retransmits: 3, ..NetworkCounters::default() }),
        calls: vec![
            call("sendto", 1.0, 5_400.0, 64.0),
            call("recvfrom", 1.0, 1_000.0, 64.0),
            CallEvidence { blocked_ns: 7_800.0, ..call("epoll_wait", 0.04, 300.0, 25.3) },
            call("getpid", 0.000_1, 0.02, 0.0),
        ],
        all_calls: None,
        coverage: Some(coverage(244_800, 244_801)),
        needed: Some(Needed {
            received_bytes: Some(seen(7_680_000, 7_680_000)),
            sent_bytes: Some(seen(7_680_200, 7_680_000)),
            moves: seen(240_000, 240_000),
        }),
        generator_cpu_ns: Some(4_100.0),
        tax: Some(PairedRatio { ratio: 1.191, interval: Some((1.15, 1.233)), pairs: 6 }),
        tax_by_group: vec![group("calls", 1.081), group("softirqs", 1.043)],
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
        needed: None,
        generator_cpu_ns: None,
        tax: None,
        tax_by_group: Vec::new(),
        ..epoll.clone()
    };
    result.evidence = vec![epoll, uring];
    result
}

#[test]
fn calls_add_up_to_the_server_cpu_and_small_ones_stand_in_one_row() {
    let text = markdown(&observed(), Language::English);
    insta::assert_snapshot!("evidence-markdown", section(&text, "What the kernel did"));
}

#[test]
fn reading_proc_is_held_against_nobody_watching_in_every_language() {
    let mut result = observed();
    result.evidence[0].tax_by_group.insert(1, group("proc", 1.003));
    let told = [
        "| /proc, ten times a second | not observed | +0.3 % [",
        "| /proc, 초당 10회 | 관찰 없음 | +0.3 % [",
        "| /proc，每秒 10 次 | 未观测 | +0.3 % [",
    ];
    for (language, told) in Language::ALL.into_iter().zip(told) {
        let text = markdown(&result, language);
        assert!(text.contains(told), "{text}");
    }
}

#[test]
fn a_difference_between_engine_and_kernel_is_loud_in_every_language() {
    assert_agreement(
        coverage(244_800, 230_000),
        ["NOT THE SAME: 244,800 / 230,000", "불일치: 244,800 / 230,000", "不一致：244,800 / 230,000"],
    );
    let of_kind = |kind: &str, engine, kernel| CallsOfKind { kind: kind.to_owned(), engine, kernel };
    let kinds = vec![of_kind("receive", 100_000, 90_000), of_kind("send", 144_800, 154_800)];
    assert_agreement(
        Coverage { kinds, ..coverage(244_800, 244_800) },
        ["NOT THE SAME: 244,800 / 244,800", "불일치: 244,800 / 244,800", "不一致：244,800 / 244,800"],
    );
}

#[test]
fn where_the_engine_did_not_count_every_kind_it_is_not_known_whether_it_agrees() {
    assert_agreement(
        Coverage { is_unknown: true, ..coverage(244_800, 244_801) },
        [
            "not known, not every kind was counted yet: 244,800 / 244,801",
            "알 수 없음(일부 종류를 아직 세지 않던 때의 결과): 244,800 / 244,801",
            "未知（当时尚未统计所有种类）：244,800 / 244,801",
        ],
    );
}

fn assert_agreement(coverage: Coverage, words: [&str; 3]) {
    let mut result = observed();
    result.evidence[0].coverage = Some(coverage);
    let languages = [Language::English, Language::Korean, Language::Chinese];
    for (language, words) in languages.into_iter().zip(words) {
        assert!(markdown(&result, language).contains(words), "{language:?}");
        assert!(html(&result, language).contains(words), "{language:?}");
    }
}

#[test]
fn calls_that_cannot_have_moved_the_messages_are_loud_in_every_language() {
    let mut result = observed();
    let told = |result: &StudyResult| Language::ALL.map(|language| markdown(result, language));
    let not_all = [
        "NOT ALL OF IT: 0.0 % of bytes in",
        "일부만 관찰됨: 받은 바이트 0.0 %",
        "只观测到一部分：接收字节 0.0 %",
    ];
    for (text, not_all) in told(&result).iter().zip(not_all) {
        assert!(!text.contains(not_all), "{text}");
    }
    let needed = result.evidence[0].needed.as_mut().expect("it is known");
    needed.received_bytes = Some(seen(0, 7_680_000));
    for (text, not_all) in told(&result).iter().zip(not_all) {
        assert!(text.contains(not_all), "{text}");
    }
    let ring = Needed { received_bytes: None, sent_bytes: None, moves: seen(300_000, 240_000) };
    result.evidence[0].needed = Some(ring);
    assert!(markdown(&result, Language::English).contains("&gt;100 % of calls and operations"));
}

#[test]
fn a_study_without_evidence_does_not_speak_of_it() {
    assert!(!markdown(&fixture::quick(), Language::English).contains("What the kernel did"));
}

fn section<'t>(text: &'t str, title: &str) -> &'t str {
    let from = text.find(&format!("## {title}")).expect("the section is there");
    &text[from..from + text[from + 3..].find("\n## ").map_or(text.len() - from, |end| end + 3)]
}

/// Two arms under strace in the first cell: the baseline sleeps in its calls, the other one does not.
fn under_strace() -> StudyResult {
    let mut result = observed();
    let cell = &mut result.spec.cells[0];
    let plan =
        EvidencePlan { rounds: 6, slice_ns: 500_000_000, pairs: 1, by_group: false, strace: true, after: 0 };
    cell.alternation =
        Some(Alternation { slice_ns: 25_000_000, permutations: 6, prime_messages: 2, evidence: Some(plan) });
    let row = |name: &str, calls, time_ns| StraceRow { name: name.to_owned(), calls, time_ns, errors: 0 };
    let arm = |arm: &str, (rows, moved), wall, awake, each| UnderStrace {
        cell_id: cell.id.clone(),
        arm: arm.to_owned(),
        length_ns: 500_000_000,
        messages: 2_000,
        needed: Some(seen(moved, 4_000)),
        rows,
        kept: Some(0.021),
        kernel: Some(KernelTime {
            wall_ns_per_second: wall,
            awake_ns_per_second: awake,
            on_cpu_ns_per_second: awake,
            on_cpu_ns: each,
        }),
    };
    let waits = vec![row("epoll_wait", 1_900, 450_000_000), row("sendto", 2_000, 22_000_000)];
    let enters = vec![row("io_uring_enter", 1_300, 4_000_000)];
    result.strace = vec![
        arm("epoll", (waits, 4_000), 940e6, 12e6, 6_700.0),
        arm("uring", (enters, 0), 9e6, 8e6, 5_100.0),
    ];
    result
}

#[test]
fn strace_stands_beside_the_kernel_and_its_ratio_dissolves() {
    let text = markdown(&under_strace(), Language::English);
    insta::assert_snapshot!("evidence-strace", section(&text, "System calls under strace"));
    for (language, said) in [(Language::Korean, "strace의 합계로는"), (Language::Chinese, "按 strace 的合计")]
    {
        assert!(html(&under_strace(), language).contains(said), "{language:?}");
    }
}

#[test]
fn shares_of_calls_stand_beside_those_that_were_published() {
    let mut result = under_strace();
    let rows = [("clock_nanosleep", [9.76, 20.75]), ("epoll_wait", [89.43, 0.0]), ("fcntl", [0.35, 58.56])];
    result.spec.published_tables = vec![published(TableName::SystemCallShares, &rows)];
    let text = markdown(&result, Language::English);
    let told = section(&text, "System calls under strace");
    let lines = [
        "| epoll | epoll_wait | 89.43 % | 95.3 % |",
        "| epoll | clock_nanosleep | 9.76 % | – |",
        "| epoll | fcntl | 0.35 % | – |",
        "| epoll | sendto | – | 4.7 % |",
        "| uring | fcntl | 58.56 % | – |",
        "| uring | clock_nanosleep | 20.75 % | – |",
        "| uring | io_uring_enter | – | 100 % |",
    ];
    assert!(told.contains(&lines.join("\n")), "{told}");
    assert!(told.contains("Published beside it (Document 000): Arithmetic means"), "{told}");
}

#[test]
fn strace_that_held_nothing_says_so_and_one_that_was_not_asked_for_says_nothing() {
    let mut result = under_strace();
    result.strace.clear();
    assert!(markdown(&result, Language::English).contains("No server was held by strace"));
    assert!(!markdown(&observed(), Language::English).contains("under strace"));
}

#[test]
fn calls_are_set_against_connections_where_there_are_several() {
    let mut result = observed();
    assert!(!markdown(&result, Language::English).contains("against connections"));
    let few = &result.spec.cells[0];
    let other =
        result.spec.cells.iter().find(|cell| cell.connections != few.connections).expect("there is one");
    result.evidence.push(ArmEvidence { cell_id: other.id.clone(), ..result.evidence[0].clone() });
    let page = html(&result, Language::English);
    for figure in ["2.04", "6.70 µs"] {
        let title = format!("epoll · {}: {figure}", few.connections);
        assert!(page.contains(&title), "{title} is a mark");
    }
    let text = markdown(&result, Language::English);
    insta::assert_snapshot!(
        "evidence-connections",
        section(&text, "System call overhead as traffic (connections) grows")
    );
}

#[test]
fn calls_against_connections_have_intervals_where_rounds_have_them_and_say_where_not() {
    let mut result = observed();
    let few = &result.spec.cells[0];
    let other =
        result.spec.cells.iter().find(|cell| cell.connections != few.connections).expect("there is one");
    result.evidence.push(ArmEvidence { cell_id: other.id.clone(), ..result.evidence[0].clone() });
    let of = |value: f64, interval| OverRounds { rounds: vec![value], mean: Figure { value, interval } };
    let kept = |calls, time| Some(AllCalls { count: of(2.04, calls), on_cpu_ns: of(6_700.0, time) });
    let whiskers = |page: &str| page.matches(" whisker\"").count();
    let bare =
        ["A mark without an interval is of fewer than three", "신뢰구간이 없는 점은", "没有置信区间的点"];
    let page = |result: &StudyResult| {
        let (page, language) = (ChartPage::SystemCalls, Language::English);
        chart_page(result, page, language, "/study/one")
    };
    assert_eq!(whiskers(&page(&result)), 0);
    for (language, bare) in Language::ALL.into_iter().zip(bare) {
        assert!(html(&result, language).contains(bare), "{language:?}");
    }
    for arm in result.evidence.iter_mut().filter(|arm| !arm.calls.is_empty()) {
        arm.all_calls = kept(Some((1.98, 2.1)), Some((6_500.0, 6_900.0)));
    }
    let drawn = page(&result);
    assert!(whiskers(&drawn) > 0 && !drawn.contains(bare[0]), "{drawn}");
    assert!(drawn.contains("2.04 [1.98, 2.10]"), "{drawn}");
    let text = markdown(&result, Language::English);
    assert!(text.contains("| 6.70 µs [6.50 µs, 6.90 µs] (8"), "{text}");
    for line in ["system-calls,mean-interval-low,1.98,count", "system-calls-on-cpu,mean,6700,ns"] {
        assert!(csv(&result).contains(line), "{line}");
    }
    result.spec.published_tables = vec![published(TableName::SystemCallOverhead, &[])];
    let as_text = "Document 000: published as text only, without data. Arithmetic means";
    assert!(!drawn.contains(as_text) && page(&result).contains(as_text));
    result.evidence[0].all_calls = kept(None, None);
    assert!(page(&result).contains(bare[0]) && page(&result).contains(" whisker\""));
}

/// The primary difference with two tested switches: one that accounts for half of it, and one that may have no
/// effect.
fn with_causes() -> StudyResult {
    let mut result = fixture::quick();
    let primary = &mut result.effects.rows[result.primary.expect("there is one")];
    (primary.estimate, primary.interval) = (Some(0.64), Some((0.62, 0.66)));
    let primary = primary.clone();
    let row = |question: Question, without: &str, scale: EffectScale, figure: (f64, f64, f64)| Effect {
        question,
        cell_id: primary.cell_id.clone(),
        arm: primary.arm.clone(),
        baseline: without.to_owned(),
        metric: primary.metric,
        scale,
        estimate: Some(figure.0),
        interval: Some((figure.1, figure.2)),
        units: 30,
        ..Effect::default()
    };
    let switches = [("receive", (0.5, 0.45, 0.55)), ("submit", (0.02, -0.03, 0.07))];
    for (place, (switch, share)) in (0..).zip(switches) {
        let without = format!("without-{switch}");
        result.effects.rows.extend([
            row(Question::Switch(place), &without, EffectScale::Ratio, (0.8, 0.79, 0.81)),
            row(Question::CauseShare(place), &without, EffectScale::Share, share),
        ]);
        result.spec.causes.push(CauseSpec {
            arm: primary.arm.clone(),
            without,
            switch: format!("options.{switch}"),
            cells: vec![primary.cell_id.clone()],
            metric: primary.metric,
        });
    }
    result
}

#[test]
fn because_is_said_of_a_switch_whose_share_is_known_and_of_nothing_else() {
    let text = markdown(&with_causes(), Language::English);
    insta::assert_snapshot!("evidence-causes", section(&text, "Causes, as experiments"));
    let because =
        "Because, of this difference, as arms without the switch show: options.receive 50 % [45 %, 55 %].";
    assert!(text.contains(because), "{text}");
    assert!(
        !text.contains("show: options.submit")
            && !markdown(&fixture::quick(), Language::English).contains("Because")
    );
    let mut open = with_causes();
    let primary = open.primary.expect("there is one");
    open.effects.rows[primary].verdict = Verdict::Inconclusive;
    assert!(!markdown(&open, Language::English).contains("Because, of this"), "nothing was called");
    for (language, said) in [(Language::Korean, "이 차이의 원인"), (Language::Chinese, "这一差异的原因")]
    {
        assert!(html(&with_causes(), language).contains(said), "{language:?}");
    }
}
