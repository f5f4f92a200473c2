//! Causes that were put to the test: the share of a difference that one switch accounts for. Only here does a report
//! say "because".

use weir_record::{
    cause::CauseShare,
    figure::PairedRatio,
    verdict::{Comparison, Verdict},
};

use crate::{
    format,
    language::localized,
    metrics,
    section::{Content, Section},
    table::Table,
    view::View,
    words::Word,
};

/// The section.
pub(crate) fn section(view: &View<'_>) -> Content {
    Content::unless(view.result.causes.is_empty(), || {
        Section::of_table(Word::CausesTitle, Word::CausesHelp, table(view))
    })
}

fn table(view: &View<'_>) -> Table {
    let first = view.baseline().unwrap_or_default();
    let ratio = |ratio: Option<PairedRatio>| {
        format::ratio_and_interval(ratio.map(|it| it.ratio), ratio.and_then(|it| it.interval))
    };
    let row = |it: &CauseShare| {
        let word = match it.share {
            None => Word::NoDifference,
            Some(_) if it.is_cause() => Word::IsCause,
            Some(_) if it.works_against() => Word::WorksAgainst,
            Some(_) => Word::NotShown,
        };
        vec![
            view.cell_label(&it.cell_id),
            format!("{} / {first}", it.asked.arm),
            metrics::short(view, it.asked.metric),
            format!("{} ({})", it.asked.switch, it.asked.without),
            view.word(word).to_owned(),
            ratio(it.difference),
            ratio(it.effect),
            share(it.share),
        ]
    };
    let text = [Word::Cell, Word::Arm, Word::CauseMetric, Word::CauseSwitch, Word::CauseFound];
    let numbers = [Word::CauseDifference, Word::CauseEffect, Word::CauseShare];
    Table::new(view, &text, &numbers, view.result.causes.iter().map(row).collect())
}

/// `43 % [38 %, 48 %]`.
fn share(share: Option<PairedRatio>) -> String {
    let Some(PairedRatio { ratio, interval, .. }) = share else { return format::ABSENT.to_owned() };
    let percent = format::percent;
    match interval {
        Some((low, high)) => format!("{} [{}, {}]", percent(ratio), percent(low), percent(high)),
        None => percent(ratio),
    }
}

/// Why the primary comparison came out as it did, as far as switches were tried; `None` without a difference that was
/// called, and where no switch is known to account for a part of it.
pub(crate) fn because(view: &View<'_>, primary: &Comparison) -> Option<String> {
    if !matches!(primary.verdict, Verdict::Better | Verdict::Worse) {
        return None;
    }
    let is_about = |it: &&CauseShare| {
        let Comparison { cell_id, arm, metric, .. } = primary;
        it.cell_id == *cell_id && it.asked.arm == *arm && it.asked.metric == *metric && it.is_cause()
    };
    let found = view.result.causes.iter().filter(is_about);
    let parts: Vec<String> = found.map(|it| format!("{} {}", it.asked.switch, share(it.share))).collect();
    if parts.is_empty() {
        return None;
    }
    let parts = parts.join(view.language.list());
    Some(localized!(
        view.language,
        "Because, of this difference, as arms without the switch show: {parts}.",
        "이 차이의 원인(해당 설정을 끈 대상으로 확인): {parts}.",
        "这一差异的原因（由关闭该选项的方案证实）：{parts}。",
    ))
}
