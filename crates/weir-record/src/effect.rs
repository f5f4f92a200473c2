//! The table of effects: the one form in which what a study concludes is computed, stored and read.
//!
//! A row answers one question with one figure: what an arm costs against its baseline in a cell, whether a goal is
//! met, what a switch accounts for. Every row has the same columns, so that a reader who knows one row knows all: the
//! estimate with its interval, on the row's scale; how sure, from how many units; and what follows. Questions that need
//! more than a row (maps, tables over several cells) are views of these rows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    finding::Finding,
    goal::Outcome,
    grid::Difference,
    metric::{Metric, Scale},
    spec::CellRole,
    verdict::Verdict,
};

/// What a row answers. A place is an index into a list of the specification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// How the arm compares with its baseline in the cell, by the units of one state of the machine: the only rows
    /// with their own verdict.
    #[default]
    Comparison,
    /// How the study's first arm compares with its own second run: what the method shows where there is nothing to
    /// find. One row for each cell and metric; absent where the arm ran once.
    Itself,
    /// The comparison in the machine's near state, where both states were met often enough.
    NearState,
    /// The comparison in the machine's far state, likewise.
    FarState,
    /// The comparison with the units that were excluded for noise. It has no interval.
    WithNoise,
    /// The ratio of figures that are compared as differences. It has no interval.
    Ratio,
    /// The comparison with the slices that missed their offered rate, at the rates that they achieved.
    AchievedRates,
    /// A comparison or goal that the study declares, by its place in `comparisons`.
    Asked(u32),
    /// A contrast, by its place in `contrasts`. It is of several cells and names none.
    Contrast(u32),
    /// The arm against the one without a switch, by the cause's place in `causes`.
    Switch(u32),
    /// The share of the arm's difference from the first arm that the switch accounts for, on the scale of logarithms.
    CauseShare(u32),
    /// What the arm adds to the baseline's figure, by the question's place in `added_costs`.
    Added(u32),
    /// What the arm adds over what the reference adds, likewise.
    AddedShare(u32),
    /// The arm whose largest share over all cells is the smallest, with that share, likewise.
    LeastAdded(u32),
    /// The published pair with one cause switched on: places of the claim in `published` and of its cause.
    PublishedCause(u32, u32),
    /// The share of the published difference that this cause makes, on the scale of logarithms, likewise.
    PublishedShare(u32, u32),
}

impl Question {
    /// Name of the kind of question, without a place: stable, for tables that others read.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Comparison => "comparison",
            Self::Itself => "itself",
            Self::NearState => "near-state",
            Self::FarState => "far-state",
            Self::WithNoise => "with-noise",
            Self::Ratio => "ratio",
            Self::AchievedRates => "achieved-rates",
            Self::Asked(_) => "asked",
            Self::Contrast(_) => "contrast",
            Self::Switch(_) => "switch",
            Self::CauseShare(_) => "cause-share",
            Self::Added(_) => "added",
            Self::AddedShare(_) => "added-share",
            Self::LeastAdded(_) => "least-added",
            Self::PublishedCause(..) => "published-cause",
            Self::PublishedShare(..) => "published-share",
        }
    }

    /// Places in the specification's lists: of the question, and of what it has a list of.
    pub fn places(self) -> (Option<u32>, Option<u32>) {
        match self {
            Self::Asked(place)
            | Self::Contrast(place)
            | Self::Switch(place)
            | Self::CauseShare(place)
            | Self::Added(place)
            | Self::AddedShare(place)
            | Self::LeastAdded(place) => (Some(place), None),
            Self::PublishedCause(claim, cause) | Self::PublishedShare(claim, cause) => {
                (Some(claim), Some(cause))
            }
            _ => (None, None),
        }
    }
}

/// What the estimate of a row is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EffectScale {
    /// One side over the other.
    #[default]
    Ratio,
    /// One side less the other, in the metric's unit.
    Difference,
    /// One side alone, in the metric's unit.
    Figure,
    /// A part of a whole: 1 is all of it.
    Share,
}

