//! The sections of a report between its verdict and its checks, in reading order. Page and document use this list; a
//! new chart or table is a line here.

use crate::{
    added_cost, aggregate, cause, chart, chart_page,
    cited::of_no_cell,
    connection_costs, contrasts, cpu_account, evidence, goals, guidance, io_models, kernels, published,
    section::{Content, Section},
    strace, threads,
    view::View,
    words::Word,
};

/// The list.
const SECTIONS: [fn(&View<'_>) -> Content; 30] = [
    chart::frontier,
    chart::wait_series,
    guidance::section,
    chart::map,
    contrasts::section,
    kernels::section,
    chart_page::section,
    chart::latency_map,
    connection_costs::section,
    chart::forest,
    goals::section,
    cause::section,
    added_cost::section,
    aggregate::section,
    published::runs,
    claims,
    published::causes,
    waiting,
    chart::bars,
    threads::section,
    chart::curves,
    chart::why,
    cpu_account::section,
    chart::accounts,
    evidence::section,
    chart::call_overhead,
    strace::section,
    listening,
    chart::timeline,
    chart::simulated,
];

/// The nonempty sections, and the reasons for the empty ones.
pub(crate) fn all(view: &View<'_>) -> (Vec<Section>, Vec<Word>) {
    let (mut shown, mut empty) = (Vec::new(), Vec::new());
    for content in SECTIONS.iter().map(|section| section(view)) {
        match content {
            Content::Shown(section) => shown.push(*section),
            Content::Nothing(reason) if !empty.contains(&reason) => empty.push(reason),
            Content::Nothing(_) | Content::Absent => {}
        }
    }
    (shown, empty)
}

fn claims(view: &View<'_>) -> Content {
    Content::unless(!published::has_claims(view), || {
        Section::of_table(Word::PublishedTitle, Word::PublishedHelp, published::claims(view))
    })
}

fn waiting(view: &View<'_>) -> Content {
    Content::unless(!io_models::has_io_models(view), || {
        Section::of_table(Word::IoModelsTitle, Word::IoModelsHelp, io_models::table(view))
    })
}

fn listening(view: &View<'_>) -> Content {
    Content::unless(view.result.listening.is_empty(), || Section {
        sentences: of_no_cell(published::ladder(view)),
        ..Section::of_table(Word::ListeningTitle, Word::ListeningHelp, published::listening(view))
    })
}
