//! The activity of each thread, by name: first those of published runs next to the published figures, then all.

use weir_record::{published::PublishedRun, threads::ThreadUse};

use crate::{
    format,
    language::localized,
    metrics,
    section::{Content, Section},
    table::Table,
    titles,
    view::View,
    words::Word,
};

/// The section.
pub(crate) fn section(view: &View<'_>) -> Content {
    Content::unless(view.result.threads.is_empty(), || {
        let published = published(view);
        let tables = (!published.rows.is_empty()).then_some(published).into_iter().chain([all(view)]);
        Section { tables: tables.collect(), ..Section::new(Word::ThreadsTitle, Word::ThreadsHelp) }
    })
}

/// Each thread separately.
fn all(view: &View<'_>) -> Table {
    let row = |it: &ThreadUse| {
        let mut row = vec![view.cell_label(&it.cell_id), it.arm.clone(), process(view, it), it.name.clone()];
        row.extend(switches(it));
        row.push(format::spread(it.cpus, |cpus| format!("{cpus:.2}")));
        row.push(format::spread(it.run_delay_ns, format::nanos));
        row
    };
    let rows = view.cells.iter().flat_map(|cell| view.result.threads.iter().filter(|it| it.cell_id == *cell));
    let text = [Word::Cell, Word::Arm, Word::ThreadProcess, Word::ThreadName].map(|word| view.word(word));
    let one = metrics::one_of_study(view);
    let queued = view.word(Word::CallQueued);
    let mut head: Vec<String> = text.map(str::to_owned).to_vec();
    head.extend(switch_heads(view));
    head.extend([view.word(Word::ThreadCpus).to_owned(), format!("{queued} / {one}")]);
    Table::with_head(head, 4, rows.map(row).collect())
}

fn switch_heads(view: &View<'_>) -> [String; 4] {
    let one = metrics::one_of_study(view);
    ["cswch/s".to_owned(), "nvcswch/s".to_owned(), format!("cswch/{one}"), format!("nvcswch/{one}")]
}

fn switches(it: &ThreadUse) -> [String; 4] {
    [
        format::spread(it.per_second.0, format::grouped),
        format::spread(it.per_second.1, format::grouped),
        format::spread(it.per_message.0, format::per_message),
        format::spread(it.per_message.1, format::per_message),
    ]
}

/// Its process: the arm's, or one beside it.
fn process(view: &View<'_>, it: &ThreadUse) -> String {
    match it.node.as_str() {
        "" if view.result.spec.is_orders() => "gateway".to_owned(),
        "" => view.language.choose(["server", "서버", "服务器"]).to_owned(),
        node => node.to_owned(),
    }
}

/// Published threads next to those of the corresponding arm: the busiest next to the busiest.
fn published(view: &View<'_>) -> Table {
    let runs = &view.result.spec.published_runs;
    let of_run = |run: &PublishedRun| {
        let of_cell = |cell: &String| published_rows(view, run, cell);
        run.cells.iter().flat_map(of_cell).collect::<Vec<_>>()
    };
    let mut head =
        [Word::PublishedRun, Word::Cell, Word::Arm].map(|word| view.word(word).to_owned()).to_vec();
    head.push(view.word(Word::ThreadName).to_owned());
    head.extend(
        ["cswch/s", "nvcswch/s"]
            .map(|name| localized!(view.language, "published {name}", "{name}(발표)", "{name}（公布）")),
    );
    head.extend(switch_heads(view));
    Table::with_head(head, 4, runs.iter().flat_map(of_run).collect())
}

fn published_rows(view: &View<'_>, run: &PublishedRun, cell: &str) -> Vec<Vec<String>> {
    let is_own = |it: &&ThreadUse| it.cell_id == cell && it.arm == run.arm && it.node.is_empty();
    let mut measured = view.result.threads.iter().filter(is_own);
    let row = |(voluntary, involuntary): &(f64, f64)| {
        let own = measured.next();
        let about = format!("{} {}", titles::localized(&run.source, view.language), run.name);
        let mut row = vec![about, view.cell_label(cell), run.arm.clone()];
        row.push(own.map_or_else(|| format::ABSENT.to_owned(), |own| own.name.clone()));
        row.extend([format::grouped(*voluntary), format::grouped(*involuntary)]);
        row.extend(own.map_or_else(|| [format::ABSENT; 4].map(str::to_owned), switches));
        row
    };
    run.threads.iter().map(row).collect()
}
