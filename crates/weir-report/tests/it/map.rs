//! The map of a study: shades, marks and sentences, in three languages, and its absence.

use std::collections::BTreeMap;

use weir_record::{
    contrast::ContrastSpec,
    effect::{Effect, Question},
    finding::Finding,
    grid::{Crossing, Difference, Grid, GridCell, GridFactor, Interaction, Marginal},
    guidance::{Access, Advice, Guidance, ObservedProcess, Region, Standing},
    kernel::KernelVersion,
    metric::Metric,
    spec::{StorageCell, Subject},
    storage::{AccessPattern, StorageDevice},
    study::{MissingArm, OversubscribedCell, StudyResult},
    verdict::Verdict,
};
use weir_report::{Language, html, markdown, terminal};

use crate::{fixture, page::paths};

/// Two rows of three cells: one crossing, one cell without a difference, one limited by the generator, one that is
/// not comparable.
pub fn mapped() -> StudyResult {
    let mut result = fixture::quick();
    let shape = result.spec.cells[0].clone();
    result.spec.cells.clear();
    let mut cells = Vec::new();
    for (workers, row) in [(1, [1.12, 1.01, 0.8]), (2, [0.7, 0.95, f64::NAN])] {
        for (connections, ratio) in [1, 100, 4000].into_iter().zip(row) {
            let id = format!("c{connections}-w{workers}");
            result.spec.cells.push(weir_record::spec::CellSpec {
                id: id.clone(),
                connections,
                workers,
                ..shape.clone()
            });
            let (ratio, difference) = match ratio {
                ratio if ratio > 1.05 => (Some(ratio), Difference::More),
                ratio if ratio > 1.0 => (Some(ratio), Difference::Undetected),
                ratio if ratio.is_nan() => (None, Difference::Invalid),
                ratio if ratio < 0.75 => (Some(ratio), Difference::GeneratorLimited),
                ratio => (Some(ratio), Difference::Less),
            };
            cells.push(GridCell {
                cell_id: id,
                levels: vec![connections.into(), workers.into()],
                ratio,
                interval: ratio.map(|ratio| (ratio - 0.02, ratio + 0.02)),
                p_value_adjusted: ratio.map(|_| 0.004).filter(|_| difference != Difference::GeneratorLimited),
                difference,
            });
        }
    }
    result.grids = vec![Grid {
        map: 0,
        arm: "uring".to_owned(),
        baseline: "epoll".to_owned(),
        metric: Metric::ServerCpuPerMessage,
        factors: vec![GridFactor::Connections, GridFactor::Workers],
        cells,
        marginals: vec![Marginal {
            factor: GridFactor::Workers,
            level: 2,
            ratio: 1.07,
            interval: Some((1.05, 1.09)),
            cells: 2,
            cells_left_out: 1,
            reversed: vec!["c100-w2".to_owned()],
        }],
        interactions: vec![Interaction {
            factors: (GridFactor::Connections, GridFactor::Workers),
            levels: (4000, 1),
            ratio: 0.9,
            interval: (0.86, 0.94),
            p_value: 0.002,
            cells: 4,
        }],
        crossings: vec![Crossing {
            cell_id: "c1-w1".to_owned(),
            connections: 130.4,
            low: Some(80.2),
            high: None,
            beyond: Difference::Less,
            cells_left_out: 1,
        }],
        cells_left_out: 1,
    }];
    result.guidance = Some(guidance());
    result.oversubscribed = vec![OversubscribedCell { cell_id: "c1-w2".to_owned(), threads: 3, cpus: 2 }];
    result
}

