//! The value of a round and the interval over many, tested on recorded rounds of real machines, in their original
//! order and with their original labels.
//!
//! `recorded/echo-aa.txt` has three runs of one program; `recorded/echo-uring-over-epoll.txt` has io_uring and three
//! runs of epoll: in a closed loop, where the effect moves, and at one rate, where it does not.

use weir_judge::{judge, sample};
use weir_record::{effect::IntervalMethod, finding::Finding, trial::TrialRecord};
use weir_stats::{
    decide::{self, Method},
    movement,
    order::median,
    round,
};

const EQUAL: &str = include_str!("recorded/echo-aa.txt");
const COMPARED: &str = include_str!("recorded/echo-uring-over-epoll.txt");

/// Rounds of a built-in study, and of its equal rate.
const WINDOW: usize = 48;
const WINDOW_AT_RATE: usize = 12;

/// Logarithms of the costs of a round's runs, by permutation.
type Runs = Vec<Vec<f64>>;

/// Rounds from lines with this prefix, in the order in which they ran.
fn rounds(recorded: &str, cell: &str) -> Vec<Runs> {
    let lines = recorded.lines().filter(|line| !line.starts_with('#'));
    let own = lines.filter_map(|line| line.strip_prefix(cell));
    let logs = |text: &str| -> Vec<f64> {
        text.split_whitespace().map(|word| word.parse::<f64>().expect("a number").ln()).collect()
    };
    own.map(|line| line.split(';').skip(1).map(logs).collect()).collect()
}

/// Effects of the run at this index relative to the first two.
fn effects(rounds: &[Runs], arm: usize) -> Vec<f64> {
    let of = |runs: &Runs| round::effect(&runs[arm], &runs[0], &runs[1]).expect("every slice has a figure");
    rounds.iter().map(of).collect()
}

fn closed_loop() -> Vec<f64> {
    effects(&rounds(COMPARED, "closed"), 2)
}

fn at_one_rate() -> Vec<f64> {
    effects(&rounds(COMPARED, "rate"), 2)
}

