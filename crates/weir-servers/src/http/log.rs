//! Lines about requests, written by a thread of their own. A worker never waits for a disk: when the queue is full the
//! line is dropped and counted.

use std::{
    io::{self, BufWriter, Write},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, TryRecvError, sync_channel},
    },
    thread,
};

use super::counters::HttpCounters;

/// Lines that may wait to be written.
const QUEUE_LINES_MAX: usize = 16 << 10;

enum Entry {
    Line(String),
    End,
}

/// The queue, and the thread behind it.
#[derive(Debug)]
pub(super) struct AccessLog {
    queue: SyncSender<Entry>,
    counters: Arc<HttpCounters>,
    writer: Mutex<Option<thread::JoinHandle<()>>>,
}

impl AccessLog {
    pub(super) fn start(sink: Box<dyn Write + Send>, counters: Arc<HttpCounters>) -> io::Result<Self> {
        let (queue, lines) = sync_channel(QUEUE_LINES_MAX);
        let failed = Arc::clone(&counters);
        let write = move || write(&lines, BufWriter::new(sink), &failed);
        let writer = thread::Builder::new().name("weir-access-log".into()).spawn(write)?;
        Ok(Self { queue, counters, writer: Mutex::new(Some(writer)) })
    }

    /// Queues a line, with its end.
    pub(super) fn line(&self, text: String) {
        if self.queue.try_send(Entry::Line(text)).is_err() {
            self.counters.count_dropped_line();
        }
    }

    /// Waits until everything queued before is written.
    pub(super) fn finish(&self) {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // Fails only when the thread has ended already.
            let _ = self.queue.send(Entry::End);
            // A panic of the sink has been printed.
            let _ = writer.join();
        }
    }
}

fn write(lines: &Receiver<Entry>, mut sink: BufWriter<Box<dyn Write + Send>>, counters: &HttpCounters) {
    while let Some(Entry::Line(line)) = next(lines, &mut sink, counters) {
        if sink.write_all(line.as_bytes()).is_err() {
            counters.count_failed_line();
        }
    }
    if sink.flush().is_err() {
        counters.count_failed_line();
    }
}

/// The next entry. What was written before is flushed when there is none yet, so that a reader is never behind.
fn next(
    lines: &Receiver<Entry>,
    sink: &mut BufWriter<Box<dyn Write + Send>>,
    counters: &HttpCounters,
) -> Option<Entry> {
    match lines.try_recv() {
        Ok(entry) => return Some(entry),
        Err(TryRecvError::Disconnected) => return None,
        Err(TryRecvError::Empty) => {}
    }
    if sink.flush().is_err() {
        counters.count_failed_line();
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
