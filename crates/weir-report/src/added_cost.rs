//! Added cost of arms over the baseline: a sentence that compares the least costly arm with the reference, and the
//! numbers.

use std::collections::{BTreeMap, BTreeSet};

use weir_record::{
    added_cost::AddedCostSpec,
    effect::{Effect, Question},
    goal::Outcome,
    metric::Metric,
};

use crate::{
    cited::Sentence,
    format,
    language::localized,
    metrics,
    section::{Content, Section},
    table::Table,
    view::View,
    words::Word,
};

/// The rows of one question.
struct Costs<'a> {
    asked: &'a AddedCostSpec,
    /// Added cost of an arm in a cell, by metric.
    added: BTreeMap<(&'a str, &'a str, Metric), &'a Effect>,
    /// Added cost of the first metric as a share of the reference's, for every arm that is compared with it.
    shares: BTreeMap<(&'a str, &'a str), &'a Effect>,
    /// The arm with the smallest maximum share.
    least: Option<&'a Effect>,
    /// Cells and arms in the order of the table.
    subjects: Vec<(&'a str, &'a str)>,
}

impl<'a> Costs<'a> {
    /// Every question of the study, with its rows.
    fn all(view: &View<'a>) -> Vec<Self> {
        let asked = (0..).zip(&view.result.spec.added_costs);
        asked.map(|(place, asked)| Self::of(view, place, asked)).collect()
    }

    fn of(view: &View<'a>, place: u32, asked: &'a AddedCostSpec) -> Self {
        let subject = |row: &'a Effect| (row.cell_id.as_str(), row.arm.as_str());
        let added = view.answering(Question::Added(place)).iter().copied();
        let shares = view.answering(Question::AddedShare(place)).iter().copied();
        let mut seen = BTreeSet::new();
        Self {
            asked,
            added: added.clone().map(|row| ((&*row.cell_id, &*row.arm, row.metric), row)).collect(),
            shares: shares.map(|row| (subject(row), row)).collect(),
            least: view.answering(Question::LeastAdded(place)).first().copied(),
            subjects: added.map(subject).filter(|subject| seen.insert(*subject)).collect(),
        }
    }

    /// Added cost of an arm for a metric in a cell; `None` where nothing was measured.
    fn cost(&self, cell: &str, arm: &str, metric: Metric) -> Option<&'a Effect> {
        self.added.get(&(cell, arm, metric)).copied().filter(|row| row.estimate.is_some())
    }

    /// Its added cost as a share of the reference's; `None` for the reference itself, and where the reference's added
    /// cost is not distinguishable from zero.
    fn share(&self, cell: &str, arm: &str) -> Option<&'a Effect> {
        self.shares.get(&(cell, arm)).copied().filter(|row| row.estimate.is_some())
    }

    /// Number of arms that are compared with the reference.
    fn arms(&self) -> usize {
        self.shares.keys().map(|(_, arm)| *arm).collect::<BTreeSet<_>>().len()
    }

    fn has_figures(&self) -> bool {
        self.added.values().any(|row| row.estimate.is_some())
    }
}

/// The sentence of the primary comparison's cell; `None` if the study has another question, or if this one stays open
/// while the primary comparison has an answer. Then what is known comes first, and [`open`] follows it.
pub(crate) fn headline(view: &View<'_>) -> Option<String> {
    let (sentence, outcome) = of_primary(view)?;
    (outcome != Outcome::Open || !view.has_answer()).then_some(sentence)
}

/// That the question stays open, where the headline is about the primary comparison.
pub(crate) fn open(view: &View<'_>) -> Option<String> {
    let (sentence, outcome) = of_primary(view)?;
    (outcome == Outcome::Open && view.has_answer()).then_some(sentence)
}

/// The answer of the question that the primary comparison's cell belongs to.
fn of_primary(view: &View<'_>) -> Option<(String, Outcome)> {
    let cell_id = &view.primary()?.cell_id;
    let all = Costs::all(view);
    let mut own = all.iter().filter(|it| it.asked.cells.contains(cell_id));
    own.find_map(|it| Some((sentence(view, it)?, it.least?.outcome?)))
}

/// The section, with a sentence for each answer.
pub(crate) fn section(view: &View<'_>) -> Content {
    let all = Costs::all(view);
    Content::unless(!all.iter().any(Costs::has_figures), || Section {
        sentences: all.iter().filter_map(|it| with_cells(view, it)).collect(),
        tables: tables(view, &all),
        ..Section::new(Word::AddedCostTitle, Word::AddedCostHelp)
    })
}

/// A sentence with its cells.
fn with_cells(view: &View<'_>, found: &Costs<'_>) -> Option<Sentence> {
    Some(Sentence { text: sentence(view, found)?, cells: found.asked.cells.clone() })
}

