//! Messages that come back as they are: `weir serve echo` and `weir load echo`.

use std::{str::FromStr, time::Duration};

use anyhow::Result;
use clap::Args;
use weir_load::{EchoSpec, LoadSpec};
use weir_servers::{echo, planted};

use crate::{
    exit::Exit,
    flags::{LoadShared, ServeShared, size},
    load::{self, LoadCommand, Place},
    serve,
};

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct ServeEcho {
    /// Address: HOST:PORT (port 0 takes a free one), unix:/path or @name
    #[arg(long, default_value = "127.0.0.1:7007", value_name = "ADDR")]
    pub(crate) listen: String,
    #[command(flatten)]
    pub(crate) shared: ServeShared,
    /// Waste something for every receive: CPU time (300ns), a system call (getppid), a wake-up (wake) or a send more
    /// (split-write); or end a connection without an answer to its 1000th receive (lose-1000). An effect of known size
    /// and place, to test the laboratory
    #[arg(long, value_name = "WHAT", hide = true)]
    pub(crate) plant: Option<Planted>,
}

/// What is wasted, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planted {
    Nanoseconds(u64),
    Call,
    Wake,
    SplitWrite,
    Lose(u32),
}

impl FromStr for Planted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || {
            format!(
                "nothing is planted by {text:?}; write a time as 300ns, getppid, wake, split-write or lose-1000"
            )
        };
        match text {
            "getppid" => Ok(Self::Call),
            "wake" => Ok(Self::Wake),
            "split-write" => Ok(Self::SplitWrite),
            other if other.starts_with("lose-") => {
                let number = other["lose-".len()..].parse().ok().filter(|number| *number > 0);
                number.map(Self::Lose).ok_or_else(unknown)
            }
            time => {
                let time = time.strip_suffix("ns").and_then(|time| time.parse().ok());
                time.map(Self::Nanoseconds).ok_or_else(unknown)
            }
        }
    }
}

impl Planted {
    fn effect(self, workers: &[usize]) -> Result<planted::PlantedEffect> {
        Ok(match self {
            Self::Nanoseconds(time_ns) => planted::PlantedEffect::Time(Duration::from_nanos(time_ns)),
            Self::Call => planted::PlantedEffect::Call,
            Self::Wake => planted::PlantedEffect::Wake(planted::Sleeper::start(workers)?),
            Self::SplitWrite => planted::PlantedEffect::SplitWrite,
            Self::Lose(number) => planted::PlantedEffect::Lose(number),
        })
    }
}

pub(super) fn serve(arguments: &ServeEcho) -> Result<Exit> {
    let prepared = serve::prepare(&arguments.shared, &arguments.listen)?;
    match arguments.plant {
        None => prepared.run(None, echo::echo)?,
        Some(planted) => {
            let effect = planted.effect(&arguments.shared.pin)?;
            prepared.run(None, move |stream| planted::echo_planted(stream, effect.clone()))?;
        }
    }
    Ok(Exit::Ok)
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct LoadEcho {
    /// Address of the server: HOST:PORT, unix:/path or @name
    #[arg(long, default_value = "127.0.0.1:7007", value_name = "ADDR")]
    pub(crate) target: String,
    /// Bytes of a message, such as 64 or 4k
    #[arg(long, default_value_t = 64, value_parser = size::<u32>)]
    pub(crate) message_bytes: u32,
    /// Open a connection for each message, and end it after the answer
    #[arg(long)]
    pub(crate) close: bool,
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

    fn spec(&self, place: Place) -> Result<LoadSpec> {
        let echo = EchoSpec { message_bytes: self.message_bytes, connection_per_message: self.close };
        load::spec((&self.shared, place), echo.into(), "--target", &self.target, self.messages)
    }
}
