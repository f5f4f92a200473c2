//! Questions of a study file about the added cost of arms over the baseline.

use weir_record::{
    added_cost::AddedCostSpec,
    metric::Metric,
    spec::{CellSpec, StudySpec},
};

use super::{
    comparisons::{Known, metric},
    one_of,
};
use crate::{
    limits::ADDED_COSTS_MAX,
    protocol::Factor,
    toml_table::{Entry, FieldError, Table},
};

/// Reads the tables. Each is one question, or one in each level of a factor.
pub(super) fn read(tables: Vec<Table<'_>>, known: &Known<'_>) -> Result<Vec<AddedCostSpec>, FieldError> {
    let mut found = Vec::new();
    for table in tables {
        let at = table.at();
        found.extend(one(table, known)?);
        if found.len() > ADDED_COSTS_MAX {
            let message = format!("the file asks {} of them; at most {ADDED_COSTS_MAX}", found.len());
            return Err(FieldError::new(at, "added_cost", message));
        }
    }
    Ok(found)
}

fn one(mut table: Table<'_>, known: &Known<'_>) -> Result<Vec<AddedCostSpec>, FieldError> {
    let of = table.required("of", |entry| known.side(entry))?;
    let reference = table.required("reference", |entry| one_of(entry, "arm", &known.arm_names()))?;
    let metrics = table.required("metrics", metrics)?;
    let share_max = table.read("at_most", share)?;
    let by = table.read("by", |entry| factor(entry, known))?;
    table.finish(|_| None)?;
    let baseline = known.spec.arms.first().map(|arm| &arm.name);
    if of.arms.iter().chain([&reference]).any(|arm| Some(arm) == baseline) {
        return Err(
            of.wrong("costs are those beyond the baseline, which is the study's first arm".to_owned())
        );
    }
    let mut found: Vec<AddedCostSpec> = Vec::new();
    // If claims are at one rate, the cells at that rate are meant; otherwise cells of every load.
    let places = match known.protocol.has_rungs() && !known.spec.saturation {
        true => known.places(&of, (metrics[0], None))?,
        false => known.places_in(&of, &known.cells(&of))?,
    };
    for (_, cell) in places.iter().filter(|(_, cell)| known.runs(&reference, cell)) {
        let group = by.map(|factor| level(factor, cell)).unwrap_or_default();
        let own = match found.iter().position(|own| own.group == group) {
            Some(own) => own,
            None => {
                found.push(AddedCostSpec {
                    group,
                    cells: Vec::new(),
                    arms: of.arms.clone(),
                    reference: reference.clone(),
                    metrics: metrics.clone(),
                    share_max,
                });
                found.len() - 1
            }
        };
        if !found[own].cells.contains(&cell.id) {
            found[own].cells.push(cell.id.clone());
        }
    }
    if found.is_empty() && !known.lacks_cells {
        return Err(of.wrong(format!("{reference} runs in none of these cells")));
    }
    in_order(known.spec, &mut found);
    Ok(found)
}

/// Sorts cells and arms in the study's order.
fn in_order(spec: &StudySpec, found: &mut [AddedCostSpec]) {
    let of_arm = |name: &String| spec.arms.iter().position(|arm| arm.name == *name);
    let of_cell = |id: &String| spec.cells.iter().position(|cell| cell.id == *id);
    for asked in found {
        asked.arms.sort_by_key(of_arm);
        asked.cells.sort_by_key(of_cell);
    }
}

/// Text of a factor's level in a cell, or of the default level.
fn level(factor: &Factor, cell: &CellSpec) -> String {
    let usual = || factor.default.as_ref().map(ToString::to_string);
    (factor.shown)(cell).or_else(usual).unwrap_or_default()
}

fn factor(entry: Entry<'_>, known: &Known<'_>) -> Result<&'static Factor, FieldError> {
    let keys: Vec<&str> = known.protocol.factors().iter().map(|factor| factor.key).collect();
    let wrong = entry.wrong("it is no factor of this protocol".to_owned());
    let key = one_of(entry, "factor", &keys)?;
    known.protocol.factors().iter().find(|factor| factor.key == key).ok_or(wrong)
}

fn metrics(entry: Entry<'_>) -> Result<Vec<Metric>, FieldError> {
    entry.one_or_many()?.into_iter().map(metric).collect()
}

fn share(entry: Entry<'_>) -> Result<f64, FieldError> {
    let wrong = entry.wrong("write a share of the reference's cost, above 0 and at most 1".to_owned());
    entry.fraction().and_then(|share| if share > 0.0 && share <= 1.0 { Ok(share) } else { Err(wrong) })
}
