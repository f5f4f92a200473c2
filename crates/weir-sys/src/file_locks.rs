//! Whole-file locks (`flock(2)`), as the kernel lists them. Reading the list disturbs no process, whereas trying a
//! lock would. The list omits locks of processes outside the reader's PID namespace.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

/// Where the kernel lists locks: `1: FLOCK  ADVISORY  WRITE 4242 fe:00:131074 0 EOF`.
const LOCKS: &str = "/proc/locks";

/// Where the kernel lists mounts: `36 25 0:31 /sub /mnt rw,noatime shared:1 - btrfs /dev/vda2 rw`.
const MOUNTS: &str = "/proc/self/mountinfo";

/// Asked for at once. The kernel gives at most a page of whole lines: some seventy locks.
const READ_BYTES: usize = 65_536;

/// Readings of a list that is longer than that.
const READINGS: usize = 3;

/// Longest list that is read: enough for a hundred thousand locks.
const LIST_BYTES_MAX: usize = 8 << 20;

/// Major and minor number.
type Device = (u32, u32);

/// Who holds a lock on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// A process that holds it, if visible.
    pub pid: Option<u32>,
    /// Whether the lock is exclusive.
    pub is_exclusive: bool,
}

/// The files that had a whole-file lock when the list was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileLocks {
    /// By the file system's device, and the inode.
    holders: BTreeMap<(Device, u64), Holder>,
    /// The file system's device of each mount. On some file systems, such as btrfs, files have separate devices,
    /// which the list of locks does not name.
    mounts: BTreeMap<u64, Device>,
}

impl FileLocks {
    /// Reads the lists now. If the kernel shows no list, no file counts as locked.
    pub fn now() -> Self {
        let locks = gathered(|| File::open(LOCKS).and_then(listed));
        Self::of(&locks, &fs::read_to_string(MOUNTS).unwrap_or_default())
    }

    /// Parses the lists. Lines of other kinds, and unreadable lines, are skipped.
    fn of(locks: &str, mounts: &str) -> Self {
        let mut holders = BTreeMap::new();
        for (inode, holder) in locks.lines().filter_map(lock) {
            // A shared lock has several lines.
            let known: &mut Holder = holders.entry(inode).or_insert(holder);
            known.pid = known.pid.or(holder.pid);
        }
        Self { holders, mounts: mounts.lines().filter_map(mount).collect() }
    }

    /// The holder of the lock on a file or folder.
    pub fn holder_of(&self, path: &Path) -> Option<Holder> {
        let wanted = StatxFlags::INO | StatxFlags::MNT_ID;
        let found = statx(CWD, path, AtFlags::empty(), wanted).ok()?;
        let has_mount = found.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        let own = (found.stx_dev_major, found.stx_dev_minor);
        self.holder_of_inode(own, has_mount.then_some(found.stx_mnt_id), found.stx_ino)
    }

    /// The holder for an inode: its own device, the mount it is reached by, and its number.
    fn holder_of_inode(&self, own: Device, mount: Option<u64>, inode: u64) -> Option<Holder> {
        let of_mount = mount.and_then(|mount| self.mounts.get(&mount)).copied();
        [Some(own), of_mount]
            .into_iter()
            .flatten()
            .find_map(|device| self.holders.get(&(device, inode)))
            .copied()
    }
}

/// A list of locks, as it was read.
struct List {
    text: String,
    /// It was given at once.
    is_whole: bool,
}

/// Every lock that was held throughout. Between two pieces of a list the kernel counts its lines anew: if a lock above
/// is released meanwhile, the next line is skipped. So a list in pieces is read several times, and a lock counts that
/// is in any of them.
fn gathered(mut read: impl FnMut() -> io::Result<List>) -> String {
    let mut all = String::new();
    for _ in 0..READINGS {
        let Ok(list) = read() else { break };
        all.push_str(&list.text);
        all.push('\n');
        if list.is_whole {
            break;
        }
    }
    all
}

