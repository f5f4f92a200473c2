//! Prerequisites of a study of storage before its first block: methods of waiting that exist, and data to read.

use std::{
    cell::Cell,
    fs::File,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use anyhow::{Context, Result};
use weir_lab::{host_defaults::DriverFound, run::RunError, storage};
use weir_record::{
    finding::Finding,
    spec::{StorageCell, StudySpec, Subject},
    storage::StorageEngine,
};
use weir_report::{Language, localized};
use weir_storage::{
    engine::{probe, target::length_bytes},
    job::units::shown_bytes,
    layout::{self, LayoutError},
};

use super::study_launcher::check_wait;
use crate::{exit::UsageError, language, output};

/// The smallest data file of a study.
const FILE_BYTES_MIN: u64 = *storage::FILE_BYTES_RANGE.start();
/// The ring's plain mode among the probed ones.
const PLAIN_RING: &str = "io_uring, defer";

/// Refuses methods of waiting that do not exist. `place` says where an arm stands, for the message.
pub(super) fn check(spec: &StudySpec, place: impl Fn(&str) -> String) -> Result<()> {
    for arm in &spec.arms {
        let Subject::Storage(subject) = &arm.subject else { continue };
        if let Err(error) = check_wait(subject) {
            return Err(UsageError(format!("{}arm {}: wait: {error}", place(&arm.name), arm.name)).into());
        }
    }
    Ok(())
}

/// Uses a file of the user, up to its length.
pub(super) fn use_file(spec: &mut StudySpec, file: &str) {
    storage::use_file(spec, file);
    // A missing or unreadable file is reported when the study begins.
    if let Ok(has) = File::open(file).and_then(|file| length_bytes(&file)) {
        storage::use_at_most(spec, has);
    }
}

/// Whether the data are ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ready {
    Yes,
    /// The user ended it before the data were ready.
    Interrupted,
}

/// The same for a new study. If it has other devices too, it begins even if a disk cannot be used: the cells of that
/// disk are left out and named.
pub(super) fn prepare_what_can_be(
    spec: &mut StudySpec,
    folder: &Path,
    interrupt: &AtomicBool,
) -> Result<Ready> {
    prepare(spec, folder, interrupt).or_else(|error| match error.downcast_ref::<RunError>() {
        Some(RunError::Environment(reason)) if storage::leave_out_disk(spec, reason) => {
            output::tell(&localized!(
                language::of_command_line(),
                "the disk is left out: {reason}",
                "디스크를 제외합니다: {reason}",
                "不测量磁盘：{reason}",
            ));
            Ok(Ready::Yes)
        }
        _ => Err(error),
    })
}

/// Lays out missing files, and refuses files that say nothing about a device. Files of the user are never laid out, and
/// a study that will overwrite one reports that.
pub(super) fn prepare(spec: &StudySpec, folder: &Path, interrupt: &AtomicBool) -> Result<Ready> {
    for (path, bytes) in storage::files_to_lay_out(spec, folder) {
        if lay_out(&path, bytes, interrupt)? == Ready::Interrupted {
            return Ok(Ready::Interrupted);
        }
    }
    let mut seen: Vec<PathBuf> = Vec::new();
    for cell in storage::on_disk(spec) {
        let path = storage::data_file(folder, cell);
        if seen.contains(&path) {
            continue;
        }
        let standing =
            layout::examine(&path).map_err(|error| UsageError(format!("{}: {error}", unreadable(&path))))?;
        if let Some(reason) = standing.refusals.first() {
            return Err(no_device(&path, reason, cell.file.is_some() && !standing.missing.is_empty()).into());
        }
        if cell.file.is_some() {
            check_users_file(spec, &path)?;
        }
        seen.push(path);
    }
    Ok(Ready::Yes)
}

