//! Limits that keep a file readable: 120 columns, 800 lines a file, 70 lines a function.

use super::{
    Finding, extension,
    lexer::{Class, Source, is_name_char, item_end, words},
};

const COLUMNS_MAX: usize = 120;
const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;

/// Languages people write by hand; records, snapshots and lock files have no limit.
const HAND_WRITTEN: &[&str] = &["rs", "c", "h", "go", "java", "py", "sh"];

/// A function that may exceed the limit, and why.
pub struct LongFunction {
    pub path: &'static str,
    pub name: &'static str,
    pub reason: &'static str,
}

/// Every exception to the length of functions.
pub const LONG_FUNCTIONS: &[LongFunction] = &[];

/// A source file is at most 800 lines.
pub fn check_file_length(path: &str, text: &str) -> Vec<Finding> {
    let lines = text.lines().count();
    if lines <= FILE_LINES_MAX || !HAND_WRITTEN.contains(&extension(path)) {
        return Vec::new();
    }
    let message = format!("{lines} lines; split the file, {FILE_LINES_MAX} is the limit");
    vec![Finding::new(path, FILE_LINES_MAX + 1, "file-length", message)]
}

/// Code and comments stay within 120 columns. The inside of strings does not count, so tables of messages may be
/// wide, and a line with an address may have any length.
pub fn check_rust_lines(path: &str, source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut start = 0;
    for (index, line) in source.text.split('\n').enumerate() {
        let classes = &source.classes[start..start + line.len()];
        let columns = line.char_indices().filter(|(offset, _)| classes[*offset] != Class::Literal).count();
        if columns > COLUMNS_MAX && !line.contains("://") {
            findings.push(too_wide(path, index + 1, columns));
        }
        start += line.len() + 1;
    }
    findings
}

/// Prose stays within 120 columns; table rows, fenced blocks and lines with an address may be longer.
pub fn check_markdown_lines(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        let columns = line.chars().count();
        let exempt = fenced || line.trim_start().starts_with('|') || line.contains("://");
        if columns > COLUMNS_MAX && !exempt {
            findings.push(too_wide(path, index + 1, columns));
        }
    }
    findings
}

/// A function has at most 70 lines, counted from `fn` to its closing brace.
pub fn check_functions(path: &str, source: &Source, exceptions: &[LongFunction]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for start in words(&source.code, "fn") {
        let Some(name) = function_name(&source.code, start) else { continue };
        let first = source.line_at(start);
        let lines = source.line_at(item_end(&source.code, start) - 1) + 1 - first;
        let excepted = exceptions.iter().any(|exception| {
            debug_assert!(!exception.reason.is_empty());
            exception.path == path && exception.name == name
        });
        if lines > FUNCTION_LINES_MAX && !excepted {
            let message = format!("`{name}` has {lines} lines; {FUNCTION_LINES_MAX} is the limit");
            findings.push(Finding::new(path, first, "function-length", message));
        }
    }
    findings
}

/// The name after `fn`; `None` for the type of a function pointer. A macro's `$name` counts as a name.
fn function_name(code: &str, start: usize) -> Option<&str> {
    let rest = code[start + "fn".len()..].trim_start();
    let length = rest.find(|character| character != '$' && !is_name_char(character)).unwrap_or(rest.len());
    (length > 0).then(|| &rest[..length])
}

fn too_wide(path: &str, line: usize, columns: usize) -> Finding {
    Finding::new(path, line, "line-length", format!("{columns} columns; {COLUMNS_MAX} is the limit"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function_of(lines: usize) -> String {
        format!("fn long(\n    x: [u8; {{ 3 }}],\n) {{\n{}}}\n", "    a();\n".repeat(lines - 4))
    }

    #[test]
    fn a_file_is_too_long_from_the_line_after_the_limit() {
        assert!(check_file_length("a.rs", &"x\n".repeat(800)).is_empty());
        assert_eq!(check_file_length("a.rs", &"x\n".repeat(801)).len(), 1);
        assert!(check_file_length("a.snap", &"x\n".repeat(801)).is_empty());
    }

    #[test]
    fn rust_lines_are_counted_in_characters_without_the_inside_of_strings() {
        let wide = |text: &str| check_rust_lines("a.rs", &Source::new(text)).len();
        assert_eq!(wide(&"ü".repeat(COLUMNS_MAX)), 0);
        assert_eq!(wide(&"ü".repeat(COLUMNS_MAX + 1)), 1);
        assert_eq!(wide(&format!("// {}", "x".repeat(COLUMNS_MAX - 2))), 1);
        assert_eq!(wide(&format!("ko: \"{}\",", "글".repeat(200))), 0);
        assert_eq!(wide(&format!("// https://a/{}", "x".repeat(200))), 0);
    }

    #[test]
    fn markdown_tables_blocks_and_addresses_may_be_wide() {
        let long = "x".repeat(COLUMNS_MAX + 1);
        assert_eq!(check_markdown_lines("a.md", &long).len(), 1);
        assert!(
            check_markdown_lines("a.md", &format!("| {long} |\n```\n{long}\n```\nhttps://{long}")).is_empty()
        );
        assert_eq!(check_markdown_lines("a.md", &format!("```\n```\n{long}")).len(), 1);
    }

    #[test]
    fn a_function_is_too_long_from_the_line_after_the_limit() {
        let check = |text: &str| check_functions("a.rs", &Source::new(text), &[]);
        assert!(check(&function_of(70)).is_empty());
        let findings = check(&function_of(71));
        assert_eq!(findings.len(), 1);
        assert!(findings[0].message.contains("`long` has 71 lines"), "{}", findings[0].message);
    }

    #[test]
    fn braces_in_strings_and_types_do_not_confuse_the_count() {
        let text =
            format!("fn a() {{ b(\"}}\", '{{') }}\ntype F = fn(u8) -> u8;\n{}fn c();\n", "\n".repeat(100));
        assert!(check_functions("a.rs", &Source::new(&text), &[]).is_empty());
    }

    #[test]
    fn an_exception_covers_one_function_of_one_file() {
        let exceptions = [LongFunction { path: "a.rs", name: "long", reason: "one table, read top down" }];
        let text = function_of(90);
        assert!(check_functions("a.rs", &Source::new(&text), &exceptions).is_empty());
        assert_eq!(check_functions("b.rs", &Source::new(&text), &exceptions).len(), 1);
    }

    #[test]
    fn every_exception_has_a_reason() {
        assert!(LONG_FUNCTIONS.iter().all(|exception| exception.reason.split(' ').count() > 3));
    }
}
