//! `weir serve gateway`.

use std::{
    cell::RefCell,
    env, fs,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::Command,
    rc::Rc,
    sync::Arc,
    thread,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result};
use weir_engine::{handoff::Strategy, net::Address};
use weir_record::engine::ServerStats;
use weir_servers::{
    gateway::{
        self, ControlPath, ControlSocket, GatewayConfig, GatewayControl, GatewayServer, Listeners, ReadConfig,
    },
    orders::ConfigErrors,
};

use super::{arguments::ServeGateway, event_log::EventLog, gateway_check, journal};
use crate::{
    engine,
    exit::{Exit, UsageError},
    output,
    serve::{self, Running},
};

/// Where a gateway listens without an address in its flags or its file.
const LISTEN_DEFAULT: &str = "127.0.0.1:9100";
/// Where its exchange is.
const UPSTREAM_DEFAULT: &str = "127.0.0.1:9101";
/// How long the start waits for exchanges.
const UPSTREAM_PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn run(arguments: &ServeGateway) -> Result<Exit> {
    if arguments.check {
        return gateway_check::run(arguments);
    }
    let (mut config, listeners) = config(arguments)?;
    let listen = listen(arguments, &listeners);
    let mut prepared = serve::prepare(&arguments.shared, listen)?;
    prepared.metrics_at(listeners.metrics)?;
    prepared.refuse_insecure(arguments.insecure)?;
    refuse_insecure_copy(&config, arguments.insecure)?;
    check_workers(&config, prepared.workers())?;
    if let Some((directory, level)) = &config.journal {
        let of_copy = config.drop_copy.as_ref().map(|copy| copy.folder(directory));
        for folder in [Some(directory), of_copy.as_ref()].into_iter().flatten() {
            weir_servers::journal::warning(folder, *level).iter().for_each(|warning| output::tell(warning));
        }
    }
    let control = arguments.control.clone().or(listeners.control.clone()).map(control_socket).transpose()?;
    // Without the socket limits cannot be set later.
    config.follows_orders = control.is_some();
    let read = arguments.config.is_some().then(|| (listeners.clone(), read_again(arguments.clone())));
    let log = EventLog::open(&arguments.log)?;
    // With a configuration file, SIGHUP is a reload as well.
    if log.reopen_at_signals()? && read.is_none() {
        prepared.reopens_logs();
    }
    // Kept to the end: dropping it removes the socket's path.
    let open: Rc<RefCell<Option<ControlPath>>> = Rc::default();
    let kept = Rc::clone(&open);
    let started: Rc<RefCell<Option<GatewayControl>>> = Rc::default();
    let at_start = Rc::clone(&started);
    prepared.run_server(move |server| {
        let gateway = GatewayServer::start(server, config)?;
        let handle = gateway.control();
        *at_start.borrow_mut() = Some(handle.clone());
        let running = running(gateway, log, (control, kept));
        let Some((listeners, read)) = read else { return Ok(running) };
        handle.reload_with(listeners, read);
        Ok(running.with_reload(move || handle.reload_at_signal()))
    })?;
    drop(open.take());
    if started.take().is_some_and(|gateway| gateway.goes_on()) {
        return Err(start_again());
    }
    Ok(Exit::Ok)
}

/// Replaces this process by a start with the same arguments, for the next session with clients. Its number stays, so a
/// supervisor sees no end. Returns only if that fails.
fn start_again() -> anyhow::Error {
    let of_proc = || PathBuf::from("/proc/self/exe");
    // The file may have been replaced or removed since.
    let program = env::current_exe().ok().filter(|path| path.exists()).unwrap_or_else(of_proc);
    let mut arguments = env::args_os();
    let name = arguments.next().unwrap_or_default();
    let error = Command::new(program).arg0(name).args(arguments).exec();
    anyhow::Error::new(error)
        .context("the day has ended, and the next session cannot start; start the gateway again")
}

/// Carries out what is due in the trading day, as long as the gateway works.
fn follow_day(control: GatewayControl) {
    let follow = move || {
        while !control.orders().is_draining() {
            thread::sleep(control.follow_day(SystemTime::now()));
        }
    };
    if let Err(error) = thread::Builder::new().name("weir-day".into()).spawn(follow) {
        output::tell(&format!(
            "no session of the trading day is begun or ended, so start the gateway again: {error}"
        ));
    }
}

/// Reads file and flags as at the start.
fn read_again(arguments: ServeGateway) -> ReadConfig {
    Box::new(move || read(&arguments).map_err(|errors| errors.join("\n")))
}

/// The address for clients.
pub(super) fn listen<'a>(arguments: &'a ServeGateway, listeners: &'a Listeners) -> &'a str {
    arguments.listen.as_deref().or(listeners.orders.as_deref()).unwrap_or(LISTEN_DEFAULT)
}

