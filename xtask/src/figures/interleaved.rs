//! Runs in turn, each with a look at the machine before and after it, and which of them may be compared: those that
//! nobody disturbed, in one state of the machine. These are the laboratory's rules, for runs that are no trials.

use std::{io, process, time::Duration};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use weir_evidence::{crosscore::read_cross_core, observe::Edge};
use weir_stats::states::find_states;

use super::{
    Row,
    goal::{Goal, Measured, Outcome, judge},
    memory::{spread, store, stored},
    plan::Plan,
    session::{Laboratory, Stop},
};

/// CPU of the server that is measured.
pub const SERVER_CPU: usize = 0;

/// CPU of everything else.
pub const LOAD_CPU: usize = 1;

/// Largest share of CPU time the hypervisor may have taken during a run.
const STEAL_SHARE_MAX: f64 = 0.01;

/// Most CPU other processes may have used during a run, in CPUs.
const FOREIGN_CPUS_MAX: f64 = 0.05;

/// Comparisons whose interval may decide; with fewer left nothing is kept, so that the same command tries again.
const COMPARISONS_MIN: usize = 6;

/// The machine during a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Round trips between the two CPUs before and after, in nanoseconds; those that could be taken.
    readings_ns: Vec<f64>,
    steal_share: f64,
    foreign_cpus: f64,
}

impl Machine {
    fn is_quiet(&self) -> bool {
        self.steal_share <= STEAL_SHARE_MAX && self.foreign_cpus <= FOREIGN_CPUS_MAX
    }
}

/// What a run gave, and the machine it met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noted<T> {
    /// What it gave.
    pub value: T,
    machine: Machine,
}

impl<T> Noted<T> {
    /// Another number of the same run.
    pub fn with<U>(&self, value: U) -> Noted<U> {
        Noted { value, machine: self.machine.clone() }
    }

    /// A run that nobody disturbed.
    #[cfg(test)]
    pub fn undisturbed(value: T) -> Self {
        Self { value, machine: Machine::default() }
    }
}

/// Two runs that are compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair<T> {
    /// What is looked at.
    pub of: Noted<T>,
    /// What it is held against.
    pub to: Noted<T>,
}

/// Runs something between two looks at the machine. A rehearsal does not look: it compares nothing, and whatever the
/// machine is like it must come to its end.
pub fn noted<T>(
    laboratory: &Laboratory,
    run: impl FnOnce() -> Result<T, String>,
) -> Result<Noted<T>, String> {
    noted_by(laboratory, Edge::read, run)
}

fn noted_by<T>(
    laboratory: &Laboratory,
    edge: fn(u32) -> io::Result<Edge>,
    run: impl FnOnce() -> Result<T, String>,
) -> Result<Noted<T>, String> {
    if laboratory.rehearsal {
        return Ok(Noted { value: run()?, machine: Machine::default() });
    }
    // All processes started here are ours, the measured one included.
    let edge = || edge(process::id()).map_err(|error| format!("the machine cannot be watched: {error}"));
    let mut readings_ns = Vec::new();
    readings_ns.extend(reading_ns());
    let before = edge()?;
    let value = run()?;
    let noise = before.until(&edge()?).noise;
    readings_ns.extend(reading_ns());
    let machine = Machine { readings_ns, steal_share: noise.steal_share, foreign_cpus: noise.foreign_cpus };
    Ok(Noted { value, machine })
}

fn reading_ns() -> Option<f64> {
    let reading = read_cross_core(SERVER_CPU, LOAD_CPU).ok()?.round_trip_ns;
    (reading.is_finite() && reading > 0.0).then_some(reading)
}

/// What so many runs take, those that are repeated included.
pub fn planned(runs: u64, length: Duration) -> Plan {
    let plan = Plan::of_trials(runs, length);
    Plan { time_max: plan.time.mul_f64(1.5), ..plan }
}

