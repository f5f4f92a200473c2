//! The form of output: width, colour, files that are whole or absent.

use std::{
    fs::{self, File},
    io::{self, IsTerminal, Write},
    os::{fd::AsFd, unix::fs::FileTypeExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use weir_sys::log_file::open_at_once;

/// The width in `COLUMNS`, else that of the terminal on standard output, else a default that fits most places.
pub(crate) fn width_columns() -> usize {
    let asked =
        std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|columns| *columns > 0);
    asked.or_else(|| terminal_columns(io::stdout())).unwrap_or(100)
}

/// Whether standard output shows colours: it is a terminal and `NO_COLOR` is not set.
pub(crate) fn has_color() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Prints to standard output. A reader that has gone away is no error. A full disk is.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    let mut write = || {
        stdout.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            stdout.write_all(b"\n")?;
        }
        stdout.flush()
    };
    match write() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}

/// Lines of names with descriptions; a description that does not fit beside its name stands below it.
pub(crate) fn fitted(text: &str) -> String {
    match terminal_columns(io::stdout()) {
        Some(columns) => text.lines().map(|line| broken(line, columns) + "\n").collect(),
        None => text.to_owned(),
    }
}

/// Prints a message on standard error. If it cannot be written, the work goes on.
pub(crate) fn tell(text: &str) {
    let text = match terminal_columns(io::stderr()) {
        Some(columns) => text.lines().map(|line| broken(line, columns)).collect::<Vec<_>>().join("\n"),
        None => text.to_owned(),
    };
    let _ = writeln!(io::stderr(), "{text}");
}

/// Reports whether a log was opened again under its name.
pub(crate) fn tell_reopened(flag: &str, path: &Path, outcome: io::Result<()>) {
    let path = path.display();
    match outcome {
        Ok(()) => tell(&format!("{flag} {path} was opened anew")),
        Err(error) => {
            tell(&format!("{flag} {path} cannot be opened anew, so its lines go where they went: {error}"))
        }
    }
}

/// Width of the terminal behind a stream; none where there is no terminal.
fn terminal_columns(stream: impl AsFd) -> Option<usize> {
    let columns = usize::from(rustix::termios::tcgetwinsize(stream).ok()?.ws_col);
    (columns > 0).then_some(columns)
}

/// A line with breaks between words, so that it fits. Continued lines are indented to the text after the line's name.
fn broken(line: &str, columns: usize) -> String {
    if weir_report::columns(line) <= columns {
        return line.to_owned();
    }
    let name = line.trim_start().split("  ").next().unwrap_or_default();
    let after = line.len() - line.trim_start().len() + name.len();
    let value = line.len() - line[after..].trim_start().len();
    // A sentence has no name, and beside a long name there is no room.
    let named = weir_report::columns(&line[..value]);
    let at = if value < line.len() && named <= columns / 2 { value } else { 0 };
    let indent = if at > 0 { named } else { 2 };
    let lines = weir_report::wrap(&line[at..], columns.saturating_sub(indent).max(1));
    format!("{}{}", &line[..at], lines.join(&format!("\n{:indent$}", "")))
}

/// Writes a file below `--out` atomically: a reader finds the old one, the new one, or none.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<()> {
    write_whole_or(path, text, "choose another folder with --out")
}

/// The same with another remedy for a full disk. A link stays a link: its target is written.
pub(crate) fn write_whole_or(path: &Path, text: &str, remedy: &str) -> Result<()> {
    refuse_device(path, remedy)?;
    let write = || match Way::to(path)? {
        Way::Through(stream) => write_through(stream, text),
        Way::Beside(path) => {
            let (partial, mut file) = begin_beside(&path)?;
            let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
            written.and_then(|()| fs::rename(&partial, path)).inspect_err(|_| {
                // This process made the file, so it may remove it. If that fails, the error that is reported is worse.
                let _ = fs::remove_file(&partial);
            })
        }
    };
    let cannot = || format!("cannot write {}; free some space or {remedy}", path.display());
    write().with_context(cannot)
}

/// How a file is written.
#[derive(Debug, PartialEq, Eq)]
enum Way {
    /// It is open already, or is a terminal or a pipe: a rename over it would remove it.
    Through(Stream),
    /// A new file replaces it.
    Beside(PathBuf),
}

