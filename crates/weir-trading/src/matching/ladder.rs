//! The price levels of one side of a book, best first.
//!
//! A ladder is a trie over the 31 bits of a price: a root of 128 places in the ladder, then four levels of nodes with
//! 64 places each; a 64-bit word says which places of a node are in use. The last node is omitted if it would lead to
//! a single price level: prices in whole cents need no last node. Finding a level, adding one, removing one and
//! finding the next best take at most five steps each, for any prices and any number of levels; nearby prices share
//! their nodes, so in practice these steps stay in the first-level cache. The best level is cached.
//!
//! Keys rise from the best price to the worst on both sides: asks use the price itself, bids its complement.
//!
//! Nodes and levels of all ladders of a venue come from one pool. A level exists only while it has an order and needs
//! at most four nodes, which bounds both.

use crate::slab::{NONE, Slab};

/// The largest key.
pub(crate) const KEY_MAX: u32 = (1 << 31) - 1;

/// How far the digit of a node at each depth is shifted; the root's digit is above these.
const SHIFTS: [u32; 4] = [18, 12, 6, 0];
const ROOT_SHIFT: u32 = 24;
/// Nodes on the path to every level; a fourth one exists where two levels share the first three digits.
const DEPTH: usize = 3;
/// Marks a place in a third node that holds a level instead of a fourth node.
const DIRECT: u32 = 1 << 31;

/// Orders of one price, oldest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    pub(crate) shares: u64,
    pub(crate) oldest: u32,
    pub(crate) newest: u32,
    pub(crate) orders: u32,
    pub(crate) key: u32,
}

/// One side of a book: the root of its trie and its best level.
pub(crate) struct Ladder {
    words: [u64; 2],
    children: [u32; 128],
    best: u32,
}

impl Ladder {
    pub(crate) fn new() -> Self {
        Self { words: [0; 2], children: [NONE; 128], best: NONE }
    }

    /// The place of the best level.
    pub(crate) fn best(&self) -> Option<u32> {
        (self.best != NONE).then_some(self.best)
    }

    fn has(&self, digit: usize) -> bool {
        self.words[digit / 64] >> (digit % 64) & 1 == 1
    }
}

/// The nodes and levels of all ladders.
pub(crate) struct Levels {
    levels: Slab<Level>,
    words: Vec<u64>,
    children: Vec<[u32; 64]>,
    free: Vec<u32>,
}

impl Levels {
    /// A pool for at most `levels_max` levels at once. Memory for the most scattered prices is reserved, not touched.
    pub(crate) fn new(levels_max: usize) -> Self {
        let nodes_max = levels_max * SHIFTS.len();
        Self {
            levels: Slab::new(levels_max),
            words: Vec::with_capacity(nodes_max),
            children: Vec::with_capacity(nodes_max),
            free: Vec::with_capacity(nodes_max),
        }
    }

    pub(crate) fn at(&self, place: u32) -> &Level {
        self.levels.at(place)
    }

    pub(crate) fn at_mut(&mut self, place: u32) -> &mut Level {
        self.levels.at_mut(place)
    }

    /// The level of this key, created empty if it did not exist. There must be room: fewer than `levels_max` levels.
    pub(crate) fn find_or_add(&mut self, ladder: &mut Ladder, key: u32) -> u32 {
        if let Some(best) = ladder.best()
            && self.at(best).key == key
        {
            return best;
        }
        let digit = (key >> ROOT_SHIFT) as usize;
        if !ladder.has(digit) {
            ladder.children[digit] = self.add_node();
            ladder.words[digit / 64] |= 1 << (digit % 64);
        }
        let mut node = ladder.children[digit];
        for shift in &SHIFTS[..DEPTH - 1] {
            node = match self.child(node, key >> shift) {
                Some(child) => child,
                None => {
                    let child = self.add_node();
                    self.set_child(node, key >> shift, child);
                    child
                }
            };
        }
        let place = match self.child(node, key >> SHIFTS[DEPTH - 1]) {
            None => {
                let place = self.add_level(key);
                self.set_child(node, key >> SHIFTS[DEPTH - 1], DIRECT | place);
                place
            }
            Some(child) if child & DIRECT == 0 => match self.child(child, key) {
                Some(place) => return place,
                None => self.add_to_leaf(child, key),
            },
            Some(direct) => {
                let other = direct & !DIRECT;
                if self.at(other).key == key {
                    return other;
                }
                let leaf = self.add_node();
                self.set_child(leaf, self.at(other).key, other);
                self.set_child(node, key >> SHIFTS[DEPTH - 1], leaf);
                self.add_to_leaf(leaf, key)
            }
        };
        if ladder.best == NONE || key < self.at(ladder.best).key {
            ladder.best = place;
        }
        place
    }

    /// Removes a level, and the nodes that only it needed.
    pub(crate) fn remove(&mut self, ladder: &mut Ladder, place: u32) {
        let key = self.levels.remove(place).key;
        let root = (key >> ROOT_SHIFT) as usize;
        let mut path = [NONE; 4];
        path[0] = ladder.children[root];
        let mut nodes = 1;
        while nodes < path.len() {
            let child = self.children[path[nodes - 1] as usize][(key >> SHIFTS[nodes - 1] & 63) as usize];
            if child & DIRECT != 0 {
                break;
            }
            path[nodes] = child;
            nodes += 1;
        }
        let mut is_empty = true;
        for depth in (0..nodes).rev() {
            let word = &mut self.words[path[depth] as usize];
            *word &= !(1 << (key >> SHIFTS[depth] & 63));
            is_empty = *word == 0;
            if !is_empty {
                break;
            }
            self.free.push(path[depth]);
        }
        if is_empty {
            ladder.words[root / 64] &= !(1 << (root % 64));
        }
        if ladder.best == place {
            ladder.best = self.first(ladder);
        }
    }

