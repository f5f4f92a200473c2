//! Constructions that `docs/style.md` replaces, found by their words in comments, messages and pages.
//!
//! It compares words and knows no grammar. Text in backticks, quoted titles, blocks of code in pages and the values
//! between braces of a message are left alone. Files that follow from checked ones are not read: snapshots, schemas,
//! lock files.

use std::{collections::HashMap, sync::LazyLock};

use super::{
    Finding, extension,
    lexer::{Class, Source},
};

/// A construction and what to write instead.
struct Construction {
    /// Its words; `a/b` stands for either. A word with a capital letter is found only with it, which means at the
    /// beginning of a sentence.
    words: &'static str,
    condition: Condition,
    better: &'static str,
}

/// What follows the words of a construction.
#[derive(Clone, Copy)]
enum Condition {
    /// Anything.
    Anywhere,
    /// No noun: the end of the sentence, or one of [`FUNCTION_WORDS`].
    WithoutNoun,
    /// Another word, and not the one named here.
    BeforeWordExcept(&'static str),
}

/// Every construction. The table in `docs/style.md` has the same rows.
const CONSTRUCTIONS: &[Construction] = &[
    anywhere("comes/came/come to", "is, amounts to, results in, arrives at"),
    anywhere("dearer", "costs more, more expensive"),
    Construction {
        words: "of its/their/our/your/one's own",
        condition: Condition::WithoutNoun,
        better: "its own, or separate",
    },
    anywhere("tells", "says, shows, names, distinguishes"),
    anywhere("tell/telling/told of", "report, describe"),
    anywhere("is/are/was/were told that", "the report says that"),
    anywhere("told from", "distinguished from"),
    anywhere("to be had", "available"),
    anywhere("for ever", "forever"),
    anywhere("mend/mends/mended", "fix"),
    anywhere("held against", "compared with, checked against"),
    anywhere("hold/holds/holding it/them/ours/two/both against", "compares"),
    anywhere("whoever", "name who acts: the client, the reader, a user"),
    anywhere("after/of/over so many", "after N, of N; this many"),
    anywhere("of before", "older, earlier"),
    anywhere("out of nothing", "say what two identical programs may show"),
    Construction {
        words: "Of",
        condition: Condition::BeforeWordExcept("course"),
        better: "begin with the subject",
    },
    anywhere(
        "So is/are/was/were/does/do/did/has/have/can/will/must",
        "begin with the subject: the same is true for",
    ),
    anywhere("Nor is/are/was/were/does/do/did/has/have/can/will/must", "begin with the subject"),
];

/// Words after which a noun phrase cannot go on, as far as the tree uses them.
const FUNCTION_WORDS: &[&str] = &[
    "a", "above", "after", "alone", "also", "although", "and", "are", "as", "at", "because", "before",
    "behind", "below", "beside", "but", "by", "each", "for", "from", "he", "if", "in", "instead", "into",
    "is", "it", "on", "or", "ran", "she", "so", "than", "that", "the", "there", "they", "to", "until", "was",
    "we", "were", "when", "where", "which", "while", "who", "whose", "with", "without",
];

/// Endings of files that follow from checked ones.
const DERIVED: &[&str] = &["snap", "json", "lock"];

/// Files that keep these words: this one, and texts that are not ours.
const LEFT_ALONE: &[&str] = &["xtask/src/tidy/constructions.rs", "LICENSE-APACHE", "LICENSE-MIT"];

/// The page whose tables name the constructions.
const STYLE_PAGE: &str = "docs/style.md";

/// Quoted or backticked text is at most this long; a mark without its partner hides no more than that.
const QUOTED_BYTES_MAX: usize = 200;

/// Code, in prose: no sentence goes on across it.
const CODE: u8 = 1;

const fn anywhere(words: &'static str, better: &'static str) -> Construction {
    Construction { words, condition: Condition::Anywhere, better }
}

/// Constructions by their first word, as it may be written.
static BY_FIRST_WORD: LazyLock<HashMap<String, Vec<&Construction>>> = LazyLock::new(|| {
    let mut found: HashMap<String, Vec<&Construction>> = HashMap::new();
    for construction in CONSTRUCTIONS {
        let first = construction.words.split(' ').next().unwrap_or_default();
        for word in first.split('/') {
            let capital = word[..1].to_uppercase() + &word[1..];
            found.entry(capital).or_default().push(construction);
            if word.starts_with(|letter: char| letter.is_ascii_lowercase()) {
                found.entry(word.to_owned()).or_default().push(construction);
            }
        }
    }
    found
});

/// Finds constructions in the comments and literals of a Rust file.
pub fn check_rust(path: &str, source: &Source) -> Vec<Finding> {
    if LEFT_ALONE.contains(&path) { Vec::new() } else { find(path, source.text, &prose_of_rust(source)) }
}

/// Finds constructions in any other file.
pub fn check(path: &str, text: &str) -> Vec<Finding> {
    if LEFT_ALONE.contains(&path) || DERIVED.contains(&extension(path)) {
        return Vec::new();
    }
    let prose = match extension(path) {
        "md" => prose_of_markdown(text, path == STYLE_PAGE),
        _ => prose_of_others(text),
    };
    find(path, text, &prose)
}

fn find(path: &str, text: &str, prose: &[u8]) -> Vec<Finding> {
    let tokens = tokens(prose);
    let mut findings = Vec::new();
    for (start, token) in tokens.iter().enumerate() {
        let Some(candidates) = token.word().and_then(|word| BY_FIRST_WORD.get(word)) else { continue };
        for construction in candidates {
            let Some(length) = construction.length_at(&tokens[start..]) else { continue };
            let found: Vec<&str> = tokens[start..start + length].iter().filter_map(Token::word).collect();
            let message = format!("`{}`: docs/style.md has better: {}", found.join(" "), construction.better);
            let line = text.as_bytes()[..token.offset].iter().filter(|byte| **byte == b'\n').count() + 1;
            findings.push(Finding::new(path, line, "construction", message));
        }
    }
    findings
}

impl Construction {
    /// How many tokens it has where it begins with the first of these; `None` if it does not.
    fn length_at(&self, tokens: &[Token<'_>]) -> Option<usize> {
        let mut length = 0;
        for pattern in self.words.split(' ') {
            if !is_word_of(pattern, tokens.get(length)?.word()?) {
                return None;
            }
            length += 1;
        }
        let next = tokens.get(length).and_then(Token::word);
        let holds = match self.condition {
            Condition::Anywhere => true,
            Condition::WithoutNoun => next.is_none_or(|word| FUNCTION_WORDS.contains(&word)),
            Condition::BeforeWordExcept(other) => next.is_some_and(|word| {
                word != other && word.starts_with(|first: char| first.is_ascii_lowercase())
            }),
        };
        holds.then_some(length)
    }
}

/// Whether a word is one of those that `a/b` stands for.
fn is_word_of(pattern: &str, word: &str) -> bool {
    pattern.split('/').any(|known| {
        let needs_capital = known.starts_with(|first: char| first.is_ascii_uppercase());
        if needs_capital { word == known } else { word.eq_ignore_ascii_case(known) }
    })
}

/// A piece of prose.
struct Token<'a> {
    offset: usize,
    /// The word; absent for a mark of punctuation and for text that is left alone.
    text: Option<&'a str>,
}

impl<'a> Token<'a> {
    fn word(&self) -> Option<&'a str> {
        self.text
    }
}

