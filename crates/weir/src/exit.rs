//! Exit codes, and how an error becomes one.

use std::process::ExitCode;

use weir_dashboard::{DashboardError, TokenError};
use weir_engine::{OptionError, StartError, net::AddressError, serve::ServeError};
use weir_evidence::recorded::RecordError;
use weir_lab::{run::RunError, store_words, study_file::FileError};
use weir_load::LoadError;
use weir_report::Language;
use weir_storage::job::{JobError, JobFileError};
use weir_store::StoreError;

use crate::{hanging::WorkersHang, output};

/// How the process ends. The numbers are documented in `docs/guide/exit-codes.md` and never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Ok,
    RuntimeError,
    Usage,
    /// A threshold that was set is not met.
    Threshold,
    Environment,
    /// A part of a server did not end, and the process ended without it.
    Hanging,
    Interrupted,
    /// A study's own code.
    Study(weir_lab::exit::ExitCode),
    /// The exit status of a supervised command.
    Supervised(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Ok => 0,
            Exit::RuntimeError => 1,
            Exit::Usage => 2,
            Exit::Threshold => 10,
            Exit::Environment => 13,
            Exit::Hanging => 15,
            Exit::Interrupted => 130,
            Exit::Study(code) => code.code(),
            Exit::Supervised(status) => status,
        })
    }
}

/// A mistake in the request: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// This environment cannot run the request: exit code 13.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct EnvironmentError(pub(crate) String);

/// The baseline does not exist, or is no baseline: exit code 14.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NoBaseline(pub(crate) String);

/// Reports an error as one sentence with its causes, in the reader's language if it has several, and chooses the exit
/// code.
pub(crate) fn report(error: &anyhow::Error, language: Language) -> Exit {
    output::tell(&format!("weir: {}", sentence(error, language)));
    error.chain().find_map(classify).unwrap_or(Exit::RuntimeError)
}

/// The error and its causes. A cause that an error quotes already is not repeated; nor is the name of a child that is
/// this program too.
pub(crate) fn sentence(error: &anyhow::Error, language: Language) -> String {
    let mut sentence = String::new();
    for cause in error.chain() {
        let text = localized(cause, language);
        let text = text.strip_prefix("weir: ").unwrap_or(&text);
        if sentence.is_empty() {
            sentence.push_str(text);
        } else if !sentence.contains(text) {
            sentence.push_str(": ");
            sentence.push_str(text);
        }
    }
    sentence.replace(": weir: ", ": ")
}

/// One cause, in the reader's language if it has words in it.
fn localized(cause: &(dyn std::error::Error + 'static), language: Language) -> String {
    if let Some(error) = cause.downcast_ref::<DashboardError>() {
        return error.localized(language);
    }
    if let Some(error) = cause.downcast_ref::<RunError>() {
        return error.localized(language);
    }
    if let Some(error) = cause.downcast_ref::<FileError>() {
        return error.localized(language);
    }
    if let Some(error) = cause.downcast_ref::<StoreError>() {
        return store_words::store_error(error, language);
    }
    match cause.downcast_ref::<TokenError>() {
        Some(error) => error.localized(language),
        None => cause.to_string(),
    }
}

fn classify(cause: &(dyn std::error::Error + 'static)) -> Option<Exit> {
    let of_start = |start: &StartError| match start {
        StartError::Refused { .. } | StartError::Nothing(_) | StartError::Outside(_) => Exit::Environment,
        StartError::Unable { .. } => Exit::Usage,
    };
    if cause.is::<UsageError>()
        || cause.is::<JobError>()
        || cause.is::<JobFileError>()
        || cause.is::<OptionError>()
        || cause.is::<AddressError>()
        || cause.is::<FileError>()
        || cause.is::<TokenError>()
    {
        return Some(Exit::Usage);
    }
    if cause.is::<EnvironmentError>() {
        return Some(Exit::Environment);
    }
    if cause.is::<WorkersHang>() {
        return Some(Exit::Hanging);
    }
    if cause.is::<NoBaseline>() {
        return Some(Exit::Study(weir_lab::exit::ExitCode::NoBaseline));
    }
    if let Some(
        DashboardError::OneStudy(_)
        | DashboardError::Unlistenable { .. }
        | DashboardError::NoOrigins { .. }
        | DashboardError::NoStudies { .. },
    ) = cause.downcast_ref()
    {
        return Some(Exit::Usage);
    }
    if let Some(RecordError::NoRecord { .. }) = cause.downcast_ref() {
        return Some(Exit::Usage);
    }
    if let Some(StoreError::NotFound { .. } | StoreError::NotAStore { .. } | StoreError::Newer { .. }) =
        cause.downcast_ref::<StoreError>()
    {
        // Another folder was meant.
        return Some(Exit::Usage);
    }
    if let Some(start) = cause.downcast_ref::<StartError>() {
        return Some(of_start(start));
    }
    if let Some(ServeError::Start(start)) = cause.downcast_ref::<ServeError>() {
        return Some(of_start(start));
    }
    if let Some(run) = cause.downcast_ref::<weir_storage::run::RunError>() {
        return Some(if run.is_usage() {
            Exit::Usage
        } else if run.is_environment() {
            Exit::Environment
        } else {
            Exit::RuntimeError
        });
    }
    if let Some(run) = cause.downcast_ref::<RunError>() {
        return Some(Exit::Study(weir_lab::exit::ExitCode::of_error(run)));
    }
    cause.downcast_ref::<LoadError>().map(|load| match load {
        LoadError::Invalid { .. } => Exit::Usage,
        LoadError::Interrupted => Exit::Interrupted,
        LoadError::Start(start) => of_start(start),
        _ if load.is_environment() => Exit::Environment,
        _ => Exit::RuntimeError,
    })
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_server_whose_workers_hang_has_a_code_of_its_own() {
        let error = anyhow::Error::new(WorkersHang::now(&[0]));
        assert_eq!(error.chain().find_map(classify), Some(Exit::Hanging));
    }

    #[test]
    fn a_cause_is_told_once() {
        let cause = std::io::Error::other("out of luck");
        assert_eq!(
            sentence(&anyhow!(cause).context("cannot write: out of luck"), Language::English),
            "cannot write: out of luck"
        );
        assert_eq!(
            sentence(&anyhow!("out of luck").context("cannot write"), Language::English),
            "cannot write: out of luck"
        );
        assert_eq!(sentence(&anyhow!("arm a: weir: no"), Language::English), "arm a: no");
    }

    #[test]
    fn a_store_that_is_not_there_is_told_once_and_in_the_readers_language() {
        let missing = || StoreError::NotFound { path: "run/study.db".into() };
        let localized = |error: anyhow::Error| sentence(&error, Language::Korean);
        let alone = localized(missing().into());
        assert!(alone.starts_with("run/study.db: ") && alone.contains("파일이 없습니다"), "{alone}");
        assert_eq!(localized(RunError::Store { source: missing(), blocks_done: 0 }.into()), alone);
    }
}
