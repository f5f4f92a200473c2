//! The reader, as far as pages depend on it: its language, and which parameters links must keep.

use std::{ffi::OsStr, path::PathBuf};

use weir_report::{Language, shell_word};

use crate::{packed::Taken, words::LocalizedText};

/// The reader, as far as pages depend on it.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    pub language: Language,
    /// The language was chosen in the address: links keep it.
    pub has_chosen: bool,
    /// There are pages of running servers, and of observations.
    pub has_servers: bool,
    pub has_observations: bool,
    /// What it takes of an answer.
    pub taken: Taken,
    /// The results folder as the dashboard was started with it, for readers on this machine; others need not know where
    /// it is.
    pub results: Option<PathBuf>,
}

impl Reader {
    /// A reader whose request is not looked at.
    pub(crate) fn of_no_request(language: Language, has_servers: bool, has_observations: bool) -> Self {
        let (taken, results) = (Taken::default(), None);
        Self { language, has_chosen: false, has_servers, has_observations, taken, results }
    }

    /// A run folder as a command on this machine names it. Other readers get its name alone.
    pub(crate) fn run_folder(&self, name: &OsStr) -> PathBuf {
        self.results.as_ref().map_or_else(|| PathBuf::from(name), |results| results.join(name))
    }

    /// The command that goes on with a study.
    pub(crate) fn resume(&self, name: &OsStr) -> String {
        format!("weir study --resume {}", shell_word(&self.run_folder(name).to_string_lossy()))
    }

    pub(crate) fn say(&self, text: LocalizedText) -> &'static str {
        self.language.choose(text)
    }

    /// An address with a query, in the language that was chosen.
    pub(crate) fn href(&self, path: &str, query: &[(&str, &str)]) -> String {
        let chosen = self.has_chosen.then(|| ("lang", self.language.code()));
        address(path, query.iter().copied().chain(chosen))
    }
}

/// An address with a query.
pub(crate) fn address<'q>(path: &str, query: impl Iterator<Item = (&'q str, &'q str)>) -> String {
    let query: Vec<String> = query.map(|(name, value)| format!("{name}={value}")).collect();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) }
}
