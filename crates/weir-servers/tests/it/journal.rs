//! Tests of the journal: on every driver, through damage, faults and crashes.

mod checkpoints;
mod damage;
mod drivers;
mod faults;
mod inspect;
mod model;

use std::{
    fs,
    future::Future,
    ops::Deref,
    path::{Path, PathBuf},
    rc::Rc,
};

use weir_engine::{Config, Driver, Runtime, StartError};
use weir_servers::journal::{self, Journal, JournalConfig, Level, Lsn, Position, RecoverError, Recovered};

pub const WORKER: u16 = 3;

/// Small, so that logs have several segments.
pub const SEGMENT_BYTES: u64 = 4096;

/// Bytes of a segment before its first record.
pub const FIRST: usize = 64;

/// A test's folder, removed at its end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        Self::below(&std::env::temp_dir(), name)
    }

    /// In memory if the system has such a file system: for tests in which thousands of syncs would add nothing.
    pub fn in_memory(name: &str) -> Self {
        let shared = Path::new("/dev/shm");
        if shared.is_dir() { Self::below(shared, name) } else { Self::new(name) }
    }

    fn below(parent: &Path, name: &str) -> Self {
        let path = parent.join(format!("weir-journal-{name}-{}", std::process::id()));
        if path.exists() {
            fs::remove_dir_all(&path).expect("what a killed run left can be removed");
        }
        Self(path)
    }

    pub fn segment(&self, number: u64) -> PathBuf {
        self.0.join(format!("worker-{WORKER:05}-{number:010}.journal"))
    }

    pub fn segments(&self) -> Vec<PathBuf> {
        (1..).map(|number| self.segment(number)).take_while(|path| path.exists()).collect()
    }

    pub fn config(&self, level: Level) -> JournalConfig {
        let base = JournalConfig::new(self.0.clone(), WORKER, level);
        JournalConfig { segment_bytes: SEGMENT_BYTES, ..base }
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A failed test leaves its files for inspection.
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// A record, as appended or recovered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub lsn: Lsn,
    pub position: Position,
    pub kind: u8,
    pub session: u32,
    pub t_ns: u64,
    pub payload: Vec<u8>,
}

/// Everything in a journal. What only reads it finds the same.
pub fn recover(folder: &Path) -> Result<(Vec<Entry>, Recovered), RecoverError> {
    let inspected = inspect::unchanged(folder);
    let recovered = recover_alone(folder);
    match (inspected, &recovered) {
        (Some(Ok((entries, torn))), Ok((found, recovered))) => {
            assert_eq!((&entries, &torn), (found, &recovered.torn));
        }
        (Some(Err(inspected)), Err(error)) => assert_eq!(inspected, error.to_string()),
        (None, _) | (_, Err(RecoverError::InUse { .. })) => {}
        (Some(inspected), _) => panic!("{inspected:?} was found without a change"),
    }
    recovered
}

fn recover_alone(folder: &Path) -> Result<(Vec<Entry>, Recovered), RecoverError> {
    let mut found = Vec::new();
    let recovered = journal::recover(folder, WORKER, &mut |record, position| {
        assert_eq!(record.worker, WORKER);
        found.push(Entry {
            lsn: record.lsn,
            position,
            kind: record.kind,
            session: record.session,
            t_ns: record.t_ns,
            payload: record.payload.to_vec(),
        });
        Ok(())
    })?;
    assert_eq!(recovered.records, found.len() as u64);
    assert_eq!(recovered.last_lsn, found.last().map_or(0, |entry| entry.lsn));
    Ok((found, recovered))
}

/// Appends a record whose fields all derive from its payload.
pub fn append(journal: &Journal, payload: &[u8]) -> Entry {
    let (kind, session, t_ns) = (payload.len() as u8, payload.len() as u32 * 3, payload.len() as u64 * 5);
    let (front, back) = payload.split_at(payload.len() / 2);
    let (lsn, position) = journal.append(kind, session, t_ns, &[front, back]).expect("there is room");
    Entry { lsn, position, kind, session, t_ns, payload: payload.to_vec() }
}

/// Opens a journal where it ended, with its task.
pub async fn open(folder: &Folder, level: Level) -> Rc<Journal> {
    let (_, recovered) = recover(folder).expect("it is whole");
    let journal = Journal::open(folder.config(level), &recovered).await.expect("it can be opened");
    journal.start();
    journal
}

/// Writes a log: each slice of payloads is one batch.
pub fn write(folder: &Folder, level: Level, batches: &[Vec<Vec<u8>>]) -> Vec<Entry> {
    on(Driver::Poll, async {
        let journal = open(folder, level).await;
        let mut entries = Vec::new();
        for batch in batches {
            entries.extend(batch.iter().map(|payload| append(&journal, payload)));
            journal.committed(journal.last()).await.expect("the disk works");
        }
        assert_eq!(journal.counters().commits(), batches.len() as u64, "a batch is one commit");
        journal.close().await;
        entries
    })
    .expect("poll runs everywhere")
}

/// Runs a future on a driver; `None` if the kernel refuses it.
pub fn on<T>(driver: Driver, future: impl Future<Output = T>) -> Option<T> {
    runtime(driver).map(|runtime| runtime.block_on(future))
}

pub fn runtime(driver: Driver) -> Option<Runtime> {
    match Runtime::new(&Config::for_test(driver)) {
        Ok(runtime) => Some(runtime),
        Err(StartError::Refused { refusal, .. }) => {
            println!("skipped: {driver}: {refusal}");
            let required = std::env::var("WEIR_REQUIRE_DRIVERS").unwrap_or_default();
            assert!(!required.split(',').any(|name| name.trim() == driver.name()), "{driver} is required");
            None
        }
        Err(error) => panic!("{driver}: {error}"),
    }
}

/// The drivers that a journal runs on.
pub const DRIVERS: [Driver; 5] = [Driver::Uring, Driver::Epoll, Driver::Poll, Driver::Select, Driver::Sim];
