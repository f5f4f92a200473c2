//! All comparisons of one metric: effect with interval, one faint dot per unit, the baseline compared with itself,
//! and a line at no difference.

use maud::{Markup, html};
use weir_record::{
    effect::{Effect, EffectScale},
    metric::{Family, Metric, Scale as Compared},
    metric_rows::METRICS,
    verdict::Verdict,
};

use super::{
    AXIS, OPEN_ROWS_MAX, ROWS_MAX, Row,
    canvas::{Anchor, Canvas, arm_class, swatch},
    rows,
    scale::Scale,
};
use crate::{
    cited::{Sentence, distinct},
    format,
    language::{Language, localized},
    metrics, notes, saturation,
    section::{Content, Plot, Section, Subject},
    sentence, tables,
    view::View,
    words::{self, Word},
};

const ROW: f64 = 28.0;

/// The section: a plot for each metric that was compared.
pub(crate) fn forest(view: &View<'_>) -> Content {
    let shown: Vec<Metric> =
        METRICS.iter().map(|row| row.metric).filter(|it| !view.comparisons_of(*it).is_empty()).collect();
    if shown.is_empty() {
        return Content::Nothing(Word::NoComparisons);
    }
    let has_figure = |metric: &Metric| view.comparisons_of(*metric).iter().any(|it| it.estimate.is_some());
    let (shown, empty): (Vec<Metric>, Vec<Metric>) = shown.into_iter().partition(has_figure);
    let is_again =
        |metric: &Metric| view.comparisons_of(*metric).into_iter().all(|it| view.is_server_cpu_again(it));
    let (again, shown): (Vec<Metric>, Vec<Metric>) = shown.into_iter().partition(is_again);
    let more: usize = shown.iter().map(|it| view.comparisons_of(*it).len().saturating_sub(ROWS_MAX)).sum();
    let axes = Axes::of(view);
    Content::Shown(Box::new(Section {
        sentences: sentence::oversubscribed(view)
            .map(|text| Sentence {
                text,
                cells: distinct(view.result.oversubscribed.iter().map(|it| &it.cell_id)),
            })
            .into_iter()
            .chain(again.first().map(|_| without_waiting(view).into()))
            .collect(),
        legend: Some(legend(view)),
        plots: shown.into_iter().map(|metric| plot(view, metric, &axes)).collect(),
        notes: notes::by_cell(view),
        left_out: (more > 0).then(|| sentence::left_out(view, more)).or_else(|| not_drawn(view, &empty)),
        ..Section::new(Word::ComparisonsTitle, Word::ComparisonsHelp)
    }))
}

/// Most rows of the figure beside the answer.
const ANSWER_ROWS_MAX: usize = 9;

/// The figure beside the answer: the primary comparison, every other arm of its cell, and the same at other rates.
/// `None` if it is compared in another way.
pub(crate) fn answer(view: &View<'_>) -> Option<Plot> {
    let primary = view.primary()?;
    let cell = view.cell(&primary.cell_id)?;
    let is_beside = |row: &&&Effect| {
        let other = view.cell(&row.cell_id);
        row.cell_id == cell.id
            || other.is_some_and(|it| it.is_rung && saturation::is_alike_but_for_rate(it, cell))
    };
    let compared = view.comparisons_of(primary.metric);
    let shown: Vec<&Effect> = compared.iter().filter(is_beside).copied().take(ANSWER_ROWS_MAX).collect();
    shown.iter().find(|row| row.estimate.is_some())?;
    let is_difference = is_difference(primary.metric);
    let scale = match primary.metric.row().scale {
        Compared::Difference { margin } => {
            Scale::differences(shown.iter().flat_map(|row| differences(view, row)), margin, 0.0, 100.0)
        }
        _ => Scale::ratios(shown.iter().flat_map(|row| ratios(view, row)), 0.0, 100.0),
    };
    let of_cells = shown.chunk_by(|one, next| one.cell_id == next.cell_id);
    let drawn: Vec<Row> = of_cells.flat_map(|of_cell| rows_of_cell(view, &scale, of_cell)).collect();
    let (name, baseline) = (metrics::name(view, primary.metric), &primary.baseline);
    let level = format::percent(primary.level);
    Some(Plot {
        id: "answer-figure".to_owned(),
        title: localized!(
            view.language,
            "{name}, compared with {baseline}: {level} confidence intervals",
            "{name}, {baseline} 대비: {level} 신뢰구간",
            "{name}，与 {baseline} 相比：{level} 置信区间",
        ),
        image: rows(view, &drawn, &axis(view, primary.metric, is_difference, &scale)),
        numbers: tables::of_comparisons(view, shown),
        is_table: false,
        is_half: false,
        is_folded: false,
    })
}