/// Why a file says nothing about a device. A user's file with holes stays as it is.
fn no_device(path: &Path, reason: &str, is_left_alone: bool) -> RunError {
    let remedy = language::of_command_line().choose(match is_left_alone {
        true => [
            "a file that you name is not laid out; fill it with data, or leave --file out for one that is",
            "지정한 파일은 새로 만들거나 채우지 않습니다. 파일을 데이터로 채우거나, 새로 만들도록 --file을 빼십시오",
            "您指定的文件不会被重新生成；请先填满数据，或去掉 --file 以便生成一个",
        ],
        false => [
            "a study of storage speaks of a device, so name a file on one with --file",
            "스토리지 실험은 장치를 측정합니다. 장치에 있는 파일을 --file로 지정하십시오",
            "存储实验测量的是设备，请用 --file 指定设备上的文件",
        ],
    });
    RunError::Environment(format!("{}: {reason}; {remedy}", path.display()))
}

/// A file of the user is used as it is. It must be as long as the study needs. If the study will change it, the user is
/// warned before the first block.
fn check_users_file(spec: &StudySpec, path: &Path) -> Result<()> {
    let own = |cell: &&StorageCell| cell.file.as_deref().is_some_and(|file| Path::new(file) == path);
    let cells: Vec<&StorageCell> = storage::on_disk(spec).filter(own).collect();
    let used = cells.iter().map(|cell| cell.file_bytes).max().unwrap_or(0);
    let has = File::open(path).and_then(|file| length_bytes(&file)).with_context(|| unreadable(path))?;
    let (shown, language) = (path.display(), language::of_command_line());
    if used < FILE_BYTES_MIN {
        let least = shown_bytes(FILE_BYTES_MIN);
        let text = localized!(
            language,
            "{shown} has {has} bytes, and a study of storage uses {least} at least; name a larger file",
            "{shown}: {has}바이트입니다. 스토리지 실험에는 {least} 이상이 필요합니다. 더 큰 파일을 지정하십시오",
            "{shown} 有 {has} 字节，而存储实验至少需要 {least}；请指定更大的文件",
        );
        return Err(UsageError(text).into());
    }
    if has < used {
        let text = localized!(
            language,
            "{shown} has {has} bytes, and the study uses {used}; name a larger file, or ask for less with file_size",
            "{shown}: {has}바이트입니다. 실험은 {used}바이트를 씁니다. 더 큰 파일을 지정하거나 file_size를 줄이십시오",
            "{shown} 有 {has} 字节，而实验使用 {used} 字节；请指定更大的文件，或减小 file_size",
        );
        return Err(UsageError(text).into());
    }
    if !cells.iter().any(|cell| cell.pattern.writes()) {
        return Ok(());
    }
    if is_device(path)? {
        let text = localized!(
            language,
            "{shown} is a block device, and the study writes; name a file instead",
            "{shown}: 블록 장치입니다. 이 실험은 쓰기를 하므로 파일을 지정하십시오",
            "{shown} 是块设备，而该实验会写入；请改为指定文件",
        );
        return Err(UsageError(text).into());
    }
    output::tell(&overwrites(path, used, language));
    Ok(())
}

fn unreadable(path: &Path) -> String {
    let path = path.display();
    localized!(
        language::of_command_line(),
        "cannot read the data file {path}",
        "데이터 파일({path})을 읽을 수 없습니다",
        "无法读取数据文件 {path}",
    )
}

fn overwrites(path: &Path, used: u64, language: Language) -> String {
    let (path, used) = (path.display(), shown_bytes(used));
    localized!(
        language,
        "warning: {path} is used as it is, not laid out, and this study writes: what its first {used} hold is \
         overwritten",
        "경고: {path} 파일을 새로 만들지 않고 그대로 씁니다. 이 실험은 쓰기를 하므로, 앞부분 {used}의 내용을 덮어씁니다",
        "警告：{path} 将按原样使用，不会重新生成；本实验会写入，其前 {used} 的内容将被覆盖",
    )
}

fn is_device(path: &Path) -> Result<bool> {
    use std::os::unix::fs::FileTypeExt;
    let metadata = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(metadata.file_type().is_block_device())
}

