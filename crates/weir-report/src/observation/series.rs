//! A process's activity over time: rows on a terminal, lines on a page.

use maud::{Markup, html};
use weir_record::observation::{Interval, IntervalCalls, IntervalKind, Observation, Series};

use super::{
    blocks::{Block, Columns},
    sentences,
    tables::all_columns,
};
use crate::{
    chart::{Line, OverTime, over_time},
    display::printable,
    format::{self, ABSENT},
    language::{Language, localized},
};

/// Most rows of the table; adjacent intervals are joined if there are more.
const ROWS_MAX: usize = 60;
/// Kinds of calls with a separate column, and with a line.
const KIND_COLUMNS: usize = 3;
const KIND_LINES: usize = 5;

pub(super) fn block(observation: &Observation, language: Language) -> Option<Block> {
    let series = observation.series.as_ref().filter(|series| !series.intervals.is_empty())?;
    let title = language.choose(["Over time", "시간에 따른 변화", "随时间变化"]);
    let help = language.choose([
        "Calls are in the interval in which they returned, and so are their bytes; time asleep is in the interval in which \
         it passed, one time for each thread. CPU is that of /proc, with what tracing added.",
        "호출과 그 바이트는 반환된 시간 구간에 셉니다. 잠든 시간은 실제로 잠든 시간 구간에 셉니다(스레드마다 더함). CPU는 /proc 값이며, 추적 때문에 늘어난 몫이 들어 있습니다.",
        "调用及其字节计入其返回时的时间段；睡眠时间计入实际经过的时间段，按线程累加。CPU 取自 /proc，含跟踪增加的部分。",
    ]);
    Some(Block {
        title: title.to_owned(),
        help: help.to_owned(),
        lines: joined(series, language).into_iter().chain(of_rings(observation, language)).collect(),
        table: table(series, language),
        picture: Some(drawn(series, language)),
    })
}

/// Note that intervals are longer than requested.
fn joined(series: &Series, language: Language) -> Option<String> {
    let (asked, length) = (language.duration(series.asked_ns), language.duration(series.interval_ns));
    let line = || {
        localized!(
            language,
            "Intervals of {asked} were joined to {length}, because a record has room for a limited number of them.",
            "기록할 수 있는 시간 구간의 수에 한도가 있어 {asked} 구간을 {length}로 합쳤습니다.",
            "可记录的时间段数有上限，因此将 {asked} 的时间段合并为 {length}。",
        )
    };
    (series.interval_ns > series.asked_ns).then(line)
}

fn of_rings(observation: &Observation, language: Language) -> Option<String> {
    sentences::bytes_of_rings(observation.trace.as_ref()?, language)
}

