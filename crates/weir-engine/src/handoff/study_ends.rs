//! One worker's ends of the queues that are only there to be compared with the rings: locked and armed ones.

use super::{Options, Priority, Strategy, armed, locked};

/// The ends of one worker: a sender for each other worker, and its own queue.
pub(super) enum StudyEnds<T> {
    Locked { out: Vec<Option<locked::Sender<T>>>, inward: locked::Receiver<T> },
    Armed { out: Vec<Option<armed::Sender<T>>>, inward: armed::Receiver<T> },
}

/// The ends of all workers, in their order: armed queues for `armed`, otherwise locked ones.
pub(super) fn study_ends<T>(workers: usize, options: &Options) -> impl Iterator<Item = StudyEnds<T>> {
    let (slots, strategy) = (options.ring_slots, options.strategy);
    let ends: Vec<StudyEnds<T>> = if strategy == Strategy::Armed {
        let queues = (0..workers).map(|_| armed::queue(workers, slots));
        transposed(queues.collect()).map(|(out, inward)| StudyEnds::Armed { out, inward }).collect()
    } else {
        let queues = (0..workers).map(|_| locked::queue(workers, slots, strategy == Strategy::Naive));
        transposed(queues.collect()).map(|(out, inward)| StudyEnds::Locked { out, inward }).collect()
    };
    ends.into_iter()
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

impl<T> StudyEnds<T> {
    #[inline]
    pub(super) fn put(&mut self, to: usize, priority: Priority, message: T) -> Result<bool, T> {
        match self {
            Self::Locked { out, .. } => match &mut out[to] {
                Some(sender) => sender.push(priority, message),
                None => Err(message),
            },
            Self::Armed { out, .. } => match &mut out[to] {
                Some(sender) => sender.push(priority, message),
                None => Err(message),
            },
        }
    }

    pub(super) fn await_room(&mut self, to: usize, priority: Priority) -> bool {
        match self {
            Self::Locked { out, .. } => out[to].as_mut().is_none_or(|sender| sender.await_room(priority)),
            Self::Armed { out, .. } => out[to].as_mut().is_none_or(|sender| sender.await_room(priority)),
        }
    }

    #[inline]
    pub(super) fn take(&mut self, priority: Priority) -> Option<(usize, T)> {
        match self {
            Self::Locked { inward, .. } => inward.pop(priority),
            Self::Armed { inward, .. } => inward.pop(priority),
        }
    }

    #[inline]
    pub(super) fn has_some(&mut self) -> bool {
        match self {
            Self::Locked { inward, .. } => inward.has_some(),
            Self::Armed { inward, .. } => inward.has_some(),
        }
    }

    #[inline]
    pub(super) fn has_response(&mut self) -> bool {
        match self {
            Self::Locked { inward, .. } => inward.has_some_of(Priority::Response),
            Self::Armed { inward, .. } => inward.has_some_of(Priority::Response),
        }
    }

    pub(super) fn return_room(&mut self, room_waiters: &mut Vec<usize>) {
        match self {
            Self::Locked { inward, .. } => inward.return_room(room_waiters),
            Self::Armed { inward, .. } => inward.return_room(room_waiters),
        }
    }

    pub(super) fn collect(&mut self) {
        if let Self::Armed { inward, .. } = self {
            inward.drain();
        }
    }

    pub(super) fn arm(&mut self) -> bool {
        match self {
            Self::Armed { inward, .. } => inward.arm(),
            Self::Locked { .. } => true,
        }
    }

    pub(super) fn disarm(&mut self) -> bool {
        if let Self::Armed { inward, .. } = self { inward.disarm() } else { false }
    }
}
