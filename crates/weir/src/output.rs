//! How output is shaped: width, colour, files that are whole or absent.

use std::{
    fs,
    io::{self, IsTerminal, Write},
    path::Path,
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
    let partial = path.with_extension("partial");
    let write = || {
        let mut file = fs::File::create(&partial)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&partial, path)
    };
    write().or_else(|error| {
        let _ = fs::remove_file(&partial);
        Err(error).with_context(|| format!("cannot write {}; free some space or {way_out}", path.display()))
    })
}
