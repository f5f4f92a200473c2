//! The seam between a load and what it sends: what a protocol is asked, and what a load has to know of it. Which
//! workload runs that is listed in `crate::dispatch`.

use std::{any::Any, fmt, net::IpAddr, sync::Arc};

use weir_engine::net::Address;
use weir_record::load::LoadReport;

use super::LoadSpec;
use crate::{
    error::LoadError,
    gather::Gather,
    outcome::{Common, WorkerOutcomes},
    recorder::{Sections, WindowBounds},
};

/// A protocol and what is asked of it, made from its specification: [`EchoSpec`](crate::EchoSpec),
/// [`HttpSpec`](crate::HttpSpec) or [`OrdersSpec`](crate::OrdersSpec).
#[derive(Clone, Debug)]
pub struct Protocol(pub(crate) Arc<dyn ProtocolSpec>);

impl<S: ProtocolSpec> From<S> for Protocol {
    fn from(spec: S) -> Self {
        Self(Arc::new(spec))
    }
}

impl Protocol {
    /// Its specification, if it is of this kind.
    pub fn spec<S: 'static>(&self) -> Option<&S> {
        let spec: &dyn Any = &*self.0;
        spec.downcast_ref()
    }

    /// Whether both are of one kind, whatever is asked.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let kind = |of: &Self| Any::type_id(&*of.0);
        kind(self) == kind(other)
    }
}

/// What only a load of one protocol is asked.
pub(crate) trait ProtocolSpec: fmt::Debug + Any + Send + Sync {
    /// Checks what is special to it.
    fn validate(&self, load: &LoadSpec, target: &Address) -> Result<(), LoadError>;

    /// Bytes of the largest message that is sent, and the field of the specification that makes them many in flight.
    fn request_bytes_max(&self) -> (usize, &'static str);

    /// What a load has to know of it.
    fn facts(&self) -> Facts;

    /// Local addresses that connections start from in turn; without any the kernel chooses. `None` where nobody can
    /// ask for some.
    fn source_addresses(&self) -> Option<&[IpAddr]> {
        None
    }

    /// What the workers of a load share, made before they start.
    fn common(&self, _load: &LoadSpec, _bounds: &Arc<WindowBounds>) -> Result<Common, LoadError> {
        Ok(Arc::new(()))
    }

    /// Adds a part of its own to the report of everything else.
    fn add_section(
        &self,
        _report: &mut LoadReport,
        _load: &LoadSpec,
        _gather: &Gather,
        _outcomes: &WorkerOutcomes<'_>,
    ) {
    }
}

/// What a load has to know of a protocol.
pub(crate) struct Facts {
    /// Bytes of a message as the report has them.
    pub(crate) message_bytes: u32,
    /// Messages that each connection of a counted run may start; absent where all connections are counted together.
    pub(crate) messages_each: Option<u64>,
    /// Whether every message has a connection of its own.
    pub(crate) connection_per_message: bool,
    /// What is noted besides the times that every message has.
    pub(crate) sections: Sections,
    /// Whether its servers can be loaded in slices: its connections stay, and outlive what is between two slices.
    pub(crate) has_slices: bool,
}

impl Facts {
    /// Those of a protocol that has nothing of its own.
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
