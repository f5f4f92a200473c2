//! Comparisons beside those with the baseline, and goals, as a study file declares them.
//!
//! A side names arms and levels, and takes everything else from the other side. So one table stands for a comparison
//! in every matching cell, and `to` names only the differences.

use weir_judge::is_same_shape;
use weir_record::{
    goal::{ComparisonSpec, Goal, Side},
    metric::{Better, Family, Metric, Scale},
    metric_rows::METRICS,
    spec::{CellRole, CellSpec, LoadMode, StudySpec},
};
use weir_report::localized;

use super::{elsewhere, one_of, threshold};
use crate::{
    limits::{COMPARISONS_MAX, instead},
    mistake::Mistake,
    protocol::{self, Factor, Machine, Protocol, Value},
    toml_table::{Entry, FieldError, Table},
};

/// What comparisons may name.
pub(super) struct Known<'a> {
    pub(super) spec: &'a StudySpec,
    pub(super) protocol: &'static dyn Protocol,
    pub(super) machine: Machine<'a>,
    /// Arms of the file that this machine lacks.
    pub(super) absent: &'a [&'a str],
    /// Whether it lacks cells as well: comparisons about these are left out.
    pub(super) lacks_cells: bool,
}

/// The tables of a file with comparisons and goals.
pub(super) struct Tables<'t> {
    comparisons: Vec<Table<'t>>,
    goals: Vec<Table<'t>>,
    thresholds: Vec<Entry<'t>>,
}

impl<'t> Tables<'t> {
    /// Takes the tables out of the file's table.
    pub(super) fn of(table: &mut Table<'t>) -> Result<Self, FieldError> {
        Ok(Self {
            comparisons: table.tables("comparison")?,
            goals: table.tables("goal")?,
            thresholds: table.read("fail_if", Entry::one_or_many)?.unwrap_or_default(),
        })
    }

    /// Reads them.
    pub(super) fn read(self, known: &Known<'_>) -> Result<Vec<ComparisonSpec>, FieldError> {
        let mut found = Vec::new();
        for table in self.comparisons {
            let at = table.at();
            found.extend(known.comparison(table)?);
            bounded(found.len(), at)?;
        }
        for table in self.goals {
            let at = table.at();
            found.extend(known.goal(table)?);
            bounded(found.len(), at)?;
        }
        for line in self.thresholds {
            let at = line.at;
            found.extend(threshold::read(line, known)?);
            bounded(found.len(), at)?;
        }
        Ok(found)
    }
}

fn bounded(count: usize, at: usize) -> Result<(), FieldError> {
    if count <= COMPARISONS_MAX {
        return Ok(());
    }
    let most = COMPARISONS_MAX;
    let message = Mistake::of(|language| {
        localized!(
            language,
            "the file asks for more than {most} comparisons and goals",
            "파일에 쓸 수 있는 비교와 목표는 모두 {most}개까지입니다",
            "文件中的比较与目标合计最多 {most} 项",
        )
    });
    Err(FieldError::new(at, "comparison", message))
}

/// A side of a comparison in the file.
#[derive(Default)]
pub(super) struct Chosen {
    at: usize,
    key: String,
    pub(super) arms: Vec<String>,
    pub(super) cell: Option<String>,
    pub(super) levels: Vec<(&'static Factor, Vec<Value>)>,
    neighbours: Option<Vec<String>>,
    metric: Option<Metric>,
}

impl Chosen {
    pub(super) fn wrong(&self, message: String) -> FieldError {
        FieldError::new(self.at, &self.key, message)
    }
}

/// A bound before its scale is known.
enum Bound {
    Is(Goal),
    NotSlower,
}

impl Known<'_> {
    fn comparison(&self, mut table: Table<'_>) -> Result<Vec<ComparisonSpec>, FieldError> {
        let of = table.required("of", |entry| self.side(entry))?;
        let to = table.read("to", |entry| self.side(entry))?;
        let best = table.read("best_of", |entry| Ok((entry.at, self.arms(entry)?)))?;
        if let (Some((at, _)), Some(_)) = (&best, &to) {
            return Err(FieldError::new(
                *at,
                "comparison.best_of",
                "give either `to` or `best_of`".to_owned(),
            ));
        }
        let metric = table.read("metric", metric)?;
        let wrong = |message: String| FieldError::new(table.at(), &table.key("metric"), message);
        let Some(above) = of.metric.or(metric) else { return Err(wrong("it must be given".to_owned())) };
        let below = to.as_ref().and_then(|to| to.metric).or(metric).unwrap_or(above);
        comparable(above, below).map_err(wrong)?;
        let bound = bound(&mut table)?;
        let goal = bound.map(|bound| resolved(&bound, above, self.spec.equivalence_margin));
        table.finish(|_| None)?;
        let mut found = Vec::new();
        for (arm, cell) in self.places(&of, (above, to.as_ref()))? {
            let others = match (&to, &best) {
                (Some(to), _) => self.others(to, &arm, cell)?,
                (None, Some((_, arms))) => self.in_cell(cell, arms.clone(), &of)?,
                (None, None) => self.in_cell(cell, vec![self.spec.arms[0].name.clone()], &of)?,
            };
            let above = Side { arm, cell_id: cell.id.clone(), metric: above };
            let sides = others.into_iter().map(|(arm, cell_id)| Side { arm, cell_id, metric: below });
            let sides: Vec<Side> = sides.collect();
            if sides.contains(&above) {
                let message = format!("both sides are {} in {}; say what differs", above.arm, above.cell_id);
                return Err(to.as_ref().unwrap_or(&of).wrong(message));
            }
            let of_sides =
                |to: Vec<Side>| ComparisonSpec { of: above.clone(), to, goal, is_threshold: false };
            match best {
                Some(_) => found.push(of_sides(sides)),
                None => found.extend(sides.into_iter().map(|side| of_sides(vec![side]))),
            }
        }
        Ok(found)
    }

