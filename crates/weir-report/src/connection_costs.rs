//! Costs of connections themselves: silent ones, and connections for a single message.

use weir_record::{
    connection_costs::{ChurnCost, ConnectionCosts, IdleCost, KernelCost},
    figure::Figure,
    finding::Finding,
};

use crate::{
    cited::{Sentence, distinct},
    format::{self, ABSENT},
    language::localized,
    metrics, overview,
    section::{Caption, Content, Section},
    table::Table,
    view::View,
    words::Word,
};

const TITLE: Caption = Caption::Own(["What connections cost", "연결 자체의 비용", "连接本身的开销"]);

const HELP: Caption = Caption::Own([
    "Cells that differ in their connections alone, each arm beside itself; differences are of two cells, unpaired, with \
     99 % intervals. Memory for a connection is what the same server under the same load has more with all of them than \
     with fewest, over their number: what it takes once is in neither.",
    "연결에 관한 것만 다른 조건끼리 같은 대상을 비교합니다. 두 조건의 차이는 짝짓지 않고 비교하며, 신뢰구간은 99 %입니다. 연결당 메모리는 같은 부하를 받는 같은 서버가 연결이 많을 때 더 쓰는 양을 \
    늘어난 연결 수로 나눈 값입니다. 따라서 한 번만 쓰는 메모리는 들어 있지 않습니다.",
    "在只有连接方面不同的条件之间，把同一方案与自身比较；两个条件的差异按不配对方式比较，置信区间为 99 %。每连接内存是同一服务器在相同负载下、连接多时比连接最少时多占的量除以多出的连接数，因此不含一次性占用。",
]);

/// The section.
pub(crate) fn section(view: &View<'_>) -> Content {
    let Some(costs) = &view.result.connection_costs else { return Content::Absent };
    let tables = [idle(view, costs), memory(view, costs), kernel(view, costs), churn(view, costs)];
    Content::Shown(Box::new(Section {
        tables: tables
            .into_iter()
            .filter(|table| !table.rows.is_empty())
            .map(|table| overview::with_open_intervals(view, table))
            .collect(),
        ..Section::new(TITLE, HELP)
    }))
}

fn heads(view: &View<'_>, heads: &[[&'static str; 3]]) -> Vec<String> {
    let own = heads.iter().map(|head| view.language.choose(*head).to_owned());
    [view.word(Word::Arm), view.word(Word::Cell)].map(str::to_owned).into_iter().chain(own).collect()
}

fn micros(figure: Option<Figure>) -> String {
    overview::figure(figure, format::micros)
}

/// Marked if the generator was the limit.
fn ratio(figure: Option<Figure>, is_bound: bool) -> String {
    let mark = if is_bound { " †" } else { "" };
    let marked = |it: Figure| format!("{}{mark}", format::ratio_and_interval(Some(it.value), it.interval));
    figure.map_or_else(|| ABSENT.to_owned(), marked)
}

/// CPU per message with silent connections and without.
fn idle(view: &View<'_>, costs: &ConnectionCosts) -> Table {
    let head = heads(
        view,
        &[
            ["against", "비교 조건", "对照条件"],
            ["server CPU with them", "있을 때 서버 CPU", "有空闲连接时的服务器 CPU"],
            ["without", "없을 때", "没有时"],
            ["ratio", "비율", "比值"],
        ],
    );
    let row = |it: &IdleCost| {
        vec![
            it.arm.clone(),
            view.cell_label(&it.cell_id),
            view.cell_label(&it.cell_id_base),
            micros(it.cpu_us),
            micros(it.cpu_us_base),
            ratio(it.ratio, it.is_bound),
        ]
    };
    let title = view.language.choose(["Mostly idle connections", "대부분 유휴인 연결", "多数空闲的连接"]);
    let bound = costs.idle.iter().filter(|it| it.is_bound);
    let limited = limited(view, distinct(bound.flat_map(|it| [&it.cell_id, &it.cell_id_base])));
    let without = costs.idle.iter().filter(|it| it.ratio.is_none());
    let without = without.map(|it| (&it.arm, it.reasons.first(), [&it.cell_id, &it.cell_id_base].to_vec()));
    let sentences = limited.into_iter().chain(missing(view, without)).collect();
    Table::with_head(head, 3, costs.idle.iter().map(row).collect()).titled(title, sentences)
}

/// Why figures are missing: a reason that several arms share is given once, with the cells of all of them. Arms are
/// named if there are several reasons.
fn missing<'c>(
    view: &View<'_>,
    without: impl Iterator<Item = (&'c String, Option<&'c Finding>, Vec<&'c String>)>,
) -> Vec<Sentence> {
    let mut groups: Vec<(String, Vec<&String>, Vec<&String>)> = Vec::new();
    for (arm, reason, own) in without {
        let Some(text) = reason.map(|reason| view.finding(reason)) else { continue };
        match groups.iter_mut().find(|(same, ..)| *same == text) {
            Some((_, arms, cells)) => {
                arms.push(arm);
                cells.extend(own);
            }
            None => groups.push((text, vec![arm], own)),
        }
    }
    let is_one = groups.len() == 1;
    let line = |(text, arms, cells): (String, Vec<&String>, Vec<&String>)| {
        let arms = distinct(arms).join(view.language.list());
        let text = if is_one { text } else { format!("{arms}{}{text}", view.language.colon()) };
        Sentence { text, cells: distinct(cells) }
    };
    groups.into_iter().map(line).collect()
}

