//! `weir load orders`.

use anyhow::Result;
use weir_load::{LoadSpec, OrderMix, OrdersSpec, Password};
use weir_record::{
    load::LoadReport,
    orders::{Mismatch, OrdersLoadReport},
};

use super::arguments::LoadOrders;
use crate::{
    args::LoadShared,
    command::{
        load::{self, LoadCommand},
        load_text::{failure_first, failures, fit, generator, latency, paced, server, time, unreached},
    },
    exit::UsageError,
};

/// Environment variable with the password of every account.
const PASSWORD_VARIABLE: &str = "WEIR_PASSWORD";
/// Password of the accounts of a demonstration.
const PASSWORD_DEMO: &str = "DEMO";

impl LoadCommand for LoadOrders {
    fn shared(&self) -> &LoadShared {
        &self.shared
    }

    fn spec(&self) -> Result<LoadSpec> {
        let sessions = self.shared.connections.into();
        let messages = self.orders.map(|each| each.saturating_mul(sessions));
        let orders = OrdersSpec {
            accounts_prefix: self.accounts_prefix.clone(),
            password: Password(password(self.password.as_deref())),
            in_flight_total: self.in_flight_total,
            orders_each: self.orders,
            mix: mix(&self.mix)?,
            symbols: self.symbols.clone(),
            reconnect_every: self.reconnect_every,
            resume: self.resume,
        };
        let shared = load::spec(&self.shared, orders.into(), "--target", &self.target, messages)?;
        // All that is in flight may be on one session.
        let depth = self.in_flight_total.map_or(shared.depth, |total| total.max(1));
        Ok(LoadSpec { depth, ..shared })
    }

    fn unit(&self) -> &'static str {
        "orders"
    }

    fn refusal(&self, field: &'static str, reason: String) -> String {
        let flag = match field {
            "connections" => "sessions",
            "depth" => "in-flight",
            "messages" => "orders",
            field => field,
        };
        format!("--{flag}: {reason}")
    }

    fn table(&self, report: &LoadReport, columns: usize) -> String {
        table(report, columns)
    }
}

fn password(given: Option<&str>) -> String {
    let from_environment = || std::env::var(PASSWORD_VARIABLE).ok();
    given.map(str::to_owned).or_else(from_environment).unwrap_or_else(|| PASSWORD_DEMO.into())
}

fn mix(text: &str) -> Result<OrderMix> {
    text.parse().map_err(|error| UsageError(format!("--mix {error}")).into())
}

/// The report as people read it.
fn table(report: &LoadReport, columns: usize) -> String {
    let orders = report.orders.clone().unwrap_or_default();
    let mut rows = head(report, &orders);
    rows.push(format!("round trip    {}", latency(&report.response)));
    for (name, way) in [("way out ", &orders.out), ("way back", &orders.back)] {
        let text = match way {
            Some(way) => latency(way),
            None => "not known: the peer's time stamps are of another clock".into(),
        };
        rows.push(format!("{name}      {text}"));
    }
    rows.extend(paced(report));
    rows.extend(checks(&orders));
    rows.push(format!("failures      {}", failures(report)));
    rows.extend(failure_first(report));
    rows.push(generator(report, "order"));
    let has_process = report.observed.as_ref().is_some_and(|observed| observed.threads > 0);
    rows.extend(server(report, "order").filter(|_| has_process));
    rows.extend(node(report));
    rows.extend(unreached(report, "orders").map(|text| format!("asked for     {text}")));
    fit(rows, columns).join("\n")
}

fn head(report: &LoadReport, orders: &OrdersLoadReport) -> Vec<String> {
    let bound = if report.generator_bound { " (the generator was the limit: a lower bound)" } else { "" };
    let in_flight = match orders.in_flight_scope.as_str() {
        "total" => format!("{} in flight over all, in turn", orders.in_flight),
        _ => format!("{} in flight on each", orders.in_flight),
    };
    vec![
        format!("target        {} ({} loop, generator on {})", report.target, report.mode, report.driver),
        format!("load          {} sessions, {in_flight}", report.connections),
        time(report),
        format!(
            "orders        {} answered; sent: {} entered, {} replaced, {} cancelled",
            report.messages, orders.entered, orders.replaces, orders.cancels
        ),
        format!("throughput    {:.0} orders/s{bound}", report.throughput_per_second),
    ]
}

