//! Writes request lines on a separate thread. A worker never waits for a disk: when the queue is full the line is
//! dropped and counted. A line that cannot be written is counted and not tried again; the next line starts on a new
//! line.

use std::{
    io::{self, Write},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
        mpsc::{Receiver, SyncSender, TryRecvError, sync_channel},
    },
    thread,
    time::Duration,
};

use super::counters::HttpCounters;

/// Lines that may wait to be written.
const QUEUE_LINES_MAX: usize = 16 << 10;

/// Bytes that may wait to be written.
const QUEUE_BYTES_MAX: u64 = 16 << 20;

/// How much is written at once, if that much is waiting.
const BLOCK_BYTES: usize = 64 << 10;

/// How long the last lines may take to be written.
const FINISH_LIMIT: Duration = Duration::from_secs(5);

enum Entry {
    Line(String),
    End,
}

/// The state that the writer shares with those who wait for its end.
#[derive(Debug, Default)]
struct Progress {
    /// The writer ends when its queue is empty.
    is_ending: AtomicBool,
    /// Lines in the queue, or taken from it and not written.
    queued: AtomicU64,
    /// The bytes of these lines.
    queued_bytes: AtomicU64,
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
            Writer {
                lines,
                sink,
                block: Block::default(),
                is_torn: false,
                progress: known,
                counters: failed,
            }
            .run();
        })?;
        Ok(Self { queue, counters, progress, writer: Mutex::new(Some(writer)) })
    }

    /// Queues a line; `text` includes its line end.
    pub(super) fn line(&self, text: String) {
        let bytes = text.len() as u64;
        self.progress.queued.fetch_add(1, Relaxed);
        let is_full = self.progress.queued_bytes.fetch_add(bytes, Relaxed) + bytes > QUEUE_BYTES_MAX;
        if is_full || self.queue.try_send(Entry::Line(text)).is_err() {
            self.progress.finish(1, bytes);
            self.counters.count_dropped_line();
        }
    }

    /// Waits until everything queued before is written; with a time limit, because a sink may be a pipe that is not
    /// read.
    pub(super) fn finish(&self) {
        self.finish_within(FINISH_LIMIT);
    }

    fn finish_within(&self, limit: Duration) {
        let Some(writer) = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        self.progress.is_ending.store(true, Release);
        // This wakes a writer that waits. If the queue is full there is no room for it, and the writer is not
        // waiting.
        let _ = self.queue.try_send(Entry::End);
        // No value is ever sent: the channel disconnects when the writer has ended, even by a panic of the sink.
        let _ = writer.recv_timeout(limit);
        self.counters.count_failed_lines(self.progress.queued.load(Relaxed));
    }
}

impl Progress {
    /// Subtracts finished lines and bytes.
    fn finish(&self, lines: u64, bytes: u64) {
        self.queued.fetch_sub(lines, Relaxed);
        self.queued_bytes.fetch_sub(bytes, Relaxed);
    }
}

/// Lines that are written together.
#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    lines: u64,
}

/// The thread behind the queue.
struct Writer {
    lines: Receiver<Entry>,
    sink: Box<dyn Write + Send>,
    block: Block,
    /// The last written bytes are an incomplete line.
    is_torn: bool,
    progress: Arc<Progress>,
    counters: Arc<HttpCounters>,
}

impl Writer {
    fn run(mut self) {
        while let Some(Entry::Line(line)) = self.next() {
            self.block.bytes.extend_from_slice(line.as_bytes());
            self.block.lines += 1;
            if self.block.bytes.len() >= BLOCK_BYTES {
                self.write();
            }
        }
        self.write();
    }

    /// The next entry. If there is none yet, the block is written first, so that a reader sees all lines.
    fn next(&mut self) -> Option<Entry> {
        // Read this first: once it is set no line is queued any more, so a queue that is empty after that stays
        // empty. If it were read last, a writer that found the queue empty could end although a whole queue of lines
        // came in between.
        let is_ending = self.progress.is_ending.load(Acquire);
        match self.lines.try_recv() {
            Ok(entry) => return Some(entry),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => self.write(),
        }
        if is_ending {
            return None;
        }
        self.lines.recv().ok()
    }

