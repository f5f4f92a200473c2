//! Observers of a slice: each rung of the ladder is an observer, and all return their results as rows.
//!
//! A timed slice has no observer. Its clocks are read at its edges, while the server sleeps.

mod programs;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io,
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::Duration,
};

use weir_record::{
    engine::EngineStats,
    machine::NetworkCounters,
    observation::{Rung, StraceRow},
    trial::Reading,
};

use crate::{
    ladder::strace::Strace,
    network,
    process::{ProcessTree, ThreadDelta},
    stats::StatsClient,
    watch::Looks,
};

pub use programs::{LoadedPrograms, Programs};

/// Most thread names with separate rows; the others share one.
pub const THREAD_NAMES_MAX: usize = 64;

/// Pause after an observed slice before the next one.
const GRACE: Duration = Duration::from_millis(50);

/// Time between two readings in repeated reading: a tenth of a watch's interval, so that a slice has several, and
/// their cost exceeds that of a watch.
const READING_INTERVAL: Duration = Duration::from_millis(100);

/// Source of the rows about an observer's own cost.
pub const OBSERVER: &str = "observer";

/// Something that observes a server between two moments at which it sleeps.
pub trait Observer {
    /// Its rung on the ladder.
    fn rung(&self) -> Rung;

    /// Starts observing; the slice is about to begin.
    ///
    /// # Errors
    /// Fails when observing is impossible; the slice then has no rows of this observer.
    fn begin(&mut self) -> io::Result<()>;

    /// Stops observing after the slice, and returns the results.
    ///
    /// # Errors
    /// Fails when the results cannot be read.
    fn end(&mut self) -> io::Result<Vec<Reading>>;
}

/// The observers of a slice. They start in order and stop in reverse order, so that the last is closest to the slice.
#[derive(Default)]
pub struct Observers<'a> {
    list: Vec<Entry<'a>>,
}

struct Entry<'a> {
    observer: Box<dyn Observer + 'a>,
    /// CPU time of its start, or why it could not start; `None` outside of a slice.
    begun: Option<io::Result<Duration>>,
}

impl<'a> Observers<'a> {
    /// Adds an observer, closer to the slice than those before.
    pub fn push(&mut self, observer: Box<dyn Observer + 'a>) {
        self.list.push(Entry { observer, begun: None });
    }

    /// Starts all observers; the slice is about to begin.
    pub fn begin(&mut self) {
        for entry in &mut self.list {
            let (begun, cost) = costing(|| entry.observer.begin());
            entry.begun = Some(begun.map(|()| cost));
        }
    }

    /// Stops all observers after the slice: returns the highest rung that observed it (clocks are always read), and
    /// all rows, including each observer's CPU and its failure.
    pub fn end(&mut self) -> (Rung, Vec<Reading>) {
        let (mut rung, mut readings) = (Rung::Process, Vec::new());
        let mut had_programs = false;
        for entry in self.list.iter_mut().rev() {
            let Some(begun) = entry.begun.take() else { continue };
            let own = entry.observer.rung();
            let failed = || reading(OBSERVER, &format!("{}-failed", own.key()), 1.0);
            let Ok(begun) = begun else {
                readings.push(failed());
                continue;
            };
            // It observed the slice, even if it returns nothing.
            rung = rung.max(own);
            had_programs |= own == Rung::Programs;
            match costing(|| entry.observer.end()) {
                (Ok(found), cost) => {
                    readings.extend(found);
                    let cpu_ns = (begun + cost).as_nanos() as f64;
                    readings.push(reading(OBSERVER, &format!("{}-cpu-ns", own.key()), cpu_ns));
                }
                (Err(_), _) => readings.push(failed()),
            }
        }
        if had_programs {
            // Calls stay slower for a moment after the last program is detached. The pause comes after all have
            // ended: otherwise some of them would count what a server does when it becomes idle.
            thread::sleep(GRACE);
        }
        (rung, readings)
    }
}