/// Runs both in turn until so many pairs may be compared, or half as many again were run. Who comes first alternates,
/// so that a drift of the machine falls on both. An error when too few may be compared.
pub fn alternate<T>(
    laboratory: &Laboratory,
    wanted: usize,
    mut of: impl FnMut() -> Result<T, String>,
    mut to: impl FnMut() -> Result<T, String>,
) -> Result<Vec<Pair<T>>, String> {
    let mut pairs: Vec<Pair<T>> = Vec::with_capacity(wanted);
    while pairs.len() < wanted + wanted / 2 && chosen(&pairs).0.len() < wanted {
        if laboratory.children.is_interrupted() {
            return Err("interrupted".to_owned());
        }
        let pair = if pairs.len().is_multiple_of(2) {
            let of = noted(laboratory, &mut of)?;
            Pair { of, to: noted(laboratory, &mut to)? }
        } else {
            let to = noted(laboratory, &mut to)?;
            Pair { of: noted(laboratory, &mut of)?, to }
        };
        pairs.push(pair);
    }
    enough(pairs, wanted)
}

/// These pairs, if so many may be compared that they may decide.
pub fn enough<T>(pairs: Vec<Pair<T>>, wanted: usize) -> Result<Vec<Pair<T>>, String> {
    let used = chosen(&pairs).0.len();
    is_enough(used, pairs.len(), wanted).map(|()| pairs)
}

/// So many runs, between looks at the machine. An error when too few of them were undisturbed.
pub fn repeated<T>(
    laboratory: &Laboratory,
    wanted: usize,
    run: impl FnMut() -> Result<T, String>,
) -> Result<Vec<Noted<T>>, String> {
    repeated_by(laboratory, wanted, Edge::read, run)
}

/// As [`repeated`], for runs that write to a disk: what the kernel's threads do then disturbs nobody.
pub fn repeated_on_disk<T>(
    laboratory: &Laboratory,
    wanted: usize,
    run: impl FnMut() -> Result<T, String>,
) -> Result<Vec<Noted<T>>, String> {
    repeated_by(laboratory, wanted, Edge::read_beside_kernel, run)
}

fn repeated_by<T>(
    laboratory: &Laboratory,
    wanted: usize,
    edge: fn(u32) -> io::Result<Edge>,
    mut run: impl FnMut() -> Result<T, String>,
) -> Result<Vec<Noted<T>>, String> {
    let mut runs = Vec::with_capacity(wanted);
    while runs.len() < wanted + wanted / 2 && chosen_alone(&runs).0.len() < wanted {
        if laboratory.children.is_interrupted() {
            return Err("interrupted".to_owned());
        }
        runs.push(noted_by(laboratory, edge, &mut run)?);
    }
    is_enough(chosen_alone(&runs).0.len(), runs.len(), wanted).map(|()| runs)
}

fn is_enough(used: usize, all: usize, wanted: usize) -> Result<(), String> {
    if used >= wanted.min(COMPARISONS_MIN) {
        return Ok(());
    }
    Err(format!(
        "only {used} of {all} runs were undisturbed, in one state of the machine; try again when it is quiet"
    ))
}

/// The pairs that may be compared, and what must be known about the choice.
pub fn chosen<T>(pairs: &[Pair<T>]) -> (Vec<&Pair<T>>, String) {
    let machines: Vec<Vec<&Machine>> =
        pairs.iter().map(|pair| vec![&pair.of.machine, &pair.to.machine]).collect();
    let (numbers, note) = usable(&machines);
    (numbers.into_iter().map(|number| &pairs[number]).collect(), note)
}

/// The runs that may stand beside one another, and what must be known about the choice.
pub fn chosen_alone<T>(runs: &[Noted<T>]) -> (Vec<&Noted<T>>, String) {
    let machines: Vec<Vec<&Machine>> = runs.iter().map(|run| vec![&run.machine]).collect();
    let (numbers, note) = usable(&machines);
    (numbers.into_iter().map(|number| &runs[number]).collect(), note)
}

