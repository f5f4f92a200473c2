//! The built-in study `gateway`: the runs of document 001 by name, and what it costs to hand an order to another
//! worker, in every way there is, against not handing it over.
//!
//! A trial is an exchange, a gateway in front of it and a generator of orders. Arms are ways of handing over, the
//! baseline is the worker that sends an order on itself; the driver belongs to the cell, so that every cell has a
//! baseline of its own. Two arms are no strategies: `one-worker` is the baseline with one worker instead of two, and
//! `naive-modulo` hands over what document 001 handed over, which is not every order.

use std::collections::BTreeMap;

use weir_judge::handoff::{BASELINE, MODULO, ONE_WORKER, YARDSTICK};
use weir_record::{
    spec::{ArmSpec, CellRole, CellSpec, GatewaySubject, LoadMode, OrdersCell, StudySpec, Subject},
    study::MissingArm,
};

use crate::{file::Surroundings, http, published, quick::Availability, validate};

/// Name of the study.
pub const NAME: &str = "gateway";

const MILLISECOND_NS: u64 = 1_000_000;

/// Sessions of clients, as in the document.
const SESSIONS: u32 = 10;

/// Orders in flight of each session at flood; the document has no such row.
const FLOOD_DEPTH: u32 = 10;

/// What paced load offers, of what the baseline can do at flood.
const PACED: LoadMode = LoadMode::OpenShare { share: 0.5, poisson: true };

/// Bytes of the order that enters.
pub(crate) const ORDER_BYTES: u32 = 47;

/// A way of handing over that only io_uring has.
const RING_ONLY: &str = "msgring";

/// Ways of handing over, the baseline first.
pub const STRATEGIES: [&str; 7] = [BASELINE, YARDSTICK, "edge", "armed", "mesh", "mesh-spin", RING_ONLY];

/// Size of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// io_uring and epoll with two workers, in about a quarter of an hour.
    Scaled,
    /// Every driver with one worker and with two, in several hours.
    Full,
}

/// Lengths and lists of a plan.
struct Sizes {
    drivers: &'static [&'static str],
    workers: &'static [u32],
    window_ns: u64,
    warmup_ns_max: u64,
    blocks: u32,
    time_cap_ns: u64,
}

impl Plan {
    fn sizes(self) -> Sizes {
        match self {
            Self::Scaled => Sizes {
                drivers: &["uring", "epoll"],
                workers: &[2],
                window_ns: 1_000 * MILLISECOND_NS,
                // The generator needs 0.6 s to call a load steady.
                warmup_ns_max: 900 * MILLISECOND_NS,
                blocks: 6,
                time_cap_ns: 960_000 * MILLISECOND_NS,
            },
            Self::Full => Sizes {
                drivers: &["uring", "epoll", "poll", "select"],
                workers: &[2, 1],
                window_ns: 3_000 * MILLISECOND_NS,
                warmup_ns_max: 1_000 * MILLISECOND_NS,
                blocks: 12,
                time_cap_ns: 28_800_000 * MILLISECOND_NS,
            },
        }
    }
}

/// A kind of load.
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    depth: u32,
    in_flight_total: Option<u32>,
    mode: LoadMode,
}

/// One order on its way at a time, through ten sessions: the document's S1 to S3.
const CLOSED: Load = Load { name: "closed", depth: 1, in_flight_total: Some(1), mode: LoadMode::Closed };

/// One order on its way in each session: the document's TPS runs.
const TPS: Load = Load { name: "tps", depth: 1, in_flight_total: None, mode: LoadMode::Closed };

/// Orders that come at a rate of their own.
const PACED_LOAD: Load = Load { name: "paced", depth: FLOOD_DEPTH, in_flight_total: None, mode: PACED };

/// Ten orders on their way in each session.
const FLOOD: Load = Load { name: "flood", depth: FLOOD_DEPTH, in_flight_total: None, mode: LoadMode::Closed };

/// CPUs of the three sides, where the machine has enough of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The gateway's, one for each of two workers.
    pub gateway: Vec<usize>,
    /// The exchange's, likewise.
    pub exchange: Vec<usize>,
    /// The generator's.
    pub load: Vec<usize>,
}

/// A physical core for each of five threads, or none: then gateway and generator have the CPUs every study gives them,
/// and the exchange shares the generator's.
pub fn places(cores: &[Vec<usize>]) -> Option<Places> {
    let first = |core: usize| cores.get(core)?.first().copied();
    Some(Places {
        gateway: vec![first(0)?, first(1)?],
        exchange: vec![first(2)?, first(3)?],
        load: vec![first(4)?],
    })
}

