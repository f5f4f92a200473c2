//! The orders' part of a report, from what was gathered. Pure.

use hdrhistogram::Histogram;
use weir_record::{latency::LatencySummary, orders::OrdersLoadReport};

use super::{
    notes::{OrderNotes, OrderTotals, RequestKind},
    spec::OrdersSpec,
};
use crate::{outcome::WorkerOutcomes, spec::LoadSpec};

/// If more than one time stamp in this many lies outside its order's way, the peer uses another clock. A few may,
/// when a clock is set during the run.
const STAMPS_PER_IMPLAUSIBLE: u64 = 1000;

/// The orders' part of a report.
pub(crate) fn section(
    orders: &OrdersSpec,
    load: &LoadSpec,
    notes: &OrderNotes,
    outcomes: &WorkerOutcomes<'_>,
) -> OrdersLoadReport {
    let mut totals = OrderTotals::default();
    outcomes.totals().for_each(|part| totals.merge(part));
    OrdersLoadReport {
        sessions: totals.sessions,
        in_flight: orders.in_flight_total.unwrap_or(load.depth),
        in_flight_scope: if orders.in_flight_total.is_some() { "total" } else { "session" }.into(),
        entered: notes.count(RequestKind::Enter),
        cancels: notes.count(RequestKind::Cancel),
        replaces: notes.count(RequestKind::Replace),
        received: notes.by_letter(),
        sequenced_checked: totals.sequenced,
        inversions: totals.inversions,
        shares: totals.shares,
        reconnects: totals.reconnects,
        mismatches: totals.mismatches,
        out: way(notes, &notes.out),
        back: way(notes, &notes.back),
    }
}

/// One of the two ways, unless the time stamps are unusable.
fn way(notes: &OrderNotes, times: &Histogram<u64>) -> Option<LatencySummary> {
    let is_clock = notes.implausible.saturating_mul(STAMPS_PER_IMPLAUSIBLE) <= times.len();
    (!times.is_empty() && is_clock).then(|| LatencySummary::from_histogram(times))
}

#[cfg(test)]
mod tests {
    use super::{super::notes::Hop, *};

    #[test]
    fn ways_are_absent_without_stamps_and_with_those_of_another_clock() {
        let mut notes = OrderNotes::default();
        assert_eq!(way(&notes, &notes.out), None);
        (0..1000).for_each(|_| notes.hop(Hop::Timed { out_ns: 100, back_ns: 50 }));
        notes.hop(Hop::Implausible);
        assert_eq!(way(&notes, &notes.out).map(|way| way.count), Some(1000));
        notes.hop(Hop::Implausible);
        assert_eq!(way(&notes, &notes.back), None);
    }
}
