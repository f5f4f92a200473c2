//! Programs of `--baseline` and `--placebo`: each must be a weir that serves the arms of the study. This is tried
//! before the measurement.

use std::{io, path::Path};

use anyhow::{Context, Result};
use rustix::fs::Access;
use weir_evidence::placement::{self, Topology};
use weir_lab::{
    host_defaults::cpu_list,
    process::{ANSWER_MAX, Answer, answer},
    study_file::Builds,
};
use weir_record::spec::{ArmSpec, GatewaySubject, StudySpec, Subject};
use weir_report::localized;

use crate::{
    args::Study,
    exit::{NoBaseline, UsageError},
    language,
};

/// Exit codes of `weir serve` for a missing ability.
const USAGE: i32 = 2;
const ENVIRONMENT: i32 = 13;

/// The address of a gateway that only has to understand its flags: no process has the port.
const NO_EXCHANGE: &[&str] =
    &["serve", "gateway", "--demo", "1", "--listen", "127.0.0.1:0", "--upstream", "127.0.0.1:1"];

/// The builds of the command line; each exists and is a weir.
pub(super) fn builds(arguments: &Study) -> Result<Option<Builds>> {
    let Some(old) = &arguments.baseline else { return Ok(None) };
    let own = std::env::current_exe().context("cannot find the weir program itself")?;
    let topology = Topology::from(&weir_evidence::fingerprint::fingerprint());
    Ok(Some(Builds {
        own: own.display().to_string(),
        old: program("--baseline", old)?,
        placebo: arguments.placebo.as_deref().map(|it| program("--placebo", it)).transpose()?,
        is_pinned: placement::place(&topology).is_some(),
    }))
}

/// The absolute path of a program that reports that it is a weir.
fn program(flag: &str, path: &Path) -> Result<String, NoBaseline> {
    let shown = path.display();
    let language = language::of_command_line();
    let whole = path.canonicalize().map_err(|error| {
        NoBaseline(localized!(
            language,
            "{flag} {shown}: {error}; give the path of an older weir",
            "{flag} {shown}: {error}. 이전 weir의 경로를 지정하십시오",
            "{flag} {shown}：{error}；请给出较早的 weir 的路径",
        ))
    })?;
    if !whole.is_file() || rustix::fs::access(&whole, Access::EXEC_OK).is_err() {
        return Err(NoBaseline(localized!(
            language,
            "{flag} {shown}: it is no program that may be run; name the binary, or `chmod +x {shown}`",
            "{flag} {shown}: 실행할 수 있는 프로그램이 아닙니다. 바이너리를 지정하거나 `chmod +x {shown}`을 실행하십시오",
            "{flag} {shown}：不是可执行的程序；请指定二进制文件，或执行 `chmod +x {shown}`",
        )));
    }
    let name = whole.display().to_string();
    let seen = match answer(&name, &["--version".to_owned()]) {
        Ok(Answer::Line(line)) if line.starts_with("weir ") => return Ok(name),
        Ok(Answer::Line(line)) => format!("--version: {:?}", line.trim()),
        Ok(Answer::Ended { said, .. }) => format!("--version: {said:?}"),
        Ok(Answer::Silence) => language
            .choose(["--version says nothing", "--version에 출력이 없음", "--version 没有输出"])
            .to_owned(),
        Err(error) => error.to_string(),
    };
    Err(NoBaseline(localized!(
        language,
        "{flag} {shown}: it is no weir ({seen}); name an older build of weir; other servers are arms (--arm)",
        "{flag} {shown}: weir가 아닙니다({seen}). 이전 weir 빌드를 지정하십시오. 다른 서버는 --arm으로 추가합니다",
        "{flag} {shown}：不是 weir（{seen}）；请指定较早的 weir 构建；其他服务器请作为方案（--arm）加入",
    )))
}

/// Tries every command of the builds once: an unknown option would fail all rounds of a build. Those of this build come
/// first: an option that it does not know is a mistake of the study.
pub(super) fn check(spec: &StudySpec) -> Result<()> {
    let is_own = |arm: &&ArmSpec| arm.baseline.is_some() && !arm.is_placebo;
    let is_old = |arm: &&ArmSpec| spec.arms.iter().any(|it| it.baseline.as_ref() == Some(&arm.name));
    for arm in spec.arms.iter().filter(is_own) {
        if let Some(why) = refusal(spec, arm)? {
            return Err(UsageError(format!("arm {}: {why}", arm.name)).into());
        }
    }
    for arm in spec.arms.iter().filter(|arm| arm.is_placebo || is_old(arm)) {
        if let Some(why) = refusal(spec, arm)? {
            let program = arm.subject.program().unwrap_or_default();
            let name = &arm.name;
            return Err(NoBaseline(localized!(
                language::of_command_line(),
                "arm {name} ({program}): {why}; choose arms that it knows with --only-arms --arm NAME, or a later \
                 build",
                "비교 대상 {name}({program}): {why}. 그 빌드가 지원하는 대상을 --only-arms --arm NAME으로 고르거나, 더 새로운 빌드를 쓰십시오",
                "方案 {name}（{program}）：{why}；请用 --only-arms --arm NAME 选择该构建支持的方案，或使用更新的构建",
            ))
            .into());
        }
    }
    Ok(())
}

/// Why a build does not serve. If this environment is the reason, the study handles it, as for any arm.
fn refusal(spec: &StudySpec, arm: &ArmSpec) -> io::Result<Option<String>> {
    let argv = match &arm.subject {
        Subject::Command { argv } => argv,
        Subject::Gateway(gateway) => return gateway_refusal(gateway),
        _ => return Ok(None),
    };
    let filled = |word: &String| {
        word.replace("{address}", "127.0.0.1:0")
            .replace("{workers}", "1")
            .replace("{cpus}", &cpu_list(&spec.server_cpus))
            .replace("{content_name}", "html")
    };
    let words: Vec<String> = argv.iter().map(filled).collect();
    let Some((program, words)) = words.split_first() else { return Ok(None) };
    // Values that are only known in a trial cannot be tried before one.
    if words.iter().any(|word| word.contains('{')) {
        return Ok(None);
    }
    Ok(why_not(answer(program, words)?))
}

/// The same for a gateway. It looks for its exchange before it reports that it listens, and here is no exchange. A
/// gateway that stays silent for this long has understood its flags.
fn gateway_refusal(gateway: &GatewaySubject) -> io::Result<Option<String>> {
    let Some(program) = &gateway.program else { return Ok(None) };
    let words = [NO_EXCHANGE, &["--handoff", &gateway.handoff, "--route", &gateway.route]].concat();
    let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    words.extend(gateway.driver.iter().flat_map(|driver| ["--driver".to_owned(), driver.clone()]));
    let options = gateway.options.iter();
    words.extend(options.flat_map(|(name, value)| ["--option".to_owned(), format!("{name}={value}")]));
    words.extend(gateway.arguments.iter().cloned());
    Ok(match answer(program, &words)? {
        Answer::Silence => None,
        said => why_not(said),
    })
}

fn why_not(said: Answer) -> Option<String> {
    match said {
        Answer::Line(line) if line.contains("listening on ") => None,
        Answer::Ended { code: Some(ENVIRONMENT), .. } => None,
        Answer::Line(line) => Some(format!("it says {:?} in the place of where it listens", line.trim())),
        Answer::Ended { code: Some(USAGE), said } => Some(said),
        Answer::Ended { said, .. } => Some(format!("it ended: {said}")),
        Answer::Silence => Some(format!("it did not listen within {} s", ANSWER_MAX.as_secs())),
    }
}
