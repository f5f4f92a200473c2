//! Asks every HTTP peer it is given for what a study will ask of it, and says which answer wrongly: every byte, on a
//! connection that stays, for HEAD, in a pipeline, and on a connection that closes; and that SIGTERM ends the peer
//! with nothing of it left behind. Measures nothing.
//!
//! usage: check-http EXECUTABLE…

#[cfg(test)]
mod tests;

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const START_MAX: Duration = Duration::from_secs(5);
const END_MAX: Duration = Duration::from_secs(2);
const ANSWER_MAX: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);

/// Exit code of a peer that cannot run here.
const CODE_ENVIRONMENT: i32 = 13;

const PIPELINE_DEPTH: usize = 16;
const LINE_BYTES_MAX: u64 = 16 * 1024;
const CONTENT_BYTES_MAX: usize = 1 << 20;

/// What a peer is told to answer.
struct Content {
    name: &'static str,
    media_type: &'static str,
    bytes: Vec<u8>,
}

/// Why a peer did not pass.
enum Fault {
    /// It cannot run on this machine, and says why.
    Missing(String),
    Wrong(String),
}

fn main() -> ExitCode {
    let peers: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    if peers.is_empty() {
        eprintln!("usage: check-http EXECUTABLE…");
        return ExitCode::from(2);
    }
    let folder = env::temp_dir().join(format!("weir-peers-check-{}", std::process::id()));
    let mut all_right = true;
    for peer in peers.iter().filter(|peer| peer.exists()) {
        match contents().iter().try_for_each(|content| check(peer, content, &folder)) {
            Ok(()) => println!("right   {}", peer.display()),
            Err(Fault::Missing(reason)) => println!("missing {}: {reason}", peer.display()),
            Err(Fault::Wrong(what)) => {
                println!("wrong   {}: {what}", peer.display());
                all_right = false;
            }
        }
    }
    // Nothing is in it but the contents; a peer that left more was named.
    let _ = fs::remove_dir_all(&folder);
    if all_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A small page, a large picture, a single byte. Noise, so that no byte can stand for another.
fn contents() -> [Content; 3] {
    let noise =
        |count: u32| (0..count).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    [
        Content { name: "html", media_type: "text/html; charset=utf-8", bytes: noise(600) },
        Content { name: "image", media_type: "image/jpeg", bytes: noise(151_552) },
        Content { name: "one byte", media_type: "application/octet-stream", bytes: noise(1) },
    ]
}

fn check(peer: &Path, content: &Content, folder: &Path) -> Result<(), Fault> {
    let wrong = |what: String| Fault::Wrong(format!("{}: {what}", content.name));
    let failed = |error: io::Error| wrong(error.to_string());
    // Where it may put what it needs, and must leave nothing.
    let temporary = folder.join("temporary");
    fs::create_dir_all(&temporary).map_err(failed)?;
    let file = folder.join("content file");
    fs::write(&file, &content.bytes).map_err(failed)?;
    let running = Running::start(peer, &file, content.media_type, &temporary)?;
    let asked = ask(running.address, content);
    let ended = running.end();
    asked.and(ended).map_err(wrong)?;
    match fs::read_dir(&temporary).map_err(failed)?.next() {
        None => Ok(()),
        Some(_) => Err(wrong("it left files behind".to_owned())),
    }
}

/// A peer that accepts connections; it is killed with this value.
struct Running {
    child: Child,
    address: SocketAddr,
}

impl Running {
    fn start(peer: &Path, file: &Path, media_type: &str, temporary: &Path) -> Result<Self, Fault> {
        let wrong = |what: String| Fault::Wrong(what);
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let address = free.map_err(|error| wrong(format!("no free port: {error}")))?;
        let mut command = Command::new(peer);
        command.arg(address.port().to_string()).arg(file).arg(media_type).arg("0").env("TMPDIR", temporary);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| wrong(format!("cannot be started: {error}")))?;
        let mut running = Self { child, address };
        let deadline = Instant::now() + START_MAX;
        while TcpStream::connect(address).is_err() {
            if let Ok(Some(status)) = running.child.try_wait() {
                let said = running.said();
                return Err(match status.code() {
                    Some(CODE_ENVIRONMENT) => Fault::Missing(said),
                    _ => wrong(format!("{status}: {said}")),
                });
            }
            if Instant::now() > deadline {
                return Err(wrong("accepts no connection".to_owned()));
            }
            sleep(LOOK);
        }
        Ok(running)
    }

    /// What it wrote to its error output before it ended.
    fn said(&mut self) -> String {
        let mut said = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            // What cannot be read was not said.
            let _ = stderr.read_to_string(&mut said);
        }
        said.trim().replace('\n', "; ")
    }

    /// Asks it to end, as a study does.
    fn end(mut self) -> Result<(), String> {
        let pid = self.child.id().to_string();
        let asked = Command::new("sh").args(["-c", "kill -TERM \"$0\"", &pid]).status();
        if !asked.as_ref().is_ok_and(std::process::ExitStatus::success) {
            return Err("it ended before it was asked to".to_owned());
        }
        let deadline = Instant::now() + END_MAX;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                return Err(format!("SIGTERM does not end it within {} s", END_MAX.as_secs()));
            }
            sleep(LOOK);
        }
        match self.said() {
            said if said.is_empty() => Ok(()),
            said => Err(format!("it should be silent and says: {said}")),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Everything that is asked of a peer that runs.
fn ask(address: SocketAddr, content: &Content) -> Result<(), String> {
    let stays = || -> Result<(), String> {
        let mut connection = Connection::open(address)?;
        for target in ["/", "/a/page.html", "/?x=y"] {
            connection.send("GET", target, false, 1)?;
            connection.reply(content, Body::Whole)?;
        }
        connection.send("HEAD", "/", false, 1)?;
        connection.reply(content, Body::None)?;
        // A body after the head would be taken for the next reply.
        connection.send("GET", "/", false, 1)?;
        connection.reply(content, Body::Whole).map(drop)
    };
    stays().map_err(|what| format!("on a connection that stays, {what}"))?;
    let pipelined = || -> Result<(), String> {
        let mut connection = Connection::open(address)?;
        connection.send("GET", "/", false, PIPELINE_DEPTH)?;
        (0..PIPELINE_DEPTH).try_for_each(|_| connection.reply(content, Body::Whole).map(drop))
    };
    pipelined().map_err(|what| format!("in a pipeline of {PIPELINE_DEPTH}, {what}"))?;
    let closes = || -> Result<(), String> {
        let mut connection = Connection::open(address)?;
        connection.send("GET", "/", true, 1)?;
        let says_close = connection.reply(content, Body::Whole)?;
        if !says_close {
            return Err("the reply does not say close".to_owned());
        }
        connection.is_at_end()
    };
    closes().map_err(|what| format!("on a connection that closes, {what}"))
}

/// Whether bytes follow a head.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    Whole,
    None,
}

struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    fn open(address: SocketAddr) -> Result<Self, String> {
        let open = || -> io::Result<TcpStream> {
            let stream = TcpStream::connect(address)?;
            stream.set_read_timeout(Some(ANSWER_MAX))?;
            stream.set_write_timeout(Some(ANSWER_MAX))?;
            Ok(stream)
        };
        let stream = open().map_err(|error| format!("cannot connect: {error}"))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends the request, so many times in one write.
    fn send(&mut self, method: &str, target: &str, closes: bool, times: usize) -> Result<(), String> {
        let close = if closes { "Connection: close\r\n" } else { "" };
        let request = format!("{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{close}\r\n");
        let sent = self.stream.get_mut().write_all(request.repeat(times).as_bytes());
        sent.map_err(|error| format!("{method} {target} cannot be sent: {error}"))
    }

    /// Reads one reply, which must be this content's. Gives whether the connection closes after it.
    fn reply(&mut self, content: &Content, body: Body) -> Result<bool, String> {
        let status = self.line()?;
        if !status.starts_with("HTTP/1.1 200 ") {
            return Err(format!("the status line is {status:?}"));
        }
        let (mut length, mut media_type, mut says_close) = (None, None, false);
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| format!("a header is {line:?}"))?;
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse::<usize>().ok(),
                "content-type" => media_type = Some(value.to_owned()),
                "connection" => says_close |= value.eq_ignore_ascii_case("close"),
                "transfer-encoding" => return Err(format!("the body is {value}")),
                _ => {}
            }
        }
        if media_type.as_deref() != Some(content.media_type) {
            return Err(format!("the content type is {media_type:?}"));
        }
        let Some(length) = length.filter(|length| *length <= CONTENT_BYTES_MAX) else {
            return Err("the content has no length".to_owned());
        };
        if length != content.bytes.len() {
            return Err(format!("the content has {length} bytes instead of {}", content.bytes.len()));
        }
        if body == Body::Whole {
            let mut bytes = vec![0; length];
            let read = self.stream.read_exact(&mut bytes);
            read.map_err(|error| format!("the content does not come whole: {error}"))?;
            if let Some(at) = bytes.iter().zip(&content.bytes).position(|(got, due)| got != due) {
                return Err(format!("byte {at} of the content is wrong"));
            }
        }
        Ok(says_close)
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = Vec::new();
        let read = self.stream.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        match read.map_err(|error| format!("no head comes: {error}"))? {
            0 => Err("the connection ends instead of a reply".to_owned()),
            _ => Ok(String::from_utf8_lossy(&line).trim_end().to_owned()),
        }
    }

    fn is_at_end(&mut self) -> Result<(), String> {
        match self.stream.read(&mut [0]) {
            Ok(0) => Ok(()),
            Ok(_) => Err("bytes come after the reply".to_owned()),
            Err(error) => Err(format!("it stays open: {error}")),
        }
    }
}
