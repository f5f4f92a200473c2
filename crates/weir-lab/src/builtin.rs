//! Built-in studies: study files that are part of the program, read by the same parser as a user's.

use std::path::Path;

use crate::{
    host_defaults::HostDefaults,
    study_file::{self, FileError, Study},
};

/// A study that can be named without a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltIn {
    /// Its name.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

macro_rules! built_in {
    ($name:literal, $path:literal) => {
        BuiltIn { name: $name, text: include_str!(concat!($path, $name, ".toml")) }
    };
}

/// All built-in studies.
pub const ALL: [BuiltIn; 12] = [
    built_in!("quick", "../studies/"),
    built_in!("why", "../../../docs/studies/"),
    built_in!("tps", "../studies/"),
    built_in!("tps-http", "../studies/"),
    built_in!("http", "../studies/"),
    built_in!("http-confounders", "../studies/"),
    built_in!("survey", "../studies/"),
    built_in!("survey-storage", "../studies/"),
    built_in!("peers-echo", "../../../docs/studies/"),
    built_in!("peers-http", "../../../docs/studies/"),
    built_in!("gateway", "../studies/"),
    built_in!("polling", "../studies/"),
];

/// Studies of single options of io_uring, which the guidance of a map names. They are part of the program because an
/// installation has no study files beside it.
pub const OF_OPTIONS: [BuiltIn; 6] = [
    built_in!("uring-send-zc", "../../../docs/studies/"),
    built_in!("uring-minimum-wait", "../../../docs/studies/"),
    built_in!("uring-bundle", "../../../docs/studies/"),
    built_in!("uring-sqpoll", "../../../docs/studies/"),
    built_in!("uring-sqpoll-two-cpus", "../../../docs/studies/"),
    built_in!("uring-fixed-files", "../../../docs/studies/"),
];

impl BuiltIn {
    /// The study of this name.
    pub fn named(name: &str) -> Option<Self> {
        ALL.into_iter().chain(OF_OPTIONS).find(|study| study.name == name)
    }

    /// Names of its plans beside the usual one, as `--levels` takes them.
    pub fn plans(&self) -> Vec<String> {
        study_file::plans(self.text)
    }

    /// Names of its arms, as `--arm` takes them with `--only-arms`.
    pub fn arms(&self) -> Vec<String> {
        study_file::arms(self.text)
    }

    /// The study, with the defaults of this host filled in.
    pub fn study(&self, host_defaults: &HostDefaults) -> Result<Study, FileError> {
        study_file::parse(Path::new(&format!("{}.toml", self.name)), self.text, host_defaults)
    }
}
