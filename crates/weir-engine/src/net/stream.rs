//! A connected stream.

use std::{
    future::poll_fn,
    io,
    net::SocketAddr,
    os::fd::OwnedFd,
    rc::Rc,
    task::{Context, Poll},
};

use super::Address;
use crate::{
    driver::{DriverOps, dispatch},
    executor::{self, Core, poll_driver},
    fs::File,
    pool::Lease,
    send_queue::SendBuf,
    slab::SlotId,
};

/// A connection: received bytes arrive as leases, sent bytes go into a queue.
///
/// Nothing is lost by dropping a future of its methods. Dropping the stream sends its queue (for at most
/// [`Limits::linger`](crate::Limits)) and then closes.
///
/// One task receives and one task sends at a time; they may be different tasks of one runtime.
///
/// The methods whose names begin with `poll_` are the same operations for code that implements the traits of other
/// libraries. One that is pending wakes the task of its last call. It keeps nothing else of that call, so the caller
/// may call another method next, or drop the stream.
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
///     // A receive returns a part of a message, or several messages.
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

    /// Connects to an address. Dropping the future abandons the attempt.
    ///
    /// # Errors
    /// Those of `connect(2)`; an error outside a runtime.
    pub async fn connect(address: &Address) -> io::Result<Self> {
        Self::open(address, None).await
    }

    /// As [`Self::connect`], from a local address: for a machine with several addresses, and for a peer that admits
    /// only known ones. A fixed port allows one connection to each address at a time.
    ///
    /// Port 0 means any free port. Each local address has these ports (`ip_local_port_range`, 28,232 of them) only
    /// once for all targets together, because the port is chosen before the kernel knows the target. The error is
    /// `AddrInUse` when each port has a connection, or had one that ended here in the last minute. [`Self::connect`]
    /// can use all ports for each target.
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
    /// As [`Self::connect`], and those of `bind(2)` (`AddrInUse`, `AddrNotAvailable`). `InvalidInput` unless both are
    /// TCP addresses of one family.
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

    /// Returns the socket, for another runtime. Only an unused stream can be returned this way; [`Self::into_parts`]
    /// works for any.
    pub fn into_descriptor(self) -> io::Result<OwnedFd> {
        self.core.with_driver(|driver| driver.detach(self.slot))
    }

    /// Takes the connection out of this runtime, for another one: sends the queue, stops receiving, and returns the
    /// socket with the bytes that had arrived and were not received, in order. The next owner handles those first and
    /// then continues with [`Self::from_descriptor`]: no byte is lost and none arrives twice. The future waits for a
    /// peer that does not read; dropping it closes the connection.
    ///
    /// # Errors
    /// The error that the connection failed with; bytes that the peer had sent before are then lost. Simulated
    /// sockets are not descriptors and cannot move.
    pub async fn into_parts(self) -> io::Result<(OwnedFd, Vec<u8>)> {
        self.flush().await?;
        poll_fn(|context| poll_driver!(self.core, driver => driver.poll_detach(self.slot, context.waker())))
            .await
    }

    /// The next bytes, in an engine buffer; `None` at the end of the stream, and during a drain when all bytes that
    /// arrived have been taken.
    ///
    /// # Errors
    /// The error that the connection failed with (`ConnectionReset`, …); every later call returns it again.
    pub async fn recv(&self) -> io::Result<Option<Lease>> {
        poll_fn(|context| self.poll_recv(context)).await
    }

    /// As [`Self::recv`].
    #[inline]
    pub fn poll_recv(&self, context: &mut Context<'_>) -> Poll<io::Result<Option<Lease>>> {
        poll_driver!(self.core, driver => driver.poll_receive(self.slot, context.waker()))
    }

    /// Queues bytes for sending; a lease is sent without a copy. Waits only while more than the high-water mark is
    /// queued. The queue is handed to the kernel when the calling task next waits.
    ///
    /// # Errors
    /// The error that the connection failed with. An error in sending these bytes shows at a later call or at
    /// `flush`.
    pub async fn send(&self, bytes: impl Into<SendBuf>) -> io::Result<()> {
        let mut bytes = Some(bytes.into());
        poll_fn(|context| {
            poll_driver!(self.core, driver => driver.poll_push(self.slot, &mut bytes, context.waker()))
        })
        .await
    }

    /// Queues a copy of bytes, behind the queued ones: many small sends leave as one.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn send_slice(&self, bytes: &[u8]) -> io::Result<()> {
        poll_fn(|context| self.poll_send_slice(bytes, context)).await
    }

    /// As [`Self::send_slice`]: ready when all of the bytes are queued. While it is pending, none of them is.
    #[inline]
    pub fn poll_send_slice(&self, bytes: &[u8], context: &mut Context<'_>) -> Poll<io::Result<()>> {
        poll_driver!(self.core, driver => driver.poll_push_copy(self.slot, bytes, context.waker()))
    }

    /// As [`Self::send_slice`], without waiting: returns false, and queues nothing, while more than the high-water
    /// mark is queued. Use it to queue for many connections one after the other: it creates no future.
    ///
    /// # Errors
    /// As [`Self::send`].
    #[inline]
    pub fn try_send_slice(&self, bytes: &[u8]) -> io::Result<bool> {
        dispatch!(&mut *self.core.driver.borrow_mut(), driver => driver.try_push_copy(self.slot, bytes))
    }

    /// Queues `length` bytes of a file starting at `offset`, in order with other sends. They go from the page cache
    /// to the socket without passing through this program. The file stays open until they have been sent, and counts
    /// in the queue with its full length: the next send waits until little of it remains.
    ///
    /// Bytes that are not in the page cache are read while they are sent, and the runtime waits for the disk.
    ///
    /// # Errors
    /// As [`Self::send`]; `InvalidInput` for a part that no file can have. A file that ends before `length` bytes ends
    /// the connection with `UnexpectedEof`, which a TCP peer sees as a reset. A Unix socket has no reset: its peer sees
    /// the end of the stream.
    pub async fn send_file(&self, file: &File, offset: u64, length: u64) -> io::Result<()> {
        self.send(file.part(offset, length)?).await
    }

    /// Waits until the kernel has taken everything that is queued.
    ///
    /// # Errors
    /// The error that the connection failed with.
    pub async fn flush(&self) -> io::Result<()> {
        poll_fn(|context| self.poll_flush(context)).await
    }

    /// As [`Self::flush`].
    #[inline]
    pub fn poll_flush(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        poll_driver!(self.core, driver => driver.poll_flushed(self.slot, context.waker()))
    }

    /// Queued bytes that the kernel has not taken; use it to see whether the kernel takes any. On io_uring a send
    /// counts in full until it is over. 0 if the connection is gone.
    pub fn queued_bytes(&self) -> usize {
        dispatch!(&mut *self.core.driver.borrow_mut(), driver => {
            driver.send_access(self.slot).map_or(0, |access| access.send.queue.len())
        })
    }

    /// Sends everything that is queued and then the end of our direction; receiving continues.
    ///
    /// # Errors
    /// The error that the connection failed with.
    pub async fn shutdown(&self) -> io::Result<()> {
        self.end_output()?;
        self.flush().await
    }

    /// As [`Self::shutdown`]. Later calls wait for the same end.
    pub fn poll_shutdown(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.end_output()?;
        self.poll_flush(context)
    }

    fn end_output(&self) -> io::Result<()> {
        dispatch!(&mut *self.core.driver.borrow_mut(), driver => driver.end_output(self.slot))
    }

    /// Closes at once; queued bytes are lost.
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
    /// Those of `getpeername(2)`: a connection that was reset has no peer address any more. `Unsupported` for a Unix
    /// socket without a name, which connecting sockets usually are.
    pub fn peer_address(&self) -> io::Result<Address> {
        self.core.with_driver(|driver| driver.peer_address(self.slot))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.core.with_driver(|driver| driver.close(self.slot));
    }
}
