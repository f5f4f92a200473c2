//! What the laboratory found, told in the reader's language. A finding is a code with arguments, so that every language
//! has the same numbers and names; the sentence of an older record stays as it was recorded. A file for each of those
//! who find something.

mod checks;
mod doctor;
mod missing;
mod phrases;
mod verdicts;

use weir_record::finding::Finding;

pub(crate) use missing::feature;
pub(crate) use phrases::{failure_classes, per, plural, rate, units_of};

use crate::language::Language;

/// The finding in one language.
pub(crate) fn localized(language: Language, finding: &Finding) -> String {
    let of = [checks::localized, verdicts::localized, missing::localized, doctor::localized];
    let sentence = of.iter().find_map(|group| group(language, finding));
    sentence.unwrap_or_else(|| match finding {
        Finding::Text(text) => text.clone(),
        other => other.code().to_owned(),
    })
}

/// Whether it is an English sentence in a page that is not English.
pub(crate) fn is_foreign(language: Language, finding: &Finding) -> bool {
    language != Language::English && matches!(finding, Finding::Text(_))
}
