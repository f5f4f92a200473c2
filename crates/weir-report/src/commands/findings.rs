//! Findings about compared commands, in the reader's language, each with its remedy.

use weir_record::commands::{CommandFinding, FailedEnd, FirstDifference, NoCalls, Stream};

use super::{name, servers};
use crate::{
    change,
    display::{printable, truncate},
    format,
    language::{Language, localized},
};

/// Columns that a command's own words may take.
const SAID_COLUMNS_MAX: usize = 120;

/// Columns that a part of an output may take.
const EXCERPT_COLUMNS_MAX: usize = 40;

/// A finding in one sentence.
pub fn finding(found: &CommandFinding, language: Language) -> String {
    match found {
        CommandFinding::OutputDiffers { .. }
        | CommandFinding::OutputVaries { .. }
        | CommandFinding::StatusDiffers { .. } => of_output(found, language),
        CommandFinding::NotStarted { .. }
        | CommandFinding::Failed { .. }
        | CommandFinding::FailedSometimes { .. }
        | CommandFinding::CutSometimes { .. } => of_failure(found, language),
        CommandFinding::AroundFailed { .. }
        | CommandFinding::AroundNotStarted { .. }
        | CommandFinding::Broken { .. } => of_around(found, language),
        CommandFinding::LeftProcesses { .. }
        | CommandFinding::FileChanged { .. }
        | CommandFinding::SameCommands { .. } => of_commands(found, language),
        CommandFinding::ShortRuns { .. }
        | CommandFinding::SplitByTicks
        | CommandFinding::StartCost { .. }
        | CommandFinding::NoControlGroup { .. }
        | CommandFinding::NoSystemCalls { .. } => of_measurement(found, language),
        CommandFinding::ServerNotReady { .. }
        | CommandFinding::ServersCollide { .. }
        | CommandFinding::ServerEnded { .. }
        | CommandFinding::LoadFailed { .. }
        | CommandFinding::ShortLoads { .. }
        | CommandFinding::LoadErrors { .. }
        | CommandFinding::BackgroundCpu { .. } => servers::finding(found, language),
        CommandFinding::BaselineDiffers { .. }
        | CommandFinding::OrderEffect { .. }
        | CommandFinding::WithinPlacebos { .. }
        | CommandFinding::CutShort { .. } => of_design(found, language),
    }
}

fn stream(stream: Stream, language: Language) -> &'static str {
    match stream {
        Stream::Stdout => language.choose(["standard output", "표준 출력", "标准输出"]),
        Stream::Stderr => language.choose(["standard error", "표준 오류", "标准错误"]),
    }
}

fn of_output(found: &CommandFinding, language: Language) -> String {
    match found {
        CommandFinding::OutputDiffers { command, baseline, stream: at, bytes: (own, other), runs, first } => {
            let (command, baseline, at) = (name(command), name(baseline), stream(*at, language));
            let (own, other) = (format::count(*own), format::count(*other));
            let (differing, runs) = runs;
            let first = first.as_deref().map_or_else(String::new, |it| parting(it, language));
            localized!(
                language,
                "different output: in {differing} of {runs} runs {command} wrote other bytes to {at} than {baseline} ({own} \
                 against {other} bytes){first}; --output null compares without output",
                "출력이 다름: 실행 {runs}번 중 {differing}번, {command} 명령의 {at} 내용이 {baseline} 명령과 달랐습니다({own} 대 \
                {other}바이트){first}. 출력 없이 비교하려면 --output null",
                "输出不同：{runs} 次运行中有 {differing} 次，{command} 写入{at}的内容与 {baseline} 不同（{own} 对 {other} \
                字节）{first}；不计输出进行比较请用 --output null",
            )
        }
        CommandFinding::OutputVaries { command, stream: at } => {
            let (command, at) = (name(command), stream(*at, language));
            localized!(
                language,
                "{command} writes something else to {at} in each run, so it is not compared",
                "{command} 명령은 {at} 내용이 실행마다 달라 비교하지 않았습니다",
                "{command} 每次写入{at}的内容都不同，因此不作比较",
            )
        }
        CommandFinding::StatusDiffers { command, baseline, ends: (own, other) } => {
            let (command, baseline) = (name(command), name(baseline));
            let (own, other) = (ended(*own, language), ended(*other, language));
            localized!(
                language,
                "different end: {command} ended with {own}, as {baseline} never did ({other})",
                "종료 방식이 다름: {command} 명령은 {own}(으)로 끝났지만, {baseline} 명령은 그런 적이 없습니다({other})",
                "结束方式不同：{command} 以{own}结束，{baseline} 从未如此（{other}）",
            )
        }
        _ => String::new(),
    }
}

