//! Tests of failing disks: the journal is poisoned, every waiter is informed, and nothing becomes durable any more.

use std::{
    cell::{Cell, RefCell},
    io,
    rc::Rc,
    time::Duration,
};

use weir_engine::Driver;
use weir_servers::journal::{
    Journal, JournalError, Level,
    faults::{Faults, Operation, Verdict},
};

use super::{DRIVERS, Entry, FIRST, Folder, append, on, recover, runtime};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const EMFILE: i32 = 24;

/// The operations to count.
type Kind = fn(&Operation) -> bool;

fn is_write(operation: &Operation) -> bool {
    matches!(operation, Operation::Write { .. })
}

fn is_sync(operation: &Operation) -> bool {
    matches!(operation, Operation::Sync { .. })
}

fn is_create(operation: &Operation) -> bool {
    matches!(operation, Operation::Create { .. })
}

fn is_directory(operation: &Operation) -> bool {
    matches!(operation, Operation::SyncDirectory)
}

/// A fault at the `nth` operation of a kind.
struct Fault {
    kind: Kind,
    nth: usize,
    /// Bytes of a write that are still written.
    part: Option<usize>,
    errno: i32,
}

/// The operations requested before the fault and after it.
#[derive(Default)]
struct Seen {
    matching: Cell<usize>,
    before: RefCell<Vec<Operation>>,
    struck: Cell<Option<Operation>>,
    after: RefCell<Vec<Operation>>,
}

impl Seen {
    /// Whether the segment with the fault had records. A segment that was being created beside the commits has none,
    /// and its failure counts when it is needed.
    fn struck_records(&self) -> bool {
        let struck = match self.struck.get() {
            Some(Operation::Write { .. }) => return true,
            Some(Operation::Sync { segment }) => segment,
            _ => return false,
        };
        let is_of_it =
            |before: &Operation| matches!(before, Operation::Write { at, .. } if at.segment == struck);
        self.before.borrow().iter().any(is_of_it)
    }
}

fn faults(fault: Fault) -> (Faults, Rc<Seen>) {
    let seen = Rc::new(Seen::default());
    let noted = Rc::clone(&seen);
    let judge = move |operation: &Operation| {
        if noted.struck.get().is_some() {
            noted.after.borrow_mut().push(*operation);
            return Verdict::Pass;
        }
        noted.matching.set(noted.matching.get() + usize::from((fault.kind)(operation)));
        if noted.matching.get() < fault.nth {
            noted.before.borrow_mut().push(*operation);
            return Verdict::Pass;
        }
        noted.struck.set(Some(*operation));
        let error = io::Error::from_raw_os_error(fault.errno);
        match fault.part {
            Some(bytes) => Verdict::Part(bytes, error),
            None => Verdict::Refuse(error),
        }
    };
    (Rc::new(judge), seen)
}

/// Commits until the disk fails, and checks all consequences.
async fn run_into(folder: &Folder, level: Level, fault: Fault) {
    let errno = fault.errno;
    let (faults, seen) = faults(fault);
    let (_, recovered) = recover(folder).expect("it is empty");
    let opened = Journal::open_with_faults(folder.config(level), &recovered, faults).await;
    let journal = match opened {
        Ok(journal) => journal,
        Err(error) => {
            assert!(seen.struck.get().is_some(), "{error}");
            assert!(error.to_string().contains(&format!("os error {errno}")), "{error}");
            return;
        }
    };
    journal.start();
    let heard = Rc::new(Cell::new(0));
    let hears = Rc::clone(&heard);
    journal.on_durable(Box::new(move |lsn| hears.set(lsn)));
    let mut entries = Vec::new();
    let failure = loop {
        // Two waiters for each of two records, one of which is more than one commit ahead.
        entries.extend([append(&journal, &[1; 300]), append(&journal, &[2; 500])]);
        let last = journal.last();
        let other = Rc::clone(&journal);
        let waiting = weir_engine::spawn(async move { other.committed(last - 1).await });
        let outcome = journal.committed(last).await;
        let of_other = waiting.await;
        match (outcome, of_other) {
            (Ok(()), Ok(())) => assert_eq!(heard.get(), last),
            // The end of a segment split the batch, and its second part failed.
            (Err(error), Ok(()) | Err(JournalError::Failed(_))) => break error,
            (outcome, of_other) => panic!("{outcome:?} and {of_other:?}"),
        }
    };
    let JournalError::Failed(cause) = &failure else { panic!("{failure}") };
    assert_eq!(cause.source.raw_os_error(), Some(errno));
    assert!(cause.file.starts_with(&**folder), "{failure}");
    let until_known = seen.after.borrow().clone();
    assert!(!seen.struck_records() || !until_known.iter().any(is_write), "{until_known:?}");
    refuses_everything(&journal, folder, &entries).await;
    assert!(!seen.after.borrow()[until_known.len()..].iter().any(is_write), "nothing is written any more");
    let durable = journal.durable();
    assert!(durable < journal.last() && heard.get() == durable);
    drop(journal);
    drop(recovered);
    let (found, _) = recover(folder).expect("what was durable is whole");
    assert!(found.len() as u64 >= durable && found[..] == entries[..found.len()]);
}

