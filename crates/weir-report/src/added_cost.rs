//! What arms add to the baseline's cost: the least costly against the reference in a sentence, and the numbers.

use weir_record::{
    added_cost::{AddedCost, AddedCosts, LeastCost},
    figure::PairedDifference,
    goal::{AnswerScale, Outcome},
    metric::Metric,
};

use crate::{
    cited::Sentence,
    format::{self, ABSENT},
    language::{Language, localized},
    metrics,
    section::{Content, Section},
    table::Table,
    view::View,
    words::Word,
};

/// The sentence of the primary comparison's cell; `None` where the study asks something else.
pub(crate) fn headline(view: &View<'_>) -> Option<String> {
    let cell_id = &view.primary()?.cell_id;
    let own = view.result.added_costs.iter().filter(|it| it.asked.cells.contains(cell_id));
    own.into_iter().find_map(|it| sentence(view, it))
}

/// The section, with a sentence for each answer.
pub(crate) fn section(view: &View<'_>) -> Content {
    let all = &view.result.added_costs;
    Content::unless(!all.iter().any(has_figures), || Section {
        sentences: all.iter().filter_map(|it| with_cells(view, it)).collect(),
        tables: tables(view),
        ..Section::new(Word::AddedCostTitle, Word::AddedCostHelp)
    })
}

/// A sentence with its cells.
fn with_cells(view: &View<'_>, found: &AddedCosts) -> Option<Sentence> {
    Some(Sentence { text: sentence(view, found)?, cells: found.asked.cells.clone() })
}

fn has_figures(found: &AddedCosts) -> bool {
    found.costs.iter().any(|cost| !cost.added.is_empty())
}

/// `uring: naive and mesh add to the server CPU per order of owner: …; mesh, the least costly of 5 arms, …`.
fn sentence(view: &View<'_>, found: &AddedCosts) -> Option<String> {
    let LeastCost { arm, arms, outcome } = found.least.as_ref()?;
    let asked = &found.asked;
    let (reference, baseline) = (&asked.reference, view.baseline()?);
    let noun = metrics::prose(view, *asked.metrics.first()?);
    let group = match asked.group.as_str() {
        "" => String::new(),
        group => format!("{group}{}", view.language.colon()),
    };
    let labels = view.labels_apart(&asked.cells);
    let cells = asked.cells.iter().zip(labels).filter_map(|(cell, label)| of_cell(view, found, cell, &label));
    let cells = cells.collect::<Vec<_>>().join(view.language.semicolon());
    let within = within(view, outcome, (arm, *arms), (reference, asked.share_max?));
    Some(localized!(
        view.language,
        "{group}{reference} and {arm} add to the {noun} of {baseline}: {cells}; {within}.",
        "{group}{baseline} 대비 추가되는 {noun}({reference} / {arm}): {cells}. {within}.",
        "{group}在 {baseline} 之上增加的{noun}（{reference} / {arm}）：{cells}；{within}。",
    ))
}

/// What came of the limit.
fn within(
    view: &View<'_>,
    outcome: &Outcome,
    (arm, arms): (&str, u32),
    (reference, share_max): (&str, f64),
) -> String {
    let limit = format::bound(share_max);
    match outcome {
        Outcome::Met => localized!(
            view.language,
            "{arm}, the least costly of {arms}, adds at most {limit}× of what {reference} adds in every cell",
            "추가 비용이 가장 적은 {arm}(대상 {arms}개 중): 모든 조건에서 {reference} 추가 비용의 {limit}배 이하입니다",
            "{arms} 个方案中增加最少的 {arm} 在所有条件下都不超过 {reference} 所增加的 {limit} 倍",
        ),
        Outcome::Missed => localized!(
            view.language,
            "{arm}, the least costly of {arms}, adds more than {limit}× of what {reference} adds in some cell",
            "추가 비용이 가장 적은 {arm}(대상 {arms}개 중): {reference} 추가 비용의 {limit}배를 넘는 조건이 있습니다",
            "{arms} 个方案中增加最少的 {arm} 在某个条件下超过 {reference} 所增加的 {limit} 倍",
        ),
        Outcome::Open => localized!(
            view.language,
            "whether {arm}, the least costly of {arms}, adds at most {limit}× of what {reference} adds in every cell stays \
             open",
            "추가 비용이 가장 적은 {arm}(대상 {arms}개 중): 모든 조건에서 {reference} 추가 비용의 {limit}배 이하인지는 판정할 수 없습니다",
            "{arms} 个方案中增加最少的 {arm} 是否在所有条件下都不超过 {reference} 所增加的 {limit} 倍，尚无法判定",
        ),
    }
}

