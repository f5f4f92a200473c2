//! A study before its schedule is finished: what a live view shows. It is stored nowhere.

/// Most points of an estimate over time.
pub const TRACK_POINTS_MAX: usize = 48;

/// The estimate of the primary comparison from its first units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrackPoint {
    /// Number of units.
    pub units: usize,
    /// Ratio.
    pub ratio: f64,
    /// Its interval: lower, upper.
    pub interval: (f64, f64),
}

/// A cell of a study that runs.
#[derive(Clone, Debug, PartialEq)]
pub struct CellSoFar {
    /// Its identifier.
    pub cell_id: String,
    /// Planned blocks that are stored.
    pub blocks_done: u32,
    /// Planned blocks.
    pub blocks: u32,
    /// The ratio of server CPU per message, first arm of the cell over its baseline: a geometric mean over the blocks,
    /// before anything is excluded. Absent before the cell's blocks are done, and where it was not measured.
    pub ratio: Option<f64>,
}
