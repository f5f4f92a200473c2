//! Reading small kernel files. A file that is missing or may not be read is `None`: both mean "not known here".

use std::{fs::File, io::Read, path::Path};

/// Largest kernel file read; `/proc/stat` of a machine with thousands of CPUs stays below it.
const FILE_BYTES_MAX: usize = 4 << 20;

/// The whole file, with bytes that are not UTF-8 replaced (a thread may call itself anything).
pub(crate) fn read_text(path: impl AsRef<Path>) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let mut bytes = vec![0; 4096];
    let mut filled = 0;
    // Plain reads: `read_to_end` would ask for the size first, which kernel files do not have.
    loop {
        match file.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
        if filled == bytes.len() {
            if filled >= FILE_BYTES_MAX {
                break;
            }
            bytes.resize(filled * 2, 0);
        }
    }
    bytes.truncate(filled);
    Some(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// The file without white space around it; `None` when nothing is left.
pub(crate) fn read_value(path: impl AsRef<Path>) -> Option<String> {
    let text = read_text(path)?;
    let value = text.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

/// Names in a directory that are numbers (processes, threads), rising.
pub(crate) fn numbered_entries(path: impl AsRef<Path>) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let mut numbers: Vec<u32> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}
