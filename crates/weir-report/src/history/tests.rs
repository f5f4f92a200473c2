//! Histories made by hand: one with a fixed reference and a break, one with multiplied effects.

use weir_record::{history::HistoryRun, metric::Metric, origin::Origin, verdict::Verdict};

use super::*;

const DAY_S: u64 = 86_400;

fn figure(value: f64, half: f64) -> HistoryFigure {
    HistoryFigure { figure: Some(value), interval: Some((value - half, value + half)) }
}

fn run(day: u64, commit: &str, value: f64, verdict: Verdict) -> HistoryRun {
    let found = figure(value, 0.01);
    HistoryRun {
        place: format!("weir-results/compare-{day}.json"),
        began_unix_s: Some(1_767_225_600 + day * DAY_S),
        origin: Origin {
            commit: Some(commit.to_owned()),
            branch: Some("main".to_owned()),
            ..Origin::default()
        },
        stretch: 1,
        effect: found,
        level: 0.99,
        verdict,
        from_reference: Some(found),
        links: 1,
        ..HistoryRun::default()
    }
}

fn stretch(number: u32, content: &str, break_by: Option<HistoryBreak>) -> HistoryStretch {
    HistoryStretch {
        number,
        break_by,
        reference: HistoryProgram {
            name: "app".to_owned(),
            identity: content.to_owned(),
            content: content.to_owned(),
        },
        cpu_model: "AMD EPYC 7B13".to_owned(),
        cpus_online: 2,
        kernel_release: "6.18.2".to_owned(),
    }
}

fn series(runs: Vec<HistoryRun>) -> HistorySeries {
    HistorySeries {
        arm: "new".to_owned(),
        baseline: "old".to_owned(),
        metric: Metric::CommandCpu,
        scale: EffectScale::Ratio,
        stretches: vec![stretch(1, "0123456789abcdef", None)],
        runs,
        ..HistorySeries::default()
    }
}

/// Four commits against one release, and one against the next.
fn fixed() -> History {
    let mut runs = vec![
        run(0, "0123456789abcdef0123456789abcdef01234567", 0.998, Verdict::Equivalent),
        run(1, "89abcdef0123456789abcdef0123456789abcdef", 1.003, Verdict::Equivalent),
        run(2, "v1.2", 1.052, Verdict::Worse),
        run(3, "cafe", 0.947, Verdict::Better),
        run(4, "beef", 1.0, Verdict::Inconclusive),
    ];
    runs[1].origin.is_dirty = Some(true);
    runs[2].change = Some(HistoryChange::Up);
    runs[2].origin.note = Some("with the new\nallocator".to_owned());
    runs[3].change = Some(HistoryChange::Down);
    runs[4].stretch = 2;
    let mut series = series(runs);
    series.stretches.push(stretch(2, "", Some(HistoryBreak::Reference)));
    series.runs_older = 7;
    let place = "weir-results/compare-x.json".to_owned();
    History {
        schema_version: 1,
        series: vec![series],
        series_left_out: 0,
        left_out: vec![HistoryLeftOut { place, reason: HistoryLack::Unreadable }],
        results_unread: 3,
    }
}

/// Each commit against its parent, on two branches, with labels.
fn chained() -> History {
    let mut runs = vec![run(0, "one", 1.01, Verdict::Worse), run(1, "two", 1.02, Verdict::Worse)];
    runs[1].from_reference = Some(figure(1.0302, 0.0145));
    runs[1].links = 2;
    runs[1].origin.branch = Some("topic".to_owned());
    runs[1].origin.labels.insert("runner".to_owned(), "lab".to_owned());
    let of = HistoryQuestion::Study { name: "quick".to_owned(), cell_id: "c100-d1-m64-closed".to_owned() };
    let series = HistorySeries { of, metric: Metric::ServerCpuPerMessage, ..series(runs) };
    History { schema_version: 1, series: vec![series], ..History::default() }
}

#[test]
fn a_terminal_shows_a_row_for_each_run_and_says_where_the_series_breaks() {
    insta::assert_snapshot!("fixed", terminal(&fixed(), Language::English, 100));
    insta::assert_snapshot!("chained", terminal(&chained(), Language::English, 120));
    insta::assert_snapshot!("fixed-ko", terminal(&fixed(), Language::Korean, 100));
    insta::assert_snapshot!("fixed-zh", terminal(&fixed(), Language::Chinese, 100));
}

#[test]
fn a_narrow_terminal_has_no_drawing_and_no_sentence_that_is_too_wide() {
    let shown = terminal(&fixed(), Language::English, 70);
    assert!(!shown.contains('●'), "{shown}");
    for width in [60, 80, 100, 140] {
        let sentences = terminal(&fixed(), Language::English, width);
        let is_sentence = |line: &&str| line.ends_with('.') && !line.contains("2026-01-0");
        for line in sentences.lines().filter(is_sentence) {
            assert!(crate::columns(line) <= width, "{width}: {line}");
        }
    }
}

#[test]
fn markdown_and_csv_have_every_run() {
    insta::assert_snapshot!("markdown", markdown(&fixed(), Language::English));
    insta::assert_snapshot!("csv", csv(&chained()));
    assert_eq!(csv(&History::default()).lines().count(), 1);
}

#[test]
fn a_page_has_a_chart_and_escapes_what_was_stored() {
    let mut odd = fixed();
    odd.series[0].arm = "<script>".to_owned();
    odd.series[0].runs[0].origin.commit = Some("<i>".to_owned());
    odd.series[0].runs[0].origin.branch = Some("a\u{1b}[2J".to_owned());
    odd.left_out[0].place = "<u>".to_owned();
    let drawn = html_below(&odd, Language::English, &maud::Markup::default());
    assert!(drawn.contains("&lt;script&gt; / old") && drawn.contains("<svg"), "{drawn}");
    for raw in ["<script>", "<i>", "<u>", "\u{1b}"] {
        assert!(!drawn.contains(raw), "{raw:?}");
    }
    let text = terminal(&odd, Language::English, 100);
    assert!(!text.contains('\u{1b}'), "{text}");
    let empty = html_below(&History::default(), Language::Korean, &maud::Markup::default());
    assert!(empty.contains("저장된 비교가 없습니다"), "{empty}");
}

#[test]
fn differences_have_signs_and_odd_figures_are_drawn_without_a_panic() {
    let mut odd = fixed();
    odd.series[0].metric = Metric::CommandUserCpu;
    odd.series[0].scale = EffectScale::Difference;
    let text = terminal(&odd, Language::English, 120);
    assert!(text.contains("+1.05 µs [+1.04 µs, +1.06 µs]"), "{text}");
    for value in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300] {
        for scale in [EffectScale::Ratio, EffectScale::Difference] {
            let mut odd = fixed();
            odd.series[0].scale = scale;
            odd.series[0].runs[0].from_reference = Some(figure(value, 1.0));
            odd.series[0].runs[1].from_reference =
                Some(HistoryFigure { figure: Some(value), interval: Some((value, -value)) });
            assert!(!terminal(&odd, Language::English, 120).is_empty());
            assert!(!html_below(&odd, Language::English, &maud::Markup::default()).contains("NaN"));
        }
    }
}

#[test]
fn stretches_are_letters_as_long_as_there_are_some() {
    assert_eq!([1, 2, 26, 27].map(letter), ["A", "B", "Z", "27"]);
}
