//! The file that jobs read: completely written with seeded data before the first read, so that every block has a
//! place on the device and none is a hole that the file system answers by itself. Files named by the user are never
//! changed.
//!
//! After the data there is one more block, the seal. It says that the file was made by weir and is complete, or, from
//! the first write on, is being laid out. A file without a seal belongs to somebody else and is left alone, whatever
//! its name.
//!
//! | bytes of the seal | field |
//! | --- | --- |
//! | 0..16 | `weir storage fil`; `weir storage lay` until the file is complete |
//! | 16..20 | version, 1 |
//! | 20..24 | CRC-32C of bytes 24 to 4096 |
//! | 24..32 | bytes of data before the seal |
//! | 32..40 | seed of the data |
//! | 40..4096 | zeros |
//!
//! Numbers are little-endian.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use crc32c::crc32c;
use rustix::{
    fs::{FallocateFlags, FlockOperation, OFlags, fallocate, flock, statvfs},
    io::Errno,
};
use weir_sys::placement::{EXTENTS_MAX, Extent, extents};

use crate::{
    engine::{
        AlignedBuffer,
        target::{filesystem, length_bytes},
    },
    verify::{fill, noise},
};

/// Length of the seal, and the multiple to which sizes are rounded up.
pub const SEAL_BYTES: u64 = 4096;

/// Size of the file if the user names none and there is room.
pub const SIZE_BYTES_DEFAULT: u64 = 256 << 20;

const MAGIC: [u8; 16] = *b"weir storage fil";
/// Magic number of an incomplete file.
const MAGIC_UNFINISHED: [u8; 16] = *b"weir storage lay";
const VERSION: u32 = 1;

/// Space left free on the file system, whatever size is requested: a twentieth of it, and at most this.
const SPARE_BYTES_MAX: u64 = 64 << 20;
const SPARE_PART: u64 = 20;

/// Bytes per write.
const CHUNK_BYTES: u64 = 1 << 20;

/// A file that is ready to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The file.
    pub path: PathBuf,
    /// Bytes of data, from the beginning, without the seal.
    pub data_bytes: u64,
    /// Whether it already existed.
    pub was_reused: bool,
}

/// Why there is no file to read.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// A system call failed.
    #[error("{path}: cannot {doing}: {source}")]
    System {
        /// The file.
        path: PathBuf,
        /// The failed step.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// There is not enough room.
    #[error(
        "{path}: laying out {needed} bytes needs {spare} more to stay free, and {available} are free; ask for a smaller size"
    )]
    NoSpace {
        /// The file.
        path: PathBuf,
        /// Bytes to be written.
        needed: u64,
        /// Bytes that stay free.
        spare: u64,
        /// Bytes that are free.
        available: u64,
    },
    /// A file with this name exists, and weir did not make it.
    #[error(
        "{0} exists and was not laid out by weir; name it as the job's file to read it as it is, or remove it"
    )]
    Foreign(PathBuf),
    /// A file with the temporary name exists, and weir did not make it.
    #[error(
        "{0} is in the way and was not left by weir, or too early to tell; move or remove it, or name another file"
    )]
    InTheWay(PathBuf),
    /// Another process is laying it out now.
    #[error("{0} is being laid out by another process; wait until it is there, or name another file")]
    Busy(PathBuf),
    /// The user interrupted it; nothing is left behind.
    #[error("interrupted")]
    Interrupted,
}

/// Creates the file, or finds one that matches: at least the requested size, rounded up to 4096, with the data of the
/// seed. `progress` receives the bytes done and the total.
pub fn prepare(
    path: &Path,
    size_bytes: u64,
    seed: u64,
    progress: &dyn Fn(u64, u64),
    interrupt: &AtomicBool,
) -> Result<Layout, LayoutError> {
    let data_bytes = size_bytes.max(1).next_multiple_of(SEAL_BYTES);
    let found = existing(path)?;
    if let Some(seal) = found
        && seal.seed == seed
        && seal.data_bytes >= data_bytes
        && is_whole(path)
    {
        return Ok(Layout { path: path.to_owned(), data_bytes: seal.data_bytes, was_reused: true });
    }
    check_space(path, data_bytes + SEAL_BYTES, found.is_some())?;
    let seal = Seal { data_bytes, seed };
    Partial::create(path, &seal)?.write(path, &seal, progress, interrupt)?;
    Ok(Layout { path: path.to_owned(), data_bytes, was_reused: false })
}

