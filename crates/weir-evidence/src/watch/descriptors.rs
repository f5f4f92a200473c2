//! Identities of descriptors: names from /proc while they are open, and the amounts moved through them.

use std::{collections::HashMap, fs, path::PathBuf};

use weir_record::observation::{
    DESCRIPTOR_ROWS_MAX, DescriptorFigures, DescriptorKind, DescriptorMark, DescriptorTable, OUTSIDE,
    OtherDescriptors, Transfers,
};

use crate::{
    files,
    ladder::tables::{TracedDescriptor, TracedTransfers},
    sockets::{self, InetSocket},
};

/// Up to this many descriptors are checked ten times a second,
const FEW: usize = 128;
/// as long as the kernel's tables of sockets are no longer than this: the kernel generates them for each reading.
const TABLES_BYTES_FEW: usize = 128 << 10;

/// A process and the number of its descriptor.
type Key = (u32, u32);

/// The identity of a descriptor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct What {
    kind: DescriptorKind,
    name: Option<String>,
    local: Option<String>,
}

/// The identity of a descriptor at its last check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// How often its number had been closed by then.
    closes: u64,
    what: What,
    /// The second in which it was first checked.
    second: u64,
}

/// When descriptors are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// In between, because some live for less than a second.
    Between,
    /// Once a second.
    Second,
    /// After the programs have stopped.
    End,
}

/// Descriptors of one side: the amounts moved before the window, and their identities when they were checked. At most
/// as many as the programs distinguish.
#[derive(Debug, Default)]
pub(super) struct Files {
    before: HashMap<Key, TracedDescriptor>,
    others_before: TracedDescriptor,
    known: HashMap<Key, Seen>,
    /// Their number at the last check.
    seen: usize,
    /// Number of full checks so far.
    seconds: u64,
    /// Length of the kernel's tables of sockets at their last reading.
    tables_bytes: usize,
    /// Whether one of them exceeded the read limit.
    are_tables_cut: bool,
}

fn key(it: &TracedDescriptor) -> Key {
    (it.pid, it.descriptor)
}

impl Files {
    /// Starts the window.
    pub(super) fn begin((now, others): (Vec<TracedDescriptor>, TracedDescriptor)) -> Self {
        let before = now.iter().map(|it| (key(it), *it)).collect();
        Self { seen: now.len(), before, others_before: others, ..Self::default() }
    }

    /// Checks descriptors that were opened since their last check, and again sockets that may have got a peer.
    pub(super) fn look(&mut self, now: &[TracedDescriptor], moment: Moment) {
        let may_read = moment != Moment::Between || self.tables_bytes <= TABLES_BYTES_FEW;
        let mut sockets = Sockets { may_read, ..Sockets::default() };
        self.look_by(now, moment, &mut |key| look_at(key, &mut sockets));
        if !sockets.by_namespace.is_empty() {
            self.tables_bytes = sockets.bytes;
            self.are_tables_cut |= sockets.are_cut;
        }
    }

    /// The same with a function that returns a descriptor's identity, or `None` if it cannot be known now.
    fn look_by(
        &mut self,
        now: &[TracedDescriptor],
        moment: Moment,
        look_at: &mut dyn FnMut(Key) -> Option<What>,
    ) {
        self.seen = now.len();
        self.seconds += u64::from(moment == Moment::Second);
        for it in now.iter().filter(|it| !it.is_below()) {
            let seen = self.known.get(&key(it)).filter(|seen| seen.closes == it.closes);
            let second = match seen {
                Some(seen) if !self.may_have_changed(seen, moment) => continue,
                Some(seen) => seen.second,
                None => self.seconds,
            };
            if let Some(what) = look_at(key(it)) {
                self.known.insert(key(it), Seen { closes: it.closes, what, second });
            }
        }
    }

    /// Whether an open descriptor must be checked again. That happens after 1, 2, 4 seconds and so on, because most
    /// servers that receive datagrams never have a peer.
    fn may_have_changed(&self, seen: &Seen, moment: Moment) -> bool {
        let is_time = match moment {
            Moment::Between => false,
            Moment::Second => self.seconds.saturating_sub(seen.second).is_power_of_two(),
            Moment::End => true,
        };
        is_time && seen.what.may_be_known_better()
    }

    /// Whether checking them is cheap.
    pub(super) fn are_few(&self) -> bool {
        self.seen <= FEW
    }

