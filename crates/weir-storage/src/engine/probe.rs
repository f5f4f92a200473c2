//! Tests which engines and modes work on a file on this machine, and why others do not.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{major, minor},
    io::Errno,
};
use weir_record::storage::{RingMode, StorageEngine, StorageEngineOptions, StorageJob};
use weir_sys::block_ring::SetupError;

use super::{Completed, EngineError, Operation, OperationKind, error_name, libaio::Libaio, open};

/// One engine in one mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mode {
    /// Such as `io_uring, sqpoll`.
    pub name: String,
    /// Why it does not work; absent if it read a block.
    pub refusal: Option<String>,
    /// A caveat for the user although it works.
    pub note: Option<String>,
}

/// Reads the first 4 KiB of a file with every engine in every mode.
pub fn modes(path: &Path) -> Vec<Mode> {
    let rings = StorageEngineOptions::default();
    let ring = |options: StorageEngineOptions| (StorageEngine::IoUring, options);
    let plain = |engine: StorageEngine| (engine, rings);
    let asked = [
        ("pread", plain(StorageEngine::Pread)),
        ("pwritev", plain(StorageEngine::Pwritev)),
        (
            "pwritev, RWF_HIPRI",
            (StorageEngine::Pwritev, StorageEngineOptions { high_priority: true, ..rings }),
        ),
        ("threads", plain(StorageEngine::Threads)),
        ("posixaio", plain(StorageEngine::Posixaio)),
        ("libaio", plain(StorageEngine::Libaio)),
        ("io_uring, default", ring(StorageEngineOptions { ring_mode: RingMode::Default, ..rings })),
        ("io_uring, coop", ring(StorageEngineOptions { ring_mode: RingMode::Coop, ..rings })),
        ("io_uring, defer", ring(rings)),
        (
            "io_uring, fixed buffers and files",
            ring(StorageEngineOptions { fixed_buffers: true, fixed_files: true, ..rings }),
        ),
        ("io_uring, sqpoll", ring(StorageEngineOptions { sqpoll: true, ..rings })),
        ("io_uring, iopoll", ring(StorageEngineOptions { iopoll: true, ..rings })),
        ("io_uring, hybrid_iopoll", ring(StorageEngineOptions { hybrid_iopoll: true, ..rings })),
    ];
    asked.into_iter().map(|(name, (engine, options))| try_mode(path, name, engine, options)).collect()
}

fn try_mode(path: &Path, name: &str, engine: StorageEngine, options: StorageEngineOptions) -> Mode {
    let job = StorageJob {
        name: "probe".to_owned(),
        file: path.display().to_string(),
        file_given: true,
        block_bytes: 4096,
        direct: true,
        engine,
        options,
        depth: 1,
        ..StorageJob::default()
    };
    let refusal = read_one(&job).err();
    let note = if refusal.is_none() { notes(&job).into_iter().next() } else { None };
    Mode { name: name.to_owned(), refusal, note }
}

fn read_one(job: &StorageJob) -> Result<(), String> {
    let mut engine = open(job, 0).map_err(|error| match error {
        EngineError::Refused { reason, .. } => reason,
        error => error.to_string(),
    })?;
    let operation = Operation { slot: 0, kind: OperationKind::Read, offset_bytes: 0, bytes: job.block_bytes };
    let mut completed: Vec<Completed> = Vec::with_capacity(1);
    engine.submit_and_wait(&[operation], &mut completed).map_err(|error| error.to_string())?;
    match completed.first() {
        Some(first) => super::outcome(&operation, *first).map_err(|error| error.to_string()),
        None => Err("the kernel took no operation".to_owned()),
    }
}

/// Notes for the report of a job whose engine does less than its name promises.
pub fn notes(job: &StorageJob) -> Vec<String> {
    let mut notes = Vec::new();
    if job.engine == StorageEngine::Pwritev && job.options.high_priority && kernel_version() >= (5, 19) {
        notes.push(
            "RWF_HIPRI is ignored: since Linux 5.19 it does not make a synchronous read poll, so this is the \
             interrupt under another name"
                .to_owned(),
        );
    }
    if job.engine == StorageEngine::Posixaio {
        notes.push(
            "posixaio is the C library's: its threads call pread and pwrite, for one file one after the other, \
             whatever the depth"
                .to_owned(),
        );
    }
    if job.engine == StorageEngine::Libaio && !has_mapped_ring(job) {
        notes.push(
            "the mapped ring of this kernel is not as expected; completions are fetched with io_getevents"
                .to_owned(),
        );
    }
    notes
}

/// Whether completions of libaio are visible without a system call. Returns true if this cannot be tested.
fn has_mapped_ring(job: &StorageJob) -> bool {
    File::open(&job.file)
        .and_then(|file| Libaio::new(file, 1, 4096))
        .map_or(true, |engine| engine.is_mapped())
}

/// The first kernel with its own hybrid polling.
const HYBRID_SINCE: (u32, u32) = (6, 13);
const NO_HYBRID: &str = "IORING_SETUP_HYBRID_IOPOLL needs Linux 6.13";

/// The polled queues of the device below a file.
#[derive(Clone, Debug)]
pub(super) struct PolledQueues {
    /// `/sys/dev/block/8:0/queue/io_poll`.
    setting: PathBuf,
    are_on: bool,
}

