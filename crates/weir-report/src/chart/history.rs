//! A row for each run of a history, over one axis: its effect against the reference with its interval.

use maud::{Markup, html};
use weir_record::metric::Metric;

use super::{
    Row,
    forest::{Drawn, axis_in, draw_of_arm},
    rows_with,
    scale::Scale,
};
use crate::{language::Language, section::Subject};

/// Most rows of one plot, the newest; its table has more.
const ROWS_MAX: usize = 120;

/// Least width of an axis of differences, to each side.
const DIFFERENCE_MIN: f64 = 0.01;

/// What is drawn of one series.
pub(crate) struct HistoryPlot {
    pub metric: Metric,
    pub is_difference: bool,
    pub rows: Vec<HistoryRow>,
}

/// A run, in words and numbers.
pub(crate) struct HistoryRow {
    /// What it shares with the rows around it; empty where nothing is.
    pub group: String,
    pub text: String,
    pub number: String,
    pub verdict: String,
    /// What its user wrote; it is shown with the mark.
    pub note: String,
    pub figure: Option<f64>,
    pub interval: Option<(f64, f64)>,
    pub is_void: bool,
}

/// The plot.
pub(crate) fn history(language: Language, plot: &HistoryPlot) -> Markup {
    let shown = &plot.rows[plot.rows.len().saturating_sub(ROWS_MAX)..];
    let ends = |row: &HistoryRow| {
        let interval = row.interval.into_iter().flat_map(|(low, high)| [low, high]);
        interval.chain(row.figure).collect::<Vec<f64>>()
    };
    let values = shown.iter().flat_map(ends);
    let scale = match plot.is_difference {
        true => Scale::differences(values, DIFFERENCE_MIN, 0.0, 100.0),
        false => Scale::ratios(values, 0.0, 100.0),
    };
    let none = if plot.is_difference { 0.0 } else { 1.0 };
    let drawn: Vec<Row> = shown.iter().map(|it| row(it, (&scale, none))).collect();
    let axis = axis_in(language, plot.metric, plot.is_difference, &scale);
    // No row has an arm, whose place would be asked for.
    html! { (rows_with(&drawn, &axis, |_| 0)) }
}

fn row(row: &HistoryRow, (scale, none): (&Scale, f64)) -> Row {
    let HistoryRow { group, text, number, verdict, note, figure, interval, is_void } = row;
    let drawn = Drawn { value: *figure, interval: *interval, band: None, units: Vec::new(), none };
    let title = format!("{text}: {number} {verdict} {note}");
    Row {
        group: group.clone(),
        subject: Subject { arm: None, text: text.clone() },
        plot: draw_of_arm(scale, &drawn, (0, "mark"), title.trim_end(), ""),
        number: number.clone(),
        verdict: verdict.clone(),
        is_void: *is_void,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_has_a_row_and_names_are_escaped() {
        let row = |text: &str, figure: Option<f64>| HistoryRow {
            group: "A · <app>".to_owned(),
            text: text.to_owned(),
            number: "1.000".to_owned(),
            verdict: "=".to_owned(),
            note: "\"<b>".to_owned(),
            figure,
            interval: figure.map(|it| (0.9 * it, 1.1 * it)),
            is_void: false,
        };
        let rows = vec![row("<one>", Some(1.0)), row("two", None), row("three", Some(f64::NAN))];
        let plot = HistoryPlot { metric: Metric::CommandCpu, is_difference: false, rows };
        let drawn = history(Language::English, &plot).into_string();
        assert!(
            drawn.contains("&lt;one&gt;") && !drawn.contains("<one>") && !drawn.contains("<b>"),
            "{drawn}"
        );
        assert_eq!(drawn.matches("class=\"group\"").count(), 1, "{drawn}");
        assert!(!drawn.contains("NaN"), "{drawn}");
    }

    #[test]
    fn there_are_so_many_rows_and_no_more() {
        let row = |number: usize| HistoryRow {
            group: String::new(),
            text: format!("run {number}."),
            number: String::new(),
            verdict: "=".to_owned(),
            note: String::new(),
            figure: Some(0.0),
            interval: None,
            is_void: false,
        };
        let rows: Vec<HistoryRow> = (0..=ROWS_MAX).map(row).collect();
        let plot = HistoryPlot { metric: Metric::CommandUserCpu, is_difference: true, rows };
        let drawn = history(Language::English, &plot).into_string();
        assert!(!drawn.contains("run 0.") && drawn.contains(&format!("run {ROWS_MAX}.")), "the newest stay");
    }
}
