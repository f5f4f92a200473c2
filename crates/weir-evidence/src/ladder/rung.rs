//! Which rungs of the ladder can be reached, why not the others, and the one command that would unlock each.
//!
//! The decision is a function of facts; [`Facts::read`] gathers them by asking the kernel for what is needed, because
//! no file says whether it would give it.

use std::{io, path::Path};

use weir_record::observation::{Obstacle, Rung, RungState};
use weir_sys::bpf::{Map, Program};

use super::{programs, tables::Table};
use crate::{files, parse};

/// The first PID namespace of every kernel (`PROC_PID_INIT_INO`), whose numbers the kernel's programs see.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Gives this program what kernel programs need, and no more.
pub const GRANT_PROGRAMS: &str = "sudo setcap cap_bpf,cap_perfmon=ep \"$(command -v weir)\"";

/// What decides the rungs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The scheduler counts time for every thread (`schedstat` shows more than zeros).
    pub has_schedstat: bool,
    /// What the kernel said to a program that does nothing.
    pub trial: Trial,
    /// Process numbers here are those that the kernel's programs see.
    pub is_first_pid_namespace: bool,
    /// The mode of `lockdown(7)`, unless it is `none`.
    pub lockdown: Option<String>,
    /// `strace` can be started.
    pub has_strace: bool,
}

/// How a program that does nothing fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// It ran.
    Ran,
    /// The kernel would not take it (error number).
    NotTaken(i32),
    /// The kernel took it, and would not run it at system calls (error number).
    NotAttached(i32),
}

impl Facts {
    /// The facts of this process on this machine.
    pub fn read() -> Self {
        let own_times = files::read_text("/proc/thread-self/schedstat");
        let lockdown = files::read_text("/sys/kernel/security/lockdown").unwrap_or_default();
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self {
            has_schedstat: own_times
                .as_deref()
                .and_then(parse::schedstat)
                .is_some_and(|(cpu_ns, _)| cpu_ns > 0),
            trial: Trial::run(),
            is_first_pid_namespace: is_first_pid_namespace(),
            lockdown: lockdown_mode(&lockdown).map(str::to_owned),
            has_strace: std::env::split_paths(&path).any(|folder| folder.join("strace").is_file()),
        }
    }
}

/// Whether process numbers here are those that the kernel's programs see.
pub(super) fn is_first_pid_namespace() -> bool {
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|name| name == Path::new(FIRST_PID_NAMESPACE))
}

/// The mode, of `none [integrity] confidentiality`, unless it is none.
fn lockdown_mode(text: &str) -> Option<&str> {
    parse::chosen(text).filter(|mode| *mode != "none")
}

impl Trial {
    fn run() -> Self {
        let number = |error: &io::Error| error.raw_os_error().unwrap_or(0);
        let table = Table::Cpu;
        let taken = Map::new(table.name(), table.shape()).and_then(|_table| {
            Program::load("weir_trial", &programs::idle().linked(|_| 0)).map_err(|refused| refused.error)
        });
        match taken.map(|program| program.attach("sys_enter")) {
            Err(error) => Self::NotTaken(number(&error)),
            Ok(Err(error)) => Self::NotAttached(number(&error)),
            Ok(Ok(_)) => Self::Ran,
        }
    }
}

/// All rungs, lowest first, with what keeps each from being used.
pub fn ladder(facts: &Facts) -> Vec<RungState> {
    let schedstat = (!facts.has_schedstat).then_some(Obstacle::NoSchedstat);
    let programs = obstacle_of_programs(facts);
    let unlock = (programs == Some(Obstacle::NoPrivilege)).then(|| GRANT_PROGRAMS.to_owned());
    let strace = (!facts.has_strace).then_some(Obstacle::NotInstalled);
    vec![
        RungState { rung: Rung::Engine, obstacle: None, unlock: None },
        RungState { rung: Rung::Process, obstacle: schedstat, unlock: None },
        RungState { rung: Rung::Programs, obstacle: programs, unlock },
        RungState { rung: Rung::Strace, obstacle: strace, unlock: None },
    ]
}

