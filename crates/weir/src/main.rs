//! The command line: arguments become a specification, the specification runs, the outcome becomes an exit code.
//! Nothing below this crate prints, exits or reads the environment.

mod args;
mod command;
mod command_line;
mod engine;
mod engine_options;
mod exit;
mod flags;
mod git_head;
mod hanging;
mod help;
mod language;
mod load;
mod load_hosts;
mod load_text;
mod orphans;
mod output;
mod protocol;
mod renamed;
mod request_mix;
mod serve;
mod shipped;
mod signals;

use args::{Arguments, Command};
use clap::{CommandFactory, FromArgMatches};

fn main() -> std::process::ExitCode {
    let mut command = Arguments::command();
    let matches = match command.try_get_matches_from_mut(std::env::args_os()) {
        Ok(matches) => matches,
        Err(error) => command_line::exit(&command, error),
    };
    let arguments = match Arguments::from_arg_matches(&matches) {
        Ok(arguments) => arguments,
        Err(error) => {
            let error = error.format(&mut command);
            command_line::exit(&command, error)
        }
    };
    let outcome = match &arguments.command {
        Command::Study(study) => command::study::run(study),
        Command::Compare(compare) => command::compare::run(compare),
        Command::LaunchRuns => command::launch_runs::run(),
        Command::Doctor(doctor) => command::doctor::run(doctor),
        Command::Serve(serve) => serve.run(),
        Command::Load(load) => {
            let run = if load.command().shared().hosts.is_empty() { load::run } else { load_hosts::run };
            run(load.command(), &flags::settings_of(&command, &matches))
        }
        Command::Storage(storage) => command::storage::run(storage),
        Command::Top(top) => command::top::run(top),
        Command::Observe(observe) => command::observe::run(observe),
        Command::Ctl(ctl) => command::ctl::run(ctl),
        Command::Journal(journal) => command::journal::run(journal),
        Command::Report(report) => command::report::run(report),
        Command::Export(export) => command::export::run(export),
        Command::History(history) => command::history::run(history),
        Command::Dashboard(dashboard) => command::dashboard::run(dashboard),
        Command::LoadSlices => command::load_slices::run(),
        Command::LoadPart => command::load_part::run(),
        Command::Agent(agent) => command::agent::run(agent),
        Command::Completions(completions) => command::manual::completions(completions),
        Command::Man(man) => command::manual::man(man),
        Command::Supervise(supervise) => command::supervise::run(supervise),
    };
    outcome.unwrap_or_else(|error| exit::report(&error, language::of_command_line())).into()
}
