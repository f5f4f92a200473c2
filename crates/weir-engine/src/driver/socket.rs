//! Opening sockets and sending their queues, the same way for every driver that uses the kernel's sockets.

use std::{
    io::{self, IoSlice},
    net::SocketAddr,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec},
    io::{Errno, fcntl_dupfd_cloexec},
    net::{SendAncillaryBuffer, SendFlags, Shutdown, sockopt::set_tcp_congestion},
    process::{Resource, getrlimit},
};
use socket2::{Domain, SockRef, Socket, Type};
use weir_sys::unix_path;

use super::contract::DriverParts;
use crate::{
    address::Address,
    counters::Counters,
    send_queue::{Front, SendQueue},
};

/// Chunks gathered into one send.
pub(crate) const SLICES_MAX: usize = 16;

/// The most bytes that the kernel moves in one call.
const CALL_BYTES_MAX: usize = 0x7fff_f000;

/// How long a server that starts retries an address that is in use, and the pause between.
const TAKEN_WAIT_MAX: Duration = Duration::from_secs(1);
const TAKEN_PAUSE: Duration = Duration::from_millis(10);

/// How a listener is opened.
///
/// ```
/// use weir_engine::{Config, Driver, Runtime, net::{ListenOptions, Listener}};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let runtime = Runtime::new(&Config::with_driver(Driver::Sim))?;
/// runtime.block_on(async {
///     let options = ListenOptions { share_port: true, ..ListenOptions::default() };
///     let first = Listener::bind(&"127.0.0.1:0".parse()?, options)?;
///     // In a program, of another runtime.
///     let second = Listener::bind(&first.local_address()?, options)?;
///     assert_eq!(second.local_address()?, first.local_address()?);
///     Ok(())
/// })
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenOptions {
    /// Connections that may wait in the kernel; the kernel caps this at `net.core.somaxconn`.
    pub backlog: u32,
    /// Several listeners share the port; the kernel spreads connections over them by hash (`SO_REUSEPORT`).
    pub share_port: bool,
    /// Several runtimes wait on one listener; an arrival wakes one of them, if the kernel supports that.
    pub exclusive: bool,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self { backlog: 4096, share_port: false, exclusive: false }
    }
}

fn open(address: &Address) -> io::Result<Socket> {
    let domain = match address {
        Address::Tcp(address) => Domain::for_address(*address),
        Address::Unix(_) | Address::Abstract(_) => Domain::UNIX,
    };
    Socket::new(domain, Type::STREAM, None)
}

/// Sets a TCP socket's congestion control.
fn slow_down_by(socket: &Socket, name: &str) -> io::Result<()> {
    let refused = |error: Errno| {
        let why = match error {
            Errno::NOENT => "this kernel has none of that name (net.ipv4.tcp_available_congestion_control)",
            Errno::PERM => "it takes CAP_NET_ADMIN or a place in net.ipv4.tcp_allowed_congestion_control",
            other => return other.into(),
        };
        io::Error::new(io::Error::from(error).kind(), format!("congestion control {name}: {why}"))
    };
    set_tcp_congestion(socket, name).map_err(refused)
}

/// A listening socket. `TCP_NODELAY` and the congestion control are set here because accepted sockets inherit them.
pub(crate) fn listen(
    address: &Address,
    options: &ListenOptions,
    congestion_control: Option<&str>,
) -> io::Result<OwnedFd> {
    let socket = open(address)?;
    if let Address::Tcp(address) = address {
        if let Some(name) = congestion_control {
            slow_down_by(&socket, name)?;
        }
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(options.share_port)?;
        socket.set_tcp_nodelay(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
    }
    let backlog = i32::try_from(options.backlog).unwrap_or(i32::MAX);
    match address {
        Address::Unix(path) => unix_path::listen(&socket, path, backlog)?,
        Address::Tcp(_) | Address::Abstract(_) => {
            socket.bind(&address.to_socket_address()?)?;
            socket.listen(backlog)?;
        }
    }
    Ok(socket.into())
}

/// A listening socket that belongs to no driver yet, and the address it got. Retries an address that is in use for
/// about a second: see [`until_free`]. It blocks; use it when a server starts.
pub(crate) fn open_listener(
    address: &Address,
    options: &ListenOptions,
    congestion_control: Option<&str>,
) -> io::Result<(OwnedFd, Address)> {
    let attempt = || listen(address, options, congestion_control);
    let begun = Instant::now();
    // One attempt may itself be slow: if the folder of a Unix path is locked, it waits for the lock.
    let pause = || {
        std::thread::sleep(TAKEN_PAUSE);
        begun.elapsed() < TAKEN_WAIT_MAX
    };
    let descriptor = until_free(attempt, pause)?;
    let bound = local_address(descriptor.as_fd())?;
    Ok((descriptor, bound))
}

/// Retries while an address is in use, until `pause` says that the time is over. The kernel tears down the ring of a
/// killed process, and the ring's listener with it, after the process is gone: for some milliseconds no process has
/// the address, and it is still in use.
fn until_free<T>(
    mut attempt: impl FnMut() -> io::Result<T>,
    mut pause: impl FnMut() -> bool,
) -> io::Result<T> {
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && pause() => {}
            outcome => return outcome,
        }
    }
}

