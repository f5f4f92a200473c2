//! Files that a command's words name: its program, a script, what it reads. If one changes while a comparison runs,
//! its runs are not of one program.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use blake2::{Blake2b128, Digest};
use weir_record::commands::CommandFile;

use crate::run::{RunSpec, program_path};

/// Most files of a command that are looked at.
const FILES_MAX: usize = 16;

/// Most bytes of a file that are looked at; of a longer one its length counts beside them.
const BYTES_MAX: u64 = 1 << 30;

/// Bytes that are read at a time.
const CHUNK_BYTES: usize = 1 << 16;

/// The files that the words of a run name, with their contents. What is no regular file, or cannot be read, is none.
pub(crate) fn named(spec: &RunSpec) -> Vec<CommandFile> {
    let within =
        |path: &Path| spec.folder.as_ref().map_or_else(|| path.to_path_buf(), |folder| folder.join(path));
    let program = program_path(spec).ok().map(|path| within(&path));
    let arguments = spec.words.iter().skip(1).map(|word| within(Path::new(word)));
    let mut found: Vec<CommandFile> = Vec::new();
    for path in program.into_iter().chain(arguments).chain(spec.input.clone()) {
        let shown = path.to_string_lossy().into_owned();
        if found.len() < FILES_MAX && found.iter().all(|it| it.path != shown) {
            found.extend(read(&path));
        }
    }
    found
}

/// Paths of those that are not as they were.
pub(crate) fn changed(files: &[CommandFile]) -> Vec<String> {
    let is_changed = |file: &&CommandFile| read(Path::new(&file.path)).as_ref() != Some(*file);
    files.iter().filter(is_changed).map(|file| file.path.clone()).collect()
}

fn read(path: &Path) -> Option<CommandFile> {
    // A pipe would wait for a writer.
    let bytes = fs::metadata(path).ok().filter(fs::Metadata::is_file)?.len();
    let content = hash(path).ok()?;
    Some(CommandFile { path: path.to_string_lossy().into_owned(), bytes, content })
}

fn hash(path: &Path) -> io::Result<String> {
    let mut hash = Blake2b128::new();
    let mut file = File::open(path)?.take(BYTES_MAX);
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
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
        let found = named(&run(words.to_vec(), &folder));
        let names: Vec<&str> = found.iter().filter_map(|it| it.path.rsplit('/').next()).collect();
        assert_eq!(names, ["sh", "script"]);
        assert_eq!(changed(&found), [""; 0]);
        fs::write(folder.join("script"), "two").expect("a file can be written");
        assert_eq!(changed(&found), [folder.join("script").to_string_lossy()]);
        fs::remove_dir_all(&folder).expect("it can be removed");
        assert_eq!(changed(&found).len(), 1, "what is gone has changed");
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
        assert_eq!(named(&run(words, &folder)).len(), FILES_MAX);
        fs::remove_dir_all(&folder).expect("it can be removed");
    }
}
