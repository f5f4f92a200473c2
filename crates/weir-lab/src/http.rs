//! The built-in studies of HTTP: `http` compares epoll and io_uring on a page, an image and sizes between;
//! `http-confounders` switches on, one at a time, what else differed where such comparisons were published.

use std::collections::BTreeMap;

use weir_proto::content::Content;
use weir_record::{
    spec::{ArmSpec, CellRole, CellSpec, HttpCell, LoadMode, StudySpec, Subject},
    study::MissingArm,
};

use weir_stats::{decide::ALPHA, student};

use crate::{
    alternation::{self, Turns},
    file::Surroundings,
    published,
    quick::Availability,
    validate,
};

/// Name of the comparison.
pub const NAME: &str = "http";

/// Name of the study of causes.
pub const CONFOUNDERS: &str = "http-confounders";

const MILLISECOND_NS: u64 = 1_000_000;

/// The generator needs 0.6 s to call a load steady, and often a second.
pub(crate) const WARMUP_NS_MAX: u64 = 1_000 * MILLISECOND_NS;

/// No block of `http` starts later. The schedule takes about eight minutes; the rest is for blocks run again.
const TIME_CAP_NS: u64 = 570_000 * MILLISECOND_NS;

const WINDOW_NS: u64 = 800 * MILLISECOND_NS;

/// A window of `http-confounders` holds the first two steps of the SYN timer's ladder.
const CONFOUNDERS_WINDOW_NS: u64 = 2_000 * MILLISECOND_NS;

const CONFOUNDERS_TIME_CAP_NS: u64 = 900_000 * MILLISECOND_NS;

/// The fewest with which a verdict on one comparison can be reached.
pub(crate) const BLOCKS_MIN: u32 = 6;

/// Differences below this are not called.
pub(crate) const SMALLEST_EFFECT: f64 = 0.03;

/// The open-loop cell beside a headline.
pub(crate) const EQUAL_RATE: LoadMode = LoadMode::OpenShare { share: 0.6, poisson: true };

/// Contents of the curve, between the page and the image and beyond.
const CURVE: [u32; 5] = [64, 1 << 10, 16 << 10, 128 << 10, 1 << 20];

/// Connections of the page and of the larger contents, as they were published.
const PAGE_CONNECTIONS: u32 = 100;
const IMAGE_CONNECTIONS: u32 = 50;

/// Blocks of whole trials in which every arm of a headline's cell can get a verdict, one block being lost to noise.
/// Each arm but the baseline makes two claims, on CPU and on throughput, each of which is corrected for all others
/// (Holm): so many that a difference of 1.75 deviations of a block would be called as often as not.
pub(crate) fn blocks_that_decide(arms: usize) -> u32 {
    const DEVIATIONS: f64 = 1.75;
    let claims = 2.0 * (arms as f64 - 1.0).max(0.5);
    let decides = |blocks: &u32| {
        let critical = student::quantile(1.0 - ALPHA / (2.0 * claims), blocks - 1);
        critical.is_some_and(|critical| critical <= DEVIATIONS * f64::from(*blocks).sqrt())
    };
    let clean_blocks = (BLOCKS_MIN..100).find(decides).unwrap_or(100);
    clean_blocks + 1
}

/// What is asked in a cell of HTTP.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) connections: u32,
    pub(crate) content: Content,
    /// A new connection for each request.
    pub(crate) close: bool,
}

/// The page on connections that stay.
pub(crate) const PAGE: Asked = Asked { connections: PAGE_CONNECTIONS, content: Content::Html, close: false };

/// The page on a new connection each time.
pub(crate) const PAGE_RECONNECT: Asked = Asked { close: true, ..PAGE };

/// The image, likewise.
const IMAGE: Asked = Asked { connections: IMAGE_CONNECTIONS, content: Content::Image, close: false };
pub(crate) const IMAGE_RECONNECT: Asked = Asked { close: true, ..IMAGE };

