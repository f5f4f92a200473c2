//! Finds the listener of an address, and free ports. It knows no connections.

use std::{collections::HashMap, net::IpAddr, net::Ipv4Addr, net::Ipv6Addr, net::SocketAddr};

use rustix::io::Errno;

use crate::{address::Address, slab::SlotId};

/// Ports for sockets that ask for none: Linux's default range (`ip_local_port_range`).
const PORT_FIRST: u16 = 32_768;
const PORT_LAST: u16 = 60_999;

#[derive(Debug)]
struct Bound {
    shared: bool,
    listeners: Vec<SlotId>,
}

/// The addresses with a listener.
#[derive(Debug)]
pub(super) struct Names {
    bound: HashMap<Address, Bound>,
    port_next: u16,
}

impl Names {
    pub(super) fn new() -> Self {
        Self { bound: HashMap::new(), port_next: PORT_FIRST }
    }

    /// The address a listener on `address` gets: itself, with a free port in place of port 0. An error when it is in
    /// use.
    pub(super) fn resolve(&mut self, address: &Address, share: bool) -> Result<Address, Errno> {
        let mut resolved = address.clone();
        if let Address::Tcp(tcp) = &mut resolved
            && tcp.port() == 0
        {
            tcp.set_port(self.free_port()?);
        }
        let blocks = |(other, bound): (&Address, &Bound)| {
            let both_share = share && bound.shared && *other == resolved;
            overlap(other, &resolved) && !both_share
        };
        if self.bound.iter().any(blocks) { Err(Errno::ADDRINUSE) } else { Ok(resolved) }
    }

    /// Registers a listener under an address that `resolve` returned.
    pub(super) fn bind(&mut self, address: &Address, share: bool, listener: SlotId) {
        let entry = || Bound { shared: share, listeners: Vec::new() };
        self.bound.entry(address.clone()).or_insert_with(entry).listeners.push(listener);
    }

    pub(super) fn unbind(&mut self, address: &Address, listener: SlotId) {
        if let Some(bound) = self.bound.get_mut(address) {
            bound.listeners.retain(|other| *other != listener);
            if bound.listeners.is_empty() {
                self.bound.remove(address);
            }
        }
    }

    /// The listeners a connection to `address` may reach; none: the connection is refused.
    pub(super) fn reach(&self, address: &Address) -> &[SlotId] {
        let found = self.bound.get(address).or_else(|| match address {
            Address::Tcp(tcp) => self.bound.get(&Address::Tcp(SocketAddr::new(wildcard(tcp), tcp.port()))),
            Address::Unix(_) | Address::Abstract(_) => None,
        });
        found.map_or(&[], |bound| &bound.listeners)
    }

    /// A port without a listener.
    fn free_port(&mut self) -> Result<u16, Errno> {
        for _ in PORT_FIRST..=PORT_LAST {
            let port = self.port_next;
            self.port_next = if port == PORT_LAST { PORT_FIRST } else { port + 1 };
            if !self.bound.keys().any(|address| matches!(address, Address::Tcp(tcp) if tcp.port() == port)) {
                return Ok(port);
            }
        }
        Err(Errno::ADDRINUSE)
    }

    /// The address a connecting socket gets: the requested one, with its open parts filled in. Unix sockets have no
    /// name on that side.
    pub(super) fn for_client(
        &mut self,
        target: &Address,
        local: Option<SocketAddr>,
    ) -> Result<Option<Address>, Errno> {
        let Address::Tcp(tcp) = target else { return Ok(None) };
        let mut own = local.unwrap_or_else(|| SocketAddr::new(wildcard(tcp), 0));
        if own.ip().is_unspecified() {
            own.set_ip(loopback(tcp));
        }
        if own.port() == 0 {
            own.set_port(self.free_port()?);
        }
        let own = Address::Tcp(own);
        if self.bound.keys().any(|other| overlap(other, &own)) {
            return Err(Errno::ADDRINUSE);
        }
        Ok(Some(own))
    }
}

