//! The control socket: a Unix socket that only its owner may open. One line of JSON asks, one line of JSON answers.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::{
    fs::Mode,
    net::{AddressFamily, SocketFlags, SocketType},
};
use serde::{Deserialize, Serialize};
use weir_record::orders::SessionStats;
use weir_sys::unix_path::{self, BoundPath};

use super::{GatewayControl, account_limits::Limits};
use crate::thread_per_connection::{CallerSlot, talk_to_each};

/// Callers at a time. One more takes the place of the one that has asked nothing for longest.
const CALLERS_MAX: usize = 16;
/// Of these, how many are answered at a time that do not turn a kill switch on: they may have to wait for a disk, and
/// must not take all places. More are refused.
const OTHERS_MAX: usize = 8;
/// Longest line of a request.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// Name of its threads.
const THREAD: &str = "weir-control";
/// How long a caller may say nothing or not take its answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum ControlRequest {
    /// Show limits, and change them first if `set` says so.
    Limits {
        /// Account; absent: those of all accounts that have none of their own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        account: Option<String>,
        /// Keys of [`Limits`] with their new values; `null` takes a limit away.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        set: Option<serde_json::Map<String, serde_json::Value>>,
    },
    /// Show the prices from which the distance of an order is measured, and set some first if `set` says so.
    References {
        /// Symbols with their prices in units of the currency; `null` takes one away. The answer has these alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        set: Option<BTreeMap<String, Option<f64>>>,
    },
    /// Turn a kill switch on or off.
    Kill {
        /// Account; absent: everybody.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        account: Option<String>,
        /// On or off.
        on: bool,
    },
    /// End in good order; clients can join their session again after the next start.
    Drain,
    /// End the session with clients, and with it the gateway.
    EndSession {
        /// Its name, as [`ControlResponse::session`] has it: so nobody ends another one than was meant.
        session: String,
    },
    /// The clients' and the upstream sessions.
    Sessions,
}

/// What is answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ControlResponse {
    /// Whether it was done.
    pub ok: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The limits that count now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Reference prices by symbol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub references: Option<BTreeMap<String, f64>>,
    /// Kill switches that are on: accounts, and `*` for everybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub killed: Option<Vec<String>>,
    /// Of a kill switch: what has become of the orders that were open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancels: Option<Vec<VenueCancels>>,
    /// Name of the session that clients can join.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Clients that are logged in, at most [`SESSIONS_LISTED_MAX`](weir_record::orders::SESSIONS_LISTED_MAX).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Vec<SessionStats>>,
    /// How many there are, listed or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions_open: Option<u64>,
    /// Upstream sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstreams: Option<Vec<UpstreamStatus>>,
    /// Accounts that have sent what is no message, one that is not supported, or one with a number of a session
    /// that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_errors: Option<Vec<ProtocolErrors>>,
}

/// What a client sent that could not be taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProtocolErrors {
    /// Account.
    pub account: String,
    /// What was wrong, as in the counters of protocol errors.
    pub kind: String,
    /// How often.
    pub count: u64,
}

/// What has become of the orders of a kill switch at one venue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VenueCancels {
    /// Venue.
    pub venue: String,
    /// Orders that were open when the switch was turned on.
    pub orders: u64,
    /// Cancels that have left for the exchange. Without a connection none have: they leave when there is one.
    pub sent: u64,
    /// Orders that are over, as the exchange says.
    pub confirmed: u64,
    /// Orders that are over without a word of the exchange: they had not left, were too old to be sent again, or it has
    /// begun another session.
    pub expired: u64,
}

impl fmt::Display for VenueCancels {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { venue, orders, sent, confirmed, expired } = self;
        write!(
            formatter,
            "venue {venue}: {orders} orders were open, {sent} cancels are sent, {confirmed} are confirmed"
        )?;
        if *expired > 0 {
            write!(formatter, ", {expired} have expired")?;
        }
        Ok(())
    }
}

/// Why a kill switch is not what it should be, and what has become of the orders all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KillError {
    /// In words.
    pub reason: String,
    /// As without an error.
    pub cancels: Vec<VenueCancels>,
}

impl fmt::Display for KillError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.reason)?;
        self.cancels.iter().try_for_each(|venue| write!(formatter, "; {venue}"))
    }
}

impl std::error::Error for KillError {}

impl From<String> for KillError {
    fn from(reason: String) -> Self {
        Self { reason, cancels: Vec::new() }
    }
}

