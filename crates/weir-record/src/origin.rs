//! Which state of a source a run is of, and what its user wrote beside it: what puts runs into an order.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most labels of a run.
pub const LABELS_MAX: usize = 32;

/// Most characters of a commit, a branch, and a label's key or value.
pub const NAME_CHARACTERS_MAX: usize = 200;

/// Most characters of a note.
pub const NOTE_CHARACTERS_MAX: usize = 2_000;

/// Characters of a commit that are shown where there is little room, as git has them.
const SHORT_CHARACTERS: usize = 7;

/// Commit, branch, labels and a note. Each is absent where nobody said it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Origin {
    /// The commit: in full where git says it, and else as it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Where the commit is from; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_source: Option<OriginSource>,
    /// Whether files differed from the commit; absent where nothing said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_dirty: Option<bool>,
    /// The branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Where the branch is from; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_source: Option<OriginSource>,
    /// Labels by their keys.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// A note.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Where a fact of the origin is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OriginSource {
    /// A flag of the command line.
    Flag,
    /// A variable of the environment, as continuous integration sets it.
    Environment,
    /// The git repository of the folder.
    Git,
}

impl Origin {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The commit as it is shown where there is little room: a hash shortened, another name as it is.
    pub fn short_commit(&self) -> Option<&str> {
        let commit = self.commit.as_deref()?;
        let is_hash =
            commit.len() >= 2 * SHORT_CHARACTERS && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        Some(if is_hash { &commit[..SHORT_CHARACTERS] } else { commit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_shortened_and_another_name_is_not() {
        let short = |commit: &str| Origin { commit: Some(commit.to_owned()), ..Origin::default() };
        let hash = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(short(hash).short_commit(), Some("0123456"));
        for name in ["v1.2.3-rc.1-long", "abc1234", "été-été-été-été"] {
            assert_eq!(short(name).short_commit(), Some(name));
        }
        assert_eq!(Origin::default().short_commit(), None);
    }

    #[test]
    fn nothing_is_written_of_what_is_not_known() {
        assert_eq!(serde_json::to_string(&Origin::default()).expect("it serialises"), "{}");
        assert!(serde_json::from_str::<Origin>("{}").expect("it is one").is_empty());
    }
}
