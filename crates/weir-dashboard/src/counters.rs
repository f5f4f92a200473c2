//! What the dashboard counts of itself, as Prometheus reads it.

use std::{
    fmt::Write,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// Classes of answers, by their first digit from 2 on.
const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    answers: [AtomicU64; 4],
    foreign_hosts: AtomicU64,
    stores_read: AtomicU64,
    connections: AtomicU64,
    connections_open: AtomicU64,
}

impl Counters {
    /// An answer left.
    pub(crate) fn answered(&self, status: u16) {
        let class = usize::from(status / 100).saturating_sub(2).min(CLASSES.len() - 1);
        self.answers[class].fetch_add(1, Relaxed);
    }

    /// A request was for a host that is not this one.
    pub(crate) fn refused_host(&self) {
        self.foreign_hosts.fetch_add(1, Relaxed);
    }

    /// A store is read because it is new, or changed.
    pub(crate) fn stores_read(&self) {
        self.stores_read.fetch_add(1, Relaxed);
    }

    /// A connection came.
    pub(crate) fn connected(&self) {
        self.connections.fetch_add(1, Relaxed);
        self.connections_open.fetch_add(1, Relaxed);
    }

    /// A connection ended.
    pub(crate) fn disconnected(&self) {
        self.connections_open.fetch_sub(1, Relaxed);
    }

    /// All of them, in Prometheus' text format 0.0.4.
    pub(crate) fn exposition(&self, watching: usize) -> String {
        let mut text = String::new();
        let mut metric = |name: &str, kind: &str, help: &str, samples: &[(String, u64)]| {
            // Writing to a string cannot fail.
            let _ =
                writeln!(text, "# HELP weir_dashboard_{name} {help}\n# TYPE weir_dashboard_{name} {kind}");
            for (labels, value) in samples {
                let _ = writeln!(text, "weir_dashboard_{name}{labels} {value}");
            }
        };
        let one = |value: &AtomicU64| [(String::new(), value.load(Relaxed))];
        let answers = CLASSES.iter().zip(&self.answers);
        let answers: Vec<(String, u64)> =
            answers.map(|(class, count)| (format!("{{status=\"{class}\"}}"), count.load(Relaxed))).collect();
        metric("answers_total", "counter", "Answers by class of status.", &answers);
        let help = "Requests refused because their host is not this one.";
        metric("foreign_hosts_total", "counter", help, &one(&self.foreign_hosts));
        let help = "Stores read because they are new or have changed.";
        metric("stores_read_total", "counter", help, &one(&self.stores_read));
        metric("connections_total", "counter", "Connections accepted.", &one(&self.connections));
        metric("connections", "gauge", "Connections that are open.", &one(&self.connections_open));
        let watching = [(String::new(), watching as u64)];
        metric("watchers", "gauge", "Browsers that watch the running study.", &watching);
        text
    }
}
