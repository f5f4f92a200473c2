//! Random lives of one connection: a model of the kernel and a small driver around the states, with seeded disorder.
//!
//! The kernel takes parts of sends, refuses them, completes in any order, leaves completions out or shows them late,
//! ends receives for want of a buffer, and loses the race against a cancellation or wins it. The peer ends, resets or
//! stays. The handler asks again only when it was woken. A life must end: bytes leave once and in order, all bytes of
//! the peer are received before its end shows, and the descriptor is closed after the last operation.

use rustix::io::Errno;

use super::{AfterReceive, Connection, Input, Receiving, Sending, Step};
use crate::{
    driver::{
        error::{SendFailure, send_failure},
        sim::random::Random,
    },
    slab::SlotId,
};

/// Lives, half of them with completions and half with direct calls.
const LIVES: u64 = 40_000;
/// More than any life here needs.
const STEPS_MAX: usize = 20_000;
/// Senders wait while more than this is queued.
const HIGH_WATER: u64 = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Receive,
    Poll,
    /// The bytes from this one on.
    Send {
        from: u64,
        bytes: u32,
        waits: bool,
        is_silent: bool,
    },
    Room,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    request: Request,
    is_cancelled: bool,
}

#[derive(Clone, Copy, Debug)]
struct Completion {
    request: Request,
    result: Result<u32, Errno>,
    more: bool,
}

/// The answer to the handler's last receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Bytes,
    End,
    Failure,
}

/// A mistake that a driver could make, planted to see whether a life shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plant {
    /// A receive in flight is not counted.
    UncountedReceive,
    /// A short send counts as whole.
    ShortIsWhole,
    /// A failure shows before the bytes that had arrived.
    RestIsLost,
    /// An arrival does not wake its receiver.
    WakeIsLost,
    /// A send is started while another one is in flight.
    TwoSends,
}

/// One connection between a peer, a kernel, a driver and a handler.
#[derive(Debug)]
struct World {
    random: Random,
    connection: Connection,
    is_direct: bool,
    plant: Option<Plant>,
    // The peer and the kernel.
    peer_sends: u64,
    has_peer_ended: bool,
    is_reset: bool,
    /// Bytes that are there and not received.
    arrived: u64,
    arrived_in_all: u64,
    taken: u64,
    in_flight: Vec<InFlight>,
    completions: Vec<Completion>,
    // The driver.
    queued: u64,
    sent: u64,
    /// Output was lost with the connection.
    is_lost: bool,
    /// Successes without a completion.
    silent: Vec<(u32, u32)>,
    tries: u32,
    lacks_memory: bool,
    inbound: u64,
    drains: bool,
    is_draining: bool,
    is_closed: bool,
    // The handler.
    has_handle: bool,
    leaves_early: bool,
    to_push: u64,
    pushed: u64,
    received: u64,
    seen: Seen,
    receiver_waits: bool,
    sender_waits: bool,
}

impl World {
    fn new(seed: u64, plant: Option<Plant>) -> Self {
        let mut random = Random::new(seed);
        let (peer_sends, to_push) = (random.below(60) as u64, random.below(60) as u64);
        let (leaves_early, drains) = (random.chance(300), random.chance(300));
        Self {
            random,
            connection: Connection::new(),
            is_direct: seed % 2 == 1,
            plant,
            peer_sends,
            has_peer_ended: false,
            is_reset: false,
            arrived: 0,
            arrived_in_all: 0,
            taken: 0,
            in_flight: Vec::new(),
            completions: Vec::new(),
            queued: 0,
            sent: 0,
            is_lost: false,
            silent: Vec::new(),
            tries: 0,
            lacks_memory: false,
            inbound: 0,
            drains,
            is_draining: false,
            is_closed: false,
            has_handle: true,
            leaves_early,
            to_push,
            pushed: 0,
            received: 0,
            seen: Seen::Bytes,
            receiver_waits: false,
            sender_waits: false,
        }
    }

