//! Files of one test, removed when it ends.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::random::Random;

/// A unique path in the folder for temporary files.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A path without a file.
    pub fn new(random: &mut Random) -> Self {
        let name = format!("weir-scratch-{}-{:016x}", std::process::id(), random.next());
        Self(std::env::temp_dir().join(name))
    }

    /// A file with these bytes.
    pub fn with(random: &mut Random, bytes: &[u8]) -> Self {
        let scratch = Self::new(random);
        fs::write(&scratch.0, bytes).expect("the folder for temporary files can be written");
        scratch
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The file's contents now, as other processes see them.
    pub fn bytes(&self) -> Vec<u8> {
        fs::read(&self.0).expect("it is there")
    }

    /// Truncates the file.
    pub fn truncate(&self, length: u64) {
        let file = fs::OpenOptions::new().write(true).open(&self.0).expect("it is there");
        file.set_len(length).expect("a file can be cut");
    }

    /// Asks the kernel to drop the file's pages from memory, so that the next read has to wait for the disk. A file
    /// system without a disk keeps them.
    pub fn forget_pages(&self) {
        let file = fs::File::open(&self.0).expect("it is there");
        file.sync_all().expect("it can be synced");
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("a file takes advice");
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A test that failed may not have created it.
        let _ = fs::remove_file(&self.0);
    }
}
