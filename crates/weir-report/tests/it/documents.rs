//! Properties of every Markdown document, and what accompanies its verdict.

use weir_record::{
    check::{Check, CheckName},
    effect::{Effect, Question},
    finding::Finding,
    spec::{LoadMode, MissingCell},
    study::StudyResult,
};
use weir_report::{Language, markdown};

use crate::{
    every_study::all,
    fixture::{beside, quick},
};

/// Longest comment.
const CHARACTERS_MAX: usize = 65_536;

#[test]
fn every_document_fits_a_comment_and_says_what_it_leaves_out() {
    for (name, result) in all() {
        for language in Language::ALL {
            let document = markdown(&result, language);
            let characters = document.chars().count();
            assert!(characters <= CHARACTERS_MAX, "{name} in {language:?}: {characters}");
            let is_cut = document.contains("report.html");
            assert!(!is_cut || characters > 30_000, "{name} in {language:?}: cut at {characters}");
            assert!(is_cut || name != "two hundred cells", "{characters}");
        }
    }
}

/// A study with this many checks and cells that could not run, and texts of this length.
fn with_many(checks: usize, missing_cells: usize, length: usize) -> StudyResult {
    let mut result = quick();
    let text = || Finding::Text("<long> ".repeat(length.div_ceil(7)));
    let check = |passed| Check { name: CheckName::BytesVerified, passed, detail: text() };
    result.checks = vec![check(true); checks];
    result.checks.push(check(false));
    let cell = |number: usize| MissingCell { id: format!("c{number}-d1-m64-closed"), reason: text() };
    result.spec.missing_cells = (0..missing_cells).map(cell).collect();
    result
}

#[test]
fn many_long_checks_and_missing_cells_are_cut_where_sections_need_the_room() {
    for (checks, missing_cells, length) in
        [(300, 2_000, 200), (5_000, 0, 20), (0, 500, 20), (40, 40, 100_000)]
    {
        let result = with_many(checks, missing_cells, length);
        for language in Language::ALL {
            let document = markdown(&result, language);
            let characters = document.chars().count();
            assert!(characters <= CHARACTERS_MAX, "{checks} {missing_cells} {length}: {characters}");
            // Failed checks stay, and so does what follows the checks.
            assert!(
                document.contains("✗") && document.contains(&result.reproduce),
                "{checks} {missing_cells}"
            );
        }
        let document = markdown(&result, Language::English);
        let kept = document
            .lines()
            .filter(|line| line.starts_with("- c") && line.contains("-d1-m64-closed"))
            .count();
        let cut = missing_cells - kept;
        let told = document.contains(&format!("And {cut} more, in report.html."));
        assert_eq!(told, cut > 0, "{checks} {missing_cells} {length}: {kept} kept");
        assert!(kept > 0 || missing_cells == 0, "some are shown");
    }
    let few = markdown(&with_many(3, 3, 20), Language::English);
    assert!(!few.contains("report.html"), "{few}");
}

#[test]
fn a_study_whose_names_alone_are_too_long_has_a_document_that_ends_in_time() {
    let mut result = quick();
    result.spec.title = "endless ".repeat(4_000).as_str().into();
    result.reproduce = "weir study quick \n".repeat(5_000);
    let document = markdown(&result, Language::English);
    assert!(document.chars().count() <= CHARACTERS_MAX);
    assert!(document.trim_end().ends_with("The rest is in report.html."));
    assert_eq!(document.lines().filter(|line| line.starts_with("```")).count(), 2, "the command ends");
}

#[test]
fn the_second_estimate_and_a_single_rate_stand_beside_the_primary_comparison() {
    let mut result = quick();
    let effect = result.primary().expect("it has one").clone();
    let row = Effect { interval: Some((0.8, 1.1)), ..beside(&effect, Question::AchievedRates, 0.95) };
    result.effects.rows.push(row);
    let cell = result.spec.cells.iter_mut().find(|cell| cell.id == effect.cell_id).expect("its cell");
    cell.load = LoadMode::Open { rate_per_second: 1_000.0, poisson: true, share: Some(0.5) };
    result.spec.cells.retain(|cell| cell.id == effect.cell_id || cell.load == LoadMode::Closed);
    for (language, expected) in Language::ALL.into_iter().zip([
        ["0.950 [0.800, 1.100]", "at one offered rate"],
        ["0.950 [0.800, 1.100]", "한 가지 요청률에서만"],
        ["0.950 [0.800, 1.100]", "只在一个请求速率下"],
    ]) {
        let text = markdown(&result, language);
        assert!(expected.iter().all(|it| text.contains(it)), "{language:?}: {text}");
    }
}
