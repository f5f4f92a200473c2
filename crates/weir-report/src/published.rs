//! Published figures next to measured ones: the tables. The sentences are the study's own, in the languages provided
//! by its author.

use weir_record::{
    effect::{Effect, Question},
    metric::{Metric, Scale},
    metric_rows::METRICS,
    published::{Cause, PublishedClaim, PublishedRun},
    study::{ListenSummary, TimesSummary},
};

use crate::{
    format,
    language::{Language, localized},
    metrics,
    section::{Content, Section},
    table::Table,
    titles,
    view::View,
    words::Word,
};

/// The published claim, after its source.
fn localized_claim(view: &View<'_>, claim: &PublishedClaim) -> String {
    let localized = |text| titles::localized(text, view.language);
    if claim.source.is_empty() {
        return localized(&claim.claim).to_owned();
    }
    format!("{}{}{}", localized(&claim.source), view.language.colon(), localized(&claim.claim))
}

/// Each claim with its figure, its measured counterpart, and the explanation.
pub(crate) fn claims(view: &View<'_>) -> Table {
    let rows = view.result.spec.published.iter().map(|claim| {
        vec![
            format!("{}{}{}", claim.id, view.language.colon(), localized_claim(view, claim)),
            titles::localized(&claim.explanation, view.language).to_owned(),
            subject(view, claim),
            format::ratio(claim.ratio),
            measured_own(view, claim),
            measured(view, claim, Metric::ServerCpuPerMessage),
        ]
    });
    let text = [Word::PublishedClaim, Word::PublishedWhy, Word::Arm];
    let numbers = [Word::PublishedRatio, Word::MeasuredThroughput, Word::MeasuredCpu];
    let cells = view.result.spec.published.iter().map(|claim| vec![claim.cell_id.clone()]).collect();
    Table::new(view, &text, &numbers, rows.collect()).of_cells(cells)
}

/// Whether the claim has a measured counterpart.
fn has_pair(claim: &PublishedClaim) -> bool {
    claim.arm != claim.baseline
}

fn subject(view: &View<'_>, claim: &PublishedClaim) -> String {
    let cell = view.cell_label(&claim.cell_id);
    if has_pair(claim) { format!("{} / {} · {cell}", claim.arm, claim.baseline) } else { cell }
}

/// The measurement for the claim's own metric: a ratio, or the figures themselves if they may be zero or if the claim
/// is about one arm.
fn measured_own(view: &View<'_>, claim: &PublishedClaim) -> String {
    let row = claim.metric.row();
    if has_pair(claim) && row.scale == Scale::Ratio {
        return measured(view, claim, claim.metric);
    }
    let figure = |arm: &str| {
        Some(metrics::figure(view, row.metric, view.summary(&claim.cell_id, arm)?.mean(row.metric)?))
    };
    let text = match (figure(&claim.arm), figure(&claim.baseline)) {
        (Some(arm), Some(baseline)) if has_pair(claim) => Some(format!("{arm} / {baseline}")),
        (arm, _) if row.scale != Scale::Ratio || view.is_simulated(&claim.cell_id) => arm,
        _ => None,
    };
    text.unwrap_or_else(|| format::ABSENT.to_owned())
}

/// Runs with their figures, each next to its measured counterparts.
pub(crate) fn runs(view: &View<'_>) -> Content {
    let runs = &view.result.spec.published_runs;
    Content::unless(runs.is_empty(), || {
        Section::of_table(Word::PublishedRunsTitle, Word::PublishedRunsHelp, runs_table(view))
    })
}

fn runs_table(view: &View<'_>) -> Table {
    let runs = &view.result.spec.published_runs;
    let is_published =
        |metric: &Metric| runs.iter().any(|run| run.figures.iter().any(|(own, _)| own == metric));
    let shown: Vec<Metric> = METRICS.iter().map(|row| row.metric).filter(is_published).collect();
    let rows = runs.iter().flat_map(|run| run.cells.iter().map(|cell| run_row(view, run, cell, &shown)));
    let columns = shown.iter().flat_map(|metric| {
        let name = metrics::brief(view, *metric);
        [
            localized!(view.language, "published {name}", "{name}(발표)", "{name}（公布）"),
            localized!(view.language, "measured {name}", "{name}(측정)", "{name}（实测）"),
        ]
    });
    let subject = [Word::PublishedRun, Word::Cell, Word::Arm].map(|word| view.word(word).to_owned());
    Table::with_head(subject.into_iter().chain(columns).collect(), 3, rows.collect())
}

