//! What is drawn: the paper's three figures and the planes.

use std::collections::BTreeMap;

use maud::Markup;
use weir_record::sweep::{
    MethodResult, MethodRole, MethodSeries, PhaseResult, PlaneKind, SeriesPoint, SweepMethod, SweepResult,
};

use super::texts::{self, Text};
use crate::{
    chart::{self, Panel, PanelAxis, PanelLine, PlaneAxes, PlaneFamily, PlanePoint},
    format,
    language::Language,
};

/// Added times below this are drawn here, in microseconds.
const ADDED_US_MIN: f64 = 0.05;

fn percent_tick(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn micros_tick(us: f64) -> String {
    format::nanos_tick(us * 1e3)
}

/// Families in the order of the plan, each with its colour and marker, the candidate's first.
pub(super) fn families(sweep: &SweepResult) -> Vec<&str> {
    let own = sweep.candidate.as_deref().and_then(|name| sweep.method(name)).map(|it| it.family.as_str());
    let ratio =
        sweep.plan.methods.iter().find(|it| it.role == MethodRole::Ratio).map(|it| it.family.as_str());
    let mut names: Vec<&str> = own.into_iter().chain(ratio.filter(|ratio| own != Some(ratio))).collect();
    for method in sweep.plan.methods.iter().filter(|method| !method.true_times) {
        if !names.contains(&method.family.as_str()) {
            names.push(&method.family);
        }
    }
    names
}

/// One plane of one phase.
pub(super) fn plane(sweep: &SweepResult, phase: &PhaseResult, kind: PlaneKind, language: Language) -> Markup {
    let mut by_family: BTreeMap<&str, Vec<(&SweepMethod, &MethodResult)>> = BTreeMap::new();
    for method in sweep.plan.methods.iter().filter(|method| !method.true_times) {
        if let Some(found) = phase.method(&method.name) {
            by_family.entry(&method.family).or_default().push((method, found));
        }
    }
    let mut drawn: Vec<PlaneFamily> = families(sweep)
        .into_iter()
        .enumerate()
        .filter_map(|(style, name)| Some(family(style, by_family.get(name)?, kind)))
        .collect();
    // The candidate is drawn last, above the others.
    drawn.sort_by_key(|family| family.is_candidate);
    let (x_tick, x_min): (fn(f64) -> String, _) = match kind {
        PlaneKind::Miss => (percent_tick, None),
        PlaneKind::AddedP99 => (micros_tick, Some(ADDED_US_MIN)),
    };
    let axes = PlaneAxes {
        x_title: texts::axis(kind).of(language),
        y_title: Text::CpuAxis.of(language),
        x_tick,
        y_tick: percent_tick,
        x_min,
    };
    chart::plane(&axes, &drawn)
}

fn family(style: usize, methods: &[(&SweepMethod, &MethodResult)], kind: PlaneKind) -> PlaneFamily {
    let point = |(method, found): &(&SweepMethod, &MethodResult)| {
        let x = match kind {
            PlaneKind::Miss => found.miss_rate.median,
            PlaneKind::AddedP99 => found.added_p99_us?.median,
        };
        Some(PlanePoint { x, y: found.cpu_share.median, title: title(found), label: label(method) })
    };
    // From left to right, so that settings of a family make one curve whatever their order in the plan.
    let mut points: Vec<PlanePoint> = methods.iter().filter_map(point).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x).then(b.y.total_cmp(&a.y)));
    PlaneFamily {
        style,
        is_oracle: methods.iter().any(|(method, _)| method.role == MethodRole::Oracle),
        is_candidate: methods.iter().any(|(method, _)| method.role == MethodRole::Candidate),
        points,
    }
}

fn title(found: &MethodResult) -> String {
    let added = found.added_p99_us.map(|it| format!(" · p99 +{}", format::micros(it.median)));
    format!(
        "{} · miss {} · CPU {} · IOPS {}{}",
        found.method,
        format::percent(found.miss_rate.median),
        format::percent(found.cpu_share.median),
        format::grouped(found.iops.median),
        added.unwrap_or_default()
    )
}

/// Only what the eye looks for is named in the chart; the legend and the tooltips name the rest.
fn label(method: &SweepMethod) -> Option<String> {
    let ratio = || method.name.split_once(':').and_then(|(_, ratio)| ratio.parse::<f64>().ok());
    match method.role {
        MethodRole::Candidate | MethodRole::Baseline => Some(method.name.clone()),
        MethodRole::Rival => Some(method.name.clone()),
        MethodRole::Ratio => ratio().filter(|ratio| [0.5, 0.2, 0.03].contains(ratio)).map(percent_tick),
        MethodRole::Oracle => (!method.name.contains(':')).then(|| method.name.clone()),
        MethodRole::Variant => None,
    }
}