fn guidance() -> Guidance {
    let region = |difference: Difference, levels: (u64, u64), lines: &[u64]| Region {
        difference,
        cells: vec!["c1-w1".to_owned()],
        levels,
        lines: lines.iter().map(|workers| vec![*workers]).collect(),
        is_everywhere: lines.len() > 1,
        ratio: None,
        interval: None,
        ratio_range: None,
        arm_range: None,
        baseline_range: None,
        detectable: None,
    };
    let less = Region {
        ratio: Some(0.8),
        interval: Some((0.78, 0.82)),
        ratio_range: Some((0.75, 0.86)),
        arm_range: Some((4.1, 5.2)),
        baseline_range: Some((5.9, 5.9)),
        ..region(Difference::Less, (100, 4000), &[1, 2])
    };
    let undetected = Region { detectable: Some(0.04), ..region(Difference::Undetected, (100, 100), &[1]) };
    let advice = Advice {
        map: 0,
        arm: "uring".to_owned(),
        baseline: "epoll".to_owned(),
        standing: Standing::Both,
        cells: 6,
        less: 2,
        more: 1,
        undetected: 1,
        equivalent: 0,
        not_borne_out: 1,
        not_comparable: 0,
        generator_limited: 1,
        regions: vec![less, undetected, region(Difference::GeneratorLimited, (1, 1), &[2])],
    };
    let access = Access {
        refused: None,
        unlock: None,
        kernel: Some(KernelVersion::new(6, 14)),
        lacking: vec!["no-iowait".to_owned()],
        disabled: Some(0),
        is_filtered: Some(false),
    };
    Guidance { access: Some(access), advice: vec![advice], observed: None }
}

fn section(text: &str, title: &str) -> String {
    let from = text.find(title).expect("the section is there");
    text[from..from + text[from + 3..].find("\n## ").map_or(text.len() - from, |end| end + 3)].to_owned()
}

#[test]
fn a_map_in_a_document_is_its_table_and_its_sentences() {
    insta::assert_snapshot!("map-markdown", section(&markdown(&mapped(), Language::English), "## The map"));
    insta::assert_snapshot!(
        "map-markdown-ko",
        section(&markdown(&mapped(), Language::Korean), "## 조건별 히트맵")
    );
    insta::assert_snapshot!("map-markdown-zh", section(&markdown(&mapped(), Language::Chinese), "## 热力图"));
}

#[test]
fn cells_that_the_generator_limited_are_left_out_for_the_reason_of_their_metric() {
    let mut result = mapped();
    let of_cpu = result.grids[0].clone();
    result.grids.push(Grid { metric: Metric::Throughput, ..of_cpu });
    for (language, cost, rate) in [
        (Language::English, "no cell with one rate for both arms bears a difference", "Bounds have no ratio"),
        (Language::Korean, "두 대상의 요청률이 같은 조건 중에", "하한으로는 비율을 낼 수 없으므로"),
        (Language::Chinese, "没有以相同请求速率比较双方的条件支持", "下限不能求比值"),
    ] {
        let text = markdown(&result, language);
        assert!(text.contains(cost) && text.contains(rate), "{language:?}: {text}");
    }
}

#[test]
fn a_row_that_claims_nothing_says_what_the_map_says_of_its_cell() {
    let mut result = mapped();
    let primary = result.primary.expect("it was compared");
    result.effects.rows[primary].cell_id = result.grids[0].cells[0].cell_id.clone();
    let mut told = |difference: Difference, verdict: Verdict| {
        result.grids[0].cells[0].difference = difference;
        result.effects.rows[primary].verdict = verdict;
        markdown(&result, Language::English)
    };
    let rows = |text: &str, word: &str| text.matches(&format!("| {word} |")).count();
    let less = told(Difference::Less, Verdict::NoClaim);
    assert!(rows(&less, "less CPU (map)") > 0, "{less}");
    let open = told(Difference::Undetected, Verdict::NoClaim);
    assert_eq!(rows(&open, "less CPU (map)"), 0);
    let claimed = told(Difference::Less, Verdict::Better);
    assert_eq!(rows(&claimed, "less CPU (map)"), 0, "it has a verdict");
}

#[test]
fn on_a_page_every_cell_says_its_direction_without_colour() {
    for language in Language::ALL {
        let page = html(&mapped(), language);
        assert!(
            ["▲ </span>+12 %", "▼ </span>-20 %", "≈ </span>+1 %"].iter().all(|cell| page.contains(cell)),
            "{language:?}"
        );
        assert!(page.contains("<sup>*</sup>"), "{language:?}");
        let limited = page.split("class=\"limited").nth(1).expect("the generator limited a cell");
        assert!(
            limited
                .split("</td>")
                .next()
                .is_some_and(|cell| cell.contains("† </span>-30 %") && cell.contains("<small>")),
            "{language:?}"
        );
        assert_eq!(page.matches("table class=\"map\"").count(), 1);
    }
}

