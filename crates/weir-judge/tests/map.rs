//! How often a map calls a cell that does not differ, how often it finds one that does, and whether crossings lie where
//! they are told to: tried on grids whose rounds are recorded ones of a real machine.
//!
//! A simulated grid takes neighbouring rounds for neighbouring blocks, in the order in which the laboratory would run
//! them: every cell once in each block. So slow noise is as slow as it is, and falls on all cells.

mod replayed;

use replayed::{Round, planted, rounds};
use weir_judge::{
    judge::{Judged, judge},
    sample,
};
use weir_record::{
    grid::{Difference, Grid},
    machine::Fingerprint,
    metric::Metric,
    spec::{Alternation, CellRole, CellSpec, StudySpec},
    study::StudyResult,
    trial::TrialRecord,
};
use weir_stats::random::{Random, derived_seed};

const CONNECTIONS: [u32; 6] = [1, 10, 100, 1000, 2000, 4000];
const WORKERS: [u32; 5] = [1, 2, 4, 8, 16];
const ROUNDS: u32 = 30;

/// Cells of all combinations.
fn spec(depths: &[u32]) -> StudySpec {
    let mut spec = sample::study(&["epoll", "uring"], ROUNDS, 1);
    let shape = spec.cells[0].clone();
    spec.cells.clear();
    for depth in depths {
        for workers in WORKERS {
            for connections in CONNECTIONS {
                spec.cells.push(CellSpec {
                    id: format!("c{connections}-d{depth}-w{workers}"),
                    role: if spec.cells.is_empty() { CellRole::Primary } else { CellRole::Exploratory },
                    connections,
                    workers,
                    depth: *depth,
                    alternation: Some(Alternation {
                        slice_ns: 25_000_000,
                        permutations: 8,
                        prime_messages: 2,
                        evidence: None,
                    }),
                    ..shape.clone()
                });
            }
        }
    }
    spec
}

/// A study in which the second arm costs so much more in each cell.
fn studied(
    spec: &StudySpec,
    recorded: &[Round],
    effect: impl Fn(&CellSpec) -> f64,
    seed: u64,
) -> StudyResult {
    let mut random = Random::seeded(seed);
    let mut at = random.below(recorded.len() as u64) as usize;
    let mut trials: Vec<TrialRecord> = Vec::new();
    for block in 0..ROUNDS {
        for cell in &spec.cells {
            let round = &recorded[at % recorded.len()];
            at += 1;
            trials.extend(planted(&cell.id, block, ["epoll", "uring"], round, effect(cell), &mut random));
        }
    }
    judge(&Judged {
        spec,
        fingerprint: &Fingerprint::default(),
        trials: &trials,
        missing_arms: &[],
        elapsed_ns: 0,
        reproduce: "",
    })
}

fn of_cpu(result: &StudyResult) -> &Grid {
    result.grids.iter().find(|grid| grid.metric == Metric::ServerCpuPerMessage).expect("there is a map")
}

#[test]
fn few_of_the_cells_that_are_called_do_not_differ_and_most_that_differ_are_called() {
    const STUDIES: u64 = 20;
    let (spec, recorded) = (spec(&[1, 16]), rounds());
    // By place: 30 cells without an effect, ten each of 2, 5 and 10 %.
    let effects = [0.0, 0.02, 0.0, 0.05, 0.0, 0.1];
    let effect = |cell: &CellSpec| {
        effects[spec.cells.iter().position(|it| it.id == cell.id).expect("it is one") % effects.len()]
    };
    let (mut false_shares, mut found, mut there) = (0.0, [0_u32; 6], [0_u32; 6]);
    for study in 0..STUDIES {
        let result = studied(&spec, &recorded, effect, derived_seed(11, study));
        let (mut called, mut wrong) = (0_u32, 0_u32);
        for (place, cell) in of_cpu(&result).cells.iter().enumerate() {
            let kind = place % effects.len();
            there[kind] += 1;
            match cell.difference {
                Difference::More => (called, found[kind]) = (called + 1, found[kind] + 1),
                Difference::Less => called += 1,
                Difference::Undetected => continue,
                Difference::Invalid => panic!("{cell:?}"),
            }
            wrong += u32::from(effects[kind] == 0.0 || cell.difference == Difference::Less);
        }
        false_shares += f64::from(wrong) / f64::from(called.max(1));
    }
    let share = |kind: usize| f64::from(found[kind]) / f64::from(there[kind]);
    assert!(false_shares / STUDIES as f64 <= 0.05, "{false_shares} of {STUDIES}");
    assert!(share(3) >= 0.8 && share(5) >= 0.95, "5 %: {}, 10 %: {}", share(3), share(5));
}

#[test]
fn crossings_are_where_they_are_told_to_be() {
    const STUDIES: u64 = 20;
    let (spec, recorded) = (spec(&[1]), rounds());
    // Each number of workers has a crossing of its own; the effect is a line over the logarithm.
    let crossing = |workers: u32| [20.0, 50.0, 200.0, 600.0, 1500.0][workers.trailing_zeros() as usize];
    let effect = |cell: &CellSpec| 0.06 * (crossing(cell.workers) / f64::from(cell.connections)).ln();
    let (mut told, mut covered) = (0_u32, 0_u32);
    for study in 0..STUDIES {
        let result = studied(&spec, &recorded, |cell| effect(cell).exp_m1(), derived_seed(13, study));
        for found in &of_cpu(&result).crossings {
            let cell = spec.cells.iter().find(|cell| cell.id == found.cell_id).expect("it is one");
            let real = crossing(cell.workers);
            assert_eq!(found.beyond, Difference::Less);
            assert!(found.low.is_none_or(|low| low <= found.connections));
            assert!(found.high.is_none_or(|high| high >= found.connections));
            told += 1;
            covered += u32::from(
                found.low.is_none_or(|low| low <= real) && found.high.is_none_or(|high| real <= high),
            );
        }
    }
    assert!(told >= 90, "{told} of 100 lines");
    assert!(f64::from(covered) >= 0.9 * f64::from(told), "{covered} of {told}");
}

#[test]
fn a_mean_of_cells_names_those_that_go_the_other_way() {
    let (spec, recorded) = (spec(&[1]), rounds());
    let effect = |cell: &CellSpec| match (cell.connections, cell.workers) {
        (_, 2) => 0.0,
        (4000, 4) => -0.3,
        _ => 0.12,
    };
    let result = studied(&spec, &recorded, effect, 17);
    let grid = of_cpu(&result);
    let marginal = |workers: u64| {
        let is_it = |it: &&weir_record::grid::Marginal| {
            it.factor == weir_record::grid::GridFactor::Workers && it.level == workers
        };
        grid.marginals.iter().find(is_it).expect("it has one")
    };
    assert_eq!(grid.marginals.len(), CONNECTIONS.len() + WORKERS.len());
    let within = |ratio: f64, real: f64| (ratio / real - 1.0).abs() < 0.02;
    assert!(within(marginal(1).ratio, 1.12) && within(marginal(2).ratio, 1.0), "{:?}", grid.marginals);
    assert_eq!(marginal(4).reversed, ["c4000-d1-w4"]);
    assert!(marginal(1).reversed.is_empty() && marginal(2).reversed.is_empty());
    let (low, high) = marginal(1).interval.expect("there are rounds");
    assert!(low > 1.1 && high < 1.14, "{low} {high}");
}
