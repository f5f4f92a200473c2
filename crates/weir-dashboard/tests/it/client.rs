//! A dashboard that runs on a thread, and a minimal browser.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use socket2::{Domain, Socket, Type};
use weir_dashboard::{ControlSettings, Dashboard, Settings, Stop};
use weir_report::Language;

/// Longest wait for anything, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(300);

/// A dashboard until it is dropped.
pub struct Running {
    pub address: SocketAddr,
    pub stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// A dashboard on a port that the system chooses, which cannot act.
    pub fn over(folder: &Path) -> Self {
        Self::with(folder, "127.0.0.1:0", None)
    }

    /// A dashboard that can act, on a port of this address that the system chooses.
    pub fn with(folder: &Path, listen: &str, control: Option<ControlSettings>) -> Self {
        let settings = Settings {
            folder: folder.to_path_buf(),
            listen: listen.parse().expect("an address"),
            hosts: vec!["lab.example".to_owned()],
            language: Language::English,
            control,
            records: None,
            stats: Vec::new(),
            finds_servers: false,
        };
        let dashboard = Dashboard::bind(settings).unwrap_or_else(|error| panic!("{error}"));
        let (address, stop) = (dashboard.address(), dashboard.stop());
        Self { address, stop, thread: Some(thread::spawn(move || dashboard.run())) }
    }

    /// A connection to it.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        stream
    }

    /// A connection from another address of this machine: `127.0.0.LAST`.
    pub fn connect_from(&self, last: u8) -> TcpStream {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let from = SocketAddr::from(([127, 0, 0, last], 0));
        socket.bind(&from.into()).expect("every address of the loopback network is this machine's");
        socket.connect(&self.address.into()).expect("it listens");
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        stream
    }

    /// Sends these lines as the head of a request, and reads until the connection ends.
    pub fn ask(&self, lines: &[&str]) -> Answer {
        self.send(lines, "")
    }

    /// The same with a body, whose length is in the head.
    pub fn send(&self, lines: &[&str], body: &str) -> Answer {
        let mut stream = self.connect();
        let head = format!("{}\r\nConnection: close\r\n\r\n{body}", lines.join("\r\n"));
        stream.write_all(head.as_bytes()).expect("it takes a request");
        Answer::read(stream)
    }

    /// Sends a form, with these lines beside the usual ones of a form.
    pub fn post(&self, path: &str, lines: &[&str], form: &str) -> Answer {
        let (first, length) = (format!("POST {path} HTTP/1.1"), format!("Content-Length: {}", form.len()));
        let kind = "Content-Type: application/x-www-form-urlencoded";
        self.send(&[&[first.as_str(), kind, &length], lines].concat(), form)
    }

    /// The page at an address, for a browser without a preferred language.
    pub fn get(&self, path: &str) -> Answer {
        self.ask(&[&format!("GET {path} HTTP/1.1"), &format!("Host: {}", self.address)])
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops it, and waits until it has ended.
    pub fn end(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it ends without a panic");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

/// Waits until a condition holds, by polling.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} did not come in {PATIENCE:?}");
        thread::yield_now();
    }
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    /// Reads until the connection ends.
    pub fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an answer in time");
        let text = String::from_utf8(bytes).expect("it speaks UTF-8");
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text:?}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let body = if head.contains("chunked") { unchunked(body) } else { body.to_owned() };
        Self { status: status.unwrap_or_else(|| panic!("no status: {head}")), head: head.to_owned(), body }
    }

    /// A header's value; empty without the header.
    pub fn header(&self, name: &str) -> &str {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.into_iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
    }
}

fn unchunked(body: &str) -> String {
    let (mut rest, mut whole) = (body, String::new());
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).expect("a length");
        whole.push_str(&after[..length]);
        rest = &after[length + 2..];
    }
    whole
}
