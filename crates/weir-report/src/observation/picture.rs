//! On a CPU and off it, by system call: two charts on a page, bars of characters on a terminal.

use maud::{Markup, html};
use weir_record::observation::{CallFigures, Observation, Trace};

use super::{
    blocks::{Block, Columns},
    tables::{Legend, columns, explained},
};
use crate::{
    chart::{Stacked, StackedBar, stacked},
    display::printable,
    format::{self, ABSENT},
    language::Language,
};

/// Calls with separate bars; the tables contain more.
const BARS_MAX: usize = 10;
/// Smallest share that is shown as more than zero.
const SHARE_MIN: f64 = 0.000_5;
/// Columns of a terminal that the longest bar takes.
const BAR_COLUMNS: usize = 10;

/// A call's times as shares of one CPU's time.
struct Shares {
    name: String,
    /// In the call itself, and in softirqs that ran within it.
    on_cpu: [f64; 2],
    /// Asleep, and woken or preempted without running yet.
    off_cpu: [f64; 2],
}

fn sum(parts: [f64; 2]) -> f64 {
    parts.iter().sum()
}

/// `None` if the kernel's programs did not separate time asleep from work.
pub(super) fn picture(observation: &Observation, trace: &Trace, language: Language) -> Option<Block> {
    let mut calls: Vec<Shares> = trace.calls.iter().map(|call| shares(call, trace)).collect();
    calls.retain(|call| sum(call.on_cpu) > 0.0 || sum(call.off_cpu) > 0.0);
    if !trace.is_split || trace.window_ns == 0 || calls.is_empty() {
        return None;
    }
    let title = language.choose([
        "On a CPU and off it, by system call",
        "시스템 콜별 CPU 사용과 대기",
        "各系统调用占用 CPU 与不占 CPU 的时间",
    ]);
    let help = language.choose([
        "Shares of the time of one CPU. On a CPU is what a call costs, without what watching added, with softirqs that came \
         within it beside; off it is waiting, one time for each thread that waits, and costs nothing. Only what is on a CPU \
         can be saved.",
        "CPU 하나의 시간에 대한 비율입니다. CPU 사용은 호출의 비용입니다. 관찰 때문에 늘어난 몫은 뺐고, 호출 안에서 실행된 softirq를 따로 표시합니다. 대기는 기다린 시간으로, 기다린 \
        스레드 수만큼 더합니다. 대기는 비용이 아니며, 줄일 수 있는 것은 CPU 사용뿐입니다.",
        "占一个 CPU 时间的份额。占用 CPU 是调用的开销（已扣除观测增加的部分），其中运行的软中断另列。不占 CPU 是等待，有几个线程在等就累加几次，并非开销。能省下的只有占用 CPU 的部分。",
    ]);
    Some(Block {
        title: title.to_owned(),
        help: help.to_owned(),
        table: table(&calls, language),
        picture: Some(drawn(observation, trace, &calls, language)),
        ..Block::default()
    })
}

fn shares(call: &CallFigures, trace: &Trace) -> Shares {
    let share = |ns: f64| (ns / trace.window_ns as f64).max(0.0);
    // If the kernel charges no process for softirqs, they are in no time of the process.
    let softirq_ns = if trace.softirqs_are_apart == Some(true) { 0 } else { call.softirq_ns };
    Shares {
        name: printable(&call.name),
        on_cpu: [share(call.cpu_ns(&trace.cost)), share(softirq_ns as f64)],
        off_cpu: [share(call.blocked_ns as f64), share(call.queued_ns as f64)],
    }
}

/// The largest first; calls whose bar would be empty are omitted.
fn most(calls: &[Shares], of: fn(&Shares) -> [f64; 2]) -> Vec<&Shares> {
    let mut most: Vec<&Shares> = calls.iter().filter(|call| sum(of(call)) >= SHARE_MIN).collect();
    most.sort_by(|one, other| sum(of(other)).total_cmp(&sum(of(one))));
    most.truncate(BARS_MAX);
    most
}