/// Figure 1: one line for the kernel's default, the largest ratio, and one for the candidate.
pub(super) fn over_time(sweep: &SweepResult, language: Language) -> Option<Markup> {
    let default = sweep.phases.iter().find_map(|phase| Some(ratios(sweep, phase).first()?.1.method.clone()));
    let is_drawn = |series: &&MethodSeries| {
        let role = sweep.method(&series.method).map(|method| method.role);
        role != Some(MethodRole::Ratio) || Some(&series.method) == default.as_ref()
    };
    let drawn: Vec<&MethodSeries> = sweep.series.iter().filter(is_drawn).collect();
    let first = drawn.first()?;
    let axis = time_axis(spans(first), language);
    let styles = families(sweep);
    let line = |series: &&MethodSeries, value: Value| {
        let family = sweep.method(&series.method).map_or("", |method| method.family.as_str());
        let style = styles.iter().position(|name| *name == family).unwrap_or(0);
        moments(style, &series.method, &series.points, value)
    };
    let panel = |(title, tick, value): (Text, Tick, Value)| Panel {
        title: title.of(language).to_owned(),
        tick,
        lines: drawn.iter().map(|series| line(series, value)).collect(),
    };
    let panels: [(Text, Tick, Value); 3] = [
        (Text::Iops, format::grouped, |it| it.iops),
        (Text::Misses, percent_tick, |it| it.miss_rate),
        (Text::Cpu, percent_tick, |it| it.cpu_share),
    ];
    Some(chart::panels(&axis, &panels.map(panel)))
}

type Tick = fn(f64) -> String;
type Value = fn(&SeriesPoint) -> f64;

/// Figures 2 and 3 over time: in one phase a ratio after the other, with the mean of each.
pub(super) fn ratios_over_time(
    sweep: &SweepResult,
    phase: &PhaseResult,
    language: Language,
) -> Option<Markup> {
    let (mut points, mut parts, mut means) = (Vec::new(), Vec::new(), Vec::new());
    let mut end_ns = 0;
    for (ratio, method) in ratios(sweep, phase) {
        let series = sweep.series.iter().find(|series| series.method == method.method)?;
        let own: Vec<&SeriesPoint> = series.points.iter().filter(|point| point.phase == phase.name).collect();
        let (begin_ns, from_ns) = (own.first()?.start_ns, end_ns);
        points.extend(own.iter().map(|point| SeriesPoint {
            start_ns: from_ns + (point.start_ns - begin_ns),
            ..(*point).clone()
        }));
        end_ns = points.last().map_or(0, |last: &SeriesPoint| last.start_ns + last.elapsed_ns);
        let (from, to) = (from_ns as f64 / 1e9, end_ns as f64 / 1e9);
        parts.push((from, to, percent_tick(ratio)));
        let mean = own.iter().map(|point| point.iops).sum::<f64>() / own.len() as f64;
        means.extend([(from, mean), (to, mean)]);
    }
    if parts.len() < 2 {
        return None;
    }
    let axis = time_axis(parts, language);
    let panel = |(title, tick, value): (Text, Tick, Value)| Panel {
        title: title.of(language).to_owned(),
        tick,
        lines: vec![moments(0, Text::RoleRatio.of(language), &points, value)],
    };
    let panels: [(Text, Tick, Value); 4] = [
        (Text::Sleep, micros_tick, |it| it.sleep_effective_us),
        (Text::Misses, percent_tick, |it| it.miss_rate),
        (Text::Iops, format::grouped, |it| it.iops),
        (Text::Cpu, percent_tick, |it| it.cpu_share),
    ];
    let mut panels = panels.map(panel);
    panels[2].lines.push(PanelLine {
        style: 1,
        name: Text::Mean.of(language).to_owned(),
        is_level: true,
        has_marks: false,
        points: means,
    });
    Some(chart::panels(&axis, &panels))
}

/// What was measured from interval to interval.
fn moments(style: usize, name: &str, points: &[SeriesPoint], value: Value) -> PanelLine {
    let middle = |it: &SeriesPoint| (it.start_ns as f64 + it.elapsed_ns as f64 / 2.0) / 1e9;
    PanelLine {
        style,
        name: name.to_owned(),
        is_level: false,
        has_marks: false,
        points: points.iter().map(|it| (middle(it), value(it))).collect(),
    }
}

