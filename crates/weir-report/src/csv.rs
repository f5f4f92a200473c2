//! Every figure in long form (RFC 4180): `cell,arm,baseline,metric,statistic,value,unit`, one figure per line. Names
//! and units are fixed and do not depend on a language. Figures that do not exist have no line.

mod connections;

use weir_record::{
    cpu_account::{Amount, CpuPart},
    doctor::FindingState,
    effect::{Effect, EffectScale, Question},
    evidence::ArmEvidence,
    figure::Figure,
    grid::{Grid, Interaction},
    overview::{Aggregate, Overview, Quantity, Statistic},
    stable_name,
    study::{ArmSummary, ListenSummary, StudyResult},
};

use crate::{
    contrasts::{self, Contrast},
    findings,
    language::Language,
    published::{self, Attribution, CauseOf},
    view::View,
};

/// The whole export.
pub(crate) fn long_form(result: &StudyResult) -> String {
    let mut rows = Rows { text: "cell,arm,baseline,metric,statistic,value,unit\n".to_owned() };
    let view = View::new(result, Language::English);
    for summary in &result.arms {
        arm(&mut rows, summary);
    }
    for it in result.effects.comparisons() {
        comparison(&mut rows, &view, it);
    }
    for it in &result.grids {
        grid(&mut rows, it);
    }
    for it in &contrasts::all(&view) {
        contrast(&mut rows, it);
    }
    for claim in &result.spec.published {
        let subject = [claim.cell_id.as_str(), &claim.arm, &claim.baseline];
        if let Some(ratio) = claim.ratio {
            rows.number(subject, &format!("published-{}", claim.metric.row().key), &claim.id, ratio, "ratio");
        }
    }
    for way in &result.spec.io_models {
        let state = match way.state {
            FindingState::Yes => "yes",
            FindingState::Limited => "limited",
            FindingState::No => "no",
        };
        rows.line(["", &way.name, ""], "io-model", "state", state, "");
    }
    for it in &published::attributions(&view) {
        attribution(&mut rows, it);
    }
    for it in &result.listening {
        listening(&mut rows, it);
    }
    for arm in &result.evidence {
        evidence(&mut rows, arm);
    }
    for it in &result.cpu_differences {
        let subject = [it.cell_id.as_str(), &it.arm, &it.baseline];
        cpu_parts(&mut rows, subject, &it.parts, it.whole);
        with_softirqs(&mut rows, subject, &it.with_softirqs);
    }
    for map in &result.overviews {
        overview(&mut rows, result, map);
    }
    for it in &result.latency_ladders {
        connections::ladder(&mut rows, it);
    }
    if let Some(costs) = &result.connection_costs {
        connections::costs(&mut rows, costs);
    }
    for it in &result.aggregates {
        aggregate(&mut rows, it);
    }
    for entry in &result.timeline {
        let subject = [entry.cell_id.as_str(), &entry.arm, ""];
        let statistic = |name: &str| format!("{name}-block-{}", entry.block);
        rows.number(subject, "trial", &statistic("started"), entry.started_ns as f64, "ns");
        rows.number(subject, "trial", &statistic("elapsed"), entry.elapsed_ns as f64, "ns");
        rows.number(subject, "trial", &statistic("cross-core-round-trip"), entry.round_trip_ns, "ns");
        rows.number(subject, "trial", &statistic("steal"), entry.steal_share, "fraction");
        rows.flag(subject, "trial", &statistic("clean"), entry.clean);
    }
    rows.text
}

/// Coverage of the kernel's observation, and where the server's CPU went.
fn evidence(rows: &mut Rows, arm: &ArmEvidence) {
    let subject = [arm.cell_id.as_str(), &arm.arm, ""];
    if let Some(needed) = &arm.needed {
        rows.number(subject, "seen-of-needed", "share", needed.share(), "ratio");
    }
    if let Some(all) = &arm.all_calls {
        let figures = [("system-calls", &all.count, "count"), ("system-calls-on-cpu", &all.on_cpu_ns, "ns")];
        for (metric, it, unit) in figures {
            rows.figure(subject, metric, "mean", Some(it.mean), unit);
            rows.number(subject, metric, "rounds", it.rounds.len() as f64, "count");
        }
    }
    let Some(account) = &arm.account else { return };
    cpu_parts(rows, subject, &account.parts, account.server_cpu);
    with_softirqs(rows, subject, &account.with_softirqs);
    if let Some(explained) = &account.explained {
        rows.number(subject, "cpu-explained", "share", explained.share, "ratio");
    }
}

