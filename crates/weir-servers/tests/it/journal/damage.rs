//! Tests of damaged files: a torn tail is cleared, damage stops recovery, nothing is silent.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::FileExt,
    path::Path,
};

use weir_engine::Driver;
use weir_servers::journal::{Journal, Level, RecoverError, record};

use super::{Entry, FIRST, Folder, SEGMENT_BYTES, append, on, recover, write};
use crate::random::{self, Random};

/// A batch for each record, of different lengths.
fn small_log(folder: &Folder) -> Vec<Entry> {
    let payloads: [&[u8]; 5] = [b"first", b"", b"the third one", b"12345678", b"last"];
    write(folder, Level::Os, &payloads.map(|payload| vec![payload.to_vec()]))
}

fn end_of(entry: &Entry) -> usize {
    entry.position.offset as usize + record::encoded_bytes(entry.payload.len())
}

/// The result of recovering a segment with these bytes.
fn with_bytes(folder: &Folder, bytes: &[u8]) -> Result<Vec<Entry>, RecoverError> {
    let path = folder.segment(1);
    fs::write(&path, bytes).expect("it can be written");
    let outcome = recover(folder);
    // A segment without records is removed.
    let after = fs::read(&path).unwrap_or_default();
    let (found, recovered) =
        outcome.inspect_err(|_| assert_eq!(after, bytes, "who stops changes nothing"))?;
    drop(recovered);
    if after.is_empty() {
        assert!(found.is_empty() && bytes[FIRST..].iter().all(|byte| *byte == 0));
        return Ok(found);
    }
    let end = found.last().map_or(FIRST, end_of);
    assert_eq!(after[..end], bytes[..end]);
    assert!(after[end..].iter().all(|byte| *byte == 0), "behind the log is nothing");
    let (again, recovered) = recover(folder).expect("it was cleared");
    assert_eq!((&again, recovered.torn), (&found, None));
    Ok(found)
}

#[test]
fn every_flipped_bit_is_found_and_only_the_last_record_is_torn() {
    let folder = Folder::in_memory("flip");
    let entries = small_log(&folder);
    let whole = fs::read(folder.segment(1)).expect("it is there");
    let last = &entries[4];
    for offset in 0..end_of(last) + 40 {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[offset] ^= 1 << bit;
            let place = format!("byte {offset}, bit {bit}");
            let damaged_at = entries.iter().find(|entry| offset < end_of(entry));
            match (with_bytes(&folder, &bytes), damaged_at) {
                (Err(RecoverError::Header { .. }), _) => assert!(offset < FIRST, "{place}"),
                (Err(RecoverError::Damaged { file, offset: said, .. }), Some(entry)) => {
                    assert!(entry != last, "{place}");
                    assert_eq!((file, said), (folder.segment(1), entry.position.offset), "{place}");
                }
                (Ok(found), Some(entry)) => {
                    assert!(entry == last && offset >= FIRST, "{place}");
                    assert_eq!(found, entries[..4], "{place}");
                }
                (Ok(found), None) => assert_eq!(found, entries, "{place}"),
                (Err(error), _) => panic!("{place}: {error}"),
            }
        }
    }
}

#[test]
fn a_write_that_was_torn_at_any_byte_leaves_the_records_before_it() {
    let folder = Folder::in_memory("torn");
    let entries = small_log(&folder);
    let whole = fs::read(folder.segment(1)).expect("it is there");
    for from in FIRST..=end_of(&entries[4]) {
        let mut bytes = whole.clone();
        bytes[from..].fill(0);
        let found = with_bytes(&folder, &bytes).unwrap_or_else(|error| panic!("byte {from}: {error}"));
        // A record whose last bytes are padding is complete without them.
        let least = entries.iter().filter(|entry| end_of(entry) <= from).count();
        assert!((least..=least + 1).contains(&found.len()), "byte {from}");
        assert_eq!(found, entries[..found.len()], "byte {from}");
    }
}

#[test]
fn a_file_that_was_cut_anywhere_is_never_mistaken_for_a_shorter_log() {
    let folder = Folder::in_memory("cut");
    small_log(&folder);
    let whole = fs::read(folder.segment(1)).expect("it is there");
    assert_eq!(whole.len() as u64, SEGMENT_BYTES);
    for length in (0..600).chain(SEGMENT_BYTES as usize - 9..SEGMENT_BYTES as usize) {
        let error = with_bytes(&folder, &whole[..length]).expect_err("bytes are gone");
        match error {
            RecoverError::Header { .. } => assert!(length < FIRST),
            RecoverError::Short { bytes, bytes_expected, .. } => {
                assert_eq!((bytes, bytes_expected), (length as u64, SEGMENT_BYTES));
            }
            other => panic!("{length}: {other}"),
        }
    }
}

