//! Runs made of trials, judged, and pooled.

use weir_record::{
    machine::CrossCoreReading,
    spec::{RunningServer, StudySpec, Subject},
    trial::TrialRecord,
};

use super::*;
use crate::sample;

const CELL: &str = "c100-d1-m64-closed";
const DONE: Progress = Progress { blocks_done: 8, blocks: 8, blocks_to_repeat: 0, has_near_state: false };

fn study(seed: u64) -> StudySpec {
    sample::study(&["epoll", "uring"], 8, seed)
}

/// Eight blocks: epoll costs ten microseconds a message and uring `ratio` times that.
fn trials(ratio: f64) -> Vec<TrialRecord> {
    let of_block = |block: u32| {
        let own = 1.0 + 0.004 * (f64::from(block * 5 % 8) / 8.0 - 0.5);
        [("epoll", 10.0), ("uring", 10.0 * ratio * own)]
            .map(|(arm, cpu_us)| sample::trial(CELL, arm, block, cpu_us))
    };
    (0..8).flat_map(of_block).collect()
}

/// A run at the hour given by its number.
fn dated(hour: u32, result: StudyResult) -> StudyResult {
    let began_unix_s = 3_600 * u64::from(hour);
    let period = Period { began_unix_s, ended_unix_s: began_unix_s + 90, sessions: 1 };
    StudyResult { period: Some(period), ..result }
}

fn run(hour: u32, ratio: f64) -> StudyResult {
    dated(hour, judge::judged(&study(u64::from(hour)), &trials(ratio)))
}

fn placed(results: &[StudyResult]) -> Vec<PlacedRun<'_>> {
    results.iter().map(|result| PlacedRun { run: Run { result, progress: &DONE }, place: "quick" }).collect()
}

fn pool_of(results: &[StudyResult]) -> RunPool {
    pool(&placed(results))
}

fn cpu(pool: &RunPool) -> &PooledEffect {
    let found = pool.effects.iter().find(|it| it.metric == Metric::ServerCpuPerMessage);
    found.unwrap_or_else(|| panic!("{pool:?}"))
}

const RATIOS: [f64; 6] = [0.78, 0.80, 0.79, 0.80, 0.77, 0.79];

fn six() -> Vec<StudyResult> {
    (0..).zip(RATIOS).map(|(hour, ratio)| run(hour, ratio)).collect()
}

#[test]
fn runs_that_lie_further_apart_than_their_rounds_say_have_a_wider_interval_than_any_of_them() {
    let pool = pool_of(&six());
    let effect = cpu(&pool);
    assert_eq!(pool.primary, Some(0));
    assert_eq!(key_of(&pool.effects[0]), key_of(effect), "the primary comparison is the first");
    let found = &effect.all;
    let mean = RATIOS.iter().map(|it: &f64| it.ln()).sum::<f64>() / 6.0;
    assert!((found.figure.expect("six runs") - mean.exp()).abs() < 1e-3, "{found:?}");
    assert!((found.between.expect("six runs") - 0.0149).abs() < 2e-3, "{found:?}");
    let width = |(low, high): (f64, f64)| high / low;
    let own = effect.runs.iter().filter_map(|it| it.interval).map(width).fold(0.0, f64::max);
    assert!(width(found.interval.expect("six runs")) > own, "{effect:?}");
    let next = found.next_figure.expect("six runs");
    assert!(next.0 < 0.77 && 0.80 < next.1 && found.lacks.is_none(), "{found:?}");
    let (least, most) = found.range.expect("six runs");
    assert!((least - 0.77).abs() < 1e-3 && (most - 0.80).abs() < 1e-3, "{found:?}");
    assert_eq!((effect.verdict, effect.runs.len()), (Verdict::Better, 6));
    assert!(effect.p_value_holm >= found.p_value && effect.groups.is_empty() && effect.left_out.is_empty());
}

