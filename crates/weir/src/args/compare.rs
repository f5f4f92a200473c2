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
  weir compare --serve 'old/app --port {port}' --serve 'new/app --port {port}' \\
    --load 'wrk -t1 -c8 -d1s http://127.0.0.1:{port}/'

Runs take turns in random order, the first command twice in each pair. The verdict is on CPU
time (user and system).

Exit codes:
  0    there is a verdict; with --fail-if, all thresholds hold
  1    something failed, such as the command of --prepare
  2    the command line is wrong, and nothing was compared
  10   a threshold is missed by the whole interval
  11   inconclusive: the intervals do not decide
  12   the commands cannot be compared: other output, or one of them fails
  13   a command cannot start, or a server is not ready
  14   the baseline cannot start, or fails
  130  interrupted; the exports have what was measured";

#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Compare {
    /// Commands that end: the first is the baseline. Quote each command as one word. With a single command,
    /// --parameter-list or --parameter-scan makes several of it
    #[arg(value_name = "COMMAND", required_unless_present_any = ["schema", "serve"])]
    pub(crate) commands: Vec<String>,
    /// A server instead of a command that ends, with {port} for a port that weir picks and {dir} for a fresh
    /// folder; the first is the baseline and is started twice; repeatable
    #[arg(long, help_heading = "Servers", value_name = "COMMAND")]
    pub(crate) serve: Vec<String>,
    /// The load of the servers: a command that ends, with {port} and {dir} of the server that it loads, and {out} for a
    /// file of its results. Known: ab, ghz, hey, k6, memtier_benchmark, oha, pgbench, redis-benchmark, wrk, and weir
    /// load --json
    #[arg(long, help_heading = "Servers", value_name = "COMMAND")]
    pub(crate) load: Option<String>,
    /// How much a load run did, for loads that are not known: a regular expression with one group around the number
    #[arg(long, help_heading = "Servers", value_name = "REGEX", conflicts_with = "count_json")]
    pub(crate) count_regex: Option<String>,
    /// The same as a JSON pointer into what the load writes, such as /totals/count
    #[arg(long, help_heading = "Servers", value_name = "POINTER")]
    pub(crate) count_json: Option<String>,
    /// Command before each load run, not measured, with {port} and {dir}
    #[arg(long, help_heading = "Servers", value_name = "COMMAND")]
    pub(crate) between: Option<String>,
    /// A server is ready when this command ends with status 0; it runs again until it does [default: a server is ready
    /// when its port accepts a connection]
    #[arg(long, help_heading = "Servers", value_name = "COMMAND", conflicts_with = "ready_line")]
    pub(crate) ready: Option<String>,
    /// A server is ready when it has written a line with this text
    #[arg(long, help_heading = "Servers", value_name = "TEXT")]
    pub(crate) ready_line: Option<String>,
    /// Longest time until a server is ready [default: 30s]
    #[arg(long, help_heading = "Servers", value_name = "DURATION")]
    pub(crate) ready_timeout: Option<String>,
    /// Time from the end of a load run to the reading of its server's CPU, for what the server does late [default:
    /// 100ms]
    #[arg(long, help_heading = "Servers", value_name = "DURATION")]
    pub(crate) settle: Option<String>,
    /// Pairs after which all servers are started anew, so that the interval includes differences between starts
    /// [default: 3]
    #[arg(long, help_heading = "Servers", value_name = "N", value_parser = number::<u32>)]
    pub(crate) pairs_per_start: Option<u32>,
    /// Time for the pairs of a comparison (60s, 5min, 500ms; a number is seconds); a pilot finds how many of them
    /// fit [default: 60s, with --serve 120s]
    #[arg(long, value_name = "DURATION")]
    pub(crate) budget: Option<String>,
    /// Pairs, 6 or more, instead of the number that the pilot and --budget allow; a pair is one run of each command and
    /// a second one of the first
    #[arg(short, long, value_name = "N", conflicts_with = "min_runs", value_parser = number::<u32>)]
    pub(crate) runs: Option<u32>,
    /// Fewest pairs, 6 or more, even if they take longer than --budget [default: as many as fit, from 6 to 10]
    #[arg(short, long, value_name = "N", value_parser = number::<u32>)]
    pub(crate) min_runs: Option<u32>,
    /// Rounds before all others that are not measured; with --serve, after each start [default: 0, with --serve 1]
    #[arg(short, long, value_name = "N", value_parser = number::<u32>)]
    pub(crate) warmup: Option<u32>,
    /// Time limit of a run (60s, 5min, 500ms; a number is seconds); a longer run is ended with all that it started
    #[arg(long, value_name = "DURATION", default_value = "5min")]
    pub(crate) limit: String,
    /// Command before each run, not measured: once for all, or once for each command
    #[arg(short, long, value_name = "COMMAND")]
    pub(crate) prepare: Vec<String>,
    /// Command after each run, not measured
    #[arg(long, value_name = "COMMAND")]
    pub(crate) conclude: Option<String>,
    /// Command before the first run of each command; with --serve, before each start
    #[arg(short, long, value_name = "COMMAND")]
    pub(crate) setup: Option<String>,
    /// Command after the last run of each command; with --serve, after each end
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
    /// Name of a command, in the order of the commands
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
    /// Where the output goes: pipe (compared, and not kept), null, inherit, or a file
    #[arg(long, value_name = "WHERE", default_value = "pipe")]
    pub(crate) output: String,
    /// The same as --output inherit
    #[arg(long, conflicts_with = "output")]
    pub(crate) show_output: bool,
    /// Compare runs that fail as well
    #[arg(short, long)]
    pub(crate) ignore_failure: bool,
    /// A variable of the environment of every run of all commands; the program env sets one for one command: 'env
    /// NAME=VALUE COMMAND'; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// Folder in which commands run
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// A build of the baseline that differs only in the layout of its code, such as by another link order of its
    /// objects; a verdict then needs a larger difference than placebos show; repeatable
    #[arg(long, value_name = "COMMAND")]
    pub(crate) placebo: Vec<String>,
    /// A threshold, "[COMMAND] METRIC [ratio] > NUMBER[UNIT]", such as "cpu ratio > 1.03" or "memory > 100MiB": exit
    /// code 10 when the whole interval is beyond it, 11 when it includes the bound, 0 when all hold. Metrics: cpu,
    /// user, system, time, memory, minor-faults, major-faults, voluntary-switches, involuntary-switches, bytes-read,
    /// bytes-written, instructions, and throughput of servers
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
    /// Store everything as a separate file in this folder, for weir history and weir dashboard; the folder is made
    #[arg(long, value_name = "DIR", conflicts_with = "schema")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) origin: OriginFlags,
    /// Print the JSON Schema of what --export-json writes, and run nothing
    #[arg(long, conflicts_with_all = ["commands", "serve"])]
    pub(crate) schema: bool,
    /// Seed of every random order [default: from the clock; it is stored and printed]
    #[arg(long, value_parser = number::<u64>)]
    pub(crate) seed: Option<u64>,
    /// Language: en, ko or zh [default: the locale's]
    #[arg(long)]
    pub(crate) lang: Option<String>,
}

impl Compare {
    /// What is compared: commands that end, or servers.
    pub(crate) fn compared(&self) -> &[String] {
        if self.serve.is_empty() { &self.commands } else { &self.serve }
    }
}
