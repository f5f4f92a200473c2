//! One worker's ends of all queues, for any kind of queue.

#[cfg(any(test, feature = "lab"))]
use super::study_ends::{self, StudyEnds};
use super::{
    Options, Priority, Strategy,
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
    /// One queue for each worker, of a kind that is only there to be compared.
    #[cfg(any(test, feature = "lab"))]
    Study(StudyEnds<T>),
    /// A ring for each ordered pair of workers and priority.
    Mesh(Mesh<T>),
}

/// The ends of all workers, in their order.
pub(super) fn queue_ends<T>(workers: usize, options: &Options) -> Vec<QueueEnds<T>> {
    match options.strategy {
        Strategy::Owner => (0..workers).map(|_| QueueEnds::Owner).collect(),
        #[cfg(any(test, feature = "lab"))]
        Strategy::Naive | Strategy::Edge | Strategy::Armed => {
            study_ends::study_ends(workers, options).map(QueueEnds::Study).collect()
        }
        Strategy::Mesh | Strategy::MeshSpin | Strategy::MsgRing => mesh(workers, options.ring_slots),
    }
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
            #[cfg(any(test, feature = "lab"))]
            QueueEnds::Study(ends) => ends.put(to, priority, message),
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
            #[cfg(any(test, feature = "lab"))]
            QueueEnds::Study(ends) => ends.await_room(to, priority),
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
            #[cfg(any(test, feature = "lab"))]
            QueueEnds::Study(ends) => ends.take(priority),
            QueueEnds::Mesh(mesh) => mesh.pop(priority),
        }
    }

    /// Whether a message is there.
    #[inline]
    pub(super) fn has_some(&mut self) -> bool {
        match self {
            QueueEnds::Owner => false,
            #[cfg(any(test, feature = "lab"))]
            QueueEnds::Study(ends) => ends.has_some(),
            QueueEnds::Mesh(mesh) => mesh.has_some(),
        }
    }

    /// Whether a response is there.
    #[inline]
    pub(super) fn has_response(&mut self) -> bool {
        match self {
            QueueEnds::Owner => false,
            #[cfg(any(test, feature = "lab"))]
            QueueEnds::Study(ends) => ends.has_response(),
            QueueEnds::Mesh(mesh) => mesh.has_response(),
        }
    }

    /// Returns the room of taken messages; adds the workers that waited for it, which must be woken.
    pub(super) fn return_room(&mut self, room_waiters: &mut Vec<usize>) {
        match self {
            QueueEnds::Owner => {}
            #[cfg(any(test, feature = "lab"))]
            QueueEnds::Study(ends) => ends.return_room(room_waiters),
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
        #[cfg(any(test, feature = "lab"))]
        if let QueueEnds::Study(ends) = self {
            ends.collect();
        }
    }

    /// About to sleep. False: something has arrived.
    pub(super) fn arm(&mut self) -> bool {
        match self {
            #[cfg(any(test, feature = "lab"))]
            QueueEnds::Study(ends) => ends.arm(),
            QueueEnds::Owner | QueueEnds::Mesh(_) => true,
        }
    }

    /// No longer asleep. True: nothing arrived during the sleep; messages found from now on needed no announcement.
    /// False: that is unknown.
    pub(super) fn disarm(&mut self) -> bool {
        match self {
            #[cfg(any(test, feature = "lab"))]
            QueueEnds::Study(ends) => ends.disarm(),
            QueueEnds::Owner | QueueEnds::Mesh(_) => false,
        }
    }
}

/// Most messages that a ring holds back until the end of the turn.
const EARLY: u32 = 64;