/// Which of several comparisons may be used, by number. Each lists the machines of its runs. Chosen before what came of
/// them is looked at: undisturbed, and all of one state; the one with more of them, near when equal.
fn usable(comparisons: &[Vec<&Machine>]) -> (Vec<usize>, String) {
    let readings = |machines: &[&Machine]| -> Vec<f64> {
        machines.iter().flat_map(|machine| machine.readings_ns.clone()).collect()
    };
    let all: Vec<f64> = comparisons.iter().flat_map(|machines| readings(machines)).collect();
    let states = find_states(&all);
    let is_far = |reading: &f64| states.is_some_and(|states| states.is_far(*reading));
    let of_state = |far: bool| -> Vec<usize> {
        let is_usable = |machines: &[&Machine]| {
            machines.iter().all(|machine| machine.is_quiet())
                && readings(machines).iter().all(|reading| is_far(reading) == far)
                // Without readings there is one state, and it is called near.
                && !(far && readings(machines).is_empty())
        };
        (0..comparisons.len()).filter(|number| is_usable(&comparisons[*number])).collect()
    };
    let (near, far) = (of_state(false), of_state(true));
    let (used, state) = if far.len() > near.len() { (far, "far state") } else { (near, "") };
    let mut notes = Vec::new();
    if !state.is_empty() {
        notes.push(state.to_owned());
    }
    if used.len() < comparisons.len() {
        notes.push(format!("{} of {} used", used.len(), comparisons.len()));
    }
    (used, notes.join("; "))
}

/// A number of each pair that may be compared, as a median with its interval.
pub fn compared<T>(pairs: &[Pair<T>], number: impl Fn(&T, &T) -> f64) -> Result<Measured, String> {
    let (used, note) = chosen(pairs);
    let numbers: Vec<f64> = used.iter().map(|pair| number(&pair.of.value, &pair.to.value)).collect();
    measured(&numbers, pairs.len(), note)
}

/// A number of each run that may be used, as a median with its interval.
pub fn alone<T>(runs: &[Noted<T>], number: impl Fn(&T) -> f64) -> Result<Measured, String> {
    let (used, note) = chosen_alone(runs);
    let numbers: Vec<f64> = used.iter().map(|run| number(&run.value)).collect();
    measured(&numbers, runs.len(), note)
}

fn measured(numbers: &[f64], runs: usize, note: String) -> Result<Measured, String> {
    let measured = spread(numbers).ok_or_else(|| format!("none of {runs} runs was undisturbed"))?;
    Ok(Measured { note, ..measured })
}

/// What an earlier call kept under this name, or what is measured now and kept.
pub fn kept<T: Serialize + DeserializeOwned>(
    laboratory: &Laboratory,
    name: &str,
    measure: impl FnOnce() -> Result<T, String>,
) -> Result<Result<T, String>, Stop> {
    if let Some(found) = stored(laboratory, name) {
        return Ok(Ok(found));
    }
    let found = measure();
    if laboratory.children.is_interrupted() {
        return Err(Stop::Interrupted);
    }
    if let Ok(found) = &found {
        store(laboratory, name, found).map_err(Stop::Failed)?;
    }
    Ok(found)
}

/// The row of a number and its goal.
pub fn goal_row(
    group: &str,
    figure: String,
    (goal, unit): (Goal, &str),
    measured: Result<Measured, String>,
) -> Row {
    let (measured, outcome) = match measured {
        Ok(measured) => (with_unit(measured.to_string(), unit), judge(goal, &measured)),
        Err(reason) => (reason, Outcome::NotMeasured),
    };
    let command = format!("cargo xtask figures --only {group}");
    Row { figure, goal: with_unit(goal.to_string(), unit), measured, outcome, command }
}

fn with_unit(text: String, unit: &str) -> String {
    if unit.is_empty() { text } else { format!("{text} {unit}") }
}

