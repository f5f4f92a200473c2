//! Decides which cells are measured in alternating slices, and how long the slices are. Pure.
//!
//! Arms that are up together and loaded in turn run on the same machine state within tens of milliseconds. The
//! machine's noise is slow, so it cancels in their ratio. Arms take turns by default wherever they can. The other
//! cells are measured in whole trials in blocks, and the report says why.

use weir_judge::slice_length::MESSAGES_EACH;
use weir_record::{
    finding::NoTurns,
    spec::{Alternation, ArmSpec, CellSpec, LoadMode, StudySpec, WholeTrials},
};

use crate::protocol;

const MILLISECOND_NS: u64 = 1_000_000;

const PERMUTATIONS_MIN: u64 = 2;
/// Length from which a round may have a single permutation: more rounds carry more information than longer ones.
const ALONE_NS: u64 = 1_000 * MILLISECOND_NS;
const PERMUTATIONS_MAX: u64 = 20;

/// Messages on each connection before a slice.
const PRIME_MESSAGES: u32 = 2;

/// Slice of an open loop: long compared with the time in which a queue settles, short compared with the machine's
/// noise. Tails are pooled over a round.
const PACED_SLICE_NS: u64 = 50 * MILLISECOND_NS;
/// Total length of an open loop's slices in a round, over all runs: p99 needs a thousand samples of each. Rounds of a
/// claim are as short as those of a closed loop.
const PACED_ROUND_NS: u64 = 1_200 * MILLISECOND_NS;

/// Most connections of one generator over all runs of a round.
pub const CONNECTIONS_MAX: u64 = 16_000;

/// Time of a message beyond its protocol's, for choosing the slice length: a part by size, and a part by the number
/// of connections that share the caches (epoll echoes 140,000 messages a second over 100 connections and 112,000 over
/// 4000).
const MESSAGE_NS_PER_KIB: u64 = 180;
const MESSAGE_PS_PER_CONNECTION: u64 = 750;

/// Least length of a slice, in round trips to the host of its server. A turn has four round trips, a tenth of the
/// slice.
const SLICE_IN_DELAYS: u64 = 40;

/// Longest slice that the laboratory chooses.
pub(crate) const SLICE_NS_MAX: u64 = 2_000 * MILLISECOND_NS;

/// Why the arms of a cell cannot take turns; `None` when they can.
pub fn obstacle(spec: &StudySpec, cell: &CellSpec) -> Option<NoTurns> {
    let arms: Vec<&ArmSpec> = spec.arms.iter().filter(|arm| cell.has_arm(&arm.name)).collect();
    let runs = arms.len() as u64 + 1;
    let protocol = protocol::of(cell);
    let of_arms = || arms.iter().find_map(|arm| protocol.obstacle_of_arm(arm));
    if let Some(obstacle) = protocol.obstacle(cell).or_else(of_arms) {
        return Some(obstacle);
    }
    if arms.windows(2).any(|two| two[0].load_options != two[1].load_options) {
        return Some(NoTurns::LoadOptions);
    }
    let connections = u64::from(cell.connections) + u64::from(cell.idle_connections);
    if runs * connections > CONNECTIONS_MAX {
        return Some(NoTurns::Connections);
    }
    None
}

/// The alternation that suits a cell; `None` if its arms cannot take turns.
pub fn suited(spec: &StudySpec, cell: &CellSpec) -> Option<Alternation> {
    if obstacle(spec, cell).is_some() {
        return None;
    }
    let protocol = protocol::of(cell);
    let runs = spec.arms.iter().filter(|arm| cell.has_arm(&arm.name)).count() as u64 + 1;
    let connections = u64::from(cell.connections);
    let message_ns = protocol.message_ns()
        + MESSAGE_NS_PER_KIB * u64::from(cell.message_bytes) / 1024
        + MESSAGE_PS_PER_CONNECTION * connections / 1000;
    let closed_ns = (u64::from(MESSAGES_EACH) * connections * message_ns)
        .clamp(protocol.slice_ns_min(), SLICE_NS_MAX.max(protocol.slice_ns_min()));
    let slice_ns = match cell.load {
        LoadMode::Closed => closed_ns,
        LoadMode::Open { .. } | LoadMode::OpenShare { .. } => closed_ns.max(PACED_SLICE_NS),
    };
    Some(Alternation {
        slice_ns,
        permutations: permutations(cell, runs, slice_ns),
        prime_messages: PRIME_MESSAGES,
        evidence: None,
    })
}

