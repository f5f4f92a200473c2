//! `weir journal archive`: moves the files that neither a start nor a client needs any more.

use std::{collections::BTreeMap, fs, io, os::unix::fs::MetadataExt, path::Path};

use anyhow::{Context, Result, anyhow, bail};
use weir_report::{Language, localized};
use weir_servers::{
    gateway::checkpoint_of_start,
    journal::{Checkpoint, CheckpointFile, HeldUnwritten, RecoverError, archive, files_in},
    orders::{Obstacle, SessionFiles, session_files},
};

use super::{problem, workers};
use crate::{
    args::JournalArchive,
    exit::{Exit, UsageError},
    language, output,
};

pub(super) fn run(asked: &JournalArchive) -> Result<Exit> {
    let language = language::chosen(asked.lang.as_deref())?;
    let (from, to) = (&asked.directory, &asked.to);
    let workers = workers(from, language)?;
    refuse_inside(from, to, language)?;
    let own = rustix::process::geteuid().as_raw();
    refuse_foreign(from, own, language)?;
    // A start would read what is being removed.
    let mut held = Vec::new();
    for worker in &workers {
        let taken = HeldUnwritten::take(from, *worker).with_context(|| from.display().to_string())?;
        let Some(lock) = taken else {
            let in_use = RecoverError::InUse { directory: from.clone(), worker: *worker };
            bail!(problem::sentence(&in_use, language));
        };
        held.push(lock);
    }
    let checkpoint = match checkpoint_of_start(from) {
        Ok(Some(found)) => found,
        Ok(None) => return without_checkpoint(from, "", language),
        Err(Obstacle::State(reason)) => return without_checkpoint(from, &reason, language),
        Err(Obstacle::Journal(error)) => return Err(unreadable(from, &error, language)),
        Err(Obstacle::Checkpoint(error)) => return Err(error).context(no_file(language)),
    };
    let needed = session_files(from, &workers).map_err(|error| unreadable(from, &error, language))?;
    let before = may_go(&workers, &checkpoint, &needed);
    let mut text = String::new();
    for worker in &workers {
        text.push_str(&line(from, *worker, (&before, &needed), language)?);
    }
    let may_go =
        before.iter().any(|(worker, before)| counts(from, *worker, *before).is_ok_and(|it| it.0 > 0));
    if !may_go || asked.dry_run {
        let end = if may_go { nothing_done(language) } else { nothing_to_do(language) };
        output::print(&format!("{text}{end}\n"))?;
        return Ok(Exit::Ok);
    }
    let (files, bytes) = archive(from, to, &before, checkpoint)?;
    let (from, to) = (from.display(), to.display());
    text.push_str(&localized!(
        language,
        "{files} files, {bytes} bytes: moved to {to}\n\
         {from}/journals.base stands for them from now on: keep it with the other files. To undo this, copy the files \
         back from {to}\n",
        "파일 {files}개, {bytes}바이트를 {to}(으)로 옮겼습니다\n\
         이제 {from}/journals.base가 이 파일들을 대신하므로 나머지 파일과 함께 보관하십시오. 되돌리려면 {to}에서 파일을 다시 복사하십시오\n",
        "已将 {files} 个文件（{bytes} 字节）移到 {to}\n\
         从现在起由 {from}/journals.base 代替它们：请与其余文件一起保存。若要撤销，请从 {to} 把文件复制回来\n",
    ));
    output::print(&text)?;
    Ok(Exit::Ok)
}

/// An archive does not lie in the folder of the journals.
fn refuse_inside(from: &Path, to: &Path, language: Language) -> Result<()> {
    let existing = to.ancestors().find(|folder| folder.exists() || folder.as_os_str().is_empty());
    let existing = existing.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let shown = to.display();
    if !existing.is_dir() {
        return Err(UsageError(localized!(
            language,
            "--to {shown} is no folder; name one that is, or that does not exist",
            "--to {shown}: 폴더가 아닙니다. 폴더나 아직 없는 이름을 지정하십시오",
            "--to {shown}：不是文件夹；请指定文件夹或尚不存在的名称",
        ))
        .into());
    }
    let existing = fs::canonicalize(existing).with_context(|| existing.display().to_string())?;
    let from = fs::canonicalize(from).with_context(|| from.display().to_string())?;
    if existing.starts_with(&from) {
        return Err(UsageError(localized!(
            language,
            "--to {shown} lies in the folder of the journals; name another folder",
            "--to {shown}: 저널 폴더 안에 있습니다. 다른 폴더를 지정하십시오",
            "--to {shown}：位于日志文件夹内；请指定其他文件夹",
        ))
        .into());
    }
    Ok(())
}

/// The gateway's user could not read the files that another user writes into the folder, and the next start would be
/// refused.
fn refuse_foreign(from: &Path, own: u32, language: Language) -> Result<()> {
    let owner = fs::metadata(from).with_context(|| from.display().to_string())?.uid();
    if owner == own {
        return Ok(());
    }
    let from = from.display();
    Err(UsageError(localized!(
        language,
        "{from} belongs to user {owner}, who could not read what user {own} writes there; run this as the owner: \
         sudo -u '#{owner}' weir journal archive ...",
        "{from}의 소유자는 사용자 {owner}이며, 사용자 {own}이(가) 여기에 쓴 파일을 읽을 수 없습니다. 소유자로 실행하십시오: \
         sudo -u '#{owner}' weir journal archive ...",
        "{from} 属于用户 {owner}，该用户无法读取用户 {own} 写入的文件；请以所有者身份运行：\
         sudo -u '#{owner}' weir journal archive ...",
    ))
    .into())
}

