//! A journal compared with a list: random appends, commits, closings and crashes, with a check of the contents after
//! each.
//!
//! A crash at level `os` is the end of a runtime. At level `disk` it is that and a loss of power: any sectors of a
//! write that has not been synced are unchanged.

use std::{
    cell::{Cell, RefCell},
    os::unix::fs::FileExt,
    rc::Rc,
};

use weir_engine::{Driver, time::yield_now};
use weir_servers::journal::{
    Journal, Level, Position,
    faults::{Faults, Operation, Verdict},
};

use super::{DRIVERS, Entry, Folder, append, recover, runtime};
use crate::random::{self, Random};

/// The write in flight: its position and length.
type UnderWay = Rc<Cell<Option<(Position, usize)>>>;

/// The result of one life of a journal.
struct Life {
    /// Records that were acknowledged.
    durable: usize,
    was_closed: bool,
}

struct Model {
    driver: Driver,
    level: Level,
    folder: Folder,
    random: RefCell<Random>,
    /// The known contents of the journal.
    entries: RefCell<Vec<Entry>>,
}

impl Model {
    fn draw(&self, low: usize, high: usize) -> usize {
        random::between(&mut self.random.borrow_mut(), low, high)
    }

    /// Opens the journal, performs some operations, and ends it in one of several ways.
    fn live(&self, under_way: &UnderWay) -> Option<Life> {
        let runtime = runtime(self.driver)?;
        Some(runtime.block_on(async {
            let (_, recovered) = recover(&self.folder).expect("it is whole");
            let watched = Rc::clone(under_way);
            let watch: Faults = Rc::new(move |operation: &Operation| {
                if let Operation::Write { at, bytes } = operation {
                    watched.set(Some((*at, *bytes)));
                }
                Verdict::Pass
            });
            let config = self.folder.config(self.level);
            let opened = Journal::open_with_faults(config, &recovered, watch).await;
            let journal = opened.expect("it can be opened");
            journal.start();
            let done = Rc::clone(under_way);
            journal.on_durable(Box::new(move |_| done.set(None)));
            for _ in 0..self.draw(0, 12) {
                self.step(&journal).await;
            }
            let was_closed = self.draw(0, 3) == 0;
            if was_closed {
                journal.close().await;
            }
            Life { durable: journal.durable() as usize, was_closed }
        }))
    }

    async fn step(&self, journal: &Journal) {
        match self.draw(0, 9) {
            0..4 => {
                for _ in 0..self.draw(1, 6) {
                    let length = self.draw(0, 900);
                    let payload = random::bytes(&mut self.random.borrow_mut(), length);
                    self.entries.borrow_mut().push(append(journal, &payload));
                }
            }
            4..6 => journal.committed(journal.last()).await.expect("the disk works"),
            6..9 => {
                for _ in 0..self.draw(1, 4) {
                    yield_now().await;
                }
            }
            _ => self.read_from_anywhere(journal).await,
        }
    }

    async fn read_from_anywhere(&self, journal: &Journal) {
        let durable = journal.durable() as usize;
        if durable == 0 {
            return;
        }
        let first = self.draw(0, durable - 1);
        let from = self.entries.borrow()[first].position;
        let chunk = journal.read(from, self.draw(0, 3000)).await.expect("it is whole");
        let entries = self.entries.borrow();
        let mut expected = entries[first..].iter();
        for (record, position) in chunk.records() {
            let entry = expected.next().expect("it was appended");
            assert_eq!(
                (record.lsn, record.payload, position),
                (entry.lsn, &entry.payload[..], entry.position)
            );
        }
        assert!(!chunk.is_empty());
    }

    /// A loss of power: sectors of the write in flight are lost.
    fn lose_power(&self, (at, bytes): (Position, usize)) {
        let path = self.folder.segment(at.segment);
        let file = std::fs::OpenOptions::new().write(true).open(path).expect("it is there");
        let end = at.offset + bytes as u64;
        let mut sector = at.offset;
        while sector < end {
            let next = (sector / 512 + 1) * 512;
            if self.draw(0, 1) == 0 {
                let lost = next.min(end) - sector;
                file.write_all_at(&vec![0; lost as usize], sector).expect("it can be written");
            }
            sector = next;
        }
    }

    /// Recovery finds a prefix of the appended records that contains all acknowledged ones.
    fn check(&self, life: &Life) {
        let (found, recovered) = recover(&self.folder).expect("a crash is no damage");
        drop(recovered);
        let mut entries = self.entries.borrow_mut();
        assert!(found.len() >= life.durable, "{} were acknowledged, {} are left", life.durable, found.len());
        assert!(found.len() <= entries.len());
        assert_eq!(found[..], entries[..found.len()]);
        if life.was_closed {
            assert_eq!(found.len(), entries.len());
        }
        entries.truncate(found.len());
        let (again, recovered) = recover(&self.folder).expect("it was cleared");
        assert_eq!((again, recovered.torn), (found, None));
    }
}

#[test]
fn nothing_acknowledged_is_ever_lost_and_nothing_lost_ever_comes_back() {
    let seed = random::seed();
    let rounds = if std::env::var_os("WEIR_SLOW_TESTS").is_some() { 400 } else { 60 };
    for driver in DRIVERS {
        for level in [Level::Os, Level::Disk] {
            let folder = Folder::in_memory(&format!("model-{driver}-{level}"));
            let random = RefCell::new(Random::seeded(seed));
            let model = Model { driver, level, folder, random, entries: RefCell::default() };
            let mut crashes_under_way = 0;
            for round in 0..rounds {
                let under_way = UnderWay::default();
                let Some(life) = model.live(&under_way) else { break };
                if let (Level::Disk, Some(write)) = (level, under_way.get()) {
                    crashes_under_way += 1;
                    model.lose_power(write);
                }
                model.check(&life);
                println!("{driver} {level} round {round}: {} records", model.entries.borrow().len());
            }
            println!("{driver} {level}: {crashes_under_way} crashes during a write");
        }
    }
}
