//! A file belongs to one run at a time, unless all runs agree to share it: two runs would corrupt each other's blocks
//! and figures. The claim is an advisory lock (`flock(2)`) that ends with the process, however it ends. Programs that
//! do not check the lock are not kept out.

use std::{
    fs::{self, File},
    path::Path,
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use weir_sys::file_locks::FileLocks;

/// A file that no other run may use while this exists, or only runs that share it.
#[derive(Debug)]
pub(super) struct Claim {
    _held: File,
}

/// Result of a claim.
#[derive(Debug)]
pub(super) enum Claiming {
    /// The claim is held.
    Held(Claim),
    /// Another process holds it; describes that process as far as it is visible.
    Taken(String),
    /// There is no such file, or its file system has no locks (some network file systems).
    Impossible,
}

/// Claims an existing file.
pub(super) fn claim(path: &Path, is_shared: bool) -> Claiming {
    let Ok(file) = File::open(path) else { return Claiming::Impossible };
    let alone = FlockOperation::NonBlockingLockExclusive;
    match flock(&file, if is_shared { FlockOperation::NonBlockingLockShared } else { alone }) {
        Ok(()) => Claiming::Held(Claim { _held: file }),
        Err(Errno::WOULDBLOCK) => Claiming::Taken(holder(path)),
        Err(_) => Claiming::Impossible,
    }
}

/// The holder of a file's lock: `process 4711 (weir)`.
fn holder(path: &Path) -> String {
    let holder = FileLocks::now().holder_of(path);
    let Some(pid) = holder.and_then(|holder| holder.pid) else { return "another process".to_owned() };
    match fs::read_to_string(format!("/proc/{pid}/comm")) {
        Ok(name) => format!("process {pid} ({})", name.trim()),
        Err(_) => format!("process {pid}"),
    }
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
}
