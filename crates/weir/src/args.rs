//! What was typed. Close to the command line; validated and resolved in `command`.

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Measures which way of waiting for I/O is faster on this machine, by how much, why, and whether the number may be
/// believed.
#[derive(Debug, Parser)]
#[command(name = "weir", version, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a server on any driver
    Serve(Serve),
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(subcommand)]
    pub(crate) protocol: ServeProtocol,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServeProtocol {
    /// Send every byte back (RFC 862)
    Echo(ServeEcho),
}

/// How connections reach the workers.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Accept {
    /// Every worker listens on the port; the kernel spreads connections by hash
    Reuseport,
    /// One worker accepts and gives connections out in turn
    Acceptor,
    /// All workers wait on one listener
    Exclusive,
}

#[derive(Debug, Args)]
pub(crate) struct ServeEcho {
    /// auto, uring, epoll, poll, select or blocking
    #[arg(long, default_value = "auto")]
    pub(crate) driver: String,
    /// Address: HOST:PORT (port 0 takes a free one), unix:/path or @name
    #[arg(long, default_value = "127.0.0.1:7007", value_name = "ADDR")]
    pub(crate) listen: String,
    /// Worker threads, each with a runtime of its own
    #[arg(long, default_value_t = 1)]
    pub(crate) workers: usize,
    /// How connections reach the workers
    #[arg(long, value_enum, default_value = "reuseport")]
    pub(crate) accept: Accept,
    /// CPUs to pin workers to, in turn: 0,2
    #[arg(long, value_delimiter = ',', value_name = "CPUS")]
    pub(crate) pin: Vec<usize>,
    /// Connections the kernel may hold ready
    #[arg(long, default_value_t = 4096)]
    pub(crate) backlog: u32,
    /// Answer each line on this abstract Unix socket with the engine's counters as JSON: @name
    #[arg(long, value_name = "@NAME")]
    pub(crate) stats_socket: Option<String>,
    /// Engine option, repeatable: buffer-bytes=2048, buffer-count=64, spin-us=50, receive=single, submit=operation,
    /// defer-taskrun=off (uring); trigger=level, drain=eagain (epoll)
    #[arg(long = "option", short = 'o', value_name = "NAME=VALUE")]
    pub(crate) options: Vec<String>,
    /// Seconds that open connections get to finish after SIGTERM or SIGINT
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS")]
    pub(crate) drain_limit: f64,
}
