//! Cells of a study file: every combination of the levels in `[factors]`, each additional `[[cell]]`, and the cells
//! in which all arms are offered one rate.

use std::collections::{BTreeMap, BTreeSet};

use weir_record::{
    quantity,
    spec::{CellRole, CellSpec, EvidencePlan, LoadMode},
};

use super::{elsewhere, fraction, neighbours, one_rate, requests_instead::CONTENT};
use crate::{
    limits::{self, BYTES_IN_FLIGHT_MAX, CELLS_MAX, Level, RATE_PER_SECOND, SHARE, instead},
    mistake::Mistake,
    protocol::{self, Kind, Machine, Protocol, Setting, Value},
    toml_table::{At, Entry, FieldError, Table},
};

const WINDOW_NS: u64 = 1_000_000_000;

/// Default blocks and rounds of cells with a claim, and the most for other cells.
const BLOCKS: u32 = 12;
const EXPLORATORY_BLOCKS_MAX: u32 = 6;
const ROUNDS: u32 = 30;
const EXPLORATORY_ROUNDS_MAX: u32 = 8;

/// Default share of the capacity that an equal rate offers.
const LATENCY_SHARE: f64 = 0.6;

/// Keys that only cells with alternating arms have.
const OF_ROUNDS: [&str; 8] = [
    "rounds",
    "slice",
    "permutations",
    "evidence_rounds",
    "evidence_slice",
    "evidence_pairs",
    "evidence_by_group",
    "evidence_strace",
];

/// The same, for cells without a claim, as keys of the whole file.
const OF_EXPLORATORY_ROUNDS: [&str; 2] = ["exploratory_rounds", "exploratory_evidence_rounds"];

/// Keys of the whole file that only cells with whole trials have.
const OF_BLOCKS: [&str; 2] = ["blocks", "exploratory_blocks"];

const NO_ROUNDS: &str =
    "rounds, slices, permutations and evidence have no meaning with alternate = false; leave them out";

const NO_EVIDENCE: &str = "it asks for more slices of evidence, and there are none; give `evidence_rounds`";

const NO_FEWER_CPUS: &str = "the server's side has one CPU here, and fewer there are not; add \"all\", or write the cells with fewer as a [[cell]]";

const NO_CLOSED_CLAIM: &str =
    "the claims are at one rate already; leave it out, add rates as a [[cell]], or ask for saturation = true";

const NO_CONTENT: [&str; 3] = [
    "the requests of [[request]] take the place of a content, and every level would be the same cell; leave it out",
    "[[request]]의 요청이 content를 대신하므로 모든 수준이 같은 조건이 됩니다. content를 빼십시오",
    "[[request]] 中的请求取代了 content，每个水平都是同一个条件；请去掉 content",
];

/// Remedy for a study with too many cells.
const FEWER_CELLS: &str = "cut a factor with --levels FACTOR=LEVEL,LEVEL, or leave levels out of the file";

const ROLES: [(&str, CellRole); 3] = [
    ("primary", CellRole::Primary),
    ("confirmatory", CellRole::Confirmatory),
    ("exploratory", CellRole::Exploratory),
];

/// A level for each factor of the protocol, in its order; `None` if something else decides the level.
pub(super) type Shape = Vec<Option<Value>>;

/// A cell as the file defines it, before its arms are known.
pub(super) struct Draft {
    pub(super) spec: CellSpec,
    pub(super) shape: Shape,
    /// Whether it is a combination of factors and not written out in the file.
    pub(super) is_combined: bool,
    /// Names the file gives, with their places; empty for all.
    pub(super) arms: Vec<(usize, String)>,
    /// The same for neighbours; empty for none.
    pub(super) neighbours: Vec<(usize, String)>,
    pub(super) round_plan: RoundPlan,
}

/// How its arms take turns, if they can.
#[derive(Clone, Copy)]
pub(super) struct RoundPlan {
    pub(super) rounds: u32,
    /// Place of a key about the cell's rounds; if present, its arms must take turns.
    pub(super) turns_at: Option<usize>,
    /// Place of the key of its number of blocks; if present, its arms must not take turns.
    pub(super) blocks_at: Option<usize>,
    pub(super) slice_ns: Option<u64>,
    pub(super) permutations: Option<u32>,
    /// Slices of evidence; absent for none.
    pub(super) evidence: Option<EvidencePlan>,
    /// Whether they take turns if they can.
    pub(super) alternate: bool,
}