/// What was checked about the whole run.
fn checks(orders: &OrdersLoadReport) -> Vec<String> {
    let types: Vec<String> =
        orders.received.iter().map(|(letter, count)| format!("{count} {letter}")).collect();
    let received = if types.is_empty() { "nothing".into() } else { types.join(", ") };
    let shares = &orders.shares;
    let verdict = if shares.is_conserved() { "they balance" } else { "THEY DO NOT BALANCE" };
    let mut rows = vec![
        format!(
            "sessions      {} logged in, {} times again after a connection was dropped on purpose",
            orders.sessions, orders.reconnects
        ),
        format!("received      {received}"),
        format!(
            "sequence      {} messages checked, {} answers out of order",
            orders.sequenced_checked, orders.inversions
        ),
        format!(
            "shares        {} entered, {} executed, {} cancelled, {} live: {verdict}",
            shares.entered, shares.executed, shares.cancelled, shares.live
        ),
    ];
    rows.extend(orders.mismatches.iter().map(|wrong| {
        let Mismatch { session, order, expected, got } = wrong;
        format!("mismatch      {session}, order {order}: expected {expected}; got {got}")
    }));
    rows
}

/// What the gateway or exchange counted itself, when it was observed.
fn node(report: &LoadReport) -> Option<String> {
    let node = report.observed.as_ref()?.node.as_ref()?;
    let handed_off = node.handoff.as_ref().filter(|handoff| handoff.orders > 0).map(|handoff| {
        let percent = handoff.orders_handed_off as f64 * 100.0 / handoff.orders as f64;
        let wakes = handoff.wakes_sent as f64 / handoff.pushed.max(1) as f64;
        format!("; {percent:.1} % of orders handed off by {}, {wakes:.3} wakes a hand-off", handoff.strategy)
    });
    Some(format!(
        "{:<13} {} messages received, {} sent, {} orders{}",
        node.node.to_lowercase(),
        node.received,
        node.sent,
        node.orders,
        handed_off.unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weir_record::{
        orders::{HandoffStats, NodeWindow, ShareBalance},
        trial::ObservedWindow,
    };

    use super::*;

    fn report() -> LoadReport {
        LoadReport {
            target: "127.0.0.1:9100".into(),
            mode: "closed".into(),
            driver: "epoll".into(),
            connections: 10,
            messages: 120,
            warmup_steady: true,
            orders: Some(OrdersLoadReport {
                sessions: 10,
                in_flight: 1,
                in_flight_scope: "total".into(),
                entered: 90,
                cancels: 30,
                received: BTreeMap::from([("A".into(), 90), ("C".into(), 30)]),
                sequenced_checked: 130,
                shares: ShareBalance { entered: 900, executed: 0, cancelled: 300, live: 600 },
                reconnects: 4,
                ..OrdersLoadReport::default()
            }),
            ..LoadReport::default()
        }
    }

    #[test]
    fn the_table_says_what_was_done_and_checked() {
        let text = table(&report(), 120);
        for words in [
            "load          10 sessions, 1 in flight over all, in turn",
            "orders        120 answered; sent: 90 entered, 0 replaced, 30 cancelled",
            "way out       not known",
            "received      90 A, 30 C",
            "sequence      130 messages checked, 0 answers out of order",
            "shares        900 entered, 0 executed, 300 cancelled, 600 live: they balance",
            "4 times again",
            "failures      none",
        ] {
            assert!(text.contains(words), "no {words:?} in:\n{text}");
        }
    }

    #[test]
    fn lost_shares_and_what_the_gateway_counted_are_shown() {
        let mut lossy = report();
        if let Some(orders) = &mut lossy.orders {
            orders.mismatches = vec![Mismatch {
                session: "C00007".into(),
                order: 9,
                expected: "5 shares".into(),
                got: "4".into(),
            }];
            orders.shares.live = 500;
            orders.in_flight_scope = "session".into();
        }
        let handoff = HandoffStats {
            strategy: "mesh".into(),
            pushed: 200,
            wakes_sent: 10,
            orders: 100,
            orders_handed_off: 50,
            ..HandoffStats::default()
        };
        let node = NodeWindow {
            node: "GATEWAY".into(),
            received: 240,
            handoff: Some(handoff),
            ..Default::default()
        };
        lossy.observed = Some(ObservedWindow { node: Some(node), ..ObservedWindow::default() });
        let text = table(&lossy, 120);
        for words in [
            "1 in flight on each",
            "THEY DO NOT BALANCE",
            "mismatch      C00007, order 9: expected 5 shares; got 4",
            "gateway       240 messages received",
            "50.0 % of orders handed off by mesh, 0.050 wakes a hand-off",
        ] {
            assert!(text.contains(words), "no {words:?} in:\n{text}");
        }
    }

    #[test]
    fn an_impossible_value_is_told_with_its_flag() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            load: LoadOrders,
        }
        let load = <Line as clap::Parser>::parse_from(["orders"]).load;
        let told = |field| load.refusal(field, "no".into());
        assert_eq!(told("connections"), "--sessions: no");
        assert_eq!(told("depth"), "--in-flight: no");
        assert_eq!(told("accounts-prefix"), "--accounts-prefix: no");
        assert!(mix("fill").expect_err("no mix").to_string().starts_with("--mix \"fill\" is no mix"));
    }

    #[test]
    fn a_password_that_is_given_is_used() {
        assert_eq!(password(Some("SECRET")), "SECRET");
    }
}
