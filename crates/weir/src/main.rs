//! The command line: arguments become a specification, the specification runs, the outcome becomes an exit code.
//! Nothing below this crate prints, exits or reads the environment.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is the one crate that talks to people")]

mod args;
mod command;
mod exit;
mod signals;

use clap::Parser;

fn main() -> std::process::ExitCode {
    let arguments = args::Arguments::parse();
    let outcome = match arguments.command {
        args::Command::Serve(serve) => command::serve::run(&serve),
    };
    outcome.unwrap_or_else(|error| exit::report(&error)).into()
}
