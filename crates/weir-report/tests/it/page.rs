//! The page: well-formed, self-contained, accessible, and safe with any names.

use std::collections::BTreeSet;

use maud::Markup;
use weir_record::{
    check::{Check, CheckName},
    finding::{Finding, OrderEffect, SlicePlace},
    study::StudyResult,
    verdict::Verdict,
};
use weir_report::{ChartPage, Language, PICTURE_SCRIPT, chart_page, html, markdown, run_pair};

use crate::{every_study, fixture, overview, run_pair as run_pair_of};

/// Elements without an end tag.
const VOID: [&str; 3] = ["meta", "br", "hr"];

/// Calls `visit` with every tag's text between `<` and `>`.
fn tags(page: &str) -> Vec<&str> {
    let body = page.strip_prefix("<!DOCTYPE html>").expect("starts with the document type");
    let mut tags = Vec::new();
    let mut rest = body;
    while let Some(start) = rest.find('<') {
        let end = rest[start..].find('>').expect("every tag is closed") + start;
        tags.push(&rest[start + 1..end]);
        rest = &rest[end + 1..];
    }
    tags
}

fn pages() -> Vec<(String, String)> {
    let languages = |(name, result)| {
        Language::ALL.map(|language| (format!("{name}, {language:?}"), html(&result, language)))
    };
    let charts = |(name, result): (&str, StudyResult)| {
        let of = |page: ChartPage| {
            let drawn = |language| chart_page(&result, page, language, "/study/a");
            Language::ALL.map(|language| (format!("{name}, {}, {language:?}", page.path()), drawn(language)))
        };
        ChartPage::ALL.into_iter().flat_map(of).collect::<Vec<_>>()
    };
    let framed = [("a map", overview::mapped()), ("not finite", fixture::not_finite())];
    let framed = framed.into_iter().chain([("hostile names", fixture::hostile_names())]).flat_map(charts);
    let pairs = Language::ALL.map(|language| {
        let page = run_pair::html(&run_pair_of::pair(), &fixture::quick(), language, &Markup::default());
        (format!("two runs, {language:?}"), page)
    });
    every_study::all().into_iter().flat_map(languages).chain(framed).chain(pairs).collect()
}

fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let start = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    tag[start..].split('"').next()
}

/// Every line or dot of a class, as coordinates: consecutive lines are one path, and so are dots.
pub fn paths(drawn: &str, class: &str) -> String {
    let paths = drawn.split("<path").skip(1).filter_map(|path| path.split('>').next());
    let is_of_class = |path: &&str| attribute(path, "class").is_some_and(|it| it.ends_with(class));
    paths.filter(is_of_class).filter_map(|path| attribute(path, "d")).collect()
}

#[test]
fn tags_are_balanced() {
    for (name, page) in pages() {
        let mut open = Vec::new();
        for tag in tags(&page) {
            let element = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
            if tag.starts_with('/') {
                assert_eq!(open.pop(), Some(element), "{name}");
            } else if !tag.ends_with('/') && !VOID.contains(&element) {
                open.push(element);
            }
        }
        assert!(open.is_empty(), "{name}: {open:?}");
    }
}

#[test]
fn ids_are_unique_and_labels_point_to_them() {
    for (name, page) in pages() {
        let tags = tags(&page);
        let ids: Vec<_> = tags.iter().filter_map(|tag| attribute(tag, "id")).collect();
        let distinct: BTreeSet<_> = ids.iter().collect();
        assert_eq!(ids.len(), distinct.len(), "{name}");
        for tag in &tags {
            if let Some(label) = attribute(tag, "aria-labelledby") {
                assert!(ids.contains(&label), "{name}: {label}");
            }
        }
    }
}

