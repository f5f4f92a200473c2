//! Whole-file locks (`flock(2)`), as the kernel lists them. Reading the list disturbs no process, whereas trying a
//! lock would. The list omits locks of processes outside the reader's PID namespace.

use std::{collections::BTreeMap, fs, path::Path};

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

/// Where the kernel lists locks: `1: FLOCK  ADVISORY  WRITE 4242 fe:00:131074 0 EOF`.
const LOCKS: &str = "/proc/locks";

/// Where the kernel lists mounts: `36 25 0:31 /sub /mnt rw,noatime shared:1 - btrfs /dev/vda2 rw`.
const MOUNTS: &str = "/proc/self/mountinfo";

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
        let list = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self::of(&list(LOCKS), &list(MOUNTS))
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
    use std::fs::File;

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
