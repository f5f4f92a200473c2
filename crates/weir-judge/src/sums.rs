//! Sums over slices of evidence. Pure.

use std::collections::BTreeMap;

use weir_record::trial::{EvidenceSlice, Reading, TrialRecord};

/// Calls for I/O that Weir engines count and time, by their names in the kernel.
pub(crate) const ENGINE_CALLS: [&str; 17] = [
    "io_uring_enter",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "recvfrom",
    "recvmsg",
    "sendto",
    "sendmsg",
    "sendfile",
    "sendfile64",
    "epoll_ctl",
    "accept",
    "accept4",
];

/// Calls that ask which descriptors are ready.
pub(crate) const WAITS: [&str; 7] =
    ["epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "select", "pselect6"];

/// Calls for I/O of one kind.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// The engine's counters of it (`EngineStats`), as rows name them.
    pub(crate) counters: &'static [&'static str],
    /// Their names in the kernel.
    pub(crate) calls: &'static [&'static str],
}

/// [`ENGINE_CALLS`] by kind. A wait for a single descriptor counts like any other in the kernel.
pub(crate) static ENGINE_KINDS: [Kind; 6] = [
    Kind { name: "enter", counters: &["enters"], calls: &["io_uring_enter"] },
    Kind { name: "wait", counters: &["wait-calls", "poll-calls"], calls: &WAITS },
    Kind { name: "receive", counters: &["recv-calls"], calls: &["recvfrom", "recvmsg"] },
    Kind { name: "send", counters: &["send-calls"], calls: &["sendto", "sendmsg", "sendfile", "sendfile64"] },
    Kind { name: "interest", counters: &["interest-calls"], calls: &["epoll_ctl"] },
    Kind { name: "accept", counters: &["accept-calls"], calls: &["accept", "accept4"] },
];

/// The programs at the edges of system calls, which every slice observed by kernel programs has.
pub(crate) const GROUP_OF_CALLS: &str = "calls";

/// Repeated reading of /proc, by a watch without programs.
pub(crate) const GROUP_OF_PROC: &str = "proc";

/// The source of rows about an observer itself, and of failures of the kernel's programs or `strace`.
pub(crate) const OBSERVER: &str = "observer";
pub(crate) const PROGRAMS_FAILED: &str = "programs-failed";
const STRACE_FAILED: &str = "strace-failed";

/// Slices in which every message was right, and whose observers succeeded and were complete.
pub(crate) fn right(trial: &TrialRecord) -> impl Iterator<Item = &EvidenceSlice> {
    of_right_messages(trial).filter(|slice| further_group(slice).is_none())
}

/// Slices with only some of the kernel's programs, for measuring their cost: the group besides the calls, or the
/// calls. Also those with only repeated reading of /proc.
pub(crate) fn by_group(trial: &TrialRecord) -> impl Iterator<Item = (&str, &EvidenceSlice)> {
    of_right_messages(trial).filter_map(|slice| Some((further_group(slice)?, slice)))
}

fn of_right_messages(trial: &TrialRecord) -> impl Iterator<Item = &EvidenceSlice> {
    let is_right = |slice: &&EvidenceSlice| slice.slice.errors == 0 && slice.slice.messages > 0;
    let was_seen = |slice: &&EvidenceSlice| {
        let is_failure = |row: &Reading| {
            row.source == OBSERVER && [PROGRAMS_FAILED, STRACE_FAILED].contains(&row.key.as_str())
        };
        !slice.readings.iter().any(is_failure)
    };
    trial.evidence.iter().filter(is_right).filter(was_seen)
}

/// `None` if all groups observed, or none did. Older evidence does not contain this: then all did.
pub(crate) fn further_group(slice: &EvidenceSlice) -> Option<&str> {
    let of_trace = slice.readings.iter().filter(|row| row.source == "trace");
    let groups: Vec<&str> = of_trace.filter_map(|row| row.key.strip_prefix("group-")).collect();
    match groups.as_slice() {
        [only] => Some(only),
        [one, other] => Some(if *one == GROUP_OF_CALLS { other } else { one }),
        _ => None,
    }
}

/// Whether the kernel charges no process for softirqs; `None` if this was not observed.
pub(crate) fn softirqs_are_apart(sums: &Sums<'_>) -> Option<bool> {
    sums.rows.get(&("trace", "softirqs-are-apart")).map(|are_apart| *are_apart > 0.0)
}

/// The sums over several slices.
pub(crate) struct Sums<'a> {
    pub(crate) slices: usize,
    pub(crate) messages: u64,
    pub(crate) server_cpu_ns: u64,
    pub(crate) rows: BTreeMap<(&'a str, &'a str), f64>,
}

impl<'a> Sums<'a> {
    pub(crate) fn of(slices: &[&'a EvidenceSlice]) -> Self {
        let mut sums = Self { slices: slices.len(), messages: 0, server_cpu_ns: 0, rows: BTreeMap::new() };
        for evidence in slices {
            sums.messages += evidence.slice.messages;
            sums.server_cpu_ns += evidence.slice.server_cpu_ns;
            for row in &evidence.readings {
                *sums.rows.entry((&row.source, &row.key)).or_default() += row.value;
            }
        }
        sums
    }

    pub(crate) fn value(&self, source: &str, key: &str) -> f64 {
        self.rows.get(&(source, key)).copied().unwrap_or(0.0)
    }

    /// The same per message.
    pub(crate) fn each(&self, source: &str, key: &str) -> f64 {
        self.value(source, key) / self.messages as f64
    }

    /// Sources with this prefix and a nonzero count.
    pub(crate) fn sources(&self, prefix: &str) -> impl Iterator<Item = &'a str> {
        self.rows
            .keys()
            .filter(|(_, key)| *key == "count")
            .map(|(source, _)| *source)
            .filter(move |it| it.starts_with(prefix))
    }

    /// Names of the observed calls.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &'a str> {
        self.sources("call ").filter_map(|source| source.strip_prefix("call "))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_kinds_are_all_calls_that_engines_count_each_once() {
        let by_kind: Vec<&str> = ENGINE_KINDS.iter().flat_map(|kind| kind.calls).copied().collect();
        assert_eq!(by_kind.len(), ENGINE_CALLS.len());
        let set = |names: &[&'static str]| names.iter().copied().collect::<BTreeSet<&str>>();
        assert_eq!(set(&by_kind), set(&ENGINE_CALLS));
    }
}