/// A socket for connecting to `address`, from a local TCP address if one is given.
pub(crate) fn for_connect(
    address: &Address,
    local: Option<SocketAddr>,
    parts: &DriverParts,
) -> io::Result<OwnedFd> {
    let counters = &parts.counters;
    counters.setup_calls.increment();
    let socket = open(address)?;
    if matches!(address, Address::Tcp(_)) {
        counters.setup_calls.increment();
        socket.set_tcp_nodelay(true)?;
        if let Some(name) = &parts.config.congestion_control {
            counters.setup_calls.increment();
            slow_down_by(&socket, name)?;
        }
    }
    if let Some(local) = local {
        bind_client(&socket, local, counters)?;
    }
    Ok(socket.into())
}

/// Gives a socket its local address. A port that is given by number must be usable again right after a connection
/// from it has ended: the kernel keeps the pair of addresses for a minute, but the port is free. Port 0 is chosen
/// here, regardless of the target (there is no `IP_BIND_ADDRESS_NO_PORT`): this fails if all are in use.
fn bind_client(socket: &Socket, local: SocketAddr, counters: &Counters) -> io::Result<()> {
    if local.port() != 0 {
        counters.setup_calls.increment();
        socket.set_reuse_address(true)?;
    }
    counters.setup_calls.increment();
    socket.bind(&local.into())
}

/// Makes a socket blocking or non-blocking.
pub(crate) fn set_nonblocking(socket: &OwnedFd, on: bool, counters: &Counters) -> io::Result<()> {
    counters.setup_calls.increment();
    Ok(rustix::io::ioctl_fionbio(socket, on)?)
}

/// Sends the end of our direction.
pub(crate) fn end_output(socket: &OwnedFd, counters: &Counters) -> Result<(), Errno> {
    counters.setup_calls.increment();
    rustix::net::shutdown(socket, Shutdown::Write)
}

pub(crate) fn local_address(socket: BorrowedFd<'_>) -> io::Result<Address> {
    Address::from_socket_address(&SockRef::from(&socket).local_addr()?)
}

pub(crate) fn peer_address(socket: BorrowedFd<'_>) -> io::Result<Address> {
    Address::from_socket_address(&SockRef::from(&socket).peer_addr()?)
}

/// The result of one send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) bytes: usize,
    /// A non-blocking socket that took less than this is full, and reports when it has room again.
    pub(crate) offered: usize,
}

/// Sends the bytes at the front of a queue, up to the next file, in one call.
#[inline]
pub(crate) fn send_front(socket: BorrowedFd<'_>, queue: &SendQueue, flags: SendFlags) -> Result<Sent, Errno> {
    let flags = flags | SendFlags::NOSIGNAL;
    let send = |bytes: &[u8]| rustix::net::send(socket, bytes, flags);
    pass_bytes(queue, send, |slices, more| {
        let more = if more { SendFlags::MORE } else { SendFlags::empty() };
        rustix::net::sendmsg(socket, slices, &mut SendAncillaryBuffer::default(), flags | more)
    })
}