/// Comments and literals of a Rust file; everything else is code, and so is a literal of one word. Same length, same
/// lines.
fn prose_of_rust(source: &Source) -> Vec<u8> {
    let mut prose = source.text.as_bytes().to_vec();
    let mut start = 0;
    for run in source.classes.chunk_by(|one, other| one == other) {
        let piece = &mut prose[start..start + run.len()];
        start += run.len();
        match run[0] {
            Class::Comment => {}
            Class::Literal if piece.contains(&b' ') => {
                // The closing quote.
                piece[run.len() - 1] = CODE;
            }
            Class::Literal => blank_code(piece),
            Class::Code => blank_code(piece),
        }
    }
    blank_markers(&mut prose, &["//!", "///", "//", "/**", "/*"]);
    prose
}

/// Makes code of a piece, without its blanks and ends of lines.
fn blank_code(piece: &mut [u8]) {
    piece.iter_mut().filter(|byte| !byte.is_ascii_whitespace()).for_each(|byte| *byte = CODE);
}

/// A page without its blocks of code and the targets of its links. The style page loses its tables too.
fn prose_of_markdown(text: &str, without_tables: bool) -> Vec<u8> {
    let mut prose = text.as_bytes().to_vec();
    let mut fenced = false;
    let mut start = 0;
    for line in text.split('\n') {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        if fence || fenced || (without_tables && line.starts_with('|')) {
            prose[start..start + line.len()].fill(CODE);
        }
        start += line.len() + 1;
    }
    for (at, _) in text.match_indices("](") {
        let end = text[at..].find(')').map_or(text.len(), |length| at + length);
        prose[at + 1..end].fill(CODE);
    }
    blank_markers(&mut prose, &["> "]);
    prose
}

