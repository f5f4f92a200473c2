//! `weir study NAME --repeat N --every DURATION`: one study several times, each run in a new folder, and the pooled
//! result.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant, SystemTime},
};

use anyhow::Result;
use weir_lab::{exit::ExitCode, length::length_ns, outline, run::Ended, stored::StoredRun, stored_folders};
use weir_report::{Language, localized, run_pool};

use super::{
    report,
    study::{Host, Place, RESULTS},
    study_host::Machines,
    study_plan, study_pool,
};
use crate::{
    args::{PoolFormat, Study},
    exit::{Exit, UsageError},
    output,
};

/// Longest time between two starts.
const EVERY_MAX: Duration = Duration::from_secs(24 * 3_600);

/// Time between two checks whether the wait was interrupted.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Runs the study this many times, and pools the finished runs.
pub(super) fn run(arguments: &Study, times: u32, language: Language) -> Result<Exit> {
    let every = check(arguments, language)?;
    let host = Host::here(arguments, language)?;
    let mut runs: Vec<(PathBuf, StoredRun)> = Vec::new();
    let repeated = repeat(&host, arguments, (times, every), &mut runs);
    // The measurements are shown, whatever happened after them.
    let pooled = match &runs[..] {
        [] => ExitCode::NotComparable,
        [(folder, run)] => {
            report::show(&run.result, language, (folder, arguments.long))?;
            ExitCode::Inconclusive
        }
        [(first, _), ..] => {
            let name = first.file_name().unwrap_or_default().to_string_lossy();
            show(&runs, &first.with_file_name(format!("{name}-pool.html")), language)?;
            pooled_code(&runs)
        }
    };
    Ok(match repeated? {
        Stopped::Interrupted => Exit::Interrupted,
        Stopped::ArmsMissing => Exit::Environment,
        Stopped::Done => Exit::Study(pooled),
    })
}

/// Why no further run began.
enum Stopped {
    Done,
    Interrupted,
    /// The other runs would lack the arms too.
    ArmsMissing,
}

fn repeat(
    host: &Host,
    arguments: &Study,
    (times, every): (u32, Duration),
    runs: &mut Vec<(PathBuf, StoredRun)>,
) -> Result<Stopped> {
    let parent = arguments.out.clone().unwrap_or_else(|| PathBuf::from(RESULTS));
    let began = Instant::now();
    for number in 1..=times {
        if !wait(began + every * (number - 1), (number, times), &host.interrupt, host.language) {
            return Ok(Stopped::Interrupted);
        }
        output::tell(&localized!(
            host.language,
            "run {number} of {times}",
            "실행 {number}/{times}",
            "第 {number} 次运行，共 {times} 次",
        ));
        let seed = arguments.seed.map(|seed| seed.wrapping_add(u64::from(number - 1)));
        let own = Study { seed, ..arguments.clone() };
        let place = |name: &str| Place::new(&parent, name);
        let Some((folder, outcome)) = host.fresh(&own, &place)? else { return Ok(Stopped::Interrupted) };
        if let Some(hint) = outcome.resume_hint(&folder, host.language) {
            output::tell(&hint);
        }
        let (ended, blocks_done) = (outcome.ended, outcome.progress.blocks_done);
        if ended != Ended::Interrupted || blocks_done > 0 {
            let run = host.placed(outcome, &folder);
            report::write_pages(&run.result, host.language, (&folder, &folder))?;
            output::tell(&weir_report::sentence(&run.result, host.language));
            runs.push((folder, run));
        }
        match ended {
            Ended::Interrupted => return Ok(Stopped::Interrupted),
            Ended::ArmsMissing => return Ok(Stopped::ArmsMissing),
            Ended::Complete | Ended::TimeCap | Ended::StayedFar => {}
        }
    }
    Ok(Stopped::Done)
}

/// Waits for the next start; `false` if it was interrupted. After a run that took longer than the time between two
/// starts, the next one starts at once.
fn wait(until: Instant, (number, times): (u32, u32), interrupt: &AtomicBool, language: Language) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    if left > LOOK_PAUSE {
        let length = outline::shown_ns(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX), language);
        let at = SystemTime::now() + left;
        let at = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let clock = format!("{:02}:{:02}:{:02} UTC", at / 3_600 % 24, at / 60 % 60, at % 60);
        output::tell(&localized!(
            language,
            "run {number} of {times} begins in {length}, at {clock}; Ctrl-C ends here and keeps what was measured",
            "실행 {number}/{times}: {length} 뒤({clock})에 시작합니다. Ctrl-C를 누르면 여기서 끝내고, 측정한 결과는 남깁니다",
            "第 {number} 次运行（共 {times} 次）将在 {length}后（{clock}）开始；按 Ctrl-C 到此结束，已测数据会保留",
        ));
    }
    while !interrupt.load(Ordering::Relaxed) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        thread::sleep(left.min(LOOK_PAUSE));
    }
    false
}

