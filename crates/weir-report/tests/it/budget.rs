//! What a page may ask of its reader and of a network: words that are not folded, and bytes as they are sent.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use weir_record::study::StudyResult;
use weir_report::{Language, html};

use crate::{every_study, evidence, fixture, map, overview};

/// Most bytes of a compressed page.
const COMPRESSED_BYTES_MAX: usize = 250_000;

/// Elements without an end tag.
const VOID: [&str; 6] = ["meta", "link", "br", "hr", "img", "input"];

/// Words of a page that are shown before anything is unfolded: not those of tooltips, styles and closed details.
fn unfolded_words(page: &str) -> usize {
    let mut open: Vec<&str> = Vec::new();
    let mut words = 0;
    for part in page.split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap_or((part, ""));
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        if tag.starts_with('/') {
            while open.pop().is_some_and(|own| own != name) {}
        } else if !tag.ends_with('/') && !tag.starts_with('!') && !VOID.contains(&name) {
            open.push(name);
        }
        let is_unseen = open.iter().any(|name| matches!(*name, "head" | "style" | "title" | "script"));
        let is_folded = open.iter().enumerate().any(|(depth, name)| {
            *name == "details" && open.get(depth + 1).is_none_or(|inner| *inner != "summary")
        });
        if !(is_unseen || is_folded) {
            words += text.split_whitespace().count();
        }
    }
    words
}

fn compressed_bytes(page: &str) -> usize {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(page.as_bytes()).expect("memory takes it");
    encoder.finish().expect("memory takes it").len()
}

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
