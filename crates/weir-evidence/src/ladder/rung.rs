//! Which rungs of the ladder are available, why the others are not, and the command that would unlock each.
//!
//! The decision is a function of facts. [`Facts::read`] gathers them by trying each operation, because no file shows
//! whether the kernel would permit it.

use std::io;

use weir_record::observation::{Obstacle, Rung, RungState};
use weir_sys::bpf::{Map, Program};

use super::{
    kernel::{self, Kernel, is_namespace},
    programs,
    tables::Table,
};
use crate::{files, parse};

/// The first user namespace of every kernel (`PROC_USER_INIT_INO`), the only one whose capabilities permit kernel
/// programs.
const FIRST_USER_NAMESPACE: &str = "user:[4026531837]";

/// From capabilities(7).
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;
const CAP_BPF: u64 = 1 << 39;

/// Grants this program the capabilities for kernel programs, and no more.
pub const GRANT_PROGRAMS: &str = "sudo setcap cap_bpf,cap_perfmon=ep \"$(command -v weir)\"";

/// Package managers, and their arguments for installing `strace`.
const INSTALLERS: [(&str, &str); 5] = [
    ("apt-get", "sudo apt-get install strace"),
    ("dnf", "sudo dnf install strace"),
    ("zypper", "sudo zypper install strace"),
    ("apk", "sudo apk add strace"),
    ("pacman", "sudo pacman -S strace"),
];

/// Facts that decide the rungs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Whether the scheduler counts time for every thread (`schedstat` contains nonzero values).
    pub has_schedstat: bool,
    /// The kernel's reaction to a program without effect.
    pub trial: Trial,
    /// Whether the process has the capabilities that loading programs requires.
    pub is_privileged: bool,
    /// Whether a seccomp filter checks its system calls.
    pub is_filtered: bool,
    /// Whether its capabilities apply to the whole machine.
    pub is_first_user_namespace: bool,
    /// Whether kernel programs see the process numbers of this namespace: it is the first PID namespace, or the
    /// kernel supports other ones (Linux 5.7).
    pub knows_numbers: bool,
    /// The mode of `lockdown(7)`, unless it is `none`.
    pub lockdown: Option<String>,
    /// `strace` can be started.
    pub has_strace: bool,
    /// The command that would install it, if a package manager is known.
    pub install_strace: Option<&'static str>,
}

/// Result of loading a program without effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// It ran.
    Ran,
    /// The kernel refused to load it (error number).
    NotTaken(i32),
    /// The kernel loaded it, but refused to attach it to system calls (error number).
    NotAttached(i32),
}

impl Facts {
    /// The facts of this process on this machine.
    pub fn read() -> Self {
        let own_times = files::read_text("/proc/thread-self/schedstat");
        let lockdown = files::read_text("/sys/kernel/security/lockdown").unwrap_or_default();
        let status = files::read_text("/proc/thread-self/status").unwrap_or_default();
        let installer = INSTALLERS.iter().find(|(tool, _)| files::is_in_path(tool));
        Self {
            has_schedstat: own_times
                .as_deref()
                .and_then(parse::schedstat)
                .is_some_and(|(cpu_ns, _)| cpu_ns > 0),
            trial: Trial::run(),
            is_privileged: is_privileged(parse::capabilities(&status)),
            is_filtered: parse::field(&status, "Seccomp") == Some("2"),
            is_first_user_namespace: is_namespace("user", FIRST_USER_NAMESPACE),
            knows_numbers: knows_numbers(),
            lockdown: lockdown_mode(&lockdown).map(str::to_owned),
            has_strace: files::is_in_path("strace"),
            install_strace: installer.map(|(_, command)| *command),
        }
    }
}

/// Whether kernel programs can see the process numbers of this namespace, if that can be tested.
pub(super) fn knows_numbers() -> bool {
    if kernel::is_first_pid_namespace() {
        return true;
    }
    let kernel = Kernel::numbering();
    let program = programs::numbering(kernel).linked(|_| 0);
    kernel.namespace.is_some() && Program::load("weir_numbering", &program).is_ok()
}

/// Whether the capabilities permit kernel programs.
fn is_privileged(capabilities: u64) -> bool {
    let has = |needed: u64| capabilities & needed == needed;
    has(CAP_BPF | CAP_PERFMON) || has(CAP_SYS_ADMIN)
}

/// The mode in `none [integrity] confidentiality`, unless it is none.
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

/// All rungs, lowest first, with the obstacle of each.
pub fn ladder(facts: &Facts) -> Vec<RungState> {
    let schedstat = (!facts.has_schedstat).then_some(Obstacle::NoSchedstat);
    let programs = obstacle_of_programs(facts);
    let unlock = (programs == Some(Obstacle::NoPrivilege)).then(|| GRANT_PROGRAMS.to_owned());
    let strace = (!facts.has_strace).then_some(Obstacle::NotInstalled);
    let install = facts.install_strace.filter(|_| !facts.has_strace);
    vec![
        RungState { rung: Rung::Engine, obstacle: None, unlock: None },
        RungState { rung: Rung::Process, obstacle: schedstat, unlock: None },
        RungState { rung: Rung::Programs, obstacle: programs, unlock },
        RungState { rung: Rung::Strace, unlock: install.map(str::to_owned), obstacle: strace },
    ]
}

