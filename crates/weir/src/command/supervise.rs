//! `weir supervise` (hidden): holds a foreign server and all it starts, and ends them with the laboratory.

use anyhow::Result;
use weir_lab::supervise::{self, EXIT_NOT_STARTED, SuperviseError, Until};

use crate::{args::Supervise, exit::Exit, output, signals};

pub(crate) fn run(arguments: &Supervise) -> Result<Exit> {
    // It ends when the laboratory closes its input. If a signal ended it, its servers would have no supervisor.
    signals::on_stop(|_| {})?;
    let until = if arguments.until_exit { Until::CommandEnded } else { Until::AllEnded };
    match supervise::run(&arguments.pin, &arguments.argv, until) {
        Ok(status) => Ok(Exit::Supervised(status)),
        Err(error @ SuperviseError::NotStarted { .. }) => {
            output::tell(&format!("weir: {error}"));
            Ok(Exit::Supervised(EXIT_NOT_STARTED as u8))
        }
        Err(error) => Err(error.into()),
    }
}
