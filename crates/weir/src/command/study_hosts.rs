//! `weir study NAME --hosts FILE`: one study on each machine of a list, several at a time, and the pooled result.
//!
//! Each host runs the whole study by itself, as its own `weir study`. A thread here follows it and fetches its store.
//! A lost host costs its own result.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, SyncSender},
    },
    thread,
};

use anyhow::{Context, Result};
use weir_lab::{
    exit::ExitCode,
    launch::LaunchError,
    process::{OwnProgram, StudyThere, WholeEnd},
    run::RunError,
    stored::StoredRun,
};
use weir_report::{Language, localized};

use super::{
    origin, report,
    study::{Place, RESULTS},
    study_host::Machines,
    study_hosts_asked::Asked,
    study_hosts_file::{self, StudyHost},
    study_plan, study_repeat,
};
use crate::{
    args::Study,
    exit::{Exit, UsageError, sentence},
    output, signals,
};

/// Hosts that run the study at one time, if the command line names no number.
const AT_ONCE: u16 = 16;

/// Most lines of hosts that wait to be printed.
const LINES_MAX: usize = 1_024;

/// File of the pooled result.
const PAGE: &str = "pool.html";

pub(super) fn run(arguments: &Study, file: &Path, language: Language) -> Result<Exit> {
    let hosts = study_hosts_file::read(file, arguments.rsh.as_deref(), language)?;
    let written = study_plan::written(arguments)?;
    // A mistake of the study is refused here, before any host is asked.
    let name = written.study(arguments, &Machines::here())?.spec.name;
    let origin = origin::origin(&arguments.origin, Path::new("."))?;
    let asked = Asked::of(arguments, &written, &origin, language);
    let folder = folder(arguments, &name, language)?;
    let interrupt = signals::stop_flag()?;
    let own = OwnProgram::read().context("cannot read the weir program itself")?;
    let at_once = usize::from(arguments.at_once.unwrap_or(AT_ONCE)).min(hosts.len());
    let (count, shown) = (hosts.len(), folder.display());
    output::tell(&localized!(
        language,
        "study {name} on {count} hosts, {at_once} at a time; results go to {shown}",
        "실험 {name}: 호스트 {count}대, 동시에 {at_once}대. 결과 폴더: {shown}",
        "实验 {name}：{count} 台主机，同时 {at_once} 台；结果写入 {shown}",
    ));
    let all =
        All { hosts: &hosts, asked: &asked, own: &own, folder: &folder, interrupt: &interrupt, language };
    let results = all.run(at_once);
    if results.runs.is_empty() {
        // It may have been made for this command. A folder with anything in it stays.
        let _ = std::fs::remove_dir(&folder);
    }
    results.show(arguments, &folder, language)?;
    if interrupt.load(Ordering::Relaxed) {
        return Ok(Exit::Interrupted);
    }
    results.code()
}

/// The folder of all results, which must be free.
fn folder(arguments: &Study, name: &str, language: Language) -> Result<PathBuf> {
    let Some(out) = &arguments.out else { return Ok(Place::new(Path::new(RESULTS), name).path) };
    if study_repeat::is_free(out) {
        return Ok(out.clone());
    }
    let out = out.display();
    Err(UsageError(localized!(
        language,
        "--out {out} is there already, and --hosts puts a folder for each host into it: name one that is not there, or \
         leave --out out; results of several folders are pooled with `weir study pool DIR DIR`",
        "--out {out}: 이미 있는 폴더입니다. --hosts는 그 안에 호스트마다 폴더를 만듭니다. 없는 폴더를 지정하거나 --out을 빼십시오. 여러 폴더의 결과는 `weir study \
         pool DIR DIR`로 종합합니다",
        "--out {out} 已存在，而 --hosts 会在其中为每台主机建一个文件夹：请指定尚不存在的文件夹，或去掉 --out；多个文件夹的结果可用 `weir study pool DIR \
         DIR` 合并",
    ))
    .into())
}

/// All hosts, and what their threads share.
struct All<'a> {
    hosts: &'a [StudyHost],
    asked: &'a Asked,
    own: &'a OwnProgram,
    folder: &'a Path,
    interrupt: &'a AtomicBool,
    language: Language,
}

/// What a thread reports.
enum Heard {
    Said(String),
    Ended { place: usize, ended: Result<WholeEnd, LaunchError> },
}

