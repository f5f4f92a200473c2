//! `weir completions` and `weir man`: the definition of the command line, for shells and for `man`.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result};
use clap::{Arg, ArgGroup, CommandFactory, builder::PossibleValuesParser};
use clap_complete::Shell;
use clap_mangen::Man as Page;
use weir_lab::builtin::{self, BuiltIn};
use weir_record::storage::StorageEngine;

use crate::{
    args::{Arguments, Completions, Man, all_study_names},
    exit::{Exit, UsageError},
    output,
};

pub(crate) fn completions(arguments: &Completions) -> Result<Exit> {
    let mut script = Vec::new();
    let mut command = with_values(shown(Arguments::command()));
    clap_complete::generate(arguments.shell, &mut command, "weir", &mut script);
    output::print(&with_studies(arguments.shell, String::from_utf8_lossy(&script).into_owned()))?;
    Ok(Exit::Ok)
}

/// The definition with the usual values of flags, for shells alone: other values are accepted too.
fn with_values(command: clap::Command) -> clap::Command {
    let named = |arg: Arg| match known_words(arg.get_id().as_str()) {
        words if words.is_empty() => arg,
        words => arg.value_parser(PossibleValuesParser::new(words)),
    };
    command.mut_args(named).mut_subcommands(with_values)
}

/// Values by the name of their flag; none if they are unknown.
fn known_words(id: &str) -> Vec<String> {
    let of_studies = |words: fn(&BuiltIn) -> Vec<String>| -> Vec<String> {
        let all: BTreeSet<String> = builtin::ALL.iter().flat_map(words).collect();
        all.into_iter().collect()
    };
    let fixed = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    match id {
        "study" => fixed(&all_study_names()),
        "levels" => of_studies(BuiltIn::plans),
        "arm" => of_studies(BuiltIn::arms),
        "protocol" => fixed(&["echo", "http"]),
        "lang" => fixed(&["en", "ko", "zh"]),
        "driver" => fixed(&["auto", "uring", "epoll", "poll", "select", "blocking"]),
        "engine" => StorageEngine::ALL.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    }
}

/// Studies beside files: zsh would offer only the names, and fish nothing.
fn with_studies(shell: Shell, script: String) -> String {
    let names = all_study_names().join(" ");
    match shell {
        Shell::Zsh => {
            let function = format!(
                "_weir_studies() {{\n    _alternative 'studies:study:({names})' 'files:study file:_files'\n}}\n\n_weir() {{"
            );
            script.replace(&format!("({names})"), "_weir_studies").replacen("_weir() {", &function, 1)
        }
        Shell::Fish => {
            format!("{script}complete -c weir -n \"__fish_seen_subcommand_from study\" -a \"{names}\"\n")
        }
        _ => script,
    }
}

pub(crate) fn man(arguments: &Man) -> Result<Exit> {
    let mut root = shown(Arguments::command());
    root.build();
    if let Some(folder) = &arguments.out {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make {}; choose another folder with --out", folder.display()))?;
        let pages = write_all(&root, folder)?;
        output::tell(&format!("{pages} pages in {}; man -l FILE shows one", folder.display()));
        return Ok(Exit::Ok);
    }
    let mut command = &root;
    for word in &arguments.command {
        command = command.find_subcommand(word).ok_or_else(|| {
            let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            let remedy =
                if names.is_empty() { "leave it out".into() } else { format!("use {}", names.join(", ")) };
            UsageError(format!(
                "{} has no command {word}; {remedy}",
                command.get_display_name().unwrap_or("weir")
            ))
        })?;
    }
    output::print(&page(command)?)?;
    Ok(Exit::Ok)
}

/// The definition without hidden parts, and without the `help` of each level.
fn shown(command: clap::Command) -> clap::Command {
    let commands: Vec<_> =
        command.get_subcommands().filter(|it| !it.is_hide_set()).cloned().map(shown).collect();
    let arguments: Vec<_> = command.get_arguments().filter(|it| !it.is_hide_set()).cloned().collect();
    let mut kept = clap::Command::new(command.get_name().to_owned())
        .disable_help_subcommand(true)
        .args(&arguments)
        .groups(command.get_groups().map(|group| members(group, &arguments)))
        .subcommands(commands);
    if let Some(version) = command.get_version() {
        kept = kept.version(version.to_owned());
    }
    if let Some(about) = command.get_about() {
        kept = kept.about(about.clone());
    }
    if let Some(after) = command.get_after_help() {
        kept = kept.after_help(after.clone());
    }
    kept
}

/// The group, with the members that are kept.
fn members(group: &ArgGroup, kept: &[Arg]) -> ArgGroup {
    let is_kept = |id: &&clap::Id| kept.iter().any(|argument| argument.get_id() == *id);
    ArgGroup::new(group.get_id().clone()).args(group.get_args().filter(is_kept).cloned()).multiple(true)
}

fn page(command: &clap::Command) -> Result<String> {
    let mut command = command.clone();
    // A list of all flags would say less than the usual line.
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().to_owned();
    let mut page = Vec::new();
    Page::new(command.override_usage(usage))
        .source(concat!("weir ", env!("CARGO_PKG_VERSION")))
        .manual("Weir")
        .render(&mut page)
        .context("cannot write to memory")?;
    Ok(with_headings(&String::from_utf8_lossy(&page)))
}

/// The text after the flags, below the headings of man pages.
fn with_headings(page: &str) -> String {
    page.replacen("\n.SH EXTRA\nExamples:\n", "\n.SH EXAMPLES\n", 1)
        .replacen("\n.SH EXTRA\n", "\n.SH NOTES\n", 1)
        .replacen("\nExit codes:\n", "\n.SH EXIT STATUS\n", 1)
}

/// Writes one page for each command, and returns their number.
fn write_all(command: &clap::Command, folder: &Path) -> Result<usize> {
    let name = command.get_display_name().unwrap_or("weir");
    output::write_whole(&folder.join(format!("{name}.1")), &page(command)?)?;
    command.get_subcommands().try_fold(1, |pages, below| Ok(pages + write_all(below, folder)?))
}
