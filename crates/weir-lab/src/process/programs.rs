//! The files that servers are started from: their programs, and the files among the words of a foreign command,
//! because an interpreted program is such a file.
//!
//! A program is looked up as the system does when it starts the arm: on the `PATH` of the arm's environment, and from
//! the arm's folder.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use rustix::fs::Access;
use weir_evidence::program_file::Contents;
use weir_record::{
    finding::Finding,
    spec::{ArmStart, Subject},
};

use crate::{
    launch::TrialRequest,
    protocol::{self, start::Program},
};

/// Most files of a command that are read besides its program.
const FILES_MAX: usize = 8;

/// Largest of these files, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The variable with the folders of programs.
const PATH: &str = "PATH";

/// Result of looking up a program's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    File(PathBuf),
    /// It names a file that is made for each trial, or is looked for there first. Such a word has a brace.
    InTrial,
    Nowhere,
}

/// How an arm's programs are looked up.
pub(super) struct Lookup<'a> {
    bin: String,
    folder: Option<&'a str>,
    path: OsString,
}

impl<'a> Lookup<'a> {
    /// For an arm with this start, with the laboratory's program and its `PATH`, if it has one.
    pub(super) fn new(weir: &Path, start: &'a ArmStart, own_path: Option<OsString>) -> Self {
        let bin = weir.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
        let of_arm = start.environment.get(PATH).map(|path| OsString::from(path.replace("{bin}", &bin)));
        let path = of_arm.or(own_path).unwrap_or_default();
        Self { bin, folder: start.folder.as_deref(), path }
    }

    /// The file that the system would start by this name.
    pub(super) fn find(&self, program: &str) -> Found {
        let name = self.named(program);
        let folders: Vec<PathBuf> = match name.contains('/') {
            true => vec![PathBuf::new()],
            false => std::env::split_paths(&self.path).collect(),
        };
        for file in folders.iter().map(|folder| self.seen_in_folder(&folder.join(&name))) {
            if file.to_string_lossy().contains('{') {
                return Found::InTrial;
            }
            if is_program(&file) {
                return Found::File(file);
            }
        }
        Found::Nowhere
    }

    /// Why a program cannot be started by this name.
    pub(super) fn not_there(&self, program: &str) -> Option<Finding> {
        if self.find(program) != Found::Nowhere {
            return None;
        }
        let name = self.named(program);
        Some(match name.contains('/') {
            true => {
                Finding::NoProgram { program: self.seen_in_folder(Path::new(&name)).display().to_string() }
            }
            false => Finding::NotOnPath { program: name },
        })
    }

    fn named(&self, word: &str) -> String {
        word.replace("{bin}", &self.bin)
    }

    /// A path relative to the arm's folder.
    fn seen_in_folder(&self, path: &Path) -> PathBuf {
        self.folder.map_or_else(|| path.to_path_buf(), |folder| Path::new(folder).join(path))
    }
}

fn is_program(file: &Path) -> bool {
    rustix::fs::access(file, Access::EXEC_OK).is_ok() && file.is_file()
}

/// The files that the servers of an arm are started from, each with a hash of its content. Files made for each trial
/// or study are not included.
pub(super) fn of_arm(
    contents: &mut Contents,
    weir: &Path,
    request: &TrialRequest<'_>,
    own_path: Option<OsString>,
) -> BTreeMap<String, String> {
    let lookup = Lookup::new(weir, &request.arm.start, own_path);
    let program = |name: &str| match lookup.find(name) {
        Found::File(file) => Some(file),
        Found::InTrial | Found::Nowhere => None,
    };
    let mut files: Vec<PathBuf> = Vec::new();
    for start in protocol::of(request.cell).servers(request) {
        match start.program {
            Program::Weir => files.push(start.build.map_or_else(|| weir.to_path_buf(), PathBuf::from)),
            Program::Foreign => {
                let mut words = start.words.iter();
                files.extend(words.next().and_then(|name| program(name)));
                let words = words.map(|word| lookup.seen_in_folder(Path::new(&lookup.named(word))));
                files.extend(words.filter(|word| is_small_file(word)).take(FILES_MAX));
            }
        }
    }
    match &request.arm.subject {
        Subject::Storage(_) => files.push(weir.to_path_buf()),
        Subject::Fio { program: name, .. } => files.extend(program(name)),
        Subject::Weir { .. } | Subject::Command { .. } | Subject::Running(_) | Subject::Gateway(_) => {}
    }
    files.into_iter().filter_map(|file| Some((file.display().to_string(), contents.of(&file)?))).collect()
}

fn is_small_file(word: &Path) -> bool {
    word.metadata().is_ok_and(|found| found.is_file() && found.len() <= FILE_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starting(folder: Option<&str>, path: Option<&str>) -> ArmStart {
        let environment = path.map(|path| (PATH.to_owned(), path.to_owned())).into_iter().collect();
        ArmStart { environment, folder: folder.map(str::to_owned), ..ArmStart::default() }
    }

    /// Looks up with the laboratory's program in /bin.
    fn find(start: &ArmStart, program: &str) -> Found {
        Lookup::new(Path::new("/bin/weir"), start, Some("/nonexistent:/bin".into())).find(program)
    }

    fn file(path: &str) -> Found {
        Found::File(PathBuf::from(path))
    }

    #[test]
    fn a_program_is_looked_for_as_the_system_does() {
        let plain = starting(None, None);
        let lookup = Lookup::new(Path::new("/bin/weir"), &plain, Some("/nonexistent:/bin".into()));
        let found = |program: &str| lookup.not_there(program);
        assert_eq!([found("sh"), found("/bin/sh"), found("{scratch}/server")], [None, None, None]);
        let program = "weir-no-such-server".to_owned();
        assert_eq!(found(&program), Some(Finding::NotOnPath { program: program.clone() }));
        for program in ["/bin/weir-no-such-server", "/bin", "/etc/passwd"] {
            assert_eq!(found(program), Some(Finding::NoProgram { program: program.to_owned() }));
        }
    }

    #[test]
    fn the_path_of_an_arm_takes_the_place_of_the_laboratorys() {
        assert_eq!(find(&starting(None, None), "sh"), file("/bin/sh"));
        assert_eq!(find(&starting(None, Some("/nonexistent")), "sh"), Found::Nowhere);
        assert_eq!(find(&starting(None, Some("/nonexistent:{bin}")), "sh"), file("/bin/sh"));
        // Relative to the folder of the arm, like a program with a path.
        assert_eq!(find(&starting(Some("/"), Some("bin")), "sh"), file("/bin/sh"));
        assert_eq!(find(&starting(Some("/"), None), "bin/sh"), file("/bin/sh"));
        assert_eq!(find(&starting(Some("/bin"), Some("")), "sh"), file("/bin/sh"), "an empty one is here");
        // A setup may put another program into the folder that is searched first.
        assert_eq!(find(&starting(None, Some("{scratch}:/bin")), "sh"), Found::InTrial);
        assert_eq!(find(&starting(None, Some("/bin:{scratch}")), "sh"), file("/bin/sh"));
    }
}