    /// The levels of a ladder, best first.
    pub(crate) fn iter<'a>(&'a self, ladder: &'a Ladder) -> impl Iterator<Item = &'a Level> + 'a {
        let mut next = ladder.best();
        std::iter::from_fn(move || {
            let level = self.at(next?);
            next = self.following(ladder, level.key);
            Some(level)
        })
    }

    fn add_node(&mut self) -> u32 {
        if let Some(node) = self.free.pop() {
            return node;
        }
        self.words.push(0);
        self.children.push([NONE; 64]);
        (self.words.len() - 1) as u32
    }

    fn add_level(&mut self, key: u32) -> u32 {
        let level = Level { shares: 0, oldest: NONE, newest: NONE, orders: 0, key };
        self.levels.insert(level).expect("a level has an order, and there was room for the order")
    }

    fn add_to_leaf(&mut self, leaf: u32, key: u32) -> u32 {
        let place = self.add_level(key);
        self.set_child(leaf, key, place);
        place
    }

    /// The child of a node at the last digit of this number.
    fn child(&self, node: u32, number: u32) -> Option<u32> {
        let (node, digit) = (node as usize, (number & 63) as usize);
        (self.words[node] >> digit & 1 == 1).then(|| self.children[node][digit])
    }

    fn set_child(&mut self, node: u32, number: u32, child: u32) {
        let (node, digit) = (node as usize, (number & 63) as usize);
        self.words[node] |= 1 << digit;
        self.children[node][digit] = child;
    }

    /// The best level of a ladder.
    fn first(&self, ladder: &Ladder) -> u32 {
        match ladder.words {
            [0, 0] => NONE,
            [0, high] => self.first_below(ladder.children[64 + high.trailing_zeros() as usize], 0),
            [low, _] => self.first_below(ladder.children[low.trailing_zeros() as usize], 0),
        }
    }

    /// The best level below a child of a node one step above `depth`.
    fn first_below(&self, child: u32, depth: usize) -> u32 {
        let mut child = child;
        for _ in depth..SHIFTS.len() {
            if child & DIRECT != 0 {
                return child & !DIRECT;
            }
            let node = child as usize;
            child = self.children[node][self.words[node].trailing_zeros() as usize & 63];
        }
        child
    }

    /// The level after this one, found from the root: for display, not for matching.
    fn following(&self, ladder: &Ladder, key: u32) -> Option<u32> {
        let root = (key >> ROOT_SHIFT) as usize;
        let mut path = [NONE; 4];
        path[0] = ladder.children[root];
        let mut nodes = 1;
        while nodes < path.len() {
            match self.child(path[nodes - 1], key >> SHIFTS[nodes - 1]) {
                Some(child) if child & DIRECT == 0 => path[nodes] = child,
                _ => break,
            }
            nodes += 1;
        }
        for depth in (0..nodes).rev() {
            let node = path[depth] as usize;
            let above = self.words[node] & u64::MAX << (key >> SHIFTS[depth] & 63) << 1;
            if above != 0 {
                let child = self.children[node][above.trailing_zeros() as usize];
                return Some(self.first_below(child, depth + 1));
            }
        }
        let next = (root + 1..128).find(|&digit| ladder.has(digit))?;
        Some(self.first_below(ladder.children[next], 0))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Prices that are equal, that are neighbours, and that share no node.
    fn keys() -> impl Strategy<Value = u32> {
        prop_oneof![
            4 => 1_000_000_u32..1_000_200,
            2 => (0_u32..40).prop_map(|step| 1_000_000 + step * 100),
            1 => 0_u32..=KEY_MAX,
            1 => prop_oneof![Just(0), Just(63), Just(64), Just(KEY_MAX), Just(KEY_MAX - 1), Just(1 << 30)],
        ]
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_sorted_map(steps in prop::collection::vec((keys(), any::<bool>()), 0..300)) {
            let (mut levels, mut ladder) = (Levels::new(300), Ladder::new());
            let mut plain = BTreeMap::new();
            for (key, add) in steps {
                if add {
                    let place = levels.find_or_add(&mut ladder, key);
                    prop_assert_eq!(levels.at(place).key, key);
                    prop_assert_eq!(*plain.entry(key).or_insert(place), place);
                } else if let Some(place) = plain.remove(&key) {
                    levels.remove(&mut ladder, place);
                }
                let best = ladder.best().map(|place| levels.at(place).key);
                prop_assert_eq!(best, plain.keys().next().copied());
            }
            let all: Vec<u32> = levels.iter(&ladder).map(|level| level.key).collect();
            prop_assert_eq!(all, plain.keys().copied().collect::<Vec<_>>());
            for (_, place) in plain {
                levels.remove(&mut ladder, place);
            }
            prop_assert_eq!(ladder.best(), None);
            prop_assert_eq!(levels.free.len(), levels.words.len(), "every node came back");
        }
    }

    #[test]
    fn the_most_scattered_prices_stay_inside_what_was_reserved() {
        let (mut levels, mut ladder) = (Levels::new(1_000), Ladder::new());
        let reserved = levels.children.capacity();
        for step in 0..1_000 {
            levels.find_or_add(&mut ladder, step * (KEY_MAX / 1_000));
        }
        assert!(levels.children.len() <= 4_000);
        assert_eq!(levels.children.capacity(), reserved);
    }
}