/// The study for this machine, and the arm that is missing when io_uring does not run. The exchange has the plan's
/// first driver that runs.
pub fn gateway(
    surroundings: &Surroundings,
    places: Option<&Places>,
    uring: &Availability,
    plan: Plan,
) -> (StudySpec, Vec<MissingArm>) {
    let sizes = plan.sizes();
    let has_ring = *uring == Availability::Runs;
    let drivers: Vec<&str> =
        sizes.drivers.iter().copied().filter(|driver| has_ring || *driver != "uring").collect();
    let exchange_driver = drivers[0];
    let exchange_cpus = places.map(|places| places.exchange.clone()).unwrap_or_default();
    let mut cells = Vec::new();
    for (workers, driver) in
        sizes.workers.iter().flat_map(|workers| drivers.iter().map(move |it| (*workers, *it)))
    {
        for (load, arms) in loads(workers, driver) {
            let role = if cells.is_empty() { CellRole::Headline } else { CellRole::Exploratory };
            let mut cell = cell(load, driver, workers, &arms);
            if let Some(orders) = &mut cell.orders {
                exchange_driver.clone_into(&mut orders.exchange_driver);
                orders.exchange_cpus.clone_from(&exchange_cpus);
            }
            cells.push(CellSpec {
                role,
                window_ns: sizes.window_ns,
                warmup_ns_max: sizes.warmup_ns_max,
                blocks: sizes.blocks,
                ..cell
            });
        }
    }
    let spec = StudySpec {
        name: NAME.to_owned(),
        title:
            "What does it cost to hand an order to another worker, and which way of doing it is the cheapest?"
                .to_owned(),
        seed: surroundings.seed,
        arms: arms(has_ring),
        cells,
        server_cpus: places.map_or_else(|| surroundings.server_cpus.clone(), |places| places.gateway.clone()),
        load_cpus: places.map_or_else(|| surroundings.load_cpus.clone(), |places| places.load.clone()),
        smallest_effect: http::SMALLEST_EFFECT,
        time_cap_ns: sizes.time_cap_ns,
        published: published::of_gateway(&cell(CLOSED, "epoll", 2, &[]).id, &cell(TPS, "epoll", 2, &[]).id),
        ways: Vec::new(),
    };
    (spec, http::missing(RING_ONLY, uring))
}

