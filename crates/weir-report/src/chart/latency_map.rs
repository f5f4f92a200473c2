//! Response times against offered load: the median and the 99th percentile of every arm at common rates, with the
//! intervals over rounds. Times that are upper bounds have hollow marks; an arm without a latency at a rate has one
//! at the upper edge, and its table says why.

use maud::{Markup, html};
use weir_record::{
    figure::Figure,
    finding::Finding,
    latency_map::{Capacity, LatencyLadder, LatencyPoint, LatencyRung},
    metric::Metric,
    spec::CellSpec,
    verdict::Verdict,
};

use super::{
    canvas::{Anchor, Canvas, arm_class, swatch},
    framed,
    scale::Scale,
};
use crate::{
    cited::Sentence,
    findings, format,
    language::localized,
    metrics, overview,
    section::{Caption, Content, Plot, Section},
    table::Table,
    view::View,
    words::Word,
};

const HEIGHT: f64 = 280.0;
const PLOT_Y: (f64, f64) = (234.0, 22.0);

/// Minimum distance of labels, in per cent: room for one on the narrowest screen.
const LABEL_STEP: f64 = 24.0;

/// Arms are next to each other at a rate, so that none hides another.
const ARM_STEP: f64 = 1.8;

/// Most arms and rates of a ladder in a sentence; the tables contain all.
const SHOWN_MAX: usize = 4;

/// Position of marks of arms without a latency.
const BEYOND_Y: f64 = 10.0;

/// Title of the section.
pub(crate) const TITLE: Caption =
    Caption::Own(["Latency against offered load", "요청률별 응답 시간", "不同请求速率下的响应时间"]);

const HELP: Caption = Caption::Own([
    "All arms are offered the same rates. Where the study gives them as shares of what the slowest arm can do, a pilot in \
     closed loop finds that before the first round, and the closed loop of the same study says afterwards which share each \
     rate really is. Times count from the moment a message was due. Points are geometric means over rounds with 99 % \
     intervals. Where a rate was not kept there is no latency: the queue grows as long as the load lasts, and a hollow mark \
     at the upper edge stands for it. Other hollow marks, and ≤ in the table, are upper bounds: the generator itself was late by more than a \
     tenth of the median, so that its lag is in the times, and the arms are not compared.",
    "모든 대상에 같은 요청률로 부하를 줍니다. 요청률을 가장 느린 대상의 처리 능력에 대한 비율로 지정한 실험은, 첫 라운드 전에 폐쇄형 예비 실행으로 처리 능력을 구합니다. 각 요청률이 실제로 몇 \
    %였는지는 같은 실험의 폐쇄형 결과로 확인합니다. 시간은 메시지를 보내기로 예정된 시각부터 잽니다. 점은 라운드의 기하 평균이고, 세로선은 99 % 신뢰구간입니다. 요청률에 도달하지 못하면 대기열이 부하가 \
    끝날 때까지 길어지므로 응답 시간이 없으며, 위쪽 가장자리에 빈 표식으로 나타냅니다. 그 밖의 빈 표식과 표의 ≤는 상한입니다. 이때는 부하 생성기의 전송이 중앙값의 10분의 1보다 더 늦어 그 지연이 \
    응답 시간에 들어 있으므로, 대상끼리 비교하지 않습니다.",
    "对所有方案施加相同的请求速率。若速率以最慢方案处理能力的比例给出，则在首轮之前由闭环试运行求得处理能力，之后再用同一实验的闭环结果核对每个速率实际占多少。时间从消息的计划发送时刻算起。点为各轮的几何平均，竖线为 99 % \
    置信区间。未达到请求速率时，队列会随负载持续增长，因此没有延迟数值，以上边缘的空心标记表示。其余空心标记与表中的 ≤ 为上限：负载生成器的发送滞后超过中位数的十分之一，滞后包含在时间之内，因此不比较各方案。",
]);

