//! CPU time of one job: of its own threads, and of the threads that work for it.
//!
//! Kernel threads that serve a ring have the id of the creating thread in their name (`iou-sqp-17`, `iou-wrk-17`),
//! which identifies their job. In a container that id belongs to the outer namespace and matches no thread here: then
//! they are divided equally between the jobs with rings. Threads of a pool or of the C library's POSIX AIO have no
//! such mark: all threads of this process that are neither a job's, nor the supervisor's, nor the trace reader, count
//! as theirs, divided equally when several such jobs run at the same time. The CPU time of such threads counts as
//! system time: they do little but wait in the kernel.

use std::collections::HashSet;

use weir_evidence::process::{ProcessTree, ThreadSample};
use weir_record::storage::{StorageCpu, StorageEngine};
use weir_sys::usage::ThreadUsage;

use super::tracing;

/// Helper threads of an engine, besides the job's own threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Helpers {
    None,
    /// Kernel threads, identified by name.
    Kernel,
    /// Threads of this process.
    Own,
}

impl Helpers {
    pub(super) fn of(engine: StorageEngine) -> Self {
        match engine {
            StorageEngine::Pread | StorageEngine::Pwritev | StorageEngine::Libaio => Self::None,
            StorageEngine::IoUring => Self::Kernel,
            StorageEngine::Threads | StorageEngine::Posixaio => Self::Own,
        }
    }
}

/// All threads of this process at one moment.
pub(super) fn threads_now() -> Vec<ThreadSample> {
    let own = std::process::id();
    let tree = ProcessTree::snapshot(own).unwrap_or_default();
    tree.processes
        .into_iter()
        .find(|process| process.pid == own)
        .map(|process| process.threads)
        .unwrap_or_default()
}

/// Threads by owner.
#[derive(Clone, Debug, Default)]
pub(super) struct Owners {
    /// Threads of the job.
    pub(super) job: HashSet<u32>,
    /// Threads of all jobs, and supervising threads.
    pub(super) all: HashSet<u32>,
    /// Jobs with helpers of the same kind, including this one.
    pub(super) sharers: u64,
}

/// Adds the CPU time of helpers between two readings.
pub(super) fn add_helpers(
    cpu: &mut StorageCpu,
    helpers: Helpers,
    crew: &Owners,
    before: &[ThreadSample],
    after: &[ThreadSample],
) {
    for thread in after {
        let start = before.iter().find(|start| start.tid == thread.tid && start.cpu_ns <= thread.cpu_ns);
        let since = |now: u64, then: fn(&ThreadSample) -> u64| now.saturating_sub(start.map_or(0, then));
        let used_ns = since(thread.cpu_ns, |start| start.cpu_ns);
        let voluntary = since(thread.context_switches_voluntary, |start| start.context_switches_voluntary);
        let involuntary =
            since(thread.context_switches_involuntary, |start| start.context_switches_involuntary);
        let sharers = crew.sharers.max(1);
        if thread.is_uring_kernel_thread() {
            let maker = thread.name.rsplit('-').next().and_then(|number| number.parse().ok());
            let is_here =
                |maker: u32| crew.all.contains(&maker) || after.iter().any(|thread| thread.tid == maker);
            if maker.is_some_and(|maker| crew.job.contains(&maker)) {
                cpu.kernel_threads_ns += used_ns;
            } else if helpers == Helpers::Kernel && !maker.is_some_and(is_here) {
                cpu.kernel_threads_ns += used_ns / sharers;
            }
        } else if helpers == Helpers::Own
            && !crew.all.contains(&thread.tid)
            && thread.name != tracing::THREAD_NAME
        {
            cpu.system_ns += used_ns / sharers;
            cpu.context_switches_voluntary += voluntary / sharers;
            cpu.context_switches_involuntary += involuntary / sharers;
        }
    }
}

/// Adds the CPU time of one of the job's own threads.
pub(super) fn add_thread(cpu: &mut StorageCpu, used: &ThreadUsage) {
    cpu.user_ns += used.user_ns;
    cpu.system_ns += used.system_ns;
    cpu.context_switches_voluntary += used.context_switches_voluntary;
    cpu.context_switches_involuntary += used.context_switches_involuntary;
    cpu.page_faults_major += used.page_faults_major;
    cpu.page_faults_minor += used.page_faults_minor;
}

/// Busy time of the whole machine over a run, from readings at irregular times.
#[derive(Clone, Debug, Default)]
pub(super) struct MachineBusy {
    /// Time, and busy time since the first reading; both ascend.
    readings: Vec<(u64, u64)>,
}

/// Most readings kept: two a second for a day. A longer run keeps fewer for each second.
const READINGS_MAX: usize = 172_800;