async fn refuses_everything(journal: &Journal, folder: &Folder, entries: &[Entry]) {
    let durable = journal.durable();
    // Without a segment that is being created.
    let contents = |folder: &Folder| -> Vec<Vec<u8>> {
        let all = folder.segments().into_iter().map(|path| std::fs::read(path).expect("it is there"));
        all.filter(|bytes| bytes[FIRST..].iter().any(|byte| *byte != 0)).collect()
    };
    let before = contents(folder);
    assert!(journal.is_failed() && journal.counters().is_failed());
    assert!(matches!(journal.append(1, 1, 1, &[b"late"]), Err(JournalError::Failed(_))));
    assert!(matches!(journal.failed().await, JournalError::Failed(_)));
    assert!(matches!(journal.committed(durable + 1).await, Err(JournalError::Failed(_))));
    journal.committed(durable).await.expect("what was durable before stays so");
    // Neither waits for something that will not come.
    journal.room().await;
    journal.close().await;
    assert_eq!((journal.durable(), journal.last()), (durable, entries.len() as u64));
    assert!(contents(folder) == before, "nothing is written any more");
    if durable > 0 {
        let chunk = journal.read(entries[0].position, 100).await.expect("what is durable can be read");
        assert_eq!(chunk.records().next().expect("one record").0.lsn, 1);
    }
}

/// Any operation, among the first ones and those of later segments, on a driver.
fn everything_fails_once(driver: Driver, nths: &[usize]) {
    let kinds: [(&str, Kind, Level, Option<usize>, i32); 8] = [
        ("write", is_write, Level::Os, None, EIO),
        ("write-disk", is_write, Level::Disk, None, ENOSPC),
        ("part", is_write, Level::Os, Some(333), ENOSPC),
        ("part-disk", is_write, Level::Disk, Some(8), EIO),
        ("sync", is_sync, Level::Disk, None, EIO),
        ("create", is_create, Level::Os, None, EIO),
        ("create-disk", is_create, Level::Disk, None, EIO),
        ("directory", is_directory, Level::Disk, None, EIO),
    ];
    for (name, kind, level, part, errno) in kinds {
        for nth in nths {
            let folder = Folder::in_memory(&format!("{name}-{nth}-{driver}"));
            on(driver, run_into(&folder, level, Fault { kind, nth: *nth, part, errno }));
        }
    }
}

#[test]
fn a_failing_disk_poisons_the_journal_on_every_driver() {
    for driver in DRIVERS {
        everything_fails_once(driver, &[1, 2, 5]);
    }
}

#[test]
fn each_of_the_first_operations_may_fail() {
    let nths: Vec<usize> = (1..30).collect();
    everything_fails_once(Driver::Poll, &nths);
}

/// Refuses this many segments after the first for lack of a descriptor.
fn without_descriptors(count: usize) -> (Faults, Rc<Cell<usize>>) {
    without(EMFILE, count)
}

/// Refuses this many segments after the first with an error.
fn without(errno: i32, count: usize) -> (Faults, Rc<Cell<usize>>) {
    let refused = Rc::new(Cell::new(0));
    let counted = Rc::clone(&refused);
    let judge = move |operation: &Operation| match operation {
        Operation::Create { segment: 2.. } if counted.get() < count => {
            counted.set(counted.get() + 1);
            Verdict::Refuse(io::Error::from_raw_os_error(errno))
        }
        _ => Verdict::Pass,
    };
    (Rc::new(judge), refused)
}

#[test]
fn room_that_is_made_on_a_full_disk_before_the_next_segment_is_needed_is_found() {
    const DQUOT: i32 = 122;
    for (level, errno, count) in
        [(Level::Os, ENOSPC, 2), (Level::Disk, DQUOT, 2), (Level::Os, ENOSPC, usize::MAX)]
    {
        let folder = Folder::in_memory(&format!("room-{level:?}-{count}"));
        on(Driver::Sim, async {
            let (faults, refused) = without(errno, count);
            let (_, recovered) = recover(&folder).expect("it is empty");
            let opened = Journal::open_with_faults(folder.config(level), &recovered, faults).await;
            let journal = opened.expect("the first segment is made");
            journal.start();
            let mut entries = Vec::new();
            let outcome = loop {
                entries.push(append(&journal, &[3; 100]));
                let outcome = journal.committed(journal.last()).await;
                if outcome.is_err() || folder.segments().len() == 3 {
                    break outcome;
                }
                // It is tried again once a second.
                weir_engine::time::sleep(Duration::from_millis(600)).await;
            };
            match outcome {
                Ok(()) => {
                    assert_eq!(refused.get(), count);
                    journal.close().await;
                }
                Err(error) => {
                    assert!(count == usize::MAX && error.to_string().contains("os error 28"), "{error}");
                    assert!((3..30).contains(&refused.get()), "{}", refused.get());
                    entries.truncate(journal.durable() as usize);
                }
            }
            drop((journal, recovered));
            let (found, _) = recover(&folder).expect("it is whole");
            assert!(found == entries, "{} of {}", found.len(), entries.len());
        });
    }
}