    /// A goal of absolute figures.
    fn goal(&self, mut table: Table<'_>) -> Result<Vec<ComparisonSpec>, FieldError> {
        let of = table.required("of", |entry| self.side(entry))?;
        let metric = table.read("metric", metric)?.or(of.metric);
        let metric = metric.ok_or_else(|| {
            FieldError::new(table.at(), &table.key("metric"), "it must be given".to_owned())
        })?;
        let bound = bound(&mut table)?;
        let missing = table.wrong("give `at_most`, `at_least` or `within`");
        let alone = table.wrong("a figure by itself is slower than nothing; write a [[comparison]]");
        table.finish(|_| None)?;
        let goal = match bound {
            Some(Bound::Is(goal)) => goal,
            Some(Bound::NotSlower) => return Err(alone),
            None => return Err(missing),
        };
        let places = self.places(&of, (metric, None))?.into_iter();
        let one = |(arm, cell): (String, &CellSpec)| ComparisonSpec {
            of: Side { arm, cell_id: cell.id.clone(), metric },
            to: Vec::new(),
            goal: Some(goal),
            is_threshold: false,
        };
        Ok(places.map(one).collect())
    }

    /// Whether the arm is requested in the cell, even if it does not run on this machine.
    pub(super) fn runs(&self, arm: &str, cell: &CellSpec) -> bool {
        cell.has_arm(arm) || self.absent.contains(&arm)
    }

    pub(super) fn arm_names(&self) -> Vec<&str> {
        let own = self.spec.arms.iter().map(|arm| arm.name.as_str());
        own.chain(self.absent.iter().copied()).collect()
    }

    pub(super) fn arms(&self, entry: Entry<'_>) -> Result<Vec<String>, FieldError> {
        let names = self.arm_names();
        entry.one_or_many()?.into_iter().map(|entry| one_of(entry, "arm", &names)).collect()
    }