#[test]
fn intervals_and_p_values_of_a_map_are_on_the_page_and_not_in_tooltips_alone() {
    for language in Language::ALL {
        let page = html(&mapped(), language);
        let shown: String =
            page.split("title=\"").map(|part| part.split_once('"').map_or(part, |it| it.1)).collect();
        assert!(shown.contains("<td>1.120 [1.100, 1.140]</td>"), "{language:?}");
        assert!(shown.contains(">0.004<"), "{language:?}: the adjusted p");
        assert!(
            page.matches("class=\"scroll\" tabindex=\"0\"").count() > 2,
            "a keyboard reaches what scrolls"
        );
        assert!(!page.contains("<div class=\"scroll\">"), "{language:?}");
    }
}

#[test]
fn shades_of_a_map_say_what_is_open_what_is_invalid_and_where_threads_share_cpus() {
    let page = html(&mapped(), Language::English);
    let class = |word: &str| {
        let cell = page.split("<td class=\"").skip(1).find(|cell| cell.contains(word));
        cell.and_then(|cell| cell.split('"').next()).expect("there is such a cell").to_owned()
    };
    assert!(class("≈ </span>").starts_with("open"), "hatched");
    assert!(class("† </span>").starts_with("limited over"), "grey, and more threads than CPUs");
    let strengths: Vec<&str> =
        page.split("--strength:").skip(1).filter_map(|it| it.split('%').next()).collect();
    let mut result = mapped();
    result.oversubscribed[0].cell_id = "c1-w1".to_owned();
    let lighter = html(&result, Language::English);
    let first =
        |page: &str| page.split("--strength:").nth(1).and_then(|it| it.split('%').next()).map(str::to_owned);
    assert!(strengths.len() == 6 && first(&lighter) < first(&page), "{strengths:?}");
}

#[test]
fn rows_of_a_map_are_charts_with_intervals_and_rounds() {
    let row = |page: &str| {
        let row = page.split("id=\"rounds-1-uring-").nth(1).and_then(|it| it.split("</figure>").next());
        row.expect("the row is a chart").to_owned()
    };
    let mut result = mapped();
    let plain = html(&result, Language::English);
    // In the second row one cell is comparable, which makes no line.
    assert_eq!(plain.matches("id=\"rounds-1-uring-").count(), 1);
    assert!(!row(&plain).contains("class=\"a1 point\""), "nothing was compared");
    let mut compared = result.effects.rows[0].clone();
    (compared.cell_id, compared.metric) = ("c1-w1".to_owned(), Metric::ServerCpuPerMessage);
    (compared.arm, compared.baseline) = ("uring".to_owned(), "epoll".to_owned());
    compared.values = fixture::logarithms(&[1.1, 1.12, 1.14]);
    fixture::compare(&mut result, compared);
    let row = row(&html(&result, Language::English));
    assert_eq!(paths(&row, "whisker").matches('M').count(), 3, "{row}");
    assert_eq!(paths(&row, "a1 point").matches('M').count(), 3, "{row}");
}

#[test]
fn every_row_of_a_map_is_a_chart_and_those_beyond_the_eighth_are_folded_away() {
    let mut result = mapped();
    let row: Vec<GridCell> = result.grids[0].cells[..3].to_vec();
    result.grids[0].cells.clear();
    for workers in 1..=11 {
        let of_row = |cell: &GridCell| GridCell { levels: vec![cell.levels[0], workers], ..cell.clone() };
        result.grids[0].cells.extend(row.iter().map(of_row));
    }
    for (language, summary) in
        Language::ALL.into_iter().zip(["3 more rows as charts", "3개 행의 차트", "其余 3 行"])
    {
        let page = html(&result, language);
        let (open, folded) = page.split_once(summary).expect("three are folded away");
        assert_eq!(open.matches("id=\"rounds-1-uring-").count(), 8);
        let (folded, _) = folded.split_once("</details>").expect("they end somewhere");
        assert_eq!(folded.matches("id=\"rounds-1-uring-").count(), 3);
        assert!(folded.contains("<div class=\"pair\">"), "they wrap below each other");
    }
}

