//! `weir journal` on the journals of real gateways: running, killed, damaged and repaired.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use rustix::process::Signal;
use serde_json::Value;
use weir_engine::{Config, Driver, Runtime};
use weir_servers::journal::{Journal, JournalConfig, Level, recover};

use super::{
    harness::{Folder, PATIENCE, Running, Said, expect_refusal, folder, shell, shown, socket_folder, weir},
    order_client::Client,
    order_kill::{Node, journal},
};

/// Orders of the first client before anything else.
const ORDERS: u32 = 20;

/// A gateway with two workers in front of an exchange.
struct World {
    folder: Folder,
    sockets: Folder,
    /// It ends with the test.
    _exchange: Node,
    gateway: Node,
}

impl World {
    /// Each client's orders leave by the other worker, so that an order is in both journals.
    fn start(name: &str) -> Self {
        let (folder, sockets) = (folder(name), socket_folder(name));
        let (ours, theirs) = (journal(&folder, "gateway"), journal(&folder, "exchange"));
        let socket = journal(&sockets, "control");
        let common = ["--demo", "2", "--listen", "127.0.0.1:0", "--driver", "epoll", "--journal", "os"];
        let own = ["--mode", "match", "--journal-dir", &theirs];
        let exchange = Node::start(&[&["serve", "exchange"], &common[..], &own[..]].concat());
        let upstream = exchange.address.clone();
        let own = ["--workers", "2", "--route", "other", "--journal-dir", &ours, "--upstream", &upstream];
        let own = [&own[..], &["--control", &socket]].concat();
        let gateway = Node::start(&[&["serve", "gateway"], &common[..], &own[..]].concat());
        Self { folder, sockets, _exchange: exchange, gateway }
    }

    fn ctl(&self, words: &[&str]) {
        let socket = journal(&self.sockets, "control");
        let said = weir(&[&["ctl", "--socket", &socket], words].concat());
        assert_eq!(said.code, Some(0), "{}", said.stderr);
    }

    fn directory(&self) -> PathBuf {
        self.folder.join("gateway")
    }

    /// A client whose first orders are accepted.
    fn client(&self) -> Client {
        let mut client = Client::login(&self.gateway.address, "C00001");
        client.send(1..=ORDERS);
        client.hear_until("its orders are taken", |client| client.numbers(b'A').len() == ORDERS as usize);
        client
    }

    /// Runs a task on the gateway's journals.
    fn ask(&self, task: &str, words: &[&str]) -> Said {
        ask(task, &self.directory(), words)
    }

    /// The records that are chosen.
    fn records(&self, words: &[&str]) -> Vec<Value> {
        records(&self.directory(), words)
    }
}

fn ask(task: &str, directory: &Path, words: &[&str]) -> Said {
    weir(&[&["journal", task, shown(directory)], words].concat())
}

fn records(directory: &Path, words: &[&str]) -> Vec<Value> {
    let said = ask("print", directory, &[&["--format", "json"], words].concat());
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{}", said.stdout);
    said.stdout.lines().map(|line| serde_json::from_str(line).expect("an object in a line")).collect()
}

/// Names and contents of all files.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(directory).expect("it is there").map(|entry| entry.expect("an entry").path());
    entries.map(|path| (path.clone(), fs::read(&path).expect("it can be read"))).collect()
}

fn of_kind<'r>(records: &'r [Value], kind: &str) -> Vec<&'r Value> {
    records.iter().filter(|record| record["kind"] == kind).collect()
}

/// The file and the byte of a record.
fn place(directory: &Path, record: &Value) -> (PathBuf, usize) {
    let file = record["file"].as_str().expect("a name");
    (directory.join(file), record["byte"].as_u64().expect("a number") as usize)
}

fn flip(file: &Path, byte: usize) {
    let mut bytes = fs::read(file).expect("it is there");
    bytes[byte] ^= 1;
    fs::write(file, bytes).expect("it can be written");
}

/// A limit and a kill switch: what changed, and the commands that asked for it.
fn expect_operators(world: &World) {
    let operators = world.ask("print", &["--operators"]);
    assert_eq!(operators.stdout.lines().count(), 4, "{}", operators.stdout);
    for parts in [
        [" control change=limit_values account=C00002 ", "\"shares_max\":777"],
        [" control change=kill account=C00002 ", " on=true"],
        [" operator ", " command=limits "],
        [" operator ", " command=kill "],
    ] {
        let is_there = operators.stdout.lines().any(|line| parts.iter().all(|part| line.contains(part)));
        assert!(is_there, "no {parts:?} in {}", operators.stdout);
    }
}

