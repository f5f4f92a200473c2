//! Unix sockets with a path in the file system: the socket of a dead server is replaced, every other file is left
//! alone.
//!
//! A socket that refuses connections is dead, or is not listening yet. Between this check and the removal of its path
//! another server may bind the path again. So servers lock the folder (`flock(2)`) while they check, remove, bind and
//! listen: no two servers that hold the lock do so at the same time. The lock leaves no file behind, and ends with
//! its process.
//!
//! Any process that may read a folder can lock it and keep it locked, and a process that may not read it cannot lock
//! it at all. A server must start in either case: without the lock it continues, checks twice, and removes the path
//! only if it is still the same file. This leaves a race between the last check and the removal: a server that binds
//! the path in between loses it.

use std::{
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{FileTypeExt, MetadataExt},
    },
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rustix::{
    fs::{FlockOperation, Mode, OFlags},
    io::Errno,
};
use socket2::{Domain, SockAddr, SockRef, Socket, Type};

/// How often to try to lock a folder that is locked, and the pause between tries. Another server holds it for
/// microseconds.
#[derive(Clone, Copy, Debug)]
struct LockRetry {
    tries: u32,
    pause: Duration,
}

/// A second in all.
const AT_START: LockRetry = LockRetry { tries: 100, pause: Duration::from_millis(10) };

/// A server that ends should not wait long.
const AT_END: LockRetry = LockRetry { tries: 10, pause: Duration::from_millis(1) };

/// Pause between two checks without a lock. A server binds and listens within microseconds.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// Why a folder is not locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotLocked {
    /// Another process holds the lock.
    Taken,
    /// It cannot be read, or its file system has no locks.
    Impossible,
}

/// Binds a socket to a path and listens. A socket without a listener is replaced.
///
/// # Errors
/// `AddrInUse` if another server listens, `AlreadyExists` if the path is not a socket, and errors of `bind` and
/// `listen`.
pub fn listen(socket: &impl AsFd, path: &Path, backlog: i32) -> io::Result<()> {
    let socket = SockRef::from(socket);
    let name = SockAddr::unix(path)?;
    let lock = lock_folder(path, AT_START);
    if let Err(error) = socket.bind(&name) {
        if error.kind() != io::ErrorKind::AddrInUse {
            return Err(error);
        }
        let found = file_of(path);
        if !is_dead(path, &name)? || lock.is_err() && !is_still_dead(path, &name)? {
            return Err(error);
        }
        remove_unchanged(path, found)?;
        socket.bind(&name)?;
    }
    socket.listen(backlog)
}

/// Locks the folder of a path for as long as the descriptor is open.
fn lock_folder(path: &Path, retry: LockRetry) -> Result<OwnedFd, NotLocked> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder, flags, Mode::empty()).map_err(|_| NotLocked::Impossible)?;
    let mut tries = 1;
    loop {
        match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(folder),
            Err(Errno::WOULDBLOCK | Errno::INTR) if tries < retry.tries => {
                tries += 1;
                std::thread::sleep(retry.pause);
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => return Err(NotLocked::Taken),
            Err(_) => return Err(NotLocked::Impossible),
        }
    }
}

/// The second check of a path without the lock: a server that had bound it but was not listening yet listens by now.
fn is_still_dead(path: &Path, name: &SockAddr) -> io::Result<bool> {
    std::thread::sleep(LOOK_PAUSE);
    is_dead(path, name)
}

/// Whether a path is a socket without a listener.
fn is_dead(path: &Path, name: &SockAddr) -> io::Result<bool> {
    match std::fs::symlink_metadata(path) {
        Ok(file) if file.file_type().is_socket() => {}
        Ok(_) => {
            let reason = "the path is taken by something that is no socket; choose another path or remove it";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, reason));
        }
        // Its server has removed it meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    }
    let probe = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // A listener with a full queue returns EAGAIN; in blocking mode connecting would wait.
    probe.set_nonblocking(true)?;
    Ok(matches!(probe.connect(name), Err(error) if error.kind() == io::ErrorKind::ConnectionRefused))
}

