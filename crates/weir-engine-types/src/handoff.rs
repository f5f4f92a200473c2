//! Counters of the hand-off between workers.

/// Counters of the hand-off between workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "records",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(default)
)]
pub struct HandoffStats {
    /// Strategy: `owner`, `naive`, `edge`, `armed`, `mesh`, `mesh-spin`, `msgring`.
    pub strategy: String,
    /// Messages handed to another worker.
    pub pushed: u64,
    /// Times a worker emptied its inbound queues and found something.
    pub drains: u64,
    /// Wakes that cost a system call.
    pub wakes_sent: u64,
    /// Wakes that were not needed because the other side was awake.
    pub wakes_suppressed: u64,
    /// Wakes after which all queues were empty.
    pub wakes_spurious: u64,
    /// Work found by the once-a-second look although nobody had woken the worker: must stay zero.
    pub wakes_recovered: u64,
    /// Messages that had to wait in the sender's overflow.
    pub overflowed: u64,
    /// Most messages in one overflow.
    pub overflow_depth_max: u64,
    /// Messages queued now.
    pub depth: u64,
    /// Orders of clients taken in (the base of the share handed off).
    pub orders: u64,
    /// Those handed to another worker.
    pub orders_handed_off: u64,
}

impl HandoffStats {
    /// What happened since `earlier`; the largest overflow and the depth are the later values.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            strategy: self.strategy.clone(),
            pushed: self.pushed.saturating_sub(earlier.pushed),
            drains: self.drains.saturating_sub(earlier.drains),
            wakes_sent: self.wakes_sent.saturating_sub(earlier.wakes_sent),
            wakes_suppressed: self.wakes_suppressed.saturating_sub(earlier.wakes_suppressed),
            wakes_spurious: self.wakes_spurious.saturating_sub(earlier.wakes_spurious),
            wakes_recovered: self.wakes_recovered.saturating_sub(earlier.wakes_recovered),
            overflowed: self.overflowed.saturating_sub(earlier.overflowed),
            overflow_depth_max: self.overflow_depth_max,
            depth: self.depth,
            orders: self.orders.saturating_sub(earlier.orders),
            orders_handed_off: self.orders_handed_off.saturating_sub(earlier.orders_handed_off),
        }
    }

    /// Adds another worker's counters; maxima stay maxima.
    pub fn merge(&mut self, other: &Self) {
        self.pushed += other.pushed;
        self.drains += other.drains;
        self.wakes_sent += other.wakes_sent;
        self.wakes_suppressed += other.wakes_suppressed;
        self.wakes_spurious += other.wakes_spurious;
        self.wakes_recovered += other.wakes_recovered;
        self.overflowed += other.overflowed;
        self.overflow_depth_max = self.overflow_depth_max.max(other.overflow_depth_max);
        self.depth += other.depth;
        self.orders += other.orders;
        self.orders_handed_off += other.orders_handed_off;
    }
}