/// The section: two plots for each shape of cells with several rates.
pub(crate) fn latency_map(view: &View<'_>) -> Content {
    let ladders = &view.result.latency_ladders;
    Content::unless(ladders.is_empty(), || {
        let mut sentences: Vec<Sentence> =
            ladders.iter().flat_map(|ladder| of_ladder(view, ladder)).collect();
        let plots: Vec<Plot> = ladders.iter().flat_map(|ladder| plots(view, ladder)).collect();
        let figures = plots.iter().flat_map(|plot| plot.numbers.rows.iter().flatten());
        let open = overview::open_intervals(view, sentences.iter().map(|it| &it.text).chain(figures));
        sentences.extend(open);
        Section { sentences, plots, ..Section::new(TITLE, HELP) }
    })
}

/// The 99th percentile of every arm at every rate, one line per ladder.
pub(crate) fn lines(view: &View<'_>) -> Vec<String> {
    let p99 = |point: &LatencyPoint| {
        let least = if point.is_upper_bound { "≤ " } else { "" };
        let text = |it: Figure| format!("{least}{}", format::nanos(it.value));
        format!("{} {}", point.arm, point.p99_ns.map_or_else(|| reason(view, point).to_owned(), text))
    };
    let at = |rung: &LatencyRung| {
        let rate = rung.share.map_or_else(|| format::rate(rung.rate_per_second), format::whole_percent);
        format!("{rate}: {}", rung.arms.iter().map(p99).collect::<Vec<_>>().join(", "))
    };
    let line = |ladder: &LatencyLadder| {
        let rates = ladder.rungs.iter().map(at).collect::<Vec<_>>().join(view.language.semicolon());
        format!("{} · {} · {rates}", shape(view, ladder), metrics::name(view, Metric::LatencyP99))
    };
    view.result.latency_ladders.iter().map(line).collect()
}

/// Server CPU per message at common rates: in closed loop each arm runs at full speed, and a server with idle time
/// may have another ratio. A line for each ladder in which an arm can be compared.
pub(crate) fn cpu_at_equal_rates(view: &View<'_>, arm: &str, baseline: &str) -> Vec<Sentence> {
    let ratio = |cell_id: &str| {
        let found = view.pair(cell_id, (arm, baseline), Metric::ServerCpuPerMessage)?;
        let is_claimable = found.verdict != Verdict::NotComparable && found.interval.is_some();
        is_claimable.then(|| format::ratio_and_interval(found.estimate, found.interval))
    };
    let line = |ladder: &LatencyLadder| {
        let capacity = ladder.capacity.as_ref()?;
        let at = |rung: &LatencyRung| {
            Some(format!("{}: {}", format::whole_percent(rung.share?), ratio(&rung.cell_id)?))
        };
        let rates: Vec<String> = ladder.rungs.iter().filter_map(at).collect();
        let (rates, closed) = (rates.join(view.language.semicolon()), ratio(&capacity.cell_id)?);
        let (shape, noun) = (shape(view, ladder), metrics::prose(view, Metric::ServerCpuPerMessage));
        let text = localized!(
            view.language,
            "{shape}: {noun} of {arm} over that of {baseline} at equal rates, by their share of what the slowest arm can do: \
             {rates}. In closed loop, each as fast as it can: {closed}.",
            "{shape}: 같은 요청률(가장 느린 대상의 처리 능력 대비)에서 {baseline} 대비 {arm} {noun}: {rates}. 각자 최대 속도로 처리하는 폐쇄형 부하에서는 \
            {closed}.",
            "{shape}：请求速率相同时（以最慢方案处理能力的比例计），{arm} 的{noun}与 {baseline} 之比：{rates}。闭环、各自全速时为 {closed}。",
        );
        let cells = ladder.rungs.iter().map(|rung| &rung.cell_id).chain([&capacity.cell_id]);
        (!rates.is_empty()).then(|| Sentence { text, cells: cells.cloned().collect() })
    };
    view.result.latency_ladders.iter().filter_map(line).take(SHOWN_MAX).collect()
}

