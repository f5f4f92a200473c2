//! The table `[drop_copy]` of a gateway's configuration.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Deserialize;
use toml::Spanned;
use weir_engine::net::Address;
use weir_proto::soup::Name;

use crate::{
    gateway::GatewayConfig,
    journal::Level,
    orders::config_file::{FieldError, FieldErrors, invalid, named, password_hash, session_named},
};

/// Most firms of a drop copy.
pub const FIRMS_MAX: usize = 64;

/// The name of the first session with firms, if the file has none.
const SESSION_DEFAULT: &str = "WEIRDC0001";
/// The folder of its journal inside that of the gateway's, if the file has none.
const FOLDER_DEFAULT: &str = "drop-copy";

/// A drop copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropCopyConfig {
    /// The address for firms.
    pub listen: Address,
    /// Name of the first session with them.
    pub session: Name<10>,
    /// The folder of its journal; `None`: `drop-copy` inside the folder of the gateway's.
    pub directory: Option<PathBuf>,
    /// Who may log in.
    pub firms: Vec<FirmConfig>,
}

/// A firm that receives copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirmConfig {
    /// Login name. Case-insensitive; no account has it.
    pub name: Name<6>,
    /// As that of an account.
    pub password_hash: Arc<str>,
    /// A second login ends the first connection; otherwise the second is refused.
    pub takeover: bool,
    /// The accounts whose messages it gets.
    pub accounts: Vec<Name<6>>,
}

impl DropCopyConfig {
    /// The folder of its journal.
    pub fn folder(&self, journal: &Path) -> PathBuf {
        self.directory.clone().unwrap_or_else(|| journal.join(FOLDER_DEFAULT))
    }
}

impl GatewayConfig {
    /// Checks that a drop copy has something to copy from.
    ///
    /// # Errors
    /// The reason, in words.
    pub fn check_drop_copy(&self) -> Result<(), String> {
        match (&self.drop_copy, &self.journal) {
            (None, _) => Ok(()),
            (Some(_), Some((_, level))) if *level != Level::None => Ok(()),
            (Some(_), _) => {
                Err("[drop_copy] copies from the journal, and there is none: name its folder in [journal] \
                                 or with --journal-dir, at level os or disk"
                    .to_owned())
            }
        }
    }
}

/// The table as it is in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::gateway) struct DropCopyTable {
    listen: Spanned<String>,
    session: Option<Spanned<String>>,
    directory: Option<PathBuf>,
    #[serde(default)]
    firms: Vec<Spanned<FirmTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FirmTable {
    name: Spanned<String>,
    password_hash: Spanned<String>,
    #[serde(default)]
    takeover: bool,
    accounts: Spanned<Vec<Spanned<String>>>,
}

impl DropCopyTable {
    /// `accounts` are the names of the file's accounts, in capital letters. Nothing only after an error.
    pub(in crate::gateway) fn resolve(
        self,
        accounts: &HashSet<Name<6>>,
        errors: &mut FieldErrors,
    ) -> Option<DropCopyConfig> {
        let at = self.listen.span().start;
        let wrong = |error| FieldError { at, message: format!("listen: {error}") };
        let listen = errors.keep(Address::resolve(self.listen.get_ref()).map_err(wrong));
        let session = match &self.session {
            Some(session) => errors.keep(session_named(session)),
            None => SESSION_DEFAULT.parse().ok(),
        };
        if self.firms.is_empty() {
            errors.keep::<()>(invalid(at, "there is no [[drop_copy.firms]]: nobody could log in"));
        }
        if let Some(firm) = self.firms.get(FIRMS_MAX) {
            errors.keep::<()>(invalid(firm.span().start, format!("there are more than {FIRMS_MAX} firms")));
        }
        let mut names = HashSet::new();
        let firms = self.firms.into_iter().take(FIRMS_MAX);
        let firms =
            firms.filter_map(|firm| firm.into_inner().resolve(accounts, &mut names, errors)).collect();
        Some(DropCopyConfig { listen: listen?, session: session?, directory: self.directory, firms })
    }
}

