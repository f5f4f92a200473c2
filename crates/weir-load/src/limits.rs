//! Resources that a load needs from this process and this machine: descriptors, local ports, CPUs.

use weir_engine::net::Address;
use weir_evidence::limits::ConnectionBudget;

use crate::{error::LoadError, spec::LoadSpec};

/// Refuses a load that exceeds the limits of this process, and names the remedy. Connections and workers are those of
/// this process.
pub(crate) fn ensure_limits(
    spec: &LoadSpec,
    (connections, workers): (u32, u32),
    target: &Address,
    budget: ConnectionBudget,
    raise: impl FnOnce() -> Option<u64>,
) -> Result<(), LoadError> {
    let sources = spec.protocol.0.source_addresses();
    let ports = budget.local_ports * sources.map_or(1, |sources| sources.len().max(1) as u64);
    if matches!(target, Address::Tcp(_)) && u64::from(connections) > ports {
        return Err(LoadError::Ports { connections, ports, has_sources: sources.is_some() });
    }
    let needed = budget.generator_descriptors(u64::from(connections), workers);
    if needed <= budget.nofile_soft {
        return Ok(());
    }
    let allowed = raise().unwrap_or(budget.nofile_soft);
    if needed <= allowed { Ok(()) } else { Err(LoadError::Descriptors { connections, needed, allowed }) }
}

/// Pins this thread to the generator's CPUs for the length of a run, so that it does not disturb the server's.
pub(crate) struct Pinned {
    before: Vec<usize>,
}

impl Pinned {
    pub(crate) fn new(cpus: &[usize]) -> Result<Option<Self>, LoadError> {
        if cpus.is_empty() {
            return Ok(None);
        }
        let failed = |error| LoadError::Environment(format!("cannot pin to CPUs {cpus:?}: {error}"));
        let before = weir_sys::affinity::allowed_cpus().map_err(failed)?;
        weir_sys::affinity::pin_current_thread(cpus).map_err(failed)?;
        Ok(Some(Self { before }))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The set was valid a moment ago; if it no longer is, the thread keeps its current CPUs.
        let _ = weir_sys::affinity::pin_current_thread(&self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(
        target: &str,
        connections: u32,
        budget: ConnectionBudget,
        raised: Option<u64>,
    ) -> Option<String> {
        let spec = LoadSpec { connections, ..crate::spec::tests::spec() };
        let target = target.parse().expect("an address");
        ensure_limits(&spec, (connections, spec.workers), &target, budget, || raised)
            .err()
            .map(|error| error.to_string())
    }

    #[test]
    fn a_low_limit_is_raised_and_one_that_cannot_be_is_named_with_a_remedy() {
        let budget = ConnectionBudget {
            nofile_soft: 1024,
            nofile_hard: 4096,
            descriptors_used: 10,
            local_ports: 5000,
        };
        let tcp = "127.0.0.1:7";
        assert_eq!(refused(tcp, 900, budget, None), None);
        assert_eq!(refused(tcp, 2000, budget, Some(4096)), None);
        assert_eq!(
            refused(tcp, 2000, budget, None).expect("too many"),
            "2000 connections need 2050 file descriptors, but the limit is 1024; run `ulimit -n 2050` first \
             (as root if it is refused)"
        );
        let ports = refused(tcp, 5001, budget, Some(1 << 20)).expect("too few ports");
        assert!(ports.contains("there are 5000") && ports.contains("ip_local_port_range"), "{ports}");
        assert_eq!(refused("@name", 5001, budget, Some(1 << 20)), None);
    }
}
