//! Commit, branch, labels and note of a run: flags count first, then the environment, then the git repository of the
//! folder.
//!
//! The environment counts before git because a job of continuous integration may have checked out another commit last,
//! to build the base.

use std::{collections::BTreeMap, ffi::OsString, path::Path};

use anyhow::Result;
use weir_record::origin::{LABELS_MAX, NAME_CHARACTERS_MAX, NOTE_CHARACTERS_MAX, Origin, OriginSource};
use weir_report::localized;

use crate::{args::OriginFlags, exit::UsageError, git_head, language, output};

/// Variables with the commit: GitHub Actions, GitLab.
const COMMITS: [&str; 2] = ["GITHUB_SHA", "CI_COMMIT_SHA"];

/// Variables with the branch. For a pull request, GitHub sets the first to its branch, and the second to a number.
const BRANCHES: [&str; 4] =
    ["GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_BRANCH", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME"];

/// The variable with the branch that a tag has too, and the one that says which of them it is.
const REFERENCE: &str = "GITHUB_REF_NAME";
const REFERENCE_KIND: &str = "GITHUB_REF_TYPE";

/// The end of a commit whose tree has changed files, as `git describe --dirty` writes it.
const DIRTY: &str = "-dirty";

/// The facts about a run in a folder.
pub(super) fn origin(flags: &OriginFlags, folder: &Path) -> Result<Origin> {
    let head = || head(folder);
    let typed = typed(flags)?;
    let is_whole = typed.commit.is_some() && typed.branch.is_some();
    Ok(if is_whole { typed } else { completed(typed, |name| std::env::var_os(name), head) })
}

/// The head of the folder's repository. A repository that is broken is reported, and says nothing.
fn head(folder: &Path) -> git_head::GitHead {
    match git_head::head(folder) {
        Ok(found) => found.unwrap_or_default(),
        Err(git_head::BrokenGit(place)) => {
            let place = place.display();
            output::tell(&localized!(
                language::of_command_line(),
                "note: {place} leads to no git repository, so no commit or branch comes from it; repair it, or use --commit \
                 and --branch",
                "참고: {place}이(가) 가리키는 git 저장소가 없어 커밋과 브랜치를 알 수 없습니다. 고치거나 --commit과 --branch를 쓰십시오",
                "提示：{place} 没有指向 git 仓库，无法从中得知提交和分支；请修复，或使用 --commit 和 --branch",
            ));
            git_head::GitHead::default()
        }
    }
}

/// The values of flags.
fn typed(flags: &OriginFlags) -> Result<Origin> {
    let commit =
        flags.commit.as_deref().map(|text| one_line("--commit", text, NAME_CHARACTERS_MAX)).transpose()?;
    let branch =
        flags.branch.as_deref().map(|text| one_line("--branch", text, NAME_CHARACTERS_MAX)).transpose()?;
    let note = flags.note.as_deref().map(|text| one_line("--note", text, NOTE_CHARACTERS_MAX)).transpose()?;
    let clean = commit.as_deref().and_then(|text| text.strip_suffix(DIRTY)).filter(|text| !text.is_empty());
    Ok(Origin {
        commit_source: commit.is_some().then_some(OriginSource::Flag),
        is_dirty: clean.map(|_| true),
        commit: clean.map(str::to_owned).or(commit),
        branch_source: branch.is_some().then_some(OriginSource::Flag),
        branch,
        labels: labels(&flags.label)?.into_iter().collect(),
        note,
    })
}

/// The rest, from the environment and then from git.
fn completed(
    typed: Origin,
    variable: impl Fn(&str) -> Option<OsString>,
    head: impl FnOnce() -> git_head::GitHead,
) -> Origin {
    let mut origin = typed;
    let is_tag = variable(REFERENCE_KIND).is_some_and(|kind| kind == "tag");
    let is_meant = |name: &&&str| !(is_tag && **name == REFERENCE);
    let set = |names: &[&str]| {
        let names = names.iter().filter(is_meant);
        let mut values = names.filter_map(|name| variable(name)?.into_string().ok());
        values.find(|text| is_name(text))
    };
    let fill = |of: &mut Origin, commit: Option<String>, branch: Option<String>, source: OriginSource| {
        if let Some(commit) = commit.filter(|text| of.commit.is_none() && is_name(text)) {
            (of.commit, of.commit_source) = (Some(commit), Some(source));
        }
        if let Some(branch) = branch.filter(|text| of.branch.is_none() && is_name(text)) {
            (of.branch, of.branch_source) = (Some(branch), Some(source));
        }
    };
    fill(&mut origin, set(&COMMITS), set(&BRANCHES), OriginSource::Environment);
    if origin.commit.is_none() || origin.branch.is_none() {
        let git_head::GitHead { commit, branch } = head();
        fill(&mut origin, commit, branch, OriginSource::Git);
    }
    origin
}

/// Whether a text from the environment or git is a valid name.
fn is_name(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().count() <= NAME_CHARACTERS_MAX && !text.contains(char::is_control)
}

/// Labels from the command line, each once.
pub(super) fn labels(typed: &[String]) -> Result<BTreeMap<String, String>> {
    let mut labels = BTreeMap::new();
    for text in typed {
        let (key, value) = match text.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => (key.trim().to_owned(), value.trim()),
            _ => {
                return Err(usage(localized!(
                    language::of_command_line(),
                    "--label {text:?}: write KEY=VALUE",
                    "--label {text:?}: KEY=VALUE로 쓰십시오",
                    "--label {text:?}：请写成 KEY=VALUE",
                )));
            }
        };
        for part in [&key, value] {
            if !part.is_empty() {
                one_line("--label", part, NAME_CHARACTERS_MAX)?;
            }
        }
        if labels.insert(key.clone(), value.to_owned()).is_some() {
            return Err(usage(localized!(
                language::of_command_line(),
                "--label {key} is given twice; write each key once",
                "--label {key}: 두 번 지정했습니다. 키마다 한 번만 쓰십시오",
                "--label {key} 指定了两次；每个键只写一次",
            )));
        }
    }
    if labels.len() > LABELS_MAX {
        return Err(usage(localized!(
            language::of_command_line(),
            "--label: these are more than {LABELS_MAX} labels",
            "--label: 라벨은 {LABELS_MAX}개까지 쓸 수 있습니다",
            "--label：标签最多 {LABELS_MAX} 个",
        )));
    }
    Ok(labels)
}

