//! System calls as strace sums them, next to the sum without strace's own effect and without waiting.

use std::cmp::Ordering;

use weir_record::{
    evidence::{CallEvidence, KernelTime, Needed, SeenOfNeeded, UnderStrace},
    observation::StraceRow,
    published::{PublishedTable, TableName},
};

use crate::{
    cited::{Sentence, distinct},
    findings,
    format::{self, ABSENT},
    language::localized,
    overview,
    section::{Content, Section},
    table::Table,
    view::View,
    words::Word,
};

/// Kinds of calls shown per arm; those with most time.
const CALLS_SHOWN: usize = 12;

const SEEN_OF_NEEDED: [&str; 3] = [
    "strace: receives and sends of those needed",
    "strace: 필요한 송수신 중 관찰된 비율",
    "strace：观测到的收发占所需的比例",
];

/// The section; if it was requested but failed, the reason.
pub(crate) fn section(view: &View<'_>) -> Content {
    let found = &view.result.strace;
    let is_asked = view.result.spec.cells.iter().any(|cell| {
        cell.alternation.and_then(|alternation| alternation.evidence).is_some_and(|evidence| evidence.strace)
    });
    Content::unless(!is_asked, || Section {
        sentences: match found.as_slice() {
            [] => vec![not_held(view).into()],
            found => {
                let of_cell = |it: &UnderStrace, text| Sentence { text, cells: vec![it.cell_id.clone()] };
                let ratios = found.iter().filter_map(|it| Some(of_cell(it, sentence(view, it)?)));
                ratios.chain(found.iter().filter_map(|it| Some(of_cell(it, not_seen(view, it)?)))).collect()
            }
        },
        tables: if found.is_empty() { Vec::new() } else { vec![sums(view), calls(view)] }
            .into_iter()
            .chain(overview::published(view, TableName::SystemCalls).map(|it| published(view, it)))
            .chain(overview::published(view, TableName::SystemCallShares).map(|it| shares(view, it)))
            .collect(),
        ..Section::new(Word::StraceTitle, Word::StraceHelp)
    })
}

/// The published figures under strace.
fn published(view: &View<'_>, theirs: &PublishedTable) -> Table {
    let row = |arm: &String| {
        let of = |key: &str| theirs.figure(key, arm);
        vec![
            arm.clone(),
            of("calls").map_or_else(|| ABSENT.to_owned(), format::grouped),
            of("seconds").map_or_else(|| ABSENT.to_owned(), |seconds| format::nanos(seconds * 1e9)),
            of("microseconds-each").map_or_else(|| ABSENT.to_owned(), |us| format::nanos(us * 1e3)),
        ]
    };
    let numbers = [Word::StraceCount, Word::StraceTotal, Word::StraceMean];
    let table = Table::new(view, &[Word::Arm], &numbers, theirs.arms.iter().map(row).collect());
    let sentences = vec![overview::explained(view, theirs).into()];
    table.titled(overview::name(view, TableName::SystemCalls), sentences)
}

/// Each call's share of strace's sum: as published, and in each cell here.
fn shares(view: &View<'_>, theirs: &PublishedTable) -> Table {
    let cells = distinct(in_order(view).map(|it| &it.cell_id));
    let row = |arm: &str, call: &str| {
        let here = cells.iter().map(|cell| {
            let own = view.result.strace.iter().find(|it| it.arm == arm && it.cell_id == *cell);
            format::percent_or_absent(own.and_then(|own| share(own, call)))
        });
        let published = published_share(theirs, call, arm);
        let published = published.map_or_else(|| ABSENT.to_owned(), |percent| format!("{percent:.2} %"));
        [arm.to_owned(), call.to_owned(), published].into_iter().chain(here).collect::<Vec<String>>()
    };
    let of_arm = |arm: &String| -> Vec<Vec<String>> {
        calls_of(view, theirs, arm).into_iter().map(|call| row(arm, call)).collect()
    };
    let [published, _] = overview::published_heads(view);
    let mut head = [Word::Arm, Word::SystemCall].map(|word| view.word(word).to_owned()).to_vec();
    head.push(published);
    head.extend(cells.iter().map(|cell| format!("strace · {}", view.cell_label(cell))));
    let table = Table::with_head(head, 2, theirs.arms.iter().flat_map(of_arm).collect());
    let sentences = vec![overview::explained(view, theirs).into()];
    table.titled(overview::name(view, TableName::SystemCallShares), sentences)
}