#[test]
fn two_runs_have_no_common_figure_and_four_say_nothing_of_the_next() {
    let two = pool_of(&six()[..2]);
    let found = &cpu(&two).all;
    assert_eq!((found.figure, found.interval, found.p_value), (None, None, None));
    assert_eq!(found.lacks, Some(PoolLack::Interval { runs_min: 3 }));
    assert_eq!(cpu(&two).verdict, Verdict::Inconclusive);
    assert!(found.range.is_some());
    let four = pool_of(&six()[..4]);
    let found = &cpu(&four).all;
    assert!(found.interval.is_some() && found.next_figure.is_none());
    assert_eq!(found.lacks, Some(PoolLack::Next { runs_min: 5 }));
}

#[test]
fn each_group_of_machines_has_a_figure_of_its_own() {
    let mut results = six();
    for (result, ratio) in results.iter_mut().skip(3).zip([0.94, 0.95, 0.945]) {
        let mut other = judge::judged(&result.spec, &trials(ratio));
        other.fingerprint.cpu_model = "Intel".to_owned();
        *result = dated(u32::try_from(result.spec.seed).expect("it is small"), other);
    }
    let pool = pool_of(&results);
    assert_eq!(pool.groups.iter().map(|it| it.runs.clone()).collect::<Vec<_>>(), [[1, 2, 3], [4, 5, 6]]);
    let effect = cpu(&pool);
    let figures: Vec<f64> = effect.groups.iter().filter_map(|it| it.pooled.figure).collect();
    assert!((figures[0] - 0.79).abs() < 3e-3 && (figures[1] - 0.945).abs() < 3e-3, "{figures:?}");
    assert_eq!(effect.all.runs, 6);
    // Another host of the same kind is in the same group, another kernel is not.
    results[0].fingerprint.host = "other".to_owned();
    assert_eq!(pool_of(&results).groups.len(), 2);
    results[0].fingerprint.kernel_release = "6.1.0".to_owned();
    assert_eq!(pool_of(&results).groups.len(), 3);
}

#[test]
fn runs_are_ordered_by_time_and_one_that_is_given_twice_counts_once() {
    let mut results = six();
    results.reverse();
    results.push(results[0].clone());
    let pool = pool_of(&results);
    let began = pool.runs.iter().map(|it| it.period.expect("it has one").began_unix_s / 3_600);
    assert_eq!(began.collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 5]);
    assert_eq!(pool.runs[6].left_out, Some(LeftOut::SameRun { run: 6 }));
    assert_eq!(cpu(&pool).all.runs, 6);
}

