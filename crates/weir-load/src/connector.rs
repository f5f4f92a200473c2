//! Opens connections within a time limit, from the requested source addresses, and times each.
//!
//! A connection from a chosen address is opened on our own socket and given to the engine once it is
//! established. Polls run after each 1/16 of the elapsed time, so the measured time is at most that much too long;
//! over loopback the connection is established at once.

use std::{
    cell::Cell,
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use socket2::{Domain, Socket, Type};
use weir_engine::{
    net::{Address, Stream},
    time::{self, now, sleep},
};

use crate::failure::{Class, Failure, Stage};

/// Shortest and longest time between two polls of a connection that is being opened.
const LOOK_MIN: Duration = Duration::from_micros(50);
const LOOK_MAX: Duration = Duration::from_millis(20);

/// A connection, and how long it took.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) stream: Stream,
    pub(crate) took_ns: u64,
}

/// Opens the connections of one worker.
#[derive(Debug)]
pub(crate) struct Connector {
    target: Address,
    limit: Duration,
    /// Local addresses, used in turn; none leaves the choice to the kernel.
    sources: Vec<IpAddr>,
    source_next: Cell<usize>,
}

impl Connector {
    pub(crate) fn new(target: Address, limit: Duration, sources: Vec<IpAddr>) -> Self {
        Self { target, limit, sources, source_next: Cell::new(0) }
    }

    /// Opens a connection within the time limit.
    pub(crate) async fn connect(&self) -> Result<Connected, Failure> {
        let began = now();
        match time::timeout(self.limit, self.open()).await {
            Ok(Ok(stream)) => {
                let took_ns = u64::try_from(now().since(began).as_nanos()).unwrap_or(u64::MAX);
                Ok(Connected { stream, took_ns })
            }
            Ok(Err(error)) => Err(self.failure(&error)),
            Err(_) => {
                let text = format!("no connection within {:?}", self.limit);
                Err(Failure { class: Class::ConnectTimeout, text })
            }
        }
    }

    async fn open(&self) -> io::Result<Stream> {
        let (Address::Tcp(target), Some(source)) = (&self.target, self.next_source()) else {
            return Stream::connect(&self.target).await;
        };
        open_from(source, *target).await
    }

    fn next_source(&self) -> Option<IpAddr> {
        let number = self.source_next.get();
        let source = *self.sources.get(number)?;
        self.source_next.set((number + 1) % self.sources.len());
        Some(source)
    }

    fn failure(&self, error: &io::Error) -> Failure {
        let failure = Failure::system(Stage::Connect, error);
        let out_of_ports = matches!(error.kind(), io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse);
        if !out_of_ports || !matches!(self.target, Address::Tcp(_)) {
            return failure;
        }
        let text = format!(
            "no local port is free for a connection to {}: closed connections keep theirs for a minute; widen the \
             range with `sysctl net.ipv4.ip_local_port_range=\"1024 65535\"` as root, or use more source addresses",
            self.target
        );
        Failure { text, ..failure }
    }
}

async fn open_from(source: IpAddr, target: SocketAddr) -> io::Result<Stream> {
    const EINPROGRESS: i32 = 115;
    let socket = Socket::new(Domain::for_address(target), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_nodelay(true)?;
    socket.bind(&SocketAddr::new(source, 0).into())?;
    match socket.connect(&target.into()) {
        Err(error) if error.raw_os_error() != Some(EINPROGRESS) => return Err(error),
        _ => {}
    }
    let began = now();
    loop {
        if let Some(error) = socket.take_error()? {
            return Err(error);
        }
        if socket.peer_addr().is_ok() {
            return Stream::from_descriptor(socket.into());
        }
        sleep((now().since(began) / 16).clamp(LOOK_MIN, LOOK_MAX)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connector(sources: &[&str]) -> Connector {
        let sources = sources.iter().map(|source| source.parse().expect("an address")).collect();
        Connector::new("127.0.0.1:7".parse().expect("an address"), Duration::from_secs(1), sources)
    }

    #[test]
    fn sources_are_used_in_turn() {
        let connector = connector(&["127.0.0.2", "127.0.0.3"]);
        let used: Vec<String> = std::iter::repeat_with(|| connector.next_source())
            .take(3)
            .flatten()
            .map(|it| it.to_string())
            .collect();
        assert_eq!(used, ["127.0.0.2", "127.0.0.3", "127.0.0.2"]);
    }

    #[test]
    fn a_lack_of_ports_is_a_local_limit_with_a_remedy() {
        for number in [98, 99] {
            let failure = connector(&[]).failure(&io::Error::from_raw_os_error(number));
            assert_eq!(failure.class, Class::LocalLimit);
            for words in ["no local port", "127.0.0.1:7", "ip_local_port_range", "source addresses"] {
                assert!(failure.text.contains(words), "{}", failure.text);
            }
        }
        let refused = connector(&[]).failure(&io::Error::from_raw_os_error(111));
        assert_eq!((refused.class, refused.text.contains("port")), (Class::Refused, false));
    }
}
