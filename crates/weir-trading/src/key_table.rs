//! Finds places in a [`Slab`](crate::slab::Slab) by 64-bit keys. The keys themselves are with what lies there, so a
//! cell is a place and 32 bits of the key's hash: eight to a cache line, and the hash is right but for one time in
//! thousands of millions.
//!
//! Open addressing with linear probing, at most half full; a removal closes the gap, so there are no tombstones and a
//! table that is used for a day is as fast as a new one. Eight neighbouring keys share a cache line: the next number of
//! an account is mostly found where the last one was. Not hardened against keys chosen to collide: keys come from
//! clients that are logged in, and probing is bounded by the capacity.

use crate::slab::NONE;

pub(crate) struct KeyTable {
    lines: Box<[Line]>,
    mask: usize,
    shift: u32,
    len: usize,
    capacity: usize,
}

/// `NONE` as the place marks an empty cell.
#[derive(Clone, Copy)]
struct Cell {
    tag: u32,
    place: u32,
}

/// The cells of one cache line.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line([Cell; 8]);

const EMPTY: Cell = Cell { tag: 0, place: NONE };

impl KeyTable {
    pub(crate) fn new(capacity: usize) -> Self {
        let cells = (capacity * 2).next_power_of_two().max(16);
        let lines = cells / 8;
        Self {
            lines: vec![Line([EMPTY; 8]); lines].into_boxed_slice(),
            mask: cells - 1,
            shift: 32 - lines.trailing_zeros(),
            len: 0,
            capacity,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The place of a key. `is_its` says whether what lies at a place has this key.
    #[inline]
    pub(crate) fn get(&self, key: u64, is_its: impl Fn(u32) -> bool) -> Option<u32> {
        let tag = tag(key);
        let mut at = self.home(tag);
        // The table is never full, so an empty cell comes.
        loop {
            let cell = self.cell(at);
            if cell.place == NONE {
                return None;
            }
            if cell.tag == tag && is_its(cell.place) {
                return Some(cell.place);
            }
            at = (at + 1) & self.mask;
        }
    }

    /// Adds a key that is not there. False, and nothing changes, when the table is full.
    #[must_use]
    pub(crate) fn insert(&mut self, key: u64, place: u32) -> bool {
        debug_assert_ne!(place, NONE, "it marks empty cells");
        if self.len >= self.capacity {
            return false;
        }
        let tag = tag(key);
        let mut at = self.home(tag);
        while self.cell(at).place != NONE {
            at = (at + 1) & self.mask;
        }
        *self.cell_mut(at) = Cell { tag, place };
        self.len += 1;
        true
    }

    /// Removes a key and its place, which must be there.
    pub(crate) fn remove(&mut self, key: u64, place: u32) {
        let mut at = self.home(tag(key));
        while self.cell(at).place != place {
            assert_ne!(self.cell(at).place, NONE, "what is removed is there");
            at = (at + 1) & self.mask;
        }
        self.remove_at(at);
    }

    /// Keeps the places for which `keep` is true. It costs the whole table, so it is for rare occasions.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) {
        let mut at = 0;
        while at <= self.mask {
            let place = self.cell(at).place;
            if place != NONE && !keep(place) {
                // What moves into this cell is looked at next. One that wraps round to the end of the table is
                // looked at twice, which `keep` cannot tell from once.
                self.remove_at(at);
            } else {
                at += 1;
            }
        }
    }

    fn remove_at(&mut self, at: usize) {
        let mut hole = at;
        let mut next = (at + 1) & self.mask;
        loop {
            let cell = *self.cell(next);
            if cell.place == NONE {
                break;
            }
            // A cell may move back into the hole unless that would put it before its home.
            let home = self.home(cell.tag);
            if next.wrapping_sub(home) & self.mask >= next.wrapping_sub(hole) & self.mask {
                *self.cell_mut(hole) = cell;
                hole = next;
            }
            next = (next + 1) & self.mask;
        }
        *self.cell_mut(hole) = EMPTY;
        self.len -= 1;
    }

    /// The upper bits of a tag choose the line, its lowest three the cell in it.
    #[inline]
    fn home(&self, tag: u32) -> usize {
        (u64::from(tag) >> self.shift << 3) as usize | (tag & 7) as usize
    }

    #[inline]
    fn cell(&self, at: usize) -> &Cell {
        &self.lines[at >> 3].0[at & 7]
    }

    #[inline]
    fn cell_mut(&mut self, at: usize) -> &mut Cell {
        &mut self.lines[at >> 3].0[at & 7]
    }
}

/// Fibonacci hashing of all but the lowest three bits, which are kept.
#[inline]
fn tag(key: u64) -> u32 {
    let mixed = (key >> 3 ^ key >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    mixed as u32 & !7 | (key & 7) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_table_refuses_new_keys() {
        let mut table = KeyTable::new(2);
        assert!(table.insert(1, 10) && table.insert(2, 20));
        assert!(!table.insert(3, 30));
        table.remove(1, 10);
        assert!(table.insert(3, 30));
        assert_eq!(
            (table.get(1, |_| true), table.get(3, |place| place == 30), table.len()),
            (None, Some(30), 2)
        );
    }

    #[test]
    fn keys_of_one_tag_are_told_apart_by_what_lies_at_their_place() {
        let mut seen = HashMap::new();
        let (key, twin) = (1_u64..1 << 19)
            .map(|step| step.wrapping_mul(0xD6E8_FEB8_6659_FD93) & !7)
            .find_map(|key| seen.insert(tag(key), key).map(|twin| (key, twin)))
            .expect("among half a million keys some have one tag");
        let mut table = KeyTable::new(8);
        assert!(table.insert(key, 1) && table.insert(twin, 2));
        assert_eq!(table.get(key, |place| place == 1), Some(1));
        assert_eq!(table.get(twin, |place| place == 2), Some(2));
        assert_eq!(table.get(key, |_| false), None);
    }

    proptest! {
        /// Few distinct keys in a small table, so that runs, gaps and the wrap at its end are met all the time.
        #[test]
        fn it_agrees_with_a_plain_list(steps in prop::collection::vec((0_usize..40, 0_u8..8, 0_u32..5), 0..400)) {
            let mut table = KeyTable::new(16);
            // The place of a key is its index here.
            let keys: Vec<u64> = (0..40).map(|index: u64| index << 29 | index).collect();
            let mut plain = [false; 40];
            for (index, action, value) in steps {
                let (key, place) = (keys[index], index as u32);
                let len = plain.iter().filter(|is_there| **is_there).count();
                match (action, plain[index]) {
                    (0..=3, false) => {
                        prop_assert_eq!(table.insert(key, place), len < 16);
                        plain[index] = len < 16;
                    }
                    (4..=6, true) => {
                        table.remove(key, place);
                        plain[index] = false;
                    }
                    (7, _) => {
                        table.retain(|kept| kept % 5 != value);
                        (0..40).filter(|index| index % 5 == value as usize).for_each(|index| plain[index] = false);
                    }
                    _ => {}
                }
                prop_assert_eq!(table.len(), plain.iter().filter(|is_there| **is_there).count());
                for (index, is_there) in plain.iter().enumerate() {
                    let found = table.get(keys[index], |place| keys[place as usize] == keys[index]);
                    prop_assert_eq!(found, is_there.then_some(index as u32));
                }
            }
        }
    }
}