#[test]
fn records_of_a_running_gateway_are_printed_in_order_and_nothing_changes() {
    let world = World::start("journal-print");
    let mut client = world.client();
    client.cancel(3);
    client.hear_until("the cancel is confirmed", |client| client.numbers(b'C') == [3]);
    world.ctl(&["limits", "--account", "C00002", "shares_max=777"]);
    world.ctl(&["kill", "C00002"]);
    // The record of a kill switch's command follows its answer.
    let deadline = Instant::now() + PATIENCE;
    while of_kind(&world.records(&["--operators"]), "operator").len() < 2 {
        assert!(Instant::now() < deadline, "both commands are recorded");
    }
    let before = contents(&world.directory());
    let all = world.records(&[]);
    assert!(contents(&world.directory()) == before, "a reader has changed something");

    let times: Vec<u64> = all.iter().map(|record| record["t_ns"].as_u64().expect("a time")).collect();
    assert!(times.is_sorted(), "{times:?}");
    let journals: Vec<u64> = all.iter().map(|record| record["worker"].as_u64().expect("a worker")).collect();
    assert!(journals.contains(&0) && journals.contains(&1));
    assert_eq!(of_kind(&all, "sent").len(), ORDERS as usize + 1, "the orders and a cancel");
    let sent = of_kind(&all, "sent")[0];
    assert_eq!(sent["fields"]["account"], "C00001");
    assert_eq!(sent["fields"]["symbol"], "WEIR");
    assert_eq!(sent["fields"]["price"], 1.0);

    // An order: handed over, sent, answered, cancelled.
    let order = world.records(&["--account", "c00001", "--order", "3"]);
    let steps: Vec<(&str, &str)> = order
        .iter()
        .map(|record| {
            (record["kind"].as_str().expect("text"), record["fields"]["message"].as_str().expect("text"))
        })
        .collect();
    let expected = [
        ("inbound", "enter"),
        ("sent", "enter"),
        ("sequenced", "accepted"),
        ("sent", "cancel"),
        ("sequenced", "canceled"),
    ];
    for step in expected {
        assert!(steps.contains(&step), "no {step:?} in {steps:?}");
    }
    assert!(world.records(&["--account", "C00002", "--order", "3"]).is_empty());
    // Cancels and their answers do not name the symbol.
    let of_symbol = world.records(&["--symbol", "WEIR", "--kind", "canceled"]);
    assert_eq!(of_symbol.len(), 1);
    assert!(world.records(&["--symbol", "OTHER"]).is_empty());

    expect_operators(&world);

    let middle = all[all.len() / 2]["time"].as_str().expect("a time");
    let (since, until) = (world.records(&["--since", middle]), world.records(&["--until", middle]));
    assert_eq!(since.len() + until.len(), all.len());
    assert_eq!(since[0]["time"], middle);

    let csv = world.ask("print", &["--format", "csv", "--kind", "sent"]).stdout;
    assert!(
        csv.starts_with("time,worker,file,byte,number,kind,message,account,order,symbol,fields\n"),
        "{csv}"
    );
    assert_eq!(csv.lines().count(), ORDERS as usize + 2);
    // The exchange's journals are read as well.
    let answers = records(&world.folder.join("exchange"), &["--kind", "accepted", "--kind", "canceled"]);
    assert_eq!(answers.len(), ORDERS as usize + 1);
}

#[test]
fn a_reader_of_the_output_that_goes_away_is_no_error() {
    let mut world = World::start("journal-pipe");
    let mut client = world.client();
    // More than a pipe takes.
    client.send(ORDERS + 1..=ORDERS + 500);
    client.hear_until("its orders are taken", |client| client.numbers(b'A').len() == ORDERS as usize + 500);
    world.gateway.end(Signal::TERM);
    for line in ["print '$D' | head -n 1", "tail '$D' -f -n 5000 | head -n 1"] {
        let line = line.replace("$D", shown(&world.directory()));
        let said = shell(&format!("$WEIR journal {line}; echo end"));
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{line}");
        assert_eq!(said.stdout.lines().count(), 2, "{line}: {}", said.stdout);
    }
}

