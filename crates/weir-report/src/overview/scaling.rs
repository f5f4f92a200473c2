//! Scaling by workers: efficiency relative to ideal scaling, and implausibly good scaling.

use weir_record::{
    overview::{EFFICIENCY_MAX, Overview, Quantity, Scaling, ScalingCandidate, ScalingCause, ScalingMean},
    published::TableName,
};

use super::{explained, figure, name, published, quantity};
use crate::{
    cited::Sentence,
    format::{self, ABSENT},
    language::localized,
    table::Table,
    view::View,
    words::Word,
};

/// Alarms in sentences; the table marks all of them.
const ALARMS_SHOWN: usize = 4;

/// Means over lines next to the published ones, and every line.
pub(super) fn tables(view: &View<'_>, map: &Overview) -> Vec<Table> {
    if map.scaling.is_empty() {
        return Vec::new();
    }
    let lines = ["Scaling efficiency, cell by cell", "조건별 확장 효율", "各条件的扩展效率"];
    let marks = [
        "≤: the generator was the limit with fewest workers, so that the efficiency may be less. ≥: it was the limit with \
         many. In brackets: with both, so that the figure is that of the generator. ! more than 105 %.",
        "≤: 워커가 가장 적은 조건에서 부하 생성기가 한계였으므로, 실제 효율은 더 낮을 수 있습니다. ≥: 워커가 많은 조건에서 부하 생성기가 한계였습니다. 괄호: 둘 다 해당하며, 이때는 부하 \
        생성기의 값입니다. ! 105 % 초과.",
        "≤：工作线程最少时瓶颈在负载生成器，实际效率可能更低。≥：工作线程多时瓶颈在负载生成器。括号：两者皆是，此时反映的是负载生成器。! 超过 105 %。",
    ];
    let marks = view.language.choose(marks).to_owned();
    vec![means(view, map), each_line(view, map).titled(view.language.choose(lines), vec![marks.into()])]
}

fn heads(view: &View<'_>) -> Vec<String> {
    let of = |quantity: Quantity| {
        let name = super::quantity(view, quantity);
        localized!(view.language, "efficiency, {name}", "효율({name})", "效率（{name}）")
    };
    Quantity::ALL.map(of).to_vec()
}

fn means(view: &View<'_>, map: &Overview) -> Table {
    let theirs = published(view, TableName::Efficiency);
    let lines = ["lines (generator free)", "행(부하 생성기 여유 있음)", "行（负载生成器有余量）"];
    let mut head: Vec<String> = [Word::MapWorkers, Word::Arm].map(|word| view.word(word).to_owned()).to_vec();
    head.extend(heads(view));
    head.push(view.language.choose(lines).to_owned());
    head.extend(theirs.map(|_| super::published_heads(view)[0].clone()));
    let row = |it: &ScalingMean| {
        let mut cells = vec![
            format!("{} / {}", it.workers, it.workers_base),
            it.arm.clone(),
            figure(it.throughput, format::percent),
            figure(it.per_cpu_second, format::percent),
            format!("{} ({})", it.lines, it.lines_free),
        ];
        cells.extend(theirs.map(|theirs| {
            // The published figures are relative to one worker.
            let own = theirs.figure(&it.workers.to_string(), &it.arm);
            let found = own.filter(|_| it.workers_base == 1);
            found.map_or_else(|| ABSENT.to_owned(), |percent| format!("{percent} %"))
        }));
        cells
    };
    let own = [
        "Throughput over that with fewest workers times as many; what is done per CPU-second over the same with fewest, for \
         a CPU-second is a share of the CPUs already. Geometric means over lines of cells that differ in workers alone, of \
         throughput over those in which the generator was not the limit; cells with equally many rounds are compared within rounds.",
        "처리량 효율은 처리량을, 워커가 가장 적을 때의 처리량에 워커 배수를 곱한 값으로 나눈 것입니다. CPU 1초당 건수는 이미 CPU당 값이므로, 워커가 가장 적을 때의 값으로 나눕니다. 워커 \
        수만 다른 조건을 한 행으로 묶고 행들을 기하 평균했습니다. 처리량은 부하 생성기가 한계가 아니었던 행만 씁니다. 라운드 수가 같은 두 조건은 라운드별로 비교했습니다.",
        "吞吐量效率为吞吐量除以“工作线程最少时的吞吐量 × 倍数”。每 CPU 秒的数量已按 CPU \
        计，故直接除以工作线程最少时的值。数值为各行的几何平均，每行只有工作线程数不同；吞吐量只取负载生成器未成瓶颈的行；轮数相同的两个条件在同一轮内比较。",
    ];
    let own = view.language.choose(own).to_owned();
    let sentences = std::iter::once(own.into()).chain(alarms(view, map, ALARMS_SHOWN));
    let sentences = sentences.chain(theirs.map(|it| explained(view, it).into())).collect();
    let rows = map.scaling.iter().map(row).collect();
    Table::with_head(head, 2, rows).titled(name(view, TableName::Efficiency), sentences)
}

/// A row for each pair of cells and arm.
fn each_line(view: &View<'_>, map: &Overview) -> Table {
    let mut head: Vec<String> = [Word::Cell, Word::Arm].map(|word| view.word(word).to_owned()).to_vec();
    head.extend(heads(view));
    head.push(view.language.choose(["rounds", "라운드", "轮次"]).to_owned());
    let first = |it: &&Scaling| it.quantity == Quantity::Throughput;
    let other = |of: &Scaling| {
        let is_it =
            |it: &&Scaling| it.quantity != of.quantity && it.cell_id == of.cell_id && it.arm == of.arm;
        map.scaling_lines.iter().find(is_it)
    };
    let rows = map.scaling_lines.iter().filter(first).map(|it| {
        let rounds = other(it).map_or(it.rounds, |other| other.rounds.max(it.rounds));
        vec![
            view.cell_label(&it.cell_id),
            it.arm.clone(),
            efficiency(it),
            other(it).map_or_else(|| ABSENT.to_owned(), efficiency),
            rounds.to_string(),
        ]
    });
    Table::with_head(head, 2, rows.collect())
}

