//! Where the server CPU of each arm goes, as one bar per arm: a chart for each cell, followed by its numbers.

use weir_record::{cpu_account::CpuAccount, cpu_account::CpuPart, evidence::ArmEvidence};

use super::stacked::{Stacked, StackedBar, stacked};
use crate::{
    cpu_account, format,
    section::{Caption, Content, Plot, Section},
    sentence,
    tables::CELLS_MAX,
    view::View,
};

/// Most places with separate parts; the others are combined.
const PARTS_MAX: usize = 8;

const TITLE: [&str; 3] = ["Server CPU by place, drawn", "서버 CPU를 쓴 곳(차트)", "服务器 CPU 去向图"];
const HELP: [&str; 3] = [
    "The same accounts: one bar for each arm, its parts in the order of the legend. The line is the server CPU of unobserved \
     slices: where the bar ends beyond it, the parts explain more than there is.",
    "같은 내역을 대상마다 막대 하나로 그렸습니다. 부분의 순서는 범례와 같습니다. 세로선은 관찰하지 않은 슬라이스의 서버 CPU입니다. 막대가 선을 넘으면 부분의 합이 실제보다 큽니다.",
    "同样的账目：每个方案一条，各部分的次序与图例相同。竖线为未被观测的时间片的服务器 CPU。条形超出竖线，说明各部分之和大于实际。",
];
const OTHER_PLACES: [&str; 3] = ["other places", "그 밖의 곳", "其他去向"];

type Accounted<'v> = (&'v ArmEvidence, &'v CpuAccount);

/// The section.
pub(crate) fn accounts(view: &View<'_>) -> Content {
    let cells: Vec<(&str, Vec<Accounted<'_>>)> = view
        .cells
        .iter()
        .map(|cell| (*cell, of_cell(view, cell)))
        .filter(|(_, arms)| !arms.is_empty())
        .collect();
    let more = cells.len().saturating_sub(CELLS_MAX);
    Content::unless(cells.is_empty(), || {
        let drawn = cells.iter().take(CELLS_MAX).enumerate();
        let plots = drawn.map(|(index, (cell, arms))| Plot {
            id: format!("account-{cell}"),
            title: view.cell_heading(cell),
            image: stacked(&chart(view, arms)),
            numbers: cpu_account::parts(view, arms),
            is_table: false,
            is_half: true,
            is_folded: index > 0,
        });
        Section {
            plots: plots.collect(),
            left_out: (more > 0).then(|| sentence::left_out(view, more)),
            ..Section::new(Caption::Own(TITLE), Caption::Own(HELP))
        }
    })
}

fn of_cell<'v>(view: &View<'v>, cell: &str) -> Vec<Accounted<'v>> {
    let own = view.result.evidence.iter().filter(|arm| arm.cell_id == cell);
    own.filter_map(|arm| Some((arm, arm.account.as_ref()?))).collect()
}

fn amount(account: &CpuAccount, part: &CpuPart) -> f64 {
    account.parts.iter().find(|(own, _)| own == part).map_or(0.0, |(_, amount)| amount.ns)
}

fn chart(view: &View<'_>, arms: &[Accounted<'_>]) -> Stacked {
    let (parts, others) = places(arms);
    let mut names: Vec<String> = parts.iter().map(|part| cpu_account::name(view, part)).collect();
    names.extend((!others.is_empty()).then(|| view.language.choose(OTHER_PLACES).to_owned()));
    let bar = |(arm, account): &Accounted<'_>| {
        let mut amounts: Vec<f64> = parts.iter().map(|part| amount(account, part)).collect();
        amounts.push(others.iter().map(|part| amount(account, part)).sum());
        amounts.truncate(names.len());
        StackedBar {
            name: arm.arm.clone(),
            amounts,
            whole: Some(account.server_cpu.ns),
            number: format::nanos(account.server_cpu.ns),
        }
    };
    let bars = arms.iter().map(bar).collect();
    Stacked { parts: names, bars, text: format::nanos, tick: format::nanos_tick }
}

/// The places that are drawn, first the measured ones, the largest first; and those that are combined.
fn places(arms: &[Accounted<'_>]) -> (Vec<CpuPart>, Vec<CpuPart>) {
    let mut parts: Vec<(CpuPart, f64)> = Vec::new();
    for (part, amount) in arms.iter().flat_map(|(_, account)| &account.parts) {
        match parts.iter_mut().find(|(own, _)| own == part) {
            Some((_, ns)) => *ns = ns.max(amount.ns),
            None => parts.push((part.clone(), amount.ns)),
        }
    }
    let kept = if parts.len() > PARTS_MAX { PARTS_MAX - 1 } else { PARTS_MAX };
    parts.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let others = parts.split_off(parts.len().min(kept));
    parts.sort_by_key(|(part, _)| !part.is_measured());
    let names = |parts: Vec<(CpuPart, f64)>| parts.into_iter().map(|(part, _)| part).collect();
    (names(parts), names(others))
}

#[cfg(test)]
mod tests {
    use weir_record::cpu_account::Amount;

    use super::*;

    #[test]
    fn the_largest_places_have_parts_of_their_own_and_what_is_left_comes_last() {
        let of = |part: CpuPart, ns| (part, Amount { ns, interval: None });
        let mut parts: Vec<(CpuPart, Amount)> = (0..9)
            .map(|number| of(CpuPart::Call(format!("call{number}")), 10.0 + f64::from(number)))
            .collect();
        parts.push(of(CpuPart::Unexplained, 400.0));
        let account = CpuAccount { parts, ..CpuAccount::default() };
        let arm = ArmEvidence::default();
        let (drawn, others) = places(&[(&arm, &account)]);
        assert_eq!((drawn.len(), others.len()), (PARTS_MAX - 1, 3));
        assert_eq!(
            (&drawn[0], drawn.last()),
            (&CpuPart::Call("call8".to_owned()), Some(&CpuPart::Unexplained))
        );
        let few = CpuAccount { parts: account.parts[..8].to_vec(), ..CpuAccount::default() };
        assert_eq!(places(&[(&arm, &few)]).1, []);
    }
}
