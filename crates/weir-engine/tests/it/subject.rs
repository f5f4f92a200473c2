//! The subjects of the cases: each driver with each set of options that changes its operation.

use std::time::Duration;

use weir_engine::{Config, Driver, DriverReport, KernelMask, ReceiveMode, Runtime, StartError, probe};

/// A driver with options.
#[derive(Debug)]
pub struct Subject {
    pub name: &'static str,
    pub driver: Driver,
    adjust: fn(&mut Config),
}

/// Every subject. `conformance.rs` makes a test of each case for each of them.
pub static SUBJECTS: [Subject; 28] = [
    Subject { name: "uring", driver: Driver::Uring, adjust: |_| {} },
    Subject { name: "uring_like_6_12", driver: Driver::Uring, adjust: |config| mask(config, "6.12") },
    Subject { name: "uring_like_6_1", driver: Driver::Uring, adjust: |config| mask(config, "6.1") },
    Subject { name: "uring_like_6_0", driver: Driver::Uring, adjust: |config| mask(config, "6.0") },
    Subject { name: "uring_like_5_19", driver: Driver::Uring, adjust: |config| mask(config, "5.19") },
    Subject { name: "uring_like_5_18", driver: Driver::Uring, adjust: |config| mask(config, "5.18") },
    Subject { name: "uring_like_5_17", driver: Driver::Uring, adjust: |config| mask(config, "5.17") },
    Subject { name: "uring_like_5_15", driver: Driver::Uring, adjust: |config| mask(config, "5.15") },
    Subject { name: "uring_like_5_11", driver: Driver::Uring, adjust: |config| mask(config, "5.11") },
    Subject {
        name: "uring_single_receive",
        driver: Driver::Uring,
        adjust: |config| config.uring.receive = ReceiveMode::Single,
    },
    Subject {
        name: "uring_submit_each",
        driver: Driver::Uring,
        adjust: |config| config.uring.submit_each = true,
    },
    Subject {
        name: "uring_no_defer",
        driver: Driver::Uring,
        adjust: |config| config.uring.defer_taskrun = false,
    },
    Subject { name: "uring_tiny_ring", driver: Driver::Uring, adjust: |config| config.uring.entries = 4 },
    Subject {
        name: "uring_minimum_wait",
        driver: Driver::Uring,
        adjust: |config| config.uring.minimum_wait = Duration::from_micros(200),
    },
    Subject {
        name: "uring_fixed_files",
        driver: Driver::Uring,
        adjust: |config| config.uring.fixed_files = true,
    },
    Subject {
        name: "uring_zero_copy",
        driver: Driver::Uring,
        // Everything that can be lent is lent.
        adjust: |config| config.uring.zero_copy_bytes_min = Some(1),
    },
    Subject {
        name: "uring_bundle",
        driver: Driver::Uring,
        adjust: |config| config.uring.receive = ReceiveMode::Bundle,
    },
    Subject {
        name: "uring_sqpoll",
        driver: Driver::Uring,
        // Short enough for the kernel's thread to fall asleep repeatedly.
        adjust: |config| config.uring.poll_idle_ms = Some(1),
    },
    Subject { name: "epoll_edge", driver: Driver::Epoll, adjust: |_| {} },
    Subject { name: "epoll_level", driver: Driver::Epoll, adjust: |config| config.epoll.edge = false },
    Subject {
        name: "epoll_drain",
        driver: Driver::Epoll,
        adjust: |config| config.epoll.drain_to_eagain = true,
    },
    Subject { name: "epoll_like_5_10", driver: Driver::Epoll, adjust: |config| mask(config, "5.10") },
    Subject { name: "poll", driver: Driver::Poll, adjust: |_| {} },
    Subject { name: "select", driver: Driver::Select, adjust: |_| {} },
    Subject { name: "blocking", driver: Driver::Blocking, adjust: |_| {} },
    Subject { name: "sim", driver: Driver::Sim, adjust: |_| {} },
    Subject { name: "sim_short", driver: Driver::Sim, adjust: |config| config.sim.short_per_mille = 200 },
    Subject {
        name: "sim_level",
        driver: Driver::Sim,
        adjust: |config| {
            config.sim.edge = false;
            config.sim.short_per_mille = 200;
        },
    },
];

/// Masks features, without failing on an older kernel: there is nothing left to mask there, and the case still
/// applies.
fn mask(config: &mut Config, rung: &str) {
    config.masked = KernelMask::as_on(rung.parse().expect("a version"));
}

impl Subject {
    pub fn named(name: &str) -> &'static Subject {
        SUBJECTS.iter().find(|subject| subject.name == name).unwrap_or_else(|| panic!("no subject {name}"))
    }

    /// The configuration of this subject.
    pub fn config(&self) -> Config {
        let mut config = Config::for_test(self.driver);
        (self.adjust)(&mut config);
        config
    }

    /// Why the kernel does not let this subject run, if so.
    pub fn refusal(&self) -> Option<String> {
        match Runtime::new(&self.config()) {
            Ok(_) => None,
            Err(StartError::Refused { refusal, .. }) => Some(refusal.to_string()),
            Err(error) => panic!("{}: {error}", self.name),
        }
    }

    /// Whether `WEIR_REQUIRE_DRIVERS` names this subject's driver.
    pub fn is_required(&self) -> bool {
        let required = std::env::var("WEIR_REQUIRE_DRIVERS").unwrap_or_default();
        required.split(',').any(|name| name.trim() == self.driver.name())
    }

    pub fn is_sim(&self) -> bool {
        self.driver == Driver::Sim
    }

    pub fn is_uring(&self) -> bool {
        self.driver == Driver::Uring
    }

    pub fn is_epoll(&self) -> bool {
        self.driver == Driver::Epoll
    }

    /// Epoll, poll and select.
    pub fn is_readiness(&self) -> bool {
        matches!(self.driver, Driver::Epoll | Driver::Poll | Driver::Select)
    }

    /// Receives stay armed in the kernel and take buffers without a new submission.
    pub fn is_multishot(&self) -> bool {
        let is_multishot = |report: DriverReport| {
            report.driver == Driver::Uring && report.granted.contains(&"multishot-receive")
        };
        self.is_uring() && probe(&self.config()).into_iter().any(is_multishot)
    }
}

/// Every rung of the kernel ladder is tested: a new rung needs a subject.
#[test]
fn every_rung_of_the_ladder_is_a_subject() {
    for rung in KernelMask::LADDER {
        let name = format!("uring_like_{}_{}", rung.major, rung.minor);
        assert!(SUBJECTS.iter().any(|subject| subject.name == name), "no subject {name}");
    }
}

#[test]
fn every_driver_is_a_subject() {
    for driver in Driver::ALL {
        assert!(SUBJECTS.iter().any(|subject| subject.driver == driver), "no subject for {driver}");
    }
}
