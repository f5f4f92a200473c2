//! Network interfaces of this network namespace: which one has an address, and what its driver reports of itself
//! (`SIOCETHTOOL`). Nothing here changes a setting.
//!
//! Sources: `getifaddrs(3)`; `include/uapi/linux/ethtool.h` and `include/uapi/linux/sockios.h`.
//!
//! Invariants:
//! 1. The list of `getifaddrs` and everything that it points to is valid from its success until `freeifaddrs`. The name
//!    of an entry ends in zero. An address has the length of its family.
//! 2. `SIOCETHTOOL` reads the command in the first word of a buffer and writes at most the structure of that command.
//!    [`Command`] gives each command the length of its structure.

use std::{
    ffi::CStr,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket},
    os::fd::AsRawFd,
    ptr,
};

const SIOCETHTOOL: u64 = 0x8946;

/// Longest name of an interface, with the zero at its end.
const NAME_BYTES: usize = 16;

/// A command, and the length of its structure in words of 32 bits.
struct Command<const WORDS: usize>(u32);

/// `struct ethtool_drvinfo`: its first text is the driver's name.
const DRIVER: Command<49> = Command(0x03);
/// `struct ethtool_coalesce`.
const COALESCING: Command<23> = Command(0x0e);
/// `struct ethtool_ringparam`.
const RINGS: Command<9> = Command(0x10);
/// `struct ethtool_channels`.
const CHANNELS: Command<9> = Command(0x3c);

/// Commands of `struct ethtool_value`, by the offload that the value switches on.
const OFFLOADS: [(&str, Command<2>); 6] = [
    ("rx-checksum", Command(0x14)),
    ("tx-checksum", Command(0x16)),
    ("scatter-gather", Command(0x18)),
    ("tso", Command(0x1e)),
    ("gso", Command(0x23)),
    ("gro", Command(0x2b)),
];

/// The flags of an interface as a `struct ethtool_value`, and the one for offload of large receives.
const FLAGS: Command<2> = Command(0x25);
const FLAG_LRO: u32 = 1 << 15;

/// `struct ifreq` with a pointer. The kernel copies 40 bytes of it where pointers have 64 bits.
#[repr(C)]
struct Request {
    name: [u8; NAME_BYTES],
    data: *mut u32,
    rest: [u64; 2],
}

/// What a driver reports of an interface; a part that it does not report is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Its name.
    pub driver: Option<String>,
    /// Queues that have a separate interrupt: for receiving, for sending, and for both.
    pub channels: Option<[u32; 3]>,
    /// Descriptors of a ring: for receiving, and for sending.
    pub rings: Option<[u32; 2]>,
    /// How interrupts are delayed: for receiving, and for sending.
    pub coalescing: Option<[Coalescing; 2]>,
    /// Offloads that are switched on.
    pub offloads: Option<Vec<&'static str>>,
}

/// How long an interrupt is delayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coalescing {
    /// The driver changes it all the time.
    Adaptive,
    /// For this time in microseconds, or until this many packets; zero is no limit.
    Fixed {
        /// Microseconds.
        microseconds: u32,
        /// Packets.
        packets: u32,
    },
}

