//! Opening, writing and reading a store.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, named_params};
use serde::de::DeserializeOwned;
use weir_record::{
    SCHEMA_VERSION, effect::Effects, finding::Finding, metric_rows::METRICS, run_pool::Period,
    spec::StudySpec, stable_name, study::StudyResult, trial::TrialRecord,
};

use crate::{
    error::StoreError,
    row::{BlockKey, NewStudy, ResultBrief, StoredBlock, StudyBrief, StudyHeader, integer, to_json},
    schema,
};

/// Name of the store in a run folder.
pub const FILE_NAME: &str = "study.db";

/// Stated maximum of one store. A trial takes about 50 KiB, so this is far beyond any study that ends.
pub const BYTES_MAX: u64 = 4 << 30;

/// Longest wait for a lock that another process holds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// An open store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

impl Store {
    /// Creates the run folder, if it does not exist, and a new store in it.
    pub fn create(folder: &Path, study: &NewStudy) -> Result<Self, StoreError> {
        let path = folder.join(FILE_NAME);
        let cannot_create = |reason: std::io::Error| StoreError::CannotCreate {
            path: path.clone(),
            reason: reason.to_string(),
        };
        fs::create_dir_all(folder).map_err(cannot_create)?;
        if path.try_exists().map_err(cannot_create)? {
            return Err(StoreError::Exists { path });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let made = Self::connect(&path, flags).and_then(|mut store| {
            store.prepare_for_writing()?;
            store.write(|transaction| {
                schema::create(transaction)?;
                insert_study(transaction, study)
            })?;
            Ok(store)
        });
        made.map_err(StoreError::before_the_first_block)
    }

    /// Opens an existing store for another session. SQLite first completes or rolls back a transaction that a kill
    /// interrupted.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let path = existing(folder)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut store = Self::connect(&path, flags)?;
        schema::check(&store.connection, &path)?;
        store.prepare_for_writing()?;
        store.write(|transaction| {
            if schema::upgrade(transaction)? {
                add_figures(transaction)?;
            }
            Ok(())
        })?;
        Ok(store)
    }

    /// Opens an existing store for reading, also while a session writes it.
    ///
    /// A store in a folder that cannot be written is read as an immutable file, because SQLite wants to place its
    /// shared index beside a store in write-ahead mode even for a reader. An immutable file is safe only without an
    /// unfinished log, so this is tried second, and not if a log exists.
    pub fn open_read_only(folder: &Path) -> Result<Self, StoreError> {
        let path = existing(folder)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Self::connect(&path, flags).and_then(|store| {
            schema::check(&store.connection, &path)?;
            Ok(store)
        });
        match opened {
            Err(StoreError::ReadOnly { .. } | StoreError::Unreadable { .. }) if !has_log(&path) => {
                let uri = immutable_uri(&path);
                let flags = flags | OpenFlags::SQLITE_OPEN_URI;
                let connection = Connection::open_with_flags(uri, flags)
                    .map_err(|source| StoreError::from_sqlite(&path, source))?;
                schema::check(&connection, &path)?;
                Ok(Self { connection, path })
            }
            other => other,
        }
    }

    /// Leaves write-ahead mode, so that no other files stay beside the store and readers create none. If a process
    /// reads the store or the disk is full, the mode stays; no data is lost.
    pub fn settle(self) {
        let _ = self.connection.busy_timeout(Duration::ZERO);
        let _ = self.connection.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(()));
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lowers the stated maximum of the file; further blocks beyond it are refused as [`StoreError::Full`].
    pub fn limit_bytes(&self, bytes_max: u64) -> Result<(), StoreError> {
        let page_bytes: i64 = self
            .connection
            .pragma_query_value(None, "page_size", |row| row.get(0))
            .map_err(|source| self.sqlite(source))?;
        let pages_max = integer(bytes_max) / page_bytes.max(1);
        self.connection
            .pragma_update_and_check(None, "max_page_count", pages_max, |_| Ok(()))
            .map_err(|source| self.sqlite(source))
    }