fn drawn(observation: &Observation, trace: &Trace, calls: &[Shares], language: Language) -> Markup {
    let names = |all: &[[&'static str; 3]]| all.iter().map(|it| language.choose(*it).to_owned()).collect();
    let bars = |of: fn(&Shares) -> [f64; 2]| -> Vec<StackedBar> {
        most(calls, of).into_iter().map(|call| bar(&call.name, of(call).to_vec())).collect()
    };
    let mut on = bars(|call| call.on_cpu);
    let outside = language.choose(["outside of calls", "시스템 콜 밖", "系统调用之外"]);
    on.push(bar(outside, vec![0.0, 0.0, outside_share(observation, trace)]));
    let chart = |parts, bars| stacked(&Stacked { parts, bars, text: format::percent, tick: format::percent });
    let on_cpu = chart(
        names(&[
            ["in the call", "호출 자체", "调用本身"],
            ["softirqs within it", "그 안의 softirq", "其中的软中断"],
            ["outside of calls", "시스템 콜 밖", "系统调用之外"],
        ]),
        on,
    );
    let off_cpu = chart(
        names(&[["asleep", "잠듦", "睡眠"], ["queued", "CPU 대기", "排队"]]),
        bars(|call| call.off_cpu),
    );
    html! {
        div.pair {
            div.chart { figure role="img" aria-label=(language.choose(ON_CPU)) {
                figcaption { (language.choose(ON_CPU)) }
                (on_cpu)
            } }
            div.chart { figure role="img" aria-label=(language.choose(OFF_CPU)) {
                figcaption { (language.choose(OFF_CPU)) }
                (off_cpu)
            } }
        }
    }
}

const ON_CPU: [&str; 3] = ["On a CPU", "CPU 사용", "占用 CPU"];
const OFF_CPU: [&str; 3] = ["Off it", "대기", "不占 CPU"];

const LEGEND: [Legend; 2] = [
    (
        1,
        [
            "of one CPU's time, with softirqs within the call",
            "코어 하나의 시간에 대한 비율, 호출 안의 softirq 포함",
            "占一个 CPU 时间的份额，含调用中的软中断",
        ],
    ),
    (
        2,
        [
            "waiting, for each thread that does; costs no CPU",
            "기다린 시간, 스레드마다 더함, CPU 비용 아님",
            "等待，按线程累加，不占 CPU",
        ],
    ),
];

fn bar(name: &str, amounts: Vec<f64>) -> StackedBar {
    let number = format::percent(amounts.iter().sum());
    StackedBar { name: name.to_owned(), amounts, whole: None, number }
}

/// Its CPU outside of calls, as a share of one CPU.
fn outside_share(observation: &Observation, trace: &Trace) -> f64 {
    let calls_ns: f64 = trace.calls.iter().map(|call| call.cpu_ns(&trace.cost)).sum();
    (observation.unwatched_cpu_ns() - calls_ns - trace.softirqs_ns()).max(0.0) / trace.window_ns as f64
}

/// The same numbers, each with a bar relative to the largest of its column.
fn table(calls: &[Shares], language: Language) -> Option<Columns> {
    let head = [["call", "호출", "调用"], ON_CPU, OFF_CPU].map(|texts| language.choose(texts).to_owned());
    let mut rows: Vec<&Shares> = calls.iter().collect();
    rows.sort_by(|one, other| sum(other.on_cpu).total_cmp(&sum(one.on_cpu)));
    let longest = |of: fn(&Shares) -> [f64; 2]| calls.iter().map(|call| sum(of(call))).fold(0.0, f64::max);
    let (most_on, most_off) = (longest(|call| call.on_cpu), longest(|call| call.off_cpu));
    let row = |call: &&Shares| {
        vec![
            call.name.clone(),
            in_characters(sum(call.on_cpu), most_on),
            in_characters(sum(call.off_cpu), most_off),
        ]
    };
    let left_out = rows.len().saturating_sub(BARS_MAX);
    rows.truncate(BARS_MAX);
    let mut found = columns(head.to_vec(), 1, rows.iter().map(row).collect(), &[])?;
    found.table.left_out += left_out;
    Some(explained(found, &LEGEND, language))
}

/// A bar and its number, as wide as any other of the column.
fn in_characters(share: f64, largest: f64) -> String {
    if share <= 0.0 {
        return ABSENT.to_owned();
    }
    let columns = (BAR_COLUMNS as f64 * share / largest).ceil().clamp(1.0, BAR_COLUMNS as f64) as usize;
    let number = format::percent(share);
    format!("{}{} {number:>8}", "█".repeat(columns), " ".repeat(BAR_COLUMNS - columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share_of_the_largest_and_all_of_one_width() {
        assert_eq!(in_characters(0.5, 0.5), "██████████     50 %");
        assert_eq!(in_characters(0.2, 0.5), "████           20 %");
        assert_eq!(in_characters(0.000_1, 0.5), "█             0.0 %");
        assert_eq!(in_characters(0.0, 0.5), ABSENT);
    }

    #[test]
    fn without_the_schedulers_part_there_is_no_picture() {
        let call = CallFigures { name: "read".to_owned(), count: 10, on_cpu_ns: 9_000, ..Default::default() };
        let mut trace = Trace { window_ns: 100_000, calls: vec![call], is_split: true, ..Trace::default() };
        let observation = Observation::default();
        assert!(picture(&observation, &trace, Language::English).is_some());
        trace.is_split = false;
        assert!(
            picture(&observation, &trace, Language::English).is_none(),
            "time asleep would pass for work"
        );
        trace = Trace { is_split: true, calls: Vec::new(), ..trace };
        assert!(picture(&observation, &trace, Language::English).is_none());
    }
}
