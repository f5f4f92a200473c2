//! The statistics socket: an abstract Unix socket that answers every line with the server's counters as one line of
//! JSON (`docs/formats/server-stats.md`). A separate thread serves it. The thread only reads, and switches the
//! workers' clock. An abstract name has no permissions, so the kernel is asked for the reader's user: only the
//! server's own user and root get an answer.

use std::{
    io::{self, BufRead, BufReader, Write},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener, UnixStream},
    },
    sync::Arc,
    thread,
    time::Duration,
};

use rustix::process::{Uid, geteuid};
use weir_engine::serve::ServerControl;
use weir_record::engine::{CLOCK_OFF, CLOCK_ON, ServerStats};
use weir_sys::peer;

use crate::thread_per_connection::{CallerSlot, talk_to_each};

/// Adds a server's own data, besides the engine's counters, to each answer.
pub type NodeSource = Arc<dyn Fn(&mut ServerStats) + Send + Sync>;

/// Most readers at a time. A further one replaces the one that has been idle for longest.
const READERS_MAX: usize = 16;

/// Name of its threads.
const THREAD: &str = "weir-stats";

/// How long a reader may leave an answer unread.
const WRITE_LIMIT: Duration = Duration::from_secs(1);

/// Longest line a reader may send.
const LINE_BYTES_MAX: u64 = 4096;

/// A bound statistics socket. Readers may connect before there is a server; they are answered once there is one.
#[derive(Debug)]
pub struct StatsSocket {
    listener: UnixListener,
}

impl StatsSocket {
    /// Binds the name.
    ///
    /// # Errors
    /// `InvalidInput` if the name is not of the form `@name` or is too long; the errors of binding, usually that the
    /// name is in use.
    pub fn bind(name: &str) -> io::Result<Self> {
        let bare = name.strip_prefix('@').filter(|bare| !bare.is_empty()).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "a statistics socket is an abstract name")
        })?;
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(bare)?)?;
        Ok(Self { listener })
    }

    /// Starts answering, for as long as the process lives. Without `node`, the answers contain only the engine's
    /// counters.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn answer(self, control: ServerControl, node: Option<NodeSource>) -> io::Result<()> {
        self.answer_by(Arc::new(move |asked: &str| {
            match asked {
                CLOCK_ON => control.time_calls(true),
                CLOCK_OFF => control.time_calls(false),
                _ => {}
            }
            let mut stats = of_server(&control);
            if let Some(node) = &node {
                node(&mut stats);
            }
            stats
        }))
    }

    fn answer_by(self, answers: Answers) -> io::Result<()> {
        let is_ours = |reader: &UnixStream| {
            peer::credentials(reader).is_ok_and(|peer| may_read(Uid::from_raw(peer.uid), geteuid()))
        };
        let talk = move |reader: UnixStream, slot: &CallerSlot| {
            // A reader that disconnects is not an error.
            let _ = answer(reader, &answers, slot);
        };
        let run = move || talk_to_each(&self.listener, (THREAD, READERS_MAX), is_ours, talk);
        thread::Builder::new().name(THREAD.into()).spawn(run).map(drop)
    }
}

/// The engine's counters as a record, without additions.
pub(crate) fn of_server(control: &ServerControl) -> ServerStats {
    let engine = control.stats();
    ServerStats {
        driver: control.driver().name().into(),
        total: engine.total,
        workers: engine.workers,
        node: None,
        files: None,
    }
}

/// The answer to a line.
type Answers = Arc<dyn Fn(&str) -> ServerStats + Send + Sync>;

/// Whether this user may read the statistics of a server that runs as `own`: the statistics name accounts and count
/// their orders.
fn may_read(reader: Uid, own: Uid) -> bool {
    reader == own || reader.is_root()
}

fn answer(stream: UnixStream, answers: &Answers, slot: &CallerSlot) -> io::Result<()> {
    stream.set_write_timeout(Some(WRITE_LIMIT))?;
    let mut output = stream.try_clone()?;
    let mut input = BufReader::new(stream);
    let mut line = String::new();
    loop {
        line.clear();
        if io::Read::take(&mut input, LINE_BYTES_MAX).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut text = slot.answer(|| serde_json::to_string(&answers(line.trim_end())))?;
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

    #[test]
    fn readers_that_ask_no_more_make_room_for_one_that_does() {
        let name = format!("weir-stats-test-{}", std::process::id());
        let socket = StatsSocket::bind(&format!("@{name}")).expect("the name is free");
        socket.answer_by(Arc::new(|_: &str| ServerStats::default())).expect("there is a thread");
        let address = SocketAddr::from_abstract_name(&name).expect("it is short");
        let connect = || BufReader::new(UnixStream::connect_addr(&address).expect("it listens"));
        let ask = |reader: &mut BufReader<UnixStream>| {
            reader.get_mut().write_all(b"\n")?;
            let mut line = String::new();
            reader.read_line(&mut line)
        };
        let mut first = connect();
        assert!(ask(&mut first).expect("it is answered") > 0);
        let mut silent: Vec<_> = (1..READERS_MAX).map(|_| connect()).collect();
        // Once, so that all have been admitted.
        assert!(silent.iter_mut().all(|reader| ask(reader).is_ok_and(|bytes| bytes > 0)));
        assert!(ask(&mut first).expect("it is answered") > 0, "it is the one that asked last");
        let mut late = connect();
        assert!(ask(&mut late).expect("it is answered") > 0);
        assert!(ask(&mut first).expect("it is answered") > 0, "it keeps its place");
        let mut line = String::new();
        assert_eq!(silent[0].read_line(&mut line).expect("it is closed"), 0, "it was silent for longest");
        let mut many: Vec<_> = (0..3 * READERS_MAX).map(|_| connect()).collect();
        assert!(ask(many.last_mut().expect("there are some")).expect("it is answered") > 0);
    }
}
