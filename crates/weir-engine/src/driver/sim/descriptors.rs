//! The descriptors of the simulated process: the lowest free number, and the interest in each.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::network::{Direction, End, Owner, State};
use crate::{driver::readiness::Interest, slab::SlotId};

/// The object behind a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Object {
    Listener(SlotId),
    End(End),
}

/// The interest of a readiness call in one descriptor.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) token: u64,
    pub(super) interest: Interest,
    /// It is in the queue of descriptors to check.
    pub(super) is_queued: bool,
    /// It is reported once although nothing has happened.
    pub(super) spurious: Option<Direction>,
}

/// An open descriptor.
#[derive(Debug)]
pub(super) struct Descriptor {
    serial: u32,
    pub(super) object: Object,
    pub(super) watch: Option<Watch>,
    /// Closing it resets the connection.
    pub(super) resets: bool,
    /// How often it was reported since the last call that named it.
    pub(super) reports: u32,
}

/// All descriptors.
#[derive(Debug)]
pub(super) struct Descriptors {
    places: Vec<Option<Descriptor>>,
    vacant: BinaryHeap<Reverse<u32>>,
    serial: u32,
    maximum: usize,
}

impl Descriptors {
    pub(super) fn new(maximum: u32) -> Self {
        Self { places: Vec::new(), vacant: BinaryHeap::new(), serial: 0, maximum: maximum as usize }
    }

    /// The number of open ones.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.vacant.len()
    }

    /// The number of the next descriptor. `None`: the maximum is reached.
    pub(super) fn lowest_free(&self) -> Option<u32> {
        let next = self.vacant.peek().map_or(self.places.len() as u32, |Reverse(number)| *number);
        (self.len() < self.maximum).then_some(next)
    }

    /// Opens a descriptor; `None`: the maximum is reached.
    pub(super) fn open(&mut self, object: Object) -> Option<u32> {
        let number = self.lowest_free()?;
        self.serial = self.serial.wrapping_add(1);
        let opened = Descriptor { serial: self.serial, object, watch: None, resets: false, reports: 0 };
        if self.vacant.pop().is_some() {
            self.places[number as usize] = Some(opened);
        } else {
            self.places.push(Some(opened));
        }
        Some(number)
    }

    pub(super) fn close(&mut self, number: u32) -> Option<Descriptor> {
        let closed = self.places.get_mut(number as usize)?.take()?;
        self.vacant.push(Reverse(number));
        Some(closed)
    }

    pub(super) fn get(&self, number: u32) -> Option<&Descriptor> {
        self.places.get(number as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Descriptor> {
        self.places.get_mut(number as usize)?.as_mut()
    }

    /// The name of the descriptor that has a number now.
    pub(super) fn owner(&self, number: u32) -> Owner {
        let serial = self.get(number).map_or(0, |descriptor| descriptor.serial);
        u64::from(serial) << 32 | u64::from(number)
    }

    /// The descriptor of this name, if it is still open.
    pub(super) fn owned(&mut self, owner: Owner) -> Option<&mut Descriptor> {
        let serial = (owner >> 32) as u32;
        self.get_mut(owner as u32).filter(|descriptor| descriptor.serial == serial)
    }

    /// The interest list, by token.
    #[cfg(test)]
    pub(super) fn watched(&self) -> Vec<(u64, Interest)> {
        let open = self.places.iter().flatten();
        open.filter_map(|descriptor| descriptor.watch.as_ref())
            .map(|watch| (watch.token, watch.interest))
            .collect()
    }
}

/// The trigger of a readiness call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// Once for each arrival, in both directions: epoll's edge trigger.
    Edge,
    /// As long as the state lasts: epoll's level trigger, and poll.
    Level,
    /// As `Level`, but an end looks like bytes: select.
    Unnamed,
}

impl Trigger {
    /// What a call with this trigger reports of a state for an interest: readable, writable, ended.
    pub(super) fn reported(self, state: State, watch: &Watch) -> (bool, bool, bool) {
        let Interest { read, write } = watch.interest;
        let read = read || self == Trigger::Edge;
        let write = write || self == Trigger::Edge;
        let spurious = |direction| watch.spurious == Some(direction);
        let readable = read && (state.readable || spurious(Direction::In));
        let writable = write && (state.writable || spurious(Direction::Out));
        // The end of both directions is reported regardless of the interest.
        let ended = self != Trigger::Unnamed && (read && state.ended || state.hung_up);
        (readable, writable, ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener(index: u32) -> Object {
        Object::Listener(SlotId { index, generation: 0 })
    }

    #[test]
    fn the_lowest_number_is_given_and_a_name_from_the_past_finds_nobody() {
        let mut descriptors = Descriptors::new(3);
        let opened: Vec<_> = (0..4).map(|index| descriptors.open(listener(index))).collect();
        assert_eq!(opened, [Some(0), Some(1), Some(2), None]);
        let old = descriptors.owner(1);
        for number in [2, 1] {
            assert!(descriptors.close(number).is_some());
        }
        assert_eq!((descriptors.len(), descriptors.lowest_free()), (1, Some(1)));
        assert_eq!(descriptors.open(listener(9)), Some(1));
        assert!(descriptors.owned(old).is_none());
        let new = descriptors.owner(1);
        assert_eq!(descriptors.owned(new).map(|descriptor| descriptor.object), Some(listener(9)));
    }
}
