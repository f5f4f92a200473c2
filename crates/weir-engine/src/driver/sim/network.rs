//! The simulated network: connections between ends on this machine, with delays, bounded buffers and faults, in
//! virtual time. It answers as a kernel's non-blocking sockets do and knows nothing of descriptors and readiness calls.
//!
//! Data towards one end arrives in the order sent; between connections the seed decides the order. An end that is
//! closed answers bytes with a reset, and closing with unread bytes resets the peer, as TCP does. Bytes that arrived
//! before a reset can still be read, as on Linux.

use std::{collections::VecDeque, io::IoSlice, net::SocketAddr, time::Duration};

use rustix::io::Errno;

use super::{
    event_queue::EventQueue,
    names::{self, Names},
    random::Random,
    side::Side,
};
use crate::{
    address::Address,
    clock::Instant,
    config::SimOptions,
    slab::{Slab, SlotId},
};

/// Virtual time at the start. Not zero, so that programs may compute times before their first moment.
const START: Instant = Instant::from_nanos(1_000_000_000);

/// How often a TCP connection retries at a full accept queue; the pause doubles each time, from one second (Linux:
/// `tcp_syn_retries`).
const CONNECT_RETRIES_MAX: u32 = 6;

/// Number of steps of the time grid between the smallest and the largest latency, and how often the grid is ignored.
const GRID_CELLS: u64 = 4;
const EXACT_PER_MILLE: u16 = 250;

/// Names one end of one connection. The client's side is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    connection: SlotId,
    side: usize,
}

impl End {
    fn peer(self) -> End {
        End { side: 1 - self.side, ..self }
    }
}

/// Names the tenancy of one descriptor: numbers are reused, names are not.
pub(super) type Owner = u64;

/// An event, for the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    /// This descriptor may be ready: bytes have arrived, or there is room again.
    Touched(Owner),
    /// A report although nothing has happened.
    Spurious(Owner, Direction),
    /// A file operation has ended; it is not a descriptor.
    File(SlotId),
}

/// The direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    In,
    Out,
}

/// The calls that are possible on a descriptor without waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) readable: bool,
    pub(super) writable: bool,
    /// The peer has ended its direction.
    pub(super) ended: bool,
    /// Both directions have ended.
    pub(super) hung_up: bool,
}

#[derive(Debug)]
enum Event {
    Syn {
        client: End,
        target: Address,
        retries: u32,
    },
    SynAck {
        client: End,
        outcome: Result<(), Errno>,
    },
    Arrived {
        end: End,
        bytes: usize,
    },
    /// Bytes that a short receive left count as arriving now.
    Rest {
        end: End,
    },
    Ended {
        end: End,
    },
    Reset {
        end: End,
    },
    Room {
        end: End,
    },
    Spurious {
        owner: Owner,
        direction: Direction,
    },
    File {
        operation: SlotId,
    },
}

#[derive(Debug)]
struct Listening {
    owner: Option<Owner>,
    address: Address,
    backlog: usize,
    queue: VecDeque<End>,
}

/// The network.
#[derive(Debug)]
pub(super) struct Network {
    now: Instant,
    options: SimOptions,
    random: Random,
    events: EventQueue<Event>,
    names: Names,
    listeners: Slab<Listening>,
    /// Never more than the sockets plus the places in accept queues.
    connections: Slab<[Side; 2]>,
    /// Connections that a fault has broken.
    #[cfg(test)]
    broken: u64,
}

