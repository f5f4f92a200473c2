//! A history as a table for other programs: a line for each run, with names that do not depend on a language.

use std::fmt::Write;

use weir_record::{
    history::{History, HistoryFigure, HistoryQuestion, HistoryRun, HistorySeries},
    stable_name,
};

use crate::csv::field;

const HEADER: &str = "study,cell_id,parameters,arm,baseline,metric,scale,began_unix_s,commit,is_dirty,branch,labels,note,\
                      stretch,figure,low,high,level,verdict,reference_figure,reference_low,reference_high,links,change,\
                      reference_name,reference_content,program_content,cpu_model,kernel_release,place\n";

/// The table; the header alone where nothing was found.
pub fn lines(history: &History) -> String {
    let mut text = HEADER.to_owned();
    for series in &history.series {
        series.runs.iter().for_each(|run| line(&mut text, series, run));
    }
    text
}

fn line(text: &mut String, series: &HistorySeries, run: &HistoryRun) {
    let pairs = |all: &mut dyn Iterator<Item = (&String, &String)>| {
        all.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
    };
    let (study, cell_id, parameters) = match &series.of {
        HistoryQuestion::Study { name, cell_id } => (name.as_str(), cell_id.as_str(), String::new()),
        HistoryQuestion::Commands { parameters } => {
            ("", "", pairs(&mut parameters.iter().map(|(key, value)| (key, value))))
        }
    };
    let stretch = series.stretches.iter().find(|it| it.number == run.stretch).cloned().unwrap_or_default();
    let origin = &run.origin;
    let optional = |text: &Option<String>| text.clone().unwrap_or_default();
    let fields = [
        study.to_owned(),
        cell_id.to_owned(),
        parameters,
        series.arm.clone(),
        series.baseline.clone(),
        series.metric.row().key.to_owned(),
        stable_name(&series.scale),
        run.began_unix_s.map(|it| it.to_string()).unwrap_or_default(),
        optional(&origin.commit),
        origin.is_dirty.map(|it| it.to_string()).unwrap_or_default(),
        optional(&origin.branch),
        pairs(&mut origin.labels.iter()),
        optional(&origin.note),
        run.stretch.to_string(),
    ];
    let behind = [
        run.links.to_string(),
        run.change.map(|it| stable_name(&it)).unwrap_or_default(),
        stretch.reference.name,
        stretch.reference.content,
        run.program.content.clone(),
        stretch.cpu_model,
        stretch.kernel_release,
        run.place.clone(),
    ];
    let quoted = |all: &[String]| all.iter().map(|text| field(text)).collect::<Vec<_>>().join(",");
    // Writing into a String cannot fail.
    let _ = writeln!(
        text,
        "{},{},{},{},{},{}",
        quoted(&fields),
        figure(run.effect),
        run.level,
        stable_name(&run.verdict),
        figure(run.from_reference.unwrap_or_default()),
        quoted(&behind),
    );
}

fn figure(found: HistoryFigure) -> String {
    let number =
        |value: Option<f64>| value.filter(|it| it.is_finite()).map(|it| it.to_string()).unwrap_or_default();
    let (low, high) = found.interval.unzip();
    [found.figure, low, high].map(number).join(",")
}