/// The largest content of the curve.
pub(crate) const LARGEST: Asked = Asked { content: Content::Bytes(CURVE[CURVE.len() - 1]), ..IMAGE };

/// A file of 300 KB for 300 users, as it was published.
pub(crate) const LARGE_FILE: Asked =
    Asked { connections: 300, content: Content::Bytes(300 << 10), close: false };

/// epoll against io_uring for this machine, and the arm that is missing when io_uring does not run: poll then takes its
/// place.
pub fn http(surroundings: &Surroundings, uring: &Availability) -> (StudySpec, Vec<MissingArm>) {
    let (other, title) = match uring {
        Availability::Runs => ("uring", "Is epoll or io_uring cheaper for an HTTP server on this machine?"),
        Availability::Missing { .. } => (
            "poll",
            "Is epoll or poll cheaper for an HTTP server on this machine? (io_uring does not run here)",
        ),
    };
    let closed = |role, asked, blocks| cell(role, asked, LoadMode::Closed, (WINDOW_NS, blocks));
    let mut cells = vec![closed(CellRole::Headline, PAGE, 12)];
    for asked in [PAGE_RECONNECT, IMAGE, IMAGE_RECONNECT] {
        cells.push(closed(CellRole::Exploratory, asked, 6));
    }
    for bytes in CURVE {
        cells.push(closed(CellRole::Exploratory, Asked { content: Content::Bytes(bytes), ..IMAGE }, 6));
    }
    cells.push(cell(CellRole::Exploratory, PAGE, EQUAL_RATE, (WINDOW_NS, 6)));
    let mut spec = StudySpec {
        name: NAME.to_owned(),
        title: title.to_owned(),
        seed: surroundings.seed,
        arms: vec![arm("epoll", "epoll", &[], &[]), arm(other, other, &[], &[])],
        cells,
        server_cpus: surroundings.server_cpus.clone(),
        load_cpus: surroundings.load_cpus.clone(),
        smallest_effect: SMALLEST_EFFECT,
        time_cap_ns: TIME_CAP_NS,
        published: published::of_http(other),
        ways: Vec::new(),
    };
    alternation::apply_with(&mut spec, &Turns { rounds: 40, ..Turns::default() });
    (spec, missing("uring", uring))
}

/// One cause at a time, on the workloads where it matters.
pub fn confounders(surroundings: &Surroundings, uring: &Availability) -> (StudySpec, Vec<MissingArm>) {
    let handler = ["--handler-time", "1ms"];
    let queue = ["--backlog", "10"];
    let both = [handler[0], handler[1], queue[0], queue[1]];
    let arms = vec![
        arm("epoll", "epoll", &[], &[]),
        arm("uring", "uring", &[], &[]),
        arm("epoll-log-lines", "epoll", &[], &["--log-connections", "{scratch}/connections.log"]),
        arm("epoll-write-blocking", "epoll", &[("write", "blocking")], &[]),
        arm("uring-submit-each", "uring", &[("submit", "operation")], &[]),
        arm("epoll-say-close", "epoll", &[], &["--say-close"]),
        arm("epoll-backlog-10", "epoll", &[], &queue),
        arm("epoll-1ms", "epoll", &[], &handler),
        arm("epoll-1ms-backlog-10", "epoll", &[], &both),
        arm("uring-1ms-backlog-10", "uring", &[], &both),
    ];
    let closed = |role, asked, arms: &[&str]| {
        let blocks = if role == CellRole::Headline { blocks_that_decide(arms.len()) } else { BLOCKS_MIN };
        CellSpec {
            arms: arms.iter().map(|name| (*name).to_owned()).collect(),
            ..cell(role, asked, LoadMode::Closed, (CONFOUNDERS_WINDOW_NS, blocks))
        }
    };
    let reconnecting = [
        "epoll",
        "uring",
        "epoll-log-lines",
        "uring-submit-each",
        "epoll-backlog-10",
        "epoll-1ms",
        "epoll-1ms-backlog-10",
        "uring-1ms-backlog-10",
    ];
    let image = ["epoll", "uring", "epoll-write-blocking", "epoll-log-lines", "uring-submit-each"];
    let equal_rate = CellSpec {
        arms: vec!["epoll".to_owned(), "uring".to_owned()],
        ..cell(CellRole::Exploratory, PAGE_RECONNECT, EQUAL_RATE, (WINDOW_NS, 6))
    };
    let spec = StudySpec {
        name: CONFOUNDERS.to_owned(),
        title:
            "How much of the published differences between HTTP servers does each of their causes make here?"
                .to_owned(),
        seed: surroundings.seed,
        arms,
        cells: vec![
            closed(CellRole::Headline, PAGE_RECONNECT, &reconnecting),
            closed(CellRole::Exploratory, IMAGE_RECONNECT, &image),
            closed(CellRole::Exploratory, PAGE, &["epoll", "uring", "epoll-say-close", "uring-submit-each"]),
            equal_rate,
        ],
        server_cpus: surroundings.server_cpus.clone(),
        load_cpus: surroundings.load_cpus.clone(),
        smallest_effect: SMALLEST_EFFECT,
        time_cap_ns: CONFOUNDERS_TIME_CAP_NS,
        published: published::of_confounders(),
        ways: Vec::new(),
    };
    let gone = ["uring", "uring-submit-each", "uring-1ms-backlog-10"];
    (spec, gone.into_iter().flat_map(|name| missing(name, uring)).collect())
}

