//! Echo on epoll: level-triggered, one hot receive buffer, and for each ready connection one receive and one send
//! attempt.
//!
//! It is level-triggered because that measures the same as edge-triggered and needs less: there is one receive per
//! report, so a short read needs no second one, and a flood on one connection cannot starve the others. The interest
//! of a connection changes only when its send did not fit: then it waits for room and receives nothing, so that a
//! slow reader costs at most one buffer.
//!
//! The compiler inlines everything into one function, system calls included, which is impossible for a runtime or a
//! library wrapper. On some machines that alone reduces the kernel's own time. [`Calls::InFunctions`] differs only by
//! one return after each call, and shows the size of this effect.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags};

use crate::ACCEPT_PAUSE_MS;

/// Where the system calls of a message are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Calls {
    /// In the loop itself.
    #[default]
    Inline,
    /// In functions that return to it.
    InFunctions,
}

/// Larger than any burst worth optimising for, small enough to stay in the second-level cache.
const HOT_BUFFER_BYTES: usize = 64 * 1024;
const EVENTS_PER_WAIT_MAX: usize = 1024;
const ACCEPT_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: ACCEPT_PAUSE_MS as i64 * 1_000_000 };

/// One connection, found by the number of its descriptor.
struct Connection {
    socket: OwnedFd,
    /// Bytes that did not fit into a full socket; while this is not empty the connection waits for room and receives
    /// nothing.
    pending: Vec<u8>,
}

struct Server {
    calls: Calls,
    epoll: OwnedFd,
    listener: TcpListener,
    connections: Vec<Option<Connection>>,
    hot_buffer: Box<[u8]>,
    /// Accepting failed for lack of a descriptor; retried after every wait, at the latest after the pause.
    is_accept_paused: bool,
}

/// Serves until the kernel refuses to wait.
pub fn run(listener: TcpListener, calls: Calls) -> io::Result<Infallible> {
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    // Edge-triggered, so that a listener that cannot accept now does not wake the loop repeatedly.
    let listener_number = listener.as_raw_fd() as u64;
    epoll::add(&epoll, &listener, EventData::new_u64(listener_number), EventFlags::IN | EventFlags::ET)?;
    let hot_buffer = vec![0; HOT_BUFFER_BYTES].into_boxed_slice();
    let connections = Vec::new();
    let mut server = Server { calls, epoll, listener, connections, hot_buffer, is_accept_paused: false };
    let mut events = Vec::with_capacity(EVENTS_PER_WAIT_MAX);
    loop {
        events.clear();
        let timeout = server.is_accept_paused.then_some(&ACCEPT_PAUSE);
        match epoll::wait(&server.epoll, rustix::buffer::spare_capacity(&mut events), timeout) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let data = event.data;
            match data.u64() {
                number if number == listener_number => server.is_accept_paused = true,
                number => server.serve(number as usize),
            }
        }
        // After the connections: a descriptor number they freed in this turn is not reported again in this turn.
        if server.is_accept_paused {
            server.accept();
        }
    }
}

impl Server {
    /// Accepts until the queue is empty, or the kernel lacks a resource.
    fn accept(&mut self) {
        self.is_accept_paused = loop {
            match rustix::net::accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(socket) => self.register(socket),
                Err(Errno::WOULDBLOCK) => break false,
                Err(error) if crate::is_shortage(error.raw_os_error()) => break true,
                // The peer gave up while it waited, or a signal arrived: the next accept may succeed.
                Err(_) => {}
            }
        };
    }

    /// Registers a connection once; one that cannot be registered is closed.
    fn register(&mut self, socket: OwnedFd) {
        let number = socket.as_raw_fd() as usize;
        let data = EventData::new_u64(number as u64);
        let prepared = rustix::net::sockopt::set_tcp_nodelay(&socket, true)
            .and_then(|()| epoll::add(&self.epoll, &socket, data, EventFlags::IN));
        if prepared.is_err() {
            return;
        }
        if self.connections.len() <= number {
            self.connections.resize_with(number + 1, || None);
        }
        self.connections[number] = Some(Connection { socket, pending: Vec::new() });
    }

    /// Handles one report; a connection that ended or failed is closed, which also removes its interest.
    fn serve(&mut self, number: usize) {
        let Some(connection) = &mut self.connections[number] else { return };
        let is_open = if connection.pending.is_empty() {
            match self.calls {
                Calls::Inline => echo(connection, &mut self.hot_buffer, self.epoll.as_fd(), receive, send),
                Calls::InFunctions => echo(
                    connection,
                    &mut self.hot_buffer,
                    self.epoll.as_fd(),
                    receive_and_return,
                    send_and_return,
                ),
            }
        } else {
            send_pending(connection, self.epoll.as_fd())
        };
        if !matches!(is_open, Ok(true)) {
            self.connections[number] = None;
        }
    }
}

/// Receives once and sends the bytes back at once. Returns whether the connection stays open.
#[inline]
fn echo(
    connection: &mut Connection,
    hot_buffer: &mut [u8],
    epoll: impl AsFd,
    receive: impl FnOnce(&Connection, &mut [u8]) -> Result<usize, Errno>,
    send: impl FnOnce(&Connection, &[u8]) -> Result<usize, Errno>,
) -> Result<bool, Errno> {
    let received = match receive(connection, hot_buffer) {
        Ok(0) => return Ok(false),
        Ok(received) => received,
        Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(true),
        Err(error) => return Err(error),
    };
    let reply = &hot_buffer[..received];
    let sent = send(connection, reply)?;
    if sent < received {
        connection.pending.extend_from_slice(&reply[sent..]);
        watch(connection, epoll, EventFlags::OUT)?;
    }
    Ok(true)
}

/// Sends what is left, and returns to receiving when nothing is left.
fn send_pending(connection: &mut Connection, epoll: impl AsFd) -> Result<bool, Errno> {
    let sent = send(connection, &connection.pending)?;
    connection.pending.drain(..sent);
    if connection.pending.is_empty() {
        watch(connection, epoll, EventFlags::IN)?;
    }
    Ok(true)
}

#[inline(always)]
fn receive(connection: &Connection, buffer: &mut [u8]) -> Result<usize, Errno> {
    rustix::net::recv(&connection.socket, buffer, RecvFlags::empty()).map(|(received, _)| received)
}

#[inline(never)]
fn receive_and_return(connection: &Connection, buffer: &mut [u8]) -> Result<usize, Errno> {
    receive(connection, buffer)
}

#[inline(never)]
fn send_and_return(connection: &Connection, bytes: &[u8]) -> Result<usize, Errno> {
    send(connection, bytes)
}

/// Bytes sent; zero when the socket is full.
#[inline(always)]
fn send(connection: &Connection, bytes: &[u8]) -> Result<usize, Errno> {
    match rustix::net::send(&connection.socket, bytes, SendFlags::NOSIGNAL) {
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(0),
        sent => sent,
    }
}

fn watch(connection: &Connection, epoll: impl AsFd, interest: EventFlags) -> Result<(), Errno> {
    let data = EventData::new_u64(connection.socket.as_raw_fd() as u64);
    epoll::modify(epoll, &connection.socket, data, interest)
}
