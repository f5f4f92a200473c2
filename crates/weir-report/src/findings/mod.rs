//! What the laboratory found, told in the reader's language. A finding is a code with arguments, so that every language
//! has the same numbers and names; the sentence of an older record stays as it was recorded. A file for each of those
//! who find something.

mod checks;
mod doctor;
mod missing;
mod phrases;
mod verdicts;

use weir_record::{finding::Finding, spec::LoadMode};

pub(crate) use missing::feature;
pub(crate) use phrases::{failure_classes, per, plural, rate, units_of};

use crate::{language::Language, section::distinct, view::View};

/// The finding in one language.
pub(crate) fn told_in(language: Language, finding: &Finding) -> String {
    let of = [checks::told_in, verdicts::told_in, missing::told_in, doctor::told_in];
    let sentence = of.iter().find_map(|group| group(language, finding));
    sentence.unwrap_or_else(|| match finding {
        Finding::Text(text) => text.clone(),
        other => other.code().to_owned(),
    })
}

/// The cells that a check's finding speaks of: those that it names, and else those in which it was so.
pub(crate) fn cells(view: &View<'_>, finding: &Finding) -> Vec<String> {
    let result = view.result;
    match finding {
        Finding::SliceOrder { effects, .. } => distinct(effects.iter().map(|it| &it.cell_id)),
        Finding::Segments { arms, .. } => distinct(arms.iter().map(|it| &it.cell_id)),
        Finding::SliceMessages { arms, .. } => distinct(arms.iter().map(|it| &it.cell_id)),
        Finding::Warming { arms, .. } => distinct(arms.iter().map(|it| &it.cell_id)),
        Finding::CallsAgree { apart, .. } => distinct(apart.iter().map(|it| &it.cell_id)),
        Finding::RoundComponents { .. } | Finding::AgainstItself { .. } => {
            view.primary().map(|it| it.cell_id.clone()).into_iter().collect()
        }
        Finding::GeneratorLimit { bound: 1.., .. } => {
            let is_closed = |id: &str| view.cell(id).is_some_and(|cell| cell.load == LoadMode::Closed);
            let bound = result.arms.iter().filter(|arm| arm.generator_bound && is_closed(&arm.cell_id));
            distinct(bound.map(|arm| &arm.cell_id))
        }
        Finding::RateKept { missed: 1.., .. } => {
            let is_missed = |it: &Finding| matches!(it, Finding::RateNotKept { .. });
            let missed = result.comparisons.iter().filter(|it| it.reasons.iter().any(is_missed));
            distinct(missed.map(|it| &it.cell_id))
        }
        _ => Vec::new(),
    }
}

/// Whether it is an English sentence in a page that is not English.
pub(crate) fn is_foreign(language: Language, finding: &Finding) -> bool {
    language != Language::English && matches!(finding, Finding::Text(_))
}
