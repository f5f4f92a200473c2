//! A client, written once: a blocking socket for kernel drivers, a stream in the same runtime on the simulator.

use std::{
    io::{self, Read, Write},
    net::Shutdown,
    time::Duration,
};

use weir_engine::net::{Address, Stream};
use weir_proto::http1::{Event, Limits, Method, ResponseDecoder, Step, encode::CONTINUE};

/// Longest wait for a server on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

enum End {
    Socket(std::net::TcpStream),
    Simulated(Stream),
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    End,
    Reset,
}

/// One response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    /// Names in lower case, in order; without `date`, whose value is in the field `date`.
    pub headers: Vec<(String, String)>,
    pub date: String,
    pub content: Vec<u8>,
    /// Interim responses before it.
    pub interim: Vec<u16>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A connection to the server.
pub struct Client {
    end: End,
    decoder: ResponseDecoder,
    input: Vec<u8>,
}

impl Client {
    pub fn connect(address: &Address, receive_bytes: Option<usize>) -> Self {
        let Address::Tcp(address) = address else { panic!("{address} is no TCP address") };
        let socket = std::net::TcpStream::connect(address).expect("it listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        socket.set_nodelay(true).expect("a socket");
        if let Some(bytes) = receive_bytes {
            rustix::net::sockopt::set_socket_recv_buffer_size(&socket, bytes).expect("a socket");
        }
        Self::over(End::Socket(socket))
    }

    pub fn simulated(stream: Stream) -> Self {
        Self::over(End::Simulated(stream))
    }

    fn over(end: End) -> Self {
        let limits = Limits { body_bytes_max: u64::MAX, ..Limits::default() };
        Self { end, decoder: ResponseDecoder::new(limits), input: Vec::new() }
    }

    /// Sends all bytes.
    pub async fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.end {
            End::Socket(socket) => socket.write_all(bytes),
            End::Simulated(stream) => {
                stream.send_slice(bytes).await?;
                stream.flush().await
            }
        }
    }

    /// Sends all bytes over a socket; false: the server does not take them.
    pub fn try_write_now(&mut self, bytes: &[u8]) -> bool {
        match &mut self.end {
            End::Socket(socket) => socket.write_all(bytes).is_ok(),
            End::Simulated(_) => panic!("a simulated stream has to be awaited"),
        }
    }

