//! What the kernel did per message, from slices of evidence: the observers and their cost, switches, wake-ups and
//! batches, and the system calls by kind with their time on a CPU and asleep.

use weir_record::{
    evidence::{ArmEvidence, CallEvidence, Coverage, Needed, SeenOfNeeded},
    machine::NetworkCounters,
};

use crate::{
    format,
    language::localized,
    rung,
    section::{Content, Section},
    table::Table,
    view::View,
    words::Word,
};

/// Rare calls with less than this share of the total time are combined in one row.
const SMALL: f64 = 0.005;

const SEEN_OF_NEEDED: [&str; 3] =
    ["seen of what the messages need", "메시지 처리에 필요한 양 중 관찰된 비율", "观测到的占消息所需的比例"];
const NOT_ALL: [&str; 3] = ["NOT ALL OF IT", "일부만 관찰됨", "只观测到一部分"];
const GENERATOR_CPU: [&str; 3] = ["generator CPU", "부하 생성기 CPU", "负载生成器 CPU"];

/// The section.
pub(crate) fn section(view: &View<'_>) -> Content {
    Content::unless(view.result.evidence.is_empty(), || {
        let found =
            [groups(view), calls(view), wakers(view)].into_iter().filter(|table| !table.rows.is_empty());
        let tables = [observers(view), per_message(view)].into_iter().chain(found);
        Section { tables: tables.collect(), ..Section::new(Word::EvidenceTitle, Word::EvidenceHelp) }
    })
}

/// The observers, their duration and cost, and whether engine and kernel agree.
fn observers(view: &View<'_>) -> Table {
    let row = |arm: &ArmEvidence| {
        let tax = arm.tax.map(|tax| (tax.ratio - 1.0, tax.interval));
        vec![
            view.cell_label(&arm.cell_id),
            arm.arm.clone(),
            rung::name(arm.rung, view.language).to_owned(),
            agreement(view, arm.coverage.as_ref()),
            covered(view, arm.needed.as_ref()),
            format::count(arm.messages),
            format::nanos(arm.server_cpu_ns),
            generator_cpu(arm),
            tax.map_or_else(|| format::ABSENT.to_owned(), |(tax, interval)| change(tax, interval)),
            match arm.calls.as_slice() {
                [] => format::ABSENT.to_owned(),
                calls => format::per_message(calls.iter().map(|call| call.count).sum()),
            },
        ]
    };
    let rows = view.result.evidence.iter().map(row).collect();
    let word = |word: Word| view.word(word).to_owned();
    let head = vec![
        word(Word::Cell),
        word(Word::Arm),
        word(Word::EvidenceRung),
        word(Word::EvidenceAgreement),
        view.language.choose(SEEN_OF_NEEDED).to_owned(),
        word(Word::EvidenceCompleted),
        word(Word::EvidenceCpu),
        view.language.choose(GENERATOR_CPU).to_owned(),
        word(Word::EvidenceTax),
        word(Word::Syscalls),
    ];
    Table::with_head(head, 5, rows)
}

/// The observed amount relative to what the messages need, using the smallest ratio.
fn covered(view: &View<'_>, needed: Option<&Needed>) -> String {
    let Some(needed) = needed else { return format::ABSENT.to_owned() };
    let language = view.language;
    let of_bytes = |bytes: SeenOfNeeded| format::percent_or_absent(Some(bytes.share()));
    let moves = format::percent_or_absent(Some(needed.moves.share()));
    let said = match (needed.received_bytes.map(of_bytes), needed.sent_bytes.map(of_bytes)) {
        (Some(received), Some(sent)) => localized!(
            language,
            "{received} of bytes in, {sent} out, {moves} of calls",
            "받은 바이트 {received}, 보낸 바이트 {sent}, 호출 {moves}",
            "接收字节 {received}，发送字节 {sent}，调用 {moves}",
        ),
        _ => localized!(
            language,
            "{moves} of calls and operations",
            "호출과 연산 {moves}",
            "调用与操作 {moves}",
        ),
    };
    if needed.is_covered() { said } else { format!("{}{}{said}", language.choose(NOT_ALL), language.colon()) }
}

