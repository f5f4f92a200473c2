//! The capabilities and setup of this machine, as findings that a person can act on.
//!
//! Each section gathers its facts first and judges them with a function of those facts alone. Nothing is changed; a
//! finding names the command that would fix it. Drivers are not checked here, because the engine knows them.

use std::time::Duration;

use weir_record::{
    doctor::{Diagnosis, FindingState},
    finding::Finding,
};

use crate::{files, fingerprint::fingerprint, parse};

mod cpus;
mod evidence;
mod limits;
mod noise;

/// How long the machine's noise is observed.
pub const NOISE_WATCH: Duration = Duration::from_millis(200);

/// All findings of the sections `cpus`, `limits`, `noise` and `evidence`, in that order. Takes [`NOISE_WATCH`] and a
/// little more.
pub fn findings() -> Vec<Diagnosis> {
    findings_watching(NOISE_WATCH)
}

fn findings_watching(watch: Duration) -> Vec<Diagnosis> {
    let machine = fingerprint();
    let mut findings = cpus::findings(&machine);
    findings.extend(limits::findings(&machine, &crate::limits::connection_budget()));
    findings.extend(noise::findings(&machine, watch));
    findings.extend(evidence::findings());
    findings
}

/// A finding without a command.
fn finding(section: &str, name: &str, state: FindingState, found: Finding) -> Diagnosis {
    Diagnosis { section: section.to_owned(), name: name.to_owned(), state, found, unlock: None }
}

/// Adds the command that fixes it, unless it is fine.
fn unlocked_by(mut finding: Diagnosis, command: &str) -> Diagnosis {
    finding.unlock = (finding.state != FindingState::Yes).then(|| run(command));
    finding
}

fn run(command: &str) -> Finding {
    Finding::RunCommand { command: command.to_owned() }
}

/// `Yes` or, if not, `Limited`.
fn yes_or_limited(good: bool) -> FindingState {
    if good { FindingState::Yes } else { FindingState::Limited }
}

fn has_capability(number: u32) -> bool {
    let status = files::read_text("/proc/self/status").unwrap_or_default();
    parse::capabilities(&status) >> number & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_gets_every_section_and_commands_only_where_something_is_wrong() {
        let findings = findings_watching(Duration::ZERO);
        for section in ["cpus", "limits", "noise", "evidence"] {
            assert!(findings.iter().any(|finding| finding.section == section), "{section}");
        }
        for finding in &findings {
            assert!(finding.state != FindingState::Yes || finding.unlock.is_none(), "{finding:?}");
        }
        let mut names: Vec<_> = findings.iter().map(|finding| (&finding.section, &finding.name)).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), findings.len());
    }
}
