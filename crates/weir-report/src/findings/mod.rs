//! Findings of the laboratory in the reader's language. A finding is a code with arguments, so that every language
//! has the same numbers and names; a sentence from an older record is unchanged. There is a file for each source of
//! findings, and a function for each group, whose completeness the compiler checks.

mod arms;
mod checks;
mod doctor;
mod missing;
mod phrases;
mod verdicts;

use weir_record::finding::{Finding, Group};

pub(crate) use missing::feature;
pub(crate) use phrases::{failure_classes, per, plural, rate, units_of};

use crate::language::Language;

/// The finding in one language.
pub(crate) fn localized(language: Language, finding: &Finding) -> String {
    match finding.group() {
        Group::OfResponses(found) => checks::of_responses(language, found),
        Group::OfLoad(found) => checks::of_load(language, found),
        Group::OfStorage(found) => checks::of_storage(language, found),
        Group::OfNoise(found) => checks::of_noise(language, found),
        Group::OfStates(found) => checks::of_states(language, found),
        Group::OfEvidence(found) => checks::of_evidence(language, found),
        Group::OfSchedule(found) => checks::of_schedule(language, found),
        Group::OfBaseline(found) => checks::of_baseline(language, found),
        Group::OfArmChecks(found) => arms::of_arm_checks(language, found),
        Group::OfUnits(found) => verdicts::of_units(language, found),
        Group::OfArms(found) => verdicts::of_arms(language, found),
        Group::OfFigures(found) => verdicts::of_figures(language, found),
        Group::OfCells(found) => verdicts::of_cells(language, found),
        Group::OfDecision(found) => verdicts::of_decision(language, found),
        Group::OfDrivers(found) => missing::of_drivers(language, found),
        Group::OfPrograms(found) => missing::of_programs(language, found),
        Group::OfProbes(found) => missing::of_probes(language, found),
        Group::OfRemedies(found) => missing::of_remedies(language, found),
        Group::OfCpus(found) => doctor::of_cpus(language, found),
        Group::OfSpeed(found) => doctor::of_speed(language, found),
        Group::OfConnections(found) => doctor::of_connections(language, found),
        Group::OfMemory(found) => doctor::of_memory(language, found),
        Group::OfQuiet(found) => doctor::of_noise(language, found),
        Group::OfRungs(found) => doctor::of_rungs(language, found),
        Group::Text(text) => text.to_owned(),
    }
}

/// Whether it is an English sentence in a page that is not English.
pub(crate) fn is_foreign(language: Language, finding: &Finding) -> bool {
    language != Language::English && matches!(finding, Finding::Text(_))
}