#[derive(Debug, PartialEq, Eq)]
enum Stream {
    Stdout,
    Stderr,
    /// The path names another descriptor of this process; a regular file behind it is appended to.
    Open(PathBuf),
    Named(PathBuf),
}

impl Way {
    fn to(path: &Path) -> io::Result<Self> {
        if let Some(number) = own_descriptor(path) {
            return Ok(Self::Through(match number {
                1 => Stream::Stdout,
                2 => Stream::Stderr,
                _ => Stream::Open(path.to_owned()),
            }));
        }
        Ok(match fs::metadata(path) {
            Ok(found) if !found.is_file() => Self::Through(Stream::Named(path.to_owned())),
            _ => Self::Beside(behind_links(path)?),
        })
    }
}

fn write_through(stream: Stream, text: &str) -> io::Result<()> {
    let text = text.as_bytes();
    match stream {
        Stream::Stdout => io::stdout().lock().write_all(text).and_then(|()| io::stdout().flush()),
        Stream::Stderr => io::stderr().write_all(text),
        Stream::Open(path) => {
            open_at_once(&fs::OpenOptions::new().append(true).clone(), &path)?.write_all(text)
        }
        Stream::Named(path) => {
            open_at_once(&fs::OpenOptions::new().write(true).clone(), &path)?.write_all(text)
        }
    }
}

/// Most links that are followed one after the other, as many as the kernel follows.
const LINKS_MAX: usize = 40;

/// A path, and its targets link by link.
fn links(path: &Path) -> impl Iterator<Item = PathBuf> {
    let behind = |link: &PathBuf| {
        let target = fs::read_link(link).ok()?;
        Some(link.parent().unwrap_or(Path::new("")).join(target))
    };
    std::iter::successors(Some(path.to_owned()), behind).take(LINKS_MAX + 1)
}

/// The file behind all links, whether it exists or not.
pub(crate) fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let last = links(path).last().unwrap_or_default();
    if last.is_symlink() { Err(rustix::io::Errno::LOOP.into()) } else { Ok(last) }
}

/// The number of the descriptor of this process that a path is a name of (`/dev/stdout`).
fn own_descriptor(path: &Path) -> Option<u32> {
    let own = fs::canonicalize("/proc/self/fd").ok()?;
    links(path).find_map(|link| {
        let folder = fs::canonicalize(link.parent()?).ok()?;
        if folder == own { link.file_name()?.to_str()?.parse().ok() } else { None }
    })
}

/// Refuses a block device: a write would destroy its content, or its name.
pub(crate) fn refuse_device(path: &Path, remedy: &str) -> Result<()> {
    let is_device = fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
    anyhow::ensure!(!is_device, "{} is a block device, and would be overwritten; {remedy}", path.display());
    Ok(())
}

/// Checks in advance whether a file can be written there. An existing file stays as it is, and the reader of a pipe
/// sees no end of file.
pub(crate) fn can_be_written(path: &Path, flag: &str) -> Result<()> {
    let tried = match Way::to(path) {
        _ if path.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(Way::Through(Stream::Stdout | Stream::Stderr)) => Ok(()),
        Ok(Way::Through(Stream::Open(path) | Stream::Named(path))) => {
            rustix::fs::access(path, rustix::fs::Access::WRITE_OK).map_err(io::Error::from)
        }
        Ok(Way::Beside(path)) => begin_beside(&path).and_then(|(partial, _)| fs::remove_file(partial)),
        Err(error) => Err(error),
    };
    tried.with_context(|| format!("{flag}: cannot write {}; choose another file with {flag}", path.display()))
}