impl EffectScale {
    /// That of comparisons of a metric.
    pub fn of(metric: Metric) -> Self {
        match metric.row().scale {
            Scale::Ratio => Self::Ratio,
            Scale::Difference { .. } => Self::Difference,
        }
    }

    /// A value of the statistics as it is shown: ratios are computed as logarithms.
    pub fn shown(self, value: f64) -> f64 {
        if self == Self::Ratio { value.exp() } else { value }
    }

    /// The size of an effect as it is shown: a ratio less one, or a difference.
    pub fn excess(self, value: f64) -> f64 {
        if self == Self::Ratio { value.exp_m1() } else { value }
    }

    /// How far the ends of an interval lie from no effect: a ratio less one, or a difference.
    pub fn reach(self, (low, high): (f64, f64)) -> f64 {
        match self {
            Self::Ratio => high.max(1.0 / low) - 1.0,
            Self::Difference | Self::Figure | Self::Share => high.max(-low),
        }
    }
}

/// How the interval of a row was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IntervalMethod {
    /// There is none.
    #[default]
    None,
    /// Student's t of independent units; Welch's where sides are of different cells.
    StudentT,
    /// The same with the long-run standard error, which was the wider.
    StudentTLongRun,
    /// Fieller's, of a quotient of two means.
    Fieller,
}

/// A row: one question, one figure, what it rests on, what follows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Effect {
    /// What it answers.
    pub question: Question,
    /// Cell; empty where the question is of several.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cell_id: String,
    /// The arm.
    pub arm: String,
    /// What it is compared with; empty where the arm's figure is meant alone, or one of several.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub baseline: String,
    /// What the figure is of.
    pub metric: Metric,
    /// What `estimate` is.
    pub scale: EffectScale,
    /// The figure, on `scale`: for a ratio exp(mean of the units' log-ratios). Absent where nothing was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<f64>,
    /// Its interval: lower, upper. Absent where there are too few units for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// Confidence of the interval; 0 without one.
    pub level: f64,
    /// How the interval was made.
    pub method: IntervalMethod,
    /// Units it rests on: rounds in which the arms took turns, or blocks of whole trials; for two cells, those of the
    /// cell with fewer.
    pub units: u32,
    /// Whether both sides are of the same units, and were compared within them.
    pub is_paired: bool,
    /// Degrees of freedom of the standard error; absent without an interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degrees_of_freedom: Option<u32>,
    /// Two-sided p of no effect, by the test that the interval belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// The same after Holm, over all claims of the study; present only for claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value_holm: Option<f64>,
    /// Smallest effect that as many units find with 80 % power: a ratio less one, or a difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detectable: Option<f64>,
    /// How much it may claim: what its cell may.
    pub role: CellRole,
    /// The verdict on the arm; *no claim* of every row that is no comparison.
    pub verdict: Verdict,
    /// The outcome of a goal or limit; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// What is known of a contrast, in which neither side is the better one; absent for other questions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// Figures of the arm and of the baseline: means on the metric's scale over the same units, so that the first is
    /// the second with the effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figures: Option<(f64, f64)>,
    /// The units' effects in time order, on the scale of the statistics: logarithms of ratios, or differences. Only
    /// comparisons and `itself` have them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<f64>,
    /// Units kept out, counted by reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<Finding>,
    /// Why there is no verdict, or why the figure is not enough for one; empty where it decides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Finding>,
    /// What else a reader must know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Finding>,
}

impl Effect {
    /// Whether it compares an arm with its baseline in a cell.
    pub fn is_comparison(&self) -> bool {
        self.question == Question::Comparison
    }

    /// The units' effects as they are shown: ratios, or differences.
    pub fn shown_values(&self) -> Vec<f64> {
        self.values.iter().map(|value| self.scale.shown(*value)).collect()
    }

    /// How far the ends of its interval lie from no effect: a ratio less one, or a difference.
    pub fn reach(&self) -> Option<f64> {
        self.interval.map(|interval| self.scale.reach(interval))
    }

