//! The tables of a map, from recorded rounds of a real machine with planted differences: means that hide
//! contradicting cells name them, and other means name none.

mod replayed;
mod replayed_map;

use std::collections::BTreeSet;

use replayed::rounds;
use weir_judge::{judge::judged, sample};
use weir_record::{
    failure::FailureCounts,
    metric::Metric,
    overview::{Overview, Quantity},
    spec::{CellRole, CellSpec, StudySpec},
    trial::{Exclusion, TrialRecord},
};
use weir_stats::random::Random;

const ROUNDS: u32 = 24;

fn spec() -> StudySpec {
    replayed_map::spec(ROUNDS, &[1, 100, 4000], &[1, 2], &[1])
}

fn trials(spec: &StudySpec, effect: impl Fn(&CellSpec) -> f64) -> Vec<TrialRecord> {
    replayed_map::trials(spec, &rounds(), effect, |_| 1.0, 19)
}

fn overview(spec: &StudySpec, trials: &[TrialRecord]) -> Overview {
    let result = judged(spec, trials);
    let [one] = result.overviews.as_slice() else { panic!("there is one map: {:?}", result.overviews) };
    one.clone()
}

#[test]
fn a_mean_over_all_cells_names_those_that_go_the_other_way_and_else_none() {
    let spec = spec();
    let found = overview(&spec, &trials(&spec, |cell| if cell.id == "c4000-d1-w2" { -0.3 } else { 0.15 }));
    let [epoll, uring] = found.overall.as_slice() else { panic!("{:?}", found.overall) };
    assert!(epoll.per_cpu_second_ratio.is_none() && epoll.throughput_ratio.is_none(), "it is the baseline");
    let ratio = uring.per_cpu_second_ratio.as_ref().expect("it was compared");
    // The inverse of the geometric mean of five cells that cost 15 % more and one that costs 30 % less.
    let expected = (1.15_f64.powi(5) * 0.7).powf(-1.0 / 6.0);
    assert!((ratio.ratio.value / expected - 1.0).abs() < 0.02, "{ratio:?} {expected}");
    let (low, high) = ratio.ratio.interval.expect("there are rounds");
    assert!(low < ratio.ratio.value && ratio.ratio.value < high && high < 1.0);
    assert_eq!((ratio.cells, uring.cells), (6, 6));
    assert_eq!(ratio.reversed, ["c4000-d1-w2"]);
    let at = |workers: u64| {
        let is_it = |row: &&weir_record::overview::MeanRow| row.level == Some(workers) && row.arm == "uring";
        found
            .by_workers
            .iter()
            .find(is_it)
            .and_then(|row| row.per_cpu_second_ratio.clone())
            .expect("it is there")
    };
    assert_eq!((at(1).reversed.len(), at(1).cells), (0, 3));
    let alike = overview(&spec, &trials(&spec, |_| 0.15));
    let reversed = alike.overall.iter().chain(&alike.by_connections).chain(&alike.by_workers);
    let reversed = reversed.filter_map(|row| row.per_cpu_second_ratio.as_ref());
    assert!(reversed.into_iter().all(|ratio| ratio.reversed.is_empty()));
    assert!(alike.scaling_lines.iter().all(|line| !line.is_alarm), "no cell scales");
}

#[test]
fn two_figures_of_a_table_have_the_ratio_of_their_pairs() {
    let spec = spec();
    let found = overview(&spec, &trials(&spec, |cell| if cell.workers == 1 { -0.1 } else { 0.15 }));
    let mut compared = 0;
    for rows in [&found.overall, &found.by_connections, &found.by_workers] {
        for pair in rows.chunks(2) {
            let [epoll, uring] = pair else { panic!("{pair:?}") };
            let figures = [
                (epoll.throughput, uring.throughput, &uring.throughput_ratio),
                (epoll.per_cpu_second, uring.per_cpu_second, &uring.per_cpu_second_ratio),
            ];
            for (baseline, own, ratio) in figures {
                let (Some(baseline), Some(own), Some(ratio)) = (baseline, own, ratio) else { continue };
                assert_eq!(ratio.cells, uring.cells, "{ratio:?}");
                let quotient = own.value / baseline.value;
                assert!((quotient / ratio.ratio.value - 1.0).abs() < 1e-9, "{quotient} beside {ratio:?}");
                compared += 1;
            }
        }
    }
    assert!(compared >= 6, "{compared}");
}