    /// Begins a session and returns its number.
    pub fn begin_session(&mut self) -> Result<i64, StoreError> {
        self.write(|transaction| {
            transaction.execute("INSERT INTO session (elapsed_ns) VALUES (0)", [])?;
            Ok(transaction.last_insert_rowid())
        })
    }

    /// Stores the pilot trials and the study with the rates they fixed, all or nothing.
    pub fn append_pilots(
        &mut self,
        session: i64,
        blocks: &[StoredBlock],
        spec: &StudySpec,
        elapsed_ns: u64,
    ) -> Result<(), StoreError> {
        let spec = to_json("the study", spec)?;
        self.write(|transaction| {
            for block in blocks {
                insert_block(transaction, session, block)?;
            }
            transaction.execute("UPDATE study SET spec = ?1 WHERE id = 1", [&spec])?;
            set_elapsed(transaction, session, elapsed_ns)?;
            Ok(())
        })
    }

    /// Stores a finished block; when this returns, it is on disk.
    pub fn append_block(
        &mut self,
        session: i64,
        block: &StoredBlock,
        elapsed_ns: u64,
    ) -> Result<(), StoreError> {
        self.write(|transaction| {
            insert_block(transaction, session, block)?;
            set_elapsed(transaction, session, elapsed_ns)?;
            Ok(())
        })
    }

    /// Stores the judged result with its table of effects, and the time the session took. It replaces an earlier
    /// result of the study.
    pub fn save_result(
        &mut self,
        session: i64,
        result: &StudyResult,
        elapsed_ns: u64,
    ) -> Result<(), StoreError> {
        let text = to_json("the result", result)?;
        self.write(|transaction| {
            transaction.execute(
                "INSERT INTO result (id, result) VALUES (1, ?1)
                 ON CONFLICT (id) DO UPDATE SET result = excluded.result, written_at = datetime('now')",
                [&text],
            )?;
            replace_effects(transaction, &result.effects)?;
            set_elapsed(transaction, session, elapsed_ns)?;
            Ok(())
        })
    }

    /// The study as requested and as it runs.
    pub fn study(&self) -> Result<StudyHeader, StoreError> {
        let row = self
            .connection
            .query_row(
                "SELECT spec_asked, spec, fingerprint, missing_arms, reproduce,
                        (SELECT COALESCE(SUM(elapsed_ns), 0) FROM session)
                 FROM study WHERE id = 1",
                [],
                |row| {
                    let text = |index: usize| row.get::<_, String>(index);
                    Ok((text(0)?, text(1)?, text(2)?, text(3)?, text(4)?, row.get::<_, i64>(5)?))
                },
            )
            .map_err(|source| self.sqlite(source))?;
        let (spec_asked, spec, fingerprint, missing_arms, reproduce, elapsed_ns) = row;
        Ok(StudyHeader {
            spec_asked: self.parse("study", &spec_asked)?,
            spec: self.spec(&spec)?,
            fingerprint: self.parse("fingerprint", &fingerprint)?,
            missing_arms: self.parse("missing arms", &missing_arms)?,
            reproduce,
            elapsed_ns: u64::try_from(elapsed_ns).unwrap_or(0),
        })
    }

