//! One worker's ends of all queues, for any kind of queue.

use super::{
    Options, Priority, Strategy, armed, locked,
    ring::{self, ring},
};

/// The two priorities of a ring to or from one other worker; `None` in the worker's own position.
type Peers<E> = Vec<Option<[E; 2]>>;

/// Messages taken from one worker before the next one is served.
const RUN_MAX: u32 = 64;

/// Rings between each pair of workers, from one worker's side.
pub(super) struct Mesh<T> {
    out: Peers<ring::Sender<T>>,
    inward: Peers<ring::Receiver<T>>,
    /// By priority: whose turn it is, and how many consecutive messages were taken from it.
    next: [(usize, u32); 2],
}

impl<T> Mesh<T> {
    fn pop(&mut self, priority: Priority) -> Option<(usize, T)> {
        let workers = self.inward.len();
        let (mut from, mut run) = self.next[priority.index()];
        for _ in 0..workers {
            if run < RUN_MAX
                && let Some(receivers) = &mut self.inward[from]
                && let Some(message) = receivers[priority.index()].pop()
            {
                self.next[priority.index()] = (from, run + 1);
                return Some((from, message));
            }
            run = 0;
            from = if from + 1 == workers { 0 } else { from + 1 };
        }
        // The worker whose run ended has not been asked.
        let receivers = self.inward[from].as_mut()?;
        let message = receivers[priority.index()].pop()?;
        self.next[priority.index()] = (from, 1);
        Some((from, message))
    }

    fn has_some(&mut self) -> bool {
        self.inward.iter_mut().flatten().flatten().any(ring::Receiver::has_some)
    }

    fn has_response(&mut self) -> bool {
        self.inward.iter_mut().flatten().any(|receivers| receivers[Priority::Response.index()].has_some())
    }
}

/// One worker's ends of all queues.
pub(super) enum QueueEnds<T> {
    /// There are no queues: the owner of work does it.
    Owner,
    /// One locked queue for each worker.
    Locked { out: Vec<Option<locked::Sender<T>>>, inward: locked::Receiver<T> },
    /// One armed queue for each worker.
    Armed { out: Vec<Option<armed::Sender<T>>>, inward: armed::Receiver<T> },
    /// A ring for each ordered pair of workers and priority.
    Mesh(Mesh<T>),
}

/// The ends of all workers, in their order.
pub(super) fn queue_ends<T>(workers: usize, options: &Options) -> Vec<QueueEnds<T>> {
    match options.strategy {
        Strategy::Owner => (0..workers).map(|_| QueueEnds::Owner).collect(),
        Strategy::Naive | Strategy::Edge => {
            let every = options.strategy == Strategy::Naive;
            let queues = (0..workers).map(|_| locked::queue(workers, options.ring_slots, every));
            transposed(queues.collect()).map(|(out, inward)| QueueEnds::Locked { out, inward }).collect()
        }
        Strategy::Armed => {
            let queues = (0..workers).map(|_| armed::queue(workers, options.ring_slots));
            transposed(queues.collect()).map(|(out, inward)| QueueEnds::Armed { out, inward }).collect()
        }
        Strategy::Mesh | Strategy::MeshSpin | Strategy::MsgRing => mesh(workers, options.ring_slots),
    }
}

/// Turns a list of queues with a sender for each producer into a list of producers with a sender for each queue but
/// their own.
fn transposed<S, R>(queues: Vec<(Vec<S>, R)>) -> impl Iterator<Item = (Vec<Option<S>>, R)> {
    let workers = queues.len();
    let mut out: Vec<Vec<Option<S>>> = (0..workers).map(|_| Vec::with_capacity(workers)).collect();
    let mut receivers = Vec::with_capacity(workers);
    for (to, (senders, receiver)) in queues.into_iter().enumerate() {
        for (from, sender) in senders.into_iter().enumerate() {
            out[from].push((from != to).then_some(sender));
        }
        receivers.push(receiver);
    }
    out.into_iter().zip(receivers)
}

fn mesh<T>(workers: usize, slots: usize) -> Vec<QueueEnds<T>> {
    let place = || Mesh { out: Vec::new(), inward: Vec::new(), next: [(0, 0); 2] };
    let mut places: Vec<Mesh<T>> = (0..workers).map(|_| place()).collect();
    for from in 0..workers {
        for to in 0..workers {
            let pair = (from != to).then(|| [ring(slots), ring(slots)]);
            let (senders, receivers) = match pair {
                Some([(response, responses), (request, requests)]) => {
                    (Some([response, request]), Some([responses, requests]))
                }
                None => (None, None),
            };
            places[from].out.push(senders);
            places[to].inward.push(receivers);
        }
    }
    places.into_iter().map(QueueEnds::Mesh).collect()
}

