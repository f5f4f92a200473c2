//! A listening socket.

use std::{future::poll_fn, io, os::fd::OwnedFd, rc::Rc};

use weir_sys::unix_path::BoundPath;

use super::{Address, Stream};
use crate::{
    driver::{DriverOps, ListenOptions},
    executor::{self, Core, poll_driver},
    slab::SlotId,
};

/// Accepts connections on an address. Dropping it closes the address; if it created a Unix path, the path is removed.
///
/// ```
/// use weir_engine::{Config, Driver, Runtime, net::{Listener, Stream}};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let runtime = Runtime::new(&Config::with_driver(Driver::Sim))?;
/// runtime.block_on(async {
///     let listener = Listener::bind(&"127.0.0.1:0".parse()?, Default::default())?;
///     // The port is the one that the kernel chose.
///     let client = Stream::connect(&listener.local_address()?).await?;
///     let server = listener.accept().await?;
///     assert_eq!(server.peer_address()?, client.local_address()?);
///     Ok(())
/// })
/// # }
/// ```
pub struct Listener {
    core: Rc<Core>,
    slot: SlotId,
    path: Option<BoundPath>,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Listener").field("slot", &self.slot).finish_non_exhaustive()
    }
}

impl Listener {
    /// Listens on an address. A Unix path that a dead process left behind is replaced; a path that is in use, or is
    /// not a socket, is an error.
    ///
    /// # Errors
    /// Those of `socket`, `bind` and `listen`; an error outside a runtime.
    pub fn bind(address: &Address, options: ListenOptions) -> io::Result<Self> {
        let core = executor::current()?;
        let slot = core.with_driver(|driver| driver.listen(address, &options))?;
        let path = match address {
            // The simulator's paths are not in the file system.
            Address::Unix(path) if !core.is_simulated() => BoundPath::of(path),
            _ => None,
        };
        Ok(Self { core, slot, path })
    }

    /// Accepts on a socket that is already listening, possibly shared with other runtimes or processes. It is not
    /// removed on drop. All who share the socket share its blocking mode: epoll, poll and select make it
    /// non-blocking, the blocking driver makes it blocking, io_uring leaves it unchanged.
    pub fn from_descriptor(descriptor: OwnedFd) -> io::Result<Self> {
        let core = executor::current()?;
        let slot = core.with_driver(|driver| driver.adopt_listener(descriptor))?;
        Ok(Self { core, slot, path: None })
    }

    /// The next connection. Dropping the future loses no connection: it waits for the next call.
    ///
    /// Conditions that are not the listener's fault are no errors. A connection beyond the limit of sockets, or one
    /// that select cannot watch, is closed and counted (`accepts_refused`). When descriptors run out, accepting
    /// resumes as soon as some are free. A connection that its peer has already given up is passed over.
    ///
    /// # Errors
    /// `ConnectionAborted` when the runtime drains, and what `accept(2)` reports about the listener itself.
    pub async fn accept(&self) -> io::Result<Stream> {
        let slot = poll_fn(
            |context| poll_driver!(self.core, driver => driver.poll_accept(self.slot, context.waker())),
        )
        .await?;
        Ok(Stream::new(Rc::clone(&self.core), slot))
    }

    /// The address, with the port the kernel chose.
    pub fn local_address(&self) -> io::Result<Address> {
        self.core.with_driver(|driver| driver.local_address(self.slot))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // While this listener is open, the path is not replaced.
        if let Some(path) = &self.path {
            path.remove();
        }
        self.core.with_driver(|driver| driver.close(self.slot));
    }
}
