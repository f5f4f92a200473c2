//! The common part of the configuration files of a gateway and of an exchange: TOML whose every error names its line
//! and key, and the tables of accounts and of the journal.

use std::{
    collections::HashSet,
    fmt::Display,
    path::{Path, PathBuf},
    str::FromStr,
};

use serde::{Deserialize, de::DeserializeOwned};
use toml::Spanned;
use weir_proto::soup::Name;

use super::{ACCOUNTS_MAX, AccountConfig, is_password_hash, worker::session_name};
use crate::journal::Level;

/// Largest configuration file.
const FILE_BYTES_MAX: usize = 16 << 20;

/// An error in a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {message}", path.display())]
pub struct ConfigError {
    /// The file.
    pub path: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// The key and the error.
    pub message: String,
}

/// An error, and its position in the text.
pub(crate) struct FieldError {
    pub(crate) at: usize,
    pub(crate) message: String,
}

pub(crate) fn invalid<T>(at: usize, message: impl Into<String>) -> Result<T, FieldError> {
    Err(FieldError { at, message: message.into() })
}

/// Reads the tables of a file and converts them. The path is used only in messages.
pub(crate) fn read<F: DeserializeOwned, T>(
    path: &Path,
    text: &str,
    resolve: impl FnOnce(F) -> Result<T, FieldError>,
) -> Result<T, ConfigError> {
    let fail = |error: FieldError| {
        let line = text.bytes().take(error.at).filter(|byte| *byte == b'\n').count() + 1;
        ConfigError { path: path.to_path_buf(), line, message: error.message }
    };
    if text.len() > FILE_BYTES_MAX {
        return invalid(0, format!("the file is longer than {} MiB", FILE_BYTES_MAX >> 20)).map_err(fail);
    }
    let file = toml::from_str(text).map_err(|error: toml::de::Error| FieldError {
        at: error.span().map_or(0, |span| span.start),
        message: error.message().trim_end().replace('\n', "; "),
    });
    file.and_then(resolve).map_err(fail)
}

pub(crate) fn parsed<T>(key: &str, text: Option<&Spanned<String>>) -> Result<Option<T>, FieldError>
where
    T: FromStr<Err: Display>,
{
    let Some(text) = text else { return Ok(None) };
    match text.get_ref().parse() {
        Ok(value) => Ok(Some(value)),
        Err(error) => invalid(text.span().start, format!("{key}: {error}")),
    }
}

pub(crate) fn named<const N: usize>(key: &str, text: &Spanned<String>) -> Result<Name<N>, FieldError> {
    let wrong = || FieldError {
        at: text.span().start,
        message: format!("{key} {:?}: write 1 to {N} printable ASCII characters", text.get_ref()),
    };
    let name: Name<N> = text.get_ref().parse().map_err(|_| wrong())?;
    if name.is_blank() { Err(wrong()) } else { Ok(name) }
}

/// The name of the first session. Later sessions have derived names.
pub(crate) fn session_named(text: &Spanned<String>) -> Result<Name<10>, FieldError> {
    let name = named("session", text)?;
    session_name(&name, 0).map_err(|message| FieldError { at: text.span().start, message })
}

pub(crate) fn within<N: PartialOrd + Copy + Display>(
    key: &str,
    value: &Spanned<N>,
    lowest: N,
    highest: N,
) -> Result<N, FieldError> {
    let number = *value.get_ref();
    if (lowest..=highest).contains(&number) {
        return Ok(number);
    }
    invalid(value.span().start, format!("{key}: {number} must be from {lowest} to {highest}"))
}

/// The folder of the journals, and their level of durability.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JournalTable {
    directory: PathBuf,
    level: Option<Spanned<String>>,
}

impl JournalTable {
    pub(crate) fn resolve(self) -> Result<(PathBuf, Level), FieldError> {
        let level = parsed("level", self.level.as_ref())?.unwrap_or(Level::Disk);
        Ok((self.directory, level))
    }
}

/// The accounts that may log in.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AccountTable {
    pub(crate) name: Spanned<String>,
    pub(crate) password_hash: Spanned<String>,
    #[serde(default)]
    pub(crate) cancel_on_disconnect: bool,
    #[serde(default)]
    pub(crate) takeover: bool,
}

pub(crate) fn accounts(tables: Vec<AccountTable>) -> Result<Vec<AccountConfig>, FieldError> {
    if tables.is_empty() {
        return invalid(0, "there is no [[account]]: no client could log in");
    }
    if tables.len() > ACCOUNTS_MAX {
        return invalid(0, format!("there are more than {ACCOUNTS_MAX} accounts"));
    }
    let mut names = HashSet::new();
    let mut accounts = Vec::with_capacity(tables.len());
    for account in tables {
        let name: Name<6> = named("name", &account.name)?;
        if !names.insert(name.folded()) {
            let message = format!("there are two accounts {:?}; case does not matter", name.as_str());
            return invalid(account.name.span().start, message);
        }
        if !is_password_hash(account.password_hash.get_ref()) {
            let message = "password_hash: this is no Argon2id hash; `weir ctl hash-password` makes one";
            return invalid(account.password_hash.span().start, message);
        }
        accounts.push(AccountConfig {
            name,
            password_hash: account.password_hash.into_inner().into(),
            cancel_on_disconnect: account.cancel_on_disconnect,
            takeover: account.takeover,
        });
    }
    Ok(accounts)
}
