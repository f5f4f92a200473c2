//! Counts of orders, besides the times that every message has. Pure.

use std::{any::Any, collections::BTreeMap};

use hdrhistogram::Histogram;
use weir_record::{
    latency::empty_histogram,
    orders::{MISMATCHES_MAX, Mismatch, ShareBalance},
};

use crate::{recorder::Section, summary::add};

/// A kind of request to a venue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestKind {
    /// A new order.
    #[default]
    Enter,
    /// Replaces a live order.
    Replace,
    /// Cancels a live order.
    Cancel,
}

/// The two ways of a request, separated by the time stamp of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// Unknown: the request was sent twice, or ended without its own answer.
    Untimed,
    /// The time stamp lies outside the time between sending and receiving.
    Implausible,
    /// It lies inside.
    Timed {
        /// From the client's send to the exchange's time stamp.
        out_ns: u64,
        /// From there to the client's receive.
        back_ns: u64,
    },
}

/// Number of message types, `A` to `Z`.
const LETTERS: usize = 26;

/// Counts of orders in one interval.
#[derive(Clone, Debug)]
pub struct OrderNotes {
    /// Requests sent, by kind in the order of [`RequestKind`].
    sent: [u64; 3],
    /// Sequenced messages by type, `A` to `Z`.
    received: [u64; LETTERS],
    /// From the client's send to the exchange's time stamp.
    pub out: Histogram<u64>,
    /// From there to the client's receive.
    pub back: Histogram<u64>,
    /// Answers whose time stamp lies outside the time between sending and receiving.
    pub implausible: u64,
}

impl Default for OrderNotes {
    fn default() -> Self {
        Self {
            sent: [0; 3],
            received: [0; LETTERS],
            out: empty_histogram(),
            back: empty_histogram(),
            implausible: 0,
        }
    }
}

impl OrderNotes {
    /// Notes a request that was sent.
    #[inline]
    pub fn sent(&mut self, kind: RequestKind) {
        self.sent[kind as usize] += 1;
    }

    /// Notes a sequenced message; types are capital letters.
    #[inline]
    pub fn received(&mut self, letter: u8) {
        if let Some(count) = self.received.get_mut(usize::from(letter.wrapping_sub(b'A'))) {
            *count += 1;
        }
    }

    /// Notes the way times of an answer.
    #[inline]
    pub fn hop(&mut self, hop: Hop) {
        match hop {
            Hop::Untimed => {}
            Hop::Implausible => self.implausible += 1,
            Hop::Timed { out_ns, back_ns } => {
                self.out.saturating_record(out_ns);
                self.back.saturating_record(back_ns);
            }
        }
    }

    /// Requests of one kind.
    pub fn count(&self, kind: RequestKind) -> u64 {
        self.sent[kind as usize]
    }

    /// Messages by the letter of their type, without types that did not occur.
    pub fn by_letter(&self) -> BTreeMap<String, u64> {
        let letters = (b'A'..=b'Z').map(|letter| char::from(letter).to_string());
        letters.zip(self.received).filter(|(_, count)| *count > 0).collect()
    }
}

impl Section for OrderNotes {
    fn add(&mut self, other: &dyn Section) {
        let Some(other) = (other as &dyn Any).downcast_ref::<Self>() else { return };
        self.sent.iter_mut().zip(other.sent).for_each(|(sum, more)| *sum += more);
        self.received.iter_mut().zip(other.received).for_each(|(sum, more)| *sum += more);
        add(&mut self.out, &other.out);
        add(&mut self.back, &other.back);
        self.implausible += other.implausible;
    }
}

/// Counts of the sessions of one worker over the whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderTotals {
    /// Sessions that logged in.
    pub sessions: u32,
    /// Logins made after a connection was dropped on purpose.
    pub reconnects: u64,
    /// Sequenced messages whose number or place was checked.
    pub sequenced: u64,
    /// Answers in another order than their requests were sent.
    pub inversions: u64,
    /// Shares at the end.
    pub shares: ShareBalance,
    /// The first wrong answers.
    pub mismatches: Vec<Mismatch>,
}

impl OrderTotals {
    /// Adds the counts of another session or worker.
    pub fn merge(&mut self, other: &Self) {
        self.sessions += other.sessions;
        self.reconnects += other.reconnects;
        self.sequenced += other.sequenced;
        self.inversions += other.inversions;
        self.shares.entered += other.shares.entered;
        self.shares.executed += other.shares.executed;
        self.shares.cancelled += other.shares.cancelled;
        self.shares.live += other.shares.live;
        let room = MISMATCHES_MAX - self.mismatches.len();
        self.mismatches.extend(other.mismatches.iter().take(room).cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_two_workers_add_up() {
        let mut sum = OrderNotes::default();
        sum.sent(RequestKind::Enter);
        sum.received(b'A');
        sum.received(b'!');
        sum.hop(Hop::Timed { out_ns: 100, back_ns: 40 });
        let mut other = OrderNotes::default();
        other.sent(RequestKind::Enter);
        other.sent(RequestKind::Cancel);
        other.received(b'A');
        other.received(b'C');
        other.hop(Hop::Implausible);
        other.hop(Hop::Untimed);
        sum.add(&other);
        let sent = [RequestKind::Enter, RequestKind::Replace, RequestKind::Cancel].map(|it| sum.count(it));
        assert_eq!(sent, [2, 0, 1]);
        assert_eq!(sum.by_letter(), BTreeMap::from([("A".into(), 2), ("C".into(), 1)]));
        assert_eq!((sum.out.max(), sum.back.max(), sum.out.len(), sum.implausible), (100, 40, 1, 1));
    }
}
