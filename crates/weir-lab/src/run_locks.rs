//! Which run folders a session works on, from the kernel's list of locks. Trying a lock would be in the way of a
//! session that begins at that moment; reading the list is in nobody's. The list leaves out locks of processes that the
//! reader's PID namespace does not have: whoever must be sure of one folder asks [`is_locked`].

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    path::Path,
};

use rustix::{
    fs::{AtFlags, CWD, FlockOperation, StatxFlags, flock, statx},
    io::Errno,
};

/// Where the kernel lists locks: `1: FLOCK  ADVISORY  WRITE 4242 fe:00:131074 0 EOF`.
const LOCKS: &str = "/proc/locks";

/// Where the kernel lists mounts: `36 25 0:31 /sub /mnt rw,noatime shared:1 - btrfs /dev/vda2 rw`.
const MOUNTS: &str = "/proc/self/mountinfo";

/// Major and minor number.
type Device = (u32, u32);

/// Files and folders that somebody holds a whole lock on, at the moment they were looked up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Devices of file systems, and inodes.
    inodes: BTreeSet<(Device, u64)>,
    /// The device of the file system that each mount is of. On some, such as btrfs, files are of devices of their own,
    /// which the list of locks does not name.
    mounts: BTreeMap<u64, Device>,
}

impl Held {
    /// Looks now. Where the kernel shows no list, nothing is held as far as can be said.
    pub fn now() -> Self {
        let list = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self::of(&list(LOCKS), &list(MOUNTS))
    }

    /// What the lists say. Lines of other kinds, and those that cannot be read, are left out.
    fn of(locks: &str, mounts: &str) -> Self {
        let inode = |line: &str| {
            let mut words = line.split_whitespace().skip(1);
            if words.next()? != "FLOCK" || words.nth(1)? != "WRITE" {
                return None;
            }
            let mut parts = words.nth(1)?.split(':');
            let mut number = || u32::from_str_radix(parts.next()?, 16).ok();
            let device = (number()?, number()?);
            Some((device, parts.next()?.parse().ok()?))
        };
        let mount = |line: &str| {
            let mut words = line.split(' ');
            let id = words.next()?.parse().ok()?;
            let (major, minor) = words.nth(1)?.split_once(':')?;
            Some((id, (major.parse().ok()?, minor.parse().ok()?)))
        };
        Self {
            inodes: locks.lines().filter_map(inode).collect(),
            mounts: mounts.lines().filter_map(mount).collect(),
        }
    }

    /// Whether a session holds the run folder.
    pub fn holds(&self, folder: &Path) -> bool {
        let wanted = StatxFlags::INO | StatxFlags::MNT_ID;
        let Ok(found) = statx(CWD, folder, AtFlags::empty(), wanted) else { return false };
        let has_mount = found.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        let own = (found.stx_dev_major, found.stx_dev_minor);
        self.holds_inode(own, has_mount.then_some(found.stx_mnt_id), found.stx_ino)
    }

    /// The same of an inode: its own device, the mount it is reached by, and its number.
    fn holds_inode(&self, own: Device, mount: Option<u64>, inode: u64) -> bool {
        let of_mount = mount.and_then(|mount| self.mounts.get(&mount)).copied();
        [Some(own), of_mount].into_iter().flatten().any(|device| self.inodes.contains(&(device, inode)))
    }
}

/// Whether a session holds the run folder, whoever it belongs to, by trying its lock. A session that begins in that
/// moment is kept from it: this is no way to look around.
pub fn is_locked(folder: &Path) -> bool {
    let tried = File::open(folder).map(|folder| flock(&folder, FlockOperation::NonBlockingLockShared));
    matches!(tried, Ok(Err(Errno::WOULDBLOCK)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_locks_are_found_and_other_lines_are_not() {
        let list = "1: FLOCK  ADVISORY  WRITE 4242 fe:01:131074 0 EOF\n\
                    2: POSIX  ADVISORY  WRITE 4243 fe:01:131075 0 EOF\n\
                    3: FLOCK  ADVISORY  READ  4244 fe:01:131076 0 EOF\n\
                    3: -> FLOCK  ADVISORY  WRITE 4245 fe:01:131077 0 EOF\n\
                    4: FLOCK  ADVISORY  WRITE 4246 nonsense 0 EOF\n5:\n";
        assert_eq!(Held::of(list, "").inodes, BTreeSet::from([((0xfe, 1), 131_074)]));
    }

    #[test]
    fn a_folder_of_a_subvolume_is_found_by_the_device_of_its_file_system() {
        let locks = "1: FLOCK  ADVISORY  WRITE 4242 00:1f:257 0 EOF\n";
        let mounts = "36 25 0:31 /sub /mnt rw,noatime shared:1 - btrfs /dev/vda2 rw\n\
                      37 25 254:1 / /var rw - ext4 /dev/vda1 rw\nnonsense\n";
        let held = Held::of(locks, mounts);
        let (subvolume, other) = ((0, 44), (254, 1));
        assert!(held.holds_inode(subvolume, Some(36), 257));
        assert!(!held.holds_inode(subvolume, Some(36), 258) && !held.holds_inode(other, Some(37), 257));
        assert!(!held.holds_inode(subvolume, None, 257), "a kernel that does not tell the mount");
        assert!(held.holds_inode((0, 31), None, 257));
    }

    #[test]
    fn a_folder_is_held_as_long_as_its_lock_is() {
        let folder = std::env::temp_dir().join(format!("weir-held-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder can be made");
        assert!(!Held::now().holds(&folder) && !is_locked(&folder));
        let handle = File::open(&folder).expect("it can be opened");
        flock(&handle, FlockOperation::NonBlockingLockExclusive).expect("nobody else has it");
        assert!(Held::now().holds(&folder) && is_locked(&folder));
        drop(handle);
        assert!(!Held::now().holds(&folder) && !is_locked(&folder), "and trying left nothing behind");
        fs::remove_dir_all(&folder).expect("it can be removed");
        assert!(!Held::now().holds(&folder) && !is_locked(&folder), "one that is gone is nobody's");
    }
}
