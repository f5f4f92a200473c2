//! A panicking worker ends its process: half a server would accept orders without answering them. The process to end
//! is another instance of this program.

use std::{
    env,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Command, exit},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use weir_engine::Driver;
use weir_servers::{
    exchange::{self, Mode},
    gateway::GatewayConfig,
    journal::{
        Level,
        faults::{Operation, Verdict},
    },
    orders::{OrdersConfig, demo_accounts},
};

use crate::{
    gateway::rig::{Folder, Script, drivers, gateway, server},
    orders::{
        client::{Client, enter},
        rig::now,
    },
};

const TEST: &str = "panics::a_worker_that_panics_ends_its_process_on_every_driver";
/// The role of the other process: the kind of node, its driver, and its folder.
const ROLE: &str = "WEIR_TEST_PANICKING_NODE";
/// A process that has not ended by then is considered alive.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_worker_that_panics_ends_its_process_on_every_driver() {
    if let Ok(role) = env::var(ROLE) {
        return panic_as(&role);
    }
    for driver in drivers() {
        for node in ["exchange", "gateway"] {
            let folder = Folder::new();
            let role = format!("{node} {driver} {}", folder.0.display());
            let output = Command::new(env::current_exe().expect("this program has a path"))
                .args(["--exact", TEST, "--nocapture"])
                .env(ROLE, role)
                .output()
                .expect("it starts");
            let printed = String::from_utf8_lossy(&output.stderr);
            assert!(printed.contains("on purpose"), "{node} on {driver}: {printed}");
            assert_eq!(output.status.signal(), Some(Signal::ABORT.as_raw()), "{node} on {driver}: {printed}");
        }
    }
}

/// Called on a worker's thread, by its journal.
fn panic_at_write(_: u16, operation: &Operation) -> Verdict {
    assert!(!matches!(operation, Operation::Write { .. }), "on purpose");
    Verdict::Pass
}

fn panic_as(role: &str) {
    let mut words = role.splitn(3, ' ');
    let mut word = || words.next().expect("three words");
    let (node, driver, folder) = (word(), word(), word());
    let driver = Driver::ALL.into_iter().find(|known| known.name() == driver).expect("a driver");
    // No core dump is needed.
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).expect("less is allowed");
    match node {
        "exchange" => exchange_that_panics(driver, Path::new(folder)),
        _ => gateway_that_panics(driver, Path::new(folder)),
    }
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        thread::park_timeout(PATIENCE);
    }
    exit(3);
}

fn exchange_that_panics(driver: Driver, folder: &Path) {
    let orders = OrdersConfig {
        journal: Some((folder.to_owned(), Level::Os)),
        journal_faults: Some(panic_at_write),
        ..OrdersConfig::new(demo_accounts(1))
    };
    let exchange =
        exchange::start(server(driver, 2), orders, Mode::EchoAccept).expect("the driver runs here");
    now(async {
        let mut client = Client::connect(exchange.address(), false).await;
        client.log_in("C00001", 1).await.expect("it is let in");
        client.send(&enter(1)).await;
    });
    // Its other worker would live on.
    std::mem::forget(exchange);
}

fn gateway_that_panics(driver: Driver, folder: &Path) {
    let venue = Script::new();
    let config = GatewayConfig {
        journal: Some((folder.to_owned(), Level::Os)),
        journal_faults: Some(panic_at_write),
        ..GatewayConfig::demo(1, venue.address())
    };
    let starting = thread::spawn(move || gateway(driver, 1, config));
    // It writes the record that it has joined this session.
    let mut session = venue.accept();
    session.let_in("DAY", 1);
    while session.try_next().is_some() {}
    // The gateway never comes up.
    drop(starting);
}
