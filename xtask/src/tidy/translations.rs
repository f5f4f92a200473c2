//! Checks texts in three languages that the compiler does not compare: three literals in a row, English, Korean and
//! Chinese, in an array or a table. The texts of `localized!` are compared at compile time, and again here.

use std::{collections::BTreeSet, ops::Range};

use super::{
    Finding,
    lexer::{Class, Source},
};

/// The three texts must be in their languages, and must name the same variables.
pub fn check(path: &str, source: &Source) -> Vec<Finding> {
    if path.split('/').any(|part| matches!(part, "tests" | "benches")) {
        return Vec::new();
    }
    let tests = source.test_ranges();
    let is_test = |offset: usize| tests.iter().any(|range| range.contains(&offset));
    let mut findings = Vec::new();
    for row in rows(source) {
        let [english, korean, chinese] = &row[..] else { continue };
        if is_test(english.start) {
            continue;
        }
        let texts = [english, korean, chinese].map(|range| &source.text[range.clone()]);
        if let Some(message) = wrong(texts) {
            findings.push(Finding::new(path, source.line_at(english.start), "translations", message));
        }
    }
    findings
}

/// What is wrong with the three; `None` if nothing is, or if they are not translations of one another.
fn wrong([english, korean, chinese]: [&str; 3]) -> Option<String> {
    let is_foreign = |text: &str| has(text, HANGUL) || has(text, HAN);
    if is_foreign(english) || !(is_foreign(korean) || is_foreign(chinese)) {
        return None;
    }
    let own = variables(english);
    for (text, language) in [(korean, "Korean"), (chinese, "Chinese")] {
        if variables(text) != own {
            return Some(format!("the {language} text names other variables than the English one"));
        }
    }
    if has(korean, HAN) {
        return Some("the second text is Korean".to_owned());
    }
    if has(chinese, HANGUL) {
        return Some("the third text is Chinese".to_owned());
    }
    // A term may stay untranslated; a text with spaces is a sentence.
    let is_term = chinese == english && !chinese.contains(' ');
    let is_missing = has(korean, HANGUL) && !has(chinese, HAN) && !is_term;
    is_missing.then(|| "the Chinese text is missing".to_owned())
}

const HANGUL: (char, char) = ('가', '힣');
const HAN: (char, char) = ('\u{4e00}', '\u{9fff}');

/// Whether a text contains a letter of a script.
fn has(text: &str, (first, last): (char, char)) -> bool {
    text.chars().any(|letter| (first..=last).contains(&letter))
}

/// Variable names between braces, without their formats. A double brace is a literal one.
fn variables(text: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    let mut rest = text;
    while let Some((_, behind)) = rest.split_once('{') {
        if let Some(printed) = behind.strip_prefix('{') {
            rest = printed;
            continue;
        }
        let end = behind.find(['}', ':']).unwrap_or(behind.len());
        names.insert(&behind[..end]);
        rest = &behind[end..];
    }
    names
}

/// String literals in a row, separated only by a comma or a bar.
fn rows(source: &Source) -> Vec<Vec<Range<usize>>> {
    let mut rows: Vec<Vec<Range<usize>>> = Vec::new();
    for literal in literals(source) {
        let last = rows.last_mut().filter(|row| row.last().is_some_and(|it| follows(source, it, &literal)));
        match last {
            Some(row) => row.push(literal),
            None => rows.push(vec![literal]),
        }
    }
    rows
}

fn follows(source: &Source, one: &Range<usize>, other: &Range<usize>) -> bool {
    // Each range starts after its opening quote and ends before its closing one.
    let between = source.code.get(one.end + 1..other.start - 1);
    between.is_some_and(|code| matches!(code.trim(), "," | "|"))
}

/// The contents of every plain string literal.
fn literals(source: &Source) -> Vec<Range<usize>> {
    let bytes = source.text.as_bytes();
    let mut found = Vec::new();
    let mut offset = 0;
    while offset < bytes.len() {
        if source.classes[offset] != Class::Literal {
            offset += 1;
            continue;
        }
        let start = offset;
        while offset < bytes.len() && source.classes[offset] == Class::Literal {
            offset += 1;
        }
        // A character literal has another quote, and a raw string ends with other characters.
        if start > 0 && bytes[start - 1] == b'"' && bytes[offset - 1] == b'"' {
            found.push(start..offset - 1);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let source = Source::new(text);
        check("crates/a/src/a.rs", &source).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn three_texts_name_the_same_variables_in_an_array_and_in_a_table() {
        assert_eq!(found(r#"["{a} of {b:.1}", "{b} 중 {a}", "{b} 中的 {a}"]"#), [] as [&str; 0]);
        assert_eq!(found(r#"["{{a}}", "중괄호", "花括号"]"#), [] as [&str; 0]);
        let korean = "the Korean text names other variables than the English one";
        assert_eq!(found(r#"["CPU per {per}", "CPU", "每{per} CPU"]"#), [korean]);
        let chinese = "the Chinese text names other variables than the English one";
        assert_eq!(found("A: \"{a} s\" | \"{a}초\"\n // why\n | \"{b} 秒\";"), [chinese]);
    }

    #[test]
    fn each_text_is_in_its_own_language_and_none_is_missing() {
        assert_eq!(found(r#"["a round", "轮次", "라운드"]"#), ["the second text is Korean"]);
        assert_eq!(found(r#"["a round", "라운드", "라운드"]"#), ["the third text is Chinese"]);
        assert_eq!(found(r#"["a round", "라운드", "a round"]"#), ["the Chinese text is missing"]);
        assert_eq!(found(r#"["steal", "스틸", "steal"]"#), [] as [&str; 0], "a term");
        assert_eq!(found(r#"["CPU", "CPU", "CPU"]"#), [] as [&str; 0]);
    }

    #[test]
    fn other_rows_and_tests_are_left_alone() {
        for text in [
            r#"["횟수", "시간", "비중"]"#,
            r#"["{a}", "횟수", "次数", "d"]"#,
            r#"("{a}", ["횟수", "次数"])"#,
            "#[cfg(test)] mod t { const A: [&str; 3] = [\"{a}\", \"횟수\", \"次数\"]; }",
        ] {
            assert_eq!(found(text), [] as [&str; 0], "{text}");
        }
        let source = Source::new(r#"["{a}", "횟수", "次数"]"#);
        assert!(check("crates/a/tests/it/a.rs", &source).is_empty());
    }
}
