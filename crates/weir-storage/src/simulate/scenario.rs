//! A scenario: a device, a host, and phases with different load beside the foreground. Plain data.
//!
//! The constants describe the machine on which hybrid polling's predictions were measured: a Samsung 983 ZET of 480
//! GB and a Xeon Gold 6230. Comments name the source of each; `docs/guide/simulated-disk.md` has more.

use serde::{Deserialize, Serialize};
use weir_record::storage::DeviceClock;

use crate::{measure::Meter, predict::Costs};

/// Most units of a device.
pub const UNITS_MAX: u32 = 64;
/// Most background cores.
pub const CORES_MAX: u32 = 64;
/// Most background operations in flight, summed over the phases.
pub const BACKGROUND_OPERATIONS_MAX: u32 = 16_384;
/// Most phases of a scenario.
pub const PHASES_MAX: usize = 64;
/// Longest simulated time of a scenario: one day.
pub const LENGTH_NS_MAX: u64 = 86_400_000_000_000;
/// Longest single time of a model: one second.
const TIME_NS_MAX: u64 = 1_000_000_000;
/// The shortest interval of the measurement points.
const INTERVAL_NS_MIN: u64 = 1_000_000;

/// The device: units that serve one operation at a time, and the return path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceModel {
    /// Parallel units. Each operation goes to one of them, each equally likely.
    pub units: u32,
    /// Mean time in a unit.
    pub service_ns: u64,
    /// The time in a unit is uniform within this distance of the mean.
    pub service_jitter_ns: u64,
    /// Time in the pipe that all operations pass one after the other.
    pub pipe_ns: u64,
    /// Delay after that, which operations pass independently.
    pub base_ns: u64,
}

impl DeviceModel {
    /// Fitted to the published operations a second of 1 to 20 polling threads ([`super::calibration`]).
    pub const fn zet_983() -> Self {
        Self { units: 8, service_ns: 10_000, service_jitter_ns: 1_000, pipe_ns: 800, base_ns: 3_600 }
    }

    /// Mean time of a single operation on an idle device.
    pub const fn alone_ns(&self) -> u64 {
        self.service_ns + self.pipe_ns + self.base_ns
    }
}

/// How late a thread runs: a floor, plus an exponential part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lag {
    /// Minimum.
    pub floor_ns: u64,
    /// Mean of the exponential part.
    pub exponential_ns: u64,
    /// Occasional much longer lags.
    pub tail: Option<LagTail>,
}

impl Lag {
    /// A constant lag.
    pub const fn constant(floor_ns: u64) -> Self {
        Self { floor_ns, exponential_ns: 0, tail: None }
    }

    /// Mean, without the tail.
    pub const fn mean_ns(&self) -> u64 {
        self.floor_ns + self.exponential_ns
    }

    /// Median, without the tail.
    pub const fn median_ns(&self) -> u64 {
        // ln 2 is 0.6931.
        self.floor_ns + self.exponential_ns * 6_931 / 10_000
    }
}

/// Extra time of a wake-up from deep idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LagTail {
    /// Number of such wake-ups in a million.
    pub per_million: u32,
    /// Extra time.
    pub extra_ns: u64,
}

impl LagTail {
    /// One wake-up in twenty takes longer by the exit latency that Linux lists for this processor's deepest idle
    /// state (C6, 133 µs). This frequency is an assumption.
    pub const fn deep_idle() -> Self {
        Self { per_million: 50_000, extra_ns: 133_000 }
    }
}

/// The host: the costs of issuing and of each I/O model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostModel {
    /// CPU and time from the notice of one operation to the issue of the next.
    pub submit_ns: u64,
    /// Extra CPU and time of the next issue after the thread slept, because its caches are cold.
    pub cold_ns: u64,
    /// CPU and time of a background core for each operation.
    pub background_ns: u64,
    /// CPU of one timed sleep: set the timer, switch away, its interrupt, switch back.
    pub sleep_cpu_ns: u64,
    /// CPU of one wait for the interrupt: switch away, the interrupt, switch back.
    pub interrupt_cpu_ns: u64,
    /// The interrupt alone: CPU, and time until the completion is visible. An armed operation takes it even when the
    /// thread is awake.
    pub interrupt_service_ns: u64,
    /// From the end of a requested sleep until the thread runs.
    pub sleep_lag: Lag,
    /// From completion at the device until the thread that the interrupt woke runs.
    pub interrupt_lag: Lag,
}

