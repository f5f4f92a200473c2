//! The control socket: a Unix socket that only its owner may open. A request is one line of JSON, and so is its
//! answer.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, BufRead, BufReader, Read, Write},
    net::IpAddr,
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, SystemTime},
};

use rustix::{
    fs::Mode,
    net::{AddressFamily, SocketFlags, SocketType},
};
use serde::{Deserialize, Serialize};
use weir_proto::{client::counted_as, ouch::Symbol};
use weir_record::orders::SessionStats;
use weir_sys::unix_path::{self, BoundPath};
use weir_trading::AccountId;

use super::{
    CancelReport, GatewayControl,
    account_limits::Limits,
    audit::Operator,
    day::DayStatus,
    kill_switch::VenueCancels,
    limit_sources::{LimitStatus, time},
    listings::{Cursor, ExposureRow, OrderFilter, OrderRow, Page, PositionRow, ROWS_MAX},
};
use crate::{
    orders::{LoginLock, OrdersControl},
    thread_per_connection::{CallerSlot, talk_to_each},
};

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
    /// Begin a trading day, or the session that the configuration has now.
    StartOfDay,
    /// End the trading day: orders are refused, and the session with clients ends when none is open.
    EndOfDay,
    /// Read the configuration again and carry it out, whole or not at all.
    Reload,
    /// Show the clients' and the upstream sessions.
    Sessions {
        /// Only this account's; absent: those of all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        account: Option<String>,
    },
    /// Show open orders.
    Orders {
        /// Which.
        #[serde(default, skip_serializing_if = "OrderFilter::is_empty")]
        filter: OrderFilter,
        /// Where the page begins: [`ControlResponse::next`] of the page before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
    },
    /// Show executed shares by account and symbol.
    Positions {
        /// Which; a venue is refused.
        #[serde(default, skip_serializing_if = "OrderFilter::is_empty")]
        filter: OrderFilter,
        /// As for orders.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
    },
    /// Show what counts against the exposure of accounts.
    Exposure {
        /// Account; absent: all that have an exposure or a limit of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        account: Option<String>,
        /// As for orders.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
    },
    /// Cancel one open order.
    CancelOrder {
        /// Account.
        account: String,
        /// The client's number.
        order: u32,
    },
    /// Cancel open orders.
    CancelOrders {
        /// Which; an empty filter is refused.
        filter: OrderFilter,
    },
    /// Forget wrong passwords, and end the locks because of them.
    Unlock {
        /// Those of this account, from any address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        account: Option<String>,
        /// Those from this address, for any account. Without account and address: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        address: Option<IpAddr>,
    },
    /// End the connection of a client.
    Disconnect {
        /// Account.
        account: String,
        /// Name of the session with clients; another one than the current one is refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    },
}

