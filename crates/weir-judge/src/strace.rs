//! System calls as strace sums them, and the sum without waiting and without strace's own effect. Pure.
//!
//! Each arm has one slice under strace, in the first round. Its counts are right for a slowed server; its times are
//! those between start and end of a call, including waiting, with two stops in each. They are used in no comparison.

use weir_record::{
    evidence::{KernelTime, UnderStrace},
    observation::{Rung, StraceRow},
    spec::{CellSpec, StudySpec},
    trial::{EvidenceSlice, TrialRecord},
};

use crate::{sums::right, syscall_coverage};

/// One entry for each arm and cell that ran under strace.
pub(crate) fn all(spec: &StudySpec, trials: &[&TrialRecord]) -> Vec<UnderStrace> {
    let arms = |cell| spec.arms.iter().map(move |arm| (cell, arm.name.as_str()));
    spec.cells.iter().flat_map(arms).filter_map(|(cell, arm)| of_arm(cell, arm, trials)).collect()
}

fn of_arm(cell: &CellSpec, arm: &str, trials: &[&TrialRecord]) -> Option<UnderStrace> {
    let own = || trials.iter().filter(|trial| trial.cell_id == cell.id && trial.arm == arm);
    let on = |rung: Rung| own().flat_map(|trial| right(trial)).filter(move |slice| slice.rung == rung);
    let slowed = on(Rung::Strace).next()?;
    let mut rows = rows(slowed);
    rows.sort_by_key(|row| std::cmp::Reverse(row.time_ns));
    let per_second = |slices: &[&EvidenceSlice]| {
        let messages: u64 = slices.iter().map(|slice| slice.slice.messages).sum();
        let length_ns: u64 = slices.iter().map(|slice| slice.slice.length_ns).sum();
        Some(messages as f64 * 1e9 / length_ns as f64).filter(|rate| rate.is_finite())
    };
    let free: Vec<&EvidenceSlice> = on(Rung::Process).collect();
    Some(UnderStrace {
        cell_id: cell.id.clone(),
        arm: arm.to_owned(),
        length_ns: slowed.slice.length_ns,
        messages: slowed.slice.messages,
        needed: Some(syscall_coverage::under_strace(cell, slowed.slice.messages, &rows)),
        rows,
        kept: per_second(&[slowed]).zip(per_second(&free)).map(|(slowed, free)| slowed / free),
        kernel: kernel(&on(Rung::Programs).collect::<Vec<_>>()),
    })
}

fn rows(slice: &EvidenceSlice) -> Vec<StraceRow> {
    let mut rows: Vec<StraceRow> = Vec::new();
    for row in &slice.readings {
        let Some(name) = row.source.strip_prefix("strace ") else { continue };
        let own = match rows.iter().position(|own| own.name == name) {
            Some(own) => own,
            None => {
                rows.push(StraceRow { name: name.to_owned(), ..StraceRow::default() });
                rows.len() - 1
            }
        };
        let value = row.value.round() as u64;
        match row.key.as_str() {
            "count" => rows[own].calls = value,
            "errors" => rows[own].errors = value,
            "time-ns" => rows[own].time_ns = value,
            _ => {}
        }
    }
    rows
}

fn kernel(slices: &[&EvidenceSlice]) -> Option<KernelTime> {
    let sum = |key: &str| -> f64 {
        let rows = slices.iter().flat_map(|slice| &slice.readings);
        rows.filter(|row| row.key == key && row.source.starts_with("call ")).map(|row| row.value).sum()
    };
    let messages: u64 = slices.iter().map(|slice| slice.slice.messages).sum();
    let seconds = slices.iter().map(|slice| slice.slice.length_ns).sum::<u64>() as f64 / 1e9;
    let [on_cpu_ns, queued_ns, blocked_ns] = ["on-cpu-ns", "queued-ns", "blocked-ns"].map(sum);
    (messages > 0 && seconds > 0.0).then(|| KernelTime {
        wall_ns_per_second: (on_cpu_ns + queued_ns + blocked_ns) / seconds,
        awake_ns_per_second: (on_cpu_ns + queued_ns) / seconds,
        on_cpu_ns_per_second: on_cpu_ns / seconds,
        on_cpu_ns: on_cpu_ns / messages as f64,
    })
}