/// As many rows as fit.
fn rows(series: &Series) -> Vec<Interval> {
    let together = series.intervals.len().div_ceil(ROWS_MAX).max(1);
    let join = |few: &[Interval]| {
        let mut all = few[0].clone();
        few[1..].iter().for_each(|next| all.add(next));
        all
    };
    series.intervals.chunks(together).map(join).collect()
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn per_second(amount: u64, interval: &Interval) -> f64 {
    amount as f64 / seconds(interval.length_ns)
}

fn share(ns: u64, interval: &Interval) -> f64 {
    ns as f64 / interval.length_ns as f64
}

fn table(series: &Series, language: Language) -> Option<Columns> {
    let fixed = match language {
        Language::English => ["from, s", "CPU", "queued", "calls", "asleep", "read", "written"],
        Language::Korean => ["시작(초)", "CPU", "CPU 대기", "횟수", "대기", "읽음", "씀"],
        Language::Chinese => ["起始（秒）", "CPU", "排队", "次数", "睡眠", "读取", "写入"],
    };
    let is_traced = series.intervals.iter().any(|interval| interval.traced.is_some());
    let kinds = series.kinds.iter().take(KIND_COLUMNS).map(|name| printable(name));
    let columns_of_proc = 3;
    let shown = if is_traced { fixed.len() } else { columns_of_proc };
    let head = fixed[..shown].iter().map(|&name| name.to_owned()).chain(kinds.clone()).collect();
    let row = |interval: &Interval| {
        let mut cells = vec![
            format!("{:.1}", seconds(interval.from_ns)),
            format::percent(share(interval.cpu_ns, interval)),
            format::percent(share(interval.run_delay_ns, interval)),
        ];
        if is_traced {
            cells.extend(cells_of_trace(interval, kinds.len()));
        }
        cells
    };
    let rows = rows(series).iter().map(row).collect();
    all_columns(head, 1, rows, &[9, 8, 7, 2, 6, 5])
}

fn cells_of_trace(interval: &Interval, kinds: usize) -> Vec<String> {
    let Some(IntervalCalls { sum, read_bytes, written_bytes, kinds: each }) = &interval.traced else {
        return vec![ABSENT.to_owned(); 4 + kinds];
    };
    let bytes = |bytes: u64| format!("{}/s", format::memory(per_second(bytes, interval)));
    let of_kind = |kind: &IntervalKind| format::rare_rate(per_second(kind.calls, interval));
    let mut cells = vec![
        of_kind(sum),
        format::percent(share(sum.blocked_ns, interval)),
        bytes(*read_bytes),
        bytes(*written_bytes),
    ];
    cells.extend(each.iter().take(kinds).map(of_kind));
    cells
}

fn drawn(series: &Series, language: Language) -> Markup {
    let bounds = |it: &Interval| (seconds(it.from_ns), seconds(it.from_ns.saturating_add(it.length_ns)));
    let intervals: Vec<(f64, f64)> = series.intervals.iter().map(bounds).collect();
    let line = |name: &str, of: &dyn Fn(&Interval) -> f64| Line {
        name: printable(name),
        values: series.intervals.iter().map(of).collect(),
    };
    let traced = |of: fn(&IntervalCalls) -> u64| {
        move |it: &Interval| it.traced.as_ref().map_or(f64::NAN, |calls| per_second(of(calls), it))
    };
    let names = |texts: [&'static str; 3]| language.choose(texts);
    let cpu = vec![
        line("CPU", &|it| share(it.cpu_ns, it)),
        line(names(["queued", "CPU 대기", "排队"]), &|it| share(it.run_delay_ns, it)),
    ];
    let mut charts = vec![(CPU, cpu, format::percent as fn(f64) -> String)];
    if series.intervals.iter().any(|it| it.traced.is_some()) {
        let mut calls = vec![line(names(["all", "전체", "全部"]), &traced(|it| it.sum.calls))];
        calls.extend(series.kinds.iter().take(KIND_LINES).enumerate().map(|(place, name)| {
            let of_kind = |it: &Interval| {
                let kind = it.traced.as_ref().and_then(|calls| calls.kinds.get(place));
                kind.map_or(f64::NAN, |kind| per_second(kind.calls, it))
            };
            line(name, &of_kind)
        }));
        let bytes = vec![
            line(names(["read", "읽음", "读取"]), &traced(|it| it.read_bytes)),
            line(names(["written", "씀", "写入"]), &traced(|it| it.written_bytes)),
        ];
        let asleep =
            |it: &Interval| it.traced.as_ref().map_or(f64::NAN, |calls| share(calls.sum.blocked_ns, it));
        charts.push((CALLS, calls, format::grouped));
        charts.push((BYTES, bytes, format::memory));
        charts.push((ASLEEP, vec![line(names(["asleep", "대기", "睡眠"]), &asleep)], format::percent));
    }
    html! {
        div.pair {
            @for (title, lines, tick) in charts {
                div.chart { figure role="img" aria-label=(language.choose(title)) {
                    figcaption { (language.choose(title)) }
                    (over_time(&OverTime { intervals: intervals.clone(), lines, tick }))
                } }
            }
        }
    }
}

const CPU: [&str; 3] = ["CPU, as a share of one core", "CPU, CPU 하나에 대한 비율", "CPU，占一个 CPU 的比例"];
const CALLS: [&str; 3] = ["System calls a second", "초당 시스템 콜", "每秒系统调用"];
const BYTES: [&str; 3] = ["Bytes a second", "초당 바이트", "每秒字节"];
const ASLEEP: [&str; 3] = [
    "Asleep in system calls, as a share of one thread's time",
    "시스템 콜 안에서 잠든 시간, 스레드 하나의 시간에 대한 비율",
    "系统调用中的睡眠，占一个线程时间的比例",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn series(count: u64, is_traced: bool) -> Series {
        let kind =
            |calls| IntervalKind { calls, on_cpu_ns: 1_000, blocked_ns: 500_000_000, bytes: 64 * calls };
        let interval = |index: u64| Interval {
            from_ns: index * 1_000_000_000,
            length_ns: 1_000_000_000,
            cpu_ns: 250_000_000,
            run_delay_ns: 10_000_000,
            traced: is_traced.then(|| IntervalCalls {
                sum: kind(index + 3),
                read_bytes: 2048,
                written_bytes: 0,
                kinds: vec![kind(index), kind(2), kind(1)],
            }),
        };
        Series {
            asked_ns: 1_000_000_000,
            interval_ns: 1_000_000_000,
            kinds: if is_traced {
                ["read", "sendto", "x\u{1b}"].map(str::to_owned).to_vec()
            } else {
                Vec::new()
            },
            intervals: (0..count).map(interval).collect(),
        }
    }

    #[test]
    fn rows_have_what_was_done_in_each_interval_and_neighbours_are_joined_beyond_the_most() {
        let few = table(&series(3, true), Language::English).expect("there are some").table;
        assert_eq!(few.rows.len(), 3);
        assert_eq!(
            few.rows[2],
            ["2.0", "25 %", "1 %", "5.0/s", "50 %", "2 KiB/s", "0 B/s", "2.0/s", "2.0/s", "1.0/s"]
        );
        let many = series(2 * ROWS_MAX as u64 + 1, true);
        let joined = rows(&many);
        assert!(joined.len() <= ROWS_MAX, "{}", joined.len());
        let calls =
            |all: &[Interval]| all.iter().filter_map(|it| Some(it.traced.as_ref()?.sum.calls)).sum::<u64>();
        assert_eq!(calls(&joined), calls(&many.intervals));
        let without = table(&series(3, false), Language::English).expect("there are some").table;
        assert_eq!(without.head, ["from, s", "CPU", "queued"]);
    }

    #[test]
    fn every_language_has_the_block_and_a_record_without_intervals_has_none() {
        for language in Language::ALL {
            for is_traced in [true, false] {
                let mut seen = Observation { series: Some(series(4, is_traced)), ..Observation::default() };
                let made = block(&seen, language).expect("there are some");
                let drawn = made.picture.expect("it is drawn").into_string();
                assert_eq!(drawn.matches("figcaption").count() / 2, if is_traced { 4 } else { 1 }, "{drawn}");
                assert!(made.lines.is_empty() && !drawn.contains('\u{1b}'));
                seen.series.as_mut().expect("there is one").interval_ns *= 4;
                assert_eq!(block(&seen, language).expect("there are some").lines.len(), 1);
                seen.series = Some(Series::default());
                assert!(block(&seen, language).is_none());
            }
        }
    }
}
