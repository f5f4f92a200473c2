//! A bounded map from 64-bit keys to 32-bit values. Open addressing with linear probing, at most half full; a
//! removal closes the gap, so there are no tombstones and a table that is used for a day is as fast as a new one.
//! Four neighbouring keys share a cache line: the next number of an account is mostly found where the last one was.
//! Not hardened against keys chosen to collide: keys come from clients that are logged in, and probing is bounded
//! by the capacity.

use crate::slab::NONE;

pub(crate) struct KeyTable {
    lines: Box<[Line]>,
    mask: usize,
    shift: u32,
    len: usize,
    capacity: usize,
}

/// A key and its value; `NONE` as the value marks an empty cell.
#[derive(Clone, Copy)]
struct Cell {
    key: u64,
    value: u32,
}

/// The cells of one cache line.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line([Cell; 4]);

const EMPTY: Cell = Cell { key: 0, value: NONE };

impl KeyTable {
    pub(crate) fn new(capacity: usize) -> Self {
        let cells = (capacity * 2).next_power_of_two().max(8);
        Self {
            lines: vec![Line([EMPTY; 4]); cells / 4].into_boxed_slice(),
            mask: cells - 1,
            shift: 64 - (cells / 4).trailing_zeros(),
            len: 0,
            capacity,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len >= self.capacity
    }

    pub(crate) fn get(&self, key: u64) -> Option<u32> {
        let cell = *self.cell(self.find(key));
        (cell.value != NONE).then_some(cell.value)
    }

    /// Sets the value of a key. False, and nothing changes, when the key is new and the table is full.
    #[must_use]
    pub(crate) fn insert(&mut self, key: u64, value: u32) -> bool {
        debug_assert_ne!(value, NONE, "it marks empty cells");
        let at = self.find(key);
        if self.cell(at).value == NONE {
            if self.is_full() {
                return false;
            }
            self.len += 1;
        }
        *self.cell_mut(at) = Cell { key, value };
        true
    }

    pub(crate) fn remove(&mut self, key: u64) -> Option<u32> {
        let mut hole = self.find(key);
        let removed = self.cell(hole).value;
        if removed == NONE {
            return None;
        }
        let mut next = (hole + 1) & self.mask;
        loop {
            let cell = *self.cell(next);
            if cell.value == NONE {
                break;
            }
            // A cell may move back into the hole unless that would put it before its home.
            let home = self.home(cell.key);
            if next.wrapping_sub(home) & self.mask >= next.wrapping_sub(hole) & self.mask {
                *self.cell_mut(hole) = cell;
                hole = next;
            }
            next = (next + 1) & self.mask;
        }
        *self.cell_mut(hole) = EMPTY;
        self.len -= 1;
        Some(removed)
    }

    /// Keeps the entries for which `keep` is true. It costs the whole table, so it is for rare occasions.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(u64, u32) -> bool) {
        let mut at = 0;
        while at <= self.mask {
            let cell = *self.cell(at);
            if cell.value != NONE && !keep(cell.key, cell.value) {
                // What moves into this place is looked at next. A cell that wraps round to the end of the table
                // is looked at twice, which `keep` cannot tell from once.
                self.remove(cell.key);
            } else {
                at += 1;
            }
        }
    }

    /// The cell of a key, or the empty one where it would go. The table is never full, so this ends.
    fn find(&self, key: u64) -> usize {
        let mut at = self.home(key);
        loop {
            let cell = self.cell(at);
            if cell.value == NONE || cell.key == key {
                return at;
            }
            at = (at + 1) & self.mask;
        }
    }

    /// Fibonacci hashing chooses the line, so that lines are used evenly; the low bits of the key the cell in it.
    fn home(&self, key: u64) -> usize {
        let line = (key >> 2 ^ key >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift;
        (line << 2 | key & 3) as usize
    }

    fn cell(&self, at: usize) -> &Cell {
        &self.lines[at >> 2].0[at & 3]
    }

    fn cell_mut(&mut self, at: usize) -> &mut Cell {
        &mut self.lines[at >> 2].0[at & 3]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_table_refuses_new_keys_and_still_changes_old_ones() {
        let mut table = KeyTable::new(2);
        assert!(table.insert(1, 10) && table.insert(2, 20));
        assert!(!table.insert(3, 30));
        assert!(table.insert(2, 21));
        assert_eq!((table.get(1), table.get(2), table.get(3), table.len()), (Some(10), Some(21), None, 2));
    }

    proptest! {
        /// Few distinct keys in a small table, so that runs, gaps and the wrap at its end are met all the time.
        #[test]
        fn it_agrees_with_a_plain_map(steps in prop::collection::vec((0_u64..40, 0_u8..8, 0_u32..9), 0..400)) {
            let mut table = KeyTable::new(16);
            let mut plain = HashMap::new();
            for (key, action, value) in steps {
                let key = key << 29 | key;
                match action {
                    0..=3 => {
                        let fits = plain.contains_key(&key) || plain.len() < 16;
                        prop_assert_eq!(table.insert(key, value), fits);
                        if fits {
                            plain.insert(key, value);
                        }
                    }
                    4..=6 => prop_assert_eq!(table.remove(key), plain.remove(&key)),
                    _ => {
                        table.retain(|_, kept| kept != value);
                        plain.retain(|_, kept| *kept != value);
                    }
                }
                prop_assert_eq!(table.len(), plain.len());
                for (key, value) in &plain {
                    prop_assert_eq!(table.get(*key), Some(*value));
                }
            }
        }
    }
}