/// Prints the pooled result, and writes its page.
pub(super) fn show(runs: &[(PathBuf, StoredRun)], page: &Path, language: Language) -> Result<()> {
    let pool = stored_folders::pooled(runs);
    study_pool::print(&pool, runs, PoolFormat::Text, language)?;
    if let Some(named) = stored_folders::named(&pool, runs) {
        output::write_whole(page, &run_pool::html(&pool, named, language))?;
        report::tell_page(page, language);
    }
    Ok(())
}

/// The code of the pooled primary comparison.
pub(super) fn pooled_code(runs: &[(PathBuf, StoredRun)]) -> ExitCode {
    let results: Vec<_> = runs.iter().map(|(_, run)| &run.result).collect();
    ExitCode::of_pooled_primary(&stored_folders::pooled(runs), &results)
}

/// Refuses flags that contradict several runs, with the remedy; otherwise the time between two starts.
fn check(arguments: &Study, language: Language) -> Result<Duration> {
    let refuse = |text: String| Err(UsageError(text).into());
    if let Some(folder) = &arguments.resume {
        let folder = folder.display();
        return refuse(localized!(
            language,
            "--repeat begins new runs and --resume goes on with one: finish that one with `weir study --resume {folder}`, \
             then repeat the study",
            "--repeat은 새로 실행하고 --resume은 중단된 실행을 계속합니다. `weir study --resume {folder}`으로 그 실행을 끝낸 뒤 실험을 반복하십시오",
            "--repeat 开始新的运行，--resume 继续已有的一次：请先用 `weir study --resume {folder}` 完成那一次，再重复该实验",
        ));
    }
    if let Some(folder) = arguments.out.as_deref().filter(|folder| !is_free(folder)) {
        let folder = folder.display();
        return refuse(localized!(
            language,
            "--out {folder} is there already, and --repeat puts a folder for each run into it: name one that is not there, \
             or leave --out out; runs of several times are pooled with `weir study pool DIR DIR`",
            "--out {folder}: 이미 있는 폴더입니다. --repeat은 그 안에 실행마다 폴더를 만듭니다. 없는 폴더를 지정하거나 --out을 빼십시오. 서로 다른 시점의 실행은 `weir \
            study pool DIR DIR`로 종합합니다",
            "--out {folder} 已存在，而 --repeat 会在其中为每次运行建一个文件夹：请指定尚不存在的文件夹，或去掉 --out；不同时间的运行可用 `weir study pool DIR \
             DIR` 合并",
        ));
    }
    let host_spec = study_plan::written(arguments)?.study(arguments, &Machines::here())?.spec;
    if host_spec.comparisons.iter().any(|asked| asked.is_threshold) || arguments.inconclusive_passes {
        return refuse(
            language
                .choose([
                    "--repeat: thresholds are of single runs; leave --fail-if out, or run the study once",
                    "--repeat: 임계값은 한 실행에 적용합니다. --fail-if를 빼거나 실험을 한 번만 실행하십시오",
                    "--repeat：阈值针对单次运行；请去掉 --fail-if，或只运行一次",
                ])
                .to_owned(),
        );
    }
    let Some(written) = &arguments.every else { return Ok(Duration::ZERO) };
    let every = length_ns(written).map(Duration::from_nanos).filter(|every| *every <= EVERY_MAX);
    every.map_or_else(
        || {
            refuse(localized!(
                language,
                "--every {written} is no length of time up to a day; write 10min, 90s or 1h",
                "--every {written}: 하루 이하의 시간으로 쓰십시오. 예: 10min, 90s, 1h",
                "--every {written}：不是一天以内的时长；请写 10min、90s 或 1h",
            ))
        },
        Ok,
    )
}

/// Whether runs may be put there: it does not exist, or is empty.
pub(super) fn is_free(folder: &Path) -> bool {
    !folder.exists() || folder.read_dir().is_ok_and(|mut entries| entries.next().is_none())
}
