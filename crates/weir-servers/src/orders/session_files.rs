//! Which files of the journals have messages of the session with clients that the next start continues: any client may
//! ask for all of these again.

use std::{collections::BTreeMap, path::Path};

use super::records::{self, SessionRecord};
use crate::journal::{JournalInspection, RecoverError};

/// What the journals have of sessions with clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFiles {
    /// How many sessions have ended.
    pub ended: u16,
    /// By worker: the first file with a message of the session that goes on, or begins with the next start. Journals
    /// without one are left out.
    pub first: BTreeMap<u16, u64>,
}

/// Reads all records of these journals.
///
/// # Errors
/// Those of reading them: a damaged journal is an error.
pub fn session_files(directory: &Path, workers: &[u16]) -> Result<SessionFiles, RecoverError> {
    let mut ended = 0;
    let mut first: BTreeMap<(u16, u16), u64> = BTreeMap::new();
    for worker in workers {
        JournalInspection::new(directory, *worker).read(&mut |record, position| {
            match SessionRecord::of(record.kind) {
                Some(SessionRecord::Sequenced) => {
                    if let Some(found) = records::sequenced(record.payload) {
                        ended = found.generation.max(ended);
                        first.entry((found.generation, *worker)).or_insert(position.segment);
                    }
                }
                Some(SessionRecord::Ended) => {
                    let generation = records::ended(record.payload).map_or(0, |it| it.saturating_add(1));
                    ended = generation.max(ended);
                }
                _ => {}
            }
            Ok(())
        })?;
    }
    let of_last = first.into_iter().filter(|((generation, _), _)| *generation == ended);
    Ok(SessionFiles { ended, first: of_last.map(|((_, worker), segment)| (worker, segment)).collect() })
}
