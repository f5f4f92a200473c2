//! How connections were established: what listeners lost, and which connections waited for a SYN retransmission.
//! Pure.
//!
//! A listener whose accept queue is full drops new connections, and the client's kernel retransmits its SYN at the
//! steps of a ladder (`weir_evidence::network`). A connection that took as long as a step has waited for a
//! retransmission, which is independent of the server's I/O model. So this is reported over all trials of an arm,
//! including excluded ones: an arm that loses connections may have no clean trial at all.

use hdrhistogram::Histogram;
use weir_record::{
    http::HttpLoadReport,
    latency::LatencySummary,
    load::LoadReport,
    machine::NetworkCounters,
    spec::{ArmSpec, CellSpec, StudySpec, Subject},
    study::{ListenSummary, TimesSummary},
    trial::TrialRecord,
};

use crate::histogram::{merged, quantile_ns};

/// How much later than a step of the ladder a connection may be established and still count as having waited for it:
/// for the handshake, and for a busy generator. The steps are at least a second apart.
const STEP_LATE_NS_MAX: u64 = 250_000_000;

/// How much earlier: kernel timers have tick resolution, and several segments of one connection share a timer.
const STEP_EARLY_NS_MAX: u64 = 30_000_000;

/// One line for each arm and cell; empty unless a listener lost a connection or had a short queue.
pub(crate) fn all(spec: &StudySpec, trials: &[&TrialRecord], syn_ladder_s: &[u32]) -> Vec<ListenSummary> {
    let has_lost = |trial: &&TrialRecord| trial.network.listen_overflows + trial.network.listen_drops > 0;
    if !trials.iter().any(has_lost) && !spec.arms.iter().any(has_short_queue) {
        return Vec::new();
    }
    let pairs = spec.cells.iter().flat_map(|cell| spec.arms.iter().map(move |arm| (cell, arm)));
    pairs
        .map(|(cell, arm)| of_arm(cell, arm, trials, syn_ladder_s))
        .filter(|summary| summary.trials > 0)
        .collect()
}

/// Whether the arm's listener has its own backlog setting.
fn has_short_queue(arm: &ArmSpec) -> bool {
    let Subject::Weir { arguments, .. } = &arm.subject else { return false };
    arguments.iter().any(|word| word.starts_with("--backlog"))
}

fn of_arm(cell: &CellSpec, arm: &ArmSpec, trials: &[&TrialRecord], syn_ladder_s: &[u32]) -> ListenSummary {
    let is_own = |trial: &&&TrialRecord| trial.cell_id == cell.id && trial.arm == arm.name;
    let own: Vec<&TrialRecord> = trials.iter().filter(is_own).copied().collect();
    let mut network = NetworkCounters::default();
    own.iter().for_each(|trial| network.merge(&trial.network));
    let loads: Vec<&LoadReport> = own.iter().filter_map(|trial| trial.load.as_ref()).collect();
    let https: Vec<&HttpLoadReport> = loads.iter().filter_map(|load| load.http.as_ref()).collect();
    let connect: Vec<&LatencySummary> = https.iter().map(|http| &http.connect).collect();
    let first_byte: Vec<&LatencySummary> = https.iter().map(|http| &http.first_byte).collect();
    let last_byte: Vec<&LatencySummary> = https.iter().map(|http| &http.last_byte).collect();
    ListenSummary {
        cell_id: cell.id.clone(),
        arm: arm.name.clone(),
        trials: u32::try_from(own.len()).unwrap_or(u32::MAX),
        network,
        connect: times(&connect),
        first_byte: times(&first_byte),
        last_byte: times(&last_byte),
        stalled: stalled(&histogram(&connect), syn_ladder_s),
    }
}

fn histogram(summaries: &[&LatencySummary]) -> Option<Histogram<u64>> {
    merged(summaries.iter().map(|summary| summary.histogram_v2_base64.as_str())).ok()
}

fn times(summaries: &[&LatencySummary]) -> TimesSummary {
    let merged = histogram(summaries);
    let quantile = |quantile| merged.as_ref().and_then(|merged| quantile_ns(merged, quantile));
    TimesSummary {
        count: summaries.iter().map(|summary| summary.count).sum(),
        p50_ns: quantile(0.5),
        p99_ns: quantile(0.99),
        ns_max: summaries.iter().map(|summary| summary.ns_max).max().unwrap_or(0),
    }
}

/// Number of connections that took as long as each step, without empty steps.
fn stalled(connect: &Option<Histogram<u64>>, syn_ladder_s: &[u32]) -> Vec<(u32, u64)> {
    let Some(connect) = connect else { return Vec::new() };
    let at = |step_s: &u32| {
        let step_ns = u64::from(*step_s) * 1_000_000_000;
        let (low, high) = (step_ns.saturating_sub(STEP_EARLY_NS_MAX), step_ns + STEP_LATE_NS_MAX);
        (*step_s, connect.count_between(low, high))
    };
    syn_ladder_s.iter().map(at).filter(|(_, count)| *count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn trial(arm: &str, overflows: u64) -> TrialRecord {
        let network = NetworkCounters {
            listen_overflows: overflows,
            listen_drops: overflows,
            tcp_retransmits: overflows,
            syn_retransmits: overflows,
            ..NetworkCounters::default()
        };
        let http = HttpLoadReport {
            connect: LatencySummary { count: 10, ns_max: 1_050_000_000, ..LatencySummary::default() },
            ..HttpLoadReport::default()
        };
        let load = LoadReport { http: Some(http), ..LoadReport::default() };
        TrialRecord {
            cell_id: "c100-d1-m64-closed".to_owned(),
            arm: arm.to_owned(),
            network,
            load: Some(load),
            ..TrialRecord::default()
        }
    }

    #[test]
    fn nothing_is_told_where_nothing_was_lost() {
        let spec = sample::study(&["epoll", "uring"], 4, 1);
        let quiet = trial("epoll", 0);
        assert_eq!(all(&spec, &[&quiet], &[1, 2, 3]), []);
    }

    #[test]
    fn every_arm_is_told_once_one_lost_connections_or_has_a_short_queue() {
        let mut spec = sample::study(&["epoll", "uring"], 4, 1);
        let (first, second, other) = (trial("epoll", 3), trial("epoll", 4), trial("uring", 0));
        let told = all(&spec, &[&first, &second, &other], &[1, 2, 3]);
        let lost: Vec<(&str, u32, u64)> = told
            .iter()
            .map(|summary| (summary.arm.as_str(), summary.trials, summary.network.listen_overflows))
            .collect();
        assert_eq!(lost, [("epoll", 2, 7), ("uring", 1, 0)]);
        assert_eq!((told[0].connect.count, told[0].connect.ns_max), (20, 1_050_000_000));
        if let Subject::Weir { arguments, .. } = &mut spec.arms[1].subject {
            *arguments = vec!["--backlog".to_owned(), "10".to_owned()];
        }
        assert_eq!(all(&spec, &[&other], &[]).len(), 1);
    }

    #[test]
    fn a_connection_that_took_as_long_as_a_step_waited_there() {
        let mut connect = Histogram::new(3).expect("three digits");
        for (milliseconds, count) in [(1, 900), (500, 5), (995, 2), (1_040, 40), (3_200, 7), (4_600, 9)] {
            connect.record_n(milliseconds * 1_000_000, count).expect("it resizes");
        }
        let connect = Some(connect);
        assert_eq!(stalled(&connect, &[1, 2, 3, 4, 5]), [(1, 42), (3, 7)]);
        assert_eq!(stalled(&connect, &[]), []);
        assert_eq!(stalled(&None, &[1]), []);
    }
}
