//! `weir load ... --host a,b`: the load comes from generators on other hosts, and this process is their coordinator.

use std::{collections::BTreeMap, fmt::Write, sync::atomic::Ordering, time::Instant};

use anyhow::{Context, Result};
use weir_engine::net::Address;
use weir_lab::{
    process::{
        GeneratorError, OwnProgram, SpreadLoad, SpreadObserver, SpreadProgress, Transport, spread_load,
    },
    run::RunError,
};
use weir_load::{Arrivals, LoadError, LoadSpec, Phase, Progress, WORKERS_MAX};
use weir_record::load::{
    LoadReport,
    parts::{GENERATORS_MAX, PartPhase},
};
use weir_report::Language;

use crate::{
    exit::{Exit, UsageError},
    flags::{LoadShared, Settings},
    language,
    load::{self, Ending, LoadCommand, Place},
    load_text::Unit,
    output, shipped, signals,
};

/// In the command of `--rsh`: the name of the host.
const HOST: &str = "{host}";

/// Runs a load from other hosts until its end or a signal.
pub(crate) fn run(load: &dyn LoadCommand, settings: &Settings) -> Result<Exit> {
    let shared = load.shared();
    let language = language::chosen(shared.lang.as_deref())?;
    let ways = ways(&shared.hosts, shared.rsh.as_deref()).map_err(UsageError)?;
    if let Some(reason) = obstacle(load) {
        return Err(UsageError(reason).into());
    }
    let spec = spec(load, ways.len())?;
    let asked = asked(load, &spec)?;
    let sink = load.open()?;
    let stop = signals::stop_flag()?;
    tell_loopback(&spec, shared);
    let own = OwnProgram::read().context("cannot read the weir program itself")?;
    let mut shown =
        Shown { is_quiet: shared.json, unit: load.unit(), language, told: Instant::now(), messages: 0 };
    let report = spread_load(&ways, &own, &asked, &mut shown, &stop).map_err(of_generator)?;
    let report = LoadReport { settings: settings.clone(), ..report };
    let ending = if stop.load(Ordering::Relaxed) { Ending::Interrupted } else { Ending::Complete };
    load::finish(load, (&report, ending), sink, language)
}

/// How each host is reached.
fn ways(hosts: &[String], rsh: Option<&str>) -> Result<Vec<Transport>, String> {
    if hosts.len() > GENERATORS_MAX {
        return Err(format!("--host names {} hosts; the most is {GENERATORS_MAX}", hosts.len()));
    }
    let mut names: Vec<String> = Vec::new();
    let mut ways = Vec::new();
    for typed in hosts {
        let name = typed.rsplit_once('@').map_or(typed.as_str(), |(_, name)| name);
        let is_plain = |letter: char| !letter.is_whitespace() && !letter.is_control();
        if name.is_empty() || typed.starts_with('-') || name.starts_with('-') || !typed.chars().all(is_plain)
        {
            return Err(format!("--host {typed:?}: write [user@]HOST, as for ssh, and commas between hosts"));
        }
        if names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return Err(format!(
                "--host names {name} twice; one generator with more --workers uses more of its CPUs"
            ));
        }
        names.push(name.to_owned());
        let way = match rsh {
            None => Transport::ssh(typed),
            Some(command) if hosts.len() > 1 && !command.contains(HOST) => {
                return Err(format!(
                    "--rsh {command:?} leads to one place, and --host names {} hosts; write {HOST} where the name of \
                     the host belongs",
                    hosts.len()
                ));
            }
            Some(command) => {
                let words = shlex::split(command).unwrap_or_default();
                let words = words.iter().map(|word| word.replace(HOST, typed)).collect();
                Transport::command(command, words, Some(name))
            }
        };
        ways.push(way.map_err(|_| match rsh {
            Some(command) => {
                format!(
                    "--rsh {command:?} is no command; write one that runs the words behind it on the host"
                )
            }
            None => format!("--host {typed:?}: write [user@]HOST, as for ssh"),
        })?);
    }
    Ok(ways)
}

/// Why generators on other hosts cannot carry out what the flags ask for.
fn obstacle(load: &dyn LoadCommand) -> Option<String> {
    let shared = load.shared();
    let observed = [
        ("--observe-pid", shared.observe_pid.is_some()),
        ("--observe-stats", shared.observe_stats.is_some()),
    ];
    let flag = observed.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag);
    let text = |flag| {
        format!(
            "{flag} reads a process beside the generator, and --host moves the generators to other hosts; leave it \
             out, or let weir study --server-host read the server's host"
        )
    };
    flag.map(text).or_else(|| load.obstacle_elsewhere())
}

/// The whole load, checked here before any host is asked.
fn spec(load: &dyn LoadCommand, hosts: usize) -> Result<LoadSpec> {
    let hosts = u32::try_from(hosts).unwrap_or(u32::MAX);
    let spec = load.spec(Place::Elsewhere)?;
    if spec.connections < hosts {
        let reason = format!(
            "{} cannot be divided between {hosts} hosts, because each generator needs one; name fewer with --host",
            spec.connections
        );
        return Err(UsageError(load.refusal("connections", reason)).into());
    }
    let spec = LoadSpec { workers: spec.workers.saturating_mul(hosts), ..spec };
    if spec.workers > WORKERS_MAX {
        return Err(UsageError(format!(
            "--workers: {} on each of {hosts} hosts are {} threads in all, and a load has at most {WORKERS_MAX}; use \
             fewer on each host",
            load.shared().workers,
            spec.workers
        ))
        .into());
    }
    spec.validate().map_err(|error| match error {
        LoadError::Invalid { field: "workers", .. } => UsageError(format!(
            "--workers: {} on each of {hosts} hosts are {} threads, and each needs a connection; use fewer threads, or \
             more connections",
            load.shared().workers,
            spec.workers
        ))
        .into(),
        error => load::refused(load, error),
    })?;
    Ok(spec)
}

