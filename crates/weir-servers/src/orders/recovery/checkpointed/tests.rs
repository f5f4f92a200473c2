//! Tests of starts from a checkpoint: the result is that of reading everything, or the checkpoint is not used.

use std::{collections::BTreeMap, fs, path::PathBuf};

use weir_engine::{Config, Driver, Runtime};

use super::*;
use crate::{
    journal::{Journal, JournalConfig, Level, archive, recover_from},
    orders::{accounts_named, records},
};

const UNTIL_THE_END: u64 = u64::MAX;

/// The records in the order in which they were shown: the account, the worker and the time of each.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen(Vec<(u32, u16, u64)>);

impl Collector for Seen {
    fn take(&mut self, record: &Record<'_>) {
        if let super::super::RecordKind::Sequenced { account, .. } = record.kind {
            self.0.push((account.0, record.worker, record.t_ns));
        }
    }

    fn save(&self, fields: &mut FieldWriter) -> Result<(), String> {
        fields.count(self.0.len());
        for (account, worker, t_ns) in &self.0 {
            fields.number(*account);
            fields.number(*worker);
            fields.number(*t_ns);
        }
        Ok(())
    }

    fn load(
        &mut self,
        fields: &mut FieldReader<'_>,
        account: &dyn Fn(u32) -> Option<AccountId>,
    ) -> Result<(), String> {
        let count = fields.count(3).ok_or("it has another form")?;
        let mut one = || Some((account(fields.number()?)?.0, fields.number()?, fields.number()?));
        self.0 = (0..count).map(|_| one()).collect::<Option<_>>().ok_or("it has another form")?;
        Ok(())
    }
}

/// A folder with journals.
struct Journals(PathBuf);

impl Drop for Journals {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

impl Journals {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("weir-checkpointed-{}-{name}", std::process::id()));
        // Left over from an earlier run.
        let _ = fs::remove_dir_all(&folder);
        Self(folder)
    }

    /// Appends messages of these accounts, with their numbers, at these times.
    fn write(&self, worker: u16, messages: &[(&str, u64, u64)]) {
        self.write_behind(&Checkpoint::default(), worker, messages);
    }

    /// The same in journals whose first files were archived.
    fn write_behind(&self, checkpoint: &Checkpoint, worker: u16, messages: &[(&str, u64, u64)]) {
        Runtime::new(&Config::for_test(Driver::Poll)).expect("every kernel has it").block_on(async {
            let recovered = recover_from(&self.0, worker, checkpoint, &mut |_, _| Ok(()));
            let recovered = recovered.expect("it is whole");
            let config = JournalConfig::new(self.0.clone(), worker, Level::Os);
            let config = JournalConfig { segment_bytes: 4096, ..config };
            let journal = Journal::open(config, &recovered).await.expect("it can be opened");
            drop(recovered);
            journal.start();
            for (account, sequence, t_ns) in messages {
                let head = records::sequenced_head(*sequence, 0, &account.parse().expect("a name"), 0);
                journal.append(records::SEQUENCED, 0, *t_ns, &[&head, &[b'S'; 100]]).expect("there is room");
                journal.committed(journal.last()).await.expect("the disk works");
            }
            journal.close().await;
        });
    }

    /// Two journals of a hundred messages, with times that alternate.
    fn written(name: &str) -> Self {
        let journals = Self::new(name);
        for worker in 0..2 {
            let account = ["C00001", "C00002"][usize::from(worker)];
            let all: Vec<_> =
                (1..=100).map(|number| (account, number, 10 * number + u64::from(worker))).collect();
            journals.write(worker, &all);
        }
        journals
    }

    fn config(&self, accounts: u32) -> OrdersConfig {
        OrdersConfig {
            journal: Some((self.0.clone(), Level::Os)),
            ..OrdersConfig::new(accounts_named('C', accounts))
        }
    }

    fn checkpoint(&self, until_ns: u64) -> bool {
        write_checkpoint(&self.config(2), Seen::default, until_ns).expect("it can be written").is_some()
    }

    /// What a start finds: its records, the accounts, how many records it has not read, and why it has read all.
    fn start(&self, config: &OrdersConfig) -> (Seen, Vec<Found>, Beginning) {
        let (recovery, seen, beginning) =
            recover_at_checkpoint(config, Seen::default).expect("they are whole");
        (seen, recovery.accounts, beginning)
    }

    /// What one finds without a checkpoint.
    fn whole(&self, config: &OrdersConfig) -> (Seen, Vec<Found>) {
        let path = CheckpointFile::Latest.path(&self.0);
        let kept = path.with_extension("kept");
        let is_there = fs::rename(&path, &kept).is_ok();
        let (seen, accounts, beginning) = self.start(config);
        assert_eq!(beginning, Beginning::default());
        if is_there {
            fs::rename(kept, path).expect("it can be renamed");
        }
        (seen, accounts)
    }
}

