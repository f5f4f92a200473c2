//! Figures that only orders through a gateway have.

use weir_record::{
    metric::Metric,
    study::{ArmSummary, Spread},
};

use crate::{
    format::{self, ABSENT},
    metrics,
    section::{Content, Section},
    table::Table,
    view::View,
    words::Word,
};

/// Everything an order costs, by cell and arm.
pub(crate) fn section(view: &View<'_>) -> Content {
    Content::unless(view.result.arms.iter().all(|summary| summary.orders.is_none()), || {
        Section::of_table(Word::OrderFiguresTitle, Word::OrderFiguresHelp, figures_table(view))
    })
}

fn figures_table(view: &View<'_>) -> Table {
    let with_orders = |summary: &&ArmSummary| summary.orders.is_some();
    let summaries = view.cells.iter().flat_map(|cell| view.summaries(cell)).filter(with_orders);
    let rows = summaries.map(|summary| {
        let orders = summary.orders.unwrap_or_default();
        let own = |metric: Metric| {
            let spread = summary.figures(metric).map(|it| it.spread);
            spread.map_or_else(
                || ABSENT.to_owned(),
                |spread| format::spread(spread, |value| metrics::bare(metric, value)),
            )
        };
        vec![
            view.cell_label(&summary.cell_id),
            summary.arm.clone(),
            own(Metric::SwitchesPerMessage),
            own(Metric::InvoluntarySwitchesPerMessage),
            spread(orders.wakes_per_order, format::per_message),
            spread(orders.wakes_per_handoff, format::per_message),
            spread(orders.handoffs_per_drain, format::per_message),
            own(Metric::ServerCpuPerMessage),
            own(Metric::LatencyP50),
            spread(orders.p99_us, format::micros),
            median(orders.handed_off_share, format::percent),
        ]
    });
    let word = |word: Word| view.word(word).to_owned();
    let head = [
        word(Word::Cell),
        word(Word::Arm),
        metrics::short(view, Metric::SwitchesPerMessage),
        metrics::short(view, Metric::InvoluntarySwitchesPerMessage),
        word(Word::Wakes),
        word(Word::WakesPerHandoff),
        word(Word::HandoffsPerDrain),
        metrics::short(view, Metric::ServerCpuPerMessage),
        word(Word::RoundTripP50),
        word(Word::RoundTripP99),
        word(Word::HandedOff),
    ];
    Table::with_head(head.to_vec(), 2, rows.collect())
}

fn median(spread: Option<Spread>, text: fn(f64) -> String) -> String {
    spread.map_or_else(|| ABSENT.to_owned(), |spread| text(spread.median))
}

fn spread(spread: Option<Spread>, text: fn(f64) -> String) -> String {
    spread.map_or_else(|| ABSENT.to_owned(), |spread| format::spread(spread, text))
}
