//! Enough of Rust's lexical grammar to separate code from comments and from the text of literals.
//!
//! It is not a parser: it knows strings, raw strings, characters, lifetimes and nested comments, and finds words and
//! matching braces. Anything else counts as code.

use std::ops::Range;

/// The class of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Tokens and the space between them, including opening quotes.
    Code,
    /// Comments, including documentation.
    Comment,
    /// A string or character literal, after its opening quote and including its closing quote.
    Literal,
}

/// A Rust file with every byte classified.
pub struct Source<'a> {
    /// The unchanged file.
    pub text: &'a str,
    /// The file with comments and literals blanked; same length, same lines.
    pub code: String,
    /// The file with literals blanked; same length, same lines.
    pub code_and_comments: String,
    /// One class for each byte of `text`.
    pub classes: Vec<Class>,
}

impl<'a> Source<'a> {
    /// Classifies every byte.
    pub fn new(text: &'a str) -> Self {
        let classes = classify(text);
        let code = blank(text, &classes, &[Class::Comment, Class::Literal]);
        let code_and_comments = blank(text, &classes, &[Class::Literal]);
        Self { text, code, code_and_comments, classes }
    }

    /// The file with comments blanked; same length, same lines.
    pub fn without_comments(&self) -> String {
        blank(self.text, &self.classes, &[Class::Comment])
    }

    /// Line of a byte offset, from 1.
    pub fn line_at(&self, offset: usize) -> usize {
        self.text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1
    }

    /// The code of items that are compiled for tests only: from each `#[cfg(test)]`-like attribute to the end
    /// of the item below it.
    pub fn test_ranges(&self) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for (start, _) in self.code.match_indices("#[cfg(") {
            let inside_earlier = ranges.last().is_some_and(|range| range.contains(&start));
            let Some(close) = matching_close(&self.code, start + 1) else { continue };
            let condition = &self.code[start..close];
            let negated = condition.contains("not(");
            if inside_earlier || negated || words(condition, "test").next().is_none() {
                continue;
            }
            ranges.push(start..item_end(&self.code, close + 1));
        }
        ranges
    }
}

/// Byte offsets at which `word` stands alone, not as part of a longer name.
pub fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word).map(|(offset, _)| offset).filter(move |offset| {
        let before = text[..*offset].chars().next_back();
        let after = text[offset + word.len()..].chars().next();
        !before.is_some_and(is_name_char) && !after.is_some_and(is_name_char)
    })
}

/// Whether a character can be part of a Rust name.
pub fn is_name_char(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

/// Where the item that starts at or after `from` ends: after its `;`, or after its closing brace.
pub fn item_end(code: &str, from: usize) -> usize {
    let bytes = code.as_bytes();
    let mut offset = from;
    while offset < bytes.len() {
        match bytes[offset] {
            b';' => return offset + 1,
            b'{' => return matching_close(code, offset).map_or(bytes.len(), |close| close + 1),
            b'(' | b'[' => match matching_close(code, offset) {
                Some(close) => offset = close,
                None => return bytes.len(),
            },
            _ => {}
        }
        offset += 1;
    }
    bytes.len()
}

/// The offset of the bracket that closes the one at `open`; `code` has no comments and no literals.
pub fn matching_close(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (distance, byte) in code.as_bytes()[open..].iter().enumerate() {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(open + distance);
                }
            }
            _ => {}
        }
    }
    None
}

fn blank(text: &str, classes: &[Class], hidden: &[Class]) -> String {
    let bytes = text.bytes().zip(classes);
    let kept = bytes.map(|(byte, class)| if byte != b'\n' && hidden.contains(class) { b' ' } else { byte });
    // Classes change only between characters, so whole characters were replaced.
    String::from_utf8(kept.collect()).expect("blanking replaces whole characters")
}

fn classify(text: &str) -> Vec<Class> {
    let mut classes = vec![Class::Code; text.len()];
    let mut offset = 0;
    while offset < text.len() {
        let (class, range) = next_token(text, offset);
        classes[range.clone()].fill(class);
        offset = range.end.max(offset + 1);
    }
    classes
}

