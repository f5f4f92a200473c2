//! Reads all targets at one moment.
//!
//! The request goes to every socket before the first answer is read, so that the answers belong to one moment as
//! nearly as possible; threads are read right after. A target that does not answer in time has a gap in this
//! snapshot, is reconnected in the next one, and never delays the others by more than its share.

use std::{
    io::{self, BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use rustix::{
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with},
    process::geteuid,
};
use weir_evidence::process::{ProcessSample, ProcessTree};
use weir_record::engine::ServerStats;
use weir_report::{Language, localized};
use weir_sys::peer;

use crate::target::{self, Socket, Target};

/// Longest wait for one answer.
const ANSWER_MAX: Duration = Duration::from_millis(400);

/// Longest answer; a thousand sessions need some hundred kilobytes.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Readings of all targets at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The moment, on a monotonic clock.
    pub at_ns: u64,
    /// The same moment in seconds since 1970.
    pub unix_s: u64,
    /// One for each target, in their order.
    pub nodes: Vec<Reading>,
}

/// The reading of one target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// What it serves, as known without its answer.
    pub name: String,
    /// Process number, as far as it is known.
    pub pid: Option<u32>,
    /// User it belongs to.
    pub uid: Option<u32>,
    /// Why the target cannot be asked; absent for a target that answers, or that merely did not answer this time.
    pub mute: Option<Mute>,
    /// Its counters; absent when it did not answer.
    pub stats: Option<ServerStats>,
    /// Its threads; absent when it is gone or not known.
    pub process: Option<ProcessSample>,
}

/// Why a target has no own figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mute {
    /// It is not a Weir server.
    Foreign,
    /// It was started without a socket.
    Off,
    /// It belongs to another user, and answers only that user.
    OtherUser(u32),
    /// Its socket does not exist.
    Absent,
}

impl Mute {
    /// Advice to the user.
    pub fn advice(self, language: Language) -> String {
        match self {
            Self::Foreign => localized!(
                language,
                "no server of Weir; only its threads can be seen",
                "Weir 서버가 아니므로 스레드만 볼 수 있습니다",
                "不是 Weir 服务器，只能看到其线程"
            ),
            Self::Off => localized!(
                language,
                "start it without --stats-socket off",
                "--stats-socket off 없이 시작하십시오",
                "启动时请勿使用 --stats-socket off"
            ),
            Self::OtherUser(uid) => localized!(
                language,
                "run `weir top` as its user {uid} or as root",
                "해당 사용자({uid})나 root로 `weir top`을 실행하십시오",
                "请以其用户 {uid} 或 root 运行 `weir top`"
            ),
            Self::Absent => localized!(
                language,
                "run `weir top` in its container, or restart it",
                "해당 컨테이너 안에서 `weir top`을 실행하거나 서버를 다시 시작하십시오",
                "请在其容器内运行 `weir top`，或重启该服务器"
            ),
        }
    }
}

/// Reads the same targets repeatedly.
#[derive(Debug)]
pub struct Monitor {
    targets: Vec<Watched>,
    began: Instant,
}

#[derive(Debug)]
struct Watched {
    target: Target,
    /// The process that listens, as the kernel says; before a connection, the target's.
    pid: Option<u32>,
    has_answered: bool,
    stream: Option<BufReader<UnixStream>>,
}

impl Monitor {
    /// A monitor of these.
    pub fn new(targets: Vec<Target>) -> Self {
        let mut monitor = Self { targets: Vec::new(), began: Instant::now() };
        monitor.watch(targets);
        monitor
    }

    /// Watches these from now on; connections to targets that stay are kept. Returns whether the targets changed, so
    /// that an earlier snapshot is of no use.
    pub fn watch(&mut self, targets: Vec<Target>) -> bool {
        let is_same = |(target, own): (&Target, &Watched)| *target == own.target;
        if targets.len() == self.targets.len() && targets.iter().zip(&self.targets).all(is_same) {
            return false;
        }
        let mut before = std::mem::take(&mut self.targets);
        let watched = |target: Target| match before.iter().position(|own| own.target == target) {
            Some(index) => before.swap_remove(index),
            None => Watched { pid: target.pid, target, has_answered: false, stream: None },
        };
        self.targets = targets.into_iter().map(watched).collect();
        true
    }

    /// The watched targets, with their processes as far as they are known.
    pub fn targets(&self) -> Vec<Target> {
        let known = |watched: &Watched| Target { pid: watched.pid, ..watched.target.clone() };
        self.targets.iter().map(known).collect()
    }

