//! Programs that studies run beside a server: clients, `weir-neighbour abusive|idle|replayer ADDRESS [options]`, and
//! a dashboard with watchers, `weir-neighbour dashboard PROGRAM [options]`.
//!
//! Each prints `ready` when its work has begun and runs until it is killed; it ends by itself only with an error,
//! when the server misbehaves. Exit codes are those of `weir`: 1 runtime error, 2 usage.

mod abusive;
mod dashboard;
mod idle;
mod replayer;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

const USAGE: &str = "usage: weir-neighbour abusive ADDRESS [--mute-requests N]
       weir-neighbour idle ADDRESS --connections N [--addresses N]
       weir-neighbour replayer ADDRESS --account NAME --messages N --scratch DIR [--bytes-per-second N]
       weir-neighbour dashboard PROGRAM --results DIR [--watchers N]";

/// The message and exit code with which the program ends.
#[derive(Debug, PartialEq, Eq)]
struct Failure {
    code: u8,
    message: String,
}

/// The parsed command line.
#[derive(Debug, PartialEq, Eq)]
enum Role {
    Abusive {
        server: SocketAddr,
        mute_requests: usize,
    },
    Idle {
        server: SocketAddr,
        connections: u32,
        addresses: u32,
    },
    Replayer {
        server: SocketAddr,
        account: String,
        messages: u32,
        scratch: PathBuf,
        bytes_per_second: Option<u32>,
    },
    Dashboard {
        program: PathBuf,
        results: PathBuf,
        watchers: u32,
    },
}

fn main() -> ExitCode {
    let Err(failure) = parse(std::env::args().skip(1)).and_then(|asked| run(&asked));
    // A closed standard error cannot be reported anywhere.
    let _ = writeln!(io::stderr(), "{}", failure.message);
    ExitCode::from(failure.code)
}

fn run(asked: &Role) -> Result<std::convert::Infallible, Failure> {
    let ended = match asked {
        Role::Abusive { server, mute_requests } => {
            abusive::annoy(*server, *mute_requests, ready, &AtomicBool::new(false))
                .map(|_| "it was told to stop".to_owned())
        }
        Role::Idle { server, connections, addresses } => idle::stay(*server, *addresses, *connections, ready),
        Role::Replayer { server, account, messages, scratch, bytes_per_second } => {
            let login = replayer::Login { address: *server, account };
            replayer::replay_again(login, *messages, scratch, *bytes_per_second, ready)
        }
        Role::Dashboard { program, results, watchers } => {
            dashboard::look_on(program, results, *watchers, ready)
        }
    };
    Err(Failure { code: 1, message: ended.unwrap_or_else(|error| error) })
}

/// Reports that the work has begun.
fn ready() -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "ready")?;
    output.flush()
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Role, Failure> {
    let role = words.next().unwrap_or_default();
    let of = words.next().ok_or_else(|| usage(USAGE.to_owned()))?;
    if role == "dashboard" {
        return dashboard(PathBuf::from(of), words);
    }
    let server = number("ADDRESS", &of)?;
    let (mut connections, mut addresses, mut messages) = (None, 1, None);
    let (mut mute_requests, mut account, mut scratch, mut bytes_per_second) = (1, None, None, None);
    while let Some(name) = words.next() {
        let value = words.next().ok_or_else(|| usage(format!("{name} needs a value\n{USAGE}")))?;
        match (role.as_str(), name.as_str()) {
            ("abusive", "--mute-requests") => mute_requests = number(&name, &value)?,
            ("idle", "--connections") => connections = Some(number(&name, &value)?),
            ("idle", "--addresses") => addresses = number(&name, &value)?,
            ("replayer", "--account") => account = Some(value),
            ("replayer", "--messages") => messages = Some(number(&name, &value)?),
            ("replayer", "--scratch") => scratch = Some(PathBuf::from(value)),
            ("replayer", "--bytes-per-second") => bytes_per_second = Some(number(&name, &value)?),
            _ => return Err(usage(format!("not understood: {name} {value}\n{USAGE}"))),
        }
    }
    let missing = |name: &str| usage(format!("{name} is missing\n{USAGE}"));
    match role.as_str() {
        "abusive" => Ok(Role::Abusive { server, mute_requests }),
        "idle" => {
            let connections = connections.ok_or_else(|| missing("--connections"))?;
            Ok(Role::Idle { server, connections, addresses })
        }
        "replayer" => Ok(Role::Replayer {
            server,
            account: account.ok_or_else(|| missing("--account"))?,
            messages: messages.ok_or_else(|| missing("--messages"))?,
            scratch: scratch.ok_or_else(|| missing("--scratch"))?,
            bytes_per_second,
        }),
        _ => Err(usage(USAGE.to_owned())),
    }
}

