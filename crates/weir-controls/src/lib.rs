//! Controls: the same echo service written by hand, once on epoll and once on io_uring, as short and as fast as its
//! author could make it. A study runs a control beside the engine's driver; the difference is the cost of the engine.
//!
//! A control is only a reference: no runtime, no task, no timer wheel, no choice of driver, no counters, no drain. It
//! echoes every byte, survives slow readers, half-closed and reset connections, a full descriptor table and an empty
//! buffer pool, and stops when it is killed.
//!
//! It deliberately breaks the engine's rules. The engine keeps unsafe code in `weir-sys` and a few listed files and
//! puts an operation, a slot and a lease between a handler and the kernel; measuring what these layers cost needs a
//! loop without them, which hands raw addresses to the kernel itself. So [`uring`] and the private `buffer_ring`
//! contain unsafe code under their own invariants, nothing here depends on another crate of Weir, and no crate
//! depends on this one. [`epoll`] needs no unsafe code.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

mod buffer_ring;
pub mod epoll;
pub mod uring;

/// Connections that may wait to be accepted; the kernel lowers it to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// How long a loop stops accepting after the kernel lacked a descriptor or memory.
///
/// A connection that ends frees a descriptor, but another process may do so too: a pause covers both, and costs
/// nothing while accepting works.
const ACCEPT_PAUSE_MS: u32 = 100;

/// A listening socket in blocking mode.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Restricts the calling thread to these CPUs; an empty list leaves it unrestricted.
pub fn pin(cpus: &[usize]) -> io::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = rustix::thread::CpuSet::new();
    for &cpu in cpus {
        if cpu >= rustix::thread::CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(cpu);
    }
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// Whether accept failed for lack of a resource that may become available later.
fn is_shortage(errno: i32) -> bool {
    matches!(errno, libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)
}
