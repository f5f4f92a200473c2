//! Figures from an exported study. What the laboratory compared is taken as it judged it; what lies between cells, or
//! within one trial, is paired here by the same rules: same block, clean trials, one state of the machine. Pure.

use std::collections::BTreeSet;

use serde::Deserialize;
use weir_record::{
    finding::Finding,
    study::StudyResult,
    trial::TrialRecord,
    verdict::{Comparison, Metric},
};
use weir_stats::{interval::paired_interval, order};

use super::goal::Measured;

/// What `weir export --format json` prints.
#[derive(Clone, Debug, Deserialize)]
pub struct Export {
    /// The judged study.
    pub result: StudyResult,
    /// Every trial, with all its taints.
    pub trials: Vec<TrialRecord>,
}

impl Export {
    /// Whether every planned block ran. Some may lack a clean pair all the same, when the time cap came before they
    /// could be repeated; the pairs that are left then speak for themselves, with a wider interval.
    pub fn has_all_blocks(&self) -> bool {
        let ran: BTreeSet<(&str, u32)> =
            self.trials.iter().map(|trial| (trial.cell_id.as_str(), trial.block)).collect();
        let mut planned = self.result.spec.cells.iter();
        planned.all(|cell| (0..cell.blocks).all(|block| ran.contains(&(cell.id.as_str(), block))))
    }
}

/// One number of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// CPU time of the server's processes per message.
    ServerCpu,
    /// Messages per second of the server's CPU time: throughput that no generator limits.
    MessagesPerServerCpu,
    /// Messages per second of the window, whatever limits them.
    Throughput,
    /// CPU time of the generator's threads per message.
    GeneratorCpu,
    /// Median response time.
    ResponseP50,
}

/// One side of a ratio.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// Cell.
    pub cell: &'a str,
    /// Arm.
    pub arm: &'a str,
    /// What is taken.
    pub quantity: Quantity,
}

/// The laboratory's own comparison of an arm with the baseline.
pub fn judged(export: &Export, cell: &str, arm: &str, metric: Metric) -> Result<Measured, String> {
    let is_meant =
        |it: &&Comparison| it.cell_id == cell && it.arm == arm && it.metric == metric && it.pairs > 0;
    let Some(comparison) = export.result.comparisons.iter().find(is_meant) else {
        return Err(absence(export, cell, arm));
    };
    let ratio = comparison.ratio.ok_or_else(|| absence(export, cell, arm))?;
    let is_barred = comparison.verdict == weir_record::verdict::Verdict::NotComparable;
    Ok(Measured {
        ratio,
        interval: comparison.interval,
        confidence: comparison.confidence,
        verdict: Some(comparison.verdict),
        note: if is_barred { codes(&comparison.reasons) } else { String::new() },
    })
}

/// Findings by their codes, which a page of figures can stand.
fn codes(findings: &[Finding]) -> String {
    findings.iter().map(Finding::code).collect::<Vec<_>>().join("; ")
}

/// Ratio of two sides, block by block.
pub fn paired(export: &Export, of: &Side<'_>, to: &Side<'_>) -> Result<Measured, String> {
    let states = States::of(export);
    let blocks = export.result.spec.cells.iter().map(|cell| cell.blocks).max().unwrap_or(0);
    let logs = |is_far: bool| -> Vec<f64> {
        (0..blocks).filter_map(|block| log_ratio(export, states, is_far, block, of, to)).collect()
    };
    let (near, far) = (logs(false), logs(true));
    let (logs, state) = if far.len() > near.len() { (far, "far state") } else { (near, "") };
    let mut measured =
        from_logs(&logs, export.result.spec.seed).ok_or_else(|| absence(export, of.cell, of.arm))?;
    measured.note = state.to_owned();
    Ok(measured)
}

/// CPU per message of one arm against the best of the others. That the best is chosen after the fact tells against the
/// one.
pub fn against_best(export: &Export, cell: &str, arm: &str) -> Result<Measured, String> {
    let of = Side { cell, arm, quantity: Quantity::ServerCpu };
    let others = export.result.spec.arms.iter().filter(|other| other.name != arm);
    let compared = others.filter_map(|other| {
        let measured = paired(export, &of, &Side { arm: &other.name, ..of }).ok()?;
        Some((&other.name, measured))
    });
    let worst = compared.max_by(|(_, one), (_, other)| one.ratio.total_cmp(&other.ratio));
    let (best, mut measured) = worst.ok_or_else(|| absence(export, cell, arm))?;
    measured.note =
        format!("best is {best}") + if measured.note.is_empty() { "" } else { "; " } + &measured.note;
    Ok(measured)
}