#[test]
fn levels_have_the_same_cells_for_every_arm_and_one_that_lacks_an_arm_is_in_none() {
    let spec = spec();
    let all = trials(&spec, |_| 0.0);
    let found = overview(&spec, &all);
    let levels: Vec<(Option<u64>, u32)> =
        found.by_connections.iter().map(|row| (row.level, row.cells)).collect();
    assert_eq!(levels, [1, 1, 100, 100, 4000, 4000].map(|level| (Some(level), 2)));
    let without: Vec<TrialRecord> =
        all.into_iter().filter(|trial| trial.arm != "uring" || trial.cell_id != "c100-d1-w2").collect();
    let found = overview(&spec, &without);
    assert!(
        found.by_connections.iter().all(|row| row.cells == 1),
        "one worker alone: {:?}",
        found.by_connections
    );
    assert!(found.by_workers.iter().all(|row| row.cells == 2), "{:?}", found.by_workers);
    assert_eq!(found.overall.iter().map(|row| row.cells).collect::<Vec<_>>(), [5, 5]);
}

#[test]
fn failures_are_counted_by_class_where_their_rounds_were_set_aside_and_trials_without_a_report_too() {
    let spec = spec();
    let mut all = trials(&spec, |_| 0.0);
    let lossy = all.iter_mut().filter(|it| it.arm == "uring" && it.cell_id == "c100-d1-w1" && it.block < 2);
    for trial in lossy {
        let load = trial.load.as_mut().expect("it has one");
        load.failures = FailureCounts { reset: 3, cut_off_at_end: 7, ..FailureCounts::default() };
        trial.exclusions.push(Exclusion::Errors { count: 3 });
    }
    let dead =
        all.iter_mut().find(|it| it.arm == "uring" && it.cell_id == "c100-d1-w2").expect("it is there");
    dead.load = None;
    dead.exclusions.push(Exclusion::LoadFailed { reason: "gone".to_owned() });
    let found = overview(&spec, &all);
    let row = |arm: &str, level: u64| {
        found.success.iter().find(|row| row.arm == arm && row.level == level).expect("it is there")
    };
    let lossy = row("uring", 100);
    assert_eq!((lossy.failed, lossy.cut_off_at_end, lossy.classes.len()), (6, 14, 1));
    assert_eq!((lossy.trials, lossy.trials_without_report), (2 * ROUNDS, 1));
    let share = lossy.success.expect("something ended");
    assert!(share < 1.0 && (share - lossy.completed as f64 / (lossy.completed + 6) as f64).abs() < 1e-12);
    assert_eq!((row("epoll", 100).success, row("epoll", 100).trials), (Some(1.0), 4 * ROUNDS));
    assert_eq!(row("uring", 1).failed, 0);
}

#[test]
fn the_best_cell_is_named_with_those_that_cannot_be_told_from_it() {
    let spec = spec();
    let cheap = |cell: &CellSpec| match cell.id.as_str() {
        "c100-d1-w1" | "c100-d1-w2" => -0.2,
        _ => 0.1,
    };
    let found = overview(&spec, &trials(&spec, cheap));
    let best = |arm: &str| {
        let is_it =
            |it: &&weir_record::overview::BestCell| it.arm == arm && it.quantity == Quantity::PerCpuSecond;
        found.best.iter().find(is_it).expect("it is there")
    };
    let named: std::collections::BTreeSet<&str> = std::iter::once(best("uring").cell_id.as_str())
        .chain(best("uring").ties.iter().map(String::as_str))
        .collect();
    assert_eq!(named.into_iter().collect::<Vec<_>>(), ["c100-d1-w1", "c100-d1-w2"]);
    assert_eq!(best("epoll").ties.len(), 5, "all are one program: {:?}", best("epoll"));
    assert!(best("uring").figure.interval.is_some_and(|(low, high)| low < high));
    let own: Vec<(&str, usize)> = found
        .best_by_workers
        .iter()
        .filter(|it| it.arm == "uring" && it.quantity == Quantity::PerCpuSecond)
        .map(|it| (it.cell_id.as_str(), it.ties.len()))
        .collect();
    assert_eq!(own, [("c100-d1-w1", 0), ("c100-d1-w2", 0)], "chosen among the cells of its workers alone");
}

