//! Orders that go through a gateway to an exchange. A cell defines how orders arrive and on which driver. An arm
//! defines the gateway's hand-off to another worker, and the first arm is the baseline on every driver.

use std::borrow::Cow;

use weir_record::{
    finding::NoTurns,
    gateway::ChainTotals,
    orders::NodeStats,
    spec::{ArmSpec, CellSpec, GatewaySubject, LoadMode, OrdersCell, StudySpec, Subject},
};

use super::{
    Factor, Kind, LoadWords, Protocol, Setting, Value,
    echo::{ACCEPTS, LOAD_CPUS, LOAD_WORKERS, check_arguments, check_driver, driver_name},
    factor::{load_shown, unusual},
    start::{self, Program, ServerStart, UPSTREAM},
};
use crate::{
    host_defaults::HostDefaults,
    launch::TrialRequest,
    limits::{Level, SpecError, one_of},
    toml_table::{At, Entry, FieldError, Table},
};

/// Hand-offs that `--handoff` takes.
const HANDOFFS: [&str; 7] = ["owner", "naive", "edge", "armed", "mesh", "mesh-spin", "msgring"];

/// The hand-off that hands nothing over.
const NO_HANDOFF: &str = "owner";

/// Routes that `--route` takes.
const ROUTES: [&str; 3] = ["own", "other", "modulo"];

/// Levels that `--journal` takes.
const JOURNALS: [&str; 3] = ["none", "os", "disk"];

/// Default number of client sessions of a cell, as in document 001.
const SESSIONS: u32 = 10;

/// Most orders in flight of a session when they arrive at a fixed rate: enough that the rate decides.
const OPEN_IN_FLIGHT: u32 = 64;

/// Driver of the exchange in studies that were stored before they named it.
const EXCHANGE_DRIVER_UNNAMED: &str = "uring";

/// Bytes of a new order.
const ORDER_BYTES: u32 = 47;

/// A kind of load: how many orders are in flight, and when new ones start.
struct Load {
    name: &'static str,
    depth: u32,
    in_flight_total: Option<u32>,
    mode: LoadMode,
}

/// All kinds of load. Paced load has a share of the baseline's capacity at flood.
const LOADS: [Load; 4] = [
    Load { name: "closed", depth: 1, in_flight_total: Some(1), mode: LoadMode::Closed },
    Load { name: "tps", depth: 1, in_flight_total: None, mode: LoadMode::Closed },
    Load {
        name: "paced",
        depth: 10,
        in_flight_total: None,
        mode: LoadMode::OpenShare { share: 0.5, poisson: true },
    },
    Load { name: "flood", depth: 10, in_flight_total: None, mode: LoadMode::Closed },
];

fn load(name: &str) -> Option<&'static Load> {
    LOADS.iter().find(|load| load.name == name)
}

fn load_of(cell: &CellSpec) -> Option<&'static Load> {
    load(&cell.orders.as_ref()?.load)
}

fn orders(cell: &mut CellSpec) -> &mut OrdersCell {
    cell.orders.get_or_insert_default()
}

const LOAD: Factor = Factor {
    key: "load",
    kind: Kind::Word(|text| {
        one_of("load", text, &LOADS.each_ref().map(|load| load.name)).map(|()| text.to_owned())
    }),
    default: Some(Value::Word(Cow::Borrowed("closed"))),
    set: |cell, level| {
        let Some(load) = load(level.word()) else { return };
        (cell.depth, cell.load) = (load.depth, load.mode);
        let orders = orders(cell);
        load.name.clone_into(&mut orders.load);
        orders.in_flight_total = load.in_flight_total;
    },
    shown: |cell| Some(cell.orders.as_ref()?.load.clone()),
};

const DRIVER: Factor = Factor {
    key: "driver",
    kind: Kind::Driver(|text| {
        let driver = driver_name(text);
        check_driver(driver)
            .map(|()| driver.to_owned())
            .map_err(|error| SpecError { key: "driver".to_owned(), ..error })
    }),
    default: Some(Value::Word(Cow::Borrowed("uring"))),
    set: |cell, level| level.word().clone_into(&mut orders(cell).driver),
    shown: |cell| Some(cell.orders.as_ref()?.driver.clone()),
};

