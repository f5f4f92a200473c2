//! From trials to verdicts. Pure: judging the same trials again gives the same result.
//!
//! The rules, in the order they apply to one comparison (a cell, an arm, a metric):
//!
//! 1. Pairs come from `gate`: arm and baseline of the same block, clean, in one state of the machine.
//! 2. A cell is valid only if responses were right: a wrong byte or an unexplained failure, or more than a quarter
//!    of an arm's trials failing for reasons of its own, makes it *not comparable*. So does, in open loop, an arm that
//!    did not keep the offered rate.
//! 3. The effect is the median log-ratio of the pairs; `weir-stats` gives interval, floor and direction. The headline
//!    comparison rests on its interval. Every further claim of the headline and declared cells, to be called
//!    *faster* or *slower*, also needs p at most 0.05 after Holm over all these claims.
//! 4. Throughput has no verdict when the generator was the limit. A CPU verdict then stands only if both arms also
//!    ran at one equal offered rate (an open-loop cell of the same shape) and that does not contradict it:
//!    `equal_rate` says what that means. This holds in exploratory cells too: they are not corrected for being many,
//!    but *faster* is a verdict there as well, and their ratio is printed with or without one.
//! 5. Each arm is compared with the study's first. A published figure of two other arms is set beside a comparison of
//!    these two, in its cell and in the open-loop cells of the same shape; the noise floor is then still that of the
//!    first arm, the only one that runs twice in a block.
//! 6. Latency has no verdict when the generator's own lag is more than a tenth of it.
//! 7. A storage job is its own load. Rules 4 and 6 do not apply to it: there is no generator that could be the limit or
//!    lag, and all its figures are compared in closed loop.

use std::collections::BTreeSet;

use weir_record::{
    SCHEMA_VERSION,
    machine::Fingerprint,
    spec::{CellRole, CellSpec, LoadMode, StudySpec},
    study::{ArmSummary, MissingArm, StudyResult, TimelineEntry},
    trial::TrialRecord,
    verdict::{Comparison, Metric, Verdict},
};
use weir_stats::{
    decide::{Direction, Effect, Limits, decide},
    floor::noise_floor,
    holm::holm,
    interval::paired_interval,
    order::median,
    power::detectable_effect_by_median,
    random::derived_seed,
    signflip::sign_flip_p_value,
};

use crate::{
    attribution::{self, Measured},
    check, equal_rate,
    gate::{Against, Gate, Pair, Pairs, TrialState},
    handoff, listening, plan,
    progress::Progress,
    summary, taint,
};

/// Largest p-value of a difference that is called.
pub const P_VALUE_MAX: f64 = 0.05;

/// Largest share of an arm's trials in a cell that may fail for reasons of its own.
pub const FAILED_SHARE_MAX: f64 = 0.25;

/// Largest p99 of the generator's lag, as a share of the median response time.
pub const LAG_SHARE_MAX: f64 = 0.10;

/// Smallest share of the messages an open-loop trial started that must come back inside its window.
pub const RATE_KEPT_SHARE_MIN: f64 = 0.98;

/// What is judged.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// What was asked, rates fixed.
    pub spec: &'a StudySpec,
    /// Where it ran.
    pub fingerprint: &'a Fingerprint,
    /// Every stored trial; pilots help to find the machine's states and are not compared.
    pub trials: &'a [TrialRecord],
    /// Arms that could not run.
    pub missing_arms: &'a [MissingArm],
    /// Time of all sessions.
    pub elapsed_ns: u64,
    /// Command that runs the study again.
    pub reproduce: &'a str,
}

