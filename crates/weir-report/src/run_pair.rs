//! Views of two runs side by side: text for a terminal, Markdown for a pull request's comment, and a page. All draw
//! the same sections; the page also has the changes as a chart. The figures of the first run are in column A, those
//! of the other in column B.

use std::cmp::Reverse;

use maud::Markup;
use weir_record::{
    effect::EffectScale,
    machine::FactDifference,
    metric_rows::METRICS,
    run_pair::{Change, FigurePair, PairObstacle, Parts, RunEffect, RunFacts, RunPair},
    spec::CellRole,
    study::StudyResult,
    verdict::Verdict,
};

use crate::{
    chart::{self, Telling},
    cited::of_no_cell,
    format, goals, html as page,
    language::{Language, localized},
    markdown::of_sections as document,
    metrics,
    section::{Caption, Section},
    table::Table,
    terminal::of_sections as text,
    view::View,
    words::{self, Word},
};

/// Two runs for a terminal of `width_columns` columns. `other` is the judged second run, which provides the names of
/// what both measured.
pub fn terminal(
    pair: &RunPair,
    other: &StudyResult,
    language: Language,
    width_columns: usize,
    color: bool,
) -> String {
    let view = View::new(other, language);
    text(&view, (&title(&view), &head(&view, pair)), &sections(&view, pair), (width_columns, color))
}

/// The same as GitHub-flavoured Markdown.
pub fn markdown(pair: &RunPair, other: &StudyResult, language: Language) -> String {
    let view = View::new(other, language);
    document(&view, (&title(&view), &head(&view, pair)), &sections(&view, pair))
}

/// The same as a page, with a header if it is one of several.
pub fn html(pair: &RunPair, other: &StudyResult, language: Language, above: &Markup) -> String {
    let view = View::new(other, language);
    let (title, head) = (title(&view), head(&view, pair));
    let mut all = sections(&view, pair);
    let verdict = |change: &Change| verdict(&view, change);
    let numbers = |own: &[Change]| changes(&view, own);
    let plots =
        chart::changes(&view, &by_size(&pair.changes), &Telling { verdict: &verdict, numbers: &numbers });
    // The table below a chart is folded, with rows that have no figure to draw.
    if let Some(first) = all.first_mut().filter(|_| !plots.is_empty()) {
        first.plots = plots;
    }
    let primary = pair.changes.iter().find(|change| change.role == CellRole::Primary);
    let class = primary.map_or("doubt", |change| page::verdict_class(change.verdict));
    // The conclusion is the heading; what was compared stands below it.
    let concluded = primary.map(|change| sentence(&view, change)).or_else(|| {
        let (why, not) = (obstacle(pair.obstacles.first()?, language), view.word(Word::NotComparable));
        Some(format!("{not}{}{why}", language.colon()))
    });
    let rest = head.into_iter().filter(|line| Some(line) != concluded.as_ref());
    let lines: Vec<String> = concluded.iter().map(|_| title.clone()).chain(rest).collect();
    let heading = concluded.as_ref().unwrap_or(&title);
    page::of_sections(&view, above, ([&title, heading], &lines), class, &all)
}

/// The changes by metric, in the order of the table of metrics; those of a metric with the largest first, and those
/// without a figure last.
fn by_size(changes: &[Change]) -> Vec<Change> {
    let size = |change: &Change| {
        let figure = change.figure.filter(|it| it.is_finite())?;
        let size = if change.scale == EffectScale::Ratio { figure.ln() } else { figure };
        // Sizes are not negative, so their bits have their order.
        Some(size.abs().to_bits())
    };
    let place = |change: &Change| METRICS.iter().position(|row| row.metric == change.metric);
    let mut all = changes.to_vec();
    all.sort_by_key(|change| (place(change), Reverse(size(change))));
    all
}

