//! The other end of a connection, written once: a blocking socket on another thread for kernel drivers, a stream in
//! the same runtime on the simulator.

use std::{
    future::Future,
    io::{self, Read, Write},
    net::Shutdown,
    sync::Arc,
    time::Duration,
};

use socket2::{Domain, SockAddr, Socket, Type};
use weir_engine::{
    Counters, JoinHandle, Lease,
    net::{Address, Stream},
    serve::ServerControl,
    time,
};
use weir_engine_types::EngineStats;

use crate::board::{Board, block_on};

/// How the stream of the other side ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    End,
    Reset,
}

/// Kernel buffers of a peer's socket; `None` leaves them as they are. The simulator has its own option.
#[derive(Clone, Copy, Debug, Default)]
pub struct PeerBuffers {
    pub receive_bytes: Option<usize>,
    pub send_bytes: Option<usize>,
}

/// A client's end of a connection.
#[derive(Debug)]
pub enum Peer {
    Socket(Socket),
    Simulated { stream: Stream, rest: Option<Lease> },
}

/// A client's socket that is open and not connected yet: connecting it needs no new descriptor.
#[derive(Debug)]
pub struct Unconnected {
    socket: Socket,
    name: SockAddr,
}

impl Unconnected {
    /// A socket for connecting to this address.
    pub fn to(address: &Address) -> Self {
        Self::open(address, PeerBuffers::default()).expect("there are descriptors")
    }

    fn open(address: &Address, buffers: PeerBuffers) -> io::Result<Self> {
        let (domain, name) = match address {
            Address::Tcp(address) => (Domain::for_address(*address), SockAddr::from(*address)),
            Address::Unix(path) => (Domain::UNIX, SockAddr::unix(path)?),
            Address::Abstract(name) => (Domain::UNIX, SockAddr::unix(format!("\0{name}"))?),
        };
        let socket = Socket::new(domain, Type::STREAM, None)?;
        if let Some(bytes) = buffers.receive_bytes {
            socket.set_recv_buffer_size(bytes)?;
        }
        if let Some(bytes) = buffers.send_bytes {
            socket.set_send_buffer_size(bytes)?;
        }
        if domain != Domain::UNIX {
            socket.set_tcp_nodelay(true)?;
        }
        Ok(Self { socket, name })
    }

    pub fn connect(self) -> io::Result<Peer> {
        self.socket.connect(&self.name)?;
        Ok(Peer::Socket(self.socket))
    }
}

impl Peer {
    /// The address of this end, if it has one.
    pub fn address(&self) -> Option<Address> {
        match self {
            Peer::Socket(socket) => socket.local_addr().ok()?.as_socket().map(Address::Tcp),
            Peer::Simulated { stream, .. } => stream.local_address().ok(),
        }
    }

    /// Sends all bytes.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Peer::Socket(socket) => socket.write_all(bytes),
            Peer::Simulated { stream, .. } => {
                stream.send_slice(bytes).await?;
                stream.flush().await
            }
        }
    }

    /// Some bytes, at most `maximum`; none at the end of the stream.
    pub async fn read_some(&mut self, maximum: usize) -> io::Result<Vec<u8>> {
        match self {
            Peer::Socket(socket) => {
                let mut bytes = vec![0; maximum];
                loop {
                    match socket.read(&mut bytes) {
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        outcome => {
                            bytes.truncate(outcome?);
                            return Ok(bytes);
                        }
                    }
                }
            }
            Peer::Simulated { stream, rest } => {
                let received = match rest.take() {
                    Some(lease) => Some(lease),
                    None => stream.recv().await?,
                };
                let Some(mut lease) = received else { return Ok(Vec::new()) };
                let count = lease.len().min(maximum);
                let bytes = lease[..count].to_vec();
                lease.advance(count);
                *rest = (!lease.is_empty()).then_some(lease);
                Ok(bytes)
            }
        }
    }

    /// Exactly `count` bytes; an end before that is an error.
    pub async fn read_exact(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(count);
        while bytes.len() < count {
            let more = self.read_some(count - bytes.len()).await?;
            if more.is_empty() {
                let reason = format!("the stream ended after {} of {count} bytes", bytes.len());
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason));
            }
            bytes.extend_from_slice(&more);
        }
        Ok(bytes)
    }

    /// All bytes up to the end, passed to `take` piece by piece.
    pub async fn read_pieces(&mut self, mut take: impl FnMut(&[u8])) -> Ending {
        loop {
            match self.read_some(64 << 10).await {
                Ok(bytes) if bytes.is_empty() => return Ending::End,
                Ok(bytes) => take(&bytes),
                Err(_) => return Ending::Reset,
            }
        }
    }

    /// All bytes up to the end.
    pub async fn read_to_end(&mut self) -> (Vec<u8>, Ending) {
        let mut all = Vec::new();
        let ending = self.read_pieces(|bytes| all.extend_from_slice(bytes)).await;
        (all, ending)
    }

    /// Sends bytes and reads as many back.
    pub async fn exchange(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        self.write(bytes).await?;
        self.read_exact(bytes.len()).await
    }

    /// Ends our direction; the other one stays open.
    pub async fn shutdown(&mut self) -> io::Result<()> {
        match self {
            Peer::Socket(socket) => socket.shutdown(Shutdown::Write),
            Peer::Simulated { stream, .. } => stream.shutdown().await,
        }
    }

    /// Ends the connection with a reset (TCP: RST).
    pub fn reset(self) {
        match self {
            Peer::Socket(socket) => {
                socket.set_linger(Some(Duration::ZERO)).expect("SO_LINGER can be set");
            }
            Peer::Simulated { stream, .. } => stream.abort(),
        }
    }
}

