//! `weir journal repair`: a copy of the journals that ends before the damage. The originals are only read.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};
use weir_report::{Language, localized};
use weir_servers::{
    gateway::describe,
    journal::{
        Behind, CheckpointFile, HeldUnwritten, JournalInspection, Position, RecoverError, Torn, copy_until,
    },
};

use super::{problem, workers};
use crate::{
    args::JournalRepair,
    exit::{Exit, UsageError},
    language, output,
};

/// What of one journal is copied, and what is lost.
struct Cut {
    worker: u16,
    end: Position,
    records: u64,
    problem: Option<RecoverError>,
    torn: Option<Torn>,
    lost: Vec<Behind>,
}

pub(super) fn run(repair: &JournalRepair) -> Result<Exit> {
    let language = language::chosen(repair.lang.as_deref())?;
    let (from, out) = (&repair.directory, &repair.out);
    let workers = workers(from, language)?;
    refuse_existing(from, out, language)?;
    // Nothing may be written there before the copy is whole.
    let mut held = Vec::new();
    for worker in &workers {
        let taken = HeldUnwritten::take(from, *worker).with_context(|| from.display().to_string())?;
        let Some(lock) = taken else {
            let in_use = RecoverError::InUse { directory: from.clone(), worker: *worker };
            bail!(problem::sentence(&in_use, language));
        };
        held.push(lock);
    }
    let cuts = workers.iter().map(|worker| cut(from, *worker, language)).collect::<Result<Vec<_>>>()?;
    let bytes = copy(from, out, &cuts).with_context(|| {
        let out = out.display();
        localized!(
            language,
            "{out} cannot be written; nothing is left of it",
            "{out}: 쓸 수 없습니다. 남은 것은 없습니다",
            "{out}：无法写入；没有留下任何内容",
        )
    })?;
    output::print(&told(&cuts, out, bytes, language))?;
    Ok(Exit::Ok)
}

/// A copy never replaces anything, and does not lie in the folder of the journals.
fn refuse_existing(from: &Path, out: &Path, language: Language) -> Result<()> {
    let shown = out.display();
    if fs::symlink_metadata(out).is_ok() {
        return Err(UsageError(localized!(
            language,
            "{shown} exists already; name a folder that does not exist with --out",
            "{shown}: 이미 있습니다. 없는 폴더를 --out으로 지정하십시오",
            "{shown}：已存在；请用 --out 指定不存在的文件夹",
        ))
        .into());
    }
    let parent = match out.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => Path::new("/"),
    };
    let parent = fs::canonicalize(parent).with_context(|| parent.display().to_string())?;
    let from = fs::canonicalize(from).with_context(|| from.display().to_string())?;
    if parent.starts_with(&from) {
        return Err(UsageError(localized!(
            language,
            "{shown} lies in the folder of the journals, which stays as it is; name another folder with --out",
            "{shown}: 저널 폴더 안에 있습니다. 저널 폴더는 그대로 두어야 하므로 다른 폴더를 --out으로 지정하십시오",
            "{shown}：位于日志文件夹内，而该文件夹须保持不变；请用 --out 指定其他文件夹",
        ))
        .into());
    }
    Ok(())
}

/// Reads a journal up to the first thing that a start refuses.
fn cut(from: &Path, worker: u16, language: Language) -> Result<Cut> {
    let mut inspection = JournalInspection::new(from, worker);
    let mut records = 0;
    let read = inspection.read(&mut |record, _| {
        let described = describe(&record);
        if described.is_refused {
            return Err(format!("it is not what kind {} has to be", record.kind));
        }
        records += 1;
        Ok(())
    });
    let (problem, torn) = match read {
        Ok(end) => (None, end.unfinished),
        Err(error) if problem::is_damage(&error) => (Some(error), None),
        Err(error) => bail!(problem::sentence(&error, language)),
    };
    let lost = if problem.is_some() { inspection.behind()? } else { Vec::new() };
    Ok(Cut { worker, end: inspection.position(), records, problem, torn, lost })
}

/// Writes the copy under another name first: it is whole, or absent.
fn copy(from: &Path, out: &Path, cuts: &[Cut]) -> Result<u64> {
    // Without a slash at its end.
    let mut name = out.components().as_path().as_os_str().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    let partial = PathBuf::from(name);
    fs::create_dir(&partial).with_context(|| partial.display().to_string())?;
    let written = fill(from, &partial, cuts).and_then(|bytes| {
        rename_new(&partial, out)?;
        Ok(bytes)
    });
    if written.is_err() {
        // This process made the folder. If it cannot be removed, the error that is reported is worse.
        let _ = fs::remove_dir_all(&partial);
    }
    written
}