/// All cells of a file.
pub(super) struct Drafts {
    pub(super) cells: Vec<Draft>,
    /// Place and name of a key of the whole file about blocks alone; and the same for rounds.
    pub(super) blocks_at: Option<(usize, &'static str)>,
    pub(super) rounds_at: Option<(usize, &'static str)>,
    /// Drivers among the levels that do not run here.
    pub(super) left_out: Vec<String>,
}

/// Keys of a cell beside its levels, or of the whole file for all cells.
#[derive(Default)]
pub(super) struct Settings {
    window_ns: Option<u64>,
    warmup_ns_max: Option<u64>,
    blocks: Option<u32>,
    rounds: Option<u32>,
    /// Several slice lengths make as many cells.
    slices_ns: Vec<u64>,
    permutations: Option<u32>,
    evidence_rounds: Option<u32>,
    evidence_slice_ns: Option<u64>,
    evidence_pairs: Option<u32>,
    evidence_by_group: Option<bool>,
    evidence_strace: Option<bool>,
    alternate: Option<bool>,
    /// Keys of the protocol.
    own: Vec<Setting>,
    /// Place of the first key that only rounds have, and of the key for blocks.
    turns_at: Option<usize>,
    blocks_at: Option<usize>,
}

impl Settings {
    fn read(table: &mut Table<'_>, protocol: &dyn Protocol) -> Result<Self, FieldError> {
        let slice = |entry: Entry<'_>| {
            let at = entry.at;
            let slice_ns = entry.length()?;
            limits::slice_ns(slice_ns).at(at).map(|()| slice_ns)
        };
        let rounds = table.read("rounds", |entry| entry.level(Level::Rounds))?;
        let slices = |entry: Entry<'_>| entry.one_or_many()?.into_iter().map(slice).collect();
        let slices_ns: Option<Vec<u64>> = table.read("slice", slices)?;
        let alternate = table.read("alternate", Entry::flag)?;
        let permutations = table.read("permutations", |entry| entry.level(Level::Permutations))?;
        let blocks = table.read("blocks", |entry| entry.level(Level::Blocks))?;
        let mut of_evidence = (None, None, None, None, None);
        if protocol.generator().is_some() {
            of_evidence = (
                table.read("evidence_rounds", |entry| entry.level(Level::EvidenceRounds))?,
                table.read("evidence_slice", evidence_slice)?,
                table.read("evidence_pairs", |entry| entry.level(Level::EvidencePairs))?,
                table.read("evidence_by_group", Entry::flag)?,
                table.read("evidence_strace", Entry::flag)?,
            );
        }
        let (evidence_rounds, evidence_slice_ns, evidence_pairs, evidence_by_group, evidence_strace) =
            of_evidence;
        let places = table.places();
        Ok(Self {
            evidence_rounds,
            evidence_slice_ns,
            evidence_pairs,
            evidence_by_group,
            evidence_strace,
            window_ns: table.read("window", Entry::length)?,
            warmup_ns_max: table.read("warmup_max", Entry::length)?,
            blocks,
            rounds,
            slices_ns: slices_ns.unwrap_or_default(),
            permutations,
            alternate,
            turns_at: OF_ROUNDS.into_iter().filter_map(|key| places.get(key)).min().copied(),
            blocks_at: places.get("blocks").copied(),
            own: protocol.settings(table)?,
        })
    }

    /// The first key that asks for further slices of evidence, and its place.
    fn further_evidence(&self, places: &BTreeMap<&'static str, usize>) -> Option<(&'static str, usize)> {
        let asked = [
            ("evidence_pairs", self.evidence_pairs.is_some_and(|pairs| pairs > 1)),
            ("evidence_by_group", self.evidence_by_group == Some(true)),
            ("evidence_strace", self.evidence_strace == Some(true)),
        ];
        asked
            .into_iter()
            .filter(|(_, is_asked)| *is_asked)
            .find_map(|(key, _)| Some((key, *places.get(key)?)))
    }
}

/// Settings common to all cells of a file.
pub(super) struct File {
    protocol: &'static dyn Protocol,
    settings: Settings,
    exploratory_blocks: Option<u32>,
    exploratory_rounds: Option<u32>,
    exploratory_evidence_rounds: Option<u32>,
    load_workers: u32,
    /// Whether claims are about closed loops, which need a cell at an equal rate if the generator is the limit.
    saturation: bool,
}

impl File {
    fn read(
        table: &mut Table<'_>,
        protocol: &'static dyn Protocol,
        saturation: bool,
    ) -> Result<Self, FieldError> {
        let settings = Settings::read(table, protocol)?;
        if let (Some(at), [_, _, ..]) = (settings.turns_at, &settings.slices_ns[..]) {
            let message = "one length for all cells; several belong in a [[cell]]".to_owned();
            return Err(FieldError::new(at, "slice", message));
        }
        let exploratory_rounds = table.read("exploratory_rounds", |entry| entry.level(Level::Rounds))?;
        let exploratory_evidence_rounds = match protocol.generator() {
            Some(_) => {
                table.read("exploratory_evidence_rounds", |entry| entry.level(Level::EvidenceRounds))?
            }
            None => None,
        };
        let place = |key: &&str| table.places().get(*key).copied();
        let turns_at = settings.turns_at.or_else(|| OF_EXPLORATORY_ROUNDS.iter().find_map(place));
        if let (Some(at), Some(false)) = (turns_at, settings.alternate) {
            return Err(FieldError::new(at, "alternate", NO_ROUNDS.to_owned()));
        }
        let load_workers = match protocol.generator() {
            Some(_) => table.read("load_workers", |entry| entry.level(Level::LoadWorkers))?,
            None => None,
        };
        Ok(Self {
            protocol,
            load_workers: load_workers.unwrap_or(1),
            saturation,
            settings,
            exploratory_blocks: table.read("exploratory_blocks", |entry| entry.level(Level::Blocks))?,
            exploratory_rounds,
            exploratory_evidence_rounds,
        })
    }

