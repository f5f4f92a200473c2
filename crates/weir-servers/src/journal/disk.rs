//! The files of an open journal: batches are written, and durable parts are read to be sent again.
//!
//! Writes, syncs and all steps that create a segment are operations of the engine at either level, so that the worker
//! continues meanwhile. At level `os` a write is a copy into the operating system's memory, and a copy on the worker
//! would cost less: but the kernel makes a writer wait if too much of that memory is unwritten, or if the file system
//! stalls, and there is no way to know in advance (ext4 refuses `RWF_NOWAIT` for such writes). Cancels, heartbeats
//! and the kill switch would wait with it. The next segment is created while the current one fills, so that a change
//! of segments adds nothing to a commit. If no file descriptor is free, the creation is retried, and waited for if
//! necessary, until others are closed. If the disk is full, it is retried until the segment is needed: an operator may
//! make room meanwhile.
//!
//! The lock covers everyone who may still write or change names in the folder: this journal, and each write and
//! rename that is in flight when it is dropped. A stalled disk may finish such an operation long after its runtime
//! has ended, at a position where the next owner would have written meanwhile. A sync, an opening and a reservation
//! of space need no lock: however late they finish, they change nothing that belongs to the next owner.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    collections::VecDeque,
    future::poll_fn,
    io,
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
    task::{Poll, Waker},
    time::Duration,
};

use rustix::io::Errno;
use weir_engine::{
    JoinHandle,
    fs::{File, READ_BYTES_MAX},
    time::{self, Instant},
};

use super::{
    Failure, JournalConfig, Level, Position,
    chunk::{Found, JournalChunk},
    directory::Lock,
    faults::{Faults, Operation, Verdict},
    record,
    segment::{self, Header},
};

/// Files that are kept open for reading, in addition to the one being written.
const READERS_MAX: usize = 4;

/// How long a needed segment may wait for a file descriptor, and how often it tries.
const DESCRIPTOR_WAIT_MAX: Duration = Duration::from_secs(5);
const DESCRIPTOR_LOOK: Duration = Duration::from_millis(20);

/// How often a segment is tried again on a full disk.
const ROOM_LOOK: Duration = Duration::from_secs(1);

/// The step that creates a segment, in words.
const MAKE: &str = "make it";

/// How often a test is asked whether it still delays an operation.
const HOLD_LOOK: Duration = Duration::from_millis(1);

/// An open segment.
#[derive(Debug)]
pub(super) struct Segment {
    number: u64,
    bytes: u64,
    path: PathBuf,
    file: File,
}

/// The segment after the current one.
enum Spare {
    None,
    /// A task is creating it; the waker belongs to the task that needs it.
    Making(Option<Waker>),
    Ready(Rc<Segment>),
    Failed(Failure),
}

/// The module's documentation describes it.
pub(super) struct Disk {
    directory: PathBuf,
    worker: u16,
    level: Level,
    segment_bytes: u64,
    faults: Option<Faults>,
    /// `None` until the first segment exists.
    active: RefCell<Option<Rc<Segment>>>,
    spare: RefCell<Spare>,
    /// Before this time no spare segment is created, because the disk was full.
    spare_not_before: Cell<Instant>,
    /// The task that creates the spare segment.
    making: RefCell<Option<JoinHandle<()>>>,
    readers: RefCell<VecDeque<Rc<Segment>>>,
    lock: Option<Arc<Lock>>,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { directory, worker, level, .. } = self;
        formatter
            .debug_struct("Disk")
            .field("directory", directory)
            .field("worker", worker)
            .field("level", level)
            .finish_non_exhaustive()
    }
}