/// `one order in flight 12.1 µs and 5.2 µs, 0.43× [0.40, 0.47]`.
fn of_cell(view: &View<'_>, found: &AddedCosts, cell: &str, label: &str) -> Option<String> {
    let metric = *found.asked.metrics.first()?;
    let cost = |arm: &str| found.cost(cell, arm);
    let figure = |cost: &AddedCost| Some(metrics::figure(view, metric, cost.of(metric)?.difference));
    let least = cost(&found.least.as_ref()?.arm)?;
    let (reference, own) = (figure(cost(&found.asked.reference)?)?, figure(least)?);
    let share = least.share.map(|share| format::ratio_in_prose(share.ratio, share.interval));
    let share = match (share, view.language) {
        (None, _) => String::new(),
        (Some((number, range)), Language::English) => format!(", {number}×{range}"),
        (Some((number, range)), Language::Korean) => format!(", {number}배{range}"),
        (Some((number, range)), Language::Chinese) => format!("，{number} 倍{range}"),
    };
    Some(localized!(
        view.language,
        "{label} {reference} and {own}{share}",
        "{label} {reference} / {own}{share}",
        "{label} {reference} / {own}{share}",
    ))
}

/// Costs by cell and arm: one table for all that have the same columns.
fn tables(view: &View<'_>) -> Vec<Table> {
    let mut tables: Vec<(Vec<String>, Vec<Vec<String>>)> = Vec::new();
    for found in view.result.added_costs.iter().filter(|it| has_figures(it)) {
        let (head, rows) = (head(view, found), found.costs.iter().map(|cost| row(view, found, cost)));
        match tables.iter_mut().find(|(own, _)| *own == head) {
            Some((_, own)) => own.extend(rows),
            None => tables.push((head, rows.collect())),
        }
    }
    let position = |row: &Vec<String>| view.cells.iter().position(|cell| view.cell_label(cell) == row[0]);
    tables.iter_mut().for_each(|(_, rows)| rows.sort_by_key(position));
    tables.into_iter().map(|(head, rows)| Table::with_head(head, 2, rows)).collect()
}

fn head(view: &View<'_>, found: &AddedCosts) -> Vec<String> {
    let reference = &found.asked.reference;
    let added = |metric: &Metric| format!("+ {}", metrics::short(view, *metric));
    let mut head = vec![view.word(Word::Cell).to_owned(), view.word(Word::Arm).to_owned()];
    head.extend(found.asked.metrics.iter().map(added));
    head.push(localized!(view.language, "of {reference}", "{reference} 대비", "相对 {reference}"));
    head.push(view.word(Word::Pairs).to_owned());
    head
}

fn row(view: &View<'_>, found: &AddedCosts, cost: &AddedCost) -> Vec<String> {
    let added = |metric: &Metric| difference(view, *metric, cost.of(*metric));
    let pairs = cost.added.first().map_or(0, |(_, difference)| difference.pairs);
    let mut row = vec![view.cell_label(&cost.cell_id), cost.arm.clone()];
    row.extend(found.asked.metrics.iter().map(added));
    row.push(format::ratio_and_interval(
        cost.share.map(|it| it.ratio),
        cost.share.and_then(|it| it.interval),
    ));
    row.push(pairs.to_string());
    row
}

fn difference(view: &View<'_>, metric: Metric, found: Option<PairedDifference>) -> String {
    let figure = |value: f64| metrics::answered(view, metric, AnswerScale::Difference, value);
    match found {
        None => ABSENT.to_owned(),
        Some(PairedDifference { difference, interval: None, .. }) => figure(difference),
        Some(PairedDifference { difference, interval: Some((low, high)), .. }) => {
            format!("{} [{}, {}]", figure(difference), figure(low), figure(high))
        }
    }
}