    /// The cell with these levels.
    fn cell(&self, shape: &Shape, role: CellRole, load: Option<LoadMode>, own: &Settings) -> CellSpec {
        let mut cell = CellSpec {
            id: String::new(),
            protocol: self.protocol.name().to_owned(),
            role,
            connections: 1,
            depth: 1,
            message_bytes: 1,
            idle_connections: 0,
            workers: 1,
            accept: String::new(),
            congestion_control: String::new(),
            load_workers: self.load_workers,
            load_cpus: Vec::new(),
            server_cpus: Vec::new(),
            close: false,
            load: LoadMode::Closed,
            window_ns: own.window_ns.or(self.settings.window_ns).unwrap_or(WINDOW_NS),
            warmup_ns_max: own
                .warmup_ns_max
                .or(self.settings.warmup_ns_max)
                .unwrap_or_else(|| self.protocol.warmup_ns_max()),
            blocks: self.blocks(role, own),
            http: None,
            storage: None,
            orders: None,
            alternation: None,
            neighbours: Vec::new(),
            is_rung: false,
            arms: Vec::new(),
        };
        self.protocol.begin(&mut cell);
        for (factor, level) in self.protocol.factors().iter().zip(shape) {
            if let Some(level) = level {
                (factor.set)(&mut cell, level);
            }
        }
        cell.load = load.unwrap_or(cell.load);
        self.settings.own.iter().chain(&own.own).for_each(|set| set(&mut cell));
        if cell.is_series() {
            // Nothing is compared in this cell, and it also shows how a job begins.
            cell.blocks = 1;
            cell.warmup_ns_max = own.warmup_ns_max.unwrap_or(0);
        }
        cell.id = protocol::cell_id(&cell);
        cell
    }

    pub(super) fn blocks(&self, role: CellRole, own: &Settings) -> u32 {
        let claims = self.settings.blocks.unwrap_or(BLOCKS);
        let others = self.exploratory_blocks.unwrap_or(claims.min(EXPLORATORY_BLOCKS_MAX));
        own.blocks.unwrap_or(if role == CellRole::Exploratory { others } else { claims })
    }

