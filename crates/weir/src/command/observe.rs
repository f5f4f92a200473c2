//! `weir observe`: any process over a period, from /proc alone or with programs in the kernel.

mod intervals;
mod selection;

use std::{
    env,
    io::{self, IsTerminal},
    os::{fd::AsFd, unix::process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow};
use rustix::{
    fs::{Access, access},
    process::{Pid, Signal, kill_process},
};
use weir_evidence::{
    ladder::{DESCRIPTORS_ARE_KNOWN, Group, strace::Strace},
    recorded,
    selection::Selection,
    watch::{Plan, Step, Watch, WatchError},
};
use weir_judge::batching_bound::{advice, bound};
use weir_lab::supervise;
use weir_monitor::live::Page;
use weir_record::observation::{Ending, Note, Observation, ProbeCost, Rung, StraceTable, SwitchCounter};
use weir_report::{Language, localized};
use weir_sys::{child, process_stat::NAME_BYTES_MAX, usage::children_usage};

use super::report::{tell_page, unmade};
use crate::{
    args::Observe,
    engine,
    exit::{Exit, UsageError},
    language, output, signals,
};

/// Default length of an observation.
const LENGTH: Duration = Duration::from_secs(10);
/// How long a command may take to end after the request.
const COMMAND_END_MAX: Duration = Duration::from_secs(2);
/// Time between two checks whether strace has ended: the error of its window.
const STRACE_LOOK_PAUSE: Duration = Duration::from_millis(20);

/// The method of the observation.
#[derive(Clone, Copy)]
struct Asked<'a> {
    plan: Plan<'a>,
    /// Absent if the length is not known in advance.
    length: Option<Duration>,
    interval: Option<Duration>,
    language: Language,
}

pub(crate) fn run(arguments: &Observe) -> Result<Exit> {
    let language = language::chosen(arguments.lang.as_deref())?;
    let length = arguments.duration.as_deref().map(|text| engine::time("--duration", text)).transpose()?;
    if length.is_some_and(|length| length.is_zero()) {
        let text = language.choose([
            "--duration: write more than 0, such as 10s",
            "--duration: 10s처럼 0보다 큰 시간을 쓰십시오",
            "--duration：请写大于 0 的时间，例如 10s",
        ]);
        return Err(UsageError(text.into()).into());
    }
    let interval = intervals::asked(arguments, length)?;
    let stop = signals::stop_flag()?;
    // An output that cannot be written must not cost the observation.
    for (path, flag) in [(&arguments.record, "--record"), (&arguments.html, "--html")] {
        if let Some(path) = path {
            output::can_be_written(path, flag)?;
        }
    }
    if arguments.descriptors && !DESCRIPTORS_ARE_KNOWN {
        let text = language.choose([
            "--descriptors: it needs x86-64; leave it out",
            "--descriptors: x86-64에서만 쓸 수 있습니다. 빼고 실행하십시오",
            "--descriptors：仅适用于 x86-64；请去掉",
        ]);
        return Err(UsageError(text.into()).into());
    }
    let groups: Vec<Group> = Group::ALL
        .into_iter()
        .chain(arguments.descriptors.then_some(Group::Descriptors))
        .filter(|group| !arguments.without.iter().any(|left_out| left_out.group() == *group))
        .collect();
    let rung = if arguments.trace { Rung::Programs } else { Rung::Process };
    let asked = Asked { plan: Plan { rung, groups: &groups }, length, interval, language };
    let (observation, exit) = match arguments.wanted() {
        Some((flag, wanted)) => {
            let selected = selection::find(flag, &wanted)?;
            selection::refuse_several(arguments, &selected)?;
            (of_processes(arguments, &selected, asked, &stop)?, Exit::Ok)
        }
        None => of_command(arguments, asked, &stop)?,
    };
    let is_stopped = observation.ending == Ending::Interrupted;
    // The outcome of a command comes before the error that it could not be traced.
    let lacks_trace = arguments.trace && observation.trace.is_none();
    let exit =
        if lacks_trace && matches!(exit, Exit::Ok | Exit::Supervised(0)) { Exit::Environment } else { exit };
    show(arguments, &judged(observation), language)?;
    Ok(if is_stopped || stop.load(Ordering::Relaxed) { Exit::Interrupted } else { exit })
}

