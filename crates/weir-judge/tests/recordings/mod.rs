//! All recordings of the tree, and the values of their rounds as the judge computes them.
//!
//! `cargo xtask record` writes `recorded/SITTING/NAME-CONDITION.txt` (docs/formats/recording.md).
//! `recorded/echo-aa.txt` is older: one server that ran three times, without message counts.

use std::{fs, path::Path};

use weir_judge::{judge, sample};
use weir_record::{
    load::LoadReport,
    machine::CrossCoreReading,
    metric::Metric,
    spec::{Alternation, LoadMode, StudySpec},
    trial::{SliceRecord, TrialRecord},
    window::ObservedWindow,
};
use weir_stats::recording::{RecordedCell, RecordedRound, RecordedRun, RecordedSlice, Recording};

use crate::replayed;

/// The baseline program of every recording, and its third run, which the judge treats as another arm.
pub const BASELINE: &str = "epoll";
pub const AGAIN: &str = "epoll-again";

/// A cell and its recording.
pub struct Recorded {
    /// Path of the file below `recorded`, without its ending.
    pub name: String,
    /// Machine, kernel, build and time.
    pub origin: String,
    pub cell: RecordedCell,
}

/// All cells, by the names of their files.
pub fn all() -> Vec<Recorded> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let mut found = vec![Recorded {
        name: "echo-aa".to_owned(),
        origin: "a virtual machine, 2 CPUs, Linux 6.18".to_owned(),
        cell: oldest(),
    }];
    for sitting in names(&folder).iter().filter(|sitting| folder.join(sitting).is_dir()) {
        for file in names(&folder.join(sitting)).iter().filter(|file| file.ends_with(".txt")) {
            let path = folder.join(sitting).join(file);
            let text = fs::read_to_string(&path).expect("a recording is a text");
            let recording: Recording =
                text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let name = format!("{sitting}/{}", file.trim_end_matches(".txt"));
            let origin = origin(&recording);
            let of = |cell| Recorded { name: name.clone(), origin: origin.clone(), cell };
            found.extend(recording.cells.into_iter().map(of));
        }
    }
    found
}

/// The origin in its facts.
fn origin(recording: &Recording) -> String {
    let fact = |key: &str| recording.fact(key).unwrap_or("unknown");
    let [cpu, cpus, kernel] = ["cpu", "cpus", "kernel"].map(fact);
    format!("{cpu}, {cpus} CPUs, Linux {kernel}, {}, {}", fact("weir"), fact("taken"))
}

/// Sorted names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder of recordings is there");
    let mut found: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    found.sort();
    found
}

/// `echo-aa.txt` only has server CPU per message; any number of messages is equivalent.
fn oldest() -> RecordedCell {
    let run = |(arm, is_repeat): (&str, bool)| RecordedRun { arm: arm.to_owned(), is_repeat };
    let slice = |cost: &f64| RecordedSlice {
        messages: 1_000,
        server_cpu_ns: (1_000.0 * cost) as u64,
        length_ns: 25_000_000,
        ..RecordedSlice::default()
    };
    let round = |(number, round): (u32, replayed::Round)| RecordedRound {
        number,
        started_ms: 0,
        round_trips_ns: round.round_trips_ns.map(|trip| trip as u64),
        slices: round.runs.iter().map(|run| run.iter().map(slice).collect()).collect(),
    };
    RecordedCell {
        id: "c100-d1-m64-closed".to_owned(),
        rate_per_second: None,
        runs: [(BASELINE, false), (BASELINE, true), (AGAIN, false)].map(run).to_vec(),
        rounds: (0..).zip(replayed::rounds()).map(round).collect(),
    }
}

/// Log-ratios of server CPU per message of a run relative to two runs of the baseline, one for each round that the
/// judge compares; runs are given by their indices in the cell.
pub fn values(cell: &RecordedCell, compared: usize, baselines: [usize; 2]) -> Vec<f64> {
    let trials: Vec<TrialRecord> = cell
        .rounds
        .iter()
        .flat_map(|round| {
            let arms = [
                (baselines[0], "baseline", false),
                (baselines[1], "baseline", true),
                (compared, "arm", false),
            ];
            arms.map(|(run, arm, repeat)| trial(cell, round, run, (arm, repeat)))
        })
        .collect();
    let result = judge::judged(&spec(cell), &trials);
    let found =
        result.effects.comparisons().find(|it| it.metric == Metric::ServerCpuPerMessage && it.arm == "arm");
    found.map(|it| it.values.clone()).unwrap_or_default()
}

fn spec(cell: &RecordedCell) -> StudySpec {
    let mut spec = sample::study(&["baseline", "arm"], cell.rounds.len() as u32, 1);
    let slice = cell.rounds.first().map(|round| round.slices[0].clone()).unwrap_or_default();
    let planned = &mut spec.cells[0];
    planned.id.clone_from(&cell.id);
    planned.alternation = Some(Alternation {
        slice_ns: slice.first().map_or(0, |slice| slice.length_ns),
        permutations: slice.len() as u32,
        prime_messages: 2,
        evidence: None,
    });
    if let Some(rate_per_second) = cell.rate_per_second {
        planned.load = LoadMode::Open { rate_per_second, poisson: true, share: None };
    }
    spec
}

fn trial(cell: &RecordedCell, round: &RecordedRound, run: usize, (arm, repeat): (&str, bool)) -> TrialRecord {
    let reading = |round_trip_ns: u64| CrossCoreReading {
        round_trip_ns: round_trip_ns as f64,
        cpu_b: 1,
        ..CrossCoreReading::default()
    };
    let slice = |(permutation, slice): (u32, &RecordedSlice)| SliceRecord {
        permutation,
        place: slice.place,
        length_ns: slice.length_ns,
        messages: slice.messages,
        server_cpu_ns: slice.server_cpu_ns,
        missed_starts: slice.missed,
        ..SliceRecord::default()
    };
    let slices: Vec<SliceRecord> = (0..).zip(&round.slices[run]).map(slice).collect();
    let messages = slices.iter().map(|slice| slice.messages).sum();
    let length_ns: u64 = slices.iter().map(|slice| slice.length_ns).sum();
    let cpu_ns = slices.iter().map(|slice| slice.server_cpu_ns).sum();
    TrialRecord {
        cell_id: cell.id.clone(),
        block: round.number,
        started_ns: round.started_ms * 1_000_000 + u64::from(round.number),
        arm: arm.to_owned(),
        repeat,
        reading_before: reading(round.round_trips_ns[0]),
        reading_after: reading(round.round_trips_ns[1]),
        load: Some(LoadReport {
            messages,
            message_bytes: 64,
            bytes_verified: 64 * messages,
            window_ns: length_ns,
            throughput_per_second: 1e9 * messages as f64 / length_ns.max(1) as f64,
            observed: Some(ObservedWindow { cpu_ns, ..ObservedWindow::default() }),
            ..LoadReport::default()
        }),
        slices,
        ..TrialRecord::default()
    }
}
