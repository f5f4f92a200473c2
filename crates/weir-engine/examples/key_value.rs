//! A key-value store with a line protocol: `SET key value`, `GET key`, `DEL key`, each answered with a line.
//!
//! `cargo run -p weir-engine --example key_value -- 127.0.0.1:7007 uring`, then `nc 127.0.0.1 7007`. Its tests
//! (`cargo test -p weir-engine --example key_value`) run it on a simulated kernel.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program with a terminal")]

use std::{
    cell::RefCell,
    collections::{BTreeMap, btree_map::Entry},
    io,
    rc::Rc,
    time::Duration,
};

use weir_engine::{
    Config, Runtime,
    net::{Address, Listener, Stream},
    spawn,
    time::timeout,
};

/// Longest line, without its terminator.
const LINE_BYTES_MAX: usize = 4096;

/// Most keys in the store.
const KEYS_MAX: usize = 100_000;

/// An idle connection is closed after this long.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// The state that all connections share. They are tasks of one thread, so it needs no lock.
type Store = Rc<RefCell<BTreeMap<Vec<u8>, Vec<u8>>>>;

/// Answers one line.
fn answer(store: &Store, line: &[u8]) -> Vec<u8> {
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let (command, key, value) = (words.next(), words.next().filter(|key| !key.is_empty()), words.next());
    let mut store = store.borrow_mut();
    let has_room = store.len() < KEYS_MAX;
    match (command, key, value) {
        (Some(b"SET"), Some(key), Some(value)) => match store.entry(key.to_vec()) {
            Entry::Occupied(mut entry) => {
                entry.insert(value.to_vec());
                b"OK\n".to_vec()
            }
            Entry::Vacant(entry) if has_room => {
                entry.insert(value.to_vec());
                b"OK\n".to_vec()
            }
            Entry::Vacant(_) => b"ERROR the store is full\n".to_vec(),
        },
        (Some(b"GET"), Some(key), None) => match store.get(key) {
            Some(value) => [b"VALUE ", &value[..], b"\n"].concat(),
            None => b"NONE\n".to_vec(),
        },
        (Some(b"DEL"), Some(key), None) => match store.remove(key) {
            Some(_) => b"OK\n".to_vec(),
            None => b"NONE\n".to_vec(),
        },
        _ => b"ERROR use SET key value, GET key or DEL key\n".to_vec(),
    }
}

/// Serves one connection until it ends, is idle for too long, or sends a line that is too long.
///
/// A peer that sends and never reads is slowed down, and its answers are not buffered without limit: `send` waits
/// above the high-water mark, and meanwhile the connection is not read.
async fn serve(store: Store, stream: Stream) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        let Ok(received) = timeout(IDLE_MAX, stream.recv()).await else {
            return stream.send(&b"ERROR idle for too long\n"[..]).await;
        };
        let Some(bytes) = received? else { return Ok(()) };
        // A receive returns whatever has arrived: a part of a line, or many.
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_whole) = piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            if line.len() + text.len() > LINE_BYTES_MAX {
                return stream.send(&b"ERROR the line is too long\n"[..]).await;
            }
            line.extend_from_slice(text);
            if is_whole {
                stream.send(answer(&store, line.strip_suffix(b"\r").unwrap_or(&line))).await?;
                line.clear();
            }
        }
    }
}

/// Accepts connections forever.
async fn listen(address: &Address) -> io::Result<()> {
    let listener = Listener::bind(address, Default::default())?;
    let store = Store::default();
    loop {
        let stream = listener.accept().await?;
        let store = Rc::clone(&store);
        spawn(async move {
            if let Err(error) = serve(store, stream).await {
                eprintln!("a connection failed: {error}");
            }
        });
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:7007".into()).parse()?;
    let driver = arguments.next().unwrap_or_else(|| "auto".into()).parse()?;
    let runtime = Runtime::new(&Config { driver, ..Config::default() })?;
    eprintln!("listens on {address} with {}", runtime.driver());
    runtime.block_on(listen(&address))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use weir_engine::{Driver, SimOptions};

    use super::*;

    /// Runs a client against the store on a simulated kernel that delivers bytes late and in small parts.
    fn simulate<T>(seed: u64, client: impl AsyncFn(Stream) -> io::Result<T>) -> T {
        let sim = SimOptions { seed, short_per_mille: 300, ..SimOptions::default() };
        let config = Config { sim, ..Config::with_driver(Driver::Sim) };
        let runtime = Runtime::new(&config).expect("the simulator needs nothing of the machine");
        let outcome = runtime.block_on(async {
            let address: Address = "127.0.0.1:7007".parse().expect("an address");
            let to = address.clone();
            spawn(async move { listen(&to).await });
            weir_engine::time::yield_now().await;
            client(Stream::connect(&address).await?).await
        });
        outcome.unwrap_or_else(|error| panic!("seed {seed}: {error}"))
    }

    /// All bytes until the server closes, or until `count` bytes have arrived.
    async fn read(stream: &Stream, count: usize) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        while all.len() < count {
            match stream.recv().await? {
                Some(bytes) => all.extend_from_slice(&bytes),
                None => break,
            }
        }
        Ok(all)
    }

    #[test]
    fn answers_come_in_order_however_the_lines_are_cut() {
        let wanted: &[u8] =
            b"OK\nVALUE two words\nNONE\nOK\nNONE\nERROR use SET key value, GET key or DEL key\n";
        for seed in 0..200 {
            let answers = simulate(seed, async |stream| {
                stream.send(&b"SET a two words\r\nGET a\nGET b\nDEL a\nGET a\nWHAT\n"[..]).await?;
                read(&stream, wanted.len()).await
            });
            assert_eq!(String::from_utf8_lossy(&answers), String::from_utf8_lossy(wanted), "seed {seed}");
        }
    }

    #[test]
    fn a_line_of_the_longest_length_is_served_and_a_longer_one_ends_the_connection() {
        for (extra, last) in [(0, &b"OK\n"[..]), (1, b"ERROR the line is too long\n")] {
            let line = [b"SET a ", &vec![b'x'; LINE_BYTES_MAX - 6 + extra][..], b"\n"].concat();
            let answer = simulate(7, async |stream| {
                stream.send(line.clone()).await?;
                read(&stream, last.len()).await
            });
            assert_eq!(String::from_utf8_lossy(&answer), String::from_utf8_lossy(last));
        }
    }

    #[test]
    fn a_connection_that_says_nothing_is_closed_after_a_minute_of_virtual_time() {
        let (answer, waited) = simulate(1, async |stream| {
            let begin = weir_engine::time::now();
            let answer = read(&stream, usize::MAX).await?;
            Ok((answer, weir_engine::time::now().since(begin)))
        });
        assert_eq!(answer, b"ERROR idle for too long\n");
        // The server's timeout starts when it accepts, not when the client connects.
        assert!(waited.abs_diff(IDLE_MAX) < Duration::from_secs(1), "{waited:?}");
    }
}