/// The warning before a trace: its cost for processes that make system calls.
fn tell_cost(cost: &ProbeCost, language: Language) {
    let [without, with] = [cost.untraced_ns, cost.traced_ns].map(|ns| format!("{ns:.0}"));
    output::tell(&localized!(
        language,
        "tracing: until this ends every system call of the machine is slower: one that does nothing takes {with} ns in place \
         of {without} ns, and one that sleeps, wakes a thread or sends loses more; a process that only computes loses nothing",
        "추적 중: 끝날 때까지 머신의 모든 시스템 콜이 느려집니다. 아무 일도 하지 않는 호출이 {without} ns 대신 {with} ns 걸립니다. 잠들거나, 스레드를 깨우거나, 전송하는 호출은 \
        더 느려집니다. 계산만 하는 프로세스는 느려지지 않습니다",
        "正在跟踪：结束之前，本机的每次系统调用都会变慢。什么都不做的调用耗时 {with} ns，而不是 {without} ns；会睡眠、唤醒线程或发送的调用更慢；只做计算的进程不受影响",
    ));
}

/// The report says why nothing is traced.
fn tell_refusal(plan: Plan<'_>, watch: &Watch, language: Language) {
    if plan.rung == Rung::Programs && !watch.is_traced() {
        output::tell(language.choose([
            "--trace is refused here: only /proc is observed, and the exit code is 13",
            "이 머신에서는 --trace를 쓸 수 없습니다. /proc의 내용만 관찰하며 종료 코드는 13입니다",
            "本机不能使用 --trace：只观测 /proc 的内容，退出码为 13",
        ]));
    }
}

/// With the cost of each system call, and the conclusions.
fn judged(observation: Observation) -> Observation {
    let (bound, advice) = (bound(&observation), advice(&observation));
    let beside = observation.beside.map(|beside| Box::new(judged(*beside)));
    Observation { bound, advice, beside, ..observation }
}

fn of_processes(
    arguments: &Observe,
    selected: &Selection,
    Asked { plan, length, interval, language }: Asked<'_>,
    stop: &AtomicBool,
) -> Result<Observation> {
    let length = length.unwrap_or(LENGTH);
    let tell = |cost: &ProbeCost| tell_cost(cost, language);
    let watch = Watch::begin_told(selected, arguments.compare, plan, &tell);
    let mut watch = watch.map_err(|error| usage(arguments, error))?;
    interval.into_iter().for_each(|interval| watch.keep_intervals(interval));
    tell_refusal(plan, &watch, language);
    let is_shown =
        !arguments.plain && !arguments.json && io::stdout().is_terminal() && io::stdin().is_terminal();
    let ending = if is_shown {
        watch_live(&mut watch, length, language, stop)?
    } else {
        watch.run(Some(length), stop)
    };
    let mut observation = watch.end(ending);
    if arguments.strace && ending == Ending::Time {
        match under_strace(observation.pid, length, language, stop) {
            Ok(table) => observation.strace = Some(table),
            Err(error) => observation.notes.push(Note::NoStrace { error: error.to_string() }),
        }
    }
    Ok(observation)
}

/// The process under strace, for the same time, or until it ends.
fn under_strace(
    pid: u32,
    length: Duration,
    language: Language,
    stop: &AtomicBool,
) -> io::Result<StraceTable> {
    output::tell(language.choose([
        "strace: the process is stopped twice in each system call until this ends",
        "strace: 끝날 때까지 프로세스가 시스템 콜마다 두 번씩 멈춥니다",
        "strace：结束之前，进程在每次系统调用中都会暂停两次",
    ]));
    let mut strace = Strace::attach(pid, &supervise::words(&env::current_exe()?))?;
    let begun = Instant::now();
    while begun.elapsed() < length && !stop.load(Ordering::Relaxed) && !strace.has_ended()? {
        thread::park_timeout(length.saturating_sub(begun.elapsed()).min(STRACE_LOOK_PAUSE));
    }
    let window_ns = begun.elapsed().as_nanos() as u64;
    Ok(StraceTable { window_ns, rows: strace.finish()? })
}

fn usage(arguments: &Observe, error: WatchError) -> anyhow::Error {
    let language = language::of_command_line();
    let text = match error {
        WatchError::NoSuchProcess(pid) => {
            let is_of_other = !arguments.pid.contains(&pid) && arguments.compare == Some(pid);
            let flag = if is_of_other { "--compare" } else { "--pid" };
            localized!(
                language,
                "{flag}: no process {pid}",
                "{flag}: {pid}번 프로세스가 없습니다",
                "{flag}：没有进程 {pid}",
            )
        }
        WatchError::SameProcess(pid) => localized!(
            language,
            "--compare: {pid} is the same process; name another one",
            "--compare: {pid}번은 같은 프로세스입니다. 다른 프로세스를 지정하십시오",
            "--compare：{pid} 是同一个进程；请指定另一个",
        ),
        WatchError::Relatives { child, parent } => localized!(
            language,
            "--compare: process {child} is a child of {parent}, and children are observed with their parent; name one \
             of both",
            "--compare: {child}번은 {parent}번의 자식입니다. 자식은 부모와 함께 관찰하므로 둘 중 하나만 지정하십시오",
            "--compare：进程 {child} 是 {parent} 的子进程，子进程随父进程一起观测；请只指定其中一个",
        ),
        WatchError::ForeignProc => language
            .choose([
                "/proc shows another PID namespace than this process lives in; mount it anew (unshare --mount-proc), or run \
                 this outside of the namespace",
                "/proc가 다른 PID 네임스페이스의 것입니다. 새로 마운트하거나(unshare --mount-proc) 네임스페이스 밖에서 실행하십시오",
                "/proc 属于另一个 PID 命名空间；请重新挂载（unshare --mount-proc），或在该命名空间之外运行",
            ])
            .to_owned(),
        other => return other.into(),
    };
    UsageError(text).into()
}