/// The result, and the CPU time of this thread.
fn costing<T>(act: impl FnOnce() -> T) -> (T, Duration) {
    let before = own_cpu();
    let given = act();
    (given, own_cpu().saturating_sub(before))
}

fn own_cpu() -> Duration {
    Duration::from_nanos(weir_sys::clock::thread_cpu_ns().unwrap_or(0))
}

/// A row.
pub fn reading(source: &str, key: &str, value: f64) -> Reading {
    Reading { source: source.to_owned(), key: key.to_owned(), value }
}

/// L0: the own counters of a Weir server. Asking wakes the server.
#[derive(Debug)]
pub struct EngineCounters {
    stats: StatsClient,
    is_timed: bool,
    before: EngineStats,
}

impl EngineCounters {
    /// Observes the server at the other end; `is_timed` also enables, for the slice, its clock for the time outside
    /// of system calls, which has a cost.
    pub fn new(stats: StatsClient, is_timed: bool) -> Self {
        Self { stats, is_timed, before: EngineStats::default() }
    }
}

impl Observer for EngineCounters {
    fn rung(&self) -> Rung {
        Rung::Engine
    }

    fn begin(&mut self) -> io::Result<()> {
        self.before = self.stats.time_calls(self.is_timed)?.total;
        Ok(())
    }

    fn end(&mut self) -> io::Result<Vec<Reading>> {
        let counted = self.stats.time_calls(false)?.total.since(&self.before);
        let mut readings = Vec::new();
        flatten("", &serde_json::to_value(counted).map_err(io::Error::other)?, &mut readings);
        Ok(readings)
    }
}

/// Every number of a record as a row, named by its path.
fn flatten(path: &str, value: &serde_json::Value, readings: &mut Vec<Reading>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                let name = name.replace('_', "-");
                let path = if path.is_empty() { name } else { format!("{path}.{name}") };
                flatten(&path, value, readings);
            }
        }
        serde_json::Value::Number(number) => {
            readings.extend(number.as_f64().map(|value| reading("engine", path, value)));
        }
        _ => {}
    }
}

/// L1: the kernel's data about a process, its descendants and their threads.
#[derive(Debug)]
pub struct Processes {
    pid: u32,
    before: ProcessTree,
}

impl Processes {
    /// Observes a process and all its descendants.
    pub fn new(pid: u32) -> Self {
        Self { pid, before: ProcessTree::default() }
    }
}

impl Observer for Processes {
    fn rung(&self) -> Rung {
        Rung::Process
    }

    fn begin(&mut self) -> io::Result<()> {
        self.before = ProcessTree::snapshot(self.pid)?;
        Ok(())
    }

    fn end(&mut self) -> io::Result<Vec<Reading>> {
        let after = ProcessTree::snapshot(self.pid)?;
        let delta = ProcessTree::delta(&self.before, &after);
        let mut readings = vec![
            reading("process", "cpu-ns", delta.cpu_ns as f64),
            reading("process", "ended-cpu-ns", delta.ended_cpu_ns as f64),
            reading("process", "run-delay-ns", delta.run_delay_ns as f64),
            reading("process", "context-switches-voluntary", delta.context_switches_voluntary as f64),
            reading("process", "context-switches-involuntary", delta.context_switches_involuntary as f64),
        ];
        readings.extend(threads(&self.before, &after));
        Ok(readings)
    }
}

/// L1 as in a watch: a separate thread reads /proc repeatedly while the slice runs. The readings are dropped, because
/// the slice measures the cost of reading.
#[derive(Debug)]
pub struct RepeatedReadings {
    pid: u32,
    reader: Option<Reader>,
}

#[derive(Debug)]
struct Reader {
    /// Dropped to stop the thread.
    stop: Sender<()>,
    /// Returns the number of readings, and their CPU time.
    thread: JoinHandle<(u64, Duration)>,
}