    /// The study in brief, for lists of studies. No trial is read.
    pub fn brief(&self) -> Result<StudyBrief, StoreError> {
        let wrap = |source| self.sqlite(source);
        let (spec, fingerprint, elapsed_ns): (String, String, i64) = self
            .connection
            .query_row(
                "SELECT spec, fingerprint, (SELECT COALESCE(SUM(elapsed_ns), 0) FROM session)
                 FROM study WHERE id = 1",
                [],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .map_err(wrap)?;
        let mut counted = self
            .connection
            .prepare("SELECT cell_id, COUNT(DISTINCT block) FROM block GROUP BY cell_id")
            .map_err(wrap)?;
        let rows = counted.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(wrap)?;
        Ok(StudyBrief {
            spec: self.spec(&spec)?,
            fingerprint: self.parse("fingerprint", &fingerprint)?,
            created_unix_s: self.created_unix_s()?,
            elapsed_ns: u64::try_from(elapsed_ns).unwrap_or(0),
            blocks: rows.collect::<Result<_, _>>().map_err(wrap)?,
        })
    }

    /// When the study was made, in seconds since 1970; `None` if the stored text is no date.
    pub fn created_unix_s(&self) -> Result<Option<u64>, StoreError> {
        let created = "SELECT CAST(strftime('%s', created_at) AS INTEGER) FROM study WHERE id = 1";
        let created: Option<i64> =
            self.connection.query_row(created, [], |row| row.get(0)).map_err(|source| self.sqlite(source))?;
        Ok(created.and_then(|seconds| u64::try_from(seconds).ok()))
    }

    /// When its sessions ran, counting those that stored a block; `None` before the first block. `running` is the
    /// number of a session that still runs and its time so far in nanoseconds.
    pub fn period(&self, running: Option<(i64, u64)>) -> Result<Option<Period>, StoreError> {
        let (running, elapsed_ns) = running.unwrap_or_default();
        let (began, ended, sessions): (Option<i64>, Option<i64>, i64) = self
            .connection
            .query_row(
                "SELECT MIN(CAST(strftime('%s', started_at) AS INTEGER)),
                        MAX(CAST(strftime('%s', started_at) AS INTEGER)
                            + CASE WHEN id = ?1 THEN ?2 ELSE elapsed_ns END / 1000000000),
                        COUNT(*)
                 FROM session WHERE id IN (SELECT session FROM block)",
                [running, integer(elapsed_ns)],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .map_err(|source| self.sqlite(source))?;
        let unix_s = |seconds: Option<i64>| u64::try_from(seconds?).ok();
        let (Some(began_unix_s), Some(ended_unix_s)) = (unix_s(began), unix_s(ended)) else {
            return Ok(None);
        };
        Ok(Some(Period { began_unix_s, ended_unix_s, sessions: u32::try_from(sessions).unwrap_or(u32::MAX) }))
    }

    /// The cell of the block that was stored last; `None` before the first.
    pub fn last_cell(&self) -> Result<Option<String>, StoreError> {
        self.connection
            .query_row("SELECT cell_id FROM block ORDER BY id DESC LIMIT 1", [], |row| row.get(0))
            .optional()
            .map_err(|source| self.sqlite(source))
    }

    /// All blocks, pilots included, in the order they were stored.
    pub fn blocks(&self) -> Result<Vec<StoredBlock>, StoreError> {
        Ok(self.blocks_after(0, u32::MAX)?.into_iter().map(|(_, block)| block).collect())
    }

    /// Up to `count_max` blocks stored after the one with this number, oldest first, each with its number. Numbers
    /// are above 0 and ascend.
    pub fn blocks_after(&self, number: i64, count_max: u32) -> Result<Vec<(i64, StoredBlock)>, StoreError> {
        let mut statement = self
            .connection
            .prepare(
                "SELECT block.id, cell_id, block, attempt, record FROM block JOIN trial ON trial.block_id = block.id
                 WHERE block.id IN (SELECT id FROM block WHERE id > ?1 ORDER BY id LIMIT ?2)
                 ORDER BY block.id, position",
            )
            .map_err(|source| self.sqlite(source))?;
        let mut rows = statement.query((number, count_max)).map_err(|source| self.sqlite(source))?;
        let mut blocks: Vec<(i64, StoredBlock)> = Vec::new();
        while let Some(row) = rows.next().map_err(|source| self.sqlite(source))? {
            let id: i64 = row.get(0).map_err(|source| self.sqlite(source))?;
            let record: String = row.get(4).map_err(|source| self.sqlite(source))?;
            let trial: TrialRecord = self.parse("trial", &record)?;
            if blocks.last().is_none_or(|(last, _)| *last != id) {
                let key = block_key(row).map_err(|source| self.sqlite(source))?;
                blocks.push((id, StoredBlock { key, trials: Vec::new() }));
            }
            if let Some((_, block)) = blocks.last_mut() {
                block.trials.push(trial);
            }
        }
        Ok(blocks)
    }

    /// The result; `None` if the study was not judged. A result whose records have another version is not read; judge
    /// the trials again instead.
    pub fn result(&self) -> Result<Option<StudyResult>, StoreError> {
        let Some(text) = self.result_text()? else { return Ok(None) };
        let brief: ResultBrief = self.parse("result", &text)?;
        if brief.schema_version != SCHEMA_VERSION {
            return Ok(None);
        }
        self.parse("result", &text).map(Some)
    }

    /// The result in brief, for records of any version; `None` if the study was not judged.
    pub fn result_brief(&self) -> Result<Option<ResultBrief>, StoreError> {
        self.result_text()?.map(|text| self.parse("result", &text)).transpose()
    }

    fn result_text(&self) -> Result<Option<String>, StoreError> {
        self.connection
            .query_row("SELECT result FROM result WHERE id = 1", [], |row| row.get(0))
            .optional()
            .map_err(|source| self.sqlite(source))
    }

    /// Lets SQLite read every page and check it.
    pub fn check_integrity(&self) -> Result<(), StoreError> {
        let verdict: String = self
            .connection
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .map_err(|source| self.sqlite(source))?;
        if verdict == "ok" {
            return Ok(());
        }
        Err(StoreError::Damaged { path: self.path.clone(), reason: verdict })
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, StoreError> {
        let wrap = |source| StoreError::from_sqlite(path, source);
        let connection = Connection::open_with_flags(path, flags).map_err(wrap)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(wrap)?;
        Ok(Self { connection, path: path.to_path_buf() })
    }

    /// Write-ahead mode lets a report read while the session writes; FULL makes each commit wait for the disk.
    fn prepare_for_writing(&mut self) -> Result<(), StoreError> {
        let wrap = |source| StoreError::from_sqlite(&self.path, source);
        self.connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).map_err(wrap)?;
        self.connection.pragma_update(None, "synchronous", "full").map_err(wrap)?;
        self.connection.pragma_update(None, "foreign_keys", true).map_err(wrap)?;
        self.limit_bytes(BYTES_MAX)
    }

    fn write<T>(
        &mut self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, WriteError>,
    ) -> Result<T, StoreError> {
        let run = |connection: &mut Connection| -> Result<T, WriteError> {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = change(&transaction)?;
            transaction.commit()?;
            Ok(value)
        };
        run(&mut self.connection).map_err(|error| match error {
            WriteError::Sqlite(source) => match self.sqlite(source) {
                full @ StoreError::Full { .. } if !self.has_blocks() => full.before_the_first_block(),
                other => other,
            },
            WriteError::Store(error) => error,
        })
    }

    /// Whether a block is stored. Also true if the query fails, because a block may be stored then.
    fn has_blocks(&self) -> bool {
        let any = "SELECT EXISTS (SELECT 1 FROM block)";
        self.connection.query_row(any, [], |row| row.get(0)).unwrap_or(true)
    }

    fn sqlite(&self, source: rusqlite::Error) -> StoreError {
        StoreError::from_sqlite(&self.path, source)
    }

    /// Parses a stored study. A study without an arm or a cell is damaged: the judge and the reports rely on one of
    /// each.
    fn spec(&self, text: &str) -> Result<StudySpec, StoreError> {
        let spec: StudySpec = self.parse("study", text)?;
        let missing = match (spec.arms.is_empty(), spec.cells.is_empty()) {
            (true, _) => "arm",
            (_, true) => "cell",
            (false, false) => return Ok(spec),
        };
        let reason = format!("the stored study has no {missing}");
        Err(StoreError::Damaged { path: self.path.clone(), reason })
    }

    fn parse<T: DeserializeOwned>(&self, what: &str, text: &str) -> Result<T, StoreError> {
        serde_json::from_str(text).map_err(|error| StoreError::Damaged {
            path: self.path.clone(),
            reason: format!("the stored {what} cannot be read: {error}"),
        })
    }
}

/// Errors inside a transaction are of both kinds; errors outside come as SQLite's and are sorted.
enum WriteError {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for WriteError {
    fn from(source: rusqlite::Error) -> Self {
        Self::Sqlite(source)
    }
}

impl From<StoreError> for WriteError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn existing(folder: &Path) -> Result<PathBuf, StoreError> {
    let path = folder.join(FILE_NAME);
    match fs::metadata(&path) {
        Ok(found) if found.is_file() => Ok(path),
        Ok(_) => Err(StoreError::Unreadable { path, reason: "it is no file".to_owned() }),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(StoreError::NotFound { path })
        }
        Err(error) => Err(StoreError::Unreadable { path, reason: error.to_string() }),
    }
}

fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    fs::metadata(log).is_ok_and(|metadata| metadata.len() > 0)
}

/// The path as an SQLite URI: everything but unreserved characters and slashes in per cent form.
fn immutable_uri(path: &Path) -> String {
    use std::{fmt::Write, os::unix::ffi::OsStrExt};
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                uri.push(char::from(*byte));
            }
            // Writing to a string cannot fail.
            other => {
                let _ = write!(uri, "%{other:02x}");
            }
        }
    }
    uri.push_str("?immutable=1");
    uri
}

