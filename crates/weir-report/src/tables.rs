//! The numbers behind every block as plain tables of text, shared by the page and by Markdown.

use std::collections::BTreeMap;

use weir_record::{
    check::{Check, CheckName},
    effect::Effect,
    machine::RunningProcess,
    metric::{Family, Metric},
    metric_rows::METRICS,
    spec::ServerHost,
    study::ArmSummary,
};

use crate::{
    check_words,
    display::printable,
    format,
    language::localized,
    metrics, origin, sentence,
    table::Table,
    view::View,
    words::{self, Word},
};

/// Most cells whose latency or counters are shown.
pub(crate) const CELLS_MAX: usize = 24;

/// A counter below this per message in every arm is omitted.
const COUNT_MIN: f64 = 0.0005;

/// Facts about the run as short pairs of a title and a detail.
pub(crate) fn chips(view: &View<'_>) -> Vec<(String, String)> {
    let result = view.result;
    let complete = if result.complete { Word::Complete } else { Word::Incomplete };
    let (states, states_detail) = sentence::states(view);
    let pinning = pinning(view);
    let fingerprint = &result.fingerprint;
    let mut machine = vec![fingerprint.cpu_model.clone(), format!("{} CPU", fingerprint.cpus_online)];
    machine.push(format::bytes(fingerprint.memory_bytes));
    machine.extend(fingerprint.hypervisor.clone());
    machine.retain(|part| !part.is_empty());
    let mut chips = vec![
        (view.word(complete).to_owned(), view.language.duration(result.elapsed_ns)),
        (sentence::trials_used(view), sentence::steal(view)),
        (view.word(states).to_owned(), states_detail),
    ];
    if !result.arms.is_empty() {
        let evidence = view.word(sentence::evidence(result));
        chips.push((view.word(Word::Evidence).to_owned(), evidence.to_owned()));
    }
    chips.extend(of_commit(view));
    chips.extend(result.spec.server_host.as_ref().map(|host| on_two_hosts(view, host)));
    chips.extend(fingerprint.running.iter().map(|(arm, process)| ran_before(view, arm, process)));
    chips.extend([
        (machine.join(", "), pinning),
        (
            format!("Linux {} {}", fingerprint.kernel_release, fingerprint.architecture),
            [&format!("Weir {}", fingerprint.weir_version), &fingerprint.build]
                .into_iter()
                .filter(|part| !part.is_empty())
                .cloned()
                .collect::<Vec<_>>()
                .join(", "),
        ),
    ]);
    chips
}

/// The commit that the study is of, and what else was said of it.
fn of_commit(view: &View<'_>) -> Option<(String, String)> {
    let known = &view.result.spec.origin;
    let commit = origin::commit(known);
    let beside = [
        known.branch.clone().unwrap_or_default(),
        origin::labels(known),
        known.note.clone().unwrap_or_default(),
    ];
    let beside = beside.iter().filter(|part| !part.is_empty()).map(|part| printable(part));
    let title = localized!(view.language, "commit {commit}", "커밋 {commit}", "提交 {commit}");
    (!known.is_empty()).then(|| (title, beside.collect::<Vec<_>>().join(view.language.list())))
}

/// Servers on another host than the generator's: which, and what machine the load came from.
fn on_two_hosts(view: &View<'_>, host: &ServerHost) -> (String, String) {
    let name = host.host.as_ref().or(host.rsh.as_ref()).unwrap_or(&host.address);
    let address = &host.address;
    let servers = localized!(
        view.language,
        "servers on {name} ({address})",
        "서버 호스트 {name}({address})",
        "服务器位于 {name}（{address}）",
    );
    let load = view.result.fingerprint.load_host.as_deref();
    let load = load.map(|it| format!("{}, {} CPU, Linux {}", it.host, it.cpus_online, it.kernel_release));
    let load = load.unwrap_or_default();
    let delay = host.control_delay_ns as f64;
    let delay = format::nanos(delay);
    let detail = localized!(
        view.language,
        "load from {load}; a question to the host took {delay}",
        "부하 {load}; 제어 왕복 {delay}",
        "负载来自 {load}；控制往返耗时 {delay}",
    );
    let here = view.result.fingerprint.load_host.as_deref().map(|it| link(&it.load_link)).unwrap_or_default();
    let there = link(&view.result.fingerprint.load_link);
    if here.is_empty() || there.is_empty() {
        return (servers, detail);
    }
    let links = localized!(
        view.language,
        "; interface of the servers: {there}; of the load: {here}",
        "; 서버 쪽 인터페이스: {there}; 부하 쪽: {here}",
        "；服务器端网卡：{there}；负载端：{here}",
    );
    (servers, detail + &links)
}