#[test]
fn errors_name_file_and_byte_in_one_sentence() {
    let folder = Folder::in_memory("words");
    let entries = small_log(&folder);
    let path = folder.segment(1);
    let whole = fs::read(&path).expect("it is there");
    let mut bytes = whole.clone();
    bytes[entries[1].position.offset as usize + 12] = 9;
    let damaged = with_bytes(&folder, &bytes).expect_err("the second of five").to_string();
    let name = path.display();
    assert_eq!(
        damaged,
        format!(
            "{name} is damaged at byte 104: the checksum of the record there does not match, and later records exist; \
             restore the file from a copy, for nothing was changed"
        )
    );
    let short = with_bytes(&folder, &whole[..100]).expect_err("it is cut").to_string();
    assert_eq!(
        short,
        format!("{name} ends at byte 100 of 4096: what was behind is gone; restore the file from a copy")
    );
    let mut bytes = whole.clone();
    bytes[end_of(&entries[4]) - 8] ^= 1;
    fs::write(&path, &bytes).expect("it can be written");
    let torn = recover(&folder).expect("the last one").1.torn.expect("it is torn").to_string();
    assert_eq!(
        torn,
        format!(
            "{name}: the last write was not finished; 40 bytes from byte 224 on were cleared, with 0 whole records \
             that were never acknowledged"
        )
    );
    fs::write(&path, &whole).expect("it can be written");
    let refused = weir_servers::journal::recover(&folder, super::WORKER, &mut |record, _| match record.lsn {
        3 => Err("nobody knows its account".to_owned()),
        _ => Ok(()),
    });
    assert_eq!(
        refused.expect_err("the third is refused").to_string(),
        format!("{name}: the record at byte 136 cannot be used: nobody knows its account")
    );
}

/// Eight segments with records, and the position of each record.
fn long_log(folder: &Folder) -> Vec<Entry> {
    let batches: Vec<Vec<Vec<u8>>> = (0..30).map(|index| vec![vec![index as u8; 900 + index]]).collect();
    let entries = write(folder, Level::Os, &batches);
    assert_eq!(entries[29].position.segment, 8);
    entries
}

#[test]
fn the_last_record_of_a_segment_that_is_followed_is_never_torn() {
    let folder = Folder::in_memory("sealed");
    let entries = long_log(&folder);
    let last = entries.iter().rfind(|entry| entry.position.segment == 4).expect("it has records");
    let path = folder.segment(4);
    let whole = fs::read(&path).expect("it is there");
    for (offset, byte) in [(0, 7), (20, 0x55), (100, 1)] {
        let mut bytes = whole.clone();
        bytes[last.position.offset as usize + offset] ^= byte;
        fs::write(&path, &bytes).expect("it can be written");
        match recover(&folder).expect_err("it was sealed") {
            RecoverError::Damaged { file, offset, .. } => {
                assert_eq!((file, offset), (path.clone(), last.position.offset));
            }
            other => panic!("{other}"),
        }
        assert_eq!(fs::read(&path).expect("it is there"), bytes);
    }
    // Lost without a trace, except for the later numbers.
    let mut bytes = whole;
    bytes[last.position.offset as usize..].fill(0);
    fs::write(&path, &bytes).expect("it can be written");
    match recover(&folder).expect_err("a number is missing") {
        RecoverError::Damaged { file, offset, damage } => {
            assert_eq!((file, offset), (folder.segment(5), FIRST as u64));
            let expected = last.lsn;
            assert_eq!(damage, record::Damage::Sequence { found: expected + 1, expected });
        }
        other => panic!("{other}"),
    }
}

#[test]
fn files_that_are_missing_or_exchanged_are_found() {
    let folder = Folder::in_memory("files");
    long_log(&folder);
    for missing in [1, 4] {
        let aside = folder.join("aside");
        fs::rename(folder.segment(missing), &aside).expect("it can be renamed");
        match recover(&folder).expect_err("a file is missing") {
            RecoverError::Missing { file } => assert_eq!(file, folder.segment(missing)),
            other => panic!("{other}"),
        }
        fs::rename(&aside, folder.segment(missing)).expect("it can be renamed");
    }
    let (second, third) = (folder.segment(2), folder.segment(3));
    let contents = fs::read(&second).expect("it is there");
    fs::copy(&third, &second).expect("it can be copied");
    let error = recover(&folder).expect_err("the third is no second");
    assert!(matches!(&error, RecoverError::Header { file } if *file == second), "{error}");
    fs::write(&second, contents).expect("it can be written");
    recover(&folder).expect("everything is in its place again");
}

