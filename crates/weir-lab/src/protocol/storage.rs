//! Operations on a disk. A cell says what is asked of it; an arm is a way of reaching it, or of waiting for it.

use std::{borrow::Cow, collections::BTreeMap, ops::RangeInclusive, str::FromStr};

use weir_record::{
    spec::{ArmSpec, CellSpec, StorageCell, StorageSubject, StudySpec, Subject},
    storage::{
        AccessPattern, CompletionMethod, RingMode, SleepPrimitive, StorageEngine, StorageEngineOptions,
    },
};

use super::{Factor, Generator, Kind, Protocol, Setting, Value, is_closed};
use crate::{
    limits::{Level, SpecError, instead, level, one_of},
    table::{At, Entry, Fault, Table},
};

/// Smallest and largest part of the data file that is used.
pub const FILE_BYTES_RANGE: RangeInclusive<u64> = 1 << 20..=1 << 40;

/// The length of a data file unless the study says another: more than a cache of the disk, and laid out in seconds.
pub const FILE_BYTES: u64 = 1 << 30;

/// What a block of `O_DIRECT` must be a multiple of.
const SECTOR_BYTES: u32 = 512;

/// Most threads of an engine that has one operation in flight in each.
const THREADS_MAX: u32 = 256;

/// The way of waiting that every engine has.
const INTERRUPT: &str = "interrupt";

/// Whether an engine has one operation in flight for each of the job's threads.
pub fn has_threads(engine: StorageEngine) -> bool {
    !engine.is_asynchronous()
}

fn storage(cell: &mut CellSpec) -> &mut StorageCell {
    cell.storage.get_or_insert(NOTHING_ASKED)
}

const NOTHING_ASKED: StorageCell = StorageCell {
    pattern: AccessPattern::RandRead,
    engine: None,
    background_depth: 0,
    file_bytes: FILE_BYTES,
    file: None,
};

/// The arms may say it instead.
const ENGINE: Factor = Factor {
    key: "engine",
    kind: Kind::Word(|text| engine("engine", text).map(|engine| engine.to_string())),
    default: None,
    set: |cell, level| storage(cell).engine = StorageEngine::from_str(level.word()).ok(),
    shown: |cell| Some(cell.storage.as_ref()?.engine?.to_string()),
};

const PATTERN: Factor = Factor {
    key: "pattern",
    kind: Kind::Word(|text| pattern(text).map(|pattern| pattern.to_string())),
    default: Some(Value::Word(Cow::Borrowed("randread"))),
    set: |cell, level| {
        storage(cell).pattern = AccessPattern::from_str(level.word()).unwrap_or(AccessPattern::RandRead);
    },
    shown: |cell| Some(cell.storage.as_ref()?.pattern.to_string()),
};

const BLOCK_BYTES: Factor = Factor {
    key: "block_bytes",
    kind: Kind::Number(Level::BlockBytes),
    default: Some(Value::Number(4_096)),
    set: |cell, level| cell.message_bytes = level.number(),
    shown: |cell| Some(format!("b{}", cell.message_bytes)),
};

const DEPTH: Factor = Factor { shown: |cell| Some(format!("qd{}", cell.depth)), ..super::echo::DEPTH };

const BACKGROUND_DEPTH: Factor = Factor {
    key: "background_depth",
    kind: Kind::Number(Level::BackgroundDepth),
    default: Some(Value::Number(0)),
    set: |cell, level| storage(cell).background_depth = level.number(),
    shown: |cell| super::factor::unusual("bg", cell.storage.as_ref()?.background_depth, 0),
};

/// A disk.
pub(super) struct Storage;