#[test]
fn a_segment_waits_for_a_descriptor_and_not_for_ever() {
    for (level, count) in [(Level::Os, 40), (Level::Disk, 40), (Level::Os, usize::MAX)] {
        let folder = Folder::in_memory(&format!("descriptors-{level:?}-{count}"));
        on(Driver::Sim, async {
            let (faults, refused) = without_descriptors(count);
            let (_, recovered) = recover(&folder).expect("it is empty");
            let opened = Journal::open_with_faults(folder.config(level), &recovered, faults).await;
            let journal = opened.expect("the first segment is made");
            journal.start();
            let began = weir_engine::time::now();
            let mut entries = Vec::new();
            let outcome = loop {
                entries.push(append(&journal, &[3; 500]));
                let outcome = journal.committed(journal.last()).await;
                if outcome.is_err() || folder.segments().len() == 4 {
                    break outcome;
                }
            };
            let waited = weir_engine::time::now().since(began);
            match outcome {
                Ok(()) => {
                    assert_eq!(refused.get(), count);
                    journal.close().await;
                }
                Err(error) => {
                    assert!(count == usize::MAX && error.to_string().contains("os error 24"), "{error}");
                    assert!(waited >= Duration::from_secs(5) && refused.get() < 300, "{waited:?}");
                    entries.truncate(journal.durable() as usize);
                }
            }
            drop((journal, recovered));
            let (found, _) = recover(&folder).expect("it is whole");
            assert!(found == entries, "{} of {}", found.len(), entries.len());
        });
    }
}

#[test]
fn a_sync_that_does_not_return_holds_up_what_waits_for_it_and_nothing_else() {
    let folder = Folder::in_memory("held");
    on(Driver::Sim, async {
        let is_held = Rc::new(Cell::new(false));
        let holds = Rc::clone(&is_held);
        let judge = move |operation: &Operation| match operation {
            Operation::Sync { .. } if holds.get() => Verdict::Hold,
            _ => Verdict::Pass,
        };
        let (_, recovered) = recover(&folder).expect("it is empty");
        let opened = Journal::open_with_faults(folder.config(Level::Disk), &recovered, Rc::new(judge)).await;
        let journal = opened.expect("the first segment is made");
        journal.start();
        let mut entries = vec![append(&journal, &[1; 300])];
        journal.committed(1).await.expect("the disk works");
        is_held.set(true);
        for byte in 2..=3 {
            entries.push(append(&journal, &[byte; 300]));
            weir_engine::time::sleep(Duration::from_secs(60)).await;
            assert_eq!((journal.durable(), journal.last()), (1, u64::from(byte)));
        }
        assert!(!journal.is_failed(), "it has not failed, however long it takes");
        is_held.set(false);
        journal.committed(3).await.expect("the disk works again");
        journal.close().await;
        drop((journal, recovered));
        let (found, _) = recover(&folder).expect("it is whole");
        assert!(found == entries, "{} of {}", found.len(), entries.len());
    });
}

#[test]
fn at_each_level_the_engine_writes_so_that_a_worker_waits_for_no_disk() {
    for level in [Level::Os, Level::Disk] {
        let folder = Folder::in_memory("engine-writes");
        let runtime = runtime(Driver::Sim).expect("it runs everywhere");
        let counters = runtime.counters();
        runtime.block_on(async {
            let (_, recovered) = recover(&folder).expect("it is empty");
            let journal = Journal::open(folder.config(level), &recovered).await.expect("there is room");
            journal.start();
            let before = counters.snapshot().file_calls;
            for _ in 0..3 {
                append(&journal, &[7; 100]);
                journal.committed(journal.last()).await.expect("the disk works");
            }
            let calls = counters.snapshot().file_calls - before;
            assert_eq!(calls, if level == Level::Os { 3 } else { 6 }, "{level}: writes, and syncs");
            journal.close().await;
        });
    }
}

#[test]
fn a_disk_without_room_for_a_segment_is_found_before_a_record_is_taken() {
    // Space is reserved before a byte is written, and no disk has that much.
    let folder = Folder::in_memory("full");
    on(Driver::Poll, async {
        let (_, recovered) = recover(&folder).expect("it is empty");
        let config = weir_servers::journal::JournalConfig {
            segment_bytes: i64::MAX as u64 / 512 * 512,
            ..folder.config(Level::Os)
        };
        let error = Journal::open(config, &recovered).await.expect_err("no disk has so much");
        let text = error.to_string();
        assert!(text.contains("cannot make it") && text.contains("os error"), "{text}");
    });
    assert!(folder.segments().is_empty(), "nothing is left behind");
}