/// From unobserved slices, if there are any.
fn generator_cpu(arm: &ArmEvidence) -> String {
    arm.generator_cpu_ns.map_or_else(|| format::ABSENT.to_owned(), format::nanos)
}

fn agreement(view: &View<'_>, coverage: Option<&Coverage>) -> String {
    let Some(coverage) = coverage else { return format::ABSENT.to_owned() };
    let word = match coverage {
        _ if coverage.is_unknown => Word::EvidenceUnknown,
        _ if coverage.agrees() => Word::EvidenceAgrees,
        _ => Word::EvidenceDisagrees,
    };
    format!(
        "{}{}{} / {}",
        view.word(word),
        view.language.colon(),
        format::count(coverage.engine),
        format::count(coverage.kernel)
    )
}

/// Cost of each group of the kernel's programs, and its base.
fn groups(view: &View<'_>) -> Table {
    let rows = view.result.evidence.iter().flat_map(|arm| {
        arm.tax_by_group.iter().map(|tax| {
            let without = match tax.group.as_str() {
                "calls" | "proc" => Word::NotObserved,
                _ => Word::GroupCalls,
            };
            vec![
                view.cell_label(&arm.cell_id),
                arm.arm.clone(),
                group(view, &tax.group).to_owned(),
                view.word(without).to_owned(),
                change(tax.ratio.ratio - 1.0, tax.ratio.interval),
                tax.ratio.pairs.to_string(),
            ]
        })
    });
    let text = [Word::Cell, Word::Arm, Word::GroupTaxOver, Word::GroupTaxCompared];
    Table::new(view, &text, &[Word::EvidenceTax, Word::Pairs], rows.collect())
}

fn group<'t>(view: &View<'_>, key: &'t str) -> &'t str {
    match key {
        "calls" => view.word(Word::GroupCalls),
        "proc" => view.word(Word::GroupProc),
        "scheduling" => view.word(Word::GroupScheduling),
        "io_uring" => view.word(Word::GroupUring),
        "softirqs" => view.word(Word::GroupSoftirqs),
        other => other,
    }
}

/// `+12.0 % [+10.1 %, +14.0 %]`.
fn change(change: f64, interval: Option<(f64, f64)>) -> String {
    let signed = |value: f64| {
        let sign = if value >= 0.0 { "+" } else { "" };
        format!("{sign}{}", format::percent(value))
    };
    match interval {
        Some((low, high)) => {
            format!("{} [{}, {}]", signed(change), signed(low - 1.0), signed(high - 1.0))
        }
        None => signed(change),
    }
}

/// Figures of each arm per message, other than its calls.
fn per_message(view: &View<'_>) -> Table {
    let batch = |found: Option<f64>| found.map_or_else(|| format::ABSENT.to_owned(), format::per_message);
    let time = |ns: Option<f64>| ns.map_or_else(|| format::ABSENT.to_owned(), format::nanos);
    let row = |arm: &ArmEvidence| {
        let woken = arm.wakers.iter().map(|waker| waker.count).sum();
        vec![
            view.cell_label(&arm.cell_id),
            arm.arm.clone(),
            format::per_message(arm.context_switches.0),
            format::per_message(arm.context_switches.1),
            if arm.wakers.is_empty() { format::ABSENT.to_owned() } else { format::per_message(woken) },
            batch(arm.batches.events_per_wait),
            batch(arm.batches.submissions_per_enter),
            batch(arm.batches.completions_per_enter),
            time(arm.softirq_ns.map(|(own, _)| own)),
            time(arm.softirq_ns.map(|(_, elsewhere)| elsewhere)),
            format::nanos(arm.machine_cpu_ns),
            arm.network.map_or_else(|| format::ABSENT.to_owned(), |it| trouble(&it)),
        ]
    };
    let numbers = [
        Word::SwitchesVoluntary,
        Word::SwitchesInvoluntary,
        Word::Wakeups,
        Word::EventsPerWait,
        Word::SubmissionsPerEnter,
        Word::CompletionsPerEnter,
        Word::SoftirqOwn,
        Word::SoftirqElsewhere,
        Word::MachineCpuUnwatched,
        Word::TcpTrouble,
    ];
    Table::new(view, &[Word::Cell, Word::Arm], &numbers, view.result.evidence.iter().map(row).collect())
}

