//! A gateway whose disk blocks all writes for a while: at each level of its journal, orders wait for the disk, but
//! logins, heartbeats and the kill switch do not. A journal that is dropped meanwhile stays locked until its write is
//! over.

use std::{fs::File, path::Path, process::Command, time::Duration};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use weir_engine::{Config, Driver, Runtime, time::yield_now};
use weir_servers::journal::{self, Journal, JournalConfig, Level};

use super::{
    harness::{folder, shown, skip_without_disk, socket_folder, until, weir},
    order_client::Client,
    order_kill::{Node, Session, drivers},
};

/// Orders that are at the exchange when the disk stops, and the order after that.
const OPEN: u32 = 10;
const LATE: u32 = OPEN + 1;

/// A file system that can block all writers, with `fsfreeze(8)`.
struct FreezableDisk<'a>(&'a Path);

impl<'a> FreezableDisk<'a> {
    /// None without root, loop devices and the tools of ext4.
    fn mount(image: &Path, at: &'a Path) -> Option<Self> {
        let file = std::fs::File::create(image).expect("a file can be made");
        file.set_len(400 << 20).expect("it has holes");
        let can = |program: &str, words: &[&str]| {
            Command::new(program).args(words).output().is_ok_and(|output| output.status.success())
        };
        let is_there = can("mkfs.ext4", &["-q", "-F", shown(image)])
            && can("mount", &["-o", "loop", shown(image), shown(at)]);
        let disk = is_there.then(|| Self(at))?;
        let is_freezable = disk.freeze().is_some();
        is_freezable.then_some(disk)
    }

    fn freeze(&self) -> Option<Frozen<'_>> {
        fsfreeze("-f", self.0).then(|| Frozen(self.0))
    }
}

impl Drop for FreezableDisk<'_> {
    fn drop(&mut self) {
        // If it fails, it stays until the system's next start.
        let _ = Command::new("umount").args(["-l", shown(self.0)]).status();
    }
}

/// The file system is frozen until this is dropped. A process with a blocked write cannot even be killed before.
struct Frozen<'a>(&'a Path);

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        let is_thawed = fsfreeze("-u", self.0);
        assert!(is_thawed || std::thread::panicking(), "it could be thawed before");
    }
}

fn fsfreeze(flag: &str, at: &Path) -> bool {
    Command::new("fsfreeze").args([flag, shown(at)]).status().is_ok_and(|status| status.success())
}

/// An order of the gateway's only worker waits for the disk, and everything else goes on.
fn expect_nothing_waits(gateway: &Node, ctl: &[&str]) {
    let said = weir(&[ctl, &["kill", "all"]].concat());
    // The state of the switch after a restart is unknown, so the command is refused, with its progress.
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    let cancelled = format!("{OPEN} cancels are sent, {OPEN} are confirmed");
    for part in ["the kill switch is on until the gateway ends", "the journal did not answer", &cancelled] {
        assert!(said.stderr.contains(part), "no {part:?} in {}", said.stderr);
    }
    let mut other = Session::login(&gateway.address, "C00002", 1).expect("it is let in");
    let mut heard = Vec::new();
    while heard.is_empty() {
        heard = other.read(|kind, _| (kind == b'H').then_some(())).expect("it is not let go");
    }
}

fn stop_the_disk(folder: &Path, disk: &FreezableDisk<'_>, driver: &str, level: &str) {
    let sockets = socket_folder("order-frozen-disk");
    let socket = shown(&sockets.join("control")).to_owned();
    let ctl = ["ctl", "--socket", &socket];
    let common = ["--demo", "2", "--listen", "127.0.0.1:0", "--driver", driver];
    let exchange = Node::start(
        &[&["serve", "exchange"], &common[..], &["--mode", "match", "--journal", "none"]].concat(),
    );
    let ours = shown(&folder.join(format!("{driver}-{level}"))).to_owned();
    let own = ["--journal", level, "--journal-dir", &ours, "--upstream", &exchange.address];
    let gateway =
        Node::start(&[&["serve", "gateway"], &common[..], &own[..], &["--control", &socket]].concat());
    let mut client = Client::login(&gateway.address, "C00001");
    client.send(1..=OPEN);
    client.hear_until("the first orders are taken", |client| client.numbers(b'A').len() == OPEN as usize);

    let frozen = disk.freeze().expect("it could be frozen before");
    client.send(LATE..=LATE);
    expect_nothing_waits(&gateway, &ctl);
    client.hear_heartbeat();
    let told_of_late = [b'A', b'J', b'C'].map(|kind| client.numbers(kind).contains(&LATE));
    assert_eq!(told_of_late, [false; 3], "it is answered before the disk has it");
    drop(frozen);

    client.hear_until("what the kill switch did is told", |client| {
        let cancelled = client.numbers(b'C');
        (1..=OPEN).all(|number| cancelled.contains(&number))
    });
    let answered = |client: &Client| client.reason_of(LATE).is_some() || client.numbers(b'C').contains(&LATE);
    client.hear_until("the late order does not live", answered);
    drop(gateway);
    std::fs::remove_dir_all(&ours).expect("the next journal needs its room");
}

