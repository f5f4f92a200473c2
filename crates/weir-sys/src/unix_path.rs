//! Unix sockets with a path in the file system: one that a dead server left is replaced, everything else is left alone.
//!
//! A socket that refuses connections is dead, or not listening yet. Between that look and the removal of its path
//! another server may bind the path anew. So servers lock the folder (`flock(2)`) while they look, remove, bind and
//! listen: two of them never do so at a time, and a path is removed by nobody else. The lock leaves no file behind, and
//! ends with the process that has it.

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

/// How often a folder that somebody has locked is tried again. Another server has it for microseconds.
const LOCK_TRIES_MAX: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Binds a socket to a path and listens. A socket that nobody listens on any more is replaced.
///
/// # Errors
/// `AddrInUse` where somebody listens, `AlreadyExists` where something that is no socket has the path, `ResourceBusy`
/// where a dead socket cannot be replaced because its folder cannot be locked, and those of `bind` and `listen`.
pub fn listen(socket: &impl AsFd, path: &Path, backlog: i32) -> io::Result<()> {
    let socket = SockRef::from(socket);
    let name = SockAddr::unix(path)?;
    let folder = lock_folder(path);
    if let Err(error) = socket.bind(&name) {
        if error.kind() != io::ErrorKind::AddrInUse || !is_dead(path, &name)? {
            return Err(error);
        }
        if folder.is_none() {
            let reason = "a server that has ended left this path, and its folder cannot be locked to replace it: \
                          remove the path, or choose another one";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, reason));
        }
        remove(path)?;
        socket.bind(&name)?;
    }
    socket.listen(backlog)
}

/// Locks the folder of a path as long as the descriptor is open. `None` when somebody keeps it locked, and where
/// folders cannot be read or locked: then nothing may be removed there.
fn lock_folder(path: &Path) -> Option<OwnedFd> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder, flags, Mode::empty()).ok()?;
    for _ in 0..LOCK_TRIES_MAX {
        match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(folder),
            Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(LOCK_PAUSE),
            Err(_) => return None,
        }
    }
    None
}

/// Whether a path is a socket that nobody listens on.
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
    // Whoever listens and has a full queue of connections says EAGAIN, and would otherwise keep us waiting.
    probe.set_nonblocking(true)?;
    Ok(matches!(probe.connect(name), Err(error) if error.kind() == io::ErrorKind::ConnectionRefused))
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// A Unix socket's path in the file system, and which file it was when the socket was bound: another server may have
/// bound the path anew since.
#[derive(Clone, Debug)]
pub struct BoundPath {
    path: PathBuf,
    file: FileId,
}

/// Device, number, and when it was made where the file system says so: numbers are given out again.
type FileId = (u64, u64, Option<SystemTime>);

impl BoundPath {
    /// Remembers which file a path is now. `None` when it is gone already.
    pub fn of(path: &Path) -> Option<Self> {
        Some(Self { path: path.to_path_buf(), file: file_of(path)? })
    }

    /// Removes the path, unless it is another file by now.
    pub fn remove(&self) {
        // Nobody replaces it between the look and the removal.
        let _folder = lock_folder(&self.path);
        if file_of(&self.path) == Some(self.file) {
            // Gone already is as good.
            let _ = std::fs::remove_file(&self.path);
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
        os::unix::net::{UnixListener, UnixStream},
        sync::Barrier,
        thread,
    };

    use super::*;

    /// A folder that is removed at the end of its test.
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
    fn a_dead_path_in_a_folder_that_somebody_keeps_locked_is_not_replaced() {
        let folder = Folder::new("locked");
        let path = folder.0.join("server.sock");
        let lock = lock_folder(&path).expect("nobody has it");
        let free = folder.0.join("free.sock");
        start(&free).expect("a path that is free needs no lock");
        drop(UnixListener::bind(&path).expect("the path is free"));
        let error = start(&path).expect_err("it must not be removed");
        assert!(error.to_string().contains("remove the path"), "{error}");
        assert!(path.exists());
        drop(lock);
        start(&path).expect("a dead path is replaced");
    }

    #[test]
    fn a_path_that_was_bound_anew_is_not_removed_with_the_old_one() {
        let folder = Folder::new("anew");
        let path = folder.0.join("server.sock");
        let old = start(&path).expect("the path is free");
        let bound = BoundPath::of(&path).expect("it is there");
        drop(old);
        // The file system may give the new file the number of the old one.
        let new = start(&path).expect("a dead path is replaced");
        bound.remove();
        UnixStream::connect(&path).expect("the new one is still there");
        BoundPath::of(&path).expect("it is there").remove();
        assert!(!path.exists());
        drop(new);
    }
}