/// Says that no file may go, and why the checkpoint is none for a start, if there is one.
fn without_checkpoint(from: &Path, reason: &str, language: Language) -> Result<Exit> {
    let mut text = no_checkpoint(from, language);
    if !reason.is_empty() {
        text = format!("{}: {reason}\n{text}", CheckpointFile::Latest.path(from).display());
    }
    output::print(&text)?;
    Ok(Exit::Ok)
}

/// A journal cannot be read: damage has a way out.
fn unreadable(from: &Path, error: &RecoverError, language: Language) -> anyhow::Error {
    let sentence = problem::sentence(error, language);
    match problem::is_damage(error) {
        true => anyhow!("{sentence}; {}", problem::way_out(from, language)),
        false => anyhow!(sentence),
    }
}

/// By worker: files with lower numbers may go. A start has the checkpoint, and no client may ask for their messages.
fn may_go(workers: &[u16], checkpoint: &Checkpoint, needed: &SessionFiles) -> BTreeMap<u16, u64> {
    let before = |worker: &u16| {
        let start = checkpoint.anchors.get(worker).map_or(1, |anchor| anchor.at.segment);
        let asked = needed.first.get(worker).copied().unwrap_or(u64::MAX);
        (*worker, start.min(asked))
    };
    workers.iter().map(before).collect()
}

/// The number of files before this one, those from it on, and the bytes of the former.
fn counts(from: &Path, worker: u16, before: u64) -> io::Result<(usize, usize, u64)> {
    let files = files_in(from, worker)?;
    let numbered = |path: &Path| {
        let stem = path.file_stem()?.to_str()?;
        stem.rsplit('-').next()?.parse::<u64>().ok()
    };
    let (first, rest): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|(path, _)| numbered(path).is_some_and(|number| number < before));
    Ok((first.len(), rest.len(), first.iter().map(|(_, bytes)| bytes).sum()))
}

fn line(
    from: &Path,
    worker: u16,
    (before, needed): (&BTreeMap<u16, u64>, &SessionFiles),
    language: Language,
) -> Result<String> {
    let before = before.get(&worker).copied().unwrap_or(1);
    let (files, rest, bytes) = counts(from, worker, before).with_context(|| from.display().to_string())?;
    let is_asked = needed.first.get(&worker) == Some(&before);
    let why = if is_asked {
        language.choose([
            "clients may ask for their messages",
            "고객이 그 메시지를 다시 요청할 수 있음",
            "客户可能再次请求其中的消息",
        ])
    } else {
        language.choose(["a start reads them", "시작할 때 읽음", "启动时读取"])
    };
    Ok(localized!(
        language,
        "worker {worker}: {files} files may go, {bytes} bytes; {rest} stay: {why}\n",
        "워커 {worker}: 옮길 수 있는 파일 {files}개, {bytes}바이트. 남는 파일 {rest}개: {why}\n",
        "工作线程 {worker}：可移走 {files} 个文件，{bytes} 字节；保留 {rest} 个：{why}\n",
    ))
}

fn no_file(language: Language) -> &'static str {
    language.choose([
        "no file may go without a checkpoint; remove it if it is damaged, and a gateway writes another one",
        "체크포인트 없이는 파일을 옮길 수 없습니다. 손상되었으면 지우십시오. 게이트웨이가 새로 씁니다",
        "没有检查点就不能移走文件；若已损坏请删除，网关会写入新的",
    ])
}

fn no_checkpoint(from: &Path, language: Language) -> String {
    let from = from.display();
    localized!(
        language,
        "{from} has no checkpoint that fits its journals, so a start reads every file and none may go; a gateway \
         writes one while it runs, once its journals have grown by a file\n",
        "{from}: 저널에 맞는 체크포인트가 없어 시작할 때 모든 파일을 읽으므로 옮길 수 있는 파일이 없습니다. 게이트웨이는 저널이 파일 하나만큼 커지면 실행 중에 체크포인트를 씁니다\n",
        "{from}：没有与日志相符的检查点，启动时要读取所有文件，因此没有可移走的文件；日志增长一个文件后，运行中的网关会写入检查点\n",
    )
}

fn nothing_to_do(language: Language) -> &'static str {
    language.choose([
        "No file may go now. Messages of the session with clients stay until it has ended: weir ctl end-session",
        "지금 옮길 수 있는 파일이 없습니다. 고객 세션의 메시지는 세션이 끝날 때까지 남습니다: weir ctl end-session",
        "现在没有可移走的文件。客户会话的消息保留到会话结束：weir ctl end-session",
    ])
}

fn nothing_done(language: Language) -> &'static str {
    language.choose(["Nothing was moved", "아무것도 옮기지 않았습니다", "未移动任何文件"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_of_the_journals_archives_them() {
        let folder = std::env::temp_dir();
        let owner = fs::metadata(&folder).expect("it is there").uid();
        assert!(refuse_foreign(&folder, owner, Language::English).is_ok());
        let refused = refuse_foreign(&folder, owner + 1, Language::English).expect_err("another user");
        assert!(refused.to_string().contains(&format!("sudo -u '#{owner}'")), "{refused}");
    }
}
