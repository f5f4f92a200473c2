//! Results store: one SQLite file, `study.db`, in each run folder; every finished block is on disk before the next
//! starts.
//!
//! A block is one transaction in write-ahead mode with `synchronous = FULL`: when [`Store::append_block`] returns, the
//! block survives the loss of power, and a kill at any moment leaves the blocks before it readable. The store keeps
//! what it is given and judges nothing: excluded trials stay, no trial is ever deleted. It is not a queue between
//! processes: one session writes, any number read. Two sessions on one run folder are refused by the laboratory.
//!
//! Times are nanoseconds of the study's own clock, which stands still between sessions.

mod error;
mod row;
mod schema;
mod store;

pub use error::StoreError;
pub use row::{BlockKey, NewStudy, ResultBrief, StoredBlock, StudyBrief, StudyHeader};
pub use schema::{APPLICATION_ID, STORE_VERSION};
pub use store::{BYTES_MAX, FILE_NAME, Store};
