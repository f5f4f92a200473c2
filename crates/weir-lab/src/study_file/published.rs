//! Published figures that a study file shows beside its own.

use weir_record::{
    metric::Metric,
    metric_rows::METRICS,
    published::{Cause, PublishedClaim, PublishedRun},
    spec::StudySpec,
    text::Text,
};

use super::{comparisons, one_of};
use crate::{
    limits::{PUBLISHED_RUN_FIGURES_MAX, PUBLISHED_RUNS_MAX, PUBLISHED_THREADS_MAX},
    toml_table::{Entry, FieldError, Table},
};

/// Reads the claims of a file. They may name arms that this machine lacks; if it lacks cells too, claims about such
/// cells are left out.
pub(super) fn read(
    tables: Vec<Table<'_>>,
    spec: &StudySpec,
    (absent, lacks_cells): (&[&str], bool),
) -> Result<Vec<PublishedClaim>, FieldError> {
    let cells: Vec<&str> = spec.cells.iter().map(|cell| cell.id.as_str()).collect();
    let own = spec.arms.iter().map(|arm| arm.name.as_str());
    let arms: Vec<&str> = own.chain(absent.iter().copied()).collect();
    let is_there = |claim: &PublishedClaim| !lacks_cells || cells.contains(&claim.cell_id.as_str());
    let known = (!lacks_cells).then_some(cells.as_slice());
    let claims = tables.into_iter().map(|table| claim(table, known, &arms));
    claims.filter(|claim| claim.as_ref().map_or(true, is_there)).collect()
}

/// A claim. If the cells are known, it must name one of them.
fn claim(mut table: Table<'_>, cells: Option<&[&str]>, arms: &[&str]) -> Result<PublishedClaim, FieldError> {
    let cell = |entry: Entry<'_>| match cells {
        Some(cells) => one_of(entry, "cell", cells),
        None => entry.text(),
    };
    let arm = |entry: Entry<'_>| one_of(entry, "arm", arms);
    let claim = PublishedClaim {
        id: table.required("id", Entry::text)?,
        source: table.required("source", text)?,
        claim: table.required("claim", text)?,
        ratio: table.read("ratio", ratio)?,
        metric: table.required("metric", comparisons::metric)?,
        cell_id: table.required("cell", cell)?,
        arm: table.required("arm", arm)?,
        baseline: table.required("baseline", arm)?,
        explanation: table.required("explanation", text)?,
        causes: table
            .tables("causes")?
            .into_iter()
            .map(|pair| cause(pair, arms))
            .collect::<Result<_, _>>()?,
    };
    table.finish(|_| None)?;
    Ok(claim)
}

/// Reads published runs with their figures. A run whose cells this machine lacks is left out.
pub(super) fn runs(
    tables: Vec<Table<'_>>,
    known: &comparisons::Known<'_>,
) -> Result<Vec<PublishedRun>, FieldError> {
    if let Some(table) = tables.get(PUBLISHED_RUNS_MAX) {
        let message = format!("{} runs; at most {PUBLISHED_RUNS_MAX} are allowed", tables.len());
        return Err(FieldError::new(table.at(), "published_run", message));
    }
    let runs = tables.into_iter().map(|table| run(table, known));
    runs.filter(|run| run.as_ref().map_or(true, |run| !run.cells.is_empty())).collect()
}

fn run(mut table: Table<'_>, known: &comparisons::Known<'_>) -> Result<PublishedRun, FieldError> {
    let of = table.required("of", |entry| known.side(entry))?;
    let [arm] = of.arms.as_slice() else {
        return Err(of.wrong("name the one arm that does the same: of = { arm = \"…\" }".to_owned()));
    };
    let run = PublishedRun {
        name: table.required("name", Entry::text)?,
        source: table.required("source", text)?,
        about: table.required("about", text)?,
        arm: arm.clone(),
        // Published figures are of closed loops.
        cells: known
            .places(&of, (Metric::Throughput, None))?
            .into_iter()
            .map(|(_, cell)| cell.id.clone())
            .collect(),
        figures: table.read("figures", figures)?.unwrap_or_default(),
        threads: table.read("threads", threads)?.unwrap_or_default(),
    };
    table.finish(|_| None)?;
    Ok(run)
}

