//! The effect of each cause of a published difference on this machine. Pure.
//!
//! A published figure says that one server did several times the work of another, and names the I/O model as the
//! reason. If such a comparison had other causes, a study has arms in which one of them is enabled. The ratio of the
//! published pair with the cause, divided by the same ratio without it, is the effect of the cause; on the
//! logarithmic scale, where ratios add up, it is a share of the published one. Shares of several causes need not add
//! up to one: causes may overlap, and a machine may have others.
//!
//! Throughput is what was published, but if the generator is the limit it hides what a server could do; so the same
//! is computed from the server's CPU per message, whose inverse is the work one CPU can do. Nothing here has a
//! verdict.

use weir_record::{
    effect::{Effect, EffectScale, Question},
    metric::Metric,
    published::{Cause, PublishedClaim},
    spec::StudySpec,
};
use weir_stats::decide::ALPHA;

use crate::{
    cell_trials::CellTrials,
    question::{self, Measured, Summed, Term},
};

/// A published ratio closer to one than this has no difference to attribute.
const PUBLISHED_RATIO_MIN: f64 = 1.1;

/// The attributed metrics and their signs: less CPU corresponds to more of the published work.
const METRICS: [(Metric, f64); 2] = [(Metric::Throughput, 1.0), (Metric::ServerCpuPerMessage, -1.0)];

/// The ratio and the share of each cause for both metrics, for each claim whose cell was measured.
pub(crate) fn all(spec: &StudySpec, measured: Measured<'_>, cells: &[CellTrials<'_>]) -> Vec<Effect> {
    let mut rows = Vec::new();
    for (claim_place, claim) in spec.published.iter().enumerate() {
        let Some(cell) = cells.iter().find(|cell| cell.spec.id == claim.cell_id) else { continue };
        for (cause_place, cause) in claim.causes.iter().enumerate() {
            let places = (question::place(claim_place), question::place(cause_place));
            let subject = |row: Effect, metric: Metric| Effect {
                cell_id: claim.cell_id.clone(),
                arm: cause.arm.clone(),
                baseline: cause.baseline.clone(),
                metric,
                is_paired: true,
                ..row
            };
            for (metric, _) in METRICS {
                rows.push(subject(ratio(measured, cell, cause, (metric, places)), metric));
            }
            for metric in METRICS {
                rows.push(subject(share(measured, cell, (claim, cause), (metric, places)), metric.0));
            }
        }
    }
    rows
}

/// The arm over the baseline with the cause enabled.
fn ratio(
    measured: Measured<'_>,
    cell: &CellTrials<'_>,
    cause: &Cause,
    (metric, (claim_place, cause_place)): (Metric, (u32, u32)),
) -> Effect {
    let found = term(1.0, cell, (&cause.arm, &cause.baseline), metric);
    let found = found.and_then(|term| measured.sum(&[term], Summed::OnItsScale, ALPHA));
    let row =
        question::row(Question::PublishedCause(claim_place, cause_place), EffectScale::Ratio, found.as_ref());
    // An arm compared with itself was not measured; its ratio is one.
    let is_itself = cause.arm == cause.baseline;
    Effect { estimate: row.estimate.or(is_itself.then_some(1.0)), ..row }
}

/// The cause's share of the published difference: the pair with it over the pair without, by round or block.
fn share(
    measured: Measured<'_>,
    cell: &CellTrials<'_>,
    (claim, cause): (&PublishedClaim, &Cause),
    ((metric, sign), (claim_place, cause_place)): ((Metric, f64), (u32, u32)),
) -> Effect {
    let published = claim.ratio.map(f64::ln).filter(|log| log.abs() >= PUBLISHED_RATIO_MIN.ln());
    let found = published.and_then(|published| {
        let weight = sign / published;
        let with = term(weight, cell, (&cause.arm, &cause.baseline), metric);
        let clean = term(-weight, cell, (&claim.arm, &claim.baseline), metric);
        let terms: Vec<Term<'_>> = with.into_iter().chain(clean).collect();
        measured.sum(&terms, Summed::OnItsScale, ALPHA)
    });
    question::row(Question::PublishedShare(claim_place, cause_place), EffectScale::Share, found.as_ref())
}

/// An arm compared with itself has no effect, and is no term.
fn term<'a>(
    weight: f64,
    cell: &'a CellTrials<'a>,
    (arm, baseline): (&'a str, &'a str),
    metric: Metric,
) -> Option<Term<'a>> {
    let term = Term { weight, cell, arm, baseline: Some(baseline), row: metric.row() };
    (arm != baseline).then_some(term)
}

#[cfg(test)]
mod tests {
    use weir_record::{load::LoadReport, text::Text, trial::TrialRecord, window::ObservedWindow};

    use super::*;
    use crate::{gate::ValidityGate, sample};

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

    /// uring and epoll equal at 100 a second and 5 µs; with the log epoll achieves 83.3 a second at 6 µs.
    fn rows(claim: PublishedClaim) -> Vec<Effect> {
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
        let measured = Measured { gate: &gate, first: "epoll" };
        all(&spec, measured, &[CellTrials::of(&spec.cells[0], &gate, &trials)])
    }

    fn of(rows: &[Effect], question: Question, metric: Metric) -> &Effect {
        let is_it = |row: &&Effect| row.question == question && row.metric == metric;
        rows.iter().find(is_it).expect("there is a row")
    }

    const CAUSE: Question = Question::PublishedCause(0, 0);
    const SHARE: Question = Question::PublishedShare(0, 0);

    #[test]
    fn a_cause_that_makes_the_square_root_explains_half() {
        let found = rows(claim(Some(1.44), "epoll"));
        assert_eq!(found.len(), 4);
        let throughput = of(&found, CAUSE, Metric::Throughput);
        assert!((throughput.estimate.expect("there are pairs") - 1.2).abs() < 1e-9, "{throughput:?}");
        assert_eq!((throughput.units, throughput.arm.as_str()), (6, "uring"));
        let cpu = of(&found, CAUSE, Metric::ServerCpuPerMessage);
        assert!((cpu.estimate.expect("there are pairs") - 5.0 / 6.0).abs() < 1e-9, "{cpu:?}");
        for metric in [Metric::Throughput, Metric::ServerCpuPerMessage] {
            let share = of(&found, SHARE, metric);
            assert!((share.estimate.expect("a share") - 0.5).abs() < 1e-9, "{share:?}");
            assert!(share.interval.is_some() && share.scale == EffectScale::Share, "{share:?}");
        }
    }

    #[test]
    fn a_difference_that_was_not_published_has_no_shares() {
        for ratio in [None, Some(1.04), Some(0.95)] {
            let found = rows(claim(ratio, "epoll"));
            assert_eq!(of(&found, SHARE, Metric::Throughput).estimate, None, "{ratio:?}");
            assert!(of(&found, CAUSE, Metric::Throughput).estimate.is_some());
        }
    }

    #[test]
    fn an_arm_that_was_not_run_gives_no_figures() {
        let mut missing = claim(Some(1.44), "epoll");
        missing.causes[0].baseline = "epoll-gone".to_owned();
        let found = rows(missing);
        assert!(found.iter().all(|row| row.estimate.is_none()), "{found:?}");
        // Without a clean pair, the ratio of an arm to itself is still one.
        let alone = rows(PublishedClaim { arm: "epoll".to_owned(), ..claim(Some(1.44), "epoll") });
        let share = of(&alone, SHARE, Metric::Throughput).estimate.expect("a share");
        assert!((share - 0.5).abs() < 1e-9);
    }
}
