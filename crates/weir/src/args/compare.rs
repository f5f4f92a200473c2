//! `weir compare` as it is typed: the words of hyperfine's users, where there are such.

use std::path::PathBuf;

use clap::Args;

use super::origin::OriginFlags;
use crate::flags::number;

/// What its help ends with.
const AFTER: &str = "\
Examples:
  weir compare 'old/sort big.txt' 'new/sort big.txt'
  weir compare -L build old,new 'build/{build}/app --check data'
  weir compare 'old/app' 'new/app' --fail-if 'cpu ratio > 1.03' \\
    --export-markdown comment.md

Runs take turns in random order, the first command twice in each pair. The verdict is on CPU
time (user and system).

Exit codes:
  0    there is a verdict; with --fail-if, all thresholds hold
  1    something failed, such as the command of --prepare
  2    the command line is wrong, and nothing was compared
  10   a threshold is missed by the whole interval
  11   inconclusive: the intervals do not decide
  12   the commands cannot be compared: other output, or one of them fails
  13   a command cannot start
  14   the baseline cannot start, or fails
  130  interrupted; the exports have what was measured";

#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Compare {
    /// Commands that end: the first is the baseline. Quote each command as one word. With one command alone,
    /// --parameter-list or --parameter-scan makes several of it
    #[arg(value_name = "COMMAND", required_unless_present = "schema")]
    pub(crate) commands: Vec<String>,
    /// Time for the pairs of a comparison (60s, 5min, 500ms; a number is seconds); a pilot says how many of them it
    /// takes
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    pub(crate) budget: String,
    /// Pairs, 6 or more, in the place of those that the pilot and --budget allow; a pair is one run of each command and
    /// a second one of the first
    #[arg(short, long, value_name = "N", conflicts_with = "min_runs", value_parser = number::<u32>)]
    pub(crate) runs: Option<u32>,
    /// Fewest pairs, 6 or more, although they take longer than --budget [default: as
    /// many as fit, from 6 to 10]
    #[arg(short, long, value_name = "N", value_parser = number::<u32>)]
    pub(crate) min_runs: Option<u32>,
    /// Rounds that are not measured, before all others
    #[arg(short, long, value_name = "N", default_value_t = 0, value_parser = number::<u32>)]
    pub(crate) warmup: u32,
    /// Longest that a run may take (60s, 5min, 500ms; a number is seconds); it is then ended with all it started
    #[arg(long, value_name = "DURATION", default_value = "5min")]
    pub(crate) limit: String,
    /// Command before each run, not measured: once for all, or once for each command
    #[arg(short, long, value_name = "COMMAND")]
    pub(crate) prepare: Vec<String>,
    /// Command after each run, not measured
    #[arg(long, value_name = "COMMAND")]
    pub(crate) conclude: Option<String>,
    /// Command before the first run of each command
    #[arg(short, long, value_name = "COMMAND")]
    pub(crate) setup: Option<String>,
    /// Command after the last run of each command
    #[arg(short, long, value_name = "COMMAND")]
    pub(crate) cleanup: Option<String>,
    /// Values of a parameter, written as {VAR} in commands: with one command each value makes a command, with several
    /// each makes a comparison
    #[arg(short = 'L', long, num_args = 2, value_names = ["VAR", "VALUES"])]
    pub(crate) parameter_list: Vec<String>,
    /// The same with numbers from MIN to MAX
    #[arg(short = 'P', long, num_args = 3, value_names = ["VAR", "MIN", "MAX"], allow_negative_numbers = true)]
    pub(crate) parameter_scan: Vec<String>,
    /// Step of --parameter-scan
    #[arg(short = 'D', long, value_name = "STEP", default_value = "1", requires = "parameter_scan")]
    pub(crate) parameter_step_size: String,
    /// Name of a command, in their order
    #[arg(short, long, alias = "command-name", value_name = "NAME")]
    pub(crate) name: Vec<String>,
    /// Shell that runs the commands, such as sh or bash; none runs them without one
    #[arg(short = 'S', long, value_name = "SHELL", default_value = "none")]
    pub(crate) shell: String,
    /// No shell, which is the default
    #[arg(short = 'N')]
    pub(crate) no_shell: bool,
    /// File on the standard input of each run [default: empty]
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    /// What becomes of the output: pipe (compared, and not kept), null, inherit, or a file
    #[arg(long, value_name = "WHERE", default_value = "pipe")]
    pub(crate) output: String,
    /// The same as --output inherit
    #[arg(long, conflicts_with = "output")]
    pub(crate) show_output: bool,
    /// Runs that fail are compared as well
    #[arg(short, long)]
    pub(crate) ignore_failure: bool,
    /// A variable of the environment of every run of all commands; the program env sets one for one command: 'env
    /// NAME=VALUE COMMAND'; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// Folder in which commands run
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// A build of the baseline whose code only lies elsewhere in memory, such as with its objects linked in another
    /// order; a verdict then needs a larger difference than placebos show; repeatable
    #[arg(long, value_name = "COMMAND")]
    pub(crate) placebo: Vec<String>,
    /// A threshold, "[COMMAND] METRIC [ratio] > NUMBER[UNIT]", such as "cpu ratio > 1.03" or "memory > 100MiB": exit
    /// code 10 when the whole interval is beyond it, 11 when it includes the bound, 0 when all hold. Metrics: cpu,
    /// user, system, time, memory, minor-faults, major-faults, voluntary-switches, involuntary-switches, bytes-read,
    /// bytes-written, instructions
    #[arg(long, value_name = "THRESHOLD")]
    pub(crate) fail_if: Vec<String>,
    /// With thresholds: an interval that includes the bound fails nothing
    #[arg(long, requires = "fail_if")]
    pub(crate) inconclusive_passes: bool,
    /// Write everything as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) export_json: Option<PathBuf>,
    /// Write a comment of at most 15 lines; - is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) export_markdown: Option<PathBuf>,
    /// Write every run as CSV; - is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) export_csv: Option<PathBuf>,
    /// Store everything as a file of its own in this folder, for weir history and weir dashboard; the folder is made
    #[arg(long, value_name = "DIR", conflicts_with = "schema")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) origin: OriginFlags,
    /// Print the JSON Schema of what --export-json writes, and run nothing
    #[arg(long, conflicts_with = "commands")]
    pub(crate) schema: bool,
    /// Seed of every random order [default: from the clock; it is stored and printed]
    #[arg(long, value_parser = number::<u64>)]
    pub(crate) seed: Option<u64>,
    /// Language: en, ko or zh [default: that of the locale]
    #[arg(long)]
    pub(crate) lang: Option<String>,
}