fn run_row(view: &View<'_>, run: &PublishedRun, cell: &str, shown: &[Metric]) -> Vec<String> {
    let localized = |text| titles::localized(text, view.language);
    let about =
        format!("{} {}{}{}", localized(&run.source), run.name, view.language.colon(), localized(&run.about));
    let summary = view.summary(cell, &run.arm);
    let figures = shown.iter().flat_map(|metric| {
        let published = run.figures.iter().find(|(own, _)| own == metric).map(|(_, figure)| *figure);
        let measured =
            summary.and_then(|summary| Some((view.bound(summary, *metric), summary.mean(*metric)?)));
        let bare = |value: f64| metrics::bare(*metric, value);
        [
            published.map_or_else(|| format::ABSENT.to_owned(), bare),
            measured.map_or_else(|| format::ABSENT.to_owned(), |(bound, it)| format!("{bound}{}", bare(it))),
        ]
    });
    [about, view.cell_label(cell), run.arm.clone()].into_iter().chain(figures).collect()
}

/// The measured ratio with its interval and verdict.
fn measured(view: &View<'_>, claim: &PublishedClaim, metric: Metric) -> String {
    let found = view.pair(&claim.cell_id, (&claim.arm, &claim.baseline), metric);
    match found.filter(|it| has_pair(claim) && it.estimate.is_some()) {
        None => format::ABSENT.to_owned(),
        Some(it) => format!("{} {}", metrics::effect(it), view.outcome_words(it)),
    }
}

/// The same in one paragraph each, for a terminal.
pub(crate) fn paragraphs(view: &View<'_>) -> Vec<String> {
    let name = |word: Word| view.word(word);
    let (colon, stop) = if view.language == Language::Chinese { ("：", "。") } else { (": ", ". ") };
    view.result
        .spec
        .published
        .iter()
        .map(|claim| {
            let figures = [
                (name(Word::PublishedRatio), format::ratio(claim.ratio)),
                (name(Word::MeasuredThroughput), measured_own(view, claim)),
                (name(Word::MeasuredCpu), measured(view, claim, Metric::ServerCpuPerMessage)),
            ];
            let known = figures.iter().filter(|(_, figure)| figure != format::ABSENT);
            let known: Vec<String> = known.map(|(name, figure)| format!("{name}{colon}{figure}")).collect();
            let figures = if known.is_empty() { String::new() } else { format!(" [{}]", known.join("; ")) };
            let (text, why) =
                (localized_claim(view, claim), titles::localized(&claim.explanation, view.language));
            format!("{}{colon}{text}{figures}{stop}{why}", claim.id)
        })
        .collect()
}

/// A cause of a published difference, and its effect on one metric.
pub(crate) struct CauseOf<'a> {
    /// The published pair with the cause enabled.
    pub with: Option<&'a Effect>,
    /// The share of the published difference that the cause accounts for.
    pub share: Option<&'a Effect>,
}

/// A cause of a published difference, if its cell was measured.
pub(crate) struct Attribution<'a> {
    pub claim: &'a PublishedClaim,
    pub cause: &'a Cause,
    pub throughput: CauseOf<'a>,
    pub server_cpu: CauseOf<'a>,
}

/// Every cause of every claim.
pub(crate) fn attributions<'a>(view: &View<'a>) -> Vec<Attribution<'a>> {
    let one = |(claim_place, claim, place, cause): (u32, &'a PublishedClaim, u32, &'a Cause)| {
        let with = view.answering(Question::PublishedCause(claim_place, place));
        let shares = view.answering(Question::PublishedShare(claim_place, place));
        let of = |metric: Metric| {
            let by_metric = |rows: &[&'a Effect]| rows.iter().copied().find(|row| row.metric == metric);
            CauseOf { with: by_metric(with), share: by_metric(shares) }
        };
        let (throughput, server_cpu) = (of(Metric::Throughput), of(Metric::ServerCpuPerMessage));
        (!with.is_empty()).then_some(Attribution { claim, cause, throughput, server_cpu })
    };
    let causes = (0..).zip(&view.result.spec.published).flat_map(|(claim_place, claim)| {
        (0..).zip(&claim.causes).map(move |(place, cause)| (claim_place, claim, place, cause))
    });
    causes.filter_map(one).collect()
}

/// The effect of each cause of a published difference.
pub(crate) fn causes(view: &View<'_>) -> Content {
    let all = attributions(view);
    Content::unless(all.is_empty(), || {
        Section::of_table(Word::AttributionsTitle, Word::AttributionsHelp, causes_table(view, &all))
    })
}