/// Absent if there is no such device, or its setting cannot be read.
pub(super) fn polled_queues(file: &File) -> Option<PolledQueues> {
    queues_of(&file.metadata().ok()?)
}

fn queues_of(metadata: &fs::Metadata) -> Option<PolledQueues> {
    let device = if metadata.file_type().is_block_device() { metadata.rdev() } else { metadata.dev() };
    let of_device = PathBuf::from(format!("/sys/dev/block/{}:{}", major(device), minor(device)));
    // A partition has no queue directory.
    let candidates = [of_device.join("queue/io_poll"), of_device.join("../queue/io_poll")];
    candidates.into_iter().find_map(|setting| {
        let text = fs::read_to_string(&setting).ok()?;
        Some(PolledQueues { setting, are_on: text.trim() != "0" })
    })
}

/// Why the first operation of a ring with polled completion failed.
pub(super) fn explain_polled(number: i32, queues: Option<&PolledQueues>) -> String {
    let is_unsupported = number == Errno::OPNOTSUPP.raw_os_error();
    match queues {
        Some(queues) if is_unsupported && !queues.are_on => format!(
            "the device has no polled queues ({} is 0); they are made when its driver is loaded \
             (nvme.poll_queues, virtio_blk.poll_queues)",
            queues.setting.display()
        ),
        _ if is_unsupported => "the file system or the device cannot be polled (EOPNOTSUPP)".to_owned(),
        _ => format!("the first polled read failed with {}", error_name(number)),
    }
}

/// Why the setup of a ring failed.
pub(super) fn explain_ring(options: &StorageEngineOptions, error: &SetupError) -> String {
    let number = Errno::from_io_error(&error.source);
    match (error.step, number) {
        ("io_uring_setup", Some(Errno::INVAL))
            if options.hybrid_iopoll && kernel_version() < HYBRID_SINCE =>
        {
            NO_HYBRID.to_owned()
        }
        ("io_uring_setup", Some(Errno::INVAL))
            if options.ring_mode == RingMode::Defer && kernel_version() < (6, 1) =>
        {
            "IORING_SETUP_DEFER_TASKRUN needs Linux 6.1; use the ring mode coop or default".to_owned()
        }
        ("io_uring_setup", Some(Errno::INVAL))
            if options.ring_mode == RingMode::Coop && kernel_version() < (5, 19) =>
        {
            "IORING_SETUP_COOP_TASKRUN needs Linux 5.19; use the ring mode default".to_owned()
        }
        ("io_uring_setup", Some(Errno::NOSYS)) => {
            "this kernel has no io_uring, or a filter hides it".to_owned()
        }
        ("io_uring_setup", Some(Errno::PERM)) => {
            let setting = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
            format!(
                "io_uring is not permitted (kernel.io_uring_disabled is {}); a container's filter does that too",
                setting.trim()
            )
        }
        (_, Some(Errno::NOMEM)) => {
            format!("{}: out of locked memory; raise `ulimit -l`, or use a smaller depth", error.step)
        }
        _ => error.to_string(),
    }
}

/// Why another engine could not be created.
pub(super) fn explain(engine: StorageEngine, error: &io::Error) -> String {
    let number = Errno::from_io_error(error);
    match (engine, number) {
        (StorageEngine::Libaio, Some(Errno::AGAIN)) => {
            "no room for a context of this depth: fs.aio-nr is near fs.aio-max-nr".to_owned()
        }
        (StorageEngine::Libaio, Some(Errno::NOSYS)) => {
            "this kernel has no io_setup, or a filter hides it".to_owned()
        }
        (StorageEngine::Threads, Some(Errno::AGAIN)) => {
            "no more threads are allowed (`ulimit -u`, or the limit of the control group)".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Version of the running kernel, as far as it matters for modes. (0, 0) if it cannot be read.
fn kernel_version() -> (u32, u32) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    version(&release)
}

fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_the_names_distributions_give() {
        assert_eq!(version("6.18.44\n"), (6, 18));
        assert_eq!(version("5.15.0-91-generic"), (5, 15));
        assert_eq!(version("6.1-rc3"), (6, 1));
        assert_eq!(version("unknown"), (0, 0));
        assert!(kernel_version() > (0, 0));
    }

    #[test]
    fn a_device_without_polled_queues_is_named_with_its_setting() {
        let queues = PolledQueues { setting: "/sys/dev/block/1:2/queue/io_poll".into(), are_on: false };
        let text = explain_polled(Errno::OPNOTSUPP.raw_os_error(), Some(&queues));
        assert!(text.contains("/sys/dev/block/1:2/queue/io_poll is 0"), "{text}");
        let queues = PolledQueues { are_on: true, ..queues };
        let text = explain_polled(Errno::OPNOTSUPP.raw_os_error(), Some(&queues));
        assert!(text.contains("cannot be polled"), "{text}");
        let text = explain_polled(Errno::IO.raw_os_error(), None);
        assert_eq!(text, "the first polled read failed with EIO");
    }

    #[test]
    fn a_full_aio_table_names_the_setting() {
        let error = io::Error::from_raw_os_error(Errno::AGAIN.raw_os_error());
        assert!(explain(StorageEngine::Libaio, &error).contains("fs.aio-max-nr"));
    }
}
