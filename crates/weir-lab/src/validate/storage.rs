//! What a study of storage may ask.

use std::ops::RangeInclusive;

use weir_record::{
    spec::{ArmSpec, CellSpec, LoadMode, StorageCell, StorageSubject, StudySpec, Subject},
    storage::{StorageEngine, StorageEngineOptions},
};

use super::{Level, SpecError, level};
use crate::storage::has_threads;

/// Smallest and largest part of the data file that is used.
pub const FILE_BYTES: RangeInclusive<u64> = 1 << 20..=1 << 40;

/// What a block of `O_DIRECT` must be a multiple of.
pub const SECTOR_BYTES: u32 = 512;

/// Most threads of an engine that has one operation in flight in each.
pub const THREADS_MAX: u32 = 256;

/// The way of waiting that every engine has.
const INTERRUPT: &str = "interrupt";

/// Checks that cells and arms are all of storage, or none.
pub(super) fn protocol(spec: &StudySpec) -> Result<(), SpecError> {
    let is_storage = spec.is_storage();
    if spec
        .cells
        .iter()
        .any(|cell| cell.storage.is_some() != is_storage || (is_storage && cell.http.is_some()))
    {
        let message = "some cells are of storage and some are not; a study has one protocol".to_owned();
        return Err(SpecError::new("protocol", message));
    }
    let is_of_storage = |arm: &&ArmSpec| matches!(arm.subject, Subject::Storage(_) | Subject::Fio { .. });
    match spec.arms.iter().find(|arm| is_of_storage(arm) != is_storage) {
        Some(arm) if is_storage => {
            let message = format!("arm {} serves connections, and a study of storage has none", arm.name);
            Err(SpecError::new("arm", message))
        }
        Some(arm) => {
            let message = format!("arm {} works on a disk; write protocol = \"storage\" for it", arm.name);
            Err(SpecError::new("arm", message))
        }
        None => Ok(()),
    }
}

/// Checks a cell.
pub(super) fn cell(cell: &CellSpec, storage: &StorageCell) -> Result<(), SpecError> {
    level(Level::BlockBytes, i64::from(cell.message_bytes))?;
    level(Level::BackgroundDepth, i64::from(storage.background_depth))?;
    if !cell.message_bytes.is_multiple_of(SECTOR_BYTES) {
        let message =
            format!("{} is no multiple of {SECTOR_BYTES}, which O_DIRECT asks for", cell.message_bytes);
        return Err(SpecError::new("block_bytes", message));
    }
    if !FILE_BYTES.contains(&storage.file_bytes) {
        return Err(SpecError::new("file_size", "it must be from 1MiB to 1TiB".to_owned()));
    }
    let in_flight = u64::from(cell.message_bytes) * u64::from(cell.depth);
    if storage.file_bytes < in_flight {
        let message = format!("{} has more in flight ({in_flight} bytes) than the file holds", cell.id);
        return Err(SpecError::new("file_size", message));
    }
    if cell.load != LoadMode::Closed {
        let message = format!("{} has an offered rate; storage jobs of a study have none", cell.id);
        return Err(SpecError::new("latency", message));
    }
    Ok(())
}

/// Checks what an arm does in the cells it runs in.
pub(super) fn arms(spec: &StudySpec) -> Result<(), SpecError> {
    for arm in &spec.arms {
        if let Subject::Fio { program, .. } = &arm.subject
            && program.is_empty()
        {
            return Err(SpecError::new("arm.tool", "the program has no name".to_owned()));
        }
        for cell in spec.cells.iter().filter(|cell| cell.has_arm(&arm.name)) {
            let Some(storage) = &cell.storage else { continue };
            let engine = match (arm.subject.storage_engine(), storage.engine) {
                (Some(engine), None) | (None, Some(engine)) => engine,
                (Some(own), Some(of_cell)) => {
                    let message = format!(
                        "arm {} is {own} and {} is {of_cell}; say the engine in the arms or in the factors",
                        arm.name, cell.id
                    );
                    return Err(SpecError::new("arm.engine", message));
                }
                (None, None) => {
                    let message = format!("arm {} has none, and {} has none for it", arm.name, cell.id);
                    return Err(SpecError::new("arm.engine", message));
                }
            };
            does(arm, engine, cell)?;
        }
    }
    Ok(())
}

fn does(arm: &ArmSpec, engine: StorageEngine, cell: &CellSpec) -> Result<(), SpecError> {
    if has_threads(engine) && cell.depth > THREADS_MAX {
        let message = format!(
            "{} has {} operations in flight, and {engine} needs a thread for each; at most {THREADS_MAX} are allowed",
            cell.id, cell.depth
        );
        return Err(SpecError::new("depth", message));
    }
    match &arm.subject {
        Subject::Fio { .. } if engine == StorageEngine::Threads => {
            let message = format!("arm {}: fio has no engine like threads", arm.name);
            Err(SpecError::new("arm.engine", message))
        }
        Subject::Storage(subject) => of_weir(&arm.name, engine, subject),
        _ => Ok(()),
    }
}

