//! Compares the model with the published figures for the device: operations a second and CPU of 1 to 20 threads.
//!
//! The published figures are for 4 KiB random reads of threads with one operation in flight each, on a 983 ZET with a
//! Xeon Gold 6230: artifact of "DPAS: A Prompt, Accurate and Safe I/O Completion Method for SSDs", FAST '26, sheet
//! "4KRR ZSSD", five runs. Only the column of polling was used to fit the device. Operations a second and CPU of the
//! other methods at one thread fixed the host's constants. All the rest is prediction. Nothing of DPAS was used,
//! neither its operations a second nor its CPU: its whole column is held out.

use serde::Serialize;

use super::{
    coupled::simulate,
    method::Method,
    scenario::{DeviceModel, HostModel, Phase, Scenario},
};

/// One published row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Published {
    /// Threads.
    pub threads: u32,
    /// All threads together, thousands a second: polling, half the mean, EHP, PAS, interrupt, DPAS.
    pub kiops: [f64; 6],
    /// CPU of a thread in percent: half the mean, EHP, PAS, interrupt, DPAS. Polling uses a full CPU.
    pub cpu_percent: [f64; 5],
}

/// Predictors behind the columns of [`Published::kiops`].
pub const COLUMNS: [&str; 6] = ["poll", "linux-mean", "ehp", "pas", "interrupt", HELD_OUT];
/// The column that no constant of the model was fitted to.
pub const HELD_OUT: &str = "dpas";

/// Two periods of the slowest learner, `linux-mean`.
const LEARNING_NS: u64 = 200_000_000;

/// The published table.
pub const PUBLISHED: [Published; 6] = [
    row(1, [65.36, 63.38, 63.68, 63.52, 57.54, 65.16], [55.5, 40.8, 28.8, 20.5, 93.3]),
    row(2, [130.0, 126.8, 126.6, 126.4, 114.0, 129.2], [55.2, 41.6, 29.6, 20.3, 93.4]),
    row(4, [240.6, 235.6, 235.4, 235.0, 215.6, 240.0], [54.7, 45.3, 33.1, 19.2, 93.8]),
    row(8, [409.0, 403.0, 402.8, 400.0, 378.0, 407.4], [54.1, 52.6, 38.4, 17.1, 94.3]),
    row(16, [590.4, 586.4, 586.6, 580.0, 569.8, 589.4], [53.1, 64.4, 43.2, 12.9, 94.7]),
    row(20, [639.8, 634.4, 637.4, 629.6, 623.8, 639.0], [52.6, 68.5, 44.3, 11.3, 94.6]),
];

const fn row(threads: u32, kiops: [f64; 6], cpu_percent: [f64; 5]) -> Published {
    Published { threads, kiops, cpu_percent }
}

/// One method at one number of threads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CalibrationRow {
    /// One of [`COLUMNS`].
    pub method: String,
    /// Threads.
    pub threads: u32,
    /// All threads together, thousands a second, as published.
    pub kiops_published: f64,
    /// The same in the model: the number of threads times the rate of the foreground thread; for polling, where all
    /// threads are counted, their sum.
    pub kiops_model: f64,
    /// CPU of a thread, from 0 to 1, as published.
    pub cpu_published: f64,
    /// The same in the model.
    pub cpu_model: f64,
}

impl CalibrationRow {
    /// Relative difference of the model's operations a second: 0.01 is 1 % more than published.
    pub fn difference(&self) -> f64 {
        self.kiops_model / self.kiops_published - 1.0
    }
}

/// Simulates every published point. One thread waits as its column says; the others, one core each with one operation
/// in flight, poll. So the load beside it is a little heavier than the published one: by at most 3 %, and by up to
/// 12 % where the other threads should have waited for interrupts.
pub fn calibration(device: &DeviceModel, host: &HostModel, length_ns: u64, seed: u64) -> Vec<CalibrationRow> {
    let points = COLUMNS
        .iter()
        .enumerate()
        .flat_map(|(column, name)| PUBLISHED.iter().map(move |row| (column, *name, row)));
    points
        .map(|(column, name, published)| {
            let threads = published.threads;
            let method = Method::parse(name, false).unwrap_or_else(|message| panic!("{message}"));
            let report = simulate(&scenario(device, host, threads, length_ns), &method, seed);
            let phase = &report.phases[1];
            let foreground = phase.iops();
            let kiops_model = if column == 0 {
                (foreground + phase.background_operations as f64 * 1e9 / length_ns as f64) / 1e3
            } else {
                foreground * f64::from(threads) / 1e3
            };
            CalibrationRow {
                method: name.to_owned(),
                threads,
                kiops_published: published.kiops[column],
                kiops_model,
                cpu_published: if column == 0 { 1.0 } else { published.cpu_percent[column - 1] / 100.0 },
                cpu_model: phase.cpu_share(),
            }
        })
        .collect()
}

/// This many polling threads, one of them the foreground: first long enough for every method to learn, then measured.
fn scenario(device: &DeviceModel, host: &HostModel, threads: u32, length_ns: u64) -> Scenario {
    let phase = |name: &str, length_ns| Phase {
        name: name.to_owned(),
        length_ns,
        background_cores: threads - 1,
        background_depth: 1,
    };
    Scenario {
        device: *device,
        // A polling thread is a core with one operation: each costs it one issue.
        host: HostModel { background_ns: host.submit_ns, ..*host },
        phases: vec![phase("learning", LEARNING_NS), phase("measured", length_ns)],
        interval_ns: 1_000_000_000,
        start_transient: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 1;

    fn rows() -> Vec<CalibrationRow> {
        calibration(&DeviceModel::zet_983(), &HostModel::xeon_6230(), 300_000_000, SEED)
    }

    #[test]
    fn polling_threads_get_the_published_operations_a_second_within_three_percent() {
        for row in rows().iter().filter(|row| row.method == "poll") {
            assert!(row.difference().abs() < 0.03, "seed {SEED}: {row:?}");
        }
    }

    #[test]
    fn one_thread_has_the_published_speed_and_cpu_with_every_method() {
        for row in rows().iter().filter(|row| row.threads == 1) {
            assert!(row.difference().abs() < 0.01, "seed {SEED}: {row:?}");
            assert!((row.cpu_model - row.cpu_published).abs() < 0.03, "seed {SEED}: {row:?}");
        }
    }
    #[test]
    fn the_held_out_column_comes_out_at_every_number_of_threads() {
        let rows = rows();
        let held_out: Vec<&CalibrationRow> = rows.iter().filter(|row| row.method == HELD_OUT).collect();
        assert_eq!(held_out.len(), PUBLISHED.len());
        for row in held_out {
            assert!(row.difference().abs() < 0.03, "seed {SEED}: {row:?}");
            assert!((row.cpu_model - row.cpu_published).abs() < 0.03, "seed {SEED}: {row:?}");
        }
    }
}