/// Passes the bytes at the front of a queue to one of two calls: a single piece to `send`, several to `send_slices`.
#[inline]
pub(crate) fn pass_bytes(
    queue: &SendQueue,
    send: impl FnOnce(&[u8]) -> Result<usize, Errno>,
    send_slices: impl FnOnce(&[IoSlice<'_>], bool) -> Result<usize, Errno>,
) -> Result<Sent, Errno> {
    if !queue.is_scattered()
        && let Some(Front::Bytes(bytes)) = queue.front()
    {
        return Ok(Sent { bytes: send(bytes)?, offered: bytes.len().min(CALL_BYTES_MAX) });
    }
    let mut slices: [IoSlice<'_>; SLICES_MAX] = std::array::from_fn(|_| IoSlice::new(&[]));
    let gathered = queue.gather(&mut slices, usize::MAX);
    let slices = &slices[..gathered.count];
    let offered = slices.iter().map(|slice| slice.len()).sum::<usize>().min(CALL_BYTES_MAX);
    // Bytes before a file leave in one packet with its first bytes.
    Ok(Sent { bytes: send_slices(slices, gathered.more_follows)?, offered })
}

/// Whether a socket has one of `events` now, or has failed or been hung up; takes nothing from it.
pub(crate) fn has_event(
    socket: BorrowedFd<'_>,
    events: PollFlags,
    counters: &Counters,
) -> Result<bool, Errno> {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut asked = [PollFd::from_borrowed_fd(socket, events)];
    counters.poll_calls.increment();
    counters.clock.call(|| rustix::event::poll(&mut asked, Some(&now))).map(|count| count > 0)
}

/// The error a socket has stored, as `SO_ERROR` gives it.
pub(crate) fn take_error(socket: impl AsFd, counters: &Counters) -> io::Result<()> {
    counters.setup_calls.increment();
    match SockRef::from(&socket.as_fd()).take_error()? {
        None => Ok(()),
        Some(error) => Err(error),
    }
}

/// Whether this send error means that the connection is over: nothing more arrives, and bytes that arrived before are
/// still there. A busy server may answer early and close with unread input; the reset must not hide its answer.
pub(crate) fn is_over(error: Errno) -> bool {
    matches!(error, Errno::CONNRESET | Errno::PIPE | Errno::TIMEDOUT | Errno::HOSTUNREACH | Errno::NETUNREACH)
}

/// Makes the next close a reset: the peer must not take a truncated stream for a complete one.
pub(crate) fn reset_on_close(socket: BorrowedFd<'_>, counters: &Counters) {
    counters.setup_calls.increment();
    // Unix sockets ignore the option: a cut stream looks whole to the peer of one.
    let _ = SockRef::from(&socket).set_linger(Some(Duration::ZERO));
}

/// Whether the peer has received everything that was sent, including the end of our direction. A drain then stops
/// waiting for it: the peer may keep its own direction open forever, and bytes that it sends from now on cannot cost
/// it a reply.
pub(crate) fn has_taken_all(socket: BorrowedFd<'_>, counters: &Counters) -> bool {
    counters.setup_calls.increment();
    weir_sys::output::outstanding_bytes(socket).is_ok_and(|bytes| bytes == 0)
}

/// The descriptors that accepting leaves to files and everything else.
///
/// The kernel gives out the lowest free number, so an accept that gets one far below the reserve shows that there is
/// room. Near the reserve, each accept first asks which number is next. Then only descriptors that other code opens
/// between the question and the accept, which may wait in the kernel for a connection, can lead into the reserve.
#[derive(Debug)]
pub(crate) struct Reserve {
    /// The first reserved number.
    first: RawFd,
    /// The last accepted number was close to the reserve, or nothing has been accepted yet.
    is_near: bool,
}

impl Reserve {
    /// Reserves the last `count` descriptors that this process may open, as far as [`first_reserved`] allows.
    pub(crate) fn new(count: usize, any: BorrowedFd<'_>) -> Self {
        Self::from_number(first_reserved(count, any))
    }

    /// Reserves all descriptors from this number on.
    pub(crate) fn from_number(first: RawFd) -> Self {
        Self { first, is_near: true }
    }

    /// Records the number of an accepted socket.
    #[inline]
    pub(crate) fn note(&mut self, accepted: RawFd) {
        self.is_near = accepted.saturating_add(NEAR) >= self.first;
    }

    /// Whether [`ACCEPT_BURST_MAX`] more connections may follow this one.
    pub(crate) fn leaves_a_burst(&self, accepted: BorrowedFd<'_>) -> bool {
        accepted.as_raw_fd().saturating_add(ACCEPT_BURST_MAX) < self.first
    }

    /// Whether another connection may be accepted; `lowest_free` returns the number it would get.
    #[inline]
    pub(crate) fn has_room(&self, counters: &Counters, lowest_free: impl FnOnce() -> Option<RawFd>) -> bool {
        if !self.is_near {
            return true;
        }
        let free = lowest_free();
        // The question opens a descriptor and closes it again: two calls.
        counters.setup_calls.add(1 + u64::from(free.is_some()));
        free.is_some_and(|free| free < self.first)
    }
}

/// Where the last `count` descriptors that this process may have begin: few enough that each connection can have a
/// second descriptor, and that at least one connection is possible.
pub(crate) fn first_reserved(count: usize, any: BorrowedFd<'_>) -> RawFd {
    let limit = getrlimit(Resource::Nofile).current.and_then(|limit| RawFd::try_from(limit).ok());
    limit.map_or(RawFd::MAX, |limit| {
        let free = lowest_free(any).map_or(0, |free| limit.saturating_sub(free).max(0));
        let count = RawFd::try_from(count).unwrap_or(limit);
        limit - count.min(free / 2 + ASIDE).min((free - 1).max(0))
    })
}

/// Descriptors beyond half of those that are free. An accept that waits in the kernel was allowed before the files of
/// earlier connections were open, so one connection may use a reserved descriptor; and asking for the next number
/// uses one for a moment.
const ASIDE: RawFd = 2;

/// Descriptors that other code may open between two accepts.
const NEAR: RawFd = 64;

/// The default for connections that may wait in the kernel.
const ACCEPT_BURST_MAX: RawFd = 4096;

/// The number that the next descriptor gets. `None`: there is none.
pub(crate) fn lowest_free(any: BorrowedFd<'_>) -> Option<RawFd> {
    fcntl_dupfd_cloexec(any, 0).ok().map(|descriptor| descriptor.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_stays_taken_is_tried_until_the_time_is_over() {
        let (mut tries, mut pauses) = (0, 0);
        let outcome: io::Result<()> = until_free(
            || {
                tries += 1;
                Err(io::ErrorKind::AddrInUse.into())
            },
            || {
                pauses += 1;
                pauses < 3
            },
        );
        assert_eq!(outcome.expect_err("it is never free").kind(), io::ErrorKind::AddrInUse);
        assert_eq!((tries, pauses), (3, 3));
    }

    #[test]
    fn a_path_that_is_taken_in_a_folder_that_somebody_keeps_locked_is_refused_within_seconds() {
        // It took 100 s when each of a hundred tries waited for the lock.
        const REFUSED_WITHIN_MAX: Duration = Duration::from_secs(30);
        let folder = std::env::temp_dir().join(format!("weir-taken-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let path = folder.join("server.sock");
        let server = std::os::unix::net::UnixListener::bind(&path).expect("the path is free");
        let lock = std::fs::File::open(&folder).expect("it can be read");
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("nobody has it");
        let begun = Instant::now();
        let refused = open_listener(&Address::Unix(path.clone()), &ListenOptions::default(), None);
        let took = begun.elapsed();
        assert_eq!(refused.expect_err("somebody listens").kind(), io::ErrorKind::AddrInUse);
        assert!(took < REFUSED_WITHIN_MAX, "{took:?}");
        assert!(path.exists(), "the path is still that of who listens");
        drop((server, lock));
        std::fs::remove_dir_all(&folder).expect("it can be removed");
    }

    #[test]
    fn an_address_is_taken_once_it_is_free_and_other_errors_are_told_at_once() {
        let mut answers = [Err(io::ErrorKind::AddrInUse), Err(io::ErrorKind::AddrInUse), Ok(7)].into_iter();
        let found = until_free(|| answers.next().expect("three").map_err(io::Error::from), || true);
        assert_eq!(found.expect("it is free by then"), 7);
        let refused: io::Result<()> =
            until_free(|| Err(io::ErrorKind::PermissionDenied.into()), || panic!("nothing to wait for"));
        assert_eq!(refused.expect_err("refused").kind(), io::ErrorKind::PermissionDenied);
    }
}
