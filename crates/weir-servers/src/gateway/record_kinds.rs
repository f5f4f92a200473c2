//! The kinds of the gateway's own records in its journal. A new one needs a description in [`super::described`].

use crate::orders::{ApplicationKind, RECORD_KIND_APPLICATION};

/// The gateway's own records, in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GatewayRecord {
    /// An upstream session was joined.
    Session,
    /// A control changed.
    Control,
    /// The venues, in the order of their numbers in the following records.
    Venues,
    /// An exchange has sent a message about a trade of an unknown order.
    Stray,
    /// From here on a session has answers for clients of a worker.
    Home,
    /// The worker has logged in at a venue, and joins a session there, or continues it.
    Endpoint,
    /// An operator has given a command.
    Operator,
}

impl GatewayRecord {
    const ALL: [Self; 7] =
        [Self::Session, Self::Control, Self::Venues, Self::Stray, Self::Home, Self::Endpoint, Self::Operator];

    /// The kind in a record's header.
    pub(super) const fn kind(self) -> ApplicationKind {
        ApplicationKind::new(RECORD_KIND_APPLICATION + self as u8)
    }

    /// `None`: it belongs to the sessions, or is from a later version.
    pub(super) fn of(kind: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|record| record.kind().number() == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_format() {
        let numbers: Vec<u8> = GatewayRecord::ALL.iter().map(|record| record.kind().number()).collect();
        assert_eq!(numbers, [64, 65, 66, 67, 68, 69, 70]);
        for kind in 0..=u8::MAX {
            assert_eq!(GatewayRecord::of(kind).is_some(), numbers.contains(&kind), "{kind}");
        }
    }
}
