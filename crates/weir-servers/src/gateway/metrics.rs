//! The metrics of a gateway, in addition to those of every server.

use weir_proto::exposition::{
    Exposition,
    Kind::{Counter, Gauge},
};
use weir_record::{engine::ServerStats, orders::NodeStats};

use super::{
    GatewayControl,
    counters::{GatewayCounters, total},
    kill_switch::killed_line,
};
use crate::{
    counter,
    journal::Level,
    metrics::{self, Source},
};

impl Source for GatewayControl {
    fn metrics(&self) -> String {
        render(&self.node_stats(), &self.server_stats(), &self.facts())
    }

    fn health(&self) -> Result<(), String> {
        // This calls the type's inherent method.
        GatewayControl::health(self)
    }

    fn remarks(&self) -> Vec<String> {
        let remark = self.orders.node_stats().journal.as_ref().and_then(metrics::journal_remark);
        let day = self.day_status().map(|day| day.to_string());
        killed_line(&self.killed()).into_iter().chain(remark).chain(day).collect()
    }
}

/// The gateway's data besides the records that every node has.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) handoff: String,
    pub(super) durability: String,
    pub(super) route: String,
    pub(super) upstream_received: u64,
    pub(super) upstream_sent: u64,
    pub(super) unmatched: u64,
    pub(super) malformed: u64,
    pub(super) venue_lines_left_out: u64,
    pub(super) client_lines_left_out: u64,
    pub(super) without_order: u64,
    pub(super) too_long: u64,
    pub(super) cancels_limited: u64,
    pub(super) resent: u64,
    pub(super) upstreams_lost: u64,
    pub(super) open_orders: u64,
    pub(super) unanswered: u64,
    pub(super) replayed: u64,
    pub(super) missed: u64,
    pub(super) overfills: u64,
    pub(super) events_lost: u64,
    pub(super) limits_overridden: u64,
    pub(super) logins_locked: u64,
    pub(super) is_day_closed: bool,
    pub(super) day_waits: bool,
    /// Venue, worker, whether it is open.
    pub(super) upstreams: Vec<(String, u32, bool)>,
    pub(super) drop_copy: Option<DropCopyFacts>,
}

/// The data of a drop copy.
#[derive(Clone, Debug, Default)]
pub(super) struct DropCopyFacts {
    pub(super) node: NodeStats,
    pub(super) behind: u64,
    pub(super) is_stopped: bool,
}

/// Renders a snapshot as text.
fn render(node: &NodeStats, server: &ServerStats, facts: &Facts) -> String {
    let mut text = Exposition::default();
    let labels = [
        ("handoff", facts.handoff.as_str()),
        ("route", facts.route.as_str()),
        ("durability", facts.durability.as_str()),
    ];
    metrics::build(&mut text, server, &labels);
    metrics::node(&mut text, node, Some((facts.upstream_received, facts.upstream_sent)));
    upstream(&mut text, node, facts);
    facts.drop_copy.iter().for_each(|facts| drop_copy(&mut text, facts));
    metrics::engine(&mut text, server);
    text.into_text()
}

