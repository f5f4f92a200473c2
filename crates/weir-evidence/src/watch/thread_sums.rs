//! Sums of each thread of a process over the readings: an ended thread keeps its values from its last reading.

use std::{collections::HashMap, mem};

use weir_record::observation::{THREAD_ROWS_MAX, ThreadFigures};

use crate::process::ThreadDelta;

/// The sums, see the head of this file.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadSums {
    /// Threads of the last reading, by process and thread.
    living: HashMap<(u32, u32), ThreadFigures>,
    /// At most twice the number of rows in a record.
    ended: Vec<ThreadFigures>,
    /// Ended threads without a place, because other ended ones used more CPU.
    ended_left_out: u64,
}

impl ThreadSums {
    /// Adds what every living thread did since the last reading. Threads that are missing have ended, and a later
    /// thread with their number is another one.
    pub(super) fn add(&mut self, did: &[ThreadDelta]) {
        let mut before = mem::take(&mut self.living);
        for thread in did {
            let key = (thread.pid, thread.did.tid);
            let known = if thread.is_new { None } else { before.remove(&key) };
            let mut sum = known.unwrap_or_default();
            sum.add(&thread.clone().into());
            self.living.insert(key, sum);
        }
        self.ended.extend(before.into_values().map(|it| ThreadFigures { has_ended: true, ..it }));
        if self.ended.len() > 2 * THREAD_ROWS_MAX {
            self.ended_left_out += keep_busiest(&mut self.ended);
        }
    }

    /// Those with most CPU first, and the number of further ones.
    pub(super) fn rows(&self) -> (Vec<ThreadFigures>, u64) {
        let mut rows: Vec<ThreadFigures> = self.living.values().chain(&self.ended).cloned().collect();
        let left_out = keep_busiest(&mut rows);
        (rows, left_out + self.ended_left_out)
    }
}

/// Keeps as many as a record has, those with most CPU first; returns the number of others.
fn keep_busiest(rows: &mut Vec<ThreadFigures>) -> u64 {
    rows.sort_by_key(|row| (std::cmp::Reverse(row.cpu_ns), row.pid, row.tid));
    let left_out = rows.len().saturating_sub(THREAD_ROWS_MAX) as u64;
    rows.truncate(THREAD_ROWS_MAX);
    left_out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::ThreadSample;

    fn thread(tid: u32, cpu_ns: u64) -> ThreadDelta {
        ThreadDelta { pid: 5, did: ThreadSample { tid, cpu_ns, ..ThreadSample::default() }, is_new: false }
    }

    fn new_thread(tid: u32, cpu_ns: u64) -> ThreadDelta {
        ThreadDelta { is_new: true, ..thread(tid, cpu_ns) }
    }

    /// By number: the CPU, and whether the thread ended.
    fn rows(sums: &ThreadSums) -> Vec<(u32, u64, bool)> {
        let (rows, left_out) = sums.rows();
        assert_eq!(left_out, 0);
        let mut rows: Vec<_> = rows.iter().map(|row| (row.tid, row.cpu_ns, row.has_ended)).collect();
        rows.sort_unstable();
        rows
    }

    #[test]
    fn a_thread_that_ended_keeps_what_it_had_at_its_last_reading() {
        let mut sums = ThreadSums::default();
        sums.add(&[thread(5, 50), thread(6, 30), thread(7, 8)]);
        sums.add(&[thread(5, 10)]);
        assert_eq!(rows(&sums), [(5, 60, false), (6, 30, true), (7, 8, true)]);
    }

    #[test]
    fn a_number_that_comes_back_is_another_thread() {
        let mut sums = ThreadSums::default();
        for did in [&[thread(6, 30)][..], &[], &[new_thread(6, 4)], &[new_thread(6, 5)]] {
            sums.add(did);
        }
        assert_eq!(rows(&sums), [(6, 4, true), (6, 5, false), (6, 30, true)]);
    }

    #[test]
    fn threads_beyond_the_list_are_counted_and_the_busiest_stay() {
        let all: Vec<_> =
            (1..=THREAD_ROWS_MAX as u32 + 1_000).map(|tid| thread(tid, u64::from(tid))).collect();
        let mut sums = ThreadSums::default();
        sums.add(&all);
        let (rows, left_out) = sums.rows();
        assert_eq!((rows.len(), left_out), (THREAD_ROWS_MAX, 1_000));
        assert_eq!(rows.iter().map(|row| row.cpu_ns).min(), Some(1_001), "those with least are left out");
    }

    #[test]
    fn threads_that_ended_are_kept_in_a_bounded_number() {
        const BORN: u32 = THREAD_ROWS_MAX as u32;
        let mut sums = ThreadSums::default();
        for round in 0..5 {
            let first = 10 + round * BORN;
            let all: Vec<_> = (first..first + BORN).map(|tid| thread(tid, u64::from(tid))).collect();
            sums.add(&all);
            assert!(sums.ended.len() <= 2 * THREAD_ROWS_MAX, "round {round}");
        }
        let (rows, left_out) = sums.rows();
        assert_eq!(rows.len() as u64 + left_out, 5 * u64::from(BORN));
        assert!(rows.iter().all(|row| row.tid >= 10 + 4 * BORN), "the busiest are those of the last round");
    }
}