/// An arm on one of Weir's drivers.
pub(crate) fn arm(name: &str, driver: &str, options: &[(&str, &str)], arguments: &[&str]) -> ArmSpec {
    let options = options.iter().map(|(option, value)| ((*option).to_owned(), (*value).to_owned()));
    let subject = Subject::Weir {
        driver: driver.to_owned(),
        options: options.collect(),
        arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
    };
    ArmSpec { name: name.to_owned(), subject, load_options: BTreeMap::new() }
}

/// A cell with a window and a number of blocks.
pub(crate) fn cell(
    role: CellRole,
    asked: Asked,
    load: LoadMode,
    (window_ns, blocks): (u64, u32),
) -> CellSpec {
    let Asked { connections, content, close } = asked;
    let mut cell = CellSpec {
        id: String::new(),
        role,
        connections,
        depth: 1,
        message_bytes: validate::content_bytes(content),
        idle_connections: 0,
        workers: 1,
        load,
        window_ns,
        warmup_ns_max: WARMUP_NS_MAX,
        blocks,
        http: Some(HttpCell { content: content.to_string(), close, ..HttpCell::default() }),
        storage: None,
        orders: None,
        alternation: None,
        arms: Vec::new(),
    };
    cell.id = validate::cell_id(&cell);
    cell
}

/// Identifier of the closed-loop cell in which this is asked.
pub(crate) fn closed_id(asked: Asked) -> String {
    cell(CellRole::Exploratory, asked, LoadMode::Closed, (WINDOW_NS, 6)).id
}

/// The arm as missing, when its driver does not run.
pub(crate) fn missing(arm: &str, driver: &Availability) -> Vec<MissingArm> {
    match driver {
        Availability::Runs => Vec::new(),
        Availability::Missing { reason, unlock } => {
            vec![MissingArm { name: arm.to_owned(), reason: reason.clone(), unlock: unlock.clone() }]
        }
    }
}

