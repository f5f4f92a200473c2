//! A slab whose keys carry a generation: a key from the past never reaches a later tenant of the same place.
//!
//! Pure. The maximum is fixed at construction; a vacant place is reused last-in, first-out.

/// Names one tenancy of one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlotId {
    pub(crate) index: u32,
    /// Only the lower 24 bits are used, so that it fits into a kernel token beside the index and a kind.
    pub(crate) generation: u32,
}

/// Mask of the generation bits.
pub(crate) const GENERATION_MASK: u32 = (1 << 24) - 1;

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    tenant: Option<T>,
}

/// The slab.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    places: Vec<Place<T>>,
    vacant: Vec<u32>,
    maximum: usize,
}

impl<T> Slots<T> {
    pub(crate) fn new(maximum: usize) -> Self {
        Self { places: Vec::new(), vacant: Vec::new(), maximum: maximum.min(u32::MAX as usize - 1) }
    }

    /// Number of tenants.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.vacant.len()
    }

    /// Moves a tenant in; gives it back when the maximum is reached.
    pub(crate) fn insert(&mut self, tenant: T) -> Result<SlotId, T> {
        if let Some(index) = self.vacant.pop() {
            let place = &mut self.places[index as usize];
            place.tenant = Some(tenant);
            return Ok(SlotId { index, generation: place.generation });
        }
        if self.places.len() >= self.maximum {
            return Err(tenant);
        }
        let index = self.places.len() as u32;
        self.places.push(Place { generation: 0, tenant: Some(tenant) });
        Ok(SlotId { index, generation: 0 })
    }

    #[inline]
    pub(crate) fn get(&self, id: SlotId) -> Option<&T> {
        let place = self.places.get(id.index as usize)?;
        if place.generation == id.generation { place.tenant.as_ref() } else { None }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: SlotId) -> Option<&mut T> {
        let place = self.places.get_mut(id.index as usize)?;
        if place.generation == id.generation { place.tenant.as_mut() } else { None }
    }

    /// Moves the tenant out; the place's next tenant has another generation.
    pub(crate) fn remove(&mut self, id: SlotId) -> Option<T> {
        let place = self.places.get_mut(id.index as usize)?;
        if place.generation != id.generation {
            return None;
        }
        let tenant = place.tenant.take()?;
        place.generation = (place.generation + 1) & GENERATION_MASK;
        self.vacant.push(id.index);
        Some(tenant)
    }

    /// All keys in use, in order of their place.
    pub(crate) fn ids(&self) -> Vec<SlotId> {
        let used = self.places.iter().enumerate().filter(|(_, place)| place.tenant.is_some());
        used.map(|(index, place)| SlotId { index: index as u32, generation: place.generation }).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_from_the_past_finds_nobody() {
        let mut slots = Slots::new(4);
        let old = slots.insert('a').unwrap();
        assert_eq!(slots.remove(old), Some('a'));
        let new = slots.insert('b').unwrap();
        assert_eq!(old.index, new.index);
        assert_eq!(slots.get(old), None);
        assert_eq!(slots.remove(old), None);
        assert_eq!(slots.get(new), Some(&'b'));
    }

    #[test]
    fn the_maximum_holds_and_gives_the_tenant_back() {
        let mut slots = Slots::new(2);
        slots.insert(1).unwrap();
        let second = slots.insert(2).unwrap();
        assert_eq!(slots.insert(3), Err(3));
        slots.remove(second);
        assert!(slots.insert(3).is_ok());
    }

    proptest! {
        #[test]
        fn behaves_like_a_map(operations in prop::collection::vec((any::<bool>(), any::<u16>()), 0..200)) {
            let mut slots = Slots::new(64);
            let mut model: HashMap<SlotId, u16> = HashMap::new();
            let mut issued: Vec<SlotId> = Vec::new();
            for (insert, value) in operations {
                if insert {
                    match slots.insert(value) {
                        Ok(id) => {
                            prop_assert!(model.insert(id, value).is_none());
                            issued.push(id);
                        }
                        Err(_) => prop_assert_eq!(model.len(), 64),
                    }
                } else if !issued.is_empty() {
                    let id = issued[usize::from(value) % issued.len()];
                    prop_assert_eq!(slots.remove(id), model.remove(&id));
                }
                prop_assert_eq!(slots.len(), model.len());
                for id in &issued {
                    prop_assert_eq!(slots.get(*id), model.get(id));
                }
            }
        }
    }
}