    /// Rounds of a cell. If claims are about closed loops, the open-loop cell that is compared with a claim has more
    /// rounds than other cells without a claim.
    pub(super) fn round_plan(
        &self,
        role: CellRole,
        load: LoadMode,
        own: &Settings,
        slice_ns: Option<u64>,
    ) -> RoundPlan {
        let claims = self.settings.rounds.unwrap_or(ROUNDS);
        let others = self.exploratory_rounds.unwrap_or(claims.min(EXPLORATORY_ROUNDS_MAX));
        let usual = match (role, load) {
            (CellRole::Primary | CellRole::Confirmatory, _) => claims,
            (CellRole::Exploratory, load) if load != LoadMode::Closed && self.saturation => {
                (others * 3 / 2).max(claims * 2 / 3)
            }
            (CellRole::Exploratory, _) => others,
        };
        RoundPlan {
            rounds: own.rounds.unwrap_or(usual),
            turns_at: own.turns_at,
            blocks_at: own.blocks_at,
            slice_ns: slice_ns.or(self.settings.slices_ns.first().copied()),
            permutations: own.permutations.or(self.settings.permutations),
            evidence: self.evidence(role, load, own),
            alternate: own.alternate.or(self.settings.alternate).unwrap_or(true),
        }
    }

    /// Slices of evidence. The file's settings apply to cells in a closed loop, where all time is spent on messages:
    /// some slices for claims, some for the other cells. Its strace and its slices by group apply to claims and to
    /// cells with their own evidence.
    fn evidence(&self, role: CellRole, load: LoadMode, own: &Settings) -> Option<EvidencePlan> {
        let is_claimed = role != CellRole::Exploratory;
        let of_all = match is_claimed {
            true => self.settings.evidence_rounds,
            false => self.exploratory_evidence_rounds,
        };
        let of_all = of_all.filter(|_| load == LoadMode::Closed);
        let rounds = own.evidence_rounds.or(of_all).filter(|rounds| *rounds > 0)?;
        let slice_ns = own.evidence_slice_ns.or(self.settings.evidence_slice_ns);
        let has_own = own.evidence_rounds.is_some();
        let of_all = |chosen: Option<bool>| chosen.filter(|_| is_claimed || has_own);
        Some(EvidencePlan {
            rounds,
            slice_ns: slice_ns.unwrap_or(limits::EVIDENCE_SLICE_DEFAULT_NS),
            pairs: own.evidence_pairs.or(self.settings.evidence_pairs).unwrap_or(1),
            by_group: own.evidence_by_group.or(of_all(self.settings.evidence_by_group)).unwrap_or(false),
            strace: own.evidence_strace.or(of_all(self.settings.evidence_strace)).unwrap_or(false),
            after: 0,
        })
    }

    fn draft(
        &self,
        parameters: &CellParameters<'_>,
        shape: &Shape,
        load: Option<LoadMode>,
        slice_ns: Option<u64>,
    ) -> Draft {
        let mut spec = self.cell(shape, parameters.role, load, parameters.settings);
        spec.neighbours = parameters.neighbours.iter().map(|(_, name)| name.clone()).collect();
        spec.id = protocol::cell_id(&spec);
        // Cells that differ only in how their arms take turns get identifiers with that difference.
        if let (Some(slice_ns), [_, _, ..]) = (slice_ns, &parameters.settings.slices_ns[..]) {
            spec.id = format!("{}-s{}ms", spec.id, slice_ns as f64 / 1e6);
        }
        if parameters.settings.alternate == Some(false) && self.settings.alternate != Some(false) {
            spec.id.push_str("-whole");
        }
        Draft {
            round_plan: self.round_plan(parameters.role, spec.load, parameters.settings, slice_ns),
            spec,
            shape: shape.clone(),
            is_combined: parameters.is_combined,
            arms: parameters.arms.to_vec(),
            neighbours: parameters.neighbours.to_vec(),
        }
    }
}

/// A cell, or several cells, defined at one place of the file.
struct CellParameters<'a> {
    role: CellRole,
    settings: &'a Settings,
    is_combined: bool,
    arms: &'a [(usize, String)],
    neighbours: &'a [(usize, String)],
}

