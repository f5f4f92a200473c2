//! Adds up the workers' notes. Pure.
//!
//! Seconds are kept separately only until every worker has passed them, so memory does not grow with the run.

use std::{
    any::Any,
    collections::{BTreeMap, VecDeque},
    sync::PoisonError,
};

use hdrhistogram::Histogram;
use weir_record::{
    latency::empty_histogram,
    load::{SecondRow, parts::SecondPart},
};

use crate::{
    recorder::{Interval, IntervalNotes, Outbox, PacedTimes, Retracted, Section, Sections},
    summary::{add, subtract},
    warmup::Bucket,
};

/// Sums of the whole window, rows of its seconds, and buckets of the warm-up.
#[derive(Debug)]
pub struct Gather {
    /// The window so far.
    pub window: Sum,
    /// Open loop only.
    pub paced: Option<PacedTimes>,
    /// Counts of the protocol's own.
    section: Option<Box<dyn Section>>,
    /// Failures after the window.
    pub errors_after: u64,
    /// Finished seconds, oldest first.
    pub seconds: Vec<SecondRow>,
    /// Seconds that at least one worker has not finished.
    open_seconds: BTreeMap<u64, Sum>,
    buckets: BTreeMap<u64, Sum>,
    /// For each worker, the first second it may still add to.
    passed: Vec<u64>,
    /// Finished seconds with their histograms, for the coordinator of several generators to take; `None` without one.
    handed: Option<VecDeque<SecondPart>>,
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
    /// Response times in an open loop.
    pub response: Option<Histogram<u64>>,
}

impl Default for Sum {
    fn default() -> Self {
        Self { messages: 0, bytes: 0, started: 0, errors: 0, service: empty_histogram(), response: None }
    }
}

impl Sum {
    /// An open loop reports the response time, which is what a user waits for; a closed loop the service time.
    fn times(&self) -> &Histogram<u64> {
        self.response.as_ref().unwrap_or(&self.service)
    }

    fn row(&self) -> SecondRow {
        SecondRow::of(self.messages, self.errors, self.times())
    }

    fn second_part(&self) -> SecondPart {
        SecondPart::of(self.messages, self.errors, self.times())
    }

    fn add(&mut self, notes: &IntervalNotes) {
        self.messages += notes.messages;
        self.bytes += notes.bytes;
        self.started += notes.started;
        self.errors += notes.errors;
        add(&mut self.service, &notes.service);
        if let Some(paced) = &notes.paced {
            add(self.response.get_or_insert_with(empty_histogram), &paced.response);
        }
    }
}

impl Gather {
    /// Empty sums for this many workers.
    pub fn new(workers: usize, sections: Sections) -> Self {
        Self {
            window: Sum::default(),
            paced: sections.paced.then(PacedTimes::default),
            section: sections.own.map(|new| new()),
            errors_after: 0,
            seconds: Vec::new(),
            open_seconds: BTreeMap::new(),
            buckets: BTreeMap::new(),
            passed: vec![0; workers],
            handed: None,
        }
    }

    /// Keeps each second with its histogram until it is taken, the last part of a second included.
    pub(crate) fn hand_over_seconds(&mut self) {
        self.handed = Some(VecDeque::new());
    }

    /// Takes the next seconds with their histograms.
    pub(crate) fn take_seconds(&mut self, most: usize) -> Vec<SecondPart> {
        let Some(handed) = &mut self.handed else { return Vec::new() };
        handed.drain(..most.min(handed.len())).collect()
    }

    /// The protocol's own counts of the window, if they are of this type.
    pub fn section<S: Section>(&self) -> Option<&S> {
        let section: &dyn Any = &**self.section.as_ref()?;
        section.downcast_ref()
    }

    /// Adds everything that workers have handed over so far.
    pub(crate) fn take_all(&mut self, outbox: &Outbox) {
        let all_notes = std::mem::take(&mut *outbox.lock().unwrap_or_else(PoisonError::into_inner));
        all_notes.iter().for_each(|notes| self.take(notes));
    }

    /// Adds the notes of one interval. Notes of one worker arrive in order.
    pub fn take(&mut self, notes: &IntervalNotes) {
        self.add(notes);
        if let Some(retracted) = &notes.retracted {
            self.retract(notes.interval, retracted);
        }
        self.close_seconds(self.passed.iter().copied().min().unwrap_or(0));
    }

    /// Subtracts messages from the window. The row of their second is often already closed; then they are subtracted
    /// from the row of the second in which this became known.
    fn retract(&mut self, interval: Interval, retracted: &Retracted) {
        self.window.messages = self.window.messages.saturating_sub(retracted.messages);
        self.window.bytes = self.window.bytes.saturating_sub(retracted.bytes);
        subtract(&mut self.window.service, &retracted.service);
        if let Some(paced) = &mut self.paced {
            subtract(&mut paced.response, &retracted.response);
        }
        if let Interval::Window(second) = interval
            && let Some(sum) = self.open_seconds.get_mut(&second)
        {
            sum.messages = sum.messages.saturating_sub(retracted.messages);
        }
    }

