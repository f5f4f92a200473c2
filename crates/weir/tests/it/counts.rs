//! The engine's counts of its system calls equal the kernel's: by kind, on every driver, for echo, HTTP and files.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
};

use weir_evidence::{
    ladder::Group,
    slice_observers::{LoadedPrograms, Observer, Programs},
};
use weir_record::{engine::EngineStats, evidence::Coverage, trial::Reading};

use super::{
    harness::{PATIENCE, Running, StatsReader, every_server, folder, shown, until},
    serve::{DRIVERS, stats_name},
};

/// Connections that stay; on blocking calls each has a thread.
const HELD: usize = 16;
/// Connections that are opened and closed while the kernel counts.
const PASSING: usize = 40;
/// Messages on each connection, between two silences.
const MESSAGES: usize = 30;
const BURSTS: usize = 4;

/// The kind in which the kernel counts closing of files too. Without `fcntl`: in builds with assertions the standard
/// library uses it to check whether a descriptor that it closes is open.
const SOCKETS: &str = "set up and close";

/// The content of the served file.
const FILE: &[u8] = b"the end of a file";

/// Calls of one kind: the engine's count, and the kernel's names.
type Kind = (&'static str, fn(&EngineStats) -> u64, &'static [&'static str]);

const KINDS: [Kind; 8] = [
    ("enter", |it| it.enters, &["io_uring_enter"]),
    (
        "wait",
        |it| it.wait_calls + it.poll_calls,
        &["epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "select", "pselect6"],
    ),
    ("receive", |it| it.recv_calls, &["recvfrom", "recvmsg"]),
    ("send", |it| it.send_calls, &["sendto", "sendmsg", "sendfile"]),
    ("interest", |it| it.interest_calls, &["epoll_ctl"]),
    ("accept", |it| it.accept_calls, &["accept", "accept4"]),
    (
        "file",
        |it| it.file_calls,
        &["fdatasync", "fstat", "fsync", "newfstatat", "openat", "openat2", "pread64", "preadv2", "pwrite64"],
    ),
    (
        SOCKETS,
        |it| it.setup_calls + it.closes,
        &[
            "close",
            "connect",
            "getpeername",
            "getsockname",
            "getsockopt",
            "ioctl",
            "setsockopt",
            "shutdown",
            "socket",
        ],
    ),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Service {
    Echo,
    Http,
    /// HTTP from a folder without a cache: every answer takes calls on files.
    Files,
}

impl Service {
    /// The request, and the end of the answer.
    fn exchange(self) -> (&'static [u8], &'static [u8]) {
        match self {
            Self::Echo => (b"what comes back ends like this", b"ends like this"),
            Self::Http => (b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", b"\r\n\r\n"),
            Self::Files => (b"GET /file HTTP/1.1\r\nHost: a\r\n\r\n", FILE),
        }
    }

    fn ask(self, stream: &mut TcpStream) {
        let (request, end) = self.exchange();
        stream.write_all(request).expect("it reads");
        let (mut received, mut piece) = (Vec::new(), [0; 512]);
        while !received.ends_with(end) {
            let length = stream.read(&mut piece).expect("it answers");
            assert!(length > 0, "it ends: {}", String::from_utf8_lossy(&received));
            received.extend_from_slice(&piece[..length]);
        }
    }
}

/// A server, and the connections that stay.
struct Subject {
    name: String,
    service: Service,
    process: Running,
    address: String,
    stats: StatsReader,
    held: Vec<TcpStream>,
    /// Threads that wait in `ppoll` although no connection is theirs; `None` where connections have no threads.
    resting: Option<usize>,
}

impl Subject {
    /// `None`, and a line that says so, where the kernel refuses the driver.
    fn start(driver: &str, service: Service, folder: &str) -> Option<Self> {
        let name = format!("{driver}-{service:?}");
        let socket = stats_name(&name);
        let protocol = if service == Service::Echo { "echo" } else { "http" };
        let mut words = vec!["serve", protocol, "--listen", "127.0.0.1:0", "--driver", driver];
        words.extend(["--stats-socket", &socket]);
        let is_blocking = driver == "blocking";
        if !is_blocking {
            words.extend(["--workers", "1"]);
        }
        if service == Service::Files {
            words.extend(["--root", folder, "--file-cache", "0"]);
        }
        let process = Running::weir(&words);
        let line = process.next_line();
        let Some(address) = line.as_deref().and_then(|line| line.strip_prefix("listening on ")) else {
            let errors = process.rest_of_errors();
            assert!(errors.contains("cannot run here"), "{driver} does not start: {errors}");
            println!("skipped: {errors}");
            return None;
        };
        let (address, stats) = (address.to_owned(), StatsReader::connect(&socket));
        let mut subject = Self { name, service, process, address, stats, held: Vec::new(), resting: None };
        // A thread that has just begun is in no call yet.
        until("all threads wait", || !subject.calls().iter().any(|call| call.starts_with("running")));
        subject.resting = is_blocking.then(|| subject.threads_in("ppoll"));
        subject.held = (0..HELD).map(|_| subject.connect()).collect();
        // Threads for short connections exist from now on.
        subject.pass();
        subject.fall_silent();
        Some(subject)
    }

    fn pid(&self) -> u32 {
        u32::try_from(self.process.pid().as_raw_nonzero().get()).expect("a number of a process")
    }

    fn connect(&self) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("it accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        self.service.ask(&mut stream);
        stream
    }

    /// A connection from its beginning to its end.
    fn pass(&self) {
        let mut stream = self.connect();
        stream.shutdown(Shutdown::Write).expect("it is open");
        assert_eq!(stream.read(&mut [0]).expect("it ends in order"), 0);
    }

    /// Waits until its threads wait for the next event: a client learns of the end of a connection before the server
    /// has closed it. On blocking calls a silent connection moves on to wait in another call.
    fn fall_silent(&self) {
        if let Some(resting) = self.resting {
            until("the last wait", || self.threads_in("ppoll") == resting + HELD);
        }
        until("all threads wait", || !self.calls().iter().any(|call| call.starts_with("running")));
    }

    /// Threads that wait in this call.
    fn threads_in(&self, call: &str) -> usize {
        let name = |text: &String| {
            let number = text.split(' ').next().and_then(|number| number.parse().ok());
            number.and_then(weir_sys::syscalls::name)
        };
        self.calls().iter().filter(|text| name(text) == Some(call)).count()
    }

    /// The state of each of its threads, from the kernel: a call by number, or `running`.
    fn calls(&self) -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid())).expect("it runs");
        let call = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("syscall")).ok();
        tasks.filter_map(Result::ok).filter_map(call).collect()
    }

    fn work(&mut self) {
        for _ in 0..BURSTS {
            for _ in 0..MESSAGES {
                self.held.iter_mut().for_each(|stream| self.service.ask(stream));
            }
            (0..PASSING / BURSTS).for_each(|_| self.pass());
            self.fall_silent();
        }
        // Its last close is over: a later request is answered.
        self.held.iter_mut().for_each(|stream| self.service.ask(stream));
        self.fall_silent();
    }
}

fn sum(rows: &[Reading], names: &[&str], key: &str) -> u64 {
    let is_of = |row: &&Reading| {
        row.key == key && row.source.strip_prefix("call ").is_some_and(|name| names.contains(&name))
    };
    rows.iter().filter(is_of).map(|row| row.value).sum::<f64>() as u64
}

fn compare(subject: &mut Subject, loaded: &LoadedPrograms) {
    let mut programs = Programs::new(subject.pid(), &Group::ALL, loaded);
    let before = subject.stats.ask("").total;
    // The thread that answered waits for the next request: a later wait would be seen by the kernel, and not counted by
    // the engine.
    subject.fall_silent();
    programs.begin().expect("the kernel takes programs");
    subject.work();
    let rows = programs.end().expect("they can be read");
    let counted = subject.stats.ask("").total.since(&before);
    let of_trace = |key: &str| rows.iter().find(|row| row.source == "trace" && row.key == key);
    assert_eq!(of_trace("misses").map(|row| row.value), Some(0.0));
    for (kind, engine, names) in KINDS {
        // On blocking calls threads that end close their wake-up descriptors: `close` is left
        // out, and all other calls of the kind are compared.
        let is_left_out = |name: &str| kind == SOCKETS && subject.resting.is_some() && name == "close";
        let engine = engine(&counted) - if is_left_out("close") { counted.closes } else { 0 };
        let names: Vec<&str> = names.iter().copied().filter(|name| !is_left_out(name)).collect();
        // An engine counts a call when it makes it, and the kernel's programs also see calls begin that are in
        // progress.
        let kernel = sum(&rows, &names, "count") + sum(&rows, &names, "in-flight");
        let coverage = Coverage { engine, kernel, ..Coverage::default() };
        println!("{} {kind}: {coverage:?} {}", subject.name, sum(&rows, &names, "in-flight"));
        let is_told_apart = kind != SOCKETS || subject.service != Service::Files;
        let by_name = names.iter().map(|name| format!("{name} {}", sum(&rows, &[name], "count")));
        assert!(
            coverage.agrees() || !is_told_apart,
            "{} {kind}: {coverage:?} of {}",
            subject.name,
            by_name.collect::<Vec<_>>().join(", ")
        );
    }
}

#[test]
fn engine_and_kernel_count_the_same_calls_of_every_kind_on_every_driver() {
    if !Programs::are_allowed() {
        let required = std::env::var("WEIR_REQUIRE_EVIDENCE").unwrap_or_default();
        assert!(!required.split(',').any(|rung| rung == "programs"), "WEIR_REQUIRE_EVIDENCE");
        println!("skipped: the kernel takes no programs of this user, so nobody counts its calls");
        return;
    }
    let _every_server = every_server();
    let folder = folder("counts");
    std::fs::write(folder.join("file"), FILE).expect("a file can be written");
    let loaded = LoadedPrograms::default();
    for service in [Service::Echo, Service::Http, Service::Files] {
        for driver in DRIVERS {
            let Some(mut subject) = Subject::start(driver, service, shown(&folder)) else { continue };
            compare(&mut subject, &loaded);
        }
    }
}
