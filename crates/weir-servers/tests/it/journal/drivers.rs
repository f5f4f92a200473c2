//! Tests of a journal on every driver.

use std::{
    cell::{Cell, RefCell},
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    rc::Rc,
    time::{Duration, Instant},
};

use weir_engine::{Driver, time::yield_now};
use weir_servers::journal::{
    Journal, JournalConfig, JournalError, JournalReader, Level, Position, RecoverError, Recovered,
    WAITING_FACTOR_MAX,
    faults::{Faults, Operation, Verdict},
    workers_in,
};

use super::{DRIVERS, Entry, Folder, WORKER, append, on, open, recover, runtime};
use crate::random::{self, Random};

/// All durable records, read in chunks of about this many bytes.
async fn replay(journal: &Journal, bytes_max: usize) -> Vec<Entry> {
    let mut found = Vec::new();
    let mut from = Position::default();
    loop {
        let chunk = journal.read(from, bytes_max).await.expect("it is whole");
        if chunk.is_empty() {
            return found;
        }
        found.extend(chunk.records().map(|(record, position)| Entry {
            lsn: record.lsn,
            position,
            kind: record.kind,
            session: record.session,
            t_ns: record.t_ns,
            payload: record.payload.to_vec(),
        }));
        from = chunk.next();
    }
}

fn name(what: &str, driver: Driver, level: Level) -> String {
    format!("{what}-{driver}-{level}")
}

/// Runs a test on every driver and both levels that write, with files in memory: their syncs cost nothing.
fn everywhere(what: &str, test: impl AsyncFn(&Folder, Level)) {
    everywhere_in(Folder::in_memory, what, test);
}

fn everywhere_in(place: fn(&str) -> Folder, what: &str, test: impl AsyncFn(&Folder, Level)) {
    for driver in DRIVERS {
        for level in [Level::Os, Level::Disk] {
            let folder = place(&name(what, driver, level));
            on(driver, test(&folder, level));
        }
    }
}

#[test]
fn what_is_committed_is_found_again_over_many_segments_and_openings() {
    let seed = random::seed();
    everywhere_in(Folder::new, "again", async |folder, level| {
        let mut random = Random::seeded(seed);
        let mut expected = Vec::new();
        for opening in 0..3 {
            let journal = open(folder, level).await;
            assert_eq!(journal.last(), expected.len() as u64);
            for _ in 0..10 {
                for _ in 0..random::between(&mut random, 1, 5) {
                    let length = random::between(&mut random, 0, 900);
                    expected.push(append(&journal, &random::bytes(&mut random, length)));
                }
                if random.below(2) == 0 {
                    journal.committed(journal.last()).await.expect("the disk works");
                    assert_eq!(journal.durable(), expected.len() as u64);
                } else {
                    yield_now().await;
                }
            }
            journal.close().await;
            assert!(!journal.is_failed(), "opening {opening}");
            assert_eq!(journal.durable(), expected.len() as u64);
            for bytes_max in [1, 700, 1 << 20] {
                assert_eq!(replay(&journal, bytes_max).await, expected);
            }
            let stats = journal.counters();
            assert!(stats.commits() <= stats.records() && stats.bytes() > 32 * stats.records());
            drop(journal);
            assert_eq!(recover(folder).expect("it is whole").0, expected);
        }
        assert!(folder.segments().len() > 3, "several segments are filled");
    });
}

#[test]
fn only_the_user_of_a_journal_may_look_into_it() {
    everywhere("private", async |folder, level| {
        let journal = open(folder, level).await;
        append(&journal, b"an order");
        journal.close().await;
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!(mode(folder), 0o700);
        let files: Vec<_> =
            fs::read_dir(&**folder).expect("it is ours").flatten().map(|entry| entry.path()).collect();
        assert!(files.len() > 1, "a lock and a segment: {files:?}");
        files.iter().for_each(|file| assert_eq!(mode(file), 0o600, "{file:?}"));
    });
}

#[test]
fn what_one_turn_appends_is_one_commit() {
    everywhere("turn", async |folder, level| {
        let journal = open(folder, level).await;
        let heard = Rc::new(RefCell::new(Vec::new()));
        let (first, second) = (Rc::clone(&heard), Rc::clone(&heard));
        journal.on_durable(Box::new(move |lsn| first.borrow_mut().push(lsn)));
        journal.on_durable(Box::new(move |lsn| second.borrow_mut().push(lsn)));
        for _ in 0..50 {
            append(&journal, b"");
        }
        journal.committed(20).await.expect("the disk works");
        assert_eq!((journal.durable(), journal.counters().commits()), (50, 1));
        assert_eq!(*heard.borrow(), [50, 50]);
        let mut stats = weir_record::orders::JournalStats::default();
        journal.counters().add_to(&mut stats);
        assert_eq!((stats.records, stats.records_per_commit_max, stats.bytes), (50, 50, 1600));
        journal.close().await;
    });
}