fn of_weir(arm: &str, engine: StorageEngine, subject: &StorageSubject) -> Result<(), SpecError> {
    let StorageSubject { options, completion, .. } = subject;
    if completion.predictor.is_empty() || completion.predictor.contains(char::is_whitespace) {
        let message = format!("arm {arm}: {:?} is no way to wait", completion.predictor);
        return Err(SpecError::new("arm.wait", message));
    }
    if !engine.is_asynchronous() && (completion.predictor != INTERRUPT || completion.armed) {
        let message = format!("arm {arm}: {engine} waits inside its call; it has no wait to choose");
        return Err(SpecError::new("arm.wait", message));
    }
    let own = match engine {
        StorageEngine::IoUring => StorageEngineOptions { high_priority: false, ..*options },
        StorageEngine::Pwritev => {
            StorageEngineOptions { high_priority: options.high_priority, ..StorageEngineOptions::default() }
        }
        _ => StorageEngineOptions::default(),
    };
    if own == *options {
        return Ok(());
    }
    Err(SpecError::new("arm.options", format!("arm {arm}: {engine} has no use for one of them")))
}

/// Identifier of a cell: `randread-b4096-qd1`, `libaio-randwrite-b4096-qd32-bg32`.
pub(super) fn cell_id(cell: &CellSpec, storage: &StorageCell) -> String {
    let engine = storage.engine.map(|engine| format!("{engine}-")).unwrap_or_default();
    let mut id = format!("{engine}{}-b{}-qd{}", storage.pattern, cell.message_bytes, cell.depth);
    if storage.background_depth > 0 {
        id.push_str(&format!("-bg{}", storage.background_depth));
    }
    id
}

#[cfg(test)]
mod tests {
    use weir_record::storage::CompletionMethod;

    use super::*;
    use crate::{storage::tests::study, validate};

    fn refused(change: impl FnOnce(&mut StudySpec)) -> String {
        let mut spec = study();
        change(&mut spec);
        validate::study(&spec).expect_err("it is wrong").to_string()
    }

    fn storage(spec: &mut StudySpec) -> &mut StorageCell {
        spec.cells[0].storage.as_mut().expect("it is of storage")
    }

    fn subject(spec: &mut StudySpec) -> &mut StorageSubject {
        match &mut spec.arms[0].subject {
            Subject::Storage(subject) => subject,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn levels_out_of_range_are_named_with_their_range() {
        assert_eq!(validate::study(&study()), Ok(()));
        assert_eq!(
            refused(|spec| spec.cells[0].message_bytes = 0),
            "block_bytes: 0 is out of range; it must be from 512 to 16777216"
        );
        assert_eq!(
            refused(|spec| spec.cells[0].message_bytes = 1_000),
            "block_bytes: 1000 is no multiple of 512, which O_DIRECT asks for"
        );
        assert_eq!(
            refused(|spec| spec.cells[0].depth = 0),
            "depth: 0 is out of range; it must be from 1 to 1024"
        );
        assert_eq!(
            refused(|spec| storage(spec).background_depth = 5_000),
            "background_depth: 5000 is out of range; it must be from 0 to 1024"
        );
        assert_eq!(
            refused(|spec| storage(spec).file_bytes = 4_096),
            "file_size: it must be from 1MiB to 1TiB"
        );
        let large = refused(|spec| {
            (spec.cells[0].message_bytes, spec.cells[0].depth) = (1 << 20, 2);
            storage(spec).file_bytes = 1 << 20;
        });
        assert!(large.starts_with("file_size: ") && large.contains("more in flight"), "{large}");
    }

    #[test]
    fn an_engine_is_said_once() {
        assert!(
            refused(|spec| storage(spec).engine = Some(StorageEngine::Libaio)).starts_with("arm.engine: ")
        );
        assert!(refused(|spec| subject(spec).engine = None).contains("has none for it"));
    }

    #[test]
    fn what_an_engine_cannot_do_is_said() {
        let waits = refused(|spec| {
            subject(spec).engine = Some(StorageEngine::Pread);
            subject(spec).completion =
                CompletionMethod { predictor: "poll".to_owned(), ..Default::default() };
        });
        assert!(waits.contains("pread waits inside its call"), "{waits}");
        let options = refused(|spec| {
            subject(spec).engine = Some(StorageEngine::Libaio);
            subject(spec).options.sqpoll = true;
        });
        assert!(options.starts_with("arm.options: "), "{options}");
        let threads = refused(|spec| {
            subject(spec).engine = Some(StorageEngine::Pread);
            spec.cells[0].depth = 300;
        });
        assert!(threads.contains("at most 256"), "{threads}");
        let fio = refused(|spec| {
            let engine = Some(StorageEngine::Threads);
            spec.arms[0].subject = Subject::Fio { program: "fio".to_owned(), engine };
        });
        assert!(fio.contains("fio has no engine like threads"), "{fio}");
    }

    #[test]
    fn disks_and_connections_do_not_mix() {
        let mixed = refused(|spec| {
            spec.arms[0].subject = Subject::Command { argv: vec!["x".to_owned(), "{port}".to_owned()] };
        });
        assert!(mixed.contains("serves connections"), "{mixed}");
        let mut echo = weir_judge::sample::study(&["epoll", "uring"], 4, 1);
        echo.arms[0].subject = Subject::Fio { program: "fio".to_owned(), engine: None };
        let error = validate::study(&echo).expect_err("it is echo").to_string();
        assert!(error.contains("protocol = \"storage\""), "{error}");
    }
}