    fn add(&mut self, notes: &IntervalNotes) {
        match notes.interval {
            Interval::Warmup(bucket) => self.buckets.entry(bucket).or_default().add(notes),
            Interval::Window(second) => {
                self.window.add(notes);
                self.add_paced(notes);
                if let (Some(sum), Some(section)) = (&mut self.section, &notes.section) {
                    sum.add(&**section);
                }
                self.open_seconds.entry(second).or_default().add(notes);
                self.passed[notes.worker] = second + 1;
            }
            Interval::After => {
                // A start intended in the window belongs to it, however long it took.
                self.add_paced(notes);
                self.errors_after += notes.errors;
            }
        }
    }

    fn add_paced(&mut self, notes: &IntervalNotes) {
        if let (Some(sum), Some(paced)) = (&mut self.paced, &notes.paced) {
            add(&mut sum.response, &paced.response);
            add(&mut sum.lag, &paced.lag);
            sum.at_least += paced.at_least;
        }
    }

    /// A bucket of the warm-up, when its time is over. Earlier ones are discarded.
    pub fn bucket(&mut self, bucket: u64) -> Bucket {
        self.buckets = self.buckets.split_off(&bucket);
        let Some(sum) = self.buckets.remove(&bucket) else { return Bucket::default() };
        Bucket { messages: sum.messages, service_ns_median: SecondRow::of(0, 0, &sum.service).p50_ns }
    }

    /// Ends the sums when all notes were taken: completes the rows of the whole seconds of a window of this length.
    pub fn finish(&mut self, window_ns: u64) {
        let whole = window_ns / 1_000_000_000;
        self.close_seconds(whole);
        self.seconds.truncate(whole as usize);
        if let (Some(handed), Some(sum)) = (&mut self.handed, self.open_seconds.remove(&whole)) {
            // A part of a second here is in a whole one of a generator that ran longer.
            handed.push_back(sum.second_part());
        }
        self.open_seconds.clear();
    }

    fn close_seconds(&mut self, until: u64) {
        for second in self.seconds.len() as u64..until {
            let sum = self.open_seconds.remove(&second);
            self.seconds.push(sum.as_ref().map(Sum::row).unwrap_or_default());
            if let Some(handed) = &mut self.handed {
                handed.push_back(sum.as_ref().map(Sum::second_part).unwrap_or_default());
            }
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
            retracted: None,
        }
    }

    #[test]
    fn what_turned_out_to_be_wrong_is_taken_out_of_the_window_whenever_that_is_known() {
        let mut gather = Gather::new(1, Sections::default());
        gather.take(&notes(0, Interval::Window(0), &[100, 200, 300]));
        for (interval, time_ns) in [(Interval::Window(1), 100), (Interval::After, 300)] {
            let mut retracted = Retracted { messages: 1, bytes: 10, ..Retracted::default() };
            retracted.service.saturating_record(time_ns);
            gather.take(&IntervalNotes { retracted: Some(Box::new(retracted)), ..notes(0, interval, &[]) });
        }
        assert_eq!((gather.window.messages, gather.window.bytes), (1, 10));
        assert_eq!((gather.window.service.len(), gather.window.service.max()), (1, 200));
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
    fn the_second_that_absorbs_a_backlog_shows_how_long_it_waited() {
        let mut gather = Gather::new(1, Sections { paced: true, ..Sections::default() });
        let mut paced = PacedTimes::default();
        [1_000, 900_000].into_iter().for_each(|time| paced.response.saturating_record(time));
        gather.take(&IntervalNotes { paced: Some(paced), ..notes(0, Interval::Window(0), &[40, 41]) });
        let row = gather.seconds[0];
        assert_eq!((row.p50_ns, row.p99_ns > 890_000), (1_000, true));
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
    fn what_an_open_loop_waits_for_beyond_its_window_is_in_its_response_times() {
        let mut gather = Gather::new(1, Sections { paced: true, ..Sections::default() });
        for (interval, time_ns, at_least) in [(Interval::Window(0), 7, 0), (Interval::After, 9000, 1)] {
            let mut paced = PacedTimes { at_least, ..PacedTimes::default() };
            paced.response.saturating_record(time_ns);
            gather.take(&IntervalNotes { errors: at_least, paced: Some(paced), ..notes(0, interval, &[7]) });
        }
        let paced = gather.paced.as_ref().expect("an open loop");
        assert_eq!((paced.response.len(), paced.response.max() >= 9000, paced.at_least), (2, true, 1));
        assert_eq!((gather.window.messages, gather.window.errors, gather.errors_after), (1, 0, 1));
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
