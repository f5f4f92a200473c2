//! The order gateway's side of a trial: an exchange, then a gateway in front of it; and what both counted when the
//! load is over.

use std::time::{Duration, Instant};

use weir_evidence::stats::StatsClient;
use weir_record::{
    gateway::ChainTotals,
    orders::NodeStats,
    spec::{GatewaySubject, OrdersCell},
};

use super::{files::TrialFiles, server::Server};
use crate::{host_defaults::cpu_list, launch::TrialRequest};

/// What the exchange is called among the processes of a trial.
pub(super) const EXCHANGE: &str = "exchange";

/// Driver of the exchange in studies that were stored before they named it.
const EXCHANGE_DRIVER_UNNAMED: &str = "uring";

/// Longest wait until nothing is on its way between the two any more.
const SETTLE_MAX: Duration = Duration::from_secs(1);

/// Time between two looks while waiting for that.
const SETTLE_LOOK: Duration = Duration::from_millis(10);

/// What the laboratory says to `weir serve exchange`.
pub(super) fn exchange_arguments(
    request: &TrialRequest<'_>,
    subject: &GatewaySubject,
    cell: &OrdersCell,
    (stats_socket, files): (&str, &TrialFiles),
) -> Vec<String> {
    let mut arguments: Vec<String> =
        ["serve", "exchange", "--mode", "echo-accept"].map(str::to_owned).to_vec();
    let cpus = if cell.exchange_cpus.is_empty() { request.load_cpus } else { &cell.exchange_cpus };
    let driver = match cell.exchange_driver.as_str() {
        "" => EXCHANGE_DRIVER_UNNAMED,
        named => named,
    };
    common(&mut arguments, request, subject, cell, (driver, cpus, stats_socket));
    arguments.extend(journal_folder(cell, files, "exchange"));
    arguments
}

/// What it says to `weir serve gateway`.
pub(super) fn gateway_arguments(
    request: &TrialRequest<'_>,
    subject: &GatewaySubject,
    cell: &OrdersCell,
    upstream: &str,
    (stats_socket, files): (&str, &TrialFiles),
) -> Vec<String> {
    let mut arguments: Vec<String> = ["serve", "gateway", "--upstream", upstream].map(str::to_owned).to_vec();
    arguments.extend(["--handoff", &subject.handoff, "--route", &subject.route].map(str::to_owned));
    let driver = subject.driver.as_deref().unwrap_or(&cell.driver);
    common(&mut arguments, request, subject, cell, (driver, request.server_cpus, stats_socket));
    for (name, value) in &subject.options {
        arguments.extend(["--option".to_owned(), format!("{name}={value}")]);
    }
    arguments.extend(journal_folder(cell, files, "gateway"));
    arguments.extend(subject.arguments.iter().map(|word| files.substituted(word)));
    arguments
}

/// Where one of them keeps its journal: in the trial's own folder, so that every trial begins with an empty one.
fn journal_folder(cell: &OrdersCell, files: &TrialFiles, side: &str) -> Vec<String> {
    let folder = files.scratch().filter(|_| cell.journal != "none");
    let folder = folder.map(|folder| folder.join(side).display().to_string());
    folder.map(|folder| vec!["--journal-dir".to_owned(), folder]).unwrap_or_default()
}

/// What both are told.
fn common(
    arguments: &mut Vec<String>,
    request: &TrialRequest<'_>,
    subject: &GatewaySubject,
    cell: &OrdersCell,
    (driver, cpus, stats_socket): (&str, &[usize], &str),
) {
    let workers = subject.workers.unwrap_or(request.cell.workers);
    let mut option = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    // Neighbours have accounts beyond those of the sessions.
    let accounts = request.cell.connections as usize + request.cell.neighbours.len();
    option("--demo", accounts.to_string());
    option("--driver", driver.to_owned());
    option("--listen", "127.0.0.1:0".to_owned());
    option("--workers", workers.to_string());
    option("--accept", cell.accept.clone());
    option("--journal", cell.journal.clone());
    option("--stats-socket", stats_socket.to_owned());
    if !cpus.is_empty() {
        option("--pin", cpu_list(cpus));
    }
}

