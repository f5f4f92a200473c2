//! `weir doctor`: what this machine can run and measure.

use std::io::IsTerminal;

use anyhow::Result;
use serde::Serialize;
use weir_engine::{Config, DriverReport, Refusal};
use weir_record::{
    doctor::{Diagnosis, FindingState},
    finding::Finding,
};
use weir_report::Language;

use super::study_host;
use crate::{args::Doctor, exit::Exit, language, output, signals};

pub(crate) fn run(arguments: &Doctor) -> Result<Exit> {
    let language = language::chosen(arguments.lang.as_deref())?;
    let diagnoses = match study_host::of_doctor(arguments) {
        None => diagnoses(),
        Some(there) => {
            let interrupt = signals::stop_flag()?;
            let Some(mut host) = study_host::connect(&there, &interrupt)? else {
                return Ok(Exit::Interrupted);
            };
            let found = study_host::unless_ended(host.doctor(&interrupt))?;
            let Some(found) = found else { return Ok(Exit::Interrupted) };
            found
        }
    };
    if arguments.json {
        // A script reads the same text everywhere.
        let language = if arguments.lang.is_some() { language } else { Language::English };
        let lines: Vec<ScriptLine<'_>> =
            diagnoses.iter().map(|diagnosis| ScriptLine::of(diagnosis, language)).collect();
        output::print(&serde_json::to_string_pretty(&lines)?)?;
    } else {
        let columns = if std::io::stdout().is_terminal() { output::width_columns() } else { usize::MAX };
        output::print(&weir_report::doctor(&diagnoses, language, columns))?;
    }
    Ok(Exit::Ok)
}

/// What this machine can run and measure.
pub(super) fn diagnoses() -> Vec<Diagnosis> {
    let mut diagnoses = drivers();
    diagnoses.extend(weir_evidence::doctor::findings());
    diagnoses
}

/// A line for a script: in words, and as codes with arguments.
#[derive(Serialize)]
struct ScriptLine<'a> {
    section: &'a str,
    name: &'a str,
    state: FindingState,
    detail: String,
    unlock: Option<String>,
    found: &'a Finding,
    remedy: Option<&'a Finding>,
}

impl<'a> ScriptLine<'a> {
    fn of(diagnosis: &'a Diagnosis, language: Language) -> Self {
        let Diagnosis { section, name, state, found, unlock } = diagnosis;
        Self {
            section,
            name,
            state: *state,
            detail: weir_report::finding(found, language),
            unlock: unlock.as_ref().map(|remedy| weir_report::remedy(remedy, language)),
            found,
            remedy: unlock.as_ref(),
        }
    }
}

/// One line for each driver, from its start-up test.
fn drivers() -> Vec<Diagnosis> {
    let reports = weir_engine::probe(&Config::default());
    let diagnosis = |report: DriverReport| Diagnosis {
        section: "drivers".into(),
        name: report.driver.name().into(),
        state: if report.is_available() { FindingState::Yes } else { FindingState::No },
        unlock: report.refusal.as_ref().and_then(remedy),
        found: found(&report),
    };
    reports.into_iter().map(diagnosis).collect()
}

/// The result of a driver's start-up test.
pub(super) fn found(report: &DriverReport) -> Finding {
    let granted = || report.granted.iter().map(|&name| name.to_owned()).collect();
    report.refusal.as_ref().map_or_else(|| Finding::DriverGranted { features: granted() }, refused)
}

/// Why a driver cannot run.
pub(super) fn refused(refusal: &Refusal) -> Finding {
    match refusal {
        Refusal::NoRing => Finding::NoIoUring,
        Refusal::RingDisabled { level } => Finding::IoUringDisabled { level: *level },
        Refusal::RingForbidden => Finding::IoUringForbidden,
        Refusal::RingMemory => Finding::IoUringMemory,
        Refusal::RingTooOld => Finding::IoUringTooOld,
        Refusal::KernelOlder { asked, running } => Finding::KernelOlder { asked: *asked, running: *running },
        // Options do not concern the doctor, and this program has every driver of the kernel.
        Refusal::OptionLacks(_) | Refusal::NotBuilt(_) => Finding::Said { text: refusal.to_string() },
        Refusal::Other(text) => Finding::Said { text: text.clone() },
    }
}

/// The remedy.
pub(super) fn remedy(refusal: &Refusal) -> Option<Finding> {
    let command = |command: &str| Finding::RunCommand { command: command.to_owned() };
    match refusal {
        Refusal::NoRing => Some(Finding::AllowIoUring),
        Refusal::RingDisabled { .. } => Some(command("sudo sysctl -w kernel.io_uring_disabled=0")),
        Refusal::RingForbidden => Some(Finding::OpenSandbox),
        Refusal::RingMemory => Some(command("ulimit -l unlimited")),
        Refusal::RingTooOld
        | Refusal::KernelOlder { .. }
        | Refusal::NotBuilt(_)
        | Refusal::OptionLacks(_)
        | Refusal::Other(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_doctor_says_of_a_sandbox_what_the_engine_says() {
        for refusal in [Refusal::NoRing, Refusal::RingForbidden] {
            let words = remedy(&refusal).map(|remedy| weir_report::remedy(&remedy, Language::English));
            assert_eq!(words.as_deref(), refusal.remedy());
        }
    }
}
