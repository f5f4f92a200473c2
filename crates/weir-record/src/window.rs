//! What was seen of a target while it was loaded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{engine::EngineStats, machine::NoiseWindow, orders::NodeWindow, threads::ThreadWindow};

/// What was seen of the target's processes between the edges of the measured window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ObservedWindow {
    /// CPU time of all threads of the process and its descendants (schedstat, exact).
    pub cpu_ns: u64,
    /// The part of it in threads that the kernel runs for io_uring (`iou-wrk-*`, `iou-sqp-*`).
    pub kernel_thread_cpu_ns: u64,
    /// Time those threads waited for a CPU.
    pub run_delay_ns: u64,
    /// Voluntary context switches.
    #[serde(alias = "switches_voluntary")]
    pub context_switches_voluntary: u64,
    /// Involuntary context switches.
    #[serde(alias = "switches_involuntary")]
    pub context_switches_involuntary: u64,
    /// Threads at the end of the window.
    pub threads: u32,
    /// Anonymous resident memory at the end of the window.
    pub rss_anon_bytes: u64,
    /// Resident memory of all kinds, what is shared with others divided by their number; 0 where the kernel does not
    /// report it.
    pub pss_bytes: u64,
    /// What the kernel took since before the servers of the round started, for each of them: its structures and socket
    /// buffers, of both ends of their connections. Absent for whole trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_bytes: Option<u64>,
    /// Connections that each worker has open at the end of the window, when the target is a Weir server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connections_by_worker: Vec<u64>,
    /// Engine counters of the window, when the target is a Weir server.
    pub engine: Option<EngineStats>,
    /// What the node counted in the window, when the target is an exchange or a gateway of Weir.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeWindow>,
    /// Each thread of the target and of what runs beside it; of whole trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_window: Option<ThreadWindow>,
    /// Noise over the same window.
    pub noise: NoiseWindow,
}
