//! Thresholds: what fails a run, one line each: `[ARM] METRIC [ratio] > NUMBER[UNIT] [at CELL]`.
//!
//! A threshold is a goal that decides the exit code. `x > 1.05` fails when the whole interval lies above 1.05; it holds
//! when the whole interval is at most that; else nothing is known.

use weir_record::{
    goal::{ComparisonSpec, Goal, Side},
    metric::{MetricUnit, Scale},
    metric_rows::{METRICS, MetricRow, Part},
    spec::{CellRole, CellSpec, StudySpec},
};

use super::comparisons::Known;
use crate::{
    host_defaults::HostDefaults,
    limits::{COMPARISONS_MAX, instead},
    protocol::{self, Machine},
    toml_table::{Entry, FieldError},
};

/// Metrics by the names people type.
const SHORT: [(&str, &str); 4] = [
    ("cpu-per-message", "server-cpu-per-message"),
    ("cpu", "server-cpu-per-message"),
    ("p50", "latency-p50"),
    ("p99", "latency-p99"),
];

/// Reads one: a goal for each arm that is meant.
pub(super) fn read(entry: Entry<'_>, known: &Known<'_>) -> Result<Vec<ComparisonSpec>, FieldError> {
    let (at, key) = (entry.at, entry.key.clone());
    let text = entry.text()?;
    known.threshold(&text).map_err(|message| FieldError::new(at, &key, format!("{text:?}: {message}")))
}

/// The same of a study that is complete, for lines that are in no file.
pub fn thresholds(spec: &StudySpec, lines: &[String]) -> Result<Vec<ComparisonSpec>, String> {
    let host_defaults = HostDefaults::default();
    let machine = Machine { host_defaults: &host_defaults, server_cpus: &spec.server_cpus };
    let protocol = spec.cells.first().map_or(protocol::ALL[0], protocol::of);
    let known = Known { spec, protocol, machine, absent: &[], lacks_cells: false };
    let mut all = Vec::new();
    for line in lines {
        all.extend(known.threshold(line).map_err(|message| format!("{line:?}: {message}"))?);
        if all.len() > COMPARISONS_MAX {
            return Err(format!("{line:?}: these are more than {COMPARISONS_MAX} thresholds"));
        }
    }
    Ok(all)
}

/// A line, taken apart.
struct Line<'t> {
    arm: Option<&'t str>,
    row: &'static MetricRow,
    is_ratio: bool,
    is_above: bool,
    bound: &'t str,
    cell: Option<&'t str>,
}

const FORM: &str = "write [ARM] METRIC [ratio] > NUMBER[UNIT] [at CELL], or < in place of >";

impl Known<'_> {
    fn threshold(&self, text: &str) -> Result<Vec<ComparisonSpec>, String> {
        let line = Line::of(text)?;
        let goal = line.goal()?;
        let Some(cell) = self.cell_of(line.cell, line.row)? else { return Ok(Vec::new()) };
        let baseline = self.spec.arms[0].name.as_str();
        let names = self.arm_names();
        let arms = match line.arm {
            Some(arm) if !names.contains(&arm) => {
                return Err(format!("there is no arm {arm:?}; {}", instead(arm, &names)));
            }
            Some(arm) if line.is_ratio && arm == baseline => {
                return Err(format!("{arm} is the baseline, and its ratio to itself is 1"));
            }
            Some(arm) if !self.runs(arm, cell) => return Err(format!("{arm} does not run in {}", cell.id)),
            Some(arm) => vec![arm],
            None => self.meant(names).into_iter().filter(|arm| self.runs(arm, cell)).collect(),
        };
        if arms.is_empty() {
            return Err(format!("only the baseline runs in {}; name the arm that is meant", cell.id));
        }
        let side =
            |arm: &str| Side { arm: arm.to_owned(), cell_id: cell.id.clone(), metric: line.row.metric };
        let to = |arm: &str| {
            let own = self.spec.arms.iter().find(|own| own.name == arm);
            side(own.map_or(baseline, |own| self.spec.baseline_of(own)))
        };
        let one = |arm: &str| ComparisonSpec {
            of: side(arm),
            to: if line.is_ratio { vec![to(arm)] } else { Vec::new() },
            goal: Some(goal),
            is_threshold: true,
        };
        Ok(arms.into_iter().map(one).collect())
    }

    /// Arms that are meant where none is named: all but the baseline, or those that name a baseline of their own; never
    /// a placebo.
    fn meant<'n>(&self, names: Vec<&'n str>) -> Vec<&'n str> {
        let arm = |name: &str| self.spec.arms.iter().find(|arm| arm.name == name);
        let first = self.spec.arms[0].name.as_str();
        let has_own = |name: &&str| *name != first && arm(name).is_some_and(|arm| arm.baseline.is_some());
        let is_any_own = names.iter().any(has_own);
        let is_meant = |name: &&str| {
            let is_placebo = arm(name).is_some_and(|arm| arm.is_placebo);
            !is_placebo && *name != first && (has_own(name) || !is_any_own)
        };
        names.into_iter().filter(is_meant).collect()
    }

    /// The cell that is named. Else that of the primary comparison, or the first one in which the metric is measured:
    /// latencies are where requests come at a rate. None where it may be one that this machine lacks: the study then
    /// ends as one that cannot all run here.
    fn cell_of(&self, name: Option<&str>, row: &MetricRow) -> Result<Option<&CellSpec>, String> {
        let cells = &self.spec.cells;
        let has = |cell: &&CellSpec| (row.part)(cell) != Part::None;
        let ids = |of: &[&CellSpec]| of.iter().map(|cell| cell.id.clone()).collect::<Vec<_>>().join(", ");
        let having: Vec<&CellSpec> = cells.iter().filter(has).collect();
        let Some(first) = having.first() else {
            if self.lacks_cells {
                return Ok(None);
            }
            return Err(format!("{} is not measured in this study", row.key));
        };
        let Some(name) = name else {
            let primary = having.iter().find(|cell| cell.role == CellRole::Primary);
            return Ok(Some(primary.unwrap_or(first)));
        };
        match cells.iter().find(|cell| cell.id == name) {
            Some(cell) if has(&cell) => Ok(Some(cell)),
            Some(_) => Err(format!("{} is not measured in {name}, but in {}", row.key, ids(&having))),
            None if self.lacks_cells => Ok(None),
            None => {
                let known: Vec<&str> = cells.iter().map(|cell| cell.id.as_str()).collect();
                Err(format!("there is no cell {name:?}; {}", instead(name, &known)))
            }
        }
    }
}

