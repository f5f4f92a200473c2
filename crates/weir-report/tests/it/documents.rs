//! What holds of every document in Markdown, and what stands beside its verdict.

use weir_record::{
    effect::{Effect, Question},
    spec::LoadMode,
};
use weir_report::{Language, markdown};

use crate::{
    every_study::all,
    fixture::{beside, quick},
};

#[test]
fn every_document_fits_a_comment_and_says_what_it_leaves_out() {
    for (name, result) in all() {
        for language in Language::ALL {
            let document = markdown(&result, language);
            let characters = document.chars().count();
            assert!(characters <= 65_536, "{name} in {language:?}: {characters}");
            let is_cut = document.contains("report.html");
            assert!(!is_cut || characters > 30_000, "{name} in {language:?}: cut at {characters}");
            assert!(is_cut || name != "two hundred cells", "{characters}");
        }
    }
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
        ["0.950 [0.800, 1.100]", "부하율 한 가지"],
        ["0.950 [0.800, 1.100]", "一个设定速率"],
    ]) {
        let text = markdown(&result, language);
        assert!(expected.iter().all(|it| text.contains(it)), "{language:?}: {text}");
    }
}
