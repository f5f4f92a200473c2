//! Contrasts that the study declared: a sentence each, and their figures.

use weir_record::{
    contrast::ContrastSpec,
    effect::{Effect, Question},
    grid::Difference,
};

use crate::{
    chart,
    cited::Sentence,
    format,
    language::localized,
    metrics,
    section::{Caption, Content, Section},
    table::Table,
    view::View,
    words::Word,
};

const TITLE: [&str; 3] = ["Declared contrasts", "사전 선언한 대비", "预先声明的对比"];

const HELP: [&str; 3] = [
    "Whether the ratio of an arm to its baseline at some levels, or in one cell, differs from that at others, or is \
     equivalent to it within the margin: geometric means over cells that have all other levels alike. These were declared \
     beforehand and share the correction of all claims (Holm).",
    "어떤 수준이나 조건에서 기준 대비 비율이 다른 쪽과 다른지, 또는 허용 범위 안에서 동등한지 비교합니다. 나머지 수준이 모두 같은 조건들의 기하 평균을 씁니다. 이 대비는 미리 선언했으며 모든 가설과 \
    함께 보정합니다(Holm).",
    "比较某些水平或某个条件下方案与基线之比，是否不同于另一侧，或在等效界限内等效。对其余水平都相同的条件取几何平均。这些对比是预先声明的，与所有结论一起校正（Holm）。",
];

/// A contrast, and its result.
pub(crate) struct Contrast<'a> {
    /// Its index in the study.
    pub place: u32,
    pub asked: &'a ContrastSpec,
    pub found: &'a Effect,
    pub difference: Difference,
}

/// All of them, in the order of the specification.
pub(crate) fn all<'a>(view: &View<'a>) -> Vec<Contrast<'a>> {
    let one = |(place, asked): (u32, &'a ContrastSpec)| {
        let found = *view.answering(Question::Contrast(place)).first()?;
        Some(Contrast { place, asked, found, difference: found.difference? })
    };
    (0..).zip(&view.result.spec.contrasts).filter_map(one).collect()
}

/// The section.
pub(crate) fn section(view: &View<'_>) -> Content {
    let all = all(view);
    Content::unless(all.is_empty(), || Section {
        sentences: all.iter().map(|it| sentence(view, it)).collect(),
        tables: vec![table(view, &all)],
        ..Section::new(Caption::Own(TITLE), Caption::Own(HELP))
    })
}

fn sentence(view: &View<'_>, it: &Contrast<'_>) -> Sentence {
    let (language, asked) = (view.language, it.asked);
    let (arm, metric) = (view.compared(&asked.arm, &asked.baseline), metrics::name(view, asked.metric));
    let (of, to) = sides(view, asked);
    let margin = format::percent(asked.equivalence_margin.unwrap_or(view.result.spec.equivalence_margin));
    let found = metrics::effect(it.found);
    let p_value = format::probability(it.found.p_value_holm);
    let text = match it.difference {
        Difference::Less => localized!(
            language,
            "{arm}, {metric}: the ratio is smaller at {of} than at {to}, {found} (p {p_value}).",
            "{arm}, {metric}: {of}의 비율이 {to}보다 작습니다. {found}(p {p_value}).",
            "{arm}，{metric}：{of} 的比值小于 {to}，{found}（p {p_value}）。",
        ),
        Difference::More => localized!(
            language,
            "{arm}, {metric}: the ratio is larger at {of} than at {to}, {found} (p {p_value}).",
            "{arm}, {metric}: {of}의 비율이 {to}보다 큽니다. {found}(p {p_value}).",
            "{arm}，{metric}：{of} 的比值大于 {to}，{found}（p {p_value}）。",
        ),
        Difference::Equivalent => localized!(
            language,
            "{arm}, {metric}: the ratios at {of} and at {to} are equivalent within ±{margin}, {found}.",
            "{arm}, {metric}: {of}의 비율과 {to}의 비율은 ±{margin} 안에서 동등합니다. {found}.",
            "{arm}，{metric}：{of} 与 {to} 的比值在 ±{margin} 内等效，{found}。",
        ),
        Difference::Undetected => localized!(
            language,
            "{arm}, {metric}: the ratios at {of} and at {to} are neither shown to be equivalent within ±{margin} nor to differ, {found}.",
            "{arm}, {metric}: {of}의 비율과 {to}의 비율이 ±{margin} 안에서 동등한지, 서로 다른지 판정할 수 없습니다. {found}.",
            "{arm}，{metric}：{of} 与 {to} 的比值既不能判定在 ±{margin} 内等效，也不能判定有差异，{found}。",
        ),
        other => {
            let word = view.word(chart::difference_word(other));
            localized!(
                language,
                "{arm}, {metric}, {of} against {to}: {word}, {found}.",
                "{arm}, {metric}, {to} 대비 {of}: {word}, {found}.",
                "{arm}，{metric}，{of} 与 {to} 相比：{word}，{found}。",
            )
        }
    };
    Sentence { text, cells: asked.of.iter().chain(&asked.to).cloned().collect() }
}

/// Both sides. A comparison of two single cells uses full names, because nothing else says which levels they share.
fn sides(view: &View<'_>, asked: &ContrastSpec) -> (String, String) {
    let of = match (&asked.of[..], &asked.to[..]) {
        ([cell], [_]) => view.cell_label(cell),
        _ => side(view, &asked.of, &asked.to),
    };
    (of, side(view, &asked.to, &asked.of))
}

/// A side by the conditions that its cells have and the other's lack.
fn side(view: &View<'_>, own: &[String], other: &[String]) -> String {
    let labels = |cells: &[String]| cells.iter().map(|cell| view.cell_label(cell)).collect::<Vec<_>>();
    let others = labels(other);
    let is_shared = |part: &&str| others.iter().any(|label| label.split(" · ").any(|it| it == *part));
    let mut texts: Vec<String> = Vec::new();
    for label in labels(own) {
        let parts: Vec<&str> = label.split(" · ").filter(|part| !is_shared(part)).collect();
        // A usual level is in no label.
        let apart = if parts.is_empty() { label.clone() } else { parts.join(" · ") };
        if !texts.contains(&apart) {
            texts.push(apart);
        }
    }
    format::few(texts)
}

fn table(view: &View<'_>, all: &[Contrast<'_>]) -> Table {
    let rows = all.iter().map(|it| {
        let (asked, found) = (it.asked, it.found);
        let (of, to) = sides(view, asked);
        vec![
            view.compared(&asked.arm, &asked.baseline),
            metrics::name(view, asked.metric),
            of,
            to,
            view.word(chart::difference_word(it.difference)).to_owned(),
            metrics::effect(found),
            format::probability(found.p_value),
            format::probability(found.p_value_holm),
        ]
    });
    let heads = [["of", "비교할 수준", "所比较的水平"], ["against", "상대 수준", "对照水平"]];
    let heads = heads.map(|head| view.language.choose(head).to_owned());
    let word = |word: Word| view.word(word).to_owned();
    let head = [word(Word::Arm), word(Word::Metric)].into_iter().chain(heads);
    let rest = [Word::MapDifference, Word::MapRatio, Word::PValue, Word::PHolm].map(word);
    Table::with_head(head.chain(rest).collect(), 5, rows.collect())
}
