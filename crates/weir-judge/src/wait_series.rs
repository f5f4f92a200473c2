//! How arms waited over time, next to published figures of the same experiment. Pure.
//!
//! A cell whose load changes in steps has a series for each of its arms. A cell with a single step compares settings
//! of a way to wait: the arms of a family form one series, each as a part of it.

use weir_record::{
    spec::{CellSpec, StudySpec, Subject},
    storage::WaitingInterval,
    trial::TrialRecord,
    wait_series::{
        LevelBeside, LevelOf, LevelSense, PublishedLevel, SeriesKind, WaitFigures, WaitPart, WaitPoint,
        WaitSeries,
    },
};

/// The series of every cell that is drawn over time, in the order of the plan.
pub(crate) fn all(spec: &StudySpec, trials: &[TrialRecord]) -> Vec<WaitSeries> {
    let cells = spec.cells.iter().filter(|cell| cell.is_series());
    cells.flat_map(|cell| of_cell(spec, cell, trials)).collect()
}

fn of_cell(spec: &StudySpec, cell: &CellSpec, trials: &[TrialRecord]) -> Vec<WaitSeries> {
    let Some(storage) = &cell.storage else { return Vec::new() };
    let measured = spec.arms.iter().filter_map(|arm| {
        let is_its =
            |trial: &&TrialRecord| trial.cell_id == cell.id && trial.arm == arm.name && !trial.repeat;
        let mut own = trials.iter().filter(is_its).filter_map(|trial| trial.load.as_ref()?.storage.as_ref());
        Some((arm, &own.next()?.intervals[..]))
    });
    if let [cores] = storage.core_steps[..] {
        let mut families: Vec<(String, Vec<Stretch<'_>>)> = Vec::new();
        for (arm, intervals) in measured {
            let stretch = Stretch { arm: &arm.name, cores, intervals };
            let family = family(&arm.subject);
            match families.iter_mut().find(|(known, _)| *known == family) {
                Some((_, parts)) => parts.push(stretch),
                None => families.push((family, vec![stretch])),
            }
        }
        let series = |(_, parts): (String, Vec<Stretch<'_>>)| series(spec, cell, SeriesKind::Setting, &parts);
        return families.into_iter().map(series).collect();
    }
    measured
        .map(|(arm, intervals)| {
            let parts: Vec<Stretch<'_>> = (0..)
                .zip(&storage.core_steps)
                .map(|(step, cores)| {
                    let (from_ns, to_ns) = (step * cell.window_ns, (step + 1) * cell.window_ns);
                    Stretch { arm: &arm.name, cores: *cores, intervals: within(intervals, from_ns, to_ns) }
                })
                .collect();
            series(spec, cell, SeriesKind::Load, &parts)
        })
        .collect()
}

/// The family of a way to wait: those that differ in a parameter.
fn family(subject: &Subject) -> String {
    let Subject::Storage(storage) = subject else { return String::new() };
    let predictor = &storage.completion.predictor;
    predictor.split_once(':').map_or(predictor.as_str(), |(family, _)| family).to_owned()
}

/// The intervals (which are sorted) with their middle in a time range.
fn within(intervals: &[WaitingInterval], from_ns: u64, to_ns: u64) -> &[WaitingInterval] {
    let place = |ns: u64| intervals.partition_point(|it| it.start_ns + it.elapsed_ns / 2 < ns);
    &intervals[place(from_ns)..place(to_ns)]
}

/// A part before its figures are known.
struct Stretch<'a> {
    arm: &'a str,
    cores: u32,
    intervals: &'a [WaitingInterval],
}

fn series(spec: &StudySpec, cell: &CellSpec, kind: SeriesKind, stretches: &[Stretch<'_>]) -> WaitSeries {
    let mut found = WaitSeries { cell_id: cell.id.clone(), kind, parts: Vec::new(), points: Vec::new() };
    for (place, stretch) in (0..).zip(stretches) {
        let start_ns = place * cell.window_ns;
        let begin_ns = if kind == SeriesKind::Load { 0 } else { start_ns };
        let last =
            stretch.intervals.partition_point(|it| kind == SeriesKind::Load || it.start_ns < cell.window_ns);
        let intervals = &stretch.intervals[..last];
        let figures = WaitFigures::of(intervals.iter());
        let first = found.parts.first().map_or(figures, |part| part.figures);
        let part = WaitPart {
            arm: stretch.arm.to_owned(),
            background_cores: stretch.cores,
            start_ns,
            length_ns: cell.window_ns,
            figures,
            iops_of_first: figures.zip(first).map(|(own, first)| own.iops / first.iops),
            published: Vec::new(),
        };
        let is_its = |level: &&PublishedLevel| {
            (level.kind, level.arm.as_str(), level.background_cores) == (kind, stretch.arm, stretch.cores)
        };
        let beside = |level: &PublishedLevel| beside(level, &part, intervals);
        let published = spec.published_levels.iter().filter(is_its).map(beside).collect();
        found.parts.push(WaitPart { published, ..part });
        found.points.extend(intervals.iter().filter_map(|it| {
            let at_ns = begin_ns + it.start_ns + it.elapsed_ns / 2;
            Some(WaitPoint { at_ns, figures: WaitFigures::of(std::iter::once(it))? })
        }));
    }
    found
}

fn beside(level: &PublishedLevel, part: &WaitPart, intervals: &[WaitingInterval]) -> LevelBeside {
    let of_one = |it: &WaitingInterval| Some(WaitFigures::of(std::iter::once(it))?.get(level.metric));
    let measured = match level.of {
        LevelOf::Mean => part.figures.map(|figures| figures.get(level.metric)),
        LevelOf::Peak => intervals.iter().filter_map(of_one).reduce(f64::max),
        LevelOf::First => part.iops_of_first,
    };
    let holds = measured.and_then(|measured| match level.sense {
        LevelSense::About => None,
        LevelSense::AtLeast => Some(measured >= level.level),
        LevelSense::AtMost => Some(measured <= level.level),
    });
    LevelBeside { published: level.clone(), measured, holds }
}

#[cfg(test)]
mod tests {
    use weir_record::{
        load::LoadReport,
        spec::{StorageCell, StorageSubject},
        storage::{AccessPattern, StorageDevice},
        storage_trial::StorageTrial,
        wait_series::SeriesMetric,
    };

    use super::*;
    use crate::sample;

    const SECOND_NS: u64 = 1_000_000_000;

    fn intervals(of_step: &[(u64, u64)]) -> Vec<WaitingInterval> {
        let interval = |(place, (operations, misses)): (u64, &(u64, u64))| WaitingInterval {
            start_ns: place * SECOND_NS,
            elapsed_ns: SECOND_NS,
            operations: *operations,
            misses: *misses,
            cpu_ns: SECOND_NS / 2,
            ..WaitingInterval::default()
        };
        (0..).zip(of_step).map(interval).collect()
    }

    fn study(core_steps: &[u32], arms: &[&str]) -> StudySpec {
        let mut spec = sample::study(arms, 2, 1);
        spec.cells[0].window_ns = 2 * SECOND_NS;
        spec.cells[0].storage = Some(StorageCell {
            device: StorageDevice::Model,
            pattern: AccessPattern::RandRead,
            engine: None,
            background_depth: 32,
            background_cores: 1,
            core_steps: core_steps.to_vec(),
            file_bytes: 1 << 30,
            file: None,
        });
        for arm in &mut spec.arms {
            let mut subject = StorageSubject::default();
            arm.name.clone_into(&mut subject.completion.predictor);
            arm.subject = Subject::Storage(subject);
        }
        spec
    }

    fn trial(spec: &StudySpec, arm: &str, of_step: &[(u64, u64)]) -> TrialRecord {
        let storage = StorageTrial { intervals: intervals(of_step), ..StorageTrial::default() };
        let load = LoadReport { storage: Some(storage), ..LoadReport::default() };
        let (cell_id, arm) = (spec.cells[0].id.clone(), arm.to_owned());
        TrialRecord { cell_id, arm, load: Some(load), ..TrialRecord::default() }
    }

    fn level(
        kind: SeriesKind,
        arm: &str,
        cores: u32,
        (of, sense, level): (LevelOf, LevelSense, f64),
    ) -> PublishedLevel {
        PublishedLevel {
            claim: "it was so".into(),
            kind,
            arm: arm.to_owned(),
            background_cores: cores,
            metric: SeriesMetric::MissRate,
            of,
            sense,
            level,
        }
    }

    #[test]
    fn steps_of_a_load_are_parts_of_one_trial_beside_what_was_published_of_each() {
        let mut spec = study(&[0, 4], &["poll", "linux-mean:0.5"]);
        let of = |it| level(SeriesKind::Load, "linux-mean:0.5", 4, it);
        spec.published_levels = vec![
            of((LevelOf::Peak, LevelSense::AtLeast, 0.8)),
            of((LevelOf::Mean, LevelSense::About, 0.3)),
            of((LevelOf::First, LevelSense::AtMost, 0.05)),
            level(SeriesKind::Setting, "linux-mean:0.5", 4, (LevelOf::Mean, LevelSense::AtMost, 0.0)),
        ];
        let trials = [trial(&spec, "linux-mean:0.5", &[(1000, 0), (1000, 0), (100, 90), (100, 30)])];
        let found = all(&spec, &trials);
        let [series] = &found[..] else { panic!("one arm ran: {found:?}") };
        let rates: Vec<f64> = series.parts.iter().map(|it| it.figures.expect("it ran").miss_rate).collect();
        assert_eq!((rates, series.points.len()), (vec![0.0, 0.6], 4));
        assert_eq!((series.parts[1].start_ns, series.points[3].at_ns), (2 * SECOND_NS, 3_500_000_000));
        assert_eq!(series.parts[1].iops_of_first, Some(0.1));
        let told: Vec<_> = series.parts[1].published.iter().map(|it| (it.measured, it.holds)).collect();
        assert_eq!(told, [(Some(0.9), Some(true)), (Some(0.6), None), (Some(0.1), Some(false))]);
        assert!(series.parts[0].published.is_empty());
    }

    #[test]
    fn settings_of_one_way_to_wait_are_parts_one_after_the_other() {
        let spec = study(&[4], &["linux-mean:0.5", "linux-mean:0.03", "poll"]);
        // The last interval of a tool may extend beyond the window.
        let trials = [
            trial(&spec, "linux-mean:0.5", &[(100, 40), (100, 20), (1, 1)]),
            trial(&spec, "linux-mean:0.03", &[(110, 0), (110, 0)]),
            trial(&spec, "poll", &[]),
        ];
        let found = all(&spec, &trials);
        let [series, polled] = &found[..] else { panic!("two families: {found:?}") };
        assert_eq!(series.kind, SeriesKind::Setting);
        let rates: Vec<f64> = series.parts.iter().map(|it| it.figures.expect("it ran").miss_rate).collect();
        assert_eq!(rates, [0.3, 0.0]);
        let times: Vec<u64> = series.points.iter().map(|it| it.at_ns / 100_000_000).collect();
        assert_eq!(times, [5, 15, 25, 35]);
        assert_eq!((polled.parts[0].figures, polled.points.len()), (None, 0));
    }
}
