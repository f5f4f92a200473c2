//! Replaces in flight. They are the only numbered messages that may stay unanswered, and not all of them: whether the
//! others arrived has to be known.

use std::{cell::RefCell, collections::BTreeSet, path::PathBuf, rc::Rc};

use weir_proto::{
    ouch::Inbound,
    soup::{Deframer, UNSEQUENCED},
};

use super::ACCOUNTS;
use crate::{
    journal::Level,
    orders::{OrdersConfig, Record, RecordKind, accounts_named, recover},
};

/// The name of a replace; `None` for other messages.
pub(super) fn name_of(raw: &[u8]) -> Option<String> {
    match Inbound::decode(raw) {
        Ok(Inbound::Replace(replace, _)) => Some(replace.client_order_id.as_str().trim_end().to_owned()),
        _ => None,
    }
}

/// The names of replaces that arrived at a venue.
#[derive(Clone, Default)]
pub(super) struct Arrived(Rc<RefCell<BTreeSet<String>>>);

impl Arrived {
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.0.borrow().clone()
    }
}

/// Observes the bytes of one connection to a venue.
pub(super) struct Tap {
    deframer: Deframer,
    arrived: Arrived,
}

impl Tap {
    pub(super) fn new(arrived: &Arrived) -> Self {
        Self { deframer: Deframer::new(1024), arrived: arrived.clone() }
    }

    pub(super) fn note(&mut self, mut bytes: &[u8]) {
        while let Ok(Some(frame)) = self.deframer.next(&mut bytes) {
            if frame.kind == UNSEQUENCED {
                self.arrived.0.borrow_mut().extend(name_of(frame.payload));
            }
        }
    }
}

/// The names of replaces that a gateway has sent, according to its journals in this folder.
pub(super) fn sent_on(folder: PathBuf) -> BTreeSet<String> {
    let config = OrdersConfig {
        journal: Some((folder, Level::Os)),
        journal_segment_bytes: 64 << 10,
        ..OrdersConfig::new(accounts_named('C', ACCOUNTS))
    };
    let mut names = BTreeSet::new();
    let mut note = |record: &Record<'_>| {
        if let RecordKind::Sent { raw, .. } = record.kind {
            names.extend(name_of(raw));
        }
    };
    recover(&config, &mut note).expect("its journals are right");
    names
}
