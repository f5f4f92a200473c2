//! Where a journal is, and what it must survive, from flags and file.

use std::path::PathBuf;

use anyhow::Result;
use weir_servers::journal::Level;

use super::arguments::JournalFlags;
use crate::exit::UsageError;

/// Flags go before the file. `None`: nothing is kept.
pub(super) fn place(
    flags: &JournalFlags,
    file: Option<(PathBuf, Level)>,
) -> Result<Option<(PathBuf, Level)>> {
    let level = match &flags.journal {
        Some(text) => Some(text.parse::<Level>().map_err(|error| UsageError(format!("--journal: {error}")))?),
        None => None,
    };
    let (directory, file_level) = file.unzip();
    match (flags.journal_dir.clone().or(directory), level.or(file_level)) {
        (_, Some(Level::None)) | (None, None) => Ok(None),
        (Some(directory), level) => Ok(Some((directory, level.unwrap_or(Level::Disk)))),
        (None, Some(level)) => {
            Err(UsageError(format!("--journal {level} needs a folder: add --journal-dir DIR")).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        flags: JournalFlags,
    }

    fn placed(words: &[&str], file: Option<(PathBuf, Level)>) -> Result<Option<(PathBuf, Level)>, String> {
        let line = Line::try_parse_from(["weir"].iter().chain(words)).expect("flags that are known");
        place(&line.flags, file).map_err(|error| error.to_string())
    }

    #[test]
    fn a_level_needs_a_folder_and_a_folder_has_a_level() {
        assert_eq!(placed(&[], None), Ok(None));
        assert_eq!(placed(&["--journal-dir", "j"], None), Ok(Some(("j".into(), Level::Disk))));
        let both = placed(&["--journal-dir", "j", "--journal", "os"], None);
        assert_eq!(both, Ok(Some(("j".into(), Level::Os))));
        assert_eq!(placed(&["--journal-dir", "j", "--journal", "none"], None), Ok(None));
        assert!(placed(&["--journal", "os"], None).is_err_and(|error| error.contains("--journal-dir")));
        assert!(placed(&["--journal", "fsync"], None).is_err_and(|error| error.contains("fsync")));
    }

    #[test]
    fn flags_go_before_the_file_each_by_itself() {
        let file = || Some(("f".into(), Level::Os));
        assert_eq!(placed(&[], file()), Ok(file()));
        assert_eq!(placed(&["--journal-dir", "j"], file()), Ok(Some(("j".into(), Level::Os))));
        assert_eq!(placed(&["--journal", "disk"], file()), Ok(Some(("f".into(), Level::Disk))));
        assert_eq!(placed(&["--journal", "none"], file()), Ok(None));
    }
}