/// What a reader sees of a page before unfolding anything: no style, no drawing, of `details` only the title.
fn unfolded(page: &str) -> String {
    let (mut text, mut hidden) = (String::new(), 0_u32);
    let mut rest = page.split("</style>").nth(1).expect("it has a style");
    while let Some((before, after)) = rest.split_once('<') {
        if hidden == 0 {
            text.push_str(before);
            text.push(' ');
        }
        let (tag, after) = after.split_once('>').expect("every tag is closed");
        match tag.split(' ').next().unwrap_or_default() {
            "svg" | "/summary" | "script" if !tag.ends_with('/') => hidden += 1,
            "/svg" | "/details" | "/script" => hidden = hidden.saturating_sub(1),
            _ => {}
        }
        rest = after;
    }
    text
}

#[test]
fn the_page_answers_first_and_folds_what_is_looked_up() {
    for (name, result) in every_study::all() {
        let page = html(&result, Language::English);
        let (contents, _) = page.split_once("</nav>").expect("it has contents");
        let (_, contents) = contents.split_once("<nav").expect("they begin");
        for target in contents.split("href=\"#").skip(1).filter_map(|it| it.split('"').next()) {
            assert!(page.contains(&format!("id=\"{target}\"")), "{name}: {target}");
        }
        let (findings, reference) = page.split_once("id=\"reference\"").expect("it has reference");
        assert!(!findings.contains("class=\"checks\"") && reference.contains("id=\"checks\""), "{name}");
        assert!(reference.contains("id=\"definitions\"><details><summary><h2>"), "{name}");
    }
    let page = html(&fixture::quick(), Language::English);
    let words = unfolded(&page).split_whitespace().count();
    assert!(words <= 1_800, "{words} words before anything is unfolded");
    let (_, card) = page.split_once("<h1").expect("it has an answer");
    let headline = card.split("</h1>").next().unwrap_or_default();
    assert!(headline.split_whitespace().count() <= 60, "{headline}");
    assert!(card.split("</section>").next().is_some_and(|it| it.contains("id=\"answer-figure\"")), "{card}");
}

#[test]
fn every_chart_is_a_labelled_image_with_its_numbers_in_a_table() {
    let page = html(&fixture::quick(), Language::English);
    let tags = tags(&page);
    let figures: Vec<_> = tags.iter().filter(|tag| tag.starts_with("figure")).collect();
    // The answer, five metrics, two figures, one latency cell, the session.
    assert_eq!(figures.len(), 10);
    assert!(figures.iter().all(|tag| tag.contains("role=\"img\"") && tag.contains("aria-labelledby=")));
    assert_eq!(page.matches("the numbers as a table").count(), figures.len());
}

#[test]
fn notes_checks_goals_and_published_figures_lead_to_their_cells() {
    let is_row = |page: &str, target: &str| page.contains(&format!("id=\"{target}\""));
    let links = |text: &str| -> Vec<String> {
        let parts = text.split("href=\"#").skip(1);
        parts.filter_map(|it| it.split('"').next()).map(str::to_owned).collect()
    };
    let titles = ["Published beside measured", "발표 수치와 측정 수치 비교", "公布的数值与实测对照"];
    for (language, title) in Language::ALL.into_iter().zip(titles) {
        let result = fixture::all_not_comparable();
        let page = html(&result, language);
        let notes: Vec<&str> = page.split("<div class=\"notes\">").skip(1).collect();
        assert!(!notes.is_empty());
        for note in notes {
            let heading = note.split("</h3>").next().expect("it has a heading");
            let [target] = &links(heading)[..] else { panic!("{heading}") };
            assert!(is_row(&page, target), "{target}");
        }
        let mut result = fixture::quick();
        let cell_id = result.spec.cells[0].id.clone();
        let effect =
            OrderEffect { place: SlicePlace::GoingFirst, cell_id, change: 0.1, interval: (0.05, 0.15) };
        let detail = Finding::SliceOrder { effects: vec![effect], change_max: 0.01 };
        result.checks = vec![Check { name: CheckName::SliceOrder, passed: false, detail }];
        let page = html(&result, language);
        let checks = page.split("<table class=\"checks\">").nth(1).and_then(|it| it.split("</table>").next());
        let found = links(checks.expect("there is a check"));
        assert!(found.len() == 1 && is_row(&page, &found[0]), "{found:?}");
        let page = html(&fixture::survey(), language);
        let claim = page.split(&format!("<h2>{title}")).nth(1).and_then(|it| it.split("</section>").next());
        let claim = claim.expect("figures were published");
        assert!(links(claim).iter().any(|target| is_row(&page, target)), "{claim}");
    }
}