/// Arms with their markers.
fn legend(view: &View<'_>) -> Markup {
    html! {
        ul.legend {
            @for (index, arm) in view.arms.iter().enumerate() {
                li {
                    (swatch(index)) " " (arm)
                    @if view.baseline() == Some(arm) { span.faint { " (" (view.word(Word::Baseline)) ")" } }
                }
            }
        }
    }
}

/// Metrics without a figure in any comparison; the notes say why.
fn not_drawn(view: &View<'_>, empty: &[Metric]) -> Option<String> {
    let names: Vec<String> = empty.iter().map(|metric| metrics::name(view, *metric)).collect();
    let names = names.join(view.language.list());
    (!empty.is_empty()).then(|| {
        localized!(view.language, "Without a figure: {names}.", "수치 없음: {names}.", "没有数值：{names}。")
    })
}

fn plot(view: &View<'_>, metric: Metric, axes: &Axes) -> Plot {
    let compared = view.comparisons_of(metric);
    let (claimed, exploratory): (Vec<&Effect>, Vec<&Effect>) =
        compared.into_iter().take(ROWS_MAX).partition(|row| !view.is_exploratory(&row.cell_id));
    let differences = differences_scale(view, metric);
    let scale = differences.as_ref().unwrap_or_else(|| axes.of_ratios(metric));
    let shown: Vec<&Effect> = claimed.into_iter().chain(exploratory).collect();
    let is_void = shown.iter().all(|row| row.verdict == Verdict::NotComparable);
    let of_cells = shown.chunk_by(|one, next| one.cell_id == next.cell_id);
    let drawn: Vec<Row> = of_cells.flat_map(|of_cell| rows_of_cell(view, scale, of_cell)).collect();
    Plot {
        id: format!("comparison-{}", metric.row().key),
        title: metrics::name(view, metric),
        image: rows(view, &drawn, &axis(view, metric, is_difference(metric), scale)),
        numbers: tables::comparisons_of(view, metric),
        is_table: false,
        is_half: false,
        is_folded: is_void && view.primary().is_some_and(|primary| primary.metric != metric)
            || shown.len() > OPEN_ROWS_MAX,
    }
}

/// Replaces a plot that would repeat the one of server CPU.
fn without_waiting(view: &View<'_>) -> String {
    let name = metrics::name(view, Metric::ServerCpuWithWaiting);
    localized!(
        view.language,
        "{name}: in every comparison within 0.5 % of the ratio of server CPU.",
        "{name}: 모든 비교에서 서버 CPU 비율과의 차이가 0.5 % 이내입니다.",
        "{name}：在所有比较中，与服务器 CPU 的比值相差不超过 0.5 %。",
    )
}

/// Axes of ratios. Metrics of a kind share one, so that plots above each other can be compared by eye; response times
/// have a separate one, because their ratios spread over decades, while those of CPU differ by per cent.
struct Axes {
    times: Scale,
    others: Scale,
}

impl Axes {
    fn of(view: &View<'_>) -> Self {
        let [times, others] = [true, false].map(|are_times| {
            let alike =
                METRICS.iter().filter(|row| row.scale == Compared::Ratio && is_time(row.metric) == are_times);
            let compared = alike.flat_map(|row| view.comparisons_of(row.metric));
            let values = compared.flat_map(|row| ratios(view, row));
            Scale::ratios(values, 0.0, 100.0)
        });
        Axes { times, others }
    }

    fn of_ratios(&self, metric: Metric) -> &Scale {
        if is_time(metric) { &self.times } else { &self.others }
    }
}

