//! `weir dashboard` as it is typed.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Dashboard {
    /// Folder of studies [default: weir-results, where `weir study` writes]
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: Option<PathBuf>,
    /// Address and port. Everybody who reaches an address beyond this machine can read every study in the folder
    #[arg(long, default_value = "127.0.0.1:3000", value_name = "ADDRESS:PORT")]
    pub(crate) listen: String,
    /// A name that requests may be for, besides addresses and localhost; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
    /// Folder of recorded observations (weir observe --record FILE.json) to show too
    #[arg(long, value_name = "DIR")]
    pub(crate) records: Option<PathBuf>,
    /// Show the server behind this statistics socket, as weir top does, or auto: every `weir serve` of this user;
    /// repeatable
    #[arg(long, value_name = "@NAME|auto")]
    pub(crate) stats: Vec<String>,
    /// A client that gives the token in this file may start and stop studies; only its owner may read the file
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Folder of study files (NAME.toml) that may be started, besides built-in studies
    #[arg(long, value_name = "DIR", requires = "token_file")]
    pub(crate) studies: Option<PathBuf>,
    /// An origin whose pages may start and stop studies, such as http://lab.example:3000; repeatable, and needed where
    /// --listen is not of this machine alone
    #[arg(long, value_name = "ORIGIN", requires = "token_file")]
    pub(crate) origin: Vec<String>,
    /// Language for readers whose browser prefers none of en, ko and zh [default: the locale's]
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) lang: Option<String>,
}
