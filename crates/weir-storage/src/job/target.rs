//! The file that a job names: whether it exists, its type, and how much of it the job uses.
//!
//! Opening an engine finds out whether the file system supports `O_DIRECT`, and its alignment
//! ([`crate::engine::target`]).

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Seek, SeekFrom},
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;
use weir_record::storage::StorageJob;

use super::{
    offsets::unit_bytes,
    units::shown_bytes,
    validate::{Field, JobError},
};

const FILE: Field = Field { flag: "file", key: "filename" };
const SIZE: Field = Field { flag: "size", key: "size" };
const OFFSET: Field = Field { flag: "offset", key: "offset" };
const BLOCK: Field = Field { flag: "bs", key: "bs" };

/// Most symbolic links that are followed, the same as in the kernel.
const LINKS_MAX: usize = 40;

/// The flag that writing to a block device requires.
pub const DESTROY_FLAG: &str = "--i-know-this-destroys-data";

/// The target of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Whether it is a block device, not a regular file.
    pub is_device: bool,
    /// Bytes of the file or device.
    pub size_bytes: u64,
    /// Bytes that the job uses, from its offset on.
    pub used_bytes: u64,
    /// It was created for this job: its blocks were never written, so the first write to each costs the file system
    /// more than a later one.
    pub is_new: bool,
}

/// Checks the file of a job. A file that is only written is created when the job gives its size. A file that is read
/// must exist, and an existing file keeps its size, because it belongs to the user. A device is written to only if
/// that is explicitly allowed, and never while it is in use. A created file reaches at least to `end_bytes`
/// ([`written_until_bytes`]).
pub fn check_target(job: &StorageJob, end_bytes: u64, may_destroy: bool) -> Result<Target, JobError> {
    let path = Path::new(&job.file);
    let refuse = |reason: String| Err(JobError::new(FILE, reason));
    let kind = match path.metadata() {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return match job.size_bytes {
                Some(size_bytes) if !job.pattern.reads() => make(job, size_bytes, end_bytes),
                _ => refuse(missing(job)),
            };
        }
        Err(error) => return refuse(format!("{} cannot be looked at: {error}", job.file)),
    };
    let is_device = kind.is_block_device();
    if !is_device && !kind.is_file() {
        let what = if kind.is_dir() { "a folder" } else { "neither a regular file nor a block device" };
        return refuse(format!("{} is {what}; name a file or a block device", job.file));
    }
    if is_device && job.pattern.writes() {
        check_device(job, may_destroy)?;
    }
    let size_bytes = File::open(path)
        .and_then(|mut file| file.seek(SeekFrom::End(0)))
        .map_err(|error| JobError::new(FILE, format!("{} cannot be opened: {error}", job.file)))?;
    used_part(job, is_device, size_bytes)
}

/// End of the last part of a file that jobs only write: the first of them creates the file for all. A part that
/// another job reads must exist.
pub fn written_until_bytes(jobs: &[StorageJob], file: &str) -> u64 {
    let writers = jobs.iter().filter(|job| job.file == file && !job.pattern.reads());
    let ends = writers.filter_map(|job| Some(job.offset_bytes.saturating_add(job.size_bytes?)));
    ends.max().unwrap_or(0)
}

/// Bytes that a job requests of a file of `file_bytes`; `None` for all of them. A share refers to the whole file, is
/// limited to the part after the offset, and is rounded to whole blocks.
pub fn requested_bytes(job: &StorageJob, file_bytes: u64) -> Option<u64> {
    let Some(percent) = job.size_percent else { return job.size_bytes };
    let share = u128::from(file_bytes) * u128::from(percent) / 100;
    let share = u64::try_from(share).unwrap_or(file_bytes).min(file_bytes.saturating_sub(job.offset_bytes));
    Some(share - share % u64::from(unit_bytes(job).max(1)))
}

fn missing(job: &StorageJob) -> String {
    let file = &job.file;
    if job.pattern.reads() {
        format!(
            "{file} does not exist, and a file that you name is never made for reading; leave it out for our own \
             file, or write it first: weir storage run --file {file} --rw write --bs 1m --size 1g --once"
        )
    } else {
        format!("{file} does not exist; say with size how long it shall be")
    }
}

/// Creates the file of a job that only writes.
fn make(job: &StorageJob, used_bytes: u64, end_bytes: u64) -> Result<Target, JobError> {
    let end = job.offset_bytes.saturating_add(used_bytes).max(end_bytes);
    let path = behind_links(Path::new(&job.file));
    let refuse = |error: std::io::Error| {
        JobError::new(FILE, format!("{} cannot be made {} bytes long: {error}", job.file, shown_bytes(end)))
    };
    // If another process was faster, its file stays unchanged.
    let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(refuse)?;
    file.set_len(end).map_err(|error| {
        // The error is the same, whether or not the file can be removed.
        let _ = fs::remove_file(&path);
        refuse(error)
    })?;
    Ok(Target { is_device: false, size_bytes: end, used_bytes, is_new: true })
}

