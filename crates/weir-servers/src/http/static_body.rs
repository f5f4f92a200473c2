//! Content that is the same in every reply, stored for as long as the program lives, so that every worker can send it
//! from there.
//!
//! Large content is in an unnamed file in memory (`memfd_create`), sealed so that it never changes. Its pages are in
//! the page cache, and `sendfile` puts them directly into packets: no reply copies them.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::OwnedFd,
    sync::{Arc, Mutex, PoisonError},
};

use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create},
    io::Errno,
};
use weir_engine::{SendBuf, fs::FilePart};
use weir_proto::content::Content;

use super::config::LargeContent;

/// Content from this size on is large. `sendfile` costs one call more than a copy, and a step through a pipe for each
/// 64 KiB; at 32 KiB a reply from pages nevertheless costs clearly less than a copied one, on epoll and on io_uring.
const LARGE_BYTES_MIN: usize = 32 << 10;

/// Stored content.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stored {
    Memory(&'static [u8]),
    Pages(&'static FilePart),
}

impl Stored {
    pub(super) const NOTHING: Self = Stored::Memory(&[]);

    /// Stores a content. Each is created once, for any number of servers.
    pub(super) fn of(content: Content, large: LargeContent) -> Self {
        static MADE: Mutex<Vec<(Content, LargeContent, Stored)>> = Mutex::new(Vec::new());
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, _, stored)) = made.iter().find(|(known, kind, _)| (*known, *kind) == (content, large))
        {
            return *stored;
        }
        let stored = Self::new(content.bytes(), large);
        made.push((content, large, stored));
        stored
    }

    fn new(bytes: Vec<u8>, large: LargeContent) -> Self {
        if large == LargeContent::PageCache
            && bytes.len() >= LARGE_BYTES_MIN
            && let Ok(file) = seal(&bytes)
            && let Ok(part) = FilePart::of_descriptor(Arc::new(file.into()), 0, bytes.len() as u64)
        {
            return Stored::Pages(Box::leak(Box::new(part)));
        }
        // If a kernel or a sandbox refuses this, the only cost is a copy for each reply.
        Stored::Memory(Box::leak(bytes.into_boxed_slice()))
    }

    pub(super) fn len(self) -> usize {
        match self {
            Stored::Memory(bytes) => bytes.len(),
            Stored::Pages(part) => part.len(),
        }
    }

    /// At most `length_max` bytes from `offset` on.
    pub(super) fn piece(self, offset: usize, length_max: usize) -> SendBuf {
        match self {
            Stored::Memory(bytes) => {
                let rest = bytes.get(offset..).unwrap_or_default();
                SendBuf::Static(&rest[..rest.len().min(length_max)])
            }
            Stored::Pages(part) => part.slice(offset, length_max).into(),
        }
    }
}

/// A file with these bytes that cannot be changed.
fn seal(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(without_name()?);
    file.write_all(bytes)?;
    fcntl_add_seals(&file, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
    Ok(file)
}

fn without_name() -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 do not know the flag; later ones log a warning without it.
    match memfd_create("weir-content", flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create("weir-content", flags),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn a_sealed_file_has_its_bytes_and_keeps_them() {
        let bytes = Content::Image.bytes();
        let file = seal(&bytes).expect("this kernel has files without a name");
        let mut found = vec![0; bytes.len() + 1];
        assert_eq!(file.read_at(&mut found, 0).expect("it can be read"), bytes.len());
        assert!(found.starts_with(&bytes));
        for outcome in [file.write_at(b"x", 0).map(drop), file.set_len(1), file.set_len(1 << 20)] {
            let error = outcome.expect_err("it is sealed");
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
        }
    }

    #[test]
    fn only_large_content_lies_in_pages_and_only_if_it_shall() {
        let is_in_pages = |length, large| {
            let stored = Stored::new(vec![0; length], large);
            assert_eq!(stored.len(), length);
            matches!(stored, Stored::Pages(_))
        };
        assert!(is_in_pages(LARGE_BYTES_MIN, LargeContent::PageCache));
        assert!(!is_in_pages(LARGE_BYTES_MIN - 1, LargeContent::PageCache));
        assert!(!is_in_pages(LARGE_BYTES_MIN, LargeContent::Memory));
    }

    #[test]
    fn pieces_end_where_the_content_does() {
        for large in [LargeContent::Memory, LargeContent::PageCache] {
            let stored = Stored::new(vec![7; 40_000], large);
            let length = |offset, length_max| match stored.piece(offset, length_max) {
                SendBuf::Static(bytes) => bytes.len(),
                SendBuf::File(part) => part.len(),
                other => panic!("{other:?} lies nowhere forever"),
            };
            assert_eq!(length(0, usize::MAX), 40_000);
            assert_eq!(length(0, 30_000), 30_000);
            assert_eq!(length(30_000, 30_000), 10_000);
            assert_eq!(length(40_000, 1), 0);
            assert_eq!(length(50_000, 1), 0);
        }
    }

    #[test]
    fn equal_contents_are_made_once() {
        let memory = || match Stored::of(Content::Image, LargeContent::Memory) {
            Stored::Memory(bytes) => bytes,
            Stored::Pages(part) => panic!("{part:?} is no memory of ours"),
        };
        assert!(std::ptr::eq(memory(), memory()));
        assert_eq!(memory(), Content::Image.bytes());
        let pages = || match Stored::of(Content::Image, LargeContent::PageCache) {
            Stored::Pages(part) => part,
            Stored::Memory(_) => panic!("no file in memory can be had here"),
        };
        assert!(std::ptr::eq(pages(), pages()));
    }
}
