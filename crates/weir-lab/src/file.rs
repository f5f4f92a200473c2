//! Study files: TOML in, a complete spec out. `docs/study-file.md` describes the format; every error names file, line
//! and key.

mod storage;

use std::{collections::BTreeMap, ops::RangeInclusive, path::PathBuf};

use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;
use weir_proto::content::Content;
use weir_record::spec::{ArmSpec, CellRole, CellSpec, HttpCell, LoadMode, StudySpec, Subject};

use crate::{
    alternation::{self, Turns},
    validate::{self, Level, SpecError},
};

/// Largest study file.
pub const BYTES_MAX: usize = 1 << 20;

/// What a file leaves to the one who runs it.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Seed, when neither file nor command line gives one.
    pub seed: u64,
    /// CPUs of the server side.
    pub server_cpus: Vec<usize>,
    /// CPUs of the generator.
    pub load_cpus: Vec<usize>,
}

/// What is wrong with a study file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}:{line}: {message}", path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// The key and what is wrong with it.
    pub message: String,
}

/// Reads a study from the text of a file. The path is for messages only.
pub fn parse(
    path: &std::path::Path,
    text: &str,
    surroundings: &Surroundings,
) -> Result<StudySpec, FileError> {
    let fail = |line: usize, message: String| FileError { path: path.to_path_buf(), line, message };
    if text.len() > BYTES_MAX {
        return Err(fail(1, format!("the file is longer than {} KiB", BYTES_MAX >> 10)));
    }
    let unreadable = |error: toml::de::Error| {
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        fail(line, error.message().trim_end().replace('\n', "; "))
    };
    let resolved = if storage::is_asked(text) {
        toml::from_str::<storage::StorageFile>(text).map_err(unreadable)?.resolve(surroundings)
    } else {
        toml::from_str::<File>(text).map_err(unreadable)?.resolve(surroundings)
    };
    let spec = resolved.map_err(|fault| fail(line_of(text, fault.at), fault.error.to_string()))?;
    validate::study(&spec).map_err(|error| fail(line_of_table(text, &error.key), error.to_string()))?;
    Ok(spec)
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// Line of the table or key an error about the whole study is best shown at.
fn line_of_table(text: &str, key: &str) -> usize {
    let first = key.split('.').next().unwrap_or(key);
    let found = text.lines().position(|line| {
        let line = line.trim_start_matches([' ', '\t', '[']);
        line.strip_prefix(first).is_some_and(|rest| rest.trim_start().starts_with(['=', ']', '.']))
    });
    found.map_or(1, |index| index + 1)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Spanned<String>,
    title: Option<String>,
    protocol: Option<Spanned<String>>,
    seed: Option<u64>,
    blocks: Option<Spanned<i64>>,
    exploratory_blocks: Option<Spanned<i64>>,
    alternate: Option<bool>,
    rounds: Option<Spanned<i64>>,
    exploratory_rounds: Option<Spanned<i64>>,
    slice: Option<Spanned<String>>,
    permutations: Option<Spanned<i64>>,
    window: Option<Spanned<String>>,
    warmup_max: Option<Spanned<String>>,
    smallest_effect: Option<Spanned<f64>>,
    time_cap: Option<Spanned<String>>,
    server_cpus: Option<Vec<usize>>,
    load_cpus: Option<Vec<usize>>,
    #[serde(default)]
    load_options: BTreeMap<String, OptionValue>,
    #[serde(default)]
    factors: Factors,
    in_flight_max_mib: Option<Spanned<i64>>,
    headline: Option<Spanned<Pick>>,
    #[serde(default)]
    declared: Vec<Spanned<Pick>>,
    #[serde(default)]
    declare_all: bool,
    latency: Option<Latency>,
    #[serde(default)]
    arm: Vec<Spanned<Arm>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Factors {
    connections: Option<Spanned<Vec<Spanned<i64>>>>,
    depth: Option<Spanned<Vec<Spanned<i64>>>>,
    message_bytes: Option<Spanned<Vec<Spanned<i64>>>>,
    workers: Option<Spanned<Vec<Spanned<i64>>>>,
    idle_connections: Option<Spanned<Vec<Spanned<i64>>>>,
    content: Option<Spanned<Vec<Spanned<OptionValue>>>>,
    close: Option<Spanned<Vec<Spanned<bool>>>>,
}

/// Levels of one cell; a factor with a single level may be left out.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pick {
    connections: Option<Spanned<i64>>,
    depth: Option<Spanned<i64>>,
    message_bytes: Option<Spanned<i64>>,
    workers: Option<Spanned<i64>>,
    idle_connections: Option<Spanned<i64>>,
    content: Option<Spanned<OptionValue>>,
    close: Option<Spanned<bool>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Latency {
    share: Option<Spanned<f64>>,
    rate: Option<Spanned<f64>>,
    poisson: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arm {
    name: Spanned<String>,
    driver: Option<Spanned<String>>,
    #[serde(default)]
    options: BTreeMap<String, OptionValue>,
    #[serde(default)]
    arguments: Vec<OptionValue>,
    load_options: Option<BTreeMap<String, OptionValue>>,
    command: Option<Spanned<Vec<String>>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OptionValue {
    Text(String),
    Number(i64),
}

/// A spec error and where in the text it is.
struct Fault {
    at: usize,
    error: SpecError,
}

trait At<T> {
    fn at(self, at: usize) -> Result<T, Fault>;
}

impl<T> At<T> for Result<T, SpecError> {
    fn at(self, at: usize) -> Result<T, Fault> {
        self.map_err(|error| Fault { at, error })
    }
}

/// The factors that are numbers, in the order of a cell's identifier.
const FACTORS: [(Level, i64); 5] = [
    (Level::Connections, 100),
    (Level::Depth, 1),
    (Level::MessageBytes, 64),
    (Level::Workers, 1),
    (Level::IdleConnections, 0),
];

/// The keys of all factors: those of [`FACTORS`], then the two of HTTP.
const KEYS: [&str; 7] =
    ["connections", "depth", "message_bytes", "workers", "idle_connections", "content", "close"];

/// Places in [`KEYS`].
const MESSAGE_BYTES: usize = 2;
const CONTENT: usize = 5;
const CLOSE: usize = 6;

/// One level of each factor, in the order of [`KEYS`]: numbers, the place of a content in the file's list, and 1 for a
/// connection that closes. The last two are 0 in an echo study, message bytes are not used in one of HTTP.
type Shape = [u32; 7];

const BLOCKS: i64 = 12;
const EXPLORATORY_BLOCKS_MAX: u32 = 6;
const LATENCY_SHARE: f64 = 0.6;
const SMALLEST_EFFECT: f64 = 0.03;

/// The generator needs 0.6 s to call a load steady, and often a little more.
const WARMUP_NS_MAX: u64 = 800_000_000;

/// What all cells of a file have in common.
struct Template {
    blocks: u32,
    exploratory_blocks: u32,
    window_ns: u64,
    warmup_ns_max: u64,
    /// What an HTTP study answers with; absent in one of echo.
    contents: Option<Vec<Content>>,
}

impl Template {
    /// The cell with these levels.
    fn cell(&self, shape: &Shape, role: CellRole, load: LoadMode) -> CellSpec {
        let [connections, depth, _, workers, idle_connections, _, close] = *shape;
        let mut cell = CellSpec {
            id: String::new(),
            role,
            connections,
            depth,
            message_bytes: self.message_bytes(shape),
            idle_connections,
            workers,
            load,
            window_ns: self.window_ns,
            warmup_ns_max: self.warmup_ns_max,
            blocks: if role == CellRole::Exploratory { self.exploratory_blocks } else { self.blocks },
            http: self.content(shape).map(|content| HttpCell {
                content: content.to_string(),
                close: close == 1,
                ..HttpCell::default()
            }),
            storage: None,
            orders: None,
            alternation: None,
            arms: Vec::new(),
        };
        cell.id = validate::cell_id(&cell);
        cell
    }

    fn content(&self, shape: &Shape) -> Option<Content> {
        self.contents.as_ref()?.get(shape[CONTENT] as usize).copied()
    }

    fn message_bytes(&self, shape: &Shape) -> u32 {
        self.content(shape).map_or(shape[MESSAGE_BYTES], validate::content_bytes)
    }

    fn bytes_in_flight(&self, shape: &Shape) -> u64 {
        u64::from(shape[0]) * u64::from(shape[1]) * u64::from(self.message_bytes(shape))
    }
}

impl File {
    fn resolve(self, surroundings: &Surroundings) -> Result<StudySpec, Fault> {
        validate::name("name", self.name.get_ref()).at(self.name.span().start)?;
        let (blocks, exploratory_blocks) = blocks(self.blocks.as_ref(), self.exploratory_blocks.as_ref())?;
        let window_ns = length("window", self.window.as_ref(), 1_000_000_000)?;
        let warmup_ns_max = length("warmup_max", self.warmup_max.as_ref(), WARMUP_NS_MAX)?;
        let time_cap_ns = length("time_cap", self.time_cap.as_ref(), 3_600_000_000_000)?;
        let smallest_effect = smallest_effect(self.smallest_effect.as_ref())?;
        let levels = self.factors.levels(is_http(self.protocol.as_ref())?)?;
        let headline = match &self.headline {
            Some(pick) => pick.get_ref().cell("headline", pick.span().start, &levels)?,
            None => Pick::default().cell("headline", 0, &levels)?,
        };
        let mut declared = Vec::new();
        for pick in &self.declared {
            declared.push(pick.get_ref().cell("declared", pick.span().start, &levels)?);
        }
        let role = |cell: &Shape| role(cell, &headline, &declared, self.declare_all);
        let mut shapes = levels.combinations();
        let contents = levels.contents;
        let template = Template { blocks, exploratory_blocks, window_ns, warmup_ns_max, contents };
        let bytes_max = bytes_in_flight_max(self.in_flight_max_mib.as_ref())?;
        shapes.retain(|shape| template.bytes_in_flight(shape) <= bytes_max);
        let closed = |shape: &Shape| template.cell(shape, role(shape), LoadMode::Closed);
        let mut cells: Vec<CellSpec> = shapes.iter().map(closed).collect();
        if let Some(latency) = &self.latency {
            let load = latency.load()?;
            // Every claim gets its equal-rate cell; it can bear the claim out where the generator is the limit.
            let claims = shapes.iter().filter(|shape| role(shape) != CellRole::Exploratory);
            cells.extend(claims.map(|shape| template.cell(shape, CellRole::Exploratory, load)));
        }
        let turns = self.turns()?;
        let mut arms = Vec::new();
        for arm in self.arm {
            let at = arm.span().start;
            if let Some(driver) = &arm.get_ref().driver {
                validate::descriptors(driver.get_ref(), &cells).at(driver.span().start)?;
            }
            arms.push(arm.into_inner().resolve(at, &arms, &self.load_options)?);
        }
        let name = self.name.into_inner();
        let mut spec = StudySpec {
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
        };
        if let Some(turns) = turns {
            alternation::apply_with(&mut spec, &turns);
        }
        Ok(spec)
    }

    /// How the arms take turns; `None` when the file asks for whole trials.
    fn turns(&self) -> Result<Option<Turns>, Fault> {
        let level = |level: Level, given: &Option<Spanned<i64>>| {
            given.as_ref().map(|it| validate::level(level, *it.get_ref()).at(it.span().start)).transpose()
        };
        let mut turns = Turns::default();
        turns.rounds = level(Level::Rounds, &self.rounds)?.unwrap_or(turns.rounds);
        let fewer = turns.exploratory_rounds.min(turns.rounds);
        turns.exploratory_rounds = level(Level::Rounds, &self.exploratory_rounds)?.unwrap_or(fewer);
        turns.permutations = level(Level::Permutations, &self.permutations)?;
        if let Some(slice) = &self.slice {
            let slice_ns = length("slice", Some(slice), 0)?;
            validate::slice_ns(slice_ns).at(slice.span().start)?;
            turns.slice_ns = Some(slice_ns);
        }
        let given = [&self.rounds, &self.exploratory_rounds, &self.permutations];
        let first = given.into_iter().flatten().map(|it| it.span().start).next();
        match (self.alternate, first.or(self.slice.as_ref().map(|it| it.span().start))) {
            (Some(false), Some(at)) => {
                let message =
                    "rounds, slices and permutations have no meaning with alternate = false; leave them out"
                        .to_owned();
                Err(Fault { at, error: SpecError::new("alternate", message) })
            }
            (Some(false), None) => Ok(None),
            _ => Ok(Some(turns)),
        }
    }
}

/// Whether the file asks for HTTP.
fn is_http(protocol: Option<&Spanned<String>>) -> Result<bool, Fault> {
    let Some(protocol) = protocol else { return Ok(false) };
    match protocol.get_ref().as_str() {
        "echo" => Ok(false),
        "http" => Ok(true),
        other => {
            let message = format!("{other:?} is not known; use \"echo\", \"http\" or \"storage\"");
            Err(Fault { at: protocol.span().start, error: SpecError::new("protocol", message) })
        }
    }
}

/// A key that the other protocol has.
fn misplaced(key: &str, at: usize) -> Fault {
    let message = match key {
        "message_bytes" => "an HTTP study has `content` instead",
        _ => "an echo study has none; for one of HTTP write protocol = \"http\" above the tables",
    };
    Fault { at, error: SpecError::new(key, message.to_owned()) }
}

/// All levels of a file.
struct Levels {
    /// In the order of [`KEYS`].
    own: [Vec<u32>; 7],
    /// What the levels of content stand for; absent in an echo study.
    contents: Option<Vec<Content>>,
}

impl Levels {
    /// The levels of one factor as they are written.
    fn texts(&self, factor: usize) -> Vec<String> {
        match (factor, &self.contents) {
            (CONTENT, Some(contents)) => contents.iter().map(Content::to_string).collect(),
            (CLOSE, _) => self.own[CLOSE].iter().map(|close| (*close == 1).to_string()).collect(),
            _ => self.own[factor].iter().map(u32::to_string).collect(),
        }
    }

    fn combinations(&self) -> Vec<Shape> {
        let levels = |places: [usize; 7]| std::array::from_fn(|factor| self.own[factor][places[factor]]);
        combinations(self.own.each_ref().map(Vec::len)).into_iter().map(levels).collect()
    }
}

/// The places of the levels in every combination of so many; those of the last factor change fastest.
fn combinations<const FACTORS: usize>(levels: [usize; FACTORS]) -> Vec<[usize; FACTORS]> {
    let mut shapes = vec![[0; FACTORS]];
    for (factor, levels) in levels.into_iter().enumerate() {
        let with = |mut shape: [usize; FACTORS], level: usize| {
            shape[factor] = level;
            shape
        };
        shapes =
            shapes.into_iter().flat_map(|shape| (0..levels).map(move |level| with(shape, level))).collect();
    }
    shapes
}

/// What a cell is for.
fn role<S: PartialEq>(cell: &S, headline: &S, declared: &[S], declare_all: bool) -> CellRole {
    if cell == headline {
        CellRole::Headline
    } else if declare_all || declared.contains(cell) {
        CellRole::Declared
    } else {
        CellRole::Exploratory
    }
}

/// Blocks of cells that claim something, and of those that claim nothing.
fn blocks(given: Option<&Spanned<i64>>, exploratory: Option<&Spanned<i64>>) -> Result<(u32, u32), Fault> {
    let level =
        |given: &Spanned<i64>| validate::level(Level::Blocks, *given.get_ref()).at(given.span().start);
    let blocks = given.map_or_else(|| validate::level(Level::Blocks, BLOCKS).at(0), level)?;
    let exploratory = exploratory.map_or(Ok(blocks.min(EXPLORATORY_BLOCKS_MAX)), level)?;
    Ok((blocks, exploratory))
}

fn smallest_effect(given: Option<&Spanned<f64>>) -> Result<f64, Fault> {
    given
        .map_or(Ok(SMALLEST_EFFECT), |effect| fraction("smallest_effect", effect, &validate::SMALLEST_EFFECT))
}

/// What is picked, as written, and where.
type Picked = Option<(usize, String)>;

fn picked<V: ToString>(given: Option<&Spanned<V>>) -> Picked {
    given.map(|it| (it.span().start, it.get_ref().to_string()))
}

/// The place of the level that is picked among those of its factor, `key`; a factor with a single one may be left out
/// of the table at `at`.
fn place(key: &str, at: usize, given: Picked, levels: &[String]) -> Result<usize, Fault> {
    let choices = || levels.join(", ");
    let wrong = |at: usize, message: String| Fault { at, error: SpecError::new(key, message) };
    match given {
        Some((at, text)) => levels.iter().position(|level| *level == text).ok_or_else(|| {
            wrong(at, format!("{text} is not a level of the factor; there are {}", choices()))
        }),
        None if levels.len() == 1 => Ok(0),
        None => Err(wrong(at, format!("one level must be picked; there are {}", choices()))),
    }
}

/// A name that no arm before has.
fn arm_name(name: &Spanned<String>, earlier: &[ArmSpec]) -> Result<(), Fault> {
    let at = name.span().start;
    validate::name("arm.name", name.get_ref()).at(at)?;
    if earlier.iter().any(|arm| arm.name == *name.get_ref()) {
        let message = format!("two arms are named {:?}", name.get_ref());
        return Err(Fault { at, error: SpecError::new("arm.name", message) });
    }
    Ok(())
}

/// Collects the levels of a factor: none twice, at least one.
fn distinct<V, L: PartialEq + ToString>(
    key: &str,
    given: &Spanned<Vec<Spanned<V>>>,
    level: impl Fn(&V) -> Result<L, SpecError>,
) -> Result<Vec<L>, Fault> {
    let wrong = |at: usize, message: String| Fault { at, error: SpecError::new(key, message) };
    let mut own = Vec::new();
    for value in given.get_ref() {
        let found = level(value.get_ref()).at(value.span().start)?;
        if own.contains(&found) {
            return Err(wrong(value.span().start, format!("{} occurs twice", found.to_string())));
        }
        own.push(found);
    }
    if own.is_empty() {
        let message = "the list is empty; it must hold at least one level".to_owned();
        return Err(wrong(given.span().start, message));
    }
    Ok(own)
}

impl Factors {
    fn levels(&self, is_http: bool) -> Result<Levels, Fault> {
        let given =
            [&self.connections, &self.depth, &self.message_bytes, &self.workers, &self.idle_connections];
        self.check_protocol(is_http)?;
        let mut own: [Vec<u32>; 7] = Default::default();
        for ((own, (level, default)), given) in own.iter_mut().zip(FACTORS).zip(given) {
            *own = match given {
                Some(given) => distinct(level.key(), given, |value| validate::level(level, *value))?,
                None => vec![validate::level(level, default).at(0)?],
            };
        }
        let contents = match (&self.content, is_http) {
            (Some(given), _) => {
                Some(distinct("content", given, |value: &OptionValue| validate::content(&value.text()))?)
            }
            (None, true) => Some(vec![Content::Html]),
            (None, false) => None,
        };
        own[CONTENT] =
            (0_u32..).zip(contents.as_deref().unwrap_or(&[Content::Html])).map(|(at, _)| at).collect();
        own[CLOSE] = match &self.close {
            Some(given) => distinct("close", given, |close| Ok(*close))?.into_iter().map(u32::from).collect(),
            None => vec![0],
        };
        self.check_count(&own)?;
        Ok(Levels { own, contents })
    }

    fn check_protocol(&self, is_http: bool) -> Result<(), Fault> {
        let misplaced = |key: &str, at: Option<usize>| at.map_or(Ok(()), |at| Err(misplaced(key, at)));
        if is_http {
            return misplaced("message_bytes", self.message_bytes.as_ref().map(|given| given.span().start));
        }
        misplaced("content", self.content.as_ref().map(|given| given.span().start))?;
        misplaced("close", self.close.as_ref().map(|given| given.span().start))
    }

    /// Refuses more cells than a study may have, at the factor that makes them too many.
    fn check_count(&self, levels: &[Vec<u32>; 7]) -> Result<(), Fault> {
        let start =
            |given: &Option<Spanned<Vec<Spanned<i64>>>>| given.as_ref().map(|given| given.span().start);
        let starts = [
            start(&self.connections),
            start(&self.depth),
            start(&self.message_bytes),
            start(&self.workers),
            start(&self.idle_connections),
            self.content.as_ref().map(|given| given.span().start),
            self.close.as_ref().map(|given| given.span().start),
        ];
        let mut cells = 1_usize;
        for ((own, start), key) in levels.iter().zip(starts).zip(KEYS) {
            cells = cells.saturating_mul(own.len());
            if cells > validate::CELLS_MAX {
                let message = format!("the factors make more than {} cells", validate::CELLS_MAX);
                return Err(Fault { at: start.unwrap_or(0), error: SpecError::new(key, message) });
            }
        }
        Ok(())
    }
}

impl Pick {
    /// The cell that is meant; each level must be one of its factor's.
    fn cell(&self, table: &str, at: usize, levels: &Levels) -> Result<Shape, Fault> {
        let given = self.given(levels.contents.is_some())?;
        let mut cell = [0; 7];
        for (factor, (own, given)) in cell.iter_mut().zip(given).enumerate() {
            let key = format!("{table}.{}", KEYS[factor]);
            *own = levels.own[factor][place(&key, at, given, &levels.texts(factor))?];
        }
        Ok(cell)
    }

    /// What is picked, as written, and where, in the order of [`KEYS`].
    fn given(&self, is_http: bool) -> Result<[Picked; 7], Fault> {
        let mut given = [
            picked(self.connections.as_ref()),
            picked(self.depth.as_ref()),
            picked(self.message_bytes.as_ref()),
            picked(self.workers.as_ref()),
            picked(self.idle_connections.as_ref()),
            None,
            picked(self.close.as_ref()),
        ];
        if let Some(content) = &self.content {
            let start = content.span().start;
            let name = validate::content(&content.get_ref().text()).at(start)?.to_string();
            given[CONTENT] = Some((start, name));
        }
        let foreign: &[usize] = if is_http { &[MESSAGE_BYTES] } else { &[CONTENT, CLOSE] };
        match foreign.iter().find_map(|factor| Some((KEYS[*factor], given[*factor].as_ref()?.0))) {
            Some((key, at)) => Err(misplaced(key, at)),
            None => Ok(given),
        }
    }
}

impl Latency {
    fn load(&self) -> Result<LoadMode, Fault> {
        let poisson = self.poisson.unwrap_or(true);
        match (&self.share, &self.rate) {
            (Some(_), Some(rate)) => {
                let message = "give either `share` or `rate`".to_owned();
                Err(Fault { at: rate.span().start, error: SpecError::new("latency.rate", message) })
            }
            (Some(share), None) => {
                let share = fraction("latency.share", share, &validate::SHARE)?;
                Ok(LoadMode::OpenShare { share, poisson })
            }
            (None, Some(rate)) => {
                let rate_per_second = fraction("latency.rate", rate, &validate::RATE_PER_SECOND)?;
                Ok(LoadMode::Open { rate_per_second, poisson })
            }
            (None, None) => Ok(LoadMode::OpenShare { share: LATENCY_SHARE, poisson }),
        }
    }
}

impl Arm {
    fn resolve(
        self,
        at: usize,
        earlier: &[ArmSpec],
        load_options: &BTreeMap<String, OptionValue>,
    ) -> Result<ArmSpec, Fault> {
        let Self { name, driver, options, arguments, load_options: own_load_options, command } = self;
        arm_name(&name, earlier)?;
        let wrong = |message: &str| Fault { at, error: SpecError::new("arm", message.to_owned()) };
        let subject = match (driver, command) {
            (Some(driver), None) => {
                validate::driver(driver.get_ref()).at(driver.span().start)?;
                let arguments: Vec<String> = arguments.iter().map(OptionValue::text).collect();
                validate::arguments(&arguments).at(at)?;
                Subject::Weir { driver: driver.into_inner(), options: texts(&options), arguments }
            }
            (None, Some(command)) if options.is_empty() && arguments.is_empty() => {
                validate::command(command.get_ref()).at(command.span().start)?;
                Subject::Command { argv: command.into_inner() }
            }
            (None, Some(_)) => {
                return Err(wrong(
                    "`options` and `arguments` belong to a driver; write a command's into the command",
                ));
            }
            (Some(_), Some(_)) => return Err(wrong("give either `driver` or `command`")),
            (None, None) => return Err(wrong("give a `driver` or a `command`")),
        };
        let load_options = texts(own_load_options.as_ref().unwrap_or(load_options));
        Ok(ArmSpec { name: name.into_inner(), subject, load_options })
    }
}

impl OptionValue {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(number) => number.to_string(),
        }
    }
}

fn texts(options: &BTreeMap<String, OptionValue>) -> BTreeMap<String, String> {
    options.iter().map(|(name, value)| (name.clone(), value.text())).collect()
}

/// Cells with more bytes in flight are left out; without the key none is, and one that has too many is refused.
fn bytes_in_flight_max(given: Option<&Spanned<i64>>) -> Result<u64, Fault> {
    let Some(given) = given else { return Ok(u64::MAX) };
    let mib_max = validate::BYTES_IN_FLIGHT_MAX >> 20;
    let mib = u64::try_from(*given.get_ref()).ok().filter(|mib| (1..=mib_max).contains(mib));
    mib.map(|mib| mib << 20).ok_or_else(|| {
        let message = format!("{} is out of range; it must be from 1 to {mib_max}", given.get_ref());
        Fault { at: given.span().start, error: SpecError::new("in_flight_max_mib", message) }
    })
}

fn fraction(key: &str, given: &Spanned<f64>, range: &RangeInclusive<f64>) -> Result<f64, Fault> {
    validate::within(key, *given.get_ref(), range).at(given.span().start)?;
    Ok(*given.get_ref())
}

/// A length of time such as `1s`, `400ms`, `3.5min` or `1h`.
fn length(key: &str, given: Option<&Spanned<String>>, default_ns: u64) -> Result<u64, Fault> {
    let Some(given) = given else { return Ok(default_ns) };
    let text = given.get_ref();
    let wrong = || {
        let message = format!(
            "{text:?} is not a length of time; write it like \"400ms\", \"1s\", \"3.5min\" or \"1h\""
        );
        Fault { at: given.span().start, error: SpecError::new(key, message) }
    };
    let digits = text.find(|symbol: char| !symbol.is_ascii_digit() && symbol != '.').ok_or_else(wrong)?;
    let number: f64 = text[..digits].parse().map_err(|_| wrong())?;
    let unit_ns = match &text[digits..] {
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 6e10,
        "h" => 3.6e12,
        _ => return Err(wrong()),
    };
    let nanoseconds = number * unit_ns;
    // Two centuries; anything near it is refused by the key's own range.
    if nanoseconds < 6e18 { Ok(nanoseconds as u64) } else { Err(wrong()) }
}
