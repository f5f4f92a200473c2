//! Flags of the journal, the same for everything that keeps one.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct JournalFlags {
    /// What an acknowledged message must survive: none, os (the end of the process) or disk (a loss of power) [default:
    /// that of the file, or disk; none with --demo and no --journal-dir]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) journal: Option<String>,
    /// Folder of the journals [default: that of the file]
    #[arg(long, value_name = "DIR")]
    pub(crate) journal_dir: Option<PathBuf>,
}