fn wildcard(address: &SocketAddr) -> IpAddr {
    if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}

fn loopback(address: &SocketAddr) -> IpAddr {
    if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() }
}

/// Whether two listeners would compete for the same connections.
fn overlap(one: &Address, other: &Address) -> bool {
    let (Address::Tcp(one), Address::Tcp(other)) = (one, other) else { return one == other };
    let same_family = one.is_ipv4() == other.is_ipv4();
    let meet = one.ip() == other.ip() || one.ip().is_unspecified() || other.ip().is_unspecified();
    same_family && meet && one.port() == other.port()
}

/// The target of a connection to `address`: Linux takes "any address" for the loopback one.
pub(super) fn target(address: &Address) -> Address {
    match address {
        Address::Tcp(tcp) if tcp.ip().is_unspecified() => {
            Address::Tcp(SocketAddr::new(loopback(tcp), tcp.port()))
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        text.parse().unwrap()
    }

    fn slot(index: u32) -> SlotId {
        SlotId { index, generation: 0 }
    }

    #[test]
    fn an_address_is_taken_once_unless_all_share_it() {
        let mut names = Names::new();
        for (text, share) in [("127.0.0.1:80", false), ("127.0.0.2:80", true), ("@name", false)] {
            let resolved = names.resolve(&address(text), share).unwrap();
            names.bind(&resolved, share, slot(1));
        }
        for (text, share, free) in [
            ("127.0.0.1:80", true, false),
            ("127.0.0.2:80", true, true),
            ("127.0.0.2:80", false, false),
            ("127.0.0.3:80", false, true),
            ("0.0.0.0:80", false, false),
            ("[::]:80", false, true),
            ("@name", true, false),
            ("unix:/name", false, true),
        ] {
            assert_eq!(names.resolve(&address(text), share).is_ok(), free, "{text}");
        }
        names.unbind(&address("127.0.0.1:80"), slot(1));
        assert!(names.resolve(&address("127.0.0.1:80"), false).is_ok());
    }

    #[test]
    fn a_wildcard_is_reached_through_every_address_of_its_family() {
        let mut names = Names::new();
        names.bind(&address("0.0.0.0:80"), false, slot(1));
        names.bind(&address("127.0.0.9:80"), false, slot(2));
        assert_eq!(names.reach(&address("127.0.0.1:80")), [slot(1)]);
        assert_eq!(names.reach(&address("127.0.0.9:80")), [slot(2)]);
        assert!(names.reach(&address("[::1]:80")).is_empty());
        assert_eq!(target(&address("0.0.0.0:80")), address("127.0.0.1:80"));
    }

    #[test]
    fn a_client_has_the_address_it_asks_for_unless_somebody_listens_there() {
        let mut names = Names::new();
        names.bind(&address("127.0.0.1:80"), false, slot(1));
        let mut given = |local: &str| {
            let local = local.parse().unwrap();
            names.for_client(&address("127.0.0.1:80"), Some(local)).map(Option::unwrap)
        };
        assert_eq!(given("127.0.0.1:80"), Err(Errno::ADDRINUSE));
        assert_eq!(given("127.0.0.2:80"), Ok(address("127.0.0.2:80")));
        assert_eq!(given("127.0.0.2:0"), Ok(address("127.0.0.2:32768")));
        assert_eq!(given("0.0.0.0:90"), Ok(address("127.0.0.1:90")));
    }

    #[test]
    fn given_ports_are_those_nobody_listens_on() {
        let mut names = Names::new();
        names.bind(&address("127.0.0.1:32769"), false, slot(1));
        let given: Vec<Address> =
            (0..2).map(|_| names.resolve(&address("127.0.0.1:0"), false).unwrap()).collect();
        assert_eq!(given, [address("127.0.0.1:32768"), address("127.0.0.1:32770")]);
    }
}
