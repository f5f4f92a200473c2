//! Whether the network between two hosts lost packets. Pure.
//!
//! A link that is saturated, or a ring of a network interface that is full, drops packets, and TCP sends them again. A
//! study then measures the network besides its servers. The counters are those of the interfaces that carry the load,
//! on both hosts, from the start of a round's servers to their end.

use weir_record::{
    check::{Check, CheckName},
    finding::Finding,
    machine::NetworkCounters,
    spec::StudySpec,
    trial::TrialRecord,
};

/// Most packets that may be dropped, and segments that may be sent again, as a share of all packets. Networks inside of
/// a building lose fewer by far.
const LOST_SHARE_MAX: f64 = 0.001;

/// The check over all rounds; `None` for servers on the machine of the load, and if no interface is known.
pub(crate) fn check(spec: &StudySpec, trials: &[&TrialRecord]) -> Option<Check> {
    spec.server_host.as_ref()?;
    let mut network = NetworkCounters::default();
    // All trials of a round have the counters of the round.
    let rounds = trials.iter().filter(|trial| trial.position == 0);
    rounds.for_each(|trial| network.merge(&trial.network));
    let (packets, dropped, resent) = (network.link.packets, network.link.drops, network.tcp_retransmits);
    if packets == 0 {
        return None;
    }
    // A packet that was dropped is also sent again, and counts once.
    let passed = dropped.max(resent) as f64 / packets as f64 <= LOST_SHARE_MAX;
    let detail = Finding::LinkLosses { dropped, resent, packets, share_max: LOST_SHARE_MAX };
    Some(Check { name: CheckName::LinkLosses, passed, detail })
}

#[cfg(test)]
mod tests {
    use weir_record::{machine::LinkCounters, spec::ServerHost};

    use super::*;
    use crate::sample;

    /// Two rounds of two trials, each with these counters.
    fn checked(server_host: Option<ServerHost>, packets: u64, drops: u64, resent: u64) -> Option<Check> {
        let spec = StudySpec { server_host, ..sample::study(&["epoll", "uring"], 2, 1) };
        let network = NetworkCounters {
            tcp_retransmits: resent,
            link: LinkCounters { packets, drops },
            ..NetworkCounters::default()
        };
        let trial = |block: u32, position: u32| TrialRecord {
            position,
            network,
            ..sample::trial(&spec.cells[0].id, "epoll", block, 10.0)
        };
        let trials = [trial(0, 0), trial(0, 1), trial(1, 1), trial(1, 0)];
        check(&spec, &trials.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_network_that_loses_one_packet_in_a_thousand_is_named_and_a_round_counts_once() {
        let there = || Some(ServerHost::default());
        let right = checked(there(), 100_000, 100, 0).expect("the interfaces are known");
        let found =
            Finding::LinkLosses { dropped: 200, resent: 0, packets: 200_000, share_max: LOST_SHARE_MAX };
        assert_eq!((right.passed, &right.detail), (true, &found));
        let passed = |drops, resent| checked(there(), 100_000, drops, resent).map(|check| check.passed);
        assert_eq!([passed(101, 0), passed(0, 101)], [Some(false); 2]);
        assert_eq!(passed(100, 100), Some(true), "the same packets");
    }

    #[test]
    fn nothing_is_said_of_one_host_or_of_unknown_interfaces() {
        assert_eq!(checked(None, 100_000, 500, 500), None);
        assert_eq!(checked(Some(ServerHost::default()), 0, 0, 500), None);
    }
}
