//! The programs that are recorded, each with an input that a seed makes: some that compute, one that starts an
//! interpreter, one that keeps a database in memory, and a server with its client.

use std::{fmt::Write, fs, path::Path, process::Command};

use weir_stats::random::Random;

use crate::weir_program::output_of;

/// All of them.
pub const NAMES: [&str; 5] = ["sort", "gzip", "sqlite", "python", "server"];

/// Lines that are sorted.
const LINES: usize = 100_000;

/// Bytes that are compressed: some tens of milliseconds.
const BYTES: usize = 1 << 19;

/// A program with its words.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    pub name: &'static str,
    /// As `weir compare` takes it.
    pub command: String,
}

impl Program {
    /// Makes its input in a folder, where it is to run.
    pub fn prepare(name: &'static str, folder: &Path, seed: u64) -> Result<Self, String> {
        let mut random = Random::seeded(seed);
        let (file, input, command) = match name {
            "sort" => ("lines.txt", lines(&mut random), "sort lines.txt".to_owned()),
            "gzip" => ("bytes.txt", bytes(&mut random), "gzip -c -6 bytes.txt".to_owned()),
            "sqlite" => ("query.sql", QUERY.to_owned(), sqlite()?),
            "python" => ("work.py", SCRIPT.to_owned(), format!("{} work.py", python()?)),
            _ => ("serve.py", SERVER.to_owned(), format!("{} serve.py", python()?)),
        };
        fs::write(folder.join(file), input).map_err(|error| format!("{file}: {error}"))?;
        Ok(Self { name, command })
    }
}

fn lines(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..LINES {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{:016x} {}", random.next_u64(), random.below(1_000));
    }
    text
}

/// Text of a few words, so that it is worth compressing.
fn bytes(random: &mut Random) -> String {
    const WORDS: [&str; 16] = [
        "order", "book", "price", "level", "session", "request", "reply", "buffer", "socket", "driver",
        "queue", "timer", "slice", "round", "pair", "command",
    ];
    let mut text = String::with_capacity(BYTES + 16);
    while text.len() < BYTES {
        let word = WORDS[random.below(WORDS.len() as u64) as usize];
        let _ = write!(text, "{word}{} ", random.below(100));
    }
    text
}

/// Rows by a recursive query, an index and a sum by group, all in memory.
const QUERY: &str = "\
CREATE TABLE t(a INTEGER, b INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
INSERT INTO t SELECT i * 7919 % 10007, i FROM n;
CREATE INDEX by_a ON t(a);
SELECT count(*), sum(s) FROM (SELECT a, sum(b) AS s FROM t GROUP BY a);
";

const SCRIPT: &str = "\
counts = {}
for number in range(40000):
    key = str(number * 7919 % 4099)
    counts[key] = counts.get(key, 0) + len(key)
print(sum(counts.values()))
";

/// A server in one process and its client in the other, with a number of messages back and forth.
const SERVER: &str = "\
import os, socket
listener = socket.create_server(('127.0.0.1', 0))
if os.fork() == 0:
    peer, _ = listener.accept()
    while data := peer.recv(4096):
        peer.sendall(data)
    os._exit(0)
client = socket.create_connection(listener.getsockname())
for _ in range(1200):
    client.sendall(b'x' * 64)
    left = 64
    while left:
        left -= len(client.recv(left))
client.close()
os.wait()
";

fn sqlite() -> Result<String, String> {
    output_of(Command::new("sqlite3").arg("--version"))?;
    Ok("sqlite3 :memory: '.read query.sql'".to_owned())
}

/// The interpreter itself: what is called `python3` may be a script that looks for it.
fn python() -> Result<String, String> {
    output_of(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_inputs() {
        let of = |seed| (lines(&mut Random::seeded(seed)), bytes(&mut Random::seeded(seed)));
        assert_eq!(of(3), of(3));
        assert_ne!(of(3), of(4));
        let (lines, bytes) = of(3);
        assert_eq!(lines.lines().count(), LINES);
        assert!((BYTES..BYTES + 16).contains(&bytes.len()));
    }
}
