//! How output is shaped: width, colour, files that are whole or absent.

use std::{
    fs::{self, File},
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// Width of the terminal on standard output, or what fits most places when there is none.
pub(crate) fn width_columns() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).unwrap_or(100)
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

/// Tells people something on standard error. When nobody can be told, the work goes on.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Writes a file below `--out` so that a reader finds the old one, the new one, or none: never a half.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<()> {
    write_whole_or(path, text, "choose another folder with --out")
}

/// The same with another way out for whoever has no space.
pub(crate) fn write_whole_or(path: &Path, text: &str, way_out: &str) -> Result<()> {
    let write = || {
        let (partial, mut file) = begin_beside(path)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        written.and_then(|()| fs::rename(&partial, path)).inspect_err(|_| {
            // It was made here, so it is nobody else's; that it stays is no worse than the error that is told.
            let _ = fs::remove_file(&partial);
        })
    };
    let cannot = || format!("cannot write {}; free some space or {way_out}", path.display());
    write().with_context(cannot)
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
