//! Files that another process may read or move while they are being written.

use std::{
    fs::{File, OpenOptions},
    io,
    os::{
        fd::{AsFd, AsRawFd},
        unix::fs::OpenOptionsExt,
    },
    path::Path,
};

use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
};

/// Opens a file for writing without blocking: `open` on a pipe without a reader would block, possibly forever.
///
/// # Errors
/// Errors of `open(2)`; the error for a pipe without a reader names the remedy.
pub fn open_at_once(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
    let file =
        options.clone().custom_flags(flags).open(path).map_err(|error| {
            match Errno::from_io_error(&error) {
                Some(Errno::NXIO) => io::Error::other("no process reads this pipe; start its reader first"),
                _ => error,
            }
        })?;
    // From here on writing to a full pipe blocks.
    let flags = fcntl_getfl(&file)?;
    fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Redirects an open file, wherever its descriptor is used: later writes go to `by`.
///
/// # Errors
/// Errors of `dup3(2)`; `file` is then unchanged.
pub fn replace(file: &File, by: &File) -> io::Result<()> {
    let (file, by) = (file.as_fd().as_raw_fd(), by.as_fd().as_raw_fd());
    // SAFETY: both are borrowed and therefore open. The call replaces the file of descriptor `file` in one step, so
    // its owner keeps the number all the time.
    let result = unsafe { libc::dup3(by, file, libc::O_CLOEXEC) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    /// A temporary folder for one test.
    fn folder(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("weir-log-file-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).expect("a folder");
        folder
    }

    #[test]
    fn a_pipe_is_opened_where_it_is_read_and_refused_where_it_is_not() {
        let folder = folder("pipe");
        let path = folder.join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .expect("a pipe");
        let options = OpenOptions::new().append(true).clone();
        let error = open_at_once(&options, &path).expect_err("nobody reads").to_string();
        assert!(error.contains("start its reader first"), "{error}");
        let waiting = OFlags::NONBLOCK.bits() as i32;
        let reader = OpenOptions::new().read(true).custom_flags(waiting).open(&path);
        let mut reader = reader.expect("a reader does not wait");
        let mut writer = open_at_once(&options, &path).expect("it is read");
        writer.write_all(b"line\n").expect("there is room");
        let mut line = [0; 5];
        reader.read_exact(&mut line).expect("it is there");
        assert_eq!(&line, b"line\n");
        let flags = fcntl_getfl(&writer).expect("it is open");
        assert!(!flags.contains(OFlags::NONBLOCK), "who writes to a full pipe waits");
        std::fs::remove_dir_all(folder).expect("it is ours");
    }

    #[test]
    fn a_file_that_was_moved_away_is_replaced_for_everybody_who_holds_it() {
        let folder = folder("replace");
        let (path, moved) = (folder.join("log"), folder.join("log.1"));
        let options = OpenOptions::new().create(true).append(true).clone();
        let file = std::sync::Arc::new(open_at_once(&options, &path).expect("a file"));
        let mut sink = std::sync::Arc::clone(&file);
        sink.write_all(b"before\n").expect("there is room");
        std::fs::rename(&path, &moved).expect("it is ours");
        sink.write_all(b"between\n").expect("there is room");
        replace(&file, &open_at_once(&options, &path).expect("a new file")).expect("both are open");
        sink.write_all(b"after\n").expect("there is room");
        assert_eq!(std::fs::read_to_string(&moved).expect("it is there"), "before\nbetween\n");
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "after\n");
        std::fs::remove_dir_all(folder).expect("it is ours");
    }
}
