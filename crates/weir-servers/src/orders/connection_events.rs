//! What operators hear of clients' connections: logins, refusals, takeovers and ends.

use std::net::SocketAddr;

use weir_proto::soup::{Name, ProtocolError};
use weir_trading::AccountId;

use super::{
    LastEnding, SessionStore,
    events::{Event, EventKind},
    last_endings::{NOT_AUTHORISED, in_words},
};

/// Counts and reports a login that is refused; without a name, none came.
pub(super) fn note_refused(
    store: &SessionStore,
    name: Option<Name<6>>,
    peer: Option<SocketAddr>,
    label: &'static str,
) {
    store.counters().count_login(label);
    let account = name.and_then(|name| store.account_named(&name));
    if let Some(account) = account {
        store.note_ending(account, LastEnding::Refused(label), peer.map(|peer| peer.ip()));
    }
    store.tell(EventKind::LogInRefused, || {
        let whose = name.map_or_else(|| "a connection".to_owned(), |name| format!("a login of {name}"));
        let why = match (account, label) {
            (None, NOT_AUTHORISED) => "there is no such account",
            _ => in_words(label),
        };
        let text = format!("{whose}{} is refused: {why}", from(peer));
        let event = Event::new(EventKind::LogInRefused, text).with_peer(peer).because(label);
        match name {
            Some(name) => event.of_account(name),
            None => event,
        }
    });
}

/// Reports that a connection sent something that is no login.
pub(super) fn tell_no_login(store: &SessionStore, peer: Option<SocketAddr>, error: ProtocolError) {
    store.tell(EventKind::ProtocolBroken, || {
        let text = format!("a connection{} is cut off before its login: {error}", from(peer));
        Event::new(EventKind::ProtocolBroken, text).with_peer(peer).because(error.kind())
    });
}

/// Reports that logins of this name, or from this address, are locked from now on: once for each lock.
pub(super) fn tell_locked(store: &SessionStore, name: Name<6>, peer: Option<SocketAddr>) {
    store.tell(EventKind::LogInsLocked, || {
        let address = peer.map(|peer| format!(" from {}", peer.ip())).unwrap_or_default();
        // All names may be locked for this address.
        let whom = peer.map_or_else(|| name.to_string(), |peer| peer.ip().to_string());
        let lock_s = store.shared.config.logins.lock.as_secs();
        let text = format!(
            "logins of {name}{address} are locked for {lock_s} s after too many wrong passwords; `weir ctl unlock \
             {whom}` ends that"
        );
        Event::new(EventKind::LogInsLocked, text).of_account(name).with_peer(peer)
    });
}

/// The client's address in a sentence.
fn from(peer: Option<SocketAddr>) -> String {
    peer.map(|peer| format!(" from {peer}")).unwrap_or_default()
}

/// Reports a login.
pub(super) fn tell_login(store: &SessionStore, account: AccountId, peer: Option<SocketAddr>) {
    store.tell(EventKind::LogIn, || {
        let name = store.account(account).name();
        let text = format!("{name} has logged in{}", from(peer));
        Event::new(EventKind::LogIn, text).of_account(name).with_peer(peer)
    });
}

/// Reports that a login ends another connection.
pub(super) fn tell_takeover(
    store: &SessionStore,
    account: AccountId,
    before: Option<SocketAddr>,
    after: Option<SocketAddr>,
) {
    store.tell(EventKind::TakeOver, || {
        let name = store.account(account).name();
        let text = format!("a login of {name}{} ends its connection{}", from(after), from(before));
        Event::new(EventKind::TakeOver, text).of_account(name).with_peer(after)
    });
}

/// Reports that a connection has ended: a label, and the same in words.
pub(super) fn tell_ending(
    store: &SessionStore,
    account: AccountId,
    peer: Option<SocketAddr>,
    (label, why): (&'static str, &'static str),
) {
    store.tell(EventKind::LogOut, || {
        let name = store.account(account).name();
        let text = format!("the connection of {name}{} has ended: {why}", from(peer));
        Event::new(EventKind::LogOut, text).of_account(name).with_peer(peer).because(label)
    });
}
