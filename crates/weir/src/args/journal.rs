//! `weir journal` as it is typed.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, builder::PossibleValuesParser};
use weir_servers::gateway::record_names;

/// What the help of print ends with.
const AFTER_PRINT: &str = "\
Examples:
  weir journal print journal --account C00001 --order 17
  weir journal print journal --symbol WEIR --kind executed --format csv
  weir journal print journal --operators
  weir journal print journal --since 2026-03-02T09:00 --until 2026-03-02T09:05";

/// What the help of export ends with.
const AFTER_EXPORT: &str = "\
Examples:
  weir journal export journal --pcap day.pcap --account C00001
  weir journal export journal --pcap - | tshark -r - -d tcp.port==7001,soupbintcp";

#[derive(Debug, Args)]
pub(crate) struct Journal {
    #[command(subcommand)]
    pub(crate) task: JournalTask,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JournalTask {
    /// Print the records of a gateway's or an exchange's journals, also while it runs
    Print(JournalPrint),
    /// Check every record of the journals, and say what is damaged
    Verify(JournalVerify),
    /// Count what the journals contain
    Stats(JournalStats),
    /// Write a copy of damaged journals that ends before the damage, and say what is lost
    Repair(JournalRepair),
    /// Print the last records, and with -f those that follow
    Tail(JournalTail),
    /// Write the messages of all sessions as a capture of packets, for Wireshark and tshark
    Export(JournalExport),
    /// Move the files that neither a start nor a client needs any more
    Archive(JournalArchive),
}

/// How records are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecordFormat {
    /// One line for each record
    Text,
    /// One JSON object in a line for each record
    Json,
    /// One row for each record
    Csv,
}

#[derive(Debug, Args)]
#[command(after_help = AFTER_PRINT)]
pub(crate) struct JournalPrint {
    /// Folder of the journals
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    #[command(flatten)]
    pub(crate) selection: RecordSelection,
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: RecordFormat,
    /// Language of messages: en, ko or zh [default: that of the locale]
    #[arg(long)]
    pub(crate) lang: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct JournalVerify {
    /// Folder of the journals
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Language: en, ko or zh [default: that of the locale]
    #[arg(long)]
    pub(crate) lang: Option<String>,
}

/// How counts are printed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum StatsFormat {
    /// Tables with the most frequent names
    Text,
    /// All of them
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct JournalStats {
    /// Folder of the journals
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: StatsFormat,
    /// Language: en, ko or zh [default: that of the locale]
    #[arg(long)]
    pub(crate) lang: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct JournalRepair {
    /// Folder of the journals; it is only read, and no process may write there
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Folder for the copy, which must not exist
    #[arg(long, value_name = "COPY")]
    pub(crate) out: PathBuf,
    /// Language: en, ko or zh [default: that of the locale]
    #[arg(long)]
    pub(crate) lang: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = AFTER_EXPORT)]
pub(crate) struct JournalExport {
    /// Folder of the journals
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// File for the packets, which must not exist; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: PathBuf,
    #[command(flatten)]
    pub(crate) selection: RecordSelection,
    /// Language of messages: en, ko or zh [default: that of the locale]
    #[arg(long)]
    pub(crate) lang: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct JournalArchive {
    /// Folder of the journals; no process may write there
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Folder for the files, which may contain earlier ones
    #[arg(long, value_name = "ARCHIVE")]
    pub(crate) to: PathBuf,
    /// Say which files may go, and move none
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Language: en, ko or zh [default: that of the locale]
    #[arg(long)]
    pub(crate) lang: Option<String>,
}

/// Most records that are printed before the following ones.
const RECORDS_MAX: i64 = 100_000;

#[derive(Debug, Args)]
pub(crate) struct JournalTail {
    /// Folder of the journals
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Print records as they are written, until interrupted
    #[arg(long, short = 'f')]
    pub(crate) follow: bool,
    /// Last records that are printed
    #[arg(
        long,
        short = 'n',
        value_name = "N",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(..=RECORDS_MAX),
    )]
    pub(crate) records: u32,
    #[command(flatten)]
    pub(crate) selection: RecordSelection,
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: RecordFormat,
    /// Language of messages: en, ko or zh [default: that of the locale]
    #[arg(long)]
    pub(crate) lang: Option<String>,
}

/// Which records are shown: those that fit all of these.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RecordSelection {
    /// Only records of this account
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// Only records of the order with this number of its client, and of its replacements
    #[arg(long, value_name = "NUMBER")]
    pub(crate) order: Option<u32>,
    /// Only records of orders for this symbol
    #[arg(long, value_name = "SYMBOL")]
    pub(crate) symbol: Option<String>,
    /// Only records from this time on, in UTC: 2026-03-02, 2026-03-02T09:00:00.5Z, 2026-03-02T18:00+09:00
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only records before this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only records of this kind, or with this message; repeatable
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(record_names()))]
    pub(crate) kind: Vec<String>,
    /// Only what operators did: their commands, kill switches, limits, reference prices, ended sessions
    #[arg(long)]
    pub(crate) operators: bool,
}