fn dashboard(program: PathBuf, mut words: impl Iterator<Item = String>) -> Result<Role, Failure> {
    let (mut results, mut watchers) = (None, 1);
    while let Some(name) = words.next() {
        let value = words.next().ok_or_else(|| usage(format!("{name} needs a value\n{USAGE}")))?;
        match name.as_str() {
            "--results" => results = Some(PathBuf::from(value)),
            "--watchers" => watchers = number(&name, &value)?,
            _ => return Err(usage(format!("not understood: {name} {value}\n{USAGE}"))),
        }
    }
    if watchers > dashboard::WATCHERS_MAX {
        return Err(usage(format!("--watchers takes {} at most\n{USAGE}", dashboard::WATCHERS_MAX)));
    }
    let results = results.ok_or_else(|| usage(format!("--results is missing\n{USAGE}")))?;
    Ok(Role::Dashboard { program, results, watchers })
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, Failure> {
    value.parse().map_err(|_| usage(format!("{name} does not take {value:?}\n{USAGE}")))
}

fn usage(message: String) -> Failure {
    Failure { code: 2, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Role, String> {
        parse(words.split_whitespace().map(str::to_owned)).map_err(|failure| failure.message)
    }

    #[test]
    fn each_has_its_own_words_and_a_mistake_is_named() {
        let server: SocketAddr = "127.0.0.1:9".parse().expect("an address");
        assert_eq!(read("abusive 127.0.0.1:9"), Ok(Role::Abusive { server, mute_requests: 1 }));
        let found = read("idle 127.0.0.1:9 --connections 7 --addresses 2");
        assert_eq!(found, Ok(Role::Idle { server, connections: 7, addresses: 2 }));
        let found =
            read("replayer 127.0.0.1:9 --account C00002 --messages 5 --scratch /x --bytes-per-second 10");
        assert!(
            matches!(found, Ok(Role::Replayer { messages: 5, bytes_per_second: Some(10), .. })),
            "{found:?}"
        );
        let found = read("dashboard /x/weir --results weir-results --watchers 0");
        let (program, results) = (PathBuf::from("/x/weir"), PathBuf::from("weir-results"));
        assert_eq!(found, Ok(Role::Dashboard { program, results, watchers: 0 }));
        let wrong = |words: &str| {
            read(words).expect_err("it is a mistake").lines().next().unwrap_or_default().to_owned()
        };
        assert_eq!(wrong("idle 127.0.0.1:9"), "--connections is missing");
        assert_eq!(wrong("dashboard weir"), "--results is missing");
        assert_eq!(wrong("dashboard weir --results x --watchers 9"), "--watchers takes 8 at most");
        assert_eq!(wrong("dashboard weir --port 1"), "not understood: --port 1");
        assert_eq!(wrong("abusive 127.0.0.1:9 --connections 7"), "not understood: --connections 7");
        assert_eq!(wrong("abusive somewhere"), "ADDRESS does not take \"somewhere\"");
        assert_eq!(wrong("replayer 127.0.0.1:9 --messages"), "--messages needs a value");
        assert!(wrong("").starts_with("usage: ") && wrong("polite 127.0.0.1:9").starts_with("usage: "));
    }
}