impl Protocol for Storage {
    fn name(&self) -> &'static str {
        "storage"
    }

    fn factors(&self) -> &'static [Factor] {
        &[ENGINE, PATTERN, BLOCK_BYTES, DEPTH, BACKGROUND_DEPTH]
    }

    fn begin(&self, cell: &mut CellSpec) {
        cell.storage = Some(NOTHING_ASKED);
    }

    /// A ramp: no more than it takes to fill a queue and to warm up a predictor.
    fn warmup_ns_max(&self) -> u64 {
        300_000_000
    }

    fn settings(&self, table: &mut Table<'_>) -> Result<Vec<Setting>, Fault> {
        let mut settings: Vec<Setting> = Vec::new();
        let name = |entry: Entry<'_>| {
            let nameless = entry.wrong("the file has no name".to_owned());
            entry.text().and_then(|name| if name.is_empty() { Err(nameless) } else { Ok(name) })
        };
        if let Some(file) = table.read("file", name)? {
            settings.push(Box::new(move |cell| storage(cell).file = Some(file.clone())));
        }
        if let Some(bytes) = table.read("file_size", Entry::size)? {
            settings.push(Box::new(move |cell| storage(cell).file_bytes = bytes));
        }
        Ok(settings)
    }

    fn generator(&self) -> Option<&dyn Generator> {
        None
    }

    fn subject(&self, arm: &mut Table<'_>) -> Result<Subject, Fault> {
        let own_engine = arm.read("engine", |entry| {
            let (at, key) = (entry.at, entry.key.clone());
            engine(&key, &entry.text()?).at(at)
        })?;
        let tool = arm.read("tool", |entry| Ok((entry.at, entry.text()?)))?;
        let of_weir = ["options", "wait", "armed", "sleep"].iter().any(|key| arm.has(key));
        let options = arm.read("options", Entry::table)?.map_or_else(|| Ok(Default::default()), options)?;
        let completion = completion(arm)?;
        let Some((at, tool)) = tool.filter(|(_, tool)| tool != "weir") else {
            return Ok(Subject::Storage(StorageSubject { engine: own_engine, options, completion }));
        };
        let program = fio(&tool).at(at)?;
        if of_weir {
            let message =
                "`options`, `wait`, `armed` and `sleep` belong to Weir; fio has no such choice here";
            return Err(arm.wrong(message));
        }
        Ok(Subject::Fio { program, engine: own_engine })
    }

    fn load_shown(&self, _cell: &CellSpec) -> Option<String> {
        None
    }

    fn obstacle(&self, cell: &CellSpec) -> Option<&'static str> {
        let reads = [AccessPattern::RandRead, AccessPattern::Read];
        let is_read = cell.storage.as_ref().is_some_and(|storage| reads.contains(&storage.pattern));
        (!is_read).then_some("a disk carries what one arm wrote into the turn of the next")
    }

    fn obstacle_of_arm(&self, arm: &ArmSpec) -> Option<&'static str> {
        let Subject::Storage(subject) = &arm.subject else { return None };
        if subject.options.sqpoll {
            return Some("the kernel's thread that polls for an arm goes on while the arm is stopped");
        }
        let learns = !["interrupt", "poll"].contains(&subject.completion.predictor.as_str());
        learns.then_some("a predictor would learn from operations that waited for their arm's turn")
    }

    /// Long against stopping and going on, and short against the disk's moods.
    fn slice_ns_min(&self) -> u64 {
        50_000_000
    }

    fn round_ns(&self) -> u64 {
        // A job takes a while to begin, and to end.
        2_400_000_000
    }

    fn start_ns(&self, cell: &CellSpec) -> u64 {
        150_000_000 + cell.warmup_ns_max
    }

    fn check_cell(&self, cell: &CellSpec) -> Result<(), SpecError> {
        let Some(storage) = &cell.storage else { return Ok(()) };
        level(Level::BlockBytes, i64::from(cell.message_bytes))?;
        level(Level::BackgroundDepth, i64::from(storage.background_depth))?;
        if !cell.message_bytes.is_multiple_of(SECTOR_BYTES) {
            let message =
                format!("{} is no multiple of {SECTOR_BYTES}, which O_DIRECT asks for", cell.message_bytes);
            return Err(SpecError::new("block_bytes", message));
        }
        if !FILE_BYTES_RANGE.contains(&storage.file_bytes) {
            return Err(SpecError::new("file_size", "it must be from 1MiB to 1TiB".to_owned()));
        }
        let in_flight = u64::from(cell.message_bytes) * u64::from(cell.depth);
        if storage.file_bytes < in_flight {
            let message = format!("{} has more in flight ({in_flight} bytes) than the file holds", cell.id);
            return Err(SpecError::new("file_size", message));
        }
        if !is_closed(cell) {
            let message = format!("{} has an offered rate; storage jobs of a study have none", cell.id);
            return Err(SpecError::new("latency", message));
        }
        Ok(())
    }

    fn check_arms(&self, spec: &StudySpec) -> Result<(), SpecError> {
        spec.arms.iter().try_for_each(|arm| check_arm(spec, arm).map_err(|error| error.of_arm(&arm.name)))
    }
}

