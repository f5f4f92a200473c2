//! Values that a study file leaves to the machine and to the user.

use serde::{Deserialize, Serialize};
use weir_record::finding::Finding;

/// Defaults of this host. The caller finds them out; the parser of study files only reads them.
#[derive(Clone, Debug, Default)]
pub struct HostDefaults {
    /// Seed, when the file gives none.
    pub seed: u64,
    /// CPUs of the server side.
    pub server_cpus: Vec<usize>,
    /// CPUs of the generator.
    pub load_cpus: Vec<usize>,
    /// CPUs for a study of orders, where the machine has a core for each of its threads.
    pub order_cpus: Option<OrderCpus>,
    /// Drivers of sockets and engines of disks that were tried. One that is not listed is assumed to run.
    pub tried: Vec<DriverFound>,
    /// Congestion control algorithms that may be used here; empty if they were not looked up: then all are assumed
    /// available.
    pub congestion_controls: Vec<String>,
    /// The plan of the file that is asked for instead of its usual one.
    pub plan: Option<String>,
}

impl HostDefaults {
    /// The result for a driver that does not run here.
    pub fn refused(&self, driver: &str) -> Option<&DriverFound> {
        self.tried.iter().find(|found| found.driver == driver && !found.available)
    }
}

/// Result of trying a driver of sockets or an engine of disks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriverFound {
    /// Name as on the command line; no driver has the name of an engine.
    pub driver: String,
    /// Whether it passed its start-up test.
    pub available: bool,
    /// The granted features, or the reason for a refusal.
    pub detail: Finding,
    /// The remedy that would make it available.
    pub unlock: Option<Finding>,
}

/// CPUs of the three sides of a study of orders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderCpus {
    /// The gateway's, one for each of two workers.
    pub gateway: Vec<usize>,
    /// The exchange's, likewise.
    pub exchange: Vec<usize>,
    /// The generator's.
    pub load: Vec<usize>,
}

impl OrderCpus {
    /// A physical core for each of five threads. `None` with fewer cores: then gateway and generator have the CPUs
    /// that every study gives them, and the exchange shares the generator's.
    pub fn of(cores: &[Vec<usize>]) -> Option<Self> {
        let first = |core: usize| cores.get(core)?.first().copied();
        Some(Self {
            gateway: vec![first(0)?, first(1)?],
            exchange: vec![first(2)?, first(3)?],
            load: vec![first(4)?],
        })
    }
}

/// `0,2` as on the command line.
pub fn cpu_list(cpus: &[usize]) -> String {
    cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_cores_are_one_for_each_thread() {
        let cores: Vec<Vec<usize>> = (0..6).map(|core| vec![core, core + 6]).collect();
        let found = OrderCpus::of(&cores).expect("there are enough");
        assert_eq!((found.gateway, found.exchange, found.load), (vec![0, 1], vec![2, 3], vec![4]));
        assert_eq!(OrderCpus::of(&cores[..4]), None);
    }
}
