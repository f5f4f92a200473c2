//! `weir serve`.

use std::{
    fs,
    os::unix::fs::FileTypeExt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result};
use weir_engine::{
    net::Address,
    serve::{AcceptMode, ServeError, Server, ServerConfig, ServerControl},
};
use weir_servers::{echo, stats::StatsSocket};

use super::engine;
use crate::{
    args::{Accept, Serve, ServeEcho, ServeProtocol},
    exit::{Exit, UsageError},
    output, signals,
};

pub(crate) fn run(serve: &Serve) -> Result<Exit> {
    match &serve.protocol {
        ServeProtocol::Echo(echo) => run_echo(echo),
    }
}

fn run_echo(arguments: &ServeEcho) -> Result<Exit> {
    // A low soft limit is raised to the hard one; if that fails the server runs with what it has.
    let _ = weir_evidence::limits::raise_nofile();
    let (config, why) = config(arguments)?;
    let stats = arguments.stats_socket.as_deref().map(stats_socket).transpose()?;
    let stop = Arc::new(Mutex::new(Stop::default()));
    let handler = Arc::clone(&stop);
    signals::on_stop(move |count| lock(&handler).ask(count))?;
    let server = start(arguments, config)?;
    if let Some(why) = why {
        output::tell(&why);
    }
    if let Some(stats) = stats {
        stats.answer(server.control()).context("cannot start a thread for the statistics socket")?;
    }
    lock(&stop).serve(&server);
    // Whoever closed our output does not wait for the line.
    let _ = output::print(&format!("listening on {}", server.address()));
    let drained = server.join();
    match drained.connections_cut {
        0 => {}
        1 => output::tell("drained: 1 connection was cut at the deadline"),
        cut => output::tell(&format!("drained: {cut} connections were cut at the deadline")),
    }
    Ok(Exit::Ok)
}

fn config(arguments: &ServeEcho) -> Result<(ServerConfig, Option<String>)> {
    let mut engine = engine::config(&arguments.driver, &arguments.options)?;
    let listen = engine::address("--listen", &arguments.listen)?;
    engine::check_pin(&arguments.pin)?;
    let drain_limit = engine::seconds("--drain-limit", arguments.drain_limit)?;
    let why = engine::resolve(&mut engine, &arguments.options)?;
    let mut config = ServerConfig::new(engine, listen);
    config.backlog = arguments.backlog;
    config.workers = arguments.workers;
    config.cpus.clone_from(&arguments.pin);
    config.drain_limit = drain_limit;
    config.accept = match arguments.accept {
        Accept::Reuseport => AcceptMode::ReusePort,
        Accept::Acceptor => AcceptMode::Acceptor,
        Accept::Exclusive => AcceptMode::Exclusive,
    };
    Ok((config, why))
}

fn stats_socket(name: &str) -> Result<StatsSocket> {
    StatsSocket::bind(name).map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidInput => {
            UsageError(format!("--stats-socket {name}: {error}; write @name, at most 107 bytes")).into()
        }
        _ => anyhow::Error::new(error)
            .context(format!("--stats-socket {name} cannot be had; choose another name")),
    })
}

fn start(arguments: &ServeEcho, config: ServerConfig) -> Result<Server> {
    let listen = config.listen.clone();
    let started = match Duration::from_nanos(arguments.plant_ns) {
        Duration::ZERO => Server::start(config, echo::echo),
        plant => Server::start(config, move |stream| echo::echo_planted(stream, plant)),
    };
    started.map_err(|error| match (&error, &listen) {
        (ServeError::Listen { source, .. }, Address::Unix(path))
            if source.kind() == std::io::ErrorKind::AddrInUse =>
        {
            let is_socket = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
            let way_out = if is_socket {
                "another process listens there; end it or choose another path"
            } else {
                "the path is taken by something that is no socket; choose another path or remove it"
            };
            anyhow::anyhow!("--listen {listen}: {way_out}")
        }
        (ServeError::Listen { source, .. }, Address::Abstract(_))
            if source.kind() == std::io::ErrorKind::AddrInUse =>
        {
            anyhow::anyhow!("--listen {listen}: another process has this name; choose another one")
        }
        _ => error.into(),
    })
}

/// What a signal does: the first one drains, also when it comes before there is a server; the second one ends at once.
#[derive(Default)]
struct Stop {
    asked: bool,
    control: Option<ServerControl>,
    /// Path to remove when nothing else will.
    path: Option<PathBuf>,
}

impl Stop {
    fn ask(&mut self, count: usize) {
        if count > 1 {
            if let Some(path) = &self.path {
                // Gone already is as good.
                let _ = fs::remove_file(path);
            }
            std::process::exit(130);
        }
        self.asked = true;
        if let Some(control) = &self.control {
            control.drain();
        }
    }

    fn serve(&mut self, server: &Server) {
        if let Address::Unix(path) = server.address() {
            self.path = Some(path.clone());
        }
        self.control = Some(server.control());
        if self.asked {
            server.drain();
        }
    }
}

fn lock(stop: &Mutex<Stop>) -> std::sync::MutexGuard<'_, Stop> {
    stop.lock().unwrap_or_else(PoisonError::into_inner)
}