/// A text of one line, that is not too long.
fn one_line(flag: &str, text: &str, characters_max: usize) -> Result<String> {
    let text = text.trim();
    if text.is_empty() || text.contains(char::is_control) || text.chars().count() > characters_max {
        return Err(usage(localized!(
            language::of_command_line(),
            "{flag}: write one line of 1 to {characters_max} characters",
            "{flag}: 1자에서 {characters_max}자까지 한 줄로 쓰십시오",
            "{flag}：请写一行，1 到 {characters_max} 个字符",
        )));
    }
    Ok(text.to_owned())
}

fn usage(text: String) -> anyhow::Error {
    UsageError(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git_head::GitHead;

    fn found(flags: &OriginFlags, set: &[(&str, &str)], head: GitHead) -> Origin {
        let variable = |name: &str| set.iter().find(|(own, _)| *own == name).map(|(_, value)| value.into());
        completed(typed(flags).expect("it is right"), variable, || head)
    }

    fn git() -> GitHead {
        GitHead { commit: Some("9".repeat(40)), branch: Some("of-git".to_owned()) }
    }

    #[test]
    fn what_is_typed_counts_before_the_environment_and_that_before_git() {
        let set = [("GITHUB_SHA", "abc"), ("GITHUB_REF_NAME", "7/merge"), ("CI_COMMIT_BRANCH", "x")];
        let flags = OriginFlags { commit: Some("v2".to_owned()), ..OriginFlags::default() };
        let origin = found(&flags, &set, git());
        assert_eq!((origin.commit.as_deref(), origin.commit_source), (Some("v2"), Some(OriginSource::Flag)));
        assert_eq!(origin.branch.as_deref(), Some("7/merge"));
        let none = OriginFlags::default();
        let origin = found(&none, &[("GITHUB_HEAD_REF", "topic"), set[0], set[1]], git());
        assert_eq!((origin.commit.as_deref(), origin.branch.as_deref()), (Some("abc"), Some("topic")));
        assert_eq!(origin.branch_source, Some(OriginSource::Environment));
        // Without a pull request GitHub sets it to an empty text.
        let origin = found(&none, &[("GITHUB_HEAD_REF", ""), ("CI_COMMIT_SHA", "a\nb")], git());
        assert_eq!(
            (origin.branch.as_deref(), origin.branch_source),
            (Some("of-git"), Some(OriginSource::Git))
        );
        assert_eq!(origin.commit, git().commit, "what is no name is none");
        assert!(found(&none, &[], GitHead::default()).is_empty());
    }

    #[test]
    fn a_tag_is_no_branch() {
        let set = [("GITHUB_SHA", "abc"), ("GITHUB_REF_NAME", "v1.2.3"), ("GITHUB_REF_TYPE", "tag")];
        let origin = found(&OriginFlags::default(), &set, GitHead::default());
        assert_eq!((origin.commit.as_deref(), origin.branch), (Some("abc"), None));
        let set = [set[0], ("GITHUB_REF_NAME", "topic"), ("GITHUB_REF_TYPE", "branch")];
        let origin = found(&OriginFlags::default(), &set, GitHead::default());
        assert_eq!(origin.branch.as_deref(), Some("topic"));
    }

    #[test]
    fn a_commit_says_whether_files_differ_from_it() {
        let of = |text: &str| {
            let flags = OriginFlags { commit: Some(text.to_owned()), ..OriginFlags::default() };
            let origin = typed(&flags).expect("it is right");
            (origin.commit.unwrap_or_default(), origin.is_dirty)
        };
        assert_eq!(of("abc-dirty"), ("abc".to_owned(), Some(true)));
        assert_eq!(of("abc"), ("abc".to_owned(), None));
        assert_eq!(of("-dirty"), ("-dirty".to_owned(), None));
    }

    #[test]
    fn labels_have_a_key_once_and_texts_have_one_line() {
        let labels = |all: &[&str]| {
            let all: Vec<String> = all.iter().map(|text| (*text).to_owned()).collect();
            super::labels(&all).map(|found| found.len()).map_err(|error| error.to_string())
        };
        assert_eq!(labels(&["a=1", "b=x=y", "c="]), Ok(3));
        let many: Vec<String> = (0..=LABELS_MAX).map(|number| format!("k{number}=")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(labels(&many[1..]), Ok(LABELS_MAX));
        for (wrong, there) in [
            (&["a"][..], "write KEY=VALUE"),
            (&["=1"], "write KEY=VALUE"),
            (&["a=1", "a=2"], "given twice"),
            (&many, "more than 32"),
        ] {
            let error = labels(wrong).expect_err("it is wrong");
            assert!(error.contains(there), "{error}");
        }
        let note = |text: String| typed(&OriginFlags { note: Some(text), ..OriginFlags::default() }).is_ok();
        assert!(note("x".repeat(NOTE_CHARACTERS_MAX)) && !note("x".repeat(NOTE_CHARACTERS_MAX + 1)));
        assert!(!note("two\nlines".to_owned()) && !note(" ".to_owned()));
    }
}