/// The meaning of the mark at a ratio, if some cells have it.
fn limited(view: &View<'_>, cells: Vec<String>) -> Option<Sentence> {
    let text = localized!(
        view.language,
        "† The generator was the limit in one of the two cells: CPU for a message also depends on the rate.",
        "† 두 조건 중 하나에서 부하 생성기가 한계였습니다. 메시지당 CPU는 요청률에 따라서도 달라집니다.",
        "† 两个条件之一受限于负载生成器：每条消息的 CPU 也随请求速率变化。",
    );
    (!cells.is_empty()).then_some(Sentence { text, cells })
}

fn memory(view: &View<'_>, costs: &ConnectionCosts) -> Table {
    let head = heads(
        view,
        &[
            ["connections more", "늘어난 연결", "多出的连接"],
            ["own memory for each (RssAnon)", "연결당 자체 메모리(RssAnon)", "每连接自有内存（RssAnon）"],
            ["with its share of what is shared (PSS)", "공유분 포함(PSS)", "含共享部分（PSS）"],
        ],
    );
    let bytes = |figure: Option<Figure>| overview::with_ends(figure, byte_count);
    let row = |it: &IdleCost| {
        let connections = format::count(u64::from(it.connections));
        let [own, shared] = [it.private_bytes, it.proportional_bytes].map(bytes);
        vec![it.arm.clone(), view.cell_label(&it.cell_id), connections, own, shared]
    };
    let title = view.language.choose(["Memory for a connection", "연결당 메모리", "每连接内存"]);
    let rows = costs.idle.iter().filter(|it| it.private_bytes.is_some() || it.proportional_bytes.is_some());
    Table::with_head(head, 2, rows.map(row).collect()).titled(title, Vec::new())
}

/// A few hundred or thousand bytes: differences of pages divided by connections.
fn byte_count(bytes: f64) -> String {
    format!("{} B", format::grouped(bytes.round()))
}

fn kernel(view: &View<'_>, costs: &ConnectionCosts) -> Table {
    let head = [
        view.word(Word::Cell),
        view.language.choose(["connections more", "늘어난 연결", "多出的连接"]),
        view.language.choose(["kernel memory for each", "연결당 커널 메모리", "每连接内核内存"]),
    ];
    let row = |it: &KernelCost| {
        let connections = format::count(u64::from(it.connections));
        vec![view.cell_label(&it.cell_id), connections, overview::with_ends(Some(it.bytes), byte_count)]
    };
    let title =
        view.language.choose(["Kernel memory for a connection", "연결당 커널 메모리", "每连接内核内存"]);
    let text = localized!(
        view.language,
        "Growth of the kernel's structures and of socket buffers (Slab, sockstat) since before the servers started, both \
         ends of a connection, mean over all servers of a round: the kernel counts it for the machine and not by process.",
        "서버를 시작하기 전부터 늘어난 커널 구조체와 소켓 버퍼(Slab, sockstat)입니다. 연결의 양 끝을 모두 포함하며, 한 라운드의 모든 서버에 대해 평균한 값입니다. 커널은 이 값을 \
        프로세스별로 세지 않고 머신 전체로 셉니다.",
        "自服务器启动前起，内核结构与套接字缓冲区（Slab、sockstat）的增量，含连接两端，按一轮中所有服务器平均。内核按整机统计，不分进程。",
    );
    Table::with_head(head.map(str::to_owned).to_vec(), 1, costs.kernel.iter().map(row).collect())
        .titled(title, vec![text.into()])
}

/// The costs of a connection per message.
fn churn(view: &View<'_>, costs: &ConnectionCosts) -> Table {
    let head = heads(
        view,
        &[
            ["connections a second", "초당 연결", "每秒连接数"],
            ["server CPU for a connection", "연결당 서버 CPU", "每连接服务器 CPU"],
            ["for a message on one that stays", "연결을 유지할 때 메시지당", "保持连接时每条消息"],
            ["ratio", "비율", "比值"],
        ],
    );
    let row = |it: &ChurnCost| {
        let bound = if it.is_bound { "≥ " } else { "" };
        vec![
            it.arm.clone(),
            view.cell_label(&it.cell_id),
            format!("{bound}{}", overview::figure(it.per_second, format::grouped)),
            micros(it.cpu_us),
            micros(it.cpu_us_base),
            ratio(it.ratio, it.is_bound || it.is_base_bound),
        ]
    };
    let title =
        view.language.choose(["A connection for each message", "메시지마다 새 연결", "每条消息新建连接"]);
    let name = metrics::name(view, weir_record::metric::Metric::ServerCpuPerMessage);
    let text = localized!(
        view.language,
        "Connect, one message, close. {name} is then what a connection costs with its message.",
        "연결하고, 메시지 하나를 주고받고, 연결을 끊습니다. 이때 ‘{name}’은(는) 연결 하나와 그 메시지의 비용입니다.",
        "建立连接、收发一条消息、关闭连接。此时“{name}”即一个连接连同其消息的开销。",
    );
    let bound = costs.churn.iter().filter(|it| it.is_bound || it.is_base_bound);
    let limited = limited(view, distinct(bound.flat_map(cells_of)));
    let without = costs.churn.iter().filter(|it| it.cpu_us.is_none());
    let without = without.map(|it| (&it.arm, it.reasons.first(), cells_of(it)));
    let sentences = std::iter::once(text.into()).chain(limited).chain(missing(view, without)).collect();
    Table::with_head(head, 2, costs.churn.iter().map(row).collect()).titled(title, sentences)
}

/// The cell, and the one with persistent connections.
fn cells_of(it: &ChurnCost) -> Vec<&String> {
    [&it.cell_id].into_iter().chain(&it.cell_id_base).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_that_is_not_there_has_no_mark() {
        let figure = Figure { value: 4.0, interval: Some((3.5, 4.5)) };
        assert_eq!(ratio(Some(figure), true), "4.000 [3.500, 4.500] †");
        assert_eq!(ratio(None, true), ABSENT);
    }
}
