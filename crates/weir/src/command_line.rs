//! A command line that is wrong, told in the reader's language. English is clap's own; Korean and Chinese say the same:
//! what is wrong, what was probably meant, how the command is used.

use std::error::Error as _;

use clap::{
    Error,
    error::{ContextKind, ContextValue, ErrorKind},
};
use weir_report::{Language, localized};

use crate::{
    flags::{NO_NUMBER, NO_WHOLE_NUMBER},
    language, output,
};

/// Tells what is wrong, or what was asked for (help, the version), and ends the process.
pub(crate) fn exit(error: &Error) -> ! {
    let Some(text) = localized_error(error, language::of_command_line()) else { error.exit() };
    output::tell(&text);
    std::process::exit(error.exit_code())
}

/// The whole text; `None` where clap's own is to be shown.
fn localized_error(error: &Error, language: Language) -> Option<String> {
    if language == Language::English {
        return None;
    }
    let what = wrong(error, language)?;
    let mut text = localized!(language, "error: {what}", "오류: {what}", "错误：{what}");
    for tip in tips(error, language) {
        text.push_str(&format!("\n\n  {tip}"));
    }
    if let Some(usage) = value(error, ContextKind::Usage) {
        let usage = usage.trim_start_matches("Usage:").trim();
        text.push_str("\n\n");
        text.push_str(&localized!(language, "Usage: {usage}", "사용법: {usage}", "用法：{usage}"));
    }
    text.push_str("\n\n");
    text.push_str(language.choose([
        "For more information, try '--help'.",
        "자세한 내용은 '--help'로 볼 수 있습니다.",
        "更多信息请用 '--help' 查看。",
    ]));
    Some(text)
}

