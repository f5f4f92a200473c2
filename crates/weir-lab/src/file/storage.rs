//! Study files with `protocol = "storage"`: cells ask a disk, arms are ways of reaching it or of waiting for it.

use std::{collections::BTreeMap, str::FromStr};

use serde::{Deserialize, de::IgnoredAny};
use toml::Spanned;
use weir_record::{
    spec::{ArmSpec, CellRole, CellSpec, LoadMode, StorageCell, StorageSubject, StudySpec, Subject},
    storage::{
        AccessPattern, CompletionMethod, RingMode, SleepPrimitive, StorageEngine, StorageEngineOptions,
    },
};

use super::{At, Fault, Surroundings, arm_name, blocks, distinct, length, picked, place, smallest_effect};
use crate::{
    storage::FILE_BYTES,
    validate::{self, Level, SpecError},
};

/// The ramp before the window: no more than it takes to fill a queue and to warm up a predictor.
const RAMP_NS: u64 = 300_000_000;

/// The factors, in the order of a cell's identifier.
const KEYS: [&str; 5] = ["engine", "pattern", "block_bytes", "depth", "background_depth"];

/// Whether a file asks for storage. One that is no TOML does not: it is refused where all others are.
pub(super) fn is_asked(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Asked {
        protocol: Option<String>,
    }
    toml::from_str::<Asked>(text).is_ok_and(|file| file.protocol.as_deref() == Some("storage"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StorageFile {
    name: Spanned<String>,
    title: Option<String>,
    /// Known to be `storage`.
    #[serde(rename = "protocol")]
    _protocol: IgnoredAny,
    seed: Option<u64>,
    blocks: Option<Spanned<i64>>,
    exploratory_blocks: Option<Spanned<i64>>,
    window: Option<Spanned<String>>,
    warmup_max: Option<Spanned<String>>,
    smallest_effect: Option<Spanned<f64>>,
    time_cap: Option<Spanned<String>>,
    server_cpus: Option<Vec<usize>>,
    load_cpus: Option<Vec<usize>>,
    file: Option<Spanned<String>>,
    file_size: Option<Spanned<String>>,
    #[serde(default)]
    factors: Factors,
    headline: Option<Spanned<Pick>>,
    #[serde(default)]
    declared: Vec<Spanned<Pick>>,
    #[serde(default)]
    declare_all: bool,
    #[serde(default)]
    arm: Vec<Spanned<Arm>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Factors {
    engine: Option<Spanned<Vec<Spanned<String>>>>,
    pattern: Option<Spanned<Vec<Spanned<String>>>>,
    block_bytes: Option<Spanned<Vec<Spanned<i64>>>>,
    depth: Option<Spanned<Vec<Spanned<i64>>>>,
    background_depth: Option<Spanned<Vec<Spanned<i64>>>>,
}

/// Levels of one cell; a factor with a single level may be left out.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pick {
    engine: Option<Spanned<String>>,
    pattern: Option<Spanned<String>>,
    block_bytes: Option<Spanned<i64>>,
    depth: Option<Spanned<i64>>,
    background_depth: Option<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arm {
    name: Spanned<String>,
    tool: Option<Spanned<String>>,
    engine: Option<Spanned<String>>,
    #[serde(default)]
    options: BTreeMap<String, Spanned<String>>,
    wait: Option<String>,
    #[serde(default)]
    armed: bool,
    sleep: Option<Spanned<String>>,
}

/// All levels of a file.
struct Levels {
    /// None alone means that the arms say it.
    engines: Vec<Option<StorageEngine>>,
    patterns: Vec<AccessPattern>,
    block_bytes: Vec<u32>,
    depths: Vec<u32>,
    background_depths: Vec<u32>,
}

/// The place of one level of each factor.
type Shape = [usize; 5];

impl Levels {
    /// The levels as they are written, in the order of [`KEYS`].
    fn texts(&self) -> [Vec<String>; 5] {
        let numbers = |levels: &[u32]| levels.iter().map(u32::to_string).collect();
        [
            self.engines.iter().map(|it| it.map_or_else(String::new, |engine| engine.to_string())).collect(),
            self.patterns.iter().map(AccessPattern::to_string).collect(),
            numbers(&self.block_bytes),
            numbers(&self.depths),
            numbers(&self.background_depths),
        ]
    }

    fn combinations(&self) -> Vec<Shape> {
        super::combinations(self.texts().each_ref().map(Vec::len))
    }
}

/// What all cells of a file have in common.
struct Template {
    blocks: u32,
    exploratory_blocks: u32,
    window_ns: u64,
    warmup_ns_max: u64,
    file: Option<String>,
    file_bytes: u64,
}

impl Template {
    fn cell(&self, levels: &Levels, shape: &Shape, role: CellRole) -> CellSpec {
        let [engine, pattern, block_bytes, depth, background_depth] = *shape;
        let storage = StorageCell {
            pattern: levels.patterns[pattern],
            engine: levels.engines[engine],
            background_depth: levels.background_depths[background_depth],
            file_bytes: self.file_bytes,
            file: self.file.clone(),
        };
        let mut cell = CellSpec {
            id: String::new(),
            role,
            connections: 1,
            depth: levels.depths[depth],
            message_bytes: levels.block_bytes[block_bytes],
            idle_connections: 0,
            workers: 1,
            load: LoadMode::Closed,
            window_ns: self.window_ns,
            warmup_ns_max: self.warmup_ns_max,
            blocks: if role == CellRole::Exploratory { self.exploratory_blocks } else { self.blocks },
            http: None,
            storage: Some(storage),
            orders: None,
            alternation: None,
            arms: Vec::new(),
        };
        cell.id = validate::cell_id(&cell);
        cell
    }
}

impl StorageFile {
    pub(super) fn resolve(self, surroundings: &Surroundings) -> Result<StudySpec, Fault> {
        validate::name("name", self.name.get_ref()).at(self.name.span().start)?;
        let levels = self.factors.levels()?;
        let template = self.template()?;
        let smallest_effect = smallest_effect(self.smallest_effect.as_ref())?;
        let headline = match &self.headline {
            Some(pick) => pick.get_ref().cell("headline", pick.span().start, &levels)?,
            None => Pick::default().cell("headline", 0, &levels)?,
        };
        let mut declared = Vec::new();
        for pick in &self.declared {
            declared.push(pick.get_ref().cell("declared", pick.span().start, &levels)?);
        }
        let role = |shape: &Shape| super::role(shape, &headline, &declared, self.declare_all);
        let cells = levels.combinations();
        let cells = cells.iter().map(|shape| template.cell(&levels, shape, role(shape))).collect();
        let time_cap_ns = length("time_cap", self.time_cap.as_ref(), 3_600_000_000_000)?;
        let mut arms = Vec::new();
        for arm in self.arm {
            arms.push(arm.into_inner().resolve(&arms)?);
        }
        let name = self.name.into_inner();
        Ok(StudySpec {
            title: self.title.unwrap_or_else(|| name.clone()),
            name,
            seed: self.seed.unwrap_or(surroundings.seed),
            arms,
            cells,
            server_cpus: self.server_cpus.unwrap_or_else(|| surroundings.server_cpus.clone()),
            load_cpus: self.load_cpus.unwrap_or_else(|| surroundings.load_cpus.clone()),
            smallest_effect,
            time_cap_ns,
            published: Vec::new(),
            ways: Vec::new(),
        })
    }

    fn template(&self) -> Result<Template, Fault> {
        let (blocks, exploratory_blocks) = blocks(self.blocks.as_ref(), self.exploratory_blocks.as_ref())?;
        let file = self.file.as_ref().map(|file| {
            let is_named = !file.get_ref().is_empty();
            let message = "the file has no name".to_owned();
            let named =
                is_named.then(|| file.get_ref().clone()).ok_or_else(|| SpecError::new("file", message));
            named.at(file.span().start)
        });
        Ok(Template {
            blocks,
            exploratory_blocks,
            window_ns: length("window", self.window.as_ref(), 1_000_000_000)?,
            warmup_ns_max: length("warmup_max", self.warmup_max.as_ref(), RAMP_NS)?,
            file: file.transpose()?,
            file_bytes: size("file_size", self.file_size.as_ref(), FILE_BYTES)?,
        })
    }
}

impl Factors {
    fn levels(&self) -> Result<Levels, Fault> {
        let numbers = |level: Level, given: &Option<Spanned<Vec<Spanned<i64>>>>, default: u32| match given {
            Some(given) => distinct(level.key(), given, |value| validate::level(level, *value)),
            None => Ok(vec![default]),
        };
        let engines = match &self.engine {
            Some(given) => distinct("engine", given, |name: &String| engine("engine", name))?,
            None => Vec::new(),
        };
        let patterns = match &self.pattern {
            Some(given) => distinct("pattern", given, |name: &String| pattern(name))?,
            None => vec![AccessPattern::RandRead],
        };
        let levels = Levels {
            engines: if engines.is_empty() { vec![None] } else { engines.into_iter().map(Some).collect() },
            patterns,
            block_bytes: numbers(Level::BlockBytes, &self.block_bytes, 4_096)?,
            depths: numbers(Level::Depth, &self.depth, 1)?,
            background_depths: numbers(Level::BackgroundDepth, &self.background_depth, 0)?,
        };
        let cells = levels.texts().iter().fold(1_usize, |cells, own| cells.saturating_mul(own.len()));
        if cells > validate::CELLS_MAX {
            let message = format!("the factors make more than {} cells", validate::CELLS_MAX);
            return Err(Fault { at: 0, error: SpecError::new("factors", message) });
        }
        Ok(levels)
    }
}

impl Pick {
    /// The cell that is meant; each level must be one of its factor's.
    fn cell(&self, table: &str, at: usize, levels: &Levels) -> Result<Shape, Fault> {
        let given = [
            picked(self.engine.as_ref()),
            picked(self.pattern.as_ref()),
            picked(self.block_bytes.as_ref()),
            picked(self.depth.as_ref()),
            picked(self.background_depth.as_ref()),
        ];
        let mut shape = [0; 5];
        for (factor, (given, texts)) in given.into_iter().zip(levels.texts()).enumerate() {
            shape[factor] = place(&format!("{table}.{}", KEYS[factor]), at, given, &texts)?;
        }
        Ok(shape)
    }
}

impl Arm {
    fn resolve(self, earlier: &[ArmSpec]) -> Result<ArmSpec, Fault> {
        let at = self.name.span().start;
        arm_name(&self.name, earlier)?;
        let own_engine = match &self.engine {
            Some(name) => Some(engine("arm.engine", name.get_ref()).at(name.span().start)?),
            None => None,
        };
        let tool = self.tool.as_ref().map_or("weir", |tool| tool.get_ref().as_str());
        let subject = if tool == "weir" {
            Subject::Storage(StorageSubject {
                engine: own_engine,
                options: options(&self.options)?,
                completion: self.completion()?,
            })
        } else {
            self.is_plain(at)?;
            Subject::Fio { program: fio(tool).at(at)?, engine: own_engine }
        };
        Ok(ArmSpec { name: self.name.into_inner(), subject, load_options: BTreeMap::new() })
    }

    /// What only Weir has an arm of fio must not say.
    fn is_plain(&self, at: usize) -> Result<(), Fault> {
        if self.options.is_empty() && self.wait.is_none() && !self.armed && self.sleep.is_none() {
            return Ok(());
        }
        let message =
            "`options`, `wait`, `armed` and `sleep` belong to Weir; fio has no such choice here".to_owned();
        Err(Fault { at, error: SpecError::new("arm", message) })
    }

    fn completion(&self) -> Result<CompletionMethod, Fault> {
        let default = CompletionMethod::default();
        let sleep = match &self.sleep {
            Some(name) => sleep(name.get_ref()).at(name.span().start)?,
            None => default.sleep,
        };
        let predictor = self.wait.clone().unwrap_or(default.predictor);
        Ok(CompletionMethod { predictor, armed: self.armed, sleep })
    }
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
    StorageEngine::from_str(name).map_err(|message| SpecError::new(key, message))
}

fn pattern(name: &str) -> Result<AccessPattern, SpecError> {
    AccessPattern::from_str(name).map_err(|message| SpecError::new("pattern", message))
}

fn sleep(name: &str) -> Result<SleepPrimitive, SpecError> {
    match name {
        "auto" => Ok(SleepPrimitive::Auto),
        "clock-nanosleep" => Ok(SleepPrimitive::ClockNanosleep),
        "ring-timeout" => Ok(SleepPrimitive::RingTimeout),
        "timerfd" => Ok(SleepPrimitive::Timerfd),
        other => {
            let message =
                format!("{other:?} is not known; use auto, clock-nanosleep, ring-timeout or timerfd");
            Err(SpecError::new("arm.sleep", message))
        }
    }
}

/// Options of an engine as a file writes them.
fn options(given: &BTreeMap<String, Spanned<String>>) -> Result<StorageEngineOptions, Fault> {
    let mut options = StorageEngineOptions::default();
    for (name, value) in given {
        let wrong =
            |what: String| Fault { at: value.span().start, error: SpecError::new("arm.options", what) };
        let switched =
            |expected: &str| wrong(format!("{name} is {:?}; it must be {expected}", value.get_ref()));
        let on = || match value.get_ref().as_str() {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(switched("on or off")),
        };
        match name.as_str() {
            "sqpoll" => options.sqpoll = on()?,
            "iopoll" => options.iopoll = on()?,
            "hybrid-iopoll" => options.hybrid_iopoll = on()?,
            "fixed-buffers" => options.fixed_buffers = on()?,
            "fixed-files" => options.fixed_files = on()?,
            "high-priority" => options.high_priority = on()?,
            "ring-mode" => {
                options.ring_mode = match value.get_ref().as_str() {
                    "default" => RingMode::Default,
                    "coop" => RingMode::Coop,
                    "defer" => RingMode::Defer,
                    _ => return Err(switched("default, coop or defer")),
                }
            }
            other => {
                return Err(wrong(format!(
                    "{other} is not known; use sqpoll, iopoll, hybrid-iopoll, fixed-buffers, fixed-files, ring-mode \
                     or high-priority"
                )));
            }
        }
    }
    Ok(options)
}

/// A number of bytes such as `64MiB` or `1GiB`.
fn size(key: &str, given: Option<&Spanned<String>>, default: u64) -> Result<u64, Fault> {
    let Some(given) = given else { return Ok(default) };
    let text = given.get_ref();
    let parsed = [("MiB", 20), ("GiB", 30), ("TiB", 40)].into_iter().find_map(|(unit, shift)| {
        let number: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        number.checked_mul(1 << shift)
    });
    parsed.ok_or_else(|| {
        let message = format!("{text:?} is not a size; write it like \"512MiB\" or \"4GiB\"");
        Fault { at: given.span().start, error: SpecError::new(key, message) }
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::file::parse;

    const SURROUNDINGS: Surroundings =
        Surroundings { seed: 7, server_cpus: Vec::new(), load_cpus: Vec::new() };

    const STUDY: &str = r#"
name = "waits"
protocol = "storage"
file_size = "64MiB"
window = "500ms"
headline = { pattern = "randread", depth = 1 }

[factors]
pattern = ["randread", "randwrite"]
depth = [1, 32]
background_depth = [8]

[[arm]]
name = "libaio"
engine = "libaio"

[[arm]]
name = "ring-poll"
engine = "io_uring"
options = { ring-mode = "coop", fixed-buffers = "on" }
wait = "poll"

[[arm]]
name = "fio"
tool = "/opt/fio-3.41/fio"
engine = "libaio"
"#;

    fn read(text: &str) -> Result<StudySpec, String> {
        parse(Path::new("s.toml"), text, &SURROUNDINGS).map_err(|error| error.to_string())
    }

    #[test]
    fn a_study_of_storage_says_what_is_asked_and_by_whom() {
        let spec = read(STUDY).expect("it is right");
        let ids: Vec<&str> = spec.cells.iter().map(|cell| cell.id.as_str()).collect();
        assert_eq!(ids[0], "randread-b4096-qd1-bg8");
        assert_eq!(
            (ids.len(), spec.cells[0].role, spec.cells[3].role),
            (4, CellRole::Headline, CellRole::Exploratory)
        );
        let storage = spec.cells[3].storage.as_ref().expect("it is");
        assert_eq!((storage.pattern, storage.file_bytes), (AccessPattern::RandWrite, 64 << 20));
        let Subject::Storage(ring) = &spec.arms[1].subject else { panic!("{:?}", spec.arms[1]) };
        assert_eq!((ring.options.ring_mode, ring.options.fixed_buffers), (RingMode::Coop, true));
        assert_eq!(ring.completion.predictor, "poll");
        let program = "/opt/fio-3.41/fio".to_owned();
        assert_eq!(spec.arms[2].subject, Subject::Fio { program, engine: Some(StorageEngine::Libaio) });
    }

    #[test]
    fn engines_may_be_a_factor_that_tools_are_compared_in() {
        let text = "name = \"p\"\nprotocol = \"storage\"\nheadline = { engine = \"pread\" }\n[factors]\n\
                    engine = [\"pread\", \"libaio\"]\n[[arm]]\nname = \"fio\"\ntool = \"fio\"\n[[arm]]\nname = \"weir\"\n";
        let spec = read(text).expect("it is right");
        let ids: Vec<&str> = spec.cells.iter().map(|cell| cell.id.as_str()).collect();
        assert_eq!(ids, ["pread-randread-b4096-qd1", "libaio-randread-b4096-qd1"]);
    }

    #[test]
    fn mistakes_are_named_with_their_line_and_key() {
        let of = |from: &str, to: &str| read(&STUDY.replace(from, to)).expect_err("it is wrong");
        assert_eq!(
            of("depth = [1, 32]", "depth = [1, 0]"),
            "s.toml:10: depth: 0 is out of range; it must be from 1 to 1024"
        );
        assert!(
            of("\"randwrite\"", "\"randomwrite\"")
                .starts_with("s.toml:9: pattern: there is no access pattern randomwrite")
        );
        assert!(of("\"64MiB\"", "\"64MB\"").starts_with("s.toml:4: file_size: \"64MB\" is not a size"));
        assert!(of("fixed-buffers", "fixed-bufs").contains("arm.options: fixed-bufs is not known"));
        assert!(
            of("engine = \"io_uring\"", "engine = \"uring\"").contains("there is no storage engine uring")
        );
        assert!(of("/opt/fio-3.41/fio", "dd").contains("arm.tool: \"dd\" is not known"));
        assert!(of("[factors]", "[factors]\nconnections = [1]").contains("connections"));
        assert!(of("wait = \"poll\"", "armed = \"yes\"").starts_with("s.toml:21: "));
    }
}
