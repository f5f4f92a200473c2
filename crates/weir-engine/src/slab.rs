//! A slab whose keys carry a generation: a stale key never reaches a later value of the same entry.
//!
//! Pure. The maximum is fixed at construction; vacant entries are reused last-in, first-out.

/// The key of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlotId {
    pub(crate) index: u32,
    /// Only the lower 24 bits are used, so that it fits into a kernel token with the index and a kind.
    pub(crate) generation: u32,
}

/// Mask of the generation bits.
pub(crate) const GENERATION_MASK: u32 = (1 << 24) - 1;

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

/// The slab.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<Entry<T>>,
    vacant: Vec<u32>,
    maximum: usize,
}

impl<T> Slab<T> {
    pub(crate) fn new(maximum: usize) -> Self {
        Self { entries: Vec::new(), vacant: Vec::new(), maximum: maximum.min(u32::MAX as usize - 1) }
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.vacant.len()
    }

    /// Moves a value in; gives it back when the maximum is reached.
    pub(crate) fn insert(&mut self, value: T) -> Result<SlotId, T> {
        if let Some(index) = self.vacant.pop() {
            let entry = &mut self.entries[index as usize];
            entry.value = Some(value);
            return Ok(SlotId { index, generation: entry.generation });
        }
        if self.entries.len() >= self.maximum {
            return Err(value);
        }
        let index = self.entries.len() as u32;
        self.entries.push(Entry { generation: 0, value: Some(value) });
        Ok(SlotId { index, generation: 0 })
    }

    #[inline]
    pub(crate) fn get(&self, id: SlotId) -> Option<&T> {
        let entry = self.entries.get(id.index as usize)?;
        if entry.generation == id.generation { entry.value.as_ref() } else { None }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: SlotId) -> Option<&mut T> {
        let entry = self.entries.get_mut(id.index as usize)?;
        if entry.generation == id.generation { entry.value.as_mut() } else { None }
    }

    /// Moves the value out; the entry's next value has another generation.
    pub(crate) fn remove(&mut self, id: SlotId) -> Option<T> {
        let entry = self.entries.get_mut(id.index as usize)?;
        if entry.generation != id.generation {
            return None;
        }
        let value = entry.value.take()?;
        entry.generation = (entry.generation + 1) & GENERATION_MASK;
        self.vacant.push(id.index);
        Some(value)
    }

    /// All keys in use, in order of their entry.
    pub(crate) fn ids(&self) -> Vec<SlotId> {
        let used = self.entries.iter().enumerate().filter(|(_, entry)| entry.value.is_some());
        used.map(|(index, entry)| SlotId { index: index as u32, generation: entry.generation }).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_stale_key_finds_nothing() {
        let mut slab = Slab::new(4);
        let old = slab.insert('a').unwrap();
        assert_eq!(slab.remove(old), Some('a'));
        let new = slab.insert('b').unwrap();
        assert_eq!(old.index, new.index);
        assert_eq!(slab.get(old), None);
        assert_eq!(slab.remove(old), None);
        assert_eq!(slab.get(new), Some(&'b'));
    }

    #[test]
    fn the_maximum_holds_and_gives_the_value_back() {
        let mut slab = Slab::new(2);
        slab.insert(1).unwrap();
        let second = slab.insert(2).unwrap();
        assert_eq!(slab.insert(3), Err(3));
        slab.remove(second);
        assert!(slab.insert(3).is_ok());
    }

    proptest! {
        #[test]
        fn behaves_like_a_map(operations in prop::collection::vec((any::<bool>(), any::<u16>()), 0..200)) {
            let mut slab = Slab::new(64);
            let mut model: HashMap<SlotId, u16> = HashMap::new();
            let mut issued: Vec<SlotId> = Vec::new();
            for (insert, value) in operations {
                if insert {
                    match slab.insert(value) {
                        Ok(id) => {
                            prop_assert!(model.insert(id, value).is_none());
                            issued.push(id);
                        }
                        Err(_) => prop_assert_eq!(model.len(), 64),
                    }
                } else if !issued.is_empty() {
                    let id = issued[usize::from(value) % issued.len()];
                    prop_assert_eq!(slab.remove(id), model.remove(&id));
                }
                prop_assert_eq!(slab.len(), model.len());
                for id in &issued {
                    prop_assert_eq!(slab.get(*id), model.get(id));
                }
            }
        }
    }
}
