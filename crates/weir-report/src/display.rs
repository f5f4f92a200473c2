//! Text measured in terminal columns: Hangul, Han and full-width characters take two.

/// Unit signs that must not be separated from their number.
const UNITS: [&str; 4] = ["%", "ns", "µs", "ms"];

/// Columns one character takes. Covers the scripts of the report's languages; everything else is one column.
fn columns_of(character: char) -> usize {
    match character {
        '\u{0300}'..='\u{036F}' | '\u{200B}'..='\u{200F}' => 0,
        '\u{1100}'..='\u{115F}'
        | '\u{2E80}'..='\u{303E}'
        | '\u{3041}'..='\u{A4CF}'
        | '\u{AC00}'..='\u{D7A3}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{FE30}'..='\u{FE6F}'
        | '\u{FF00}'..='\u{FF60}'
        | '\u{FFE0}'..='\u{FFE6}'
        | '\u{1F300}'..='\u{1FAFF}'
        | '\u{20000}'..='\u{3FFFD}' => 2,
        _ => 1,
    }
}

/// Columns a text takes.
pub fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// Shortens to at most `limit` columns; `…` marks a cut.
pub(crate) fn truncate(text: &str, limit: usize) -> String {
    if columns(text) <= limit {
        return text.to_owned();
    }
    let mut used = 0;
    let mut kept = String::new();
    for character in text.chars() {
        used += columns_of(character);
        if used + 1 > limit {
            break;
        }
        kept.push(character);
    }
    kept.push('…');
    kept
}

/// Pads on the right to `width` columns.
pub fn pad_end(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))))
}

/// Pads on the left to `width` columns.
pub fn pad_start(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(columns(text))))
}

/// Control characters become spaces, so that a stored text cannot move the cursor or forge a line.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// Marks that change the direction of what follows. In a name they would move the text beside it.
const DIRECTION_MARKS: [char; 12] = [
    '\u{061c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}',
    '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
];

/// A name that a file or a machine gave: on one line, in its own direction, and of at most `columns_max` columns.
pub fn plain_name(text: &str, columns_max: usize) -> String {
    // As many characters as columns are enough, whatever the length of the name.
    let plain = text.chars().filter(|character| !DIRECTION_MARKS.contains(character));
    truncate(&printable(&plain.take(4 * columns_max).collect::<String>()), columns_max)
}

/// A text as one word of a command for a shell.
pub fn shell_word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+:@,=".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", printable(text).replace('\'', "'\\''"))
}

/// Breaks at spaces, and between Han characters, into lines of at most `width` columns; a longer word is cut.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let text = keep_together(text);
    for piece in pieces(&text).into_iter().flat_map(|piece| cut(piece, width)) {
        if !line.is_empty() && columns(&line) + columns(piece.trim_end()) > width {
            lines.push(spaced(&line));
            line.clear();
        }
        line.push_str(piece);
    }
    if !line.trim_end().is_empty() {
        lines.push(spaced(&line));
    }
    lines
}

/// A finished line with ordinary spaces, so that a search finds its text.
pub fn spaced(line: &str) -> String {
    line.trim_end().replace('\u{a0}', " ")
}

/// Replaces spaces that must not break, inside the innermost brackets (an interval) and before a unit sign, by
/// no-break spaces.
pub fn keep_together(text: &str) -> String {
    let mut is_interval = false;
    let mut kept = String::with_capacity(text.len());
    for (index, character) in text.char_indices() {
        let rest = &text[index + character.len_utf8()..];
        match character {
            '[' => is_interval = rest.find(['[', ']']).is_some_and(|end| rest[end..].starts_with(']')),
            ']' => is_interval = false,
            _ => {}
        }
        let before_unit = UNITS.iter().any(|unit| rest.starts_with(unit));
        let after_sign = text[..index].ends_with('≥');
        let binds = character == ' ' && (is_interval || before_unit || after_sign);
        kept.push(if binds { '\u{a0}' } else { character });
    }
    kept
}

/// Unbreakable pieces of a text. Han characters break anywhere except before closing punctuation; Hangul breaks at
/// spaces only, as is usual in Korean.
pub fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((_, character)) = characters.next() {
        let Some(&(next_index, next)) = characters.peek() else { break };
        let closes = "，。：；、）」』！？".contains(next);
        if next != ' ' && (character == ' ' || ((is_han(character) || is_han(next)) && !closes)) {
            pieces.push(&text[start..next_index]);
            start = next_index;
        }
    }
    pieces.push(&text[start..]);
    pieces
}

/// Cuts a piece that is longer than a line.
fn cut(piece: &str, width: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut used) = (0, 0);
    for (index, character) in piece.trim_end().char_indices() {
        if used + columns_of(character) > width {
            parts.push(&piece[start..index]);
            (start, used) = (index, 0);
        }
        used += columns_of(character);
    }
    parts.push(&piece[start..]);
    parts
}

fn is_han(character: char) -> bool {
    matches!(character, '\u{3000}'..='\u{303E}' | '\u{3400}'..='\u{9FFF}' | '\u{FF00}'..='\u{FF60}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_scripts_take_two_columns() {
        assert_eq!(columns("epoll 빠름"), 10);
        assert_eq!(columns("更快"), 4);
        assert_eq!(pad_start("更快", 6), "  更快");
    }

    #[test]
    fn no_line_is_wider_than_asked() {
        let text = "在本机上，100 个连接、64 B 消息：uring 每条消息的服务器 CPU 是 epoll 的 0.78 倍。 and an-unbreakable-word-of-forty-one-columns-or-so here";
        for width in 20..60 {
            let lines = wrap(text, width);
            assert!(lines.iter().all(|line| columns(line) <= width), "{width}: {lines:?}");
            let letters = |text: &str| text.replace(' ', "");
            assert_eq!(letters(&lines.concat()), letters(text));
        }
    }

    #[test]
    fn an_interval_stays_on_one_line() {
        assert_eq!(wrap("needs 0.78× [0.77, 0.79] of 3 %", 22), ["needs 0.78×", "[0.77, 0.79] of 3 %"]);
        // Outer brackets contain a sentence, which breaks between its words.
        let lines = wrap("[rate measured: 1.28 [1.24, 1.33] no claim; CPU: 0.76 [0.74, 0.78] less CPU].", 24);
        let expected =
            ["[rate measured: 1.28", "[1.24, 1.33] no claim;", "CPU: 0.76 [0.74, 0.78]", "less CPU]."];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_cut_is_visible_and_fits() {
        assert_eq!(truncate("uring-single-shot", 8), "uring-s…");
        assert_eq!(columns(&truncate("한국어이름", 6)), 5);
    }

    #[test]
    fn control_characters_cannot_reach_a_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\n"), "a [2Jb ");
    }
}
