//! Which run folders a session works on, from the kernel's list of locks. Trying a lock would be in the way of a
//! session that begins at that moment; reading the list is in nobody's.

use std::{collections::BTreeSet, fs, os::unix::fs::MetadataExt, path::Path};

use rustix::fs::{major, minor};

/// Where the kernel lists locks: `1: FLOCK  ADVISORY  WRITE 4242 fe:00:131074 0 EOF`.
const LOCKS: &str = "/proc/locks";

/// Files and folders that somebody holds a whole lock on, at the moment they were looked up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Major and minor number of the device, and the inode.
    inodes: BTreeSet<(u32, u32, u64)>,
}

impl Held {
    /// Looks now. Where the kernel shows no list, nothing is held as far as can be said.
    pub fn now() -> Self {
        Self::of(&fs::read_to_string(LOCKS).unwrap_or_default())
    }

    /// What a list says. Lines of other kinds, and those that cannot be read, are left out.
    fn of(list: &str) -> Self {
        let inode = |line: &str| {
            let mut words = line.split_whitespace().skip(1);
            if words.next()? != "FLOCK" || words.nth(1)? != "WRITE" {
                return None;
            }
            let mut parts = words.nth(1)?.split(':');
            let mut number = || u32::from_str_radix(parts.next()?, 16).ok();
            Some((number()?, number()?, parts.next()?.parse().ok()?))
        };
        Self { inodes: list.lines().filter_map(inode).collect() }
    }

    /// Whether a session holds the run folder.
    pub fn holds(&self, folder: &Path) -> bool {
        fs::metadata(folder)
            .is_ok_and(|found| self.inodes.contains(&(major(found.dev()), minor(found.dev()), found.ino())))
    }
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
                    3: FLOCK  ADVISORY  READ  4244 fe:01:131076 0 EOF\n\
                    3: -> FLOCK  ADVISORY  WRITE 4245 fe:01:131077 0 EOF\n\
                    4: FLOCK  ADVISORY  WRITE 4246 nonsense 0 EOF\n5:\n";
        assert_eq!(Held::of(list).inodes, BTreeSet::from([(0xfe, 1, 131_074)]));
    }

    #[test]
    fn a_folder_is_held_as_long_as_its_lock_is() {
        let folder = std::env::temp_dir().join(format!("weir-held-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder can be made");
        assert!(!Held::now().holds(&folder));
        let handle = File::open(&folder).expect("it can be opened");
        flock(&handle, FlockOperation::NonBlockingLockExclusive).expect("nobody else has it");
        assert!(Held::now().holds(&folder));
        drop(handle);
        assert!(!Held::now().holds(&folder));
        fs::remove_dir_all(&folder).expect("it can be removed");
    }
}
