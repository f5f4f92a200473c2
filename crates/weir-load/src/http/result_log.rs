//! A row for each response of the window, in the columns of JMeter's CSV results ("JTL").
//!
//! Workers put rows into batches and batches into a bounded queue; a separate thread writes them. When the queue is
//! full the rows are dropped and counted: a load never waits for a disk.

use std::{
    cell::RefCell,
    fs::{File, OpenOptions},
    io::{self, BufWriter, Write},
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{SystemTime, UNIX_EPOCH},
};

use weir_engine::time::monotonic;
use weir_proto::http1::encode::reason;
use weir_sys::log_file::open_at_once;

use crate::{error::LoadError, failure::Class, recorder::WindowBounds};

/// Rows in a batch.
const BATCH_ROWS: usize = 256;
/// Batches that may wait for the writer.
const BATCHES_MAX: usize = 512;

const HEADER: &str = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,\
                      failureMessage,bytes,sentBytes,grpThreads,allThreads,URL,Latency,IdleTime,Connect\n";

/// One row, before it is text.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// When the request started, and when its response was complete or was given up.
    pub(crate) started_ns: u64,
    pub(crate) ended_ns: u64,
    /// When its first byte arrived; `None` if none did.
    pub(crate) first_byte_ns: Option<u64>,
    /// How long opening its connection took; zero for a reused connection.
    pub(crate) connect_ns: u64,
    /// Status; 0 without a response.
    pub(crate) status: u16,
    /// What was wrong.
    pub(crate) failure: Option<(Class, String)>,
    /// Bytes of the response, head included.
    pub(crate) bytes: u64,
    /// Which URL.
    pub(crate) url: usize,
    /// Number of the connection in the run.
    pub(crate) connection: u32,
}

/// Facts that rows share.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    pub(crate) urls: Vec<String>,
    /// Bytes of the request to each URL.
    pub(crate) sent_bytes: Vec<usize>,
    pub(crate) connections: u32,
}

/// The log of a run, open for writing.
#[derive(Debug)]
pub(crate) struct ResultLog {
    /// The sender from which the workers' are cloned, and the writing thread; `None` after closing.
    open: Mutex<Option<(ResultSender, JoinHandle<Written>)>>,
}

/// A worker's sender.
#[derive(Clone, Debug)]
pub(crate) struct ResultSender {
    queue: SyncSender<Vec<Row>>,
    dropped: Arc<AtomicU64>,
    bounds: Arc<WindowBounds>,
    batch: RefCell<Vec<Row>>,
}

/// The writing side.
pub(crate) struct Writer {
    queue: Receiver<Vec<Row>>,
    dropped: Arc<AtomicU64>,
    file: BufWriter<File>,
    columns: Columns,
    /// Wall clock minus monotonic clock.
    epoch_offset_ns: i128,
}

/// Counts of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) rows: u64,
    pub(crate) dropped: u64,
}

impl ResultLog {
    /// Opens a log, and starts the thread that writes it.
    pub(crate) fn open(path: &Path, columns: Columns, bounds: &Arc<WindowBounds>) -> Result<Self, LoadError> {
        let (sender, writer) = open(path, columns, bounds)?;
        let writing = thread::Builder::new().name("weir-load-log".into()).spawn(move || writer.run());
        let writing =
            writing.map_err(|error| LoadError::Environment(format!("cannot start a thread: {error}")))?;
        Ok(Self { open: Mutex::new(Some((sender, writing))) })
    }

    /// A sender for a worker; `None` after closing.
    pub(crate) fn sender(&self) -> Option<ResultSender> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.as_ref().map(|(sender, _)| sender.clone())
    }

    /// Waits until the rows of all workers are written; call after the workers dropped their senders.
    pub(crate) fn close(&self) -> Written {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((sender, writing)) = open else { return Written::default() };
        // The thread ends when the last sender is dropped.
        drop(sender);
        writing.join().unwrap_or_default()
    }
}

impl Drop for ResultLog {
    /// Writes what was noted even when there is no report.
    fn drop(&mut self) {
        self.close();
    }
}

/// Opens a log without starting the writing thread.
fn open(
    path: &Path,
    columns: Columns,
    bounds: &Arc<WindowBounds>,
) -> Result<(ResultSender, Writer), LoadError> {
    let failed = |error: io::Error| LoadError::ResultLog { path: path.into(), reason: error.to_string() };
    let options = OpenOptions::new().write(true).create(true).truncate(true).clone();
    let mut file = BufWriter::with_capacity(1 << 16, open_at_once(&options, path).map_err(failed)?);
    file.write_all(HEADER.as_bytes()).map_err(failed)?;
    let (queue, receiver) = sync_channel(BATCHES_MAX);
    let dropped = Arc::new(AtomicU64::new(0));
    let wall_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let epoch_offset_ns = wall_ns as i128 - i128::from(monotonic().as_nanos());
    let sender = ResultSender {
        queue,
        dropped: Arc::clone(&dropped),
        bounds: Arc::clone(bounds),
        batch: RefCell::default(),
    };
    Ok((sender, Writer { queue: receiver, dropped, file, columns, epoch_offset_ns }))
}

impl ResultSender {
    /// Notes a row, if it ended inside the window.
    pub(crate) fn note(&self, row: Row) {
        if !(self.bounds.open_ns()..self.bounds.close_ns()).contains(&row.ended_ns) {
            return;
        }
        let is_full = {
            let mut batch = self.batch.borrow_mut();
            batch.push(row);
            batch.len() >= BATCH_ROWS
        };
        if is_full {
            self.flush();
        }
    }