#[test]
fn damage_is_named_with_its_file_and_its_byte_and_a_torn_tail_is_none() {
    let mut world = World::start("journal-verify");
    let _client = world.client();
    let running = world.ask("verify", &[]);
    assert_eq!(running.code, Some(0), "{}{}", running.stdout, running.stderr);
    assert!(running.stdout.contains("every record is right"), "{}", running.stdout);
    world.gateway.end(Signal::KILL);
    let (directory, all) = (world.directory(), world.records(&[]));
    let sent = of_kind(&all, "sent");
    let (file, byte) = place(&directory, sent[4]);

    // The last record: a crash may have cut it.
    let last = all.iter().rfind(|record| record["worker"] == sent[4]["worker"]).expect("there is one");
    let (_, last_byte) = place(&directory, last);
    flip(&file, last_byte + 40);
    let torn = world.ask("verify", &[]);
    assert_eq!(torn.code, Some(0), "{}", torn.stdout);
    let expected = format!("{}: the last write is not finished", file.display());
    assert!(torn.stdout.contains(&expected), "{expected}: {}", torn.stdout);
    flip(&file, last_byte + 40);

    flip(&file, byte + 40);
    let damaged = world.ask("verify", &[]);
    assert_eq!((damaged.code, damaged.stderr.as_str()), (Some(1), ""), "{}", damaged.stdout);
    let expected = format!("{} is damaged at byte {byte}: the checksum of the record there", file.display());
    assert!(damaged.stdout.contains(&expected), "{expected}: {}", damaged.stdout);
    assert!(damaged.stdout.contains("weir journal repair"), "{}", damaged.stdout);
    let korean = world.ask("verify", &["--lang", "ko"]);
    assert!(korean.stdout.contains(&format!("바이트 {byte}에서 손상")), "{}", korean.stdout);

    // Everything before it is printed, with all of the other journal, and then the damage.
    let printed = world.ask("print", &[]);
    expect_refusal(&printed, 1, &[&format!("is damaged at byte {byte}"), "weir journal repair"]);
    let behind = |record: &Value| {
        record["worker"] == sent[4]["worker"] && record["number"].as_u64() >= sent[4]["number"].as_u64()
    };
    let left = all.iter().filter(|record| !behind(record)).count();
    assert_eq!(printed.stdout.lines().count(), left);
    let counted = world.ask("stats", &[]);
    assert_eq!(counted.code, Some(1), "{}", counted.stderr);
    assert!(counted.stderr.contains(&format!("is damaged at byte {byte}")), "{}", counted.stderr);
}

#[test]
fn a_folder_without_journals_is_a_mistake() {
    let folder = folder("journal-none");
    for task in ["print", "verify", "stats", "tail"] {
        expect_refusal(&ask(task, &folder, &[]), 2, &["contains no journal", "--journal-dir"]);
        expect_refusal(&ask(task, &folder.join("missing"), &[]), 2, &["is no folder"]);
    }
    let copy = folder.join("copy");
    expect_refusal(&ask("repair", &folder, &["--out", shown(&copy)]), 2, &["contains no journal"]);
    assert!(!copy.exists());
}

/// A journal of records of these kinds, each with a payload that is none.
fn written(directory: &Path, kinds: &[u8]) {
    let runtime = Runtime::new(&Config::with_driver(Driver::Epoll)).expect("epoll is everywhere");
    runtime.block_on(async {
        let recovered = recover(directory, 0, &mut |_, _| Ok(())).expect("it is new");
        let config = JournalConfig::new(directory.to_owned(), 0, Level::Os);
        let journal = Journal::open(config, &recovered).await.expect("it can be opened");
        journal.start();
        for (kind, t_ns) in kinds.iter().zip(1..) {
            journal.append(*kind, 0, t_ns, &[b"SECRET"]).expect("it is taken");
        }
        journal.close().await;
    });
}

#[test]
fn records_that_a_start_refuses_are_named_and_cut_off() {
    let folder = folder("journal-refused");
    let (directory, copy) = (folder.join("journal"), folder.join("copy"));
    written(&directory, &[200, 9, 200]);
    let said = ask("verify", &directory, &[]);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    let name = "worker-00000-0000000001.journal";
    for part in [
        format!("what their kind has to be: 1 ({name}:104 (#2, unknown))"),
        format!("that a start ignores: 2 ({name}:64 (#1, unknown), {name}:144 "),
    ] {
        assert!(said.stdout.contains(&part), "no {part}: {}", said.stdout);
    }
    let said = ask("repair", &directory, &["--out", shown(&copy)]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stdout.contains("lost from byte 104 on: 80 bytes, with 1 whole records"), "{}", said.stdout);
    let left = records(&copy, &[]);
    assert_eq!((left.len(), &left[0]["fields"]["kind_number"]), (1, &Value::from(200)));
    let printed = ask("print", &directory, &[]).stdout;
    assert!(printed.lines().count() == 3 && !printed.contains("SECRET"), "{printed}");
}

