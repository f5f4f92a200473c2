//! The whole study as one JSON document, and the schema of that document. The document holds the judged result and
//! every trial, including pilots and excluded trials. The report writes the tables for spreadsheets.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Serialize;
use weir_record::{
    SCHEMA_VERSION,
    answer::StudyAnswer,
    effect::{Effect, Question},
    study::StudyResult,
    trial::TrialRecord,
    verdict::Verdict,
};

use weir_judge::gate::ValidityGate;

/// What `weir export --format json` prints.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "StudyExport")]
struct Document<'r> {
    /// The answer in short; everything in it follows from `result`.
    answer: StudyAnswer,
    /// Version of the records; raised when a field changes its meaning or disappears. New fields do not raise it.
    schema_version: u32,
    /// The study as it was judged.
    result: &'r StudyResult,
    /// Every trial, in the order in which they were stored.
    trials: Vec<TrialRecord>,
}

/// JSON of the study. Trials carry all their exclusions, including a change of the machine's state.
pub fn json(result: &StudyResult, trials: &[TrialRecord]) -> Result<String, serde_json::Error> {
    let gate = ValidityGate::new(trials);
    let trials = trials
        .iter()
        .map(|trial| TrialRecord { exclusions: gate.exclusions(trial), ..trial.clone() })
        .collect();
    let answer = weir_report::answer(result);
    serde_json::to_string_pretty(&Document { answer, schema_version: SCHEMA_VERSION, result, trials })
}

/// What `weir export --format summary` and `weir study --json` print.
#[derive(Serialize)]
struct Summary<'r> {
    answer: StudyAnswer,
    schema_version: u32,
    study: &'r str,
    verdict: Verdict,
    complete: bool,
    reproduce: &'r str,
    /// The primary comparison; absent where there is none.
    primary: Option<Effect>,
    /// Every comparison and every goal, without the values of their units.
    effects: Vec<Effect>,
}

/// The study in short: its answer, its verdict, and a row for each comparison and goal. The columns are the fields of
/// [`json`].
pub fn summary(result: &StudyResult) -> Result<String, serde_json::Error> {
    let brief = |row: &Effect| Effect { values: Vec::new(), ..row.clone() };
    let is_meant = |row: &&Effect| matches!(row.question, Question::Comparison | Question::Asked(_));
    let summary = Summary {
        answer: weir_report::answer(result),
        schema_version: SCHEMA_VERSION,
        study: &result.spec.name,
        verdict: result.verdict,
        complete: result.complete,
        reproduce: &result.reproduce,
        primary: result.primary().map(brief),
        effects: result.effects.rows.iter().filter(is_meant).map(brief).collect(),
    };
    Ok(format!("{}\n", serde_json::to_string_pretty(&summary)?))
}

/// JSON Schema (draft 2020-12) of [`json`], derived from the types that are written.
pub fn schema() -> Result<String, serde_json::Error> {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Document<'_>>();
    schema.insert("$id".to_owned(), format!("urn:weir:study-export:{SCHEMA_VERSION}").into());
    serde_json::to_string_pretty(&schema)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_document_has_the_table_of_effects_as_the_record_has_it() {
        let spec = weir_judge::sample::study(&["epoll", "uring"], 2, 1);
        let trial = |arm: &str, repeat: bool, block: u32, cpu_us: f64| TrialRecord {
            repeat,
            ..weir_judge::sample::trial(&spec.cells[0].id, arm, block, cpu_us)
        };
        let of_block = |block: u32| {
            [
                trial("epoll", false, block, 10.0),
                trial("epoll", true, block, 5.0),
                trial("uring", false, block, 8.0),
            ]
        };
        let trials: Vec<TrialRecord> = (0..2).flat_map(of_block).collect();
        let result = weir_judge::judge::judged(&spec, &trials);
        let document: Value =
            serde_json::from_str(&json(&result, &trials).expect("it is JSON")).expect("it is JSON");
        assert_eq!(document["result"], serde_json::to_value(&result).expect("it is plain data"));
        let rows = document["result"]["effects"].as_array().expect("it is a table");
        assert_eq!(rows.len(), result.effects.rows.len());
        let primary = &rows[result.primary.expect("it was compared")];
        assert_eq!(primary["question"], "comparison");
        assert_eq!(primary["metric"], "server-cpu-per-message");
        let near = |value: &Value, expected: f64| (value.as_f64().expect("a number") - expected).abs() < 1e-9;
        assert!(near(&primary["estimate"], 0.8) && near(&primary["values"][1], 0.8_f64.ln()), "{primary}");
        let itself = rows.iter().find(|row| row["question"] == "itself").expect("the first arm ran twice");
        assert!(near(&itself["values"][0], 0.5_f64.ln()), "{itself}");
    }

    #[test]
    fn both_documents_begin_with_the_answer_and_agree_on_it() {
        let spec = weir_judge::sample::study(&["epoll", "uring"], 2, 1);
        let result = weir_judge::judge::judged(&spec, &[]);
        let [whole, brief] = [json(&result, &[]), summary(&result)].map(|text| text.expect("it is JSON"));
        for text in [&whole, &brief] {
            assert!(text.starts_with("{\n  \"answer\": {\n    \"question\": "), "{}", &text[..80]);
        }
        let [whole, brief]: [Value; 2] =
            [whole, brief].map(|text| serde_json::from_str(&text).expect("it is JSON"));
        assert_eq!(whole["answer"], brief["answer"]);
        let others = ["schema_version", "study", "verdict", "complete", "reproduce", "effects"];
        assert!(others.iter().all(|key| brief.get(key).is_some()), "what scripts read stays: {brief}");
    }
}
