//! Tests of readers that hold no lock: they find what recovery finds, change nothing, and follow a writer.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use weir_engine::Driver;
use weir_servers::journal::{
    Behind, HeldUnwritten, JournalInspection, Level, RecordView, RecoverError, Torn, copy_until, files_in,
};

use super::{Entry, FIRST, Folder, SEGMENT_BYTES, WORKER, append, on, open, recover, recover_alone, write};

/// What an inspection finds: its records and the unfinished write, or the sentence of its error.
type Found = Result<(Vec<Entry>, Option<Torn>), String>;

/// Names, contents and times of the files in a folder. A segment that is being made belongs to its maker, also when
/// the journal is closed.
fn contents(folder: &Path) -> BTreeMap<String, (Vec<u8>, i64, i64)> {
    let entries = fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("an entry").path());
    let file = |path: std::path::PathBuf| {
        let found = fs::metadata(&path).expect("it is there");
        let bytes = fs::read(&path).expect("it can be read");
        (path.display().to_string(), (bytes, found.mtime(), found.mtime_nsec()))
    };
    entries.filter(|path| path.extension().is_none_or(|kind| kind != "making")).map(file).collect()
}

/// Records, and the torn end if there is one.
type Inspected = Result<(Vec<Entry>, Option<Torn>), RecoverError>;

/// Reads a journal from its begin.
fn inspect(folder: &Path) -> (JournalInspection, Inspected) {
    let mut inspection = JournalInspection::new(folder, WORKER);
    let mut entries = Vec::new();
    let end = read(&mut inspection, &mut entries);
    (inspection, end.map(|torn| (entries, torn)))
}

fn read(inspection: &mut JournalInspection, entries: &mut Vec<Entry>) -> Result<Option<Torn>, RecoverError> {
    let end = inspection.read(&mut |record, position| {
        entries.push(Entry {
            lsn: record.lsn,
            position,
            kind: record.kind,
            session: record.session,
            t_ns: record.t_ns,
            payload: record.payload.to_vec(),
        });
        Ok(())
    })?;
    assert_eq!(end.records, entries.len() as u64);
    Ok(end.unfinished)
}

/// What is found without changing anything; `None` without a folder, or if a writer may change it.
pub fn unchanged(folder: &Path) -> Option<Found> {
    if !folder.is_dir() {
        return None;
    }
    let _held = HeldUnwritten::take(folder, WORKER).expect("it can be tried")?;
    let before = contents(folder);
    let found = inspect(folder).1.map_err(|error| error.to_string());
    assert!(contents(folder) == before, "a reader has changed something");
    Some(found)
}

/// A log of three segments, with one batch for each record.
fn log(folder: &Folder) -> Vec<Entry> {
    let batches: Vec<Vec<Vec<u8>>> = (0..9).map(|index| vec![vec![index as u8; 1000]]).collect();
    let entries = write(folder, Level::Os, &batches);
    assert_eq!(entries[8].position.segment, 3);
    entries
}

fn change(path: &Path, act: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("it is there");
    act(&mut bytes);
    fs::write(path, bytes).expect("it can be written");
}

/// Copies the readable part, and recovers the copy.
fn repaired(folder: &Folder) -> (Vec<Entry>, Vec<Behind>) {
    let (mut inspection, found) = inspect(folder);
    assert!(found.is_err(), "it is damaged");
    let copy = Folder::in_memory("repaired");
    fs::create_dir(&*copy).expect("it is new");
    let before = contents(folder);
    let end = inspection.position();
    copy_until(folder, WORKER, end, &copy).expect("it can be copied");
    let behind = inspection.behind().expect("it can be read");
    assert!(contents(folder) == before, "the original has changed");
    (recover(&copy).expect("it is whole").0, behind)
}

#[test]
fn a_copy_ends_before_the_damage_and_what_is_behind_it_is_counted_file_by_file() {
    let folder = Folder::in_memory("repair-byte");
    let entries = log(&folder);
    let damaged = &entries[4];
    assert_eq!(damaged.position.segment, 2);
    change(&folder.segment(2), |bytes| bytes[damaged.position.offset as usize + 40] ^= 1);
    let (left, behind) = repaired(&folder);
    assert_eq!(left, entries[..4]);
    let in_second = entries[5..].iter().filter(|entry| entry.position.segment == 2).count() as u64;
    assert_eq!(behind.len(), 2);
    assert_eq!((&behind[0].file, behind[0].offset), (&folder.segment(2), damaged.position.offset));
    assert_eq!(behind[0].records, in_second);
    let (third, first) = (&behind[1], FIRST as u64);
    assert_eq!((&third.file, third.offset), (&folder.segment(3), first));
    assert_eq!(third.records, 4 - in_second);
}

