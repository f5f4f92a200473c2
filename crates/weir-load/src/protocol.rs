//! The seam between a load and what it sends: a protocol says what is asked of it, and which workload carries that.

use std::{any::Any, fmt, sync::Arc};

use weir_engine::net::Address;

use crate::{
    recorder::Sections,
    slices::worker::Bench,
    spec::{LoadError, LoadSpec},
    worker::{Outcome, Stage},
    workload::Workload,
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

    /// Bytes of a message as the report has them.
    fn message_bytes(&self) -> u32;

    /// Messages that each connection of a counted run may start; none counts all connections together.
    fn messages_each(&self) -> Option<u64> {
        None
    }

    /// What is noted besides the times that every message has.
    fn sections(&self) -> Sections {
        Sections::default()
    }

    /// Whether its servers can be loaded in slices: its connections stay, and what it writes aside needs no order.
    fn has_slices(&self) -> bool {
        true
    }

    /// Has its workload carry a load: `post.carry::<W>()`.
    fn carry(&self, post: Post<'_>) -> Option<Outcome>;
}

/// Where a workload is carried: in a run of its own, or in the slices of several servers.
pub(crate) enum Post<'a> {
    Run(Stage<'a>),
    Slices(Bench<'a>),
}

impl Post<'_> {
    /// Carries a workload to its end. Slices hand their outcomes over one by one.
    pub(crate) fn carry<W: Workload>(&self) -> Option<Outcome> {
        match self {
            Self::Run(stage) => stage.perform::<W>(),
            Self::Slices(bench) => {
                bench.work::<W>();
                None
            }
        }
    }
}
