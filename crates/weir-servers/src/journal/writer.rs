//! The journal's interface for its worker: append records, and learn when they are durable.

use std::{
    cell::{Cell, RefCell},
    fmt,
    future::poll_fn,
    io,
    rc::{Rc, Weak},
    sync::Arc,
    task::Poll,
};

use weir_engine::{
    sync::{Notify, Signal, Waiters},
    time::monotonic,
};

use super::{
    Failure, JournalChunk, JournalConfig, JournalCounters, JournalError, Level, Lsn, Position, Recovered,
    WAITING_FACTOR_MAX,
    batch::{Batch, Pending, Start},
    disk::Disk,
    faults::Faults,
    record::RECORD_BYTES_MAX,
    recover::{JournalId, Tail},
    segment,
};

/// See [`Journal::has_reserve`].
const RESERVE_FACTOR: usize = WAITING_FACTOR_MAX / 16;

/// Called after each commit.
type Callback = Rc<dyn Fn(Lsn)>;

/// The journal of one worker, open for writing. It belongs to the thread and the runtime that opened it.
///
/// Records are taken into memory at once. A task writes the collected records in its turn, which is after the tasks
/// that are ready now, and syncs them at level [`Level::Disk`]; records appended meanwhile form the next batch. So a
/// single record does not wait for others, and under load one sync serves everything that arrived during the previous
/// one.
pub struct Journal {
    level: Level,
    /// `None` at level `none`.
    disk: Option<Rc<Disk>>,
    pending: RefCell<Pending>,
    /// See [`Self::has_room`].
    room_bytes: usize,
    durable: Cell<Lsn>,
    /// The end of the last durable record.
    durable_end: Cell<Position>,
    failure: RefCell<Option<Arc<Failure>>>,
    is_started: Cell<bool>,
    is_closed: Cell<bool>,
    /// Who waits for a record to be durable, each with its number.
    waiting_for_commit: Waiters<Lsn>,
    waiting_for_room: Notify,
    waiting_for_failure: Notify,
    callbacks: RefCell<Vec<Callback>>,
    work: Rc<Signal>,
    counters: Arc<JournalCounters>,
}

impl fmt::Debug for Journal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Journal")
            .field("level", &self.level)
            .field("disk", &self.disk)
            .field("last", &self.last())
            .field("durable", &self.durable.get())
            .finish_non_exhaustive()
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Its task sees that it is gone.
        self.work.raise();
        if let Some(disk) = &self.disk {
            disk.give_up();
        }
    }
}

impl Journal {
    /// Opens a journal where its recovery ended. A journal at level `none` has no files, and takes
    /// [`Recovered::nothing`].
    ///
    /// # Errors
    /// `InvalidInput` for an invalid configuration, or one that does not match the recovered journal; `AlreadyExists`
    /// if the recovery was used before; the errors of opening and creating files; an error outside a runtime.
    pub async fn open(config: JournalConfig, recovered: &Recovered) -> io::Result<Rc<Self>> {
        Self::open_with(config, recovered, None).await
    }

    /// As [`Self::open`] with a disk that may fail: for tests.
    ///
    /// # Errors
    /// As [`Self::open`], and those of the faults.
    pub async fn open_with_faults(
        config: JournalConfig,
        recovered: &Recovered,
        faults: Faults,
    ) -> io::Result<Rc<Self>> {
        Self::open_with(config, recovered, Some(faults)).await
    }

    async fn open_with(
        config: JournalConfig,
        recovered: &Recovered,
        faults: Option<Faults>,
    ) -> io::Result<Rc<Self>> {
        let mut disk = None;
        let mut tail = Tail::default();
        if config.level != Level::None {
            let place = checked(&config, recovered)?;
            let opened = Disk::new(&config, Some(Arc::clone(&place.lock)), faults);
            tail = first_segment(&opened, &config, place).await?;
            disk = Some(Rc::new(opened));
        }
        let durable = recovered.last_lsn;
        let pending = Pending::new(Start {
            worker: config.worker,
            next_lsn: durable + 1,
            next_batch: recovered.next_batch,
            position: tail.end,
            segment_end: tail.segment_bytes,
            segment_bytes: config.segment_bytes,
            bytes_max: config.batch_bytes_max.saturating_mul(WAITING_FACTOR_MAX).max(RECORD_BYTES_MAX),
        });
        Ok(Rc::new(Self {
            level: config.level,
            disk,
            pending: RefCell::new(pending),
            room_bytes: config.batch_bytes_max.saturating_mul(2),
            durable: Cell::new(durable),
            durable_end: Cell::new(tail.end),
            failure: RefCell::new(None),
            is_started: Cell::new(false),
            is_closed: Cell::new(false),
            waiting_for_commit: Waiters::default(),
            waiting_for_room: Notify::default(),
            waiting_for_failure: Notify::default(),
            callbacks: RefCell::default(),
            work: Rc::default(),
            counters: Arc::new(JournalCounters::new(config.worker, config.level, durable)),
        }))
    }