const WORKERS: Factor = Factor {
    default: Some(Value::Number(2)),
    shown: |cell| Some(format!("w{}", cell.workers)),
    ..super::echo::WORKERS
};

const CONNECTIONS: Factor = Factor {
    kind: Kind::Number(Level::Sessions),
    default: Some(Value::Number(SESSIONS)),
    shown: |cell| unusual("s", cell.connections, SESSIONS),
    ..super::echo::CONNECTIONS
};

/// The depth of the load, unless a cell sets it.
const DEPTH: Factor = Factor {
    default: None,
    shown: |cell| unusual("d", cell.depth, load_of(cell)?.depth),
    ..super::echo::DEPTH
};

const JOURNAL: Factor = Factor {
    key: "journal",
    kind: Kind::Word(|text| one_of("journal", text, &JOURNALS).map(|()| text.to_owned())),
    default: Some(Value::Word(Cow::Borrowed("none"))),
    set: |cell, level| level.word().clone_into(&mut orders(cell).journal),
    shown: |cell| {
        let journal = &cell.orders.as_ref()?.journal;
        (journal != "none").then(|| journal.clone())
    },
};

/// How connections reach the workers of a gateway and its exchange, which have several each.
const ACCEPT: Factor = Factor {
    set: |cell, level| level.word().clone_into(&mut orders(cell).accept),
    shown: |cell| {
        let accept = &cell.orders.as_ref()?.accept;
        (accept != "acceptor").then(|| accept.clone())
    },
    ..super::echo::ACCEPT
};

/// The protocol of orders through a gateway.
pub(super) struct Orders;

