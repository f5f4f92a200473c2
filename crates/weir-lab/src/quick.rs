//! The built-in study `quick`: epoll against io_uring, in a minute and a half on two cores.

use std::collections::BTreeMap;

use weir_record::{
    spec::{ArmSpec, CellRole, CellSpec, LoadMode, StudySpec, Subject},
    study::MissingArm,
};

use crate::{alternation, validate};

/// Name of the study.
pub const NAME: &str = "quick";

/// Window and warm-up of a whole trial: the pilot that finds the rate of the open loop.
const WINDOW_NS: u64 = 400_000_000;
const WARMUP_NS_MAX: u64 = 700_000_000;

/// Rounds of the headline, of the equal rate that must bear it out, and of what is only looked at.
const HEADLINE_ROUNDS: u32 = 44;
const EQUAL_RATE_ROUNDS: u32 = 16;
const EXPLORATORY_ROUNDS: u32 = 6;

/// No round starts later. The schedule takes about 80 seconds.
const TIME_CAP_NS: u64 = 150_000_000_000;

/// Differences below this do not matter.
const EQUIVALENCE_MARGIN: f64 = 0.02;

/// Whether a driver can run here, as the one who asks has found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// It runs.
    Runs,
    /// It does not.
    Missing {
        /// Why.
        reason: String,
        /// The command that would unlock it.
        unlock: Option<String>,
    },
}

/// The study for this machine, and the arm that is missing when io_uring does not run: poll then takes its place.
pub fn quick(
    seed: u64,
    uring: &Availability,
    server_cpus: &[usize],
    load_cpus: &[usize],
) -> (StudySpec, Vec<MissingArm>) {
    let (other, title, missing) = match uring {
        Availability::Runs => {
            ("uring", "Is epoll or io_uring cheaper for an echo server on this machine?", Vec::new())
        }
        Availability::Missing { reason, unlock } => (
            "poll",
            "Is epoll or poll cheaper for an echo server on this machine? (io_uring does not run here)",
            vec![MissingArm { name: "uring".to_owned(), reason: reason.clone(), unlock: unlock.clone() }],
        ),
    };
    let mut spec = StudySpec {
        name: NAME.to_owned(),
        title: title.to_owned(),
        seed,
        arms: vec![arm("epoll"), arm(other)],
        cells: vec![
            cell(CellRole::Headline, 100, LoadMode::Closed, HEADLINE_ROUNDS),
            cell(CellRole::Exploratory, 10, LoadMode::Closed, EXPLORATORY_ROUNDS),
            cell(CellRole::Exploratory, 1_000, LoadMode::Closed, EXPLORATORY_ROUNDS),
            cell(
                CellRole::Exploratory,
                100,
                LoadMode::OpenShare { share: 0.6, poisson: true },
                EQUAL_RATE_ROUNDS,
            ),
        ],
        server_cpus: server_cpus.to_vec(),
        load_cpus: load_cpus.to_vec(),
        smallest_effect: EQUIVALENCE_MARGIN,
        time_cap_ns: TIME_CAP_NS,
        published: Vec::new(),
        ways: Vec::new(),
    };
    alternation::apply(&mut spec);
    (spec, missing)
}

fn arm(driver: &str) -> ArmSpec {
    let subject =
        Subject::Weir { driver: driver.to_owned(), options: BTreeMap::new(), arguments: Vec::new() };
    ArmSpec { name: driver.to_owned(), subject, load_options: BTreeMap::new() }
}

fn cell(role: CellRole, connections: u32, load: LoadMode, blocks: u32) -> CellSpec {
    let mut cell = CellSpec {
        id: String::new(),
        role,
        connections,
        depth: 1,
        message_bytes: 64,
        idle_connections: 0,
        workers: 1,
        load,
        window_ns: WINDOW_NS,
        warmup_ns_max: WARMUP_NS_MAX,
        blocks,
        http: None,
        storage: None,
        orders: None,
        alternation: None,
        arms: Vec::new(),
    };
    cell.id = validate::cell_id(&cell);
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_is_a_valid_study_and_its_schedule_fits_the_time() {
        let (spec, missing) = quick(1, &Availability::Runs, &[0], &[1]);
        assert_eq!(validate::study(&spec), Ok(()));
        assert!(missing.is_empty());
        let ids: Vec<&str> = spec.cells.iter().map(|cell| cell.id.as_str()).collect();
        assert_eq!(
            ids,
            ["c100-d1-m64-closed", "c10-d1-m64-closed", "c1000-d1-m64-closed", "c100-d1-m64-open60pct"]
        );
        let rounds = |cell: &CellSpec| {
            let alternation = cell.alternation.expect("every cell of it takes turns");
            u64::from(cell.blocks) * alternation::round_ns(&alternation, 3)
        };
        let longest_ns: u64 = spec.cells.iter().map(rounds).sum();
        // The open-loop cell has a pilot of its two arms and the baseline's repeat.
        let pilot_ns = 3 * (WINDOW_NS + WARMUP_NS_MAX + 400_000_000);
        assert!(longest_ns + pilot_ns < 90_000_000_000, "{} ms", (longest_ns + pilot_ns) / 1_000_000);
    }

    #[test]
    fn without_io_uring_poll_stands_in_and_the_missing_arm_is_named() {
        let gone = Availability::Missing { reason: "kernel.io_uring_disabled is 2".to_owned(), unlock: None };
        let (spec, missing) = quick(1, &gone, &[], &[]);
        assert_eq!(validate::study(&spec), Ok(()));
        assert_eq!(spec.arms[1].name, "poll");
        assert_eq!(
            (missing[0].name.as_str(), missing[0].reason.as_str()),
            ("uring", "kernel.io_uring_disabled is 2")
        );
    }
}
