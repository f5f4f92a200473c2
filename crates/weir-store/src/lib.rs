//! Results store: one SQLite file, `study.db`, in each run folder; every finished block is on disk before the next
//! starts.
//!
//! A block is one transaction in write-ahead mode with `synchronous = FULL`: when [`Store::append_block`] returns,
//! the block survives a power loss, and a kill at any moment leaves the earlier blocks readable. The store keeps
//! every record and judges none: excluded trials stay, and no trial is ever deleted. It is not a queue between
//! processes: one session writes, any number of processes read. The laboratory refuses a second session on one run
//! folder.
//!
//! Times are in nanoseconds of the study's own clock, which stops between sessions.

mod error;
mod row;
mod schema;
mod store;

pub use error::StoreError;
pub use row::{BlockKey, NewStudy, ResultBrief, StoredBlock, StudyBrief, StudyHeader};
pub use schema::{APPLICATION_ID, STORE_VERSION};
pub use store::{BYTES_MAX, FILE_NAME, Store};
