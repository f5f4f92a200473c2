//! `weir serve`.

use std::{io::Write, time::Duration};

use anyhow::{Context, Result};
use weir_engine::{
    DriverChoice,
    serve::{AcceptMode, Server, ServerConfig},
};

use super::engine;
use crate::{
    args::{Accept, Serve, ServeEcho, ServeProtocol},
    exit::Exit,
    signals,
};

pub(crate) fn run(serve: &Serve) -> Result<Exit> {
    match &serve.protocol {
        ServeProtocol::Echo(echo) => run_echo(echo),
    }
}

fn run_echo(arguments: &ServeEcho) -> Result<Exit> {
    // A low soft limit is raised to the hard one; if that fails the server runs with what it has.
    let _ = weir_evidence::limits::raise_nofile();
    let engine = engine::config(&arguments.driver, &arguments.options)?;
    let automatic = engine.driver == DriverChoice::Auto;
    let mut config = ServerConfig::new(engine, arguments.listen.parse()?);
    config.backlog = arguments.backlog;
    config.workers = arguments.workers;
    config.cpus.clone_from(&arguments.pin);
    config.drain_limit = engine::seconds("--drain-limit", arguments.drain_limit)?;
    config.accept = match arguments.accept {
        Accept::Reuseport => AcceptMode::ReusePort,
        Accept::Acceptor => AcceptMode::Acceptor,
        Accept::Exclusive => AcceptMode::Exclusive,
    };
    let server = match Duration::from_nanos(arguments.plant_ns) {
        Duration::ZERO => Server::start(config, weir_servers::echo::echo)?,
        plant => Server::start(config, move |stream| weir_servers::echo::echo_planted(stream, plant))?,
    };
    engine::check_options(&arguments.options, server.driver())?;
    if automatic {
        eprintln!("driver auto: {}", server.driver());
    }
    if let Some(name) = &arguments.stats_socket {
        let answer = weir_servers::stats::answer_on(name, server.control());
        answer.with_context(|| format!("--stats-socket {name}"))?;
    }
    let control = server.control();
    signals::on_stop(move |count| match count {
        1 => control.drain(),
        _ => std::process::exit(130),
    })?;
    println!("listening on {}", server.address());
    std::io::stdout().flush()?;
    let drained = server.join();
    if drained.connections_cut > 0 {
        eprintln!("drained: {} connections were cut at the deadline", drained.connections_cut);
    }
    Ok(Exit::Ok)
}
