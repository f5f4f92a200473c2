//! The order gateway: the runs of document 001 beside their counterparts, figures per order, what handing over costs by
//! itself, and the answer to the document's wish in one sentence.

use weir_record::{
    gateway::{
        AnsweredLoad, GatewayFindings, HandoffAnswer, NamedRun, OrderFigures, OversubscribedCell,
        PairedDifference,
    },
    metric::Metric,
    study::{ArmSummary, PairedRatio, Spread},
};

use crate::{
    format::{self, ABSENT},
    language::Language,
    metrics,
    section::{Content, Section},
    table::Table,
    view::{View, load_name},
    words::Word,
};

/// What the study found beside its comparisons, where it is one of the gateway.
fn findings<'a>(view: &View<'a>) -> Option<&'a GatewayFindings> {
    view.result.gateway.as_ref()
}

/// The answer of the primary comparison's driver in one sentence; `None` where nothing was handed over.
pub(crate) fn headline(view: &View<'_>) -> Option<String> {
    findings(view)?.answers.first().map(|answer| told(view, answer))
}

/// One sentence for each driver.
fn answers(view: &View<'_>) -> Vec<String> {
    findings(view).map(|found| found.answers.iter().map(|it| told(view, it)).collect()).unwrap_or_default()
}

fn told(view: &View<'_>, answer: &HandoffAnswer) -> String {
    let HandoffAnswer { driver, reference, best, loads, is_halved } = answer;
    let lines = loads.iter().map(|load| of_load(view, load));
    match view.language {
        Language::English => {
            let told = lines.collect::<Vec<_>>().join("; ");
            let halved = match is_halved {
                Some(true) => {
                    "optimising how tasks reach the TaskQueue saves at least half of that cost under every load"
                }
                Some(false) => {
                    "optimising how tasks reach the TaskQueue does not save half of that cost under every load"
                }
                None => {
                    "whether optimising how tasks reach the TaskQueue saves half of that cost under every load stays open"
                }
            };
            format!(
                "On {driver}, handing an order to another worker adds server CPU as follows, with {reference} (a lock and a \
                 wake for every task, as document 001 does it) and with {best}, the best way found: {told}; {halved}."
            )
        }
        Language::Korean => {
            let told = lines.collect::<Vec<_>>().join("; ");
            let halved = match is_halved {
                Some(true) => {
                    "TaskQueue 전달 과정을 최적화하면 모든 부하에서 그 비용이 절반 이하로 줄어듭니다"
                }
                Some(false) => {
                    "TaskQueue 전달 과정을 최적화해도 모든 부하에서 그 비용이 절반으로 줄지는 않습니다"
                }
                None => {
                    "TaskQueue 전달 과정을 최적화하면 모든 부하에서 그 비용이 절반으로 주는지는 판정할 수 없습니다"
                }
            };
            format!(
                "{driver}에서 주문을 다른 워커로 넘길 때 더해지는 서버 CPU({reference}: 문서 001처럼 작업마다 잠금과 깨우기, \
                 {best}: 가장 나은 방식): {told}. {halved}."
            )
        }
        Language::Chinese => {
            let told = lines.collect::<Vec<_>>().join("；");
            let halved = match is_halved {
                Some(true) => "优化任务进入 TaskQueue 的过程，在每种负载下都能把这一开销至少减半",
                Some(false) => "优化任务进入 TaskQueue 的过程，并不能在每种负载下都把这一开销减半",
                None => "优化任务进入 TaskQueue 的过程能否在每种负载下把这一开销减半，尚无法判定",
            };
            format!(
                "在 {driver} 上，把订单交给另一个工作线程所增加的服务器 CPU（{reference}：如文档 001，每个任务加锁并唤醒一次；\
                 {best}：所找到的最佳方式）：{told}；{halved}。"
            )
        }
    }
}

