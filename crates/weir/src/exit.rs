//! Exit codes, and how an error becomes one.

use std::process::ExitCode;

use weir_engine::{OptionError, StartError, net::AddressError, serve::ServeError};
use weir_lab::{file::FileError, run::RunError};
use weir_load::LoadError;

/// What the process tells its caller. The numbers are documented in the README and never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Ok,
    RuntimeError,
    Usage,
    Environment,
    Interrupted,
    /// A study's own code.
    Study(weir_lab::exit::ExitCode),
    /// The exit status of a command that was supervised.
    Supervised(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Ok => 0,
            Exit::RuntimeError => 1,
            Exit::Usage => 2,
            Exit::Environment => 13,
            Exit::Interrupted => 130,
            Exit::Study(code) => code.code(),
            Exit::Supervised(status) => status,
        })
    }
}

/// A mistake in what was asked for: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// Prints an error as one sentence with its causes, and chooses the exit code.
pub(crate) fn report(error: &anyhow::Error) -> Exit {
    if is_broken_pipe(error) {
        // Whoever read our output has seen enough.
        return Exit::Ok;
    }
    eprintln!("weir: {error:#}");
    error.chain().find_map(classify).unwrap_or(Exit::RuntimeError)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<std::io::Error>().map(|io| io.kind())
    };
    error.chain().filter_map(io).any(|kind| kind == std::io::ErrorKind::BrokenPipe)
}

fn classify(cause: &(dyn std::error::Error + 'static)) -> Option<Exit> {
    let of_start = |start: &StartError| match start {
        StartError::Refused { .. } | StartError::Nothing(_) => Exit::Environment,
        StartError::Unable { .. } => Exit::Usage,
    };
    if cause.is::<UsageError>()
        || cause.is::<OptionError>()
        || cause.is::<AddressError>()
        || cause.is::<FileError>()
    {
        return Some(Exit::Usage);
    }
    if let Some(start) = cause.downcast_ref::<StartError>() {
        return Some(of_start(start));
    }
    if let Some(ServeError::Start(start)) = cause.downcast_ref::<ServeError>() {
        return Some(of_start(start));
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