/// Watches, with the last second on the terminal; the user's key to leave ends the observation.
fn watch_live(watch: &mut Watch, length: Duration, language: Language, stop: &AtomicBool) -> Result<Ending> {
    let cannot = "cannot draw on the terminal; --plain does without";
    let mut page = Page::open().context(cannot)?;
    let mut seen = watch.glimpse();
    loop {
        let lines = |width, height| weir_report::observation::live(&seen, language, width, height);
        page.draw(lines).context(cannot)?;
        loop {
            if stop.load(Ordering::Relaxed) || page.is_left().context(cannot)? {
                return Ok(Ending::Interrupted);
            }
            match watch.step(Some(length)) {
                Step::Over(ending) => return Ok(ending),
                Step::Read => break,
                Step::Waited => {}
            }
        }
        seen = watch.glimpse();
    }
}

/// Starts the command, observes it from before its first call, and waits for its end.
fn of_command(
    arguments: &Observe,
    Asked { plan, length, interval, language }: Asked<'_>,
    stop: &AtomicBool,
) -> Result<(Observation, Exit)> {
    let [program, words @ ..] = &arguments.command[..] else {
        let text = language::of_command_line().choose([
            "name a process with --pid, or a command after --",
            "--pid로 프로세스를 지정하거나 -- 뒤에 명령을 쓰십시오",
            "请用 --pid 指定进程，或在 -- 之后写命令",
        ]);
        return Err(UsageError(text.into()).into());
    };
    let cannot_start = |error: io::Error| {
        UsageError(localized!(
            language::of_command_line(),
            "cannot start {program}: {error}",
            "{program} 프로그램을 시작할 수 없습니다: {error}",
            "无法启动 {program}：{error}",
        ))
    };
    // The path is resolved here: a child that searches each folder of PATH would show failed calls in most of them. A
    // command that cannot be started is reported before anything is traced.
    let path = found_in_path(program);
    access(path.as_path(), Access::EXEC_OK).map_err(|error| cannot_start(error.into()))?;
    let mut command = Command::new(path);
    command.arg0(program).args(words);
    if arguments.json {
        // Standard output has only the record.
        command.stdout(Stdio::from(io::stderr().as_fd().try_clone_to_owned()?));
    }
    let mut gate = child::hold(&mut command)?;
    // Starting returns when the program begins, so the watch begins on another thread, while the child is held.
    let (started, watch) = thread::scope(|scope| {
        let watch = scope.spawn(|| -> Result<Watch> {
            let pid = gate.wait_for_child().context("the command could not be started")?;
            let selected = Selection::pid(pid);
            let mut watch = Watch::begin_told(&selected, None, plan, &|cost| tell_cost(cost, language))?;
            interval.into_iter().for_each(|interval| watch.keep_intervals(interval));
            tell_refusal(plan, &watch, language);
            gate.open()?;
            Ok(watch)
        });
        let started = command.spawn();
        // The program must not wait for the pipes of a child that never started.
        drop(command);
        (started, watch.join().unwrap_or_else(|_| Err(anyhow!("the watch failed"))))
    });
    let mut child = started.map_err(cannot_start)?;
    let mut watch = watch?;
    let ending = watch.run(length, stop);
    // Before the command is reaped, so that its last figures exist.
    let mut observation = watch.end(ending);
    let notes = observation.notes.into_iter();
    observation.notes = notes.filter_map(|note| since_it_is_the_program(note, program)).collect();
    // Before it became the program it had no own command line.
    observation.command = arguments.command.join(" ");
    let status = if ending == Ending::TargetEnded { child.wait()? } else { end(&mut child)? };
    if ending == Ending::TargetEnded {
        add_switches_of_children(&mut observation);
    }
    let exit = match ending {
        Ending::TargetEnded => Exit::Supervised(code(status)),
        Ending::Time | Ending::Interrupted | Ending::OtherEnded => Exit::Ok,
    };
    Ok((observation, exit))
}