/// One batch whose middle sector never reached the disk, and the records of the batch.
fn torn_batch(folder: &Folder) -> Vec<Entry> {
    let entries =
        write(folder, Level::Os, &[vec![b"acknowledged".to_vec()], (1..5).map(|n| vec![n; 700]).collect()]);
    let hole = (entries[2].position.offset as usize + 40).next_multiple_of(512);
    assert!(hole + 512 <= entries[3].position.offset as usize, "the sector lies in the third record");
    overwrite(&folder.segment(1), hole, &[0; 512]);
    entries
}

fn overwrite(path: &Path, at: usize, bytes: &[u8]) {
    let file = OpenOptions::new().write(true).open(path).expect("it is there");
    file.write_all_at(bytes, at as u64).expect("it can be written");
}

#[test]
fn whole_records_behind_a_torn_one_never_come_back() {
    let folder = Folder::in_memory("stale");
    let entries = torn_batch(&folder);
    let torn = fs::read(folder.segment(1)).expect("it is there");
    let (found, recovered) = recover(&folder).expect("the batch was never acknowledged");
    assert_eq!(found, entries[..2]);
    let told = recovered.torn.clone().expect("it is torn");
    assert_eq!((told.offset, told.records), (entries[2].position.offset, 2));
    let new = on(Driver::Poll, async {
        let config = folder.config(Level::Disk);
        let journal = Journal::open(config, &recovered).await.expect("it can be opened");
        journal.start();
        // Exactly as long as the torn bytes, with the same number.
        let new = append(&journal, &[0xaa; 700]);
        journal.close().await;
        new
    })
    .expect("poll runs everywhere");
    assert_eq!((new.lsn, new.position), (entries[2].lsn, entries[2].position));
    drop(recovered);
    let expected = [&entries[..2], std::slice::from_ref(&new)].concat();
    assert_eq!(recover(&folder).expect("it is whole").0, expected);

    // If the rest had not been cleared, the old records would follow the new one.
    let (from, to) = (new.position.offset as usize, end_of(&new));
    let written = fs::read(folder.segment(1)).expect("it is there");
    let mut kept = torn;
    kept[from..to].copy_from_slice(&written[from..to]);
    fs::write(folder.segment(1), kept).expect("it can be written");
    let resurrected = recover(&folder).expect("every record is whole").0;
    assert_eq!(resurrected[3..], entries[3..]);
}

#[test]
fn a_missing_sector_before_another_batch_is_damage() {
    let folder = Folder::in_memory("later");
    torn_batch(&folder);
    let torn = fs::read(folder.segment(1)).expect("it is there");
    fs::remove_dir_all(&*folder).expect("it can be removed");
    // The same batches, and one more.
    let batches =
        [vec![b"acknowledged".to_vec()], (1..5).map(|n| vec![n; 700]).collect(), vec![b"later".to_vec()]];
    let entries = write(&folder, Level::Os, &batches);
    let hole = torn_hole(&torn);
    overwrite(&folder.segment(1), hole, &[0; 512]);
    match recover(&folder).expect_err("what was acknowledged is gone") {
        RecoverError::Damaged { offset, .. } => assert_eq!(offset, entries[2].position.offset),
        other => panic!("{other}"),
    }
}

/// The position of the first zeroed sector.
fn torn_hole(bytes: &[u8]) -> usize {
    let sectors = bytes.chunks(512).map(|sector| sector.iter().all(|byte| *byte == 0));
    sectors.enumerate().find(|(_, is_zero)| *is_zero).expect("one was cleared").0 * 512
}

#[test]
fn a_log_that_went_on_after_a_torn_batch_is_read_on() {
    let folder = Folder::in_memory("on");
    let mut expected = small_log(&folder);
    // The last record is torn, and the previous one ended its batch or did not: the log continues in both cases.
    for round in 0..4 {
        let entries = write(&folder, Level::Os, &[(0..4).map(|n| vec![n + round; 100]).collect()]);
        let last = &entries[3];
        overwrite(&folder.segment(1), last.position.offset as usize + 8, &[0; 124]);
        expected.extend_from_slice(&entries[..3]);
        let (found, recovered) = recover(&folder).expect("the last one is torn");
        assert_eq!(found, expected);
        assert!(recovered.torn.is_some());
    }
}

