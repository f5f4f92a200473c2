//! A private instance of the kernel's tracing that exists as long as its value.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::fs::OFlags;

use super::{CaptureError, DeviceNumber};

const EVENTS: [&str; 2] = ["block_rq_issue", "block_rq_complete"];
/// Kernel memory per CPU: enough for some tenths of a second of a fast disk.
const BUFFER_KIB: u32 = 8192;
const PREFIX: &str = "weir-";

static NEXT: AtomicU32 = AtomicU32::new(0);

#[derive(Debug)]
pub(super) struct Instance {
    directory: PathBuf,
    /// Absent only while the instance is created or removed.
    pipe: Option<File>,
}

impl Instance {
    pub(super) fn create(device: Option<DeviceNumber>) -> Result<Self, CaptureError> {
        let root = tracefs(&fs::read_to_string("/proc/mounts").unwrap_or_default())
            .ok_or(CaptureError::NoTracefs)?;
        let instances = root.join("instances");
        remove_stale(&instances);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = instances.join(format!("{PREFIX}{}-{number}", std::process::id()));
        let mut made = fs::create_dir(&directory);
        if made.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
            // Left by a killed process with our process id.
            remove(&directory);
            made = fs::create_dir(&directory);
        }
        made.map_err(|source| refused(&directory, source))?;
        // From here on it is removed in every case.
        let mut instance = Self { directory, pipe: None };
        instance.write("trace_clock", "mono")?;
        // Less memory than requested is acceptable.
        let _ = instance.write("buffer_size_kb", &BUFFER_KIB.to_string());
        for event in EVENTS {
            let events = PathBuf::from("events/block").join(event);
            let path = instance.directory.join(&events);
            if !path.exists() {
                return Err(CaptureError::NoTracepoints(path));
            }
            if let Some(device) = device {
                instance.write(events.join("filter"), &filter(device))?;
            }
            instance.write(events.join("enable"), "1")?;
        }
        let path = instance.directory.join("trace_pipe");
        let pipe = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(&path);
        instance.pipe = Some(pipe.map_err(|source| refused(&path, source))?);
        Ok(instance)
    }

    /// Its directory.
    #[cfg(test)]
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Reads text of the trace; 0 when there is none now.
    pub(super) fn read(&mut self, bytes: &mut [u8]) -> Result<usize, CaptureError> {
        let Some(pipe) = &mut self.pipe else { return Ok(0) };
        match pipe.read(bytes) {
            Ok(count) => Ok(count),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(0)
            }
            Err(source) => Err(CaptureError::System { doing: "read the trace".to_owned(), source }),
        }
    }

    /// Stops tracing; recorded events can still be read.
    pub(super) fn stop(&self) -> Result<(), CaptureError> {
        self.write("tracing_on", "0")
    }

    fn write(&self, file: impl AsRef<Path>, text: &str) -> Result<(), CaptureError> {
        let path = self.directory.join(file);
        fs::write(&path, text).map_err(|source| refused(&path, source))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.pipe = None;
        if !remove(&self.directory) {
            // The next capture tries again; until then the instance should at least cost nothing.
            let _ = fs::write(self.directory.join("events/enable"), "0");
        }
    }
}

fn refused(path: &Path, source: io::Error) -> CaptureError {
    match source.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            CaptureError::NotPermitted { path: path.to_owned(), source }
        }
        _ => CaptureError::System { doing: format!("write {}", path.display()), source },
    }
}

/// The kernel compares this with the number of a disk: 12 bits of major above 20 bits of minor.
fn filter(device: DeviceNumber) -> String {
    format!("dev == {}", (device.major << 20) | (device.minor & 0xf_ffff))
}

/// Where tracefs is mounted, including inside debugfs.
fn tracefs(mounts: &str) -> Option<PathBuf> {
    let of = |wanted: &str| {
        mounts.lines().find_map(|line| {
            let mut words = line.split(' ');
            let (path, kind) = (words.nth(1)?, words.next()?);
            (kind == wanted).then(|| PathBuf::from(path))
        })
    };
    of("tracefs").or_else(|| of("debugfs").map(|path| path.join("tracing")).filter(|path| path.exists()))
}

/// Removes an instance, which ends all its tracing. The kernel refuses that, and nothing changes, while another
/// process has one of its files open: the instance may belong to a process of another container.
fn remove(directory: &Path) -> bool {
    fs::remove_dir(directory).is_ok()
}

/// Removes instances of dead processes.
fn remove_stale(instances: &Path) {
    let Ok(entries) = fs::read_dir(instances) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if owner(&name.to_string_lossy()).is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            remove(&entry.path());
        }
    }
}

/// The process that created an instance of ours.
fn owner(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracefs_is_found_where_it_is_mounted() {
        let mounts = "proc /proc proc rw 0 0\nnodev /sys/kernel/tracing tracefs rw 0 0\n";
        assert_eq!(tracefs(mounts), Some(PathBuf::from("/sys/kernel/tracing")));
        assert_eq!(tracefs("proc /proc proc rw 0 0\nnodev /nowhere debugfs rw 0 0\n"), None);
        assert_eq!(tracefs("broken\n\n"), None);
    }

    #[test]
    fn the_filter_has_the_kernels_own_device_number() {
        assert_eq!(filter(DeviceNumber { major: 254, minor: 0 }), "dev == 266338304");
        assert_eq!(filter(DeviceNumber { major: 8, minor: 17 }), "dev == 8388625");
    }

    #[test]
    fn instances_name_their_process() {
        assert_eq!(owner("weir-123-0"), Some(123));
        assert_eq!((owner("weir-x-0"), owner("other-1-0"), owner("weir-5")), (None, None, None));
    }
}