/// The page without the script that saves its charts, if it has it.
fn without_script(page: &str) -> String {
    let Some((before, text)) = page.split_once("<script data-save=") else { return page.to_owned() };
    let (text, after) = text.split_once("</script>").expect("it ends");
    assert!(text.ends_with(PICTURE_SCRIPT), "it is that script");
    format!("{before}{after}")
}

#[test]
fn the_page_loads_nothing_and_runs_only_its_own_script() {
    let report = html(&fixture::quick(), Language::Korean);
    assert!(report.contains("<script data-save=\"PNG로 저장\"") && report.contains("data-study=\"quick\""));
    for (name, page) in pages() {
        let page = without_script(&page);
        for forbidden in [
            "http://", "https://", "<script", "<link", "<img", "<iframe", " src=", "url(", "@import",
            " onload",
        ] {
            assert!(!page.contains(forbidden), "{name}: {forbidden}");
        }
    }
}

#[test]
fn a_chart_by_itself_shows_intervals_bounds_and_its_table_or_says_why_there_is_none() {
    let of = |page| chart_page(&overview::mapped(), page, Language::English, "/study/a");
    let connections = of(ChartPage::Connections);
    assert_eq!(
        paths(&connections, "whisker").matches('M').count(),
        8,
        "two arms, two levels, two quantities"
    );
    assert!(connections.contains("≥ 124,800 [122,304, 127,296]") && connections.contains("mark hollow"));
    assert!(connections.contains("href=\"/study/a\" target=\"_top\""), "the way to the report");
    assert!(of(ChartPage::Efficiency).contains("class=\"one\""), "the ideal is a line");
    assert!(of(ChartPage::Success).contains(">99.95</text>"), "an axis that shows what is missing");
    assert!(of(ChartPage::Cores).contains("Threads are no cores"));
    assert!(of(ChartPage::SystemCalls).contains("nothing to draw here"));
    assert!(of(ChartPage::ThreadsBest).contains("Best TPS by threads"));
}

#[test]
fn an_interval_that_would_flatten_a_chart_is_cut_with_an_arrow_and_is_whole_in_the_table() {
    let mut result = overview::mapped();
    let of = |result: &StudyResult, language| chart_page(result, ChartPage::Efficiency, language, "/study/a");
    assert!(!of(&result, Language::English).contains("class=\"arrow\""), "nothing is cut");
    let mean = result.overviews[0].scaling.iter_mut().find(|it| it.per_cpu_second.is_some());
    let figure = mean.and_then(|it| it.per_cpu_second.as_mut()).expect("a figure with an interval");
    let value = figure.value;
    figure.interval = Some((value * 0.5, 40.0));
    for language in Language::ALL {
        let page = of(&result, language);
        assert_eq!(page.matches("class=\"arrow\"").count(), 1, "{language:?}");
        assert!(page.contains("4000 %]"), "{language:?}: the table has the end");
    }
    let page = of(&result, Language::English);
    assert!(page.contains("the interval goes on beyond the chart"));
    assert!(!page.contains(">500 %</text>") && !page.contains(">1000 %</text>"), "the axis is not stretched");
}

#[test]
fn no_number_is_shown_that_is_not_one() {
    for (name, page) in pages() {
        assert!(!page.contains("NaN"), "{name}");
        for tag in tags(&page).iter().filter(|tag| !tag.starts_with("svg")) {
            for coordinate in ["x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "width", "height"] {
                if let Some(value) = attribute(tag, coordinate) {
                    let value: f64 = value.trim_end_matches('%').parse().expect("a coordinate is a number");
                    assert!(value.is_finite(), "{name}: {tag}");
                }
            }
        }
    }
}