    fn run(&mut self) {
        for _ in 0..STEPS_MAX {
            if self.is_closed {
                return self.check_end();
            }
            match self.random.below(20) {
                0..5 => self.handler(),
                5..8 => self.peer(),
                8..12 => self.kernel(),
                12..16 => self.dispatch(),
                16 => self.settle(),
                17 => self.retry(),
                18 if self.drains && self.random.chance(50) => self.drain(),
                19 if self.random.chance(10) => self.abort(),
                _ => self.look(),
            }
            self.check_waiters();
        }
        panic!("it never ends: {self:?}");
    }

    /// A task waits only for what is not there yet and may still be.
    fn check_waiters(&self) {
        let has_answer = self.inbound > 0 || !self.connection.input().may_arrive();
        assert!(!self.receiver_waits || !has_answer, "the receiver is not woken: {self:?}");
        let is_low = self.queued - self.sent <= HIGH_WATER / 2 || self.connection.error().is_some();
        assert!(!self.sender_waits || !is_low, "the sender is not woken: {self:?}");
    }

    fn check_end(&self) {
        let is_silent = self.in_flight.is_empty() && self.completions.is_empty() && self.silent.is_empty();
        assert!(is_silent, "closed too early: {self:?}");
        assert!(!self.has_handle, "closed under a handle: {self:?}");
        if !self.is_lost {
            assert_eq!(self.taken, self.pushed, "bytes are lost: {self:?}");
        }
    }

    // The handler asks again only when it was woken.

    fn handler(&mut self) {
        if !self.has_handle {
            return;
        }
        if !self.receiver_waits && self.seen == Seen::Bytes {
            self.poll_receive();
        }
        if !self.sender_waits && self.to_push > 0 {
            self.push();
        }
        let is_done = self.seen != Seen::Bytes && !self.sender_waits && self.to_push == 0;
        if is_done || self.leaves_early && self.random.chance(5) {
            self.close();
        }
    }

    fn poll_receive(&mut self) {
        if self.is_direct {
            return self.receive_directly();
        }
        if self.inbound > 0 {
            self.received += std::mem::take(&mut self.inbound);
            return;
        }
        if self.plant == Some(Plant::RestIsLost) && self.connection.error().is_some() {
            self.connection.end_input();
        }
        if let Some(answer) = self.connection.input().answer::<()>() {
            return self.show(answer.is_err());
        }
        let is_rest = self.connection.rest_asked_in(0).is_some();
        let nothing_comes = self.arrived == 0 && self.completions.is_empty();
        if (is_rest || self.is_draining) && nothing_comes {
            return self.show(self.connection.input().answer_if_empty::<()>().is_err());
        }
        // A driver looks again in its next turn.
        self.receiver_waits = !(is_rest || self.is_draining);
        self.arm();
    }

    fn show(&mut self, is_failure: bool) {
        self.seen = if is_failure { Seen::Failure } else { Seen::End };
        let is_whole = self.received == self.arrived_in_all;
        assert!(is_whole || self.is_draining && !is_failure, "an end before its bytes: {self:?}");
        assert_eq!(is_failure, self.connection.error().is_some(), "{self:?}");
    }

    fn push(&mut self) {
        if self.connection.error().is_some() {
            self.to_push = 0;
            return;
        }
        let count = 1 + self.random.below(self.to_push.min(8) as usize) as u64;
        self.to_push -= count;
        self.pushed += count;
        self.queued += count;
        self.sender_waits = self.queued - self.sent > HIGH_WATER;
        self.send();
    }

    fn close(&mut self) {
        self.has_handle = false;
        (self.receiver_waits, self.sender_waits, self.inbound) = (false, false, 0);
        self.connection.close();
        if !self.is_direct && !self.is_draining {
            self.stop_receive();
        }
        self.step();
        self.send();
    }

    fn abort(&mut self) {
        // The linger deadline.
        if !self.has_handle && !self.is_closed {
            self.connection.close();
            self.fail(Errno::CONNABORTED);
            self.step();
        }
    }

