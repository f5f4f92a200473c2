//! Checks before anything runs whether this process's limit on open files suffices for every cell: in a map of many
//! cells the largest may be the last.

use weir_evidence::limits::ConnectionBudget;
use weir_record::spec::{CellSpec, StudySpec};

use crate::{launch::LaunchError, protocol};

/// Refuses a study if one cell needs more descriptors than a generator may have, and names the limit that would
/// suffice.
pub(super) fn check(spec: &StudySpec, budget: ConnectionBudget) -> Result<(), LaunchError> {
    let loaded = spec.cells.iter().filter(|cell| protocol::of(cell).generator().is_some());
    let needed = |cell: &CellSpec| budget.generator_descriptors(connections(spec, cell), cell.load_workers);
    let Some(cell) = loaded.max_by_key(|cell| needed(cell)) else { return Ok(()) };
    let (connections, needed, allowed) = (connections(spec, cell), needed(cell), budget.nofile_hard);
    if needed <= allowed {
        return Ok(());
    }
    let every = if cell.alternation.is_some() { ", whose arms are up together" } else { "" };
    Err(LaunchError::Environment(format!(
        "cell {}{every}: {connections} connections need {needed} file descriptors, but the limit is {allowed}; run \
         `ulimit -n {needed}` first (as root if it is refused), or leave the cell out with --levels",
        cell.id
    )))
}

/// Refuses a study whose servers run here and are loaded from another host if one cell has more connections than a
/// server may have. Each server has the limit for itself.
pub(super) fn check_servers(spec: &StudySpec, budget: ConnectionBudget) -> Result<(), LaunchError> {
    let each = |cell: &CellSpec| u64::from(cell.connections) + u64::from(cell.idle_connections);
    let loaded = spec.cells.iter().filter(|cell| protocol::of(cell).generator().is_some());
    let Some(cell) = loaded.max_by_key(|cell| each(cell)) else { return Ok(()) };
    let missing = each(cell).saturating_sub(budget.server_connections());
    if missing == 0 {
        return Ok(());
    }
    let (connections, allowed) = (each(cell), budget.nofile_hard);
    let needed = allowed.saturating_add(missing);
    Err(LaunchError::Environment(format!(
        "cell {}: a server with {connections} connections needs {needed} file descriptors, but the limit of users \
         there is {allowed}; raise it (`nofile` in /etc/security/limits.conf, or LimitNOFILE of the service that runs \
         the shell), or leave the cell out with --levels",
        cell.id
    )))
}

/// Connections that one generator holds at once: to every run of a round, or to the server of a trial.
fn connections(spec: &StudySpec, cell: &CellSpec) -> u64 {
    let arms = spec.arms.iter().filter(|arm| cell.has_arm(&arm.name)).count() as u64;
    let runs = if cell.alternation.is_some() { arms + 1 } else { 1 };
    runs * (u64::from(cell.connections) + u64::from(cell.idle_connections))
}

#[cfg(test)]
mod tests {
    use weir_judge::sample;

    use super::*;
    use crate::alternation;

    #[test]
    fn a_server_that_is_loaded_from_another_host_has_the_limit_for_itself() {
        let mut spec = sample::study(&["epoll", "uring"], 12, 1);
        let id = "c4000".to_owned();
        let large = CellSpec { id, connections: 3_900, idle_connections: 100, ..spec.cells[0].clone() };
        spec.cells.push(large);
        alternation::apply(&mut spec);
        let checked = |nofile_hard: u64| {
            let budget = ConnectionBudget {
                nofile_soft: 1024,
                nofile_hard,
                descriptors_used: 10,
                local_ports: 28_000,
            };
            check_servers(&spec, budget).map_err(|error| error.to_string())
        };
        assert_eq!(checked(4_074), Ok(()), "the arms are up together, each in its own process");
        let refused = checked(4_073).expect_err("one is missing");
        for words in ["cell c4000: a server with 4000 connections needs 4074", "limit of users there is 4073"]
        {
            assert!(refused.contains(words), "{refused}");
        }
    }

    #[test]
    fn the_largest_cell_decides_and_the_limit_that_would_do_is_named() {
        let mut spec = sample::study(&["epoll", "uring"], 12, 1);
        let large = CellSpec { id: "c4000".to_owned(), connections: 4000, ..spec.cells[0].clone() };
        spec.cells.insert(0, large);
        alternation::apply(&mut spec);
        let budget = |nofile_hard: u64| ConnectionBudget {
            nofile_soft: 1024,
            nofile_hard,
            descriptors_used: 10,
            local_ports: 28_000,
        };
        let refused = check(&spec, budget(12_049)).expect_err("one is missing").to_string();
        for words in [
            "cell c4000, whose arms are up together: 12000 connections need 12050",
            "the limit is 12049",
            "`ulimit -n 12050`",
        ] {
            assert!(refused.contains(words), "{refused}");
        }
        assert!(check(&spec, budget(12_050)).is_ok());
        spec.cells[0].alternation = None;
        assert!(check(&spec, budget(4050)).is_ok(), "whole trials load one server at a time");
        spec.cells[0].idle_connections = 1;
        assert!(check(&spec, budget(4050)).is_err());
    }
}
