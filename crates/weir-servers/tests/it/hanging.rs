//! A hanging worker does not block the end of its server forever.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use weir_engine::{Driver, serve::ServerConfig};
use weir_servers::{
    exchange::{self, Mode},
    journal::{
        Level,
        faults::{Operation, Verdict},
    },
    orders::{OrdersConfig, demo_accounts},
};

use crate::{
    gateway::rig::{Folder, eventually, server},
    orders::{
        client::{Client, enter},
        rig::now,
    },
};

/// No write returns while this is locked.
static DISK: Mutex<()> = Mutex::new(());
/// The number of writes that have begun.
static WRITES: AtomicUsize = AtomicUsize::new(0);

/// Called on a worker's thread, by its journal.
fn wait_for_disk(_: u16, operation: &Operation) -> Verdict {
    if matches!(operation, Operation::Write { .. }) {
        WRITES.fetch_add(1, Ordering::SeqCst);
        drop(DISK.lock().expect("nobody panics with it"));
    }
    Verdict::Pass
}

#[test]
fn the_end_of_a_server_waits_some_seconds_for_a_worker_that_hangs_and_then_names_it() {
    if std::env::var_os("WEIR_SLOW_TESTS").is_none() {
        println!("skipped: it takes ten seconds, and runs with WEIR_SLOW_TESTS=1");
        return;
    }
    let folder = Folder::new();
    let orders = OrdersConfig {
        journal: Some((folder.0.clone(), Level::Os)),
        journal_faults: Some(wait_for_disk),
        ..OrdersConfig::new(demo_accounts(1))
    };
    let config = ServerConfig { drain_limit: Duration::from_millis(100), ..server(Driver::Poll, 1) };
    let exchange = exchange::start(config, orders, Mode::EchoAccept).expect("poll runs everywhere");
    let mut client = now(Client::connect(exchange.address(), false));
    now(client.log_in("C00001", 1)).expect("it is let in");
    let held = DISK.lock().expect("nobody panics with it");
    let before = WRITES.load(Ordering::SeqCst);
    now(client.send(&enter(1)));
    eventually("a write that does not return", || WRITES.load(Ordering::SeqCst) > before);
    exchange.drain();
    assert_eq!(exchange.join().workers_left, [0]);
    drop((client, held));
}