impl MachineBusy {
    pub(super) fn add(&mut self, now_ns: u64, busy_ns: u64) {
        if self.readings.len() >= READINGS_MAX {
            let mut is_kept = false;
            self.readings.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
        self.readings.push((now_ns, busy_ns));
    }

    /// Busy time between two times, interpolated between readings; 0 outside of them.
    pub(super) fn between(&self, from_ns: u64, until_ns: u64) -> u64 {
        self.at(until_ns).saturating_sub(self.at(from_ns))
    }

    fn at(&self, moment_ns: u64) -> u64 {
        let after = self.readings.partition_point(|(now_ns, _)| *now_ns <= moment_ns);
        match (after.checked_sub(1).and_then(|index| self.readings.get(index)), self.readings.get(after)) {
            (Some((before_ns, busy_ns)), Some((after_ns, busy_after_ns))) => {
                let share = (moment_ns - before_ns) as f64 / (after_ns - before_ns) as f64;
                busy_ns + (busy_after_ns.saturating_sub(*busy_ns) as f64 * share) as u64
            }
            (Some((_, busy_ns)), None) | (None, Some((_, busy_ns))) => *busy_ns,
            (None, None) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(tid: u32, name: &str, cpu_ns: u64) -> ThreadSample {
        ThreadSample {
            tid,
            name: name.to_owned(),
            cpu_ns,
            run_delay_ns: 0,
            context_switches_voluntary: cpu_ns / 10,
            context_switches_involuntary: cpu_ns / 100,
        }
    }

    fn crew(job: &[u32], others: &[u32], sharers: u64) -> Owners {
        Owners {
            job: job.iter().copied().collect(),
            all: job.iter().chain(others).copied().collect(),
            sharers,
        }
    }

    #[test]
    fn threads_of_the_kernel_belong_to_the_job_that_made_the_ring() {
        let before = [thread(10, "weir", 500), thread(90, "iou-sqp-10", 1_000)];
        let after =
            [thread(10, "weir", 900), thread(90, "iou-sqp-10", 4_000), thread(91, "iou-wrk-11", 7_000)];
        let mut cpu = StorageCpu::default();
        add_helpers(&mut cpu, Helpers::Kernel, &crew(&[10], &[11], 0), &before, &after);
        assert_eq!(cpu, StorageCpu { kernel_threads_ns: 3_000, ..StorageCpu::default() });
        add_helpers(&mut cpu, Helpers::Kernel, &crew(&[11], &[10], 0), &before, &after);
        assert_eq!(cpu.kernel_threads_ns, 10_000);
    }

    #[test]
    fn threads_of_the_kernel_that_carry_a_number_of_outside_are_shared() {
        let before = [thread(10, "weir", 500), thread(90, "iou-sqp-7010", 1_000)];
        let after = [
            thread(10, "weir", 900),
            thread(12, "another", 5),
            thread(90, "iou-sqp-7010", 4_000),
            thread(91, "iou-wrk-12", 7_000),
        ];
        let mut cpu = StorageCpu::default();
        add_helpers(&mut cpu, Helpers::Kernel, &crew(&[10], &[11], 2), &before, &after);
        assert_eq!(cpu, StorageCpu { kernel_threads_ns: 1_500, ..StorageCpu::default() });
        let mut pool = StorageCpu::default();
        add_helpers(&mut pool, Helpers::Own, &crew(&[10], &[11, 12], 2), &before, &after);
        assert_eq!(pool, StorageCpu::default());
    }

    #[test]
    fn threads_nobody_knows_are_helpers_in_equal_parts() {
        let before = [thread(10, "weir", 500), thread(80, "helper", 1_000)];
        let after = [thread(10, "weir", 900), thread(80, "helper", 3_000), thread(81, "helper", 400)];
        let mut cpu = StorageCpu::default();
        add_helpers(&mut cpu, Helpers::Own, &crew(&[10], &[1], 2), &before, &after);
        assert_eq!((cpu.system_ns, cpu.context_switches_voluntary), (1_200, 120));
        let mut other = StorageCpu::default();
        add_helpers(&mut other, Helpers::None, &crew(&[10], &[1], 2), &before, &after);
        assert_eq!(other, StorageCpu::default());
    }

    #[test]
    fn the_thread_that_reads_the_trace_works_for_no_job() {
        let before = [thread(80, "weir-job-0", 1_000), thread(81, "weir-trace", 1_000)];
        let after = [thread(80, "weir-job-0", 3_000), thread(81, "weir-trace", 900_000)];
        let mut cpu = StorageCpu::default();
        add_helpers(&mut cpu, Helpers::Own, &crew(&[10], &[], 1), &before, &after);
        assert_eq!((cpu.system_ns, cpu.context_switches_voluntary), (2_000, 200));
    }

    #[test]
    fn a_thread_number_used_again_counts_whole() {
        let mut cpu = StorageCpu::default();
        let (before, after) = ([thread(80, "old", 9_000)], [thread(80, "new", 300)]);
        add_helpers(&mut cpu, Helpers::Own, &crew(&[10], &[], 1), &before, &after);
        assert_eq!(cpu.system_ns, 300);
    }

    #[test]
    fn this_thread_is_among_those_of_its_process() {
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert!(threads_now().iter().any(|thread| thread.tid == own));
    }

    #[test]
    fn busy_time_is_even_between_readings_and_nothing_outside() {
        let mut busy = MachineBusy::default();
        assert_eq!(busy.between(0, 100), 0);
        busy.add(100, 0);
        busy.add(200, 50);
        busy.add(400, 450);
        assert_eq!(busy.between(100, 400), 450);
        assert_eq!(busy.between(150, 300), 225);
        assert_eq!(busy.between(0, 100), 0);
        assert_eq!(busy.between(350, 9_000), 100);
    }

    #[test]
    fn a_run_of_more_readings_than_the_maximum_is_known_to_its_end() {
        let mut busy = MachineBusy::default();
        let last = 3 * READINGS_MAX as u64;
        (0..=last).for_each(|number| busy.add(number * 10, number * 4));
        assert!(busy.readings.len() <= READINGS_MAX);
        assert_eq!(busy.between(0, last * 10), last * 4);
        assert_eq!(busy.between(last * 5, last * 10), last * 2);
    }
}