/// The figures of a load tester.
fn aggregate(rows: &mut Rows, it: &Aggregate) {
    let subject = [it.cell_id.as_str(), &it.arm, ""];
    for row in &it.rows {
        let metric = format!("aggregate-{}", row.statistic.key());
        let unit = match row.statistic {
            Statistic::Samples => "count",
            Statistic::Errors => "fraction",
            Statistic::Throughput | Statistic::Peak => "1/s",
            _ => "ns",
        };
        rows.number(subject, &metric, "value", row.value, unit);
        if matches!(row.statistic, Statistic::Throughput | Statistic::Peak) {
            rows.flag(subject, &metric, "is-lower-bound", it.is_bound);
        }
        if let Some((least, most)) = row.range {
            rows.number(subject, &metric, "min", least, unit);
            rows.number(subject, &metric, "max", most, unit);
        }
    }
}

/// The tables of a map. A figure that belongs to no single cell has the map's name in the cell column; the level is
/// in the statistic.
fn overview(rows: &mut Rows, result: &StudyResult, map: &Overview) {
    let baseline = result.spec.arms.first().map_or("", |arm| arm.name.as_str());
    let name = map_name(map.map);
    for cell in &map.cells {
        rows.line([cell, "", ""], "map", "name", &name, "");
        rows.flag([cell, "", ""], "map", "is-in-far-state", map.cells_far.contains(cell));
        rows.flag([cell, "", ""], "map", "is-in-both-states", map.cells_in_both_states.contains(cell));
    }
    let tables = [
        ("all", &map.overall),
        ("connections", &map.by_connections),
        ("workers", &map.by_workers),
        ("server-cpus", &map.by_server_cpus),
    ];
    for (table, of_table) in tables {
        for row in of_table {
            let at = row.level.map_or_else(|| table.to_owned(), |level| format!("{table}-{level}"));
            let subject = [name.as_str(), &row.arm, ""];
            let figures = [
                ("throughput", row.throughput),
                ("throughput-per-server-cpu", row.throughput_per_cpu),
                ("messages-per-cpu-second", row.per_cpu_second),
            ];
            for (metric, figure) in figures {
                rows.figure(subject, &format!("mean-{metric}"), &at, figure, "1/s");
            }
            rows.number(subject, "mean-cells", &at, f64::from(row.cells), "count");
            rows.number(subject, "mean-cells-generator-bound", &at, f64::from(row.cells_bound), "count");
            let ratios = [
                ("throughput", &row.throughput_ratio),
                ("messages-per-cpu-second", &row.per_cpu_second_ratio),
            ];
            for (metric, ratio) in ratios {
                let Some(found) = ratio else { continue };
                let (subject, metric) = ([name.as_str(), &row.arm, baseline], format!("mean-{metric}-ratio"));
                rows.figure(subject, &metric, &at, Some(found.ratio), "ratio");
                rows.number(subject, &metric, &format!("{at}-cells"), f64::from(found.cells), "count");
                for cell in &found.reversed {
                    rows.flag([cell, &row.arm, baseline], &metric, &format!("is-against-{at}"), true);
                }
            }
        }
    }
    best(rows, map);
    success(rows, map);
    scaling(rows, map);
}

fn best(rows: &mut Rows, map: &Overview) {
    for it in &map.best {
        let (subject, metric) = ([it.cell_id.as_str(), &it.arm, ""], format!("best-{}", it.quantity.key()));
        rows.figure(subject, &metric, "value", Some(it.figure), "1/s");
        rows.flag(subject, &metric, "is-lower-bound", it.is_bound);
        if let Some(share) = it.success {
            rows.number(subject, &metric, "success", share, "fraction");
        }
        for tie in &it.ties {
            rows.flag([tie, &it.arm, ""], &metric, "is-tie", true);
        }
    }
}

