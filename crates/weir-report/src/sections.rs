//! The sections of a report between its verdict and its checks, in reading order. Page and document use this list; a
//! new chart or table is a line here.

use crate::{
    added_cost, aggregate, cause, chart, chart_page,
    cited::of_no_cell,
    connection_costs, contrasts, cpu_account, evidence, goals, guidance, io_models, kernels, published,
    ring_options,
    section::{
        Content,
        Layer::{self, Findings, Reference},
        Section,
    },
    strace, threads,
    view::View,
    words::Word,
};

/// A section of the list: its place in the page's addresses, its layer, and what builds it.
type Listed = (&'static str, Layer, fn(&View<'_>) -> Content);

/// The list.
const SECTIONS: [Listed; 31] = [
    ("waiting-frontier", Findings, chart::frontier),
    ("over-time", Findings, chart::wait_series),
    ("choice", Findings, guidance::section),
    ("map", Findings, chart::map),
    ("contrasts", Findings, contrasts::section),
    ("kernels", Findings, kernels::section),
    ("charts", Findings, chart_page::section),
    ("latency", Findings, chart::latency_map),
    ("connection-costs", Findings, connection_costs::section),
    ("comparisons", Findings, chart::forest),
    ("goals", Findings, goals::section),
    ("causes", Findings, cause::section),
    ("added-cost", Findings, added_cost::section),
    ("all-trials", Reference, aggregate::section),
    ("published-runs", Findings, published::runs),
    ("published", Findings, claims),
    ("published-causes", Findings, published::causes),
    ("io-models", Reference, waiting),
    ("figures", Findings, chart::bars),
    ("threads", Reference, threads::section),
    ("curves", Findings, chart::curves),
    ("why", Findings, chart::why),
    ("cpu-account", Findings, cpu_account::section),
    ("cpu-accounts", Reference, chart::accounts),
    ("evidence", Reference, evidence::section),
    ("call-cost", Reference, chart::call_overhead),
    ("system-calls", Reference, strace::section),
    ("listening", Reference, listening),
    ("ring-options", Reference, ring_options),
    ("trials-over-time", Reference, chart::timeline),
    ("simulated", Reference, chart::simulated),
];

/// The nonempty sections, and the reasons for the empty ones.
pub(crate) fn all(view: &View<'_>) -> (Vec<Section>, Vec<Word>) {
    let (mut shown, mut empty) = (Vec::new(), Vec::new());
    for (id, layer, section) in SECTIONS {
        match section(view) {
            Content::Shown(section) => shown.push(Section { id, layer, ..*section }),
            Content::Nothing(reason) if !empty.contains(&reason) => empty.push(reason),
            Content::Nothing(_) | Content::Absent => {}
        }
    }
    (shown, empty)
}

/// The options that decide what io_uring costs, for a study that advises on it.
fn ring_options(view: &View<'_>) -> Content {
    let section = view.result.guidance.as_ref().and_then(|_| ring_options::section(view));
    section.map_or(Content::Absent, |section| Content::Shown(Box::new(section)))
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
