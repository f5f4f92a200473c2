//! Opens the file or device of a job as the job needs it, and reports problems before the run.

use std::{
    fs::{self, File, FileType, OpenOptions},
    io::{self, Seek, SeekFrom},
    num::NonZeroU64,
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::Path,
};

use rustix::{
    fs::{Advice, OFlags, fadvise},
    io::Errno,
};
use weir_record::storage::StorageJob;
use weir_sys::placement::direct_alignment;

use super::{EngineError, writes};

/// Alignment for `O_DIRECT` if the kernel does not report it (before 6.1).
const ALIGNMENT_BYTES_COMMON: u32 = 512;

/// Opens the file of a job: for writing only if the job writes, with `O_DIRECT` if it is requested. Never creates.
pub fn open(job: &StorageJob) -> Result<File, EngineError> {
    let failed = |source: io::Error| EngineError::Open { path: job.file.clone(), source };
    let metadata = fs::metadata(&job.file).map_err(failed)?;
    if let Some(kind) = kind_without_blocks(metadata.file_type()) {
        return Err(EngineError::NotBlocks { path: job.file.clone(), kind });
    }
    let mut options = OpenOptions::new();
    options.read(true).write(writes(job.pattern));
    if job.direct {
        options.custom_flags(OFlags::DIRECT.bits() as i32);
    }
    let file = match options.open(&job.file) {
        Err(error) if job.direct && error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
            return Err(no_direct(job));
        }
        result => result.map_err(failed)?,
    };
    check_region(job, length_bytes(&file).map_err(failed)?)?;
    if job.direct {
        check_alignment(job, &file)?;
    }
    if job.advises_order {
        let order = if job.pattern.is_random() { Advice::Random } else { Advice::Sequential };
        // This is only advice; a file system that ignores it still works.
        let _ = fadvise(&file, job.offset_bytes, job.size_bytes.and_then(NonZeroU64::new), order);
    }
    Ok(file)
}

/// Asks the page cache to drop the part of the file that the job uses, so that reads come from the device. Pages
/// under writeback, and pages mapped by other processes, stay.
pub fn drop_cache(job: &StorageJob) -> io::Result<()> {
    let file = File::open(&job.file)?;
    let used = job.size_bytes.and_then(NonZeroU64::new);
    Ok(fadvise(&file, job.offset_bytes, used, Advice::DontNeed)?)
}

/// Bytes of a file or a block device.
pub fn length_bytes(mut file: &File) -> io::Result<u64> {
    let length = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    Ok(length)
}

fn kind_without_blocks(kind: FileType) -> Option<&'static str> {
    let kinds = [
        (kind.is_dir(), "a directory"),
        (kind.is_char_device(), "a character device"),
        (kind.is_fifo(), "a pipe"),
        (kind.is_socket(), "a socket"),
    ];
    kinds.into_iter().find_map(|(is, name)| is.then_some(name))
}

fn no_direct(job: &StorageJob) -> EngineError {
    EngineError::NoDirect { path: job.file.clone(), filesystem: filesystem(Path::new(&job.file)) }
}

fn check_region(job: &StorageJob, has: u64) -> Result<(), EngineError> {
    let block_bytes = u64::from(job.block_bytes);
    let size_bytes = job.size_bytes.unwrap_or(block_bytes);
    if size_bytes < block_bytes {
        return Err(EngineError::Unsupported(format!(
            "{}: a size of {size_bytes} bytes has no room for one block of {block_bytes}",
            job.file
        )));
    }
    let from = job.offset_bytes;
    let to = from.saturating_add(size_bytes);
    if to > has {
        return Err(EngineError::TooSmall { path: job.file.clone(), from, to, has });
    }
    Ok(())
}

fn check_alignment(job: &StorageJob, file: &File) -> Result<(), EngineError> {
    let multiple = match direct_alignment(file) {
        Ok(Some(alignment)) if alignment.offset_bytes == 0 => return Err(no_direct(job)),
        Ok(Some(alignment)) => alignment.offset_bytes,
        Ok(None) | Err(_) => ALIGNMENT_BYTES_COMMON,
    };
    let numbers = [("a block", u64::from(job.block_bytes)), ("an offset", job.offset_bytes)];
    for (what, bytes) in numbers {
        if !bytes.is_multiple_of(multiple.into()) {
            return Err(EngineError::Misaligned { path: job.file.clone(), what, bytes, multiple });
        }
    }
    Ok(())
}

/// Name of the file system of a path.
pub fn filesystem(path: &Path) -> String {
    // From `linux/magic.h` and `man 2 statfs`.
    const KNOWN: [(u64, &str); 16] = [
        (0xef53, "ext4"),
        (0x5846_5342, "xfs"),
        (0x9123_683e, "btrfs"),
        (0xf2f5_2010, "f2fs"),
        (0x2fc1_2fc1, "zfs"),
        (0xca45_1a4e, "bcachefs"),
        (0x0102_1994, "tmpfs"),
        (0x8584_58f6, "ramfs"),
        (0x794c_7630, "overlay"),
        (0x6969, "nfs"),
        (0xff53_4d42, "cifs"),
        (0x6573_5546, "fuse"),
        (0x0102_1997, "9p"),
        (0x9fa0, "proc"),
        (0x6265_6572, "sysfs"),
        (0x1373_6373, "devtmpfs"),
    ];
    let Ok(found) = rustix::fs::statfs(path) else { return "unknown".to_owned() };
    // The field's type depends on the architecture, and its value has 32 bits.
    let magic = found.f_type as u64 & 0xffff_ffff;
    let name = KNOWN.iter().find(|(known, _)| *known == magic);
    name.map_or_else(|| format!("type {magic:#x}"), |(_, name)| (*name).to_owned())
}
