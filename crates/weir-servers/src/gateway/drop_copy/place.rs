//! The record that a copy was made of, in one number, and what each firm has already. Pure.
//!
//! | bits | field |
//! | --- | --- |
//! | 56..64 | worker |
//! | 32..56 | number of the file |
//! | 0..32 | place of the record in the file, in units of 8 bytes |

use std::collections::BTreeMap;

use weir_trading::AccountId;

use crate::journal::Position;

const WORKER_BITS: u32 = 8;
const SEGMENT_BITS: u32 = 24;
const OFFSET_BITS: u32 = 32;
/// Records begin at multiples of this.
const UNIT_BYTES: u64 = 8;

const _: () = assert!(WORKER_BITS + SEGMENT_BITS + OFFSET_BITS == u64::BITS);

/// The place of a record. `None`: a number is too large, which takes a petabyte.
pub(super) fn pack(worker: u16, position: Position) -> Option<u64> {
    let unit = position.offset / UNIT_BYTES;
    let fits = u64::from(worker) >> WORKER_BITS == 0
        && position.segment >> SEGMENT_BITS == 0
        && unit >> OFFSET_BITS == 0;
    let segment = position.segment << OFFSET_BITS;
    fits.then_some(u64::from(worker) << (SEGMENT_BITS + OFFSET_BITS) | segment | unit)
}

/// The worker, and where the record begins in its journal.
fn unpack(place: u64) -> (u16, Position) {
    let worker = (place >> (SEGMENT_BITS + OFFSET_BITS)) as u16;
    let segment = place >> OFFSET_BITS & ((1 << SEGMENT_BITS) - 1);
    let offset = (place & ((1 << OFFSET_BITS) - 1)) * UNIT_BYTES;
    (worker, Position { segment, offset })
}

/// The last copy of each firm, by worker.
#[derive(Debug, Default)]
pub(super) struct LastCopies(BTreeMap<(u16, u32), Position>);

impl LastCopies {
    /// A firm has this copy of an earlier start; call it in the order of the copies. The places of a worker rise,
    /// unless its journal had lost records before that start ([`Self::cut`]). Then what firms had from there on are
    /// other records than those that are there now.
    pub(super) fn restore(&mut self, firm: AccountId, place: u64) {
        let (worker, position) = unpack(place);
        if self.last(worker).is_some_and(|last| last > position) {
            self.cut(worker, position);
        }
        self.take(firm, place);
    }

    /// Whether a firm lacks the record at this place. From now on it has it.
    pub(super) fn take(&mut self, firm: AccountId, place: u64) -> bool {
        let (worker, position) = unpack(place);
        let last = self.0.entry((worker, firm.0)).or_default();
        let is_new = position > *last;
        *last = position.max(*last);
        is_new
    }

    /// The journal of a worker ends here: what is written from there on is new, whatever firms have. Returns whether
    /// they have something that the journal lacks.
    pub(super) fn cut(&mut self, worker: u16, end: Position) -> bool {
        let mut is_cut = false;
        for (_, last) in self.0.range_mut((worker, 0)..=(worker, u32::MAX)).filter(|(_, last)| **last >= end)
        {
            // A record begins at the end of the one before.
            *last = Position { offset: end.offset.saturating_sub(1), ..end };
            is_cut = true;
        }
        is_cut
    }

