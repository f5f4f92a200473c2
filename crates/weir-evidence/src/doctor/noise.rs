//! Section `noise`: how quiet the machine is now, by the limits for whole trials. The usual CPU use of other
//! processes is unknown here: a study allows for it after some trials.

use std::{io, thread, time::Duration};

use weir_record::{
    doctor::{Diagnosis, FindingState},
    finding::Finding,
    machine::{CrossCoreReading, FOREIGN_CPUS_MAX, Fingerprint, NoiseWindow, STEAL_SHARE_MAX},
};

use super::{finding, yes_or_limited};
use crate::{
    crosscore::{CrossCoreError, read_cross_core},
    edge::Edge,
    placement::{Sharing, Topology, place},
    system::SystemSnapshot,
};

const SECTION: &str = "noise";

pub(super) fn findings(machine: &Fingerprint, watch: Duration) -> Vec<Diagnosis> {
    let mut findings = match watch_machine(watch) {
        Ok((steal_since_boot, window)) => {
            vec![steal(steal_since_boot, &window), foreign(&window)]
        }
        Err(error) => vec![finding(SECTION, "machine", FindingState::No, said(&error))],
    };
    let placement = place(&Topology::from(machine)).filter(|placement| placement.sharing != Sharing::Cpu);
    findings.push(match placement {
        Some(placement) => cross_core(&read_cross_core(placement.server[0], placement.load[0])),
        None => finding(SECTION, "cross-core", FindingState::No, Finding::OneCpu),
    });
    findings
}

/// Steal since boot, and the noise of a window in which this process sleeps.
fn watch_machine(watch: Duration) -> io::Result<(f64, NoiseWindow)> {
    let before = Edge::read(std::process::id())?;
    if !watch.is_zero() {
        thread::sleep(watch);
    }
    let after = Edge::read(std::process::id())?;
    Ok((SystemSnapshot::read()?.total.steal_share(), before.until(&after).noise))
}

fn steal(since_boot: f64, window: &NoiseWindow) -> Diagnosis {
    let good = since_boot <= STEAL_SHARE_MAX && window.steal_share <= STEAL_SHARE_MAX;
    let found = Finding::Stolen { since_boot, now: window.steal_share, window_ns: window.window_ns };
    finding(SECTION, "steal", yes_or_limited(good), found)
}

fn foreign(window: &NoiseWindow) -> Diagnosis {
    let good = window.foreign_cpus <= FOREIGN_CPUS_MAX;
    let found = Finding::OthersUsed { cpus: window.foreign_cpus, window_ns: window.window_ns };
    finding(SECTION, "foreign cpu", yes_or_limited(good), found)
}

fn said(error: &impl ToString) -> Finding {
    Finding::Said { text: error.to_string() }
}

fn cross_core(reading: &Result<CrossCoreReading, CrossCoreError>) -> Diagnosis {
    match reading {
        Ok(CrossCoreReading { cpu_a, cpu_b, round_trip_ns, .. }) => {
            let number = |cpu: usize| u32::try_from(cpu).unwrap_or(u32::MAX);
            let (cpu_a, cpu_b, round_trip_ns) = (number(*cpu_a), number(*cpu_b), *round_trip_ns);
            let found = Finding::CrossCoreNow { cpu_a, cpu_b, round_trip_ns };
            finding(SECTION, "cross-core", FindingState::Yes, found)
        }
        Err(error @ CrossCoreError::Starved { .. }) => {
            finding(SECTION, "cross-core", FindingState::Limited, said(error))
        }
        Err(error) => finding(SECTION, "cross-core", FindingState::No, said(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_machine_is_good_and_a_noisy_one_is_limited() {
        let quiet = NoiseWindow { window_ns: 200_000_000, foreign_cpus: 0.02, ..NoiseWindow::default() };
        assert_eq!(
            (steal(0.001, &quiet).state, foreign(&quiet).state),
            (FindingState::Yes, FindingState::Yes)
        );
        let noisy = NoiseWindow { steal_share: 0.02, foreign_cpus: 0.021, ..quiet };
        assert_eq!(
            (steal(0.0, &noisy).state, foreign(&noisy).state),
            (FindingState::Limited, FindingState::Limited)
        );
        assert_eq!(steal(0.05, &quiet).state, FindingState::Limited);
    }

    #[test]
    fn a_starved_reading_is_a_limit_and_no_second_cpu_is_a_no() {
        let starved = Err(CrossCoreError::Starved { cpu_a: 0, cpu_b: 1 });
        assert_eq!(cross_core(&starved).state, FindingState::Limited);
        assert_eq!(cross_core(&Err(CrossCoreError::SameCpu { cpu: 0 })).state, FindingState::No);
        let reading = CrossCoreReading { cpu_a: 0, cpu_b: 1, round_trip_ns: 101.4, canary_ns: 1e6 };
        let found = Finding::CrossCoreNow { cpu_a: 0, cpu_b: 1, round_trip_ns: 101.4 };
        assert_eq!(cross_core(&Ok(reading)).found, found);
    }
}
