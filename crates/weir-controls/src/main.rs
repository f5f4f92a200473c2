//! The command line of the controls: `weir-control epoll|uring --listen ADDR [--pin CPUS] [options]`.
//!
//! Prints `listening on ADDR` and serves until it is killed. Exit codes are those of `weir`: 1 runtime
//! error, 2 usage, 13 the environment cannot run this.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;

use weir_controls::epoll::Calls;
use weir_controls::uring::{Options, Receive};

const USAGE: &str = "usage: weir-control epoll|uring --listen ADDR [--pin CPUS]
       epoll only: [--calls inline|functions]
       uring only: [--receive multishot|single] [--buffer-bytes N] [--buffer-count N]";

/// The message and exit code with which the program ends.
struct Failure {
    code: u8,
    message: String,
}

/// The parsed command line.
struct Arguments {
    driver: Driver,
    listen: SocketAddr,
    pin: Vec<usize>,
    calls: Calls,
    options: Options,
}

enum Driver {
    Epoll,
    Uring,
}

fn main() -> ExitCode {
    let Err(failure) = parse(std::env::args().skip(1)).and_then(|arguments| run(&arguments));
    // A closed standard error cannot be reported anywhere.
    let _ = writeln!(io::stderr(), "{}", failure.message);
    ExitCode::from(failure.code)
}

fn run(arguments: &Arguments) -> Result<std::convert::Infallible, Failure> {
    weir_controls::pin(&arguments.pin)
        .map_err(|error| environment(format!("cannot pin to CPUs {:?}: {error}", arguments.pin)))?;
    let listener = weir_controls::listen(arguments.listen)
        .map_err(|error| runtime(format!("cannot listen on {}: {error}", arguments.listen)))?;
    let address = listener.local_addr().map_err(|error| runtime(error.to_string()))?;
    let ended = match arguments.driver {
        Driver::Epoll => {
            announce(address).and_then(|()| weir_controls::epoll::run(listener, arguments.calls))
        }
        Driver::Uring => {
            let ring = weir_controls::uring::open()
                .map_err(|error| environment(format!("io_uring cannot be used here: {error}")))?;
            announce(address).and_then(|()| weir_controls::uring::run(ring, listener, &arguments.options))
        }
    };
    ended.map_err(|error| runtime(error.to_string()))
}

fn announce(address: SocketAddr) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "listening on {address}")?;
    output.flush()
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, Failure> {
    let driver = match words.next().as_deref() {
        Some("epoll") => Driver::Epoll,
        Some("uring") => Driver::Uring,
        _ => return Err(usage(USAGE.to_owned())),
    };
    let mut listen = None;
    let mut pin = Vec::new();
    let mut calls = Calls::default();
    let mut options = Options::default();
    while let Some(name) = words.next() {
        let is_uring = matches!(driver, Driver::Uring);
        let value = words.next().ok_or_else(|| usage(format!("{name} needs a value\n{USAGE}")))?;
        match name.as_str() {
            "--listen" => listen = Some(number(&name, &value)?),
            "--pin" => pin = list(&name, &value)?,
            "--calls" if !is_uring && value == "inline" => calls = Calls::Inline,
            "--calls" if !is_uring && value == "functions" => calls = Calls::InFunctions,
            "--receive" if is_uring && value == "multishot" => options.receive = Receive::Multishot,
            "--receive" if is_uring && value == "single" => options.receive = Receive::Single,
            "--buffer-bytes" if is_uring => options.buffer_bytes = number(&name, &value)?,
            "--buffer-count" if is_uring => options.buffer_count = number(&name, &value)?,
            _ => return Err(usage(format!("not understood: {name} {value}\n{USAGE}"))),
        }
    }
    options.validate().map_err(|reason| usage(reason.to_owned()))?;
    let listen = listen.ok_or_else(|| usage(format!("--listen is missing\n{USAGE}")))?;
    Ok(Arguments { driver, listen, pin, calls, options })
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, Failure> {
    value.parse().map_err(|_| usage(format!("{name} does not take {value:?}\n{USAGE}")))
}

/// A list such as `0` or `0,2`; an empty one is allowed, so that a study without pinning needs no other
/// command.
fn list(name: &str, value: &str) -> Result<Vec<usize>, Failure> {
    value.split(',').filter(|item| !item.is_empty()).map(|item| number(name, item)).collect()
}

fn usage(message: String) -> Failure {
    Failure { code: 2, message }
}

fn environment(message: String) -> Failure {
    Failure { code: 13, message }
}

fn runtime(message: String) -> Failure {
    Failure { code: 1, message }
}