/// Reads all cells of a file.
pub(super) fn read(
    table: &mut Table<'_>,
    protocol: &'static dyn Protocol,
    machine: Machine<'_>,
    saturation: bool,
) -> Result<Drafts, FieldError> {
    let file = File::read(table, protocol, saturation)?;
    let places = table.places();
    let place = |key: &'static str| Some((*places.get(key)?, key));
    let blocks_at = OF_BLOCKS.into_iter().find_map(place);
    let rounds_at = OF_ROUNDS.into_iter().chain(OF_EXPLORATORY_ROUNDS).find_map(place);
    let is_mix = protocol.has_requests() && table.has("request");
    let mut levels = Levels { protocol, machine, is_mix, left_out: Vec::new() };
    let own = table.tables("cell")?;
    let factors = table.take("factors");
    let has_matrix = factors.is_some() || own.is_empty();
    let mut written: Vec<Draft> = Vec::new();
    for cell in own {
        written.extend(explicit(cell, &file, &mut levels)?);
    }
    let has_primary = written.iter().any(|draft| draft.spec.role == CellRole::Primary);
    let mut cells = Vec::new();
    if has_matrix {
        let factors = factors.map_or_else(|| Ok(Table::empty()), Entry::table)?;
        cells = matrix(table, factors, &file, &mut levels, has_primary)?;
    }
    cells.extend(written);
    if !saturation && protocol.has_rungs() {
        cells = cells.into_iter().flat_map(|draft| one_rate::of(draft, &file)).collect();
        cells = one_rate::merged(cells);
    }
    let latency_at = places.get("latency").copied();
    let rates = table.read("latency", latency)?.unwrap_or_default();
    if let Some(at) = latency_at.filter(|_| !cells.iter().any(claims_closed)) {
        return Err(FieldError::new(at, "latency", NO_CLOSED_CLAIM.to_owned()));
    }
    let mut equal: Vec<Draft> = Vec::new();
    for draft in cells.iter().filter(|draft| claims_closed(draft)) {
        for rate in &rates {
            let own = equal_rate(draft, *rate, &file);
            // Cells that differ only in their slices share it, and a cell that is written out serves as well.
            if cells.iter().chain(&equal).all(|other| other.spec.id != own.spec.id) {
                equal.push(own);
            }
        }
    }
    // Every claim gets its equal-rate cell, which can support the claim if the generator is the limit.
    cells.extend(equal);
    let asks_for_more = file.settings.further_evidence(&places);
    if let Some((key, at)) = asks_for_more.filter(|_| cells.iter().all(|it| it.round_plan.evidence.is_none()))
    {
        return Err(FieldError::new(at, key, NO_EVIDENCE.to_owned()));
    }
    if cells.len() > CELLS_MAX {
        let count = cells.len();
        let message =
            format!("the study has {count} cells; it must have from 1 to {CELLS_MAX}; {FEWER_CELLS}");
        return Err(FieldError::new(0, "factors", message));
    }
    Ok(Drafts { cells, blocks_at, rounds_at, left_out: levels.left_out })
}

/// Whether it has a claim about a closed loop.
pub(super) fn claims_closed(draft: &Draft) -> bool {
    draft.spec.role != CellRole::Exploratory && draft.spec.load == LoadMode::Closed
}

/// The same cell at one rate for all arms.
fn equal_rate(claim: &Draft, rate: LoadMode, file: &File) -> Draft {
    let mut spec = CellSpec {
        role: CellRole::Exploratory,
        load: rate,
        blocks: file.blocks(CellRole::Exploratory, &Settings::default()),
        ..claim.spec.clone()
    };
    spec.id = protocol::cell_id(&spec);
    Draft {
        round_plan: RoundPlan {
            alternate: claim.round_plan.alternate,
            ..file.round_plan(CellRole::Exploratory, rate, &Settings::default(), None)
        },
        spec,
        shape: claim.shape.clone(),
        arms: claim.arms.clone(),
        neighbours: claim.neighbours.clone(),
        ..*claim
    }
}

/// The rates of `latency`.
fn latency(entry: Entry<'_>) -> Result<Vec<LoadMode>, FieldError> {
    let mut table = entry.table()?;
    let poisson = table.read("poisson", Entry::flag)?.unwrap_or(true);
    let mut rates = offered(&mut table, poisson)?;
    table.finish(|_| None)?;
    if rates.is_empty() {
        rates.push(LoadMode::OpenShare { share: LATENCY_SHARE, poisson });
    }
    Ok(rates)
}

