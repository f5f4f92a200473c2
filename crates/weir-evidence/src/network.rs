//! What the kernel counts about TCP connections that have trouble, and how it tries again.
//!
//! The counters are those of a network namespace. A connection whose first segment (SYN) finds the
//! accept queue full is dropped without a word, and the client sends the SYN again after a while; these times are the
//! same for every connection of a kernel, so that a connection that took just as long tells what happened to it.

use weir_record::machine::NetworkCounters;

use crate::{files, parse};

/// The counters now; zero where they cannot be read.
pub fn read() -> NetworkCounters {
    read_in("/proc/net")
}

/// The same of the network namespace in which a process is.
pub fn read_of(pid: u32) -> NetworkCounters {
    read_in(&format!("/proc/{pid}/net"))
}

/// TCP segments that were sent since the machine started, without those that were sent again and without
/// acknowledgements that the timer of delayed ones sent: those belong to whoever had traffic some 40 ms before. Zero
/// where it cannot be read.
pub fn segments_sent() -> u64 {
    let read = |path: &str| files::read_text(path).unwrap_or_default();
    segments(&read("/proc/net/snmp"), &read("/proc/net/netstat"))
}

fn segments(snmp: &str, netstat: &str) -> u64 {
    let sent = parse::network_counter(snmp, "Tcp", "OutSegs").unwrap_or(0);
    sent.saturating_sub(parse::network_counter(netstat, "TcpExt", "DelayedACKs").unwrap_or(0))
}

fn read_in(folder: &str) -> NetworkCounters {
    let read = |name: &str| files::read_text(format!("{folder}/{name}")).unwrap_or_default();
    counters(&read("snmp"), &read("netstat"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_name() {
        let snmp = "Tcp: RtoAlgorithm RetransSegs InErrs\nTcp: 1 17 0\n";
        let netstat =
            "TcpExt: ListenOverflows ListenDrops TCPSynRetrans\nTcpExt: 3 4 5\nIpExt: InOctets\nIpExt: 9\n";
        let expected =
            NetworkCounters { listen_overflows: 3, listen_drops: 4, tcp_retransmits: 17, syn_retransmits: 5 };
        assert_eq!(counters(snmp, netstat), expected);
        let sent = "Tcp: InSegs OutSegs\nTcp: 5 6\n";
        assert_eq!((segments(sent, netstat), segments(snmp, netstat)), (6, 0));
        assert_eq!(segments(sent, "TcpExt: DelayedACKs DelayedACKLost\nTcpExt: 2 1\n"), 4);
        assert_eq!(counters("", "TcpExt: ListenOverflows\n"), NetworkCounters::default());
        let later = NetworkCounters { listen_overflows: 10, listen_drops: 1, ..expected };
        let since = later.since(&expected);
        assert_eq!((since.listen_overflows, since.listen_drops, since.tcp_retransmits), (7, 0, 0));
    }
}