#[test]
fn what_is_appended_while_the_disk_works_is_the_next_commit() {
    for driver in DRIVERS {
        let folder = Folder::new(&name("group", driver, Level::Disk));
        on(driver, async {
            let (_, recovered) = recover(&folder).expect("it is empty");
            let config = JournalConfig { segment_bytes: 1 << 20, ..folder.config(Level::Disk) };
            let journal = Journal::open(config, &recovered).await.expect("it can be opened");
            journal.start();
            append(&journal, b"first");
            while journal.durable() == 0 {
                if journal.has_room() {
                    append(&journal, b"");
                }
                yield_now().await;
            }
            journal.committed(journal.last()).await.expect("the disk works");
            assert!(journal.counters().commits() <= 2, "the first, and all others together");
            journal.close().await;
        });
    }
}

#[test]
fn there_is_room_for_the_next_commit_while_the_disk_works() {
    for driver in DRIVERS {
        let folder = Folder::new(&name("fill", driver, Level::Disk));
        on(driver, async {
            let (_, recovered) = recover(&folder).expect("it is empty");
            let config = folder.config(Level::Disk);
            let config = JournalConfig { segment_bytes: 1 << 20, batch_bytes_max: 2048, ..config };
            let journal = Journal::open(config, &recovered).await.expect("it can be opened");
            journal.start();
            while journal.has_room() {
                append(&journal, &[7; 480]);
            }
            journal.room().await;
            assert_eq!(journal.durable(), 0, "{driver}: the first commit is under way");
            append(&journal, &[7; 480]);
            journal.close().await;
            assert_eq!(journal.counters().commits(), 2);
        });
    }
}

#[test]
fn nothing_that_is_not_durable_is_read() {
    everywhere("durable", async |folder, level| {
        let journal = open(folder, level).await;
        let first = append(&journal, b"durable");
        journal.committed(1).await.expect("the disk works");
        let second = append(&journal, b"in memory");
        let chunk = journal.read(second.position, 4096).await.expect("it is whole");
        assert!(chunk.is_empty(), "the end is taken before anybody else has a turn");
        assert_eq!(replay(&journal, 4096).await[..1], [first]);
        let chunk = journal.read(Position { segment: 9, offset: 0 }, 100).await.expect("nothing is there");
        assert!(chunk.is_empty());
        journal.close().await;
        assert_eq!(replay(&journal, 4096).await.len(), 2);
    });
}

