//! Echo: messages that come back unchanged, and arms that serve connections, which HTTP shares.

use std::borrow::Cow;

use weir_record::{
    finding::NoTurns,
    spec::{ArmSpec, CellSpec, StudySpec, Subject},
};
use weir_sys::affinity::cpu_set;

use super::{Factor, Kind, LoadWords, Protocol, Value, connected, factor::unusual, running};
use crate::{
    limits::{self, Level, SpecError, instead, one_of},
    mistake::Mistake,
    toml_table::{At, Entry, FieldError, Table},
};

/// Drivers an arm may name. `auto` is not among them: a study never leaves the choice open.
pub(crate) const DRIVERS: [&str; 5] = ["uring", "epoll", "poll", "select", "blocking"];

/// Ways of accepting connections that `--accept` takes.
pub(super) const ACCEPTS: [&str; 3] = ["acceptor", "reuseport", "exclusive"];

/// Descriptors that `select` can name (`FD_SETSIZE`): the kernel's interface has no room for more.
const SELECT_DESCRIPTORS: u32 = 1024;

/// Descriptors that a server opens besides its connections, with a margin: standard streams, signals, the statistics
/// socket and its one reader.
const DESCRIPTORS_BESIDE: u32 = 12;

/// Further descriptors of each worker: its listener and the descriptor that wakes it.
const DESCRIPTORS_PER_WORKER: u32 = 2;

/// Most further words of `weir serve` an arm may have.
const ARGUMENTS_MAX: usize = 32;

/// Arguments of `weir serve` that the laboratory sets itself. An arm that also set them would contradict it.
const ARGUMENTS_TAKEN: [&str; 8] =
    ["--driver", "--listen", "--workers", "--stats-socket", "--pin", "--body", "--option", "-o"];

pub(super) const CONNECTIONS: Factor = Factor {
    key: "connections",
    kind: Kind::Number(Level::Connections),
    default: Some(Value::Number(100)),
    set: |cell, level| cell.connections = level.number(),
    shown: |cell| Some(format!("c{}", cell.connections)),
};

pub(super) const DEPTH: Factor = Factor {
    key: "depth",
    kind: Kind::Number(Level::Depth),
    default: Some(Value::Number(1)),
    set: |cell, level| cell.depth = level.number(),
    shown: |cell| Some(format!("d{}", cell.depth)),
};

pub(super) const MESSAGE_BYTES: Factor = Factor {
    key: "message_bytes",
    kind: Kind::Number(Level::MessageBytes),
    default: Some(Value::Number(64)),
    set: |cell, level| cell.message_bytes = level.number(),
    shown: |cell| Some(format!("m{}", cell.message_bytes)),
};

pub(super) const WORKERS: Factor = Factor {
    key: "workers",
    kind: Kind::Threads,
    default: Some(Value::Number(1)),
    set: |cell, level| cell.workers = level.number(),
    shown: |cell| unusual("w", cell.workers, 1),
};

/// How connections are distributed to workers. The default is in turn: the kernel's hash would draw another imbalance
/// for every server that starts, which would then be most of the difference between rounds.
pub(super) const ACCEPT: Factor = Factor {
    key: "accept",
    kind: Kind::Word(|text| one_of("accept", text, &ACCEPTS).map(|()| text.to_owned())),
    default: Some(Value::Word(Cow::Borrowed("acceptor"))),
    set: |cell, level| level.word().clone_into(&mut cell.accept),
    // One worker gets every connection either way.
    shown: |cell| {
        let accept = cell.accept();
        (!["", "acceptor"].contains(&accept)).then(|| accept.to_owned())
    },
};

/// Congestion control of both ends, because each limits its own sending.
pub(super) const CONGESTION_CONTROL: Factor = Factor {
    key: "congestion_control",
    kind: Kind::Word(congestion_control),
    default: None,
    set: |cell, level| level.word().clone_into(&mut cell.congestion_control),
    shown: |cell| (!cell.congestion_control.is_empty()).then(|| cell.congestion_control.clone()),
};

