//! Several pooled runs, in each form and language; and a single run's time and rank.

use weir_record::{
    SCHEMA_VERSION,
    effect::EffectScale,
    finding::Finding,
    machine::FactDifference,
    metric::Metric,
    run_pool::{
        AmongRuns, GroupFigure, LeftOut, MachineGroup, Period, PoolLack, PoolRun, PooledEffect, PooledFigure,
        RunFigure, RunLeftOut, RunPool,
    },
    spec::CellRole,
    study::StudyResult,
    verdict::Verdict,
};
use weir_report::{Language, run_pool};

use crate::fixture;

const CELL: &str = "c100-d1-m64-closed";
const BEGAN: u64 = 1_795_936_200;

fn period(number: u32) -> Period {
    let began_unix_s = BEGAN + 600 * u64::from(number - 1);
    Period { began_unix_s, ended_unix_s: began_unix_s + 92, sessions: 1 }
}

fn run(number: u32, left_out: Option<LeftOut>) -> PoolRun {
    PoolRun {
        number,
        place: format!("weir-results/quick-{number}"),
        period: Some(period(number)),
        elapsed_ns: 92_000_000_000,
        seed: u64::from(number),
        weir_version: "0.1.0 (b9cf284)".to_owned(),
        group: if number < 6 { 1 } else { 2 },
        left_out,
    }
}

fn figure(run: u32, figure: f64) -> RunFigure {
    RunFigure {
        run,
        group: if run < 6 { 1 } else { 2 },
        figure,
        interval: Some((figure - 0.008, figure + 0.008)),
        standard_error: 0.003,
        units: 30,
        rate_per_second: Some(57_000.0 + 100.0 * f64::from(run)),
        verdict: Verdict::Better,
    }
}

fn pooled(runs: u32, figure: f64) -> PooledFigure {
    PooledFigure {
        runs,
        range: Some((figure - 0.015, figure + 0.015)),
        figure: Some(figure),
        interval: Some((figure - 0.02, figure + 0.021)),
        confidence: 0.99,
        p_value: Some(0.0003),
        between: Some(0.0124),
        next_effect: Some((figure - 0.05, figure + 0.05)),
        next_figure: Some((figure - 0.06, figure + 0.06)),
        lacks: None,
    }
}

/// Too few runs for anything but their range.
fn of_few(runs: u32, figure: f64) -> PooledFigure {
    PooledFigure {
        figure: None,
        interval: None,
        p_value: None,
        between: None,
        next_effect: None,
        next_figure: None,
        lacks: Some(PoolLack::Interval { runs_min: 3 }),
        ..pooled(runs, figure)
    }
}

fn effect(metric: Metric, scale: EffectScale, verdict: Verdict) -> PooledEffect {
    PooledEffect {
        cell_id: CELL.to_owned(),
        role: CellRole::Primary,
        arm: "uring".to_owned(),
        baseline: "epoll".to_owned(),
        metric,
        scale,
        all: pooled(7, 0.805),
        groups: vec![
            GroupFigure { group: 1, pooled: pooled(5, 0.79) },
            GroupFigure { group: 2, pooled: of_few(2, 0.94) },
        ],
        runs: [(1, 0.78), (2, 0.8), (3, 0.79), (4, 0.785), (5, 0.795), (6, 0.94), (7, 0.95)]
            .map(|(run, value)| figure(run, value))
            .to_vec(),
        left_out: vec![RunLeftOut { run: 8, reason: LeftOut::OtherState { is_far: true } }],
        p_value_holm: Some(0.0006),
        verdict,
    }
}

