//! The built-in study `survey`, its network half: every way of waiting for a socket, and a server many people know, on
//! one small page.

use weir_record::{
    spec::{ArmSpec, CellRole, CellSpec, HttpCell, LoadMode, StudySpec, Subject},
    study::MissingArm,
};

use crate::{
    file::Surroundings,
    http::{self, EQUAL_RATE, PAGE, PAGE_RECONNECT, SMALLEST_EFFECT, arm},
    published,
    quick::Availability,
};

/// Name of the study.
pub const NAME: &str = "survey";

const MILLISECOND_NS: u64 = 1_000_000;

/// The plan as it was published, or scaled down. Users and timeouts are those of the source in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// All of it in under ten minutes.
    Scaled,
    /// 100 users in 10 s, 30 s of test, for every trial: an hour.
    Published,
}

/// Lengths of a plan.
struct Lengths {
    window_ns: u64,
    window_reconnect_ns: u64,
    ramp_up_ns: u64,
    time_cap_ns: u64,
}

const CONNECT_TIMEOUT_NS: u64 = 5_000 * MILLISECOND_NS;
const RESPONSE_TIMEOUT_NS: u64 = 3_000 * MILLISECOND_NS;

/// The window of the open-loop cell, which no source has.
const EQUAL_RATE_WINDOW_NS: u64 = 1_000 * MILLISECOND_NS;

impl Plan {
    fn lengths(self) -> Lengths {
        match self {
            // A twelfth of the source's window and ramp-up.
            Self::Scaled => Lengths {
                window_ns: 2_500 * MILLISECOND_NS,
                window_reconnect_ns: 1_500 * MILLISECOND_NS,
                ramp_up_ns: 800 * MILLISECOND_NS,
                time_cap_ns: 580_000 * MILLISECOND_NS,
            },
            Self::Published => Lengths {
                window_ns: 30_000 * MILLISECOND_NS,
                window_reconnect_ns: 30_000 * MILLISECOND_NS,
                ramp_up_ns: 10_000 * MILLISECOND_NS,
                time_cap_ns: 7_200_000 * MILLISECOND_NS,
            },
        }
    }
}

/// The study for this machine, and the arm that is missing when io_uring does not run. Whether the foreign server is
/// there is found out when it is started.
pub fn survey(surroundings: &Surroundings, uring: &Availability, plan: Plan) -> (StudySpec, Vec<MissingArm>) {
    let lengths = plan.lengths();
    let by_users = |role, asked, window_ns| {
        let mut cell = http::cell(role, asked, LoadMode::Closed, (window_ns, 6));
        cell.http = cell.http.map(|http| HttpCell {
            ramp_up_ns: lengths.ramp_up_ns,
            connect_timeout_ns: CONNECT_TIMEOUT_NS,
            response_timeout_ns: RESPONSE_TIMEOUT_NS,
            ..http
        });
        cell
    };
    let cells: Vec<CellSpec> = vec![
        by_users(CellRole::Headline, PAGE, lengths.window_ns),
        by_users(CellRole::Exploratory, PAGE_RECONNECT, lengths.window_reconnect_ns),
        http::cell(CellRole::Exploratory, PAGE, EQUAL_RATE, (EQUAL_RATE_WINDOW_NS, 6)),
    ];
    let spec = StudySpec {
        name: NAME.to_owned(),
        title: "Which way of waiting serves a small page over HTTP with the least CPU?".to_owned(),
        seed: surroundings.seed,
        arms: vec![
            arm("epoll", "epoll", &[], &[]),
            arm("uring", "uring", &[], &[]),
            arm("poll", "poll", &[], &[]),
            arm("select", "select", &[], &[]),
            arm("blocking", "blocking", &[], &[]),
            go(),
        ],
        cells,
        server_cpus: surroundings.server_cpus.clone(),
        load_cpus: surroundings.load_cpus.clone(),
        smallest_effect: SMALLEST_EFFECT,
        time_cap_ns: lengths.time_cap_ns,
        published: published::of_survey(),
    };
    (spec, http::missing("uring", uring))
}

/// The server of Go's `net/http`, which `peers/build` builds.
fn go() -> ArmSpec {
    let words = ["peers/bin/go-http", "{port}", "{content}", "{content_type}", "{cpus}"];
    let argv = words.iter().map(|word| (*word).to_owned()).collect();
    ArmSpec { name: "go".to_owned(), subject: Subject::Command { argv }, load_options: [].into() }
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
            let (spec, missing) = survey(&SURROUNDINGS, &Availability::Runs, plan);
            assert_eq!((validate::study(&spec), missing.len()), (Ok(()), 0));
            let longest_ns = longest_ns(&spec);
            assert!(longest_ns < spec.time_cap_ns, "{plan:?}: {} s", longest_ns / 1_000_000_000);
        }
        let (scaled, _) = survey(&SURROUNDINGS, &Availability::Runs, Plan::Scaled);
        assert!(scaled.time_cap_ns < 600_000 * MILLISECOND_NS);
        assert!(scaled.cells.iter().all(|cell| cell.window_ns <= 5_000 * MILLISECOND_NS));
    }

    #[test]
    fn the_published_plan_is_the_sources() {
        let (spec, _) = survey(&SURROUNDINGS, &Availability::Runs, Plan::Published);
        let cell = &spec.cells[0];
        let http = cell.http.as_ref().expect("it is HTTP");
        let seconds = [cell.window_ns, http.ramp_up_ns, http.connect_timeout_ns, http.response_timeout_ns]
            .map(|length_ns| length_ns / 1_000_000_000);
        assert_eq!((cell.connections, seconds), (100, [30, 10, 5, 3]));
    }
}
