//! `weir journal stats`: what the journals contain, counted.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Result, anyhow};
use serde::Serialize;
use weir_report::{Language, localized, pad_end};
use weir_servers::{
    gateway::describe,
    journal::{JournalInspection, RecordView, RecoverError, files_in, record::encoded_bytes},
};

use super::{moment, problem, workers};
use crate::{
    args::{JournalStats, StatsFormat},
    exit::Exit,
    language, output,
};

/// Names that are counted separately in each table; further ones are counted together.
const NAMES_MAX: usize = 16_384;

/// Rows of a table in the text; the JSON has all.
const ROWS_MAX: usize = 20;

/// Records by a name.
#[derive(Debug, Default, Serialize)]
struct Table {
    records: BTreeMap<String, u64>,
    /// Records with names that had no place any more.
    others: u64,
}

impl Table {
    fn count(&mut self, name: &str) {
        if let Some(count) = self.records.get_mut(name) {
            *count += 1;
        } else if self.records.len() < NAMES_MAX {
            self.records.insert(name.to_owned(), 1);
        } else {
            self.others += 1;
        }
    }

    /// The names with the most records first.
    fn text(&self, heading: &str, language: Language) -> String {
        let mut rows: Vec<(&str, u64)> = self.records.iter().map(|(name, count)| (&**name, *count)).collect();
        rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let left: u64 = rows.iter().skip(ROWS_MAX).map(|(_, count)| count).sum::<u64>() + self.others;
        rows.truncate(ROWS_MAX);
        if left > 0 {
            rows.push((language.choose(["others", "그 밖", "其他"]), left));
        }
        if rows.is_empty() {
            return String::new();
        }
        let mut text = format!("\n{heading}\n");
        for (name, count) in rows {
            text.push_str(&format!("  {} {count:>12}\n", pad_end(name, 24)));
        }
        text
    }
}

/// Everything that is counted.
#[derive(Debug, Default, Serialize)]
struct Counts {
    journals: usize,
    files: usize,
    /// Bytes of the files, which are made in their full length.
    file_bytes: u64,
    records: u64,
    /// Bytes of the records in them.
    record_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_time: Option<String>,
    #[serde(skip)]
    times_ns: Option<(u64, u64)>,
    kinds: Table,
    messages: Table,
    accounts: Table,
    symbols: Table,
    /// Why a journal could not be read to its end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
}

impl Counts {
    fn read(directory: &Path, workers: &[u16], language: Language) -> Result<Self> {
        let mut counts = Self { journals: workers.len(), ..Self::default() };
        for worker in workers {
            let files = files_in(directory, *worker)?;
            counts.files += files.len();
            counts.file_bytes += files.iter().map(|(_, bytes)| bytes).sum::<u64>();
            let read = JournalInspection::new(directory, *worker).read(&mut |record, _| {
                counts.note(&record);
                Ok(())
            });
            match read {
                Ok(_) => {}
                Err(error) if problem::is_damage(&error) => counts.note_damage(&error, language),
                Err(error) => return Err(anyhow!(problem::sentence(&error, language))),
            }
        }
        if let Some((first_ns, last_ns)) = counts.times_ns {
            counts.first_time = Some(moment::shown(first_ns));
            counts.last_time = Some(moment::shown(last_ns));
        }
        Ok(counts)
    }

    fn note_damage(&mut self, error: &RecoverError, language: Language) {
        self.problems.push(problem::sentence(error, language));
    }

    fn note(&mut self, record: &RecordView<'_>) {
        self.records += 1;
        self.record_bytes += encoded_bytes(record.payload.len()) as u64;
        let (first, last) = self.times_ns.unwrap_or((record.t_ns, record.t_ns));
        self.times_ns = Some((first.min(record.t_ns), last.max(record.t_ns)));
        let described = describe(record);
        self.kinds.count(described.kind);
        if let Some(message) = described.message {
            self.messages.count(message);
        }
        if let Some(account) = described.account {
            self.accounts.count(account.folded().as_str());
        }
        if let Some(symbol) = described.symbol {
            self.symbols.count(&symbol.as_str().escape_default().to_string());
        }
    }

    fn text(&self, language: Language) -> String {
        let Self { journals, files, file_bytes, records, record_bytes, .. } = self;
        let mut text = localized!(
            language,
            "{records} records, {record_bytes} bytes, in {journals} journals of {files} files, {file_bytes} bytes\n",
            "레코드 {records}개, {record_bytes}바이트. 저널 {journals}개, 파일 {files}개, {file_bytes}바이트\n",
            "{records} 条记录，{record_bytes} 字节；{journals} 个日志，{files} 个文件，{file_bytes} 字节\n",
        );
        if let (Some(first), Some(last)) = (&self.first_time, &self.last_time) {
            text.push_str(&localized!(
                language,
                "first {first}, last {last}\n",
                "처음 {first}, 마지막 {last}\n",
                "最早 {first}，最晚 {last}\n",
            ));
        }
        let headings = [
            (&self.kinds, ["kind", "종류", "种类"]),
            (&self.messages, ["message", "메시지", "消息"]),
            (&self.accounts, ["account", "계좌", "账户"]),
            (
                &self.symbols,
                ["symbol, of records that name one", "종목(이름이 있는 레코드)", "代码（写明代码的记录）"],
            ),
        ];
        for (table, heading) in headings {
            text.push_str(&table.text(language.choose(heading), language));
        }
        text
    }
}

pub(super) fn run(stats: &JournalStats) -> Result<Exit> {
    let language = language::chosen(stats.lang.as_deref())?;
    let workers = workers(&stats.directory, language)?;
    let counts = Counts::read(&stats.directory, &workers, language)?;
    output::print(&match stats.format {
        StatsFormat::Text => counts.text(language),
        StatsFormat::Json => serde_json::to_string_pretty(&counts)?,
    })?;
    if counts.problems.is_empty() {
        return Ok(Exit::Ok);
    }
    let way_out = problem::way_out(&stats.directory, language);
    Err(anyhow!("{}; {way_out}", counts.problems.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_counts_only_so_many_names_separately() {
        let mut table = Table::default();
        for name in 0..NAMES_MAX + 5 {
            table.count(&name.to_string());
        }
        table.count("0");
        assert_eq!((table.records.len(), table.records["0"], table.others), (NAMES_MAX, 2, 5));
        let text = table.text("name", Language::English);
        assert_eq!(text.lines().count(), ROWS_MAX + 3, "{text}");
        assert!(
            text.contains("others") && text.lines().nth(2).is_some_and(|line| line.ends_with(" 2")),
            "{text}"
        );
        assert_eq!(Table::default().text("name", Language::English), "");
    }
}