fn running(
    gateway: GatewayServer,
    log: EventLog,
    (control, kept): (Option<ControlSocket>, Rc<RefCell<Option<ControlPath>>>),
) -> Running {
    let handle = gateway.control();
    super::tell_events(handle.orders(), handle.events_at_start(), log);
    let (node, source) = (handle.clone(), Arc::new(handle.clone()));
    let (days, of_signal) = (handle.clone(), handle.clone());
    let until_ready = move || {
        if days.day_status().is_some() {
            follow_day(days);
        }
        // Without these threads the gateway still works.
        match control.map(|socket| socket.answer(handle.clone())).transpose() {
            Ok(path) => *kept.borrow_mut() = path,
            Err(error) => output::tell(&format!("the control socket does not answer: {error}")),
        }
        if !handle.wait_for_upstreams(UPSTREAM_PATIENCE) && !handle.orders().is_draining() {
            for upstream in handle.upstreams().into_iter().filter(|upstream| !upstream.is_open) {
                let trouble = upstream.trouble.unwrap_or_else(|| "it is not logged in yet".into());
                output::tell(&format!("no orders can be sent: {trouble}; the gateway goes on trying"));
            }
        }
    };
    let fill_in = Arc::new(move |stats: &mut ServerStats| stats.node = Some(node.node_stats()));
    let (orders, drop_copy) = gateway.into_parts();
    let ending = orders.control();
    let running =
        Running::orders(orders, fill_in, Some(source), until_ready).with_drain(move || of_signal.drain());
    let Some(drop_copy) = drop_copy else { return running };
    output::tell(&format!("drop copy on {}", drop_copy.address()));
    running.and_then(move || drop_copy.end(ending.ends_session()))
}

fn control_socket(path: PathBuf) -> Result<ControlSocket> {
    ControlSocket::bind(&path)
        .with_context(|| format!("--control {} cannot be had; choose another path", path.display()))
}

/// The file or the demonstration, with the flags before it.
fn config(arguments: &ServeGateway) -> Result<(GatewayConfig, Listeners)> {
    read(arguments).map_err(|errors| told(&errors).into())
}

/// Prints errors if there are several. The error is the only one, or their number.
pub(super) fn told(errors: &[String]) -> UsageError {
    if let [error] = errors {
        return UsageError(error.clone());
    }
    errors.iter().for_each(|error| output::tell(error));
    UsageError(format!("the configuration has {} errors", errors.len()))
}

/// The same, silently.
///
/// # Errors
/// Everything that is wrong in the file and in the flags.
pub(super) fn read(arguments: &ServeGateway) -> Result<(GatewayConfig, Listeners), Vec<String>> {
    let mut errors = Vec::new();
    let read = match file(arguments) {
        Ok(read) => read,
        Err(wrong) => {
            errors.extend(wrong);
            None
        }
    };
    let is_read = read.is_some();
    let (mut config, listeners) = match read {
        Some(read) => read,
        None => (demonstration(arguments, &mut errors), Listeners::default()),
    };
    if is_read && let Some(upstream) = &arguments.upstream {
        match (engine::address("--upstream", upstream), config.venues.as_mut_slice()) {
            (Ok(address), [venue]) => venue.address = address,
            (Err(error), _) => errors.push(error.to_string()),
            (Ok(_), venues) => {
                let venues = venues.len();
                errors.push(format!("--upstream {upstream}: the file has {venues} venues; write it there"));
            }
        }
    }
    shape(arguments, &mut config, &mut errors);
    match journal::place(&arguments.journal, config.journal.take()) {
        Ok(journal) => config.journal = journal,
        // A folder in a wrong file is not known.
        Err(_) if !is_read && arguments.config.is_some() => {}
        Err(error) => errors.push(error.to_string()),
    }
    errors.extend(config.check_day().err().filter(|_| errors.is_empty()));
    errors.extend(config.check_drop_copy().err());
    if errors.is_empty() { Ok((config, listeners)) } else { Err(errors) }
}

/// The contents of the file, if one is named.
fn file(arguments: &ServeGateway) -> Result<Option<(GatewayConfig, Listeners)>, Vec<String>> {
    let Some(path) = &arguments.config else { return Ok(None) };
    let text = fs::read_to_string(path)
        .map_err(|error| vec![format!("--config {} cannot be read: {error}", path.display())])?;
    let variable = |name: &str| std::env::var(name).ok();
    let errors = |errors: ConfigErrors| errors.all().iter().map(ToString::to_string).collect();
    gateway::parse(path, &text, &variable).map(Some).map_err(errors)
}

