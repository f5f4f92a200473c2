//! Lines about requests, written by a thread of their own. A worker never waits for a disk: when the queue is full the
//! line is dropped and counted.

use std::{
    io::{self, BufWriter, Write},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel},
    },
    thread,
    time::Duration,
};

use super::counters::HttpCounters;

/// Lines that may wait to be written.
const QUEUE_LINES_MAX: usize = 16 << 10;

/// How long the last lines may take to be written.
const FINISH_LIMIT: Duration = Duration::from_secs(5);

enum Entry {
    Line(String),
    End,
}

/// What the writer and those who wait for its end know of each other.
#[derive(Debug, Default)]
struct Progress {
    /// The writer ends when its queue is empty.
    is_ending: AtomicBool,
    /// Lines in the queue.
    queued: AtomicU64,
}

/// The queue, and the thread behind it.
#[derive(Debug)]
pub(super) struct AccessLog {
    queue: SyncSender<Entry>,
    counters: Arc<HttpCounters>,
    progress: Arc<Progress>,
    /// Disconnected when the writer has ended.
    writer: Mutex<Option<Receiver<()>>>,
}

impl AccessLog {
    pub(super) fn start(sink: Box<dyn Write + Send>, counters: Arc<HttpCounters>) -> io::Result<Self> {
        let (queue, lines) = sync_channel(QUEUE_LINES_MAX);
        let (failed, progress) = (Arc::clone(&counters), Arc::new(Progress::default()));
        let (alive, writer) = sync_channel(0);
        let known = Arc::clone(&progress);
        thread::Builder::new().name("weir-access-log".into()).spawn(move || {
            let _alive = alive;
            write(&lines, BufWriter::new(sink), &known, &failed);
        })?;
        Ok(Self { queue, counters, progress, writer: Mutex::new(Some(writer)) })
    }

    /// Queues a line, with its end.
    pub(super) fn line(&self, text: String) {
        self.progress.queued.fetch_add(1, Relaxed);
        if self.queue.try_send(Entry::Line(text)).is_err() {
            self.progress.queued.fetch_sub(1, Relaxed);
            self.counters.count_dropped_line();
        }
    }

    /// Waits until everything queued before is written; not for ever, because a sink may be a pipe that nobody reads.
    pub(super) fn finish(&self) {
        self.finish_within(FINISH_LIMIT);
    }

    fn finish_within(&self, limit: Duration) {
        let Some(writer) = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        self.progress.is_ending.store(true, Relaxed);
        // A writer that waits is woken by it. In a full queue there is no room, and nobody who waits for more.
        let _ = self.queue.try_send(Entry::End);
        // Nothing is ever sent: it disconnects, after a panic of the sink too.
        if writer.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            self.counters.count_failed_lines(self.progress.queued.load(Relaxed));
        }
    }
}

fn write(
    lines: &Receiver<Entry>,
    mut sink: BufWriter<Box<dyn Write + Send>>,
    progress: &Progress,
    counters: &HttpCounters,
) {
    while let Some(Entry::Line(line)) = next(lines, &mut sink, progress, counters) {
        progress.queued.fetch_sub(1, Relaxed);
        if sink.write_all(line.as_bytes()).is_err() {
            counters.count_failed_lines(1);
        }
    }
    if sink.flush().is_err() {
        counters.count_failed_lines(1);
    }
}

/// The next entry. What was written before is flushed when there is none yet, so that a reader is never behind.
fn next(
    lines: &Receiver<Entry>,
    sink: &mut BufWriter<Box<dyn Write + Send>>,
    progress: &Progress,
    counters: &HttpCounters,
) -> Option<Entry> {
    match lines.try_recv() {
        Ok(entry) => return Some(entry),
        Err(TryRecvError::Disconnected) => return None,
        Err(TryRecvError::Empty) => {}
    }
    if sink.flush().is_err() {
        counters.count_failed_lines(1);
    }
    if progress.is_ending.load(Relaxed) {
        return None;
    }
    lines.recv().ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Condvar;

    use super::*;

    /// A sink that takes nothing until it is opened.
    #[derive(Clone, Default)]
    struct Gate(Arc<Gated>);

    #[derive(Default)]
    struct Gated {
        state: Mutex<(bool, Vec<u8>)>,
        opened: Condvar,
    }

    impl Gate {
        fn open(&self) {
            self.0.state.lock().expect("no panic").0 = true;
            self.0.opened.notify_all();
        }

        fn text(&self) -> String {
            String::from_utf8(self.0.state.lock().expect("no panic").1.clone()).expect("lines are text")
        }
    }

    impl Write for Gate {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let state = self.0.state.lock().expect("no panic");
            let mut state = self.0.opened.wait_while(state, |(open, _)| !*open).expect("no panic");
            state.1.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_queue_drops_lines_and_counts_them_and_the_others_are_written_in_order() {
        const LINES: usize = QUEUE_LINES_MAX + 10_000;
        let (gate, counters) = (Gate::default(), Arc::new(HttpCounters::default()));
        let log = AccessLog::start(Box::new(gate.clone()), Arc::clone(&counters)).expect("a thread");
        // Long enough that no buffer of the writer's holds what the queue does not.
        let padding = "x".repeat(100);
        (0..LINES).for_each(|number| log.line(format!("{number} {padding}\n")));
        let dropped = counters.log_lines_dropped() as usize;
        // The queue, and what the writer had taken: one write's worth.
        assert!((1..=10_000).contains(&dropped), "{dropped} dropped");
        gate.open();
        log.finish();
        let numbers: Vec<usize> = gate
            .text()
            .lines()
            .map(|line| line.split(' ').next().and_then(|word| word.parse().ok()).expect("a number"))
            .collect();
        assert_eq!(numbers.len() + dropped, LINES);
        assert!(numbers.is_sorted(), "in the order they came");
        assert_eq!(counters.log_lines_failed(), 0);
        log.line("too late\n".into());
        log.finish();
        assert!(!gate.text().contains("late"));
    }

    #[test]
    fn a_sink_that_takes_nothing_ends_no_later_and_its_lines_are_counted() {
        let (gate, counters) = (Gate::default(), Arc::new(HttpCounters::default()));
        let log = AccessLog::start(Box::new(gate.clone()), Arc::clone(&counters)).expect("a thread");
        let line = format!("{}\n", "x".repeat(100));
        let full = QUEUE_LINES_MAX + 10_000;
        (0..full).for_each(|_| log.line(line.clone()));
        log.finish_within(Duration::from_millis(10));
        let lost = counters.log_lines_dropped() + counters.log_lines_failed();
        // One write's worth was taken.
        assert!((full as u64 - 1000..=full as u64).contains(&lost), "{lost} lost");
        gate.open();
    }

    #[test]
    fn a_sink_that_fails_is_counted_and_ends_nothing() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let counters = Arc::new(HttpCounters::default());
        let log = AccessLog::start(Box::new(Full), Arc::clone(&counters)).expect("a thread");
        (0..3).for_each(|_| log.line("a line\n".into()));
        log.finish();
        assert!(counters.log_lines_failed() > 0);
        assert_eq!(counters.log_lines_dropped(), 0);
    }
}
