//! `weir load orders`.

use anyhow::Result;
use weir_load::{LoadSpec, OrderMix, OrdersSpec, Password};
use weir_record::{
    load::LoadReport,
    orders::{Mismatch, NodeWindow, OrdersLoadReport, ShareBalance},
};
use weir_report::{Language, localized};

use super::arguments::LoadOrders;
use crate::{
    exit::UsageError,
    flags::LoadShared,
    load::{self, LoadCommand, Place},
    load_text::{
        Unit, asked_for, failure_rows, fit, generator, latency, paced, row, server, target, throughput, time,
    },
};

/// Environment variable with the password of every account.
const PASSWORD_VARIABLE: &str = "WEIR_PASSWORD";
/// Password of the accounts of a demonstration.
const PASSWORD_DEMO: &str = "DEMO";

const UNIT: Unit = Unit::Order;

impl LoadCommand for LoadOrders {
    fn shared(&self) -> &LoadShared {
        &self.shared
    }

    fn spec(&self, place: Place) -> Result<LoadSpec> {
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
        let shared = load::spec((&self.shared, place), orders.into(), "--target", &self.target, messages)?;
        // All that is in flight may be on one session.
        let depth = self.in_flight_total.map_or(shared.depth, |total| total.max(1));
        Ok(LoadSpec { depth, ..shared })
    }

    fn words_elsewhere(&self) -> Vec<String> {
        // The environment is that of this machine. It is one word, because a password may begin with a dash.
        match (&self.password, std::env::var(PASSWORD_VARIABLE)) {
            (None, Ok(password)) => vec![format!("--password={password}")],
            _ => Vec::new(),
        }
    }

