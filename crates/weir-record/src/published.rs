//! What others published, in figures, runs and tables, and where in a study each has its counterpart.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{metric::Metric, overview::Statistic, text::Text};

/// A figure that somebody published, and where in this study its counterpart is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedClaim {
    /// Item in the list of what the source documents hold, e.g. `S2-08`.
    pub id: String,
    /// Where it was published; empty in studies that have it in the sentence.
    #[serde(default, skip_serializing_if = "Text::is_empty")]
    pub source: Text,
    /// What was published, in one sentence.
    pub claim: Text,
    /// The published figure of `arm` over that of `baseline`; absent when there is none.
    pub ratio: Option<f64>,
    /// What the figure is of.
    pub metric: Metric,
    /// The cell it is set beside.
    pub cell_id: String,
    /// The arm it is set beside.
    pub arm: String,
    /// What that arm is compared with. The same as `arm` when no clean counterpart is in this study.
    pub baseline: String,
    /// Why the measured figure is what it is, in one line.
    pub explanation: Text,
    /// Pairs of arms in which one cause of the published figure is switched on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
}

/// Two arms that should show a published difference, because one of them has its cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// What stands above the line.
    pub arm: String,
    /// What stands below it.
    pub baseline: String,
}

/// A run that somebody published, with its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedRun {
    /// Its name where it was published.
    pub name: String,
    /// Where that was.
    pub source: Text,
    /// What ran, in a few words.
    pub about: Text,
    /// The arm that does the same here.
    pub arm: String,
    /// The cells in which it does.
    pub cells: Vec<String>,
    /// Published figures, in the units of their metrics.
    pub figures: Vec<(Metric, f64)>,
    /// Voluntary and involuntary switches a second of its busy threads, as pidstat printed them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<(f64, f64)>,
}

/// A table that somebody published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedTable {
    /// The table of this study's report beside which it stands.
    pub table: TableName,
    /// The cell of an aggregate report; absent for tables of a whole map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell_id: Option<String>,
    /// Where it was published.
    pub source: Text,
    /// The arm that each column is about.
    pub arms: Vec<String>,
    /// Its rows.
    pub rows: Vec<PublishedRow>,
    /// Why ours differs, or what was wrong with it.
    pub explanation: Text,
}

impl PublishedTable {
    /// The figure of an arm in a row.
    pub fn figure(&self, key: &str, arm: &str) -> Option<f64> {
        let column = self.arms.iter().position(|own| own == arm)?;
        self.rows.iter().find(|row| row.key == key)?.figures.get(column).copied()
    }

    /// The figure of an arm over that of another; absent where one is not there, or nothing stands below the line.
    pub fn ratio(&self, key: &str, arm: &str, baseline: &str) -> Option<f64> {
        let below = self.figure(key, baseline).filter(|it| *it > 0.0 && arm != baseline)?;
        Some(self.figure(key, arm)? / below)
    }
}

/// A row of a published table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedRow {
    /// A level, or one of the names that [`TableName::rows`] lists.
    pub key: String,
    /// A figure for each arm, in the unit of the source.
    pub figures: Vec<f64>,
}

/// Tables of a report that published ones stand beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TableName {
    /// Means over everything.
    Overall,
    /// By number of connections.
    Connections,
    /// By number of threads.
    Threads,
    /// The best configuration.
    Best,
    /// Success, in percent, by number of connections.
    Success,
    /// By number of cores.
    Cores,
    /// Scaling efficiency, in percent, by number of cores.
    Efficiency,
    /// Throughput for each core, by number of cores.
    PerCore,
    /// System calls as strace sums them.
    SystemCalls,
    /// What part of that time each call has, in percent.
    SystemCallShares,
    /// System calls against traffic, which was published as text alone.
    SystemCallOverhead,
    /// The rows of a load tester, times in milliseconds and errors in percent.
    Aggregate,
}

impl TableName {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Overall,
        Self::Connections,
        Self::Threads,
        Self::Best,
        Self::Success,
        Self::Cores,
        Self::Efficiency,
        Self::PerCore,
        Self::SystemCalls,
        Self::SystemCallShares,
        Self::SystemCallOverhead,
        Self::Aggregate,
    ];

    /// Stable name, as in a study file.
    pub fn key(self) -> &'static str {
        match self {
            Self::Overall => "overall",
            Self::Connections => "connections",
            Self::Threads => "threads",
            Self::Best => "best",
            Self::Success => "success",
            Self::Cores => "cores",
            Self::Efficiency => "efficiency",
            Self::PerCore => "per-core",
            Self::SystemCalls => "system-calls",
            Self::SystemCallShares => "system-call-shares",
            Self::SystemCallOverhead => "system-call-overhead",
            Self::Aggregate => "aggregate",
        }
    }

    /// What its rows are called.
    pub fn rows(self) -> RowNames {
        match self {
            Self::Overall => RowNames::Of(&["all"]),
            Self::Best => RowNames::Of(&["throughput", "connections", "threads", "success"]),
            Self::SystemCalls => RowNames::Of(&["seconds", "calls", "microseconds-each"]),
            Self::SystemCallShares => RowNames::Calls,
            Self::SystemCallOverhead => RowNames::Nothing,
            Self::Aggregate => RowNames::Of(&Statistic::KEYS),
            Self::Connections
            | Self::Threads
            | Self::Success
            | Self::Cores
            | Self::Efficiency
            | Self::PerCore => RowNames::Levels,
        }
    }
}

/// What the rows of a published table are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowNames {
    /// Levels of a factor.
    Levels,
    /// These names.
    Of(&'static [&'static str]),
    /// System calls.
    Calls,
    /// It has no rows: a sentence was published, and no figure.
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_stored_before_there_were_translations_opens_and_a_new_one_keeps_them() {
        let old = r#"{"id":"S4-07","claim":"Document 004: static value","ratio":0.99,"metric":"throughput",
            "cell_id":"c","arm":"uring","baseline":"epoll","explanation":"because"}"#;
        let claim: PublishedClaim = serde_json::from_str(old).expect("it is a claim");
        assert_eq!(
            (claim.claim.clone(), claim.source.is_empty()),
            (Text::from("Document 004: static value"), true)
        );
        let again = serde_json::to_string(&claim).expect("it serialises");
        assert!(
            again.contains(r#""claim":"Document 004: static value","#) && !again.contains("source"),
            "{again}"
        );
        let told = Text { ko: Some("까닭".to_owned()), ..Text::from("because") };
        let text = serde_json::to_string(&told).expect("it serialises");
        assert_eq!(text, r#"{"en":"because","ko":"까닭"}"#);
        assert_eq!(serde_json::from_str::<Text>(&text).expect("it is one"), told);
    }
}
