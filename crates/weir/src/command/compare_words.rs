//! The words of a command that runs without a shell. Constructs that only a shell understands are refused, before
//! anything runs.

use weir_report::{Language, localized};

/// Words with a meaning to a shell. Without one, a program would get them as arguments.
const OPERATORS: [&str; 7] = ["|", "||", "|&", "&", "&&", ";", "*"];

/// The words as a shell would split them, or the error in the text.
pub(super) fn split(text: &str, language: Language) -> Result<Vec<String>, String> {
    let raw = Raw::of(text);
    if let Some(quote) = raw.open {
        return Err(localized!(
            language,
            "a quote is open; write the second {quote}",
            "따옴표가 닫히지 않았습니다. 두 번째 {quote}를 쓰십시오",
            "引号未闭合；请写上第二个 {quote}",
        ));
    }
    let Some(words) = shlex::split(text) else {
        let texts = [
            "it ends with a single backslash; write two",
            "끝에 역슬래시가 하나만 있습니다. 두 개를 쓰십시오",
            "末尾只有一个反斜杠；请写两个",
        ];
        return Err(language.choose(texts).to_owned());
    };
    let Some(first) = words.first() else {
        let texts = [
            "the command is empty; name a program",
            "명령이 비어 있습니다. 프로그램을 쓰십시오",
            "命令为空；请写出程序",
        ];
        return Err(language.choose(texts).to_owned());
    };
    if let Some(word) = raw.words.iter().find(|word| is_of_a_shell(word)) {
        return Err(localized!(
            language,
            "`{word}` is a word of a shell, and there is none; add -S sh, or put quotes around it to pass it on",
            "`{word}`는 셸에서 쓰는 기호인데 셸이 없습니다. -S sh를 추가하거나, 그대로 전달하려면 따옴표로 감싸십시오",
            "`{word}` 由 shell 解释，而这里没有 shell；请加 -S sh，若要原样传递请加引号",
        ));
    }
    if is_assignment(first) {
        return Err(localized!(
            language,
            "{first} is an assignment; write `env {text}`, or add -S sh",
            "{first}: 변수 대입입니다. `env {text}`로 쓰거나 -S sh를 추가하십시오",
            "{first} 是变量赋值；请写成 `env {text}`，或加 -S sh",
        ));
    }
    Ok(words)
}

/// A text between its spaces, with its quotes and backslashes: a word that has none is bare.
struct Raw {
    words: Vec<String>,
    /// The quote that is open at the end.
    open: Option<char>,
}

impl Raw {
    fn of(text: &str) -> Self {
        let (mut words, mut open) = (vec![String::new()], None);
        let mut symbols = text.chars();
        while let Some(symbol) = symbols.next() {
            let is_between = open.is_none() && symbol.is_ascii_whitespace();
            let word = match words.last_mut() {
                Some(word) if !is_between => word,
                _ => {
                    words.push(String::new());
                    continue;
                }
            };
            word.push(symbol);
            match (open, symbol) {
                // Single quotes alone leave a backslash as it is.
                (None | Some('"'), '\\') => word.extend(symbols.next()),
                (None, '\'' | '"') => open = Some(symbol),
                (Some(quote), _) if quote == symbol => open = None,
                // A comment, which is not part of the words.
                (None, '#') if word.len() == 1 => {
                    word.clear();
                    symbols.by_ref().find(|symbol| *symbol == '\n');
                    words.push(String::new());
                }
                _ => {}
            }
        }
        Self { words, open }
    }
}

fn is_of_a_shell(word: &str) -> bool {
    OPERATORS.contains(&word) || is_redirection(word) || word.strip_prefix('$').is_some_and(is_variable)
}

/// `>file`, `2>&1`, `&>file` or `<file`: a sign directly before its file.
fn is_redirection(word: &str) -> bool {
    let numbered = word.trim_start_matches(|symbol: char| symbol.is_ascii_digit());
    numbered
        .strip_prefix('&')
        .filter(|rest| rest.starts_with('>'))
        .unwrap_or(numbered)
        .starts_with(['<', '>'])
}

/// `X` or `{X}` after a dollar sign.
fn is_variable(text: &str) -> bool {
    is_name(text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text))
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

fn is_name(text: &str) -> bool {
    let is_letter = |symbol: char| symbol.is_ascii_alphabetic() || symbol == '_';
    text.starts_with(is_letter) && text.chars().all(|symbol| is_letter(symbol) || symbol.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(text: &str) -> String {
        split(text, Language::English).expect_err(text)
    }

    #[test]
    fn a_bare_word_of_a_shell_is_refused_and_named() {
        let attached = [
            ">/dev/null",
            "2>/dev/null",
            "2>&1",
            "1>&2",
            ">&2",
            "&>log",
            ">>log",
            "<in.txt",
            "<<<x",
            ">\"a b\"",
        ];
        let alone = ["|", "||", "&&", "&", ";", "<", ">", ">>", "*", "$X", "${LONG_1}"];
        for word in alone.into_iter().chain(attached) {
            let said = mistake(&format!("gzip -c w.txt {word} wc"));
            assert!(said.starts_with(&format!("`{word}` is a word of a shell")), "{word}: {said}");
            assert!(said.contains("add -S sh"), "{said}");
        }
        for language in [Language::Korean, Language::Chinese] {
            assert!(
                split("a | b", language).is_err_and(|said| said.contains("-S sh") && !said.contains("word"))
            );
        }
    }

    #[test]
    fn quotes_and_characters_inside_words_reach_the_program() {
        for (text, words) in [
            ("grep '|' w", &["grep", "|", "w"][..]),
            ("grep '>x' '2>&1' a2>b -> => &x", &["grep", ">x", "2>&1", "a2>b", "->", "=>", "&x"]),
            ("find . -exec rm {} \\;", &["find", ".", "-exec", "rm", "{}", ";"]),
            ("awk \"$X\" a|b x>y *.txt $1 5$", &["awk", "$X", "a|b", "x>y", "*.txt", "$1", "5$"]),
            ("sh -c 'a | b > c; d \"$X\"'", &["sh", "-c", "a | b > c; d \"$X\""]),
            ("echo \"it's | here\" \"a\\\" | b\"", &["echo", "it's | here", "a\" | b"]),
            ("echo a # | b", &["echo", "a"]),
        ] {
            assert_eq!(split(text, Language::English), Ok(words.iter().map(ToString::to_string).collect()));
        }
    }

    #[test]
    fn an_assignment_in_front_is_refused_with_what_to_write() {
        assert_eq!(
            mistake("LC_ALL=C sort w.txt"),
            "LC_ALL=C is an assignment; write `env LC_ALL=C sort w.txt`, or add -S sh"
        );
        let korean = split("A=1 sort", Language::Korean).expect_err("it is wrong");
        assert!(korean.contains("env A=1 sort") && !korean.contains("assignment"), "{korean}");
        for text in ["env A=1 sort", "./a=b/app", "sort A=1", "=x", "1a=b"] {
            assert!(split(text, Language::English).is_ok(), "{text}");
        }
    }

    #[test]
    fn of_an_open_quote_an_open_backslash_and_an_empty_command_the_right_one_is_named() {
        assert_eq!(mistake("b 'c"), "a quote is open; write the second '");
        assert_eq!(mistake("b \"it's"), "a quote is open; write the second \"");
        assert_eq!(mistake("b \\"), "it ends with a single backslash; write two");
        for text in ["", "  ", "# nothing"] {
            assert_eq!(mistake(text), "the command is empty; name a program", "{text:?}");
        }
    }
}