/// Where two outputs differ, and the text there in each. Bytes are counted from 1, as cmp(1) does.
fn parting(first: &FirstDifference, language: Language) -> String {
    let (byte, line) = (format::count(first.offset_bytes.saturating_add(1)), format::count(first.line));
    let shown = |excerpt: &String| match excerpt.is_empty() {
        true => language.choose(["its end", "끝", "结尾"]).to_owned(),
        false => format!("\"{}\"", truncate(&printable(excerpt), EXCERPT_COLUMNS_MAX)),
    };
    let (own, other) = (shown(&first.excerpts.0), shown(&first.excerpts.1));
    localized!(
        language,
        ", first at byte {byte}, line {line}: {own} against {other}",
        ", 처음 다른 곳은 {byte}번째 바이트, {line}행: {own} 대 {other}",
        "，首个不同之处在第 {byte} 字节、第 {line} 行：{own} 对 {other}",
    )
}

/// How it failed.
pub(super) fn ended(end: FailedEnd, language: Language) -> String {
    match end {
        FailedEnd::Status(status) => {
            localized!(language, "exit status {status}", "종료 코드 {status}", "退出码 {status}")
        }
        FailedEnd::Signal(signal) => {
            localized!(language, "signal {signal}", "시그널 {signal}", "信号 {signal}")
        }
        FailedEnd::OutOfMemory => language
            .choose([
                "killed by the kernel because memory was short",
                "메모리 부족으로 커널이 강제 종료함",
                "因内存不足被内核终止",
            ])
            .to_owned(),
        FailedEnd::NoCount => {
            language.choose(["it said no count", "처리 횟수를 출력하지 않음", "没有输出次数"]).to_owned()
        }
        FailedEnd::Overran { limit_ns } => {
            let limit = language.duration(limit_ns);
            localized!(
                language,
                "no end within {limit}, so it was killed with all it started; --limit allows longer",
                "{limit} 안에 끝나지 않아, 시작한 프로세스까지 모두 종료했습니다. 시간을 늘리려면 --limit를 쓰십시오",
                "{limit} 内未结束，已连同其启动的全部进程终止；可用 --limit 延长",
            )
        }
    }
}

/// The command's own last words, after the sentence about it.
pub(super) fn quoted(said: &str, language: Language) -> String {
    let said = truncate(&printable(said.trim()), SAID_COLUMNS_MAX);
    if said.is_empty() { String::new() } else { format!("{}{said}", language.colon()) }
}

/// The flag that lets a failing command be compared, where that is possible.
fn way_out(end: FailedEnd, language: Language) -> &'static str {
    match end {
        FailedEnd::Status(_) | FailedEnd::Signal(_) => language.choose([
            "; its input is empty unless --input names a file; --ignore-failure compares it all the same",
            ". --input으로 파일을 지정하지 않으면 입력은 비어 있습니다. 실패해도 비교하려면 --ignore-failure를 쓰십시오",
            "；未用 --input 指定文件时输入为空；若仍要比较请用 --ignore-failure",
        ]),
        FailedEnd::OutOfMemory | FailedEnd::Overran { .. } | FailedEnd::NoCount => "",
    }
}

