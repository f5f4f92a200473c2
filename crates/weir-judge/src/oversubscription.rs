//! Whether a cell has more threads than CPUs. Pure.

use std::collections::BTreeSet;

use weir_record::{
    effect::Effects,
    finding::Finding,
    spec::{ArmSpec, CellSpec, StudySpec, Subject},
    study::OversubscribedCell,
};

/// Engine option with which a kernel thread submits for each worker, and polls until it goes to sleep.
const SUBMITTING_THREAD: &str = "sqpoll-idle-ms";

/// The oversubscribed cells.
pub(crate) fn oversubscribed_cells(spec: &StudySpec, cpus_allowed: usize) -> Vec<OversubscribedCell> {
    let one = |cell: &CellSpec| {
        let (threads, cpus) = oversubscribed(spec, cell, cpus_allowed)?;
        Some(OversubscribedCell { cell_id: cell.id.clone(), threads, cpus })
    };
    spec.cells.iter().filter_map(one).collect()
}

/// Threads and CPUs, if there are more threads: then some always wait for a CPU, and a figure also depends on the
/// scheduler.
fn oversubscribed(spec: &StudySpec, cell: &CellSpec, cpus_allowed: usize) -> Option<(u32, u32)> {
    threads_and_cpus(spec, cell, cpus_allowed).filter(|(threads, cpus)| threads > cpus)
}

/// Threads per CPU.
pub(crate) fn for_each_cpu(spec: &StudySpec, cell: &CellSpec, cpus_allowed: usize) -> Option<f64> {
    let (threads, cpus) = threads_and_cpus(spec, cell, cpus_allowed).filter(|(_, cpus)| *cpus > 0)?;
    Some(f64::from(threads) / f64::from(cpus))
}

/// Threads of the servers, of the kernel for them, and of the generator, and the CPUs they share.
fn threads_and_cpus(spec: &StudySpec, cell: &CellSpec, cpus_allowed: usize) -> Option<(u32, u32)> {
    if cell.storage.is_some() {
        return None;
    }
    let exchange = cell.orders.as_ref();
    let nodes = 1 + u32::from(exchange.is_some());
    let threads = nodes * cell.workers + submitting_threads(spec, cell) + cell.load_workers;
    let of_exchange = exchange.map_or(&[][..], |orders| &orders.exchange_cpus);
    let pinned: BTreeSet<usize> =
        [spec.server_cpus_in(cell), spec.load_cpus_in(cell), of_exchange].concat().into_iter().collect();
    let cpus = if pinned.is_empty() { cpus_allowed } else { pinned.len() };
    Some((threads, u32::try_from(cpus).unwrap_or(u32::MAX)))
}

/// Kernel threads that submit for the workers of an arm of the cell.
fn submitting_threads(spec: &StudySpec, cell: &CellSpec) -> u32 {
    let has_them = |arm: &ArmSpec| match &arm.subject {
        Subject::Weir { options, .. } => options.contains_key(SUBMITTING_THREAD),
        Subject::Command { argv } => argv.iter().any(|word| word.contains(SUBMITTING_THREAD)),
        Subject::Running(_) | Subject::Gateway(_) | Subject::Storage(_) | Subject::Fio { .. } => false,
    };
    let is_there = spec.arms.iter().any(|arm| cell.has_arm(&arm.name) && has_them(arm));
    if is_there { cell.workers } else { 0 }
}

/// Cells with more threads than CPUs. Their comparisons get a note.
pub(crate) fn noted(spec: &StudySpec, cpus_allowed: usize, effects: &mut Effects) -> Vec<OversubscribedCell> {
    let cells = oversubscribed_cells(spec, cpus_allowed);
    for OversubscribedCell { cell_id, threads, cpus } in &cells {
        for comparison in effects.comparisons_mut().filter(|it| it.cell_id == *cell_id) {
            comparison.notes.push(Finding::Oversubscribed { threads: *threads, cpus: *cpus });
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn threads_of_both_sides_share_the_cpus_of_both() {
        let mut spec = sample::study(&["epoll", "uring"], 6, 1);
        assert_eq!(
            oversubscribed(&spec, &spec.cells[0], 8),
            None,
            "a CPU for the server and one for the generator"
        );
        spec.cells[0].workers = 2;
        assert_eq!(oversubscribed(&spec, &spec.cells[0], 8), Some((3, 2)));
        spec.cells[0].load_cpus = vec![1, 2];
        assert_eq!(oversubscribed(&spec, &spec.cells[0], 8), None);
        spec.cells[0].load_workers = 3;
        assert_eq!(oversubscribed(&spec, &spec.cells[0], 8), Some((5, 3)));
        (spec.server_cpus, spec.load_cpus, spec.cells[0].load_cpus) = Default::default();
        assert_eq!(oversubscribed(&spec, &spec.cells[0], 8), None, "nothing is pinned");
        assert_eq!(oversubscribed(&spec, &spec.cells[0], 4), Some((5, 4)));
    }

    #[test]
    fn a_thread_of_the_kernel_that_submits_for_a_worker_is_one_too() {
        let mut spec = sample::study(&["uring", "uring-sqpoll"], 6, 1);
        let Subject::Weir { options, .. } = &mut spec.arms[1].subject else { panic!("it is one of Weir's") };
        options.insert(SUBMITTING_THREAD.to_owned(), "100".to_owned());
        assert_eq!(oversubscribed(&spec, &spec.cells[0], 8), Some((3, 2)));
        let words = ["weir", "serve", "echo", "-o", "sqpoll-idle-ms=100"].map(str::to_owned);
        spec.arms[1].subject = Subject::Command { argv: words.into() };
        assert_eq!(oversubscribed(&spec, &spec.cells[0], 8), Some((3, 2)));
        spec.cells[0].arms = vec!["uring".to_owned()];
        assert_eq!(oversubscribed(&spec, &spec.cells[0], 8), None, "it runs elsewhere");
    }
}
