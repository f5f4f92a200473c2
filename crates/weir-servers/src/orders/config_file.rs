//! The common part of the configuration files of a gateway and of an exchange: TOML whose every error names its line
//! and key, and the tables of accounts and of the journal.

use std::{
    collections::HashSet,
    fmt::{self, Display},
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use serde::{Deserialize, de::DeserializeOwned};
use toml::{
    Spanned,
    de::{DeTable, DeValue, Deserializer},
};
use weir_proto::soup::Name;

use super::{ACCOUNTS_MAX, AccountConfig, is_password_hash, worker::session_name};
use crate::journal::Level;

/// Largest configuration file.
const FILE_BYTES_MAX: usize = 16 << 20;

/// Most errors that are reported of one file.
const ERRORS_MAX: usize = 100;

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

/// All errors in a configuration that could be found at once, in the order of their lines; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    /// The errors.
    pub fn all(&self) -> &[ConfigError] {
        &self.0
    }
}

impl Display for ConfigErrors {
    /// A line for each.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, error) in self.0.iter().enumerate() {
            let begin = if place == 0 { "" } else { "\n" };
            write!(formatter, "{begin}{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// An error, and its position in the text.
pub(crate) struct FieldError {
    pub(crate) at: usize,
    pub(crate) message: String,
}

impl From<toml::de::Error> for FieldError {
    fn from(error: toml::de::Error) -> Self {
        let at = error.span().map_or(0, |span| span.start);
        Self { at, message: error.message().trim_end().replace('\n', "; ") }
    }
}

pub(crate) fn invalid<T>(at: usize, message: impl Into<String>) -> Result<T, FieldError> {
    Err(FieldError { at, message: message.into() })
}

/// The errors found so far: a wrong key does not hide the next one.
#[derive(Default)]
pub(crate) struct FieldErrors(Vec<FieldError>);

impl FieldErrors {
    /// The value, or nothing and one more error.
    pub(crate) fn keep<T>(&mut self, outcome: Result<T, FieldError>) -> Option<T> {
        outcome.map_err(|error| self.0.push(error)).ok()
    }
}

/// Reads the tables of a file and converts them. `resolve` returns nothing only if it has found an error. The path is
/// used only in messages.
pub(crate) fn read<F: DeserializeOwned, T>(
    path: &Path,
    text: &str,
    resolve: impl FnOnce(F, &mut FieldErrors) -> Option<T>,
) -> Result<T, ConfigErrors> {
    let mut errors = FieldErrors::default();
    let read = match tables(text, &mut errors) {
        Some(file) => resolve(file, &mut errors),
        None => None,
    };
    match read {
        Some(read) if errors.0.is_empty() => Ok(read),
        _ => Err(in_lines(path, text, errors)),
    }
}

/// Errors with their lines.
fn in_lines(path: &Path, text: &str, FieldErrors(mut errors): FieldErrors) -> ConfigErrors {
    errors.sort_by_key(|error| error.at);
    let left_out = errors.len().saturating_sub(ERRORS_MAX);
    errors.truncate(ERRORS_MAX);
    let error = |FieldError { at, message }: FieldError| {
        let line = text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
        ConfigError { path: path.to_path_buf(), line, message }
    };
    let mut all: Vec<ConfigError> = errors.into_iter().map(error).collect();
    if let Some(last) = all.last_mut().filter(|_| left_out > 0) {
        last.message.push_str(&format!("; {left_out} more errors are not listed"));
    }
    ConfigErrors(all)
}

/// The tables of a file. If one is wrong, each is read by itself, so that all errors are found.
fn tables<F: DeserializeOwned>(text: &str, errors: &mut FieldErrors) -> Option<F> {
    if text.len() > FILE_BYTES_MAX {
        return errors.keep(invalid(0, format!("the file is longer than {} MiB", FILE_BYTES_MAX >> 20)));
    }
    let (table, wrong) = DeTable::parse_recoverable(text);
    if !wrong.is_empty() {
        errors.0.extend(wrong.into_iter().map(FieldError::from));
        return None;
    }
    match F::deserialize(Deserializer::from(table.clone())) {
        Ok(file) => Some(file),
        Err(first) => {
            let before = errors.0.len();
            for alone in single_tables(table) {
                errors.keep(F::deserialize(Deserializer::from(alone)).map_err(FieldError::from));
            }
            if errors.0.len() == before {
                errors.0.push(first.into());
            }
            None
        }
    }
}

/// The same file in parts: each has one table, or one key.
fn single_tables(table: Spanned<DeTable<'_>>) -> impl Iterator<Item = Spanned<DeTable<'_>>> {
    let span = table.span();
    table.into_inner().into_iter().flat_map(move |(key, value)| {
        let of_value = value.span();
        let parts: Vec<DeValue<'_>> = match value.into_inner() {
            DeValue::Array(array) if array.iter().all(|one| one.get_ref().is_table()) => {
                let one = |one| DeValue::Array(std::iter::once(one).collect());
                array.into_iter().map(one).collect()
            }
            other => vec![other],
        };
        let span = span.clone();
        parts.into_iter().map(move |part| {
            let mut alone = DeTable::new();
            alone.insert(key.clone(), Spanned::new(of_value.clone(), part));
            Spanned::new(span.clone(), alone)
        })
    })
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

/// The hash of a password.
pub(crate) fn password_hash(text: &Spanned<String>) -> Result<Arc<str>, FieldError> {
    if is_password_hash(text.get_ref()) {
        return Ok(text.get_ref().as_str().into());
    }
    let message = "password_hash: this is no Argon2id hash; `weir ctl hash-password` makes one";
    invalid(text.span().start, message)
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
    /// Seconds before that. An exchange has no such key.
    #[serde(skip)]
    pub(crate) cancel_after_s: Option<Spanned<u64>>,
    #[serde(default)]
    pub(crate) takeover: bool,
}

/// Longest time that a client has to come back before its orders are cancelled.
const CANCEL_AFTER_S_MAX: u64 = 600;

fn cancel_after(account: &AccountTable) -> Result<Duration, FieldError> {
    let Some(seconds) = &account.cancel_after_s else { return Ok(Duration::ZERO) };
    let key = "cancel_on_disconnect_after_s";
    if !account.cancel_on_disconnect {
        return invalid(seconds.span().start, format!("{key} needs cancel_on_disconnect = true"));
    }
    within(key, seconds, 0, CANCEL_AFTER_S_MAX).map(Duration::from_secs)
}

/// The accounts that are right; the others are errors.
pub(crate) fn accounts(tables: Vec<AccountTable>, errors: &mut FieldErrors) -> Vec<AccountConfig> {
    if tables.is_empty() {
        errors.keep::<()>(invalid(0, "there is no [[account]]: no client could log in"));
    }
    if tables.len() > ACCOUNTS_MAX {
        errors.keep::<()>(invalid(0, format!("there are more than {ACCOUNTS_MAX} accounts")));
    }
    let mut names = HashSet::new();
    let account = |account: AccountTable| {
        let name: Name<6> = named("name", &account.name)?;
        if !names.insert(name.folded()) {
            let message = format!("there are two accounts {:?}; case does not matter", name.as_str());
            return invalid(account.name.span().start, message);
        }
        let cancel_after = cancel_after(&account)?;
        Ok(AccountConfig {
            name,
            password_hash: password_hash(&account.password_hash)?,
            cancel_after,
            cancel_on_disconnect: account.cancel_on_disconnect,
            takeover: account.takeover,
        })
    };
    let all = tables.into_iter().take(ACCOUNTS_MAX).map(account);
    all.filter_map(|account| errors.keep(account)).collect()
}
