//! Which processes are watched, and the socket of each.

use std::{
    collections::{BTreeSet, HashSet},
    fs, io,
    os::unix::fs::MetadataExt,
    sync::OnceLock,
};

/// Most targets at a time.
pub const TARGETS_MAX: usize = 64;

/// Most ports reported for a target.
pub const PORTS_MAX: usize = 8;

/// Value of `--stats-socket` for a server without a socket.
pub const NO_SOCKET: &str = "off";

/// Name of a server's socket unless another was given.
pub fn default_socket(pid: u32) -> String {
    format!("@weir-{pid}")
}

/// A target's statistics socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Socket {
    /// None: it is not a Weir server.
    #[default]
    Foreign,
    /// None: it was started without one.
    Off,
    /// The abstract name that every server uses by default, as far as known without connecting.
    Default(String),
    /// An abstract name given on the command line.
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
    /// Process number; absent until read from the socket.
    pub pid: Option<u32>,
    /// Its statistics socket; without one only threads can be watched.
    pub socket: Socket,
    /// What it serves, in capitals, until it reports its own name: `ECHO`, `GATEWAY`.
    pub name: String,
}

/// What a Weir server's command line says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Serving {
    protocol: String,
    /// Value of `--stats-socket`.
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
    /// Fails when there is no such process.
    pub fn of_pid(pid: u32) -> io::Result<Self> {
        let command = fs::read(format!("/proc/{pid}/cmdline"))
            .map_err(|error| io::Error::new(error.kind(), format!("there is no process {pid}")))?;
        let foreign = || Self { pid: Some(pid), socket: Socket::Foreign, name: comm(pid) };
        Ok(serving(&command).map_or_else(foreign, |it| it.into_target(pid)))
    }

    /// The target that answers on this socket. The process is found among those that were started with this socket's
    /// name.
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

    /// All Weir servers of this user, by process number, at most [`TARGETS_MAX`].
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

/// TCP ports on which a process listens, ascending and at most [`PORTS_MAX`]; empty if its descriptors may not be
/// listed.
pub fn ports(pid: u32) -> Vec<u16> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let socket = |entry: fs::DirEntry| {
        let link = fs::read_link(entry.path()).ok()?;
        link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    let sockets: HashSet<u64> = descriptors.filter_map(socket).collect();
    let tables = ["tcp", "tcp6"].map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")));
    let tables = tables.into_iter().flatten();
    let own = |table: String| -> Vec<u16> {
        listening(&table).filter(|(inode, _)| sockets.contains(inode)).map(|(_, port)| port).collect()
    };
    let ports: BTreeSet<u16> = tables.flat_map(own).collect();
    ports.into_iter().take(PORTS_MAX).collect()
}

/// Listening sockets in a table of the form of `/proc/net/tcp`: inode and port.
fn listening(table: &str) -> impl Iterator<Item = (u64, u16)> {
    const LISTENS: &str = "0A";
    table.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (local, state) = (words.nth(1)?, words.nth(1)?);
        let inode = words.nth(5)?.parse().ok()?;
        let port = u16::from_str_radix(local.rsplit(':').next()?, 16).ok()?;
        (state == LISTENS).then_some((inode, port))
    })
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

/// File name of this program; other instances have the same name, also after renaming.
fn own_name() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let program = fs::read_link("/proc/self/exe").unwrap_or_default();
        program.file_name().and_then(|name| name.to_str()).unwrap_or("weir").to_owned()
    })
}

/// Parses a command line in the kernel's form: words that end in a zero byte. `None` unless it is `weir serve`.
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

    #[test]
    fn sockets_that_listen_are_found_in_the_kernels_table_and_lines_of_any_length_do_no_harm() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0\n\
            1: 0100007F:1F90 0100007F:8AEE 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0\n\
            2: 0000\n\n\
            3: 00000000000000000000000000000000:0050 0:0000 0A 0:0 00:0 0     0        0 4713 1 0\n";
        assert_eq!(listening(table).collect::<Vec<_>>(), [(4711, 8080), (4713, 80)]);
    }

    #[test]
    fn the_ports_of_this_process_are_those_it_listens_on() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it has an address").port();
        // Other tests may listen as well, and the list is limited.
        let found = ports(std::process::id());
        assert!(found.contains(&port) || found.len() == PORTS_MAX, "{port} {found:?}");
    }

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
