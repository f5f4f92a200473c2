//! Operations on a disk. A cell defines the operations; an arm is a way to submit them, or to wait for them.

use std::{borrow::Cow, collections::BTreeMap, ops::RangeInclusive, str::FromStr};

use weir_record::{
    finding::NoTurns,
    spec::{ArmSpec, CellRole, CellSpec, StorageCell, StorageSubject, StudySpec, Subject},
    storage::{
        AccessPattern, CompletionMethod, RingMode, SleepPrimitive, StorageDevice, StorageEngine,
        StorageEngineOptions, SyntheticTrace,
    },
};

use super::{Factor, Kind, LoadWords, Protocol, Setting, Value, is_closed, start::ServerStart};
use crate::{
    launch::TrialRequest,
    limits::{Level, SpecError, instead, level, one_of},
    toml_table::{At, Entry, FieldError, Table},
};

/// Smallest and largest part of the data file that is used.
pub const FILE_BYTES_RANGE: RangeInclusive<u64> = 1 << 20..=1 << 40;

/// Default length of a data file: larger than a disk's cache, and laid out in seconds.
pub const FILE_BYTES: u64 = 1 << 30;

/// Divisor of the length of an `O_DIRECT` block, in bytes.
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
    device: StorageDevice::Disk,
    pattern: AccessPattern::RandRead,
    engine: None,
    background_depth: 0,
    background_cores: 1,
    core_steps: Vec::new(),
    file_bytes: FILE_BYTES,
    file: None,
};

const DEVICE: Factor = Factor {
    key: "device",
    kind: Kind::Word(|text| device(text).map(|device| device.to_string())),
    default: Some(Value::Word(Cow::Borrowed("disk"))),
    set: |cell, level| {
        storage(cell).device = StorageDevice::from_str(level.word()).unwrap_or_default();
    },
    shown: |cell| match &cell.storage.as_ref()?.device {
        StorageDevice::Disk => None,
        StorageDevice::Trace(file) => Some(format!("trace-{}", stem(file))),
        device => Some(device.to_string().replace(':', "-")),
    },
};

/// Name of a file in an identifier.
fn stem(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or_default();
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    stem.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect()
}

/// Text of a level for a disk; `None` for a simulated device, whose operations are always the same.
fn of_disk(cell: &CellSpec, shown: impl Fn(&StorageCell) -> String) -> Option<String> {
    cell.storage.as_ref().filter(|storage| !storage.device.is_simulated()).map(shown)
}

/// The engine; the arms may set it instead.
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
    shown: |cell| of_disk(cell, |storage| storage.pattern.to_string()),
};

const BLOCK_BYTES: Factor = Factor {
    key: "block_bytes",
    kind: Kind::Number(Level::BlockBytes),
    default: Some(Value::Number(4_096)),
    set: |cell, level| cell.message_bytes = level.number(),
    shown: |cell| of_disk(cell, |_| format!("b{}", cell.message_bytes)),
};

const DEPTH: Factor =
    Factor { shown: |cell| of_disk(cell, |_| format!("qd{}", cell.depth)), ..super::echo::DEPTH };

const BACKGROUND_DEPTH: Factor = Factor {
    key: "background_depth",
    kind: Kind::Number(Level::BackgroundDepth),
    default: Some(Value::Number(0)),
    set: |cell, level| storage(cell).background_depth = level.number(),
    shown: |cell| super::factor::unusual("bg", cell.storage.as_ref()?.background_depth, 0),
};

const BACKGROUND_CORES: Factor = Factor {
    key: "background_cores",
    kind: Kind::Number(Level::BackgroundCores),
    default: Some(Value::Number(1)),
    set: |cell, level| storage(cell).background_cores = level.number(),
    shown: |cell| {
        let storage = cell.storage.as_ref()?;
        if storage.core_steps.is_empty() {
            return super::factor::unusual("cores", storage.background_cores, 1);
        }
        let steps: Vec<String> = storage.core_steps.iter().map(u32::to_string).collect();
        Some(format!("steps-{}", steps.join("-")))
    },
};

/// The protocol of a disk, or of a simulated device.
pub(super) struct Storage;

