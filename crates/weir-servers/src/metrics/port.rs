//! The port: a separate thread answers one request per connection.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use weir_proto::{
    exposition,
    http1::{
        Event, Limits, Method, MethodSet, RequestDecoder, Version,
        encode::{AfterMessage, Framing, HeadWriter},
        is_address_or_localhost,
    },
};

use super::Source;
use crate::thread_per_connection::answer_each;

/// Readers at a time; more are closed at once.
const READERS_MAX: usize = 8;
/// Longest request.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// Longest time for a request, and for its answer to be taken.
const PATIENCE: Duration = Duration::from_secs(2);
/// Media type of plain text answers.
const TEXT: &str = "text/plain; charset=utf-8";
/// Name of its threads.
const THREAD: &str = "weir-metrics";

/// A bound metrics port.
#[derive(Debug)]
pub struct MetricsPort {
    listener: TcpListener,
}

impl MetricsPort {
    /// Listens.
    ///
    /// # Errors
    /// `InvalidInput` for an address that is not on the loopback interface; those of binding.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        if !address.ip().is_loopback() {
            let text = format!("{address} is not on the loopback interface, and nothing protects this port");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok(Self { listener: TcpListener::bind(address)? })
    }

    /// The address it listens on, with the port that the kernel chose.
    ///
    /// # Errors
    /// Those of `getsockname`.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Starts answering, for as long as the process lives.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn answer(self, source: Arc<dyn Source>) -> io::Result<()> {
        let answer = move |reader| {
            // A reader that disconnects is not an error.
            let _ = answer(reader, &*source);
        };
        let run = move || answer_each(self.listener.incoming(), (THREAD, READERS_MAX), answer);
        thread::Builder::new().name(THREAD.into()).spawn(run).map(drop)
    }
}

/// The parts of a scraper's request.
struct ScrapeRequest {
    method: Method,
    target: String,
    /// The request is for this machine by address, not for a name that was made to resolve to it.
    is_meant: bool,
}

/// Answers one request and ends the connection.
fn answer(mut stream: TcpStream, source: &dyn Source) -> io::Result<()> {
    let Some(request) = read_request(&mut stream, Instant::now() + PATIENCE)? else { return Ok(()) };
    let allowed = MethodSet::of(&[Method::Get, Method::Head]);
    let (status, reason, kind, body) = match &request {
        Ok(request) if !allowed.contains(request.method) => {
            (405, "Method Not Allowed", TEXT, format!("{allowed}\n"))
        }
        Ok(request) => found(request, source),
        Err(_) => (400, "Bad Request", TEXT, "this is no request\n".to_owned()),
    };
    let mut reply = Vec::new();
    let mut head =
        HeadWriter::response(&mut reply, Version::Http11, status, reason).map_err(io::Error::other)?;
    head.header("Content-Type", kind.as_bytes()).map_err(io::Error::other)?;
    if status == 405 {
        head.header("Allow", allowed.to_string().as_bytes()).map_err(io::Error::other)?;
    }
    head.finish(Framing::Length(body.len() as u64), AfterMessage::Close).map_err(io::Error::other)?;
    if !request.is_ok_and(|request| request.method == Method::Head) {
        reply.extend_from_slice(body.as_bytes());
    }
    write_until(&mut stream, &reply, Instant::now() + PATIENCE)
}

/// Status, reason phrase, type and content.
fn found(request: &ScrapeRequest, source: &dyn Source) -> (u16, &'static str, &'static str, String) {
    match request.target.as_str() {
        _ if !request.is_meant => {
            let text = "ask for an address of this machine, or for localhost\n";
            (421, "Misdirected Request", TEXT, text.to_owned())
        }
        "/metrics" => (200, "OK", exposition::CONTENT_TYPE, source.metrics()),
        "/healthz" => {
            let (status, phrase, first) = match source.health() {
                Ok(()) => (200, "OK", "ok".to_owned()),
                Err(reason) => (503, "Service Unavailable", reason),
            };
            let mut text = String::new();
            for line in std::iter::once(first).chain(source.remarks()) {
                text.push_str(&line);
                text.push('\n');
            }
            (status, phrase, TEXT, text)
        }
        _ => (404, "Not Found", TEXT, "/metrics or /healthz\n".to_owned()),
    }
}

/// Reads a request until the deadline. None: it was incomplete. An inner error: it was malformed.
fn read_request(stream: &mut TcpStream, deadline: Instant) -> io::Result<Option<Result<ScrapeRequest, ()>>> {
    let mut input = Vec::new();
    let mut place = [0; 1024];
    while !input.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || input.len() > REQUEST_BYTES_MAX {
            return Ok(None);
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut place)? {
            0 => return Ok(None),
            count => input.extend_from_slice(&place[..count]),
        }
    }
    let mut decoder = RequestDecoder::new(Limits::default());
    let event = decoder.decode(&input).map(|step| step.event);
    let Ok(Event::Head(head)) = event else { return Ok(Some(Err(()))) };
    // Before HTTP/1.1 the host may be missing, and no browser sends such requests.
    let is_meant = head.headers.get("Host").is_none_or(is_address_or_localhost);
    Ok(Some(Ok(ScrapeRequest { method: head.method, target: head.target.to_owned(), is_meant })))
}

/// Writes all of it by the deadline, however slowly the reader takes it.
fn write_until(stream: &mut TcpStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        match stream.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_one_deadline_however_well_its_reader_reads() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has one");
        let mut reader = TcpStream::connect(address).expect("it listens");
        let (mut stream, _) = listener.accept().expect("it comes");
        let now = Instant::now();
        write_until(&mut stream, b"in time", now + PATIENCE).expect("there is room");
        let late = write_until(&mut stream, b"late", now).expect_err("the deadline is over");
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        drop(stream);
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("it ends");
        assert_eq!(text, "in time");
    }
}
