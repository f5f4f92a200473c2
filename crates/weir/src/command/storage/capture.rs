//! `weir storage capture`: device times from the kernel's block tracepoints, as a trace.

use std::{
    cell::Cell,
    collections::BTreeSet,
    fs::{self, File},
    io::BufWriter,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use weir_report::{Language, localized};
use weir_storage::{
    capture::{self, CaptureCounts, CaptureError, CapturedOperation, Limits, NoDisk, Recorded},
    trace,
};

use crate::{
    args::StorageCapture,
    engine,
    exit::{Exit, UsageError},
    language, output, signals,
};

/// How to make tracefs available.
const MOUNT: &str = "mount -t tracefs nodev /sys/kernel/tracing";

/// Progress is reported at this interval.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

pub(crate) fn run(arguments: &StorageCapture) -> Result<Exit> {
    let language = language::chosen(arguments.lang.as_deref())?;
    let limits = limits(arguments, language)?;
    check_paths(&arguments.target, &arguments.out, language)?;
    let threads = arguments.process.map(|process| threads_of(process, language)).transpose()?;
    let is_wanted = |operation: &CapturedOperation| {
        threads.as_ref().is_none_or(|threads| threads.contains(&operation.thread))
    };
    let device = match capture::device_of(&arguments.target) {
        Ok(device) => device,
        Err(error) => return refused(error, language),
    };
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    signals::on_stop(move |_| flag.store(true, Ordering::Relaxed))?;
    let out = arguments.out.display();
    let cannot =
        || localized!(language, "cannot write {out}", "{out} 파일에 쓸 수 없습니다", "无法写入 {out}");
    let place = output::behind_links(&arguments.out).with_context(cannot)?;
    let (partial, file) = output::begin_beside(&place).with_context(cannot)?;
    let mut file = BufWriter::new(file);
    let shown = Cell::new(Instant::now());
    let progress = |counts: CaptureCounts| {
        if !arguments.quiet && shown.get().elapsed() >= PROGRESS_EVERY {
            shown.set(Instant::now());
            let operations = counts.operations;
            output::tell(&localized!(
                language,
                "{operations} requests",
                "요청 {operations}건",
                "{operations} 个请求"
            ));
        }
    };
    let outcome = capture::record(Some(device), limits, &is_wanted, &mut file, &stop, &progress);
    let recorded = match outcome {
        Ok(recorded) => recorded,
        Err(error) => {
            drop(file);
            let _ = fs::remove_file(&partial);
            return refused(error, language);
        }
    };
    let is_interrupted = stop.load(Ordering::Relaxed);
    if recorded.counts.operations == 0 {
        drop(file);
        fs::remove_file(&partial)?;
        let target = arguments.target.display();
        output::tell(&localized!(
            language,
            "no request reached the disk under {target}, so there is no trace",
            "{target} 아래의 디스크에 도달한 요청이 없어 트레이스를 만들지 않았습니다",
            "没有请求到达 {target} 所在的磁盘，因此没有轨迹",
        ));
        return Ok(if is_interrupted { Exit::Interrupted } else { Exit::RuntimeError });
    }
    keep(file, &partial, &place).with_context(cannot)?;
    output::print(&output::fitted(&summary(&recorded, &arguments.out, language)))?;
    Ok(if is_interrupted { Exit::Interrupted } else { Exit::Ok })
}

fn check_paths(target: &Path, out: &Path, language: Language) -> Result<()> {
    if !target.exists() {
        let target = target.display();
        return Err(UsageError(localized!(
            language,
            "{target} does not exist; name a disk, or a file on it",
            "{target} 경로가 없습니다. 디스크나 그 위의 파일을 지정하십시오",
            "{target} 不存在；请指定磁盘或其上的文件",
        ))
        .into());
    }
    output::refuse_device(out, "name a regular file with --out")
        .map_err(|error| UsageError(error.to_string()))?;
    let identity = |path: &Path| path.metadata().map(|found| (found.dev(), found.ino())).ok();
    if target.is_file() && identity(target) == identity(out) {
        let out = out.display();
        return Err(UsageError(localized!(
            language,
            "--out: {out} is the file whose requests are recorded, and would be overwritten; name another file",
            "--out: {out} 파일의 요청을 기록하고 있으므로, 이 파일에 쓰면 덮어씁니다. 다른 파일을 지정하십시오",
            "--out：{out} 正是被记录的文件，会被覆盖；请指定其他文件",
        ))
        .into());
    }
    if out.is_dir() {
        let out = out.display();
        return Err(UsageError(localized!(
            language,
            "--out {out}: it is a folder; name a file in it",
            "--out {out}: 폴더입니다. 그 안의 파일을 지정하십시오",
            "--out {out}：这是文件夹；请指定其中的文件",
        ))
        .into());
    }
    // The trace replaces an existing file; a pipe or a terminal would be lost.
    if out.exists() && !out.is_file() {
        let out = out.display();
        return Err(UsageError(localized!(
            language,
            "--out {out}: it is no regular file; name one",
            "--out {out}: 일반 파일이 아닙니다. 일반 파일을 지정하십시오",
            "--out {out}：这不是普通文件；请指定普通文件",
        ))
        .into());
    }
    Ok(())
}

/// The present threads of a process; threads that it starts later are not recorded.
fn threads_of(process: u32, language: Language) -> Result<BTreeSet<u32>> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).map_err(|_| {
        UsageError(localized!(
            language,
            "--process {process}: there is no such process; start it first",
            "--process {process}: 그런 프로세스가 없습니다. 먼저 실행하십시오",
            "--process {process}：没有这个进程；请先启动它",
        ))
    })?;
    let numbers = threads.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(numbers.collect())
}