#[cfg(test)]
mod tests {
    use weir_record::{
        evidence::SeenOfNeeded,
        trial::{Reading, SliceRecord},
    };

    use super::*;
    use crate::sample::study;

    fn slice(rung: Rung, messages: u64, readings: &[(&str, &str, f64)]) -> EvidenceSlice {
        let reading = |(source, key, value): &(&str, &str, f64)| Reading {
            source: (*source).to_owned(),
            key: (*key).to_owned(),
            value: *value,
        };
        EvidenceSlice {
            rung,
            slice: SliceRecord { length_ns: 500_000_000, messages, ..SliceRecord::default() },
            readings: readings.iter().map(reading).collect(),
        }
    }

    /// 118 times the time, nearly all of it asleep: half a second in epoll_wait, and 4 µs of work per message.
    #[test]
    fn a_sum_that_is_waiting_dissolves_when_waiting_is_taken_out() {
        let spec = study(&["epoll", "uring"], 8, 1);
        let waits = [
            ("strace epoll_wait", "count", 100.0),
            ("strace epoll_wait", "time-ns", 480e6),
            ("strace recvfrom", "count", 200.0),
            ("strace recvfrom", "errors", 100.0),
            ("strace recvfrom", "time-ns", 10e6),
        ];
        let seen = [
            ("call epoll_wait", "on-cpu-ns", 1e6),
            ("call epoll_wait", "blocked-ns", 470e6),
            ("call epoll_wait", "queued-ns", 2e6),
            ("call recvfrom", "on-cpu-ns", 3e6),
            ("softirq net-rx", "ns", 7e9),
        ];
        let trial = TrialRecord {
            cell_id: spec.cells[0].id.clone(),
            arm: "epoll".to_owned(),
            evidence: vec![
                slice(Rung::Process, 1_000, &[]),
                slice(Rung::Programs, 800, &seen),
                slice(Rung::Strace, 100, &waits),
            ],
            ..TrialRecord::default()
        };
        let found = all(&spec, &[&trial]);
        let [epoll] = found.as_slice() else { panic!("{found:?}") };
        let names: Vec<(&str, u64, u64)> =
            epoll.rows.iter().map(|row| (row.name.as_str(), row.calls, row.errors)).collect();
        assert_eq!(names, [("epoll_wait", 100, 0), ("recvfrom", 200, 100)]);
        assert_eq!((epoll.kept, epoll.time_ns_per_second()), (Some(0.1), 980e6));
        assert_eq!(epoll.needed, Some(SeenOfNeeded { seen: 100, needed: 200 }), "who answers is not in it");
        let expected = KernelTime {
            wall_ns_per_second: 952e6,
            awake_ns_per_second: 12e6,
            on_cpu_ns_per_second: 8e6,
            on_cpu_ns: 5_000.0,
        };
        assert_eq!(epoll.kernel, Some(expected));
        let summed = crate::evidence::all(&spec, &[&trial]);
        assert_eq!(
            (summed[0].rung, summed[0].messages),
            (Rung::Programs, 800),
            "strace is no evidence of cost"
        );
    }

    #[test]
    fn without_the_programs_and_without_a_free_slice_only_strace_speaks() {
        let spec = study(&["epoll", "uring"], 8, 1);
        let trial = |evidence| TrialRecord {
            cell_id: spec.cells[0].id.clone(),
            arm: "uring".to_owned(),
            evidence,
            ..TrialRecord::default()
        };
        let alone = trial(vec![slice(Rung::Strace, 10, &[])]);
        let found = all(&spec, &[&alone]);
        assert_eq!((found[0].kept, found[0].kernel, found[0].rows.len()), (None, None, 0));
        assert!(all(&spec, &[&trial(vec![slice(Rung::Process, 10, &[])])]).is_empty());
    }
}