impl Protocol for Orders {
    fn name(&self) -> &'static str {
        "orders"
    }

    fn factors(&self) -> &'static [Factor] {
        &[LOAD, DRIVER, WORKERS, CONNECTIONS, DEPTH, JOURNAL, ACCEPT, LOAD_WORKERS, LOAD_CPUS]
    }

    fn begin(&self, cell: &mut CellSpec) {
        cell.message_bytes = ORDER_BYTES;
        cell.orders = Some(OrdersCell::default());
    }

    fn settings(&self, table: &mut Table<'_>) -> Result<Vec<Setting>, FieldError> {
        let mut settings: Vec<Setting> = Vec::new();
        if let Some(total) = table.read("in_flight_total", |entry| entry.level(Level::InFlightTotal))? {
            settings.push(Box::new(move |cell| orders(cell).in_flight_total = Some(total)));
        }
        let driver = |entry: Entry<'_>| {
            let (at, key) = (entry.at, entry.key.clone());
            let driver = driver_name(&entry.text()?).to_owned();
            check_driver(&driver).map_err(|error| SpecError { key, ..error }).at(at).map(|()| driver)
        };
        if let Some(driver) = table.read("exchange_driver", driver)? {
            settings.push(Box::new(move |cell| driver.clone_into(&mut orders(cell).exchange_driver)));
        }
        if let Some(cpus) = table.read("exchange_cpus", Entry::cpus)? {
            settings.push(Box::new(move |cell| cpus.clone_into(&mut orders(cell).exchange_cpus)));
        }
        Ok(settings)
    }

    fn subject(&self, arm: &mut Table<'_>) -> Result<Subject, FieldError> {
        let one_of = |entry: Entry<'_>, known: &[&str]| {
            let (at, key) = (entry.at, entry.key.clone());
            let word = entry.text()?;
            one_of(&key, &word, known).at(at).map(|()| word)
        };
        let handoff = arm.required("handoff", |entry| one_of(entry, &HANDOFFS))?;
        let usual = if handoff == NO_HANDOFF { "own" } else { "other" };
        let route = arm.read("route", |entry| one_of(entry, &ROUTES))?.unwrap_or_else(|| usual.to_owned());
        let arguments = arm.read("arguments", Entry::words)?.unwrap_or_default();
        check_arguments(&arguments).at(arm.at())?;
        Ok(Subject::Gateway(GatewaySubject {
            handoff,
            route,
            driver: arm.read("driver", |entry| {
                let at = entry.at;
                let driver = driver_name(&entry.text()?).to_owned();
                check_driver(&driver).at(at).map(|()| driver)
            })?,
            workers: arm.read("workers", |entry| entry.level(Level::Workers))?,
            options: arm.read("options", Entry::options)?.unwrap_or_default(),
            arguments,
            program: arm.read("program", Entry::text)?,
        }))
    }

    /// A core for each thread if there are five; the exchange has the first driver of the study.
    fn place(&self, spec: &mut StudySpec, host_defaults: &HostDefaults) {
        let cpus = host_defaults.order_cpus.as_ref();
        spec.server_cpus =
            cpus.map_or_else(|| host_defaults.server_cpus.clone(), |cpus| cpus.gateway.clone());
        spec.load_cpus = cpus.map_or_else(|| host_defaults.load_cpus.clone(), |cpus| cpus.load.clone());
        let first = spec.cells.iter().find_map(|cell| cell.orders.as_ref()).map(|it| it.driver.clone());
        for orders in spec.cells.iter_mut().filter_map(|cell| cell.orders.as_mut()) {
            if orders.exchange_driver.is_empty() {
                orders.exchange_driver = first.clone().unwrap_or_default();
            }
            if let Some(cpus) = cpus.filter(|_| orders.exchange_cpus.is_empty()) {
                orders.exchange_cpus.clone_from(&cpus.exchange);
            }
        }
    }

    fn generator(&self) -> Option<LoadWords> {
        Some(words)
    }

    /// An exchange, and a gateway in front of it.
    fn servers(&self, request: &TrialRequest<'_>) -> Vec<ServerStart> {
        let (Subject::Gateway(subject), Some(cell)) = (&request.arm.subject, &request.cell.orders) else {
            return Vec::new();
        };
        let exchange = exchange_words(request, subject, cell);
        let gateway = gateway_words(request, subject, cell);
        [("exchange", exchange, None), ("gateway", gateway, subject.program.clone())]
            .map(|(name, words, build)| ServerStart { name, program: Program::Weir, words, build })
            .into()
    }

    fn chain_totals(&self, cell: &CellSpec, nodes: &[NodeStats]) -> Option<ChainTotals> {
        let [gateway, exchange] = nodes else { return None };
        Some(ChainTotals {
            gateway_received: gateway.received,
            gateway_sent: gateway.sent,
            gateway_orders: gateway.orders,
            gateway_commits: gateway.journal.as_ref().map_or(0, |journal| journal.commits),
            exchange_received: exchange.received,
            exchange_orders: exchange.orders,
            exchange_sent: exchange.sent,
            sessions: cell.connections,
        })
    }

    fn runs(&self, subject: &Subject) -> Vec<String> {
        let Subject::Gateway(gateway) = subject else { return Vec::new() };
        let mut words: Vec<String> = gateway.program.iter().cloned().collect();
        words.push(format!("--handoff {} --route {}", gateway.handoff, gateway.route));
        words.extend(gateway.driver.iter().map(|driver| format!("--driver {driver}")));
        words.extend(gateway.workers.iter().map(|workers| format!("--workers {workers}")));
        words.extend(super::shown_options(&gateway.options));
        words.extend(gateway.arguments.iter().cloned());
        words
    }

    /// Every hand-off gets the same orders at the same rate.
    fn has_capacity_of_baseline(&self) -> bool {
        true
    }

    /// How orders arrive is a separate factor, and one of its levels is a rate: a study makes its claim there.
    fn has_rungs(&self) -> bool {
        false
    }

    fn load_shown(&self, cell: &CellSpec) -> Option<String> {
        (cell.load != load_of(cell)?.mode).then(|| load_shown(&cell.load))
    }

    fn obstacle(&self, _cell: &CellSpec) -> Option<NoTurns> {
        Some(NoTurns::Gateway)
    }

    fn check_cell(&self, cell: &CellSpec) -> Result<(), SpecError> {
        let Some(orders) = &cell.orders else { return Ok(()) };
        one_of("journal", &orders.journal, &JOURNALS)?;
        one_of("accept", &orders.accept, &ACCEPTS)?;
        crate::limits::level(Level::Sessions, i64::from(cell.connections))?;
        if orders.in_flight_total == Some(0) {
            return Err(SpecError::new("depth", format!("{} has nothing in flight", cell.id)));
        }
        if let Some(total) = orders.in_flight_total.filter(|total| *total < cell.load_workers) {
            let message = format!(
                "{} has {total} in flight, which {} workers of the generator cannot share",
                cell.id, cell.load_workers
            );
            return Err(SpecError::new("load_workers", message));
        }
        Ok(())
    }

    /// Checks that every arm is a gateway, and that its hand-off exists on every driver of its cells.
    fn check_arms(&self, spec: &StudySpec) -> Result<(), SpecError> {
        spec.arms.iter().try_for_each(|arm| check_arm(spec, arm).map_err(|error| error.of_arm(&arm.name)))
    }
}

