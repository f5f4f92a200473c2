//! `weir doctor`: what this machine can run and measure.

use std::io::IsTerminal;

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
        let columns = if std::io::stdout().is_terminal() { output::width_columns() } else { usize::MAX };
        output::print(&table(&findings, columns))?;
    }
    Ok(Exit::Ok)
}

/// One finding for each driver, from its start-up test.
pub(crate) fn drivers() -> Vec<Finding> {
    let reports = weir_engine::probe(&Config::default());
    let finding = |report: weir_engine::DriverReport| Finding {
        section: "drivers".into(),
        name: report.driver.name().into(),
        state: if report.is_available() { FindingState::Yes } else { FindingState::No },
        detail: report.detail(),
        unlock: report.refusal.as_ref().and_then(|it| it.remedy()).map(str::to_owned),
    };
    reports.into_iter().map(finding).collect()
}

/// Fewest columns in which an explanation stands beside its finding; with less room it stands below.
const DETAIL_COLUMNS_MIN: usize = 40;

fn table(findings: &[Finding], columns: usize) -> String {
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
        text.push_str(&format!("  {:width$}  {word}", finding.name));
        let unlock = finding.unlock.as_ref().map(|unlock| format!("unlock: {unlock}"));
        let beside = 2 + width + 2 + word.len() + 2;
        let is_beside = columns >= beside + DETAIL_COLUMNS_MIN;
        let indent = if is_beside { beside } else { 4 };
        let room = columns.saturating_sub(indent).max(1);
        let lines =
            std::iter::once(&finding.detail).chain(&unlock).flat_map(|it| weir_report::wrap(it, room));
        for (index, line) in lines.enumerate() {
            match (index, is_beside) {
                (0, true) => text.push_str("  "),
                _ => text.push_str(&format!("\n{:indent$}", "")),
            }
            text.push_str(&line);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_shows_every_finding_whole() {
        let finding = |name: &str, unlock: Option<&str>| Finding {
            section: "drivers".into(),
            name: name.into(),
            state: FindingState::Limited,
            detail: "a sentence that is far too long for the rest of its line on a narrow terminal".into(),
            unlock: unlock.map(str::to_owned),
        };
        let findings = [finding("uring", Some("sysctl kernel.io_uring_disabled=0")), finding("epoll", None)];
        for columns in [40, 60, 80] {
            let text = table(&findings, columns);
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&text), words(&table(&findings, usize::MAX)), "{columns}");
        }
        let wide = table(&findings, usize::MAX);
        assert!(wide.contains("\n  uring  limited  a sentence") && wide.lines().count() == 4, "{wide}");
    }
}
