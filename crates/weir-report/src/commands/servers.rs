//! Findings and lines about servers that were compared under a load, where they differ from those about commands.

use weir_record::{
    commands::{CommandFinding, CommandReport, FailedEnd, NotReady, ServerSettings, WorkUnit},
    spec::Ready,
};

use super::{
    findings::{ended, quoted},
    name, source,
};
use crate::{
    display::printable,
    format,
    language::{Language, localized},
};

/// A unit of work after "per".
fn unit(unit: WorkUnit, language: Language) -> &'static str {
    language.choose(match unit {
        WorkUnit::Run => ["load run", "부하 실행", "次负载运行"],
        WorkUnit::Request => ["request", "요청", "个请求"],
        WorkUnit::Transaction => ["transaction", "트랜잭션", "个事务"],
        WorkUnit::Operation => ["operation", "연산", "次操作"],
        WorkUnit::Message => ["message", "메시지", "条消息"],
        WorkUnit::Unit => ["unit of work", "작업 단위", "个工作单位"],
    })
}

/// The title of a table's first column: the unit of its figures. Empty for commands.
pub(super) fn per_unit(report: &CommandReport, language: Language) -> String {
    let Some(servers) = &report.settings.servers else { return String::new() };
    let unit = unit(servers.unit, language);
    localized!(language, "per {unit}", "{unit}당", "每{unit}")
}

/// The first line of a server with an estimate.
pub(super) fn head(
    of: WorkUnit,
    [verdict, own, baseline, amount, range]: [&str; 5],
    language: Language,
) -> String {
    let unit = unit(of, language);
    localized!(
        language,
        "{verdict}: {own} uses {amount} CPU time per {unit} than {baseline} (99 % interval {range})",
        "{verdict}: {own} 서버는 {baseline} 서버보다 {unit}당 CPU 시간을 {amount} 씁니다(99 % 신뢰구간 {range})",
        "{verdict}：{own} 每{unit}的 CPU 时间比 {baseline} {amount}（99 % 置信区间：{range}）",
    )
}

/// The first line of a server without an estimate.
pub(super) fn not_compared(verdict: &str, own: &str, baseline: &str, language: Language) -> String {
    localized!(
        language,
        "{verdict}: {own} was not compared with {baseline}",
        "{verdict}: {own} 서버를 {baseline} 서버와 비교하지 못했습니다",
        "{verdict}：未能将 {own} 与 {baseline} 比较",
    )
}

/// Where CPU time comes from, and between which moments.
pub(super) fn measured_by(report: &CommandReport, servers: &ServerSettings, language: Language) -> String {
    let step = format::nanos_tick(report.measured_by.cpu_resolution_ns as f64);
    let processes = || {
        localized!(
            language,
            "their processes (those that ended in steps of {step})",
            "각 프로세스(끝난 프로세스는 단위 {step})",
            "其各进程（已结束的进程步长为 {step}）",
        )
    };
    let source = source(&report.measured_by.cpu_source, language).map_or_else(processes, str::to_owned);
    let settle = format::nanos_tick(servers.settle_ns as f64);
    let pairs = report.comparisons.first().map_or(servers.pairs_per_start, |it| it.plan.unit_pairs.max(1));
    let seed = report.seed;
    localized!(
        language,
        "CPU of the servers from {source}, read before each load run and {settle} after its end; pairs for each start of \
         the servers, which is one unit: {pairs}; seed {seed}",
        "서버 CPU 측정 방법: {source}. 부하를 실행하기 전에, 그리고 끝나고 {settle} 뒤에 읽습니다. 서버를 한 번 시작할 때(단위 하나) 실행하는 쌍의 수: {pairs}; 시드 \
        {seed}",
        "服务器 CPU 数据来源：{source}，在每次负载运行之前及结束 {settle} 后读取；服务器每次启动（一个单元）运行的对数：{pairs}；随机种子 {seed}",
    )
}

/// A finding that only servers have.
pub(super) fn finding(found: &CommandFinding, language: Language) -> String {
    match found {
        CommandFinding::ServerNotReady { command, why, said } => not_ready(command, why, said, language),
        CommandFinding::ServersCollide { command, said } => {
            let (command, said) = (name(command), quoted(said, language));
            localized!(
                language,
                "{command} starts alone and not beside the other servers: they need the same port, lock or file; write \
                 {{port}} and {{dir}} where its command names these{said}",
                "{command} 서버는 단독으로는 시작되지만 다른 서버와 함께는 시작되지 않습니다. 같은 포트, 잠금 또는 파일을 쓰기 때문입니다. 명령에서 이들을 적는 자리에 {{port}}와 \
                {{dir}}를 쓰십시오{said}",
                "{command} 可以单独启动，但不能与其他服务器一起启动：它们使用同一端口、锁或文件。请在命令的相应位置写 {{port}} 和 {{dir}}{said}",
            )
        }
        CommandFinding::ServerEnded { command, end, said } => {
            let (command, how, said) = (name(command), ended(*end, language), quoted(said, language));
            localized!(
                language,
                "{command} ended while it was compared ({how}), so nothing further ran{said}",
                "{command} 서버가 비교 도중에 끝났습니다({how}). 더 실행하지 않았습니다{said}",
                "{command} 在比较期间结束（{how}），之后没有继续运行{said}",
            )
        }
        CommandFinding::LoadFailed { .. } | CommandFinding::LoadErrors { .. } => of_load(found, language),
        CommandFinding::ShortLoads { command, cpu_ns, resolution_ns } => {
            let command = name(command);
            let (cpu, step) = (format::nanos(*cpu_ns as f64), format::nanos_tick(*resolution_ns as f64));
            localized!(
                language,
                "a load run costs {command} little: {cpu} of CPU time, counted in steps of {step}; give the load more to do",
                "부하를 한 번 실행할 때 {command} 서버가 쓰는 CPU가 적습니다: CPU 시간 {cpu}, 단위 {step}. 부하를 늘리십시오",
                "一次负载运行对 {command} 的开销很小：CPU 时间 {cpu}，步长 {step}；请加大负载",
            )
        }
        CommandFinding::BackgroundCpu { command, cpu_ns_per_second, share } => {
            let (command, share) = (name(command), format::percent(*share));
            let cpu = format::nanos(*cpu_ns_per_second as f64);
            localized!(
                language,
                "{command} works without a load too: {cpu} of CPU time a second, {share} of its figures",
                "{command} 서버는 부하가 없을 때도 CPU를 씁니다: 초당 CPU 시간 {cpu}, 수치의 {share}",
                "{command} 在没有负载时也占用 CPU：每秒 CPU 时间 {cpu}，占其数值的 {share}",
            )
        }
        _ => String::new(),
    }
}