/// Permutations of a round with slices of this length.
pub(crate) fn permutations(cell: &CellSpec, runs: u64, slice_ns: u64) -> u32 {
    let round_ns = match cell.load {
        _ if cell.is_rung => protocol::of(cell).round_ns(),
        LoadMode::Closed => protocol::of(cell).round_ns(),
        LoadMode::Open { .. } | LoadMode::OpenShare { .. } => PACED_ROUND_NS,
    };
    let fewest = if slice_ns < ALONE_NS { PERMUTATIONS_MIN } else { 1 };
    let permutations = (round_ns / (runs * slice_ns)).clamp(fewest, PERMUTATIONS_MAX);
    u32::try_from(permutations).unwrap_or(u32::MAX)
}

/// Lengthens slices to at least 40 round trips to the servers' host: each turn has some round trips, and nothing is
/// measured during them. A slice length that the study file sets stays.
pub fn lengthen_for_delay(spec: &mut StudySpec, delay_ns: u64) {
    let least_ns = delay_ns.saturating_mul(SLICE_IN_DELAYS).min(SLICE_NS_MAX);
    let StudySpec { arms, cells, slices_given, .. } = spec;
    for cell in cells.iter_mut().filter(|cell| !slices_given.contains(&cell.id)) {
        let runs = arms.iter().filter(|arm| cell.has_arm(&arm.name)).count() as u64 + 1;
        let Some(turns) = cell.alternation.filter(|turns| turns.slice_ns < least_ns) else { continue };
        let most = permutations(cell, runs, least_ns);
        let permutations = turns.permutations.min(most);
        cell.alternation = Some(Alternation { slice_ns: least_ns, permutations, ..turns });
    }
}

/// Makes the arms take turns in every cell where they can; the number of blocks stays.
pub fn apply(spec: &mut StudySpec) {
    for index in 0..spec.cells.len() {
        spec.cells[index].alternation = suited(spec, &spec.cells[index]);
    }
}

/// Records which cells are measured in whole trials, and why.
pub(crate) fn note_whole_trials(spec: &mut StudySpec) {
    let whole = spec.cells.iter().filter(|cell| cell.alternation.is_none()).map(|cell| WholeTrials {
        cell_id: cell.id.clone(),
        why: obstacle(spec, cell).unwrap_or(NoTurns::Asked),
    });
    spec.whole_trials = whole.collect();
}

/// Longest a round should take: its slices, and starting and stopping the servers.
pub fn round_ns(cell: &CellSpec, alternation: &Alternation, runs: u64) -> u64 {
    /// Priming, draining and reading clocks, for each slice.
    const SLICE_OVERHEAD_NS: u64 = 4 * MILLISECOND_NS;
    /// The readings of the machine.
    const ROUND_OVERHEAD_NS: u64 = 150 * MILLISECOND_NS;
    let slices = u64::from(alternation.permutations) * runs;
    slices * (alternation.slice_ns + SLICE_OVERHEAD_NS)
        + runs * protocol::of(cell).start_ns(cell)
        + ROUND_OVERHEAD_NS
}