fn causes_table(view: &View<'_>, all: &[Attribution<'_>]) -> Table {
    let ratio = |it: &CauseOf<'_>| it.with.map_or_else(|| format::ABSENT.to_owned(), metrics::effect);
    let share = |it: &CauseOf<'_>| match it.share {
        Some(row) if row.interval.is_some() => metrics::found(view, Some(row)),
        row => format::percent_or_absent(row.and_then(|it| it.estimate)),
    };
    let rows = all.iter().map(|it| {
        vec![
            it.claim.id.clone(),
            format!("{} / {}", it.cause.arm, it.cause.baseline),
            view.cell_label(&it.claim.cell_id),
            format::ratio(it.claim.ratio),
            ratio(&it.throughput),
            share(&it.throughput),
            ratio(&it.server_cpu),
            share(&it.server_cpu),
        ]
    });
    let numbers =
        [Word::PublishedRatio, Word::MeasuredThroughput, Word::ShareOfIt, Word::MeasuredCpu, Word::ShareOfIt];
    Table::new(view, &[Word::PublishedClaim, Word::Arm, Word::Cell], &numbers, rows.collect())
}

/// How connections were established.
pub(crate) fn listening(view: &View<'_>) -> Table {
    let rows = view.result.listening.iter().map(|it| listening_row(view, it));
    let numbers = [
        Word::Overflows,
        Word::ListenDrops,
        Word::SynsAgain,
        Word::SegmentsAgain,
        Word::ConnectTime,
        Word::FirstByte,
        Word::LastByte,
        Word::Stalled,
    ];
    Table::new(view, &[Word::Cell, Word::Arm], &numbers, rows.collect())
}

fn listening_row(view: &View<'_>, it: &ListenSummary) -> Vec<String> {
    let count = |count: u64| format::grouped(count as f64);
    let colon = view.language.colon();
    let at_step = |(step_s, number): &(u32, u64)| format!("{step_s} s{colon}{}", count(*number));
    let stalled: Vec<String> = it.stalled.iter().map(at_step).collect();
    vec![
        view.cell_label(&it.cell_id),
        it.arm.clone(),
        count(it.network.listen_overflows),
        count(it.network.listen_drops),
        count(it.network.syn_retransmits),
        count(it.network.tcp_retransmits),
        times(&it.connect),
        times(&it.first_byte),
        times(&it.last_byte),
        if stalled.is_empty() { format::ABSENT.to_owned() } else { stalled.join(" · ") },
    ]
}

/// Median, 99th percentile and largest.
fn times(times: &TimesSummary) -> String {
    if times.count == 0 {
        return format::ABSENT.to_owned();
    }
    let known = |ns: Option<u64>| ns.map_or_else(|| format::ABSENT.to_owned(), |ns| format::nanos(ns as f64));
    format!("{} / {} / {}", known(times.p50_ns), known(times.p99_ns), format::nanos(times.ns_max as f64))
}

/// Steps of the ladder that are listed.
const STEPS_SHOWN: usize = 7;

/// The SYN retransmission ladder of kernels before 6.5.
const OLD_LADDER: &str = "1, 3, 7, 15";

/// The ladder of kernels from 6.5 on.
const NEW_LADDER: &str = "1, 2, 3, 4, 5, 7, 11";

/// When this kernel retransmits an unanswered SYN, next to the times of the other kind of kernel.
pub(crate) fn ladder(view: &View<'_>) -> Option<String> {
    let steps = &view.result.syn_ladder_s;
    let second = *steps.get(1)?;
    let shown: Vec<String> = steps.iter().take(STEPS_SHOWN).map(u32::to_string).collect();
    let shown = shown.join(", ");
    let linear = view.result.fingerprint.limits.get("tcp_syn_linear_timeouts");
    let sysctl = linear.map(|value| format!("tcp_syn_linear_timeouts = {value}")).unwrap_or_default();
    // With exponential backoff from the start, the second step is at three seconds.
    let is_linear = second < 3;
    Some(match is_linear {
        true => localized!(
            view.language,
            "This kernel sends an unanswered SYN again after {shown} s ({sysctl}); kernels before 6.5 do so after \
             {OLD_LADDER} s.",
            "이 커널은 응답 없는 SYN을 {shown}초 뒤에 다시 보냅니다({sysctl}). 6.5 이전 커널은 {OLD_LADDER}초 뒤에 보냅니다.",
            "本机内核在 {shown} 秒后重发未获应答的 SYN（{sysctl}）；6.5 之前的内核在 {OLD_LADDER} 秒后重发。",
        ),
        false => localized!(
            view.language,
            "This kernel sends an unanswered SYN again after {shown} s; from 6.5 on the steps are {NEW_LADDER} s.",
            "이 커널은 응답 없는 SYN을 {shown}초 뒤에 다시 보냅니다. 6.5부터는 {NEW_LADDER}초입니다.",
            "本机内核在 {shown} 秒后重发未获应答的 SYN；从 6.5 起为 {NEW_LADDER} 秒。",
        ),
    })
}

/// Whether the table of claims should be shown.
pub(crate) fn has_claims(view: &View<'_>) -> bool {
    !view.result.spec.published.is_empty()
}