fn limits(arguments: &StorageCapture, language: Language) -> Result<Limits> {
    let length = engine::time("--duration", &arguments.duration)?;
    if arguments.operations == 0 || length.is_zero() {
        let text = language.choose([
            "--operations and --duration must be more than 0",
            "--operations와 --duration은 0보다 커야 합니다",
            "--operations 和 --duration 必须大于 0",
        ]);
        return Err(UsageError(text.into()).into());
    }
    // A trace that cannot be read again is not written.
    if arguments.operations > trace::OPERATIONS_MAX as u64 {
        let most = trace::OPERATIONS_MAX;
        return Err(UsageError(localized!(
            language,
            "--operations must be at most {most}, the longest trace that is read",
            "--operations는 읽을 수 있는 가장 긴 트레이스인 {most} 이하여야 합니다",
            "--operations 至多为 {most}，即可读取的最长轨迹",
        ))
        .into());
    }
    Ok(Limits { length, operations_max: arguments.operations })
}

/// An operation that this machine or user is not allowed is reported as one sentence; any other error is an error of
/// the run.
fn refused(error: CaptureError, language: Language) -> Result<Exit> {
    let text = match &error {
        CaptureError::System { .. } => return Err(error.into()),
        CaptureError::NoTracefs => localized!(
            language,
            "device times need the kernel's tracefs, which is not mounted here; as root: {MOUNT}",
            "장치 시간을 재려면 커널의 tracefs가 필요하지만 마운트되어 있지 않습니다. root로 실행: {MOUNT}",
            "测量设备时间需要内核的 tracefs，但本机没有挂载；请以 root 运行：{MOUNT}",
        ),
        CaptureError::NotPermitted { path, source } => {
            let path = path.display();
            localized!(
                language,
                "device times come from block tracepoints, and those need root: {path} cannot be written ({source})",
                "장치 시간은 블록 트레이스포인트로 재며 root 권한이 필요합니다. {path} 파일에 쓸 수 없습니다({source})",
                "设备时间取自块设备跟踪点，需要 root 权限：无法写入 {path}（{source}）",
            )
        }
        CaptureError::NoTracepoints(path) => {
            let path = path.display();
            localized!(
                language,
                "this kernel has no block tracepoints (CONFIG_BLK_DEV_IO_TRACE): {path} is missing",
                "이 커널에는 블록 트레이스포인트가 없습니다(CONFIG_BLK_DEV_IO_TRACE). {path} 없음",
                "本内核没有块设备跟踪点（CONFIG_BLK_DEV_IO_TRACE）：缺少 {path}",
            )
        }
        CaptureError::NoDevice { path, reason } => {
            let (path, reason) = (path.display(), without_disk(*reason, language));
            localized!(
                language,
                "{path} lies on no block device that can be traced ({reason})",
                "{path} 경로는 추적할 수 있는 블록 장치 위에 있지 않습니다({reason})",
                "{path} 不在可以跟踪的块设备上（{reason}）",
            )
        }
    };
    output::tell(&format!("weir: {text}"));
    Ok(Exit::Environment)
}

