//! The built-in study `survey`, its network half: every way of waiting for a socket, and a server many people know, on
//! one small page, from memory and from a file; and a large file, read against sent from the page cache.

use weir_record::{
    spec::{ArmSpec, CellRole, CellSpec, HttpCell, LoadMode, StudySpec, Subject},
    study::MissingArm,
};

use crate::{
    file::Surroundings,
    http::{self, EQUAL_RATE, LARGE_FILE, PAGE, PAGE_RECONNECT, SMALLEST_EFFECT, arm},
    published,
    quick::Availability,
    ways::{self, DriverFound},
};

/// Name of the study.
pub const NAME: &str = "survey";

const MILLISECOND_NS: u64 = 1_000_000;

/// The plan as it was published, or scaled down. Users and timeouts are those of the source in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// All of it in under ten minutes.
    Scaled,
    /// 100 users in 10 s, 30 s of test, for every trial: under two hours.
    Published,
}

/// Lengths of a plan.
struct Lengths {
    window_ns: u64,
    ramp_up_ns: u64,
    window_file_ns: u64,
    ramp_up_file_ns: u64,
    time_cap_ns: u64,
}

const CONNECT_TIMEOUT_NS: u64 = 5_000 * MILLISECOND_NS;
const RESPONSE_TIMEOUT_NS: u64 = 3_000 * MILLISECOND_NS;

/// The window of the open-loop cells, which no source has.
const EQUAL_RATE_WINDOW_NS: u64 = 800 * MILLISECOND_NS;

/// Less than in the other built-in studies, none of which has as many trials; the generator needs 0.6 s.
const WARMUP_NS_MAX: u64 = 800 * MILLISECOND_NS;

/// The page from memory.
const IN_MEMORY: [&str; 6] = ["epoll", "uring", "poll", "select", "blocking", "go"];

/// The page, or the large file, read for every request.
const READING: [&str; 5] = ["epoll-read", "uring-read", "poll-read", "select-read", "blocking-read"];

/// The large file: from memory, read by two drivers, and sent from the page cache.
const LARGE: [&str; 4] = ["epoll", "epoll-read", "uring-read", "epoll-sendfile"];

impl Plan {
    fn lengths(self) -> Lengths {
        match self {
            // About a thirtieth of the source's window and ramp-up.
            Self::Scaled => Lengths {
                window_ns: 900 * MILLISECOND_NS,
                ramp_up_ns: 330 * MILLISECOND_NS,
                window_file_ns: 700 * MILLISECOND_NS,
                ramp_up_file_ns: 300 * MILLISECOND_NS,
                time_cap_ns: 580_000 * MILLISECOND_NS,
            },
            // The later version says 300 users in 5 s, and not for how long.
            Self::Published => Lengths {
                window_ns: 30_000 * MILLISECOND_NS,
                ramp_up_ns: 10_000 * MILLISECOND_NS,
                window_file_ns: 30_000 * MILLISECOND_NS,
                ramp_up_file_ns: 5_000 * MILLISECOND_NS,
                time_cap_ns: 7_200_000 * MILLISECOND_NS,
            },
        }
    }
}

/// The study for this machine, and the arms that are missing when io_uring does not run. Whether the foreign server is
/// there is found out when it is started.
pub fn survey(
    surroundings: &Surroundings,
    uring: &Availability,
    drivers: &[DriverFound],
    plan: Plan,
) -> (StudySpec, Vec<MissingArm>) {
    let spec = StudySpec {
        name: NAME.to_owned(),
        title: "Which way of waiting serves a small page over HTTP with the least CPU?".to_owned(),
        seed: surroundings.seed,
        arms: arms(),
        cells: cells(&plan.lengths()),
        server_cpus: surroundings.server_cpus.clone(),
        load_cpus: surroundings.load_cpus.clone(),
        smallest_effect: SMALLEST_EFFECT,
        time_cap_ns: plan.lengths().time_cap_ns,
        published: published::of_survey(),
        ways: ways::found(drivers),
    };
    let gone = ["uring", "uring-read"];
    (spec, gone.into_iter().flat_map(|name| http::missing(name, uring)).collect())
}