    /// Sends the same bytes over a socket repeatedly, as long as they are taken; returns how many were.
    pub fn write_while_taken(&mut self, bytes: &[u8], bytes_max: usize) -> usize {
        let End::Socket(socket) = &mut self.end else { panic!("a simulated stream has to be awaited") };
        socket.set_write_timeout(Some(Duration::from_millis(200))).expect("a socket");
        let mut taken = 0;
        while taken < bytes_max {
            match socket.write(&bytes[taken % bytes.len()..]) {
                Ok(count) => taken += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => panic!("it goes on: {error}"),
            }
        }
        taken
    }

    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_write(bytes.as_ref()).await.expect("the server listens");
    }

    /// Ends our direction.
    pub async fn shutdown(&mut self) {
        match &mut self.end {
            End::Socket(socket) => socket.shutdown(Shutdown::Write).expect("open"),
            End::Simulated(stream) => stream.shutdown().await.expect("open"),
        }
    }

    async fn read(&mut self) -> io::Result<usize> {
        match &mut self.end {
            End::Socket(socket) => {
                let mut bytes = [0; 16 << 10];
                let count = loop {
                    match socket.read(&mut bytes) {
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        outcome => break outcome?,
                    }
                };
                self.input.extend_from_slice(&bytes[..count]);
                Ok(count)
            }
            End::Simulated(stream) => {
                let lease = stream.recv().await?;
                let bytes: &[u8] = lease.as_deref().unwrap_or_default();
                self.input.extend_from_slice(bytes);
                Ok(bytes.len())
            }
        }
    }

    /// Reads until this many unparsed bytes are held.
    pub async fn take_in(&mut self, bytes: usize) {
        while self.input.len() < bytes {
            assert_ne!(
                self.read().await.expect("it goes on"),
                0,
                "it ended after {} bytes",
                self.input.len()
            );
        }
    }

    /// The next response to a request with this method, or how the connection ended instead.
    pub async fn response(&mut self, method: Method) -> Result<Response, Ending> {
        let mut response = Response {
            status: 0,
            headers: Vec::new(),
            date: String::new(),
            content: Vec::new(),
            interim: Vec::new(),
        };
        loop {
            let Step { consumed, event } =
                self.decoder.decode(method, &self.input).expect("responses are valid");
            let mut needs_more = false;
            match event {
                Event::NeedMore => needs_more = true,
                Event::Head(head) if head.is_interim() => response.interim.push(head.status),
                Event::Head(head) => {
                    response.status = head.status;
                    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("ASCII");
                    for (name, value) in head.headers.iter() {
                        let (name, value) = (text(name).to_ascii_lowercase(), text(value));
                        if name == "date" {
                            response.date = value;
                        } else {
                            response.headers.push((name, value));
                        }
                    }
                }
                Event::Body(bytes) => response.content.extend_from_slice(bytes),
                Event::End { .. } => {
                    self.input.drain(..consumed);
                    return Ok(response);
                }
                Event::ExpectContinue | Event::Finished => panic!("a response after the last one"),
            }
            self.input.drain(..consumed);
            if needs_more {
                match self.read().await {
                    Ok(0) => return Err(Ending::End),
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                        return Err(Ending::Reset);
                    }
                    Err(error) => panic!("no response: {error}"),
                }
            }
        }
    }

    /// Reads `100 Continue`, and checks that nothing follows.
    pub async fn expect_interim(&mut self) {
        while self.input.len() < CONTINUE.len() {
            assert_ne!(self.read().await.expect("it goes on"), 0);
        }
        assert_eq!(String::from_utf8_lossy(&self.input), String::from_utf8_lossy(CONTINUE));
        self.input.clear();
    }

    /// Reads a response with a `Content-Length`, and returns its head as text.
    pub async fn raw_head(&mut self) -> String {
        loop {
            let text = String::from_utf8_lossy(&self.input).into_owned();
            if let Some((head, _)) = text.split_once("\r\n\r\n") {
                let (_, length) = head.split_once("Content-Length: ").expect("a length");
                let length: usize =
                    length.split("\r\n").next().and_then(|digits| digits.parse().ok()).expect("digits");
                let whole = head.len() + 4 + length;
                if self.input.len() >= whole {
                    self.input.drain(..whole);
                    return format!("{head}\r\n");
                }
            }
            assert_ne!(self.read().await.expect("it goes on"), 0, "it ended");
        }
    }

    /// Writes a request and reads its response.
    pub async fn ask(&mut self, method: Method, request: impl AsRef<[u8]>) -> Response {
        self.write(request).await;
        self.response(method).await.expect("a response")
    }

    /// Discards this many bytes from a socket, faster than they can be sent; false: it ended before.
    pub fn discard(&mut self, mut bytes: usize) -> bool {
        let End::Socket(socket) = &self.end else { panic!("a simulated stream has no such call") };
        let mut place = [0; 1 << 20];
        while bytes > 0 {
            let length = place.len().min(bytes);
            match rustix::net::recv(socket, &mut place[..length], rustix::net::RecvFlags::TRUNC) {
                Ok((_, 0)) => return false,
                Ok((_, length)) => bytes -= length,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => panic!("it goes on: {error}"),
            }
        }
        true
    }

    /// Everything up to the end, as bytes.
    pub async fn rest(&mut self) -> (Vec<u8>, Ending) {
        loop {
            match self.read().await {
                Ok(0) => return (std::mem::take(&mut self.input), Ending::End),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return (std::mem::take(&mut self.input), Ending::Reset);
                }
                Err(error) => panic!("no end: {error}"),
            }
        }
    }

    /// Checks that the connection ends in order, and nothing more arrives.
    pub async fn expect_end(&mut self) {
        let (rest, ending) = self.rest().await;
        assert_eq!((String::from_utf8_lossy(&rest).as_ref(), ending), ("", Ending::End));
    }

    /// Ends the connection with a reset.
    pub fn reset(self) {
        match self.end {
            End::Socket(socket) => {
                rustix::net::sockopt::set_socket_linger(&socket, Some(Duration::ZERO)).expect("a socket")
            }
            End::Simulated(stream) => stream.abort(),
        }
    }
}

/// A GET of this target.
pub fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n")
}