/// A sentence that says why two runs cannot be compared.
pub fn obstacle(found: &PairObstacle, language: Language) -> String {
    match found {
        PairObstacle::Protocols { one, other } => localized!(
            language,
            "A is a study of {one} and B of {other}: they have no figure in common",
            "A는 {one} 실험이고 B는 {other} 실험이므로 공통된 수치가 없습니다",
            "A 是 {one} 的实验，B 是 {other} 的实验：没有共同的数据",
        ),
        PairObstacle::OneUnfinished { blocks_done, blocks } => {
            unfinished("A", *blocks_done, *blocks, language)
        }
        PairObstacle::OtherUnfinished { blocks_done, blocks } => {
            unfinished("B", *blocks_done, *blocks, language)
        }
        PairObstacle::NoCommonCell => localized!(
            language,
            "no cell is in both runs",
            "두 실행에 공통된 조건이 없습니다",
            "两次运行没有共同的条件",
        ),
        PairObstacle::NoCommonPair { one, other } => localized!(
            language,
            "no arm was compared with the same baseline in both runs; the baseline of A is {one}, that of B is {other}",
            "두 실행에서 같은 기준과 비교한 대상이 없습니다. A의 기준은 {one}, B의 기준은 {other}입니다",
            "没有方案在两次运行中与同一基线比较；A 的基线是 {one}，B 的基线是 {other}",
        ),
    }
}

fn unfinished(run: &str, done: u32, all: u32, language: Language) -> String {
    localized!(
        language,
        "{run} is not finished ({done} of {all} rounds and blocks), and an unfinished schedule decides nothing",
        "{run}가 끝나지 않았습니다(라운드와 블록 {all}개 중 {done}개). 끝나지 않은 일정으로는 판정하지 않습니다",
        "{run} 尚未完成（{all} 个轮次与区组中完成 {done} 个）；未完成的计划不作判定",
    )
}

fn title(view: &View<'_>) -> String {
    view.language.choose(["Two runs side by side", "두 실행 비교", "两次运行对照"]).to_owned()
}

/// Description of both, the conclusion, and notes that precede the tables.
fn head(view: &View<'_>, pair: &RunPair) -> Vec<String> {
    let language = view.language;
    let mut lines = vec![run(view, "A", &pair.one), run(view, "B", &pair.other)];
    let primary = pair.changes.iter().find(|change| change.role == CellRole::Primary);
    lines.extend(primary.map(|change| sentence(view, change)));
    for found in &pair.obstacles {
        let (why, not) = (obstacle(found, language), view.word(Word::NotComparable));
        lines.push(format!("{not}{}{why}", language.colon()));
    }
    let change = language.choose(CHANGE);
    let answered = pair.thresholds.iter().zip(&pair.answers);
    let thresholds = answered.map(|(asked, found)| format!("{change} · {}", goals::line(view, asked, found)));
    lines.extend(thresholds);
    if !pair.changes.is_empty() {
        lines.push(language.choose(BETWEEN).to_owned());
    }
    lines
}

/// What the interval of a change does not include.
const BETWEEN: [&str; 3] = [
    "The intervals of changes are made of the rounds within each run. What else was different at the two times is not in \
     them: twenty runs of the study quick on one machine scattered twice as far as their intervals say. A change found here is a \
     reason to measure both programs in one study (weir study --baseline), and no verdict on a program.",
    "변화의 신뢰구간은 각 실행 안의 라운드에서 구합니다. 두 시점 사이에 달라진 다른 조건은 들어 있지 않습니다. 한 머신에서 실험 quick을 20번 실행했을 때, 결과의 산포는 신뢰구간이 나타내는 것의 \
    두 배였습니다. 변화가 보이면 두 프로그램을 한 실험에서 함께 측정하십시오(weir study --baseline). 이 변화만으로는 프로그램을 판정하지 않습니다.",
    "变化的置信区间只来自各次运行内部的轮次，不包含两个时刻之间其他条件的差异。在同一台机器上把实验 quick 运行 20 次，结果的离散程度是置信区间所示的两倍。若看到变化，请把两个程序放进同一项实验中测量（weir \
    study --baseline）；这里的变化不是对程序的判定。",
];

fn run(view: &View<'_>, mark: &str, run: &RunFacts) -> String {
    let language = view.language;
    let RunFacts { name, seed, weir_version, kernel_release, elapsed_ns, .. } = run;
    let (length, seed_word) = (language.duration(*elapsed_ns), view.word(Word::Seed));
    localized!(
        language,
        "{mark}: {name}, {seed_word} {seed}, {length}; Weir {weir_version}, Linux {kernel_release}",
        "{mark}: {name}, {seed_word} {seed}, {length}. Weir {weir_version}, Linux {kernel_release}",
        "{mark}：{name}，{seed_word} {seed}，{length}；Weir {weir_version}，Linux {kernel_release}",
    )
}

