//! `weir ctl`: one request to a running gateway, and its answer for people.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::IpAddr,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use weir_record::orders::{SESSIONS_LISTED_MAX, SessionStats};
use weir_servers::{
    gateway::{AwayAccount, ControlRequest, ControlResponse, LimitOrigin, LockedLogin, ROWS_MAX},
    orders::hash_password,
};

use crate::{
    args::{Ctl, CtlTask, ListFormat},
    exit::{Exit, UsageError},
    output,
};

mod listings;

/// The socket of every command that names none: hints of a gateway are commands that can be typed as they are.
const SOCKET_VARIABLE: &str = "WEIR_CONTROL";
/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest password that is read.
const PASSWORD_BYTES_MAX: u64 = 1024;
/// Longest answer.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

pub(crate) fn run(ctl: &Ctl) -> Result<Exit> {
    let request = match &ctl.task {
        CtlTask::HashPassword => return hash(),
        CtlTask::Limits { account, changes, reset: true } => {
            let reset = Some(parse_names(changes)?);
            ControlRequest::Limits { account: account.clone(), set: None, reset }
        }
        CtlTask::Limits { account, changes, reset: false } => {
            let set = if changes.is_empty() { None } else { Some(parse_changes(changes)?) };
            ControlRequest::Limits { account: account.clone(), set, reset: None }
        }
        CtlTask::References { prices } => {
            let set = if prices.is_empty() { None } else { Some(parse_prices(prices)?) };
            ControlRequest::References { set }
        }
        CtlTask::Kill { account, off } => {
            let account = (account != "all").then(|| account.clone());
            ControlRequest::Kill { account, on: !off }
        }
        CtlTask::Drain => ControlRequest::Drain,
        CtlTask::EndSession { name } => ControlRequest::EndSession { session: name.clone() },
        CtlTask::StartOfDay => ControlRequest::StartOfDay,
        CtlTask::EndOfDay => ControlRequest::EndOfDay,
        CtlTask::Reload => ControlRequest::Reload,
        CtlTask::Sessions { account } => ControlRequest::Sessions { account: account.clone() },
        CtlTask::Unlock { whom } => match whom.parse::<IpAddr>() {
            Ok(address) => ControlRequest::Unlock { account: None, address: Some(address) },
            Err(_) => {
                let account = (whom != "all").then(|| whom.clone());
                ControlRequest::Unlock { account, address: None }
            }
        },
        CtlTask::Disconnect { account } => {
            let (session, account) = match account.split_once('/') {
                Some((session, account)) => (Some(session.to_owned()), account.to_owned()),
                None => (None, account.clone()),
            };
            ControlRequest::Disconnect { account, session }
        }
        CtlTask::Orders { .. }
        | CtlTask::Positions { .. }
        | CtlTask::Exposure { .. }
        | CtlTask::Cancel { .. } => listings::request(&ctl.task)?,
    };
    let socket = socket(ctl.socket.clone(), std::env::var_os(SOCKET_VARIABLE))?;
    let mut answer = performed(&socket, &request)?;
    if let Some(second) = listings::second_request(&request, &answer) {
        let orders = performed(&socket, &second)?;
        answer = listings::with_orders(answer, orders);
    }
    output::print(&match listings::format_of(&ctl.task) {
        Some(ListFormat::Json) => serde_json::to_string(&answer)?,
        _ => text(&request, &answer),
    })?;
    Ok(Exit::Ok)
}

/// The path that was typed, or that of the variable.
fn socket(typed: Option<PathBuf>, variable: Option<OsString>) -> Result<PathBuf, UsageError> {
    let of_variable = || variable.filter(|path| !path.is_empty()).map(PathBuf::from);
    typed.or_else(of_variable).ok_or_else(|| {
        UsageError(format!(
            "--socket PATH is missing: the one that `weir serve gateway` got as --control; the variable \
             {SOCKET_VARIABLE} may have it as well"
        ))
    })
}

