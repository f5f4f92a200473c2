//! One worker's notes of messages, in intervals that are handed over whole.
//!
//! The bounds of the window are two shared moments, unknown until they are published. No worker stops at a bound:
//! each compares the time of every event with the bounds, so all workers agree on which message lies inside. Until
//! the window opens an interval is one bucket of the warm-up, inside the window it is one second, and after the
//! window everything belongs to the last interval. A finished interval is handed to the code that adds them up;
//! histograms have the same bounds everywhere, so adding loses nothing.
//!
//! Pure except for the shared bounds: time is an argument. Work per message: one histogram entry and a few additions.

use std::{
    any::Any,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use hdrhistogram::Histogram;
use weir_record::{failure::FailureCounts, latency::empty_histogram};

use crate::{
    connection_notes::ConnectionNotes,
    failure::{self, Class},
    littles_law::InFlight,
    payload::Arrival,
    warmup,
};

const SECOND_NS: u64 = 1_000_000_000;

/// When the window opens, when the last message may start, and when the window closes; each is unknown until it is
/// published. A slice has no close: messages started before its stop belong to it.
#[derive(Debug)]
pub struct WindowBounds {
    open_ns: AtomicU64,
    stop_ns: AtomicU64,
    close_ns: AtomicU64,
    is_given_up: AtomicBool,
}

impl Default for WindowBounds {
    fn default() -> Self {
        let unknown = || AtomicU64::new(u64::MAX);
        Self {
            open_ns: unknown(),
            stop_ns: unknown(),
            close_ns: unknown(),
            is_given_up: AtomicBool::new(false),
        }
    }
}

impl WindowBounds {
    /// Opens the window: what is completed from `at_ns` on lies inside.
    pub fn open(&self, at_ns: u64) {
        self.open_ns.store(at_ns, Ordering::Release);
    }

    /// Closes the window: what is completed at `at_ns` or later lies outside, and nothing more is started.
    pub fn close(&self, at_ns: u64) {
        self.close_ns.store(at_ns, Ordering::Release);
        self.stop(at_ns);
    }

    /// Stops starts at `at_ns`; messages in flight still count.
    pub fn stop(&self, at_ns: u64) {
        self.stop_ns.store(at_ns, Ordering::Release);
    }

    /// Resets the bounds while no worker reads them: the window opens at `open_ns`, which may be `u64::MAX` for
    /// never.
    pub fn restart(&self, open_ns: u64) {
        for edge in [&self.stop_ns, &self.close_ns] {
            edge.store(u64::MAX, Ordering::Release);
        }
        self.open(open_ns);
    }

    /// Ends the wait for messages in flight.
    pub fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Release);
    }

    /// Whether the wait for messages in flight was ended.
    pub fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Acquire)
    }

    /// Whether messages may still be started.
    #[inline]
    pub fn is_running(&self) -> bool {
        self.stop_ns() == u64::MAX
    }

    /// When the last message may start; `u64::MAX` while that is unknown.
    #[inline]
    pub fn stop_ns(&self) -> u64 {
        self.stop_ns.load(Ordering::Acquire)
    }

    /// When it opens; `u64::MAX` while that is unknown.
    #[inline]
    pub fn open_ns(&self) -> u64 {
        self.open_ns.load(Ordering::Acquire)
    }

    /// When it closes; `u64::MAX` while that is unknown.
    #[inline]
    pub fn close_ns(&self) -> u64 {
        self.close_ns.load(Ordering::Acquire)
    }
}

/// The interval of notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// A bucket of the warm-up, from 0.
    Warmup(u64),
    /// A second of the window, from 0; the last one may be short.
    Window(u64),
    /// After the window.
    After,
}

