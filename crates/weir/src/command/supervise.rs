//! `weir supervise` (hidden): holds a foreign server and all it starts, and ends them with the laboratory.

use anyhow::Result;
use weir_lab::supervise::{self, EXIT_NOT_STARTED, SuperviseError};

use crate::{args::Supervise, exit::Exit, output};

pub(crate) fn run(arguments: &Supervise) -> Result<Exit> {
    match supervise::run(&arguments.pin, &arguments.argv) {
        Ok(status) => Ok(Exit::Supervised(status)),
        Err(error @ SuperviseError::NotStarted { .. }) => {
            output::tell(&format!("weir: {error}"));
            Ok(Exit::Supervised(EXIT_NOT_STARTED as u8))
        }
        Err(error) => Err(error.into()),
    }
}