fn fill(from: &Path, partial: &Path, cuts: &[Cut]) -> Result<u64> {
    let mut bytes = 0;
    for cut in cuts {
        bytes += copy_until(from, cut.worker, cut.end, partial)?;
    }
    let base = CheckpointFile::Base.path(from);
    if base.exists() {
        // Without it, the copy would miss the files that were archived.
        let copy = CheckpointFile::Base.path(partial);
        bytes += fs::copy(&base, &copy).with_context(|| copy.display().to_string())?;
        fs::File::open(&copy)?.sync_all()?;
    }
    fs::set_permissions(partial, fs::metadata(from)?.permissions())?;
    fs::File::open(partial)?.sync_all()?;
    Ok(bytes)
}

/// Gives a folder a name that nothing has.
fn rename_new(partial: &Path, out: &Path) -> io::Result<()> {
    match renameat_with(CWD, partial, CWD, out, RenameFlags::NOREPLACE) {
        // The file system cannot do it at once.
        Err(Errno::INVAL | Errno::NOSYS) if fs::symlink_metadata(out).is_err() => fs::rename(partial, out),
        renamed => Ok(renamed?),
    }
}

fn told(cuts: &[Cut], out: &Path, bytes: u64, language: Language) -> String {
    let mut text = String::new();
    let (mut lost_records, mut lost_bytes, mut records) = (0, 0, 0);
    for cut in cuts {
        let (worker, copied) = (cut.worker, cut.records);
        records += copied;
        text.push_str(&localized!(
            language,
            "worker {worker}: {copied} records copied\n",
            "워커 {worker}: 레코드 {copied}개 복사\n",
            "工作线程 {worker}：已复制 {copied} 条记录\n",
        ));
        if let Some(problem) = &cut.problem {
            text.push_str(&format!("  {}\n", problem::sentence(problem, language)));
        }
        if let Some(Torn { file, offset, bytes, .. }) = &cut.torn {
            let file = file.display();
            text.push_str(&localized!(
                language,
                "  {file}: {bytes} bytes from byte {offset} on are left out: the last write was not finished\n",
                "  {file}: 바이트 {offset}부터 {bytes}바이트를 뺐습니다. 마지막 쓰기가 끝나지 않았습니다\n",
                "  {file}：从字节 {offset} 起 {bytes} 字节未复制：最后一次写入未完成\n",
            ));
        }
        for Behind { file, offset, bytes, records } in &cut.lost {
            lost_records += records;
            lost_bytes += bytes;
            let file = file.display();
            text.push_str(&localized!(
                language,
                "  {file}: lost from byte {offset} on: {bytes} bytes, with {records} whole records\n",
                "  {file}: 바이트 {offset}부터 잃음: {bytes}바이트, 온전한 레코드 {records}개\n",
                "  {file}：从字节 {offset} 起丢失：{bytes} 字节，其中有 {records} 条完整记录\n",
            ));
        }
    }
    let out = out.display();
    text.push_str(&localized!(
        language,
        "{out} has {records} records, {bytes} bytes\n",
        "{out}: 레코드 {records}개, {bytes}바이트\n",
        "{out}：{records} 条记录，{bytes} 字节\n",
    ));
    if cuts.iter().all(|cut| cut.problem.is_none()) {
        return text + localized_nothing(language) + "\n";
    }
    text.push_str(&localized!(
        language,
        "lost: {lost_bytes} bytes, with {lost_records} whole records; records that cannot be read are not counted\n\
         A gateway that starts with the copy does not know the orders and answers in the lost records: they may be \
         open or executed at the exchange, and their numbers may be used again. Before clients log in, cancel open \
         orders at the exchange and compare executions with it\n",
        "잃음: {lost_bytes}바이트, 온전한 레코드 {lost_records}개. 읽을 수 없는 레코드는 세지 않았습니다\n\
         이 사본으로 시작한 게이트웨이는 잃은 레코드의 주문과 응답을 모릅니다. 그 주문은 거래소에 미체결로 남았거나 체결되었을 수 있고, \
         그 번호가 다시 쓰일 수 있습니다. 고객이 로그인하기 전에 거래소에서 미체결 주문을 취소하고 체결을 대조하십시오\n",
        "丢失：{lost_bytes} 字节，其中有 {lost_records} 条完整记录；无法读取的记录未计入\n\
         以此副本启动的网关不知道丢失记录中的订单和应答：这些订单可能在交易所仍未成交或已成交，其编号可能被再次使用。客户登录之前，请在交易所撤销未成交订单并核对成交\n",
    ));
    text
}

fn localized_nothing(language: Language) -> &'static str {
    language.choose([
        "Nothing is lost: there is no damage",
        "잃은 것이 없습니다. 손상이 없습니다",
        "没有丢失任何内容：没有损坏",
    ])
}