fn not_ready(command: &str, why: &NotReady, said: &str, language: Language) -> String {
    let (command, said) = (name(command), quoted(said, language));
    match why {
        NotReady::Ended(end) => {
            let how = ended(*end, language);
            localized!(
                language,
                "{command} ended before it was ready ({how}){said}",
                "{command} 서버가 준비되기 전에 끝났습니다({how}){said}",
                "{command} 在就绪之前结束（{how}）{said}",
            )
        }
        NotReady::TooLate { ready, limit_ns } => {
            let (what, limit) = (awaited(ready, language), language.duration(*limit_ns));
            localized!(
                language,
                "{command} was not ready within {limit}: {what}; --ready-timeout allows longer{said}",
                "{command} 서버가 {limit} 안에 준비되지 않았습니다: {what}. 시간을 늘리려면 --ready-timeout을 쓰십시오{said}",
                "{command} 未在 {limit} 内就绪：{what}；可用 --ready-timeout 延长{said}",
            )
        }
    }
}

/// Which readiness signal did not come.
fn awaited(ready: &Ready, language: Language) -> String {
    match ready {
        Ready::Port => language
            .choose([
                "nothing accepted a connection on {port}",
                "{port} 포트에서 연결을 받는 프로세스가 없습니다",
                "{port} 上没有程序接受连接",
            ])
            .to_owned(),
        Ready::Line(text) => {
            let text = printable(text);
            localized!(
                language,
                "it wrote no line with '{text}'",
                "'{text}'이(가) 들어 있는 줄을 출력하지 않았습니다",
                "没有输出含“{text}”的行",
            )
        }
        Ready::Command(_) => language
            .choose([
                "the command of --ready did not succeed",
                "--ready 명령이 성공하지 않았습니다",
                "--ready 的命令没有成功",
            ])
            .to_owned(),
    }
}

fn of_load(found: &CommandFinding, language: Language) -> String {
    match found {
        CommandFinding::LoadFailed { command, end: FailedEnd::NoCount, failed, runs, said } => {
            let (command, said) = (name(command), quoted(said, language));
            localized!(
                language,
                "the load of {command} said in {failed} of {runs} runs no number of what it did; --count-regex or \
                 --count-json reads it elsewhere{said}",
                "{command} 서버의 부하 프로그램이 실행 {runs}번 중 {failed}번 처리 횟수를 출력하지 않았습니다. --count-regex나 --count-json으로 다른 \
                출력에서 읽을 수 있습니다{said}",
                "{command} 的负载程序在 {runs} 次运行中有 {failed} 次没有输出完成的数量；可用 --count-regex 或 --count-json 从其他输出读取{said}",
            )
        }
        CommandFinding::LoadFailed { command, end, failed, runs, said } => {
            let (command, how, said) = (name(command), ended(*end, language), quoted(said, language));
            localized!(
                language,
                "the load of {command} failed in {failed} of {runs} runs ({how}), which are not compared{said}",
                "{command} 서버의 부하가 실행 {runs}번 중 {failed}번 실패했습니다({how}). 실패한 실행은 비교하지 않습니다{said}",
                "{command} 的负载在 {runs} 次运行中失败 {failed} 次（{how}），失败的运行不参与比较{said}",
            )
        }
        CommandFinding::LoadErrors { command, errors, work, runs } => {
            let (command, errors) = (name(command), format::count(*errors));
            let work = work.map(format::count);
            let of = work.map_or_else(String::new, |work| {
                localized!(language, " in {work}", "({work} 중)", "（共 {work}）")
            });
            localized!(
                language,
                "the load reported {errors} errors{of} for {command}, in {runs} runs; what fails may cost less, so more \
                 than 1 % of them leaves no verdict (--ignore-failure compares all the same)",
                "부하 프로그램이 {command} 서버에 대해 오류 {errors}건{of}을 보고했습니다(실행 {runs}번). 실패한 요청은 비용이 적을 수 있으므로, 1 %를 넘으면 판정하지 \
                않습니다(--ignore-failure를 쓰면 비교)",
                "负载程序对 {command} 报告了 {errors} 个错误{of}，涉及 {runs} 次运行；失败的请求可能开销更小，超过 1 % 时不作判定（--ignore-failure 仍作比较）",
            )
        }
        _ => String::new(),
    }
}