fn without_disk(reason: NoDisk, language: Language) -> String {
    match reason {
        NoDisk::OfItsOwn => localized!(
            language,
            "its file system is on no disk, or on more than one",
            "파일 시스템에 전용 디스크가 없거나, 디스크가 둘 이상입니다",
            "其文件系统没有自己的磁盘，或不止一个",
        ),
        NoDisk::OfPartition { major, minor } => localized!(
            language,
            "the disk of partition {major}:{minor} is not known",
            "파티션 {major}:{minor}의 디스크를 알 수 없습니다",
            "不知道分区 {major}:{minor} 属于哪个磁盘",
        ),
    }
}

fn keep(file: BufWriter<File>, partial: &Path, path: &Path) -> std::io::Result<()> {
    let whole = || {
        file.into_inner()?.sync_all()?;
        fs::rename(partial, path)
    };
    whole().inspect_err(|_| {
        // The failure is reported; half a trace is useless.
        let _ = fs::remove_file(partial);
    })
}

/// The content of the trace, and the disk's requests that it lacks.
fn summary(recorded: &Recorded, path: &Path, language: Language) -> String {
    let Recorded { counts, is_full } = recorded;
    let CaptureCounts { operations, unmatched, lost } = counts;
    let path = path.display();
    let mut text = localized!(
        language,
        "{operations} requests in {path}",
        "요청 {operations}건을 {path} 파일에 기록",
        "{operations} 个请求，已写入 {path}",
    );
    if *is_full {
        text.push_str(language.choose([
            "; that is the maximum (--operations): what the disk did after them is not in it",
            "; 최대치(--operations)에 이르러 그 뒤의 디스크 요청은 들어 있지 않습니다",
            "；已达上限（--operations），其后的磁盘请求不在其中",
        ]));
    }
    if *unmatched > 0 {
        text.push_str(&localized!(
            language,
            "; {unmatched} completions are left out, because weir did not see their issue",
            "; 요청을 보지 못한 완료 {unmatched}건은 뺐습니다",
            "；有 {unmatched} 个完成因没有看到其发出而未计入",
        ));
    }
    if *lost > 0 {
        text.push_str(&localized!(
            language,
            "; the kernel dropped {lost} records that were not read in time",
            "; 제때 읽지 못한 기록 {lost}건을 커널이 버렸습니다",
            "；内核丢弃了 {lost} 条未及时读取的记录",
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_those_of_the_process() {
        assert!(
            threads_of(std::process::id(), Language::English).expect("it runs").contains(&std::process::id())
        );
        let error =
            threads_of(u32::MAX, Language::English).expect_err("no process has that number").to_string();
        assert_eq!(error, "--process 4294967295: there is no such process; start it first");
    }

    #[test]
    fn a_summary_says_what_is_missing() {
        let of =
            |counts, is_full, language| summary(&Recorded { counts, is_full }, Path::new("a.csv"), language);
        let line = |counts, is_full| of(counts, is_full, Language::English);
        let whole = CaptureCounts { operations: 12, unmatched: 0, lost: 0 };
        assert_eq!(line(whole, false), "12 requests in a.csv");
        assert!(line(whole, true).starts_with("12 requests in a.csv; that is the maximum (--operations)"));
        let early = line(CaptureCounts { unmatched: 1, ..whole }, false);
        assert!(early.ends_with("1 completions are left out, because weir did not see their issue"));
        let lossy = line(CaptureCounts { lost: 3, ..whole }, false);
        assert!(lossy.ends_with("dropped 3 records that were not read in time"));
        let all = CaptureCounts { operations: 12, unmatched: 1, lost: 3 };
        for language in [Language::Korean, Language::Chinese] {
            let text = of(all, true, language);
            assert!(["12", "a.csv", "--operations", "1", "3"].iter().all(|it| text.contains(it)), "{text}");
            assert!(!text.contains("requests"), "{text}");
        }
    }
}
