//! The file that says what an exchange is: TOML in, accounts and levels out. `docs/formats/exchange-config.md`
//! describes the format; every error names its line.

use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;
use weir_proto::soup::Name;

use super::Mode;
use crate::{
    journal::Level,
    orders::{ACCOUNTS_MAX, AccountConfig, is_password_hash},
};

/// What a file says; nothing in it has to be said but the accounts.
#[derive(Clone, Debug, Default)]
pub struct ExchangeConfig {
    /// Who may log in.
    pub accounts: Vec<AccountConfig>,
    /// Where to listen.
    pub listen: Option<String>,
    /// What happens to orders.
    pub mode: Option<Mode>,
    /// Name of the first session.
    pub session: Option<Name<10>>,
    /// Where the journals are, and what durable means.
    pub journal: Option<(PathBuf, Level)>,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {message}")]
pub struct ExchangeConfigError {
    /// Line, from 1.
    pub line: usize,
    /// The key and what is wrong with it.
    pub message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    listen: Option<String>,
    mode: Option<Spanned<String>>,
    session: Option<Spanned<String>>,
    journal: Option<Journal>,
    #[serde(default)]
    account: Vec<Account>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Journal {
    directory: PathBuf,
    level: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Account {
    name: Spanned<String>,
    password_hash: Spanned<String>,
    #[serde(default)]
    cancel_on_disconnect: bool,
    #[serde(default)]
    takeover: bool,
}

/// What is wrong, and where in the text.
struct FieldError {
    at: usize,
    message: String,
}

/// Reads a configuration from the text of a file.
///
/// # Errors
/// The first thing that is wrong, with its line.
pub fn parse(text: &str) -> Result<ExchangeConfig, ExchangeConfigError> {
    let line_of = |at: usize| text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
    let file: File = toml::from_str(text).map_err(|error: toml::de::Error| ExchangeConfigError {
        line: error.span().map_or(1, |span| line_of(span.start)),
        message: error.message().trim_end().replace('\n', "; "),
    })?;
    resolve(file).map_err(|error| ExchangeConfigError { line: line_of(error.at), message: error.message })
}

fn resolve(file: File) -> Result<ExchangeConfig, FieldError> {
    let error = |at, message| Err(FieldError { at, message });
    if file.account.is_empty() || file.account.len() > ACCOUNTS_MAX {
        return error(
            0,
            format!("there are {} accounts; 1 to {ACCOUNTS_MAX} are possible", file.account.len()),
        );
    }
    let mut accounts: Vec<AccountConfig> = Vec::with_capacity(file.account.len());
    let mut known = std::collections::HashSet::new();
    for account in file.account {
        let (at, text) = (account.name.span().start, account.name.get_ref());
        let name: Name<6> = match text.parse() {
            Ok(name) if name != Name::BLANK => name,
            _ => return error(at, format!("name {text:?}: a login name has 1 to 6 printable characters")),
        };
        if !known.insert(name.folded()) {
            return error(at, format!("name {text:?} is there twice; case does not tell names apart"));
        }
        if !is_password_hash(account.password_hash.get_ref()) {
            let message = "password_hash is no Argon2id hash in the PHC form: $argon2id$v=19$m=...";
            return error(account.password_hash.span().start, message.into());
        }
        accounts.push(AccountConfig {
            name,
            password_hash: account.password_hash.into_inner().into(),
            cancel_on_disconnect: account.cancel_on_disconnect,
            takeover: account.takeover,
        });
    }
    Ok(ExchangeConfig {
        accounts,
        listen: file.listen,
        mode: parsed("mode", file.mode)?,
        session: parsed("session", file.session)?,
        journal: match file.journal {
            None => None,
            Some(journal) => {
                Some((journal.directory, parsed("level", journal.level)?.unwrap_or(Level::Disk)))
            }
        },
    })
}

fn parsed<T>(key: &str, text: Option<Spanned<String>>) -> Result<Option<T>, FieldError>
where
    T: std::str::FromStr,
    T::Err: std::fmt::Display,
{
    let Some(text) = text else { return Ok(None) };
    let wrong = |error: T::Err| FieldError { at: text.span().start, message: format!("{key}: {error}") };
    text.get_ref().parse().map(Some).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::hash_password;

    fn account(name: &str) -> String {
        let hash = hash_password("SECRET").expect("it can be sent");
        format!("[[account]]\nname = \"{name}\"\npassword_hash = \"{hash}\"\n")
    }

    #[test]
    fn a_file_says_who_may_log_in_and_what_durable_means() {
        let text = format!(
            "listen = \"127.0.0.1:9101\"\nmode = \"echo-accept\"\nsession = \"X000001\"\n\
             [journal]\ndirectory = \"j\"\nlevel = \"os\"\n{}takeover = true\n{}",
            account("A1"),
            account("B1")
        );
        let config = parse(&text).expect("it is right");
        assert_eq!(config.accounts.len(), 2);
        assert!(config.accounts[0].takeover && !config.accounts[1].takeover);
        assert_eq!(config.journal, Some(("j".into(), Level::Os)));
        assert_eq!(config.mode, Some(Mode::EchoAccept));
    }

    #[test]
    fn every_mistake_is_told_with_its_line() {
        let (one, same) = (account("A1"), account("a1"));
        for (text, line, says) in [
            ("".into(), 1, "0 accounts"),
            (format!("mod = \"match\"\n{one}"), 1, "unknown field"),
            (format!("\nmode = \"auction\"\n{one}"), 2, "auction"),
            (format!("{one}{same}"), 5, "twice"),
            (account("TOOLONG"), 2, "1 to 6"),
            ("[[account]]\nname = \"A\"\npassword_hash = \"SECRET\"\n".into(), 3, "Argon2id"),
            (format!("[journal]\ndirectory = \"j\"\nlevel = \"fsync\"\n{one}"), 3, "fsync"),
        ] {
            let error = parse(&text).expect_err("it is wrong");
            assert_eq!(error.line, line, "{error}");
            assert!(error.message.contains(says), "{error}");
        }
    }
}