/// One worker's notes of one interval.
#[derive(Debug)]
pub struct IntervalNotes {
    /// Worker, from 0.
    pub worker: usize,
    /// Which interval.
    pub interval: Interval,
    /// Messages completed and verified.
    pub messages: u64,
    /// Bytes of those messages that were compared.
    pub bytes: u64,
    /// Messages started, without those taken back: these may have been started in an earlier interval.
    pub started: i64,
    /// Failures of all classes.
    pub errors: u64,
    /// From actual start to last byte.
    pub service: Histogram<u64>,
    /// Open loop only.
    pub paced: Option<PacedTimes>,
    /// The protocol's own counts.
    pub section: Option<Box<dyn Section>>,
    /// Messages of the window, of this interval or of earlier ones, that were noted as right and turned out to be
    /// wrong.
    pub retracted: Option<Box<Retracted>>,
}

/// Messages that were noted as right and turned out to be wrong.
#[derive(Debug)]
pub struct Retracted {
    /// How many.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their service times.
    pub service: Histogram<u64>,
    /// Their response times.
    pub response: Histogram<u64>,
}

impl Default for Retracted {
    fn default() -> Self {
        Self { messages: 0, bytes: 0, service: empty_histogram(), response: empty_histogram() }
    }
}

/// The protocol's own counts of one interval.
pub trait Section: Any + fmt::Debug + Send {
    /// Adds the counts of another section of the same type.
    fn add(&mut self, other: &dyn Section);
}

/// What is noted besides service times.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sections {
    /// Times from intended starts: an open loop.
    pub paced: bool,
    /// Counts of connections.
    pub connections: bool,
    /// Creates an empty section of the protocol's own.
    pub own: Option<fn() -> Box<dyn Section>>,
}

/// Times that only a paced load has.
#[derive(Clone, Debug)]
pub struct PacedTimes {
    /// From intended start to last byte, or to the end of the wait if no answer came.
    pub response: Histogram<u64>,
    /// Response times that are lower bounds, because no answer came.
    pub at_least: u64,
    /// From intended to actual start.
    pub lag: Histogram<u64>,
}

impl Default for PacedTimes {
    fn default() -> Self {
        Self { response: empty_histogram(), at_least: 0, lag: empty_histogram() }
    }
}

/// Notes of finished intervals on their way to the coordinator. It is emptied ten times a second, and bounded by the
/// number of intervals of a run.
pub type Outbox = Arc<Mutex<Vec<IntervalNotes>>>;

/// Times of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingMessage {
    /// When it should have started; the same as `started_ns` in a closed loop.
    pub intended_ns: u64,
    /// When it started.
    pub started_ns: u64,
}

/// Right answers that arrived together.
#[derive(Clone, Copy, Debug)]
pub struct RightAnswer {
    /// When they arrived.
    pub now_ns: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whether they were noted in the window.
    pub is_in_window: bool,
}

/// The notes of one worker.
#[derive(Debug)]
pub struct Recorder {
    worker: usize,
    sections: Sections,
    bounds: Arc<WindowBounds>,
    origin_ns: u64,
    outbox: Outbox,
    notes: IntervalNotes,
    interval_end_ns: u64,
    in_flight: InFlight,
    window_area: u128,
    failures: FailureCounts,
    completed: u64,
    completed_ns: u64,
    failure_first: Option<FirstFailure>,
    failure_last: Option<String>,
    connections: Option<ConnectionNotes>,
}

/// The first failure of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstFailure {
    /// When it was noted.
    pub at_ns: u64,
    /// Its class.
    pub class: Class,
    /// Its text.
    pub text: String,
}

/// What remains when a worker ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leftover {
    /// Integral of the number in flight over the window.
    pub window_area: u128,
    /// Failures of the whole run.
    pub failures: FailureCounts,
}