/// Rates that are offered to every arm: shares of the smallest capacity, or a number of messages a second.
fn offered(table: &mut Table<'_>, poisson: bool) -> Result<Vec<LoadMode>, FieldError> {
    let shares = table.read("share", |entry| {
        entry.one_or_many()?.into_iter().map(|entry| fraction(entry, &SHARE)).collect::<Result<Vec<_>, _>>()
    })?;
    let rate_key = table.key("rate");
    let per_second = table.read("rate", |entry| {
        let at = entry.at;
        let rates = entry.one_or_many()?.into_iter().map(rate).collect::<Result<Vec<_>, _>>()?;
        Ok((at, rates))
    })?;
    match (shares, per_second) {
        (Some(_), Some((at, _))) => {
            Err(FieldError::new(at, &rate_key, "give either `share` or `rate`".to_owned()))
        }
        (Some(shares), None) => {
            Ok(shares.into_iter().map(|share| LoadMode::OpenShare { share, poisson }).collect())
        }
        (None, Some((_, rates))) => {
            let rate = |rate_per_second| LoadMode::Open { rate_per_second, poisson, share: None };
            Ok(rates.into_iter().map(rate).collect())
        }
        (None, None) => Ok(Vec::new()),
    }
}

/// A rate in its range: a number, or `"10k"`.
fn rate(entry: Entry<'_>) -> Result<f64, FieldError> {
    let (at, key) = (entry.at, entry.key.clone());
    let per_second = match entry.is_text() {
        true => quantity::per_second(&entry.shown()),
        false => None,
    };
    let value = per_second.map_or_else(|| entry.fraction(), Ok)?;
    limits::within(&key, value, &RATE_PER_SECOND).map_err(|error| FieldError { at, error })?;
    Ok(value)
}

/// Reads levels of factors.
struct Levels<'s> {
    protocol: &'static dyn Protocol,
    machine: Machine<'s>,
    /// Whether a mix of requests replaces the content.
    is_mix: bool,
    left_out: Vec<String>,
}

impl Levels<'_> {
    /// The levels of every factor in a table, in the protocol's order; an absent factor has its default.
    fn read(&mut self, table: &mut Table<'_>) -> Result<Vec<Shape>, FieldError> {
        let mut all = Vec::new();
        for factor in self.protocol.factors() {
            let Some(entry) = table.take(factor.key) else {
                all.push(vec![factor.default.clone()]);
                continue;
            };
            if self.is_mix && factor.key == CONTENT {
                return Err(entry.wrong(Mistake::fixed(NO_CONTENT)));
            }
            let mut own: Shape = Vec::new();
            let (at, key) = (entry.at, entry.key.clone());
            for entry in entry.one_or_many()? {
                let (at, text) = (entry.at, entry.is_text().then(|| entry.shown()));
                let found = factor.read(entry, self.machine)?;
                if found.is_empty() {
                    self.left_out.extend(text);
                }
                for level in found.into_iter().map(Some) {
                    if own.contains(&level) {
                        let level = level.map(|level| level.to_string()).unwrap_or_default();
                        return Err(FieldError::new(at, &key, format!("{level} occurs twice")));
                    }
                    own.push(level);
                }
            }
            // `"fewer"` CPUs of a server side with one CPU are no levels: there are no such cells.
            if own.is_empty() && !matches!(factor.kind, Kind::ServerCpus) {
                return Err(FieldError::new(
                    at,
                    &key,
                    "none of these runs here; `weir doctor` says why".to_owned(),
                ));
            }
            all.push(own);
        }
        Ok(all)
    }
}

/// Every combination of one level of each factor; those of the last factor change fastest.
fn combinations(levels: &[Shape]) -> Vec<Shape> {
    let mut shapes: Vec<Shape> = vec![Vec::new()];
    for own in levels {
        let with = |shape: &Shape, level: &Option<Value>| {
            let mut shape = shape.clone();
            shape.push(level.clone());
            shape
        };
        shapes = shapes.iter().flat_map(|shape| own.iter().map(|level| with(shape, level))).collect();
    }
    shapes
}

