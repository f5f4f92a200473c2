//! Maps with recorded rounds: every cell of a grid once in each block, as the laboratory would run them.

use weir_judge::sample;
use weir_record::{
    spec::{Alternation, CellRole, CellSpec, StudySpec},
    trial::TrialRecord,
};
use weir_stats::random::Random;

use crate::replayed::{RECORDED, Round, planted};

/// Cells of all combinations.
pub fn spec(rounds: u32, connections: &[u32], workers: &[u32], depths: &[u32]) -> StudySpec {
    let mut spec = sample::study(&["epoll", "uring"], rounds, 1);
    let shape = spec.cells[0].clone();
    let alternation =
        Alternation { slice_ns: 25_000_000, permutations: 8, prime_messages: 2, evidence: None };
    spec.cells.clear();
    for depth in depths {
        for workers in workers {
            for connections in connections {
                spec.cells.push(CellSpec {
                    id: format!("c{connections}-d{depth}-w{workers}"),
                    role: if spec.cells.is_empty() { CellRole::Primary } else { CellRole::Exploratory },
                    connections: *connections,
                    workers: *workers,
                    depth: *depth,
                    alternation: Some(alternation),
                    ..shape.clone()
                });
            }
        }
    }
    spec
}

/// The trials of a study in which the second arm costs more in each cell, by the given effect. Which run of a round
/// is the arm is random: they are the same program, so all choices are equivalent. Consecutive rounds go to
/// consecutive cells, from a random start on. `slow` is the slowdown at a share of the session.
pub fn trials(
    spec: &StudySpec,
    recorded: &[Round],
    effect: impl Fn(&CellSpec) -> f64,
    slow: impl Fn(f64) -> f64,
    seed: u64,
) -> Vec<TrialRecord> {
    let mut random = Random::seeded(seed);
    let mut at = random.below(recorded.len() as u64) as usize;
    let mut trials: Vec<TrialRecord> = Vec::new();
    let length = spec.cells.len() * spec.cells[0].blocks as usize;
    for block in 0..spec.cells[0].blocks {
        for cell in &spec.cells {
            let slow = slow((trials.len() / 3) as f64 / length as f64);
            let round = &recorded[at % recorded.len()];
            let runs = round.runs.each_ref().map(|run| run.iter().map(|cost| cost * slow).collect());
            let round = Round { runs, ..*round };
            at += 1;
            let mut labels = RECORDED;
            random.shuffle(&mut labels);
            trials.extend(planted(&cell.id, block, ["epoll", "uring"], &round, effect(cell), labels));
        }
    }
    trials
}
