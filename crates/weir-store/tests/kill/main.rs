//! A writer killed with SIGKILL at seeded moments: every block it reported as stored is there, and the file is whole.
//!
//! The program starts itself again as the writer. The writer prints a block's number once the block is stored. The
//! reader of those lines kills it after a seeded number of lines, which is during a later block.

#[path = "../it/fixture.rs"]
mod fixture;

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
};

use weir_store::Store;

const KILLS: u64 = 20;
const SEED: u64 = 2;

fn main() {
    let mut arguments = env::args_os().skip(1);
    if arguments.next().is_some_and(|word| word == "write") {
        let folder = arguments.next().expect("the writer is told its folder");
        return write(Path::new(&folder));
    }
    a_killed_writer_leaves_every_stored_block();
    say("a killed writer leaves every stored block ... ok");
}

fn write(folder: &Path) {
    let mut store = Store::open(folder).expect("a killed store opens");
    let first = store.blocks().expect("blocks").len();
    let session = store.begin_session().expect("a session begins");
    for number in first.. {
        let number = u32::try_from(number).expect("few blocks");
        store.append_block(session, &fixture::block(number, 0), 1).expect("a block is stored");
        say(&number.to_string());
    }
}

fn a_killed_writer_leaves_every_stored_block() {
    say(&format!("seed {SEED}"));
    let folder = fixture::fresh_folder("kill");
    Store::create(&folder, &fixture::study()).expect("a fresh folder takes a store");
    let program = env::current_exe().expect("this program has a path");
    let mut stored = 0;
    for kill in 0..KILLS {
        let mut writer = Command::new(&program)
            .arg("write")
            .arg(&folder)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the writer starts");
        let lines = BufReader::new(writer.stdout.take().expect("its output is a pipe")).lines();
        let wanted = 1 + (SEED + kill).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 5;
        let reported =
            lines.take(wanted as usize).last().expect("it stores a block").expect("its output is text");
        writer.kill().expect("it can be killed");
        writer.wait().expect("it can be reaped");

        let store = Store::open_read_only(&folder).expect("a killed store can be read");
        store.check_integrity().expect("a killed store is whole");
        let blocks = store.blocks().expect("blocks");
        let reported: usize = reported.parse().expect("it prints numbers");
        assert!(blocks.len() > reported, "kill {kill}: {} blocks, {reported} was reported", blocks.len());
        for (number, block) in (0..).zip(&blocks) {
            assert_eq!(*block, fixture::block(number, 0), "kill {kill}");
        }
        assert!(blocks.len() > stored, "kill {kill} lost blocks");
        stored = blocks.len();
    }
}

fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}").and_then(|()| output.flush()).expect("standard output takes a line");
}