    /// Spawns the task that commits. It ends when the journal is closed or dropped, or has failed. Without a task
    /// (the blocking driver has none) the journal has failed at once.
    pub fn start(self: &Rc<Self>) {
        if self.disk.is_none() || self.is_started.replace(true) {
            return;
        }
        let task = commit_for_ever(Rc::downgrade(self), Rc::clone(&self.work));
        if let Err(source) = weir_engine::try_spawn(task) {
            let file = self.disk.as_ref().map(|disk| disk.directory().to_owned()).unwrap_or_default();
            self.fail(Failure { file, doing: "spawn the task that commits", source });
        }
    }

    /// Takes a record; returns its number, and the position it will have. Its payload is the concatenation of
    /// `parts`. At level `none` the position has no meaning.
    ///
    /// # Errors
    /// See [`JournalError`]; no number is used up then.
    pub fn append(
        &self,
        kind: u8,
        session: u32,
        t_ns: u64,
        parts: &[&[u8]],
    ) -> Result<(Lsn, Position), JournalError> {
        if self.is_closed.get() {
            return Err(JournalError::Closed);
        }
        if self.disk.is_none() {
            let lsn = self.durable.get() + 1;
            self.durable.set(lsn);
            return Ok((lsn, Position::default()));
        }
        self.check()?;
        let taken = self.pending.borrow_mut().append(kind, session, t_ns, parts)?;
        self.work.raise();
        Ok(taken)
    }

    /// The journal's level.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Number of the last record taken.
    pub fn last(&self) -> Lsn {
        if self.disk.is_none() { self.durable.get() } else { self.pending.borrow().last_lsn() }
    }

    /// Number of the last durable record: everything up to it is.
    pub fn durable(&self) -> Lsn {
        self.durable.get()
    }

    /// The end of the last durable record.
    pub(crate) fn durable_end(&self) -> Position {
        self.durable_end.get()
    }

    /// Whether a write or a sync has failed; then nothing becomes durable any more.
    pub fn is_failed(&self) -> bool {
        self.failure.borrow().is_some()
    }

    /// The error that it failed with, if any.
    pub fn failure(&self) -> Option<JournalError> {
        self.check().err()
    }

    /// Sets a function that is called after each commit with the number of the last durable record, on the worker's
    /// thread. It may append. At level `none` there are no commits: records are durable when `append` returns.
    pub fn on_durable(&self, callback: Box<dyn Fn(Lsn)>) {
        self.callbacks.borrow_mut().push(Rc::from(callback));
    }

    /// Waits until a record is durable.
    ///
    /// # Errors
    /// [`JournalError::Failed`] if it will not be durable, [`JournalError::Closed`] if there will be no such record.
    pub async fn committed(&self, lsn: Lsn) -> Result<(), JournalError> {
        let mut place = self.waiting_for_commit.place();
        poll_fn(|context| {
            if self.durable.get() >= lsn {
                return Poll::Ready(Ok(()));
            }
            if let Err(error) = self.check() {
                return Poll::Ready(Err(error));
            }
            if self.is_closed.get() && lsn > self.last() {
                return Poll::Ready(Err(JournalError::Closed));
            }
            place.wait(lsn, context.waker());
            Poll::Pending
        })
        .await
    }

    /// Waits until the journal has failed, and returns the error.
    pub async fn failed(&self) -> JournalError {
        loop {
            if let Err(error) = self.check() {
                return error;
            }
            self.waiting_for_failure.notified().await;
        }
    }

    /// Whether few enough bytes wait for the disk that new messages may be accepted.
    pub fn has_room(&self) -> bool {
        self.pending.borrow().bytes() <= self.room_bytes
    }

    /// Whether few enough bytes wait for the disk that messages which must not wait for it may still be accepted: the
    /// limit is 64 times that of [`Self::has_room`], and an eighth of the limit for refusals.
    pub fn has_reserve(&self) -> bool {
        self.pending.borrow().bytes() <= self.room_bytes.saturating_mul(RESERVE_FACTOR)
    }

    /// Waits until the journal has room, or has failed.
    pub async fn room(&self) {
        self.waiting_for_room.until(|| self.has_room() || self.is_failed()).await;
    }

    /// Commits the records taken, and accepts no more. [`Self::is_failed`] says whether that succeeded.
    pub async fn close(&self) {
        self.is_closed.set(true);
        if !self.is_started.get() {
            self.commit_waiting().await;
        }
        self.work.raise();
        // The caller can ask for the error.
        let _ = self.committed(self.last()).await;
        if let Some(disk) = &self.disk {
            disk.settle().await;
        }
    }

    /// Reads whole records from `from` on: about `bytes_max` bytes of them and at least one, but only durable ones.
    /// To continue, read from [`JournalChunk::next`].
    ///
    /// # Errors
    /// Those of reading files; `InvalidData` for damage; `Unsupported` at level `none`.
    pub async fn read(&self, from: Position, bytes_max: usize) -> io::Result<JournalChunk> {
        match &self.disk {
            Some(disk) => disk.read(from, self.durable_end.get(), bytes_max).await,
            None => {
                let reason = "a journal at level none keeps nothing that could be read";
                Err(io::Error::new(io::ErrorKind::Unsupported, reason))
            }
        }
    }