/// A pool with all elements.
pub fn pool() -> RunPool {
    let group = |number: u32, cpu_model: &str, runs: &[u32]| MachineGroup {
        number,
        cpu_model: cpu_model.to_owned(),
        architecture: "x86_64".to_owned(),
        cpus_online: 2,
        kernel_release: "6.18.2".to_owned(),
        runs: runs.to_vec(),
    };
    let fact = FactDifference {
        name: "uring.spec.subject.weir.options.spin-us".to_owned(),
        one: String::new(),
        other: "50|*".to_owned(),
    };
    let reasons = vec![Finding::NoUnitLeft];
    let aside = [
        LeftOut::NoCell,
        LeftOut::NoArm,
        LeftOut::NotMeasured,
        LeftOut::OtherBaseline { baseline: "poll".to_owned() },
        LeftOut::OtherState { is_far: false },
        LeftOut::AskedDifferently { facts: vec![fact] },
        LeftOut::NotComparable { reasons },
        LeftOut::NotComparable { reasons: Vec::new() },
    ];
    let whole = [
        LeftOut::Unfinished { blocks_done: 3, blocks: 30 },
        LeftOut::SameRun { run: 2 },
        LeftOut::OtherStudy { name: "tps".to_owned() },
    ];
    let bare = PooledEffect {
        all: PooledFigure { runs: 0, range: None, ..of_few(0, 0.8) },
        groups: Vec::new(),
        runs: Vec::new(),
        left_out: aside.into_iter().zip(1..).map(|(reason, run)| RunLeftOut { run, reason }).collect(),
        ..effect(Metric::Throughput, EffectScale::Ratio, Verdict::NotComparable)
    };
    RunPool {
        schema_version: SCHEMA_VERSION,
        study: "quick".to_owned(),
        runs: (1..=8)
            .map(|number| run(number, None))
            .chain(whole.into_iter().zip(9..).map(|(why, number)| run(number, Some(why))))
            .collect(),
        groups: vec![
            group(1, "AMD EPYC 9R14", &[1, 2, 3, 4, 5]),
            group(2, "Intel Xeon 8488C", &[6, 7, 8, 9, 10, 11]),
        ],
        primary: Some(0),
        effects: vec![
            effect(Metric::ServerCpuPerMessage, EffectScale::Ratio, Verdict::Better),
            effect(Metric::SwitchesPerMessage, EffectScale::Difference, Verdict::NoClaim),
            bare,
        ],
    }
}

#[test]
fn a_pool_reads_well_in_every_language() {
    for language in Language::ALL {
        let code = language.code();
        let text = run_pool::terminal(&pool(), &fixture::quick(), language, 80, false);
        insta::assert_snapshot!(format!("run-pool-terminal-{code}"), text);
        let document = run_pool::markdown(&pool(), &fixture::quick(), language);
        insta::assert_snapshot!(format!("run-pool-markdown-{code}"), document);
    }
}

#[test]
fn the_page_draws_each_run_the_diamond_and_the_bar_and_has_their_numbers() {
    for language in Language::ALL {
        let page = run_pool::html(&pool(), &fixture::quick(), language);
        assert_eq!(page.matches("<figure").count(), 1, "{language:?}: only the claim is drawn");
        let count = |class: &str| page.matches(&format!("class=\"{class}\"")).count();
        // The group of two has no diamond: all runs have one, and the first machine.
        assert_eq!((count("a1 diamond"), count("a1 bar")), (2, 1), "{page}");
        assert_eq!(count("a1 interval"), 7, "one for each run");
        for fact in ["0.805 [0.785, 0.826]", "0.745 – 0.865", "2026-11-29 07:10", "AMD EPYC 9R14", "57,100/s"]
        {
            assert!(page.contains(fact), "{language:?}: {fact}");
        }
    }
    let two = RunPool { effects: vec![], primary: None, ..pool() };
    let page = run_pool::html(&two, &fixture::quick(), Language::English);
    assert!(!page.contains("<figure") && page.contains("No run has a primary comparison"), "{page}");
}

