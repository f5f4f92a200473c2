//! What connections cost by themselves: those that stay open and silent, and those that carry one message.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{figure::Figure, finding::Finding};

/// What a study found of either.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionCosts {
    /// Cells with silent connections, each arm beside itself with fewest of them.
    pub idle: Vec<IdleCost>,
    /// What the kernel holds for a connection, over all servers of a round together.
    pub kernel: Vec<KernelCost>,
    /// Cells in which every message has its own connection.
    pub churn: Vec<ChurnCost>,
}

/// One arm in a cell with silent connections, against the cell that has fewest and is the same in all else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdleCost {
    /// The arm.
    pub arm: String,
    /// The cell.
    pub cell_id: String,
    /// The cell with fewest.
    pub cell_id_base: String,
    /// Silent connections in the former beyond those in the latter.
    pub connections: u32,
    /// Server CPU for each message, in microseconds.
    pub cpu_us: Option<Figure>,
    /// The same with fewest silent connections.
    pub cpu_us_base: Option<Figure>,
    /// The former over the latter.
    pub ratio: Option<Figure>,
    /// The generator was the limit in one of the cells: at unlike rates the CPU for each message differs by itself.
    pub is_bound: bool,
    /// The server's own memory, that no file backs, for each of these connections: bytes.
    pub private_bytes: Option<Figure>,
    /// Its share of all memory that it maps, rings and buffers that it shares with the kernel among it.
    pub proportional_bytes: Option<Figure>,
    /// Why there is no ratio.
    pub reasons: Vec<Finding>,
}

/// Memory of the kernel. It is counted for the whole machine, so that no arm has its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelCost {
    /// The cell.
    pub cell_id: String,
    /// The cell with fewest silent connections.
    pub cell_id_base: String,
    /// Silent connections in the former beyond those in the latter, to each server.
    pub connections: u32,
    /// Bytes for each connection, both ends of it.
    pub bytes: Figure,
}

/// One arm in a cell in which every message has its own connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChurnCost {
    /// The arm.
    pub arm: String,
    /// The cell.
    pub cell_id: String,
    /// Connections a second.
    pub per_second: Option<Figure>,
    /// Server CPU for each connection with its message, in microseconds.
    pub cpu_us: Option<Figure>,
    /// The cell on whose connections messages follow each other; absent where the study has none.
    pub cell_id_base: Option<String>,
    /// Server CPU for a message there.
    pub cpu_us_base: Option<Figure>,
    /// A connection with its message over a message alone.
    pub ratio: Option<Figure>,
    /// The generator was the limit: connections a second are a lower bound.
    pub is_bound: bool,
    /// It was the limit in the other cell: what a message costs there also depends on the rate.
    #[serde(default)]
    pub is_base_bound: bool,
    /// Why a figure is missing.
    pub reasons: Vec<Finding>,
}
