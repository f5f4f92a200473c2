//! Which processes are watched, and where each answers.

use std::{fs, io, os::unix::fs::MetadataExt, sync::OnceLock};

/// Most targets at a time.
pub const TARGETS_MAX: usize = 64;

/// What a server is told with `--stats-socket` that is to have none.
pub const NO_SOCKET: &str = "off";

/// Where a server answers that was told no other name.
pub fn default_socket(pid: u32) -> String {
    format!("@weir-{pid}")
}

/// Where a target answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Socket {
    /// Nowhere: it is no server of ours.
    #[default]
    Foreign,
    /// Nowhere: it was started so.
    Off,
    /// At the abstract name that every server takes, as far as this is known without asking.
    Default(String),
    /// At an abstract name that somebody chose.
    Named(String),
}

impl Socket {
    /// The abstract name with its `@`.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Foreign | Self::Off => None,
            Self::Default(name) | Self::Named(name) => Some(name),
        }
    }
}

/// A process to watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Process number; absent until the socket has told it.
    pub pid: Option<u32>,
    /// Its statistics socket; without one only threads can be watched.
    pub socket: Socket,
    /// What it serves, in capitals, until it says its own name: `ECHO`, `GATEWAY`.
    pub name: String,
}

/// What a command line says of a server of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Serving {
    protocol: String,
    /// What it was told with `--stats-socket`.
    socket: Option<String>,
}

impl Serving {
    fn into_target(self, pid: u32) -> Target {
        let socket = match self.socket {
            None => Socket::Default(default_socket(pid)),
            Some(name) if name == NO_SOCKET => Socket::Off,
            Some(name) => Socket::Named(name),
        };
        Target { pid: Some(pid), socket, name: self.protocol.to_uppercase() }
    }
}

impl Target {
    /// The process with this number; its socket is found in its command line.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn of_pid(pid: u32) -> io::Result<Self> {
        let command = fs::read(format!("/proc/{pid}/cmdline"))
            .map_err(|error| io::Error::new(error.kind(), format!("there is no process {pid}")))?;
        let foreign = || Self { pid: Some(pid), socket: Socket::Foreign, name: comm(pid) };
        Ok(serving(&command).map_or_else(foreign, |it| it.into_target(pid)))
    }

    /// Whoever answers on this socket. The process is found among those that were started with its name.
    pub fn of_socket(socket: &str) -> Self {
        let is_its = |target: &Self| target.socket.name() == Some(socket);
        let known = numbers().filter_map(|pid| Self::of_pid(pid).ok()).find(is_its);
        let unknown = || Self {
            pid: None,
            socket: Socket::Named(socket.to_owned()),
            name: socket.trim_start_matches('@').to_uppercase(),
        };
        known.unwrap_or_else(unknown)
    }

    /// Every server of ours that this user runs, by process number, [`TARGETS_MAX`] at most.
    pub fn running() -> Vec<Self> {
        let user = rustix::process::getuid().as_raw();
        let mut found: Vec<Self> = numbers()
            .filter(|pid| owner(*pid) == Some(user))
            .filter_map(|pid| {
                let serving = serving(&fs::read(format!("/proc/{pid}/cmdline")).ok()?)?;
                Some(serving.into_target(pid))
            })
            .collect();
        found.sort_by_key(|target| target.pid);
        found.truncate(TARGETS_MAX);
        found
    }
}

fn numbers() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// User the process belongs to.
pub(crate) fn owner(pid: u32) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}")).ok().map(|found| found.uid())
}

fn comm(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).map(|name| name.trim().to_owned()).unwrap_or_default()
}

/// Name of the program itself, under which others of its kind run; whoever renamed it renamed them.
fn own_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let program = fs::read_link("/proc/self/exe").unwrap_or_default();
        program.file_name().and_then(|name| name.to_str()).unwrap_or("weir").to_owned()
    })
}

/// Reads a command line as the kernel gives it: words that end in a zero byte. `None` unless it is `weir serve`.
fn serving(command: &[u8]) -> Option<Serving> {
    let words: Vec<String> =
        command.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let program = words.first()?.rsplit('/').next()?;
    if !["weir", own_name()].contains(&program) || words.get(1).map(String::as_str) != Some("serve") {
        return None;
    }
    let protocol = words.get(2).filter(|word| !word.is_empty() && !word.starts_with('-'))?.clone();
    let after = |word: &String| word.strip_prefix("--stats-socket=").map(str::to_owned);
    let beside =
        words.iter().position(|word| word == "--stats-socket").and_then(|at| words.get(at + 1).cloned());
    let is_name = |name: &String| name.starts_with('@') || name == NO_SOCKET;
    let socket = beside.or_else(|| words.iter().find_map(after)).filter(is_name);
    Some(Serving { protocol, socket })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Option<Serving> {
        let mut line = Vec::new();
        for word in words {
            line.extend_from_slice(word.as_bytes());
            line.push(0);
        }
        serving(&line)
    }

    #[test]
    fn a_server_of_ours_is_known_by_its_words() {
        let serving = |protocol: &str, socket: Option<&str>| {
            Some(Serving { protocol: protocol.to_owned(), socket: socket.map(str::to_owned) })
        };
        assert_eq!(
            of(&["/opt/weir", "serve", "gateway", "--stats-socket", "@g"]),
            serving("gateway", Some("@g"))
        );
        assert_eq!(
            of(&["weir", "serve", "echo", "--stats-socket=@e", "--workers", "2"]),
            serving("echo", Some("@e"))
        );
        assert_eq!(of(&["weir", "serve", "http"]), serving("http", None));
        assert_eq!(
            of(&["weir", "serve", "http", "--stats-socket"]),
            serving("http", None),
            "it is cut short"
        );
        for other in
            [&["weir", "load", "echo"][..], &["nginx", "serve", "echo"], &["weir", "serve"], &["weir"], &[]]
        {
            assert_eq!(of(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_server_answers_where_it_was_told_to_or_at_its_number() {
        let socket =
            |words: &[&str]| of(words).map(|serving| serving.into_target(42).socket).expect("it is one");
        assert_eq!(socket(&["weir", "serve", "echo"]), Socket::Default("@weir-42".to_owned()));
        assert_eq!(socket(&["weir", "serve", "echo", "--stats-socket", "off"]), Socket::Off);
        assert_eq!(socket(&["weir", "serve", "echo", "--stats-socket=@e"]), Socket::Named("@e".to_owned()));
    }

    #[test]
    fn this_process_is_one_without_a_socket() {
        let own = Target::of_pid(std::process::id()).expect("it runs");
        assert_eq!((own.pid, own.socket), (Some(std::process::id()), Socket::Foreign));
        assert!(!own.name.is_empty());
        assert_eq!(owner(std::process::id()), Some(rustix::process::getuid().as_raw()));
        assert!(Target::of_pid(u32::MAX).is_err());
    }

    #[test]
    fn a_socket_nobody_has_is_watched_by_its_name() {
        let found = Target::of_socket("@weir-monitor-nobody");
        assert_eq!((found.pid, found.name.as_str()), (None, "WEIR-MONITOR-NOBODY"));
        assert_eq!(found.socket.name(), Some("@weir-monitor-nobody"));
    }
}
