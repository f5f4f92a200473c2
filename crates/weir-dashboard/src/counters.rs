//! Counters of the dashboard itself, as Prometheus reads them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_proto::exposition::{
    Exposition,
    Kind::{Counter, Gauge},
};

/// Classes of answers, by their first digit from 2 on.
const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    answers: [AtomicU64; 4],
    foreign_hosts: AtomicU64,
    stores_read: AtomicU64,
    denied: AtomicU64,
    studies_started: AtomicU64,
    turned_away: AtomicU64,
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

    /// A request to act was refused.
    pub(crate) fn denied(&self) {
        self.denied.fetch_add(1, Relaxed);
    }

    /// A study was started.
    pub(crate) fn study_started(&self) {
        self.studies_started.fetch_add(1, Relaxed);
    }

    /// A connection was one too many of its address.
    pub(crate) fn turned_away(&self) {
        self.turned_away.fetch_add(1, Relaxed);
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

    /// All of them, as Prometheus reads them.
    pub(crate) fn exposition(&self, watching: usize) -> String {
        let mut text = Exposition::default();
        const ANSWERS: &str = "weir_dashboard_answers_total";
        text.family(ANSWERS, Counter, "Answers by class of status.");
        for (class, count) in CLASSES.iter().zip(&self.answers) {
            text.sample(ANSWERS, &[("status", class)], count.load(Relaxed));
        }
        for (name, help, value) in [
            (
                "weir_dashboard_foreign_hosts_total",
                "Requests refused because their host is not this one.",
                &self.foreign_hosts,
            ),
            (
                "weir_dashboard_stores_read_total",
                "Stores read because they are new or have changed.",
                &self.stores_read,
            ),
            (
                "weir_dashboard_actions_refused_total",
                "Requests to log in, start or stop that were refused.",
                &self.denied,
            ),
            ("weir_dashboard_studies_started_total", "Studies started from here.", &self.studies_started),
            (
                "weir_dashboard_connections_refused_total",
                "Connections refused because their address has as many as it may.",
                &self.turned_away,
            ),
            ("weir_dashboard_connections_total", "Connections accepted.", &self.connections),
        ] {
            text.one(name, Counter, help, value.load(Relaxed));
        }
        let open = self.connections_open.load(Relaxed);
        text.one("weir_dashboard_connections", Gauge, "Connections that are open.", open);
        let help = "Browsers that watch the running study.";
        text.one("weir_dashboard_watchers", Gauge, help, watching);
        text.into_text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_every_metric() {
        let page = include_str!("../../../docs/formats/metrics.md");
        let documented = page.lines().filter(|line| line.starts_with("| `weir_dashboard_")).count();
        let text = Counters::default().exposition(0);
        let mut known = 0;
        for family in text.lines().filter_map(|line| line.strip_prefix("# HELP ")) {
            let (name, help) = family.split_once(' ').expect("a name and what it is");
            let help = help.trim_end_matches('.');
            let is_told = |line: &str| line.starts_with(&format!("| `{name}` |")) && line.contains(help);
            assert!(page.lines().any(is_told), "docs/formats/metrics.md does not name {name}: {help}");
            known += 1;
        }
        assert_eq!(documented, known, "it names one that is gone");
    }
}