/// Median and interval of log-ratios, with no verdict.
pub fn from_logs(logs: &[f64], seed: u64) -> Option<Measured> {
    let (median, interval) = (order::median(logs)?, paired_interval(logs, seed)?);
    Some(Measured {
        ratio: median.exp(),
        interval: Some((interval.low.exp(), interval.high.exp())),
        confidence: interval.confidence,
        verdict: None,
        note: String::new(),
    })
}

/// Why there is no figure.
fn absence(export: &Export, cell: &str, arm: &str) -> String {
    let missing = export.result.missing_arms.iter().find(|missing| missing.name == arm);
    missing.map_or_else(
        || format!("no pair of clean trials of {arm} in {cell}"),
        |missing| format!("{arm} is missing: {}", missing.reason),
    )
}

/// Boundary between the machine's states, when it has two.
#[derive(Clone, Copy)]
struct States {
    boundary_ns: Option<f64>,
}

impl States {
    fn of(export: &Export) -> Self {
        Self { boundary_ns: export.result.states.boundary_ns }
    }

    fn is_far(self, trial: &TrialRecord) -> bool {
        let readings = [trial.reading_before.round_trip_ns, trial.reading_after.round_trip_ns];
        self.boundary_ns.is_some_and(|boundary| readings.iter().any(|reading| *reading > boundary))
    }
}

fn log_ratio(
    export: &Export,
    states: States,
    is_far: bool,
    block: u32,
    of: &Side<'_>,
    to: &Side<'_>,
) -> Option<f64> {
    let runs = |side: &Side<'_>| -> Vec<&TrialRecord> {
        let is_side = |trial: &&TrialRecord| {
            trial.cell_id == side.cell && trial.arm == side.arm && trial.block == block
        };
        let is_used = |trial: &&TrialRecord| trial.taints.is_empty() && states.is_far(trial) == is_far;
        let mut runs: Vec<_> = export.trials.iter().filter(is_side).filter(is_used).collect();
        runs.sort_by_key(|trial| (trial.attempt, trial.repeat));
        runs
    };
    let (own, others) = (runs(of), runs(to));
    own.iter().find_map(|one| {
        // Within a cell both sides belong to one attempt; between cells there is no such thing.
        let other = others.iter().find(|other| of.cell != to.cell || other.attempt == one.attempt)?;
        order::log_ratio(value(one, of.quantity)?, value(other, to.quantity)?)
    })
}

