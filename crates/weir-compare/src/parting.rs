//! Where two outputs begin to differ: first by the hashes of their blocks, then by the bytes of one block. Pure.

use weir_record::commands::FirstDifference;

use crate::run::{BLOCK_BYTES, OutputDigest};

/// Bytes and characters before the first difference that an excerpt shows, of the same line.
const BEFORE_MAX: usize = 12;

/// Bytes and characters from there on.
const AFTER_MAX: usize = 24;

/// A block in which two outputs differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parting {
    /// Its number.
    pub(crate) block: u32,
    /// Ends of lines before it.
    pub(crate) lines_before: u64,
}

/// The first block in which two outputs differ. None where all blocks with a hash are the same.
pub(crate) fn first_block(own: &OutputDigest, other: &OutputDigest) -> Option<Parting> {
    let (own, other) = (&own.blocks, &other.blocks);
    let alike = own.iter().zip(other).take_while(|(one, other)| one == other).count();
    if alike == own.len() && alike == other.len() {
        return None;
    }
    let lines_before = own[..alike].iter().map(|block| u64::from(block.lines)).sum();
    Some(Parting { block: u32::try_from(alike).ok()?, lines_before })
}

/// The first difference within that block. None where its bytes are the same.
pub(crate) fn within(parting: Parting, own: &[u8], other: &[u8]) -> Option<FirstDifference> {
    let alike = own.iter().zip(other).take_while(|(one, other)| one == other).count();
    if alike == own.len() && alike == other.len() {
        return None;
    }
    let line_begins = own[..alike].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let from = line_begins.max(alike.saturating_sub(BEFORE_MAX));
    let lines = own[..alike].iter().filter(|byte| **byte == b'\n').count() as u64;
    Some(FirstDifference {
        offset_bytes: u64::from(parting.block) * BLOCK_BYTES as u64 + alike as u64,
        line: parting.lines_before + lines + 1,
        excerpts: (excerpt(own, from, alike), excerpt(other, from, alike)),
    })
}

/// The text at the difference, with a little before it, at most to the end of the line; empty where the output ends
/// there.
fn excerpt(bytes: &[u8], from: usize, difference: usize) -> String {
    let (before, after) = (shown(&bytes[from..difference]), &bytes[difference..]);
    if after.is_empty() {
        return String::new();
    }
    // An end of line may be the difference itself, so it is shown.
    let line = after.iter().position(|byte| *byte == b'\n').map_or(after.len(), |at| at + 1);
    let after = shown(&after[..line.min(AFTER_MAX)]);
    let mut last = within_columns(before.into_iter().rev(), BEFORE_MAX);
    last.reverse();
    last.into_iter().chain(within_columns(after.into_iter(), AFTER_MAX)).collect()
}

/// The first items that together have at most this many characters.
fn within_columns(symbols: impl Iterator<Item = String>, most: usize) -> Vec<String> {
    let mut left = most;
    let fits = |symbol: &String| {
        let fitting = left.checked_sub(symbol.chars().count());
        left = fitting.unwrap_or(left);
        fitting.is_some()
    };
    symbols.take_while(fits).collect()
}

/// Bytes as visible characters.
fn shown(bytes: &[u8]) -> Vec<String> {
    let mut symbols = Vec::new();
    for chunk in bytes.utf8_chunks() {
        symbols.extend(chunk.valid().chars().map(visible));
        symbols.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    symbols
}

/// Characters that could move a cursor or hide text are written as their numbers.
fn visible(symbol: char) -> String {
    match symbol {
        '\\' | '\n' | '\t' | '\r' => symbol.escape_default().collect(),
        symbol if symbol.is_ascii_control() => format!("\\x{:02x}", u32::from(symbol)),
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            symbol.escape_default().collect()
        }
        symbol if symbol.is_control() => symbol.escape_default().collect(),
        symbol => symbol.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::OutputBlock;

    /// The beginning of an output.
    const START: Parting = Parting { block: 0, lines_before: 0 };

    fn digest(blocks: &[(u64, u32)]) -> OutputDigest {
        let blocks = blocks.iter().map(|(hash, lines)| OutputBlock { hash: *hash, lines: *lines }).collect();
        OutputDigest { blocks, ..OutputDigest::default() }
    }

    fn parted(own: &[u8], other: &[u8]) -> Option<(u64, u64, String, String)> {
        let found = within(START, own, other)?;
        Some((found.offset_bytes, found.line, found.excerpts.0, found.excerpts.1))
    }

    #[test]
    fn the_first_block_that_differs_or_is_missing_is_found() {
        let all = digest(&[(1, 10), (2, 20), (3, 0)]);
        assert_eq!(first_block(&all, &all), None);
        let of = |blocks: &[(u64, u32)]| first_block(&all, &digest(blocks));
        assert_eq!(of(&[(9, 10)]), Some(START));
        assert_eq!(of(&[(1, 10), (2, 20), (4, 0)]), Some(Parting { block: 2, lines_before: 30 }));
        assert_eq!(of(&[(1, 10)]), Some(Parting { block: 1, lines_before: 10 }));
        assert_eq!(of(&[]), Some(START));
    }

    #[test]
    fn the_first_byte_that_differs_has_its_place_its_line_and_what_stands_there() {
        let text = |text: &str| text.to_owned();
        assert_eq!(parted(b"a\nbc\nd", b"a\nbx\nd"), Some((3, 2, text("bc\\n"), text("bx\\n"))));
        assert_eq!(parted(b"ab", b"ab\n"), Some((2, 1, text(""), text("ab\\n"))), "one of them ends");
        assert_eq!(parted(b"", b"x"), Some((0, 1, text(""), text("x"))));
        assert_eq!(parted(b"same", b"same"), None);
        let later = within(Parting { block: 2, lines_before: 30 }, b"\nx", b"\ny").expect("they differ");
        assert_eq!((later.offset_bytes, later.line), (2 * BLOCK_BYTES as u64 + 1, 32));
    }

    #[test]
    fn an_excerpt_is_short_and_has_no_control_characters() {
        let found = parted(b"\x1b[31m\xff\xe2\x80\xaez\\", b"\x1b[31m\xfe").expect("they differ");
        assert_eq!(found.2, "\\x1b[31m\\xff\\u{202e}z\\\\");
        let mut long = vec![b'a'; 1_000];
        long.push(b'b');
        let (offset, _, own, other) = parted(&long, &vec![b'a'; 1_100]).expect("they differ");
        assert_eq!((offset, own.as_str()), (1_000, "aaaaaaaaaaaab"));
        assert_eq!(other.chars().count(), BEFORE_MAX + AFTER_MAX);
        let odd = |last: u8| [[0xff; 30].as_slice(), &[last]].concat();
        let (.., own, other) = parted(&odd(1), &odd(2)).expect("they differ");
        assert_eq!((own.as_str(), other.as_str()), (r"\xff\xff\xff\x01", r"\xff\xff\xff\x02"));
    }
}
