//! Which workload runs which protocol: the only list of them.

use crate::{
    echo::{Echo, EchoSpec},
    http::{spec::HttpSpec, workload::Http},
    orders::{spec::OrdersSpec, workload::Orders},
    worker::WorkloadVisitor,
};

/// Calls a visitor with the workload of its protocol, whose type only this list knows.
pub(crate) fn dispatch_workload<V: WorkloadVisitor>(visitor: &V) -> V::Outcome {
    let protocol = visitor.protocol();
    if protocol.spec::<EchoSpec>().is_some() {
        visitor.visit::<Echo>()
    } else if protocol.spec::<HttpSpec>().is_some() {
        visitor.visit::<Http>()
    } else if protocol.spec::<OrdersSpec>().is_some() {
        visitor.visit::<Orders>()
    } else {
        unreachable!("{protocol:?} has no workload in this list")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{spec::Protocol, worker::RunnableWorkload};

    /// Whether the workload belongs to the protocol; runs nothing.
    struct Compares(Protocol);

    impl WorkloadVisitor for Compares {
        type Outcome = bool;

        fn protocol(&self) -> &Protocol {
            &self.0
        }

        fn visit<W: RunnableWorkload>(&self) -> bool {
            self.0.spec::<W::Spec>().is_some()
        }
    }

    #[test]
    fn each_protocol_is_run_by_the_workload_of_its_own_specification() {
        let echo = EchoSpec { message_bytes: 64, connection_per_message: false };
        for protocol in [echo.into(), crate::http::spec::tests::http().into(), OrdersSpec::demo().into()] {
            let visitor = Compares(protocol);
            assert!(dispatch_workload(&visitor), "{:?}", visitor.0);
        }
    }
}