/// `one order in flight 12.1 us against 5.2 us, 0.43x [0.40, 0.47]`, with the wakes where they were counted.
fn of_load(view: &View<'_>, load: &AnsweredLoad) -> String {
    let name = load_name(view.language, &load.load);
    let (reference, best) = (format::micros(load.reference_us), format::micros(load.best_us));
    let share = load.share.map(|share| format::ratio_in_prose(share.ratio, share.interval));
    let share = match (share, view.language) {
        (None, _) => String::new(),
        (Some((number, range)), Language::English) => format!(", {number}×{range}"),
        (Some((number, range)), Language::Korean) => format!(", {number}배{range}"),
        (Some((number, range)), Language::Chinese) => format!("，{number} 倍{range}"),
    };
    let wakes = load.reference_wakes.zip(load.best_wakes).map(|(reference, best)| {
        let (reference, best) = (format::per_message_in_prose(reference), format::per_message_in_prose(best));
        match view.language {
            Language::English => format!(" ({best} wakes a hand-off instead of {reference})"),
            Language::Korean => format!("(전달당 깨우기 {reference}회 대신 {best}회)"),
            Language::Chinese => format!("（每次交接唤醒 {best} 次，而不是 {reference} 次）"),
        }
    });
    let wakes = wakes.unwrap_or_default();
    match view.language {
        Language::English => format!("{name} {reference} and {best}{share}{wakes}"),
        Language::Korean => format!("{name} {reference}와 {best}{share}{wakes}"),
        Language::Chinese => format!("{name} {reference} 与 {best}{share}{wakes}"),
    }
}

/// What the cells have to share, where it is too little.
fn oversubscribed(view: &View<'_>) -> Option<String> {
    let cells = &findings(view)?.oversubscribed;
    let OversubscribedCell { threads, cpus, .. } = cells.iter().max_by_key(|cell| cell.threads)?;
    let (count, all) = (cells.len(), view.result.spec.cells.len());
    Some(match view.language {
        Language::English => format!(
            "Over-subscribed: {count} of {all} cells have up to {threads} busy threads (workers of the gateway, workers of \
             the exchange, the generator) on {cpus} CPUs. Waiting for a CPU is part of what they show; figures per second \
             and latencies do not carry over to a machine that has a CPU for each."
        ),
        Language::Korean => format!(
            "CPU 부족: 조건 {all}개 중 {count}개는 바쁜 스레드(게이트웨이 워커, 거래소 워커, 부하 생성기)가 최대 {threads}개인데 \
             CPU는 {cpus}개뿐입니다. CPU를 기다린 시간도 결과에 들어 있으며, 초당 수치와 지연시간은 스레드마다 CPU가 있는 머신에 \
             그대로 적용되지 않습니다."
        ),
        Language::Chinese => format!(
            "CPU 不足：{all} 个条件中有 {count} 个最多有 {threads} 个繁忙线程（网关与交易所的工作线程、负载生成器），而 CPU 只有 \
             {cpus} 个。等待 CPU 的时间也包含在结果中；每秒数值与延迟不能直接推及每个线程都有 CPU 的机器。"
        ),
    })
}

/// The runs of the document, with the answer to its wish.
pub(crate) fn runs(view: &View<'_>) -> Content {
    Content::unless(findings(view).is_none(), || Section {
        texts: answers(view).into_iter().chain(oversubscribed(view)).collect(),
        ..Section::of_table(Word::RunsTitle, Word::RunsHelp, runs_table(view))
    })
}

/// Published beside measured.
fn runs_table(view: &View<'_>) -> Table {
    let found = findings(view).map(|found| found.runs.as_slice()).unwrap_or_default();
    let rows = found.iter().map(|run| {
        let NamedRun { name, driver, cell_id, arm, .. } = run;
        let summary = view.summary(cell_id, arm);
        let own = |metric: Metric| {
            let median = summary.and_then(|it| it.median(metric));
            median.map_or_else(|| ABSENT.to_owned(), |value| metrics::bare(metric, value))
        };
        let of_orders = |figure: fn(OrderFigures) -> Option<Spread>, text: fn(f64) -> String| {
            median(summary.and_then(|it| figure(it.orders?)), text)
        };
        let published =
            |value: Option<f64>, text: fn(f64) -> String| value.map_or_else(|| ABSENT.to_owned(), text);
        vec![
            name.clone(),
            driver.clone(),
            arm.clone(),
            published(run.published_context_switches_per_second, format::grouped),
            published(run.published_context_switches_per_order, format::per_message),
            own(Metric::SwitchesPerMessage),
            own(Metric::InvoluntarySwitchesPerMessage),
            published(run.published_orders_per_second, format::grouped),
            own(Metric::Throughput),
            published(run.published_p50_us, format::micros),
            of_orders(|orders| orders.p50_us, format::micros),
            own(Metric::ServerCpuPerMessage),
            of_orders(|orders| orders.handed_off_share, format::percent),
        ]
    });
    let word = |word: Word| view.word(word).to_owned();
    let head = [
        word(Word::Run),
        word(Word::Driver),
        word(Word::Arm),
        word(Word::PublishedSwitchesPerSecond),
        word(Word::PublishedSwitches),
        metrics::short(view, Metric::SwitchesPerMessage),
        metrics::short(view, Metric::InvoluntarySwitchesPerMessage),
        word(Word::PublishedOrders),
        metrics::column(view, Metric::Throughput),
        word(Word::PublishedMedian),
        word(Word::RoundTripP50),
        metrics::short(view, Metric::ServerCpuPerMessage),
        word(Word::HandedOff),
    ];
    Table::with_head(head.to_vec(), 3, rows.collect())
}

