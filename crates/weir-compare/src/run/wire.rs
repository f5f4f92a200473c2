//! Messages between this process and the one that starts runs: lines of JSON over a pair of sockets.

use std::{
    ffi::OsString,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::PathBuf,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{CpuSource, OutputTo, OwnCost, RunError, RunOutcome, RunSpec, ServerEnd, Serving};

/// Longest message: four times the longest command line and environment that a kernel takes by default.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// How long the other end may take to read; it always waits for a message.
const SEND_MAX: Duration = Duration::from_secs(10);

/// A message to the launcher.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Request {
    /// The first: the source of CPU time, or the best one that works.
    Begin(Option<CpuSource>),
    /// A run.
    Run(Box<WireSpec>),
    /// A server, which runs until [`Request::Stop`]. The folder of all servers is removed with the last of them when
    /// the other end is gone.
    Serve(Box<WireSpec>, OsString),
    /// This folder is removed, with its content, when the other end is gone. It has no reply.
    Hold(OsString),
    /// Runs that do nothing.
    MeasureOwnCost,
    /// Ends the run or the server that is going on. Without one it means nothing.
    Stop,
}

/// A message of the launcher, one for each request but [`Request::Stop`] and [`Request::Hold`]. For a server there is
/// one when it has started, and one when it has ended.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Reply {
    /// It is ready.
    Ready(Hello),
    /// It is not, and ends.
    Refused(String),
    /// A run is over.
    Ended(Box<Result<RunOutcome, RunError>>),
    /// A server runs, and [`Reply::Served`] will follow; or it could not be started.
    Serving(Result<Serving, RunError>),
    /// A server is over, with all that it started.
    Served(Result<ServerEnd, RunError>),
    /// Weir's own cost.
    OwnCost(Result<OwnCost, RunError>),
}

/// A launcher's description of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    /// The source of CPU time.
    pub(super) source: CpuSource,
    /// Why CPU time does not come from a better source.
    pub(super) refusals: Vec<String>,
    /// The parent control group of the groups of runs.
    pub(super) group: Option<OsString>,
}

/// A specification with its paths as bytes: a path need not be text.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WireSpec {
    words: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    folder: Option<OsString>,
    input: Option<OsString>,
    output: WireOutput,
    limit: Duration,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
enum WireOutput {
    Digest,
    Blocks,
    Block(u32),
    Discard,
    File(OsString),
    Log(OsString),
    Inherit,
}

impl From<&RunSpec> for WireSpec {
    fn from(spec: &RunSpec) -> Self {
        Self {
            words: spec.words.clone(),
            environment: spec.environment.clone(),
            folder: spec.folder.clone().map(PathBuf::into_os_string),
            input: spec.input.clone().map(PathBuf::into_os_string),
            output: match &spec.output {
                OutputTo::Digest => WireOutput::Digest,
                OutputTo::Blocks => WireOutput::Blocks,
                OutputTo::Block(number) => WireOutput::Block(*number),
                OutputTo::Discard => WireOutput::Discard,
                OutputTo::File(path) => WireOutput::File(path.clone().into_os_string()),
                OutputTo::Log(path) => WireOutput::Log(path.clone().into_os_string()),
                OutputTo::Inherit => WireOutput::Inherit,
            },
            limit: spec.limit,
        }
    }
}

impl From<WireSpec> for RunSpec {
    fn from(wire: WireSpec) -> Self {
        Self {
            words: wire.words,
            environment: wire.environment,
            folder: wire.folder.map(PathBuf::from),
            input: wire.input.map(PathBuf::from),
            output: match wire.output {
                WireOutput::Digest => OutputTo::Digest,
                WireOutput::Blocks => OutputTo::Blocks,
                WireOutput::Block(number) => OutputTo::Block(number),
                WireOutput::Discard => OutputTo::Discard,
                WireOutput::File(path) => OutputTo::File(path.into()),
                WireOutput::Log(path) => OutputTo::Log(path.into()),
                WireOutput::Inherit => OutputTo::Inherit,
            },
            limit: wire.limit,
        }
    }
}

/// One end of the pair.
#[derive(Debug)]
pub(super) struct Channel {
    socket: UnixStream,
    received: Vec<u8>,
    /// Bytes of it that are known to contain no end of a message.
    searched: usize,
}

