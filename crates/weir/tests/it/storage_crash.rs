//! Blocks that `weir storage run --verify` wrote, after the program was killed and after the power was cut: every
//! acknowledged block is there, and missing ones are detected.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::Path,
    process::Command,
};

use rustix::process::Signal;
use weir_record::storage::{StorageJobReport, StorageReport};

use super::{
    harness::{PATIENCE, Running, Said, expect_refusal, folder, shown, weir},
    storage::until_it_measures,
};

const BLOCK: u64 = 4096;
const BLOCKS: u64 = 256;
const LEDGER_HEADER: u64 = 4096;

/// The words of a job over a file of 256 blocks, without its operation.
fn job<'a>(file: &'a Path, ledger: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let words = ["storage", "run", "--file", shown(file), "--size", "1m", "--rw", "randwrite", "--ledger"];
    [&words[..], &[shown(ledger), "--engine", "threads", "--depth", "4"], more].concat()
}

/// Writes until it is measuring, and is then killed.
fn write_and_die(words: &[&str]) {
    let mut running = Running::weir(&[words, &["--verify", "--runtime", "10min"]].concat());
    until_it_measures(&running);
    running.signal(Signal::KILL);
    running.wait(PATIENCE);
}

fn check(words: &[&str]) -> (Said, StorageJobReport) {
    let said = weir(&[words, &["--verify-only", "--json"]].concat());
    let value: serde_json::Value =
        serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {}", said.stderr));
    let mut report: StorageReport = serde_json::from_value(value["weir"].clone()).expect("our own report");
    (said, report.jobs.remove(0))
}

/// Writes begun and acknowledged, of each block.
fn entries(ledger: &Path) -> Vec<(u32, u32)> {
    let bytes = fs::read(ledger).expect("it is there");
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    let entry = |entry: &[u8]| (word(&entry[..4]), word(&entry[4..]));
    bytes[LEDGER_HEADER as usize..].chunks(8).map(entry).collect()
}

#[test]
fn a_killed_run_has_left_every_block_that_was_acknowledged() {
    let folder = folder("storage-killed");
    let (file, ledger) = (folder.join("data"), folder.join("ledger"));
    let words = job(&file, &ledger, &["--direct=off"]);
    write_and_die(&words);
    let entries = entries(&ledger);
    assert_eq!(entries.len() as u64, BLOCKS);
    let acknowledged = entries.iter().filter(|(_, acknowledged)| *acknowledged > 0).count() as u64;
    let never_written = entries.iter().filter(|(begun, _)| *begun == 0).count() as u64;

    let (said, found) = check(&words);
    assert_eq!(said.code, Some(0), "{}", said.stdout);
    assert!(acknowledged > 0 && found.verified_blocks + 4 >= acknowledged, "{acknowledged}: {found:?}");
    assert_eq!((found.verify_failures, found.never_written_blocks), (0, never_written));
    assert_eq!(found.verified_blocks + found.unacknowledged_blocks + never_written, BLOCKS);

    let is_quiet = |(begun, acknowledged): &(u32, u32)| *acknowledged > 0 && begun == acknowledged;
    let block = entries.iter().position(is_quiet).expect("four of 256 were in flight") as u64;
    let place = block * BLOCK + 1000;
    let data = File::options().read(true).write(true).open(&file).expect("ours");
    let mut byte = [0];
    data.read_exact_at(&mut byte, place).expect("it is there");
    data.write_all_at(&[byte[0] ^ 1], place).expect("ours");
    let (said, found) = check(&words);
    assert_eq!((said.code, found.verify_failures, found.failed), (Some(1), 1, true), "{}", said.stdout);
    assert!(
        said.stdout.contains(&format!("the block at {} is wrong: checksum", block * BLOCK)),
        "{}",
        said.stdout
    );
    let table = weir(&[&words[..], &["--verify-only"]].concat()).stdout;
    assert!(table.contains("1 wrong (FAILED") && table.contains("never acknowledged"), "{table}");
}

#[test]
fn a_ledger_goes_with_its_job_alone_and_is_not_overwritten() {
    let folder = folder("storage-ledger");
    let (file, ledger) = (folder.join("data"), folder.join("ledger"));
    let words = job(&file, &ledger, &[]);
    let said = weir(&[&words[..], &["--verify", "--once", "--json"]].concat());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let again = weir(&[&words[..], &["--verify", "--once"]].concat());
    expect_refusal(&again, 2, &["the ledger", "exists", "--verify-only"]);
    let other = weir(&[&words[..], &["--verify-only", "--seed", "7"]].concat());
    expect_refusal(&other, 2, &["--seed 1", "--seed 7"]);
    expect_refusal(&weir(&words), 2, &["--ledger", "--verify"]);
    let (said, found) = check(&words);
    assert_eq!((said.code, found.verified_blocks), (Some(0), BLOCKS), "{}", said.stdout);
    fs::remove_file(&file).expect("ours");
    let gone = weir(&[&words[..], &["--verify-only"]].concat());
    expect_refusal(&gone, 1, &["cannot open", "data"]);
}

