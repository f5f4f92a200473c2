//! The languages a report is written in.

use std::{fmt, str::FromStr};

mod alike;

pub use alike::assert_translations_alike;

/// A sentence in the reader's [`Language`], with variables in its text: English, Korean, Chinese. It does not compile
/// if a translation lacks a variable, or is missing.
#[macro_export]
macro_rules! localized {
    ($language:expr, $english:literal, $korean:literal, $chinese:literal $(,)?) => {{
        const _: () = $crate::assert_translations_alike($english, $korean, $chinese);
        match $language {
            $crate::Language::English => format!($english),
            $crate::Language::Korean => format!($korean),
            $crate::Language::Chinese => format!($chinese),
        }
    }};
}

pub use localized;

/// Language of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Korean.
    Korean,
    /// Chinese, simplified characters.
    Chinese,
}

impl Language {
    /// All languages.
    pub const ALL: [Language; 3] = [Language::English, Language::Korean, Language::Chinese];

    /// Code as on the command line: `en`, `ko`, `zh`.
    pub fn code(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::Korean => "ko",
            Language::Chinese => "zh",
        }
    }

    /// The text in this language, from English, Korean and Chinese.
    pub fn choose(self, [english, korean, chinese]: [&'static str; 3]) -> &'static str {
        match self {
            Language::English => english,
            Language::Korean => korean,
            Language::Chinese => chinese,
        }
    }

    /// Separator between a title and its subject. Chinese has one kind of colon in every context.
    pub fn colon(self) -> &'static str {
        self.choose([": ", ": ", "："])
    }

    /// Separator between the items of a list.
    pub fn list(self) -> &'static str {
        self.choose([", ", ", ", "、"])
    }

    /// Separator between findings.
    pub fn semicolon(self) -> &'static str {
        self.choose(["; ", "; ", "；"])
    }

    /// A duration in readable form: `3 min 12 s`, `12.5 s`.
    pub fn duration(self, ns: u64) -> String {
        let seconds = ns / 1_000_000_000;
        let (hours, minutes, rest) = (seconds / 3600, seconds % 3600 / 60, seconds % 60);
        let tenths = ns as f64 / 1e9;
        match seconds {
            0..60 => localized!(self, "{tenths:.1} s", "{tenths:.1}초", "{tenths:.1} 秒"),
            60..3600 => {
                localized!(self, "{minutes} min {rest} s", "{minutes}분 {rest}초", "{minutes} 分 {rest} 秒")
            }
            _ => {
                localized!(
                    self,
                    "{hours} h {minutes} min",
                    "{hours}시간 {minutes}분",
                    "{hours} 小时 {minutes} 分"
                )
            }
        }
    }

    /// BCP 47 tag for the `lang` attribute, which decides glyph shapes and line breaking.
    pub fn tag(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::Korean => "ko",
            Language::Chinese => "zh-Hans",
        }
    }

    /// Font list; the report's own script comes first so that shared Han characters get its shapes.
    pub(crate) fn fonts(self) -> &'static str {
        match self {
            Language::English => r#"system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif"#,
            Language::Korean => {
                r#"system-ui, "Apple SD Gothic Neo", "Malgun Gothic", "Noto Sans KR", "Noto Sans CJK KR", sans-serif"#
            }
            Language::Chinese => {
                r#"system-ui, "PingFang SC", "Microsoft YaHei", "Noto Sans SC", "Noto Sans CJK SC", sans-serif"#
            }
        }
    }
}

/// The code is not a language of reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLanguage {
    /// The given code.
    pub given: String,
}

impl fmt::Display for UnknownLanguage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "unknown language {:?}: use en, ko or zh", self.given)
    }
}

impl std::error::Error for UnknownLanguage {}

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(code: &str) -> Result<Self, Self::Err> {
        Language::ALL
            .into_iter()
            .find(|language| language.code() == code)
            .ok_or_else(|| UnknownLanguage { given: code.to_owned() })
    }
}