fn asked(load: &dyn LoadCommand, spec: &LoadSpec) -> Result<SpreadLoad> {
    let mut words = Vec::new();
    for word in std::env::args_os().skip(1) {
        let word = word.into_string().map_err(|word| {
            UsageError(format!("{}: words for other hosts must be UTF-8", word.to_string_lossy()))
        })?;
        words.push(word);
    }
    words.extend(load.words_elsewhere());
    let files = load.files()?;
    let bytes: usize = files.values().map(Vec::len).sum();
    if bytes > shipped::BYTES_MAX {
        return Err(UsageError(format!(
            "the files of the command line have {bytes} bytes, and at most {} are sent to other hosts",
            shipped::BYTES_MAX
        ))
        .into());
    }
    let files = files.into_iter().map(|(path, content)| (path, hexadecimal(&content)));
    Ok(SpreadLoad {
        words,
        files: files.collect::<BTreeMap<_, _>>(),
        workers_each: load.shared().workers,
        rate_per_second: match spec.arrivals {
            Arrivals::Closed { .. } => None,
            Arrivals::Open { rate_per_second, .. } => Some(rate_per_second),
        },
        warmup_max: spec.warmup_max,
        ramp_up: spec.ramp_up,
        duration: spec.duration,
        connect_timeout: spec.connect_timeout,
        response_timeout: spec.response_timeout,
    })
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A target on loopback or without a network is each host itself, which few users mean.
fn tell_loopback(spec: &LoadSpec, shared: &LoadShared) {
    if let Some(what) = own_of_each(&spec.target) {
        let (target, hosts) = (&spec.target, shared.hosts.join(", "));
        output::tell(&format!("{target} is {what}: each of {hosts} loads its own server at that address"));
    }
}

/// What a target is that is on each host itself.
fn own_of_each(target: &str) -> Option<&'static str> {
    match target.parse().ok()? {
        Address::Tcp(address) => address.ip().is_loopback().then_some("loopback"),
        Address::Unix(_) | Address::Abstract(_) => Some("a Unix socket"),
    }
}

/// Shows the progress of all generators, and what their hosts say.
struct Shown {
    is_quiet: bool,
    unit: Unit,
    language: Language,
    /// When the last line was printed, and the messages until then.
    told: Instant,
    messages: u64,
}

impl SpreadObserver for Shown {
    fn progress(&mut self, progress: SpreadProgress) {
        if self.is_quiet {
            return;
        }
        let passed = std::mem::replace(&mut self.told, Instant::now()).elapsed();
        let messages = progress.messages.saturating_sub(self.messages);
        let shown = Progress {
            phase: match progress.phase {
                PartPhase::Connecting | PartPhase::Connected => Phase::Connecting,
                PartPhase::WarmingUp => Phase::WarmingUp,
                PartPhase::Measuring | PartPhase::Ending | PartPhase::Ended => Phase::Measuring,
            },
            elapsed: progress.elapsed,
            planned: progress.planned,
            messages: progress.messages,
            messages_per_second: messages as f64 / passed.as_secs_f64().max(1e-3),
            in_flight: progress.in_flight,
            errors: progress.errors,
            failure_last: progress.failure_last,
            second: progress.second,
        };
        self.messages = shown.messages;
        output::tell(&load::line(&shown, self.unit, self.language));
    }

    fn said(&mut self, line: &str) {
        output::tell(line);
    }
}

fn of_generator(error: GeneratorError) -> anyhow::Error {
    match error {
        GeneratorError::Interrupted => LoadError::Interrupted.into(),
        GeneratorError::Usage(reason) => UsageError(reason).into(),
        GeneratorError::Environment(reason) => RunError::Environment(reason).into(),
        GeneratorError::Failed(reason) => anyhow::Error::msg(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str, rsh: Option<&str>) -> Result<Vec<String>, String> {
        let hosts: Vec<String> = text.split(',').map(str::to_owned).collect();
        ways(&hosts, rsh).map(|ways| ways.iter().map(Transport::to_string).collect())
    }

    #[test]
    fn a_target_on_each_host_itself_is_known() {
        for target in ["127.0.0.1:9", "[::1]:9", "unix:/run/x", "@x"] {
            assert!(own_of_each(target).is_some(), "{target}");
        }
        for target in ["192.0.2.1:9", "[2001:db8::1]:9", load::UNRESOLVED] {
            assert_eq!(own_of_each(target), None, "{target}");
        }
    }

    #[test]
    fn hosts_are_named_once_each_and_reached_by_their_names() {
        assert_eq!(hosts("me@a,b.example", None), Ok(vec!["a".to_owned(), "b.example".to_owned()]));
        assert_eq!(hosts("a,b", Some("ip netns exec {host}")), Ok(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(hosts("a", Some("env")), Ok(vec!["a".to_owned()]), "one place for one host");
        for (text, rsh, words) in [
            ("a,me@A", None, "names A twice"),
            ("a,,b", None, "\"\": write [user@]HOST"),
            ("-oProxyCommand=x", None, "write [user@]HOST"),
            ("a b", None, "write [user@]HOST"),
            ("a,b", Some("env"), "write {host} where"),
            ("a", Some("'"), "is no command"),
        ] {
            let error = hosts(text, rsh).expect_err(text);
            assert!(error.contains(words), "{error}");
        }
        let many: Vec<String> = (0..=GENERATORS_MAX).map(|number| format!("h{number}")).collect();
        assert!(ways(&many, None).expect_err("too many").contains("the most is 64"));
    }
}