impl RepeatedReadings {
    /// Reads a process and all its descendants.
    pub fn new(pid: u32) -> Self {
        Self { pid, reader: None }
    }
}

impl Observer for RepeatedReadings {
    fn rung(&self) -> Rung {
        Rung::Process
    }

    fn begin(&mut self) -> io::Result<()> {
        let looks = Looks::begin(self.pid).map_err(io::Error::other)?;
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new().spawn(move || read_until(looks, &stopped))?;
        self.reader = Some(Reader { stop, thread });
        Ok(())
    }

    fn end(&mut self) -> io::Result<Vec<Reading>> {
        let Some(Reader { stop, thread }) = self.reader.take() else { return Ok(Vec::new()) };
        drop(stop);
        let (count, cpu) = thread.join().map_err(|_| io::Error::other("the readings failed"))?;
        let mut rows = vec![
            reading(OBSERVER, "readings", count as f64),
            reading(OBSERVER, "readings-cpu-ns", cpu.as_nanos() as f64),
        ];
        // Named like a group of the programs: its cost is reported in the same way.
        rows.extend((count > 0).then(|| reading("trace", "group-proc", 1.0)));
        Ok(rows)
    }
}

/// Reads until the other end is dropped.
fn read_until(mut looks: Looks, stopped: &Receiver<()>) -> (u64, Duration) {
    let mut count = 0;
    while matches!(stopped.recv_timeout(READING_INTERVAL), Err(RecvTimeoutError::Timeout)) {
        count += u64::from(looks.look());
    }
    (count, own_cpu())
}

/// L1: TCP problems in the network namespace of a process.
#[derive(Debug)]
pub struct Network {
    pid: u32,
    before: NetworkCounters,
}

impl Network {
    /// Observes the namespace of the process.
    pub fn new(pid: u32) -> Self {
        Self { pid, before: NetworkCounters::default() }
    }
}

impl Observer for Network {
    fn rung(&self) -> Rung {
        Rung::Process
    }

    fn begin(&mut self) -> io::Result<()> {
        self.before = network::read_of(self.pid);
        Ok(())
    }

    fn end(&mut self) -> io::Result<Vec<Reading>> {
        let seen = network::read_of(self.pid).since(&self.before);
        let rows = [
            ("listen-overflows", seen.listen_overflows),
            ("listen-drops", seen.listen_drops),
            ("retransmits", seen.tcp_retransmits),
            ("syn-retransmits", seen.syn_retransmits),
        ];
        Ok(rows.map(|(key, count)| reading("tcp", key, count as f64)).to_vec())
    }
}

/// L3: `strace`, which slows the observed process. It is shown beside the others, never used for measurements.
#[derive(Debug)]
pub struct UnderStrace {
    pid: u32,
    supervisor: Vec<OsString>,
    strace: Option<Strace>,
}

impl UnderStrace {
    /// Observes a process and all its descendants. For the supervisor see [`Strace::attach`].
    pub fn new(pid: u32, supervisor: Vec<OsString>) -> Self {
        Self { pid, supervisor, strace: None }
    }
}

impl Observer for UnderStrace {
    fn rung(&self) -> Rung {
        Rung::Strace
    }

    fn begin(&mut self) -> io::Result<()> {
        self.strace = Some(Strace::attach(self.pid, &self.supervisor)?);
        Ok(())
    }

    fn end(&mut self) -> io::Result<Vec<Reading>> {
        let Some(strace) = self.strace.take() else { return Ok(Vec::new()) };
        let of_row = |row: StraceRow| {
            let source = format!("strace {}", row.name);
            let keys = [("count", row.calls), ("errors", row.errors), ("time-ns", row.time_ns)];
            keys.map(|(key, value)| reading(&source, key, value as f64))
        };
        Ok(strace.finish()?.into_iter().flat_map(of_row).collect())
    }
}