fn insert_study(transaction: &Transaction<'_>, study: &NewStudy) -> Result<(), WriteError> {
    let spec = to_json("the study", &study.spec)?;
    transaction.execute(
        "INSERT INTO study (id, spec_asked, spec, seed, fingerprint, missing_arms, reproduce)
         VALUES (1, :spec, :spec, :seed, :fingerprint, :missing_arms, :reproduce)",
        named_params! {
            ":spec": spec,
            ":seed": study.spec.seed.to_string(),
            ":fingerprint": to_json("the fingerprint", &study.fingerprint)?,
            ":missing_arms": to_json("the missing arms", &study.missing_arms)?,
            ":reproduce": study.reproduce,
        },
    )?;
    Ok(())
}

fn set_elapsed(transaction: &Transaction<'_>, session: i64, elapsed_ns: u64) -> rusqlite::Result<usize> {
    transaction.execute("UPDATE session SET elapsed_ns = ?1 WHERE id = ?2", (integer(elapsed_ns), session))
}

fn insert_block(transaction: &Transaction<'_>, session: i64, block: &StoredBlock) -> Result<(), WriteError> {
    let BlockKey { cell_id, block: number, attempt } = &block.key;
    transaction.execute(
        "INSERT INTO block (session, cell_id, block, attempt) VALUES (?1, ?2, ?3, ?4)",
        (session, cell_id, number, attempt),
    )?;
    let block_id = transaction.last_insert_rowid();
    for trial in &block.trials {
        insert_trial(transaction, block_id, trial)?;
    }
    Ok(())
}