/// A name as the kernel writes it, at most as long as the kernel allows.
fn congestion_control(text: &str) -> Result<String, SpecError> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    if (1..=15).contains(&text.len()) && text.chars().all(is_plain) {
        return Ok(text.to_owned());
    }
    let message = format!("{text:?} is no name of a congestion control, such as \"cubic\" or \"bbr\"");
    Err(SpecError::new("congestion_control", message))
}

pub(super) const IDLE_CONNECTIONS: Factor = Factor {
    key: "idle_connections",
    kind: Kind::Number(Level::IdleConnections),
    default: Some(Value::Number(0)),
    set: |cell, level| cell.idle_connections = level.number(),
    shown: |cell| unusual("i", cell.idle_connections, 0),
};

pub(super) const LOAD_WORKERS: Factor = Factor {
    key: "load_workers",
    kind: Kind::Number(Level::LoadWorkers),
    default: None,
    set: |cell, level| cell.load_workers = level.number(),
    shown: |cell| unusual("lw", cell.load_workers, 1),
};

pub(super) const LOAD_CPUS: Factor = Factor {
    key: "load_cpus",
    kind: Kind::Cpus,
    default: None,
    set: |cell, level| cell.load_cpus = cpu_set(level.word()).unwrap_or_default(),
    shown: |cell| {
        let named = cell.load_cpus.iter().map(usize::to_string).collect::<Vec<_>>();
        (!named.is_empty()).then(|| format!("lcpu{}", named.join("+")))
    },
};

pub(super) const SERVER_CPUS: Factor = Factor {
    key: "server_cpus",
    kind: Kind::ServerCpus,
    default: None,
    // For `"all"`, the cell has no separate CPUs.
    set: |cell, level| cell.server_cpus = cpu_set(level.word()).unwrap_or_default(),
    shown: |cell| {
        let named = cell.server_cpus.iter().map(usize::to_string).collect::<Vec<_>>();
        (!named.is_empty()).then(|| format!("scpu{}", named.join("+")))
    },
};

const CLOSE: Factor = Factor {
    key: "close",
    kind: Kind::Flag,
    default: Some(Value::Flag(false)),
    set: |cell, level| cell.close = level.is_true(),
    shown: |cell| cell.close.then(|| "reconnect".to_owned()),
};

/// The protocol of messages that come back.
pub(super) struct Echo;

impl Protocol for Echo {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn factors(&self) -> &'static [Factor] {
        &[
            CONNECTIONS,
            DEPTH,
            MESSAGE_BYTES,
            CLOSE,
            WORKERS,
            ACCEPT,
            CONGESTION_CONTROL,
            IDLE_CONNECTIONS,
            SERVER_CPUS,
            LOAD_WORKERS,
            LOAD_CPUS,
        ]
    }

    fn obstacle(&self, cell: &CellSpec) -> Option<NoTurns> {
        cell.close.then_some(NoTurns::ConnectionEach)
    }

    fn check_cell(&self, cell: &CellSpec) -> Result<(), SpecError> {
        if cell.close && cell.depth > 1 {
            let message = format!("{} closes after each message, so that only one can be in flight", cell.id);
            return Err(SpecError::new("depth", message));
        }
        Ok(())
    }

    fn generator(&self) -> Option<LoadWords> {
        Some(words)
    }
}

fn words(cell: &CellSpec, address: &str) -> Vec<String> {
    let head = ["load", "echo", "--json", "--target", address];
    let bytes = ("--message-bytes", cell.message_bytes.to_string());
    let mut words = super::options(&head, &[&[bytes], connected(cell).as_slice()].concat());
    words.extend(cell.close.then(|| "--close".to_owned()));
    words
}