/// `0 / 0 / 12`.
fn trouble(network: &NetworkCounters) -> String {
    let NetworkCounters { listen_overflows, listen_drops, tcp_retransmits, .. } = *network;
    [listen_overflows, listen_drops, tcp_retransmits].map(format::count).join(" / ")
}

/// Wakers of the threads of every arm.
fn wakers(view: &View<'_>) -> Table {
    let rows = view.result.evidence.iter().flat_map(|arm| {
        arm.wakers.iter().map(|waker| {
            let name = if waker.name.is_empty() { view.word(Word::OtherWakers) } else { &waker.name };
            vec![
                view.cell_label(&arm.cell_id),
                arm.arm.clone(),
                name.to_owned(),
                format::per_message(waker.count),
                format::nanos(waker.slept_ns),
            ]
        })
    });
    let text = [Word::Cell, Word::Arm, Word::WokenBy];
    Table::new(view, &text, &[Word::Wakeups, Word::SleptBefore], rows.collect())
}

/// The calls of every arm, and the server CPU outside of them.
fn calls(view: &View<'_>) -> Table {
    let rows = view.result.evidence.iter().filter(|arm| !arm.calls.is_empty()).flat_map(|arm| {
        let all_ns: f64 = arm.calls.iter().map(|call| call.on_cpu_ns).sum();
        let is_shown = |call: &&CallEvidence| call.on_cpu_ns >= SMALL * all_ns || call.count >= SMALL;
        let (shown, small): (Vec<&CallEvidence>, Vec<&CallEvidence>) = arm.calls.iter().partition(is_shown);
        let mut rows: Vec<Vec<String>> = shown.into_iter().map(|call| call_row(view, arm, call)).collect();
        if !small.is_empty() {
            let mut others =
                CallEvidence { name: view.word(Word::OtherCalls).to_owned(), ..Default::default() };
            for call in small {
                others.count += call.count;
                others.on_cpu_ns += call.on_cpu_ns;
                others.blocked_ns += call.blocked_ns;
                others.queued_ns += call.queued_ns;
            }
            rows.push(call_row(view, arm, &others));
        }
        let outside = CallEvidence {
            name: view.word(Word::OutsideCalls).to_owned(),
            on_cpu_ns: arm.outside_ns(),
            ..Default::default()
        };
        rows.push(call_row(view, arm, &outside));
        rows
    });
    let text = [Word::Cell, Word::Arm, Word::SystemCall];
    let numbers = [
        Word::CallCount,
        Word::CallReturned,
        Word::CallOnCpu,
        Word::CallShare,
        Word::CallAsleep,
        Word::CallQueued,
    ];
    Table::new(view, &text, &numbers, rows.collect())
}

fn call_row(view: &View<'_>, arm: &ArmEvidence, call: &CallEvidence) -> Vec<String> {
    let time = |ns: f64| if ns != 0.0 { format::nanos(ns) } else { format::ABSENT.to_owned() };
    let is_call = call.count > 0.0;
    let number =
        |value: f64, text: fn(f64) -> String| if is_call { text(value) } else { format::ABSENT.to_owned() };
    vec![
        view.cell_label(&arm.cell_id),
        arm.arm.clone(),
        call.name.clone(),
        number(call.count, format::per_message),
        if call.returned > 0.0 { format::per_message(call.returned) } else { format::ABSENT.to_owned() },
        time(call.on_cpu_ns),
        format::percent(arm.share(call.on_cpu_ns)),
        time(call.blocked_ns),
        time(call.queued_ns),
    ]
}