    /// Sends the current batch to the writer.
    pub(crate) fn flush(&self) {
        if self.batch.borrow().is_empty() {
            return;
        }
        let batch = self.batch.replace(Vec::with_capacity(BATCH_ROWS));
        if let Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) = self.queue.try_send(batch)
        {
            self.dropped.fetch_add(batch.len() as u64, Ordering::Relaxed);
        }
    }
}

impl Writer {
    /// Writes until every worker is done. After an error it writes nothing more, and counts all rows that may not
    /// have reached the file as dropped.
    pub(crate) fn run(mut self) -> Written {
        let (mut rows, mut lost) = (0, 0);
        let mut line = String::new();
        for batch in self.queue.iter() {
            let count = batch.len() as u64;
            line.clear();
            batch.iter().for_each(|row| append(&mut line, row, &self.columns, self.epoch_offset_ns));
            if lost == 0 && self.file.write_all(line.as_bytes()).is_ok() {
                rows += count;
            } else {
                lost += count;
            }
        }
        if self.file.flush().is_err() {
            lost += std::mem::take(&mut rows);
        }
        Written { rows, dropped: lost + self.dropped.load(Ordering::Relaxed) }
    }
}

fn append(line: &mut String, row: &Row, columns: &Columns, epoch_offset_ns: i128) {
    use std::fmt::Write;
    let started_ms = (i128::from(row.started_ns) + epoch_offset_ns) / 1_000_000;
    let url = columns.urls.get(row.url).map_or("", String::as_str);
    let (code, message) = match (&row.failure, row.status) {
        (Some((class, _)), 0) => {
            (format!("Non HTTP response code: {}", class.name()), "Non HTTP response message")
        }
        (_, status) => (status.to_string(), reason(status)),
    };
    let failure = row.failure.as_ref().map_or("", |(_, text)| text.as_str());
    let latency_ns = row.first_byte_ns.map_or(0, |first_ns| first_ns.saturating_sub(row.started_ns));
    // Writing to a string cannot fail.
    let _ = writeln!(
        line,
        "{started_ms},{},{},{code},{message},weir 1-{},bin,{},{},{},{},{connections},{connections},{},{},0,{}",
        milliseconds(row.ended_ns.saturating_sub(row.started_ns)),
        quoted(url),
        row.connection + 1,
        row.failure.is_none(),
        quoted(failure),
        row.bytes,
        columns.sent_bytes.get(row.url).copied().unwrap_or(0),
        quoted(url),
        milliseconds(latency_ns),
        milliseconds(row.connect_ns),
        connections = columns.connections,
    );
}

fn milliseconds(nanoseconds: u64) -> u64 {
    (nanoseconds + 500_000) / 1_000_000
}

/// A field of RFC 4180.
fn quoted(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\"")).into()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ended_ns: u64) -> Row {
        Row {
            started_ns: 5_000_000,
            ended_ns,
            first_byte_ns: Some(7_600_000),
            connect_ns: 0,
            status: 200,
            failure: None,
            bytes: 700,
            url: 0,
            connection: 4,
        }
    }

    fn columns() -> Columns {
        Columns { urls: vec!["http://h/a,b".into()], sent_bytes: vec![90], connections: 100 }
    }

    #[test]
    fn rows_have_the_columns_of_jmeter() {
        let names: Vec<&str> = HEADER.trim_end().split(',').collect();
        assert_eq!(names.len(), 17);
        let mut text = String::new();
        append(&mut text, &row(15_000_000), &columns(), 1_700_000_000_000_000_000);
        assert_eq!(
            text,
            "1700000000005,10,\"http://h/a,b\",200,OK,weir 1-5,bin,true,,700,90,100,100,\"http://h/a,b\",3,0,0\n"
        );
        let failure = Some((Class::ConnectTimeout, "no \"connection\", sorry".into()));
        let failed =
            Row { failure, status: 0, first_byte_ns: None, bytes: 0, connect_ns: 999_999, ..row(6_000_000) };
        text.clear();
        append(&mut text, &failed, &columns(), 0);
        assert_eq!(
            text,
            "5,1,\"http://h/a,b\",Non HTTP response code: connect_timeout,Non HTTP response message,weir 1-5,bin,\
             false,\"no \"\"connection\"\", sorry\",0,90,100,100,\"http://h/a,b\",0,0,1\n"
        );
    }

    #[test]
    fn rows_of_the_window_are_written_and_those_beyond_the_queue_are_counted() {
        let path = std::env::temp_dir().join(format!("weir-results-{}.jtl", std::process::id()));
        let bounds = Arc::new(WindowBounds::default());
        let (sender, writer) = open(&path, columns(), &bounds).expect("a file");
        sender.note(row(8_000_000));
        bounds.open(9_000_000);
        // Without a writer the queue fills, and one batch is dropped.
        for _ in 0..BATCH_ROWS * (BATCHES_MAX + 1) {
            sender.note(row(9_000_000));
        }
        let mut workers_own = sender.clone();
        workers_own.batch = RefCell::default();
        drop(sender);
        drop(workers_own);
        let rows = (BATCH_ROWS * BATCHES_MAX) as u64;
        assert_eq!(writer.run(), Written { rows, dropped: BATCH_ROWS as u64 });
        let text = std::fs::read_to_string(&path).expect("it was written");
        std::fs::remove_file(&path).expect("it is ours");
        assert_eq!(text.lines().count() as u64, rows + 1);
    }

    #[test]
    fn a_full_disk_drops_rows_and_says_so() {
        let bounds = Arc::new(WindowBounds::default());
        bounds.open(0);
        let (sender, writer) = open(Path::new("/dev/full"), columns(), &bounds).expect("it opens");
        sender.note(row(9_000_000));
        sender.flush();
        drop(sender);
        assert_eq!(writer.run(), Written { rows: 0, dropped: 1 });
    }
}