#[test]
fn every_column_has_its_rules_however_many_a_table_has() {
    for (name, page) in pages() {
        for tag in tags(&page).iter().filter(|tag| tag.starts_with("table class=\"columns ")) {
            let text = attribute(tag, "class").and_then(|class| class.split(' ').nth(1)).expect("a class");
            assert!(page.contains(&format!(".{text} :is(th,td):nth-child")), "{name}: {tag}");
            let columns = tag.matches("--h").count();
            let title = format!("td:nth-child({columns})::before{{content:var(--h{columns})}}");
            assert!(page.contains(&title), "{name}: {tag}");
        }
        assert!(!page.contains("data-head"), "{name}: a title in every cell is most of a page");
    }
}

#[test]
fn names_cannot_become_markup() {
    for language in Language::ALL {
        let page = html(&fixture::hostile_names(), language);
        assert!(!page.contains("alert(\"x\")</script>"));
        assert!(page.contains("&lt;script&gt;"));
    }
}

#[test]
fn every_language_explains_every_verdict() {
    let words = [
        (Language::English, ["less CPU", "more CPU", "equivalent", "inconclusive", "not comparable"]),
        (Language::Korean, ["CPU 덜 씀", "CPU 더 씀", "동등", "보류", "비교 불가"]),
        (Language::Chinese, ["更省 CPU", "更耗 CPU", "等效", "无法判定", "不可比较"]),
    ];
    for (language, words) in words {
        let page = html(&fixture::empty(), language);
        for word in words {
            assert!(page.contains(word), "{language:?}: {word}");
        }
    }
}

#[test]
fn the_page_says_its_language_and_follows_the_colour_scheme() {
    for (language, tag) in
        [(Language::English, "en"), (Language::Korean, "ko"), (Language::Chinese, "zh-Hans")]
    {
        let page = html(&fixture::quick(), language);
        assert!(page.contains(&format!("<html lang=\"{tag}\">")));
        assert!(page.contains("@media (prefers-color-scheme:dark)") && page.contains("@media print"));
    }
}

#[test]
fn findings_are_told_in_the_language_of_the_page_or_marked_as_english() {
    for language in [Language::Korean, Language::Chinese] {
        let page = html(&fixture::quick(), language);
        assert_eq!(page.matches(" lang=\"en\"").count(), 1);
        assert!(page.contains("lang=\"en\">known by its own name only<"));
        assert!(!page.contains("bytes compared") && page.contains("1,402,331,904"));
    }
    assert!(!html(&fixture::quick(), Language::English).contains("<td class=\"found\" lang"));
}

#[test]
fn two_hundred_cells_stay_within_the_limits() {
    let page = html(&fixture::two_hundred_cells(), Language::English);
    assert!(page.contains("more are left out here"));
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
}

#[test]
fn a_missing_arm_comes_with_its_reason_and_a_remedy() {
    let page = html(&fixture::one_arm_missing(), Language::English);
    assert!(page.contains("kernel.io_uring_disabled is 2"));
    assert!(page.contains("sysctl kernel.io_uring_disabled=0"));
}

#[test]
fn an_arm_that_never_ran_has_no_rows() {
    let mut result = fixture::quick();
    let mut row = result.effects.rows[0].clone();
    row.arm = "libuv".to_owned();
    (row.estimate, row.interval, row.verdict) = (None, None, Verdict::Inconclusive);
    fixture::compare(&mut result, row);
    assert!(markdown(&result, Language::English).contains("libuv / epoll"), "it ran, and gave no figure");
    result.missing_arms = fixture::one_arm_missing().missing_arms;
    result.missing_arms[0].name = "libuv".to_owned();
    assert!(!markdown(&result, Language::English).contains("libuv / epoll"));
}

#[test]
fn the_same_result_gives_the_same_bytes() {
    assert_eq!(html(&fixture::quick(), Language::Korean), html(&fixture::quick(), Language::Korean));
}