/// Calls of an arm: the published ones, largest first, and then those that strace sees here.
fn calls_of<'v>(view: &View<'v>, theirs: &'v PublishedTable, arm: &str) -> Vec<&'v str> {
    let published = |call: &str| published_share(theirs, call, arm);
    let mut calls: Vec<&str> = theirs.rows.iter().map(|row| row.key.as_str()).collect();
    calls.retain(|call| published(call).is_some());
    calls.sort_by(|one, other| published(other).partial_cmp(&published(one)).unwrap_or(Ordering::Equal));
    for own in view.result.strace.iter().filter(|it| it.arm == arm) {
        for row in own.rows.iter().take(CALLS_SHOWN) {
            if !calls.contains(&row.name.as_str()) {
                calls.push(&row.name);
            }
        }
    }
    calls
}

/// In percent; zero for a call that the source lacks for this arm.
fn published_share(theirs: &PublishedTable, call: &str, arm: &str) -> Option<f64> {
    theirs.figure(call, arm).filter(|percent| *percent > 0.0)
}

/// A call's share of the time in all calls; `None` if strace did not see it.
fn share(of: &UnderStrace, call: &str) -> Option<f64> {
    let all_ns: u64 = of.rows.iter().map(|row| row.time_ns).sum();
    let row = of.rows.iter().find(|row| row.name == call)?;
    Some(row.time_ns as f64 / all_ns.max(1) as f64)
}

fn not_held(view: &View<'_>) -> String {
    let text = [
        "No server was held by strace: it is not installed, or may not trace here; `weir doctor` says which.",
        "strace로 추적한 서버가 없습니다. strace가 없거나 추적이 허용되지 않습니다. 원인은 `weir doctor`로 확인하십시오.",
        "没有用 strace 跟踪任何服务器：未安装 strace，或不允许跟踪。原因请用 `weir doctor` 查看。",
    ];
    view.language.choose(text).to_owned()
}

/// `c1: uring has 4 calls that receive or send in strace's count, and 4,000 messages need 8,000 …`, if that is so.
fn not_seen(view: &View<'_>, it: &UnderStrace) -> Option<String> {
    let needed = it.needed.filter(|needed| needed.share() < Needed::SHARE_MIN)?;
    let (cell, arm) = (view.cell_label(&it.cell_id), &it.arm);
    let [seen, least, messages] = [needed.seen, needed.needed, it.messages].map(format::count);
    let several = findings::plural(view.language, view.kind());
    Some(localized!(
        view.language,
        "{cell}: strace's table of {arm} leaves out how its data moved: {messages} {several} need at least {least} calls that \
         receive or send, and it has {seen}. Operations of io_uring are no system calls.",
        "{cell}: {arm}의 strace 표에는 데이터가 오간 경로가 빠져 있습니다. {several} {messages}건에는 송수신 호출이 {least}건 이상 필요하지만, 표에는 \
        {seen}건만 있습니다. io_uring의 작업은 시스템 콜이 아닙니다.",
        "{cell}：{arm} 的 strace 表没有包含数据的收发路径。{several}数为 {messages}，至少需要 {least} 次收发调用，而表中只有 {seen} 次。io_uring \
        的操作不是系统调用。",
    ))
}

/// The study's first arm in the same cell.
fn baseline<'v>(view: &View<'v>, of: &UnderStrace) -> Option<&'v UnderStrace> {
    let first = view.baseline()?;
    view.result.strace.iter().find(|it| it.arm == first && it.cell_id == of.cell_id)
}

/// Ratio of the baseline's value to the arm's.
fn times(baseline: f64, own: f64) -> Option<f64> {
    Some(baseline / own).filter(|ratio| ratio.is_finite() && *ratio > 0.0)
}

/// `c1: epoll has 118× the time in system calls of uring by strace's sum, 1.6× without …`.
fn sentence(view: &View<'_>, it: &UnderStrace) -> Option<String> {
    let first = baseline(view, it).filter(|first| first.arm != it.arm)?;
    let ratio = |of: fn(&KernelTime) -> f64| {
        let both = first.kernel.as_ref().zip(it.kernel.as_ref());
        shown_times(view, both.and_then(|(first, own)| times(of(first), of(own))))
    };
    let strace = shown_times(view, times(first.time_ns_per_second(), it.time_ns_per_second()));
    let (wall, awake) = (ratio(|it| it.wall_ns_per_second), ratio(|it| it.awake_ns_per_second));
    let each = ratio(|it| it.on_cpu_ns);
    let (cell, own, first) = (view.cell_label(&it.cell_id), &it.arm, &first.arm);
    let one = findings::per(view.language, view.kind());
    Some(localized!(
        view.language,
        "{cell}: by strace's sum {first} has {strace} the system call time of {own}; without strace in the way {wall}, with \
         sleeping taken out {awake}, on a CPU per {one} {each}.",
        "{cell}: strace의 합계로는 {first}의 시스템 콜 시간이 {own}의 {strace}입니다. strace 없이 재면 {wall}, 잠든 시간을 빼면 {awake}, {one}당 \
        CPU 시간으로는 {each}입니다.",
        "{cell}：按 strace 的合计，{first} 的系统调用时间是 {own} 的 {strace}。不用 strace 时为 {wall}，去掉睡眠为 {awake}，按每{one}占用的 CPU 计为 \
        {each}。",
    ))
}