/// Derives the seed of a file's data from a common seed: no two files share a block that storage could deduplicate.
pub fn data_seed(path: &Path, seed: u64) -> u64 {
    let folder = folder(path);
    let place = folder
        .canonicalize()
        .unwrap_or_else(|_| folder.to_owned())
        .join(path.file_name().unwrap_or_default());
    // FNV-1a (Fowler, Noll and Vo) of the path.
    let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    noise(seed, place.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325, hash))
}

/// Bytes of data in a file that weir laid out; `None` for another file, or none.
pub fn data_bytes(path: &Path) -> Option<u64> {
    existing(path).ok().flatten().map(|seal| seal.data_bytes)
}

/// The size of an existing file of ours; otherwise 256 MiB, or a quarter of the free space if that is less, in whole
/// MiB and at least one. Thus the size does not follow the free space from run to run.
pub fn default_size_bytes(path: &Path) -> io::Result<u64> {
    if let Some(data_bytes) = data_bytes(path) {
        return Ok(data_bytes);
    }
    let quarter = available_bytes(path)? / 4;
    Ok((quarter.min(SIZE_BYTES_DEFAULT) & !(CHUNK_BYTES - 1)).max(CHUNK_BYTES))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seal {
    data_bytes: u64,
    seed: u64,
}

impl Seal {
    fn encode(self, magic: &[u8; 16], block: &mut [u8]) {
        block.fill(0);
        block[0..16].copy_from_slice(magic);
        block[16..20].copy_from_slice(&VERSION.to_le_bytes());
        block[24..32].copy_from_slice(&self.data_bytes.to_le_bytes());
        block[32..40].copy_from_slice(&self.seed.to_le_bytes());
        let checksum = crc32c(&block[24..]);
        block[20..24].copy_from_slice(&checksum.to_le_bytes());
    }

    /// The seal in the last block of a file of this length.
    fn decode(magic: &[u8; 16], block: &[u8], file_bytes: u64) -> Option<Self> {
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| block[at + index]));
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| block[at + index]));
        let is_known = block.len() as u64 == SEAL_BYTES
            && block[0..16] == *magic
            && word(16) == VERSION
            && word(20) == crc32c(&block[24..]);
        let seal = is_known.then(|| Self { data_bytes: number(24), seed: number(32) })?;
        (seal.data_bytes.checked_add(SEAL_BYTES) == Some(file_bytes)).then_some(seal)
    }
}

fn failed(path: &Path, doing: &'static str) -> impl Fn(io::Error) -> LayoutError {
    move |source| LayoutError::System { path: path.to_owned(), doing, source }
}

/// The seal of an existing file; `None` if there is no file. A file without our seal is an error.
fn existing(path: &Path) -> Result<Option<Seal>, LayoutError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path, "open it")(error)),
    };
    let metadata = file.metadata().map_err(failed(path, "examine it"))?;
    let foreign = || LayoutError::Foreign(path.to_owned());
    if !metadata.is_file() {
        return Err(foreign());
    }
    seal_of(&file, &[MAGIC]).map_err(failed(path, "read it"))?.map(Some).ok_or_else(foreign)
}

/// The seal at the end of a file, if it has one of these magic numbers.
fn seal_of(file: &File, magics: &[[u8; 16]]) -> io::Result<Option<Seal>> {
    let length = file.metadata()?.len();
    let at = length.checked_sub(SEAL_BYTES).filter(|at| at.is_multiple_of(SEAL_BYTES));
    let Some(at) = at else { return Ok(None) };
    // Aligned memory, because the read may bypass the page cache.
    let mut buffer = AlignedBuffer::new(SEAL_BYTES as usize);
    file.read_exact_at(buffer.as_mut(), at)?;
    Ok(magics.iter().find_map(|magic| Seal::decode(magic, buffer.as_mut(), length)))
}