/// Longest time that a cell's slices of evidence should take, over all its rounds and all arms but the second
/// baseline.
pub fn evidence_ns(cell: &CellSpec, runs: u64) -> u64 {
    /// Attaching programs and detaching them, for each slice that they observe.
    const PROGRAMS_OVERHEAD_NS: u64 = 150 * MILLISECOND_NS;
    let Some(plan) = cell.alternation.and_then(|alternation| alternation.evidence) else { return 0 };
    let all = u64::from(plan.rounds.min(cell.blocks)) * u64::from(plan.pairs) * (runs - 1);
    let (observed, read) = if plan.by_group { (5, 1) } else { (1, 0) };
    // Time to stop a server's threads, and to answer all messages in flight at the speed that strace leaves.
    let under_strace = if plan.strace { (runs - 1) * 2 * plan.slice_ns } else { 0 };
    all * ((1 + read + observed) * plan.slice_ns + observed * PROGRAMS_OVERHEAD_NS) + under_strace
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weir_record::spec::{EvidencePlan, HttpCell};

    use super::*;
    use weir_judge::sample::study;

    fn first(change: impl FnOnce(&mut StudySpec)) -> (Option<NoTurns>, Option<Alternation>) {
        let mut spec = study(&["epoll", "uring"], 8, 1);
        change(&mut spec);
        (obstacle(&spec, &spec.cells[0]), suited(&spec, &spec.cells[0]))
    }

    #[test]
    fn slices_grow_with_connections_and_messages_and_rounds_stay_short() {
        let (none, alternation) = first(|_| ());
        assert_eq!(none, None);
        let alternation = alternation.expect("they can take turns");
        assert_eq!((alternation.slice_ns, alternation.permutations), (25 * MILLISECOND_NS, 8));
        let (_, many) = first(|spec| spec.cells[0].connections = 4_000);
        let many = many.expect("they can take turns");
        assert!((1_000 * MILLISECOND_NS..1_500 * MILLISECOND_NS).contains(&many.slice_ns), "{many:?}");
        assert_eq!(many.permutations, 1);
        let (_, some) = first(|spec| spec.cells[0].connections = 1_000);
        let some = some.expect("they can take turns");
        assert!((250 * MILLISECOND_NS..300 * MILLISECOND_NS).contains(&some.slice_ns), "{some:?}");
        assert_eq!(some.permutations, 2);
        let (_, http) = first(|spec| {
            spec.cells[0].http = Some(HttpCell::default());
        });
        assert!(http.expect("they can take turns").slice_ns > 2 * alternation.slice_ns);
        let (_, large) = first(|spec| spec.cells[0].message_bytes = 148 << 10);
        assert!(large.expect("they can take turns").slice_ns > 80 * MILLISECOND_NS);
    }

    #[test]
    fn what_cannot_take_turns_says_why() {
        let reason = |change: fn(&mut StudySpec)| first(change).0;
        assert_eq!(reason(|spec| spec.cells[0].connections = 6_000), Some(NoTurns::Connections));
        let close = |spec: &mut StudySpec| {
            spec.cells[0].http = Some(HttpCell { close: true, ..HttpCell::default() });
        };
        assert_eq!(reason(close), Some(NoTurns::ConnectionEach));
        let options = |spec: &mut StudySpec| {
            spec.arms[1].load_options = BTreeMap::from([("spin-us".to_owned(), "5".to_owned())]);
        };
        assert_eq!(reason(options), Some(NoTurns::LoadOptions));
        let fixed = |spec: &mut StudySpec| {
            spec.arms[1].subject =
                weir_record::spec::Subject::Command { argv: vec!["server".to_owned(), "8080".to_owned()] };
        };
        assert_eq!(reason(fixed), Some(NoTurns::NoPort));
    }

    #[test]
    fn cells_in_whole_trials_are_noted_with_their_reason() {
        let mut spec = study(&["epoll", "uring"], 8, 1);
        note_whole_trials(&mut spec);
        let noted = WholeTrials { cell_id: spec.cells[0].id.clone(), why: NoTurns::Asked };
        assert_eq!(spec.whole_trials, std::slice::from_ref(&noted));
        spec.cells[0].close = true;
        note_whole_trials(&mut spec);
        assert_eq!(spec.whole_trials, [WholeTrials { why: NoTurns::ConnectionEach, ..noted }]);
        spec.cells[0].close = false;
        apply(&mut spec);
        note_whole_trials(&mut spec);
        assert_eq!(spec.whole_trials, []);
    }

    #[test]
    fn evidence_takes_as_long_as_it_has_rounds_and_pairs() {
        let ns = |change: fn(&mut EvidencePlan)| {
            let mut plan =
                EvidencePlan { rounds: 4, slice_ns: 500, pairs: 1, by_group: false, strace: false, after: 0 };
            change(&mut plan);
            let (_, alternation) = first(|_| ());
            let alternation = alternation.map(|it| Alternation { evidence: Some(plan), ..it });
            let cell = CellSpec { alternation, ..study(&["epoll", "uring"], 8, 1).cells[0].clone() };
            evidence_ns(&cell, 3)
        };
        let once = ns(|_| ());
        assert!(once > 4 * 2 * 2 * 500, "{once}");
        assert_eq!(ns(|plan| plan.pairs = 4), 4 * once);
        assert_eq!(ns(|plan| plan.rounds = 100), 2 * once, "the cell has eight rounds");
        assert_eq!(ns(|plan| plan.strace = true), once + 2 * 2 * 500);
    }

    #[test]
    fn slices_are_long_against_questions_to_another_host() {
        let lengthened = |delay_ns: u64, given: bool| {
            let mut spec = study(&["epoll", "uring"], 8, 1);
            apply(&mut spec);
            spec.slices_given.extend(given.then(|| spec.cells[0].id.clone()));
            lengthen_for_delay(&mut spec, delay_ns);
            spec.cells[0].alternation.map(|turns| (turns.slice_ns / MILLISECOND_NS, turns.permutations))
        };
        assert_eq!(lengthened(200_000, false), Some((25, 8)), "a network of one room");
        assert_eq!(lengthened(5 * MILLISECOND_NS, false), Some((200, 2)));
        assert_eq!(lengthened(1_000 * MILLISECOND_NS, false), Some((2_000, 1)), "no longer than any");
        assert_eq!(lengthened(5 * MILLISECOND_NS, true), Some((25, 8)), "that was asked for");
    }

    #[test]
    fn an_arm_that_is_not_in_the_cell_is_no_obstacle() {
        let (none, _) = first(|spec| {
            spec.arms[1].load_options = BTreeMap::from([("spin-us".to_owned(), "5".to_owned())]);
            spec.cells[0].arms = vec!["epoll".to_owned()];
        });
        assert_eq!(none, None);
    }
}