fn insert_trial(transaction: &Transaction<'_>, block_id: i64, trial: &TrialRecord) -> Result<(), WriteError> {
    let what = format!("the trial of {} in {}", trial.arm, trial.cell_id);
    let load = trial.load.as_ref();
    let mut statement = transaction.prepare_cached(
        "INSERT INTO trial (block_id, position, arm, is_repeat, started_ns, elapsed_ns, round_trip_before_ns,
             round_trip_after_ns, messages, errors, exclusions, record)
         VALUES (:block_id, :position, :arm, :is_repeat, :started_ns, :elapsed_ns, :round_trip_before_ns,
             :round_trip_after_ns, :messages, :errors, :exclusions, :record)",
    )?;
    statement.execute(named_params! {
        ":block_id": block_id,
        ":position": trial.position,
        ":arm": trial.arm,
        ":is_repeat": trial.repeat,
        ":started_ns": integer(trial.started_ns),
        ":elapsed_ns": integer(trial.elapsed_ns),
        ":round_trip_before_ns": trial.reading_before.round_trip_ns,
        ":round_trip_after_ns": trial.reading_after.round_trip_ns,
        ":messages": load.map(|load| integer(load.messages)),
        ":errors": load.map(|load| integer(load.failures.errors())),
        ":exclusions": to_json(&what, &trial.exclusions)?,
        ":record": to_json(&what, trial)?,
    })?;
    let trial_id = transaction.last_insert_rowid();
    insert_figures(transaction, trial_id, trial)?;
    insert_readings(transaction, trial_id, trial)?;
    Ok(())
}

