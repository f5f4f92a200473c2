//! The observer that uses our own kernel programs, and the rows that it makes of their tables.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    io,
};

use weir_record::{
    observation::{ProbeCost, Rung, TIMER, Trace},
    trial::Reading,
};

use super::{Observer, THREAD_NAMES_MAX, reading, rows_by_name};
use crate::{
    ladder::{
        Group, cost, rung,
        tables::Side,
        trace::trace,
        tracer::{KernelCounts, Tracer},
    },
    process::{ProcessTree, family_of},
    softirq_time,
};

/// Our own programs, which stay loaded from slice to slice and are detached in between: loading them costs more CPU
/// than most of what they observe.
#[derive(Debug, Default)]
pub struct LoadedPrograms(RefCell<Option<Tracer>>);

/// L2: our own programs at the kernel's tracepoints, attached for the slice.
#[derive(Debug)]
pub struct Programs<'a> {
    pid: u32,
    groups: &'a [Group],
    loaded: &'a LoadedPrograms,
    tracing: Option<Tracing>,
}

#[derive(Debug)]
struct Tracing {
    tracer: Tracer,
    members: Vec<u32>,
    baseline: KernelCounts,
    cost: ProbeCost,
}

impl<'a> Programs<'a> {
    /// Observes a process and all its descendants, with these groups of programs.
    pub fn new(pid: u32, groups: &'a [Group], loaded: &'a LoadedPrograms) -> Self {
        Self { pid, groups, loaded, tracing: None }
    }

    /// Whether this process may load programs into the kernel.
    pub fn are_allowed() -> bool {
        rung::highest(&rung::ladder(&rung::Facts::read()), Rung::Programs) == Rung::Programs
    }
}

impl Observer for Programs<'_> {
    fn rung(&self) -> Rung {
        Rung::Programs
    }

    fn begin(&mut self) -> io::Result<()> {
        let untraced = cost::untraced();
        let mut tracer = match self.loaded.0.take() {
            Some(tracer) => tracer,
            None => Tracer::load(&Group::ALL).map_err(io::Error::other)?,
        };
        tracer.attach(self.groups).map_err(io::Error::other)?;
        let cost = cost::tried(&tracer, &untraced).map_err(io::Error::other)?.believed()?;
        let members = tracer.add_families(&[(self.pid, Side::First)]).map_err(io::Error::other)?;
        let baseline = tracer.read()?;
        self.tracing = Some(Tracing { tracer, members, baseline, cost });
        Ok(())
    }

    fn end(&mut self) -> io::Result<Vec<Reading>> {
        let Some(tracing) = self.tracing.take() else { return Ok(Vec::new()) };
        let Tracing { mut tracer, mut members, baseline, cost } = tracing;
        tracer.stop();
        let counts = tracer.read()?;
        // Including those that are gone: the tables outlive the slice, and their numbers may be reused in the next
        // one.
        members.extend(family_of(self.pid).unwrap_or_default());
        members.extend(tracer.pids()?);
        let counts = counts.since(&baseline);
        let trace = trace(&counts, baseline.at_ns, tracer.counts(Group::Scheduling), cost);
        let mut rows = trace_rows(&trace);
        rows.extend(probe_rows(&cost));
        rows.extend(in_calls_rows(&counts, &ProcessTree::snapshot(self.pid).unwrap_or_default()));
        // The cost of a group that did not run, or only partly, cannot be reported.
        let ran = self.groups.iter().filter(|group| tracer.counts(**group));
        rows.extend(ran.map(|group| reading("trace", &format!("group-{}", group.key()), 1.0)));
        let are_apart = softirq_time::is_apart();
        rows.extend(are_apart.map(|it| reading("trace", "softirqs-are-apart", f64::from(u8::from(it)))));
        members.sort_unstable();
        members.dedup();
        for member in members {
            tracer.forget(member)?;
        }
        *self.loaded.0.borrow_mut() = Some(tracer);
        Ok(rows)
    }
}

