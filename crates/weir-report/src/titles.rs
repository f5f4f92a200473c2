//! Texts by a study's author in the reader's language: its question, and published claims.

use weir_record::text::Text;

use crate::language::Language;

/// The text in the language, or in English if it was not translated.
pub(crate) fn localized(text: &Text, language: Language) -> &str {
    let own = match language {
        Language::English => None,
        Language::Korean => text.ko.as_deref(),
        Language::Chinese => text.zh.as_deref(),
    };
    own.unwrap_or(&text.en)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_told_in_the_languages_it_has_and_stays_english_in_others() {
        let text = Text { ko: Some("무엇?".to_owned()), ..Text::from("What?") };
        let languages = [Language::English, Language::Korean, Language::Chinese];
        assert_eq!(languages.map(|language| localized(&text, language)), ["What?", "무엇?", "What?"]);
    }
}