impl HostModel {
    /// The published host. `submit_ns`, `cold_ns`, the mean of `interrupt_lag` and the CPU of sleeps and interrupts
    /// are chosen so that one thread gives the published operations a second and CPU shares of polling, interrupts,
    /// half the mean, EHP and PAS. `interrupt_service_ns` is EHP's constant for this processor. `background_ns` is
    /// unknown: it was chosen so that the second phase shows the observed misses.
    pub const fn xeon_6230() -> Self {
        Self {
            submit_ns: 900,
            cold_ns: 440,
            background_ns: 1_900,
            sleep_cpu_ns: 2_200,
            interrupt_cpu_ns: 2_220,
            interrupt_service_ns: 1_076,
            sleep_lag: Lag { floor_ns: 1_600, exponential_ns: 500, tail: None },
            interrupt_lag: Lag { floor_ns: 1_140, exponential_ns: 500, tail: None },
        }
    }

    /// The same host, with a tail on the lag of sleeps and interrupts.
    pub const fn with_tail(mut self, tail: LagTail) -> Self {
        self.sleep_lag.tail = Some(tail);
        self.interrupt_lag.tail = Some(tail);
        self
    }

    /// The costs that a predictor of this host gets.
    pub const fn costs(&self) -> Costs {
        Costs {
            submit_ns: self.submit_ns,
            sleep_cpu_ns: self.sleep_cpu_ns,
            interrupt_cpu_ns: self.interrupt_cpu_ns,
            interrupt_lag_ns: self.interrupt_lag.mean_ns(),
            wake_lag_ns: self.sleep_lag.median_ns(),
        }
    }

    /// Measurement points for this host.
    pub(super) fn meter(&self, interval_ns: u64) -> Meter {
        Meter::new(interval_ns, self.interrupt_lag.mean_ns(), DeviceClock::Simulated)
    }

    fn check(&self) -> Result<(), ScenarioError> {
        for (name, ns) in [
            ("submit_ns", self.submit_ns),
            ("cold_ns", self.cold_ns),
            ("background_ns", self.background_ns),
            ("sleep_cpu_ns", self.sleep_cpu_ns),
            ("interrupt_cpu_ns", self.interrupt_cpu_ns),
            ("interrupt_service_ns", self.interrupt_service_ns),
        ] {
            within(name, ns, 0, TIME_NS_MAX)?;
        }
        for (name, lag) in [("sleep_lag", &self.sleep_lag), ("interrupt_lag", &self.interrupt_lag)] {
            within(&format!("{name}.floor_ns"), lag.floor_ns, 0, TIME_NS_MAX)?;
            within(&format!("{name}.exponential_ns"), lag.exponential_ns, 0, TIME_NS_MAX)?;
            if let Some(tail) = lag.tail {
                within(&format!("{name}.tail.per_million"), tail.per_million.into(), 0, 1_000_000)?;
                within(&format!("{name}.tail.extra_ns"), tail.extra_ns, 0, TIME_NS_MAX)?;
            }
        }
        Ok(())
    }
}

/// A device that is slow at the start of each phase: a hypothesis about observations at the start of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartTransient {
    /// Duration from the start of the phase.
    pub length_ns: u64,
    /// Times in a unit as a percentage of the normal ones.
    pub service_percent: u32,
}

impl StartTransient {
    /// Half a second with threefold times.
    pub const fn half_second() -> Self {
        Self { length_ns: 500_000_000, service_percent: 300 }
    }
}

/// One job: the foreground runs through all of them without a pause, the background restarts in each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// Name in tables.
    pub name: String,
    /// Simulated time.
    pub length_ns: u64,
    /// Background cores.
    pub background_cores: u32,
    /// Operations each of them has in flight.
    pub background_depth: u32,
}

/// A complete scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scenario {
    /// See [`DeviceModel`].
    pub device: DeviceModel,
    /// See [`HostModel`].
    pub host: HostModel,
    /// The phases, one after the other. A predictor keeps what it learnt in earlier phases.
    pub phases: Vec<Phase>,
    /// Interval of the measurement points.
    pub interval_ns: u64,
    /// Slow start; absent unless requested.
    pub start_transient: Option<StartTransient>,
}

impl Scenario {
    /// The three jobs of the analysis of hybrid polling, with its device and host: foreground alone; beside one
    /// background core; beside four. The background's depth was not published: 32 gives the observed loss of
    /// operations a second.
    pub fn paper(job_ns: u64) -> Self {
        let phase = |name: &str, background_cores| Phase {
            name: name.to_owned(),
            length_ns: job_ns,
            background_cores,
            background_depth: 32,
        };
        Self {
            device: DeviceModel::zet_983(),
            host: HostModel::xeon_6230(),
            phases: vec![phase("Job1", 0), phase("Job2", 1), phase("Job3", 4)],
            interval_ns: 1_000_000_000,
            start_transient: None,
        }
    }