/// Every driver from memory and reading, epoll sending from the page cache, and Go.
fn arms() -> Vec<ArmSpec> {
    let from_file = |name: &str, how: &str| {
        let driver = name.split('-').next().unwrap_or(name);
        // What reading costs is the question, so nothing is kept in memory between requests.
        arm(name, driver, &[], &["--root", "{content_dir}", "--file-io", how, "--file-cache", "0"])
    };
    let (go, drivers) = IN_MEMORY.split_last().expect("the list is not empty");
    let mut arms: Vec<ArmSpec> = drivers.iter().map(|driver| arm(driver, driver, &[], &[])).collect();
    arms.push(net_http(go));
    arms.extend(READING.map(|name| from_file(name, "read")));
    arms.push(from_file("epoll-sendfile", "sendfile"));
    arms
}

fn cells(lengths: &Lengths) -> Vec<CellSpec> {
    let cell = |role, asked, load, window_ns, arms: &[&str]| CellSpec {
        warmup_ns_max: WARMUP_NS_MAX,
        arms: arms.iter().map(|name| (*name).to_owned()).collect(),
        ..http::cell(role, asked, load, (window_ns, blocks_of(role)))
    };
    let by_users = |cell: CellSpec, ramp_up_ns| {
        let http = cell.http.map(|http| HttpCell {
            ramp_up_ns,
            connect_timeout_ns: CONNECT_TIMEOUT_NS,
            response_timeout_ns: RESPONSE_TIMEOUT_NS,
            ..http
        });
        CellSpec { http, ..cell }
    };
    let closed = |role, asked, arms| cell(role, asked, LoadMode::Closed, lengths.window_ns, arms);
    let open = |asked, arms| cell(CellRole::Exploratory, asked, EQUAL_RATE, EQUAL_RATE_WINDOW_NS, arms);
    let everywhere = [IN_MEMORY.as_slice(), READING.as_slice()].concat();
    let large = cell(CellRole::Exploratory, LARGE_FILE, LoadMode::Closed, lengths.window_file_ns, &LARGE);
    vec![
        by_users(closed(CellRole::Headline, PAGE, &IN_MEMORY), lengths.ramp_up_ns),
        by_users(closed(CellRole::Exploratory, PAGE_RECONNECT, &everywhere), lengths.ramp_up_ns),
        open(PAGE, &IN_MEMORY),
        by_users(large, lengths.ramp_up_file_ns),
        open(LARGE_FILE, &LARGE),
    ]
}

fn blocks_of(role: CellRole) -> u32 {
    if role == CellRole::Headline { http::blocks_that_decide(IN_MEMORY.len()) } else { http::BLOCKS_MIN }
}

