//! Program files: a hash of their content, and the build settings embedded in a build of Weir. No program is started.

use std::{
    collections::BTreeMap,
    fs::{File, Metadata},
    io::Read,
    os::unix::fs::MetadataExt,
    path::Path,
};

use blake2::{Blake2b, Digest, digest::consts::U16};

/// Largest file that is read. A larger one is no program.
const BYTES_MAX: u64 = 1 << 30;

/// Most files whose hashes are cached.
const FILES_MAX: usize = 256;

/// Longest text of a build.
const BUILD_BYTES_MAX: usize = 160;

/// The text between profile and optimisation level in the build text.
const MARK: &[u8] = b", opt-level ";

/// Hashes of files, each computed once while the file does not change.
#[derive(Debug, Default)]
pub struct Contents {
    known: BTreeMap<Identity, String>,
}

/// Device, inode, bytes, modification time and status change time. The latter cannot be set.
type Identity = (u64, u64, u64, (i64, i64), (i64, i64));

fn identity(file: &Metadata) -> Identity {
    let (changed, touched) = ((file.mtime(), file.mtime_nsec()), (file.ctime(), file.ctime_nsec()));
    (file.dev(), file.ino(), file.size(), changed, touched)
}

impl Contents {
    /// A hash of the file's content (BLAKE2b, 128 bits); `None` if it is not a file, too large or unreadable.
    pub fn of(&mut self, path: &Path) -> Option<String> {
        let file = File::open(path).ok()?;
        let found = file.metadata().ok()?;
        if !found.is_file() || found.len() > BYTES_MAX {
            return None;
        }
        let identity = identity(&found);
        if let Some(known) = self.known.get(&identity) {
            return Some(known.clone());
        }
        let hash = hash(file)?;
        if self.known.len() >= FILES_MAX {
            self.known.clear();
        }
        self.known.insert(identity, hash.clone());
        Some(hash)
    }
}

fn hash(mut file: File) -> Option<String> {
    let (mut hash, mut bytes) = (Blake2b::<U16>::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut bytes).ok()? {
            0 => break,
            count => hash.update(&bytes[..count]),
        }
    }
    Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Build settings of a Weir program, from the text that each contains: profile, optimisation level, compiler. `None`
/// for every other program.
pub fn build_of(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?.take(BYTES_MAX);
    let mut bytes = Vec::new();
    // The end of each part is searched again with the next one: the text may span both.
    loop {
        let from = bytes.len();
        let read = file.by_ref().take(1 << 20).read_to_end(&mut bytes).ok()?;
        let found = bytes.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
        if let Some(build) = found.into_iter().find_map(|(place, _)| build_at(&bytes, place)) {
            return Some(build);
        }
        if read == 0 {
            return None;
        }
        bytes.drain(..from.saturating_sub(BUILD_BYTES_MAX));
    }
}

/// The build text around its mark, if there is one: `release, opt-level 3, lto off, rustc 1.88.0`.
fn build_at(bytes: &[u8], place: usize) -> Option<String> {
    let profile = ["release", "debug"].into_iter().find(|it| bytes[..place].ends_with(it.as_bytes()))?;
    let end = bytes.len().min(place + BUILD_BYTES_MAX);
    let is_text = |byte: &u8| byte.is_ascii_alphanumeric() || b", .-".contains(byte);
    let rest: Vec<u8> = bytes[place..end].iter().copied().take_while(is_text).collect();
    let rest = String::from_utf8(rest).ok()?;
    let (settings, compiler) = rest.split_once(", rustc ")?;
    let version: String = compiler.chars().take_while(|it| it.is_ascii_digit() || *it == '.').collect();
    let is_version = version.split('.').count() == 3 && version.split('.').all(|part| !part.is_empty());
    is_version.then(|| format!("{profile}{settings}, rustc {version}"))
}

#[cfg(test)]
mod tests {
    use std::{env, fs, path::PathBuf, process};

    use super::*;

    fn path(name: &str) -> PathBuf {
        env::temp_dir().join(format!("weir-program-file-{}-{name}", process::id()))
    }

    #[test]
    fn a_file_is_read_again_when_it_was_replaced_and_not_otherwise() {
        let (program, other) = (path("program"), path("other"));
        fs::write(&program, b"one").expect("it can be written");
        let mut contents = Contents::default();
        let first = contents.of(&program).expect("it is a file");
        assert_eq!(first.len(), 32);
        assert_eq!(contents.of(&program).as_ref(), Some(&first));
        assert_eq!(contents.known.len(), 1, "nothing was read twice");
        fs::write(&other, b"two").expect("it can be written");
        fs::rename(&other, &program).expect("it can be replaced");
        assert_ne!(contents.of(&program), Some(first.clone()));
        fs::write(&program, b"one").expect("it can be written");
        assert_eq!(contents.of(&program), Some(first), "it is the content that counts");
        fs::remove_file(&program).expect("it was there");
        assert_eq!((contents.of(&program), contents.of(&env::temp_dir())), (None, None));
    }

    #[test]
    fn the_hash_is_that_of_blake2b() {
        // `b2sum --length 128` of an empty file.
        let empty = path("empty");
        fs::write(&empty, b"").expect("it can be written");
        assert_eq!(Contents::default().of(&empty).as_deref(), Some("cae66941d9efbd404e4d88758ea67670"));
        fs::remove_file(&empty).expect("it was there");
    }

    #[test]
    fn a_build_of_weir_says_how_it_was_made_and_other_programs_say_nothing() {
        let found = |before: usize, text: &str, after: usize| {
            let program = path("build");
            let bytes = [vec![0; before], text.as_bytes().to_vec(), vec![b'x'; after]].concat();
            fs::write(&program, bytes).expect("it can be written");
            let found = build_of(&program);
            fs::remove_file(&program).expect("it was there");
            found
        };
        let release = "release, opt-level 3, codegen-units 1, lto off, rustc 1.88.0";
        let debug = "debug, opt-level 1, codegen-units 16, lto off, rustc 1.90.1";
        assert_eq!(found(0, release, 0).as_deref(), Some(release));
        assert_eq!(found(9, debug, 70).as_deref(), Some(debug));
        for cut in [10, 40, 63] {
            assert_eq!(found((1 << 20) - cut, release, 3 << 20).as_deref(), Some(release), "{cut}");
        }
        assert_eq!(found(3, "a debug, opt-level of a server", 9), None);
        assert_eq!(build_of(Path::new("/bin/sh")), None);
    }
}