    /// The last record of a worker's journal that any firm has. Some firms may lack it: a crash can come between two
    /// copies of one record.
    pub(super) fn last(&self, worker: u16) -> Option<Position> {
        self.0.range((worker, 0)..=(worker, u32::MAX)).map(|(_, position)| *position).max()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIRST: AccountId = AccountId(0);
    const SECOND: AccountId = AccountId(1);

    fn at(segment: u64, offset: u64) -> Position {
        Position { segment, offset }
    }

    #[test]
    fn a_firm_has_a_record_once_and_a_start_goes_on_at_the_last_one_that_any_firm_has() {
        let mut copies = LastCopies::default();
        let place = |worker, offset| pack(worker, at(1, offset)).expect("it fits");
        assert!(copies.take(FIRST, place(0, 64)) && !copies.take(FIRST, place(0, 64)));
        assert!(copies.take(FIRST, place(0, 128)) && copies.take(FIRST, place(1, 64)));
        // After a crash between the copies of one record.
        assert_eq!(copies.last(0), Some(at(1, 128)));
        assert!(copies.take(SECOND, place(0, 128)) && !copies.take(FIRST, place(0, 128)));
        assert!(!copies.take(FIRST, place(0, 64)), "an earlier one");
        assert_eq!([1, 2].map(|worker| copies.last(worker)), [Some(at(1, 64)), None]);
    }

    #[test]
    fn what_a_journal_has_lost_does_not_hide_what_is_written_there_later() {
        let mut copies = LastCopies::default();
        let place = |worker, segment, offset| pack(worker, at(segment, offset)).expect("it fits");
        assert!(copies.take(FIRST, place(0, 2, 128)) && copies.take(SECOND, place(0, 1, 64)));
        assert!(copies.take(FIRST, place(1, 3, 64)));
        assert!(!copies.cut(0, at(2, 136)), "the last record is there");
        assert!(copies.cut(0, at(2, 128)), "it is gone");
        assert!(!copies.take(FIRST, place(0, 2, 120)), "this one was copied");
        assert!(copies.take(FIRST, place(0, 2, 128)), "this one is another");
        assert!(copies.take(SECOND, place(0, 2, 120)), "this one it had not");
        // A new folder.
        assert!(copies.cut(1, Position::default()) && copies.take(FIRST, place(1, 1, 64)));
        assert!(!copies.cut(7, Position::default()), "nobody has anything of it");
    }

    #[test]
    fn a_start_behind_a_loss_goes_on_at_the_last_copy_and_not_at_one_of_a_lost_record() {
        let place = |worker, segment, offset| pack(worker, at(segment, offset)).expect("it fits");
        let mut copies = LastCopies::default();
        for (firm, place) in [
            (FIRST, place(0, 5, 640)),
            (SECOND, place(0, 5, 704)),
            (SECOND, place(1, 9, 64)),
            // The journal ended at 3:64 when the next start copied these.
            (FIRST, place(0, 3, 64)),
            (SECOND, place(0, 3, 64)),
            (FIRST, place(0, 3, 128)),
        ] {
            copies.restore(firm, place);
        }
        assert_eq!([0, 1].map(|worker| copies.last(worker)), [Some(at(3, 128)), Some(at(9, 64))]);
        assert!(!copies.cut(0, at(3, 192)), "nothing more is lost");
        assert!(!copies.take(FIRST, place(0, 3, 128)) && copies.take(SECOND, place(0, 3, 128)));
        assert!(copies.take(FIRST, place(0, 3, 192)), "that was written before the end");
    }

    #[test]
    fn what_does_not_fit_has_no_place() {
        assert!(pack(255, at((1 << 24) - 1, ((1 << 32) - 1) * 8)).is_some());
        for (worker, position) in [(256, at(1, 64)), (0, at(1 << 24, 64)), (0, at(1, 8 << 32))] {
            assert_eq!(pack(worker, position), None, "{worker} {position:?}");
        }
    }

    proptest! {
        #[test]
        fn places_are_read_back_and_later_records_of_a_worker_have_higher_ones(
            worker in 0_u16..256,
            segments: [u32; 2],
            units: [u32; 2],
        ) {
            let position = |which: usize| at(u64::from(segments[which] >> 8), u64::from(units[which]) * 8);
            let places = [0, 1].map(|at| pack(worker, position(at)).expect("it fits"));
            prop_assert_eq!(unpack(places[0]), (worker, position(0)));
            prop_assert_eq!(places[0].cmp(&places[1]), position(0).cmp(&position(1)));
        }
    }
}