#[test]
fn a_copy_is_made_of_files_that_are_cut_missing_or_exchanged() {
    let folder = Folder::in_memory("repair-files");
    let entries = log(&folder);
    let in_segment = |number| entries.iter().filter(move |entry| entry.position.segment == number).count();
    let (path, count) = (folder.segment(2), in_segment(1));
    let whole = fs::read(&path).expect("it is there");

    // Cut within the second record of the second file: the first one can still be used.
    let cut = entries[count + 1].position.offset as usize + 30;
    change(&path, |bytes| bytes.truncate(cut));
    let (left, behind) = repaired(&folder);
    assert_eq!(left, entries[..count + 1]);
    assert_eq!((behind[0].bytes, behind[0].records), (30, 0));

    fs::write(&path, &whole).expect("it can be written");
    change(&path, |bytes| bytes[0] ^= 1);
    let (left, behind) = repaired(&folder);
    assert_eq!(left, entries[..count]);
    assert_eq!(behind[0].records as usize, in_segment(2), "they cannot follow the ones before");

    fs::remove_file(&path).expect("it is there");
    let (left, behind) = repaired(&folder);
    assert_eq!(left, entries[..count]);
    assert_eq!((&behind[0].file, behind[0].records as usize), (&folder.segment(3), in_segment(3)));

    fs::write(&path, &whole).expect("it can be written");
    fs::remove_file(folder.segment(1)).expect("it is there");
    assert!(repaired(&folder).0.is_empty(), "nothing is before the first file");
}

#[test]
fn a_reader_goes_on_where_it_ended_also_in_segments_that_are_made_meanwhile() {
    let folder = Folder::in_memory("follow");
    let (mut expected, mut found) = (Vec::new(), Vec::new());
    let mut inspection = JournalInspection::new(&folder, WORKER);
    let (mut following, mut followed) = (JournalInspection::new(&folder, WORKER), Vec::new());
    for round in 0..20_u8 {
        expected.extend(write(&folder, Level::Os, &[vec![vec![round; 700]], vec![vec![round; 10]; 3]]));
        assert!(inspection.has_more().expect("it can be read"));
        assert_eq!(read(&mut inspection, &mut found).expect("it is whole"), None);
        assert_eq!(found, expected);
        assert!(!inspection.has_more().expect("it can be read"));
        let mut show = |record: RecordView<'_>, position| {
            followed.push((record.lsn, position));
            Ok(())
        };
        following.follow(&mut show).expect("it is whole");
    }
    assert!(followed.into_iter().eq(expected.iter().map(|entry| (entry.lsn, entry.position))));
    assert!(expected.last().expect("there are some").position.segment > 3);
    let lengths: Vec<u64> =
        files_in(&folder, WORKER).expect("they are there").into_iter().map(|it| it.1).collect();
    assert!(lengths.iter().all(|bytes| *bytes == SEGMENT_BYTES), "{lengths:?}");
}

#[test]
fn a_reader_beside_a_writer_sees_every_record_once_and_never_damage() {
    let folder = Folder::in_memory("beside");
    drop(recover_alone(&folder).expect("it is new"));
    let is_done = Arc::new(AtomicBool::new(false));
    let reader = thread::spawn({
        let (path, is_done) = (folder.to_path_buf(), Arc::clone(&is_done));
        move || {
            let (mut inspection, mut found) = (JournalInspection::new(&path, WORKER), Vec::new());
            loop {
                // Looked at first: what was written before is seen.
                let is_last = is_done.load(Ordering::Acquire);
                read(&mut inspection, &mut found).unwrap_or_else(|error| panic!("{error}"));
                if is_last {
                    return found;
                }
            }
        }
    });
    let written = on(Driver::Poll, async {
        let journal = open(&folder, Level::Os).await;
        let mut entries = Vec::new();
        for batch in 0..400_usize {
            let lengths = (0..batch % 7 + 1).map(|index| (batch * 37 + index * 101) % 900);
            entries.extend(lengths.map(|length| append(&journal, &vec![batch as u8; length])));
            journal.committed(journal.last()).await.expect("the disk works");
        }
        journal.close().await;
        entries
    });
    is_done.store(true, Ordering::Release);
    let found = reader.join().expect("it found no damage");
    assert_eq!(found, written.expect("poll runs everywhere"));
}

#[test]
fn a_journal_is_held_only_while_nobody_writes_it_and_nothing_is_made_for_that() {
    let folder = Folder::in_memory("held");
    log(&folder);
    let held = HeldUnwritten::take(&folder, WORKER).expect("it can be locked").expect("nobody writes it");
    assert!(matches!(recover_alone(&folder), Err(RecoverError::InUse { .. })), "nobody begins to write it");
    drop(held);
    let recovered = recover_alone(&folder).expect("it is free again");
    assert!(HeldUnwritten::take(&folder, WORKER).expect("it can be tried").is_none(), "a writer has it");
    drop(recovered);
    fs::remove_file(folder.join(format!("worker-{WORKER:05}.lock"))).expect("it is there");
    let before = contents(&folder);
    assert!(HeldUnwritten::take(&folder, WORKER).expect("it can be tried").is_some());
    assert!(contents(&folder) == before, "nothing is made");
}
