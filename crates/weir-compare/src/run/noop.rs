//! The smallest program: it ends. A run of it costs what the kernel takes to start and end any program, so Weir's part
//! in a run can be distinguished from the program's.

use std::{
    ffi::CString,
    fs::File,
    io::{self, Write},
    os::fd::AsRawFd,
};

use rustix::fs::{MemfdFlags, memfd_create};

/// Where it is loaded.
const ADDRESS: u64 = 0x40_0000;

/// Bytes before its instructions: the head of the file and of its one segment.
const HEAD_BYTES: u64 = 64 + 56;

/// `exit(0)`.
#[cfg(target_arch = "x86_64")]
const INSTRUCTIONS: Option<&[u8]> = Some(&[0x31, 0xff, 0xb8, 0x3c, 0, 0, 0, 0x0f, 0x05]);
#[cfg(target_arch = "aarch64")]
const INSTRUCTIONS: Option<&[u8]> = Some(&[0, 0, 0x80, 0xd2, 0xa8, 0x0b, 0x80, 0xd2, 0x01, 0, 0, 0xd4]);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const INSTRUCTIONS: Option<&[u8]> = None;

/// The number of this kind of machine in a program's head.
const MACHINE: u16 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };

/// The program, in memory.
#[derive(Debug)]
pub(super) struct Noop(File);

impl Noop {
    /// Makes it.
    ///
    /// # Errors
    /// When this kind of machine has none, or no file can be made in memory.
    pub(super) fn new() -> io::Result<Self> {
        let instructions = INSTRUCTIONS.ok_or(io::ErrorKind::Unsupported)?;
        let mut file = File::from(memfd_create("weir-noop", MemfdFlags::CLOEXEC)?);
        file.write_all(&image(instructions))?;
        Ok(Self(file))
    }

    /// Path by which a child of this process executes it.
    pub(super) fn path(&self) -> CString {
        let path = format!("/proc/self/fd/{}", self.0.as_raw_fd());
        CString::new(path).unwrap_or_default()
    }
}

/// An ELF file of one segment, as `elf(5)` has it.
fn image(instructions: &[u8]) -> Vec<u8> {
    let bytes = HEAD_BYTES + instructions.len() as u64;
    let mut image = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let half = |image: &mut Vec<u8>, number: u16| image.extend(number.to_le_bytes());
    let word = |image: &mut Vec<u8>, number: u32| image.extend(number.to_le_bytes());
    let long = |image: &mut Vec<u8>, number: u64| image.extend(number.to_le_bytes());
    // An executable of this machine, with its first instruction; segments begin behind this head.
    half(&mut image, 2);
    half(&mut image, MACHINE);
    word(&mut image, 1);
    long(&mut image, ADDRESS + HEAD_BYTES);
    long(&mut image, 64);
    long(&mut image, 0);
    word(&mut image, 0);
    for number in [64, 56, 1, 0, 0, 0] {
        half(&mut image, number);
    }
    // The whole file is loaded, to be read and executed.
    word(&mut image, 1);
    word(&mut image, 5);
    for number in [0, ADDRESS, ADDRESS, bytes, bytes, 0x1000] {
        long(&mut image, number);
    }
    image.extend(instructions);
    image
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn it_ends_without_an_error() {
        let Some(instructions) = INSTRUCTIONS else { return };
        assert_eq!(image(instructions).len() as u64, HEAD_BYTES + instructions.len() as u64);
        let program = Noop::new().expect("it can be made");
        let path = program.path().into_string().expect("it is text");
        assert!(Command::new(path).status().expect("it can be executed").success());
    }
}
