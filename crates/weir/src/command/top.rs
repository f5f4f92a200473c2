//! `weir top`: watch running processes.

use std::{
    io::{self, IsTerminal},
    time::Duration,
};

use anyhow::Result;
use weir_monitor::{
    live::{self, Form, Pace},
    snapshot::Monitor,
    target::{TARGETS_MAX, Target},
};
use weir_report::localized;

use crate::{
    args::Top,
    engine,
    exit::{Exit, UsageError},
    language, signals,
};

/// Shortest time between two looks: below it the watching would be part of what is watched.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

pub(crate) fn run(arguments: &Top) -> Result<Exit> {
    let interval = engine::time("--interval", &arguments.interval)?;
    if interval < INTERVAL_MIN {
        let text = language::of_command_line().choose([
            "--interval: write 100ms or more",
            "--interval: 100ms 이상을 쓰십시오",
            "--interval：请写 100ms 或更长",
        ]);
        return Err(UsageError(text.into()).into());
    }
    let language = language::chosen(arguments.lang.as_deref())?;
    let mut monitor = Monitor::new(targets(arguments)?);
    let stop = signals::stop_flag()?;
    let is_plain = arguments.once || arguments.json || arguments.threads || arguments.plain;
    if !is_plain && io::stdout().is_terminal() && io::stdin().is_terminal() {
        live::show(&mut monitor, interval, language, &stop)?;
        return Ok(Exit::Ok);
    }
    let form =
        if arguments.json { Form::Json } else { Form::Lines { everything: arguments.threads, language } };
    let pace = Pace { interval, once: arguments.once };
    match live::write(&mut monitor, &mut io::stdout().lock(), form, pace, &stop) {
        // A reader that has gone away is no error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Ok),
        Err(error) => Err(anyhow::Error::new(error).context("cannot write to standard output")),
        Ok(()) => Ok(Exit::Ok),
    }
}

fn targets(arguments: &Top) -> Result<Vec<Target>> {
    let mut found = Vec::new();
    for socket in &arguments.socket {
        check_socket("--socket", socket)?;
        found.push(Target::of_socket(socket));
    }
    for pid in &arguments.pid {
        let missing = |_| {
            UsageError(localized!(
                language::of_command_line(),
                "--pid: there is no process {pid}",
                "--pid: {pid}번 프로세스가 없습니다",
                "--pid：没有进程 {pid}",
            ))
        };
        found.push(Target::of_pid(*pid).map_err(missing)?);
    }
    if arguments.socket.is_empty() && arguments.pid.is_empty() {
        found = Target::running();
        if found.is_empty() {
            let text = language::of_command_line().choose([
                "no `weir serve` of this user runs here; name a process with --pid, or a socket with --socket",
                "이 사용자의 `weir serve`가 실행되고 있지 않습니다. --pid로 프로세스를, 또는 --socket으로 소켓을 지정하십시오",
                "没有本用户的 `weir serve` 在运行；请用 --pid 指定进程，或用 --socket 指定套接字",
            ]);
            return Err(UsageError(text.into()).into());
        }
    }
    check_count(found.len())?;
    Ok(found)
}

/// Statistics sockets have abstract names.
pub(super) fn check_socket(flag: &str, name: &str) -> Result<(), UsageError> {
    if name.starts_with('@') && name.len() > 1 {
        return Ok(());
    }
    Err(UsageError(localized!(
        language::of_command_line(),
        "{flag} {name}: write the abstract name, @NAME",
        "{flag} {name}: @NAME 형식의 추상 이름을 쓰십시오",
        "{flag} {name}：请写抽象名称 @NAME",
    )))
}

/// At most as many as the monitor can ask in time.
pub(super) fn check_count(targets: usize) -> Result<(), UsageError> {
    if targets <= TARGETS_MAX {
        return Ok(());
    }
    Err(UsageError(localized!(
        language::of_command_line(),
        "{targets} targets; at most {TARGETS_MAX} can be watched",
        "대상 {targets}개: 최대 {TARGETS_MAX}개까지 볼 수 있습니다",
        "{targets} 个目标：最多可查看 {TARGETS_MAX} 个",
    )))
}
