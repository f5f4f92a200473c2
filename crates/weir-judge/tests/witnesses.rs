//! Witnesses of a claim on server CPU bar it only if the claim needs them, and in the claim's state.

use weir_judge::{judge, sample};
use weir_record::{
    effect::Effect,
    finding::{Finding, Witness},
    machine::CrossCoreReading,
    spec::{CellRole, CellSpec, LoadMode, StudySpec},
    study::StudyResult,
    trial::TrialRecord,
    verdict::Verdict,
};

const RATE: f64 = 50_000.0;
const AT_RATE: &str = "c100-d1-m64-r50000";

/// A closed primary cell, and the same at one rate.
fn study() -> StudySpec {
    let mut spec = sample::study(&["epoll", "uring"], 12, 1);
    let load = LoadMode::Open { rate_per_second: RATE, poisson: false, share: None };
    let at_rate =
        CellSpec { id: AT_RATE.to_owned(), role: CellRole::Exploratory, load, ..spec.cells[0].clone() };
    spec.cells.push(at_rate);
    spec
}

/// Twelve blocks of a cell, in which the arm costs this share of the baseline.
fn blocks(cell: &str, ratio: f64, change: impl Fn(&mut TrialRecord)) -> Vec<TrialRecord> {
    let runs = [("epoll", false, 1.0), ("epoll", true, 1.0), ("uring", false, ratio)];
    let of_block = |block: u32| {
        let noise = 1.0 + 0.002 * (f64::from(block * 5 % 7) / 7.0 - 0.5);
        runs.map(|(arm, repeat, cost)| {
            let scatter = if arm == "uring" { noise } else { 2.0 - noise };
            let trial = sample::trial(cell, arm, block, 10.0 * cost * scatter);
            TrialRecord { repeat, ..trial }
        })
    };
    let mut trials: Vec<TrialRecord> = (0..12).flat_map(of_block).collect();
    trials.iter_mut().for_each(change);
    trials
}

fn primary(result: &StudyResult) -> &Effect {
    result.primary().expect("it was compared")
}

fn misses_the_rate(trial: &mut TrialRecord) {
    let load = trial.load.as_mut().expect("it has a report");
    (load.messages_started, load.missed_starts) = (load.messages, 4 * load.messages);
}

fn keeps_the_rate(trial: &mut TrialRecord) {
    let load = trial.load.as_mut().expect("it has a report");
    load.messages_started = load.messages;
}

fn is_limit(trial: &mut TrialRecord) {
    trial.load.as_mut().expect("it has a report").generator_bound = true;
}

#[test]
fn a_rate_that_nobody_kept_bars_no_claim_that_needs_no_rate() {
    let mut trials = blocks("c100-d1-m64-closed", 0.9, |_| {});
    trials.extend(blocks(AT_RATE, 0.9, misses_the_rate));
    let result = judge::judged(&study(), &trials);
    assert_eq!(result.verdict, Verdict::Better, "{:?}", primary(&result).reasons);
}

#[test]
fn a_rate_that_nobody_kept_bars_a_claim_whose_limit_was_the_generator() {
    let mut trials = blocks("c100-d1-m64-closed", 0.9, is_limit);
    trials.extend(blocks(AT_RATE, 0.9, misses_the_rate));
    let result = judge::judged(&study(), &trials);
    let found = primary(&result);
    let absent = Finding::NoWitness { witness: Witness::EqualRate { per_second: RATE } };
    assert_eq!((found.verdict, &found.reasons[..]), (Verdict::NotComparable, &[absent][..]));
    assert!(found.estimate.is_some() && found.interval.is_some(), "what is known stays");
}

#[test]
fn an_equal_rate_still_contradicts_a_claim_that_needs_none() {
    let mut trials = blocks("c100-d1-m64-closed", 0.9, |_| {});
    trials.extend(blocks(AT_RATE, 1.1, keeps_the_rate));
    assert_eq!(judge::judged(&study(), &trials).verdict, Verdict::NotComparable);
}

#[test]
fn a_rate_that_was_met_in_the_other_state_bears_nothing_out() {
    let in_state = |round_trip_ns: f64| {
        move |trial: &mut TrialRecord| {
            let reading = CrossCoreReading { cpu_a: 0, cpu_b: 1, round_trip_ns, canary_ns: 1.0 };
            (trial.reading_before, trial.reading_after) = (reading, reading);
            keeps_the_rate(trial);
        }
    };
    let (near, far) = (in_state(100.0), in_state(400.0));
    let at_rate = |state: &dyn Fn(&mut TrialRecord)| {
        let mut trials = blocks("c100-d1-m64-closed", 0.9, |trial| {
            near(trial);
            is_limit(trial);
        });
        trials.extend(blocks(AT_RATE, 0.9, state));
        // The machine has two states, even if these cells were only in one.
        let pilots =
            blocks("pilot", 1.0, |trial| if trial.block % 2 == 0 { near(trial) } else { far(trial) });
        trials.extend(pilots);
        judge::judged(&study(), &trials)
    };
    assert_eq!(at_rate(&near).verdict, Verdict::Better, "{:?}", primary(&at_rate(&near)).reasons);
    let apart = at_rate(&far);
    let witness = Witness::EqualRate { per_second: RATE };
    assert_eq!(primary(&apart).reasons, [Finding::WitnessOtherState { witness }]);
    assert_eq!(apart.verdict, Verdict::NotComparable);
}
