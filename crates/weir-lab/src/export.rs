//! The whole study as one JSON document: the judged result and every trial, pilots and excluded ones included; and the
//! schema of that document. Tables for spreadsheets are the report's business.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Serialize;
use weir_record::{SCHEMA_VERSION, study::StudyResult, trial::TrialRecord};

use weir_judge::gate::ValidityGate;

/// What `weir export --format json` prints.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "StudyExport")]
struct Document<'a> {
    /// Version of the records; raised when a field changes its meaning or disappears. New fields do not raise it.
    schema_version: u32,
    /// The study as it was judged.
    result: &'a StudyResult,
    /// Every trial, in the order in which they were stored.
    trials: Vec<TrialRecord>,
}

/// JSON of the study. Trials carry all their exclusions, a change of the machine's state included.
pub fn json(result: &StudyResult, trials: &[TrialRecord]) -> Result<String, serde_json::Error> {
    let gate = ValidityGate::new(trials);
    let trials = trials
        .iter()
        .map(|trial| TrialRecord { exclusions: gate.exclusions(trial), ..trial.clone() })
        .collect();
    serde_json::to_string_pretty(&Document { schema_version: SCHEMA_VERSION, result, trials })
}

/// JSON Schema (draft 2020-12) of [`json`], made from the types that are written.
pub fn schema() -> Result<String, serde_json::Error> {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Document<'_>>();
    schema.insert("$id".to_owned(), format!("urn:weir:study-export:{SCHEMA_VERSION}").into());
    serde_json::to_string_pretty(&schema)
}
