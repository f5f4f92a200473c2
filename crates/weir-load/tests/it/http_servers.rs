//! Small HTTP/1.1 servers as targets, and the base specification of the HTTP tests.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
};

use weir_load::{HttpSpec, HttpUrl, LoadSpec};
use weir_record::{failure::FailureCounts, http::HttpLoadReport, load::LoadReport};

use crate::servers;

/// A request as a server sees it.
#[derive(Clone, Debug)]
pub struct Request {
    pub line: String,
    pub head: String,
    pub content: Vec<u8>,
}

/// What a server does with its connection after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Waits for the next request.
    Stay,
    /// Shuts down its sending direction, waits for the client to do the same, and closes.
    Close,
    /// Closes with a reset.
    Reset,
}

/// A server's answer.
#[derive(Clone, Debug)]
pub struct Reply {
    pub bytes: Vec<u8>,
    pub after: After,
}

impl Reply {
    pub fn stay(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), after: After::Stay }
    }

    pub fn close(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), after: After::Close }
    }
}

/// A server that calls `answer` with the number of the connection, the number of the request on it, and the request.
pub fn serve_http(answer: impl Fn(usize, usize, &Request) -> Reply + Clone + Send + 'static) -> SocketAddr {
    servers::serve(move |connection, stream| {
        let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
        let mut number = 0;
        while let Some(request) = read_request(&mut reader) {
            let reply = answer(connection, number, &request);
            number += 1;
            if (&stream).write_all(&reply.bytes).is_err() || end(&stream, reply.after) {
                return;
            }
        }
    })
}

/// Ends the connection if requested.
fn end(stream: &TcpStream, after: After) -> bool {
    match after {
        After::Stay => return false,
        After::Close => {
            // Reads on until the client has closed: with unread bytes the kernel would send a reset.
            let _ = stream.shutdown(Shutdown::Write);
            let mut rest = [0; 4096];
            while matches!((&*stream).read(&mut rest), Ok(1..)) {}
        }
        After::Reset => {
            let socket = socket2::SockRef::from(stream);
            socket.set_linger(Some(std::time::Duration::ZERO)).expect("a TCP socket");
        }
    }
    true
}

fn read_request(reader: &mut impl BufRead) -> Option<Request> {
    let mut head = String::new();
    loop {
        let before = head.len();
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
        if &head[before..] == "\r\n" {
            break;
        }
    }
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let mut content = vec![0; length.map_or(0, |length| length.parse().expect("a number"))];
    reader.read_exact(&mut content).ok()?;
    Some(Request { line: head.lines().next()?.to_owned(), head, content })
}

/// A response with this content.
pub fn response(status: &str, fields: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes =
        format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n", content.len()).into_bytes();
    bytes.extend_from_slice(content);
    bytes
}

/// The usual response.
pub fn ok(content: &[u8]) -> Vec<u8> {
    response("200 OK", "", content)
}

/// A server that answers everything with this content.
pub fn page(content: &'static [u8]) -> SocketAddr {
    serve_http(move |_, _, request| {
        let closes = request.head.contains("Connection: close\r\n");
        let fields = if closes { "Connection: close\r\n" } else { "" };
        let after = if closes { After::Close } else { After::Stay };
        Reply { bytes: response("200 OK", fields, content), after }
    })
}

/// A hundred requests over one connection, without warm-up.
pub fn spec(target: SocketAddr) -> LoadSpec {
    let url =
        HttpUrl { text: format!("http://{target}/"), host: target.to_string(), path: "/".into(), own: None };
    let http = HttpSpec::get(vec![url]);
    LoadSpec { protocol: http.into(), ..servers::spec(target) }
}

/// A specification whose part for HTTP is changed.
pub fn with(spec: LoadSpec, change: impl FnOnce(&mut HttpSpec)) -> LoadSpec {
    let mut http = spec.protocol.spec::<HttpSpec>().expect("a load of HTTP").clone();
    change(&mut http);
    LoadSpec { protocol: http.into(), ..spec }
}

/// Runs, expects a report, and checks what must hold for every report whatever the server does.
pub fn report(spec: &LoadSpec) -> (LoadReport, HttpLoadReport) {
    let report = servers::run(spec).expect("a report");
    let http = report.http.clone().expect("it was a load of HTTP");
    assert_eq!(report.failures.unexplained, 0, "{:?}", report.failures);
    assert_eq!(report.service.count, report.messages);
    // An answer followed by extra bytes still counts a first byte.
    let behind = report.failures.malformed;
    assert!((report.messages..=report.messages + behind).contains(&http.first_byte.count), "{http:?}");
    assert_eq!((http.rows.samples, &http.last_byte), (report.response.count, &report.service));
    assert!(http.responses_compared <= report.messages);
    if report.message_bytes > 0 {
        assert_eq!(report.bytes_verified, report.messages * u64::from(report.message_bytes));
    }
    (report, http)
}

/// Like [`report`], for a run in which nothing may fail.
pub fn right(spec: &LoadSpec, messages: u64) -> (LoadReport, HttpLoadReport) {
    let (report, http) = report(spec);
    assert_eq!(report.failures, FailureCounts::default());
    assert_eq!((report.messages, report.messages_started), (messages, messages));
    (report, http)
}
