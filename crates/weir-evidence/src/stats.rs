//! Reads the counters of a Weir server: a line sent to its statistics socket returns a line of JSON.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    os::{linux::net::SocketAddrExt, unix::net::SocketAddr, unix::net::UnixStream},
    time::Duration,
};

use weir_record::engine::{CLOCK_OFF, CLOCK_ON, ServerStats};

/// Longest wait for an answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest answer.
pub const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// A connection to a server's statistics socket.
#[derive(Debug)]
pub struct StatsClient {
    stream: BufReader<UnixStream>,
}

impl StatsClient {
    /// Connects to an abstract Unix socket, `@name`.
    pub fn connect(name: &str) -> io::Result<Self> {
        let Some(bare) = name.strip_prefix('@') else {
            return Err(io::Error::other("the name of a statistics socket begins with @"));
        };
        let stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(bare)?)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// The counters of all workers, and of the whole node.
    pub fn read(&mut self) -> io::Result<ServerStats> {
        self.ask("")
    }

    /// Like [`Self::read`], after switching the clock for the time outside of system calls. A server without that
    /// clock answers as usual.
    pub fn time_calls(&mut self, on: bool) -> io::Result<ServerStats> {
        self.ask(if on { CLOCK_ON } else { CLOCK_OFF })
    }

    fn ask(&mut self, what: &str) -> io::Result<ServerStats> {
        self.stream.get_mut().write_all(format!("{what}\n").as_bytes())?;
        let mut line = String::new();
        (&mut self.stream).take(ANSWER_BYTES_MAX).read_line(&mut line)?;
        serde_json::from_str(&line)
            .map_err(|error| io::Error::other(format!("the answer is not a line of statistics: {error}")))
    }
}