impl Recorder {
    /// Notes of `worker`, beginning at `origin_ns`.
    pub fn new(
        worker: usize,
        sections: Sections,
        bounds: Arc<WindowBounds>,
        origin_ns: u64,
        outbox: Outbox,
    ) -> Self {
        let mut recorder = Self {
            worker,
            sections,
            bounds,
            origin_ns,
            outbox,
            notes: empty_notes(worker, Interval::Warmup(0), sections),
            interval_end_ns: 0,
            in_flight: InFlight::default(),
            window_area: 0,
            failures: FailureCounts::default(),
            completed: 0,
            completed_ns: 0,
            failure_first: None,
            failure_last: None,
            connections: sections.connections.then(ConnectionNotes::default),
        };
        (recorder.notes.interval, recorder.interval_end_ns) = recorder.interval_at(origin_ns);
        recorder
    }

    /// Moves on to `now_ns`; hands over the current notes when its time is over.
    #[inline]
    pub fn advance(&mut self, now_ns: u64) {
        let limit = match self.notes.interval {
            Interval::Warmup(_) => self.bounds.open_ns().min(self.bounds.close_ns()),
            Interval::Window(_) => self.bounds.close_ns(),
            Interval::After => return,
        };
        if now_ns >= self.interval_end_ns.min(limit) {
            self.turn_over(now_ns);
        }
    }

    /// Notes a message that starts; call [`Self::advance`] with the same time first.
    #[inline]
    pub fn started(&mut self, pending: PendingMessage) {
        self.in_flight.started(pending.started_ns, 1);
        self.notes.started += 1;
        if let Some(paced) = &mut self.notes.paced {
            paced.lag.saturating_record(pending.started_ns.saturating_sub(pending.intended_ns));
        }
    }

    /// Notes an arrival and the messages it completed, oldest first; call [`Self::advance`] first.
    #[inline]
    pub fn arrived(&mut self, now_ns: u64, arrival: &Arrival, pending: impl Iterator<Item = PendingMessage>) {
        self.in_flight.ended(now_ns, arrival.messages);
        self.notes.messages += arrival.messages;
        self.notes.bytes += arrival.bytes;
        self.completed += arrival.messages;
        self.completed_ns = now_ns;
        for pending in pending {
            self.notes.service.saturating_record(now_ns.saturating_sub(pending.started_ns));
            if let Some(paced) = &mut self.notes.paced {
                paced.response.saturating_record(now_ns.saturating_sub(pending.intended_ns));
            }
        }
    }

    /// Notes a message of an open loop that was never started, or not answered by `now_ns`: its response time is a
    /// lower bound.
    #[cold]
    pub fn unanswered(&mut self, now_ns: u64, intended_ns: u64) {
        self.advance(now_ns);
        if let Some(paced) = &mut self.notes.paced {
            paced.response.saturating_record(now_ns.saturating_sub(intended_ns));
            paced.at_least += 1;
        }
    }

    /// Notes messages in flight as cut off: this side has closed their connection.
    #[cold]
    pub fn cut_off(&mut self, now_ns: u64, messages: u64) {
        self.advance(now_ns);
        self.in_flight.ended(now_ns, messages);
        self.failures.cut_off_at_end += messages;
    }

    /// Retracts a message that was noted as right. The caller notes the failure separately.
    #[cold]
    pub fn retract(&mut self, right: RightAnswer, pending: PendingMessage) {
        self.completed -= 1;
        if !right.is_in_window {
            return;
        }
        let retracted = self.notes.retracted.get_or_insert_default();
        retracted.messages += 1;
        retracted.bytes += right.bytes;
        retracted.service.saturating_record(right.now_ns.saturating_sub(pending.started_ns));
        retracted.response.saturating_record(right.now_ns.saturating_sub(pending.intended_ns));
    }

    /// The protocol's own counts of this interval, if they are of this type; call [`Self::advance`] first.
    #[inline]
    pub fn section<S: Section>(&mut self) -> Option<&mut S> {
        let section: &mut dyn Any = &mut **self.notes.section.as_mut()?;
        section.downcast_mut()
    }