/// Everything else as it is. A quote delimits a value there, except in a comment, so that it is read as a mark of
/// punctuation; a value of one word is code.
fn prose_of_others(text: &str) -> Vec<u8> {
    let mut prose = text.as_bytes().to_vec();
    let mut start = 0;
    for line in text.split('\n') {
        if !line.trim_start().starts_with(['#', '/', '*']) {
            let mut at = start;
            for (number, part) in line.split('"').enumerate() {
                if number % 2 == 1 && !part.contains(' ') {
                    prose[at..at + part.len()].fill(CODE);
                }
                at += part.len() + 1;
                if at <= start + line.len() && !part.ends_with('\\') {
                    prose[at - 1] = CODE;
                }
            }
        }
        start += line.len() + 1;
    }
    blank_markers(&mut prose, &["//", "# ", "#\n", "* "]);
    prose
}

/// Blanks the mark with which a line of a comment or of a list begins, so that sentences go on across lines.
fn blank_markers(prose: &mut [u8], markers: &[&str]) {
    let mut offset = 0;
    while offset < prose.len() {
        let blank = prose[offset..].iter().take_while(|byte| **byte == b' ').count();
        offset += blank;
        if let Some(marker) = markers.iter().find(|marker| prose[offset..].starts_with(marker.as_bytes())) {
            let length = marker.trim_end_matches('\n').len();
            prose[offset..offset + length].fill(b' ');
        }
        let rest = prose[offset..].iter().position(|byte| *byte == b'\n');
        offset = rest.map_or(prose.len(), |length| offset + length + 1);
    }
}

fn tokens(prose: &[u8]) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut offset = 0;
    while offset < prose.len() {
        let rest = &prose[offset..];
        let code = rest.iter().take_while(|byte| **byte == CODE).count();
        if code > 0 {
            tokens.push(Token { offset, text: None });
            offset += code;
            continue;
        }
        let word = word_length(rest);
        let (length, is_mark) = match rest[0] {
            _ if word > 0 => (word, false),
            // A long literal goes on in the next line.
            b'\\' if rest.get(1) == Some(&b'\n') => (2, false),
            b'\\' if rest.get(1).is_some_and(u8::is_ascii_alphanumeric) => (2, true),
            b' ' | b'\t' | b'\r' => (1, false),
            b'\n' => {
                let blank = rest[1..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
                (1 + blank, rest.get(1 + blank) == Some(&b'\n'))
            }
            b'`' => (marked(rest, b"`"), true),
            b'"' => (marked(rest, b"\""), true),
            b'\\' if rest.starts_with(b"\\\"") => (marked(rest, b"\\\""), true),
            b'{' => (marked(rest, b"}"), true),
            // Emphasis.
            b'*' => (1, false),
            _ => (1, true),
        };
        if word > 0 {
            // A word ends between characters; one that does not is no word of these constructions.
            tokens.push(Token { offset, text: std::str::from_utf8(&rest[..word]).ok() });
        } else if is_mark {
            tokens.push(Token { offset, text: None });
        }
        offset += length;
    }
    tokens
}

/// The length of the word at the beginning; 0 where there is none. A dash by itself is none.
fn word_length(rest: &[u8]) -> usize {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
    let length =
        rest.iter().take_while(|byte| is_letter(**byte) || matches!(byte, b'_' | b'\'' | b'-')).count();
    if rest[..length].iter().any(|byte| is_letter(*byte)) { length } else { 0 }
}

