//! How output is shaped: width, colour, files that are whole or absent.

use std::{
    fs::{self, File},
    io::{self, IsTerminal, Write},
    os::{fd::AsFd, unix::fs::FileTypeExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use weir_sys::log_file::open_at_once;

/// What `COLUMNS` says, or else the width of the terminal on standard output, or what fits most places when there is
/// none.
pub(crate) fn width_columns() -> usize {
    let asked =
        std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|columns| *columns > 0);
    asked.or_else(|| terminal_columns(io::stdout())).unwrap_or(100)
}

/// Whether standard output shows colours: it is a terminal and `NO_COLOR` is not set.
pub(crate) fn has_color() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Prints to standard output. A reader that has gone away has seen enough: that is no error. A full disk is.
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

/// Lines of a name and what is said of it; what a terminal on standard output has no room for stands below.
pub(crate) fn fitted(text: &str) -> String {
    match terminal_columns(io::stdout()) {
        Some(columns) => text.lines().map(|line| broken(line, columns) + "\n").collect(),
        None => text.to_owned(),
    }
}

/// Tells people something on standard error. When nobody can read it, the work goes on.
pub(crate) fn tell(text: &str) {
    let text = match terminal_columns(io::stderr()) {
        Some(columns) => text.lines().map(|line| broken(line, columns)).collect::<Vec<_>>().join("\n"),
        None => text.to_owned(),
    };
    let _ = writeln!(io::stderr(), "{text}");
}

/// Width of the terminal behind a stream; nothing where there is none.
fn terminal_columns(stream: impl AsFd) -> Option<usize> {
    let columns = usize::from(rustix::termios::tcgetwinsize(stream).ok()?.ws_col);
    (columns > 0).then_some(columns)
}

/// A line with breaks between words, so that it fits. What follows a break stands below what the line's name is
/// followed by.
fn broken(line: &str, columns: usize) -> String {
    if weir_report::columns(line) <= columns {
        return line.to_owned();
    }
    let name = line.trim_start().split("  ").next().unwrap_or_default();
    let after = line.len() - line.trim_start().len() + name.len();
    let value = line.len() - line[after..].trim_start().len();
    // A sentence has no name, and beside a long one there is no room.
    let named = weir_report::columns(&line[..value]);
    let at = if value < line.len() && named <= columns / 2 { value } else { 0 };
    let indent = if at > 0 { named } else { 2 };
    let lines = weir_report::wrap(&line[at..], columns.saturating_sub(indent).max(1));
    format!("{}{}", &line[..at], lines.join(&format!("\n{:indent$}", "")))
}

/// Writes a file below `--out` so that a reader finds the old one, the new one, or none: never a half.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<()> {
    write_whole_or(path, text, "choose another folder with --out")
}

/// The same with another remedy for whoever has no space.
pub(crate) fn write_whole_or(path: &Path, text: &str, remedy: &str) -> Result<()> {
    refuse_device(path, remedy)?;
    let is_no_file = fs::metadata(path).is_ok_and(|found| !found.is_file());
    let write = || {
        if is_no_file {
            // A terminal or a pipe is written to; taking its name would remove it.
            let options = fs::OpenOptions::new().write(true).clone();
            return open_at_once(&options, path)?.write_all(text.as_bytes());
        }
        let (partial, mut file) = begin_beside(path)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        written.and_then(|()| fs::rename(&partial, path)).inspect_err(|_| {
            // It was made here, so it is nobody else's; that it stays is no worse than the error that is told.
            let _ = fs::remove_file(&partial);
        })
    };
    let cannot = || format!("cannot write {}; free some space or {remedy}", path.display());
    write().with_context(cannot)
}

/// A block device is no place for a result: what is on it would be lost, or its name.
pub(crate) fn refuse_device(path: &Path, remedy: &str) -> Result<()> {
    let is_device = fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
    anyhow::ensure!(!is_device, "{} is a block device, and would be overwritten; {remedy}", path.display());
    Ok(())
}

/// Whether a file can be written there, found out before there is anything to write; what is there stays as it is, and
/// whoever reads from a pipe sees no end of it.
pub(crate) fn can_be_written(path: &Path, flag: &str) -> Result<()> {
    let tried = match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => {
            rustix::fs::access(path, rustix::fs::Access::WRITE_OK).map_err(io::Error::from)
        }
        _ => begin_beside(path).and_then(|(partial, _)| fs::remove_file(partial)),
    };
    tried.with_context(|| format!("{flag}: cannot write {}; choose another file with {flag}", path.display()))
}

/// A new file beside `path`, to take its place when it is whole. No name that is there already is touched: whatever
/// ends in `.partial` may be somebody's.
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
        // By a link, so that no mistake can cost the machine its device.
        let full = std::env::temp_dir().join(format!("weir-full-{}", std::process::id()));
        std::os::unix::fs::symlink("/dev/full", &full).expect("a link can be made");
        let error = write_whole(&full, "row\n").expect_err("it is full");
        assert!(format!("{error:#}").contains("No space left"), "{error:#}");
        assert!(fs::metadata(&full).is_ok_and(|found| !found.is_file()), "it was replaced");
        fs::remove_file(&full).expect("it can be removed");
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
