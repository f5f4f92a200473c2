//! What a study comes to before it runs: arms, cells, how often each is measured and for how long, and why arms do not
//! take turns. Text out, nothing else.

use std::{collections::BTreeSet, fmt::Write as _};

use weir_record::{
    finding::{Finding, NoTurns},
    spec::{Alternation, ArmSpec, CellRole, CellSpec, LoadMode, StudySpec, WholeTrials},
    storage::StorageDevice,
};

use crate::{alternation, file::Study, host_defaults::cpu_list, pilot, protocol, validate};

const MILLISECOND_NS: u64 = 1_000_000;

/// Starting, stopping and reading the machine, around a whole trial; a storage job also lays out its threads.
const AROUND_TRIAL_NS: u64 = 400 * MILLISECOND_NS;
const AROUND_STORAGE_NS: u64 = 800 * MILLISECOND_NS;

/// How much faster than the clock the model is computed beside its deepest load, on two CPUs.
const COMPUTED_FASTER: u64 = 30;

/// Replaying a trace, whatever the window.
const REPLAYED_NS: u64 = 10 * MILLISECOND_NS;

/// How long a cell takes when every warm-up runs to its end: its rounds or blocks, and the pilot that finds its rate.
pub fn cell_ns(spec: &StudySpec, cell: &CellSpec) -> u64 {
    u64::from(cell.blocks) * unit_ns(spec, cell)
        + alternation::evidence_ns(cell, runs_of(spec, cell))
        + pilots_ns(spec, cell)
}

/// How long one of its rounds or blocks takes, with its share of the slices of evidence where it has some.
pub(crate) fn block_ns(spec: &StudySpec, cell: &CellSpec, block: u32) -> u64 {
    let plan = cell.alternation.and_then(|turns| turns.evidence);
    let rounds = plan.map_or(0, |plan| plan.rounds.min(cell.blocks));
    let evidence_ns = alternation::evidence_ns(cell, runs_of(spec, cell));
    unit_ns(spec, cell) + if block < rounds { evidence_ns / u64::from(rounds) } else { 0 }
}

/// The pilots that find its rate; none where it is fixed.
pub(crate) fn pilots_ns(spec: &StudySpec, cell: &CellSpec) -> u64 {
    let pilot_ns = match cell.alternation {
        None if protocol::of(cell).has_capacity_of_baseline() => 2 * trial_ns(cell),
        _ => unit_ns(spec, cell),
    };
    u64::from(pilot::rounds_of(spec, cell)) * pilot_ns
}

/// Arms of a cell, and the baseline again.
fn runs_of(spec: &StudySpec, cell: &CellSpec) -> u64 {
    spec.arms.iter().filter(|arm| cell.has_arm(&arm.name)).count() as u64 + 1
}

fn unit_ns(spec: &StudySpec, cell: &CellSpec) -> u64 {
    let runs = runs_of(spec, cell);
    let Some(turns) = cell.alternation else { return runs * trial_ns(cell) };
    alternation::round_ns(cell, &turns, runs) + warmups_ns(spec, cell)
}

/// What arms that must be warm add to each round; the baseline runs twice.
fn warmups_ns(spec: &StudySpec, cell: &CellSpec) -> u64 {
    let arms = spec.arms.iter().take(1).chain(&spec.arms);
    arms.filter(|arm| cell.has_arm(&arm.name)).map(|arm| arm.warmup_ns).sum()
}

fn trial_ns(cell: &CellSpec) -> u64 {
    let around_ns = if cell.storage.is_some() { AROUND_STORAGE_NS } else { AROUND_TRIAL_NS };
    let length_ns = cell.window_ns + cell.warmup_ns_max;
    match cell.storage.as_ref().map(|storage| &storage.device) {
        Some(StorageDevice::Model | StorageDevice::ModelLate) => length_ns / COMPUTED_FASTER,
        Some(StorageDevice::Synthetic(_) | StorageDevice::Trace(_)) => REPLAYED_NS,
        Some(StorageDevice::Disk) | None => length_ns + protocol::of(cell).ramp_up_ns(cell) + around_ns,
    }
}

/// How long a study takes.
pub fn study_ns(spec: &StudySpec) -> u64 {
    spec.cells.iter().map(|cell| cell_ns(spec, cell)).sum()
}