    /// Counters, readable from any thread.
    pub fn counters(&self) -> Arc<JournalCounters> {
        Arc::clone(&self.counters)
    }

    fn check(&self) -> Result<(), JournalError> {
        match &*self.failure.borrow() {
            Some(failure) => Err(JournalError::Failed(Arc::clone(failure))),
            None => Ok(()),
        }
    }

    /// Commits batches until no record waits.
    async fn commit_waiting(&self) {
        let Some(disk) = &self.disk else { return };
        while !self.is_failed() {
            let Some(batch) = self.pending.borrow_mut().take() else { return };
            // The next one may fill while this one is written.
            self.tell_room();
            if let Err(failure) = self.commit(disk, batch).await {
                self.fail(failure);
            }
        }
    }

    async fn commit(&self, disk: &Rc<Disk>, mut batch: Batch) -> Result<(), Failure> {
        let begun = monotonic();
        self.counters.begin(begun);
        let end = batch.end();
        let segment = disk.segment(batch.at.segment).await?;
        let bytes = disk.write(&segment, batch.at.offset, std::mem::take(&mut batch.bytes)).await?;
        if self.level == Level::Disk {
            disk.sync(&segment).await?;
        }
        let took = monotonic().since(begun);
        self.counters.committed(batch.records, bytes.len() as u64, took, batch.last_lsn);
        self.pending.borrow_mut().recycle(bytes);
        self.durable_end.set(end);
        self.durable.set(batch.last_lsn);
        disk.prepare(end);
        self.tell(batch.last_lsn);
        Ok(())
    }

    fn tell_room(&self) {
        if self.has_room() {
            self.waiting_for_room.notify_all();
        }
    }

    /// Reports what is durable now.
    fn tell(&self, lsn: Lsn) {
        self.waiting_for_commit.wake_due(|wanted| *wanted <= lsn);
        let count = self.callbacks.borrow().len();
        for index in 0..count {
            let callback = self.callbacks.borrow().get(index).cloned();
            if let Some(callback) = callback {
                callback(lsn);
            }
        }
    }

    /// Poisons the journal. A failed operation is not retried: after a failed sync the state of the disk is unknown.
    fn fail(&self, failure: Failure) {
        self.counters.failed();
        self.failure.borrow_mut().get_or_insert_with(|| Arc::new(failure));
        self.pending.borrow_mut().clear();
        self.waiting_for_commit.wake_all();
        self.waiting_for_room.notify_all();
        self.waiting_for_failure.notify_all();
    }
}

/// The task of a journal. It does not keep the journal alive while there is nothing to do.
async fn commit_for_ever(journal: Weak<Journal>, work: Rc<Signal>) {
    loop {
        work.raised().await;
        let Some(journal) = journal.upgrade() else { return };
        journal.commit_waiting().await;
        if journal.is_closed.get() || journal.is_failed() {
            return;
        }
    }
}

/// Checks that a recovery belongs to this journal and is unused; marks it as used.
fn checked<'a>(config: &JournalConfig, recovered: &'a Recovered) -> io::Result<&'a JournalId> {
    let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidInput, reason);
    if !segment::is_size(config.segment_bytes) {
        let (least, bytes) = (segment::SEGMENT_BYTES_MIN, config.segment_bytes);
        let multiple = segment::SECTOR_BYTES;
        let reason =
            format!("a segment has at least {least} bytes and a multiple of {multiple}, not {bytes}");
        return Err(invalid(reason));
    }
    let Some(place) = &recovered.place else {
        return Err(invalid(format!("a journal at level {} needs its recovery", config.level)));
    };
    if place.directory != config.directory || place.worker != config.worker {
        let (directory, worker) = (place.directory.display(), place.worker);
        return Err(invalid(format!("what was recovered is the journal of worker {worker} in {directory}")));
    }
    if !place.lock.claim() {
        let reason = format!(
            "{}: the journal of worker {} was opened since it was recovered",
            place.directory.display(),
            place.worker
        );
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, reason));
    }
    Ok(place)
}

/// Opens the segment in which the recovery ended, or creates the first one.
async fn first_segment(disk: &Disk, config: &JournalConfig, place: &JournalId) -> io::Result<Tail> {
    if let Some(tail) = place.tail {
        disk.resume(tail.end.segment, tail.segment_bytes)?;
        return Ok(tail);
    }
    if let Err(failure) = disk.segment(1).await {
        let kind = failure.source.kind();
        return Err(io::Error::new(kind, failure));
    }
    let end = Position { segment: 1, offset: segment::HEADER_BYTES as u64 };
    Ok(Tail { end, segment_bytes: config.segment_bytes })
}
