//! `weir serve echo`.

use std::time::Duration;

use anyhow::Result;
use weir_servers::echo;

use super::serve;
use crate::{args::ServeEcho, exit::Exit};

pub(super) fn run(arguments: &ServeEcho) -> Result<Exit> {
    let prepared = serve::prepare(&arguments.shared, &arguments.listen)?;
    match Duration::from_nanos(arguments.plant_ns) {
        Duration::ZERO => prepared.run(None, echo::echo)?,
        plant => prepared.run(None, move |stream| echo::echo_planted(stream, plant))?,
    }
    Ok(Exit::Ok)
}