/// Reads a list in as few pieces as the kernel gives.
fn listed(mut list: impl Read) -> io::Result<List> {
    let (mut bytes, mut pieces) = (Vec::new(), 0);
    let mut piece = vec![0; READ_BYTES];
    while bytes.len() < LIST_BYTES_MAX {
        match list.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        pieces += 1;
    }
    Ok(List { text: String::from_utf8_lossy(&bytes).into_owned(), is_whole: pieces <= 1 })
}

/// Parses a line of the list of locks. In a container the process may be 0, which means not visible.
fn lock(line: &str) -> Option<((Device, u64), Holder)> {
    let mut words = line.split_whitespace().skip(1);
    if words.next()? != "FLOCK" {
        return None;
    }
    let is_exclusive = words.nth(1)? == "WRITE";
    let pid = words.next()?.parse().ok().filter(|pid| *pid > 0);
    let mut parts = words.next()?.split(':');
    let mut number = || u32::from_str_radix(parts.next()?, 16).ok();
    let device = (number()?, number()?);
    Some(((device, parts.next()?.parse().ok()?), Holder { pid, is_exclusive }))
}

/// Parses a line of the list of mounts: its number, and the device of its file system.
fn mount(line: &str) -> Option<(u64, Device)> {
    let mut words = line.split(' ');
    let number = words.next()?.parse().ok()?;
    let (major, minor) = words.nth(1)?.split_once(':')?;
    Some((number, (major.parse().ok()?, minor.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicBool, Ordering::Relaxed},
        thread,
    };

    use rustix::fs::{FlockOperation, flock};

    use super::*;

    #[test]
    fn whole_locks_are_found_and_other_lines_are_not() {
        let list = "1: FLOCK  ADVISORY  WRITE 4242 fe:01:131074 0 EOF\n\
                    2: POSIX  ADVISORY  WRITE 4243 fe:01:131075 0 EOF\n\
                    3: -> FLOCK  ADVISORY  WRITE 4245 fe:01:131077 0 EOF\n\
                    4: FLOCK  ADVISORY  WRITE 4246 nonsense 0 EOF\n5:\nrubbish\n\
                    6: FLOCK  ADVISORY  READ  0 fe:01:131078 0 EOF\n\
                    7: FLOCK  ADVISORY  READ  4247 fe:01:131078 0 EOF\n";
        let locks = FileLocks::of(list, "");
        let holder = |inode: u64| locks.holder_of_inode((0xfe, 1), None, inode);
        assert_eq!(holder(131_074), Some(Holder { pid: Some(4242), is_exclusive: true }));
        assert_eq!(holder(131_078), Some(Holder { pid: Some(4247), is_exclusive: false }), "who can be seen");
        assert_eq!(locks.holders.len(), 2);
        assert_eq!(locks.holder_of_inode((0xfe, 0), None, 131_074), None, "another disk");
        let unseen = FileLocks::of("1: FLOCK  ADVISORY  WRITE 0 fe:00:5 0 EOF\n", "");
        let nobody = Some(Holder { pid: None, is_exclusive: true });
        assert_eq!(unseen.holder_of_inode((0xfe, 0), None, 5), nobody);
    }

    #[test]
    fn a_file_of_a_subvolume_is_found_by_the_device_of_its_file_system() {
        let locks = "1: FLOCK  ADVISORY  WRITE 4242 00:1f:257 0 EOF\n";
        let mounts = "36 25 0:31 /sub /mnt rw,noatime shared:1 - btrfs /dev/vda2 rw\n\
                      37 25 254:1 / /var rw - ext4 /dev/vda1 rw\nnonsense\n";
        let locks = FileLocks::of(locks, mounts);
        let pid = |own: Device, mount: Option<u64>, inode: u64| {
            locks.holder_of_inode(own, mount, inode).and_then(|holder| holder.pid)
        };
        let (subvolume, other) = ((0, 44), (254, 1));
        assert_eq!(pid(subvolume, Some(36), 257), Some(4242));
        assert_eq!((pid(subvolume, Some(36), 258), pid(other, Some(37), 257)), (None, None));
        assert_eq!(pid(subvolume, None, 257), None, "a kernel that does not tell the mount");
        assert_eq!(pid((0, 31), None, 257), Some(4242));
    }

    #[test]
    fn a_list_in_pieces_is_read_again_and_one_that_came_at_once_is_not() {
        let lines =
            ["1: FLOCK  ADVISORY  WRITE 1 fe:01:1 0 EOF", "1: FLOCK  ADVISORY  WRITE 2 fe:01:2 0 EOF"];
        let read = |is_whole: bool| {
            let mut readings = 0;
            let text = gathered(|| {
                readings += 1;
                Ok(List { text: lines[readings % 2].to_owned(), is_whole })
            });
            (FileLocks::of(&text, "").holders.len(), readings)
        };
        assert_eq!((read(false), read(true)), ((2, READINGS), (1, 1)));
        let refused = gathered(|| Err(io::ErrorKind::PermissionDenied.into()));
        assert_eq!(refused, "");
        let in_two = listed(b"1: a\n".chain(&b"2: b\n"[..])).expect("it can be read");
        assert_eq!((in_two.text.as_str(), in_two.is_whole), ("1: a\n2: b\n", false));
        let endless = listed(io::repeat(b'x')).expect("it can be read");
        assert_eq!(endless.text.len(), LIST_BYTES_MAX);
    }

    #[test]
    fn a_lock_is_seen_whatever_others_release_meanwhile() {
        const LOOKS: usize = 6_000;
        let folder = std::env::temp_dir().join(format!("weir-locks-beside-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder can be made");
        let held = File::open(&folder).expect("it can be opened");
        flock(&held, FlockOperation::NonBlockingLockExclusive).expect("nobody else has it");
        let is_over = AtomicBool::new(false);
        let churn = |name: &str| {
            let other = File::create(folder.join(name)).expect("it can be made");
            while !is_over.load(Relaxed) {
                flock(&other, FlockOperation::LockExclusive).expect("nobody else has it");
                flock(&other, FlockOperation::Unlock).expect("it is held");
            }
        };
        let missed = thread::scope(|scope| {
            for name in ["a", "b"] {
                scope.spawn(move || churn(name));
            }
            let missed = (0..LOOKS).filter(|_| FileLocks::now().holder_of(&folder).is_none()).count();
            is_over.store(true, Relaxed);
            missed
        });
        fs::remove_dir_all(&folder).expect("it can be removed");
        assert_eq!(missed, 0, "of {LOOKS} looks");
    }

    #[test]
    fn a_file_has_a_holder_as_long_as_its_lock_is_held() {
        let path = std::env::temp_dir().join(format!("weir-locks-{}", std::process::id()));
        let file = File::create(&path).expect("it can be made");
        assert_eq!(FileLocks::now().holder_of(&path), None);
        flock(&file, FlockOperation::NonBlockingLockShared).expect("nobody else has it");
        let shared = FileLocks::now().holder_of(&path).expect("it is held");
        flock(&file, FlockOperation::NonBlockingLockExclusive).expect("nobody else has it");
        let alone = FileLocks::now().holder_of(&path).expect("it is held");
        assert_eq!((shared.is_exclusive, alone.is_exclusive), (false, true));
        // Another test may have just forked: its child holds the open file until it runs a program.
        flock(&file, FlockOperation::Unlock).expect("it is held");
        assert_eq!(FileLocks::now().holder_of(&path), None);
        fs::remove_file(&path).expect("it can be removed");
        assert_eq!(FileLocks::now().holder_of(&path), None, "one that is gone is nobody's");
    }
}