/// Whether the file has no holes: a sealed file may have been copied with holes.
fn is_whole(path: &Path) -> bool {
    examine(path).is_ok_and(|standing| standing.missing.is_empty())
}

fn available_bytes(path: &Path) -> io::Result<u64> {
    let free = statvfs(folder(path))?;
    Ok(free.f_bavail.saturating_mul(free.f_frsize))
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Refuses a file that does not fit; removes our old file first if only its space makes the new one fit.
fn check_space(path: &Path, needed: u64, has_old: bool) -> Result<(), LayoutError> {
    let read = || available_bytes(path).map_err(failed(path, "read the free space"));
    let whole = statvfs(folder(path)).map_err(io::Error::from).map_err(failed(path, "read its size"))?;
    let spare = spare_bytes(whole.f_blocks.saturating_mul(whole.f_frsize));
    let fits = |available: u64| available >= needed.saturating_add(spare);
    let mut available = read()?;
    if !fits(available) && has_old {
        fs::remove_file(path).map_err(failed(path, "remove the old one"))?;
        available = read()?;
    }
    if fits(available) {
        Ok(())
    } else {
        Err(LayoutError::NoSpace { path: path.to_owned(), needed, spare, available })
    }
}

/// The space to leave free on a file system of this size.
fn spare_bytes(whole: u64) -> u64 {
    (whole / SPARE_PART).min(SPARE_BYTES_MAX)
}

/// The file under its temporary name. It is removed if this is dropped before the file gets its final name.
struct Partial {
    path: PathBuf,
    file: File,
    is_direct: bool,
    is_finished: bool,
}

impl Partial {
    /// Creates it, with a seal before anything else is written.
    fn create(path: &Path, seal: &Seal) -> Result<Self, LayoutError> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".laying-out");
        let partial = path.with_file_name(name);
        let is_made = match OpenOptions::new().write(true).create_new(true).mode(0o644).open(&partial) {
            Ok(_) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(failed(&partial, "create it")(error)),
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        // A link with this name would lead to a file that is not ours.
        options.custom_flags(OFlags::NOFOLLOW.bits() as i32);
        let flags = OFlags::NOFOLLOW | OFlags::DIRECT;
        let direct = options.clone().custom_flags(flags.bits() as i32).open(&partial);
        let is_direct = direct.is_ok();
        let file = direct.or_else(|_| options.open(&partial)).map_err(failed(&partial, "open it"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {
                if is_made {
                    // Another process locked it first, and will leave it alone, because it has no seal yet.
                    let _: io::Result<()> = fs::remove_file(&partial);
                }
                return Err(LayoutError::Busy(path.to_owned()));
            }
            result => result.map_err(io::Error::from).map_err(failed(&partial, "lock it"))?,
        }
        // The previous holder of the lock may have renamed this very file to its final name.
        let held = file.metadata().map_err(failed(&partial, "examine it"))?;
        let is_named = fs::symlink_metadata(&partial)
            .is_ok_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino()));
        if !is_named {
            return Err(LayoutError::Busy(path.to_owned()));
        }
        if !is_made {
            // Left by a killed run, or made by another program.
            let left = seal_of(&file, &[MAGIC_UNFINISHED, MAGIC]).map_err(failed(&partial, "read it"))?;
            if left.is_none() {
                return Err(LayoutError::InTheWay(partial));
            }
        }
        let mut made = Self { path: partial, file, is_direct, is_finished: false };
        // Its last block is a seal of ours at every moment.
        let sealed = made.write_seal(&MAGIC_UNFINISHED, seal);
        let sealed = sealed.and_then(|()| made.file.set_len(seal.data_bytes + SEAL_BYTES));
        sealed.map_err(failed(path, "write it")).map(|()| made)
    }

    fn write_seal(&mut self, magic: &[u8; 16], seal: &Seal) -> io::Result<()> {
        let mut buffer = AlignedBuffer::new(SEAL_BYTES as usize);
        seal.encode(magic, buffer.as_mut());
        self.write_all_at(buffer.as_mut(), seal.data_bytes)
    }

    fn write(
        mut self,
        path: &Path,
        seal: &Seal,
        progress: &dyn Fn(u64, u64),
        interrupt: &AtomicBool,
    ) -> Result<(), LayoutError> {
        let writing = failed(path, "write it");
        // For a contiguous file and an early error about space; some file systems do not support it.
        let reserved = fallocate(&self.file, FallocateFlags::empty(), 0, seal.data_bytes + SEAL_BYTES);
        if let Err(Errno::NOSPC) = reserved {
            return Err(writing(Errno::NOSPC.into()));
        }
        let mut buffer = AlignedBuffer::new(CHUNK_BYTES as usize);
        let mut done = 0;
        while done < seal.data_bytes {
            if interrupt.load(Ordering::Relaxed) {
                return Err(LayoutError::Interrupted);
            }
            let bytes = CHUNK_BYTES.min(seal.data_bytes - done);
            let chunk = &mut buffer.as_mut()[..bytes as usize];
            fill(seal.seed, done, chunk);
            self.write_all_at(chunk, done).map_err(&writing)?;
            done += bytes;
            progress(done, seal.data_bytes);
        }
        // Data first: a complete seal must never reach the device before its data.
        self.file.sync_data().map_err(&writing)?;
        self.write_seal(&MAGIC, seal).map_err(&writing)?;
        self.file.sync_all().map_err(&writing)?;
        // Writing took a while: another file with this name may exist now.
        existing(path)?;
        fs::rename(&self.path, path).map_err(failed(path, "give it its name"))?;
        self.is_finished = true;
        File::open(folder(path)).and_then(|folder| folder.sync_all()).map_err(failed(path, "sync its folder"))
    }

    /// A file system may accept `O_DIRECT` at opening and refuse it later.
    fn write_all_at(&mut self, bytes: &[u8], offset_bytes: u64) -> io::Result<()> {
        match self.file.write_all_at(bytes, offset_bytes) {
            Err(error) if self.is_direct && error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                rustix::fs::fcntl_setfl(&self.file, OFlags::empty())?;
                self.is_direct = false;
                self.file.write_all_at(bytes, offset_bytes)
            }
            result => result,
        }
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.is_finished {
            // If this fails, the next run takes over the temporary name.
            let _: io::Result<()> = fs::remove_file(&self.path);
        }
    }
}