fn median(spread: Option<Spread>, text: fn(f64) -> String) -> String {
    spread.map_or_else(|| ABSENT.to_owned(), |spread| text(spread.median))
}

fn spread(spread: Option<Spread>, text: fn(f64) -> String) -> String {
    spread.map_or_else(|| ABSENT.to_owned(), |spread| format::spread(spread, text))
}

/// Everything an order costs, by cell and way of handing over.
pub(crate) fn figures(view: &View<'_>) -> Content {
    Content::unless(findings(view).is_none(), || {
        Section::of_table(Word::OrderFiguresTitle, Word::OrderFiguresHelp, figures_table(view))
    })
}

fn figures_table(view: &View<'_>) -> Table {
    let with_orders = |summary: &&ArmSummary| summary.orders.is_some();
    let summaries = view.cells.iter().flat_map(|cell| view.summaries(cell)).filter(with_orders);
    let rows = summaries.map(|summary| {
        let orders = summary.orders.unwrap_or_default();
        let own = |metric: Metric| {
            let spread = summary.figures(metric).map(|it| it.spread);
            spread.map_or_else(
                || ABSENT.to_owned(),
                |spread| format::spread(spread, |value| metrics::bare(metric, value)),
            )
        };
        vec![
            view.cell_label(&summary.cell_id),
            summary.arm.clone(),
            own(Metric::SwitchesPerMessage),
            own(Metric::InvoluntarySwitchesPerMessage),
            spread(orders.wakes_per_order, format::per_message),
            spread(orders.wakes_per_handoff, format::per_message),
            spread(orders.handoffs_per_drain, format::per_message),
            own(Metric::ServerCpuPerMessage),
            spread(orders.p50_us, format::micros),
            spread(orders.p99_us, format::micros),
            median(orders.handed_off_share, format::percent),
        ]
    });
    let word = |word: Word| view.word(word).to_owned();
    let head = [
        word(Word::Cell),
        word(Word::Arm),
        metrics::short(view, Metric::SwitchesPerMessage),
        metrics::short(view, Metric::InvoluntarySwitchesPerMessage),
        word(Word::Wakes),
        word(Word::WakesPerHandoff),
        word(Word::HandoffsPerDrain),
        metrics::short(view, Metric::ServerCpuPerMessage),
        word(Word::RoundTripP50),
        word(Word::RoundTripP99),
        word(Word::HandedOff),
    ];
    Table::with_head(head.to_vec(), 2, rows.collect())
}

/// What handing over costs by itself.
pub(crate) fn costs(view: &View<'_>) -> Content {
    Content::unless(findings(view).is_none(), || {
        Section::of_table(Word::HandoffTitle, Word::HandoffHelp, costs_table(view))
    })
}

fn costs_table(view: &View<'_>) -> Table {
    let found = findings(view).map(|found| found.costs.as_slice()).unwrap_or_default();
    let rows = found.iter().map(|cost| {
        vec![
            view.cell_label(&cost.cell_id),
            cost.arm.clone(),
            difference(cost.cpu_us, format::micros),
            share(cost.of_reference),
            difference(cost.switches, format::per_message),
            difference(cost.p50_us, format::micros),
            cost.cpu_us.map_or(0, |cost| cost.pairs).to_string(),
        ]
    });
    let numbers = [Word::OwnCpu, Word::OfReference, Word::OwnSwitches, Word::OwnRoundTrip, Word::Pairs];
    Table::new(view, &[Word::Cell, Word::Arm], &numbers, rows.collect())
}

fn difference(difference: Option<PairedDifference>, text: fn(f64) -> String) -> String {
    match difference {
        None => ABSENT.to_owned(),
        Some(PairedDifference { difference, interval: None, .. }) => text(difference),
        Some(PairedDifference { difference, interval: Some((low, high)), .. }) => {
            format!("{} [{}, {}]", text(difference), text(low), text(high))
        }
    }
}

fn share(share: Option<PairedRatio>) -> String {
    format::ratio_and_interval(share.map(|it| it.ratio), share.and_then(|it| it.interval))
}
