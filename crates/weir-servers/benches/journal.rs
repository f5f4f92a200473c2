//! The cost of a journal: `cargo bench -p weir-servers --bench journal [-- FOLDER]`.
//!
//! The folder should be on a real disk: the default is the working directory's `weir-journal-bench`, which is removed
//! at the end. The output is, for each level, the time of an append, the time of a record from append to commit under
//! flood, and the records per commit; and how many records recovery reads per second.
#![expect(clippy::print_stdout, reason = "its output is the result")]

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use weir_engine::{Config, Driver, Runtime, time::yield_now};
use weir_servers::journal::{self, Journal, JournalConfig, Level, Recovered};

/// Payload of an accepted order, including the fields of an account's stream.
const PAYLOAD: [u8; 80] = [0x41; 80];

const RUN: Duration = Duration::from_secs(2);

/// Records appended before other tasks run: the number that a worker accepts under flood.
const TURN_RECORDS: usize = 32;

const RECOVERY_RECORDS: u64 = 1_000_000;

fn main() {
    let named = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let folder = named.map_or_else(|| PathBuf::from("weir-journal-bench"), PathBuf::from);
    if let Some(warning) = journal::warning(&folder, Level::Disk) {
        println!("{warning}");
    }
    println!(
        "{:<7} {:<6} {:>12} {:>14} {:>12} {:>16} {:>14}",
        "driver", "level", "records/s", "ns per record", "ns to append", "records/commit", "us per commit"
    );
    for driver in [Driver::Uring, Driver::Epoll] {
        for level in Level::ALL {
            match Runtime::new(&Config::with_driver(driver)) {
                Ok(runtime) => flood(&runtime, driver, level, &folder),
                Err(error) => println!("{driver}: {error}"),
            }
        }
    }
    recovery(&folder);
}

fn recovered(folder: &Path) -> Recovered {
    journal::recover(folder, 0, &mut |_, _| Ok(())).expect("the folder can be used")
}

async fn open(folder: &Path, level: Level) -> std::rc::Rc<Journal> {
    let config = JournalConfig::new(folder.to_owned(), 0, level);
    let recovered = if level == Level::None { Recovered::nothing() } else { recovered(folder) };
    let journal = Journal::open(config, &recovered).await.expect("the folder can be used");
    journal.start();
    journal
}

fn flood(runtime: &Runtime, driver: Driver, level: Level, folder: &Path) {
    clear(folder);
    runtime.block_on(async {
        let journal = open(folder, level).await;
        let (mut appending, mut records) = (Duration::ZERO, 0_u64);
        let begun = Instant::now();
        while begun.elapsed() < RUN {
            journal.room().await;
            let turn = Instant::now();
            for _ in 0..TURN_RECORDS {
                journal.append(b'S', 7, records, &[&PAYLOAD[..40], &PAYLOAD[40..]]).expect("there is room");
                records += 1;
            }
            appending += turn.elapsed();
            yield_now().await;
        }
        journal.close().await;
        let took = begun.elapsed();
        let counters = journal.counters();
        let commits = counters.commits().max(1) as f64;
        println!(
            "{:<7} {:<6} {:>12.0} {:>14.1} {:>12.1} {:>16.1} {:>14.1}",
            driver.name(),
            level.name(),
            records as f64 / took.as_secs_f64(),
            took.as_nanos() as f64 / records as f64,
            appending.as_nanos() as f64 / records as f64,
            counters.records() as f64 / commits,
            counters.commit_ns_total() as f64 / commits / 1000.0,
        );
    });
    clear(folder);
}

fn recovery(folder: &Path) {
    clear(folder);
    let runtime = Runtime::new(&Config::with_driver(Driver::Epoll)).expect("epoll runs here");
    runtime.block_on(async {
        let journal = open(folder, Level::Os).await;
        while journal.last() < RECOVERY_RECORDS {
            journal.room().await;
            for _ in 0..TURN_RECORDS {
                journal.append(b'S', 7, 0, &[&PAYLOAD]).expect("there is room");
            }
        }
        journal.close().await;
    });
    // The first recovery syncs the written bytes.
    drop(recovered(folder));
    for _ in 0..5 {
        let begun = Instant::now();
        let records = recovered(folder).records;
        let rate = records as f64 / begun.elapsed().as_secs_f64();
        println!("recovery: {records} records, {rate:.0} a second");
    }
    clear(folder);
}

fn clear(folder: &Path) {
    if folder.exists() {
        std::fs::remove_dir_all(folder).expect("it is ours");
    }
}
