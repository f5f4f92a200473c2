//! Finds the process that listens on an address, from /proc: the sockets of this network namespace, and their owners.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
};

use crate::{
    files,
    process::{ancestors, parent},
    sockets::{self, InetSocket},
};

/// Most descriptors of one process that are read.
const DESCRIPTORS_MAX: usize = 1 << 16;

/// It starts other programs and keeps their sockets, but serves none of them.
const STARTS_OTHERS: &str = "systemd";

/// The listener on an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listener {
    /// No socket listens there.
    None,
    /// There is one, but its process is not visible: it belongs to another user or container.
    Unseen,
    /// This process, or the common ancestor of all owners of the socket.
    One(u32),
    /// Several processes, of which none is an ancestor of all others.
    Several(Vec<u32>),
}

/// Finds the listener on an address, or on all addresses with its port.
pub fn listener(address: SocketAddr) -> Listener {
    let table = |name: &str| files::read_text(format!("/proc/net/{name}")).unwrap_or_default();
    let mut inodes = inodes(&table("tcp"), address);
    inodes.extend(self::inodes(&table("tcp6"), address));
    if inodes.is_empty() {
        return Listener::None;
    }
    let holds = |pid: &u32| {
        let mut tokens = descriptors(*pid);
        tokens.any(|token| sockets::inode_of(&token).is_some_and(|inode| inodes.contains(&inode)))
    };
    let holders: Vec<u32> = files::numbered_entries("/proc").into_iter().filter(holds).collect();
    let served: Vec<u32> = holders.iter().copied().filter(|pid| !starts_others(*pid)).collect();
    let holders = if served.is_empty() { holders } else { served };
    topmost(&holders, parent)
}

/// The owner that all others descend from.
fn topmost(holders: &[u32], parent: impl Fn(u32) -> Option<u32>) -> Listener {
    let is_below = |pid: &u32| ancestors(*pid, &parent).any(|above| holders.contains(&above));
    let tops: Vec<u32> = holders.iter().copied().filter(|pid| !is_below(pid)).collect();
    match tops[..] {
        [] => Listener::Unseen,
        [one] => Listener::One(one),
        _ => Listener::Several(tops),
    }
}

fn starts_others(pid: u32) -> bool {
    pid == 1 || files::read_value(format!("/proc/{pid}/comm")).as_deref() == Some(STARTS_OTHERS)
}

/// Targets of a process's descriptors; empty if they are not readable.
fn descriptors(pid: u32) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().take(DESCRIPTORS_MAX);
    entries
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok()?.into_os_string().into_string().ok())
}

/// Inodes of the sockets in a kernel table that listen on an address or on all with its port.
fn inodes(table: &str, address: SocketAddr) -> BTreeSet<u64> {
    let port = address.port();
    let is_its = |host: IpAddr| host.is_unspecified() || host == address.ip().to_canonical();
    let sockets = table.lines().filter_map(InetSocket::parse).filter(|socket| socket.is_listening);
    let its = sockets.filter(|socket| socket.local.port() == port && is_its(socket.local.ip()));
    its.map(|socket| socket.inode).collect()
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, net::TcpListener};

    use super::*;

    /// In the kernel's form on a little-endian machine.
    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0
   1: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 100 0 0 10 0
   2: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 4713 1 0 20 4 30 10 -1
";

    fn at(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn sockets_that_listen_are_found_by_port_and_address() {
        let found = |text: &str| inodes(TABLE, at(text)).into_iter().collect::<Vec<_>>();
        assert_eq!(found("127.0.0.1:8080"), [4711], "a connection does not listen");
        assert_eq!(found("127.0.0.1:80"), [4712], "it listens on all addresses");
        assert_eq!((found("127.0.0.2:8080"), found("127.0.0.1:81")), (vec![], vec![]));
    }

    #[test]
    fn the_process_above_all_others_serves() {
        let parents = BTreeMap::from([(10, 1), (11, 10), (12, 11), (20, 1)]);
        let of = |holders: &[u32]| topmost(holders, |pid| parents.get(&pid).copied());
        assert_eq!(of(&[10, 11, 12]), Listener::One(10));
        assert_eq!(of(&[10, 12]), Listener::One(10), "its parent does not hold the socket");
        assert_eq!(of(&[11, 20]), Listener::Several(vec![11, 20]));
        assert_eq!(of(&[]), Listener::Unseen);
    }

    #[test]
    fn this_process_listens_where_it_does() {
        for host in ["127.0.0.1:0", "0.0.0.0:0"] {
            let socket = TcpListener::bind(host).expect("a free port");
            let port = socket.local_addr().expect("it has one").port();
            assert_eq!(listener(at(&format!("127.0.0.1:{port}"))), Listener::One(std::process::id()));
            drop(socket);
        }
    }
}
