//! The record of what operators asked for: who, which command, and the outcome. It is written beside the record of the
//! change itself, which says what holds from then on. Requests contain no secrets: passwords are in the file, and only
//! their hashes.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::fd::AsFd,
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use weir_sys::peer;

use super::control::{ControlRequest, ControlResponse};

/// Longest arguments that are recorded; of longer ones the record has the size. The change itself is in another record.
const ARGUMENTS_BYTES_MAX: usize = 4 << 10;
/// Longest reason that is recorded.
const REASON_BYTES_MAX: usize = 2 << 10;
/// Most lines about changes that are recorded; each is short.
const CHANGES_MAX: usize = 80;
/// Users that are looked up by number.
const PASSWD: &str = "/etc/passwd";
/// Most lines of it that are read.
const PASSWD_LINES_MAX: usize = 10_000;

/// The way of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Via {
    /// The control socket.
    Socket,
    /// SIGHUP.
    Signal,
}

/// Who asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Operator {
    via: Via,
    /// The user's name, if the system knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pid: Option<i32>,
}

impl Operator {
    /// The sender of a signal, which the handler does not learn.
    pub(super) fn of_signal() -> Self {
        Self { via: Via::Signal, user: None, uid: None, pid: None }
    }

    /// The process at the other end of a Unix socket when it connected.
    pub(super) fn of_peer(socket: impl AsFd) -> Self {
        let peer = peer::credentials(socket).ok();
        let uid = peer.map(|peer| peer.uid);
        let user = uid.and_then(|uid| {
            let file = BufReader::new(fs::File::open(PASSWD).ok()?);
            user_named(file.lines().map_while(Result::ok).take(PASSWD_LINES_MAX), uid)
        });
        Self { via: Via::Socket, user, uid, pid: peer.and_then(|peer| peer.pid) }
    }
}

impl std::fmt::Display for Operator {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.via, &self.user, self.uid) {
            (Via::Signal, ..) => formatter.write_str("a signal"),
            (Via::Socket, Some(user), _) => write!(formatter, "{user}"),
            (Via::Socket, None, Some(uid)) => write!(formatter, "user {uid}"),
            (Via::Socket, None, None) => formatter.write_str("an unknown user"),
        }
    }
}

/// The name of a user in lines of a passwd file.
fn user_named(lines: impl Iterator<Item = String>, uid: u32) -> Option<String> {
    lines.into_iter().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

/// A command and its outcome, as it is journaled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Audit {
    #[serde(flatten)]
    pub(super) operator: Operator,
    pub(super) command: String,
    /// The arguments by name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) arguments: Map<String, Value>,
    /// Whether it was carried out.
    pub(super) ok: bool,
    /// The reason, if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// After a reload: what has changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) changes: Vec<String>,
}

impl Audit {
    /// `None`: the request only shows something.
    pub(super) fn new(
        operator: &Operator,
        request: &ControlRequest,
        answer: &ControlResponse,
    ) -> Option<Self> {
        if !request.acts() {
            return None;
        }
        let Ok(Value::Object(mut arguments)) = serde_json::to_value(request) else { return None };
        let command = match arguments.remove("command") {
            Some(Value::String(command)) => command,
            _ => return None,
        };
        let bytes = serde_json::to_vec(&arguments).map_or(0, |text| text.len());
        if bytes > ARGUMENTS_BYTES_MAX {
            arguments.retain(|name, _| name == "account");
            arguments.insert("bytes".into(), bytes.into());
        }
        let error = answer.error.as_deref().map(|reason| shortened(reason).to_owned());
        let changes = answer.changes.iter().flatten().take(CHANGES_MAX).cloned().collect();
        Some(Self { operator: operator.clone(), command, arguments, ok: answer.ok, error, changes })
    }

    /// The record.
    pub(super) fn record(&self) -> Vec<u8> {
        // It is data.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Decodes a record; `None` if it is malformed.
    pub(super) fn of_record(payload: &[u8]) -> Option<Self> {
        serde_json::from_slice(payload).ok()
    }
}

impl std::fmt::Display for Audit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { operator, command, arguments, error, changes, .. } = self;
        write!(formatter, "{operator}: {command}")?;
        if !arguments.is_empty() {
            write!(formatter, " {}", Value::from(arguments.clone()))?;
        }
        match error {
            None if changes.is_empty() => formatter.write_str(": done"),
            None => write!(formatter, ": done: {}", changes.join("; ")),
            Some(reason) => write!(formatter, ": {}", reason.replace('\n', "; ")),
        }
    }
}