impl ControlRequest {
    /// Whether it changes something, or tries to; otherwise it only shows something. What acts is recorded with its
    /// operator.
    pub(super) fn acts(&self) -> bool {
        match self {
            Self::Limits { set, reset, .. } => set.is_some() || reset.is_some(),
            Self::References { set } => set.is_some(),
            Self::Kill { .. }
            | Self::Drain
            | Self::EndSession { .. }
            | Self::StartOfDay
            | Self::EndOfDay
            | Self::Reload
            | Self::CancelOrder { .. }
            | Self::CancelOrders { .. }
            | Self::Unlock { .. }
            | Self::Disconnect { .. } => true,
            Self::Sessions { .. } | Self::Orders { .. } | Self::Positions { .. } | Self::Exposure { .. } => {
                false
            }
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
    /// The trading day; absent if the configuration has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<DayStatus>,
    /// Clients that are logged in, at most [`SESSIONS_LISTED_MAX`](weir_record::orders::SESSIONS_LISTED_MAX).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Vec<SessionStats>>,
    /// Firms that are logged in for their drop copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_copies: Option<Vec<SessionStats>>,
    /// Name of the session that they can join.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_copy_session: Option<String>,
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
    /// Accounts that are not logged in, at most [`ROWS_MAX`]: those that were since the start, or wanted to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub away: Option<Vec<AwayAccount>>,
    /// Logins that are locked after too many wrong passwords, at most [`ROWS_MAX`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locks: Option<Vec<LockedLogin>>,
    /// After an unlock: how many locks it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unlocked: Option<u64>,
    /// Open orders, at most [`ROWS_MAX`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orders: Option<Vec<OrderRow>>,
    /// Positions, at most [`ROWS_MAX`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positions: Option<Vec<PositionRow>>,
    /// Exposures, at most [`ROWS_MAX`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exposures: Option<Vec<ExposureRow>>,
    /// Where the next page of such a list begins; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// After a cancel by symbol: open orders whose symbol is unknown, and that are not cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_symbols: Option<u64>,
}

/// An account that is not logged in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AwayAccount {
    /// Account.
    pub account: String,
    /// What happened last, in words.
    pub why: String,
    /// When, in UTC.
    pub at: String,
    /// The address of the connection, if it had an Internet address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
}

/// Logins that are locked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LockedLogin {
    /// The account; absent: every account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The address that they are locked for: an IPv6 address stands for its /64 network. Absent: connections without
    /// an address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// How much longer, in seconds.
    pub left_s: u64,
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
    if let ControlRequest::EndSession { session } = &request
        && let Err(reason) = control.may_end_session(session)
    {
        let answer = refused(reason);
        control.audit(operator, &request, &answer, AUDIT_PATIENCE);
        return answer;
    }
    if request.ends() {
        // Its outcome is the end of the journal. If something comes between, that follows as another record.
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
    let done = done();
    let outcome = match request {
        ControlRequest::Limits { account, set, reset } => limits(control, account.as_deref(), set, reset),
        ControlRequest::References { set } => references(control, set),
        ControlRequest::Kill { account, on } => Ok(kill(control, account.as_deref(), on)),
        ControlRequest::Drain => {
            control.drain();
            Ok(done)
        }
        ControlRequest::EndSession { session } => control.end_session(&session).map(|()| done),
        ControlRequest::StartOfDay => {
            control.start_of_day(SystemTime::now()).map(|day| ControlResponse { day: Some(day), ..done })
        }
        ControlRequest::EndOfDay => {
            control.end_of_day(SystemTime::now()).map(|day| ControlResponse { day: Some(day), ..done })
        }
        ControlRequest::Reload => {
            control.reload().map(|changes| ControlResponse { changes: Some(changes), ..done })
        }
        ControlRequest::Sessions { account } => sessions(control, account.as_deref()),
        ControlRequest::Orders { filter, after } => cursor(after).and_then(|from| {
            let Page { rows, next } = control.open_orders(&filter, from)?;
            Ok(ControlResponse { orders: Some(rows), next: shown(next), ..done })
        }),
        ControlRequest::Positions { filter, after } => cursor(after).and_then(|from| {
            let Page { rows, next } = control.positions(&filter, from)?;
            Ok(ControlResponse { positions: Some(rows), next: shown(next), ..done })
        }),
        ControlRequest::Exposure { account, after } => cursor(after).and_then(|from| {
            let Page { rows, next } = control.exposures(account.as_deref(), from)?;
            Ok(ControlResponse { exposures: Some(rows), next: shown(next), ..done })
        }),
        ControlRequest::CancelOrder { account, order } => {
            control.cancel_order(&account, order).map(cancelled)
        }
        ControlRequest::CancelOrders { filter } if filter.is_empty() => {
            Err("which orders: name an account, a symbol or a venue".to_owned())
        }
        ControlRequest::CancelOrders { filter } => control.cancel_orders(&filter).map(cancelled),
        ControlRequest::Unlock { account, address } => unlock(control, account.as_deref(), address),
        ControlRequest::Disconnect { account, session } => {
            control.disconnect(&account, session.as_deref()).map(|()| done)
        }
    };
    outcome.unwrap_or_else(refused)
}

fn done() -> ControlResponse {
    ControlResponse { ok: true, ..ControlResponse::default() }
}

fn limits(
    control: &GatewayControl,
    account: Option<&str>,
    set: Option<serde_json::Map<String, serde_json::Value>>,
    reset: Option<BTreeSet<String>>,
) -> Result<ControlResponse, String> {
    match (set, reset) {
        (None, None) => {}
        (Some(set), None) => control.set_limits(account, set)?,
        (None, Some(names)) => control.reset_limits(account, names)?,
        (Some(_), Some(_)) => return Err("set and reset are two requests".to_owned()),
    }
    let (limits, statuses) = (control.limits(account)?, control.limit_statuses(account)?);
    let killed = Some(control.killed());
    Ok(ControlResponse { limits: Some(limits), limit_statuses: Some(statuses), killed, ..done() })
}

fn references(
    control: &GatewayControl,
    set: Option<BTreeMap<String, Option<f64>>>,
) -> Result<ControlResponse, String> {
    let named = set.as_ref().map(|set| set.keys().map(|text| shown_as(text)).collect::<BTreeSet<String>>());
    let is_asked = |symbol: &String| named.as_ref().is_none_or(|named| named.contains(symbol));
    set.map_or(Ok(()), |set| control.set_references(set))?;
    let mut references = control.references();
    references.retain(|symbol, _| is_asked(symbol));
    Ok(ControlResponse { references: Some(references), ..done() })
}

fn kill(control: &GatewayControl, account: Option<&str>, on: bool) -> ControlResponse {
    let outcome = control.kill(account, on);
    // Also after an error: a switch that could not be journaled is engaged.
    let killed = Some(control.killed());
    match outcome {
        Ok(cancels) => ControlResponse { killed, cancels: Some(cancels), ..done() },
        Err(error) => {
            let reason = error.to_string();
            ControlResponse { killed, cancels: Some(error.cancels), ..refused(reason) }
        }
    }
}

fn sessions(control: &GatewayControl, account: Option<&str>) -> Result<ControlResponse, String> {
    let asked = account.map(|name| control.account(name)).transpose()?;
    let mut stats = control.node_stats();
    if let Some(asked) = asked {
        stats.sessions = control.orders().session_of(asked).into_iter().collect();
        stats.sessions_open = stats.sessions.len() as u64;
    }
    let mut away = control.orders().away(asked.unwrap_or(AccountId(0)), ROWS_MAX);
    away.retain(|(account, _)| asked.is_none_or(|asked| asked == *account));
    let away = away.into_iter().map(|(account, ended)| AwayAccount {
        account: control.name_of(account),
        why: ended.what.to_string(),
        at: time(ended.at_ns),
        address: ended.address,
    });
    let mut locks = locks(control.orders());
    let firms = control.firms().filter(|_| asked.is_none());
    locks.extend(firms.into_iter().flat_map(self::locks));
    if let Some(asked) = asked {
        let name = control.name_of(asked);
        locks.retain(|lock| lock.account.as_ref() == Some(&name));
    }
    locks.truncate(ROWS_MAX);
    Ok(ControlResponse {
        locks: Some(locks),
        drop_copies: firms.map(|firms| firms.node_stats().sessions),
        drop_copy_session: firms.map(|firms| firms.session().to_string()),
        session: Some(control.orders().session().to_string()),
        day: control.day_status(),
        killed: Some(control.killed()),
        sessions: Some(stats.sessions),
        sessions_open: Some(stats.sessions_open),
        upstreams: Some(control.upstreams()),
        protocol_errors: Some(protocol_errors(control)),
        away: Some(away.collect()),
        ..done()
    })
}

/// Locked logins of accounts, or of firms.
fn locks(orders: &OrdersControl) -> Vec<LockedLogin> {
    let lock = |lock: LoginLock| LockedLogin {
        account: lock.account.map(|account| orders.account(account).name().to_string()),
        address: lock.address,
        left_s: lock.left.as_secs(),
    };
    orders.login_locks().into_iter().map(lock).collect()
}

/// A name is that of an account or of a firm.
fn unlock(
    control: &GatewayControl,
    name: Option<&str>,
    address: Option<IpAddr>,
) -> Result<ControlResponse, String> {
    let address = address.map(counted_as);
    let unlock = |orders: &OrdersControl, asked: Option<AccountId>| {
        orders.unlock_logins(|of, from| {
            (asked.is_none() || of == asked) && (address.is_none() || from == address)
        })
    };
    let firms = control.firms();
    let firm = |name: &str| Some((firms?, firms?.account_named(&name.parse().ok()?)?));
    let count = match name.map(|name| (name, firm(name))) {
        None => unlock(control.orders(), None) + firms.map_or(0, |firms| unlock(firms, None)),
        Some((_, Some((firms, firm)))) => unlock(firms, Some(firm)),
        Some((name, None)) => unlock(control.orders(), Some(control.account(name)?)),
    };
    Ok(ControlResponse { unlocked: Some(count as u64), ..done() })
}

fn cancelled(report: CancelReport) -> ControlResponse {
    let CancelReport { venues, unknown_symbols } = report;
    let unknown_symbols = Some(unknown_symbols).filter(|count| *count > 0);
    ControlResponse { cancels: Some(venues), unknown_symbols, ..done() }
}

fn cursor(after: Option<String>) -> Result<Option<Cursor>, String> {
    after.map(|text| text.parse()).transpose()
}

fn shown(next: Option<Cursor>) -> Option<String> {
    next.map(|next| next.to_string())
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
                answers.push(others.admit(&ControlRequest::Sessions { account: None }, done).ok);
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
        let sessions = ControlRequest::Sessions { account: None };
        assert_eq!(read(r#"{"command":"sessions"}"#).expect("known"), sessions, "as earlier versions ask");
        let filter = OrderFilter { symbol: Some("WEIR".into()), ..OrderFilter::default() };
        let orders = ControlRequest::Orders { filter, after: None };
        assert_eq!(read(r#"{"command":"orders","filter":{"symbol":"WEIR"}}"#).expect("known"), orders);
        assert!(read(r#"{"command":"cancel_orders","filter":{"sybol":"WEIR"}}"#).is_err());
        assert!(read(r#"{"command":"fly"}"#).is_err());
    }
}