fn success(rows: &mut Rows, map: &Overview) {
    let name = map_name(map.map);
    for it in &map.success {
        let (subject, at) = ([name.as_str(), &it.arm, ""], format!("connections-{}", it.level));
        let counts = [
            ("completed", it.completed),
            ("failed", it.failed),
            ("cut-off-at-end", it.cut_off_at_end),
            ("trials", u64::from(it.trials)),
            ("trials-without-report", u64::from(it.trials_without_report)),
        ];
        for (metric, count) in counts {
            rows.number(subject, metric, &at, count as f64, "count");
        }
        for class in &it.classes {
            let metric = format!("failed-{}", stable_name(&class.class));
            rows.number(subject, &metric, &at, class.count as f64, "count");
        }
        let success = it.success.map(|value| Figure { value, interval: it.success_interval });
        rows.figure(subject, "success", &at, success, "fraction");
    }
}

fn scaling(rows: &mut Rows, map: &Overview) {
    let name = map_name(map.map);
    for it in &map.scaling {
        let (subject, at) =
            ([name.as_str(), &it.arm, ""], format!("workers-{}-over-{}", it.workers, it.workers_base));
        let means = [
            (Quantity::Throughput, it.throughput, it.lines_free),
            (Quantity::PerCpuSecond, it.per_cpu_second, it.lines),
        ];
        for (quantity, figure, lines) in means {
            let metric = format!("mean-scaling-efficiency-{}", quantity.key());
            rows.figure(subject, &metric, &at, figure, "ratio");
            rows.number(subject, &metric, &format!("{at}-lines"), f64::from(lines), "count");
        }
    }
    for it in &map.scaling_lines {
        let subject = [it.cell_id.as_str(), &it.arm, ""];
        let metric = format!("scaling-efficiency-{}", it.quantity.key());
        rows.figure(subject, &metric, "value", it.efficiency, "ratio");
        rows.flag(subject, &metric, "is-alarm", it.is_alarm);
        rows.flag(subject, &metric, "is-lower-bound", it.is_bound);
        rows.flag(subject, &metric, "is-upper-bound", it.is_base_bound);
        for candidate in &it.candidates {
            let statistic = format!("candidate-{}", stable_name(&candidate.cause));
            let holds = candidate.holds.map_or("unknown", |holds| if holds { "yes" } else { "no" });
            rows.line(subject, &metric, &statistic, holds, "");
        }
    }
}

/// The name of a map, in place of a cell.
fn map_name(map: u32) -> String {
    format!("map-{}", map + 1)
}

/// Parts of an arm's CPU per message, or of its difference from the baseline, and the total.
fn cpu_parts(rows: &mut Rows, subject: [&str; 3], parts: &[(CpuPart, Amount)], whole: Amount) {
    for (part, amount) in parts {
        cpu(rows, subject, &part.key(), *amount);
    }
    cpu(rows, subject, "whole", whole);
}

/// Calls together with the softirqs within them.
fn with_softirqs(rows: &mut Rows, subject: [&str; 3], calls: &[(String, Amount)]) {
    for (call, amount) in calls {
        cpu(rows, subject, &format!("with-softirqs-{call}"), *amount);
    }
}

fn cpu(rows: &mut Rows, subject: [&str; 3], part: &str, Amount { ns, interval }: Amount) {
    let metric = format!("cpu-{part}");
    rows.number(subject, &metric, "mean", ns, "ns");
    if let Some((low, high)) = interval {
        rows.number(subject, &metric, "interval-low", low, "ns");
        rows.number(subject, &metric, "interval-high", high, "ns");
    }
}