/// Asks the gateway; a refusal is an error.
fn performed(socket: &Path, request: &ControlRequest) -> Result<ControlResponse> {
    let answer = ask(socket, request, PATIENCE)?;
    if answer.ok {
        return Ok(answer);
    }
    let reason = answer.error.as_deref().unwrap_or("it does not say why");
    if reason.lines().count() > 1 {
        reason.lines().for_each(output::tell);
        bail!("the gateway refuses, for {} reasons", reason.lines().count());
    }
    bail!("{}", refusal(request, &answer, reason));
}

/// Why a request failed. A kill switch that could not be recorded is no refusal: it is on.
fn refusal(request: &ControlRequest, answer: &ControlResponse, reason: &str) -> String {
    let is_stopped = match request {
        ControlRequest::Kill { account, on: true } => {
            let asked = account.as_deref().unwrap_or("*");
            answer.killed.iter().flatten().any(|killed| killed.eq_ignore_ascii_case(asked))
        }
        _ => false,
    };
    if is_stopped {
        return format!("stopped, but not everything worked: {reason}");
    }
    format!("the gateway refuses: {reason}")
}

fn hash() -> Result<Exit> {
    let mut line = String::new();
    BufReader::new(std::io::stdin().take(PASSWORD_BYTES_MAX))
        .read_line(&mut line)
        .context("the password cannot be read from standard input")?;
    let password = line.trim_end_matches(['\n', '\r']);
    let hash = hash_password(password).map_err(|error| UsageError(error.to_string()))?;
    output::print(&hash)?;
    Ok(Exit::Ok)
}

fn ask(socket: &Path, request: &ControlRequest, patience: Duration) -> Result<ControlResponse> {
    let stream = UnixStream::connect(socket)
        .with_context(|| format!("--socket {}: no gateway answers there", socket.display()))?;
    stream.set_read_timeout(Some(patience))?;
    let mut line = serde_json::to_string(request)?;
    line.push('\n');
    (&stream).write_all(line.as_bytes()).context("the gateway went away")?;
    let mut answer = String::new();
    if let Err(error) = BufReader::new(stream.take(ANSWER_BYTES_MAX)).read_line(&mut answer) {
        if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) {
            bail!("the gateway has not answered for {patience:?}; it may still carry the command out");
        }
        return Err(error).context("the gateway does not answer");
    }
    if answer.is_empty() {
        bail!("the gateway has closed the connection without an answer; it may have ended");
    }
    serde_json::from_str(&answer).context("the gateway's answer cannot be read")
}

/// `key=value`, as the gateway takes it: numbers, `off` for none, and symbols with commas between.
fn parse_changes(changes: &[String]) -> Result<serde_json::Map<String, serde_json::Value>> {
    let mut all = serde_json::Map::new();
    for change in changes {
        let wrong =
            || UsageError(format!("{change:?}: write KEY=VALUE, such as shares_max=1000 or shares_max=off"));
        let (key, value) = change.split_once('=').ok_or_else(wrong)?;
        let value = match value {
            "off" => serde_json::Value::Null,
            _ if key == "restricted" => value.split(',').map(str::trim).collect::<Vec<_>>().into(),
            _ => {
                let number: serde_json::Number = value.parse().map_err(|_| wrong())?;
                number.into()
            }
        };
        all.insert(key.into(), value);
    }
    Ok(all)
}

/// Names of limits without values.
fn parse_names(names: &[String]) -> Result<BTreeSet<String>> {
    if let Some(change) = names.iter().find(|name| name.contains('=')) {
        return Err(UsageError(format!(
            "{change:?}: --reset takes names without values, such as shares_max"
        ))
        .into());
    }
    Ok(names.iter().cloned().collect())
}

/// `symbol=price`, or `off` for none.
fn parse_prices(prices: &[String]) -> Result<BTreeMap<String, Option<f64>>> {
    let mut all = BTreeMap::new();
    for text in prices {
        let wrong = || UsageError(format!("{text:?}: write SYMBOL=PRICE, such as WEIR=12.50 or WEIR=off"));
        let (symbol, price) = text.split_once('=').ok_or_else(wrong)?;
        let price = if price == "off" { None } else { Some(price.parse().map_err(|_| wrong())?) };
        all.insert(symbol.to_owned(), price);
    }
    Ok(all)
}