/// Target of a link to a missing file.
fn behind_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}

fn check_device(job: &StorageJob, may_destroy: bool) -> Result<(), JobError> {
    if !may_destroy {
        let reason = format!(
            "{} is a block device and {} would overwrite it; say {DESTROY_FLAG} if that is what you want",
            job.file, job.pattern
        );
        return Err(JobError::new(FILE, reason));
    }
    // On a device O_EXCL without O_CREAT fails if it is mounted or part of something that is.
    let opened = OpenOptions::new().read(true).custom_flags(OFlags::EXCL.bits() as i32).open(&job.file);
    opened.map(drop).map_err(|error| {
        let reason = if error.raw_os_error() == Some(rustix::io::Errno::BUSY.raw_os_error()) {
            format!(
                "{} is in use (mounted, or part of another device); writing to it would destroy that",
                job.file
            )
        } else {
            format!("{} cannot be opened: {error}", job.file)
        };
        JobError::new(FILE, reason)
    })
}

fn used_part(job: &StorageJob, is_device: bool, size_bytes: u64) -> Result<Target, JobError> {
    let block = u64::from(job.block_bytes);
    let has = format!("{} has {size_bytes} bytes", job.file);
    let behind = size_bytes.saturating_sub(job.offset_bytes);
    let from = if job.offset_bytes > 0 { format!(" from {} on", job.offset_bytes) } else { String::new() };
    if let Some(asked) = job.size_bytes.filter(|asked| *asked > behind && !job.pattern.reads() && !is_device)
    {
        let reason = format!(
            "{has}, and {asked}{from} are asked for; a file that is there is not made longer: ask for less, remove it, \
             or name one that is not there"
        );
        return Err(JobError::new(SIZE, reason));
    }
    if size_bytes < block {
        return Err(JobError::new(
            BLOCK,
            format!("{has}, less than one block of {block}; use smaller blocks"),
        ));
    }
    if behind < block {
        let reason = format!("{has}, so no block of {block} lies at {}", job.offset_bytes);
        return Err(JobError::new(OFFSET, reason));
    }
    let asked = requested_bytes(job, size_bytes);
    if asked.is_some_and(|asked| asked < block) {
        return Err(JobError::new(
            SIZE,
            format!("{has}: what is asked for of them is less than one block of {block}"),
        ));
    }
    match asked {
        Some(asked) if asked > behind => {
            Err(JobError::new(SIZE, format!("{has}, and {asked}{from} are asked for; ask for less")))
        }
        asked => Ok(Target { is_device, size_bytes, used_bytes: asked.unwrap_or(behind), is_new: false }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use weir_record::storage::AccessPattern;

    use super::*;

    struct Folder(std::path::PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("weir-target-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a folder can be made");
            Self(path)
        }

        fn job(&self, name: &str, pattern: AccessPattern) -> StorageJob {
            let file = self.0.join(name).display().to_string();
            StorageJob { file, file_given: true, pattern, ..StorageJob::default() }
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).expect("it can be removed");
        }
    }

    fn refusal(job: &StorageJob) -> String {
        check_target(job, 0, false).expect_err("it is refused").to_string()
    }

    #[test]
    fn a_file_to_read_must_be_there() {
        let folder = Folder::new("missing");
        let job = StorageJob { size_bytes: Some(8192), ..folder.job("none", AccessPattern::RandRw) };
        let text = refusal(&job);
        assert!(text.starts_with("--file: ") && text.contains("does not exist"), "{text}");
        assert!(!Path::new(&job.file).exists());
    }

    #[test]
    fn a_file_of_writes_is_made_when_its_size_is_said() {
        let folder = Folder::new("made");
        let unsized_job = folder.job("new", AccessPattern::Write);
        assert!(refusal(&unsized_job).contains("say with size"));
        let job = StorageJob { size_bytes: Some(8192), offset_bytes: 4096, ..unsized_job };
        let target = check_target(&job, 0, false).expect("it is made");
        assert_eq!((target.used_bytes, target.size_bytes, target.is_new), (8192, 12_288, true));
        let again = check_target(&job, 0, false).expect("it is there");
        assert_eq!((again.used_bytes, again.is_new), (8192, false));
    }

    #[test]
    fn a_file_that_several_jobs_write_is_made_for_all_of_them() {
        let folder = Folder::new("parts");
        let part = |place: u64, pattern| StorageJob {
            size_bytes: Some(4096),
            offset_bytes: 8192 * place,
            ..folder.job("new", pattern)
        };
        let mut jobs: Vec<StorageJob> = (0..3).map(|place| part(place, AccessPattern::Write)).collect();
        // A part that is read must exist, and is not created.
        jobs.push(part(9, AccessPattern::RandRead));
        let end = written_until_bytes(&jobs, &jobs[0].file);
        assert_eq!((end, written_until_bytes(&jobs, "other")), (2 * 8192 + 4096, 0));
        let made: Vec<_> = jobs[..3].iter().map(|job| check_target(job, end, false)).collect();
        for (place, target) in made.into_iter().enumerate() {
            let target = target.expect("there is room for all");
            assert_eq!((target.size_bytes, target.used_bytes, target.is_new), (end, 4096, place == 0));
        }
        assert!(check_target(&jobs[3], end, false).is_err());
    }

    #[test]
    fn a_file_that_cannot_be_made_as_long_leaves_none_behind() {
        let folder = Folder::new("too-long");
        let job = StorageJob { size_bytes: Some(u64::MAX), ..folder.job("new", AccessPattern::Write) };
        assert!(refusal(&job).contains("cannot be made"));
        assert!(!Path::new(&job.file).exists());
    }

    #[test]
    fn a_file_that_is_there_is_never_made_longer_nor_called_ours() {
        let folder = Folder::new("shorter");
        for content in [&b""[..], b"precious", &[7; 8192]] {
            let job = StorageJob { size_bytes: Some(16_384), ..folder.job("theirs", AccessPattern::Write) };
            fs::write(&job.file, content).expect("a file can be written");
            for wrong in [job.clone(), StorageJob { size_bytes: Some(u64::MAX), ..job.clone() }] {
                let text = refusal(&wrong);
                assert!(text.starts_with("--size: ") && text.contains("is not made longer"), "{text}");
            }
            assert_eq!(fs::read(&job.file).expect("it is there"), content);
        }
        let job = StorageJob { size_bytes: Some(8192), ..folder.job("theirs", AccessPattern::Write) };
        assert_eq!(check_target(&job, 0, false).map(|target| target.is_new), Ok(false));
    }

    #[test]
    fn a_link_to_a_file_that_cannot_be_made_stays_and_one_to_a_file_that_can_is_followed() {
        let folder = Folder::new("links");
        let job = StorageJob { size_bytes: Some(8192), ..folder.job("link", AccessPattern::Write) };
        symlink("/nowhere/x", &job.file).expect("a link can be made");
        assert!(refusal(&job).contains("cannot be made"));
        assert_eq!(fs::read_link(&job.file).expect("it is still there"), Path::new("/nowhere/x"));
        let (link, behind) = (folder.job("other", AccessPattern::Write), folder.0.join("behind"));
        symlink(&behind, &link.file).expect("a link can be made");
        let too_long = StorageJob { size_bytes: Some(u64::MAX), ..link.clone() };
        assert!(refusal(&too_long).contains("cannot be made"));
        assert!(fs::symlink_metadata(&link.file).expect("it is still there").is_symlink());
        assert!(!behind.exists(), "what could not be made is not left there");
        let target =
            check_target(&StorageJob { size_bytes: Some(8192), ..link }, 0, false).expect("it is made");
        assert_eq!((target.size_bytes, fs::metadata(&behind).expect("it is there").len()), (8192, 8192));
    }

    #[test]
    fn what_is_asked_for_must_be_in_the_file() {
        let folder = Folder::new("small");
        let job = folder.job("file", AccessPattern::RandRead);
        fs::write(&job.file, vec![7; 10_000]).expect("a file can be written");
        let target = check_target(&job, 0, false).expect("it is a file");
        assert_eq!((target.size_bytes, target.used_bytes, target.is_device), (10_000, 10_000, false));
        let part = StorageJob { offset_bytes: 4096, ..job.clone() };
        assert_eq!(check_target(&part, 0, false).map(|target| target.used_bytes), Ok(5904));
        for (wrong, flag) in [
            (StorageJob { size_bytes: Some(16_384), ..job.clone() }, "--size: "),
            (StorageJob { offset_bytes: 8192, ..job.clone() }, "--offset: "),
            (StorageJob { block_bytes: 1 << 20, ..job.clone() }, "--bs: "),
        ] {
            let text = refusal(&wrong);
            assert!(text.starts_with(flag) && text.contains("10000 bytes"), "{text}");
        }
        assert_eq!(fs::metadata(&job.file).expect("it is there").len(), 10_000);
    }

    #[test]
    fn a_share_is_of_the_whole_file_in_whole_blocks() {
        let folder = Folder::new("share");
        let job = StorageJob { size_percent: Some(50), ..folder.job("file", AccessPattern::Read) };
        assert!(refusal(&job).contains("does not exist"));
        fs::write(&job.file, vec![7; 100_000]).expect("a file can be written");
        let used = |job: StorageJob| check_target(&job, 0, false).map(|target| target.used_bytes);
        assert_eq!(used(job.clone()), Ok(49_152));
        assert_eq!(used(StorageJob { offset_bytes: 81_920, ..job.clone() }), Ok(16_384), "to the end");
        assert!(used(StorageJob { size_percent: Some(1), ..job }).is_err());
    }

    #[test]
    fn what_has_no_blocks_is_named() {
        let folder = Folder::new("kinds");
        assert!(refusal(&folder.job(".", AccessPattern::Read)).contains("is a folder"));
        let terminal = StorageJob { file: "/dev/null".into(), ..folder.job("x", AccessPattern::Write) };
        assert!(refusal(&terminal).contains("neither a regular file nor a block device"));
    }
}