fn is_time(metric: Metric) -> bool {
    metric.row().family == Family::Time
}

/// The separate axis of a metric that is compared by differences.
fn differences_scale(view: &View<'_>, metric: Metric) -> Option<Scale> {
    let Compared::Difference { margin } = metric.row().scale else { return None };
    let values = view.comparisons_of(metric).into_iter().flat_map(|row| differences(view, row));
    Some(Scale::differences(values, margin, 0.0, 100.0))
}

/// Values of a comparison that must be inside the axis.
fn ratios(view: &View<'_>, row: &Effect) -> Vec<f64> {
    let interval = row.interval.map(|(low, high)| [low, high]);
    let floor = view.ratio_floor(row).map(|floor| [1.0 / (1.0 + floor), 1.0 + floor]);
    let ends = interval.into_iter().chain(floor).flatten();
    ends.chain(row.estimate).chain(row.shown_values()).collect()
}

fn differences(view: &View<'_>, row: &Effect) -> Vec<f64> {
    let Some(difference) = row.estimate else { return Vec::new() };
    let itself = view.itself(row).and_then(|it| it.interval);
    let ends = row.interval.into_iter().chain(itself).flat_map(|(low, high)| [low, high]);
    ends.chain([difference]).chain(row.shown_values()).collect()
}

fn is_difference(metric: Metric) -> bool {
    matches!(metric.row().scale, Compared::Difference { .. })
}

/// The drawn values of a comparison, on its scale.
pub(super) struct Drawn {
    pub(super) value: Option<f64>,
    pub(super) interval: Option<(f64, f64)>,
    /// The baseline compared with itself.
    pub(super) band: Option<(f64, f64)>,
    pub(super) units: Vec<f64>,
    /// Position of no difference.
    pub(super) none: f64,
}

impl Drawn {
    fn of(view: &View<'_>, row: &Effect) -> Self {
        let is_difference = row.scale == EffectScale::Difference;
        let floor = view.ratio_floor(row).filter(|it| it.is_finite());
        Drawn {
            value: row.estimate,
            interval: row.interval,
            band: match is_difference {
                true => view.itself(row).and_then(|it| it.interval),
                false => floor.map(|it| (1.0 / (1.0 + it), 1.0 + it)),
            },
            units: row.shown_values(),
            none: if is_difference { 0.0 } else { 1.0 },
        }
    }
}

/// The rows of a cell; a cell without any figure has one row that says so.
fn rows_of_cell(view: &View<'_>, scale: &Scale, of_cell: &[&Effect]) -> Vec<Row> {
    let Some(text) = view.not_compared(of_cell) else {
        return of_cell.iter().map(|it| row(view, scale, it)).collect();
    };
    vec![Row {
        group: of_cell.first().map_or_else(String::new, |it| view.cell_label(&it.cell_id)),
        subject: Subject { arm: None, text },
        plot: None,
        number: String::new(),
        verdict: String::new(),
        is_void: true,
    }]
}

fn row(view: &View<'_>, scale: &Scale, row: &Effect) -> Row {
    let cell = view.cell_label(&row.cell_id);
    // With two arms the name is always the same and omitted; with more, the arms of a cell are listed below its name.
    let (group, text) = match view.arms.len() > 2 {
        true => (cell, view.compared(&row.arm, &row.baseline)),
        false => (String::new(), cell),
    };
    let number = metrics::effect(row);
    let verdict = view.outcome_words(row);
    let title = format!("{text}: {number} {verdict}");
    Row {
        group,
        subject: Subject { arm: Some(row.arm.clone()), text },
        plot: draw(view, scale, &Drawn::of(view, row), (&row.arm, &row.cell_id), &title),
        number,
        verdict: format!("{} {verdict}", words::verdict_sign(row.verdict)),
        is_void: row.verdict == Verdict::NotComparable,
    }
}

/// The row of a comparison; `None` if it has no figure.
pub(super) fn draw(
    view: &View<'_>,
    scale: &Scale,
    drawn: &Drawn,
    (arm, cell_id): (&str, &str),
    title: &str,
) -> Option<Markup> {
    let fill = if view.is_exploratory(cell_id) { "mark hollow" } else { "mark" };
    draw_of_arm(scale, drawn, (view.arm_index(arm), fill), title, view.word(Word::Floor))
}

