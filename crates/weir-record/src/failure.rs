//! What failed in a load run, by class.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailureSample {
    /// The name of its count in [`FailureCounts`].
    pub class: String,
    /// What went wrong.
    pub text: String,
}

/// Failures by class. Anything that fits no class is a bug of ours and makes a run invalid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FailureCounts {
    /// Connection refused.
    pub refused: u64,
    /// Connection reset by the peer.
    pub reset: u64,
    /// No connection within the connect timeout.
    pub connect_timeout: u64,
    /// No complete response within the response timeout.
    pub response_timeout: u64,
    /// The peer closed before the response was complete.
    pub short: u64,
    /// A byte differed from what was sent, or the content from what was expected.
    pub wrong_bytes: u64,
    /// A response with a status other than those expected.
    pub wrong_status: u64,
    /// Bytes that are no response: bad framing, or bytes without a request.
    pub malformed: u64,
    /// In flight when the run ended; not an error of the server.
    pub cut_off_at_end: u64,
    /// Local resources ran out (ports, descriptors, memory).
    pub local_limit: u64,
    /// None of the above; must be zero.
    pub unexplained: u64,
}

impl FailureCounts {
    /// Failures that speak against the server or the run: all but `cut_off_at_end`.
    pub fn errors(&self) -> u64 {
        self.refused
            + self.reset
            + self.connect_timeout
            + self.response_timeout
            + self.short
            + self.wrong_bytes
            + self.wrong_status
            + self.malformed
            + self.local_limit
            + self.unexplained
    }

    /// Adds another worker's counts.
    pub fn merge(&mut self, other: &Self) {
        self.refused += other.refused;
        self.reset += other.reset;
        self.connect_timeout += other.connect_timeout;
        self.response_timeout += other.response_timeout;
        self.short += other.short;
        self.wrong_bytes += other.wrong_bytes;
        self.wrong_status += other.wrong_status;
        self.malformed += other.malformed;
        self.cut_off_at_end += other.cut_off_at_end;
        self.local_limit += other.local_limit;
        self.unexplained += other.unexplained;
    }
}
