//! Checks before anything runs whether the memory of this machine or of the control group suffices for every cell.
//! Otherwise the kernel would kill a process for lack of memory, and its arm would be blamed.

use weir_evidence::memory::MemoryBudget;
use weir_record::spec::{ArmSpec, CellSpec, StudySpec};

use crate::{launch::LaunchError, protocol};

const MIB: u64 = 1 << 20;

/// Memory of a server without connections in bytes; the next constant is the memory of the generator.
const SERVER_BYTES: u64 = 4 * MIB;
const GENERATOR_BYTES: u64 = 16 * MIB;

/// Kernel structures for both ends of a connection, and the state that server and generator keep for it, in bytes.
/// Socket buffers are empty while a connection is idle.
const CONNECTION_BYTES: u64 = 16 << 10;

/// Stack memory that a thread of the blocking driver has touched, in user space and in the kernel, in bytes.
const THREAD_BYTES: u64 = 32 << 10;

/// Refuses a study if one cell needs more memory than there is, and names the limit that would suffice. A cell's need
/// is estimated from below: an accepted study may still fail, but a refused one could not have run.
pub(super) fn check(spec: &StudySpec, budget: Option<MemoryBudget>) -> Result<(), LaunchError> {
    let Some(MemoryBudget { available_bytes, group_limit_bytes }) = budget else { return Ok(()) };
    let loaded = spec.cells.iter().filter(|cell| protocol::of(cell).generator().is_some());
    let Some(cell) = loaded.max_by_key(|cell| needed_bytes(spec, cell)) else { return Ok(()) };
    let needed_bytes = needed_bytes(spec, cell);
    if needed_bytes <= available_bytes {
        return Ok(());
    }
    let every = if cell.alternation.is_some() { ", whose arms are up together" } else { "" };
    let [needed, available] = [needed_bytes, available_bytes].map(mib);
    let remedy = match group_limit_bytes {
        Some(limit) => format!(
            "raise the limit of the control group from {} to {} MiB",
            mib(limit),
            mib(limit + (needed_bytes - available_bytes))
        ),
        None => "end what else holds memory".to_owned(),
    };
    Err(LaunchError::Environment(format!(
        "cell {}{every}: its servers and its generator need {needed} MiB of memory or more, but {available} MiB are \
         available; {remedy}, or leave the cell out with --levels",
        cell.id
    )))
}

/// In whole MiB, rounded up.
fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(MIB)
}

/// Least memory that a cell needs: for all runs of a round, or for the largest of its servers.
fn needed_bytes(spec: &StudySpec, cell: &CellSpec) -> u64 {
    let own: Vec<u64> =
        spec.arms.iter().filter(|arm| cell.has_arm(&arm.name)).map(|arm| server_bytes(arm, cell)).collect();
    let servers = match (cell.alternation, own.first()) {
        // The baseline runs twice.
        (Some(_), Some(baseline)) => own.iter().sum::<u64>() + baseline,
        _ => own.iter().copied().max().unwrap_or(0),
    };
    // Only one server is loaded at a time, and all bytes in flight may be in the buffers of one side.
    let in_flight = u64::from(cell.connections) * u64::from(cell.depth) * u64::from(cell.message_bytes);
    servers + GENERATOR_BYTES + in_flight
}

/// Memory that a server and its connections need, including the generator's ends.
fn server_bytes(arm: &ArmSpec, cell: &CellSpec) -> u64 {
    let connections = u64::from(cell.connections) + u64::from(cell.idle_connections);
    let has_threads = arm.subject.driver() == Some("blocking");
    let each = CONNECTION_BYTES + if has_threads { THREAD_BYTES } else { 0 };
    SERVER_BYTES + connections * each
}

#[cfg(test)]
mod tests {
    use weir_judge::sample;

    use super::*;
    use crate::alternation;

    fn refusal(spec: &StudySpec, available_mib: u64, group_limit_mib: Option<u64>) -> Option<String> {
        let budget = MemoryBudget {
            available_bytes: available_mib * MIB,
            group_limit_bytes: group_limit_mib.map(|limit| limit * MIB),
        };
        check(spec, Some(budget)).err().map(|error| error.to_string())
    }

    #[test]
    fn the_largest_cell_decides_and_the_limit_that_would_do_is_named() {
        let mut spec = sample::study(&["epoll", "uring"], 12, 1);
        let large = CellSpec { id: "c4000".to_owned(), connections: 4_000, ..spec.cells[0].clone() };
        spec.cells.insert(0, large);
        alternation::apply(&mut spec);
        // Three servers with 4000 connections of 16 KiB each, and the generator: 12 + 187.5 + 16 MiB, 0.25 in flight.
        assert_eq!(refusal(&spec, 216, None), None);
        assert!(check(&spec, None).is_ok(), "nobody knows");
        let refused = refusal(&spec, 200, Some(512)).expect("16 MiB are missing");
        for words in [
            "cell c4000, whose arms are up together",
            "need 216 MiB of memory or more, but 200 MiB are available",
            "from 512 to 528 MiB",
        ] {
            assert!(refused.contains(words), "{refused}");
        }
        assert!(refusal(&spec, 200, None).is_some_and(|told| told.contains("end what else holds memory")));
        spec.cells[0].alternation = None;
        assert_eq!(refusal(&spec, 84, None), None, "whole trials have one server at a time");
    }

    #[test]
    fn a_thread_for_each_connection_has_stacks_and_a_storage_job_has_neither() {
        let mut spec = sample::study(&["epoll", "blocking"], 12, 1);
        spec.cells[0].connections = 1_000;
        let all = needed_bytes(&spec, &spec.cells[0]);
        spec.arms.truncate(1);
        assert_eq!(all - needed_bytes(&spec, &spec.cells[0]), 1_000 * THREAD_BYTES);
        spec.cells[0].protocol = "storage".to_owned();
        assert_eq!(refusal(&spec, 0, None), None);
    }
}