fn shortened(reason: &str) -> &str {
    let end = (0..=REASON_BYTES_MAX.min(reason.len())).rev().find(|end| reason.is_char_boundary(*end));
    &reason[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> Operator {
        Operator { via: Via::Socket, user: Some("root".into()), uid: Some(0), pid: Some(7) }
    }

    fn done() -> ControlResponse {
        ControlResponse { ok: true, ..ControlResponse::default() }
    }

    #[test]
    fn a_command_is_recorded_with_user_arguments_and_outcome() {
        let kill = ControlRequest::Kill { account: Some("C00001".into()), on: true };
        let audit = Audit::new(&root(), &kill, &done()).expect("it acts");
        let record = audit.record();
        assert_eq!(
            String::from_utf8_lossy(&record),
            r#"{"via":"socket","user":"root","uid":0,"pid":7,"command":"kill","arguments":{"account":"C00001","on":true},"ok":true}"#
        );
        assert_eq!(Audit::of_record(&record), Some(audit.clone()));
        assert_eq!(audit.to_string(), r#"root: kill {"account":"C00001","on":true}: done"#);
        let wrong = ControlResponse { error: Some("a\nb".into()), ..ControlResponse::default() };
        let refused = Audit::new(&Operator::of_signal(), &ControlRequest::Reload, &wrong).expect("it acts");
        assert_eq!(refused.to_string(), "a signal: reload: a; b");
        assert_eq!(Audit::of_record(&refused.record()), Some(refused));
        assert_eq!(Audit::of_record(b"nothing"), None);
        let reloaded = ControlResponse { changes: Some(vec!["accounts added: A".into()]), ..done() };
        let audit = Audit::new(&root(), &ControlRequest::Reload, &reloaded).expect("it acts");
        assert_eq!(audit.to_string(), "root: reload: done: accounts added: A");
        assert_eq!(Audit::of_record(&audit.record()), Some(audit));
    }

    #[test]
    fn what_only_shows_is_not_recorded() {
        let limits = |set, reset| ControlRequest::Limits { account: None, set, reset };
        let is_recorded = |request: &ControlRequest| Audit::new(&root(), request, &done()).is_some();
        assert!(
            !is_recorded(&ControlRequest::Sessions { account: None }) && !is_recorded(&limits(None, None))
        );
        assert!(!is_recorded(&ControlRequest::References { set: None }));
        assert!(is_recorded(&limits(Some(Map::new()), None)));
        assert!(is_recorded(&limits(None, Some(Default::default()))));
        assert!(is_recorded(&ControlRequest::Drain) && is_recorded(&ControlRequest::Reload));
    }

    #[test]
    fn a_record_is_bounded() {
        let symbols: Vec<Value> = (0..5000).map(|number| format!("S{number}").into()).collect();
        let set = Map::from_iter([("restricted".to_owned(), symbols.into())]);
        let limits = ControlRequest::Limits { account: Some("C00001".into()), set: Some(set), reset: None };
        let error = Some("\u{20ac}".repeat(1000));
        let wrong = ControlResponse { error, ..ControlResponse::default() };
        let audit = Audit::new(&root(), &limits, &wrong).expect("it acts");
        let names: Vec<&String> = audit.arguments.keys().collect();
        assert_eq!(names, ["account", "bytes"]);
        assert_eq!(audit.error.map(|error| error.len()), Some(REASON_BYTES_MAX / 3 * 3));
    }

    #[test]
    fn a_user_is_named_by_number() {
        let lines = ["root:x:0:0:root:/root:/bin/sh", "", "broken", "desk:x:1000:1000::/srv/desk:/bin/sh"];
        let named = |uid| user_named(lines.iter().map(|line| (*line).to_owned()), uid);
        assert_eq!([named(0), named(1000), named(5)], [Some("root".into()), Some("desk".into()), None]);
        let unknown = Operator { user: None, uid: Some(5), ..root() };
        assert_eq!(unknown.to_string(), "user 5");
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().expect("two sockets");
        let peer = Operator::of_peer(&ours);
        assert_eq!(peer.pid, Some(std::process::id() as i32));
        assert_eq!(peer.uid, Some(rustix::process::geteuid().as_raw()));
    }
}
