//! The best configurations, and what failed.

use weir_record::{
    overview::{BestCell, Overview, Quantity, SuccessRow},
    published::{PublishedTable, TableName},
};

use super::{explained, figure, name, published, published_heads, quantity};
use crate::{
    cited::of_no_cell,
    findings,
    format::{self, ABSENT},
    table::Table,
    view::View,
    words::Word,
};

/// The best cell of each arm, and the cells that are indistinguishable from it.
pub(super) fn best(view: &View<'_>, map: &Overview) -> Table {
    let theirs = published(view, TableName::Best);
    let sentences = of_no_cell(theirs.map(|it| explained(view, it)));
    cells(view, &map.best, theirs).titled(name(view, TableName::Best), sentences)
}

/// The same among the cells of each number of workers.
pub(super) fn best_by_workers(view: &View<'_>, map: &Overview) -> Table {
    let title = ["Best TPS by threads", "스레드 수별 최고 TPS", "各线程数下的最高 TPS"];
    cells(view, &map.best_by_workers, None).titled(view.language.choose(title), Vec::new())
}

fn cells(view: &View<'_>, best: &[BestCell], theirs: Option<&PublishedTable>) -> Table {
    let [ties, figure_head, success] = [
        ["cannot be distinguished from it", "최고와 구별되지 않는 구성", "与之无法区分的配置"],
        ["figure", "수치", "数值"],
        ["success rate", "성공률", "成功率"],
    ]
    .map(|head| view.language.choose(head).to_owned());
    let head = [Word::Metric, Word::Arm, Word::Cell].map(|word| view.word(word).to_owned());
    let head: Vec<String> = head.into_iter().chain([ties, figure_head, success]).collect();
    let head = head.into_iter().chain(theirs.map(|_| published_heads(view)[0].clone())).collect();
    let row = |it: &BestCell| {
        let ties: Vec<String> = it.ties.iter().map(|cell| view.cell_label(cell)).collect();
        let bound = if it.is_bound { "≥ " } else { "" };
        let own = vec![
            quantity(view, it.quantity),
            it.arm.clone(),
            view.cell_label(&it.cell_id),
            if ties.is_empty() { ABSENT.to_owned() } else { format::few(ties) },
            format!("{bound}{}", figure(Some(it.figure), format::grouped)),
            it.success.map_or_else(|| ABSENT.to_owned(), share),
        ];
        let is_theirs = it.quantity == Quantity::Throughput;
        own.into_iter()
            .chain(theirs.map(|theirs| if is_theirs { best_of(theirs, &it.arm) } else { ABSENT.to_owned() }))
            .collect()
    };
    Table::with_head(head, 4, best.iter().map(row).collect())
}

/// `1,707,788 (100 × 16, 100 %)`.
fn best_of(theirs: &PublishedTable, arm: &str) -> String {
    let of = |key: &str| theirs.figure(key, arm);
    let (Some(throughput), Some(connections), Some(threads), Some(success)) =
        (of("throughput"), of("connections"), of("threads"), of("success"))
    else {
        return ABSENT.to_owned();
    };
    let [throughput, connections, threads] = [throughput, connections, threads].map(format::grouped);
    format!("{throughput} ({connections} × {threads}, {success} %)")
}

/// Right answers and failures by class, over all trials.
pub(super) fn by_class(view: &View<'_>, map: &Overview) -> Table {
    let theirs = published(view, TableName::Success);
    let heads = [
        ["failures by class", "유형별 실패", "各类失败"],
        ["success rate", "성공률", "成功率"],
        ["right", "성공", "正确"],
        ["failed", "실패", "失败"],
        ["cut off at the end", "종료할 때 중단됨", "结束时被中断"],
        ["trials (without a report)", "시행(보고서 없음)", "试验（无报告）"],
    ]
    .map(|head| view.language.choose(head).to_owned());
    let head = [Word::MapConnections, Word::Arm].map(|word| view.word(word).to_owned());
    let head =
        head.into_iter().chain(heads).chain(theirs.map(|_| published_heads(view)[0].clone())).collect();
    let row = |it: &SuccessRow| {
        let classes = findings::failure_classes(view.language, &it.classes);
        let published = |theirs: &PublishedTable| {
            let found = theirs.figure(&it.level.to_string(), &it.arm);
            found.map_or_else(|| ABSENT.to_owned(), |percent| format!("{percent} %"))
        };
        let own = vec![
            format::count(it.level),
            it.arm.clone(),
            if classes.is_empty() { ABSENT.to_owned() } else { classes },
            it.success
                .map_or_else(|| ABSENT.to_owned(), |success| with_interval(success, it.success_interval)),
            format::count(it.completed),
            format::count(it.failed),
            format::count(it.cut_off_at_end),
            format!("{} ({})", it.trials, it.trials_without_report),
        ];
        own.into_iter().chain(theirs.map(published)).collect()
    };
    let rows = map.success.iter().map(row).collect();
    let counted = [
        "Counted, all of it: every round and trial, those set aside for errors included. The 99 % interval is that of \
         messages that fail each by itself (Wilson); where failures come together, as with a connection, it is too narrow.",
        "모든 라운드와 시행을 빠짐없이 셌습니다(오류로 제외한 것 포함). 99 % 신뢰구간은 메시지가 서로 독립적으로 실패한다고 가정한 값(Wilson)입니다. 연결이 끊길 때처럼 한꺼번에 실패하면 \
        실제보다 좁습니다.",
        "全部计数，包括因出错而剔除的轮次与试验。99 % 置信区间按各消息相互独立失败计算（Wilson）；若成批失败（如连接断开），该区间偏窄。",
    ];
    let own = view.language.choose(counted).to_owned();
    let sentences = of_no_cell(std::iter::once(own).chain(theirs.map(|it| explained(view, it))));
    Table::with_head(head, 3, rows).titled(name(view, TableName::Success), sentences)
}

/// A share of successes, never rounded up to 100 %.
pub(crate) fn share(share: f64) -> String {
    if share >= 1.0 { "100 %".to_owned() } else { format!("{:.4} %", (share * 1e6).floor() / 1e4) }
}

/// `99.9998 % [99.9990, 100]`: the ends are rounded outwards.
fn with_interval(success: f64, interval: Option<(f64, f64)>) -> String {
    let Some((low, high)) = interval else { return share(success) };
    let percent =
        |share: f64| format!("{:.4}", share / 1e4).trim_end_matches('0').trim_end_matches('.').to_owned();
    let (low, high) = ((low * 1e6).floor(), (high * 1e6).ceil());
    format!("{} [{}, {}]", share(success), percent(low), percent(high))
}

#[cfg(test)]
mod tests {
    use super::{share, with_interval};

    #[test]
    fn the_ends_of_an_interval_are_rounded_away_from_the_share() {
        assert_eq!(with_interval(1.0, Some((0.999_993_4, 1.0))), "100 % [99.9993, 100]");
        assert_eq!(with_interval(0.5, Some((0.499_999_99, 0.500_000_01))), "50.0000 % [49.9999, 50.0001]");
        assert_eq!(with_interval(1.0, None), "100 %");
    }

    #[test]
    fn one_failure_in_millions_is_not_rounded_away() {
        assert_eq!([share(1.0), share(1.0 - 1e-9), share(0.99804)], ["100 %", "99.9999 %", "99.8040 %"]);
    }
}