fn obstacle_of_programs(facts: &Facts) -> Option<Obstacle> {
    let refused = |number: i32| Obstacle::Refused { error: io::Error::from_raw_os_error(number).to_string() };
    match facts.trial {
        Trial::Ran if !facts.knows_numbers => Some(Obstacle::PidNamespace),
        Trial::Ran => None,
        Trial::NotTaken(ENOSYS) => Some(Obstacle::NoBpf),
        Trial::NotTaken(EPERM) | Trial::NotAttached(EPERM) => Some(match &facts.lockdown {
            Some(mode) => Obstacle::Lockdown { mode: mode.clone() },
            None if !facts.is_privileged => Obstacle::NoPrivilege,
            // There it is refused in any case; the presence of a filter is visible, but not what it refuses.
            None if !facts.is_first_user_namespace => Obstacle::UserNamespace,
            None if facts.is_filtered => Obstacle::Filtered,
            None => refused(EPERM),
        }),
        Trial::NotAttached(ENOENT) => Some(Obstacle::NoTracepoints),
        Trial::NotTaken(number) | Trial::NotAttached(number) => Some(refused(number)),
    }
}

const EPERM: i32 = rustix::io::Errno::PERM.raw_os_error();
const ENOENT: i32 = rustix::io::Errno::NOENT.raw_os_error();
const ENOSYS: i32 = rustix::io::Errno::NOSYS.raw_os_error();

/// The highest available rung up to `wanted`. The rung of /proc is always available, if with less data.
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
            is_privileged: true,
            is_filtered: false,
            is_first_user_namespace: true,
            knows_numbers: true,
            lockdown: None,
            has_strace: true,
            install_strace: Some("sudo apk add strace"),
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
    fn strace_that_is_not_there_has_the_command_that_installs_it_where_one_is_known() {
        let of = |facts: &Facts| ladder(facts).into_iter().find(|state| state.rung == Rung::Strace);
        let gone = Facts { has_strace: false, ..root() };
        let state = of(&gone).expect("it is on the ladder");
        assert_eq!(state.obstacle, Some(Obstacle::NotInstalled));
        assert_eq!(state.unlock.as_deref(), Some("sudo apk add strace"));
        let unknown = of(&Facts { install_strace: None, ..gone }).expect("it is on the ladder");
        assert_eq!((unknown.obstacle, unknown.unlock), (Some(Obstacle::NotInstalled), None));
    }

    #[test]
    fn a_user_falls_a_rung_and_is_told_the_command() {
        let facts = Facts { trial: Trial::NotTaken(EPERM), is_privileged: false, ..root() };
        let state = programs(&facts);
        assert_eq!(state.obstacle, Some(Obstacle::NoPrivilege));
        assert_eq!(state.unlock.as_deref(), Some(GRANT_PROGRAMS));
        assert_eq!(highest(&ladder(&facts), Rung::Programs), Rung::Process);
    }

    #[test]
    fn root_that_is_refused_is_told_by_what() {
        let refused = Facts { trial: Trial::NotTaken(EPERM), ..root() };
        for (facts, obstacle) in [
            (Facts { is_filtered: true, ..refused.clone() }, Obstacle::Filtered),
            (Facts { is_first_user_namespace: false, ..refused.clone() }, Obstacle::UserNamespace),
            (
                Facts { is_filtered: true, is_first_user_namespace: false, ..refused.clone() },
                Obstacle::UserNamespace,
            ),
        ] {
            let state = programs(&facts);
            assert_eq!((state.obstacle, state.unlock), (Some(obstacle), None), "{facts:?}");
        }
        // A security module, for example: only the kernel's error is known.
        let said = programs(&refused).obstacle;
        assert!(
            matches!(&said, Some(Obstacle::Refused { error }) if error.contains("not permitted")),
            "{said:?}"
        );
    }

    #[test]
    fn programs_need_two_capabilities_or_the_one_that_was_there_before_them() {
        for privileged in [CAP_BPF | CAP_PERFMON, CAP_SYS_ADMIN, u64::MAX] {
            assert!(is_privileged(privileged), "{privileged:x}");
        }
        for not in [0, CAP_BPF, CAP_PERFMON, !(CAP_SYS_ADMIN | CAP_BPF)] {
            assert!(!is_privileged(not), "{not:x}");
        }
    }

    #[test]
    fn what_no_command_mends_has_none() {
        let lockdown = Some("confidentiality".to_owned());
        let mode = Obstacle::Lockdown { mode: "confidentiality".to_owned() };
        for (facts, obstacle) in [
            (Facts { trial: Trial::NotTaken(ENOSYS), ..root() }, Obstacle::NoBpf),
            (Facts { trial: Trial::NotAttached(ENOENT), ..root() }, Obstacle::NoTracepoints),
            (Facts { knows_numbers: false, ..root() }, Obstacle::PidNamespace),
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
            is_privileged: false,
            knows_numbers: false,
            has_strace: false,
            ..root()
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