#[test]
fn a_start_reads_the_records_behind_a_checkpoint_and_finds_the_same() {
    let journals = Journals::written("same");
    let config = journals.config(2);
    let whole = journals.whole(&config);
    assert_eq!(whole.0.0.len(), 200);
    for (until_ns, records_before) in [(500, 98), (501, 99), (502, 100), (UNTIL_THE_END, 200)] {
        assert!(journals.checkpoint(until_ns));
        let (seen, accounts, beginning) = journals.start(&config);
        assert_eq!((seen, accounts), whole, "{until_ns}");
        assert_eq!(beginning, Beginning { records_before, unused: Vec::new() });
    }
    assert!(!journals.checkpoint(UNTIL_THE_END), "there is no further record");
    // Later records follow, in both journals.
    journals.write(1, &[("C00002", 101, 2000)]);
    journals.write(0, &[("C00001", 101, 3000)]);
    let (seen, accounts, beginning) = journals.start(&config);
    assert_eq!((seen, accounts), journals.whole(&config));
    assert_eq!(beginning, Beginning { records_before: 200, unused: Vec::new() });
}

#[test]
fn accounts_are_found_by_their_names_if_others_are_configured() {
    let journals = Journals::written("accounts");
    assert!(journals.checkpoint(700));
    let mut config = journals.config(3);
    let mut accounts = accounts_named('C', 3);
    accounts.swap(0, 2);
    config.accounts = accounts.into();
    let (seen, found, beginning) = journals.start(&config);
    assert_eq!((seen, found), journals.whole(&config));
    assert!(beginning.records_before > 0 && beginning.unused.is_empty(), "{beginning:?}");
    // One that is not configured any more has the next number.
    let config = journals.config(1);
    let (seen, found, beginning) = journals.start(&config);
    assert_eq!(found.len(), 2);
    assert_eq!((seen, found), journals.whole(&config));
    assert!(beginning.records_before > 0 && beginning.unused.is_empty(), "{beginning:?}");
}

#[test]
fn a_record_with_an_earlier_time_in_another_journal_makes_a_checkpoint_useless() {
    let journals = Journals::written("earlier");
    assert!(journals.checkpoint(800));
    journals.write(1, &[("C00002", 101, 5)]);
    let config = journals.config(2);
    let (seen, accounts, beginning) = journals.start(&config);
    assert_eq!((seen, accounts), journals.whole(&config));
    assert_eq!(beginning.records_before, 0);
    assert!(beginning.unused[0].contains("its time is before that of a checkpoint"), "{beginning:?}");
    // The next one begins again.
    assert!(journals.checkpoint(UNTIL_THE_END));
    let (seen, accounts, beginning) = journals.start(&config);
    assert_eq!((seen, accounts), journals.whole(&config));
    assert_eq!((beginning.records_before, beginning.unused.len()), (201, 0), "{beginning:?}");
}

#[test]
fn what_does_not_fit_is_not_used_and_everything_is_read() {
    let journals = Journals::written("unfit");
    let config = journals.config(2);
    let path = CheckpointFile::Latest.path(&journals.0);
    let expect_whole = |config: &OrdersConfig, reason: &str| {
        let (seen, accounts, beginning) = journals.start(config);
        assert_eq!((seen, accounts), journals.whole(config), "{reason}");
        assert!(beginning.unused[0].contains(reason), "{reason}: {beginning:?}");
        assert!(beginning.unused[0].starts_with(&path.display().to_string()), "{beginning:?}");
    };
    assert!(journals.checkpoint(900));
    expect_whole(&OrdersConfig { numbers_go_on: true, ..config.clone() }, "order numbers began otherwise");
    let bytes = fs::read(&path).expect("it is there");
    fs::write(&path, &bytes[..bytes.len() - 1]).expect("it can be written");
    expect_whole(&config, "damaged");
    // A checkpoint of other journals.
    fs::write(&path, &bytes).expect("it can be written");
    for worker in 0..2 {
        let files = journal::files_in(&journals.0, worker).expect("they can be listed");
        files.iter().for_each(|(file, _)| fs::remove_file(file).expect("it is ours"));
        journals.write(worker, &[(["C00001", "C00002"][usize::from(worker)], 1, 10)]);
    }
    expect_whole(&config, "the checkpoint");
    let files = journal::files_in(&journals.0, 1).expect("they can be listed");
    files.iter().for_each(|(file, _)| fs::remove_file(file).expect("it is ours"));
    expect_whole(&config, "the journal of worker 1 is not there");
}