/// The change of the primary comparison.
fn sentence(view: &View<'_>, change: &Change) -> String {
    let Change { arm, baseline, .. } = change;
    let (cell, metric) = (view.cell_label(&change.cell_id), metrics::name(view, change.metric));
    let number = |figure| metrics::with_interval(view, change.metric, change.scale, figure, None);
    let (one, other) = (number(change.one.figure), number(change.other.figure));
    let (changed, verdict) = (changed(view, change), verdict(view, change));
    localized!(
        view.language,
        "{cell}, {metric}, {arm} / {baseline}: {one} in A, {other} in B; change {changed}: {verdict}.",
        "{cell}, {metric}, {arm} / {baseline}: A {one}, B {other}. 변화 {changed}: {verdict}.",
        "{cell}，{metric}，{arm} / {baseline}：A 为 {one}，B 为 {other}；变化 {changed}：{verdict}。",
    )
}

fn changed(view: &View<'_>, change: &Change) -> String {
    metrics::with_interval(view, change.metric, change.scale, change.figure, change.interval)
}

fn verdict(view: &View<'_>, change: &Change) -> String {
    let own = match change.verdict {
        Verdict::Better => ["better than in A", "A보다 나아짐", "优于 A"],
        Verdict::Worse => ["worse than in A", "A보다 나빠짐", "劣于 A"],
        other => return view.word(words::verdict(change.metric, other)).to_owned(),
    };
    view.language.choose(own).to_owned()
}

fn sections(view: &View<'_>, pair: &RunPair) -> Vec<Section> {
    let mut all = Vec::new();
    if !pair.changes.is_empty() {
        let tables = vec![changes(view, &by_size(&pair.changes))];
        all.push(Section { tables, ..Section::new(Caption::Own(CHANGES), Caption::Own(CHANGES_HELP)) });
    }
    let differences = [(&pair.machine, MACHINE), (&pair.asked, ASKED)];
    for (found, title) in differences.into_iter().filter(|(found, _)| !found.is_empty()) {
        let tables = vec![differing(view, found)];
        all.push(Section { tables, ..Section::new(Caption::Own(title), Caption::Own([""; 3])) });
    }
    let only = only(view, pair);
    if !only.is_empty() {
        all.push(Section {
            sentences: of_no_cell(only),
            ..Section::new(Caption::Own(ONLY), Caption::Own([""; 3]))
        });
    }
    if !pair.figures.is_empty() {
        let (sentences, tables) = (vec![absolute(view, pair).into()], vec![figures(view, &pair.figures)]);
        all.push(Section { sentences, tables, ..Section::new(Caption::Own(FIGURES), Caption::Own([""; 3])) });
    }
    all
}

const CHANGES: [&str; 3] = ["How the effects changed", "효과의 변화", "效应的变化"];
const CHANGES_HELP: [&str; 3] = [
    "A and B: the arm against its baseline, within the rounds of that run. Change: B's ratio over A's, or the difference of \
     differences, with a 99 % interval (Welch); claims are corrected for being several (Holm). Within a metric the largest change is first.",
    "A, B: 각 실행의 라운드 안에서 비교 대상을 기준과 비교한 값. 변화: B의 비율을 A의 비율로 나눈 값(차이로 비교하는 지표는 차이의 차이)과 99 % 신뢰구간(Welch). 가설이 여럿이면 \
    보정합니다(Holm). 지표마다 변화가 큰 것부터 표시합니다.",
    "A、B：在各自运行的轮次内，方案相对其基线的值。变化：B 的比值除以 A 的比值，或差值之差，附 99 % 置信区间（Welch）；多项结论按 Holm 校正。同一指标中变化最大的排在最前。",
];
const MACHINE: [&str; 3] = ["What differs on the machine", "머신에서 달라진 것", "机器上的差异"];
const ASKED: [&str; 3] = ["What was asked differently", "설정이 달랐던 항목", "设置不同的项目"];
const ONLY: [&str; 3] = ["In one run only", "한쪽 실행에만 있는 것", "仅出现在一次运行中"];
const FIGURES: [&str; 3] = ["Absolute figures, not compared", "절대값(비교하지 않음)", "绝对值（不作比较）"];
const CHANGE: [&str; 3] = ["change", "변화", "变化"];
const FACT: [&str; 3] = ["fact", "항목", "项目"];

