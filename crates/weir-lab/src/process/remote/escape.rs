//! Text of the other side, made harmless: it may reach a terminal or a report, and must neither move a cursor nor forge
//! a line nor change the order of what is read. Pure.

use std::borrow::Cow;

use serde_json::Value;

/// Whether a character acts on a terminal or on the order of a text instead of being seen.
fn acts(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// The text with such characters as escapes. A tab becomes a space.
pub(super) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match letter {
            '\t' => safe.push(' '),
            letter if acts(letter) => safe.extend(letter.escape_default()),
            letter => safe.push(letter),
        }
    }
    Cow::Owned(safe)
}

/// Whether a line of JSON can hold no such character: neither as itself nor as an escape of JSON.
pub(super) fn is_harmless(line: &str) -> bool {
    let is_escape = |two: &[u8]| two[0] == b'\\' && matches!(two[1], b'u' | b'n' | b'r' | b't' | b'b' | b'f');
    !line.contains(acts) && !line.as_bytes().windows(2).any(is_escape)
}

/// Escapes every text of a value, names of fields included.
pub(super) fn escape_all(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(safe) = escaped(text) {
                *text = safe;
            }
        }
        Value::Array(all) => all.iter_mut().for_each(escape_all),
        Value::Object(fields) => {
            if fields.keys().any(|name| name.contains(acts)) {
                let taken = std::mem::take(fields);
                fields.extend(taken.into_iter().map(|(name, value)| (escaped(&name).into_owned(), value)));
            }
            fields.values_mut().for_each(escape_all);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_acts_is_shown_and_what_is_read_stays() {
        assert_eq!(escaped("\u{1b}[2J\u{9b}1m\u{7}"), "\\u{1b}[2J\\u{9b}1m\\u{7}");
        assert_eq!(escaped("a\r\nweir: b\tc"), "a\\r\\nweir: b c");
        assert_eq!(escaped("abc\u{202e}fed"), "abc\\u{202e}fed");
        assert!(matches!(escaped("큐 깊이, 更快, 20 µs"), Cow::Borrowed(_)));
    }

    #[test]
    fn texts_and_names_of_a_value_are_escaped_at_any_depth() {
        let mut value = json!({"a\u{1b}": [{"b": "\u{1b}[31mred"}, 7, null, true], "c": "plain"});
        escape_all(&mut value);
        assert_eq!(value, json!({"a\\u{1b}": [{"b": "\\u{1b}[31mred"}, 7, null, true], "c": "plain"}));
    }

    proptest! {
        #[test]
        fn nothing_is_left_that_acts(text in any::<String>()) {
            prop_assert!(!escaped(&text).contains(acts));
            prop_assert_eq!(escaped(&escaped(&text)).into_owned(), escaped(&text).into_owned());
        }

        #[test]
        fn a_line_without_escapes_of_json_holds_none(text in any::<String>()) {
            let line = serde_json::to_string(&text).expect("it is text");
            prop_assert!(!is_harmless(&line) || !text.contains(acts), "{}", line);
        }
    }
}
