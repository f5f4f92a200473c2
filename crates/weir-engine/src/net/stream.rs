//! A connected stream.

use std::{future::poll_fn, io, net::SocketAddr, os::fd::OwnedFd, rc::Rc};

use super::Address;
use crate::{
    driver::{DriverOps, dispatch},
    executor::{self, Core, poll_driver},
    fs::File,
    pool::Lease,
    send_queue::SendBuf,
    slab::SlotId,
};

/// A connection: received bytes come as leases, sent bytes go into a queue.
///
/// Nothing is lost by dropping a future of its methods. Dropping the stream sends what is queued (for at most
/// [`Limits::linger`](crate::Limits)) and then closes.
///
/// One task receives and one task sends at a time; they may be different tasks of one runtime.
///
/// ```
/// use weir_engine::{Config, Driver, Runtime, net::{Listener, Stream}};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let runtime = Runtime::new(&Config::with_driver(Driver::Sim))?;
/// runtime.block_on(async {
///     let listener = Listener::bind(&"127.0.0.1:0".parse()?, Default::default())?;
///     let client = Stream::connect(&listener.local_address()?).await?;
///     let server = listener.accept().await?;
///     client.send_slice(b"a question").await?;
///     // The end of our direction; the answer still comes.
///     client.shutdown().await?;
///     let mut question = Vec::new();
///     // What arrives is a part of a message, or several.
///     while let Some(bytes) = server.recv().await? {
///         question.extend_from_slice(&bytes);
///     }
///     assert_eq!(question, b"a question");
///     Ok(())
/// })
/// # }
/// ```
pub struct Stream {
    core: Rc<Core>,
    slot: SlotId,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Stream").field("slot", &self.slot).finish_non_exhaustive()
    }
}

impl Stream {
    pub(crate) fn new(core: Rc<Core>, slot: SlotId) -> Self {
        Self { core, slot }
    }

    #[cfg(test)]
    pub(crate) fn slot(&self) -> SlotId {
        self.slot
    }

    /// Connects to an address. Dropping the future gives the attempt up.
    ///
    /// # Errors
    /// Those of `connect(2)`; being outside a runtime.
    pub async fn connect(address: &Address) -> io::Result<Self> {
        Self::open(address, None).await
    }