#[test]
fn a_segment_without_records_is_no_loss() {
    let folder = Folder::in_memory("blank");
    // Killed after the first segment was created, with or without a part of another.
    on(Driver::Poll, async { drop(super::open(&folder, Level::Disk).await) });
    fs::write(folder.segment(2).with_extension("making"), b"weir jou").expect("it can be written");
    assert!(recover(&folder).expect("it is empty").0.is_empty());
    let entries = long_log(&folder);
    // Killed after the next one was created.
    assert_eq!(recover(&folder).expect("it is whole").0, entries);
    let count = folder.segments().len() as u64;
    let blank = blank_segment(&folder, count + 1);
    fs::write(folder.segment(count + 1), &blank).expect("it can be written");
    let (found, recovered) = recover(&folder).expect("it is whole");
    assert_eq!((&found, &recovered.torn), (&entries, &None));
    drop(recovered);
    assert_eq!(folder.segments().len() as u64, count, "nobody needs it");
    // Damage of the tail is still found if a later segment has contents.
    let last = &entries[29];
    overwrite(&folder.segment(8), last.position.offset as usize + 50, b"damage");
    let mut begun = blank;
    begun[FIRST + 200] = 1;
    fs::write(folder.segment(count + 1), &begun).expect("it can be written");
    match recover(&folder).expect_err("the segment was full") {
        RecoverError::Damaged { file, offset, .. } => {
            assert_eq!((file, offset), (folder.segment(8), last.position.offset));
        }
        other => panic!("{other}"),
    }
}

/// The bytes of a segment that was created and never written.
fn blank_segment(folder: &Folder, number: u64) -> Vec<u8> {
    let other = Folder::in_memory("blank-other");
    on(Driver::Poll, async { drop(super::open(&other, Level::Os).await) });
    let mut bytes = fs::read(other.segment(1)).expect("it was made");
    bytes[24..32].copy_from_slice(&number.to_le_bytes());
    let checksum = crc32c::crc32c(&bytes[24..FIRST]);
    bytes[20..24].copy_from_slice(&checksum.to_le_bytes());
    assert!(!folder.segment(number).exists());
    bytes
}

/// Recovery of arbitrary damage neither panics nor invents records: it shows a prefix of the written ones.
#[test]
fn whatever_the_files_hold_recovery_shows_a_beginning_of_what_was_written_or_stops() {
    let seed = random::seed();
    let mut random = Random::seeded(seed);
    let folder = Folder::in_memory("fuzz");
    let batches: Vec<Vec<Vec<u8>>> = (0..20)
        .map(|_| {
            let records = random::between(&mut random, 1, 4);
            (0..records)
                .map(|_| {
                    let length = random::between(&mut random, 0, 700);
                    random::bytes(&mut random, length)
                })
                .collect()
        })
        .collect();
    // A batch is one commit only within a segment.
    let entries = on(Driver::Poll, async {
        let journal = super::open(&folder, Level::Os).await;
        let mut entries = Vec::new();
        for batch in &batches {
            entries.extend(batch.iter().map(|payload| append(&journal, payload)));
            journal.committed(journal.last()).await.expect("the disk works");
        }
        journal.close().await;
        entries
    })
    .expect("poll runs everywhere");
    let whole: Vec<Vec<u8>> =
        folder.segments().iter().map(|path| fs::read(path).expect("it is there")).collect();
    let rounds = if std::env::var_os("WEIR_SLOW_TESTS").is_some() { 20_000 } else { 500 };
    let (mut stopped, mut went_on) = (0, 0);
    for _ in 0..rounds {
        for (bytes, number) in whole.iter().zip(1..) {
            fs::write(folder.segment(number), bytes).expect("it can be written");
        }
        for _ in 0..random::between(&mut random, 1, 3) {
            damage(&folder, &whole, &mut random);
        }
        match recover(&folder) {
            Ok((found, _)) => {
                assert_eq!(found, entries[..found.len()], "seed {seed}");
                went_on += 1;
            }
            Err(_) => stopped += 1,
        }
    }
    assert!(stopped > 0 && went_on > 0, "{stopped} stopped, {went_on} went on");
}

fn damage(folder: &Folder, whole: &[Vec<u8>], random: &mut Random) {
    // More often near the end, where the outcome changes.
    let number = if random.below(2) == 0 { whole.len() } else { random::between(random, 1, whole.len()) };
    let path = folder.segment(number as u64);
    let Ok(mut bytes) = fs::read(&path) else { return };
    let Some(last) = bytes.len().checked_sub(1) else { return };
    let at = random::between(random, 0, last);
    let length = random::between(random, 1, 600).min(bytes.len() - at);
    match random.below(6) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at..].fill(0),
        2 => bytes[at / 512 * 512..].iter_mut().take(512).for_each(|byte| *byte = 0),
        3 => {
            let other = random::bytes(random, length);
            bytes[at..at + length].copy_from_slice(&other);
        }
        4 => {
            let from = random::between(random, 0, bytes.len() - length) / 8 * 8;
            bytes.copy_within(from..from + length, at / 8 * 8);
        }
        _ => bytes.truncate(at),
    }
    fs::write(&path, bytes).expect("it can be written");
}