/// The common conditions of a ladder's cells, in words.
fn shape(view: &View<'_>, ladder: &LatencyLadder) -> String {
    let Some(cell) = ladder.rungs.first().and_then(|rung| view.cell(&rung.cell_id)) else {
        return String::new();
    };
    let connections = view.connections(cell.connections);
    let closed = CellSpec { load: weir_record::spec::LoadMode::Closed, ..cell.clone() };
    [connections].into_iter().chain(view.further_conditions(&closed)).collect::<Vec<_>>().join(" · ")
}

fn of_ladder(view: &View<'_>, ladder: &LatencyLadder) -> Vec<Sentence> {
    let of_cell = |cell_id: &String, text| Sentence { text, cells: vec![cell_id.clone()] };
    let of_capacity = ladder.capacity.as_ref().map(|it| of_cell(&it.cell_id, capacity(view, ladder, it)));
    let points = ladder.rungs.iter().flat_map(|rung| rung.arms.iter().map(move |point| (rung, point)));
    let missed =
        points.filter_map(|(rung, point)| Some(of_cell(&rung.cell_id, not_kept(view, rung, point)?)));
    of_capacity.into_iter().chain(missed.take(SHOWN_MAX)).collect()
}

/// `100 connections: in closed loop epoll does least, 61,200 messages/s [60,100, 62,300].`
fn capacity(view: &View<'_>, ladder: &LatencyLadder, of: &Capacity) -> String {
    let (shape, arm) = (shape(view, ladder), &of.arm);
    let rate = findings::rate(view.language, view.kind());
    let least = if of.is_bound { "≥ " } else { "" };
    let figure = format!("{least}{} {rate}", overview::figure(Some(of.per_second), format::grouped));
    let text = localized!(
        view.language,
        "{shape}: in closed loop {arm} does least, {figure}.",
        "{shape}: 폐쇄형 부하에서 처리량이 가장 적은 대상은 {arm}, {figure}.",
        "{shape}：闭环负载下处理最少的方案是 {arm}，{figure}。",
    );
    let bound = [
        " The generator was the limit of that, so that the server may do more and the shares may be smaller.",
        " 이때는 부하 생성기가 한계였습니다. 서버는 더 처리할 수 있고, 실제 비율은 더 낮을 수 있습니다.",
        "此时瓶颈在负载生成器：服务器可能处理更多，实际比例可能更低。",
    ];
    if of.is_bound { text + view.language.choose(bound) } else { text }
}

/// A rate at which fewer messages are answered than offered.
fn not_kept(view: &View<'_>, rung: &LatencyRung, point: &LatencyPoint) -> Option<String> {
    let is_slow = point.reasons.iter().any(|reason| matches!(reason, Finding::RateNotKept { .. }));
    let [offered, achieved] = [rung.rate_per_second, point.achieved_per_second].map(format::grouped);
    let (arm, cell) = (&point.arm, view.cell_label(&rung.cell_id));
    let rate = findings::rate(view.language, view.kind());
    let text = localized!(
        view.language,
        "{cell}: the rate was not kept with {arm}; of {offered} {rate} offered {achieved} were answered, so there is no latency.",
        "{cell}: {arm} 대상은 요청률에 도달하지 못했습니다. 목표 {offered} {rate} 중 {achieved}만 응답했으므로 응답 시간이 없습니다.",
        "{cell}：{arm} 未达到请求速率。目标为 {offered} {rate}，实际应答 {achieved}，因此没有延迟数值。",
    );
    let busy = [
        " The generator had no CPU left: it may be the reason, and not the server.",
        " 부하 생성기의 CPU에 여유가 없었으므로, 원인이 서버가 아니라 부하 생성기일 수 있습니다.",
        "负载生成器的 CPU 没有余量，原因可能在负载生成器，而不在服务器。",
    ];
    let busy = if point.is_generator_busy { view.language.choose(busy) } else { "" };
    is_slow.then(|| format!("{text}{busy}"))
}