/// The plan of a study, for people. `told` says a finding in words.
pub fn text(study: &Study, told: impl Fn(&Finding) -> String) -> String {
    let Study { spec, missing_arms } = study;
    let mut out = String::new();
    head(spec, &mut out);
    out.push_str("\narms\n");
    let names: Vec<&str> = spec.arms.iter().map(|arm| arm.name.as_str()).collect();
    let width = names.iter().map(|name| name.len()).max().unwrap_or(0);
    for (index, arm) in spec.arms.iter().enumerate() {
        let role = match &arm.baseline {
            _ if index == 0 => "  (baseline, runs twice)".to_owned(),
            Some(own) => format!("  (against {own})"),
            None => String::new(),
        };
        let _ = writeln!(out, "  {:width$}  {}{role}", arm.name, runs(spec, arm));
        if let Some(workers) = spec.workers_not_told(&arm.name) {
            let (space, of) = ("", if workers == 1 { "1 worker" } else { &format!("{workers} workers") });
            let _ =
                writeln!(out, "  {space:width$}  (not told {{workers}}, so in the cells with {of} alone)");
        }
    }
    if !missing_arms.is_empty() {
        out.push_str("\nmissing here\n");
        missing_arms.iter().for_each(|arm| _ = writeln!(out, "  {}: {}", arm.name, told(&arm.reason)));
    }
    out.push_str("\ncells\n");
    spec.cells.iter().for_each(|cell| self::cell(spec, cell, &mut out));
    out.extend(one_level_of_cpus(spec));
    whole_trials(spec, &mut out);
    beside(spec, &mut out);
    out.push('\n');
    claims(spec, &mut out);
    let (all, cap) = (shown_ns(study_ns(spec)), shown_ns(spec.time_cap_ns));
    let _ = writeln!(out, "It takes about {all}; no round or block starts after {cap}.");
    out
}

/// Processes beside the servers, and what is asked beside the verdicts.
fn beside(spec: &StudySpec, out: &mut String) {
    if !spec.neighbours.is_empty() {
        out.push_str("\nneighbours\n");
    }
    for neighbour in &spec.neighbours {
        let _ = writeln!(out, "  {}  {}", neighbour.name, neighbour.argv.join(" "));
    }
    let goals = spec.comparisons.iter().filter(|asked| asked.goal.is_some()).count();
    if !spec.comparisons.is_empty() {
        let _ =
            writeln!(out, "\n{} comparisons of its own, {goals} of them with a goal", spec.comparisons.len());
    }
}

fn head(spec: &StudySpec, out: &mut String) {
    let protocol = spec.cells.first().map_or("", |cell| protocol::of(cell).name());
    let _ = writeln!(out, "study {}: {}", spec.name, spec.title.en);
    let margin = shown_percent(spec.equivalence_margin);
    let _ = writeln!(
        out,
        "protocol {protocol}, equivalence margin {margin}, server CPUs {}, load CPUs {}, seed {}",
        cpus(&spec.server_cpus),
        cpus(&spec.load_cpus),
        spec.seed
    );
}

fn cpus(cpus: &[usize]) -> String {
    if cpus.is_empty() {
        return "any".to_owned();
    }
    cpu_list(cpus)
}

/// What an arm runs, as a command line would say it.
fn runs(spec: &StudySpec, arm: &ArmSpec) -> String {
    let mut words = spec.cells.first().map_or_else(Vec::new, |cell| protocol::of(cell).runs(&arm.subject));
    if arm.warmup_ns > 0 {
        words.push(format!("; warm after {}", shown_ns(arm.warmup_ns)));
    }
    if !arm.load_options.is_empty() {
        let options: Vec<String> = protocol::shown_options(&arm.load_options).collect();
        words.push(format!("; its generator {}", options.join(" ")));
    }
    words.join(" ")
}

fn cell(spec: &StudySpec, cell: &CellSpec, out: &mut String) {
    let role = match cell.role {
        CellRole::Primary => "primary",
        CellRole::Confirmatory => "confirmatory",
        CellRole::Exploratory => "exploratory",
    };
    let load = match cell.load {
        LoadMode::Closed => "closed loop".to_owned(),
        LoadMode::Open { rate_per_second, .. } => format!("{rate_per_second:.0} a second"),
        LoadMode::OpenShare { share, .. } if protocol::of(cell).has_capacity_of_baseline() => {
            format!("{} of the baseline's capacity", shown_percent(share))
        }
        LoadMode::OpenShare { share, .. } => format!("{} of the smallest capacity", shown_percent(share)),
    };
    let runs = runs_of(spec, cell);
    let often = match &cell.alternation {
        Some(turns) => format!(
            "{} rounds of {} x {runs} slices of {}{}",
            cell.blocks,
            turns.permutations,
            shown_ns(turns.slice_ns),
            evidence(turns)
        ),
        None => format!("{} blocks of {runs} trials of {}", cell.blocks, shown_ns(cell.window_ns)),
    };
    let _ = writeln!(out, "  {}  {role}, {load}, {often}: {}", cell.id, shown_ns(cell_ns(spec, cell)));
    if !cell.arms.is_empty() {
        let _ = writeln!(out, "    {}", cell.arms.join(", "));
    }
}

