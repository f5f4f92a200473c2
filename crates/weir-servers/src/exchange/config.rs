//! The configuration file of an exchange: TOML in, accounts and levels out. `docs/formats/exchange-config.md`
//! describes the format; every error names its line.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;
use weir_proto::soup::Name;

use super::Mode;
use crate::{
    journal::Level,
    orders::{
        AccountConfig, ConfigErrors,
        config_file::{AccountTable, JournalTable, accounts, parsed, read, session_named},
    },
};

/// The contents of a file; only the accounts are mandatory.
#[derive(Clone, Debug, Default)]
pub struct ExchangeConfig {
    /// The accounts that may log in.
    pub accounts: Vec<AccountConfig>,
    /// The address to listen on.
    pub listen: Option<String>,
    /// What the exchange does with orders.
    pub mode: Option<Mode>,
    /// Name of the first session.
    pub session: Option<Name<10>>,
    /// The folder of the journals, and their level of durability.
    pub journal: Option<(PathBuf, Level)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    listen: Option<String>,
    mode: Option<Spanned<String>>,
    session: Option<Spanned<String>>,
    journal: Option<JournalTable>,
    #[serde(default)]
    account: Vec<AccountTable>,
}

/// Reads a configuration from the text of a file. The path is used only in messages.
///
/// # Errors
/// All errors that could be found, with their lines.
pub fn parse(path: &Path, text: &str) -> Result<ExchangeConfig, ConfigErrors> {
    read(path, text, |file: File, errors| {
        Some(ExchangeConfig {
            accounts: accounts(file.account, errors),
            listen: file.listen,
            mode: errors.keep(parsed("mode", file.mode.as_ref())).flatten(),
            session: file.session.as_ref().and_then(|session| errors.keep(session_named(session))),
            journal: file.journal.and_then(|journal| errors.keep(journal.resolve())),
        })
    })
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
        let config = parse(Path::new("exchange.toml"), &text).expect("it is right");
        assert_eq!(config.accounts.len(), 2);
        assert!(config.accounts[0].takeover && !config.accounts[1].takeover);
        assert_eq!(config.journal, Some(("j".into(), Level::Os)));
        assert_eq!(config.mode, Some(Mode::EchoAccept));
    }

    #[test]
    fn every_mistake_is_told_with_its_line() {
        let (one, same) = (account("A1"), account("a1"));
        for (text, line, says) in [
            ("".into(), 1, "[[account]]"),
            (format!("mod = \"match\"\n{one}"), 1, "unknown field"),
            (format!("\nmode = \"auction\"\n{one}"), 2, "auction"),
            (format!("{one}{same}"), 5, "two accounts"),
            (account("TOOLONG"), 2, "1 to 6"),
            ("[[account]]\nname = \"A\"\npassword_hash = \"SECRET\"\n".into(), 3, "Argon2id"),
            (format!("session = \"\"\n{one}"), 1, "session"),
            (format!("session = \"DAY\"\n{one}"), 1, "no number at its end"),
            (format!("[journal]\ndirectory = \"j\"\nlevel = \"fsync\"\n{one}"), 3, "fsync"),
        ] {
            let errors = parse(Path::new("exchange.toml"), &text).expect_err("it is wrong");
            let [error] = errors.all() else { panic!("{errors}") };
            assert_eq!(error.line, line, "{error}");
            assert!(error.message.contains(says), "{error}");
        }
    }
}