    /// Writes the block, and counts the lines that could not be written completely.
    fn write(&mut self) {
        let Block { bytes, lines } = std::mem::take(&mut self.block);
        if lines == 0 {
            return;
        }
        let end_of_torn: &[u8] = if self.is_torn { b"\n" } else { b"" };
        let written = match self.write_all(end_of_torn) {
            true => self.write_some(&bytes),
            false => 0,
        };
        let whole = bytes[..written].iter().filter(|byte| **byte == b'\n').count() as u64;
        if written > 0 {
            self.is_torn = bytes[written - 1] != b'\n';
        }
        self.counters.count_failed_lines(lines - whole);
        self.progress.finish(lines, bytes.len() as u64);
    }

    fn write_all(&mut self, bytes: &[u8]) -> bool {
        self.write_some(bytes) == bytes.len()
    }

    /// Writes as much as possible, and returns how much.
    fn write_some(&mut self, bytes: &[u8]) -> usize {
        let mut written = 0;
        while written < bytes.len() {
            match self.sink.write(&bytes[written..]) {
                Ok(0) => break,
                Ok(count) => written += count.min(bytes.len() - written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        // Bytes that the sink itself buffers must become visible, or be counted as lost.
        if self.sink.flush().is_ok() { written } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Condvar;

    use super::*;

    /// A sink that blocks until it is opened.
    #[derive(Clone, Default)]
    struct BlockedSink(Arc<SinkState>);

    #[derive(Default)]
    struct SinkState {
        state: Mutex<(bool, Vec<u8>)>,
        opened: Condvar,
    }

    impl BlockedSink {
        fn open(&self) {
            self.0.state.lock().expect("no panic").0 = true;
            self.0.opened.notify_all();
        }

        fn text(&self) -> String {
            String::from_utf8(self.0.state.lock().expect("no panic").1.clone()).expect("lines are text")
        }
    }

    impl Write for BlockedSink {
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
        let (sink, counters) = (BlockedSink::default(), Arc::new(HttpCounters::default()));
        let log = AccessLog::start(Box::new(sink.clone()), Arc::clone(&counters)).expect("a thread");
        // Long enough that the writer's buffers do not hold what the queue cannot.
        let padding = "x".repeat(100);
        (0..LINES).for_each(|number| log.line(format!("{number} {padding}\n")));
        let dropped = counters.log_lines_dropped() as usize;
        // The queue, and the lines that the writer had taken: one block.
        assert!((1..=10_000).contains(&dropped), "{dropped} dropped");
        sink.open();
        log.finish();
        let numbers: Vec<usize> = sink
            .text()
            .lines()
            .map(|line| line.split(' ').next().and_then(|word| word.parse().ok()).expect("a number"))
            .collect();
        assert_eq!(numbers.len() + dropped, LINES);
        assert!(numbers.is_sorted(), "in the order they came");
        assert_eq!(counters.log_lines_failed(), 0);
        log.line("too late\n".into());
        log.finish();
        assert!(!sink.text().contains("late"));
    }

    #[test]
    fn lines_that_come_while_an_earlier_one_is_written_are_written_though_the_end_found_a_full_queue() {
        /// Gets two more lines and the end while its first line is written.
        struct Late {
            queue: SyncSender<Entry>,
            progress: Arc<Progress>,
            written: Arc<Mutex<String>>,
        }
        impl Write for Late {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let is_first = !self.progress.is_ending.swap(true, Relaxed);
                for line in is_first.then_some(["second\n", "third\n"]).into_iter().flatten() {
                    self.queue.try_send(Entry::Line(line.into())).expect("there is room for two");
                }
                assert!(!is_first || self.queue.try_send(Entry::End).is_err(), "and for no more");
                self.written
                    .lock()
                    .expect("no panic")
                    .push_str(str::from_utf8(bytes).expect("lines are text"));
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (queue, lines) = sync_channel(2);
        let (progress, written) = (Arc::new(Progress::default()), Arc::new(Mutex::default()));
        queue.try_send(Entry::Line("first\n".into())).expect("there is room");
        // As if the three lines had been counted before they were queued.
        progress.queued.store(3, Relaxed);
        progress.queued_bytes.store("first\nsecond\nthird\n".len() as u64, Relaxed);
        let sink = Late { queue, progress: Arc::clone(&progress), written: Arc::clone(&written) };
        Writer {
            lines,
            sink: Box::new(sink),
            block: Block::default(),
            is_torn: false,
            progress: Arc::clone(&progress),
            counters: Arc::default(),
        }
        .run();
        assert_eq!(*written.lock().expect("no panic"), "first\nsecond\nthird\n");
        assert_eq!(progress.queued.load(Relaxed), 0);
    }

    #[test]
    fn a_sink_that_takes_nothing_ends_no_later_and_its_lines_are_counted() {
        let (sink, counters) = (BlockedSink::default(), Arc::new(HttpCounters::default()));
        let log = AccessLog::start(Box::new(sink.clone()), Arc::clone(&counters)).expect("a thread");
        let line = format!("{}\n", "x".repeat(100));
        let full = QUEUE_LINES_MAX + 10_000;
        (0..full).for_each(|_| log.line(line.clone()));
        log.finish_within(Duration::from_millis(10));
        let lost = counters.log_lines_dropped() + counters.log_lines_failed();
        assert_eq!(lost, full as u64);
        sink.open();
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
        assert_eq!((counters.log_lines_failed(), counters.log_lines_dropped()), (3, 0));
    }

    #[test]
    fn lines_that_a_sink_takes_with_it_are_counted() {
        struct Broken;
        impl Write for Broken {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                panic!("a sink of a test breaks")
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let counters = Arc::new(HttpCounters::default());
        let log = AccessLog::start(Box::new(Broken), Arc::clone(&counters)).expect("a thread");
        (0..3).for_each(|_| log.line("a line\n".into()));
        log.finish();
        assert_eq!(counters.log_lines_failed() + counters.log_lines_dropped(), 3);
    }

    #[test]
    fn a_line_that_was_torn_is_counted_and_the_next_one_begins_anew() {
        /// Takes ten bytes, then refuses twice, then takes everything.
        #[derive(Clone, Default)]
        struct Tight(Arc<Mutex<(u32, Vec<u8>)>>);
        impl Write for Tight {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let mut state = self.0.lock().expect("no panic");
                state.0 += 1;
                match state.0 {
                    1 => state.1.extend_from_slice(&bytes[..10]),
                    2 | 3 => return Err(io::ErrorKind::StorageFull.into()),
                    _ => state.1.extend_from_slice(bytes),
                }
                Ok(if state.0 == 1 { 10 } else { bytes.len() })
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (sink, counters) = (Tight::default(), Arc::new(HttpCounters::default()));
        let mut writer = Writer {
            lines: sync_channel(1).1,
            sink: Box::new(sink.clone()),
            block: Block::default(),
            is_torn: false,
            progress: Arc::default(),
            counters: Arc::clone(&counters),
        };
        for (lines, lost) in [("first\nsecond\nthird\n", 2), ("fourth\n", 3), ("fifth\n", 3)] {
            writer.block = Block { bytes: lines.into(), lines: lines.lines().count() as u64 };
            // As if the queue had counted them.
            writer.progress.queued.fetch_add(writer.block.lines, Relaxed);
            writer.progress.queued_bytes.fetch_add(lines.len() as u64, Relaxed);
            writer.write();
            assert_eq!(counters.log_lines_failed(), lost, "{lines}");
        }
        assert_eq!(sink.0.lock().expect("no panic").1, b"first\nseco\nfifth\n");
        assert_eq!(writer.progress.queued_bytes.load(Relaxed), 0);
    }

    #[test]
    fn the_queue_is_bounded_in_bytes_too() {
        let (sink, counters) = (BlockedSink::default(), Arc::new(HttpCounters::default()));
        let log = AccessLog::start(Box::new(sink.clone()), Arc::clone(&counters)).expect("a thread");
        let line = format!("{}\n", "x".repeat((1 << 20) - 1));
        (0..17).for_each(|_| log.line(line.clone()));
        assert_eq!(counters.log_lines_dropped(), 1);
        sink.open();
        log.finish();
        assert_eq!(sink.text().lines().count(), 16);
    }
}