fn text(request: &ControlRequest, answer: &ControlResponse) -> String {
    let mut lines = Vec::new();
    match request {
        ControlRequest::Limits { account, .. } => {
            let whose = account.as_deref().unwrap_or("accounts without own limits");
            lines.push(format!("limits of {whose}:"));
            lines.extend(limits(answer));
        }
        ControlRequest::References { .. } => {
            lines.push("reference prices:".into());
            let prices = answer.references.iter().flatten();
            lines.extend(prices.map(|(symbol, price)| format!("  {symbol} = {price}")));
            if lines.len() == 1 {
                lines.push("  none".into());
            }
        }
        ControlRequest::Kill { on: false, .. } => lines.push("released".into()),
        ControlRequest::Kill { on: true, .. } => {
            let cancels = answer.cancels.as_deref().unwrap_or_default();
            lines.push(if cancels.is_empty() { "stopped; no order was open" } else { "stopped" }.into());
            lines.extend(cancels.iter().map(ToString::to_string));
            lines.extend(listings::unsent(cancels));
        }
        ControlRequest::Drain => lines.push("draining".into()),
        ControlRequest::EndSession { session } => lines.push(format!("ending session {session}")),
        ControlRequest::StartOfDay | ControlRequest::EndOfDay => {
            lines.extend(answer.day.as_ref().map(ToString::to_string));
        }
        ControlRequest::Reload => {
            let changes = answer.changes.as_deref().unwrap_or_default();
            lines.push(if changes.is_empty() { "reloaded; nothing has changed" } else { "reloaded" }.into());
            lines.extend(changes.iter().map(|change| format!("  {change}")));
        }
        ControlRequest::Sessions { .. } => lines.extend(sessions(answer)),
        ControlRequest::Unlock { .. } => {
            lines.push(format!("locks ended: {}", answer.unlocked.unwrap_or_default()));
        }
        ControlRequest::Disconnect { account, .. } => {
            lines.push(format!("the connection of {account} is ended"));
        }
        ControlRequest::Orders { .. }
        | ControlRequest::Positions { .. }
        | ControlRequest::Exposure { .. }
        | ControlRequest::CancelOrder { .. }
        | ControlRequest::CancelOrders { .. } => lines.extend(listings::lines(request, answer)),
    }
    if let Some(killed) = answer.killed.as_ref().filter(|killed| !killed.is_empty()) {
        let names: Vec<&str> =
            killed.iter().map(|name| if name == "*" { "everybody" } else { name }).collect();
        lines.push(format!("kill switch is on for: {}", names.join(", ")));
    }
    lines.join("\n")
}

fn limits(answer: &ControlResponse) -> Vec<String> {
    let lines: Vec<String> = match (&answer.limit_statuses, serde_json::to_value(&answer.limits)) {
        (Some(all), _) => {
            let set = all.iter().filter(|status| status.origin != LimitOrigin::Default);
            set.map(|status| format!("  {status}")).collect()
        }
        // A gateway of an earlier version names no origins.
        (None, Ok(serde_json::Value::Object(limits))) => {
            limits.iter().map(|(key, value)| format!("  {key} = {value}")).collect()
        }
        (None, _) => Vec::new(),
    };
    if lines.is_empty() { vec!["  none".into()] } else { lines }
}

