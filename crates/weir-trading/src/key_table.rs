//! Finds places in a [`Slab`](crate::slab::Slab) by 64-bit keys. The values in the slab contain the keys, so a cell
//! is only a place and 32 bits of the key's hash: eight fit into a cache line, and a hash matches wrongly about once
//! in thousands of millions.
//!
//! Open addressing by whole lines, at most half full: **a key is in its home line or, if that was full, in the first
//! line behind it that was not.** This invariant holds at all times: every line from a key's home line to the one
//! before its own is full, and a line that is not full ends a search. Removing a key from a line that is not full
//! needs no repair; removing one from a full line moves back a key that had passed over that line. There are no
//! tombstones, and a table is as fast after a day of use as a new one.
//!
//! Eight consecutive keys share a home line, and each has its preferred cell there, which it gets if the cell is
//! empty: the next number of an account is usually found where the last one was. The table is not hardened against
//! keys chosen to collide: keys come from logged-in clients, and probing is bounded by the capacity.

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

const EMPTY: Cell = Cell { tag: 0, place: NONE };

impl Cell {
    #[inline]
    fn is_empty(&self) -> bool {
        self.place == NONE
    }
}

const CELLS_OF_LINE: usize = 8;

/// The cells of one cache line, in no order.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line([Cell; CELLS_OF_LINE]);

impl Line {
    /// The cell that satisfies `is_it`. The tag's preferred cell is checked first.
    #[inline]
    fn find(&self, tag: u32, is_it: impl Fn(&Cell) -> bool) -> Option<usize> {
        let own = own_cell(tag);
        if is_it(&self.0[own]) { Some(own) } else { self.0.iter().position(is_it) }
    }

    /// An empty cell for a tag: the preferred one if possible.
    #[inline]
    fn empty_for(&mut self, tag: u32) -> Option<&mut Cell> {
        let own = own_cell(tag);
        if self.0[own].is_empty() {
            return Some(&mut self.0[own]);
        }
        self.0.iter_mut().find(|cell| cell.is_empty())
    }

    /// All cells are checked, because any of them may be the empty one.
    #[inline]
    fn is_full(&self) -> bool {
        self.0.iter().fold(true, |is_full, cell| is_full & !cell.is_empty())
    }
}

