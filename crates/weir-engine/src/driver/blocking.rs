//! Blocking calls: one thread and one runtime for each connection, and each wait is the system call itself.
//!
//! A runtime on this driver runs one future. In one poll it may come to wait for one operation; the turn that
//! follows performs it, for at most as long as the nearest timer allows (`SO_RCVTIMEO`, `SO_SNDTIMEO`). Waiting for two
//! operations at once is an error with that reason, because a thread can block in one call only. Output is written when
//! the future yields, and blocks the thread until the kernel has taken it. Other threads end a wait by `shutdown(2)` on
//! the socket; there is no other wake-up and therefore no mailbox.

use std::{
    io::{self, IoSlice},
    os::fd::{AsFd, OwnedFd},
    task::{Poll, Waker},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec},
    io::Errno,
    net::{RecvFlags, SendFlags, Shutdown, SocketFlags, sockopt::Timeout},
};
use socket2::SockRef;

use super::{
    Mechanism, Parts, Wait,
    readiness::ACCEPT_RETRY,
    socket::{self, AcceptFailure, ListenOptions, StoredError},
};
use crate::{
    net::Address,
    outbound::{Outbound, Outgoing},
    pool::{Lease, SizeChoice},
    slots::{SlotId, Slots},
    time::{Instant, monotonic},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Accept,
    Connect,
    Receive,
}

#[derive(Debug)]
struct Socket {
    descriptor: OwnedFd,
    is_listener: bool,
    address: Option<Address>,
    /// What the last turn brought.
    accepted: Option<OwnedFd>,
    received: Option<Lease>,
    connected: bool,
    end_of_stream: bool,
    error: Option<StoredError>,
    outbound: Outbound,
    dirty: bool,
    /// The end of our direction is to be sent after what is queued.
    end_output: bool,
    output_ended: bool,
    size: SizeChoice,
    /// The time limit set on the socket, to set it only when it changes.
    limit: Option<Duration>,
}

/// The driver.
pub(crate) struct Blocking {
    parts: Parts,
    sockets: Slots<Socket>,
    dirty: Vec<SlotId>,
    waiting: Option<(SlotId, Operation, Waker)>,
    /// What was waited for before, in the same poll: given up (a time limit passed), or waited for at the same time,
    /// which shows when it is waited for again first.
    displaced: Option<(SlotId, Operation)>,
    retry_at: Option<Instant>,
    draining: bool,
}

fn two_at_once() -> io::Error {
    let reason = "this handler waits for two operations at once, which the blocking driver cannot do: \
                  a thread blocks in one call";
    io::Error::new(io::ErrorKind::Unsupported, reason)
}

impl Blocking {
    pub(crate) fn new(parts: Parts) -> io::Result<Self> {
        let sockets = Slots::new(parts.config.limits.sockets_max);
        Ok(Self {
            parts,
            sockets,
            dirty: Vec::new(),
            waiting: None,
            displaced: None,
            retry_at: None,
            draining: false,
        })
    }

    fn insert(
        &mut self,
        descriptor: OwnedFd,
        is_listener: bool,
        address: Option<Address>,
    ) -> io::Result<SlotId> {
        let connected = address.is_none();
        if connected && !is_listener {
            self.parts.counters.connections_open.increment();
        }
        let socket = Socket {
            descriptor,
            is_listener,
            address,
            accepted: None,
            received: None,
            connected,
            end_of_stream: false,
            error: None,
            outbound: Outbound::default(),
            dirty: false,
            end_output: false,
            output_ended: false,
            size: SizeChoice::default(),
            limit: None,
        };
        let limit = self.parts.config.limits.sockets_max;
        self.sockets.insert(socket).map_err(|_| socket::too_many(limit))
    }

    /// Notes what the next turn shall wait for.
    fn wait_for<T>(&mut self, id: SlotId, operation: Operation, waker: &Waker) -> Poll<io::Result<T>> {
        let wanted = (id, operation);
        match &self.waiting {
            Some((other, present, _)) if (*other, *present) != wanted => {
                self.displaced = Some((*other, *present));
            }
            Some(_) => {}
            None if self.displaced.take() == Some(wanted) => return Poll::Ready(Err(two_at_once())),
            None => {}
        }
        self.waiting = Some((id, operation, waker.clone()));
        Poll::Pending
    }

