//! Errors in a request, in every language a reader may have.

use std::fmt;

use weir_report::Language;

/// An error and its remedy: one sentence in each language. The code that shows it knows the reader's language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake(Box<[String; 3]>);

impl Mistake {
    /// The sentence in each language, from `text_in`.
    pub(crate) fn of(text_in: impl Fn(Language) -> String) -> Self {
        Self(Box::new(Language::ALL.map(text_in)))
    }

    /// A sentence without variables: English, Korean, Chinese.
    pub(crate) fn fixed(texts: [&'static str; 3]) -> Self {
        Self::of(|language| language.choose(texts).to_owned())
    }

    /// The same sentence after its subject: a key, or the line that was typed.
    pub(crate) fn about(&self, subject: &str) -> Self {
        Self::of(|language| format!("{subject}{}{}", language.colon(), self.localized(language)))
    }

    /// The sentence in this language.
    pub fn localized(&self, language: Language) -> &str {
        let [english, korean, chinese] = &*self.0;
        match language {
            Language::English => english,
            Language::Korean => korean,
            Language::Chinese => chinese,
        }
    }
}

/// A sentence in English only.
impl From<String> for Mistake {
    fn from(english: String) -> Self {
        Self::of(|_| english.clone())
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.localized(Language::English))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_keeps_its_subject_in_every_language_and_shows_as_english() {
        let mistake = Mistake::fixed(["too long", "너무 깁니다", "太长"]).about("name");
        assert_eq!(mistake.to_string(), "name: too long");
        assert_eq!(mistake.localized(Language::Korean), "name: 너무 깁니다");
        assert_eq!(mistake.localized(Language::Chinese), "name：太长");
        let english = Mistake::from("too long".to_owned());
        assert!(Language::ALL.iter().all(|language| english.localized(*language) == "too long"));
    }
}