/// Checks the number of combinations before they are made, because they may not fit into memory.
fn check_count(levels: &[Shape], at: usize) -> Result<(), FieldError> {
    let cells = levels.iter().fold(1_usize, |cells, own| cells.saturating_mul(own.len()));
    if cells <= CELLS_MAX {
        return Ok(());
    }
    let message = format!("the factors make more than {CELLS_MAX} cells; {FEWER_CELLS}");
    Err(FieldError::new(at, "factors", message))
}

/// The cells of `[factors]`.
fn matrix(
    table: &mut Table<'_>,
    factors: Table<'_>,
    file: &File,
    levels: &mut Levels<'_>,
    has_primary: bool,
) -> Result<Vec<Draft>, FieldError> {
    let at = factors.at();
    let mut factors = factors.named("");
    let all = levels.read(&mut factors)?;
    factors.finish(|key| elsewhere(key, file.protocol))?;
    if all.iter().any(Vec::is_empty) {
        return Err(FieldError::new(at, "server_cpus", NO_FEWER_CPUS.to_owned()));
    }
    check_count(&all, at)?;
    let primary = match table.take("primary") {
        Some(entry) if has_primary => {
            return Err(
                entry.wrong("a [[cell]] is the primary comparison already; one of them must go".to_owned())
            );
        }
        Some(entry) => Some(pick(entry.table()?, file.protocol, &all)?),
        None if has_primary => None,
        None => Some(pick(Table::empty().named("primary"), file.protocol, &all)?),
    };
    let mut confirmatory = Vec::new();
    for table in table.tables("confirmatory")? {
        confirmatory.push(pick(table, file.protocol, &all)?);
    }
    let all_confirmatory = table.read("all_confirmatory", Entry::flag)?.unwrap_or(false);
    let bytes_max = table.read("in_flight_max_mib", in_flight_max)?.unwrap_or(u64::MAX);
    let role = |shape: &Shape| {
        if primary.as_ref() == Some(shape) {
            CellRole::Primary
        } else if all_confirmatory || confirmatory.contains(shape) {
            CellRole::Confirmatory
        } else {
            CellRole::Exploratory
        }
    };
    let settings = Settings::default();
    let draft = |shape: &Shape| {
        let parameters = CellParameters {
            role: role(shape),
            settings: &settings,
            is_combined: true,
            arms: &[],
            neighbours: &[],
        };
        file.draft(&parameters, shape, None, None)
    };
    let mut cells: Vec<Draft> = combinations(&all).iter().map(draft).collect();
    cells.retain(|draft| bytes_in_flight(&draft.spec) <= bytes_max);
    // One worker gets every connection, with any distribution: such combinations are one cell.
    let mut ids = BTreeSet::new();
    cells.retain(|draft| ids.insert(draft.spec.id.clone()) || draft.spec.workers > 1);
    Ok(cells)
}

fn bytes_in_flight(cell: &CellSpec) -> u64 {
    u64::from(cell.connections) * u64::from(cell.depth) * u64::from(cell.message_bytes)
}

/// Limit of bytes in flight, above which cells are left out. Without the key no cell is left out, and a cell above
/// the general limit is refused.
fn in_flight_max(entry: Entry<'_>) -> Result<u64, FieldError> {
    let mib_max = BYTES_IN_FLIGHT_MAX >> 20;
    let (at, key) = (entry.at, entry.key.clone());
    let given = entry.number()?;
    let mib = u64::try_from(given).ok().filter(|mib| (1..=mib_max).contains(mib));
    mib.map(|mib| mib << 20).ok_or_else(|| {
        FieldError::new(at, &key, format!("{given} is out of range; it must be from 1 to {mib_max}"))
    })
}

