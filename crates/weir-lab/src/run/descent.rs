//! The claim goes to a lower rate where an arm misses the present one too often.

use weir_judge::rungs;
use weir_record::spec::{CellRole, StudySpec};

use super::{Event, Session, Stop};

impl Session<'_> {
    /// Gives the deciding rung up if an arm has missed its rate too often, and says whether it did. What is stored of
    /// it stays, and shows the curve.
    pub(super) fn descend(&mut self, cell: usize) -> Result<bool, Stop> {
        let spec = &self.header.spec;
        if !spec.cells[cell].is_rung || spec.cells[cell].role != CellRole::Primary {
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
        let primary = |spec: &StudySpec| {
            let found = spec.cells.iter().find(|cell| cell.role == CellRole::Primary);
            found.map(|cell| cell.id.clone()).unwrap_or_default()
        };
        let (from, to) = (primary(spec), primary(&lower));
        self.header.spec = lower;
        self.store_spec()?;
        if let Some(least_kept) = least_kept {
            self.tell(&Event::Descended { from, to, least_kept });
        }
        Ok(true)
    }
}