fn lay_out(path: &Path, bytes: u64, interrupt: &AtomicBool) -> Result<Ready> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    // A line for each tenth, and none for a file that exists.
    let told_tenths = Cell::new(0);
    let progress = |done: u64, all: u64| {
        let tenths = done.saturating_mul(10) / all.max(1);
        if tenths > told_tenths.replace(tenths) {
            let (path, done_mib, all_mib) = (path.display(), done >> 20, all >> 20);
            output::tell(&localized!(
                language::of_command_line(),
                "laying out {path}: {done_mib} of {all_mib} MiB",
                "{path} 만드는 중: {all_mib} MiB 중 {done_mib} MiB",
                "正在生成 {path}：{done_mib} / {all_mib} MiB",
            ));
        }
    };
    let seed = layout::data_seed(path, storage::FILE_SEED);
    match layout::prepare(path, bytes, seed, &progress, interrupt) {
        Ok(_) => Ok(Ready::Yes),
        Err(LayoutError::Interrupted) => Ok(Ready::Interrupted),
        Err(error) => Err(RunError::Environment(error.to_string()).into()),
    }
}

/// Probes each engine on a file that certainly exists: this program's own.
pub(super) fn engines() -> Vec<DriverFound> {
    let Ok(program) = std::env::current_exe() else { return Vec::new() };
    let modes = probe::modes(&program);
    let found = |engine: StorageEngine| {
        let name = if engine == StorageEngine::IoUring { PLAIN_RING } else { engine.name() };
        let mode = modes.iter().find(|mode| mode.name == name)?;
        Some(DriverFound {
            driver: engine.name().to_owned(),
            available: mode.refusal.is_none(),
            detail: match mode.refusal.as_ref().or(mode.note.as_ref()) {
                Some(said) => Finding::Said { text: said.clone() },
                None => Finding::BlockRead,
            },
            unlock: None,
        })
    };
    StorageEngine::ALL.into_iter().filter_map(found).collect()
}

#[cfg(test)]
mod tests {
    use weir_lab::{host_defaults::HostDefaults, study_file};

    use super::*;

    fn study(waits: [&str; 2]) -> StudySpec {
        let arms = waits.map(|wait| {
            format!(
                "[[arm]]\nname = \"{}\"\nengine = \"io_uring\"\nwait = \"{wait}\"\n",
                wait.replace(':', "-")
            )
        });
        let text = format!("name = \"waits\"\nprotocol = \"storage\"\n{}", arms.concat());
        study_file::parse(Path::new("waits.toml"), &text, &HostDefaults::default()).expect("it is right").spec
    }

    #[test]
    fn a_way_to_wait_that_is_none_is_named_with_its_arm() {
        assert!(check(&study(["interrupt", "poll"]), |_| String::new()).is_ok());
        let error = check(&study(["interrupt", "guess"]), |arm| format!("s.toml:3 ({arm}): "));
        let error = error.expect_err("there is none").to_string();
        assert!(error.starts_with("s.toml:3 (guess): arm guess: wait: "), "{error}");
    }

    #[test]
    fn whoever_names_a_file_is_told_what_becomes_of_it() {
        let text = overwrites(Path::new("precious"), 64 << 20, Language::English);
        assert!(text.starts_with("warning: precious is used as it is, not laid out"), "{text}");
        assert!(text.ends_with("what its first 64m hold is overwritten"), "{text}");
        for language in [Language::Korean, Language::Chinese] {
            let text = overwrites(Path::new("precious"), 64 << 20, language);
            assert!(text.contains("precious") && text.contains("64m") && !text.contains("warning"), "{text}");
        }
        let holes = no_device(Path::new("sparse"), "it has holes", true).to_string();
        assert!(holes.contains("not laid out") && holes.contains("leave --file out"), "{holes}");
        let memory = no_device(Path::new("shm"), "it is in memory", false).to_string();
        assert!(memory.contains("name a file on one with --file"), "{memory}");
    }

    #[test]
    fn every_engine_has_a_row_that_says_something() {
        let found = engines();
        let names: Vec<&str> = found.iter().map(|found| found.driver.as_str()).collect();
        assert_eq!(names, StorageEngine::ALL.map(StorageEngine::name));
    }
}