fn sessions(answer: &ControlResponse) -> Vec<String> {
    let mut lines: Vec<String> = answer.session.iter().map(|session| format!("session {session}")).collect();
    lines.extend(answer.day.as_ref().map(ToString::to_string));
    lines.push("account  worker  state      sent        last        order       queued".to_owned());
    for session in answer.sessions.iter().flatten() {
        lines.push(format!(
            "{:<7}  {:>6}  {:<9}  {:<10}  {:<10}  {:<10}  {} B",
            session.account,
            session.worker,
            session.state,
            session.sequence_sent,
            session.sequence_last,
            session.user_ref_num,
            session.queued_bytes
        ));
    }
    lines.extend(cut(answer));
    lines.extend(away(answer));
    lines.extend(answer.drop_copy_session.iter().map(|session| format!("drop copy: session {session}")));
    lines.extend(answer.drop_copies.iter().flatten().map(|firm| {
        let SessionStats { account, state, sequence_sent, sequence_last, queued_bytes, .. } = firm;
        format!("drop copy of {account}: {state}, sent {sequence_sent} of {sequence_last}, {queued_bytes} B queued")
    }));
    for upstream in answer.upstreams.iter().flatten() {
        let whose = format!("venue {}, worker {}: ", upstream.venue, upstream.worker);
        let state = match (&upstream.trouble, upstream.is_open) {
            (_, true) => "open".to_owned(),
            // A gateway says it with the same beginning.
            (Some(trouble), false) => format!("closed ({})", trouble.strip_prefix(&whose).unwrap_or(trouble)),
            (None, false) => "closed".to_owned(),
        };
        let mut line = format!("{whose}{state}");
        if let Some(session) = &upstream.session {
            line.push_str(&format!(", session {session}"));
        }
        if upstream.times_begun_anew > 0 {
            let (times, orders) = (upstream.times_begun_anew, upstream.orders_expired);
            line.push_str(&format!(", begun anew: {times}, orders expired: {orders}"));
        }
        lines.push(line);
    }
    for error in answer.protocol_errors.iter().flatten() {
        lines.push(format!("{} has sent what is not taken: {} ({})", error.account, error.kind, error.count));
    }
    lines
}

/// Accounts that are not logged in, with the reason, and logins that are locked.
fn away(answer: &ControlResponse) -> Vec<String> {
    let line = |away: &AwayAccount| {
        let from = away.address.map_or_else(String::new, |address| format!(", from {address}"));
        format!("{} is not logged in: {} ({}{from})", away.account, away.why, away.at)
    };
    let lock = |lock: &LockedLogin| {
        let whose = lock.account.as_deref().unwrap_or("every account");
        let from = lock.address.map_or_else(String::new, |address| format!(" from {address}"));
        format!("logins of {whose}{from} are locked for another {} s: too many wrong passwords", lock.left_s)
    };
    let locks = answer.locks.iter().flatten().map(lock);
    let all = answer.away.as_deref().unwrap_or_default();
    let is_cut = all.len() >= ROWS_MAX;
    let note =
        || format!("{ROWS_MAX} accounts that are not logged in are listed; --account shows another one");
    all.iter().map(line).chain(is_cut.then(note)).chain(locks).collect()
}

