//! Programs that some steps need and that not every machine has.

#![expect(clippy::print_stdout, reason = "a command line tool talks to its user")]

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
};

/// Names tools, by their programs, without which the run fails instead of skipping steps.
const VARIABLE: &str = "WEIR_REQUIRE_TOOLS";

/// Such a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    Maven,
    Tshark,
    /// From the package index, installed into its own environment.
    FioPlot,
}

impl Tool {
    const ALL: [Self; 3] = [Self::Maven, Self::Tshark, Self::FioPlot];

    fn program(self) -> &'static str {
        match self {
            Self::Maven => "mvn",
            Self::Tshark => "tshark",
            Self::FioPlot => "fio-plot",
        }
    }

    /// What is skipped without it.
    fn absence(self) -> &'static str {
        match self {
            Self::Maven => "no Maven (mvn), so that no client on nassau-core was run",
            Self::Tshark => "no tshark, so that nothing was dissected",
            Self::FioPlot => "no fio-plot is available, so that no report of a storage run was drawn",
        }
    }

    fn is_here(self, environment: &Path) -> bool {
        // A broken tool counts as present; using it produces its own error.
        let mut command = match self {
            Self::FioPlot => Command::new(environment.join("bin").join(self.program())),
            Self::Maven | Self::Tshark => Command::new(self.program()),
        };
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok()
    }
}

/// The tools of this machine and of the Python environment. Prints what is skipped for missing tools, or fails if one
/// of them is required.
pub fn find(environment: &Path) -> Result<Vec<Tool>, String> {
    let required = required(&env::var_os(VARIABLE).unwrap_or_default().to_string_lossy())?;
    let here: Vec<Tool> = Tool::ALL.into_iter().filter(|tool| tool.is_here(environment)).collect();
    for line in absences(&here, &required)? {
        println!("{line}");
    }
    Ok(here)
}

fn required(list: &str) -> Result<Vec<Tool>, String> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    let tool = |name: &str| {
        let found = Tool::ALL.into_iter().find(|tool| tool.program() == name);
        found.ok_or_else(|| format!("{VARIABLE} names {name:?}; it can name mvn, tshark and fio-plot"))
    };
    names.map(tool).collect()
}

fn absences(here: &[Tool], required: &[Tool]) -> Result<Vec<String>, String> {
    let missing = Tool::ALL.into_iter().filter(|tool| !here.contains(tool));
    let line = |tool: Tool| {
        if required.contains(&tool) {
            return Err(format!("{VARIABLE} names {}, but: {}", tool.program(), tool.absence()));
        }
        Ok(format!("skipped: {}", tool.absence()))
    };
    missing.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_named_and_one_that_is_required_fails() {
        let lines = absences(&[Tool::Tshark, Tool::FioPlot], &[Tool::Tshark]).expect("Maven is not required");
        assert_eq!(lines, ["skipped: no Maven (mvn), so that no client on nassau-core was run"]);
        let error = absences(&[Tool::Tshark, Tool::FioPlot], &[Tool::Maven]).expect_err("Maven is required");
        assert!(error.starts_with("WEIR_REQUIRE_TOOLS names mvn, but: no Maven"), "{error}");
        assert_eq!(absences(&Tool::ALL, &Tool::ALL), Ok(Vec::new()));
    }

    #[test]
    fn a_requirement_that_nobody_can_meet_is_refused() {
        assert_eq!(required(""), Ok(Vec::new()));
        assert_eq!(required("tshark, mvn,fio-plot"), Ok(vec![Tool::Tshark, Tool::Maven, Tool::FioPlot]));
        let error = required("mvn,maven").expect_err("the program is called mvn");
        assert!(error.contains("\"maven\""), "{error}");
    }
}