impl KeyTable {
    pub(crate) fn new(capacity: usize) -> Self {
        let cells = (capacity * 2).next_power_of_two().max(2 * CELLS_OF_LINE);
        let lines = cells / CELLS_OF_LINE;
        Self {
            lines: vec![Line([EMPTY; CELLS_OF_LINE]); lines].into_boxed_slice(),
            mask: lines - 1,
            shift: 32 - lines.trailing_zeros(),
            len: 0,
            capacity,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The place of a key. `is_its` says whether the value at a place has this key.
    #[inline]
    pub(crate) fn get(&self, key: u64, is_its: impl Fn(u32) -> bool) -> Option<u32> {
        let tag = tag(key);
        let is_it = |cell: &Cell| cell.tag == tag && !cell.is_empty() && is_its(cell.place);
        let mut at = self.home(tag);
        // At least half of the cells are empty, so the loop reaches a line that is not full.
        loop {
            let line = &self.lines[at];
            if let Some(cell) = line.find(tag, is_it) {
                return Some(line.0[cell].place);
            }
            if !line.is_full() {
                return None;
            }
            at = (at + 1) & self.mask;
        }
    }

    /// Adds a key that is not in the table. If the table is full, returns false and changes nothing.
    #[must_use]
    pub(crate) fn insert(&mut self, key: u64, place: u32) -> bool {
        debug_assert_ne!(place, NONE, "it marks empty cells");
        if self.len >= self.capacity {
            return false;
        }
        let tag = tag(key);
        let mut at = self.home(tag);
        loop {
            if let Some(cell) = self.lines[at].empty_for(tag) {
                *cell = Cell { tag, place };
                self.len += 1;
                return true;
            }
            at = (at + 1) & self.mask;
        }
    }

    /// Removes a key and its place, which must be in the table.
    pub(crate) fn remove(&mut self, key: u64, place: u32) {
        let tag = tag(key);
        let mut at = self.home(tag);
        let cell = loop {
            let line = &self.lines[at];
            if let Some(cell) = line.find(tag, |cell| cell.place == place) {
                break cell;
            }
            assert!(line.is_full(), "what is removed is there");
            at = (at + 1) & self.mask;
        };
        self.remove_at(at, cell);
    }

    /// Keeps the places for which `keep` is true. It scans the whole table, so it is for rare occasions.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) {
        let mut at = 0;
        while at < self.lines.len() * CELLS_OF_LINE {
            let (line, cell) = (at / CELLS_OF_LINE, at % CELLS_OF_LINE);
            let place = self.lines[line].0[cell].place;
            if place != NONE && !keep(place) {
                // Check the cell again, because another entry may have moved into it. An entry that wraps round to
                // the end of the table is checked twice, which is harmless because `keep` gives the same answer.
                self.remove_at(line, cell);
            } else {
                at += 1;
            }
        }
    }

    /// Empties a cell. If its line was full, entries that had passed over it may lie behind: in lines that are full
    /// too, or in the first that is not. One of these moves into the cell, and its old cell is emptied in the same
    /// way.
    fn remove_at(&mut self, line: usize, cell: usize) {
        let (mut hole, mut hole_cell) = (line, cell);
        let mut was_full = self.lines[line].is_full();
        self.lines[line].0[cell] = EMPTY;
        self.len -= 1;
        let mut at = line;
        while was_full {
            at = (at + 1) & self.mask;
            was_full = self.lines[at].is_full();
            if let Some(passed) = self.passed_over(hole, at) {
                self.lines[hole].0[hole_cell] = std::mem::replace(&mut self.lines[at].0[passed], EMPTY);
                (hole, hole_cell) = (at, passed);
            }
        }
    }

    /// A cell of the line `at` whose home is `line` or before it.
    fn passed_over(&self, line: usize, at: usize) -> Option<usize> {
        let behind = |other: usize| at.wrapping_sub(other) & self.mask;
        let has_passed = |cell: &Cell| !cell.is_empty() && behind(self.home(cell.tag)) >= behind(line);
        self.lines[at].0.iter().position(has_passed)
    }

    /// The upper bits of a tag choose the line.
    #[inline]
    fn home(&self, tag: u32) -> usize {
        (u64::from(tag) >> self.shift) as usize
    }
}

/// The lowest three bits of a tag choose the preferred cell.
#[inline]
fn own_cell(tag: u32) -> usize {
    tag as usize % CELLS_OF_LINE
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

    const CAPACITY: usize = 16;
    const KEYS: u64 = 40;

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

    /// Keys for a table of [`CAPACITY`], far apart.
    fn spread_keys() -> Vec<u64> {
        (0..KEYS).map(|index: u64| index << 29 | index).collect()
    }

    /// Keys whose homes are its last two lines, which are too few for them: they continue at its beginning.
    fn crowded_keys() -> Vec<u64> {
        let table = KeyTable::new(CAPACITY);
        let is_crowded = |key: &u64| table.home(tag(*key)) + 2 >= table.lines.len();
        (0_u64..).map(|step| (step << 3) | (step % 8)).filter(is_crowded).take(KEYS as usize).collect()
    }

    /// For each key, whether every line that a search visits before the key's line is full.
    fn are_all_reachable(table: &KeyTable) -> bool {
        let is_reachable = |line: usize, cell: &Cell| {
            let mut at = table.home(cell.tag);
            while at != line && table.lines[at].is_full() {
                at = (at + 1) & table.mask;
            }
            at == line
        };
        let of_line = |(index, line): (usize, &Line)| {
            line.0.iter().filter(|cell| !cell.is_empty()).all(|cell| is_reachable(index, cell))
        };
        table.lines.iter().enumerate().all(of_line)
    }

    /// Compares a table with a plain list while keys are added and removed. The place of a key is its index here.
    fn agrees(keys: &[u64], steps: Vec<(usize, u8, u32)>) -> Result<(), TestCaseError> {
        let mut table = KeyTable::new(CAPACITY);
        let mut plain = [false; KEYS as usize];
        for (index, action, value) in steps {
            let (key, place) = (keys[index], index as u32);
            let len = plain.iter().filter(|is_there| **is_there).count();
            match (action, plain[index]) {
                (0..=3, false) => {
                    prop_assert_eq!(table.insert(key, place), len < CAPACITY);
                    plain[index] = len < CAPACITY;
                }
                (4..=6, true) => {
                    table.remove(key, place);
                    plain[index] = false;
                }
                (7, _) => {
                    table.retain(|kept| kept % 5 != value);
                    let is_gone = |index: &usize| *index as u32 % 5 == value;
                    (0..plain.len()).filter(is_gone).for_each(|index| plain[index] = false);
                }
                _ => {}
            }
            prop_assert_eq!(table.len(), plain.iter().filter(|is_there| **is_there).count());
            prop_assert!(are_all_reachable(&table));
            for (index, is_there) in plain.iter().enumerate() {
                let found = table.get(keys[index], |place| keys[place as usize] == keys[index]);
                prop_assert_eq!(found, is_there.then_some(index as u32));
            }
        }
        Ok(())
    }

    fn any_steps() -> impl Strategy<Value = Vec<(usize, u8, u32)>> {
        prop::collection::vec((0..KEYS as usize, 0_u8..8, 0_u32..5), 0..400)
    }

    #[test]
    fn keys_for_one_line_fill_it_and_go_on_behind_the_end_until_there_is_room_again() {
        let mut table = KeyTable::new(CAPACITY);
        let last = table.lines.len() - 1;
        let of_last = |key: &u64| table.home(tag(*key)) == last;
        let keys: Vec<u64> = (0_u64..).map(|step| step << 3).filter(of_last).take(CAPACITY).collect();
        let counts = |table: &KeyTable| {
            table
                .lines
                .iter()
                .map(|line| line.0.iter().filter(|cell| !cell.is_empty()).count())
                .collect::<Vec<_>>()
        };
        for (key, place) in keys.iter().zip(0..) {
            assert!(table.insert(*key, place));
        }
        assert_eq!(counts(&table), [8, 0, 0, 8]);
        // The first ones are in their home line: removing each makes room there for one that is past the end.
        for (key, place) in keys.iter().zip(0..).take(8) {
            table.remove(*key, place);
            assert!(are_all_reachable(&table));
        }
        assert_eq!(counts(&table), [0, 0, 0, 8]);
        for (key, place) in keys.iter().zip(0..).skip(8) {
            assert_eq!(table.get(*key, |found| found == place), Some(place));
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_plain_list(steps in any_steps()) {
            agrees(&spread_keys(), steps)?;
        }

        /// Full lines, entries that pass over them and the wrap at the table's end all occur often.
        #[test]
        fn it_agrees_with_a_plain_list_also_where_lines_are_full(steps in any_steps()) {
            agrees(&crowded_keys(), steps)?;
        }
    }
}