/// Effects between equal programs: from three recordings, each in time order.
fn equal() -> [Vec<f64>; 3] {
    let [closed, rate] = ["closed", "rate"].map(|cell| effects(&rounds(COMPARED, cell), 3));
    [effects(&rounds(EQUAL, ""), 2), closed, rate]
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// Half-width of the interval divided by that of the independent interval.
fn width_over_independent(values: &[f64]) -> f64 {
    let found = decide::estimate(values).expect("finite");
    let reach = decide::reach(values.len() as u32 - 1).expect("there is one");
    (found.high - found.mean) / (reach * deviation(values) / (values.len() as f64).sqrt())
}

/// Coverage of windows starting at each round: the share whose interval contains the mean of all rounds; the same for
/// the independent interval, and the mean relative width.
fn coverage(values: &[f64], window: usize) -> [f64; 3] {
    let all = mean(values);
    let of = |own: &[f64]| {
        let found = decide::estimate(own).expect("finite");
        let factor = width_over_independent(own);
        let apart = (found.mean - all).abs();
        let half = found.high - found.mean;
        [f64::from(apart <= half), f64::from(apart <= half / factor), factor]
    };
    let windows: Vec<[f64; 3]> = values.windows(window).map(of).collect();
    [0, 1, 2].map(|place| mean(&windows.iter().map(|it| it[place]).collect::<Vec<_>>()))
}

#[test]
fn equal_programs_have_no_effect_in_any_round_whichever_is_called_the_arm_and_scatter_less_than_by_medians() {
    let by_median = |arm: &[f64], first: &[f64], second: &[f64]| {
        let each = arm.iter().zip(first.iter().zip(second)).map(|(c, (a, b))| c - 0.5 * (a + b));
        median(&each.collect::<Vec<_>>()).expect("finite")
    };
    let labels = [[2, 0, 1], [0, 2, 1], [1, 0, 2]];
    let (mut found, mut before) = ([const { Vec::new() }; 3], [const { Vec::new() }; 3]);
    for runs in rounds(EQUAL, "") {
        let of = labels.map(|[arm, one, two]| {
            round::effect(&runs[arm], &runs[one], &runs[two]).expect("every slice has a figure")
        });
        assert!(of.iter().sum::<f64>().abs() < 1e-15, "{of:?}");
        for (place, [arm, one, two]) in labels.into_iter().enumerate() {
            found[place].push(of[place]);
            before[place].push(by_median(&runs[arm], &runs[one], &runs[two]));
        }
    }
    let scatter = |of: &[Vec<f64>; 3]| mean(&of.each_ref().map(|it| deviation(it).powi(2))).sqrt();
    let bias = mean(&before.each_ref().map(|it| mean(it)));
    let (now, once) = (scatter(&found), scatter(&before));
    assert!((bias + 0.0016).abs() < 1e-4, "{bias}: what a median of `arm - (first + second) / 2` has");
    assert!(now < 0.95 * once, "{now} {once}");
    assert!((now - 0.0233).abs() < 1e-4 && (once - 0.0255).abs() < 1e-4, "{now} {once}");
}

#[test]
fn the_effect_of_the_closed_loop_moves_and_neither_that_of_one_rate_nor_that_of_equal_programs_does() {
    let shown = |values: &[f64], window: usize| {
        let windows: Vec<f64> =
            values.windows(window).map(|own| f64::from(movement::moves(own).is_some())).collect();
        mean(&windows)
    };
    let found = movement::moves(&closed_loop()).expect("it moves");
    assert!(found.is_shown_by_lag && (found.lag_1 - 0.47).abs() < 0.03, "{found:?}");
    let (some, many) = (shown(&closed_loop(), WINDOW), shown(&closed_loop(), 2 * WINDOW));
    assert!(some > 0.5 && many > 0.85, "{some} of the windows of {WINDOW} rounds, {many} of twice as many");
    for values in equal().iter().chain([&at_one_rate()]) {
        assert_eq!(movement::moves(values), None);
        let still = shown(values, WINDOW);
        assert!(still <= 0.01, "{still} of the windows");
    }
}

#[test]
fn a_comparison_whose_effect_moves_says_so_and_has_the_long_run_interval() {
    let judged = |effects: &[f64]| {
        let blocks = u32::try_from(effects.len()).expect("they are few");
        let spec = sample::study(&["epoll", "uring"], blocks, 1);
        let of_block = |(block, effect): (u32, &f64)| {
            let trial = |arm: &str, repeat: bool, cpu_us: f64| TrialRecord {
                repeat,
                started_ns: u64::from(block),
                ..sample::trial(&spec.cells[0].id, arm, block, cpu_us)
            };
            [
                trial("epoll", false, 10.0),
                trial("epoll", true, 10.0),
                trial("uring", false, 10.0 * effect.exp()),
            ]
        };
        let trials: Vec<TrialRecord> = (0..).zip(effects).flat_map(of_block).collect();
        judge::judged(&spec, &trials).primary().expect("it was measured").clone()
    };
    let moved = |note: &Finding| match note {
        Finding::EffectMoves { lag_1, halves } => Some((*lag_1, *halves)),
        _ => None,
    };
    let moving = judged(&closed_loop());
    let (lag_1, halves) = moving.notes.iter().find_map(moved).expect("it moves");
    assert!((lag_1 - 0.47).abs() < 0.03 && halves.0 > halves.1 && halves.1 > 0.94, "{lag_1} {halves:?}");
    assert_eq!(moving.method, IntervalMethod::StudentTLongRun);
    assert_eq!(judged(&at_one_rate()).notes.iter().find_map(moved), None);
    let few = judged(&closed_loop()[..11]);
    assert_eq!((few.notes.iter().find_map(moved), few.method), (None, IntervalMethod::StudentT));
}

#[test]
fn intervals_of_windows_hold_the_mean_of_all_rounds_and_are_little_wider_where_nothing_moves() {
    let [held, independent, width] = coverage(&closed_loop(), WINDOW);
    assert!(held > 0.9 && independent < 0.55, "{held} {independent}, at {width} of the independent width");
    let recordings = equal();
    for (values, held_min) in recordings.iter().map(|it| (it, 0.99)).chain([(&at_one_rate(), 0.97)]) {
        for window in [WINDOW_AT_RATE, WINDOW, 2 * WINDOW] {
            let [held, _, width] = coverage(values, window);
            assert!(held >= held_min && width < 1.4, "{held} of windows of {window}, {width}");
        }
    }
}

#[test]
fn a_window_and_the_rounds_outside_it_agree_within_both_errors() {
    let disagree = |values: &[f64], window: usize| {
        let of = |start: usize| {
            let (before, own, after) =
                (&values[..start], &values[start..start + window], &values[start + window..]);
            // The part after the window comes first, so that the rest is in time order except for one seam.
            let rest = [after, before].concat();
            let apart = decide::estimate_unpaired(own, &rest, decide::ALPHA).expect("finite");
            f64::from(apart.p_value <= decide::ALPHA)
        };
        mean(&(0..=values.len() - window).map(of).collect::<Vec<_>>())
    };
    for values in equal().iter().chain([&at_one_rate()]) {
        let (few, many) = (disagree(values, WINDOW_AT_RATE), disagree(values, WINDOW));
        assert!(few < 0.03 && many <= 0.01, "{few} {many}");
    }
    // Movement as slow as the window is invisible within it.
    let moving = disagree(&closed_loop(), WINDOW);
    assert!(moving < 0.1, "{moving}");
    assert_eq!(decide::estimate(&closed_loop()).expect("finite").method, Method::LongRun);
}
