//! Section `noise`: how quiet the machine is at this moment.

use std::{io, thread, time::Duration};

use weir_record::machine::{CrossCoreReading, Finding, FindingState, Fingerprint, NoiseWindow};

use super::{finding, yes_or_limited};
use crate::{
    crosscore::{CrossCoreError, read_cross_core},
    edge::Edge,
    placement::{Sharing, Topology, place},
    system::SystemSnapshot,
};

const SECTION: &str = "noise";

/// Share of CPU time above which stolen time excludes a trial.
const STEAL_SHARE_MAX: f64 = 0.01;
/// CPUs used by others above which a trial is excluded.
const FOREIGN_CPUS_MAX: f64 = 0.02;

pub(super) fn findings(machine: &Fingerprint, watch: Duration) -> Vec<Finding> {
    let mut findings = match watch_machine(watch) {
        Ok((steal_since_boot, window)) => {
            vec![steal(steal_since_boot, &window), foreign(&window)]
        }
        Err(error) => vec![finding(SECTION, "machine", FindingState::No, error.to_string())],
    };
    let placement = place(&Topology::from(machine)).filter(|placement| placement.sharing != Sharing::Cpu);
    findings.push(match placement {
        Some(placement) => cross_core(&read_cross_core(placement.server[0], placement.load[0])),
        None => finding(SECTION, "cross-core", FindingState::No, "one CPU only: nothing to read".to_owned()),
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

fn steal(since_boot: f64, window: &NoiseWindow) -> Finding {
    let good = since_boot <= STEAL_SHARE_MAX && window.steal_share <= STEAL_SHARE_MAX;
    let detail = format!(
        "the hypervisor took {:.2} % of CPU time since boot, {:.2} % in the last {:.1} s",
        since_boot * 100.0,
        window.steal_share * 100.0,
        seconds(window)
    );
    finding(SECTION, "steal", yes_or_limited(good), detail)
}

fn foreign(window: &NoiseWindow) -> Finding {
    let good = window.foreign_cpus <= FOREIGN_CPUS_MAX;
    let detail =
        format!("other processes used {:.3} CPUs over {:.1} s", window.foreign_cpus, seconds(window));
    finding(SECTION, "foreign cpu", yes_or_limited(good), detail)
}

fn seconds(window: &NoiseWindow) -> f64 {
    window.window_ns as f64 / 1e9
}

fn cross_core(reading: &Result<CrossCoreReading, CrossCoreError>) -> Finding {
    match reading {
        Ok(reading) => {
            let detail = format!(
                "a cache line goes from CPU {} to CPU {} and back in {:.0} ns now; trials are compared only at like readings",
                reading.cpu_a, reading.cpu_b, reading.round_trip_ns
            );
            finding(SECTION, "cross-core", FindingState::Yes, detail)
        }
        Err(error @ CrossCoreError::Starved { .. }) => {
            finding(SECTION, "cross-core", FindingState::Limited, error.to_string())
        }
        Err(error) => finding(SECTION, "cross-core", FindingState::No, error.to_string()),
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
        assert!(cross_core(&Ok(reading)).detail.contains("in 101 ns"));
    }
}
