//! The tables, and how a file is recognised. `docs/formats/study-db.md` describes the same tables in words.

use std::path::Path;

use rusqlite::Connection;

use crate::error::StoreError;

/// SQLite's application id of a study store: "Weir" in ASCII.
pub const APPLICATION_ID: i32 = 0x5765_6972;

/// Version of the tables, kept in `user_version`; raised when a table changes.
pub const STORE_VERSION: u32 = 4;

const TABLES: &str = "
CREATE TABLE study (
    id            INTEGER PRIMARY KEY CHECK (id = 1),
    spec_asked    TEXT NOT NULL,
    spec          TEXT NOT NULL,
    seed          TEXT NOT NULL,
    fingerprint   TEXT NOT NULL,
    missing_arms  TEXT NOT NULL,
    reproduce     TEXT NOT NULL,
    created_at    TEXT NOT NULL DEFAULT (datetime('now'))
) STRICT;
CREATE TABLE session (
    id            INTEGER PRIMARY KEY,
    started_at    TEXT NOT NULL DEFAULT (datetime('now')),
    elapsed_ns    INTEGER NOT NULL
) STRICT;
CREATE TABLE block (
    id            INTEGER PRIMARY KEY,
    session       INTEGER NOT NULL REFERENCES session (id),
    cell_id       TEXT NOT NULL,
    block         INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    UNIQUE (cell_id, block, attempt)
) STRICT;
CREATE TABLE trial (
    id                      INTEGER PRIMARY KEY,
    block_id                INTEGER NOT NULL REFERENCES block (id),
    position                INTEGER NOT NULL,
    arm                     TEXT NOT NULL,
    is_repeat               INTEGER NOT NULL,
    started_ns              INTEGER NOT NULL,
    elapsed_ns              INTEGER NOT NULL,
    round_trip_before_ns    REAL NOT NULL,
    round_trip_after_ns     REAL NOT NULL,
    messages                INTEGER,
    errors                  INTEGER,
    exclusions              TEXT NOT NULL,
    record                  TEXT NOT NULL,
    UNIQUE (block_id, position)
) STRICT;
CREATE TABLE result (
    id            INTEGER PRIMARY KEY CHECK (id = 1),
    result        TEXT NOT NULL,
    written_at    TEXT NOT NULL DEFAULT (datetime('now'))
) STRICT;
";

/// Since version 2. Earlier versions kept the figures as columns of `trial`.
const FIGURES: &str = "
CREATE TABLE figure (
    trial_id      INTEGER NOT NULL REFERENCES trial (id),
    metric        TEXT NOT NULL,
    value         REAL NOT NULL,
    PRIMARY KEY (trial_id, metric)
) STRICT, WITHOUT ROWID;
";

/// Makes the tables and marks the file as a study store, in the caller's transaction.
pub(crate) fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(TABLES)?;
    connection.execute_batch(FIGURES)?;
    connection.execute_batch(READINGS)?;
    connection.execute_batch(EFFECTS)?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", STORE_VERSION)
}

/// Since version 3.
const READINGS: &str = "
CREATE TABLE reading (
    trial_id      INTEGER NOT NULL REFERENCES trial (id),
    slice         INTEGER NOT NULL,
    source        TEXT NOT NULL,
    key           TEXT NOT NULL,
    value         REAL NOT NULL,
    PRIMARY KEY (trial_id, slice, source, key)
) STRICT, WITHOUT ROWID;
";

/// Since version 4: the table of effects of the judged study, for other programs. Weir itself reads `result`.
const EFFECTS: &str = "
CREATE TABLE effect (
    place                 INTEGER PRIMARY KEY,
    question              TEXT NOT NULL,
    asked                 INTEGER,
    part                  INTEGER,
    cell_id               TEXT NOT NULL,
    arm                   TEXT NOT NULL,
    baseline              TEXT NOT NULL,
    metric                TEXT NOT NULL,
    scale                 TEXT NOT NULL,
    estimate              REAL,
    low                   REAL,
    high                  REAL,
    level                 REAL NOT NULL,
    method                TEXT NOT NULL,
    units                 INTEGER NOT NULL,
    degrees_of_freedom    INTEGER,
    p_value               REAL,
    p_value_holm          REAL,
    detectable            REAL,
    role                  TEXT NOT NULL,
    verdict               TEXT NOT NULL,
    outcome               TEXT,
    difference            TEXT,
    findings              TEXT NOT NULL
) STRICT;
";

/// Before version 3 the column had another name.
const EXCLUSIONS: &str = "ALTER TABLE trial RENAME COLUMN taints TO exclusions";

/// Upgrades an older store to the tables of this version, in the caller's transaction; `true` if it had no table of
/// figures. Columns that `trial` no longer has stay, and are empty in new rows. The table of effects stays empty
/// until the study is judged again.
pub(crate) fn upgrade(connection: &Connection) -> rusqlite::Result<bool> {
    let found: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found >= STORE_VERSION {
        return Ok(false);
    }
    if found < 2 {
        connection.execute_batch(FIGURES)?;
    }
    if found < 3 {
        connection.execute_batch(EXCLUSIONS)?;
        connection.execute_batch(READINGS)?;
    }
    connection.execute_batch(EFFECTS)?;
    connection.pragma_update(None, "user_version", STORE_VERSION)?;
    Ok(found < 2)
}

/// Refuses files that are not study stores, and stores of a later version.
pub(crate) fn check(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let pragma = |name: &str| -> Result<i64, StoreError> {
        connection
            .pragma_query_value(None, name, |row| row.get(0))
            .map_err(|source| StoreError::from_sqlite(path, source))
    };
    let application_id = pragma("application_id")?;
    if application_id != i64::from(APPLICATION_ID) {
        let reason = format!("an SQLite file with application id {application_id}");
        return Err(StoreError::NotAStore { path: path.to_path_buf(), reason });
    }
    let found = u32::try_from(pragma("user_version")?).unwrap_or(u32::MAX);
    if found > STORE_VERSION {
        return Err(StoreError::Newer { path: path.to_path_buf(), found, known: STORE_VERSION });
    }
    Ok(())
}
