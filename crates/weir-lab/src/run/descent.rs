//! Moves the claim to a lower rate if an arm misses the present one too often.

use weir_judge::rungs;
use weir_record::{
    spec::{CellRole, StudySpec},
    trial::TrialRecord,
};

use super::{Event, Session, Stop, nanoseconds};
use crate::time_left;

impl Session<'_> {
    /// The cell that decides.
    pub(super) fn primary_cell(&self) -> usize {
        primary(&self.header.spec)
    }

    /// Gives the deciding rung up if an arm has missed its rate too often, and returns whether it did. The stored
    /// trials of the rung stay and are part of the curve.
    pub(super) fn descend(&mut self, cell: usize) -> Result<bool, Stop> {
        let spec = &self.header.spec;
        if !spec.cells.get(cell).is_some_and(|cell| cell.is_rung && cell.role == CellRole::Primary) {
            return Ok(false);
        }
        let done = |id: &str| {
            let own = self.blocks.iter().filter(|block| block.key.cell_id == id && block.key.attempt == 0);
            u32::try_from(own.count()).unwrap_or(u32::MAX)
        };
        let Some(lower) = rungs::descended(spec, self.trials(), |cell| done(&cell.id)) else {
            return Ok(false);
        };
        let least_kept = rungs::least_kept(&spec.cells[cell], self.trials());
        let (from, to) = (spec.cells[cell].id.clone(), lower.cells[primary(&lower)].id.clone());
        self.header.spec = self.within_time(lower);
        self.store_spec()?;
        if let Some(least_kept) = least_kept {
            self.tell(&Event::Descended { from, to, least_kept });
        }
        Ok(true)
    }

    /// The study with as many rounds of the deciding rung as fit into the time, and no fewer than were planned in
    /// total: a study that is cut decides nothing.
    fn within_time(&self, lower: StudySpec) -> StudySpec {
        let blocks = |spec: &StudySpec| -> u32 { spec.cells.iter().map(|cell| cell.blocks).sum() };
        let (planned, cell) = (blocks(&self.header.spec), primary(&lower));
        let trials: Vec<&TrialRecord> = self.trials().collect();
        let left_ns = nanoseconds(self.cap.saturating_sub(self.elapsed()));
        let mut fitting = lower;
        while blocks(&fitting) > planned
            && time_left::left_ns(&fitting, &trials, &self.missing_arms()) > left_ns
        {
            fitting.cells[cell].blocks -= 1;
        }
        fitting
    }
}

fn primary(spec: &StudySpec) -> usize {
    spec.cells.iter().position(|cell| cell.role == CellRole::Primary).unwrap_or(spec.cells.len())
}
