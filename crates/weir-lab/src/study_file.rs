//! Reads study files: from TOML to a complete spec, for every protocol and for built-in and user studies alike.
//! `docs/study-file.md` describes the format; every error names file, line and key.

mod added_cost;
mod arm_keys;
mod arm_start;
mod arms;
mod builds;
mod cause;
mod cells;
mod choice_error;
mod choices;
mod comparisons;
mod contrasts;
mod left_out;
mod neighbours;
mod one_rate;
mod published;
mod published_level;
mod published_table;
mod request_mix;
mod requests_instead;
mod threshold;

pub use arm_keys::{ArmKey, ArmValue};
pub use builds::Builds;
pub use choice_error::ChoiceError;
pub use choices::{Choices, check_plan, chosen};
pub use request_mix::{hex_bytes, requests};
pub use threshold::{command_thresholds, metrics_named, thresholds};

use std::path::{Path, PathBuf};

use thiserror::Error;
use weir_record::{
    finding::Finding,
    origin::Origin,
    spec::{CellRole, CellSpec, MissingCell, StudySpec},
    study::MissingArm,
};
use weir_report::{Language, localized};

use crate::{
    host_defaults::{DriverFound, HostDefaults},
    io_models,
    limits::{self, EQUIVALENCE_MARGIN, instead, instead_in},
    mistake::Mistake,
    protocol::{self, Protocol},
    toml_table::{At, Entry, FieldError, Table},
    validate,
};

/// Largest study file.
pub const BYTES_MAX: usize = 1 << 20;

/// Equivalence margin if the file gives none.
const MARGIN: f64 = 0.03;

/// Time cap if the file gives none.
const TIME_CAP: &str = "1h";
const TIME_CAP_NS: u64 = 3_600_000_000_000;

/// An error in a study file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", self.localized(Language::English))]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// Line, from 1.
    pub line: usize,
    /// The key; empty if the text is not TOML.
    pub key: String,
    /// The error.
    pub reason: Mistake,
}

impl FileError {
    /// The error and its place, in the reader's language.
    pub fn localized(&self, language: Language) -> String {
        let key =
            if self.key.is_empty() { String::new() } else { format!("{}{}", self.key, language.colon()) };
        format!("{}:{}: {key}{}", self.path.display(), self.line, self.reason.localized(language))
    }
}

/// A study as read from a file for this host.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// Complete: it no longer depends on the file or the host.
    pub spec: StudySpec,
    /// Arms that cannot run here, because their driver does not.
    pub missing_arms: Vec<MissingArm>,
}

/// Reads a study from the text of a file. The path is for messages only. The file's variants for other plans or other
/// hosts are read too, so that an error there is found before the variant is needed.
pub fn parse(path: &Path, text: &str, host_defaults: &HostDefaults) -> Result<Study, FileError> {
    let study = parse_one(path, text, host_defaults)?;
    for other in others(text, host_defaults) {
        parse_one(path, text, &other)?;
    }
    Ok(study)
}

/// Names of the plans of a file beside its usual one, in alphabetical order.
pub fn plans(text: &str) -> Vec<String> {
    variants(text, "plan")
}

/// Names of the arms of a file, in its order.
pub fn arms(text: &str) -> Vec<String> {
    let name = |mut arm: Table<'_>| arm.take("name")?.text().ok();
    let found = || Some(Table::parse(text).ok()?.tables("arm").ok()?.into_iter().filter_map(name).collect());
    found().unwrap_or_default()
}

/// Names of the variants below a key of the file.
fn variants(text: &str, key: &'static str) -> Vec<String> {
    let found = || Some(Table::parse(text).ok()?.take(key)?.table().ok()?.keys());
    found().unwrap_or_default()
}

/// Host defaults for which the file has variants.
fn others(text: &str, host_defaults: &HostDefaults) -> Vec<HostDefaults> {
    let planned = |plan: String| HostDefaults { plan: Some(plan), ..host_defaults.clone() };
    let without = |driver: String| {
        let refused = DriverFound {
            driver: protocol::driver_name(&driver).to_owned(),
            available: false,
            detail: Finding::Said { text: String::new() },
            unlock: None,
        };
        HostDefaults { tried: vec![refused], ..host_defaults.clone() }
    };
    let plans = plans(text).into_iter().map(planned);
    plans.chain(variants(text, "without").into_iter().map(without)).collect()
}

fn parse_one(path: &Path, text: &str, host_defaults: &HostDefaults) -> Result<Study, FileError> {
    let folder = request_mix::folder_of(path);
    let (study, places) = read_text(path, text, |table| read(table, host_defaults, folder))?;
    validate::study(&study.spec).map_err(|error| {
        let at = places.of(&error).map(|at| line_of(text, at));
        let line = at.unwrap_or_else(|| line_of_table(text, &error.key));
        FileError { path: path.to_path_buf(), line, key: error.key, reason: error.message }
    })?;
    Ok(study)
}

