//! What was typed. Close to the command line; validated and resolved in `command`.

use std::{path::PathBuf, str::FromStr};

use clap::{Args, Parser, Subcommand, ValueEnum};

mod load_http;
mod serve;
mod storage;

pub(crate) use load_http::LoadHttp;
pub(crate) use serve::{Accept, FileIo, LargeContent, ServeEcho, ServeHttp, ServeShared};
pub(crate) use storage::{
    OnOff, Storage, StorageCapture, StorageRun, StorageSimulate, StorageSweep, StorageTask, Workload,
};

/// What the first screen ends with.
const AFTER_HELP: &str = "\
Begin with:
  weir study quick                       epoll against io_uring on this machine, in about three minutes
  weir doctor                            what can run here, and what would unlock the rest
  weir serve echo --driver epoll         a server by hand, and in another terminal
  weir load echo --connections 100       its load, with every byte checked

Exit codes: 0 done, 1 failed while running, 2 wrong command line or study file, 11 inconclusive,
12 not comparable or too noisy, 13 this environment cannot run it, 130 interrupted (finished blocks are kept);
10 threshold not met and 14 no baseline are reserved: no command ends with them yet";

/// Measures which way of waiting for I/O is faster on this machine, by how much, why, and whether the number may be
/// believed.
#[derive(Debug, Parser)]
#[command(name = "weir", version, disable_help_subcommand = true, after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// A whole number, refused in words that say what to write.
fn number<N: FromStr>(text: &str) -> Result<N, &'static str> {
    text.parse().map_err(|_| "write a whole number, 0 or more")
}

/// A number that need not be whole.
fn fraction(text: &str) -> Result<f64, &'static str> {
    text.parse().map_err(|_| "write a number such as 2 or 0.5")
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a study: plan, run, observe, judge, report
    Study(Study),
    /// What this machine can run and measure, what it cannot, and what would unlock it
    Doctor(Doctor),
    /// Run a server on any driver
    Serve(Serve),
    /// Load a server and check every byte
    Load(Load),
    /// Wait for a disk in every way, on a file or in a simulator
    Storage(Storage),
    /// Write a study's report again
    Report(Report),
    /// Print a study's data
    Export(Export),
    /// Hold a foreign server for the laboratory
    #[command(hide = true)]
    Supervise(Supervise),
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct Study {
    /// Built-in study (quick, http, http-confounders, survey, peers, polling) or a study file (NAME.toml); not needed
    /// with --resume
    #[arg(required_unless_present = "resume", conflicts_with = "resume")]
    pub(crate) study: Option<String>,
    /// Protocol of the peers study: echo or http
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) protocol: Option<String>,
    /// With what was published: the survey's users, ramp-up and length (under two hours), polling's jobs of 20 s
    #[arg(long, conflicts_with = "resume")]
    pub(crate) published_plan: bool,
    /// The storage half of the survey: every engine on one disk, in under ten minutes
    #[arg(long, conflicts_with = "resume")]
    pub(crate) storage: bool,
    /// Data file of a study of storage, which must be there [default: storage.dat beside the results, laid out once]
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub(crate) file: Option<PathBuf>,
    /// Folder for the results [default: weir-results/NAME-TIME]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub(crate) out: Option<PathBuf>,
    /// Go on with the study in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) resume: Option<PathBuf>,
    /// Seed of every random choice [default: from the clock; it is stored and printed]
    #[arg(long, conflicts_with = "resume", value_parser = number::<u64>)]
    pub(crate) seed: Option<u64>,
    /// Language of the report: en, ko or zh
    #[arg(long, default_value = "en")]
    pub(crate) lang: String,
    /// No progress display
    #[arg(long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Folder of a study's results
    pub(crate) run: PathBuf,
    /// Language: en, ko or zh
    #[arg(long, default_value = "en")]
    pub(crate) lang: String,
    /// Folder for report.html and report.md [default: the study's own]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

