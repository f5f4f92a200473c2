//! What a run says of itself: commit, branch, labels, a note.

use clap::Args;

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct OriginFlags {
    /// Commit that is measured, stored with the results; SHA-dirty says that files differ from it [default: GITHUB_SHA
    /// or CI_COMMIT_SHA, else that of the git repository of the folder]
    #[arg(long, value_name = "SHA")]
    pub(crate) commit: Option<String>,
    /// Branch that is measured, stored with the results [default: GITHUB_HEAD_REF, GITHUB_REF_NAME, CI_COMMIT_BRANCH or
    /// CI_MERGE_REQUEST_SOURCE_BRANCH_NAME, else that of the git repository of the folder]
    #[arg(long, value_name = "NAME")]
    pub(crate) branch: Option<String>,
    /// A label that is stored with the results; weir history can select by it; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) label: Vec<String>,
    /// A note that is stored with the results
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
}

impl OriginFlags {
    /// A flag of these that was typed.
    pub(crate) fn first(&self) -> Option<&'static str> {
        let typed = [
            ("--commit", self.commit.is_some()),
            ("--branch", self.branch.is_some()),
            ("--label", !self.label.is_empty()),
            ("--note", self.note.is_some()),
        ];
        typed.into_iter().find(|(_, is_typed)| *is_typed).map(|(flag, _)| flag)
    }
}
