//! Published levels of arms over time, which a study file shows beside the parts of its series.

use weir_record::{
    spec::StudySpec,
    wait_series::{LevelOf, LevelSense, PublishedLevel, SeriesKind, SeriesMetric},
};

use super::{one_of, published::text};
use crate::{
    limits::{Level, PUBLISHED_LEVELS_MAX},
    toml_table::{Entry, FieldError, Table},
};

const KINDS: [(&str, SeriesKind); 2] = [("load", SeriesKind::Load), ("setting", SeriesKind::Setting)];

const METRICS: [(&str, SeriesMetric); 4] = [
    ("miss-rate", SeriesMetric::MissRate),
    ("iops", SeriesMetric::Iops),
    ("effective-sleep", SeriesMetric::EffectiveSleep),
    ("cpu-share", SeriesMetric::CpuShare),
];

const OF: [(&str, LevelOf); 3] =
    [("mean", LevelOf::Mean), ("peak", LevelOf::Peak), ("first", LevelOf::First)];

const SENSES: [(&str, LevelSense); 3] =
    [("about", LevelSense::About), ("at-least", LevelSense::AtLeast), ("at-most", LevelSense::AtMost)];

/// Reads the levels. They may name an arm that this machine lacks.
pub(super) fn read(
    tables: Vec<Table<'_>>,
    spec: &StudySpec,
    absent: &[&str],
) -> Result<Vec<PublishedLevel>, FieldError> {
    if let Some(table) = tables.get(PUBLISHED_LEVELS_MAX) {
        let message = format!("{} levels; at most {PUBLISHED_LEVELS_MAX} are allowed", tables.len());
        return Err(FieldError::new(table.at(), "published_level", message));
    }
    let own = spec.arms.iter().map(|arm| arm.name.as_str());
    let arms: Vec<&str> = own.chain(absent.iter().copied()).collect();
    tables.into_iter().map(|table| level(table, &arms)).collect()
}

fn level(mut table: Table<'_>, arms: &[&str]) -> Result<PublishedLevel, FieldError> {
    let (of, metric) = (
        table.read("of", |entry| chosen(entry, "figure of a part", &OF))?.unwrap_or(LevelOf::Mean),
        table.required("metric", |entry| chosen(entry, "figure over time", &METRICS))?,
    );
    if of == LevelOf::First && metric != SeriesMetric::Iops {
        return Err(table.wrong("of = \"first\" is a share of the first part's iops; say metric = \"iops\""));
    }
    let level = PublishedLevel {
        claim: table.required("claim", text)?,
        kind: table.required("series", |entry| chosen(entry, "series", &KINDS))?,
        arm: table.required("arm", |entry| one_of(entry, "arm", arms))?,
        background_cores: table.required("cores", |entry| entry.level(Level::BackgroundCoreStep))?,
        metric,
        of,
        sense: table.required("sense", |entry| chosen(entry, "sense", &SENSES))?,
        level: table.required("level", figure)?,
    };
    table.finish(|_| None)?;
    Ok(level)
}

fn chosen<V: Copy>(entry: Entry<'_>, what: &str, known: &[(&str, V)]) -> Result<V, FieldError> {
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    let wrong = entry.wrong(format!("it is no {what}"));
    let name = one_of(entry, what, &names)?;
    known.iter().find(|(own, _)| *own == name).map(|(_, value)| *value).ok_or(wrong)
}

fn figure(entry: Entry<'_>) -> Result<f64, FieldError> {
    let wrong = entry.wrong("it is no figure; write a number, 0 or more".to_owned());
    entry.fraction().and_then(|it| if it.is_finite() && it >= 0.0 { Ok(it) } else { Err(wrong) })
}
