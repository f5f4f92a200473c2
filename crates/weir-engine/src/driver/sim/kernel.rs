//! The simulated kernel behind the readiness driver: sockets over the machine, with faults at each call.

use std::{
    cell::RefCell,
    fmt,
    io::{self, IoSlice},
    net::SocketAddr,
    os::fd::{BorrowedFd, OwnedFd, RawFd},
    rc::Rc,
    task::{Poll, Waker},
};

use rustix::io::Errno;

use super::{descriptors::Object, machine::Machine};
use crate::{
    address::Address,
    clock::Instant,
    counters::Counters,
    driver::{
        contract::DriverParts,
        files::{FileOperation, FileResult, Operations, Step, perform_here, read_part},
        readiness::{Files, Kernel},
        socket::ListenOptions,
    },
    pool::Pool,
    send_queue::FileRange,
};

/// The machine, shared by the kernel's calls, the readiness call and every open socket.
pub(super) type SharedMachine = Rc<RefCell<Machine>>;

/// A number of the simulated process. Dropping it closes the descriptor.
pub(crate) struct SimSocket {
    machine: SharedMachine,
    pub(super) number: u32,
}

impl fmt::Debug for SimSocket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("SimSocket").field(&self.number).finish()
    }
}

impl Drop for SimSocket {
    fn drop(&mut self) {
        self.machine.borrow_mut().close(self.number);
    }
}

/// Transient errors of an accept.
const ACCEPT_FAULTS: [Errno; 5] =
    [Errno::INTR, Errno::CONNABORTED, Errno::MFILE, Errno::NFILE, Errno::NOBUFS];
const SEND_FAULTS: [Errno; 3] = [Errno::INTR, Errno::NOBUFS, Errno::NOMEM];

/// The kernel.
#[derive(Clone, Debug)]
pub(crate) struct Simulated {
    pub(super) machine: SharedMachine,
}

impl Simulated {
    fn open(&self, machine: &mut Machine, object: Object) -> Result<SimSocket, Errno> {
        machine.open(object).map(|number| SimSocket { machine: Rc::clone(&self.machine), number })
    }
}

/// One of several errors, when the seed draws a fault.
fn fault(machine: &mut Machine, errors: &[Errno]) -> Result<(), Errno> {
    if !machine.network.fails() {
        return Ok(());
    }
    Err(errors[machine.network.chance_below(errors.len())])
}

/// The simulator's error for a real descriptor.
fn no_descriptors() -> io::Error {
    let reason =
        "the simulated kernel has no descriptors: its sockets exist between the tasks of one runtime";
    io::Error::new(io::ErrorKind::Unsupported, reason)
}

impl Kernel for Simulated {
    type Socket = SimSocket;
    type Files = SimFiles;

    fn now(&self) -> Instant {
        self.machine.borrow().now()
    }

    fn virtual_now(&self) -> Option<Instant> {
        Some(self.now())
    }

    fn files(&self, parts: &DriverParts) -> SimFiles {
        SimFiles {
            machine: Rc::clone(&self.machine),
            operations: Operations::new(parts.config.limits.file_operations_max, &parts.departed),
            pool: Rc::clone(&parts.send_pool),
            counters: std::sync::Arc::clone(&parts.counters),
        }
    }

    /// The simulated process opens nothing else that could run out of descriptors.
    fn reserved(&self, _count: usize, _any: BorrowedFd<'_>) -> RawFd {
        RawFd::MAX
    }

    fn lowest_free(&self, _any: BorrowedFd<'_>) -> Option<RawFd> {
        self.machine.borrow().descriptors.lowest_free().map(|number| number as RawFd)
    }

    fn number(&self, socket: &SimSocket) -> RawFd {
        socket.number as RawFd
    }

    fn listen(&self, address: &Address, options: &ListenOptions, _: &DriverParts) -> io::Result<SimSocket> {
        let mut machine = self.machine.borrow_mut();
        machine.descriptors.lowest_free().ok_or(Errno::MFILE)?;
        let listener = machine.network.listen(address, options.backlog, options.share_port)?;
        Ok(self.open(&mut machine, Object::Listener(listener))?)
    }

    fn adopt(&self, _descriptor: OwnedFd, _waits: bool, _counters: &Counters) -> io::Result<SimSocket> {
        Err(no_descriptors())
    }

    fn may_leave(&self) -> io::Result<()> {
        Err(no_descriptors())
    }

    fn leave(&self, _socket: SimSocket) -> io::Result<OwnedFd> {
        Err(no_descriptors())
    }

    fn connect(
        &self,
        address: &Address,
        local: Option<SocketAddr>,
        _parts: &DriverParts,
    ) -> io::Result<(SimSocket, bool)> {
        let mut machine = self.machine.borrow_mut();
        machine.descriptors.lowest_free().ok_or(Errno::MFILE)?;
        let end = machine.network.connect(address, local)?;
        Ok((self.open(&mut machine, Object::End(end))?, false))
    }