/// Format of exported data.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Format {
    /// One row for each figure
    Csv,
    /// The judged result and every trial
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Folder of a study's results
    pub(crate) run: PathBuf,
    /// What to print
    #[arg(long, value_enum, default_value = "json")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Supervise {
    /// CPUs to pin to
    #[arg(long, value_delimiter = ',')]
    pub(crate) pin: Vec<usize>,
    /// Program and arguments
    #[arg(last = true, required = true)]
    pub(crate) argv: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(subcommand)]
    pub(crate) protocol: ServeProtocol,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServeProtocol {
    /// Send every byte back (RFC 862)
    Echo(Box<ServeEcho>),
    /// Answer HTTP/1.1 requests
    Http(Box<ServeHttp>),
}

#[derive(Debug, Args)]
pub(crate) struct Load {
    #[command(subcommand)]
    pub(crate) protocol: LoadProtocol,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LoadProtocol {
    /// Send messages to an echo server and check every byte that comes back
    Echo(Box<LoadEcho>),
    /// Send requests of HTTP/1.1 to a server and check every response
    Http(Box<LoadHttp>),
}

/// How open-loop messages are spaced.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Arrivals {
    /// Exponential gaps, as independent users make them
    Poisson,
    /// Equal gaps
    Uniform,
}

#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct LoadEcho {
    /// Address of the server: HOST:PORT, unix:/path or @name
    #[arg(long, default_value = "127.0.0.1:7007", value_name = "ADDR")]
    pub(crate) target: String,
    /// Connections that carry messages
    #[arg(long, short = 'c', default_value_t = 100)]
    pub(crate) connections: u32,
    /// Further connections that stay silent
    #[arg(long, default_value_t = 0)]
    pub(crate) idle_connections: u32,
    /// Messages in flight on each connection
    #[arg(long, default_value_t = 1)]
    pub(crate) depth: u32,
    /// Bytes of a message
    #[arg(long, default_value_t = 64)]
    pub(crate) message_bytes: u32,
    /// Measured time: 1.5s, 500ms, 2min
    #[arg(long, short = 'd', default_value = "10s", value_name = "TIME")]
    pub(crate) duration: String,
    /// Send exactly this many messages, without a warm-up; --duration is then the limit
    #[arg(long, short = 'n')]
    pub(crate) messages: Option<u64>,
    /// Longest warm-up; it ends earlier when the throughput is steady
    #[arg(long, default_value = "5s", value_name = "TIME")]
    pub(crate) warmup_max: String,
    /// Open loop: messages a second over all connections, whatever the server does
    #[arg(long, value_name = "PER_SECOND", value_parser = fraction)]
    pub(crate) rate: Option<f64>,
    /// Open loop: how messages are spaced
    #[arg(long, value_enum, default_value = "poisson", requires = "rate")]
    pub(crate) arrivals: Arrivals,
    /// Closed loop: pause between an answer and the next message
    #[arg(long, default_value = "0s", value_name = "TIME", conflicts_with = "rate")]
    pub(crate) think: String,
    /// Time over which the connections are opened
    #[arg(long, default_value = "0s", value_name = "TIME")]
    pub(crate) ramp_up: String,
    /// Longest wait for a connection
    #[arg(long, default_value = "5s", value_name = "TIME")]
    pub(crate) connect_timeout: String,
    /// Longest wait for an answer
    #[arg(long, default_value = "5s", value_name = "TIME")]
    pub(crate) response_timeout: String,
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
    /// Seed of payloads and arrivals
    #[arg(long, default_value_t = 1, value_parser = number::<u64>)]
    pub(crate) seed: u64,
    /// Read CPU, switches and memory of this process at both edges of the window
    #[arg(long, value_name = "PID")]
    pub(crate) observe_pid: Option<u32>,
    /// Read the target's engine counters from this socket at both edges of the window
    #[arg(long, value_name = "@NAME")]
    pub(crate) observe_stats: Option<String>,
    /// Print the report as one line of JSON and no progress
    #[arg(long)]
    pub(crate) json: bool,
}