    /// Notes messages in flight that are taken back: they neither returned nor failed, and will be started again.
    #[cold]
    pub fn withdrawn(&mut self, now_ns: u64, messages: u64) {
        self.advance(now_ns);
        self.in_flight.ended(now_ns, messages);
        self.notes.started -= messages as i64;
        if let Some(connections) = &mut self.connections {
            connections.withdrawn += messages;
        }
    }

    /// Counts of connections, where they are kept.
    pub fn connections(&mut self) -> Option<&mut ConnectionNotes> {
        self.connections.as_mut()
    }

    /// Notes a failure that ended `in_flight` messages. A failure with nothing in flight counts once.
    #[cold]
    pub fn failed(&mut self, now_ns: u64, class: Class, in_flight: u64, text: String) {
        self.advance(now_ns);
        let failures = in_flight.max(1);
        self.in_flight.ended(now_ns, in_flight);
        self.notes.errors += failures;
        failure::count(&mut self.failures, class, failures);
        self.failure_first.get_or_insert_with(|| FirstFailure { at_ns: now_ns, class, text: text.clone() });
        self.failure_last = Some(text);
    }

    /// Messages in flight now.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.now()
    }

    /// Messages completed since the start of the run.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Whether what is noted now lies in the window; call [`Self::advance`] first.
    #[inline]
    pub fn is_in_window(&self) -> bool {
        matches!(self.notes.interval, Interval::Window(_))
    }

    /// Bytes compared of the messages of this interval.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.notes.bytes
    }

    /// When the last message was completed, or 0.
    pub fn completed_ns(&self) -> u64 {
        self.completed_ns
    }

    /// Failures so far.
    pub fn failures(&self) -> &FailureCounts {
        &self.failures
    }

    /// The first failure.
    pub fn failure_first(&self) -> Option<&FirstFailure> {
        self.failure_first.as_ref()
    }

    /// Text of the last failure.
    pub fn failure_last(&self) -> Option<&str> {
        self.failure_last.as_deref()
    }

    /// Ends at `now_ns`, when the bounds are known: messages in flight are counted as cut off. Nothing is noted
    /// afterwards.
    pub fn finish(&mut self, now_ns: u64) -> Leftover {
        self.advance(now_ns);
        if matches!(self.notes.interval, Interval::Window(_)) {
            self.window_area = self.in_flight.area_until(now_ns);
        }
        self.failures.cut_off_at_end += self.in_flight.now();
        let next = empty_notes(self.worker, Interval::After, self.sections);
        flush(&self.outbox, std::mem::replace(&mut self.notes, next));
        Leftover { window_area: self.window_area, failures: self.failures }
    }

    fn turn_over(&mut self, now_ns: u64) {
        let (interval, end_ns) = self.interval_at(now_ns);
        let open_ns = self.bounds.open_ns();
        if matches!(self.notes.interval, Interval::Warmup(_)) && now_ns >= open_ns {
            self.in_flight.restart(open_ns);
        }
        if interval == Interval::After && now_ns >= open_ns {
            self.window_area = self.in_flight.area_until(self.bounds.close_ns());
        }
        let next = empty_notes(self.worker, interval, self.sections);
        flush(&self.outbox, std::mem::replace(&mut self.notes, next));
        self.interval_end_ns = end_ns;
    }

    /// The interval of a moment, and its end as far as it is known.
    fn interval_at(&self, now_ns: u64) -> (Interval, u64) {
        let (open_ns, close_ns) = (self.bounds.open_ns(), self.bounds.close_ns());
        if now_ns >= close_ns {
            return (Interval::After, u64::MAX);
        }
        let (from_ns, length_ns) = if now_ns >= open_ns {
            (open_ns, SECOND_NS)
        } else {
            (self.origin_ns, warmup::BUCKET.as_nanos() as u64)
        };
        let index = now_ns.saturating_sub(from_ns) / length_ns;
        let end_ns = from_ns.saturating_add((index + 1).saturating_mul(length_ns));
        (if now_ns >= open_ns { Interval::Window(index) } else { Interval::Warmup(index) }, end_ns)
    }
}

