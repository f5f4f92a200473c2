//! `weir dashboard` as it is typed.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Dashboard {
    /// Folder of studies [default: weir-results, where `weir study` writes]
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
    /// Address and port. Whoever reaches one that is not of this machine alone can read every study in the folder
    #[arg(long, default_value = "127.0.0.1:3000", value_name = "ADDRESS:PORT")]
    pub(crate) listen: String,
    /// A name that requests may be for, besides addresses and localhost; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
    /// Language for readers whose browser prefers none of en, ko and zh [default: that of the locale]
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) lang: Option<String>,
}