#[test]
fn no_name_and_no_number_that_is_none_breaks_the_views() {
    let mut odd = pool();
    odd.study = "<b>\u{1b}[2J".to_owned();
    odd.runs[0].place = "a\u{1b}[2J<script>`b`".to_owned();
    odd.runs[0].period = None;
    odd.groups[0].cpu_model = "<script>".to_owned();
    odd.effects[0].all.figure = Some(f64::NAN);
    odd.effects[0].all.interval = Some((f64::NEG_INFINITY, f64::INFINITY));
    odd.effects[0].all.next_figure = Some((f64::NAN, f64::INFINITY));
    odd.effects[0].runs[0].figure = f64::NAN;
    odd.effects[0].runs[0].interval = Some((f64::NAN, f64::INFINITY));
    for language in Language::ALL {
        for text in [
            run_pool::terminal(&odd, &fixture::hostile_names(), language, 60, false),
            run_pool::markdown(&odd, &fixture::hostile_names(), language),
        ] {
            assert!(!text.contains("NaN") && !text.contains("inf") && !text.contains('\u{1b}'), "{text}");
        }
        let page = run_pool::html(&odd, &fixture::hostile_names(), language);
        assert!(!page.contains("NaN") && !page.contains("inf]") && !page.contains("<script>"), "{page}");
    }
}

fn placed(earlier: PooledFigure, figure: f64, sessions: u32) -> StudyResult {
    StudyResult {
        period: Some(Period { sessions, ..period(1) }),
        among_runs: Some(AmongRuns {
            cell_id: CELL.to_owned(),
            arm: "uring".to_owned(),
            baseline: "epoll".to_owned(),
            metric: Metric::ServerCpuPerMessage,
            scale: EffectScale::Ratio,
            figure,
            earlier,
        }),
        ..fixture::quick()
    }
}

#[test]
fn a_run_says_which_minutes_it_describes_and_where_it_stands_among_earlier_ones() {
    let texts = |result: &StudyResult, language: Language| {
        let terminal = weir_report::terminal(result, language, 120, false).replace('\n', " ");
        [terminal, weir_report::markdown(result, language), weir_report::html(result, language)]
    };
    let expected = [
        (
            "It describes 2026-11-29 07:10 to 07:11 UTC on this machine.",
            "this run: 0.781; earlier runs on this machine (6): 0.775 – 0.805, predicted range for the next run: 0.730 – 0.850.",
        ),
        (
            "이 결과는 2026-11-29 07:10부터 07:11까지(UTC) 이 머신의 상태를 나타냅니다.",
            "이번 실행: 0.781. 이 머신의 이전 실행(6회): 0.775 – 0.805, 다음 실행의 예측 범위: 0.730 – 0.850.",
        ),
        (
            "结果描述的是本机在 2026-11-29 07:10 至 07:11（UTC）期间的情况。",
            "本次运行：0.781；本机以往运行（6 次）：0.775 – 0.805，下一次运行的预测范围：0.730 – 0.850。",
        ),
    ];
    for (language, (minutes, among)) in Language::ALL.into_iter().zip(expected) {
        for text in texts(&placed(pooled(6, 0.79), 0.781, 1), language) {
            assert!(text.contains(minutes) && text.contains(among), "{language:?}: {text}");
        }
        let outside = &texts(&placed(pooled(6, 0.79), 0.9, 1), language)[1];
        assert!(outside.len() > texts(&placed(pooled(6, 0.79), 0.8, 1), language)[1].len(), "{outside}");
    }
    let of = |result: &StudyResult| texts(result, Language::English)[1].clone();
    let few = of(&placed(of_few(2, 0.79), 0.9, 2));
    assert!(few.contains("this run: 0.900; earlier runs on this machine (2): 0.775 – 0.805.\n"), "{few}");
    assert!(few.contains("on this machine, in 2 sessions.") && !few.contains("lies outside"), "{few}");
    assert!(of(&placed(pooled(6, 0.79), 0.9, 1)).contains("It lies outside"));
    let plain = of(&fixture::quick());
    assert!(!plain.contains("It describes") && !plain.contains("earlier runs"), "{plain}");
}

#[test]
fn a_run_over_midnight_names_both_days() {
    let mut result = placed(pooled(6, 0.79), 0.79, 1);
    result.period = Some(Period { began_unix_s: BEGAN, ended_unix_s: BEGAN + 86_400, sessions: 1 });
    let text = weir_report::markdown(&result, Language::English);
    assert!(text.contains("It describes 2026-11-29 07:10 to 2026-11-30 07:10 UTC"), "{text}");
}