fn words(cell: &CellSpec, address: &str) -> Vec<String> {
    let head = ["load", "orders", "--json", "--target", address];
    let total = cell.orders.as_ref().and_then(|orders| orders.in_flight_total);
    let in_flight = match (cell.load, total) {
        (LoadMode::Closed, Some(total)) => ("--in-flight-total", total.to_string()),
        (LoadMode::Closed, None) => ("--in-flight", cell.depth.to_string()),
        _ => ("--in-flight", cell.depth.max(OPEN_IN_FLIGHT).to_string()),
    };
    super::options(&head, &[("--sessions", cell.connections.to_string()), in_flight])
}

fn exchange_words(request: &TrialRequest<'_>, subject: &GatewaySubject, cell: &OrdersCell) -> Vec<String> {
    let cpus = if cell.exchange_cpus.is_empty() { request.load_cpus } else { &cell.exchange_cpus };
    let driver = match cell.exchange_driver.as_str() {
        "" => EXCHANGE_DRIVER_UNNAMED,
        named => named,
    };
    let mut words = node_words(request, subject, cell, ("exchange", driver, cpus));
    words.extend(["--mode", "echo-accept"].map(str::to_owned));
    words
}

fn gateway_words(request: &TrialRequest<'_>, subject: &GatewaySubject, cell: &OrdersCell) -> Vec<String> {
    let driver = subject.driver.as_deref().unwrap_or(&cell.driver);
    let mut words = node_words(request, subject, cell, ("gateway", driver, request.server_cpus));
    let own = ["--upstream", UPSTREAM, "--handoff", &subject.handoff, "--route", &subject.route];
    words.extend(own.map(str::to_owned));
    words.extend(start::engine_options(&subject.options));
    words.extend(subject.arguments.iter().cloned());
    words
}

/// Arguments of gateway and exchange. A journal is in the trial's own folder, so every trial begins with an empty
/// one.
fn node_words(
    request: &TrialRequest<'_>,
    subject: &GatewaySubject,
    cell: &OrdersCell,
    (name, driver, cpus): (&str, &str, &[usize]),
) -> Vec<String> {
    let mut words = start::serve(name, driver, subject.workers.unwrap_or(request.cell.workers), cpus);
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    // Neighbours use accounts beyond those of the sessions.
    option("--demo", (request.cell.connections as usize + request.cell.neighbours.len()).to_string());
    option("--accept", cell.accept.clone());
    option("--journal", cell.journal.clone());
    if cell.journal != "none" {
        option("--journal-dir", format!("{{scratch}}/{name}"));
    }
    words
}