fn upstream(text: &mut Exposition, node: &NodeStats, facts: &Facts) {
    for (name, help, value) in [
        ("weir_answers_unmatched_total", "Answers about orders that are not known.", facts.unmatched),
        ("weir_upstream_malformed_total", "Messages of exchanges that cannot be read.", facts.malformed),
        (
            "weir_orders_unknown_total",
            "Cancels, modifications and replaces of orders that are not open; the replaces are refused.",
            facts.without_order,
        ),
        (
            "weir_cancels_limited_total",
            "Cancels and modifications refused because of their rate.",
            facts.cancels_limited,
        ),
        ("weir_orders_too_long_total", "Orders refused because of their appendage.", facts.too_long),
        ("weir_orders_resent_total", "Orders sent again after a connection was lost.", facts.resent),
        ("weir_answers_replayed_total", "Answers that clients had already.", facts.replayed),
        ("weir_upstream_missed_total", "Messages that exchanges did not give any more.", facts.missed),
        ("weir_upstreams_lost_total", "Upstream connections lost.", facts.upstreams_lost),
        (
            "weir_upstreams_begun_anew_total",
            "Sessions of exchanges that were others than before.",
            node.upstreams_begun_anew,
        ),
        (
            "weir_orders_expired_total",
            "Orders that ended without a word of their exchange.",
            node.orders_expired,
        ),
        ("weir_overfills_total", "Executions of more shares than were left.", facts.overfills),
        (
            "weir_events_lost_total",
            "Events that no line has, because too many waited to be printed.",
            facts.events_lost,
        ),
    ] {
        text.one(name, Counter, help, value);
    }
    text.family("weir_lines_left_out_total", Counter, "Events that were left out because of their rate.");
    let left_out = [("exchanges", facts.venue_lines_left_out), ("clients", facts.client_lines_left_out)];
    for (about, count) in left_out {
        text.sample("weir_lines_left_out_total", &[("about", about)], count);
    }
    text.one("weir_orders_open", Gauge, "Orders that may be open upstream.", facts.open_orders);
    text.one("weir_orders_unanswered", Gauge, "Orders sent upstream and not answered.", facts.unanswered);
    operators(text, node, facts);
    text.family("weir_upstream_up", Gauge, "Whether orders can be sent.");
    for (venue, worker, is_open) in &facts.upstreams {
        let labels = [("venue", venue.as_str()), ("worker", &worker.to_string())];
        text.sample("weir_upstream_up", &labels, u8::from(*is_open));
    }
}

/// What operators have set, and what waits for one.
fn operators(text: &mut Exposition, node: &NodeStats, facts: &Facts) {
    text.family("weir_kill_switches", Gauge, "Kill switches that are on.");
    for (scope, count) in [("all", u64::from(node.is_everyone_killed)), ("account", node.accounts_killed)] {
        text.sample("weir_kill_switches", &[("scope", scope)], count);
    }
    for (name, help, value) in [
        (
            "weir_limits_overridden",
            "Limits that an operator has set to other values than the file's.",
            facts.limits_overridden,
        ),
        ("weir_logins_locked", "Locks of logins after too many wrong passwords.", facts.logins_locked),
        ("weir_day_closed", "Whether no session of the trading day is open.", facts.is_day_closed.into()),
        ("weir_day_waits", "Whether a step of the trading day is due and waits.", facts.day_waits.into()),
    ] {
        text.one(name, Gauge, help, value);
    }
}

fn drop_copy(text: &mut Exposition, DropCopyFacts { node, behind, is_stopped }: &DropCopyFacts) {
    text.family("weir_drop_copy_sessions", Gauge, "Firms that are logged in.");
    let live = node.sessions_open.saturating_sub(node.sessions_replaying);
    for (state, count) in [("live", live), ("replaying", node.sessions_replaying)] {
        text.sample("weir_drop_copy_sessions", &[("state", state)], count);
    }
    text.one("weir_drop_copy_sent_total", Counter, "Copies sent to firms.", node.sent);
    let help = "Durable records of the gateway that were not looked at for the drop copy yet.";
    text.one("weir_drop_copy_behind_records", Gauge, help, *behind);
    let help = "Whether nothing is copied, because a journal cannot be read or written.";
    text.one("weir_drop_copy_stopped", Gauge, help, u8::from(*is_stopped));
    for (name, help, value) in [
        (
            "weir_drop_copy_slow_disconnects_total",
            "Firms that did not take what was sent.",
            node.slow_consumer_disconnects,
        ),
        ("weir_drop_copy_silent_total", "Firms that were silent too long.", node.heartbeat_timeouts),
    ] {
        text.one(name, Counter, help, value);
    }
    for (name, help, label, counts) in [
        (
            "weir_drop_copy_protocol_errors_total",
            "Connections of firms ended for breaking the protocol.",
            "kind",
            &node.protocol_errors,
        ),
        ("weir_drop_copy_logins_total", "Logins of firms.", "result", &node.logins),
    ] {
        metrics::by_label(text, name, help, label, counts);
    }
}