/// Name, driver, speed and longest packet of the interface that carries the load, as far as they are known.
fn link(facts: &BTreeMap<String, String>) -> String {
    let fact = |name: &str| facts.get(name).map(|fact| printable(fact));
    let mtu = fact("mtu").map(|mtu| format!("MTU {mtu}"));
    let known = [fact("interface"), fact("driver"), fact("speed"), mtu];
    known.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A server that ran before the study: where it was found, and what may differ from those that the study starts.
fn ran_before(view: &View<'_>, arm: &str, process: &RunningProcess) -> (String, String) {
    let RunningProcess { address, cgroup, found_by_port, program, cpus_allowed, .. } = process;
    let who = match (process.pid, cgroup) {
        (_, Some(cgroup)) => cgroup.clone(),
        (pid, None) => format!("{program} ({})", pid.unwrap_or_default()),
    };
    let how = match found_by_port {
        true => localized!(
            view.language,
            "found by {address}",
            "{address}에서 연결을 받는 프로세스를 찾음",
            "按 {address} 找到"
        ),
        false => localized!(view.language, "at {address}", "주소 {address}", "地址 {address}"),
    };
    let cpus = match cpus_allowed.as_str() {
        "" => String::new(),
        cpus => format!(", CPU {cpus}"),
    };
    let not_ours = view.language.choose([
        "not started, pinned or stopped by Weir",
        "Weir가 시작하거나 CPU에 고정하거나 멈추지 않음",
        "Weir 未启动、绑定或暂停它",
    ]);
    (format!("{arm}: {who}"), format!("{how}{cpus}; {not_ours}"))
}

fn pinning(view: &View<'_>) -> String {
    let list = |cpus: &[usize]| match cpus {
        [] => view.word(Word::NotPinned).to_owned(),
        cpus => format!("CPU {}", cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",")),
    };
    let spec = &view.result.spec;
    let is_started = spec.arms.iter().any(|arm| arm.running().is_none());
    let server = list(if is_started { &spec.server_cpus } else { &[] });
    let load = list(&spec.load_cpus);
    if view.is_storage {
        return localized!(
            view.language,
            "job {server}, background {load}",
            "작업 {server}, 배경 부하 {load}",
            "任务 {server}，背景负载 {load}"
        );
    }
    localized!(
        view.language,
        "server {server}, generator {load}",
        "서버 {server}, 부하 생성기 {load}",
        "服务器 {server}，负载生成器 {load}"
    )
}

/// Comparisons of one metric, for the table under its part of the forest plot.
pub(crate) fn comparisons_of(view: &View<'_>, metric: Metric) -> Table {
    let text = [Word::Metric, Word::Cell, Word::Arm, Word::Verdict];
    let numbers = [
        Word::RatioInterval,
        Word::Confidence,
        Word::DetectableShort,
        Word::FloorShort,
        Word::Pairs,
        Word::PValue,
        Word::PHolm,
    ];
    Table::new(
        view,
        &text,
        &numbers,
        view.comparisons_of(metric).into_iter().map(|row| comparison(view, row)).collect(),
    )
}

fn comparison(view: &View<'_>, row: &Effect) -> Vec<String> {
    let role = view.cell(&row.cell_id).map(|cell| view.word(words::role(cell.role)));
    vec![
        metrics::name(view, row.metric),
        format!("{} ({})", view.cell_label(&row.cell_id), role.unwrap_or(view.word(Word::Exploratory))),
        format!("{} / {}", row.arm, row.baseline),
        view.outcome_words(row),
        metrics::effect(row),
        match row.level {
            0.0 => format::ABSENT.to_owned(),
            level => format::percent(level),
        },
        metrics::detectable(row),
        metrics::floor(view, row),
        row.units.to_string(),
        format::probability(row.p_value),
        format::probability(row.p_value_holm),
    ]
}

