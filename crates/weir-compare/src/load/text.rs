//! Numbers in lines that loads print for people.

use super::number;

/// Lines of a text; a tool that draws its progress ends them with a carriage return.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', '\r']).map(str::trim)
}

/// The number that follows a label at the beginning of a line: `Complete requests: 100000`.
pub(super) fn after(text: &str, label: &str) -> Option<u64> {
    lines(text).find_map(|line| first(line.strip_prefix(label)?))
}

/// The number at the beginning of a text: `10000/10000`, `3 (0.2%)`.
pub(super) fn first(text: &str) -> Option<u64> {
    let is_part = |symbol: char| symbol.is_ascii_digit() || matches!(symbol, '.' | ',');
    let text = text.trim_start();
    let end = text.find(|symbol| !is_part(symbol)).unwrap_or(text.len());
    number(text[..end].trim_end_matches(['.', ',']))
}

/// The number that stands right before a text of a line: `2784758 requests in 2.00m`.
pub(super) fn before(line: &str, what: &str) -> Option<u64> {
    number(line.split_once(what)?.0.split_whitespace().next_back()?)
}

/// A distribution: the text in brackets, the number after it, and the rest of the line; or the other way round, where
/// the brackets hold the number. It begins after a heading and ends with a line without brackets.
pub(super) fn bracketed<'t>(text: &'t str, heading: &'t str) -> impl Iterator<Item = (&'t str, &'t str)> {
    let rows = lines(text).skip_while(move |line| !line.starts_with(heading)).skip(1);
    rows.map_while(|line| line.strip_prefix('[')?.split_once(']'))
}