/// Times of threads by name, within their calls and outside of them.
fn in_calls_rows(counts: &KernelCounts, tree: &ProcessTree) -> Vec<Reading> {
    let threads = tree.processes.iter().flat_map(|process| &process.threads);
    let names: HashMap<u32, &str> = threads.map(|thread| (thread.tid, thread.name.as_str())).collect();
    let mut by_name: BTreeMap<&str, [u64; 13]> = BTreeMap::new();
    for thread in &counts.threads {
        let Some(name) = names.get(&thread.tid) else { continue };
        let full = by_name.len() >= THREAD_NAMES_MAX && !by_name.contains_key(name);
        let sums = by_name.entry(if full { "others" } else { name }).or_default();
        let inside = thread.in_calls;
        let values = [
            thread.calls,
            inside.on_cpu_ns,
            thread.queued_ns,
            inside.queued_ns,
            thread.softirq_ns,
            inside.softirq_ns,
            thread.probe.ns,
            inside.probe.ns,
            thread.probe.runs,
            inside.probe.runs,
            u64::from(thread.in_call.is_some()),
            thread.ran_ns,
            thread.switch_probe_ns,
        ];
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }
    const KEYS: [&str; 13] = [
        "calls",
        "in-calls-ns",
        "queued-ns",
        "in-calls-queued-ns",
        "softirq-ns",
        "in-calls-softirq-ns",
        "probe-ns",
        "in-calls-probe-ns",
        "probe-runs",
        "in-calls-probe-runs",
        "in-flight",
        "ran-ns",
        "switch-probe-ns",
    ];
    rows_by_name(&by_name, KEYS)
}

/// Cost of tracing per call, and of a clock reading: the overhead of observing.
fn probe_rows(cost: &ProbeCost) -> [Reading; 5] {
    [
        ("untraced-ns", cost.untraced_ns),
        ("traced-ns", cost.traced_ns),
        ("inside-ns", cost.inside_ns),
        ("run-ns", cost.run_ns),
        ("clock-ns", cost::of_clock_ns()),
    ]
    .map(|(key, value)| reading("probe", key, value))
}

fn trace_rows(trace: &Trace) -> Vec<Reading> {
    let mut rows = Vec::new();
    let mut add = |source: &str, keys: &[(&str, u64)]| {
        rows.extend(keys.iter().map(|(key, value)| reading(source, key, *value as f64)));
    };
    for call in &trace.calls {
        let source = format!("call {}", call.name);
        add(
            &source,
            &[
                ("count", call.count),
                ("errors", call.errors),
                ("again", call.again),
                ("returned", call.returned),
                ("on-cpu-ns", call.on_cpu_ns),
                ("softirq-ns", call.softirq_ns),
                ("probe-ns", call.probe_ns),
                ("probe-runs", call.probe_runs),
                ("blocked-ns", call.blocked_ns),
                ("queued-ns", call.queued_ns),
                ("in-flight", call.in_flight),
                ("unreturned", call.unreturned),
            ],
        );
        for (power, count) in call.buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
            add(&source, &[(format!("took-2^{power}-ns").as_str(), *count)]);
        }
    }
    for softirq in &trace.softirqs {
        let keys = [
            ("count", softirq.count),
            ("ns", softirq.ns),
            ("probe-ns", softirq.probe_ns),
            ("probe-runs", softirq.probe_runs),
            ("elsewhere-count", softirq.elsewhere_count),
            ("elsewhere-ns", softirq.elsewhere_ns),
        ];
        add(&format!("softirq {}", softirq.kind), &keys);
    }
    for event in &trace.uring {
        let keys = [("count", event.count), ("elsewhere-count", event.elsewhere_count)];
        add(&format!("io_uring {}", event.event), &keys);
    }
    for (waker, (count, blocked_ns)) in wakers(trace) {
        add(&format!("wake {waker}"), &[("count", count), ("blocked-ns", blocked_ns)]);
    }
    add(
        "trace",
        &[
            ("calls-cut", trace.calls_cut),
            ("switches-missed", trace.switches_missed),
            ("threads-lost", trace.threads_lost),
            ("wakes-lost", trace.wakes_lost),
            ("wakes-left-out", trace.wakes_left_out),
            ("queued-ns", trace.queued_ns),
            ("misses", trace.misses),
            ("is-split", u64::from(trace.is_split)),
        ],
    );
    rows
}

/// Wakes and the sleeps they ended, by waker: a thread's name, or a softirq.
fn wakers(trace: &Trace) -> BTreeMap<String, (u64, u64)> {
    let mut wakers: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for wake in &trace.wakes {
        let name = match wake.context.as_deref() {
            None => wake.waker_name.clone(),
            Some(TIMER) => TIMER.to_owned(),
            Some(kind) => format!("softirq {kind}"),
        };
        let full = wakers.len() >= THREAD_NAMES_MAX && !wakers.contains_key(&name);
        let sums = wakers.entry(if full { "others".to_owned() } else { name }).or_default();
        sums.0 += wake.count;
        sums.1 += wake.blocked_ns;
    }
    wakers
}