/// The server of Go's `net/http`, which `peers/build` builds.
fn net_http(name: &str) -> ArmSpec {
    let words = ["peers/bin/go-http", "{port}", "{content}", "{content_type}", "{cpus}"];
    let argv = words.iter().map(|word| (*word).to_owned()).collect();
    ArmSpec { name: name.to_owned(), subject: Subject::Command { argv }, load_options: [].into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{http::longest_ns, validate};

    const SURROUNDINGS: Surroundings =
        Surroundings { seed: 1, server_cpus: Vec::new(), load_cpus: Vec::new() };

    #[test]
    fn both_plans_are_valid_and_fit_their_time() {
        for plan in [Plan::Scaled, Plan::Published] {
            let (spec, missing) = survey(&SURROUNDINGS, &Availability::Runs, &[], plan);
            assert_eq!((validate::study(&spec), missing.len()), (Ok(()), 0));
            let longest_ns = longest_ns(&spec);
            assert!(longest_ns < spec.time_cap_ns, "{plan:?}: {} s", longest_ns / 1_000_000_000);
        }
        let (scaled, _) = survey(&SURROUNDINGS, &Availability::Runs, &[], Plan::Scaled);
        assert!(scaled.time_cap_ns < 600_000 * MILLISECOND_NS);
        assert!(scaled.cells.iter().all(|cell| cell.window_ns <= 5_000 * MILLISECOND_NS));
        assert!(scaled.cells.iter().all(|cell| cell.blocks >= 6));
    }

    #[test]
    fn the_headlines_blocks_can_decide_for_every_arm_at_once() {
        let (spec, _) = survey(&SURROUNDINGS, &Availability::Runs, &[], Plan::Scaled);
        let headline = spec.cells.iter().find(|cell| cell.role == CellRole::Headline).expect("there is one");
        assert_eq!(headline.blocks, http::blocks_that_decide(headline.arms.len()));
    }

    #[test]
    fn every_driver_serves_the_page_from_memory_and_from_a_file_on_the_same_connections() {
        let (spec, _) = survey(&SURROUNDINGS, &Availability::Runs, &[], Plan::Scaled);
        let cell = spec.cells.iter().find(|cell| cell.id == "c100-d1-html-reconnect-closed");
        let cell = cell.expect("it is there");
        for driver in validate::DRIVERS {
            let from_file = format!("{driver}-read");
            assert!(cell.has_arm(driver) && cell.has_arm(&from_file), "{driver}");
            let arm = spec.arms.iter().find(|arm| arm.name == from_file).expect("it is an arm");
            let Subject::Weir { driver: chosen, arguments, .. } = &arm.subject else { panic!("{arm:?}") };
            let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
            assert_eq!(chosen, driver);
            assert_eq!(words, ["--root", "{content_dir}", "--file-io", "read", "--file-cache", "0"]);
        }
        let large: Vec<&CellSpec> = spec.cells.iter().filter(|cell| cell.connections == 300).collect();
        let ids: Vec<&str> = large.iter().map(|cell| cell.id.as_str()).collect();
        assert_eq!(ids, ["c300-d1-b307200-closed", "c300-d1-b307200-open60pct"]);
        assert!(large.iter().all(|cell| cell.has_arm("epoll-read") && cell.has_arm("epoll-sendfile")));
    }

    #[test]
    fn every_claim_stands_beside_two_arms_of_its_cell() {
        let (spec, _) = survey(&SURROUNDINGS, &Availability::Runs, &[], Plan::Scaled);
        for claim in &spec.published {
            let cell = spec.cells.iter().find(|cell| cell.id == claim.cell_id).expect("it is planned");
            for name in [&claim.arm, &claim.baseline] {
                let is_arm = spec.arms.iter().any(|arm| arm.name == *name);
                assert!(is_arm && cell.has_arm(name), "{}: {name} in {}", claim.id, cell.id);
            }
            assert_ne!(claim.arm, claim.baseline, "{}", claim.id);
        }
    }

    #[test]
    fn without_io_uring_both_its_arms_are_named() {
        let gone = Availability::Missing { reason: "kernel.io_uring_disabled is 2".to_owned(), unlock: None };
        let (spec, missing) = survey(&SURROUNDINGS, &gone, &[], Plan::Scaled);
        assert_eq!(validate::study(&spec), Ok(()));
        let names: Vec<&str> = missing.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(names, ["uring", "uring-read"]);
    }

    #[test]
    fn the_published_plan_is_the_sources() {
        let (spec, _) = survey(&SURROUNDINGS, &Availability::Runs, &[], Plan::Published);
        let cell = &spec.cells[0];
        let http = cell.http.as_ref().expect("it is HTTP");
        let seconds = [cell.window_ns, http.ramp_up_ns, http.connect_timeout_ns, http.response_timeout_ns]
            .map(|length_ns| length_ns / 1_000_000_000);
        assert_eq!((cell.connections, seconds), (100, [30, 10, 5, 3]));
    }
}