fn empty_notes(worker: usize, interval: Interval, sections: Sections) -> IntervalNotes {
    IntervalNotes {
        worker,
        interval,
        messages: 0,
        bytes: 0,
        started: 0,
        errors: 0,
        service: empty_histogram(),
        paced: sections.paced.then(PacedTimes::default),
        section: sections.own.map(|new| new()),
        retracted: None,
    }
}

fn flush(outbox: &Outbox, notes: IntervalNotes) {
    outbox.lock().unwrap_or_else(PoisonError::into_inner).push(notes);
}

#[cfg(test)]
mod tests {
    use weir_record::load::LittlesLaw;

    use super::*;
    use crate::littles_law::littles_law;

    fn recorder(bounds: &Arc<WindowBounds>, is_paced: bool) -> (Recorder, Outbox) {
        let outbox = Outbox::default();
        let sections = Sections { paced: is_paced, connections: true, own: None };
        (Recorder::new(0, sections, Arc::clone(bounds), 1000, Arc::clone(&outbox)), outbox)
    }

    fn start(recorder: &mut Recorder, intended_ns: u64, started_ns: u64) -> PendingMessage {
        let pending = PendingMessage { intended_ns, started_ns };
        recorder.advance(started_ns);
        recorder.started(pending);
        pending
    }

    fn complete(recorder: &mut Recorder, now_ns: u64, pending: PendingMessage) {
        recorder.advance(now_ns);
        let arrival = Arrival { messages: 1, bytes: 64, wrong: None };
        recorder.arrived(now_ns, &arrival, std::iter::once(pending));
    }

    fn all_notes(outbox: &Outbox) -> Vec<(Interval, u64, i64)> {
        let all_notes = outbox.lock().expect("no thread panicked");
        all_notes.iter().map(|notes| (notes.interval, notes.messages, notes.started)).collect()
    }

    /// For a user who opens a connection per message: durations of connecting, of the answer, and of the server's
    /// close.
    const CHURN_NS: [u64; 3] = [3_000_000, 2_000_000, 4_000_000];
    const CHURN_USERS: u64 = 8;
    const CHURN_WINDOW_NS: u64 = 500_000_000;

    /// Both sides of the law for such users, whose messages are in flight from the start of their connections, while
    /// their times start `later_ns` later.
    fn law_of_churn(later_ns: u64) -> LittlesLaw {
        let [connecting_ns, answer_ns, closing_ns] = CHURN_NS;
        let turn_ns = connecting_ns + answer_ns + closing_ns;
        let bounds = Arc::new(WindowBounds::default());
        let (mut recorder, outbox) = recorder(&bounds, false);
        bounds.open(100_000_000);
        bounds.close(100_000_000 + CHURN_WINDOW_NS);
        // Each moment with the begin of its message.
        let mut moments: Vec<(u64, u64)> = (0..CHURN_USERS)
            .flat_map(|user| {
                let first_ns = 1000 + user * turn_ns / CHURN_USERS;
                (0..80).map(move |turn| first_ns + turn * turn_ns)
            })
            .flat_map(|begun_ns| [(begun_ns, begun_ns), (begun_ns + connecting_ns + answer_ns, begun_ns)])
            .collect();
        moments.sort_unstable();
        for (now_ns, begun_ns) in moments {
            if now_ns == begun_ns {
                start(&mut recorder, begun_ns, begun_ns);
            } else {
                let started_ns = begun_ns + later_ns;
                complete(&mut recorder, now_ns, PendingMessage { intended_ns: started_ns, started_ns });
            }
        }
        let area = recorder.finish(1_000_000_000).window_area;
        let mut service = empty_histogram();
        let all_notes = outbox.lock().expect("no thread panicked");
        for notes in all_notes.iter().filter(|notes| matches!(notes.interval, Interval::Window(_))) {
            service.add(&notes.service).expect("histograms have the same bounds");
        }
        littles_law(area, CHURN_WINDOW_NS, service.len(), service.mean())
    }

