//! The state that all connections of a server share, and the state that those of one worker's thread share without
//! locks.

use std::{
    cell::{Cell, RefCell},
    fs::File,
    io::{self, Write},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use weir_engine::time::Instant;
use weir_proto::http1::date;

use super::{
    access_log_writer::AccessLog,
    admission::Admission,
    config::{Body, HttpConfig, HttpLogs},
    counters::HttpCounters,
    file_cache::WorkerFileCache,
    file_lookup::{FileError, FileReply, FileRequest, FileResponse, Root, Unopened, name},
    file_quotas::FileQuotas,
    response_encoder::Replies,
    static_body::Stored,
};

/// A batch larger than this is not kept for the next turn.
const KEPT_BATCH_BYTES_MAX: usize = 256 << 10;

/// One server's state for all workers.
#[derive(Debug)]
pub(super) struct HttpState {
    pub(super) config: HttpConfig,
    pub(super) counters: Arc<HttpCounters>,
    pub(super) access_log: Option<AccessLog>,
    pub(super) quotas: Arc<FileQuotas>,
    pub(super) admission: Arc<Admission>,
    media_type: &'static str,
    content: Stored,
    connection_log: Option<Arc<File>>,
    connections: AtomicU64,
}

impl HttpState {
    pub(super) fn new(config: HttpConfig, logs: HttpLogs) -> io::Result<Self> {
        let (media_type, content) = match &config.body {
            Body::Fixed(content) => (content.media_type(), Stored::of(*content, config.large_content)),
            // These render their heads on demand.
            Body::Echo | Body::Files { .. } => ("application/octet-stream", Stored::NOTHING),
        };
        let counters = Arc::new(HttpCounters::default());
        let start = |sink| AccessLog::start(sink, Arc::clone(&counters));
        let quotas = match &config.body {
            Body::Files { cache, .. } => FileQuotas::in_process(cache.files_max),
            Body::Fixed(_) | Body::Echo => FileQuotas::in_process(0),
        };
        Ok(Self {
            admission: Admission::new(config.connections_max, config.client_connections_max),
            config,
            quotas: Arc::new(quotas),
            access_log: logs.access.map(start).transpose()?,
            counters,
            media_type,
            content,
            connection_log: logs.connections,
            connections: AtomicU64::new(0),
        })
    }

    /// Writes the connection's line, if there is a connection log. It blocks the worker, which is its purpose.
    fn log_connection(&self, date: &[u8]) {
        let Some(mut log) = self.connection_log.as_deref() else { return };
        let number = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        let line = format!("{} connection {number}\n", String::from_utf8_lossy(date));
        if log.write_all(line.as_bytes()).and_then(|()| log.flush()).is_err() {
            self.counters.count_failed_lines(1);
        }
    }

    pub(super) fn finish(&self) {
        if let Some(log) = &self.access_log {
            log.finish();
        }
    }
}

thread_local! {
    static WORKER: RefCell<Option<Rc<Worker>>> = const { RefCell::new(None) };
}

/// One server's state on one thread.
pub(super) struct Worker {
    pub(super) shared: Arc<HttpState>,
    replies: RefCell<Rc<Replies>>,
    second_ends: Cell<Instant>,
    batch: Cell<Vec<u8>>,
    /// A buffer for the path of a lookup.
    path: Cell<Vec<u8>>,
    cache: Option<Rc<WorkerFileCache>>,
}

impl Worker {
    /// The state of this thread; created when the thread serves its first connection.
    pub(super) fn of_thread(shared: &Arc<HttpState>) -> Rc<Self> {
        WORKER.with_borrow_mut(|place| match place {
            Some(worker) if Arc::ptr_eq(&worker.shared, shared) => Rc::clone(worker),
            place => Rc::clone(place.insert(Rc::new(Self::new(Arc::clone(shared))))),
        })
    }

    fn new(shared: Arc<HttpState>) -> Self {
        let replies = Replies::new(shared.media_type, shared.content, &shared.config.headers);
        let cache = match shared.config.body {
            Body::Files { cache, .. } if cache.files_max > 0 => {
                Some(Rc::new(WorkerFileCache::new(cache, shared.config.clock, Arc::clone(&shared.quotas))))
            }
            _ => None,
        };
        Self {
            shared,
            replies: RefCell::new(Rc::new(replies)),
            second_ends: Cell::new(Instant::default()),
            batch: Cell::default(),
            path: Cell::default(),
            cache,
        }
    }

    /// The time of this turn. Once a second it costs more than a clock reading: then replies get a new date.
    #[inline]
    pub(super) fn tick(&self) -> Instant {
        let now = self.shared.config.clock.now();
        if now >= self.second_ends.get() {
            self.begin_second(now);
        }
        now
    }

    #[cold]
    fn begin_second(&self, now: Instant) {
        let wall = self.shared.config.clock.wall();
        let left = Duration::from_secs(1) - Duration::from_nanos(wall.subsec_nanos().into());
        self.second_ends.set(now + left);
        // Replies being sent keep their date.
        Rc::make_mut(&mut self.replies.borrow_mut()).set_date(wall.as_secs().min(date::SECONDS_MAX));
        self.tell_counts();
    }

    /// Called when a connection has ended.
    pub(super) fn connection_ended(&self) {
        if let Some(cache) = &self.cache {
            cache.connection_ended();
        }
        self.tell_counts();
    }

    /// Updates the server's counters.
    fn tell_counts(&self) {
        if let Some(cache) = &self.cache {
            cache.tell(&self.shared.counters);
        }
    }

    /// The reply to a request for a file, as far as it is known without opening the file.
    pub(super) fn look_up(
        &self,
        root: &Root,
        target: &str,
        request: &FileRequest<'_>,
        now: Instant,
    ) -> FileReply {
        let mut path = self.path.take();
        let reply = match name(root, target, request.headers, &mut path) {
            Err(error) => FileReply::Response(Box::new(FileResponse::of_error(error))),
            Ok(names_folder) => match self.cache.as_ref().and_then(|cache| cache.find(&path, now)) {
                Some(file) if request.is_plain() => FileReply::Plain(file),
                Some(file) => FileReply::Response(Box::new(FileResponse::of(&file, request))),
                None => FileReply::Unopened(Box::new(Unopened::new(&path, names_folder, target, request))),
            },
        };
        self.path.set(path);
        reply
    }

    /// Opens the file of a request, and answers it.
    pub(super) async fn open(&self, unopened: &Unopened) -> Box<FileResponse> {
        let config = &self.shared.config;
        let Body::Files { root, .. } = &config.body else {
            return Box::new(FileResponse::of_error(FileError::Missing));
        };
        unopened.answer(root, self.cache.as_ref(), config).await
    }

    /// A file was shorter than when it was opened: no open file is trusted any more.
    pub(super) fn distrust_files(&self) {
        if let Some(cache) = &self.cache {
            cache.close_all();
        }
    }

    /// The data for the replies of this turn.
    #[inline]
    pub(super) fn replies(&self) -> Rc<Replies> {
        Rc::clone(&self.replies.borrow())
    }

    /// Called when a connection begins.
    pub(super) fn greet(&self) -> Instant {
        let now = self.tick();
        self.shared.log_connection(self.replies().date());
        now
    }

    /// An empty buffer, with the memory of the last turn.
    #[inline]
    pub(super) fn take_batch(&self) -> Vec<u8> {
        self.batch.take()
    }

    #[inline]
    pub(super) fn give_back(&self, mut batch: Vec<u8>) {
        if (1..=KEPT_BATCH_BYTES_MAX).contains(&batch.capacity()) {
            batch.clear();
            self.batch.set(batch);
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_engine::{Config, Driver, Runtime, time};
    use weir_proto::content::Content;

    use super::*;
    use crate::http::config::Clock;

    fn shared(clock: Clock) -> Arc<HttpState> {
        let config = HttpConfig { clock, ..HttpConfig::new(Body::Fixed(Content::Html)) };
        Arc::new(HttpState::new(config, HttpLogs::default()).expect("no thread is needed"))
    }

    #[test]
    fn a_date_is_rendered_when_its_second_begins_and_not_before() {
        let runtime = Runtime::new(&Config::for_test(Driver::Sim)).expect("it runs everywhere");
        runtime.block_on(async {
            let start = time::now();
            assert_eq!(start.as_nanos() % 1_000_000_000, 0, "virtual time begins with a second");
            let zero_seconds = 784_111_777 - start.as_nanos() / 1_000_000_000;
            let worker = Worker::of_thread(&shared(Clock::Engine { zero_seconds }));
            worker.tick();
            let first = worker.replies();
            assert_eq!(first.date(), b"Sun, 06 Nov 1994 08:49:37 GMT");
            time::sleep_until(start + Duration::from_millis(900)).await;
            worker.tick();
            assert!(Rc::ptr_eq(&first, &worker.replies()), "nothing was rendered");
            time::sleep_until(start + Duration::from_millis(1000)).await;
            worker.tick();
            assert_eq!(worker.replies().date(), b"Sun, 06 Nov 1994 08:49:38 GMT");
            assert_eq!(first.date(), b"Sun, 06 Nov 1994 08:49:37 GMT", "a reply that is being sent");
        });
    }

    #[test]
    fn a_thread_has_one_worker_for_each_server_in_turn() {
        let (first, second) = (shared(Clock::Kernel), shared(Clock::Kernel));
        let worker = Worker::of_thread(&first);
        assert!(Rc::ptr_eq(&worker, &Worker::of_thread(&first)));
        assert!(Arc::ptr_eq(&Worker::of_thread(&second).shared, &second));
        assert!(Arc::ptr_eq(&Worker::of_thread(&first).shared, &first));
        assert!(worker.tick() > Instant::default());
        assert_ne!(worker.replies().date(), b"Thu, 01 Jan 1970 00:00:00 GMT");
    }
}