impl<'t> Line<'t> {
    fn of(text: &'t str) -> Result<Self, String> {
        let at = text.find(['>', '<']).ok_or(FORM)?;
        let (left, right) = (&text[..at], text[at + 1..].trim());
        let (bound, cell) = match right.split_once(" at ") {
            Some((bound, cell)) => (bound.trim(), Some(cell.trim())),
            None => (right, None),
        };
        let mut words: Vec<&str> = left.split_whitespace().collect();
        let is_ratio = words.last() == Some(&"ratio");
        if is_ratio {
            words.pop();
        }
        let (arm, metric) = match words[..] {
            [metric] => (None, metric),
            [arm, metric] => (Some(arm), metric),
            _ => return Err(FORM.to_owned()),
        };
        Ok(Self { arm, row: row(metric)?, is_ratio, is_above: text[at..].starts_with('>'), bound, cell })
    }

    /// What must hold for the line not to.
    fn goal(&self) -> Result<Goal, String> {
        if self.is_ratio && self.row.scale != Scale::Ratio {
            return Err(format!("{} may be zero and has no ratio; give its figure a bound", self.row.key));
        }
        let unit = if self.is_ratio { &[] } else { units(self.row.unit) };
        let digits =
            self.bound.trim_end_matches(|it: char| it.is_alphabetic() || ['%', '/', 'µ'].contains(&it));
        let (number, suffix) = (digits.trim_end().parse::<f64>(), &self.bound[digits.len()..]);
        let factor = match unit.iter().find(|(name, _)| *name == suffix) {
            Some((_, factor)) => *factor,
            None if suffix.is_empty() && unit.is_empty() => 1.0,
            None if unit.is_empty() => return Err(format!("{:?} is no plain number", self.bound)),
            None => {
                let names: Vec<&str> =
                    unit.iter().map(|(name, _)| *name).filter(|it| !it.is_empty()).collect();
                return Err(format!("{} is counted in {}", self.row.key, names.join(", ")));
            }
        };
        match number {
            Ok(number) if number.is_finite() => {
                let bound = number * factor;
                Ok(if self.is_above { Goal::AtMost(bound) } else { Goal::AtLeast(bound) })
            }
            _ => Err(format!("{:?} is no number", self.bound)),
        }
    }
}

fn row(name: &str) -> Result<&'static MetricRow, String> {
    let key = name.replace('_', "-");
    let key = SHORT.iter().find(|(short, _)| *short == key).map_or(key.as_str(), |(_, key)| key);
    let known: Vec<&str> = METRICS.iter().map(|row| row.key).collect();
    let found = METRICS.iter().find(|row| row.key == key);
    found.ok_or_else(|| format!("there is no metric {name:?}; {}", instead(key, &known)))
}

/// Units a bound may be written in, and what one is in the metric's own.
fn units(unit: MetricUnit) -> &'static [(&'static str, f64)] {
    match unit {
        MetricUnit::Micros => &[("ns", 1e-3), ("us", 1.0), ("µs", 1.0), ("ms", 1e3), ("s", 1e6)],
        MetricUnit::Nanos => &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)],
        MetricUnit::PerSecond => &[("", 1.0), ("/s", 1.0)],
        MetricUnit::Count => &[],
        MetricUnit::Share => &[("%", 0.01)],
        MetricUnit::Bytes => &[("B", 1.0), ("KiB", 1024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0)],
    }
}