    fn drain(&mut self) {
        self.is_draining = true;
        self.connection.find_input();
        self.receiver_waits = false;
    }

    // The driver.

    fn fail(&mut self, error: Errno) {
        self.connection.fail(error);
        let sending = self.connection.sending();
        if self.is_direct || matches!(sending, Sending::Idle | Sending::Stalled) {
            self.lose_output();
        }
        (self.receiver_waits, self.sender_waits) = (false, false);
    }

    fn lose_output(&mut self) {
        self.is_lost |= self.queued > self.sent;
        self.queued = self.sent;
    }

    fn send(&mut self) {
        if self.is_closed || self.lacks_memory || self.connection.error().is_some() {
            return;
        }
        if self.is_direct {
            return self.send_directly();
        }
        let waits = match self.connection.sending() {
            Sending::Idle => false,
            Sending::Stalled => true,
            Sending::Waiting { .. } if self.plant == Some(Plant::TwoSends) => true,
            Sending::Tried { .. } | Sending::Waiting { .. } | Sending::Lent { .. } | Sending::AwaitsRoom => {
                return;
            }
        };
        if self.queued == self.sent {
            return self.step();
        }
        let bytes = 1 + self.random.below((self.queued - self.sent).min(9) as usize) as u32;
        if !waits && self.random.chance(100) {
            self.connection.begin_send(Sending::AwaitsRoom);
            return self.submit(Request::Room);
        }
        let (mut is_silent, mut waits) = (false, waits);
        if self.random.chance(100) {
            let slot = SlotId { index: 7, generation: 0 };
            self.connection.begin_send(Sending::Lent { bytes, slot });
            waits = true;
        } else if waits {
            self.connection.begin_send(Sending::Waiting { bytes });
        } else {
            is_silent = self.random.chance(700);
            self.tries += 1;
            let number = is_silent.then_some(self.tries);
            self.connection.begin_send(Sending::Tried { bytes, number });
        }
        self.submit(Request::Send { from: self.sent, bytes, waits, is_silent });
    }

    fn on_sent(&mut self, bytes: u32, result: Result<u32, Errno>) {
        let taken = result.unwrap_or(0);
        let offered = self.connection.end_send(taken);
        assert_eq!(offered, bytes, "{self:?}");
        match result.map_err(send_failure) {
            Ok(_) if self.plant == Some(Plant::ShortIsWhole) => self.sent += u64::from(offered),
            Ok(taken) => self.sent += u64::from(taken),
            Err(SendFailure::Again | SendFailure::Full) => {}
            Err(SendFailure::NoMemory) if self.connection.error().is_none() => {
                self.lacks_memory = true;
                return;
            }
            Err(SendFailure::NoMemory) => {}
            Err(SendFailure::Fatal(error)) => self.fail(error),
        }
        self.go_on();
    }

    fn go_on(&mut self) {
        if self.connection.error().is_some() {
            self.lose_output();
        }
        if self.queued - self.sent <= HIGH_WATER / 2 {
            self.sender_waits = false;
        }
        if self.queued > self.sent { self.send() } else { self.step() }
    }

    fn arm(&mut self) {
        if self.connection.receiving() != Receiving::Idle || !self.connection.may_receive() {
            return;
        }
        if self.random.chance(200) {
            self.connection.begin_receive(Receiving::Polling);
            self.submit(Request::Poll);
        } else {
            self.connection.begin_receive(Receiving::Armed(0));
            if self.plant == Some(Plant::UncountedReceive) {
                self.connection.finish();
            }
            self.submit(Request::Receive);
        }
    }

    fn stop_receive(&mut self) {
        let wanted = match self.connection.stop_receive() {
            Some(Receiving::Armed(_)) => Request::Receive,
            Some(_) => Request::Poll,
            None => return,
        };
        self.cancel(|request| *request == wanted);
    }