impl<T> QueueEnds<T> {
    /// Puts a message into the queue to another worker. `Ok(true)`: announce it now.
    #[inline]
    pub(super) fn put(&mut self, to: usize, priority: Priority, message: T) -> Result<bool, T> {
        match self {
            QueueEnds::Owner => Err(message),
            QueueEnds::Locked { out, .. } => match &mut out[to] {
                Some(sender) => sender.push(priority, message),
                None => Err(message),
            },
            QueueEnds::Armed { out, .. } => match &mut out[to] {
                Some(sender) => sender.push(priority, message),
                None => Err(message),
            },
            QueueEnds::Mesh(mesh) => match &mut mesh.out[to] {
                Some(senders) => {
                    let sender = &mut senders[priority.index()];
                    let outcome = sender.push(message);
                    // A consumer that is awake gets the messages before the end of the turn; a sleeping one is woken
                    // then.
                    if outcome.is_err() || sender.unpublished() >= EARLY {
                        sender.publish();
                    }
                    outcome.map(|()| false)
                }
                None => Err(message),
            },
        }
    }

    /// Publishes the messages put for another worker.
    pub(super) fn publish(&mut self, to: usize) {
        if let QueueEnds::Mesh(mesh) = self
            && let Some(senders) = &mut mesh.out[to]
        {
            senders.iter_mut().for_each(|sender| _ = sender.publish());
        }
    }

    /// Whether messages become visible only when they are published.
    pub(super) fn are_published_later(&self) -> bool {
        matches!(self, QueueEnds::Mesh(_))
    }

    /// Asks to be woken when there is room again. False: there is already some.
    pub(super) fn await_room(&mut self, to: usize, priority: Priority) -> bool {
        match self {
            QueueEnds::Owner => true,
            QueueEnds::Locked { out, .. } => {
                out[to].as_mut().is_none_or(|sender| sender.await_room(priority))
            }
            QueueEnds::Armed { out, .. } => out[to].as_mut().is_none_or(|sender| sender.await_room(priority)),
            QueueEnds::Mesh(mesh) => {
                mesh.out[to].as_mut().is_none_or(|senders| senders[priority.index()].await_room())
            }
        }
    }

    /// The next message of a priority, and its producer.
    #[inline]
    pub(super) fn take(&mut self, priority: Priority) -> Option<(usize, T)> {
        match self {
            QueueEnds::Owner => None,
            QueueEnds::Locked { inward, .. } => inward.pop(priority),
            QueueEnds::Armed { inward, .. } => inward.pop(priority),
            QueueEnds::Mesh(mesh) => mesh.pop(priority),
        }
    }

    /// Whether a message is there.
    #[inline]
    pub(super) fn has_some(&mut self) -> bool {
        match self {
            QueueEnds::Owner => false,
            QueueEnds::Locked { inward, .. } => inward.has_some(),
            QueueEnds::Armed { inward, .. } => inward.has_some(),
            QueueEnds::Mesh(mesh) => mesh.has_some(),
        }
    }

    /// Whether a response is there.
    #[inline]
    pub(super) fn has_response(&mut self) -> bool {
        match self {
            QueueEnds::Owner => false,
            QueueEnds::Locked { inward, .. } => inward.has_some_of(Priority::Response),
            QueueEnds::Armed { inward, .. } => inward.has_some_of(Priority::Response),
            QueueEnds::Mesh(mesh) => mesh.has_response(),
        }
    }

    /// Returns the room of taken messages; adds the workers that waited for it, which must be woken.
    pub(super) fn return_room(&mut self, room_waiters: &mut Vec<usize>) {
        match self {
            QueueEnds::Owner => {}
            QueueEnds::Locked { inward, .. } => inward.return_room(room_waiters),
            QueueEnds::Armed { inward, .. } => inward.return_room(room_waiters),
            QueueEnds::Mesh(mesh) => {
                for (from, receivers) in mesh.inward.iter_mut().enumerate() {
                    for receiver in receivers.iter_mut().flatten() {
                        if receiver.return_room() {
                            room_waiters.push(from);
                        }
                    }
                }
            }
        }
    }

    /// Sets arrived messages aside: messages that are not wanted now must not keep the queue from being armed.
    pub(super) fn collect(&mut self) {
        if let QueueEnds::Armed { inward, .. } = self {
            inward.drain();
        }
    }

    /// About to sleep. False: something has arrived.
    pub(super) fn arm(&mut self) -> bool {
        match self {
            QueueEnds::Armed { inward, .. } => inward.arm(),
            QueueEnds::Owner | QueueEnds::Locked { .. } | QueueEnds::Mesh(_) => true,
        }
    }

    /// No longer asleep. True: nothing arrived during the sleep; messages found from now on needed no announcement.
    /// False: that is unknown.
    pub(super) fn disarm(&mut self) -> bool {
        if let QueueEnds::Armed { inward, .. } = self { inward.disarm() } else { false }
    }
}

/// Most messages that a ring holds back until the end of the turn.
const EARLY: u32 = 64;
