//! `weir report`: a study's pages, from its store, or the page of an observation, from its file.

use std::path::Path;

use anyhow::{Context, Result};
use weir_evidence::recorded;
use weir_judge::batching_bound;
use weir_lab::{
    exit::ExitCode,
    stored::{self, StoredRun},
    stored_folders, study_file,
};
use weir_record::{guidance::ObservedProcess, study::StudyResult, trial::TrialRecord};
use weir_report::{Language, localized};

use super::{observe, study};
use crate::{
    args::Report,
    exit::{Exit, UsageError},
    language, output,
};

pub(crate) fn run(arguments: &Report) -> Result<Exit> {
    let language = language::chosen(arguments.lang.as_deref())?;
    let observed = arguments.observed.as_deref().map(observed).transpose()?;
    if arguments.run.is_file() {
        if observed.is_some() {
            let text = language.choose([
                "--observed: it belongs to a study, and this is the record of an observation; name the study's folder",
                "--observed: 실험에 쓰는 옵션입니다. 이것은 관찰 기록이므로 실험 폴더를 지정하십시오",
                "--observed：此选项用于实验，而这是一份观测记录；请指定实验的文件夹",
            ]);
            return Err(UsageError(text.to_owned()).into());
        }
        if !arguments.fail_if.is_empty() {
            let text = language.choose([
                "--fail-if: it judges a study, and this is the record of an observation; name the study's folder",
                "--fail-if: 실험을 판정하는 옵션입니다. 이것은 관찰 기록이므로 실험 폴더를 지정하십시오",
                "--fail-if：此选项用于判定实验，而这是一份观测记录；请指定实验的文件夹",
            ]);
            return Err(UsageError(text.to_owned()).into());
        }
        return observe::report(&arguments.run, language, (arguments.out.as_deref(), arguments.quiet));
    }
    refuse_sweep(&arguments.run)?;
    let mut run = StoredRun::read(&arguments.run)?;
    if !arguments.fail_if.is_empty() {
        let thresholds = study_file::thresholds(&run.result.spec, &arguments.fail_if)
            .map_err(|mistake| UsageError(format!("--fail-if {}", mistake.localized(language))))?;
        run = StoredRun::read_asking(&arguments.run, thresholds)?;
    }
    stored_folders::set_among(&mut run, &arguments.run);
    let mut result = run.result;
    if let Some(observed) = observed
        && !take(&mut result, observed)
    {
        return Err(UsageError(format!("--observed: {}", language.choose(NO_GUIDANCE))).into());
    }
    let folder = arguments.out.as_deref().unwrap_or(&arguments.run);
    write_pages(&result, language, (&arguments.run, folder))?;
    if arguments.quiet {
        tell_page(&folder.join("report.html"), language);
    } else {
        show(&result, language, (folder, arguments.long))?;
    }
    if arguments.fail_if.is_empty() {
        return Ok(Exit::Ok);
    }
    let code = ExitCode::of_result(&result);
    Ok(Exit::Study(study::after_thresholds(result.asked(), arguments.inconclusive_passes, code, language)))
}

/// Why an observed process says nothing about a study.
const NO_GUIDANCE: [&str; 3] = [
    "this study has no map that says what to use where, such as `weir study tps` has",
    "이 실험에는 조건별로 무엇을 쓸지 알려 주는 히트맵이 없습니다. `weir study tps`에는 있습니다",
    "本实验没有说明哪些场景该用哪种方案的热力图；`weir study tps` 有",
];

/// A record's statement about the share of its process's CPU that an I/O model can touch.
pub(crate) fn observed(file: &Path) -> Result<ObservedProcess> {
    let record = recorded::read(file)?;
    batching_bound::observed(&record).ok_or_else(|| {
        let file = file.display();
        let text = localized!(
            language::of_command_line(),
            "--observed: {file} has no system calls with times that can be right; record it with `weir observe -p \
             PID --trace --record FILE`, and again where the report says that times are wrong",
            "--observed: {file}에는 시간이 올바른 시스템 콜이 없습니다. `weir observe -p PID --trace --record FILE`로 기록하십시오. 보고서에 시간이 \
            틀렸다고 나오면 다시 기록하십시오",
            "--observed：{file} 中没有时间可信的系统调用；请用 `weir observe -p PID --trace --record FILE` 记录，\
             报告指出时间有误时请重新记录",
        );
        UsageError(text).into()
    })
}