/// The combination that a table names: each level must be one of its factor's, and a factor with a single level may
/// be omitted.
fn pick(mut table: Table<'_>, protocol: &dyn Protocol, all: &[Shape]) -> Result<Shape, FieldError> {
    let mut shape = Vec::new();
    for (factor, levels) in protocol.factors().iter().zip(all) {
        let shown = |level: &Option<Value>| level.as_ref().map(Value::to_string).unwrap_or_default();
        let choices = || levels.iter().map(shown).collect::<Vec<_>>().join(", ");
        let key = table.key(factor.key);
        match table.take(factor.key) {
            Some(entry) => {
                let (at, given) = (entry.at, entry.shown());
                let found = levels.iter().find(|level| shown(level) == given);
                shape.push(found.cloned().ok_or_else(|| {
                    let message = format!("{given} is not a level of the factor; there are {}", choices());
                    FieldError::new(at, &key, message)
                })?);
            }
            // For drivers, the first that runs here.
            None if levels.len() == 1 || factor.is_driver() => shape.push(levels[0].clone()),
            None => {
                let message = format!("one level must be picked; there are {}", choices());
                return Err(FieldError::new(table.at(), &key, message));
            }
        }
    }
    table.finish(|key| elsewhere(key, protocol))?;
    Ok(shape)
}

/// The cells of one `[[cell]]`: usually one, or one for each combination of the levels it lists.
fn explicit(mut table: Table<'_>, file: &File, levels: &mut Levels<'_>) -> Result<Vec<Draft>, FieldError> {
    let at = table.at();
    let role = table.read("role", role)?.unwrap_or(CellRole::Exploratory);
    let settings = Settings::read(&mut table, file.protocol)?;
    if let (Some(at), Some(false)) = (settings.turns_at, settings.alternate.or(file.settings.alternate)) {
        return Err(FieldError::new(at, "alternate", NO_ROUNDS.to_owned()));
    }
    let asks_for_more = settings.further_evidence(&table.places());
    if let Some((key, at)) = asks_for_more.filter(|_| settings.evidence_rounds.is_none()) {
        return Err(FieldError::new(at, &format!("cell.{key}"), NO_EVIDENCE.to_owned()));
    }
    let arms = table.read("arms", |entry| {
        entry.list()?.into_iter().map(|entry| Ok((entry.at, entry.text()?))).collect()
    })?;
    let arms: Vec<(usize, String)> = arms.unwrap_or_default();
    let neighbours = table.read("neighbours", neighbours::of_cell)?.unwrap_or_default();
    let poisson = table.read("poisson", |entry| Ok((entry.at, entry.flag()?)))?;
    let loads = offered(&mut table, poisson.is_none_or(|(_, poisson)| poisson))?;
    if let Some((at, _)) = poisson.filter(|_| loads.is_empty()) {
        let message = "it belongs to a rate; give `share` or `rate`, or leave it out".to_owned();
        return Err(FieldError::new(at, "cell.poisson", message));
    }
    let loads: Vec<Option<LoadMode>> =
        if loads.is_empty() { vec![None] } else { loads.into_iter().map(Some).collect() };
    let all = levels.read(&mut table)?;
    table.finish(|key| elsewhere(key, file.protocol))?;
    check_count(&all, at)?;
    let parameters = CellParameters {
        role,
        settings: &settings,
        is_combined: false,
        arms: &arms,
        neighbours: &neighbours,
    };
    let slices: Vec<Option<u64>> = match &settings.slices_ns[..] {
        [] => vec![None],
        own => own.iter().copied().map(Some).collect(),
    };
    let mut drafts = Vec::new();
    for shape in &combinations(&all) {
        for load in &loads {
            drafts.extend(slices.iter().map(|slice_ns| file.draft(&parameters, shape, *load, *slice_ns)));
        }
    }
    if let (Some(at), true) = (settings.blocks_at, drafts.iter().any(|draft| draft.spec.is_series())) {
        let message = "core_steps are run once and drawn over time; leave blocks out".to_owned();
        return Err(FieldError::new(at, "cell.blocks", message));
    }
    Ok(drafts)
}

fn evidence_slice(entry: Entry<'_>) -> Result<u64, FieldError> {
    let at = entry.at;
    let slice_ns = entry.length()?;
    limits::evidence_slice_ns(slice_ns).at(at).map(|()| slice_ns)
}

fn role(entry: Entry<'_>) -> Result<CellRole, FieldError> {
    let (at, key) = (entry.at, entry.key.clone());
    let name = entry.text()?;
    let found = ROLES.iter().find(|(own, _)| *own == name);
    found.map(|(_, role)| *role).ok_or_else(|| {
        let names = ROLES.map(|(name, _)| name);
        FieldError::new(at, &key, format!("there is no role {name:?}; {}", instead(&name, &names)))
    })
}
