//! Reads one file of a journal without those before it.

use std::path::Path;

use super::{
    Position, RecordView, RecoverError, record::Damage, segment, segment_file::SegmentFile, walk::Chain,
};

/// Worker and number of each file that is never written again, in order: one behind it has records.
///
/// # Errors
/// Those of listing and reading files.
pub fn finished_segments(directory: &Path) -> Result<Vec<(u16, u64)>, RecoverError> {
    let failed = super::recover::failed(directory, "list it");
    let all = segment::list(directory).map_err(failed)?;
    let mut finished = Vec::new();
    for pair in all.windows(2) {
        let ((worker, number), (next_worker, next)) = (pair[0], pair[1]);
        if worker != next_worker {
            continue;
        }
        // Only the last ones may have no record.
        let is_last = all.binary_search(&(worker, next + 1)).is_err();
        if !is_last || has_records(directory, worker, next)? {
            finished.push((worker, number));
        }
    }
    Ok(finished)
}

fn has_records(directory: &Path, worker: u16, number: u64) -> Result<bool, RecoverError> {
    let file = SegmentFile::open(directory, worker, number)?;
    let mut has_some = false;
    let stop = || "one is enough".to_owned();
    let read = file.walk(
        segment::HEADER_BYTES as u64,
        &mut Chain::anywhere(worker),
        &mut Vec::new(),
        &mut |_, _| {
            has_some = true;
            Err(stop())
        },
    );
    match read {
        Err(RecoverError::Refused { .. }) => Ok(has_some),
        other => other.map(|_| has_some),
    }
}

/// Shows each record of one finished file to `visit`, in order.
///
/// # Errors
/// See [`RecoverError`]; `visit` can end it with its own reason.
pub fn read_segment(
    directory: &Path,
    worker: u16,
    number: u64,
    visit: &mut dyn FnMut(RecordView<'_>, Position) -> Result<(), String>,
) -> Result<(), RecoverError> {
    let file = SegmentFile::open(directory, worker, number)?;
    file.check_length()?;
    let from = segment::HEADER_BYTES as u64;
    let contents = file.read(from, &mut Chain::anywhere(worker), &mut Vec::new(), visit)?;
    if contents.remainder.content_end.is_some() {
        let damage = contents.damage.unwrap_or(Damage::Hole);
        return Err(RecoverError::Damaged { file: file.path, offset: contents.offset, damage });
    }
    Ok(())
}