/// Figures by metric, in the metric's unit.
fn figures(entry: Entry<'_>) -> Result<Vec<(Metric, f64)>, FieldError> {
    let mut table = entry.table()?;
    let mut found = Vec::new();
    for row in METRICS {
        let figure = |entry: Entry<'_>| {
            let wrong = entry.wrong("it is no figure; write a number, 0 or more".to_owned());
            entry.fraction().and_then(|it| if it.is_finite() && it >= 0.0 { Ok(it) } else { Err(wrong) })
        };
        found.extend(table.read(row.key, figure)?.map(|figure| (row.metric, figure)));
    }
    if found.len() > PUBLISHED_RUN_FIGURES_MAX {
        return Err(table.wrong(&format!("at most {PUBLISHED_RUN_FIGURES_MAX} figures are allowed")));
    }
    table.finish(|_| None)?;
    Ok(found)
}

/// Context switches a second of each thread: voluntary and involuntary.
fn threads(entry: Entry<'_>) -> Result<Vec<(f64, f64)>, FieldError> {
    let (at, key) = (entry.at, entry.key.clone());
    let pair = |entry: Entry<'_>| {
        let wrong = entry.wrong("write cswch/s and nvcswch/s of each thread: [[21_861, 4]]".to_owned());
        let rates: Vec<f64> = entry.list()?.into_iter().map(Entry::fraction).collect::<Result<_, _>>()?;
        match rates[..] {
            [voluntary, involuntary] if rates.iter().all(|rate| rate.is_finite() && *rate >= 0.0) => {
                Ok((voluntary, involuntary))
            }
            _ => Err(wrong),
        }
    };
    let found: Vec<(f64, f64)> = entry.list()?.into_iter().map(pair).collect::<Result<_, _>>()?;
    if found.len() > PUBLISHED_THREADS_MAX {
        return Err(FieldError::new(
            at,
            &key,
            format!("at most {PUBLISHED_THREADS_MAX} threads are allowed"),
        ));
    }
    Ok(found)
}

fn cause(mut table: Table<'_>, arms: &[&str]) -> Result<Cause, FieldError> {
    let arm = |entry: Entry<'_>| one_of(entry, "arm", arms);
    let cause = Cause { arm: table.required("arm", arm)?, baseline: table.required("baseline", arm)? };
    table.finish(|_| None)?;
    Ok(cause)
}

/// A sentence: in English alone, or in several languages.
pub(super) fn text(entry: Entry<'_>) -> Result<Text, FieldError> {
    if entry.is_text() {
        return entry.text().map(Text::from);
    }
    let mut table = entry.table()?;
    let text = Text {
        en: table.required("en", Entry::text)?,
        ko: table.read("ko", Entry::text)?,
        zh: table.read("zh", Entry::text)?,
    };
    table.finish(|_| None)?;
    Ok(text)
}

/// A ratio, or the two figures to divide.
fn ratio(entry: Entry<'_>) -> Result<f64, FieldError> {
    let wrong =
        entry.wrong("write one number above 0, or the two figures: [of the arm, of the baseline]".to_owned());
    let figures: Vec<f64> = if entry.is_list() {
        entry.list()?.into_iter().map(Entry::fraction).collect::<Result<_, _>>()?
    } else {
        vec![entry.fraction()?, 1.0]
    };
    match figures[..] {
        [arm, baseline] if arm > 0.0 && baseline > 0.0 && (arm / baseline).is_finite() => Ok(arm / baseline),
        _ => Err(wrong),
    }
}