/// The subject of an arm: a server on one of Weir's drivers, a command, or a server that runs already.
pub(super) fn subject(arm: &mut Table<'_>, protocol: &str) -> Result<Subject, FieldError> {
    let driver = arm.take("driver");
    let command = arm.take("command");
    if let Some(entry) = arm.take("running") {
        if driver.is_some() || command.is_some() {
            return Err(arm.wrong("give one of `driver`, `command` and `running`"));
        }
        return running::read(arm, entry, protocol).map(Subject::Running);
    }
    let has_words = arm.has("options") || arm.has("arguments");
    let options = arm.read("options", Entry::options)?.unwrap_or_default();
    let arguments = arm.read("arguments", Entry::words)?.unwrap_or_default();
    match (driver, command) {
        (Some(entry), None) => {
            let at = entry.at;
            let driver = driver_name(&entry.text()?).to_owned();
            check_driver(&driver).at(at)?;
            check_arguments(&arguments).at(arm.at())?;
            Ok(Subject::Weir { driver, options, arguments })
        }
        (None, Some(entry)) if !has_words => {
            let at = entry.at;
            let argv = entry.words()?;
            check_program(&argv).at(at)?;
            Ok(Subject::Command { argv })
        }
        (None, Some(_)) => {
            Err(arm.wrong("`options` and `arguments` belong to a driver; write a command's into the command"))
        }
        (Some(_), Some(_)) => Err(arm.wrong("give one of `driver`, `command` and `running`")),
        (None, None) => Err(arm.wrong("give a `driver`, a `command`, or where it is `running`")),
    }
}

/// The command line of such an arm, for display.
pub(super) fn runs(subject: &Subject) -> Vec<String> {
    match subject {
        Subject::Weir { driver, options, arguments } => {
            let head = std::iter::once(format!("--driver {driver}"));
            head.chain(super::shown_options(options)).chain(arguments.iter().cloned()).collect()
        }
        Subject::Command { argv } => argv.clone(),
        Subject::Running(server) => {
            let pid = server.pid.map(|pid| format!("pid {pid}"));
            let cgroup = server.cgroup.as_ref().map(|group| format!("cgroup {group}"));
            [format!("running {}", server.address)].into_iter().chain(pid).chain(cgroup).collect()
        }
        Subject::Gateway(_) | Subject::Storage(_) | Subject::Fio { .. } => Vec::new(),
    }
}

/// Why such an arm cannot be up together with others.
pub(super) fn obstacle_of_arm(arm: &ArmSpec) -> Option<NoTurns> {
    let Subject::Command { argv } = &arm.subject else { return None };
    (!limits::names_port(argv, &arm.start)).then_some(NoTurns::NoPort)
}

/// Checks that every arm serves connections, and no more than its driver can name.
pub(super) fn check_servers(spec: &StudySpec) -> Result<(), SpecError> {
    spec.arms.iter().try_for_each(|arm| check_server(spec, arm).map_err(|error| error.of_arm(&arm.name)))
}

fn check_server(spec: &StudySpec, arm: &ArmSpec) -> Result<(), SpecError> {
    let wrong = |message: String| Err(SpecError::new("arm", message));
    let cells = || spec.cells.iter().filter(|cell| cell.has_arm(&arm.name));
    match &arm.subject {
        Subject::Weir { driver, arguments, .. } => {
            check_driver(driver)?;
            check_arguments(arguments)?;
            limits::arm_start(&arm.start, true)?;
            check_workers(driver, cells())?;
            check_descriptors(driver, cells())
        }
        Subject::Command { argv } => {
            check_program(argv)?;
            limits::port(argv, &arm.start)?;
            limits::arm_start(&arm.start, false)?;
            check_congestion_control(cells(), "arm.command")
        }
        Subject::Running(server) => {
            let protocol = spec.cells.first().map_or("echo", CellSpec::protocol);
            running::check(server, protocol, cells())?;
            check_congestion_control(cells(), "arm.running")
        }
        Subject::Storage(_) | Subject::Fio { .. } => {
            wrong(format!("arm {} works on a disk; write protocol = \"storage\" for it", arm.name))
        }
        Subject::Gateway(_) => wrong(format!("{} is a gateway, and no cell has orders", arm.name)),
    }
}

