//! Places for values, with a stated maximum. All memory is reserved at creation; the place that was freed last is
//! used next, because it is still in the cache.

/// No place: the end of a list, an absent link.
pub(crate) const NONE: u32 = u32::MAX;

pub(crate) struct Slab<T> {
    values: Vec<T>,
    free: Vec<u32>,
    capacity: usize,
}

impl<T: Copy> Slab<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        assert!(capacity < NONE as usize, "places are numbered with 32 bits");
        Self { values: Vec::with_capacity(capacity), free: Vec::with_capacity(capacity), capacity }
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }

    /// Places that have been in use at some time. Those behind them never were.
    pub(crate) fn places(&self) -> u32 {
        self.values.len() as u32
    }

    /// The values, in the order of their places. It looks at every place.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let mut is_free = vec![false; self.values.len()];
        self.free.iter().for_each(|place| is_free[*place as usize] = true);
        self.values.iter().zip(is_free).filter(|(_, is_free)| !is_free).map(|(value, _)| value)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty() && self.values.len() == self.capacity
    }

    /// A place for the value; `None` when all are in use.
    pub(crate) fn insert(&mut self, value: T) -> Option<u32> {
        if let Some(place) = self.free.pop() {
            self.values[place as usize] = value;
            return Some(place);
        }
        if self.values.len() == self.capacity {
            return None;
        }
        self.values.push(value);
        Some((self.values.len() - 1) as u32)
    }

    /// Frees a place and returns its value. The caller must not use the place any more.
    pub(crate) fn remove(&mut self, place: u32) -> T {
        debug_assert!(self.free.len() > 64 || !self.free.contains(&place), "freed twice");
        self.free.push(place);
        self.values[place as usize]
    }

    pub(crate) fn at(&self, place: u32) -> &T {
        &self.values[place as usize]
    }

    pub(crate) fn at_mut(&mut self, place: u32) -> &mut T {
        &mut self.values[place as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_up_to_the_maximum_and_not_beyond() {
        let mut slab = Slab::new(2);
        assert_eq!((slab.insert('a'), slab.insert('b'), slab.insert('c')), (Some(0), Some(1), None));
        assert!(slab.is_full());
        assert_eq!(slab.remove(0), 'a');
        assert_eq!((slab.len(), slab.is_full()), (1, false));
        assert_eq!(slab.insert('d'), Some(0));
        assert_eq!((*slab.at(0), *slab.at(1)), ('d', 'b'));
    }
}