/// The same with the arm's index, which determines colour and marker, and the meaning of its band.
pub(super) fn draw_of_arm(
    scale: &Scale,
    drawn: &Drawn,
    (arm, fill): (usize, &str),
    title: &str,
    band: &str,
) -> Option<Markup> {
    let value = drawn.value?;
    let (color, y) = (arm_class(arm), ROW / 2.0);
    let mut canvas = Canvas::fluid(ROW);
    if let Some((low, high)) = drawn.band.filter(|(low, high)| low.is_finite() && high.is_finite()) {
        let (left, right) = (scale.at(low), scale.at(high));
        canvas.rect("band", [left, 2.0, right - left, ROW - 4.0], band);
    }
    for tick in scale.ticks(5.0) {
        canvas.line("grid", [scale.at(tick), 0.0, scale.at(tick), ROW]);
    }
    canvas.line("one", [scale.at(drawn.none), 0.0, scale.at(drawn.none), ROW]);
    let units: Vec<f64> = drawn.units.iter().copied().filter(|unit| scale.contains(*unit)).collect();
    let dots = units.iter().map(|unit| (scale.at(*unit), y));
    canvas.dots(&format!("{color} point"), 2.6, dots, &range(&units));
    if let Some((low, high)) = drawn.interval.filter(|(low, high)| low.is_finite() && high.is_finite()) {
        let (left, right) = (scale.at(low), scale.at(high));
        canvas.line(&format!("{color} interval"), [left, y, right, y]);
        for end in [left, right] {
            canvas.line(&format!("{color} interval"), [end, y - 5.0, end, y + 5.0]);
        }
    }
    canvas.marker(&format!("{color} {fill}"), arm, (scale.at(value), y), 11.0, title);
    Some(canvas.finish())
}

/// `0.752 – 0.813 (24)`: the smallest and the largest unit, and their number.
fn range(units: &[f64]) -> String {
    let over = |pick: fn(f64, f64) -> f64, from| units.iter().copied().fold(from, pick);
    let (least, most) = (over(f64::min, f64::INFINITY), over(f64::max, f64::NEG_INFINITY));
    format!("{least:.3} – {most:.3} ({})", units.len())
}

/// Ticks, and the better direction.
pub(super) fn axis(view: &View<'_>, metric: Metric, is_difference: bool, scale: &Scale) -> Markup {
    axis_in(view.language, metric, is_difference, scale)
}

/// The same without a study.
pub(super) fn axis_in(language: Language, metric: Metric, is_difference: bool, scale: &Scale) -> Markup {
    let mut canvas = Canvas::fluid(2.0 * AXIS);
    let mut free = f64::NEG_INFINITY;
    for tick in scale.ticks(5.0).into_iter().filter(|tick| scale.contains(*tick)) {
        let x = scale.at(tick);
        canvas.line("grid", [x, 0.0, x, 4.0]);
        // Room for a label on the narrowest screen.
        if (4.0..=96.0).contains(&x) && x >= free {
            free = x + 12.0;
            canvas.text("tick", x, AXIS - 5.0, Anchor::Middle, &tick_label(tick, is_difference));
        }
    }
    let none = scale.at(if is_difference { 0.0 } else { 1.0 });
    let (better, anchor) = match metric.larger_is_better() {
        true => (Word::BetterRight, if none > 70.0 { Anchor::End } else { Anchor::Start }),
        false => (Word::BetterLeft, if none < 30.0 { Anchor::Start } else { Anchor::End }),
    };
    canvas.text("tick", none, 2.0 * AXIS - 7.0, anchor, better.text(language));
    canvas.finish()
}

fn tick_label(tick: f64, is_difference: bool) -> String {
    if is_difference {
        return if tick == 0.0 { "0".to_owned() } else { format!("{:+}", (tick * 1e6).round() / 1e6) };
    }
    let text = format::ratio(Some(tick));
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short.contains('.') { short.to_owned() } else { format!("{short}.0") }
}