impl FirmTable {
    fn resolve(
        self,
        accounts: &HashSet<Name<6>>,
        names: &mut HashSet<Name<6>>,
        errors: &mut FieldErrors,
    ) -> Option<FirmConfig> {
        let name = errors.keep(self.named(accounts, names));
        let password_hash = errors.keep(password_hash(&self.password_hash));
        let mut own = HashSet::new();
        let mut all = Vec::new();
        for text in self.accounts.get_ref() {
            let at = text.span().start;
            let Some(account) = errors.keep(named::<6>("accounts", text)) else { continue };
            if !accounts.contains(&account.folded()) {
                let message = format!("accounts: there is no [[account]] {:?}", account.as_str());
                errors.keep::<()>(invalid(at, message));
            } else if own.insert(account.folded()) {
                all.push(account);
            } else {
                errors.keep::<()>(invalid(at, format!("accounts: {:?} is there twice", account.as_str())));
            }
        }
        if self.accounts.get_ref().is_empty() {
            let message = "accounts: the list is empty; nothing would be copied to this firm";
            errors.keep::<()>(invalid(self.accounts.span().start, message));
        }
        Some(FirmConfig {
            name: name?,
            password_hash: password_hash?,
            takeover: self.takeover,
            accounts: all,
        })
    }

    /// Commands of operators name accounts and firms alike, so no two of them have one name.
    fn named(
        &self,
        accounts: &HashSet<Name<6>>,
        names: &mut HashSet<Name<6>>,
    ) -> Result<Name<6>, FieldError> {
        let (name, at) = (named::<6>("name", &self.name)?, self.name.span().start);
        if accounts.contains(&name.folded()) {
            let message = format!("name: there is an account {:?}; a firm needs another name", name.as_str());
            return invalid(at, message);
        }
        if !names.insert(name.folded()) {
            let message = format!("name: there are two firms {:?}; case does not matter", name.as_str());
            return invalid(at, message);
        }
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::ConfigErrors;

    const EXAMPLE: &str = include_str!("../../../../../docs/examples/gateway.toml");

    /// The example with these lines behind it, and the number of the first of them.
    fn with(lines: &str) -> (Result<GatewayConfig, ConfigErrors>, usize) {
        let variables = |_: &str| Some("DEMO".to_owned());
        let read = crate::gateway::parse(Path::new("g.toml"), &format!("{EXAMPLE}{lines}"), &variables);
        (read.map(|(config, _)| config), EXAMPLE.lines().count() + 1)
    }

    /// A table with a firm that has these keys beside a password.
    fn firm(keys: &str) -> String {
        let hash = EXAMPLE.lines().find(|line| line.starts_with("password_hash")).expect("there is one");
        format!("[drop_copy]\nlisten = \"127.0.0.1:9103\"\n[[drop_copy.firms]]\n{hash}\n{keys}\n")
    }

    #[test]
    fn a_file_has_firms_with_accounts_and_its_journal_is_beside_the_others_unless_it_says_where() {
        let keys = "name = \"FIRM\"\ntakeover = true\naccounts = [\"C00001\", \"c00002\"]";
        let copy = with(&firm(keys)).0.expect("it is right").drop_copy.expect("there is one");
        assert_eq!((copy.listen.to_string(), copy.session.as_str()), ("127.0.0.1:9103".into(), "WEIRDC0001"));
        let [firm_found] = copy.firms.as_slice() else { panic!("{copy:?}") };
        assert_eq!((firm_found.name.as_str(), firm_found.takeover), ("FIRM", true));
        let accounts: Vec<&str> = firm_found.accounts.iter().map(Name::as_str).collect();
        assert_eq!(accounts, ["C00001", "c00002"]);
        assert_eq!(copy.folder(Path::new("j")), Path::new("j/drop-copy"));
        let table = "[drop_copy]\nsession = \"DC7\"\ndirectory = \"elsewhere\"";
        let copy = with(&firm(keys).replacen("[drop_copy]", table, 1)).0.expect("it is right").drop_copy;
        let copy = copy.expect("there is one");
        assert_eq!((copy.session.as_str(), copy.folder(Path::new("j"))), ("DC7", "elsewhere".into()));
        assert!(with("").0.expect("it is right").drop_copy.is_none());
    }

    #[test]
    fn errors_name_their_line_and_key() {
        let accounts = "accounts = [\"C00001\"]";
        for (text, line, words) in [
            (firm(&format!("name = \"F\"\n{accounts}")).replace("9103", "x"), 1, "listen: "),
            (firm(&format!("name = \"C00002\"\n{accounts}")), 4, "there is an account \"C00002\""),
            (firm(&format!("name = \"TOO-LONG\"\n{accounts}")), 4, "name \"TOO-LONG\""),
            (firm("name = \"F\"\naccounts = []"), 5, "accounts: the list is empty"),
            (firm("name = \"F\"\naccounts = [\n\"C00001\",\n\"C00003\"]"), 7, "no [[account]] \"C00003\""),
            (firm("name = \"F\"\naccounts = [\n\"C00001\",\n\"c00001\"]"), 7, "\"c00001\" is there twice"),
            (firm(&format!("name = \"F\"\n{accounts}")).replace("argon2id", "argon"), 3, "hash-password"),
            (firm(&format!("name = \"F\"\n{accounts}\nacounts = []")), 6, "unknown field"),
            ("[drop_copy]\nlisten = \"@copy\"\n".into(), 1, "there is no [[drop_copy.firms]]"),
            ("[drop_copy]\nlisten = \"@copy\"\nsession = \"DAY\"\n".into(), 2, "no number at its end"),
        ] {
            let (read, first) = with(&text);
            let errors = read.expect_err("it is wrong");
            let is_it = |error: &crate::orders::ConfigError| {
                error.line == first + line && error.message.contains(words)
            };
            assert!(errors.all().iter().any(is_it), "line {}, {words}: {errors}", first + line);
        }
        let two = firm("name = \"F\"\naccounts = [\"C00001\"]");
        let second = two.split_once("[[").map(|(_, rest)| format!("[[{}", rest.replace("\"F\"", "\"f\"")));
        let errors = with(&format!("{two}{}", second.expect("a table"))).0.expect_err("there are two");
        assert!(errors.to_string().contains("there are two firms \"f\"; case does not matter"), "{errors}");
    }

    #[test]
    fn so_many_firms_are_taken_and_one_more_is_an_error() {
        let hash = EXAMPLE.lines().find(|line| line.starts_with("password_hash")).expect("there is one");
        let firms = |count: usize| {
            let firm = |number| {
                format!("[[drop_copy.firms]]\nname = \"F{number}\"\n{hash}\naccounts = [\"C00001\"]\n")
            };
            let all: String = (0..count).map(firm).collect();
            with(&format!("[drop_copy]\nlisten = \"127.0.0.1:9103\"\n{all}")).0
        };
        let config = firms(FIRMS_MAX).expect("so many may be");
        assert_eq!(config.drop_copy.map(|copy| copy.firms.len()), Some(FIRMS_MAX));
        let errors = firms(FIRMS_MAX + 1).expect_err("one too many");
        assert!(errors.to_string().ends_with("there are more than 64 firms"), "{errors}");
    }

    #[test]
    fn a_drop_copy_needs_a_journal_that_keeps_something() {
        let text = firm("name = \"F\"\naccounts = [\"C00001\"]");
        let config = with(&text).0.expect("it is right");
        assert_eq!(config.check_drop_copy(), Ok(()));
        let journal = config.journal.clone().map(|(folder, _)| (folder, Level::None));
        for journal in [None, journal] {
            let without = GatewayConfig { journal, ..config.clone() };
            assert!(without.check_drop_copy().is_err_and(|reason| reason.contains("there is none")));
            assert_eq!(GatewayConfig { drop_copy: None, ..without }.check_drop_copy(), Ok(()));
        }
    }
}
