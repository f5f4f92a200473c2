//! Readings at the bounds of the window besides the workers' notes: CPU of the generator's threads, the target's
//! processes, the machine's noise, and the target's engine counters.
//!
//! The order at the bounds keeps our own reads out of the measurement. Before the window opens the counters are read,
//! then the bound is published, then CPU times are read. When it closes, the bound is published, CPU times are read,
//! and the counters come last. The counters' window is therefore a little wider than the other.

use std::io;

use weir_evidence::{
    edge::{Beside, Edge},
    memory::pss_bytes,
    stats::StatsClient,
};
use weir_record::{engine::ServerStats, window::ObservedWindow};

use crate::{error::LoadError, spec::LoadSpec};

/// Reads the target at both bounds.
pub(crate) struct WindowReadings {
    pid: Option<u32>,
    beside: Vec<Beside>,
    /// Its name, for error messages.
    stats: Option<(String, StatsClient)>,
    counters_before: Option<ServerStats>,
    edge_before: Option<Edge>,
}

impl WindowReadings {
    /// Prepares the requested readings; a statistics socket that does not answer is an error now, not later.
    pub(crate) fn new(spec: &LoadSpec) -> Result<Self, LoadError> {
        let mut stats = spec.observe_stats.as_deref().map(connect).transpose()?;
        if let Some(client) = &mut stats {
            read(client)?;
        }
        if let Some(pid) = spec.observe_pid {
            read_edge(pid, &spec.observe_beside)?;
        }
        let (pid, beside) = (spec.observe_pid, spec.observe_beside.clone());
        Ok(Self { pid, beside, stats, counters_before: None, edge_before: None })
    }

    /// Reads the counters before the window opens.
    pub(crate) fn before_open(&mut self) -> Result<(), LoadError> {
        if let Some(client) = &mut self.stats {
            self.counters_before = Some(read(client)?);
        }
        Ok(())
    }

    /// Reads right after the window opened.
    pub(crate) fn opened(&mut self) -> Result<(), LoadError> {
        self.edge_before = self.pid.map(|pid| read_edge(pid, &self.beside)).transpose()?;
        Ok(())
    }

    /// Reads right after the window closed. `None` when no readings were requested, or when the target has ended
    /// meanwhile: then the report contains its failures, and figures for half a window would be wrong.
    pub(crate) fn closed(&mut self) -> Option<ObservedWindow> {
        let window = match (self.pid, &self.edge_before) {
            (Some(pid), Some(before)) => {
                let after = read_edge(pid, &self.beside).ok()?;
                let mut window = before.until(&after);
                window.pss_bytes = pss_bytes(pid).unwrap_or(0);
                window.thread_window = Some(before.threads_until(&after, window.noise.window_ns));
                Some(window)
            }
            _ => None,
        };
        let after = match (&mut self.stats, &self.counters_before) {
            (Some(client), Some(before)) => Some((read(client).ok()?, before)),
            _ => None,
        };
        if window.is_none() && after.is_none() {
            return None;
        }
        let mut window = window.unwrap_or_default();
        if let Some((after, before)) = after {
            window.connections_by_worker = after.connections_by_worker();
            window.engine = Some(after.total.since(&before.total));
            window.node = match (&after.node, &before.node) {
                (Some(after), Some(before)) => Some(after.since(before)),
                _ => None,
            };
        }
        Some(window)
    }
}

fn read_edge(pid: u32, beside: &[Beside]) -> Result<Edge, LoadError> {
    Edge::read_with(pid, beside)
        .map_err(|error| LoadError::Observe { what: format!("process {pid}"), reason: error.to_string() })
}

fn connect(name: &str) -> Result<(String, StatsClient), LoadError> {
    let client = StatsClient::connect(name).map_err(|error| unanswered(name, &error))?;
    Ok((name.to_owned(), client))
}

fn read((name, client): &mut (String, StatsClient)) -> Result<ServerStats, LoadError> {
    client.read().map_err(|error| unanswered(name, &error))
}

fn unanswered(name: &str, error: &io::Error) -> LoadError {
    LoadError::Observe { what: format!("socket {name}"), reason: error.to_string() }
}

/// CPU times of threads of this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadTimes {
    /// One entry per thread, in the requested order; 0 when it cannot be read.
    pub(crate) cpu_ns: Vec<u64>,
    /// How long each thread was ready and waited for a CPU.
    pub(crate) delay_ns: Vec<u64>,
}

impl ThreadTimes {
    /// Reads the time each thread has spent on a CPU, and waiting for one.
    pub(crate) fn read(threads: &[u32]) -> Self {
        let times = |thread: &u32| {
            let text =
                std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).unwrap_or_default();
            let mut times = text.split_ascii_whitespace().map(|time| time.parse::<u64>().unwrap_or(0));
            (times.next().unwrap_or(0), times.next().unwrap_or(0))
        };
        let (cpu_ns, delay_ns) = threads.iter().map(times).unzip();
        Self { cpu_ns, delay_ns }
    }

    /// Times since `earlier`, per thread.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let since = |after: &[u64], before: &[u64]| {
            after.iter().zip(before).map(|(after, before)| after.saturating_sub(*before)).collect()
        };
        Self {
            cpu_ns: since(&self.cpu_ns, &earlier.cpu_ns),
            delay_ns: since(&self.delay_ns, &earlier.delay_ns),
        }
    }
}
