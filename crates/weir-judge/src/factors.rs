//! The factors of a map, and the level of each in a cell. Pure.

use weir_record::{grid::GridFactor, spec::CellSpec};

/// All factors.
pub(crate) const FACTORS: [GridFactor; 5] = [
    GridFactor::Connections,
    GridFactor::Workers,
    GridFactor::Depth,
    GridFactor::MessageBytes,
    GridFactor::ServerCpus,
];

/// The level of a cell.
pub(crate) fn level(cell: &CellSpec, factor: GridFactor) -> u64 {
    u64::from(match factor {
        GridFactor::Connections => cell.connections,
        GridFactor::Workers => cell.workers,
        GridFactor::Depth => cell.depth,
        GridFactor::MessageBytes => cell.message_bytes,
        GridFactor::ServerCpus => u32::try_from(cell.server_cpus.len()).unwrap_or(u32::MAX),
    })
}