#[test]
fn a_second_run_on_a_file_is_refused_until_the_first_one_ends() {
    let folder = folder("storage-second");
    let file = folder.join("data");
    fs::write(&file, vec![7; 1 << 20]).expect("a file can be written");
    let words = ["storage", "run", "--file", shown(&file), "--engine", "pread"];
    let mut running = Running::weir(&[&words[..], &["--runtime", "10min"]].concat());
    until_it_measures(&running);
    let second = weir(&[&words[..], &["-n", "1", "--share"]].concat());
    expect_refusal(&second, 2, &[shown(&file), "in use by another run", "process"]);
    running.signal(Signal::KILL);
    running.wait(PATIENCE);
    let share = [&words[..], &["--share"]].concat();
    let running = Running::weir(&[&share[..], &["--runtime", "10min"]].concat());
    until_it_measures(&running);
    let beside = weir(&[&share[..], &["-n", "1"]].concat());
    assert_eq!(beside.code, Some(0), "{}", beside.stderr);
    expect_refusal(&weir(&[&words[..], &["-n", "1"]].concat()), 2, &["in use by another run", "--share"]);
}

/// A small disk with a separate file system that can lose its power: data that were not made durable are gone then.
struct CutDisk<'a> {
    image: &'a Path,
    at: &'a Path,
}

impl<'a> CutDisk<'a> {
    /// Prints why there is none.
    fn make(image: &'a Path, at: &'a Path) -> Result<Self, &'static str> {
        let runs = |program: &str, words: &[&str]| {
            Command::new(program).args(words).output().is_ok_and(|output| output.status.success())
        };
        File::create(image).and_then(|file| file.set_len(32 << 20)).expect("a file can be made");
        fs::create_dir(at).expect("a folder can be made");
        if !runs("python3", &["-c", "import fcntl"]) {
            return Err("cutting the power of a file system needs python3, for its ioctl");
        }
        if !runs("mkfs.ext4", &["-q", shown(image)]) {
            return Err("a file system that can be cut off needs mkfs.ext4");
        }
        let disk = Self { image, at };
        if disk.mount() { Ok(disk) } else { Err("mounting a disk needs root and a loop device") }
    }

    fn mount(&self) -> bool {
        let words = ["-o", "loop", shown(self.image), shown(self.at)];
        Command::new("mount").args(words).output().is_ok_and(|output| output.status.success())
    }

    fn unmount(&self) -> bool {
        Command::new("umount").arg(self.at).status().is_ok_and(|status| status.success())
    }

    /// `EXT4_IOC_SHUTDOWN` without a flush of the log: from now on nothing reaches the disk.
    fn cut_power(&self) {
        let program = "import fcntl, os, struct, sys\n\
                       fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587d, struct.pack('I', 2))";
        let cut = Command::new("python3").args(["-c", program, shown(self.at)]).status();
        assert!(cut.expect("python3 starts").success());
        assert!(self.unmount(), "nothing has an open file there");
        // A mount namespace that began meanwhile still has the dead file system, and a loop device is shared by all
        // mounts of one file. The next mount has a file with the same content.
        let copy = self.image.with_extension("copy");
        fs::copy(self.image, &copy).and_then(|_| fs::rename(&copy, self.image)).expect("it can be copied");
        assert!(self.mount(), "its log is replayed");
    }
}

impl Drop for CutDisk<'_> {
    fn drop(&mut self) {
        // If it fails, it stays until the system's next start.
        self.unmount();
    }
}

#[test]
fn after_a_cut_of_power_what_was_synced_is_there_and_what_was_not_is_missed() {
    let folder = folder("storage-power");
    let (image, at) = (folder.join("image"), folder.join("disk"));
    let disk = match CutDisk::make(&image, &at) {
        Ok(disk) => disk,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let file = at.join("data");
    let first = [
        "storage",
        "run",
        "--file",
        shown(&file),
        "--size",
        "1m",
        "--rw",
        "write",
        "--once",
        "--fsync",
        "256",
    ];
    assert_eq!(weir(&first).code, Some(0));
    File::open(&file).and_then(|file| file.sync_all()).expect("it can be synced");

    let ledger = folder.join("synced");
    let words = job(&file, &ledger, &["--direct=off", "--fsync", "8"]);
    write_and_die(&words);
    disk.cut_power();
    let (said, found) = check(&words);
    assert_eq!(said.code, Some(0), "{}", said.stdout);
    assert!(found.verified_blocks > 0 && found.verify_failures == 0, "{found:?}");

    // Without an fsync the page cache acknowledges blocks that are on no disk.
    let ledger = folder.join("cached");
    let words = job(&file, &ledger, &["--direct=off"]);
    write_and_die(&words);
    disk.cut_power();
    let (said, found) = check(&words);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    assert!(found.verify_failures > 0, "{found:?}");
    assert!(said.stdout.contains("another run") || said.stdout.contains("is lost"), "{}", said.stdout);
}
