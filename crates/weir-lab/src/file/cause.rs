//! Causes of a difference, as a study file asks for them.

use std::collections::BTreeMap;

use weir_record::{
    cause::CauseSpec,
    metric::{Metric, Scale},
    spec::ArmSpec,
};

use super::{
    comparisons::{Known, metric},
    one_of,
};
use crate::{
    limits::CAUSES_MAX,
    table::{Fault, Table},
};

/// Reads the tables. One whose arms this machine lacks has no place.
pub(super) fn read(tables: Vec<Table<'_>>, known: &Known<'_>) -> Result<Vec<CauseSpec>, Fault> {
    if let Some(table) = tables.get(CAUSES_MAX) {
        let message = format!("{} causes; at most {CAUSES_MAX} are allowed", tables.len());
        return Err(Fault::new(table.at(), "cause", message));
    }
    tables.into_iter().filter_map(|table| one(table, known).transpose()).collect()
}

fn one(mut table: Table<'_>, known: &Known<'_>) -> Result<Option<CauseSpec>, Fault> {
    let of = table.required("of", |entry| known.side(entry))?;
    let (at, key) = (table.places().get("without").copied().unwrap_or(table.at()), table.key("without"));
    let without = table.required("without", |entry| one_of(entry, "arm", &known.arm_names()))?;
    let (metric_at, metric_key) =
        (table.places().get("metric").copied().unwrap_or(table.at()), table.key("metric"));
    let metric = table.read("metric", metric)?.unwrap_or(Metric::ServerCpuPerMessage);
    table.finish(|_| None)?;
    if metric.row().scale != Scale::Ratio {
        let message = "figures that may be zero have no ratio to give shares of".to_owned();
        return Err(Fault::new(metric_at, &metric_key, message));
    }
    let [arm] = of.arms.as_slice() else {
        return Err(of.wrong("name the one arm that has the switch: of = { arm = \"…\" }".to_owned()));
    };
    let of_name = |name: &str| known.spec.arms.iter().find(|arm| arm.name == name);
    if known.spec.arms.first().is_some_and(|first| [arm, &without].contains(&&first.name)) {
        let message = "the difference is that from the study's first arm, which can be neither".to_owned();
        return Err(of.wrong(message));
    }
    let (Some(with), Some(back)) = (of_name(arm), of_name(&without)) else { return Ok(None) };
    let switch = match differing(with, back).as_slice() {
        [switch] => switch.clone(),
        [] => return Err(Fault::new(at, &key, format!("{without} does not differ from {arm}"))),
        many => {
            let message = format!(
                "{without} differs from {arm} in {}; a cause is one switch, with all else the same",
                many.join(" and ")
            );
            return Err(Fault::new(at, &key, message));
        }
    };
    let places = known.places(&of)?;
    let cells =
        places.into_iter().filter(|(_, cell)| cell.has_arm(&without)).map(|(_, cell)| cell.id.clone());
    let cells: Vec<String> = cells.collect();
    if cells.is_empty() && !known.lacks_cells {
        return Err(Fault::new(at, &key, format!("{without} runs in no cell in which {arm} does")));
    }
    Ok(Some(CauseSpec { arm: arm.clone(), without, switch, cells, metric }))
}

/// In what two arms differ beside their names, as a study file says it.
fn differing(one: &ArmSpec, other: &ArmSpec) -> Vec<String> {
    let leaves = |arm: &ArmSpec| {
        let mut found = BTreeMap::new();
        // What an arm runs can be stored, so it can be told: its kind with all that is said of it.
        if let Ok(serde_json::Value::Object(subject)) = serde_json::to_value(&arm.subject) {
            for (kind, said) in &subject {
                found.insert("subject".to_owned(), kind.clone());
                flatten("", said, &mut found);
            }
        }
        let options = arm.load_options.iter();
        found.extend(options.map(|(name, value)| (format!("load_options.{name}"), value.clone())));
        found
    };
    let (one, other) = (leaves(one), leaves(other));
    let mut paths: Vec<&String> = one.keys().chain(other.keys()).collect();
    paths.sort();
    paths.dedup();
    paths.into_iter().filter(|path| one.get(*path) != other.get(*path)).cloned().collect()
}

/// Every value that is no table by its path. Words of a command line go by the flag they follow.
fn flatten(path: &str, value: &serde_json::Value, found: &mut BTreeMap<String, String>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        serde_json::Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| flatten(&below(name), value, found));
        }
        serde_json::Value::Array(words) => {
            let mut flag = "";
            for word in words.iter().filter_map(serde_json::Value::as_str) {
                flag = if word.starts_with("--") { word } else { flag };
                let own = found.entry(below(flag)).or_default();
                own.push_str(word);
                own.push(' ');
            }
        }
        other => {
            found.insert(path.to_owned(), other.to_string());
        }
    }
}
