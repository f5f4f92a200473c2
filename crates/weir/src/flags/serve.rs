//! `weir serve` as it is typed: what every server has in common.

use std::net::SocketAddr;

use clap::{Args, ValueEnum, builder::RangedU64ValueParser};

use super::{fraction, number};

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

/// The flags of every server.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServeShared {
    /// auto, uring, epoll, poll, select or blocking
    #[arg(long, default_value = "auto")]
    pub(crate) driver: String,
    /// Worker threads, each with its own runtime
    #[arg(long, default_value_t = 1, value_parser = RangedU64ValueParser::<usize>::new().range(1..=256))]
    pub(crate) workers: usize,
    /// How connections reach the workers
    #[arg(long, value_enum, default_value = "reuseport")]
    pub(crate) accept: Accept,
    /// CPUs to pin workers to, in turn: 0,2
    #[arg(long, value_delimiter = ',', value_name = "CPUS", value_parser = number::<usize>)]
    pub(crate) pin: Vec<usize>,
    /// Connections the kernel may hold ready
    #[arg(long, default_value_t = 4096)]
    pub(crate) backlog: u32,
    /// Answer each line of this user on this abstract Unix socket with the engine's counters as JSON: @name, or off
    /// [default: @weir-PID, where `weir top` looks]
    #[arg(long, value_name = "@NAME")]
    pub(crate) stats_socket: Option<String>,
    /// Loopback address for /metrics and /healthz [default: the address in a gateway's file; without one there is none]
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Engine option, repeatable: buffer-bytes=2048, buffer-count=64, spin-us=50, receive=single, submit=operation,
    /// defer-taskrun=off, minimum-wait-us=50, fixed-files=on, send-zc-bytes=65536, sqpoll-idle-ms=20 (uring);
    /// trigger=level, drain=eagain (epoll); as-on-kernel=5.19 leaves unused what later kernels brought (uring, epoll)
    #[arg(long = "option", short = 'o', value_name = "NAME=VALUE")]
    pub(crate) options: Vec<String>,
    /// Seconds that open connections get to finish after SIGTERM or SIGINT
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS", value_parser = fraction)]
    pub(crate) drain_limit: f64,
}
