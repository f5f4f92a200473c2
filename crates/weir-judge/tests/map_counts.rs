//! Map, rows and counts of one study agree about each cell, whatever was measured.

use proptest::prelude::*;
use weir_judge::{judge::judged, sample};
use weir_record::{
    grid::Difference,
    guidance::Advice,
    metric::Metric,
    spec::{CellRole, CellSpec, StudySpec},
    study::StudyResult,
    trial::TrialRecord,
    verdict::Verdict,
};
use weir_stats::random::Random;

const ROUNDS: u32 = 8;

/// A primary cell, a confirmatory one, and others without claims.
fn study(cells: usize) -> StudySpec {
    let mut spec = sample::study(&["epoll", "uring"], ROUNDS, 1);
    let role = |place: usize| match place {
        0 => CellRole::Primary,
        1 => CellRole::Confirmatory,
        _ => CellRole::Exploratory,
    };
    let shape = spec.cells[0].clone();
    let cell = |place: usize| {
        let connections = 10 * (place as u32 + 1);
        CellSpec { id: format!("c{connections}"), role: role(place), connections, ..shape.clone() }
    };
    spec.cells = (0..cells).map(cell).collect();
    spec
}

/// The simulated behaviour of a cell.
#[derive(Clone, Copy, Debug)]
struct Behaviour {
    effect: f64,
    machine_effect: f64,
    noise: f64,
    is_generator_limit: bool,
    wrong_bytes: u64,
}

fn behaviour() -> impl Strategy<Value = Behaviour> {
    let effects = prop_oneof![Just(0.0), -0.2..0.2_f64];
    (effects, -0.1..0.1_f64, 0.001..0.05_f64, prop::bool::weighted(0.3), prop::bool::weighted(0.1)).prop_map(
        |(effect, apart, noise, is_generator_limit, is_wrong)| Behaviour {
            effect,
            machine_effect: effect + if noise > 0.03 { apart } else { 0.0 },
            noise,
            is_generator_limit,
            wrong_bytes: u64::from(is_wrong),
        },
    )
}

fn trials(spec: &StudySpec, behaviours: &[Behaviour], seed: u64) -> Vec<TrialRecord> {
    let mut random = Random::seeded(seed);
    let mut all = Vec::new();
    for (cell, it) in spec.cells.iter().zip(behaviours) {
        for block in 0..ROUNDS {
            for (arm, repeat, effect, of_machine) in [
                ("epoll", false, 0.0, 0.0),
                ("epoll", true, 0.0, 0.0),
                ("uring", false, it.effect, it.machine_effect),
            ] {
                let noise = it.noise * random.normal();
                let mut trial = sample::trial(&cell.id, arm, block, 10.0 * (effect + noise).exp());
                let load = trial.load.as_mut().expect("it has a report");
                let observed = load.observed.as_mut().expect("it was observed");
                observed.noise.machine_busy_ns = (2e7 * (of_machine + noise).exp()) as u64;
                load.generator_bound = it.is_generator_limit;
                load.failures.wrong_bytes = it.wrong_bytes;
                all.push(TrialRecord { repeat, ..trial });
            }
        }
    }
    all
}

fn counted(advice: &Advice) -> u32 {
    let Advice { less, more, equivalent, undetected, .. } = advice;
    less + more
        + equivalent
        + undetected
        + advice.not_borne_out
        + advice.generator_limited
        + advice.not_comparable
}

/// Whether the cell's own row is consistent with the map's result.
fn agrees(difference: Difference, verdict: Verdict, ratio: Option<f64>) -> bool {
    let is_less = ratio.is_some_and(|ratio| ratio < 1.0);
    match (difference, verdict) {
        (Difference::Less, Verdict::Better) | (Difference::More, Verdict::Worse) => true,
        (Difference::Less, Verdict::NoClaim) => is_less,
        (Difference::More, Verdict::NoClaim) => !is_less,
        (Difference::Less | Difference::More, _) => false,
        (Difference::Equivalent, _) => verdict == Verdict::Equivalent,
        (_, Verdict::Better | Verdict::Worse | Verdict::Equivalent) => false,
        _ => true,
    }
}

fn holds(result: &StudyResult) -> Result<(), TestCaseError> {
    let cells = result.spec.cells.len();
    let grids = result.grids.iter().filter(|grid| grid.metric == Metric::ServerCpuPerMessage);
    for grid in grids {
        prop_assert_eq!(grid.cells.len(), cells, "the primary's cell is one of them");
        for cell in &grid.cells {
            let own = result.effects.comparison(&cell.cell_id, (&grid.arm, &grid.baseline), grid.metric);
            let own = own.expect("it was compared");
            let agrees = agrees(cell.difference, own.verdict, own.estimate);
            prop_assert!(agrees, "{:?} beside {:?} ({:?})", cell, own.verdict, own.reasons);
        }
    }
    let guidance = result.guidance.as_ref().expect("there is a map");
    for advice in &guidance.advice {
        prop_assert_eq!(counted(advice), advice.cells, "{:?}", advice);
        prop_assert_eq!(advice.cells as usize, cells);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn every_cell_is_counted_once_and_by_the_word_of_its_row(
        behaviours in prop::collection::vec(behaviour(), 3..7),
        seed in any::<u64>(),
    ) {
        let spec = study(behaviours.len());
        holds(&judged(&spec, &trials(&spec, &behaviours, seed)))?;
    }
}