impl All<'_> {
    /// Runs the study on every host. Results are in the order of the file.
    fn run(&self, at_once: usize) -> Results {
        let waiting: Mutex<VecDeque<usize>> = Mutex::new((0..self.hosts.len()).collect());
        let (send, heard) = mpsc::sync_channel(LINES_MAX);
        let mut results: Vec<Option<Result<Taken, String>>> = self.hosts.iter().map(|_| None).collect();
        thread::scope(|scope| {
            for _ in 0..at_once {
                let (send, waiting) = (send.clone(), &waiting);
                scope.spawn(move || self.work(waiting, &send));
            }
            drop(send);
            for heard in heard {
                match heard {
                    Heard::Said(line) => output::tell(&line),
                    Heard::Ended { place, ended } => results[place] = Some(self.taken(place, ended)),
                }
            }
        });
        let not_begun = self.language.choose(["it was not begun", "시작하지 않음", "没有开始"]);
        let mut all = Results { runs: Vec::new(), unfinished: 0, lost: Vec::new() };
        for (host, result) in self.hosts.iter().zip(results) {
            match result.unwrap_or_else(|| Err(not_begun.to_owned())) {
                Ok(Taken { run, is_whole }) => {
                    all.unfinished += usize::from(!is_whole);
                    all.runs.push((self.folder.join(&host.name), run));
                }
                Err(reason) => all.lost.push((host.name.clone(), reason)),
            }
        }
        all
    }

    /// Runs the study on one host after the other until none is left.
    fn work(&self, waiting: &Mutex<VecDeque<usize>>, send: &SyncSender<Heard>) {
        let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        while let Some(place) = next().filter(|_| !self.interrupt.load(Ordering::Relaxed)) {
            let ended = self.one(place, &mut |line| {
                // Fails only if the main thread is gone.
                let _ = send.send(Heard::Said(line));
            });
            let _ = send.send(Heard::Ended { place, ended });
        }
    }

    /// Runs the study on one host, and fetches what it stored.
    fn one(&self, place: usize, said: &mut dyn FnMut(String)) -> Result<WholeEnd, LaunchError> {
        let host = &self.hosts[place];
        let asked = self.asked.for_host(host, place);
        let mut there = StudyThere::begin(&host.way, self.own, &asked, self.interrupt)?;
        let ended = there.follow(self.interrupt, said)?;
        if let Some(store) = &ended.store {
            there.fetch(store, &self.folder.join(&host.name), self.interrupt)?;
        }
        Ok(ended)
    }

    /// The run of a host that has ended, with its pages; or why it has no result.
    fn taken(&self, place: usize, ended: Result<WholeEnd, LaunchError>) -> Result<Taken, String> {
        let (name, language) = (&self.hosts[place].name, self.language);
        let taken = self.result(name, ended);
        match &taken {
            Ok(Taken { run, .. }) => {
                output::tell(&format!("{name}: {}", weir_report::sentence(&run.result, language)));
            }
            Err(reason) => output::tell(&localized!(
                language,
                "{name} gave no result: {reason}",
                "{name}: 결과 없음: {reason}",
                "{name} 没有结果：{reason}",
            )),
        }
        taken
    }

    fn result(&self, name: &str, ended: Result<WholeEnd, LaunchError>) -> Result<Taken, String> {
        let ended = ended.map_err(|error| {
            let reason = error.to_string();
            // Its name is said beside the reason.
            reason.strip_prefix(&format!("{name}: ")).map(str::to_owned).unwrap_or(reason)
        })?;
        if ended.store.is_none() {
            return Err(ended.how);
        }
        let folder = self.folder.join(name);
        let run = StoredRun::read(&folder).map_err(|error| sentence(&error.into(), self.language))?;
        if run.progress.blocks_done == 0 {
            return Err(ended.how);
        }
        let written = report::write_pages(&run.result, self.language, (&folder, &folder));
        // The store is whole, so the result counts without its pages.
        if let Err(error) = written {
            output::tell(&format!("{name}: {}", sentence(&error, self.language)));
        }
        let is_whole =
            ended.code.is_some_and(|code| WHOLE.iter().any(|whole| i32::from(whole.code()) == code));
        if !is_whole {
            let how = ended.how;
            output::tell(&localized!(
                self.language,
                "{name} is unfinished, and what it has stored is kept: {how}",
                "{name}: 끝나지 않았으며 저장한 결과는 남깁니다: {how}",
                "{name} 尚未完成，已保存的结果予以保留：{how}",
            ));
        }
        Ok(Taken { run, is_whole })
    }
}

/// Codes of a study that ran to its end. The last one is that of a study without some arms, which its result shows.
const WHOLE: [ExitCode; 5] = [
    ExitCode::Decided,
    ExitCode::Threshold,
    ExitCode::Inconclusive,
    ExitCode::NotComparable,
    ExitCode::Environment,
];

/// The run of a host.
struct Taken {
    run: StoredRun,
    /// Whether its study ran to its end.
    is_whole: bool,
}

/// What all hosts gave.
struct Results {
    runs: Vec<(PathBuf, StoredRun)>,
    /// Runs that ended early.
    unfinished: usize,
    /// Hosts without a result, each with the reason.
    lost: Vec<(String, String)>,
}

impl Results {
    /// Prints the pooled result, and which hosts are not in it.
    fn show(&self, arguments: &Study, folder: &Path, language: Language) -> Result<()> {
        match &self.runs[..] {
            [] => {}
            [(own, run)] => report::show(&run.result, language, (own, arguments.long))?,
            runs => study_repeat::show(runs, &folder.join(PAGE), language)?,
        }
        if self.lost.is_empty() {
            return Ok(());
        }
        let (found, all) = (self.runs.len(), self.runs.len() + self.lost.len());
        output::tell(&localized!(
            language,
            "hosts with a result: {found} of {all}; without:",
            "결과가 있는 호스트: {all}대 중 {found}대. 없는 호스트:",
            "有结果的主机：{all} 台中的 {found} 台；没有结果的：",
        ));
        for (name, reason) in &self.lost {
            output::tell(&format!("  {name}{}{reason}", language.colon()));
        }
        Ok(())
    }

    /// The code of the pooled primary comparison. A script that reads 0 must be able to rely on every host.
    fn code(&self) -> Result<Exit> {
        match (self.lost.first(), &self.runs[..]) {
            (Some((name, reason)), []) => {
                let more = self.lost.len() - 1;
                let others = if more == 0 { String::new() } else { format!(" (and {more} others)") };
                Err(RunError::Environment(format!("no host gave a result: {name}{others}: {reason}")).into())
            }
            (Some(_), _) => Ok(Exit::Environment),
            _ if self.unfinished > 0 => Ok(Exit::Environment),
            (None, [] | [_]) => Ok(Exit::Study(ExitCode::Inconclusive)),
            (None, runs) => Ok(Exit::Study(study_repeat::pooled_code(runs))),
        }
    }
}
