//! `weir doctor`: what this machine can run and measure.

use anyhow::Result;
use weir_engine::Config;
use weir_record::machine::{Finding, FindingState};

use crate::{args::Doctor, exit::Exit, output};

pub(crate) fn run(arguments: &Doctor) -> Result<Exit> {
    let mut findings = drivers();
    findings.extend(weir_evidence::doctor::findings());
    if arguments.json {
        output::print(&serde_json::to_string_pretty(&findings)?)?;
    } else {
        output::print(&table(&findings))?;
    }
    Ok(Exit::Ok)
}

/// One finding for each driver, from its start-up test.
pub(crate) fn drivers() -> Vec<Finding> {
    let reports = weir_engine::probe(&Config::default());
    let finding = |report: weir_engine::DriverReport| Finding {
        section: "drivers".into(),
        name: report.driver.name().into(),
        state: if report.available { FindingState::Yes } else { FindingState::No },
        detail: report.detail,
        unlock: report.unlock,
    };
    reports.into_iter().map(finding).collect()
}

fn table(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    let mut section = "";
    for finding in findings {
        if finding.section != section {
            text.push_str(&format!("{}{}\n", if section.is_empty() { "" } else { "\n" }, finding.section));
            section = &finding.section;
        }
        let word = match finding.state {
            FindingState::Yes => "yes    ",
            FindingState::Limited => "limited",
            FindingState::No => "no     ",
        };
        text.push_str(&format!("  {:width$}  {word}  {}\n", finding.name, finding.detail));
        if let Some(unlock) = &finding.unlock {
            text.push_str(&format!("  {:width$}           unlock: {unlock}\n", ""));
        }
    }
    text
}
