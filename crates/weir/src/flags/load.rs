//! `weir load` as it is typed: what every load has in common.

use std::{fmt, str::FromStr};

use clap::{Args, ValueEnum};

use super::{number, rate};

/// How open-loop messages are spaced.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Arrivals {
    /// Exponential gaps, as independent users make them
    Poisson,
    /// Equal gaps
    Uniform,
}

/// Most failures of a run, by number or by share of all that ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum MaxErrors {
    Count(u64),
    /// 0 to 100.
    Percent(f64),
}

impl FromStr for MaxErrors {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = match text.strip_suffix('%') {
            Some(percent) => percent.trim_end().parse().ok().map(Self::Percent),
            None => text.parse().ok().map(Self::Count),
        };
        let is_possible = |limit: &Self| !matches!(limit, Self::Percent(it) if !(0.0..=100.0).contains(it));
        parsed.filter(is_possible).ok_or("write a whole number, or a share such as 0.1%")
    }
}

impl fmt::Display for MaxErrors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(formatter, "{count}"),
            Self::Percent(percent) => write!(formatter, "{percent}%"),
        }
    }
}

/// The flags of every load.
#[derive(Debug, Args)]
pub(crate) struct LoadShared {
    /// Connections that carry messages or requests
    #[arg(long, short = 'c', visible_alias = "users", default_value_t = 100)]
    pub(crate) connections: u32,
    /// Further connections that stay silent
    #[arg(long, default_value_t = 0)]
    pub(crate) idle_connections: u32,
    /// Messages or requests in flight on each connection (pipelining)
    #[arg(long, default_value_t = 1)]
    pub(crate) depth: u32,
    /// Measured time: 1.5s, 500ms, 2min
    #[arg(long, short = 'd', default_value = "10s", value_name = "TIME")]
    pub(crate) duration: String,
    /// Longest warm-up; it ends earlier when the throughput is steady
    #[arg(long, default_value = "5s", value_name = "TIME")]
    pub(crate) warmup_max: String,
    /// Open loop: messages or requests a second over all connections, such as 10k, whatever the server does
    #[arg(long, value_name = "PER_SECOND", value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// Open loop: how they are spaced
    #[arg(long, value_enum, default_value = "poisson", requires = "rate")]
    pub(crate) arrivals: Arrivals,
    /// Closed loop: pause between an answer and the next message or request
    #[arg(long, default_value = "0s", value_name = "TIME", conflicts_with = "rate")]
    pub(crate) think: String,
    /// Time over which the connections are opened, or the users begin
    #[arg(long, default_value = "0s", value_name = "TIME")]
    pub(crate) ramp_up: String,
    /// Longest wait for a connection
    #[arg(long, default_value = "5s", value_name = "TIME")]
    pub(crate) connect_timeout: String,
    /// Longest wait for a complete answer
    #[arg(long, default_value = "5s", value_name = "TIME")]
    pub(crate) response_timeout: String,
    /// Exit with code 10 when more than this many failed over the whole run: 0, 25, or a share of all that ended: 0.1%
    #[arg(long, value_name = "N|P%")]
    pub(crate) max_errors: Option<MaxErrors>,
    /// Generator threads
    #[arg(long, default_value_t = 1)]
    pub(crate) workers: u32,
    /// CPUs to pin the threads to, in turn: 1,3
    #[arg(long, value_delimiter = ',', value_name = "CPUS", value_parser = number::<usize>)]
    pub(crate) pin: Vec<usize>,
    /// Driver of the generator itself
    #[arg(long, default_value = "auto")]
    pub(crate) driver: String,
    /// Engine option of the generator, repeatable; as for `weir serve`
    #[arg(long = "option", short = 'o', value_name = "NAME=VALUE")]
    pub(crate) options: Vec<String>,
    /// Seed of payloads, arrivals and samples
    #[arg(long, default_value_t = 1, value_parser = number::<u64>)]
    pub(crate) seed: u64,
    /// Read CPU, switches and memory of this process at both edges of the window
    #[arg(long, value_name = "PID")]
    pub(crate) observe_pid: Option<u32>,
    /// Read the threads of this process as well, which belongs to the target's side, repeatable
    #[arg(long, value_name = "NAME=PID", requires = "observe_pid")]
    pub(crate) observe_beside: Vec<String>,
    /// Read the target's engine counters from this socket at both edges of the window
    #[arg(long, value_name = "@NAME")]
    pub(crate) observe_stats: Option<String>,
    /// Load from these hosts instead of this machine, such as me@a,b: connections and rate are divided between them,
    /// they start together, and the results are added exactly. ssh gets the names; weir is copied there once
    #[arg(long = "host", value_delimiter = ',', value_name = "[USER@]HOST")]
    pub(crate) hosts: Vec<String>,
    /// Command that reaches the hosts instead of ssh, such as "ip netns exec {host}" or "docker exec -i {host}": it
    /// runs its arguments there, and {host} in it is the host's name
    #[arg(long, value_name = "COMMAND", requires = "hosts")]
    pub(crate) rsh: Option<String>,
    /// Print the report as one line of JSON and no progress
    #[arg(long)]
    pub(crate) json: bool,
    /// Language of progress and report: en, ko or zh [default: the locale's]
    #[arg(long)]
    pub(crate) lang: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_of_errors_is_a_number_or_a_share() {
        assert_eq!("0".parse(), Ok(MaxErrors::Count(0)));
        assert_eq!("0.5%".parse(), Ok(MaxErrors::Percent(0.5)));
        assert_eq!("100 %".parse(), Ok(MaxErrors::Percent(100.0)));
        for text in ["", "-1", "0.5", "101%", "-1%", "NaN%", "inf%", "%", "many"] {
            assert!(text.parse::<MaxErrors>().is_err(), "{text}");
        }
        assert_eq!(("7".parse::<MaxErrors>().map(|it| it.to_string())), Ok("7".into()));
        assert_eq!(("0.10%".parse::<MaxErrors>().map(|it| it.to_string())), Ok("0.1%".into()));
    }
}