impl GatewayControl {
    /// The data for metrics besides the records that every node has.
    fn facts(&self) -> Facts {
        let shared = &self.shared;
        let count = |of: fn(&GatewayCounters) -> &counter::Counter| total(&shared.common.counters, of);
        let upstreams = self.upstreams().into_iter();
        Facts {
            handoff: shared.config.handoff.strategy.to_string(),
            route: shared.config.route.to_string(),
            durability: shared.config.journal.as_ref().map_or(Level::None, |(_, level)| *level).to_string(),
            upstream_received: count(|counters| &counters.upstream_received),
            upstream_sent: count(|counters| &counters.upstream_sent),
            unmatched: count(|counters| &counters.unmatched),
            malformed: count(|counters| &counters.malformed),
            venue_lines_left_out: count(|counters| &counters.lines_left_out),
            client_lines_left_out: self.orders.lines_left_out(),
            without_order: count(|counters| &counters.without_order),
            too_long: count(|counters| &counters.too_long),
            cancels_limited: count(|counters| &counters.cancels_limited),
            resent: count(|counters| &counters.resent),
            upstreams_lost: count(|counters| &counters.upstreams_lost),
            open_orders: count(|counters| &counters.open_orders),
            unanswered: count(|counters| &counters.unanswered),
            replayed: count(|counters| &counters.replayed),
            missed: count(|counters| &counters.missed),
            overfills: count(|counters| &counters.overfills),
            events_lost: shared.common.notices.events().lost_total(),
            limits_overridden: self.limits_overridden(),
            logins_locked: [Some(&self.orders), self.firms()]
                .into_iter()
                .flatten()
                .map(|orders| orders.login_locks().len() as u64)
                .sum(),
            is_day_closed: !shared.day.takes_orders(),
            day_waits: self.day_waits(),
            upstreams: upstreams
                .map(|upstream| (upstream.venue, upstream.worker, upstream.is_open))
                .collect(),
            drop_copy: shared.drop_copy.get().map(|drop_copy| DropCopyFacts {
                node: drop_copy.node_stats(),
                behind: drop_copy.behind(),
                is_stopped: drop_copy.is_stopped(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use weir_record::{
        latency::{LatencySummary, empty_histogram},
        orders::{HandoffStats, HopStats, JournalStats, SessionStats},
    };

    use super::*;

    fn snapshot() -> NodeStats {
        let mut histogram = empty_histogram();
        for time in [1_500, 3_000, 2_000_000_000] {
            histogram.record(time).expect("within bounds");
        }
        NodeStats {
            node: "GATEWAY".into(),
            received: 30,
            sent: 20,
            orders: 10,
            handoff: Some(HandoffStats { strategy: "mesh".into(), pushed: 7, ..HandoffStats::default() }),
            journal: Some(JournalStats { records: 5, files_left: Some(3), ..JournalStats::default() }),
            hops: vec![HopStats {
                hop: "upstream".into(),
                latency: LatencySummary::from_histogram(&histogram),
            }],
            sessions: vec![SessionStats {
                account: "C00001".into(),
                state: "live".into(),
                sequence_sent: 9,
                ..SessionStats::default()
            }],
            sessions_open: 1,
            rejects: BTreeMap::from([("a \"quoted\" reason\\".into(), 2)]),
            ..NodeStats::default()
        }
    }

    #[test]
    fn every_sample_belongs_to_a_family_that_was_announced_once() {
        let server =
            ServerStats { driver: "poll".into(), workers: vec![Default::default()], ..Default::default() };
        let text = render(&snapshot(), &server, &Facts::default());
        let mut families = BTreeSet::new();
        for line in text.lines() {
            if let Some(family) = line.strip_prefix("# TYPE ") {
                let name = family.split(' ').next().expect("a name");
                assert!(families.insert(name.to_owned()), "{name} is announced twice");
            } else if !line.starts_with('#') {
                let name = line.split(['{', ' ']).next().expect("a name");
                let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
                assert!(
                    families.contains(name) || base.is_some_and(|base| families.contains(base)),
                    "{line}"
                );
                let value = line.rsplit(' ').next().expect("a value");
                assert!(value.parse::<f64>().is_ok(), "{line}");
            }
        }
    }

    /// A row for each metric: name, kind, labels, meaning.
    fn rows(text: &str) -> BTreeSet<String> {
        let labels_of = |name: &str| -> BTreeSet<String> {
            let own = |line: &&str| {
                let sample = line.split(['{', ' ']).next().expect("a name");
                sample == name || sample.strip_prefix(name).is_some_and(|end| end == "_bucket")
            };
            let labels = text.lines().filter(own).filter_map(|line| line.split_once('{'));
            let pairs = labels.flat_map(|(_, rest)| rest.split("\","));
            pairs.filter_map(|pair| Some(format!("`{}`", pair.split_once("=\"")?.0))).collect()
        };
        let mut rows = BTreeSet::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' '))
            else {
                continue;
            };
            let kind = lines.next().and_then(|line| line.rsplit(' ').next()).expect("a kind");
            let labels: Vec<String> = labels_of(name).into_iter().collect();
            let help = help.trim_end_matches('.');
            rows.insert(format!("| `{name}` | {kind} | {} | {help} |", labels.join(", ")));
        }
        rows
    }

    /// The rows of every metric, dashboards apart.
    fn all_rows() -> BTreeSet<String> {
        let mut node = snapshot();
        let one = || BTreeMap::from([("x".to_owned(), 1)]);
        (node.protocol_errors, node.logins) = (one(), one());
        let server = ServerStats { workers: vec![Default::default()], ..Default::default() };
        let drop_copy = Some(DropCopyFacts { node: node.clone(), ..DropCopyFacts::default() });
        let facts = Facts { upstreams: vec![("A".to_owned(), 0, true)], drop_copy, ..Facts::default() };
        let mut known = rows(&render(&node, &server, &facts));
        let files = ServerStats { files: Some(Default::default()), ..server };
        let of_files = rows(&metrics::of_server(&files));
        known.extend(of_files.into_iter().filter(|row| row.starts_with("| `weir_file")));
        known
    }

    #[test]
    fn the_page_names_every_metric() {
        let page = include_str!("../../../../docs/formats/metrics.md");
        let is_ours = |line: &&str| line.starts_with("| `weir_") && !line.starts_with("| `weir_dashboard_");
        let documented: BTreeSet<String> = page.lines().filter(is_ours).map(str::to_owned).collect();
        let known = all_rows();
        let lacking: Vec<&String> = known.difference(&documented).collect();
        let surplus: Vec<&String> = documented.difference(&known).collect();
        assert!(
            lacking.is_empty() && surplus.is_empty(),
            "docs/formats/metrics.md lacks {lacking:#?} and has no longer {surplus:#?}"
        );
    }

    /// The alerts, and what each has on its page.
    const RULES: &str = include_str!("../../../../packaging/prometheus/weir-gateway.rules.yml");
    const ALERTS: &str = include_str!("../../../../docs/guide/gateway-alerts.md");

    /// The name of each metric, with its labels: the second cell of a row, and the fourth.
    fn labels_by_name() -> BTreeMap<String, BTreeSet<String>> {
        let all = all_rows();
        let cells = |row: &String| {
            let cells: Vec<&str> = row.split('|').collect();
            let labels = cells[3].split(',').map(|label| label.trim().trim_matches('`').to_owned());
            (cells[1].trim().trim_matches('`').to_owned(), labels.collect())
        };
        all.iter().map(cells).collect()
    }

    /// Each metric that a text names, with the labels that it chooses by: `name{label="value"}`.
    fn named(text: &str) -> Vec<(&str, Vec<&str>)> {
        let is_part = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
        let begins = text.match_indices("weir_").map(|(at, _)| at);
        let whole = begins.filter(|at| !text[..*at].ends_with(is_part));
        let name = |at: usize| {
            let (name, rest) = text[at..].split_at(text[at..].find(|letter| !is_part(letter)).unwrap_or(0));
            let chosen = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
            let labels = chosen.map(|(labels, _)| labels.split(',')).into_iter().flatten();
            (name, labels.filter_map(|label| label.split(['=', '!']).next()).collect())
        };
        whole.map(name).collect()
    }

    #[test]
    fn alerts_are_about_metrics_and_labels_that_exist() {
        let known = labels_by_name();
        for (place, text) in [("the rules", RULES), ("the page", ALERTS)] {
            let all = named(text);
            assert!(all.len() > 20, "{place} name {} metrics", all.len());
            for (name, labels) in all {
                let family =
                    name.strip_suffix("_bucket").filter(|_| !known.contains_key(name)).unwrap_or(name);
                let has = known.get(family).unwrap_or_else(|| panic!("{place} name {name}: there is none"));
                for label in labels {
                    assert!(has.contains(label), "{place}: {name} has no label {label:?}, but {has:?}");
                }
            }
        }
    }

    #[test]
    fn the_page_has_a_row_for_each_alert_with_its_severity_and_its_metrics() {
        let rule = |rule: &'static str| -> (&'static str, &'static str, BTreeSet<&'static str>) {
            let (alert, rest) = rule.split_once('\n').expect("an alert has lines");
            let (expression, _) = rest.split_once("annotations:").expect("each has a summary");
            let (_, severity) = rest.split_once("labels: {severity: ").expect("each has a severity");
            let metrics = named(expression).into_iter().map(|(name, _)| name.trim_end_matches("_bucket"));
            (alert, severity.split('}').next().expect("it ends"), metrics.collect())
        };
        let rules: BTreeSet<_> = RULES.split("- alert: ").skip(1).map(rule).collect();
        let row = |line: &'static str| {
            let cells: Vec<&str> = line.split(" | ").collect();
            let alert = cells[0].trim_start_matches("| ").trim_matches('`');
            (alert, cells[1], named(cells[2]).into_iter().map(|(name, _)| name).collect())
        };
        let rows: BTreeSet<_> = ALERTS.lines().filter(|line| line.starts_with("| `Weir")).map(row).collect();
        assert_eq!(rules, rows);
        let severities: BTreeSet<&str> = rules.iter().map(|(_, severity, _)| *severity).collect();
        assert_eq!(severities, BTreeSet::from(["note", "page", "ticket"]));
    }