impl Network {
    pub(super) fn new(options: SimOptions) -> Self {
        Self {
            now: START,
            options,
            random: Random::new(options.seed),
            events: EventQueue::new(),
            names: Names::new(),
            listeners: Slab::new(usize::MAX),
            connections: Slab::new(usize::MAX),
            #[cfg(test)]
            broken: 0,
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    /// The time of the next event.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.events.next_at()
    }

    /// Connections that faults have broken.
    #[cfg(test)]
    pub(super) fn broken(&self) -> u64 {
        self.broken
    }

    /// Connections and listeners that are not closed at both ends.
    #[cfg(test)]
    pub(super) fn open(&self) -> usize {
        self.connections.len() + self.listeners.len()
    }

    /// Moves time forward, never back.
    pub(super) fn advance(&mut self, to: Instant) {
        self.now = self.now.max(to);
    }

    /// A random number that decides only an order.
    pub(super) fn chance_below(&mut self, limit: usize) -> usize {
        self.random.below(limit)
    }

    /// Whether a call fails now with a transient error.
    pub(super) fn fails(&mut self) -> bool {
        self.random.chance(self.options.error_per_mille)
    }

    fn capacity(&self) -> usize {
        self.options.socket_buffer_bytes.max(1) as usize
    }

    /// When something that starts now arrives at the other end. Mostly on a coarse grid, within the configured
    /// latencies: events of many connections then coincide, as they do after an interrupt.
    fn moment(&mut self) -> Instant {
        let (low, high) = (self.options.latency_min, self.options.latency_max);
        let exact = self.now + self.random.between(low, high);
        let grid = (high.saturating_sub(low).as_nanos() as u64 / GRID_CELLS).max(1);
        let snapped = Instant::from_nanos(exact.as_nanos().next_multiple_of(grid));
        let exactly = self.random.chance(EXACT_PER_MILLE);
        if exactly || snapped > self.now + high { exact } else { snapped }
    }

    /// Plans an event after the time that a message takes.
    fn plan(&mut self, event: Event) {
        let (at, tie) = (self.moment(), self.random.next());
        self.events.plan(at, tie, event);
    }

    /// Plans an arrival at an end, behind all earlier ones.
    fn plan_arrival(&mut self, end: End, event: Event) {
        let (at, tie) = (self.moment(), self.random.next());
        let Some(side) = self.side_mut(end) else { return };
        // At one moment, equal ties keep the order in which events were planned.
        let (at, tie) = if at > side.last_arrival.0 { (at, tie) } else { side.last_arrival };
        side.last_arrival = (at, tie);
        self.events.plan(at, tie, event);
    }

    fn side(&self, end: End) -> Option<&Side> {
        self.connections.get(end.connection).map(|sides| &sides[end.side])
    }

    fn side_mut(&mut self, end: End) -> Option<&mut Side> {
        self.connections.get_mut(end.connection).map(|sides| &mut sides[end.side])
    }

    /// Opens a listener for the descriptor that `assign_listener` names later.
    pub(super) fn listen(&mut self, address: &Address, backlog: u32, share: bool) -> Result<SlotId, Errno> {
        let address = self.names.resolve(address, share)?;
        let listening = Listening {
            owner: None,
            address: address.clone(),
            backlog: backlog as usize,
            queue: VecDeque::new(),
        };
        let listener = self.listeners.insert(listening).map_err(|_| Errno::MFILE)?;
        self.names.bind(&address, share, listener);
        Ok(listener)
    }

    /// Sets the descriptor that holds a listener.
    pub(super) fn assign_listener(&mut self, listener: SlotId, owner: Owner) {
        if let Some(listening) = self.listeners.get_mut(listener) {
            listening.owner = Some(owner);
        }
    }

    /// Sets the descriptor that holds an end.
    pub(super) fn assign(&mut self, end: End, owner: Owner) {
        if let Some(side) = self.side_mut(end) {
            side.owner = Some(owner);
        }
    }

    pub(super) fn listener_address(&self, listener: SlotId) -> Option<&Address> {
        self.listeners.get(listener).map(|listening| &listening.address)
    }

    pub(super) fn address(&self, end: End) -> Option<&Address> {
        self.side(end)?.local.as_ref()
    }

    pub(super) fn peer_address(&self, end: End) -> Option<&Address> {
        self.address(end.peer())
    }

    /// Whether a connection waits to be accepted.
    pub(super) fn listener_state(&self, listener: SlotId) -> State {
        let readable = self.listeners.get(listener).is_some_and(|listening| !listening.queue.is_empty());
        State { readable, ..State::default() }
    }

    pub(super) fn state(&self, end: End) -> State {
        self.side(end).map_or_else(State::default, |side| side.state(self.capacity()))
    }

    pub(super) fn accept(&mut self, listener: SlotId) -> Option<End> {
        let listening = self.listeners.get_mut(listener)?;
        let (next, owner) = (listening.queue.pop_front(), listening.owner);
        if next.is_none()
            && let Some(owner) = owner
            && self.random.chance(self.options.spurious_per_mille)
        {
            self.plan(Event::Spurious { owner, direction: Direction::In });
        }
        next
    }

    /// A fault: the connection that has waited longest is lost before it is accepted. False: none waits.
    pub(super) fn lose_waiting(&mut self, listener: SlotId) -> bool {
        let lost = self.listeners.get_mut(listener).and_then(|listening| listening.queue.pop_front());
        if let Some(end) = lost {
            #[cfg(test)]
            {
                self.broken += 1;
            }
            self.reset(end);
        }
        lost.is_some()
    }

    /// Closes a listener; the connections in its queue are reset.
    pub(super) fn close_listener(&mut self, listener: SlotId) {
        let Some(listening) = self.listeners.remove(listener) else { return };
        self.names.unbind(&listening.address, listener);
        for end in listening.queue {
            self.reset(end);
        }
    }

    /// Starts a connection, from `local` if given; the client's end is touched when the connection is established or
    /// has failed.
    pub(super) fn connect(&mut self, address: &Address, local: Option<SocketAddr>) -> Result<End, Errno> {
        let target = names::target(address);
        let own = self.names.for_client(&target, local)?;
        if local.is_some_and(|local| local.port() != 0) && self.are_connected(own.as_ref(), &target) {
            return Err(Errno::ADDRNOTAVAIL);
        }
        let client = Side::starting(own, target.clone());
        let connection =
            self.connections.insert([client, Side::absent()]).map_err(|_| Errno::ADDRNOTAVAIL)?;
        let client = End { connection, side: 0 };
        self.plan(Event::Syn { client, target, retries: 0 });
        Ok(client)
    }

    /// Whether a connection between these addresses exists or is being established: there cannot be two.
    fn are_connected(&self, own: Option<&Address>, target: &Address) -> bool {
        let is_between =
            |[client, _]: &[Side; 2]| client.local.as_ref() == own && client.target.as_ref() == Some(target);
        self.connections.ids().into_iter().filter_map(|id| self.connections.get(id)).any(is_between)
    }

    /// Sends bytes; fewer than asked when there is no room or the seed draws a short send. The end is then touched
    /// when there is room.
    pub(super) fn send(&mut self, end: End, slices: &[IoSlice<'_>]) -> Result<usize, Errno> {
        let capacity = self.capacity();
        let Some(side) = self.side_mut(end) else { return Err(Errno::BADF) };
        if let Some(error) = side.take_error() {
            return Err(error);
        }
        if side.fin_sent || side.error.is_some() {
            return Err(Errno::PIPE);
        }
        let room = side.room(capacity);
        if self.random.chance(self.options.reset_per_mille) {
            self.break_connection(end);
            return Err(Errno::CONNRESET);
        }
        let asked: usize = slices.iter().map(|slice| slice.len()).sum();
        let mut count = asked.min(room);
        if count > 0 && self.random.chance(self.options.short_per_mille) {
            count = self.random.below(count);
            if self.side_mut(end).is_some_and(Side::plan_room) {
                self.plan(Event::Room { end });
            }
        }
        let Some(sides) = self.connections.get_mut(end.connection) else { return Err(Errno::BADF) };
        if count < asked {
            sides[end.side].want_room();
        }
        if count == 0 {
            self.perhaps_report_nothing(end, Direction::Out);
            return Err(Errno::AGAIN);
        }
        sides[end.side].charge(count);
        let receiver = &mut sides[1 - end.side];
        if !receiver.closed && receiver.error.is_none() {
            receiver.put(slices, count);
        }
        self.plan_arrival(end.peer(), Event::Arrived { end: end.peer(), bytes: count });
        Ok(count)
    }

    /// Whether there is room for a considerable part of the buffer; if not, the end is touched when there is.
    pub(super) fn has_room(&mut self, end: End) -> bool {
        let capacity = self.capacity();
        let Some(side) = self.side_mut(end) else { return true };
        let writable = side.state(capacity).writable;
        if !writable {
            side.want_room();
        }
        writable
    }

    /// A fault: both ends lose the connection.
    fn break_connection(&mut self, end: End) {
        #[cfg(test)]
        {
            self.broken += 1;
        }
        if let Some(side) = self.side_mut(end) {
            side.fail(Errno::CONNRESET);
            // The send that met the fault reports it.
            side.take_error();
        }
        self.plan_arrival(end.peer(), Event::Reset { end: end.peer() });
    }

    /// Receives bytes that have arrived, perhaps not all; zero at the end of the stream.
    pub(super) fn receive(&mut self, end: End, into: &mut [u8]) -> Result<usize, Errno> {
        let Some(side) = self.side_mut(end) else { return Err(Errno::BADF) };
        let mut count = side.arrived().min(into.len());
        if count == 0 {
            return match side.take_error() {
                Some(error) => Err(error),
                // As on Linux, an error is reported once, and after that the stream looks ended.
                None if side.ended || side.error.is_some() => Ok(0),
                None => {
                    self.perhaps_report_nothing(end, Direction::In);
                    Err(Errno::AGAIN)
                }
            };
        }
        let there = side.arrived();
        if self.random.chance(self.options.short_per_mille) {
            count = 1 + self.random.below(count);
            if count < there.min(into.len()) {
                // A short read means that there was no more: so the rest must arrive anew.
                self.plan(Event::Rest { end });
            }
        }
        let Some(sides) = self.connections.get_mut(end.connection) else { return Err(Errno::BADF) };
        let count = sides[end.side].take(into, count);
        let sender = &mut sides[1 - end.side];
        if !sender.closed && sender.error.is_none() && sender.release(count) {
            self.plan(Event::Room { end: end.peer() });
        }
        Ok(count)
    }

    /// The error an end has stored.
    pub(super) fn take_error(&mut self, end: End) -> Option<Errno> {
        self.side_mut(end)?.take_error()
    }

    /// Ends our direction after the bytes that are on their way.
    pub(super) fn shutdown(&mut self, end: End) -> Result<(), Errno> {
        let side = self.side_mut(end).ok_or(Errno::BADF)?;
        if side.error.is_some() || !side.stands {
            return Err(Errno::NOTCONN);
        }
        if !std::mem::replace(&mut side.fin_sent, true) {
            self.plan_arrival(end.peer(), Event::Ended { end: end.peer() });
        }
        Ok(())
    }

    /// Whether the peer has read everything that was sent, and our end has arrived behind it.
    pub(super) fn has_taken_all(&self, end: End) -> bool {
        self.side(end.peer()).is_none_or(Side::has_read_all)
    }

    /// Closes the handle: the peer sees the end of the stream, or a reset if bytes were left unread.
    pub(super) fn close(&mut self, end: End) {
        let Some(side) = self.side(end) else { return };
        if side.closed {
            return;
        }
        if side.arrived() > 0 && side.error.is_none() {
            return self.reset(end);
        }
        // An end that is broken, or not established yet, has nothing to send.
        let _ = self.shutdown(end);
        self.forget(end);
    }

    /// Closes the handle with a reset.
    pub(super) fn reset(&mut self, end: End) {
        self.plan_arrival(end.peer(), Event::Reset { end: end.peer() });
        self.forget(end);
    }

    fn forget(&mut self, end: End) {
        let Some(sides) = self.connections.get_mut(end.connection) else { return };
        sides[end.side].close();
        if sides[1 - end.side].closed {
            self.connections.remove(end.connection);
        }
    }

    /// May report a spurious event to a task that begins to wait.
    fn perhaps_report_nothing(&mut self, end: End, direction: Direction) {
        if self.random.chance(self.options.spurious_per_mille)
            && let Some(owner) = self.side(end).and_then(|side| side.owner)
        {
            self.plan(Event::Spurious { owner, direction });
        }
    }

    /// Plans the end of a file operation.
    pub(super) fn plan_file(&mut self, operation: SlotId) {
        self.plan(Event::File { operation });
    }

    /// Runs every event whose time has come; returns their number.
    pub(super) fn run_due(&mut self, notices: &mut Vec<Notice>) -> usize {
        let mut events = 0;
        while let Some(event) = self.events.pop_due(self.now) {
            events += 1;
            notices.extend(self.happen(event));
        }
        events
    }

    fn happen(&mut self, event: Event) -> Option<Notice> {
        let capacity = self.capacity();
        match event {
            Event::Syn { client, target, retries } => self.syn(client, target, retries),
            Event::SynAck { client, outcome } => {
                let side = self.side_mut(client)?;
                match outcome {
                    Ok(()) => side.stands = true,
                    Err(error) => side.fail(error),
                }
                side.owner.map(Notice::Touched)
            }
            Event::Arrived { end, bytes } => {
                let side = self.side_mut(end)?;
                if side.closed {
                    self.plan_arrival(end.peer(), Event::Reset { end: end.peer() });
                    return None;
                }
                if side.error.is_some() {
                    return None;
                }
                side.arrive(bytes);
                side.owner.map(Notice::Touched)
            }
            Event::Rest { end } => self.side(end)?.owner.map(Notice::Touched),
            Event::Ended { end } => {
                let side = self.side_mut(end)?;
                side.ended = true;
                side.owner.map(Notice::Touched)
            }
            Event::Reset { end } => {
                let side = self.side_mut(end)?;
                if side.closed {
                    return None;
                }
                side.fail(Errno::CONNRESET);
                side.owner.map(Notice::Touched)
            }
            Event::Room { end } => {
                let side = self.side_mut(end)?;
                if side.take_back(capacity) { side.owner.map(Notice::Touched) } else { None }
            }
            Event::Spurious { owner, direction } => Some(Notice::Spurious(owner, direction)),
            Event::File { operation } => Some(Notice::File(operation)),
        }
    }

    /// A connection attempt reaches its target.
    fn syn(&mut self, client: End, target: Address, retries: u32) -> Option<Notice> {
        self.side(client)?;
        let reached = self.names.reach(&target);
        let chosen = if reached.len() > 1 { self.random.below(reached.len()) } else { 0 };
        let Some(&listener) = reached.get(chosen) else {
            let nobody = if matches!(target, Address::Unix(_)) { Errno::NOENT } else { Errno::CONNREFUSED };
            self.plan_arrival(client, Event::SynAck { client, outcome: Err(nobody) });
            return None;
        };
        let listening = self.listeners.get_mut(listener)?;
        // Linux accepts one more than the backlog.
        if listening.queue.len() > listening.backlog {
            self.retry_syn(client, target, retries);
            return None;
        }
        let end = client.peer();
        listening.queue.push_back(end);
        let owner = listening.owner;
        *self.side_mut(end)? = Side::new(Some(target));
        self.plan_arrival(client, Event::SynAck { client, outcome: Ok(()) });
        owner.map(Notice::Touched)
    }

    /// The accept queue is full: TCP retries later, a Unix socket returns an error.
    fn retry_syn(&mut self, client: End, target: Address, retries: u32) {
        if !matches!(target, Address::Tcp(_)) {
            return self.plan_arrival(client, Event::SynAck { client, outcome: Err(Errno::AGAIN) });
        }
        let pause = Duration::from_secs(1 << retries);
        let event = if retries < CONNECT_RETRIES_MAX {
            Event::Syn { client, target, retries: retries + 1 }
        } else {
            Event::SynAck { client, outcome: Err(Errno::TIMEDOUT) }
        };
        let tie = self.random.next();
        self.events.plan(self.now + pause, tie, event);
    }
}
