//! The beginning of a connection: its login, on the worker where it arrived.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use weir_engine::{
    net::Stream,
    time::{self, Instant},
};
use weir_proto::soup::{
    ClientPacket, Deframer, LoginReject, LoginRequest, ProtocolError, ServerInput, ServerSession,
};
use weir_trading::AccountId;

use super::{fault, refuse, say_last};
use crate::{
    connection_timer::ConnectionTimer,
    orders::{
        connection_events::{note_refused, tell_locked, tell_no_login},
        last_endings::{LOCKED, NOT_AUTHORISED, THROTTLED},
        login_attempts::Admitted,
        password_verifier,
        store::SessionStore,
        worker::Arrival,
    },
};

/// How long after a login its refusal is sent, for any reason and however long the check took.
const REFUSAL_DELAY: Duration = Duration::from_millis(250);

/// Waits for the login and verifies it. `None`: the connection has ended.
pub(super) async fn greet(
    store: &SessionStore,
    stream: Stream,
    peer: Option<SocketAddr>,
    began: Instant,
) -> Option<Arrival<Stream>> {
    let config = &store.shared.config;
    let mut rules = ServerSession::new(began.as_nanos(), config.timing);
    let mut deframer = Deframer::new(config.payload_bytes_max);
    let until = Instant::from_nanos(rules.deadline_ns());
    let mut deadline = ConnectionTimer::new();
    let (login, rest) = loop {
        let lease = match deadline.until(until, stream.recv()).await {
            Some(Ok(Some(lease))) => lease,
            Some(Ok(None) | Err(_)) => return None,
            None => {
                note_refused(store, None, peer, "no_login");
                return None;
            }
        };
        match first_login(&mut deframer, &mut rules, &lease, store.tick()) {
            Ok(Some((login, consumed))) => break (login, lease[consumed..].to_vec()),
            Ok(None) => {}
            Err(error) => {
                store.counters().count_protocol_error(error.kind());
                tell_no_login(store, peer, error);
                deadline.until(until, say_last(&stream, &fault(error.kind()))).await;
                return None;
            }
        }
    };
    let came = store.now();
    let account = store.account_named(&login.username);
    let verdict = match admitted(store, peer.map(|peer| peer.ip()), account, until) {
        Ok(at) => {
            if at > came {
                time::sleep_until(at).await;
            }
            verify(store, (peer, account), &login, (until, &mut deadline)).await
        }
        Err(label) => Err(label),
    };
    match verdict {
        Ok(account) => return Some(Arrival { socket: stream, peer, account, login, rest }),
        Err(label @ (NOT_AUTHORISED | LOCKED | THROTTLED)) => {
            note_refused(store, Some(login.username), peer, label);
            // For a login that has waited, at once.
            time::sleep_until(came + REFUSAL_DELAY).await;
            refuse(stream, LoginReject::NotAuthorised).await;
        }
        Err(label) => note_refused(store, Some(login.username), peer, label),
    }
    None
}

/// When a login is verified. The error is the label of a refusal without that: after too many wrong passwords.
fn admitted(
    store: &SessionStore,
    address: Option<IpAddr>,
    account: Option<AccountId>,
    until: Instant,
) -> Result<Instant, &'static str> {
    let times = (store.now().as_nanos(), until.as_nanos());
    match store.shared.login_attempts.admit(address, account, times) {
        Admitted::Locked => Err(LOCKED),
        Admitted::TooLate => Err(THROTTLED),
        Admitted::At(at_ns) => Ok(Instant::from_nanos(at_ns)),
    }
}

/// Verifies the password of a login; the error is a label.
async fn verify(
    store: &SessionStore,
    (peer, account): (Option<SocketAddr>, Option<AccountId>),
    login: &LoginRequest,
    (until, deadline): (Instant, &mut ConnectionTimer),
) -> Result<AccountId, &'static str> {
    let address = peer.map(|peer| peer.ip());
    let hash = store.shared.accounts.hash_for(account);
    let verdict = match &store.shared.verifier {
        Some(verifier) => deadline.until(until, verifier.verify(address, hash, login.password)).await,
        None => Some(Ok(password_verifier::verify(&hash, &login.password))),
    };
    let attempts = &store.shared.login_attempts;
    let account = account.filter(|account| store.account(*account).has_login());
    match (verdict, account) {
        (Some(Ok(true)), Some(account)) => {
            attempts.succeeded(address, account);
            Ok(account)
        }
        (Some(Ok(_)), _) => {
            if attempts.failed(address, account, store.tick().as_nanos()) {
                tell_locked(store, login.username, peer);
            }
            Err(NOT_AUTHORISED)
        }
        (Some(Err(password_verifier::Busy)), _) => Err("verifier_busy"),
        (None, _) => Err("verification_late"),
    }
}

/// Looks for a login at the start of a client's bytes, and returns where it ends.
fn first_login(
    deframer: &mut Deframer,
    rules: &mut ServerSession,
    bytes: &[u8],
    now: Instant,
) -> Result<Option<(LoginRequest, usize)>, ProtocolError> {
    let mut rest = bytes;
    while let Some(frame) = deframer.next(&mut rest)? {
        match rules.on_packet(now.as_nanos(), ClientPacket::parse(frame)?)? {
            ServerInput::Login(login) => return Ok(Some((login, bytes.len() - rest.len()))),
            ServerInput::Message(_) | ServerInput::Logout | ServerInput::Nothing => {}
        }
    }
    Ok(None)
}
