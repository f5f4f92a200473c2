//! How many sockets this process may open.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{files, parse};

/// Descriptors left for files, rings, pipes and libraries that open later.
const DESCRIPTORS_RESERVED: u64 = 64;
/// Descriptors that each worker of a generator needs besides its connections, and that all need together.
const DESCRIPTORS_PER_WORKER: u64 = 8;
const DESCRIPTORS_SHARED: u64 = 32;
/// The kernel's default range of local ports, if it cannot be read.
const PORT_RANGE_DEFAULT: (u64, u64) = (32_768, 60_999);

/// The limits on the number of connections of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionBudget {
    /// Descriptors allowed now (`u64::MAX`: no limit).
    pub nofile_soft: u64,
    /// Descriptors allowed after [`raise_nofile`].
    pub nofile_hard: u64,
    /// Descriptors open now.
    pub descriptors_used: u64,
    /// Local ports for connections from one address to one address and port.
    pub local_ports: u64,
}

impl ConnectionBudget {
    /// Connections a server may have once the soft limit is raised.
    pub fn server_connections(&self) -> u64 {
        self.nofile_hard.saturating_sub(self.descriptors_used).saturating_sub(DESCRIPTORS_RESERVED)
    }

    /// Descriptors that a generator with this many connections needs, including those open now.
    pub fn generator_descriptors(&self, connections: u64, workers: u32) -> u64 {
        self.descriptors_used + connections + DESCRIPTORS_PER_WORKER * u64::from(workers) + DESCRIPTORS_SHARED
    }

    /// Connections a generator may open to one server address once the soft limit is raised.
    pub fn client_connections(&self) -> u64 {
        self.server_connections().min(self.local_ports)
    }
}

/// Reads the budget; opens nothing and changes nothing.
pub fn connection_budget() -> ConnectionBudget {
    let nofile = getrlimit(Resource::Nofile);
    let range =
        files::read_text("/proc/sys/net/ipv4/ip_local_port_range").as_deref().and_then(parse::two_numbers);
    let reserved = files::read_text("/proc/sys/net/ipv4/ip_local_reserved_ports").unwrap_or_default();
    ConnectionBudget {
        nofile_soft: nofile.current.unwrap_or(u64::MAX),
        nofile_hard: nofile.maximum.unwrap_or(u64::MAX),
        descriptors_used: files::numbered_entries("/proc/self/fd").len() as u64,
        local_ports: ports(range.unwrap_or(PORT_RANGE_DEFAULT), &reserved),
    }
}

/// Raises the soft limit on descriptors to the hard one and returns the new soft limit.
pub fn raise_nofile() -> io::Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    }
    Ok(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX))
}

/// Ports of the range that are not reserved. `reserved` is a list of ranges up to 65535.
fn ports((first, last): (u64, u64), reserved: &str) -> u64 {
    if first > last {
        return 0;
    }
    let held: u64 = reserved.split(',').map(|part| overlap((first, last), part)).sum();
    (last - first + 1).saturating_sub(held)
}

fn overlap((first, last): (u64, u64), part: &str) -> u64 {
    let (from, to) = part.split_once('-').unwrap_or((part, part));
    let (Ok(from), Ok(to)) = (from.trim().parse::<u64>(), to.trim().parse::<u64>()) else { return 0 };
    (to.min(last) + 1).saturating_sub(from.max(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_ports_are_taken_out_of_the_range() {
        assert_eq!(ports((32_768, 60_999), "\n"), 28_232);
        assert_eq!(ports((1000, 1999), "1,1000,1500-1599,1990-2100\n"), 1000 - 1 - 100 - 10);
        assert_eq!(ports((1000, 1999), "0-65535"), 0);
        assert_eq!(ports((2000, 1000), ""), 0);
    }

    #[test]
    fn a_generator_is_bound_by_ports_and_a_server_is_not() {
        let budget = ConnectionBudget {
            nofile_soft: 1024,
            nofile_hard: 100_000,
            descriptors_used: 10,
            local_ports: 28_232,
        };
        assert_eq!(budget.server_connections(), 100_000 - 10 - 64);
        assert_eq!(budget.client_connections(), 28_232);
        let tight = ConnectionBudget { nofile_hard: 20, ..budget };
        assert_eq!((tight.server_connections(), tight.client_connections()), (0, 0));
    }

    #[test]
    fn raising_reaches_the_hard_limit_and_the_budget_sees_an_open_file() {
        let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        assert_eq!(raise_nofile().expect("a soft limit may rise to the hard one"), hard);
        let budget = connection_budget();
        assert_eq!(budget.nofile_soft, budget.nofile_hard);
        assert!(budget.descriptors_used >= 3);
        assert!(budget.local_ports > 0);
    }
}
