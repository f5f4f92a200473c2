//! The language of this process's output: the one of `--lang`, else that of the locale.

use std::env;

use anyhow::Result;
use weir_report::{Language, localized};

use crate::exit::UsageError;

/// The given language, else that of the locale.
pub(crate) fn chosen(code: Option<&str>) -> Result<Language> {
    let Some(code) = code else { return Ok(locale()) };
    code.parse().map_err(|_| {
        UsageError(localized!(
            locale(),
            "--lang {code:?} is not known; use en, ko or zh",
            "--lang {code:?}: 알 수 없는 값입니다. en, ko, zh 중에서 쓰십시오",
            "--lang {code:?}：未知的值；可用 en、ko 或 zh",
        ))
        .into()
    })
}

/// The language of messages about this process's own command line, before or without any other work.
pub(crate) fn of_command_line() -> Language {
    // Unit tests are other programs with other arguments, and their locale may be any.
    if cfg!(test) {
        return Language::English;
    }
    requested(&env::args_os().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>())
}

/// The language that the arguments request, even if they are wrong; else that of the locale.
fn requested(words: &[String]) -> Language {
    let follows = words.windows(2).find(|pair| pair[0] == "--lang").map(|pair| pair[1].as_str());
    let code = follows.or_else(|| words.iter().find_map(|word| word.strip_prefix("--lang=")));
    code.and_then(|code| code.parse().ok()).unwrap_or_else(locale)
}

/// The language that the environment requests: the first of these variables that is set.
fn locale() -> Language {
    let said = ["LC_ALL", "LC_MESSAGES", "LANG"].iter().filter_map(|name| env::var(name).ok());
    said.into_iter()
        .find(|locale| !locale.is_empty())
        .and_then(|locale| weir_dashboard::accepted(&locale))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_that_of_the_words_although_they_are_wrong() {
        let of = |words: &[&str]| requested(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(of(&["weir", "study", "--lang", "zh", "--qiet"]), Language::Chinese);
        assert_eq!(of(&["weir", "study", "--qiet", "--lang=ko"]), Language::Korean);
    }
}