    /// Checks whether it can be simulated; an error names the wrong value and its range.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let device = &self.device;
        within("units", device.units.into(), 1, UNITS_MAX.into())?;
        within("service_ns", device.service_ns, 1, TIME_NS_MAX)?;
        within("service_jitter_ns", device.service_jitter_ns, 0, device.service_ns - 1)?;
        within("pipe_ns", device.pipe_ns, 0, TIME_NS_MAX)?;
        within("base_ns", device.base_ns, 0, TIME_NS_MAX)?;
        self.host.check()?;
        within("the number of phases", self.phases.len() as u64, 1, PHASES_MAX as u64)?;
        let (mut length_ns, mut operations) = (0_u64, 0_u64);
        for phase in &self.phases {
            within("background_cores", phase.background_cores.into(), 0, CORES_MAX.into())?;
            operations += u64::from(phase.background_cores) * u64::from(phase.background_depth);
            within(
                "background_cores times depth over all phases",
                operations,
                0,
                BACKGROUND_OPERATIONS_MAX.into(),
            )?;
            within("the length of a phase in ns", phase.length_ns, 1, LENGTH_NS_MAX)?;
            length_ns = length_ns.saturating_add(phase.length_ns);
        }
        within("the length of all phases in ns", length_ns, 1, LENGTH_NS_MAX)?;
        within("interval_ns", self.interval_ns, INTERVAL_NS_MIN, LENGTH_NS_MAX)?;
        if let Some(transient) = &self.start_transient {
            within("start_transient.service_percent", transient.service_percent.into(), 1, 100_000)?;
        }
        Ok(())
    }

    /// The most background cores active at the same time.
    pub(super) fn cores_max(&self) -> usize {
        self.phases.iter().map(|phase| phase.background_cores).max().unwrap_or(0) as usize
    }

    /// The most operations in flight at the same time: the foreground's, those of a phase, and those that earlier
    /// phases may have left behind.
    pub(super) fn operations_max(&self) -> usize {
        let of = |phase: &Phase| phase.background_cores as usize * phase.background_depth as usize;
        self.phases.iter().map(of).sum::<usize>() + 1
    }
}

/// A value that cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} is {value}; it must be from {min} to {max}")]
pub struct ScenarioError {
    /// Name of the value.
    pub name: String,
    /// The value.
    pub value: u64,
    /// Smallest allowed value.
    pub min: u64,
    /// Largest allowed value.
    pub max: u64,
}

fn within(name: &str, value: u64, min: u64, max: u64) -> Result<(), ScenarioError> {
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(ScenarioError { name: name.to_owned(), value, min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_scenario_can_be_simulated() {
        assert_eq!(Scenario::paper(20_000_000_000).check(), Ok(()));
    }

    #[test]
    fn a_value_out_of_range_is_named() {
        type Change = fn(&mut Scenario);
        let refused = |change: Change| {
            let mut scenario = Scenario::paper(1_000_000_000);
            change(&mut scenario);
            scenario.check().expect_err("out of range").to_string()
        };
        let cases: [(Change, &str); 9] = [
            (|scenario| scenario.device.units = 0, "units is 0; it must be from 1 to 64"),
            (|scenario| scenario.device.units = 65, "units is 65"),
            (|scenario| scenario.device.service_jitter_ns = 10_000, "service_jitter_ns is 10000"),
            (|scenario| scenario.phases.clear(), "the number of phases is 0"),
            (|scenario| scenario.phases[1].background_cores = 65, "background_cores is 65"),
            (|scenario| scenario.phases[1].background_depth = 16_385, "depth over all phases is 16385"),
            (|scenario| scenario.phases[0].length_ns = LENGTH_NS_MAX, "the length of all phases"),
            (|scenario| scenario.interval_ns = 1, "interval_ns is 1"),
            (
                |scenario| {
                    scenario.host = scenario.host.with_tail(LagTail { per_million: 1_000_001, extra_ns: 1 });
                },
                "sleep_lag.tail.per_million is 1000001",
            ),
        ];
        for (change, expected) in cases {
            let told = refused(change);
            assert!(told.contains(expected), "{told}");
        }
    }
}