fn check_arm(spec: &StudySpec, arm: &ArmSpec) -> Result<(), SpecError> {
    let Subject::Gateway(subject) = &arm.subject else {
        let message = format!("{} is no gateway, and the study is of orders", arm.name);
        return Err(SpecError::new("arm", message));
    };
    one_of("arm.handoff", &subject.handoff, &HANDOFFS)?;
    one_of("arm.route", &subject.route, &ROUTES)?;
    check_arguments(&subject.arguments)?;
    let mut own = spec.cells.iter().filter(|cell| cell.has_arm(&arm.name));
    own.try_for_each(|cell| on_driver(&arm.name, subject, cell))
}

fn on_driver(arm: &str, subject: &GatewaySubject, cell: &CellSpec) -> Result<(), SpecError> {
    let Some(orders) = &cell.orders else { return Ok(()) };
    let own = subject.driver.as_deref().unwrap_or(&orders.driver);
    check_driver(own)?;
    if own == "blocking" {
        let message =
            format!("{arm} in {}: a gateway needs many operations at once; blocking has one", cell.id);
        return Err(SpecError::new("arm.driver", message));
    }
    if subject.handoff == "msgring" && own != "uring" {
        let message = format!("{arm} in {}: a message from ring to ring needs io_uring, not {own}", cell.id);
        return Err(SpecError::new("arm.handoff", message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use weir_record::finding::Finding;

    use super::*;
    use crate::{builtin::BuiltIn, host_defaults::DriverFound, validate};

    fn study_on(host_defaults: &HostDefaults) -> crate::study_file::Study {
        BuiltIn::named("gateway").expect("it is built in").study(host_defaults).expect("it is right")
    }

    fn study() -> StudySpec {
        study_on(&HostDefaults::default()).spec
    }

    fn refusal(change: impl FnOnce(&mut StudySpec)) -> String {
        let mut spec = study();
        change(&mut spec);
        validate::study(&spec).expect_err("it is refused").to_string()
    }

    fn first_arm(spec: &mut StudySpec) -> &mut GatewaySubject {
        match &mut spec.arms[1].subject {
            Subject::Gateway(subject) => subject,
            other => panic!("{other:?}"),
        }
    }

    type Change = fn(&mut StudySpec);

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_key() {
        let cases: [(Change, &str); 9] = [
            (|spec| first_arm(spec).handoff = "pigeon".to_owned(), "arm.handoff: "),
            (|spec| first_arm(spec).route = "scenic".to_owned(), "arm.route: "),
            (|spec| first_arm(spec).driver = Some("blocking".to_owned()), "arm.driver: "),
            (|spec| first_arm(spec).driver = Some("auto".to_owned()), "arm.driver: "),
            (|spec| first_arm(spec).handoff = "msgring".to_owned(), "arm.handoff: naive in closed-epoll-w2"),
            (|spec| first_arm(spec).arguments = vec!["--listen".to_owned()], "arm.arguments: "),
            (|spec| "echo".clone_into(&mut spec.cells[0].protocol), "protocol: "),
            (|spec| "smtp".clone_into(&mut spec.cells[0].protocol), "protocol: there is no protocol"),
            (
                |spec| spec.arms[1].subject = Subject::Command { argv: vec!["{port}".to_owned()] },
                "arm: naive",
            ),
        ];
        for (change, key) in cases {
            let said = refusal(change);
            assert!(said.starts_with(key), "{key}: {said}");
        }
    }

    #[test]
    fn a_gateway_is_no_arm_of_another_study() {
        let mut spec = weir_judge::sample::study(&["epoll", "uring"], 6, 1);
        spec.arms[1].subject = Subject::Gateway(GatewaySubject::default());
        let said = validate::study(&spec).expect_err("it is refused").to_string();
        assert!(said.contains("no cell has orders"), "{said}");
    }

    #[test]
    fn without_io_uring_epoll_has_the_primary_cell_and_the_exchange_and_the_ring_is_named() {
        let gone = DriverFound {
            driver: "uring".to_owned(),
            available: false,
            detail: Finding::IoUringDisabled { level: 2 },
            unlock: None,
        };
        let found = study_on(&HostDefaults { tried: vec![gone], ..HostDefaults::default() });
        let missing: Vec<&str> = found.missing_arms.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!((found.spec.cells[0].id.as_str(), missing), ("closed-epoll-w2", vec!["msgring"]));
        assert!(found.spec.arms.iter().all(|arm| arm.name != "msgring"));
        let mut exchanges = found.spec.cells.iter().filter_map(|cell| cell.orders.as_ref());
        assert!(exchanges.all(|orders| orders.exchange_driver == "epoll"));
    }

    fn request<'a>(
        arm: &'a ArmSpec,
        cell: &'a CellSpec,
        spec: &'a StudySpec,
        interrupt: &'a AtomicBool,
    ) -> TrialRequest<'a> {
        TrialRequest {
            arm,
            cell,
            server_cpus: &spec.server_cpus,
            load_cpus: &spec.load_cpus,
            neighbours: &spec.neighbours,
            seed: 1,
            block: 0,
            position: 0,
            interrupt,
        }
    }

    /// The arguments for an arm in a cell: of the exchange, the gateway, and the generator.
    fn said(arm: &str, cell: &str, load: Option<LoadMode>) -> [String; 3] {
        let host_defaults =
            HostDefaults { seed: 7, server_cpus: vec![0], load_cpus: vec![1], ..HostDefaults::default() };
        let spec = study_on(&host_defaults).spec;
        let arm = spec.arms.iter().find(|it| it.name == arm).expect("the arm is there");
        let mut cell = spec.cells.iter().find(|it| it.id == cell).expect("the cell is there").clone();
        cell.load = load.unwrap_or(cell.load);
        let interrupt = AtomicBool::new(false);
        let found = Orders.servers(&request(arm, &cell, &spec, &interrupt));
        let [exchange, gateway] = found.try_into().ok().expect("there are two");
        [exchange.words, gateway.words, words(&cell, "127.0.0.1:8")].map(|words| words.join(" "))
    }

    #[test]
    fn the_three_are_told_what_the_arm_and_the_cell_say() {
        let [exchange, gateway, load] = said("naive-modulo", "closed-epoll-w2", None);
        insta::assert_snapshot!(exchange, @"serve exchange --driver uring --listen {listen} --workers 2 --stats-socket {stats_socket} --pin 1 --demo 10 --accept acceptor --journal none --mode echo-accept");
        insta::assert_snapshot!(gateway, @"serve gateway --driver epoll --listen {listen} --workers 2 --stats-socket {stats_socket} --pin 0 --demo 10 --accept acceptor --journal none --upstream {upstream} --handoff naive --route modulo");
        insta::assert_snapshot!(load, @"load orders --json --target 127.0.0.1:8 --sessions 10 --in-flight-total 1");
        let [exchange, gateway, load] = said("one-worker", "flood-uring-w2", None);
        assert!(exchange.contains("--workers 1") && gateway.contains("--workers 1"), "{exchange} {gateway}");
        assert!(gateway.contains("--handoff owner --route own") && gateway.contains("--driver uring"));
        assert!(load.ends_with("--in-flight 10"), "{load}");
    }

    #[test]
    fn a_paced_load_has_room_for_its_rate() {
        let open = LoadMode::Open { rate_per_second: 5_000.0, poisson: true, share: None };
        let [_, _, load] = said("mesh", "paced-uring-w2", Some(open));
        assert!(load.ends_with("--in-flight 64"), "{load}");
    }

    #[test]
    fn a_journal_is_in_the_trials_own_folder() {
        let mut spec = study();
        spec.cells[0].orders.as_mut().expect("it is of orders").journal = "disk".to_owned();
        let interrupt = AtomicBool::new(false);
        let found = Orders.servers(&request(&spec.arms[1], &spec.cells[0], &spec, &interrupt));
        for ServerStart { name, words, .. } in found {
            let folder = words.windows(2).find(|two| two[0] == "--journal-dir").map(|two| two[1].clone());
            assert_eq!(folder, Some(format!("{{scratch}}/{name}")));
        }
    }
}