/// Stores readings. If two rows of one slice have the same name, the later one replaces the earlier.
fn insert_readings(
    transaction: &Transaction<'_>,
    trial_id: i64,
    trial: &TrialRecord,
) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare_cached(
        "INSERT OR REPLACE INTO reading (trial_id, slice, source, key, value) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for (number, slice) in (0_u32..).zip(&trial.evidence) {
        for reading in slice.readings.iter().filter(|reading| reading.value.is_finite()) {
            statement.execute((trial_id, number, &reading.source, &reading.key, reading.value))?;
        }
    }
    Ok(())
}

fn insert_figures(transaction: &Transaction<'_>, trial_id: i64, trial: &TrialRecord) -> rusqlite::Result<()> {
    let mut statement =
        transaction.prepare_cached("INSERT INTO figure (trial_id, metric, value) VALUES (?1, ?2, ?3)")?;
    for row in METRICS {
        if let Some(figure) = (row.read)(trial).filter(|figure| figure.is_finite()) {
            statement.execute((trial_id, row.key, figure))?;
        }
    }
    Ok(())
}

/// Replaces the table of effects.
fn replace_effects(transaction: &Transaction<'_>, effects: &Effects) -> Result<(), WriteError> {
    transaction.execute("DELETE FROM effect", [])?;
    let mut statement = transaction.prepare_cached(
        "INSERT INTO effect (place, question, asked, part, cell_id, arm, baseline, metric, scale, estimate, low, high,
             level, method, units, degrees_of_freedom, p_value, p_value_holm, detectable, role, verdict, outcome,
             difference, findings)
         VALUES (:place, :question, :asked, :part, :cell_id, :arm, :baseline, :metric, :scale, :estimate, :low, :high,
             :level, :method, :units, :degrees_of_freedom, :p_value, :p_value_holm, :detectable, :role, :verdict,
             :outcome, :difference, :findings)",
    )?;
    for (place, row) in (0_u32..).zip(&effects.rows) {
        let (asked, part) = row.question.places();
        let (low, high) = row.interval.unzip();
        let findings: Vec<Finding> = row.reasons.iter().chain(&row.notes).cloned().collect();
        statement.execute(named_params! {
            ":place": place,
            ":question": row.question.kind(),
            ":asked": asked,
            ":part": part,
            ":cell_id": row.cell_id,
            ":arm": row.arm,
            ":baseline": row.baseline,
            ":metric": row.metric.row().key,
            ":scale": stable_name(&row.scale),
            ":estimate": finite(row.estimate),
            ":low": finite(low),
            ":high": finite(high),
            ":level": row.level,
            ":method": stable_name(&row.method),
            ":units": row.units,
            ":degrees_of_freedom": row.degrees_of_freedom,
            ":p_value": finite(row.p_value),
            ":p_value_holm": finite(row.p_value_holm),
            ":detectable": finite(row.detectable),
            ":role": stable_name(&row.role),
            ":verdict": stable_name(&row.verdict),
            ":outcome": row.outcome.map(|outcome| stable_name(&outcome)),
            ":difference": row.difference.map(|difference| stable_name(&difference)),
            ":findings": to_json("the findings of an effect", &findings)?,
        })?;
    }
    Ok(())
}

/// The value, unless it is infinite or NaN.
fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

/// Adds the figures of trials that were stored before the table of figures existed.
fn add_figures(transaction: &Transaction<'_>) -> Result<(), WriteError> {
    let mut statement = transaction.prepare("SELECT id, record FROM trial")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let record: String = row.get(1)?;
        // Reading the blocks reports an unreadable record by name.
        if let Ok(trial) = serde_json::from_str(&record) {
            insert_figures(transaction, row.get(0)?, &trial)?;
        }
    }
    Ok(())
}

fn block_key(row: &rusqlite::Row<'_>) -> rusqlite::Result<BlockKey> {
    Ok(BlockKey { cell_id: row.get(1)?, block: row.get(2)?, attempt: row.get(3)? })
}
