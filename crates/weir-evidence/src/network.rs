//! What the kernel counts about TCP connections that have trouble, and how it tries again.
//!
//! The counters are those of this process's network namespace. A connection whose first segment (SYN) finds the
//! accept queue full is dropped without a word, and the client sends the SYN again after a while; these times are the
//! same for every connection of a kernel, so that a connection that took just as long tells what happened to it.

use std::collections::BTreeMap;

use weir_record::machine::NetworkCounters;

use crate::{files, parse};

/// Name in the fingerprint's limits of the sysctl that says how often a SYN is sent again at equal distances.
pub const LINEAR_TIMEOUTS: &str = "tcp_syn_linear_timeouts";

/// Name in the fingerprint's limits of the sysctl that says how often it is sent again at growing ones.
pub const SYN_RETRIES: &str = "tcp_syn_retries";

/// First wait for an answer to a SYN, of every kernel (RFC 6298).
const FIRST_WAIT_S: u32 = 1;

/// A SYN is sent again this often when the kernel does not say.
const SYN_RETRIES_DEFAULT: u32 = 6;

/// Steps of a ladder at most; both sysctls end at 127.
const STEPS_MAX: u32 = 254;

/// No step lies later: the longest wait between two (`TCP_RTO_MAX`) is two minutes, and nobody waits for two.
const STEP_S_MAX: u32 = 120;

/// The counters now; zero where they cannot be read.
pub fn read() -> NetworkCounters {
    let snmp = files::read_text("/proc/net/snmp").unwrap_or_default();
    let netstat = files::read_text("/proc/net/netstat").unwrap_or_default();
    counters(&snmp, &netstat)
}

fn counters(snmp: &str, netstat: &str) -> NetworkCounters {
    let counter = |text: &str, group, name| parse::network_counter(text, group, name).unwrap_or(0);
    NetworkCounters {
        listen_overflows: counter(netstat, "TcpExt", "ListenOverflows"),
        listen_drops: counter(netstat, "TcpExt", "ListenDrops"),
        tcp_retransmits: counter(snmp, "Tcp", "RetransSegs"),
        syn_retransmits: counter(netstat, "TcpExt", "TCPSynRetrans"),
    }
}

/// Seconds after which an unanswered SYN is sent again, counted from the first, as the fingerprint's limits say.
///
/// From Linux 6.5 on, [`LINEAR_TIMEOUTS`] (4 by default) waits of a second come before the waits that double: 1, 2, 3,
/// 4, 5, 7, 11 s. A kernel without it doubles at once: 1, 3, 7, 15 s (`Documentation/networking/ip-sysctl.rst`).
/// Empty when the limits were not read on a kernel at all.
pub fn syn_ladder_s(limits: &BTreeMap<String, String>) -> Vec<u32> {
    let number = |name: &str| limits.get(name).and_then(|text| text.parse::<u32>().ok());
    let (linear, doubling) = (number(LINEAR_TIMEOUTS), number(SYN_RETRIES));
    if linear.is_none() && doubling.is_none() {
        return Vec::new();
    }
    let linear = linear.unwrap_or(0);
    let retries = linear.saturating_add(doubling.unwrap_or(SYN_RETRIES_DEFAULT)).min(STEPS_MAX);
    let mut ladder = Vec::new();
    let (mut at, mut wait) = (0_u32, FIRST_WAIT_S);
    for retry in 0..retries {
        at = at.saturating_add(wait);
        if at > STEP_S_MAX {
            break;
        }
        ladder.push(at);
        if retry >= linear {
            wait = wait.saturating_mul(2);
        }
    }
    ladder
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn both_ladders_are_known() {
        let new = limits(&[(LINEAR_TIMEOUTS, "4"), (SYN_RETRIES, "6")]);
        assert_eq!(syn_ladder_s(&new), [1, 2, 3, 4, 5, 7, 11, 19, 35, 67]);
        let old = limits(&[(SYN_RETRIES, "6")]);
        assert_eq!(syn_ladder_s(&old), [1, 3, 7, 15, 31, 63]);
        assert_eq!(syn_ladder_s(&limits(&[(LINEAR_TIMEOUTS, "0"), (SYN_RETRIES, "3")])), [1, 3, 7]);
    }

    #[test]
    fn odd_limits_give_short_ladders_or_none() {
        assert_eq!(syn_ladder_s(&BTreeMap::new()), [0; 0]);
        assert_eq!(syn_ladder_s(&limits(&[(LINEAR_TIMEOUTS, "many"), (SYN_RETRIES, "")])), [0; 0]);
        assert_eq!(syn_ladder_s(&limits(&[(SYN_RETRIES, "0")])), [0; 0]);
        let most = syn_ladder_s(&limits(&[(LINEAR_TIMEOUTS, "4294967295"), (SYN_RETRIES, "4294967295")]));
        assert_eq!((most.len(), most.last()), (120, Some(&120)));
    }

    #[test]
    fn counters_are_found_by_name() {
        let snmp = "Tcp: RtoAlgorithm RetransSegs InErrs\nTcp: 1 17 0\n";
        let netstat =
            "TcpExt: ListenOverflows ListenDrops TCPSynRetrans\nTcpExt: 3 4 5\nIpExt: InOctets\nIpExt: 9\n";
        let expected =
            NetworkCounters { listen_overflows: 3, listen_drops: 4, tcp_retransmits: 17, syn_retransmits: 5 };
        assert_eq!(counters(snmp, netstat), expected);
        assert_eq!(counters("", "TcpExt: ListenOverflows\n"), NetworkCounters::default());
        let later = NetworkCounters { listen_overflows: 10, listen_drops: 1, ..expected };
        let since = later.since(&expected);
        assert_eq!((since.listen_overflows, since.listen_drops, since.tcp_retransmits), (7, 0, 0));
    }
}