fn wrong(error: &Error, language: Language) -> Option<String> {
    let of = |kind: ContextKind| value(error, kind);
    Some(match error.kind() {
        ErrorKind::UnknownArgument => {
            let argument = of(ContextKind::InvalidArg)?;
            localized!(
                language,
                "unexpected argument '{argument}' found",
                "알 수 없는 인자: '{argument}'",
                "未知参数：'{argument}'",
            )
        }
        ErrorKind::InvalidSubcommand => {
            let command = of(ContextKind::InvalidSubcommand)?;
            localized!(
                language,
                "unrecognized subcommand '{command}'",
                "알 수 없는 하위 명령: '{command}'",
                "未知子命令：'{command}'",
            )
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => of_value(error, language)?,
        ErrorKind::ArgumentConflict => conflict(error, language)?,
        ErrorKind::MissingRequiredArgument => {
            let missing = of(ContextKind::InvalidArg)?;
            localized!(
                language,
                "required arguments were not provided: {missing}",
                "필요한 인자가 없습니다: {missing}",
                "缺少必需的参数：{missing}",
            )
        }
        ErrorKind::MissingSubcommand => {
            let (command, there) = (of(ContextKind::InvalidSubcommand)?, of(ContextKind::ValidSubcommand)?);
            localized!(
                language,
                "'{command}' requires a subcommand: {there}",
                "'{command}'에는 하위 명령이 필요합니다: {there}",
                "'{command}' 需要子命令：{there}",
            )
        }
        ErrorKind::TooManyValues => {
            let (argument, value) = (of(ContextKind::InvalidArg)?, of(ContextKind::InvalidValue)?);
            localized!(
                language,
                "unexpected value '{value}' for '{argument}'",
                "'{argument}'에 값이 너무 많습니다: '{value}'",
                "'{argument}' 的值过多：'{value}'",
            )
        }
        ErrorKind::NoEquals => {
            let argument = of(ContextKind::InvalidArg)?;
            localized!(
                language,
                "equal sign is needed when assigning values to '{argument}'",
                "'{argument}'의 값은 '='로 이어서 써야 합니다",
                "'{argument}' 的值须用 '=' 连写",
            )
        }
        _ => return None,
    })
}

/// A value that cannot be taken, with those that can or the reason.
fn of_value(error: &Error, language: Language) -> Option<String> {
    let (argument, value_given) =
        (value(error, ContextKind::InvalidArg)?, value(error, ContextKind::InvalidValue)?);
    let mut text = match value_given.as_str() {
        "" => localized!(
            language,
            "a value is required for '{argument}'",
            "'{argument}'에 값이 필요합니다",
            "'{argument}' 需要一个值",
        ),
        given => localized!(
            language,
            "invalid value '{given}' for '{argument}'",
            "'{argument}'에 쓸 수 없는 값: '{given}'",
            "'{argument}' 不接受值 '{given}'",
        ),
    };
    if let Some(values) = value(error, ContextKind::ValidValue).filter(|values| !values.is_empty()) {
        text.push_str(&localized!(
            language,
            " [possible values: {values}]",
            " [쓸 수 있는 값: {values}]",
            "（可用的值：{values}）",
        ));
    }
    if let Some(source) = error.source() {
        let reason = reason(&source.to_string(), language);
        text.push_str(&format!("{}{reason}", language.colon()));
    }
    Some(text)
}

/// Why a value cannot be taken: our own words and clap's words for a range.
fn reason(english: &str, language: Language) -> String {
    if english == NO_WHOLE_NUMBER {
        let texts = [NO_WHOLE_NUMBER, "0 이상의 정수를 쓰십시오", "请写 0 或更大的整数"];
        return language.choose(texts).to_owned();
    }
    if english == NO_NUMBER {
        let texts = [NO_NUMBER, "2나 0.5와 같은 수를 쓰십시오", "请写一个数，例如 2 或 0.5"];
        return language.choose(texts).to_owned();
    }
    match english.split_once(" is not in ") {
        Some((given, range)) => localized!(
            language,
            "{given} is not in {range}",
            "{given}, 범위는 {range}",
            "{given} 不在 {range} 范围内",
        ),
        None => english.to_owned(),
    }
}

fn conflict(error: &Error, language: Language) -> Option<String> {
    let argument =
        value(error, ContextKind::InvalidArg).or_else(|| value(error, ContextKind::InvalidSubcommand))?;
    Some(match value(error, ContextKind::PriorArg) {
        Some(other) if other != argument => localized!(
            language,
            "the argument '{argument}' cannot be used with '{other}'",
            "함께 쓸 수 없는 인자: '{argument}', '{other}'",
            "'{argument}' 不能与 '{other}' 同时使用",
        ),
        Some(_) => localized!(
            language,
            "the argument '{argument}' cannot be used multiple times",
            "'{argument}'에는 값을 한 번만 줄 수 있습니다",
            "'{argument}' 只能使用一次",
        ),
        None => return None,
    })
}

/// What was probably meant.
fn tips(error: &Error, language: Language) -> Vec<String> {
    let kinds = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
    let tip = |kind: ContextKind| {
        let meant = value(error, kind).filter(|meant| !meant.is_empty())?;
        Some(localized!(
            language,
            "tip: did you mean '{meant}'?",
            "비슷한 것: '{meant}'",
            "相近的写法：'{meant}'",
        ))
    };
    kinds.into_iter().filter_map(tip).collect()
}

/// What clap knows of the error, as text; several things with commas.
fn value(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => Some(texts.join(", ")),
        ContextValue::StyledStr(text) => Some(text.to_string()),
        ContextValue::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Arguments;

    fn printed(words: &[&str], language: Language) -> Option<String> {
        let words = ["weir"].iter().chain(words);
        let error = Arguments::command().try_get_matches_from(words).expect_err("it is wrong");
        localized_error(&error, language)
    }

    #[test]
    fn what_is_wrong_is_told_with_what_is_meant_and_how_the_command_is_used() {
        let cases: [(&[&str], [&str; 3]); 8] = [
            (&["study", "quick", "--qiet"], ["'--qiet'", "'--quiet'", "weir study"]),
            (&["studdy"], ["'studdy'", "'study'", "weir"]),
            (&["study", "quick", "--seed", "x"], ["'x'", "--seed", "0"]),
            (&["study", "quick", "--seed"], ["--seed", "--seed", "--help"]),
            (&["study", "quick", "--resume", "a"], ["--resume", "[STUDY]", "--help"]),
            (&["serve", "echo", "--workers", "0"], ["--workers", "1..=256", "--help"]),
            (&["export", "a", "--format", "cvs"], ["'cvs'", "csv, ", "pidstat"]),
            (&["storage", "capture", "/dev/sda"], ["--out <FILE>", "weir storage capture", "--help"]),
        ];
        for (words, expected) in cases {
            assert_eq!(printed(words, Language::English), None, "clap's own");
            for language in [Language::Korean, Language::Chinese] {
                let text = printed(words, language).unwrap_or_else(|| panic!("{words:?} in {language:?}"));
                assert!(expected.iter().all(|it| text.contains(it)), "{words:?}: {text}");
                let english = ["error", "Usage", "unexpected", "tip", "possible", "whole number", "cannot"];
                assert!(!english.iter().any(|word| text.contains(word)), "{words:?}: {text}");
            }
        }
    }

    #[test]
    fn help_is_no_error() {
        assert_eq!(printed(&["--help"], Language::Korean), None);
        assert_eq!(printed(&[], Language::Korean), None);
    }
}