    fn unit(&self) -> Unit {
        UNIT
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

    fn table(&self, report: &LoadReport, columns: usize, language: Language) -> String {
        table(report, columns, language)
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
fn table(report: &LoadReport, columns: usize, language: Language) -> String {
    let orders = report.orders.clone().unwrap_or_default();
    let mut rows = head(report, &orders, language);
    let round_trip = latency(&report.response, language);
    rows.push(row(language, ["round trip", "왕복 시간", "往返时间"], round_trip));
    let unknown = [
        "not known: the peer's time stamps are of another clock",
        "알 수 없음: 상대의 타임스탬프가 다른 시계의 값임",
        "未知：对端的时间戳取自另一个时钟",
    ];
    let ways =
        [(["way out", "가는 길", "去程"], &orders.out), (["way back", "오는 길", "回程"], &orders.back)];
    for (name, way) in ways {
        let text = way.as_ref().map(|way| latency(way, language));
        rows.push(row(language, name, text.unwrap_or_else(|| language.choose(unknown).to_owned())));
    }
    rows.extend(paced(report, language));
    rows.extend(checks(&orders, language));
    rows.extend(failure_rows(report, language));
    rows.push(generator(report, UNIT, language));
    let has_process = report.observed.as_ref().is_some_and(|observed| observed.threads > 0);
    rows.extend(server(report, UNIT, language).filter(|_| has_process));
    rows.extend(node(report, language));
    rows.extend(asked_for(report, UNIT, language));
    fit(rows, columns).join("\n")
}

fn head(report: &LoadReport, orders: &OrdersLoadReport, language: Language) -> Vec<String> {
    let (sessions, in_flight) = (report.connections, orders.in_flight);
    let in_flight = match orders.in_flight_scope.as_str() {
        "total" => localized!(
            language,
            "{in_flight} in flight over all, in turn",
            "모든 세션을 합쳐 동시 {in_flight}건, 차례로 전송",
            "所有会话合计在途 {in_flight} 笔，轮流发送",
        ),
        _ => localized!(
            language,
            "{in_flight} in flight on each",
            "세션당 동시 {in_flight}건",
            "每个会话在途 {in_flight} 笔",
        ),
    };
    let load = localized!(
        language,
        "{sessions} sessions, {in_flight}",
        "세션 {sessions}개, {in_flight}",
        "{sessions} 个会话，{in_flight}",
    );
    let OrdersLoadReport { entered, replaces, cancels, .. } = orders;
    let answered = report.messages;
    let sent = localized!(
        language,
        "{answered} answered; sent: {entered} entered, {replaces} replaced, {cancels} cancelled",
        "응답 {answered}건. 전송: 신규 {entered}건, 정정 {replaces}건, 취소 {cancels}건",
        "收到回报 {answered} 笔；发送：新单 {entered}、改单 {replaces}、撤单 {cancels}",
    );
    vec![
        target(report, &report.target, language),
        row(language, ["load", "부하", "负载"], load),
        time(report, language),
        row(language, ["orders", "주문", "订单"], sent),
        throughput(report, UNIT, language),
    ]
}

/// What was checked about the whole run.
fn checks(orders: &OrdersLoadReport, language: Language) -> Vec<String> {
    let types: Vec<String> =
        orders.received.iter().map(|(letter, count)| format!("{count} {letter}")).collect();
    let nothing = ["nothing", "없음", "无"];
    let received =
        if types.is_empty() { language.choose(nothing).into() } else { types.join(language.list()) };
    let OrdersLoadReport { sessions, reconnects, sequenced_checked, inversions, .. } = orders;
    let logins = localized!(
        language,
        "{sessions} logged in, {reconnects} times again after a connection was dropped on purpose",
        "{sessions}개 로그인, 의도적으로 끊은 뒤 다시 로그인 {reconnects}회",
        "{sessions} 个已登录，主动断开后重新登录 {reconnects} 次",
    );
    let sequence = localized!(
        language,
        "{sequenced_checked} messages checked, {inversions} answers out of order",
        "메시지 {sequenced_checked}건 검사, 순서가 어긋난 응답 {inversions}건",
        "检查了 {sequenced_checked} 条消息，乱序回报 {inversions} 笔",
    );
    let mut rows = vec![
        row(language, ["sessions", "세션", "会话"], logins),
        row(language, ["received", "수신", "收到"], received),
        row(language, ["sequence", "순서", "序号"], sequence),
        row(language, ["shares", "수량", "数量"], shares(&orders.shares, language)),
    ];
    rows.extend(orders.mismatches.iter().map(|wrong| {
        let Mismatch { session, order, expected, got } = wrong;
        let text = localized!(
            language,
            "{session}, order {order}: expected {expected}; got {got}",
            "{session}, 주문 {order}: 기대 {expected}, 실제 {got}",
            "{session}，订单 {order}：应为 {expected}，实为 {got}",
        );
        row(language, ["mismatch", "불일치", "不一致"], text)
    }));
    rows
}

fn shares(shares: &ShareBalance, language: Language) -> String {
    let ShareBalance { entered, executed, cancelled, live } = shares;
    let verdict = language.choose(match shares.is_conserved() {
        true => ["they balance", "합이 맞음", "账目相符"],
        false => ["THEY DO NOT BALANCE", "합이 맞지 않음!", "账目不符！"],
    });
    localized!(
        language,
        "{entered} entered, {executed} executed, {cancelled} cancelled, {live} live: {verdict}",
        "주문 {entered}, 체결 {executed}, 취소 {cancelled}, 잔량 {live}: {verdict}",
        "委托 {entered}，成交 {executed}，撤销 {cancelled}，未成交 {live}：{verdict}",
    )
}

/// What the gateway or exchange counted itself, when it was observed.
fn node(report: &LoadReport, language: Language) -> Option<String> {
    let node = report.observed.as_ref()?.node.as_ref()?;
    let handed_off = node.handoff.as_ref().filter(|handoff| handoff.orders > 0).map(|handoff| {
        let percent = handoff.orders_handed_off as f64 * 100.0 / handoff.orders as f64;
        let wakes = handoff.wakes_sent as f64 / handoff.pushed.max(1) as f64;
        let strategy = &handoff.strategy;
        localized!(
            language,
            "; {percent:.1} % of orders handed off by {strategy}, {wakes:.3} wakes a hand-off",
            ". 주문의 {percent:.1} %를 다른 워커로 넘김({strategy}), 전달당 웨이크업 {wakes:.3}회",
            "；{percent:.1} % 的订单移交其他工作线程（{strategy}），每次移交唤醒 {wakes:.3} 次",
        )
    });
    let handed_off = handed_off.unwrap_or_default();
    let NodeWindow { received, sent, orders, .. } = node;
    let text = localized!(
        language,
        "{received} messages received, {sent} sent, {orders} orders{handed_off}",
        "메시지 수신 {received}건, 송신 {sent}건, 주문 {orders}건{handed_off}",
        "收到 {received} 条消息，发出 {sent} 条，订单 {orders} 笔{handed_off}",
    );
    Some(format!("{:<13} {text}", node.node.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weir_record::{orders::HandoffStats, window::ObservedWindow};

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
        let text = table(&report(), 120, Language::English);
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
        let text = table(&lossy, 120, Language::English);
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
        let message = |field| load.refusal(field, "no".into());
        assert_eq!(message("connections"), "--sessions: no");
        assert_eq!(message("depth"), "--in-flight: no");
        assert_eq!(message("accounts-prefix"), "--accounts-prefix: no");
        assert!(mix("fill").expect_err("no mix").to_string().starts_with("--mix \"fill\" is no mix"));
    }

    #[test]
    fn a_password_that_is_given_is_used() {
        assert_eq!(password(Some("SECRET")), "SECRET");
    }
}
