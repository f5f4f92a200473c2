//! Sockets whose handle is gone and that wait for their peers: their deadlines, and the moments when a drain checks
//! them.
//!
//! It knows times and names, and no socket: the driver says which are gone, and acts when a time is due.

use std::{collections::VecDeque, time::Duration};

use crate::{clock::Instant, slab::SlotId};

/// Interval at which a drain checks whether peers have received everything.
const DRAIN_LOOK: Duration = Duration::from_millis(10);

/// Lingering sockets, in order of deadline.
#[derive(Debug, Default)]
pub(super) struct Lingering {
    sockets: VecDeque<(Instant, SlotId)>,
    look_at: Option<Instant>,
}

impl Lingering {
    /// Limits how long a socket may take, unless an earlier limit already applies. Entries at the front whose sockets
    /// are gone are removed.
    pub(super) fn add(&mut self, until: Instant, id: SlotId, is_gone: impl Fn(SlotId) -> bool) {
        while self.sockets.front().is_some_and(|(_, front)| is_gone(*front)) {
            self.sockets.pop_front();
        }
        self.sockets.push_back((until, id));
    }

    /// The next socket whose deadline has passed; it may already be gone.
    pub(super) fn take_expired(&mut self, now: Instant) -> Option<SlotId> {
        let (until, id) = *self.sockets.front()?;
        if until > now {
            return None;
        }
        self.sockets.pop_front();
        Some(id)
    }

    /// Removes a socket that is closed.
    pub(super) fn forget(&mut self, id: SlotId) {
        self.sockets.retain(|(_, other)| *other != id);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }

    /// Plans a drain's next check, unless an earlier one is already planned.
    pub(super) fn plan_look(&mut self, now: Instant) {
        self.look_at.get_or_insert(now + DRAIN_LOOK);
    }

    /// Whether the planned check is due. If so the plan is cleared.
    pub(super) fn take_look(&mut self, now: Instant) -> bool {
        self.look_at.take_if(|at| *at <= now).is_some()
    }

    /// The next moment when something is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let first = self.sockets.front().map(|(until, _)| *until);
        first.into_iter().chain(self.look_at).min()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = SlotId> {
        self.sockets.iter().map(|(_, id)| *id)
    }

    /// Their number, including those that are gone.
    pub(super) fn len(&self) -> usize {
        self.sockets.len()
    }

    /// The socket at a position, counted from the earliest deadline.
    pub(super) fn at(&self, place: usize) -> SlotId {
        self.sockets[place].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(index: u32) -> SlotId {
        SlotId { index, generation: 0 }
    }

    fn after_ms(count: u64) -> Instant {
        Instant::from_nanos(count * 1_000_000)
    }

    #[test]
    fn sockets_are_given_out_when_their_time_is_over_and_the_earliest_first() {
        let mut lingering = Lingering::default();
        assert_eq!((lingering.deadline(), lingering.take_expired(after_ms(9))), (None, None));
        for number in 1..=3 {
            lingering.add(after_ms(u64::from(number)), id(number), |_| false);
        }
        assert_eq!((lingering.deadline(), lingering.take_expired(after_ms(0))), (Some(after_ms(1)), None));
        let over: Vec<SlotId> = std::iter::from_fn(|| lingering.take_expired(after_ms(2))).collect();
        assert_eq!((over, lingering.len(), lingering.at(0)), (vec![id(1), id(2)], 1, id(3)));
    }

    #[test]
    fn those_that_are_gone_leave_at_the_front() {
        let mut lingering = Lingering::default();
        for number in 0..1000 {
            // 99 of 100 sockets are closed by the time the next one is.
            lingering.add(after_ms(5000), id(number), |id| id.index % 100 > 0 || id.index + 100 < number);
            assert!(lingering.len() <= 102, "{}", lingering.len());
        }
    }

    #[test]
    fn a_look_is_due_once_and_as_early_as_it_was_asked_for() {
        let mut lingering = Lingering::default();
        lingering.plan_look(after_ms(0));
        lingering.plan_look(after_ms(5));
        assert_eq!(lingering.deadline(), Some(after_ms(10)));
        assert!(!lingering.take_look(after_ms(9)) && lingering.take_look(after_ms(10)));
        assert!(!lingering.take_look(after_ms(99)));
        lingering.add(after_ms(40), id(1), |_| false);
        lingering.plan_look(after_ms(99));
        assert_eq!(lingering.deadline(), Some(after_ms(40)));
    }
}