#[test]
fn a_run_of_another_question_is_named_with_what_it_asked() {
    let differing = |change: fn(&mut StudyResult)| {
        let mut results = six();
        change(&mut results[2]);
        let pool = pool_of(&results);
        let effect = cpu(&pool).clone();
        assert_eq!(effect.all.runs, 5, "{effect:?}");
        let [left_out] = &effect.left_out[..] else { panic!("{effect:?}") };
        assert_eq!(left_out.run, 3);
        left_out.reason.clone()
    };
    let names = |reason: LeftOut| match reason {
        LeftOut::AskedDifferently { facts } => facts.into_iter().map(|it| it.name).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let other_option = |it: &mut StudyResult| {
        if let Subject::Weir { options, .. } = &mut it.spec.arms[1].subject {
            options.insert("spin-us".to_owned(), "50".to_owned());
        }
    };
    assert_eq!(names(differing(other_option)), ["uring.spec.subject.weir.options.spin-us"]);
    assert_eq!(names(differing(|it| it.spec.cells[0].workers = 2)), ["c100-d1-m64-closed.workers"]);
    let version = |it: &mut StudyResult| it.fingerprint.weir_version = "9.9".to_owned();
    assert_eq!(names(differing(version)), ["weir.weir_version"]);
    let program = |it: &mut StudyResult| {
        let argv = vec!["/usr/sbin/nginx".to_owned()];
        it.spec.arms[1].subject = Subject::Command { argv };
        it.fingerprint.programs.insert("/usr/sbin/nginx".to_owned(), "7 bytes, 0a".to_owned());
    };
    assert!(names(differing(program)).contains(&"uring.program".to_owned()));
    // The second of two files of one name in two folders.
    let mut results = six();
    for run in &mut results {
        run.spec.arms[1].subject = Subject::Command { argv: vec!["server".to_owned()] };
        for folder in ["/new", "/old"] {
            run.fingerprint.programs.insert(format!("{folder}/server"), "1 byte, 0a".to_owned());
        }
    }
    assert_eq!(cpu(&pool_of(&results)).all.runs, 6);
    results[2].fingerprint.programs.insert("/old/server".to_owned(), "1 byte, 0b".to_owned());
    assert_eq!(cpu(&pool_of(&results)).all.runs, 5);
    // The number of rounds, its CPUs and its seed do not change the question.
    let mut results = six();
    results[2].spec.cells[0].blocks = 9;
    results[2].spec.server_cpus = vec![3];
    assert_eq!(cpu(&pool_of(&results)).all.runs, 6);
    // The process number of a server that ran before the study does not either.
    for (pid, run) in (40..).zip(&mut results) {
        let server = RunningServer { address: "127.0.0.1:7".to_owned(), pid: Some(pid), cgroup: None };
        run.spec.arms[1].subject = Subject::Running(server);
    }
    assert_eq!(cpu(&pool_of(&results)).all.runs, 6);
}

#[test]
fn what_a_run_lacks_is_named() {
    let lacking = |change: fn(&mut StudyResult)| {
        let mut results = six();
        change(&mut results[5]);
        cpu(&pool_of(&results)).left_out[0].reason.clone()
    };
    let without = |it: &mut StudyResult| it.effects.rows.clear();
    assert_eq!(lacking(without), LeftOut::NotMeasured);
    assert_eq!(
        lacking(|it| {
            it.effects.rows.clear();
            it.spec.cells[0].id = "other".to_owned();
        }),
        LeftOut::NoCell
    );
    assert_eq!(
        lacking(|it| {
            it.effects.rows.clear();
            it.spec.arms.truncate(1);
        }),
        LeftOut::NoArm
    );
    let other =
        |it: &mut StudyResult| it.effects.comparisons_mut().for_each(|it| it.baseline = "poll".to_owned());
    assert_eq!(lacking(other), LeftOut::OtherBaseline { baseline: "poll".to_owned() });
}

#[test]
fn whole_runs_that_are_unfinished_or_of_another_study_are_left_out_of_everything() {
    let mut results = six();
    results[1].spec.name = "tps".to_owned();
    let begun = Progress { blocks_done: 3, ..DONE };
    let mut runs = placed(&results);
    runs[4].run.progress = &begun;
    let pool = pool(&runs);
    assert_eq!(pool.study, "fake");
    assert_eq!(pool.runs[1].left_out, Some(LeftOut::OtherStudy { name: "tps".to_owned() }));
    assert_eq!(pool.runs[4].left_out, Some(LeftOut::Unfinished { blocks_done: 3, blocks: 8 }));
    assert_eq!(cpu(&pool).runs.iter().map(|it| it.run).collect::<Vec<_>>(), [1, 3, 4, 6]);
}

#[test]
fn what_is_not_comparable_in_its_run_and_what_met_another_state_is_put_aside() {
    let mut wrong = trials(0.79);
    for load in wrong.iter_mut().filter_map(|trial| trial.load.as_mut()) {
        load.failures.wrong_bytes = 3;
    }
    let mut far = trials(0.79);
    for trial in &mut far {
        let base = if trial.block < 6 { 400.0 } else { 80.0 };
        let round_trip_ns = base + f64::from(trial.block % 3);
        trial.reading_before = CrossCoreReading { round_trip_ns, ..CrossCoreReading::default() };
        trial.reading_after = trial.reading_before;
    }
    let mut results = six();
    results[0] = dated(0, judge::judged(&study(0), &wrong));
    results[1] = dated(1, judge::judged(&study(1), &far));
    let pool = pool_of(&results);
    let effect = cpu(&pool);
    let [LeftOut::NotComparable { reasons }, LeftOut::OtherState { is_far: true }] =
        [&effect.left_out[0].reason, &effect.left_out[1].reason]
    else {
        panic!("{effect:?}")
    };
    assert!(!reasons.is_empty());
    assert_eq!(effect.all.runs, 4);
}

#[test]
fn cells_at_a_share_are_pooled_whatever_their_rates_and_keep_these() {
    let mut results = six();
    for (result, rate) in results.iter_mut().zip(1..) {
        let rate_per_second = 10_000.0 * f64::from(rate);
        result.spec.cells[0].load = LoadMode::Open { rate_per_second, poisson: true, share: Some(0.5) };
    }
    let pool = pool_of(&results);
    let rates = cpu(&pool).runs.iter().filter_map(|it| it.rate_per_second);
    assert_eq!(rates.collect::<Vec<_>>(), [1e4, 2e4, 3e4, 4e4, 5e4, 6e4]);
    // A requested rate is part of the question.
    results[0].spec.cells[0].load = LoadMode::Open { rate_per_second: 1e4, poisson: true, share: None };
    assert_eq!(cpu(&pool_of(&results)).all.runs, 5);
}

#[test]
fn the_primary_comparison_is_the_one_that_most_runs_decided() {
    let mut results = six();
    let at = |result: &StudyResult, metric: Metric| {
        result.effects.comparisons().position(|it| it.metric == metric).expect("it is compared")
    };
    for result in results.iter_mut().take(4) {
        result.primary = Some(at(result, Metric::Throughput));
    }
    assert_eq!(pool_of(&results).effects[0].metric, Metric::Throughput);
    for result in results.iter_mut().take(2) {
        result.primary = Some(at(result, Metric::ServerCpuPerMessage));
    }
    assert_eq!(pool_of(&results).effects[0].metric, Metric::ServerCpuPerMessage);
    results.iter_mut().for_each(|it| it.primary = None);
    assert_eq!(pool_of(&results).primary, None);
}

#[test]
fn a_run_has_its_place_among_the_earlier_ones_of_its_question_and_machine() {
    let results = six();
    let all = placed(&results);
    let last = among(all[5], &all).expect("five earlier runs");
    assert!((last.figure - 0.79).abs() < 1e-3 && last.earlier.runs == 5, "{last:?}");
    assert_eq!(last.is_outside(), Some(false));
    let odd = run(9, 0.60);
    let this = PlacedRun { run: Run { result: &odd, progress: &DONE }, place: "quick" };
    let found = among(this, &all).expect("six earlier runs");
    assert_eq!((found.is_outside(), found.earlier.runs), (Some(true), 6));
    // Later runs are not earlier ones; fewer than five give no prediction.
    let third = among(all[2], &all).expect("two earlier runs");
    assert_eq!((third.earlier.runs, third.is_outside()), (2, None));
    assert!(third.earlier.range.is_some());
    assert_eq!(among(all[0], &all), None);
    // Runs with other builds and on other machines do not count as earlier runs, however many there are.
    let mut newer = run(9, 0.79);
    newer.fingerprint.weir_version = "9.9".to_owned();
    let this = PlacedRun { run: Run { result: &newer, progress: &DONE }, place: "quick" };
    assert_eq!(among(this, &all), None);
    newer.fingerprint.weir_version.clear();
    newer.fingerprint.cpu_model = "Intel".to_owned();
    let this = PlacedRun { run: Run { result: &newer, progress: &DONE }, place: "quick" };
    assert_eq!(among(this, &all), None);
}

#[test]
fn throughput_at_its_lower_bound_is_pooled_only_where_it_may_be_compared() {
    let mut results = six();
    for result in &mut results {
        let throughput = result.effects.comparisons_mut().filter(|it| it.metric == Metric::Throughput);
        throughput.for_each(|it| it.verdict = Verdict::NotComparable);
    }
    let pool = pool_of(&results);
    let effect = pool.effects.iter().find(|it| it.metric == Metric::Throughput).expect("it is there");
    assert_eq!((effect.all.runs, effect.left_out.len(), effect.verdict), (0, 6, Verdict::NotComparable));
}
