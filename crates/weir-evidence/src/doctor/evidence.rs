//! Section `evidence`: which rungs of the ladder can be used. `crate::ladder::rung` decides.

use weir_record::{
    doctor::{Diagnosis, FindingState},
    finding::Finding,
    observation::{Rung, RungState},
};

use super::{finding, run};
use crate::ladder::rung::{Facts, ladder};

const SECTION: &str = "evidence";

pub(super) fn findings() -> Vec<Diagnosis> {
    ladder(&Facts::read()).into_iter().map(diagnosis).collect()
}

fn diagnosis(RungState { rung, obstacle, unlock }: RungState) -> Diagnosis {
    let name = match rung {
        Rung::Engine => "L0 engine counters",
        Rung::Process => "L1 /proc",
        Rung::Programs => "L2 kernel programs",
        Rung::Strace => "L3 strace",
    };
    // /proc always provides something.
    let state = match (&obstacle, rung) {
        (None, _) => FindingState::Yes,
        (Some(_), Rung::Process) => FindingState::Limited,
        (Some(_), _) => FindingState::No,
    };
    let found = obstacle.map_or(Finding::RungGives { rung }, |obstacle| Finding::RungBarred { obstacle });
    Diagnosis { unlock: unlock.map(|command| run(&command)), ..finding(SECTION, name, state, found) }
}

#[cfg(test)]
mod tests {
    use weir_record::observation::Obstacle;

    use super::*;

    #[test]
    fn an_obstacle_stands_with_its_command() {
        let unlock = Some("sudo something".to_owned());
        let of = |rung, obstacle, unlock| diagnosis(RungState { rung, obstacle, unlock });
        let refused = of(Rung::Programs, Some(Obstacle::NoPrivilege), unlock);
        assert_eq!((refused.state, refused.unlock), (FindingState::No, Some(run("sudo something"))));
        assert_eq!(refused.found, Finding::RungBarred { obstacle: Obstacle::NoPrivilege });
        assert_eq!(of(Rung::Programs, None, None).state, FindingState::Yes);
        assert_eq!(of(Rung::Process, Some(Obstacle::NoSchedstat), None).state, FindingState::Limited);
    }
}