    #[test]
    fn with_a_connection_for_each_message_connecting_is_in_its_time_and_the_wait_for_the_close_is_not() {
        let [connecting_ns, answer_ns, closing_ns] = CHURN_NS;
        let in_flight_ns = connecting_ns + answer_ns;
        let in_flight = (CHURN_USERS * in_flight_ns) as f64 / (in_flight_ns + closing_ns) as f64;
        let law = law_of_churn(0);
        assert!((law.in_flight_mean / in_flight - 1.0).abs() < 0.01, "{law:?}");
        assert!((law.throughput_times_latency / in_flight - 1.0).abs() < 0.01, "{law:?}");
        // The law does not hold for times that exclude connecting.
        let late = law_of_churn(connecting_ns);
        assert!((late.in_flight_mean / in_flight - 1.0).abs() < 0.01, "{late:?}");
        assert!(late.throughput_times_latency < 0.5 * late.in_flight_mean, "{late:?}");
    }

    #[test]
    fn what_is_taken_back_in_a_later_stretch_was_not_started() {
        let bounds = Arc::new(WindowBounds::default());
        bounds.open(1000);
        let (mut recorder, outbox) = recorder(&bounds, false);
        start(&mut recorder, 2000, 2000);
        start(&mut recorder, 3000, 3000);
        recorder.withdrawn(1_500_000_000, 1);
        bounds.close(1_600_000_000);
        recorder.finish(1_700_000_000);
        let started: i64 = all_notes(&outbox).iter().map(|(_, _, started)| started).sum();
        assert_eq!(started, 1);
    }

    #[test]
    fn the_first_failure_is_kept_and_the_last_is_told() {
        let (mut recorder, _) = recorder(&Arc::new(WindowBounds::default()), false);
        for (now_ns, text) in [(2000, "one"), (3000, "two")] {
            recorder.failed(now_ns, Class::Short, 0, text.into());
        }
        let first = FirstFailure { at_ns: 2000, class: Class::Short, text: "one".into() };
        assert_eq!((recorder.failure_first(), recorder.failure_last()), (Some(&first), Some("two")));
    }

    #[test]
    fn a_message_belongs_to_the_stretch_in_which_it_was_completed() {
        let bounds = Arc::new(WindowBounds::default());
        let (mut recorder, outbox) = recorder(&bounds, false);
        let first = start(&mut recorder, 1000, 1000);
        complete(&mut recorder, 99_000_000, first);
        let second = start(&mut recorder, 99_000_000, 99_000_000);
        complete(&mut recorder, 150_000_000, second);
        let third = start(&mut recorder, 150_000_000, 150_000_000);
        bounds.open(160_000_000);
        complete(&mut recorder, 160_000_000, third);
        let fourth = start(&mut recorder, 170_000_000, 170_000_000);
        complete(&mut recorder, 1_160_000_000, fourth);
        let fifth = start(&mut recorder, 1_160_000_000, 1_160_000_000);
        bounds.close(1_300_000_000);
        complete(&mut recorder, 1_300_000_000, fifth);
        let leftover = recorder.finish(1_400_000_000);
        assert_eq!(
            all_notes(&outbox),
            [
                (Interval::Warmup(0), 1, 2),
                (Interval::Warmup(1), 1, 1),
                (Interval::Window(0), 1, 1),
                (Interval::Window(1), 1, 1),
                (Interval::After, 1, 0),
            ]
        );
        // Nothing in flight for 10 ms, otherwise one message.
        assert_eq!(leftover.window_area, 1_140_000_000 - 10_000_000);
        assert_eq!(leftover.failures, FailureCounts::default());
    }