/// The class of the token at `offset`, and the range of that class. The range may begin later: the opening quote of a
/// literal is code.
fn next_token(text: &str, offset: usize) -> (Class, Range<usize>) {
    let rest = &text[offset..];
    if rest.starts_with("//") {
        let end = rest.find('\n').map_or(text.len(), |length| offset + length);
        return (Class::Comment, offset..end);
    }
    if rest.starts_with("/*") {
        return (Class::Comment, offset..block_comment_end(text, offset));
    }
    if rest.starts_with('"') {
        return (Class::Literal, offset + 1..quoted_end(text, offset + 1, b'"'));
    }
    if rest.starts_with('\'') {
        return (Class::Literal, character_range(text, offset));
    }
    let name_length = rest.find(|character| !is_name_char(character)).unwrap_or(rest.len());
    if matches!(&rest[..name_length], "r" | "br" | "cr")
        && let Some(range) = raw_string_range(text, offset + name_length)
    {
        return (Class::Literal, range);
    }
    let width = rest.chars().next().map_or(1, char::len_utf8);
    (Class::Code, offset..offset + name_length.max(width))
}

fn block_comment_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut offset = start;
    while offset < bytes.len() {
        if bytes[offset..].starts_with(b"/*") {
            depth += 1;
            offset += 2;
        } else if bytes[offset..].starts_with(b"*/") {
            depth -= 1;
            offset += 2;
            if depth == 0 {
                return offset;
            }
        } else {
            offset += 1;
        }
    }
    bytes.len()
}

/// Where a literal ends: after its closing quote, so that the quote is not read as an opening one.
fn quoted_end(text: &str, inside: usize, quote: u8) -> usize {
    let bytes = text.as_bytes();
    let mut offset = inside;
    while offset < bytes.len() {
        match bytes[offset] {
            b'\\' => offset += 2,
            byte if byte == quote => return offset + 1,
            _ => offset += 1,
        }
    }
    bytes.len()
}

/// The inside of a character literal, or an empty range when the quote starts a lifetime.
fn character_range(text: &str, quote: usize) -> Range<usize> {
    let inside = quote + 1;
    let mut characters = text[inside..].chars();
    match characters.next() {
        Some('\\') => inside..quoted_end(text, inside, b'\''),
        Some(first) if characters.next() == Some('\'') => inside..inside + first.len_utf8() + 1,
        _ => inside..inside,
    }
}

/// The inside of a raw string whose hashes or quote start at `offset`; `None` for a raw identifier.
fn raw_string_range(text: &str, offset: usize) -> Option<Range<usize>> {
    let hashes = text[offset..].bytes().take_while(|byte| *byte == b'#').count();
    let inside = offset + hashes + 1;
    if text.as_bytes().get(offset + hashes) != Some(&b'"') {
        return None;
    }
    let closing = format!("\"{}", "#".repeat(hashes));
    let end = text[inside..].find(&closing).map_or(text.len(), |length| inside + length + closing.len());
    Some(inside..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        Source::new(text).code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        assert_eq!(code("a /* b /* c */ d */ e // f\ng"), "a e g");
        assert_eq!(code(r#"a("b { \" c") d"#), "a(\" ) d");
        assert_eq!(code("a(r##\"b \"# c\"##) d"), "a(r##\" ) d");
        assert_eq!(code("a(br\"b\") d"), "a(br\" ) d");
        assert_eq!(code("a(b'{', '\\'', '}', '漢') d"), "a(b' , ' , ' , ' ) d");
    }

    #[test]
    fn lifetimes_and_raw_names_stay_code() {
        assert_eq!(code("fn f<'a>(x: &'a str, r#type: T) {}"), "fn f<'a>(x: &'a str, r#type: T) {}");
    }

    #[test]
    fn text_that_never_ends_does_not_panic() {
        for text in ["\"abc", "'\\", "/* a", "r#\"a", "\"\\", "'"] {
            assert_eq!(Source::new(text).classes.len(), text.len());
        }
    }

    #[test]
    fn blanking_keeps_lines_and_lengths() {
        let source = Source::new("a \"漢\n字\" // ü\nb");
        assert_eq!(source.code.len(), source.text.len());
        assert_eq!(source.code.lines().count(), 3);
        assert_eq!(source.line_at(source.text.len() - 1), 3);
    }

    #[test]
    fn words_stand_alone() {
        assert_eq!(words("unsafe unsafe_op not_unsafe (unsafe)", "unsafe").collect::<Vec<_>>(), [0, 29]);
    }

    #[test]
    fn test_code_is_found_by_its_attribute() {
        let text = "fn a() {}\n#[cfg(test)]\nmod t { fn b() { c } }\nfn d() {}\n#[cfg(not(test))] fn e() {}";
        let source = Source::new(text);
        let ranges = source.test_ranges();
        assert_eq!(ranges.len(), 1);
        assert_eq!(&text[ranges[0].clone()], "#[cfg(test)]\nmod t { fn b() { c } }");
        let loom = Source::new("#[cfg(all(test, loom))] use a::b; fn c() {}");
        assert_eq!(&loom.text[loom.test_ranges()[0].clone()], "#[cfg(all(test, loom))] use a::b;");
    }
}
