//! Section `evidence`: which rungs of the ladder can be reached. What decides is in `crate::ladder::rung`.

use weir_record::{
    machine::{Finding, FindingState},
    observation::{Rung, RungState},
};

use super::finding;
use crate::ladder::rung::{Facts, ladder};

const SECTION: &str = "evidence";

pub(super) fn findings() -> Vec<Finding> {
    ladder(&Facts::read()).into_iter().map(told).collect()
}

fn told(state: RungState) -> Finding {
    let (name, gives) = match state.rung {
        Rung::Engine => ("L0 engine counters", "always on, costs nothing, exact for Weir's own servers"),
        Rung::Process => (
            "L1 /proc",
            "CPU time and waiting time in nanoseconds by thread, switches, memory, machine noise",
        ),
        Rung::Programs => (
            "L2 kernel programs",
            "every system call of a process by kind: count, time on a CPU and asleep, who woke whom (weir observe \
             --trace)",
        ),
        Rung::Strace => ("L3 strace", "installed: shows what it makes of a program, and is never a measure"),
    };
    // /proc gives something in any case.
    let (found, detail) = match (&state.obstacle, state.rung) {
        (None, _) => (FindingState::Yes, gives.to_owned()),
        (Some(obstacle), Rung::Process) => (FindingState::Limited, obstacle.to_string()),
        (Some(obstacle), _) => (FindingState::No, obstacle.to_string()),
    };
    Finding { unlock: state.unlock, ..finding(SECTION, name, found, detail) }
}

#[cfg(test)]
mod tests {
    use weir_record::observation::Obstacle;

    use super::*;

    #[test]
    fn an_obstacle_stands_with_its_command() {
        let unlock = Some("sudo something".to_owned());
        let of = |rung, obstacle, unlock| told(RungState { rung, obstacle, unlock });
        let refused = of(Rung::Programs, Some(Obstacle::NoPrivilege), unlock.clone());
        assert_eq!((refused.state, &refused.unlock), (FindingState::No, &unlock));
        assert_eq!(refused.detail, Obstacle::NoPrivilege.to_string());
        assert_eq!(of(Rung::Programs, None, None).state, FindingState::Yes);
        assert_eq!(of(Rung::Process, Some(Obstacle::NoSchedstat), None).state, FindingState::Limited);
    }
}
