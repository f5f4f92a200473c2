//! Lengthens the slices of a cell whose arms, or whose servers' host, are slower than its plan assumed.
//!
//! A plan has to guess how long a message takes. Once a cell has rounds, its slowest arm shows how long a slice must
//! be to hold enough messages on each connection, and later rounds have slices of that length. Earlier rounds stay:
//! each has one length for all of its arms. After half of a cell's rounds the length no longer changes, so most
//! rounds have one length.

use std::collections::BTreeSet;

use weir_judge::slice_length;
use weir_record::{
    spec::{Alternation, CellSpec, StudySpec},
    trial::TrialRecord,
};

use super::{Session, Stop, nanoseconds};
use crate::{
    alternation::{self, SLICE_NS_MAX},
    time_left,
};

/// Margin for an arm that is slower than in the median of its rounds.
const ROOM: f64 = 1.2;

impl Session<'_> {
    /// Lengthens slices if a question to the host of the servers takes longer now than when the study was planned. The
    /// longest time is stored.
    pub(super) fn lengthen_for_delay(&mut self) -> Result<(), Stop> {
        let Some(delay_ns) = self.callbacks.launcher.control_delay_ns() else { return Ok(()) };
        let spec = &mut self.header.spec;
        let Some(there) = spec.server_host.as_mut().filter(|there| there.control_delay_ns < delay_ns) else {
            return Ok(());
        };
        there.control_delay_ns = delay_ns;
        alternation::lengthen_for_delay(spec, delay_ns);
        self.store_spec()
    }

    /// Lengthens the slices of a cell if they are too short for its slowest arm and there is time for longer ones: a
    /// study that is cut decides nothing. The new length is stored as rates are.
    pub(super) fn lengthen_slices(&mut self, index: usize) -> Result<(), Stop> {
        let trials: Vec<&TrialRecord> = self.trials().collect();
        let found = needed(&self.header.spec, &self.header.spec.cells[index], &trials);
        let Some(alternation) = found else { return Ok(()) };
        let mut spec = self.header.spec.clone();
        spec.cells[index].alternation = Some(alternation);
        let left_ns = time_left::left_ns(&spec, &trials, &self.missing_arms());
        if left_ns > nanoseconds(self.cap.saturating_sub(self.elapsed())) {
            return Ok(());
        }
        self.header.spec = spec;
        self.store_spec()
    }
}

/// The new alternation of a cell; `None` if it stays, because its slices are long enough, have the length that the
/// file sets, or must not be longer.
fn needed(spec: &StudySpec, cell: &CellSpec, trials: &[&TrialRecord]) -> Option<Alternation> {
    let turns = cell.alternation?;
    if !slice_length::is_asked(cell) || spec.slices_given.contains(&cell.id) {
        return None;
    }
    let own = |trial: &&&TrialRecord| trial.cell_id == cell.id && trial.exclusions.is_empty();
    let rounds: BTreeSet<u32> = trials.iter().filter(own).map(|trial| trial.block).collect();
    if 2 * rounds.len() >= cell.blocks as usize {
        return None;
    }
    let arms: Vec<&str> =
        spec.arms.iter().map(|arm| arm.name.as_str()).filter(|name| cell.has_arm(name)).collect();
    let of_arm = |arm: &&str| {
        let rounds: Vec<&TrialRecord> =
            trials.iter().filter(own).filter(|trial| trial.arm == **arm).copied().collect();
        slice_length::of_arm(cell, arm, &rounds)
    };
    let short = arms.iter().filter_map(of_arm).filter(|it| it.each < f64::from(slice_length::MESSAGES_EACH));
    let slowest = short.max_by_key(|it| it.needed_ns)?;
    let slice_ns = ((ROOM * slowest.needed_ns as f64) as u64).min(SLICE_NS_MAX);
    let runs = arms.len() as u64 + 1;
    let permutations = alternation::permutations(cell, runs, slice_ns).min(turns.permutations);
    (slice_ns > turns.slice_ns).then_some(Alternation { slice_ns, permutations, ..turns })
}

#[cfg(test)]
mod tests {
    use weir_judge::sample;
    use weir_record::trial::SliceRecord;

    use super::*;

    const MILLISECOND_NS: u64 = 1_000_000;

    /// A study whose arms had this many messages in their slices, with three rounds.
    fn studied(messages: [u64; 2]) -> (StudySpec, Vec<TrialRecord>) {
        let mut spec = sample::study(&["epoll", "uring"], 12, 1);
        alternation::apply(&mut spec);
        let cell = spec.cells[0].clone();
        let slice_ns = cell.alternation.expect("they take turns").slice_ns;
        let of_arm = |block: u32, arm: &str, messages: u64| {
            let slice = SliceRecord { messages, length_ns: slice_ns, ..SliceRecord::default() };
            TrialRecord { slices: vec![slice; 3], ..sample::trial(&cell.id, arm, block, 5.0) }
        };
        let of_round = |block| [of_arm(block, "epoll", messages[0]), of_arm(block, "uring", messages[1])];
        (spec.clone(), (0..3).flat_map(of_round).collect())
    }

    fn needed_of(spec: &StudySpec, trials: &[TrialRecord]) -> Option<Alternation> {
        needed(spec, &spec.cells[0], &trials.iter().collect::<Vec<_>>())
    }

    #[test]
    fn the_slowest_arm_says_how_long_slices_are_and_rounds_stay_short() {
        let (spec, fast) = studied([3_100, 5_000]);
        assert_eq!(needed_of(&spec, &fast), None, "they hold enough");
        let (spec, slow) = studied([3_100, 500]);
        let longer = needed_of(&spec, &slow).expect("five messages on each connection are few");
        assert_eq!(longer.slice_ns, 180 * MILLISECOND_NS);
        assert!(longer.permutations < spec.cells[0].alternation.expect("they take turns").permutations);
        let (mut spec, slowest) = studied([3_100, 1]);
        assert_eq!(needed_of(&spec, &slowest).map(|it| it.slice_ns), Some(SLICE_NS_MAX));
        spec.cells[0].alternation = needed_of(&spec, &slowest);
        assert_eq!(needed_of(&spec, &slowest), None, "they may be no longer");
    }

    #[test]
    fn slices_have_the_length_that_was_asked_for() {
        let (mut spec, slow) = studied([3_100, 500]);
        spec.slices_given.push(spec.cells[0].id.clone());
        assert_eq!(needed_of(&spec, &slow), None);
    }

    #[test]
    fn most_rounds_of_a_cell_have_one_length() {
        let (mut spec, slow) = studied([3_100, 500]);
        spec.cells[0].blocks = 6;
        assert_eq!(needed_of(&spec, &slow), None, "half of them are there");
        spec.cells[0].blocks = 7;
        assert!(needed_of(&spec, &slow).is_some());
    }
}