/// The path of a program as a shell finds it; without a match the name itself, so that the start reports the error.
fn found_in_path(program: &str) -> PathBuf {
    if program.contains('/') {
        return program.into();
    }
    let is_program = |path: &PathBuf| path.is_file() && access(path.as_path(), Access::EXEC_OK).is_ok();
    let path = env::var_os("PATH").unwrap_or_default();
    let mut candidates = env::split_paths(&path).map(|folder| folder.join(program));
    candidates.find(is_program).unwrap_or_else(|| program.into())
}

/// For a command that was reaped, with all that it reaped, the kernel knows every switch.
fn add_switches_of_children(observation: &mut Observation) {
    let Ok(used) = children_usage() else { return };
    let (voluntary, involuntary) = (used.context_switches_voluntary, used.context_switches_involuntary);
    if observation.totals.take_switches(voluntary, involuntary) {
        let is_other = |note: &Note| !matches!(note, Note::SwitchesOfEnded { .. });
        observation.notes.retain(is_other);
        observation.notes.push(Note::SwitchesOfEnded { by: SwitchCounter::Rusage });
    }
}

/// Drops the note that the held child became this program. A later change to another program stays in the report.
fn since_it_is_the_program(note: Note, program: &str) -> Option<Note> {
    match note {
        Note::BecameAnother { to, .. } => {
            let from = name_of(program);
            (to != from).then_some(Note::BecameAnother { from, to })
        }
        other => Some(other),
    }
}

/// The kernel's name of a process that runs this program: the last part of its path, cut to the kernel's length.
fn name_of(program: &str) -> String {
    let name = program.rsplit('/').next().unwrap_or(program).as_bytes();
    String::from_utf8_lossy(&name[..name.len().min(NAME_BYTES_MAX)]).into_owned()
}

/// Asks a command to end, and kills it if it does not.
fn end(child: &mut Child) -> io::Result<ExitStatus> {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // Fails only if it has ended.
        let _ = kill_process(pid, Signal::TERM);
    }
    let begun = Instant::now();
    while begun.elapsed() < COMMAND_END_MAX {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        thread::park_timeout(Duration::from_millis(20));
    }
    child.kill()?;
    child.wait()
}

/// A shell's exit status for the end of a command.
fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let number = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(number).unwrap_or(1)
}

/// Prints first: a file that cannot be written must not cost the observation.
fn show(arguments: &Observe, observation: &Observation, language: Language) -> Result<()> {
    let record = serde_json::to_string_pretty(observation)?;
    let printed = if arguments.json { output::print(&record) } else { print(observation, language) };
    if let Some(path) = &arguments.record {
        output::write_whole_or(path, &(record + "\n"), "choose another file with --record")?;
        let path = path.display();
        output::tell(&localized!(language, "record: {path}", "기록: {path}", "记录：{path}"));
    }
    if let Some(path) = &arguments.html {
        let page = weir_report::observation::html(observation, language);
        output::write_whole_or(path, &page, "choose another file with --html")?;
        tell_page(path, language);
    }
    printed
}

fn print(observation: &Observation, language: Language) -> Result<()> {
    let (width, color) = (output::width_columns(), output::has_color());
    output::print(&weir_report::observation::terminal(observation, language, width, color))
}

/// Draws a record again: on the terminal, and as a page beside it or in `folder`.
pub(crate) fn report(
    path: &Path,
    language: Language,
    (folder, is_quiet): (Option<&Path>, bool),
) -> Result<Exit> {
    // Conclusions in older records do not come from their counts.
    let observation = judged(recorded::read(path)?);
    let page = match folder {
        Some(folder) => {
            std::fs::create_dir_all(folder).with_context(|| unmade(folder, language))?;
            folder.join("report.html")
        }
        None => path.with_extension("html"),
    };
    output::write_whole(&page, &weir_report::observation::html(&observation, language))?;
    if !is_quiet {
        print(&observation, language)?;
    }
    tell_page(&page, language);
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn became(from: &str, to: &str) -> Note {
        Note::BecameAnother { from: from.to_owned(), to: to.to_owned() }
    }

    #[test]
    fn that_a_child_became_the_command_is_no_news_and_that_the_command_became_another_program_is() {
        for (program, name) in [
            ("sh", "sh"),
            ("/usr/bin/redis-server", "redis-server"),
            ("./a-name-that-is-too-long", "a-name-that-is-"),
            ("/opt/서버프로그램", "서버프로그"),
        ] {
            assert_eq!(since_it_is_the_program(became("weir", name), program), None, "{program}");
        }
        let told = since_it_is_the_program(became("weir", "redis-server"), "/bin/sh");
        assert_eq!(told, Some(became("sh", "redis-server")), "the name of the held child is nobody's");
        let other = Note::ProcessesEnded { count: 1 };
        assert_eq!(since_it_is_the_program(other.clone(), "sh"), Some(other));
    }
}
