//! The data files of studies of storage, and the cells of a sweep over ways to wait on a real disk, whose arms and
//! depths come from the command line and whose trials are judged as a sweep.

use std::path::{Path, PathBuf};

use weir_record::{
    spec::{ArmSpec, CellRole, CellSpec, LoadMode, StorageCell, StorageSubject, StudySpec, Subject, Text},
    storage::{AccessPattern, CompletionMethod, StorageEngine},
};

pub use crate::protocol::storage::{FILE_BYTES, FILE_BYTES_RANGE, has_threads};
use crate::{protocol, surroundings::Surroundings};

/// The data file of studies, beside their run folders, so that all of them use the same one.
pub const FILE_NAME: &str = "storage.dat";

/// Seed of what it holds.
pub const FILE_SEED: u64 = 4;

const MILLISECOND_NS: u64 = 1_000_000;

/// The ramp of the built-in studies. A disk has no connections to open; its queue is full after as many operations as
/// it is deep.
const RAMP_NS: u64 = 300 * MILLISECOND_NS;

/// Differences below this are not called.
const SMALLEST_EFFECT: f64 = 0.05;

const BLOCK_BYTES: u32 = 4_096;

/// Where the data of a cell lie for a study with this run folder.
pub fn data_file(folder: &Path, cell: &StorageCell) -> PathBuf {
    match &cell.file {
        Some(file) => PathBuf::from(file),
        None => folder.parent().unwrap_or(Path::new("")).join(FILE_NAME),
    }
}

/// What must be laid out before the first block: files beside the run folder with their lengths. Files of the user are
/// not among them.
pub fn files_to_lay_out(spec: &StudySpec, folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut files: Vec<(PathBuf, u64)> = Vec::new();
    for cell in spec.cells.iter().filter_map(|cell| cell.storage.as_ref()).filter(|cell| cell.file.is_none())
    {
        let path = data_file(folder, cell);
        match files.iter_mut().find(|(own, _)| *own == path) {
            Some((_, bytes)) => *bytes = cell.file_bytes.max(*bytes),
            None => files.push((path, cell.file_bytes)),
        }
    }
    files
}

/// Uses a file of the user instead of one beside the run folder.
pub fn use_file(spec: &mut StudySpec, file: &str) {
    for cell in spec.cells.iter_mut().filter_map(|cell| cell.storage.as_mut()) {
        cell.file = Some(file.to_owned());
    }
}

/// Uses no more of the file than there is.
pub fn use_at_most(spec: &mut StudySpec, length_bytes: u64) {
    let most = length_bytes & !(u64::from(BLOCK_BYTES) - 1);
    for cell in spec.cells.iter_mut().filter_map(|cell| cell.storage.as_mut()) {
        cell.file_bytes = cell.file_bytes.min(most);
    }
}

/// One way to wait among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Name of the arm.
    pub name: String,
    /// How the thread waits.
    pub completion: CompletionMethod,
}

/// How much of it is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollingPlan {
    /// Engine of the thread that waits.
    pub engine: StorageEngine,
    /// Random reads another process keeps in flight, a cell each. They stand for the published jobs with one and four
    /// busy cores, which a machine of two does not have; whoever reports them says so.
    pub background_depths: Vec<u32>,
    /// Measured time of a trial.
    pub window_ns: u64,
    /// Blocks of each cell.
    pub blocks: u32,
    /// Bytes of the data file.
    pub file_bytes: u64,
    /// No block starts later.
    pub time_cap_ns: u64,
}

impl Default for PollingPlan {
    /// Background depths of 0, 32 and 128; six blocks of a second.
    fn default() -> Self {
        Self {
            engine: StorageEngine::IoUring,
            background_depths: vec![0, 32, 128],
            window_ns: 1_000 * MILLISECOND_NS,
            blocks: 6,
            file_bytes: FILE_BYTES,
            time_cap_ns: 3_600_000 * MILLISECOND_NS,
        }
    }
}

