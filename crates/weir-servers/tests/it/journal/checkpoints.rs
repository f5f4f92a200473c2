//! Tests of recoveries that begin at a checkpoint, and of files that were archived.

use std::{collections::BTreeMap, fs, path::Path};

use weir_engine::Driver;
use weir_servers::journal::{
    Anchor, Checkpoint, CheckpointFile, Journal, JournalInspection, Level, RecoverError, Recovered, archive,
    finished_segments, read_segment, record, recover_from,
};

use super::{Entry, Folder, WORKER, append, on, open, recover};
use crate::random::{self, Random};

fn at(folder: &Path, entry: &Entry) -> Checkpoint {
    let anchor = Anchor::of(folder, WORKER, entry.position).expect("it is there");
    assert_eq!((anchor.lsn, anchor.at), (entry.lsn, entry.position));
    Checkpoint { anchors: BTreeMap::from([(WORKER, anchor)]), ..Checkpoint::default() }
}

fn behind(folder: &Path, checkpoint: &Checkpoint) -> Result<(Vec<Entry>, Recovered), RecoverError> {
    let mut found = Vec::new();
    let recovered = recover_from(folder, WORKER, checkpoint, &mut |record, position| {
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
    Ok((found, recovered))
}

/// Records of random lengths in several segments, in batches of one to three.
fn log(folder: &Folder, random: &mut Random) -> Vec<Entry> {
    on(Driver::Poll, async {
        let journal = open(folder, Level::Os).await;
        let mut entries = Vec::new();
        for _ in 0..20 {
            for _ in 0..1 + random.below(3) {
                entries.push(append(&journal, &vec![7; random.below(600) as usize]));
            }
            journal.committed(journal.last()).await.expect("the disk works");
        }
        journal.close().await;
        entries
    })
    .expect("poll runs everywhere")
}

fn flip(path: &Path, byte: usize) {
    let mut bytes = fs::read(path).expect("it is there");
    bytes[byte] ^= 1;
    fs::write(path, bytes).expect("it can be written");
}

#[test]
fn behind_every_record_the_rest_is_read_and_the_journal_is_continued() {
    let first = random::seed();
    for seed in (0..3).map(|more| first.wrapping_add(more)) {
        let folder = Folder::in_memory(&format!("checkpoint-{seed}"));
        let mut entries = log(&folder, &mut Random::seeded(seed));
        for place in 0..entries.len() {
            let checkpoint = at(&folder, &entries[place]);
            let (found, recovered) = behind(&folder, &checkpoint).expect("it is whole");
            assert_eq!(found, entries[place + 1..], "{seed}");
            let whole = recover_again(&folder, recovered);
            assert_eq!(whole, entries, "{seed}");
        }
        // The next record follows, wherever the recovery has begun.
        let place = entries.len() / 2;
        let checkpoint = at(&folder, &entries[place]);
        let (_, recovered) = behind(&folder, &checkpoint).expect("it is whole");
        let added = on(Driver::Poll, async {
            let journal =
                Journal::open(folder.config(Level::Os), &recovered).await.expect("it can be opened");
            drop(recovered);
            journal.start();
            let added = append(&journal, b"one more");
            journal.close().await;
            added
        });
        entries.push(added.expect("poll runs everywhere"));
        assert_eq!(recover(&folder).expect("it is whole").0, entries, "{seed}");
    }
}

fn recover_again(folder: &Folder, recovered: Recovered) -> Vec<Entry> {
    let last = recovered.last_lsn;
    // It holds the lock.
    drop(recovered);
    let (entries, recovered) = recover(folder).expect("it is whole");
    assert_eq!(recovered.last_lsn, last);
    entries
}

#[test]
fn a_journal_without_the_checkpoints_record_is_another_one_and_nothing_changes() {
    let folder = Folder::in_memory("checkpoint-other");
    let entries = log(&folder, &mut Random::seeded(1));
    let last = entries.last().expect("there are some");
    let checkpoint = at(&folder, last);
    let path = folder.segment(last.position.segment);
    // As a loss of power leaves it at level os: the end of the log is gone.
    let mut bytes = fs::read(&path).expect("it is there");
    bytes[last.position.offset as usize..].fill(0);
    fs::write(&path, &bytes).expect("it can be written");
    let error = behind(&folder, &checkpoint).expect_err("its record is gone");
    assert!(matches!(error, RecoverError::OtherJournal { .. }), "{error}");
    assert_eq!(fs::read(&path).expect("it is there"), bytes);
    // Another record has taken its place.
    on(Driver::Poll, async {
        let journal = open(&folder, Level::Os).await;
        assert_eq!(append(&journal, b"another one").lsn, last.lsn);
        journal.close().await;
    });
    let error = behind(&folder, &checkpoint).expect_err("it is another one");
    assert!(matches!(error, RecoverError::OtherJournal { .. }), "{error}");
    fs::remove_file(&path).expect("it is ours");
    assert!(matches!(behind(&folder, &checkpoint), Err(RecoverError::OtherJournal { .. })));
}

#[test]
fn files_before_a_checkpoint_are_not_read_but_have_to_be_there_with_header_and_length() {
    let folder = Folder::in_memory("checkpoint-before");
    let entries = log(&folder, &mut Random::seeded(2));
    let last = entries.last().expect("there are some");
    assert!(last.position.segment > 2);
    let checkpoint = at(&folder, last);
    let first = folder.segment(1);
    let whole = fs::read(&first).expect("it is there");
    flip(&first, 100);
    assert!(behind(&folder, &checkpoint).expect("that is not read").0.is_empty());
    assert!(matches!(recover(&folder), Err(RecoverError::Damaged { .. })));
    flip(&first, 100);
    flip(&first, 30);
    assert!(matches!(behind(&folder, &checkpoint), Err(RecoverError::Header { .. })));
    fs::write(&first, &whole[..whole.len() - 1]).expect("it can be written");
    assert!(matches!(behind(&folder, &checkpoint), Err(RecoverError::Short { .. })));
    fs::remove_file(&first).expect("it is ours");
    let error = behind(&folder, &checkpoint).expect_err("a file is missing");
    assert!(matches!(&error, RecoverError::Missing { file } if *file == first), "{error}");
}

#[test]
fn archived_files_are_whole_elsewhere_and_the_rest_is_read_without_them() {
    let folder = Folder::in_memory("archive-from");
    let to = Folder::in_memory("archive-to");
    let entries = log(&folder, &mut Random::seeded(3));
    let last = entries.last().expect("there are some");
    let segment = last.position.segment;
    let checkpoint = at(&folder, last);
    let index = folder.segment(1).with_extension("index");
    fs::write(&index, b"derived").expect("it can be written");
    let before = BTreeMap::from([(WORKER, segment - 1)]);
    let (files, bytes) = archive(&folder, &to, &before, checkpoint.clone()).expect("it can be done");
    assert_eq!((files, bytes), (segment - 2, (segment - 2) * super::SEGMENT_BYTES));
    assert!(!folder.segment(1).exists() && !index.exists() && folder.segment(segment - 1).exists());
    let in_archive = recover(&to).expect("it is whole").0;
    let is_first = |entry: &&Entry| entry.position.segment < segment - 1;
    assert_eq!(in_archive, entries.iter().filter(is_first).cloned().collect::<Vec<_>>());
    // What is left.
    for which in [CheckpointFile::Latest, CheckpointFile::Base] {
        let read = Checkpoint::read(&folder, which).expect("it can be read").expect("it is there");
        assert_eq!(read.archived_before, before);
        assert!(behind(&folder, &read).expect("it is whole").0.is_empty());
    }
    assert!(matches!(recover_alone(&folder), Err(RecoverError::Missing { .. })));
    let mut rest = Vec::new();
    let end = JournalInspection::new(&folder, WORKER).read(&mut |record, _| {
        rest.push(record.lsn);
        Ok(())
    });
    let expected: Vec<u64> = entries.iter().filter(|entry| !is_first(entry)).map(|entry| entry.lsn).collect();
    assert_eq!((end.expect("it is whole").last_lsn, rest), (last.lsn, expected));
    // A further file that is missing is damage.
    fs::remove_file(folder.segment(segment - 1)).expect("it is ours");
    let error =
        behind(&folder, &Checkpoint { archived_before: before, ..checkpoint }).expect_err("it is gone");
    assert!(matches!(error, RecoverError::Missing { .. }), "{error}");
}

fn recover_alone(folder: &Path) -> Result<Vec<Entry>, RecoverError> {
    behind(folder, &Checkpoint::default()).map(|(entries, _)| entries)
}

#[test]
fn an_archive_that_has_another_file_of_that_name_or_is_damaged_changes_nothing() {
    let folder = Folder::in_memory("archive-other");
    let to = Folder::in_memory("archive-taken");
    let entries = log(&folder, &mut Random::seeded(4));
    let last = entries.last().expect("there are some");
    let checkpoint = at(&folder, last);
    fs::create_dir(&*to).expect("it can be made");
    fs::write(to.segment(1), b"something else").expect("it can be written");
    let before = BTreeMap::from([(WORKER, last.position.segment)]);
    let error = archive(&folder, &to, &before, checkpoint.clone()).expect_err("it is another file");
    assert!(error.to_string().contains("exists already and is another file"), "{error}");
    fs::remove_file(to.segment(1)).expect("it is ours");
    flip(&folder.segment(1), 100);
    let error = archive(&folder, &to, &before, checkpoint.clone()).expect_err("it is damaged");
    assert!(error.to_string().contains("is damaged at byte"), "{error}");
    assert!(folder.segment(1).exists() && !CheckpointFile::Base.path(&folder).exists());
    // Once it is right, what is in the archive already is used again.
    flip(&folder.segment(1), 100);
    fs::remove_file(to.segment(1)).expect("it is ours");
    archive(&folder, &to, &before, checkpoint).expect("it can be done");
    assert!(!folder.segment(1).exists());
}

#[test]
fn a_finished_file_is_read_without_those_before_it() {
    let folder = Folder::in_memory("one-segment");
    let entries = log(&folder, &mut Random::seeded(5));
    let last = entries.last().expect("there are some").position.segment;
    let finished = finished_segments(&folder).expect("it can be read");
    assert_eq!(finished, (1..last).map(|number| (WORKER, number)).collect::<Vec<_>>());
    for (worker, number) in finished {
        let mut found = Vec::new();
        read_segment(&folder, worker, number, &mut |record, position| {
            found.push((record.lsn, position));
            Ok(())
        })
        .expect("it is whole");
        let of_it = entries.iter().filter(|entry| entry.position.segment == number);
        assert_eq!(found, of_it.map(|entry| (entry.lsn, entry.position)).collect::<Vec<_>>());
        let last = entries.iter().rfind(|entry| entry.position.segment == number).expect("it has some");
        let end = last.position.offset as usize + record::encoded_bytes(last.payload.len());
        flip(&folder.segment(number), end - 1);
        assert!(read_segment(&folder, worker, number, &mut |_, _| Ok(())).is_err());
        flip(&folder.segment(number), end - 1);
    }
}

#[test]
fn a_recovery_removes_the_indexes_of_files_that_are_written_again() {
    let folder = Folder::in_memory("indexes");
    let entries = log(&folder, &mut Random::seeded(6));
    let last = entries.last().expect("there are some").position.segment;
    assert!(last > 2);
    // The one behind it was made from a file that a loss of power has taken.
    let index = |number| folder.segment(number).with_extension("index");
    for number in [1, last - 1, last, last + 1] {
        fs::write(index(number), b"derived").expect("it can be written");
    }
    recover(&folder).expect("it is whole");
    assert!(index(1).exists() && index(last - 1).exists());
    assert!(!index(last).exists() && !index(last + 1).exists());
}