/// `≤ 243 % [240 %, 246 %] !`.
fn efficiency(it: &Scaling) -> String {
    let text = figure(it.efficiency, format::percent);
    if it.efficiency.is_none() {
        return text;
    }
    let text = match (it.is_base_bound, it.is_bound) {
        (true, true) => format!("({text})"),
        (true, false) => format!("≤ {text}"),
        (false, true) => format!("≥ {text}"),
        (false, false) => text,
    };
    if it.is_alarm { format!("{text} !") } else { text }
}

/// Implausible scaling, with possible explanations: at most `shown` sentences. The table marks all of them.
pub(super) fn alarms(view: &View<'_>, map: &Overview, shown: usize) -> Vec<Sentence> {
    let found: Vec<&Scaling> = map.scaling_lines.iter().filter(|it| it.is_alarm).collect();
    let further = found.len().saturating_sub(shown);
    let rest = (further > 0).then(|| {
        localized!(
            view.language,
            "{further} more efficiencies above 105 % are marked in the table.",
            "105 %를 넘는 효율이 {further}개 더 있으며, 표에 표시했습니다.",
            "另有 {further} 个效率超过 105 %，已在表中标出。",
        )
    });
    found.iter().take(shown).map(|it| alarm(view, it)).chain(rest.map(Sentence::from)).collect()
}

fn alarm(view: &View<'_>, it: &Scaling) -> Sentence {
    let (arm, cell, what) = (&it.arm, view.cell_label(&it.cell_id), quantity(view, it.quantity));
    let (found, limit) = (figure(it.efficiency, format::percent), format::percent(EFFICIENCY_MAX));
    let base = workers(view, it.workers_base);
    let candidates: Vec<String> = it.candidates.iter().map(|it| candidate(view, it)).collect();
    let candidates = candidates.join(view.language.semicolon());
    let text = localized!(
        view.language,
        "{arm}, {cell}: {found} of ideal scaling from {base} ({what}). More workers alone do not explain more than {limit}: \
         something else differs between the two cells. Possible causes, checked against the records: {candidates}.",
        "{arm}, {cell}: {base} 대비 이상적 확장의 {found}({what}). 워커를 늘린 것만으로는 {limit}를 넘을 수 없으므로, 두 조건 사이에 다른 차이가 있습니다. \
        기록에서 확인한 가능한 원인: {candidates}.",
        "{arm}，{cell}：从{base}起达到理想扩展的 {found}（{what}）。仅增加工作线程不会超过 {limit}，因此两个条件之间还有其他差异。按记录核对的可能原因：{candidates}。",
    );
    Sentence { text, cells: vec![it.cell_id.clone(), it.cell_id_base.clone()] }
}

/// `2 workers`.
fn workers(view: &View<'_>, count: u32) -> String {
    match count {
        1 => localized!(view.language, "1 worker", "워커 1개", "1 个工作线程"),
        _ => localized!(view.language, "{count} workers", "워커 {count}개", "{count} 个工作线程"),
    }
}

/// `generator at its limit with fewest workers: yes (97 % busy, then 40 %)`.
fn candidate(view: &View<'_>, it: &ScalingCandidate) -> String {
    let choose = |texts: [&'static str; 3]| view.language.choose(texts);
    let name = choose(match it.cause {
        ScalingCause::GeneratorAtLimit => [
            "the generator at its limit with fewest workers",
            "워커가 가장 적을 때 부하 생성기가 한계",
            "工作线程最少时负载生成器已达极限",
        ],
        ScalingCause::Oversubscribed => ["more threads than CPUs", "CPU보다 많은 스레드", "线程多于 CPU"],
        ScalingCause::ServerIdle => [
            "the server idle with fewest workers",
            "워커가 가장 적을 때 서버에 여유 있음",
            "工作线程最少时服务器空闲",
        ],
        ScalingCause::BaseNoisier => [
            "the cell with fewest workers noisier",
            "워커가 가장 적은 조건의 노이즈가 더 큼",
            "工作线程最少的条件噪声更大",
        ],
    });
    let holds = choose(match it.holds {
        Some(true) => ["yes", "예", "是"],
        Some(false) => ["no", "아니요", "否"],
        None => ["not recorded", "기록 없음", "无记录"],
    });
    let figures = it.figures.map_or_else(String::new, |(base, many)| {
        let number = |value: f64| match it.cause {
            ScalingCause::Oversubscribed | ScalingCause::ServerIdle => format!("{value:.2}"),
            ScalingCause::GeneratorAtLimit | ScalingCause::BaseNoisier => format::percent(value),
        };
        let (base, many) = (number(base), number(many));
        let unit = choose(match it.cause {
            ScalingCause::GeneratorAtLimit => ["busy", "사용률", "忙碌"],
            ScalingCause::Oversubscribed => ["threads per CPU", "CPU당 스레드", "每 CPU 线程数"],
            ScalingCause::ServerIdle => ["CPUs in use per worker", "워커당 사용 CPU", "每线程占用 CPU"],
            ScalingCause::BaseNoisier => ["deviation", "편차", "偏差"],
        });
        localized!(
            view.language,
            " ({unit} {base}, with many {many})",
            "({unit} {base}, 워커가 많을 때 {many})",
            "（{unit} {base}，工作线程多时 {many}）",
        )
    });
    format!("{name}{}{holds}{figures}", view.language.colon())
}