    fn on_received(&mut self, result: Result<u32, Errno>, more: bool) {
        if !more {
            self.connection.end_receive();
        }
        match result {
            Ok(0) => {
                self.connection.end_input();
                self.receiver_waits = false;
            }
            Ok(bytes) if !self.connection.is_closing() => {
                self.inbound += u64::from(bytes);
                self.receiver_waits &= self.plant == Some(Plant::WakeIsLost);
                if more && self.random.chance(100) {
                    self.stop_receive();
                }
            }
            Ok(_) | Err(Errno::CANCELED | Errno::INTR) => {}
            Err(Errno::NOBUFS) => _ = self.connection.starve(),
            Err(error) => {
                self.connection.break_off(error);
                self.fail(error);
            }
        }
        match self.connection.after_receive(more) {
            AfterReceive::Nothing => {}
            AfterReceive::Receive => self.arm(),
            AfterReceive::Move => self.receiver_waits = false,
            AfterReceive::Close => self.step(),
        }
    }

    fn step(&mut self) {
        let has_output = self.queued > self.sent;
        match self.connection.step(has_output, self.is_draining) {
            Step::Wait => {}
            Step::EndOutput if self.is_reset => match self.connection.step(false, false) {
                Step::Close => self.is_closed = true,
                Step::Cancel => self.cancel_all(),
                Step::Wait | Step::EndOutput | Step::Discard => {}
            },
            Step::EndOutput => {
                assert!(!has_output && !self.has_handle, "our end before our bytes: {self:?}");
                self.connection.begin_discarding();
                self.discard();
            }
            Step::Discard => self.discard(),
            Step::Cancel => self.cancel_all(),
            Step::Close => {
                self.is_closed = true;
                let is_open = self.connection.input() == Input::Open;
                let is_orderly = self.connection.is_discarding() || !is_open || self.is_reset;
                assert!(!self.is_draining || is_orderly, "closed without our end: {self:?}");
            }
        }
    }

    fn discard(&mut self) {
        if !self.is_direct {
            return self.arm();
        }
        self.arrived = 0;
        if self.has_peer_ended || self.is_reset {
            self.connection.end_input();
            self.step();
        }
    }

    fn cancel_all(&mut self) {
        self.connection.cancel();
        self.stop_receive();
        self.cancel(|request| matches!(request, Request::Send { .. } | Request::Room));
    }

    /// A drain's look at a peer that has received everything and sends nothing more.
    fn look(&mut self) {
        if self.connection.is_discarding() && self.arrived == 0 && self.peer_sends == 0 && !self.is_closed {
            self.connection.end_input();
            self.step();
        }
    }

    /// The starved find a buffer, and what lacked memory is tried again.
    fn retry(&mut self) {
        if self.connection.receiving() == Receiving::Starved && !self.is_closed {
            self.connection.feed();
            self.arm();
        }
        if std::mem::take(&mut self.lacks_memory) {
            self.send();
        }
    }

    // Direct calls.

    fn receive_directly(&mut self) {
        if let Some(answer) = self.connection.input().answer::<()>() {
            return self.show(answer.is_err());
        }
        if !self.connection.has_input() {
            self.receiver_waits = !self.is_draining;
            if self.is_draining {
                self.show(false);
            }
        } else if self.random.chance(100) {
            self.connection.starve();
            self.connection.grant();
        } else if self.arrived > 0 {
            self.connection.feed();
            let count = 1 + self.random.below(self.arrived as usize) as u64;
            self.arrived -= count;
            self.received += count;
            let is_last = self.arrived == 0 && !self.has_peer_ended && !self.is_reset;
            if is_last && self.connection.error().is_none() {
                self.connection.await_input();
            }
        } else if self.is_reset {
            self.connection.break_off(Errno::CONNRESET);
            self.fail(Errno::CONNRESET);
        } else if self.has_peer_ended {
            self.connection.end_input();
        } else if self.connection.would_block() || self.is_draining {
            self.show(self.connection.input().answer_if_empty::<()>().is_err());
        } else {
            self.receiver_waits = true;
        }
    }