/// Figures of one metric, for the table under its chart.
pub(crate) fn figures_of(view: &View<'_>, metric: Metric) -> Table {
    figures_table(view, &[metric])
}

/// The metrics with figures of an arm, except for these.
pub(crate) fn further_figures(view: &View<'_>, drawn: &[Metric]) -> Table {
    let measured = || view.result.arms.iter().filter(|it| !view.is_simulated(&it.cell_id));
    let has_figures = |metric: &Metric| measured().any(|it| it.figures(*metric).is_some());
    let further = METRICS.iter().map(|row| row.metric).filter(|metric| !drawn.contains(metric));
    figures_table(view, &further.filter(has_figures).collect::<Vec<_>>())
}

fn figures_table(view: &View<'_>, shown: &[Metric]) -> Table {
    let measured = view.cells.iter().filter(|cell| !view.is_simulated(cell));
    let summaries = measured.flat_map(|cell| view.summaries(cell));
    let rows = summaries.map(|summary| {
        let figures = shown.iter().map(|metric| figure(view, summary, *metric));
        let subject = [view.cell_label(&summary.cell_id), summary.arm.clone()];
        subject.into_iter().chain(figures).chain([summary.trials.to_string()]).collect()
    });
    let mut table = Table::new(view, &[Word::Cell, Word::Arm], &[Word::Trials], rows.collect());
    table.head.splice(2..2, shown.iter().map(|metric| metrics::column(view, *metric)));
    table
}

/// `5.10 µs (4.98 µs – 5.31 µs)`.
fn figure(view: &View<'_>, summary: &ArmSummary, metric: Metric) -> String {
    let Some(figures) = summary.figures(metric) else { return format::ABSENT.to_owned() };
    let text = format::with_range(figures.mean, figures.range(), |value| metrics::bare(metric, value));
    format!("{}{text}", view.bound(summary, metric))
}

/// Quantiles of one cell.
pub(crate) fn latency(view: &View<'_>, cell: &str) -> Table {
    let rows = view.summaries(cell).into_iter().flat_map(|summary| {
        summary.response_quantiles.iter().map(|(quantile, response_ns)| {
            let service = summary.service_quantiles.iter().find(|(other, _)| other == quantile);
            vec![
                summary.arm.clone(),
                format::quantile(*quantile),
                format::nanos(*response_ns as f64),
                service.map_or_else(|| format::ABSENT.to_owned(), |(_, ns)| format::nanos(*ns as f64)),
            ]
        })
    });
    let numbers = [Word::Percentile, Word::ResponseTime, Word::ServiceTime];
    Table::new(view, &[Word::Arm], &numbers, rows.collect())
}

/// Cells in which an arm has its own counters, or switches were observed.
pub(crate) fn why_cells<'a>(view: &View<'a>) -> Vec<&'a str> {
    let has_reasons =
        |cell: &&str| !view.is_simulated(cell) && !why_rows(view, &view.summaries(cell)).is_empty();
    view.cells.iter().copied().filter(has_reasons).collect()
}

/// One quantity per message over the arms of a cell; `None` if an arm lacks the counter.
pub(crate) struct WhyRow {
    /// The counted quantity.
    pub name: String,
    /// The counter's own name if `name` is an explanation.
    pub counter: Option<String>,
    /// One value per arm.
    pub values: Vec<Option<f64>>,
}

/// Counts per message closer than this count as the same.
const ALIKE: f64 = 0.01;

impl WhyRow {
    /// Whether the arms differ only negligibly.
    pub(crate) fn is_same(&self) -> bool {
        let known: Vec<f64> = self.values.iter().flatten().copied().collect();
        let largest = known.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let smallest = known.iter().copied().fold(f64::INFINITY, f64::min);
        known.len() == self.values.len() && largest - smallest <= ALIKE * largest
    }
}

