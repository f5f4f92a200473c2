//! Section `limits`: how many connections may be opened, and the kernel's related limits.

use weir_record::{
    doctor::{Diagnosis, FindingState},
    finding::Finding,
    machine::Fingerprint,
};

use super::{finding, has_capability, unlocked_by, yes_or_limited};
use crate::limits::ConnectionBudget;

const SECTION: &str = "limits";

/// From capabilities(7); the memory limit does not apply to a process with this capability.
const CAP_IPC_LOCK: u32 = 14;
/// Connections below which common studies (ten thousand and some spare) do not fit.
const CONNECTIONS_WANTED: u64 = 10_000;
/// Accept queue below which a burst of connections overflows.
const ACCEPT_QUEUE_WANTED: u64 = 1024;
/// Locked memory sufficient for the rings and registered buffers of several workers.
const MEMLOCK_BYTES_WANTED: u64 = 64 << 20;

pub(super) fn findings(machine: &Fingerprint, budget: &ConnectionBudget) -> Vec<Diagnosis> {
    let number = |name: &str| machine.limits.get(name).and_then(|value| value.parse::<u64>().ok());
    vec![
        descriptors(budget, number("nr_open")),
        local_ports(budget),
        accept_queue(number("somaxconn")),
        locked_memory(machine.limits.get("memlock_soft").map(String::as_str), has_capability(CAP_IPC_LOCK)),
    ]
}

fn descriptors(budget: &ConnectionBudget, nr_open: Option<u64>) -> Diagnosis {
    let connections = budget.server_connections();
    let limited = |limit: u64| (limit != u64::MAX).then_some(limit);
    let state = match connections {
        0 => FindingState::No,
        connections => yes_or_limited(connections >= CONNECTIONS_WANTED),
    };
    let found = Finding::DescriptorsFound {
        connections: limited(connections),
        allowed: limited(budget.nofile_hard),
        raised_from: (budget.nofile_soft < budget.nofile_hard).then_some(budget.nofile_soft),
        used: budget.descriptors_used,
    };
    let wanted = nr_open.unwrap_or(1 << 20).min(1 << 20);
    // A shell cannot raise its own hard limit without privilege, so `prlimit` raises it from outside.
    let command = format!("sudo prlimit --pid $$ --nofile={wanted} && ulimit -n {wanted}");
    unlocked_by(finding(SECTION, "descriptors", state, found), &command)
}

fn local_ports(budget: &ConnectionBudget) -> Diagnosis {
    let ports = budget.local_ports;
    let enough =
        ports >= CONNECTIONS_WANTED && ports >= budget.server_connections().min(CONNECTIONS_WANTED * 2);
    let found = Finding::LocalPorts { ports, connections: budget.client_connections() };
    let state = if ports == 0 { FindingState::No } else { yes_or_limited(enough) };
    unlocked_by(
        finding(SECTION, "local ports", state, found),
        "sudo sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\"",
    )
}

fn accept_queue(somaxconn: Option<u64>) -> Diagnosis {
    let good = somaxconn.is_some_and(|connections_max| connections_max >= ACCEPT_QUEUE_WANTED);
    let queue = |connections_max| Finding::AcceptQueue { connections_max };
    let found = somaxconn.map_or(Finding::NoAcceptQueue, queue);
    unlocked_by(
        finding(SECTION, "accept queue", yes_or_limited(good), found),
        "sudo sysctl -w net.core.somaxconn=4096",
    )
}

fn locked_memory(soft: Option<&str>, exempt: bool) -> Diagnosis {
    let (good, found) = match (soft, soft.and_then(|text| text.parse::<u64>().ok())) {
        _ if exempt => (true, Finding::LockedMemoryFree { by_capability: true }),
        (Some("unlimited"), _) => (true, Finding::LockedMemoryFree { by_capability: false }),
        (_, Some(bytes)) => (bytes >= MEMLOCK_BYTES_WANTED, Finding::LockedMemory { bytes }),
        (_, None) => (false, Finding::NoLockedMemory),
    };
    unlocked_by(
        finding(SECTION, "locked memory", yes_or_limited(good), found),
        "sudo prlimit --pid $$ --memlock=unlimited",
    )
}

#[cfg(test)]
mod tests {
    use super::{super::run, *};

    fn budget(nofile_hard: u64, local_ports: u64) -> ConnectionBudget {
        ConnectionBudget { nofile_soft: 1024.min(nofile_hard), nofile_hard, descriptors_used: 6, local_ports }
    }

    #[test]
    fn descriptors_say_how_many_connections_fit_and_how_to_get_more() {
        let good = descriptors(&budget(20_000, 28_232), None);
        assert_eq!((good.state, &good.unlock), (FindingState::Yes, &None));
        let is_so =
            |found: &Finding| matches!(found, Finding::DescriptorsFound { connections: Some(19_930), .. });
        assert!(is_so(&good.found), "{good:?}");
        let low = descriptors(&budget(4096, 28_232), Some(65_536));
        assert_eq!(low.state, FindingState::Limited);
        assert_eq!(low.unlock, Some(run("sudo prlimit --pid $$ --nofile=65536 && ulimit -n 65536")));
        assert_eq!(descriptors(&budget(32, 28_232), None).state, FindingState::No);
    }

    #[test]
    fn ports_matter_when_they_are_fewer_than_what_descriptors_allow() {
        assert_eq!(local_ports(&budget(20_000, 28_232)).state, FindingState::Yes);
        assert_eq!(local_ports(&budget(1 << 20, 28_232)).state, FindingState::Yes);
        assert_eq!(local_ports(&budget(1 << 20, 15_000)).state, FindingState::Limited);
        assert_eq!(local_ports(&budget(4096, 5000)).state, FindingState::Limited);
        assert_eq!(local_ports(&budget(4096, 0)).state, FindingState::No);
    }

    #[test]
    fn queue_and_memory_limits_come_with_a_command_only_when_they_are_low() {
        assert_eq!(accept_queue(Some(4096)).unlock, None);
        assert!(accept_queue(Some(128)).unlock.is_some());
        assert_eq!(locked_memory(Some("unlimited"), false).state, FindingState::Yes);
        let low = locked_memory(Some("8388608"), false);
        assert_eq!((low.state, low.found), (FindingState::Limited, Finding::LockedMemory { bytes: 8 << 20 }));
        assert_eq!(locked_memory(Some("odd"), false).state, FindingState::Limited);
        assert_eq!(locked_memory(Some("8388608"), true).unlock, None);
    }
}
