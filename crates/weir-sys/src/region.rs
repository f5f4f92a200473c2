//! Page-aligned anonymous memory with a stable address, for buffers that the kernel writes.
//!
//! Invariants: (1) `base` is the start of a private anonymous mapping of exactly `length_bytes` bytes that this
//! value owns; (2) the mapping is zero-filled by the kernel, so every byte is initialised from the start.

use std::{io, ptr::NonNull};

/// An owned anonymous mapping. Dropping it unmaps: the owner must have ended all kernel operations on it.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    length_bytes: usize,
}

impl Region {
    /// Maps `length_bytes` of zeroed memory, rounded up to whole pages by the kernel.
    pub fn new(length_bytes: usize) -> io::Result<Self> {
        if length_bytes == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: a fresh private anonymous mapping at an address the kernel chooses aliases nothing.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(address.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self { base, length_bytes })
    }

    /// First byte. Valid for `length_bytes()` bytes while `self` lives.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Length in bytes.
    pub fn length_bytes(&self) -> usize {
        self.length_bytes
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: invariant 1: the mapping is ours and has this length; it is not used after the owner drops it.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.length_bytes) };
    }
}
