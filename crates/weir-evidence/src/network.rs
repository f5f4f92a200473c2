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

/// TCP segments that were sent since the machine started, without those that were sent again; zero where it cannot be
/// read.
pub fn segments_sent() -> u64 {
    segments(&files::read_text("/proc/net/snmp").unwrap_or_default())
}

fn segments(snmp: &str) -> u64 {
    parse::network_counter(snmp, "Tcp", "OutSegs").unwrap_or(0)
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
        assert_eq!((segments("Tcp: InSegs OutSegs\nTcp: 5 6\n"), segments(snmp)), (6, 0));
        assert_eq!(counters("", "TcpExt: ListenOverflows\n"), NetworkCounters::default());
        let later = NetworkCounters { listen_overflows: 10, listen_drops: 1, ..expected };
        let since = later.since(&expected);
        assert_eq!((since.listen_overflows, since.listen_drops, since.tcp_retransmits), (7, 0, 0));
    }
}