/// Judges a study, finished or not.
pub fn judge(judged: &Judged<'_>) -> StudyResult {
    let Judged { spec, trials, missing_arms, .. } = *judged;
    let gate = Gate::new(trials);
    let cells = cells_by_role(spec, &gate, trials);
    let mut drafts = draft_all(judged, &gate, &cells);
    let mut comparisons = decide_all(spec, &mut drafts);
    confirm_at_equal_rate(spec, &cells, &drafts, &mut comparisons);
    let headline = headline(spec, &comparisons);
    let arms: Vec<ArmSummary> = cells.iter().flat_map(|cell| arm_summaries(spec, &gate, cell)).collect();
    let gateway = handoff::find(spec, judged.fingerprint, &gate, &measured(&cells), &arms);
    let planned: Vec<&TrialRecord> = cells.iter().flat_map(|cell| cell.trials.iter().copied()).collect();
    let progress = Progress::of(spec, &trials.iter().collect::<Vec<_>>(), missing_arms);
    let mut checks = check::all(spec, &gate, &planned, &comparisons);
    checks.push(check::schedule(spec, missing_arms, &progress, judged.elapsed_ns));
    let syn_ladder_s = weir_evidence::network::syn_ladder_s(&judged.fingerprint.limits);
    let listening = listening::all(spec, &planned, &syn_ladder_s);
    StudyResult {
        schema_version: SCHEMA_VERSION,
        spec: spec.clone(),
        fingerprint: judged.fingerprint.clone(),
        headline,
        verdict: headline.map_or(Verdict::NotComparable, |index| comparisons[index].verdict),
        checks,
        states: gate.summary(planned.iter().copied()),
        timeline: timeline(&gate, &planned),
        comparisons,
        arms,
        missing_arms: missing_arms.to_vec(),
        complete: progress.is_complete(),
        elapsed_ns: judged.elapsed_ns,
        reproduce: judged.reproduce.to_owned(),
        attributions: attribution::all(spec, &gate, &measured(&cells)),
        syn_ladder_s: if listening.is_empty() { Vec::new() } else { syn_ladder_s },
        listening,
        gateway,
    }
}

fn measured<'a, 't>(cells: &'a [CellTrials<'t>]) -> Vec<Measured<'a, 't>> {
    let one = |cell: &'a CellTrials<'t>| Measured {
        cell_id: &cell.spec.id,
        trials: &cell.trials,
        state: cell.state,
    };
    cells.iter().map(one).collect()
}

/// One cell with its trials, and the state it is compared in.
struct CellTrials<'a> {
    spec: &'a CellSpec,
    trials: Vec<&'a TrialRecord>,
    state: TrialState,
}

impl CellTrials<'_> {
    fn of_arm<'s>(&'s self, arm: &'s str) -> impl Iterator<Item = &'s TrialRecord> + 's {
        self.trials.iter().copied().filter(move |trial| trial.arm == arm)
    }
}

/// Headline first, then declared, then exploratory cells, each in the spec's order.
fn cells_by_role<'a>(spec: &'a StudySpec, gate: &Gate, trials: &'a [TrialRecord]) -> Vec<CellTrials<'a>> {
    let of_role = |role| spec.cells.iter().filter(move |cell| cell.role == role);
    [CellRole::Headline, CellRole::Declared, CellRole::Exploratory]
        .into_iter()
        .flat_map(of_role)
        .map(|cell| {
            let mut own: Vec<&TrialRecord> = trials.iter().filter(|trial| trial.cell_id == cell.id).collect();
            own.sort_by_key(|trial| trial.started_ns);
            CellTrials { spec: cell, state: gate.cell_state(&own), trials: own }
        })
        .collect()
}

/// A comparison before its verdict, with what the verdict needs.
struct Draft {
    comparison: Comparison,
    role: CellRole,
    /// Index of its cell in the judge's order.
    cell: usize,
    effect: Option<Effect>,
    noise_floor: Option<f64>,
    /// Why the cell is not valid for this metric.
    obstacles: Vec<String>,
    /// Lower bounds of throughput, when the generator was the limit for either side.
    bounds: Vec<String>,
}