/// Reads what gateway and exchange counted, when nothing is on its way any more; `None` for servers of anything else,
/// and where one of the two does not answer.
pub(super) fn totals(gateway: &Server, sessions: u32) -> Option<ChainTotals> {
    let behind = gateway.behind.as_deref()?;
    let deadline = Instant::now() + SETTLE_MAX;
    loop {
        let (front, back) = (node(gateway)?, node(&behind.exchange)?);
        let totals = ChainTotals {
            gateway_received: front.received,
            gateway_sent: front.sent,
            gateway_orders: front.orders,
            gateway_commits: front.journal.as_ref().map_or(0, |journal| journal.commits),
            exchange_received: back.received,
            exchange_orders: back.orders,
            exchange_sent: back.sent,
            sessions,
        };
        if totals.is_whole() || Instant::now() >= deadline {
            return Some(totals);
        }
        std::thread::park_timeout(SETTLE_LOOK);
    }
}

/// An exchange that runs behind a gateway.
pub(super) struct Upstream {
    pub(super) exchange: Server,
}

fn node(server: &Server) -> Option<NodeStats> {
    StatsClient::connect(server.stats_socket.as_deref()?).ok()?.read().ok()?.node
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use weir_record::spec::{LoadMode, Subject};

    use super::*;
    use crate::{builtin::BuiltIn, host_defaults::HostDefaults, protocol};

    /// What is said for an arm in a cell: to the exchange, to the gateway, and to the generator.
    fn said(arm: &str, cell: &str, load: Option<LoadMode>) -> [String; 3] {
        let host_defaults =
            HostDefaults { seed: 7, server_cpus: vec![0], load_cpus: vec![1], ..HostDefaults::default() };
        let gateway = BuiltIn::named("gateway").expect("it is built in");
        let spec = gateway.study(&host_defaults).expect("it is right").spec;
        let arm = spec.arms.iter().find(|it| it.name == arm).expect("the arm is there");
        let mut cell = spec.cells.iter().find(|it| it.id == cell).expect("the cell is there").clone();
        cell.load = load.unwrap_or(cell.load);
        let interrupt = AtomicBool::new(false);
        let request = TrialRequest {
            arm,
            cell: &cell,
            server_cpus: &spec.server_cpus,
            load_cpus: &spec.load_cpus,
            neighbours: &spec.neighbours,
            seed: 1,
            block: 0,
            position: 0,
            interrupt: &interrupt,
        };
        let Subject::Gateway(subject) = &arm.subject else { panic!("{:?}", arm.subject) };
        let orders = cell.orders.as_ref().expect("it is of orders");
        [
            exchange_arguments(&request, subject, orders, ("@x", &TrialFiles::default())),
            gateway_arguments(&request, subject, orders, "127.0.0.1:9", ("@g", &TrialFiles::default())),
            protocol::of(&cell).generator().expect("orders have one")(&cell, "127.0.0.1:8"),
        ]
        .map(|words| words.join(" "))
    }

    #[test]
    fn the_three_are_told_what_the_arm_and_the_cell_say() {
        let [exchange, gateway, load] = said("naive-modulo", "closed-epoll-w2", None);
        insta::assert_snapshot!(exchange, @"serve exchange --mode echo-accept --demo 10 --driver uring --listen 127.0.0.1:0 --workers 2 --accept acceptor --journal none --stats-socket @x --pin 1");
        insta::assert_snapshot!(gateway, @"serve gateway --upstream 127.0.0.1:9 --handoff naive --route modulo --demo 10 --driver epoll --listen 127.0.0.1:0 --workers 2 --accept acceptor --journal none --stats-socket @g --pin 0");
        insta::assert_snapshot!(load, @"load orders --json --target 127.0.0.1:8 --sessions 10 --in-flight-total 1");
        let [exchange, gateway, load] = said("one-worker", "flood-uring-w2", None);
        assert!(exchange.contains("--workers 1") && gateway.contains("--workers 1"), "{exchange} {gateway}");
        assert!(gateway.contains("--handoff owner --route own") && gateway.contains("--driver uring"));
        assert!(load.ends_with("--in-flight 10"), "{load}");
    }

    #[test]
    fn a_paced_load_has_room_for_its_rate() {
        let open = LoadMode::Open { rate_per_second: 5_000.0, poisson: true };
        let [_, _, load] = said("mesh", "paced-uring-w2", Some(open));
        assert!(load.ends_with("--in-flight 64"), "{load}");
    }
}