fn of_failure(found: &CommandFinding, language: Language) -> String {
    match found {
        CommandFinding::NotStarted { command, reason } => {
            let (command, reason) = (name(command), printable(reason));
            localized!(
                language,
                "{command} was left out: {reason}",
                "{command} 명령을 제외했습니다: {reason}",
                "已排除 {command}：{reason}",
            )
        }
        CommandFinding::Failed { command, end, said } => {
            let (command, how, said) = (name(command), ended(*end, language), quoted(said, language));
            let way_out = way_out(*end, language);
            localized!(
                language,
                "{command} failed ({how}){way_out}{said}",
                "{command} 명령 실패({how}){way_out}{said}",
                "{command} 失败（{how}）{way_out}{said}",
            )
        }
        CommandFinding::FailedSometimes { command, end, failed, runs, said } => {
            let (command, how, said) = (name(command), ended(*end, language), quoted(said, language));
            localized!(
                language,
                "{command} failed in {failed} of {runs} runs ({how}), which are not compared; if runs leave a lock or a \
                 port behind, --prepare clears it{said}",
                "{command} 명령이 실행 {runs}번 중 {failed}번 실패했습니다({how}). 실패한 실행은 비교하지 않습니다. 앞선 실행이 잠금이나 포트를 남긴다면 \
                --prepare로 정리하십시오{said}",
                "{command} 在 {runs} 次运行中失败 {failed} 次（{how}），失败的运行不参与比较；若前一次运行遗留锁或端口，请用 --prepare 清理{said}",
            )
        }
        CommandFinding::CutSometimes { command, end, cut, runs } => {
            let (command, how) = (name(command), ended(*end, language));
            localized!(
                language,
                "{command} is not compared: {cut} of its {runs} measured runs did not end by themselves ({how}), and the \
                 runs that cost most are the ones that do not",
                "{command} 명령은 비교하지 않습니다. 측정한 실행 {runs}번 중 {cut}번이 스스로 끝나지 않았고({how}), 스스로 끝나지 않는 것은 비용이 가장 큰 실행입니다",
                "不比较 {command}：{runs} 次测量运行中有 {cut} 次未自行结束（{how}），而未自行结束的正是开销最大的运行",
            )
        }
        _ => String::new(),
    }
}

/// Failures of the commands that run around the compared ones.
fn of_around(found: &CommandFinding, language: Language) -> String {
    match found {
        CommandFinding::AroundFailed { flag, end, said } => {
            let (how, said) = (ended(*end, language), quoted(said, language));
            localized!(
                language,
                "{flag} failed ({how}), so nothing further ran; without --shell it is one program with its words{said}",
                "{flag} 실패({how}). 더 실행하지 않았습니다. --shell이 없으면 프로그램 하나를 인자와 함께 실행합니다{said}",
                "{flag} 失败（{how}），之后没有继续运行；不加 --shell 时，只运行一个程序及其参数{said}",
            )
        }
        CommandFinding::AroundNotStarted { flag, reason } => {
            let reason = printable(reason);
            localized!(
                language,
                "{flag}: {reason}; it is one program with its words, and --shell sh runs it by a shell",
                "{flag}: {reason}. 프로그램 하나를 인자와 함께 실행합니다. 셸로 실행하려면 --shell sh를 쓰십시오",
                "{flag}：{reason}；只运行一个程序及其参数，用 shell 运行请加 --shell sh",
            )
        }
        CommandFinding::Broken { reason } => {
            let reason = printable(reason);
            localized!(
                language,
                "the runs could not go on: {reason}",
                "실행을 계속할 수 없습니다: {reason}",
                "无法继续运行：{reason}",
            )
        }
        _ => String::new(),
    }
}

fn of_commands(found: &CommandFinding, language: Language) -> String {
    match found {
        CommandFinding::LeftProcesses { command, names, processes_max, runs, is_counted } => {
            let command = name(command);
            let names = printable(&names.join(language.list()));
            let counted = language.choose(match is_counted {
                true => [
                    "their CPU time up to then is in its figures",
                    "그때까지의 CPU 시간은 수치에 들어 있습니다",
                    "截至当时的 CPU 时间已计入数值",
                ],
                false => [
                    "their CPU time may be missing in its figures",
                    "이들의 CPU 시간은 수치에서 빠졌을 수 있습니다",
                    "它们的 CPU 时间可能未计入数值",
                ],
            });
            localized!(
                language,
                "{command} left up to {processes_max} processes behind in {runs} runs ({names}); they were ended, and \
                 {counted}",
                "{command} 명령이 실행 {runs}번에서 끝나지 않은 프로세스를 최대 {processes_max}개 남겼습니다({names}). 모두 종료했고, {counted}",
                "{command} 在 {runs} 次运行中最多遗留 {processes_max} 个进程（{names}）；已将其终止，{counted}",
            )
        }
        CommandFinding::FileChanged { command, path } => {
            let (command, path) = (name(command), printable(path));
            localized!(
                language,
                "{path} changed while {command} was compared; compare again when it stays as it is",
                "{command} 명령을 비교하는 동안 {path} 파일이 바뀌었습니다. 파일이 더 바뀌지 않을 때 다시 비교하십시오",
                "比较 {command} 期间 {path} 发生了变化；请在其不再变化时重新比较",
            )
        }
        CommandFinding::SameCommands { command, baseline } => {
            let (command, baseline) = (name(command), name(baseline));
            localized!(
                language,
                "{command} is the same command as {baseline}: only noise is to be expected",
                "{command} 명령은 {baseline} 명령과 같습니다. 노이즈만 나타납니다",
                "{command} 与 {baseline} 是同一命令：只会看到噪声",
            )
        }
        _ => String::new(),
    }
}

