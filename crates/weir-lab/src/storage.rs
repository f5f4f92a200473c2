//! The data files of storage studies, and the storage cells that this machine cannot run.

use std::path::{Path, PathBuf};

use weir_record::{
    finding::Finding,
    spec::{CellRole, CellSpec, MissingCell, StorageCell, StudySpec},
};

pub use crate::protocol::storage::{FILE_BYTES, FILE_BYTES_RANGE, has_threads};

/// The data file of studies, beside their run folders, so that all of them use the same one.
pub const FILE_NAME: &str = "storage.dat";

/// Seed of its content.
pub const FILE_SEED: u64 = 4;

const BLOCK_BYTES: u64 = 4_096;

/// The cells that read or write a disk.
pub fn on_disk(spec: &StudySpec) -> impl Iterator<Item = &StorageCell> {
    spec.cells.iter().filter(|cell| !cell.is_simulated()).filter_map(|cell| cell.storage.as_ref())
}

fn on_disk_mut(spec: &mut StudySpec) -> impl Iterator<Item = &mut StorageCell> {
    spec.cells.iter_mut().filter(|cell| !cell.is_simulated()).filter_map(|cell| cell.storage.as_mut())
}

/// Removes the cells on a disk from a study that has others, and names them with the reason why the disk cannot be
/// used. `false` if no cell would be left to decide.
pub fn leave_out_disk(spec: &mut StudySpec, said: &str) -> bool {
    let is_on_disk = |cell: &CellSpec| cell.storage.is_some() && !cell.is_simulated();
    if spec.cells.iter().any(|cell| cell.role == CellRole::Primary && is_on_disk(cell)) {
        return false;
    }
    for cell in spec.cells.extract_if(.., |cell| is_on_disk(cell)) {
        let reason = Finding::DiskUnusable { said: said.to_owned() };
        spec.missing_cells.push(MissingCell { id: cell.id, reason });
    }
    spec.published.retain(|claim| spec.cells.iter().any(|cell| cell.id == claim.cell_id));
    true
}

/// Path of the data file of a cell, for a study with this run folder.
pub fn data_file(folder: &Path, cell: &StorageCell) -> PathBuf {
    match &cell.file {
        Some(file) => PathBuf::from(file),
        None => folder.parent().unwrap_or(Path::new("")).join(FILE_NAME),
    }
}

/// Files that must be laid out before the first block: those beside the run folder, with their lengths. Files of the
/// user are not included.
pub fn files_to_lay_out(spec: &StudySpec, folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut files: Vec<(PathBuf, u64)> = Vec::new();
    for cell in on_disk(spec).filter(|cell| cell.file.is_none()) {
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
    for cell in on_disk_mut(spec) {
        cell.file = Some(file.to_owned());
    }
}

/// Limits the length used to the length of the file.
pub fn use_at_most(spec: &mut StudySpec, length_bytes: u64) {
    let most = length_bytes & !(BLOCK_BYTES - 1);
    for cell in on_disk_mut(spec) {
        cell.file_bytes = cell.file_bytes.min(most);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{host_defaults::HostDefaults, study_file};

    const WAYS: &str = "[[arm]]\nname = \"interrupt\"\nengine = \"io_uring\"\n\
                        [[arm]]\nname = \"poll\"\nengine = \"io_uring\"\nwait = \"poll\"\n";

    pub(crate) fn read(cells: &str) -> Result<StudySpec, String> {
        let text = format!("name = \"waits\"\nprotocol = \"storage\"\n{cells}\n{WAYS}");
        let study = study_file::parse(Path::new("waits.toml"), &text, &HostDefaults::default());
        study.map(|study| study.spec).map_err(|error| error.to_string())
    }

    /// Two arms that wait differently, one cell.
    pub(crate) fn study() -> StudySpec {
        read("alternate = false").expect("it is right")
    }

    #[test]
    fn a_disk_that_cannot_be_used_is_left_out_of_a_study_that_has_other_devices() {
        let cells = "[[cell]]\nrole = \"primary\"\ndevice = \"model\"\n[[cell]]\n";
        let mut spec = read(cells).expect("it is right");
        assert_eq!(files_to_lay_out(&spec, Path::new("results/waits")).len(), 1);
        assert!(leave_out_disk(&mut spec, "it is in memory"));
        let ids: Vec<&str> = spec.cells.iter().map(|cell| cell.id.as_str()).collect();
        assert_eq!(ids, ["model"]);
        let reason = Finding::DiskUnusable { said: "it is in memory".to_owned() };
        assert_eq!(spec.missing_cells, [MissingCell { id: "randread-b4096-qd1".to_owned(), reason }]);
        assert_eq!(files_to_lay_out(&spec, Path::new("results/waits")), []);
        assert!(!leave_out_disk(&mut study(), "it is in memory"), "nothing would be left");
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