    pub(super) fn side(&self, entry: Entry<'_>) -> Result<Chosen, FieldError> {
        let (at, key) = (entry.at, entry.key.clone());
        let mut table = entry.table()?;
        let cell = |entry: Entry<'_>| {
            let cells: Vec<&str> = self.spec.cells.iter().map(|cell| cell.id.as_str()).collect();
            if self.lacks_cells { entry.text() } else { one_of(entry, "cell", &cells) }
        };
        let neighbours = |entry: Entry<'_>| {
            let names: Vec<&str> = self.spec.neighbours.iter().map(|it| it.name.as_str()).collect();
            entry.list()?.into_iter().map(|entry| one_of(entry, "neighbour", &names)).collect()
        };
        let mut chosen = Chosen {
            arms: table.read("arm", |entry| self.arms(entry))?.unwrap_or_default(),
            cell: table.read("cell", cell)?,
            neighbours: table.read("neighbours", neighbours)?,
            metric: table.read("metric", metric)?,
            levels: Vec::new(),
            at,
            key,
        };
        for factor in self.protocol.factors() {
            let Some(entry) = table.take(factor.key) else { continue };
            let mut levels = Vec::new();
            for entry in entry.one_or_many()? {
                levels.extend(factor.read(entry, self.machine)?);
            }
            chosen.levels.push((factor, levels));
        }
        table.finish(|key| elsewhere(key, self.protocol))?;
        if chosen.cell.is_some() && (!chosen.levels.is_empty() || chosen.neighbours.is_some()) {
            return Err(chosen.wrong("a cell's identifier has its levels; give either".to_owned()));
        }
        Ok(chosen)
    }

    /// Arms and cells that `of` stands for. If cells of both kinds of load have the levels, the one with a claim is
    /// meant; without a claim, the one in closed loop. Throughput is compared only in closed loop, and so are two
    /// cells, because their rates would differ. Any other cell at an offered rate is named by its identifier.
    pub(super) fn places<'s>(
        &'s self,
        of: &Chosen,
        (metric, other): (Metric, Option<&Chosen>),
    ) -> Result<Vec<(String, &'s CellSpec)>, FieldError> {
        let mut cells = self.cells(of);
        if of.cell.is_none() && cells.iter().any(|cell| cell.load == LoadMode::Closed) {
            let is_across = other.is_some_and(|to| !to.levels.is_empty() || to.neighbours.is_some());
            let is_of_claims = metric.row().family != Family::Rate && !is_across;
            let is_claim = |cell: &&CellSpec| is_of_claims && cell.role != CellRole::Exploratory;
            let claims: Vec<&CellSpec> = cells.iter().copied().filter(is_claim).collect();
            cells.retain(|cell| {
                let stands_back = claims.iter().any(|claim| is_same_shape(claim, cell));
                is_claim(cell) || (cell.load == LoadMode::Closed && !stands_back)
            });
        }
        self.places_in(of, &cells)
    }

    /// The cells that have the levels, with any load.
    pub(super) fn cells<'s>(&'s self, of: &Chosen) -> Vec<&'s CellSpec> {
        let neighbours = of.neighbours.as_deref().unwrap_or_default();
        let is_meant = |cell: &&CellSpec| match &of.cell {
            Some(id) => cell.id == *id,
            None => {
                cell.neighbours == neighbours
                    && of.levels.iter().all(|(factor, levels)| has(cell, factor, levels))
            }
        };
        self.spec.cells.iter().filter(is_meant).collect()
    }

    /// The arms of `of` in these cells, each at least once.
    pub(super) fn places_in<'s>(
        &self,
        of: &Chosen,
        cells: &[&'s CellSpec],
    ) -> Result<Vec<(String, &'s CellSpec)>, FieldError> {
        if of.arms.is_empty() {
            return Err(of.wrong("name an arm: of = { arm = \"…\" }".to_owned()));
        }
        let mut places = Vec::new();
        for arm in &of.arms {
            let own = cells.iter().filter(|cell| self.runs(arm, cell)).map(|cell| (arm.clone(), *cell));
            let before = places.len();
            places.extend(own);
            if places.len() == before && !self.lacks_cells {
                let ids: Vec<&str> = self.spec.cells.iter().map(|cell| cell.id.as_str()).collect();
                return Err(of.wrong(format!("{arm} runs in no such cell; there are {}", ids.join(", "))));
            }
        }
        Ok(places)
    }

    /// The other sides: in the cell of `of`, except for the levels that `to` names.
    fn others(&self, to: &Chosen, arm: &str, cell: &CellSpec) -> Result<Vec<(String, String)>, FieldError> {
        let mut other = cell.clone();
        for (factor, levels) in &to.levels {
            let [level] = levels.as_slice() else {
                return Err(to.wrong(format!("give one level of {}; `of` may have several", factor.key)));
            };
            let load = other.load;
            (factor.set)(&mut other, level);
            // Only the load itself changes how messages arrive.
            if factor.key != "load" {
                other.load = load;
            }
        }
        if let Some(neighbours) = &to.neighbours {
            other.neighbours.clone_from(neighbours);
        }
        // Slices of another length, or whole trials, are a suffix after the levels; the other side has the same
        // suffix.
        let further = cell.id.strip_prefix(&protocol::cell_id(cell)).unwrap_or_default();
        let id = to.cell.clone().unwrap_or_else(|| format!("{}{further}", protocol::cell_id(&other)));
        let Some(found) = self.spec.cells.iter().find(|cell| cell.id == id) else {
            if self.lacks_cells {
                return Ok(Vec::new());
            }
            let ids: Vec<&str> = self.spec.cells.iter().map(|cell| cell.id.as_str()).collect();
            return Err(to.wrong(format!("there is no cell {id:?}; {}", instead(&id, &ids))));
        };
        let arms = if to.arms.is_empty() { vec![arm.to_owned()] } else { to.arms.clone() };
        self.in_cell(found, arms, to)
    }

    fn in_cell(
        &self,
        cell: &CellSpec,
        arms: Vec<String>,
        chosen: &Chosen,
    ) -> Result<Vec<(String, String)>, FieldError> {
        let idle = arms.iter().find(|arm| !cell.has_arm(arm) && !self.absent.contains(&arm.as_str()));
        match idle {
            Some(arm) => Err(chosen.wrong(format!("{arm} does not run in {}", cell.id))),
            None => Ok(arms.into_iter().map(|arm| (arm, cell.id.clone())).collect()),
        }
    }
}