fn plots(view: &View<'_>, ladder: &LatencyLadder) -> [Plot; 2] {
    let id = ladder.rungs.first().map_or("", |rung| rung.cell_id.as_str());
    [Metric::LatencyP50, Metric::LatencyP99].map(|metric| Plot {
        id: format!("load-{}-{id}", metric.row().key),
        title: format!("{} · {}", metrics::name(view, metric), shape(view, ladder)),
        image: html! { (legend(view, ladder)) (draw(view, ladder, metric)) },
        numbers: numbers(view, ladder, metric),
        is_table: false,
        is_half: true,
        is_folded: false,
    })
}

fn arms(ladder: &LatencyLadder) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for point in ladder.rungs.iter().flat_map(|rung| &rung.arms) {
        if !names.contains(&point.arm.as_str()) {
            names.push(&point.arm);
        }
    }
    names
}

fn legend(view: &View<'_>, ladder: &LatencyLadder) -> Markup {
    html! {
        ul.legend { @for arm in arms(ladder) { li { (swatch(view.arm_index(arm))) " " (arm) } } }
    }
}

fn time(point: &LatencyPoint, metric: Metric) -> Option<Figure> {
    if metric == Metric::LatencyP50 { point.p50_ns } else { point.p99_ns }
}

fn draw(view: &View<'_>, ladder: &LatencyLadder, metric: Metric) -> Markup {
    let figures = ladder.rungs.iter().flat_map(|rung| &rung.arms).filter_map(|point| time(point, metric));
    let ends =
        figures.flat_map(|it| [Some(it.value), it.interval.map(|it| it.0), it.interval.map(|it| it.1)]);
    let y = Scale::logarithmic(ends.flatten(), PLOT_Y.0, PLOT_Y.1);
    let rates = || ladder.rungs.iter().map(|rung| rung.rate_per_second);
    let (least, most) = rates().fold((f64::INFINITY, 0.0_f64), |(low, high), it| (low.min(it), high.max(it)));
    let x = Scale::linear(least, most, 9.0, 91.0);
    let mut canvas = Canvas::fluid(HEIGHT);
    for tick in y.ticks(4.0) {
        canvas.line("grid", [0.0, y.at(tick), 100.0, y.at(tick)]);
    }
    let mut free = 0.0;
    for rung in &ladder.rungs {
        let at = x.at(rung.rate_per_second);
        canvas.line("grid", [at, PLOT_Y.1, at, PLOT_Y.0]);
        if at < free {
            continue;
        }
        free = at + LABEL_STEP;
        canvas.text("tick", at, PLOT_Y.0 + 16.0, Anchor::Middle, &format::rate(rung.rate_per_second));
        if let Some(share) = rung.share {
            canvas.text("tick", at, PLOT_Y.0 + 30.0, Anchor::Middle, &format::whole_percent(share));
        }
    }
    for arm in arms(ladder) {
        line(&mut canvas, view, (ladder, arm, metric), (&x, &y));
    }
    let axis = view.language.choose(["offered load →", "요청률 →", "请求速率 →"]);
    canvas.text("tick", 100.0, HEIGHT - 2.0, Anchor::End, axis);
    framed(HEIGHT, &y, format::nanos_tick, &canvas.finish())
}

