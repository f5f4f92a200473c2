//! What a page asks of its reader and of a network: words that are not folded, and bytes as sent. Tests of other
//! crates weigh the pages of their studies with it.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};

/// Most bytes of a compressed page.
pub const COMPRESSED_BYTES_MAX: usize = 250_000;

/// Elements without an end tag.
const VOID: [&str; 6] = ["meta", "link", "br", "hr", "img", "input"];

/// Words of a page that are shown before anything is unfolded: not those of tooltips, styles and closed details.
pub fn unfolded_words(page: &str) -> usize {
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

pub fn compressed_bytes(page: &str) -> usize {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(page.as_bytes()).expect("memory takes it");
    encoder.finish().expect("memory takes it").len()
}