    /// As [`Self::connect`], from a local address: for a machine with several, and for a peer that lets in
    /// who comes from a known one. A port by number is for one connection to each address at a time.
    ///
    /// Port 0 is any that is free. Each local address has its ports of that kind (`ip_local_port_range`, 28,232 of
    /// them) once for all targets together, because the port is chosen before the kernel hears of the target. When
    /// each has a connection, or had one that ended here in the last minute, that is `AddrInUse`. [`Self::connect`]
    /// has them once for each target.
    ///
    /// ```
    /// use std::net::SocketAddr;
    ///
    /// use weir_engine::{Config, Driver, Runtime, net::{Listener, Stream}};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let runtime = Runtime::new(&Config::with_driver(Driver::Sim))?;
    /// runtime.block_on(async {
    ///     let listener = Listener::bind(&"127.0.0.1:0".parse()?, Default::default())?;
    ///     let local: SocketAddr = "127.0.0.2:0".parse()?;
    ///     let client = Stream::connect_from(&listener.local_address()?, local).await?;
    ///     assert!(client.local_address()?.to_string().starts_with("127.0.0.2:"));
    ///     Ok(())
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Self::connect`], and those of `bind(2)` (`AddrInUse`, `AddrNotAvailable`). `InvalidInput` unless
    /// both addresses are TCP's and of one family.
    pub async fn connect_from(address: &Address, local: SocketAddr) -> io::Result<Self> {
        let is_of_family = matches!(address, Address::Tcp(target) if target.is_ipv4() == local.is_ipv4());
        if !is_of_family {
            let why = format!(
                "{address} cannot be connected to from {local}: it takes TCP addresses of one family"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        Self::open(address, Some(local)).await
    }

    async fn open(address: &Address, local: Option<SocketAddr>) -> io::Result<Self> {
        let core = executor::current()?;
        let slot = core.with_driver(|driver| driver.connect(address, local))?;
        let stream = Self::new(core, slot);
        poll_fn(
            |context| poll_driver!(stream.core, driver => driver.poll_connect(stream.slot, context.waker())),
        )
        .await?;
        Ok(stream)
    }

    /// Takes over a connected socket.
    pub fn from_descriptor(descriptor: OwnedFd) -> io::Result<Self> {
        let core = executor::current()?;
        let slot = core.with_driver(|driver| driver.adopt_stream(descriptor))?;
        Ok(Self::new(core, slot))
    }

    /// Gives the socket back, for another runtime. Only a stream that has not been used yet can be given back so;
    /// [`Self::into_parts`] gives any.
    pub fn into_descriptor(self) -> io::Result<OwnedFd> {
        self.core.with_driver(|driver| driver.detach(self.slot))
    }

    /// Takes the connection out of this runtime, for another one: sends what is queued, stops receiving, and gives the
    /// socket with the bytes that had arrived and were not received, in order. Whoever takes over handles those first
    /// and then goes on with [`Self::from_descriptor`]: no byte is lost and none comes twice. Waits for a peer that
    /// does not read; dropping the future closes the connection.
    ///
    /// # Errors
    /// What the connection failed with, and then what it had sent before is lost with it. Simulated sockets are no
    /// descriptors and cannot move.
    pub async fn into_parts(self) -> io::Result<(OwnedFd, Vec<u8>)> {
        self.flush().await?;
        poll_fn(|context| poll_driver!(self.core, driver => driver.poll_detach(self.slot, context.waker())))
            .await
    }

    /// The next bytes, in a buffer of the engine's; `None` at the end of the stream, and when the runtime drains and
    /// everything that has arrived is taken.
    ///
    /// # Errors
    /// What the connection failed with (`ConnectionReset`, …); every later call gives the same.
    pub async fn recv(&self) -> io::Result<Option<Lease>> {
        poll_fn(|context| poll_driver!(self.core, driver => driver.poll_receive(self.slot, context.waker())))
            .await
    }

    /// Queues bytes for sending; a lease goes without a copy. Waits only while more than the high-water mark is
    /// queued. The queue is handed to the kernel when the calling task next waits.
    ///
    /// # Errors
    /// What the connection failed with. An error of these very bytes shows at a later call or at `flush`.
    pub async fn send(&self, bytes: impl Into<SendBuf>) -> io::Result<()> {
        let mut bytes = Some(bytes.into());
        poll_fn(|context| {
            poll_driver!(self.core, driver => driver.poll_push(self.slot, &mut bytes, context.waker()))
        })
        .await
    }

    /// Queues a copy of bytes, behind what is queued already: many small sends leave as one.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn send_slice(&self, bytes: &[u8]) -> io::Result<()> {
        poll_fn(|context| {
            poll_driver!(self.core, driver => driver.poll_push_copy(self.slot, bytes, context.waker()))
        })
        .await
    }

    /// As [`Self::send_slice`], without waiting: false, and nothing is queued, while more than the high-water mark is.
    /// For whoever queues for many connections one after the other: no future is made.
    ///
    /// # Errors
    /// As [`Self::send`].
    #[inline]
    pub fn try_send_slice(&self, bytes: &[u8]) -> io::Result<bool> {
        dispatch!(&mut *self.core.driver.borrow_mut(), driver => driver.try_push_copy(self.slot, bytes))
    }

    /// Queues `length` bytes of a file from `offset` on, in order with other sends. They go from the page cache to the
    /// socket without passing through this program. The file stays open until they have left, and counts in the queue
    /// with its whole length: the next send waits until little of it is left.
    ///
    /// What is not in the page cache is read while it is sent, and the runtime waits for the disk.
    ///
    /// # Errors
    /// As [`Self::send`]; `InvalidInput` for a part that no file can have. A file that ends before `length` bytes ends
    /// the connection with `UnexpectedEof`, which the peer sees as a reset.
    pub async fn send_file(&self, file: &File, offset: u64, length: u64) -> io::Result<()> {
        self.send(file.part(offset, length)?).await
    }

    /// Waits until the kernel has taken everything that is queued.
    ///
    /// # Errors
    /// What the connection failed with.
    pub async fn flush(&self) -> io::Result<()> {
        poll_fn(|context| poll_driver!(self.core, driver => driver.poll_flushed(self.slot, context.waker())))
            .await
    }

    /// Bytes that are queued and that the kernel has not taken, for whoever wants to know whether it takes any. On
    /// io_uring a send counts whole until it is over. 0 when the connection is gone.
    pub fn queued_bytes(&self) -> usize {
        dispatch!(&mut *self.core.driver.borrow_mut(), driver => {
            driver.send_access(self.slot).map_or(0, |access| access.send.queue.len())
        })
    }

    /// Sends everything that is queued and then the end of our direction; receiving goes on.
    ///
    /// # Errors
    /// What the connection failed with.
    pub async fn shutdown(&self) -> io::Result<()> {
        dispatch!(&mut *self.core.driver.borrow_mut(), driver => driver.end_output(self.slot))?;
        self.flush().await
    }

    /// Closes at once; what is queued is lost.
    pub fn abort(self) {
        self.core.with_driver(|driver| driver.abort(self.slot));
    }

    /// The address of our end.
    pub fn local_address(&self) -> io::Result<Address> {
        self.core.with_driver(|driver| driver.local_address(self.slot))
    }

    /// The address of the other end. Asks the kernel each time.
    ///
    /// # Errors
    /// Those of `getpeername(2)`: a connection that was reset has none any more. `Unsupported` for a Unix socket
    /// without a name, as those that connect usually are.
    pub fn peer_address(&self) -> io::Result<Address> {
        self.core.with_driver(|driver| driver.peer_address(self.slot))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.core.with_driver(|driver| driver.close(self.slot));
    }
}