impl Protocol for Storage {
    fn name(&self) -> &'static str {
        "storage"
    }

    fn factors(&self) -> &'static [Factor] {
        &[DEVICE, ENGINE, PATTERN, BLOCK_BYTES, DEPTH, BACKGROUND_DEPTH, BACKGROUND_CORES]
    }

    fn begin(&self, cell: &mut CellSpec) {
        cell.storage = Some(NOTHING_ASKED);
    }

    /// Length of a ramp: no more than it takes to fill a queue and to warm up a predictor.
    fn warmup_ns_max(&self) -> u64 {
        300_000_000
    }

    fn settings(&self, table: &mut Table<'_>) -> Result<Vec<Setting>, FieldError> {
        let mut settings: Vec<Setting> = Vec::new();
        let name = |entry: Entry<'_>| {
            let nameless = entry.wrong("the file has no name".to_owned());
            entry.text().and_then(|name| if name.is_empty() { Err(nameless) } else { Ok(name) })
        };
        if let Some(file) = table.read("file", name)? {
            settings.push(Box::new(move |cell| storage(cell).file = Some(file.clone())));
        }
        let steps = |entry: Entry<'_>| {
            entry.list()?.into_iter().map(|it| it.level(Level::BackgroundCoreStep)).collect()
        };
        if let Some(steps) = table.read::<Vec<u32>>("core_steps", steps)? {
            settings.push(Box::new(move |cell| storage(cell).core_steps = steps.clone()));
        }
        if let Some(bytes) = table.read("file_size", Entry::size)? {
            settings.push(Box::new(move |cell| storage(cell).file_bytes = bytes));
        }
        Ok(settings)
    }

    fn generator(&self) -> Option<LoadWords> {
        None
    }

    fn servers(&self, _request: &TrialRequest<'_>) -> Vec<ServerStart> {
        Vec::new()
    }

    fn runs(&self, subject: &Subject) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        match subject {
            Subject::Storage(storage) => {
                words.extend(storage.engine.iter().map(|engine| format!("--engine {engine}")));
                words.push(format!("--wait {}", storage.completion.predictor));
                words.extend(storage.completion.armed.then(|| "--armed".to_owned()));
                words.extend(storage.completion.true_times.then(|| "told true times".to_owned()));
            }
            Subject::Fio { program, engine } => {
                words.push(program.clone());
                words.extend(engine.iter().map(|engine| format!("like {engine}")));
            }
            Subject::Weir { .. } | Subject::Command { .. } | Subject::Running(_) | Subject::Gateway(_) => {}
        }
        words
    }

    fn subject(&self, arm: &mut Table<'_>) -> Result<Subject, FieldError> {
        let own_engine = arm.read("engine", |entry| {
            let (at, key) = (entry.at, entry.key.clone());
            engine(&key, &entry.text()?).at(at)
        })?;
        let tool = arm.read("tool", |entry| Ok((entry.at, entry.text()?)))?;
        let of_weir = ["options", "wait", "armed", "sleep", "true_times"].iter().any(|key| arm.has(key));
        let options = arm.read("options", Entry::table)?.map_or_else(|| Ok(Default::default()), options)?;
        let completion = completion(arm)?;
        let Some((at, tool)) = tool.filter(|(_, tool)| tool != "weir") else {
            return Ok(Subject::Storage(StorageSubject { engine: own_engine, options, completion }));
        };
        let program = fio(&tool).at(at)?;
        if of_weir {
            let message = "`options`, `wait`, `armed`, `sleep` and `true_times` belong to Weir; fio has no such choice here";
            return Err(arm.wrong(message));
        }
        Ok(Subject::Fio { program, engine: own_engine })
    }

    fn load_shown(&self, _cell: &CellSpec) -> Option<String> {
        None
    }

    fn obstacle(&self, cell: &CellSpec) -> Option<NoTurns> {
        if cell.is_series() {
            return Some(NoTurns::Series);
        }
        if cell.is_simulated() {
            return Some(NoTurns::Simulated);
        }
        let reads = [AccessPattern::RandRead, AccessPattern::Read];
        let is_read = cell.storage.as_ref().is_some_and(|storage| reads.contains(&storage.pattern));
        (!is_read).then_some(NoTurns::Writes)
    }

    fn obstacle_of_arm(&self, arm: &ArmSpec) -> Option<NoTurns> {
        let Subject::Storage(subject) = &arm.subject else { return None };
        if subject.options.sqpoll {
            return Some(NoTurns::KernelPolls);
        }
        let learns = !["interrupt", "poll"].contains(&subject.completion.predictor.as_str());
        learns.then_some(NoTurns::Predictor)
    }

    /// Shortest slice: long compared with stopping and resuming a job, and short compared with changes of the disk's
    /// speed.
    fn slice_ns_min(&self) -> u64 {
        50_000_000
    }

    fn round_ns(&self) -> u64 {
        // A job takes a while to begin and to end, and a disk differs more between slices than jobs differ between
        // rounds.
        7_500_000_000
    }

    fn start_ns(&self, cell: &CellSpec) -> u64 {
        150_000_000 + cell.warmup_ns_max
    }

    fn check_cell(&self, cell: &CellSpec) -> Result<(), SpecError> {
        let Some(storage) = &cell.storage else { return Ok(()) };
        level(Level::BlockBytes, i64::from(cell.message_bytes))?;
        level(Level::BackgroundDepth, i64::from(storage.background_depth))?;
        level(Level::BackgroundCores, i64::from(storage.background_cores))?;
        check_device(cell, storage)?;
        check_steps(cell, storage)?;
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

/// Checks the operations against the device.
fn check_device(cell: &CellSpec, storage: &StorageCell) -> Result<(), SpecError> {
    let wrong = |key: &str, message: String| Err(SpecError::new(key, format!("{} {message}", cell.id)));
    let (device, cores) = (&storage.device, storage.background_cores);
    let has_load = matches!(device, StorageDevice::Model | StorageDevice::ModelLate);
    if *device == StorageDevice::Disk && cores > 1 {
        return wrong("background_cores", "is on a disk, which one process loads; say its depth".to_owned());
    }
    if !device.is_simulated() {
        return Ok(());
    }
    if (storage.pattern, cell.message_bytes, cell.depth) != (AccessPattern::RandRead, 4_096, 1) {
        let message = format!("is of {device}, which serves random reads of 4096 bytes, one at a time");
        return wrong("device", message);
    }
    if storage.engine.is_some() {
        return wrong("engine", format!("is of {device}, which is reached without an engine; leave it out"));
    }
    if !has_load && storage.background_depth > 0 {
        return wrong("background_depth", format!("is of {device}, whose latencies hold their load already"));
    }
    if storage.background_depth == 0 && cores > 1 {
        return wrong("background_cores", "has cores that keep nothing in flight".to_owned());
    }
    Ok(())
}

/// Most steps of a cell.
const STEPS_MAX: usize = 16;

/// Checks whether a load can change in these steps.
fn check_steps(cell: &CellSpec, storage: &StorageCell) -> Result<(), SpecError> {
    let steps = &storage.core_steps;
    let Some(most) = steps.iter().max() else { return Ok(()) };
    let wrong = |message: String| Err(SpecError::new("core_steps", format!("{} {message}", cell.id)));
    if steps.len() > STEPS_MAX {
        return wrong(format!("has {} steps; at most {STEPS_MAX} are allowed", steps.len()));
    }
    if cell.role != CellRole::Exploratory {
        return wrong("is drawn over time and claims nothing; leave `role` out".to_owned());
    }
    if storage.background_cores > 1 {
        return wrong("has background_cores too; the steps say how many there are".to_owned());
    }
    if storage.background_depth == 0 {
        return wrong("has steps of cores that keep nothing in flight; say background_depth".to_owned());
    }
    if matches!(storage.device, StorageDevice::Synthetic(_) | StorageDevice::Trace(_)) {
        return wrong(format!("is of {}, whose latencies hold their load already", storage.device));
    }
    // On a disk one process keeps all of them in flight.
    if storage.device == StorageDevice::Disk {
        level(Level::BackgroundDepth, i64::from(*most) * i64::from(storage.background_depth))?;
    }
    Ok(())
}

/// Checks an arm on a simulated device.
fn check_simulated(arm: &ArmSpec, cell: &CellSpec) -> Result<(), SpecError> {
    let wrong = |key: &str, message: &str| {
        Err(SpecError::new(key, format!("arm {} runs in {}: {message}", arm.name, cell.id)))
    };
    match &arm.subject {
        Subject::Storage(subject) if subject.options != StorageEngineOptions::default() => {
            wrong("arm.options", "a simulated device is reached without an engine's options")
        }
        Subject::Storage(_) => Ok(()),
        _ => wrong("arm.tool", "only Weir waits for a simulated device; say `where` the arm runs"),
    }
}

fn check_arm(spec: &StudySpec, arm: &ArmSpec) -> Result<(), SpecError> {
    check_kind(arm)?;
    for cell in spec.cells.iter().filter(|cell| cell.has_arm(&arm.name)) {
        if cell.is_series() && matches!(arm.subject, Subject::Fio { .. }) {
            let message = format!(
                "arm {} runs in {}, which is drawn over time, and fio has no such figures",
                arm.name, cell.id
            );
            return Err(SpecError::new("cell.arms", message));
        }
        if cell.is_simulated() {
            check_simulated(arm, cell)?;
            continue;
        }
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

/// Checks the tool of an arm on a disk.
fn check_kind(arm: &ArmSpec) -> Result<(), SpecError> {
    match &arm.subject {
        Subject::Fio { program, .. } if program.is_empty() => {
            Err(SpecError::new("arm.tool", "the program has no name".to_owned()))
        }
        Subject::Fio { .. } | Subject::Storage(_) => Ok(()),
        Subject::Weir { .. } | Subject::Command { .. } | Subject::Running(_) | Subject::Gateway(_) => {
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
    if let Some(reason) = beyond_a_disk(completion) {
        return Err(SpecError::new("arm.wait", format!("arm {arm}: {reason}; say `where` it runs")));
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

/// Why this way of waiting is impossible for a disk.
fn beyond_a_disk(completion: &CompletionMethod) -> Option<String> {
    let knows = |what: &str| format!("{what}, which only a simulated device can tell");
    let wait = &completion.predictor;
    match wait.as_str() {
        _ if completion.true_times => Some(knows("true_times is what the device took after an oversleep")),
        "clairvoyant" => Some(knows("clairvoyant knows when each operation will be done")),
        _ if wait.starts_with("constant:") => Some(knows("constant knows the latencies of the whole run")),
        _ => None,
    }
}

fn completion(arm: &mut Table<'_>) -> Result<CompletionMethod, FieldError> {
    let default = CompletionMethod::default();
    let sleep = arm.read("sleep", |entry| {
        let at = entry.at;
        sleep(&entry.text()?).at(at)
    })?;
    Ok(CompletionMethod {
        predictor: arm.read("wait", Entry::text)?.unwrap_or(default.predictor),
        armed: arm.read("armed", Entry::flag)?.unwrap_or(default.armed),
        sleep: sleep.unwrap_or(default.sleep),
        true_times: arm.read("true_times", Entry::flag)?.unwrap_or(default.true_times),
    })
}

fn device(name: &str) -> Result<StorageDevice, SpecError> {
    StorageDevice::from_str(name).map_err(|message| {
        let synthetic = SyntheticTrace::ALL.map(|trace| StorageDevice::Synthetic(trace).to_string());
        let mut names = vec!["disk", "model", "model-late"];
        names.extend(synthetic.iter().map(String::as_str));
        names.push("trace:FILE");
        SpecError::new("device", format!("{message}; {}", instead(name, &names)))
    })
}

/// The program of a tool other than Weir: fio, or a path to one.
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
    let found = StorageEngine::from_str(name);
    found.or_else(|message| {
        one_of(key, name, &StorageEngine::ALL.map(StorageEngine::name))?;
        Err(SpecError::new(key, message))
    })
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

/// Options of an engine, as a file writes them.
fn options(mut given: Table<'_>) -> Result<StorageEngineOptions, FieldError> {
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

/// Meaning of an option's value.
fn meaning<V: Copy>(entry: Entry<'_>, meanings: &BTreeMap<&str, V>) -> Result<V, FieldError> {
    let (at, key) = (entry.at, entry.key.clone());
    let word = entry.text()?;
    let known: Vec<&str> = meanings.keys().copied().collect();
    one_of(&key, &word, &known).at(at)?;
    meanings
        .get(word.as_str())
        .copied()
        .ok_or_else(|| FieldError::new(at, &key, "it has no meaning".to_owned()))
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
    fn a_simulated_device_is_named_by_its_load_and_refuses_what_it_cannot_do() {
        let cells =
            |text: &str| crate::storage::tests::read(&format!("[[cell]]\nrole = \"primary\"\n{text}"));
        let id = |text: &str| cells(text).expect(text).cells[0].id.clone();
        assert_eq!(id("device = \"model\""), "model");
        let loaded = "device = \"model-late\"\nbackground_depth = 32\nbackground_cores = 4";
        assert_eq!(id(loaded), "model-late-bg32-cores4");
        assert_eq!(id("device = \"synthetic:two-speed\""), "synthetic-two-speed");
        assert_eq!(id("device = \"trace:reads/beside_32.csv.gz\""), "trace-beside-32");
        let refused = |text: &str, expected: &str| {
            let message = cells(text).expect_err(text);
            assert!(message.contains(expected), "{text}: {message}");
        };
        refused("device = \"modle\"", "there is no device \"modle\"; did you mean model?");
        refused("device = \"synthetic:calmer\"", "there is no synthetic trace \"calmer\"");
        refused("device = \"model\"\npattern = \"randwrite\"", "serves random reads of 4096 bytes");
        refused("device = \"model\"\nengine = \"libaio\"", "is reached without an engine");
        refused("device = \"synthetic:calm\"\nbackground_depth = 1", "hold their load already");
        refused("device = \"model\"\nbackground_cores = 2", "cores that keep nothing in flight");
        refused("device = \"model\"\nbackground_cores = 17", "must be from 1 to 16");
        refused("background_depth = 1\nbackground_cores = 2", "which one process loads");
    }

    #[test]
    fn what_no_disk_can_tell_is_refused_there_with_the_reason() {
        let message = |wait: &str| refused(|spec| subject(spec).completion.predictor = wait.to_owned());
        assert!(
            message("clairvoyant").contains("which only a simulated device can tell; say `where` it runs")
        );
        assert!(message("constant:0.01").starts_with("arm.wait: "));
        assert!(refused(|spec| subject(spec).completion.true_times = true).contains("true_times"));
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
