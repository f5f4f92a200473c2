//! What a page may ask of its reader and of a network: words that are not folded, and bytes as they are sent.

use weir_record::study::StudyResult;
use weir_report::{Language, html};

use crate::{
    every_study, evidence, fixture, map, overview,
    weight::{COMPRESSED_BYTES_MAX, compressed_bytes, unfolded_words},
};

#[test]
fn words_are_those_that_a_reader_sees() {
    let page = "<html><head><title>not this</title></head><body><p>one two<br>three</p><details><summary>four \
                <b>five</b></summary><p>not <i>this</i></p></details><svg><path d=\"M0\"/><text>six</text><g><title>nor \
                this</title></g></svg> seven</body></html>";
    assert_eq!(unfolded_words(page), 7);
}

/// Studies, and most words of their pages. Measured studies have more sections than these: a page of `weir study quick`
/// has twice the words of the first one.
fn budgets() -> [(&'static str, StudyResult, usize); 4] {
    [
        ("quick", fixture::quick(), 900),
        ("observed", evidence::observed(), 1_800),
        ("small map", map::mapped(), 1_800),
        ("map of 120 cells", overview::large(), 4_000),
    ]
}

#[test]
fn a_page_shows_few_words_before_anything_is_unfolded() {
    for (name, result, most) in budgets() {
        let words = unfolded_words(&html(&result, Language::English));
        assert!((most / 4..=most).contains(&words), "{name}: {words} words, at most {most}");
    }
}

#[test]
fn a_page_is_light_on_a_network_whatever_the_study() {
    for (name, result) in every_study::all().into_iter().chain([("map of 120 cells", overview::large())]) {
        for language in Language::ALL {
            let bytes = compressed_bytes(&html(&result, language));
            assert!(bytes <= COMPRESSED_BYTES_MAX, "{name} in {language:?}: {bytes} bytes");
        }
    }
}
