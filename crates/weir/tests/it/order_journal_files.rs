//! `weir journal export` and `weir journal archive`, on journals of a few small files.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use weir_engine::{Config, Driver, Runtime};
use weir_proto::{
    ouch::{
        Accepted, Appendage, ClientOrderId, Enter, Inbound, Outbound, Symbol, set_inbound_user_ref_num,
        set_outbound_user_ref_num,
    },
    soup::Name,
};
use weir_servers::journal::{
    Anchor, Checkpoint, CheckpointFile, Journal, JournalConfig, Level, Position, inspect_all, recover,
};

use super::harness::{Said, expect_refusal, folder, shell, shown, weir};

/// Kinds of records, as in `docs/formats/order-records.md`.
const SEQUENCED: u8 = 1;
const ENDED: u8 = 3;
const SENT: u8 = 5;
const SECOND_NS: u64 = 1_000_000_000;

fn ask(task: &str, directory: &Path, words: &[&str]) -> Said {
    weir(&[&["journal", task, shown(directory)], words].concat())
}

/// A journal with this many orders of two clients, each sent and accepted, and then the end of the session if asked.
fn written(directory: &Path, orders: u32, ends: bool) {
    let runtime = Runtime::new(&Config::with_driver(Driver::Epoll)).expect("epoll is everywhere");
    runtime.block_on(async {
        let recovered = recover(directory, 0, &mut |_, _| Ok(())).expect("it is new");
        let config = JournalConfig::new(directory.to_owned(), 0, Level::Os);
        let config = JournalConfig { segment_bytes: 4096, ..config };
        let journal = Journal::open(config, &recovered).await.expect("it can be opened");
        journal.start();
        for number in 1..=orders {
            let name: Name<6> = ["C00001", "C00002"][number as usize % 2].parse().expect("a name");
            let t_ns = u64::from(number) * SECOND_NS;
            let (mut order, mut answer) = (order(), accepted());
            set_inbound_user_ref_num(&mut order, number);
            set_outbound_user_ref_num(&mut answer, number);
            let head = [&(1000 + number).to_le_bytes()[..], name.as_bytes(), &[0; 2]].concat();
            journal.append(SENT, 1 << 16, t_ns, &[&head, &order]).expect("it is taken");
            let upstream = 1_u64 << 40 | u64::from(number);
            let sequence = u64::from(number.div_ceil(2));
            let head =
                [&sequence.to_le_bytes()[..], &upstream.to_le_bytes(), name.as_bytes(), &[0; 2]].concat();
            journal.append(SEQUENCED, 0, t_ns, &[&head, &answer]).expect("it is taken");
            journal.committed(journal.last()).await.expect("the disk works");
        }
        if ends {
            let t_ns = u64::from(orders + 1) * SECOND_NS;
            journal.append(ENDED, 0, t_ns, &[&[0, 0]]).expect("it is taken");
        }
        journal.close().await;
    });
}

fn enter() -> Enter {
    Enter {
        user_ref_num: 1,
        side: b'B',
        quantity: 100,
        symbol: Symbol(*b"WEIR    "),
        price: 10_000,
        time_in_force: b'0',
        display: b'Y',
        capacity: b'P',
        intermarket_sweep: b'N',
        cross_type: b'N',
        client_order_id: ClientOrderId(*b"MINE          "),
    }
}

fn order() -> Vec<u8> {
    let mut raw = Vec::new();
    Inbound::Enter(enter(), Appendage::EMPTY).encode(&mut raw);
    raw
}

fn accepted() -> Vec<u8> {
    let mut raw = Vec::new();
    Outbound::Accepted(Accepted::of(&enter(), 1, 1)).encode(&mut raw);
    raw
}

/// A checkpoint at the last record, with the smallest state: the versions of both of its parts, and no account.
fn checkpoint(directory: &Path) -> u64 {
    let mut last = Position::default();
    let read = inspect_all(directory, &[0], |_| false, &mut |_, position| {
        last = position;
        Ok(())
    });
    read.expect("it is whole");
    let anchor = Anchor::of(directory, 0, last).expect("it is there");
    let state = vec![1, 1, 1, 0, 0, 0, 1];
    let checkpoint = Checkpoint { anchors: BTreeMap::from([(0, anchor)]), state, ..Checkpoint::default() };
    checkpoint.write(directory, CheckpointFile::Latest).expect("it can be written");
    last.segment
}

fn segments(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("it is there").map(|entry| entry.expect("an entry").path());
    let mut all: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|kind| kind == "journal")).collect();
    all.sort_unstable();
    all
}