    /// The amounts moved in the window.
    pub(super) fn table(
        &self,
        (now, others): &(Vec<TracedDescriptor>, TracedDescriptor),
        is_open: &dyn Fn(Key) -> bool,
    ) -> DescriptorTable {
        let since = |it: &TracedDescriptor| {
            it.since(self.before.get(&key(it)).unwrap_or(&TracedDescriptor::default()))
        };
        let row = |it: &TracedDescriptor| {
            let moved = since(it);
            moved.is_used().then(|| self.row(it, &moved, is_open(key(it))))
        };
        let mut rows: Vec<DescriptorFigures> = now.iter().filter_map(row).collect();
        rows.sort_by_key(|row| {
            let bytes = row.read.bytes.saturating_add(row.written.bytes);
            let calls = row.read.calls.saturating_add(row.written.calls);
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
        DescriptorTable { rows, others: rest, are_sockets_cut: self.are_tables_cut }
    }

    /// The row of a descriptor: its current state, and the amounts moved in the window.
    fn row(&self, now: &TracedDescriptor, moved: &TracedDescriptor, is_open: bool) -> DescriptorFigures {
        let seen = self.known.get(&key(now));
        let what = seen.map(|seen| seen.what.clone()).unwrap_or_default();
        // /proc has nothing about a process without a number here: the last user of the descriptor is assumed to be
        // open.
        let is_open = is_open || now.is_below() && now.is_in_use;
        // The last user may have ended with its process, which closes nothing explicitly.
        let was_seen = seen.is_some_and(|seen| seen.closes == now.closes);
        let has_another = is_open || now.is_in_use || was_seen;
        let users = moved.users_ended.saturating_add(u64::from(has_another)).max(1);
        let state = match users {
            1 if is_open => DescriptorMark::Open,
            1 => DescriptorMark::Gone,
            _ => DescriptorMark::Reused,
        };
        DescriptorFigures {
            pid: if now.is_below() { OUTSIDE } else { now.pid },
            descriptor: now.descriptor,
            kind: what.kind,
            name: what.name,
            local: what.local,
            state,
            users,
            read: transfers(&moved.read),
            written: transfers(&moved.written),
        }
    }
}

fn transfers(it: &TracedTransfers) -> Transfers {
    let used = it.buckets.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    Transfers { calls: it.calls, failed: it.failed, bytes: it.bytes, sizes: it.buckets[..used].to_vec() }
}

/// Whether a process has a descriptor with this number.
pub(super) fn is_open((pid, descriptor): Key) -> bool {
    fs::symlink_metadata(format!("/proc/{pid}/fd/{descriptor}")).is_ok()
}

/// `None` for a descriptor that is gone, and for a socket whose table must not be read now.
fn look_at((pid, descriptor): Key, sockets: &mut Sockets) -> Option<What> {
    let link = fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
    let link = link.to_string_lossy();
    match sockets::inode_of(&link) {
        None => Some(without_socket(&link)),
        Some(_) if !sockets.may_read => None,
        Some(inode) => Some(sockets.find(pid, inode).unwrap_or_else(|| What {
            kind: DescriptorKind::Socket,
            name: Some(link.into_owned()),
            local: None,
        })),
    }
}

/// The identity from the link: a path, or the kernel's description.
fn without_socket(link: &str) -> What {
    let kind = match link {
        _ if link.starts_with('/') => DescriptorKind::File,
        _ if link.starts_with("pipe:") => DescriptorKind::Pipe,
        _ => DescriptorKind::Other,
    };
    What { kind, name: Some(link.to_owned()), local: None }
}

impl What {
    /// A socket without a peer at its check may be connected later. One that was in no table may have been missed: a
    /// walk through a kernel table skips entries while others are removed.
    fn may_be_known_better(&self) -> bool {
        let is_without_peer =
            self.name.is_none() && matches!(self.kind, DescriptorKind::Tcp | DescriptorKind::Udp);
        is_without_peer || self.kind == DescriptorKind::Socket
    }
}

/// Sockets by inode, for each network namespace that was needed.
#[derive(Default)]
struct Sockets {
    may_read: bool,
    by_namespace: HashMap<PathBuf, HashMap<u64, What>>,
    /// Total length of the tables read.
    bytes: usize,
    /// Whether one of them exceeded the read limit.
    are_cut: bool,
}

impl Sockets {
    fn find(&mut self, pid: u32, inode: u64) -> Option<What> {
        let namespace = fs::read_link(format!("/proc/{pid}/ns/net")).unwrap_or_default();
        if let Some(known) = self.by_namespace.get(&namespace) {
            return known.get(&inode).cloned();
        }
        let found = self.read(pid);
        let what = found.get(&inode).cloned();
        self.by_namespace.insert(namespace, found);
        what
    }

    fn read(&mut self, pid: u32) -> HashMap<u64, What> {
        let mut read = |table: &str| {
            let path = format!("/proc/{pid}/net/{table}");
            let (text, is_cut) = files::read_or_cut(path).unwrap_or_default();
            self.bytes += text.len();
            self.are_cut |= is_cut;
            text
        };
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
}

fn inet_socket(line: &str, kind: DescriptorKind) -> Option<(u64, What)> {
    let InetSocket { local, peer, inode, .. } = InetSocket::parse(line)?;
    let name = (peer.port() != 0).then(|| peer.to_string());
    Some((inode, What { kind, name, local: Some(local.to_string()) }))
}

fn unix_socket(line: &str) -> Option<(u64, What)> {
    let (inode, name) = sockets::unix(line)?;
    Some((inode, What { kind: DescriptorKind::Unix, name, local: None }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_named_by_their_peer_and_one_without_may_get_one() {
        let line = "1: 0100007F:1F90 0100007F:8AEE 01 0:0 0:0 0 0 0 4712 1 0";
        let (inode, what) = inet_socket(line, DescriptorKind::Tcp).expect("a socket");
        assert_eq!((inode, what.local.as_deref()), (4712, Some("127.0.0.1:8080")));
        assert_eq!((what.name.as_deref(), what.may_be_known_better()), (Some("127.0.0.1:35566"), false));
        let listens = line.replace("0100007F:8AEE 01", "00000000:0000 0A");
        let (_, what) = inet_socket(&listens, DescriptorKind::Tcp).expect("a socket");
        assert!(what.name.is_none() && what.may_be_known_better());
        let (_, what) = unix_socket("0: 2 0 1 1 1 77").expect("a socket");
        assert!(what.name.is_none() && !what.may_be_known_better());
    }

    #[test]
    fn a_socket_that_never_gets_a_peer_is_looked_at_ever_more_rarely() {
        const SECONDS: u64 = 3_600;
        let now = [moved(3, 0, 9)];
        let mut files = Files::default();
        let mut looks = 0;
        let alone = || What { kind: DescriptorKind::Udp, name: None, local: Some("127.0.0.1:53".to_owned()) };
        for _ in 0..SECONDS {
            for moment in [Moment::Between; 9].into_iter().chain([Moment::Second]) {
                files.look_by(&now, moment, &mut |_| {
                    looks += 1;
                    Some(alone())
                });
            }
        }
        assert_eq!(
            looks,
            1 + u64::from(SECONDS.ilog2()) + 1,
            "at first, and after 1, 2, 4 seconds and so on"
        );
        // At the end it is checked once more, and keeps that identity.
        let peer = || What { name: Some("127.0.0.1:99".to_owned()), ..alone() };
        files.look_by(&now, Moment::End, &mut |_| Some(peer()));
        files.look_by(&now, Moment::End, &mut |_| panic!("it has a peer"));
        assert_eq!(files.known[&(7, 3)].what, peer());
    }

    #[test]
    fn what_is_not_to_be_known_now_is_asked_for_at_the_next_look_and_a_new_user_is_another_one() {
        let mut files = Files::default();
        let zero = || Some(without_socket("/dev/zero"));
        files.look_by(&[moved(3, 0, 9)], Moment::Between, &mut |_| None);
        assert!(files.known.is_empty());
        files.look_by(&[moved(3, 0, 9)], Moment::Between, &mut |_| zero());
        files.look_by(&[moved(3, 0, 9)], Moment::Second, &mut |_| panic!("it is the same"));
        files.look_by(&[moved(3, 1, 9)], Moment::Between, &mut |_| Some(without_socket("pipe:[7]")));
        assert_eq!(files.known[&(7, 3)].what.kind, DescriptorKind::Pipe);
    }

    #[test]
    fn a_table_of_sockets_that_was_cut_is_told() {
        let files = Files { are_tables_cut: true, ..Files::default() };
        let nothing = (Vec::new(), TracedDescriptor::default());
        assert!(files.table(&nothing, &|_| true).are_sockets_cut);
        assert!(!Files::default().table(&nothing, &|_| true).are_sockets_cut);
    }

    #[test]
    fn the_last_user_counts_though_it_ended_with_its_process_and_those_that_moved_nothing_do_not() {
        // One moved something and was closed; the next one moved something too, and is still open.
        let ended = TracedDescriptor { users_ended: 1, is_in_use: true, ..moved(3, 1, 50) };
        // That number was closed repeatedly, and only one user moved anything.
        let one = TracedDescriptor { users_ended: 0, is_in_use: true, ..moved(4, 16, 50) };
        // Opened after the last close, seen, and gone with its process before it moved anything.
        let seen = TracedDescriptor { users_ended: 1, is_in_use: false, ..moved(5, 1, 50) };
        let mut files = Files::default();
        files.look_by(&[seen], Moment::Second, &mut |_| Some(without_socket("/dev/null")));
        let now = (vec![ended, one, seen], TracedDescriptor::default());
        let told = |is_open: bool| -> Vec<_> {
            let table = files.table(&now, &|_| is_open);
            table.rows.iter().map(|row| (row.descriptor, row.state, row.users)).collect()
        };
        let (reused, gone, open) = (DescriptorMark::Reused, DescriptorMark::Gone, DescriptorMark::Open);
        assert_eq!(told(false), [(3, reused, 2), (4, gone, 1), (5, reused, 2)]);
        assert_eq!(told(true), [(3, reused, 2), (4, open, 1), (5, reused, 2)]);
    }

    #[test]
    fn descriptors_of_processes_without_a_number_here_have_rows_and_are_not_looked_for() {
        let below =
            |pid: u32, bytes| TracedDescriptor { pid: 1 << 31 | pid, is_in_use: true, ..moved(5, 0, bytes) };
        let now = (vec![below(70, 30), below(71, 20)], TracedDescriptor::default());
        let mut files = Files::default();
        files.look_by(&now.0, Moment::End, &mut |_| panic!("another process may have that number"));
        let rows = files.table(&now, &|_| false).rows;
        let told: Vec<_> = rows.iter().map(|row| (row.pid, row.read.bytes, row.state, row.users)).collect();
        assert_eq!(told, [(OUTSIDE, 30, DescriptorMark::Open, 1), (OUTSIDE, 20, DescriptorMark::Open, 1)]);
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
        let (users_ended, is_in_use) = (closes, closes == 0);
        TracedDescriptor { pid: 7, descriptor, closes, users_ended, is_in_use, read, ..Default::default() }
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
        const LOOKS: usize = 100;
        let own = std::process::id();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it has one");
        let stream = std::net::TcpStream::connect(address).expect("it listens");
        let file = fs::File::open("/dev/zero").expect("every Linux has it");
        let of = |descriptor: i32| moved(descriptor.cast_unsigned(), 0, 1);
        let now = [listener.as_raw_fd(), stream.as_raw_fd(), file.as_raw_fd()]
            .map(|it| TracedDescriptor { pid: own, ..of(it) });
        let mut files = Files::default();
        let look = |files: &mut Files| {
            files.look(&now, Moment::End);
            files.table(&(now.to_vec(), TracedDescriptor::default()), &is_open)
        };
        let find = |table: &DescriptorTable, descriptor: i32| {
            let is_it = |row: &&DescriptorFigures| row.descriptor == descriptor.cast_unsigned();
            table.rows.iter().find(is_it).expect("it moved something").clone()
        };
        // A walk through a kernel table can miss a socket while others come and go; the next check finds it.
        let is_known = |table: &DescriptorTable| {
            let sockets = [stream.as_raw_fd(), listener.as_raw_fd()];
            sockets.iter().all(|socket| find(table, *socket).kind == DescriptorKind::Tcp)
        };
        let table = (0..LOOKS).map(|_| look(&mut files)).find(is_known).expect("a look finds both sockets");
        let connected = find(&table, stream.as_raw_fd());
        assert_eq!((connected.kind, connected.name), (DescriptorKind::Tcp, Some(address.to_string())));
        let listening = find(&table, listener.as_raw_fd());
        assert_eq!((listening.name, listening.local), (None, Some(address.to_string())));
        let zero = find(&table, file.as_raw_fd());
        assert_eq!((zero.name.as_deref(), zero.state), (Some("/dev/zero"), DescriptorMark::Open));
    }
}
