//! `weir storage run`.

use std::{
    cell::Cell,
    path::Path,
    sync::atomic::Ordering,
    time::{Duration, Instant, SystemTime},
};

use anyhow::Result;
use serde_json::Value;
use weir_record::storage::StorageReport;
use weir_report::{Language, localized};
use weir_storage::{
    job::{FioFormat, FioWords, units::shown_bytes},
    output::{DiskCounters, HostDefaults, fio_json, intervals},
    run::{JobProgress, Progress},
};

use super::{
    run_job::{PreparedJobs, prepare},
    run_table::table,
};
use crate::{args::StorageRun, exit::Exit, language, output, signals};

/// Progress is reported at this interval.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

pub(crate) fn run(arguments: &StorageRun) -> Result<Exit> {
    let language = language::chosen(arguments.lang.as_deref())?;
    let words = FioWords::read(&arguments.fio)?;
    let (format, to_file) = (words.format, words.output.as_deref().map(Path::new));
    let is_json = arguments.json || format != FioFormat::Normal;
    let PreparedJobs { jobs, notes, global_options } = prepare(arguments, &words)?;
    let stop = signals::stop_flag()?;
    let disks = Disks::read(jobs.iter().map(|job| job.file.as_str()));
    let shown = Shown::default();
    // Notes about the file come with the run, and not before an error that prevents it.
    let untold = Cell::new(Some(&notes));
    let tell_notes = || untold.take().into_iter().flatten().for_each(|note| output::tell(note));
    let progress = |progress: &Progress<'_>| {
        tell_notes();
        if !is_json {
            shown.show(progress, language);
        }
    };
    let outcome = weir_storage::run::run(&jobs, &stop, &progress);
    let is_interrupted = stop.load(Ordering::Relaxed);
    let mut report = match outcome {
        Err(_) if is_interrupted => {
            output::tell(language.choose([
                "interrupted before anything was measured",
                "측정하기 전에 중단됨",
                "尚未测量即被中断",
            ]));
            return Ok(Exit::Interrupted);
        }
        outcome => outcome?,
    };
    tell_notes();
    report.notes.splice(0..0, notes.clone());
    let text = if is_json {
        let has_bins = format == FioFormat::JsonPlus;
        let host_defaults = HostDefaults { has_bins, global_options, ..host_defaults(&disks) };
        serde_json::to_string(&fio_json(&report, &host_defaults))?
    } else {
        output::fitted(&table(&report, output::width_columns(), language))
    };
    match to_file {
        Some(path) => output::write_whole_or(path, &format!("{text}\n"), "name another file with --output")?,
        None => output::print(&text)?,
    }
    if let Some(path) = &arguments.csv {
        output::write_whole_or(path, &intervals::csv(&report), "name another file with --csv")?;
    }
    Ok(exit(&report, is_interrupted))
}

/// An interrupted run says so first; one with an error or a wrong block has failed, whatever else it measured.
fn exit(report: &StorageReport, is_interrupted: bool) -> Exit {
    if is_interrupted {
        Exit::Interrupted
    } else if report.jobs.iter().any(|job| job.failed) {
        Exit::RuntimeError
    } else {
        Exit::Ok
    }
}

/// Counters of the disks below the files, before the run.
struct Disks {
    before: Vec<(String, DiskCounters)>,
    start: Instant,
}

impl Disks {
    fn read<'a>(files: impl Iterator<Item = &'a str>) -> Self {
        let mut before: Vec<(String, DiskCounters)> = Vec::new();
        for file in files {
            // A file that is laid out later will be on the device of its folder.
            let path = Path::new(file);
            let place = if path.exists() { path } else { path.parent().unwrap_or(Path::new(".")) };
            let place = if place.as_os_str().is_empty() { Path::new(".") } else { place };
            if let Some(counters) = DiskCounters::of_file(place)
                && before.iter().all(|(_, known)| known.name != counters.name)
            {
                before.push((place.display().to_string(), counters));
            }
        }
        Self { before, start: Instant::now() }
    }

    fn elapsed_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn used(&self) -> Vec<Value> {
        let elapsed_ns = self.elapsed_ns();
        let used = |(place, before): &(String, DiskCounters)| {
            DiskCounters::of_file(Path::new(place)).map(|after| before.until(&after, elapsed_ns))
        };
        self.before.iter().filter_map(used).collect()
    }
}

fn host_defaults(disks: &Disks) -> HostDefaults {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    HostDefaults {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        timestamp_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        elapsed_ns: disks.elapsed_ns(),
        disks: disks.used(),
        global_options: Vec::new(),
        has_bins: false,
    }
}

/// The progress that was shown last.
#[derive(Default)]
struct Shown {
    last: Cell<Option<Instant>>,
}

impl Shown {
    fn show(&self, progress: &Progress<'_>, language: Language) {
        let is_due = self.last.get().is_none_or(|last| last.elapsed() >= PROGRESS_EVERY);
        let always = matches!(progress, Progress::Calibrating { .. });
        if is_due || always {
            self.last.set(Some(Instant::now()));
            output::tell(&line(progress, language));
        }
    }
}

fn line(progress: &Progress<'_>, language: Language) -> String {
    match progress {
        Progress::Preparing { path, done_bytes, total_bytes } => {
            let percent = *done_bytes as f64 * 100.0 / (*total_bytes).max(1) as f64;
            let all = shown_bytes(*total_bytes);
            localized!(
                language,
                "laying out {path}  {percent:>5.1} % of {all}",
                "{path} 파일 준비  {all} 중 {percent:>5.1} %",
                "准备文件 {path}  {all} 的 {percent:>5.1} %",
            )
        }
        Progress::Calibrating { job } => localized!(
            language,
            "calibrating sleeps for {job}",
            "{job} 작업의 sleep 시간 보정",
            "为任务 {job} 校准睡眠时间",
        ),
        Progress::Running { elapsed_ns, jobs } => {
            let jobs = jobs.iter().map(one_job).collect::<Vec<_>>().join("   ");
            let seconds = *elapsed_ns as f64 / 1e9;
            localized!(
                language,
                "measuring {seconds:>6.1} s  {jobs}",
                "측정 중 {seconds:>6.1}초  {jobs}",
                "测量 {seconds:>6.1} 秒  {jobs}",
            )
        }
        Progress::Verifying { job, done_blocks } => localized!(
            language,
            "verifying {job}  {done_blocks} blocks",
            "{job} 검증  블록 {done_blocks}개",
            "校验 {job}  {done_blocks} 个块",
        ),
    }
}

fn one_job(progress: &JobProgress<'_>) -> String {
    let share = progress.share.map(|share| format!("  {:.0} %", share * 100.0)).unwrap_or_default();
    format!("{}  {:.0} IOPS{share}", progress.job, progress.operations_per_second)
}