/// What a study takes when every warm-up runs to its cap: 400 ms are for starting, stopping and reading.
#[cfg(test)]
pub(crate) fn longest_ns(spec: &StudySpec) -> u64 {
    let of_cell = |cell: &CellSpec| {
        let arms = spec.arms.iter().filter(|arm| cell.has_arm(&arm.name)).count() as u64;
        let pilot = u64::from(matches!(cell.load, LoadMode::OpenShare { .. }));
        let ramp_up_ns = cell.http.as_ref().map_or(0, |http| http.ramp_up_ns);
        let trial_ns = cell.window_ns + cell.warmup_ns_max + ramp_up_ns + 400 * MILLISECOND_NS;
        let block_ns = match &cell.alternation {
            Some(alternation) => alternation::round_ns(alternation, arms + 1),
            None => (arms + 1) * trial_ns,
        };
        (u64::from(cell.blocks) + pilot) * block_ns
    };
    spec.cells.iter().map(of_cell).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SURROUNDINGS: Surroundings =
        Surroundings { seed: 1, server_cpus: Vec::new(), load_cpus: Vec::new() };

    #[test]
    fn http_is_a_valid_study_and_its_schedule_fits_the_time() {
        let (spec, missing) = http(&SURROUNDINGS, &Availability::Runs);
        assert_eq!((validate::study(&spec), missing.len()), (Ok(()), 0));
        let ids: Vec<&str> = spec.cells.iter().map(|cell| cell.id.as_str()).collect();
        assert_eq!(
            ids,
            [
                "c100-d1-html-closed",
                "c100-d1-html-reconnect-closed",
                "c50-d1-image-closed",
                "c50-d1-image-reconnect-closed",
                "c50-d1-b64-closed",
                "c50-d1-b1024-closed",
                "c50-d1-b16384-closed",
                "c50-d1-b131072-closed",
                "c50-d1-b1048576-closed",
                "c100-d1-html-open60pct",
            ]
        );
        assert!(spec.cells.iter().all(|cell| cell.blocks >= 6));
        assert!(longest_ns(&spec) < TIME_CAP_NS, "{} s", longest_ns(&spec) / 1_000_000_000);
        const { assert!(TIME_CAP_NS < 600_000 * MILLISECOND_NS) };
    }

    #[test]
    fn without_io_uring_poll_stands_in_and_confounders_goes_on_without_its_arms() {
        let gone = Availability::Missing { reason: "kernel.io_uring_disabled is 2".to_owned(), unlock: None };
        let (spec, missing) = http(&SURROUNDINGS, &gone);
        assert_eq!((validate::study(&spec), spec.arms[1].name.as_str()), (Ok(()), "poll"));
        assert_eq!(missing[0].name, "uring");
        let (spec, missing) = confounders(&SURROUNDINGS, &gone);
        assert_eq!(validate::study(&spec), Ok(()));
        let names: Vec<&str> = missing.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(names, ["uring", "uring-submit-each", "uring-1ms-backlog-10"]);
    }

    #[test]
    fn more_claims_need_more_blocks() {
        let blocks: Vec<u32> = (2..20).map(blocks_that_decide).collect();
        assert!(blocks.is_sorted() && blocks[0] > BLOCKS_MIN, "{blocks:?}");
        assert!((10..=13).contains(&blocks_that_decide(8)), "{blocks:?}");
    }

    #[test]
    fn every_cause_of_a_claim_is_an_arm_of_its_cell() {
        let (spec, _) = confounders(&SURROUNDINGS, &Availability::Runs);
        assert_eq!(validate::study(&spec), Ok(()));
        let mut causes = 0;
        for claim in &spec.published {
            let cell = spec.cells.iter().find(|cell| cell.id == claim.cell_id).expect("it is there");
            for cause in &claim.causes {
                for name in [&cause.arm, &cause.baseline] {
                    let is_arm = spec.arms.iter().any(|arm| arm.name == *name);
                    assert!(is_arm && cell.has_arm(name), "{}: {name} in {}", claim.id, cell.id);
                }
                causes += 1;
            }
        }
        assert!(causes >= 8, "{causes}");
        assert!(longest_ns(&spec) < CONFOUNDERS_TIME_CAP_NS, "{} s", longest_ns(&spec) / 1_000_000_000);
    }
}