/// The kinds of load of a number of workers, and the arms of each. With one worker there is nobody to hand over to:
/// what a strategy costs there is what it costs when it is not used.
fn loads(workers: u32, driver: &str) -> Vec<(Load, Vec<&'static str>)> {
    let strategies: Vec<&str> =
        STRATEGIES.into_iter().filter(|name| driver == "uring" || *name != RING_ONLY).collect();
    let with = |further: &[&'static str]| [strategies.as_slice(), further].concat();
    if workers == 1 {
        return [CLOSED, PACED_LOAD, FLOOD].into_iter().map(|load| (load, with(&[]))).collect();
    }
    vec![
        (CLOSED, with(&[MODULO, ONE_WORKER])),
        (TPS, vec![BASELINE, ONE_WORKER]),
        (PACED_LOAD, with(&[])),
        (FLOOD, with(&[ONE_WORKER])),
    ]
}

fn cell(load: Load, driver: &str, workers: u32, arms: &[&str]) -> CellSpec {
    let mut cell = CellSpec {
        id: String::new(),
        role: CellRole::Exploratory,
        connections: SESSIONS,
        depth: load.depth,
        message_bytes: ORDER_BYTES,
        idle_connections: 0,
        workers,
        load: load.mode,
        window_ns: 0,
        warmup_ns_max: 0,
        blocks: 0,
        http: None,
        storage: None,
        orders: Some(OrdersCell {
            driver: driver.to_owned(),
            load: load.name.to_owned(),
            in_flight_total: load.in_flight_total,
            journal: "none".to_owned(),
            accept: "acceptor".to_owned(),
            exchange_driver: String::new(),
            exchange_cpus: Vec::new(),
        }),
        alternation: None,
        arms: arms.iter().map(|name| (*name).to_owned()).collect(),
    };
    cell.id = validate::cell_id(&cell);
    cell
}

fn arms(has_ring: bool) -> Vec<ArmSpec> {
    let strategies = STRATEGIES.into_iter().filter(|name| has_ring || *name != RING_ONLY);
    let mut arms: Vec<ArmSpec> = strategies
        .map(|name| arm(name, name, if name == BASELINE { "own" } else { "other" }, None))
        .collect();
    arms.push(arm(MODULO, YARDSTICK, "modulo", None));
    arms.push(arm(ONE_WORKER, BASELINE, "own", Some(1)));
    arms
}

fn arm(name: &str, handoff: &str, route: &str, workers: Option<u32>) -> ArmSpec {
    let subject = GatewaySubject {
        handoff: handoff.to_owned(),
        route: route.to_owned(),
        workers,
        ..GatewaySubject::default()
    };
    ArmSpec { name: name.to_owned(), subject: Subject::Gateway(subject), load_options: BTreeMap::new() }
}

#[cfg(test)]
mod tests {
    use weir_judge::handoff::DOCUMENT_RUNS;

    use super::*;

    fn surroundings() -> Surroundings {
        Surroundings { seed: 1, server_cpus: vec![0], load_cpus: vec![1] }
    }

    #[test]
    fn gateway_is_a_valid_study_of_about_a_quarter_of_an_hour() {
        let (spec, missing) = gateway(&surroundings(), None, &Availability::Runs, Plan::Scaled);
        assert_eq!((validate::study(&spec), missing.len()), (Ok(()), 0));
        let ids: Vec<&str> = spec.cells.iter().map(|cell| cell.id.as_str()).collect();
        assert_eq!(
            ids,
            [
                "closed-uring-w2",
                "tps-uring-w2",
                "paced-uring-w2",
                "flood-uring-w2",
                "closed-epoll-w2",
                "tps-epoll-w2",
                "paced-epoll-w2",
                "flood-epoll-w2"
            ]
        );
        assert!(spec.cells.iter().all(|cell| cell.blocks >= 6));
        let trials: u64 =
            spec.cells.iter().map(|cell| u64::from(cell.blocks) * (cell.arms.len() as u64 + 1)).sum();
        // Window, warm-up at its cap, and 400 ms for starting three processes, logging in, and reading the machine.
        let longest_ns = trials * (1_000 + 900 + 400) * MILLISECOND_NS;
        assert!(longest_ns < 900_000 * MILLISECOND_NS, "{trials} trials");
        assert!(longest_ns < spec.time_cap_ns);
    }

    #[test]
    fn every_run_of_the_document_has_its_counterpart_on_every_driver() {
        let (spec, _) = gateway(&surroundings(), None, &Availability::Runs, Plan::Full);
        assert_eq!(validate::study(&spec), Ok(()));
        for driver in ["uring", "epoll", "poll", "select"] {
            for run in &DOCUMENT_RUNS {
                let is_there = |cell: &&CellSpec| {
                    let orders = cell.orders.as_ref().expect("it is of orders");
                    orders.driver == driver && orders.load == run.load && cell.workers == 2
                };
                let cell = spec.cells.iter().find(is_there).expect("the cell is there");
                assert!(cell.has_arm(run.arm), "{} on {driver}", run.name);
            }
        }
        let on_select = |cell: &&CellSpec| cell.id.contains("select");
        assert!(spec.cells.iter().filter(on_select).all(|cell| !cell.has_arm(RING_ONLY)));
    }

    #[test]
    fn without_io_uring_epoll_has_the_headline_and_the_ring_is_named() {
        let gone = Availability::Missing { reason: "kernel.io_uring_disabled is 2".to_owned(), unlock: None };
        let (spec, missing) = gateway(&surroundings(), None, &gone, Plan::Scaled);
        assert_eq!(validate::study(&spec), Ok(()));
        assert_eq!((spec.cells[0].id.as_str(), missing[0].name.as_str()), ("closed-epoll-w2", RING_ONLY));
        let mut exchanges = spec.cells.iter().filter_map(|cell| cell.orders.as_ref());
        assert!(exchanges.all(|orders| orders.exchange_driver == "epoll"));
    }

    #[test]
    fn five_cores_are_one_for_each_thread() {
        let cores: Vec<Vec<usize>> = (0..6).map(|core| vec![core, core + 6]).collect();
        let found = places(&cores).expect("there are enough");
        assert_eq!((found.gateway, found.exchange, found.load), (vec![0, 1], vec![2, 3], vec![4]));
        assert_eq!(places(&cores[..4]), None);
    }
}
