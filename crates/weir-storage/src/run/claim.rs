//! A file belongs to one run at a time, unless all say that they share it: two of them would spoil each other's blocks
//! and figures. The claim is an
//! advisory lock (`flock(2)`) that ends with the process, however it ends. Programs that do not ask are not kept out.

use std::{
    fs::{self, File},
    os::unix::fs::MetadataExt,
    path::Path,
};

use rustix::{
    fs::{FlockOperation, flock, major, minor},
    io::Errno,
};

/// A file that no other run may use while this is held, or none that does not share it.
#[derive(Debug)]
pub(super) struct Claim {
    _held: File,
}

/// What claiming found.
#[derive(Debug)]
pub(super) enum Claiming {
    /// It is ours now.
    Held(Claim),
    /// Another process has it; who that is, as far as it can be seen.
    Taken(String),
    /// There is no such file, or its file system has no locks (some network file systems).
    Impossible,
}

/// Claims a file that is there.
pub(super) fn claim(path: &Path, is_shared: bool) -> Claiming {
    let Ok(file) = File::open(path) else { return Claiming::Impossible };
    let alone = FlockOperation::NonBlockingLockExclusive;
    match flock(&file, if is_shared { FlockOperation::NonBlockingLockShared } else { alone }) {
        Ok(()) => Claiming::Held(Claim { _held: file }),
        Err(Errno::WOULDBLOCK) => Claiming::Taken(holder(&file)),
        Err(_) => Claiming::Impossible,
    }
}

/// Who holds the lock of a file: `process 4711 (weir)`.
fn holder(file: &File) -> String {
    let unknown = || "another process".to_owned();
    let (Ok(metadata), Ok(locks)) = (file.metadata(), fs::read_to_string("/proc/locks")) else {
        return unknown();
    };
    let Some(pid) = pid_of_lock(&locks, metadata.dev(), metadata.ino()) else { return unknown() };
    match fs::read_to_string(format!("/proc/{pid}/comm")) {
        Ok(name) => format!("process {pid} ({})", name.trim()),
        Err(_) => format!("process {pid}"),
    }
}

/// The process that holds the `flock` of this file, in the words of `/proc/locks`:
/// `2: FLOCK  ADVISORY  WRITE 4711 fe:00:131076 0 EOF`. In a container the number may be 0: nobody that can be seen.
fn pid_of_lock(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let file = format!("{:02x}:{:02x}:{inode}", major(device), minor(device));
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [_, "FLOCK", _, _, pid, place, ..] if place == file => pid.parse().ok().filter(|pid| *pid > 0),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_claimed_once_and_the_holder_is_named() {
        let path = std::env::temp_dir().join(format!("weir-claim-{}", std::process::id()));
        fs::write(&path, b"x").expect("written");
        let first = claim(&path, false);
        let second = claim(&path, true);
        drop(first);
        let third = claim(&path, true);
        assert!(matches!(claim(&path, true), Claiming::Held(_)), "all of them share it");
        assert!(matches!(claim(&path, false), Claiming::Taken(_)), "this one does not");
        fs::remove_file(&path).expect("removed");
        assert!(matches!(third, Claiming::Held(_)), "{third:?}");
        let Claiming::Taken(holder) = second else { panic!("{second:?}") };
        let own = format!("process {} (", std::process::id());
        assert!(holder.starts_with(&own) || holder == "another process", "{holder}");
        assert!(matches!(claim(&path, false), Claiming::Impossible));
    }

    #[test]
    fn locks_of_other_kinds_and_files_are_not_taken_for_it() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 fe:00:131076 0 EOF\n2: FLOCK  ADVISORY  WRITE 8 fe:01:131076 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 9 fe:00:131076 0 EOF\n4: FLOCK  ADVISORY  WRITE 10 fe:00:131076 0 EOF\n\
                     5: FLOCK  ADVISORY  WRITE 0 fe:00:5 0 EOF\n";
        let device = rustix::fs::makedev(0xfe, 0);
        assert_eq!(pid_of_lock(locks, device, 131_076), Some(10));
        assert_eq!(pid_of_lock(locks, device, 5), None);
        assert_eq!(pid_of_lock(locks, device, 6), None);
        assert_eq!(pid_of_lock("rubbish\n", device, 6), None);
    }
}