/// Sets an observed process beside the guidance of a study that ran, or reports that there is no guidance.
pub(crate) fn set_beside(result: &mut StudyResult, observed: Option<ObservedProcess>) {
    if observed.is_some_and(|observed| !take(result, observed)) {
        output::tell(&format!("--observed: {}", language::of_command_line().choose(NO_GUIDANCE)));
    }
}

/// Sets an observed process beside the guidance; `false` if there is none.
fn take(result: &mut StudyResult, observed: ObservedProcess) -> bool {
    let guidance = result.guidance.as_mut();
    guidance.map(|guidance| guidance.observed = Some(observed)).is_some()
}

/// The mark of a study `polling` from the time when it was a separate sweep.
const SWEEP: &str = "polling.json";

/// Refuses the folder of such a sweep, which was no study of the laboratory.
pub(crate) fn refuse_sweep(folder: &Path) -> Result<()> {
    if !folder.join(SWEEP).exists() {
        return Ok(());
    }
    let (folder, version) = (folder.display(), env!("CARGO_PKG_VERSION"));
    let text = localized!(
        language::of_command_line(),
        "{folder} holds a sweep, as the study polling was up to commit 96a1a42 of Weir {version}; that one reads it, \
         and `weir study polling` measures it again",
        "{folder}: Weir {version}의 커밋 96a1a42까지 polling 실험이 쓰던 형식(sweep)입니다. 그 버전으로 읽거나, `weir study polling`으로 다시 \
        측정하십시오",
        "{folder} 中是一次 sweep，即 Weir {version} 到提交 96a1a42 为止 polling 实验所用的格式；请用该版本读取，或用 `weir \
         study polling` 重新测量",
    );
    Err(UsageError(text).into())
}

/// The study in a run folder, judged from its blocks, also if its session was killed before it could judge.
pub(crate) fn read(folder: &Path) -> Result<(StudyResult, Vec<TrialRecord>)> {
    refuse_sweep(folder)?;
    Ok(stored::read(folder)?)
}

/// Says where a page was written.
pub(crate) fn tell_page(page: &Path, language: Language) {
    let page = page.display();
    output::tell(&localized!(language, "report: {page}", "보고서: {page}", "报告：{page}"));
}

/// The error about a folder that cannot be made.
pub(crate) fn unmade(folder: &Path, language: Language) -> String {
    let folder = folder.display();
    localized!(
        language,
        "cannot make {folder}; choose another folder with --out",
        "{folder} 폴더를 만들 수 없습니다. --out으로 다른 폴더를 고르십시오",
        "无法创建 {folder}；请用 --out 选择其他文件夹",
    )
}

/// Writes the answer, or the whole report, to standard output, and prints the page's path.
pub(crate) fn show(result: &StudyResult, language: Language, (folder, is_long): (&Path, bool)) -> Result<()> {
    let text = if is_long { weir_report::terminal } else { weir_report::terminal_answer };
    output::print(&text(result, language, output::width_columns(), output::has_color()))?;
    tell_page(&folder.join("report.html"), language);
    Ok(())
}

/// Writes the pages alone: of the study in the first folder, into the second one.
pub(crate) fn write_pages(
    result: &StudyResult,
    language: Language,
    (run, folder): (&Path, &Path),
) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| unmade(folder, language))?;
    let page = weir_report::html_of_run(result, language, run);
    output::write_whole(&folder.join("report.html"), &page)?;
    output::write_whole(&folder.join("report.md"), &weir_report::markdown_of_run(result, language, run))?;
    output::write_whole(&folder.join("comment.md"), &weir_report::comment(result, language))?;
    if let Some(page) = weir_report::guidance(result, language) {
        output::write_whole(&folder.join("guidance.md"), &page)?;
    }
    if let Some(page) = weir_report::guidance_html(result, language) {
        output::write_whole(&folder.join("guidance.html"), &page)?;
    }
    Ok(())
}