fn arm(rows: &mut Rows, summary: &ArmSummary) {
    let subject = [summary.cell_id.as_str(), &summary.arm, ""];
    rows.number(subject, "trials", "clean", f64::from(summary.trials), "count");
    rows.flag(subject, "throughput", "is-lower-bound", summary.generator_bound);
    for figures in &summary.figures {
        let row = figures.metric.row();
        let (least, most) = figures.range();
        for (statistic, value) in [("mean", figures.mean), ("min", least), ("max", most)] {
            rows.number(subject, row.key, statistic, value, row.unit.key());
        }
        for (index, value) in figures.units.iter().enumerate() {
            rows.number(subject, row.key, &format!("unit-{index}"), *value, row.unit.key());
        }
    }
    if let Some(calls) = summary.syscalls_per_message {
        rows.number(subject, "syscalls-per-message", "value", calls, "count");
    }
    for (name, count) in &summary.engine_per_message {
        rows.number(subject, &format!("engine-{name}-per-message"), "value", *count, "count");
    }
    for (metric, curve) in
        [("response-time", &summary.response_quantiles), ("service-time", &summary.service_quantiles)]
    {
        for (quantile, ns) in curve.iter().filter(|(quantile, _)| quantile.is_finite()) {
            rows.number(subject, metric, &format!("q{quantile}"), *ns as f64, "ns");
        }
    }
}

fn comparison(rows: &mut Rows, view: &View<'_>, it: &Effect) {
    let subject = [it.cell_id.as_str(), &it.arm, &it.baseline];
    let metric = it.metric.row().key;
    let is_ratio = |it: &&Effect| it.scale == EffectScale::Ratio;
    let (ratio, with_noise) = (view.ratio(it), view.beside(it, Question::WithNoise).filter(is_ratio));
    let interval = ratio.and_then(|ratio| ratio.interval);
    let optional = [
        ("ratio", ratio.map(|ratio| ratio.value), "ratio"),
        ("interval-low", interval.map(|(low, _)| low), "ratio"),
        ("interval-high", interval.map(|(_, high)| high), "ratio"),
        ("confidence", interval.map(|_| it.level), "fraction"),
        ("p", it.p_value, "probability"),
        ("p-holm", it.p_value_holm, "probability"),
        ("noise-floor", view.ratio_floor(it), "fraction"),
        ("detectable-effect", Some(it).filter(is_ratio).and_then(|it| it.detectable), "fraction"),
        ("ratio-all-pairs", with_noise.and_then(|it| it.estimate), "ratio"),
    ];
    rows.line(subject, metric, "verdict", &stable_name(&it.verdict), "");
    rows.number(subject, metric, "pairs", f64::from(it.units), "count");
    rows.known(subject, metric, &optional);
    by_state(rows, view, it);
    difference(rows, it);
    if let Some((arm, baseline)) = it.figures {
        rows.number(subject, metric, "level", arm, it.metric.row().unit.key());
        rows.number(subject, metric, "level-baseline", baseline, it.metric.row().unit.key());
    }
    units(rows, view, it);
    let further = [("reason", &it.reasons), ("note", &it.notes), ("excluded", &it.excluded)];
    for (statistic, findings) in further {
        for finding in findings {
            rows.line(subject, metric, statistic, &findings::localized(Language::English, finding), "");
        }
    }
}

/// The ratio in each state of the machine.
fn by_state(rows: &mut Rows, view: &View<'_>, it: &Effect) {
    let (subject, metric) = ([it.cell_id.as_str(), &it.arm, &it.baseline], it.metric.row().key);
    let found = view.by_state(it).into_iter().flatten();
    for (state, effect) in ["near", "far"].into_iter().zip(found) {
        let figures = [
            ("ratio", effect.estimate),
            ("interval-low", effect.interval.map(|(low, _)| low)),
            ("interval-high", effect.interval.map(|(_, high)| high)),
        ];
        for (statistic, value) in figures.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            rows.number(subject, metric, &format!("{state}-{statistic}"), value, "ratio");
        }
        rows.number(subject, metric, &format!("{state}-units"), f64::from(effect.units), "count");
    }
}

/// A comparison by difference, in the metric's unit.
fn difference(rows: &mut Rows, it: &Effect) {
    if it.scale != EffectScale::Difference {
        return;
    }
    let (subject, row) = ([it.cell_id.as_str(), &it.arm, &it.baseline], it.metric.row());
    let figures = [
        ("difference", it.estimate, row.unit.key()),
        ("difference-low", it.interval.map(|(low, _)| low), row.unit.key()),
        ("difference-high", it.interval.map(|(_, high)| high), row.unit.key()),
        ("detectable-difference", it.detectable, row.unit.key()),
    ];
    rows.known(subject, row.key, &figures);
}