impl Channel {
    /// An end of a pair that was made elsewhere.
    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        let socket = UnixStream::from(socket);
        socket.set_write_timeout(Some(SEND_MAX))?;
        Ok(Self { socket, received: Vec::new(), searched: 0 })
    }

    /// Sends a message.
    pub(super) fn send<T: Serialize>(&mut self, message: &T) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        if line.len() > MESSAGE_BYTES_MAX {
            let reason = "a command with its environment is too long for any kernel";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        self.socket.write_all(&line)
    }

    /// The next message; `None` when there is none within the time. An error when the other end is gone.
    pub(super) fn receive<T: DeserializeOwned>(
        &mut self,
        patience: Option<Duration>,
    ) -> io::Result<Option<T>> {
        let deadline = patience.map(|patience| Instant::now() + patience);
        loop {
            if let Some(message) = self.take()? {
                return Ok(Some(message));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if !self.wait(left)? {
                return Ok(None);
            }
            self.read()?;
        }
    }

    /// The next complete message.
    fn take<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let Some(ahead) = self.received[self.searched..].iter().position(|byte| *byte == b'\n') else {
            self.searched = self.received.len();
            return Ok(None);
        };
        let end = self.searched + ahead;
        self.searched = 0;
        let message = serde_json::from_slice(&self.received[..end]);
        self.received.drain(..=end);
        Ok(Some(message?))
    }

    /// Whether something came within the time. A signal counts as nothing, so that its reason is looked at.
    fn wait(&self, longest: Option<Duration>) -> io::Result<bool> {
        let timeout = longest.and_then(|longest| Timespec::try_from(longest).ok());
        match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], timeout.as_ref()) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) if longest.is_some() => Ok(false),
            Err(Errno::INTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    fn read(&mut self) -> io::Result<()> {
        let mut chunk = [0; 16 << 10];
        match self.socket.read(&mut chunk) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) if self.received.len() + length > MESSAGE_BYTES_MAX => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "a message without end"))
            }
            Ok(length) => {
                self.received.extend_from_slice(&chunk[..length]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The file descriptor to poll.
    pub(super) fn waits_for(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn pair() -> (Channel, Channel) {
        let (one, other) = UnixStream::pair().expect("a pair of sockets");
        let end = |socket: UnixStream| Channel::new(socket.into()).expect("a channel");
        (end(one), end(other))
    }

    #[test]
    fn a_specification_arrives_as_it_was_also_with_names_that_are_no_text() {
        let odd = || OsString::from_vec(b"a\xff b\n".to_vec());
        let (file, log) = (OutputTo::File(PathBuf::from(odd())), OutputTo::Log(PathBuf::from(odd())));
        let (blocks, block) = (OutputTo::Blocks, OutputTo::Block(7));
        let outputs = [OutputTo::Digest, blocks, block, OutputTo::Discard, file, log, OutputTo::Inherit];
        for output in outputs {
            let spec = RunSpec {
                words: vec!["sort".into(), odd()],
                environment: vec![("LC_ALL".into(), odd())],
                folder: Some(odd().into()),
                input: Some(odd().into()),
                output,
                limit: Duration::new(3, 4),
            };
            let (mut one, mut other) = pair();
            one.send(&Request::Run(Box::new((&spec).into()))).expect("it is read");
            match other.receive(None).expect("it is well-formed") {
                Some(Request::Run(wire)) => assert_eq!(RunSpec::from(*wire), spec),
                received => panic!("a run: {received:?}"),
            }
        }
    }

    #[test]
    fn messages_keep_their_order_and_the_end_of_the_other_side_is_an_error() {
        let (mut one, mut other) = pair();
        assert_eq!(other.receive::<Request>(Some(Duration::ZERO)).expect("it is open"), None);
        one.send(&Request::MeasureOwnCost).expect("it is open");
        one.send(&Request::Stop).expect("it is open");
        drop(one);
        assert_eq!(other.receive(None).expect("the first"), Some(Request::MeasureOwnCost));
        assert_eq!(other.receive(None).expect("the second"), Some(Request::Stop));
        let error = other.receive::<Request>(None).expect_err("it is closed");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_message_that_is_too_long_is_not_sent_and_one_without_end_is_not_read() {
        let (mut one, _other) = pair();
        let error = one.send(&"a".repeat(MESSAGE_BYTES_MAX)).expect_err("two quotes and an end too many");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let (mut one, mut other) = pair();
        let writes = std::thread::spawn(move || {
            // Ends with an error when the reader is gone.
            let _ = one.socket.write_all(&vec![b'a'; MESSAGE_BYTES_MAX + 1]);
        });
        let error = other.receive::<Request>(None).expect_err("it has no end");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        drop(other);
        writes.join().expect("it does not panic");
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        let (mut one, mut other) = pair();
        one.socket.write_all(b"{}\n").expect("it is open");
        assert!(other.receive::<Request>(None).is_err());
    }
}
