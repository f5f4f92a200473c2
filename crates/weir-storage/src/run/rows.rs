//! Combined rows of several jobs: one in place of theirs if they request it (`group_reporting`), or else a total in
//! addition to them. Pure.
//!
//! As in fio a job has its own row unless it requests to join the previous one, and jobs share a row only if they run
//! at the same time. Distributions are added up, not averaged.

use weir_record::storage::{StorageCpu, StorageJob, StorageJobReport, StorageRow};

use super::{cpu::MachineBusy, gather::of_recorder, recorder::Recorder};

/// The combined rows of jobs that run at the same time.
pub(super) struct Rows {
    rows: Vec<Row>,
}

struct Row {
    first: usize,
    count: usize,
    replaces_jobs: bool,
    /// The sum so far, with the CPU.
    sum: Option<(Recorder, StorageCpu)>,
}

impl Rows {
    /// Plans the sums for these jobs; a single job needs no combined row.
    pub(super) fn new(jobs: &[StorageJob]) -> Self {
        let mut rows: Vec<Row> = Vec::new();
        for (first, job) in jobs.iter().enumerate() {
            match rows.last_mut().filter(|_| job.group_reporting && !job.new_group) {
                Some(row) => row.count += 1,
                None => rows.push(Row { first, count: 1, replaces_jobs: true, sum: None }),
            }
        }
        if rows.len() > 1 {
            rows.push(Row { first: 0, count: jobs.len(), replaces_jobs: false, sum: None });
        }
        rows.retain(|row| row.count > 1);
        Self { rows }
    }

    /// Adds the notes of a job by its index.
    pub(super) fn add(&mut self, job: usize, recorder: &Recorder, cpu: &StorageCpu) {
        for row in &mut self.rows {
            if (row.first..row.first + row.count).contains(&job) {
                row.add(recorder, cpu);
            }
        }
    }

    /// The rows, after all jobs were added.
    pub(super) fn finish(
        self,
        jobs: &[StorageJob],
        reports: &[StorageJobReport],
        machine: &MachineBusy,
    ) -> Vec<StorageRow> {
        let finish = |row: Row| {
            let range = row.first..row.first + row.count;
            let (recorder, cpu) = row.sum?;
            let report = total(&jobs[range.clone()], &reports[range], recorder, cpu, machine);
            Some(StorageRow { first: row.first, count: row.count, replaces_jobs: row.replaces_jobs, report })
        };
        self.rows.into_iter().filter_map(finish).collect()
    }
}

impl Row {
    fn add(&mut self, recorder: &Recorder, cpu: &StorageCpu) {
        match &mut self.sum {
            // Notes from before the window of one job are not added to the window of another.
            Some((sum, _)) if sum.has_window() && recorder.has_ramp_alone() => {}
            Some((sum, used)) if !(sum.has_ramp_alone() && recorder.has_window()) => {
                sum.merge(recorder);
                add_cpu(used, cpu);
            }
            sum => *sum = Some((recorder.copied(), *cpu)),
        }
    }
}

fn add_cpu(into: &mut StorageCpu, from: &StorageCpu) {
    into.user_ns += from.user_ns;
    into.system_ns += from.system_ns;
    into.kernel_threads_ns += from.kernel_threads_ns;
    into.context_switches_voluntary += from.context_switches_voluntary;
    into.context_switches_involuntary += from.context_switches_involuntary;
    into.page_faults_major += from.page_faults_major;
    into.page_faults_minor += from.page_faults_minor;
}

/// The report of several jobs: like one job with the threads of all.
fn total(
    jobs: &[StorageJob],
    reports: &[StorageJobReport],
    recorder: Recorder,
    cpu: StorageCpu,
    machine: &MachineBusy,
) -> StorageJobReport {
    let mut job = jobs.first().cloned().unwrap_or_default();
    job.threads = jobs.iter().map(|job| job.threads).sum();
    if jobs.iter().any(|other| other.file != job.file) {
        job.file.clear();
    }
    let ended_in_ramp = recorder.has_ramp_alone();
    let mut report = of_recorder(&job, recorder, machine, cpu);
    if !jobs.iter().all(|job| job.engine.is_asynchronous()) {
        report.waiting = None;
    }
    if jobs.iter().any(|other| other.interval_ns != job.interval_ns) {
        // Intervals of different lengths do not add up.
        report.intervals.clear();
        for direction in [&mut report.reads, &mut report.writes] {
            (direction.iops_spread, direction.bandwidth_spread) = Default::default();
        }
    }
    for part in reports {
        report.verified_blocks += part.verified_blocks;
        report.verify_failures += part.verify_failures;
        report.calibration_reads += part.calibration_reads;
        report.fill_ns = report.fill_ns.or(part.fill_ns);
        report.failed |= part.failed;
    }
    StorageJobReport { ended_in_ramp, ..report }
}

#[cfg(test)]
mod tests {
    use weir_record::storage::DeviceClock;
    use weir_sys::usage::ThreadUsage;

    use super::*;
    use crate::run::gather::empty_meter;

    #[test]
    fn intervals_of_one_length_are_added_up_and_others_are_left_out() {
        let total = |lengths_ns: [u64; 2]| {
            let jobs = lengths_ns.map(|interval_ns| StorageJob { interval_ns, ..StorageJob::default() });
            let mut rows = Rows::new(&jobs);
            for (place, job) in jobs.iter().enumerate() {
                let meter = empty_meter(job, None, DeviceClock::Observed);
                let mut recorder = Recorder::new(meter, None, true, false);
                recorder.open(0, 0, ThreadUsage::default());
                recorder.close(2_000_000_000, 0, ThreadUsage::default());
                rows.add(place, &recorder, &StorageCpu::default());
            }
            let reports = [StorageJobReport::default(), StorageJobReport::default()];
            let rows = rows.finish(&jobs, &reports, &MachineBusy::default());
            rows.iter().map(|row| (row.report.elapsed_ns, row.report.intervals.len())).collect::<Vec<_>>()
        };
        assert_eq!(total([1_000_000_000; 2]), [(2_000_000_000, 2)]);
        assert_eq!(total([1_000_000_000, 500_000_000]), [(2_000_000_000, 0)]);
    }

    fn planned(asks: &[bool]) -> Vec<(usize, usize, bool)> {
        let job = |&group_reporting| StorageJob { group_reporting, ..StorageJob::default() };
        let jobs: Vec<StorageJob> = asks.iter().map(job).collect();
        Rows::new(&jobs).rows.iter().map(|row| (row.first, row.count, row.replaces_jobs)).collect()
    }

    #[test]
    fn jobs_that_ask_for_it_share_a_row_and_others_have_a_total_beside_them() {
        assert_eq!(planned(&[false]), []);
        assert_eq!(planned(&[true]), []);
        assert_eq!(planned(&[true; 4]), [(0, 4, true)]);
        assert_eq!(planned(&[false; 3]), [(0, 3, false)]);
        // As in fio, a job that requests it joins the previous job.
        assert_eq!(planned(&[false, true, true, false]), [(0, 3, true), (0, 4, false)]);
        let asks = StorageJob { group_reporting: true, ..StorageJob::default() };
        let new = StorageJob { new_group: true, ..asks.clone() };
        let rows = Rows::new(&[asks.clone(), asks.clone(), new, asks]).rows;
        let places: Vec<(usize, usize)> = rows.iter().map(|row| (row.first, row.count)).collect();
        assert_eq!(places, [(0, 2), (2, 2), (0, 4)]);
    }
}
