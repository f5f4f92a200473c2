//! Counts of what happened to connections in a whole run. Pure.

use hdrhistogram::Histogram;
use weir_record::latency::empty_histogram;

use crate::summary::add;

/// Counts of connections.
#[derive(Clone, Debug)]
pub struct ConnectionNotes {
    /// Time from attempt to connection.
    pub connect: Histogram<u64>,
    /// Closed by the server, as it had announced or had been asked to.
    pub closed_as_said: u64,
    /// Closed by the server without notice, between two requests.
    pub closed_between: u64,
    /// Kept open by the server, though it had announced a close or had been asked to close.
    pub kept_open: u64,
    /// Requests behind a response that closed the connection.
    pub withdrawn: u64,
}

impl Default for ConnectionNotes {
    fn default() -> Self {
        Self { connect: empty_histogram(), closed_as_said: 0, closed_between: 0, kept_open: 0, withdrawn: 0 }
    }
}

impl ConnectionNotes {
    /// Adds what was noted elsewhere.
    pub fn merge(&mut self, other: &Self) {
        add(&mut self.connect, &other.connect);
        self.closed_as_said += other.closed_as_said;
        self.closed_between += other.closed_between;
        self.kept_open += other.kept_open;
        self.withdrawn += other.withdrawn;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_several_workers_add_up() {
        let mut connections = ConnectionNotes { closed_between: 1, withdrawn: 4, ..Default::default() };
        connections.merge(&ConnectionNotes { closed_as_said: 2, kept_open: 3, ..Default::default() });
        let ConnectionNotes { closed_as_said, closed_between, kept_open, withdrawn, .. } = connections;
        assert_eq!((closed_as_said, closed_between, kept_open, withdrawn), (2, 1, 3, 4));
    }
}