#[test]
fn a_declared_contrast_is_told_by_what_its_cells_do_not_share() {
    let mut result = mapped();
    let cells =
        |workers: u32| [1, 100, 4000].map(|connections| format!("c{connections}-w{workers}")).to_vec();
    result.spec.contrasts = vec![ContrastSpec {
        arm: "uring".to_owned(),
        baseline: "epoll".to_owned(),
        metric: Metric::ServerCpuPerMessage,
        of: cells(2),
        to: cells(1),
        equivalence_margin: None,
    }];
    result.effects.rows.push(Effect {
        question: Question::Contrast(0),
        arm: "uring".to_owned(),
        baseline: "epoll".to_owned(),
        metric: Metric::ServerCpuPerMessage,
        estimate: Some(0.87),
        interval: Some((0.84, 0.9)),
        p_value: Some(0.002),
        p_value_holm: Some(0.006),
        difference: Some(Difference::Less),
        ..Effect::default()
    });
    let text = section(&markdown(&result, Language::English), "## Declared contrasts");
    assert!(text.contains("the ratio is smaller at 2 workers than at"), "{text}");
    assert!(text.contains("0.870 [0.840, 0.900] (p 0.006)") && text.contains("| 0.002 | 0.006 |"), "{text}");
    for language in Language::ALL {
        let page = html(&result, language);
        assert!(
            page.contains("href=\"#cell-c1-w2\"") && page.contains("0.870 [0.840, 0.900]"),
            "{language:?}"
        );
    }
    assert!(
        weir_report::csv(&result)
            .contains("contrast-1,uring,epoll,contrast-server-cpu-per-message,p-holm,0.006,")
    );
    let asked = &mut result.spec.contrasts[0];
    (asked.of, asked.to, asked.equivalence_margin) =
        (cells(2)[1..2].to_vec(), cells(1)[1..2].to_vec(), Some(0.02));
    let found = |result: &mut StudyResult, difference: Difference| {
        let row = result.effects.rows.last_mut().expect("it has a row");
        row.difference = Some(difference);
    };
    found(&mut result, Difference::Equivalent);
    let text = section(&markdown(&result, Language::English), "## Declared contrasts");
    assert!(text.contains("2 workers and at 100 connections"), "{text}");
    assert!(text.contains("are equivalent within ±2 %") && text.contains("| equivalent |"), "{text}");
    found(&mut result, Difference::Undetected);
    let text = section(&markdown(&result, Language::English), "## Declared contrasts");
    assert!(text.contains("neither shown to be equivalent within ±2 % nor to differ"), "{text}");
    found(&mut result, Difference::GeneratorLimited);
    assert!(markdown(&result, Language::English).contains("generator was the limit"));
}

#[test]
fn sentences_lead_to_their_cells() {
    for language in Language::ALL {
        let page = html(&mapped(), language);
        let targets: Vec<&str> =
            page.split("href=\"#").skip(1).filter_map(|it| it.split('"').next()).collect();
        assert!(page.contains("0.940]"), "{language:?}: the interaction");
        for cell in ["c100-w1", "c4000-w1", "c100-w2", "c1-w2"] {
            assert!(
                targets.contains(&format!("cell-{cell}").as_str()),
                "{language:?}: {cell} of {targets:?}"
            );
        }
        assert!(targets.iter().all(|target| page.contains(&format!("id=\"{target}\""))), "{targets:?}");
    }
}