/// `118×`.
fn shown_times(view: &View<'_>, ratio: Option<f64>) -> String {
    let number = ratio.map(|ratio| format::ratio_in_prose(ratio, None).0);
    number.map_or_else(
        || format::ABSENT.to_owned(),
        |number| localized!(view.language, "{number}×", "{number}배", "{number} 倍"),
    )
}

fn sums(view: &View<'_>) -> Table {
    let row = |it: &UnderStrace| {
        let first = baseline(view, it);
        let kernel = |of: fn(&KernelTime) -> f64| it.kernel.as_ref().map(of);
        let ratio = |of: fn(&KernelTime) -> f64| {
            let first = first.and_then(|first| first.kernel.as_ref()).map(of);
            format::ratio(first.zip(kernel(of)).and_then(|(first, own)| times(first, own)))
        };
        let seconds = |ns: Option<f64>| ns.map_or_else(|| ABSENT.to_owned(), per_second);
        let calls: u64 = it.rows.iter().map(|row| row.calls).sum();
        let rate = calls as f64 * 1e9 / (it.length_ns as f64).max(1.0);
        vec![
            view.cell_label(&it.cell_id),
            it.arm.clone(),
            format::grouped(rate),
            per_second(it.time_ns_per_second()),
            format::ratio(first.and_then(|first| times(first.time_ns_per_second(), it.time_ns_per_second()))),
            seconds(kernel(|it| it.wall_ns_per_second)),
            seconds(kernel(|it| it.awake_ns_per_second)),
            ratio(|it| it.awake_ns_per_second),
            kernel(|it| it.on_cpu_ns).map_or_else(|| ABSENT.to_owned(), format::nanos),
            ratio(|it| it.on_cpu_ns),
            format::percent_or_absent(it.kept),
            format::percent_or_absent(it.needed.map(SeenOfNeeded::share)),
        ]
    };
    let rows = in_order(view).map(row).collect();
    let numbers = [
        Word::StraceCalls,
        Word::StraceTime,
        Word::StraceRatio,
        Word::KernelWall,
        Word::KernelAwake,
        Word::StraceRatio,
        Word::KernelOnCpu,
        Word::StraceRatio,
        Word::StraceKept,
    ];
    let mut table = Table::new(view, &[Word::Cell, Word::Arm], &numbers, rows);
    table.head.push(view.language.choose(SEEN_OF_NEEDED).to_owned());
    table
}

fn in_order<'v>(view: &View<'v>) -> impl Iterator<Item = &'v UnderStrace> {
    let found = &view.result.strace;
    view.cells.clone().into_iter().flat_map(move |cell| found.iter().filter(move |it| it.cell_id == cell))
}

/// Time per second of load: `1.98 s/s`.
fn per_second(ns: f64) -> String {
    format!("{:.3} s/s", ns / 1e9)
}

/// Document 000's columns, and the kernel programs' figures for one call of the same kind.
fn calls(view: &View<'_>) -> Table {
    let rows = in_order(view).flat_map(|it| {
        let evidence = view.result.evidence.iter().find(|own| own.cell_id == it.cell_id && own.arm == it.arm);
        let row = |row: &StraceRow| {
            let kernel = evidence.and_then(|own| own.calls.iter().find(|call| call.name == row.name));
            let each = |of: fn(&CallEvidence) -> f64| {
                let own = kernel.filter(|call| call.count > 0.0);
                own.map_or_else(|| ABSENT.to_owned(), |call| format::nanos(of(call) / call.count))
            };
            vec![
                view.cell_label(&it.cell_id),
                it.arm.clone(),
                row.name.clone(),
                format::count(row.calls),
                format::nanos(row.time_ns as f64),
                format::nanos(row.time_ns as f64 / row.calls.max(1) as f64),
                format::percent_or_absent(share(it, &row.name)),
                each(|call| call.on_cpu_ns),
                each(|call| call.blocked_ns),
            ]
        };
        it.rows.iter().take(CALLS_SHOWN).map(row).collect::<Vec<_>>()
    });
    let numbers = [
        Word::StraceCount,
        Word::StraceTotal,
        Word::StraceMean,
        Word::StraceShare,
        Word::KernelOnCpuEach,
        Word::KernelAsleepEach,
    ];
    Table::new(view, &[Word::Cell, Word::Arm, Word::SystemCall], &numbers, rows.collect())
}
