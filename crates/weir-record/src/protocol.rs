//! What a protocol means for the judgement and the report of a study, one row each: what is counted, and what shows
//! that answers were right. A protocol without a row is one of messages that are compared byte for byte.

use crate::{
    finding::MessageKind,
    spec::{CellSpec, StudySpec},
};

/// What shows that answers were right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Every byte is compared.
    Bytes,
    /// Framing and length are checked, and content that is known byte for byte.
    Responses,
    /// Replies have their number and their turn, shares add up, and two servers counted the same.
    Replies,
    /// The kernel's account of the bytes bears out what a tool says.
    Accounts,
}

/// A protocol.
#[derive(Debug)]
pub struct ProtocolRow {
    /// As a study file names it.
    pub name: &'static str,
    /// What is sent and counted.
    pub kind: MessageKind,
    /// What comes back of each and is counted, in the reasons of a record.
    pub completed: &'static str,
    /// What shows that answers were right.
    pub proof: Proof,
}

/// The rows there are; the first is that of every protocol without one.
pub static PROTOCOLS: [ProtocolRow; 4] = [
    ProtocolRow { name: "echo", kind: MessageKind::Message, completed: "message", proof: Proof::Bytes },
    ProtocolRow { name: "http", kind: MessageKind::Request, completed: "response", proof: Proof::Responses },
    ProtocolRow {
        name: "storage",
        kind: MessageKind::Operation,
        completed: "operation",
        proof: Proof::Accounts,
    },
    ProtocolRow { name: "orders", kind: MessageKind::Order, completed: "order", proof: Proof::Replies },
];

/// The row of a protocol.
pub fn row(name: &str) -> &'static ProtocolRow {
    PROTOCOLS.iter().find(|row| row.name == name).unwrap_or(&PROTOCOLS[0])
}

impl CellSpec {
    /// The row of its protocol.
    pub fn protocol_row(&self) -> &'static ProtocolRow {
        row(self.protocol())
    }
}

impl StudySpec {
    /// The row of its protocol; a study has one.
    pub fn protocol_row(&self) -> &'static ProtocolRow {
        self.cells.first().map_or(&PROTOCOLS[0], CellSpec::protocol_row)
    }

    /// Whether its messages are HTTP requests and their responses.
    pub fn is_http(&self) -> bool {
        self.protocol_row().kind == MessageKind::Request
    }

    /// Whether its messages are orders that go through a gateway to an exchange.
    pub fn is_orders(&self) -> bool {
        self.protocol_row().kind == MessageKind::Order
    }

    /// Whether its messages are operations on a disk.
    pub fn is_storage(&self) -> bool {
        self.protocol_row().kind == MessageKind::Operation
    }
}

impl MessageKind {
    /// What is counted in a cell.
    pub fn of_cell(cell: &CellSpec) -> Self {
        cell.protocol_row().kind
    }

    /// What is counted in a study.
    pub fn of_study(spec: &StudySpec) -> Self {
        spec.protocol_row().kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_without_a_row_is_one_of_messages() {
        assert_eq!((row("http").kind, row("http").proof), (MessageKind::Request, Proof::Responses));
        assert_eq!((row("ping").kind, row("ping").proof), (MessageKind::Message, Proof::Bytes));
    }
}