#[test]
fn an_export_has_what_each_cell_of_the_map_comes_to() {
    let lines = weir_report::csv(&mapped());
    for line in [
        "c4000-w1,uring,epoll,map-server-cpu-per-message,difference,less,",
        "c1-w2,uring,epoll,map-server-cpu-per-message,difference,generator-limited,",
        "c4000-w2,uring,epoll,map-server-cpu-per-message,difference,invalid,",
        "map-1,uring,epoll,map-server-cpu-per-message,mean-workers-2,1.07,ratio",
        "map-1,uring,epoll,map-server-cpu-per-message,mean-workers-2-cells-left-out,1,count",
        "c100-w2,uring,epoll,map-server-cpu-per-message,is-against-mean-workers-2,1,bool",
        "map-1,uring,epoll,map-server-cpu-per-message,interaction-connections-workers,0.9,ratio",
        "map-1,uring,epoll,map-server-cpu-per-message,interaction-connections-workers-p,0.002,probability",
        "c1-w1,uring,epoll,map-server-cpu-per-message,crossing-low,80.2,count",
        "c1-w1,uring,epoll,map-server-cpu-per-message,crossing-cells-left-out,1,count",
    ] {
        assert!(lines.lines().any(|own| own == line), "{line}");
    }
    assert!(!lines.contains("c1-w2,uring,epoll,map-server-cpu-per-message,p-false-discovery"));
}

#[test]
fn guidance_is_a_page_to_hand_on() {
    for (name, language) in [
        ("guidance", Language::English),
        ("guidance-ko", Language::Korean),
        ("guidance-zh", Language::Chinese),
    ] {
        insta::assert_snapshot!(name, weir_report::guidance(&mapped(), language).expect("there is a map"));
        let terminal = terminal(&mapped(), language, 100, false);
        let terminal = terminal.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(terminal.contains("kernel.io_uring_disabled = 0"), "{terminal}");
    }
    assert_eq!(weir_report::guidance(&fixture::quick(), Language::English), None);
}

#[test]
fn guidance_to_print_has_its_regions_outlined_and_no_way_to_another_page() {
    for language in Language::ALL {
        let page = weir_report::guidance_html(&mapped(), language).expect("there is a map");
        assert!(page.contains("table class=\"map\"") && !page.contains("href="), "{language:?}");
        // Each of three differing adjacent cells has its own line on both sides.
        assert_eq!(page.matches("edge-left edge-right").count(), 6, "{language:?}");
        assert!(page.contains("weir observe -p PID") && page.contains(&mapped().reproduce), "{language:?}");
    }
    let mut alike = mapped();
    alike.grids[0].cells.iter_mut().for_each(|cell| cell.difference = Difference::Less);
    let page = weir_report::guidance_html(&alike, Language::English).expect("there is a map");
    assert_eq!(
        (page.matches("edge-left").count(), page.matches("edge-top").count()),
        (2 + 1, 3 + 1),
        "one line"
    );
    assert_eq!(weir_report::guidance_html(&fixture::quick(), Language::English), None);
}

#[test]
fn guidance_says_how_much_of_an_observed_process_it_can_touch() {
    let observed = ObservedProcess {
        pid: 4242,
        command: "./mine <b>".to_owned(),
        window_ns: 10_000_000_000,
        is_idle: false,
        share_max: 0.234,
    };
    for language in Language::ALL {
        let told = |is_idle: bool| {
            let mut result = mapped();
            let process = ObservedProcess { is_idle, ..observed.clone() };
            result.guidance.as_mut().expect("it has one").observed = Some(process);
            let text = weir_report::guidance(&result, language).expect("there is a map");
            let page = weir_report::guidance_html(&result, language).expect("there is a map");
            assert!(page.contains("./mine &lt;b&gt;") && text.contains("4242"), "{language:?}");
            assert!(!text.contains("weir observe -p PID"), "it was done: {text}");
            text
        };
        assert!(told(false).contains("23.4 %") && !told(true).contains("23.4 %"), "{language:?}");
    }
}

