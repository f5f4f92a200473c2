//! Ports of this machine: a free one, and whether a process listens on one.

use std::{
    io::{self, ErrorKind},
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

/// Whether a socket of any process holds a port of this machine, listening or not, at any address.
pub fn is_taken(port: u16) -> bool {
    let everywhere: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let is_refused = |address: &IpAddr| {
        TcpListener::bind((*address, port)).is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
    };
    everywhere.iter().any(is_refused)
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

    #[test]
    fn a_port_is_taken_by_a_listener_and_by_a_connection_that_goes_out() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a port");
        let address = listener.local_addr().expect("it is bound");
        let client = TcpStream::connect(address).expect("it listens");
        let own = client.local_addr().expect("it is connected").port();
        assert!(is_taken(address.port()) && is_taken(own));
    }
}