/// `uring: mesh, the least costly of 5, adds at most 0.5× of what naive adds to the server CPU per order of owner in
/// every cell: …`. The costs themselves are in the table.
fn sentence(view: &View<'_>, found: &Costs<'_>) -> Option<String> {
    let (asked, least) = (found.asked, found.least?);
    let (arm, outcome, arms) = (&least.arm, least.outcome?, found.arms());
    let (reference, baseline, limit) = (&asked.reference, view.baseline()?, format::bound(asked.share_max?));
    let noun = metrics::prose(view, *asked.metrics.first()?);
    let group = match asked.group.as_str() {
        "" => String::new(),
        group => format!("{group}{}", view.language.colon()),
    };
    let labels = view.labels_apart(&asked.cells);
    let cells = asked.cells.iter().zip(labels).filter_map(|(cell, label)| of_cell(view, found, cell, &label));
    let cells = cells.collect::<Vec<_>>().join(view.language.semicolon());
    Some(match outcome {
        Outcome::Met => localized!(
            view.language,
            "{group}{arm}, the least costly of {arms}, adds at most {limit}× of what {reference} adds to the {noun} of \
             {baseline} in every cell: {cells}.",
            "{group}대상 {arms}개 중 추가 비용이 가장 적은 {arm}: 모든 조건에서 {reference} 추가 비용의 {limit}배 이하입니다({baseline} 대비 추가 {noun}: {cells}).",
            "{group}{arms} 个方案中增加最少的是 {arm}：在所有条件下都不超过 {reference} 所增加的 {limit} 倍（相对 {baseline} 增加的{noun}：{cells}）。",
        ),
        Outcome::Missed => localized!(
            view.language,
            "{group}{arm}, the least costly of {arms}, adds more than {limit}× of what {reference} adds to the {noun} of \
             {baseline} in some cell: {cells}.",
            "{group}대상 {arms}개 중 추가 비용이 가장 적은 {arm}: {reference} 추가 비용의 {limit}배를 넘는 조건이 있습니다({baseline} 대비 추가 {noun}: {cells}).",
            "{group}{arms} 个方案中增加最少的是 {arm}：在某些条件下超过 {reference} 所增加的 {limit} 倍（相对 {baseline} 增加的{noun}：{cells}）。",
        ),
        Outcome::Open => localized!(
            view.language,
            "{group}the data do not decide whether {arm}, the least costly of {arms}, adds at most {limit}× of what \
             {reference} adds to the {noun} of {baseline} in every cell: {cells}.",
            "{group}대상 {arms}개 중 추가 비용이 가장 적은 {arm}: 모든 조건에서 {reference} 추가 비용의 {limit}배 이하인지 판정할 수 없습니다({baseline} 대비 추가 {noun}: {cells}).",
            "{group}{arms} 个方案中增加最少的是 {arm}：是否在所有条件下都不超过 {reference} 所增加的 {limit} 倍，无法判定（相对 {baseline} 增加的{noun}：{cells}）。",
        ),
    })
}

/// `one order in flight 0.43× [0.40, 0.47]`; not known, if the reference's cost cannot be distinguished from zero.
fn of_cell(view: &View<'_>, found: &Costs<'_>, cell: &str, label: &str) -> Option<String> {
    let (metric, least) = (*found.asked.metrics.first()?, &found.least?.arm);
    found.cost(cell, &found.asked.reference, metric).and(found.cost(cell, least, metric))?;
    let share = found.share(cell, least);
    let share = share.and_then(|share| Some(format::ratio_in_prose(share.estimate?, share.interval)));
    let Some((number, range)) = share else {
        return Some(localized!(view.language, "{label} not known", "{label} 알 수 없음", "{label} 未知"));
    };
    Some(localized!(
        view.language,
        "{label} {number}×{range}",
        "{label} {number}배{range}",
        "{label} {number} 倍{range}",
    ))
}

/// Costs by cell and arm: one table for all questions with the same columns.
fn tables(view: &View<'_>, all: &[Costs<'_>]) -> Vec<Table> {
    let mut tables: Vec<(Vec<String>, Vec<Vec<String>>)> = Vec::new();
    for found in all.iter().filter(|it| it.has_figures()) {
        let (head, rows) =
            (head(view, found), found.subjects.iter().map(|subject| row(view, found, *subject)));
        match tables.iter_mut().find(|(own, _)| *own == head) {
            Some((_, own)) => own.extend(rows),
            None => tables.push((head, rows.collect())),
        }
    }
    let position = |row: &Vec<String>| view.cells.iter().position(|cell| view.cell_label(cell) == row[0]);
    tables.iter_mut().for_each(|(_, rows)| rows.sort_by_key(position));
    tables.into_iter().map(|(head, rows)| Table::with_head(head, 2, rows)).collect()
}

fn head(view: &View<'_>, found: &Costs<'_>) -> Vec<String> {
    let reference = &found.asked.reference;
    let added = |metric: &Metric| format!("+ {}", metrics::short(view, *metric));
    let mut head = vec![view.word(Word::Cell).to_owned(), view.word(Word::Arm).to_owned()];
    head.extend(found.asked.metrics.iter().map(added));
    head.push(localized!(view.language, "of {reference}", "{reference} 대비", "相对 {reference}"));
    head.push(view.word(Word::Pairs).to_owned());
    head
}

fn row(view: &View<'_>, found: &Costs<'_>, (cell, arm): (&str, &str)) -> Vec<String> {
    let metrics = &found.asked.metrics;
    let cost = |metric: &Metric| found.cost(cell, arm, *metric);
    let share = found.share(cell, arm);
    let mut row = vec![view.cell_label(cell), arm.to_owned()];
    row.extend(metrics.iter().map(|metric| metrics::found(view, cost(metric))));
    row.push(format::ratio_and_interval(share.and_then(|it| it.estimate), share.and_then(|it| it.interval)));
    row.push(metrics.iter().find_map(cost).map_or(0, |it| it.units).to_string());
    row
}
