//! Which workload carries which protocol: the one list of them.

use crate::{
    echo::{Echo, EchoSpec},
    http::{spec::HttpSpec, workload::Http},
    orders::{spec::OrdersSpec, workload::Orders},
    worker::Carrier,
};

/// Has the workload of its protocol carried.
pub(crate) fn carry<C: Carrier>(carrier: &C) -> C::Outcome {
    let protocol = carrier.protocol();
    if protocol.spec::<EchoSpec>().is_some() {
        carrier.carry::<Echo>()
    } else if protocol.spec::<HttpSpec>().is_some() {
        carrier.carry::<Http>()
    } else if protocol.spec::<OrdersSpec>().is_some() {
        carrier.carry::<Orders>()
    } else {
        unreachable!("{protocol:?} has no workload in this list")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{spec::Protocol, worker::Carried};

    /// Says whether the workload is of the protocol, and carries nothing.
    struct Compares(Protocol);

    impl Carrier for Compares {
        type Outcome = bool;

        fn protocol(&self) -> &Protocol {
            &self.0
        }

        fn carry<W: Carried>(&self) -> bool {
            self.0.spec::<W::Spec>().is_some()
        }
    }

    #[test]
    fn each_protocol_is_carried_by_the_workload_of_its_own_specification() {
        let echo = EchoSpec { message_bytes: 64, connection_per_message: false };
        for protocol in [echo.into(), crate::http::spec::tests::http().into(), OrdersSpec::demo().into()] {
            let carrier = Compares(protocol);
            assert!(carry(&carrier), "{:?}", carrier.0);
        }
    }
}
