//! Causes of a difference, as a study file declares them.

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
    toml_table::{FieldError, Table},
};

/// Reads the tables. A cause whose arms this machine lacks is left out.
pub(super) fn read(tables: Vec<Table<'_>>, known: &Known<'_>) -> Result<Vec<CauseSpec>, FieldError> {
    if let Some(table) = tables.get(CAUSES_MAX) {
        let message = format!("{} causes; at most {CAUSES_MAX} are allowed", tables.len());
        return Err(FieldError::new(table.at(), "cause", message));
    }
    tables.into_iter().filter_map(|table| one(table, known).transpose()).collect()
}

fn one(mut table: Table<'_>, known: &Known<'_>) -> Result<Option<CauseSpec>, FieldError> {
    let of = table.required("of", |entry| known.side(entry))?;
    let (at, key) = (table.places().get("without").copied().unwrap_or(table.at()), table.key("without"));
    let without = table.required("without", |entry| one_of(entry, "arm", &known.arm_names()))?;
    let (metric_at, metric_key) =
        (table.places().get("metric").copied().unwrap_or(table.at()), table.key("metric"));
    let metric = table.read("metric", metric)?.unwrap_or(Metric::ServerCpuPerMessage);
    table.finish(|_| None)?;
    if metric.row().scale != Scale::Ratio {
        let message = "figures that may be zero have no ratio to give shares of".to_owned();
        return Err(FieldError::new(metric_at, &metric_key, message));
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
        [program] if program == "argv.0" => {
            let message = format!("{without} is another program than {arm}, and no switch");
            return Err(FieldError::new(at, &key, message));
        }
        [switch] => switch.clone(),
        [] => return Err(FieldError::new(at, &key, format!("{without} does not differ from {arm}"))),
        many => {
            let message = format!(
                "{without} differs from {arm} in {}; a cause is one switch, with all else the same",
                many.join(" and ")
            );
            return Err(FieldError::new(at, &key, message));
        }
    };
    let places = known.places(&of, (metric, None))?;
    let cells =
        places.into_iter().filter(|(_, cell)| cell.has_arm(&without)).map(|(_, cell)| cell.id.clone());
    let cells: Vec<String> = cells.collect();
    if cells.is_empty() && !known.lacks_cells {
        return Err(FieldError::new(at, &key, format!("{without} runs in no cell in which {arm} does")));
    }
    Ok(Some(CauseSpec { arm: arm.clone(), without, switch, cells, metric }))
}

/// The keys in which two arms differ beside their names, as a study file writes them.
fn differing(one: &ArmSpec, other: &ArmSpec) -> Vec<String> {
    let leaves = |arm: &ArmSpec| {
        let mut found = BTreeMap::new();
        // An arm's subject can be stored, so it can be compared as JSON: its kind and all its fields.
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

/// Words of a command line by flag: a flag with its value after `=` or in the next word, for each occurrence. All
/// other words go by their position.
fn by_flag(words: &[&str]) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut takes_value = false;
    for (place, word) in words.iter().enumerate() {
        let is_flag = word.starts_with('-');
        match word.split_once('=') {
            Some((flag, value)) if is_flag => found.push((flag.to_owned(), value.to_owned())),
            _ if is_flag => found.push(((*word).to_owned(), String::new())),
            _ if takes_value => found.last_mut().into_iter().for_each(|(_, value)| value.push_str(word)),
            _ => found.push((place.to_string(), (*word).to_owned())),
        }
        takes_value = is_flag && !word.contains('=');
    }
    for index in 1..found.len() {
        let earlier =
            found[..index].iter().filter(|(name, _)| name.split('#').next() == Some(&found[index].0)).count();
        if earlier > 0 {
            found[index].0 = format!("{}#{}", found[index].0, earlier + 1);
        }
    }
    found
}

/// Collects every value that is no table, by its path. Words of a command line go by the flag they follow.
fn flatten(path: &str, value: &serde_json::Value, found: &mut BTreeMap<String, String>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        serde_json::Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| flatten(&below(name), value, found));
        }
        serde_json::Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(serde_json::Value::as_str).collect();
            found.extend(by_flag(&words).into_iter().map(|(name, value)| (below(&name), value)));
        }
        other => {
            found.insert(path.to_owned(), other.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(words: &str) -> Vec<(String, String)> {
        by_flag(&words.split(' ').collect::<Vec<_>>())
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn words_of_a_command_line_go_by_flag_by_occurrence_and_else_by_place() {
        assert_eq!(flags("./a -t 4"), [pair("0", "./a"), pair("-t", "4")]);
        let twice = [pair("0", "./a"), pair("--opt", "a=1"), pair("--opt#2", "b=1")];
        assert_eq!(flags("./a --opt a=1 --opt b=1"), twice);
        assert_eq!(flags("./a --x=1 file"), [pair("0", "./a"), pair("--x", "1"), pair("2", "file")]);
        assert_eq!(flags("./a --quiet in out"), [pair("0", "./a"), pair("--quiet", "in"), pair("3", "out")]);
    }
}