/// Rows of the threads, summed by name.
fn threads(before: &ProcessTree, after: &ProcessTree) -> Vec<Reading> {
    let mut by_name: BTreeMap<String, [u64; 4]> = BTreeMap::new();
    for ThreadDelta { did, .. } in ProcessTree::thread_deltas(before, after) {
        let full = by_name.len() >= THREAD_NAMES_MAX && !by_name.contains_key(&did.name);
        let sums = by_name.entry(if full { "others".to_owned() } else { did.name }).or_default();
        let counts =
            [did.cpu_ns, did.run_delay_ns, did.context_switches_voluntary, did.context_switches_involuntary];
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    const KEYS: [&str; 4] =
        ["cpu-ns", "run-delay-ns", "context-switches-voluntary", "context-switches-involuntary"];
    rows_by_name(&by_name, KEYS)
}

/// Sums of threads that share a name, as rows.
fn rows_by_name<N: AsRef<str>, const COUNT: usize>(
    by_name: &BTreeMap<N, [u64; COUNT]>,
    keys: [&str; COUNT],
) -> Vec<Reading> {
    let mut rows = Vec::new();
    for (name, sums) in by_name {
        let source = format!("thread {}", name.as_ref());
        rows.extend(keys.iter().zip(sums).map(|(key, sum)| reading(&source, key, *sum as f64)));
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, rc::Rc};

    use super::*;
    use crate::process::{ProcessSample, ThreadSample};

    struct Said(&'static str, Rung, bool, Rc<RefCell<Vec<String>>>);

    impl Observer for Said {
        fn rung(&self) -> Rung {
            self.1
        }

        fn begin(&mut self) -> io::Result<()> {
            self.3.borrow_mut().push(format!("begin {}", self.0));
            if self.2 { Ok(()) } else { Err(io::Error::other("it cannot")) }
        }

        fn end(&mut self) -> io::Result<Vec<Reading>> {
            self.3.borrow_mut().push(format!("end {}", self.0));
            Ok(vec![reading(self.0, "count", 3.0)])
        }
    }

    #[test]
    fn the_last_is_closest_to_the_slice_and_one_that_cannot_begin_says_so() {
        let said = Rc::new(RefCell::new(Vec::new()));
        let mut observers = Observers::default();
        for (name, rung, can) in
            [("a", Rung::Engine, true), ("b", Rung::Strace, false), ("c", Rung::Programs, true)]
        {
            observers.push(Box::new(Said(name, rung, can, Rc::clone(&said))));
        }
        observers.begin();
        let (rung, rows) = observers.end();
        assert_eq!(rung, Rung::Programs, "b saw nothing");
        assert_eq!(*said.borrow(), ["begin a", "begin b", "begin c", "end c", "end a"]);
        let names: Vec<_> = rows.iter().map(|row| (row.source.as_str(), row.key.as_str())).collect();
        let cost = |key| (OBSERVER, key);
        let expected = [
            ("c", "count"),
            cost("programs-cpu-ns"),
            cost("strace-failed"),
            ("a", "count"),
            cost("engine-cpu-ns"),
        ];
        assert_eq!(names, expected);
        assert_eq!(observers.end(), (Rung::Process, Vec::new()), "nothing has begun");
    }

    #[test]
    fn engine_counters_become_rows_named_by_their_path() {
        let mut rows = Vec::new();
        let counted = serde_json::json!({"turns": 7, "sent": {"bytes_total": 5}, "driver": "epoll"});
        flatten("", &counted, &mut rows);
        rows.sort_by(|one, other| one.key.cmp(&other.key));
        assert_eq!(rows, [reading("engine", "sent.bytes-total", 5.0), reading("engine", "turns", 7.0)]);
    }

    fn thread(tid: u32, name: &str, counts: [u64; 4]) -> ThreadSample {
        let [cpu_ns, run_delay_ns, context_switches_voluntary, context_switches_involuntary] = counts;
        ThreadSample {
            tid,
            name: name.to_owned(),
            cpu_ns,
            run_delay_ns,
            context_switches_voluntary,
            context_switches_involuntary,
        }
    }

    #[test]
    fn threads_of_one_name_are_one_source_and_names_are_bounded() {
        let tree = |threads| ProcessTree {
            processes: vec![ProcessSample { pid: 1, started_ticks: 1, threads, ..ProcessSample::default() }],
        };
        let before = tree(vec![thread(1, "worker", [10, 1, 2, 3]), thread(2, "worker", [5, 0, 0, 0])]);
        let after = tree(vec![
            thread(1, "worker", [30, 2, 4, 6]),
            thread(2, "worker", [6, 0, 1, 0]),
            thread(3, "iou-wrk-1", [8, 0, 0, 0]),
        ]);
        let value = |rows: &[Reading], source: &str, key: &str| {
            rows.iter().find(|row| row.source == source && row.key == key).map(|row| row.value)
        };
        let rows = threads(&before, &after);
        assert_eq!(rows.len(), 8);
        assert_eq!(value(&rows, "thread worker", "cpu-ns"), Some(21.0));
        assert_eq!(value(&rows, "thread worker", "context-switches-voluntary"), Some(3.0));
        assert_eq!(value(&rows, "thread iou-wrk-1", "cpu-ns"), Some(8.0), "it is new");
        let many = (0..500).map(|tid| thread(tid, &format!("t{tid:03}"), [1, 0, 0, 0])).collect();
        let rows = threads(&ProcessTree::default(), &tree(many));
        assert_eq!(rows.len(), 4 * (THREAD_NAMES_MAX + 1));
        assert_eq!(value(&rows, "thread others", "cpu-ns"), Some(500.0 - THREAD_NAMES_MAX as f64));
    }

    #[test]
    fn a_process_that_works_has_its_cpu_and_its_threads_in_rows() {
        let mut observer = Processes::new(std::process::id());
        observer.begin().expect("it is this process");
        let mut sum = 0_u64;
        while own_cpu() < Duration::from_millis(30) {
            sum = sum.wrapping_mul(31).wrapping_add(7);
        }
        std::hint::black_box(sum);
        let rows = observer.end().expect("it is still there");
        assert!(rows.iter().any(|row| row.source == "process" && row.key == "cpu-ns" && row.value > 0.0));
        assert!(rows.iter().any(|row| row.source.starts_with("thread ")));
        assert!(Processes::new(u32::MAX).begin().is_err(), "there is no such process");
    }

    #[test]
    fn a_process_that_is_read_again_and_again_has_rows_of_that_and_of_what_it_took() {
        let value = |rows: &[Reading], source: &str, key: &str| {
            rows.iter().find(|row| row.source == source && row.key == key).map(|row| row.value)
        };
        let mut observer = RepeatedReadings::new(std::process::id());
        let mut observe = |intervals: u32| {
            observer.begin().expect("it is this process");
            let until = own_cpu() + intervals * READING_INTERVAL;
            while own_cpu() < until {
                std::hint::spin_loop();
            }
            observer.end().expect("it is still there")
        };
        // A busy machine may not run the other thread in a short time.
        let rows = (2..8).map(&mut observe).find(|rows| value(rows, "trace", "group-proc").is_some());
        let rows = rows.expect("it was read");
        assert!(value(&rows, OBSERVER, "readings").is_some_and(|count| count >= 1.0), "{rows:?}");
        assert!(value(&rows, OBSERVER, "readings-cpu-ns").is_some_and(|ns| ns > 0.0), "{rows:?}");
        // Without time nothing is read, and nothing was added to the process.
        let rows = observe(0);
        let count = value(&rows, OBSERVER, "readings").expect("it says how often it read");
        assert_eq!(value(&rows, "trace", "group-proc").is_some(), count > 0.0, "{rows:?}");
        assert!(RepeatedReadings::new(u32::MAX).begin().is_err(), "there is no such process");
    }
}
