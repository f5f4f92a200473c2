//! Ports of this machine: a free one, and whether a process listens on one.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream},
    time::Duration,
};

/// Longest try to connect: a listener on the loopback interface accepts at once.
const CONNECT_MAX: Duration = Duration::from_millis(50);

/// A port that was free a moment ago on 127.0.0.1. Nobody else on this machine picks it unless by chance.
///
/// # Errors
/// When there is none.
pub fn free() -> io::Result<u16> {
    free_at(Ipv4Addr::LOCALHOST.into())
}

/// The same at another address of this machine.
///
/// # Errors
/// When there is none, or no such address.
pub fn free_at(address: IpAddr) -> io::Result<u16> {
    Ok(TcpListener::bind((address, 0))?.local_addr()?.port())
}

/// Whether somebody accepts connections at an address.
pub fn accepts(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, CONNECT_MAX).is_ok()
}

/// Whether somebody accepts connections on a port of the loopback interface, of either version of the protocol.
pub fn accepts_locally(port: u16) -> bool {
    accepts((Ipv4Addr::LOCALHOST, port).into()) || accepts((Ipv6Addr::LOCALHOST, port).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_port_accepts_nothing_until_somebody_listens() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a port");
        let address = listener.local_addr().expect("it is bound");
        assert!(accepts(address) && accepts_locally(address.port()));
        assert_ne!(free().expect("there is another"), address.port());
        drop(listener);
        assert!(!accepts(address));
    }
}