#[test]
fn every_standing_is_a_sentence_of_its_own_and_a_refusal_says_what_is_in_the_way() {
    let mut seen = std::collections::BTreeSet::new();
    for standing in [Standing::Less, Standing::More, Standing::Both, Standing::Undetected, Standing::Untold] {
        for language in Language::ALL {
            let mut result = mapped();
            let guidance = result.guidance.as_mut().expect("it has one");
            guidance.advice[0].standing = standing;
            let access = guidance.access.as_mut().expect("it has one");
            access.refused = Some(Finding::IoUringDisabled { level: 2 });
            access.unlock = Some(Finding::RunCommand { command: "sysctl it".to_owned() });
            let page = weir_report::guidance(&result, language).expect("there is a map");
            assert!(page.contains("io_uring_disabled") && page.contains("sysctl it"), "{page}");
            assert!(page.contains("weir observe -p PID"), "{page}");
            seen.insert(page);
        }
    }
    assert_eq!(seen.len(), 15);
}

/// The row of an option of io_uring in the guidance.
fn option_row(result: &StudyResult, language: Language, option: &str) -> String {
    let page = weir_report::guidance(result, language).expect("there is a map");
    let start = format!("| {option} |");
    let row = page.lines().find(|line| line.starts_with(&start));
    row.unwrap_or_else(|| panic!("{option} has no row: {page}")).to_owned()
}

/// The study with an option on its second arm.
fn with_option(name: &str, value: &str) -> StudyResult {
    let mut result = mapped();
    let options = BTreeMap::from([(name.to_owned(), value.to_owned())]);
    result.spec.arms[1].subject =
        Subject::Weir { driver: "uring".to_owned(), options, arguments: Vec::new() };
    result
}

#[test]
fn guidance_has_options_of_io_uring_where_messages_are_served_on_it() {
    for language in Language::ALL {
        let is_there = |result: &StudyResult| {
            let page = weir_report::guidance(result, language).expect("there is a map");
            let printed = weir_report::guidance_html(result, language).expect("there is a map");
            let has_it = page.contains("sqpoll-idle-ms");
            assert_eq!(printed.contains("<td>sqpoll-idle-ms</td>"), has_it, "{language:?}");
            has_it
        };
        assert!(is_there(&mapped()), "{language:?}");
        assert!(html(&mapped(), language).contains("<td>sqpoll-idle-ms</td>"), "{language:?}");
        let mut without = mapped();
        without.spec.arms[1] = fixture::arm("poll");
        assert!(!is_there(&without), "{language:?}");
        let mut of_disk = mapped();
        let storage = StorageCell {
            device: StorageDevice::Disk,
            pattern: AccessPattern::RandRead,
            engine: None,
            background_depth: 0,
            background_cores: 1,
            core_steps: Vec::new(),
            file_bytes: 1 << 30,
            file: None,
        };
        of_disk.spec.cells.iter_mut().for_each(|cell| cell.storage = Some(storage.clone()));
        assert!(!is_there(&of_disk), "{language:?}");
    }
}

#[test]
fn an_option_is_told_by_the_standing_of_its_arm_and_else_by_the_study_that_measures_it() {
    for (language, here, elsewhere) in [
        (Language::English, "uring, measured here: less", "not part of this study"),
        (Language::Korean, "uring, 이 실험의 측정: 조건 6개", "이 실험에 없음"),
        (Language::Chinese, "uring，本次实测：6 个条件", "不在本实验中"),
    ] {
        let plain = option_row(&mapped(), language, "receive=bundle");
        let names_study = |row: &str| row.contains("weir study uring-");
        assert!(plain.contains(elsewhere) && names_study(&plain) && !plain.contains(here), "{plain}");
        let result = with_option("receive", "bundle");
        let own = option_row(&result, language, "receive=bundle");
        assert!(own.contains(here) && !own.contains(elsewhere) && !names_study(&own), "{own}");
        let other = option_row(&result, language, "fixed-files=on");
        assert!(other.contains(elsewhere) && names_study(&other), "{other}");
        let not_offered = option_row(&result, language, "receive=incremental");
        assert!(!not_offered.contains(here) && !not_offered.contains("weir study"), "{not_offered}");
    }
    let is_measured = |result: &StudyResult, option: &str| {
        option_row(result, Language::English, option).contains("uring, measured here: ")
    };
    assert!(is_measured(&with_option("minimum-wait-us", "50"), "minimum-wait-us"));
    assert!(!is_measured(&with_option("minimum-wait-us", "0"), "minimum-wait-us"));
    assert!(!is_measured(&with_option("fixed-files", "off"), "fixed-files=on"));
    let mut result = mapped();
    let words = ["weir", "serve", "echo", "--driver", "uring", "--option", "sqpoll-idle-ms=1"];
    result.spec.arms[1].subject = Subject::Command { argv: words.map(str::to_owned).to_vec() };
    assert!(is_measured(&result, "sqpoll-idle-ms") && !is_measured(&result, "send-zc-bytes"));
}