fn check_arm(spec: &StudySpec, arm: &ArmSpec) -> Result<(), SpecError> {
    check_kind(arm)?;
    for cell in spec.cells.iter().filter(|cell| cell.has_arm(&arm.name)) {
        let of_cell = cell.storage.as_ref().and_then(|storage| storage.engine);
        let engine = match (arm.subject.storage_engine(), of_cell) {
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
    Ok(())
}

/// A tool that works on a disk.
fn check_kind(arm: &ArmSpec) -> Result<(), SpecError> {
    match &arm.subject {
        Subject::Fio { program, .. } if program.is_empty() => {
            Err(SpecError::new("arm.tool", "the program has no name".to_owned()))
        }
        Subject::Fio { .. } | Subject::Storage(_) => Ok(()),
        Subject::Weir { .. } | Subject::Command { .. } | Subject::Gateway(_) => {
            let message = format!("arm {} serves connections, and a study of storage has none", arm.name);
            Err(SpecError::new("arm", message))
        }
    }
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

fn completion(arm: &mut Table<'_>) -> Result<CompletionMethod, Fault> {
    let default = CompletionMethod::default();
    let sleep = arm.read("sleep", |entry| {
        let at = entry.at;
        sleep(&entry.text()?).at(at)
    })?;
    Ok(CompletionMethod {
        predictor: arm.read("wait", Entry::text)?.unwrap_or(default.predictor),
        armed: arm.read("armed", Entry::flag)?.unwrap_or(default.armed),
        sleep: sleep.unwrap_or(default.sleep),
    })
}

/// The program of a tool that is not Weir: fio, or a path to one.
fn fio(tool: &str) -> Result<String, SpecError> {
    let name = tool.rsplit('/').next().unwrap_or_default();
    if name.starts_with("fio") {
        return Ok(tool.to_owned());
    }
    Err(SpecError::new(
        "arm.tool",
        format!("{tool:?} is not known; use \"weir\", \"fio\" or a path to a fio"),
    ))
}

fn engine(key: &str, name: &str) -> Result<StorageEngine, SpecError> {
    one_of(key, name, &StorageEngine::ALL.map(StorageEngine::name))?;
    StorageEngine::from_str(name).map_err(|message| SpecError::new(key, message))
}

fn pattern(name: &str) -> Result<AccessPattern, SpecError> {
    AccessPattern::from_str(name).map_err(|_| {
        let names = AccessPattern::ALL.map(AccessPattern::name);
        SpecError::new("pattern", format!("there is no {name:?}; {}", instead(name, &names)))
    })
}

fn sleep(name: &str) -> Result<SleepPrimitive, SpecError> {
    match name {
        "auto" => Ok(SleepPrimitive::Auto),
        "clock-nanosleep" => Ok(SleepPrimitive::ClockNanosleep),
        "ring-timeout" => Ok(SleepPrimitive::RingTimeout),
        "timerfd" => Ok(SleepPrimitive::Timerfd),
        other => {
            let known = ["auto", "clock-nanosleep", "ring-timeout", "timerfd"];
            Err(SpecError::new("arm.sleep", format!("there is no {other:?}; {}", instead(other, &known))))
        }
    }
}

type Switch = fn(&mut StorageEngineOptions) -> &mut bool;

/// Options of an engine as a file writes them.
fn options(mut given: Table<'_>) -> Result<StorageEngineOptions, Fault> {
    let mut options = StorageEngineOptions::default();
    let switches: [(&str, Switch); 6] = [
        ("sqpoll", |it| &mut it.sqpoll),
        ("iopoll", |it| &mut it.iopoll),
        ("hybrid-iopoll", |it| &mut it.hybrid_iopoll),
        ("fixed-buffers", |it| &mut it.fixed_buffers),
        ("fixed-files", |it| &mut it.fixed_files),
        ("high-priority", |it| &mut it.high_priority),
    ];
    for (name, of) in switches {
        let meanings = BTreeMap::from([("on", true), ("off", false)]);
        if let Some(is_on) = given.read(name, |entry| meaning(entry, &meanings))? {
            *of(&mut options) = is_on;
        }
    }
    let modes = BTreeMap::from([
        ("default", RingMode::Default),
        ("coop", RingMode::Coop),
        ("defer", RingMode::Defer),
    ]);
    if let Some(mode) = given.read("ring-mode", |entry| meaning(entry, &modes))? {
        options.ring_mode = mode;
    }
    given.finish(|_| None)?;
    Ok(options)
}

/// What a word of an option means.
fn meaning<V: Copy>(entry: Entry<'_>, meanings: &BTreeMap<&str, V>) -> Result<V, Fault> {
    let (at, key) = (entry.at, entry.key.clone());
    let word = entry.text()?;
    let known: Vec<&str> = meanings.keys().copied().collect();
    one_of(&key, &word, &known).at(at)?;
    meanings.get(word.as_str()).copied().ok_or_else(|| Fault::new(at, &key, "it has no meaning".to_owned()))
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
        super::storage(&mut spec.cells[0])
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