/// Reads the whole table of a file. An error names the file and its line.
fn read_text<'t, V>(
    path: &Path,
    text: &'t str,
    read: impl FnOnce(Table<'t>) -> Result<V, FieldError>,
) -> Result<V, FileError> {
    let fail = |line: usize, key: &str, reason: Mistake| FileError {
        path: path.to_path_buf(),
        line,
        key: key.to_owned(),
        reason,
    };
    if text.len() > BYTES_MAX {
        return Err(fail(1, "", too_long()));
    }
    let table = Table::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        fail(line, "", error.message().trim_end().replace('\n', "; ").into())
    })?;
    read(table).map_err(|FieldError { at, error }| fail(line_of(text, at), &error.key, error.message))
}

fn too_long() -> Mistake {
    let most = BYTES_MAX >> 10;
    Mistake::of(|language| {
        localized!(
            language,
            "the file is longer than {most} KiB",
            "파일이 {most} KiB보다 큽니다",
            "文件大于 {most} KiB",
        )
    })
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// Line of the table or key at which to show an error about the whole study.
fn line_of_table(text: &str, key: &str) -> usize {
    let first = key.split('.').next().unwrap_or(key);
    let found = text.lines().position(|line| {
        let line = line.trim_start_matches([' ', '\t', '[']);
        line.strip_prefix(first).is_some_and(|rest| rest.trim_start().starts_with(['=', ']', '.']))
    });
    found.map_or(1, |index| index + 1)
}

fn read(
    mut table: Table<'_>,
    host_defaults: &HostDefaults,
    folder: &Path,
) -> Result<(Study, arms::Places), FieldError> {
    let replaced = choose_variants(&mut table, host_defaults)?;
    let protocol = table.read("protocol", read_protocol)?.unwrap_or(protocol::ALL[0]);
    let mut spec = begun(&mut table, host_defaults)?;
    let server_cpus = table.read("server_cpus", Entry::cpus)?;
    let load_cpus = table.read("load_cpus", Entry::cpus)?;
    if table.read("io_models", Entry::flag)?.unwrap_or(false) {
        spec.io_models = io_models::found(&host_defaults.tried);
    }
    let machine = protocol::Machine {
        host_defaults,
        server_cpus: server_cpus.as_deref().unwrap_or(&host_defaults.server_cpus),
    };
    spec.saturation = saturation(&mut table, protocol)?;
    let drafts = cells::read(&mut table, protocol, machine, spec.saturation)?;
    let arms = arms::read(&mut table, protocol, machine)?;
    // Cells have noted that there are some.
    if protocol.has_requests() {
        spec.requests = request_mix::read(table.tables("request")?, folder)?;
    }
    spec.neighbours = neighbours::read(table.tables("neighbour")?)?;
    let questions = comparisons::Tables::of(&mut table)?;
    let (published, published_runs) = (table.tables("published")?, table.tables("published_run")?);
    let [tables, levels] = ["published_table", "published_level"].map(|key| table.tables(key));
    let (published_tables, published_levels) = (tables?, levels?);
    let added_costs = table.tables("added_cost")?;
    let (causes, contrasts) = (table.tables("cause")?, table.tables("contrast")?);
    table.finish(|key| elsewhere(key, protocol))?;
    let left_out = drafts.left_out.clone();
    let places = arms::cast(arms, drafts, &mut spec)?;
    place(&mut spec, protocol, host_defaults, (server_cpus.clone(), load_cpus));
    let missing_arms = arms::missing(&mut spec, &places, &replaced, &left_out, host_defaults)?;
    let absent: Vec<&str> = missing_arms.iter().map(|arm| arm.name.as_str()).collect();
    let lacks_cells = leave_out_cells(&mut spec, host_defaults)? || !left_out.is_empty();
    let known = comparisons::Known { spec: &spec, protocol, machine, absent: &absent, lacks_cells };
    let comparisons = questions.read(&known)?;
    let published_runs = published::runs(published_runs, &known)?;
    let added_costs = added_cost::read(added_costs, &known)?;
    let (causes, contrasts) = (cause::read(causes, &known)?, contrasts::read(contrasts, &known)?);
    let published_tables = published_table::read(published_tables, &known)?;
    (spec.comparisons, spec.published_runs, spec.added_costs) = (comparisons, published_runs, added_costs);
    (spec.causes, spec.published_tables, spec.contrasts) = (causes, published_tables, contrasts);
    spec.published_levels = published_level::read(published_levels, &spec, &absent)?;
    spec.published = published::read(published, &spec, (&absent, lacks_cells))?;
    Ok((Study { spec, missing_arms }, places))
}

/// A study with the file's general settings, without cells and arms.
fn begun(table: &mut Table<'_>, host_defaults: &HostDefaults) -> Result<StudySpec, FieldError> {
    let name = table.required("name", read_name)?;
    let title = table.read("title", published::text)?.unwrap_or_else(|| name.as_str().into());
    Ok(StudySpec {
        title,
        name,
        seed: table.read("seed", read_seed)?.unwrap_or(host_defaults.seed),
        arms: Vec::new(),
        cells: Vec::new(),
        same_arms: table.read("same_arms", Entry::flag)?.unwrap_or(false),
        server_cpus: Vec::new(),
        load_cpus: Vec::new(),
        equivalence_margin: table
            .read("equivalence_margin", |entry| fraction(entry, &EQUIVALENCE_MARGIN))?
            .unwrap_or(MARGIN),
        time_cap_ns: table.read("time_cap", Entry::length)?.unwrap_or(TIME_CAP_NS),
        published: Vec::new(),
        published_runs: Vec::new(),
        published_tables: Vec::new(),
        published_levels: Vec::new(),
        added_costs: Vec::new(),
        causes: Vec::new(),
        contrasts: Vec::new(),
        comparisons: Vec::new(),
        neighbours: Vec::new(),
        io_models: Vec::new(),
        missing_cells: Vec::new(),
        whole_trials: Vec::new(),
        slices_given: Vec::new(),
        saturation: false,
        requests: Vec::new(),
        origin: Origin::default(),
        server_host: None,
    })
}

/// Whether the claims are about closed loops, if the file asks for it.
fn saturation(table: &mut Table<'_>, protocol: &dyn Protocol) -> Result<bool, FieldError> {
    let Some((at, asked)) = table.read("saturation", |entry| Ok((entry.at, entry.flag()?)))? else {
        return Ok(false);
    };
    if protocol.has_rungs() {
        return Ok(asked);
    }
    let name = protocol.name();
    let message = Mistake::of(|language| {
        localized!(
            language,
            "a study of {name} is compared as its cells say; leave `saturation` out",
            "{name} 실험은 각 조건에 적힌 부하로 비교합니다. `saturation`을 빼십시오",
            "{name} 实验按各条件所写的负载比较；请去掉 `saturation`",
        )
    });
    Err(FieldError::new(at, "saturation", message))
}

/// Chooses the file's variants for another plan, or for a host on which a driver does not run. Returns the names and
/// drivers of the arms that were replaced.
fn choose_variants(
    table: &mut Table<'_>,
    host_defaults: &HostDefaults,
) -> Result<Vec<arms::OfDriver>, FieldError> {
    let mut replaced = Vec::new();
    if let Some(mut without) = table.read("without", Entry::table)? {
        for driver in protocol::DRIVERS {
            let own = without.read(driver, Entry::table)?;
            let Some(instead) = own.map_or_else(|| also_named(&mut without, driver), |own| Ok(Some(own)))?
            else {
                continue;
            };
            if host_defaults.refused(driver).is_none() {
                continue;
            }
            if instead.has("arm") {
                replaced.extend(arms::of_drivers(table.tables("arm")?)?);
            }
            table.replace(instead);
        }
        without.finish(|_| None)?;
    }
    let plan_at = table.at();
    let plans = table.read("plan", Entry::table)?;
    let Some(asked) = &host_defaults.plan else { return Ok(replaced) };
    let mut plans = plans.unwrap_or_else(Table::empty);
    match plans.take_any(asked) {
        Some(plan) => table.replace(plan.table()?),
        None => {
            let names = plans.keys();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            return Err(FieldError::new(plan_at, "plan", no_plan(asked, &names)));
        }
    }
    Ok(replaced)
}

/// The table for io_uring under the kernel's name for it.
fn also_named<'t>(without: &mut Table<'t>, driver: &str) -> Result<Option<Table<'t>>, FieldError> {
    match driver {
        "uring" => without.take_any("io_uring").map(Entry::table).transpose(),
        _ => Ok(None),
    }
}