    fn send_directly(&mut self) {
        while self.connection.has_room() && self.queued > self.sent && self.connection.error().is_none() {
            let offered = self.queued - self.sent;
            match self.random.below(6) {
                _ if self.is_reset => self.fail(Errno::PIPE),
                0 => {}
                1 => self.connection.await_room(),
                _ => {
                    let count = 1 + self.random.below(offered as usize) as u64;
                    self.take(self.sent, count);
                    self.sent += count;
                    if count < offered {
                        self.connection.await_room();
                    }
                }
            }
        }
        if self.queued - self.sent <= HIGH_WATER / 2 {
            self.sender_waits = false;
        }
        if self.queued == self.sent {
            self.step();
        }
    }

    // The kernel and the peer.

    fn submit(&mut self, request: Request) {
        self.in_flight.push(InFlight { request, is_cancelled: false });
        let sends = |flight: &&InFlight| matches!(flight.request, Request::Send { .. } | Request::Room);
        assert!(self.in_flight.iter().filter(sends).count() <= 1, "two sends: {self:?}");
        assert!(self.in_flight.len() <= 2, "two receives: {self:?}");
    }

    fn cancel(&mut self, is_meant: impl Fn(&Request) -> bool) {
        for flight in self.in_flight.iter_mut().filter(|flight| is_meant(&flight.request)) {
            flight.is_cancelled = true;
        }
    }

    fn take(&mut self, from: u64, count: u64) {
        assert_eq!(from, self.taken, "bytes are lost or sent twice: {self:?}");
        self.taken += count;
    }

    fn peer(&mut self) {
        if self.is_reset || self.has_peer_ended {
            return;
        }
        match self.random.below(8) {
            0 if self.random.chance(100) => self.is_reset = true,
            1 if self.peer_sends == 0 => self.has_peer_ended = true,
            _ => {
                let count = self.random.below(1 + self.peer_sends.min(6) as usize) as u64;
                self.peer_sends -= count;
                self.arrived += count;
                self.arrived_in_all += count;
            }
        }
        if !self.is_direct || self.is_closed {
            return;
        }
        // The readiness call reports it.
        self.connection.find_input();
        self.receiver_waits = false;
        if self.connection.is_discarding() {
            self.discard();
        }
    }

    fn kernel(&mut self) {
        if self.is_direct {
            if !self.is_closed && self.connection.find_room() {
                self.send();
            }
            return;
        }
        if self.in_flight.is_empty() {
            return;
        }
        let place = self.random.below(self.in_flight.len());
        let InFlight { request, is_cancelled } = self.in_flight[place];
        let Some((result, more)) = self.outcome(request, is_cancelled) else { return };
        if !more {
            self.in_flight.swap_remove(place);
        }
        if let (Request::Send { bytes, is_silent: true, .. }, Ok(taken)) = (request, result)
            && taken == bytes
        {
            let Sending::Tried { number: Some(number), .. } = self.connection.sending() else {
                panic!("the send in flight is a silent try: {self:?}");
            };
            return self.silent.push((number, bytes));
        }
        self.completions.push(Completion { request, result, more });
    }

