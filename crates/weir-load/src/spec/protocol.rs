//! The interface between a load and its protocol: the protocol's specification, and the facts a load needs about it.
//! `crate::dispatch` lists which workload runs which protocol.

use std::{any::Any, fmt, net::IpAddr, sync::Arc};

use weir_engine::net::Address;
use weir_record::load::{LoadReport, parts::LoadPart};

use super::LoadSpec;
use crate::{
    error::LoadError,
    gather::Gather,
    outcome::{Common, WorkerOutcomes},
    recorder::{Sections, WindowBounds},
};

/// A protocol with its specification: [`EchoSpec`](crate::EchoSpec), [`HttpSpec`](crate::HttpSpec) or
/// [`OrdersSpec`](crate::OrdersSpec).
#[derive(Clone, Debug)]
pub struct Protocol(pub(crate) Arc<dyn ProtocolSpec>);

impl<S: ProtocolSpec> From<S> for Protocol {
    fn from(spec: S) -> Self {
        Self(Arc::new(spec))
    }
}

impl Protocol {
    /// Its specification, if it is of this type.
    pub fn spec<S: 'static>(&self) -> Option<&S> {
        let spec: &dyn Any = &*self.0;
        spec.downcast_ref()
    }

    /// Whether both are of the same protocol, whatever their specifications.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let kind = |of: &Self| Any::type_id(&*of.0);
        kind(self) == kind(other)
    }
}

/// The specification of one protocol.
pub(crate) trait ProtocolSpec: fmt::Debug + Any + Send + Sync {
    /// Checks the protocol's own fields.
    fn validate(&self, load: &LoadSpec, target: &Address) -> Result<(), LoadError>;

    /// Bytes of the largest message that is sent, and the field of the specification that multiplies them in flight.
    fn request_bytes_max(&self) -> (usize, &'static str);

    /// What a load needs to know of the protocol.
    fn facts(&self) -> Facts;

    /// Local addresses that connections start from in turn; if empty, the kernel chooses. `None` if the protocol has
    /// no such option.
    fn source_addresses(&self) -> Option<&[IpAddr]> {
        None
    }

    /// State that the workers of a load share, made before they start.
    fn common(&self, _load: &LoadSpec, _bounds: &Arc<WindowBounds>) -> Result<Common, LoadError> {
        Ok(Arc::new(()))
    }

    /// Adds the protocol's own section to the report.
    fn add_section(
        &self,
        _report: &mut LoadReport,
        _load: &LoadSpec,
        _gather: &Gather,
        _outcomes: &WorkerOutcomes<'_>,
    ) {
    }

    /// Adds what the coordinator of several generators needs of the protocol beside that section. The load started at
    /// `origin_ns`.
    fn add_to_part(&self, _part: &mut LoadPart, _origin_ns: u64, _outcomes: &WorkerOutcomes<'_>) {}
}

/// What a load needs to know of a protocol.
pub(crate) struct Facts {
    /// Bytes of a message, for the report.
    pub(crate) message_bytes: u32,
    /// Messages that each connection of a counted run may start; `None` if all connections share one count.
    pub(crate) messages_each: Option<u64>,
    /// Whether every message has its own connection.
    pub(crate) connection_per_message: bool,
    /// What is noted besides the times that every message has.
    pub(crate) sections: Sections,
    /// Whether its servers can be loaded in slices: its connections persist, also between two slices.
    pub(crate) has_slices: bool,
}

impl Facts {
    /// Facts of a protocol without special features.
    pub(crate) fn plain(message_bytes: u32) -> Self {
        Self {
            message_bytes,
            messages_each: None,
            connection_per_message: false,
            sections: Sections::default(),
            has_slices: true,
        }
    }
}