    /// Number of watched targets.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there are no targets.
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
    /// Sends the request; reconnects if the connection is gone.
    fn ask(&mut self) {
        for _ in 0..2 {
            if self.stream.is_none()
                && let Some((stream, listener)) = connected(&self.target)
            {
                self.stream = Some(BufReader::new(stream));
                self.pid = listener.or(self.target.pid);
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
            // A late answer must not be taken for the answer to the next request.
            self.stream = None;
        }
        self.has_answered |= stats.is_some();
        let process = self.pid.and_then(|pid| {
            ProcessTree::snapshot(pid).ok().and_then(|tree| tree.processes.into_iter().next())
        });
        let uid = self.pid.and_then(target::owner);
        Reading { name: self.target.name.clone(), pid: self.pid, uid, mute: self.mute(uid), stats, process }
    }

    /// Why the target cannot be asked.
    fn mute(&self, owner: Option<u32>) -> Option<Mute> {
        let user = geteuid();
        let other = owner.filter(|owner| *owner != user.as_raw() && !user.is_root());
        match (&self.target.socket, other) {
            _ if self.has_answered => None,
            (Socket::Foreign, _) => Some(Mute::Foreign),
            (Socket::Off, _) => Some(Mute::Off),
            (_, Some(owner)) => Some(Mute::OtherUser(owner)),
            (Socket::Default(_), None) => Some(Mute::Absent),
            (Socket::Named(_), None) => None,
        }
    }
}

/// A connection to the target's socket, and the process that listens, where it is visible. It never blocks: a stopped
/// process with a full backlog counts as absent. Any process may bind a name and answer with any process number: so
/// only the kernel is believed, and a default name is its process's alone.
fn connected(target: &Target) -> Option<(UnixStream, Option<u32>)> {
    let name = target.socket.name()?;
    let address = SocketAddrUnix::new_abstract_name(name.trim_start_matches('@').as_bytes()).ok()?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).ok()?;
    connect(&socket, &address).ok()?;
    let listener = peer::credentials(&socket).ok()?.pid.and_then(|pid| u32::try_from(pid).ok());
    if matches!(target.socket, Socket::Default(_)) && (listener.is_none() || listener != target.pid) {
        return None;
    }
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false).ok()?;
    stream.set_write_timeout(Some(ANSWER_MAX)).ok()?;
    Some((stream, listener))
}

/// Reads one answer: a line of at most [`ANSWER_BYTES_MAX`], all of it within [`ANSWER_MAX`] however slowly it
/// arrives.
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