/// The interface that has this address; `None` if none has it.
///
/// # Errors
/// If the kernel does not list its addresses.
pub fn of_address(address: IpAddr) -> io::Result<Option<String>> {
    let mut first: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: `first` is a place for the beginning of the list.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = None;
    let mut next = first;
    while !next.is_null() && found.is_none() {
        // SAFETY: invariant 1: `next` is an entry, and the list is not freed yet. A null address is not read.
        unsafe {
            let entry = &*next;
            if !entry.ifa_addr.is_null() && ip(entry.ifa_addr) == Some(address) {
                found = Some(CStr::from_ptr(entry.ifa_name).to_string_lossy().into_owned());
            }
            next = entry.ifa_next;
        }
    }
    // SAFETY: invariant 1: `first` is the list, and nothing refers to it any more.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// The address of an entry, if it is of the Internet.
///
/// # Safety
/// The pointer must be to an address that has the length of its family.
unsafe fn ip(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: every address begins with its family.
    match i32::from(unsafe { (*address).sa_family }) {
        libc::AF_INET => {
            // SAFETY: invariant 1: an address of this family is a `sockaddr_in`.
            let found = unsafe { ptr::read_unaligned(address.cast::<libc::sockaddr_in>()) };
            Some(IpAddr::V4(Ipv4Addr::from_bits(u32::from_be(found.sin_addr.s_addr))))
        }
        libc::AF_INET6 => {
            // SAFETY: invariant 1: an address of this family is a `sockaddr_in6`.
            let found = unsafe { ptr::read_unaligned(address.cast::<libc::sockaddr_in6>()) };
            Some(IpAddr::V6(Ipv6Addr::from(found.sin6_addr.s6_addr)))
        }
        _ => None,
    }
}

/// What the driver of an interface reports.
pub fn settings(interface: &str) -> Settings {
    // Any socket will do: it only names the network namespace.
    let Ok(socket) = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).or_else(|_| UdpSocket::bind("[::1]:0")) else {
        return Settings::default();
    };
    let driver = ask(&socket, interface, DRIVER).map(|words| text(&words[1..9]));
    let channels = ask(&socket, interface, CHANNELS).map(|words| [words[5], words[6], words[8]]);
    let rings = ask(&socket, interface, RINGS).map(|words| [words[5], words[8]]);
    let coalescing = ask(&socket, interface, COALESCING)
        .map(|words| [coalescing(words[10], words[1], words[2]), coalescing(words[11], words[5], words[6])]);
    let offloads = OFFLOADS.map(|(name, Command(number))| {
        ask::<2>(&socket, interface, Command(number)).map(|words| (name, words[1] != 0))
    });
    let large = ask(&socket, interface, FLAGS).map(|words| ("lro", words[1] & FLAG_LRO != 0));
    let known: Vec<(&str, bool)> = offloads.into_iter().chain([large]).flatten().collect();
    let on = || known.iter().filter(|(_, is_on)| *is_on).map(|(name, _)| *name).collect();
    let offloads = (!known.is_empty()).then(on);
    Settings { driver: driver.filter(|name| !name.is_empty()), channels, rings, coalescing, offloads }
}

/// Asks the driver of an interface; `None` if there is no such interface or its driver does not know the command.
fn ask<const WORDS: usize>(
    socket: &UdpSocket,
    interface: &str,
    Command(number): Command<WORDS>,
) -> Option<[u32; WORDS]> {
    let mut name = [0; NAME_BYTES];
    name[..NAME_BYTES - 1].get_mut(..interface.len())?.copy_from_slice(interface.as_bytes());
    let mut words = [0; WORDS];
    words[0] = number;
    let mut request = Request { name, data: words.as_mut_ptr(), rest: [0; 2] };
    // SAFETY: invariant 2: `words` has the length of the command's structure and lives through the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    (result == 0).then_some(words)
}

fn coalescing(is_adaptive: u32, microseconds: u32, packets: u32) -> Coalescing {
    if is_adaptive == 0 { Coalescing::Fixed { microseconds, packets } } else { Coalescing::Adaptive }
}

/// A text of the kernel's, which ends at its first zero.
fn text(words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_its_address_and_no_interface_has_another_ones() {
        let loopback = of_address(Ipv4Addr::LOCALHOST.into()).expect("addresses are listed");
        assert_eq!(loopback.as_deref(), Some("lo"));
        // TEST-NET-1 (RFC 5737) is assigned to no host.
        assert_eq!(of_address(Ipv4Addr::new(192, 0, 2, 77).into()).expect("they are"), None);
    }

    #[test]
    fn what_no_driver_reports_is_absent() {
        for name in ["", "no-such-link", "a-name-of-more-than-sixteen-letters"] {
            assert_eq!(settings(name), Settings::default(), "{name:?}");
        }
        // Loopback has offloads and no interrupts.
        let loopback = settings("lo");
        assert_eq!((loopback.channels, loopback.rings, loopback.coalescing), (None, None, None));
    }

    #[test]
    fn texts_end_at_a_zero_and_adaptive_delays_have_no_number() {
        let words = [u32::from_ne_bytes(*b"virt"), u32::from_ne_bytes(*b"io\0x")];
        assert_eq!(
            (text(&words), text(&words[..1]), text(&[])),
            ("virtio".into(), "virt".into(), String::new())
        );
        assert_eq!(coalescing(0, 50, 64), Coalescing::Fixed { microseconds: 50, packets: 64 });
        assert_eq!(coalescing(1, 50, 64), Coalescing::Adaptive);
    }
}