/// A storage job is its own load: the latency of its operations is a figure in closed loop too, and no generator limits
/// how many there are.
const STORAGE_METRICS: [Metric; 5] = [
    Metric::ServerCpuPerMessage,
    Metric::MachineCpuPerMessage,
    Metric::Throughput,
    Metric::LatencyP50,
    Metric::LatencyP99,
];

/// Orders are asked for the switches of the gateway's threads, which is what was published, and for their round trip in
/// closed loop too: with one in flight it is the figure, and not what is left of it.
const ORDER_METRICS: [Metric; 4] =
    [Metric::ServerCpuPerMessage, Metric::SwitchesPerMessage, Metric::Throughput, Metric::LatencyP50];

const PACED_ORDER_METRICS: [Metric; 4] =
    [Metric::ServerCpuPerMessage, Metric::SwitchesPerMessage, Metric::LatencyP50, Metric::LatencyP99];

fn metrics(cell: &CellSpec) -> &'static [Metric] {
    match cell.load {
        LoadMode::Closed if cell.orders.is_some() => &ORDER_METRICS,
        _ if cell.orders.is_some() => &PACED_ORDER_METRICS,
        _ if cell.storage.is_some() => &STORAGE_METRICS,
        LoadMode::Closed => &[Metric::ServerCpuPerMessage, Metric::MachineCpuPerMessage, Metric::Throughput],
        LoadMode::Open { .. } | LoadMode::OpenShare { .. } => &[
            Metric::ServerCpuPerMessage,
            Metric::MachineCpuPerMessage,
            Metric::LatencyP50,
            Metric::LatencyP99,
        ],
    }
}

fn draft_all(judged: &Judged<'_>, gate: &Gate, cells: &[CellTrials<'_>]) -> Vec<Draft> {
    let spec = judged.spec;
    let is_missing = |name: &str| judged.missing_arms.iter().any(|arm| arm.name == name);
    let mut drafts = Vec::new();
    if is_missing(&spec.arms[0].name) {
        return drafts;
    }
    let mut add = |(index, cell): (usize, &CellTrials<'_>), arm: &str, baseline: &str| {
        let has_run = |name: &str| cell.spec.has_arm(name) && !is_missing(name);
        for metric in metrics(cell.spec).iter().filter(|_| has_run(arm) && has_run(baseline)) {
            let seed = plan::interval_seed(spec, drafts.len());
            drafts.push(draft(spec, gate, (index, cell), (arm, baseline), *metric, seed));
        }
    };
    for cell in cells.iter().enumerate() {
        for arm in spec.arms.iter().skip(1) {
            add(cell, &arm.name, &spec.arms[0].name);
        }
    }
    for (cell, arm, baseline) in published_pairs(spec, cells) {
        add((cell, &cells[cell]), arm, baseline);
    }
    drafts
}

/// Pairs of arms without the study's first that published figures stand beside: in the cell they name, and in those
/// that show the two at one equal rate.
fn published_pairs<'s>(spec: &'s StudySpec, cells: &[CellTrials<'_>]) -> BTreeSet<(usize, &'s str, &'s str)> {
    let first = &spec.arms[0].name;
    let own = spec.published.iter().filter(|it| ![&it.arm, &it.baseline].contains(&first));
    own.filter(|claim| claim.arm != claim.baseline)
        .flat_map(|claim| {
            let shape = spec.cells.iter().find(|cell| cell.id == claim.cell_id);
            let is_there = move |cell: &CellSpec| {
                shape.is_some_and(|shape| cell.id == shape.id || equal_rate_of(cell, shape).is_some())
            };
            let there = cells.iter().enumerate().filter(move |(_, cell)| is_there(cell.spec));
            there.map(|(index, _)| (index, claim.arm.as_str(), claim.baseline.as_str()))
        })
        .collect()
}

