//! The statistics socket: an abstract Unix socket that answers every line with the server's counters as one line of
//! JSON (`docs/formats/server-stats.md`). Served by a thread of its own, which only reads and switches the workers'
//! clock. An abstract name has no permissions, so the kernel is asked who reads: only the server's own user, and root,
//! get an answer.

use std::{
    io::{self, BufRead, BufReader, Write},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener, UnixStream},
    },
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::{
    net::sockopt::socket_peercred,
    process::{Uid, geteuid},
};
use weir_engine::serve::ServerControl;
use weir_record::engine::{CLOCK_OFF, CLOCK_ON, ServerStats};

/// What a server has to say about itself beside the engine's counters; adds it to each answer.
pub type NodeSource = Arc<dyn Fn(&mut ServerStats) + Send + Sync>;

/// Readers at a time; more are closed at once.
const READERS_MAX: usize = 16;

/// Longest line a reader may send.
const LINE_BYTES_MAX: u64 = 4096;

/// How long accepting rests after an error, such as descriptors having run out.
const REST: Duration = Duration::from_millis(20);

/// A bound statistics socket. Readers may connect; they are answered once there is a server.
#[derive(Debug)]
pub struct StatsSocket {
    listener: UnixListener,
}

impl StatsSocket {
    /// Takes the name.
    ///
    /// # Errors
    /// `InvalidInput` when the name is not of the form `@name` or is too long; those of binding, mostly that the name
    /// is in use.
    pub fn bind(name: &str) -> io::Result<Self> {
        let bare = name.strip_prefix('@').filter(|bare| !bare.is_empty()).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "a statistics socket is an abstract name")
        })?;
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(bare)?)?;
        Ok(Self { listener })
    }

    /// Starts answering, for as long as the process lives. What `node` does not add, there is not.
    ///
    /// # Errors
    /// When no thread can be had.
    pub fn answer(self, control: ServerControl, node: Option<NodeSource>) -> io::Result<()> {
        let accept = move || accept(&self.listener, &control, node.as_ref());
        thread::Builder::new().name("weir-stats".into()).spawn(accept).map(drop)
    }
}

fn accept(listener: &UnixListener, control: &ServerControl, node: Option<&NodeSource>) {
    let readers = Arc::new(AtomicUsize::new(0));
    for reader in listener.incoming() {
        let Ok(reader) = reader else {
            thread::park_timeout(REST);
            continue;
        };
        if !socket_peercred(&reader).is_ok_and(|peer| may_read(peer.uid, geteuid())) {
            continue;
        }
        if readers.fetch_add(1, Ordering::Relaxed) >= READERS_MAX {
            readers.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (control, node, open) = (control.clone(), node.cloned(), Arc::clone(&readers));
        let answer = move || {
            // A reader that breaks off is not our concern.
            let _ = answer(reader, &control, node.as_ref());
            open.fetch_sub(1, Ordering::Relaxed);
        };
        if thread::Builder::new().name("weir-stats".into()).spawn(answer).is_err() {
            readers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Whether this user may read the statistics of a server of `own`: they name accounts and count their orders.
fn may_read(reader: Uid, own: Uid) -> bool {
    reader == own || reader.is_root()
}

fn answer(stream: UnixStream, control: &ServerControl, node: Option<&NodeSource>) -> io::Result<()> {
    let mut output = stream.try_clone()?;
    let mut input = BufReader::new(stream);
    let mut line = String::new();
    loop {
        line.clear();
        if io::Read::take(&mut input, LINE_BYTES_MAX).read_line(&mut line)? == 0 {
            return Ok(());
        }
        match line.trim_end() {
            CLOCK_ON => control.time_calls(true),
            CLOCK_OFF => control.time_calls(false),
            _ => {}
        }
        let mut stats = control.stats();
        if let Some(node) = node {
            node(&mut stats);
        }
        let mut text = serde_json::to_string(&stats)?;
        text.push('\n');
        output.write_all(text.as_bytes())?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_user_and_root_may_read_and_nobody_else() {
        let [root, own, other] = [0, 1_000, 1_001].map(Uid::from_raw);
        assert!(may_read(own, own) && may_read(root, own) && may_read(root, root));
        assert!(!may_read(other, own) && !may_read(own, root));
    }
}
