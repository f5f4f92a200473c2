//! Where the events of an order server are written: standard error, or a file that is replaced when it is full, and
//! opened again when it was moved away.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum, builder::RangedU64ValueParser};
use weir_servers::orders::Event;
use weir_sys::log_file::open_at_once;

use crate::{exit::UsageError, output, signals};

/// Permissions of a file: it names clients and their addresses.
const FILE_MODE: u32 = 0o600;

/// How events are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// A sentence in a line
    #[default]
    Text,
    /// A JSON object in a line
    Json,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct LogFlags {
    /// How events are written: log-ins, refusals, lost exchanges, journals, commands of operators
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,
    /// Write events to this file instead of standard error; SIGHUP and SIGUSR1 open it again
    #[arg(long, value_name = "FILE")]
    pub(crate) log_file: Option<PathBuf>,
    /// Size in MiB at which the file becomes FILE.1, FILE.1 becomes FILE.2, and so on
    #[arg(long, value_name = "MIB", default_value_t = 64, requires = "log_file",
          value_parser = RangedU64ValueParser::<u64>::new().range(1..=65_536))]
    pub(crate) log_file_mib: u64,
    /// Files that are kept, with the present one
    #[arg(long, value_name = "COUNT", default_value_t = 8, requires = "log_file",
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=1000))]
    pub(crate) log_files: u32,
}

/// Writes events.
pub(super) struct EventLog {
    format: LogFormat,
    /// Shared with the thread that opens it again.
    file: Option<Arc<Mutex<RotatedFile>>>,
    /// A line says so once until it works again.
    has_failed: bool,
}

impl EventLog {
    /// Opens the file, if one is named.
    pub(super) fn open(flags: &LogFlags) -> Result<Self> {
        let open = |path: &PathBuf| {
            RotatedFile::open(path, flags.log_file_mib << 20, flags.log_files)
                .map(|file| Arc::new(Mutex::new(file)))
                .map_err(|error| UsageError(format!("--log-file {}: {error}", path.display())))
        };
        Ok(Self {
            format: flags.log_format,
            file: flags.log_file.as_ref().map(open).transpose()?,
            has_failed: false,
        })
    }

    /// Opens the file again under its name at each signal of a log rotation. False: there is no file.
    pub(super) fn reopen_at_signals(&self) -> Result<bool> {
        let Some(file) = self.file.clone() else { return Ok(false) };
        signals::on_rotation(move || {
            let mut file = lock(&file);
            let outcome = file.reopen();
            output::tell_reopened("--log-file", &file.path, outcome);
        })
        .context("cannot start a thread for the signals that open logs anew")?;
        Ok(true)
    }

    /// Writes an event. If the file cannot be written, it goes to standard error.
    pub(super) fn write(&mut self, event: &Event) {
        let line = match (self.format, &self.file) {
            (LogFormat::Json, _) => event.json(),
            (LogFormat::Text, None) => event.to_string(),
            // A service manager adds the time only to lines on standard error.
            (LogFormat::Text, Some(_)) => format!("{} {}", moment(event.t_ns), one_line(&event.to_string())),
        };
        let Some(file) = &self.file else { return tell(self.format, &line) };
        let written = lock(file).write(&line);
        match written {
            Ok(()) => self.has_failed = false,
            Err(error) => {
                if !std::mem::replace(&mut self.has_failed, true) {
                    output::tell(&format!(
                        "--log-file cannot be written, and events are printed here: {error}"
                    ));
                }
                tell(self.format, &line);
            }
        }
    }
}

fn lock(file: &Mutex<RotatedFile>) -> MutexGuard<'_, RotatedFile> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tell(format: LogFormat, line: &str) {
    match format {
        LogFormat::Text => output::tell(line),
        // An object is not broken into lines.
        LogFormat::Json => _ = writeln!(io::stderr(), "{line}"),
    }
}

fn one_line(text: &str) -> String {
    text.replace('\n', "; ")
}

/// Date and time in UTC.
fn moment(t_ns: u64) -> String {
    let [year, month, day, hour, minute, second] = weir_record::calendar::utc(t_ns / 1_000_000_000);
    let microseconds = t_ns % 1_000_000_000 / 1000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{microseconds:06}Z")
}

/// A file that gets another name when it is full.
struct RotatedFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    bytes_max: u64,
    files: u32,
}

impl RotatedFile {
    fn open(path: &Path, bytes_max: u64, files: u32) -> io::Result<Self> {
        let file = append_to(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, bytes, bytes_max, files })
    }

    /// Continues with the file that has its name now. If that fails, lines go where they went.
    fn reopen(&mut self) -> io::Result<()> {
        *self = Self::open(&self.path, self.bytes_max, self.files)?;
        Ok(())
    }

    /// Writes a line, and before it begins another file if the line does not fit. The file has whole lines: one that a
    /// full disk cuts off is removed again.
    fn write(&mut self, line: &str) -> io::Result<()> {
        let text = format!("{line}\n");
        if self.bytes > 0 && self.bytes + text.len() as u64 > self.bytes_max {
            self.rotate()?;
        }
        if let Err(error) = self.file.write_all(text.as_bytes()) {
            // A pipe cannot be cut, and has no half lines either: its reader is gone.
            let _ = self.file.set_len(self.bytes);
            return Err(error);
        }
        self.bytes += text.len() as u64;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        // The oldest one is replaced.
        for number in (1..self.files).rev() {
            let from = if number == 1 { self.path.clone() } else { numbered(&self.path, number - 1) };
            if_there(fs::rename(from, numbered(&self.path, number)))?;
        }
        if self.files == 1 {
            if_there(fs::remove_file(&self.path))?;
        }
        self.file = append_to(&self.path)?;
        self.bytes = 0;
        Ok(())
    }
}

