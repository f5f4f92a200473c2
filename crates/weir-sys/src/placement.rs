//! The location of a file's bytes: its extents, and the alignment that direct I/O needs. Nothing here moves data.
//!
//! Sources: `Documentation/filesystems/fiemap.rst` and `include/uapi/linux/fiemap.h`; `statx(2)`.

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
};

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: u64 = 0xc020_660b;
/// Write dirty pages first, which ends delayed allocation.
const FIEMAP_SYNC: u32 = 1;
const FIEMAP_LAST: u32 = 1;
/// Records of one call.
const EXTENTS_OF_ONE_CALL: usize = 128;
/// A longer list is cut here: such a file is fragmented in any case.
pub const EXTENTS_MAX: usize = 1 << 16;

/// One contiguous piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Offset in the file.
    pub offset_bytes: u64,
    /// Offset on the device; meaningless if `has_no_place`.
    pub device_offset_bytes: u64,
    /// Length.
    pub bytes: u64,
    /// Allocated and never written: reads return zeros without device access.
    pub is_unwritten: bool,
    /// Without a separate place on the device: still in memory, compressed, or inside metadata.
    pub has_no_place: bool,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct RawMap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [RawExtent; EXTENTS_OF_ONE_CALL],
}

const _: () = assert!(size_of::<RawExtent>() == 56);
const _: () = assert!(std::mem::offset_of!(RawMap, extents) == 32);

/// Extents of a file in ascending order; the gaps are holes. Fails with `EOPNOTSUPP` if the file system does not
/// support it.
pub fn extents(file: impl AsFd) -> io::Result<Vec<Extent>> {
    const UNKNOWN_DELAYED_ENCODED: u32 = 0x2 | 0x4 | 0x8;
    const ENCRYPTED_INLINE_TAIL: u32 = 0x80 | 0x200 | 0x400;
    const UNWRITTEN: u32 = 0x800;
    let mut found = Vec::new();
    let mut start = 0;
    while found.len() < EXTENTS_MAX {
        let mut map = RawMap {
            start,
            length: u64::MAX - start,
            flags: FIEMAP_SYNC,
            mapped_extents: 0,
            extent_count: EXTENTS_OF_ONE_CALL as u32,
            reserved: 0,
            extents: [RawExtent::default(); EXTENTS_OF_ONE_CALL],
        };
        // SAFETY: `map` is one correctly laid out request with room for as many records as it says.
        let result = unsafe { libc::ioctl(file.as_fd().as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut map) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let mapped = &map.extents[..(map.mapped_extents as usize).min(EXTENTS_OF_ONE_CALL)];
        found.extend(mapped.iter().map(|raw| Extent {
            offset_bytes: raw.logical,
            device_offset_bytes: raw.physical,
            bytes: raw.length,
            is_unwritten: raw.flags & UNWRITTEN != 0,
            has_no_place: raw.flags & (UNKNOWN_DELAYED_ENCODED | ENCRYPTED_INLINE_TAIL) != 0,
        }));
        match mapped.last() {
            Some(last) if last.flags & FIEMAP_LAST == 0 => start = last.logical.saturating_add(last.length),
            _ => break,
        }
    }
    Ok(found)
}

/// Alignment that `O_DIRECT` needs for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectAlignment {
    /// Alignment of memory addresses.
    pub memory_bytes: u32,
    /// Alignment of offsets and lengths.
    pub offset_bytes: u32,
}

/// Alignment that `O_DIRECT` needs for this file (`STATX_DIOALIGN`, 6.1). `None` if the kernel does not report it;
/// zeros mean that the file does not support direct I/O.
pub fn direct_alignment(file: impl AsFd) -> io::Result<Option<DirectAlignment>> {
    let mut found = std::mem::MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the empty path with AT_EMPTY_PATH names the descriptor itself; `found` has room for one record.
    let result = unsafe {
        libc::statx(
            file.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_DIOALIGN,
            found.as_mut_ptr(),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all-zero is a valid value, and the kernel has filled it in.
    let found = unsafe { found.assume_init() };
    if found.stx_mask & libc::STATX_DIOALIGN == 0 {
        return Ok(None);
    }
    Ok(Some(DirectAlignment {
        memory_bytes: found.stx_dio_mem_align,
        offset_bytes: found.stx_dio_offset_align,
    }))
}
