//! The control socket: a Unix socket that only its owner may open. A request is one line of JSON, and so is its
//! answer.

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
use weir_proto::ouch::Symbol;
use weir_record::orders::SessionStats;
use weir_sys::unix_path::{self, BoundPath};

use super::{GatewayControl, account_limits::Limits, audit::Operator, limit_sources::LimitStatus};
use crate::thread_per_connection::{CallerSlot, talk_to_each};

/// Most callers at a time. A further one replaces the one that has been idle for longest.
const CALLERS_MAX: usize = 16;
/// Most concurrent requests other than engaging a kill switch: they may have to wait for a disk, and must not occupy
/// all places. Further ones are refused.
const OTHERS_MAX: usize = 8;
/// Longest line of a request.
const LINE_BYTES_MAX: u64 = 1 << 20;
/// How long an answer waits for the record of the command.
pub(super) const AUDIT_PATIENCE: Duration = Duration::from_secs(1);
/// Name of its threads.
const THREAD: &str = "weir-control";
/// How long a caller may be silent or not take its answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum ControlRequest {
    /// Show limits, and first change them if `set` or `reset` is given; both at once are refused.
    Limits {
        /// Account; absent: the common limits of accounts without their own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        account: Option<String>,
        /// Keys of [`Limits`] with their new values; `null` removes a limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        set: Option<serde_json::Map<String, serde_json::Value>>,
        /// Names of limits that go back to their values in the configuration; an empty list stands for all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reset: Option<BTreeSet<String>>,
    },
    /// Show the reference prices, from which the distance of an order's price is measured, and first set some if
    /// `set` is given.
    References {
        /// Symbols with their prices in units of the currency; `null` removes one. The answer contains only these.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        set: Option<BTreeMap<String, Option<f64>>>,
    },
    /// Turn a kill switch on or off.
    Kill {
        /// Account; absent: all accounts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        account: Option<String>,
        /// On or off.
        on: bool,
    },
    /// Drain the gateway; clients can join their session again after the next start.
    Drain,
    /// End the session with clients, and with it the gateway.
    EndSession {
        /// Its name, as in [`ControlResponse::session`]: this prevents ending another session than intended.
        session: String,
    },
    /// Read the configuration again and carry it out, whole or not at all.
    Reload,
    /// Show the clients' and the upstream sessions.
    Sessions,
}

impl ControlRequest {
    /// Whether it changes something, or tries to; otherwise it only shows something. What acts is recorded with its
    /// operator.
    pub(super) fn acts(&self) -> bool {
        match self {
            Self::Limits { set, reset, .. } => set.is_some() || reset.is_some(),
            Self::References { set } => set.is_some(),
            Self::Kill { .. } | Self::Drain | Self::EndSession { .. } | Self::Reload => true,
            Self::Sessions => false,
        }
    }

    /// Whether the gateway ends with it: a record of it has to come first.
    fn ends(&self) -> bool {
        matches!(self, Self::Drain | Self::EndSession { .. })
    }
}

/// The answer to a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ControlResponse {
    /// Whether the request was executed.
    pub ok: bool,
    /// The reason, if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The limits in force now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// The same limits and those that there are not, with the origin of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_statuses: Option<Vec<LimitStatus>>,
    /// Reference prices by symbol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub references: Option<BTreeMap<String, f64>>,
    /// Engaged kill switches: accounts, and `*` for the switch of all accounts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub killed: Option<Vec<String>>,
    /// After a kill switch: the state of the orders that were open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancels: Option<Vec<VenueCancels>>,
    /// Name of the session that clients can join.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Clients that are logged in, at most [`SESSIONS_LISTED_MAX`](weir_record::orders::SESSIONS_LISTED_MAX).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Vec<SessionStats>>,
    /// The number of logged-in clients, listed or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions_open: Option<u64>,
    /// After a reload: what has changed, in lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<String>>,
    /// Upstream sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstreams: Option<Vec<UpstreamStatus>>,
    /// Accounts that have sent invalid or unsupported messages, or a number of a session that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_errors: Option<Vec<ProtocolErrors>>,
}

/// Rejected messages of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProtocolErrors {
    /// Account.
    pub account: String,
    /// The kind of error, as in the counters of protocol errors.
    pub kind: String,
    /// How often.
    pub count: u64,
}

/// The state of a kill switch's orders at one venue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VenueCancels {
    /// The venue.
    pub venue: String,
    /// Orders that were open when the switch was turned on.
    pub orders: u64,
    /// Cancels that have been sent to the exchange. Without a connection there are none: they are sent when there is
    /// one.
    pub sent: u64,
    /// Orders that the exchange has reported as ended.
    pub confirmed: u64,
    /// Orders that have ended without a message from the exchange: they had not been sent, were too old to be sent
    /// again, or it has begun another session.
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

/// Why a kill switch failed in part, and the state of the orders anyway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KillError {
    /// The reason, in words.
    pub reason: String,
    /// The cancels, as without an error.
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
    /// The venue.
    pub venue: String,
    /// The worker.
    pub worker: u32,
    /// Whether orders can be sent.
    pub is_open: bool,
    /// Why the connection was last lost or could not be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// The exchange's session, once it has been joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// How often it differed from the previous one, since the gateway's start.
    pub times_begun_anew: u64,
    /// Orders that expired because of that.
    pub orders_expired: u64,
}

/// A bound control socket. Its path is removed on drop, unless another process has bound it again.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: OwnPath,
}

/// A path that is removed when it is no longer needed. None if it was removed at once.
#[derive(Debug)]
struct OwnPath(Option<BoundPath>);