fn no_plan(asked: &str, names: &[&str]) -> Mistake {
    Mistake::of(|language| {
        let there = match names {
            [] => language.choose(["it has one plan only", "계획이 하나뿐임", "它只有一个计划"]).to_owned(),
            _ => instead_in(language, asked, names),
        };
        localized!(
            language,
            "the study has no plan {asked:?}; {there}",
            "이 실험에 없는 계획입니다: {asked:?}({there})",
            "该实验没有名为 {asked:?} 的计划（{there}）",
        )
    })
}

fn read_protocol(entry: Entry<'_>) -> Result<&'static dyn Protocol, FieldError> {
    let at = entry.at;
    protocol::named(&entry.text()?).at(at)
}

fn read_name(entry: Entry<'_>) -> Result<String, FieldError> {
    let at = entry.at;
    let name = entry.text()?;
    limits::name("name", &name).map_err(|error| FieldError { at, error })?;
    Ok(name)
}

fn read_seed(entry: Entry<'_>) -> Result<u64, FieldError> {
    let wrong = entry.wrong(Mistake::fixed([
        "a seed is a whole number, 0 or more",
        "시드는 0 이상의 정수입니다",
        "随机种子须为不小于 0 的整数",
    ]));
    u64::try_from(entry.number()?).map_err(|_| wrong)
}

/// A number in a range.
fn fraction(entry: Entry<'_>, range: &std::ops::RangeInclusive<f64>) -> Result<f64, FieldError> {
    let (at, key) = (entry.at, entry.key.clone());
    let value = entry.fraction()?;
    limits::within(&key, value, range).map_err(|error| FieldError { at, error })?;
    Ok(value)
}

/// Reads a word that must be one of the known words.
fn one_of(entry: Entry<'_>, what: &str, known: &[&str]) -> Result<String, FieldError> {
    let (at, key) = (entry.at, entry.key.clone());
    let name = entry.text()?;
    if known.contains(&name.as_str()) {
        return Ok(name);
    }
    Err(FieldError::new(at, &key, format!("there is no {what} {name:?}; {}", instead(&name, known))))
}

/// What a key means that does not belong to this protocol or this table.
fn elsewhere(key: &str, protocol: &dyn Protocol) -> Option<String> {
    if ["primary", "confirmatory", "all_confirmatory", "in_flight_max_mib"].contains(&key) {
        return Some("it is about the combinations of [factors], and the file has none".to_owned());
    }
    let is_factor = |it: &&&dyn Protocol| it.factors().iter().any(|factor| factor.key == key);
    let owners: Vec<&str> = protocol::ALL.iter().filter(is_factor).map(|it| it.name()).collect();
    if owners.is_empty() {
        return None;
    }
    if owners.contains(&protocol.name()) {
        return Some("it is a factor; write it below [factors]".to_owned());
    }
    Some(format!(
        "it is a factor of protocol = {}, and this study is of {}",
        owners.iter().map(|owner| format!("{owner:?}")).collect::<Vec<_>>().join(" or "),
        protocol.name()
    ))
}

/// Removes and names the cells whose congestion control is not available here. Returns whether there were any.
fn leave_out_cells(spec: &mut StudySpec, host_defaults: &HostDefaults) -> Result<bool, FieldError> {
    let available = &host_defaults.congestion_controls;
    let is_absent = |cell: &CellSpec| {
        let asked = &cell.congestion_control;
        !asked.is_empty() && !available.is_empty() && !available.contains(asked)
    };
    if let Some(primary) = spec.cells.iter().find(|cell| cell.role == CellRole::Primary && is_absent(cell)) {
        let message = format!(
            "the primary comparison asks for {}, and this machine has {}",
            primary.congestion_control,
            available.join(", ")
        );
        return Err(FieldError::new(0, "congestion_control", message));
    }
    for cell in spec.cells.extract_if(.., |cell| is_absent(cell)) {
        let reason = Finding::NoCongestionControl {
            name: cell.congestion_control.clone(),
            available: available.clone(),
        };
        spec.missing_cells.push(MissingCell { id: cell.id, reason });
    }
    Ok(!spec.missing_cells.is_empty())
}

/// CPUs of the file, or else of the host.
fn place(
    spec: &mut StudySpec,
    protocol: &dyn Protocol,
    host_defaults: &HostDefaults,
    (server_cpus, load_cpus): (Option<Vec<usize>>, Option<Vec<usize>>),
) {
    // CPUs of the file and cores that were chosen without it could overlap.
    let is_own = server_cpus.is_some() || load_cpus.is_some();
    let order_cpus = host_defaults.order_cpus.clone().filter(|_| !is_own);
    protocol.place(spec, &HostDefaults { order_cpus, ..host_defaults.clone() });
    spec.server_cpus = server_cpus.unwrap_or_else(|| std::mem::take(&mut spec.server_cpus));
    spec.load_cpus = load_cpus.unwrap_or_else(|| std::mem::take(&mut spec.load_cpus));
    // If some cells have their own CPUs, the CPUs are a factor, so each other cell records those of the study.
    if spec.cells.iter().any(|cell| !cell.server_cpus.is_empty()) {
        for cell in spec.cells.iter_mut().filter(|cell| cell.server_cpus.is_empty()) {
            cell.server_cpus.clone_from(&spec.server_cpus);
        }
    }
}
