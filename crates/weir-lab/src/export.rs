//! The whole study as one JSON document: the judged result and every trial, pilots and excluded ones included.
//! Tables for spreadsheets are the report's business.

use serde::Serialize;
use weir_record::{study::StudyResult, trial::TrialRecord};

use weir_judge::gate::Gate;

#[derive(Serialize)]
struct Document<'a> {
    result: &'a StudyResult,
    trials: Vec<TrialRecord>,
}

/// JSON of the study. Trials carry all their exclusions, a change of the machine's state included.
pub fn json(result: &StudyResult, trials: &[TrialRecord]) -> Result<String, serde_json::Error> {
    let gate = Gate::new(trials);
    let trials = trials
        .iter()
        .map(|trial| TrialRecord { exclusions: gate.exclusions(trial), ..trial.clone() })
        .collect();
    serde_json::to_string_pretty(&Document { result, trials })
}