    /// The result that a request in flight has now, if any, and whether it stays in flight.
    fn outcome(&mut self, request: Request, is_cancelled: bool) -> Option<(Result<u32, Errno>, bool)> {
        // A request that can be performed may do so although a cancellation is on its way.
        let is_stopped = is_cancelled && self.random.chance(500);
        let is_refused = self.random.chance(50);
        match request {
            _ if is_stopped => Some((Err(Errno::CANCELED), false)),
            Request::Receive if is_refused => Some((Err(Errno::NOBUFS), false)),
            _ if is_refused => Some((Err(Errno::INTR), false)),
            Request::Poll if self.arrived == 0 && !self.has_peer_ended && !self.is_reset => None,
            Request::Poll | Request::Room => Some((Ok(0), false)),
            Request::Receive if self.arrived > 0 => {
                let count = 1 + self.random.below(self.arrived as usize) as u32;
                self.arrived -= u64::from(count);
                Some((Ok(count), self.random.chance(700)))
            }
            Request::Receive if self.is_reset => Some((Err(Errno::CONNRESET), false)),
            Request::Receive => self.has_peer_ended.then_some((Ok(0), false)),
            Request::Send { .. } if self.is_reset => Some((Err(Errno::CONNRESET), false)),
            Request::Send { waits: false, .. } if self.random.chance(200) => Some((Err(Errno::AGAIN), false)),
            Request::Send { .. } if self.random.chance(50) => Some((Err(Errno::NOBUFS), false)),
            Request::Send { from, bytes, .. } => {
                let all = self.random.chance(600);
                let count = if all { bytes } else { 1 + self.random.below(bytes as usize) as u32 };
                self.take(from, count.into());
                Some((Ok(count), false))
            }
        }
    }

    /// A completion, in any order, except that completions of one request keep theirs.
    fn dispatch(&mut self) {
        if self.completions.is_empty() {
            return;
        }
        let any = self.completions[self.random.below(self.completions.len())].request;
        let first = self.completions.iter().position(|completion| completion.request == any);
        let Completion { request, result, more } = self.completions.remove(first.unwrap_or(0));
        assert!(!self.is_closed, "closed before a completion: {self:?}");
        match request {
            Request::Receive => self.on_received(result, more),
            Request::Poll => {
                self.connection.end_receive();
                match self.connection.after_receive(false) {
                    AfterReceive::Nothing => {}
                    AfterReceive::Receive => self.arm(),
                    AfterReceive::Move => self.receiver_waits = false,
                    AfterReceive::Close => self.step(),
                }
            }
            Request::Room => {
                self.connection.end_send(0);
                self.go_on();
            }
            Request::Send { bytes, .. } => self.on_sent(bytes, result),
        }
    }

    /// Tried sends without a completion count as successful once everything before them is dispatched.
    fn settle(&mut self) {
        if !self.completions.is_empty() {
            return;
        }
        for (number, bytes) in std::mem::take(&mut self.silent) {
            let sending = Sending::Tried { bytes, number: Some(number) };
            assert_eq!(self.connection.sending(), sending, "{self:?}");
            self.on_sent(bytes, Ok(bytes));
        }
    }
}

/// Whether the life of this seed ends as it should; the panic says what is wrong.
fn ends_well(seed: u64, plant: Option<Plant>) -> bool {
    let mut world = World::new(seed, plant);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run())).is_ok()
}

#[test]
fn a_life_ends_with_every_byte_sent_once_and_nothing_in_flight() {
    for seed in 0..LIVES {
        assert!(ends_well(seed, None), "seed {seed}");
    }
}

#[test]
fn a_planted_mistake_is_found_within_some_lives() {
    use Plant::{RestIsLost, ShortIsWhole, TwoSends, UncountedReceive, WakeIsLost};
    for plant in [UncountedReceive, ShortIsWhole, RestIsLost, WakeIsLost, TwoSends] {
        assert!((0..LIVES).any(|seed| !ends_well(seed, Some(plant))), "{plant:?}");
    }
}

#[test]
fn the_first_error_stays_and_never_becomes_an_end() {
    let mut connection = Connection::new();
    connection.fail(Errno::CONNRESET);
    connection.fail(Errno::NOMEM);
    assert!(matches!(connection.input(), Input::Rest(..)) && connection.may_receive());
    assert_eq!((connection.rest_asked_in(3), connection.rest_asked_in(9)), (Some(3), Some(3)));
    connection.end_input();
    let answer = connection.input().answer::<()>().expect("it is over").expect_err("not in order");
    assert_eq!(answer.raw_os_error(), Some(Errno::CONNRESET.raw_os_error()));
    connection.end_input();
    assert!(connection.error().is_some(), "a failure stays one");
}