    fn mark_dirty(&mut self, id: SlotId) {
        if let Some(socket) = self.sockets.get_mut(id)
            && !std::mem::replace(&mut socket.dirty, true)
        {
            self.dirty.push(id);
        }
    }

    /// Writes everything that is queued.
    fn write(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let counters = &self.parts.counters;
        while !socket.outbound.is_empty() && socket.error.is_none() {
            counters.send_calls.increment();
            let queued = socket.outbound.len();
            match send(&socket.descriptor, &socket.outbound) {
                Ok(sent) => {
                    counters.sends.increment();
                    counters.bytes_sent.add(sent as u64);
                    counters.sends_short.add(u64::from(sent < queued));
                    socket.outbound.consume(sent);
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => {
                    socket.error = Some(StoredError(error));
                    socket.outbound.clear();
                }
            }
        }
        if std::mem::take(&mut socket.end_output)
            && socket.error.is_none()
            && let Err(error) = rustix::net::shutdown(&socket.descriptor, Shutdown::Write)
            && error != Errno::NOTCONN
        {
            socket.error = Some(StoredError(error));
        }
    }

    /// Limits how long the socket's next call blocks. `None` removes the limit.
    fn set_limit(socket: &mut Socket, kind: Timeout, limit: Option<Duration>) -> Result<(), Errno> {
        // Zero would mean no limit at all; the kernel counts in microseconds.
        let limit = limit.map(|limit| limit.max(Duration::from_micros(1)));
        if socket.limit != limit {
            rustix::net::sockopt::set_socket_timeout(&socket.descriptor, kind, limit)?;
            socket.limit = limit;
        }
        Ok(())
    }

    fn receive(&mut self, id: SlotId, limit: Option<Duration>) {
        let classes = self.parts.receive_pool.classes();
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let counters = &self.parts.counters;
        let Some(mut buffer) = self.parts.receive_pool.take(socket.size.class()) else {
            counters.buffers_exhausted.increment();
            return;
        };
        let flags = if limit == Some(Duration::ZERO) { RecvFlags::DONTWAIT } else { RecvFlags::empty() };
        counters.recv_calls.increment();
        let outcome = if flags.is_empty() { Self::set_limit(socket, Timeout::Recv, limit) } else { Ok(()) };
        let outcome = outcome.and_then(|()| {
            rustix::net::recv(&socket.descriptor, buffer.as_mut_slice(), flags).map(|(_, length)| length)
        });
        match outcome {
            Ok(0) => socket.end_of_stream = true,
            Ok(length) => {
                counters.receives.increment();
                counters.bytes_received.add(length as u64);
                counters.receives_full.add(u64::from(length == buffer.capacity() as usize));
                if socket.size.observe(length, buffer.capacity(), classes) {
                    counters.buffer_resizes.increment();
                }
                socket.received = Some(buffer.lease(length));
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => counters.would_block.increment(),
            Err(error) => socket.error = Some(StoredError(error)),
        }
    }

    fn accept(&mut self, id: SlotId, limit: Option<Duration>) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let outcome = Self::set_limit(socket, Timeout::Recv, limit)
            .and_then(|()| rustix::net::accept_with(&socket.descriptor, SocketFlags::CLOEXEC));
        match outcome {
            Ok(descriptor) => {
                self.parts.counters.accepts.increment();
                socket.accepted = Some(descriptor);
            }
            // Another thread has shut the listener down.
            Err(Errno::INVAL) => self.draining = true,
            Err(error) => match socket::accept_failure(error) {
                AcceptFailure::Empty | AcceptFailure::Again => {}
                AcceptFailure::Starved => {
                    self.parts.counters.accepts_starved.increment();
                    self.retry_at = Some(monotonic() + ACCEPT_RETRY);
                }
                AcceptFailure::Broken => socket.error = Some(StoredError(error)),
            },
        }
    }

    fn connect_now(&mut self, id: SlotId, limit: Option<Duration>) {
        let Some(socket) = self.sockets.get_mut(id) else { return };
        let outcome = match socket.address.take() {
            Some(address) => {
                Self::set_limit(socket, Timeout::Send, limit).map_err(io::Error::from).and_then(|()| {
                    let name = address.to_socket_address()?;
                    SockRef::from(&socket.descriptor).connect(&name)
                })
            }
            // Started before and cut short by a timer: wait for it to end.
            None => wait_writable(&socket.descriptor, limit).and_then(|ready| {
                let pending = io::Error::from(Errno::INPROGRESS);
                if ready { socket::take_error(&socket.descriptor) } else { Err(pending) }
            }),
        };
        let pending = [Errno::INPROGRESS, Errno::INTR, Errno::ALREADY, Errno::AGAIN];
        match outcome {
            Ok(()) => {
                socket.connected = true;
                socket.limit = None;
                // A limit on sending was only meant for connecting.
                let _ = rustix::net::sockopt::set_socket_timeout(&socket.descriptor, Timeout::Send, None);
                self.parts.counters.connects.increment();
                self.parts.counters.connections_open.increment();
            }
            Err(error) => {
                let number = Errno::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO));
                if !pending.contains(&number) {
                    socket.error = Some(StoredError(number));
                }
            }
        }
    }

    fn release(&mut self, id: SlotId) {
        let Some(socket) = self.sockets.remove(id) else { return };
        if !socket.is_listener {
            self.parts.counters.closes.increment();
            if socket.connected {
                self.parts.counters.connections_open.decrement();
            }
        }
    }

    /// Nothing to wait for but time, or another thread's wake-up.
    fn idle(&mut self, limit: Option<Duration>) -> io::Result<()> {
        if wait_readable(&*self.parts.wake, limit)? {
            let _ = rustix::io::read(&*self.parts.wake, &mut [0u8; 8]);
        }
        Ok(())
    }
}