impl Drop for OwnPath {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            path.remove();
        }
    }
}

/// An open control socket: dropping it removes the path, unless another process has bound it again.
#[derive(Debug)]
#[must_use = "the path is removed when this is dropped"]
pub struct ControlPath {
    _path: OwnPath,
}

impl ControlSocket {
    /// Binds the path, with mode 0600 from the start. A socket that a dead process left behind is replaced.
    ///
    /// # Errors
    /// `AddrInUse` when another process listens there; the errors of [`unix_path::listen`].
    pub fn bind(path: &Path) -> io::Result<Self> {
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // The path gets the mode of the socket; changing it later would leave a moment in which others could connect.
        rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
        unix_path::listen(&socket, path, CALLERS_MAX as i32)?;
        Ok(Self { listener: UnixListener::from(socket), path: OwnPath(BoundPath::of(path)) })
    }

    /// Starts answering, for as long as the process lives.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn answer(self, control: GatewayControl) -> io::Result<ControlPath> {
        let Self { listener, path } = self;
        let others = Others::default();
        let talk = move |caller: UnixStream, slot: &CallerSlot| {
            let operator = Operator::of_peer(&caller);
            // A caller that disconnects is not an error.
            let _ = converse(caller, |request| {
                slot.answer(|| others.admit(&request, || audited(&control, &operator, request.clone())))
            });
        };
        // Everyone who may open the path may send requests.
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

/// Requests in progress that do not engage a kill switch.
#[derive(Clone, Debug, Default)]
struct Others(Arc<AtomicUsize>);

impl Others {
    /// Executes a request, unless too many others are in progress.
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

/// Executes a request, and records it if it acts.
fn audited(control: &GatewayControl, operator: &Operator, request: ControlRequest) -> ControlResponse {
    if request.ends() {
        // Its outcome is the end of the journal; a refusal follows as another record.
        let begun = ControlResponse { ok: true, ..ControlResponse::default() };
        control.audit(operator, &request, &begun, AUDIT_PATIENCE);
    }
    let answer = perform(control, request.clone());
    let patience = match request {
        // A disk must not delay the answer.
        ControlRequest::Kill { on: true, .. } => Duration::ZERO,
        _ => AUDIT_PATIENCE,
    };
    if !request.ends() || !answer.ok {
        control.audit(operator, &request, &answer, patience);
    }
    answer
}

fn perform(control: &GatewayControl, request: ControlRequest) -> ControlResponse {
    let done = ControlResponse { ok: true, ..ControlResponse::default() };
    let outcome = match request {
        ControlRequest::Limits { account, set, reset } => {
            let account = account.as_deref();
            let changed = match (set, reset) {
                (None, None) => Ok(()),
                (Some(set), None) => control.set_limits(account, set),
                (None, Some(names)) => control.reset_limits(account, names),
                (Some(_), Some(_)) => Err("set and reset are two requests".to_owned()),
            };
            changed.and_then(|()| {
                let (limits, statuses) = (control.limits(account)?, control.limit_statuses(account)?);
                let killed = Some(control.killed());
                Ok(ControlResponse { limits: Some(limits), limit_statuses: Some(statuses), killed, ..done })
            })
        }
        ControlRequest::References { set } => {
            let named =
                set.as_ref().map(|set| set.keys().map(|text| shown_as(text)).collect::<BTreeSet<String>>());
            let is_asked = |symbol: &String| named.as_ref().is_none_or(|named| named.contains(symbol));
            set.map_or(Ok(()), |set| control.set_references(set)).map(|()| {
                let mut references = control.references();
                references.retain(|symbol, _| is_asked(symbol));
                ControlResponse { references: Some(references), ..done }
            })
        }
        ControlRequest::Kill { account, on } => {
            let outcome = control.kill(account.as_deref(), on);
            // Also after an error: a switch that could not be journaled is engaged.
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
        ControlRequest::Reload => {
            control.reload().map(|changes| ControlResponse { changes: Some(changes), ..done })
        }
        ControlRequest::Sessions => {
            let stats = control.node_stats();
            Ok(ControlResponse {
                session: Some(control.orders().session().to_string()),
                killed: Some(control.killed()),
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

/// A symbol as the table of reference prices shows it.
fn shown_as(text: &str) -> String {
    text.parse::<Symbol>().map_or_else(|_| text.to_owned(), |symbol| symbol.canonical().to_string())
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
        // As a killed process leaves it.
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
        // As an operator does who believes that the old gateway is dead.
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
        /// Asks for limits repeatedly, each time while the previous request is in progress, and then engages a kill
        /// switch.
        fn ask(others: &Others, left: usize) -> Vec<bool> {
            let mut answers = Vec::new();
            if left == 0 {
                let kill = ControlRequest::Kill { account: None, on: true };
                let done = || ControlResponse { ok: true, ..ControlResponse::default() };
                answers.push(others.admit(&kill, done).ok);
                answers.push(others.admit(&ControlRequest::Sessions, done).ok);
                return answers;
            }
            others.admit(&ControlRequest::Limits { account: None, set: None, reset: None }, || {
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
        let reset = Some(["shares_max".to_owned()].into());
        let limits = ControlRequest::Limits { account: None, set: None, reset };
        assert_eq!(read(r#"{"command":"limits","reset":["shares_max"]}"#).expect("known"), limits);
        assert!(read(r#"{"command":"kill","acount":"C00001","on":true}"#).is_err());
        assert!(read(r#"{"command":"fly"}"#).is_err());
    }
}
