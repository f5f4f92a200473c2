//! The commit of a run, and its labels, in few columns.

use weir_record::origin::Origin;

use crate::{
    display::{printable, truncate},
    format,
};

/// Columns of a commit, and of labels.
const COMMIT_COLUMNS_MAX: usize = 16;
const LABELS_COLUMNS_MAX: usize = 32;

/// The commit; with a `+` where files differed from it.
pub(crate) fn commit(origin: &Origin) -> String {
    let Some(commit) = origin.short_commit() else { return format::ABSENT.to_owned() };
    let commit = truncate(&printable(commit), COMMIT_COLUMNS_MAX);
    if origin.is_dirty == Some(true) { format!("{commit}+") } else { commit }
}

/// Labels in the order of their keys.
pub(crate) fn labels(origin: &Origin) -> String {
    let all: Vec<String> = origin.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    truncate(&printable(&all.join(" ")), LABELS_COLUMNS_MAX)
}
