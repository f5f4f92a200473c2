//! The known numbers of a client, up to the highest one: the others are gaps. Pure.

use std::collections::VecDeque;

use crate::journal::fields::{FieldReader, FieldWriter};

/// Most gaps that are stored for one client, 8 bytes each: a single crash leaves no more. Beyond that the lowest gap
/// is dropped, and its numbers count as known.
pub(crate) const GAPS_MAX: usize = 1024;

/// The numbers of one client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownNumbers {
    last: u32,
    /// First and last number of each, in order.
    gaps: VecDeque<(u32, u32)>,
}

impl KnownNumbers {
    /// Everything up to this number is known.
    pub(crate) fn through(last: u32) -> Self {
        Self { last, gaps: VecDeque::new() }
    }

    /// The highest known number, 0 if there is none.
    pub(crate) fn last(&self) -> u32 {
        self.last
    }

    /// Whether a number is known.
    pub(crate) fn has(&self, number: u32) -> bool {
        number <= self.last && self.gap_of(number).is_none()
    }

    /// Makes a number known.
    pub(crate) fn add(&mut self, number: u32) {
        if number <= self.last {
            self.fill(number);
            return;
        }
        if number - self.last > 1 {
            self.gaps.push_back((self.last + 1, number - 1));
            self.keep_most();
        }
        self.last = number;
    }

    /// Makes a number known if it lies in a gap. Numbers above the highest one are not changed. False: it does not
    /// lie in a gap.
    pub(crate) fn fill(&mut self, number: u32) -> bool {
        let Some(at) = self.gap_of(number) else { return false };
        let (first, last) = self.gaps[at];
        match (first == number, last == number) {
            (true, true) => _ = self.gaps.remove(at),
            (true, false) => self.gaps[at].0 = number + 1,
            (false, true) => self.gaps[at].1 = number - 1,
            (false, false) => {
                self.gaps[at].1 = number - 1;
                self.gaps.insert(at + 1, (number + 1, last));
                self.keep_most();
            }
        }
        true
    }

    /// Writes them into a checkpoint.
    pub(crate) fn save(&self, fields: &mut FieldWriter) {
        let Self { last, gaps } = self;
        fields.number(*last);
        fields.count(gaps.len());
        for (first, last) in gaps {
            fields.number(*first);
            fields.number(*last);
        }
    }

    /// Reads them from a checkpoint.
    pub(crate) fn load(fields: &mut FieldReader<'_>) -> Option<Self> {
        let last = fields.number()?;
        let count = fields.count(2)?;
        let gaps: VecDeque<(u32, u32)> =
            (0..count).map(|_| Some((fields.number()?, fields.number()?))).collect::<Option<_>>()?;
        (gaps.len() <= GAPS_MAX).then_some(Self { last, gaps })
    }

    fn gap_of(&self, number: u32) -> Option<usize> {
        let at = self.gaps.partition_point(|(_, last)| *last < number);
        self.gaps.get(at).filter(|(first, _)| *first <= number).map(|_| at)
    }

    fn keep_most(&mut self) {
        if self.gaps.len() > GAPS_MAX {
            self.gaps.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(numbers: impl IntoIterator<Item = u32>) -> KnownNumbers {
        let mut known = KnownNumbers::default();
        numbers.into_iter().for_each(|number| known.add(number));
        known
    }

    #[test]
    fn a_number_in_a_gap_is_filled_once() {
        let mut known = of([2, 3, 9]);
        assert_eq!(known.last(), 9);
        for number in [1, 6, 4, 8, 7, 5] {
            assert!(!known.has(number) && known.fill(number), "{number}");
            assert!(known.has(number) && !known.fill(number), "{number}");
        }
        assert!(known.gaps.is_empty());
        assert!(!known.fill(0) && !known.fill(9) && !known.fill(10), "none of them lies in a gap");
        assert_eq!((known.last(), known.has(10)), (9, false));
    }

    #[test]
    fn the_lowest_gap_is_given_up_for_one_too_many() {
        let gaps = GAPS_MAX as u32;
        let mut known = of((1..=gaps).map(|number| 2 * number));
        assert!(!known.has(1));
        known.add(2 * gaps + 2);
        assert!(known.has(1) && !known.has(3) && !known.has(2 * gaps + 1));
        // Splitting a gap makes one more.
        let mut known = of((1..=gaps).map(|number| 4 * number));
        assert!(known.fill(4 * gaps - 2));
        assert!(known.has(1) && !known.has(5) && !known.has(4 * gaps - 1) && !known.has(4 * gaps - 3));
        assert_eq!(known.gaps.len(), GAPS_MAX);
    }

    #[test]
    fn the_highest_number_there_can_be_leaves_one_gap() {
        let mut known = of([1_000_000_000, u32::MAX]);
        assert_eq!(known.gaps, [(1, 999_999_999), (1_000_000_001, u32::MAX - 1)]);
        assert!(known.fill(1) && known.fill(u32::MAX - 1));
        assert!(!KnownNumbers::through(1_000_000_000).fill(1), "nothing is known of what was before");
    }

    proptest! {
        #[test]
        fn the_order_in_which_numbers_are_read_does_not_matter(
            numbers in prop::collection::vec(1_u32..200, 1..80),
        ) {
            let known = of(numbers.iter().copied());
            for number in 1..=200 {
                prop_assert_eq!(known.has(number), numbers.contains(&number), "{}", number);
            }
        }
    }
}
