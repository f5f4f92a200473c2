//! Adds up what the workers hand over. Pure.
//!
//! Seconds are kept apart only until every worker has passed them, so memory does not grow with the run.

use std::{any::Any, collections::BTreeMap, sync::PoisonError};

use hdrhistogram::Histogram;
use weir_record::{latency::empty_histogram, load::SecondRow};

use crate::{
    recorder::{Interval, IntervalNotes, Outbox, PacedTimes, Section, Sections},
    summary::{add, second_row},
    warmup::Bucket,
};

/// Sums of the whole window, rows of its seconds, and buckets of the warm-up.
#[derive(Debug)]
pub struct Gather {
    /// The window so far.
    pub window: Sum,
    /// Open loop only.
    pub paced: Option<PacedTimes>,
    /// What only its protocol counts.
    section: Option<Box<dyn Section>>,
    /// Finished seconds, oldest first.
    pub seconds: Vec<SecondRow>,
    /// Seconds that some worker has not finished.
    open_seconds: BTreeMap<u64, Sum>,
    buckets: BTreeMap<u64, Sum>,
    /// For each worker, the first second it may still add to.
    passed: Vec<u64>,
}

/// Messages and their service times.
#[derive(Clone, Debug)]
pub struct Sum {
    /// Messages completed and verified.
    pub messages: u64,
    /// Bytes compared.
    pub bytes: u64,
    /// Messages started, without those taken back.
    pub started: i64,
    /// Failures.
    pub errors: u64,
    /// Service times.
    pub service: Histogram<u64>,
}

impl Default for Sum {
    fn default() -> Self {
        Self { messages: 0, bytes: 0, started: 0, errors: 0, service: empty_histogram() }
    }
}

impl Sum {
    fn add(&mut self, notes: &IntervalNotes) {
        self.messages += notes.messages;
        self.bytes += notes.bytes;
        self.started += notes.started;
        self.errors += notes.errors;
        add(&mut self.service, &notes.service);
    }
}

impl Gather {
    /// Nothing yet, from this many workers.
    pub fn new(workers: usize, sections: Sections) -> Self {
        let paced = || PacedTimes { response: empty_histogram(), lag: empty_histogram() };
        Self {
            window: Sum::default(),
            paced: sections.paced.then(paced),
            section: sections.own.map(|new| new()),
            seconds: Vec::new(),
            open_seconds: BTreeMap::new(),
            buckets: BTreeMap::new(),
            passed: vec![0; workers],
        }
    }

    /// What the protocol counted in the window, if it is of this kind.
    pub fn section<S: Section>(&self) -> Option<&S> {
        let section: &dyn Any = &**self.section.as_ref()?;
        section.downcast_ref()
    }

    /// Adds all that workers have handed over until now.
    pub(crate) fn take_all(&mut self, outbox: &Outbox) {
        let all_notes = std::mem::take(&mut *outbox.lock().unwrap_or_else(PoisonError::into_inner));
        all_notes.iter().for_each(|notes| self.take(notes));
    }

    /// Adds the notes of one interval. Those of a worker come in order.
    pub fn take(&mut self, notes: &IntervalNotes) {
        match notes.interval {
            Interval::Warmup(bucket) => self.buckets.entry(bucket).or_default().add(notes),
            Interval::Window(second) => {
                self.window.add(notes);
                if let (Some(sum), Some(paced)) = (&mut self.paced, &notes.paced) {
                    add(&mut sum.response, &paced.response);
                    add(&mut sum.lag, &paced.lag);
                }
                if let (Some(sum), Some(section)) = (&mut self.section, &notes.section) {
                    sum.add(&**section);
                }
                self.open_seconds.entry(second).or_default().add(notes);
                self.passed[notes.worker] = second + 1;
            }
            Interval::After => {}
        }
        self.close_seconds(self.passed.iter().copied().min().unwrap_or(0));
    }

    /// A bucket of the warm-up, when its time is over. Earlier ones are forgotten.
    pub fn bucket(&mut self, bucket: u64) -> Bucket {
        self.buckets = self.buckets.split_off(&bucket);
        let Some(sum) = self.buckets.remove(&bucket) else { return Bucket::default() };
        Bucket { messages: sum.messages, service_ns_median: second_row(0, 0, &sum.service).p50_ns }
    }

    /// All notes were taken: the rows of the whole seconds of a window of this length.
    pub fn finish(&mut self, window_ns: u64) {
        let whole = window_ns / 1_000_000_000;
        self.close_seconds(whole);
        self.seconds.truncate(whole as usize);
        self.open_seconds.clear();
    }

    fn close_seconds(&mut self, until: u64) {
        for second in self.seconds.len() as u64..until {
            let row = match self.open_seconds.remove(&second) {
                Some(sum) => second_row(sum.messages, sum.errors, &sum.service),
                None => SecondRow::default(),
            };
            self.seconds.push(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(worker: usize, interval: Interval, times_ns: &[u64]) -> IntervalNotes {
        let mut service = empty_histogram();
        times_ns.iter().for_each(|time| service.saturating_record(*time));
        let messages = times_ns.len() as u64;
        IntervalNotes {
            worker,
            interval,
            messages,
            bytes: 10 * messages,
            started: messages as i64,
            errors: 0,
            service,
            paced: None,
            section: None,
        }
    }

    #[test]
    fn a_second_becomes_a_row_when_every_worker_has_passed_it() {
        let mut gather = Gather::new(2, Sections::default());
        gather.take(&notes(0, Interval::Window(0), &[100, 100]));
        gather.take(&notes(0, Interval::Window(1), &[100]));
        assert!(gather.seconds.is_empty());
        gather.take(&notes(1, Interval::Window(0), &[900]));
        assert_eq!(gather.seconds, [SecondRow { messages: 3, errors: 0, p50_ns: 100, p99_ns: 900 }]);
        assert_eq!((gather.window.messages, gather.window.bytes), (4, 40));
    }

    #[test]
    fn silent_seconds_are_rows_of_zeros_and_a_broken_second_is_none() {
        let mut gather = Gather::new(1, Sections::default());
        gather.take(&notes(0, Interval::Window(2), &[7]));
        gather.take(&notes(0, Interval::Window(4), &[7, 7]));
        gather.take(&notes(0, Interval::After, &[7]));
        gather.finish(4_900_000_000);
        let messages: Vec<u64> = gather.seconds.iter().map(|row| row.messages).collect();
        assert_eq!(messages, [0, 0, 1, 0]);
        assert_eq!(gather.window.messages, 3);
        assert_eq!(gather.window.service.len(), 3);
    }

    #[test]
    fn buckets_of_the_warm_up_are_no_part_of_the_window() {
        let mut gather = Gather::new(2, Sections::default());
        gather.take(&notes(0, Interval::Warmup(0), &[5, 5]));
        gather.take(&notes(1, Interval::Warmup(1), &[7, 9, 9]));
        gather.take(&notes(0, Interval::Warmup(1), &[9, 9]));
        assert_eq!(gather.bucket(1), Bucket { messages: 5, service_ns_median: 9 });
        assert_eq!(gather.bucket(0), Bucket::default());
        assert_eq!(gather.window.messages, 0);
    }
}