/// Ways to wait for a 4 KiB random read on the real disk, one in flight, beside background loads of several depths. The
/// first way is the baseline, and the first cell with a background (or else the first) is the headline. The measurement
/// points of each trial are in its record (`load.storage.waiting`).
pub fn polling_disk(
    name: &str,
    surroundings: &Surroundings,
    ways: &[Waiting],
    plan: &PollingPlan,
) -> StudySpec {
    let headline = plan.background_depths.iter().position(|depth| *depth > 0).unwrap_or(0);
    let cells = plan.background_depths.iter().enumerate().map(|(index, depth)| {
        let role = if index == headline { CellRole::Headline } else { CellRole::Exploratory };
        let asked = Asked { pattern: AccessPattern::RandRead, depth: 1, background_depth: *depth };
        cell(role, asked, Window { window_ns: plan.window_ns, blocks: plan.blocks }, plan.file_bytes)
    });
    StudySpec {
        name: name.to_owned(),
        title: Text {
            en: "Which way to wait for a disk that others use too?".to_owned(),
            ko: Some("다른 쪽도 함께 쓰는 디스크를 어떤 방식으로 기다릴 것인가?".to_owned()),
            zh: Some("与他人共用的磁盘，应当用哪种方式等待？".to_owned()),
        },
        seed: surroundings.seed,
        arms: ways.iter().map(|way| arm(&way.name, plan.engine, way.completion.clone())).collect(),
        cells: cells.collect(),
        server_cpus: surroundings.server_cpus.clone(),
        load_cpus: surroundings.load_cpus.clone(),
        smallest_effect: SMALLEST_EFFECT,
        time_cap_ns: plan.time_cap_ns,
        published: Vec::new(),
        comparisons: Vec::new(),
        neighbours: Vec::new(),
        ways: Vec::new(),
    }
}

/// What is asked of the disk.
#[derive(Clone, Copy)]
struct Asked {
    pattern: AccessPattern,
    depth: u32,
    background_depth: u32,
}

/// How long it is asked, and how often.
#[derive(Clone, Copy)]
struct Window {
    window_ns: u64,
    blocks: u32,
}

fn cell(role: CellRole, asked: Asked, window: Window, file_bytes: u64) -> CellSpec {
    let Asked { pattern, depth, background_depth } = asked;
    let mut cell = CellSpec {
        id: String::new(),
        role,
        connections: 1,
        depth,
        message_bytes: BLOCK_BYTES,
        idle_connections: 0,
        workers: 1,
        load_workers: 1,
        load_cpus: Vec::new(),
        load: LoadMode::Closed,
        window_ns: window.window_ns,
        warmup_ns_max: RAMP_NS,
        blocks: window.blocks,
        http: None,
        storage: Some(StorageCell { pattern, engine: None, background_depth, file_bytes, file: None }),
        orders: None,
        alternation: None,
        neighbours: Vec::new(),
        arms: Vec::new(),
    };
    cell.id = protocol::cell_id(&cell);
    cell
}

fn arm(name: &str, engine: StorageEngine, completion: CompletionMethod) -> ArmSpec {
    let subject = StorageSubject { engine: Some(engine), completion, ..StorageSubject::default() };
    ArmSpec { name: name.to_owned(), subject: Subject::Storage(subject), load_options: [].into() }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::validate;

    /// Two ways to wait, one cell.
    pub(crate) fn study() -> StudySpec {
        let ways = ["interrupt", "poll"].map(|predictor| Waiting {
            name: predictor.to_owned(),
            completion: CompletionMethod { predictor: predictor.to_owned(), ..CompletionMethod::default() },
        });
        let plan = PollingPlan { background_depths: vec![0], ..PollingPlan::default() };
        polling_disk("waits", &Surroundings::default(), &ways, &plan)
    }

    #[test]
    fn the_cells_of_polling_differ_in_their_background_alone() {
        let ways = ["interrupt", "linux-mean:0.5"].map(|predictor| Waiting {
            name: predictor.replace(':', "-"),
            completion: CompletionMethod { predictor: predictor.to_owned(), ..CompletionMethod::default() },
        });
        let spec = polling_disk("polling-disk", &Surroundings::default(), &ways, &PollingPlan::default());
        assert_eq!(validate::study(&spec), Ok(()));
        let ids: Vec<&str> = spec.cells.iter().map(|cell| cell.id.as_str()).collect();
        assert_eq!(ids, ["randread-b4096-qd1", "randread-b4096-qd1-bg32", "randread-b4096-qd1-bg128"]);
        assert_eq!(spec.cells[1].role, CellRole::Headline);
    }

    #[test]
    fn all_studies_below_a_folder_share_a_file_and_a_file_of_the_user_is_never_laid_out() {
        let mut spec = study();
        let beside = Path::new("weir-results/storage.dat");
        let folder = Path::new("weir-results/waits-1");
        assert_eq!(files_to_lay_out(&spec, folder), [(beside.to_owned(), FILE_BYTES)]);
        assert_eq!(
            data_file(Path::new("waits"), spec.cells[0].storage.as_ref().expect("it is")),
            Path::new(FILE_NAME)
        );
        use_file(&mut spec, "/dev/nvme1n1");
        assert_eq!(files_to_lay_out(&spec, folder), []);
        let used = |spec: &StudySpec| spec.cells[0].storage.as_ref().map(|cell| cell.file_bytes);
        assert_eq!(used(&spec), Some(FILE_BYTES));
        use_at_most(&mut spec, (64 << 20) + 100);
        assert_eq!(used(&spec), Some(64 << 20));
    }
}