/// One upstream session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UpstreamStatus {
    /// Venue.
    pub venue: String,
    /// Worker.
    pub worker: u32,
    /// Whether orders can be sent.
    pub is_open: bool,
    /// Why it was last lost or not made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// The exchange's session, once it was joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// How often it was another one than before, since the gateway's start.
    pub times_begun_anew: u64,
    /// Orders that expired with that.
    pub orders_expired: u64,
}

/// A bound control socket. Its path is removed when it is dropped, unless another process has bound it anew.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: OwnPath,
}

/// A path that is removed when it is not needed any more. None if it was gone at once.
#[derive(Debug)]
struct OwnPath(Option<BoundPath>);

impl Drop for OwnPath {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            path.remove();
        }
    }
}

/// An open control socket: dropping it removes the path, unless another process has bound it anew.
#[derive(Debug)]
#[must_use = "the path is removed when this is dropped"]
pub struct ControlPath {
    _path: OwnPath,
}

impl ControlSocket {
    /// Takes the path, with mode 0600 from the first moment on. A socket that a dead process left is replaced.
    ///
    /// # Errors
    /// `AddrInUse` when another process listens there; those of [`unix_path::listen`].
    pub fn bind(path: &Path) -> io::Result<Self> {
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // The path gets the mode of the socket; to change it later would leave a moment in which others could come in.
        rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
        unix_path::listen(&socket, path, CALLERS_MAX as i32)?;
        Ok(Self { listener: UnixListener::from(socket), path: OwnPath(BoundPath::of(path)) })
    }

    /// Starts answering, for as long as the process lives.
    ///
    /// # Errors
    /// When no thread can be had.
    pub fn answer(self, control: GatewayControl) -> io::Result<ControlPath> {
        let Self { listener, path } = self;
        let others = Others::default();
        let talk = move |caller: UnixStream, slot: &CallerSlot| {
            // A caller that breaks off is not our concern.
            let _ = converse(caller, |request| {
                slot.answer(|| others.admit(&request, || perform(&control, request.clone())))
            });
        };
        // Who may open the path may ask.
        let run = move || talk_to_each(&listener, (THREAD, CALLERS_MAX), |_| true, talk);
        thread::Builder::new().name(THREAD.into()).spawn(run)?;
        Ok(ControlPath { _path: path })
    }
}

fn converse(stream: UnixStream, answer: impl Fn(ControlRequest) -> ControlResponse) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut output = stream.try_clone()?;
    let mut input = BufReader::new(stream);
    let mut line = String::new();
    loop {
        line.clear();
        if Read::take(&mut input, LINE_BYTES_MAX).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let answered = match serde_json::from_str::<ControlRequest>(&line) {
            Ok(request) => answer(request),
            Err(error) => refused(format!("this is no request: {error}")),
        };
        let mut text = serde_json::to_string(&answered)?;
        text.push('\n');
        output.write_all(text.as_bytes())?;
    }
}

/// Requests that are being answered and turn no kill switch on.
#[derive(Clone, Debug, Default)]
struct Others(Arc<AtomicUsize>);

impl Others {
    /// Has a request answered, unless too many others are.
    fn admit(&self, request: &ControlRequest, work: impl FnOnce() -> ControlResponse) -> ControlResponse {
        if matches!(request, ControlRequest::Kill { on: true, .. }) {
            return work();
        }
        let is_one_too_many = self.0.fetch_add(1, Ordering::Relaxed) >= OTHERS_MAX;
        let answer = if is_one_too_many {
            refused(format!("{OTHERS_MAX} other requests are being answered; ask again"))
        } else {
            work()
        };
        self.0.fetch_sub(1, Ordering::Relaxed);
        answer
    }
}

fn refused(error: String) -> ControlResponse {
    ControlResponse { error: Some(error), ..ControlResponse::default() }
}

