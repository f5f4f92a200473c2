//! `weir journal verify`: reads every record of every journal and says what is damaged.

use anyhow::{Result, bail};
use weir_report::{Language, localized};
use weir_servers::{
    gateway::describe,
    journal::{JournalInspection, Position, RecordView, RecoverError, Torn, files_in},
};

use super::{moment, problem, workers};
use crate::{args::JournalVerify, exit::Exit, language, output};

/// Records that are named; the rest is counted.
const NAMED_MAX: usize = 10;

pub(super) fn run(verify: &JournalVerify) -> Result<Exit> {
    let language = language::chosen(verify.lang.as_deref())?;
    let workers = workers(&verify.directory, language)?;
    let (mut records, mut is_right, mut text) = (0, true, String::new());
    for worker in &workers {
        let mut inspection = JournalInspection::new(&verify.directory, *worker);
        let mut found = Found::default();
        let end = inspection.read(&mut |record, position| {
            found.note(&record, position);
            Ok(())
        });
        let files = files_in(&verify.directory, *worker)?.len();
        records += found.records;
        text.push_str(&found.summary(*worker, files, language));
        let lines = match end {
            Ok(end) => end.unfinished.map(|torn| vec![unfinished(&torn, language)]).unwrap_or_default(),
            Err(error) if !problem::is_damage(&error) => bail!(problem::sentence(&error, language)),
            Err(error) => {
                is_right = false;
                damage(&mut inspection, &error, language)?
            }
        };
        is_right &= found.refused.count == 0;
        for line in lines.into_iter().chain(found.lines(language)) {
            text.push_str(&format!("  {line}\n"));
        }
    }
    let journals = workers.len();
    if is_right {
        text.push_str(&localized!(
            language,
            "every record is right: {records} in the journals of {journals} workers",
            "모든 레코드가 올바릅니다: 워커 {journals}개의 저널에 {records}개",
            "所有记录正确：{journals} 个工作线程的日志中共 {records} 条",
        ));
        output::print(&text)?;
        return Ok(Exit::Ok);
    }
    text.push_str(&problem::way_out(&verify.directory, language));
    output::print(&text)?;
    Ok(Exit::RuntimeError)
}

/// What was found in one journal.
#[derive(Default)]
struct Found {
    records: u64,
    first_ns: u64,
    last_ns: u64,
    /// Times before that of the record in front.
    steps_back: u64,
    /// Records that a start refuses.
    refused: Places,
    /// Records that a start ignores.
    ignored: Places,
}

/// Places of records: all are counted, and the first ones are named.
#[derive(Default)]
struct Places {
    count: u64,
    named: Vec<String>,
}

impl Places {
    fn add(&mut self, place: String) {
        self.count += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(place);
        }
    }
}

impl Found {
    fn note(&mut self, record: &RecordView<'_>, position: Position) {
        if self.records == 0 {
            self.first_ns = record.t_ns;
        } else if record.t_ns < self.last_ns {
            self.steps_back += 1;
        }
        self.records += 1;
        self.last_ns = record.t_ns;
        let described = describe(record);
        if !described.is_malformed {
            return;
        }
        let (file, byte) = (position.file_name(record.worker), position.offset);
        let place = format!("{file}:{byte} (#{}, {})", record.lsn, described.kind);
        let places = if described.is_refused { &mut self.refused } else { &mut self.ignored };
        places.add(place);
    }

    fn summary(&self, worker: u16, files: usize, language: Language) -> String {
        let records = self.records;
        let (first, last) = (moment::shown(self.first_ns), moment::shown(self.last_ns));
        if records == 0 {
            return localized!(
                language,
                "worker {worker}: no record in {files} files\n",
                "워커 {worker}: 파일 {files}개에 레코드가 없음\n",
                "工作线程 {worker}：{files} 个文件中没有记录\n",
            );
        }
        localized!(
            language,
            "worker {worker}: {records} records in {files} files, {first} to {last}\n",
            "워커 {worker}: 파일 {files}개에 레코드 {records}개, {first} ~ {last}\n",
            "工作线程 {worker}：{files} 个文件中 {records} 条记录，{first} 至 {last}\n",
        )
    }

    fn lines(&self, language: Language) -> Vec<String> {
        let (refused, ignored, steps_back) = (self.refused.count, self.ignored.count, self.steps_back);
        let mut lines = Vec::new();
        if refused > 0 {
            let named = self.refused.named.join(", ");
            lines.push(localized!(
                language,
                "records that a start refuses, because their contents are not what their kind has to be: {refused} \
                 ({named})",
                "내용이 종류에 맞지 않아 시작이 거부하는 레코드 {refused}개: {named}",
                "有 {refused} 条记录的内容与其种类不符，启动会拒绝：{named}",
            ));
        }
        if ignored > 0 {
            let named = self.ignored.named.join(", ");
            lines.push(localized!(
                language,
                "records that this version cannot read, and that a start ignores: {ignored} ({named})",
                "이 버전이 읽지 못해 시작이 무시하는 레코드 {ignored}개: {named}",
                "有 {ignored} 条记录此版本无法读取，启动会忽略：{named}",
            ));
        }
        if steps_back > 0 {
            lines.push(localized!(
                language,
                "records with an earlier time than the one before, because the clock was set back: {steps_back}",
                "앞 레코드보다 이른 시각의 레코드 {steps_back}개. 시계가 뒤로 맞춰졌습니다",
                "有 {steps_back} 条记录的时间早于前一条：时钟曾被调回",
            ));
        }
        lines
    }
}

fn unfinished(torn: &Torn, language: Language) -> String {
    let Torn { file, offset, bytes, .. } = torn;
    let file = file.display();
    localized!(
        language,
        "{file}: the last write is not finished: {bytes} bytes from byte {offset} on. That is no damage: a process is \
         writing them, or the next start clears them",
        "{file}: 마지막 쓰기가 끝나지 않았습니다: 바이트 {offset}부터 {bytes}바이트. 손상이 아닙니다. 프로세스가 쓰는 중이거나 다음 시작이 지웁니다",
        "{file}：最后一次写入未完成：从字节 {offset} 起 {bytes} 字节。这不是损坏：有进程正在写入，或下次启动会清除",
    )
}

/// The damage, and what cannot be used because of it.
fn damage(
    inspection: &mut JournalInspection,
    error: &RecoverError,
    language: Language,
) -> Result<Vec<String>, RecoverError> {
    let mut lines = vec![problem::sentence(error, language)];
    for behind in inspection.behind()? {
        let (file, offset) = (behind.file.display(), behind.offset);
        let (bytes, records) = (behind.bytes, behind.records);
        lines.push(localized!(
            language,
            "{file}: {bytes} bytes from byte {offset} on cannot be used, with {records} whole records",
            "{file}: 바이트 {offset}부터 {bytes}바이트를 쓸 수 없습니다. 그 안의 온전한 레코드 {records}개",
            "{file}：从字节 {offset} 起 {bytes} 字节无法使用，其中有 {records} 条完整记录",
        ));
    }
    Ok(lines)
}
