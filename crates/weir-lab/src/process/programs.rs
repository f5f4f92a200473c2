//! The files that servers are started from: their programs, and of a foreign command the files among its words, which
//! for an interpreted program are the program.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    path::{Path, PathBuf},
};

use weir_evidence::program_file::Contents;
use weir_record::spec::Subject;

use super::{file_of, in_folder};
use crate::{
    launch::TrialRequest,
    protocol::{self, start::Program},
};

/// Most files of a command that are read beside its program.
const FILES_MAX: usize = 8;

/// Largest of them.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// What the servers of an arm are started from, each file with a hash of its content. What is made for
/// each trial or study is none of them: a word that names it has a brace.
pub(super) fn of_arm(
    contents: &mut Contents,
    weir: &Path,
    request: &TrialRequest<'_>,
    path: &OsStr,
) -> BTreeMap<String, String> {
    let folder = weir.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    let named = |word: &str| word.replace("{bin}", &folder);
    let mut files: Vec<PathBuf> = Vec::new();
    for start in protocol::of(request.cell).servers(request) {
        match start.program {
            Program::Weir => files.push(start.build.map_or_else(|| weir.to_path_buf(), PathBuf::from)),
            Program::Foreign => {
                let mut words = start.words.iter().map(|word| named(word));
                let program = words.next().map(|program| in_folder(&program, &request.arm.start));
                files.extend(program.and_then(|program| file_of(&program, path)));
                files.extend(words.map(PathBuf::from).filter(|word| is_small_file(word)).take(FILES_MAX));
            }
        }
    }
    match &request.arm.subject {
        Subject::Storage(_) => files.push(weir.to_path_buf()),
        Subject::Fio { program, .. } => files.extend(file_of(&named(program), path)),
        Subject::Weir { .. } | Subject::Command { .. } | Subject::Running(_) | Subject::Gateway(_) => {}
    }
    files.into_iter().filter_map(|file| Some((file.display().to_string(), contents.of(&file)?))).collect()
}

fn is_small_file(word: &Path) -> bool {
    word.metadata().is_ok_and(|found| found.is_file() && found.len() <= FILE_BYTES_MAX)
}