/// Why a map over workers has none over CPUs.
fn one_level_of_cpus(spec: &StudySpec) -> Option<String> {
    let workers: BTreeSet<u32> = spec.cells.iter().map(|cell| cell.workers).collect();
    let is_varied = spec.cells.iter().any(|cell| !cell.server_cpus.is_empty());
    let is_of_sockets = !spec.is_storage() && !spec.is_orders();
    if is_varied || workers.len() < 2 || !is_of_sockets {
        return None;
    }
    Some(match spec.server_cpus.len() {
        0 => "\nThe server's side is not pinned here: server CPUs are no factor.\n".to_owned(),
        1 => "\nThe server's side has one CPU here: server CPUs have one level.\n".to_owned(),
        all => format!(
            "\nEvery cell has all {all} CPUs of the server's side; the factor `server_cpus` varies them.\n"
        ),
    })
}

fn evidence(turns: &Alternation) -> String {
    turns.evidence.map_or_else(String::new, |plan| {
        let pairs = if plan.pairs > 1 { format!("{} pairs of ", plan.pairs) } else { String::new() };
        format!(" (evidence in {}, {pairs}slices of {})", plan.rounds, shown_ns(plan.slice_ns))
    })
}

/// Why arms do not take turns, with the cells in which they do not.
fn whole_trials(spec: &StudySpec, out: &mut String) {
    let mut reasons: Vec<(NoTurns, Vec<&str>)> = Vec::new();
    let is_there = |it: &&WholeTrials| spec.cells.iter().any(|cell| cell.id == it.cell_id);
    for WholeTrials { cell_id, why } in spec.whole_trials.iter().filter(is_there) {
        match reasons.iter_mut().find(|(own, _)| own == why) {
            Some((_, cells)) => cells.push(cell_id),
            None => reasons.push((*why, vec![cell_id])),
        }
    }
    if reasons.is_empty() {
        return;
    }
    out.push_str("\nwhole trials instead of turns\n");
    for (reason, cells) in reasons {
        let cells = if cells.len() == spec.cells.len() { "every cell".to_owned() } else { cells.join(", ") };
        let [why, ..] = reason.words();
        let _ = writeln!(out, "  {why}: {cells}");
    }
}

fn claims(spec: &StudySpec, out: &mut String) {
    let claims = validate::claims(spec);
    let of_claims = spec.cells.iter().filter(|cell| cell.role != CellRole::Exploratory);
    let Some(units) = of_claims.map(|cell| cell.blocks).min() else { return };
    let Some(found) = validate::deviations_found(units, claims) else { return };
    let (count, noun) = (claims, if claims == 1 { "claim" } else { "claims" });
    let _ = writeln!(
        out,
        "{count} {noun}: corrected for all of them, {units} rounds or blocks find a difference of {found:.1} of their \
         standard deviations."
    );
}

fn shown_percent(share: f64) -> String {
    let percent = (1_000.0 * share).round() / 10.0;
    format!("{percent} %")
}

/// A length of time with the unit people would use.
pub fn shown_ns(ns: u64) -> String {
    let ms = ns / MILLISECOND_NS;
    let seconds = (ms + 500) / 1_000;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..10_000 if !ms.is_multiple_of(1_000) => format!("{:.1} s", ms as f64 / 1_000.0),
        1_000..180_000 => format!("{seconds} s"),
        180_000..7_200_000 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{} h", (seconds as f64 / 360.0).round() / 10.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{builtin, file, host_defaults::HostDefaults};

    #[test]
    fn every_built_in_study_fits_its_time() {
        for study in builtin::ALL {
            for plan in [None, Some("published")] {
                let host_defaults = HostDefaults { plan: plan.map(str::to_owned), ..HostDefaults::default() };
                let Ok(Study { spec, .. }) = study.study(&host_defaults) else { continue };
                let (takes_ns, cap_ns) = (study_ns(&spec), spec.time_cap_ns);
                assert!(takes_ns < cap_ns, "{} {plan:?}: {} s", study.name, takes_ns / 1_000_000_000);
            }
        }
    }

    #[test]
    fn every_study_file_of_the_documentation_fits_its_time() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/studies");
        let paths = std::fs::read_dir(folder).expect("the folder is there");
        let paths = paths.map(|entry| entry.expect("it can be listed").path());
        for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml")) {
            let text = std::fs::read_to_string(&path).expect("it can be read");
            let Study { spec, .. } =
                file::parse(&path, &text, &HostDefaults::default()).unwrap_or_else(|error| panic!("{error}"));
            let (takes_ns, cap_ns) = (study_ns(&spec), spec.time_cap_ns);
            assert!(takes_ns < cap_ns, "{} takes {} s", path.display(), takes_ns / 1_000_000_000);
        }
    }

    #[test]
    fn lengths_are_told_in_the_unit_people_would_use() {
        let told: Vec<String> = [25, 999, 1_500, 3_000, 80_400, 150_000, 184_000, 9_000_000]
            .map(|ms| shown_ns(ms * MILLISECOND_NS))
            .into();
        assert_eq!(told, ["25 ms", "999 ms", "1.5 s", "3 s", "80 s", "150 s", "3 min", "2.5 h"]);
    }
}