fn time_axis(spans: Vec<(f64, f64, String)>, language: Language) -> PanelAxis {
    let end = spans.iter().map(|(_, end, _)| *end).fold(0.0, f64::max);
    PanelAxis {
        ends: (0.0, end),
        ticks: spans.iter().map(|(from, ..)| *from).chain([end]).map(seconds_tick).collect(),
        title: format!("{}, s", Text::Time.of(language)),
        spans,
    }
}

fn seconds_tick(seconds: f64) -> (f64, String) {
    let text = format!("{seconds:.2}");
    (seconds, text.trim_end_matches('0').trim_end_matches('.').to_owned())
}

/// Where each phase begins and ends.
fn spans(series: &MethodSeries) -> Vec<(f64, f64, String)> {
    let phases = series.points.chunk_by(|a, b| a.phase == b.phase);
    let starts: Vec<(f64, String)> = phases
        .filter_map(|points| points.first().map(|first| (first.start_ns as f64 / 1e9, first.phase.clone())))
        .collect();
    let end = series.points.last().map_or(0.0, |last| (last.start_ns + last.elapsed_ns) as f64 / 1e9);
    let ends = starts.iter().skip(1).map(|(start, _)| *start).chain([end]).collect::<Vec<_>>();
    starts.into_iter().zip(ends).map(|((start, name), end)| (start, end, name)).collect()
}

/// Methods of the kernel's mean in the order of the paper: the largest ratio first.
fn ratios<'s>(sweep: &'s SweepResult, phase: &'s PhaseResult) -> Vec<(f64, &'s MethodResult)> {
    let of = |method: &SweepMethod| {
        let ratio = method.predictor.split([':', ',']).nth(1)?.parse::<f64>().ok()?;
        Some((ratio, phase.method(&method.name)?))
    };
    let plain = |method: &&SweepMethod| method.role == MethodRole::Ratio && !method.true_times;
    let mut found: Vec<_> = sweep.plan.methods.iter().filter(plain).filter_map(of).collect();
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    found
}

/// What figures 2 and 3 show.
#[derive(Clone, Copy)]
pub(super) enum RatioFigure {
    /// Effective sleep and misses.
    Sleep,
    /// Operations a second and CPU.
    Cpu,
}

/// Figures 2 and 3, in one phase; nothing without ratios.
pub(super) fn over_ratios(
    sweep: &SweepResult,
    phase: &PhaseResult,
    figure: RatioFigure,
    language: Language,
) -> Option<Markup> {
    let all = ratios(sweep, phase);
    let last = all.len().checked_sub(1).filter(|last| *last > 0)? as f64;
    let axis = PanelAxis {
        ends: (-0.3, last + 0.3),
        ticks: all.iter().enumerate().map(|(at, (ratio, _))| (at as f64, percent_tick(*ratio))).collect(),
        title: Text::Ratio.of(language).to_owned(),
        spans: Vec::new(),
    };
    let styles = families(sweep);
    let style = |name: &str| {
        let family = sweep.method(name).map_or("", |method| method.family.as_str());
        styles.iter().position(|it| *it == family).unwrap_or(0)
    };
    let levels: Vec<&MethodResult> = sweep
        .plan
        .methods
        .iter()
        .filter(|method| matches!(method.role, MethodRole::Candidate | MethodRole::Baseline))
        .filter_map(|method| phase.method(&method.name))
        .collect();
    let panel =
        |title: Text, tick: fn(f64) -> String, value: fn(&MethodResult) -> f64, levels: &[&MethodResult]| {
            let own = PanelLine {
                style: all.first().map_or(0, |(_, it)| style(&it.method)),
                name: Text::RoleRatio.of(language).to_owned(),
                is_level: false,
                has_marks: true,
                points: all.iter().enumerate().map(|(at, (_, it))| (at as f64, value(it))).collect(),
            };
            let level = |it: &&MethodResult| PanelLine {
                style: style(&it.method),
                name: it.method.clone(),
                is_level: true,
                has_marks: false,
                points: vec![(-0.3, value(it)), (last + 0.3, value(it))],
            };
            let lines = [own].into_iter().chain(levels.iter().map(level)).collect();
            Panel { title: title.of(language).to_owned(), tick, lines }
        };
    let panels = match figure {
        RatioFigure::Sleep => [
            panel(Text::Sleep, micros_tick, |it| it.medians.sleep_effective_us, &[]),
            panel(Text::Misses, percent_tick, |it| it.miss_rate.median, &levels),
        ],
        RatioFigure::Cpu => [
            panel(Text::Iops, format::grouped, |it| it.iops.median, &levels),
            panel(Text::Cpu, percent_tick, |it| it.cpu_share.median, &levels),
        ],
    };
    Some(chart::panels(&axis, &panels))
}