#[test]
fn what_a_journal_contains_is_counted() {
    let world = World::start("journal-stats");
    let _client = world.client();
    let counts: Value =
        serde_json::from_str(&world.ask("stats", &["--format", "json"]).stdout).expect("JSON");
    let all = world.records(&[]);
    assert_eq!(counts["records"], all.len());
    assert_eq!(counts["kinds"]["records"]["sent"], ORDERS);
    assert_eq!(counts["messages"]["records"]["accepted"], ORDERS);
    assert_eq!(counts["first_time"], all[0]["time"]);
    assert_eq!(counts["last_time"], all[all.len() - 1]["time"]);
    assert_eq!(counts["journals"], 2);
    assert!(counts["symbols"]["records"]["WEIR"].as_u64() >= Some(2 * u64::from(ORDERS)));
    let text = world.ask("stats", &[]);
    assert!(text.stdout.contains("C00001") && text.stdout.contains("accepted"), "{}", text.stdout);
}

#[test]
fn a_repaired_copy_opens_in_the_gateway_and_the_original_stays_as_it_is() {
    let mut world = World::start("journal-repair");
    let _client = world.client();
    let (directory, copy) = (world.directory(), world.folder.join("copy"));
    let out = ["--out", shown(&copy)];
    expect_refusal(&world.ask("repair", &out), 1, &["a process is writing the journal", "end it first"]);
    assert!(!copy.exists());
    world.gateway.end(Signal::KILL);
    let all = world.records(&[]);
    let sent = of_kind(&all, "sent");
    let (file, byte) = place(&directory, sent[9]);
    flip(&file, byte + 40);
    assert!(world.gateway.refused_start().contains("is damaged at byte"));

    let before = contents(&directory);
    let said = world.ask("repair", &out);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{}", said.stdout);
    assert!(contents(&directory) == before, "the original has changed");
    let lost = all.iter().filter(|record| {
        record["worker"] == sent[9]["worker"] && record["number"].as_u64() > sent[9]["number"].as_u64()
    });
    let expected = format!("{}: lost from byte {byte} on: ", file.display());
    let line = said
        .stdout
        .lines()
        .find(|line| line.contains(&expected))
        .unwrap_or_else(|| panic!("{}", said.stdout));
    assert!(line.ends_with(&format!("with {} whole records", lost.count())), "{line}");
    assert_eq!(ask("verify", &copy, &[]).code, Some(0));
    let left = records(&copy, &[]);
    assert_eq!(of_kind(&left, "sent").len(), 9);
    assert!(left.iter().all(|record| all.contains(record)), "nothing else is in it");
    expect_refusal(&world.ask("repair", &out), 2, &["exists already"]);
    let inside = directory.join("copy");
    expect_refusal(&world.ask("repair", &["--out", shown(&inside)]), 2, &["stays as it is"]);

    fs::rename(&directory, world.folder.join("damaged")).expect("it can be renamed");
    fs::rename(&copy, &directory).expect("it can be renamed");
    world.gateway.start_again("epoll");
    let mut client = Client::login(&world.gateway.address, "C00001");
    client.send(1000..=1000);
    client.hear_until("a new order is taken", |client| client.numbers(b'A').contains(&1000));
}

#[test]
fn a_journal_without_damage_is_copied_whole() {
    let mut world = World::start("journal-whole");
    let _client = world.client();
    world.gateway.end(Signal::TERM);
    let copy = world.folder.join("copy");
    let said = world.ask("repair", &["--out", &format!("{}/", copy.display())]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stdout.contains("Nothing is lost"), "{}", said.stdout);
    assert_eq!(records(&copy, &[]), world.records(&[]));
    let names: Vec<_> =
        fs::read_dir(&*world.folder).expect("it is there").map(|it| it.expect("one").file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().contains("partial")), "{names:?}");
}

#[test]
fn the_last_records_are_printed_and_those_that_follow() {
    let world = World::start("journal-tail");
    let mut client = world.client();
    let all = world.ask("print", &[]).stdout;
    let last: Vec<&str> = all.lines().rev().take(3).collect();
    let tail = world.ask("tail", &["-n", "3"]).stdout;
    assert_eq!(tail.lines().rev().collect::<Vec<_>>(), last);
    assert_eq!(world.ask("tail", &["-n", "0"]).stdout, "");

    let directory = world.directory();
    let words = ["journal", "tail", shown(&directory), "-f", "-n", "1", "--kind", "accepted"];
    let following = Running::weir(&words);
    let first = following.next_line().expect("the last one before");
    assert!(first.contains(&format!(" order={ORDERS} ")), "{first}");
    client.send(ORDERS + 1..=ORDERS + 2);
    for number in [ORDERS + 1, ORDERS + 2] {
        let line = following.next_line().expect("it follows");
        assert!(line.contains(&format!(" order={number} ")), "{line}");
    }
}