    #[test]
    fn a_stall_over_the_whole_window_still_counts_what_was_in_flight() {
        let bounds = Arc::new(WindowBounds::default());
        let (mut recorder, outbox) = recorder(&bounds, false);
        start(&mut recorder, 1000, 1000);
        start(&mut recorder, 1000, 1000);
        bounds.open(2000);
        bounds.close(5000);
        let leftover = recorder.finish(9000);
        assert_eq!(leftover.window_area, 2 * 3000);
        assert_eq!(leftover.failures.cut_off_at_end, 2);
        assert_eq!(all_notes(&outbox), [(Interval::Warmup(0), 0, 2), (Interval::After, 0, 0)]);
    }

    #[test]
    fn a_run_that_ends_before_its_window_has_no_window() {
        let bounds = Arc::new(WindowBounds::default());
        let (mut recorder, outbox) = recorder(&bounds, false);
        let pending = start(&mut recorder, 1000, 1000);
        bounds.close(2000);
        complete(&mut recorder, 3000, pending);
        assert_eq!(recorder.finish(4000).window_area, 0);
        assert_eq!(all_notes(&outbox), [(Interval::Warmup(0), 0, 1), (Interval::After, 1, 0)]);
    }

    #[test]
    fn paced_times_count_from_the_intended_start() {
        let bounds = Arc::new(WindowBounds::default());
        bounds.open(0);
        let (mut recorder, outbox) = recorder(&bounds, true);
        let pending = start(&mut recorder, 2000, 2300);
        complete(&mut recorder, 2800, pending);
        recorder.finish(3000);
        let all_notes = outbox.lock().expect("no thread panicked");
        let paced = all_notes[0].paced.as_ref().expect("an open loop");
        assert_eq!((all_notes[0].service.max(), paced.response.max(), paced.lag.max()), (500, 800, 300));
    }

    #[test]
    fn what_was_never_answered_has_waited_at_least_so_long() {
        let bounds = Arc::new(WindowBounds::default());
        bounds.open(0);
        let (mut recorder, outbox) = recorder(&bounds, true);
        start(&mut recorder, 2000, 2300);
        bounds.close(5000);
        recorder.unanswered(9000, 2000);
        recorder.failed(9000, Class::ResponseTimeout, 1, "no response".into());
        recorder.finish(9100);
        let all_notes = outbox.lock().expect("no thread panicked");
        let times = |notes: &IntervalNotes| notes.paced.as_ref().map(|it| (it.at_least, it.response.max()));
        assert_eq!(all_notes.iter().map(times).collect::<Vec<_>>(), [Some((0, 0)), Some((1, 7003))]);
    }

    #[test]
    fn a_withdrawn_message_was_never_started() {
        let bounds = Arc::new(WindowBounds::default());
        bounds.open(0);
        let (mut recorder, outbox) = recorder(&bounds, false);
        start(&mut recorder, 2000, 2000);
        start(&mut recorder, 2000, 2000);
        recorder.withdrawn(2500, 2);
        assert_eq!(recorder.in_flight(), 0);
        assert_eq!(recorder.finish(3000).failures, FailureCounts::default());
        assert_eq!(all_notes(&outbox), [(Interval::Window(0), 0, 0)]);
        assert_eq!(recorder.connections().expect("they are kept").withdrawn, 2);
    }

    #[test]
    fn a_failure_ends_all_messages_in_flight_and_at_least_counts_itself() {
        let bounds = Arc::new(WindowBounds::default());
        let (mut recorder, _outbox) = recorder(&bounds, false);
        for _ in 0..3 {
            start(&mut recorder, 2000, 2000);
        }
        recorder.failed(2100, Class::Reset, 3, "reset".into());
        recorder.failed(2200, Class::Refused, 0, "refused".into());
        assert_eq!(recorder.in_flight(), 0);
        assert_eq!(recorder.failure_last(), Some("refused"));
        let expected = FailureCounts { reset: 3, refused: 1, ..FailureCounts::default() };
        assert_eq!(recorder.finish(2300).failures, expected);
    }
}
