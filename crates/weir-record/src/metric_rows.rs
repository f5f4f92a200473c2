//! What is compared, one row each: how a trial and a slice have the figure, on which scale it is compared, in
//! which cells, and what it is called. Judge, tables, charts and exports go through [`METRICS`]; a further
//! metric is a variant of [`Metric`] and a row in `table.rs`.

mod commands;
mod table;

use crate::{
    metric::{Better, Family, Metric, MetricUnit, Scale},
    spec::CellSpec,
    trial::{SliceRecord, TrialRecord},
};
pub use commands::COMMAND_METRICS;
pub use table::METRICS;

impl Metric {
    /// Its row.
    pub fn row(self) -> &'static MetricRow {
        let place = self as usize;
        METRICS.get(place).unwrap_or_else(|| &COMMAND_METRICS[place - METRICS.len()])
    }

    /// Whether a larger figure is an improvement.
    pub fn larger_is_better(self) -> bool {
        self.row().better == Better::Larger
    }
}

/// What a metric is in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It is compared, and a claim in cells that claim something.
    Claim,
    /// It is compared without a claim.
    Condition,
    /// Its figures are shown and not compared.
    Figure,
    /// It says nothing there.
    None,
}

/// A text in English, Korean and Chinese; `{per}` and `{one}` stand for one of what is counted.
pub type MetricText = [&'static str; 3];

/// What a metric is called.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// As a title.
    pub name: MetricText,
    /// Inside a sentence. The Korean nouns all end in a consonant, so that one particle fits them.
    pub prose: MetricText,
    /// In narrow tables.
    pub short: MetricText,
}

/// Everything about a metric.
#[derive(Debug)]
pub struct MetricRow {
    /// The metric.
    pub metric: Metric,
    /// Stable name, as in records and exports.
    pub key: &'static str,
    /// The unit of its figures.
    pub unit: MetricUnit,
    /// How it is compared.
    pub scale: Scale,
    /// Which way is an improvement.
    pub better: Better,
    /// What it is a kind of.
    pub family: Family,
    /// What it is called.
    pub words: Words,
    /// A trial's figure; absent when it was not observed.
    pub read: fn(&TrialRecord) -> Option<f64>,
    /// A slice's figure, given the arm's round; absent where only the whole round has it.
    pub read_slice: Option<fn(&SliceRecord, &TrialRecord) -> Option<f64>>,
    /// What it is in a cell.
    pub part: fn(&CellSpec) -> Part,
}

/// The rows that are compared in a cell.
pub fn compared(cell: &CellSpec) -> impl Iterator<Item = &'static MetricRow> {
    METRICS.iter().filter(move |row| matches!((row.part)(cell), Part::Claim | Part::Condition))
}

/// The rows that have figures in a cell.
pub fn shown(cell: &CellSpec) -> impl Iterator<Item = &'static MetricRow> {
    METRICS.iter().filter(move |row| (row.part)(cell) != Part::None)
}

impl MetricRow {
    /// A trial's figure, where it can be compared on the metric's scale.
    pub fn of_trial(&self, trial: &TrialRecord) -> Option<f64> {
        (self.read)(trial).filter(|figure| self.has(*figure))
    }

    /// Whether the scale has such a figure.
    pub fn has(&self, figure: f64) -> bool {
        match self.scale {
            Scale::Ratio => figure.is_finite() && figure > 0.0,
            Scale::Difference { .. } => figure.is_finite(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{load::LoadReport, window::ObservedWindow};

    #[test]
    fn rows_stand_in_the_order_of_the_enum_and_have_the_names_of_the_records() {
        for (index, row) in METRICS.iter().chain(COMMAND_METRICS).enumerate() {
            assert_eq!(row.metric as usize, index, "{}", row.key);
            let name = serde_json::to_value(row.metric).expect("it is plain data");
            assert_eq!(name, row.key);
            assert!(std::ptr::eq(row.metric.row(), row));
        }
    }

    #[test]
    fn zero_is_a_figure_on_the_scale_of_differences_alone() {
        let load =
            LoadReport { messages: 10, observed: Some(ObservedWindow::default()), ..LoadReport::default() };
        let trial = TrialRecord { load: Some(load), ..TrialRecord::default() };
        assert_eq!(Metric::SwitchesPerMessage.row().of_trial(&trial), Some(0.0));
        assert_eq!(Metric::ServerCpuPerMessage.row().of_trial(&trial), None);
        assert_eq!(Metric::SwitchesPerMessage.row().of_trial(&TrialRecord::default()), None);
    }

    #[test]
    fn what_a_server_uses_while_it_waits_counts_as_if_it_waited_as_long_as_it_works() {
        let slice = SliceRecord {
            length_ns: 20_000_000,
            messages: 1_000,
            server_cpu_ns: 10_000_000,
            waiting_cpu_ns: 4_000_000,
            waiting_ns: 40_000_000,
            ..SliceRecord::default()
        };
        let row = Metric::ServerCpuWithWaiting.row();
        let of_slice = row.read_slice.expect("slices have it");
        // A tenth of a CPU over 20 ms are 2 ms. A second arm that waits longer changes nothing.
        let let_wait = TrialRecord { slices: vec![slice; 2], ..TrialRecord::default() };
        assert_eq!(of_slice(&slice, &let_wait), Some(12.0));
        assert_eq!((row.read)(&let_wait), Some(12.0));
        let stopped = SliceRecord { stopped: true, waiting_cpu_ns: 0, ..slice };
        let later_stopped = TrialRecord { slices: vec![slice, stopped], ..TrialRecord::default() };
        assert_eq!((row.read)(&later_stopped), Some(12.0), "it would go on if it were let");
        assert_eq!((row.read)(&TrialRecord::default()), None);
    }

    #[test]
    fn connections_are_spread_over_several_workers_or_not_at_all() {
        let of = |connections_by_worker: &[u64]| {
            let seen = ObservedWindow {
                connections_by_worker: connections_by_worker.to_vec(),
                ..ObservedWindow::default()
            };
            let load = LoadReport { observed: Some(seen), ..LoadReport::default() };
            let trial = TrialRecord { load: Some(load), ..TrialRecord::default() };
            Metric::ConnectionsMaxOverMean.row().of_trial(&trial)
        };
        assert_eq!([of(&[25, 25, 25, 25]), of(&[40, 30, 20, 10])], [Some(1.0), Some(1.6)]);
        assert_eq!([of(&[100]), of(&[0, 0]), of(&[])], [None, None, None]);
    }

    #[test]
    fn every_metric_has_its_words_in_three_languages_and_one_korean_particle_fits_them() {
        for row in METRICS.iter().chain(COMMAND_METRICS) {
            let Words { name, prose, short } = row.words;
            for [english, korean, chinese] in [name, prose, short] {
                assert!(english.is_ascii(), "{english}");
                assert!(
                    ["CPU", "CPU/{one}"].contains(&korean)
                        || korean.chars().any(|letter| ('가'..='힣').contains(&letter))
                );
                let is_han = |letter: char| ('一'..='鿿').contains(&letter);
                assert!(["CPU", "CPU/{one}"].contains(&chinese) || chinese.chars().any(is_han), "{chinese}");
            }
            let last = prose[1].chars().last().expect("it is not empty");
            let has_final_consonant = !(last as u32 - '가' as u32).is_multiple_of(28);
            assert!(has_final_consonant, "{}", prose[1]);
        }
    }
}