#[test]
fn waiting_records_have_a_maximum_and_room_comes_back() {
    everywhere("room", async |folder, level| {
        let (_, recovered) = recover(folder).expect("it is empty");
        let config = JournalConfig { batch_bytes_max: 128, ..folder.config(level) };
        let journal = Journal::open(config, &recovered).await.expect("it can be opened");
        journal.start();
        journal.room().await;
        let payload = [7; 480];
        let mut taken = 0;
        while journal.has_room() {
            append(&journal, &payload);
            taken += 1;
        }
        assert_eq!(taken, 1, "the one that goes beyond twice the batch");
        let mut with_reserve = 0;
        let error = loop {
            with_reserve = if journal.has_reserve() { taken } else { with_reserve };
            match journal.append(1, 1, 1, &[&payload]) {
                Ok(_) => taken += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(with_reserve, 64 * 2 * 128 / 512, "64 times what there is room for");
        assert!(matches!(error, JournalError::Full), "{error}");
        assert_eq!(taken, 128 * WAITING_FACTOR_MAX / 512);
        journal.room().await;
        append(&journal, &payload);
        journal.close().await;
        assert_eq!(journal.durable(), taken as u64 + 1);
        let error = journal.append(1, 1, 1, &[]).expect_err("it is closed");
        assert!(matches!(error, JournalError::Closed), "{error}");
        let error = journal.committed(taken as u64 + 2).await.expect_err("there will be none");
        assert!(matches!(error, JournalError::Closed), "{error}");
    });
}

#[test]
fn a_record_longer_than_a_segment_is_refused_and_the_longest_one_is_kept() {
    everywhere("long", async |folder, level| {
        let journal = open(folder, level).await;
        let error = journal.append(1, 1, 1, &[&[0; 4001]]).expect_err("no segment holds it");
        assert!(matches!(error, JournalError::TooLong { bytes: 4040, bytes_max: 4032 }), "{error}");
        let entries = [append(&journal, &[1; 4000]), append(&journal, b"behind")];
        journal.close().await;
        assert_eq!(entries.each_ref().map(|entry| entry.position.segment), [1, 2]);
        assert_eq!(replay(&journal, 10).await, entries);
    });
}

#[test]
fn level_none_writes_nothing_and_everything_is_durable_at_once() {
    for driver in DRIVERS {
        let folder = Folder::new(&name("none", driver, Level::None));
        on(driver, async {
            let config = folder.config(Level::None);
            let journal = Journal::open(config, &Recovered::nothing()).await.expect("nothing is opened");
            journal.start();
            assert_eq!(journal.append(1, 2, 3, &[b"gone"]).expect("there is room").0, 1);
            assert_eq!((journal.durable(), journal.last(), journal.has_room()), (1, 1, true));
            journal.committed(1).await.expect("at once");
            let error = journal.read(Position::default(), 100).await.expect_err("nothing was kept");
            assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
            journal.close().await;
            assert!(!folder.exists());
        });
    }
}

#[test]
fn a_journal_has_one_writer() {
    let folder = Folder::new("one");
    on(Driver::Poll, async {
        let (_, recovered) = recover(&folder).expect("it is empty");
        let error = recover(&folder).expect_err("it is in use");
        assert!(matches!(error, RecoverError::InUse { worker: WORKER, .. }), "{error}");
        assert!(error.to_string().ends_with("the journal of worker 3 is in use already"), "{error}");
        let journal = Journal::open(folder.config(Level::Os), &recovered).await.expect("it can be opened");
        let error = Journal::open(folder.config(Level::Os), &recovered).await.expect_err("it is open");
        assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
        drop(recovered);
        recover(&folder).expect_err("the open journal has it");
        drop(journal);
        recover(&folder).expect("nobody has it");
    });
}

#[test]
fn another_process_is_kept_out() {
    let folder = Folder::new("process");
    let (_, recovered) = recover(&folder).expect("it is empty");
    // flock(1) holds the lock as long as its command runs.
    let lock = folder.join(format!("worker-{WORKER:05}.lock"));
    let tried = |folder: &std::path::Path| {
        std::process::Command::new("flock").arg("--nonblock").arg(folder).arg("true").status()
    };
    let Ok(status) = tried(&lock) else { return println!("skipped: there is no flock(1) here") };
    assert!(!status.success());
    drop(recovered);
    assert!(tried(&lock).expect("it ran before").success());
}

#[test]
fn a_configuration_that_is_not_that_of_the_recovery_is_refused() {
    let folder = Folder::new("config");
    on(Driver::Poll, async {
        let (_, recovered) = recover(&folder).expect("it is empty");
        let right = folder.config(Level::Os);
        let wrong = [
            (JournalConfig { worker: 4, ..right.clone() }, "the journal of worker 3"),
            (JournalConfig { segment_bytes: 4000, ..right.clone() }, "at least 4096 bytes"),
            (JournalConfig { directory: "elsewhere".into(), ..right.clone() }, "the journal of worker 3"),
        ];
        for (config, reason) in wrong {
            let error = Journal::open(config, &recovered).await.expect_err("it is not the same");
            assert!(error.to_string().contains(reason), "{error}");
        }
        let error = Journal::open(right.clone(), &Recovered::nothing()).await.expect_err("no recovery");
        assert_eq!(error.to_string(), "a journal at level os needs its recovery");
        Journal::open(right, &recovered).await.expect("what was refused has used nothing up");
    });
}

#[test]
fn workers_share_a_folder_and_are_listed() {
    let folder = Folder::new("workers");
    assert!(workers_in(&folder).expect("no folder is no journal").is_empty());
    on(Driver::Poll, async {
        for worker in [7, 0] {
            let recovered = weir_servers::journal::recover(&folder, worker, &mut |_, _| Ok(()));
            let config = JournalConfig { worker, ..folder.config(Level::Os) };
            let journal = Journal::open(config, &recovered.expect("it is empty")).await.expect("it opens");
            journal.append(1, 1, 1, &[b"x"]).expect("there is room");
            journal.close().await;
        }
    });
    assert_eq!(workers_in(&folder).expect("it is there"), [0, 7]);
}

#[test]
fn what_was_recovered_is_read_without_a_lock_while_its_owner_goes_on() {
    everywhere("reader", async |folder, level| {
        let journal = open(folder, level).await;
        let entries: Vec<Entry> = (0..20).map(|_| append(&journal, &[7; 600])).collect();
        journal.committed(20).await.expect("the disk works");
        let reader = JournalReader::new(folder.to_path_buf(), WORKER);
        let mut from = Position::default();
        let mut found = Vec::new();
        while found.len() < entries.len() {
            append(&journal, b"more");
            let chunk = reader.read(from, 1000).await.expect("it is whole");
            found.extend(chunk.records().map(|(record, _)| record.lsn));
            from = chunk.next();
        }
        assert_eq!(found[..20], (1..=20).collect::<Vec<_>>());
        journal.close().await;
    });
}

#[test]
fn a_runtime_that_ends_without_a_word_loses_only_what_was_not_committed() {
    for driver in DRIVERS {
        for level in [Level::Os, Level::Disk] {
            let folder = Folder::new(&name("end", driver, level));
            let Some(runtime) = runtime(driver) else { continue };
            let (durable, all) = runtime.block_on(async {
                let journal = open(&folder, level).await;
                let mut all: Vec<Entry> = (0..10).map(|_| append(&journal, b"kept")).collect();
                journal.committed(10).await.expect("the disk works");
                all.extend((0..10).map(|_| append(&journal, b"perhaps")));
                (journal.durable() as usize, all)
            });
            drop(runtime);
            let (found, _) = recover(&folder).expect("it is whole");
            assert!(found.len() >= durable && found[..] == all[..found.len()]);
        }
    }
}

#[test]
fn commits_go_on_while_the_next_segment_is_made() {
    for level in [Level::Os, Level::Disk] {
        let folder = Folder::in_memory(&name("beside", Driver::Sim, level));
        on(Driver::Sim, async {
            let (_, recovered) = recover(&folder).expect("it is empty");
            let is_begun = Rc::new(Cell::new(false));
            let begins = Rc::clone(&is_begun);
            let faults: Faults = Rc::new(move |operation: &Operation| {
                begins.set(begins.get() || matches!(operation, Operation::Create { segment: 2 }));
                Verdict::Pass
            });
            let opened = Journal::open_with_faults(folder.config(level), &recovered, faults).await;
            let journal = opened.expect("it can be opened");
            journal.start();
            let commit = async || {
                append(&journal, &[7; 200]);
                journal.committed(journal.last()).await.expect("the disk works");
            };
            while !is_begun.get() {
                commit().await;
            }
            let mut meanwhile = 0;
            while !folder.segment(2).exists() {
                commit().await;
                meanwhile += 1;
            }
            assert!(meanwhile > 0, "{level}: the worker has made it and done nothing else");
            journal.close().await;
        });
    }
}

#[test]
fn whoever_opens_a_journal_next_finds_it_free_whatever_was_being_made() {
    for driver in DRIVERS {
        for (level, is_runtime_dropped) in
            [(Level::Os, true), (Level::Os, false), (Level::Disk, true), (Level::Disk, false)]
        {
            let folder = Folder::in_memory(&name(&format!("free-{is_runtime_dropped}"), driver, level));
            let mut all = Vec::new();
            for turns in 0..12 {
                let Some(runtime) = runtime(driver) else { break };
                runtime.block_on(async {
                    let journal = open(&folder, level).await;
                    // More than half of a segment, so that another one is created.
                    for _ in 0..3 {
                        all.push(append(&journal, &[5; 900]));
                        journal.committed(journal.last()).await.expect("the disk works");
                    }
                    for _ in 0..turns {
                        yield_now().await;
                    }
                    drop(journal);
                    // A rename in flight may hold the lock, but no operation that waits.
                    while !is_runtime_dropped && recover(&folder).is_err() {
                        yield_now().await;
                    }
                });
                drop(runtime);
                let (found, _) = recover(&folder).expect("nobody has it");
                assert!(found == all, "{driver}, {level}: {} of {}", found.len(), all.len());
                let files = std::fs::read_dir(&*folder).expect("it is there");
                let mut names = files.map(|file| file.expect("it is there").file_name());
                assert!(!names.any(|name| name.to_string_lossy().ends_with(".making")), "{driver}, {level}");
            }
        }
    }
}

#[test]
fn the_task_ends_with_the_journal() {
    for driver in DRIVERS {
        let folder = Folder::new(&name("task", driver, Level::Os));
        let Some(runtime) = runtime(driver) else { continue };
        runtime.block_on(async { drop(open(&folder, Level::Os).await) });
        let begun = Instant::now();
        runtime.drain(Duration::from_secs(60));
        assert!(begun.elapsed() < Duration::from_secs(30), "{driver}: a task is left");
        recover(&folder).expect("nobody has it any more");
    }
}

#[test]
fn on_a_driver_without_tasks_the_journal_has_failed_and_says_why() {
    let folder = Folder::new("blocking");
    on(Driver::Blocking, async {
        let journal = open(&folder, Level::Os).await;
        let error = journal.committed(1).await.expect_err("nobody commits");
        assert!(error.to_string().contains("cannot spawn"), "{error}");
        assert!(journal.append(1, 1, 1, &[]).is_err());
    });
}
