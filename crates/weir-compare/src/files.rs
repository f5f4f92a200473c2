//! Files that a command's words name: its program, a script, its input. If one changes while a comparison runs, the
//! runs are not of one program.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use blake2::{Blake2b128, Digest};
use weir_record::commands::CommandFile;

use crate::run::{RunSpec, program_path};

/// Most files of a command that are looked at.
const FILES_MAX: usize = 16;

/// Most bytes of a file that are hashed; for a longer file its length counts beside them.
const BYTES_MAX: u64 = 1 << 30;

/// Bytes that are read at a time.
const CHUNK_BYTES: usize = 1 << 16;

/// Folders whose files the kernel generates: their content changes, and reading them may have effects.
const OF_THE_KERNEL: [&str; 2] = ["/proc", "/sys"];

/// The files that the words of a run name, with their contents. Paths that are no regular file, or cannot be read, are
/// skipped. Once `stop` is set, nothing more is read.
pub(crate) fn named(spec: &RunSpec, stop: &AtomicBool) -> Vec<CommandFile> {
    let within =
        |path: &Path| spec.folder.as_ref().map_or_else(|| path.to_path_buf(), |folder| folder.join(path));
    let program = program_path(spec).ok().map(|path| within(&path));
    let arguments = spec.words.iter().skip(1).map(|word| within(Path::new(word)));
    let mut found: Vec<CommandFile> = Vec::new();
    for path in program.into_iter().chain(arguments).chain(spec.input.clone()) {
        let shown = path.to_string_lossy().into_owned();
        if found.len() < FILES_MAX && found.iter().all(|it| it.path != shown) {
            found.extend(read(&path, stop).ok().flatten());
        }
    }
    found
}

/// Paths of files that have changed. Once `stop` is set, nothing more is read or found.
pub(crate) fn changed(files: &[CommandFile], stop: &AtomicBool) -> Vec<String> {
    let is_changed =
        |file: &&CommandFile| read(Path::new(&file.path), stop).is_ok_and(|now| now.as_ref() != Some(*file));
    files.iter().filter(is_changed).map(|file| file.path.clone()).collect()
}

/// An interruption does not wait for a large file.
struct Stopped;

fn read(path: &Path, stop: &AtomicBool) -> Result<Option<CommandFile>, Stopped> {
    // A pipe would wait for a writer.
    let Some(metadata) = fs::metadata(path).ok().filter(fs::Metadata::is_file) else { return Ok(None) };
    if is_of_the_kernel(path) {
        return Ok(None);
    }
    let content = hash(path, stop);
    if stop.load(Ordering::Relaxed) {
        return Err(Stopped);
    }
    let path = path.to_string_lossy().into_owned();
    Ok(content.ok().map(|content| CommandFile { path, bytes: metadata.len(), content }))
}

fn is_of_the_kernel(path: &Path) -> bool {
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    OF_THE_KERNEL.iter().any(|folder| place.starts_with(folder))
}

/// The hash of a file; of a part of it if `stop` is set meanwhile.
fn hash(path: &Path, stop: &AtomicBool) -> io::Result<String> {
    let mut hash = Blake2b128::new();
    let mut file = File::open(path)?.take(BYTES_MAX);
    let mut chunk = vec![0; CHUNK_BYTES];
    while !stop.load(Ordering::Relaxed) {
        match file.read(&mut chunk)? {
            0 => break,
            length => hash.update(&chunk[..length]),
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, path::PathBuf, time::Duration};

    use super::*;
    use crate::run::OutputTo;

    /// Without an interruption.
    static ON: AtomicBool = AtomicBool::new(false);

    fn run(words: Vec<OsString>, folder: &Path) -> RunSpec {
        RunSpec {
            words,
            environment: Vec::new(),
            folder: Some(PathBuf::from(folder)),
            input: None,
            output: OutputTo::Digest,
            limit: Duration::from_secs(1),
        }
    }

    #[test]
    fn a_program_and_what_its_words_name_are_looked_at_and_changes_are_seen() {
        let folder = std::env::temp_dir().join(format!("weir-compare-files-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder can be made");
        fs::write(folder.join("script"), "one").expect("a file can be written");
        let words = ["sh", "script", "--level=3", "nowhere"].map(OsString::from);
        let found = named(&run(words.to_vec(), &folder), &ON);
        let names: Vec<&str> = found.iter().filter_map(|it| it.path.rsplit('/').next()).collect();
        assert_eq!(names, ["sh", "script"]);
        assert_eq!(changed(&found, &ON), [""; 0]);
        fs::write(folder.join("script"), "two").expect("a file can be written");
        assert_eq!(changed(&found, &ON), [folder.join("script").to_string_lossy()]);
        fs::remove_dir_all(&folder).expect("it can be removed");
        assert_eq!(changed(&found, &ON).len(), 1, "what is gone has changed");
    }

    #[test]
    fn what_the_kernel_says_is_no_file_and_who_interrupts_waits_for_none() {
        let words = ["/proc/self/exe", "/proc/self/status", "/sys/kernel/mm/transparent_hugepage/enabled"];
        let words: Vec<OsString> =
            ["weir-no-such-program"].into_iter().chain(words).map(OsString::from).collect();
        let found = named(&run(words, Path::new("/")), &ON);
        let paths: Vec<&str> = found.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(paths, ["/proc/self/exe"], "the program that it leads to is a file");
        let stop = AtomicBool::new(true);
        assert!(named(&run(vec!["/proc/self/exe".into()], Path::new("/")), &stop).is_empty());
        let other = CommandFile { content: String::new(), ..found[0].clone() };
        assert_eq!(changed(std::slice::from_ref(&other), &ON).len(), 1);
        assert_eq!(changed(&[other], &stop), [""; 0], "what was not read is not known to have changed");
    }

    #[test]
    fn a_command_has_so_many_files_and_no_more() {
        let folder = std::env::temp_dir().join(format!("weir-compare-many-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder can be made");
        let names: Vec<OsString> =
            (0..FILES_MAX + 3).map(|number| OsString::from(format!("{number}"))).collect();
        for name in &names {
            fs::write(folder.join(name), "x").expect("a file can be written");
        }
        let words: Vec<OsString> =
            std::iter::once(OsString::from("weir-no-such-program")).chain(names).collect();
        assert_eq!(named(&run(words, &folder), &ON).len(), FILES_MAX);
        fs::remove_dir_all(&folder).expect("it can be removed");
    }
}