fn of_measurement(found: &CommandFinding, language: Language) -> String {
    match found {
        CommandFinding::ShortRuns { command, cpu_ns, resolution_ns } => {
            let command = name(command);
            let (cpu, step) = (format::nanos(*cpu_ns as f64), format::nanos_tick(*resolution_ns as f64));
            localized!(
                language,
                "a run of {command} is short: {cpu} of CPU time, counted in steps of {step}; starting the program is much \
                 of it, so give it more work",
                "{command} 명령의 실행이 짧습니다: CPU 시간 {cpu}, 단위 {step}. 대부분이 프로그램을 시작하는 시간이므로 작업량을 늘리십시오",
                "{command} 的运行很短：CPU 时间 {cpu}，步长 {step}；其中大部分是程序启动，请增加其工作量",
            )
        }
        CommandFinding::StartCost { charged_cpu_ns, share } => {
            let (cpu, share) = (format::nanos(*charged_cpu_ns as f64), format::percent(*share));
            localized!(
                language,
                "at most {cpu} of weir's own CPU time is in each run, {share} of the baseline, the same for every command",
                "실행마다 weir 자체의 CPU 시간이 최대 {cpu} 들어 있습니다(기준의 {share}). 모든 명령에 똑같습니다",
                "每次运行至多含 weir 自身的 CPU 时间 {cpu}，为基线的 {share}，各命令相同",
            )
        }
        CommandFinding::SplitByTicks => language
            .choose([
                "user and system time are split by timer ticks of some milliseconds: too coarse for runs this short; \
                 their sum is exact",
                "사용자 시간과 시스템 시간은 수 밀리초 단위의 타이머 틱으로 나뉘므로, 이렇게 짧은 실행에는 부정확합니다. 둘의 합은 정확합니다",
                "用户态与内核态时间按数毫秒的时钟节拍划分，对这样短的运行太粗；二者之和是准确的",
            ])
            .to_owned(),
        CommandFinding::NoControlGroup { reason } => {
            let reason = printable(reason);
            localized!(
                language,
                "no control group could be made ({reason}), so processes that are not waited for are not counted; \
                 systemd-run --user --scope gives one",
                "cgroup을 만들 수 없어({reason}) 부모가 기다리지 않는 프로세스는 세지 못합니다. systemd-run --user --scope로 실행하면 cgroup이 생깁니다",
                "无法建立 cgroup（{reason}），父进程不等待的进程未被计入；用 systemd-run --user --scope 运行可获得 cgroup",
            )
        }
        CommandFinding::NoSystemCalls { reason } => {
            let texts = match reason {
                NoCalls::NotInstalled => [
                    "system calls were not counted: the kernel takes no programs from this user, and there is no strace \
                     here",
                    "시스템 콜을 세지 않았습니다: 커널이 이 사용자의 프로그램을 허용하지 않고, strace도 없습니다",
                    "未统计系统调用：内核不允许此用户加载程序，也没有 strace",
                ],
                NoCalls::Refused => [
                    "system calls were not counted: a run for it did not end by itself, or strace could not trace it",
                    "시스템 콜을 세지 않았습니다: 이를 위한 실행이 스스로 끝나지 않았거나, strace가 추적하지 못했습니다",
                    "未统计系统调用：为此进行的运行未自行结束，或 strace 无法跟踪它",
                ],
                NoCalls::LeavesProcesses => [
                    "system calls were not counted: a command leaves processes behind, for which strace would wait",
                    "시스템 콜을 세지 않았습니다: 명령이 끝나지 않은 프로세스를 남기며, strace는 그 프로세스가 끝날 때까지 기다립니다",
                    "未统计系统调用：有命令遗留进程，而 strace 会一直等到它们结束",
                ],
                NoCalls::NotReached => [
                    "system calls were not counted: the comparison ended before",
                    "시스템 콜을 세지 않았습니다: 그 전에 비교가 끝났습니다",
                    "未统计系统调用：比较在此之前已结束",
                ],
            };
            language.choose(texts).to_owned()
        }
        _ => String::new(),
    }
}

