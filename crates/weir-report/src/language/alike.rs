//! Checks that three texts can be translations of one sentence. [`localized`](crate::localized) runs it at compile
//! time, so that every text is checked.

/// Fails if the texts name different variables, or if one of them is in another's language or missing.
///
/// ```
/// const _: () = weir_report::assert_translations_alike("{count} rounds", "라운드 {count}회", "{count} 轮");
/// ```
///
/// A variable that is missing in a translation:
///
/// ```compile_fail
/// const _: () = weir_report::assert_translations_alike("{count} rounds", "라운드", "{count} 轮");
/// ```
pub const fn assert_translations_alike(english: &str, korean: &str, chinese: &str) {
    assert!(name_alike(english, korean), "the Korean text names other variables than the English one");
    assert!(name_alike(english, chinese), "the Chinese text names other variables than the English one");
    assert!(!has_letter(english, HANGUL) && !has_letter(english, HAN), "the first text is English");
    assert!(!has_letter(korean, HAN), "the second text is Korean");
    assert!(!has_letter(chinese, HANGUL), "the third text is Chinese");
    assert!(!has_letter(korean, HANGUL) || has_letter(chinese, HAN), "the Chinese text is missing");
}

/// Whether both texts name the same variables.
const fn name_alike(one: &str, other: &str) -> bool {
    names_all_of(one.as_bytes(), other.as_bytes()) && names_all_of(other.as_bytes(), one.as_bytes())
}

/// Whether every variable of `of` occurs in `text`.
const fn names_all_of(text: &[u8], of: &[u8]) -> bool {
    let mut at = 0;
    while let Some((start, end)) = next_name(of, at) {
        if !has_name(text, of, (start, end)) {
            return false;
        }
        at = end;
    }
    true
}

/// Whether `text` has the variable at this place of `of`.
const fn has_name(text: &[u8], of: &[u8], (start, end): (usize, usize)) -> bool {
    let mut at = 0;
    while let Some((own_start, own_end)) = next_name(text, at) {
        if is_same(text, (own_start, own_end), of, (start, end)) {
            return true;
        }
        at = own_end;
    }
    false
}

const fn is_same(
    text: &[u8],
    (start, end): (usize, usize),
    other: &[u8],
    (other_start, other_end): (usize, usize),
) -> bool {
    if end - start != other_end - other_start {
        return false;
    }
    let mut offset = 0;
    while offset < end - start {
        if text[start + offset] != other[other_start + offset] {
            return false;
        }
        offset += 1;
    }
    true
}

/// Position of the next variable at or after a place: from after its brace to its format or its end. A double brace
/// is a literal one.
const fn next_name(text: &[u8], mut at: usize) -> Option<(usize, usize)> {
    while at < text.len() {
        if text[at] != b'{' {
            at += 1;
        } else if at + 1 < text.len() && text[at + 1] == b'{' {
            at += 2;
        } else {
            let start = at + 1;
            let mut end = start;
            while end < text.len() && text[end] != b'}' && text[end] != b':' {
                end += 1;
            }
            return Some((start, end));
        }
    }
    None
}

/// The first and the last letter of a script. Each takes three bytes of UTF-8.
type Script = (u32, u32);

const HANGUL: Script = (0xAC00, 0xD7A3);
const HAN: Script = (0x4E00, 0x9FFF);

/// Whether a text contains a letter of a script.
const fn has_letter(text: &str, (first, last): Script) -> bool {
    let text = text.as_bytes();
    let mut at = 0;
    while at + 2 < text.len() {
        if text[at] >> 4 == 0b1110 {
            let [lead, middle, trail] = [text[at] as u32, text[at + 1] as u32, text[at + 2] as u32];
            let letter = ((lead & 0xF) << 12) | ((middle & 0x3F) << 6) | (trail & 0x3F);
            if first <= letter && letter <= last {
                return true;
            }
        }
        at += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_compared_by_name_whatever_their_order_and_format() {
        assert!(name_alike("{a} of {b:.1}", "{b} 중 {a:>3}"));
        assert!(!name_alike("{a} of {b}", "{a}"));
        assert!(!name_alike("{a}", "{a} 중 {b}"));
        assert!(!name_alike("{count}", "{counts}"));
        assert!(name_alike("{{braces}} and {a}", "{a}"));
        assert!(!name_alike("{{a}}", "{a}"));
    }

    #[test]
    fn a_text_is_known_by_its_letters() {
        assert!(has_letter("연결 3개", HANGUL) && !has_letter("연결 3개", HAN));
        assert!(has_letter("3 个连接", HAN) && !has_letter("3 个连接", HANGUL));
        assert!(!has_letter("µs ≥ … “p99”", HAN) && !has_letter("µs ≥ … “p99”", HANGUL));
        assert!(!has_letter("", HAN));
    }

    #[test]
    #[should_panic(expected = "the second text is Korean")]
    fn translations_in_the_wrong_order_are_found() {
        assert_translations_alike("{a} rounds", "{a} 轮", "라운드 {a}회");
    }

    #[test]
    #[should_panic(expected = "the Chinese text is missing")]
    fn a_translation_that_was_left_in_english_is_found() {
        assert_translations_alike("{a} rounds", "라운드 {a}회", "{a} rounds");
    }
}