fn line(
    canvas: &mut Canvas,
    view: &View<'_>,
    (ladder, arm, metric): (&LatencyLadder, &str, Metric),
    (x, y): (&Scale, &Scale),
) {
    let index = view.arm_index(arm);
    let color = arm_class(index);
    let of_arm = |rung: &'_ LatencyRung| rung.arms.iter().find(|point| point.arm == arm).cloned();
    let arms = arms(ladder);
    let place = arms.iter().position(|own| *own == arm).unwrap_or(0) as f64;
    let aside = ARM_STEP * (place - 0.5 * (arms.len() as f64 - 1.0));
    let at = |rung: &LatencyRung| x.at(rung.rate_per_second) + aside;
    let points: Vec<(f64, LatencyPoint)> =
        ladder.rungs.iter().filter_map(|rung| Some((at(rung), of_arm(rung)?))).collect();
    let known = |(at, point): &(f64, LatencyPoint)| Some((*at, y.at(time(point, metric)?.value)));
    // A line over a rate without a time would claim one.
    for joined in points.split(|(_, point)| time(point, metric).is_none()) {
        canvas.polyline(&format!("{color} curve"), &joined.iter().filter_map(known).collect::<Vec<_>>());
    }
    for (at, point) in &points {
        let Some(figure) = time(point, metric) else {
            let title = format!("{arm}: {}", reason(view, point));
            canvas.marker(&format!("{color} mark hollow"), index, (*at, BEYOND_Y), 7.0, &title);
            continue;
        };
        if let Some((low, high)) = figure.interval {
            canvas.line(&format!("{color} whisker"), [*at, y.at(low), *at, y.at(high)]);
        }
        let title = format!("{arm}: {}", bounded(point, figure));
        let mark = if point.is_upper_bound { "mark hollow" } else { "mark" };
        canvas.marker(&format!("{color} {mark}"), index, (*at, y.at(figure.value)), 8.0, &title);
    }
}

/// `≤ 68.1 µs [66.0 µs, 70.2 µs]`.
fn bounded(point: &LatencyPoint, figure: Figure) -> String {
    let least = if point.is_upper_bound { "≤ " } else { "" };
    format!("{least}{}", overview::figure(Some(figure), format::nanos))
}

/// Why there is no latency, in a few words.
fn reason(view: &View<'_>, point: &LatencyPoint) -> &'static str {
    view.language.choose(match point.reasons.first() {
        Some(Finding::RateNotKept { .. }) => ["rate not kept", "요청률에 도달하지 못함", "未达到请求速率"],
        Some(Finding::LagUnknown { .. }) | None => ["too few samples", "표본 부족", "样本过少"],
        Some(_) => ["not comparable", "비교 불가", "不可比较"],
    })
}

fn upper_bound(view: &View<'_>) -> &'static str {
    view.language.choose(["upper bound", "상한", "上限"])
}

/// A row for each rate and arm.
fn numbers(view: &View<'_>, ladder: &LatencyLadder, metric: Metric) -> Table {
    let language = view.language;
    let offered = language.choose(["offered", "요청률", "请求速率"]).to_owned();
    let share = language.choose(["of capacity", "처리 능력 대비", "占处理能力"]).to_owned();
    let achieved = language.choose(["answered", "실제 응답", "实际应答"]).to_owned();
    let lag = language.choose(["generator's lag p99", "생성기 지연 p99", "生成器滞后 p99"]).to_owned();
    let head = vec![
        offered,
        share,
        view.word(Word::Arm).to_owned(),
        view.word(Word::Verdict).to_owned(),
        achieved,
        metrics::short(view, metric),
        lag,
        view.word(Word::RatioInterval).to_owned(),
    ];
    let row = |rung: &LatencyRung, point: &LatencyPoint| {
        let figure = time(point, metric);
        let comparison = view.comparison(&rung.cell_id, &point.arm, metric);
        let comparison = comparison.filter(|_| figure.is_some() && !point.is_upper_bound);
        vec![
            format::rate(rung.rate_per_second),
            rung.share.map_or_else(|| format::ABSENT.to_owned(), format::whole_percent),
            point.arm.clone(),
            match figure {
                None => reason(view, point),
                Some(_) if point.is_upper_bound => upper_bound(view),
                Some(_) => comparison.map_or(format::ABSENT, |it| view.verdict_word(metric, it.verdict)),
            }
            .to_owned(),
            format::rate(point.achieved_per_second),
            figure.map_or_else(|| format::ABSENT.to_owned(), |it| bounded(point, it)),
            point.lag_p99_ns.map_or_else(|| format::ABSENT.to_owned(), format::nanos),
            comparison.map_or_else(|| format::ABSENT.to_owned(), metrics::effect),
        ]
    };
    let rows = ladder.rungs.iter().flat_map(|rung| rung.arms.iter().map(move |point| row(rung, point)));
    Table::with_head(head, 4, rows.collect())
}
