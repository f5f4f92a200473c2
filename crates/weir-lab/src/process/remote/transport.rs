//! The transport to another host: a command that runs `sh` there and connects its standard input and output to ours.

use std::fmt;

use thiserror::Error;

/// What is said to the system's `ssh`. No terminal: it would change bytes and wait for more of them. No question to the
/// user, whose terminal shows a study. Nothing forwarded. A host that no longer answers is noticed within 15 seconds.
const SSH: [&str; 21] = [
    "ssh",
    "-T",
    "-x",
    "-a",
    "-o",
    "BatchMode=yes",
    "-o",
    "ClearAllForwardings=yes",
    // A shared connection would be a process that outlives this one, and that other sessions use.
    "-o",
    "ControlMaster=no",
    "-o",
    "ControlPath=none",
    "-o",
    "ConnectTimeout=15",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
    "-o",
    "PermitLocalCommand=no",
    "--",
];

/// How the other host is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transport {
    /// Name of the host in messages.
    pub(super) name: String,
    /// The command, without the part that runs there.
    pub(super) words: Vec<String>,
}

/// Why there is no transport.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TransportError {
    /// It would be taken for an option of `ssh`, or is empty.
    #[error("--server-host {0:?}: write [user@]HOST, as for ssh")]
    Host(String),
    /// The command has no words, or an unclosed quote.
    #[error("--rsh {0:?} is no command; write one that runs the words behind it on the host of the servers")]
    Command(String),
}

impl Transport {
    /// Uses the system's `ssh`.
    ///
    /// # Errors
    /// If the text is no `[user@]HOST`.
    pub fn ssh(host: &str) -> Result<Self, TransportError> {
        let is_plain = |letter: char| !letter.is_whitespace() && !letter.is_control();
        if host.is_empty() || host.starts_with('-') || !host.chars().all(is_plain) {
            return Err(TransportError::Host(host.to_owned()));
        }
        let words = SSH.iter().copied().chain([host]).map(str::to_owned).collect();
        let name = host.rsplit_once('@').map_or(host, |(_, name)| name).to_owned();
        Ok(Self { name, words })
    }

    /// Uses another command. Its text is the host's name in messages, unless `name` is given.
    ///
    /// # Errors
    /// If the command has no words.
    pub fn command(text: &str, words: Vec<String>, name: Option<&str>) -> Result<Self, TransportError> {
        if words.first().is_none_or(String::is_empty) {
            return Err(TransportError::Command(text.to_owned()));
        }
        Ok(Self { name: name.unwrap_or(text).to_owned(), words })
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_the_last_word_and_never_an_option() {
        let way = Transport::ssh("me@b.example").expect("a host");
        assert_eq!(
            (way.name.as_str(), way.words.last().map(String::as_str)),
            ("b.example", Some("me@b.example"))
        );
        assert_eq!(way.words[way.words.len() - 2], "--");
        for wrong in ["", "-oProxyCommand=sh", "a b", "a\nb"] {
            assert_eq!(Transport::ssh(wrong), Err(TransportError::Host(wrong.to_owned())));
        }
    }

    #[test]
    fn a_command_names_its_host_unless_that_has_a_name() {
        let words = vec!["ip".to_owned(), "netns".to_owned(), "exec".to_owned(), "b".to_owned()];
        let way =
            |name| Transport::command("ip netns exec b", words.clone(), name).expect("a command").to_string();
        assert_eq!((way(None), way(Some("b"))), ("ip netns exec b".to_owned(), "b".to_owned()));
        assert!(Transport::command("", Vec::new(), None).is_err());
    }
}