impl Disk {
    /// `lock` is `None` for reading only.
    pub(super) fn new(config: &JournalConfig, lock: Option<Arc<Lock>>, faults: Option<Faults>) -> Self {
        Self {
            directory: config.directory.clone(),
            worker: config.worker,
            level: config.level,
            segment_bytes: config.segment_bytes,
            faults,
            active: RefCell::new(None),
            spare: RefCell::new(Spare::None),
            spare_not_before: Cell::new(Instant::from_nanos(0)),
            making: RefCell::new(None),
            readers: RefCell::default(),
            lock,
        }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn worker(&self) -> u16 {
        self.worker
    }

    /// Continues with an existing segment.
    pub(super) fn resume(&self, number: u64, bytes: u64) -> io::Result<()> {
        let path = segment::path(&self.directory, self.worker, number);
        let file = std::fs::OpenOptions::new().read(true).write(true).open(&path)?;
        let segment = Segment { number, bytes, path, file: File::from_descriptor(file.into())? };
        *self.active.borrow_mut() = Some(Rc::new(segment));
        Ok(())
    }

    /// Writes a batch. After that it is durable at level `os`.
    pub(super) async fn write(
        &self,
        segment: &Segment,
        offset: u64,
        mut bytes: Vec<u8>,
    ) -> Result<Vec<u8>, Failure> {
        let failed = |source| Failure { file: segment.path.clone(), doing: "write", source };
        let at = Position { segment: segment.number, offset };
        let refused = match self.judge(Operation::Write { at, bytes: bytes.len() }).await {
            Ok(()) => None,
            Err((0, error)) => return Err(failed(error)),
            Err((count, error)) => {
                bytes.truncate(count);
                Some(error)
            }
        };
        let written = segment.file.write_at_holding(offset, bytes, self.hold()).await;
        match refused {
            Some(error) => Err(failed(error)),
            None => written.map_err(failed),
        }
    }

    /// Waits until everything written to a segment is on disk.
    pub(super) async fn sync(&self, segment: &Segment) -> Result<(), Failure> {
        let failed = |source| Failure { file: segment.path.clone(), doing: "sync", source };
        self.allow(Operation::Sync { segment: segment.number }).await.map_err(failed)?;
        segment.file.sync_data().await.map_err(failed)
    }

    /// The segment to write, which is the current one or the next.
    pub(super) async fn segment(&self, number: u64) -> Result<Rc<Segment>, Failure> {
        let present = self.active.borrow().clone();
        if let Some(present) = present
            && present.number == number
        {
            return Ok(present);
        }
        let next = match self.take_spare().await {
            Some(spare) => spare?,
            None => self.create_patiently(number).await?,
        };
        *self.active.borrow_mut() = Some(Rc::clone(&next));
        Ok(next)
    }

    /// Waits for the segment that is being created, if any.
    async fn take_spare(&self) -> Option<Result<Rc<Segment>, Failure>> {
        poll_fn(|context| {
            let mut spare = self.spare.borrow_mut();
            if let Spare::Making(waiting) = &mut *spare {
                *waiting = Some(context.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(match std::mem::replace(&mut *spare, Spare::None) {
                Spare::None | Spare::Making(_) => None,
                Spare::Ready(segment) => Some(Ok(segment)),
                Spare::Failed(failure) => Some(Err(failure)),
            })
        })
        .await
    }

    /// Waits until no segment is being created, so that another owner may open the journal.
    pub(super) async fn settle(&self) {
        // It contains no record, and the next recovery removes it.
        drop(self.take_spare().await);
    }

    /// Creates the next segment in a task, once the current one is half full.
    pub(super) fn prepare(self: &Rc<Self>, end: Position) {
        let number = match &*self.active.borrow() {
            Some(present) if present.number == end.segment && end.offset > present.bytes / 2 => {
                present.number + 1
            }
            _ => return,
        };
        if !matches!(*self.spare.borrow(), Spare::None) || time::now() < self.spare_not_before.get() {
            return;
        }
        *self.spare.borrow_mut() = Spare::Making(None);
        let disk = Rc::clone(self);
        let task = weir_engine::try_spawn(async move {
            let made = match disk.create(number).await {
                Ok(segment) => Spare::Ready(segment),
                // The next batch tries again.
                Err(failure) if wants_descriptor(&failure) => Spare::None,
                Err(failure) if wants_room(&failure) => {
                    disk.spare_not_before.set(time::now() + ROOM_LOOK);
                    Spare::None
                }
                Err(failure) => Spare::Failed(failure),
            };
            if let Spare::Making(Some(waiting)) = disk.spare.replace(made) {
                waiting.wake();
            }
        });
        match task {
            Ok(task) => *self.making.borrow_mut() = Some(task),
            // No task is available: the segment is created when it is needed.
            Err(_) => *self.spare.borrow_mut() = Spare::None,
        }
    }

    /// The journal is dropped and needs no further segment: the task that creates one releases the lock.
    pub(super) fn give_up(&self) {
        if let Some(task) = self.making.take() {
            task.abort();
        }
    }

    /// Creates a needed segment, as soon as there are descriptors for it.
    async fn create_patiently(&self, number: u64) -> Result<Rc<Segment>, Failure> {
        let until = time::now() + DESCRIPTOR_WAIT_MAX;
        loop {
            match self.create(number).await {
                Err(failure) if wants_descriptor(&failure) && time::now() < until => {
                    time::sleep(DESCRIPTOR_LOOK).await;
                }
                made => return made,
            }
        }
    }

    /// Creates a segment. At level `disk` it survives a loss of power when this returns.
    async fn create(&self, number: u64) -> Result<Rc<Segment>, Failure> {
        let path = segment::path(&self.directory, self.worker, number);
        let failed = |doing| {
            let file = path.clone();
            move |source| Failure { file, doing, source }
        };
        self.allow(Operation::Create { segment: number }).await.map_err(failed(MAKE))?;
        // Get every descriptor before the segment has its name: if one is missing, the segment can then be created
        // again.
        let directory = match self.level {
            Level::Disk => Some(File::open(&self.directory).await.map_err(failed("open its folder"))?),
            _ => None,
        };
        let header = Header { worker: self.worker, number, bytes: self.segment_bytes };
        let made = segment::create(&self.directory, header, self.hold())
            .await
            .map(|file| Segment { number, bytes: header.bytes, path: path.clone(), file })
            .map_err(failed(MAKE))?;
        if self.level == Level::Disk {
            self.sync(&made).await?;
        }
        let named = segment::finish(&self.directory, self.worker, number, self.hold()).await;
        named.map_err(failed("name it"))?;
        if let Some(directory) = directory {
            self.allow(Operation::SyncDirectory).await.map_err(failed("sync its folder"))?;
            directory.sync_all().await.map_err(failed("sync its folder"))?;
        }
        Ok(Rc::new(made))
    }

    /// A share of the lock, for an operation that may outlast the journal.
    fn hold(&self) -> Arc<dyn Any + Send + Sync> {
        match self.lock.clone() {
            Some(lock) => lock,
            None => Arc::new(()),
        }
    }

    /// Waits as long as a test delays this. An error: it is refused; for a write, with the number of bytes that are
    /// written.
    async fn judge(&self, operation: Operation) -> Result<(), (usize, io::Error)> {
        let Some(judge) = &self.faults else { return Ok(()) };
        loop {
            match judge(&operation) {
                Verdict::Pass => return Ok(()),
                Verdict::Refuse(error) => return Err((0, error)),
                Verdict::Part(count, error) => return Err((count, error)),
                Verdict::Hold => time::sleep(HOLD_LOOK).await,
            }
        }
    }

    async fn allow(&self, operation: Operation) -> io::Result<()> {
        self.judge(operation).await.map_err(|(_, error)| error)
    }

    /// Reads whole records from `from` up to `end`; everything before `end` must be durable. Reads about `bytes_max`
    /// bytes of them, and at least one.
    pub(super) async fn read(
        &self,
        from: Position,
        end: Position,
        bytes_max: usize,
    ) -> io::Result<JournalChunk> {
        let mut from = from.max(Position { segment: 1, offset: segment::HEADER_BYTES as u64 });
        let mut bytes_wanted = bytes_max.clamp(record::HEADER_BYTES, READ_BYTES_MAX);
        while from < end {
            let segment = self.reader(from.segment).await?;
            let limit = if from.segment == end.segment { end.offset } else { segment.bytes };
            let left = usize::try_from(limit.saturating_sub(from.offset)).unwrap_or(usize::MAX);
            let found = if left < record::HEADER_BYTES {
                Found::End
            } else {
                let bytes = segment.file.read_at(from.offset, left.min(bytes_wanted)).await?;
                JournalChunk::parse(bytes, from, self.worker)
            };
            match found {
                Found::Records(chunk) => return Ok(chunk),
                Found::End if from.segment < end.segment => {
                    from = Position { segment: from.segment + 1, offset: segment::HEADER_BYTES as u64 };
                }
                Found::Cut { needed } if needed > bytes_wanted && needed <= left => bytes_wanted = needed,
                Found::End | Found::Cut { .. } => {
                    return Err(damaged(&segment.path, from, &record::Damage::Length));
                }
                Found::Damaged(damage) => return Err(damaged(&segment.path, from, &damage)),
            }
        }
        Ok(JournalChunk::empty(from))
    }

    /// A segment to read from.
    async fn reader(&self, number: u64) -> io::Result<Rc<Segment>> {
        let is_it = |segment: &&Rc<Segment>| segment.number == number;
        if let Some(present) = self.active.borrow().as_ref().filter(is_it) {
            return Ok(Rc::clone(present));
        }
        if let Some(known) = self.readers.borrow().iter().find(is_it) {
            return Ok(Rc::clone(known));
        }
        let path = segment::path(&self.directory, self.worker, number);
        let file = File::open(&path).await?;
        let bytes = file.metadata().await?.len;
        let segment = Rc::new(Segment { number, bytes, path, file });
        let mut readers = self.readers.borrow_mut();
        if readers.len() == READERS_MAX {
            readers.pop_front();
        }
        readers.push_back(Rc::clone(&segment));
        Ok(segment)
    }
}

/// Whether a step failed for lack of a file descriptor, in this process or on the machine.
fn wants_descriptor(failure: &Failure) -> bool {
    let code = failure.source.raw_os_error();
    [Errno::MFILE, Errno::NFILE].iter().any(|wanting| code == Some(wanting.raw_os_error()))
}

/// Whether a segment could not be created because its disk, or a quota there, is full. After any other step its state
/// is unknown.
fn wants_room(failure: &Failure) -> bool {
    let code = failure.source.raw_os_error();
    failure.doing == MAKE && [Errno::NOSPC, Errno::DQUOT].iter().any(|full| code == Some(full.raw_os_error()))
}

fn damaged(path: &Path, at: Position, damage: &record::Damage) -> io::Error {
    let reason = format!("{} is damaged at byte {}: {damage}", path.display(), at.offset);
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