#[test]
fn files_of_ended_sessions_before_the_checkpoint_are_archived_and_no_others() {
    let folder = folder("journal-archive");
    let (directory, to) = (folder.join("journal"), folder.join("archive"));
    let words = ["--to", shown(&to)];
    written(&directory, 60, true);
    let all = segments(&directory);
    let said = ask("archive", &directory, &words);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stdout.contains("has no checkpoint that fits"), "{}", said.stdout);
    let last = checkpoint(&directory);
    // Each part of its state has a version.
    let right =
        Checkpoint::read(&directory, CheckpointFile::Latest).expect("it is right").expect("it is there");
    for place in [0, 6] {
        let mut other = right.clone();
        other.state[place] = 2;
        other.write(&directory, CheckpointFile::Latest).expect("it can be written");
        let said = ask("archive", &directory, &words);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        for words in ["journals.checkpoint: another version has written it", "has no checkpoint that fits"] {
            assert!(said.stdout.contains(words), "{}", said.stdout);
        }
    }
    right.write(&directory, CheckpointFile::Latest).expect("it can be written");
    assert_eq!(segments(&directory), all, "none has gone");
    assert!(last > 2, "there are several files");
    let before = ask("print", &directory, &["--format", "json"]).stdout;
    let said = ask("archive", &directory, &["--to", shown(&to), "--dry-run"]);
    let stay = all.len() as u64 - (last - 1);
    let bytes = (last - 1) * 4096;
    let expected =
        format!("worker 0: {} files may go, {bytes} bytes; {stay} stay: a start reads them", last - 1);
    assert!(
        said.stdout.starts_with(&expected) && said.stdout.contains("Nothing was moved"),
        "{}",
        said.stdout
    );
    assert!(!to.exists() && segments(&directory) == all);

    let said = ask("archive", &directory, &words);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{}", said.stdout);
    assert!(said.stdout.contains(&format!("{} files, ", last - 1)), "{}", said.stdout);
    let lengths = (segments(&directory).len() as u64, segments(&to).len() as u64);
    assert_eq!(lengths, (stay, last - 1));
    assert_eq!(ask("verify", &directory, &[]).code, Some(0));
    assert_eq!(ask("verify", &to, &[]).code, Some(0));
    let left = ask("print", &directory, &["--format", "json"]).stdout;
    let archived = ask("print", &to, &["--format", "json"]).stdout;
    assert_eq!(archived + &left, before, "every record is in one of the two");
    let said = ask("archive", &directory, &words);
    assert!(said.stdout.contains("No file may go now"), "{}", said.stdout);
    // A copy that is cut at damage begins where the original does.
    let copy = folder.join("copy");
    let said = ask("repair", &directory, &["--out", shown(&copy)]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(ask("print", &copy, &["--format", "json"]).stdout, left);
}

#[test]
fn messages_that_clients_may_ask_for_stay() {
    let folder = folder("journal-archive-session");
    let (directory, to) = (folder.join("journal"), folder.join("archive"));
    written(&directory, 60, false);
    checkpoint(&directory);
    let said = ask("archive", &directory, &["--to", shown(&to)]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stdout.contains("clients may ask for their messages"), "{}", said.stdout);
    assert!(said.stdout.contains("weir ctl end-session"), "{}", said.stdout);
    assert!(!to.exists());
}

#[test]
fn an_archive_is_refused_where_it_would_do_harm() {
    let folder = folder("journal-archive-refused");
    let (directory, to) = (folder.join("journal"), folder.join("archive"));
    written(&directory, 60, true);
    checkpoint(&directory);
    let inside = directory.join("archive");
    expect_refusal(&ask("archive", &directory, &["--to", shown(&inside)]), 2, &["lies in the folder"]);
    let file = folder.join("file");
    fs::write(&file, b"").expect("it can be written");
    expect_refusal(&ask("archive", &directory, &["--to", shown(&file)]), 2, &["is no folder"]);
    let said = ask("archive", &directory, &[]);
    assert!(said.code == Some(2) && said.stderr.contains("--to"), "{}", said.stderr);
    // A process writes it.
    let recovered = recover(&directory, 0, &mut |_, _| Ok(())).expect("it is whole");
    let words = ["--to", shown(&to)];
    expect_refusal(&ask("archive", &directory, &words), 1, &["a process is writing", "end it first"]);
    drop(recovered);
    let first = &segments(&directory)[0];
    let mut bytes = fs::read(first).expect("it is there");
    bytes[100] ^= 1;
    fs::write(first, bytes).expect("it can be written");
    expect_refusal(&ask("archive", &directory, &words), 1, &["is damaged at byte", "weir journal repair"]);
    fs::write(CheckpointFile::Latest.path(&directory), b"anything").expect("it can be written");
    expect_refusal(&ask("archive", &directory, &words), 1, &["journals.checkpoint", "damaged"]);
    assert!(!to.exists() && first.exists());
}

/// The frames of the packets in a capture: the TCP ports and the payload of each with one.
fn payloads(capture: &[u8]) -> Vec<(u16, u16, Vec<u8>)> {
    assert_eq!(capture[..4], 0xa1b2_3c4d_u32.to_le_bytes());
    let (mut rest, mut found) = (&capture[24..], Vec::new());
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[8..12].try_into().expect("four bytes")) as usize;
        let packet = &rest[16..16 + length];
        let port = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
        if length > 40 {
            found.push((port(20), port(22), packet[40..].to_vec()));
        }
        rest = &rest[16 + length..];
    }
    found
}