/// This process's threads for its files, or the kernel's for it, with the first letter of their state. Other tests of
/// this process have some too.
fn threads_for_files() -> Vec<(String, char)> {
    let threads = std::fs::read_dir("/proc/self/task").expect("/proc is there");
    let of_files = |thread: std::fs::DirEntry| {
        // None if it has just ended.
        let line = std::fs::read_to_string(thread.path().join("stat")).ok()?;
        let (tid, rest) = line.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let is_one = name.starts_with("weir-file") || name.starts_with("iou-wrk");
        is_one.then_some((tid.to_owned(), rest.chars().next()?))
    };
    threads.flatten().filter_map(of_files).collect()
}

/// Whether one of them is in an uninterruptible call for longer than any other disk would take.
fn a_write_stands_still() -> bool {
    let stuck = || threads_for_files().into_iter().filter(|(_, state)| *state == 'D').collect::<Vec<_>>();
    let first = stuck();
    std::thread::park_timeout(Duration::from_millis(200));
    stuck().iter().any(|thread| first.contains(thread))
}

/// The runtime ends with a write of its journal in the kernel.
fn drop_a_journal_that_writes(at: &Path, disk: &FreezableDisk<'_>, driver: Driver) {
    let directory = at.join(format!("dropped-{driver}"));
    let runtime = Runtime::new(&Config::with_driver(driver)).expect("it ran before");
    let journal = runtime.block_on(async {
        let recovered = journal::recover(&directory, 0, &mut |_, _| Ok(())).expect("it is empty");
        let config =
            JournalConfig { segment_bytes: 1 << 20, ..JournalConfig::new(directory.clone(), 0, Level::Os) };
        let journal = Journal::open(config, &recovered).await.expect("there is room");
        journal.start();
        let (first, _) = journal.append(b'S', 1, 0, &[b"first"]).expect("there is room");
        journal.committed(first).await.expect("the disk works");
        journal
    });
    // Only reading: making or writing a file would wait for the disk.
    let file = File::open(directory.join("worker-00000.lock")).expect("it is there");
    let lock = || flock(&file, FlockOperation::NonBlockingLockExclusive);

    let frozen = disk.freeze().expect("it could be frozen before");
    runtime.block_on(async {
        journal.append(b'S', 1, 0, &[b"late"]).expect("there is room");
        for _ in 0..10 {
            yield_now().await;
        }
    });
    until("the write", a_write_stands_still);
    drop((journal, runtime));
    assert_eq!(lock(), Err(Errno::WOULDBLOCK), "the next owner would write where this one still does");
    drop(frozen);

    if driver == Driver::Uring {
        // Memory that the kernel may still use stays for the process's lifetime.
        return assert_eq!(lock(), Err(Errno::WOULDBLOCK));
    }
    until("the end of the write", || lock().is_ok());
    flock(&file, FlockOperation::Unlock).expect("it is ours");
    let recovered = journal::recover(&directory, 0, &mut |_, _| Ok(())).expect("it is whole");
    assert_eq!(recovered.records, 2);
}

#[test]
fn a_journal_stays_locked_while_a_write_outlives_its_runtime() {
    let folder = folder("journal-frozen-disk");
    let at = folder.join("disk");
    std::fs::create_dir(&at).expect("a folder can be made");
    let Some(disk) = FreezableDisk::mount(&folder.join("image"), &at) else {
        skip_without_disk("a disk that can be frozen needs root, loop devices, mkfs.ext4 and fsfreeze");
        return;
    };
    let there = drivers();
    for driver in [Driver::Epoll, Driver::Uring].into_iter().filter(|driver| there.contains(&driver.name())) {
        println!("{driver}");
        drop_a_journal_that_writes(&at, &disk, driver);
    }
}

#[test]
fn a_disk_that_stands_still_holds_up_orders_and_no_login_heartbeat_or_kill_switch() {
    let folder = folder("order-frozen-disk");
    let at = folder.join("disk");
    std::fs::create_dir(&at).expect("a folder can be made");
    let Some(disk) = FreezableDisk::mount(&folder.join("image"), &at) else {
        skip_without_disk("a disk that can be frozen needs root, loop devices, mkfs.ext4 and fsfreeze");
        return;
    };
    // The two for all users: the kill switch gives each 5 s.
    for driver in drivers().into_iter().filter(|driver| ["epoll", "uring"].contains(driver)) {
        for level in ["os", "disk"] {
            println!("{driver}, journal level {level}");
            stop_the_disk(&at, &disk, driver, level);
        }
    }
}