/// Whether the cell has one of these levels: setting the level does not change the text of the factor.
fn has(cell: &CellSpec, factor: &Factor, levels: &[Value]) -> bool {
    levels.iter().any(|level| {
        let mut asked = cell.clone();
        (factor.set)(&mut asked, level);
        (factor.shown)(&asked) == (factor.shown)(cell)
    })
}

pub(super) fn metric(entry: Entry<'_>) -> Result<Metric, FieldError> {
    let names: Vec<&str> = METRICS.iter().map(|row| row.key).collect();
    let name = one_of(entry, "metric", &names)?;
    Ok(METRICS.iter().find(|row| row.key == name).map_or(Metric::Throughput, |row| row.metric))
}

/// Checks that two metrics have the same unit and scale.
fn comparable(of: Metric, to: Metric) -> Result<(), String> {
    let (above, below) = (of.row(), to.row());
    let is_ratio = |scale: Scale| scale == Scale::Ratio;
    if above.unit == below.unit && is_ratio(above.scale) == is_ratio(below.scale) {
        return Ok(());
    }
    Err(format!("{} and {} are not counted in the same unit", above.key, below.key))
}

const BOUNDS: [&str; 4] = ["at_most", "at_least", "within", "not_slower"];

/// The one bound of a table, if it has one.
fn bound(table: &mut Table<'_>) -> Result<Option<Bound>, FieldError> {
    let given: Vec<&str> = BOUNDS.into_iter().filter(|key| table.has(key)).collect();
    if let [one, other, ..] = given[..] {
        return Err(table.wrong(&format!("give either `{one}` or `{other}`")));
    }
    let range = |entry: Entry<'_>| {
        let wrong = entry.wrong("write two numbers, the smaller one first: [0.95, 1.05]".to_owned());
        let ends: Vec<f64> = entry.list()?.into_iter().map(number).collect::<Result<_, _>>()?;
        match ends[..] {
            [low, high] if low <= high => Ok(Goal::Within(low, high)),
            _ => Err(wrong),
        }
    };
    let not_slower = |entry: Entry<'_>| {
        let wrong = entry.wrong("write true, or leave it out".to_owned());
        if entry.flag()? { Ok(()) } else { Err(wrong) }
    };
    let at_most = table.read("at_most", number)?.map(|bound| Bound::Is(Goal::AtMost(bound)));
    let at_least = table.read("at_least", number)?.map(|bound| Bound::Is(Goal::AtLeast(bound)));
    let within = table.read("within", range)?.map(Bound::Is);
    let not_slower = table.read("not_slower", not_slower)?.map(|()| Bound::NotSlower);
    Ok(at_most.or(at_least).or(within).or(not_slower))
}

fn number(entry: Entry<'_>) -> Result<f64, FieldError> {
    let wrong = entry.wrong("it is no number that a figure could have".to_owned());
    entry.fraction().and_then(|number| if number.is_finite() { Ok(number) } else { Err(wrong) })
}

/// The bound as a stored study has it, independent of other margins.
fn resolved(bound: &Bound, metric: Metric, equivalence_margin: f64) -> Goal {
    let row = metric.row();
    match (bound, row.scale, row.better) {
        (Bound::Is(goal), ..) => *goal,
        (Bound::NotSlower, Scale::Ratio, Better::Smaller) => Goal::AtMost(1.0 + equivalence_margin),
        (Bound::NotSlower, Scale::Ratio, Better::Larger) => Goal::AtLeast(1.0 / (1.0 + equivalence_margin)),
        (Bound::NotSlower, Scale::Difference { margin }, Better::Smaller) => Goal::AtMost(margin),
        (Bound::NotSlower, Scale::Difference { margin }, Better::Larger) => Goal::AtLeast(-margin),
    }
}