/// Makes a new file beside `path`, which replaces it when it is whole. It touches no existing name: another program may
/// have made a file that ends in `.partial`.
pub(crate) fn begin_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    let partial = PathBuf::from(name);
    match File::create_new(&partial) {
        Ok(file) => Ok((partial, file)),
        Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", partial.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_goes_on_below_its_value() {
        let row = "round trip    mean 1253.2 µs, p50 191.4 µs, p99 11878.4 µs, max 24051.7 µs";
        assert_eq!(broken(row, 80), row);
        assert_eq!(
            broken(row, 60),
            "round trip    mean 1253.2 µs, p50 191.4 µs, p99 11878.4 µs,\n              max 24051.7 µs"
        );
        assert_eq!(broken("a sentence that goes on", 20), "a sentence that\n  goes on");
        for columns in 1..row.len() {
            let words = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(words(&broken(row, columns)), words(row), "{columns}");
        }
    }

    #[test]
    fn a_device_is_written_to_and_stays_one() {
        // Through a link, so that no mistake can remove a device of the machine.
        let full = std::env::temp_dir().join(format!("weir-full-{}", std::process::id()));
        std::os::unix::fs::symlink("/dev/full", &full).expect("a link can be made");
        let error = write_whole(&full, "row\n").expect_err("it is full");
        assert!(format!("{error:#}").contains("No space left"), "{error:#}");
        assert!(fs::metadata(&full).is_ok_and(|found| !found.is_file()), "it was replaced");
        fs::remove_file(&full).expect("it can be removed");
    }

    #[test]
    fn a_link_stays_one_and_the_file_behind_it_is_written() {
        let folder = std::env::temp_dir().join(format!("weir-links-{}", std::process::id()));
        fs::create_dir_all(folder.join("inner")).expect("a folder can be made");
        let (first, second, file) =
            (folder.join("first"), folder.join("inner/second"), folder.join("inner/file"));
        std::os::unix::fs::symlink("inner/second", &first).expect("a link can be made");
        std::os::unix::fs::symlink("file", &second).expect("a link can be made");
        for text in ["new\n", "again\n"] {
            can_be_written(&first, "--csv").expect("it can");
            write_whole(&first, text).expect("it can be written");
            assert!(first.is_symlink() && second.is_symlink(), "a link was replaced");
            assert_eq!(fs::read_to_string(&file).expect("it is there"), text);
        }
        let round = folder.join("round");
        std::os::unix::fs::symlink("round", &round).expect("a link can be made");
        assert!(can_be_written(&round, "--csv").is_err() && write_whole(&round, "row\n").is_err());
        assert!(round.is_symlink());
        fs::remove_dir_all(&folder).expect("it can be removed");
    }

    #[test]
    fn what_is_open_is_written_through_and_keeps_its_name() {
        for (name, stream) in [
            ("/dev/stdout", Stream::Stdout),
            ("/dev/fd/1", Stream::Stdout),
            ("/proc/self/fd/2", Stream::Stderr),
        ] {
            assert_eq!(Way::to(Path::new(name)).expect("it leads there"), Way::Through(stream), "{name}");
        }
        let path = std::env::temp_dir().join(format!("weir-open-{}", std::process::id()));
        fs::write(&path, "before\n").expect("a file can be written");
        let open = File::open(&path).expect("it is there");
        let name = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open));
        write_whole(Path::new(&name), "after\n").expect("it can be written");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "before\nafter\n");
        fs::remove_file(&path).expect("it can be removed");
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "what a machine cannot do must not look tested")]
    fn a_block_device_is_never_written_to() {
        let names = fs::read_dir("/sys/block").into_iter().flatten().filter_map(Result::ok);
        let devices = names.map(|entry| Path::new("/dev").join(entry.file_name()));
        let Some(device) = devices.into_iter().find(|device| device.exists()) else {
            eprintln!("skipped: no block device can be named here");
            return;
        };
        let error = refuse_device(&device, "name another").expect_err("it is a device").to_string();
        assert!(error.contains("is a block device") && error.contains("name another"), "{error}");
        refuse_device(Path::new("/dev/null"), "").expect("nothing is lost there");
    }

    #[test]
    fn what_is_written_beside_a_file_takes_no_name_that_is_there() {
        let folder = std::env::temp_dir().join(format!("weir-output-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder can be made");
        let (out, others) = (folder.join("table.csv"), folder.join("table.partial"));
        fs::write(&others, "precious").expect("a file can be written");
        write_whole(&out, "row\n").expect("it can be written");
        let (partial, file) = begin_beside(&out).expect("the name is free again");
        drop(file);
        let taken = begin_beside(&out).expect_err("the name is taken now");
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        assert!(taken.to_string().starts_with(&partial.display().to_string()), "{taken}");
        assert!(write_whole(&out, "other\n").is_err() && partial.exists());
        assert_eq!(fs::read_to_string(&out).expect("it is there"), "row\n");
        assert_eq!(fs::read_to_string(&others).expect("it is there"), "precious");
        fs::remove_dir_all(&folder).expect("it can be removed");
    }
}