#[test]
fn messages_are_exported_as_packets_with_the_numbers_of_each_session() {
    let folder = folder("journal-export");
    let (directory, path) = (folder.join("journal"), folder.join("day.pcap"));
    written(&directory, 3, false);
    let said = ask("export", &directory, &["--pcap", shown(&path)]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{}", said.stdout);
    assert!(said.stdout.contains("in 3 connections"), "{}", said.stdout);
    let found = payloads(&fs::read(&path).expect("it is there"));
    let to_gateway: Vec<_> = found.iter().filter(|(_, to, _)| *to == 7001).collect();
    assert_eq!(to_gateway.len(), 3);
    assert_eq!(to_gateway[0].2[3..], order(), "as the client has sent it");
    let to_venue: Vec<_> = found.iter().filter(|(_, to, _)| *to == 7002).collect();
    let mut sent = order();
    set_inbound_user_ref_num(&mut sent, 1001);
    assert_eq!((to_venue.len(), &to_venue[0].2[2..3], &to_venue[0].2[3..]), (3, &b"U"[..], &sent[..]));
    // From the exchange: a login accepted, and then its messages, with its own numbers.
    let of_venue: Vec<_> = found.iter().filter(|(from, _, _)| *from == 7002).map(|it| it.2[2]).collect();
    assert_eq!(of_venue, b"ASSS");
    let of_gateway: Vec<_> = found.iter().filter(|(from, _, _)| *from == 7001).map(|it| it.2[2]).collect();
    assert_eq!(of_gateway, b"ASASS", "each of the two clients has its own stream");
    expect_refusal(&ask("export", &directory, &["--pcap", shown(&path)]), 2, &["--pcap", "exists already"]);
    // One client alone, to a pipe.
    let piped = folder.join("piped");
    let line = format!(
        "$WEIR journal export {} --pcap - --account C00002 | cat > {}",
        directory.display(),
        piped.display()
    );
    let said = shell(&line);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
    let found = payloads(&fs::read(&piped).expect("it is there"));
    let clients: Vec<_> = found.iter().filter(|(_, to, _)| *to == 7001).collect();
    assert_eq!(clients.len(), 2, "C00002 has sent the first and the third order");
    // A damaged journal is exported up to the damage.
    let damaged = folder.join("damaged");
    fs::create_dir(&damaged).expect("it can be made");
    written(&damaged.join("journal"), 60, false);
    let first = &segments(&damaged.join("journal"))[1];
    let mut bytes = fs::read(first).expect("it is there");
    bytes[100] ^= 1;
    fs::write(first, bytes).expect("it can be written");
    let part = damaged.join("part.pcap");
    let said = ask("export", &damaged.join("journal"), &["--pcap", shown(&part)]);
    expect_refusal(&said, 1, &["is damaged at byte", "weir journal repair"]);
    assert!(!payloads(&fs::read(&part).expect("it is there")).is_empty());
    let missing = folder.join("none").join("day.pcap");
    expect_refusal(&ask("export", &directory, &["--pcap", shown(&missing)]), 1, &["--pcap", "No such file"]);
    let names: Vec<_> =
        fs::read_dir(&*folder).expect("it is there").map(|it| it.expect("one").file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().contains("partial")), "{names:?}");
}

#[test]
fn a_capture_is_read_by_the_dissector_of_soupbintcp() {
    if Command::new("tshark").arg("--version").output().is_err() {
        println!("skipped: tshark is not installed, which reads captures");
        return;
    }
    let folder = folder("journal-tshark");
    let (directory, path) = (folder.join("journal"), folder.join("day.pcap"));
    written(&directory, 3, false);
    let said = ask("export", &directory, &["--pcap", shown(&path)]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let read = Command::new("tshark")
        .args(["-r", shown(&path), "-d", "tcp.port==7001,soupbintcp", "-d", "tcp.port==7002,soupbintcp"])
        .args(["-Y", "soupbintcp", "-T", "fields", "-e", "tcp.dstport"])
        .args(["-e", "_ws.col.Info", "-e", "frame.time_epoch"])
        .args(["-o", "tcp.check_checksum:TRUE"])
        .output()
        .expect("it runs");
    let (text, errors) = (String::from_utf8_lossy(&read.stdout), String::from_utf8_lossy(&read.stderr));
    assert!(read.status.success(), "{errors}");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    // An order to the gateway, the same to the exchange, and back: the login that was accepted, and the answer.
    assert_eq!(rows.len(), 15, "{text}{errors}");
    for (row, port) in rows.iter().zip(["7001", "7002"]) {
        assert_eq!(row[..], [port, "Unsequenced Data", "1.000000000"], "{text}");
    }
    let sequenced: Vec<&str> =
        rows.iter().filter_map(|row| row[1].strip_prefix("Sequenced Data, SeqNum = ")).collect();
    assert_eq!(sequenced, ["1", "1", "1", "2", "2", "3"], "client, exchange, …: {text}");
}