fn of_design(found: &CommandFinding, language: Language) -> String {
    match found {
        CommandFinding::BaselineDiffers { ratio, interval } => {
            let (amount, range) = (change::amount(language, *ratio), change::range(language, *interval));
            localized!(
                language,
                "the baseline differs from itself: its second run uses {amount} CPU time (99 % interval {range}); repeat \
                 the comparison",
                "기준이 자기 자신과 다릅니다: 두 번째 실행이 CPU 시간을 {amount} 씁니다(99 % 신뢰구간 {range}). 다시 비교하십시오",
                "基线与自身不同：第二次运行的 CPU 时间{amount}（99 % 置信区间：{range}）；请重新比较",
            )
        }
        CommandFinding::OrderEffect { change, interval: (low, high), change_max } => {
            let amount = change::amount(language, 1.0 + change);
            let range = change::range(language, (1.0 + low, 1.0 + high));
            let most = format::percent(*change_max);
            localized!(
                language,
                "a run that goes first uses {amount} CPU time (99 % interval {range}; harmless up to {most}); --prepare, \
                 with servers --between, can bring every run to the same state",
                "먼저 실행하면 CPU 시간을 {amount} 씁니다(99 % 신뢰구간 {range}, {most}까지는 무해함). --prepare(서버는 --between)로 모든 실행을 같은 \
                상태에서 시작할 수 있습니다",
                "先运行者的 CPU 时间{amount}（99 % 置信区间：{range}；{most} 以内无影响）；--prepare（服务器用 --between）可使每次运行从同一状态开始",
            )
        }
        CommandFinding::WithinPlacebos { command, floor } => {
            let (command, floor) = (name(command), format::percent(*floor));
            localized!(
                language,
                "{command} differs by no more than a placebo does ({floor}), so there is no verdict: layout alone does as \
                 much",
                "{command} 명령의 차이가 플라세보의 차이({floor})를 넘지 않아 판정하지 않습니다. 코드 배치만 바뀌어도 이만큼 차이가 납니다",
                "{command} 的差异未超过安慰剂（{floor}），因此不作判定：仅代码布局变化就有这样大的影响",
            )
        }
        CommandFinding::CutShort { pairs: 0, .. } => {
            let texts = [
                "unfinished: it was interrupted in the first runs or the pilot, before any pair, so there is no verdict",
                "미완료: 첫 실행이나 예비 실행 중에 중단되어 실행한 쌍이 없으므로 판정하지 않습니다",
                "未完成：在首次运行或试运行中被中断，尚未运行任何一对，因此不作判定",
            ];
            language.choose(texts).to_owned()
        }
        CommandFinding::CutShort { pairs_done, pairs, is_interrupted } => {
            let why = language.choose(match is_interrupted {
                true => ["it was interrupted", "중단됨", "被中断"],
                false => ["it did not get there in time", "시간 안에 끝나지 않음", "未能按时完成"],
            });
            localized!(
                language,
                "unfinished: {pairs_done} of {pairs} pairs ran ({why}), so there is no verdict",
                "미완료: {pairs}쌍 중 {pairs_done}쌍만 실행했으므로({why}) 판정하지 않습니다",
                "未完成：{pairs} 对中运行了 {pairs_done} 对（{why}），因此不作判定",
            )
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interruption_before_the_pairs_counts_none() {
        let cut = CommandFinding::CutShort { pairs_done: 0, pairs: 0, is_interrupted: true };
        for language in [Language::English, Language::Korean, Language::Chinese] {
            let said = finding(&cut, language);
            assert!(!said.contains('0'), "{said}");
        }
        assert!(finding(&cut, Language::English).contains("interrupted in the first runs or the pilot"));
    }
}
