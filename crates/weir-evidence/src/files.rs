//! Reads small kernel files. A file that is missing or unreadable is `None`: both mean "not known here".

use std::{fs::File, io::Read, path::Path};

/// Largest kernel file read; `/proc/stat` of a machine with thousands of CPUs stays below it.
const FILE_BYTES_MAX: usize = 4 << 20;

/// The whole file, with bytes that are not UTF-8 replaced (a thread may have any name).
pub(crate) fn read_text(path: impl AsRef<Path>) -> Option<String> {
    read_or_cut(path).map(|(text, _)| text)
}

/// The same, and whether the file is longer than the limit, so that the text ends in the middle of a line.
pub(crate) fn read_or_cut(path: impl AsRef<Path>) -> Option<(String, bool)> {
    let mut file = File::open(path).ok()?;
    let mut bytes = vec![0; 4096];
    let (mut filled, mut is_cut) = (0, false);
    // Plain reads: `read_to_end` would query the size first, which kernel files lack.
    loop {
        match file.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
        if filled == bytes.len() {
            if filled >= FILE_BYTES_MAX {
                is_cut = true;
                break;
            }
            bytes.resize(filled * 2, 0);
        }
    }
    bytes.truncate(filled);
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    Some((text, is_cut))
}

/// The trimmed file; `None` if it is empty.
pub(crate) fn read_value(path: impl AsRef<Path>) -> Option<String> {
    let text = read_text(path)?;
    let value = text.trim();
    (!value.is_empty()).then(|| value.to_owned())
}

/// Names in a directory that are numbers (processes, threads), ascending.
pub(crate) fn numbered_entries(path: impl AsRef<Path>) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let mut numbers: Vec<u32> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Whether a program with this name is in a folder of `PATH`.
pub(crate) fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_longer_than_what_is_read_is_said_to_be_cut() {
        let path = std::env::temp_dir().join(format!("weir-files-{}", std::process::id()));
        for (bytes, is_cut) in [(FILE_BYTES_MAX - 1, false), (FILE_BYTES_MAX + 1, true)] {
            std::fs::write(&path, vec![b'a'; bytes]).expect("it can be written");
            let (text, was_cut) = read_or_cut(&path).expect("it is there");
            assert_eq!((text.len(), was_cut), (bytes.min(FILE_BYTES_MAX), is_cut));
        }
        std::fs::remove_file(&path).expect("it was made");
        assert_eq!(read_or_cut(&path), None);
    }

    #[test]
    fn programs_are_found_where_shells_find_them() {
        assert!(is_in_path("sh") && !is_in_path("no-program-is-called-this"));
    }
}
