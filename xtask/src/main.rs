//! The project's own checks: `cargo xtask ci` runs what continuous integration runs, `cargo xtask tidy` the rules about
//! the tree that no compiler knows, `cargo xtask interop` the order protocols against foreign implementations, `cargo
//! xtask hog` bursts of other work beside a study, `cargo xtask cross-check` a study against another generator, `cargo
//! xtask compare-figures` comparisons of commands whose difference is known.
//!
//! It uses of the workspace only random numbers, Student's t, the text of recordings and the bound start of child
//! processes, so that it builds in seconds and can judge a tree that does not build. Some commands write files of the
//! tree: `record` and `record-commands` recordings, `coverage` the pages about them, and `pictures` those of documents.

mod chromium;
mod ci;
mod compare_figures;
mod coverage;
mod cross_check;
mod failures;
mod hog;
mod interop;
mod pictures;
mod record;
mod record_commands;
mod site;
mod skips;
mod tidy;
mod weir_program;
mod words;
mod work;

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
};

const USAGE: &str = "usage: cargo xtask COMMAND [OPTIONS]

  ci     formatting, lints, tidy and all tests: exactly what continuous integration runs
  tidy   the rules about the tree alone: layers, unsafe, headers, lengths, leftovers, names, links
  interop  the order protocols against Nasdaq's own Python library and, where Maven is, the Java library nassau-core,
        both installed below the target folder (needs python3, its venv module and the package index; steps without
        Maven or tshark are skipped, or fail with WEIR_REQUIRE_TOOLS=mvn,tshark)
  hog    a noisy neighbour: bursts of 1 to 50 ms on every CPU it may use, to see what a study says beside it
        --seed N  --share SHARE [default: 0.2]  --after S [default: 0]  --seconds S [default: 120]
  record SITTING  takes the recordings that the rule of decision is tried on, in about 20 minutes in which the machine
        does nothing else: every study of docs/studies/recordings, once quiet and once beside the hog
        --only NAME,NAME  --condition quiet|hog  --seed N [default: 1]  --out FOLDER  --studies FOLDER
        --weir PROGRAM [default: the release build of the tree]  --beside-others
  record-commands SITTING  takes the recordings of commands: `weir compare` of sort, gzip, sqlite, Python and a
        server with themselves, some minutes each, in which the machine does nothing else
        --minutes M [default: 3]  --only NAME,NAME  --condition quiet|hog  --seed N [default: 1]  --out FOLDER
        --weir PROGRAM [default: the release build of the tree]  --beside-others
  coverage  draws docs/coverage.md and docs/coverage-commands.md from the recordings: how often intervals hold, what is
        called and what is found
  site  the documentation as a site with search, by mdBook, which its user installs; every link of it is followed
        --results FOLDER: a gallery of the stored runs in it  --out FOLDER [default: target/site]  --mdbook PROGRAM
        --weir PROGRAM [default: the release build of the tree]
  pictures  takes the pictures of docs/images from pages of results, by a headless Chromium
        --results FOLDER: folders of runs that begin with quick (two), tps and gateway; without it they are measured,
        which takes about half an hour  --only NAME,NAME  --out FOLDER [default: docs/images]
        --weir PROGRAM [default: the release build of the tree]
  compare-figures  what `weir compare` says of a program that only computes, beside itself and beside a share more work,
        and what hyperfine says of the same, where it is installed: a table
        --alike N [default: 3]  --planted N [default: 3]  --percent P [default: 3]  --cpu MS,MS [default: 50,5]
        --budget S [default: 20]  --seed N  --hog  --no-hyperfine  --weir PROGRAM [default: the release build]
  cross-check  the ratio of io_uring over epoll for the echo server at one rate, by a generator that shares no code with
        `weir load`; exit code 1 where the interval does not overlap the study's
        --connections N [default: 100]  --rate PER_SECOND | --share SHARE [default: 0.5]  --rounds N [default: 12]
        --slice MS [default: 50]  --permutations N [default: 8]  --gaps poisson|equal  --seed N [default: 1]
        --study DIR  --weir PROGRAM";

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks to its user")]
fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["ci"] => exit_code(ci::run(&workspace_root())),
        ["tidy"] => exit_code(ci::run_tidy(&workspace_root())),
        ["interop"] => interop::run(&workspace_root()),
        ["hog", options @ ..] => hog::run(options),
        ["record", options @ ..] => record::run(&workspace_root(), options),
        ["record-commands", options @ ..] => record_commands::run(&workspace_root(), options),
        ["compare-figures", options @ ..] => compare_figures::run(&workspace_root(), options),
        ["work", turns @ ..] => work::run(turns),
        ["site", options @ ..] => site::run(&workspace_root(), options),
        ["pictures", options @ ..] => pictures::run(&workspace_root(), options),
        ["coverage"] => exit_code(coverage::run(&workspace_root())),
        ["cross-check", options @ ..] => cross_check::run(&workspace_root(), options),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn exit_code(passed: bool) -> ExitCode {
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The folder of the workspace manifest, whatever the current directory.
fn workspace_root() -> PathBuf {
    let own_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    own_folder.parent().unwrap_or(own_folder).to_path_buf()
}