fn demonstration(arguments: &ServeGateway, errors: &mut Vec<String>) -> GatewayConfig {
    let upstream = arguments.upstream.as_deref().unwrap_or(UPSTREAM_DEFAULT);
    let address = engine::address("--upstream", upstream).unwrap_or_else(|error| {
        errors.push(error.to_string());
        Address::Tcp(([127, 0, 0, 1], 0).into())
    });
    GatewayConfig::demo(arguments.demo.unwrap_or(1), address)
}

/// The flags that go before the file's route and hand-off.
fn shape(arguments: &ServeGateway, config: &mut GatewayConfig, errors: &mut Vec<String>) {
    if let Some(route) = &arguments.route {
        match route.parse() {
            Ok(route) => config.route = route,
            Err(error) => errors.push(format!("--route: {error}")),
        }
    }
    if let Some(strategy) = &arguments.handoff {
        match strategy.parse() {
            Ok(strategy) => config.handoff.strategy = strategy,
            Err(error) => errors.push(format!("--handoff: {error}")),
        }
    }
    if let Some(spin_us) = arguments.spin_us {
        config.handoff.spin = Duration::from_micros(spin_us);
    }
    if !config.handoff.spin.is_zero() && config.handoff.strategy != Strategy::MeshSpin {
        let strategy = config.handoff.strategy;
        errors.push(format!("--spin-us: the hand-off {strategy} does not spin; use mesh-spin"));
    }
    config.expire_unreachable = arguments.expire_unreachable;
    config.hop_times &= !arguments.no_hop_times;
}

/// Firms' passwords and executions cross the network in plain text too.
pub(super) fn refuse_insecure_copy(config: &GatewayConfig, is_insisted: bool) -> Result<()> {
    match &config.drop_copy {
        Some(copy) => serve::refuse_insecure("[drop_copy] listen", &copy.listen, is_insisted),
        None => Ok(()),
    }
}

pub(super) fn check_workers(config: &GatewayConfig, workers: usize) -> Result<()> {
    if let Some(venue) = config.venues.iter().find(|venue| venue.usernames.len() < workers) {
        let text = format!(
            "--workers {workers}: venue {} has {} user names, and each worker needs its own",
            venue.name,
            venue.usernames.len()
        );
        return Err(UsageError(text).into());
    }
    if workers > 1 && config.route != gateway::Route::Own && config.handoff.strategy == Strategy::Owner {
        let text = format!(
            "--handoff owner hands nothing off, and --route {} needs that; choose another strategy, such as mesh",
            config.route
        );
        return Err(UsageError(text).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use weir_servers::journal::Level;

    use super::*;
    use crate::{
        args::{Arguments, Command},
        protocol::ServeProtocol,
    };

    fn typed(flags: &[&str]) -> Result<(GatewayConfig, Listeners)> {
        let line = ["weir", "serve", "gateway"].iter().chain(flags);
        match Arguments::try_parse_from(line)?.command {
            Command::Serve(ServeProtocol::Gateway(gateway)) => config(&gateway),
            _ => panic!("it serves a gateway"),
        }
    }

    #[test]
    fn flags_shape_the_demonstration() {
        let flags = ["--demo", "3", "--upstream", "127.0.0.1:5", "--route", "other", "--handoff", "armed"];
        let (config, _) = typed(&flags).expect("it is right");
        assert_eq!(config.accounts.len(), 3);
        assert_eq!(config.venues[0].address.to_string(), "127.0.0.1:5");
        assert_eq!((config.route.to_string(), config.handoff.strategy), ("other".into(), Strategy::Armed));
        assert_eq!(config.journal, None);
        let (config, _) = typed(&["--demo", "1", "--journal-dir", "j"]).expect("it is right");
        assert_eq!(config.journal, Some(("j".into(), Level::Disk)));
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_flag() {
        for (flags, word) in [
            (&["--demo", "1", "--route", "nowhere"][..], "--route"),
            (&["--demo", "1", "--handoff", "mash"], "--handoff"),
            (&["--demo", "1", "--spin-us", "5"], "--spin-us"),
            (&["--demo", "1", "--journal", "os"], "--journal-dir"),
            (&["--config", "/nowhere/at/all.toml"], "--config"),
        ] {
            let error = typed(flags).expect_err("it is wrong").to_string();
            assert!(error.contains(word), "{flags:?}: {error}");
        }
        let (config, _) =
            typed(&["--demo", "1", "--route", "other", "--handoff", "owner"]).expect("for one worker");
        assert!(check_workers(&config, 1).is_ok());
        assert!(check_workers(&config, 2).is_err_and(|error| error.to_string().contains("--handoff owner")));
    }
}
