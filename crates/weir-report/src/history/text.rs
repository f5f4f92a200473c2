//! A history for a terminal: the rows of each series with a drawing of their intervals beside them, where there is
//! room.

use weir_record::{
    effect::EffectScale,
    history::{History, HistoryRun, HistorySeries},
};

use super::{break_by, facts, left_out, letter, runs, title};
use crate::{
    display::{columns, pad_end, printable, truncate, wrap},
    format,
    language::{Language, localized},
};

/// Narrowest and widest drawing.
const PLOT_COLUMNS: (usize, usize) = (16, 48);

/// Narrowest and widest text.
const WIDTH_COLUMNS: (usize, usize) = (60, 200);

/// What a terminal of this many columns shows.
pub fn terminal(history: &History, language: Language, width_columns: usize) -> String {
    let width = width_columns.clamp(WIDTH_COLUMNS.0, WIDTH_COLUMNS.1);
    let mut lines: Vec<String> = Vec::new();
    for series in &history.series {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(wrap(&title(series, language), width));
        lines.push(String::new());
        lines.extend(rows(series, language, width));
        lines.push(String::new());
        lines.extend(facts(series, language).iter().flat_map(|line| wrap(line, width)));
    }
    let missing = left_out(history, language);
    if !missing.is_empty() {
        lines.push(String::new());
        lines.extend(missing.iter().flat_map(|line| wrap(line, width)));
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A line for each run below a head; before a run that begins another stretch a line says so.
fn rows(series: &HistorySeries, language: Language, width: usize) -> Vec<String> {
    let cells = runs::table(series, language);
    let all = || std::iter::once(&cells.head).chain(&cells.rows);
    let widths: Vec<usize> = (0..cells.head.len())
        .map(|column| all().map(|row| columns(&row[column])).max().unwrap_or_default())
        .collect();
    let used: usize = widths.iter().map(|width| width + 2).sum();
    let room = width.saturating_sub(used).min(PLOT_COLUMNS.1);
    let plot = (room >= PLOT_COLUMNS.0).then(|| Axis::of(series, room));
    let line = |row: &[String]| {
        row.iter().zip(&widths).map(|(cell, width)| pad_end(cell, *width)).collect::<Vec<_>>().join("  ")
    };
    let beside = |text: String, drawn: Option<String>| match drawn {
        Some(drawn) => format!("{text}  {drawn}"),
        None => text,
    };
    let mut lines = vec![beside(line(&cells.head), plot.as_ref().map(Axis::head))];
    let mut seen: Vec<u32> = series.stretches.iter().take(1).map(|stretch| stretch.number).collect();
    for (run, row) in series.runs.iter().zip(&cells.rows) {
        if !seen.contains(&run.stretch) {
            seen.push(run.stretch);
            lines.extend(broken(series, run, language).iter().flat_map(|line| wrap(line, width)));
        }
        lines.push(beside(line(row), plot.as_ref().map(|axis| axis.drawn(run))));
        lines.extend(run.origin.note.iter().map(|note| truncate(&format!("  {}", printable(note)), width)));
    }
    lines
}

/// Why the next rows cannot be compared with those above them.
fn broken(series: &HistorySeries, run: &HistoryRun, language: Language) -> Option<String> {
    let stretch = series.stretches.iter().find(|it| it.number == run.stretch)?;
    let (letter, why) = (letter(stretch.number), break_by(stretch.break_by?, language));
    Some(localized!(language, "-- {letter}: {why}", "-- {letter}: {why}", "-- {letter}：{why}"))
}

/// Where values stand in a drawing of this many columns: ratios on a scale of logarithms.
struct Axis {
    low: f64,
    high: f64,
    is_ratio: bool,
    width: usize,
}

/// Least reach of an axis to each side: 2 % of a ratio.
const REACH_MIN: f64 = 0.02;

/// Largest reach of an axis of ratios, as a logarithm: a factor of 100.
const REACH_MAX: f64 = 4.605;

impl Axis {
    fn of(series: &HistorySeries, width: usize) -> Self {
        let is_ratio = series.scale == EffectScale::Ratio;
        let mut axis = Self { low: -REACH_MIN, high: REACH_MIN, is_ratio, width };
        let ends = |run: &HistoryRun| {
            let found = run.from_reference.unwrap_or_default();
            let interval = found.interval.into_iter().flat_map(|(low, high)| [low, high]);
            interval.chain(found.figure).collect::<Vec<f64>>()
        };
        let values = series.runs.iter().flat_map(ends);
        let values: Vec<f64> = values.filter_map(|value| axis.on_scale(value)).collect();
        for value in values {
            axis.low = axis.low.min(value);
            axis.high = axis.high.max(value);
        }
        axis
    }

    fn on_scale(&self, value: f64) -> Option<f64> {
        let value = if self.is_ratio { value.ln().clamp(-REACH_MAX, REACH_MAX) } else { value };
        value.is_finite().then_some(value)
    }

    /// The column of a value on the scale.
    fn column(&self, value: f64) -> usize {
        let share = (value - self.low) / (self.high - self.low);
        let last = self.width.saturating_sub(1);
        ((share * last as f64).round() as usize).min(last)
    }

    /// The ends of the axis above the rows.
    fn head(&self) -> String {
        let shown = |value: f64| match self.is_ratio {
            true => format::ratio(Some(value.exp())),
            false => format::per_message(value),
        };
        let (low, high) = (shown(self.low), shown(self.high));
        let between = self.width.saturating_sub(columns(&low) + columns(&high));
        format!("{low}{}{high}", " ".repeat(between))
    }

    /// An interval with its figure, and a line where nothing differs.
    fn drawn(&self, run: &HistoryRun) -> String {
        let mut cells = vec![' '; self.width];
        cells[self.column(0.0)] = '│';
        let found = run.from_reference.unwrap_or_default();
        let interval =
            found.interval.and_then(|(low, high)| Some((self.on_scale(low)?, self.on_scale(high)?)));
        if let Some((low, high)) = interval.map(|(low, high)| (self.column(low), self.column(high))) {
            cells[low..=high.max(low)].fill('─');
            cells[low] = '├';
            cells[high.max(low)] = '┤';
        }
        if let Some(figure) = found.figure.and_then(|figure| self.on_scale(figure)) {
            cells[self.column(figure)] = '●';
        }
        cells.into_iter().collect()
    }
}
