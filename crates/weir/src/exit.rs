//! Exit codes, and how an error becomes one.

use std::process::ExitCode;

use weir_engine::{OptionError, StartError, net::AddressError, serve::ServeError};

/// What the process tells its caller. The numbers are documented in the README and never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Ok = 0,
    RuntimeError = 1,
    Usage = 2,
    Environment = 13,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// A mistake in what was asked for: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// Prints an error as one sentence with its causes, and chooses the exit code.
pub(crate) fn report(error: &anyhow::Error) -> Exit {
    eprintln!("weir: {error:#}");
    let is_start = |start: &StartError| match start {
        StartError::Refused { .. } | StartError::Nothing(_) => Exit::Environment,
        StartError::Unable { .. } => Exit::Usage,
    };
    for cause in error.chain() {
        if cause.is::<UsageError>() || cause.is::<OptionError>() || cause.is::<AddressError>() {
            return Exit::Usage;
        }
        if let Some(start) = cause.downcast_ref() {
            return is_start(start);
        }
        if let Some(ServeError::Start(start)) = cause.downcast_ref() {
            return is_start(start);
        }
    }
    Exit::RuntimeError
}