fn draft(
    spec: &StudySpec,
    gate: &Gate,
    (index, cell): (usize, &CellTrials<'_>),
    (arm, baseline): (&str, &str),
    metric: Metric,
    seed: u64,
) -> Draft {
    let pairs = gate.pairs(&cell.trials, baseline, Against::Arm(arm), cell.state);
    let pairs_self = gate.pairs(&cell.trials, &spec.arms[0].name, Against::Itself, cell.state);
    let logs = log_ratios(&pairs.used, metric);
    let logs_self = log_ratios(&pairs_self.used, metric);
    let interval = paired_interval(&logs, seed);
    let effect = median(&logs).zip(interval).map(|(median, interval)| Effect { median, interval });
    let floor = noise_floor(&logs_self, logs.len(), derived_seed(seed, 1));
    let mut notes = Vec::new();
    if cell.state == TrialState::Far {
        notes
            .push("compared in the machine's far state, which most clean trials of this cell met".to_owned());
    }
    let comparison = Comparison {
        cell_id: cell.spec.id.clone(),
        arm: arm.to_owned(),
        baseline: baseline.to_owned(),
        metric,
        ratio: effect.map(|effect| effect.median.exp()),
        interval: interval.map(|interval| (interval.low.exp(), interval.high.exp())),
        confidence: interval.map_or(0.0, |interval| interval.confidence),
        interval_method: interval.map_or_else(String::new, |interval| interval.method.name().to_owned()),
        p_value: sign_flip_p_value(&logs, seed),
        p_value_holm: None,
        noise_floor: floor.map(f64::exp_m1),
        // The verdict rests on the median's interval, which sees less than a test of the mean.
        detectable_effect: detectable_effect_by_median(&logs),
        pairs: u32::try_from(logs.len()).unwrap_or(u32::MAX),
        pairs_excluded: exclusions(&pairs, logs.len()),
        ratios: logs.iter().map(|log| log.exp()).collect(),
        ratios_self: logs_self.iter().map(|log| log.exp()).collect(),
        ratio_all_pairs: median(&log_ratios(&pairs.all, metric)).map(f64::exp),
        verdict: Verdict::Inconclusive,
        notes,
    };
    Draft {
        comparison,
        role: cell.spec.role,
        cell: index,
        effect,
        noise_floor: floor,
        obstacles: obstacles(cell, baseline, arm, metric, &pairs),
        bounds: generator_bounds(&pairs, baseline, arm, cell.spec),
    }
}

fn exclusions(pairs: &Pairs<'_>, figures: usize) -> Vec<String> {
    let mut words: Vec<String> =
        pairs.excluded.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    if pairs.used.len() > figures {
        words.push(format!("{} without this figure", pairs.used.len() - figures));
    }
    words
}

/// Logarithms of the ratios of one figure, of the pairs that have it.
pub(crate) fn log_ratios(pairs: &[Pair<'_>], metric: Metric) -> Vec<f64> {
    pairs
        .iter()
        .filter_map(|pair| Some(value(pair.arm, metric)? / value(pair.baseline, metric)?))
        .map(f64::ln)
        .filter(|log| log.is_finite())
        .collect()
}

/// A trial's figure; `None` when it was not observed.
fn value(trial: &TrialRecord, metric: Metric) -> Option<f64> {
    let load = trial.load.as_ref()?;
    let observed = load.observed.as_ref();
    let per_message = |total: u64| total as f64 / load.messages as f64;
    let figure = match metric {
        Metric::ServerCpuPerMessage => per_message(observed?.cpu_ns),
        Metric::MachineCpuPerMessage => per_message(observed?.noise.machine_busy_ns),
        Metric::SwitchesPerMessage => per_message(observed?.switches_voluntary),
        Metric::Throughput => load.throughput_per_second,
        Metric::LatencyP50 => load.response.quantile_ns(0.5)? as f64,
        Metric::LatencyP99 => load.response.quantile_ns(0.99)? as f64,
    };
    (figure.is_finite() && figure > 0.0).then_some(figure)
}

/// Everything that makes the cell invalid for this metric.
fn obstacles(
    cell: &CellTrials<'_>,
    baseline: &str,
    arm: &str,
    metric: Metric,
    pairs: &Pairs<'_>,
) -> Vec<String> {
    let mut found = Vec::new();
    for side in [baseline, arm] {
        found.extend(failures(cell, side));
    }
    if matches!(cell.spec.load, LoadMode::Closed) {
        return found;
    }
    for (side, trials) in sides(pairs, baseline, arm) {
        let kept = trials.iter().filter(|trial| keeps_rate(trial)).count();
        if 2 * kept < trials.len() {
            found.push(format!(
                "{side} did not keep the offered rate in {} of {} trials",
                trials.len() - kept,
                trials.len()
            ));
        }
        if matches!(metric, Metric::LatencyP50 | Metric::LatencyP99) {
            found.extend(lag_obstacle(side, &trials, unit(cell.spec)));
        }
    }
    found
}

/// What the responses to one arm say against the cell.
fn failures(cell: &CellTrials<'_>, arm: &str) -> Option<String> {
    let loads = || cell.of_arm(arm).filter_map(|trial| trial.load.as_ref());
    let wrong: u64 = loads().map(|load| load.failures.wrong_bytes).sum();
    if wrong > 0 {
        return Some(format!("{arm} returned wrong bytes in {wrong} responses"));
    }
    let unexplained: u64 = loads().map(|load| load.failures.unexplained).sum();
    if unexplained > 0 {
        return Some(format!("{unexplained} failures of {arm} have no class"));
    }
    let trials = cell.of_arm(arm).count();
    let own: Vec<&'static str> = cell
        .of_arm(arm)
        .filter_map(|trial| trial.taints.iter().find(|taint| !taint::is_noise(taint)).map(taint::words))
        .collect();
    let (first, failed) = (own.first()?, own.len());
    (failed as f64 > FAILED_SHARE_MAX * trials as f64)
        .then(|| format!("{failed} of {trials} trials of {arm} failed, first: {first}"))
}

fn sides<'a, 's>(pairs: &Pairs<'a>, baseline: &'s str, arm: &'s str) -> [(&'s str, Vec<&'a TrialRecord>); 2] {
    [
        (baseline, pairs.used.iter().map(|pair| pair.baseline).collect()),
        (arm, pairs.used.iter().map(|pair| pair.arm).collect()),
    ]
}

fn keeps_rate(trial: &TrialRecord) -> bool {
    trial.load.as_ref().is_some_and(|load| {
        let intended = (load.messages_started + load.missed_starts) as f64;
        load.messages as f64 >= RATE_KEPT_SHARE_MIN * intended
    })
}

fn lag_obstacle(side: &str, trials: &[&TrialRecord], unit: &str) -> Option<String> {
    let shares: Vec<f64> = trials
        .iter()
        .filter_map(|trial| {
            let load = trial.load.as_ref()?;
            let lag_ns = load.send_lag.quantile_ns(0.99)?;
            let response_ns = load.response.quantile_ns(0.5)?;
            Some(lag_ns as f64 / response_ns as f64)
        })
        .collect();
    match median(&shares) {
        None if trials.is_empty() => None,
        None => Some(format!("too few {unit}s to know the generator's lag against {side}")),
        Some(share) => (share > LAG_SHARE_MAX).then(|| {
            format!(
                "the generator's p99 lag against {side} is {:.0} % of the median response time",
                100.0 * share
            )
        }),
    }
}

/// ">= X" for each side whose pairs were mostly limited by the generator.
fn generator_bounds(pairs: &Pairs<'_>, baseline: &str, arm: &str, cell: &CellSpec) -> Vec<String> {
    if !matches!(cell.load, LoadMode::Closed) {
        return Vec::new();
    }
    let mut bounds = Vec::new();
    for (side, trials) in sides(pairs, baseline, arm) {
        let loads: Vec<_> = trials.iter().filter_map(|trial| trial.load.as_ref()).collect();
        let throughput: Vec<f64> = loads.iter().map(|load| load.throughput_per_second).collect();
        let bound = loads.iter().filter(|load| load.generator_bound).count();
        if let (true, Some(median)) = (2 * bound > loads.len(), median(&throughput)) {
            bounds.push(format!("{side} >= {median:.0} {}s/s (generator-bound)", unit(cell)));
        }
    }
    bounds
}

/// What is counted in a cell: a message of echo, a request of HTTP, or an operation on a disk.
fn unit(cell: &CellSpec) -> &'static str {
    match cell {
        _ if cell.storage.is_some() => "operation",
        _ if cell.http.is_some() => "request",
        _ if cell.orders.is_some() => "order",
        _ => "message",
    }
}

/// Holm over the claims, then a verdict for each comparison.
fn decide_all(spec: &StudySpec, drafts: &mut [Draft]) -> Vec<Comparison> {
    let claims: Vec<usize> = (0..drafts.len())
        .filter(|index| {
            let Draft { role, comparison, .. } = &drafts[*index];
            *role != CellRole::Exploratory
                && comparison.metric != Metric::MachineCpuPerMessage
                && comparison.p_value.is_some()
        })
        .collect();
    let p_values: Vec<f64> = claims.iter().filter_map(|index| drafts[*index].comparison.p_value).collect();
    for (index, adjusted) in claims.iter().zip(holm(&p_values).unwrap_or_default()) {
        drafts[*index].comparison.p_value_holm = Some(adjusted);
    }
    let drafted: Vec<Comparison> = drafts.iter().map(|draft| draft.comparison.clone()).collect();
    let headline = headline(spec, &drafted);
    drafts.iter().enumerate().map(|(index, draft)| decided(spec, draft, headline == Some(index))).collect()
}

fn decided(spec: &StudySpec, draft: &Draft, is_headline: bool) -> Comparison {
    let mut comparison = draft.comparison.clone();
    comparison.notes.extend(draft.obstacles.iter().cloned());
    comparison.notes.extend(draft.bounds.iter().cloned());
    let is_bound = comparison.metric == Metric::Throughput && !draft.bounds.is_empty();
    if is_bound || !draft.obstacles.is_empty() {
        comparison.verdict = Verdict::NotComparable;
        return comparison;
    }
    let Some(effect) = &draft.effect else {
        let reason =
            if comparison.pairs_excluded.is_empty() { "nothing was measured" } else { "no pair is left" };
        comparison.notes.push(reason.to_owned());
        comparison.verdict =
            if comparison.pairs_excluded.is_empty() { Verdict::Inconclusive } else { Verdict::NotComparable };
        return comparison;
    };
    let limits = Limits {
        noise_floor: draft.noise_floor,
        smallest_effect: spec.smallest_effect.ln_1p(),
        larger_is_better: comparison.metric.larger_is_better(),
    };
    let is_significant = is_headline || comparison.p_value_holm.is_none_or(|p_value| p_value <= P_VALUE_MAX);
    comparison.verdict = match decide(effect, &limits) {
        Direction::Better if is_significant => Verdict::Faster,
        Direction::Worse if is_significant => Verdict::Slower,
        Direction::Equivalent => Verdict::Equivalent,
        Direction::Better | Direction::Worse | Direction::Undecided => Verdict::Inconclusive,
    };
    comparison
}

/// Applies the rule of `equal_rate` to the CPU verdicts of cells in which the generator was the limit.
fn confirm_at_equal_rate(
    spec: &StudySpec,
    cells: &[CellTrials<'_>],
    drafts: &[Draft],
    comparisons: &mut [Comparison],
) {
    for index in 0..drafts.len() {
        let draft = &drafts[index];
        let metric = draft.comparison.metric;
        let is_cpu = matches!(metric, Metric::ServerCpuPerMessage | Metric::MachineCpuPerMessage);
        let verdict = comparisons[index].verdict;
        let is_decided = matches!(verdict, Verdict::Faster | Verdict::Slower | Verdict::Equivalent);
        if !is_cpu || draft.bounds.is_empty() || !is_decided {
            continue;
        }
        let shape = cells[draft.cell].spec;
        let equal_rate = drafts.iter().zip(comparisons.iter()).find_map(|(other, comparison)| {
            let pair = |it: &Comparison| (it.metric, it.arm.clone(), it.baseline.clone());
            let is_same = pair(&other.comparison) == pair(&draft.comparison);
            let rate_per_second = equal_rate_of(cells[other.cell].spec, shape).filter(|_| is_same)?;
            Some((comparison, rate_per_second))
        });
        let (stands, note) = match equal_rate {
            None => (
                false,
                "the generator was the limit and no open-loop cell shows both arms at one equal rate"
                    .to_owned(),
            ),
            Some((open, rate_per_second)) => {
                let bearing = equal_rate::bearing(&comparisons[index], open, spec.smallest_effect);
                (bearing.stands(), equal_rate::words(bearing, open, rate_per_second))
            }
        };
        comparisons[index].notes.push(note);
        if !stands {
            comparisons[index].verdict = Verdict::NotComparable;
        }
    }
}

/// Rate of an open-loop cell of the same shape.
fn equal_rate_of(other: &CellSpec, shape: &CellSpec) -> Option<f64> {
    let LoadMode::Open { rate_per_second, .. } = other.load else { return None };
    let levels = |cell: &CellSpec| {
        (cell.connections, cell.depth, cell.message_bytes, cell.workers, cell.idle_connections)
    };
    let asked = |cell: &CellSpec| {
        let http = cell.http.clone().map(|http| (http.content, http.close));
        let orders = cell.orders.clone().map(|orders| (orders.driver, orders.in_flight_total));
        (http, cell.storage.clone(), orders)
    };
    (levels(other) == levels(shape) && asked(other) == asked(shape)).then_some(rate_per_second)
}

fn headline(spec: &StudySpec, comparisons: &[Comparison]) -> Option<usize> {
    let cell = spec.cells.iter().find(|cell| cell.role == CellRole::Headline)?;
    comparisons.iter().position(|comparison| {
        comparison.cell_id == cell.id && comparison.metric == Metric::ServerCpuPerMessage
    })
}

fn arm_summaries(spec: &StudySpec, gate: &Gate, cell: &CellTrials<'_>) -> Vec<ArmSummary> {
    let is_used = |trial: &&TrialRecord| gate.is_clean(trial) && gate.state(trial) == cell.state;
    spec.arms
        .iter()
        .map(|arm| {
            let used: Vec<&TrialRecord> = cell.of_arm(&arm.name).filter(is_used).collect();
            summary::summarize(&cell.spec.id, &arm.name, &used)
        })
        .filter(|summary| summary.trials > 0)
        .collect()
}

fn timeline(gate: &Gate, trials: &[&TrialRecord]) -> Vec<TimelineEntry> {
    let mut entries: Vec<TimelineEntry> = trials
        .iter()
        .map(|trial| TimelineEntry {
            arm: trial.arm.clone(),
            cell_id: trial.cell_id.clone(),
            block: trial.block,
            started_ns: trial.started_ns,
            elapsed_ns: trial.elapsed_ns,
            round_trip_ns: 0.5 * (trial.reading_before.round_trip_ns + trial.reading_after.round_trip_ns),
            steal_share: trial
                .load
                .as_ref()
                .and_then(|load| load.observed.as_ref())
                .map_or(0.0, |seen| seen.noise.steal_share),
            clean: gate.is_clean(trial),
        })
        .collect();
    entries.sort_by_key(|entry| entry.started_ns);
    entries
}