/// The source of the server side's counters. On the simulator they are those of both sides.
#[derive(Clone, Debug)]
pub enum StatsSource {
    Server(ServerControl),
    Runtime(Arc<Counters>),
}

impl StatsSource {
    pub fn stats(&self) -> EngineStats {
        match self {
            StatsSource::Server(control) => control.stats().total,
            StatsSource::Runtime(counters) => counters.snapshot(),
        }
    }
}

/// The script's access to the server's side.
#[derive(Clone, Debug)]
pub struct Network {
    pub address: Address,
    pub stats: StatsSource,
    pub is_simulated: bool,
    /// Posting here ends a server that runs with this script.
    pub stop: Board,
}

/// A script that runs concurrently with this one.
pub enum Running<T> {
    /// The thread posts on the board when it ends, even by a panic.
    Thread(std::thread::JoinHandle<T>, Board),
    Task(JoinHandle<T>),
}

struct PostOnDrop(Board);

impl Drop for PostOnDrop {
    fn drop(&mut self) {
        self.0.post("ended");
    }
}

impl<T> Running<T> {
    /// Waits for its result; a panic there panics here.
    pub async fn join(self) -> T {
        match self {
            Running::Thread(thread, ended) => {
                // Not a blocking join: a runtime on this thread must continue to serve the script.
                ended.reached(1).await;
                match thread.join() {
                    Ok(value) => value,
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Running::Task(task) => task.await,
        }
    }
}

impl Network {
    /// A connection to the server.
    pub async fn connect(&self) -> Peer {
        self.connect_with(PeerBuffers::default()).await
    }

    pub async fn connect_with(&self, buffers: PeerBuffers) -> Peer {
        self.try_connect(buffers).await.expect("the server accepts")
    }

    pub async fn try_connect(&self, buffers: PeerBuffers) -> io::Result<Peer> {
        if self.is_simulated {
            Ok(Peer::Simulated { stream: Stream::connect(&self.address).await?, rest: None })
        } else {
            Unconnected::open(&self.address, buffers)?.connect()
        }
    }

    /// A socket for a connection to the server; not on the simulator.
    pub fn open(&self) -> Unconnected {
        Unconnected::to(&self.address)
    }

    /// `count` connections.
    pub async fn connect_many(&self, count: usize) -> Vec<Peer> {
        let mut peers = Vec::with_capacity(count);
        for _ in 0..count {
            peers.push(self.connect().await);
        }
        peers
    }

    /// Runs another script concurrently.
    pub fn spawn<M, F>(&self, script: M) -> Running<F::Output>
    where
        M: FnOnce(Network) -> F + Send + 'static,
        F: Future + 'static,
        F::Output: Send + 'static,
    {
        let network = self.clone();
        if self.is_simulated {
            Running::Task(weir_engine::spawn(script(network)))
        } else {
            let ended = Board::new();
            let guard = PostOnDrop(ended.clone());
            let thread = std::thread::spawn(move || {
                let _guard = guard;
                block_on(script(network))
            });
            Running::Thread(thread, ended)
        }
    }

    pub fn stats(&self) -> EngineStats {
        self.stats.stats()
    }

    /// Starts draining a server.
    pub fn drain(&self) {
        match &self.stats {
            StatsSource::Server(control) => control.drain(),
            StatsSource::Runtime(_) => panic!("only a server can be drained from outside"),
        }
    }

    /// Lets other tasks run: call it in a loop that waits for a counter.
    pub async fn let_others_run(&self) {
        if self.is_simulated {
            // Virtual time passes only while all tasks wait.
            time::sleep(Duration::from_micros(10)).await;
        } else {
            std::thread::yield_now();
        }
    }

    /// Waits until the counters meet the condition.
    pub async fn until(&self, condition: impl Fn(&EngineStats) -> bool) -> EngineStats {
        loop {
            let stats = self.stats();
            if condition(&stats) {
                return stats;
            }
            self.let_others_run().await;
        }
    }
}