    #[test]
    fn counts_are_split_by_side_and_labels_are_escaped() {
        let facts = Facts { upstream_received: 12, upstream_sent: 8, ..Facts::default() };
        let text = render(&snapshot(), &ServerStats::default(), &facts);
        for line in [
            r#"weir_messages_received_total{component="gateway",side="client"} 18"#,
            r#"weir_messages_sent_total{component="gateway",side="upstream"} 8"#,
            r#"weir_order_rejects_total{reason="a \"quoted\" reason\\"} 2"#,
            r#"weir_session_sent_sequence{session="C00001"} 9"#,
            r#"weir_handoff_pushed_total{strategy="mesh"} 7"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn kill_switches_are_counted() {
        let node = NodeStats { is_everyone_killed: true, accounts_killed: 2, ..snapshot() };
        let text = render(&node, &ServerStats::default(), &Facts::default());
        for line in [r#"weir_kill_switches{scope="all"} 1"#, r#"weir_kill_switches{scope="account"} 2"#] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn sessions_are_counted_beyond_those_that_are_listed() {
        let node = NodeStats { sessions_open: 2500, sessions_replaying: 3, ..snapshot() };
        let text = render(&node, &ServerStats::default(), &Facts::default());
        for line in [r#"weir_sessions{state="live"} 2497"#, r#"weir_sessions{state="replaying"} 3"#] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn a_histogram_counts_up_to_each_bound() {
        let text = render(&snapshot(), &ServerStats::default(), &Facts::default());
        let bucket = |bound: &str| {
            let start = format!("weir_hop_latency_seconds_bucket{{hop=\"upstream\",le=\"{bound}\"}} ");
            let line = text.lines().find_map(|line| line.strip_prefix(&start)).expect("there is one");
            line.parse::<u64>().expect("a count")
        };
        assert_eq!(
            [bucket("0.000001"), bucket("0.000002"), bucket("0.000005"), bucket("1"), bucket("+Inf")],
            [0, 1, 2, 2, 3]
        );
    }
}