/// The effects of a comparison, unit by unit: ratios, or differences in the metric's unit.
fn units(rows: &mut Rows, view: &View<'_>, it: &Effect) {
    let (subject, row) = ([it.cell_id.as_str(), &it.arm, &it.baseline], it.metric.row());
    let mut each = |statistic: &str, values: Vec<f64>, unit: &str| {
        for (index, value) in values.into_iter().enumerate() {
            rows.number(subject, row.key, &format!("{statistic}-{index}"), value, unit);
        }
    };
    if it.scale == EffectScale::Difference {
        return each("difference", it.shown_values(), row.unit.key());
    }
    each("pair", it.shown_values(), "ratio");
    each("pair-self", view.itself(it).map(Effect::shown_values).unwrap_or_default(), "ratio");
}

/// The results of a map beyond its comparisons.
fn grid(rows: &mut Rows, it: &Grid) {
    let key = format!("map-{}", it.metric.row().key);
    for cell in &it.cells {
        let subject = [cell.cell_id.as_str(), &it.arm, &it.baseline];
        rows.line(subject, &key, "difference", &stable_name(&cell.difference), "");
        if let Some(p_value) = cell.p_value_adjusted {
            rows.number(subject, &key, "p-false-discovery", p_value, "probability");
        }
    }
    let name = map_name(it.map);
    for found in &it.interactions {
        interaction(rows, [&name, &it.arm, &it.baseline], &key, found);
    }
    for mean in &it.marginals {
        let at = format!("mean-{}-{}", stable_name(&mean.factor), mean.level);
        let subject = [name.as_str(), &it.arm, &it.baseline];
        let figure = Figure { value: mean.ratio, interval: mean.interval };
        rows.figure(subject, &key, &at, Some(figure), "ratio");
        rows.number(subject, &key, &format!("{at}-cells"), f64::from(mean.cells), "count");
        rows.number(subject, &key, &format!("{at}-cells-left-out"), f64::from(mean.cells_left_out), "count");
        for cell in &mean.reversed {
            rows.flag([cell, &it.arm, &it.baseline], &key, &format!("is-against-{at}"), true);
        }
    }
    for crossing in &it.crossings {
        let subject = [crossing.cell_id.as_str(), &it.arm, &it.baseline];
        let figures = [
            ("crossing", Some(crossing.connections)),
            ("crossing-low", crossing.low),
            ("crossing-high", crossing.high),
            ("crossing-cells-left-out", Some(f64::from(crossing.cells_left_out))),
        ];
        for (statistic, value) in figures.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            rows.number(subject, &key, statistic, value, "count");
        }
    }
}

fn interaction(rows: &mut Rows, subject: [&str; 3], key: &str, it: &Interaction) {
    let (one, other) = (stable_name(&it.factors.0), stable_name(&it.factors.1));
    let at = format!("interaction-{one}-{other}");
    let figure = Figure { value: it.ratio, interval: Some(it.interval) };
    rows.figure(subject, key, &at, Some(figure), "ratio");
    rows.number(subject, key, &format!("{at}-p"), it.p_value, "probability");
    for (factor, level) in [(one, it.levels.0), (other, it.levels.1)] {
        rows.number(subject, key, &format!("{at}-at-{factor}"), level as f64, "count");
    }
}

/// A declared contrast, by its index in the study.
fn contrast(rows: &mut Rows, it: &Contrast<'_>) {
    let Contrast { place, asked, found, difference } = it;
    let name = format!("contrast-{}", place + 1);
    let subject = [name.as_str(), &asked.arm, &asked.baseline];
    let metric = format!("contrast-{}", asked.metric.row().key);
    rows.line(subject, &metric, "difference", &stable_name(difference), "");
    let figure = found.estimate.map(|value| Figure { value, interval: found.interval });
    rows.figure(subject, &metric, "ratio", figure, "ratio");
    let probabilities = [("p", found.p_value, "probability"), ("p-holm", found.p_value_holm, "probability")];
    rows.known(subject, &metric, &probabilities);
    for (statistic, cells) in [("of", &asked.of), ("to", &asked.to)] {
        cells.iter().for_each(|cell| rows.line(subject, &metric, statistic, cell, ""));
    }
}