fn wait_for(socket: impl AsFd, flags: PollFlags, limit: Option<Duration>) -> io::Result<bool> {
    let mut list = [PollFd::new(&socket, flags)];
    let limit = limit.map(|limit| Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    });
    match rustix::event::poll(&mut list, limit.as_ref()) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn wait_readable(socket: impl AsFd, limit: Option<Duration>) -> io::Result<bool> {
    wait_for(socket, PollFlags::IN, limit)
}

fn wait_writable(socket: impl AsFd, limit: Option<Duration>) -> io::Result<bool> {
    wait_for(socket, PollFlags::OUT, limit)
}

fn send(descriptor: &OwnedFd, outbound: &Outbound) -> Result<usize, Errno> {
    if !outbound.is_scattered() {
        return rustix::net::send(descriptor, outbound.front().unwrap_or(&[]), SendFlags::NOSIGNAL);
    }
    let mut slices: [IoSlice<'_>; 16] = std::array::from_fn(|_| IoSlice::new(&[]));
    let count = outbound.gather(&mut slices);
    let mut ancillary = rustix::net::SendAncillaryBuffer::default();
    rustix::net::sendmsg(descriptor, &slices[..count], &mut ancillary, SendFlags::NOSIGNAL)
}

impl Mechanism for Blocking {
    fn listen(&mut self, address: &Address, options: &ListenOptions) -> io::Result<SlotId> {
        let descriptor = socket::listen(address, options)?;
        self.insert(descriptor, true, None)
    }

    fn adopt_listener(&mut self, descriptor: OwnedFd) -> io::Result<SlotId> {
        rustix::io::ioctl_fionbio(&descriptor, false)?;
        self.insert(descriptor, true, None)
    }

    fn adopt_stream(&mut self, descriptor: OwnedFd) -> io::Result<SlotId> {
        rustix::io::ioctl_fionbio(&descriptor, false)?;
        self.insert(descriptor, false, None)
    }

    fn detach(&mut self, id: SlotId) -> io::Result<OwnedFd> {
        let socket = self.sockets.remove(id).ok_or_else(socket::gone)?;
        if !socket.is_listener {
            self.parts.counters.connections_open.decrement();
        }
        Ok(socket.descriptor)
    }

    fn poll_accept(&mut self, listener: SlotId, waker: &Waker) -> Poll<io::Result<SlotId>> {
        if self.draining {
            return Poll::Ready(Err(socket::draining()));
        }
        let Some(socket) = self.sockets.get_mut(listener) else { return Poll::Ready(Err(socket::gone())) };
        if let Some(descriptor) = socket.accepted.take() {
            self.displaced = None;
            return Poll::Ready(self.insert(descriptor, false, None));
        }
        if let Some(error) = socket.error {
            return Poll::Ready(Err(error.into()));
        }
        self.wait_for(listener, Operation::Accept, waker)
    }

    fn connect(&mut self, address: &Address) -> io::Result<SlotId> {
        let descriptor = socket::for_connect(address)?;
        self.insert(descriptor, false, Some(address.clone()))
    }

    fn poll_connect(&mut self, stream: SlotId, waker: &Waker) -> Poll<io::Result<()>> {
        let Some(socket) = self.sockets.get(stream) else { return Poll::Ready(Err(socket::gone())) };
        match socket.error {
            None if !socket.connected => self.wait_for(stream, Operation::Connect, waker),
            outcome => {
                self.displaced = None;
                Poll::Ready(outcome.map_or(Ok(()), |error| Err(error.into())))
            }
        }
    }

    fn poll_receive(&mut self, stream: SlotId, waker: &Waker) -> Poll<io::Result<Option<Lease>>> {
        let Some(socket) = self.sockets.get_mut(stream) else { return Poll::Ready(Err(socket::gone())) };
        if let Some(lease) = socket.received.take() {
            self.displaced = None;
            return Poll::Ready(Ok(Some(lease)));
        }
        if socket.end_of_stream {
            self.displaced = None;
            return Poll::Ready(Ok(None));
        }
        if let Some(error) = socket.error {
            self.displaced = None;
            return Poll::Ready(Err(error.into()));
        }
        if self.draining {
            self.receive(stream, Some(Duration::ZERO));
            let lease = self.sockets.get_mut(stream).and_then(|socket| socket.received.take());
            return Poll::Ready(Ok(lease));
        }
        self.wait_for(stream, Operation::Receive, waker)
    }

    fn poll_room(&mut self, stream: SlotId, _waker: &Waker) -> Poll<io::Result<()>> {
        let high_water = self.parts.config.limits.output_high_water_bytes;
        let Some(socket) = self.sockets.get(stream) else { return Poll::Ready(Err(socket::gone())) };
        if socket.outbound.len() > high_water {
            self.write(stream);
        }
        match self.sockets.get(stream).and_then(|socket| socket.error) {
            Some(error) => Poll::Ready(Err(error.into())),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_flushed(&mut self, stream: SlotId, _waker: &Waker) -> Poll<io::Result<()>> {
        self.write(stream);
        match self.sockets.get(stream) {
            None => Poll::Ready(Err(socket::gone())),
            Some(socket) => Poll::Ready(socket.error.map_or(Ok(()), |error| Err(error.into()))),
        }
    }

    fn push(&mut self, stream: SlotId, bytes: Outgoing) -> io::Result<()> {
        let socket = self.sockets.get_mut(stream).ok_or_else(socket::gone)?;
        socket::check_open(socket.error, socket.output_ended)?;
        socket.outbound.push(bytes);
        self.mark_dirty(stream);
        Ok(())
    }

    fn push_copy(&mut self, stream: SlotId, bytes: &[u8]) -> io::Result<()> {
        let socket = self.sockets.get_mut(stream).ok_or_else(socket::gone)?;
        socket::check_open(socket.error, socket.output_ended)?;
        socket.outbound.push_copy(bytes, &self.parts.send_pool);
        self.mark_dirty(stream);
        Ok(())
    }

    fn end_output(&mut self, stream: SlotId) -> io::Result<()> {
        let socket = self.sockets.get_mut(stream).ok_or_else(socket::gone)?;
        socket.end_output = !std::mem::replace(&mut socket.output_ended, true);
        self.mark_dirty(stream);
        Ok(())
    }

    fn close(&mut self, id: SlotId) {
        self.write(id);
        self.release(id);
    }

    fn abort(&mut self, id: SlotId) {
        if let Some(socket) = self.sockets.get(id) {
            socket::reset_on_close(socket.descriptor.as_fd());
        }
        self.release(id);
    }

    fn flush(&mut self) {
        for id in std::mem::take(&mut self.dirty) {
            if let Some(socket) = self.sockets.get_mut(id) {
                socket.dirty = false;
                self.write(id);
            }
        }
    }

    fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    fn turn(&mut self, wait: Wait) -> io::Result<()> {
        let limit = wait.limit(monotonic());
        self.parts.counters.turns.increment();
        self.parts.counters.waits.add(u64::from(wait != Wait::No));
        if self.retry_at.is_some_and(|at| at > monotonic()) {
            return self.idle(limit);
        }
        self.retry_at = None;
        // Only a look, so that the future shows soon whether it still waits for the other one too.
        let limit = if self.displaced.is_some() { Some(Duration::ZERO) } else { limit };
        let Some((id, operation, waker)) = self.waiting.take() else {
            return self.idle(limit);
        };
        match operation {
            Operation::Accept => self.accept(id, limit),
            Operation::Connect => self.connect_now(id, limit),
            Operation::Receive => self.receive(id, limit),
        }
        self.parts.counters.completions.increment();
        // Whatever came of it, the future asks again, and waits again if there is nothing.
        waker.wake();
        Ok(())
    }

    fn deadline(&self) -> Option<Instant> {
        self.retry_at
    }

    fn drain(&mut self) {
        self.draining = true;
    }

    fn abort_all(&mut self) {
        for id in self.sockets.ids() {
            if let Some(socket) = self.sockets.get_mut(id) {
                socket.error.get_or_insert(StoredError(Errno::CONNABORTED));
                socket.outbound.clear();
            }
        }
    }

    fn sockets(&self) -> usize {
        self.sockets.len()
    }

    fn local_address(&self, socket: SlotId) -> io::Result<Address> {
        let socket = self.sockets.get(socket).ok_or_else(socket::gone)?;
        socket::local_address(socket.descriptor.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use std::{future::Future, io::Write, os::unix::net::UnixStream, pin::pin, task::Context};

    use crate::{
        Config, Driver, Runtime,
        net::Stream,
        time::{sleep, timeout},
    };

    use super::*;

    fn run<F: Future>(future: F) -> F::Output {
        Runtime::new(&Config::with_driver(Driver::Blocking)).expect("it runs everywhere").block_on(future)
    }

    fn pair() -> (Stream, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a socket pair");
        (Stream::from_descriptor(ours.into()).expect("there is room"), theirs)
    }

    #[test]
    fn a_receive_that_was_given_up_does_not_count_as_waiting() {
        run(async {
            let ((silent, _open), (talks, mut peer)) = (pair(), pair());
            for round in 0..3u8 {
                assert!(timeout(Duration::from_millis(2), silent.recv()).await.is_err());
                // Nothing is there yet the first time it is asked for.
                assert!(timeout(Duration::from_millis(2), talks.recv()).await.is_err());
                assert!(timeout(Duration::from_millis(2), silent.recv()).await.is_err());
                peer.write_all(&[round]).expect("it fits");
                let lease = talks.recv().await.expect("only one is waited for").expect("it was written");
                assert_eq!(&lease[..], [round]);
            }
        });
    }

    #[test]
    fn two_receives_at_once_are_refused_and_do_not_block() {
        run(async {
            let ((first, _first_peer), (second, _second_peer)) = (pair(), pair());
            let (mut one, mut other) = (pin!(first.recv()), pin!(second.recv()));
            let mut limit = pin!(sleep(Duration::from_secs(5)));
            let error = std::future::poll_fn(|context: &mut Context<'_>| {
                for receive in [one.as_mut(), other.as_mut()] {
                    if let Poll::Ready(outcome) = receive.poll(context) {
                        return Poll::Ready(outcome.expect_err("nothing was sent"));
                    }
                }
                limit.as_mut().poll(context).map(|()| io::ErrorKind::TimedOut.into())
            })
            .await;
            assert_eq!(error.kind(), io::ErrorKind::Unsupported, "{error}");
        });
    }
}