/// Parses one line of an answer.
pub(crate) fn parse(line: &[u8]) -> io::Result<ServerStats> {
    serde_json::from_slice(line).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use std::{
        io::Read,
        os::{
            linux::net::SocketAddrExt,
            unix::net::{SocketAddr, UnixListener},
        },
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
        thread,
    };

    use super::*;

    fn bound(name: &str) -> UnixListener {
        let address = SocketAddr::from_abstract_name(name).expect("a name");
        UnixListener::bind_addr(&address).expect("the name is free")
    }

    /// The first snapshot with an answer of the first target. On a busy machine an answer may come too late for one.
    fn answered(monitor: &mut Monitor) -> Snapshot {
        let mut snapshots = std::iter::repeat_with(|| monitor.snapshot()).take(100);
        snapshots.find(|snapshot| snapshot.nodes[0].stats.is_some()).expect("it answers")
    }

    /// A statistics server that sends this answer until it is broken; then it sends what is none, and closes.
    fn serve(name: &str, answer: String, is_broken: Arc<AtomicBool>) -> thread::JoinHandle<()> {
        let listener = bound(name);
        thread::spawn(move || {
            // A monitor that gets no answer in time, as on a busy machine, gives up and connects again.
            for stream in listener.incoming() {
                let mut input = BufReader::new(stream.expect("the monitor connects"));
                let mut line = String::new();
                while input.read_line(&mut line).is_ok_and(|count| count > 0) {
                    let is_last = is_broken.load(Ordering::SeqCst);
                    let said = if is_last { "no json\n" } else { &answer };
                    // It may have given up.
                    let _ = input.get_mut().write_all(said.as_bytes());
                    if is_last {
                        return;
                    }
                }
            }
        })
    }

    #[test]
    fn an_answer_that_trickles_in_is_not_waited_for() {
        let (ours, mut theirs) = UnixStream::pair().expect("two descriptors");
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                // Sends single bytes: each arrives within the limit, the whole line never does.
                while !is_over.load(Ordering::Relaxed) {
                    thread::park_timeout(ANSWER_MAX / 8);
                    theirs.write_all(b" ").expect("it is read");
                }
            });
            let began = Instant::now();
            let kind =
                answer(&mut BufReader::new(ours.try_clone().expect("a descriptor"))).map_err(|it| it.kind());
            is_over.store(true, Ordering::Relaxed);
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
        let is_broken = Arc::new(AtomicBool::new(false));
        let server = serve(&name, answer, Arc::clone(&is_broken));
        let socket = Socket::Named(format!("@{name}"));
        let target = Target { pid: Some(own), socket, name: "GATEWAY".to_owned() };
        let mut monitor = Monitor::new(vec![target, Target { pid: Some(own), ..Target::default() }]);
        let first = answered(&mut monitor);
        let stats = first.nodes[0].stats.as_ref().expect("it answered");
        assert_eq!(stats.node.as_ref().map(|node| node.received), Some(5));
        assert!(first.nodes[0].process.as_ref().is_some_and(|process| !process.threads.is_empty()));
        assert_eq!((first.nodes[1].mute, &first.nodes[1].stats), (Some(Mute::Foreign), &None));
        is_broken.store(true, Ordering::SeqCst);
        let second = monitor.snapshot();
        assert_eq!(second.nodes[0].stats, None, "what it says is no answer");
        server.join().expect("the server ends");
        let third = monitor.snapshot();
        assert_eq!((third.nodes[0].mute, &third.nodes[0].stats), (None, &None), "nobody is there");
        assert!(first.at_ns < second.at_ns && second.at_ns < third.at_ns);
    }

    #[test]
    fn others_are_watched_from_then_on_and_the_same_ones_keep_their_connections() {
        let target = |name: &str| Target { name: name.to_owned(), ..Target::default() };
        let mut monitor = Monitor::new(vec![target("one"), target("two")]);
        monitor.targets[1].has_answered = true;
        assert!(!monitor.watch(vec![target("one"), target("two")]), "they are the same");
        assert!(monitor.watch(vec![target("two"), target("three")]));
        let kept: Vec<(&str, bool)> =
            monitor.targets.iter().map(|own| (own.target.name.as_str(), own.has_answered)).collect();
        assert_eq!(kept, [("two", true), ("three", false)]);
        assert!(monitor.watch(Vec::new()) && monitor.is_empty());
    }

    /// The answer of the target's socket to one request.
    fn answer_of(target: Target) -> Reading {
        Monitor::new(vec![target]).snapshot().nodes.remove(0)
    }

    #[test]
    fn a_server_that_has_no_socket_is_told_from_one_that_does_not_answer_now() {
        let pid = Some(std::process::id());
        let with = |socket| answer_of(Target { pid, socket, name: "ECHO".to_owned() }).mute;
        let nobody = || format!("@weir-monitor-nobody-{}", std::process::id());
        assert_eq!(with(Socket::Off), Some(Mute::Off));
        assert_eq!(with(Socket::Default(nobody())), Some(Mute::Absent));
        assert_eq!(with(Socket::Named(nobody())), None);
    }

    #[test]
    fn a_name_that_another_process_took_first_is_not_asked() {
        let name = format!("weir-monitor-squatter-{}", std::process::id());
        let squatter = bound(&name);
        // Names a process other than this one, which is the listener.
        let target =
            Target { pid: Some(1), socket: Socket::Default(format!("@{name}")), name: String::new() };
        assert_eq!(answer_of(target).stats, None);
        let (mut asker, _) = squatter.accept().expect("a connection came");
        assert_eq!(asker.read(&mut [0]).expect("it has ended"), 0, "no question");
    }

    #[test]
    fn the_process_is_the_one_that_listens_and_not_the_one_that_an_answer_names() {
        let name = format!("weir-monitor-liar-{}", std::process::id());
        let answer = r#"{"driver":"uring","total":{},"workers":[],"node":{"node":"GATEWAY","pid":1}}"#;
        // It serves to the end of the process.
        drop(serve(&name, format!("{answer}\n"), Arc::default()));
        let named =
            Target { pid: None, socket: Socket::Named(format!("@{name}")), name: "GATEWAY".to_owned() };
        let mut monitor = Monitor::new(vec![named.clone()]);
        let seen = answered(&mut monitor).nodes.remove(0);
        assert!(seen.stats.is_some_and(|stats| stats.node.is_some_and(|node| node.pid == 1)));
        assert_eq!(
            (seen.pid, monitor.targets()[0].pid),
            (Some(std::process::id()), Some(std::process::id()))
        );
        assert!(!monitor.watch(vec![named]), "it is the same target");
    }

    #[test]
    fn a_server_whose_line_is_full_is_not_waited_for() {
        let name = format!("weir-monitor-full-{}", std::process::id());
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("a name");
        let stream = || {
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None)
                .expect("a descriptor")
        };
        let listener = stream();
        rustix::net::bind(&listener, &address).expect("the name is free");
        rustix::net::listen(&listener, 0).expect("it listens");
        let mut line = Vec::new();
        loop {
            let waiting = stream();
            if connect(&waiting, &address).is_err() {
                break;
            }
            line.push(waiting);
        }
        let target = Target { socket: Socket::Named(format!("@{name}")), ..Target::default() };
        assert_eq!(answer_of(target).stats, None);
    }
}