/// The name of a driver in a study. io_uring may have the kernel's name for it.
pub(crate) fn driver_name(text: &str) -> &str {
    if text == "io_uring" { "uring" } else { text }
}

pub(super) fn check_driver(driver: &str) -> Result<(), SpecError> {
    if DRIVERS.contains(&driver) {
        return Ok(());
    }
    let message = match driver {
        "auto" => "an arm must name its driver; `auto` would leave open what was measured".to_owned(),
        other => format!("there is no driver {other:?}; {}", instead(other, &DRIVERS)),
    };
    Err(SpecError::new("arm.driver", message))
}

/// Checks the workers of the blocking driver, which has a thread for each connection instead.
fn check_workers<'c>(driver: &str, mut cells: impl Iterator<Item = &'c CellSpec>) -> Result<(), SpecError> {
    let Some(cell) = cells.find(|cell| driver == "blocking" && cell.workers > 1) else { return Ok(()) };
    let message = format!(
        "blocking has a thread for each connection and no workers, and {} has {} workers; leave the arm out there with \
         the `arms` of a [[cell]], or ask for 1 worker",
        cell.id, cell.workers
    );
    Err(SpecError::new("arm.driver", message))
}

/// Refuses congestion control for foreign servers, because it cannot be passed to them.
fn check_congestion_control<'c>(
    mut cells: impl Iterator<Item = &'c CellSpec>,
    key: &str,
) -> Result<(), SpecError> {
    let Some(cell) = cells.find(|cell| !cell.congestion_control.is_empty()) else { return Ok(()) };
    let message = format!(
        "a foreign server cannot be told its congestion control, and {} asks for {}; leave the arm out there with the \
         `arms` of a [[cell]] or its own `where`",
        cell.id, cell.congestion_control
    );
    Err(SpecError::new(key, message))
}

/// Refuses cells with more connections than the arm's driver can name.
fn check_descriptors<'c>(
    driver: &str,
    mut cells: impl Iterator<Item = &'c CellSpec>,
) -> Result<(), SpecError> {
    if driver != "select" {
        return Ok(());
    }
    let most = |cell: &CellSpec| {
        SELECT_DESCRIPTORS.saturating_sub(DESCRIPTORS_BESIDE + DESCRIPTORS_PER_WORKER * cell.workers)
    };
    let asked = |cell: &CellSpec| cell.connections.saturating_add(cell.idle_connections);
    let Some(cell) = cells.find(|cell| asked(cell) > most(cell)) else {
        return Ok(());
    };
    let message = format!(
        "select watches descriptors below {SELECT_DESCRIPTORS}, which leaves {} for connections, and {} has {} (idle \
         ones included); use poll or epoll, or cells with fewer",
        most(cell),
        cell.id,
        asked(cell)
    );
    Err(SpecError::new("arm.driver", message))
}

fn check_program(argv: &[String]) -> Result<(), SpecError> {
    if argv.first().is_none_or(String::is_empty) {
        let texts = [
            "the command is empty; it must name a program",
            "명령이 비어 있습니다. 실행할 프로그램을 쓰십시오",
            "命令为空；请写明要运行的程序",
        ];
        return Err(SpecError::new("arm.command", Mistake::fixed(texts)));
    }
    Ok(())
}

/// Checks the further words of `weir serve`: not too many, and none that the laboratory sets itself.
pub(super) fn check_arguments(words: &[String]) -> Result<(), SpecError> {
    if words.len() > ARGUMENTS_MAX {
        let message = format!("{} words; at most {ARGUMENTS_MAX} are allowed", words.len());
        return Err(SpecError::new("arm.arguments", message));
    }
    let is_taken = |word: &&String| {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        ARGUMENTS_TAKEN.contains(&name)
    };
    match words.iter().find(is_taken) {
        Some(word) => {
            let message = format!(
                "{word:?} is what the laboratory says itself, from the arm's and the cell's own keys"
            );
            Err(SpecError::new("arm.arguments", message))
        }
        None => Ok(()),
    }
}
