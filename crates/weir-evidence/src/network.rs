//! What the kernel counts about TCP connections that have trouble, and how it tries again.
//!
//! The counters are those of a network namespace. A connection whose first segment (SYN) finds the
//! accept queue full is dropped without a word, and the client sends the SYN again after a while; these times are the
//! same for every connection of a kernel, so that a connection that took just as long tells what happened to it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use weir_record::machine::{LinkCounters, NetworkCounters};

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

/// Addresses of this network namespace that others may reach: none of loopback, and none that a link alone knows. Empty
/// where the kernel does not list them.
pub fn own_addresses() -> Vec<IpAddr> {
    let read = |path: &str| files::read_text(path).unwrap_or_default();
    let mut addresses: Vec<IpAddr> = local_v4(&read("/proc/net/fib_trie")).map(IpAddr::V4).collect();
    addresses.extend(global_v6(&read("/proc/net/if_inet6")).map(IpAddr::V6));
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// Distinguishes this network namespace from every other: the start of its kernel, and its number there. Empty if one
/// of them cannot be read.
pub fn namespace() -> String {
    let start = files::read_value("/proc/sys/kernel/random/boot_id");
    let number = std::fs::read_link("/proc/self/ns/net").ok();
    match (start, number) {
        (Some(start), Some(number)) => format!("{start} {}", number.display()),
        _ => String::new(),
    }
}

/// Leaves of the kernel's routes, each with the line below it that says whose they are.
fn local_v4(routes: &str) -> impl Iterator<Item = Ipv4Addr> {
    let lines = routes.lines().zip(routes.lines().skip(1));
    let own = lines.filter(|(_, below)| below.trim() == "/32 host LOCAL");
    let addresses = own.filter_map(|(leaf, _)| leaf.trim().strip_prefix("|-- ")?.parse().ok());
    addresses.filter(|address: &Ipv4Addr| !address.is_loopback() && !address.is_link_local())
}

/// Addresses whose scope (the fourth word) is global.
fn global_v6(interfaces: &str) -> impl Iterator<Item = Ipv6Addr> {
    interfaces.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let digits = u128::from_str_radix(words.next()?, 16).ok()?;
        (words.nth(2)? == "00").then(|| Ipv6Addr::from_bits(digits))
    })
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
        link: LinkCounters::default(),
    }
}

/// The counters now, with those of the interface that carries the load, if it is named.
pub fn read_with_link(interface: Option<&str>) -> NetworkCounters {
    let devices = || files::read_text("/proc/net/dev").unwrap_or_default();
    let link = interface.and_then(|name| parse::interface_counters(&devices(), name)).unwrap_or_default();
    NetworkCounters { link, ..read() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_others_may_reach_are_those_of_no_loopback() {
        let routes = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     |-- 10.9.0.0\n        \
            /24 link UNICAST\n     |-- 10.9.0.1\n        /32 host LOCAL\n     |-- 10.9.0.255\n        \
            /32 link BROADCAST\n     |-- 127.0.0.1\n        /32 host LOCAL\n";
        assert_eq!(local_v4(routes).collect::<Vec<_>>(), [Ipv4Addr::new(10, 9, 0, 1)]);
        assert_eq!(local_v4("").count(), 0);
        let interfaces = "00000000000000000000000000000001 01 80 10 80       lo\n\
            fe800000000000001c8ffffffe8a0001 02 40 20 80     eth0\n\
            20010db8000000000000000000000002 02 40 00 80     eth0\n";
        let found: Vec<String> = global_v6(interfaces).map(|address| address.to_string()).collect();
        assert_eq!(found, ["2001:db8::2"]);
        assert!(own_addresses().iter().all(|address| !address.is_loopback()));
    }

    #[test]
    fn a_namespace_has_one_name() {
        assert_eq!(namespace(), namespace());
        // What a sandbox hides leaves it empty; half a name would be the name of others.
        assert!(namespace().is_empty() || namespace().contains(" net:["), "{}", namespace());
    }

    #[test]
    fn packets_are_counted_at_the_interface_that_is_named() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
        let before = read_with_link(Some("lo"));
        socket.send_to(b"x", socket.local_addr().expect("it is bound")).expect("loopback takes it");
        let since = read_with_link(Some("lo")).since(&before);
        assert!(since.link.packets >= 2, "sent and received: {since:?}");
        assert_eq!(
            [read_with_link(None).link, read_with_link(Some("none")).link],
            [LinkCounters::default(); 2]
        );
    }

    #[test]
    fn counters_are_found_by_name() {
        let snmp = "Tcp: RtoAlgorithm RetransSegs InErrs\nTcp: 1 17 0\n";
        let netstat =
            "TcpExt: ListenOverflows ListenDrops TCPSynRetrans\nTcpExt: 3 4 5\nIpExt: InOctets\nIpExt: 9\n";
        let expected = NetworkCounters {
            listen_overflows: 3,
            listen_drops: 4,
            tcp_retransmits: 17,
            syn_retransmits: 5,
            link: LinkCounters::default(),
        };
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
