//! A dashboard that runs on a thread, and a browser that is as small as can be.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    thread::JoinHandle,
    time::Duration,
};

use weir_dashboard::{Dashboard, Settings, Stop};
use weir_report::Language;

/// Longest wait for anything, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// A dashboard until it is dropped.
pub struct Running {
    pub address: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// One on a port that the system chooses.
    pub fn over(folder: &Path) -> Self {
        let settings = Settings {
            folder: folder.to_path_buf(),
            listen: "127.0.0.1:0".parse().expect("an address"),
            hosts: vec!["lab.example".to_owned()],
            language: Language::English,
        };
        let dashboard = Dashboard::bind(settings).unwrap_or_else(|error| panic!("{error}"));
        let (address, stop) = (dashboard.address(), dashboard.stop());
        Self { address, stop, thread: Some(std::thread::spawn(move || dashboard.run())) }
    }

    /// A connection to it.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        stream
    }

    /// Sends these lines as the head of a request, and reads until the connection ends.
    pub fn ask(&self, lines: &[&str]) -> Answer {
        let mut stream = self.connect();
        let head = format!("{}\r\nConnection: close\r\n\r\n", lines.join("\r\n"));
        stream.write_all(head.as_bytes()).expect("it takes a request");
        Answer::read(stream)
    }

    /// The page at an address, for somebody whose browser prefers nothing.
    pub fn get(&self, path: &str) -> Answer {
        self.ask(&[&format!("GET {path} HTTP/1.1"), &format!("Host: {}", self.address)])
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

/// What came back.
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

    /// A header's value; empty where it has none.
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