fn perform(control: &GatewayControl, request: ControlRequest) -> ControlResponse {
    let done = ControlResponse { ok: true, ..ControlResponse::default() };
    let outcome = match request {
        ControlRequest::Limits { account, set } => {
            let changed = set.map_or(Ok(()), |set| control.set_limits(account.as_deref(), set));
            changed.and_then(|()| {
                let limits = control.limits(account.as_deref())?;
                Ok(ControlResponse { limits: Some(limits), killed: Some(control.killed()), ..done })
            })
        }
        ControlRequest::References { set } => {
            let named = set.as_ref().map(|set| set.keys().cloned().collect::<BTreeSet<String>>());
            let is_asked = |symbol: &String| named.as_ref().is_none_or(|named| named.contains(symbol));
            set.map_or(Ok(()), |set| control.set_references(set)).map(|()| {
                let mut references = control.references();
                references.retain(|symbol, _| is_asked(symbol));
                ControlResponse { references: Some(references), ..done }
            })
        }
        ControlRequest::Kill { account, on } => {
            let outcome = control.kill(account.as_deref(), on);
            // Also when it went wrong: a switch that could not be kept is on.
            let killed = Some(control.killed());
            Ok(match outcome {
                Ok(cancels) => ControlResponse { killed, cancels: Some(cancels), ..done },
                Err(error) => {
                    let reason = error.to_string();
                    ControlResponse { killed, cancels: Some(error.cancels), ..refused(reason) }
                }
            })
        }
        ControlRequest::Drain => {
            control.drain();
            Ok(done)
        }
        ControlRequest::EndSession { session } => control.end_session(&session).map(|()| done),
        ControlRequest::Sessions => {
            let stats = control.node_stats();
            Ok(ControlResponse {
                session: Some(control.orders().session().to_string()),
                sessions: Some(stats.sessions),
                sessions_open: Some(stats.sessions_open),
                upstreams: Some(control.upstreams()),
                protocol_errors: Some(protocol_errors(control)),
                ..done
            })
        }
    };
    outcome.unwrap_or_else(refused)
}

fn protocol_errors(control: &GatewayControl) -> Vec<ProtocolErrors> {
    let all = control.orders().protocol_errors().into_iter();
    all.map(|(account, kind, count)| ProtocolErrors { account, kind: kind.to_owned(), count }).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn the_path_is_private_replaces_a_dead_one_and_is_removed() {
        let path = std::env::temp_dir().join(format!("weir-control-{}.sock", std::process::id()));
        let socket = ControlSocket::bind(&path).expect("the path is free");
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
        assert_eq!(ControlSocket::bind(&path).expect_err("it is taken").kind(), io::ErrorKind::AddrInUse);
        drop(socket);
        assert!(!path.exists());
        // As a process that was killed leaves it.
        drop(UnixListener::bind(&path).expect("the path is free"));
        drop(ControlSocket::bind(&path).expect("nobody answers there"));
        fs::write(&path, "a file").expect("a folder that can be written");
        assert!(ControlSocket::bind(&path).is_err());
        fs::remove_file(&path).expect("it is ours");
    }

    #[test]
    fn the_path_of_a_successor_outlives_the_one_before_it() {
        let path = std::env::temp_dir().join(format!("weir-control-successor-{}.sock", std::process::id()));
        let old = ControlSocket::bind(&path).expect("the path is free");
        // As somebody does who takes the old gateway for dead.
        fs::remove_file(&path).expect("it is ours");
        let new = ControlSocket::bind(&path).expect("the path is free again");
        drop(old);
        UnixStream::connect(&path).expect("the new one is still there");
        let refused = ControlSocket::bind(&path).expect_err("it lives");
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        drop(new);
        assert!(!path.exists());
    }

    #[test]
    fn a_kill_switch_is_turned_on_however_many_other_requests_wait() {
        /// So many limits are asked for, each while the one before is being answered, and then a kill switch.
        fn ask(others: &Others, left: usize) -> Vec<bool> {
            let mut answers = Vec::new();
            if left == 0 {
                let kill = ControlRequest::Kill { account: None, on: true };
                let done = || ControlResponse { ok: true, ..ControlResponse::default() };
                answers.push(others.admit(&kill, done).ok);
                answers.push(others.admit(&ControlRequest::Sessions, done).ok);
                return answers;
            }
            others.admit(&ControlRequest::Limits { account: None, set: None }, || {
                answers = ask(others, left - 1);
                ControlResponse::default()
            });
            answers
        }
        let others = Others::default();
        assert_eq!(ask(&others, OTHERS_MAX), [true, false]);
        assert_eq!(ask(&others, OTHERS_MAX - 1), [true, true], "all places are free again");
    }

    #[test]
    fn requests_are_read_and_unknown_keys_are_not() {
        let read = |text: &str| serde_json::from_str::<ControlRequest>(text);
        assert_eq!(read(r#"{"command":"drain"}"#).expect("known"), ControlRequest::Drain);
        let kill = ControlRequest::Kill { account: Some("C00001".into()), on: true };
        assert_eq!(read(r#"{"command":"kill","account":"C00001","on":true}"#).expect("known"), kill);
        assert!(read(r#"{"command":"kill","acount":"C00001","on":true}"#).is_err());
        assert!(read(r#"{"command":"fly"}"#).is_err());
    }
}
