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
        let all = [
            self.refused,
            self.reset,
            self.connect_timeout,
            self.response_timeout,
            self.short,
            self.wrong_bytes,
            self.wrong_status,
            self.malformed,
            self.local_limit,
            self.unexplained,
        ];
        all.into_iter().fold(0, u64::saturating_add)
    }

    /// Adds another worker's counts. Those of another host may be anything, so a sum that does not fit stays the
    /// largest number.
    pub fn merge(&mut self, other: &Self) {
        self.refused = self.refused.saturating_add(other.refused);
        self.reset = self.reset.saturating_add(other.reset);
        self.connect_timeout = self.connect_timeout.saturating_add(other.connect_timeout);
        self.response_timeout = self.response_timeout.saturating_add(other.response_timeout);
        self.short = self.short.saturating_add(other.short);
        self.wrong_bytes = self.wrong_bytes.saturating_add(other.wrong_bytes);
        self.wrong_status = self.wrong_status.saturating_add(other.wrong_status);
        self.malformed = self.malformed.saturating_add(other.malformed);
        self.cut_off_at_end = self.cut_off_at_end.saturating_add(other.cut_off_at_end);
        self.local_limit = self.local_limit.saturating_add(other.local_limit);
        self.unexplained = self.unexplained.saturating_add(other.unexplained);
    }
}
