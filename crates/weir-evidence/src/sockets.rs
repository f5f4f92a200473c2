//! Sockets in the kernel's lists in `/proc/net`, and in links of descriptors. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// State of a listening socket in the kernel's tables.
const LISTENING: &str = "0A";

/// A socket in a table of TCP or UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InetSocket {
    /// Its address; an IPv4 address is never written as IPv6.
    pub(crate) local: SocketAddr,
    /// The peer's address, with port 0 if there is none.
    pub(crate) peer: SocketAddr,
    pub(crate) is_listening: bool,
    pub(crate) inode: u64,
}

impl InetSocket {
    /// Parses a line of `/proc/net/tcp` or a similar table: own address, the peer's, state, and the inode in the
    /// tenth field.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, local, peer, state, ..] = words[..] else { return None };
        let inode = words.get(9)?.parse().ok()?;
        let is_listening = state == LISTENING;
        Some(Self { local: address(local)?, peer: address(peer)?, is_listening, inode })
    }
}

/// Parses `0100007F:1F90`: 32-bit words in memory order, and a port.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(address.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(8 * at)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

/// Parses a line of `/proc/net/unix`: the inode in the seventh field, and the path if there is one.
pub(crate) fn unix(line: &str) -> Option<(u64, Option<String>)> {
    let mut words = line.split_ascii_whitespace();
    let inode = words.nth(6)?.parse().ok()?;
    let path = words.collect::<Vec<_>>().join(" ");
    Some((inode, Some(path).filter(|path| !path.is_empty())))
}

/// The inode in a descriptor's link, if it is a socket.
pub(crate) fn inode_of(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str =
        "   1: 0100007F:1F90 0100007F:8AEE 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0";

    #[cfg(target_endian = "little")]
    #[test]
    fn sockets_have_the_addresses_of_the_kernels_tables() {
        let found = InetSocket::parse(LINE).expect("a socket");
        assert_eq!((found.inode, found.is_listening), (4712, false));
        assert_eq!(
            (found.local.to_string(), found.peer.to_string()),
            ("127.0.0.1:8080".to_owned(), "127.0.0.1:35566".to_owned())
        );
        let listens = LINE.replace("0100007F:8AEE 01", "00000000:0000 0A");
        let found = InetSocket::parse(&listens).expect("a socket");
        assert!(found.is_listening && found.peer.port() == 0);
        let mapped =
            "0: 0000000000000000FFFF00000100007F:0050 00000000000000000000000001000000:0051 01 a b c 0 0 9 1";
        let found = InetSocket::parse(mapped).expect("a socket");
        assert_eq!((found.local.to_string(), found.peer.to_string()), (at("127.0.0.1:80"), at("[::1]:81")));
    }

    fn at(text: &str) -> String {
        text.to_owned()
    }

    #[test]
    fn unix_sockets_have_their_paths_and_links_their_inodes() {
        let line = "0000000000000000: 00000002 00000000 00010000 0001 01 20563 /run/a b.sock";
        assert_eq!(unix(line), Some((20563, Some("/run/a b.sock".to_owned()))));
        assert_eq!(unix("0: 2 0 1 1 1 77"), Some((77, None)));
        assert_eq!((inode_of("socket:[12]"), inode_of("pipe:[12]")), (Some(12), None));
    }

    #[test]
    fn lines_of_any_length_and_kind_do_no_harm() {
        for cut in 0..LINE.len() {
            let _ = (InetSocket::parse(&LINE[..cut]), unix(&LINE[..cut]));
        }
        for text in ["서버서버:1F90", "0100007:1F90", "0100007G:1F90", "0100007F:1F901", "", ":"] {
            assert_eq!(address(text), None, "{text}");
        }
        assert_eq!((unix("Num RefCount"), inode_of("socket:[x]")), (None, None));
    }
}
