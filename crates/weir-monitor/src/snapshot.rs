//! Reading all targets at one moment.
//!
//! The question goes to every socket before the first answer is read, so that the answers belong to one moment as
//! nearly as processes allow; threads are read right after. A target that does not answer in time has a gap in this
//! snapshot, is connected anew in the next one, and never delays the others by more than its share.

use std::{
    io::{self, BufRead, BufReader, Write},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixStream},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use weir_evidence::process::{ProcessSample, ProcessTree};
use weir_record::engine::ServerStats;

use crate::target::{self, Target};

/// Longest wait for one answer.
const ANSWER_MAX: Duration = Duration::from_millis(400);

/// Longest answer; a thousand sessions take some hundred kilobytes.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// What was read of all targets at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The moment, on a clock that never jumps.
    pub at_ns: u64,
    /// The same as people tell the time, in seconds since 1970.
    pub unix_s: u64,
    /// One for each target, in their order.
    pub nodes: Vec<Reading>,
}

/// What was read of one target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// What it serves, as known without asking.
    pub name: String,
    /// Process number, as far as it is known.
    pub pid: Option<u32>,
    /// User it belongs to.
    pub uid: Option<u32>,
    /// Whether it has a socket to be asked at.
    pub has_socket: bool,
    /// Its counters; absent when it did not answer.
    pub stats: Option<ServerStats>,
    /// Its threads; absent when it is gone or not known.
    pub process: Option<ProcessSample>,
}

/// Asks the same targets again and again.
#[derive(Debug)]
pub struct Monitor {
    targets: Vec<Watched>,
    began: Instant,
}

#[derive(Debug)]
struct Watched {
    target: Target,
    stream: Option<BufReader<UnixStream>>,
}

impl Monitor {
    /// A monitor of these.
    pub fn new(targets: Vec<Target>) -> Self {
        let targets = targets.into_iter().map(|target| Watched { target, stream: None }).collect();
        Self { targets, began: Instant::now() }
    }

    /// How many are watched.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there is nobody to watch.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Reads all of them.
    pub fn snapshot(&mut self) -> Snapshot {
        for watched in &mut self.targets {
            watched.ask();
        }
        let at_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let nodes = self.targets.iter_mut().map(Watched::read).collect();
        Snapshot { at_ns, unix_s, nodes }
    }
}

impl Watched {
    /// Sends the question; a connection that is gone is made anew.
    fn ask(&mut self) {
        let Some(socket) = &self.target.socket else { return };
        for _ in 0..2 {
            if self.stream.is_none() {
                self.stream = connect(socket).ok().map(BufReader::new);
            }
            if self.stream.as_mut().is_none_or(|stream| stream.get_mut().write_all(b"\n").is_ok()) {
                return;
            }
            self.stream = None;
        }
    }

    fn read(&mut self) -> Reading {
        let stats = self.stream.as_mut().and_then(|stream| answer(stream).ok());
        if stats.is_none() {
            // An answer that comes late must not pass for that of the next question.
            self.stream = None;
        }
        if let Some(node) = stats.as_ref().and_then(|stats| stats.node.as_ref()).filter(|node| node.pid > 0) {
            self.target.pid = Some(node.pid);
        }
        let process = self.target.pid.and_then(|pid| {
            ProcessTree::snapshot(pid).ok().and_then(|tree| tree.processes.into_iter().next())
        });
        Reading {
            name: self.target.name.clone(),
            pid: self.target.pid,
            uid: self.target.pid.and_then(target::owner),
            has_socket: self.target.socket.is_some(),
            stats,
            process,
        }
    }
}

fn connect(socket: &str) -> io::Result<UnixStream> {
    let address = SocketAddr::from_abstract_name(socket.trim_start_matches('@'))?;
    let stream = UnixStream::connect_addr(&address)?;
    stream.set_write_timeout(Some(ANSWER_MAX))?;
    Ok(stream)
}

/// Reads one answer: a line of at most [`ANSWER_BYTES_MAX`], all of it within [`ANSWER_MAX`] however it trickles in.
fn answer(stream: &mut BufReader<UnixStream>) -> io::Result<ServerStats> {
    let until = Instant::now() + ANSWER_MAX;
    let mut line = Vec::new();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.get_ref().set_read_timeout(Some(left))?;
        let input = stream.fill_buf()?;
        let end = input.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(input.len(), |at| at + 1);
        line.extend_from_slice(&input[..taken]);
        stream.consume(taken);
        if taken == 0 || line.len() > ANSWER_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if end.is_some() {
            return parse(&line);
        }
    }
}

/// What a line of an answer says.
pub(crate) fn parse(line: &[u8]) -> io::Result<ServerStats> {
    serde_json::from_slice(line).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::{os::unix::net::UnixListener, thread};

    use super::*;

    /// A server of statistics that answers as often as it is told and then closes.
    fn serve(name: &str, answers: Vec<&'static str>) -> thread::JoinHandle<()> {
        let address = SocketAddr::from_abstract_name(name).expect("a name");
        let listener = UnixListener::bind_addr(&address).expect("the name is free");
        thread::spawn(move || {
            let (stream, _) = listener.accept().expect("the monitor connects");
            let mut output = stream.try_clone().expect("a descriptor");
            let mut input = BufReader::new(stream);
            for answer in answers {
                let mut line = String::new();
                if input.read_line(&mut line).expect("a question") == 0 {
                    return;
                }
                output.write_all(answer.as_bytes()).expect("it is read");
            }
        })
    }

    #[test]
    fn an_answer_that_trickles_in_is_not_waited_for() {
        let (ours, mut theirs) = UnixStream::pair().expect("two descriptors");
        let is_over = std::sync::atomic::AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                // A byte now and then: each comes within the limit, the line never.
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    thread::park_timeout(ANSWER_MAX / 8);
                    theirs.write_all(b" ").expect("it is read");
                }
            });
            let began = Instant::now();
            let kind =
                answer(&mut BufReader::new(ours.try_clone().expect("a descriptor"))).map_err(|it| it.kind());
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(matches!(kind, Err(io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)), "{kind:?}");
            assert!(began.elapsed() >= ANSWER_MAX);
        });
    }

    #[test]
    fn a_target_that_goes_leaves_a_gap() {
        let name = format!("weir-monitor-test-{}", std::process::id());
        let own = std::process::id();
        let answer = r#"{"driver":"uring","total":{"receives":7},"workers":[],
                         "node":{"node":"GATEWAY","received":5}}"#
            .replace('\n', " ")
            + "\n";
        let server = serve(&name, vec![answer.leak(), "no json\n"]);
        let target = Target { pid: Some(own), socket: Some(format!("@{name}")), name: "GATEWAY".to_owned() };
        let mut monitor = Monitor::new(vec![target, Target { pid: Some(own), ..Target::default() }]);
        let first = monitor.snapshot();
        let stats = first.nodes[0].stats.as_ref().expect("it answered");
        assert_eq!(stats.node.as_ref().map(|node| node.received), Some(5));
        assert!(first.nodes[0].process.as_ref().is_some_and(|process| !process.threads.is_empty()));
        assert_eq!((first.nodes[1].has_socket, &first.nodes[1].stats), (false, &None));
        let second = monitor.snapshot();
        assert_eq!(second.nodes[0].stats, None, "what it says is no answer");
        server.join().expect("the server ends");
        let third = monitor.snapshot();
        assert_eq!((third.nodes[0].has_socket, &third.nodes[0].stats), (true, &None), "nobody is there");
        assert!(first.at_ns < second.at_ns && second.at_ns < third.at_ns);
    }
}