    fn accept(&self, listener: &SimSocket, _waits: bool) -> Result<SimSocket, Errno> {
        let mut machine = self.machine.borrow_mut();
        let Object::Listener(listener) = machine.object(listener.number)? else { return Err(Errno::INVAL) };
        machine.descriptors.lowest_free().ok_or(Errno::MFILE)?;
        match fault(&mut machine, &ACCEPT_FAULTS) {
            // Only a waiting connection can be lost.
            Err(Errno::CONNABORTED) if !machine.network.lose_waiting(listener) => {}
            outcome => outcome?,
        }
        let end = machine.network.accept(listener).ok_or(Errno::AGAIN)?;
        self.open(&mut machine, Object::End(end))
    }

    fn receive(&self, socket: &SimSocket, into: &mut [u8]) -> Result<usize, Errno> {
        let mut machine = self.machine.borrow_mut();
        let end = machine.connection(socket.number)?;
        fault(&mut machine, &[Errno::INTR])?;
        machine.network.receive(end, into)
    }

    fn send(&self, socket: &SimSocket, bytes: &[u8]) -> Result<usize, Errno> {
        self.send_slices(socket, &[IoSlice::new(bytes)], false)
    }

    fn send_slices(&self, socket: &SimSocket, slices: &[IoSlice<'_>], _more: bool) -> Result<usize, Errno> {
        let mut machine = self.machine.borrow_mut();
        let end = machine.connection(socket.number)?;
        fault(&mut machine, &SEND_FAULTS)?;
        machine.network.send(end, slices)
    }

    fn send_file(
        &self,
        socket: &SimSocket,
        range: &FileRange<'_>,
        bytes_max: usize,
        counters: &Counters,
    ) -> Result<usize, Errno> {
        // Some file systems do not support this.
        fault(&mut self.machine.borrow_mut(), &[Errno::INVAL])?;
        let bytes = read_part(range, bytes_max, counters)?;
        if bytes.is_empty() { Ok(0) } else { self.send(socket, &bytes) }
    }

    fn has_room(&self, socket: &SimSocket, _counters: &Counters) -> bool {
        let mut machine = self.machine.borrow_mut();
        let Ok(end) = machine.connection(socket.number) else { return true };
        machine.network.has_room(end)
    }

    fn end_output(&self, socket: &SimSocket, _counters: &Counters) -> Result<(), Errno> {
        let mut machine = self.machine.borrow_mut();
        let end = machine.connection(socket.number)?;
        machine.network.shutdown(end)
    }

    fn take_error(&self, socket: &SimSocket, _counters: &Counters) -> io::Result<()> {
        let mut machine = self.machine.borrow_mut();
        let end = machine.connection(socket.number)?;
        machine.network.take_error(end).map_or(Ok(()), |error| Err(error.into()))
    }

    fn reset_on_close(&self, socket: &SimSocket, _counters: &Counters) {
        if let Some(descriptor) = self.machine.borrow_mut().descriptors.get_mut(socket.number) {
            descriptor.resets = true;
        }
    }

    fn has_taken_all(&self, socket: &SimSocket, _counters: &Counters) -> bool {
        let mut machine = self.machine.borrow_mut();
        let Ok(end) = machine.connection(socket.number) else { return false };
        machine.network.has_taken_all(end)
    }

    fn local_address(&self, socket: &SimSocket) -> io::Result<Address> {
        let mut machine = self.machine.borrow_mut();
        let address = match machine.object(socket.number)? {
            Object::Listener(listener) => machine.network.listener_address(listener),
            Object::End(end) => machine.network.address(end),
        };
        address.cloned().ok_or_else(unnamed)
    }

    fn peer_address(&self, socket: &SimSocket) -> io::Result<Address> {
        let mut machine = self.machine.borrow_mut();
        let end = machine.connection(socket.number)?;
        machine.network.peer_address(end).cloned().ok_or_else(unnamed)
    }
}

fn unnamed() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "the socket has no name")
}

/// Files are the real ones: an operation is performed when it is begun, and its answer is delayed like a message.
#[derive(Debug)]
pub(crate) struct SimFiles {
    machine: SharedMachine,
    operations: Operations<FileResult>,
    pool: Rc<Pool>,
    counters: std::sync::Arc<Counters>,
}

impl Files for SimFiles {
    fn try_now(&mut self, _operation: &mut FileOperation, _parts: &DriverParts) -> Option<FileResult> {
        None
    }

    fn poll(&mut self, operation: &mut FileOperation, waker: &Waker) -> Poll<FileResult> {
        match self.operations.poll(operation, waker) {
            Step::Over(answer) => Poll::Ready(answer),
            Step::Pending => Poll::Pending,
            Step::Admitted(request) => {
                let answer = perform_here(request, &self.pool, &self.counters);
                let id = self.operations.begin(operation, waker, answer);
                self.machine.borrow_mut().network.plan_file(id);
                Poll::Pending
            }
        }
    }

    fn forget(&mut self, operation: &mut FileOperation) {
        self.operations.forget(operation);
    }

    fn collect(&mut self) {
        for operation in self.machine.borrow_mut().take_files() {
            if let Some(answer) = self.operations.take_work(operation) {
                self.operations.finish(operation, answer);
            }
        }
    }
}
