//! What descriptors are: names from /proc while they are open, beside what was moved through them.

use std::{
    collections::HashMap,
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
};

use weir_record::observation::{
    DESCRIPTOR_ROWS_MAX, DescriptorFigures, DescriptorKind, DescriptorMark, DescriptorTable,
    OtherDescriptors, Transfers,
};

use crate::{
    files,
    ladder::tables::{TracedDescriptor, TracedTransfers},
};

/// So many descriptors are looked at ten times a second.
const FEW: usize = 128;

/// A process and the number of its descriptor.
type Key = (u32, u32);

/// What a descriptor is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct What {
    kind: DescriptorKind,
    name: Option<String>,
    local: Option<String>,
}

/// Descriptors of one side: what had been moved when the window began, and what they were when they were looked at. As
/// many at most as the programs tell apart.
#[derive(Debug, Default)]
pub(super) struct Files {
    before: HashMap<Key, TracedDescriptor>,
    others_before: TracedDescriptor,
    /// With how often the number had been closed then.
    known: HashMap<Key, (u64, What)>,
    /// How many there were at the last look.
    seen: usize,
}

fn key(it: &TracedDescriptor) -> Key {
    (it.pid, it.descriptor)
}

impl Files {
    /// The window begins here.
    pub(super) fn begin((now, others): (Vec<TracedDescriptor>, TracedDescriptor)) -> Self {
        let before = now.iter().map(|it| (key(it), *it)).collect();
        Self { seen: now.len(), before, others_before: others, known: HashMap::new() }
    }

    /// Looks at those that were not looked at since they have been opened.
    pub(super) fn look(&mut self, now: &[TracedDescriptor]) {
        self.seen = now.len();
        let mut sockets = Sockets::default();
        for it in now {
            let is_known = |(closes, what): &(u64, What)| *closes == it.closes && !what.may_get_a_peer();
            if self.known.get(&key(it)).is_some_and(is_known) {
                continue;
            }
            if let Some(what) = look_at(key(it), &mut sockets) {
                self.known.insert(key(it), (it.closes, what));
            }
        }
    }

    /// Whether a look at them is next to nothing.
    pub(super) fn are_few(&self) -> bool {
        self.seen <= FEW
    }

    /// What was moved in the window.
    pub(super) fn table(
        &self,
        (now, others): &(Vec<TracedDescriptor>, TracedDescriptor),
        is_open: &dyn Fn(Key) -> bool,
    ) -> DescriptorTable {
        let since = |it: &TracedDescriptor| {
            it.since(self.before.get(&key(it)).unwrap_or(&TracedDescriptor::default()))
        };
        let moved = now.iter().map(since).filter(TracedDescriptor::is_used);
        let mut rows: Vec<DescriptorFigures> = moved.map(|it| self.row(&it, is_open(key(&it)))).collect();
        rows.sort_by_key(|row| {
            let (bytes, calls) = (row.read.bytes + row.written.bytes, row.read.calls + row.written.calls);
            (std::cmp::Reverse((bytes, calls)), row.pid, row.descriptor)
        });
        let left_out = rows.split_off(rows.len().min(DESCRIPTOR_ROWS_MAX));
        let without_room = others.since(&self.others_before);
        let mut rest = OtherDescriptors {
            count: left_out.len() as u64,
            are_more: without_room.is_used(),
            read: transfers(&without_room.read),
            written: transfers(&without_room.written),
        };
        for row in &left_out {
            rest.read.add(&row.read);
            rest.written.add(&row.written);
        }
        DescriptorTable { rows, others: rest }
    }

    fn row(&self, it: &TracedDescriptor, is_open: bool) -> DescriptorFigures {
        let what = self.known.get(&key(it)).map(|(_, what)| what.clone()).unwrap_or_default();
        let users = (it.closes + u64::from(is_open)).max(1);
        let state = match users {
            1 if is_open => DescriptorMark::Open,
            1 => DescriptorMark::Gone,
            _ => DescriptorMark::Reused,
        };
        DescriptorFigures {
            pid: it.pid,
            descriptor: it.descriptor,
            kind: what.kind,
            name: what.name,
            local: what.local,
            state,
            users,
            read: transfers(&it.read),
            written: transfers(&it.written),
        }
    }
}

fn transfers(it: &TracedTransfers) -> Transfers {
    let used = it.buckets.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    Transfers { calls: it.calls, failed: it.failed, bytes: it.bytes, sizes: it.buckets[..used].to_vec() }
}

/// Whether a process has a descriptor by this number.
pub(super) fn is_open((pid, descriptor): Key) -> bool {
    fs::symlink_metadata(format!("/proc/{pid}/fd/{descriptor}")).is_ok()
}