    /// Whether its whole interval lies above zero: of a share, that there is one.
    pub fn is_above_zero(&self) -> bool {
        self.interval.is_some_and(|(low, _)| low > 0.0)
    }

    /// Whether its whole interval lies below zero.
    pub fn is_below_zero(&self) -> bool {
        self.interval.is_some_and(|(_, high)| high < 0.0)
    }

    /// Whether it is about the same arms, cell and metric as another row.
    pub fn is_about(&self, other: &Self) -> bool {
        self.metric == other.metric
            && self.cell_id == other.cell_id
            && self.arm == other.arm
            && self.baseline == other.baseline
    }
}

/// The rows, comparisons first, and among these the primary cell's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Effects {
    /// In the order of the questions.
    pub rows: Vec<Effect>,
}

impl Effects {
    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Every comparison of every cell, primary cell first.
    pub fn comparisons(&self) -> impl Iterator<Item = &Effect> {
        self.rows.iter().filter(|row| row.is_comparison())
    }

    /// The same, to be changed.
    pub fn comparisons_mut(&mut self) -> impl Iterator<Item = &mut Effect> {
        self.rows.iter_mut().filter(|row| row.is_comparison())
    }

    /// Two arms of a cell by a metric.
    pub fn comparison(
        &self,
        cell_id: &str,
        (arm, baseline): (&str, &str),
        metric: Metric,
    ) -> Option<&Effect> {
        self.comparisons().find(|row| {
            (row.cell_id.as_str(), row.arm.as_str(), row.baseline.as_str(), row.metric)
                == (cell_id, arm, baseline, metric)
        })
    }

    /// The row that answers another question about the same arms, cell and metric.
    pub fn beside(&self, of: &Effect, question: Question) -> Option<&Effect> {
        self.rows.iter().find(|row| row.question == question && row.is_about(of))
    }

    /// The first arm against itself in the same cell, by the same metric.
    pub fn itself(&self, of: &Effect) -> Option<&Effect> {
        let mut own = self.of(Question::Itself);
        own.find(|row| row.cell_id == of.cell_id && row.metric == of.metric)
    }

    /// All rows of a question, in order.
    pub fn of(&self, question: Question) -> impl Iterator<Item = &Effect> {
        self.rows.iter().filter(move |row| row.question == question)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_writes_what_it_has_and_reads_back() {
        let row = Effect {
            question: Question::PublishedShare(2, 0),
            arm: "uring".to_owned(),
            estimate: Some(0.5),
            ..Effect::default()
        };
        let text = serde_json::to_string(&row).expect("it serialises");
        assert!(
            text.contains(r#""question":{"published-share":[2,0]}"#) && !text.contains("interval\""),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Effect>(&text).expect("it is one"), row);
        let plain = serde_json::to_value(Question::Itself).expect("it serialises");
        assert_eq!((plain.as_str(), Question::Itself.kind()), (Some("itself"), "itself"));
        assert_eq!(row.question.places(), (Some(2), Some(0)));
    }

    #[test]
    fn an_interval_reaches_as_far_as_its_outer_end() {
        assert!((EffectScale::Ratio.reach((0.8, 1.1)) - 0.25).abs() < 1e-12);
        assert_eq!(EffectScale::Difference.reach((-0.5, 0.25)), 0.5);
    }

    #[test]
    fn a_row_is_found_beside_the_one_it_is_about() {
        let row = |question, arm: &str| Effect { question, arm: arm.to_owned(), ..Effect::default() };
        let rows = vec![
            row(Question::Comparison, "poll"),
            row(Question::Comparison, "uring"),
            row(Question::FarState, "uring"),
            row(Question::Itself, "epoll"),
        ];
        let table = Effects { rows };
        let of = |arm: &str| table.comparison("", (arm, ""), Metric::default()).expect("it is compared");
        assert_eq!(table.beside(of("uring"), Question::FarState), Some(&table.rows[2]));
        assert_eq!(table.beside(of("poll"), Question::FarState), None);
        assert_eq!(table.itself(of("poll")), Some(&table.rows[3]));
    }
}
