//! What each cause of a published difference makes on this machine. Pure.
//!
//! A published figure says that one server did so many times the work of another, and names the I/O model
//! as the reason. Where such a comparison had other causes, a study has arms in which one of them is switched on. The
//! ratio of the published pair with the cause in it, over the same ratio without, is what the cause makes; on the scale
//! of logarithms, where ratios add up, it is a share of the published one. Shares of several causes need not add up to
//! one: causes may overlap, and a machine may have others.
//!
//! Throughput is what was published, but where the generator is the limit it hides what a server could do; so the same
//! is told from the server's CPU per message, whose inverse is the work one CPU can do. Nothing here has a verdict.

use weir_record::{
    figure::PairedRatio,
    metric::Metric,
    published::{Cause, PublishedClaim},
    spec::StudySpec,
    study::Attribution,
};

use crate::{
    cell_trials::CellTrials,
    gate::ValidityGate,
    units::{self, Compared},
};

/// A published ratio nearer to one than this has no difference to hand out shares of.
const PUBLISHED_RATIO_MIN: f64 = 1.1;

/// One line for each cause of each claim whose cell was measured.
pub(crate) fn all(spec: &StudySpec, gate: &ValidityGate, cells: &[CellTrials<'_>]) -> Vec<Attribution> {
    let mut found = Vec::new();
    for claim in &spec.published {
        let Some(cell) = cells.iter().find(|cell| cell.spec.id == claim.cell_id) else { continue };
        let clean = Cause { arm: claim.arm.clone(), baseline: claim.baseline.clone() };
        let clean = Logs::of(spec, gate, cell, &clean);
        for cause in &claim.causes {
            let with = Logs::of(spec, gate, cell, cause);
            found.push(attribution(claim, cause, &clean, &with));
        }
    }
    found
}

fn attribution(claim: &PublishedClaim, cause: &Cause, clean: &Logs, with: &Logs) -> Attribution {
    let published = claim.ratio.map(f64::ln).filter(|log| log.abs() >= PUBLISHED_RATIO_MIN.ln());
    let share = |with: Option<f64>, clean: Option<f64>| Some((with? - clean?) / published?);
    let inverse = |log: Option<f64>| log.map(|log| -log);
    Attribution {
        claim: claim.id.clone(),
        cell_id: claim.cell_id.clone(),
        arm: cause.arm.clone(),
        baseline: cause.baseline.clone(),
        throughput: with.throughput,
        server_cpu: with.server_cpu,
        throughput_share: share(log(with.throughput), log(clean.throughput)),
        server_cpu_share: share(inverse(log(with.server_cpu)), inverse(log(clean.server_cpu))),
    }
}

fn log(ratio: Option<PairedRatio>) -> Option<f64> {
    ratio.map(|ratio| ratio.ratio.ln())
}

/// Ratios of one pair of arms.
struct Logs {
    throughput: Option<PairedRatio>,
    server_cpu: Option<PairedRatio>,
}

impl Logs {
    fn of(spec: &StudySpec, gate: &ValidityGate, cell: &CellTrials<'_>, pair: &Cause) -> Self {
        let ratio = |metric: Metric| {
            if pair.arm == pair.baseline {
                return Some(PairedRatio { ratio: 1.0, interval: None, pairs: 0 });
            }
            let (arm, baseline) = (pair.arm.as_str(), pair.baseline.as_str());
            let compared = Compared { arm, baseline, first: &spec.arms[0].name, row: metric.row() };
            units::of(gate, cell, compared).ratio()
        };
        Self { throughput: ratio(Metric::Throughput), server_cpu: ratio(Metric::ServerCpuPerMessage) }
    }
}

#[cfg(test)]
mod tests {
    use weir_record::{load::LoadReport, text::Text, trial::TrialRecord, window::ObservedWindow};

    use super::*;
    use crate::sample;

    fn trial(arm: &str, block: u32, throughput: f64, cpu_us: f64) -> TrialRecord {
        let load = LoadReport {
            messages: 1_000,
            message_bytes: 1,
            bytes_verified: 1_000,
            throughput_per_second: throughput,
            observed: Some(ObservedWindow { cpu_ns: (cpu_us * 1e6) as u64, ..ObservedWindow::default() }),
            ..LoadReport::default()
        };
        TrialRecord {
            cell_id: "c100-d1-m64-closed".to_owned(),
            arm: arm.to_owned(),
            block,
            load: Some(load),
            ..TrialRecord::default()
        }
    }

    fn claim(ratio: Option<f64>, baseline: &str) -> PublishedClaim {
        PublishedClaim {
            id: "S2-08".to_owned(),
            source: Text::default(),
            claim: "uring 1.44 times epoll".into(),
            ratio,
            metric: Metric::Throughput,
            cell_id: "c100-d1-m64-closed".to_owned(),
            arm: "uring".to_owned(),
            baseline: baseline.to_owned(),
            explanation: "because".into(),
            causes: vec![Cause { arm: "uring".to_owned(), baseline: "epoll-log".to_owned() }],
        }
    }

    /// uring and epoll alike at 100 a second and 5 µs; with the log epoll gives 83.3 a second at 6 µs.
    fn attributions(claim: PublishedClaim) -> Vec<Attribution> {
        let mut spec = sample::study(&["epoll", "uring", "epoll-log"], 6, 1);
        spec.published = vec![claim];
        let mut trials = Vec::new();
        for block in 0..6 {
            trials.push(trial("epoll", block, 100.0, 5.0));
            trials.push(trial("uring", block, 100.0, 5.0));
            trials.push(trial("epoll-log", block, 100.0 / 1.2, 6.0));
        }
        let gate = ValidityGate::new(&trials);
        let trials: Vec<&TrialRecord> = trials.iter().collect();
        all(&spec, &gate, &[CellTrials::of(&spec.cells[0], &gate, &trials)])
    }

    #[test]
    fn a_cause_that_makes_the_square_root_explains_half() {
        let found = attributions(claim(Some(1.44), "epoll"));
        let [one] = found.as_slice() else { panic!("{found:?}") };
        let ratio = |ratio: Option<PairedRatio>| ratio.expect("there are pairs");
        assert!((ratio(one.throughput).ratio - 1.2).abs() < 1e-9, "{one:?}");
        assert!((ratio(one.server_cpu).ratio - 5.0 / 6.0).abs() < 1e-9, "{one:?}");
        assert_eq!(ratio(one.throughput).pairs, 6);
        assert!((one.throughput_share.expect("a share") - 0.5).abs() < 1e-9, "{one:?}");
        assert!((one.server_cpu_share.expect("a share") - 0.5).abs() < 1e-9, "{one:?}");
    }

    #[test]
    fn a_difference_that_was_not_published_has_no_shares() {
        for ratio in [None, Some(1.04), Some(0.95)] {
            let found = attributions(claim(ratio, "epoll"));
            assert_eq!((found[0].throughput_share, found[0].server_cpu_share), (None, None), "{ratio:?}");
            assert!(found[0].throughput.is_some());
        }
    }

    #[test]
    fn an_arm_that_was_not_run_gives_no_figures() {
        let mut missing = claim(Some(1.44), "epoll");
        missing.causes[0].baseline = "epoll-gone".to_owned();
        let found = attributions(missing);
        assert_eq!((found[0].throughput, found[0].server_cpu_share), (None, None));
        // Without a clean pair, one against itself is one.
        let alone = PublishedClaim { arm: "epoll".to_owned(), ..claim(Some(1.44), "epoll") };
        assert!((attributions(alone)[0].throughput_share.expect("a share") - 0.5).abs() < 1e-9);
    }
}