/// How a file lies on its device, and what that means for measurements on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Name of the file system.
    pub filesystem: String,
    /// Contiguous pieces; 0 if unknown.
    pub extents: usize,
    /// Why measurements on this file say nothing about a device; empty if they do.
    pub refusals: Vec<String>,
    /// The subset of these about parts of the file that are on no device.
    pub missing: Vec<String>,
}

/// Examines how a file or a block device lies on its device.
pub fn examine(path: &Path) -> io::Result<Standing> {
    let file = File::open(path)?;
    let mut standing = Standing { filesystem: filesystem(path), ..Standing::default() };
    if file.metadata()?.file_type().is_block_device() {
        return Ok(standing);
    }
    let reason = match standing.filesystem.as_str() {
        "tmpfs" | "ramfs" | "devtmpfs" => Some("keeps its files in memory: no device is read"),
        "overlay" => Some("passes reads on to another one, which is not known"),
        "nfs" | "cifs" | "9p" | "fuse" => Some("asks another program or machine: the device is not seen"),
        _ => None,
    };
    standing
        .refusals
        .extend(reason.map(|reason| format!("the file system {} {reason}", standing.filesystem)));
    match extents(&file) {
        Ok(found) => {
            standing.extents = found.len();
            // Nothing is known about the file after the end of a truncated list.
            let listed = found.last().filter(|_| found.len() >= EXTENTS_MAX);
            let known = listed.map_or(u64::MAX, |last| last.offset_bytes.saturating_add(last.bytes));
            standing.missing = missing(&found, length_bytes(&file)?.min(known));
            standing.refusals.extend(standing.missing.iter().cloned());
        }
        Err(_) if reason.is_some() => {}
        Err(error) => standing.refusals.push(format!("how the file lies is not known: {error}")),
    }
    Ok(standing)
}