#[test]
fn a_checkpoint_is_one_of_a_start_without_its_configuration_if_a_start_with_it_uses_it() {
    let journals = Journals::written("of-start");
    let found = || checkpoint_of_start(&journals.0, Seen::default);
    assert!(matches!(found(), Ok(None)));
    for numbers_go_on in [true, false] {
        let config = OrdersConfig { numbers_go_on, ..journals.config(2) };
        let _ = fs::remove_file(CheckpointFile::Latest.path(&journals.0));
        write_checkpoint(&config, Seen::default, 800).expect("it can be written");
        let written = Checkpoint::read(&journals.0, CheckpointFile::Latest).expect("it can be read");
        assert_eq!(found().expect("a start begins there"), written);
    }
    let refused = |reason: &str| match found() {
        Err(Obstacle::State(why)) => assert!(why.contains(reason), "{why}"),
        other => panic!("{other:?} instead of {reason}"),
    };
    let whole = found().expect("it is right").expect("it is there");
    // The first byte is the version.
    let other = Checkpoint { state: [&[9_u8][..], &whole.state[1..]].concat(), ..whole.clone() };
    other.write(&journals.0, CheckpointFile::Latest).expect("it can be written");
    refused("another version");
    whole.write(&journals.0, CheckpointFile::Latest).expect("it can be written");
    journals.write(1, &[("C00002", 101, 5)]);
    refused("its time is before that of a checkpoint");
    assert_eq!(journals.start(&journals.config(2)).2.records_before, 0, "a start finds the same");
}

/// Counts records, and can be in no checkpoint from the third one on.
struct Counting<'c>(&'c std::cell::Cell<u32>);

impl Collector for Counting<'_> {
    fn take(&mut self, _: &Record<'_>) {
        self.0.set(self.0.get() + 1);
    }

    fn obstacle(&self) -> Option<&'static str> {
        (self.0.get() >= 3).then_some("three are too many")
    }

    fn save(&self, _: &mut FieldWriter) -> Result<(), String> {
        Ok(())
    }

    fn load(&mut self, _: &mut FieldReader<'_>, _: &dyn Fn(u32) -> Option<AccountId>) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn what_can_be_in_no_checkpoint_is_not_read_to_its_end() {
    let journals = Journals::written("obstacle");
    let (config, count) = (journals.config(2), std::cell::Cell::new(0));
    let write = || write_checkpoint(&config, || Counting(&count), UNTIL_THE_END);
    assert!(matches!(write(), Err(Obstacle::State(reason)) if reason == "three are too many"));
    assert_eq!(count.replace(0), 3);
    // It is made under this name.
    fs::create_dir(journals.0.join("journals.making")).expect("it can be made");
    assert!(matches!(write(), Err(Obstacle::Checkpoint(_))));
    assert_eq!(count.get(), 0, "no record is read");
}

#[test]
fn archived_files_are_needed_again_by_a_start_that_cannot_use_their_checkpoint() {
    let journals = Journals::written("base");
    let config = journals.config(2);
    let whole = journals.whole(&config);
    assert!(journals.checkpoint(UNTIL_THE_END));
    let checkpoint = Checkpoint::read(&journals.0, CheckpointFile::Latest).expect("it can be read");
    let checkpoint = checkpoint.expect("it is there");
    let before: BTreeMap<u16, u64> =
        checkpoint.anchors.iter().map(|(worker, anchor)| (*worker, anchor.at.segment)).collect();
    assert!(before.values().all(|segment| *segment > 2), "{before:?}");
    let to = Journals::new("base-archive");
    archive(&journals.0, &to.0, &before, checkpoint).expect("it can be done");
    let expect_same = || {
        let (seen, accounts, beginning) = journals.start(&config);
        assert_eq!((&seen, &accounts), (&whole.0, &whole.1));
        beginning
    };
    assert_eq!(expect_same(), Beginning { records_before: 200, unused: Vec::new() });
    // The base stands in for the last one.
    fs::write(CheckpointFile::Latest.path(&journals.0), b"damaged").expect("it can be written");
    assert_eq!((expect_same().records_before, expect_same().unused.len()), (200, 1));
    let other = OrdersConfig { numbers_go_on: true, ..config.clone() };
    let error =
        recover_at_checkpoint(&other, Seen::default).expect_err("nothing has their records").to_string();
    assert!(error.contains("were archived") && error.contains("copy the archived files back"), "{error}");
    let obstacle =
        write_checkpoint(&other, Seen::default, UNTIL_THE_END).expect_err("nothing has their records");
    assert!(matches!(obstacle, Obstacle::State(_)), "{obstacle}");
    for entry in fs::read_dir(&to.0).expect("it is there") {
        let from = entry.expect("an entry").path();
        fs::copy(&from, journals.0.join(from.file_name().expect("it has one"))).expect("it can be copied");
    }
    let (seen, _, beginning) = journals.start(&other);
    assert_eq!((seen.0.len(), beginning.unused.len()), (200, 2), "everything is read: {beginning:?}");
}

