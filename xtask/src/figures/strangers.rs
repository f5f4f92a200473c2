//! Connections that say nothing, from several addresses of the loopback network: clients that never log in.

use std::{
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    os::fd::OwnedFd,
    time::Instant,
};

use rustix::{
    io::Errno,
    net::{AddressFamily, RecvFlags, SocketType, bind, connect, recv, socket},
};

/// Where they come from: this and the next ones. Nobody who trades comes from here.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 1);

/// Most addresses.
const ADDRESSES_MAX: u32 = 250;

/// Open connections. They end with this value.
pub struct Strangers {
    sockets: Vec<OwnedFd>,
    /// When the first one was opened.
    pub began: Instant,
    /// When the last one was.
    pub ended: Instant,
}

impl Strangers {
    /// Opens so many connections, from so many addresses in turn.
    pub fn open(server: SocketAddr, addresses: u32, connections: u32) -> Result<Self, String> {
        let addresses = addresses.clamp(1, ADDRESSES_MAX);
        let began = Instant::now();
        let mut sockets = Vec::with_capacity(connections as usize);
        for number in 0..connections {
            let from = Ipv4Addr::from(u32::from(FIRST_ADDRESS) + number % addresses);
            let opened = stranger(server, from);
            sockets.push(opened.map_err(|error| format!("connection {number} from {from}: {error}"))?);
        }
        Ok(Self { sockets, began, ended: Instant::now() })
    }

    /// How many the server has not closed.
    pub fn held(&self) -> u32 {
        let is_held = |socket: &&OwnedFd| {
            let looked = recv(socket, &mut [0_u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
            matches!(looked, Err(Errno::AGAIN))
        };
        self.sockets.iter().filter(is_held).count() as u32
    }
}

fn stranger(server: SocketAddr, from: Ipv4Addr) -> rustix::io::Result<OwnedFd> {
    let stranger = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    bind(&stranger, &SocketAddrV4::new(from, 0))?;
    connect(&stranger, &server)?;
    Ok(stranger)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn they_come_from_as_many_addresses_as_asked_and_those_that_were_closed_are_not_held() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = listener.local_addr().expect("it is bound");
        let strangers = Strangers::open(server, 2, 3).expect("it listens");
        let mut came: Vec<_> = (0..3).map(|_| listener.accept().expect("they come")).collect();
        let mut from: Vec<String> = came.iter().map(|(_, address)| address.ip().to_string()).collect();
        from.sort_unstable();
        assert_eq!(from, ["127.0.1.1", "127.0.1.1", "127.0.1.2"]);
        assert_eq!(strangers.held(), 3);
        // The loopback interface delivers the end before this returns.
        drop(came.pop());
        assert_eq!(strangers.held(), 2);
        assert!(strangers.began <= strangers.ended);
    }
}
