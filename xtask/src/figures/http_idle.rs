//! What keep-alive connections cost that have had an answer and are silent since: memory of the server's own. No study
//! and no generator: a client that is as plain as can be opens them one after the other, asks once on each, and holds
//! them.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    time::Duration,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{
    Row,
    goal::{Goal, Outcome, judge},
    memory::{
        DRIVERS, IDLE_CONNECTIONS, IDLE_CONNECTIONS_REHEARSED, SERVERS, Server, spread, start, store, stored,
    },
    plan::Plan,
    session::{Laboratory, Stop},
};

const BYTES_PER_CONNECTION_MAX: f64 = 2048.0;

/// Descriptors this process needs besides the connections.
const DESCRIPTORS_BESIDES: u64 = 256;

/// Longest wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Longest content of the small page.
const CONTENT_BYTES_MAX: usize = 1 << 20;

/// Time one server takes; it is an estimate for the plan and bounds nothing.
const LOOK: Duration = Duration::from_secs(2);

/// As a browser that keeps its connection would ask.
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

/// Servers to look at for each driver, and connections to hold.
fn shape(laboratory: &Laboratory) -> (usize, u32) {
    if laboratory.rehearsal { (1, IDLE_CONNECTIONS_REHEARSED) } else { (SERVERS, IDLE_CONNECTIONS) }
}

fn key(driver: &str) -> String {
    format!("http-idle-{driver}")
}

/// What the group takes, and how much of it is left.
pub fn plan(laboratory: &Laboratory) -> (Plan, Plan) {
    let (servers, _) = shape(laboratory);
    let of = |drivers: usize| Plan::of_trials((drivers * servers) as u64, LOOK);
    let left = DRIVERS.iter().filter(|driver| stored::<Vec<f64>>(laboratory, &key(driver)).is_none());
    (of(DRIVERS.len()), of(left.count()))
}

/// The rows of both drivers.
pub fn rows(laboratory: &Laboratory) -> Result<Vec<Row>, Stop> {
    DRIVERS.into_iter().map(|driver| driver_row(laboratory, driver)).collect()
}

fn driver_row(laboratory: &Laboratory, driver: &str) -> Result<Row, Stop> {
    let (servers, connections) = shape(laboratory);
    let growths: Result<Vec<f64>, String> = match stored(laboratory, &key(driver)) {
        Some(growths) => Ok(growths),
        None => raise_descriptors(connections)
            .and_then(|()| (0..servers).map(|_| growth(laboratory, driver, connections)).collect()),
    };
    if laboratory.children.is_interrupted() {
        return Err(Stop::Interrupted);
    }
    if let Ok(growths) = &growths {
        store(laboratory, &key(driver), growths).map_err(Stop::Failed)?;
    }
    let measured =
        growths.and_then(|growths| spread(&growths).ok_or_else(|| "nothing was measured".to_owned()));
    let goal = Goal::Within(f64::NEG_INFINITY, BYTES_PER_CONNECTION_MAX);
    let (outcome, measured) = match measured {
        Ok(measured) => (judge(goal, &measured), format!("{measured} bytes each")),
        Err(reason) => (Outcome::NotMeasured, reason),
    };
    Ok(Row {
        figure: format!("{driver}: RssAnon growth of {connections} idle keep-alive connections"),
        goal: format!("≤ {BYTES_PER_CONNECTION_MAX} bytes each"),
        measured,
        outcome,
        command: "cargo xtask figures --only http-idle".to_owned(),
    })
}

/// Client and server each need a descriptor for every connection; the server inherits the limit.
pub(super) fn raise_descriptors(connections: u32) -> Result<(), String> {
    let needed = u64::from(connections) + DESCRIPTORS_BESIDES;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if maximum.is_some_and(|maximum| maximum < needed) {
        return Err(format!("{needed} descriptors are needed and {} allowed", maximum.unwrap_or_default()));
    }
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum });
    raised.map_err(|error| format!("cannot raise the limit of descriptors: {error}"))
}

/// Bytes by which one server grows for each connection.
fn growth(laboratory: &Laboratory, driver: &str, connections: u32) -> Result<f64, String> {
    let server = start(laboratory, "http", driver)?;
    // What the first connection makes it set up is not the price of a connection.
    let first = asked(&server)?;
    let before = anonymous_bytes(&server)?;
    let mut held = Vec::with_capacity(connections as usize);
    for _ in 0..connections {
        if laboratory.children.is_interrupted() {
            return Err("interrupted".to_owned());
        }
        held.push(asked(&server)?);
    }
    let after = anonymous_bytes(&server)?;
    // Each must still be there, or memory was given back that should have counted.
    held.push(first);
    held.iter_mut().try_for_each(ask)?;
    Ok((after as f64 - before as f64) / f64::from(connections))
}

/// A connection that has had one answer.
fn asked(server: &Server) -> Result<TcpStream, String> {
    let connect = || {
        let stream = TcpStream::connect(&server.address)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        Ok(stream)
    };
    let mut stream = connect().map_err(|error: std::io::Error| format!("cannot connect: {error}"))?;
    ask(&mut stream)?;
    Ok(stream)
}

/// One request and its whole answer.
fn ask(stream: &mut TcpStream) -> Result<(), String> {
    let mut exchange = || {
        stream.write_all(REQUEST)?;
        // Nothing but this answer is under way, so that the buffer holds nothing when it is dropped.
        read_answer(&mut BufReader::new(&mut *stream))
    };
    exchange().map_err(|error: std::io::Error| format!("no answer: {error}"))
}

fn read_answer(reader: &mut impl BufRead) -> std::io::Result<()> {
    let wrong = |what: String| std::io::Error::new(std::io::ErrorKind::InvalidData, what);
    let mut status = String::new();
    reader.read_line(&mut status)?;
    if !status.starts_with("HTTP/1.1 200 ") {
        return Err(wrong(format!("the status line is {status:?}")));
    }
    let mut length = None;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse::<usize>().ok();
            }
            Some(_) => {}
            None => break,
        }
    }
    let length = length.filter(|length| *length <= CONTENT_BYTES_MAX);
    let length = length.ok_or_else(|| wrong("the content has no length".to_owned()))?;
    reader.read_exact(&mut vec![0; length])
}

/// Memory of the server that no file backs.
pub(super) fn anonymous_bytes(server: &Server) -> Result<u64, String> {
    let path = format!("/proc/{}/status", server.process.id());
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    rss_anon_bytes(&text).ok_or_else(|| format!("{path} has no RssAnon"))
}

fn rss_anon_bytes(status: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kibibytes: u64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_line_of_the_kernel() {
        let status = "Name:\tweir\nVmRSS:\t    5000 kB\nRssAnon:\t    1234 kB\nRssFile:\t    3766 kB\n";
        assert_eq!(rss_anon_bytes(status), Some(1234 << 10));
        assert_eq!(rss_anon_bytes("Name:\tweir\n"), None);
    }

    #[test]
    fn an_answer_is_read_to_its_end_and_not_further() {
        let mut two = &b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\n"[..];
        read_answer(&mut two).expect("it is whole");
        assert_eq!(two, b"HTTP/1.1 200 OK\r\n");
    }

    #[test]
    fn an_answer_that_is_no_page_or_not_whole_is_no_answer() {
        let error = |text: &str| read_answer(&mut text.as_bytes()).expect_err("it is wrong").to_string();
        assert!(error("HTTP/1.1 503 Busy\r\n\r\n").contains("503"));
        assert!(error("HTTP/1.1 200 OK\r\n\r\n").contains("no length"));
        assert!(!error("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab").is_empty());
        assert!(!error("").is_empty());
    }
}