/// The length of text from an opening mark to its closing one; of the mark alone where none is near.
fn marked(rest: &[u8], close: &[u8]) -> usize {
    let end = rest.len().min(QUOTED_BYTES_MAX);
    let inside = &rest[1..end];
    let length = inside.windows(close.len()).position(|window| window == close);
    let limit = inside.windows(2).position(|window| window == b"\n\n" || window.contains(&CODE));
    match length {
        Some(length) if limit.is_none_or(|limit| length <= limit) => 1 + length + close.len(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        let phrase = |finding: Finding| {
            let (_, behind) = finding.message.split_once('`').expect("the phrase is in backticks");
            (finding.line, behind.split('`').next().unwrap_or_default().to_owned())
        };
        let findings = match extension(path) {
            "rs" => check_rust(path, &Source::new(text)),
            _ => check(path, text),
        };
        findings.into_iter().map(phrase).collect()
    }

    fn phrases(path: &str, text: &str) -> Vec<String> {
        found(path, text).into_iter().map(|(_, phrase)| phrase).collect()
    }

    #[test]
    fn constructions_are_found_in_comments_messages_and_pages() {
        assert_eq!(found("a.rs", "fn f() {}\n/// What it comes to.\n"), [(2, "comes to".to_owned())]);
        assert_eq!(phrases("a.rs", "f(\"{a} is dearer than {b}\");\n"), ["dearer"]);
        assert_eq!(phrases("a.md", "# A\n\nAn arm is held against it.\n"), ["held against"]);
        assert_eq!(phrases("a.toml", "# A tool that tells why.\ntitle.en = \"Lasts for ever\"\n").len(), 2);
        assert_eq!(phrases("packaging/test", "# Only whoever runs it.\n"), ["whoever"]);
    }

    #[test]
    fn a_construction_goes_on_in_the_next_line() {
        assert_eq!(found("a.rs", "    //! What it comes\n    //! to.\n"), [(1, "comes to".to_owned())]);
        assert_eq!(phrases("a.rs", "f(\"a pool of its \\\n    own\");\n"), ["of its own"]);
        assert_eq!(phrases("a.md", "- It is held\n  against that.\n"), ["held against"]);
        assert!(phrases("a.rs", "// It comes\n//\n// to.\n").is_empty());
        assert!(phrases("a.rs", "f(); // it comes\ng(); // to\n").is_empty());
        assert!(phrases("a.md", "It comes.\n\nTo\n").is_empty());
    }

    #[test]
    fn code_quoted_titles_and_values_are_left_alone() {
        for text in [
            "fn tells() { told.of(dearer) }\n",
            "// The word `dearer`, and \"What It Comes To\" by Nobody.\n",
            "f(\"{tells} and {dearer}\");\n",
            "f(\"the title \\\"It tells all\\\" stays\");\n",
            "f(\"workers-not-tells\"); g(\"tells\");\n",
        ] {
            assert!(phrases("a.rs", text).is_empty(), "{text}");
        }
        assert!(phrases("a.md", "```\nit tells\n```\n[a](dearer.md)\n`it tells`\n").is_empty());
        assert!(phrases("a.toml", "name = \"dearer\" # a name\n").is_empty());
        assert!(phrases("a.snap", "it tells\n").is_empty());
    }

    #[test]
    fn a_possessive_may_have_its_noun() {
        for text in ["Keys of its own.", "a clock of their own, too", "a file of its own that lasts"] {
            assert_eq!(phrases("a.md", text).len(), 1, "{text}");
        }
        assert!(phrases("a.md", "The failure of its own request, on its own.").is_empty());
    }

    #[test]
    fn a_sentence_begins_with_its_subject() {
        assert_eq!(phrases("a.md", "It is so. Of the rest nothing is known."), ["Of"]);
        assert_eq!(phrases("a.rs", "// So does the next.\n"), ["So does"]);
        assert_eq!(phrases("a.md", "Nor is it read."), ["Nor is"]);
        assert!(
            phrases("a.md", "Of course it is. A part of the rest, and so is that. Kinds: `Of`").is_empty()
        );
    }

    #[test]
    fn the_table_of_the_page_is_this_table() {
        let page = crate::workspace_root().join(STYLE_PAGE);
        let page = std::fs::read_to_string(page).expect("the page can be read");
        let (_, section) = page.split_once("## What tidy finds").expect("the section is there");
        let section = section.split("\n## ").next().unwrap_or(section);
        let rows: Vec<&str> = section.lines().filter(|line| line.starts_with('|')).skip(2).collect();
        let expected: Vec<String> = CONSTRUCTIONS.iter().map(row).collect();
        assert_eq!(rows, expected);
    }

    fn row(construction: &Construction) -> String {
        let condition = match construction.condition {
            Condition::Anywhere => "",
            Condition::WithoutNoun => ", without a noun after it",
            Condition::BeforeWordExcept(_) => ", at the beginning of a sentence",
        };
        format!("| {}{condition} | {} |", construction.words, construction.better)
    }
}