fn obstacle_of_programs(facts: &Facts) -> Option<Obstacle> {
    let refused = |number: i32| Obstacle::Refused { error: io::Error::from_raw_os_error(number).to_string() };
    match facts.trial {
        Trial::Ran if !facts.is_first_pid_namespace => Some(Obstacle::PidNamespace),
        Trial::Ran => None,
        Trial::NotTaken(ENOSYS) => Some(Obstacle::NoBpf),
        Trial::NotTaken(EPERM) | Trial::NotAttached(EPERM) => Some(match &facts.lockdown {
            Some(mode) => Obstacle::Lockdown { mode: mode.clone() },
            None => Obstacle::NoPrivilege,
        }),
        Trial::NotAttached(ENOENT) => Some(Obstacle::NoTracepoints),
        Trial::NotTaken(number) | Trial::NotAttached(number) => Some(refused(number)),
    }
}

const EPERM: i32 = rustix::io::Errno::PERM.raw_os_error();
const ENOENT: i32 = rustix::io::Errno::NOENT.raw_os_error();
const ENOSYS: i32 = rustix::io::Errno::NOSYS.raw_os_error();

/// The highest rung that is free, among those up to `wanted`. That of /proc is always there, if with less in it.
pub fn highest(ladder: &[RungState], wanted: Rung) -> Rung {
    let free = ladder.iter().filter(|state| state.rung <= wanted && state.obstacle.is_none());
    free.map(|state| state.rung).max().unwrap_or(Rung::Process).max(Rung::Process)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> Facts {
        Facts {
            has_schedstat: true,
            trial: Trial::Ran,
            is_first_pid_namespace: true,
            lockdown: None,
            has_strace: true,
        }
    }

    fn programs(facts: &Facts) -> RungState {
        ladder(facts).into_iter().find(|state| state.rung == Rung::Programs).expect("it is on the ladder")
    }

    #[test]
    fn root_reaches_every_rung_and_uses_what_was_asked_for() {
        let ladder = ladder(&root());
        assert!(ladder.iter().all(|state| state.obstacle.is_none() && state.unlock.is_none()), "{ladder:?}");
        for rung in [Rung::Process, Rung::Programs, Rung::Strace] {
            assert_eq!(highest(&ladder, rung), rung);
        }
    }

    #[test]
    fn a_user_falls_a_rung_and_is_told_the_command() {
        let facts = Facts { trial: Trial::NotTaken(EPERM), ..root() };
        let state = programs(&facts);
        assert_eq!(state.obstacle, Some(Obstacle::NoPrivilege));
        assert_eq!(state.unlock.as_deref(), Some(GRANT_PROGRAMS));
        assert_eq!(highest(&ladder(&facts), Rung::Programs), Rung::Process);
    }

    #[test]
    fn what_no_command_mends_has_none() {
        let lockdown = Some("confidentiality".to_owned());
        let mode = Obstacle::Lockdown { mode: "confidentiality".to_owned() };
        for (facts, obstacle) in [
            (Facts { trial: Trial::NotTaken(ENOSYS), ..root() }, Obstacle::NoBpf),
            (Facts { trial: Trial::NotAttached(ENOENT), ..root() }, Obstacle::NoTracepoints),
            (Facts { is_first_pid_namespace: false, ..root() }, Obstacle::PidNamespace),
            (Facts { trial: Trial::NotAttached(EPERM), lockdown, ..root() }, mode),
        ] {
            let state = programs(&facts);
            assert_eq!((state.obstacle, state.unlock), (Some(obstacle), None), "{facts:?}");
        }
        let odd = programs(&Facts { trial: Trial::NotTaken(7), ..root() });
        assert!(matches!(odd.obstacle, Some(Obstacle::Refused { .. })), "{odd:?}");
    }

    #[test]
    fn without_anything_there_is_still_proc() {
        let facts = Facts {
            has_schedstat: false,
            trial: Trial::NotTaken(ENOSYS),
            is_first_pid_namespace: false,
            lockdown: None,
            has_strace: false,
        };
        assert_eq!(highest(&ladder(&facts), Rung::Strace), Rung::Process);
    }

    #[test]
    fn a_mode_of_lockdown_is_the_one_in_brackets() {
        assert_eq!(lockdown_mode("none [integrity] confidentiality\n"), Some("integrity"));
        assert_eq!(lockdown_mode("[none] integrity confidentiality"), None);
        for text in ["", "none", "[", "]["] {
            assert_eq!(lockdown_mode(text), None);
        }
    }
}