fn value(trial: &TrialRecord, quantity: Quantity) -> Option<f64> {
    let load = trial.load.as_ref().filter(|load| load.messages > 0)?;
    let server_ns = load.observed.as_ref().map(|seen| seen.cpu_ns as f64);
    let messages = load.messages as f64;
    match quantity {
        Quantity::ServerCpu => server_ns.map(|ns| ns / messages),
        Quantity::MessagesPerServerCpu => server_ns.map(|ns| messages / ns),
        Quantity::Throughput => Some(load.throughput_per_second),
        Quantity::GeneratorCpu => Some(load.generator_cpu_ns as f64 / messages),
        Quantity::ResponseP50 => load.response.quantile_ns(0.5).map(|ns| ns as f64),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use weir_record::{
        load::LoadReport,
        machine::{CrossCoreReading, Fingerprint},
        spec::{ArmSpec, CellRole, CellSpec, LoadMode, StudySpec, Subject},
        study::MachineStates,
        trial::{ObservedWindow, Taint},
        verdict::Verdict,
    };

    use super::*;

    fn cell(id: &str) -> CellSpec {
        CellSpec {
            id: id.to_owned(),
            role: CellRole::Headline,
            connections: 1,
            depth: 1,
            message_bytes: 64,
            idle_connections: 0,
            workers: 1,
            load_workers: 1,
            load_cpus: Vec::new(),
            load: LoadMode::Closed,
            window_ns: 1,
            warmup_ns_max: 1,
            blocks: 6,
            http: None,
            orders: None,
            storage: None,
            alternation: None,
            arms: vec![],
        }
    }

    /// A study of cells `a` and `b` and arms `x` and `y`, without trials.
    pub fn export() -> Export {
        let arm = |name: &str| ArmSpec {
            name: name.to_owned(),
            subject: Subject::Command { argv: vec!["{port}".to_owned()] },
            load_options: [].into(),
        };
        let spec = StudySpec {
            name: "s".to_owned(),
            title: "t".into(),
            seed: 1,
            arms: vec![arm("x"), arm("y")],
            cells: vec![cell("a"), cell("b")],
            server_cpus: vec![],
            load_cpus: vec![],
            smallest_effect: 0.03,
            time_cap_ns: 1,
            published: vec![],
            ways: vec![],
            missing_cells: Vec::new(),
        };
        let result = StudyResult {
            schema_version: 1,
            spec,
            fingerprint: Fingerprint::default(),
            headline: None,
            verdict: Verdict::Inconclusive,
            comparisons: vec![],
            arms: vec![],
            checks: vec![],
            states: MachineStates::default(),
            timeline: vec![],
            missing_arms: vec![],
            complete: true,
            elapsed_ns: 0,
            reproduce: String::new(),
            attributions: vec![],
            listening: vec![],
            syn_ladder_s: vec![],
            gateway: None,
            frontier: Vec::new(),
            frontier_answers: Vec::new(),
        };
        Export { result, trials: vec![] }
    }

    fn trial(cell: &str, arm: &str, block: u32, cpu_ns: u64) -> TrialRecord {
        let observed = ObservedWindow { cpu_ns, ..ObservedWindow::default() };
        let load = LoadReport { messages: 10, observed: Some(observed), ..LoadReport::default() };
        let near = CrossCoreReading { round_trip_ns: 100.0, ..CrossCoreReading::default() };
        TrialRecord {
            cell_id: cell.to_owned(),
            arm: arm.to_owned(),
            block,
            reading_before: near,
            reading_after: near,
            load: Some(load),
            ..TrialRecord::default()
        }
    }

    fn side(cell: &'static str, arm: &'static str) -> Side<'static> {
        Side { cell, arm, quantity: Quantity::ServerCpu }
    }

    #[test]
    fn cells_are_paired_block_by_block_and_tainted_or_far_trials_stay_out() {
        let mut export = export();
        for block in 0..6 {
            export.trials.push(trial("a", "x", block, 1_000 + u64::from(block)));
            export.trials.push(trial("b", "x", block, 2 * (1_000 + u64::from(block))));
        }
        let ratio = |export: &Export| paired(export, &side("b", "x"), &side("a", "x"));
        let measured = ratio(&export).expect("six pairs");
        assert!((measured.ratio - 2.0).abs() < 1e-9 && measured.confidence > 0.96, "{measured:?}");

        export.trials[1].taints.push(Taint::Steal);
        let fewer = ratio(&export).expect("five pairs");
        assert!(fewer.confidence < 0.95, "{fewer:?}");

        export.result.states.boundary_ns = Some(50.0);
        assert_eq!(ratio(&export).expect("all are far").note, "far state");
    }

    #[test]
    fn throughput_is_what_the_generator_counted_and_not_what_it_could_have_been() {
        let mut export = export();
        for block in 0..6 {
            for (cell, per_second) in [("a", 100.0), ("b", 350.0)] {
                let mut trial = trial(cell, "x", block, 1_000);
                if let Some(load) = &mut trial.load {
                    load.throughput_per_second = per_second;
                }
                export.trials.push(trial);
            }
        }
        let throughput = |cell| Side { cell, arm: "x", quantity: Quantity::Throughput };
        let measured = paired(&export, &throughput("b"), &throughput("a")).expect("six pairs");
        assert!((measured.ratio - 3.5).abs() < 1e-9, "{measured:?}");
    }

    #[test]
    fn all_blocks_of_all_cells_must_have_run_whatever_came_of_them() {
        let mut export = export();
        for cell in ["a", "b"] {
            for block in 0..6 {
                assert!(!export.has_all_blocks(), "{cell} {block}");
                let taints = vec![Taint::Steal];
                export.trials.push(TrialRecord { taints, ..trial(cell, "x", block, 1_000) });
            }
        }
        assert!(export.has_all_blocks());
    }

    #[test]
    fn the_best_of_the_others_is_the_one_that_looks_worst_for_the_one() {
        let mut export = export();
        export.result.spec.arms.push(ArmSpec { name: "z".to_owned(), ..export.result.spec.arms[0].clone() });
        for block in 0..6 {
            for (arm, cpu_ns) in [("x", 1_100), ("y", 1_200), ("z", 1_000)] {
                export.trials.push(trial("a", arm, block, cpu_ns));
            }
        }
        let measured = against_best(&export, "a", "x").expect("six pairs with each");
        assert!((measured.ratio - 1.1).abs() < 1e-9, "{measured:?}");
        assert_eq!((measured.note.as_str(), measured.verdict), ("best is z", None));
        assert!(against_best(&export, "b", "x").is_err());
    }

    #[test]
    fn a_missing_arm_says_why() {
        let mut export = export();
        let reason = || "no such file".to_owned();
        export.result.missing_arms.push(weir_record::study::MissingArm {
            name: "y".to_owned(),
            reason: reason(),
            unlock: None,
        });
        let absent = judged(&export, "a", "y", Metric::Throughput).expect_err("nothing was compared");
        assert_eq!(absent, "y is missing: no such file");
        assert!(paired(&export, &side("a", "x"), &side("a", "y")).is_err());
    }
}