#[test]
fn an_option_has_each_standing_in_words_of_its_own_and_an_arm_without_one_says_so() {
    let standings = [Standing::Less, Standing::More, Standing::Both, Standing::Undetected, Standing::Untold];
    let mut seen = std::collections::BTreeSet::new();
    for language in Language::ALL {
        let mut result = with_option("send-zc-bytes", "65536");
        for standing in standings {
            result.guidance.as_mut().expect("it has one").advice[0].standing = standing;
            seen.insert(option_row(&result, language, "send-zc-bytes"));
        }
        result.guidance.as_mut().expect("it has one").advice[0].arm = "another".to_owned();
        seen.insert(option_row(&result, language, "send-zc-bytes"));
        let reason = Finding::IoUringDisabled { level: 2 };
        result.missing_arms = vec![MissingArm { name: "uring".to_owned(), reason, unlock: None }];
        let refused = option_row(&result, language, "send-zc-bytes");
        assert!(refused.contains("io_uring_disabled"), "{refused}");
        seen.insert(refused);
    }
    assert_eq!(seen.len(), 3 * 7);
}

#[test]
fn an_option_says_which_kernel_it_needs_and_whether_this_one_is_older() {
    let mut result = mapped();
    result.fingerprint.kernel_release = "6.10.3-generic".to_owned();
    for (language, lacks) in
        Language::ALL.into_iter().zip(["this kernel lacks it", "이 커널에 없음", "本内核没有"])
    {
        let row = |option: &str| option_row(&result, language, option);
        assert!(row("fixed-files=on").contains("| 6.13") && row("fixed-files=on").contains(lacks));
        assert!(row("receive=bundle").contains("| 6.10 |") && !row("receive=bundle").contains(lacks));
    }
}

#[test]
fn an_arm_as_on_an_older_kernel_says_what_it_leaves_unused() {
    let mut result = fixture::quick();
    let options = BTreeMap::from([("as-on-kernel".to_owned(), "6.1".to_owned())]);
    result.spec.arms[1].subject =
        Subject::Weir { driver: "uring".to_owned(), options, arguments: Vec::new() };
    for language in Language::ALL {
        let text = markdown(&result, language);
        assert!(text.contains("(6.15)") && text.contains("(6.6)") && !text.contains("(6.1)"), "{text}");
    }
    let text = markdown(&result, Language::English);
    assert!(text.contains("Features masked on this kernel"), "{text}");
}

#[test]
fn an_older_kernels_arm_does_not_leave_unused_what_is_not_used_here_anyway() {
    let mut result = fixture::quick();
    let options = BTreeMap::from([("as-on-kernel".to_owned(), "5.19".to_owned())]);
    result.spec.arms[1].subject =
        Subject::Weir { driver: "uring".to_owned(), options, arguments: Vec::new() };
    let names_it =
        |result: &StudyResult| markdown(result, Language::English).contains("multishot receive (6.0)");
    assert!(names_it(&result), "a result that does not say what is used here");
    let mut granted = |names: &str| {
        result.fingerprint.limits.insert("io_uring_granted".to_owned(), names.to_owned());
        names_it(&result)
    };
    assert!(granted("single-issuer multishot-receive"));
    assert!(!granted("single-issuer no-iowait"));
    let Subject::Weir { options, .. } = &mut result.spec.arms[1].subject else { panic!("it is Weir's own") };
    options.insert("receive".to_owned(), "multishot".to_owned());
    assert!(names_it(&result), "it asks for them");
}

#[test]
fn a_study_of_few_cells_has_no_map() {
    assert!(!markdown(&fixture::quick(), Language::English).contains("## The map"));
}