/// Sentences about the parts of the first `length` bytes that are on no device.
fn missing(pieces: &[Extent], length: u64) -> Vec<String> {
    let end = |piece: &Extent| piece.offset_bytes.saturating_add(piece.bytes);
    let sum = |is: fn(&Extent) -> bool| -> u64 {
        pieces
            .iter()
            .filter(|piece| is(piece))
            .map(|piece| end(piece).min(length).saturating_sub(piece.offset_bytes))
            .sum()
    };
    let covered = sum(|_| true);
    let parts = [
        (
            sum(|piece| piece.is_unwritten),
            "were allocated and never written: reads give zeros without the device",
        ),
        (length.saturating_sub(covered), "are holes: reads give zeros without the device"),
        (
            sum(|piece| piece.has_no_place),
            "have no separate place on the device (inline, compressed or not yet allocated)",
        ),
    ];
    parts
        .into_iter()
        .filter(|(bytes, _)| *bytes > 0)
        .map(|(bytes, what)| format!("{bytes} of {length} bytes {what}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, process};

    use super::*;

    /// A temporary folder, removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("weir-layout-{name}-{}", process::id()));
            fs::create_dir_all(&path).expect("a folder");
            Self(path)
        }

        fn file(&self) -> PathBuf {
            self.0.join("data")
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).expect("the folder").map(|entry| entry.expect("an entry"));
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _: io::Result<()> = fs::remove_dir_all(&self.0);
        }
    }

    fn lay(path: &Path, size_bytes: u64, seed: u64) -> Result<Layout, LayoutError> {
        prepare(path, size_bytes, seed, &|_, _| {}, &AtomicBool::new(false))
    }

    #[test]
    fn a_file_is_laid_out_with_its_data_and_nothing_else_is_left() {
        let folder = Folder::new("data");
        let told = RefCell::new(Vec::new());
        let size = 3 * CHUNK_BYTES + 5000;
        let layout = prepare(
            &folder.file(),
            size,
            9,
            &|done, all| told.borrow_mut().push((done, all)),
            &AtomicBool::new(false),
        )
        .expect("laid out");
        let data_bytes = 3 * CHUNK_BYTES + 8192;
        assert_eq!(layout, Layout { path: folder.file(), data_bytes, was_reused: false });
        let told = told.into_inner();
        assert_eq!(told.last(), Some(&(data_bytes, data_bytes)));
        assert!(told.windows(2).all(|pair| pair[0].0 < pair[1].0));
        let found = fs::read(folder.file()).expect("readable");
        let mut expected = vec![0; data_bytes as usize];
        fill(9, 0, &mut expected);
        assert_eq!(found.len() as u64, data_bytes + SEAL_BYTES);
        assert!(found[..data_bytes as usize] == expected[..], "the data is not that of the seed");
        assert_eq!(folder.names(), ["data"]);
        assert_eq!(examine(&folder.file()).expect("there").missing, Vec::<String>::new());
    }

    #[test]
    fn the_same_or_less_is_reused_and_anything_else_is_made_anew() {
        let folder = Folder::new("reuse");
        let path = folder.file();
        assert!(!lay(&path, 65_536, 1).expect("made").was_reused);
        assert!(lay(&path, 65_536, 1).expect("there").was_reused);
        let smaller = lay(&path, 4096, 1).expect("there");
        assert_eq!((smaller.was_reused, smaller.data_bytes), (true, 65_536));
        assert!(!lay(&path, 65_537, 1).expect("made").was_reused);
        assert!(!lay(&path, 65_536, 2).expect("made").was_reused);
        // A damaged seal does not count.
        let file = OpenOptions::new().write(true).open(&path).expect("ours");
        let length = file.metadata().expect("there").len();
        file.write_all_at(&[0xff], length - 1).expect("written");
        assert!(matches!(lay(&path, 65_536, 2), Err(LayoutError::Foreign(_))));
    }

    #[test]
    fn a_file_of_somebody_else_is_left_alone() {
        let folder = Folder::new("foreign");
        for content in [&b""[..], b"precious", &[7; 20_000]] {
            fs::write(folder.file(), content).expect("written");
            let error = lay(&folder.file(), 4096, 1).expect_err("refused");
            assert!(matches!(error, LayoutError::Foreign(_)), "{error}");
            assert_eq!(fs::read(folder.file()).expect("there"), content);
        }
        let error = lay(&folder.0, 4096, 1).expect_err("a folder");
        assert!(matches!(error, LayoutError::Foreign(_) | LayoutError::System { .. }), "{error}");
    }

    #[test]
    fn a_file_that_comes_into_the_way_meanwhile_is_left_alone() {
        let folder = Folder::new("meanwhile");
        let intrude = |_, _| fs::write(folder.file(), b"precious").expect("written");
        let error = prepare(&folder.file(), 4096, 1, &intrude, &AtomicBool::new(false)).expect_err("refused");
        assert!(matches!(error, LayoutError::Foreign(_)), "{error}");
        assert_eq!(fs::read(folder.file()).expect("there"), b"precious");
        assert_eq!(folder.names(), ["data"]);
    }

    #[test]
    fn a_link_under_the_temporary_name_is_not_followed() {
        let folder = Folder::new("link");
        fs::write(folder.0.join("theirs"), b"precious").expect("written");
        std::os::unix::fs::symlink("theirs", folder.0.join("data.laying-out")).expect("linked");
        let error = lay(&folder.file(), 4096, 1).expect_err("refused");
        assert!(matches!(error, LayoutError::System { .. }), "{error}");
        assert_eq!(fs::read(folder.0.join("theirs")).expect("there"), b"precious");
    }

    #[test]
    fn an_interruption_leaves_nothing_behind() {
        let folder = Folder::new("interrupt");
        let interrupt = AtomicBool::new(false);
        let stop = |_, _| interrupt.store(true, Ordering::Relaxed);
        let error = prepare(&folder.file(), 10 * CHUNK_BYTES, 1, &stop, &interrupt).expect_err("stopped");
        assert!(matches!(error, LayoutError::Interrupted), "{error}");
        assert!(folder.names().is_empty());
    }

    #[test]
    fn what_a_killed_run_left_is_taken_over_and_a_running_one_is_not() {
        let folder = Folder::new("killed");
        let partial = folder.0.join("data.laying-out");
        // The state after the first write.
        let killed = Partial::create(&folder.file(), &Seal { data_bytes: 1 << 20, seed: 7 }).expect("made");
        let left = fs::read(&partial).expect("there");
        drop(killed);
        fs::write(&partial, left).expect("written");
        let other = File::open(&partial).expect("there");
        flock(&other, FlockOperation::LockExclusive).expect("free");
        assert!(matches!(lay(&folder.file(), 4096, 1), Err(LayoutError::Busy(_))));
        assert_eq!(folder.names(), ["data.laying-out"]);
        drop(other);
        lay(&folder.file(), 4096, 1).expect("laid out");
        assert_eq!(folder.names(), ["data"]);
    }

    #[test]
    fn a_file_of_that_name_that_is_not_provably_ours_is_left_alone() {
        let folder = Folder::new("in-the-way");
        let theirs = folder.0.join("data.laying-out");
        for content in [&b""[..], b"precious", &[7; 20_000]] {
            fs::write(&theirs, content).expect("written");
            let error = lay(&folder.file(), 4096, 1).expect_err("refused");
            assert!(matches!(error, LayoutError::InTheWay(_)), "{error}");
            assert_eq!(fs::read(&theirs).expect("there"), content);
            assert_eq!(folder.names(), ["data.laying-out"]);
        }
    }

    #[test]
    fn a_small_file_system_need_not_keep_as_much_free_as_a_large_one() {
        assert_eq!(spare_bytes(100 << 20), 5 << 20);
        assert_eq!(spare_bytes(1 << 40), 64 << 20);
    }

    #[test]
    fn more_than_there_is_room_for_is_refused_before_it_begins() {
        let folder = Folder::new("space");
        let error = lay(&folder.file(), 1 << 60, 1).expect_err("too much");
        assert!(matches!(error, LayoutError::NoSpace { .. }), "{error}");
        assert!(folder.names().is_empty());
        let size = default_size_bytes(&folder.file()).expect("a size");
        assert!(size <= 256 << 20 && size.is_multiple_of(CHUNK_BYTES) && size > 0);
        // An existing file keeps its size.
        lay(&folder.file(), 8192, 1).expect("laid out");
        assert_eq!(default_size_bytes(&folder.file()).expect("a size"), 8192);
        assert_eq!(data_bytes(&folder.file()), Some(8192));
        assert_eq!(data_bytes(&folder.0.join("missing")), None);
    }

    #[test]
    fn a_folder_that_is_missing_is_said_so() {
        let error = lay(Path::new("/nonexistent-folder/data"), 4096, 1).expect_err("no folder");
        assert!(matches!(error, LayoutError::System { .. }), "{error}");
    }

    #[test]
    fn holes_and_unwritten_parts_are_counted() {
        let written = Extent {
            offset_bytes: 0,
            device_offset_bytes: 1 << 20,
            bytes: 4096,
            is_unwritten: false,
            has_no_place: false,
        };
        assert!(missing(&[written], 4096).is_empty());
        assert!(missing(&[written], 4000).is_empty(), "the last block may be longer than the file");
        let hole = missing(&[written], 10_000);
        assert_eq!(hole, ["5904 of 10000 bytes are holes: reads give zeros without the device"]);
        let unwritten = Extent { offset_bytes: 4096, is_unwritten: true, ..written };
        let found = missing(&[written, unwritten], 8192);
        assert!(found.len() == 1 && found[0].starts_with("4096 of 8192 bytes were allocated"), "{found:?}");
        let inline = Extent { has_no_place: true, ..written };
        assert_eq!(missing(&[inline], 4096).len(), 1);
        assert!(missing(&[], 0).is_empty());
    }

    #[test]
    fn a_sparse_file_cannot_stand_for_a_device() {
        let folder = Folder::new("sparse");
        File::create(folder.file()).expect("made").set_len(1 << 20).expect("grown");
        let standing = examine(&folder.file()).expect("there");
        assert!(!standing.refusals.is_empty(), "{standing:?}");
    }

    #[test]
    fn a_seal_is_read_as_it_was_written_and_only_at_its_place() {
        let seal = Seal { data_bytes: 8192, seed: 3 };
        let mut block = vec![1; SEAL_BYTES as usize];
        seal.encode(&MAGIC, &mut block);
        assert_eq!(Seal::decode(&MAGIC, &block, 8192 + SEAL_BYTES), Some(seal));
        assert_eq!(Seal::decode(&MAGIC, &block, 8192), None, "the file was cut or has grown");
        assert_eq!(Seal::decode(&MAGIC_UNFINISHED, &block, 8192 + SEAL_BYTES), None, "it is complete");
        for at in [0, 16, 20, 24, 32, 40, 4095] {
            let mut damaged = block.clone();
            damaged[at] ^= 1;
            assert_eq!(Seal::decode(&MAGIC, &damaged, 8192 + SEAL_BYTES), None, "byte {at}");
        }
    }
}