/// Adds what must be known about a figure.
pub fn with_note(mut measured: Measured, note: &str) -> Measured {
    let between = if measured.note.is_empty() { "" } else { "; " };
    measured.note.push_str(&format!("{between}{note}"));
    measured
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(readings_ns: [f64; 2]) -> Machine {
        Machine { readings_ns: readings_ns.to_vec(), steal_share: 0.01, foreign_cpus: 0.05 }
    }

    fn pair(of: Machine, to: Machine) -> Pair<f64> {
        Pair { of: Noted { value: 3.0, machine: of }, to: Noted { value: 2.0, machine: to } }
    }

    const NEAR: [f64; 2] = [100.0, 102.0];
    const FAR: [f64; 2] = [400.0, 405.0];

    #[test]
    fn only_pairs_of_one_state_are_compared_and_the_smaller_state_is_left_out() {
        let near = || pair(machine(NEAR), machine(NEAR));
        let far = || pair(machine(FAR), machine(FAR));
        let changed = pair(machine(NEAR), machine([101.0, 400.0]));
        let pairs = vec![near(), far(), changed, near(), far(), near()];
        let (used, note) = chosen(&pairs);
        assert_eq!((used.len(), note.as_str()), (3, "3 of 6 used"));
        let pairs = vec![near(), far(), far()];
        assert_eq!(chosen(&pairs).1, "far state; 2 of 3 used");
        let measured = compared(&pairs, |of, to| of / to).expect("two pairs");
        assert!((measured.ratio - 1.5).abs() < 1e-9 && measured.confidence < 0.95, "{measured:?}");
    }

    #[test]
    fn a_run_that_was_disturbed_takes_its_pair_with_it() {
        let stolen = Machine { steal_share: 0.011, ..machine(NEAR) };
        let crowded = Machine { foreign_cpus: 0.06, ..machine(NEAR) };
        let pairs = vec![pair(machine(NEAR), stolen), pair(crowded, machine(NEAR))];
        assert!(chosen(&pairs).0.is_empty());
        assert_eq!(compared(&pairs, |of, _| *of), Err("none of 2 runs was undisturbed".to_owned()));
        let runs = vec![Noted { value: 7.0, machine: machine(NEAR) }];
        assert_eq!(alone(&runs, |value| *value).map(|measured| measured.ratio), Ok(7.0));
    }

    #[test]
    fn few_comparisons_are_not_kept_unless_few_were_asked_for() {
        let pairs = |count: usize| vec![pair(machine(NEAR), machine(NEAR)); count];
        assert_eq!(enough(pairs(6), 9).map(|pairs| pairs.len()), Ok(6));
        let reason = enough(pairs(5), 9).map(|pairs| pairs.len()).expect_err("they are too few");
        assert!(reason.starts_with("only 5 of 5 runs"), "{reason}");
        assert_eq!(enough(pairs(2), 2).map(|pairs| pairs.len()), Ok(2));
    }

    #[test]
    fn a_machine_without_readings_has_one_state() {
        let pairs = vec![pair(Machine::default(), Machine::default())];
        assert_eq!((chosen(&pairs).0.len(), chosen(&pairs).1.as_str()), (1, ""));
    }

    #[test]
    fn a_row_has_its_unit_on_both_sides_and_a_reason_where_there_is_no_number() {
        let bound = (Goal::Within(f64::NEG_INFINITY, 5.0), "MiB");
        let row = goal_row("g", "f".to_owned(), bound, Ok(spread(&[-1.0; 6]).expect("six values")));
        assert_eq!(
            (row.goal.as_str(), row.measured.as_str()),
            ("≤ 5.000 MiB", "-1.000 [-1.000, -1.000] MiB")
        );
        assert_eq!((row.outcome, row.command.as_str()), (Outcome::Met, "cargo xtask figures --only g"));
        let row = goal_row("g", "f".to_owned(), bound, Err("why".to_owned()));
        assert_eq!((row.outcome, row.measured.as_str()), (Outcome::NotMeasured, "why"));
        let noted = with_note(with_note(spread(&[1.0]).expect("one value"), "one"), "two");
        assert_eq!(noted.note, "one; two");
    }
}
