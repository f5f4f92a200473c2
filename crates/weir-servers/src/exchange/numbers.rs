//! The order references and match numbers that have been given out: an exchange that continues after a crash gives
//! out none of them again.

use std::collections::BTreeMap;

use weir_proto::ouch::Outbound;

/// In a market, the bits from here on contain the worker that gave the number out.
const WORKER_SHIFT: u32 = 48;

/// The highest numbers in the answers.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenNumbers {
    /// By the worker in the number.
    markets: BTreeMap<u64, First>,
    /// The highest of all references.
    reference_max: u64,
}

/// The next numbers of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct First {
    pub(super) reference: u64,
    pub(super) match_number: u64,
}

impl First {
    fn of(worker: u64) -> Self {
        let number = worker << WORKER_SHIFT | 1;
        Self { reference: number, match_number: number }
    }
}

impl GivenNumbers {
    /// Records an answer.
    pub(super) fn note(&mut self, message: &Outbound) {
        match message {
            Outbound::Accepted(accepted) => self.note_reference(accepted.order_reference),
            Outbound::Replaced(replaced) => self.note_reference(replaced.order_reference),
            Outbound::Executed(executed) => {
                let first = self.market(executed.match_number >> WORKER_SHIFT);
                first.match_number = first.match_number.max(executed.match_number.saturating_add(1));
            }
            Outbound::SystemEvent { .. }
            | Outbound::Canceled(_)
            | Outbound::AiqCanceled(_)
            | Outbound::BrokenTrade(_)
            | Outbound::Rejected(_)
            | Outbound::CancelPending(_)
            | Outbound::CancelReject(_)
            | Outbound::PriorityUpdate(_)
            | Outbound::Modified(_)
            | Outbound::Restated(_)
            | Outbound::AccountQueryResponse { .. } => {}
        }
    }

    /// The first numbers of a market's book on this worker.
    pub(super) fn first(&self, worker: usize) -> First {
        let worker = worker as u64;
        self.markets.get(&worker).copied().unwrap_or(First::of(worker))
    }

    /// The highest reference given out by any worker; 0 for none.
    pub(super) fn reference_max(&self) -> u64 {
        self.reference_max
    }

    fn note_reference(&mut self, reference: u64) {
        self.reference_max = self.reference_max.max(reference);
        let first = self.market(reference >> WORKER_SHIFT);
        first.reference = first.reference.max(reference.saturating_add(1));
    }

    fn market(&mut self, worker: u64) -> &mut First {
        self.markets.entry(worker).or_insert(First::of(worker))
    }
}

#[cfg(test)]
mod tests {
    use weir_proto::ouch::Executed;

    use super::*;

    #[test]
    fn numbers_go_on_above_the_highest_one_of_their_worker() {
        let mut given = GivenNumbers::default();
        assert_eq!(given.first(0), First { reference: 1, match_number: 1 });
        let second = 1 << WORKER_SHIFT;
        assert_eq!(given.first(1), First { reference: second + 1, match_number: second + 1 });
        for reference in [second + 7, 5, second + 3] {
            given.note_reference(reference);
        }
        for match_number in [second + 2, second + 1] {
            given.note(&Outbound::Executed(Executed {
                timestamp_ns: 0,
                user_ref_num: 1,
                quantity: 100,
                price: 1,
                liquidity: b'A',
                match_number,
            }));
        }
        assert_eq!(given.first(0), First { reference: 6, match_number: 1 });
        assert_eq!(given.first(1), First { reference: second + 8, match_number: second + 3 });
        assert_eq!(given.first(2).reference, (2 << WORKER_SHIFT) + 1);
        assert_eq!(given.reference_max(), second + 7);
    }
}