/// A file that is not there needs nothing: somebody has moved or removed it.
fn if_there(outcome: io::Result<()>) -> io::Result<()> {
    outcome.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

fn append_to(path: &Path) -> io::Result<File> {
    open_at_once(OpenOptions::new().append(true).create(true).mode(FILE_MODE), path)
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use weir_servers::orders::EventKind;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("weir-event-log-{name}-{}", std::process::id()));
        fs::create_dir(&folder).expect("it is new");
        folder
    }

    /// A small disk, unmounted with the test.
    struct SmallDisk(PathBuf);

    impl Drop for SmallDisk {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(&self.0).status();
            let _ = fs::remove_dir(&self.0);
        }
    }

    #[test]
    #[expect(clippy::print_stdout, reason = "a test says what it skips")]
    fn a_line_that_a_full_disk_cuts_off_is_removed_again() {
        let disk = SmallDisk(folder("full"));
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=8k", "tmpfs"]).arg(&disk.0).output();
        if !mount.is_ok_and(|output| output.status.success()) {
            return println!("skipped: a small disk needs root, to mount a tmpfs");
        }
        let path = disk.0.join("events.log");
        let mut log = RotatedFile::open(&path, 1 << 20, 3).expect("it can be made");
        let line = "x".repeat(3000);
        log.write(&line).and_then(|()| log.write(&line)).expect("there is room for two");
        for _ in 0..2 {
            let error = log.write(&line).expect_err("the disk is full");
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
        log.write("short").expect("there is room for it");
        assert_eq!(fs::read_to_string(&path).expect("it is text"), format!("{line}\n{line}\nshort\n"));
        assert_eq!(log.bytes, 6008);
    }

    #[test]
    fn a_full_file_gets_a_number_and_so_many_are_kept() {
        let folder = folder("rotated");
        let path = folder.join("events.log");
        let mut log = RotatedFile::open(&path, 10, 3).expect("it can be made");
        for line in ["one", "two", "three", "longer than a file", "five", "six"] {
            log.write(line).expect("it can be written");
        }
        let read = |name: &str| fs::read_to_string(folder.join(name)).expect("it is there");
        assert_eq!(read("events.log"), "five\nsix\n");
        assert_eq!(read("events.log.1"), "longer than a file\n");
        assert_eq!(read("events.log.2"), "three\n");
        assert_eq!(fs::read_dir(&folder).expect("it is there").count(), 3);
        // What an earlier start has written counts.
        let mut log = RotatedFile::open(&path, 10, 1).expect("it is there");
        log.write("seven").expect("it can be written");
        assert_eq!(
            (read("events.log"), read("events.log.1")),
            ("seven\n".into(), "longer than a file\n".into())
        );
        // The only file was moved away.
        fs::remove_file(&path).expect("it is there");
        log.write("eight").expect("it begins another file");
        assert_eq!(read("events.log"), "eight\n");
        fs::remove_dir_all(&folder).expect("it is ours");
    }

    #[test]
    fn a_file_that_was_moved_away_is_continued_under_its_name() {
        let folder = folder("moved");
        let (path, moved) = (folder.join("events.log"), folder.join("moved.log"));
        let mut log = RotatedFile::open(&path, 10, 1).expect("it can be made");
        log.write("before").expect("it can be written");
        fs::rename(&path, &moved).expect("it is ours");
        fs::create_dir(&path).expect("the name is free");
        log.reopen().expect_err("it is a folder");
        log.write("on").expect("the old file is open");
        fs::remove_dir(&path).expect("it is empty");
        fs::write(&path, "others\n").expect("the name is free");
        log.reopen().expect("it is a file again");
        assert_eq!(log.bytes, 7, "what others have written counts");
        log.write("x").expect("it can be written");
        assert_eq!(fs::read_to_string(&moved).expect("it is there"), "before\non\n");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "others\nx\n");
        fs::remove_dir_all(&folder).expect("it is ours");
    }

    #[test]
    fn a_file_has_a_line_for_each_event_with_its_time() {
        let folder = folder("lines");
        let path = folder.join("events.log");
        let flags =
            |log_format| LogFlags { log_format, log_file: Some(path.clone()), log_file_mib: 1, log_files: 1 };
        let event = Event { t_ns: 1_500_000_000, ..Event::new(EventKind::Operator, "root: reload: a\nb") };
        for format in [LogFormat::Text, LogFormat::Json] {
            EventLog::open(&flags(format)).expect("it can be made").write(&event);
        }
        let text = "1970-01-01T00:00:01.500000Z root: reload: a; b\n\
                    {\"t_ns\":1500000000,\"event\":\"operator\",\"text\":\"root: reload: a\\nb\"}\n";
        assert_eq!(fs::read_to_string(&path).expect("it is there"), text);
        let wrong = LogFlags { log_file: Some(folder.join("none/events.log")), ..flags(LogFormat::Text) };
        let error = EventLog::open(&wrong).err().expect("there is no such folder").to_string();
        assert!(error.starts_with("--log-file ") && error.contains("none/events.log"), "{error}");
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}
