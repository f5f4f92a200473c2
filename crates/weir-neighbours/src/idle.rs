//! Idle connections from several addresses of the loopback network: clients that never log in.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, SocketAddrV4},
    os::fd::OwnedFd,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    net::{AddressFamily, RecvFlags, SocketType, bind, connect, recv, socket},
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

/// First of the source addresses, which are consecutive. No trading client uses them.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 1);

/// Most addresses.
const ADDRESSES_MAX: u32 = 250;

/// Time for the last connections to be accepted or closed.
const SETTLE: Duration = Duration::from_millis(50);

/// Time between two checks that they are still open.
const LOOK: Duration = Duration::from_millis(100);

/// Descriptors this process needs in addition to the connections.
const DESCRIPTORS_BESIDES: u64 = 64;

/// Opens this many connections and keeps them until the server closes some; then it returns a description of
/// that. A measurement with fewer idle connections than requested is invalid.
pub(crate) fn stay(
    server: SocketAddr,
    addresses: u32,
    connections: u32,
    ready: impl FnOnce() -> io::Result<()>,
) -> Result<String, String> {
    raise_descriptors(connections)?;
    let began = Instant::now();
    let idle = Idle::open(server, addresses, connections)?;
    thread::sleep(SETTLE);
    let held = idle.held();
    if held < connections {
        return Err(format!("the server holds {held} of {connections} clients"));
    }
    ready().map_err(|error| format!("no server listens: {error}"))?;
    loop {
        thread::sleep(LOOK);
        let left = idle.held();
        if left < connections {
            return Ok(format!("{left} of {connections} clients were left after {:?}", began.elapsed()));
        }
    }
}

/// Each connection needs a descriptor.
fn raise_descriptors(connections: u32) -> Result<(), String> {
    let needed = u64::from(connections) + DESCRIPTORS_BESIDES;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if maximum.is_some_and(|maximum| maximum < needed) {
        return Err(format!("{needed} descriptors are needed and {} allowed", maximum.unwrap_or_default()));
    }
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum });
    raised.map_err(|error| format!("cannot raise the limit of descriptors: {error}"))
}

/// Open connections. They are closed on drop.
struct Idle {
    sockets: Vec<OwnedFd>,
}

impl Idle {
    /// Opens this many connections, from the addresses in turn.
    fn open(server: SocketAddr, addresses: u32, connections: u32) -> Result<Self, String> {
        let addresses = addresses.clamp(1, ADDRESSES_MAX);
        let mut sockets = Vec::with_capacity(connections as usize);
        for number in 0..connections {
            let from = Ipv4Addr::from(u32::from(FIRST_ADDRESS) + number % addresses);
            let opened = unknown_client(server, from);
            sockets.push(opened.map_err(|error| format!("connection {number} from {from}: {error}"))?);
        }
        Ok(Self { sockets })
    }

    /// Number of connections that the server has not closed.
    fn held(&self) -> u32 {
        let is_held = |socket: &&OwnedFd| {
            let looked = recv(socket, &mut [0_u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
            matches!(looked, Err(Errno::AGAIN))
        };
        self.sockets.iter().filter(is_held).count() as u32
    }
}

fn unknown_client(server: SocketAddr, from: Ipv4Addr) -> rustix::io::Result<OwnedFd> {
    let client = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    bind(&client, &SocketAddrV4::new(from, 0))?;
    connect(&client, &server)?;
    Ok(client)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn they_come_from_as_many_addresses_as_asked_and_those_that_were_closed_are_not_held() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = listener.local_addr().expect("it is bound");
        let idle = Idle::open(server, 2, 3).expect("it listens");
        let mut came: Vec<_> = (0..3).map(|_| listener.accept().expect("they come")).collect();
        let mut from: Vec<String> = came.iter().map(|(_, address)| address.ip().to_string()).collect();
        from.sort_unstable();
        assert_eq!(from, ["127.0.1.1", "127.0.1.1", "127.0.1.2"]);
        assert_eq!(idle.held(), 3);
        drop(came.pop());
        // The loopback interface delivers the close at once, or a moment later on a busy machine.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while idle.held() > 2 && std::time::Instant::now() < deadline {
            thread::yield_now();
        }
        assert_eq!(idle.held(), 2);
    }

    #[test]
    fn unknown_clients_that_are_sent_away_end_their_stay() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = listener.local_addr().expect("it is bound");
        let (said, closer) = std::sync::mpsc::channel();
        let stayed = thread::spawn(move || {
            stay(server, 1, 2, || {
                said.send(()).expect("the test listens");
                Ok(())
            })
        });
        let came: Vec<_> = (0..2).map(|_| listener.accept().expect("they come")).collect();
        closer.recv().expect("they settled");
        drop(came);
        let message = stayed.join().expect("no panic").expect("it ends");
        assert!(message.starts_with("0 of 2 clients were left"), "{message}");
    }
}
