//! The whole study as one JSON document: the judged result and every trial, pilots and excluded ones included; and the
//! schema of that document. Tables for spreadsheets are the report's business.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Serialize;
use serde_json::{Value, json};
use weir_record::{
    SCHEMA_VERSION, metric::Scale, study::StudyResult, trial::TrialRecord, verdict::Comparison,
};

use weir_judge::gate::ValidityGate;

/// What `weir export --format json` prints.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "StudyExport")]
struct Document {
    /// Version of the records; raised when a field changes its meaning or disappears. New fields do not raise it.
    schema_version: u32,
    /// The study as it was judged.
    #[schemars(with = "StudyResult")]
    result: Value,
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
    let result = with_shown_effects(result)?;
    serde_json::to_string_pretty(&Document { schema_version: SCHEMA_VERSION, result, trials })
}

/// JSON Schema (draft 2020-12) of [`json`], made from the types that are written.
pub fn schema() -> Result<String, serde_json::Error> {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Document>();
    describe_shown_effects(schema.as_object_mut().expect("a schema of a record is an object"));
    schema.insert("$id".to_owned(), format!("urn:weir:study-export:{SCHEMA_VERSION}").into());
    serde_json::to_string_pretty(&schema)
}

/// Effects as programs read them that were written for this version of the format: `ratios` and `ratios_self` beside
/// the logarithms of a comparison, empty for a metric that is compared by differences, and `differences` for that one.
/// A record stores an effect once, on the metric's scale.
fn with_shown_effects(result: &StudyResult) -> Result<Value, serde_json::Error> {
    let mut document = serde_json::to_value(result)?;
    let written = document.get_mut("comparisons").and_then(Value::as_array_mut);
    for (written, it) in written.into_iter().flatten().zip(&result.comparisons) {
        let is_ratio = it.metric.row().scale == Scale::Ratio;
        let ratios = |shown: fn(&Comparison) -> Vec<f64>| if is_ratio { shown(it) } else { Vec::new() };
        written["ratios"] = json!(ratios(Comparison::shown_effects));
        written["ratios_self"] = json!(ratios(Comparison::shown_effects_self));
        if it.difference.is_some() {
            written["difference"]["differences"] = json!(it.shown_effects());
        }
    }
    Ok(document)
}

/// The same fields in the schema.
fn describe_shown_effects(schema: &mut serde_json::Map<String, Value>) {
    let fields = [
        ("Comparison", "ratios", "Paired ratios, unit by unit; none of a metric compared by differences."),
        ("Comparison", "ratios_self", "Paired ratios of baseline against itself, likewise."),
        ("DifferenceEffect", "differences", "Differences, unit by unit."),
    ];
    for (record, field, description) in fields {
        let record = &mut schema["$defs"][record];
        record["properties"][field] = json!({ "description": description, "type": "array", "items": { "type": "number", "format": "double" } });
        if let Some(required) = record["required"].as_array_mut() {
            required.push(json!(field));
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_record::{metric::Metric, verdict::DifferenceEffect};

    use super::*;

    #[test]
    fn effects_stand_in_the_document_as_ratios_or_as_differences_too() {
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
        let mut result = weir_judge::judge::judged(&spec, &trials);
        let mut other = result.comparisons[0].clone();
        (other.metric, other.difference) = (Metric::SwitchesPerMessage, Some(DifferenceEffect::default()));
        other.effects = vec![0.5, -0.25];
        result.comparisons.push(other);
        let document: Value =
            serde_json::from_str(&json(&result, &trials).expect("it is JSON")).expect("it is JSON");
        let of = |metric: Metric| {
            let place = result.comparisons.iter().position(|it| it.metric == metric).expect("it is compared");
            &document["result"]["comparisons"][place]
        };
        let cpu = of(Metric::ServerCpuPerMessage);
        assert!((cpu["ratios"][1].as_f64().expect("a number") - 0.8).abs() < 1e-9, "{cpu}");
        assert!((cpu["ratios_self"][0].as_f64().expect("a number") - 0.5).abs() < 1e-9, "{cpu}");
        let switches = of(Metric::SwitchesPerMessage);
        assert_eq!(switches["difference"]["differences"], json!([0.5, -0.25]));
        assert_eq!(switches["ratios"], json!([]));
    }
}