fn changes(view: &View<'_>, changes: &[Change]) -> Table {
    let row = |change: &Change| {
        let effect = |it: &RunEffect| {
            metrics::with_interval(view, change.metric, change.scale, it.figure, it.interval)
        };
        let reasons: Vec<String> = change.reasons.iter().map(|reason| view.finding(reason)).collect();
        vec![
            view.cell_label(&change.cell_id),
            format!("{} / {}", change.arm, change.baseline),
            metrics::name(view, change.metric),
            verdict(view, change),
            if reasons.is_empty() {
                format::ABSENT.to_owned()
            } else {
                reasons.join(view.language.semicolon())
            },
            effect(&change.one),
            effect(&change.other),
            changed(view, change),
            metrics::size(change.scale, change.detectable),
        ]
    };
    let head = [Word::Cell, Word::Arm, Word::Metric, Word::Verdict, Word::GoalReason].map(|it| view.word(it));
    let numbers = ["A", "B", view.language.choose(CHANGE), view.word(Word::DetectableShort)];
    let head = head.into_iter().chain(numbers).map(str::to_owned).collect();
    Table::with_head(head, 5, changes.iter().map(row).collect())
}

fn differing(view: &View<'_>, found: &[FactDifference]) -> Table {
    let shown = |fact: &String| if fact.is_empty() { format::ABSENT.to_owned() } else { fact.clone() };
    let rows = found.iter().map(|it| vec![it.name.clone(), shown(&it.one), shown(&it.other)]).collect();
    let head = [view.language.choose(FACT), "A", "B"].map(str::to_owned);
    Table::with_head(head.to_vec(), 1, rows)
}

fn only(view: &View<'_>, pair: &RunPair) -> Vec<String> {
    let language = view.language;
    let lines = |mark: &str, parts: &Parts| {
        let line = |word: Word, names: &[String]| {
            (!names.is_empty()).then(|| {
                let (word, names, colon) = (view.word(word), names.join(language.list()), language.colon());
                format!("{mark} · {word}{colon}{names}")
            })
        };
        [line(Word::Cell, &parts.cells), line(Word::Arm, &parts.arms)]
    };
    [lines("A", &pair.only_one), lines("B", &pair.only_other)].into_iter().flatten().flatten().collect()
}

/// Why absolute figures are not compared.
fn absolute(view: &View<'_>, pair: &RunPair) -> String {
    let count = pair.machine.len();
    match count {
        0 => view
            .language
            .choose([
                "Nothing that is known of the machine differs; the figures were taken at different times all the same.",
                "알려진 범위에서 머신은 같지만, 측정한 시점이 다릅니다.",
                "已知的机器信息没有差异，但数值取自不同的时刻。",
            ])
            .to_owned(),
        _ => localized!(
            view.language,
            "They are of different times, and of machines that differ ({count} of the facts above).",
            "서로 다른 시점에, 서로 다른 머신에서 측정했습니다(위 항목 {count}개).",
            "数值取自不同的时刻，且机器不同（上列 {count} 项）。",
        ),
    }
}

fn figures(view: &View<'_>, figures: &[FigurePair]) -> Table {
    let row = |it: &FigurePair| {
        let figure = |value| metrics::figure(view, it.metric, value);
        let (cell, metric) = (view.cell_label(&it.cell_id), metrics::name(view, it.metric));
        vec![cell, it.arm.clone(), metric, figure(it.one), figure(it.other)]
    };
    let head = [Word::Cell, Word::Arm, Word::Metric].map(|it| view.word(it));
    let head = head.into_iter().chain(["A", "B"]).map(str::to_owned).collect();
    Table::with_head(head, 3, figures.iter().map(row).collect())
}
