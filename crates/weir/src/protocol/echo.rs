//! Messages that come back as they are: `weir serve echo` and `weir load echo`.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use weir_load::{EchoSpec, LoadSpec};
use weir_servers::echo;

use crate::{
    args::{LoadShared, ServeShared},
    command::{
        load::{self, LoadCommand},
        serve,
    },
    exit::Exit,
};

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct ServeEcho {
    /// Address: HOST:PORT (port 0 takes a free one), unix:/path or @name
    #[arg(long, default_value = "127.0.0.1:7007", value_name = "ADDR")]
    pub(crate) listen: String,
    #[command(flatten)]
    pub(crate) shared: ServeShared,
    /// Waste this much CPU time for every receive: an effect of known size, for the laboratory's test of itself
    #[arg(long, default_value_t = 0, value_name = "NANOSECONDS", hide = true)]
    pub(crate) plant_ns: u64,
}

pub(super) fn serve(arguments: &ServeEcho) -> Result<Exit> {
    let prepared = serve::prepare(&arguments.shared, &arguments.listen)?;
    match Duration::from_nanos(arguments.plant_ns) {
        Duration::ZERO => prepared.run(None, echo::echo)?,
        plant => prepared.run(None, move |stream| echo::echo_planted(stream, plant))?,
    }
    Ok(Exit::Ok)
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct LoadEcho {
    /// Address of the server: HOST:PORT, unix:/path or @name
    #[arg(long, default_value = "127.0.0.1:7007", value_name = "ADDR")]
    pub(crate) target: String,
    /// Bytes of a message
    #[arg(long, default_value_t = 64)]
    pub(crate) message_bytes: u32,
    /// Send exactly this many messages, without a warm-up; --duration is then the limit
    #[arg(long, short = 'n')]
    pub(crate) messages: Option<u64>,
    #[command(flatten)]
    pub(crate) shared: LoadShared,
}

impl LoadCommand for LoadEcho {
    fn shared(&self) -> &LoadShared {
        &self.shared
    }

    fn spec(&self) -> Result<LoadSpec> {
        let echo = EchoSpec { message_bytes: self.message_bytes };
        load::spec(&self.shared, echo.into(), "--target", &self.target, self.messages)
    }
}
