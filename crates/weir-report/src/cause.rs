//! Tested causes: the share of a difference that one switch accounts for. Only this section of a report says
//! "because".

use weir_record::{
    cause::CauseSpec,
    effect::{Effect, Question},
    verdict::Verdict,
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

/// The effect of a switch in one cell.
struct Found<'a> {
    asked: &'a CauseSpec,
    /// The arm over the one without the switch.
    effect: Option<&'a Effect>,
    share: &'a Effect,
}

/// Every tested switch, in each of its cells.
fn all<'a>(view: &View<'a>) -> Vec<Found<'a>> {
    let of_cause = |(place, asked): (u32, &'a CauseSpec)| {
        let effects = view.answering(Question::Switch(place));
        let of_cell = |share: &Effect| effects.iter().copied().find(|it| it.cell_id == share.cell_id);
        let shares = view.answering(Question::CauseShare(place)).iter().copied();
        shares.map(|share| Found { asked, effect: of_cell(share), share }).collect::<Vec<_>>()
    };
    (0..).zip(&view.result.spec.causes).flat_map(of_cause).collect()
}

/// The section.
pub(crate) fn section(view: &View<'_>) -> Content {
    let all = all(view);
    Content::unless(all.is_empty(), || {
        Section::of_table(Word::CausesTitle, Word::CausesHelp, table(view, &all))
    })
}

fn table(view: &View<'_>, all: &[Found<'_>]) -> Table {
    let first = view.baseline().unwrap_or_default();
    let ratio = |row: Option<&Effect>| row.map_or_else(|| format::ABSENT.to_owned(), metrics::effect);
    let row = |Found { asked, effect, share }: &Found<'_>| {
        let word = match share.estimate {
            None => Word::NoDifference,
            Some(_) if share.is_above_zero() => Word::IsCause,
            Some(_) if share.is_below_zero() => Word::WorksAgainst,
            Some(_) => Word::NotShown,
        };
        vec![
            view.cell_label(&share.cell_id),
            format!("{} / {first}", asked.arm),
            metrics::short(view, asked.metric),
            format!("{} ({})", asked.switch, asked.without),
            view.word(word).to_owned(),
            ratio(view.pair(&share.cell_id, (&asked.arm, first), asked.metric)),
            ratio(*effect),
            metrics::found(view, Some(share)),
        ]
    };
    let text = [Word::Cell, Word::Arm, Word::CauseMetric, Word::CauseSwitch, Word::CauseFound];
    let numbers = [Word::CauseDifference, Word::CauseEffect, Word::CauseShare];
    Table::new(view, &text, &numbers, all.iter().map(row).collect())
}

/// Why the primary comparison has its result, as far as switches were tested; `None` if no difference was called, or
/// no switch is known to account for a part of it.
pub(crate) fn because(view: &View<'_>, primary: &Effect) -> Option<String> {
    if !matches!(primary.verdict, Verdict::Better | Verdict::Worse) {
        return None;
    }
    let is_about = |Found { asked, share, .. }: &Found<'_>| {
        let Effect { cell_id, arm, metric, .. } = primary;
        share.cell_id == *cell_id && asked.arm == *arm && asked.metric == *metric && share.is_above_zero()
    };
    let found = all(view).into_iter().filter(is_about);
    let part = |it: Found<'_>| format!("{} {}", it.asked.switch, metrics::found(view, Some(it.share)));
    let parts: Vec<String> = found.map(part).collect();
    if parts.is_empty() {
        return None;
    }
    let parts = parts.join(view.language.list());
    Some(localized!(
        view.language,
        "Because, of this difference, as arms without the switch show: {parts}.",
        "이 차이의 원인(설정을 되돌린 대상으로 확인): {parts}.",
        "造成这一差异的原因（由关闭该选项的方案确认）：{parts}。",
    ))
}