#[test]
fn cells_that_differ_in_slices_alone_do_not_stand_in_for_each_other() {
    let mut spec = spec();
    let mut twin = spec.cells[1].clone();
    twin.id = "c100-w1-long".to_owned();
    twin.role = CellRole::Exploratory;
    twin.alternation.as_mut().expect("it alternates").slice_ns *= 4;
    spec.cells.push(twin);
    let trials = trials(&spec, |_| 0.0);
    let result = judged(&spec, &trials);
    let [one] = result.overviews.as_slice() else { panic!("{:?}", result.overviews) };
    assert!(one.cells.len() == 6 && !one.cells.contains(&"c100-w1-long".to_owned()), "{:?}", one.cells);
    for grid in &result.grids {
        assert!(grid.cells.iter().all(|cell| cell.cell_id != "c100-w1-long"), "{grid:?}");
    }
}

#[test]
fn enough_cells_that_differ_in_slices_alone_are_a_map_of_their_own() {
    let mut spec = spec();
    let longer = |cell: &CellSpec| {
        let mut twin =
            CellSpec { id: format!("{}-long", cell.id), role: CellRole::Exploratory, ..cell.clone() };
        twin.alternation.as_mut().expect("it alternates").slice_ns *= 4;
        twin
    };
    let twins: Vec<CellSpec> = spec.cells[2..].iter().map(longer).collect();
    spec.cells.splice(3..3, twins);
    // Shorter slices increase the arm's cost: a mean over both kinds would represent neither.
    let effect = |cell: &CellSpec| if cell.id.ends_with("-long") { 0.1 } else { 0.3 };
    let result = judged(&spec, &trials(&spec, effect));
    let maps: Vec<(u32, usize, bool)> = result
        .overviews
        .iter()
        .map(|map| (map.map, map.cells.len(), map.cells.iter().all(|cell| cell.ends_with("-long"))))
        .collect();
    assert_eq!(maps, [(0, 6, false), (1, 4, true)]);
    for grid in result.grids.iter().filter(|grid| grid.metric == Metric::ServerCpuPerMessage) {
        let expected = if grid.map == 1 { 1.1 } else { 1.3 };
        let is_near = |ratio: f64| (ratio / expected - 1.0).abs() < 0.02;
        assert!(!grid.marginals.is_empty() && grid.marginals.iter().all(|it| is_near(it.ratio)), "{grid:?}");
    }
    let guidance = result.guidance.expect("the schedule is finished");
    assert_eq!(guidance.advice.iter().map(|it| (it.map, it.cells)).collect::<Vec<_>>(), [(0, 6), (1, 4)]);
}

#[test]
fn which_cells_are_one_map_does_not_depend_on_their_order() {
    let of_length = |cell: &CellSpec, slice_ns: u64| {
        let mut other =
            CellSpec { id: format!("{}-{slice_ns}", cell.id), role: CellRole::Exploratory, ..cell.clone() };
        other.alternation.as_mut().expect("it alternates").slice_ns = slice_ns;
        other
    };
    let mut spec = spec();
    // Two cells get unique slice lengths. Further cells repeat existing levels with two other lengths: a single cell,
    // which is no map, and four cells, which are one.
    spec.cells[2].alternation.as_mut().expect("it alternates").slice_ns = 100_000_000;
    spec.cells[5].alternation.as_mut().expect("it alternates").slice_ns = 100_000_000;
    let shorter = of_length(&spec.cells[1], 5_000_000);
    let longer: Vec<CellSpec> = [1, 2, 3, 4].map(|place| of_length(&spec.cells[place], 200_000_000)).to_vec();
    spec.cells.extend(longer.into_iter().chain([shorter]));
    let trials = trials(&spec, |cell| f64::from(cell.connections) / 10_000.0);
    let maps = |spec: &StudySpec| {
        let result = judged(spec, &trials);
        let cells = |map: &Overview| map.cells.iter().cloned().collect::<BTreeSet<String>>();
        result.overviews.iter().map(cells).collect::<BTreeSet<_>>()
    };
    let expected = maps(&spec);
    assert_eq!(expected.iter().map(BTreeSet::len).collect::<BTreeSet<_>>(), BTreeSet::from([4, 6]));
    for seed in 0..20 {
        let mut shuffled = spec.clone();
        Random::seeded(seed).shuffle(&mut shuffled.cells);
        let order: Vec<&str> = shuffled.cells.iter().map(|cell| cell.id.as_str()).collect();
        assert_eq!(maps(&shuffled), expected, "seed {seed}: {order:?}");
    }
}

#[test]
fn a_study_of_one_cell_has_no_tables() {
    let spec = sample::study(&["epoll", "uring"], 2, 1);
    let result = judged(&spec, &[]);
    assert!(result.overviews.is_empty() && result.aggregates.is_empty());
}