/// A note that there are more clients than the list has, if it was cut.
fn cut(answer: &ControlResponse) -> Option<String> {
    let (listed, open) = (answer.sessions.as_ref()?.len(), answer.sessions_open?);
    // Clients may come or go during the count.
    let is_cut = listed >= SESSIONS_LISTED_MAX && open > listed as u64;
    is_cut.then(|| format!("the list is cut: of {open} clients that are logged in it has {listed}"))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};
    use weir_servers::gateway::{LimitStatus, ProtocolErrors, UpstreamStatus, VenueCancels};

    use super::*;
    use crate::args::{Arguments, Command};

    #[test]
    fn a_kill_switch_that_is_on_is_no_refusal_although_it_could_not_be_recorded() {
        let killed = |killed: &[&str]| ControlResponse {
            killed: Some(killed.iter().map(|name| (*name).to_owned()).collect()),
            ..ControlResponse::default()
        };
        let kill =
            |account: Option<&str>, on| ControlRequest::Kill { account: account.map(str::to_owned), on };
        let of_one = kill(Some("c00001"), true);
        assert_eq!(
            refusal(&of_one, &killed(&["C00001"]), "the disk"),
            "stopped, but not everything worked: the disk"
        );
        assert!(refusal(&kill(None, true), &killed(&["*"]), "the disk").starts_with("stopped"));
        let refused = "the gateway refuses: no such account";
        for (request, answer) in [
            (&of_one, killed(&["C00002"])),
            (&of_one, ControlResponse::default()),
            (&kill(None, true), killed(&["C00001"])),
            (&kill(Some("C00001"), false), killed(&["C00001"])),
            (&ControlRequest::Drain, killed(&["*"])),
        ] {
            assert_eq!(refusal(request, &answer, "no such account"), refused, "{request:?}");
        }
    }

    #[test]
    fn a_gateway_that_hangs_and_one_that_goes_away_are_told_apart() {
        let path = std::env::temp_dir().join(format!("weir-ctl-hangs-{}.sock", std::process::id()));
        let listener = std::os::unix::net::UnixListener::bind(&path).expect("the path is free");
        let asked = || ask(&path, &ControlRequest::Drain, Duration::from_millis(10));
        let error = asked().expect_err("nobody answers").to_string();
        assert_eq!(error, "the gateway has not answered for 10ms; it may still carry the command out");
        let error = std::thread::scope(|scope| {
            scope.spawn(|| {
                // The connection that waits is the one before.
                drop(listener.accept());
                let (caller, _) = listener.accept().expect("it comes");
                BufReader::new(caller).read_line(&mut String::new()).expect("a request");
            });
            ask(&path, &ControlRequest::Drain, PATIENCE).expect_err("it is closed").to_string()
        });
        assert_eq!(error, "the gateway has closed the connection without an answer; it may have ended");
        std::fs::remove_file(&path).expect("it is ours");
    }

    #[test]
    fn the_socket_is_the_typed_one_or_that_of_the_variable() {
        let of = |typed: Option<&str>, variable: Option<&str>| {
            socket(typed.map(PathBuf::from), variable.map(OsString::from)).ok()
        };
        assert_eq!(of(Some("a"), Some("b")), Some("a".into()));
        assert_eq!(of(None, Some("b")), Some("b".into()));
        assert_eq!((of(None, Some("")), of(None, None)), (None, None));
    }

    #[test]
    fn the_examples_of_the_help_are_commands() {
        let help = Arguments::command();
        let after = help.find_subcommand("ctl").and_then(clap::Command::get_after_help).expect("it has some");
        let after = after.to_string();
        let lines: Vec<&str> = after.lines().filter_map(|line| line.strip_prefix("  weir ctl ")).collect();
        assert!(lines.len() > 10, "{after}");
        for line in lines {
            let words = ["weir", "ctl"].into_iter().chain(line.split_whitespace());
            let typed = Arguments::try_parse_from(words).unwrap_or_else(|error| panic!("{line}: {error}"));
            let Command::Ctl(ctl) = typed.command else { panic!("{line}") };
            if let CtlTask::Limits { changes, reset: false, .. } = &ctl.task {
                assert!(parse_changes(changes).is_ok(), "{line}");
            }
        }
        assert!(after.contains(&format!("export {SOCKET_VARIABLE}=")), "{after}");
    }

    #[test]
    fn a_list_of_sessions_that_was_cut_says_so() {
        for (listed, open, is_cut) in
            [(1, 1, false), (1, 2, false), (1_000, 1_000, false), (1_000, 1_001, true)]
        {
            let answer = ControlResponse {
                ok: true,
                sessions: Some(vec![SessionStats::default(); listed]),
                sessions_open: Some(open),
                ..ControlResponse::default()
            };
            let printed = text(&ControlRequest::Sessions { account: None }, &answer);
            let words = "the list is cut: of 1001 clients that are logged in it has 1000";
            assert_eq!(printed.contains(words), is_cut, "{listed} of {open}: {printed}");
        }
    }

    #[test]
    fn firms_that_read_their_drop_copies_are_listed() {
        let firm = SessionStats {
            account: "DESK".into(),
            state: "live".into(),
            sequence_sent: 7,
            sequence_last: 9,
            queued_bytes: 128,
            ..SessionStats::default()
        };
        let answer = ControlResponse {
            ok: true,
            drop_copies: Some(vec![firm]),
            drop_copy_session: Some("WEIRDC0001".into()),
            ..ControlResponse::default()
        };
        let printed = text(&ControlRequest::Sessions { account: None }, &answer);
        let lines = "drop copy: session WEIRDC0001\ndrop copy of DESK: live, sent 7 of 9, 128 B queued";
        assert!(printed.ends_with(lines), "{printed}");
    }

    #[test]
    fn accounts_that_are_not_logged_in_and_locks_have_their_reasons() {
        let away = AwayAccount {
            account: "C00002".into(),
            why: "its client was silent".into(),
            at: "2026-03-02 09:00:00 UTC".into(),
            address: Some([10, 0, 0, 7].into()),
        };
        let lock =
            LockedLogin { account: Some("C00003".into()), address: Some([10, 0, 0, 8].into()), left_s: 12 };
        let all = LockedLogin { account: None, ..lock.clone() };
        let answer = ControlResponse {
            ok: true,
            away: Some(vec![away]),
            locks: Some(vec![lock, all]),
            ..ControlResponse::default()
        };
        let printed = text(&ControlRequest::Sessions { account: None }, &answer);
        for line in [
            "C00002 is not logged in: its client was silent (2026-03-02 09:00:00 UTC, from 10.0.0.7)",
            "logins of C00003 from 10.0.0.8 are locked for another 12 s: too many wrong passwords",
            "logins of every account from 10.0.0.8 are locked for another 12 s: too many wrong passwords",
        ] {
            assert!(printed.lines().any(|found| found == line), "{line} is not in\n{printed}");
        }
    }

    #[test]
    fn changes_are_numbers_lists_and_off() {
        let changes = ["shares_max=10", "notional_max=2.5", "exposure_max=off", "restricted=A,B"];
        let all = parse_changes(&changes.map(str::to_owned)).expect("they are right");
        let expected = r#"{"exposure_max":null,"notional_max":2.5,"restricted":["A","B"],"shares_max":10}"#;
        let found: serde_json::Value = all.into();
        assert_eq!(found, serde_json::from_str::<serde_json::Value>(expected).expect("JSON"));
        for wrong in ["shares_max", "shares_max=many", "shares_max="] {
            assert!(parse_changes(&[wrong.into()]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_reset_is_named_without_a_value() {
        let names =
            |words: &[&str]| parse_names(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        let expected = BTreeSet::from(["notional_max".to_owned(), "shares_max".to_owned()]);
        assert_eq!(names(&["shares_max", "notional_max"]).expect("they are right"), expected);
        assert!(names(&[]).is_ok_and(|names| names.is_empty()), "all of them");
        assert!(names(&["shares_max=10"]).is_err_and(|error| error.to_string().contains("--reset")));
    }

    #[test]
    fn prices_are_numbers_and_off() {
        let prices =
            parse_prices(&["WEIR=12.50".to_owned(), "BRIDGE=off".to_owned()]).expect("they are right");
        let expected = [("BRIDGE".to_owned(), None), ("WEIR".to_owned(), Some(12.5))];
        assert_eq!(prices, BTreeMap::from(expected));
        for wrong in ["WEIR", "WEIR=", "WEIR=dear"] {
            assert!(parse_prices(&[wrong.into()]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_reload_says_what_has_changed() {
        let changes = |changes: &[&str]| {
            let changes = changes.iter().map(|change| (*change).to_owned()).collect();
            text(
                &ControlRequest::Reload,
                &ControlResponse { changes: Some(changes), ..ControlResponse::default() },
            )
        };
        assert_eq!(changes(&[]), "reloaded; nothing has changed");
        assert_eq!(changes(&["accounts added: C00003"]), "reloaded\n  accounts added: C00003");
    }

    #[test]
    fn a_venue_that_is_down_has_one_reason_and_cancels_that_wait_for_it_have_a_note() {
        let closed = UpstreamStatus {
            venue: "X".into(),
            trouble: Some("venue X, worker 0: Connection refused (os error 111)".into()),
            ..UpstreamStatus::default()
        };
        let down = ControlResponse { ok: true, upstreams: Some(vec![closed]), ..ControlResponse::default() };
        let printed = text(&ControlRequest::Sessions { account: None }, &down);
        assert!(
            printed.ends_with("\nvenue X, worker 0: closed (Connection refused (os error 111))"),
            "{printed}"
        );
        let waiting = vec![VenueCancels { venue: "X".into(), orders: 2, ..VenueCancels::default() }];
        let answer = ControlResponse { ok: true, cancels: Some(waiting), ..ControlResponse::default() };
        let printed = text(&ControlRequest::Kill { account: None, on: true }, &answer);
        assert!(printed.ends_with("leave on the next connection to their venue"), "{printed}");
    }

    #[test]
    fn answers_are_told_in_words() {
        let cancels = vec![VenueCancels { venue: "X".into(), orders: 3, sent: 3, confirmed: 1, expired: 1 }];
        let answer = ControlResponse {
            ok: true,
            cancels: Some(cancels),
            killed: Some(vec!["*".into()]),
            ..ControlResponse::default()
        };
        let printed = text(&ControlRequest::Kill { account: None, on: true }, &answer);
        let expected = "stopped\nvenue X: 3 orders were open, 3 cancels are sent, 1 are confirmed, 1 have expired\n\
                        kill switch is on for: everybody";
        assert_eq!(printed, expected);
        let limits = ControlRequest::Limits { account: Some("C00001".into()), set: None, reset: None };
        let status = |name: &str, origin, set_at_ns: Option<u64>| LimitStatus {
            name: name.into(),
            value: if origin == LimitOrigin::Default { serde_json::Value::Null } else { 50.into() },
            origin,
            set_at_ns,
            without: set_at_ns.map(|_| 10.into()),
            ..LimitStatus::default()
        };
        let mut answer = ControlResponse { ok: true, ..ControlResponse::default() };
        answer.limit_statuses = Some(vec![status("notional_max", LimitOrigin::Default, None)]);
        assert_eq!(text(&limits, &answer), "limits of C00001:\n  none");
        answer.limit_statuses = Some(vec![
            status("notional_max", LimitOrigin::Default, None),
            status("orders_burst", LimitOrigin::File, None),
            status("shares_max", LimitOrigin::Operator, Some(0)),
        ]);
        let expected = "limits of C00001:\n  orders_burst = 50 (file)\n  shares_max = 50 (operator, 1970-01-01 00:00:00 \
                        UTC; without it 10)";
        assert_eq!(text(&limits, &answer), expected);
        let references = BTreeMap::from([("BRIDGE".to_owned(), 12.5), ("WEIR".to_owned(), 1.0)]);
        let answer = ControlResponse { ok: true, references: Some(references), ..ControlResponse::default() };
        let request = ControlRequest::References { set: None };
        assert_eq!(text(&request, &answer), "reference prices:\n  BRIDGE = 12.5\n  WEIR = 1");
        let answer =
            ControlResponse { ok: true, references: Some(BTreeMap::new()), ..ControlResponse::default() };
        assert_eq!(text(&request, &answer), "reference prices:\n  none");
        let upstream = |session: Option<&str>, times_begun_anew| UpstreamStatus {
            venue: "X".into(),
            worker: 1,
            is_open: true,
            session: session.map(str::to_owned),
            times_begun_anew,
            orders_expired: 7,
            ..UpstreamStatus::default()
        };
        let answer = ControlResponse {
            ok: true,
            session: Some("WEIRGW0001".into()),
            upstreams: Some(vec![upstream(None, 0), upstream(Some("DAY2"), 1)]),
            protocol_errors: Some(vec![ProtocolErrors {
                account: "C00001".into(),
                kind: "ouch_length".into(),
                count: 2,
            }]),
            ..ControlResponse::default()
        };
        let printed = text(&ControlRequest::Sessions { account: None }, &answer);
        assert!(printed.starts_with("session WEIRGW0001\naccount "), "{printed}");
        let last = "venue X, worker 1: open\n\
                    venue X, worker 1: open, session DAY2, begun anew: 1, orders expired: 7\n\
                    C00001 has sent what is not taken: ouch_length (2)";
        assert!(printed.ends_with(last), "{printed}");
        let request = ControlRequest::EndSession { session: "WEIRGW0001".into() };
        assert_eq!(text(&request, &ControlResponse::default()), "ending session WEIRGW0001");
    }
}