fn look_at((pid, descriptor): Key, sockets: &mut Sockets) -> Option<What> {
    let link = fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
    let link = link.to_string_lossy();
    Some(match inode_of_socket(&link) {
        Some(inode) => sockets.find(pid, inode).unwrap_or_else(|| What {
            kind: DescriptorKind::Socket,
            name: Some(link.into_owned()),
            local: None,
        }),
        None => without_socket(&link),
    })
}

fn inode_of_socket(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// By what the link says: a path, or the kernel's words.
fn without_socket(link: &str) -> What {
    let kind = match link {
        _ if link.starts_with('/') => DescriptorKind::File,
        _ if link.starts_with("pipe:") => DescriptorKind::Pipe,
        _ => DescriptorKind::Other,
    };
    What { kind, name: Some(link.to_owned()), local: None }
}

impl What {
    /// A socket that had no peer when it was looked at may be connected later.
    fn may_get_a_peer(&self) -> bool {
        self.name.is_none() && matches!(self.kind, DescriptorKind::Tcp | DescriptorKind::Udp)
    }
}

/// Sockets by their inodes, of each network namespace that was asked for.
#[derive(Default)]
struct Sockets(HashMap<PathBuf, HashMap<u64, What>>);

impl Sockets {
    fn find(&mut self, pid: u32, inode: u64) -> Option<What> {
        let namespace = fs::read_link(format!("/proc/{pid}/ns/net")).unwrap_or_default();
        let of_namespace = self.0.entry(namespace).or_insert_with(|| read_sockets(pid));
        of_namespace.get(&inode).cloned()
    }
}

fn read_sockets(pid: u32) -> HashMap<u64, What> {
    let read = |table: &str| files::read_text(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
    let mut found: HashMap<u64, What> = read("unix").lines().filter_map(unix_socket).collect();
    for (table, kind) in [
        ("tcp", DescriptorKind::Tcp),
        ("tcp6", DescriptorKind::Tcp),
        ("udp", DescriptorKind::Udp),
        ("udp6", DescriptorKind::Udp),
    ] {
        found.extend(read(table).lines().filter_map(|line| inet_socket(line, kind)));
    }
    found
}

/// A line of `/proc/net/tcp` and its like: own address, the peer's, state, and the inode at the tenth place.
fn inet_socket(line: &str, kind: DescriptorKind) -> Option<(u64, What)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [_, local, peer, ..] = words[..] else { return None };
    let (local, peer) = (address(local)?, address(peer)?);
    let inode = words.get(9)?.parse().ok()?;
    let name = (peer.port() != 0).then(|| peer.to_string());
    Some((inode, What { kind, name, local: Some(local.to_string()) }))
}

/// `0100007F:1F90`: words of 32 bits as they lie in memory, and a number.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(address.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(8 * at)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

/// A line of `/proc/net/unix`: the inode at the seventh place, and a path if it has one.
fn unix_socket(line: &str) -> Option<(u64, What)> {
    let mut words = line.split_ascii_whitespace();
    let inode = words.nth(6)?.parse().ok()?;
    let path = words.collect::<Vec<_>>().join(" ");
    let name = Some(path).filter(|path| !path.is_empty());
    Some((inode, What { kind: DescriptorKind::Unix, name, local: None }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_have_the_addresses_of_the_kernels_tables_and_lines_of_any_length_do_no_harm() {
        let line = "   1: 0100007F:1F90 0100007F:8AEE 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0";
        let (inode, what) = inet_socket(line, DescriptorKind::Tcp).expect("a socket");
        assert_eq!((inode, what.local.as_deref()), (4712, Some("127.0.0.1:8080")));
        assert_eq!((what.name.as_deref(), what.may_get_a_peer()), (Some("127.0.0.1:35566"), false));
        let listens = line.replace("0100007F:8AEE 01", "00000000:0000 0A");
        let (_, what) = inet_socket(&listens, DescriptorKind::Tcp).expect("a socket");
        assert!(what.name.is_none() && what.may_get_a_peer());
        let mapped =
            "0: 0000000000000000FFFF00000100007F:0050 00000000000000000000000001000000:0051 01 a b c 0 0 9 1";
        let (_, what) = inet_socket(mapped, DescriptorKind::Udp).expect("a socket");
        assert_eq!((what.local.as_deref(), what.name.as_deref()), (Some("127.0.0.1:80"), Some("[::1]:81")));
        for cut in 0..line.len() {
            let _ = inet_socket(&line[..cut], DescriptorKind::Tcp);
        }
        let unix = "0000000000000000: 00000002 00000000 00010000 0001 01 20563 /run/a b.sock";
        let (inode, what) = unix_socket(unix).expect("a socket");
        assert_eq!((inode, what.name.as_deref()), (20563, Some("/run/a b.sock")));
        assert_eq!(unix_socket("0: 2 0 1 1 1 77").expect("a socket").1.name, None);
        assert_eq!((unix_socket("Num RefCount"), inode_of_socket("socket:[x]")), (None, None));
        assert_eq!(address("서버서버:1F90"), None);
    }

    #[test]
    fn what_has_no_socket_is_called_as_the_kernel_calls_it() {
        let kinds =
            ["/dev/null", "pipe:[7]", "anon_inode:[eventfd]", ""].map(|link| without_socket(link).kind);
        assert_eq!(
            kinds,
            [DescriptorKind::File, DescriptorKind::Pipe, DescriptorKind::Other, DescriptorKind::Other]
        );
    }

    fn moved(descriptor: u32, closes: u64, bytes: u64) -> TracedDescriptor {
        let mut read = TracedTransfers { calls: 1, bytes, ..TracedTransfers::default() };
        read.buckets[3] = 1;
        TracedDescriptor { pid: 7, descriptor, closes, read, ..TracedDescriptor::default() }
    }

    #[test]
    fn a_descriptor_counts_from_the_windows_begin_and_is_marked_where_it_is_gone_or_was_another() {
        let before = moved(3, 4, 100);
        let files = Files::begin((vec![before], TracedDescriptor::default()));
        let mut later = moved(3, 4, 150);
        later.read.calls = 2;
        let now = vec![later, moved(4, 0, 900), moved(5, 1, 30), moved(6, 2, 20)];
        let table =
            files.table(&(now, TracedDescriptor::default()), &|(_, descriptor)| [3, 6].contains(&descriptor));
        let told: Vec<_> =
            table.rows.iter().map(|row| (row.descriptor, row.read.bytes, row.state, row.users)).collect();
        assert_eq!(
            told,
            [
                (4, 900, DescriptorMark::Gone, 1),
                (3, 50, DescriptorMark::Open, 1),
                (5, 30, DescriptorMark::Gone, 1),
                (6, 20, DescriptorMark::Reused, 3),
            ]
        );
        assert_eq!(table.rows[0].read.sizes, [0, 0, 0, 1]);
        assert_eq!(table.others, OtherDescriptors::default());
        let unused = files.table(&(vec![before], TracedDescriptor::default()), &|_| true);
        assert!(unused.rows.is_empty(), "nothing was moved in the window");
    }

    #[test]
    fn descriptors_beyond_the_rows_are_one_and_so_are_those_that_found_no_room() {
        let files = Files::default();
        let now: Vec<_> = (0..DESCRIPTOR_ROWS_MAX as u32 + 5).map(|it| moved(it, 0, u64::from(it))).collect();
        let without_room = TracedDescriptor { pid: 0, descriptor: 0, ..moved(0, 0, 1_000) };
        let table = files.table(&(now.clone(), without_room), &|_| true);
        assert_eq!((table.rows.len(), table.rows[0].read.bytes), (DESCRIPTOR_ROWS_MAX, now.len() as u64 - 1));
        let OtherDescriptors { count, are_more, read, .. } = table.others;
        assert_eq!((count, are_more, read.calls, read.bytes), (5, true, 6, 1_000 + 1 + 2 + 3 + 4));
        assert_eq!(read.sizes, [0, 0, 0, 6]);
    }

    #[test]
    fn descriptors_of_this_process_are_found() {
        use std::os::fd::AsRawFd;
        let own = std::process::id();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it has one");
        let stream = std::net::TcpStream::connect(address).expect("it listens");
        let file = fs::File::open("/dev/zero").expect("every Linux has it");
        let of = |descriptor: i32| moved(descriptor.cast_unsigned(), 0, 1);
        let now = [listener.as_raw_fd(), stream.as_raw_fd(), file.as_raw_fd()]
            .map(|it| TracedDescriptor { pid: own, ..of(it) });
        let mut files = Files::default();
        files.look(&now);
        let table = files.table(&(now.to_vec(), TracedDescriptor::default()), &is_open);
        let find = |descriptor: i32| {
            let is_it = |row: &&DescriptorFigures| row.descriptor == descriptor.cast_unsigned();
            table.rows.iter().find(is_it).expect("it moved something").clone()
        };
        let connected = find(stream.as_raw_fd());
        assert_eq!((connected.kind, connected.name), (DescriptorKind::Tcp, Some(address.to_string())));
        let listening = find(listener.as_raw_fd());
        assert_eq!((listening.name, listening.local), (None, Some(address.to_string())));
        let zero = find(file.as_raw_fd());
        assert_eq!((zero.name.as_deref(), zero.state), (Some("/dev/zero"), DescriptorMark::Open));
    }
}