/// Differences per message: system calls, switches, then the engine's counters.
pub(crate) fn why_rows(view: &View<'_>, summaries: &[&ArmSummary]) -> Vec<WhyRow> {
    let row = |name: String, value: &dyn Fn(&ArmSummary) -> Option<f64>| WhyRow {
        name,
        counter: None,
        values: summaries.iter().map(|summary| value(summary)).collect(),
    };
    let mut rows = vec![row(view.word(Word::Syscalls).to_owned(), &|it| it.syscalls_per_message)];
    for of_events in METRICS.iter().filter(|row| row.family == Family::Events) {
        rows.push(row(metrics::name(view, of_events.metric), &|it| it.mean(of_events.metric)));
    }
    let mut counters: Vec<&str> = Vec::new();
    for (name, _) in summaries.iter().flat_map(|summary| &summary.engine_per_message) {
        if !counters.contains(&name.as_str()) {
            counters.push(name);
        }
    }
    rows.extend(counters.into_iter().map(|counter| {
        let value = |summary: &&ArmSummary| {
            summary.engine_per_message.iter().find(|(name, _)| name == counter).map(|(_, value)| *value)
        };
        let explained = words::counter(counter, view.language);
        WhyRow {
            name: explained.unwrap_or(counter).to_owned(),
            counter: explained.map(|_| counter.to_owned()),
            values: summaries.iter().map(value).collect(),
        }
    }));
    let shows = |value: &Option<f64>| value.is_some_and(|value| value.is_finite() && value >= COUNT_MIN);
    rows.retain(|row| row.values.iter().any(shows));
    rows
}

/// The same as text.
pub(crate) fn why(view: &View<'_>, summaries: &[&ArmSummary]) -> Table {
    let rows = why_rows(view, summaries).into_iter().map(|row| {
        let values = row.values.iter();
        let texts = values.map(|value| value.map_or_else(|| format::ABSENT.to_owned(), format::per_message));
        let counter = row.counter.map(|counter| format!(" ({counter})")).unwrap_or_default();
        std::iter::once(format!("{}{counter}", row.name)).chain(texts).collect()
    });
    let mut table = Table::new(view, &[Word::Metric], &[], rows.collect());
    table.head.extend(summaries.iter().map(|summary| summary.arm.clone()));
    table
}

/// Validity checks.
pub(crate) fn checks(view: &View<'_>) -> Table {
    checks_of(view, &view.result.checks.iter().collect::<Vec<_>>())
}

/// Some of them.
pub(crate) fn checks_of(view: &View<'_>, checks: &[&Check]) -> Table {
    let rows = checks.iter().map(|check| {
        let outcome = if check.name == CheckName::NotAsked {
            format::ABSENT.to_owned()
        } else if check.passed {
            format!("✓ {}", view.word(Word::Passed))
        } else {
            format!("✗ {}", view.word(Word::Failed))
        };
        let name = check_words::check(&check.name).map_or_else(|name| name, |word| view.word(word));
        vec![outcome, name.to_owned(), view.finding(&check.detail)]
    });
    Table::new(view, &[Word::Outcome, Word::Check, Word::Found], &[], rows.collect())
}

/// Every trial in time order.
pub(crate) fn timeline(view: &View<'_>) -> Table {
    let rows = view.result.timeline.iter().map(|entry| {
        vec![
            entry.arm.clone(),
            view.cell_label(&entry.cell_id),
            view.word(if entry.clean { Word::Used } else { Word::Excluded }).to_owned(),
            entry.block.to_string(),
            format!("{:.1} s", entry.started_ns as f64 / 1e9),
            format!("{:.1} s", entry.elapsed_ns as f64 / 1e9),
            format::nanos(entry.round_trip_ns),
            format::percent(entry.steal_share),
        ]
    });
    let text = [Word::Arm, Word::Cell, Word::Outcome];
    let numbers = [Word::Block, Word::Start, Word::Length, Word::CrossCore, Word::Steal];
    Table::new(view, &text, &numbers, rows.collect())
}