#[test]
fn a_base_stands_in_for_a_checkpoint_that_is_older_than_the_archive() {
    let journals = Journals::written("older");
    let config = journals.config(2);
    let whole = journals.whole(&config);
    let read = |which| Checkpoint::read(&journals.0, which).expect("it can be read").expect("it is there");
    assert!(journals.checkpoint(990));
    let older = read(CheckpointFile::Latest);
    assert!(journals.checkpoint(UNTIL_THE_END));
    let before: BTreeMap<u16, u64> =
        older.anchors.iter().map(|(worker, anchor)| (*worker, anchor.at.segment)).collect();
    let to = Journals::new("older-archive");
    archive(&journals.0, &to.0, &before, read(CheckpointFile::Latest)).expect("it can be done");
    // Its last records are still there, and it knows of no archive.
    older.write(&journals.0, CheckpointFile::Latest).expect("it can be written");
    let (seen, accounts, beginning) = journals.start(&config);
    assert_eq!((&seen, &accounts), (&whole.0, &whole.1));
    assert_eq!(beginning.records_before, 200, "{beginning:?}");
    assert!(beginning.unused[0].contains("journals.checkpoint: it is older than"), "{beginning:?}");
    let refused = checkpoint_of_start(&journals.0, Seen::default).expect_err("a start does not use it");
    assert!(matches!(refused, Obstacle::State(_)), "{refused}");
    // The next one continues from the base, and knows the archive.
    journals.write_behind(&read(CheckpointFile::Base), 0, &[("C00001", 101, 3000)]);
    assert!(journals.checkpoint(UNTIL_THE_END));
    assert_eq!(read(CheckpointFile::Latest).archived_before, before);
    assert_eq!(journals.start(&config).2, Beginning { records_before: 201, unused: Vec::new() });
    // A file that nothing stands for is missed by its name.
    older.write(&journals.0, CheckpointFile::Latest).expect("it can be written");
    fs::remove_file(CheckpointFile::Base.path(&journals.0)).expect("it is ours");
    let error = recover_at_checkpoint(&config, Seen::default).expect_err("its files are gone").to_string();
    assert!(error.contains("0000000001.journal is missing, and later segments exist"), "{error}");
}

#[test]
fn a_journal_that_a_base_names_and_that_is_gone_is_missed() {
    let journals = Journals::written("base-alone");
    let config = journals.config(2);
    assert!(journals.checkpoint(UNTIL_THE_END));
    let checkpoint = Checkpoint::read(&journals.0, CheckpointFile::Latest).expect("it can be read");
    let checkpoint = checkpoint.expect("it is there");
    // The other journal keeps its first file.
    let before = BTreeMap::from([(0, checkpoint.anchors[&0].at.segment)]);
    let to = Journals::new("base-alone-archive");
    archive(&journals.0, &to.0, &before, checkpoint).expect("it can be done");
    for worker in 0..2 {
        let files = journal::files_in(&journals.0, worker).expect("they can be listed");
        files.iter().for_each(|(file, _)| fs::remove_file(file).expect("it is ours"));
        let error = recover_at_checkpoint(&config, Seen::default).expect_err("its records are lost");
        assert!(error.to_string().contains("the journal of worker 0 is not there"), "{error}");
        let obstacle = write_checkpoint(&config, Seen::default, UNTIL_THE_END).expect_err("as at a start");
        assert!(matches!(obstacle, Obstacle::State(_)), "{obstacle}");
    }
    // None is missed where nothing names one.
    for which in [CheckpointFile::Latest, CheckpointFile::Base] {
        fs::remove_file(which.path(&journals.0)).expect("it is ours");
    }
    let (seen, _, beginning) = journals.start(&config);
    assert_eq!((seen, beginning), (Seen::default(), Beginning::default()));
}