/// Removes a path if it is the file that was found there. It is no error if the path is already gone.
fn remove_unchanged(path: &Path, found: Option<FileId>) -> io::Result<()> {
    if file_of(path) != found {
        return Ok(());
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// A Unix socket's path in the file system, and the identity of its file when the socket was bound: another server
/// may have bound the path again since.
#[derive(Clone, Debug)]
pub struct BoundPath {
    path: PathBuf,
    file: FileId,
}

/// Device, inode number, and creation time if the file system has it: inode numbers are reused.
type FileId = (u64, u64, Option<SystemTime>);

impl BoundPath {
    /// Remembers the identity of the file at a path. `None` if it is already gone.
    pub fn of(path: &Path) -> Option<Self> {
        Some(Self { path: path.to_path_buf(), file: file_of(path)? })
    }

    /// Removes the path, unless it is another file by now, or another process keeps its folder locked. A dead path
    /// does no harm: the next server replaces it.
    pub fn remove(&self) {
        // With the lock no server can replace the path between the check and the removal. If the folder cannot be
        // locked, the race described at the head of this file remains.
        let lock = lock_folder(&self.path, AT_END);
        if !matches!(lock, Err(NotLocked::Taken)) {
            // A path that cannot be removed stays.
            let _ = remove_unchanged(&self.path, Some(self.file));
        }
    }
}

fn file_of(path: &Path) -> Option<FileId> {
    let file = std::fs::symlink_metadata(path).ok()?;
    Some((file.dev(), file.ino(), file.created().ok()))
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::{
            fs::PermissionsExt,
            net::{UnixListener, UnixStream},
        },
        sync::Barrier,
        thread,
    };

    use super::*;

    /// A folder that is removed at the end of the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("weir-path-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).expect("a folder can be made");
            Self(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn start(path: &Path) -> io::Result<Socket> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        listen(&socket, path, 8)?;
        Ok(socket)
    }

    #[test]
    fn a_listener_with_a_full_queue_of_connections_lives() {
        let folder = Folder::new("full");
        let path = folder.0.join("server.sock");
        let name = SockAddr::unix(&path).expect("it is short");
        let busy = Socket::new(Domain::UNIX, Type::STREAM, None).expect("a socket");
        busy.bind(&name).expect("the path is free");
        busy.listen(0).expect("it can listen");
        let mut waiting = Vec::new();
        loop {
            let client = Socket::new(Domain::UNIX, Type::STREAM, None).expect("a socket");
            client.set_nonblocking(true).expect("a socket can be made non-blocking");
            let Err(error) = client.connect(&name) else {
                waiting.push(client);
                continue;
            };
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "the queue is full");
            break;
        }
        let error = start(&path).expect_err("somebody listens");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(path.exists());
    }

    #[test]
    fn of_many_that_start_at_once_one_listens_and_the_path_is_its_own() {
        const STARTERS: usize = 4;
        let folder = Folder::new("race");
        let path = folder.0.join("server.sock");
        for round in 0..300 {
            if round % 2 == 0 {
                // Left by a server that was killed.
                drop(UnixListener::bind(&path).expect("the path is free"));
            }
            let barrier = Barrier::new(STARTERS);
            let started: Vec<io::Result<Socket>> = thread::scope(|scope| {
                let starters = [(); STARTERS].map(|()| {
                    scope.spawn(|| {
                        barrier.wait();
                        start(&path)
                    })
                });
                starters.map(|starter| starter.join().expect("it does not panic")).into()
            });
            let listening = started.iter().filter(|outcome| outcome.is_ok()).count();
            assert_eq!(listening, 1, "round {round}: {started:?}");
            UnixStream::connect(&path).unwrap_or_else(|error| panic!("round {round}: {error}"));
            drop(started);
            fs::remove_file(&path).expect("it is there");
        }
    }

    #[test]
    fn in_a_folder_that_somebody_keeps_locked_a_dead_path_is_replaced_and_one_that_lives_is_not() {
        let folder = Folder::new("locked");
        let path = folder.0.join("server.sock");
        let _lock = lock_folder(&path, AT_START).expect("nobody has it");
        drop(UnixListener::bind(&path).expect("the path is free"));
        let _server = start(&path).expect("a dead path is replaced");
        UnixStream::connect(&path).expect("it listens");
        let error = start(&path).expect_err("somebody listens");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        UnixStream::connect(&path).expect("it still listens");
    }

    #[test]
    fn in_a_folder_that_cannot_be_read_a_dead_path_is_replaced_and_removed_in_the_end() {
        let folder = Folder::new("unreadable");
        let path = folder.0.join("server.sock");
        drop(UnixListener::bind(&path).expect("the path is free"));
        let mode = |mode| fs::set_permissions(&folder.0, fs::Permissions::from_mode(mode));
        mode(0o300).expect("it is ours");
        let replaced = start(&path);
        BoundPath::of(&path).expect("it is there").remove();
        mode(0o700).expect("it is ours");
        replaced.expect("a dead path is replaced");
        assert!(!path.exists());
    }

    #[test]
    fn a_server_that_ends_waits_for_no_lock_and_leaves_its_path() {
        let folder = Folder::new("ends");
        let path = folder.0.join("server.sock");
        let server = start(&path).expect("the path is free");
        let bound = BoundPath::of(&path).expect("it is there");
        drop(server);
        let lock = lock_folder(&path, AT_START).expect("nobody has it");
        bound.remove();
        assert!(path.exists());
        drop(lock);
        bound.remove();
        assert!(!path.exists());
    }

    #[test]
    fn a_path_that_was_bound_anew_since_it_was_found_dead_is_not_removed() {
        let folder = Folder::new("found");
        let path = folder.0.join("server.sock");
        drop(UnixListener::bind(&path).expect("the path is free"));
        let found = file_of(&path);
        fs::remove_file(&path).expect("it is there");
        let _other = start(&path).expect("the path is free");
        remove_unchanged(&path, found).expect("nothing goes wrong");
        UnixStream::connect(&path).expect("it still listens");
    }

    #[test]
    fn a_path_that_was_bound_anew_is_not_removed_with_the_old_one() {
        let folder = Folder::new("anew");
        let path = folder.0.join("server.sock");
        let old = start(&path).expect("the path is free");
        let bound = BoundPath::of(&path).expect("it is there");
        drop(old);
        // The file system may reuse the inode number of the old one.
        let new = start(&path).expect("a dead path is replaced");
        bound.remove();
        UnixStream::connect(&path).expect("the new one is still there");
        BoundPath::of(&path).expect("it is there").remove();
        assert!(!path.exists());
        drop(new);
    }
}