fn attribution(rows: &mut Rows, it: &Attribution<'_>) {
    let Attribution { claim, cause, throughput, server_cpu } = it;
    let subject = [claim.cell_id.as_str(), &cause.arm, &cause.baseline];
    for (metric, of) in [("throughput", throughput), ("server-cpu-per-message", server_cpu)] {
        let CauseOf { with, share } = of;
        let metric = format!("cause-of-{}-{metric}", claim.id);
        let with = with.filter(|it| it.estimate.is_some());
        let interval = with.and_then(|it| it.interval);
        let figures = [
            ("ratio", with.and_then(|it| it.estimate), "ratio"),
            ("interval-low", interval.map(|(low, _)| low), "ratio"),
            ("interval-high", interval.map(|(_, high)| high), "ratio"),
            ("pairs", with.map(|it| f64::from(it.units)), "count"),
        ];
        rows.known(subject, &metric, &figures);
        let share = share.and_then(|it| Some(Figure { value: it.estimate?, interval: it.interval }));
        rows.figure(subject, &metric, "share", share, "fraction");
    }
}

fn listening(rows: &mut Rows, it: &ListenSummary) {
    let subject = [it.cell_id.as_str(), &it.arm, ""];
    for (metric, count) in [
        ("listen-overflows", it.network.listen_overflows),
        ("listen-drops", it.network.listen_drops),
        ("syn-retransmits", it.network.syn_retransmits),
        ("tcp-retransmits", it.network.tcp_retransmits),
    ] {
        rows.number(subject, metric, "all-trials", count as f64, "count");
    }
    for (metric, times) in
        [("connect-time", it.connect), ("first-byte-time", it.first_byte), ("last-byte-time", it.last_byte)]
    {
        let known = [("q0.5", times.p50_ns), ("q0.99", times.p99_ns)];
        for (statistic, ns) in known.into_iter().filter_map(|(name, ns)| Some((name, ns?))) {
            rows.number(subject, metric, statistic, ns as f64, "ns");
        }
        if times.count > 0 {
            rows.number(subject, metric, "max", times.ns_max as f64, "ns");
        }
    }
    for (step_s, count) in &it.stalled {
        rows.number(subject, "connect-stalled", &format!("step-{step_s}-s"), *count as f64, "count");
    }
}

struct Rows {
    text: String,
}

impl Rows {
    fn figure(
        &mut self,
        subject: [&str; 3],
        metric: &str,
        statistic: &str,
        figure: Option<Figure>,
        unit: &str,
    ) {
        let Some(Figure { value, interval }) = figure else { return };
        self.number(subject, metric, statistic, value, unit);
        if let Some((low, high)) = interval {
            self.number(subject, metric, &format!("{statistic}-interval-low"), low, unit);
            self.number(subject, metric, &format!("{statistic}-interval-high"), high, unit);
        }
    }

    fn number(&mut self, subject: [&str; 3], metric: &str, statistic: &str, value: f64, unit: &str) {
        if value.is_finite() {
            self.line(subject, metric, statistic, &value.to_string(), unit);
        }
    }

    /// The existing figures, each with its unit.
    fn known(&mut self, subject: [&str; 3], metric: &str, figures: &[(&str, Option<f64>, &str)]) {
        for (statistic, value, unit) in figures {
            if let Some(value) = value {
                self.number(subject, metric, statistic, *value, unit);
            }
        }
    }

    fn flag(&mut self, subject: [&str; 3], metric: &str, statistic: &str, is_so: bool) {
        self.number(subject, metric, statistic, f64::from(u8::from(is_so)), "bool");
    }

    fn line(
        &mut self,
        [cell, arm, baseline]: [&str; 3],
        metric: &str,
        statistic: &str,
        value: &str,
        unit: &str,
    ) {
        let fields = [cell, arm, baseline, metric, statistic, value, unit].map(field);
        self.text.push_str(&fields.join(","));
        self.text.push('\n');
    }
}

/// Quotes a field if necessary.
pub(crate) fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
